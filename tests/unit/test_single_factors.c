/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors in single precision without refinement (api/single_factors.h), on the
   host and on a device: what they solve, what they refuse, and who may use
   them. */
#include "api/single_factors.h"

#include "refine/scale.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/entries.h"
#include "tests/unit/heap.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A system of which x is known. */
typedef struct known {
  int64_t n, lda;
  hone_entry *a, *x, *b;
  hone_single_factors *factors;
  hone_single_account account;
  hone_options options;
} known;

/* Diagonally dominant: of condition about 2. */
static known make_known(int64_t n, int device) {
  sup_rng rng = {(uint64_t)n};
  known k = {.n = n,
             .lda = n + 3,
             .a = entries_filled((n + 3) * n, 3.0),
             .x = entries_filled(n, 0.0),
             .b = entries_filled(n, 0.0),
             .options = HONE_OPTIONS_INIT};
  entries_random(&rng, n, n, k.a, k.lda);
  for (int64_t i = 0; i < n; i++)
    k.a[i + i * k.lda] += (double)n;
  entries_random(&rng, n, 1, k.x, n);
  k.options.device = device;
  k.options.threads = 2;
  return k;
}

static int make(known *k) {
  return hone_single_functions()->make(k->n, k->a, k->lda, &k->options,
                                       &k->factors, &k->account);
}

static void discard(known *k) {
  hone_single_functions()->destroy(&k->factors);
  CHECK(k->factors == NULL);
  entries_free(k->a);
  entries_free(k->x);
  entries_free(k->b);
}

/* b = op(A) x; 'C' conjugates. */
static void multiply(const known *k, char trans) {
  hone_entry *x = entries_copy(k->x, k->n);
  for (int64_t i = 0; i < k->n && trans == 'C'; i++)
    x[i] = hone_conj(x[i]);
  entries_multiply(k->n, k->a, k->lda, trans != 'N', x, k->b);
  for (int64_t i = 0; i < k->n && trans == 'C'; i++)
    k->b[i] = hone_conj(k->b[i]);
  entries_free(x);
}

/* Solves for 'columns' multiples of b. The factors and the solution have errors
   of a few 2^-24 n^(1/2), with the condition 2. */
static void check_solution(known *k, char trans, int64_t columns) {
  const int64_t ld = k->n + 1;
  hone_entry *v = entries_filled(ld * columns, 5.0);
  multiply(k, trans);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t i = 0; i < k->n; i++)
      v[i + c * ld] = hone_times((double)(c + 1), k->b[i]);
  REQUIRE(hone_single_functions()->solve(k->factors, trans, columns, v, ld) ==
          HONE_OK);
  for (int64_t c = 0; c < columns; c++) {
    for (int64_t i = 0; i < k->n; i++)
      v[i + c * ld] = hone_times(1.0 / (double)(c + 1), v[i + c * ld]);
    CHECK_LE(entries_forward_error(k->n, v + c * ld, k->x), 0x1p-17);
    CHECK(entries_untouched(v + k->n + c * ld, 1, 5.0));
  }
  entries_free(v);
}

/* A device's residual of A x = b, whatever A was scaled by, is vouched for. */
static void check_residual(known *k) {
  const hone_single_table *table = hone_single_functions();
  hone_entry *r = entries_filled(k->n, 1.0);
  double *den = sup_filled(k->n, 1.0);
  if (k->account.device) {
    multiply(k, 'N');
    CHECK_EQ_INT(table->residual(k->factors, k->x, k->b, r, den), HONE_OK);
    CHECK(table->vouched(k->factors, k->x, k->b, r, den));
  }
  sup_free(den);
  entries_free(r);
}

static void check_orders(int device) {
  static const int64_t orders[] = {1, 2, 33, 129, 450};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    ct_note("n = %d, device %d", (int)orders[i], device);
    known k = make_known(orders[i], device);
    REQUIRE(CHECK_EQ_INT(make(&k), HONE_OK));
    CHECK_EQ_INT(k.account.exponent, 0);
    CHECK(k.account.device == (device == HONE_DEVICE_CUDA));
    CHECK_GE((double)k.account.bytes,
             (double)(k.n * k.n) * sizeof(hone_single));
    check_solution(&k, 'N', 1);
    check_solution(&k, 'T', 3);
    check_solution(&k, 'C', 2);
    check_residual(&k);
    discard(&k);
  }
}

TEST_OF(single_factors, solve_on_the_host) { check_orders(HONE_DEVICE_CPU); }

TEST_OF(single_factors_cuda, solve_on_a_device) {
  NEED_DEVICE();
  check_orders(HONE_DEVICE_CUDA);
}

TEST_OF(single_factors, solve_for_more_columns_than_an_engine) {
  known k = make_known(40, HONE_DEVICE_CPU);
  REQUIRE(make(&k) == HONE_OK);
  check_solution(&k, 'N', 300);
  discard(&k);
}

