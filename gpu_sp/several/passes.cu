/* SPDX-License-Identifier: BSD-3-Clause */
/* The inspection of a matrix A that is dealt to several devices, its projection
   and products: every device passes over its own columns, and the host adds up
   what they find. Read next: residuals.cu. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/residual/resident.h"
#include "gpu_sp/residual/residual.h"

#include <cstring>

bool hone_several_has_all_of(const hone_several *s, const hone_matrix *a) {
  bool all = true;
  for (int d = 0; d < s->count; d++)
    all = all && hone_cuda_has_all_of_a(s->share[d].c) &&
          s->share[d].c->source == hone_dense_of(a)->a;
  return all;
}

void hone_several_take_dealt(const hone_cuda *c, const hone_entry *v,
                             hone_entry *to) {
  for (int64_t j = 0; j < c->m; j++)
    to[j] = v[hone_cuda_dealt_column(c, j)];
}

int hone_several_wait(hone_several *s, int st) {
  for (int d = 0; d < s->count; d++) {
    const int now = hone_several_enter(&s->share[d]);
    const int waited = CALL(cudaStreamSynchronize(s->share[d].c->work));
    st = st == HONE_OK ? now : st;
    st = st == HONE_OK ? waited : st;
  }
  return st;
}

/* ---- Inspection ---------------------------------------------------------- */

namespace {

int inspect_share(hone_cuda *c, const hone_scaling *scaling) {
  const int64_t n = c->n;
  double *const seen = c->magnitudes;
  int st = HONE_OK;
  if (c->inspected < c->m) /* the factorization was given up before the end */
    st = hone_cuda_inspect_arrived(c, c->m);
  if (scaling) {
    TRY(hone_cuda_upload_scaling(c, scaling, true));
    TRY_CUDA(cudaMemsetAsync(seen, 0, 2 * (size_t)n * sizeof(double), c->work));
    TRY_CUDA(hone_cuda_inspect({c->a, c->lda, n, 0, c->m}, {c->row, c->col},
                               {seen, seen + n, seen + 2 * n, seen + 3 * n},
                               c->work));
  }
  TRY_CUDA(cudaMemcpyAsync(c->h_v, seen, 4 * (size_t)n * sizeof(double),
                           cudaMemcpyDeviceToHost, c->work));
  c->used.from_device += 4 * n * (int64_t)sizeof(double);
  return st;
}

/* Writes whether A is symmetric, where one triangle was sent, and what the
   threads found in the other one. A copy that is not A is not finite: then the
   host inspects A itself. */
void tell_of_triangle(const hone_several *s, hone_inspection *seen) {
  uint64_t asymmetry = 0;
  for (int d = 0; d < s->count; d++) {
    const hone_cuda *c = s->share[d].c;
    asymmetry += c->asymmetry;
    if (c->nonfinite > 0)
      seen->col_max[hone_cuda_dealt_column(c, c->nonfinite - 1)] = HONE_INF;
  }
  seen->symmetry = asymmetry != 0 ? HONE_SYMMETRY_REFUTED : HONE_SYMMETRY_FOUND;
  if (asymmetry != 0)
    seen->col_max[0] = HONE_INF;
}

/* Adds the share's maxima and sums, which are in h_v. */
void add_inspection(const hone_cuda *c, double *sums, hone_inspection *seen) {
  const int64_t n = c->n;
  const double *const h = c->h_v;
  for (int64_t i = 0; i < n; i++) {
    seen->row_max[i] = h[i] > seen->row_max[i] ? h[i] : seen->row_max[i];
    sums[i] += h[n + i];
  }
  for (int64_t j = 0; j < c->m; j++) {
    const int64_t to = hone_cuda_dealt_column(c, j);
    seen->col_max[to] = h[2 * n + j];
    sums[n + to] = h[3 * n + j];
  }
}

} // namespace

int hone_several_inspect(void *self, const hone_matrix *a,
                         const hone_scaling *scaling, double *scratch,
                         hone_inspection *seen) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  int st = HONE_OK;
  if (!hone_several_has_all_of(s, a))
    return HONE_NO_DEVICE;
  for (int d = 0; d < s->count; d++) {
    TRY(hone_several_enter(&s->share[d]));
    TRY(inspect_share(s->share[d].c, scaling));
  }
  st = hone_several_wait(s, st);
  if (st != HONE_OK)
    return st;
  memset(seen->row_max, 0, (size_t)s->n * sizeof(double));
  memset(scratch, 0, (size_t)s->n * sizeof(double));
  for (int d = 0; d < s->count; d++)
    add_inspection(s->share[d].c, scratch, seen);
  if (s->spd)
    tell_of_triangle(s, seen);
  return HONE_OK;
}

/* ---- Projection ---------------------------------------------------------- */

