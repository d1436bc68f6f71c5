/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds of several columns on an engine that has A: what a correction leaves
   of their residuals may be computed by products in double where the rounding
   errors of these are little, and counts them as noise. */
#include "refine/bounds.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

/* Bounds use one of these for each column. */
static hone_bounding bounding[HONE_SOLVE_COLUMNS];

enum { N = 16, COLUMNS = 2, MANY = 32 };

/* A = I, and an engine whose solve multiplies by 3/4: E = I / 4. */
typedef struct products_case {
  hone_engine engine;
  hone_dense dense;
  hone_matrix a;
  hone_scaling scaling;
  hone_certificate certificate;
  hone_watch watch;
  uint64_t seed;
  hone_refinement ctx;
  hone_refined column[COLUMNS];
  double identity[N * N], rows[N], scratch[(4 * HONE_PROBES + 8) * N];
  double x[COLUMNS][2 * N], r[COLUMNS][N], den[COLUMNS][N], v[COLUMNS * N];
} products_case;

static int plain, less_plain, accurate;

static int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  (void)self;
  (void)trans;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < N; i++)
      v[i + c * ldv] *= 0.75;
  return HONE_OK;
}

static int residuals(void *self, const hone_matrix *a, bool trans,
                     const hone_residual_block *block) {
  (void)self;
  (void)a;
  (void)trans;
  *(block->plain ? &plain : block->rough ? &less_plain : &accurate) += 1;
  CHECK(block->den == NULL);
  for (int64_t c = 0; c < block->k; c++)
    for (int64_t i = 0; i < N; i++)
      block->r[c][i] = block->b[c][i] - block->x[c][i];
  return HONE_OK;
}

/* x = (1, ...), r = 1e-6 in the first column and 3e-6 in the second. */
static void set_case(products_case *s, double inverse) {
  *s = (products_case){
      .engine = {.precision = 64, .solve = solve, .residuals = residuals},
      .certificate = {
          .rcond_scaled = 1.0, .inverse_bound = inverse, .nonsingular = true}};
  s->dense = (hone_dense){N, N, s->identity, NULL, false, 0};
  s->a = hone_dense_matrix(&s->dense);
  s->certificate.contraction[0] = (hone_contraction){
      .tried = true, .power = 2, .bound = 0.5, .before = 1.0, .rows = s->rows};
  s->ctx = (hone_refinement){.f = {.engine = &s->engine,
                                   .a = &s->a,
                                   .scaling = &s->scaling,
                                   .use_copy = true},
                             .norm_a = 1.0,
                             .norm_2 = 1.0L,
                             .watch = &s->watch,
                             .scratch = s->scratch,
                             .seed = &s->seed,
                             .v = s->v,
                             .bounding = bounding};
  for (int c = 0; c < COLUMNS; c++) {
    s->column[c] = (hone_refined){
        .errors = {.size = 1.0L, .size_scaled = 1.0L, .widest_unit = 1.0L},
        .x = s->x[c],
        .spare = s->x[c] + N,
        .r = s->r[c],
        .den = s->den[c],
        .verified = true,
        .state = HONE_COLUMN_ACCEPTED};
    for (int i = 0; i < N; i++) {
      s->identity[i * (N + 1)] = s->x[c][i] = s->den[c][i] = 1.0;
      s->r[c][i] = c == 0 ? 1e-6 : 3e-6;
    }
  }
  plain = less_plain = accurate = 0;
}

static void estimate(products_case *s) {
  hone_bounds_estimate(&s->ctx, &s->certificate, COLUMNS, s->column);
  for (int c = 0; c < COLUMNS; c++)
    CHECK(s->column[c].error_estimated);
}

TEST(bounds_products, serve_where_their_rounding_errors_are_little) {
  products_case s;
  set_case(&s, 1.0);
  estimate(&s);
  CHECK_EQ_INT(plain, 1);
  CHECK_EQ_INT(accurate, 0);
  /* two corrections show 15/16 of the error; rows of E^2 add nothing here */
  CHECK_NEAR(s.column[0].error, 0.9375e-6, 1e-15);
  CHECK_NEAR(s.column[1].error, 3 * 0.9375e-6, 1e-15);
}

/* terms = 16 / 16 + 18; t = 0.75e-6 in every entry. */
TEST(bounds_products, count_their_rounding_errors_as_noise) {
  const double least = 2.0 * (1.0 + 1.0) * 19.0 * SUP_EPS * 0.75e-6 * 4.0;
  products_case s;
  const double inverse = 0.1 * 0.75e-6 / least;
  set_case(&s, inverse);
  estimate(&s);
  CHECK_EQ_INT(plain, 1);
  CHECK_LE(0.9375e-6 + least * inverse, s.column[0].error);
  CHECK_LE(s.column[0].error, 1.5 * (0.9375e-6 + least * inverse));
}

