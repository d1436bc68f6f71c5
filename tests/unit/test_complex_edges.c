/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems: bad input, singular matrices, arrays that are one, kept
   solvers, and requests that are not served. */
#include "base/engine.h"
#include "tests/gallery/either_call.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "base/complex_values.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LIMIT = 4.0 * 0x1p-53 * (1.0 + 1e-10);

TEST(complex_edges, name_the_place_and_the_part_of_nan_and_inf) {
  static const struct {
    double value;
    const char *text;
  } bad[] = {{(double)NAN, "NaN"}, {HUGE_VAL, "Inf"}, {-HUGE_VAL, "-Inf"}};
  const int64_t n = 40;
  hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, 2, 2);
  hone_complex *x = cs_random(n, 2, 3), *was = cs_random(n, 2, 3);
  for (int k = 0; k < 3; k++)
    for (int imaginary = 0; imaginary < 2; imaginary++)
      for (int of_b = 0; of_b < 2; of_b++) {
        hone_report report = HONE_REPORT_INIT;
        hone_options o = HONE_OPTIONS_INIT;
        char text[64];
        hone_complex *at = of_b ? b + 5 + n : a + 5 + n;
        const hone_complex good = *at;
        *at = imaginary ? CMPLX(1.0, bad[k].value) : CMPLX(bad[k].value, 1.0);
        o.trans = k; /* each of them */
        CHECK_EQ_INT(hone_z_solve(n, 2, a, n, b, n, x, n, &o, &report),
                     of_b ? HONE_NOT_FINITE_B : HONE_NOT_FINITE_A);
        CHECK_EQ_INT(report.bad_row, 5);
        CHECK_EQ_INT(report.bad_col, 1);
        snprintf(text, sizeof text, "%s(5, 1) is %s%s", of_b ? "b" : "A",
                 bad[k].text, imaginary ? " in its imaginary part" : "");
        CHECK_STR(report.reason, text);
        CHECK_MEM_EQ(x, was, (size_t)(2 * n) * sizeof *x);
        *at = good;
      }
  free(a);
  free(b);
  free(x);
  free(was);
}

/* Column q is a combination of two others, with Gaussian integers throughout,
   so that A is singular exactly; or a zero row or column. */
static hone_complex *singular(int64_t n, int kind) {
  hone_complex *a = cs_random(n, n, 9);
  const int64_t q = n / 2;
  for (int64_t i = 0; i < n * n; i++)
    a[i] = CMPLX(floor(creal(a[i]) * 8.0), floor(cimag(a[i]) * 8.0));
  for (int64_t i = 0; i < n; i++) {
    if (kind == 0)
      a[i + q * n] = a[i] * CMPLX(0.0, 1.0) - a[i + n];
    else if (kind == 1)
      a[i + q * n] = 0.0;
    else
      a[q + i * n] = 0.0;
  }
  return a;
}

TEST(complex_edges, refuse_singular_matrices) {
  static const int64_t orders[] = {5, 12, 100, 300};
  for (int k = 0; k < 4; k++)
    for (int kind = 0; kind < 3; kind++)
      for (int precision = 0; precision <= HONE_FACTOR_DOUBLE; precision++) {
        const int64_t n = orders[k];
        hone_complex *a = singular(n, kind), *b = cs_random(n, 1, 2);
        hone_complex *x = cs_random(n, 1, 3), *was = cs_random(n, 1, 3);
        hone_options o = HONE_OPTIONS_INIT;
        hone_report report = HONE_REPORT_INIT;
        o.factor_precision = precision;
        ct_note("n = %d, kind = %d, precision = %d", (int)n, kind, precision);
        const int st = hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report);
        /* Rounding errors may leave a pivot that is not zero. */
        CHECK(st == HONE_SINGULAR || (kind == 0 && st == HONE_ILL_CONDITIONED));
        CHECK_EQ_INT(report.accepted, 0);
        CHECK_EQ_INT(report.digits, 0);
        if (st == HONE_SINGULAR)
          CHECK_MEM_EQ(x, was, (size_t)n * sizeof *x);
        if (kind == 1)
          CHECK_EQ_INT(report.bad_col, n / 2);
        if (kind == 2)
          CHECK_EQ_INT(report.bad_row, n / 2);
        /* The three columns move together, with equal weights. */
        CHECK_EQ_INT(report.null_count, kind == 1   ? 1
                                        : kind == 0 ? 3
                                                    : report.null_count);
        for (int64_t i = 0; kind == 0 && i < 3; i++) {
          const int64_t at = report.null_index[i];
          CHECK(at == 0 || at == 1 || at == n / 2);
          CHECK_NEAR(report.null_weight[i], 1.0 / sqrt(3.0), 1e-6);
        }
        free(a);
        free(b);
        free(x);
        free(was);
      }
}

