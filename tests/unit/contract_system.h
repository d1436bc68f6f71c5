/* SPDX-License-Identifier: BSD-3-Clause */
/* The systems with which test_contract_*.c call hone_solve, and the checks that
   hold after every call. */
#ifndef TESTS_CONTRACT_SYSTEM_H
#define TESTS_CONTRACT_SYSTEM_H

#include "tests/gallery/either_call.h"
#include "tests/unit/support.h"

/* x holds it before each call, and still does after an error. */
#define UNTOUCHED (-3.75e77)

/* A system with options and report. Leading dimensions may be larger than n;
   the padding in a and b is then NaN. Numbers have one part or two (complex),
   and the arrays so many doubles for each. */
typedef struct sys {
  int parts;
  int64_t n, nrhs, lda, ldb, ldx;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} sys;

/* Random, well conditioned; all leading dimensions are n, or n + pad. */
sys sys_make(int64_t n, int64_t nrhs);
sys sys_make_padded(int64_t n, int64_t nrhs, int64_t pad);
/* Without padding, of so many parts. In complex ones rows and columns of the
   real matrix have random phases, which change no singular value. */
sys sys_make_of(int parts, int64_t n, int64_t nrhs);
/* Replaces A by one of singular values from 1 down to 1 / cond; for mode see
   sup_matrix_cond. */
void sys_set_cond(sys *s, uint64_t seed, int mode, double cond);
void sys_discard(sys *s);

/* The n x m complex numbers p_i v_ij q_j with random phases p and q, or with
   q = conj p, which makes a symmetric v Hermitian; frees v. */
double *sys_with_phases(sup_rng *rng, int64_t n, int64_t m, bool hermitian,
                        double *v);

/* b = A ones. */
void sys_set_consistent(sys *s);

/* Multiplies A by a and b by b. */
void sys_scale(sys *s, double a, double b);

/* hone_solve or hone_z_solve; the status is not checked. */
int sys_call(sys *s);

/* A solver of the system's kind, with its options, and its calls. */
either_solver sys_solver(const sys *s);
int sys_factor(const sys *s, either_solver *solver);
/* Solves for b into x, which may be another array than the system's. */
int sys_solve_with(const sys *s, either_solver *solver, double *x,
                   hone_report *report);
/* Doubles of b and x. */
int64_t sys_doubles(const sys *s);

/* Checks what holds for every status st: the report repeats it; an error left
   x untouched; an accepted x has a small backward error. */
void sys_check(const sys *s, int st);

/* sys_call and sys_check. */
int sys_solve(sys *s);

/* sys_solve, which must return status. */
void sys_expect(sys *s, int status);

#endif
