/* SPDX-License-Identifier: BSD-3-Clause */
/* The double-precision engine on a GPU, and the ladder that ends with it. */
#include "tests/cuda/test_kernels.h"
#include "tests/unit/wrapped.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
#include "tests/unit/support.h"
}
#include "gpu_sp/calls.h"

namespace {

struct problem {
  int64_t n, lda;
  std::vector<double> a, x, row, col;
  std::vector<int> row_exp, col_exp;
  bool scaled;

  problem(int64_t order, bool with_scaling)
      : n(order), lda(order + 3), scaled(with_scaling) {
    numbers r = {static_cast<uint64_t>(order)};
    const size_t count = static_cast<size_t>(n);
    a = r.array<double>(lda * n);
    x = r.array<double>(n);
    row.assign(count, 1.0);
    col = row;
    row_exp.assign(count, 0);
    col_exp = row_exp;
    for (size_t i = 0; i < count && scaled; i++) {
      row_exp[i] = static_cast<int>(r.below(21)) - 10;
      col_exp[i] = static_cast<int>(r.below(21)) - 10;
      row[i] = std::ldexp(1.0, row_exp[i]);
      col[i] = std::ldexp(1.0, col_exp[i]);
    }
  }
  double s(int64_t i, int64_t j) const {
    return std::ldexp(a.data()[i + j * lda],
                      row_exp.data()[i] + col_exp.data()[j]);
  }
  /* A becomes inv(R) A inv(C), so that S is what A was. */
  void set_units(int64_t i, int64_t j, int of_row, int of_column) {
    row_exp.data()[i] = of_row;
    col_exp.data()[j] = of_column;
    row.data()[i] = std::ldexp(1.0, of_row);
    col.data()[j] = std::ldexp(1.0, of_column);
    double &v = a.data()[i + j * lda];
    v = std::ldexp(v, -of_row - of_column);
  }
  std::vector<double> times(bool trans, int64_t k) const {
    std::vector<double> b(static_cast<size_t>(n * k), 0.0);
    for (int64_t c = 0; c < k; c++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          b.data()[c * n + (trans ? j : i)] +=
              s(i, j) * x.data()[trans ? i : j] * static_cast<double>(c + 1);
    return b;
  }
};

struct outcome {
  int status;
  double error;
  hone_factor_info info;
  hone_account used;
};

outcome run(const problem &p, int64_t limit, int64_t k) {
  const hone_engine *e = &hone_engine_double_cuda;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  outcome out = {};
  void *self = nullptr;
  std::vector<double> row = p.row, col = p.col;
  std::vector<int> row_exp = p.row_exp, col_exp = p.col_exp;
  const hone_dense a_dense = {p.n, p.lda, p.a.data(), nullptr, false, 0};
  const hone_matrix a = hone_dense_matrix(&a_dense);
  const hone_scaling scaling = {row.data(), col.data(), row_exp.data(),
                                col_exp.data(), p.scaled};
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  config.choices.device_limit = limit;
  out.status = e->create(&self, &config);
  if (out.status == HONE_OK)
    out.status = e->factor(self, &a, &scaling, &out.info);
  for (int trans = 0; trans < 2 && out.status == HONE_OK; trans++) {
    std::vector<double> v = p.times(trans, k);
    out.status = e->solve(self, trans, k, v.data(), p.n);
    for (int64_t i = 0; i < p.n * k; i++) {
      const double want =
          p.x.data()[i % p.n] * static_cast<double>(i / p.n + 1);
      const double error = std::fabs(v.data()[i] - want);
      out.error = error <= out.error ? out.error : error;
    }
  }
  if (self) {
    e->account(self, &out.used);
    e->destroy(self, &mem);
  }
  CHECK_EQ_INT(mem.held, 0);
  return out;
}

double largest(const problem &p) {
  double max = 0.0;
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      max = std::fmax(max, std::fabs(p.s(i, j)));
  return max;
}

TEST(double_cuda, factors_and_solves) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 31, 64, 130, 300})
    for (int scaled = 0; scaled < 2; scaled++) {
      const problem p(n, scaled);
      const outcome out = run(p, 0, n == 64 ? 19 : 2);
      ct_note("n %d, scaled %d", (int)n, scaled);
      CHECK_EQ_INT(out.status, HONE_OK);
      CHECK_EQ_INT(out.info.zero_pivot, -1);
      CHECK(out.info.growth > 0.0 && out.info.growth < 100.0);
      /* The condition is up to 1e9. */
      CHECK_LE(out.error, scaled ? 1e-6 : 1e-9);
      CHECK_GE(out.used.device_bytes, 8 * n * n);
      CHECK_GE(out.used.to_device, 8 * n * n);
    }
}

