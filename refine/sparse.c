/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns whose componentwise backward error is large only because of entries
   near zero. Where entries of x are zero, or nearly so, and a row consists of
   such entries alone, no x of rounded numbers may have a small one: with a
   sparse A and a unit right-hand side, a computed 1e-17 in the place of 0 makes
   it 1. Such a row is measured as in Arioli, Demmel & Duff (1989). Next to
   read: climb.c. */
#include "refine/sparse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A row with a denominator below this many n eps consists of entries that
   vanish. */
static const long double SPARSE_PART = 1000.0L;
/* An x whose componentwise backward error is large only because of entries near
   zero has a normwise one of at most this. */
static const double SPARSE_NORMWISE = 16.0 * HONE_EPS;
/* Corrections are made as long as each leaves at most this part of the error.
 */
static const double SLOW_RATE = 0.5;

/* A row i whose denominator den_i = (|A| |x| + |b|)_i is below

     1000 n eps (others_i + |b_i|),
     others_i = min(max_j |a_ij| max |x|, max_j |s_ij| max |y| / R_i),

   y = inv(C) x, consists of nearly vanishing products alone: the rounding of
   other entries of x is larger than what could be asked of it. Its residual is
   compared with den_i + others_i instead. In other words, x solves a system
   exactly whose A differs from the caller's by omega |A|, and whose b differs
   in these rows by omega others_i and in all others by omega |b|.

   In the caller's units alone the unit of the largest x would decide, in scaled
   variables alone the powers of two of the scaling. */
static double sparse_omega(const hone_refinement *ctx,
                           const hone_sparse_rows *rows,
                           const hone_refined *c) {
  const hone_scaling *s = ctx->f.scaling;
  const int *row = s->used ? (ctx->trans ? s->col_exp : s->row_exp) : NULL;
  const long double size = ldexpl(c->errors.size, c->shift);
  const long double scaled_size = ldexpl(c->errors.size_scaled, c->shift);
  const long double part =
      SPARSE_PART * (long double)ctx->f.a->n * (long double)HONE_EPS;
  double omega = 0.0;
  if (c->digits_lost || c->x_is_zero)
    return c->errors.componentwise;
  for (int64_t i = 0; i < ctx->f.a->n; i++) {
    const long double r = hone_absl((hone_wide)c->r[i]);
    const long double b = ldexpl(hone_absl((hone_wide)c->b[i]), c->shift);
    const long double others =
        fminl((long double)rows->max[i] * size,
              ldexpl((long double)rows->scaled_max[i] * scaled_size,
                     row ? -row[i] : 0));
    long double den = (long double)c->den[i];
    if (!(den > part * (others + b)))
      den += others;
    const double q = r > 0.0L ? (double)(r / den) : (double)r;
    omega = q <= omega ? omega : q; /* takes NaN */
  }
  return omega;
}

/* Takes the iterate of the smallest normwise error, the last or the best one,
   of a column that was given up on. Returns false if it is not good. */
static bool take_normwise_best(hone_refined *column) {
  if (column->state != HONE_COLUMN_LEFT || !column->only_slow)
    return false;
  if (!(column->errors.normwise <= column->best_errors.normwise))
    (void)hone_refined_take_best(column);
  return column->errors.normwise <= SPARSE_NORMWISE;
}

int64_t hone_sparse_list(int64_t m, hone_refined *columns,
                         hone_refined **list) {
  int64_t count = 0;
  for (int64_t i = 0; i < m; i++)
    if (take_normwise_best(&columns[i]))
      list[count++] = &columns[i];
  return count;
}

/* Accepts the columns listed that may be. Those that further corrections may
   help become the list; returns how many they are. */
static int64_t accept(const hone_refinement *ctx, const hone_sparse_rows *rows,
                      int64_t m, hone_refined **list, double *last) {
  int64_t open = 0;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = list[i];
    const double omega = sparse_omega(ctx, rows, c);
    if (omega <= ctx->limit) {
      c->errors.componentwise = omega;
      c->best = c->x;
      c->best_errors = c->errors;
      c->state = HONE_COLUMN_ACCEPTED;
    } else if (omega <= SLOW_RATE * last[i] &&
               c->rung_corrections < ctx->max_corrections) {
      last[open] = omega;
      list[open++] = c;
    }
  }
  return open;
}

/* x = x + inv(M) r for the columns listed; their best iterates are kept. */
static int correct(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  int shift[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    shift[c] = list[c]->shift;
    memcpy(ctx->v + c * n, list[c]->r, (size_t)n * sizeof *ctx->v);
  }
  int st =
      hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift, NULL);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    hone_refined_correct(ctx, list[c], ctx->v + c * n);
  return st;
}

int hone_sparse_refine(hone_refinement *ctx, const hone_sparse_rows *rows,
                       int64_t m, hone_refined **list) {
  double last[HONE_SOLVE_COLUMNS];
  hone_refined_measure(ctx, true, false, m, list);
  for (int64_t c = 0; c < m; c++) /* go on only where a row is sparse */
    last[c] = list[c]->errors.componentwise;
  for (int step = 0;; step++) {
    m = accept(ctx, rows, m, list, last);
    if (m == 0)
      return HONE_OK;
    if (hone_watch_stop(ctx->watch, "refine", 0.0, step, HONE_NAN))
      return HONE_INTERRUPTED;
    int st = correct(ctx, m, list);
    if (st != HONE_OK)
      return st;
    hone_refined_measure(ctx, true, false, m, list);
  }
}
