/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA refuses to create memory, a stream, an event or a handle: each creation
   of a run in turn, once with its pointer left alone and once with a wild
   pointer in it. Where the library then uses or frees what was never created,
   the emulator ends the program. test_device.cu makes every other call fail;
   there the call is made, and only its status is a failure. */
#include "tests/cuda/test_kernels.h"
#include "tests/emulate/refuse.h"

extern "C" {
#include "api/hone.h"
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/forms/crout.h"

#include <functional>

namespace {

using hone_emulate::owned_now;
using hone_emulate::refusing;

/* Creation k = 0, 1, ... is refused in a call of run, until a run asks for no
   more than k creations; of whole solves some k are left out. run returns
   whether a creation was refused. */
enum which { EVERY, SOME };
void refuse_each(const char *what, which creations, int64_t at_least,
                 const std::function<bool()> &run) {
  const size_t owned = owned_now();
  for (const bool spoil : {false, true}) {
    bool refused = true;
    int64_t k = 0;
    for (; refused; k += creations == EVERY ? 1 : 1 + k / 4) {
      ct_note("%s, creation %d refused, its pointer %s", what, (int)k,
              spoil ? "spoiled" : "left alone");
      refusing.spoil = spoil;
      refusing.refuse_at = k + 1;
      refused = run();
      refusing.refuse_at = 0;
      (void)hone_release_kept();
      CHECK_EQ_INT(owned_now(), owned);
    }
    CHECK_GE(k, at_least);
  }
}

bool was_refused() { return refusing.refuse_at == 0; }

/* A x = b with a symmetric A, diagonally dominant, and its solution. */
struct problem {
  int64_t n;
  std::vector<double> a, x, b;

  explicit problem(int64_t order) : n(order) {
    numbers r = {static_cast<uint64_t>(order)};
    a = r.array<double>(n * n);
    x = r.array<double>(n);
    b.assign(static_cast<size_t>(n), 0.0);
    for (int64_t j = 0; j < n; j++) {
      a.data()[j + j * n] = 2.0 * static_cast<double>(n);
      for (int64_t i = 0; i < j; i++)
        a.data()[i + j * n] = a.data()[j + i * n];
    }
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++)
        b.data()[i] += a.data()[i + j * n] * x.data()[j];
  }
  double error_of(const std::vector<double> &y) const {
    double error = 0.0;
    for (int64_t i = 0; i < n; i++)
      error += std::fabs(y.data()[i] - x.data()[i]);
    return error;
  }
};

/* ---- Engines ------------------------------------------------------------ */

/* Factors and solves, which create nothing. */
void use(const hone_engine *engine, void *self, const problem &p) {
  const double unit = 0x1p-12; /* entries of v are at most 1 */
  const hone_dense dense = {p.n, p.n, p.a.data(), nullptr, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&dense);
  std::vector<double> ones(static_cast<size_t>(p.n), 1.0), v = p.b;
  std::vector<int> zeros(ones.size());
  const hone_scaling scaling = {ones.data(), ones.data(), zeros.data(),
                                zeros.data(), false};
  const int64_t asked = refusing.asked;
  hone_factor_info info;
  CHECK_EQ_INT(engine->factor(self, &matrix, &scaling, &info), HONE_OK);
  for (double &e : v)
    e *= unit;
  CHECK_EQ_INT(engine->solve(self, false, 1, v.data(), p.n), HONE_OK);
  for (double &e : v)
    e /= unit;
  CHECK_LE(p.error_of(v), 0x1p-10);
  CHECK_EQ_INT(refusing.asked - asked, 0);
}

bool run_engine(const hone_engine *engine, const hone_choices &choices,
                int64_t block, const problem &p) {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  void *self = &mem; /* create replaces it by NULL */
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  config.block = block;
  config.choices = choices;
  const int st = engine->create(&self, &config);
  const bool refused = was_refused();
  if (refused) {
    CHECK(st == HONE_NO_MEMORY || st == HONE_DEVICE_FAILED);
    CHECK(self == nullptr);
  } else {
    CHECK_EQ_INT(st, HONE_OK);
    use(engine, self, p);
    engine->destroy(self, &mem);
  }
  CHECK_EQ_INT(mem.held, 0);
  return refused;
}

void refuse_engine(const char *what, const hone_engine *engine,
                   const hone_choices &choices, int64_t block) {
  const problem p(140);
  refuse_each(what, EVERY, engine->precision == 64 ? 20 : 40,
              [&] { return run_engine(engine, choices, block, p); });
}

TEST(refused_creation, leaves_no_engine_behind) {
  const hone_choices plain = {};
  refuse_engine("LU", &hone_engine_single_cuda, plain, 0);
  refuse_engine("LU, block columns", &hone_engine_single_cuda, plain, 64);
  refuse_engine("Cholesky", &hone_engine_cholesky_cuda, plain, 0);
  refuse_engine("LU in double", &hone_engine_double_cuda, plain, 0);
  hone_choices outside = {};
  outside.trial.window = 64;
  refuse_engine("factors with the host", &hone_engine_outside, outside, 0);
}

TEST(refused_creation, leaves_no_engine_behind_with_other_choices) {
  hone_choices choices = {};
  choices.residuals = HONE_RESIDUALS_HOST;
  refuse_engine("A on the host", &hone_engine_single_cuda, choices, 64);
  choices = {};
  choices.arithmetic = HONE_ARITHMETIC_FP32;
  refuse_engine("FP32", &hone_engine_single_cuda, choices, 64);
  choices = {};
  choices.trial.ahead_from = 1;
  choices.trial.outer = 32;
  refuse_engine("look-ahead", &hone_engine_single_cuda, choices, 64);
  for (int rows = 1; rows <= HONE_BLOCK_ROWS_CROUT; rows++) {
    choices = {};
    choices.sections = rows;
    choices.diagonal =
        rows == HONE_BLOCK_ROWS_CROUT ? HONE_DIAGONAL_GPU : HONE_DIAGONAL_CPU;
    choices.trial.cpu_from = 1;
    refuse_engine("block rows", &hone_engine_single_cuda, choices, 64);
  }
}

TEST(refused_creation, leaves_no_crout_behind) {
  const int64_t n = 70;
  const problem p(n);
  const on_device<double> a(n * n);
  refuse_each("Crout", EVERY, 4, [&] {
    hone_crout *crout = nullptr;
    const int st = hone_crout_create(&crout, n, nullptr);
    const bool refused = was_refused();
    CHECK_EQ_INT(st, refused ? (int)HONE_NO_MEMORY : (int)HONE_OK);
    CHECK_EQ_INT(crout == nullptr, refused);
    MUST(cudaMemcpy(a, p.a.data(), a.count * sizeof(double),
                    cudaMemcpyHostToDevice));
    if (crout)
      CHECK_EQ_INT(hone_crout_d(crout, n, a, n, nullptr), HONE_OK);
    hone_crout_destroy(crout);
    return refused;
  });
}

/* ---- Whole solves ---------------------------------------------------------
 */

const double UNTOUCHED = -0x1.23456789p9;

hone_options cuda_options(int precision, const hone_tuning *tuning) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  o.structure = HONE_STRUCTURE_GENERAL;
  o.factor_precision = precision;
  o.threads = 3;
  o.tuning = tuning;
  return o;
}

