/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA engine in cases that test_lu.c does not cover: every arithmetic and
   pivoting, matrices of more rows than one level of the tournament takes, the
   ways in which A arrives, and calls that fail. */
#include "tests/cuda/test_kernels.h"
#include "tests/unit/wrapped.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/state.h"

namespace {

struct problem {
  int64_t n, lda;
  std::vector<double> a, x, b[2]; /* b[trans] = op(A) x */

  problem(int64_t order, int64_t pad, double diagonal)
      : n(order), lda(order + pad) {
    numbers r = {static_cast<uint64_t>(order)};
    a = r.array<double>(lda * n);
    x = r.array<double>(n);
    for (int64_t i = 0; i < n; i++)
      a.data()[i + i * lda] += diagonal;
    for (int trans = 0; trans < 2; trans++) {
      b[trans].assign(static_cast<size_t>(n), 0.0);
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          b[trans].data()[trans ? j : i] +=
              a.data()[i + j * lda] * x.data()[trans ? i : j];
    }
  }
};

/* The results of one factorization and its solves, made as refinement makes
   them. */
struct outcome {
  int status;
  /* Error of x; residual of A x = b for the known x. */
  double error[2], residual;
  hone_factor_info info;
  hone_account used;
};

int run_all(void *self, const problem &p, const double *a, outcome *out) {
  const hone_engine *d = &hone_engine_single_cuda;
  const hone_dense matrix_dense = {p.n, p.lda, a, nullptr, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&matrix_dense);
  std::vector<double> ones(static_cast<size_t>(p.n), 1.0), r = ones, den = ones;
  std::vector<int> zeros(ones.size());
  const hone_scaling scaling = {ones.data(), ones.data(), zeros.data(),
                                zeros.data(), false};
  int st = d->factor(self, &matrix, &scaling, &out->info);
  for (int trans = 0; trans < 2 && st == HONE_OK; trans++) {
    std::vector<double> v = p.b[trans];
    double big = 1.0;
    for (double e : v)
      big = std::fmax(big, std::fabs(e));
    for (double &e : v)
      e /= big;
    st = d->solve(self, trans, 1, v.data(), p.n);
    for (int64_t i = 0; i < p.n; i++)
      out->error[trans] = std::fmax(
          out->error[trans], std::fabs(v.data()[i] * big - p.x.data()[i]));
  }
  if (st != HONE_OK || !d->resident(self))
    return st;
  std::vector<double> seen[4] = {ones, ones, ones, ones};
  seen[2].resize(2 * ones.size());
  hone_inspection s = {};
  s.row_max = seen[0].data();
  s.col_max = seen[1].data();
  st = d->inspect(self, &matrix, nullptr, seen[2].data(), &s);
  d->expect(self);
  if (st == HONE_OK)
    st = d->residual(self, &matrix, true, p.x.data(), p.b[1].data(), r.data(),
                     den.data());
  for (int64_t i = 0; i < p.n && st == HONE_OK; i++)
    out->residual =
        std::fmax(out->residual, std::fabs(r.data()[i]) / den.data()[i]);
  return st == HONE_OK ? d->solve(self, true, 1, r.data(), p.n) : st;
}

outcome run(const problem &p, const double *a, const hone_choices &choices,
            int64_t block, hone_pool *pool = nullptr) {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  outcome out = {};
  void *self = nullptr;
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  config.pool = pool;
  config.block = block;
  config.choices = choices;
  out.status = hone_engine_single_cuda.create(&self, &config);
  if (out.status == HONE_OK) {
    out.status = run_all(self, p, a, &out);
    hone_engine_single_cuda.account(self, &out.used);
    hone_engine_single_cuda.destroy(self, &mem);
  }
  CHECK_EQ_INT(mem.held, 0);
  return out;
}

void check_run(const problem &p, const double *a, const hone_choices &choices,
               int64_t block, double tolerance) {
  const outcome out = run(p, a, choices, block);
  ct_note("n %d, block %d, arithmetic %d, pivoting %d, residuals %d", (int)p.n,
          (int)block, choices.arithmetic, choices.pivoting, choices.residuals);
  CHECK_EQ_INT(out.status, HONE_OK);
  CHECK_EQ_INT(out.info.zero_pivot, -1);
  CHECK(out.info.growth <= 1e3);
  CHECK_LE(out.error[0], tolerance);
  CHECK_LE(out.error[1], tolerance);
  CHECK_LE(out.residual, 0x1p-40);
}

/* The unit roundoff of each arithmetic, beginning with HONE_ARITHMETIC_AUTO. */
const double units[] = {0x1p-22, 0x1p-24, 0x1p-11, 0x1p-22,
                        0x1p-16, 0x1p-11, 0x1p-8};

TEST(engine_cuda, factors_in_every_arithmetic) {
  NEED_DEVICE();
  const problem p(300, 1, 12.0);
  for (int arithmetic = 0; arithmetic < 7; arithmetic++)
    for (int64_t block : {0, 40, 150})
      for (int residuals = 0; residuals < 2; residuals++) {
        hone_choices choices = {};
        choices.arithmetic = arithmetic;
        choices.residuals = residuals;
        check_run(p, p.a.data(), choices, block, 40.0 * units[arithmetic]);
      }
}

/* The last strip takes F's padding along, and is then wider than a strip, where
   block columns do not begin at a multiple of that padding. */
TEST(engine_cuda, factors_strips_that_begin_at_any_column) {
  NEED_DEVICE();
  const problem p(226, 1, 12.0);
  hone_choices choices = {};
  choices.trial.outer = choices.trial.strip = 64;
  for (int64_t block : {96, 97, 98, 127})
    check_run(p, p.a.data(), choices, block, 0x1p-16);
}

TEST(engine_cuda, factors_with_every_pivoting) {
  NEED_DEVICE();
  const problem p(400, 0, 200.0);
  for (int pivoting = 0; pivoting < 3; pivoting++)
    for (int64_t block : {0, 70}) {
      hone_choices choices = {};
      choices.pivoting = pivoting;
      check_run(p, p.a.data(), choices, block, 0x1p-18);
    }
}

/* More than 16 blocks of 64 rows need two levels of the tournament. */
TEST(engine_cuda, factors_more_rows_than_one_level_takes) {
  NEED_DEVICE();
  for (int64_t n : {1025, 1300}) {
    const problem p(n, 5, 0.0);
    hone_choices choices = {};
    check_run(p, p.a.data(), choices, 0, 1e-2);
    choices.residuals = HONE_RESIDUALS_HOST;
    check_run(p, p.a.data(), choices, 0, 1e-2);
  }
}

TEST(engine_cuda, reads_pinned_memory_in_place) {
  NEED_DEVICE();
  const problem p(200, 3, 12.0);
  double *pinned;
  MUST(cudaMallocHost(reinterpret_cast<void **>(&pinned),
                      p.a.size() * sizeof(double)));
  memcpy(pinned, p.a.data(), p.a.size() * sizeof(double));
  check_run(p, pinned, {}, 0, 0x1p-16);
  MUST(cudaFreeHost(pinned));
}

TEST(engine_cuda, keeps_a_on_the_host_where_memory_is_short) {
  NEED_DEVICE();
  const problem p(300, 0, 12.0);
  hone_choices choices = {};
  const int64_t all = run(p, p.a.data(), choices, 0).used.device_bytes;
  choices.device_limit = all;
  CHECK_GE(run(p, p.a.data(), choices, 0).used.residuals, 1);
  choices.device_limit = all - 1;
  const outcome less = run(p, p.a.data(), choices, 0);
  CHECK_EQ_INT(less.status, HONE_OK);
  CHECK_LE(less.error[0], 0x1p-16);
  CHECK_EQ_INT(less.used.residuals, 0);
  CHECK_LE(less.used.device_bytes, choices.device_limit);
  choices.device_limit = less.used.device_bytes - 1;
  CHECK_EQ_INT(run(p, p.a.data(), choices, 0).status, HONE_NO_MEMORY);
}

TEST(engine_cuda, counts_pinned_memory_as_held) {
  NEED_DEVICE();
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  void *self = nullptr;
  config.n = 300;
  config.mem = &mem;
  config.watch = &watch;
  CHECK_EQ_INT(hone_engine_single_cuda.create(&self, &config), HONE_OK);
  CHECK_GE(mem.held, 300 * 300 * 8); /* the ring has room for all of A */
  CHECK_LE(mem.held, hone_engine_single_cuda.bytes(config.n, 1));
  const int64_t needed = mem.held;
  hone_engine_single_cuda.destroy(self, &mem);
  CHECK_EQ_INT(mem.held, 0);
  mem.limit = needed - 1;
  CHECK_EQ_INT(hone_engine_single_cuda.create(&self, &config), HONE_NO_MEMORY);
  CHECK_EQ_INT(mem.held, 0);
}

/* Begins to solve ahead for r = b - op(A) x with x = 0. solve must then return
   the same bits as without; *sent counts the bytes copied for it. */
void solve_ahead(void *self, const hone_matrix *a, bool trans,
                 const std::vector<double> &b, bool expect,
                 std::vector<double> *v, bool v_trans, int64_t *sent) {
  const hone_engine *d = &hone_engine_single_cuda;
  std::vector<double> zeros(b.size(), 0.0), r = zeros, den = zeros;
  hone_account before, after;
  if (expect)
    d->expect(self);
  CHECK_EQ_INT(
      d->residual(self, a, trans, zeros.data(), b.data(), r.data(), den.data()),
      HONE_OK);
  d->account(self, &before);
  CHECK_EQ_INT(d->solve(self, v_trans, 1, v->data(), a->n), HONE_OK);
  d->account(self, &after);
  *sent = after.to_device - before.to_device;
}

/* The arguments of a solve after the residual r = b of op(A). */
struct ahead_case {
  const char *what;
  bool trans, other; /* op; whether the solve is for the other op */
  double factor;     /* v = factor b, */
  int64_t spoiled;   /* except for this entry, counted from 1 */
  bool taken;        /* must the solve that was begun ahead be used? */
};

const ahead_case ahead_cases[] = {
    {"r itself", false, false, 1.0, 0, true},
    {"transposed", true, false, 1.0, 0, true},
    {"a multiple", false, false, 0x1p60, 0, true},
    {"a small one", true, false, 0x1p-90, 0, true},
    {"no power of two", false, false, 0.75, 0, false},
    {"of the other sign", false, false, -1.0, 0, false},
    {"too far off", false, false, 0x1p700, 0, false},
    {"the other matrix", false, true, 1.0, 0, false},
    {"the first entry differs", false, false, 2.0, 1, false},
    {"the last entry differs", true, false, 2.0, 300, false},
};

void check_ahead(void *self, const hone_matrix *a, const problem &p,
                 const ahead_case &t, double bad) {
  std::vector<double> v = p.b[0];
  for (double &e : v)
    e *= t.factor;
  if (t.spoiled > 0)
    v.data()[t.spoiled - 1] = bad;
  std::vector<double> plain = v;
  int64_t sent = 0, sent_plain = 0;
  ct_note("%s, %g", t.what, bad);
  solve_ahead(self, a, t.trans, p.b[0], true, &v, t.trans != t.other, &sent);
  solve_ahead(self, a, t.trans, p.b[0], false, &plain, t.trans != t.other,
              &sent_plain);
  CHECK(memcmp(v.data(), plain.data(), v.size() * sizeof(double)) == 0);
  CHECK_EQ_INT(sent_plain, p.n * (int64_t)sizeof(double));
  CHECK_EQ_INT(sent, t.taken ? 0 : sent_plain);
}

/* The solve ahead is used once, and not after A was factored again. */
void check_ahead_ends(void *self, const hone_matrix *a, const problem &p) {
  std::vector<double> v = p.b[0], again = v, other = v;
  int64_t sent = 0;
  hone_factor_info info;
  hone_account before, after;
  solve_ahead(self, a, false, p.b[0], true, &v, false, &sent);
  CHECK_EQ_INT(sent, 0);
  hone_engine_single_cuda.account(self, &before);
  CHECK_EQ_INT(hone_engine_single_cuda.solve(self, false, 1, again.data(), p.n),
               HONE_OK);
  hone_engine_single_cuda.account(self, &after);
  CHECK_LT(before.to_device, after.to_device);
  CHECK(memcmp(v.data(), again.data(), v.size() * sizeof(double)) == 0);
  std::vector<double> half = p.a, zeros(v.size(), 0.0), r = zeros, den = zeros;
  for (double &e : half)
    e *= 0.5;
  const hone_dense a_half_dense = {p.n, p.lda, half.data(), nullptr, false, 0};
  const hone_matrix a_half = hone_dense_matrix(&a_half_dense);
  hone_engine_single_cuda.expect(self);
  CHECK_EQ_INT(hone_engine_single_cuda.residual(self, a, false, zeros.data(),
                                                p.b[0].data(), r.data(),
                                                den.data()),
               HONE_OK);
  CHECK_EQ_INT(hone_engine_single_cuda.factor(self, &a_half, nullptr, &info),
               HONE_OK);
  CHECK_EQ_INT(hone_engine_single_cuda.solve(self, false, 1, other.data(), p.n),
               HONE_OK);
  for (int64_t i = 0; i < p.n; i++)
    CHECK_NEAR(other.data()[i], 2.0 * v.data()[i], 1e-4);
}

TEST(engine_cuda, uses_a_solve_begun_ahead_for_that_residual_only) {
  NEED_DEVICE();
  const problem p(300, 1, 12.0);
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  void *self = nullptr;
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  CHECK_EQ_INT(hone_engine_single_cuda.create(&self, &config), HONE_OK);
  const hone_dense a_dense = {p.n, p.lda, p.a.data(), nullptr, false, 0};
  const hone_matrix a = hone_dense_matrix(&a_dense);
  hone_factor_info info;
  CHECK_EQ_INT(hone_engine_single_cuda.factor(self, &a, nullptr, &info),
               HONE_OK);
  for (const ahead_case &t : ahead_cases)
    for (double bad : {0.0, 1.0, (double)HONE_NAN, (double)HONE_INF})
      check_ahead(self, &a, p, t, bad);
  check_ahead_ends(self, &a, p);
  hone_engine_single_cuda.destroy(self, &mem);
  CHECK_EQ_INT(mem.held, 0);
}

/* Makes each call of CUDA in turn fail, or some of them: the status must say
   so, and nothing may be lost. */
void fail_everywhere(const problem &p, const hone_choices &choices,
                     int64_t step = 1) {
  const int64_t before = failing_calls.made;
  check_run(p, p.a.data(), choices, 64, 0x1p-16);
  const int64_t calls = failing_calls.made - before;
#ifdef HONE_EMULATE
  const size_t owned = hone_emulate::owned_now();
#endif
  CHECK_GE(calls, 100);
  for (int64_t k = 1; k <= calls; k += step) {
    failing_calls.fail_at = k;
    const outcome out = run(p, p.a.data(), choices, 64);
    ct_note("call %d of %d", (int)k, (int)calls);
    CHECK_EQ_INT(failing_calls.fail_at, 0);
    CHECK_EQ_INT(out.status, HONE_DEVICE_FAILED);
#ifdef HONE_EMULATE
    CHECK_EQ_INT(hone_emulate::owned_now(), owned);
#endif
  }
  failing_calls.fail_at = 0;
}

TEST(engine_cuda, survives_every_failed_call) {
  NEED_DEVICE();
  const problem p(140, 0, 12.0);
  hone_choices choices = {};
  fail_everywhere(p, choices);
  choices.residuals = HONE_RESIDUALS_HOST;
  fail_everywhere(p, choices);
}

TEST(engine_cuda, survives_every_failed_call_in_tall_panels) {
  NEED_DEVICE();
  const problem p(260, 0, 12.0);
  hone_choices choices = {};
  choices.trial.part_rows = 256;
  fail_everywhere(p, choices, 5);
}

/* A large order is refused only for the memory that it takes. */
TEST(engine_cuda, refuses_orders_above_one_launch_for_memory_alone) {
  NEED_DEVICE();
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  char why[100] = "";
  void *self = nullptr;
  config.n = hone_cuda_panel_rows() + 1;
  config.mem = &mem;
  config.watch = &watch;
  config.why = why;
  config.why_size = sizeof why;
  config.choices.device_limit = 4 * config.n * config.n;
  for (const hone_engine *engine :
       {&hone_engine_single_cuda, &hone_engine_cholesky_cuda}) {
    CHECK_EQ_INT(engine->create(&self, &config), HONE_NO_MEMORY);
    CHECK_EQ_INT(strncmp(why, "needs ", 6), 0);
    CHECK_EQ_INT(mem.held, 0);
  }
}

TEST(engine_cuda, survives_every_failed_call_in_other_forms) {
  NEED_DEVICE();
  const problem p(140, 0, 12.0);
  for (int sections = 1; sections <= HONE_BLOCK_ROWS_CROUT; sections++) {
    hone_choices choices = {};
    choices.diagonal = sections == HONE_BLOCK_ROWS_CROUT ? HONE_DIAGONAL_GPU
                                                         : HONE_DIAGONAL_CPU;
    choices.sections = sections;
    choices.trial.cpu_from = 1;
    fail_everywhere(p, choices, 3);
  }
}

/* Outer panels of 32 columns, with look-ahead at every order. */
constexpr hone_trial narrow_panels_ahead() {
  hone_trial t = {};
  t.ahead_from = 1;
  t.outer = 32;
  return t;
}
const hone_trial narrow_ahead = narrow_panels_ahead();

int stop_in_the_middle(void *, const hone_progress *event) {
  return std::strcmp(event->phase, "factor") == 0 && event->fraction > 0.0;
}

/* The caller may free A as soon as factor has returned. After a factorization
   that was stopped, the next one must not use any part of the old A. */
TEST(engine_cuda, reads_nothing_of_a_matrix_after_a_stop) {
  NEED_DEVICE();
  const problem p(256, 0, 12.0);
  hone_pool *pool = nullptr;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  outcome out = {};
  void *self = nullptr;
  hone_pool_create(&pool, &mem, 3);
  config.choices.trial = narrow_ahead;
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  config.pool = pool;
  CHECK_EQ_INT(hone_engine_single_cuda.create(&self, &config), HONE_OK);
  const hone_cuda *c = static_cast<hone_cuda *>(self);
  for (int turn = 0; turn < 3 && self; turn++) {
    watch = {};
    watch.progress = stop_in_the_middle;
    CHECK_EQ_INT(run_all(self, p, p.a.data(), &out), HONE_CANCELLED);
    CHECK_EQ_INT(c->job.running, false);
    CHECK_LT(c->fed, p.n);
    watch = {};
    CHECK_EQ_INT(run_all(self, p, p.a.data(), &out), HONE_OK);
    CHECK_LE(out.error[0], 0x1p-16);
    CHECK_LE(out.residual, 0x1p-40);
  }
  hone_engine_single_cuda.destroy(self, &mem);
  hone_pool_destroy(&pool, &mem);
  CHECK_EQ_INT(mem.held, 0);
}

/* Threads copy A while it is factored with look-ahead, so that the number of
   calls varies. */
TEST(engine_cuda, survives_failed_calls_while_a_arrives) {
  NEED_DEVICE();
  const problem p(256, 0, 12.0);
  hone_pool *pool = nullptr;
  hone_mem mem = {};
  hone_pool_create(&pool, &mem, 3);
  hone_choices choices = {};
  choices.trial = narrow_ahead;
  const int64_t before = failing_calls.made;
  const outcome whole = run(p, p.a.data(), choices, 0, pool);
  CHECK_EQ_INT(whole.status, HONE_OK);
  const int64_t calls = failing_calls.made - before;
#ifdef HONE_EMULATE
  const size_t owned = hone_emulate::owned_now();
#endif
  for (int64_t k = 1; k <= calls; k += 1 + k / 64) {
    failing_calls.fail_at = k;
    const outcome out = run(p, p.a.data(), choices, 0, pool);
    const bool reached = failing_calls.fail_at == 0;
    failing_calls.fail_at = 0;
    ct_note("call %d of %d", (int)k, (int)calls);
    CHECK_EQ_INT(out.status, reached ? (int)HONE_DEVICE_FAILED : (int)HONE_OK);
#ifdef HONE_EMULATE
    CHECK_EQ_INT(hone_emulate::owned_now(), owned);
#endif
  }
  hone_pool_destroy(&pool, &mem);
}

} // namespace
