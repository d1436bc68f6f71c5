/* SPDX-License-Identifier: BSD-3-Clause */
/* The exported routines. This file is compiled once for each scalar type and
   each interface of interfaces.h, whose name is HONE_INTERFACE: the names and
   the integers of its routines are that interface's. */
#include "lapack/lapacke.h"

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#ifdef HONE_COMPLEX
#define SCALAR(name) z##name
#define MIXED(name) zc##name
#define RWORK rwork
#define CONDITION_WORK double
#define SY(name) zsy##name
#define HE(name) zhe##name
#define IWORK NULL /* the real zsycon_ has none */
#else
#define SCALAR(name) d##name
#define MIXED(name) ds##name
#define RWORK NULL /* the real dsgesv_ has none */
#define CONDITION_WORK integer
#define SY(name) dsy##name
#define IWORK iwork
#endif

#define FORTRAN(name) HONE_FORTRAN_NAME(HONE_INTERFACE, name)
#define LAPACKE(name) HONE_C_NAME(HONE_INTERFACE, HONE_PASTE(LAPACKE_, name, ))
#define WORK(name)                                                             \
  HONE_C_NAME(HONE_INTERFACE, HONE_PASTE(LAPACKE_, name, _work))

typedef HONE_PASTE(HONE_INTEGER_, HONE_INTERFACE, ) integer;

/* EXPORT(type, name, (parameters)) is the head of an exported function. */
#define EXPORT(type, name, parameters)                                         \
  __attribute__((visibility("default"))) type name parameters;                 \
  type name parameters

/* Counts the call of an exported name. In what follows, at is its caller. */
#define ENTER(called)                                                          \
  const hone_lapack_caller at = {__builtin_return_address(0),                  \
                                 HONE_PASTE(HONE_, HONE_INTERFACE, )};         \
  static hone_lapack_count count = {.name = TEXT(called)};                     \
  hone_lapack_seen(&count, at)

/* dgecon_ or dpocon_, whose first argument is NORM or UPLO. */
#define CONDITION(con)                                                         \
  EXPORT(void, FORTRAN(SCALAR(con)),                                           \
         (const char *first, const integer *n, const hone_entry *a,            \
          const integer *lda, const double *anorm, double *rcond,              \
          hone_entry *work, CONDITION_WORK *iwork, integer *info,              \
          size_t length)) {                                                    \
    ENTER(FORTRAN(SCALAR(con)));                                               \
    hone_lapack_##con(at, first, n, a, lda, anorm, rcond, work, iwork, info,   \
                      length);                                                 \
  }

/* LU, Fortran ------------------------------------------------------------- */

EXPORT(void, FORTRAN(SCALAR(gesv)),
       (const integer *n, const integer *nrhs, hone_entry *a,
        const integer *lda, integer *ipiv, hone_entry *b, const integer *ldb,
        integer *info)) {
  ENTER(FORTRAN(SCALAR(gesv)));
  hone_lapack_gesv(at, n, nrhs, a, lda, ipiv, b, ldb, info);
}

EXPORT(void, FORTRAN(MIXED(gesv)),
       (const integer *n, const integer *nrhs, hone_entry *a,
        const integer *lda, integer *ipiv, const hone_entry *b,
        const integer *ldb, hone_entry *x, const integer *ldx, hone_entry *work,
        hone_single *swork, HONE_RWORK(double *rwork) integer *iter,
        integer *info)) {
  ENTER(FORTRAN(MIXED(gesv)));
  hone_lapack_mixed_gesv(at, n, nrhs, a, lda, ipiv, b, ldb, x, ldx, work, swork,
                         RWORK, iter, info);
}

EXPORT(void, FORTRAN(SCALAR(getrf)),
       (const integer *m, const integer *n, hone_entry *a, const integer *lda,
        integer *ipiv, integer *info)) {
  ENTER(FORTRAN(SCALAR(getrf)));
  hone_lapack_getrf(at, m, n, a, lda, ipiv, info);
}

EXPORT(void, FORTRAN(SCALAR(getrs)),
       (const char *trans, const integer *n, const integer *nrhs,
        const hone_entry *a, const integer *lda, const integer *ipiv,
        hone_entry *b, const integer *ldb, integer *info, size_t length)) {
  ENTER(FORTRAN(SCALAR(getrs)));
  hone_lapack_getrs(at, trans, n, nrhs, a, lda, ipiv, b, ldb, info, length);
}

CONDITION(gecon)

