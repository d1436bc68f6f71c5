/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps with vectors that stay on the first of several emulated devices
   (gpu_sp/several/steps.cu), through the public API: certificates and the first
   corrections of many columns. */
#include "tests/emulate/several_problem.h"

namespace {

/* Where entries are far from 1, rows and columns are scaled. */
enum { MAGNITUDES = 60, FAR = 30 };

/* A random system, with k multiples of its right-hand side. */
struct system_of {
  problem p;
  int trans;
  int64_t k;
  std::vector<entry> b;

  system_of(int64_t n, int64_t columns, int op, bool scaled)
      : p(n, op, (uint64_t)(n + columns)), trans(op), k(columns), b() {
    for (int64_t j = 0; scaled && j < n; j++)
      for (int64_t i = 0; i < n; i++) {
        entry &v = p.a.data()[i + j * n];
        v = shifted(v, (int)((7 * i + 3 * j) % MAGNITUDES) + FAR);
      }
    if (scaled)
      p.multiply(trans);
    for (int64_t c = 0; c < k; c++)
      for (int64_t i = 0; i < n; i++)
        b.push_back(shifted(p.b.data()[i], (int)(c % 5)));
  }
};

hone_report solve_on(int devices, const system_of &of) {
  const several_devices present(devices);
  hone_options o = options_for(devices);
  hone_report r = HONE_REPORT_INIT;
  const int64_t n = of.p.n;
  std::vector<entry> x((size_t)(n * of.k));
  o.trans = of.trans;
  CHECK_EQ_INT(hone_solve(n, of.k, of.p.a.data(), n, of.b.data(), n, x.data(),
                          n, &o, &r),
               HONE_OK);
  for (int64_t c = 0; c < of.k; c += 7) {
    std::vector<entry> column;
    for (int64_t i = 0; i < n; i++)
      column.push_back(shifted(x.data()[i + c * n], -(int)(c % 5)));
    CHECK(is_answer(of.p, of.trans, column.data()));
  }
  return r;
}

/* Solves for k columns on one device and on several, which must find the same.
   Returns how many vectors of n entries these sent to the host. */
int64_t check_steps(int devices, int64_t n, int64_t k, int trans, bool scaled) {
  const system_of of(n, k, trans, scaled);
  const hone_report one = solve_on(1, of), all = solve_on(devices, of);
  ct_note("%d devices, n %d, %d columns, trans %d, scaled %d", devices, (int)n,
          (int)k, trans, scaled);
  CHECK_EQ_INT(all.scale_exponent_min < 0, scaled);
  /* Both certify by the same random vectors. */
  CHECK(std::fabs(all.rcond / one.rcond - 1.0) <= 0.01);
  CHECK(std::abs(all.iterations - one.iterations) <= 1);
  CHECK_EQ_INT(all.gmres_steps, one.gmres_steps);
  CHECK_EQ_INT(all.fallback_columns, 0);
  return all.from_device_bytes / (n * (int64_t)sizeof(entry));
}

/* The vectors of the certificate are not sent: 16 and more, several times. */
TEST_OF(several_steps, certificates_keep_their_vectors_there) {
  const int64_t n = order_of(1100);
  CHECK(check_steps(2, n, 1, HONE_NO_TRANS, false) <= 50);
  CHECK(check_steps(2, n, 1, LAST_TRANS, false) <= 50);
  CHECK(check_steps(2, n, 1, HONE_NO_TRANS, true) <= 120);
  CHECK(check_steps(2, n, 1, LAST_TRANS, true) <= 120);
  CHECK(check_steps(5, n, 1, HONE_NO_TRANS, false) <= 120);
}

TEST_OF(several_steps, many_columns_are_refined_there) {
  const int64_t n = order_of(700);
  CHECK(check_steps(2, n, 20, HONE_NO_TRANS, false) <= 200);
  CHECK(check_steps(2, n, 20, LAST_TRANS, false) <= 110);
  (void)check_steps(3, n, 20, HONE_PARTS > 1 ? LAST_TRANS : HONE_NO_TRANS,
                    true);
}

/* Other devices have their results read before they make the next ones. */
TEST_OF(several_steps, work_that_is_late) {
  const int64_t n = order_of(900);
  for (uint64_t seed = 0; seed < 4; seed++) {
    const hone_emulate::late_streams late(seed);
    (void)check_steps(3, n, 1, HONE_NO_TRANS, false);
    (void)check_steps(2, n, 10, LAST_TRANS, false);
  }
}

} // namespace