/* x is right, or an error is returned and x was not written. */
void check_x(const problem &p, int st, const std::vector<double> &x) {
  bool untouched = true;
  for (double e : x)
    untouched = untouched && e == UNTOUCHED;
  CHECK_EQ_INT(untouched, st < 0);
  if (st >= 0)
    CHECK_LE(p.error_of(x), 1e-10);
}

bool run_solve(const problem &p, const hone_options &o) {
  std::vector<double> x(p.x.size(), UNTOUCHED);
  hone_report report = HONE_REPORT_INIT;
  const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, &report);
  check_x(p, st, x);
  return was_refused();
}

TEST(refused_creation, leaves_x_alone_or_right) {
  const problem p(150);
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.diagonal = HONE_DIAGONAL_CPU;
  tuning.block_rows = HONE_BLOCK_ROWS_SEEDED;
  const hone_options single = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  const hone_options in_double = cuda_options(HONE_FACTOR_DOUBLE, nullptr);
  const hone_options forms = cuda_options(HONE_FACTOR_SINGLE, &tuning);
  refuse_each("single", SOME, 40, [&] { return run_solve(p, single); });
  refuse_each("double", SOME, 20, [&] { return run_solve(p, in_double); });
  refuse_each("other forms", SOME, 40, [&] { return run_solve(p, forms); });
}

