/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix interface: everything that refinement needs of a matrix A,
   however A is stored. Refinement reads A through a const table of functions
   and nothing else; the table for a dense A in host memory is in cpu_dp/. The
   other interface, engine.h, is what refinement needs of a factorization. */
#ifndef HONE_OPERATOR_H
#define HONE_OPERATOR_H

#include "base/base.h"
#include "base/entry.h"

typedef struct hone_operator hone_operator;

/* A matrix of order n. Borrowed, never written. */
typedef struct hone_matrix {
  const hone_operator *op; /* how it is read */
  const void *self;        /* what op reads: see dense.h */
  int64_t n;
} hone_matrix;

/* S = R A C with R = diag(row), C = diag(col), all powers of two. */
typedef struct hone_scaling {
  double *row, *col;      /* n each: 2^row_exp, 2^col_exp */
  int *row_exp, *col_exp; /* n each, within +-HONE_MAX_EXP */
  bool used;              /* false: all ones, S = A */
} hone_scaling;
enum { HONE_MAX_EXP = 1000 };

/* What is exactly zero or exactly equal in A. */
typedef struct hone_structure {
  int64_t lower, upper; /* a_ij = 0 for i > j + lower and for j > i + upper;
                           n - 1 where nothing follows from it */
  bool definite; /* may be positive definite: symmetric, diagonal > 0, and so
                    is every minor of two */
  int found;     /* HONE_FOUND_...: what of this pays */
} hone_structure;

/* The range of S = R A C. */
typedef struct hone_inspection {
  double *row_max, *col_max; /* n each, the caller's: max |s_ij| */
  double norm1, norm_inf;    /* DBL_MAX where the sum overflows */
  int64_t bad_row, bad_col;  /* the first NaN or Inf by columns, or -1 */
} hone_inspection;

/* Residuals of k right-hand sides, op(A) = A or A^T:
     r_c   = b_c - op(A) x_c
     den_c = |op(A)| |x_c| + |b_c|                          c = 0 .. k-1 */
typedef struct hone_residual_job {
  const hone_matrix *a;
  bool trans;
  bool accurate; /* r in double-double, rounded once; else plain double */
  int64_t k;
  const hone_entry *const *x; /* k vectors of n */
  const hone_entry *const *b; /* k vectors of n */
  hone_entry *const *r;       /* k vectors of n, written; r[c] may be b[c] */
  double *const *den;         /* k vectors of n, written */
} hone_residual_job;

/* One row of a residual beyond the range of double. */
typedef struct hone_wide_row {
  const hone_matrix *a;
  bool trans;
  int64_t i;
  const hone_entry *x; /* n */
  hone_entry b;        /* b_i */
  bool fast;           /* one rounding of long double a term will do */
  int shift;           /* r is wanted times 2^shift */
  /* Written: */
  hone_entry r;    /* 2^shift (b - op(A) x)_i */
  double quotient; /* |b - op(A) x|_i / (|op(A)| |x| + |b|)_i; 0 where both
                      are 0 */
} hone_wide_row;

/* One const table for each kind of matrix. The bits of what it computes do not
   depend on the number of threads of the pool. */
struct hone_operator {
  const char *name; /* "dense" */
  /* Doubles of scratch that inspect and find_structure need. */
  int64_t (*scratch)(int64_t n);
  /* A may still be on its way to where the functions below can read it. start:
     begin to bring it; await: wait until it is there. Until then an engine's
     factor is the only one that may be given A. await returns HONE_OK or what
     went wrong. NULL, both: A is there already. */
  void (*start)(const hone_matrix *a, hone_pool *pool);
  int (*await)(const hone_matrix *a, hone_pool *pool);
  /* Finds what is exactly zero or equal in A; definite: also whether A may be
     positive definite. Waits for A where it has to. Fails only where await
     does. NULL: a matrix of this kind has no structure to be looked for. */
  int (*find_structure)(const hone_matrix *a, hone_pool *pool, bool definite,
                        double *scratch, hone_structure *out);
  /* Is A symmetric, to the last bit? */
  bool (*symmetric)(const hone_matrix *a, hone_pool *pool);
  /* Inspects S = R A C (A itself where scaling is NULL). */
  void (*inspect)(const hone_matrix *a, hone_pool *pool,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out);
  /* Residuals and their denominators: the word that accepts x. */
  void (*residual)(const hone_residual_job *pass, hone_pool *pool);
  /* One row again, in extended range: as accurate as the accurate pass would
     have it, but to 2^-63 of the denominator where fast. */
  void (*wide_row)(hone_wide_row *row);
};

#endif
