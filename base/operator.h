/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix interface: everything that refinement needs of a matrix A, however
   A is stored. Refinement reads A only through a const table of functions; the
   table for a dense A in host memory is in cpu_dp/dense.c. All numbers are in
   double precision. Read next engine.h, the interface to a factorization. */
#ifndef HONE_OPERATOR_H
#define HONE_OPERATOR_H

#include "base/base.h"
#include "base/entry.h"

typedef struct hone_operator hone_operator;

/* A matrix of order n. It is borrowed and never written. */
typedef struct hone_matrix {
  const hone_operator *op; /* the functions that read it */
  const void *self; /* the matrix as op knows it, for example a hone_dense */
  int64_t n;
} hone_matrix;

/* S = R A C with R = diag(row), C = diag(col), all powers of two. */
typedef struct hone_scaling {
  double *row, *col;      /* n each: 2^row_exp, 2^col_exp */
  int *row_exp, *col_exp; /* n each, within +-HONE_MAX_EXP */
  bool used;              /* false: all ones, S = A */
} hone_scaling;
enum { HONE_MAX_EXP = 1022 }; /* 2^+-e is a normal number */

/* The exact structure of A: which entries are zero, and which are equal. */
typedef struct hone_structure {
  int64_t lower, upper; /* bandwidths: a_ij = 0 for i > j + lower and for
                           j > i + upper; n - 1 where they do not pay */
  bool definite; /* A may be positive definite: it is symmetric, its diagonal
                    is positive, and a_ij^2 <= a_ii a_jj up to rounding */
  bool sampled;  /* so says a sample of its entries alone: an engine that reads
                    all of A has to confirm the symmetry */
  int found;     /* HONE_FOUND_...: the structure that is made use of */
} hone_structure;

/* How far A is searched for symmetry. */
typedef enum hone_search {
  HONE_SEARCH_ZEROS,  /* not at all: only for bands and triangles */
  HONE_SEARCH_SAMPLE, /* in a sample of its entries, where that is cheaper */
  HONE_SEARCH_ALL     /* in all entries */
} hone_search;

/* The range of S = R A C. */
typedef struct hone_inspection {
  double *row_max, *col_max; /* n each, arrays of the caller: max |s_ij| */
  double norm1, norm_inf;    /* DBL_MAX where the sum overflows */
  int64_t bad_row, bad_col;  /* the first NaN or Inf by columns, or -1 */
  int symmetry; /* HONE_SYMMETRY_...: of A, where an engine looked */
} hone_inspection;

enum { HONE_SYMMETRY_UNKNOWN, HONE_SYMMETRY_FOUND, HONE_SYMMETRY_REFUTED };

/* The job of computing residuals and their denominators for k right-hand sides,
   where op(A) is A or A^T:
     r_c   = b_c - op(A) x_c
     den_c = |op(A)| |x_c| + |b_c|                          c = 0 .. k-1 */
typedef struct hone_residual_job {
  const hone_matrix *a;
  bool trans;
  bool accurate; /* r in double-double, rounded once; otherwise plain double */
  int64_t k;
  const hone_entry *const *x; /* k vectors of n */
  const hone_entry *const *b; /* k vectors of n */
  hone_entry *const *r;       /* k vectors of n, written; r[c] may be b[c] */
  double *const *den;         /* k vectors of n, written */
} hone_residual_job;

/* One entry of a residual whose products may leave the range of double. */
typedef struct hone_wide_row {
  const hone_matrix *a;
  bool trans;
  int64_t i;
  const hone_entry *x; /* n */
  hone_entry b;        /* b_i */
  bool fast;           /* one rounding to long double for each term suffices */
  int shift;           /* r is returned times 2^shift */
  /* These are written: */
  hone_entry r;    /* 2^shift (b - op(A) x)_i */
  double den;      /* 2^shift (|op(A)| |x| + |b|)_i */
  double quotient; /* |b - op(A) x|_i / (|op(A)| |x| + |b|)_i; 0 where both
                      are 0 */
  bool zero;       /* (b - op(A) x)_i is 0, without a rounding error anywhere in
                      its sum; false where it is not, or not known to be */
} hone_wide_row;

/* Residuals of many right-hand sides, brought up to date after steps of x: r_c
   = r_c - part(op(A)) v_c. op(A) = A1 + A2, where A1 has so few bits that a
   product with vectors of few bits is exact; docs/numerics.md has the error
   bounds. */
enum {
  HONE_STEP_DEPTH = 96,   /* real products that are summed in double at once */
  HONE_STEP_BITS = 36,    /* of entries of A1, or of their parts, */
  HONE_STEP_VECTOR = 10,  /* and of vectors whose product with it is exact: the
                             sum of both and log2 of the depth is at most 53 */
  HONE_STEP_LEADING = 0,  /* part: A1, */
  HONE_STEP_REST = 1,     /* A2 */
  HONE_STEP_WHOLE = 2,    /* or all of op(A) */
  HONE_STEPS_FROM = 16,   /* right-hand sides from which it pays, in an */
  HONE_STEPS_ORDER = 400, /* order from here on: docs/performance.md */
  HONE_STEPS_MOST = 64 / HONE_PARTS, /* right-hand sides at once */
  HONE_STEPS_MULTIPLE = 4            /* of them count in memory */
};

