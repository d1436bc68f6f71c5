/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocked LU and Cholesky factorizations in single precision on the host.
   blocked.c factors; engine.c makes an engine of it, and solves. The steps of
   the loop are declared for a benchmark that times each of them. */
#ifndef HONE_BLOCKED_H
#define HONE_BLOCKED_H

#include "base/dense.h"
#include "base/engine.h"
#include "cpu_sp/single.h"

/* Orders up to here are factored by our own LU (small_lu.c) in one block
   column: docs/performance.md. It is for real entries. */
enum { HONE_SMALL_UP_TO = HONE_PARTS == 1 ? 512 : 0 };

typedef struct hone_blocked {
  int64_t n, ld;
  int64_t block;  /* columns of a block column; 0: hone_blocked_width */
  hone_single *f; /* n x n, ld: S, then its factors */
  float *col_max; /* 2 n: max |s_ij|, then max |u_ij| (|l_ij|) of each column */
  int *ipiv;      /* n: row exchanges, from 1, as LAPACK; from 0 if small */
  float *v;       /* v_size: right-hand sides in single precision */
  float *small_work; /* of hone_small_lu */
  void *work;        /* of hone_factor_columns */
  bool small;        /* f holds the factors of hone_small_lu, of S^T */
  bool hopeless;     /* the pivots fall so fast that F is of no use */
  bool falling;      /* they may prove to, and are to be judged again */
  bool spd;          /* S = L L^T, of the lower triangle alone */
  int64_t v_size;
  int64_t flushed; /* entries that load made 0, since the first block column */
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
} hone_blocked;

/* P S = L U, or S = L L^T: the member factor of both engines. */
int hone_blocked_factor(void *self, const hone_matrix *a,
                        const hone_scaling *scaling, hone_factor_info *info);

/* The steps of a block column of w columns from column j on; see blocked.c. */
int64_t hone_blocked_width(const hone_blocked *h, int64_t j);
void hone_blocked_load(hone_blocked *h, const hone_matrix *a,
                       const hone_scaling *scaling, int64_t j, int64_t w);
/* P F[j:n, J] = L U, with what the columns before contribute. *zero_pivot: the
   first zero pivot's column, or unchanged. */
int hone_blocked_columns(hone_blocked *h, int64_t j, int64_t w,
                         int64_t *zero_pivot);
/* After the last block column, or after the one that ended the factorization
   early: growth (if complete), flushed, rounding. */
void hone_blocked_outcome(hone_blocked *h, bool complete,
                          hone_factor_info *info);
/* |u_cc|, or l_cc^2 if spd, of the columns j .. j+w-1. */
void hone_blocked_pivots(const hone_blocked *h, int64_t j, int64_t w,
                         float *out);

#endif
