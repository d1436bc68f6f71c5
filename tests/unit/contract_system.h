/* SPDX-License-Identifier: BSD-3-Clause */
/* The systems with which test_contract_*.c call hone_solve, and the checks that
   hold after every call. */
#ifndef TESTS_CONTRACT_SYSTEM_H
#define TESTS_CONTRACT_SYSTEM_H

#include "tests/unit/support.h"

/* x holds it before each call, and still does after an error. */
#define UNTOUCHED (-3.75e77)

/* A system with options and report. Leading dimensions may be larger than n;
   the padding in a and b is then NaN. */
typedef struct sys {
  int64_t n, nrhs, lda, ldb, ldx;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} sys;

/* Random, well conditioned; all leading dimensions are n, or n + pad. */
sys sys_make(int64_t n, int64_t nrhs);
sys sys_make_padded(int64_t n, int64_t nrhs, int64_t pad);
void sys_discard(sys *s);

/* b = A ones. */
void sys_set_consistent(sys *s);

/* Multiplies A by a and b by b. */
void sys_scale(sys *s, double a, double b);

/* hone_solve; the status is not checked. */
int sys_call(sys *s);

/* Checks what holds for every status st: the report repeats it; an error left
   x untouched; an accepted x has a small backward error. */
void sys_check(const sys *s, int st);

/* sys_call and sys_check. */
int sys_solve(sys *s);

/* sys_solve, which must return status. */
void sys_expect(sys *s, int status);

#endif