/* Column 9 is i times column 5, and row 20 depends on row 3, and maybe on
   row 4. The left null vector is that of A^H; (i, -1), of two rows, is
   orthogonal to its own conjugate. */
static void check_dependent(int64_t n, int others, int precision) {
  hone_complex *a = cs_random(n, n, 9), *b = cs_random(n, 1, 2);
  hone_complex *x = cs_random(n, 1, 3);
  hone_options o = HONE_OPTIONS_INIT;
  hone_report report = HONE_REPORT_INIT;
  o.factor_precision = precision;
  for (int64_t i = 0; i < n; i++)
    a[i + 9 * n] = a[i + 5 * n] * CMPLX(0.0, 1.0);
  for (int64_t j = 0; j < n; j++)
    a[20 + j * n] =
        a[3 + j * n] * CMPLX(0.0, 1.0) + (others == 2 ? a[4 + j * n] : 0.0);
  const int st = hone_z_solve(n, 1, a, n, b, n, x, n, &o, &report);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  CHECK_EQ_INT(report.accepted, 0);
  CHECK_EQ_INT(report.dependent_count, others + 1);
  for (int64_t i = 0; i <= others; i++) {
    const int64_t at = report.dependent_index[i];
    CHECK(at == 3 || at == 20 || (at == 4 && others == 2));
    CHECK_NEAR(report.dependent_weight[i], 1.0 / sqrt(others + 1.0), 1e-6);
  }
  CHECK_EQ_INT(report.null_count, 2);
  for (int64_t i = 0; i < 2; i++) {
    CHECK(report.null_index[i] == 5 || report.null_index[i] == 9);
    CHECK_NEAR(report.null_weight[i], sqrt(0.5), 1e-6);
  }
  free(a);
  free(b);
  free(x);
}

TEST(complex_edges, name_equations_that_depend_on_one_another) {
  for (int64_t n = 30; n <= 300; n += 270)
    for (int others = 1; others <= 2; others++)
      for (int precision = 0; precision <= HONE_FACTOR_DOUBLE; precision++) {
        ct_note("n = %d, others = %d, precision = %d", (int)n, others,
                precision);
        check_dependent(n, others, precision);
      }
}

/* Numbers at the ends of the range, where |z|^2 overflows or underflows. */
TEST(complex_edges, solve_at_the_ends_of_the_range) {
  static const int exponents[] = {-1000, -600, 600, 1000};
  const int64_t n = 24;
  for (int k = 0; k < 4; k++)
    for (int trans = 0; trans <= HONE_CONJ_TRANS; trans++) {
      hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, 1, 2);
      hone_complex *x = cs_random(n, 1, 3);
      hone_options o = HONE_OPTIONS_INIT;
      const cs_problem p = {.n = n, .lda = n, .a = a, .trans = trans};
      o.trans = trans;
      ct_note("2^%d, trans = %d", exponents[k], trans);
      for (int64_t i = 0; i < n * n; i++)
        a[i] *= ldexp(1.0, exponents[k]);
      for (int64_t i = 0; i < n; i++)
        b[i] *= ldexp(1.0, exponents[k]);
      CHECK_EQ_INT(hone_z_solve(n, 1, a, n, b, n, x, n, &o, NULL), HONE_OK);
      CHECK_LE(cs_backward_error(&p, x, b), LIMIT);
      free(a);
      free(b);
      free(x);
    }
}

