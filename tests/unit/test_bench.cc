/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts that bench_cpu and bench_gpu share: methods that are skipped and
   named, the share of time of each section, the number of rounds, and the
   commit in a record. */
#include "bench/harness/bench.h"

#include "tests/unit/ct.h"

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
  const int kept = dup(STDERR_FILENO);
  REQUIRE(freopen("/dev/null", "w", stderr) != nullptr);
  run_by_shares(&bench, {{"one", 1.0}, {"two", 5.0}, {"three", 3.0}}, look);
  fflush(stderr);
  REQUIRE(dup2(kept, STDERR_FILENO) >= 0);
  close(kept);
  CHECK(seen == std::vector<std::string>({"one", "three"}));
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

} // namespace
