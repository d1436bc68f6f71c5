/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method by sections, on a CUDA device:

     L. Cejka, Parallel LU Decomposition for the GPU, Czech Technical
     University, Prague, 2022.

   There is no pivoting: a leading minor that is zero, or near it, makes the
   factors useless. That is the method; Hone's solver does not rest on it.

   A = L U with U unit upper and the pivots on the diagonal of L; both stand
   in one n x n matrix Z, column by column, U's diagonal not stored. Every
   element is iterated on until a sweep changes none of its section:

     l_ij <- a_ij - sum_{k<j} l_ik u_kj               (i >= j)
     u_ij <- (a_ij - sum_{k<i} l_ik u_kj) / l_ii      (i < j)

   first for a section on the diagonal, then for the pair of sections to its
   right and below it, the next pair outward, and so on. No element depends
   on itself, so a diagonal section of s columns is at rest after 2 s sweeps
   and a pair after s + 1, whatever the guess was, and with tolerance 0 it
   then holds what the direct method computes.

   Corrected here, against the publication: a change that is NaN or Inf
   counts as a change (there such sections were called converged); sweeps
   are bounded; a zero pivot is a status, and only when its section is at
   rest; sections of a pair stop each for itself; A is copied one section at
   a time, not whole, twice; the product of the finished columns, which no
   longer moves, may be computed once for each section. */
#ifndef HONE_CROUT_H
#define HONE_CROUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = A B on a stream (a cudaStream_t): A m x k, B k x n, C m x n on the
   device, column by column. Returns HONE_OK or another status of hone.h. */
typedef struct hone_crout_blas {
  int (*gemm_s)(void *self, void *stream, int64_t m, int64_t n, int64_t k,
                const float *a, int64_t lda, const float *b, int64_t ldb,
                float *c, int64_t ldc);
  int (*gemm_d)(void *self, void *stream, int64_t m, int64_t n, int64_t k,
                const double *a, int64_t lda, const double *b, int64_t ldb,
                double *c, int64_t ldc);
  void *self;
} hone_crout_blas;

/* options.guess, for the whole matrix */
enum {
  HONE_CROUT_SCALED = 0, /* what is left of A, rows of U divided by pivots */
  HONE_CROUT_RAW = 1     /* A itself, as published */
};

/* options.prefix: the product of the columns before the section */
enum {
  HONE_CROUT_GEMM = 0,  /* once for each section, by options.blas or cuBLAS;
                           as HONE_CROUT_ONCE where there is neither */
  HONE_CROUT_ONCE = 1,  /* once for each section, by a kernel of this file */
  HONE_CROUT_REDONE = 2 /* again in every sweep, as published */
};

/* Zero is the default everywhere. As published: RAW, REDONE, and 1 sweep for
   each time the flag is read. */
typedef struct hone_crout_options {
  int32_t block;           /* 8, 16 or 32 (0): threads are block x block */
  int32_t guess;           /* HONE_CROUT_SCALED or _RAW */
  int32_t prefix;          /* HONE_CROUT_GEMM, _ONCE or _REDONE */
  int32_t sweeps_per_read; /* sweeps enqueued at a time, 1 to 64; 0: 8. Those
                              after the last that changed anything return at
                              once and are not counted */
  int64_t section;         /* columns; 0: n / 10, at least 256, at most 1024.
                              Rounded up to a multiple of block */
  double tolerance;        /* absolute; 0: until nothing changes */
  int64_t max_diagonal;    /* sweeps; 0, or too many: 2 s */
  int64_t max_pair;        /* sweeps; 0, or too many: s + 1. A section beyond
                              it is solved directly */
  const hone_crout_blas *blas; /* copied; NULL: cuBLAS, looked for at run
                                  time */
} hone_crout_options;