/* A times 2^e needs a scaling where single precision has no such numbers, and
   the solution is then 2^-e times as large. */
static void check_scale(int device, int e, bool scaled) {
  ct_note("2^%d", e);
  known k = make_known(140, device);
  hone_scale_by(k.lda * k.n - 3, NULL, 1, e, k.a, k.a);
  REQUIRE(CHECK_EQ_INT(make(&k), HONE_OK));
  CHECK(scaled == (k.account.exponent != 0));
  if (abs(e) < 100)
    check_residual(&k);
  multiply(&k, 'N');
  REQUIRE(hone_single_functions()->solve(k.factors, 'N', 1, k.b, k.n) ==
          HONE_OK);
  CHECK_LE(entries_forward_error(k.n, k.b, k.x), 0x1p-17);
  discard(&k);
}

static void check_scales(int device) {
  check_scale(device, 40, false);
  check_scale(device, -40, false);
  check_scale(device, 70, true);
  check_scale(device, -70, true);
  check_scale(device, 900, true);
  check_scale(device, -900, true);
}

TEST_OF(single_factors, serve_entries_of_any_size) {
  check_scales(HONE_DEVICE_CPU);
}

TEST_OF(single_factors_cuda, serve_entries_of_any_size) {
  NEED_DEVICE();
  check_scales(HONE_DEVICE_CUDA);
}

/* The first column and the diagonal are looked at first. They say nothing of
   other entries, which may not fit in single precision. */
TEST_OF(single_factors, see_large_entries_elsewhere) {
  known k = make_known(60, HONE_DEVICE_CPU);
  sup_rng rng = {1};
  entries_random(&rng, k.n, k.n, k.a, k.lda);
  for (int64_t j = 0; j < k.n; j++)
    hone_scale_by(k.n, NULL, 1, j > 0 ? 129 : 50, k.a + j * k.lda,
                  k.a + j * k.lda);
  for (int64_t i = 0; i < k.n; i++)
    k.a[i + i * k.lda] = 0x1p50;
  CHECK_EQ_INT(make(&k), HONE_OK);
  CHECK(k.account.exponent < 0);
  discard(&k);
}

static void check_refusals(int device) {
  known k = make_known(70, device);
  for (int64_t i = 0; i < k.n; i++)
    k.a[i + 5 * k.lda] = k.a[i + 9 * k.lda] = 0.0; /* two columns of zeros */
  CHECK_EQ_INT(make(&k), HONE_SINGULAR);
  CHECK(k.factors == NULL);
  k.a[4 + 6 * k.lda] = entries_ending_in(HONE_NAN);
  CHECK_EQ_INT(make(&k), HONE_NOT_FINITE_A);
  k.a[4 + 6 * k.lda] = entries_ending_in(HUGE_VAL);
  CHECK_EQ_INT(make(&k), HONE_NOT_FINITE_A);
  k.a[4 + 6 * k.lda] = 0.0;
  k.a[0] = entries_ending_in(HONE_NAN); /* among what is looked at first */
  CHECK_EQ_INT(make(&k), HONE_NOT_FINITE_A);
  CHECK(k.factors == NULL);
  for (int64_t i = 0; i < k.lda * k.n; i++)
    k.a[i] = 0.0;
  CHECK_EQ_INT(make(&k), HONE_SINGULAR);
  discard(&k);
}

TEST_OF(single_factors, refuse_singular_matrices_and_nan) {
  check_refusals(HONE_DEVICE_CPU);
}

TEST_OF(single_factors_cuda, refuse_singular_matrices_and_nan) {
  NEED_DEVICE();
  check_refusals(HONE_DEVICE_CUDA);
}

TEST_OF(single_factors, refuse_options_that_hone_solve_refuses) {
  known k = make_known(5, HONE_DEVICE_CPU);
  k.options.device = 77;
  CHECK_EQ_INT(make(&k), HONE_BAD_OPTION);
  CHECK(k.factors == NULL);
  discard(&k);
}

/* ---- Definite matrices --------------------------------------------------- */

/* The matrix of make_known, made symmetric or Hermitian, times sign. */
static known make_definite(int64_t n, int device, double sign) {
  known k = make_known(n, device);
  for (int64_t j = 0; j < n; j++) {
    k.a[j + j * k.lda] = sign * 2.0 * (double)n;
    for (int64_t i = j + 1; i < n; i++) {
      k.a[i + j * k.lda] = hone_times(sign, k.a[i + j * k.lda]);
      k.a[j + i * k.lda] = hone_conj(k.a[i + j * k.lda]);
    }
  }
  k.options.structure = HONE_STRUCTURE_SPD;
  return k;
}

