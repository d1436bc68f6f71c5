/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over A in double precision on the device: residuals in double-double
   arithmetic, and the inspection of magnitudes. Read next: residual.cu and
   inspect.cu for the kernels, resident.cu for their callers. */
#ifndef HONE_CUDA_RESIDUAL_H
#define HONE_CUDA_RESIDUAL_H

#include "gpu_sp/feed/round.h"

/* A on the device, in double, column-major. */
struct hone_double_matrix {
  const hone_entry *a; /* n x m, lda */
  int64_t lda, n, m;   /* m < n: the columns that one of several devices has */
};

/* The vectors of some residuals, one behind the other: x has as many entries as
   op(A) has columns, b, r and den (doubles) as many as it has rows. b, r and
   den may be pinned host memory: each of their entries is read or written once.
 */
struct hone_residual_vectors {
  const hone_entry *x; /* device */
  const hone_entry *b;
  hone_entry *r;    /* written */
  double *den;      /* written */
  const int *place; /* device; NULL: place[i] = i */
  hone_entry *copy; /* device: r[i] of a single column once more, at place[i];
                       NULL: no copy */
  hone_entry *rest; /* what rounding r took away; NULL: it is not wanted */
};

/* So many columns go together in one read of A: in a block, or, if they may be
   rough, from HONE_RESIDUAL_MANY_FROM on, where A has HONE_RESIDUAL_MANY_ORDER
   rows and columns, up to HONE_RESIDUAL_MANY (many.cu). */
enum {
  HONE_RESIDUAL_BLOCK = 4,
  HONE_RESIDUAL_MANY_FROM = 9,
  HONE_RESIDUAL_MANY = 32 / HONE_PARTS,
  HONE_RESIDUAL_MANY_ORDER = 1024
};

/* Returns the bytes of the workspace below, which also has room for the parts
   of the plain residuals (base/engine.h) of some columns, one at least. */
int64_t hone_cuda_residual_bytes(int64_t n, int64_t m);
/* r = b - op(A) x in double-double, rounded once, and den = |op(A)| |x| + |b|
   in double, of magnitudes or moduli, for 'count' columns. op(A) = A^T if
   trans. rough: r may have more rounding errors (hone_block_terms,
   base/engine.h). work: hone_cuda_residual_bytes(n, m) bytes on the device. b
   NULL: zeros. Bits depend neither on scheduling nor on the other columns, but
   for how many there are. */
cudaError_t hone_cuda_residual(const hone_double_matrix &a, bool trans,
                               const hone_residual_vectors &v, int64_t count,
                               bool rough, void *work, cudaStream_t stream);

/* to = from, in words of 4 bytes, between device and pinned memory. */
struct hone_copy {
  const void *from;
  void *to;
  int64_t words;
};
enum { HONE_COPIES = 4 };
/* At most HONE_COPIES small copies by one launch, which takes less time than
   one call of cudaMemcpyAsync. */
cudaError_t hone_cuda_copy(const hone_copy *list, int count,
                           cudaStream_t stream);

/* The magnitudes of a scaled matrix, doubles on the device, one entry for each
   row or column. */
struct hone_magnitudes {
  double *row_max, *row_sum; /* raised and added to: the caller clears them
                                before the first columns */
  double *col_max, *col_sum; /* written for the columns inspected */
};

/* Inspects the columns a.j .. a.j+a.w-1 of S: the largest magnitude and the
   sum of magnitudes of each row and each column. An entry that is NaN or Inf
   makes the col_max of its column Inf. */
cudaError_t hone_cuda_inspect(const hone_double_columns &a,
                              const hone_device_scaling &scaling,
                              const hone_magnitudes &out, cudaStream_t stream);

#endif
