/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_gpu measures the factorization alone, of a matrix that is already on
   the device, through these functions. C or C++. */
#ifndef HONE_BENCH_GPU_FACTOR_H
#define HONE_BENCH_GPU_FACTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Factors A with pivoting, once untimed and then rounds times timed, each time
 * from a fresh copy on the device; events around the factorization alone take
 * the time. bench_gpu calls it with rounds = 1, in turns with cuSOLVER's getrf,
 * and before that once for each arithmetic with n <= 256, to learn the names.
 * If the program is linked without this function, only cuSOLVER's is measured.
 *
 * n, d_a, lda        in: n x n, column-major [sp device], is not changed
 * arithmetic         in: of the trailing update; 0 is the default, 1, 2, ...
 *                    are the others, in the order of hook.cu
 * rounds, ms         in, out: rounds times in milliseconds
 * relative_residual  out: ||P A - L U||_F / ||A||_F of the last factors, or
 *                    NULL
 * text, size         out: name of the arithmetic; after a failure, why
 * returns 0; > 0 if there is no such arithmetic; < 0 after a failure
 */
int hone_bench_factor(int64_t n, const float *d_a, int64_t lda, int arithmetic,
                      int rounds, double *ms, double *relative_residual,
                      char *text, size_t size);

/* Does the same for a complex matrix, whose entries are two floats, the real
   part first. */
int hone_z_bench_factor(int64_t n, const float *d_a, int64_t lda,
                        int arithmetic, int rounds, double *ms,
                        double *relative_residual, char *text, size_t size);

/* Does the same with more choices. arithmetic is as above. If cholesky is not
   zero, A is symmetric positive definite and the residual is ||A - U^T U||.
   block is the number of columns of an outer panel; 0, or more than the
   library's own number, stands for the library's own. outer, strip,
   ahead_from, diagonal and feed are those of hone_trial (base/engine.h). */
typedef struct hone_bench_form {
  int arithmetic, cholesky;
  int64_t block, outer, strip, ahead_from, diagonal, feed;
} hone_bench_form;
int hone_bench_form_factor(const hone_bench_form *form, int64_t n,
                           const float *d_a, int64_t lda, int rounds,
                           double *ms, double *relative_residual, char *text,
                           size_t size);
/* Does the same for a complex matrix. */
int hone_z_bench_form_factor(const hone_bench_form *form, int64_t n,
                             const float *d_a, int64_t lda, int rounds,
                             double *ms, double *relative_residual, char *text,
                             size_t size);

/* Does the same with A in the host's memory, in double precision: the times, by
   the host's clock, are those of A's way to the device and of the factorization
   together, on 'threads' threads. A complex entry is two doubles. No residual.
 */
int hone_bench_form_arrive(const hone_bench_form *form, int64_t n,
                           const double *a, int64_t lda, int threads,
                           int rounds, double *ms, char *text, size_t size);
int hone_z_bench_form_arrive(const hone_bench_form *form, int64_t n,
                             const double *a, int64_t lda, int threads,
                             int rounds, double *ms, char *text, size_t size);

/*
 * Returns ||P A - L U||_F / ||A||_F of all entries, computed in double on the
 * device: blocks of columns are widened to double and multiplied by DGEMM,
 * which takes 2/3 n^3 operations (half a second at n = 32768 on an H200). Waits
 * for the device before and after.
 *
 * d_a     n x n, ld [sp device]
 * d_lu    n x n, the same ld: unit L below the diagonal, U on and above
 * d_perm  n [device]: row i of P A is row perm[i] of A, from 0
 * returns NaN if the device fails or the factors are not finite
 */
double lu_residual(int64_t n, const float *d_a, const float *d_lu, int64_t ld,
                   const int *d_perm);

/* Returns the same for complex matrices of entries of two floats. */
double complex_lu_residual(int64_t n, const float *d_a, const float *d_lu,
                           int64_t ld, const int *d_perm);

/* Returns ||A - U^T U||_F / ||A||_F, computed in the same manner. Both
   triangles of A are read, and the upper triangle of d_u. */
double cholesky_residual(int64_t n, const float *d_a, const float *d_u,
                         int64_t ld);

#ifdef __cplusplus
}
#endif
#endif
