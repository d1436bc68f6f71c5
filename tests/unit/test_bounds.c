/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of forward error bounds: what follows from corrections and the
   contraction of the factors, the noise of residuals, and systems whose bounds
   were once below the error. The probes that measure the contraction are tested
   in test_probes.c; bounds in general are compared with true errors in
   test_certificates.c, test_bars.c and by the campaign. */
#include "refine/bounds.h"
#include "refine/ladder.h"
#include "tests/campaign/campaign.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

/* Bounds use one of these for each column. */
static hone_bounding bounding[HONE_SOLVE_COLUMNS];

/* ---- Bounds after corrections -------------------------------------------- */

enum { N = 16 };

/* One column for which A = I, and an engine whose solve multiplies by 'gain':
   E = (1 - gain) I. */
typedef struct refinement_case {
  hone_engine engine;
  hone_dense dense;
  hone_matrix a;
  hone_scaling scaling;
  int row_exp[N], col_exp[N];
  hone_certificate certificate;
  hone_watch watch;
  uint64_t seed;
  hone_refinement ctx;
  hone_refined column;
  double identity[N * N], rows[N], scratch[(4 * HONE_PROBES + 8) * N];
  double x[2 * N], r[N], den[N], v[2 * N];
} refinement_case;

static double gain;
static int solves, solve_status;

static int solve_by_gain(void *self, bool trans, int64_t k, double *v,
                         int64_t ldv) {
  (void)self;
  (void)trans;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < N; i++)
      v[i + c * ldv] *= gain;
  solves++;
  return solve_status;
}

/* x = (1, ...), r = 1e-6, no noise. */
static void set_case(refinement_case *s, int power, double bound, double row) {
  CHECK_LE(hone_certify_scratch(N, false), (4 * HONE_PROBES + 8) * N);
  *s = (refinement_case){
      .engine = {.precision = 64, .solve = solve_by_gain},
      .certificate = {.rcond_scaled = 1.0,
                      .inverse_bound = 1.0,
                      .nonsingular = true},
      .seed = 7,
      .column = {
          .errors = {.size = 1.0L, .size_scaled = 1.0L, .widest_unit = 1.0L},
          .verified = true,
          .state = HONE_COLUMN_ACCEPTED}};
  s->dense = (hone_dense){N, N, s->identity, NULL, false, 0};
  s->a = hone_dense_matrix(&s->dense);
  s->scaling = (hone_scaling){.row_exp = s->row_exp, .col_exp = s->col_exp};
  s->certificate.contraction[0] = (hone_contraction){
      .tried = true, .power = power, .bound = bound, .rows = s->rows};
  s->ctx = (hone_refinement){
      .f = {.engine = &s->engine, .a = &s->a, .scaling = &s->scaling},
      .watch = &s->watch,
      .scratch = s->scratch,
      .seed = &s->seed,
      .v = s->v,
      .bounding = bounding};
  s->column.x = s->x;
  s->column.spare = s->x + N;
  s->column.r = s->r;
  s->column.den = s->den;
  for (int i = 0; i < N; i++) {
    s->identity[i * (N + 1)] = s->x[i] = s->den[i] = 1.0;
    s->r[i] = 1e-6;
    s->rows[i] = row;
  }
  gain = 1.0;
  solves = solve_status = 0;
}

static void estimate(refinement_case *s) {
  hone_bounds_estimate(&s->ctx, &s->certificate, 1, &s->column);
}

/* |e_i| <= |t_i| + rows_i (||d||_2 / (1 - eta)) */
TEST(bounds, follow_from_a_correction_and_the_contraction) {
  refinement_case s;
  set_case(&s, 1, 0.25, 0.0);
  for (int i = 0; i < N; i++) {
    s.r[i] = i == 3 ? -2e-6 : 0.0;
    s.rows[i] = 0.01 * i;
  }
  estimate(&s);
  CHECK(s.column.error_estimated && s.column.bars == s.column.spare);
  CHECK_EQ_INT(solves, 1);
  for (int i = 0; i < N; i++)
    CHECK_NEAR(s.column.bars[i], fabs(s.r[i]) + s.rows[i] * 2e-6 / 0.75, 1e-18);
  CHECK_NEAR(s.column.error, 2e-6 + 0.03 * 2e-6 / 0.75, 1e-18);
  CHECK_NEAR(s.column.error_scaled, s.column.error, 1e-18);
}

