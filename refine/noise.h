/* SPDX-License-Identifier: BSD-3-Clause */
/* The effect on x of the rounding errors of computed residuals, in double
   precision (norms in long double). Next to read: noise.c. */
#ifndef HONE_NOISE_H
#define HONE_NOISE_H

#include "refine/refine.h"

/* The error of r is the same in every correction, and k of them make (I - E^k)
   inv(S) of it: at most 1.5 times its effect. Rounding errors of the residuals
   of x + t are far smaller. */
#define HONE_NOISE_FACTOR 2.0L
/* Noise below the first part of the error that is known, or the second of x, is
   not worth reducing. */
#define HONE_NOISE_LITTLE 0.25L
#define HONE_NOISE_SMALL (0.25L * 0x1p-53L)

/* The 2-norm of inv(W) inv(C) d; e: the exponents of C, or NULL; weights: W, or
   NULL for W = I. */
long double hone_noise_scaled_norm(int64_t n, const hone_entry *d, const int *e,
                                   const double *weights);

/* Bounds that norm of all d with entries of at most 1. */
long double hone_noise_uniform_norm(int64_t n, const int *e,
                                    const double *weights);

/* Bounds what vanished from every entry of the correction that was solved for
   last, in scaled variables, because it was below the range of the factors'
   arithmetic. */
long double hone_noise_lost_part(const hone_refinement *ctx,
                                 const hone_refined *column);

/* Bounds the 2-norm of what rounding errors of the solve left in the correction
   d, in scaled variables: more where deflation removed the larger part of what
   the factors alone gave, which had entries up to 'largest'. magnified: the
   2-norm of d times the condition number of S. */
long double hone_noise_of_solve(const hone_refinement *ctx, const hone_entry *d,
                                long double largest, long double magnified,
                                const hone_contraction *contraction);

/* Makes the noise of rows 0, and lowers the norm of it, where the computed
   residual is 0 and turns out to be exact: sets their den to 0. It takes long
   where there are many such rows. */
void hone_noise_of_zeros(const hone_refinement *ctx, hone_refined *column);

/* Is it worth measuring the column's residual once more, row by row in pairs of
   long doubles? That leaves little noise but that of rounding r to double,
   which extra-precise mode may need, and takes far longer than a pass over A.
 */
bool hone_noise_rows_serve(const hone_refinement *ctx,
                           const hone_refined *column);
/* Does so. Returns false where the caller stops the call meanwhile. */
bool hone_noise_by_rows(const hone_refinement *ctx, hone_refined *column);

/* Bounds the effect on x of the rounding errors of v = r - op(A) t in
   double-double where they count beside the noise of r, as it is so little: 0
   for all other columns. den is |op(A)| |t| + |r|. */
long double hone_noise_of_rest(const hone_refinement *ctx,
                               const hone_refined *column, hone_entry *v,
                               double *den);

/* Bounds the effect on x of the rounding errors of residuals r - op(A) t that
   are plain, or rough (hone_residual_block), for the columns listed, of which t
   is the spare vector: the moduli of A have a 2-norm of at most the root of
   ||A||_1 ||A||_inf. The norm of such an error grows by the column's spread,
   and at most by 'most'. Returns true if all of them are little. */
bool hone_noise_of_products(const hone_refinement *ctx, bool rough, int64_t m,
                            const hone_refined *const *list, long double most,
                            long double *effect);

/* Bounds the effect of noise on each component of the column by random probes,
   where the first power of E contracts. The bounds take the place of the
   column's den, in the caller's units. *norm, a bound on their 2-norm in scaled
   variables times inv(W), is lowered to theirs. */
int hone_noise_sample(hone_refinement *ctx, const hone_contraction *contraction,
                      const double *weights, hone_refined *column,
                      long double *norm);

#endif
