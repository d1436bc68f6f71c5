/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems and calls for test_lapack_hidden*.c, which are compiled for double
   and, with HONE_COMPLEX, for double complex. */
#ifndef TESTS_LAPACK_HIDDEN_H
#define TESTS_LAPACK_HIDDEN_H

#include "tests/unit/lapack_drop_in.h"

#include <complex.h>

#ifdef HONE_COMPLEX
typedef double _Complex number;
#define HIDDEN_TEST(name) TEST(lapack, hidden_complex_##name)
#define HIDDEN_NAME(name) hidden_z_##name
#else
typedef double number;
#define HIDDEN_TEST(name) TEST(lapack, hidden_##name)
#define HIDDEN_NAME(name) hidden_d_##name
#endif

typedef void hidden_getrf_fn(const int *m, const int *n, number *a,
                             const int *lda, int *ipiv, int *info);
typedef void hidden_getrs_fn(const char *trans, const int *n, const int *nrhs,
                             const number *a, const int *lda, const int *ipiv,
                             number *b, const int *ldb, int *info,
                             size_t length);
typedef void hidden_potrf_fn(const char *uplo, const int *n, number *a,
                             const int *lda, int *info, size_t length);
typedef void hidden_potrs_fn(const char *uplo, const int *n, const int *nrhs,
                             const number *a, const int *lda, number *b,
                             const int *ldb, int *info, size_t length);
/* dgecon_, or dpocon_ with uplo in the place of norm. */
typedef void hidden_con_fn(const char *norm, const int *n, const number *a,
                           const int *lda, const double *anorm, double *rcond,
                           number *work, void *iwork, int *info, size_t length);
typedef void hidden_getri_fn(const int *n, number *a, const int *lda,
                             const int *ipiv, number *work, const int *lwork,
                             int *info);

/* The routines of the drop-in, or of the real LAPACK. */
typedef struct hidden_calls {
  drop_in d;
  hidden_getrf_fn *getrf;
  hidden_getrs_fn *getrs;
  hidden_potrf_fn *potrf;
  hidden_potrf_fn *potri;
  hidden_potrs_fn *potrs;
  hidden_con_fn *gecon, *pocon;
  hidden_getri_fn *getri;
} hidden_calls;

/* A system; in a, where uplo is not 0, the other triangle is NaN. */
typedef struct hidden_system {
  int n, nrhs, ld, ld_f, info, *ipiv;
  char uplo;
  number *full, *a, *b;   /* these stay */
  number *f, *x, *x_real; /* to be overwritten by calls */
} hidden_system;

#define hidden_open HIDDEN_NAME(open)
#define hidden_close HIDDEN_NAME(close)
#define hidden_make HIDDEN_NAME(make)
#define hidden_reset HIDDEN_NAME(reset)
#define hidden_free HIDDEN_NAME(free)
#define hidden_getrf HIDDEN_NAME(getrf)
#define hidden_getrs HIDDEN_NAME(getrs)
#define hidden_potrf HIDDEN_NAME(potrf)
#define hidden_potrs HIDDEN_NAME(potrs)
#define hidden_gecon HIDDEN_NAME(gecon)
#define hidden_pocon HIDDEN_NAME(pocon)
#define hidden_invert HIDDEN_NAME(invert)
#define hidden_backward_error HIDDEN_NAME(backward_error)
#define hidden_real_getrs HIDDEN_NAME(real_getrs)
#define hidden_real_solve HIDDEN_NAME(real_solve)
#define hidden_real_gecon HIDDEN_NAME(real_gecon)
#define hidden_real_pocon HIDDEN_NAME(real_pocon)
#define hidden_same_x HIDDEN_NAME(same_x)
#define hidden_check_getrf HIDDEN_NAME(check_getrf)
#define hidden_check_inverse HIDDEN_NAME(check_inverse)

/* Opens the drop-in with these values of HONE_LAPACK_HIDE (NULL: always) and
   HONE_LAPACK_HIDE_MIB (NULL: unset). */
hidden_calls hidden_open(const char *hide, const char *mib);
void hidden_close(hidden_calls *d);

hidden_system hidden_make(int n, int nrhs, char uplo);
void hidden_reset(hidden_system *s);
void hidden_free(hidden_system *s);

/* These start from A, or b; getrs and potrs also if the factors are others. */
void hidden_getrf(const hidden_calls *d, hidden_system *s);
void hidden_getrs(const hidden_calls *d, hidden_system *s, char trans);
void hidden_potrf(const hidden_calls *d, hidden_system *s);
void hidden_potrs(const hidden_calls *d, hidden_system *s);
void hidden_gecon(const hidden_calls *d, hidden_system *s, char norm,
                  double anorm, double *rcond);
void hidden_pocon(const hidden_calls *d, hidden_system *s, double anorm,
                  double *rcond);
void hidden_invert(const hidden_calls *d, hidden_system *s);

/* The largest of all columns of x, for op(A). */
double hidden_backward_error(const hidden_system *s, char trans);

/* The real LAPACK: getrs with s->f; factors of A and then x_real, or rcond. */
void hidden_real_getrs(hidden_system *s, char trans);
void hidden_real_solve(hidden_system *s, char trans);
void hidden_real_gecon(hidden_system *s, char norm, double anorm,
                       double *rcond);
void hidden_real_pocon(hidden_system *s, double anorm, double *rcond);
bool hidden_same_x(const hidden_system *s);
/* Check that f, ipiv and info are the real LAPACK's, bit for bit. */
void hidden_check_getrf(hidden_system *s);
void hidden_check_inverse(hidden_system *s);

#endif