/* The norms of all that follows a correction add up to at most 5 + 1 where one
   of them is relaxed with omega = 5. */
TEST(bounds_products, are_followed_by_relaxed_corrections) {
  const double least = 2.0 * (5.0 + 1.0) * 19.0 * SUP_EPS * 0.75e-6 * 4.0;
  products_case s;
  const double inverse = 0.1 * 0.75e-6 / least;
  set_case(&s, inverse);
  s.certificate.contraction[0].excess = 4.0;
  estimate(&s);
  CHECK_EQ_INT(plain, 1);
  const double t = 0.75e-6 + 5.0 * 0.1875e-6;
  CHECK_LE(t + least * inverse, s.column[0].error);
  CHECK_LE(s.column[0].error, t + 1.5 * least * inverse);
}

typedef struct many_columns {
  hone_refined column[MANY];
  const hone_refined *list[MANY];
  double r[MANY][N], t[MANY][N];
} many_columns;

/* Columns like the first one of s, with t = 0.75e-6 in every entry. */
static void set_many(many_columns *many, const products_case *s) {
  for (int c = 0; c < MANY; c++) {
    many->column[c] = s->column[0];
    many->column[c].spare = many->t[c];
    many->column[c].r = many->r[c];
    many->column[c].spread = 4e30L;
    many->list[c] = &many->column[c];
    for (int i = 0; i < N; i++) {
      many->r[c][i] = 1e-6;
      many->t[c][i] = 0.75e-6;
    }
  }
}

/* Columns enough are worth random vectors that bound the norm of inv(M), which
   has no part in that of inv(S). Few columns do not use it though it is known,
   so that bounds do not depend on earlier solves. */
TEST(bounds_products, of_many_columns_grow_by_the_norm_of_the_factors) {
  const double least = (1.0 + 1.0) * 19.0 * SUP_EPS * 0.75e-6 * 4.0;
  const double factors = 0.1 * 0.75e-6 / least;
  for (int way = 0; way < 7; way++) {
    products_case s;
    many_columns many;
    long double effect[MANY];
    hone_residual_block block = {.k = MANY};
    const hone_deflation deflation = {.count = 1};
    const int64_t m = way == 1 ? MANY - 1 : MANY;
    set_case(&s, 1e30);
    s.certificate.inverse_many = 1e30;
    s.certificate.factors_many = way == 2 ? (double)NAN : factors;
    s.certificate.contraction[1] = s.certificate.contraction[0];
    s.ctx.trans = way == 3 || way == 4;
    s.ctx.f.deflation = way == 4 || way == 5 ? &deflation : NULL;
    s.scaling.used = way == 6;
    set_many(&many, &s);
    const bool serves = way == 0 || way == 3 || way == 5;
    ct_note("way %d", way);
    CHECK_EQ_INT(
        hone_bounds_allow(&s.ctx, &s.certificate, m, many.list, &block, effect),
        serves);
    CHECK_EQ_INT(block.plain, serves);
    CHECK_EQ_INT(block.rough, false);
    if (serves)
      CHECK_NEAR((double)effect[MANY - 1], 0.1 * 0.75e-6, 1e-12 * 0.75e-6);
  }
}

/* The random vectors are drawn where plain products would count, for columns
   enough; always the same ones. */
TEST(bounds_products, of_many_columns_draw_random_vectors_once) {
  double known[3] = {0.0, 0.0, 0.0};
  for (int way = 0; way < 3; way++) { /* the last one has too few columns */
    products_case s;
    many_columns many;
    long double effect[MANY];
    hone_residual_block block = {.k = MANY};
    set_case(&s, 1e30);
    s.ctx.many_seed = 17;
    s.seed = (uint64_t)way; /* of what was drawn before */
    set_many(&many, &s);
    ct_note("way %d", way);
    CHECK_EQ_INT(hone_bounds_allow(&s.ctx, &s.certificate,
                                   way == 2 ? MANY - 1 : MANY, many.list,
                                   &block, effect),
                 way < 2);
    CHECK_EQ_INT(block.plain, way < 2);
    known[way] = s.certificate.factors_many;
    s.ctx.many_seed = 18;
    (void)hone_bounds_allow(&s.ctx, &s.certificate, MANY - (way == 2),
                            many.list, &block, effect);
    CHECK_NEAR(s.certificate.factors_many, known[way], 0.0);
    CHECK(s.seed == (uint64_t)way);
  }
  CHECK_LE(0.75, known[0]); /* the solve multiplies by that */
  CHECK_LE(known[0], 0.75 * 100.0);
  CHECK_NEAR(known[1], known[0], 0.0);
  CHECK_NEAR(known[2], 0.0, 0.0);
}

