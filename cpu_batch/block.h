/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of small systems of one order, one in each lane of a vector: entry
   (i, j) of all its matrices makes one vector, so that every step of the
   factorization and of the verification is made for all of them by one
   instruction. Larger systems are blocks by themselves, whose columns are
   vectors (layout.h). In double precision. Two tables of functions for each
   instruction set; choose.c chooses. Next to read: kernels.c. */
#ifndef HONE_BLOCK_H
#define HONE_BLOCK_H

#include "base/block_lane.h"
#include "base/entry.h"

/* The most lanes that any instruction set has, and the largest order for which
   blocks pay. */
enum { HONE_BLOCK_LANES = 8, HONE_BLOCK_UP_TO = 256 };

/* op(A) of one system: entry (i, j) is at[i * row + j * column], conjugated if
   'conjugate' is set. */
typedef struct hone_block_matrix {
  const hone_entry *at;   /* NULL: the lane is empty */
  const hone_entry *next; /* the lane's matrix in the next block, or NULL */
  int64_t row, column;
  bool turned; /* a row of op(A) lies as a line in memory, not a column */
  bool conjugate;
} hone_block_matrix;

/* The part of a report that says what the matrix of one system is, as it lies
   in memory. */
typedef struct hone_block_sizes {
  double max_abs, min_abs; /* as in hone_report */
  double norm;             /* its 1-norm, */
  double rcond;            /* and 1 / (||A|| ||inv(A)||) in that norm */
  bool certain;            /* of op(A) it was estimated well at once */
  double growth;
  int exponent_min, exponent_max; /* of the scaling, and 0 */
} hone_block_sizes;

/* The block. Memory is the caller's: 'bytes' of the table, aligned to 64. */
typedef struct hone_block {
  int64_t n;
  void *memory;
  bool definite;     /* the matrices are said to be positive definite: they are
                        factored without pivoting, from their lower triangles */
  bool determinants; /* fill lane[].determinant and exponent */
  bool alone; /* one system that is of no batch: the random vectors depend on
                 norms of the matrix too, and the certificate is not begun where
                 it would hardly help */
  hone_block_lane lane[HONE_BLOCK_LANES];
  hone_block_sizes sizes; /* of a system by itself, when it is described */
} hone_block;

/* One right-hand side for every lane of a factored block. b and x are those of
   lanes with a matrix; NULL: the lane has none here. */
typedef struct hone_block_solve {
  const hone_entry *b[HONE_BLOCK_LANES];
  hone_entry *x[HONE_BLOCK_LANES];
  bool conjugate;  /* of b and of x */
  double limit;    /* the largest componentwise backward error accepted */
  int corrections; /* at most */
  hone_block_column column[HONE_BLOCK_LANES]; /* out */
} hone_block_solve;

typedef struct hone_block_kernels {
  const char *isa;
  int lanes;
  int64_t (*bytes)(int64_t n);
  /* Scales and factors the matrices, lanes of them, and certifies the factors
     by random vectors of this seed. Fills block->lane. */
  void (*factor)(hone_block *block, const hone_block_matrix *matrices,
                 uint64_t seed);
  /* Solves, refines, measures and bounds. A column that is not accepted leaves
     its x as it was. */
  void (*solve)(hone_block *block, hone_block_solve *job);
  /* Completes block->sizes of a system by itself, which has factors that serve;
     turned: its matrix was turned for them. NULL where a block has several. */
  void (*describe)(hone_block *block, bool turned);
} hone_block_kernels;

extern const hone_block_kernels hone_block_base, hone_block_avx2,
    hone_block_avx512;
/* For one system at a time, whose columns are vectors. */
extern const hone_block_kernels hone_rows_base, hone_rows_avx2,
    hone_rows_avx512;

/* Returns the best table for batches of systems of order n on this processor,
   and that for a system by itself, of any order. */
const hone_block_kernels *hone_block_kernels_here(int64_t n);
const hone_block_kernels *hone_rows_kernels_here(void);

#endif
