/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement of a block of right-hand sides with one engine's
   factors, and the acceptance rule. */
#ifndef HONE_REFINE_H
#define HONE_REFINE_H

#include "refine/condition.h"

/* Backward errors of one x, measured in one pass over A. */
typedef struct hone_errors {
  double componentwise; /* max_i |b - A x|_i / (|A| |x| + |b|)_i */
  double normwise;      /* ||b - A x|| / (sqrt(n) ||A|| ||x||) */
  double residual;      /* ||b - A x|| / ||b||, infinity norms */
  /* These beyond the range of double, as A and x may stand at its ends: */
  long double relative; /* ||b - A x|| / ||x||, x in the infinity norm, b -
                           A x in the 1-norm for A and in the infinity norm
                           for A^T: times ||inv(A)||_1, a bound on the
                           relative error of x in the infinity norm */
  long double relative_scaled; /* the same of R (b - A x) and inv(C) x, for S */
  long double noise;        /* what the residual's own computation may have */
  long double noise_scaled; /* missed, in the same measure: see bounds.c */
} hone_errors;

typedef enum hone_column_state {
  HONE_COLUMN_ACTIVE,
  HONE_COLUMN_ACCEPTED,
  HONE_COLUMN_LEFT /* this rung gave up on it */
} hone_column_state;

enum { HONE_RATED_STEPS = 4 }; /* that tell how fast GMRES converges */

/* One right-hand side under refinement. */
typedef struct hone_refined {
  const hone_entry *b;   /* n, borrowed */
  hone_entry *x, *spare; /* n each: present iterate and the other buffer */
  hone_entry *r;         /* n; times 2^shift */
  double *den;           /* n; times 2^shift */
  int shift;
  bool lost;        /* the shift cost digits: rows are measured one by one */
  double solved;    /* largest entry, in scaled variables, of the last solution
                       that bounds.c or extra.c looks at */
  double gamma;     /* |computed r - r|_i <= gamma den_i, beside r's rounding; 0
                       where the computed r_i is 0 */
  hone_entry *best; /* x or spare: the best iterate, NULL: none yet */
  hone_errors now, best_errors;
  bool has_x;        /* x holds an iterate */
  bool warm;         /* ... that began as the caller's x0 */
  bool measured;     /* r and now are those of x */
  bool verified;     /* ... measured with the accurate pass */
  bool zero;         /* x is the zero vector */
  double size;       /* of x in scaled variables, largest entry */
  double step;       /* of the last correction, the same way */
  double ratio;      /* of the last two corrections */
  double last_value; /* of the criterion, before the last correction */
  int slow;          /* ratios above 1/2 so far */
  int iterations;    /* corrections over all rungs */
  int steps;         /* of them by GMRES */
  int tried;         /* corrections on this rung, in this way */
  double past[HONE_RATED_STEPS]; /* GMRES: the criterion's values so far */
  int pair;       /* of the space, waiting for its product; -1: none */
  int pair_shift; /* the shift of r when that was opened */
  hone_column_state state;
  bool slow_only; /* ... and only because it was too slow */
  char why[80];   /* why this rung gave up on it */
  /* Of the accepted x, once bounds.c or extra.c has estimated its error: */
  bool bounded, noise_estimated;
  bool direct;          /* ... and the certificate knows the contraction */
  double observed;      /* ratio of the last two corrections of extra.c on
                           this rung; NaN: there were not two */
  double error;         /* max |error of x| / max |x|, */
  double error_scaled;  /* the same in scaled variables */
  double rest;          /* what may be left beside it, for what corrections */
  double rest_scaled;   /* with these factors leave; NaN: not known */
  double missed;        /* and what r's own computation may have hidden of */
  double missed_scaled; /* it; Inf: only noise is known */
  /* Of extra.c: x_true is nearer to x + tail. NULL: x is all there is. */
  hone_entry *tail, *tail_r; /* n each; tail_r = -op(A) tail, shifted */
  double *tail_den;          /* n */
  bool with_tail;            /* passes take it along */
  bool extra;                /* refined until extra.c was content */
  /* Of the correction before: */
  double last_size, last_any, last_rest;
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
  const hone_certificate *certificate; /* of f; for bounds.c and extra.c */
  bool observe;  /* the certificate does not know what a correction leaves of an
                    error: two of a column itself have to show it */
  hone_entry *v; /* n x columns: residuals and corrections */
  const hone_refined *there; /* accepted; v holds its r as the device had it,
                                which may have begun to solve for that. NULL */
  int passes;                /* counted up */
  int device_passes;
} hone_refinement;

/* Refines the m <= 64 columns until each is accepted or given up on. On
   HONE_OK every state is accepted or left; HONE_INTERRUPTED: some may still
   be active. Accepted columns are in x, measured by the accurate pass. */
int hone_refine(hone_refinement *ctx, int64_t m, hone_refined *columns);

/* Measures the x of the columns listed: r, den, now, where with_tail also
   tail_r. accurate: in double-double; device: where a copy of A is. */
void hone_refined_measure(hone_refinement *ctx, bool accurate, bool device,
                          int64_t m, hone_refined *const *list);

/* column's now, from its x, r and den (errors.c); rows in extended range may
   be mended on the way. */
void hone_refined_errors(const hone_refinement *ctx, hone_refined *column);

/* max |v_i|; NaN where there is one. */
double hone_max_abs(int64_t n, const hone_entry *v);

/* What the computation of column's r_i may have missed, at most. */
double hone_refined_missed(const hone_refined *column, int64_t n, int64_t i);

/* Opens a pair of ctx->f.space for the column, from its x and r or,
   from_nothing, from x = 0 and r = b, if there is room for one more. */
void hone_pairs_open(const hone_refinement *ctx, hone_refined *column,
                     bool from_nothing);
/* The new x and r are known: those pairs that were opened are complete. */
void hone_pairs_close(const hone_refinement *ctx, int64_t m,
                      hone_refined *const *list);

/* Makes column's best iterate its x, measured as it was; false: none. */
bool hone_refined_take_best(hone_refined *column);

/* The criterion's value of these errors. */
double hone_errors_value(const hone_errors *errors, int criterion);

#endif
