/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement of a block of right-hand sides with one engine's
   factors, and the acceptance rule. */
#ifndef HONE_REFINE_H
#define HONE_REFINE_H

#include "refine/estimate.h"

/* Backward errors of one x, measured in one pass over A. */
typedef struct hone_errors {
  double componentwise;   /* max_i |b - A x|_i / (|A| |x| + |b|)_i */
  double normwise;        /* ||b - A x|| / (sqrt(n) ||A|| ||x||) */
  double residual;        /* ||b - A x|| / ||b||, infinity norms */
  double relative;        /* ||b - A x|| / ||x||, 1-norms for A and infinity
                             norms for A^T: times the norm of inv(A), a bound
                             on the relative error of x */
  double relative_scaled; /* the same of R (b - A x) and inv(C) x, for S */
} hone_errors;

typedef enum hone_column_state {
  HONE_COLUMN_ACTIVE,
  HONE_COLUMN_ACCEPTED,
  HONE_COLUMN_LEFT /* this rung gave up on it */
} hone_column_state;

/* One right-hand side under refinement. */
typedef struct hone_refined {
  const double *b;   /* n, borrowed */
  double *x, *spare; /* n each: present iterate and the other buffer */
  double *r, *den;   /* n each; both times 2^shift */
  int shift;
  bool lost;    /* the shift cost digits: rows are measured one by one */
  double *best; /* x or spare: the best iterate, NULL: none yet */
  hone_errors now, best_errors;
  bool has_x;        /* x holds an iterate */
  bool warm;         /* ... that began as the caller's x0 */
  bool measured;     /* r and now are those of x */
  bool vouched;      /* ... measured with the accurate pass */
  bool zero;         /* x is the zero vector */
  double size;       /* of x in scaled variables, largest entry */
  double step;       /* of the last correction, the same way */
  double ratio;      /* of the last two corrections */
  double last_value; /* of the criterion, before the last correction */
  int slow;          /* ratios above 1/2 so far */
  int iterations;    /* corrections over all rungs */
  int tried;         /* corrections on this rung */
  hone_column_state state;
  char why[80]; /* why this rung gave up on it */
} hone_refined;

/* What refinement needs beside the columns. */
typedef struct hone_refinement {
  hone_factored f;
  bool trans;
  int criterion;
  double limit;  /* accepted at or below */
  int cap;       /* corrections on this rung */
  double norm_a; /* infinity norm of op(A) */
  hone_watch *watch;
  double *v;  /* n x columns: residuals and corrections */
  int passes; /* counted up */
  int device_passes;
} hone_refinement;

/* Refines the m <= 64 columns until each is accepted or given up on. On
   HONE_OK every state is accepted or left; HONE_INTERRUPTED: some may still
   be active. Accepted columns are in x, measured by the accurate pass. */
int hone_refine(hone_refinement *ctx, int64_t m, hone_refined *columns);

/* Makes column's best iterate its x, measured as it was; false: none. */
bool hone_refined_take_best(hone_refined *column);

/* The criterion's value of these errors. */
double hone_errors_value(const hone_errors *errors, int criterion);

#endif
