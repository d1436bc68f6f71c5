/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's part of the engine whose factors lie in host memory
   (gpu_sp/outside/): the factors themselves, of real and of complex matrices.
 */
#include "tests/emulate/outside.h"

namespace {

/* The device's part of the engine, with arrays of its own for the factors. */
struct made {
  int64_t n, ld;
  std::vector<hone_single> f;
  std::vector<int> pivot;
  std::vector<float> col_max;
  hone_factor_info info;
  hone_account used;
  int status;

  made(const problem &p, const hone_choices &choices)
      : n(p.n), ld(p.n + 3), f((size_t)(ld * n)), pivot((size_t)n),
        col_max((size_t)n), info(), used(), status(-1) {
    std::vector<double> ones((size_t)n, 1.0);
    std::vector<int> zeros((size_t)n, 0);
    const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                               zeros.data(), false};
    const hone_dense dense = {
        n,       n,     reinterpret_cast<const hone_entry *>(p.a.data()),
        nullptr, false, 0};
    const hone_matrix matrix = hone_dense_matrix(&dense);
    const hone_host_factors to = {f.data(), ld, pivot.data(), col_max.data()};
    const hone_engine *engine = &hone_engine_outside_cuda;
    hone_mem mem = {};
    hone_watch watch = {};
    hone_engine_config config = {};
    void *self = nullptr;
    config.n = n;
    config.mem = &mem;
    config.watch = &watch;
    config.choices = choices;
    config.host_factors = &to;
    CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
    status = engine->factor(self, &matrix, &none, &info);
    engine->account(self, &used);
    engine->destroy(self, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
  entry at(int64_t i, int64_t j) const {
    const float *part = reinterpret_cast<const float *>(f.data() + i + j * ld);
#ifdef HONE_COMPLEX
    return entry(part[0], part[1]);
#else
    return (double)part[0];
#endif
  }
};

hone_choices choices_with(int64_t window) {
  hone_choices c = {};
  c.trial = wrapped_trial;
  c.trial.window = window / HONE_PARTS;
  return c;
}

/* Returns the largest |P S - L U| / (|P S| + |L| |U|) of every so many-th row.
 */
double error_of(const problem &p, const made &m, int64_t step) {
  std::vector<int> row((size_t)p.n);
  double most = 0.0;
  for (int64_t i = 0; i < p.n; i++)
    row.data()[i] = (int)i;
  for (int64_t i = 0; i < p.n; i++) {
    if (m.pivot.data()[i] <= i || m.pivot.data()[i] > p.n)
      return (double)NAN;
    std::swap(row.data()[i], row.data()[m.pivot.data()[i] - 1]);
  }
  for (int64_t i = 0; i < p.n; i += step) {
    std::vector<entry> sum((size_t)p.n);
    std::vector<double> size((size_t)p.n);
    for (int64_t j = 0; j < p.n; j++) {
      sum.data()[j] = p.a.data()[row.data()[i] + j * p.n];
      size.data()[j] = std::abs(sum.data()[j]);
      for (int64_t k = 0; k <= (i < j ? i : j); k++) {
        const entry t = (k == i ? entry(1.0) : m.at(i, k)) * m.at(k, j);
        sum.data()[j] -= t;
        size.data()[j] += std::abs(t);
      }
      const double e = std::abs(sum.data()[j]) / size.data()[j];
      most = e <= most ? most : e; /* NaN stays, and fails */
    }
  }
  return most;
}

/* |P S - L U| <= gamma_n |L| |U| (Higham, theorem 9.3); products of FP16 parts
   are less accurate than 2^-24, by a factor below 8. Errors are random and far
   below that bound, which a row in a wrong place exceeds 1000-fold. */
TEST_OF(outside, factors_are_those_of_lapack) {
  const narrow_panels narrow;
  for (int64_t window : {128, 256, 500, 2000}) {
    problem p(order_of(900), HONE_NO_TRANS, 33);
    for (int64_t j : {0, 300, 301, (int)p.n - 1})
      p.a.data()[7 + j * p.n] = 1e-40; /* less than the least normal float */
    const made m(p, choices_with(window));
    ct_note("window %d", (int)window);
    CHECK_EQ_INT(m.status, HONE_OK);
    CHECK_EQ_INT(m.info.zero_pivot, -1);
    CHECK_EQ_INT(m.info.flushed, 4);
    CHECK(!m.info.hopeless);
    CHECK(error_of(p, m, 29) <= 1e-5);
    for (int64_t i = 0; i < p.n; i++)
      CHECK(m.pivot.data()[i] > i && m.pivot.data()[i] <= p.n);
    for (int64_t j = 0; j < p.n; j += 37) {
      double most = 0.0;
      for (int64_t i = 0; i < p.n; i++)
        most = std::fmax(most, std::abs(p.a.data()[i + j * p.n]));
      CHECK_NEAR((double)m.col_max.data()[j], most, 1e-6 * most);
    }
  }
}

/* Work is done late, in one of the orders that CUDA allows: a wait that is
   missing gives other factors. Where all of A is one block column, more pieces
   of it come in a row than there are buffers. */
TEST_OF(outside, factors_do_not_depend_on_the_order_of_work) {
  const narrow_panels narrow;
  const problem p(order_of(1100), HONE_NO_TRANS, 35);
  for (int64_t window : {256, 384, 2000})
    for (int64_t ahead : {0, 256}) {
      hone_choices choices = choices_with(window);
      choices.trial.ahead_from = ahead;
      const made first(p, choices);
      CHECK(error_of(p, first, 101) <= 1e-5);
      for (uint64_t seed : {2, 17, 39, 58}) {
        const hone_emulate::late_streams late(seed);
        const made m(p, choices);
        ct_note("window %d, look-ahead from %d, seed %d", (int)window,
                (int)ahead, (int)seed);
        CHECK_EQ_INT(m.status, HONE_OK);
        CHECK(m.pivot == first.pivot);
        CHECK(memcmp(m.f.data(), first.f.data(),
                     m.f.size() * sizeof(hone_single)) == 0);
      }
    }
}

TEST_OF(outside, factors_of_small_orders) {
  for (int64_t n : {1, 2, 3, 31, 64, 127, 128, 129, 257}) {
    const problem p(n, HONE_NO_TRANS, (uint64_t)n);
    const made m(p, choices_with(128));
    ct_note("n %d", (int)n);
    CHECK_EQ_INT(m.status, HONE_OK);
    CHECK(error_of(p, m, 1) <= 1e-5);
  }
}

TEST_OF(outside, a_pivot_of_zero_ends_the_factorization) {
  const narrow_panels narrow;
  problem p(order_of(700), HONE_NO_TRANS, 34);
  for (int64_t i = 0; i < p.n; i++)
    p.a.data()[i + 300 * p.n] = 0.0;
  const made m(p, choices_with(256));
  CHECK_EQ_INT(m.status, HONE_OK);
  CHECK_EQ_INT(m.info.zero_pivot, 300);
}

/* Each block column has a scale of its own: with that of the second one FP16
   parts of the third would overflow, and so would those of columns that pad the
   fourth where they still had entries of the third. */
TEST_OF(outside, block_columns_of_other_magnitudes) {
  const narrow_panels narrow;
  problem p(order_of(900), HONE_NO_TRANS, 20);
  for (int64_t j = 512 / HONE_PARTS; j < 768 / HONE_PARTS; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] = shifted(p.a.data()[i + j * p.n], 14);
  const made m(p, choices_with(256));
  CHECK_EQ_INT(m.status, HONE_OK);
  CHECK_CONTAINS(m.used.text, "fp16x3");
  CHECK(error_of(p, m, 29) <= 1e-5);
}

/* Growth that FP16 parts do not bear: the factorization begins again with
   products in FP32. */
TEST_OF(outside, products_that_overflow_are_made_in_fp32) {
  const narrow_panels narrow;
  problem p(order_of(700), HONE_NO_TRANS, 22);
  const double by = HONE_PARTS > 1 ? 0.04 : 0.03;
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] = i == j || j == p.n - 1 ? 1.0
                                : i > j                ? -by
                                                       : 0.0;
  const made m(p, choices_with(256));
  CHECK_EQ_INT(m.status, HONE_OK);
  CHECK_CONTAINS(m.used.text, "fp32");
  CHECK_CONTAINS(m.used.text, SAYS);
  CHECK_NEAR(m.info.growth, 0.0, 0.0); /* it is finite */
  CHECK(std::abs(m.at(p.n - 1, p.n - 1)) > 1e5);
  CHECK(error_of(p, m, 29) <= 1e-5);
}

TEST_OF(outside, pivots_that_fall_too_fast_are_given_up) {
  const narrow_panels narrow;
  const made m(falling(order_of(900), 1e-12, HONE_NO_TRANS, 41),
               choices_with(256));
  CHECK_EQ_INT(m.status, HONE_OK);
  CHECK(m.info.hopeless);
}

} // namespace
