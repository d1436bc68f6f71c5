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
  }
  ~problem() { hone_ladder_destroy(&ladder); }
  problem(const problem &) = delete;
  problem &operator=(const problem &) = delete;

  int solve(int64_t columns) {
    const hone_dense dense = {ORDER, ORDER, a.data(), nullptr, false};
    const hone_matrix matrix = hone_dense_matrix(&dense);
    const hone_step step = {&hone_engine_single_cuda, true, false};
    hone_request request = {};
    request.limit = SUP_LIMIT;
    request.deterministic = true;
    request.columns = columns;
    int st = hone_ladder_create(&ladder, &hone_dense_operator, ORDER, &step, 1,
                                &request, &mem, nullptr, &watch);
    if (st == HONE_OK)
      st = hone_ladder_factor(&ladder, &matrix, &report);
    if (st == HONE_OK)
      st = hone_ladder_solve(&ladder, false, columns, b.data(), ORDER, y.data(),
                             ORDER, nullptr, 0, column, &report);
    return st;
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
  const hone_certificate &certificate() const {
    return ladder.rung[0].certificate;
  }
};

} // namespace

TEST(columns_bounds, hold_where_a_power_contracts) {
  NEED_DEVICE();
  for (const double apart : {1.0, 0x1p-14, 0x1p-16})
    for (const int64_t columns : {5, +COLUMNS}) {
      problem p(apart);
      ct_note("columns %g apart, %d solved for", apart, (int)columns);
      REQUIRE(p.solve(columns) == HONE_OK);
      CHECK_EQ_INT(p.outside(columns), 0);
      CHECK_EQ_INT(p.certificate().contraction[0].power > 1, apart < 1.0);
    }
}
