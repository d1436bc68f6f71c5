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
 *     hone::batch_solver solver;                       // keeps the factors
 *     solver.factor(count, a);
 *     hone::batch_solution t = solver.solve(b);        // as often as you like
 *
 * Only a call that is refused throws hone::error. A system that fails does not:
 * its result has the status, its neighbours are solved, and value() throws.
 * Systems that lie otherwise (other orders, strides, lists) are a hone_batch,
 * which hone_batch_solve and a solver take.
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

/** The results of each matrix: status, rcond, determinant. */
struct batch_factors {
  std::vector<hone_batch_result> results;
  hone_report report = HONE_REPORT_INIT;
  bool accepted() const noexcept { return report.status == HONE_OK; }
};

namespace detail { /* the calls of hone_batch.h, and sizes of vectors */
template <class T> struct batch_calls;
template <> struct batch_calls<double> {
  using systems = hone_batch;
  using handle = hone_batch_solver;
  static systems none() { return HONE_BATCH_INIT; }
  static constexpr auto *solve = hone_batch_solve;
  static constexpr auto *create = hone_batch_solver_create;
  static constexpr auto *factor = hone_batch_solver_factor;
  static constexpr auto *solve_with = hone_batch_solver_solve;
  static constexpr auto *destroy = hone_batch_solver_destroy;
};
template <> struct batch_calls<std::complex<double>> {
  using systems = hone_z_batch;
  using handle = hone_z_batch_solver;
  static systems none() { return HONE_Z_BATCH_INIT; }
  static constexpr auto *solve = hone_z_batch_solve;
  static constexpr auto *create = hone_z_batch_solver_create;
  static constexpr auto *factor = hone_z_batch_solver_factor;
  static constexpr auto *solve_with = hone_z_batch_solver_solve;
  static constexpr auto *destroy = hone_z_batch_solver_destroy;
};
template <class T> using systems_of = typename batch_calls<T>::systems;

/** The order of count matrices of so many numbers together. */
inline int64_t order_of(int64_t count, int64_t numbers) {
  int64_t n = 0;
  while (count > 0 && n * n < numbers / count)
    n++;
  const bool fits = count >= 0 && n * n * count == numbers;
  return fits ? n : throw error(HONE_BAD_SIZE);
}
/** A status that says that the call did nothing throws. */
inline void taken(int status, const hone_report &report) {
  if (status <= HONE_NULL_POINTER && status >= HONE_BUSY)
    throw error(status, report);
}

template <class T>
systems_of<T> matrices(int64_t count, const std::vector<T> &a,
                       bool determinants) {
  systems_of<T> batch = batch_calls<T>::none();
  batch.n = order_of(count, static_cast<int64_t>(a.size()));
  batch.count = count, batch.determinants = determinants, batch.a = a.data();
  batch.lda = ld(batch.n), batch.stride_a = batch.n * batch.n;
  return batch;
}
/** b of all systems; x and the results are in s. */
template <class T>
void take(systems_of<T> &batch, const std::vector<T> &b,
          basic_batch_solution<T> &s) {
  batch.nrhs = columns(b, batch.count * ld(batch.n));
  if (batch.nrhs * batch.n * batch.count != static_cast<int64_t>(b.size()))
    throw error(HONE_BAD_SIZE);
  s.x.assign(b.size(), std::numeric_limits<double>::quiet_NaN());
  s.results.resize(static_cast<std::size_t>(batch.count));
  batch.ldb = batch.ldx = ld(batch.n), batch.b = b.data(), batch.x = s.x.data();
  batch.stride_b = batch.stride_x = batch.n * batch.nrhs;
}
template <class T>
basic_batch_solution<T> many(systems_of<T> batch, const std::vector<T> &b,
                             const hone_options &o) {
  basic_batch_solution<T> s;
  take(batch, b, s);
  const int st = batch_calls<T>::solve(&batch, &o, s.results.data(), &s.report);
  taken(st, s.report);
  return s;
}
} // namespace detail

/** Matrices with their factors; see hone_batch_solver. Moves, no copies. */
template <class T> class basic_batch_solver {
  using calls = detail::batch_calls<T>;
  using handle = typename calls::handle;

public:
  using systems = detail::systems_of<T>; /* hone_batch or hone_z_batch */
  /** o: of all solves, trans too. */
  explicit basic_batch_solver(const hone_options &o = options()) {
    handle *made = nullptr;
    if (const int status = calls::create(&made, &o))
      throw error(status);
    handle_.reset(made);
  }
  /** a: n x n numbers of each matrix, borrowed until the next factor. */
  batch_factors factor(int64_t count, const std::vector<T> &a,
                       bool determinants = false) {
    const systems batch = detail::matrices(count, a, determinants);
    std::vector<hone_batch_result> r(static_cast<std::size_t>(count));
    const hone_report report = factor(batch, r.data());
    return {std::move(r), report};
  }
  batch_factors factor(int64_t, std::vector<T> &&, bool = false) = delete;

  /** b: n x nrhs numbers of each system. o: columns, deadline_s, progress. */
  [[nodiscard]] basic_batch_solution<T>
  solve(const std::vector<T> &b, const hone_options &o = options()) {
    basic_batch_solution<T> s;
    systems batch = calls::none();
    if (count_ < 0)
      throw error(HONE_NOT_FACTORED);
    batch.count = count_, batch.n = n_;
    detail::take(batch, b, s);
    s.report = solve(batch, s.results.data(), o);
    return s;
  }

  /** Systems that lie otherwise, and room for their results, or nullptr. */
  hone_report factor(const systems &batch, hone_batch_result *r) {
    hone_report made = HONE_REPORT_INIT;
    detail::taken(calls::factor(handle_.get(), &batch, r, &made), made);
    count_ = batch.count, n_ = batch.n;
    return made;
  }
  [[nodiscard]] hone_report solve(const systems &batch, hone_batch_result *r,
                                  const hone_options &o = options()) {
    hone_report made = HONE_REPORT_INIT;
    detail::taken(calls::solve_with(handle_.get(), &batch, &o, r, &made), made);
    return made;
  }

private:
  struct destroy {
    void operator()(handle *s) const { calls::destroy(&s); }
  };
  std::unique_ptr<handle, destroy> handle_; /* empty once moved from */
  int64_t count_ = -1, n_ = 0; /* of the matrices; -1: there are none */
};

using batch_solver = basic_batch_solver<double>;
using complex_batch_solver = basic_batch_solver<std::complex<double>>;

/** Solves count systems: a has n x n numbers of each, b and x n x nrhs. With
    determinants the results have those too. */
[[nodiscard]] inline batch_solution
batch(int64_t count, const std::vector<double> &a, const std::vector<double> &b,
      const hone_options &o = options(), bool determinants = false) {
  return detail::many(detail::matrices(count, a, determinants), b, o);
}
template <int = 0>
[[nodiscard]] complex_batch_solution
batch(int64_t count, const std::vector<std::complex<double>> &a,
      const std::vector<std::complex<double>> &b,
      const hone_options &o = options(), bool determinants = false) {
  return detail::many(detail::matrices(count, a, determinants), b, o);
}
} // namespace hone
#endif
