/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky's factorization on a CUDA device, compiled for real and for complex
   entries: every arithmetic and order, look-ahead, the ways in which A arrives,
   one triangle that stands for both, and calls that fail. test_cholesky.c tests
   what it has in common with that of the CPU. */
#include "tests/cuda/test_kernels.h"
#include "tests/unit/wrapped.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/outer_panels.h"
#include "gpu_sp/layout.h"

#include <complex>

#ifdef HONE_COMPLEX
#define SUITE complex_definite
#else
#define SUITE definite
#endif
#define DEFINITE_TEST_OF(suite, name) TEST(suite, name)
#define DEFINITE_TEST(name) DEFINITE_TEST_OF(SUITE, name)

namespace {

typedef std::complex<double> cplx;
const hone_engine *const D = &hone_engine_cholesky_cuda;

#ifdef HONE_COMPLEX
typedef cplx number;
number random_number(numbers *r) {
  const double re = r->uniform();
  return cplx(re, r->uniform());
}
number conjugate(number v) { return std::conj(v); }
#else
typedef double number;
number random_number(numbers *r) { return r->uniform(); }
number conjugate(number v) { return v; }
#endif

hone_entry *entries(std::vector<number> &v) {
  return reinterpret_cast<hone_entry *>(v.data());
}
const hone_entry *entries(const std::vector<number> &v) {
  return reinterpret_cast<const hone_entry *>(v.data());
}

/* A positive definite S, and b[trans] = op(S) x. */
struct problem {
  int64_t n;
  std::vector<number> a, x, b[2];

  problem(int64_t order, double diagonal)
      : n(order), a(static_cast<size_t>(n * n)), x(static_cast<size_t>(n)) {
    numbers r = {static_cast<uint64_t>(order)};
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++) {
        const number v = i == j ? number(diagonal) : random_number(&r);
        a.data()[i + j * n] = v;
        a.data()[j + i * n] = conjugate(v);
      }
    for (number &e : x)
      e = random_number(&r);
    multiply();
  }
  void multiply() {
    for (int trans = 0; trans < 2; trans++) {
      b[trans].assign(x.size(), number(0));
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          b[trans].data()[trans ? j : i] +=
              a.data()[i + j * n] * x.data()[trans ? i : j];
    }
  }
};

/* An engine that has factored the problem's S. */
struct factored {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  hone_dense dense;
  hone_matrix matrix;
  hone_factor_info info = {};
  void *self = nullptr;
  int status;

