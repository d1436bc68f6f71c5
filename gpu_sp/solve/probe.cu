/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes on the device, in double. c->probes has the random vectors v,
   then the solutions y, then, HONE_SOLUTIONS_MOST columns from its end, their
   right-hand sides h; the column before these is beside.cu's. A step takes

     w = op(A) [v y]          with the scaling of S before and behind it
     z = inv(M) [w  h - w]    z is c->v, with the row exchanges of the factors
     v = v - z,  y = y + z

   A step that relaxes these corrections has one column more, u, before v, and
   makes omega z of z (refine/relaxation.h). If the step estimates ||inv(S)||_1,
   the solve with S^T of its gradient runs beside the product, and the unit
   vector that it finds is one column more of z. So is a right-hand side of the
   caller's: beside.cu.

   Next to read: refine/probes.c for what the numbers say. */
#include "gpu_sp/solve/probe.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/beside.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/gradient.h"
#include "gpu_sp/solve/solve.h"

#include <cstring>

namespace {

/* The generator of base/numbers.h: number k of the sequence of a seed, uniform
   in [-sqrt 3, sqrt 3). An entry has one, or one for each of its parts. */
__device__ inline double draw(uint64_t seed, int64_t k) {
  uint64_t z = seed + ((uint64_t)k + 1) * HONE_RANDOM_STEP;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  z ^= z >> 31;
  return ((double)(z >> 11) - 0x1p52) * (3.4641016151377544 * 0x1p-53);
}

/* Draws n numbers for each column. */
__global__ void draw_kernel(int64_t n, uint64_t seed, double *to) {
  const int64_t i = row_of_thread(), c = blockIdx.y;
  if (i < n)
    to[i + c * n] = draw(seed, i + c * n);
}

/* to_i = scale_i from_i. */
__global__ void scale_kernel(int64_t n, const double *scale,
                             const hone_entry *from, hone_entry *to) {
  const int64_t i = row_of_thread(), c = blockIdx.y;
  if (i < n)
    to[i + c * n] = scale[i] * from[i + c * n];
}

/* z_i = scale_j w_j in the first t columns, and h_j - scale_j w_j in those
   behind them, or h_j if 'first' is true; j = perm[i]. scale NULL: ones. perm
   NULL: the identity. */
__global__ void combine_kernel(int64_t n, int t, bool first,
                               const double *scale, const int *perm,
                               const hone_entry *w, const hone_entry *h,
                               hone_entry *z) {
  const int64_t i = row_of_thread(), c = blockIdx.y;
  if (i >= n)
    return;
  const int64_t j = perm ? perm[i] : i;
  const double s = scale ? scale[j] : 1.0;
  z[i + c * n] = c < t   ? s * w[j + c * n]
                 : first ? h[j + (c - t) * n]
                         : h[j + (c - t) * n] - s * w[j + c * n];
}

/* Adds up one number of each thread of a block of RELAX_THREADS. */
enum { RELAX_THREADS = 1024 };
__device__ double sum_of_block(double value) {
  __shared__ double part[RELAX_THREADS];
  const int me = (int)threadIdx.x;
  part[me] = value;
  __syncthreads();
  for (int left = RELAX_THREADS / 2; left > 0; left /= 2) {
    if (me < left)
      part[me] += part[me + left];
    __syncthreads();
  }
  const double sum = part[0];
  __syncthreads();
  return sum;
}

/* Finds omega by u and p = z, exchanged, as refine/relaxation.c does. There
   are its reasons and its constants. excess: where the host reads omega - 1. */
__global__ void relax_kernel(int64_t n, const int *perm, const hone_entry *z,
                             const hone_entry *u, hone_entry *omega,
                             hone_entry *excess) {
  double uu = 0.0, pp = 0.0;
  hone_entry up = zero_entry();
  for (int64_t i = threadIdx.x; i < n; i += RELAX_THREADS) {
    const hone_entry at = u[perm ? perm[i] : i];
    uu += square_of(at);
    pp += square_of(z[i]);
    up = plus_product(up, conjugate_of(at), z[i]);
  }
  uu = sum_of_block(uu);
  pp = sum_of_block(pp);
  const double re = sum_of_block(real_part(up));
  const double im = sum_of_block(imaginary_part(up));
  if (threadIdx.x > 0)
    return;
  const double aa = re * re + im * im, from = uu - re;
  const double relaxed = uu * (uu / aa * pp - 1.0);
  const bool prevails =
      aa > 0.0 &&
      sqrt(from * from + im * im) <= HONE_RELAXATION_CONVERGES * uu &&
      relaxed <= HONE_RELAXATION_PREVAILS * (uu - 2.0 * re + pp);
  const hone_entry found = prevails ? uu / aa * entry_of(re, -im) : one_entry();
  *omega = found;
  *excess = found - one_entry();
}

/* v_j = v_j - omega z_i in the first t columns; in those behind them v_j +
   omega z_i, or z_i if 'first' is true; j = perm[i]. omega NULL: 1. Each thread
   block writes the sum of squares and the largest magnitude of its part of v to
   sums. */
__global__ void update_kernel(int64_t n, int t, bool first, const int *perm,
                              const hone_entry *omega, const hone_entry *z,
                              hone_entry *v, double *sums) {
  __shared__ double square[ROW_THREADS], most[ROW_THREADS];
  const int64_t i = row_of_thread(), c = blockIdx.y;
  const int me = (int)threadIdx.x;
  hone_entry now = zero_entry();
  if (i < n) {
    const int64_t j = perm ? perm[i] : i;
    const hone_entry d =
        omega ? plus_product(zero_entry(), *omega, z[i + c * n]) : z[i + c * n];
    now = c < t ? v[j + c * n] - d : first ? d : v[j + c * n] + d;
    v[j + c * n] = now;
  }
  square[me] = square_of(now);
  most[me] = size_of(now);
  __syncthreads();
  for (int left = ROW_THREADS / 2; left > 0; left /= 2) {
    if (me < left) {
      square[me] += square[me + left];
      most[me] = larger(most[me], most[me + left]);
    }
    __syncthreads();
  }
  if (me == 0) {
    double *to = sums + 2 * (c * gridDim.x + blockIdx.x);
    to[0] = square[0];
    to[1] = most[0];
  }
}

/* out_i = the sum of squares of row i of v, t columns. */
__global__ void row_kernel(int64_t n, int t, const hone_entry *v, double *out) {
  const int64_t i = row_of_thread();
  double sum = 0.0;
  if (i >= n)
    return;
  for (int64_t c = 0; c < t; c++)
    sum += square_of(v[i + c * n]);
  out[i] = sum;
}

/* The vectors that are still in use; the solutions follow them, and u may come
   before them. */
hone_entry *vectors_of(const hone_cuda *c, const hone_probe_step *s) {
  return c->probes + s->dropped * c->n;
}
int u_of(const hone_probe_step *s) { return s->relaxes ? 1 : 0; }
hone_entry *solutions_of(const hone_cuda *c, const hone_probe_step *s) {
  return c->probes + s->vectors * c->n;
}
hone_entry *right_sides_of(const hone_cuda *c) {
  return c->probes + (HONE_CUDA_PROBES - HONE_SOLUTIONS_MOST) * c->n;
}

int draw_all(hone_cuda *c, const hone_probe_step *s) {
  const int64_t n = HONE_PARTS * c->n;
  HONE_LAUNCH(draw_kernel, grid_of(n, s->vectors), ROW_THREADS, 0, c->work, n,
              s->seed, reinterpret_cast<double *>(c->probes));
  int st = CALL(cudaGetLastError());
  if (s->solutions > 0) {
    HONE_LAUNCH(draw_kernel, grid_of(n, s->solutions), ROW_THREADS, 0, c->work,
                n, s->solutions_seed,
                reinterpret_cast<double *>(right_sides_of(c)));
    TRY_CUDA(cudaGetLastError());
  }
  return st;
}

/* Pinned memory that a step writes to: the sums of update_kernel, then those of
   the estimate, then the rows of v. */
double *sums_of(const hone_cuda *c) {
  return hone_cuda_pinned(c, HONE_CUDA_SOLVES);
}
int64_t row_blocks(const hone_cuda *c) { return grid_of(c->n, 1).x; }
double *norm_of(const hone_cuda *c) {
  const int most = HONE_CUDA_PROBES - HONE_SOLUTIONS_MOST;
  return sums_of(c) + 2 * most * row_blocks(c);
}
double *rows_of(const hone_cuda *c) { return norm_of(c) + row_blocks(c); }
/* Before the first of these, omega - 1: no step has sums for the last of 'most'
   columns. */
hone_entry *excess_of(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(norm_of(c)) - 1;
}
/* Where omega is on the device, in a column of w before those of beside.cu. */
hone_entry *omega_of(const hone_cuda *c) {
  return hone_cuda_w(c) + (HONE_CUDA_PROBES - 4) * c->n;
}

double sum_of(const double *parts, int64_t count) {
  double sum = 0.0;
  for (int64_t e = 0; e < count; e++)
    sum += parts[e];
  return sum;
}

/* Adds up what the thread blocks found. */
void take_sums(const hone_cuda *c, hone_probe_step *s) {
  const double *const sums = sums_of(c);
  const int64_t blocks = row_blocks(c), t = s->vectors - s->dropped;
  s->squares = s->largest = s->first_squares = 0.0;
  for (int64_t e = 0; e < t * blocks; e++) {
    s->squares += sums[2 * e];
    if (e < blocks)
      s->first_squares += sums[2 * e];
    s->largest = larger(s->largest, sums[2 * e + 1]);
  }
  for (int64_t k = 0; k < s->solutions; k++) {
    const double *of = sums + 2 * (t + k) * blocks;
    s->solution_squares[k] = 0.0;
    for (int64_t e = 0; e < blocks; e++)
      s->solution_squares[k] += of[2 * e];
  }
  if (s->estimates)
    s->inverse_norm = sum_of(norm_of(c), blocks);
  if (s->relaxes)
    memcpy(&s->excess, excess_of(c), sizeof s->excess);
  memcpy(s->row_squares, rows_of(c), (size_t)c->n * sizeof(double));
}

/* Begins the estimate from y number 'from'. z: n entries, for the unit vector;
   column HONE_CUDA_PROBES - 1 of w is room to work in. */
int begin_estimate(hone_cuda *c, cudaStream_t stream, const hone_probe_step *s,
                   int from, hone_entry *z) {
  return hone_cuda_gradient_begin(
      c, stream, solutions_of(c, s) + from * c->n, z,
      hone_cuda_w(c) + (HONE_CUDA_PROBES - 1) * c->n);
}

/* Does so beside what c->work is told next, until wait_for_estimate. */
int begin_estimate_beside(hone_cuda *c, const hone_probe_step *s, int from,
                          hone_entry *z) {
  int st = CALL(cudaEventRecord(c->beside, c->work));
  TRY_CUDA(cudaStreamWaitEvent(c->feed, c->beside, 0));
  TRY(begin_estimate(c, c->feed, s, from, z));
  return st;
}
int wait_for_estimate(hone_cuda *c) {
  int st = CALL(cudaEventRecord(c->beside, c->feed));
  TRY_CUDA(cudaStreamWaitEvent(c->work, c->beside, 0));
  return st;
}

/* Enqueues z = inv(M) [w  h - w], or w = op(A) v and z for the vectors that
   have been drawn; u, if there is one, is the first of them. */
int enqueue_solves(hone_cuda *c, const hone_probe_step *s) {
  const int64_t n = c->n, t = s->vectors - s->dropped + u_of(s),
                k = t + s->solutions;
  const bool scaled = s->scaling->used;
  const bool back = hone_cuda_transposes(c, s->trans);
  hone_entry *const z = hone_cuda_v(c), *const unit = z + k * n;
  int st = s->estimates ? begin_estimate_beside(c, s, s->from, unit) : HONE_OK;
  TRY(hone_cuda_multiply(c, scaled, s->trans, s->first ? t : k,
                         vectors_of(c, s) - u_of(s) * n));
  if (st != HONE_OK)
    return st;
  HONE_LAUNCH(combine_kernel, grid_of(n, k), ROW_THREADS, 0, c->work, n, (int)t,
              s->first, scaled ? (s->trans ? c->col : c->row) : nullptr,
              c->spd || back ? nullptr : c->perm, hone_cuda_w(c),
              right_sides_of(c), z);
  TRY_CUDA(cudaGetLastError());
  if (s->estimates)
    TRY(wait_for_estimate(c));
  const int64_t all = k + (s->estimates ? 1 : 0);
  hone_entry *const beside = z + all * n;
  if (hone_cuda_beside_columns(c, s) > 0) {
    TRY(hone_cuda_beside_give(c, beside));
    TRY(hone_cuda_beside_solve(c, all + 1));
    TRY(hone_cuda_beside_take(c, beside));
  } else {
    TRY(hone_cuda_enqueue_solve(c, c->work, back, all, c->v, c->v));
  }
  if (s->estimates)
    TRY(hone_cuda_gradient_sums(c, unit, norm_of(c)));
  return st;
}

/* The estimate where no step was left for it: alone, or with the right-hand
   side beside the probes. */
int estimate(hone_cuda *c, const hone_probe_step *s, int from, double *norm) {
  hone_entry *const z = hone_cuda_v(c), *const beside = z + c->n;
  int st = begin_estimate_beside(c, s, from, z);
  if (!s->trans && hone_cuda_beside_columns(c, s) > 0) {
    TRY(hone_cuda_beside_give(c, beside));
    TRY(wait_for_estimate(c));
    TRY(hone_cuda_beside_solve(c, 2));
    TRY(hone_cuda_beside_take(c, beside));
  } else {
    TRY(wait_for_estimate(c));
    TRY(hone_cuda_enqueue_solve(c, c->work, false, 1, c->v, c->v));
  }
  TRY(hone_cuda_gradient_sums(c, z, norm_of(c)));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st == HONE_OK)
    *norm = sum_of(norm_of(c), row_blocks(c));
  c->used.from_device += row_blocks(c) * (int64_t)sizeof(double);
  return st;
}

} // namespace

