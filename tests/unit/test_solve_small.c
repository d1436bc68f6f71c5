/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_solve where the kernels of batches serve it (api/solve_small.c): what it
   promises holds there as it does by a solver, which solves the same systems
   with options.deterministic, and whatever the kernels leave. */
#include "tests/unit/small_trial.h"

/* The report describes the matrix as a solver's report does: norms are
   sums in another order, estimates have another start, and pivots of a
   transposed matrix are others. */
static void check_matrix(const trial *t, const hone_report *by_solver) {
  const hone_report *r = &t->report, *s = by_solver;
  const double sums = 4.0 * (double)t->n * SUP_EPS;
  const bool turned = (t->options.trans != HONE_NO_TRANS) !=
                      (t->options.layout == HONE_ROW_MAJOR);
  CHECK_NEAR(r->norm1, s->norm1, sums * s->norm1);
  CHECK_NEAR(r->max_abs, s->max_abs, 8.0 * SUP_EPS * s->max_abs);
  CHECK_NEAR(r->min_abs, s->min_abs, 8.0 * SUP_EPS * s->min_abs);
  CHECK_LE(r->rcond, 10.0 * s->rcond);
  CHECK_LE(s->rcond, 10.0 * r->rcond);
  /* Large complex ones have factors in single precision. */
  CHECK_LE(r->growth, (turned ? 8.0 : 1.0 + 1e-3) * s->growth);
  CHECK_LE(s->growth, (turned ? 8.0 : 1.0 + 1e-3) * r->growth);
  CHECK_NEAR(r->tolerance, s->tolerance, 0.0);
  CHECK_EQ_INT(r->structure, s->structure);
  CHECK_EQ_INT(r->precision, 64);
  CHECK_EQ_INT(r->threads, s->threads);
  CHECK_STR(r->device, s->device);
  CHECK_EQ_INT(r->host_bytes > 0, 1);
  CHECK_EQ_INT(r->min_pivot_row, s->min_pivot_row);
  CHECK_EQ_INT(r->bad_row, s->bad_row);
  CHECK_LE(r->factor_ms + r->refine_ms, r->total_ms);
  CHECK(r->factor_ms > 0.0 && r->refine_ms > 0.0);
}

/* ---- What is served ----------------------------------------------------- */

static void check_form(int parts, int64_t n, int64_t nrhs, int form) {
  trial t = make(parts, n, nrhs);
  set_form(&t, form);
  ct_note("parts %d, n %d, nrhs %d, form %d", parts, (int)n, (int)nrhs, form);
  const int st = solve(&t);
  check_solved(&t, st);
  CHECK(by_kernels(&t));
  const hone_report by_kernels_ = t.report;
  t.options.deterministic = 1;
  check_solved(&t, solve(&t));
  CHECK(!by_kernels(&t));
  const hone_report by_solver = t.report;
  t.report = by_kernels_;
  check_matrix(&t, &by_solver);
  CHECK_CONTAINS(t.report.path, form < 6 ? "double LU, " : "double Cholesky, ");
  discard(&t);
}

TEST(solve_small, systems_of_every_form_are_solved_as_by_a_solver) {
  static const int64_t orders[] = {4,  5,  8,  15, 16, 17,  31, 32,
                                   33, 64, 95, 96, 97, 130, 256};
  static const int64_t columns[] = {1, 2, 16};
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
    for (int form = 0; form < 12; form++) {
      if (orders[k] > 97 && form % 3 == 1)
        continue;
      check_form(1, orders[k], columns[(k + (size_t)form) % 3], form);
      check_form(2, orders[k], columns[(k + (size_t)form) % 3], form);
    }
}

/* The growth of L D L^H is said as that of U^H U: u_12 is the largest here. */
TEST(solve_small, growth_of_definite_matrices_is_that_of_cholesky) {
  for (int parts = 1; parts <= 2; parts++) {
    trial t = make(parts, 2, 1);
    set_form(&t, 6);
    make_hermitian(&t, 1.0);
    entry(&t, 1, 1)[0] = 3.9;
    entry(&t, 0, 1)[0] = entry(&t, 1, 0)[0] = 1.8;
    if (parts == 2)
      entry(&t, 0, 1)[1] = entry(&t, 1, 0)[1] = 0.0;
    check_solved(&t, solve(&t));
    CHECK(by_kernels(&t));
    CHECK_NEAR(t.report.growth, 1.8 * 1.8 / 3.9, 1e-14);
    t.options.deterministic = 1;
    check_solved(&t, solve(&t));
    CHECK_NEAR(t.report.growth, 1.8 * 1.8 / 3.9, 1e-6);
    discard(&t);
  }
}

