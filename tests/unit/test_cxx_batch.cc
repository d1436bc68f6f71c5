/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_batch.hpp: many systems in one call, and their factors kept. */
#include "ct.h"
#include "cxx_system.h"

#include <cmath>
#include <type_traits>
#include <utility>

using namespace cxx_system;

namespace {

/* Does factor of a solver S of batches accept a V? */
template <typename V, typename S = hone::batch_solver>
auto factors_all(int)
    -> decltype(std::declval<S &>().factor(1, std::declval<V>()),
                std::true_type());
template <typename V, typename S = hone::batch_solver>
std::false_type factors_all(...);

} // namespace

TEST(cxx_batch, a_batch_has_a_result_for_each_system) {
  const std::vector<double> a = {2, 1, 1, 3, 0, 2, 1, 0, 4, 0, 0, 5};
  const std::vector<double> b = {3, 5, 2, 1, 1, 2, 0, 2, 4, 5, 8, 15};
  const hone::batch_solution s = hone::batch(3, a, b);
  CHECK(s.accepted());
  CHECK_EQ_INT(s.results.size(), 3);
  CHECK_EQ_INT(s.report.nrhs, 2);
  CHECK_EQ_INT(s.report.accepted, 6);
  const double want[] = {0.8, 1.4, 1, 0, 1, 1, 1, 0, 1, 1, 2, 3};
  for (std::size_t i = 0; i < 12; i++)
    CHECK_NEAR(s.x[i], want[i], 1e-15);
  for (const hone_batch_result &r : s.results) {
    CHECK_EQ_INT(r.status, HONE_OK);
    CHECK_LE(r.backward_error, 4.5e-16);
    CHECK(std::isnan(r.log_abs_det));
  }
  const auto with = hone::batch(3, a, b, hone::options(), true);
  CHECK_NEAR(std::exp(with.results[0].log_abs_det), 5.0, 1e-14);
  CHECK_NEAR(with.results[1].det_re, -1.0, 0.0);
}

TEST(cxx_batch, a_system_that_fails_leaves_the_others_of_a_batch_alone) {
  const std::vector<double> a = {2, 1, 1, 3, 0, 0, 0, 0, 4, 0, 0, 5};
  const std::vector<double> b = {3, 5, 1, 1, 4, 5};
  const hone::batch_solution s = hone::batch(3, a, b);
  CHECK(!s.accepted());
  CHECK_EQ_INT(s.results[0].status, HONE_OK);
  CHECK_EQ_INT(s.results[1].status, HONE_SINGULAR);
  CHECK(std::isnan(s.x[2]) && std::isnan(s.x[3]));
  CHECK_NEAR(s.x[1], 1.4, 1e-15);
  CHECK_NEAR(s.x[5], 1.0, 1e-15);
  try {
    (void)s.value();
    CHECK(false);
  } catch (const hone::error &e) {
    CHECK_EQ_INT(e.status(), HONE_SINGULAR);
    CHECK_CONTAINS(e.what(), "system 1 of 3");
  }
}

TEST(cxx_batch, a_batch_of_complex_systems_takes_options) {
  complexes a = z2, b = {2.0 + i1 * 2.0, 3.0 + i1 * 2.0};
  for (const complex &v : z2)
    a.push_back(i1 * v);
  b.insert(b.end(), {1.0, i1});
  hone::options o;
  for (o.trans = HONE_NO_TRANS; o.trans <= HONE_CONJ_TRANS; o.trans++) {
    const complexes x = hone::batch(2, a, b, o).value();
    for (int k = 0; k < 2; k++)
      CHECK_LE(residual({a.begin() + 4 * k, a.begin() + 4 * k + 4}, o.trans,
                        {x.begin() + 2 * k, x.begin() + 2 * k + 2},
                        {b.begin() + 2 * k, b.begin() + 2 * k + 2}),
               1e-14);
  }
  const auto real = hone::batch(1, {2, 1, 1, 3}, {3, 5});
  CHECK((std::is_same_v<decltype(real), const hone::batch_solution>));
}

