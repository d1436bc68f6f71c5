/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes of what the rounding errors of computed residuals do to x, in
   double precision. Next to read: bounds.c, which uses them where a bound by
   norms would count. */
#include "refine/noise.h"

#include "base/vectors.h"
#include "refine/bounds.h"
#include "refine/evaluate.h"

#include <float.h>
#include <math.h>

/* Statements made by a sample: of the norm, and of the rows. */
enum { STATEMENTS = 2 };
/* Squares that underflow are negligible in a sum of squares from here on. */
static const double SQUARES_LEAST = 1e-260, SQUARES_MOST = 1e300;
/* An entry below this part of the largest one is lost in the arithmetic of
   factors in double, and of factors in single precision. */
static const long double LOST_DOUBLE = 0x1p-960L, LOST_SINGLE = 0x1p-96L;
/* A correction that the factors alone made so many times larger is rounded more
   than the random probes were. */
static const long double MAGNIFIED = 4.0L;
/* Rows are summed in pairs of long doubles where that leaves at most this part
   of the noise; the caller may stop the call after so many entries. */
static const double WORTH_ROWS = 0.25;
enum { ROWS_ENTRIES = 1 << 22 };
/* The relative rounding error of a solve in double precision, for each unit of
   the condition number of S. */
static const long double ROUNDING = 4.0L * HONE_ROUNDINGS * 0x1p-53L;

long double hone_noise_scaled_norm(int64_t n, const hone_entry *d, const int *e,
                                   const double *weights) {
  long double sum = 0.0L;
  if (e == NULL && weights == NULL) {
    const double plain = hone_sum_of_squares(n, d);
    if (plain >= SQUARES_LEAST && plain <= SQUARES_MOST)
      return sqrtl((long double)plain * (1.0L + (long double)n * 0x1p-51L));
  }
  for (int64_t i = 0; i < n; i++) {
    long double v = hone_absl((hone_wide)d[i]);
    if (e)
      v = hone_shiftl(v, -e[i]);
    if (weights)
      v /= (long double)weights[i];
    sum += v * v;
  }
  return sqrtl(sum);
}

long double hone_noise_uniform_norm(int64_t n, const int *e,
                                    const double *weights) {
  long double most = 1.0L;
  int narrowest = 0;
  if (weights == NULL) {
    for (int64_t i = 0; e && i < n; i++)
      narrowest = i == 0 ? e[i] : HONE_MIN(narrowest, e[i]);
    most = hone_shiftl(1.0L, -narrowest);
  }
  for (int64_t i = 0; weights && i < n; i++) {
    const long double v =
        hone_shiftl(1.0L, e ? -e[i] : 0) / (long double)weights[i];
    most = i > 0 && v <= most ? most : v;
  }
  return sqrtl((long double)n) * most;
}

/* Entries of a solution in scaled variables that lie below the range of the
   factors' arithmetic, relative to the largest, have vanished. */
long double hone_noise_lost_part(const hone_refinement *ctx,
                                 const hone_refined *c) {
  return (long double)fmax(c->solution_size, DBL_TRUE_MIN) *
         (ctx->f.engine->precision == 64 ? LOST_DOUBLE : LOST_SINGLE);
}

long double hone_noise_of_solve(const hone_refinement *ctx, const hone_entry *d,
                                long double largest, long double magnified,
                                const hone_contraction *contraction) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  const long double inverse = /* ||I - E||: inv(N) = (I - E) inv(S) */
      1.0L + (long double)contraction->before + (long double)contraction->bound;
  const long double of_factors = ROUNDING * inverse * magnified;
  const bool probed = contraction->rounding > 0.0;
  long double most = 0.0L;
  if (probed && e == NULL)
    most = (long double)hone_max_abs(n, d);
  for (int64_t i = 0; probed && e != NULL && i < n; i++)
    most = fmaxl(most, hone_shiftl(hone_absl((hone_wide)d[i]), -e[i]));
  return probed && !(largest <= MAGNIFIED * most)
             ? of_factors + (long double)contraction->rounding * largest
             : of_factors;
}

void hone_noise_of_zeros(const hone_refinement *ctx, hone_refined *c) {
  const hone_matrix *a = ctx->f.a;
  bool any = false;
  for (int64_t i = 0; i < a->n; i++) {
    if (!(c->den[i] > 0.0) || c->r[i] != 0.0)
      continue;
    hone_wide_row row = {
        .a = a, .trans = ctx->trans, .i = i, .x = c->x, .b = c->b[i]};
    a->op->wide_row(&row);
    if (row.zero) {
      c->den[i] = 0.0;
      any = true;
    }
  }
  if (any)
    hone_refined_norms(ctx, c);
}

