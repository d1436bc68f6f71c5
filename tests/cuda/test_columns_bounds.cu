/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds of several columns whose residuals the device computes, where
   the factors contract in a power only: they hold. */
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "base/dense.h"
#include "refine/ladder.h"
#include "tests/unit/support.h"
}

#include <algorithm>
#include <cmath>

namespace {

enum { ORDER = 320, COLUMNS = 36 };

/* A random matrix of whole numbers below 2^20, of which two columns differ by
   'apart' times one more; x of small whole numbers, so that b is exact. */
struct problem {
  std::vector<double> a, b, x, y;
  hone_column column[COLUMNS] = {};
  hone_report report = {};
  hone_mem mem = {};
  hone_watch watch = {};
  hone_ladder ladder = {};
  hone_dense dense = {};
  hone_matrix matrix = {};

  explicit problem(double apart)
      : a(ORDER * ORDER), b(ORDER * COLUMNS), x(ORDER * COLUMNS),
        y(ORDER * COLUMNS) {
    numbers r = {7};
    auto whole = [&](int64_t most) {
      return static_cast<double>(r.below(2 * most + 1)) -
             static_cast<double>(most);
    };
    std::generate(a.begin(), a.end(), [&] { return whole(1 << 19); });
    for (int64_t i = 0; i < ORDER; i++)
      a[i] = apart >= 1.0 ? a[i] : a[i + ORDER] + std::rint(apart * a[i]);
    std::generate(x.begin(), x.end(), [&] { return whole(50); });
    for (int64_t c = 0; c < COLUMNS; c++)
      for (int64_t j = 0; j < ORDER; j++)
        for (int64_t i = 0; i < ORDER; i++)
          b[i + c * ORDER] += a[i + j * ORDER] * x[j + c * ORDER];
    dense = {ORDER, ORDER, a.data(), nullptr, false, 0};
    matrix = hone_dense_matrix(&dense);
  }
  ~problem() { hone_ladder_destroy(&ladder); }
  problem(const problem &) = delete;
  problem &operator=(const problem &) = delete;

  int factor(bool deterministic) {
    const hone_step step = {&hone_engine_single_cuda, true, false};
    hone_request request = {};
    request.limit = SUP_LIMIT;
    request.deterministic = deterministic;
    request.columns = COLUMNS;
    const int st =
        hone_ladder_create(&ladder, &hone_dense_operator, ORDER, &step, 1,
                           &request, &mem, nullptr, &watch);
    return st == HONE_OK ? hone_ladder_factor(&ladder, &matrix, &report) : st;
  }
  int solve(bool trans, int64_t columns) {
    return hone_ladder_solve(&ladder, trans, columns, b.data(), ORDER, y.data(),
                             ORDER, nullptr, 0, column, &report);
  }
  /* Returns how many columns are further from x than their bound says. */
  int outside(int64_t columns) const {
    int count = 0;
    for (int64_t c = 0; c < columns; c++) {
      double error = 0.0, size = 0.0;
      for (int64_t i = c * ORDER; i < (c + 1) * ORDER; i++) {
        error = std::max(error, std::fabs(y[i] - x[i]));
        size = std::max(size, std::fabs(y[i]));
      }
      count += !(error <= column[c].forward_error * size);
    }
    return count;
  }
  hone_certificate &certificate() { return ladder.rung[0].certificate; }
  /* Lets products and noise seem to count. */
  void doubt_inverse() { certificate().inverse_bound *= 0x1p40; }
};

} // namespace

TEST(columns_bounds, hold_where_a_power_contracts) {
  NEED_DEVICE();
  for (const double apart : {1.0, 0x1p-14})
    for (const int64_t columns : {5, +COLUMNS})
      for (const bool doubted : {false, true}) {
        problem p(apart);
        ct_note("columns %g apart, %d solved for, doubted %d", apart,
                (int)columns, (int)doubted);
        REQUIRE(p.factor(true) == HONE_OK);
        CHECK_EQ_INT(p.certificate().contraction[0].power > 1, apart < 1.0);
        if (doubted)
          p.doubt_inverse();
        REQUIRE(p.solve(false, columns) == HONE_OK);
        CHECK_EQ_INT(p.outside(columns), 0);
        CHECK_EQ_INT(p.certificate().factors_many > 0.0, doubted);
      }
}

TEST(columns_bounds, do_not_depend_on_earlier_solves) {
  NEED_DEVICE();
  for (const bool trans : {false, true}) {
    problem p(0x1p-14);
    double bound[5] = {};
    ct_note("trans %d", (int)trans);
    REQUIRE(p.factor(true) == HONE_OK);
    p.doubt_inverse();
    for (const int64_t columns : {5, +COLUMNS, 5}) {
      const bool first = !(p.certificate().inverse_many > 0.0);
      REQUIRE(p.solve(trans, columns) == HONE_OK);
      for (int c = 0; c < 5; c++)
        if (first)
          bound[c] = p.column[c].forward_error;
        else if (columns == 5)
          CHECK_NEAR(p.column[c].forward_error, bound[c], 0.0);
    }
  }
}

/* The vectors are of the ladder's seed, unless the caller wants the same bits
   each time. */
TEST(columns_bounds, rest_on_vectors_that_are_drawn_anew) {
  NEED_DEVICE();
  for (const bool deterministic : {false, true}) {
    double norm[2] = {};
    for (int k = 0; k < 2; k++) {
      problem p(0x1p-14);
      REQUIRE(p.factor(deterministic) == HONE_OK);
      p.doubt_inverse();
      p.ladder.seed = static_cast<uint64_t>(k + 1);
      REQUIRE(p.solve(false, COLUMNS) == HONE_OK);
      norm[k] = p.certificate().factors_many;
    }
    ct_note("deterministic %d", (int)deterministic);
    CHECK(norm[0] > 0.0);
    CHECK_EQ_INT(norm[0] == norm[1], deterministic);
  }
}
