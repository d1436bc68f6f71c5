/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's arrays in device memory: on a GPU where there is one, else in
   the memory of fake_driver.h, which ends the program when the host touches
   it. Wherever the arrays lie and however A is solved, x has the same bits as
   with all arrays on the host. There they begin at multiples of 64 bytes, as
   the library's copies do, because OpenBLAS's dtrsv for old processors, which
   it also takes for unknown ones, rounds differently depending on where x
   begins. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "base/cuda_driver.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"

#include "cpu_dp/structure.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double UNTOUCHED = 77.25;
static const char PROJECTED[] = ", A projected by the device";

/* Systems ------------------------------------------------------------------ */

enum { FULL, SYMMETRIC, UPPER, BAND, GRADED, HARD, KINDS };
enum { A_THERE = 1, B_THERE = 2, X_THERE = 4, X0_THERE = 8, ALL_THERE = 15 };

typedef struct sys {
  int64_t n, nrhs, lda, ldb;
  double *a, *b, *x0;
  hone_options options;
} sys;

/* The memory is full of NaN, so that an entry that was not copied shows. */
static void *take(size_t bytes, void *ctx) {
  void *p = malloc(bytes);
  (void)ctx;
  return p ? memset(p, 0xff, bytes) : NULL;
}

static void give(void *p, void *ctx) {
  (void)ctx;
  free(p);
}

static sys make(int kind, int64_t n, int64_t nrhs, int64_t pad) {
  sup_rng rng = {(uint64_t)(n * 8 + kind)};
  sys s = {.n = n, .nrhs = nrhs, .lda = n + pad, .ldb = n + 2 * pad};
  double *a = sup_filled(n * n, 0.0);
  s.a = sup_aligned(s.lda * n, UNTOUCHED);
  s.b = sup_aligned(s.ldb * nrhs, UNTOUCHED);
  s.x0 = sup_aligned(s.ldb * nrhs, UNTOUCHED);
  if (kind == SYMMETRIC)
    sup_matrix_spd(&rng, n, 1e3, a);
  else if (kind == HARD) /* takes double precision */
    sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1e11, a, n);
  else
    sup_random(&rng, n, n, a, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double *v = &a[i + j * n];
      if (i == j && (kind == UPPER || kind == BAND))
        *v += 4.0;
      if ((kind == UPPER && i > j) || (kind == BAND && llabs(i - j) > 2))
        *v = 0.0;
      if (kind == GRADED)
        *v *= ldexp(1.0, (int)(i % 40));
      s.a[i + j * s.lda] = *v;
    }
  sup_random(&rng, n, nrhs, s.b, s.ldb);
  sup_random(&rng, n, nrhs, s.x0, s.ldb);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  s.options.device = HONE_DEVICE_CPU;
  s.options.threads = 2;
  s.options.deterministic = 1; /* on the host a solver, too */
  s.options.alloc = take;
  s.options.free = give;
  sup_free(a);
  return s;
}

static void discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x0);
}

typedef struct answer {
  int status;
  double *x; /* ldb x nrhs, on the host */
  hone_report report;
} answer;

/* there: bit mask of the arrays on the device; in_place: x is b. */
static answer solve(const sys *s, int there, bool in_place) {
  const int64_t many = s->ldb * s->nrhs;
  const size_t bytes = (size_t)many * sizeof(double);
  answer out = {.x = sup_aligned(many, UNTOUCHED), .report = HONE_REPORT_INIT};
  hone_options o = s->options;
  if (in_place)
    memcpy(out.x, s->b, bytes);
  double *a = there & A_THERE ? on_device(s->a, s->lda * s->n) : s->a;
  double *b = there & B_THERE ? on_device(s->b, many) : s->b;
  double *x = there & X_THERE ? on_device(out.x, many) : out.x;
  double *x0 = there & X0_THERE ? on_device(s->x0, many) : s->x0;
  if (there & X0_THERE) {
    o.x0 = x0;
    o.ldx0 = s->ldb;
  }
  out.status = hone_solve(s->n, s->nrhs, a, s->lda, in_place ? x : b, s->ldb, x,
                          s->ldb, &o, &out.report);
  if (there & X_THERE) {
    device_get(out.x, x, bytes);
    device_free(x);
  }
  if (there & A_THERE)
    device_free(a);
  if (there & B_THERE)
    device_free(b);
  if (there & X0_THERE)
    device_free(x0);
  return out;
}

