/* SPDX-License-Identifier: BSD-3-Clause */
/* The search: hill climbing over small systems, towards a true error above the
   library's bound or an entry's above its bar (options.error_bounds), or a
   singular matrix that is accepted. The judge is exact arithmetic. hunt.c runs
   it, hunt_start.c draws where a climb begins, hunt_climb.c moves, hunt_judge.c
   solves and judges. */
#ifndef TESTS_HUNT_H
#define TESTS_HUNT_H

#include "api/hone.h"
#include "tests/gallery/either.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* n of real systems is at most HUNT_MOST_N, that of complex ones half of it. */
enum { HUNT_MOST_N = 12, HUNT_MOST_RHS = 3 };

/* How the library is called. */
enum {
  HUNT_ONCE,   /* hone_solve */
  HUNT_WARM,   /* hone_solve with an initial x */
  HUNT_KEPT,   /* a solver, one column in each call */
  HUNT_UPDATE, /* a solver that first factors another matrix */
  HUNT_BATCH,  /* a member of a batch; there are no bars */
  HUNT_USES
};

/* Methods of large orders that a system has at its small one. */
enum { HUNT_DEFLATION = 1, HUNT_GMRES = 2 };

/* The goals that a climb may maximize. */
enum {
  HUNT_RATIO,    /* true error / bound */
  HUNT_BAR,      /* |x_i - x_true,i| / bar */
  HUNT_ERROR,    /* the true error of an accepted column */
  HUNT_SINGULAR, /* A stays singular: the rcond that is reported */
  HUNT_REFUSED,  /* A is regular, no column is accepted: 1 / condition */
  HUNT_GOALS
};

/* op(A) x = b and the call that solves it. Columns are n numbers apart, of one
   part or of two. */
typedef struct hunt_system {
  int64_t n, nrhs;
  int32_t parts;
  int32_t use, trans, layout, precision, structure, criterion, extra;
  int32_t deterministic;
  int32_t methods;  /* bits of the next enumeration */
  int32_t any_size; /* entries may lie at the ends of the range, too */
  double tolerance;
  double a[HUNT_MOST_N * HUNT_MOST_N];
  double old[HUNT_MOST_N * HUNT_MOST_N]; /* factored before an update */
  double b[HUNT_MOST_N * HUNT_MOST_RHS];
} hunt_system;

enum {
  HUNT_BOUND_BELOW_ERROR = 1,
  HUNT_SINGULAR_ACCEPTED = 2,
  HUNT_OMEGA_ABOVE_RULE = 4,
  HUNT_BAR_BELOW_ERROR = 8 /* a component is beyond its bar */
};

typedef struct hunt_verdict {
  int status, wrong; /* wrong: bits of the enumeration above */
  bool singular;
  bool in_range; /* all numbers, those of the true x too, are zero or between
                    2^-900 and 2^900 */
  int columns, accepted;
  int worst;                   /* the column of ratio */
  double rcond;                /* as reported */
  double ratio, error, bound;  /* the largest error / bound, any x; its parts */
  int bar_column, bar_row;     /* where bar_ratio was found */
  double bar_ratio;            /* the largest |x_i - x_true,i| / bar, any x */
  double worst_accepted_error; /* 0 if no column is accepted */
  /* ||A||_1 ||inv(A)||_1 if A is regular, no column is accepted by the default
     rule, all is in range, and no entry of b or x is zero; otherwise Inf. */
  double refused_condition;
  bool small_row; /* |A| |x| + |b| of a row is hardly more than what factors of
                     that condition leave of the error of other entries of x */
} hunt_verdict;

/* The answer of a solver. Columns of x are n numbers, of bars n entries apart.
 */
typedef struct hunt_answer {
  double x[HUNT_MOST_N * HUNT_MOST_RHS], bars[HUNT_MOST_N * HUNT_MOST_RHS];
  hone_column columns[HUNT_MOST_RHS]; /* with a status, also of failed calls */
  double rcond;                       /* as reported */
} hunt_answer;

/* Returns the status of the call. */
typedef int (*hunt_solver)(const hunt_system *s, hunt_answer *out);
int hunt_by_library(const hunt_system *s, hunt_answer *out);
void hunt_judge(const hunt_system *s, hunt_solver solve, hunt_verdict *out);

/* A climb, which its seed determines as far as the library's answers are always
   the same (deterministic). */
typedef struct hunt_climb {
  uint64_t seed;
  int parts;     /* given: of numbers; 0: one */
  bool any_size; /* given: as if the seed had drawn any_size, */
  bool deflates; /* or matrices to deflate */
  bool in_batch; /* given: all are members of batches */
  int goal;
  int64_t evaluations, singular, columns, accepted;
  int64_t wrong, wrong_in_range;
  double ratio, bar_ratio; /* the largest of systems with accepted columns */
  /* Systems of condition up to 1e13; those with a small row, which are not
     described; the smallest condition of the others. */
  int64_t refused, refused_small;
  double refused_condition;
} hunt_climb;

/* Draws the seed's first system, of numbers with so many parts, and its goal;
   the rng goes on with the moves. */
void hunt_start(hunt_system *s, int parts, int *goal, gallery_rng *rng);
/* Draws a kind of right-hand side that suits the system's sizes. */
int hunt_rhs_kind(const hunt_system *s, int goal, gallery_rng *rng);
/* Makes one to three random moves. */
void hunt_move(hunt_system *s, int goal, gallery_rng *rng);
/* Climbs. What is wrong, or refused though of condition up to 1e13, is
   described on 'accuse', the best system on 'best'; either may be NULL. */
void hunt_run(hunt_climb *climb, int64_t evaluations, hunt_solver solve,
              FILE *accuse, FILE *best);

/* A text that hunt_read understands, with a line about the verdict. */
void hunt_print(const hunt_system *s, const hunt_verdict *v, FILE *f);
bool hunt_read(hunt_system *s, FILE *f);

/* HUNT_DEFLATION and HUNT_GMRES, as far as the next solves shall have them at
   every order. */
extern int hunt_methods;

#endif
