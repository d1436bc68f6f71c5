/* SPDX-License-Identifier: BSD-3-Clause */
/* A factorization that the caller stops while the emulated device's work is
   late (emulate_late.h), and what a kept solver then tells of the next matrix.
 */
extern "C" {
#include "api/hone.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
#include "tests/unit/wrapped.h"
}
#include "gpu_sp/state.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace {

/* A matrix whose entries are 'size' times those of random ones, with a dominant
   diagonal. */
std::vector<double> dominant(uint64_t seed, int64_t n, double size) {
  sup_rng r = {seed};
  std::vector<double> a((size_t)(n * n));
  sup_random(&r, n, n, a.data(), n);
  for (double &v : a)
    v *= size;
  for (int64_t i = 0; i < n; i++)
    a[(size_t)(i * (n + 1))] += size * (double)n;
  return a;
}

/* Stops a factorization while *stops. */
int stop_within(void *stops, const hone_progress *event) {
  return *static_cast<const bool *>(stops) &&
         std::strcmp(event->phase, "factor") == 0 && event->fraction > 0.0;
}

double norm1_of(int64_t n, const std::vector<double> &a) {
  double norm = 0.0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
      sum += std::fabs(a[(size_t)(i + j * n)]);
    norm = std::fmax(norm, sum);
  }
  return norm;
}

/* The next matrix lies on the device, and is inspected in another stream than
   the one whose factorization was stopped: nothing of that one is measured any
   more. */
TEST(late_stops, nothing_is_measured_of_a_matrix_that_was_given_up) {
  const int64_t n = 256;
  device_begin();
  wrapped_trial.outer = 32; /* several block columns */
  for (uint64_t seed = 1; seed <= 40; seed++) {
    const std::vector<double> large = dominant(seed, n, 1000.0),
                              small = dominant(seed + 100, n, 1.0);
    const double norm1 = norm1_of(n, small);
    hone_solver *solver = nullptr;
    hone_options o;
    hone_report report;
    bool stops = true;
    hone_options_init(&o, sizeof o);
    hone_report_init(&report, sizeof report);
    o.device = HONE_DEVICE_CUDA;
    o.structure = HONE_STRUCTURE_GENERAL;
    o.progress = stop_within;
    o.progress_user = &stops;
    ct_note("order %d", (int)seed);
    double *there = on_device(small.data(), n * n);
    CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
    {
      const hone_emulate::late_streams late(seed);
      CHECK_EQ_INT(hone_solver_factor(solver, large.data(), n, &report),
                   HONE_CANCELLED);
      stops = false;
      CHECK_EQ_INT(hone_solver_factor(solver, there, n, &report), HONE_OK);
    }
    CHECK_NEAR(report.norm1, norm1, 1e-12 * norm1);
    CHECK_LE(report.max_abs, (double)n + 1.0);
    hone_solver_destroy(&solver);
    device_free(there);
  }
  wrapped_trial = {};
  device_end();
}

} // namespace