static void check_right(const sys *s, const answer *out) {
  const bool trans =
      (s->options.trans == HONE_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
  CHECK_EQ_INT(out->status, HONE_OK);
  for (int64_t c = 0; c < s->nrhs && out->status == HONE_OK; c++) {
    CHECK_LE(sup_backward_error(s->n, s->a, s->lda, trans, out->x + c * s->ldb,
                                s->b + c * s->ldb),
             SUP_LIMIT);
    CHECK(sup_untouched(out->x + c * s->ldb + s->n, s->ldb - s->n, UNTOUCHED));
  }
}

/* The path is that of a solve at home but for what it says of the projection.
 */
static void check_path(const answer *out, const answer *at_home) {
  const size_t length = strlen(at_home->report.path);
  CHECK_EQ_INT(strncmp(out->report.path, at_home->report.path, length), 0);
  if (out->report.path[length] != '\0')
    CHECK_STR(out->report.path + length, PROJECTED);
}

/* Was A fetched as a whole? If not, a projection of the device vouches for x,
   and the host has seen a few rows and columns besides vectors. (A structure
   is never found without all of A.) */
static void check_transfers(const sys *s, const answer *out) {
  const bool there = strstr(out->report.path, PROJECTED) != NULL;
  const int64_t line = s->n * (int64_t)sizeof(double);
  if (there && out->report.host_passes == 0 && s->n >= 256 &&
      out->report.structure == HONE_FOUND_GENERAL)
    CHECK_LE(out->report.from_device_bytes, (60 + 20 * s->nrhs) * line);
  if (!there)
    CHECK_GE(out->report.from_device_bytes, s->n * line);
}

/* Arrays on the device give the same bits as on the host, but for an A that a
   GPU factors where it lies: as one block column instead of several. The report
   counts the bytes that were copied. */
static void check_same(const sys *s, int there) {
  sys here = *s;
  if (there & X0_THERE) {
    here.options.x0 = s->x0;
    here.options.ldx0 = s->ldb;
  }
  const answer at_home = solve(&here, 0, false);
  const answer out = solve(s, there, false);
  ct_note("n %d, nrhs %d, there %d, device %d, structure %d: %s", (int)s->n,
          (int)s->nrhs, there, s->options.device, s->options.structure,
          out.report.path);
  check_right(s, &out);
  check_path(&out, &at_home);
  if (s->options.device != HONE_DEVICE_CUDA || !(there & A_THERE))
    CHECK_MEM_EQ(out.x, at_home.x, (size_t)(s->ldb * s->nrhs) * sizeof(double));
  CHECK_EQ_INT(out.report.structure, at_home.report.structure);
  if (there & A_THERE)
    check_transfers(s, &out);
  sup_free(at_home.x);
  sup_free(out.x);
}

static void every_kind(int device, int64_t n) {
  device_begin();
  for (int kind = 0; kind < KINDS; kind++) {
    sys s = make(kind, n, 3, kind % 2 ? 3 : 0);
    s.options.device = device;
    for (int there = 1; there <= ALL_THERE; there++)
      if (kind == FULL || there == A_THERE || there == ALL_THERE) {
        s.options.trans = there % 2 ? HONE_NO_TRANS : HONE_TRANS;
        check_same(&s, there);
      }
    s.options.layout = HONE_ROW_MAJOR;
    check_same(&s, ALL_THERE);
    discard(&s);
  }
  device_end();
}

/* Tests -------------------------------------------------------------------- */

TEST(device_arrays, are_told_from_arrays_of_the_host) {
  double local = 1.0;
  hone_device_memory place = {.ordinal = -1};
  wrapped_driver = NULL;
  CHECK(!hone_device_memory_of(&local, &place));
  device_begin();
  double *p = device_alloc(10);
  CHECK(!hone_device_memory_of(&local, &place));
  CHECK(!hone_device_memory_of(NULL, &place));
  CHECK(!hone_device_memory_of("constant", &place));
  CHECK(hone_device_memory_of(p, &place));
  CHECK_EQ_INT(place.ordinal, 0);
  CHECK(hone_device_memory_of(p + 9, &place));
  device_free(p);
  device_end();
}

TEST(device_arrays, give_the_same_bits_on_the_cpu) {
  every_kind(HONE_DEVICE_CPU, 1);
  every_kind(HONE_DEVICE_CPU, 40);
}

TEST(device_arrays, give_the_same_bits_where_a_few_columns_exclude_structure) {
  every_kind(HONE_DEVICE_CPU, 260);
}

TEST(device_arrays, give_the_same_bits_on_the_gpu) {
  NEED_DEVICE();
  every_kind(HONE_DEVICE_CUDA, 40);
  every_kind(HONE_DEVICE_CUDA, 260);
}

/* A is large enough for several pieces, which threads fetch. */
TEST(device_arrays, give_the_same_bits_where_threads_fetch_a) {
  device_begin();
  for (int kind = FULL; kind <= SYMMETRIC; kind++) {
    sys s = make(kind, device_is_true() ? 800 : 420, 1, 5);
    s.options.threads = 4;
    check_same(&s, A_THERE);
    s.options.threads = 1;
    check_same(&s, ALL_THERE);
    s.options.threads = 4;
    s.options.structure = HONE_STRUCTURE_SPD;
    if (kind == SYMMETRIC)
      check_same(&s, ALL_THERE);
    if (kind == SYMMETRIC && cuda_usable()) {
      s.options.device = HONE_DEVICE_CUDA;
      check_same(&s, ALL_THERE);
    }
    discard(&s);
  }
  device_end();
}

TEST(device_arrays, give_the_same_bits_for_many_right_hand_sides) {
  device_begin();
  sys s = make(FULL, 30, 70, 1);
  check_same(&s, ALL_THERE);
  discard(&s);
  device_end();
}

TEST(device_arrays, let_x_overwrite_b) {
  device_begin();
  sys s = make(FULL, 50, 2, 2);
  const answer here = solve(&s, 0, true);
  const answer there = solve(&s, A_THERE | X_THERE, true);
  check_right(&s, &there);
  CHECK_MEM_EQ(there.x, here.x, (size_t)(s.ldb * s.nrhs) * sizeof(double));
  sup_free(here.x);
  sup_free(there.x);
  discard(&s);
  device_end();
}

/* A is factored where it lies, and vectors are sent, wherever residuals are
   computed. The host fetches a copy of A where it takes them itself; otherwise
   it looks at four columns of A only. */
TEST(device_arrays, have_a_factored_where_it_lies) {
  NEED_DEVICE();
  device_begin();
  sys s = make(FULL, 300, 1, 1);
  s.options.device = HONE_DEVICE_CUDA;
  for (int residuals = 0; residuals < 2; residuals++) {
    double *open = device_is_true()
                       ? device_alloc(s.lda * s.n)
                       : fake_alloc((size_t)(s.lda * s.n * 8), true);
    double *x = sup_filled(s.ldb, 0.0);
    hone_report r = HONE_REPORT_INIT;
    device_put(open, s.a, (size_t)(s.lda * s.n) * sizeof(double));
    hone_tuning tuning = HONE_TUNING_INIT;
    tuning.residuals = residuals;
    s.options.tuning = &tuning;
    s.options.structure = HONE_STRUCTURE_GENERAL;
    ct_note("residuals %d", residuals);
    CHECK_EQ_INT(
        hone_solve(s.n, 1, open, s.lda, s.b, s.ldb, x, s.ldb, &s.options, &r),
        HONE_OK);
    CHECK_LE(sup_backward_error(s.n, s.a, s.lda, false, x, s.b), SUP_LIMIT);
    CHECK_CONTAINS(r.device, "CUDA");
    CHECK_EQ_INT(r.precision, 32);
    CHECK_EQ_INT(r.device_passes > 0, residuals == 0);
    CHECK_LE(r.to_device_bytes, s.n * 8 * 64);
    const int64_t seen = residuals == 0 ? 4 : s.n; /* columns */
    CHECK_EQ_INT(strstr(r.path, PROJECTED) != NULL, residuals == 0);
    CHECK_EQ_INT(r.host_passes > 0, residuals != 0);
    CHECK_GE(r.from_device_bytes, s.n * seen * 8);
    CHECK_LE(r.from_device_bytes, s.n * (seen + 30) * 8);
    if (!device_is_true()) /* an entry of each A was fetched to wait for it */
      CHECK_EQ_INT(fake.fetched, (seen + (residuals ? 4 : 0)) * s.n * 8 +
                                     (residuals + 1) * 8);
    device_free(open);
    sup_free(x);
  }
  discard(&s);
  device_end();
}

/* The memory belongs to a context other than the engine's, or to another
   device: the host's copy is factored. */
TEST(device_arrays, may_lie_on_another_device_or_in_another_context) {
  NEED_FAKE();
  for (int way = 0; way < 4; way++) {
    char other;
    device_begin();
    fake.ordinal = way == 0 ? 3 : 0;
    fake.context = way == 1 ? &other : (way == 2 ? NULL : &fake_own);
    fake.inactive = way == 3;
    for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
      sys s = make(FULL, 420, 1, 0);
      s.options.device = device;
      /* There is no copy yet when A is factored. */
      if (device == HONE_DEVICE_CUDA)
        fake.slow = 10000;
      ct_note("way %d, device %d", way, device);
      if (device == HONE_DEVICE_CPU || (sup_emulated() && way < 2)) {
        const answer out = solve(&s, ALL_THERE, false);
        check_right(&s, &out);
        CHECK_EQ_INT(out.report.precision, 32);
        CHECK_STR(out.report.reason, "");
        if (device == HONE_DEVICE_CUDA) /* with the first engine */
          CHECK_CONTAINS(out.report.path, "fp16x3");
        if (device == HONE_DEVICE_CUDA)
          CHECK_GE(out.report.to_device_bytes, s.n * s.n * 8);
        sup_free(out.x);
      }
      discard(&s);
    }
    device_end();
  }
}