/* A claim is not believed: all of A is read for residuals. */
TEST(solve_small, matrices_that_are_not_definite_as_claimed_are_solved_too) {
  for (int at = 0; at < 2 * 3; at++) {
    trial t = make(1 + at % 2, 70, 1);
    set_form(&t, 6);
    ct_note("parts %d, claim %d", t.parts, at / 2);
    if (at / 2 == 0)
      entry(&t, 40, 40)[0] *= -1.0;
    else if (at / 2 == 1)
      entry(&t, 3, 50)[0] += 1.0;
    else
      make_hermitian(&t, 0.0);
    check_solved(&t, solve(&t));
    CHECK(!by_kernels(&t));
    discard(&t);
  }
}

/* Such a matrix of a single vector is factored as it is, both triangles, and
   its factors are not symmetric either. */
TEST(solve_small, rcond_is_not_taken_from_a_wrong_claim) {
  const double a[4] = {0x1.9f90d509dfc6p-2, -0x1.f8faa244d6098p-8,
                       -0x1.d3d7763af875ap-1, 0x1.1c4056b3d6f22p-6};
  const double b[2] = {0.3, 0.7};
  const double det = fabs(fma(a[0], a[3], -a[1] * a[2]));
  const double norm = fabs(a[2]) + fabs(a[3]); /* of A, and of its adjugate */
  const double other = fabs(a[2]) + fabs(a[0]);
  double x[2];
  hone_options o = HONE_OPTIONS_INIT;
  hone_report r = HONE_REPORT_INIT;
  o.structure = HONE_STRUCTURE_SPD;
  CHECK_EQ_INT(hone_solve(2, 1, a, 2, b, 2, x, 2, &o, &r), HONE_OK);
  CHECK_LE(r.rcond, 3.0 * det / norm / other);
  CHECK_LE(det / norm / other, 3.0 * r.rcond);
}

/* Without a report, and with one, x has the same bits. */
TEST(solve_small, x_does_not_depend_on_who_asks_for_a_report) {
  for (int parts = 1; parts <= 2; parts++)
    for (int form = 0; form < 6; form += 3) {
      trial t = make(parts, 40, 2);
      set_form(&t, form);
      const int64_t count = parts * t.ldx * t.nrhs;
      check_solved(&t, solve(&t));
      double *x = sup_copy(t.x, count);
      const either_call call = {parts, t.n,   t.nrhs, t.a,  t.lda,
                                t.b,   t.ldb, t.x,    t.ldx};
      t.options.columns = NULL;
      CHECK_EQ_INT(either_call_solve(&call, &t.options, NULL), HONE_OK);
      CHECK_MEM_EQ(x, t.x, (size_t)count * sizeof *x);
      sup_free(x);
      discard(&t);
    }
}

/* Rows and columns of very different units: scaled by powers of two. */
TEST(solve_small, systems_of_mixed_units_are_described_in_the_callers) {
  static const int spread[] = {0, 1, 40, 120};
  for (int at = 0; at < 2 * 4 * 2; at++) {
    const int units = spread[at / 2 % 4];
    trial t = make(1 + at % 2, 50, 1);
    set_form(&t, at < 8 ? 0 : 3);
    ct_note("parts %d, units %d, form %d", t.parts, units, at < 8 ? 0 : 3);
    for (int64_t j = 0; j < t.n; j++)
      for (int64_t i = 0; i < t.n; i++)
        for (int q = 0; q < t.parts; q++)
          entry(&t, i, j)[q] =
              ldexp(entry(&t, i, j)[q],
                    units * (int)(i % 3 - 1) + units * (int)(j % 2));
    check_solved(&t, solve(&t));
    CHECK(by_kernels(&t));
    const hone_report by_kernels_ = t.report;
    CHECK_EQ_INT(by_kernels_.scale_exponent_max > 0, units > 1);
    CHECK_EQ_INT(by_kernels_.scale_exponent_min<0, units> 1);
    t.options.deterministic = 1;
    check_solved(&t, solve(&t));
    CHECK_NEAR(by_kernels_.norm1, t.report.norm1, 1e-13 * t.report.norm1);
    CHECK_NEAR(by_kernels_.max_abs, t.report.max_abs, 1e-15 * t.report.max_abs);
    CHECK_NEAR(by_kernels_.min_abs, t.report.min_abs, 1e-15 * t.report.min_abs);
    CHECK_LE(by_kernels_.rcond, 10.0 * t.report.rcond);
    CHECK_LE(t.report.rcond, 10.0 * by_kernels_.rcond);
    discard(&t);
  }
}

