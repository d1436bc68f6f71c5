/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone_complex.h
 * The complex part of hone.h, which includes it: systems A x = b of double
 * complex numbers, factored in single precision and refined in double, by the
 * methods and with the promises of the real calls beside them. Options, report
 * and statuses are the same, and so are the rules for arrays. What differs:
 *
 * - options.trans may be HONE_CONJ_TRANS: A^H x = b.
 * - options.x0 points to hone_complex numbers: cast it to const double *.
 * - HONE_TRIANGLE_LOWER and _UPPER read one triangle of a Hermitian A, and the
 *   real parts of its diagonal alone.
 * - HONE_STRUCTURE_SPD says that A is Hermitian positive definite. A symmetric
 *   complex A is a general one.
 * - Errors and magnitudes are moduli |z|: backward_error is max_i |b - A x|_i /
 *   (|A| |x| + |b|)_i, error_bounds bound |x_i - x_true,i|, and the null
 *   vectors of the report have moduli as weights. An entry is not finite if it
 *   has NaN, Inf or a modulus beyond double: bad_row and bad_col are its place,
 *   and report.reason says which. No x with such an entry is returned.
 * - On a GPU there is no LU in double: where single precision does not do, the
 *   CPU factors.
 *
 *     #include <hone.h>
 *     int st = hone_z_solve(n, 1, a, n, b, n, x, n, NULL, NULL);
 */
#include "hone.h" /* which includes this file, where it is not included yet */
#ifndef HONE_COMPLEX_H
#define HONE_COMPLEX_H

/** A complex number: two doubles, the real part first. The same as C99's double
    complex, C++'s std::complex<double>, Fortran's complex(c_double_complex) and
    NumPy's complex128. */
#ifdef __cplusplus
extern "C++" { /* whoever includes this may be within extern "C" */
#include <complex>
}
typedef std::complex<double> hone_complex;
extern "C" {
#else
typedef double _Complex hone_complex;
#endif

/** Solves A x = b, A^T x = b or A^H x = b: see hone_solve. */
HONE_API int hone_z_solve(int64_t n, int64_t nrhs, const hone_complex *a,
                          int64_t lda, const hone_complex *b, int64_t ldb,
                          hone_complex *x, int64_t ldx,
                          const hone_options *options, hone_report *report);

/** A complex matrix with its factors: see hone_solver. Opaque. */
typedef struct hone_z_solver hone_z_solver;

/** Creates a solver for complex matrices of order n: see hone_solver_create. */
HONE_API int hone_z_solver_create(hone_z_solver **solver, int64_t n,
                                  const hone_options *options);

/** Inspects, scales and factors A, which is borrowed: see hone_solver_factor.
 */
HONE_API int hone_z_solver_factor(hone_z_solver *solver, const hone_complex *a,
                                  int64_t lda, hone_report *report);

/** Takes a nearby matrix and keeps the factors: see hone_solver_update. */
HONE_API int hone_z_solver_update(hone_z_solver *solver, const hone_complex *a,
                                  int64_t lda, hone_report *report);

/** Solves for nrhs right-hand sides: see hone_solver_solve. */
HONE_API int hone_z_solver_solve(hone_z_solver *solver, int64_t nrhs,
                                 const hone_complex *b, int64_t ldb,
                                 hone_complex *x, int64_t ldx,
                                 const hone_options *options,
                                 hone_report *report);

/** Frees the solver: see hone_solver_destroy. */
HONE_API void hone_z_solver_destroy(hone_z_solver **solver);

/** Bytes of host memory that hone_z_solve holds at most: see
    hone_memory_needed. With options.trans = HONE_CONJ_TRANS copies of b and x0
    are a part of them, which a solver keeps for its next solve. */
HONE_API int hone_z_memory_needed(int64_t n, int64_t nrhs,
                                  const hone_options *options,
                                  int64_t *single_bytes, int64_t *double_bytes);

/** Bytes of device memory that hone_z_solve takes on a GPU: see
    hone_device_memory_needed. *with_residuals: 24 n^2 for large n (32 n^2 at
    8192), *without: 8 n^2 (15 n^2 at 8192). */
HONE_API int hone_z_device_memory_needed(int64_t n, const hone_options *options,
                                         int64_t *with_residuals,
                                         int64_t *without);

#ifdef __cplusplus
}
#endif
#endif
