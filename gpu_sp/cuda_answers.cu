/* SPDX-License-Identifier: BSD-3-Clause */
/* What the CUDA device answers once A is there or factored: solves with the
   factors, what is seen of A, residuals, and what all of it took. */
#include "gpu_sp/cuda_state.h"

#include <cstdio>
#include <cstring>

namespace {

/* Solves ------------------------------------------------------------------ */

int triangle(hone_cuda *c, enum hone_triangle which, int64_t k, double *v) {
  const bool lower = which == HONE_LOWER || which == HONE_LOWER_TRANS;
  return CALL(hone_cuda_triangle(which, c->n, c->f, c->ld,
                                 lower ? c->lower : c->upper, k, v, c->n,
                                 c->triangle_flags, c->work));
}

/* P S = L U: inv(S) = inv(U) inv(L) P, inv(S^T) = P^T inv(L^T) inv(U^T). The
   kernels see the transpose of F: U^T below the diagonal, L^T above. S = U^T U
   is its own transpose. */
int solve_some(hone_cuda *c, bool trans, int64_t k, double *v, int64_t ldv) {
  const int64_t n = c->n;
  const size_t bytes = (size_t)(n * k) * sizeof(double);
  for (int64_t i = 0; i < k; i++)
    memcpy(c->h_v + i * n, v + i * ldv, (size_t)n * sizeof(double));
  int st = CALL(
      cudaMemcpyAsync(c->v, c->h_v, bytes, cudaMemcpyHostToDevice, c->work));
  trans = trans && !c->spd;
  double *x = trans ? c->v : c->w;
  if (st == HONE_OK && !trans)
    st =
        CALL(hone_cuda_permute(n, c->perm, true, k, c->v, n, c->w, n, c->work));
  if (st == HONE_OK)
    st = triangle(c, trans || c->spd ? HONE_LOWER : HONE_UPPER_TRANS, k, x);
  if (st == HONE_OK)
    st = triangle(c, trans ? HONE_UPPER : HONE_LOWER_TRANS, k, x);
  if (st == HONE_OK && trans)
    st = CALL(
        hone_cuda_permute(n, c->perm, false, k, c->v, n, c->w, n, c->work));
  if (st == HONE_OK)
    st = CALL(
        cudaMemcpyAsync(c->h_v, c->w, bytes, cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  for (int64_t i = 0; i < k && st == HONE_OK; i++)
    memcpy(v + i * ldv, c->h_v + i * n, (size_t)n * sizeof(double));
  c->used.to_device += (int64_t)bytes;
  c->used.from_device += (int64_t)bytes;
  return st;
}

} // namespace

int hone_cuda_solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t now =
        k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    st = solve_some(c, trans, now, v + i * ldv, ldv);
  }
  return st;
}

namespace {

/* A on the device ---------------------------------------------------------- */

/* Maxima and sums of the columns j .. j+w-1 of S, into c->seen. */
int inspect(hone_cuda *c, int64_t j, int64_t w, bool scaled) {
  double *seen = c->seen;
  const int64_t n = c->n;
  return CALL(hone_cuda_inspect(n, c->a, c->lda, j, w,
                                scaled ? c->row : nullptr,
                                scaled ? c->col : nullptr, seen, seen + n,
                                seen + 2 * n, seen + 3 * n, c->work));
}

} // namespace

/* Of a symmetric matrix only when all is there: then the other triangle, which
   has not been sent, is made from the one that was. */
int hone_cuda_look(hone_cuda *c, int64_t to) {
  int st = HONE_OK;
  const int64_t from = c->inspected;
  if (from >= to || (c->spd && c->fed < c->n))
    return HONE_OK;
  c->inspected = to;
  if (c->triangle)
    st = CALL(hone_cuda_mirror(c->n, c->a, c->lda, c->work));
  return st == HONE_OK ? inspect(c, from, to - from, false) : st;
}

/* What is seen of S; of A itself it was gathered while A came in. */
int hone_cuda_see(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_seen *seen) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  int st = hone_cuda_feed(c, a, n, nullptr);
  if (st == HONE_OK && c->inspected < n) {
    st = CALL(cudaStreamSynchronize(c->feed));
    if (st == HONE_OK)
      st = hone_cuda_look(c, n);
  }
  if (st == HONE_OK && scaling) {
    st = hone_cuda_upload_scaling(c, scaling);
    if (st == HONE_OK)
      st = CALL(cudaMemsetAsync(c->seen, 0, 2 * bytes, c->work));
    if (st == HONE_OK)
      st = inspect(c, 0, n, true);
  }
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->h_v, c->seen, 4 * bytes,
                              cudaMemcpyDeviceToHost, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  c->used.from_device += 4 * (int64_t)bytes;
  memcpy(seen->row_max, c->h_v, bytes);
  memcpy(seen->row_sum, c->h_v + n, bytes);
  memcpy(seen->col_max, c->h_v + 2 * n, bytes);
  memcpy(seen->col_sum, c->h_v + 3 * n, bytes);
  if (c->odd > 0) /* as inspection does */
    seen->col_max[c->odd - 1] = HONE_INF;
  if (c->mirror != 0) /* the copy is not A: the host looks at A itself */
    seen->col_max[0] = HONE_INF;
  return HONE_OK;
}

int hone_cuda_take_residual(void *self, const hone_matrix *a, bool trans,
                            const double *x, const double *b, double *r,
                            double *den) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  if (!hone_cuda_all_there(c) || c->source != a->a)
    return HONE_NO_DEVICE;
  memcpy(c->h_v, x, bytes);
  memcpy(c->h_v + n, b, bytes);
  int st = CALL(cudaMemcpyAsync(c->v, c->h_v, 2 * bytes, cudaMemcpyHostToDevice,
                                c->work));
  if (st == HONE_OK)
    st = CALL(hone_cuda_residual(n, c->a, c->lda, trans, c->v, c->v + n, c->w,
                                 c->w + n, c->residual_work, c->work));
  if (st == HONE_OK)
    st = CALL(cudaMemcpyAsync(c->h_v, c->w, 2 * bytes, cudaMemcpyDeviceToHost,
                              c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  memcpy(r, c->h_v, bytes);
  memcpy(den, c->h_v + n, bytes);
  c->used.residuals++;
  c->used.to_device += 2 * (int64_t)bytes;
  c->used.from_device += 2 * (int64_t)bytes;
  return HONE_OK;
}

void hone_cuda_account(void *self, hone_account *out) {
  static const char *const names[] = {"fp32", "fp16x3", "bf16x3", "fp16",
                                      "bf16"};
  hone_cuda *c = static_cast<hone_cuda *>(self);
  *out = c->used;
  const char *pivots =
      c->tuning.pivoting == HONE_PIVOT_BLOCK
          ? "pivoting in the diagonal block"
          : (c->tuning.pivoting == HONE_PIVOT_NONE ? "no pivoting"
                                                   : "tournament pivoting");
  static const char *const sections[] = {
      "", ", TRSM sections", ", seeded sections", ", Crout sections"};
  const bool cpu = c->used.diagonal_ms > 0.0; /* any of them */
  snprintf(out->text, sizeof out->text, "%s, %s%s%s",
           c->tf32 ? "tf32" : names[c->pieces],
           c->spd ? "one triangle" : pivots,
           cpu ? ", diagonal blocks by the CPU" : "",
           c->spd ? "" : sections[c->tuning.sections]);
}
