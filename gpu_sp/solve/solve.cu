/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of the refinement once A is on the CUDA device or factored: solves
   with the float factors in double arithmetic, the inspection of A,
   residuals, and the account of what was done. Read next: triangles.h,
   residual/residual.h. */
#include "gpu_sp/state.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

enum {
  LARGEST_POWER = 600
}; /* a power of two up to here makes nothing overflow or vanish */

/* ---- Solves ---------------------------------------------------------------
 */

/* P S = L U: inv(S) = inv(U) inv(L) P, inv(S^T) = P^T inv(L^T) inv(U^T). The
   kernels see the transpose of F: U^T below the diagonal, L^T above. S = U^T U
   is its own transpose. The host applies P. */
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

/* to[i] = scale * from[perm[i]]; scatter: to[perm[i]] = scale * from[i]. perm
   NULL: in order. */
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
                : reinterpret_cast<int *>(hone_cuda_at(c, HONE_CUDA_PERM));
}

int solve_some(hone_cuda *c, bool trans, int64_t k, double *v, int64_t ldv) {
  const int64_t n = c->n, bytes = n * k * (int64_t)sizeof(double);
  double *const h = hone_cuda_at(c, HONE_CUDA_SOLVES);
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

/* The power of two by which v is the last residual's r; 0 where v is something
   else, or the power is extreme. */
double multiple(const hone_cuda *c, const double *v) {
  const double *const r = hone_cuda_at(c, HONE_CUDA_R);
  int64_t i = 0, other = 0;
  while (i < c->n && !(r[i] != 0.0))
    i++;
  if (i == c->n || !(std::fabs(r[i]) <= DBL_MAX) || !(v[i] / r[i] > 0.0))
    return 0.0;
  const int e = std::ilogb(v[i]) - std::ilogb(r[i]);
  if (e > LARGEST_POWER || e < -LARGEST_POWER)
    return 0.0;
  const double scale = std::ldexp(1.0, e);
  for (i = 0; i < c->n; i++)
    other += !(scale * r[i] == v[i]);
  return other == 0 ? scale : 0.0;
}

/* Has a solve for v been enqueued already? Then v becomes its solution. */
bool take_solution_ahead(hone_cuda *c, bool trans, double *v, int *st) {
  const double scale =
      c->solving_ahead && c->solving_ahead_trans == trans ? multiple(c, v) : 0;
  if (!(scale > 0.0))
    return false;
  c->solving_ahead = false;
  *st = CALL(cudaStreamSynchronize(c->work));
  if (*st == HONE_OK)
    permute(c->n, trans ? perm_of(c) : nullptr, true, scale,
            hone_cuda_at(c, HONE_CUDA_AHEAD), v);
  c->used.from_device += c->n * (int64_t)sizeof(double);
  return true;
}

} // namespace

int hone_cuda_solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  trans = trans && !c->spd;
  if (k == 1 && take_solution_ahead(c, trans, v, &st))
    return st;
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t now =
        k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    st = solve_some(c, trans, now, v + i * ldv, ldv);
  }
  return st;
}

namespace {

/* ---- A on the device
 * --------------------------------------------------------- */

/* Maxima and sums of the columns j .. j+w-1 of S, into c->magnitudes. */
int inspect(hone_cuda *c, int64_t j, int64_t w, bool scaled) {
  double *seen = c->magnitudes;
  const int64_t n = c->n;
  return CALL(
      hone_cuda_inspect({c->a, c->lda, n, j, w},
                        {scaled ? c->row : nullptr, scaled ? c->col : nullptr},
                        {seen, seen + n, seen + 2 * n, seen + 3 * n}, c->work));
}

} // namespace

/* A symmetric matrix is inspected only when all of it has arrived: the other
   triangle, which is not sent, is then made from the one that is. */
int hone_cuda_look(hone_cuda *c, int64_t to) {
  int st = HONE_OK;
  const int64_t from = c->inspected;
  if (from >= to || (c->spd && c->fed < c->n))
    return HONE_OK;
  c->inspected = to;
  if (c->one_triangle)
    st = CALL(hone_cuda_mirror(c->n, c->a, c->lda, c->work));
  TRY(inspect(c, from, to - from, false));
  return st;
}

