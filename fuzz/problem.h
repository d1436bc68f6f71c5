/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A problem for hone_solve, or with FUZZ_PARTS = 2 for hone_z_solve, in double
 * precision, that is made from bytes:
 * sizes, leading dimensions, options, a kind of matrix, how arrays alias, and
 * sometimes one invalid argument. problem.c chooses it; fuzz_solve.c solves it
 * and checks the contract.
 *
 * Every array has exactly the size that the contract demands, and its padding
 * is NaN. A sanitizer thus detects an access beyond the end, and the checks
 * detect the use of padding.
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

/* PARTS: of a number. This file's users are compiled once for 1 and for 2. */
enum { MOST_N = 24, MOST_NRHS = 5, PARTS = FUZZ_PARTS };

/* The kind of the matrix, or of the columns of b and x0. */
enum kind {
  RANDOM,
  DOMINANT, /* diagonally dominant and well-conditioned: it must be solved */
  ZERO,
  WIDE,           /* random times powers of two, 2^-1000 to 2^999 */
  SPECIAL_FINITE, /* half of the entries are special, but neither NaN nor Inf */
  SPECIAL,
  ONE_NOT_FINITE,
  DUPLICATE_COLUMN,
  ZERO_ROW,
  ZERO_COLUMN,
  BITS, /* the bytes of the input */
  FROM_GALLERY
};

enum alias { X_OWN, X_IS_B, X_IN_B, X_IS_A, X_IS_X0 };

typedef struct array {
  double *now, *before; /* owned; before: the values given to the solver */
  size_t count;         /* of doubles: PARTS for each number */
} array;

typedef struct hooks {
  int64_t live, live_bytes, peak_bytes;
  unsigned calls, fail_at; /* 0: never */
} hooks;

typedef struct watch {
  unsigned events, stop_at; /* 0: never */
} watch;

extern hooks memory;  /* the counts of options.alloc and options.free */
extern watch watcher; /* the counts of options.progress */

typedef struct problem {
  int64_t n, nrhs, lda, ldb, ldx, ldx0; /* the arguments of the call */
  int64_t true_n, true_nrhs;            /* the sizes of the arrays */
  array a, b, x, x0;
  array bars; /* what options.error_bounds may write; empty: NULL is passed */
  const double *pass_a, *pass_b;
  double *pass_x;
  enum kind a_kind, b_kind, x0_kind;
  enum alias alias;
  int use_options, use_report, use_columns;
  int expected,
      or_expected; /* the status of an invalid argument, or another that is
                      allowed too; 0: all arguments are valid */
  int a_finite, b_finite; /* b_finite: of b and x0 */
  int undisturbed;        /* no stop, limit or failing hook is set */
  hone_options options;
  hone_column columns[MOST_NRHS];
  hone_report report;
} problem;

/* Makes the problem. p may be uninitialized. The arrays are ready for a solve.
 */
void problem_choose(problem *p, const uint8_t *data, size_t size);
void problem_free(problem *p);

#endif
