/* SPDX-License-Identifier: BSD-3-Clause */
/* The inspection of A by the host, and the first step of the probes, begin
   before the factors are complete. */
#include "tests/cuda/definite_system.h"

#include <cstring>

namespace {

/* A first step that is announced is begun, and has the bits that it has
   otherwise, also where something else comes between or it is another one. */
struct first_step {
  hone_probe_step step = {};
  std::vector<double> rows;

  first_step(const hone_scaling *scaling, int64_t n, uint64_t seed) {
    rows.assign(static_cast<size_t>(n), 0.0);
    step.scaling = scaling;
    step.first = true;
    step.vectors = 16;
    step.solutions = 4;
    step.seed = seed;
    step.solutions_seed = seed + 1;
    step.row_squares = rows.data();
  }
  void take(const factors &f) {
    CHECK_EQ_INT(f.engine->probe_step(f.self, &f.matrix, &step), HONE_OK);
  }
  bool operator==(const first_step &other) const {
    return step.squares == other.step.squares &&
           step.largest == other.step.largest &&
           memcmp(step.solution_squares, other.step.solution_squares,
                  sizeof step.solution_squares) == 0 &&
           rows == other.rows;
  }
};

TEST(early, a_step_that_was_begun_early_is_the_same) {
  NEED_DEVICE();
  enum { NOTHING, SOLVE, RESIDUAL, INSPECT, REFINED, PRODUCT, OTHERS };
  const int64_t n = 130;
  const definite_system s(n);
  std::vector<double> sums(static_cast<size_t>(4 * n)), four(sums), ones(sums);
  const hone_scaling none = {nullptr, nullptr, nullptr, nullptr, false};
  ones.assign(ones.size(), 1.0);
  std::vector<int> zeros(ones.size(), 0);
  const hone_scaling unit = {ones.data(), ones.data(), zeros.data(),
                             zeros.data(), true};
  for (const hone_engine *engine : engines) {
    const factors f(engine, s);
    first_step plain(&none, n, 3), other(&none, n, 5);
    plain.take(f);
    other.take(f);
    CHECK(!(plain == other));
    for (int between = NOTHING; between < OTHERS; between++) {
      first_step begun(&none, n, 3), late(&none, n, 3);
      std::vector<double> v = s.b, r = s.b, den = s.b;
      hone_inspection seen = {};
      hone_refined_solve job = {&f.matrix, &none, false,       12,
                                4,         n,     four.data(), 0};
      seen.row_max = r.data();
      seen.col_max = den.data();
      four.assign(four.size(), 1.0);
      ct_note("%s, %d between", engine->name, between);
      engine->expect_probes(f.self, &f.matrix, &begun.step);
      if (between == SOLVE)
        CHECK_EQ_INT(engine->solve(f.self, false, 1, v.data(), n), HONE_OK);
      if (between == RESIDUAL)
        CHECK_EQ_INT(engine->residual(f.self, &f.matrix, false, s.b.data(),
                                      s.b.data(), r.data(), den.data()),
                     HONE_OK);
      if (between == INSPECT)
        CHECK_EQ_INT(
            engine->inspect(f.self, &f.matrix, &unit, sums.data(), &seen),
            HONE_OK);
      if (between == REFINED)
        CHECK_EQ_INT(engine->solve_refined(f.self, &job), HONE_OK);
      if (between == PRODUCT)
        CHECK_EQ_INT(
            engine->product(f.self, &f.matrix, false, 1, s.b.data(), v.data()),
            HONE_OK);
      begun.take(f);
      CHECK(begun == plain);
      late.step.dropped = 0;
      late.take(f);
      CHECK(late == plain);
    }
    first_step begun(&none, n, 3), another(&none, n, 5);
    engine->expect_probes(f.self, &f.matrix, &begun.step);
    another.take(f);
    CHECK(another == other);
    ct_note("the matrix is another one");
    const definite_system t(n);
    const hone_dense d = {n, n, t.a.data(), nullptr, false, 0};
    const hone_matrix m = hone_dense_matrix(&d);
    engine->expect_probes(f.self, &m, &begun.step);
    CHECK_EQ_INT(engine->probe_step(f.self, &m, &begun.step), HONE_NO_DEVICE);
  }
}

/* The host inspects A meanwhile, and counts how often it was called. */
struct meanwhile {
  const factors *f;
  int runs, status;
  std::vector<double> row_max, col_max, sums;
};

void inspect_meanwhile(void *ctx, int64_t task) {
  meanwhile *m = static_cast<meanwhile *>(ctx);
  hone_inspection seen = {};
  seen.row_max = m->row_max.data();
  seen.col_max = m->col_max.data();
  m->runs += task == 0 ? 1 : 100;
  m->status = m->f->engine->inspect(m->f->self, &m->f->matrix, nullptr,
                                    m->sums.data(), &seen);
}

TEST(early, the_host_inspects_while_the_device_completes_the_factors) {
  NEED_DEVICE();
  const int64_t n = 300;
  definite_system s(n);
  for (const hone_engine *engine : engines) {
    factors f(engine, s);
    meanwhile m = {&f,
                   0,
                   -1,
                   std::vector<double>(static_cast<size_t>(n)),
                   std::vector<double>(static_cast<size_t>(n)),
                   std::vector<double>(static_cast<size_t>(2 * n))};
    engine->meanwhile(f.self, inspect_meanwhile, &m);
    f.factor();
    CHECK_EQ_INT(m.runs, 1);
    CHECK_EQ_INT(m.status, HONE_OK);
    for (int64_t j = 0; j < n; j++) {
      double most = 0.0, sum = 0.0;
      for (int64_t i = 0; i < n; i++) {
        const double size = std::fabs(s.a.data()[i + j * n]);
        most = size > most ? size : most;
        sum += size;
      }
      const size_t at = static_cast<size_t>(j);
      CHECK(m.col_max[at] == most);
      CHECK(m.row_max[at] == most);
      CHECK_NEAR(m.sums[at], sum, 1e-13 * sum);
      CHECK_NEAR(m.sums[at + (size_t)n], sum, 1e-13 * sum);
    }
    f.factor();
    CHECK_EQ_INT(m.runs, 1); /* it was for one factorization */
  }
}

/* Pivots that fall from 1 to 1e-30: the factorization ends early. */
TEST(early, factors_without_hope_are_not_waited_for) {
  NEED_DEVICE();
  const int64_t n = 1500;
  definite_system s(n);
  hone_factor_info info;
  s.a.assign(s.a.size(), 0.0);
  for (int64_t j = 0; j < n; j++)
    s.a.data()[j * (n + 1)] = std::pow(10.0, -30.0 * (double)j / (double)n);
  hone_engine_config config = {};
  hone_mem mem = {};
  hone_watch watch = {};
  void *self = nullptr;
  config.n = n;
  config.block = 256;
  config.mem = &mem;
  config.watch = &watch;
  const hone_engine *engine = &hone_engine_single_cuda;
  const hone_dense d = {n, n, s.a.data(), nullptr, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&d);
  int runs = 0;
  const hone_task count = [](void *ctx, int64_t) {
    ++*static_cast<int *>(ctx);
  };
  REQUIRE(engine->create(&self, &config) == HONE_OK);
  for (int k = 0; k < 2; k++) {
    if (k == 0)
      engine->meanwhile(self, count, &runs);
    CHECK_EQ_INT(engine->factor(self, &matrix, nullptr, &info), HONE_OK);
    CHECK_EQ_INT(info.hopeless, k == 0);
    for (int64_t j = 0; j < n; j++)
      s.a.data()[j * (n + 1)] = 1.0;
  }
  CHECK_EQ_INT(runs, 0);
  engine->destroy(self, &mem);
}

} // namespace