/* Inspects S. The numbers of A itself were gathered while A came in. */
int hone_cuda_see(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  double *scratch, hone_inspection *seen) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  int st = hone_cuda_feed(c, hone_dense_of(a), n, nullptr);
  if (st == HONE_OK && c->inspected < n) {
    st = CALL(cudaStreamSynchronize(c->feed));
    TRY(hone_cuda_look(c, n));
  }
  if (scaling) {
    TRY(hone_cuda_upload_scaling(c, scaling));
    TRY_CUDA(cudaMemsetAsync(c->magnitudes, 0, 2 * bytes, c->work));
    TRY(inspect(c, 0, n, true));
  }
  const hone_copy back = {c->magnitudes, c->h_v, 8 * n};
  TRY_CUDA(hone_cuda_copy(&back, 1, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  c->used.from_device += 4 * (int64_t)bytes;
  memcpy(seen->row_max, c->h_v, bytes);
  memcpy(scratch, c->h_v + n, bytes);
  memcpy(seen->col_max, c->h_v + 2 * n, bytes);
  memcpy(scratch + n, c->h_v + 3 * n, bytes);
  if (c->nonfinite > 0) /* as inspection does */
    seen->col_max[c->nonfinite - 1] = HONE_INF;
  if (c->asymmetry !=
      0) /* the copy is not A, so the host must inspect A itself */
    seen->col_max[0] = HONE_INF;
  return HONE_OK;
}

void hone_cuda_expect(void *self) {
  static_cast<hone_cuda *>(self)->solve_expected = true;
}

namespace {

/* Enqueues the solve that the refinement will ask for next, behind r, and waits
   for r alone. */
int solve_ahead(hone_cuda *c, bool trans) {
  c->solving_ahead_trans = trans && !c->spd;
  int st = CALL(cudaEventRecord(c->residual_done, c->work));
  TRY(enqueue_solve(c, c->solving_ahead_trans, 1, c->w,
                    hone_cuda_at(c, HONE_CUDA_AHEAD)));
  TRY_CUDA(cudaEventSynchronize(c->residual_done));
  c->solving_ahead = st == HONE_OK;
  return st;
}

} // namespace

int hone_cuda_take_residual(void *self, const hone_matrix *a, bool trans,
                            const double *x, const double *b, double *r,
                            double *den) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  const bool ahead =
      c->solve_expected && !c->scaled; /* otherwise the host scales r first */
  double *const h_r = hone_cuda_at(c, HONE_CUDA_R);
  double *const h_den = hone_cuda_at(c, HONE_CUDA_DEN);
  c->solve_expected = c->solving_ahead = false;
  if (!hone_cuda_all_there(c) || c->source != hone_dense_of(a)->a)
    return HONE_NO_DEVICE;
  memcpy(hone_cuda_at(c, HONE_CUDA_X), x, bytes);
  memcpy(hone_cuda_at(c, HONE_CUDA_B), b, bytes);
  /* x is read many times, so it is copied to the device */
  const hone_copy there = {hone_cuda_at(c, HONE_CUDA_X), c->v, 2 * n};
  int st = CALL(hone_cuda_copy(&there, 1, c->work));
  const hone_residual_vectors v = {
      c->v,  hone_cuda_at(c, HONE_CUDA_B),           h_r,
      h_den, trans || c->spd ? nullptr : c->new_row, ahead ? c->w : nullptr};
  TRY_CUDA(hone_cuda_residual({c->a, c->lda, n}, trans, v, c->residual_work,
                              c->work));
  TRY(ahead ? solve_ahead(c, trans) : CALL(cudaStreamSynchronize(c->work)));
  if (st != HONE_OK)
    return st;
  memcpy(r, h_r, bytes);
  memcpy(den, h_den, bytes);
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
      c->choices.pivoting == HONE_PIVOT_BLOCK
          ? "pivoting in the diagonal block"
          : (c->choices.pivoting == HONE_PIVOT_NONE ? "no pivoting"
                                                    : "tournament pivoting");
  static const char *const sections[] = {
      "", ", TRSM sections", ", seeded sections", ", Crout sections"};
  const bool cpu = c->used.diagonal_ms > 0.0; /* some diagonal block */
  snprintf(out->text, sizeof out->text, "%s, %s%s%s",
           c->tf32 ? "tf32" : names[c->pieces],
           c->spd ? "one triangle" : pivots,
           cpu ? ", diagonal blocks by the CPU" : "",
           c->spd ? "" : sections[c->choices.sections]);
}