static void check_definite(int64_t n) {
  ct_note("n = %d", (int)n);
  known k = make_definite(n, HONE_DEVICE_CUDA, 1.0);
  CHECK(hone_single_functions()->expects_device(n, &k.options));
  REQUIRE(CHECK_EQ_INT(make(&k), HONE_OK));
  CHECK(k.account.device);
  check_solution(&k, 'N', 1);
  check_solution(&k, 'T', 3);
  check_solution(&k, 'C', 2);
  check_residual(&k);
  discard(&k);
}

/* Cholesky shows by what it refuses. */
TEST_OF(single_factors_cuda, of_definite_matrices_are_those_of_cholesky) {
  NEED_DEVICE();
  check_definite(33);
  check_definite(450);
  known k = make_definite(140, HONE_DEVICE_CUDA, -1.0);
  CHECK_EQ_INT(make(&k), HONE_SINGULAR);
  CHECK(k.factors == NULL);
  k.a[0] = entries_ending_in(HONE_NAN);
  CHECK_EQ_INT(make(&k), HONE_NOT_FINITE_A);
  k.options.structure = HONE_STRUCTURE_GENERAL;
  CHECK(hone_single_functions()->expects_device(k.n, &k.options));
  k.a[0] = -280.0;
  CHECK_EQ_INT(make(&k), HONE_OK);
  discard(&k);
}

TEST_OF(single_factors, of_definite_matrices_need_a_device) {
  known k = make_definite(70, HONE_DEVICE_CPU, 1.0);
  CHECK(!hone_single_functions()->expects_device(k.n, &k.options));
  CHECK_EQ_INT(make(&k), HONE_NO_DEVICE);
  CHECK(k.factors == NULL);
  k.options.structure = HONE_STRUCTURE_GENERAL;
  CHECK(!hone_single_functions()->expects_device(k.n, &k.options));
  CHECK_EQ_INT(make(&k), HONE_OK);
  k.options.device = 77;
  CHECK(!hone_single_functions()->expects_device(k.n, &k.options));
  discard(&k);
}

/* ---- Residuals by a device ----------------------------------------------- */

TEST_OF(single_factors, of_the_host_have_no_residual) {
  known k = make_known(50, HONE_DEVICE_CPU);
  double den[50];
  REQUIRE(make(&k) == HONE_OK);
  hone_entry *r = entries_filled(k.n, 1.0);
  const hone_single_table *table = hone_single_functions();
  CHECK_EQ_INT(table->residual(k.factors, k.x, k.b, r, den), HONE_NO_DEVICE);
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  entries_free(r);
  discard(&k);
}

/* The host vouches for what a device finds, and for nothing else. */
TEST_OF(single_factors_cuda, have_residuals_that_the_host_vouches_for) {
  enum { N = 300 };
  NEED_DEVICE();
  known k = make_known(N, HONE_DEVICE_CUDA);
  double den[N];
  REQUIRE(make(&k) == HONE_OK);
  multiply(&k, 'N');
  hone_entry *r = entries_filled(k.n, 1.0), *a = entries_copy(k.a, k.lda * N);
  const hone_single_table *table = hone_single_functions();
  k.x[7] += 0x1p-30;
  for (int64_t i = 0; i < k.lda * N; i++)
    k.a[i] = HONE_NAN; /* it is not read any more */
  REQUIRE(CHECK_EQ_INT(table->residual(k.factors, k.x, k.b, r, den), HONE_OK));
  for (int64_t i = 0; i < N; i++) {
    const hone_entry exact = hone_times(-0x1p-30, a[i + 7 * k.lda]);
    CHECK_LE(hone_abs(r[i] - exact), 4.0 * SUP_EPS * den[i]);
    CHECK_GE(den[i], hone_abs(k.b[i]));
  }
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den)); /* r is too large */
  k.x[7] -= 0x1p-30;
  REQUIRE(table->residual(k.factors, k.x, k.b, r, den) == HONE_OK);
  CHECK(table->vouched(k.factors, k.x, k.b, r, den));
  k.x[3] *= 1.0 + 0x1p-50;
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  REQUIRE(table->residual(k.factors, k.x, k.b, r, den) == HONE_OK);
  CHECK(table->vouched(k.factors, k.x, k.b, r, den));
  const hone_entry was = r[N - 1];
  r[N - 1] += 0x1p-50 * den[N - 1];
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  r[N - 1] = HONE_NAN;
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  r[N - 1] = was;
  den[0] *= 1.5;
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  den[0] = 0.0; /* a row that no sum resolves */
  CHECK(!table->vouched(k.factors, k.x, k.b, r, den));
  entries_free(r);
  entries_free(a);
  discard(&k);
}

/* ---- Who may use them ---------------------------------------------------- */

enum { THREADS = 4, TURNS = 20 };

