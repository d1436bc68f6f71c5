/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs by affinity, and by the quota of control groups (cgroups(7)), of either
   version. */
#define _GNU_SOURCE /* for CPU affinity */
#include "base/cpus.h"

#include "base/numbers.h"
#include "base/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Control groups ------------------------------------------------------ */

/* Reads the beginning of a file, without taking memory. */
static bool read_text(const char *path, char *text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t length = 0;
  ssize_t got = 1;
  if (file < 0)
    return false;
  while (got > 0 && length < size - 1) {
    got = read(file, text + length, size - 1 - length);
    length += got > 0 ? (size_t)got : 0;
  }
  close(file);
  text[length] = '\0';
  return length > 0;
}

/* The CPUs that so much time pays for in each period; INT_MAX: no limit. */
static int cpus_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0)
    return INT_MAX;
  return (int)HONE_MIN((quota - 1) / period + 1, (long long)INT_MAX);
}

/* Version 2: "max 100000" or "150000 100000", in microseconds. */
static int quota_of_v2(const char *folder) {
  char path[PATH_MAX], text[64];
  long long quota = 0, period = 0;
  const int length = snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (length < 0 || (size_t)length >= sizeof path ||
      !read_text(path, text, sizeof text) ||
      sscanf(text, "%lld %lld", &quota, &period) != 2)
    return INT_MAX;
  return cpus_of(quota, period);
}

/* Version 1: two files; a quota of -1 is none. */
static int quota_of_v1(const char *folder) {
  static const char *const names[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
  char path[PATH_MAX], text[64];
  long long value[2] = {0, 0};
  for (int i = 0; i < 2; i++) {
    const int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (length < 0 || (size_t)length >= sizeof path ||
        !read_text(path, text, sizeof text))
      return INT_MAX;
    value[i] = strtoll(text, NULL, 10);
  }
  return cpus_of(value[0], value[1]);
}

/* The smallest quota of a group and of all groups around it. A container may
   see the path that its group has outside; those folders are missing then, and
   the first one, its own, is reached at the end. */
static int quota_upwards(const char *root, const char *mount, const char *group,
                         int (*quota_of)(const char *folder)) {
  char folder[PATH_MAX];
  int least = INT_MAX;
  const int top = snprintf(folder, sizeof folder, "%s%s", root, mount);
  const int length =
      snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
  if (top < 0 || length < top || (size_t)length >= sizeof folder)
    return INT_MAX;
  for (char *end = folder + length; end != NULL && end >= folder + top;
       end = memrchr(folder, '/', (size_t)(end - folder))) {
    *end = '\0';
    const int quota = quota_of(folder);
    least = HONE_MIN(least, quota);
  }
  return least;
}

/* Is cpu one of the controllers "cpu,cpuacct"? */
static bool has_cpu(const char *controllers, const char *end) {
  for (const char *at = controllers; at < end;) {
    const size_t length = strcspn(at, ",:");
    if (length == 3 && strncmp(at, "cpu", 3) == 0)
      return true;
    at += length + 1;
  }
  return false;
}

/* A line of /proc/self/cgroup: "0::/group", or "4:cpu,cpuacct:/group" for
   version 1. */
static int quota_of_line(const char *root, char *line) {
  char *controllers = strchr(line, ':');
  char *group = controllers ? strchr(controllers + 1, ':') : NULL;
  if (group == NULL)
    return INT_MAX;
  controllers++;
  if (group == controllers)
    return quota_upwards(root, "/sys/fs/cgroup", group + 1, quota_of_v2);
  if (!has_cpu(controllers, group))
    return INT_MAX;
  const int alone =
      quota_upwards(root, "/sys/fs/cgroup/cpu", group + 1, quota_of_v1);
  const int joint =
      quota_upwards(root, "/sys/fs/cgroup/cpu,cpuacct", group + 1, quota_of_v1);
  return HONE_MIN(alone, joint);
}

int hone_cpu_quota(const char *root) {
  char path[PATH_MAX], text[4096], *rest = text;
  int least = INT_MAX;
  const int length = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (length < 0 || (size_t)length >= sizeof path ||
      !read_text(path, text, sizeof text))
    return INT_MAX;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    const int quota = quota_of_line(root, line);
    least = HONE_MIN(least, quota);
  }
  return least;
}

/* ---- The environment ----------------------------------------------------- */

int hone_threads_wanted(void) {
  static const char *const names[] = {
      "HONE_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *text = getenv(names[i]);
    const long long threads = text ? strtoll(text, NULL, 10) : 0;
    if (threads > 0)
      return (int)HONE_MIN(threads, (long long)INT_MAX);
  }
  return INT_MAX;
}

/* ---- This process -------------------------------------------------------- */

static int quota_now(void) {
  static _Atomic int quota; /* 0: not known yet */
  static _Atomic int64_t valid_until_ms;
  const int64_t now_ms = (int64_t)(1e3 * hone_now_s());
  int64_t until_ms = valid_until_ms;
  if (quota == 0 ||
      (now_ms >= until_ms && atomic_compare_exchange_strong(
                                 &valid_until_ms, &until_ms, now_ms + 1000)))
    quota = hone_cpu_quota("");
  return quota;
}

int hone_cpus(void) {
  cpu_set_t allowed;
  int cpus = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    cpus = CPU_COUNT(&allowed);
  else /* there are more than a cpu_set_t has room for */
    cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
  const int quota = quota_now();
  cpus = HONE_MIN(cpus, quota);
  return HONE_MAX(cpus, 1);
}

int hone_cpus_at_most(void) {
  const int now = hone_cpus();
  const long machine = sysconf(_SC_NPROCESSORS_CONF);
  return machine > now ? (int)HONE_MIN(machine, (long)INT_MAX) : now;
}
