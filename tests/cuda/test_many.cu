/* SPDX-License-Identifier: BSD-3-Clause */
/* Many right-hand sides on the device: solutions that are refined there, and
   residuals of blocks of columns. */
#include "tests/cuda/test_kernels.h"
#include "tests/unit/wrapped.h"

extern "C" {
#include "api/hone.h"
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/state.h"

namespace {

enum { MOST = 270 }; /* columns: more than two blocks of them */

/* A = R^-1 S C^-1 with S of condition about 2 spread / diagonal, and b = op(A)
   x; S is symmetric. */
struct systems {
  int64_t n;
  std::vector<double> a, x;
  /* hone_scaling does not promise to leave them alone */
  mutable std::vector<double> row, col;
  mutable std::vector<int> row_exp, col_exp;
  bool scaled;

  systems(int64_t order, double diagonal, bool scale)
      : n(order), scaled(scale) {
    numbers r = {static_cast<uint64_t>(order)};
    a.resize(static_cast<size_t>(n * n));
    x = r.array<double>(n * MOST);
    for (int64_t i = 0; i < n; i++) {
      row_exp.push_back(scale ? static_cast<int>(r.below(9)) - 4 : 0);
      col_exp.push_back(scale ? static_cast<int>(r.below(9)) - 4 : 0);
      row.push_back(std::ldexp(1.0, row_exp.back()));
      col.push_back(std::ldexp(1.0, col_exp.back()));
    }
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++) {
        const double s = r.uniform() + (i == j ? diagonal : 0.0);
        a.data()[i + j * n] = s / row.data()[i] / col.data()[j];
        a.data()[j + i * n] = s / row.data()[j] / col.data()[i];
      }
  }
  hone_scaling scaling() const {
    return {row.data(), col.data(), row_exp.data(), col_exp.data(), scaled};
  }
  /* op(S) x for k columns */
  std::vector<double> right_sides(bool trans, int64_t k) const {
    std::vector<double> b(static_cast<size_t>(n * k), 0.0);
    for (int64_t c = 0; c < k; c++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          b.data()[(trans ? j : i) + c * n] +=
              row.data()[i] * a.data()[i + j * n] * col.data()[j] *
              x.data()[(trans ? i : j) + c * n];
    return b;
  }
};

/* An engine with the factors of S. */
struct factored {
  const hone_engine *engine;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_dense dense;
  hone_matrix matrix;
  void *self = nullptr;

  factored(const hone_engine *e, const systems &s)
      : engine(e), dense{s.n, s.n, s.a.data(), nullptr, false, 0},
        matrix(hone_dense_matrix(&dense)) {
    hone_engine_config config = {};
    hone_factor_info info;
    const hone_scaling scaling = s.scaling();
    config.n = s.n;
    config.mem = &mem;
    config.watch = &watch;
    CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
    CHECK_EQ_INT(engine->factor(self, &matrix, &scaling, &info), HONE_OK);
    CHECK_EQ_INT(info.zero_pivot, -1);
  }
  factored(const factored &) = delete;
  ~factored() {
    engine->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
};

/* v = inv(op(S)) v for k columns, by at most 12 corrections with m. */
int solve_refined(const factored &f, const hone_matrix *m, const systems &s,
                  bool trans, std::vector<double> *v, int *made) {
  const hone_scaling scaling = s.scaling();
  hone_refined_solve job = {
      m,   &scaling,  trans, 12, static_cast<int64_t>(v->size()) / s.n,
      s.n, v->data(), -1};
  const int st = f.engine->solve_refined(f.self, &job);
  *made = job.corrections;
  return st;
}

double largest_error(const std::vector<double> &v, const systems &s,
                     int64_t k) {
  double most = 0.0;
  for (int64_t i = 0; i < s.n * k; i++) {
    const double e = std::fabs(v.data()[i] - s.x.data()[i]);
    most = e <= most ? most : e;
  }
  return most;
}

/* Rounding errors of sums of n products, times the condition, which is at most
   40 here. */
double plain_error(int64_t n) {
  return 40.0 * static_cast<double>(n) * 0x1p-52;
}

void check_refined(const hone_engine *engine, const systems &s) {
  const factored f(engine, s);
  for (int trans = 0; trans < 2; trans++)
    for (const int64_t k : {1, 5, trans ? 129 : int{MOST}}) {
      std::vector<double> v = s.right_sides(trans, k), plain = v;
      int made = -1;
      ct_note("%s, n %d, %s, trans %d, %d columns", engine->name, (int)s.n,
              s.scaled ? "scaled" : "as it is", trans, (int)k);
      CHECK_EQ_INT(solve_refined(f, &f.matrix, s, trans, &v, &made), HONE_OK);
      CHECK_EQ_INT(engine->solve(f.self, trans, k, plain.data(), s.n), HONE_OK);
      CHECK_GE(made, 1);
      CHECK_LE(made, 6);
      CHECK_LE(largest_error(v, s, k), plain_error(s.n));
      CHECK_GE(largest_error(plain, s, k), 1e-9);
    }
}

TEST(many, solutions_are_refined_on_the_device) {
  NEED_DEVICE();
  for (const int64_t n : {64, 131, 300})
    for (const bool scaled : {false, true}) {
      const double diagonal = 4.0 * std::sqrt(static_cast<double>(n));
      check_refined(&hone_engine_single_cuda, systems(n, diagonal, scaled));
      if (!scaled)
        check_refined(&hone_engine_cholesky_cuda, systems(n, diagonal, false));
    }
}

/* The last row is nearly the first one, from which rounding to single precision
   makes it differ in some entries: the factors do not contract, and the
   solutions are those of solve. */
TEST(many, factors_that_do_not_contract_solve_without_corrections) {
  NEED_DEVICE();
  const int64_t n = 100, k = 40;
  systems s(n, 40.0, false);
  for (int64_t j = 0; j < n; j++)
    s.a.data()[n - 1 + j * n] =
        s.a.data()[j * n] * (1.0 + static_cast<double>(j % 3) * 2e-8);
  const factored f(&hone_engine_single_cuda, s);
  std::vector<double> v = s.right_sides(false, k), plain = v;
  int made = -1;
  CHECK_EQ_INT(solve_refined(f, &f.matrix, s, false, &v, &made), HONE_OK);
  CHECK_EQ_INT(made, 0);
  CHECK_EQ_INT(f.engine->solve(f.self, false, k, plain.data(), n), HONE_OK);
  CHECK_MEM_EQ(v.data(), plain.data(), v.size() * sizeof(double));
}

TEST(many, a_right_hand_side_that_is_not_finite_spoils_no_other) {
  NEED_DEVICE();
  const int64_t n = 100, k = 5;
  const systems s(n, 40.0, false);
  const factored f(&hone_engine_single_cuda, s);
  std::vector<double> v = s.right_sides(false, k);
  int made = -1;
  v.data()[2 * n + 7] = (double)HONE_NAN;
  CHECK_EQ_INT(solve_refined(f, &f.matrix, s, false, &v, &made), HONE_OK);
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n && c != 2; i++)
      CHECK_NEAR(v.data()[i + c * n], s.x.data()[i + c * n], 1e-4);
  CHECK(!(std::fabs(v.data()[3 * n - 1]) <= DBL_MAX));
}

/* Another matrix than that last given to factor, or a small order. */
TEST(many, solutions_are_refined_with_the_matrix_that_was_factored) {
  NEED_DEVICE();
  for (const int64_t n : {63, 64}) {
    const systems s(n, 40.0, false), other(n, 41.0, false);
    const factored f(&hone_engine_single_cuda, s);
    const hone_dense d = {n, n, other.a.data(), nullptr, false, 0};
    const hone_matrix m = hone_dense_matrix(&d);
    std::vector<double> v = s.right_sides(false, 4);
    const std::vector<double> before = v;
    int made = -1;
    CHECK_EQ_INT(
        solve_refined(f, n == 64 ? &m : &f.matrix, s, false, &v, &made),
        HONE_NO_DEVICE);
    CHECK_EQ_INT(made, 0);
    CHECK_MEM_EQ(v.data(), before.data(), v.size() * sizeof(double));
  }
}

/* Vectors of blocks of residuals. */
struct block_vectors {
  std::vector<double> b, r, den;
  std::vector<const double *> x_at, b_at;
  std::vector<double *> r_at, den_at;

  block_vectors(const systems &s, int64_t k) {
    numbers any = {static_cast<uint64_t>(k)};
    b = any.array<double>(s.n * k);
    r.assign(b.size(), 0.0);
    den = r;
    for (int64_t c = 0; c < k; c++) {
      x_at.push_back(s.x.data() + c * s.n);
      b_at.push_back(b.data() + c * s.n);
      r_at.push_back(r.data() + c * s.n);
      den_at.push_back(den.data() + c * s.n);
    }
  }
  hone_residual_block block(int64_t k) {
    return {k,     x_at.data(), b_at.data(), r_at.data(), den_at.data(),
            false, false};
  }
};

TEST(many, residuals_of_blocks_are_those_of_their_columns) {
  NEED_DEVICE();
  for (const int64_t n : {100, 257}) {
    const systems s(n, 20.0, false);
    const factored f(&hone_engine_single_cuda, s);
    for (int trans = 0; trans < 2; trans++)
      for (const int64_t k : {2, 7, 33, 64, 65, 129, int{MOST}}) {
        block_vectors v(s, k);
        const hone_residual_block block = v.block(k);
        std::vector<double> r(static_cast<size_t>(n)), den = r;
        ct_note("n %d, trans %d, %d columns", (int)n, trans, (int)k);
        CHECK_EQ_INT(f.engine->residuals(f.self, &f.matrix, trans, &block),
                     HONE_OK);
        for (int64_t c = 0; c < k; c++) {
          CHECK_EQ_INT(f.engine->residual(f.self, &f.matrix, trans,
                                          v.x_at.data()[c], v.b_at.data()[c],
                                          r.data(), den.data()),
                       HONE_OK);
          CHECK_MEM_EQ(v.r_at.data()[c], r.data(), r.size() * sizeof(double));
          CHECK_MEM_EQ(v.den_at.data()[c], den.data(),
                       den.size() * sizeof(double));
        }
      }
  }
}

/* By products in double, r is as near to b - op(A) x as is promised, in every
   row and in the norm that error bounds take; den may be left out. */
TEST(many, plain_residuals_are_within_their_bound) {
  NEED_DEVICE();
  for (const int64_t n : {3, 100, 257}) {
    const systems s(n, 20.0, false);
    const factored f(&hone_engine_single_cuda, s);
    const double bound = static_cast<double>(hone_plain_terms(n)) * 0x1p-53;
    for (int trans = 0; trans < 2; trans++)
      for (const int64_t k : {2, 33, 64, 65, 129, int{MOST}}) {
        block_vectors v(s, k), accurate(s, k);
        hone_residual_block block = v.block(k);
        const hone_residual_block apart = accurate.block(k);
        double squares = 0.0, moduli = 0.0;
        ct_note("n %d, trans %d, %d columns", (int)n, trans, (int)k);
        CHECK_EQ_INT(f.engine->residuals(f.self, &f.matrix, trans, &apart),
                     HONE_OK);
        block.plain = true;
        block.den = nullptr;
        CHECK_EQ_INT(f.engine->residuals(f.self, &f.matrix, trans, &block),
                     HONE_OK);
        for (int64_t i = 0; i < n * k; i++) {
          const double off = v.r.data()[i] - accurate.r.data()[i];
          const double den = accurate.den.data()[i];
          CHECK_LE(std::fabs(off), bound * den);
          squares += off * off;
          moduli += den * den;
        }
        CHECK_LT(0.0, squares); /* it is another way to compute them */
        CHECK_LE(squares, bound * bound * moduli);
      }
  }
}

/* Each call of CUDA fails in turn: of a solve, of residuals in double-double,
   and of plain ones. */
TEST(many, every_failed_call_shows) {
  NEED_DEVICE();
  const int64_t n = 100, k = 135;
  const systems s(n, 40.0, false);
  const factored f(&hone_engine_single_cuda, s);
  block_vectors vectors(s, k);
  hone_residual_block block = vectors.block(k);
  for (int residuals = 0; residuals < 3; residuals++) {
    int st = HONE_DEVICE_FAILED;
    block.plain = residuals == 2;
    int64_t failed = 0;
    for (int64_t at = 1; st != HONE_OK && at < 1000; at++) {
      std::vector<double> v = s.right_sides(false, k);
      int made;
      failing_calls.fail_at = failing_calls.made = 0;
      failing_calls.fail_at = at;
      st = residuals ? f.engine->residuals(f.self, &f.matrix, false, &block)
                     : solve_refined(f, &f.matrix, s, false, &v, &made);
      failed += st == HONE_DEVICE_FAILED;
      if (failing_calls.fail_at == 0) {
        CHECK_EQ_INT(st, HONE_DEVICE_FAILED);
      } else {
        CHECK_EQ_INT(st, HONE_OK);
      }
    }
    failing_calls.fail_at = 0;
    CHECK_GE(failed, 8);
  }
}

/* Whole solves: what was refined on the device is measured like any other x. */
TEST(many, whole_solves_take_few_passes) {
  NEED_DEVICE();
  const int64_t n = 200, k = MOST;
  for (int trans = 0; trans < 2; trans++) {
    const systems s(n, 8.0, false);
    const std::vector<double> b = s.right_sides(trans, k);
    std::vector<double> x(b.size());
    std::vector<hone_column> column(static_cast<size_t>(k));
    hone_options o = HONE_OPTIONS_INIT;
    hone_report r = HONE_REPORT_INIT;
    o.device = HONE_DEVICE_CUDA;
    o.factor_precision = HONE_FACTOR_SINGLE;
    o.trans = trans;
    o.columns = column.data();
    ct_note("trans %d", trans);
    CHECK_EQ_INT(
        hone_solve(n, k, s.a.data(), n, b.data(), n, x.data(), n, &o, &r),
        HONE_OK);
    CHECK_EQ_INT(r.accepted, k);
    CHECK_GE(r.iterations, 2);
    /* three blocks of columns: a measure after the solve, one after each
       correction in double-double, and those of the bounds */
    CHECK_LE(r.device_passes, 21);
    for (int64_t c = 0; c < k; c++) {
      CHECK_LE(column.data()[c].backward_error, 4.04 * 0x1p-53);
      CHECK_GE(column.data()[c].iterations, 1);
    }
    CHECK_LE(largest_error(x, s, k), plain_error(n)); /* b is rounded */
  }
}

} // namespace
