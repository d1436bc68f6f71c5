/* SPDX-License-Identifier: BSD-3-Clause */
/* hone.hpp: the C++ interface over hone.h. */
#include "api/hone.hpp"
#include "api/hone_tuning.h"

#include "ct.h"
#include "cxx_system.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

using namespace cxx_system;

namespace {

/* A matrix of order n with a strong diagonal. */
std::vector<double> matrix(int64_t n) {
  std::vector<double> a(static_cast<std::size_t>(n * n));
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[static_cast<std::size_t>(i + j * n)] =
          (i == j ? 2.0 : 1.0 / static_cast<double>(1 + i + 2 * j));
  return a;
}

/* Do factor and update of a solver S accept a V? */
template <typename V, typename S = hone::solver>
auto factors(int) -> decltype(std::declval<S &>().factor(std::declval<V>()),
                              std::true_type());
template <typename V, typename S = hone::solver> std::false_type factors(...);
template <typename V, typename S = hone::solver>
auto updates(int) -> decltype(std::declval<S &>().update(std::declval<V>()),
                              std::true_type());
template <typename V, typename S = hone::solver> std::false_type updates(...);

} // namespace

TEST(cxx, solver_moves_and_is_not_copied) {
  CHECK(!std::is_copy_constructible_v<hone::solver>);
  CHECK(!std::is_copy_assignable_v<hone::solver>);
  CHECK(std::is_nothrow_move_constructible_v<hone::solver>);
  CHECK(std::is_nothrow_move_assignable_v<hone::solver>);
  hone::solver first(2), second(3);
  first.factor(a2);
  second = std::move(first);
  CHECK_EQ_INT(second.order(), 2);
  CHECK_NEAR(second.solve(b2).value()[0], 0.8, 1e-15);
}

TEST(cxx, a_solver_that_was_moved_from_is_an_error) {
  hone::solver from(2);
  from.factor(a2);
  const hone::solver to(std::move(from));
  CHECK_EQ_INT(thrown([&] { (void)from.solve(b2); }), HONE_NULL_POINTER);
}

TEST(cxx, a_temporary_matrix_cannot_be_borrowed) {
  using vector = std::vector<double>;
  CHECK(decltype(factors<vector &>(0))::value);
  CHECK(decltype(updates<const vector &>(0))::value);
  CHECK(!decltype(factors<vector>(0))::value);
  CHECK(!decltype(updates<vector>(0))::value);
}

TEST(cxx, one_call_solves) {
  const hone::solution s = hone::solve(a2, b2);
  CHECK(s.accepted());
  CHECK_NEAR(s.x[0], 0.8, 1e-15);
  CHECK_NEAR(s.x[1], 1.4, 1e-15);
  CHECK_LE(s.report.backward_error, 4.5e-16);
}

TEST(cxx, options_reach_the_library) {
  hone::options o;
  o.trans = HONE_TRANS;
  const std::vector<double> a = {1, 0, 1, 1}; /* [1 1; 0 1] */
  const hone::solution s = hone::solve(a, {1, 2}, o);
  CHECK_NEAR(s.x[0], 1.0, 1e-15);
  CHECK_NEAR(s.x[1], 1.0, 1e-15);
  o.criterion = 99;
  CHECK_EQ_INT(thrown([&] { (void)hone::solve(a2, b2, o); }), HONE_BAD_OPTION);
  CHECK_EQ_INT(thrown([&] { hone::solver(2, o); }), HONE_BAD_OPTION);
}

TEST(cxx, many_right_hand_sides_come_back_column_by_column) {
  hone::solver solver(2);
  solver.factor(a2);
  const hone::solution s = solver.solve({3, 5, 2, 1});
  CHECK_EQ_INT(s.report.nrhs, 2);
  CHECK_EQ_INT(s.x.size(), 4);
  CHECK_NEAR(s.x[2], 1.0, 1e-15);
  CHECK_NEAR(s.x[3], 0.0, 1e-15);
}

