/* SPDX-License-Identifier: BSD-3-Clause */
/* Random systems for several emulated devices, and what is checked of their
   solutions. The tests are compiled twice, the second time with HONE_COMPLEX,
   for complex entries; the calls of hone.h are then those of hone_complex.h. */
#ifndef HONE_EMULATE_SEVERAL_PROBLEM_H
#define HONE_EMULATE_SEVERAL_PROBLEM_H

#include "tests/emulate/several_devices.h"

#include "tests/unit/wrapped.h"

#include <complex>
#include <string>

/* A test of real entries, and another of complex ones, with names of their own.
 */
#ifdef HONE_COMPLEX
#define TEST_OF(unit, sentence) TEST(unit##_complex, sentence)
#else
#define TEST_OF(unit, sentence) TEST(unit, sentence)
#endif

namespace {

#ifdef HONE_COMPLEX

typedef std::complex<double> entry;
typedef std::complex<long double> wide_entry;
typedef hone_z_solver entry_solver;

inline entry uniform(numbers *r) {
  const double re = r->uniform();
  return entry(re, r->uniform());
}
inline wide_entry conjugate(const wide_entry &v) { return std::conj(v); }
inline entry narrow(const wide_entry &v) { return entry(v); }
inline entry shifted(const entry &v, int e) {
  return entry(std::ldexp(v.real(), e), std::ldexp(v.imag(), e));
}
/* Returns e^(i angle). */
inline entry turned(double angle) { return std::polar(1.0, angle); }

#else

typedef double entry;
typedef long double wide_entry;
typedef hone_solver entry_solver;

inline entry uniform(numbers *r) { return r->uniform(); }
inline wide_entry conjugate(wide_entry v) { return v; }
inline entry narrow(wide_entry v) { return static_cast<double>(v); }
inline entry shifted(entry v, int e) { return std::ldexp(v, e); }
inline entry turned(double) { return 1.0; }

#endif

/* The last of the transposes: A^T, or A^H. */
const int LAST_TRANS = HONE_PARTS > 1 ? HONE_CONJ_TRANS : HONE_TRANS;

inline std::vector<entry> uniform_entries(numbers *r, int64_t count) {
  std::vector<entry> v((size_t)count);
  for (entry &e : v)
    e = uniform(r);
  return v;
}

/* An emulated device takes four times as long for complex entries. Their inner
   panels have half as many columns; so have their outer ones while a
   narrow_panels exists, and a system of half the order, or the least that
   several devices serve, has as many panels as the real one. */
inline int64_t order_of(int64_t n) {
  const int64_t half = n / HONE_PARTS;
  return half < 512 ? 512 + n % 128 / HONE_PARTS : half;
}
class narrow_panels {
public:
  narrow_panels() {
    if (HONE_PARTS == 1)
      return;
    wrapped_trial.outer = (outer > 0 ? outer : 128) / HONE_PARTS;
    wrapped_trial.part_rows = part_rows / HONE_PARTS;
  }
  ~narrow_panels() {
    wrapped_trial.outer = outer;
    wrapped_trial.part_rows = part_rows;
  }
  narrow_panels(const narrow_panels &) = delete;
  narrow_panels &operator=(const narrow_panels &) = delete;

private:
  const int64_t outer = wrapped_trial.outer;
  const int64_t part_rows = wrapped_trial.part_rows;
};

/* A random system with a known product: b = op(A) x to the last bit of a long
   double sum. trans: HONE_NO_TRANS and so on. */
struct problem {
  int64_t n;
  std::vector<entry> a, x, b;

