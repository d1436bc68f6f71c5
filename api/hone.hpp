/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone.hpp
 * Hone for C++17: a solver that frees itself, errors as exceptions that carry
 * the status and the report, std::vector where sizes can be checked, pointers
 * where not. Header only, over hone.h, which says what everything means.
 *
 *     std::vector<double> a = {2, 1, 1, 3}, b = {3, 5};   // A by columns
 *     hone::solution s = hone::solve(a, b);
 *     if (!s.accepted()) ...       // s.x is the best found: see s.report
 *
 * A and b may both be of std::complex<double>: hone::solve then returns a
 * hone::complex_solution, and hone::complex_solver keeps the factors.
 *
 * Status < 0 throws hone::error. Status > 0 does not: x is there, weaker than
 * asked; accepted() is false, and value() throws then.
 */
#ifndef HONE_HPP
#define HONE_HPP

#include "hone.h"

#include <complex>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hone {
/** A status that is not HONE_OK; what() is its text, and where and why. */
struct error : std::runtime_error {
  hone_report report;
  explicit error(int status, const hone_report &from = HONE_REPORT_INIT)
      : std::runtime_error(describe(status, from)), report(from) {
    report.status = status;
  }
  int status() const noexcept { return report.status; }
  static std::string describe(int status, const hone_report &from) {
    std::string text = hone_status_text(status);
    if (from.n > 0 && from.bad_row >= 0)
      text += "; row " + std::to_string(from.bad_row);
    if (from.n > 0 && from.bad_col >= 0)
      text += "; column " + std::to_string(from.bad_col);
    return from.reason[0] ? text + "; " + from.reason : text;
  }
};

/** Options with every default set. The progress callback must not throw. */
struct options : hone_options {
  options() : hone_options(HONE_OPTIONS_INIT) {}
  /** Sets x0, which is borrowed, of a real or of a complex system. */
  void start(const double *x, int64_t ld) { x0 = x, ldx0 = ld; }
  void start(const std::complex<double> *x, int64_t ld) {
    start(reinterpret_cast<const double *>(x), ld);
  }
};

/** The x of a call, column by column, and what is known of it. */
template <class T> struct basic_solution {
  std::vector<T> x;
  hone_report report = HONE_REPORT_INIT;
  bool accepted() const noexcept { return report.status == HONE_OK; }
  /** x if it is accepted, else throws. */
  std::vector<T> value() const {
    return accepted() ? x : throw error(report.status, report);
  }
};

using solution = basic_solution<double>;
using complex_solution = basic_solution<std::complex<double>>;

namespace detail { /* the calls of hone.h, and sizes of vectors against n */
template <class T> struct calls;
template <> struct calls<double> {
  using handle = hone_solver;
  static constexpr auto *solve = hone_solve;
  static constexpr auto *create = hone_solver_create;
  static constexpr auto *factor = hone_solver_factor;
  static constexpr auto *update = hone_solver_update;
  static constexpr auto *solve_with = hone_solver_solve;
  static constexpr auto *destroy = hone_solver_destroy;
};
template <> struct calls<std::complex<double>> {
  using handle = hone_z_solver;
  static constexpr auto *solve = hone_z_solve;
  static constexpr auto *create = hone_z_solver_create;
  static constexpr auto *factor = hone_z_solver_factor;
  static constexpr auto *update = hone_z_solver_update;
  static constexpr auto *solve_with = hone_z_solver_solve;
  static constexpr auto *destroy = hone_z_solver_destroy;
};
inline int64_t ld(int64_t n) { return n > 1 ? n : 1; }
template <class T> int64_t columns(const std::vector<T> &b, int64_t n) {
  return static_cast<int64_t>(b.size()) / ld(n);
}
template <class T> std::vector<T> like(const std::vector<T> &b, int64_t n) {
  const bool fits = columns(b, n) * n == static_cast<int64_t>(b.size());
  return fits ? std::vector<T>(b.size()) : throw error(HONE_BAD_SIZE);
}
template <class T> const T *square(const std::vector<T> &a, int64_t n) {
  const bool fits = static_cast<int64_t>(a.size()) == n * n;
  return fits ? a.data() : throw error(HONE_BAD_SIZE);
}
template <class T>
basic_solution<T> once(const std::vector<T> &a, const std::vector<T> &b,
                       const hone_options &o) {
  int64_t n = 0;
  for (const auto size = static_cast<int64_t>(a.size()); n * n < size;)
    n++;
  basic_solution<T> s{like(b, n)};
  const int status =
      calls<T>::solve(n, columns(b, n), square(a, n), ld(n), b.data(), ld(n),
                      s.x.data(), ld(n), &o, &s.report);
  return status < 0 ? throw error(status, s.report) : s;
}
} // namespace detail

