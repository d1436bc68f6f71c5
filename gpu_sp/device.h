/* SPDX-License-Identifier: BSD-3-Clause */
/* The device interface: what the blocked single-precision LU needs of the
   place it runs on. One const table for the host (OpenBLAS), one for CUDA.

   The device keeps one n x n matrix F of floats. Operations name parts of
   it by row and column; none takes a pointer into it. They may run
   asynchronously, in the order they were given; what returns numbers waits.

   A device may factor the transpose where one block column is all of S:
   zero_pivot, pivots and growth are then those of S^T. */
#ifndef HONE_DEVICE_H
#define HONE_DEVICE_H

#include "refine/engine.h"

typedef struct hone_device {
  const char *name;
  /* Usable here and now? If not, why (one line). Costs no memory. */
  bool (*probe)(char *why, size_t why_size);
  int (*create)(void **self, const hone_engine_config *config);
  void (*destroy)(void *self, hone_mem *mem);
  int64_t (*bytes)(int64_t n, int64_t k); /* host bytes held */
  /* Width of the block column that begins at column j, for order n, unless
     the caller chose. */
  int64_t (*block)(int64_t n, int64_t j);
  /* F[:, j:j+w] = P S[:, j:j+w] rounded to single, P the row exchanges of
     the panels before column j; entries below FLT_MIN in magnitude become 0
     and are counted in *flushed. */
  int (*load)(void *self, const hone_matrix *a, const hone_scaling *scaling,
              int64_t j, int64_t w, int64_t *flushed);
  /* LU with partial pivoting of the panel F[j:n, j:j+w]; the device keeps
     the row exchanges. *zero_pivot: first zero pivot's column, or
     unchanged. */
  int (*panel)(void *self, int64_t j, int64_t w, int64_t *zero_pivot);
  /* Applies the row exchanges of the panel columns k .. k+kw-1 to the columns
     0 .. k-1. */
  int (*swap)(void *self, int64_t k, int64_t kw);
  /* F[0:k, j:j+w] = inv(L11) F[0:k, j:j+w], L11 unit lower, F[0:k, 0:k]. */
  int (*trsm)(void *self, int64_t k, int64_t j, int64_t w);
  /* F[k:n, j:j+w] -= F[k:n, 0:k] F[0:k, j:j+w]. */
  int (*gemm)(void *self, int64_t k, int64_t j, int64_t w);
  /* |u_cc| of the columns j .. j+w-1 to host memory. */
  int (*pivots)(void *self, int64_t j, int64_t w, float *out);
  /* max |u_ij| / max |s_ij|, NaN or Inf where the factors are not finite. */
  int (*growth)(void *self, double *growth);
  /* v = inv(F) v or inv(F^T) v with the factors and their row exchanges. */
  int (*solve)(void *self, bool trans, int64_t k, double *v, int64_t ldv);
} hone_device;

extern const hone_device hone_device_host, hone_device_cuda;

/* Factors S on the device: P S = L U, by block columns, left to right. */
int hone_lu(const hone_device *device, void *self,
            const hone_engine_config *config, const hone_matrix *a,
            const hone_scaling *scaling, hone_factor_info *info);

#endif