  problem(int64_t order, int trans, uint64_t seed) : n(order), x(), b() {
    numbers r = {seed};
    a = uniform_entries(&r, n * n);
    x = uniform_entries(&r, n);
    multiply(trans);
  }
  /* Returns op(a)_ij. */
  wide_entry at(int trans, int64_t i, int64_t j) const {
    const wide_entry v(a.data()[trans ? j + i * n : i + j * n]);
    return trans == HONE_CONJ_TRANS ? conjugate(v) : v;
  }
  void multiply(int trans) {
    b.clear();
    for (int64_t i = 0; i < n; i++) {
      wide_entry sum = 0.0L;
      for (int64_t j = 0; j < n; j++)
        sum += at(trans, i, j) * wide_entry(x.data()[j]);
      b.push_back(narrow(sum));
    }
  }
};

/* Returns max |b - op(A) x| / (|op(A)| |x| + |b|), in long double. */
inline double backward_error(const problem &p, int trans, const entry *x) {
  long double most = 0.0L;
  for (int64_t i = 0; i < p.n; i++) {
    wide_entry r(p.b.data()[i]);
    long double den = std::abs(r);
    for (int64_t j = 0; j < p.n; j++) {
      const wide_entry t = p.at(trans, i, j) * wide_entry(x[j]);
      r -= t;
      den += std::abs(t);
    }
    most = std::abs(r) <= most * den ? most : std::abs(r) / den;
  }
  return (double)most;
}

/* Is x an answer that is accepted by default? */
inline bool is_answer(const problem &p, int trans, const entry *x) {
  return backward_error(p, trans, x) <= 4 * 0x1p-53 * (1 + 1e-9);
}

/* Solves for k columns of b by the factors that the solver has of p's A, and
   for as many by the transpose; every ninth is checked. */
inline void check_columns(entry_solver *solver, const problem &p, int64_t k,
                          const std::vector<entry> &b) {
  const int64_t n = p.n;
  std::vector<entry> x((size_t)(n * k));
  hone_report report = HONE_REPORT_INIT;
  for (int trans : {(int)HONE_NO_TRANS, LAST_TRANS}) {
    hone_options now = HONE_OPTIONS_INIT;
    now.trans = trans;
    CHECK_EQ_INT(
        hone_solver_solve(solver, k, b.data(), n, x.data(), n, &now, &report),
        HONE_OK);
    problem one = p;
    for (int64_t c = 0; c < k; c += 9) {
      one.b.assign(b.begin() + c * n, b.begin() + (c + 1) * n);
      CHECK(is_answer(one, trans, x.data() + c * n));
    }
  }
}

inline hone_options options_for(int devices) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  o.structure = HONE_STRUCTURE_GENERAL;
  o.factor_precision = HONE_FACTOR_SINGLE;
  o.devices = devices;
  return o;
}

/* Solves with so many devices, and checks the answer and the report; the order
   is order_of(real_order). */
inline void check_solve(int devices, int64_t real_order, int trans) {
  const several_devices present(devices);
  const narrow_panels narrow;
  const int64_t n = order_of(real_order);
  const problem p(n, trans, (uint64_t)(n + devices));
  std::vector<entry> x((size_t)n);
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
  const double error = backward_error(p, trans, x.data());
  CHECK(error <= 4 * 0x1p-53 * (1 + 1e-9));
  CHECK(error <= report.backward_error * (1 + 1e-9) + 1e-19);
  double off = 0.0, top = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double e = std::abs(x.data()[i] - p.x.data()[i]);
    off = e <= off ? off : e; /* NaN stays, and fails below */
    top = std::fmax(top, std::abs(p.x.data()[i]));
  }
  /* b was rounded: the x of this very b is another one, by cond(A) u, and rcond
     is an estimate, at most three times too large here. */
  CHECK(off <= top * (report.forward_error + 3 * 0x1p-53 / report.rcond));
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes, 0);
  CHECK((int64_t)hone_emulate::devices.peer_bytes > 0);
}

/* Solves, and checks x against b in long double. Returns the report. */
inline hone_report solve(const problem &p, const hone_options &o, int status) {
  std::vector<entry> x((size_t)p.n);
  hone_report report = HONE_REPORT_INIT;
  const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, &report);
  CHECK_EQ_INT(st, status);
  if (st == HONE_OK)
    CHECK(is_answer(p, o.trans, x.data()));
  return report;
}

/* A = (I - 2 u u^T) D (I - 2 v v^T), the singular values D falling by a
   constant ratio to 'least'; complex: its rows and columns turned by angles of
   their own, which leaves the singular values. b = op(A) x. */
inline problem falling(int64_t n, double least, int trans, uint64_t seed) {
  problem p(n, trans, seed);
  numbers r = {seed + 1};
  const std::vector<double> u = r.array<double>(n), v = r.array<double>(n);
  const std::vector<double> angles = r.array<double>(2 * n);
  double uu = 0.0, vv = 0.0, udv = 0.0;
  std::vector<double> d;
  for (int64_t i = 0; i < n; i++) {
    d.push_back(std::pow(least, (double)i / (double)(n - 1)));
    uu += u.data()[i] * u.data()[i];
    vv += v.data()[i] * v.data()[i];
    udv += u.data()[i] * d.data()[i] * v.data()[i];
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      p.a.data()[i + j * n] =
          ((i == j ? d.data()[i] : 0.0) -
           2.0 / uu * u.data()[i] * u.data()[j] * d.data()[j] -
           2.0 / vv * d.data()[i] * v.data()[i] * v.data()[j] +
           4.0 / uu / vv * u.data()[i] * udv * v.data()[j]) *
          turned(6.0 * (angles.data()[i] + angles.data()[n + j]));
  p.multiply(trans);
  return p;
}

/* No factors in single precision serve for this one. */
inline problem ill_conditioned(int64_t n, int trans) {
  return falling(n, 1e-12, trans, 41);
}

} // namespace

#endif
