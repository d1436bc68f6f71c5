/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions for several right-hand sides h, refined on the device in double:

     y = inv(M) h
     y = y + inv(M) (h - op(S) y)      while the corrections shrink

   The product with op(A) is one of matrices, by cuBLAS, and a step moves no
   vector over the bus but h, which the device reads in pinned memory. The
   residual is that of plain double arithmetic: the refinement that follows
   measures y in double-double like any other solution, and corrects what is
   left (refine/refine.c). Next to read: probe.cu, which does the same to random
   vectors. */
#include "gpu_sp/solve/refined.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/solve.h"

#include <cstring>

namespace {

/* The sizes of corrections, two for each column and thread block of rows, have
   room in the pinned memory of a residual, 4 n doubles, from here on. */
enum { LEAST_ORDER = 64 };
static_assert(2 * HONE_CUDA_COLUMNS <= 4 * LEAST_ORDER, "there is room");
/* A correction that is larger than this part of the one before is the last one,
   and must be as small as the other number beside y: otherwise it is rounding
   errors or the factors that keep y from the solution. */
constexpr double SHRINKS = 0.5, SETTLED = 0x1p-30;
/* So is one after which the next would be below this part of y. */
constexpr double NEGLIGIBLE = 0x1p-53;
/* And, with factors of single precision, one below this part: what it leaves of
   the residual is some 2^-20 times as large. */
constexpr double SUFFICES = 0x1p-36;

/* z_l = h_j - s_j w_j, or h_j where 'first' is true; l = place[j], the row of
   the factors. s NULL: ones. place NULL: the identity. */
__global__ void right_side_kernel(int64_t n, bool first, const double *scale,
                                  const int *place, const hone_entry *w,
                                  const hone_entry *h, hone_entry *z) {
  const int64_t j = row_of_thread(), c = blockIdx.y;
  if (j >= n)
    return;
  const double s = scale ? scale[j] : 1.0;
  z[(place ? place[j] : j) + c * n] =
      first ? h[j + c * n] : h[j + c * n] - s * w[j + c * n];
}

/* y_j = y_j + z_i, or z_i where 'first' is true; j = perm[i]. perm NULL: the
   identity. Each thread block writes the largest magnitudes of its part of z
   and of y to sizes. */
__global__ void add_kernel(int64_t n, bool first, const int *perm,
                           const hone_entry *z, hone_entry *y, double *sizes) {
  __shared__ double of_z[ROW_THREADS], of_y[ROW_THREADS];
  const int64_t i = row_of_thread(), c = blockIdx.y;
  const int me = (int)threadIdx.x;
  hone_entry d = zero_entry(), now = d;
  if (i < n) {
    const int64_t j = perm ? perm[i] : i;
    d = z[i + c * n];
    now = first ? d : y[j + c * n] + d;
    y[j + c * n] = now;
  }
  of_z[me] = larger(0.0, size_of(d));
  of_y[me] = larger(0.0, size_of(now));
  __syncthreads();
  for (int left = ROW_THREADS / 2; left > 0; left /= 2) {
    if (me < left) {
      of_z[me] = larger(of_z[me], of_z[me + left]);
      of_y[me] = larger(of_y[me], of_y[me + left]);
    }
    __syncthreads();
  }
  if (me == 0) {
    double *to = sizes + 2 * (c * gridDim.x + blockIdx.x);
    to[0] = of_z[0];
    to[1] = of_y[0];
  }
}

/* Some columns: y is in c->probes. */
struct block {
  hone_cuda *c;
  bool scaled, trans, back; /* back: rows are exchanged behind the solve */
  int64_t k;
  hone_entry *v; /* k columns of the caller, ldv */
  int64_t ldv;
  hone_entry *h; /* pinned: the right-hand sides, then the solutions */
};

/* y becomes the first solution, or is corrected once. */
int take_step(const block *s, bool first) {
  hone_cuda *c = s->c;
  const int64_t n = c->n;
  const dim3 grid = grid_of(n, s->k);
  const double *scale = s->scaled ? (s->trans ? c->col : c->row) : nullptr;
  int st = HONE_OK;
  if (!first)
    st = hone_cuda_multiply(c, s->scaled, s->trans, s->k, c->probes);
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(right_side_kernel, grid, ROW_THREADS, 0, c->work, n, first, scale,
              c->spd || s->back ? nullptr : c->new_row, hone_cuda_w(c), s->h,
              hone_cuda_v(c));
  TRY_CUDA(cudaGetLastError());
  TRY(hone_cuda_enqueue_solve(c, c->work, s->back, s->k, c->v, c->v));
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(add_kernel, grid, ROW_THREADS, 0, c->work, n, first,
              s->back ? c->perm : nullptr, hone_cuda_v(c), c->probes,
              hone_cuda_pinned(c, HONE_CUDA_X));
  TRY_CUDA(cudaGetLastError());
  TRY_CUDA(cudaStreamSynchronize(c->work));
  return st;
}

/* Returns the largest correction relative to its y; NaN if there is one. */
double relative_size(const block *s) {
  const double *sizes = hone_cuda_pinned(s->c, HONE_CUDA_X);
  const int64_t blocks = grid_of(s->c->n, 1).x;
  double most = 0.0;
  for (int64_t k = 0; k < s->k; k++) {
    double z = 0.0, y = 0.0;
    for (int64_t e = k * blocks; e < (k + 1) * blocks; e++) {
      z = larger(z, sizes[2 * e]);
      y = larger(y, sizes[2 * e + 1]);
    }
    const double size = z > 0.0 ? z / y : z; /* b may be 0 */
    most = larger(most, size);
  }
  return most;
}

/* Do the factors have the digits of single precision? */
bool are_single(const hone_cuda *c) {
  return c->pieces == HONE_SPLIT_FP16_3 ||
         (c->pieces == HONE_SPLIT_NONE && !c->tf32);
}

/* Refines the columns; *made: by so many corrections. */
int refine(const block *s, int most, int *made) {
  const double suffices = are_single(s->c) ? SUFFICES : 0.0;
  double last = 1.0;
  int st = take_step(s, true);
  *made = 0;
  while (st == HONE_OK && *made < most) {
    st = take_step(s, false);
    if (st != HONE_OK)
      return st;
    ++*made;
    const double size = relative_size(s);
    if (!(size <= SHRINKS * last))
      return size <= SETTLED ? HONE_OK : HONE_NO_DEVICE;
    if (size * (size / last) <= NEGLIGIBLE || size <= suffices)
      return HONE_OK;
    last = size;
  }
  return st;
}

void copy_in(void *ctx, int64_t k) {
  const block *s = static_cast<const block *>(ctx);
  memcpy(s->h + k * s->c->n, s->v + k * s->ldv, (size_t)s->c->n * sizeof *s->h);
}

void copy_out(void *ctx, int64_t k) {
  const block *s = static_cast<const block *>(ctx);
  memcpy(s->v + k * s->ldv, s->h + k * s->c->n, (size_t)s->c->n * sizeof *s->h);
}

/* Solves for the columns of a block. Where refinement does not contract they
   are solved for without. */
int solve_block(const block *s, int most, int *made) {
  hone_cuda *c = s->c;
  const hone_copy back = {c->probes, s->h, 2 * HONE_PARTS * c->n * s->k};
  const int64_t bytes = c->n * s->k * (int64_t)sizeof(hone_entry);
  hone_pool_run(c->pool, s->k, copy_in, const_cast<block *>(s));
  int st = refine(s, most, made);
  if (st == HONE_NO_DEVICE) {
    *made = 0;
    return hone_cuda_solve(c, s->trans, s->k, s->v, s->ldv);
  }
  TRY_CUDA(hone_cuda_copy(&back, 1, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  hone_pool_run(c->pool, s->k, copy_out, const_cast<block *>(s));
  c->used.to_device += bytes;
  c->used.from_device += bytes;
  return st;
}

} // namespace

int hone_cuda_solve_refined(void *self, hone_refined_solve *job) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const bool back = hone_cuda_transposes(c, job->trans);
  double *const pinned = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  block s = {c,          job->scaling->used,
             job->trans, back,
             0,          job->v,
             job->ldv,   reinterpret_cast<hone_entry *>(pinned)};
  c->companion.there = false;
  int st = hone_cuda_forget(c);
  job->corrections = 0;
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(job->a)->a ||
      c->n < LEAST_ORDER)
    return HONE_NO_DEVICE;
  if (s.scaled)
    TRY(hone_cuda_upload_scaling(c, job->scaling, false));
  for (int64_t i = 0; i < job->k && st == HONE_OK; i += s.k) {
    const int64_t left = job->k - i, most = hone_cuda_columns(c->n);
    int made = 0;
    s.k = left < most ? left : most;
    s.v = job->v + i * job->ldv;
    st = solve_block(&s, job->most, &made);
    job->corrections = made > job->corrections ? made : job->corrections;
  }
  return st;
}