/* The modulus of a subnormal number of few bits is no double: that of 3 + 2 i
   is 3.6 or, rounded, 4 of the smallest numbers. Here x = k + l i of them, and
   b is a x but for a few units of rounding. */
TEST(complex_edges, measure_errors_where_the_entries_of_x_are_subnormal) {
  int accepted = 0, count = 0;
  for (int k = 0; k < 64; k++)
    for (int units = 0; units < 12; units++) {
      const double part = 1.0 + units * 0x1p-52;
      const hone_complex a = 0x1p900, was = CMPLX(k % 8, k / 8);
      const hone_complex b =
          CMPLX(k % 8 * part * 0x1p-174, k / 8 * part * 0x1p-174);
      const cs_problem p = {.n = 1, .lda = 1, .a = &a};
      hone_complex x = 0.0;
      double bar = 0.0;
      cs_errors errors;
      hone_column column;
      hone_options o = HONE_OPTIONS_INIT;
      o.columns = &column;
      o.error_bounds = &bar;
      o.ld_error_bounds = 1;
      ct_note("x = %d + %d i, %d units", k % 8, k / 8, units);
      const int st = hone_z_solve(1, 1, &a, 1, &b, 1, &x, 1, &o, NULL);
      const double omega = cs_backward_error(&p, &x, &b);
      CHECK(x == was * 0x1p-1074);
      CHECK_NEAR(column.backward_error, omega, 1e-10 * LIMIT);
      CHECK_EQ_INT(st == HONE_OK, omega <= LIMIT);
      CHECK(cs_compare(&p, &x, &b, &bar, &errors));
      CHECK_LE(errors.forward, column.forward_error);
      CHECK_LE(errors.outside, 1.0);
      accepted += st == HONE_OK;
      count++;
    }
  CHECK(accepted > count / 3 && accepted < count);
}

/* Products with x leave the range, so that x and b are multiplied by 2^-983. An
   imaginary part of 7e-17, beside a real part of 1, then keeps few bits: bounds
   that took the residual of this x for that of the one returned were up to 4.6
   times too small. */
TEST(complex_edges, bounds_hold_where_a_shift_takes_bits_from_a_part) {
  static const double parts[][2] = {
      {0x1.63b2ba0e0df71p+281, 0x1.d4b9d12203a5p+277},
      {0x1.4f8ab53a07d66p+818, -0x1.e792d2132dce4p+816},
      {0x1.3771d89efcc5cp+735, -0x1.15d47d133b739p+737},
      {-0x1.05c8c87ff98cp+313, -0x1.eaab46e226629p+312},
      {0x1.bbe7ef8bb665cp+847, -0x1.2e01c5d42ad04p+848},
      {-0x1.34f85f1992784p+769, 0x1.0eed1bebbb24bp+769},
      {0x1.b31428169fbecp-478, -0x1.a6ba226f315bcp-478},
      {-0x1.5ce1cf5beb776p+59, 0x1.668af4e734543p+60},
      {0x1.871ac5c71aba2p-20, -0x1.1bac097ed3348p-21},
      {-0x1.05c8c87e95d94p+313, -0x1.eaab46e1ebcb5p+312},
      {0x1.bbe7ef9632bb7p+847, -0x1.2e01c5d612631p+848},
      {-0x1.34f85f19449bdp+769, 0x1.0eed1beaa5503p+769}};
  static const double solution[][4] = {
      /* by exact arithmetic: the parts, each as the sum of two doubles */
      {0x1.fffffe6a356c4p-1, 0x1.fbda22fc1f28p-55, 0x1.8fc8dd56f4b86p-24,
       0x1.e1c2670ef745ap-79},
      {1.0, -0x1.ba761dd56cc0cp-55, 0x1.4a67f4a0f450ap-54,
       0x1.026b425124e00p-109},
      {-0x1.3576e97b7a05fp+735, -0x1.ab580a65c155cp+679, 0x1.ee551e86bd683p+733,
       0x1.9a8feda54c906p+679}};
  enum { N = 3 };
  hone_complex a[N * N], b[N], x[N];
  for (int i = 0; i < N * N; i++)
    a[i] = CMPLX(parts[i][0], parts[i][1]);
  for (int i = 0; i < N; i++)
    b[i] = CMPLX(parts[N * N + i][0], parts[N * N + i][1]);
  for (int seed = 0; seed < 20; seed++) {
    double bars[N];
    hone_report r = HONE_REPORT_INIT;
    hone_options o = HONE_OPTIONS_INIT;
    o.structure = HONE_STRUCTURE_GENERAL;
    o.error_bounds = bars;
    o.ld_error_bounds = N;
    CHECK_GE(hone_z_solve(N, 1, a, N, b, N, x, N, &o, &r), HONE_OK);
    for (int i = 0; i < N; i++) {
      const double *s = solution[i];
      const double re = (creal(x[i]) - s[0]) - s[1];
      const double im = (cimag(x[i]) - s[2]) - s[3];
      CHECK_LE(hypot(re, im), bars[i] * (1.0 + 0x1p-40));
    }
  }
}

