/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict by projection, in double precision. For weights v drawn at random
   after the matrix, which nobody but the host knows, the host has
   w = op(A)^T v and u = |op(A)|^T |v| of the caller's own A. A residual r and
   denominators den from a device satisfy

     S = v^T b - w^T x - v^T r = 0,    |v|^T den = u^T |x| + |v|^T |b|

   up to rounding. If row i of r is wrong by e_i, S contains v_i e_i. The
   weights are uniform on [-1, -1/2] and [1/2, 1], a distribution of density 1,
   so that, whatever the other errors are, |v^T e| <= 2 t has a probability of
   at most 4 t / |e_i|. With the resolution t of S, which its rounding errors do
   not exceed, an error of HONE_VERDICT_ERROR den_i is noticed but for a
   probability HONE_VERDICT_FAILURE if

     den_i >= 4 t / (HONE_VERDICT_FAILURE HONE_VERDICT_ERROR)

   and likewise an error of den_i / 8 with the resolution of the second sum,
   which is coarser. The few rows that are not resolved the host computes.

   t is not a bound but what rounding errors leave in practice: most of them are
   independent of each other, so that their sum grows as the 2-norm of the
   terms. Where t is too small, a pass over A decides, which costs time and
   nothing else. Next to read: base/projection.h. */
#include "refine/verdict.h"

#include <float.h>
#include <math.h>

/* Rows that the host computes rather than all of them. */
enum { FEW_ROWS = 16 };
/* Entries of the projection that are computed anew: columns of A are contiguous
   and rows are not. */
enum { SPOT_COLUMNS = 4, SPOT_ROWS = 2 };
/* Bounds on the difference of two projections of the same entries. */
static const double SPOT_NEAR = 0x1p-90, SPOT_DEN_NEAR = 0x1p-40;

/* The resolutions in units of the 2-norm of the terms. In 24,560 systems of ten
   families up to n = 2500 the sums were at most a half of them
   (docs/numerics.md). */
static double resolution(int64_t n) {
  return (128.0 + 2.0 * sqrt((double)n)) * HONE_EPS * HONE_EPS;
}
static double den_resolution(int64_t n) { return (double)(n + 16) * HONE_EPS; }

/* At least the 2-norm of numbers that are not negative. */
static double two_norm(double sum, double max) { return sqrt(sum) * sqrt(max); }

/* Adds up the magnitudes of v_i d_i; *max becomes the largest. A NaN shows in
   the sum. */
HONE_VECTOR static double weighed(int64_t n, const hone_entry *v,
                                  const double *d, double *max) {
  double sum = 0.0, most = 0.0;
#pragma omp simd reduction(+ : sum) reduction(max : most)
  for (int64_t i = 0; i < n; i++) {
    const double t = hone_abs(v[i]) * d[i];
    sum += t;
    most = t > most ? t : most;
  }
  *max = most;
  return sum;
}

hone_verdict_sums hone_verdict_sum(int64_t n, const hone_projection *p,
                                   const hone_refined *c) {
  hone_entry hi = 0.0, lo = 0.0;
  double weighed_b = 0.0, ignored = 0.0, den_max, of_x_max;
  hone_project_column(n, c->r, p->v, &hi, &lo, &ignored);
  hone_project_products(n, p->w, c->x, &hi, &lo, &ignored);
  hone_project_products(n, p->w_rest, c->x, &hi, &lo, &ignored);
  hi = -hi;
  lo = -lo;
  hone_project_column(n, c->b, p->v, &hi, &lo, &weighed_b);
  const double den = weighed(n, p->v, c->den, &den_max);
  const double of_x = weighed(n, c->x, p->u, &of_x_max);
  const double norm = two_norm(den, den_max) + two_norm(of_x, of_x_max);
  return (hone_verdict_sums){.residual = hone_abs(hi + lo),
                             .resolution = resolution(n) * norm,
                             .denominators = fabs(den - (of_x + weighed_b)),
                             .den_resolution = den_resolution(n) * norm};
}

bool hone_verdict_holds(const hone_verdict_sums *s) {
  return s->residual <= s->resolution && s->denominators <= s->den_resolution &&
         s->den_resolution <= DBL_MAX;
}

double hone_verdict_least(const hone_verdict_sums *s) {
  return HONE_MAX(4.0 * s->resolution /
                      (HONE_VERDICT_FAILURE * HONE_VERDICT_ERROR),
                  8.0 * s->den_resolution /
                      (HONE_VERDICT_DEN_FAILURE * HONE_VERDICT_DEN_ERROR));
}

/* Computes row i of r and den on the host. */
static void compute_row(const hone_refinement *ctx, int64_t i,
                        hone_refined *c) {
  hone_wide_row row = {
      .a = ctx->f.a, .trans = ctx->trans, .i = i, .x = c->x, .b = c->b[i]};
  ctx->f.a->op->wide_row(&row);
  c->r[i] = row.r;
  c->den[i] = row.zero ? 0.0 : row.den;
}

/* Computes the rows that the sums do not resolve. Returns false if there are
   too many. */
static bool compute_unresolved(const hone_refinement *ctx,
                               const hone_verdict_sums *s, hone_refined *c) {
  const double least = hone_verdict_least(s);
  int64_t rows[FEW_ROWS];
  int count = 0;
  for (int64_t i = 0; i < ctx->f.a->n; i++)
    if (!(c->den[i] >= least)) {
      if (count == FEW_ROWS)
        return false;
      rows[count++] = i;
    }
  for (int k = 0; k < count; k++)
    compute_row(ctx, rows[k], c);
  if (count > 0)
    hone_refined_errors(ctx, c);
  return true;
}

bool hone_verdict(const hone_refinement *ctx, const hone_projection *p,
                  hone_refined *c) {
  if (c->shift != 0 || c->digits_lost || c->x_is_zero || c->measure_tail)
    return false;
  const hone_verdict_sums s = hone_verdict_sum(ctx->f.a->n, p, c);
  return hone_verdict_holds(&s) && compute_unresolved(ctx, &s, c);
}

/* Is entry j of the projection that of the present A? */
static bool entry_holds(const hone_refinement *ctx, const hone_projection *p,
                        int64_t j) {
  hone_entry hi = 0.0, lo = 0.0;
  double sum = 0.0;
  ctx->f.a->op->project_entry(ctx->f.a, ctx->trans, j, p->v, &hi, &lo, &sum);
  const double off = hone_abs((hi - p->w[j]) + (lo - p->w_rest[j]));
  return off <= SPOT_NEAR * sum && fabs(sum - p->u[j]) <= SPOT_DEN_NEAR * sum;
}

const hone_projection *hone_verdict_projection(hone_refinement *ctx) {
  const hone_engine *engine = ctx->f.engine;
  const int64_t n = ctx->f.a->n;
  if (engine->projection == NULL || ctx->f.a->op->project_entry == NULL)
    return NULL;
  const hone_projection *p =
      engine->projection(ctx->f.self, ctx->f.a, ctx->trans);
  for (int k = 0; p != NULL && k < (ctx->trans ? SPOT_ROWS : SPOT_COLUMNS); k++)
    if (!entry_holds(ctx, p,
                     (int64_t)(hone_random_bits(ctx->seed) % (uint64_t)n)))
      p = NULL;
  return p;
}