int hone_cuda_multiply(hone_cuda *c, bool scaled, bool trans, int64_t k,
                       const hone_entry *from) {
  const double *unit = hone_cuda_unit(c);
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_64F : CUDA_R_64F;
  const int n = (int)c->n;
  int st = HONE_OK;
  if (scaled) {
    HONE_LAUNCH(scale_kernel, grid_of(n, k), ROW_THREADS, 0, c->work, c->n,
                trans ? c->row : c->col, from, hone_cuda_v(c));
    st = CALL(cudaGetLastError());
    from = hone_cuda_v(c);
  }
  if (c->product.enqueue) {
    TRY(c->product.enqueue(c->product.ctx, trans, k, from));
    return st;
  }
  TRY_CUDA(c->blas->gemm(c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N,
                         CUBLAS_OP_N, n, (int)k, n, unit, c->a, type,
                         (int)c->lda, from, type, n, unit + 2, c->w, type, n,
                         CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
  return st;
}

namespace {

/* Enqueues all of a step. */
int enqueue_step(hone_cuda *c, const hone_probe_step *s) {
  const int64_t n = c->n, t = s->vectors - s->dropped, k = t + s->solutions;
  const bool back = hone_cuda_transposes(c, s->trans);
  int st = HONE_OK;
  hone_cuda_beside_begin(c, s);
  if (s->first) {
    if (s->scaling->used)
      st = hone_cuda_upload_scaling(c, s->scaling, false);
    TRY(draw_all(c, s));
  }
  TRY(enqueue_solves(c, s));
  if (st != HONE_OK)
    return st;
  const int *const perm = back && !c->spd ? c->perm : nullptr;
  hone_entry *const v = vectors_of(c, s), *const z = hone_cuda_v(c);
  if (s->relaxes) {
    HONE_LAUNCH(relax_kernel, dim3(1), RELAX_THREADS, 0, c->work, n, perm, z,
                v - n, omega_of(c), excess_of(c));
    TRY_CUDA(cudaGetLastError());
  }
  HONE_LAUNCH(update_kernel, grid_of(n, k), ROW_THREADS, 0, c->work, n, (int)t,
              s->first, perm, s->relaxes ? omega_of(c) : nullptr,
              z + u_of(s) * n, v, sums_of(c));
  TRY_CUDA(cudaGetLastError());
  HONE_LAUNCH(row_kernel, grid_of(n, 1), ROW_THREADS, 0, c->work, n, (int)t, v,
              rows_of(c));
  TRY_CUDA(cudaGetLastError());
  return st;
}

bool serves(const hone_cuda *c, const hone_matrix *a,
            const hone_probe_step *s) {
  return hone_cuda_has_all_of_a(c) && c->source == hone_dense_of(a)->a &&
         c->n >= 2 && s->vectors < HONE_CUDA_PROBES - 2 * HONE_SOLUTIONS_MOST;
}

/* Is this the step that has been begun? A right-hand side that it had is
   compared when its solution is asked for. */
bool is_begun(const hone_cuda *c, const hone_probe_step *s) {
  const hone_probe_step *e = &c->expected;
  return c->probing_ahead && s->first && !s->scaling->used && !s->estimates &&
         !s->relaxes && s->trans == e->trans && s->vectors == e->vectors &&
         s->solutions == e->solutions && s->dropped == e->dropped &&
         s->seed == e->seed && s->solutions_seed == e->solutions_seed;
}

} // namespace

void hone_cuda_expect_probes(void *self, const hone_matrix *a,
                             const hone_probe_step *s) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  if (hone_cuda_forget(c) != HONE_OK || !serves(c, a, s) || !s->first ||
      s->scaling->used || s->estimates)
    return;
  c->expected = *s;
  c->probing_ahead = enqueue_step(c, s) == HONE_OK;
}

int hone_cuda_probe_step(void *self, const hone_matrix *a, hone_probe_step *s) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n, k = s->vectors - s->dropped + s->solutions;
  const bool begun = is_begun(c, s);
  c->probing_ahead = c->probing_ahead && !begun;
  int st = hone_cuda_forget(c);
  if (!serves(c, a, s))
    return HONE_NO_DEVICE;
  if (!begun)
    TRY(enqueue_step(c, s));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st == HONE_OK)
    take_sums(c, s);
  c->used.from_device +=
      ((2 * k + 1) * row_blocks(c) + n) * (int64_t)sizeof(double);
  return st;
}

int hone_cuda_probed(void *self, const hone_probe_step *s,
                     const hone_probed *out) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n, bytes = n * (int64_t)sizeof(hone_entry);
  const bool wanted = out->solution >= 0;
  int st = HONE_OK;
  if (out->inverse_norm)
    st = estimate(c, s, out->from, out->inverse_norm);
  if (!wanted || st != HONE_OK)
    return st;
  double *const h = sums_of(c); /* all of it has been taken */
  const hone_copy back = {solutions_of(c, s) + out->solution * n, h,
                          2 * HONE_PARTS * n};
  st = CALL(hone_cuda_copy(&back, 1, c->work));
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st != HONE_OK)
    return st;
  memcpy(out->solution_to, h, (size_t)bytes);
  c->used.from_device += bytes;
  return st;
}