TEST(bounds, take_as_many_corrections_as_the_power_of_e) {
  for (int power = 1; power <= 4; power++) {
    refinement_case s;
    ct_note("power %d", power);
    set_case(&s, power, 0.5, 0.125);
    estimate(&s);
    CHECK_EQ_INT(solves, power);
    /* All but the first correction are zero, but the last 'power' count. */
    CHECK_NEAR(s.column.error, 1e-6 + 0.125 * 4e-6 / 0.5, 1e-17);
  }
}

/* With E = I / 4, one correction leaves a bound more than twice the error that
   it shows. */
TEST(bounds, take_another_correction_where_it_makes_them_tight) {
  refinement_case s;
  set_case(&s, 1, 0.5, 0.3);
  gain = 0.75;
  estimate(&s);
  CHECK_EQ_INT(solves, 2);
  for (int i = 0; i < N; i++) {
    CHECK_LE(1e-6, s.column.bars[i]); /* the error is 1e-6 */
    CHECK_LE(s.column.bars[i], 1.5e-6);
    CHECK_NEAR(s.x[i], 1.0, 0.0); /* corrections are kept apart */
  }
}

TEST(bounds, end_where_corrections_no_longer_help) {
  refinement_case s;
  set_case(&s, 1, 0.5, 0.5);
  gain = 1e-3; /* the certificate is wrong: the factors hardly contract */
  estimate(&s);
  CHECK(s.column.error_estimated);
  CHECK_LE(solves, 2);
}

/* Unknowns in units 2^5 apart: the second half has the large unit. */
TEST(bounds, of_components_are_in_the_callers_units) {
  refinement_case s;
  set_case(&s, 1, 0.5, 0.125);
  s.scaling.used = true;
  for (int i = 0; i < N; i++) {
    s.col_exp[i] = i < N / 2 ? 0 : 5;
    s.row_exp[i] = -s.col_exp[i]; /* S = I */
    s.r[i] = ldexp(1e-6, s.col_exp[i]);
  }
  estimate(&s);
  const double f = 4e-6 / 0.5;
  for (int i = 0; i < N; i++)
    CHECK_NEAR(s.column.bars[i], ldexp(1e-6 + 0.125 * f, s.col_exp[i]), 1e-15);
  CHECK_NEAR(s.column.error, 32.0 * (1e-6 + 0.125 * f), 1e-14);
  CHECK_NEAR(s.column.error_scaled, 1e-6 + 0.125 * f, 1e-15);
}

/* Solves for one right-hand side find 0.7 of the last entry; E is 2^-20 in all
   other solves and entries. */
static int solve_badly(void *self, bool trans, int64_t k, double *v,
                       int64_t ldv) {
  (void)solve_by_gain(self, trans, k, v, ldv);
  if (k == 1)
    v[N - 1] *= 0.7;
  return HONE_OK;
}

/* The last unknown has a unit in which it is small beside the others, though
   all errors are alike in the caller's units: norms are taken relative to x.
   The first correction is wrong there by far more than the probes, which see
   none of that, can tell. */
TEST(bounds, relative_to_x_do_not_rely_on_the_first_solve) {
  refinement_case s;
  double row[N], col[N], b[N];
  set_case(&s, 1, 0.5, 0.125);
  gain = 1.0 - 0x1p-20;
  s.engine.solve = solve_badly;
  s.scaling = (hone_scaling){.used = true,
                             .row_exp = s.row_exp,
                             .col_exp = s.col_exp,
                             .row = row,
                             .col = col};
  s.column.b = b;
  s.ctx.norm_a = 1.0;
  for (int i = 0; i < N; i++) {
    s.col_exp[i] = i < N - 1 ? 0 : 600;
    s.row_exp[i] = -s.col_exp[i]; /* S = I */
    row[i] = ldexp(1.0, s.row_exp[i]);
    col[i] = ldexp(1.0, s.col_exp[i]);
    b[i] = 1.0 + 0x1p-20;
    s.r[i] = 0x1p-20;
  }
  estimate(&s);
  CHECK(s.column.error_estimated);
  CHECK_LE(2, solves);
  for (int i = 0; i < N; i++) {
    CHECK_LE(0x1p-20, s.column.bars[i]);
    CHECK_LE(s.column.bars[i], 0x1p-18);
  }
}