TEST(device_arrays, may_hold_the_columns_of_a_report) {
  device_begin();
  sys s = make(FULL, 20, 3, 0);
  hone_column here[3], *there = (hone_column *)device_alloc(3 * 6);
  s.options.columns = there;
  const answer out = solve(&s, 0, false);
  check_right(&s, &out);
  device_get(here, there, sizeof here);
  for (int c = 0; c < 3; c++) {
    CHECK_EQ_INT(here[c].status, HONE_OK);
    CHECK_LE(here[c].backward_error, SUP_LIMIT);
  }
  device_free(there);
  sup_free(out.x);
  discard(&s);
  device_end();
}

static void check_refused(const sys *s, int there, int status) {
  const answer out = solve(s, there, false);
  CHECK_EQ_INT(out.status, status);
  CHECK(sup_untouched(out.x, s->ldb * s->nrhs, UNTOUCHED));
  sup_free(out.x);
}

TEST(device_arrays, have_their_nan_and_infinity_located) {
  static const double bad[] = {(double)NAN, (double)INFINITY};
  device_begin();
  for (int device = HONE_DEVICE_CPU; device <= HONE_DEVICE_CUDA; device++) {
    if (device == HONE_DEVICE_CUDA && !cuda_usable())
      continue;
    for (int k = 0; k < 4; k++) {
      sys s = make(k < 2 ? FULL : SYMMETRIC, 300, 1, 1);
      s.options.device = device;
      s.a[200 + 17 * s.lda] = bad[k % 2];
      const answer out = solve(&s, ALL_THERE, false);
      CHECK_EQ_INT(out.status, HONE_NOT_FINITE_A);
      CHECK_EQ_INT(out.report.bad_row, 200);
      CHECK_EQ_INT(out.report.bad_col, 17);
      CHECK(sup_untouched(out.x, s.ldb, UNTOUCHED));
      sup_free(out.x);
      discard(&s);
    }
    sys s = make(FULL, 30, 2, 1);
    s.options.device = device;
    s.b[s.ldb + 3] = bad[0];
    check_refused(&s, ALL_THERE, HONE_NOT_FINITE_B);
    s.b[s.ldb + 3] = 1.0;
    s.x0[5] = bad[1];
    check_refused(&s, X0_THERE, HONE_NOT_FINITE_B);
    discard(&s);
    sys singular = make(FULL, 30, 1, 0);
    singular.options.device = device;
    for (int64_t i = 0; i < 30; i++)
      singular.a[i + 4 * 30] = 0.0;
    check_refused(&singular, ALL_THERE, HONE_SINGULAR);
    discard(&singular);
  }
  device_end();
}