EXPORT(void, FORTRAN(SCALAR(getri)),
       (const integer *n, hone_entry *a, const integer *lda,
        const integer *ipiv, hone_entry *work, const integer *lwork,
        integer *info)) {
  ENTER(FORTRAN(SCALAR(getri)));
  hone_lapack_getri(at, n, a, lda, ipiv, work, lwork, info);
}

/* Cholesky, Fortran ------------------------------------------------------- */

EXPORT(void, FORTRAN(SCALAR(posv)),
       (const char *uplo, const integer *n, const integer *nrhs, hone_entry *a,
        const integer *lda, hone_entry *b, const integer *ldb, integer *info,
        size_t length)) {
  ENTER(FORTRAN(SCALAR(posv)));
  hone_lapack_posv(at, uplo, n, nrhs, a, lda, b, ldb, info, length);
}

EXPORT(void, FORTRAN(MIXED(posv)),
       (const char *uplo, const integer *n, const integer *nrhs, hone_entry *a,
        const integer *lda, const hone_entry *b, const integer *ldb,
        hone_entry *x, const integer *ldx, hone_entry *work, hone_single *swork,
        HONE_RWORK(double *rwork) integer *iter, integer *info,
        size_t length)) {
  ENTER(FORTRAN(MIXED(posv)));
  hone_lapack_mixed_posv(at, uplo, n, nrhs, a, lda, b, ldb, x, ldx, work, swork,
                         RWORK, iter, info, length);
}

EXPORT(void, FORTRAN(SCALAR(potrf)),
       (const char *uplo, const integer *n, hone_entry *a, const integer *lda,
        integer *info, size_t length)) {
  ENTER(FORTRAN(SCALAR(potrf)));
  hone_lapack_potrf(at, uplo, n, a, lda, info, length);
}

EXPORT(void, FORTRAN(SCALAR(potrs)),
       (const char *uplo, const integer *n, const integer *nrhs,
        const hone_entry *a, const integer *lda, hone_entry *b,
        const integer *ldb, integer *info, size_t length)) {
  ENTER(FORTRAN(SCALAR(potrs)));
  hone_lapack_potrs(at, uplo, n, nrhs, a, lda, b, ldb, info, length);
}

CONDITION(pocon)

EXPORT(void, FORTRAN(SCALAR(potri)),
       (const char *uplo, const integer *n, hone_entry *a, const integer *lda,
        integer *info, size_t length)) {
  ENTER(FORTRAN(SCALAR(potri)));
  hone_lapack_potri(at, uplo, n, a, lda, info, length);
}

/* Symmetric and Hermitian, Fortran ---------------------------------------- */

#define BY(of)                                                                 \
  { .at = at, .kind = of, .uplo = uplo, .may_hide = true }

/* The five routines sv, trf, trs, con and tri of a kind, whose names are made
   by NAME. */
#define SYMMETRIC(NAME, kind)                                                  \
  EXPORT(void, FORTRAN(NAME(sv)),                                              \
         (const char *uplo, const integer *n, const integer *nrhs,             \
          hone_entry *a, const integer *lda, integer *ipiv, hone_entry *b,     \
          const integer *ldb, hone_entry *work, const integer *lwork,          \
          integer *info, size_t length)) {                                     \
    ENTER(FORTRAN(NAME(sv)));                                                  \
    const hone_lapack_symmetric_call by = BY(kind);                            \
    (void)length;                                                              \
    hone_lapack_sysv(by, n, nrhs, a, lda, ipiv, b, ldb, work, lwork, info);    \
  }                                                                            \
  EXPORT(void, FORTRAN(NAME(trf)),                                             \
         (const char *uplo, const integer *n, hone_entry *a,                   \
          const integer *lda, integer *ipiv, hone_entry *work,                 \
          const integer *lwork, integer *info, size_t length)) {               \
    ENTER(FORTRAN(NAME(trf)));                                                 \
    const hone_lapack_symmetric_call by = BY(kind);                            \
    (void)length;                                                              \
    hone_lapack_sytrf(by, n, a, lda, ipiv, work, lwork, info);                 \
  }                                                                            \
  EXPORT(void, FORTRAN(NAME(trs)),                                             \
         (const char *uplo, const integer *n, const integer *nrhs,             \
          const hone_entry *a, const integer *lda, const integer *ipiv,        \
          hone_entry *b, const integer *ldb, integer *info, size_t length)) {  \
    ENTER(FORTRAN(NAME(trs)));                                                 \
    const hone_lapack_symmetric_call by = BY(kind);                            \
    (void)length;                                                              \
    hone_lapack_sytrs(by, n, nrhs, a, lda, ipiv, b, ldb, info);                \
  }                                                                            \
  EXPORT(void, FORTRAN(NAME(con)),                                             \
         (const char *uplo, const integer *n, const hone_entry *a,             \
          const integer *lda, const integer *ipiv, const double *anorm,        \
          double *rcond, hone_entry *work,                                     \
          HONE_IWORK(integer *iwork) integer *info, size_t length)) {          \
    ENTER(FORTRAN(NAME(con)));                                                 \
    const hone_lapack_symmetric_call by = BY(kind);                            \
    (void)length;                                                              \
    hone_lapack_sycon(by, n, a, lda, ipiv, anorm, rcond, work, IWORK, info);   \
  }                                                                            \
  EXPORT(void, FORTRAN(NAME(tri)),                                             \
         (const char *uplo, const integer *n, hone_entry *a,                   \
          const integer *lda, const integer *ipiv, hone_entry *work,           \
          integer *info, size_t length)) {                                     \
    ENTER(FORTRAN(NAME(tri)));                                                 \
    const hone_lapack_symmetric_call by = BY(kind);                            \
    (void)length;                                                              \
    hone_lapack_sytri(by, n, a, lda, ipiv, work, info);                        \
  }

