/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems from practice: the matrices of tests/matrices (or of the folder that
   HONE_TEST_MATRICES names), mixed units and gradings as in physics, and
   spectra from easy to hopeless. Every x that is accepted is measured again in
   quadruple precision. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/lapack.h"
#include "examples/matrix_market.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A system whose solution x_true is known. */
typedef struct system_of {
  int64_t n;
  double *a, *x_true, *b, *x;
  hone_report report;
  hone_column column;
  int status;
} system_of;

static void open_system(system_of *s, int64_t n) {
  *s = (system_of){.n = n,
                   .a = sup_filled(n * n, 0.0),
                   .x_true = sup_filled(n, 1.0),
                   .b = sup_filled(n, 0.0),
                   .x = sup_filled(n, (double)NAN)};
}

static void close_system(system_of *s) {
  sup_free(s->a);
  sup_free(s->x_true);
  sup_free(s->b);
  sup_free(s->x);
}

/* Solves for b = A x_true, and checks the part of the contract that holds for
   every status. */
static void solve_system(system_of *s) {
  hone_options options = HONE_OPTIONS_INIT;
  options.columns = &s->column;
  hone_report_init(&s->report, sizeof s->report);
  sup_multiply(s->n, s->a, s->n, false, s->x_true, s->b);
  for (int64_t i = 0; i < s->n; i++)
    s->x[i] = -7.25;
  s->status = hone_solve(s->n, 1, s->a, s->n, s->b, s->n, s->x, s->n, &options,
                         &s->report);
  CHECK_EQ_INT(s->status, s->report.status);
  if (s->status < 0) {
    CHECK(sup_untouched(s->x, s->n, -7.25));
    return;
  }
  double omega = sup_backward_error(s->n, s->a, s->n, false, s->x, s->b);
  CHECK_NEAR(omega, s->report.backward_error, 0.01 * omega);
  if (s->status == HONE_OK)
    CHECK_LE(omega, SUP_LIMIT);
  else
    CHECK(s->report.reason[0] != '\0');
}

/* ||x - x_true|| / ||x|| in the 1-norm, like the report's bound. */
static double error_in_norm1(const system_of *s) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < s->n; i++) {
    error += fabs(s->x[i] - s->x_true[i]);
    size += fabs(s->x[i]);
  }
  return error > 0.0 ? error / size : error;
}

static double worst_component(const system_of *s, const double *x) {
  double worst = 0.0;
  for (int64_t i = 0; i < s->n; i++)
    worst = fmax(worst, fabs(x[i] - s->x_true[i]) / fabs(s->x_true[i]));
  return worst;
}

/* Real matrices ------------------------------------------------------------ */

/* b is A ones with an error of eps / 2, which moves the solution by at most
   cond(A) eps. The error of x must not exceed that and its bound. */
static void check_file(const char *path, bool must_be_solved, int *solved) {
  mm_matrix m;
  char message[400];
  int read = mm_read_file(path, &m, message, sizeof message);
  ct_note("%s: %s", path, message);
  if (!CHECK_EQ_INT(read, MM_OK) || !CHECK_EQ_INT(m.rows, m.cols) ||
      m.is_complex) {
    mm_free(&m);
    return;
  }
  system_of s;
  open_system(&s, m.rows);
  memcpy(s.a, m.a, (size_t)(m.rows * m.rows) * sizeof *s.a);
  mm_free(&m);
  solve_system(&s);
  if (must_be_solved)
    CHECK_EQ_INT(s.status, HONE_OK);
  if (s.status == HONE_OK) {
    *solved += 1;
    CHECK_LE(error_in_norm1(&s),
             s.column.forward_error + SUP_EPS / s.report.rcond);
  }
  close_system(&s);
}

TEST(matrices, from_files_are_solved_or_reported_as_not_solved) {
  const char *folder = getenv("HONE_TEST_MATRICES");
  const bool ours = folder == NULL;
  char path[1200];
  int solved = 0;
  DIR *dir = opendir(ours ? "tests/matrices" : folder);
  REQUIRE(dir != NULL);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    const char *end = strrchr(entry->d_name, '.');
    if (end == NULL || strcmp(end, ".mtx") != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", ours ? "tests/matrices" : folder,
             entry->d_name);
    check_file(path, ours, &solved);
  }
  closedir(dir);
  ct_note(NULL);
  CHECK_GE(solved, ours ? 7 : 1);
}

/* Mixed units -------------------------------------------------------------- */

/* B^T B, which squares the condition of B. */
static void make_spd(sup_rng *rng, int64_t n, double cond, double *k) {
  double *b = sup_filled(n * n, 0.0);
  sup_matrix_cond(rng, n, SUP_GEOMETRIC, sqrt(cond), b, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) {
      double sum = 0.0;
      for (int64_t l = 0; l < n; l++)
        sum += b[l + i * n] * b[l + j * n];
      k[i + j * n] = k[j + i * n] = sum;
    }
  sup_free(b);
}

/* 10^U(-d, d). */
static double unit(sup_rng *rng, double d) {
  return pow(10.0, 2.0 * d * sup_uniform(rng));
}

