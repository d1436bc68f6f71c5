/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests share: random numbers and matrices that are the same
   everywhere, errors measured in quadruple precision, arrays that notice
   being written past their ends, and an engine that does as it is told.
   Next to read: test_refine.c, which drives the ladder with it. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include "base/dense.h"
#include "refine/ladder.h"

#define SUP_EPS 0x1p-53
#define SUP_LIMIT (4.0 * SUP_EPS) /* the default tolerance */

/* Random numbers: splitmix64 -------------------------------------------- */

typedef struct sup_rng {
  uint64_t state; /* any value is a seed */
} sup_rng;

uint64_t sup_next(sup_rng *rng);
double sup_uniform(sup_rng *rng); /* in [-1/2, 1/2) */
double sup_normal(sup_rng *rng);  /* mean 0, variance 1 */

/* Matrices -------------------------------------------------------------- */

/* a: n x m, lda >= n, uniform in [-1/2, 1/2). Rows below n stay as they
   were, here and below. */
void sup_random(sup_rng *rng, int64_t n, int64_t m, double *a, int64_t lda);

/* Singular values of a matrix of given condition, as in LAPACK's DLATMS. */
enum {
  SUP_ONE_LARGE = 1,
  SUP_ONE_SMALL = 2,
  SUP_GEOMETRIC = 3,
  SUP_ARITHMETIC = 4,
  SUP_LOG_UNIFORM = 5
};

/* a = H1 D H2, n x n: D the singular values of that mode, from 1 down to
   1 / cond, H1 and H2 products of n (n > 100: 8) random reflections. */
void sup_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond, double *a,
                     int64_t lda);

/* a = H D H, n x n, symmetric to the last bit: D the eigenvalues from 1 down
   to 1 / cond, evenly spread in their logarithms, H a product of 8 random
   reflections. */
void sup_matrix_spd(sup_rng *rng, int64_t n, double cond, double *a);

/* b = op(A) x in quadruple precision, rounded once. b is not x. */
void sup_multiply(int64_t n, const double *a, int64_t lda, bool trans,
                  const double *x, double *b);

/* Errors ---------------------------------------------------------------- */

/* max_i |b - op(A) x|_i / (|op(A)| |x| + |b|)_i (Oettli & Prager) in
   quadruple precision, where nothing overflows or vanishes. A row 0 = 0
   counts 0. An x that is not finite gives NaN. */
double sup_backward_error(int64_t n, const double *a, int64_t lda, bool trans,
                          const double *x, const double *b);

/* max |x - x_true| / max |x_true|. */
double sup_forward_error(int64_t n, const double *x, const double *x_true);

/* Arrays ---------------------------------------------------------------- */

/* count doubles with a report/guard before and behind. sup_free checks the
   guards and records a failure where one was written to; NULL is allowed. Never
   hand these to free(). */
double *sup_copy(const double *from, int64_t count);
double *sup_filled(int64_t count, double value);
double *sup_aligned(int64_t count, double value); /* to 64 bytes, as the
                                                     library's own are */
void sup_free(double *array);

/* Are all count entries value still, bit for bit? */
bool sup_untouched(const double *array, int64_t count, double value);

/* Is the CUDA device a processor that does as if (tests/emulate/emulate.h)? It
   is then hundreds of times slower. */
bool sup_emulated(void);

/* The scripted engine ---------------------------------------------------- */

enum { SUP_SCRIPTS = 3, SUP_STEPS = 16 };

/* What an engine is to do; sup_scripted gives one that solves exactly (to
   rounding, by an LU of its own). A solve by factors whose contraction rate
   is e computes v = inv(S) (1 + e) v, which leaves the residual -e r, so
   that the corrections shrink by |e|. Solves are counted from 0 from the
   last factor on; those of the condition estimate are exact and not counted
   where ladder is set. */
typedef struct sup_script {
  const hone_ladder *ladder; /* to tell refinement from estimate, or NULL */
  bool absent;               /* probe says no */
  int create_status, factor_status;
  int solve_status, solve_fails_at; /* from that solve on; -1: never */
  hone_factor_info info;            /* what factor answers, */
  const double *instead; /* n x n, factored in the place of A; or NULL */
  double rate;           /* contraction, unless: */
  const double *rates;   /* n, of each row of S, or NULL */
  double coarse_rate;    /* in the place of all that for a matrix made with
                            coarse products; 0: none of it */
  int steps;             /* the first solves' own rates */
  double step_rate[SUP_STEPS];
  int poison_at; /* solve whose first entry becomes poison; -1: none */
  double poison;
  /* What has happened. */
  int creates, factors, solves, destroys;
  int alive;       /* matrices made and not yet destroyed, */
  int alive_most;  /* at most at once */
  int arithmetic;  /* of the last create */
  int64_t columns; /* solved for, altogether */
} sup_script;

/* Engine number slot < SUP_SCRIPTS with a fresh script in *script. Both are
   static and shared: one test at a time. */
const hone_engine *sup_scripted(int slot, const char *name, int precision,
                                sup_script **script);

/* Describes a dense matrix for the ladder and the engines. The description
   stays valid until 64 others have been asked for. */
const hone_matrix *sup_matrix(int64_t n, int64_t lda, const double *a);

/* hone_ladder_create for a dense matrix and a list of engines. An engine that
   is listed twice makes coarse products the first time, where the request says
   so, and accurate ones the second. */
int sup_ladder_create(hone_ladder *ladder, int64_t n,
                      const hone_engine *const *listed, int count,
                      const hone_request *request, hone_mem *mem,
                      hone_pool *pool, hone_watch *watch);

#endif
