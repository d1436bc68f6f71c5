/* SPDX-License-Identifier: BSD-3-Clause */
/* Random systems for several emulated devices, and what is checked of their
   solutions. */
#ifndef HONE_EMULATE_SEVERAL_PROBLEM_H
#define HONE_EMULATE_SEVERAL_PROBLEM_H

#include "tests/emulate/several_devices.h"

#include "tests/unit/wrapped.h"

#include <string>

/* A random system with a known product: b = A x to the last bit of a long
   double sum. */
struct problem {
  int64_t n;
  std::vector<double> a, x, b;

  problem(int64_t order, bool trans, uint64_t seed) : n(order), x(), b() {
    numbers r = {seed};
    a = r.array<double>(n * n);
    x = r.array<double>(n);
    for (int64_t i = 0; i < n; i++) {
      long double sum = 0.0L;
      for (int64_t j = 0; j < n; j++)
        sum +=
            (long double)(trans ? a.data()[j + i * n] : a.data()[i + j * n]) *
            (long double)x.data()[j];
      b.push_back((double)sum);
    }
  }
};

/* Returns max |b - op(A) x| / (|op(A)| |x| + |b|), in long double. */
inline double backward_error(const problem &p, bool trans, const double *x) {
  long double most = 0.0L;
  for (int64_t i = 0; i < p.n; i++) {
    long double r = (long double)p.b.data()[i], den = std::fabs(r);
    for (int64_t j = 0; j < p.n; j++) {
      const long double t = (long double)(trans ? p.a.data()[j + i * p.n]
                                                : p.a.data()[i + j * p.n]) *
                            (long double)x[j];
      r -= t;
      den += std::fabs(t);
    }
    most = std::fabs(r) <= most * den ? most : std::fabs(r) / den;
  }
  return (double)most;
}

inline hone_options options_for(int devices) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  o.structure = HONE_STRUCTURE_GENERAL;
  o.factor_precision = HONE_FACTOR_SINGLE;
  o.devices = devices;
  return o;
}

/* Solves with so many devices, and checks the answer and the report. */
inline void check_solve(int devices, int64_t n, int trans) {
  const several_devices present(devices);
  const problem p(n, trans != HONE_NO_TRANS, (uint64_t)(n + devices));
  std::vector<double> x((size_t)n);
  hone_options o = options_for(devices);
  hone_report report = HONE_REPORT_INIT;
  o.trans = trans;
  ct_note("%d devices, n %d, trans %d", devices, (int)n, trans);
  CHECK_EQ_INT(
      hone_solve(n, 1, p.a.data(), n, p.b.data(), n, x.data(), n, &o, &report),
      HONE_OK);
  CHECK_EQ_INT(report.precision, 32);
  CHECK(strstr(report.path, (std::to_string(devices) + " GPUs").c_str()));
  CHECK(strstr(report.path, "set aside") == nullptr);
  CHECK_EQ_INT(report.host_passes, 0);
  CHECK(report.device_passes > 0);
  const double error = backward_error(p, trans != HONE_NO_TRANS, x.data());
  CHECK(error <= 4 * 0x1p-53 * (1 + 1e-9));
  CHECK(error <= report.backward_error * (1 + 1e-9) + 1e-19);
  double off = 0.0, top = 0.0;
  for (int64_t i = 0; i < n; i++) {
    off = std::fmax(off, std::fabs(x.data()[i] - p.x.data()[i]));
    top = std::fmax(top, std::fabs(p.x.data()[i]));
  }
  /* b was rounded: the x of this very b is another one, by cond(A) u, and rcond
     is an estimate, at most three times too large here. */
  CHECK(off <= top * (report.forward_error + 3 * 0x1p-53 / report.rcond));
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes, 0);
  CHECK((int64_t)hone_emulate::devices.peer_bytes > 0);
}

/* Solves, and checks x against b in long double. Returns the report. */
inline hone_report solve(const problem &p, const hone_options &o, int status) {
  std::vector<double> x((size_t)p.n);
  hone_report report = HONE_REPORT_INIT;
  const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, &report);
  CHECK_EQ_INT(st, status);
  if (st == HONE_OK)
    CHECK(backward_error(p, o.trans != HONE_NO_TRANS, x.data()) <=
          4 * 0x1p-53 * (1 + 1e-9));
  return report;
}

#endif
