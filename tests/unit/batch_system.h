/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of systems with which test_batch*.c call hone_batch_solve, and the
   checks that hold after every call. */
#ifndef TESTS_BATCH_SYSTEM_H
#define TESTS_BATCH_SYSTEM_H

#include "tests/gallery/reference.h"
#include "tests/unit/contract_system.h"

/* Systems of one order, one behind the other in three arrays, with a column's
   result for each right-hand side. Leading dimensions may be larger than n: the
   padding of a and b is then NaN, and that of x is checked. Numbers have one
   part or two (complex), and the arrays so many doubles for each. */
typedef struct bat {
  int parts;
  double *a, *b, *x;
  hone_batch batch; /* a complex one has the same members */
  hone_options options;
  hone_batch_result *results;
  hone_column *columns;
  hone_report report;
} bat;

/* Random systems, well conditioned, of which no two are alike; with the options
   to solve them on the CPU. */
bat bat_make(int parts, int64_t count, int64_t n, int64_t nrhs);
bat bat_make_padded(int parts, int64_t count, int64_t n, int64_t nrhs,
                    int64_t pad);
void bat_discard(bat *t);

int64_t bat_order(const bat *t, int64_t k);
/* A, b and x of system k, by a stride or by a list, as doubles that a test may
   change. */
double *bat_a(const bat *t, int64_t k);
double *bat_b(const bat *t, int64_t k);
double *bat_x(const bat *t, int64_t k);
/* The first part of entry (i, j) of system k's matrix, as it is stored. */
double *bat_entry(const bat *t, int64_t k, int64_t i, int64_t j);
/* A = A A^H / n + 2 I, of which the upper triangle is multiplied by 'upper'. */
void bat_make_definite(bat *t, int64_t k, double upper);
int64_t bat_doubles(const bat *t); /* of all x, padding included */

/* hone_batch_solve or hone_z_batch_solve with exactly these arguments. */
int bat_call_with(int parts, const hone_batch *batch,
                  const hone_options *options, hone_batch_result *results,
                  hone_report *report);
/* Does so for this batch. x holds UNTOUCHED before the call, unless it stands
   in the place of b. */
int bat_call(bat *t);

/* hone_solve for system k alone, with the options of the batch, into an x of
   the caller with the leading dimension of the batch. */
int bat_alone(const bat *t, int64_t k, double *x, hone_column *columns,
              hone_report *report);

/* The systems that blocks solved, as report.path says; -1: it does not. */
int64_t bat_in_blocks(const bat *t);
/* Those that a device solved. */
int64_t bat_on_device(const bat *t);

/* The backward error of a solution of system k for right-hand side c, by sums
   in more than double precision. */
double bat_omega(const bat *t, int64_t k, int64_t c, const double *x);
/* The largest size of n numbers. */
double bat_largest(int parts, int64_t n, const double *v);
/* The largest size of n differences. */
double bat_apart(int parts, int64_t n, const double *v, const double *w);

/* Checks what holds after every call that has taken its arguments: each result
   agrees with its columns; an x without a status of 0 or more is untouched; an
   accepted x has a small backward error; the report and the status sum up the
   results. */
void bat_check(const bat *t, int st);

/* bat_call and bat_check. */
int bat_solve(bat *t);

/* Checks that the result of system k is that of hone_solve: its status and
   place and, for an x, errors that agree within the bounds of both. */
void bat_check_alone(const bat *t, int64_t k);

/* Checks what is claimed of system k, which a call has solved, by the
   reference, for which r is room: no singular matrix is accepted, an accepted x
   has a small backward error, and no x is farther from the solution than its
   bound. Where rows consist of products that nearly vanish (sparse), the
   backward error is measured as docs/numerics.md says. */
void bat_check_claims(const bat *t, int64_t k, bool sparse, reference *r);

#endif
