/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of forward error bounds: the remainder that corrections leave, the
   noise of residuals, and systems whose bounds were once below the error.
   Bounds in general are compared with true errors in test_certificates.c and by
   the campaign. */
#include "refine/bounds.h"
#include "refine/ladder.h"
#include "tests/campaign/campaign.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

/* ---- The remainder after a correction ------------------------------------ */

/* Refinement of one column with factors that have this certificate. */
typedef struct refinement_case {
  hone_engine engine;
  hone_matrix a;
  hone_scaling scaling;
  hone_space space;
  hone_certificate certificate;
  hone_refinement ctx;
  hone_refined column;
} refinement_case;

static void set_case(refinement_case *s, double contraction, double predicted) {
  *s = (refinement_case){.engine = {.precision = 32},
                         .a = {.n = 100},
                         .certificate = {.contraction = contraction,
                                         .predicted_contraction = predicted,
                                         .nonsingular = true},
                         .column = {.observed_contraction = (double)NAN}};
  s->ctx = (hone_refinement){
      .f = {.engine = &s->engine, .a = &s->a, .scaling = &s->scaling},
      .certificate = &s->certificate,
      .observe_contraction = !hone_bounds_contraction_known(&s->certificate)};
}

/* The remainder after a correction of size 1, or 1000 in scaled variables. */
static double left(const refinement_case *s) {
  const hone_relative_size d = {.plain = 1.0, .scaled = 1.0, .spread = 1000.0};
  double plain, scaled;
  hone_bounds_remainder(&s->ctx, &s->column, &d, &plain, &scaled);
  if (scaled >= 0.0)
    CHECK_NEAR(plain, 1000.0 * scaled, 1e-9 * plain);
  else
    CHECK(isnan(plain));
  return scaled;
}

TEST(bounds, follow_from_the_contraction_of_the_factors) {
  refinement_case s;
  set_case(&s, 0.5, 0.5);
  CHECK(!s.ctx.observe_contraction);
  CHECK_NEAR(left(&s), 1.0, 1e-15); /* 1/2 + 1/4 + ... */
  set_case(&s, 1e-6, 1e-5);
  CHECK_NEAR(left(&s), 1e-6, 1e-11);
  s.column.digits_lost = true; /* r may have underflowed */
  CHECK(isnan(left(&s)));
  s.column.x_is_zero = true;
  CHECK_NEAR(left(&s), 0.0, 0.0);
}

/* The contraction was much smaller than the condition number predicts. */
TEST(bounds, do_not_trust_an_accidentally_small_contraction) {
  refinement_case s;
  set_case(&s, 1e-6, 10.0);
  CHECK(!s.ctx.observe_contraction);
  CHECK_LE(0.3, left(&s));
  set_case(&s, 1e-6, 1e3);
  CHECK(s.ctx.observe_contraction && isnan(left(&s)));
  CHECK(hone_bounds_contraction_doubtful(&s.certificate, false));
  set_case(&s, 0.8, 1.0); /* the contraction was measured: no doubt */
  CHECK(s.ctx.observe_contraction &&
        !hone_bounds_contraction_doubtful(&s.certificate, false));
  set_case(&s, (double)NAN, 1.0);
  CHECK(s.ctx.observe_contraction &&
        !hone_bounds_contraction_doubtful(&s.certificate, true));
  set_case(&s, 0.1, 1.0);
  CHECK(!hone_bounds_contraction_doubtful(&s.certificate, false));
  /* Factors of another matrix. */
  CHECK(hone_bounds_contraction_doubtful(&s.certificate, true));
}

/* A large part of the error that shrinks may hide a small part that does
   not. */
TEST(bounds, assume_a_hidden_error_where_only_corrections_shrink) {
  refinement_case s;
  set_case(&s, 0.9, 1.0);
  CHECK(isnan(left(&s)));
  s.column.observed_contraction = 0.6;
  CHECK(isnan(left(&s)));
  s.column.observed_contraction = 0.4;
  CHECK_NEAR(left(&s), 100.0, 0.0); /* n */
  s.certificate.contraction = 1e4;  /* errors grow at first */
  CHECK_NEAR(left(&s), 1e4, 0.0);
  /* GMRES takes over the certificate's pairs. */
  s.certificate.contraction = (double)NAN;
  s.certificate.predicted_contraction = 1e9;
  s.certificate.pairs = 3;
  s.ctx.f.space = &s.space;
  CHECK_NEAR(left(&s), 100.0, 0.0);
  s.ctx.trans = true; /* there are no such pairs for A^T */
  CHECK(isnan(left(&s)));
}

