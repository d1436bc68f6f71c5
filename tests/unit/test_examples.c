/* SPDX-License-Identifier: BSD-3-Clause */
/* The examples whose answers are known must find them: their exit status says
   whether they did. */
#include "tests/unit/ct.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs the program of this name beside this one; said is the line of what it
   prints that begins with the word. Returns false where it was not built. */
static int run_example(const char *name, const char *word, char *said,
                       size_t size) {
  char program[PATH_MAX], command[PATH_MAX + 64];
  const ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 32);
  CHECK(length > 0);
  program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(program, '/');
  strcpy(slash != NULL ? slash + 1 : program, name);
  said[0] = '\0';
  if (access(program, X_OK) != 0)
    return 0;
  snprintf(command, sizeof command, "timeout 100 '%s' 2>&1", program);
  FILE *output = popen(command, "r");
  char line[256];
  while (CHECK(output != NULL) && fgets(line, sizeof line, output) != NULL)
    if (strncmp(line, word, strlen(word)) == 0)
      snprintf(said, size, "%s", line);
  CHECK_EQ_INT(pclose(output), 0);
  return 1;
}

TEST(examples, scattering_is_right_to_double_precision) {
  char said[256];
  if (!run_example("scattering", "error", said, sizeof said))
    SKIP("there is no scattering beside this program");
  CHECK_CONTAINS(said, ": right (allowed 1e-11)");
  CHECK_LE(atof(said + strlen("error")), 1e-11);
}

TEST(examples, capacitance_is_right) {
  char said[256];
  if (!run_example("capacitance", "difference", said, sizeof said))
    SKIP("there is no capacitance beside this program");
  CHECK_CONTAINS(said, ": right (allowed 2e-06)");
}

TEST(examples, condensation_converges_with_the_right_order) {
  char said[256];
  if (!run_example("condensation", "order", said, sizeof said))
    SKIP("there is no condensation beside this program");
  CHECK_CONTAINS(said, ": right (4, allowed +- 0.1)");
}

TEST(examples, chemistry_is_right_and_loses_no_atom) {
  char said[256];
  if (!run_example("chemistry", "error", said, sizeof said))
    SKIP("there is no chemistry beside this program");
  CHECK_CONTAINS(said, ": right (allowed 1e-07)");
}
