/* SPDX-License-Identifier: BSD-3-Clause */
/* Many right-hand sides on several emulated devices: residuals of a block of
   columns in one pass of each device over its columns of A
   (gpu_sp/several/residuals.cu), and solves that make use of them. */
#include "tests/emulate/several_problem.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

namespace {

hone_entry *entries(entry *v) { return reinterpret_cast<hone_entry *>(v); }
const hone_entry *entries(const entry *v) {
  return reinterpret_cast<const hone_entry *>(v);
}

/* An engine of several devices that has a matrix. */
struct engine_with {
  const hone_engine *const e = &hone_engine_several_cuda;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_dense dense;
  hone_matrix matrix;
  void *self = nullptr;

  engine_with(const problem &p, int devices)
      : dense{p.n, p.n, entries(p.a.data()), nullptr, false, 0},
        matrix(hone_dense_matrix(&dense)) {
    hone_engine_config config = {};
    hone_factor_info info = {};
    config.n = p.n;
    config.mem = &mem;
    config.watch = &watch;
    config.choices.devices = devices;
    config.choices.trial = wrapped_trial;
    CHECK_EQ_INT(e->create(&self, &config), HONE_OK);
    CHECK_EQ_INT(e->factor(self, &matrix, nullptr, &info), HONE_OK);
  }
  ~engine_with() { e->destroy(self, &mem); }
  engine_with(const engine_with &) = delete;
  engine_with &operator=(const engine_with &) = delete;
};

/* k vectors x and b, and what becomes of them. */
struct vectors {
  int64_t n, k;
  std::vector<entry> x, b, r;
  std::vector<double> den;
  std::vector<const hone_entry *> x_at, b_at;
  std::vector<hone_entry *> r_at;
  std::vector<double *> den_at;