static double dgesv_component_error(const system_of *s) {
  int n = (int)s->n, one = 1, info = 0;
  double *a = sup_copy(s->a, s->n * s->n), *x = sup_copy(s->b, s->n);
  int *ipiv = malloc((size_t)n * sizeof *ipiv);
  if (ipiv == NULL)
    abort();
  dgesv_(&n, &one, a, &n, ipiv, x, &n, &info);
  CHECK_EQ_INT(info, 0);
  double error = worst_component(s, x);
  sup_free(a);
  sup_free(x);
  free(ipiv);
  return error;
}

static int by_size(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

/* D K D, as for stiffness in displacements and rotations. Scaling and the
   componentwise criterion gain five digits over plain double (measured: factors
   of 9e4 to 2.5e6); the median of five matrices counts. */
TEST(matrices, of_mixed_units_are_solved_five_digits_better_than_by_dgesv) {
  enum { N = 300, SEEDS = 5 };
  double gain[SEEDS], d[N];
  for (int seed = 0; seed < SEEDS; seed++) {
    sup_rng rng = {(uint64_t)seed + 1};
    system_of s;
    open_system(&s, N);
    make_spd(&rng, N, 3.0, s.a);
    for (int i = 0; i < N; i++)
      d[i] = unit(&rng, 4.0);
    for (int i = 0; i < N * N; i++)
      s.a[i] *= d[i % N] * d[i / N];
    ct_note("seed %d", seed);
    solve_system(&s);
    CHECK_EQ_INT(s.status, HONE_OK);
    double error = worst_component(&s, s.x);
    CHECK_LE(error, 1e-8);
    gain[seed] = dgesv_component_error(&s) / error;
    close_system(&s);
  }
  qsort(gain, SEEDS, sizeof *gain, by_size);
  CHECK_GE(gain[SEEDS / 2], 1e5);
}

/* Uniform random matrices whose columns, rows, or both have units 10^U(-8,
   8). */
TEST(matrices, with_rows_and_columns_in_any_units_lose_no_digits) {
  enum { N = 300 };
  for (int kind = 1; kind <= 3; kind++)
    for (int seed = 0; seed < 3; seed++) {
      sup_rng rng = {(uint64_t)seed};
      double row[N], col[N];
      system_of s;
      open_system(&s, N);
      sup_random(&rng, N, N, s.a, N);
      for (int i = 0; i < N; i++) {
        row[i] = kind & 1 ? unit(&rng, 8.0) : 1.0;
        col[i] = kind & 2 ? unit(&rng, 8.0) : 1.0;
        s.x_true[i] = sup_normal(&rng) / col[i];
      }
      for (int i = 0; i < N * N; i++)
        s.a[i] *= row[i % N] * col[i / N];
      ct_note("kind %d, seed %d", kind, seed);
      solve_system(&s);
      CHECK_EQ_INT(s.status, HONE_OK);
      CHECK_EQ_INT(s.report.precision, 32);
      double error = 0.0, size = 0.0; /* in the units of the columns */
      for (int i = 0; i < N; i++) {
        error = fmax(error, fabs(s.x[i] - s.x_true[i]) * col[i]);
        size = fmax(size, fabs(s.x_true[i]) * col[i]);
      }
      CHECK_LE(error / size, 1e-11);
      close_system(&s);
    }
}

/* Spectra ------------------------------------------------------------------ */

/* A matrix of that spectrum, whose entries are multiples of 2^-49 below 16, and
   a solution of ones and minus ones. As ||A|| = 1 and ||x|| = sqrt(n) < 16,
   every entry of A x is a double, so that x_true is the exact solution.
   Singular values below 1e-14 are lost when A is rounded so. */
static void make_spectrum(sup_rng *rng, system_of *s, int mode, double cond) {
  sup_matrix_cond(rng, s->n, mode, cond, s->a, s->n);
  for (int64_t i = 0; i < s->n * s->n; i++)
    s->a[i] = rint(s->a[i] * 0x1p49) * 0x1p-49;
  for (int64_t i = 0; i < s->n; i++)
    s->x_true[i] = sup_next(rng) & 1 ? 1.0 : -1.0;
}

static void check_spectra(int64_t n) {
  for (int mode = SUP_ONE_LARGE; mode <= SUP_LOG_UNIFORM; mode++)
    for (int digits = 1; digits <= 15; digits++) {
      sup_rng rng = {(uint64_t)(100 * mode + digits)};
      system_of s;
      ct_note("n = %d, mode %d, condition 1e%d", (int)n, mode, digits);
      open_system(&s, n);
      make_spectrum(&rng, &s, mode, pow(10.0, digits));
      solve_system(&s);
      if (digits <= 12)
        CHECK_EQ_INT(s.status, HONE_OK);
      if (s.status == HONE_OK)
        CHECK_LE(error_in_norm1(&s), s.column.forward_error);
      close_system(&s);
    }
}

TEST(matrices, of_condition_up_to_1e12_are_solved_at_order_50) {
  check_spectra(50);
}

TEST(matrices, of_condition_up_to_1e12_are_solved_at_order_200) {
  check_spectra(200);
}
