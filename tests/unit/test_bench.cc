/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that bench_cpu and bench_gpu share: methods that are skipped and
   named, the share of time of each section, the number of rounds, and the
   commit in a record. */
#include "bench/harness/bench.h"
#include "bench/harness/several_model.h"

#include "api/hone.h"
#include "tests/unit/ct.h"

#include <cmath>
#include <cstdlib>
#include <unistd.h>

namespace {

bool begins(const std::string &text, const std::string &with) {
  return text.compare(0, with.size(), with) == 0;
}

TEST(bench, large_orders_leave_slow_methods_out_and_say_so) {
  Config c;
  std::vector<Method> methods;
  for (const char *name :
       {"Hone kept", "copy + IRS R_32F", "pinned: copy + getrf FP64 + getrs"})
    CHECK(!left_out(c, name, 32768, &methods));
  CHECK(methods.empty());
  for (const char *name : {"Hone once", "Hone AUTO kept", "copy + IRS R_TF32",
                           "pinned: copy + IRS R_16F"}) {
    CHECK(!left_out(c, name, 16384, &methods)); /* not skipped yet */
    CHECK(left_out(c, name, 16385, &methods));
    CHECK_STR(methods.back().name.c_str(), name);
    CHECK(begins(methods.back().skipped, "left out beyond n = 16384"));
  }
  CHECK_EQ_INT(methods.size(), 4);
  c.skip = {"once"}; /* skipped by the user: no message */
  CHECK(!left_out(c, "Hone once", 32768, &methods));
  REQUIRE(parse_common(&c, "--large-skip", "32F,kept"));
  CHECK(left_out(c, "copy + IRS R_32F", 32768, &methods));
  CHECK(!left_out(c, "copy + IRS R_TF32", 32768, &methods));
  REQUIRE(parse_common(&c, "--large-skip", "-"));
  CHECK(!left_out(c, "copy + IRS R_32F", 32768, &methods));
  CHECK_EQ_INT(methods.size(), 5);
}

TEST(bench, orders_of_several_gpus_are_two_lists) {
  Config c;
  REQUIRE(parse_common(&c, "--several-n", "600,700"));
  REQUIRE(parse_common(&c, "--several-solve-n", "800"));
  CHECK(c.several_sizes == Words({"600", "700"}));
  CHECK(c.several_solve_sizes == Words({"800"}));
  CHECK(!parse_common(&c, "--several-solve-n", "8x"));
}

TEST(bench, rounds_grow_fewer_with_n) {
  Config c;
  CHECK_EQ_INT(rounds_of(c, 8192), 7);
  CHECK_EQ_INT(rounds_of(c, 16384), 5);
  CHECK_EQ_INT(rounds_of(c, 32768), 3);
  c.rounds = 2;
  c.large_rounds = 4;
  CHECK_EQ_INT(rounds_of(c, 8192), 2);
  CHECK_EQ_INT(rounds_of(c, 16384), 4);
  CHECK_EQ_INT(rounds_of(c, 32768), 4);
}

/* Sends stderr away while it lives. */
struct quiet {
  const int kept = dup(STDERR_FILENO);
  quiet() { CHECK(freopen("/dev/null", "w", stderr) != nullptr); }
  ~quiet() {
    fflush(stderr);
    CHECK(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
  }
};

/* The sections that asked whether they can afford some seconds. */
std::vector<std::string> seen;

bool affords(const Bench &bench, double seconds) {
  Budget budget = bench.budget;
  budget.took("a", 100, seconds);
  return budget.affords("a", 100);
}

void look(Bench *bench, const std::string &section) {
  seen.push_back(section);
  ct_note("section %s", section.c_str());
  if (section == "one") { /* a quarter of 1000 s */
    CHECK(affords(*bench, 245.0));
    CHECK(!affords(*bench, 251.0));
  } else { /* the next one has all the time that is left */
    CHECK(affords(*bench, 980.0));
    CHECK(!affords(*bench, 1001.0));
  }
}

TEST(bench, sections_have_shares_of_the_time_that_is_left) {
  Bench bench;
  seen.clear();
  bench.c.seconds = 1000.0;
  bench.c.sections = {"three", "one"}; /* in the order of the program */
  {
    const quiet now;
    run_by_shares(&bench, {{"one", 1.0}, {"two", 5.0}, {"three", 3.0}}, look);
  }
  CHECK(seen == std::vector<std::string>({"one", "three"}));
}

/* Both ways to call are timed and checked, in each round with another
   right-hand side; the check sees one wrong part of x. */
TEST(bench, complex_systems_are_solved_and_checked) {
  Bench bench;
  Systems s;
  std::vector<Method> m;
  const int64_t n = 70;
  REQUIRE(systems_allocate(&s, n, 2, 1, 2));
  for (const Kind kind : {UNIFORM, NORMAL}) {
    systems_fill(&s, kind, 3, 2);
    m.clear();
    add_hone(bench.c, &m, "Hone kept", s, HONE_DEVICE_CPU, true, false);
    add_hone(bench.c, &m, "Hone once", s, HONE_DEVICE_CPU, false, false);
    {
      const quiet now;
      measure(&bench, s, 2, &m);
    }
    for (const Method &each : m) {
      CHECK_STR(each.failed.c_str(), "");
      CHECK_EQ_INT(each.checked, 3);
      CHECK(each.accepted);
      CHECK(each.error > 0.0 && each.error <= 4.04 * 0x1p-53);
    }
  }
  std::vector<double> x(static_cast<size_t>(2 * n));
  CHECK_STR(m[1].solve(1, x.data()).c_str(), "");
  const auto error = [&] {
    return backward_error(n, s.matrix(1), s.side(1), x.data(), 1, 2);
  };
  CHECK_LE(error(), 4.04 * 0x1p-53);
  for (const size_t part : {40, 41}) {
    const double kept = x[part];
    x[part] += 1e-9;
    CHECK(error() >= 1e-12 && error() <= 1e-9);
    x[part] = NAN;
    CHECK(std::isnan(error()));
    x[part] = kept;
  }
  m.clear();
  systems_free(&s);
}

TEST(bench, a_record_has_the_command_without_the_folders_of_its_file) {
  const char *typed[] = {"build/bench_cpu", "--seconds",   "3",
                         "--json",          "/a/b/c.json", "tests/matrices"};
  char *argv[6];
  for (int i = 0; i < 6; i++)
    argv[i] = const_cast<char *>(typed[i]);
  CHECK_STR(command_of(6, argv).c_str(),
            "bench_cpu --seconds 3 --json c.json tests/matrices");
  CHECK_STR(command_of(1, argv).c_str(), "bench_cpu");
}

TEST(bench, a_commit_is_given_or_unknown) {
  const char *const before = getenv("HONE_COMMIT");
  const std::string kept = before != nullptr ? before : "";
  setenv("HONE_COMMIT", "told", 1);
  CHECK_STR(commit_of("given").c_str(), "given");
  CHECK_STR(commit_of("").c_str(), "told");
  unsetenv("HONE_COMMIT");
  char here[4096];
  REQUIRE(getcwd(here, sizeof here) != nullptr);
  REQUIRE(chdir("/") == 0); /* no git repository there */
  CHECK_STR(commit_of("").c_str(), "unknown");
  REQUIRE(chdir(here) == 0);
  if (before != nullptr)
    setenv("HONE_COMMIT", kept.c_str(), 1);
}

TEST(bench, says_when_openblas_takes_the_processor_for_an_older_one) {
  CHECK_STR(unused_by_blas("Prescott", true, true).c_str(), "AVX2");
  CHECK_STR(unused_by_blas("Sandybridge", true, false).c_str(), "AVX2");
  CHECK_STR(unused_by_blas("Sandybridge", false, false).c_str(), "");
  CHECK_STR(unused_by_blas("Haswell", true, true).c_str(), "AVX-512");
  CHECK_STR(unused_by_blas("ZEN", true, false).c_str(), "");
  CHECK_STR(unused_by_blas("Cooperlake", true, true).c_str(), "");
  CHECK_STR(unused_by_blas("SkylakeX", true, true).c_str(), "");
  CHECK_STR(unused_by_blas("unknown", true, true).c_str(),
            ""); /* another BLAS */
}

} // namespace

/* ---- The model of several GPUs ------------------------------------------ */

/* Times that a model gives must give the model again, and no time may be
   beyond the two bounds: the chain of panels, and all products shared. */
TEST(bench_model, has_the_times_that_it_is_fitted_to) {
  for (int way = 0; way < 4; way++) {
    const Several_model true_model = {way % 2 ? 32768 : 20000, 512,
                                      way / 2 ? 2.1 : 0.3, 150e9};
    Several_model m = {true_model.n, true_model.width, 0.0, 0.0};
    const double one = several_times(true_model, 1).ms;
    const double two = several_times(true_model, 2).ms;
    REQUIRE(several_fit(one, two, &m));
    CHECK_NEAR(m.panel_ms, true_model.panel_ms, 1e-6 * true_model.panel_ms);
    CHECK_NEAR(m.flops, true_model.flops, 1e-6 * true_model.flops);
    const double n = static_cast<double>(m.n), count = ceil(n / 512.0);
    double before = one;
    for (int devices = 2; devices <= 64; devices *= 2) {
      const Several_times t = several_times(m, devices);
      CHECK(t.ms <= before && t.ms >= count * m.panel_ms * (1.0 - 1e-9));
      CHECK(t.ms >= before / 2.0 * (1.0 - 1e-9));
      CHECK(t.by_panels >= 0.0 && t.by_panels <= 1.0 + 1e-9);
      before = t.ms;
    }
    CHECK_NEAR(several_times(m, 100000).by_panels, 1.0, 1e-9);
  }
}

/* Without panels two devices take half of the time, and with nothing else as
   long as one; what is beyond has no model. */
TEST(bench_model, refuses_times_that_it_cannot_have) {
  Several_model m = {32768, 512, 0.0, 0.0};
  CHECK(several_fit(200.0, 100.0, &m));
  CHECK_NEAR(m.panel_ms, 0.0, 1e-2);
  CHECK(several_fit(200.0, 200.0, &m));
  CHECK_NEAR(m.panel_ms, 200.0 / 64.0, 1e-6);
  CHECK(!several_fit(200.0, 201.0, &m));
  CHECK(!several_fit(200.0, 99.0, &m));
  CHECK(!several_fit(200.0, NAN, &m));
  CHECK(!several_fit(NAN, 100.0, &m));
  CHECK(!several_fit(0.0, 0.0, &m));
}
