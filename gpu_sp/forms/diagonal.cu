/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors the diagonal blocks on the CPU, in single precision: see forms.h. An
   inner panel takes these steps:

     side   chooses the pivot rows, by the GPU's panel kernel on a copy, moves
            them, and writes the block into pinned memory, row by row
     CPU    finds it there; computes its LU, with pivoting among its rows, and
            the inverses (block_lu.c), all in pinned memory
     side   reads them from there, moves the rows once more, and computes
            L21 = A21 inv(U11) with corrections (block_rows.cu)

   while the stream work updates the other columns by the outer panel before.
   Kernels read and write the pinned memory themselves, with one launch each
   way; copies would be three, and would have to join two streams. The CPU has
   the block as soon as its last row has arrived, not only when it finds a
   stream idle. The caller waits for the block and for the corrections.

   The GPU's panel kernel factors the block before the CPU does, to choose the
   pivot rows. So this method gains nothing; where the update hides it, it costs
   nothing. Read next: base/block_lu.h, block_rows.cu; queues.cu
   for the streams. */
#include "gpu_sp/forms/forms.h"

extern "C" {
#include "base/block_lu.h"
}

#include <cmath>
#include <cstring>

namespace {

/* Measured on an H200 (docs/performance.md). With HIDES_FROM columns left the
   update by 128 columns takes 0.6 ms, at 180 TFLOP/s. */
const int64_t HIDES_FROM = 20480;

enum { SIZE = HONE_PANEL * HONE_PANEL };
/* rows of a block that one thread block copies */
enum { ROWS_EACH = HONE_PANEL / HONE_CUDA_PARTS };
static_assert((int)HONE_PANEL == (int)HONE_BLOCK, "one kind of blocks");

bool cpu_chosen(const hone_cuda *c) {
  return c->choices.diagonal == HONE_DIAGONAL_CPU && !c->spd;
}

/* Returns the number of remaining columns from which on the update by 128
   columns takes as long as an inner panel by way of the CPU. HIDES_FROM is that
   number for three products in FP16. The time of the update is proportional to
   the square of the columns and to the time of a product, which is given here
   relative to three products in FP16 (TF32 at half the rate of FP16, as
   published for the H200; FP32 supposed to run at 50 TFLOP/s). These are
   constants, not measurements, so that every run makes the same choice. */
int64_t hides_from(const hone_cuda *c) {
  const int64_t chosen = c->choices.trial.hides_from;
  double product = 1.0;
  if (c->pieces == HONE_SPLIT_NONE)
    product = c->tf32 ? 2.0 / 3.0 : 3.6;
  else if (c->pieces == HONE_SPLIT_FP16_1 || c->pieces == HONE_SPLIT_BF16_1)
    product = 1.0 / 3.0;
  return (int64_t)((double)(chosen > 0 ? chosen : HIDES_FROM) /
                   std::sqrt(product));
}

/* ---- The CPU's part ------------------------------------------------------ */

/* Factors the block, and computes the inverses that are asked for. Returns the
   first zero pivot (then there are no inverses), or -1. */
int factor_block(hone_cuda_block *b, int w, bool natural, bool upper,
                 bool lower) {
  const int zero = hone_block_lu(w, natural, b->lu, b->row);
  if (zero >= 0) {
    memset(b->upper, 0, sizeof b->upper);
    memset(b->lower, 0, sizeof b->lower);
  }
  if (zero < 0 && upper)
    hone_block_upper(w, b->lu, b->upper);
  if (zero < 0 && lower)
    hone_block_lower(w, b->lu, b->lower);
  return zero;
}

/* ---- Kernels: HONE_CUDA_PARTS thread blocks of HONE_PANEL threads -------- */

/* Copies the block at f into pinned memory, and then posts its ticket. */
__global__ void copy_out(const float *f, int64_t ld, int w, unsigned ticket,
                         hone_cuda_block *out) {
  const int j = (int)threadIdx.x, first = (int)blockIdx.x * ROWS_EACH;
#pragma unroll
  for (int i = first; i < first + ROWS_EACH; i++)
    if (i < w && j < w)
      out->lu[i * HONE_PANEL + j] = f[i * ld + j];
  __threadfence_system();
  __syncthreads();
  if (j == 0)
    *static_cast<volatile unsigned *>(out->arrived + blockIdx.x) = ticket;
}

/* The parameters of copy_back: the CPU's results, and where they go. */
struct results {
  const hone_cuda_block *from;
  float *f; /* the block */
  int64_t ld;
  float *upper, *lower; /* NULL: not needed */
  hone_moves *moves;
  bool fresh; /* the panel has no moves yet */
  int k, w;
  int *first_zero, zero; /* zero: a column, or -1 */
};

/* Appends the block's own row exchanges to the moves that brought its rows
   there. */
__device__ void append_moves(const results &args) {
  hone_moves *moves = args.moves;
  const int i = (int)threadIdx.x, w = args.w, k = args.k;
  const int from = i < w ? args.from->row[i] : 0;
  const int src = args.fresh ? k + from : moves->src[from];
  __syncthreads();
  if (i < w) {
    moves->dst[i] = k + i;
    moves->src[i] = src;
  } else if (args.fresh) {
    moves->dst[i] = moves->src[i] = -1;
  }
  if (args.fresh)
    moves->dst[HONE_PANEL + i] = moves->src[HONE_PANEL + i] = -1;
  if (i == 0 && args.zero >= 0 && k + args.zero < *args.first_zero)
    *args.first_zero = k + args.zero;
}

__global__ void copy_back(results args) {
  const int j = (int)threadIdx.x, first = (int)blockIdx.x * ROWS_EACH;
  float lu[ROWS_EACH], upper[ROWS_EACH], lower[ROWS_EACH]; /* loaded at once */
#pragma unroll
  for (int r = 0; r < ROWS_EACH; r++) {
    const int at = (first + r) * HONE_PANEL + j;
    lu[r] = first + r < args.w ? args.from->lu[at] : 0.0F;
    upper[r] = args.upper ? args.from->upper[at] : 0.0F;
    lower[r] = args.lower ? args.from->lower[at] : 0.0F;
  }
#pragma unroll
  for (int r = 0; r < ROWS_EACH; r++) {
    const int i = first + r;
    if (i < args.w && j < args.w)
      args.f[i * args.ld + j] = lu[r];
    if (args.upper)
      args.upper[i * HONE_PANEL + j] = upper[r];
    if (args.lower)
      args.lower[i * HONE_PANEL + j] = lower[r];
  }
  if (blockIdx.x == 0)
    append_moves(args);
}

/* ---- Copies to the CPU and back ----------------------------------------- */

/* Chooses the pivot rows by factoring a copy of the panel, and moves them in
   the panel's own columns. */
int choose_pivot_rows(hone_cuda *c, const hone_cuda_queue &on,
                      hone_moves *moves, int64_t k, int64_t w) {
  const size_t wide = HONE_PANEL * sizeof(float);
  float *copy = on.defect; /* goes on in on.step, which follows in memory */
  int st = CALL(cudaMemcpy2DAsync(
      copy + k * HONE_PANEL, wide, c->f + k * c->ld + k,
      (size_t)c->ld * sizeof(float), (size_t)w * sizeof(float),
      (size_t)(c->n - k), cudaMemcpyDeviceToDevice, on.stream));
  TRY_CUDA(
      hone_cuda_panel({{copy - k, HONE_PANEL, c->n}, k, w, HONE_TOURNAMENT},
                      moves, c->flags, c->panel_work, on.stream));
  TRY_CUDA(hone_cuda_move(c->f + k, c->ld, w, 0, 0,
                          {moves->dst, moves->src, 2 * HONE_PANEL}, on.stream));
  return st;
}

bool has_arrived(const hone_cuda_block *b) {
  unsigned missing = 0;
  for (const unsigned &part : b->arrived)
    missing |= __atomic_load_n(&part, __ATOMIC_ACQUIRE) ^ b->ticket;
  return missing == 0;
}

/* Waits until the block has arrived. From time to time it queries the stream:
   if that has failed or is idle, the block will not arrive any more. */
int wait_for_block(const hone_cuda_block *b, cudaStream_t stream) {
  const unsigned often = 4096;
  cudaError_t e = cudaErrorNotReady;
  for (unsigned i = 1; e == cudaErrorNotReady && !has_arrived(b); i++)
    if (i % often == 0)
      e = cudaStreamQuery(stream);
  if (e == cudaErrorNotReady) {
    (void)cudaGetLastError();
    e = cudaSuccess;
  }
  return CALL(e);
}

int copy_to_cpu(hone_cuda *c, const hone_cuda_queue &on, int64_t k, int64_t w) {
  hone_cuda_forms *f = &c->forms;
  f->block->ticket++;
  int st = CALL(cudaEventRecord(f->out, on.stream));
  auto launch = [&] {
    HONE_LAUNCH(copy_out, HONE_CUDA_PARTS, HONE_PANEL, 0, on.stream,
                c->f + k * c->ld + k, c->ld, (int)w, f->block->ticket,
                f->block);
    return cudaGetLastError();
  };
  TRY_CUDA(launch());
  if (st == HONE_OK && k + w < c->n) /* while the CPU works */
    st = hone_cuda_block_column_begin(c, on, k, w);
  TRY(wait_for_block(f->block, on.stream));
  return st;
}

int copy_from_cpu(hone_cuda *c, const hone_cuda_queue &on, int index, int64_t k,
                  int64_t w, bool fresh, int zero) {
  hone_cuda_forms *f = &c->forms;
  results args = {};
  args.from = f->block;
  args.f = c->f + k * c->ld + k;
  args.ld = c->ld;
  args.upper = k + w < c->n ? f->upper : nullptr;
  args.lower =
      f->inverse && k + w < c->n ? f->inverse + (int64_t)index * SIZE : nullptr;
  args.moves = c->moves + index;
  args.fresh = fresh;
  args.k = (int)k;
  args.w = (int)w;
  args.first_zero = c->flags;
  args.zero = zero;
  auto launch = [&] {
    HONE_LAUNCH(copy_back, HONE_CUDA_PARTS, HONE_PANEL, 0, on.stream, args);
    return cudaGetLastError();
  };
  int st = CALL(launch());
  TRY_CUDA(cudaEventRecord(f->in, on.stream));
  return st;
}

/* Adds the time of a block to the account. The block was away from event 'out'
   to event 'in'; event 'busy' is the end of the updates that were enqueued when
   the outer panel began. So stream 'work' was idle from the later of 'busy' and
   'out' until 'in', and was not idle if 'busy' has not been reached. */
int add_to_account(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  float way = 0.0F, behind = 0.0F;
  int st = CALL(cudaEventSynchronize(f->in));
  TRY_CUDA(cudaEventElapsedTime(&way, f->out, f->in));
  if (st != HONE_OK)
    return st;
  c->used.diagonal_ms += (double)way;
  const cudaError_t e = cudaEventQuery(f->busy);
  const bool reached = e != cudaErrorNotReady;
  if (!reached)
    (void)cudaGetLastError();
  st = CALL(reached ? e : cudaSuccess);
  TRY_CUDA(reached ? cudaEventElapsedTime(&behind, f->busy, f->in)
                   : cudaSuccess);
  if (st == HONE_OK && behind > 0.0F)
    c->used.exposed_ms += (double)(behind < way ? behind : way);
  return st;
}

} // namespace

