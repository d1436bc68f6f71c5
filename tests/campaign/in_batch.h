/* SPDX-License-Identifier: BSD-3-Clause */
/* One system as a member of a batch, beside others that must not matter. */
#ifndef TESTS_IN_BATCH_H
#define TESTS_IN_BATCH_H

#include "tests/gallery/either_call.h"

/* So many systems a batch has. */
enum { IN_BATCH_COUNT = 9 };

/* Solves the system as number 'place' of a batch; options.columns are its own.
   The others are the same system, one of NaN, one of zeros and one with a tiny
   entry, in turn. Returns the status of this system, and result is its own. */
int in_batch_solve(const either_call *call, const hone_options *options,
                   int place, hone_batch_result *result);

#endif
