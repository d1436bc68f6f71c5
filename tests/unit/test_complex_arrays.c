/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex arrays of the caller in device memory: on a GPU where there is one,
   else in the memory of fake_driver.h, which ends the program when the host
   touches it. test_device_arrays.c does so for real arrays. */
#include "base/device_memory.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"

#include "base/complex_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The measured omega and the reported one differ in the rounding of the
   denominators, n eps of them. */
static const double LIMIT = 4.0 * 0x1p-53 * (1.0 + 1e-10);
static const double UNTOUCHED = 77.25;
static const char PROJECTED[] = ", A projected by the device";

enum { A_THERE = 1, B_THERE = 2, X_THERE = 4, X0_THERE = 8, ALL_THERE = 15 };

/* Memory hooks that make one allocation fail, fill memory with NaN, so that an
   entry that was not copied shows, and count what is allocated. */
typedef struct heap {
  int64_t calls, fail_at, blocks;
} heap;

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  void *p = ++h->calls == h->fail_at ? NULL : malloc(bytes);
  h->blocks += p != NULL;
  return p ? memset(p, 0xff, bytes) : NULL;
}

static void give(void *p, void *ctx) {
  heap *h = ctx;
  h->blocks--;
  free(p);
}

typedef struct sys {
  cs_problem p;
  int64_t nrhs, ldb;
  hone_complex *a, *b, *x0; /* a: n x n, p.lda */
  heap heap;
  hone_options options;
} sys;

static void make(sys *s, int family, int64_t n, int64_t nrhs, int64_t pad) {
  hone_complex *dense = cs_matrix(family, n, 7 + (uint64_t)n);
  memset(s, 0, sizeof *s);
  s->p = (cs_problem){.n = n, .lda = n + pad};
  s->nrhs = nrhs;
  s->ldb = n + 2 * pad;
  s->a = (hone_complex *)sup_aligned(2 * s->p.lda * n, UNTOUCHED);
  s->b = (hone_complex *)sup_aligned(2 * s->ldb * nrhs, UNTOUCHED);
  s->x0 = (hone_complex *)sup_aligned(2 * s->ldb * nrhs, UNTOUCHED);
  for (int64_t j = 0; j < n; j++)
    memcpy(s->a + j * s->p.lda, dense + j * n, (size_t)n * sizeof *dense);
  hone_complex *b = cs_random(n, 2 * nrhs, 3);
  for (int64_t c = 0; c < nrhs; c++) {
    memcpy(s->b + c * s->ldb, b + c * n, (size_t)n * sizeof *b);
    memcpy(s->x0 + c * s->ldb, b + (nrhs + c) * n, (size_t)n * sizeof *b);
  }
  s->p.a = s->a;
  s->options = (hone_options)HONE_OPTIONS_INIT;
  s->options.threads = 2;
  s->options.deterministic = 1; /* on the host a solver, too */
  s->options.alloc = take;
  s->options.free = give;
  s->options.alloc_ctx = &s->heap;
  free(dense);
  free(b);
}

static void discard(sys *s) {
  CHECK_EQ_INT(s->heap.blocks, 0);
  sup_free((double *)s->a);
  sup_free((double *)s->b);
  sup_free((double *)s->x0);
}

/* Copies entries to the device, if they are to lie there. */
static hone_complex *put(const hone_complex *from, int64_t count, bool there) {
  return there ? (hone_complex *)on_device((const double *)from, 2 * count)
               : (hone_complex *)from;
}

typedef struct answer {
  int status;
  hone_complex *x; /* ldb x nrhs, on the host */
  hone_report report;
} answer;

/* there: bit mask of the arrays on the device. */
static answer solve(sys *s, int there) {
  const int64_t many = s->ldb * s->nrhs, n = s->p.n;
  answer out = {.x = (hone_complex *)sup_aligned(2 * many, UNTOUCHED),
                .report = HONE_REPORT_INIT};
  hone_options o = s->options;
  hone_complex *a = put(s->a, s->p.lda * n, there & A_THERE);
  hone_complex *b = put(s->b, many, there & B_THERE);
  hone_complex *x = put(out.x, many, there & X_THERE);
  hone_complex *x0 = put(s->x0, many, there & X0_THERE);
  o.trans = s->p.trans;
  o.layout = s->p.row_major ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
  if (o.x0 != NULL) {
    o.x0 = (const double *)x0;
    o.ldx0 = s->ldb;
  }
  out.status = hone_z_solve(n, s->nrhs, a, s->p.lda, b, s->ldb, x, s->ldb, &o,
                            &out.report);
  if (there & X_THERE)
    device_get(out.x, x, (size_t)many * sizeof *x);
  hone_complex *const on[] = {a, b, x, x0};
  for (int k = 0; k < 4; k++)
    if (there & (1 << k))
      device_free(on[k]);
  return out;
}

