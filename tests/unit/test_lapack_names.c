/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in in a program whose modules bring LAPACKs of their own along,
   under the names and with the integers of any interface. */
#define _GNU_SOURCE /* readlink with every libc */
#include "tests/unit/ct.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs vendored_client with these settings. Returns what it prints, with its
   log, to be freed. */
static char *run(const char *settings, const char *mode) {
  char folder[PATH_MAX], command[PATH_MAX + 256];
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  const size_t room = 1 << 20;
  char *text = calloc(room, 1);
  folder[length > 0 ? length : 0] = '\0';
  snprintf(command, sizeof command,
           "HONE_LOG=1 HONE_LAPACK_CROSSOVER=1 HONE_LAPACK_KEPT_MIB=1000 %s "
           "'%s/tests/vendored_client' %s 2>&1",
           settings, dirname(folder), mode);
  FILE *pipe = popen(command, "r");
  if (CHECK(pipe != NULL)) {
    const size_t got = fread(text, 1, room - 1, pipe);
    text[got] = '\0';
    const int status = pclose(pipe);
    ct_note("%.2000s", text);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return text;
}

static int lines_of(const char *text, const char *with) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, with)) != NULL; at++)
    count++;
  return count;
}

TEST(lapack, every_interface_is_served_with_its_own_integers) {
  char *text = run("", "solve");
  CHECK_EQ_INT(lines_of(text, "hone_lapack: dgesv n 70"), 9);
  CHECK_EQ_INT(lines_of(text, "hone_lapack: zgesv n 70"), 9);
  CHECK_EQ_INT(lines_of(text, "double, factors kept, refined"), 18);
  CHECK_EQ_INT(lines_of(text, "with its factors, refined"), 30);
  free(text);
}

TEST(lapack, factors_are_discarded_in_every_interface) {
  char *text = run("HONE_LAPACK_FACTORS=libcaller_", "solve discard");
  CHECK_EQ_INT(lines_of(text, "nrhs 2: single LU"), 18);
  free(text);
}

TEST(lapack, each_module_is_served_by_its_own_lapack) {
  free(run("", "apart"));
  free(run("HONE_LAPACK_FACTORS=discard", "apart discard"));
}

TEST(lapack, a_module_in_the_place_of_another_has_its_own_lapack) {
  free(run("", "reload"));
}

TEST(lapack, a_vendored_lapacks_calls_of_itself_are_left_alone) {
  char *text = run("", "expert");
  CHECK(strstr(text, "dgetrs n") == NULL);
  CHECK_CONTAINS(text, "calls seen: scipy_dgetrf_ 1\n");
  free(text);
}

TEST(lapack, the_log_ends_with_what_was_called) {
  char *text = run("", "solve");
  CHECK_CONTAINS(text, "hone_lapack: vendored_client: calls seen: ");
  CHECK_CONTAINS(text, "scipy_dgesv_64_ 1");
  CHECK_CONTAINS(text, "scipy_dgetrs_ 3");
  CHECK_CONTAINS(text, "dpotrf_64_ 2");
  CHECK_CONTAINS(text, "scipy_LAPACKE_zgesv64_ 3");
  free(text);
  text = run("", "none");
  CHECK_CONTAINS(text, "hone_lapack: vendored_client: no call was seen of any "
                       "routine served\n");
  free(text);
}

TEST(lapack, the_log_says_which_settings_meant_nobody) {
  char *text = run("HONE_LAPACK_HIDE=flapack HONE_LAPACK_FACTORS=discrad "
                   "HONE_LAPACK=of",
                   "solve");
  CHECK_CONTAINS(text, "hone_lapack: HONE_LAPACK=of is neither on nor off\n");
  CHECK_CONTAINS(text, "hone_lapack: HONE_LAPACK_HIDE=flapack: no module of "
                       "such a name has called a routine that this is for\n");
  CHECK_CONTAINS(text, "hone_lapack: HONE_LAPACK_FACTORS=discrad: no module of "
                       "such a name has called a routine that this is for\n");
  CHECK_CONTAINS(text, "scipy_dgesv_64_ 1"); /* it is on all the same */
  free(text);
  text = run("HONE_LAPACK_FACTORS=libcaller_ HONE_LAPACK=on", "solve discard");
  CHECK(strstr(text, "no module of such a name") == NULL);
  CHECK(strstr(text, "neither on nor off") == NULL);
  free(text);
}