/* During the first panel there is no update that could hide the CPU's work. */
bool hone_cuda_cpu_factors_block(const hone_cuda *c, int64_t k) {
  if (!cpu_chosen(c))
    return false;
  if (c->choices.trial.cpu_from > 0)
    return c->n - k >= c->choices.trial.cpu_from;
  return c->panel_count > 0 && c->n - k >= hides_from(c);
}

int hone_cuda_factor_block_on_cpu(hone_cuda *c, const hone_cuda_queue &on,
                                  int index, int64_t k, int64_t w,
                                  enum hone_pivoting pivoting) {
  hone_cuda_block *b = c->forms.block;
  const bool fresh = pivoting != HONE_TOURNAMENT, last = k + w == c->n;
  int st =
      fresh ? (int)HONE_OK : choose_pivot_rows(c, on, c->moves + index, k, w);
  TRY(copy_to_cpu(c, on, k, w));
  if (st != HONE_OK)
    return st;
  const int zero = factor_block(b, (int)w, pivoting == HONE_NATURAL, !last,
                                !last && c->forms.inverse != nullptr);
  st = copy_from_cpu(c, on, index, k, w, fresh, zero);
  if (st == HONE_OK && zero < 0) /* otherwise there is no U11 to divide by */
    st = hone_cuda_block_column_l(c, on, k, w);
  TRY(add_to_account(c));
  return st;
}
