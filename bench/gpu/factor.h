/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization alone, matrix already on the device: what bench_gpu asks
   of the library, and what it lends to check it. C or C++. */
#ifndef HONE_BENCH_GPU_FACTOR_H
#define HONE_BENCH_GPU_FACTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Factors A with pivoting, once untimed and then rounds times timed, each time
 * from a fresh device copy made outside the clock (events around the
 * factorization alone). bench_gpu calls it with rounds = 1, in turns with the
 * vendor's, and once before with n <= 256 for each arithmetic, to have their
 * names. Where it is not linked in, that is said and only the vendor's is
 * measured.
 *
 * n, d_a, lda        in: n x n, column-major [sp device], not to be changed
 * arithmetic         in: of the trailing update; 0 the default, 1, 2, ... the
 *                    others, in the library's own order
 * rounds, ms         in, out: rounds times in milliseconds
 * relative_residual  out: ||P A - L U||_F / ||A||_F of the last factors; NULL:
 *                    not wanted
 * text, size         out: name of the arithmetic; after a failure, why
 * returns 0; > 0 when there is no such arithmetic (ends the list); < 0 failed
 */
int hone_bench_factor(int64_t n, const float *d_a, int64_t lda, int arithmetic,
                      int rounds, double *ms, double *relative_residual,
                      char *text, size_t size);

/* More can be chosen here. arithmetic is as above; if cholesky is not zero, A
   is symmetric positive definite and the residual is ||A - U^T U||; block is
   the number of columns of an outer panel, and 0, or more than the library's
   own number, stands for the library's own. */
typedef struct hone_bench_form {
  int arithmetic, cholesky;
  int64_t block;
} hone_bench_form;
int hone_bench_form_factor(const hone_bench_form *form, int64_t n,
                           const float *d_a, int64_t lda, int rounds,
                           double *ms, double *relative_residual, char *text,
                           size_t size);

/*
 * ||P A - L U||_F / ||A||_F in double on the device, every entry: blocks of
 * columns widened to double, products by DGEMM, 2/3 n^3 operations (half a
 * second at n = 32768 on an H200). Waits for the device before and after.
 *
 * d_a     n x n, ld [sp device]
 * d_lu    n x n, the same ld: unit L below the diagonal, U on and above
 * d_perm  n [device]: row i of P A is row perm[i] of A, from 0
 * returns NaN when the device fails or the factors are not finite
 */
double lu_residual(int64_t n, const float *d_a, const float *d_lu, int64_t ld,
                   const int *d_perm);

/* ||A - U^T U||_F / ||A||_F in the same manner, A symmetric and whole; of d_u
   only the upper triangle is read. */
double cholesky_residual(int64_t n, const float *d_a, const float *d_u,
                         int64_t ld);

#ifdef __cplusplus
}
#endif
#endif
