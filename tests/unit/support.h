/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by all tests: random numbers and matrices that are equal on every
   machine, errors measured in quadruple precision, and arrays that detect
   writes past their ends. Next to read: scripted_engine.h, an engine that
   follows a script; entries.h, which has real or complex numbers. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include "tests/unit/scripted_engine.h"

/* gcc and clang say in different ways what a test is compiled with. */
#ifdef __has_feature
#define SUP_HAS(sanitizer) __has_feature(sanitizer)
#else
#define SUP_HAS(sanitizer) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || SUP_HAS(address_sanitizer)
#define SUP_ADDRESS_SANITIZER 1
#endif
#if defined(SUP_ADDRESS_SANITIZER) || defined(__SANITIZE_THREAD__) ||          \
    SUP_HAS(thread_sanitizer)
#define SUP_SANITIZER 1
#endif

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

#endif
