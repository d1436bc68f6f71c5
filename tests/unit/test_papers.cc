/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of bench_papers: blocked factorizations, the authors' refinement,
   |A - L U|, the published figures, the choice of matrices, cells and rows of
   tables. Whole sections are in test_papers_sections.cc. */
#include "tests/unit/test_papers.h"
#include "bench/papers/checks.h"
#include "bench/papers/crout_cpu.h"
#include "bench/papers/matrices.h"
#include "bench/papers/source.h"

namespace {

const double nan_value = std::nan("");

std::vector<float> singles(const std::vector<double> &a) {
  return std::vector<float>(a.begin(), a.end());
}

/* n x n with a strong diagonal; spd: also symmetric. */
std::vector<double> system_matrix(int64_t n, bool spd, double *b) {
  Systems s;
  if (!systems_allocate(&s, n, 1))
    abort();
  systems_fill(&s, spd ? SPD : UNIFORM, 3, 1);
  std::vector<double> a(s.a, s.a + n * n);
  if (b != nullptr)
    std::copy(s.b, s.b + n, b);
  systems_free(&s);
  return a;
}

/* ---- factorizations ------------------------------------------------------ */

/* Every variant, with incomplete last blocks, padding, and Cholesky's blocks on
   either processor. */
TEST(papers, blocked_factors_multiply_to_a) {
  for (int v = 0; v < VARIANTS; v++)
    for (int64_t n : {1, 7, 32, 50, 97})
      for (int64_t b : {1, 8, 32, 128})
        for (int64_t multiple : {1, 32}) {
          const Variant variant = static_cast<Variant>(v);
          const bool cholesky = is_cholesky(variant);
          const std::vector<float> a =
              singles(system_matrix(n, cholesky, nullptr));
          std::vector<float> f(a.size());
          auto place = host_place();
          ct_note("%s, n %d, b %d, padded to %d", variant_names[v], (int)n,
                  (int)b, (int)multiple);
          REQUIRE(place->load(n, a.data(), padded_to(n, multiple)));
          for (bool by_cpu : {true, false}) {
            if (!by_cpu && !cholesky)
              continue;
            REQUIRE(place->restore());
            REQUIRE(factor_blocked(place.get(), variant, b, by_cpu));
            REQUIRE(place->fetch({0, n, 0, n}, f.data()));
            CHECK_LE(factors_error(n, a.data(), f.data(),
                                   cholesky ? nullptr : place->pivots.data(),
                                   2),
                     2e-6);
          }
        }
}

TEST(papers, error_of_factors_shows_a_wrong_factor) {
  const int64_t n = 20;
  for (bool cholesky : {true, false}) {
    const std::vector<float> a = singles(system_matrix(n, cholesky, nullptr));
    std::vector<float> f(a.size());
    auto place = host_place();
    REQUIRE(place->load(n, a.data(), n));
    REQUIRE(place->vendor(cholesky));
    REQUIRE(place->fetch({0, n, 0, n}, f.data()));
    std::vector<int> pivots = place->pivots;
    const int *p = cholesky ? nullptr : pivots.data();
    CHECK_LE(factors_error(n, a.data(), f.data(), p, 3), 2e-6);
    f[3] += 0.25F; /* an entry of L */
    CHECK_LE(1e-3, factors_error(n, a.data(), f.data(), p, 3));
    f[3] = static_cast<float>(nan_value);
    CHECK(std::isnan(factors_error(n, a.data(), f.data(), p, 3)));
    f[3] = 0.0F;
    if (!cholesky) {
      std::swap(pivots[0], pivots[1]);
      CHECK_LE(1e-3, factors_error(n, a.data(), f.data(), p, 3));
    }
  }
}

TEST(papers, blocks_that_are_not_definite_or_singular_say_where) {
  const int64_t n = 40;
  std::vector<float> a = singles(system_matrix(n, true, nullptr));
  a[25 + 25 * n] = -1.0F;
  auto place = host_place();
  REQUIRE(place->load(n, a.data(), n));
  for (bool by_cpu : {true, false}) {
    REQUIRE(place->restore());
    CHECK(!factor_blocked(place.get(), CHOLESKY_LEFT, 16, by_cpu));
    CHECK_STR(place->why.c_str(), "not positive definite, column 25");
  }
  for (int64_t i = 0; i < n; i++)
    a[static_cast<size_t>(i + 30 * n)] = 0.0F;
  REQUIRE(place->load(n, a.data(), n));
  CHECK(!factor_blocked(place.get(), LU_RIGHT, 16, true));
  CHECK_STR(place->why.c_str(), "a pivot is zero, column 30");
}

/* ---- refinement ---------------------------------------------------------- */

TEST(papers, igual_refines_to_double) {
  enum { N = 120 };
  for (bool cholesky : {true, false}) {
    double b[N], x[N];
    const std::vector<double> a = system_matrix(N, cholesky, b);
    const std::vector<float> rounded = singles(a);
    std::vector<float> f(a.size());
    auto place = host_place();
    REQUIRE(place->load(N, rounded.data(), N));
    REQUIRE(place->vendor(cholesky));
    REQUIRE(place->fetch({0, N, 0, N}, f.data()));
    const int *p = cholesky ? nullptr : place->pivots.data();
    const Refined r = igual_refine(N, a.data(), f.data(), p, b, x);
    CHECK(r.stopped);
    CHECK_LE(3, r.iterations); /* at least one iteration, and two more */
    CHECK_LE(r.iterations, 7);
    CHECK_LE(backward_error(N, a.data(), b, x, 1), 1e-14);
    f[0] = static_cast<float>(nan_value); /* never counts as converged */
    const Refined bad = igual_refine(N, a.data(), f.data(), p, b, x);
    CHECK(!bad.stopped);
    CHECK_EQ_INT(bad.iterations, 30);
  }
}

/* A = 2 I: the first iteration finds r = 0, and two more follow. */
TEST(papers, igual_iterates_twice_more) {
  const double a[] = {2, 0, 0, 2}, b[] = {1, 3};
  const float f[] = {2, 0, 0, 2};
  const int pivots[] = {1, 2};
  double x[2];
  const Refined r = igual_refine(2, a, f, pivots, b, x);
  CHECK(r.stopped && x[0] == 0.5 && x[1] == 1.5);
  CHECK_EQ_INT(r.iterations, 3);
}

/* ---- max |A - L U| ------------------------------------------------------- */

template <class T> void defect_in(double rounding) {
  const int64_t n = 30;
  const std::vector<double> spd = system_matrix(n, true, nullptr);
  const std::vector<T> a(spd.begin(), spd.end());
  std::vector<T> z = a;
  if (sizeof(T) == 4)
    REQUIRE(hone_crout_cpu_s(n, reinterpret_cast<float *>(z.data()), n,
                             nullptr) == HONE_OK);
  else
    REQUIRE(hone_crout_cpu_d(n, reinterpret_cast<double *>(z.data()), n,
                             nullptr) == HONE_OK);
  CHECK_LE(largest_defect<T>(n, a.data(), z.data(), true, nullptr), rounding);
  std::vector<T> wrong = z;
  wrong[5 + 9 * n] += T(0.125);
  CHECK_LE(0.1, largest_defect<T>(n, a.data(), wrong.data(), true, nullptr));
  for (double bad : {nan_value, HUGE_VAL}) { /* NaN at every place */
    for (int64_t at : {int64_t(0), n - 1, n * n - 1, n * (n - 1)}) {
      wrong = z;
      wrong[static_cast<size_t>(at)] = static_cast<T>(bad);
      CHECK(std::isnan(
          largest_defect<T>(n, a.data(), wrong.data(), true, nullptr)));
    }
  }
}

TEST(papers, largest_defect_in_single) { defect_in<float>(1e-5); }
TEST(papers, largest_defect_in_double) { defect_in<double>(1e-14); }

/* A pivot as in LAPACK: L = [1; 1/2 1], U = [4 2; 0 3], rows exchanged. */
TEST(papers, largest_defect_follows_the_pivots) {
  const double a[] = {2, 4, 4, 2}, lu[] = {4, 0.5, 2, 3};
  const int64_t pivots[] = {2, 2}, none[] = {1, 2}, out[] = {3, 2};
  CHECK_EQ_INT(largest_defect<double>(2, a, lu, false, pivots) == 0.0, 1);
  CHECK_LE(1.0, largest_defect<double>(2, a, lu, false, none));
  CHECK(std::isnan(largest_defect<double>(2, a, lu, false, out)));
}

/* ---- the publications' figures ------------------------------------------- */

TEST(papers, figures_are_in_their_places) {
  CHECK_EQ_INT(igual_41().size(), 15);
  for (const Igual41 &r : igual_41()) {
    ct_note("b %d", (int)r.b);
    /* the published totals are the sums, except for their last digit */
    CHECK_NEAR(r.to_host + r.factor + r.to_device, r.total, 0.0031);
    CHECK_LE(30.0, r.gpu / r.total);
  }
  REQUIRE(igual_42(10240) != nullptr);
  CHECK_NEAR(igual_42(10240)->factor[0], 3.255, 0.0);
  CHECK_NEAR(igual_42(10240)->refine[1], 0.858, 0.0);
  CHECK_EQ_INT(igual_42(4096)->iterations[1], 4);
  CHECK(igual_42(4095) == nullptr);
  REQUIRE(cejka("Cejka10793") != nullptr);
  CHECK_NEAR(cejka("Cejka10793")->seconds[1][3], 419.1401, 0.0);
  CHECK_NEAR(cejka("494_bus")->seconds[0][0], 0.0292, 0.0);
  CHECK(cejka("Cejka512") == nullptr);
}

/* ---- cells, rows, time --------------------------------------------------- */

TEST(papers, cells_say_what_is_missing) {
  CHECK_STR(times_text({}).c_str(), "-");
  CHECK_STR(times_text({nan_value}).c_str(), "-");
  CHECK_STR(times_text({2.0}).c_str(), "2 (1 run)");
  CHECK_STR(times_text({2.0, 4.0}).c_str(), "3 (2 .. 4) (2 runs)");
  CHECK_STR(times_text({4.0, 2.0, 3.0}).c_str(), "3 (2 .. 4)");
  CHECK_STR(error_text(nan_value, true).c_str(), "NaN");
  CHECK_STR(error_text(nan_value, false).c_str(), "NaN");
  CHECK_STR(error_text(0.0, false).c_str(), "-");
  CHECK_STR(error_text(0.0, true).c_str(), "0");
  CHECK_STR(error_text(HUGE_VAL, true).c_str(), "Inf");
  CHECK_STR(row_text({"a|b", "c\nd", ""}).c_str(), "| a/b | c d |  |");
  CHECK_STR(rate_text(2e9, 1000.0).c_str(), "2"); /* GFLOP/s */
  CHECK_STR(rate_text(2e9, nan_value).c_str(), "-");
}

Way counting(int *calls, double ms, int fail_at) {
  Way w;
  w.m.name = "counting";
  w.m.time = [=](double *took, double *) {
    *took = ms + ++*calls;
    return std::string(*calls == fail_at ? "it broke" : "");
  };
  return w;
}

TEST(papers, turns_leave_the_first_one_out) {
  const Redirect err(stderr, "/dev/null");
  Papers papers;
  Share share(papers, 0.5);
  int calls[3] = {};
  std::vector<Way> ways = {counting(&calls[0], 0.0, 0),
                           counting(&calls[1], 0.0, 3), missing("a", "none")};
  take_turns(&share, 3, 10, 3.0, &ways);
  CHECK_EQ_INT(calls[0], 4);
  CHECK(ways[0].m.ms == std::vector<double>({2.0, 3.0, 4.0}));
  CHECK_EQ_INT(calls[1], 3); /* no call after the time is over */
  CHECK_STR(ways[1].m.failed.c_str(), "it broke");
  CHECK_STR(remarks_text(ways[2].m).c_str(), "none");
  CHECK(ways[2].m.ms.empty());
}

TEST(papers, turns_stop_when_time_is_out) {
  Papers papers;
  papers.end_s = now_s() - 1.0;
  Share over(papers, 0.5);
  int calls = 0;
  std::vector<Way> ways = {counting(&calls, 0.0, 0)};
  take_turns(&over, 3, 10, 3.0, &ways);
  CHECK(over.over());
  CHECK_EQ_INT(calls, 0);
  CHECK_STR(ways[0].m.skipped.c_str(), "no time for it");
  papers.end_s = now_s() + 1000.0;
  Share enough(papers, 0.5);
  enough.took("x", 100, 10.0);
  CHECK(enough.affords("x", 100, 3.0));
  CHECK(!enough.affords("x", 400, 3.0)); /* 640 of 500 s */
  CHECK(enough.affords("y", 400, 3.0));  /* not timed yet */
}

/* With 1000 s, a method that takes 5 s runs once, and one that takes 1 s is not
   warmed up. */
TEST(papers, long_runs_are_not_repeated) {
  Papers papers;
  papers.o.seconds = 1000.0;
  papers.end_s = now_s() + 1000.0;
  Share share(papers, 0.5);
  CHECK(share.warms(0.9));
  CHECK(!share.warms(1.1));
  CHECK(share.repeats(4.9));
  CHECK(!share.repeats(5.1));
  papers.o.seconds = 1e-6; /* the end of the share stays */
  const Redirect err(stderr, "/dev/null");
  Share hurried(papers, 0.5);
  int calls = 0;
  Way slow = counting(&calls, 0.0, 0);
  slow.m.time = [time = slow.m.time](double *ms, double *error) {
    const double start = now_s();
    while (now_s() - start < 1e-5) {
    }
    return time(ms, error);
  };
  std::vector<Way> ways = {slow};
  take_turns(&hurried, 3, 10, 3.0, &ways);
  CHECK_EQ_INT(calls, 1);
  CHECK(ways[0].m.ms == std::vector<double>({1.0}));
  CHECK(ways[0].m.skipped.find("run once") == 0);
  CHECK_STR(no_time(0.0).c_str(), "no time for it");
  CHECK_STR(no_time(181.0).c_str(), "no time for it, about 1.8e+02 s");
}

/* NaN is within no limit, whenever it appears. */
TEST(papers, results_that_were_not_checked_are_not_accepted) {
  double error = 0.0;
  for (double e : {1e-9, 1e-5, 1e-7})
    note_error(e, &error);
  CHECK_EQ_INT(error == 1e-5, 1);
  std::vector<Way> ways(4);
  ways[0].m.checked = ways[1].m.checked = ways[2].m.checked = 1;
  ways[0].m.error = error;
  ways[1].m.error = 2e-4;
  note_error(nan_value, &error);
  note_error(1.0, &error);
  CHECK(std::isnan(error));
  ways[2].m.error = error;
  accept_within(1e-4, &ways);
  CHECK(ways[0].m.accepted);
  CHECK(!ways[1].m.accepted);
  CHECK(!ways[2].m.accepted);
  CHECK(!ways[3].m.accepted); /* was not checked */
}

/* A factorization that is wrong only in its second run, and one that then has a
   NaN. */
TEST(papers, every_timed_factorization_is_checked) {
  const int64_t n = 40;
  const std::vector<float> a = singles(system_matrix(n, true, nullptr));
  auto place = host_place();
  REQUIRE(place->load(n, a.data(), n));
  int runs = 0;
  double spoilt = 0.5, ms = -1.0, error = 0.0;
  const PaperWork work = [&](Place *p) {
    const float wrong = static_cast<float>(spoilt);
    const bool fine = factor_blocked(p, CHOLESKY_LEFT, 16, true);
    return ++runs == 1 ? fine : fine && p->bring({9, 1, 3, 1}, &wrong);
  };
  auto once = [&] {
    return time_factors(place.get(), {n, true, a.data()}, work, 1, &ms, &error);
  };
  CHECK_STR(once().c_str(), "");
  CHECK_LE(0.0, ms);
  CHECK_LE(error, 1e-6);
  CHECK_LE(1e-12, error); /* single precision's error, which is not zero */
  CHECK_STR(once().c_str(), "");
  CHECK_LE(1e-3, error);
  spoilt = nan_value;
  CHECK_STR(once().c_str(), "");
  CHECK(std::isnan(error));
}

/* ---- matrices ------------------------------------------------------------ */

TEST(papers, matrices_that_do_not_fit_say_why) {
  Folder folder;
  folder.add("a_good.mtx", good);
  folder.add("b_oblong.mtx", oblong);
  folder.add("c_complex.mtx", imaginary);
  folder.add("d_none.mtx", "nothing");
  folder.add("e_other.txt", good);
  std::vector<PaperMatrix> all =
      list_matrices({folder.path, folder.path + "/missing.mtx"});
  REQUIRE(all.size() == 5);
  CHECK_STR(all[0].name.c_str(), "a_good");
  CHECK(read_matrix(&all[0], 1, 1, 3));
  CHECK_EQ_INT(all[0].n, 3);
  CHECK_EQ_INT(all[0].a.size(), 9);
  const char *const why[] = {"", "not square: 2 x 3", "complex", "d_none.mtx",
                             "missing.mtx"};
  for (size_t k = 1; k < all.size(); k++) {
    CHECK(!read_matrix(&all[k], 1, 1, 3));
    CHECK(all[k].a.empty());
    CHECK_CONTAINS(all[k].refused.c_str(), why[k]);
    CHECK(!read_matrix(&all[k], 1, 1, 3)); /* and stay out */
  }
  PaperMatrix large = list_matrices({folder.path})[0];
  CHECK(!read_matrix(&large, 1, 1, 2));
  CHECK_STR(large.refused.c_str(), "more than 2 columns");
  Folder empty;
  all = list_matrices({empty.path});
  REQUIRE(all.size() == 1);
  CHECK_CONTAINS(all[0].refused.c_str(), "without matrices");
}

TEST(papers, random_matrices_are_as_published) {
  PaperMatrix m, same;
  m.n = same.n = 40;
  REQUIRE(read_matrix(&m, 7, 1, 100) && read_matrix(&same, 7, 2, 100));
  CHECK(m.a == same.a);
  double low = 0.0, high = 0.0;
  for (double v : m.a) {
    low = std::fmin(low, v);
    high = std::fmax(high, v);
    CHECK(v != 0.0);
  }
  CHECK_LE(-1000.0, low);
  CHECK_LE(low, -900.0);
  CHECK_LE(high, 1000.0);
  CHECK_LE(900.0, high);
}

} // namespace
