/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky factorizations of a dense matrix on the threads of a pool, in
   single or double precision. Read next: factor.c. */
#ifndef HONE_FACTOR_H
#define HONE_FACTOR_H

#include "base/base.h"
#include "base/entry.h"

typedef struct hone_factor_kernels hone_factor_kernels;

/* Returns the kernels for entries of 32 or 64 bits on this processor; complex:
   of 64 or 128 bits. */
const hone_factor_kernels *hone_factor_kernels_of(int bits);

/* A matrix that is being factored in place. */
typedef struct hone_factoring {
  const hone_factor_kernels *kernels;
  int64_t n, ldf;
  bool spd;   /* S = L L^T of the lower triangle; else P S = L U */
  void *f;    /* n x n, ldf */
  int *pivot; /* n, from 1: row i was exchanged with row pivot[i]; not if spd */
  void *work; /* hone_factor_work bytes */
  hone_pool *pool;
  hone_watch *watch;
  const char *phase; /* of which progress is reported */
} hone_factoring;

/* Returns the bytes of work space that a factorization of order n needs. */
int64_t hone_factor_work(const hone_factor_kernels *kernels, int64_t n);

/* Factors the columns from .. to - 1, for which S, with the rows exchanged as
   the columns before were, has been loaded. The columns before are factored
   already. *zero: the first column whose pivot is zero (spd: not positive; the
   factorization ends there and leaves that pivot), or unchanged. The bits of
   the factors depend neither on the number of threads nor on how they run.
   Returns HONE_OK, or HONE_CANCELLED: also in a child, if the progress function
   has forked in a job of several threads. */
int hone_factor_columns(const hone_factoring *job, int64_t from, int64_t to,
                        int64_t *zero);

#endif
