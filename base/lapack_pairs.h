/* SPDX-License-Identifier: BSD-3-Clause */
/* Prototypes of LAPACK's drivers for complex systems, whose numbers are pairs
   of doubles or floats here. Tests and benchmarks call them that are real and
   hold complex matrices as arrays of doubles. See lapack.h for the others. */
#ifndef HONE_LAPACK_PAIRS_H
#define HONE_LAPACK_PAIRS_H

#ifdef __cplusplus
extern "C" {
#endif

void zgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);
void zcgesv_(const int *n, const int *nrhs, double *a, const int *lda,
             int *ipiv, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, double *rwork,
             int *iter, int *info);

#ifdef __cplusplus
}
#endif
#endif