int factor_and_solve(hone_solver *solver, const problem &p,
                     std::vector<double> *x) {
  const int st = hone_solver_factor(solver, p.a.data(), p.n, nullptr);
  return st < 0 ? st
                : hone_solver_solve(solver, 1, p.b.data(), p.n, x->data(), p.n,
                                    nullptr, nullptr);
}

/* A later call of the same solver, which nothing is refused, succeeds. */
bool run_solver(const problem &p, const hone_options &o) {
  std::vector<double> x(p.x.size(), UNTOUCHED), again = x;
  hone_solver *solver = nullptr;
  int st = hone_solver_create(&solver, p.n, &o);
  if (st >= 0)
    st = factor_and_solve(solver, p, &x);
  check_x(p, st, x);
  const bool refused = was_refused();
  refusing.refuse_at = 0;
  if (solver) {
    st = factor_and_solve(solver, p, &again);
    CHECK_EQ_INT(st, HONE_OK);
    check_x(p, st, again);
  }
  hone_solver_destroy(&solver);
  return refused;
}

TEST(refused_creation, leaves_a_solver_that_still_solves) {
  const problem p(130);
  const hone_options single = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  refuse_each("solver", SOME, 40, [&] { return run_solver(p, single); });
}

/* A batch that is solved by panels. Without its workspace there are fewer
   thread blocks; without anything else each system is solved by itself. */
bool run_batch(const problem &p, const hone_options &o) {
  enum { COUNT = 2 };
  std::vector<double> x(COUNT * p.x.size(), UNTOUCHED);
  hone_batch_result results[COUNT];
  hone_batch batch = HONE_BATCH_INIT;
  batch.count = COUNT;
  batch.n = batch.lda = batch.ldb = batch.ldx = batch.stride_x = p.n;
  batch.nrhs = 1;
  batch.a = p.a.data();
  batch.b = p.b.data();
  batch.x = x.data();
  CHECK_EQ_INT(hone_batch_solve(&batch, &o, results, nullptr), HONE_OK);
  for (int k = 0; k < COUNT; k++) {
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(k * p.n);
    check_x(p, results[k].status, {from, from + p.n});
  }
  return was_refused();
}

TEST(refused_creation, leaves_a_batch_that_is_solved) {
  const problem p(130);
  const hone_options o = cuda_options(HONE_FACTOR_AUTO, nullptr);
  refuse_each("batch", EVERY, 10, [&] { return run_batch(p, o); });
}

/* ---- What is kept between calls -------------------------------------------
 */