TEST(cxx_batch, a_batch_that_is_refused_throws) {
  CHECK_EQ_INT(thrown([] { (void)hone::batch(3, a2, b2); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { (void)hone::batch(-1, a2, b2); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { (void)hone::batch(-1, {}, {}); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] {
                 (void)hone::batch(2, {1, 2, 3}, b2);
               }),
               HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] { (void)hone::batch(0, a2, b2); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] {
                 (void)hone::batch(1, a2, {1, 2, 3});
               }),
               HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([] {
                 (void)hone::batch(2, {1, 2}, {1, 2, 3});
               }),
               HONE_BAD_SIZE);
  hone::options o;
  o.trans = 99;
  CHECK_EQ_INT(thrown([&] { (void)hone::batch(1, a2, b2, o); }),
               HONE_BAD_OPTION);
  CHECK(hone::batch(0, {}, {}).accepted());
  CHECK(hone::batch(5, {}, {}).accepted());
  CHECK(hone::batch(2, {1, 2}, {}).accepted());
}

TEST(cxx_batch, a_batch_solver_solves_as_often_as_asked) {
  const std::vector<double> a = {2, 1, 1, 3, 0, 2, 1, 0, 4, 0, 0, 5};
  const std::vector<double> b = {3, 5, 2, 1, 1, 2, 0, 2, 4, 5, 8, 15};
  const std::vector<double> one = {2, 1, 0, 2, 8, 15};
  hone::batch_solver solver;
  const hone::batch_factors f = solver.factor(3, a);
  CHECK(f.accepted());
  CHECK_EQ_INT(f.results.size(), 3);
  for (const hone_batch_result &r : f.results) {
    CHECK_EQ_INT(r.status, HONE_OK);
    CHECK(r.rcond > 0.1 && std::isnan(r.log_abs_det));
  }
  for (int turn = 0; turn < 2; turn++) {
    const hone::batch_solution s = solver.solve(b);
    const double want[] = {0.8, 1.4, 1, 0, 1, 1, 1, 0, 1, 1, 2, 3};
    for (std::size_t i = 0; i < 12; i++)
      CHECK_NEAR(s.value()[i], want[i], 1e-15);
    CHECK_EQ_INT(s.results.size(), 3);
    CHECK_EQ_INT(s.report.accepted, 6);
    for (const hone_batch_result &r : s.results)
      CHECK_LE(r.backward_error, 4.5e-16);
    const std::vector<double> x = solver.solve(one).value();
    CHECK_EQ_INT(x.size(), 6);
    CHECK_NEAR(x[5], 3.0, 1e-15);
  }
  const auto with = solver.factor(3, a, true);
  CHECK_NEAR(std::exp(with.results[0].log_abs_det), 5.0, 1e-14);
  CHECK_NEAR(with.results[1].det_re, -1.0, 0.0);
}

TEST(cxx_batch, a_batch_solver_moves_and_borrows_no_temporary) {
  using vector = std::vector<double>;
  CHECK(!std::is_copy_constructible_v<hone::batch_solver>);
  CHECK(!std::is_copy_assignable_v<hone::complex_batch_solver>);
  CHECK(std::is_nothrow_move_constructible_v<hone::batch_solver>);
  CHECK(std::is_nothrow_move_assignable_v<hone::complex_batch_solver>);
  CHECK(decltype(factors_all<const vector &>(0))::value);
  CHECK(!decltype(factors_all<vector>(0))::value);
  CHECK(
      !decltype(factors_all<complexes, hone::complex_batch_solver>(0))::value);
  hone::batch_solver first, second;
  (void)first.factor(1, a2);
  second = std::move(first);
  CHECK_NEAR(second.solve(b2).value()[0], 0.8, 1e-15);
  const hone::batch_solver third(std::move(second));
  CHECK_EQ_INT(thrown([&] { (void)second.solve(b2); }), HONE_NULL_POINTER);
}

TEST(cxx_batch, a_batch_solver_keeps_the_errors_of_single_matrices) {
  const std::vector<double> a = {2, 1, 1, 3, 0, 0, 0, 0, 4, 0, 0, 5};
  const std::vector<double> b = {3, 5, 1, 1, 4, 5};
  hone::batch_solver solver;
  const hone::batch_factors f = solver.factor(3, a);
  CHECK(!f.accepted());
  CHECK_EQ_INT(f.results[1].status, HONE_SINGULAR);
  CHECK_EQ_INT(f.report.status, HONE_SINGULAR);
  const hone::batch_solution s = solver.solve(b);
  CHECK_EQ_INT(s.results[1].status, HONE_SINGULAR);
  CHECK(std::isnan(s.x[2]) && std::isnan(s.x[3]));
  CHECK_NEAR(s.x[1], 1.4, 1e-15);
  CHECK_NEAR(s.x[5], 1.0, 1e-15);
  CHECK_EQ_INT(thrown([&] { (void)s.value(); }), HONE_SINGULAR);
}

