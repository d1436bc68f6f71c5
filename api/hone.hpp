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
 * Status < 0 throws hone::error. Status > 0 does not: x is there, weaker than
 * asked; accepted() is false, and value() throws then.
 */
#ifndef HONE_HPP
#define HONE_HPP

#include "hone.h"

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
};

/** The x of a call, column by column, and what is known of it. */
struct solution {
  std::vector<double> x;
  hone_report report = HONE_REPORT_INIT;
  bool accepted() const noexcept { return report.status == HONE_OK; }
  /** x if it is accepted, else throws. */
  std::vector<double> value() const {
    return accepted() ? x : throw error(report.status, report);
  }
};

namespace detail { /* sizes of vectors against n */
inline int64_t ld(int64_t n) { return n > 1 ? n : 1; }
inline int64_t columns(const std::vector<double> &b, int64_t n) {
  return static_cast<int64_t>(b.size()) / ld(n);
}
inline std::vector<double> like(const std::vector<double> &b, int64_t n) {
  const bool fits = columns(b, n) * n == static_cast<int64_t>(b.size());
  return fits ? std::vector<double>(b.size()) : throw error(HONE_BAD_SIZE);
}
inline const double *square(const std::vector<double> &a, int64_t n) {
  const bool fits = static_cast<int64_t>(a.size()) == n * n;
  return fits ? a.data() : throw error(HONE_BAD_SIZE);
}
} // namespace detail

/** A matrix of order n with its factors; see hone_solver. Moves, no copies. */
class solver {
public:
  explicit solver(int64_t n, const hone_options &o = options()) : n_(n) {
    hone_solver *made = nullptr;
    if (const int status = hone_solver_create(&made, n, &o))
      throw error(status);
    handle_.reset(made);
  }
  int64_t order() const noexcept { return n_; }
  /** a is borrowed: it stays, unchanged, until the next factor or update. */
  hone_report factor(const double *a, int64_t lda) {
    hone_report r = HONE_REPORT_INIT;
    return checked(hone_solver_factor(handle_.get(), a, lda, &r), r);
  }
  hone_report update(const double *a, int64_t lda) {
    hone_report r = HONE_REPORT_INIT;
    return checked(hone_solver_update(handle_.get(), a, lda, &r), r);
  }
  hone_report factor(const std::vector<double> &a) {
    return factor(detail::square(a, n_), detail::ld(n_));
  }
  hone_report update(const std::vector<double> &a) {
    return update(detail::square(a, n_), detail::ld(n_));
  }
  hone_report factor(std::vector<double> &&) = delete; /* would not stay */
  hone_report update(std::vector<double> &&) = delete;

  /** The caller looks at report.status: 0 accepted, > 0 weaker than asked.
      o: trans, x0, columns and error_bounds of this solve; see
      hone_options. */
  [[nodiscard]] hone_report solve(int64_t nrhs, const double *b, int64_t ldb,
                                  double *x, int64_t ldx,
                                  const hone_options &o = options()) {
    hone_report r = HONE_REPORT_INIT;
    int status = hone_solver_solve(handle_.get(), nrhs, b, ldb, x, ldx, &o, &r);
    return checked(status, r);
  }
  /** b: any number of right-hand sides, one after the other. */
  [[nodiscard]] solution solve(const std::vector<double> &b,
                               const hone_options &o = options()) {
    solution s{detail::like(b, n_)};
    s.report = solve(detail::columns(b, n_), b.data(), detail::ld(n_),
                     s.x.data(), detail::ld(n_), o);
    return s;
  }

private:
  static hone_report checked(int status, const hone_report &report) {
    return status < 0 ? throw error(status, report) : report;
  }
  struct destroy {
    void operator()(hone_solver *s) const { hone_solver_destroy(&s); }
  };
  std::unique_ptr<hone_solver, destroy> handle_; /* empty once moved from */
  int64_t n_;
};

/** Once: A (its order is the root of its size), b as in solver::solve. */
[[nodiscard]] inline solution solve(const std::vector<double> &a,
                                    const std::vector<double> &b,
                                    const hone_options &o = options()) {
  int64_t n = 0;
  for (const auto size = static_cast<int64_t>(a.size()); n * n < size;)
    n++;
  solution s{detail::like(b, n)};
  const int status = hone_solve(n, detail::columns(b, n), detail::square(a, n),
                                detail::ld(n), b.data(), detail::ld(n),
                                s.x.data(), detail::ld(n), &o, &s.report);
  return status < 0 ? throw error(status, s.report) : s;
}
} // namespace hone
#endif
