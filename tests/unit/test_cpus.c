/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of CPUs that a process may keep busy, and that no call has more
   threads. */
#define _GNU_SOURCE /* CPU affinity */
#include "base/cpus.h"
#include "base/pool.h"
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Quotas, in a file system made up for the test ----------------------- */

typedef struct file {
  const char *path, *text;
} file;

/* Writes a file below root, and the folders that it lies in. */
static void write_file(const char *root, const file *f) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", root, f->path);
  for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  FILE *out = fopen(path, "w");
  CHECK(out != NULL && fputs(f->text, out) >= 0 && fclose(out) == 0);
}

static void check_quota(const file *files, int count, int expected) {
  char root[] = "/tmp/hone-cpus-XXXXXX", command[64];
  CHECK(mkdtemp(root) != NULL);
  for (int i = 0; i < count; i++)
    write_file(root, &files[i]);
  CHECK_EQ_INT(hone_cpu_quota(root), expected);
  snprintf(command, sizeof command, "rm -r %s", root);
  CHECK_EQ_INT(system(command), 0);
}

#define QUOTA(expected, ...)                                                   \
  do {                                                                         \
    const file files[] = {__VA_ARGS__};                                        \
    ct_note("line %d", __LINE__);                                              \
    check_quota(files, (int)(sizeof files / sizeof *files), expected);         \
  } while (0)

#define GROUP "/proc/self/cgroup"
#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu"
#define JOINT "/sys/fs/cgroup/cpu,cpuacct"

TEST(cpus, the_quota_of_a_group_is_found) {
  QUOTA(2, {GROUP, "0::/a/b\n"}, {V2 "/a/b/cpu.max", "150000 100000\n"});
  QUOTA(1, {GROUP, "0::/a/b\n"}, {V2 "/a/b/cpu.max", "50000 100000\n"});
  QUOTA(3, {GROUP, "0::/a/b\n"}, {V2 "/a/b/cpu.max", "max 100000\n"},
        {V2 "/a/cpu.max", "300000 100000\n"});
  QUOTA(2, {GROUP, "0::/\n"}, {V2 "/cpu.max", "200000 100000\n"});
  /* A container may see the path that it has outside. */
  QUOTA(4, {GROUP, "0::/docker/7f\n"}, {V2 "/cpu.max", "400000 100000\n"});
  QUOTA(INT_MAX, {GROUP, "0::/a\n"}, {V2 "/a/cpu.max", "max 100000\n"});
  QUOTA(INT_MAX, {GROUP, "0::/a\n"}, {V2 "/a/cpu.max", "what?\n"});
  QUOTA(INT_MAX, {GROUP, "0::/a\n"});
  QUOTA(INT_MAX, {GROUP, "what?\n"});
  QUOTA(INT_MAX, {"/proc/other", "\n"});
}

TEST(cpus, the_quota_of_a_group_of_version_1_is_found) {
  QUOTA(2, {GROUP, "9:pids:/\n4:cpu,cpuacct:/a\n0::/\n"},
        {JOINT "/a/cpu.cfs_quota_us", "200000\n"},
        {JOINT "/a/cpu.cfs_period_us", "100000\n"});
  QUOTA(3, {GROUP, "4:cpuacct,cpu:/a/b\n"}, {V1 "/a/cpu.cfs_quota_us", "25000"},
        {V1 "/a/cpu.cfs_period_us", "10000"},
        {V1 "/a/b/cpu.cfs_quota_us", "-1"},
        {V1 "/a/b/cpu.cfs_period_us", "10000"});
  QUOTA(INT_MAX, {GROUP, "4:cpuacct:/a\n3:cpuset:/a\n"},
        {V1 "/a/cpu.cfs_quota_us", "25000"},
        {V1 "/a/cpu.cfs_period_us", "10000"});
}

/* ---- Threads of a call --------------------------------------------------- */

TEST(cpus, no_call_has_more_threads) {
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CPU_ZERO(&one);
  for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
    if (CPU_ISSET(i, &all))
      CPU_SET(i, &one);
  CHECK(hone_cpus() >= 1 && hone_cpus() <= CPU_COUNT(&all));
  for (int64_t n = 20; n <= 620; n += 600) {
    sys s = sys_make(n, 1);
    hone_solver *solver;
    const int most = n < HONE_THREADS_FROM ? 1 : hone_cpus();
    s.options.threads = 64;
    sys_expect(&s, HONE_OK);
    CHECK_EQ_INT(s.report.threads, most);
    REQUIRE(hone_solver_create(&solver, n, &s.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, s.a, n, &s.report), HONE_OK);
    CHECK_EQ_INT(s.report.threads, most);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, n, s.x, n, NULL, &s.report),
                 HONE_OK);
    CHECK_EQ_INT(s.report.threads, 1);
    sys_expect(&s, HONE_OK);
    CHECK_EQ_INT(s.report.threads, 1);
    REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
    CHECK_EQ_INT(hone_solver_solve(solver, 1, s.b, n, s.x, n, NULL, &s.report),
                 HONE_OK);
    CHECK_EQ_INT(s.report.threads, most);
    hone_solver_destroy(&solver);
    sys_discard(&s);
  }
}
