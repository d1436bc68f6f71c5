/* SPDX-License-Identifier: BSD-3-Clause */
/* The inspection of a matrix A that is dealt to several devices, its
   projection, residuals and products: every device passes over its own columns,
   and the host adds up what they find. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/residual/resident.h"
#include "gpu_sp/residual/residual.h"

#include <cmath>
#include <cstring>

namespace {

bool has_all_of(const hone_several *s, const hone_matrix *a) {
  bool all = true;
  for (int d = 0; d < s->count; d++)
    all = all && hone_cuda_has_all_of_a(s->share[d].c) &&
          s->share[d].c->source == hone_dense_of(a)->a;
  return all;
}

/* Copies the entries of v for the share's columns. */
void take_dealt(const hone_cuda *c, const double *v, double *to) {
  for (int64_t j = 0; j < c->m; j++)
    to[j] = v[hone_cuda_dealt_column(c, j)];
}

/* Adds v to hi + lo in double-double. */
void add(double v, double *hi, double *lo) {
  const double t = *hi + v, z = t - *hi;
  *lo += (*hi - (t - z)) + (v - z);
  *hi = t;
}

} // namespace

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
    st = hone_cuda_upload_scaling(c, scaling);
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
  if (!has_all_of(s, a))
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
  return HONE_OK;
}

/* ---- Projection ---------------------------------------------------------- */

/* Sums along columns are complete on one share; those along rows (op(A) = A^T)
   are added up in double-double. */
const hone_projection *hone_several_projection(void *self, const hone_matrix *a,
                                               bool trans) {
  hone_several *s = static_cast<hone_several *>(self);
  const int64_t n = s->n;
  double *const w = s->sums, *const rest = w + n, *const u = w + 2 * n;
  if (!has_all_of(s, a))
    return nullptr;
  memset(w, 0, 3 * (size_t)n * sizeof(double));
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    const hone_projection *p = hone_cuda_projection_of(c, a, trans);
    if (p == nullptr)
      return nullptr;
    for (int64_t j = 0; j < (trans ? n : c->m); j++) {
      const int64_t to = trans ? j : hone_cuda_dealt_column(c, j);
      add(p->w[j], &w[to], &rest[to]);
      rest[to] += p->w_rest[j];
      u[to] += p->u[j];
    }
    if (d == 0)
      s->projection = {p->v, w, rest, u, false};
  }
  return &s->projection;
}

/* ---- Residuals ----------------------------------------------------------- */