TEST(complex_edges, let_x_be_b_or_x0) {
  const int64_t n = 50, nrhs = 3;
  for (int trans = 0; trans <= HONE_CONJ_TRANS; trans++) {
    hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, nrhs, 2);
    hone_complex *x = cs_random(n, nrhs, 3), *same = cs_random(n, nrhs, 2);
    const size_t bytes = (size_t)(n * nrhs) * sizeof *x;
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    o.trans = trans;
    o.deterministic = 1;
    ct_note("trans = %d", trans);
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, x, n, &o, NULL), HONE_OK);
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, same, n, same, n, &o, NULL),
                 HONE_OK);
    CHECK_MEM_EQ(x, same, bytes);
    /* x as x0 is accepted as it is, apart from x and in its place. */
    o.x0 = (const double *)same;
    o.ldx0 = n;
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_EQ_INT(report.iterations, 0);
    CHECK_MEM_EQ(x, same, bytes);
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, same, n, &o, &report),
                 HONE_OK);
    CHECK_EQ_INT(report.iterations, 0);
    CHECK_MEM_EQ(x, same, bytes);
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, b + 1, n, &o, NULL),
                 HONE_BAD_OVERLAP);
    free(a);
    free(b);
    free(x);
    free(same);
  }
}

TEST(complex_edges, keep_solvers_and_update_them) {
  const int64_t n = 120;
  for (int precision = 0; precision <= HONE_FACTOR_DOUBLE; precision++) {
    hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, 2, 2);
    hone_complex *x = cs_random(n, 2, 3);
    hone_options o = HONE_OPTIONS_INIT, one = HONE_OPTIONS_INIT;
    hone_z_solver *solver;
    o.factor_precision = precision;
    REQUIRE(hone_z_solver_create(&solver, n, &o) == HONE_OK);
    CHECK_EQ_INT(hone_z_solver_solve(solver, 2, b, n, x, n, NULL, NULL),
                 HONE_NOT_FACTORED);
    CHECK_EQ_INT(hone_z_solver_factor(solver, a, n, NULL), HONE_OK);
    for (int round = 0; round < 2; round++) {
      for (int trans = 0; trans <= HONE_CONJ_TRANS; trans++) {
        const cs_problem p = {.n = n, .lda = n, .a = a, .trans = trans};
        one.trans = trans;
        ct_note("precision = %d, round = %d, trans = %d", precision, round,
                trans);
        CHECK_EQ_INT(hone_z_solver_solve(solver, 2, b, n, x, n, &one, NULL),
                     HONE_OK);
        CHECK_LE(cs_backward_error(&p, x, b), LIMIT);
        CHECK_LE(cs_backward_error(&p, x + n, b + n), LIMIT);
      }
      for (int64_t i = 0; i < n * n; i++)
        a[i] *= CMPLX(1.0, 1e-4 * (double)(i % 7));
      CHECK_EQ_INT(hone_z_solver_update(solver, a, n, NULL), HONE_OK);
    }
    hone_z_solver_destroy(&solver);
    CHECK(solver == NULL);
    free(a);
    free(b);
    free(x);
  }
}