/* Rows of a residual that several threads compute. */
typedef struct wide_rows {
  const hone_refinement *ctx;
  hone_refined *column;
  int64_t first;
} wide_rows;

static void measure_row(void *rows, int64_t k) {
  const wide_rows *w = rows;
  const hone_refinement *ctx = w->ctx;
  hone_refined *c = w->column;
  const int64_t i = w->first + k;
  hone_wide_row row = {.a = ctx->f.a,
                       .trans = ctx->trans,
                       .i = i,
                       .x = c->x,
                       .b = c->b[i],
                       .shift = c->shift};
  ctx->f.a->op->wide_row(&row);
  c->r[i] = row.r;
  c->den[i] = row.zero ? 0.0 : row.den;
}

/* gamma of a residual in pairs of long doubles of unit roundoff u. Each real
   product is added as four, each of which adds at most u den to the sum of
   rounding errors, which is rounded by u of itself: (m^2 / 2 + 2 m + 2) u^2 in
   all for m of them, in each part of a complex entry. (That the sum of both is
   rounded to long double before it is rounded to double is covered by
   HONE_NOISE_FACTOR.) */
static double wide_gamma(int64_t n) {
  const double u = (double)(0.5L * LDBL_EPSILON);
  const double m = 4.0 * HONE_PARTS * (double)n;
  return HONE_PARTS * (0.5 * m * m + 2.0 * m + 2.0) * u * u;
}

bool hone_noise_rows_serve(const hone_refinement *ctx, const hone_refined *c) {
  if (LDBL_MANT_DIG == 106) /* a pair of doubles, of which no bound is known */
    return false;
  return c->extra_precise && !c->wide && !c->by_steps &&
         wide_gamma(ctx->f.a->n) <= WORTH_ROWS * c->gamma;
}

bool hone_noise_by_rows(const hone_refinement *ctx, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  wide_rows rows = {.ctx = ctx, .column = c};
  /* Rows of an A that did not come are NaN. */
  (void)hone_matrix_await(ctx->f.a, ctx->f.pool);
  while (rows.first < n) {
    const int64_t count = HONE_MIN(n - rows.first, 1 + ROWS_ENTRIES / n);
    if (hone_watch_stop(ctx->watch, "refine", 0.0, 0, HONE_NAN))
      return false;
    hone_pool_run(ctx->f.pool, count, measure_row, &rows);
    rows.first += count;
  }
  c->gamma = wide_gamma(n);
  c->den_lost = false;
  c->wide = true;
  hone_refined_norms(ctx, c);
  return true;
}

long double hone_noise_of_rest(const hone_refinement *ctx,
                               const hone_refined *c, hone_entry *v,
                               double *den) {
  hone_refined rest = *c;
  if (!c->wide)
    return 0.0L;
  rest.r = v;
  rest.den = den;
  rest.gamma = (double)hone_pair_terms(ctx->f.a->n) * HONE_EPS * HONE_EPS;
  hone_refined_norms(ctx, &rest);
  return c->spread * rest.errors.noise;
}

/* At least sqrt(sum_k |z_k|_i^2) over the probes, whose entries were rounded to
   multiples of DBL_TRUE_MIN. */
static long double probed_row(int64_t n, int64_t i, const hone_entry *z) {
  long double sum = 0.0L;
  for (int k = 0; k < HONE_PROBES; k++) {
    const long double v = hone_absl((hone_wide)z[k * n + i]);
    sum += v * v;
  }
  return sqrtl(sum) +
         sqrtl((long double)HONE_PROBES) * (long double)DBL_TRUE_MIN;
}

/* Turns z = 2^k inv(A) D h, as far as the factors give it, into bounds on the
   effect of noise, which is D times any vector with entries of at most 1. With
   B = inv(S) R D, B h = z + E B h; so probes bound row i of B by z_i and rho_i
   ||B||. The corrections make (I - E^k) B of the noise, and ||E^k|| <= eta. The
   bounds take the place of den; *norm is lowered to theirs. */