/* r_i a_ij is below the range of double, or above, though entries of A and of S
   are within 2^+-720. */
TEST(double_cuda, forms_s_where_r_times_a_is_out_of_range) {
  NEED_DEVICE();
  static const int units[][2] = {{-720, 720},   {720, -720}, {-1000, 1000},
                                 {1000, -1000}, {-900, 700}, {700, -900},
                                 {0, 0}};
  for (const auto &unit : units)
    for (int size : {-520, 0, 150}) {
      problem p(33, false);
      p.scaled = true;
      ct_note("units 2^%d, 2^%d, S of 2^%d", unit[0], unit[1], size);
      for (int64_t j = 0; j < p.n; j++)
        for (int64_t i = 0; i < p.n; i++) {
          double &v = p.a.data()[i + j * p.lda];
          v = std::ldexp(v + (i == j ? 8.0 : 0.0), size);
          p.set_units(i, j, unit[0], unit[1]);
        }
      const outcome out = run(p, 0, 1);
      CHECK_EQ_INT(out.status, HONE_OK);
      CHECK_EQ_INT(out.info.zero_pivot, -1);
      CHECK(out.info.growth > 0.0 && out.info.growth < 100.0);
      CHECK_LE(out.error, 1e-13);
    }
}

TEST(double_cuda, reports_growth_zero_pivots_and_nan) {
  NEED_DEVICE();
  problem p(65, false);
  const double top = largest(p);
  /* Sets the maxima of its row and of its column. */
  p.a.data()[3 + 7 * p.lda] = 1000.0 * top;
  CHECK_LE(std::fabs(run(p, 0, 1).info.growth - 1.0), 1e-2);
  for (int64_t i = 0; i < p.n; i++)
    p.a.data()[i + 40 * p.lda] = 0.0;
  CHECK_EQ_INT(run(p, 0, 1).info.zero_pivot, 40);
  problem q(65, false);
  q.a.data()[5 + 5 * q.lda] = static_cast<double>(NAN);
  CHECK(!(run(q, 0, 1).info.growth <= DBL_MAX));
}

TEST(double_cuda, stays_within_the_memory_limit) {
  NEED_DEVICE();
  const problem p(100, false);
  CHECK_EQ_INT(run(p, 8 * 100 * 100 - 1, 1).status, HONE_NO_MEMORY);
  const outcome out = run(p, 1 << 20, 1);
  CHECK_EQ_INT(out.status, HONE_OK);
  /* cuSOLVER's workspace is allocated last. */
  CHECK_EQ_INT(run(p, out.used.device_bytes, 1).status, HONE_OK);
  CHECK_EQ_INT(run(p, out.used.device_bytes - 1, 1).status, HONE_NO_MEMORY);
}

#ifdef HONE_EMULATE
TEST(double_cuda, refuses_a_workspace_whose_size_overflows) {
  hone_emulate::workspace_overflows = true;
  CHECK_EQ_INT(run(problem(40, false), 0, 1).status, HONE_NO_MEMORY);
  hone_emulate::workspace_overflows = false;
}
#endif

TEST(double_cuda, survives_every_failed_call) {
  NEED_DEVICE();
  const problem p(70, true);
  const int64_t before = failing_calls.made;
  CHECK_EQ_INT(run(p, 0, 9).status, HONE_OK);
  const int64_t calls = failing_calls.made - before;
#ifdef HONE_EMULATE
  const size_t owned = hone_emulate::owned_now();
#endif
  CHECK_GE(calls, 40);
  for (int64_t k = 1; k <= calls; k++) {
    failing_calls.fail_at = k;
    const outcome out = run(p, 0, 9);
    ct_note("call %d of %d", (int)k, (int)calls);
    CHECK_EQ_INT(failing_calls.fail_at, 0);
    CHECK_EQ_INT(out.status, HONE_DEVICE_FAILED);
#ifdef HONE_EMULATE
    CHECK_EQ_INT(hone_emulate::owned_now(), owned);
#endif
  }
  failing_calls.fail_at = 0;
}

/* Falling singular values, condition 1e12: single precision does not
   suffice. */