typedef struct hone_residual_steps {
  const hone_matrix *a;
  bool trans;
  int part;
  int64_t k;
  const hone_entry *const *v; /* k vectors of n */
  hone_entry *const *r;       /* k vectors of n, read and written, */
  hone_entry *const *low; /* and what r lacks of its value: digits below; NULL:
                             r is rounded */
  /* den_c = |op(A)| |x_c| + |b_c|, rounded downwards, and at most 2^-15 of it
     too small. NULL: not wanted */
  double *const *den;
  const hone_entry *const *x, *const *b;
  const double *size; /* k: max |x_c|; for den */
  /* n, written: sums over blocks of HONE_STEP_DEPTH columns of op(A) of the
     number of columns times the largest entry of the row; a complex column
     counts as two real ones, of its real and of its imaginary parts. */
  double *weight;
  double *work; /* hone_steps_work(n, k) */
} hone_residual_steps;

static inline bool hone_steps_pay(int64_t n, int64_t k) {
  return k >= HONE_STEPS_FROM && n >= HONE_STEPS_ORDER;
}

static inline int64_t hone_steps_columns(int64_t k) {
  return (k + HONE_STEPS_MULTIPLE - 1) / HONE_STEPS_MULTIPLE *
         HONE_STEPS_MULTIPLE;
}

/* Returns the doubles that it needs. */
static inline int64_t hone_steps_work(int64_t n, int64_t k) {
  return n * hone_steps_columns(k) * (2 * HONE_PARTS * HONE_PARTS + 1) / 2;
}

/* The table of functions; there is one for each kind of matrix. The bits of
   every result are independent of the number of threads of the pool. */
struct hone_operator {
  const char *name; /* "dense" */
  /* Returns the doubles of scratch that inspect and find_structure need. */
  int64_t (*scratch)(int64_t n);
  /* start begins to copy A to where the functions below can read it, and await
     waits until the copy is complete; it returns HONE_OK or the error status.
     Between the two only the factor function of an engine may be given A.
     Without them the functions below copy what they need when they need it; if
     that fails their results are NaN, and failure returns why (HONE_OK: it did
     not). All are NULL where A can always be read. */
  void (*start)(const hone_matrix *a, hone_pool *pool);
  int (*await)(const hone_matrix *a, hone_pool *pool);
  int (*failure)(const hone_matrix *a);
  /* Finds the exact structure of A; if the search is for symmetry, also whether
     A may be positive definite. It waits for A if it must, and fails only where
     await fails. NULL: matrices of this kind are not searched for structure. */
  int (*find_structure)(const hone_matrix *a, hone_pool *pool,
                        hone_search search, double *scratch,
                        hone_structure *out);
  /* Returns true if A is symmetric to the last bit. */
  bool (*symmetric)(const hone_matrix *a, hone_pool *pool);
  /* Inspects S = R A C (A itself where scaling is NULL): fills out. */
  void (*inspect)(const hone_matrix *a, hone_pool *pool,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out);
  /* Computes residuals and denominators; x is accepted by these alone. */
  void (*residual)(const hone_residual_job *pass, hone_pool *pool);
  /* Brings residuals of k <= HONE_STEPS_MOST columns up to date. NULL: residual
     serves instead. */
  void (*residual_steps)(const hone_residual_steps *job, hone_pool *pool);
  /* Computes p_c = op(A) v_c in plain double, for k columns of n entries each
     that follow one another without a gap. */
  void (*product)(const hone_matrix *a, hone_pool *pool, bool trans, int64_t k,
                  const hone_entry *v, hone_entry *p);
  /* Computes one row in extended range: as accurately as the accurate residual,
     or with an error of about 2^-63 of the denominator where 'fast' is set. */
  void (*wide_row)(hone_wide_row *row);
  /* Adds column j of op(A) to entry j of the projection of op(A) on the weights
     v, the pair (*hi, *lo) and *sum (projection.h). NULL: matrices of this kind
     are not projected. */
  void (*project_entry)(const hone_matrix *a, bool trans, int64_t j,
                        const hone_entry *v, hone_entry *hi, hone_entry *lo,
                        double *sum);
};

/* These do nothing where A can always be read. */
static inline void hone_matrix_start(const hone_matrix *a, hone_pool *pool) {
  if (a->op->start != NULL)
    a->op->start(a, pool);
}
static inline int hone_matrix_await(const hone_matrix *a, hone_pool *pool) {
  return a->op->await != NULL ? a->op->await(a, pool) : HONE_OK;
}
static inline int hone_matrix_failure(const hone_matrix *a) {
  return a->op->failure != NULL ? a->op->failure(a) : HONE_OK;
}

#endif
