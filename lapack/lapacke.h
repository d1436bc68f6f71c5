/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines of LAPACK's C interface share LAPACKE's error codes, its search
   for NaN, and the transposition of row-major matrices. */
#ifndef HONE_LAPACK_LAPACKE_H
#define HONE_LAPACK_LAPACKE_H

#include "lapack/dropin.h"

/* These values are LAPACKE's. */
enum {
  LAPACK_ROW_MAJOR = 101,
  LAPACK_COL_MAJOR = 102,
  LAPACK_WORK_MEMORY_ERROR = -1010,
  LAPACK_TRANSPOSE_MEMORY_ERROR = -1011
};

/* Reports an error as LAPACKE does; returns info. */
int64_t hone_lapacke_error(hone_lapack_caller at, const char *name,
                           int64_t info);
/* Turns a Fortran routine's INFO into that of a routine whose first argument is
   the layout. */
static inline int64_t hone_lapacke_info(hone_lapack_caller at,
                                        const hone_lapack_integer *info) {
  const int64_t v = hone_lapack_get(at, info);
  return v < 0 ? v - 1 : v;
}
static inline bool hone_lapacke_layout(int layout) {
  return layout == LAPACK_ROW_MAJOR || layout == LAPACK_COL_MAJOR;
}

/* Tells whether arguments are searched for NaN (LAPACKE_set_nancheck,
   LAPACKE_NANCHECK=0). */
bool hone_lapacke_nancheck(hone_lapack_caller at);
/* Tells whether a rows x columns matrix has a NaN. Where lda is too small the
   answer is false. */
bool hone_lapacke_ge_nan(int layout, int64_t rows, int64_t columns,
                         const hone_entry *a, int64_t lda);
/* Does so for one triangle of an n x n matrix. */
bool hone_lapacke_po_nan(int layout, char uplo, int64_t n, const hone_entry *a,
                         int64_t lda);

/* Copies a row-major rows x columns matrix into new memory, column by column
   with ld max(1, rows). The result is to be freed; NULL: no memory. */
hone_entry *hone_lapacke_turn(int64_t rows, int64_t columns,
                              const hone_entry *a, int64_t lda);
/* Copies such a matrix back, row by row. */
void hone_lapacke_turn_back(int64_t rows, int64_t columns,
                            const hone_entry *turned, hone_entry *a,
                            int64_t lda);
/* Do so with one triangle of an n x n matrix; the other is neither read nor
   written. */
hone_entry *hone_lapacke_turn_triangle(bool upper, int64_t n,
                                       const hone_entry *a, int64_t lda);
void hone_lapacke_turn_triangle_back(bool upper, int64_t n,
                                     const hone_entry *turned, hone_entry *a,
                                     int64_t lda);

/* The work space of dsgesv and dsposv, which is not used where Hone solves. */
typedef struct hone_lapacke_mixed_room {
  hone_entry *work;
  hone_single *swork; /* n (n + nrhs) */
  double *rwork;
} hone_lapacke_mixed_room;
/* Returns false without memory; to be freed in either case. */
bool hone_lapacke_mixed_take(hone_lapacke_mixed_room *room, int64_t n,
                             int64_t nrhs);
void hone_lapacke_mixed_free(hone_lapacke_mixed_room *room);

/* The functions themselves ------------------------------------------------ */

/* Their arguments are those of LAPACKE, behind the caller. */
int64_t hone_lapacke_gesv(hone_lapack_caller at, int layout, int64_t n,
                          int64_t nrhs, hone_entry *a, int64_t lda, void *ipiv,
                          hone_entry *b, int64_t ldb);
int64_t hone_lapacke_gesv_work(hone_lapack_caller at, int layout, int64_t n,
                               int64_t nrhs, hone_entry *a, int64_t lda,
                               void *ipiv, hone_entry *b, int64_t ldb);
int64_t hone_lapacke_mixed_gesv(hone_lapack_caller at, int layout, int64_t n,
                                int64_t nrhs, hone_entry *a, int64_t lda,
                                void *ipiv, const hone_entry *b, int64_t ldb,
                                hone_entry *x, int64_t ldx, void *iter);