  factored(const problem &p, const hone_choices &choices, int64_t block = 0,
           hone_pool *pool = nullptr)
      : dense{p.n, p.n, entries(p.a), nullptr, false, 0},
        matrix(hone_dense_matrix(&dense)) {
    std::vector<double> ones(p.x.size(), 1.0);
    std::vector<int> zeros(ones.size());
    const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                               zeros.data(), false};
    config.n = p.n;
    config.mem = &mem;
    config.watch = &watch;
    config.pool = pool;
    config.block = block;
    config.choices = choices;
    status = D->create(&self, &config);
    if (status == HONE_OK)
      status = D->factor(self, &matrix, &none, &info);
  }
  factored(const factored &) = delete;
  ~factored() {
    if (self)
      D->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
  const hone_cuda *cuda() const { return static_cast<hone_cuda *>(self); }
  /* U, row by row, with zeros below its diagonal. */
  std::vector<float> factors() const {
    const hone_cuda *c = cuda();
    std::vector<float> f(static_cast<size_t>(c->ld * c->n));
    MUST(cudaMemcpy(f.data(), c->f, f.size() * sizeof(float),
                    cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < c->n; i++)
      for (int64_t j = 0; j < c->ld; j++)
        if (j < HONE_PARTS * i || j >= HONE_PARTS * c->n)
          f.data()[i * c->ld + j] = 0.0F;
    return f;
  }
};

/* Returns the largest error of the solution; Inf where the solve failed. */
double error_of(const factored &f, const problem &p, bool trans) {
  std::vector<number> v = p.b[trans];
  double big = 1.0, most = 0.0;
  for (const number &e : v)
    big = std::fmax(big, std::abs(e));
  for (number &e : v)
    e /= big;
  if (D->solve(f.self, trans, 1, entries(v), p.n) != HONE_OK)
    return HUGE_VAL;
  for (int64_t i = 0; i < p.n; i++) {
    const double e = std::abs(v.data()[i] * big - p.x.data()[i]);
    most = e <= most ? most : e;
  }
  return most;
}

void check_factored(const factored &f, const problem &p, double tolerance) {
  CHECK_EQ_INT(f.status, HONE_OK);
  if (f.status != HONE_OK)
    return;
  CHECK_EQ_INT(f.info.zero_pivot, -1);
  CHECK_LE(f.info.growth, 1.01);
  CHECK_LE(error_of(f, p, false), tolerance);
  CHECK_LE(error_of(f, p, true), tolerance);
}

/* The unit roundoff of each arithmetic, beginning with HONE_ARITHMETIC_AUTO. */
const double units[] = {0x1p-22, 0x1p-24, 0x1p-11, 0x1p-22,
                        0x1p-16, 0x1p-11, 0x1p-8};

DEFINITE_TEST(factors_in_every_arithmetic) {
  NEED_DEVICE();
  const problem p(300, 24.0);
  for (int arithmetic = 0; arithmetic < 7; arithmetic++)
    for (int64_t block : {0, 40, 150})
      for (int residuals = 0; residuals < 2; residuals++) {
        hone_choices choices = {};
        choices.arithmetic = arithmetic;
        choices.residuals = residuals;
        ct_note("arithmetic %d, block %d, residuals %d", arithmetic, (int)block,
                residuals);
        check_factored(factored(p, choices, block), p,
                       40.0 * units[arithmetic]);
      }
}

DEFINITE_TEST(factors_every_small_order) {
  NEED_DEVICE();
  for (int64_t n = 1; n <= 20; n++) {
    const problem p(n, 8.0);
    ct_note("n %d", (int)n);
    check_factored(factored(p, {}), p, 0x1p-18);
  }
  for (int64_t n : {31, 63, 64, 65, 96, 127, 128, 129, 191, 193, 255, 257}) {
    const problem p(n, 24.0);
    ct_note("n %d", (int)n);
    check_factored(factored(p, {}), p, 0x1p-18);
  }
}

/* Look-ahead with outer panels of less and more than one inner panel, in one
   strip and in several, with products along the diagonal of few rows. */
DEFINITE_TEST(factors_beside_the_update) {
  NEED_DEVICE();
  const problem p(400, 28.0);
  for (int64_t outer : {32, 128, 200})
    for (int64_t strip : {0, 70})
      for (int64_t diagonal : {0, 40})
        for (int arithmetic : {0, 1, 5}) {
          hone_choices choices = {};
          choices.arithmetic = arithmetic;
          choices.trial.ahead_from = 1;
          choices.trial.outer = outer;
          choices.trial.strip = strip;
          choices.trial.diagonal = diagonal;
          ct_note("outer %d, strip %d, diagonal %d, arithmetic %d", (int)outer,
                  (int)strip, (int)diagonal, arithmetic);
          const factored f(p, choices);
          check_factored(f, p, 40.0 * units[arithmetic]);
          CHECK(f.cuda()->forms.side.stream != nullptr);
        }
}

/* The lists of parts of load.cu, with threads and without: when a part arrives
   changes no bit. */
DEFINITE_TEST(arrives_by_every_list_of_parts) {
  NEED_DEVICE();
  problem p(600, 32.0);
  for (int64_t i = 0; i < p.n; i++) /* each part in a scale of its own */
    p.a.data()[i * (p.n + 1)] *= std::ldexp(1.0, (int)(i / 75));
  p.multiply();
  hone_mem mem = {};
  hone_pool *pool = nullptr;
  hone_pool_create(&pool, &mem, 3);
  for (int64_t ahead_from : {1, 1000})
    for (int64_t feed = 0; feed <= HONE_PARTS_LISTS + 1; feed++) {
      hone_choices choices = {};
      choices.trial.ahead_from = ahead_from;
      choices.trial.outer = 40;
      choices.trial.feed = feed;
      ct_note("look-ahead from %d, list %d", (int)ahead_from, (int)feed);
      const factored alone(p, choices), threads(p, choices, 0, pool);
      check_factored(alone, p, 0x1p-16);
      CHECK(same(alone.factors(), threads.factors()));
      CHECK_EQ_INT(alone.cuda()->column_count, threads.cuda()->column_count);
      if (feed == 2 || feed == 0)
        CHECK_EQ_INT(alone.cuda()->column_count, 1);
      if (feed == 6)
        CHECK_EQ_INT(alone.cuda()->column_count, 4);
    }
  hone_pool_destroy(&pool, &mem);
}

/* Parts are scaled by what has come: where later rows of A are far larger, they
   overflow, and the products are made in FP32. */
DEFINITE_TEST(sees_that_later_rows_are_far_larger) {
  NEED_DEVICE();
  for (const int powers : {6, 24}) {
    problem p(400, 32.0);
    for (int64_t e = 0; e < p.n * p.n; e++)
      p.a.data()[e] *=
          std::ldexp(1.0, powers * ((e / p.n >= 200) + (e % p.n >= 200)));
    const factored f(p, {}, 200);
    ct_note("powers %d", powers);
    CHECK_LE(f.status == HONE_OK ? f.info.growth : HUGE_VAL, 1.01);
    CHECK((f.cuda()->pieces == HONE_SPLIT_NONE) == (powers == 24));
  }
}

/* A second part of A is there from the beginning, and is updated by each panel
   at once: the operands of one update must not serve another part, whose scale
   differs. */
DEFINITE_TEST(updates_another_part_by_the_panel_just_applied) {
  NEED_DEVICE();
  problem p(400, 32.0);
  for (int64_t i = 0; i < p.n; i++)
    p.a.data()[i * (p.n + 1)] *= i < 200 ? 1.0 : 16.0;
  p.multiply();
  hone_choices choices = {};
  choices.trial.ahead_from = 1;
  choices.trial.outer = 100;
  const factored f(p, choices, 200);
  check_factored(f, p, 0x1p-16);
  const std::vector<float> wanted = f.factors();
  hone_cuda *c = static_cast<hone_cuda *>(f.self);
  const hone_dense *a = &f.dense;
  hone_factor_info info = {};
  info.zero_pivot = -1;
  int st = hone_cuda_load_begin(c, a, nullptr);
  TRY(hone_cuda_load(c, a, nullptr, 0, 200));
  TRY(hone_cuda_load_next(c, a, nullptr, 200, 200));
  TRY(hone_cuda_factor_panel(c, 0, 100, 200));
  TRY(hone_cuda_apply_panel(c, 0, 100, 200));
  TRY(hone_cuda_apply_panels(c, 0, 1, 200, 400));
  TRY(hone_cuda_factor_panel(c, 100, 100, 200));
  TRY(hone_cuda_apply_panel(c, 1, 200, 200));
  TRY(hone_cuda_apply_panels_from(c, 1, 200, 400));
  TRY(hone_cuda_factor_column(c, 200, 200));
  TRY(hone_cuda_finish(c));
  TRY(hone_cuda_outcome(c, true, &info));
  CHECK_EQ_INT(st, HONE_OK);
  CHECK(same(f.factors(), wanted));
  CHECK_LE(error_of(f, p, true), 0x1p-16);
}

/* Inspects A as the engine sees it; the largest entry of its columns. */
double inspect(const factored &f, int64_t n) {
  std::vector<double> rows(static_cast<size_t>(n)), columns = rows;
  std::vector<double> sums(2 * rows.size());
  double most = 0.0;
  hone_inspection seen = {};
  seen.row_max = rows.data();
  seen.col_max = columns.data();
  CHECK_EQ_INT(D->inspect(f.self, &f.matrix, nullptr, sums.data(), &seen),
               HONE_OK);
  for (const double v : columns)
    most = v <= most ? most : v;
  return most;
}

/* One triangle is sent, and the other one made of it: products with the copy
   are those with A. */
DEFINITE_TEST(completes_one_triangle) {
  NEED_DEVICE();
  const problem p(230, 20.0);
  const factored f(p, {});
  REQUIRE(f.status == HONE_OK && D->resident(f.self));
  CHECK_LE(inspect(f, p.n), 20.0);
  CHECK_LT(f.cuda()->used.to_device,
           p.n * p.n * (int64_t)sizeof(hone_entry) * 7 / 10);
  for (int trans = 0; trans < 2; trans++) {
    std::vector<number> product(p.x.size());
    CHECK_EQ_INT(
        D->product(f.self, &f.matrix, trans, 1, entries(p.x), entries(product)),
        HONE_OK);
    for (size_t i = 0; i < product.size(); i++)
      CHECK_LE(std::abs(product[i] - p.b[trans][i]), 0x1p-40);
  }
}

/* One bit of one part of an entry below the diagonal, anywhere: then the copy
   is not A, and the inspection says so. */
DEFINITE_TEST(sees_that_the_other_triangle_differs) {
  NEED_DEVICE();
  problem p(150, 20.0);
  double *const a = reinterpret_cast<double *>(p.a.data());
  for (int64_t at : {1, 149, 149 * 150 - 1, 75 * 150 + 140})
    for (int part = 0; part < HONE_PARTS; part++) {
      double *const entry = a + HONE_PARTS * at + part;
      const double old = *entry;
      *entry = std::nextafter(old, 10.0);
      ct_note("entry %d, part %d", (int)at, part);
      CHECK(inspect(factored(p, {}), p.n) == HUGE_VAL);
      *entry = NAN;
      CHECK(inspect(factored(p, {}), p.n) == HUGE_VAL);
      *entry = old;
      CHECK_LE(inspect(factored(p, {}), p.n), 20.0);
    }
#ifdef HONE_COMPLEX
  for (cplx &e : p.a) /* symmetric, not Hermitian */
    e = e.imag() < 0.0 ? std::conj(e) : e;
  CHECK(inspect(factored(p, {}), p.n) == HUGE_VAL);
#endif
}

DEFINITE_TEST(names_the_first_pivot_not_positive) {
  NEED_DEVICE();
  problem p(330, 24.0);
  hone_choices choices = {};
  choices.trial.outer = 100;
  for (int64_t ahead_from : {1, 1000})
    for (int64_t c : {0, 63, 64, 100, 299, 329})
      for (double bad : {-1.0, 0.0, (double)NAN}) {
        choices.trial.ahead_from = ahead_from;
        p.a.data()[c + c * p.n] = bad;
        const factored f(p, choices);
        ct_note("look-ahead from %d, pivot %d", (int)ahead_from, (int)c);
        CHECK_EQ_INT(f.status, HONE_OK);
        CHECK_EQ_INT(f.info.zero_pivot, c);
        p.a.data()[c + c * p.n] = 24.0;
      }
}

/* ---- Many columns, probes, refined solutions ---------------------------- */

/* Each column has the bits that it has alone. */
DEFINITE_TEST(solves_for_several_columns) {
  NEED_DEVICE();
  const problem p(200, 20.0);
  const factored f(p, {});
  REQUIRE(f.status == HONE_OK);
  numbers r = {7};
  for (int64_t k : {2, 8, 33})
    for (int trans = 0; trans < 2; trans++) {
      std::vector<number> v(static_cast<size_t>(p.n * k));
      for (number &e : v)
        e = random_number(&r);
      std::vector<number> w = v;
      CHECK_EQ_INT(D->solve(f.self, trans, k, entries(v), p.n), HONE_OK);
      for (int64_t c = 0; c < k; c++)
        CHECK_EQ_INT(D->solve(f.self, trans, 1, entries(w) + c * p.n, p.n),
                     HONE_OK);
      ct_note("k %d, trans %d", (int)k, trans);
      CHECK(same(v, w));
    }
}

int refine(const factored &f, const problem &p, bool trans,
           std::vector<number> *v) {
  std::vector<double> ones(p.x.size(), 1.0);
  std::vector<int> zeros(ones.size());
  const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                             zeros.data(), false};
  *v = p.b[trans];
  hone_refined_solve job = {&f.matrix, &none, trans, 4, 1, p.n, entries(*v), 0};
  return D->solve_refined(f.self, &job);
}