namespace {

/* Enqueues the share's part of a residual: op(A) = A takes x for its columns,
   and gives -A x of them in r and what r was rounded by, in the place of b; A^T
   takes all of x, and gives b - A^T x for its columns. */
int enqueue_residual(hone_cuda *c, bool trans, const double *x,
                     const double *b) {
  double *const h_x = hone_cuda_pinned(c, HONE_CUDA_X);
  double *const h_b = hone_cuda_pinned(c, HONE_CUDA_B);
  const int64_t taken = trans ? c->n : c->m, given = trans ? c->m : c->n;
  if (trans) {
    memcpy(h_x, x, (size_t)c->n * sizeof *x);
    take_dealt(c, b, h_b);
  } else {
    take_dealt(c, x, h_x);
  }
  const hone_residual_vectors v = {c->v,
                                   trans ? h_b : nullptr,
                                   hone_cuda_pinned(c, HONE_CUDA_R),
                                   hone_cuda_pinned(c, HONE_CUDA_DEN),
                                   nullptr,
                                   nullptr,
                                   trans ? nullptr : h_b};
  int st = CALL(cudaMemcpyAsync(c->v, h_x, (size_t)taken * sizeof(double),
                                cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(hone_cuda_residual({c->a, c->lda, c->n, c->m}, trans, v, false,
                              c->residual_work, c->work));
  c->used.to_device +=
      (trans ? taken + given : taken) * (int64_t)sizeof(double);
  c->used.from_device += (trans ? 2 : 3) * given * (int64_t)sizeof(double);
  return st;
}

void add_residuals(const hone_several *s, const double *b, double *r,
                   double *den) {
  for (int64_t i = 0; i < s->n; i++) {
    double hi = b[i], lo = 0.0, size = std::fabs(b[i]);
    for (int d = 0; d < s->count; d++) {
      const hone_cuda *c = s->share[d].c;
      add(hone_cuda_pinned(c, HONE_CUDA_R)[i], &hi, &lo);
      lo += hone_cuda_pinned(c, HONE_CUDA_B)[i];
      size += hone_cuda_pinned(c, HONE_CUDA_DEN)[i];
    }
    r[i] = hi + lo;
    den[i] = size;
  }
}

} // namespace

int hone_several_residual(void *self, const hone_matrix *a, bool trans,
                          const double *x, const double *b, double *r,
                          double *den) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  int st = HONE_OK;
  if (!has_all_of(s, a))
    return HONE_NO_DEVICE;
  for (int d = 0; d < s->count; d++) {
    TRY(hone_several_enter(&s->share[d]));
    TRY(enqueue_residual(s->share[d].c, trans, x, b));
  }
  st = hone_several_wait(s, st);
  if (st != HONE_OK)
    return st;
  s->residuals++;
  if (!trans) {
    add_residuals(s, b, r, den);
    return HONE_OK;
  }
  for (int d = 0; d < s->count; d++) {
    const hone_cuda *c = s->share[d].c;
    for (int64_t j = 0; j < c->m; j++) {
      const int64_t to = hone_cuda_dealt_column(c, j);
      r[to] = hone_cuda_pinned(c, HONE_CUDA_R)[j];
      den[to] = hone_cuda_pinned(c, HONE_CUDA_DEN)[j];
    }
  }
  return HONE_OK;
}

/* ---- Products ------------------------------------------------------------ */

namespace {

/* Enqueues the share's part of op(A) x for k vectors, through its pinned
   memory. */
int enqueue_product(hone_cuda *c, bool trans, int64_t k, const double *x) {
  const double *const unit = hone_cuda_unit(c);
  double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  const int64_t taken = trans ? c->n : c->m, given = trans ? c->m : c->n;
  for (int64_t i = 0; i < k; i++)
    if (trans)
      memcpy(h + i * c->n, x + i * c->n, (size_t)c->n * sizeof *x);
    else
      take_dealt(c, x + i * c->n, h + i * c->m);
  int st = CALL(cudaMemcpyAsync(c->v, h, (size_t)(k * taken) * sizeof(double),
                                cudaMemcpyHostToDevice, c->work));
  TRY_CUDA(c->blas->gemm(c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N,
                         CUBLAS_OP_N, (int)given, (int)k, (int)taken, unit,
                         c->a, CUDA_R_64F, (int)c->lda, c->v, CUDA_R_64F,
                         (int)taken, unit + 2, c->w, CUDA_R_64F, (int)given,
                         CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
  TRY_CUDA(cudaMemcpyAsync(h, c->w, (size_t)(k * given) * sizeof(double),
                           cudaMemcpyDeviceToHost, c->work));
  c->used.to_device += k * taken * (int64_t)sizeof(double);
  c->used.from_device += k * given * (int64_t)sizeof(double);
  return st;
}

/* Adds the share's part of one vector of the product. */
void add_product(const hone_cuda *c, bool trans, const double *part,
                 double *p) {
  if (trans)
    for (int64_t j = 0; j < c->m; j++)
      p[hone_cuda_dealt_column(c, j)] = part[j];
  else
    for (int64_t i = 0; i < c->n; i++)
      p[i] += part[i];
}

} // namespace

int hone_several_product(void *self, const hone_matrix *a, bool trans,
                         int64_t k, const double *x, double *p) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  const int64_t n = s->n;
  int st = HONE_OK;
  if (!has_all_of(s, a))
    return HONE_NO_DEVICE;
  for (int64_t i = 0, now; i < k && st == HONE_OK; i += now) {
    now = k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    for (int d = 0; d < s->count; d++) {
      TRY(hone_several_enter(&s->share[d]));
      TRY(enqueue_product(s->share[d].c, trans, now, x + i * n));
    }
    st = hone_several_wait(s, st);
    if (st != HONE_OK)
      return st;
    memset(p + i * n, 0, (size_t)(now * n) * sizeof *p);
    for (int d = 0; d < s->count; d++) {
      const hone_cuda *c = s->share[d].c;
      const double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
      for (int64_t q = 0; q < now; q++)
        add_product(c, trans, h + q * (trans ? c->m : n), p + (i + q) * n);
    }
  }
  return st;
}
