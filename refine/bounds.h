/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward error bounds. */
#ifndef HONE_BOUNDS_H
#define HONE_BOUNDS_H

#include "refine/refine.h"

/* Estimates the errors of accepted columns that have no estimate yet, with
   one solve (rarely two) and no pass over A. Needs r, den and now of their x.
   A solve that fails leaves them without. */
void hone_bounds_estimate(hone_refinement *ctx,
                          const hone_certificate *certificate, int64_t m,
                          hone_refined *columns);

/* Does the certificate know how much of an error a correction leaves? */
bool hone_bounds_known(const hone_certificate *certificate);

/* The largest entry of d beside that of x, and the same in scaled variables. */
void hone_bounds_relate(const hone_refinement *ctx, const hone_refined *column,
                        const double *d, double *plain, double *scaled);

/* Takes d for the error of column's x. */
void hone_bounds_take(const hone_refinement *ctx, hone_refined *column,
                      const double *d);

/* Bound on max |x - x_true| / max |x| of column's now, scaled: in scaled
   variables. Inf where nothing is certain. */
double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *column, bool scaled);

/* Is a digit certain, in the caller's and in scaled variables? */
bool hone_bounds_certain(const hone_certificate *certificate,
                         const hone_refined *column);

/* Decimal digits that such a bound leaves certain: 0 to 16. */
int32_t hone_bounds_digits(double bound);

#endif