SYMMETRIC(SY, HONE_LAPACK_SYMMETRIC)
#ifdef HONE_COMPLEX
SYMMETRIC(HE, HONE_LAPACK_HERMITIAN)
#endif

/* LU, C ------------------------------------------------------------------- */

EXPORT(integer, WORK(SCALAR(gesv)),
       (int layout, integer n, integer nrhs, hone_entry *a, integer lda,
        integer *ipiv, hone_entry *b, integer ldb)) {
  ENTER(WORK(SCALAR(gesv)));
  return (integer)hone_lapacke_gesv_work(at, layout, n, nrhs, a, lda, ipiv, b,
                                         ldb);
}

EXPORT(integer, LAPACKE(SCALAR(gesv)),
       (int layout, integer n, integer nrhs, hone_entry *a, integer lda,
        integer *ipiv, hone_entry *b, integer ldb)) {
  ENTER(LAPACKE(SCALAR(gesv)));
  return (integer)hone_lapacke_gesv(at, layout, n, nrhs, a, lda, ipiv, b, ldb);
}

EXPORT(integer, WORK(MIXED(gesv)),
       (int layout, integer n, integer nrhs, hone_entry *a, integer lda,
        integer *ipiv, hone_entry *b, integer ldb, hone_entry *x, integer ldx,
        hone_entry *work, hone_single *swork,
        HONE_RWORK(double *rwork) integer *iter)) {
  ENTER(WORK(MIXED(gesv)));
  return (integer)hone_lapacke_mixed_gesv_work(at, layout, n, nrhs, a, lda,
                                               ipiv, b, ldb, x, ldx, work,
                                               swork, RWORK, iter);
}

EXPORT(integer, LAPACKE(MIXED(gesv)),
       (int layout, integer n, integer nrhs, hone_entry *a, integer lda,
        integer *ipiv, hone_entry *b, integer ldb, hone_entry *x, integer ldx,
        integer *iter)) {
  ENTER(LAPACKE(MIXED(gesv)));
  return (integer)hone_lapacke_mixed_gesv(at, layout, n, nrhs, a, lda, ipiv, b,
                                          ldb, x, ldx, iter);
}

EXPORT(integer, WORK(SCALAR(getrf)),
       (int layout, integer m, integer n, hone_entry *a, integer lda,
        integer *ipiv)) {
  ENTER(WORK(SCALAR(getrf)));
  return (integer)hone_lapacke_getrf_work(at, layout, m, n, a, lda, ipiv);
}

EXPORT(integer, LAPACKE(SCALAR(getrf)),
       (int layout, integer m, integer n, hone_entry *a, integer lda,
        integer *ipiv)) {
  ENTER(LAPACKE(SCALAR(getrf)));
  return (integer)hone_lapacke_getrf(at, layout, m, n, a, lda, ipiv);
}

EXPORT(integer, WORK(SCALAR(getrs)),
       (int layout, char trans, integer n, integer nrhs, const hone_entry *a,
        integer lda, const integer *ipiv, hone_entry *b, integer ldb)) {
  ENTER(WORK(SCALAR(getrs)));
  return (integer)hone_lapacke_getrs_work(at, layout, trans, n, nrhs, a, lda,
                                          ipiv, b, ldb);
}

