/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method by sections, on a CUDA device, in single or double
   precision:

     L. Cejka, Parallel LU Decomposition for the GPU, Czech Technical
     University, Prague, 2022.

   As in the publication there is no pivoting, so a leading minor that is zero,
   or nearly so, makes the factors useless. Hone's solver does not depend on
   this method. Read next: crout.cu for the whole matrix, crout_triangle.cu for
   a triangle inside the blocked LU, crout_sweep.h for the sweeps of both.

   A = L U with U unit upper triangular and the pivots on the diagonal of L.
   Both are stored in one n x n matrix Z, column by column, without U's
   diagonal. A section is a block of Z, and a sweep computes all its elements
   anew, until a sweep changes none of them (the section is then at rest):

     l_ij <- a_ij - sum_{k<j} l_ik u_kj               (i >= j)
     u_ij <- (a_ij - sum_{k<i} l_ik u_kj) / l_ii      (i < j)

   The sections are computed in this order: one on the diagonal, then the pair
   beside it to the right and below, the next pair further out, and so on. No
   element depends on itself, so a diagonal section of s columns is at rest
   after 2 s sweeps and a pair after s + 1, whatever the guess was. With
   tolerance 0 it then has the bits that the direct method computes.

   Six things differ from the publication. A change that is NaN or Inf counts as
   a change (there such sections counted as converged). The number of sweeps is
   bounded. A zero pivot is a status, and only when its section is at rest. The
   sections of a pair stop independently. A is copied one section at a time,
   instead of twice as a whole. The product of the finished columns, which does
   not change any more, may be computed once for each section. */
#ifndef HONE_CROUT_H
#define HONE_CROUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = A B, all on the device and column-major. */
typedef struct hone_crout_product_s {
  int64_t m, n, k;
  const float *a, *b;    /* m x k, lda; k x n, ldb */
  float *c;              /* m x n, ldc */
  int64_t lda, ldb, ldc; /* leading dimensions */
} hone_crout_product_s;
typedef struct hone_crout_product_d { /* the same in double precision */
  int64_t m, n, k;
  const double *a, *b;
  double *c;
  int64_t lda, ldb, ldc;
} hone_crout_product_d;

/* Products on a stream (a cudaStream_t). They return HONE_OK or another status
   of hone.h. */
typedef struct hone_crout_blas {
  int (*gemm_s)(void *self, void *stream, const hone_crout_product_s *p);
  int (*gemm_d)(void *self, void *stream, const hone_crout_product_d *p);
  void *self;
} hone_crout_blas;

/* options.guess: where the iteration starts */
enum {
  HONE_CROUT_SCALED = 0, /* A less the product of the finished columns,
                             rows of U divided by pivots */
  HONE_CROUT_RAW = 1     /* A itself, as published */
};

/* options.prefix: the product of the columns before the section */
enum {
  HONE_CROUT_GEMM = 0,  /* once for each section, by options.blas or cuBLAS;
                           as HONE_CROUT_ONCE where there is neither */
  HONE_CROUT_ONCE = 1,  /* once for each section, by a kernel of crout.cu */
  HONE_CROUT_REDONE = 2 /* again in every sweep, as published */
};

/* Zero is the default of every option. The publication has RAW, REDONE, and 1
   sweep for each time that the flag is read. */
typedef struct hone_crout_options {
  int32_t block;           /* 8, 16 or 32 (0): threads are block x block */
  int32_t guess;           /* HONE_CROUT_SCALED or _RAW */
  int32_t prefix;          /* HONE_CROUT_GEMM, _ONCE or _REDONE */
  int32_t sweeps_per_read; /* sweeps enqueued at a time, 1 to 64; 0: 8. Sweeps
                              behind one that changed nothing return at once
                              and are not counted */
  int64_t section;         /* columns; 0: n / 10, at least 256, at most 1024.
                              Rounded up to a multiple of block */
  double tolerance;        /* absolute; 0: until nothing changes */
  int64_t max_diagonal;    /* sweeps; 0, or too many: 2 s */
  int64_t max_pair;        /* sweeps; 0, or too many: s + 1. A section that is
                              not at rest then is solved directly */
  const hone_crout_blas *blas; /* copied; NULL: cuBLAS, looked for at run
                                  time */
} hone_crout_options;