/* A small row counts for the 1-norm of the inverse with all of a column, a
   small column with one entry of each. */
TEST(solve_small, rcond_is_that_of_the_norm_of_a_as_it_lies) {
  for (int at = 0; at < 2 * 2 * 6; at++) {
    trial t = make(1 + at % 2, 150, 1);
    set_form(&t, at / 4);
    ct_note("parts %d, form %d, a small %s", t.parts, at / 4,
            at / 2 % 2 ? "column" : "row");
    for (int64_t k = 0; k < t.n; k++)
      for (int q = 0; q < t.parts; q++)
        (at / 2 % 2 ? entry(&t, k, 7) : entry(&t, 7, k))[q] *= 0x1p-60;
    check_solved(&t, solve(&t));
    CHECK(by_kernels(&t));
    const double rcond = t.report.rcond;
    t.options.deterministic = 1;
    check_solved(&t, solve(&t));
    CHECK_LE(rcond, 10.0 * t.report.rcond);
    CHECK_LE(t.report.rcond, 10.0 * rcond);
    discard(&t);
  }
}

/* Solves for an exact b = A x_true, x_true being whole numbers: the bound holds
   where it is stated. Returns true if the kernels served. */
static bool serve_whole_numbers(trial *t) {
  memset(t->b, 0, (size_t)t->n * sizeof *t->b);
  for (int64_t e = 0; e < t->n * t->n; e++)
    t->b[e % t->n] +=
        *entry(t, e % t->n, e / t->n) * (double)(e / t->n % 8 - 4);
  double error = 0.0, size = 0.0;
  const int st = solve(t);
  for (int64_t i = 0; i < t->n; i++) {
    error = fmax(error, fabs(t->x[i] - (double)(i % 8 - 4)));
    size = fmax(size, fabs(t->x[i]));
  }
  CHECK_LE(error, t->report.forward_error * size);
  return st == HONE_OK && by_kernels(t);
}

TEST(solve_small, bounds_hold_up_to_a_condition) {
  int served = 0;
  for (int k = 0; k < 60; k++) {
    trial t = make(1, 6 + k, 1);
    sup_rng rng = {(uint64_t)k};
    double *m = sup_filled(t.n * t.n, 0.0);
    sup_matrix_cond(&rng, t.n, SUP_GEOMETRIC, pow(10.0, k % 15), m, t.n);
    for (int64_t e = 0; e < t.n * t.n; e++) /* b has at most 50 digits */
      *entry(&t, e % t.n, e / t.n) = ldexp(nearbyint(ldexp(m[e], 40)), -40);
    ct_note("n %d, condition 1e%d", (int)t.n, k % 15);
    served += serve_whole_numbers(&t);
    sup_free(m);
    discard(&t);
  }
  CHECK_LE(30, served);
}

TEST(solve_small, columns_that_are_nearly_equal_are_served_with_a_true_bound) {
  sup_rng rng = {5};
  for (int at = 0; at < 16; at++) {
    trial t = make(1, 32 << at % 4, 1);
    for (int64_t e = 0; e < t.n * t.n; e++)
      *entry(&t, e % t.n, e / t.n) = nearbyint(200.0 * sup_uniform(&rng));
    for (int64_t i = 0; i < t.n; i++)
      *entry(&t, i, 1) = *entry(&t, i, 0) + nearbyint(8.0 * sup_uniform(&rng)) *
                                                ldexp(1.0, -18 - at / 4 * 3);
    CHECK(serve_whole_numbers(&t));
    discard(&t);
  }
}

/* ---- What a solver serves ----------------------------------------------- */

static int ask(void *user, const hone_progress *event) {
  (void)event;
  ++*(int *)user;
  return 0;
}

typedef void setting(trial *t, double *vector, int *count);
static void want_x0(trial *t, double *vector, int *count) {
  (void)count;
  t->options.x0 = vector;
  t->options.ldx0 = t->n;
}
static void want_bounds(trial *t, double *vector, int *count) {
  (void)count;
  t->options.error_bounds = vector;
  t->options.ld_error_bounds = t->n;
}
static void want_progress(trial *t, double *vector, int *count) {
  (void)vector;
  t->options.progress = ask;
  t->options.progress_user = count;
}
#define SETTING(name, change)                                                  \
  static void name(trial *t, double *vector, int *count) {                     \
    (void)vector, (void)count;                                                 \
    t->options.change;                                                         \
  }
