/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders from which on look-ahead has streams of its own, A comes by several
   block columns, and products decide: single precision must serve there.
   Factors that steps in a wrong order have spoiled would be set aside, and
   double precision would hide that. Two matrices come in turn, so that what the
   engine kept is never right by chance. An emulated device takes too long. */
#ifndef HONE_EMULATE
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "api/hone.h"
#include "api/hone_tuning.h"
}

namespace {

hone_options options_for(const hone_tuning *tuning) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  o.tuning = tuning;
  return o;
}

void check_report(int status, const hone_report &report, int64_t n) {
  ct_note("n %d: %s", (int)n, report.path);
  CHECK_EQ_INT(status, HONE_OK);
  CHECK_EQ_INT(report.precision, 32);
  CHECK(strstr(report.path, "set aside") == nullptr);
  CHECK(report.backward_error <= 4 * 0x1p-53);
}

void solve_real(int64_t n, int times, const hone_tuning *tuning) {
  numbers r = {static_cast<uint64_t>(n)};
  const std::vector<double> a[] = {r.array<double>(n * n),
                                   r.array<double>(n * n)};
  const std::vector<double> b = r.array<double>(n);
  std::vector<double> x(b.size());
  const hone_options o = options_for(tuning);
  for (int k = 0; k < times; k++) {
    hone_report report = HONE_REPORT_INIT;
    const int status = hone_solve(n, 1, a[k % 2].data(), n, b.data(), n,
                                  x.data(), n, &o, &report);
    check_report(status, report, n);
  }
}

void solve_complex(int64_t n, int times, const hone_tuning *tuning) {
  numbers r = {static_cast<uint64_t>(n)};
  const std::vector<double> a[] = {r.array<double>(2 * n * n),
                                   r.array<double>(2 * n * n)};
  const std::vector<double> b = r.array<double>(2 * n);
  std::vector<hone_complex> x(static_cast<size_t>(n));
  const hone_options o = options_for(tuning);
  const auto numbers_of = [](const std::vector<double> &v) {
    return reinterpret_cast<const hone_complex *>(v.data());
  };
  for (int k = 0; k < times; k++) {
    hone_report report = HONE_REPORT_INIT;
    const int status = hone_z_solve(n, 1, numbers_of(a[k % 2]), n,
                                    numbers_of(b), n, x.data(), n, &o, &report);
    check_report(status, report, n);
  }
}

enum { REAL_N = 11000, COMPLEX_N = 7000, TIMES = 6 };

TEST(large, orders_are_solved_in_single_precision) {
  NEED_DEVICE();
  solve_real(REAL_N, TIMES, nullptr);
  solve_complex(COMPLEX_N, TIMES, nullptr);
  (void)hone_release_kept();
}

/* Several inner panels in an outer one, by products that read L from F. */
TEST(large, orders_are_solved_by_products_in_fp32) {
  NEED_DEVICE();
  hone_tuning tuning = HONE_TUNING_INIT;
  tuning.arithmetic = HONE_ARITHMETIC_FP32;
  solve_real(REAL_N, 2, &tuning);
  solve_complex(COMPLEX_N, 2, &tuning);
  (void)hone_release_kept();
}

} // namespace

#endif
