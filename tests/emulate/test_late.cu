/* SPDX-License-Identifier: BSD-3-Clause */
/* One emulated device whose work is done late, in one of the orders that CUDA
   allows (emulate_late.h): where the host looks too early, or a stream does not
   wait for another, x or what is reported of A is another one. */
#include "tests/cuda/definite_system.h"
#include "tests/emulate/several_devices.h"

extern "C" {
#include "api/hone.h"
}

#include <cstring>

namespace {

struct outcome {
  std::vector<double> x;
  hone_report report;
};

outcome solve(const definite_system &s, int structure, int trans) {
  outcome out;
  hone_options o;
  hone_options_init(&o, sizeof o);
  hone_report_init(&out.report, sizeof out.report);
  o.device = HONE_DEVICE_CUDA;
  o.structure = structure;
  o.trans = trans;
  out.x.resize(s.b.size());
  CHECK_EQ_INT(hone_solve(s.n, 1, s.a.data(), s.n, s.b.data(), s.n,
                          out.x.data(), s.n, &o, &out.report),
               HONE_OK);
  return out;
}

/* The system with its equations in another order, so that LU exchanges rows. */
definite_system rotated(const definite_system &s, int64_t by) {
  definite_system t(s.n);
  for (int64_t j = 0; j < s.n; j++)
    for (int64_t i = 0; i < s.n; i++)
      t.a.data()[(i + by) % s.n + j * s.n] = s.a.data()[i + j * s.n];
  return t;
}

/* The system with a larger diagonal, which stays definite. */
definite_system doubled(const definite_system &s) {
  definite_system t(s.n);
  for (int64_t i = 0; i < s.n; i++)
    t.a.data()[i * (s.n + 1)] *= 2.0;
  return t;
}

/* Orders of one block column and of several. Another matrix comes before, whose
   numbers are then in all buffers. */
TEST(late, one_call_has_the_bits_that_it_has_when_nothing_waits) {
  for (const int64_t n : {200, 800})
    for (const int structure : {HONE_STRUCTURE_GENERAL, HONE_STRUCTURE_SPD})
      for (int trans = 0; trans < 2; trans++) {
        const bool spd = structure == HONE_STRUCTURE_SPD;
        const definite_system plain(n);
        const definite_system s = spd ? plain : rotated(plain, 1);
        const definite_system other = spd ? doubled(plain) : rotated(plain, 7);
        const outcome first = solve(s, structure, trans);
        for (uint64_t seed = 1; seed <= 2; seed++) {
          (void)solve(other, structure, trans);
          const hone_emulate::late_streams late(seed);
          ct_note("n %d, structure %d, trans %d, order %d", (int)n, structure,
                  trans, (int)seed);
          const outcome now = solve(s, structure, trans);
          CHECK_MEM_EQ(now.x.data(), first.x.data(),
                       first.x.size() * sizeof(double));
          CHECK(now.report.rcond == first.report.rcond);
          CHECK(now.report.norm1 == first.report.norm1);
          CHECK(now.report.max_abs == first.report.max_abs);
          CHECK(now.report.growth == first.report.growth);
          CHECK_EQ_INT(now.report.iterations, first.report.iterations);
        }
      }
}

/* The host writes to the buffers that a step of probes was begun with. */
TEST(late, a_solve_waits_for_a_step_that_was_begun_early) {
  const int64_t n = 150;
  const definite_system s(n);
  const hone_scaling none = {nullptr, nullptr, nullptr, nullptr, false};
  std::vector<double> rows(static_cast<size_t>(n));
  hone_probe_step step = {};
  step.scaling = &none;
  step.first = true;
  step.vectors = 16;
  step.solutions = 4;
  step.row_squares = rows.data();
  const factors f(&hone_engine_single_cuda, s);
  std::vector<double> x = s.b, p = s.b;
  CHECK_EQ_INT(f.engine->solve(f.self, false, 1, x.data(), n), HONE_OK);
  CHECK_EQ_INT(
      f.engine->product(f.self, &f.matrix, false, 1, s.b.data(), p.data()),
      HONE_OK);
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const hone_emulate::late_streams late(seed);
    std::vector<double> v = s.b, w = s.b;
    ct_note("order %d", (int)seed);
    f.engine->expect_probes(f.self, &f.matrix, &step);
    CHECK_EQ_INT(f.engine->solve(f.self, false, 1, v.data(), n), HONE_OK);
    CHECK_MEM_EQ(v.data(), x.data(), v.size() * sizeof(double));
    f.engine->expect_probes(f.self, &f.matrix, &step);
    CHECK_EQ_INT(
        f.engine->product(f.self, &f.matrix, false, 1, s.b.data(), w.data()),
        HONE_OK);
    CHECK_MEM_EQ(w.data(), p.data(), w.size() * sizeof(double));
  }
}

} // namespace
