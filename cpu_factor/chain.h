/* SPDX-License-Identifier: BSD-3-Clause */
/* Two triangular solves, one after the other, on the threads of a pool: see
   chain.c. */
#ifndef HONE_CHAIN_H
#define HONE_CHAIN_H

#include "base/pool.h"

/* Solves with T_0, lower triangular, and then with T_1, upper triangular, of
   order n. Both functions work on vectors that ctx knows; t is 0 or 1. */
typedef struct hone_chain {
  int64_t n;
  void *ctx;
  /* v[i0:i1] -= T[i0:i1, j0:j1] v[j0:j1]. */
  void (*subtract)(void *ctx, int t, int64_t i0, int64_t i1, int64_t j0,
                   int64_t j1);
  /* v[i0:i1] = inv(T[i0:i1, i0:i1]) v[i0:i1]. */
  void (*solve)(void *ctx, int t, int64_t i0, int64_t i1);
} hone_chain;

/* The calls, and the order of those that change an entry, depend on n alone. */
void hone_chain_run(hone_pool *pool, const hone_chain *chain);

#endif
