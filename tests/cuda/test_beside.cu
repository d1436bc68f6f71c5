/* SPDX-License-Identifier: BSD-3-Clause */
/* A right-hand side that is solved for beside the probes. */
#include "tests/cuda/definite_system.h"

#include "api/hone_complex.h"
extern "C" {
#include "api/hone.h"
#include "base/dense.h"
#include "base/engine.h"
}

#include <cstring>

namespace {

enum { CORRECTIONS = 1 }; /* that it is given */

/* Probes as they may come. */
struct draw {
  uint64_t seed;
  int steps;
  int vectors;
  int dropped;   /* in the second step */
  int solutions; /* likewise */
  bool estimates;
  bool alone; /* the condition is estimated behind the steps */
};
const draw plain_draw = {7, 2, 16, 9, 4, true, false};

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
  double norm = 0.0;
  const hone_probed wanted = {-1, nullptr, &norm, 2};
  if (d.alone && !trans) {
    CHECK_EQ_INT(f.engine->probed(f.self, &step, &wanted), HONE_OK);
    CHECK_GE(norm, 1e-6);
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

/* The first solution, corrected by the engine's residual and solve. */
std::vector<double> corrected(const factors &f, bool trans,
                              const std::vector<double> &b) {
  const int64_t n = f.dense.n;
  std::vector<double> x = b, r = b, den = b;
  CHECK_EQ_INT(f.engine->solve(f.self, trans, 1, x.data(), n), HONE_OK);
  for (int k = 0; k < CORRECTIONS; k++) {
    CHECK_EQ_INT(f.engine->residual(f.self, &f.matrix, trans, x.data(),
                                    b.data(), r.data(), den.data()),
                 HONE_OK);
    CHECK_EQ_INT(f.engine->solve(f.self, trans, 1, r.data(), n), HONE_OK);
    for (int64_t i = 0; i < n; i++)
      x.data()[i] += r.data()[i];
  }
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

/* Whatever is drawn, and also where there was one step only. */
TEST(beside, the_solution_is_corrected_and_does_not_depend_on_the_draw) {
  NEED_DEVICE();
  const draw draws[] = {plain_draw,
                        {8, 2, 16, 9, 4, true, false},
                        {7, 2, 16, 0, 4, true, false},
                        {7, 2, 16, 9, 0, false, false},
                        {7, 4, 16, 0, 4, true, false},
                        {7, 1, 16, 0, 4, false, false},
                        {7, 1, 16, 0, 4, false, true},
                        {7, 2, 16, 9, 4, false, true},
                        {7, 2, 6, 0, 4, true, false}};
  for (const hone_engine *engine : engines)
    for (const int64_t n : {65, 300}) {
      const definite_system s(n);
      const factors f(engine, s);
      for (int trans = 0; trans < 2; trans++) {
        const std::vector<double> once = corrected(f, trans, s.b);
        std::vector<double> first;
        for (const draw &d : draws) {
          std::vector<double> v = s.b;
          int made = 0;
          ct_note("%s, n %d, trans %d, seed %d, steps %d, dropped %d",
                  engine->name, (int)n, trans, (int)d.seed, d.steps, d.dropped);
          probe(f, s, trans, d, s.b.data());
          CHECK_EQ_INT(solved(f, trans, &v, &made), HONE_OK);
          CHECK_EQ_INT(made, CORRECTIONS);
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

/* A right-hand side that was not solved for beside the last probes is refused,
   and left as it was. */
TEST(beside, nothing_else_is_taken_for_that_right_hand_side) {
  NEED_DEVICE();
  const int64_t n = 100;
  const definite_system s(n), other(n);
  factors f(&hone_engine_single_cuda, s);
  const hone_dense d = {n, n, other.a.data(), nullptr, false, 0};
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
  refused(s.b, false, CORRECTIONS - 1, nullptr);
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

/* A^H is another matrix than either that the probes are made of. */
TEST(beside, complex_systems_are_solved_likewise) {
  NEED_DEVICE();
  const int64_t n = 200;
  numbers r = {5};
  std::vector<std::complex<double>> a(static_cast<size_t>(n * n)),
      b(static_cast<size_t>(n)), x[2];
  for (auto &e : a)
    e = {r.uniform(), r.uniform()};
  for (auto &e : b)
    e = {r.uniform(), r.uniform()};
  for (int64_t i = 0; i < n; i++)
    a.data()[i * (n + 1)] += 30.0;
  for (const int trans : {HONE_NO_TRANS, HONE_TRANS, HONE_CONJ_TRANS}) {
    hone_report report[2];
    for (int apart = 0; apart < 2; apart++) {
      hone_options o;
      hone_options_init(&o, sizeof o);
      hone_report_init(&report[apart], sizeof report[apart]);
      o.device = HONE_DEVICE_CUDA;
      o.deterministic = apart;
      o.trans = trans;
      x[apart].resize(b.size());
      CHECK_EQ_INT(hone_z_solve(n, 1, a.data(), n, b.data(), n, x[apart].data(),
                                n, &o, &report[apart]),
                   HONE_OK);
    }
    ct_note("trans %d", trans);
    CHECK_EQ_INT(report[0].iterations, report[1].iterations);
    CHECK_EQ_INT(report[0].from_device_bytes < report[1].from_device_bytes,
                 trans != HONE_CONJ_TRANS);
    for (size_t i = 0; i < b.size(); i++)
      CHECK_LE(std::abs(x[0].data()[i] - x[1].data()[i]), 1e-16);
  }
}

} // namespace