DEFINITE_TEST(refines_solutions_on_the_device) {
  NEED_DEVICE();
  const problem p(200, 20.0);
  const factored f(p, {});
  REQUIRE(f.status == HONE_OK);
  for (int trans = 0; trans < 2; trans++) {
    std::vector<number> v;
    CHECK_EQ_INT(refine(f, p, trans, &v), HONE_OK);
    for (size_t i = 0; i < v.size(); i++)
      CHECK_LE(std::abs(v[i] - p.x[i]), 0x1p-46);
  }
}

/* ---- Calls that fail ---------------------------------------------------- */

int all_members(const problem &p, const hone_choices &choices,
                hone_pool *pool) {
  const factored f(p, choices, 0, pool);
  int st = f.status;
  std::vector<number> v = p.x, r = v;
  std::vector<double> den(v.size()), max[2] = {den, den}, sums(2 * v.size());
  hone_inspection s = {};
  s.row_max = max[0].data();
  s.col_max = max[1].data();
  TRY(D->solve(f.self, false, 1, entries(v), p.n));
  if (st != HONE_OK || !D->resident(f.self))
    return st;
  st = D->inspect(f.self, &f.matrix, nullptr, sums.data(), &s);
  D->expect(f.self);
  TRY(D->residual(f.self, &f.matrix, true, entries(p.x), entries(p.b[1]),
                  entries(r), den.data()));
  TRY(D->solve(f.self, true, 1, entries(r), p.n));
  TRY(refine(f, p, false, &v));
  return st;
}

