/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver that the program loads after the library has looked for one. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "base/cuda_driver.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/device_memory.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in a process of its own, because a driver stays loaded. Returns 0 if
   everything was right. */
static int solve_with_library(void) {
  char path[4096];
  const char name[] = "/tests/libcuda.so.1";
  double a[] = {2, 1, 1, 3}, x[2];
  hone_device_memory place;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length < 0 || (size_t)length + sizeof name > sizeof path)
    return 2;
  path[length] = '\0';
  memcpy(strrchr(path, '/'), name, sizeof name);
  if (hone_driver_present() != NULL || hone_device_memory_of(a, &place))
    return 3;
  void *library = dlopen(path, RTLD_NOW);
  double *there = library ? dlsym(library, "hone_there") : NULL;
  if (there == NULL || hone_driver_present() == NULL)
    return 4;
  if (hone_device_memory_of(a, &place) || !hone_device_memory_of(there, &place))
    return 5;
  memcpy(there, a, sizeof a);
  there[8] = 3.0;
  there[9] = 5.0;
  if (hone_solve(2, 1, there, 2, there + 8, 2, x, 2, NULL, NULL) != HONE_OK)
    return 6;
  return fabs(x[0] - 0.8) + fabs(x[1] - 1.4) <= 1e-14 ? 0 : 7;
}

TEST(device_driver, arrays_are_recognized_by_one_that_is_loaded_later) {
  NEED_FAKE();
  if (dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW) != NULL)
    SKIP("a driver without a device is loaded already");
  int status = 1;
  const pid_t child = fork();
  if (child == 0)
    _exit(solve_with_library());
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_EQ_INT(WEXITSTATUS(status), 0);
}
