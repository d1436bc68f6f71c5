/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of several columns in plain double, by matrix products (cuBLAS),
   whose sums are made in parts so that they have fewer rounding errors. Next to
   read: resident.cu. */
#include "gpu_sp/residual/resident.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/columns.h"

namespace {

/* r = b - (the sum of the parts of p), or less that sum if b is NULL; b and r
   in pinned memory; each part has all columns of n entries. */
__global__ void subtract_kernel(int64_t n, int parts, const hone_entry *b,
                                const hone_entry *p, hone_entry *r) {
  const int64_t row = row_of_thread(), i = row + blockIdx.y * n;
  if (row >= n)
    return;
  hone_entry sum = p[i];
  for (int part = 1; part < parts; part++)
    sum = sum + p[i + part * gridDim.y * n];
  r[i] = (b ? b[i] : zero_entry()) - sum;
}

/* x has 'taken' entries of each column, r 'given'. */
struct shape {
  int64_t taken, given;
};

/* Enqueues p = op(A) x for 'count' columns in device memory, in parts: of the
   columns of op(A) and the rows of x. */
int enqueue_parts(hone_cuda *c, bool trans, const shape &of, int parts,
                  int64_t count, const hone_entry *x, hone_entry *p) {
  const double *unit = hone_cuda_unit(c);
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_64F : CUDA_R_64F;
  int st = HONE_OK;
  for (int64_t part = 0; part < parts; part++) {
    const int64_t k = part * of.taken / parts,
                  end = (part + 1) * of.taken / parts;
    TRY_CUDA(c->blas->gemm(
        c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
        (int)of.given, (int)count, (int)(end - k), unit,
        c->a + (trans ? k : k * c->lda), type, (int)c->lda, x + k, type,
        (int)of.taken, unit + 2, p + part * count * of.given, type,
        (int)of.given, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
  }
  return st;
}

} // namespace

/* As many columns at once as have room. */
int hone_cuda_plain_residuals(hone_cuda *c, bool trans, int64_t count,
                              const hone_entry *x, const hone_entry *b,
                              hone_entry *r) {
  const shape of = {trans ? c->n : c->m, trans ? c->m : c->n};
  const int parts = of.taken < HONE_PLAIN_PARTS ? 1 : (int)HONE_PLAIN_PARTS;
  const int64_t room = hone_cuda_residual_bytes(c->n, c->m) /
                       (HONE_PLAIN_PARTS * c->n * (int64_t)sizeof(hone_entry));
  hone_entry *const p = static_cast<hone_entry *>(c->residual_work);
  int st = HONE_OK;
  for (int64_t k = 0, wide; k < count && of.given > 0 && st == HONE_OK;
       k += wide) {
    const int64_t at = k * of.given;
    wide = count - k < room ? count - k : room;
    st = enqueue_parts(c, trans, of, parts, wide, x + k * of.taken, p);
    if (st != HONE_OK)
      break;
    HONE_LAUNCH(subtract_kernel, grid_of(of.given, wide), ROW_THREADS, 0,
                c->work, of.given, parts, b ? b + at : nullptr, p, r + at);
    st = CALL(cudaGetLastError());
  }
  return st;
}