static void *solve_in_turn(void *arg) {
  known *k = arg;
  intptr_t wrong = 0;
  for (int i = 0; i < TURNS; i++) {
    hone_entry *v = entries_copy(k->b, k->n);
    wrong += hone_single_functions()->solve(k->factors, 'N', 1, v, k->n) !=
                 HONE_OK ||
             !(entries_forward_error(k->n, v, k->x) <= 0x1p-17);
    entries_free(v);
  }
  return (void *)wrong;
}

/* From order 1000 on engines of the host solve by several threads. */
static int64_t order_for(int device) {
  return device == HONE_DEVICE_CPU ? 1000 : 450;
}

static void check_threads(int device) {
  pthread_t threads[THREADS];
  known k = make_known(order_for(device), device);
  REQUIRE(make(&k) == HONE_OK);
  multiply(&k, 'N');
  for (int t = 0; t < THREADS; t++)
    REQUIRE(pthread_create(&threads[t], NULL, solve_in_turn, &k) == 0);
  for (int t = 0; t < THREADS; t++) {
    void *wrong = NULL;
    pthread_join(threads[t], &wrong);
    CHECK(wrong == NULL);
  }
  discard(&k);
}

TEST_OF(single_factors, serve_threads_in_turn) {
  check_threads(HONE_DEVICE_CPU);
}

TEST_OF(single_factors_cuda, serve_threads_in_turn) {
  NEED_DEVICE();
  check_threads(HONE_DEVICE_CUDA);
}

/* In the child of a fork: the host's factors solve, a device's do not. */
static int solve_in_child(known *k) {
  hone_entry *v = entries_copy(k->b, k->n);
  const int st = hone_single_functions()->solve(k->factors, 'N', 1, v, k->n);
  hone_single_functions()->destroy(&k->factors);
  if (k->account.device)
    return st != HONE_NO_DEVICE;
  return st != HONE_OK || !(entries_forward_error(k->n, v, k->x) <= 0x1p-17);
}

static void check_fork(int device) {
  known k = make_known(order_for(device), device);
  int status = -1;
  REQUIRE(make(&k) == HONE_OK);
  multiply(&k, 'N');
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(solve_in_child(&k));
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_EQ_INT(WEXITSTATUS(status), 0);
  check_solution(&k, 'N', 1);
  discard(&k);
}

TEST_OF(single_factors, solve_in_the_child_of_a_fork) {
  check_fork(HONE_DEVICE_CPU);
}

TEST_OF(single_factors_cuda, of_a_device_do_not_solve_in_the_child_of_a_fork) {
  NEED_DEVICE();
  check_fork(HONE_DEVICE_CUDA);
}

/* ---- Failures ------------------------------------------------------------ */

TEST_OF(single_factors, give_everything_back_when_memory_is_refused) {
  heap h;
  known k = make_known(450, HONE_DEVICE_CPU);
  int st = HONE_NO_MEMORY;
  for (int64_t at = 0; st != HONE_OK; at++) {
    REQUIRE(at < 100);
    heap_use(&k.options, &h);
    h.fail_at = at;
    st = make(&k);
    CHECK(st == HONE_OK || (h.failed && st == HONE_NO_MEMORY));
    CHECK((k.factors != NULL) == (st == HONE_OK));
    CHECK(st == HONE_OK || h.blocks == 0);
    if (st == HONE_OK && h.failed) { /* one thread does it: there is no pool */
      check_solution(&k, 'N', 1);
      hone_single_functions()->destroy(&k.factors);
      st = HONE_NO_MEMORY;
    }
  }
  h.fail_at = h.calls; /* a solution may need some */
  multiply(&k, 'N');
  st = hone_single_functions()->solve(k.factors, 'N', 1, k.b, k.n);
  CHECK(st == (h.failed ? HONE_NO_MEMORY : HONE_OK));
  hone_single_functions()->destroy(&k.factors);
  heap_check(&h);
  discard(&k);
}

/* Where a call of CUDA fails, the host makes the factors. */
TEST_OF(single_factors_cuda, come_from_the_host_when_a_device_fails) {
  NEED_DEVICE();
  known k = make_known(90, HONE_DEVICE_CUDA);
  bool failed = true;
  for (int64_t at = 1; failed; at += 1 + at / 8) {
    ct_note("call %d", (int)at);
    (void)hone_release_kept();
    failing_calls.fail_at = at;
    const int st = make(&k);
    failed = failing_calls.fail_at == 0;
    failing_calls.fail_at = 0;
    REQUIRE(CHECK_EQ_INT(st, HONE_OK) || st == HONE_NO_DEVICE);
    if (!failed)
      CHECK(k.account.device);
    if (st == HONE_OK)
      check_solution(&k, 'N', 1);
    hone_single_functions()->destroy(&k.factors);
  }
  discard(&k);
}