/* Noise is sampled after the first correction; rows of 3 keep the bound from
   being tight, so that products follow. Their errors count for themselves, and
   3 times 1 / (1 - 1/2) times through the bound on what was left before the
   last correction. */
TEST(bounds_products, count_beside_noise_that_is_sampled) {
  const double least = 2.0 * 19.0 * SUP_EPS * 0.75e-6 * 4.0;
  products_case s;
  set_case(&s, 0.1 * 0.75e-6 / least);
  s.certificate.contraction[0].power = 1;
  s.certificate.contraction[0].before = 0.0;
  for (int i = 0; i < N; i++)
    s.rows[i] = 3.0;
  for (int c = 0; c < COLUMNS; c++)
    s.column[c].errors.noise = 1e-13L;
  estimate(&s);
  CHECK_LE(1, plain);
  CHECK(s.column[0].den_lost);
  double t = 0.75e-6, d = 0.75e-6, effect = 0.0;
  for (int k = 0; k < plain; k++) {
    effect += 0.1 * t;
    d /= 4.0;
    t += d;
  }
  CHECK_NEAR(s.column[0].error,
             t + 3.0 * 4.0 * d / 0.5 + effect * (1.0 + 3.0 / 0.5),
             0.05 * effect);
}

/* Products are plain only if their errors are little in every column. */
TEST(bounds_products, are_little_in_every_column) {
  for (int wide = 0; wide <= COLUMNS; wide++) {
    products_case s;
    set_case(&s, 1e14);
    s.certificate.inverse_many = 1.0;
    for (int c = 0; c < COLUMNS; c++)
      s.column[c].by_many = c != wide;
    ct_note("column %d", wide);
    estimate(&s);
    CHECK_EQ_INT(plain, wide == COLUMNS);
    CHECK_EQ_INT(less_plain, wide < COLUMNS);
  }
}

/* terms = 168 * 64 + 16 + 4; r = 1e-6 and t = 0.75e-6 in every entry. */
TEST(bounds_products, make_way_for_rough_residuals_where_they_count) {
  static const double factor = 2.0 * 2.0 * SUP_EPS * 4.0;
  const double terms = 10772.0 * SUP_EPS * 1.75e-6;
  products_case s;
  set_case(&s, 0.3 / factor / 19.0);
  estimate(&s);
  CHECK_EQ_INT(plain, 0);
  CHECK_EQ_INT(less_plain, 1);
  CHECK_EQ_INT(accurate, 0);
  CHECK_NEAR(s.column[0].error, 0.9375e-6, 1e-14);
  const double inverse = 0.1 * 0.75e-6 / factor / terms;
  set_case(&s, inverse);
  estimate(&s);
  CHECK_EQ_INT(less_plain, 1);
  CHECK_LE(0.9375e-6 + 0.075e-6, s.column[0].error);
  CHECK_LE(s.column[0].error, 0.9375e-6 + 1.5 * 0.075e-6);
}

TEST(bounds_products, make_way_for_double_double_where_they_count) {
  static const double factor = 2.0 * 2.0 * SUP_EPS * 4.0;
  const double terms = 10772.0 * SUP_EPS * (1.0 + 1.0 / 0.75);
  for (int way = 0; way < 5; way++) {
    products_case s;
    set_case(&s, way == 0 ? 0.3 / factor / terms : 1.0);
    if (way == 1)
      s.scaling.used = true;
    else if (way == 2)
      s.ctx.norm_2 = (long double)HONE_INF;
    else if (way == 3)
      s.ctx.norm_2 = (long double)NAN;
    else if (way == 4)
      s.ctx.norm_a = 1e300; /* products may leave the range */
    ct_note("way %d", way);
    estimate(&s);
    CHECK_EQ_INT(plain, 0);
    CHECK_EQ_INT(less_plain, 0);
    CHECK_EQ_INT(accurate, 1);
  }
}

static int64_t wide_blocks, rough_blocks;