TEST(bounds, are_not_had_without_a_contraction_or_a_solve) {
  for (int k = 0; k < 5; k++) {
    refinement_case s;
    ct_note("case %d", k);
    set_case(&s, k == 0 ? 0 : 1, 0.5, 0.125);
    solve_status = k == 1 ? HONE_DEVICE_FAILED : HONE_OK;
    s.column.digits_lost = k == 2; /* r may have underflowed */
    s.column.x_is_zero = k == 3;
    s.column.state = k == 4 ? HONE_COLUMN_LEFT : HONE_COLUMN_ACCEPTED;
    estimate(&s);
    CHECK(!s.column.error_estimated);
    CHECK_LE(solves, 1);
  }
}

/* ---- The noise of a residual --------------------------------------------- */

/* The noise of row i is den_i = 2^-40 or 2^-80; inv(M) = I. By norms every
   component would have the larger one. */
TEST(bounds, sample_noise_where_it_counts) {
  refinement_case s;
  set_case(&s, 1, 0.5, 0.0);
  s.certificate.inverse_bound = 1.5;
  s.column.gamma = 1.0;
  s.column.errors.noise = 0x1p-38L;
  for (int i = 0; i < N; i++) {
    s.den[i] = i < N / 2 ? 0x1p-40 : 0x1p-80;
    s.r[i] = 1e-30;
  }
  estimate(&s);
  for (int i = 0; i < N; i++) {
    const double noise = i < N / 2 ? 0x1p-40 : 0x1p-80;
    CHECK_LE(1e-30 + noise, s.column.bars[i]);
    CHECK_LE(s.column.bars[i], 1e-29 + 1000.0 * noise);
  }
  /* Less noise than the rounding of x is not worth solves. */
  const int before = solves;
  set_case(&s, 1, 0.5, 0.0);
  s.column.gamma = 1.0;
  s.column.errors.noise = 0x1p-60L;
  for (int i = 0; i < N; i++)
    s.den[i] = 0x1p-62;
  estimate(&s);
  CHECK_LE(2, before);
  CHECK_EQ_INT(solves, 1);
  for (int i = 0; i < N; i++)
    CHECK_LE(1e-6 + 0x1p-60, s.column.bars[i]);
  /* Nor is noise where the bound is large for want of a second correction. */
  set_case(&s, 1, 0.5, 3.0);
  s.certificate.inverse_bound = 1.5;
  s.column.gamma = 1.0;
  s.column.errors.noise = 0x1p-38L;
  for (int i = 0; i < N; i++)
    s.den[i] = 0x1p-40;
  estimate(&s);
  CHECK_EQ_INT(s.ctx.statements, 0);
  CHECK_EQ_INT(solves, 2);
  for (int i = 0; i < N; i++)
    CHECK_LE(1e-6 + 0x1p-40, s.column.bars[i]);
}