static bool gpu_is_usable(void) {
  char why[160] = "";
  return hone_engine_single_cuda.probe(why, sizeof why);
}

TEST(complex_edges, take_a_gpu_that_is_there_or_say_that_there_is_none) {
  hone_complex a = 2.0, b = 4.0, x = 1.0;
  hone_options o = HONE_OPTIONS_INIT;
  hone_report report = HONE_REPORT_INIT;
  int64_t bytes = 0;
  const int status = gpu_is_usable() ? HONE_OK : HONE_NO_DEVICE;
  o.device = HONE_DEVICE_CUDA;
  CHECK_EQ_INT(hone_z_solve(1, 1, &a, 1, &b, 1, &x, 1, &o, &report), status);
  if (status != HONE_OK)
    CHECK_CONTAINS(report.reason, "options.device: ");
  CHECK(creal(x) == (status == HONE_OK ? 2.0 : 1.0) && cimag(x) == 0.0);
  CHECK_EQ_INT(hone_z_memory_needed(1, 1, &o, &bytes, NULL), status);
  o.device = HONE_DEVICE_AUTO;
  x = 1.0;
  CHECK_EQ_INT(hone_z_solve(1, 1, &a, 1, &b, 1, &x, 1, &o, &report), HONE_OK);
  CHECK(creal(x) == 2.0 && cimag(x) == 0.0);
}

/* hone_z_memory_needed says enough: see report.host_bytes. */
TEST(complex_edges, stay_within_the_memory_that_was_told) {
  static const int64_t orders[] = {1, 40, 200, 600};
  for (int k = 0; k < 4; k++) {
    const int64_t n = orders[k], nrhs = 3;
    hone_complex *a = cs_random(n, n, 1), *b = cs_random(n, nrhs, 2);
    hone_complex *x = cs_random(n, nrhs, 3);
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    int64_t single_bytes, double_bytes;
    CHECK_EQ_INT(
        hone_z_memory_needed(n, nrhs, &o, &single_bytes, &double_bytes),
        HONE_OK);
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, x, n, &o, &report), HONE_OK);
    CHECK_LE(report.host_bytes, single_bytes);
    CHECK_LE(single_bytes, double_bytes);
    o.memory_limit_bytes = 1000 * n;
    CHECK_EQ_INT(hone_z_solve(n, nrhs, a, n, b, n, x, n, &o, &report),
                 HONE_NO_MEMORY);
    free(a);
    free(b);
    free(x);
  }
}

/* So many columns that copies of them are more than the allowance in it. */
TEST(complex_edges, tell_the_memory_of_copies_for_the_adjoint) {
  enum { N = 60, COLUMNS = 12000 };
  hone_complex *a = cs_random(N, N, 1), *b = cs_random(N, COLUMNS, 2);
  hone_complex *x = cs_random(N, COLUMNS, 3), *x0 = cs_random(N, COLUMNS, 4);
  for (int trans = HONE_NO_TRANS; trans <= HONE_CONJ_TRANS; trans++)
    for (int warm = 0; warm < 2; warm++) {
      hone_options o = HONE_OPTIONS_INIT;
      hone_report report = HONE_REPORT_INIT;
      int64_t bytes;
      o.trans = trans;
      o.x0 = warm ? (const double *)x0 : NULL;
      o.ldx0 = warm ? N : 0;
      CHECK_EQ_INT(hone_z_memory_needed(N, COLUMNS, &o, &bytes, NULL), HONE_OK);
      o.memory_limit_bytes = bytes;
      CHECK_EQ_INT(hone_z_solve(N, COLUMNS, a, N, b, N, x, N, &o, &report),
                   HONE_OK);
      CHECK_LE(report.host_bytes, bytes);
    }
  free(a);
  free(b);
  free(x);
  free(x0);
}