namespace {

/* Adds entry j of a share's projection to entry 'to' of 'sums', part by part.
 */
void add_projected(const hone_projection *p, int64_t j, int64_t n, int64_t to,
                   double *sums) {
  const double *const w = reinterpret_cast<const double *>(p->w + j);
  const double *const rest = reinterpret_cast<const double *>(p->w_rest + j);
  double *const hi = sums + HONE_PARTS * to, *const lo = hi + HONE_PARTS * n;
  for (int q = 0; q < HONE_PARTS; q++) {
    hone_several_add(w[q], &hi[q], &lo[q]);
    lo[q] += rest[q];
  }
  sums[2 * HONE_PARTS * n + to] += p->u[j];
}

} // namespace

/* Sums along columns are complete on one share; those along rows (op(A) = A^T)
   are added up in double-double. */
const hone_projection *hone_several_projection(void *self, const hone_matrix *a,
                                               bool trans) {
  hone_several *s = static_cast<hone_several *>(self);
  const int64_t n = s->n;
  hone_entry *const w = reinterpret_cast<hone_entry *>(s->sums);
  if (!hone_several_has_all_of(s, a))
    return nullptr;
  memset(s->sums, 0, HONE_SEVERAL_SUMS * (size_t)n * sizeof(double));
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    const hone_projection *p = hone_cuda_projection_of(c, a, trans);
    if (p == nullptr)
      return nullptr;
    for (int64_t j = 0; j < (trans ? n : c->m); j++)
      add_projected(p, j, n, trans ? j : hone_cuda_dealt_column(c, j), s->sums);
    if (d == 0)
      s->projection = {p->v, w, w + n, s->sums + 2 * HONE_PARTS * n, false};
  }
  return &s->projection;
}

/* ---- Products ------------------------------------------------------------ */

int hone_several_multiply_share(hone_cuda *c, bool trans, int64_t k,
                                const hone_entry *x, hone_entry *p) {
  const double *const unit = hone_cuda_unit(c);
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_64F : CUDA_R_64F;
  const int64_t taken = trans ? c->n : c->m, given = trans ? c->m : c->n;
  return CALL(c->blas->gemm(
      c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)given,
      (int)k, (int)taken, unit, c->a, type, (int)c->lda, x, type, (int)taken,
      unit + 2, p, type, (int)given, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
}

namespace {

hone_entry *columns_of(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(hone_cuda_pinned(c, HONE_CUDA_SOLVES));
}

/* Enqueues the share's part of op(A) x for k vectors, through its pinned
   memory. */
int enqueue_product(hone_cuda *c, bool trans, int64_t k, const hone_entry *x) {
  hone_entry *const h = columns_of(c);
  const int64_t taken = trans ? c->n : c->m, given = trans ? c->m : c->n;
  for (int64_t i = 0; i < k; i++)
    if (trans)
      memcpy(h + i * c->n, x + i * c->n, (size_t)c->n * sizeof *x);
    else
      hone_several_take_dealt(c, x + i * c->n, h + i * c->m);
  const size_t there = (size_t)(k * taken) * sizeof *h;
  const size_t back = (size_t)(k * given) * sizeof *h;
  int st =
      CALL(cudaMemcpyAsync(c->v, h, there, cudaMemcpyHostToDevice, c->work));
  TRY(hone_several_multiply_share(c, trans, k, hone_cuda_v(c), hone_cuda_w(c)));
  TRY_CUDA(cudaMemcpyAsync(h, c->w, back, cudaMemcpyDeviceToHost, c->work));
  c->used.to_device += (int64_t)there;
  c->used.from_device += (int64_t)back;
  return st;
}

/* Adds the share's part of one vector of the product. */
void add_product(const hone_cuda *c, bool trans, const hone_entry *part,
                 hone_entry *p) {
  const double *const from = reinterpret_cast<const double *>(part);
  double *const to = reinterpret_cast<double *>(p);
  if (trans)
    for (int64_t j = 0; j < c->m; j++)
      p[hone_cuda_dealt_column(c, j)] = part[j];
  else
    for (int64_t i = 0; i < HONE_PARTS * c->n; i++)
      to[i] += from[i];
}

} // namespace

int hone_several_product(void *self, const hone_matrix *a, bool trans,
                         int64_t k, const hone_entry *x, hone_entry *p) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  const int64_t n = s->n, most = hone_cuda_columns(n);
  int st = HONE_OK;
  if (!hone_several_has_all_of(s, a))
    return HONE_NO_DEVICE;
  for (int64_t i = 0, now; i < k && st == HONE_OK; i += now) {
    now = k - i < most ? k - i : most;
    for (int d = 0; d < s->count; d++) {
      TRY(hone_several_enter(&s->share[d]));
      TRY(enqueue_product(s->share[d].c, trans, now, x + i * n));
    }
    st = hone_several_wait(s, st);
    if (st != HONE_OK)
      return st;
    memset(static_cast<void *>(p + i * n), 0, (size_t)(now * n) * sizeof *p);
    for (int d = 0; d < s->count; d++) {
      const hone_cuda *c = s->share[d].c;
      const hone_entry *const h = columns_of(c);
      for (int64_t q = 0; q < now; q++)
        add_product(c, trans, h + q * (trans ? c->m : n), p + (i + q) * n);
    }
  }
  return st;
}