std::vector<double> hard(int64_t n) {
  numbers r = {5};
  std::vector<double> a(static_cast<size_t>(n * n), 0.0);
  const std::vector<double> u = r.array<double>(n), v = r.array<double>(n);
  double uu = 0.0, vv = 0.0;
  for (int64_t i = 0; i < n; i++) {
    uu += u[static_cast<size_t>(i)] * u[static_cast<size_t>(i)];
    vv += v[static_cast<size_t>(i)] * v[static_cast<size_t>(i)];
    a.data()[i + i * n] = std::pow(10.0, -12.0 * static_cast<double>(i) /
                                             static_cast<double>(n - 1));
  }
  for (int side = 0; side < 2; side++) { /* a reflection on each side */
    const std::vector<double> &w = side ? v : u;
    const double by = 2.0 / (side ? vv : uu);
    for (int64_t j = 0; j < n; j++) {
      double dot = 0.0;
      for (int64_t i = 0; i < n; i++)
        dot +=
            w[static_cast<size_t>(i)] * a.data()[side ? j + i * n : i + j * n];
      for (int64_t i = 0; i < n; i++)
        a.data()[side ? j + i * n : i + j * n] -=
            by * dot * w[static_cast<size_t>(i)];
    }
  }
  return a;
}

TEST(double_cuda, is_the_last_engine_of_the_ladder) {
  NEED_DEVICE();
  const int64_t n = 200;
  const std::vector<double> a = hard(n);
  std::vector<double> b(static_cast<size_t>(n), 1.0), x = b;
  hone_options o;
  hone_report report = HONE_REPORT_INIT;
  o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  for (int start = HONE_FACTOR_AUTO; start <= HONE_FACTOR_DOUBLE; start++) {
    o.factor_precision = start;
    ct_note("start %d", start);
    CHECK_EQ_INT(
        hone_solve(n, 1, a.data(), n, b.data(), n, x.data(), n, &o, &report),
        HONE_OK);
    CHECK_EQ_INT(report.precision, 64);
    CHECK_CONTAINS(report.path, "double LU (cuSOLVER)");
    CHECK_GE(report.device_bytes, 8 * n * n);
  }
}

/* A comes to the device once, and the double engine takes it from there, in one
   call as with a kept solver; twice where device memory is limited, since the
   first engine has to go first. The second matrix is another one, at the same
   place. */
TEST(double_cuda, factors_the_copy_of_a_that_is_there) {
  NEED_DEVICE();
  const int64_t n = 200, once = 8 * n * n;
  const std::vector<double> given = hard(n);
  std::vector<double> a = given, b(static_cast<size_t>(n), 1.0), x = b;
  hone_solver *solver = nullptr;
  hone_options o = HONE_OPTIONS_INIT;
  int64_t before = 0; /* bytes that the solver has sent */
  o.device = HONE_DEVICE_CUDA;
  CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  for (int way = 0; way < 6; way++) {
    hone_report factored = HONE_REPORT_INIT, solved = HONE_REPORT_INIT;
    ct_note("way %d", way);
    for (size_t k = 0; k < a.size(); k++)
      a.data()[k] = (way % 2 ? -0.75 : 1.0) * given.data()[k];
    o.device_memory_limit_bytes = way / 2 == 1 ? int64_t{1} << 30 : 0;
    if (way / 2 < 2) {
      CHECK_EQ_INT(
          hone_solve(n, 1, a.data(), n, b.data(), n, x.data(), n, &o, &solved),
          HONE_OK);
    } else {
      CHECK_EQ_INT(hone_solver_factor(solver, a.data(), n, &factored), HONE_OK);
      CHECK_EQ_INT(sup_solver_solve(solver, 0, 1, b.data(), n, x.data(), n,
                                    nullptr, 0, nullptr, &solved),
                   HONE_OK);
    }
    CHECK_CONTAINS(solved.path, "double LU (cuSOLVER)");
    CHECK_LE(sup_backward_error(n, a.data(), n, false, x.data(), b.data()),
             SUP_LIMIT);
    const int64_t sent = solved.to_device_bytes - before;
    before = way / 2 < 2 ? 0 : solved.to_device_bytes;
    CHECK_GE(sent, way / 2 == 1 ? 2 * once : once);
    CHECK_LE(sent, way / 2 == 1 ? 3 * once : 2 * once - 1);
  }
  hone_solver_destroy(&solver);
}

} // namespace
