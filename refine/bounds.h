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

/* Do the factors contract for sure, by as much as the certificate says? */
bool hone_bounds_known(const hone_certificate *certificate);

/* Is what the certificate measured of the contraction, though little, no more
   than luck? stale: the factors are those of another matrix. */
bool hone_bounds_doubtful(const hone_certificate *certificate, bool stale);

/* How large a vector d is beside x, in the infinity norm. */
typedef struct hone_beside {
  double plain;  /* as they are */
  double scaled; /* in scaled variables: inv(C) d beside inv(C) x */
  double spread; /* as they are, were all of inv(C) d as large as its largest
                    entry: what mixing its entries may come to */
} hone_beside;
void hone_bounds_relate(const hone_refinement *ctx, const hone_refined *column,
                        const hone_entry *d, hone_beside *out);

/* What a correction d of column, which does not end with it, may leave of the
   error; NaN: not known. */
void hone_bounds_rest(const hone_refinement *ctx, const hone_refined *column,
                      const hone_beside *d, double *plain, double *scaled);

/* Takes d + tail for the error of column's x, d being the correction of x +
   tail that would come next. tail NULL: there is none. d becomes the sum. */
void hone_bounds_take(const hone_refinement *ctx, hone_refined *column,
                      hone_entry *d, const hone_entry *tail);

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
