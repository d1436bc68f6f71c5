/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of many right-hand sides, which follow the steps of x instead of
   being computed anew: steps.c. */
#ifndef HONE_STEPS_H
#define HONE_STEPS_H

#include "refine/refine.h"

/* May the residuals of these columns follow the steps of x? Sets by_steps of
   each column. */
void hone_steps_begin(const hone_refinement *ctx, int64_t m,
                      hone_refined *columns);

/* x = x + d, where d may be rounded to few bits first; d becomes the change of
   x. */
void hone_steps_correct(const hone_refinement *ctx, hone_refined *column,
                        hone_entry *d);

/* Measures the columns listed that are served by steps; the others, and those
   whose residual is not accurate enough, are listed in 'rest'. Returns how many
   these are. A column whose first x, which was rounded to few bits, cannot be
   served loses that x, and is not listed. */
int64_t hone_steps_measure(hone_refinement *ctx, int64_t m,
                           hone_refined *const *list, hone_refined **rest);

/* v = r - op(A) t in double, t being in the column's spare vector and v in
   ctx->v, for the columns listed. rounding bounds the 2-norm of its error. */
void hone_steps_subtract_spare(hone_refinement *ctx, int64_t m,
                               hone_refined *const *list);
long double hone_steps_rounding(const hone_refinement *ctx,
                                const hone_refined *column);

#endif
