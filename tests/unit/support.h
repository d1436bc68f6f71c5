/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all tests: random numbers and matrices that are equal on every
   machine, errors measured in quadruple precision, arrays that detect writes
   past their ends, and an engine that follows a script. Next to read:
   ladder_fixture.h, which drives the ladder with such engines. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include "base/dense.h"
#include "refine/ladder.h"

#define SUP_EPS 0x1p-53
#define SUP_LIMIT (4.0 * SUP_EPS) /* the default tolerance */

/* Random numbers: splitmix64 ----------------------------------------------- */

typedef struct sup_rng {
  uint64_t state; /* any value is a seed */
} sup_rng;

uint64_t sup_next(sup_rng *rng);
double sup_uniform(sup_rng *rng); /* in [-1/2, 1/2) */
double sup_normal(sup_rng *rng);  /* mean 0, variance 1 */

/* Matrices ----------------------------------------------------------------- */

/* a: n x m, lda >= n, uniform in [-1/2, 1/2). No function here changes the rows
   below n. */
void sup_random(sup_rng *rng, int64_t n, int64_t m, double *a, int64_t lda);

/* The distributions of the singular values, as in LAPACK's DLATMS. */
enum {
  SUP_ONE_LARGE = 1,
  SUP_ONE_SMALL = 2,
  SUP_GEOMETRIC = 3,
  SUP_ARITHMETIC = 4,
  SUP_LOG_UNIFORM = 5
};

/* a = H1 D H2, n x n. D has singular values from 1 down to 1 / cond,
   distributed by mode; H1 and H2 are products of n random reflections (of 8
   where n > 100). */
void sup_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond, double *a,
                     int64_t lda);

/* a = H D H, n x n, exactly symmetric. D has the eigenvalues from 1 down to 1 /
   cond, spaced evenly in their logarithms; H is a product of 8 random
   reflections. */
void sup_matrix_spd(sup_rng *rng, int64_t n, double cond, double *a);

/* b = op(A) x in quadruple precision, rounded once. b and x must not
   overlap. */
void sup_multiply(int64_t n, const double *a, int64_t lda, bool trans,
                  const double *x, double *b);

/* Calls hone_solver_solve; the options of this solve are arguments here. */
int sup_solver_solve(hone_solver *solver, int32_t trans, int64_t nrhs,
                     const double *b, int64_t ldb, double *x, int64_t ldx,
                     const double *x0, int64_t ldx0, hone_column *columns,
                     hone_report *report);

/* Errors ------------------------------------------------------------------- */

/* max_i |b - op(A) x|_i / (|op(A)| |x| + |b|)_i (Oettli and Prager) in
   quadruple precision, where nothing overflows or underflows. A row 0 = 0
   counts as 0. If x is not finite, the result is NaN. */
double sup_backward_error(int64_t n, const double *a, int64_t lda, bool trans,
                          const double *x, const double *b);

/* max |x - x_true| / max |x_true|. */
double sup_forward_error(int64_t n, const double *x, const double *x_true);

/* Arrays ------------------------------------------------------------------- */

/* An array of count doubles with a guard at either end. sup_free checks the
   guards and records a failure where one was overwritten; it accepts NULL.
   Never pass these arrays to free(). */
double *sup_copy(const double *from, int64_t count);
double *sup_filled(int64_t count, double value);
/* An array like that of sup_filled, but aligned to 64 bytes like the library's
   own arrays. */
double *sup_aligned(int64_t count, double value);
void sup_free(double *array);

/* Are all count entries equal to value, bit for bit? */
bool sup_untouched(const double *array, int64_t count, double value);

/* Is the CUDA device emulated on the CPU (tests/emulate/emulate.h)? It is then
   hundreds of times slower. */
bool sup_emulated(void);

/* The scripted engine ------------------------------------------------------ */

enum { SUP_SCRIPTS = 3, SUP_STEPS = 16 };

/* The script of an engine. By default the engine solves exactly, up to
   rounding, by an LU of its own. With the contraction rate e it computes v =
   inv(S) (1 + e) v instead, which leaves the residual -e r, so that corrections
   shrink by |e|. Solves are counted from 0 since the last factorization. Where
   ladder is set, the solves of the condition estimate are exact and not
   counted. */
typedef struct sup_script {
  /* Tells the solves of refinement from those of the condition estimate; or
     NULL. */
  const hone_ladder *ladder;
  bool absent; /* probe returns false */
  int create_status, factor_status;
  int solve_status, solve_fails_at; /* fails from that solve on; -1: never */
  hone_factor_info info;            /* what factor returns */
  const double *instead; /* n x n, factored in the place of A; or NULL */
  double rate;           /* the contraction, unless one of these is set: */
  const double *rates;   /* n rates, one for each row of S; or NULL */
  double coarse_rate; /* the rate of factors made with coarse products, instead
                         of all these; 0: not set */
  int steps;          /* how many of the first solves have rates of their own */
  double step_rate[SUP_STEPS];
  int poison_at; /* the solve whose first entry becomes poison; -1: none */
  double poison;
  /* Counts of what happened. */
  int creates, factors, solves, destroys;
  int alive;       /* matrices created and not yet destroyed */
  int alive_most;  /* the largest value of alive */
  int arithmetic;  /* option of the last create */
  int64_t columns; /* columns of all solves together */
} sup_script;

/* Engine number slot < SUP_SCRIPTS, with a fresh script in *script. Both are
   static and shared, so one test uses them at a time. */
const hone_engine *sup_scripted(int slot, const char *name, int precision,
                                sup_script **script);

/* Describes a dense matrix for the ladder and the engines. The description
   stays valid until 64 others have been asked for. */
const hone_matrix *sup_matrix(int64_t n, int64_t lda, const double *a);

/* hone_ladder_create for a dense matrix and a list of engines. If the request
   asks for coarse arithmetic, an engine that is listed twice uses it the first
   time, and accurate products the second time. */
int sup_ladder_create(hone_ladder *ladder, int64_t n,
                      const hone_engine *const *listed, int count,
                      const hone_request *request, hone_mem *mem,
                      hone_pool *pool, hone_watch *watch);

#endif
