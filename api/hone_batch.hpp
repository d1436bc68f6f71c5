/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone_batch.hpp
 * Many systems in one call for C++17, which hone.hpp includes; hone_batch.h
 * says what everything means.
 *
 *     // count matrices by columns, one after the other; b likewise
 *     hone::batch_solution s = hone::batch(count, a, b);
 *     for (const hone_batch_result &r : s.results) ... // r.status of a system
 *     if (s.accepted()) ...                            // all of them
 *
 * Only a call that is refused throws hone::error. A system that fails does not:
 * its result has the status, its neighbours are solved, and value() throws.
 * Systems that lie otherwise (other orders, strides, lists) are a hone_batch,
 * which hone_batch_solve takes.
 */
#ifndef HONE_BATCH_HPP
#define HONE_BATCH_HPP

#include "hone.hpp"

#include <limits>

namespace hone {
/** The x of all systems, in the form of b, and a result for each. The x of a
    system whose status is < 0 is NaN. */
template <class T> struct basic_batch_solution {
  std::vector<T> x;
  std::vector<hone_batch_result> results;
  hone_report report = HONE_REPORT_INIT; /* of all systems, the worst */
  bool accepted() const noexcept { return report.status == HONE_OK; }
  /** x if every system is accepted, else throws. */
  std::vector<T> value() const {
    return accepted() ? x : throw error(report.status, report);
  }
};

using batch_solution = basic_batch_solution<double>;
using complex_batch_solution = basic_batch_solution<std::complex<double>>;

namespace detail {
inline int solve_all(hone_batch &batch, const double *a, const double *b,
                     double *x, const hone_options &o, hone_batch_result *r,
                     hone_report *report) {
  batch.a = a, batch.b = b, batch.x = x;
  return hone_batch_solve(&batch, &o, r, report);
}
inline int solve_all(hone_z_batch &batch, const std::complex<double> *a,
                     const std::complex<double> *b, std::complex<double> *x,
                     const hone_options &o, hone_batch_result *r,
                     hone_report *report) {
  batch.a = a, batch.b = b, batch.x = x;
  return hone_z_batch_solve(&batch, &o, r, report);
}

/** The order of count matrices of so many numbers together. */
inline int64_t order_of(int64_t count, int64_t numbers) {
  int64_t n = 0;
  while (count > 0 && n * n < numbers / count)
    n++;
  const bool fits = count >= 0 && n * n * count == numbers;
  return fits ? n : throw error(HONE_BAD_SIZE);
}
inline bool is_refusal(int status) {
  return status <= HONE_NULL_POINTER && status >= HONE_BUSY;
}

template <class T, class Batch>
basic_batch_solution<T> many(Batch batch, const std::vector<T> &a,
                             const std::vector<T> &b, const hone_options &o) {
  const int64_t numbers = static_cast<int64_t>(b.size());
  batch.n = order_of(batch.count, static_cast<int64_t>(a.size()));
  const int64_t rows = batch.count * ld(batch.n);
  batch.nrhs = rows > 0 ? numbers / rows : 0;
  if (batch.nrhs * batch.n * batch.count != numbers)
    throw error(HONE_BAD_SIZE);
  batch.lda = batch.ldb = batch.ldx = ld(batch.n);
  batch.stride_a = batch.n * batch.n;
  batch.stride_b = batch.stride_x = batch.n * batch.nrhs;
  basic_batch_solution<T> s{
      std::vector<T>(b.size(), std::numeric_limits<double>::quiet_NaN()),
      std::vector<hone_batch_result>(static_cast<std::size_t>(batch.count))};
  const int status = solve_all(batch, a.data(), b.data(), s.x.data(), o,
                               s.results.data(), &s.report);
  return is_refusal(status) ? throw error(status, s.report) : s;
}
} // namespace detail

/** Solves count systems: a has n x n numbers of each, b and x n x nrhs. With
    determinants the results have those too; they are not verified. */
[[nodiscard]] inline batch_solution
batch(int64_t count, const std::vector<double> &a, const std::vector<double> &b,
      const hone_options &o = options(), bool determinants = false) {
  hone_batch systems = HONE_BATCH_INIT;
  systems.count = count, systems.determinants = determinants;
  return detail::many(systems, a, b, o);
}
template <int = 0>
[[nodiscard]] complex_batch_solution
batch(int64_t count, const std::vector<std::complex<double>> &a,
      const std::vector<std::complex<double>> &b,
      const hone_options &o = options(), bool determinants = false) {
  hone_z_batch systems = HONE_Z_BATCH_INIT;
  systems.count = count, systems.determinants = determinants;
  return detail::many(systems, a, b, o);
}
} // namespace hone
#endif