SETTING(want_normwise, criterion = HONE_CRITERION_NORMWISE)
SETTING(want_residual, criterion = HONE_CRITERION_RESIDUAL)
SETTING(want_extra, extra_precise = 1)
SETTING(want_single, factor_precision = HONE_FACTOR_SINGLE)
SETTING(want_deadline, deadline_s = 100.0)
SETTING(want_the_same, deterministic = 1)

TEST(solve_small, options_that_the_kernels_lack_are_a_solvers) {
  static setting *const settings[] = {
      want_x0,    want_bounds, want_progress, want_normwise, want_residual,
      want_extra, want_single, want_deadline, want_the_same};
  for (int at = 0; at < 2 * 9; at++) {
    trial t = make(1 + at % 2, 30, 1);
    double *vector = sup_filled(t.parts * t.n, 0.0);
    int count = 0;
    make_hermitian(&t, 40.0);
    settings[at / 2](&t, vector, &count);
    ct_note("parts %d, setting %d", t.parts, at / 2);
    CHECK_EQ_INT(solve(&t), HONE_OK);
    CHECK(!by_kernels(&t));
    CHECK_EQ_INT(count > 0, settings[at / 2] == want_progress);
    if (settings[at / 2] == want_bounds)
      CHECK_LE(vector[0], 1e-12);
    sup_free(vector);
    discard(&t);
  }
}

TEST(solve_small, sizes_beyond_the_kernels_are_a_solvers) {
  static const int64_t sizes[][2] = {{257, 1}, {20, 17}, {3, 1}};
  for (int at = 0; at < 2 * 3; at++) {
    trial t = make(1 + at % 2, sizes[at / 2][0], sizes[at / 2][1]);
    if (t.n == 3) /* a triangle */
      for (int k = 0; k < t.parts; k++)
        entry(&t, 1, 0)[k] = entry(&t, 2, 0)[k] = entry(&t, 2, 1)[k] = 0.0;
    const int st = solve(&t);
    if (t.n != 3)
      check_solved(&t, st);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK(!by_kernels(&t));
    CHECK_EQ_INT(t.report.structure == HONE_FOUND_TRIANGULAR, t.n == 3);
    discard(&t);
  }
}

/* ---- What the kernels leave --------------------------------------------- */

/* Systems without an x end as by a solver, and x keeps what it held. */
static void check_refused(trial *t, int status) {
  const int64_t count = t->parts * t->ldx * t->nrhs;
  CHECK_EQ_INT(solve(t), status);
  const hone_report first = t->report;
  CHECK(sup_untouched(t->x, count, UNTOUCHED));
  t->options.deterministic = 1;
  CHECK_EQ_INT(solve(t), status);
  CHECK_EQ_INT(first.bad_row, t->report.bad_row);
  CHECK_EQ_INT(first.bad_col, t->report.bad_col);
  CHECK_EQ_INT(first.min_pivot_row, t->report.min_pivot_row);
  CHECK_EQ_INT(first.null_count, t->report.null_count);
  CHECK_EQ_INT(first.accepted, 0);
  CHECK_EQ_INT(first.host_passes, t->report.host_passes);
  CHECK_STR(first.reason, t->report.reason);
  CHECK_STR(first.path, t->report.path);
}

TEST(solve_small, systems_without_an_x_are_refused_as_by_a_solver) {
  for (int at = 0; at < 2 * 6 * 5; at++) {
    trial t = make(1 + at % 2, 30, 2);
    set_form(&t, at / 2 % 6);
    const int what = at / 2 / 6, last = t.parts - 1;
    ct_note("parts %d, form %d, what %d", t.parts, at / 2 % 6, what);
    if (what == 0)
      entry(&t, 20, 11)[last] = (double)NAN;
    else if (what == 1)
      side(&t, 1)[t.parts * 7 + last] = (double)INFINITY;
    for (int64_t i = 0; what >= 2 && i < t.parts * t.n; i++) {
      double *column = entry(&t, 0, 4);
      column[i] = what == 2 ? 0.0 : entry(&t, 0, 9)[i];
    }
    for (int64_t j = 0; what == 4 && j < t.n; j++)
      memcpy(entry(&t, 3, j), entry(&t, 8, j),
             (size_t)t.parts * sizeof(double));
    if (what < 3)
      check_refused(&t, what == 0   ? HONE_NOT_FINITE_A
                        : what == 1 ? HONE_NOT_FINITE_B
                                    : HONE_SINGULAR);
    else
      CHECK(solve(&t) != HONE_OK && t.report.accepted == 0);
    discard(&t);
  }
}