int64_t hone_lapacke_mixed_gesv_work(hone_lapack_caller at, int layout,
                                     int64_t n, int64_t nrhs, hone_entry *a,
                                     int64_t lda, void *ipiv,
                                     const hone_entry *b, int64_t ldb,
                                     hone_entry *x, int64_t ldx,
                                     hone_entry *work, hone_single *swork,
                                     double *rwork, void *iter);
int64_t hone_lapacke_getrf(hone_lapack_caller at, int layout, int64_t m,
                           int64_t n, hone_entry *a, int64_t lda, void *ipiv);
int64_t hone_lapacke_getrf_work(hone_lapack_caller at, int layout, int64_t m,
                                int64_t n, hone_entry *a, int64_t lda,
                                void *ipiv);
int64_t hone_lapacke_getrs(hone_lapack_caller at, int layout, char trans,
                           int64_t n, int64_t nrhs, const hone_entry *a,
                           int64_t lda, const void *ipiv, hone_entry *b,
                           int64_t ldb);
int64_t hone_lapacke_getrs_work(hone_lapack_caller at, int layout, char trans,
                                int64_t n, int64_t nrhs, const hone_entry *a,
                                int64_t lda, const void *ipiv, hone_entry *b,
                                int64_t ldb);
int64_t hone_lapacke_posv(hone_lapack_caller at, int layout, char uplo,
                          int64_t n, int64_t nrhs, hone_entry *a, int64_t lda,
                          hone_entry *b, int64_t ldb);
int64_t hone_lapacke_posv_work(hone_lapack_caller at, int layout, char uplo,
                               int64_t n, int64_t nrhs, hone_entry *a,
                               int64_t lda, hone_entry *b, int64_t ldb);
int64_t hone_lapacke_mixed_posv(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, int64_t nrhs, hone_entry *a,
                                int64_t lda, const hone_entry *b, int64_t ldb,
                                hone_entry *x, int64_t ldx, void *iter);
int64_t hone_lapacke_mixed_posv_work(hone_lapack_caller at, int layout,
                                     char uplo, int64_t n, int64_t nrhs,
                                     hone_entry *a, int64_t lda,
                                     const hone_entry *b, int64_t ldb,
                                     hone_entry *x, int64_t ldx,
                                     hone_entry *work, hone_single *swork,
                                     double *rwork, void *iter);
int64_t hone_lapacke_potrf(hone_lapack_caller at, int layout, char uplo,
                           int64_t n, hone_entry *a, int64_t lda);
int64_t hone_lapacke_potrf_work(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, hone_entry *a, int64_t lda);
int64_t hone_lapacke_potrs(hone_lapack_caller at, int layout, char uplo,
                           int64_t n, int64_t nrhs, const hone_entry *a,
                           int64_t lda, hone_entry *b, int64_t ldb);
int64_t hone_lapacke_potrs_work(hone_lapack_caller at, int layout, char uplo,
                                int64_t n, int64_t nrhs, const hone_entry *a,
                                int64_t lda, hone_entry *b, int64_t ldb);

/* LAPACKE_dsysv, dsytrf, dsytrs and the Hermitian ones. */
typedef enum hone_lapacke_job {
  HONE_LAPACKE_SOLVE,
  HONE_LAPACKE_FACTOR,
  HONE_LAPACKE_SOLVE_FACTORED /* a has factors, and stays */
} hone_lapacke_job;

/* Their arguments. */
typedef struct hone_lapacke_symmetric {
  hone_lapack_caller at;
  hone_lapack_kind kind; /* symmetric or Hermitian */
  hone_lapacke_job job;
  int layout;
  char uplo;
  int64_t n, nrhs; /* nrhs is 0 for dsytrf */
  hone_entry *a;
  int64_t lda;
  void *ipiv;
  hone_entry *b; /* NULL for dsytrf */
  int64_t ldb;
  hone_entry *work; /* of the _work routines */
  int64_t lwork;
} hone_lapacke_symmetric;
int64_t hone_lapacke_symmetric_call(const hone_lapacke_symmetric *c);
/* The _work routines. */
int64_t hone_lapacke_symmetric_work(const hone_lapacke_symmetric *c);

#endif
