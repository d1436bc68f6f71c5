/* SPDX-License-Identifier: BSD-3-Clause */
/* Refinement beyond a small backward error, to a small error of x itself. */
#ifndef HONE_EXTRA_PRECISE_H
#define HONE_EXTRA_PRECISE_H

#include "refine/refine.h"

/* The forward error bound that extra-precise mode asks for. */
#define HONE_EXTRA_LIMIT (8.0 * HONE_EPS)

/* Refines the m accepted columns listed, measured as they are and each with
   room for a tail. extra: until the next correction is below eps / 2 of x,
   and of every entry where that can be had; else of 1e-3 of x. On HONE_OK a
   column is still accepted, now with its error, or left, its best iterate being
   one that would be accepted. HONE_INTERRUPTED, or what a solve said: some are
   active. */
int hone_refine_extra_precise(hone_refinement *ctx, bool extra, int64_t m,
                              hone_refined **list);

#endif