static int solve_identity(void *self, bool trans, int64_t k, double *v,
                          int64_t ldv) {
  (void)self;
  (void)trans;
  (void)k;
  (void)v;
  (void)ldv;
  return HONE_OK;
}

/* The units are 2^40 apart, and in the certificate E is small beside G: the
   error of the factors then looks like a solution, but has another size. */
TEST(bounds, estimate_no_less_noise_than_the_contraction_implies) {
  int row_exp[] = {0, -40}, col_exp[] = {0, 40};
  double row[] = {1.0, 0x1p-40}, col[] = {1.0, 0x1p40}, v[2];
  double x[] = {1.0, 1.0}, r[] = {1e-10, 1e-14}, den[] = {1.0, 1.0};
  refinement_case s;
  set_case(&s, 0.5, 0.0);
  s.a.n = 2;
  s.engine.solve = solve_identity;
  s.certificate.inverse_norm = 1e6L;
  s.certificate.inverse_norm_scaled = 1e6;
  s.scaling = (hone_scaling){.row = row,
                             .col = col,
                             .row_exp = row_exp,
                             .col_exp = col_exp,
                             .used = true};
  s.ctx.v = v;
  s.column =
      (hone_refined){.x = x,
                     .r = r,
                     .den = den,
                     .errors = {.relative = 1.0L, .relative_scaled = 1.0L},
                     .state = HONE_COLUMN_ACCEPTED};
  hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
  CHECK(s.column.noise_estimated && s.column.noise_error < 1e300);
  /* The remainder counted. */
  CHECK_LE(100.0, s.column.remainder / s.column.error);
  CHECK_LE(s.column.remainder_scaled, s.column.noise_error_scaled);
}

/* ---- A residual of a device, which has begun to solve for it ------------- */

enum { THERE = 5 };

typedef struct there_case {
  const char *what;
  int at;         /* the entry of the device's r that differs */
  double by;      /* its distance from the host's, in gamma den */
  double inverse; /* norm of the inverse */
  bool unscaled;  /* of inv(A) only */
  bool taken;
} there_case;

/* x = (1, ...), r = 1e-17, den = 1, gamma 1e-30: the noise is 5e-30. */
static void check_there(const there_case *t, bool other, int64_t columns) {
  double x[THERE], r[THERE], den[THERE], v[2 * THERE];
  hone_refined column[2] = {{0}, {.state = HONE_COLUMN_LEFT}};
  refinement_case s;
  set_case(&s, 1e-6, 1e-6);
  s.a.n = THERE;
  s.engine.solve = solve_identity;
  s.certificate.inverse_norm = (long double)t->inverse;
  s.certificate.inverse_norm_scaled = t->unscaled ? 1.0 : t->inverse;
  for (int i = 0; i < THERE; i++) {
    x[i] = den[i] = 1.0;
    r[i] = 1e-17;
    v[i] = i == t->at ? r[i] + t->by * 1e-30 : r[i];
  }
  if (!(t->by >= -1e3)) /* or NaN */
    v[t->at] = t->by;
  s.ctx.v = v;
  s.ctx.device_residual_of = other ? &column[1] : &column[0];
  column[0] = (hone_refined){.x = x,
                             .r = r,
                             .den = den,
                             .gamma = 1e-30,
                             .errors = {.relative = 5e-17L,
                                        .relative_scaled = 5e-17L,
                                        .noise = 5e-30L,
                                        .noise_scaled = 5e-30L},
                             .state = HONE_COLUMN_ACCEPTED};
  hone_bounds_estimate(&s.ctx, &s.certificate, columns, column);
  const bool taken = t->taken && !other && columns == 1;
  const double factor = taken ? 2.0 : 1.0;
  ct_note("%s, %d, %d", t->what, other, (int)columns);
  CHECK(column[0].error_estimated && s.ctx.device_residual_of == NULL);
  CHECK_NEAR(r[t->at], taken ? 1e-17 + t->by * 1e-30 : 1e-17, 0.0);
  CHECK_NEAR(column[0].gamma, factor * 1e-30, 0.0);
  CHECK_NEAR((double)column[0].errors.noise, factor * 5e-30, 1e-40);
  CHECK_NEAR((double)column[0].errors.noise_scaled, factor * 5e-30, 1e-40);
  CHECK_NEAR(column[0].error, 1e-17, 1e-29);
}

