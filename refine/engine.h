/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine interface: what refinement needs of a factorization, whatever
   its precision and wherever it runs. Both sides speak host memory in
   double precision; rounding, copies and streams are the engine's. */
#ifndef HONE_ENGINE_H
#define HONE_ENGINE_H

#include "api/base.h"

/* The caller's matrix, column-major; borrowed, never written. */
typedef struct hone_matrix {
  int64_t n, lda;
  const double *a; /* n x n, lda >= n */
} hone_matrix;

/* S = R A C with R = diag(row), C = diag(col), all powers of two. */
typedef struct hone_scaling {
  double *row, *col;      /* n each: 2^row_exp, 2^col_exp */
  int *row_exp, *col_exp; /* n each, within +-HONE_MAX_EXP */
  bool used;              /* false: all ones, S = A */
} hone_scaling;
enum { HONE_MAX_EXP = 1000 };

enum { HONE_SOLVE_COLUMNS = 64 }; /* right-hand sides at once, at most */

typedef struct hone_engine_config {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  int64_t block; /* columns of a block column; 0: the device's choice */
} hone_engine_config;

/* How a factorization went. Factor sets every field. */
typedef struct hone_factor_info {
  double growth;      /* max |u_ij| / max |s_ij|; NaN or Inf: broke down */
  int64_t zero_pivot; /* first exactly zero pivot's column, or -1 */
  int64_t flushed;    /* nonzero entries of S too small for the precision */
  bool hopeless;      /* stopped early: the pivots fall so fast that the
                         factors could not be refined with */
} hone_factor_info;

/* Factor returns HONE_OK with info filled (growth not finite, a zero pivot
   and hopeless are results, not errors), or HONE_NO_MEMORY, HONE_CANCELLED,
   HONE_DEVICE_FAILED. */
typedef struct hone_engine {
  const char *name;  /* "single LU" */
  const char *place; /* "CPU" */
  int precision;     /* 32 or 64 */
  /* Usable here and now? If not, why (one line). */
  bool (*probe)(char *why, size_t why_size);
  int (*create)(void **self, const hone_engine_config *config);
  int (*factor)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                hone_factor_info *info);
  /* In place: v = inv(S) v, or inv(S^T) v, for k <= HONE_SOLVE_COLUMNS
     columns, ldv >= n. Entries of v are at most 1 in magnitude. */
  int (*solve)(void *self, bool trans, int64_t k, double *v, int64_t ldv);
  void (*destroy)(void *self, hone_mem *mem);
  /* Host bytes it holds for order n and k columns. */
  int64_t (*bytes)(int64_t n, int64_t k);
} hone_engine;

/* One const table per engine; refinement is told which to use. */
extern const hone_engine hone_engine_single, hone_engine_single_cuda,
    hone_engine_double;

#endif
