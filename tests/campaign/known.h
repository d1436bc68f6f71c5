/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of small systems of whole numbers whose answers are known: of each
   the solution, and whether it is singular. */
#ifndef HONE_TESTS_CAMPAIGN_KNOWN_H
#define HONE_TESTS_CAMPAIGN_KNOWN_H

#include "tests/gallery/gallery.h"

#include <stdbool.h>

enum { KNOWN_MOST_N = 48, KNOWN_FAMILIES = 7 };

typedef struct known_family {
  const char *name;
  int64_t least_n, most_n;
  bool real_only; /* where complex numbers would be too large to be exact */
} known_family;
extern const known_family known_families[KNOWN_FAMILIES];

/* One system: 'parts' doubles for each number, columns one behind the other. */
typedef struct known_system {
  int64_t n;
  int parts;
  double *a, *t, *b; /* n x n; the solution; A t, without a rounding error */
} known_system;

/* Makes a system of the family, and returns true if A is singular. For "rank
   one and small" that is not known, and false is returned: if a singular one
   were accepted, t would hardly be within the bound. */
bool known_make(const known_system *s, int family, uint64_t seed);

#endif