TEST(cxx, an_update_takes_the_nearby_matrix) {
  const int64_t n = 60;
  std::vector<double> a = matrix(n), near = a, b(static_cast<std::size_t>(n));
  for (double &v : near)
    v *= 1.0 + 1e-9;
  for (std::size_t i = 0; i < b.size(); i++)
    b[i] = static_cast<double>(i + 1);
  hone::solver solver(n);
  solver.factor(a);
  const std::vector<double> before = solver.solve(b).value();
  solver.update(near);
  const std::vector<double> after = solver.solve(b).value();
  CHECK_NEAR(after[0] * (1.0 + 1e-9), before[0], 1e-13 * std::fabs(before[0]));
  CHECK(after[0] < before[0] || after[0] > before[0]);
}

TEST(cxx, pointers_take_leading_dimensions) {
  const double a[] = {2, 1, 9, 1, 3, 9}, b[] = {3, 5};
  double x[2] = {0, 0};
  hone::solver solver(2);
  solver.factor(a, 3);
  CHECK_EQ_INT(solver.solve(1, b, 2, x, 2).status, HONE_OK);
  CHECK_NEAR(x[0], 0.8, 1e-15);
}

TEST(cxx, sizes_that_do_not_fit_are_errors) {
  hone::solver solver(2);
  CHECK_EQ_INT(thrown([] { (void)hone::solve({1, 2, 3}, b2); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { (void)hone::solve(a2, {1, 2, 3}); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { (void)hone::solve({}, {1}); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { hone::solver(-1); }), HONE_BAD_SIZE);
  const std::vector<double> three = {1, 2, 3};
  CHECK_EQ_INT(thrown([&] { solver.factor(three); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { solver.update(three); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(three); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(b2); }), HONE_NOT_FACTORED);
}

TEST(cxx, an_empty_system_is_solved) {
  CHECK(hone::solve({}, {}).accepted());
  CHECK(hone::solve(a2, {}).accepted());
  hone::solver none(0);
  const std::vector<double> empty;
  none.factor(empty);
  CHECK(none.solve(empty).accepted());
}

TEST(cxx, an_error_carries_text_position_and_report) {
  std::vector<double> a = a2;
  a[2] = std::numeric_limits<double>::quiet_NaN(); /* row 0, column 1 */
  try {
    (void)hone::solve(a, b2);
    CHECK(false);
  } catch (const hone::error &e) {
    CHECK_EQ_INT(e.status(), HONE_NOT_FINITE_A);
    CHECK_EQ_INT(e.report.n, 2);
    CHECK_CONTAINS(e.what(), hone_status_text(HONE_NOT_FINITE_A));
    CHECK_CONTAINS(e.what(), "row 0");
    CHECK_CONTAINS(e.what(), "column 1");
  }
}

TEST(cxx, an_x_that_was_not_accepted_throws_only_when_it_is_used) {
  hone::options o;
  o.tolerance = 1e-300;
  const int64_t n = 30;
  const std::vector<double> b(static_cast<std::size_t>(n), 1.0 / 3.0);
  const hone::solution s = hone::solve(matrix(n), b, o);
  CHECK_EQ_INT(s.report.status, HONE_NOT_CONVERGED);
  CHECK(!s.accepted());
  CHECK_EQ_INT(s.x.size(), n);
  CHECK_EQ_INT(thrown([&] { (void)s.value(); }), HONE_NOT_CONVERGED);
}

/* This file is compiled with -Wshadow -Werror: the macros declare no name that
   a program might use. */
TEST(cxx, initial_values_shadow_nothing) {
  const double initial = 1.0;
  const hone_options o = HONE_OPTIONS_INIT;
  const hone_report r = HONE_REPORT_INIT;
  const hone_tuning t = HONE_TUNING_INIT;
  CHECK_NEAR(initial, 1.0, 0.0);
  CHECK_EQ_INT(o.struct_size, sizeof o);
  CHECK_EQ_INT(o.column_size, sizeof(hone_column));
  CHECK_EQ_INT(r.struct_size, sizeof r);
  CHECK_EQ_INT(t.struct_size, sizeof t);
}

/* hone_complex is std::complex<double> here, and double _Complex in the
   library. */
TEST(cxx, complex_systems_have_the_numbers_of_the_language) {
  const complexes b = {2.0 + i1 * 2.0, 3.0 + i1 * 2.0};
  complexes x(2);
  hone::options o;
  for (o.trans = HONE_NO_TRANS; o.trans <= HONE_CONJ_TRANS; o.trans++) {
    CHECK_EQ_INT(
        hone_z_solve(2, 1, z2.data(), 2, b.data(), 2, x.data(), 2, &o, nullptr),
        HONE_OK);
    CHECK_LE(residual(z2, o.trans, x, b), 1e-14);
    CHECK_LE(residual(z2, o.trans, hone::solve(z2, b, o).value(), b), 1e-14);
  }
}

TEST(cxx, a_complex_solver_factors_once_and_takes_a_nearby_matrix) {
  const std::size_t n = 60;
  const std::vector<double> re = matrix(n);
  complexes a(n * n), b(n), both(2 * n), near;
  for (std::size_t k = 0; k < a.size(); k++)
    a[k] = re[k] * std::polar(1.0, static_cast<double>(k % 97));
  near = a;
  for (complex &v : near)
    v *= 1.0 + 1e-9 * i1;
  for (std::size_t k = 0; k < n; k++)
    b[k] = both[k] = both[k + n] = complex(static_cast<double>(k), 1.0);
  hone::complex_solver solver(static_cast<int64_t>(n));
  hone::options o;
  solver.factor(a);
  for (o.trans = HONE_NO_TRANS; o.trans <= HONE_CONJ_TRANS; o.trans++)
    CHECK_LE(residual(a, o.trans, solver.solve(b, o).value(), b), 1e-12);
  CHECK_EQ_INT(solver.solve(both).report.nrhs, 2);
  const complexes before = solver.solve(b).value();
  solver.update(near);
  const hone::complex_solution with_old_factors = solver.solve(b);
  CHECK(with_old_factors.report.iterations > 0);
  const complexes after = with_old_factors.value();
  CHECK_LE(std::abs(after[0] * (1.0 + 1e-9 * i1) - before[0]), 1e-13);
  CHECK_LE(residual(near, HONE_NO_TRANS, after, b), 1e-12);
}

TEST(cxx, a_complex_system_starts_from_a_complex_x) {
  hone::options o;
  const complexes b = {2.0, 3.0}, nan(2, {0.0, std::nan("")});
  const complexes x = hone::solve(z2, b).value();
  o.start(x.data(), 2);
  CHECK_LE(residual(z2, HONE_NO_TRANS, hone::solve(z2, b, o).value(), b),
           1e-14);
  o.start(nan.data(), 2);
  CHECK_EQ_INT(thrown([&] { (void)hone::solve(z2, b, o); }), HONE_NOT_FINITE_B);
}

TEST(cxx, complex_errors_are_those_of_real_systems) {
  hone::complex_solver solver(2), moved(std::move(solver));
  const complexes b = {2.0, 3.0}, three(3);
  complexes bad = z2;
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(b); }), HONE_NULL_POINTER);
  CHECK_EQ_INT(thrown([&] { (void)moved.solve(b); }), HONE_NOT_FACTORED);
  CHECK_EQ_INT(thrown([&] { moved.factor(three); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)hone::solve(three, b); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)hone::solve(complexes(4), b); }),
               HONE_SINGULAR);
  CHECK(!decltype(factors<complexes, hone::complex_solver>(0))::value);
  CHECK(!decltype(updates<complexes, hone::complex_solver>(0))::value);
  CHECK(decltype(updates<complexes &, hone::complex_solver>(0))::value);
  bad[2] = complex(0.0, std::nan("")); /* row 0, column 1 */
  try {
    (void)hone::solve(bad, b);
    CHECK(false);
  } catch (const hone::error &e) {
    CHECK_EQ_INT(e.status(), HONE_NOT_FINITE_A);
    CHECK_CONTAINS(e.what(), "column 1; A(0, 1) is NaN in its imaginary part");
  }
}

TEST(cxx, numbers_in_braces_are_complex_only_if_they_have_to_be) {
  const auto real = hone::solve({2, 1, 1, 3}, {3, 5});
  CHECK((std::is_same_v<decltype(real), const hone::solution>));
  CHECK_NEAR(real.value()[0], 0.8, 1e-15);
  const auto z = hone::solve({2.0 * i1, 1.0, 1.0, 3.0}, {1.0 + 2.0 * i1, 4.0});
  CHECK((std::is_same_v<decltype(z), const hone::complex_solution>));
  CHECK_LE(std::abs(z.value()[1] - 1.0), 1e-15);
}
