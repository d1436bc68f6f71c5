/* SPDX-License-Identifier: BSD-3-Clause */
/* Well conditioned matrices whose entries grow during LU with partial pivoting
   by 2^(n-1) or nearly so: the factors in single and in double precision are of
   no use, their pivots may come out as zero, or they overflow. The factors of
   the transpose do not grow. */
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/lu_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum grown {
  WILKINSON, /* 1 on the diagonal and in the last column, -1 below */
  LOST,      /* that, with two such columns, of which double loses what is
                different */
  SHOOTING,  /* Wright (1993): multiple shooting for a linear boundary value
                problem */
  GROWN
} grown;

/* Steps of length 0.3 of y' = [-1/6 1; 1 -1/6] y, with y(0) + y(end) given. */
static double shooting(int64_t n, int64_t i, int64_t j) {
  const double up = exp(0.3 * 5.0 / 6.0), down = exp(-0.3 * 7.0 / 6.0);
  if (i == j || (i < 2 && j == n - 2 + i))
    return 1.0;
  if (i / 2 != j / 2 + 1)
    return 0.0;
  return i % 2 == j % 2 ? -0.5 * (up + down) : -0.5 * (up - down);
}

static double entry(grown kind, int64_t n, int64_t i, int64_t j) {
  if (kind == SHOOTING)
    return shooting(n, i, j);
  if (kind == LOST && j == n - 2)
    return i > n - 4 && i % 2 ? 2.0 : 1.0;
  return i == j || j == n - 1 ? 1.0 : i > j ? -1.0 : 0.0;
}

static double solution(int64_t i) { return (double)(i * 7 % 11) - 5.0; }

/* Complex ones have every second row, and b_i with it, times i. Products of
   integers are exact, so that x is; that of SHOOTING, of condition 17, is to a
   few eps. With both, there are two such matrices along the diagonal, of which
   one is transposed. */
static sys make(grown kind, int parts, int64_t n, bool trans, bool both) {
  sys s = sys_make_of(parts, n, 1);
  const int64_t half = both ? n / 2 : n;
  memset(s.a, 0, (size_t)(n * n * parts) * sizeof *s.a);
  memset(s.b, 0, (size_t)(n * parts) * sizeof *s.b);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t k = parts * (i + j * n) + (parts == 2 && i % 2);
      if (i / half != j / half)
        continue;
      s.a[k] = i < half ? entry(kind, half, i, j)
                        : entry(kind, half, j - half, i - half);
      const int64_t to = trans ? j : i, from = trans ? i : j;
      const int64_t part = parts == 2 && i % 2;
      s.b[parts * to + part] += s.a[k] * solution(from);
    }
  s.options.trans = trans ? HONE_TRANS : HONE_NO_TRANS;
  s.options.deterministic = 1;
  return s;
}

static double error_of(const sys *s) {
  double error = 0.0;
  for (int64_t i = 0; i < s->n * s->parts; i++) {
    const double want = i % s->parts == 0 ? solution(i / s->parts) : 0.0;
    const double d = fabs(s->x[i] - want);
    error = d <= error ? error : d; /* takes NaN */
  }
  return error;
}

/* Is x what it should be, if it was accepted, within the bound that is stated?
 */
static int solve(sys *s) {
  const int st = sys_call(s);
  CHECK_EQ_INT(s->report.status, st);
  if (st == HONE_OK) {
    CHECK_LE(s->report.backward_error, SUP_LIMIT);
    CHECK_LE(error_of(s), 5.0 * s->report.forward_error + 1e-14);
  }
  return st;
}

TEST(growth, is_no_obstacle_where_the_factors_of_the_transpose_do_not_grow) {
  static const int64_t orders[] = {70, 200, 600, 1100};
  for (int at = 0; at < 4 * GROWN * 2 * 2; at++) {
    const int64_t n = orders[at / 2 / 2 / GROWN];
    const grown kind = (grown)(at / 2 / 2 % GROWN);
    const int parts = 1 + at / 2 % 2;
    if (n > 600 && (parts == 2 || (at % 2 && sup_emulated())))
      continue; /* they take long */
    for (int start = 0; start <= HONE_FACTOR_DOUBLE; start++) {
      sys s = make(kind, parts, n, at % 2, false);
      ct_note("kind %d, parts %d, n %d, trans %d, start %d", (int)kind, parts,
              (int)n, at % 2, start);
      s.options.factor_precision = start;
      CHECK_EQ_INT(solve(&s), HONE_OK);
      CHECK_LE(error_of(&s), 5e-13);
      CHECK_LE(s.report.forward_error, 1e-6);
      /* ||A|| ||inv(A)|| is n, 1.5 n to 6 n, and 16 to 19. */
      const double size = kind == SHOOTING ? 17.0 : (double)n;
      CHECK_LE(s.report.rcond, 3.0 / size);
      if (strstr(s.report.path, "double LU of the transpose") != NULL)
        CHECK_GE(s.report.rcond, 0.1 / size);
      else /* complex pivots may be others */
        CHECK(parts == 2 || start < HONE_FACTOR_DOUBLE || n == 70 ||
              (kind == SHOOTING && n < 600));
      sys_discard(&s);
    }
  }
}