EXPORT(integer, LAPACKE(SCALAR(getrs)),
       (int layout, char trans, integer n, integer nrhs, const hone_entry *a,
        integer lda, const integer *ipiv, hone_entry *b, integer ldb)) {
  ENTER(LAPACKE(SCALAR(getrs)));
  return (integer)hone_lapacke_getrs(at, layout, trans, n, nrhs, a, lda, ipiv,
                                     b, ldb);
}

/* Cholesky, C ------------------------------------------------------------- */

EXPORT(integer, WORK(SCALAR(posv)),
       (int layout, char uplo, integer n, integer nrhs, hone_entry *a,
        integer lda, hone_entry *b, integer ldb)) {
  ENTER(WORK(SCALAR(posv)));
  return (integer)hone_lapacke_posv_work(at, layout, uplo, n, nrhs, a, lda, b,
                                         ldb);
}

EXPORT(integer, LAPACKE(SCALAR(posv)),
       (int layout, char uplo, integer n, integer nrhs, hone_entry *a,
        integer lda, hone_entry *b, integer ldb)) {
  ENTER(LAPACKE(SCALAR(posv)));
  return (integer)hone_lapacke_posv(at, layout, uplo, n, nrhs, a, lda, b, ldb);
}

EXPORT(integer, WORK(MIXED(posv)),
       (int layout, char uplo, integer n, integer nrhs, hone_entry *a,
        integer lda, hone_entry *b, integer ldb, hone_entry *x, integer ldx,
        hone_entry *work, hone_single *swork,
        HONE_RWORK(double *rwork) integer *iter)) {
  ENTER(WORK(MIXED(posv)));
  return (integer)hone_lapacke_mixed_posv_work(at, layout, uplo, n, nrhs, a,
                                               lda, b, ldb, x, ldx, work, swork,
                                               RWORK, iter);
}

EXPORT(integer, LAPACKE(MIXED(posv)),
       (int layout, char uplo, integer n, integer nrhs, hone_entry *a,
        integer lda, hone_entry *b, integer ldb, hone_entry *x, integer ldx,
        integer *iter)) {
  ENTER(LAPACKE(MIXED(posv)));
  return (integer)hone_lapacke_mixed_posv(at, layout, uplo, n, nrhs, a, lda, b,
                                          ldb, x, ldx, iter);
}

EXPORT(integer, WORK(SCALAR(potrf)),
       (int layout, char uplo, integer n, hone_entry *a, integer lda)) {
  ENTER(WORK(SCALAR(potrf)));
  return (integer)hone_lapacke_potrf_work(at, layout, uplo, n, a, lda);
}

EXPORT(integer, LAPACKE(SCALAR(potrf)),
       (int layout, char uplo, integer n, hone_entry *a, integer lda)) {
  ENTER(LAPACKE(SCALAR(potrf)));
  return (integer)hone_lapacke_potrf(at, layout, uplo, n, a, lda);
}

EXPORT(integer, WORK(SCALAR(potrs)),
       (int layout, char uplo, integer n, integer nrhs, const hone_entry *a,
        integer lda, hone_entry *b, integer ldb)) {
  ENTER(WORK(SCALAR(potrs)));
  return (integer)hone_lapacke_potrs_work(at, layout, uplo, n, nrhs, a, lda, b,
                                          ldb);
}

EXPORT(integer, LAPACKE(SCALAR(potrs)),
       (int layout, char uplo, integer n, integer nrhs, const hone_entry *a,
        integer lda, hone_entry *b, integer ldb)) {
  ENTER(LAPACKE(SCALAR(potrs)));
  return (integer)hone_lapacke_potrs(at, layout, uplo, n, nrhs, a, lda, b, ldb);
}

/* Symmetric and Hermitian, C ---------------------------------------------- */

