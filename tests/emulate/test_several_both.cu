/* SPDX-License-Identifier: BSD-3-Clause */
/* Real and complex systems on several emulated devices in one process: what it
   keeps between calls is for either. */
#include "tests/emulate/several_problem.h"

namespace {

typedef std::complex<double> cplx;

/* Solves a complex system with the identity plus small entries, whose answer is
   known to four digits without another solve; returns the report. */
hone_report solve_complex(int64_t n, const hone_options &o) {
  numbers r = {(uint64_t)n};
  std::vector<cplx> a((size_t)(n * n)), b((size_t)n), x(b);
  hone_report report = HONE_REPORT_INIT;
  for (cplx &v : a) {
    const double re = r.uniform();
    v = 1e-4 / (double)n * cplx(re, r.uniform());
  }
  for (int64_t i = 0; i < n; i++) {
    a.data()[i + i * n] += cplx(0.0, 1.0);
    b.data()[i] = cplx((double)(i % 5), 1.0);
  }
  CHECK_EQ_INT(
      hone_z_solve(n, 1, a.data(), n, b.data(), n, x.data(), n, &o, &report),
      HONE_OK);
  for (int64_t i = 0; i < n; i++)
    CHECK(std::abs(x.data()[i] - cplx(1.0, -(double)(i % 5))) <= 1e-3);
  return report;
}

/* One engine for several devices at most, whichever came last. */
TEST(several_both, one_engine_is_kept) {
  const several_devices two(2);
  const size_t before = hone_emulate::owned_now();
  const problem p(600, HONE_NO_TRANS, 71);
  const hone_options o = options_for(2);
  for (int round = 0; round < 2; round++) {
    const hone_report real = solve(p, o, HONE_OK);
    CHECK(strstr(real.path, "2 GPUs"));
    if (round > 0)
      CHECK_EQ_INT(hone_release_kept(), real.device_bytes);
    const hone_report other = solve_complex(600, o);
    CHECK(strstr(other.path, "2 GPUs"));
    if (round == 0)
      CHECK_EQ_INT(hone_release_kept(), other.device_bytes);
    else
      (void)solve_complex(600, o);
  }
  CHECK(hone_release_kept() > 0);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
}

/* A second complex call takes the engine of the first one. */
TEST(several_both, the_engine_of_a_complex_call_is_kept) {
  const several_devices two(2);
  const hone_options o = options_for(2);
  const hone_report first = solve_complex(650, o);
  const size_t kept = hone_emulate::owned_now();
  const hone_report second = solve_complex(650, o);
  CHECK_EQ_INT(second.device_bytes, first.device_bytes);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)kept);
  CHECK_EQ_INT(hone_release_kept(), first.device_bytes);
}

/* The memory of a device that an engine for one device may keep counts with
   that of the others. */
TEST(several_both, complex_systems_need_twice_the_memory) {
  hone_options o = options_for(4);
  int64_t real = 0, least = 0, other = 0, other_least = 0;
  /* an order at which vectors, of which there are as many, count little */
  const int64_t n = 40000;
  CHECK_EQ_INT(hone_device_memory_needed(n, &o, &real, &least), HONE_OK);
  CHECK_EQ_INT(hone_z_device_memory_needed(n, &o, &other, &other_least),
               HONE_OK);
  CHECK(other > 1.9 * (double)real && other < 2.1 * (double)real);
  CHECK(other_least > 1.9 * (double)least && other_least < 2.1 * (double)least);
}

} // namespace