  vectors(int64_t order, int64_t count, numbers *random)
      : n(order), k(count), x(uniform_entries(random, n * k)),
        b(uniform_entries(random, n * k)), r(x.size(), entry(9.0)),
        den(x.size(), 9.0) {
    for (int64_t c = 0; c < k; c++) {
      x_at.push_back(entries(x.data() + c * n));
      b_at.push_back(entries(b.data() + c * n));
      r_at.push_back(entries(r.data() + c * n));
      den_at.push_back(den.data() + c * n);
    }
  }
  hone_residual_block block() const {
    return {k,     x_at.data(), b_at.data(), r_at.data(), den_at.data(),
            false, false};
  }
};

/* Checks the residuals and denominators of column c: those of double-double are
   correct to the last bit but for cancellation, the bound of which is n^2 u^2
   of the denominator. */
void check_column(const problem &p, int trans, const vectors &v, int64_t c) {
  double wrong = 0.0;
  for (int64_t i = 0; i < p.n; i++) {
    wide_entry r(v.b.data()[i + c * v.n]);
    long double den = std::abs(r);
    for (int64_t j = 0; j < p.n; j++) {
      const wide_entry t =
          p.at(trans, i, j) * wide_entry(v.x.data()[j + c * v.n]);
      r -= t;
      den += std::abs(t);
    }
    /* The reference has 64 bits. */
    const long double unit = (long double)p.n * 0x1p-63L * den;
    const long double off = std::abs(r - wide_entry(v.r.data()[i + c * v.n])) -
                            0x1p-52L * std::abs(r);
    const long double den_off = std::fabs(v.den.data()[i + c * v.n] - den);
    wrong += !(off <= unit) + !(den_off <= (long double)p.n * 0x1p-52L * den);
  }
  CHECK_EQ_INT((int64_t)wrong, 0);
}

void check_block(const engine_with &of, const problem &p, int trans, int64_t k,
                 numbers *random) {
  const vectors together(p.n, k, random);
  vectors alone = together;
  const hone_residual_block block = together.block();
  ct_note("%d columns, trans %d", (int)k, trans);
  CHECK_EQ_INT(of.e->residuals(of.self, &of.matrix, trans, &block), HONE_OK);
  for (int64_t c = 0; c < k; c++)
    CHECK_EQ_INT(of.e->residual(of.self, &of.matrix, trans,
                                together.x_at[(size_t)c],
                                together.b_at[(size_t)c],
                                entries(alone.r.data() + c * p.n),
                                alone.den.data() + c * p.n),
                 HONE_OK);
  CHECK(same(together.r, alone.r));
  CHECK(same(together.den, alone.den));
  check_column(p, trans, together, k - 1);
}

TEST_OF(several_many, residuals_together_have_the_bits_of_those_alone) {
  for (int devices : {2, 3}) {
    const several_devices present(devices);
    const narrow_panels narrow;
    const problem p(order_of(781), HONE_NO_TRANS, 50);
    const engine_with of(p, devices);
    numbers random = {51};
    for (int64_t k : {1, 2, 4, 5, 16, 37, 70})
      for (int trans : {HONE_NO_TRANS, HONE_TRANS}) {
        const hone_emulate::late_streams late((uint64_t)k);
        check_block(of, p, trans, k, &random);
      }
  }
}

/* Each share enqueues one copy and one pass over A for four columns, and waits
   once for as many as a slot takes: 16. */
TEST_OF(several_many, residuals_together_take_few_calls) {
  const several_devices two(2);
  const problem p(520, HONE_NO_TRANS, 52);
  const engine_with of(p, 2);
  numbers random = {53};
  const vectors v(p.n, 32, &random);
  const hone_residual_block block = v.block();
  int64_t before = failing_calls.made;
  CHECK_EQ_INT(of.e->residuals(of.self, &of.matrix, false, &block), HONE_OK);
  const int64_t together = failing_calls.made - before;
  before = failing_calls.made;
  CHECK_EQ_INT(of.e->residual(of.self, &of.matrix, false, v.x_at[0], v.b_at[0],
                              v.r_at[0], v.den_at[0]),
               HONE_OK);
  const int64_t alone = failing_calls.made - before;
  CHECK(alone >= 8);
  CHECK(2 * 32 * alone >= 5 * 2 * together);
}

/* Solves for k columns; checks every seventh of them and the report. */
void check_columns(int devices, int64_t n, int64_t k, int trans) {
  const problem p(n, trans, (uint64_t)(n + k));
  numbers r = {(uint64_t)k};
  const std::vector<entry> b = uniform_entries(&r, n * k);
  std::vector<entry> x((size_t)(n * k));
  hone_options o = options_for(devices);
  hone_report report = HONE_REPORT_INIT;
  o.trans = trans;
  ct_note("%d devices, %d columns, trans %d", devices, (int)k, trans);
  CHECK_EQ_INT(
      hone_solve(n, k, p.a.data(), n, b.data(), n, x.data(), n, &o, &report),
      HONE_OK);
  CHECK_EQ_INT(report.accepted, k);
  CHECK_EQ_INT(report.host_passes, 0);
  CHECK(report.device_passes > 0);
  CHECK(strstr(report.path, (std::to_string(devices) + " GPUs").c_str()));
  problem one = p;
  for (int64_t c = 0; c < k; c += 7) {
    one.b.assign(b.begin() + c * n, b.begin() + (c + 1) * n);
    CHECK(is_answer(one, trans, x.data() + c * n));
  }
}

TEST_OF(several_many, solves_for_many_columns) {
  for (int64_t apart : {0, 1}) {
    const several_devices three(3);
    const narrow_panels narrow;
    const hone_emulate::late_streams late((uint64_t)(60 + apart));
    wrapped_trial.apart = apart;
    check_columns(3, order_of(1100), 22, HONE_NO_TRANS);
    check_columns(3, order_of(1100), 5, LAST_TRANS);
    wrapped_trial.apart = 0;
  }
}

/* As survives_every_failed_call of test_several.cu, with calls that bring
   columns there and back among those that fail. */
TEST_OF(several_many, survives_failed_calls) {
  const several_devices two(2);
  const problem p(520, HONE_NO_TRANS, 54);
  const int64_t n = p.n, k = 6;
  numbers r = {55};
  const std::vector<entry> b = uniform_entries(&r, n * k);
  hone_options o = options_for(2);
  std::vector<entry> x((size_t)(n * k));
  const int64_t before = failing_calls.made;
  CHECK_EQ_INT(
      hone_solve(n, k, p.a.data(), n, b.data(), n, x.data(), n, &o, nullptr),
      HONE_OK);
  const int64_t calls = failing_calls.made - before;
  (void)hone_release_kept();
  const size_t owned = hone_emulate::owned_now();
  for (int64_t at = calls / 2; at <= calls; at += 1 + calls / 24) {
    failing_calls.fail_at = at;
    const int st =
        hone_solve(n, k, p.a.data(), n, b.data(), n, x.data(), n, &o, nullptr);
    failing_calls.fail_at = 0;
    ct_note("call %d of %d", (int)at, (int)calls);
    CHECK_EQ_INT(st, HONE_OK);
    problem one = p;
    one.b.assign(b.begin(), b.begin() + n);
    CHECK(is_answer(one, HONE_NO_TRANS, x.data()));
    one.b.assign(b.end() - n, b.end());
    CHECK(is_answer(one, HONE_NO_TRANS, x.data() + n * (k - 1)));
    (void)hone_release_kept();
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)owned);
  }
}

} // namespace
