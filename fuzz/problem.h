/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A problem for hone_solve made from bytes: sizes, leading dimensions,
 * options, a kind of matrix, how arrays alias, at times one broken argument.
 * problem.c chooses, fuzz_solve.c solves and asserts.
 *
 * Arrays have exactly the size the contract names and their padding is NaN,
 * so a sanitizer sees a step too far and the checks a value too many.
 */
#ifndef HONE_FUZZ_PROBLEM_H
#define HONE_FUZZ_PROBLEM_H

#include "api/hone.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__,         \
                    #condition);                                               \
      abort();                                                                 \
    }                                                                          \
  } while (0)

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

enum { MOST_N = 24, MOST_NRHS = 5 };

/* Of the matrix, or of the columns of b and x0. */
enum kind {
  RANDOM,
  DOMINANT, /* well-conditioned: must be solved */
  ZERO,
  WIDE,           /* random times powers of two, 2^-1000 to 2^999 */
  SPECIAL_FINITE, /* half of them special numbers, no NaN, no Inf */
  SPECIAL,
  ONE_NOT_FINITE,
  DUPLICATE_COLUMN,
  ZERO_ROW,
  ZERO_COLUMN,
  BITS, /* the input's own bytes */
  FROM_GALLERY
};

enum alias { X_OWN, X_IS_B, X_IN_B, X_IS_A, X_IS_X0 };

typedef struct array {
  double *now, *before; /* owned; before: as it was handed to the solver */
  size_t count;
} array;

typedef struct hooks {
  int64_t live, live_bytes, peak_bytes;
  unsigned calls, fail_at; /* 0: never */
} hooks;

typedef struct watch {
  unsigned events, stop_at; /* 0: never */
} watch;

extern hooks memory;  /* what options.alloc and free count */
extern watch watcher; /* and options.progress */

typedef struct problem {
  int64_t n, nrhs, lda, ldb, ldx, ldx0; /* as handed over */
  int64_t true_n, true_nrhs;            /* of the arrays */
  array a, b, x, x0;
  const double *pass_a, *pass_b;
  double *pass_x;
  enum kind a_kind, b_kind, x0_kind;
  enum alias alias;
  int use_options, use_report, use_columns;
  int expected, or_expected; /* this status or that; 0: none is broken */
  int a_finite, b_finite;    /* b and x0 */
  int undisturbed;           /* no stop, limit or failing hook is set */
  hone_options options;
  hone_column columns[MOST_NRHS];
  hone_report report;
} problem;

/* Makes the problem; p need not be set. Its arrays are as before a solve. */
void problem_choose(problem *p, const uint8_t *data, size_t size);
void problem_free(problem *p);

#endif