/* With threads the number of calls varies. */
void fail_everywhere(const problem &p, const hone_choices &choices,
                     hone_pool *pool) {
  const int64_t before = failing_calls.made;
  CHECK_EQ_INT(all_members(p, choices, pool), HONE_OK);
  const int64_t calls = failing_calls.made - before;
#ifdef HONE_EMULATE
  const size_t owned = hone_emulate::owned_now();
#endif
  CHECK_GE(calls, 100);
  for (int64_t k = 1; k <= calls; k += pool ? 1 + k / 16 : 1) {
    failing_calls.fail_at = k;
    const int st = all_members(p, choices, pool);
    const bool reached = failing_calls.fail_at == 0;
    failing_calls.fail_at = 0;
    ct_note("call %d of %d", (int)k, (int)calls);
    CHECK(reached || pool != nullptr);
    CHECK_EQ_INT(st, reached ? (int)HONE_DEVICE_FAILED : (int)HONE_OK);
#ifdef HONE_EMULATE
    CHECK_EQ_INT(hone_emulate::owned_now(), owned);
#endif
  }
}

DEFINITE_TEST(survives_every_failed_call) {
  NEED_DEVICE();
  const problem p(150, 20.0);
  hone_choices choices = {};
  choices.trial.outer = 40;
  choices.trial.feed = 6;
  fail_everywhere(p, choices, nullptr);
  choices.trial.ahead_from = 1;
  fail_everywhere(p, choices, nullptr);
  choices.residuals = HONE_RESIDUALS_HOST;
  fail_everywhere(p, choices, nullptr);
}

DEFINITE_TEST(survives_failed_calls_while_a_arrives) {
  NEED_DEVICE();
  const problem p(200, 20.0);
  hone_mem mem = {};
  hone_pool *pool = nullptr;
  hone_pool_create(&pool, &mem, 3);
  hone_choices choices = {};
  choices.trial.outer = 32;
  choices.trial.ahead_from = 1;
  choices.trial.feed = 6;
  fail_everywhere(p, choices, pool);
  hone_pool_destroy(&pool, &mem);
}

} // namespace