/** A matrix of order n with its factors; see hone_solver. Moves, no copies. */
template <class T> class basic_solver {
  using calls = detail::calls<T>;
  using handle = typename calls::handle;

public:
  explicit basic_solver(int64_t n, const hone_options &o = options()) : n_(n) {
    handle *made = nullptr;
    if (const int status = calls::create(&made, n, &o))
      throw error(status);
    handle_.reset(made);
  }
  int64_t order() const noexcept { return n_; }
  /** a is borrowed: it stays, unchanged, until the next factor or update. */
  hone_report factor(const T *a, int64_t lda) {
    hone_report r = HONE_REPORT_INIT;
    return checked(calls::factor(handle_.get(), a, lda, &r), r);
  }
  hone_report update(const T *a, int64_t lda) {
    hone_report r = HONE_REPORT_INIT;
    return checked(calls::update(handle_.get(), a, lda, &r), r);
  }
  hone_report factor(const std::vector<T> &a) {
    return factor(detail::square(a, n_), detail::ld(n_));
  }
  hone_report update(const std::vector<T> &a) {
    return update(detail::square(a, n_), detail::ld(n_));
  }
  hone_report factor(std::vector<T> &&) = delete; /* would not stay */
  hone_report update(std::vector<T> &&) = delete;

  /** The caller looks at report.status: 0 accepted, > 0 weaker than asked.
      o: trans, x0, columns and error_bounds of this solve; see
      hone_options. */
  [[nodiscard]] hone_report solve(int64_t nrhs, const T *b, int64_t ldb, T *x,
                                  int64_t ldx,
                                  const hone_options &o = options()) {
    hone_report r = HONE_REPORT_INIT;
    int status = calls::solve_with(handle_.get(), nrhs, b, ldb, x, ldx, &o, &r);
    return checked(status, r);
  }
  /** b: any number of right-hand sides, one after the other. */
  [[nodiscard]] basic_solution<T> solve(const std::vector<T> &b,
                                        const hone_options &o = options()) {
    basic_solution<T> s{detail::like(b, n_)};
    s.report = solve(detail::columns(b, n_), b.data(), detail::ld(n_),
                     s.x.data(), detail::ld(n_), o);
    return s;
  }

private:
  static hone_report checked(int status, const hone_report &report) {
    return status < 0 ? throw error(status, report) : report;
  }
  struct destroy {
    void operator()(handle *s) const { calls::destroy(&s); }
  };
  std::unique_ptr<handle, destroy> handle_; /* empty once moved from */
  int64_t n_;
};

using solver = basic_solver<double>;
using complex_solver = basic_solver<std::complex<double>>;

/** Once: A (its order is the root of its size), b as in solver::solve. The
    complex one is a template, so that numbers in braces are real if they can
    be. */
[[nodiscard]] inline solution solve(const std::vector<double> &a,
                                    const std::vector<double> &b,
                                    const hone_options &o = options()) {
  return detail::once(a, b, o);
}
template <int = 0>
[[nodiscard]] complex_solution solve(const std::vector<std::complex<double>> &a,
                                     const std::vector<std::complex<double>> &b,
                                     const hone_options &o = options()) {
  return detail::once(a, b, o);
}
} // namespace hone

#include "hone_batch.hpp" /* hone::batch, batch_solver: many systems a call */
#endif
