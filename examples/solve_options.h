/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of solve_system by its command line, and its messages of errors.
 */
#ifndef HONE_EXAMPLES_SOLVE_OPTIONS_H
#define HONE_EXAMPLES_SOLVE_OPTIONS_H

#include "api/hone.h"

#include <stdbool.h>
#include <stdint.h>

enum { ACCEPTED = 0, BEST_EFFORT = 1, FAILED = 2 }; /* exit status */

struct settings {
  const char *program; /* the name by which it was called: solve_system, or
                          hone-solve where it is installed */
  const char *matrix, *rhs, *out, *plot; /* files; NULL: not given */
  int64_t random_n, nrhs;                /* -1: not given */
  uint64_t seed;
  bool random_complex, json, quiet;
  hone_options options;
};

/* Sets *s by the command line. Returns -1 to go on, or the exit status. */
int parse_arguments(int argc, char **argv, struct settings *s);

/* Prints what went wrong on stderr, and with --json on stdout, too. Returns
   FAILED. */
__attribute__((format(printf, 3, 4))) int
fail(const struct settings *s, int status, const char *format, ...);

#endif
