/* SPDX-License-Identifier: BSD-3-Clause */
/* A right-hand side that is solved for beside the probes. */
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "api/hone.h"
#include "base/dense.h"
#include "base/engine.h"
}

#include <cstring>

namespace {

/* A symmetric matrix of condition about 40, positive definite, and b. */
struct definite_system {
  int64_t n;
  std::vector<double> a, b;

  explicit definite_system(int64_t order) : n(order) {
    numbers r = {static_cast<uint64_t>(order)};
    const double diagonal = 3.0 * std::sqrt(static_cast<double>(n));
    a.resize(static_cast<size_t>(n * n));
    b = r.array<double>(n);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++)
        a.data()[i + j * n] = a.data()[j + i * n] =
            r.uniform() + (i == j ? diagonal : 0.0);
  }
};

struct factors {
  const hone_engine *engine;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_dense dense;
  hone_matrix matrix;
  void *self = nullptr;

  factors(const hone_engine *e, const definite_system &s)
      : engine(e), dense{s.n, s.n, s.a.data(), nullptr, false},
        matrix(hone_dense_matrix(&dense)) {
    hone_engine_config config = {};
    config.n = s.n;
    config.mem = &mem;
    config.watch = &watch;
    CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
    factor();
  }
  factors(const factors &) = delete;
  ~factors() {
    engine->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
  void factor() {
    hone_factor_info info;
    CHECK_EQ_INT(engine->factor(self, &matrix, nullptr, &info), HONE_OK);
    CHECK_EQ_INT(info.zero_pivot, -1);
  }
};

/* Probes as they may come. */
struct draw {
  uint64_t seed;
  int steps;
  int vectors;
  int dropped;   /* in the second step */
  int solutions; /* likewise */
  bool estimates;
};
const draw plain_draw = {7, 2, 16, 9, 4, true};

/* Takes steps with b beside them. */
void probe(const factors &f, const definite_system &s, bool trans,
           const draw &d, const double *b, bool scaled = false) {
  std::vector<double> rows(static_cast<size_t>(s.n)), ones(rows.size(), 1.0);
  std::vector<int> zeros(rows.size(), 0);
  const hone_scaling scaling = {ones.data(), ones.data(), zeros.data(),
                                zeros.data(), scaled};
  hone_probe_step step = {};
  step.scaling = &scaling;
  step.trans = trans;
  step.vectors = d.vectors;
  step.seed = d.seed;
  step.solutions_seed = d.seed + 1;
  step.beside = b;
  step.row_squares = rows.data();
  for (int k = 0; k < d.steps; k++) {
    step.first = k == 0;
    step.solutions = k == 0 ? 4 : d.solutions;
    step.dropped = k == 0 ? 0 : d.dropped;
    step.estimates = k == 1 && d.estimates && !trans;
    CHECK_EQ_INT(f.engine->probe_step(f.self, &f.matrix, &step), HONE_OK);
  }
}

/* v = inv(op(A)) v if it was solved for beside the probes. */
int solved(const factors &f, bool trans, std::vector<double> *v, int *made,
           int most = 12, const hone_matrix *matrix = nullptr) {
  const hone_scaling none = {nullptr, nullptr, nullptr, nullptr, false};
  const int64_t n = f.dense.n;
  hone_refined_solve job = {
      matrix ? matrix : &f.matrix, &none, trans, most, 1, n, v->data(), 0};
  const int st = f.engine->solved_beside(f.self, &job);
  *made = job.corrections;
  return st;
}

/* The first solution, corrected once by the engine's residual and solve. */
std::vector<double> corrected_once(const factors &f, bool trans,
                                   const std::vector<double> &b) {
  const int64_t n = f.dense.n;
  std::vector<double> x = b, r = b, den = b;
  CHECK_EQ_INT(f.engine->solve(f.self, trans, 1, x.data(), n), HONE_OK);
  CHECK_EQ_INT(f.engine->residual(f.self, &f.matrix, trans, x.data(), b.data(),
                                  r.data(), den.data()),
               HONE_OK);
  CHECK_EQ_INT(f.engine->solve(f.self, trans, 1, r.data(), n), HONE_OK);
  for (int64_t i = 0; i < n; i++)
    x.data()[i] += r.data()[i];
  return x;
}

double distance(const std::vector<double> &a, const std::vector<double> &b) {
  double most = 0.0;
  for (size_t i = 0; i < a.size(); i++) {
    const double d = std::fabs(a.data()[i] - b.data()[i]);
    most = d <= most ? most : d;
  }
  return most;
}

const hone_engine *const engines[] = {&hone_engine_single_cuda,
                                      &hone_engine_cholesky_cuda};

/* Whatever is drawn, and also where there was one step only. */
TEST(beside, the_solution_is_corrected_once_and_does_not_depend_on_the_draw) {
  NEED_DEVICE();
  const draw draws[] = {plain_draw,
                        {8, 2, 16, 9, 4, true},
                        {7, 2, 16, 0, 4, true},
                        {7, 2, 16, 9, 0, false},
                        {7, 3, 16, 0, 4, true},
                        {7, 1, 16, 0, 4, false},
                        {7, 2, 6, 0, 4, true}};
  for (const hone_engine *engine : engines)
    for (const int64_t n : {65, 300}) {
      const definite_system s(n);
      const factors f(engine, s);
      for (int trans = 0; trans < 2; trans++) {
        const std::vector<double> once = corrected_once(f, trans, s.b);
        std::vector<double> first;
        for (const draw &d : draws) {
          std::vector<double> v = s.b;
          int made = 0;
          ct_note("%s, n %d, trans %d, seed %d, steps %d, dropped %d",
                  engine->name, (int)n, trans, (int)d.seed, d.steps, d.dropped);
          probe(f, s, trans, d, s.b.data());
          CHECK_EQ_INT(solved(f, trans, &v, &made), HONE_OK);
          CHECK_EQ_INT(made, 1);
          /* The solves round in other orders: 40 is the condition. */
          CHECK_LE(distance(v, once), 40.0 * (double)n * 0x1p-52);
          if (first.empty())
            first = v;
          CHECK_MEM_EQ(v.data(), first.data(), v.size() * sizeof(double));
        }
      }
    }
}

TEST(beside, a_multiple_by_a_power_of_two_has_that_multiple_of_the_solution) {
  NEED_DEVICE();
  const definite_system s(100);
  const factors f(&hone_engine_single_cuda, s);
  std::vector<double> x = s.b, v = s.b;
  int made = 0;
  probe(f, s, false, plain_draw, s.b.data());
  CHECK_EQ_INT(solved(f, false, &x, &made), HONE_OK);
  probe(f, s, false, plain_draw, s.b.data());
  for (double &e : v)
    e *= 0x1p-40;
  CHECK_EQ_INT(solved(f, false, &v, &made), HONE_OK);
  for (size_t i = 0; i < v.size(); i++)
    CHECK(v.data()[i] == 0x1p-40 * x.data()[i]);
}

/* What was not solved for beside the last probes is refused and left as it
   was. */
TEST(beside, nothing_else_is_taken_for_that_right_hand_side) {
  NEED_DEVICE();
  const int64_t n = 100;
  const definite_system s(n), other(n);
  factors f(&hone_engine_single_cuda, s);
  const hone_dense d = {n, n, other.a.data(), nullptr, false};
  const hone_matrix m = hone_dense_matrix(&d);
  std::vector<double> changed = s.b, v = s.b, r = s.b, den = s.b;
  changed.back() = std::nextafter(changed.back(), 2.0);
  const auto refused = [&](const std::vector<double> &b, bool trans, int most,
                           const hone_matrix *matrix) {
    int made = 0;
    v = b;
    CHECK_EQ_INT(solved(f, trans, &v, &made, most, matrix), HONE_NO_DEVICE);
    CHECK_EQ_INT(made, 0);
    CHECK_MEM_EQ(v.data(), b.data(), v.size() * sizeof(double));
  };
  ct_note("before any probes");
  refused(s.b, false, 12, nullptr);
  probe(f, s, false, plain_draw, s.b.data());
  ct_note("another right-hand side, transpose, limit, matrix");
  refused(changed, false, 12, nullptr);
  refused(s.b, true, 12, nullptr);
  refused(s.b, false, 0, nullptr);
  refused(s.b, false, 12, &m);
  int made = 0;
  v = s.b;
  CHECK_EQ_INT(solved(f, false, &v, &made), HONE_OK);
  ct_note("a second time");
  refused(s.b, false, 12, nullptr);
  ct_note("probes without it, and of a scaled matrix");
  probe(f, s, false, plain_draw, s.b.data());
  probe(f, s, false, plain_draw, nullptr);
  refused(s.b, false, 12, nullptr);
  probe(f, s, false, plain_draw, s.b.data(), true);
  refused(s.b, false, 12, nullptr);
  ct_note("factored again");
  probe(f, s, false, plain_draw, s.b.data());
  f.factor();
  refused(s.b, false, 12, nullptr);
  ct_note("a solve that was begun ahead, in the same memory");
  probe(f, s, false, plain_draw, s.b.data());
  f.engine->expect(f.self);
  CHECK_EQ_INT(f.engine->residual(f.self, &f.matrix, false, s.b.data(),
                                  s.b.data(), r.data(), den.data()),
               HONE_OK);
  refused(s.b, false, 12, nullptr);
  ct_note("columns that are refined, likewise");
  std::vector<double> four(static_cast<size_t>(4 * n), 1.0);
  const hone_scaling none = {nullptr, nullptr, nullptr, nullptr, false};
  hone_refined_solve job = {&f.matrix, &none, false, 12, 4, n, four.data(), 0};
  probe(f, s, false, plain_draw, s.b.data());
  CHECK_EQ_INT(f.engine->solve_refined(f.self, &job), HONE_OK);
  refused(s.b, false, 12, nullptr);
}

/* Probes have the same outcome with it and without it, but for the rounding of
   solves whose columns go together otherwise. */
TEST(beside, probes_show_what_they_show_without_it) {
  NEED_DEVICE();
  const definite_system s(200);
  const factors f(&hone_engine_single_cuda, s);
  const hone_scaling none = {nullptr, nullptr, nullptr, nullptr, false};
  std::vector<double> rows[2];
  hone_probe_step step[2];
  for (int with = 0; with < 2; with++) {
    rows[with].assign(200, 0.0);
    step[with] = {};
    step[with].scaling = &none;
    step[with].vectors = 16;
    step[with].solutions = 4;
    step[with].seed = 3;
    step[with].solutions_seed = 4;
    step[with].beside = with ? s.b.data() : nullptr;
    step[with].row_squares = rows[with].data();
    for (int k = 0; k < 2; k++) {
      step[with].first = k == 0;
      step[with].dropped = k == 0 ? 0 : 9;
      step[with].estimates = k == 1;
      CHECK_EQ_INT(f.engine->probe_step(f.self, &f.matrix, &step[with]),
                   HONE_OK);
    }
  }
  CHECK_NEAR(step[1].squares, step[0].squares, 1e-3 * step[0].squares);
  CHECK_NEAR(step[1].inverse_norm, step[0].inverse_norm,
             1e-9 * step[0].inverse_norm);
  for (int c = 0; c < 4; c++)
    CHECK_NEAR(step[1].solution_squares[c], step[0].solution_squares[c],
               1e-9 * step[0].solution_squares[c]);
}

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

TEST(beside, a_step_that_was_begun_early_is_the_same) {
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
    const hone_dense d = {n, n, t.a.data(), nullptr, false};
    const hone_matrix m = hone_dense_matrix(&d);
    engine->expect_probes(f.self, &m, &begun.step);
    CHECK_EQ_INT(engine->probe_step(f.self, &m, &begun.step), HONE_NO_DEVICE);
  }
}