TEST(kept_engine, is_created_once_and_can_be_given_back) {
  const problem p(150), other(140);
  const hone_options o = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  (void)hone_release_kept();
  const size_t owned = owned_now();
  const int64_t asked = refusing.asked;
  (void)run_solve(p, o);
  const size_t kept = owned_now();
  CHECK(kept > owned);
  CHECK(refusing.asked > asked);
  for (int k = 0; k < 3; k++) {
    const int64_t before = refusing.asked;
    (void)run_solve(p, o);
    CHECK_EQ_INT(refusing.asked - before, 0);
    CHECK_EQ_INT(owned_now(), kept);
  }
  (void)run_solve(other, o); /* another order has an engine of its own */
  const size_t both = owned_now();
  CHECK(both > kept);
  (void)run_solve(p, o);
  (void)run_solve(other, o);
  CHECK_EQ_INT(owned_now(), both);
  CHECK(hone_release_kept() > 0);
  CHECK_EQ_INT(owned_now(), owned);
  CHECK_EQ_INT(hone_release_kept(), 0);
}

TEST(kept_engine, is_one_of_four_at_most) {
  const hone_options o = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  std::vector<size_t> owned;
  (void)hone_release_kept();
  for (int64_t n : {60, 60, 60, 60, 60, 60, 60})
    (void)run_solve(problem(n), o);
  const size_t one = owned_now();
  for (int64_t n = 61; n < 67; n++)
    (void)run_solve(problem(n), o);
  (void)hone_release_kept();
  const size_t none = owned_now();
  for (int64_t n = 61; n < 65; n++)
    (void)run_solve(problem(n), o);
  const size_t four = owned_now();
  for (int64_t n = 65; n < 69; n++) {
    (void)run_solve(problem(n), o);
    CHECK_EQ_INT(owned_now(), four);
  }
  CHECK_EQ_INT(four - none, 4 * (one - none));
  (void)hone_release_kept();
}

/* The methods that papers describe have streams of their own, and a solver is
   destroyed when the caller says so. */
TEST(kept_engine, is_not_a_solver_nor_has_it_other_forms) {
  const problem p(150);
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.diagonal = HONE_DIAGONAL_CPU;
  const hone_options o = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  const hone_options forms = cuda_options(HONE_FACTOR_SINGLE, &tuning);
  (void)hone_release_kept();
  const size_t owned = owned_now();
  (void)run_solver(p, o);
  CHECK_EQ_INT(owned_now(), owned);
  (void)run_solve(p, forms);
  CHECK_EQ_INT(owned_now(), owned);
}

void *counted_alloc(size_t bytes, void *ctx) {
  ++*static_cast<int *>(ctx);
  return malloc(bytes);
}
void counted_free(void *memory, void *ctx) {
  --*static_cast<int *>(ctx);
  free(memory);
}

/* Memory of the caller's hooks is given back, and a kept engine counts in the
   caller's limit as a new one does. */
TEST(kept_engine, respects_hooks_and_limits) {
  const problem p(150);
  int held = 0;
  hone_options o = cuda_options(HONE_FACTOR_SINGLE, nullptr);
  hone_options hooks = o, limited = o;
  hooks.alloc = counted_alloc;
  hooks.free = counted_free;
  hooks.alloc_ctx = &held;
  (void)hone_release_kept();
  const size_t owned = owned_now();
  (void)run_solve(p, hooks);
  CHECK_EQ_INT(held, 0);
  CHECK_EQ_INT(owned_now(), owned);
  hone_report first = HONE_REPORT_INIT, again = HONE_REPORT_INIT;
  std::vector<double> x(p.x.size());
  for (hone_report *report : {&first, &again})
    CHECK_EQ_INT(hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, report),
                 HONE_OK);
  CHECK_EQ_INT(first.host_bytes, again.host_bytes);
  CHECK_EQ_INT(first.device_bytes, again.device_bytes);
  limited.memory_limit_bytes = first.host_bytes / 2;
  (void)hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(), p.n,
                   &limited, &again);
  CHECK_LE(again.host_bytes, limited.memory_limit_bytes);
  (void)hone_release_kept();
}

/* The emulator ends the program where something is never freed. */
struct at_the_end {
  ~at_the_end() { (void)hone_release_kept(); }
} at_the_end;

} // namespace
