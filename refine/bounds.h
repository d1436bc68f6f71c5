/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds of accepted solutions, for x as a whole and for each of its
   components, in double precision (norms beyond its range in long double). Next
   to read: bounds.c, whose head derives the bounds. */
#ifndef HONE_BOUNDS_H
#define HONE_BOUNDS_H

#include "refine/refine.h"

enum { HONE_BOUNDS_STEPS = 16 /* corrections kept apart from x */ };

/* One column while its error is bounded (head of bounds.c). */
struct hone_bounding {
  hone_refined *column;
  /* 2-norms of corrections, in scaled variables */
  long double norm[HONE_BOUNDS_STEPS];
  long double noise, products; /* bounds on the effects of noise, and of plain
                                  and rough residuals of x + t, likewise */
  bool sampled;          /* the column's den holds the effect of noise on each
                            component instead, in the caller's units */
  const double *weights; /* norms are of inv(W) times vectors; NULL: W = I */
  long double grain;     /* t is rounded to multiples of it, at most, beside its
                            relative rounding error; in the caller's units */
  long double last;      /* the bound before the present correction */
  const hone_entry *d;   /* the last correction */
  double largest;        /* of all entries of its parts, in scaled variables */
  long double rounding[HONE_BOUNDS_STEPS]; /* bounds of the solves, likewise */
  long double condition;                   /* of S, estimated */
};

/* Bounds the errors of accepted columns that have no bound yet, with one solve
   and, where the contraction of the factors is poor, a few corrections, which
   are kept apart from x. Needs r, den and errors of their x, and leaves the
   bound of each component in the column's 'bars'. If a solve fails, the columns
   stay without a bound. */
void hone_bounds_estimate(hone_refinement *ctx, hone_certificate *certificate,
                          int64_t m, hone_refined *columns);

/* A number at the lower end of the range loses at most this, with its bound:
   half of DBL_TRUE_MIN each, more if it is complex. */
#define HONE_BOUNDS_GRAIN (2.0L * 0x1p-1074L)

/* The largest factor of the scaling of x. */
long double hone_bounds_widest_unit(const hone_refinement *ctx);
/* Bounds ||inv(S)||_2, and so the effect of noise in scaled variables. */
double hone_bounds_inverse(const hone_certificate *certificate,
                           const hone_refined *column);
long double hone_bounds_noise_effect(const hone_certificate *certificate,
                                     const hone_refined *column);
/* May that effect be larger than the rounding of x? */
bool hone_bounds_noise_counts(const hone_certificate *certificate,
                              const hone_refined *column);
/* Uses the residual r that the device computed and that is in ctx->v, because
   to solve for that takes no time. It is as good as the host's if, by the
   host's own bound, no entry is further away than the rounding error of either
   computation. Then it becomes r, with twice the noise, provided that this
   noise is negligible. */
bool hone_bounds_use_device(const hone_refinement *ctx,
                            const hone_certificate *certificate,
                            hone_refined *column);

/* v = r - 2^shift A t for the columns listed, of which t is the spare vector,
   in ctx->v; in double-double, unless a coarser one suffices (bounds_rest.c). A
   shift downwards may round t. The den of the pass is lost. */
void hone_bounds_measure_rest(hone_refinement *ctx,
                              hone_certificate *certificate, int64_t m,
                              hone_bounding *list);

/* Measures the accepted columns that were not measured in double-double. */
void hone_bounds_measure(hone_refinement *ctx, int64_t m,
                         hone_refined *columns);
/* Measures the columns again whose residual was not accurate enough for a
   bound: in double-double if it followed steps of x, else in pairs of long
   doubles. Returns true if there are any, and the caller does not stop the
   call meanwhile. */
bool hone_bounds_measure_noisy(hone_refinement *ctx, int64_t m,
                               hone_refined *const *list);

/* Bounds ||inv(S)||_2 and ||inv(M)||_2 by more random vectors, which cost
   little beside many columns: sets certificate->inverse_many and factors_many.
   They are of ctx->many_seed, whatever was solved for before. */
void hone_bounds_for_many(hone_refinement *ctx, hone_certificate *certificate);
/* Decides how accurately the residuals r - op(A) t of m columns are computed, t
   being their spare vectors: sets what 'block' allows. Returns true if their
   errors are to be counted: effect[c] is what they do to column c. */
bool hone_bounds_allow(hone_refinement *ctx, hone_certificate *certificate,
                       int64_t m, const hone_refined *const *columns,
                       hone_residual_block *block, long double *effect);

/* Bound on max |x - x_true| / max |x| for the column's x and its errors;
   scaled: in scaled variables. Inf where nothing is certain. */
double hone_bounds_forward(const hone_certificate *certificate,
                           const hone_refined *column, bool scaled);

/* Bounds |x_i - x_true,i| for every component of a column that has no bars,
   by the norms alone: fills bars, n entries. exponents: of the scaling of x;
   NULL: there is none. */
void hone_bounds_bars_by_norms(int64_t n, const int *exponents,
                               const hone_certificate *certificate,
                               const hone_refined *column, double *bars);

/* Is at least one digit certain, both in the caller's units and in scaled
   variables? */
bool hone_bounds_certify_a_digit(const hone_certificate *certificate,
                                 const hone_refined *column);

/* The number of decimal digits that such a bound certifies: 0 to 16. */
int32_t hone_bounds_digits(double bound);

#endif
