/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterative refinement in double precision of a block of right-hand sides with
   the factors of one engine, and the rule by which an x is accepted. Next to
   read: refine.c; then bounds.h for forward errors, ladder.h for what happens
   when a column is not accepted. */
#ifndef HONE_REFINE_H
#define HONE_REFINE_H

#include "refine/condition.h"

/* Error measures of one x, all from one pass over A. */
typedef struct hone_errors {
  double componentwise; /* max_i |b - A x|_i / (|A| |x| + |b|)_i */
  double normwise;      /* ||b - A x|| / (sqrt(n) ||A|| ||x||) */
  double residual;      /* ||b - A x|| / ||b||, infinity norms: at least that,
                           but for residual_noise */
  /* The following are for bounds.c. They are long double because A and x may
     stand at the ends of the range of double: */
  long double residual_norm; /* at least ||R (b - A x)||_2 */
  long double noise; /* at least ||R v||_2, v being the rounding error of the
                        computed residual */
  long double size, size_scaled; /* max |x| and max |inv(C) x| */
  long double widest_unit;       /* the largest entry of C */
  double residual_noise; /* what rounding errors of a plain pass may hide of
                            'residual' */
} hone_errors;

typedef enum hone_column_state {
  HONE_COLUMN_ACTIVE,
  HONE_COLUMN_ACCEPTED,
  HONE_COLUMN_LEFT /* given up on, on this rung */
} hone_column_state;

/* The convergence rate of GMRES is averaged over so many steps. */
enum { HONE_RATED_STEPS = 4 };

/* One right-hand side under refinement. */
typedef struct hone_refined {
  const hone_entry *b;   /* n, borrowed */
  hone_entry *x, *spare; /* n each: the current iterate, and the other buffer */
  hone_entry *r;         /* n: the residual, times 2^shift */
  double *den;           /* n: |A| |x| + |b|, times 2^shift, unless */
  bool den_lost;         /* noise.c has put the effect of noise there */
  int shift;
  double least_den; /* rows with den_i up to it are measured one by one */
  bool digits_lost; /* the shift made entries of x or b underflow: rows are then
                       measured one by one */
  double solution_size; /* largest entry, in scaled variables, of the last
                           correction that bounds.c or extra_precise.c solved
                           for */
  double gamma; /* the computed r satisfies |computed r - r|_i <= gamma den_i,
                   beside its own rounding to double */
  hone_entry *best; /* the best iterate: x or spare; NULL: none yet */
  hone_errors errors, best_errors;
  bool has_x;             /* x holds an iterate */
  bool from_x0;           /* that iterate began as the caller's x0 */
  bool begins_anew;       /* on the next rung, whatever the best iterate is */
  bool measured;          /* r and errors belong to the present x */
  bool verified;          /* they come from the accurate pass on the host, or a
                             projection of A vouches for them, */
  bool vouched_there;     /* which a device took */
  bool x_is_zero;         /* x is the zero vector */
  double x_size;          /* max-norm of x in scaled variables */
  double correction_size; /* max-norm of the last correction, in scaled
                             variables */
  double rate; /* contraction: ratio of the last two corrections; with GMRES the
                  mean decrease of the criterion per step */
  double last_value;    /* value of the criterion before the last correction */
  int slow_corrections; /* corrections so far whose ratio was above 1/2 */
  int iterations;       /* corrections on all rungs together */
  int gmres_steps;      /* how many of them GMRES made */
  int rung_corrections; /* corrections on this rung by the present method */
  double past_values[HONE_RATED_STEPS]; /* GMRES: the latest values of the
                                           criterion */
  int open_pair; /* index in the space of the pair that waits for its product;
                    -1: none */
  int open_pair_shift; /* the shift of r when that pair was opened */
  hone_column_state state;
  bool only_slow; /* given up on only because it was too slow */
  bool sparse;    /* accepted by the measure for sparse rows (sparse.h), */
  double plain;   /* where the componentwise backward error was this; */
  double by_rows; /* omega by that measure, of the best x */
  char why[80];   /* why it was given up on, on this rung */
  /* Error bounds of the accepted x, set by bounds.c: */
  bool error_estimated;
  double error;        /* bound on max |x - x_true| / max |x| */
  double error_scaled; /* the same in scaled variables */
  const double *bars; /* n: bounds on |x_i - x_true,i|, in the place of spare */
  /* For extra_precise.c: x + tail is nearer to the solution than x. NULL: there
     is no tail. */
  hone_entry *tail, *tail_r; /* n each; tail_r = -op(A) tail, times 2^shift */
  double *tail_den;          /* n: |op(A)| |tail|, times 2^shift */
  bool measure_tail;         /* each pass over A also measures the tail */
  bool extra_precise;        /* refined in extra-precise mode to the end */
  bool wide; /* r was summed in pairs of long doubles (noise.c) */
  /* For steps.c: r follows the steps of x. */
  bool by_steps;
  bool by_many; /* its noise is bounded by the certificate's inverse_many */
  bool noisy;   /* r is not accurate enough for a bound on the error */
  long double spread; /* what the norm of an error in the residual of x + t
                         grows by, at most */
  bool first;         /* x is the first iterate */
  hone_entry *step;   /* n: the last change of x; NULL: x itself */
  double step_size, x_largest; /* their largest entries */
  bool exact_step, all_exact; /* it, and all so far, were rounded to few bits */
  hone_entry *done; /* n: the x whose product with the rest A2 of A is in r */
  bool any_done;    /* false: it is 0 */
  double pending;   /* max |x - done| is at most this; 0: nothing is missing */
  hone_entry *low;  /* n: what r lacks of its value, in digits below */
  double unseen;    /* omega may be wrong by this for what is missing */
  double missed;    /* r + low is wrong by at most missed * weight_i */
  double widest;    /* the largest weight_i / den_i */
  double moved;     /* x has changed by at most this since den was computed, */
  bool fresh;       /* and den has been lowered accordingly */
  /* Sizes of the correction before the present one: */
  double last_size, last_entrywise;
  /* For accelerate.c; NULL: corrections are taken as they are. */
  hone_entry *history;
  int recorded; /* corrections in it so far */
} hone_refined;

