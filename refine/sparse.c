/* SPDX-License-Identifier: BSD-3-Clause */
/* The backward error of columns with entries near zero, in double precision.
   Where a row consists of such entries alone, no x of rounded numbers may have
   a small componentwise error: with a sparse A and a unit right-hand side, a
   computed 1e-17 in the place of 0 makes it 1. Such rows are measured as in
   Arioli, Demmel & Duff (1989):

     x_j vanishes    if |x_j| <= tau max |x| and |y_j| <= tau max |y|,
                     tau = 1000 n eps, y = inv(C) x
     row i is sparse if products with entries of x that do not vanish, and b_i,
                     are at most 1/100 of den_i = (|A| |x| + |b|)_i
     omega           is the largest |r|_i / den_i; in sparse rows it is
                     |r|_i / (den_i + others_i),
     others_i        = min(max_j |a_ij| max |x|, max_j |s_ij| max |y| / R_i)

   In other words, x solves a system exactly whose A differs from the caller's
   by omega |A|, and whose b differs in sparse rows by omega others_i and in all
   others by omega |b|.

   An entry has to vanish in the caller's units and in scaled variables, since
   either may make it small by units alone. A row with one huge entry, for
   example 1e300 x_1 + x_2 = 1, is not sparse, however small x_1 is: the row is
   what determines x_1. Where the exponents of the scaling had to be cut off, it
   does not remove units, and the measure is not used. Next to read: climb.c. */
#include "refine/sparse.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double VANISHING_PART = 1000.0, OTHER_PRODUCTS = 0.01;
/* An x whose componentwise error is large only because of entries near zero has
   a normwise error of at most this. */
static const double SPARSE_NORMWISE = 16.0 * HONE_EPS;
/* Corrections are made as long as each leaves at most this part of omega. */
static const double SLOW_RATE = 0.5;
/* Rows above this part of the limit, if they are at most so large a part of all
   rows, are corrected alone. */
static const double NEAR_LIMIT = 0.5, FEW_ROWS = 0.75;
/* So many columns are measured in one pass. Few rows may be corrected so often
   though omega does not fall: the first may have to be others. */
enum { GROUP = 8, TRIALS = 3 };

/* The largest entries of the rows of op(A) and of op(S): n each. */
typedef struct maxima {
  const double *of_a, *of_s;
} maxima;

/* ---- The measure --------------------------------------------------------- */

/* Finds the maxima. Those of A take a pass if A was scaled; they are kept at
   the beginning of the scratch. */
static maxima find_maxima(hone_refinement *ctx) {
  const hone_matrix *a = ctx->f.a;
  const hone_inspection *of_s = ctx->inspection;
  hone_inspection of_a = *of_s;
  if (ctx->f.scaling->used) {
    of_a.row_max = (double *)ctx->scratch;
    of_a.col_max = of_a.row_max + a->n;
    a->op->inspect(a, ctx->f.pool, NULL, of_a.col_max + a->n, &of_a);
    ctx->passes++;
  }
  return ctx->trans ? (maxima){of_a.col_max, of_s->col_max}
                    : (maxima){of_a.row_max, of_s->row_max};
}

/* to = 2^shift x without the entries that vanish. */
static void take_others(const hone_refinement *ctx, const hone_refined *c,
                        hone_entry *to) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  const long double tau = (long double)(VANISHING_PART * (double)n * HONE_EPS);
  const long double most = tau * c->errors.size;
  const long double most_scaled = tau * c->errors.size_scaled;
  for (int64_t j = 0; j < n; j++) {
    const long double x = hone_absl((hone_wide)c->x[j]);
    const bool vanishes = x <= most && ldexpl(x, e ? -e[j] : 0) <= most_scaled;
    to[j] = vanishes ? 0.0 : hone_shift_entry(c->x[j], c->shift);
  }
}

/* Computes |op(A)| |x| without the entries of x that vanish, times 2^shift, for
   m <= GROUP columns. The results are in the scratch, n for each column. */
