/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone_tuning.h
 * Choices for the factorization on a GPU. The defaults (zero) are what
 * measurements found best; only someone who measures needs others. Give them
 * as options.tuning. A factorization on the CPU ignores them, and one of a
 * complex matrix ignores diagonal and block_rows: it has the default.
 *
 *     hone_tuning tuning = HONE_TUNING_INIT;
 *     hone_options options = HONE_OPTIONS_INIT;
 *     tuning.arithmetic = HONE_ARITHMETIC_TF32;
 *     options.tuning = &tuning;
 */
#ifndef HONE_TUNING_H
#define HONE_TUNING_H

#include "hone.h"

/** tuning.arithmetic: how the products of the factorization are computed. */
enum {
  HONE_ARITHMETIC_AUTO = 0,
  HONE_ARITHMETIC_FP32 = 1,
  HONE_ARITHMETIC_TF32 = 2,
  HONE_ARITHMETIC_FP16X3 = 3, /* two FP16 pieces, three products: 22 bits */
  HONE_ARITHMETIC_BF16X3 = 4, /* two BF16 pieces, three products: 16 bits */
  HONE_ARITHMETIC_FP16 = 5,
  HONE_ARITHMETIC_BF16 = 6
};

/** tuning.pivoting: which rows may become the pivot row. */
enum {
  HONE_PIVOT_AUTO = 0,  /* tournament: as stable as partial in practice */
  HONE_PIVOT_BLOCK = 1, /* those of the diagonal block of order 128, or 64 of
                           complex entries */
  HONE_PIVOT_NONE = 2   /* none: for diagonally dominant matrices */
};

/** tuning.diagonal: where the diagonal blocks of order 128 are factored. */
enum {
  HONE_DIAGONAL_AUTO = 0, /* on the GPU */
  HONE_DIAGONAL_GPU = 1,
  HONE_DIAGONAL_CPU = 2 /* on the CPU, where the GPU's trailing update takes
                           long enough to hide it; those of the first panel,
                           near the end and of a small matrix on the GPU */
};

/** tuning.block_rows: how the rows of U beside a diagonal block are computed.
 */
enum {
  HONE_BLOCK_ROWS_AUTO = 0,   /* by substitution in registers */
  HONE_BLOCK_ROWS_TRSM = 1,   /* by cuBLAS */
  HONE_BLOCK_ROWS_SEEDED = 2, /* with the inverse of the diagonal block, then
                                 corrected until they stop changing */
  HONE_BLOCK_ROWS_CROUT = 3   /* by the iterative Crout method */
};

/** tuning.residuals: where residuals are computed, and how the CPU makes sure,
    from the caller's own A, of the one that accepts x. */
enum {
  HONE_RESIDUALS_AUTO = 0, /* on the device if it has room for A. While A is
                              copied there the CPU takes w = A^T v and
                              u = |A|^T |v| for random v; with these it checks
                              the device's residual: an error in a row of more
                              than 2^-55 (|A||x| + |b|) passes with a
                              probability below 1e-6 (docs/numerics.md) */
  HONE_RESIDUALS_HOST = 1,
  HONE_RESIDUALS_TWICE = 2 /* on the device, and the one that accepts x once
                              more on the CPU with all of A */
};

/**
 * Choices for the factorization on a GPU. Start with HONE_TUNING_INIT. Sizes
 * and unknown fields are treated as those of hone_options.
 */
typedef struct hone_tuning {
  size_t struct_size; /* sizeof(hone_tuning) */
  int32_t arithmetic; /* HONE_ARITHMETIC_... */
  int32_t pivoting;   /* HONE_PIVOT_... */
  int32_t diagonal;   /* HONE_DIAGONAL_... */
  int32_t block_rows; /* HONE_BLOCK_ROWS_... */
  int32_t residuals;  /* HONE_RESIDUALS_... */
  int32_t reserved;   /* 0 */
} hone_tuning;

#ifdef __cplusplus
#define HONE_TUNING_INIT HONE_INITIAL_(hone_tuning, )
#else
#define HONE_TUNING_INIT                                                       \
  { .struct_size = sizeof(hone_tuning) }
#endif

#endif