TEST(cxx_batch, a_batch_solver_of_complex_matrices_has_one_trans) {
  complexes a = z2, b = {2.0 + i1 * 2.0, 3.0 + i1 * 2.0};
  for (const complex &v : z2)
    a.push_back(i1 * v);
  b.insert(b.end(), {1.0, i1});
  hone::options o, other;
  other.deadline_s = 1e-9;
  for (o.trans = HONE_NO_TRANS; o.trans <= HONE_CONJ_TRANS; o.trans++) {
    hone::complex_batch_solver solver(o);
    (void)solver.factor(2, a);
    const complexes x = solver.solve(b).value();
    for (int k = 0; k < 2; k++)
      CHECK_LE(residual({a.begin() + 4 * k, a.begin() + 4 * k + 4}, o.trans,
                        {x.begin() + 2 * k, x.begin() + 2 * k + 2},
                        {b.begin() + 2 * k, b.begin() + 2 * k + 2}),
               1e-14);
    CHECK_EQ_INT(solver.solve(b, other).report.status, HONE_CANCELLED);
  }
}

TEST(cxx_batch, a_batch_solver_throws_what_is_refused_and_keeps_what_it_has) {
  const std::vector<double> three = {1, 2, 3}, none;
  hone::options o;
  hone::batch_solver solver;
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(b2); }), HONE_NOT_FACTORED);
  (void)solver.factor(1, a2);
  CHECK_EQ_INT(thrown([&] { (void)solver.factor(1, three); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)solver.factor(-1, a2); }), HONE_BAD_SIZE);
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(three); }), HONE_BAD_SIZE);
  hone_batch systems = HONE_BATCH_INIT;
  systems.count = 3, systems.n = 2, systems.a = a2.data(), systems.lda = 1;
  CHECK_EQ_INT(thrown([&] { (void)solver.factor(systems, nullptr); }),
               HONE_BAD_LEADING_DIMENSION);
  CHECK_NEAR(solver.solve(b2).value()[1], 1.4, 1e-15);
  CHECK(solver.factor(0, none).accepted() && solver.solve(none).accepted());
  CHECK(solver.factor(2, none).accepted() && solver.solve(none).accepted());
  o.trans = 99;
  CHECK_EQ_INT(thrown([&] { hone::batch_solver with(o); }), HONE_BAD_OPTION);
}

TEST(cxx_batch, a_batch_solver_that_another_call_uses_throws) {
  struct use {
    hone::batch_solver solver;
    int status;
  } one = {hone::batch_solver(), HONE_OK};
  (void)one.solver.factor(1, a2);
  hone::options o;
  o.progress_user = &one;
  o.progress = [](void *user, const hone_progress *) {
    use &u = *static_cast<use *>(user);
    u.status = thrown([&] { (void)u.solver.solve(b2); });
    return 0;
  };
  CHECK(one.solver.solve(b2, o).accepted());
  CHECK_EQ_INT(one.status, HONE_BUSY);
}

TEST(cxx_batch, a_batch_solver_takes_systems_that_lie_otherwise) {
  const double a[] = {2, 1, 9, 1, 3, 9, 4}, b[] = {3, 5, 8};
  const int64_t orders[] = {2, 1};
  const double *const matrices[] = {a, a + 6}, *const sides[] = {b, b + 2};
  double x[3], *const solutions[] = {x, x + 2};
  hone_batch_result results[2];
  hone_batch systems = HONE_BATCH_INIT;
  systems.count = 2, systems.orders = orders, systems.nrhs = 1;
  systems.a_list = matrices, systems.lda = 3;
  systems.b_list = sides, systems.ldb = 2;
  systems.x_list = solutions, systems.ldx = 2;
  hone::batch_solver solver;
  CHECK_EQ_INT(solver.factor(systems, nullptr).status, HONE_OK);
  CHECK_EQ_INT(solver.solve(systems, results).status, HONE_OK);
  CHECK_NEAR(x[0], 0.8, 1e-15);
  CHECK_NEAR(x[2], 2.0, 0.0);
  CHECK_EQ_INT(results[1].status, HONE_OK);
  CHECK_EQ_INT(thrown([&] { (void)solver.solve(b2); }), HONE_BAD_SIZE);
}
