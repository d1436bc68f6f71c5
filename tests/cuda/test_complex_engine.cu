/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA engine for complex entries: factors and solves in every arithmetic
   and form, and calls that fail; test_complex_passes.cu has the passes over A.
   test_device.cu tests what holds for either type of entries. */
#include "tests/cuda/complex_problem.h"
#include "tests/unit/wrapped.h"

#include "gpu_sp/calls.h"
#include "gpu_sp/state.h"

namespace {

/* Returns the largest error of the solution; Inf where a solve failed. */
double error_of(const factored &f, const problem &p, bool trans) {
  std::vector<cplx> v = p.b[trans];
  double big = 1.0, most = 0.0;
  for (const cplx &e : v)
    big = std::fmax(big, std::abs(e));
  for (cplx &e : v)
    e /= big;
  if (D->solve(f.self, trans, 1, entries(v), p.n) != HONE_OK)
    return HUGE_VAL;
  for (int64_t i = 0; i < p.n; i++) {
    const double e = std::abs(v.data()[i] * big - p.x.data()[i]);
    most = e <= most ? most : e;
  }
  return most;
}

void check_run(const problem &p, const hone_choices &choices, int64_t block,
               double tolerance) {
  unscaled plain(p.n);
  const hone_scaling none = plain.get();
  const factored f(p, choices, block, &none);
  ct_note("n %d, block %d, arithmetic %d, pivoting %d, residuals %d", (int)p.n,
          (int)block, choices.arithmetic, choices.pivoting, choices.residuals);
  CHECK_EQ_INT(f.status, HONE_OK);
  if (f.status != HONE_OK)
    return;
  CHECK_EQ_INT(f.info.zero_pivot, -1);
  CHECK(f.info.growth <= 1e3);
  CHECK_LE(error_of(f, p, false), tolerance);
  CHECK_LE(error_of(f, p, true), tolerance);
}

/* The unit roundoff of each arithmetic, beginning with HONE_ARITHMETIC_AUTO. */
const double units[] = {0x1p-22, 0x1p-24, 0x1p-11, 0x1p-22,
                        0x1p-16, 0x1p-11, 0x1p-8};

/* As for real entries: 40 units, where the diagonal makes the condition small.
 */
TEST(complex_cuda, factors_in_every_arithmetic) {
  NEED_DEVICE();
  const problem p(300, 1, 12.0);
  for (int arithmetic = 0; arithmetic < 7; arithmetic++)
    for (int64_t block : {0, 40, 150})
      for (int residuals = 0; residuals < 2; residuals++) {
        hone_choices choices = {};
        choices.arithmetic = arithmetic;
        choices.residuals = residuals;
        check_run(p, choices, block, 40.0 * units[arithmetic]);
      }
}

/* The last strip takes F's padding along: as with real entries. */
TEST(complex_cuda, factors_strips_that_begin_at_any_column) {
  NEED_DEVICE();
  hone_choices choices = {};
  choices.trial.outer = choices.trial.strip = 64;
  for (int64_t block : {96, 97, 98, 127})
    check_run(problem(226, 1, 12.0), choices, block, 0x1p-16);
}

TEST(complex_cuda, factors_with_every_pivoting) {
  NEED_DEVICE();
  const problem p(260, 0, 120.0);
  for (int pivoting = 0; pivoting < 3; pivoting++)
    for (int64_t block : {0, 70}) {
      hone_choices choices = {};
      choices.pivoting = pivoting;
      check_run(p, choices, block, 0x1p-18);
    }
}

TEST(complex_cuda, factors_every_small_order) {
  NEED_DEVICE();
  for (int64_t n = 1; n <= 20; n++)
    check_run(problem(n, n % 3, 3.0), {}, 0, 0x1p-16);
  for (int64_t n : {31, 32, 33, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193,
                    255, 256, 257})
    check_run(problem(n, n % 3, 8.0), {}, 0, 0x1p-16);
}

/* Without a heavy diagonal rows are exchanged; more than 16 blocks of 128 rows
   need two levels of the tournament. The condition of these matrices is some
   thousands. */
TEST(complex_cuda, exchanges_rows) {
  NEED_DEVICE();
  for (int64_t n : {5, 70, 200, 385, 1030})
    for (int residuals = 0; residuals < 2; residuals++) {
      hone_choices choices = {};
      choices.residuals = residuals;
      check_run(problem(n, 1, 0.0), choices, 0, 1e-2);
    }
}

TEST(complex_cuda, factors_tall_panels_by_parts) {
  NEED_DEVICE();
  const problem p(300, 0, 0.0);
  for (int pivoting = 0; pivoting < 3; pivoting++) {
    hone_choices choices = {};
    choices.pivoting = pivoting;
    choices.trial.part_rows = 2 * HONE_PANEL;
    check_run(pivoting ? problem(300, 0, 120.0) : p, choices, 0, 1e-2);
  }
}

/* Other look-ahead, panels and strips, also while threads copy A. */
TEST(complex_cuda, factors_beside_the_update) {
  NEED_DEVICE();
  const problem p(330, 0, 0.0);
  hone_choices choices = {};
  choices.trial.ahead_from = 1;
  choices.trial.outer = 32;
  for (int threads = 0; threads < 3; threads += 2) {
    choices.trial.strip = threads ? 70 : 0;
    hone_mem mem = {};
    hone_pool *pool = nullptr;
    if (threads > 0)
      hone_pool_create(&pool, &mem, threads);
    {
      const factored f(p, choices, 0, nullptr, pool);
      CHECK_EQ_INT(f.status, HONE_OK);
      CHECK_EQ_INT(static_cast<hone_cuda *>(f.self)->strip, threads ? 70 : 330);
      CHECK_LE(error_of(f, p, false), 1e-2);
      CHECK_LE(error_of(f, p, true), 1e-2);
    }
    if (pool)
      hone_pool_destroy(&pool, &mem);
  }
}

/* Each column has the bits that it has alone. */
TEST(complex_cuda, solves_for_several_columns) {
  NEED_DEVICE();
  const problem p(200, 0, 12.0);
  const factored f(p, {}, 0);
  REQUIRE(f.status == HONE_OK);
  numbers r = {7};
  for (int64_t k : {2, 3, 8, 33, 64})
    for (int trans = 0; trans < 2; trans++) {
      const int64_t ldv = p.n + 3;
      std::vector<cplx> v = random_entries(&r, ldv * k), w = v;
      CHECK_EQ_INT(D->solve(f.self, trans, k, entries(v), ldv), HONE_OK);
      ct_note("k %d, trans %d", (int)k, trans);
      for (int64_t c = 0; c < k; c++)
        CHECK_EQ_INT(D->solve(f.self, trans, 1, entries(w) + c * ldv, ldv),
                     HONE_OK);
      CHECK(same(v, w));
    }
}

/* Many columns go through the tensor cores, a few do not. */
TEST(complex_cuda, solves_for_many_columns_together) {
  NEED_DEVICE();
  const problem p(333, 0, 12.0);
  numbers r = {8};
  const factored few(p, {}, 0);
  REQUIRE(few.status == HONE_OK);
  for (int group : {8, 16}) {
    hone_choices choices = {};
    choices.trial.together = group;
    const factored many(p, choices, 0);
    REQUIRE(many.status == HONE_OK);
    for (int64_t k : {5, 19})
      for (int trans = 0; trans < 2; trans++) {
        std::vector<cplx> v = random_entries(&r, p.n * k), w = v;
        CHECK_EQ_INT(D->solve(few.self, trans, k, entries(v), p.n), HONE_OK);
        CHECK_EQ_INT(D->solve(many.self, trans, k, entries(w), p.n), HONE_OK);
        double error = 0.0, size = 0.0;
        for (size_t e = 0; e < v.size(); e++) {
          const double d = std::abs(v.data()[e] - w.data()[e]);
          if (!(d <= error) && !std::isnan(error)) /* NaN stays */
            error = d;
          size = std::fmax(size, std::abs(v.data()[e]));
        }
        ct_note("%d together, k %d, trans %d", group, (int)k, trans);
        CHECK_LE(error, 1e-12 * size);
        CHECK(error > 0.0); /* the sums are taken in another order */
      }
  }
}

TEST(complex_cuda, keeps_a_on_the_host_where_memory_is_short) {
  NEED_DEVICE();
  const problem p(300, 0, 12.0);
  hone_choices choices = {};
  hone_engine_config config = {};
  config.n = p.n;
  choices.device_limit = D->device_bytes(&config, true);
  {
    const factored f(p, choices, 0);
    CHECK_EQ_INT(f.status, HONE_OK);
    CHECK(D->resident(f.self));
  }
  choices.device_limit--;
  {
    const factored f(p, choices, 0);
    CHECK_EQ_INT(f.status, HONE_OK);
    CHECK(!D->resident(f.self));
    CHECK_LE(error_of(f, p, true), 0x1p-16);
  }
  choices.device_limit = D->device_bytes(&config, false) - 1;
  const factored f(p, choices, 0);
  CHECK_EQ_INT(f.status, HONE_NO_MEMORY);
}

TEST(complex_cuda, finds_zero_pivots) {
  NEED_DEVICE();
  problem p(150, 0, 5.0);
  for (int64_t i = 0; i < p.n; i++)
    p.a.data()[i + 77 * p.lda] = 0.0;
  const factored f(p, {}, 0);
  CHECK_EQ_INT(f.status, HONE_OK);
  CHECK_EQ_INT(f.info.zero_pivot, 77);
}

/* A pivot whose real part is 0 is none that is zero. */
TEST(complex_cuda, takes_imaginary_pivots) {
  NEED_DEVICE();
  problem p(90, 0, 0.0);
  for (int64_t i = 0; i < p.n * p.lda; i++)
    p.a.data()[i] = i % (p.lda + 1) == 0 ? cplx(0.0, 2.0) : cplx(0.0, 0.0);
  for (int64_t i = 0; i < p.n; i++)
    p.b[0].data()[i] = cplx(0.0, 2.0) * p.x.data()[i];
  const factored f(p, {}, 0);
  CHECK_EQ_INT(f.status, HONE_OK);
  CHECK_EQ_INT(f.info.zero_pivot, -1);
  CHECK_LE(error_of(f, p, false), 0x1p-50);
}

/* ---- Calls that fail ------------------------------------------------------
 */

int probe_and_refine(const factored &f, const problem &p) {
  unscaled ones(p.n);
  hone_scaling scaling = ones.get();
  std::vector<double> rows(p.x.size());
  std::vector<cplx> y = p.x, v = p.b[0];
  hone_probe_step step = {};
  scaling.used = true;
  step.scaling = &scaling;
  step.vectors = 8;
  step.solutions = 2;
  step.first = true;
  step.row_squares = rows.data();
  int st = D->probe_step(f.self, &f.matrix, &step);
  step.first = false;
  step.estimates = true;
  TRY(D->probe_step(f.self, &f.matrix, &step));
  double norm = 0.0;
  const hone_probed wanted = {1, entries(y), &norm, 1};
  TRY(D->probed(f.self, &step, &wanted));
  hone_refined_solve job = {&f.matrix, &scaling, false,      2,
                            1,         p.n,      entries(v), 0};
  TRY(D->solve_refined(f.self, &job));
  return st;
}

int all_members(const problem &p, const hone_choices &choices) {
  const factored f(p, choices, 40);
  int st = f.status;
  std::vector<cplx> v = p.x, r = v;
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
  TRY(D->product(f.self, &f.matrix, false, 1, entries(p.x), entries(v)));
  TRY(probe_and_refine(f, p));
  return st;
}

TEST(complex_cuda, survives_every_failed_call) {
  NEED_DEVICE();
  const problem p(100, 0, 12.0);
  for (int residuals = 0; residuals < 2; residuals++) {
    hone_choices choices = {};
    choices.residuals = residuals;
    const int64_t before = failing_calls.made;
    CHECK_EQ_INT(all_members(p, choices), HONE_OK);
    const int64_t calls = failing_calls.made - before;
#ifdef HONE_EMULATE
    const size_t owned = hone_emulate::owned_now();
#endif
    CHECK_GE(calls, 100);
    for (int64_t k = 1; k <= calls; k++) {
      failing_calls.fail_at = k;
      const int st = all_members(p, choices);
      ct_note("call %d of %d", (int)k, (int)calls);
      CHECK_EQ_INT(failing_calls.fail_at, 0);
      CHECK_EQ_INT(st, HONE_DEVICE_FAILED);
#ifdef HONE_EMULATE
      CHECK_EQ_INT(hone_emulate::owned_now(), owned);
#endif
    }
    failing_calls.fail_at = 0;
  }
}

} // namespace