TEST(growth, is_found_once_for_all_solves_with_a_kept_solver) {
  enum { N = 300 };
  sys s[] = {make(WILKINSON, 1, N, false, false),
             make(WILKINSON, 1, N, true, false)};
  hone_options options = HONE_OPTIONS_INIT;
  hone_solver *solver = NULL;
  options.factor_precision = HONE_FACTOR_DOUBLE;
  options.deterministic = 1; /* one draw in a hundred finds a power of the
                                useless factors' E that contracts */
  CHECK_EQ_INT(hone_solver_create(&solver, N, &options), HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, s[0].a, N, &s[0].report), HONE_OK);
  for (int k = 0; k < 4; k++) {
    sys *t = &s[k % 2];
    CHECK_EQ_INT(sup_solver_solve(solver, t->options.trans, 1, t->b, N, t->x, N,
                                  NULL, 0, NULL, &t->report),
                 HONE_OK);
    CHECK_LE(error_of(t), 5e-13);
    CHECK_CONTAINS(t->report.path, "double LU of the transpose");
    CHECK_EQ_INT(t->report.fallback_ms > 0.0, 0); /* nothing is factored */
  }
  hone_solver_destroy(&solver);
  sys_discard(&s[0]);
  sys_discard(&s[1]);
}

/* Two columns are the same. */
TEST(growth, hides_no_singular_matrix) {
  static const int64_t orders[] = {70, 200, 600, 1100};
  for (int at = 0; at < 4 * 3; at++) {
    const int64_t n = orders[at / 3];
    sys s = make(WILKINSON, 1, n, false, false);
    ct_note("n %d, start %d", (int)n, at % 3);
    s.options.factor_precision = at % 3;
    memcpy(s.a + (n - 2) * n, s.a + (n - 1) * n, (size_t)n * sizeof *s.a);
    const int st = sys_solve(&s);
    CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(s.report.null_count, 2);
    CHECK_EQ_INT(s.report.null_index[0] + s.report.null_index[1], 2 * n - 3);
    CHECK_EQ_INT(s.report.min_pivot_col >= n - 2, 1);
    sys_discard(&s);
  }
}

/* Neither factorization serves. */
TEST(growth, of_both_factorizations_lets_no_wrong_x_be_accepted) {
  static const int64_t orders[] = {200, 400, 1200, 2100};
  for (int at = 0; at < 4 * 2; at++) {
    sys s = make(WILKINSON, 1, orders[at / 2], at % 2, true);
    ct_note("n %d, trans %d", (int)s.n, at % 2);
    CHECK(solve(&s) >= HONE_OK || s.report.status == HONE_OVERFLOW);
    sys_discard(&s);
  }
}

TEST(growth, engine_of_the_transpose_factors_and_solves) {
  sup_rng rng = {11};
  for (int at = 0; at < ORDERS * 2; at++) {
    const int64_t n = lu_orders[at / 2], k = 1 + at % 3;
    lu f;
    lu_open(&f, &hone_engine_double_transposed, n, 0, 1 + at % 2);
    exact e = exact_make(&rng, n, -1, true);
    double *x = sup_filled(n * k, 0.0), *v = sup_filled(n * k, 0.0), unit;
    for (int64_t i = 0; i < n * k; i++)
      x[i] = 0.5 * sup_uniform(&rng);
    ct_note("n %d", (int)n);
    CHECK_EQ_INT(lu_factor(&f, e.s, n), HONE_OK);
    CHECK_EQ_INT(f.info.zero_pivot, -1);
    for (int trans = 0; trans < 2; trans++) {
      exact_multiply(&e, trans, k, x, v, &unit);
      exact_check_solve(&f, trans, k, x, v, unit);
    }
    sup_free(x);
    sup_free(v);
    exact_lu_free(&e);
    lu_close(&f);
  }
}

TEST(growth, engine_of_the_transpose_knows_row_and_column_of_a_zero_pivot) {
  enum { N = 5 };
  double s[N * N] = {0.0};
  for (int64_t i = 0; i < N; i++) /* row i is 2^-i e_j, j = (i + 2) mod N */
    s[i + (i + 2) % N * N] = ldexp(1.0, -(int)i);
  lu f;
  int64_t row = -1, col = -1;
  lu_open(&f, &hone_engine_double_transposed, N, 0, 1);
  CHECK_EQ_INT(lu_factor(&f, s, N), HONE_OK);
  CHECK_EQ_INT(f.info.zero_pivot, -1);
  f.engine->smallest_pivot(f.self, false, &row, &col);
  CHECK_EQ_INT(row, N - 1);
  CHECK_EQ_INT(col, 1);
  s[3 + 0 * N] = 0.0;
  CHECK_EQ_INT(lu_factor(&f, s, N), HONE_OK);
  CHECK(f.info.zero_pivot == 0 || f.info.zero_pivot == 1);
  f.engine->smallest_pivot(f.self, true, &row, &col);
  CHECK_EQ_INT(row, 3);
  CHECK(col == 0 || col == 1); /* no pivot is left for either */
  lu_close(&f);
}