static int stop_at_once(void *user, const hone_progress *event) {
  return *(const int *)user == HONE_CANCELLED || event->precision > 0;
}

/* Makes a good call one that ends with this status. a: 4 x 4 */
static void spoil(int status, either_call *call, double *a, hone_options *o) {
  static double other[32];
  if (status == HONE_NOT_CONVERGED || status == HONE_INTERRUPTED)
    o->tolerance = 1e-30;
  if (status == HONE_ILL_CONDITIONED) /* a column is i / 3 times another */
    for (int i = 0; i < 4; i++) {
      a[8 + 2 * i] = -a[2 * i + 1] / 3.0;
      a[8 + 2 * i + 1] = a[2 * i] / 3.0;
    }
  else if (status == HONE_NULL_POINTER)
    call->b = NULL;
  else if (status == HONE_BAD_SIZE)
    call->n = -1;
  else if (status == HONE_BAD_LEADING_DIMENSION)
    call->lda = 3;
  else if (status == HONE_BAD_OPTION)
    o->trans = 3;
  else if (status == HONE_BAD_STRUCT_SIZE)
    o->struct_size = 3;
  else if (status == HONE_BAD_OVERLAP)
    call->x = a;
  else if (status == HONE_NOT_FINITE_A)
    a[9] = HUGE_VAL;
  else if (status == HONE_NOT_FINITE_B) {
    memcpy(other, call->b, 8 * sizeof *other);
    other[7] = (double)NAN;
    call->b = other;
  } else if (status == HONE_SINGULAR)
    memset(a, 0, 8 * sizeof *a);
  else if (status == HONE_OVERFLOW)
    for (int i = 0; i < 32; i++)
      a[i] *= 0x1p-1050;
  else if (status == HONE_NO_MEMORY)
    o->memory_limit_bytes = 1;
  else if (status == HONE_NO_DEVICE)
    o->device = HONE_DEVICE_CUDA;
  else if (status == HONE_INTERRUPTED || status == HONE_CANCELLED)
    o->progress = stop_at_once;
}

/* But for those of a solver (test_busy.c, keep_solvers_and_update_them), two
   that no caller can bring about, and that of a missing GPU where there is
   one. */
TEST(complex_edges, return_every_status) {
#define LISTED(name, number, text) number,
  static const int statuses[] = {HONE_STATUS_LIST(LISTED)};
#undef LISTED
  for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++) {
    int status = statuses[k];
    hone_complex *a = cs_random(4, 4, 1), *b = cs_random(4, 1, 2);
    double x[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    either_call call = {.parts = 2,
                        .n = 4,
                        .nrhs = 1,
                        .a = (double *)a,
                        .lda = 4,
                        .b = (double *)b,
                        .ldb = 4,
                        .x = x,
                        .ldx = 4};
    ct_note("%s", hone_status_text(status));
    o.progress_user = &status;
    spoil(status, &call, (double *)a, &o);
    if (status == HONE_NOT_FACTORED || status == HONE_BUSY ||
        status == HONE_DEVICE_FAILED || status == HONE_INTERNAL ||
        (status == HONE_NO_DEVICE && gpu_is_usable()))
      status = HONE_OK;
    CHECK_EQ_INT(either_call_solve(&call, &o, &report), status);
    for (int i = 0; i < 8; i++)
      CHECK((x[i] == 7.0) == (status < 0));
    free(a);
    free(b);
  }
}