TEST(bounds, accept_a_devices_residual_that_differs_by_noise_only) {
  static const there_case cases[] = {
      {"the same", 0, 0.0, 1e6, false, true},
      {"all but", 0, 0.9, 1e6, false, true},
      {"all but, below", THERE - 1, -0.9, 1e6, true, true},
      {"the first is not", 0, 1.2, 1e6, false, false},
      {"the last is not", THERE - 1, 1.2, 1e6, false, false},
      {"below", 2, -1.2, 1e6, false, false},
      {"no number", 1, (double)NAN, 1e6, false, false},
      {"infinite", 1, -(double)INFINITY, 1e6, false, false},
      {"the noise counts", 0, 0.0, 1e13, false, false},
      {"in the caller's units", 0, 0.0, 1e13, true, false},
      {"unknown", 0, 0.0, (double)NAN, false, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_there(&cases[i], false, 1);
    check_there(&cases[i], true, 1);
    check_there(&cases[i], false, 2);
  }
}

/* ---- The condition that the certificate finds ---------------------------- */

typedef struct ladder_test {
  hone_mem mem;
  hone_watch watch;
  hone_ladder ladder;
  hone_report report;
  sup_script *script;
  double a[12 * 12];
} ladder_test;

/* The scripted engine factors diag(1, ..., 1, 1/8). */
static void factor_diagonal(ladder_test *s, int precision) {
  static const hone_engine *engine;
  *s = (ladder_test){.report = {.bad_row = -1}};
  engine = sup_scripted(0, "scripted", precision, &s->script);
  const hone_request request = {.limit = 1e-10,
                                .structure = HONE_STRUCTURE_GENERAL};
  for (int i = 0; i < 12; i++)
    s->a[13 * i] = i < 11 ? 1.0 : 0.125;
  s->script->info.growth = 3.0;
  s->script->ladder = &s->ladder;
  CHECK_EQ_INT(sup_ladder_create(&s->ladder, 12, &engine, 1, &request, &s->mem,
                                 NULL, &s->watch),
               HONE_OK);
  CHECK_EQ_INT(
      hone_ladder_factor(&s->ladder, sup_matrix(12, 12, s->a), &s->report),
      HONE_OK);
}

/* inv(S) = I + LARGE w w^T, w = (0, 1, -1, 1, -1). The vector 1/n, and the unit
   vector that follows from it, are orthogonal to w. */
enum { HIDDEN = 5, LARGE = 1000000 };
static const double hidden[HIDDEN] = {0.0, 1.0, -1.0, 1.0, -1.0};
static int hidden_calls, hidden_columns;

static int solve_hidden(void *self, bool trans, int64_t k, double *v,
                        int64_t ldv) {
  (void)self;
  (void)trans;
  for (int64_t c = 0; c < k; c++) {
    double sum = 0.0;
    for (int i = 0; i < HIDDEN; i++)
      sum += hidden[i] * v[i + c * ldv];
    for (int i = 0; i < HIDDEN; i++)
      v[i + c * ldv] += LARGE * sum * hidden[i];
  }
  hidden_calls++;
  hidden_columns += (int)k;
  return HONE_OK;
}

TEST(bounds, include_the_alternating_vector_of_the_norm_estimate) {
  const hone_engine engine = {.precision = 64, .solve = solve_hidden};
  double a[HIDDEN * HIDDEN], scratch[7 * HIDDEN];
  CHECK_EQ_INT(hone_certify_scratch(HIDDEN), 7 * HIDDEN);
  for (int i = 0; i < HIDDEN * HIDDEN; i++)
    a[i] = (i % (HIDDEN + 1) == 0) - hidden[i % HIDDEN] * hidden[i / HIDDEN] *
                                         LARGE / (1.0 + 4.0 * LARGE);
  const hone_matrix matrix = *sup_matrix(HIDDEN, HIDDEN, a);
  const hone_scaling scaling = {.used = false};
  const hone_factored f = {
      .engine = &engine, .a = &matrix, .scaling = &scaling};
  hone_certificate out;
  hidden_calls = hidden_columns = 0;
  CHECK_EQ_INT(hone_certify(&f, 2.0, 2.0, scratch, &out), HONE_OK);
  CHECK_NEAR(out.inverse_norm_scaled, 1.0 + 4.0 * LARGE, 1.0);
  CHECK(out.nonsingular);
  CHECK_EQ_INT(hidden_columns - hidden_calls, 1);
}

TEST(bounds, predict_the_contraction_by_condition_growth_and_precision) {
  ladder_test s;
  factor_diagonal(&s, 32);
  CHECK_NEAR(s.ladder.rung[0].certificate.predicted_contraction,
             0x1p-24 * 3.0 * 8.0, 1e-9);
  hone_ladder_destroy(&s.ladder);
  factor_diagonal(&s, 64);
  CHECK_NEAR(s.ladder.rung[0].certificate.predicted_contraction, 0x1p-53 * 24.0,
             1e-18);
  hone_ladder_destroy(&s.ladder);
}

/* The new matrix differs in one column, which the vector that the certificate
   tries does not involve. */
TEST(bounds, try_random_errors_with_factors_of_another_matrix) {
  ladder_test s;
  factor_diagonal(&s, 32);
  const hone_certificate *certificate = &s.ladder.rung[0].certificate;
  CHECK_LE(certificate->contraction, 1e-6);
  const int32_t before = s.report.host_passes;
  for (int i = 1; i < 11; i++)
    s.a[i] = 0.8;
  CHECK_EQ_INT(
      hone_ladder_update(&s.ladder, sup_matrix(12, 12, s.a), &s.report),
      HONE_OK);
  CHECK_LE(0.8, certificate->contraction);
  CHECK(!hone_bounds_contraction_known(certificate));
  CHECK_LE(2, s.report.host_passes - before);
  hone_ladder_destroy(&s.ladder);
}

/* ---- The noise of a residual --------------------------------------------- */

static double wide_residual(int64_t n, const double *a, const double *x,
                            double b, int shift) {
  const hone_dense one = {n, 1, a, NULL};
  const hone_matrix matrix = hone_dense_matrix(&one);
  hone_wide_row row = {.a = &matrix, .x = x, .b = b, .shift = shift};
  matrix.op->wide_row(&row);
  return row.r;
}

/* Rows whose products underflow in double are measured as accurately as others:
   to 100 bits, where long double has 64. */
TEST(bounds, measure_rows_below_the_range_in_double_double) {
  const double size = 0x1p-500, some = 1.0 + 0x1p-52;
  const double a[] = {size, size, size}, x[] = {size, 0x1p-70 * size, -size};
  CHECK_NEAR(wide_residual(3, a, x, 0.0, 600), -0x1p-470, 0.0);
  const double p[] = {size * some, size * (1.0 + 0x1p-51)};
  const double q[] = {size * some, -size};
  CHECK_NEAR(wide_residual(2, p, q, 0.0, 600), -0x1p-504, 0.0);
}

/* ---- Systems whose bounds were below the error --------------------------- */

typedef struct known_system {
  const char *family;
  uint64_t seed;
  int start;
} known_system;

/* Entries of unknowns in large units, to which the remainder of other entries
   contributes (denormals, wide); an accidentally small contraction (growth);
   small errors hidden behind large ones, with GMRES (dlatms_2) and without
   (moler); rows of small numbers measured in long double (wide_rows); noise of
   two equations that cancelled (wide). */
static const known_system known[] = {
    {"denormals", 0x819e90a9ceba4055, CAMPAIGN_START_MIXED},
    {"growth", 0xfa51436415dc261, CAMPAIGN_START_MIXED},
    {"wide", 0x113f63cc8465d05b, CAMPAIGN_START_MIXED},
    {"moler", 0x7b5edbb4fcb88f20, CAMPAIGN_START_MIXED},
    {"dlatms_2", 0x43126c6b6e01c681, CAMPAIGN_START_MIXED},
    {"dlatms_2", 0xe85d52aad98a5195, CAMPAIGN_START_MIXED},
    {"wide_rows", 0x75a1555cecdb24e2, HONE_FACTOR_SINGLE},
    {"wide_rows", 0x5ef0e2c48801631f, HONE_FACTOR_SINGLE},
    {"wide_rows", 0x7e2637384b6877d4, HONE_FACTOR_SINGLE},
    {"wide_rows", 0x4333d8a23c018173, HONE_FACTOR_SINGLE},
    {"inverse_hilbert", 0x34645d1ccc6c2904, HONE_FACTOR_SINGLE},
};

static void check_known(const known_system *k, bool extra,
                        campaign_tally *tally, reference *r) {
  const campaign_plan plan = {.max_n = CAMPAIGN_MOST_N,
                              .device = HONE_DEVICE_CPU,
                              .start = k->start,
                              .extra = extra,
                              .family = gallery_find(k->family)};
  campaign_system s;
  campaign_record record;
  campaign_draw(&s, &plan, k->seed);
  campaign_check(&s, r, &record);
  ct_note("%s, n %d", k->family, (int)s.n);
  CHECK_EQ_INT(campaign_count(tally, &record), 0);
  for (int c = 0; c < record.nrhs; c++) /* not by accident either */
    if (record.column[c].status == HONE_OK && record.column[c].error > 0.0)
      CHECK_LE(1.5 * record.column[c].error, record.column[c].bound);
  campaign_free(&s);
}

TEST(bounds, hold_where_they_once_did_not) {
  static const known_system in_extra = {"wide", 0x893fd2300c96400,
                                        CAMPAIGN_START_MIXED};
  campaign_tally *tally = campaign_tally_create();
  reference r = {0};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    check_known(&known[k], false, tally, &r);
  check_known(&in_extra, true, tally, &r);
  reference_free(&r);
  campaign_tally_destroy(tally);
}

/* In extra-precise mode factors whose contraction is too small for their
   certificate still serve: corrections continue below the last bit of x until
   the part that may be hidden does not count. */
TEST(bounds, demand_corrections_until_no_error_is_hidden) {
  static const known_system hiding[] = {
      {"dlatms_4", 0x1bb85cdf097882f3, HONE_FACTOR_SINGLE},
      {"dlatms_2", 0x54ff4a092991a725, HONE_FACTOR_SINGLE},
      {"dlatms_2", 0x1f1ad9713c975da5, HONE_FACTOR_SINGLE},
  };
  int by_single = 0;
  reference r = {0};
  for (int k = 0; k < 3; k++) {
    const campaign_plan plan = {.max_n = 200,
                                .device = HONE_DEVICE_CPU,
                                .start = hiding[k].start,
                                .extra = true,
                                .family = gallery_find(hiding[k].family)};
    campaign_system s;
    campaign_record record;
    campaign_draw(&s, &plan, hiding[k].seed);
    campaign_check(&s, &r, &record);
    for (int c = 0; c < record.nrhs; c++)
      by_single += record.column[c].status == HONE_OK &&
                   record.column[c].precision == 32;
    campaign_free(&s);
  }
  CHECK_LE(8, by_single); /* of 10 */
  reference_free(&r);
}

/* The factors of an integer matrix are exact, and show a condition number
   beyond double precision: no x is accepted. */
TEST(bounds, accept_no_x_of_exact_factors_that_show_a_huge_condition) {
  enum { N = 32 };
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    double *a = sup_filled((int64_t)N * N, 0.0), *b = sup_filled(N, 1.0);
    double *x = sup_filled(N, 0.0);
    hone_options o;
    hone_report report = HONE_REPORT_INIT;
    o = (hone_options)HONE_OPTIONS_INIT;
    o.factor_precision = start;
    gallery_make(gallery_find("moler"), N, 0.0, 1, a, N);
    ct_note("start %d", start);
    CHECK_EQ_INT(hone_solve(N, 1, a, N, b, N, x, N, &o, &report),
                 HONE_ILL_CONDITIONED);
    CHECK_LT(report.rcond, SUP_EPS);
    CHECK_EQ_INT(report.accepted, 0);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

TEST(bounds, accept_no_certificate_of_a_huge_condition_whatever_its_defect) {
  enum { N = 60 };
  static const hone_engine *engine;
  const hone_request request = {.limit = 1e-10,
                                .structure = HONE_STRUCTURE_GENERAL};
  double *a = sup_filled((int64_t)N * N, 0.0);
  ladder_test s = {.report = {.bad_row = -1}};
  engine = sup_scripted(0, "scripted", 64, &s.script);
  s.script->ladder = &s.ladder;
  for (int j = 0; j < N; j++) /* no operation rounds */
    for (int i = 0; i <= j; i++)
      a[i + j * N] = i == j ? 1.0 : -1.0;
  REQUIRE(sup_ladder_create(&s.ladder, N, &engine, 1, &request, &s.mem, NULL,
                            &s.watch) == HONE_OK);
  (void)hone_ladder_factor(&s.ladder, sup_matrix(N, N, a), &s.report);
  const hone_certificate *certificate = &s.ladder.rung[0].certificate;
  CHECK_LE(certificate->defect, 1e-3); /* the defect is as small as any */
  CHECK_LT(certificate->rcond_scaled, SUP_EPS);
  CHECK(!certificate->nonsingular);
  hone_ladder_destroy(&s.ladder);
  sup_free(a);
}
