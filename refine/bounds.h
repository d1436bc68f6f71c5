/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward error bounds of accepted solutions, in double precision (norms beyond
   its range in long double). Next to read: bounds.c, whose head derives the
   bounds. */
#ifndef HONE_BOUNDS_H
#define HONE_BOUNDS_H

#include "refine/refine.h"

/* Estimates the errors of accepted columns that have no estimate yet, with one
   solve (rarely two or more) and without a pass over A. Needs r, den and errors
   of their x. If a solve fails, the columns stay without an estimate. */
void hone_bounds_estimate(hone_refinement *ctx,
                          const hone_certificate *certificate, int64_t m,
                          hone_refined *columns);

/* Do the factors surely contract, at least as much as the certificate says? */
bool hone_bounds_contraction_known(const hone_certificate *certificate);

/* Could the small contraction that the certificate measured be accidental?
   factors_stale: the factors are those of another matrix. */
bool hone_bounds_contraction_doubtful(const hone_certificate *certificate,
                                      bool factors_stale);

/* The size of a vector d relative to x, in the infinity norm. */
typedef struct hone_relative_size {
  double plain;  /* ||d|| / ||x|| */
  double scaled; /* in scaled variables: ||inv(C) d|| / ||inv(C) x|| */
  /* In the caller's units, as if every entry of inv(C) d were as large as its
     largest: the size that mixing them may lead to. */
  double spread;
} hone_relative_size;
void hone_bounds_relative_size(const hone_refinement *ctx,
                               const hone_refined *column, const hone_entry *d,
                               hone_relative_size *out);

/* Bounds what a correction d of the column leaves of the error, if further
   corrections follow; NaN: not known. plain: relative to x; scaled: in scaled
   variables. */
void hone_bounds_remainder(const hone_refinement *ctx,
                           const hone_refined *column,
                           const hone_relative_size *d, double *plain,
                           double *scaled);

/* Takes d + tail as the error of the column's x, where d is the next correction
   of x + tail; tail NULL: there is none. Overwrites d with the sum. */
void hone_bounds_set_error(const hone_refinement *ctx, hone_refined *column,
                           hone_entry *d, const hone_entry *tail);

/* Bound on max |x - x_true| / max |x| for the column's x and its errors;
   scaled: in scaled variables. Inf where nothing is certain. */
double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *column, bool scaled);

/* Is at least one digit certain, both in the caller's units and in scaled
   variables? */
bool hone_bounds_certify_a_digit(const hone_certificate *certificate,
                                 const hone_refined *column);

/* The number of decimal digits that such a bound certifies: 0 to 16. */
int32_t hone_bounds_digits(double bound);

#endif