static double wide_residual(int64_t n, const double *a, const double *x,
                            double b, int shift) {
  const hone_dense one = {n, 1, a, NULL, false, 0};
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

/* ---- A residual of a device, which has begun to solve for it ------------- */

typedef struct there_case {
  const char *what;
  int at;         /* the entry of the device's r that differs */
  double by;      /* its distance from the host's, in gamma den */
  double inverse; /* norm of the inverse */
  bool taken;
} there_case;

/* x = (1, ...), r = 1e-17, den = 1, gamma 1e-30: the noise is 5e-30. */
static void check_there(const there_case *t, bool other, int64_t columns) {
  hone_refined column[2] = {{0}, {.state = HONE_COLUMN_LEFT}};
  refinement_case s;
  set_case(&s, 1, 1e-6, 1e-6);
  s.certificate.inverse_bound = t->inverse;
  for (int i = 0; i < N; i++) {
    s.r[i] = 1e-17;
    s.v[i] = i == t->at ? s.r[i] + t->by * 1e-30 : s.r[i];
  }
  if (!(t->by >= -1e3)) /* or NaN */
    s.v[t->at] = t->by;
  s.ctx.device_residual_of = other ? &column[1] : &column[0];
  column[0] = s.column;
  column[0].gamma = 1e-30;
  column[0].errors.noise = 5e-30L;
  hone_bounds_estimate(&s.ctx, &s.certificate, columns, column);
  const bool taken = t->taken && !other && columns == 1;
  const double factor = taken ? 2.0 : 1.0;
  ct_note("%s, %d, %d", t->what, other, (int)columns);
  CHECK(column[0].error_estimated && s.ctx.device_residual_of == NULL);
  CHECK_NEAR(s.r[t->at], taken ? 1e-17 + t->by * 1e-30 : 1e-17, 0.0);
  CHECK_NEAR(column[0].gamma, factor * 1e-30, 0.0);
  CHECK_NEAR((double)column[0].errors.noise, factor * 5e-30, 1e-40);
  CHECK_NEAR(column[0].error, 1e-17, 1e-20);
}

TEST(bounds, accept_a_devices_residual_that_differs_by_noise_only) {
  static const there_case cases[] = {
      {"the same", 0, 0.0, 1e6, true},
      {"all but", 0, 0.9, 1e6, true},
      {"all but, below", N - 1, -0.9, 1e6, true},
      {"the first is not", 0, 1.2, 1e6, false},
      {"the last is not", N - 1, 1.2, 1e6, false},
      {"below", 2, -1.2, 1e6, false},
      {"no number", 1, (double)NAN, 1e6, false},
      {"infinite", 1, -(double)INFINITY, 1e6, false},
      {"the noise counts", 0, 0.0, 1e13, false},
      {"unknown", 0, 0.0, (double)NAN, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check_there(&cases[i], false, 1);
    check_there(&cases[i], true, 1);
    check_there(&cases[i], false, 2);
  }
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
  for (int c = 0; c < record.nrhs; c++)
    if (record.column[c].status == HONE_OK)
      CHECK_LE(record.column[c].error, record.column[c].bound);
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
  enum { ORDER = 32 };
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    double *a = sup_filled((int64_t)ORDER * ORDER, 0.0),
           *b = sup_filled(ORDER, 1.0);
    double *x = sup_filled(ORDER, 0.0);
    hone_options o;
    hone_report report = HONE_REPORT_INIT;
    o = (hone_options)HONE_OPTIONS_INIT;
    o.factor_precision = start;
    gallery_make(gallery_find("moler"), ORDER, 0.0, 1, a, ORDER);
    ct_note("start %d", start);
    CHECK_EQ_INT(
        hone_solve(ORDER, 1, a, ORDER, b, ORDER, x, ORDER, &o, &report),
        HONE_ILL_CONDITIONED);
    CHECK_LT(report.rcond, SUP_EPS);
    CHECK_EQ_INT(report.accepted, 0);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}

TEST(bounds, accept_no_certificate_of_a_huge_condition) {
  enum { ORDER = 60 };
  const hone_request request = {.limit = 1e-10,
                                .structure = HONE_STRUCTURE_GENERAL};
  double *a = sup_filled((int64_t)ORDER * ORDER, 0.0);
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_ladder ladder;
  hone_report report = {.bad_row = -1};
  sup_script *script;
  const hone_engine *engine = sup_scripted(0, "scripted", 64, &script);
  script->ladder = &ladder;
  for (int j = 0; j < ORDER; j++) /* no operation rounds */
    for (int i = 0; i <= j; i++)
      a[i + j * ORDER] = i == j ? 1.0 : -1.0;
  REQUIRE(sup_ladder_create(&ladder, ORDER, &engine, 1, &request, &mem, NULL,
                            &watch) == HONE_OK);
  (void)hone_ladder_factor(&ladder, sup_matrix(ORDER, ORDER, a), &report);
  const hone_certificate *certificate = &ladder.rung[0].certificate;
  CHECK_LT(certificate->rcond_scaled, SUP_EPS);
  CHECK(!certificate->nonsingular);
  hone_ladder_destroy(&ladder);
  sup_free(a);
}
