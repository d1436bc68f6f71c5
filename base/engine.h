/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine interface: what refinement needs of a factorization, whatever
   its precision and wherever it runs. Both sides speak host memory in
   double precision; rounding, copies and streams are the engine's. */
#ifndef HONE_ENGINE_H
#define HONE_ENGINE_H

#include "base/operator.h"

enum { HONE_SOLVE_COLUMNS = 64 }; /* right-hand sides at once, at most */

/* What the caller chose of a GPU factorization; the values of hone.h. */
typedef struct hone_choices {
  int arithmetic, pivoting, diagonal, sections, residuals;
  int64_t device_limit; /* bytes of device memory; 0: what is free */
} hone_choices;

typedef struct hone_engine_config {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  int64_t block; /* columns of a block column; 0: the device's choice */
  bool spd;      /* S = U^T U, of its upper triangle alone */
  hone_choices choices;
  const hone_structure *structure; /* of the matrix given to factor, for
                                      engines that ask for it; borrowed */
  char *why; /* a failing create may say why here, in one line; or NULL */
  size_t why_size;
} hone_engine_config;

/* What an engine used, all in all. */
typedef struct hone_account {
  char text[96]; /* how it factored: "fp16x3, tournament pivoting" */
  int64_t device_bytes, to_device, from_device;
  int residuals;          /* passes over A made there */
  double diagonal_ms;     /* CPU and transfer time of diagonal blocks, */
  double exposed_ms;      /* of which nothing else hid */
  int sections;           /* that were iterated on, */
  int sweeps, sweeps_max; /* how often, the sum and the most, */
  int fallback;           /* and how many of them went to TRSM after all */
} hone_account;

/* How a factorization went. Factor sets every field. */
typedef struct hone_factor_info {
  double growth;      /* max |u_ij| / max |s_ij| (Cholesky: max u_ij^2 / max
                         |s_ij|); NaN or Inf: broke down */
  int64_t zero_pivot; /* first exactly zero (Cholesky: not positive) pivot's
                         column, or -1 */
  bool rounding;      /* Cholesky: that pivot is as near to 0 as rounding may
                         have made it, and S may be definite all the same */
  int64_t flushed;    /* nonzero entries of S too small for the precision */
  bool hopeless;      /* stopped early: the pivots fall so fast that the
                         factors could not be refined with */
} hone_factor_info;

/* Factor's scaling may be NULL where the engine is resident: it then takes
   S = A, and what inspect tells of A decides whether that was right.

   Factor returns HONE_OK with info filled (growth not finite, a zero pivot
   and hopeless are results, not errors), or HONE_NO_MEMORY, HONE_CANCELLED,
   HONE_DEVICE_FAILED. */
typedef struct hone_engine {
  const char *name;  /* "single LU" */
  const char *place; /* "CPU" */
  int precision;     /* 32 or 64 */
  bool symmetric;    /* for positive definite S alone: where it fails, any
                        other engine may do better */
  /* Made for matrices of some structure alone: is this one? NULL: for all.
     An engine for some that are not symmetric is a direct way: A's zeros are
     exact, so that no other of its precision does better. It may read the
     caller's matrix in solve. */
  bool (*applies)(const hone_structure *structure, int64_t n);
  /* Usable here and now? If not, why (one line). */
  bool (*probe)(char *why, size_t why_size);
  int (*create)(void **self, const hone_engine_config *config);
  int (*factor)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                hone_factor_info *info);
  /* In place: v = inv(S) v, or inv(S^T) v, for k <= HONE_SOLVE_COLUMNS
     columns, ldv >= n. Entries of v are at most 1 in magnitude. */
  int (*solve)(void *self, bool trans, int64_t k, hone_entry *v, int64_t ldv);
  /* The same by factors applied in double arithmetic: what is left is the
     error of the factors alone. NULL: that is what solve does. */
  int (*apply)(void *self, bool trans, int64_t k, hone_entry *v, int64_t ldv);
  void (*destroy)(void *self, hone_mem *mem);
  /* Host bytes it holds for order n and k columns. */
  int64_t (*bytes)(int64_t n, int64_t k);
  /* Row and column of S of the smallest pivot, from 0. mend: pivots of zero
     then become tiny, so that solve gives vectors that S nearly maps to zero;
     the factors serve nothing else. NULL: cannot tell. */
  void (*smallest_pivot)(void *self, bool mend, int64_t *row, int64_t *col);
  /* Of engines that keep a copy of A where they run; NULL or false: none. */
  bool (*resident)(void *self);
  /* The maxima of |s_ij| by rows and columns into out, their sums by rows and
     by columns into scratch (n each), of the A last given to factor. */
  int (*inspect)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                 double *scratch, hone_inspection *out);
  /* r = b - op(A) x in double-double, den = |op(A)| |x| + |b|; n each. */
  int (*residual)(void *self, const hone_matrix *a, bool trans,
                  const hone_entry *x, const hone_entry *b, hone_entry *r,
                  double *den);
  /* The next residual is likely to be followed by a solve with the same op(A)
     for its r, times a power of two, which may be begun ahead. What solve
     returns does not depend on it. NULL: it makes no difference. */
  void (*expect)(void *self);
  void (*account)(void *self, hone_account *account);
  /* Bytes of device memory that create takes, with a copy of A or without;
     only n, block and choices of config are read. NULL: it has no device. */
  int64_t (*device_bytes)(const hone_engine_config *config, bool resident);
} hone_engine;

/* One const table per engine; refinement is told which to use. */
extern const hone_engine hone_engine_single, hone_engine_single_cuda,
    hone_engine_cholesky, hone_engine_cholesky_cuda,
    hone_engine_cholesky_double, hone_engine_double, hone_engine_double_cuda,
    hone_engine_diagonal, hone_engine_triangular, hone_engine_banded;

#endif