static int measure(void *self, const hone_matrix *a, bool trans,
                   const hone_residual_block *block) {
  (void)self;
  (void)a;
  (void)trans;
  wide_blocks += block->k > 1;
  rough_blocks += block->rough;
  for (int64_t c = 0; c < block->k; c++)
    for (int64_t i = 0; i < N; i++) {
      block->r[c][i] = block->b[c][i] - block->x[c][i];
      if (block->den != NULL)
        block->den[c][i] = 2.0;
    }
  return HONE_OK;
}

static int measure_one(void *self, const hone_matrix *a, bool trans,
                       const hone_entry *x, const hone_entry *b, hone_entry *r,
                       double *den) {
  const hone_residual_block one = {1,
                                   (const hone_entry *const[]){x},
                                   (const hone_entry *const[]){b},
                                   (hone_entry *const[]){r},
                                   (double *const[]){den},
                                   false,
                                   false};
  return measure(self, a, trans, &one);
}

/* The columns with right-hand sides x + r, to be measured there. */
static void set_measured(products_case *s, double (*b)[N]) {
  set_case(s, 1.0);
  s->engine.precision = 32;
  s->engine.residuals = measure;
  s->engine.residual = measure_one;
  for (int c = 0; c < COLUMNS; c++) {
    for (int i = 0; i < N; i++)
      b[c][i] = s->x[c][i] + s->r[c][i];
    s->column[c].b = b[c];
  }
  wide_blocks = rough_blocks = 0;
}

TEST(bounds_products, columns_of_single_factors_may_be_rough) {
  products_case s;
  double b[COLUMNS][N], tail[COLUMNS][3 * N] = {{0.0}};
  hone_refined *list[COLUMNS] = {&s.column[0], &s.column[1]};
  const double rough = (double)hone_block_terms(N) * SUP_EPS * SUP_EPS;
  const double fine = (double)hone_pair_terms(N) * SUP_EPS * SUP_EPS;
  set_measured(&s, b);
  hone_refined_measure(&s.ctx, true, true, COLUMNS, list);
  CHECK_EQ_INT(wide_blocks, 1);
  CHECK_EQ_INT(rough_blocks, 1);
  for (int c = 0; c < COLUMNS; c++)
    CHECK_NEAR(list[c]->gamma, rough, 0.0);
  s.engine.precision = 64;
  hone_refined_measure(&s.ctx, true, true, COLUMNS, list);
  CHECK_EQ_INT(wide_blocks, 2);
  CHECK_EQ_INT(rough_blocks, 1);
  CHECK_NEAR(list[0]->gamma, fine, 0.0);
  s.engine.precision = 32; /* in extra precision x has a tail */
  s.column[1].measure_tail = true;
  s.column[1].tail = tail[1];
  s.column[1].tail_r = tail[1] + N;
  s.column[1].tail_den = tail[1] + 2 * N;
  hone_refined_measure(&s.ctx, true, true, COLUMNS, list);
  CHECK_EQ_INT(rough_blocks, 1);
  CHECK_NEAR(list[1]->gamma, fine, 0.0);
  s.column[1].measure_tail = false;
  hone_refined_measure(&s.ctx, true, false, COLUMNS, list); /* on the host */
  CHECK_EQ_INT(wide_blocks, 2);
  CHECK_NEAR(list[0]->gamma, fine, 0.0);
}

/* The noise of columns that a device measures is bounded by the twelve vectors
   where four leave too much of it. */
TEST(bounds_products, noise_is_bounded_by_more_vectors_where_it_counts) {
  products_case s;
  set_case(&s, 1e8);
  hone_refined *c = &s.column[0];
  s.certificate.inverse_many = 1e6;
  c->errors.noise = 0.126L * 0x1p-53L * 1e-8L; /* twice that is 0.252 eps */
  CHECK(hone_bounds_noise_counts(&s.certificate, c));
  CHECK_NEAR(hone_bounds_inverse(&s.certificate, c), 1e8, 0.0);
  c->by_many = true;
  CHECK_NEAR(hone_bounds_inverse(&s.certificate, c), 1e6, 0.0);
  CHECK(!hone_bounds_noise_counts(&s.certificate, c));
  c->by_many = false;
  c->errors.noise = 0.124L * 0x1p-53L * 1e-8L;
  CHECK(!hone_bounds_noise_counts(&s.certificate, c));
  c->errors.noise = (long double)NAN;
  CHECK(hone_bounds_noise_counts(&s.certificate, c));
  c->by_many = true;
  s.certificate.inverse_many = 0.0; /* none was made */
  CHECK_NEAR(hone_bounds_inverse(&s.certificate, c), 1e8, 0.0);
}