static const double *measure_others(hone_refinement *ctx, int64_t m,
                                    hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  hone_entry *r = ctx->scratch + 2 * n; /* behind the maxima */
  double *den = (double *)(r + GROUP * n);
  const hone_entry *from[GROUP], *b[GROUP];
  hone_entry *to[GROUP];
  double *others[GROUP];
  for (int64_t c = 0; c < m; c++) {
    take_others(ctx, list[c], ctx->v + c * n);
    memset(r + c * n, 0, (size_t)n * sizeof *r);
    from[c] = ctx->v + c * n;
    b[c] = to[c] = r + c * n;
    others[c] = den + c * n;
  }
  const hone_residual_job pass = {.a = ctx->f.a,
                                  .trans = ctx->trans,
                                  .k = m,
                                  .x = from,
                                  .b = b,
                                  .r = to,
                                  .den = others};
  ctx->f.a->op->residual(&pass, ctx->f.pool);
  ctx->passes++;
  return den;
}

/* Returns |r|_i / (den_i + others_i). The computed r may be wrong by the
   smallest number of double. */
static double sparse_quotient(const hone_refinement *ctx, maxima max, int64_t i,
                              const hone_refined *c) {
  const hone_scaling *s = ctx->f.scaling;
  const int *row = s->used ? (ctx->trans ? s->col_exp : s->row_exp) : NULL;
  const long double given = (long double)max.of_a[i] * c->errors.size;
  const long double scaled = ldexpl(
      (long double)max.of_s[i] * c->errors.size_scaled, row ? -row[i] : 0);
  const long double others = ldexpl(given <= scaled ? given : scaled, c->shift);
  const long double r =
      hone_absl((hone_wide)c->r[i]) + (long double)DBL_TRUE_MIN;
  return (double)(r / ((long double)c->den[i] + others));
}

/* Returns omega by the measure above, or the plain one where that meets the
   limit: then c->sparse is false. Sets c->plain. products: n, as measured by
   measure_others. */
static double sparse_omega(const hone_refinement *ctx, maxima max,
                           const double *products, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  /* Where the shift brings products below the range of double, they vanish from
     the sum. */
  const double underflow = c->shift < 0 ? (double)(n + 1) * DBL_TRUE_MIN : 0.0;
  double omega = 0.0, plain = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double b = hone_shift(hone_abs(c->b[i]), c->shift);
    const double by_itself = hone_refined_quotient(ctx, i, c);
    double q = by_itself;
    if (products[i] + b + underflow <= OTHER_PRODUCTS * c->den[i])
      q = fmin(q, sparse_quotient(ctx, max, i, c));
    omega = hone_larger_or_nan(omega, q);
    plain = hone_larger_or_nan(plain, by_itself);
  }
  c->plain = plain;
  c->sparse = !(plain <= ctx->limit);
  return c->sparse ? omega : plain;
}

/* ---- Columns ------------------------------------------------------------- */

/* Takes the iterate of the smallest normwise error, the last or the best one,
   of a column that was given up on. Returns false if it is not good. */
static bool take_normwise_best(hone_refined *column) {
  if (column->state != HONE_COLUMN_LEFT || !column->only_slow)
    return false;
  if (!(column->errors.normwise <= column->best_errors.normwise))
    (void)hone_refined_take_best(column);
  return column->errors.normwise <= SPARSE_NORMWISE;
}

static bool row_is_above(const hone_refinement *ctx, int64_t i,
                         hone_refined *c) {
  return !(hone_refined_quotient(ctx, i, c) <= NEAR_LIMIT * ctx->limit);
}

static bool few_rows_are_above(const hone_refinement *ctx, hone_refined *c) {
  int64_t above = 0;
  for (int64_t i = 0; i < ctx->f.a->n; i++)
    above += row_is_above(ctx, i, c);
  return (double)above <= FEW_ROWS * (double)ctx->f.a->n;
}

/* Accepts the column if it meets the limit. Returns true if a correction may
   help it. last: the omega before, or, if no correction was made here yet, that
   without this measure. tries: one of few rows is made in any case. */
static bool may_improve(const hone_refinement *ctx, bool tries, double omega,
                        double last, hone_refined *c) {
  if (omega <= ctx->limit) {
    c->errors.componentwise = c->by_rows = omega;
    c->best = c->x;
    c->best_errors = c->errors;
    c->state = HONE_COLUMN_ACCEPTED;
    return false;
  }
  c->sparse = false;
  return c->rung_corrections < ctx->max_corrections &&
         (omega <= SLOW_RATE * last || (tries && few_rows_are_above(ctx, c)));
}

/* Accepts the columns listed that may be. Those that a correction may help
   become the list; returns how many they are. */