static void check_right(const sys *s, const answer *out) {
  CHECK_EQ_INT(out->status, HONE_OK);
  for (int64_t c = 0; c < s->nrhs && out->status == HONE_OK; c++) {
    CHECK_LE(cs_backward_error(&s->p, out->x + c * s->ldb, s->b + c * s->ldb),
             LIMIT);
    CHECK(sup_untouched((double *)(out->x + c * s->ldb + s->p.n),
                        2 * (s->ldb - s->p.n), UNTOUCHED));
  }
}

static bool projected_there(const answer *out) {
  return strstr(out->report.path, PROJECTED) != NULL;
}

/* Arrays on the device give the same bits as on the host, but for an A that a
   GPU factors where it lies: as one block column instead of several. */
static void check_same(sys *s, int there) {
  s->options.x0 = there & X0_THERE ? (const double *)s->x0 : NULL;
  const answer at_home = solve(s, 0), out = solve(s, there);
  ct_note("n %d, there %d, trans %d, device %d: %s", (int)s->p.n, there,
          s->p.trans, s->options.device, out.report.path);
  check_right(s, &at_home);
  check_right(s, &out);
  if (s->options.device == HONE_DEVICE_CPU || !(there & A_THERE))
    CHECK_MEM_EQ(out.x, at_home.x, (size_t)(s->ldb * s->nrhs) * sizeof *out.x);
  CHECK_EQ_INT(out.report.structure, at_home.report.structure);
  const int64_t line = s->p.n * (int64_t)sizeof *out.x;
  if (there & A_THERE && !projected_there(&out)) /* A has been fetched */
    CHECK_GE(out.report.from_device_bytes, s->p.n * line);
  /* To find that A is definite the host reads all of it. */
  const bool seen_whole = strstr(out.report.path, "Cholesky") != NULL;
  if (projected_there(&out) && out.report.host_passes == 0 && s->p.n >= 256 &&
      !seen_whole)
    CHECK_LE(out.report.from_device_bytes, (60 + 20 * s->nrhs) * line);
  sup_free((double *)at_home.x);
  sup_free((double *)out.x);
}

static void every_kind(int device, int64_t n) {
  static const int families[] = {CS_UNIFORM,  CS_DEFINITE, CS_LOWER,
                                 CS_BANDED,   CS_SCALED,   CS_STEEP,
                                 CS_DIAGONAL, CS_MOMENTS};
  device_begin();
  for (int k = 0; k < 8; k++) {
    sys s;
    make(&s, families[k], n, 2, k % 2 ? 3 : 0);
    s.options.device = device;
    for (int there = 1; there <= ALL_THERE; there++)
      if ((k == 0 && n < 100) || there == A_THERE || there == ALL_THERE) {
        s.p.trans = (there + k) % 3;
        check_same(&s, there);
      }
    s.p.row_major = true;
    check_same(&s, ALL_THERE);
    discard(&s);
  }
  device_end();
}

TEST(complex_arrays, give_the_same_bits_on_the_cpu) {
  every_kind(HONE_DEVICE_CPU, 1);
  every_kind(HONE_DEVICE_CPU, 40);
  every_kind(HONE_DEVICE_CPU, 260);
}

TEST(complex_arrays, are_solved_on_the_gpu) {
  NEED_DEVICE();
  every_kind(HONE_DEVICE_CUDA, 1);
  every_kind(HONE_DEVICE_CUDA, 40);
  every_kind(HONE_DEVICE_CUDA, 260);
}

/* A is large enough for several pieces, which threads fetch. */
TEST(complex_arrays, give_the_same_bits_where_threads_fetch_a) {
  device_begin();
  for (int k = 0; k < 2; k++) {
    sys s;
    make(&s, k ? CS_DEFINITE : CS_UNIFORM, 300, 1, 5);
    s.options.device = HONE_DEVICE_CPU;
    s.options.threads = 4;
    check_same(&s, ALL_THERE);
    discard(&s);
  }
  device_end();
}

/* A is factored and verified where it lies; where the host takes residuals it
   fetches A. Vectors move, two rows or four columns of A that are projected
   anew, and the columns that exclude structure. */