typedef struct hone_crout_report {
  int32_t status;
  int32_t prefix; /* HONE_CROUT_GEMM, ...: what was done */
  int64_t n, section;
  int64_t diagonals, pairs; /* a pair with a ragged edge is one too */
  int64_t diagonal_sweeps, diagonal_most; /* sum and maximum over sections, */
  int64_t pair_sweeps, pair_most; /* the longer of the two counts for a pair;
                                     the sweep that changes nothing counts */
  int64_t at_bound; /* sections not at rest after their last sweep allowed */
  int64_t direct;   /* of these, sections of pairs solved directly */
  int64_t column;   /* of the first pivot that is zero or entry that is not
                       finite, when the status says so; else -1 */
  double milliseconds;
} hone_crout_report;

typedef struct hone_crout hone_crout;

/* Two streams, workspace (four sections of doubles on the device) and cuBLAS
   handles for orders up to n on the current device; options NULL: defaults.
   The caller destroys it; NULL is allowed there. Both may wait for the whole
   device (the runtime does), the factorizations wait for their own streams
   alone. HONE_OK, or HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_OPTION,
   HONE_NO_MEMORY, HONE_DEVICE_FAILED, with *crout NULL. */
int hone_crout_create(hone_crout **crout, int64_t n,
                      const hone_crout_options *options);
void hone_crout_destroy(hone_crout *crout);

/* The section size for order n. */
int64_t hone_crout_section(int64_t n, const hone_crout_options *options);

/* The device matrix a (n x n, lda, in place, nothing pending on it) becomes Z.
   Returns when it is there. report may be NULL. One call at a time for one
   crout. Statuses:
     HONE_OK             every section is at rest, every entry finite
     HONE_NOT_CONVERGED  a diagonal section is not: with tolerance 0 only
                         where options.max_diagonal is below 2 s
     HONE_SINGULAR       a pivot is zero: column
     HONE_OVERFLOW       an entry is NaN or Inf, of A or come by since: column
     HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_LEADING_DIMENSION,
     HONE_DEVICE_FAILED
   After any but HONE_OK and the arguments' own, a is part Z and part A. */
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

/* How to iterate, and with what: all of it stays the caller's. */
typedef struct hone_crout_solver {
  int32_t block, guess, sweeps_per_read; /* as above */
  double tolerance;   /* rows: relative to the largest |b| of the column;
                         columns: |u_jj| times the change relative to the
                         largest |b| of the row. 0: until nothing changes */
  int64_t max_sweeps; /* 0, or too many: k + 1 */
  void *stream;       /* cudaStream_t; waited for */
  void *work;         /* device, hone_crout_work_bytes(k, m), 16-aligned */
  int *seen;          /* pinned host memory, HONE_CROUT_FLAGS ints */
  int32_t unit;       /* columns: U's diagonal is taken as ones, what stands
                         there is not used */
} hone_crout_solver;

int64_t hone_crout_work_bytes(int64_t k, int64_t m);

/* b = inv(L) b: L unit lower, k x k (what stands on and above its diagonal
   is not used), k <= HONE_CROUT_WIDTH; b k x m. X <- B - strict(L) X.
   HONE_OK; HONE_NOT_CONVERGED when max_sweeps were not enough or numbers are
   not finite: b is then B again, for a direct solve. Otherwise
   HONE_NULL_POINTER, HONE_BAD_SIZE, HONE_BAD_LEADING_DIMENSION,
   HONE_BAD_OPTION, with b untouched, or HONE_DEVICE_FAILED. *sweeps: made;
   may be NULL. */
int hone_crout_rows(const hone_crout_solver *how, int64_t k, int64_t m,
                    const float *l, int64_t ldl, float *b, int64_t ldb,
                    int64_t *sweeps);

/* b = b inv(U): U upper, k x k, with its diagonal; b m x k.
   X <- (B - X strict(U)) inv(diag(U)). Otherwise as above. */
int hone_crout_columns(const hone_crout_solver *how, int64_t k, int64_t m,
                       const float *u, int64_t ldu, float *b, int64_t ldb,
                       int64_t *sweeps);

#ifdef __cplusplus
}
#endif

#endif