TEST(device_arrays, must_not_overlap) {
  device_begin();
  const int64_t n = 10;
  sys s = make(FULL, n, 1, 0);
  double *a = on_device(s.a, n * n), x[10];
  hone_solver *solver = NULL;
  CHECK_EQ_INT(hone_solve(n, 1, a, n, s.b, n, a + n, n, NULL, NULL),
               HONE_BAD_OVERLAP);
  REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, a, n, NULL), HONE_OK);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, n, a + 99, n, NULL, 0, NULL, NULL),
      HONE_BAD_OVERLAP);
  CHECK_EQ_INT(
      sup_solver_solve(solver, 0, 1, s.b, n, x, n, NULL, 0, NULL, NULL),
      HONE_OK);
  hone_solver_destroy(&solver);
  device_free(a);
  discard(&s);
  device_end();
}

/* A few columns are inspected first. A structure that they exclude is not in A.
 */
TEST(device_arrays, have_no_structure_excluded_wrongly_by_a_few_columns) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int odd = 0; odd < 6; odd++)
      for (int64_t n = 2; n <= 300; n += n < 20 ? 1 : 140) {
        sys s = make(kind, n, 1, 2);
        double scratch[300];
        hone_structure found;
        if (odd > 0) /* one entry spoils the structure, wherever it stands */
          s.a[n - 1 - (odd % 2) + s.lda * ((odd * 7) % n)] += 0.5;
        const hone_dense a = {n, s.lda, s.a, NULL, false, 0};
        for (int definite = 0; definite < 2; definite++) {
          hone_structure_find(NULL, &a,
                              definite ? HONE_SEARCH_ALL : HONE_SEARCH_ZEROS,
                              scratch, &found);
          const bool none =
              found.lower == n - 1 && found.upper == n - 1 && !found.definite;
          for (int samples = 0; samples <= HONE_STRUCTURE_SAMPLES; samples++) {
            const bool excluded =
                hone_structure_excluded(&a, samples, definite);
            ct_note("kind %d, n %d, odd %d, %d columns", kind, (int)n, odd,
                    samples);
            CHECK(none || !excluded);
            CHECK(samples > 0 || !excluded);
            if (n > 20 && kind == FULL && samples >= 2)
              CHECK(excluded);
          }
        }
        discard(&s);
      }
}

/* Each array costs one query; without a driver there is none. */
TEST(device_arrays, cost_callers_without_any_one_query_an_array) {
  NEED_FAKE();
  sys s = make(FULL, 5, 1, 0);
  double x[5];
  if (dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW) == NULL) {
    CHECK(hone_driver_present() == NULL);
    CHECK(hone_driver_present() == NULL);
  }
  device_begin();
  CHECK_EQ_INT(hone_solve(5, 1, s.a, 5, s.b, 5, x, 5, &s.options, NULL),
               HONE_OK);
  CHECK_EQ_INT(fake.questions, 3);
  CHECK_EQ_INT(fake.calls, 3);
  memcpy(x, s.b, sizeof x);
  CHECK_EQ_INT(hone_solve(5, 1, s.a, 5, x, 5, x, 5, &s.options, NULL), HONE_OK);
  CHECK_EQ_INT(fake.questions, 5);
  discard(&s);
  device_end();
}