static int64_t accept(hone_refinement *ctx, bool tries, maxima max, int64_t m,
                      hone_refined **list, double *last) {
  int64_t open = 0;
  for (int64_t at = 0; at < m; at += GROUP) {
    const int64_t count = HONE_MIN(m - at, (int64_t)GROUP);
    const double *products = measure_others(ctx, count, list + at);
    for (int64_t i = at; i < at + count; i++) {
      const double omega =
          sparse_omega(ctx, max, products + (i - at) * ctx->f.a->n, list[i]);
      if (may_improve(ctx, tries, omega, last[i], list[i])) {
        last[open] = omega;
        list[open++] = list[i];
      }
    }
  }
  return open;
}

/* v = r, but for the rows that need no correction where few do. Rounding x
   leaves eps |A| |x| in those, which would be solved for with an error of eps
   of that size: more than an entry near zero may have. */
static void take_rows(const hone_refinement *ctx, hone_refined *c,
                      hone_entry *v) {
  const bool few = few_rows_are_above(ctx, c);
  for (int64_t i = 0; i < ctx->f.a->n; i++)
    v[i] = few && !row_is_above(ctx, i, c) ? 0.0 : c->r[i];
}

/* x = x + inv(M) v for the columns listed; their best iterates are kept. */
static int correct(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  int shift[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    shift[c] = list[c]->shift;
    take_rows(ctx, list[c], ctx->v + c * n);
  }
  int st =
      hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift, NULL);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    hone_refined_correct(ctx, list[c], ctx->v + c * n);
  return st;
}

/* Measures the columns listed accurately. Drops those that the measure is not
   for. */
static int64_t measure(hone_refinement *ctx, int64_t m, hone_refined **list,
                       double *last) {
  int64_t count = 0;
  hone_refined_measure(ctx, true, false, m, list);
  for (int64_t c = 0; c < m; c++)
    if (!list[c]->digits_lost && !list[c]->x_is_zero) {
      last[count] = last[c];
      list[count++] = list[c];
    }
  return count;
}

/* Are all exponents of the scaling smaller than the largest allowed? Those that
   are not may have been cut off. */
static bool scaling_is_whole(const hone_scaling *s, int64_t n) {
  bool whole = true;
  for (int64_t i = 0; s->used && i < n; i++)
    whole = whole && abs(s->row_exp[i]) < HONE_MAX_EXP &&
            abs(s->col_exp[i]) < HONE_MAX_EXP;
  return whole;
}

/* May the measure be used at all? */
static bool is_used(const hone_refinement *ctx) {
  return ctx->inspection != NULL &&
         ctx->criterion == HONE_CRITERION_COMPONENTWISE &&
         scaling_is_whole(ctx->f.scaling, ctx->f.a->n);
}

bool hone_sparse_meets_limit(hone_refinement *ctx, hone_refined *column) {
  double last = 0.0; /* no correction follows */
  const double plain = column->plain, by_rows = column->by_rows;
  const bool sparse = column->sparse; /* was the best x so far accepted so? */
  if (!is_used(ctx) || column->digits_lost || column->x_is_zero ||
      !(column->errors.normwise <= SPARSE_NORMWISE))
    return false;
  (void)accept(ctx, false, find_maxima(ctx), 1, &column, &last);
  if (column->best == column->x)
    return true;
  column->plain = plain;
  column->by_rows = by_rows;
  column->sparse = sparse;
  return false;
}

int hone_sparse_refine(hone_refinement *ctx, int64_t m, hone_refined *columns) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  double last[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++)
    if (take_normwise_best(&columns[c])) {
      /* corrections follow only if the measure is much smaller than this */
      last[count] = columns[c].errors.componentwise;
      list[count++] = &columns[c];
    }
  if (count == 0 || !is_used(ctx))
    return HONE_OK;
  const maxima max = find_maxima(ctx);
  for (int step = 0;; step++) {
    count = measure(ctx, count, list, last);
    count = accept(ctx, step < TRIALS, max, count, list, last);
    if (count == 0)
      return HONE_OK;
    if (hone_watch_stop(ctx->watch, "refine", 0.0, step, HONE_NAN))
      return HONE_INTERRUPTED;
    int st = correct(ctx, count, list);
    if (st != HONE_OK)
      return st;
  }
}
