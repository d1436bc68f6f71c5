/* SPDX-License-Identifier: BSD-3-Clause */
/* A LAPACK that is not the program's, as the wheels of Python have: its names
   and integers are those of HONE_INTERFACE. OpenBLAS does the work. It counts
   its calls and, like LAPACK's own dgerfs, calls its dgetrs through the linkage
   table, where others may step in. */
#include "base/lapack.h"
#include "lapack/interfaces.h"

#include <stdint.h>
#include <stdlib.h>

typedef HONE_PASTE(HONE_INTEGER_, HONE_INTERFACE, ) integer;

#ifdef HONE_COMPLEX
#define SCALAR(name) z##name
#else
#define SCALAR(name) d##name
#endif
#define FORTRAN(name) HONE_FORTRAN_NAME(HONE_INTERFACE, SCALAR(name))
#define EXPORT(type, name, parameters)                                         \
  __attribute__((visibility("default"))) type name parameters;                 \
  type name parameters

extern int vendored_calls;
void *vendored_real(const char *name);

/* OpenBLAS's routine, where dgetrf_ itself would be the drop-in's. */
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#define REAL(name) ((__typeof__(name) *)vendored_real(TEXT(name)))

/* Converts pivots to the integers of OpenBLAS, or back. */
static int *narrow(int64_t n, const integer *ipiv) {
  int *to = malloc((size_t)(n > 0 ? n : 1) * sizeof *to);
  for (int64_t i = 0; i < n && ipiv != NULL; i++)
    to[i] = (int)ipiv[i];
  return to;
}

EXPORT(void, FORTRAN(getrf),
       (const integer *m, const integer *n, hone_entry *a, const integer *lda,
        integer *ipiv, integer *info)) {
  const int m_int = (int)*m, n_int = (int)*n, lda_int = (int)*lda;
  int info_int = 0, *pivots = narrow(*n, NULL);
  vendored_calls++;
  REAL(dgetrf_)(&m_int, &n_int, a, &lda_int, pivots, &info_int);
  for (int64_t i = 0; i < *n && info_int >= 0; i++)
    ipiv[i] = pivots[i];
  *info = info_int;
  free(pivots);
}

EXPORT(void, FORTRAN(getrs),
       (const char *trans, const integer *n, const integer *nrhs,
        const hone_entry *a, const integer *lda, const integer *ipiv,
        hone_entry *b, const integer *ldb, integer *info, size_t length)) {
  const int n_int = (int)*n, nrhs_int = (int)*nrhs;
  const int lda_int = (int)*lda, ldb_int = (int)*ldb;
  int info_int = 0, *pivots = narrow(*n, ipiv);
  (void)length;
  vendored_calls++;
  REAL(dgetrs_)
  (trans, &n_int, &nrhs_int, a, &lda_int, pivots, b, &ldb_int, &info_int);
  *info = info_int;
  free(pivots);
}

EXPORT(void, FORTRAN(gesv),
       (const integer *n, const integer *nrhs, hone_entry *a,
        const integer *lda, integer *ipiv, hone_entry *b, const integer *ldb,
        integer *info)) {
  const int n_int = (int)*n, nrhs_int = (int)*nrhs;
  const int lda_int = (int)*lda, ldb_int = (int)*ldb;
  int info_int = 0, *pivots = narrow(*n, NULL);
  vendored_calls++;
  REAL(dgetrf_)(&n_int, &n_int, a, &lda_int, pivots, &info_int);
  for (int64_t i = 0; i < *n && info_int >= 0; i++)
    ipiv[i] = pivots[i];
  if (info_int == 0)
    REAL(dgetrs_)
  ("N", &n_int, &nrhs_int, a, &lda_int, pivots, b, &ldb_int, &info_int);
  *info = info_int;
  free(pivots);
}

EXPORT(void, FORTRAN(potrf),
       (const char *uplo, const integer *n, hone_entry *a, const integer *lda,
        integer *info, size_t length)) {
  const int n_int = (int)*n, lda_int = (int)*lda;
  int info_int = 0;
  (void)length;
  vendored_calls++;
  REAL(dpotrf_)(uplo, &n_int, a, &lda_int, &info_int);
  *info = info_int;
}

EXPORT(void, FORTRAN(potrs),
       (const char *uplo, const integer *n, const integer *nrhs,
        const hone_entry *a, const integer *lda, hone_entry *b,
        const integer *ldb, integer *info, size_t length)) {
  const int n_int = (int)*n, nrhs_int = (int)*nrhs;
  const int lda_int = (int)*lda, ldb_int = (int)*ldb;
  int info_int = 0;
  (void)length;
  vendored_calls++;
  REAL(dpotrs_)(uplo, &n_int, &nrhs_int, a, &lda_int, b, &ldb_int, &info_int);
  *info = info_int;
}

#ifndef HONE_COMPLEX
/* Stands for all expert routines: it solves with factors. */
EXPORT(void, FORTRAN(gerfs),
       (const integer *n, const integer *nrhs, const hone_entry *a,
        const integer *lda, const integer *ipiv, hone_entry *b,
        const integer *ldb, integer *info)) {
  FORTRAN(getrs)("N", n, nrhs, a, lda, ipiv, b, ldb, info, 1);
}
#endif