/* What the host does meanwhile. */
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

TEST(beside, the_host_inspects_while_the_device_completes_the_factors) {
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
TEST(beside, factors_without_hope_are_not_waited_for) {
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
  const hone_dense d = {n, n, s.a.data(), nullptr, false};
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

/* hone_solve and a kept solver, which cannot know b when it factors. */
struct outcome {
  std::vector<double> x;
  hone_report report;
};

outcome solve_once(const definite_system &s, int deterministic, int trans,
                   int layout) {
  hone_options o;
  outcome out;
  hone_options_init(&o, sizeof o);
  hone_report_init(&out.report, sizeof out.report);
  o.device = HONE_DEVICE_CUDA;
  o.deterministic = deterministic;
  o.structure = HONE_STRUCTURE_GENERAL;
  o.trans = trans;
  o.layout = layout;
  out.x.resize(s.b.size());
  CHECK_EQ_INT(hone_solve(s.n, 1, s.a.data(), s.n, s.b.data(), s.n,
                          out.x.data(), s.n, &o, &out.report),
               HONE_OK);
  return out;
}

TEST(beside, one_call_makes_as_many_corrections_and_moves_fewer_vectors) {
  NEED_DEVICE();
  const definite_system s(300);
  for (int layout = 0; layout < 2; layout++)
    for (int trans = 0; trans < 2; trans++) {
      const outcome apart = solve_once(s, 1, trans, layout),
                    beside = solve_once(s, 0, trans, layout);
      ct_note("layout %d, trans %d", layout, trans);
      CHECK_EQ_INT(beside.report.iterations, apart.report.iterations);
      CHECK_LE(beside.report.backward_error, beside.report.tolerance);
      CHECK_EQ_INT(beside.report.device_passes, apart.report.device_passes);
      CHECK_LT(beside.report.from_device_bytes, apart.report.from_device_bytes);
      CHECK_LE(distance(beside.x, apart.x), 1e-15);
    }
}

} // namespace
