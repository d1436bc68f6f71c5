/* SPDX-License-Identifier: BSD-3-Clause */
/* The device interface: what the blocked single-precision LU needs of the
   place it runs on. One const table for the host (OpenBLAS), one for CUDA.

   The device keeps one n x n matrix F of floats. Operations name parts of
   it by row and column; none takes a pointer into it. They may run
   asynchronously, in the order they were given; what returns numbers waits.

   A device may factor the transpose where one block column is all of S:
   zero_pivot, pivots and growth are then those of S^T.

   config.spd: S is symmetric positive definite, and F becomes U, S = U^T U.
   Nothing below its diagonal is read, no rows are exchanged, pivots are
   u_cc^2, growth is max u_ij^2 / max |s_ij|, and a pivot that is not positive
   counts as a zero one. */
#ifndef HONE_DEVICE_H
#define HONE_DEVICE_H

#include "base/dense.h"
#include "base/engine.h"

typedef struct hone_device {
  const char *name;
  /* Usable here and now? If not, why (one line). Costs no memory. */
  bool (*probe)(char *why, size_t why_size);
  int (*create)(void **self, const hone_engine_config *config);
  void (*destroy)(void *self, hone_mem *mem);
  int64_t (*bytes)(int64_t n, int64_t k); /* host bytes held */
  /* Width of the block column that begins at column j, unless the caller
     chose. Asked from left to right, before the column is loaded. */
  int64_t (*block)(void *self, const hone_scaling *scaling, int64_t j);
  /* F[:, j:j+w] = S[:, j:j+w] rounded to single; entries below FLT_MIN in
     magnitude become 0 and are counted. scaling NULL: S = A. */
  int (*load)(void *self, const hone_matrix *a, const hone_scaling *scaling,
              int64_t j, int64_t w);
  /* Brings the block column up to date with the panels of all columns on its
     left: their row exchanges, U[0:j, J] = inv(L11) F[0:j, J] and
     F[j:n, J] -= L21 U[0:j, J]. spd: U[0:j, J] = inv(U11^T) F[0:j, J] and
     F[J, J] -= U[0:j, J]^T U[0:j, J]. */
  int (*update)(void *self, int64_t j, int64_t w);
  /* LU with pivoting of F[j:n, j:j+w]. *zero_pivot: first zero pivot's
     column where it is known at once, or unchanged. */
  int (*panel)(void *self, int64_t j, int64_t w, int64_t *zero_pivot);
  /* After the last panel: what may have been put off. */
  int (*finish)(void *self);
  /* |u_cc| of the columns j .. j+w-1 to host memory. */
  int (*pivots)(void *self, int64_t j, int64_t w, float *out);
  /* Growth (max |u_ij| / max |s_ij|, NaN or Inf where the factors are not
     finite), the first zero pivot, flushed. Called however LU ended. */
  int (*outcome)(void *self, bool complete, hone_factor_info *info);
  /* v = inv(F) v or inv(F^T) v with the factors and their row exchanges. */
  int (*solve)(void *self, bool trans, int64_t k, double *v, int64_t ldv);
  /* The operations run behind the caller: judge pivots one block column
     late. */
  bool behind;
  /* What only some devices have; NULL: not this one. See engine.h. ------- */
  /* LU is given up: nothing reads the caller's matrix any more. */
  void (*abandon)(void *self);
  /* The factors are not finite: is there a safer way to make the products
     that has not been tried? The next factorization then takes it. */
  bool (*safer)(void *self);
  bool (*resident)(void *self);
  int (*inspect)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                 double *scratch, hone_inspection *seen);
  int (*residual)(void *self, const hone_matrix *a, bool trans, const double *x,
                  const double *b, double *r, double *den);
  void (*expect)(void *self);
  void (*account)(void *self, hone_account *account);
  int64_t (*device_bytes)(const hone_engine_config *config, bool resident);
  /* Solve with every product and sum in double precision. NULL: that is what
     solve does. */
  int (*apply)(void *self, bool trans, int64_t k, double *v, int64_t ldv);
} hone_device;

extern const hone_device hone_device_host, hone_device_cuda;

/* Factors S on the device: P S = L U, by block columns, left to right.
   config->spd, as the device was created: S = U^T U. */
int hone_lu(const hone_device *device, void *self,
            const hone_engine_config *config, const hone_matrix *a,
            const hone_scaling *scaling, hone_factor_info *info);

#endif