/* sv, trf and trs of a kind, and their _work routines. */
#define SYMMETRIC_C(NAME, of)                                                  \
  EXPORT(integer, WORK(NAME(sv)),                                              \
         (int layout, char uplo, integer n, integer nrhs, hone_entry *a,       \
          integer lda, integer *ipiv, hone_entry *b, integer ldb,              \
          hone_entry *work, integer lwork)) {                                  \
    ENTER(WORK(NAME(sv)));                                                     \
    const hone_lapacke_symmetric c = {at,     of,   HONE_LAPACKE_SOLVE,        \
                                      layout, uplo, n,                         \
                                      nrhs,   a,    lda,                       \
                                      ipiv,   b,    ldb,                       \
                                      work,   lwork};                          \
    return (integer)hone_lapacke_symmetric_work(&c);                           \
  }                                                                            \
  EXPORT(integer, LAPACKE(NAME(sv)),                                           \
         (int layout, char uplo, integer n, integer nrhs, hone_entry *a,       \
          integer lda, integer *ipiv, hone_entry *b, integer ldb)) {           \
    ENTER(LAPACKE(NAME(sv)));                                                  \
    const hone_lapacke_symmetric c = {at,     of,   HONE_LAPACKE_SOLVE,        \
                                      layout, uplo, n,                         \
                                      nrhs,   a,    lda,                       \
                                      ipiv,   b,    ldb,                       \
                                      NULL,   0};                              \
    return (integer)hone_lapacke_symmetric_call(&c);                           \
  }                                                                            \
  EXPORT(integer, WORK(NAME(trf)),                                             \
         (int layout, char uplo, integer n, hone_entry *a, integer lda,        \
          integer *ipiv, hone_entry *work, integer lwork)) {                   \
    ENTER(WORK(NAME(trf)));                                                    \
    const hone_lapacke_symmetric c = {at,     of,   HONE_LAPACKE_FACTOR,       \
                                      layout, uplo, n,                         \
                                      0,      a,    lda,                       \
                                      ipiv,   NULL, 1,                         \
                                      work,   lwork};                          \
    return (integer)hone_lapacke_symmetric_work(&c);                           \
  }                                                                            \
  EXPORT(integer, LAPACKE(NAME(trf)),                                          \
         (int layout, char uplo, integer n, hone_entry *a, integer lda,        \
          integer *ipiv)) {                                                    \
    ENTER(LAPACKE(NAME(trf)));                                                 \
    const hone_lapacke_symmetric c = {at,     of,   HONE_LAPACKE_FACTOR,       \
                                      layout, uplo, n,                         \
                                      0,      a,    lda,                       \
                                      ipiv,   NULL, 1,                         \
                                      NULL,   0};                              \
    return (integer)hone_lapacke_symmetric_call(&c);                           \
  }                                                                            \
  EXPORT(integer, WORK(NAME(trs)),                                             \
         (int layout, char uplo, integer n, integer nrhs, const hone_entry *a, \
          integer lda, const integer *ipiv, hone_entry *b, integer ldb)) {     \
    ENTER(WORK(NAME(trs)));                                                    \
    const hone_lapacke_symmetric c = FACTORED(of);                             \
    return (integer)hone_lapacke_symmetric_work(&c);                           \
  }                                                                            \
  EXPORT(integer, LAPACKE(NAME(trs)),                                          \
         (int layout, char uplo, integer n, integer nrhs, const hone_entry *a, \
          integer lda, const integer *ipiv, hone_entry *b, integer ldb)) {     \
    ENTER(LAPACKE(NAME(trs)));                                                 \
    const hone_lapacke_symmetric c = FACTORED(of);                             \
    return (integer)hone_lapacke_symmetric_call(&c);                           \
  }

/* The arguments of dsytrs; a and ipiv are not written. */
#define FACTORED(of)                                                           \
  {                                                                            \
    at, of, HONE_LAPACKE_SOLVE_FACTORED, layout, uplo, n, nrhs,                \
        (hone_entry *)(uintptr_t)a, lda, (integer *)(uintptr_t)ipiv, b, ldb,   \
        NULL, 0                                                                \
  }

SYMMETRIC_C(SY, HONE_LAPACK_SYMMETRIC)
#ifdef HONE_COMPLEX
SYMMETRIC_C(HE, HONE_LAPACK_HERMITIAN)
#endif

/* LAPACK's own build with 64-bit integers names its C functions otherwise. */

#if HONE_OTHER_C_NAMES
#define ALIAS(name, old)                                                       \
  extern __attribute__((alias(TEXT(old)),                                      \
                        visibility("default"))) __typeof__(old) name
#define BOTH(name)                                                             \
  ALIAS(HONE_PASTE(LAPACKE_, name, _64), LAPACKE(name));                       \
  ALIAS(HONE_PASTE(LAPACKE_, name, _work_64), WORK(name))
BOTH(SCALAR(gesv));
BOTH(MIXED(gesv));
BOTH(SCALAR(getrf));
BOTH(SCALAR(getrs));
BOTH(SCALAR(posv));
BOTH(MIXED(posv));
BOTH(SCALAR(potrf));
BOTH(SCALAR(potrs));
BOTH(SCALAR(sysv));
BOTH(SCALAR(sytrf));
BOTH(SCALAR(sytrs));
#ifdef HONE_COMPLEX
BOTH(HE(sv));
BOTH(HE(trf));
BOTH(HE(trs));
#endif
#endif
