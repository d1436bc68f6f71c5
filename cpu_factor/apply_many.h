/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves in double arithmetic for many right-hand sides: see
   apply_many.c. */
#ifndef HONE_APPLY_MANY_H
#define HONE_APPLY_MANY_H

#include "cpu_factor/apply.h"

enum {
  HONE_APPLY_MANY_FROM = 8, /* right-hand sides from which it is faster */
  HONE_APPLY_MOST = 64,     /* right-hand sides at once */
  HONE_APPLY_BLOCK = 192,   /* unknowns that are solved for at once */
  HONE_APPLY_STRIP = 48     /* rows of a task */
};

/* A triangle T = F or T = F^T: t_ij = f[i * row_step + j * column_step], one of
   the steps being 1, and k <= HONE_APPLY_MOST right-hand sides. */
typedef struct hone_apply_triangle {
  const void *f; /* floats or doubles */
  int64_t n, row_step, column_step;
  bool lower, unit; /* of T */
  int64_t k, ldv;
  double *v;
} hone_apply_triangle;

/* Solutions of a block, packed for the tiles (base/tile.h). */
typedef struct hone_apply_block {
  const hone_apply_triangle *t;
  int64_t from, to; /* the unknowns */
  double x[HONE_APPLY_BLOCK * HONE_APPLY_MOST];
} hone_apply_block;

typedef struct hone_apply_kernels {
  int columns; /* right-hand sides of a group */
  /* Solves for the unknowns of the block, in one group. */
  void (*solve)(hone_apply_block *block, int64_t group);
  /* Subtracts T times the solutions from rows i .. i + rows - 1. */
  void (*subtract)(const hone_apply_block *block, int64_t i, int64_t rows);
} hone_apply_kernels;
extern const hone_apply_kernels hone_apply_base_32, hone_apply_avx2_32,
    hone_apply_avx512_32, hone_apply_base_64, hone_apply_avx2_64,
    hone_apply_avx512_64;

/* v = inv(T) v. The bits of a column depend neither on the number of threads
   nor on the other columns. */
void hone_apply_many_32(hone_pool *pool, const hone_apply_triangle *t);
void hone_apply_many_64(hone_pool *pool, const hone_apply_triangle *t);

#endif