/* The kernels leave so small a b. It is the last of three, of which x takes the
   place: the others must still be there. */
TEST(solve_small, b_is_as_it_was_when_a_column_is_left) {
  for (int parts = 1; parts <= 2; parts++) {
    trial t = make(parts, 33, 3);
    for (int64_t i = 0; i < parts * t.n; i++)
      side(&t, 2)[i] *= 1e-150;
    check_solved(&t, solve(&t));
    CHECK(!by_kernels(&t));
    const either_call call = {parts, t.n,   3,   t.a,  t.lda,
                              t.b,   t.ldb, t.b, t.ldb};
    CHECK_EQ_INT(either_call_solve(&call, &t.options, NULL), HONE_OK);
    for (int64_t c = 0; c < 3; c++)
      CHECK_MEM_EQ(side(&t, c), t.x + parts * c * t.ldx,
                   (size_t)(parts * t.n) * sizeof *t.x);
    discard(&t);
  }
}

TEST(solve_small, b_of_zeros_has_an_x_of_zeros) {
  for (int parts = 1; parts <= 2; parts++) {
    trial t = make(parts, 33, 2);
    memset(side(&t, 1), 0, (size_t)(parts * t.n) * sizeof(double));
    check_solved(&t, solve(&t));
    for (int64_t i = 0; i < parts * t.n; i++)
      CHECK_NEAR(t.x[parts * t.ldx + i], 0.0, 0.0);
    discard(&t);
  }
}

/* Near the ends of the range the kernels leave the system. */
TEST(solve_small, systems_at_the_ends_of_the_range_are_solved) {
  static const double scales[] = {1e-300, 1e-95, 1e-60, 1e60, 1e95, 1e300};
  for (int at = 0; at < 2 * 6 * 2; at++) {
    trial t = make(1 + at % 2, 20, 1);
    const double by = scales[at / 2 % 6];
    ct_note("parts %d, scale %g, of %s", t.parts, by, at < 12 ? "A" : "b");
    for (int64_t j = 0; j < (at < 12 ? t.n : 1); j++)
      for (int64_t i = 0; i < t.parts * t.n; i++)
        *(at < 12 ? entry(&t, 0, j) + i : t.b + i) *= by;
    for (int64_t i = 0; at < 12 && i < t.parts * t.n; i++)
      t.b[i] *= by;
    check_solved(&t, solve(&t));
    CHECK_EQ_INT(by_kernels(&t), fabs(log10(by)) < 80.0 ||
                                     (at >= 12 && fabs(log10(by)) < 100.0));
    discard(&t);
  }
}

/* No x has so small an error: the best is given, with its status. */
TEST(solve_small, x_that_is_not_accepted_has_a_status) {
  for (int parts = 1; parts <= 2; parts++) {
    trial t = make(parts, 40, 1);
    t.options.tolerance = 1e-19;
    CHECK_EQ_INT(solve(&t), HONE_NOT_CONVERGED);
    CHECK_EQ_INT(t.report.accepted, 0);
    CHECK_LE(t.report.backward_error, SUP_LIMIT);
    CHECK(!by_kernels(&t));
    discard(&t);
  }
}

/* Where memory does not suffice for the kernels, it may for a solver; columns
   of the first version are written as far as they go. */
TEST(solve_small, little_memory_and_early_columns_are_enough) {
  for (int parts = 1; parts <= 2; parts++) {
    trial t = make(parts, 200, 2);
    char column[2][offsetof(hone_column, normwise_error) + 8];
    memset(column, 0x5a, sizeof column);
    t.options.deterministic = 1;
    check_solved(&t, solve(&t));
    t.options.deterministic = 0;
    t.options.memory_limit_bytes = t.report.host_bytes;
    check_solved(&t, solve(&t));
    CHECK(!by_kernels(&t));
    t.options.memory_limit_bytes = 0;
    t.options.columns = (hone_column *)(void *)column;
    t.options.column_size = sizeof column[0] - 8;
    const either_call call = {parts, t.n,   2,   t.a,  t.lda,
                              t.b,   t.ldb, t.x, t.ldx};
    CHECK_EQ_INT(either_call_solve(&call, &t.options, &t.report), HONE_OK);
    CHECK(by_kernels(&t));
    int32_t second;
    memcpy(&second, (char *)column + t.options.column_size, sizeof second);
    CHECK_EQ_INT(second, HONE_OK);
    CHECK_EQ_INT(((char *)column)[2 * t.options.column_size], 0x5a);
    discard(&t);
  }
}