static void take_noise(const hone_refinement *ctx,
                       const hone_contraction *contraction,
                       const double *weights, const hone_entry *z, int k,
                       hone_refined *c, long double *norm) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  const long double any_direction =
      (1.0L + (long double)contraction->bound) * sqrtl((long double)n);
  const long double row_factor = (long double)hone_probe_factor((double)n);
  long double all = 0.0L, squares = 0.0L;
  for (int p = 0; p < HONE_PROBES; p++) {
    const long double size =
        hone_noise_scaled_norm(n, z + p * n, e, weights) +
        (long double)DBL_TRUE_MIN * hone_noise_uniform_norm(n, e, weights);
    all += size * size;
  }
  all = (long double)hone_probe_factor(1.0) * sqrtl(all) /
        (1.0L - (long double)contraction->bound);
  for (int64_t i = 0; i < n; i++) {
    long double known = row_factor * probed_row(n, i, z);
    if (e)
      known = hone_shiftl(known, -e[i]);
    const long double weight = weights ? (long double)weights[i] : 1.0L;
    long double effect =
        any_direction *
        (known + weight * (long double)contraction->rows[i] * all);
    squares += effect / weight * (effect / weight);
    effect =
        hone_shiftl(effect, (e ? e[i] : 0) - k) + (long double)DBL_TRUE_MIN;
    c->den[i] = effect <= (long double)DBL_MAX ? (double)effect : HONE_INF;
  }
  *norm = HONE_MIN(*norm, hone_shiftl(sqrtl(squares), -k));
}

/* Bounds the effect of noise on each component of the column by random probes,
   where the first power of E contracts. */
int hone_noise_sample(hone_refinement *ctx, const hone_contraction *contraction,
                      const double *weights, hone_refined *c,
                      long double *norm) {
  const int64_t n = ctx->f.a->n;
  hone_entry *z = ctx->scratch;
  /* 2^k makes x about 1: the effect of noise on it does not underflow. */
  const int k = -ilogbl(c->errors.size);
  int shift[HONE_PROBES];
  for (int p = 0; p < HONE_PROBES; p++) {
    shift[p] = c->shift - k;
    hone_probe_draw(n, ctx->seed, z + p * n);
    for (int64_t i = 0; i < n; i++)
      z[p * n + i] *= hone_refined_residual_noise(c, n, i);
  }
  int st = hone_apply_inverse(&ctx->f, false, ctx->trans, HONE_PROBES, z, n,
                              shift, NULL);
  if (st == HONE_OK) {
    take_noise(ctx, contraction, weights, z, k, c, norm);
    ctx->statements += STATEMENTS;
    c->den_lost = true;
  }
  return st;
}

/* Columns of which products are made. */
typedef struct product_columns {
  const hone_refinement *ctx;
  const hone_refined *const *list;
  long double terms; /* of hone_residual_block, times their relative error */
  bool rough;
  long double most, *effect;
  bool little[HONE_SOLVE_COLUMNS];
} product_columns;

static void bound_product(void *ctx, int64_t k) {
  product_columns *p = ctx;
  const hone_refined *c = p->list[k];
  const int64_t n = p->ctx->f.a->n;
  const long double t = (long double)hone_max_abs(n, c->spare);
  long double size =
      p->ctx->norm_2 * hone_noise_scaled_norm(n, c->spare, NULL, NULL);
  if (p->rough)
    size += hone_noise_scaled_norm(n, c->r, NULL, NULL);
  const long double spread = c->spread <= p->most ? c->spread : p->most;
  p->effect[k] = spread * p->terms * size;
  p->little[k] =
      c->shift == 0 && hone_in_safe_range(p->ctx, c->spare) &&
      p->effect[k] <= HONE_MAX(HONE_NOISE_LITTLE * t,
                               HONE_NOISE_SMALL * c->errors.size_scaled);
}

bool hone_noise_of_products(const hone_refinement *ctx, bool rough, int64_t m,
                            const hone_refined *const *list, long double most,
                            long double *effect) {
  const int64_t n = ctx->f.a->n;
  const long double eps = (long double)HONE_EPS;
  product_columns p = {.ctx = ctx,
                       .list = list,
                       .rough = rough,
                       .terms =
                           rough ? (long double)hone_block_terms(n) * eps * eps
                                 : (long double)hone_plain_terms(n) * eps,
                       .most = most,
                       .effect = effect};
  bool all = !ctx->f.scaling->used;
  hone_for_columns(ctx->f.pool, n, m, bound_product, &p);
  for (int64_t k = 0; k < m; k++)
    all = all && p.little[k];
  return all;
}
