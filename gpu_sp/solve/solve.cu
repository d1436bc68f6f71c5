/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with the float factors, in double arithmetic, as the refinement calls
   them. Read next: triangles.h, residual/resident.cu. */
#include "gpu_sp/solve/solve.h"

#include "gpu_sp/factor/loop.h"
#include "gpu_sp/residual/residual.h"

#include <cfloat>
#include <cmath>
#include <cstring>

namespace {

/* Powers of two with exponents up to this make no entry overflow or vanish. */
enum { LARGEST_EXPONENT = 600 };

/* Enqueues a solve. From P S = L U follow inv(S) = inv(U) inv(L) P and
   inv(S^T) = P^T inv(L^T) inv(U^T); the host applies P. The kernels see the
   transpose of F, that is U^T in its lower triangle and L^T in its upper one.
   S = U^T U is its own transpose. */
int enqueue_solve(hone_cuda *c, bool trans, int64_t k, const double *from,
                  double *to) {
  const hone_sweep sweeps[3][2] = {
      {{HONE_UPPER_TRANS, c->upper}, {HONE_LOWER_TRANS, c->lower}},
      {{HONE_LOWER, c->lower}, {HONE_UPPER, c->upper}},
      {{HONE_LOWER, c->lower}, {HONE_LOWER_TRANS, c->lower}}};
  return CALL(hone_cuda_triangles(sweeps[c->spd ? 2 : trans], 2,
                                  {c->f, c->ld, c->n}, {k, from, to, c->n},
                                  &c->triangles, c->work));
}

/* to[i] = scale * from[perm[i]], or, if scatter is true, to[perm[i]] =
   scale * from[i]. perm NULL: the identity. */
void permute(int64_t n, const int *perm, bool scatter, double scale,
             const double *from, double *to) {
  if (perm == nullptr)
    for (int64_t i = 0; i < n; i++)
      to[i] = scale * from[i];
  else if (scatter)
    for (int64_t i = 0; i < n; i++)
      to[perm[i]] = scale * from[i];
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = scale * from[perm[i]];
}

const int *perm_of(const hone_cuda *c) {
  return c->spd ? nullptr
                : reinterpret_cast<int *>(hone_cuda_pinned(c, HONE_CUDA_PERM));
}

/* Solves for up to HONE_CUDA_COLUMNS columns. */
int solve_columns(hone_cuda *c, bool trans, int64_t k, double *v, int64_t ldv) {
  const int64_t n = c->n, bytes = n * k * (int64_t)sizeof(double);
  double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  const int *const perm = perm_of(c);
  for (int64_t i = 0; i < k; i++)
    permute(n, trans ? nullptr : perm, false, 1.0, v + i * ldv, h + i * n);
  int st = enqueue_solve(c, trans, k, h, h);
  TRY_CUDA(cudaStreamSynchronize(c->work));
  for (int64_t i = 0; i < k && st == HONE_OK; i++)
    permute(n, trans ? perm : nullptr, true, 1.0, h + i * n, v + i * ldv);
  c->used.to_device += bytes;
  c->used.from_device += bytes;
  return st;
}

/* Returns the power of two s with v = s r, r the last residual; 0 if there is
   none, or only an extreme one. */
double multiple_of_residual(const hone_cuda *c, const double *v) {
  const double *const r = hone_cuda_pinned(c, HONE_CUDA_R);
  int64_t i = 0, other = 0;
  while (i < c->n && !(r[i] != 0.0))
    i++;
  if (i == c->n || !(std::fabs(r[i]) <= DBL_MAX) || !(v[i] / r[i] > 0.0))
    return 0.0;
  const int e = std::ilogb(v[i]) - std::ilogb(r[i]);
  if (e > LARGEST_EXPONENT || e < -LARGEST_EXPONENT)
    return 0.0;
  const double scale = std::ldexp(1.0, e);
  for (i = 0; i < c->n; i++)
    other += !(scale * r[i] == v[i]);
  return other == 0 ? scale : 0.0;
}

/* Returns true if v is a multiple of a right-hand side whose solve has been
   enqueued already; then v becomes the solution, and *st the status. */
bool take_solution_ahead(hone_cuda *c, bool trans, double *v, int *st) {
  const double scale = c->solving_ahead && c->solving_ahead_trans == trans
                           ? multiple_of_residual(c, v)
                           : 0;
  if (!(scale > 0.0))
    return false;
  c->solving_ahead = false;
  *st = CALL(cudaStreamSynchronize(c->work));
  if (*st == HONE_OK)
    permute(c->n, trans ? perm_of(c) : nullptr, true, scale,
            hone_cuda_pinned(c, HONE_CUDA_AHEAD), v);
  c->used.from_device += c->n * (int64_t)sizeof(double);
  return true;
}

enum { SCALE_THREADS = 256 };

/* to_ic = scale_j from_jc for the columns c < t, from_jc for the others, where
   j = perm[i]. scale NULL: ones. perm NULL: the identity; 'to' may then be
   'from'. All on the device, n rows. */
__global__ void scale_kernel(int64_t n, int64_t t, const double *scale,
                             const int *perm, const double *from, double *to) {
  const int64_t i = (int64_t)blockIdx.x * SCALE_THREADS + threadIdx.x;
  const int64_t c = blockIdx.y;
  if (i >= n)
    return;
  const int64_t j = perm ? perm[i] : i;
  const double v = from[j + c * n];
  to[i + c * n] = scale && c < t ? scale[j] * v : v;
}

int scale_on_device(hone_cuda *c, int64_t t, int64_t k, const double *scale,
                    const int *perm, const double *from, double *to) {
  const dim3 grid((unsigned)((c->n + SCALE_THREADS - 1) / SCALE_THREADS),
                  (unsigned)k);
  HONE_LAUNCH(scale_kernel, grid, SCALE_THREADS, 0, c->work, c->n, t, scale,
              perm, from, to);
  return CALL(cudaGetLastError());
}

/* w = op(S) v for t columns on the device but for the scaling behind it. */
int multiply(hone_cuda *c, bool scaled, bool trans, int64_t t) {
  const double *unit = reinterpret_cast<const double *>(c->constants + 2);
  const int n = (int)c->n;
  int st = HONE_OK;
  if (scaled)
    st = scale_on_device(c, t, t, trans ? c->row : c->col, nullptr, c->v, c->v);
  TRY_CUDA(c->blas->gemm(
      c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, n, (int)t, n,
      unit, c->a, CUDA_R_64F, (int)c->lda, c->v, CUDA_R_64F, n, unit + 1, c->w,
      CUDA_R_64F, n, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
  return st;
}

} // namespace

/* The columns t .. k-1 wait in c->w until the others are there too. */
int hone_cuda_precondition(void *self, const hone_matrix *a,
                           const hone_scaling *scaling, bool trans, int64_t t,
                           int64_t k, const double *v, double *p) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n, bytes = n * (int64_t)sizeof(double);
  const bool scaled = scaling->used, back = trans && !c->spd;
  double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  int st = HONE_OK;
  c->solve_expected = c->solving_ahead = false;
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(a)->a ||
      k > HONE_CUDA_COLUMNS)
    return HONE_NO_DEVICE;
  if (scaled)
    st = hone_cuda_upload_scaling(c, scaling);
  memcpy(h, v, (size_t)(t * bytes));
  memcpy(h + t * n, p + t * n, (size_t)((k - t) * bytes));
  const hone_copy there[] = {{h, c->v, 2 * n * t},
                             {h + t * n, c->w + t * n, 2 * n * (k - t)}};
  TRY_CUDA(hone_cuda_copy(there, 2, c->work));
  TRY(multiply(c, scaled, trans, t));
  TRY(scale_on_device(c, t, k, scaled ? (trans ? c->col : c->row) : nullptr,
                      c->spd || back ? nullptr : c->perm, c->w, c->v));
  TRY(enqueue_solve(c, back, k, c->v, h));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  for (int64_t i = 0; i < k && st == HONE_OK; i++)
    permute(n, back ? perm_of(c) : nullptr, true, 1.0, h + i * n, p + i * n);
  c->used.to_device += k * bytes;
  c->used.from_device += k * bytes;
  return st;
}

int hone_cuda_solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  trans = trans && !c->spd;
  if (k == 1 && take_solution_ahead(c, trans, v, &st))
    return st;
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t now =
        k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    st = solve_columns(c, trans, now, v + i * ldv, ldv);
  }
  return st;
}

void hone_cuda_expect_solve(void *self) {
  static_cast<hone_cuda *>(self)->solve_expected = true;
}

int hone_cuda_solve_ahead(hone_cuda *c, bool trans) {
  c->solving_ahead_trans = trans && !c->spd;
  int st = CALL(cudaEventRecord(c->residual_done, c->work));
  TRY(enqueue_solve(c, c->solving_ahead_trans, 1, c->w,
                    hone_cuda_pinned(c, HONE_CUDA_AHEAD)));
  TRY_CUDA(cudaEventSynchronize(c->residual_done));
  c->solving_ahead = st == HONE_OK;
  return st;
}
