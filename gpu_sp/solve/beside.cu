/* SPDX-License-Identifier: BSD-3-Clause */
/* A right-hand side h beside the probes:

     y = inv(M) h                     in their first step
     y = y + inv(M) (h - op(S) y)     in each of the next ones, or by itself
                                      where there is none, CORRECTIONS times

   for S = A. The residual is that of the refinement, in double-double, and the
   solves are by groups of a width that depends on the order alone. So the bits
   of y are the same whatever the probes draw, and however many of them there
   are. Next to read: probe.cu. */
#include "gpu_sp/solve/beside.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/solve.h"

#include <cstring>

namespace {

enum {
  /* A second one, which the probes have no solve for where two steps suffice,
     took as long here as in the refinement, or longer: there it is accelerated.
   */
  CORRECTIONS = 1,
  /* Columns of the first step of the probes, with this one. */
  TOGETHER = (16 + HONE_SOLUTIONS_MOST) / HONE_PARTS + 1,
  /* Where y is in c->probes, and r and den in c->w, before the columns that
     probe.cu has at their ends. */
  OF_Y = HONE_CUDA_PROBES - HONE_SOLUTIONS_MOST - 1,
  OF_R = HONE_CUDA_PROBES - 2,
  OF_DEN = HONE_CUDA_PROBES - 3
};

/* z_l = h_j, l = place[j]. place NULL: the identity. */
__global__ void place_kernel(int64_t n, const int *place, const hone_entry *h,
                             hone_entry *z) {
  const int64_t j = row_of_thread();
  if (j < n)
    z[place ? place[j] : j] = h[j];
}

/* y_j = y_j + z_i, or z_i where 'first' is true; j = perm[i]. perm NULL: the
   identity. */
__global__ void correct_kernel(int64_t n, bool first, const int *perm,
                               const hone_entry *z, hone_entry *y) {
  const int64_t i = row_of_thread();
  if (i >= n)
    return;
  const int64_t j = perm ? perm[i] : i;
  y[j] = first ? z[i] : y[j] + z[i];
}

bool exchanges_behind(const hone_cuda *c) {
  return hone_cuda_transposes(c, c->companion.trans);
}

hone_entry *right_side(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(hone_cuda_pinned(c, HONE_CUDA_AHEAD));
}

hone_entry *solution(const hone_cuda *c) { return c->probes + OF_Y * c->n; }

} // namespace

void hone_cuda_beside_begin(hone_cuda *c, const hone_probe_step *s) {
  if (!s->first)
    return;
  /* A solution of several devices has residuals of all of them. */
  c->companion.there =
      s->beside != nullptr && !s->scaling->used && c->deal.of <= 1;
  c->companion.trans = s->trans;
  c->companion.solves = 0;
  if (!c->companion.there)
    return;
  memcpy(right_side(c), s->beside, (size_t)c->n * sizeof(hone_entry));
  c->used.to_device += c->n * (int64_t)sizeof(hone_entry);
}

int hone_cuda_beside_columns(const hone_cuda *c, const hone_probe_step *s) {
  return c->companion.there && c->companion.trans == s->trans &&
                 c->companion.solves <= CORRECTIONS
             ? 1
             : 0;
}

int hone_cuda_beside_give(hone_cuda *c, hone_entry *z) {
  const int64_t n = c->n;
  const int *const place = c->spd || exchanges_behind(c) ? nullptr : c->new_row;
  if (c->companion.solves == 0) {
    HONE_LAUNCH(place_kernel, grid_of(n, 1), ROW_THREADS, 0, c->work, n, place,
                right_side(c), z);
    return CALL(cudaGetLastError());
  }
  hone_entry *const w = hone_cuda_w(c);
  const hone_residual_vectors v = {
      solution(c),  right_side(c),
      w + OF_R * n, reinterpret_cast<double *>(w + OF_DEN * n),
      place,        z,
      nullptr};
  c->used.residuals++;
  return CALL(hone_cuda_residual({c->a, c->lda, n, n}, c->companion.trans, v, 1,
                                 false, c->residual_work, c->work));
}

int hone_cuda_beside_solve(hone_cuda *c, int64_t k) {
  const int chosen = c->triangles.group;
  if (chosen == 0)
    c->triangles.group = hone_cuda_triangle_group(c->n, TOGETHER);
  const int st =
      hone_cuda_enqueue_solve(c, c->work, exchanges_behind(c), k, c->v, c->v);
  c->triangles.group = chosen;
  return st;
}

int hone_cuda_beside_take(hone_cuda *c, const hone_entry *z) {
  HONE_LAUNCH(correct_kernel, grid_of(c->n, 1), ROW_THREADS, 0, c->work, c->n,
              c->companion.solves == 0,
              exchanges_behind(c) && !c->spd ? c->perm : nullptr, z,
              solution(c));
  c->companion.solves++;
  return CALL(cudaGetLastError());
}

namespace {

/* Makes the correction for which the probes had no second step. */
int correct_alone(hone_cuda *c) {
  int st = hone_cuda_beside_give(c, hone_cuda_v(c));
  TRY(hone_cuda_beside_solve(c, 1));
  TRY(hone_cuda_beside_take(c, hone_cuda_v(c)));
  return st;
}

} // namespace

int hone_cuda_solved_beside(void *self, hone_refined_solve *job) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n, bytes = n * (int64_t)sizeof(hone_entry);
  if (!c->companion.there || c->companion.solves == 0 ||
      c->companion.trans != job->trans || job->k != 1 ||
      job->most < CORRECTIONS || !hone_cuda_has_all_of_a(c) ||
      c->source != hone_dense_of(job->a)->a)
    return HONE_NO_DEVICE;
  double *const pinned = hone_cuda_pinned(c, HONE_CUDA_AHEAD);
  const double scale = hone_cuda_multiple_of(c, pinned, job->v);
  if (!(scale > 0.0))
    return HONE_NO_DEVICE;
  int st = HONE_OK;
  while (st == HONE_OK && c->companion.solves <= CORRECTIONS)
    st = correct_alone(c);
  const hone_copy back = {solution(c), pinned, 2 * HONE_PARTS * n};
  TRY_CUDA(hone_cuda_copy(&back, 1, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  c->companion.there = false;
  if (st != HONE_OK)
    return st;
  double *const v = reinterpret_cast<double *>(job->v);
  for (int64_t i = 0; i < HONE_PARTS * n; i++)
    v[i] = scale * pinned[i];
  job->corrections = CORRECTIONS;
  c->used.from_device += bytes;
  return st;
}