TEST(complex_arrays, have_a_factored_where_it_lies) {
  NEED_DEVICE();
  device_begin();
  for (int residuals = 0; residuals < 2; residuals++)
    for (int trans = 0; trans <= HONE_CONJ_TRANS; trans++) {
      hone_tuning tuning = HONE_TUNING_INIT;
      sys s;
      make(&s, CS_NORMAL, 300, 1, 1);
      s.options.device = HONE_DEVICE_CUDA;
      s.options.tuning = &tuning;
      s.options.structure = HONE_STRUCTURE_GENERAL;
      tuning.residuals = residuals;
      s.p.trans = trans;
      const answer out = solve(&s, A_THERE);
      const int64_t line = s.p.n * (int64_t)sizeof *out.x;
      ct_note("residuals %d, trans %d: %s", residuals, trans, out.report.path);
      check_right(&s, &out);
      CHECK_CONTAINS(out.report.device, "CUDA");
      CHECK_EQ_INT(out.report.precision, 32);
      CHECK_EQ_INT(projected_there(&out), residuals == 0);
      CHECK_EQ_INT(out.report.host_passes > 0, residuals != 0);
      CHECK_LE(out.report.to_device_bytes, 64 * line);
      CHECK_LE(out.report.from_device_bytes,
               (30 + (residuals ? s.p.n : 4)) * line);
      sup_free((double *)out.x);
      discard(&s);
    }
  device_end();
}

/* An entry of 16 bytes may lie at a multiple of 8. */
TEST(complex_arrays, may_begin_at_any_double) {
  NEED_DEVICE();
  device_begin();
  const int64_t n = 270;
  sys s;
  make(&s, CS_NORMAL, n, 1, 0);
  s.options.device = HONE_DEVICE_CUDA;
  s.options.structure = HONE_STRUCTURE_GENERAL;
  double *there = device_alloc(2 * n * n + 1);
  hone_complex *x = (hone_complex *)sup_aligned(2 * n, UNTOUCHED);
  device_put(there + 1, s.a, (size_t)(n * n) * sizeof *s.a);
  for (int trans = 0; trans < 2; trans++) {
    hone_report report = HONE_REPORT_INIT;
    s.options.trans = s.p.trans = trans;
    CHECK_EQ_INT(hone_z_solve(n, 1, (hone_complex *)(there + 1), n, s.b, n, x,
                              n, &s.options, &report),
                 HONE_OK);
    CHECK_LE(cs_backward_error(&s.p, x, s.b), LIMIT);
    CHECK_CONTAINS(report.path, PROJECTED);
  }
  device_free(there);
  sup_free((double *)x);
  discard(&s);
  device_end();
}

TEST(complex_arrays, have_their_nan_and_infinity_located) {
  device_begin();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
    if (device == HONE_DEVICE_CUDA && !cuda_usable())
      continue;
    for (int k = 0; k < 4; k++) {
      sys s;
      make(&s, k < 2 ? CS_UNIFORM : CS_DEFINITE, 280, 1, 1);
      s.options.device = device;
      s.a[200 + 17 * s.p.lda] =
          k % 2 ? CMPLX(1.0, HUGE_VAL) : CMPLX((double)NAN, 0.0);
      const answer out = solve(&s, ALL_THERE);
      CHECK_EQ_INT(out.status, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(out.report.bad_row, 200);
      CHECK_EQ_INT(out.report.bad_col, 17);
      CHECK_CONTAINS(out.report.reason, "A(200, 17)");
      CHECK(sup_untouched((double *)out.x, 2 * s.ldb, UNTOUCHED));
      sup_free((double *)out.x);
      discard(&s);
    }
  }
  device_end();
}

/* ---- A solver ------------------------------------------------------------ */

/* Solves with the solver for every op(A); b lies on the host, x on the device.
 */
static void check_solver(sys *s, hone_z_solver *solver, bool projected) {
  const int64_t n = s->p.n;
  for (int trans = 0; trans <= HONE_CONJ_TRANS; trans++) {
    answer out = {.x = (hone_complex *)sup_aligned(2 * s->ldb * s->nrhs, 1.0),
                  .report = HONE_REPORT_INIT};
    hone_complex *x = put(out.x, s->ldb * s->nrhs, true);
    hone_options o = HONE_OPTIONS_INIT;
    s->p.trans = o.trans = trans;
    CHECK_EQ_INT(hone_z_solver_solve(solver, s->nrhs, s->b, s->ldb, x, s->ldb,
                                     &o, &out.report),
                 HONE_OK);
    device_get(out.x, x, (size_t)(s->ldb * s->nrhs) * sizeof *x);
    ct_note("n %d, trans %d: %s", (int)n, trans, out.report.path);
    for (int64_t c = 0; c < s->nrhs; c++)
      CHECK_LE(cs_backward_error(&s->p, out.x + c * s->ldb, s->b + c * s->ldb),
               LIMIT);
    CHECK_EQ_INT(projected_there(&out), projected);
    device_free(x);
    sup_free((double *)out.x);
  }
}