typedef struct hone_crout_report {
  int32_t status;
  int32_t prefix; /* HONE_CROUT_GEMM, ...: the one that was used */
  int64_t n, section;
  int64_t diagonals, pairs; /* including pairs narrower than the others */
  int64_t diagonal_sweeps, diagonal_most; /* sum and maximum over sections */
  int64_t pair_sweeps, pair_most; /* the same for pairs, each by the section
                                     with more sweeps. The last sweep, which
                                     changes nothing, counts */
  int64_t at_bound; /* sections not at rest after the last sweep allowed */
  int64_t direct;   /* those of them that are parts of pairs: solved directly */
  int64_t column;   /* of the first pivot that is zero, or of the first entry
                       that is not finite, by the status; else -1 */
  double milliseconds;
} hone_crout_report;

typedef struct hone_crout hone_crout;

/* Creates two streams, workspace (four sections of doubles on the device) and
   cuBLAS handles for orders up to n on the current device; options NULL:
   defaults. The caller destroys the object; destroying NULL does nothing.
   Creating and destroying may wait for the whole device (the runtime does),
   factorizations wait for their own streams alone. Returns HONE_OK, or
   HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_OPTION, HONE_NO_MEMORY,
   HONE_DEVICE_FAILED, with *crout NULL. */
int hone_crout_create(hone_crout **crout, int64_t n,
                      const hone_crout_options *options);
void hone_crout_destroy(hone_crout *crout);

/* The section size for order n. */
int64_t hone_crout_section(int64_t n, const hone_crout_options *options);

/* Factors the device matrix a (n x n, lda, no operation pending on it) in
   place: it becomes Z. Returns when that is complete. report may be NULL. One
   call at a time for one crout. Statuses:
     HONE_OK             every section is at rest, every entry finite
     HONE_NOT_CONVERGED  a diagonal section is not at rest: with tolerance 0
                         only where options.max_diagonal is below 2 s
     HONE_SINGULAR       the pivot of report->column is zero
     HONE_OVERFLOW       an entry of report->column is NaN or Inf, in A or in
                         its factors
     HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_LEADING_DIMENSION,
     HONE_DEVICE_FAILED
   Where a status is not HONE_OK and not about an argument, a is part Z and part
   A. */
int hone_crout_s(hone_crout *crout, int64_t n, float *a, int64_t lda,
                 hone_crout_report *report);
int hone_crout_d(hone_crout *crout, int64_t n, double *a, int64_t lda,
                 hone_crout_report *report);

/* ---- One triangle, inside a blocked LU --------------------------------- */

enum { HONE_CROUT_WIDTH = 1024, HONE_CROUT_FLAGS = 72 };

/* solver.guess */
enum {
  HONE_CROUT_FROM_B = 0,
  HONE_CROUT_FROM_X = 1 /* the caller has put X, packed, at work */
};

/* The choices for the iteration, and its memory, which stays the caller's. */
typedef struct hone_crout_solver {
  int32_t block, guess, sweeps_per_read; /* as above */
  double tolerance;   /* of |u_jj| times the change, relative to the largest
                         |b| of the row. 0: until nothing changes */
  int64_t max_sweeps; /* 0, or too many: k + 1 */
  void *stream;       /* cudaStream_t; waited for */
  void *work;         /* device, hone_crout_work_bytes(k, m), 16-aligned */
  int *seen;          /* pinned host memory, HONE_CROUT_FLAGS ints */
  int32_t unit;       /* U's diagonal is taken as ones, and not read */
} hone_crout_solver;

int64_t hone_crout_work_bytes(int64_t k, int64_t m);

/* b = b inv(U): U upper, k x k, with its diagonal, k <= HONE_CROUT_WIDTH; b
   m x k; column-major. The iteration is X <- (B - X strict(U)) inv(diag(U)).
   Entries below U's diagonal are not read. The factorization keeps F row by
   row, so L X = B there is X^T L^T = B^T here, with U = L^T unit. Returns
   HONE_OK; HONE_NOT_CONVERGED when max_sweeps were not enough or numbers are
   not finite: b is then B again, for a direct solve. Otherwise
   HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_LEADING_DIMENSION or
   HONE_BAD_OPTION, with b untouched, or HONE_DEVICE_FAILED. *sweeps: sweeps
   made; may be NULL. */
int hone_crout_columns(const hone_crout_solver *how, int64_t k, int64_t m,
                       const float *u, int64_t ldu, float *b, int64_t ldb,
                       int64_t *sweeps);

#ifdef __cplusplus
}
#endif

#endif