typedef struct hone_bounding hone_bounding; /* bounds.h */

/* The data that all columns of a block share in refinement. */
typedef struct hone_refinement {
  hone_factored f;
  bool trans;
  int criterion;
  double limit;        /* x is accepted if its criterion is at most this */
  int max_corrections; /* at most so many corrections on this rung */
  double norm_a;       /* infinity norm of op(A) */
  long double norm_2;  /* at least that of |A| in the 2-norm */
  /* That of S, for sparse.c; NULL: rows are not measured as sparse ones. */
  const hone_inspection *inspection;
  double rcond; /* of S, estimated; 0: not known */
  hone_watch *watch;
  hone_entry *scratch; /* the ladder's, for bounds.c and sparse.c */
  uint64_t *seed;      /* of random numbers, for bounds.c */
  uint64_t many_seed;  /* of those of hone_bounds_for_many */
  hone_entry *v;       /* n x columns: residuals and corrections */
  /* The accepted column whose residual, as the device computed it, is in v;
     the device may have begun to solve for it. NULL: none. */
  const hone_refined *device_residual_of;
  hone_entry *history; /* for accelerate.c; NULL: corrections are taken as they
                          are */
  hone_entry *low;
  double *weight, *steps_work; /* for steps.c; NULL: too few columns */
  hone_bounding *bounding;     /* for bounds.c: one for each column */
  int passes; /* passes over A on the host and on a device; added to */
  int device_passes;
  bool copy_refuted;  /* A itself refused an x that the copy had accepted */
  int64_t statements; /* by random vectors for single columns; added to */
} hone_refinement;

/* The exponents of the scaling of x: those of C, or of R for A^T; NULL: S = A.
 */
static inline const int *hone_refined_exponents(const hone_refinement *ctx) {
  const hone_scaling *s = ctx->f.scaling;
  return s->used ? (ctx->trans ? s->row_exp : s->col_exp) : NULL;
}

/* Refines the m columns, at most HONE_SOLVE_COLUMNS, until each is accepted or
   given up on. On HONE_OK every state is ACCEPTED or LEFT; on HONE_INTERRUPTED
   some may still be ACTIVE. The solution of an accepted column is in its x and
   was measured by the accurate pass. */
int hone_refine(hone_refinement *ctx, int64_t m, hone_refined *columns);

/* Measures the x of the columns listed: sets r, den and errors, and tail_r
   where measure_tail is set. accurate: r is computed in double-double. device:
   the engine that holds a copy of A computes it. */
void hone_refined_measure(hone_refinement *ctx, bool accurate, bool device,
                          int64_t m, hone_refined *const *list);

/* Sets the column's errors from its x, r and den (errors.c). Entries of r whose
   row had to be computed in extended range are replaced. */
void hone_refined_errors(const hone_refinement *ctx, hone_refined *column);

/* x = x + d, or d where the column has no x yet. The best iterate is kept. The
   correction is counted if there was an x. */
void hone_refined_correct(const hone_refinement *ctx, hone_refined *column,
                          const hone_entry *d);

/* The vector into which the next iterate is written, which is not the best one;
   turn then makes it x, and counts the correction if there was an x. */
static inline hone_entry *hone_refined_next(hone_refined *column) {
  return column->best == column->x ? column->spare : column->x;
}
void hone_refined_turn(const hone_refinement *ctx, hone_refined *column);

/* |r_i| / den_i, 0 for 0 / 0. r_i is replaced if the row had to be computed in
   extended range. */
double hone_refined_quotient(const hone_refinement *ctx, int64_t i,
                             hone_refined *column);

/* Sets the norms among them: of R r, of its rounding error and of inv(C) x. */
void hone_refined_norms(const hone_refinement *ctx, hone_refined *column);

/* The low parts of double-double may be lost in a row with a denominator up to
   this. */
static inline double hone_least_denominator(int64_t n) {
  return (double)HONE_ROUNDINGS * (double)(n + 4) * 0x1p-1022 / HONE_EPS /
         HONE_EPS;
}

/* max |v_i|; NaN if any v_i is NaN. */
double hone_max_abs(int64_t n, const hone_entry *v);

/* Bound on the rounding error of the computed r_i of the column. */
double hone_refined_residual_noise(const hone_refined *column, int64_t n,
                                   int64_t i);

/* Opens a pair of ctx->f.space for the column, starting from its x and r or, if
   from_nothing, from x = 0 and r = b. Does nothing when the space is full. */
void hone_pairs_open(const hone_refinement *ctx, hone_refined *column,
                     bool from_nothing);
/* Completes the pairs that were opened, now that the new x and r are known. */
void hone_pairs_close(const hone_refinement *ctx, int64_t m,
                      hone_refined *const *list);

/* Makes the column's best iterate its x, with the errors measured for it.
   Returns false if there is none. */
bool hone_refined_take_best(hone_refined *column);

/* The error measure that this criterion selects. */
double hone_errors_value(const hone_errors *errors, int criterion);

#endif