static void keep(int device, int64_t n) {
  const bool projected = device == HONE_DEVICE_CUDA;
  hone_z_solver *solver = NULL;
  sys s;
  device_begin();
  make(&s, CS_NORMAL, n, 2, 2);
  s.options.device = device;
  hone_complex *a = put(s.a, s.p.lda * n, true);
  const size_t bytes = (size_t)(s.p.lda * n) * sizeof *a;
  REQUIRE(hone_z_solver_create(&solver, n, &s.options) == HONE_OK);
  for (int turn = 0; turn < 2; turn++) {
    CHECK_EQ_INT(hone_z_solver_factor(solver, a, s.p.lda, NULL), HONE_OK);
    check_solver(&s, solver, projected);
    for (int64_t i = 0; i < n; i++)
      s.a[i * (s.p.lda + 1)] += CMPLX(0.0, 1e-5);
    device_put(a, s.a, bytes);
    CHECK_EQ_INT(hone_z_solver_update(solver, a, s.p.lda, NULL), HONE_OK);
    check_solver(&s, solver, false);
  }
  CHECK_EQ_INT(hone_z_solver_factor(solver, s.a, s.p.lda, NULL), HONE_OK);
  check_solver(&s, solver, false);
  hone_z_solver_destroy(&solver);
  device_free(a);
  discard(&s);
  device_end();
}

TEST(complex_arrays, serve_a_solver) {
  keep(HONE_DEVICE_CPU, 60);
  keep(HONE_DEVICE_CPU, 260);
}

TEST(complex_arrays, serve_a_solver_on_the_gpu) {
  NEED_DEVICE();
  keep(HONE_DEVICE_CUDA, 60);
  keep(HONE_DEVICE_CUDA, 300);
}

/* ---- Failures ------------------------------------------------------------ */

/* x is accepted, or there is an error and x is untouched. */
static void check_honest(sys *s) {
  const answer out = solve(s, ALL_THERE);
  if (out.status == HONE_OK)
    check_right(s, &out);
  else
    CHECK(sup_untouched((double *)out.x, 2 * s->ldb * s->nrhs, UNTOUCHED));
  CHECK(out.status == HONE_OK || out.status == HONE_DEVICE_FAILED ||
        out.status == HONE_NO_MEMORY);
  CHECK_EQ_INT(s->heap.blocks, 0);
  sup_free((double *)out.x);
}

/* Makes calls of the driver fail, or allocations. */
static void fail_each(int device, int64_t n, bool driver) {
  sys s;
  bool over = false;
  device_begin();
  fake.failure = 999;
  make(&s, CS_NORMAL, n, 1, 0);
  s.options.device = device;
  check_honest(&s);
  for (int64_t k = 1; !over; k += 1 + k / 8) {
    fake.fail_at = driver ? k : 0;
    s.heap = (heap){.fail_at = driver ? 0 : k};
    ct_note("device %d, n %d, call %d", device, (int)n, (int)k);
    check_honest(&s);
    over = driver ? fake.fail_at > 0 : s.heap.calls < k;
    fake.fail_at = 0;
  }
  discard(&s);
  device_end();
}

TEST(complex_arrays, survive_failed_calls_of_the_driver_and_allocations) {
  NEED_FAKE();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++)
    if (device == HONE_DEVICE_CPU || cuda_usable()) {
      fail_each(device, 30, true);
      fail_each(device, 270, true);
      fail_each(device, 30, false);
    }
}

/* Makes calls of the CUDA runtime fail while A is factored where it lies. */
TEST(complex_arrays, survive_failed_calls_of_the_engine) {
  NEED_FAKE();
  NEED_DEVICE();
  sys s;
  device_begin();
  make(&s, CS_NORMAL, 150, 1, 0);
  s.options.device = HONE_DEVICE_CUDA;
  s.options.structure = HONE_STRUCTURE_GENERAL;
  const int64_t before = failing_calls.made;
  check_honest(&s);
  const int64_t calls = failing_calls.made - before;
  CHECK_GE(calls, 100);
  for (int64_t k = 1; k <= calls; k += 1 + k / 16) {
    failing_calls.fail_at = k;
    ct_note("call %d of %d", (int)k, (int)calls);
    check_honest(&s);
    failing_calls.fail_at = 0;
  }
  discard(&s);
  device_end();
}
