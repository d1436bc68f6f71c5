/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines for an order and the caller's options. */
#ifndef HONE_ENGINES_H
#define HONE_ENGINES_H

#include "refine/ladder.h"

/* The engine of each role of the policy. */
extern const hone_engine *const hone_role_engines[HONE_ROLES];

/* The caller's choices for a GPU's factorization, from options.tuning. */
hone_choices hone_choices_of(const hone_options *o);

/* The rungs for this order and these options, cheapest first: how many. 0: the
   device asked for cannot be used, and why says so. */
int hone_choose_engines(const hone_options *o, int64_t n, bool one_shot,
                        hone_step steps[HONE_MAX_RUNGS], char *why,
                        size_t why_size);

/* Frees the threads and the engines that the process keeps between calls;
   returns how many bytes of device memory that was. */
int64_t hone_engines_release(void);

/* Bytes of device memory, of the engine that needs most. */
int64_t hone_engines_device_bytes(const hone_options *o, int64_t n,
                                  bool resident);

#endif
