/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of panels with more rows than one launch of panel.cu can hold, in single
   precision: one more level of its tournament. The rows are divided evenly into
   parts. A copy of each part is factored, and its w pivot rows are candidates.
   The candidates, with the values they have in F, are divided and factored in
   the same way until all fit into one launch. The pivot rows of that launch are
   the panel's, and so is its L11 U11 (Grigori, Demmel & Xiang 2011: CALU with
   blocks of w columns). They are moved to the top, and

     L21 = A21 inv(U11)

   for all other rows. Where only the rows of the diagonal block may be pivots,
   that block is factored alone, in its place. The workspace has room for the
   copy of one part. Read next: panel.cu. */
#include "gpu_sp/factor/number.h"

namespace {

enum {
  STEP = HONE_STEP,
  THREADS = 256,
  WARPS = THREADS / 32,
  ROWS = 32, /* of L21 that a thread block works on at a time, a lane each */
  GROUPS = HONE_PANEL / STEP, /* warps, STEP columns each */
  BLOCKS = 264, /* thread blocks of that kernel; more would only read U11 more
                   often */
  STRIDE = HONE_PANEL + 4 /* entries from row to row of U11 in shared memory */
};
static_assert(GROUPS == WARPS, "a warp for each group of columns");

/* ---- Kernels ------------------------------------------------------------ */

/* Copies w floats of the rows first .. first+rows-1 of f or, if there is a
   list, of the rows that its entries first .. first+rows-1 name. A warp takes a
   row. */
__global__ void __launch_bounds__(THREADS)
    take_rows(const float *f, int64_t ld, const int *list, int64_t first,
              int64_t rows, int w, float *out) {
  const int lane = (int)threadIdx.x % 32;
  const int64_t i = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / 32;
  if (i >= rows)
    return;
  const int64_t from = list ? list[first + i] : first + i;
  for (int c = lane; c < w; c += 32)
    out[i * HONE_WIDE + c] = f[from * ld + c];
}

/* Writes the pivot rows of such a copy, by their numbers in f. */
__global__ void list_pivot_rows(const hone_moves *copy, const int *list,
                                int64_t first, int w, int *out) {
  const int i = (int)threadIdx.x;
  if (i >= w)
    return;
  const int64_t at = first + copy->src[i];
  out[i] = list ? list[at] : (int)at;
}

/* Writes the moves that bring the pivot rows to the top, and the rows that they
   displace to the places they leave, from the moves of the last copy, and
   lowers *zero_pivot to that copy's first zero pivot. One thread block of
   HONE_PANEL threads. */
__global__ void write_moves(const hone_moves *copy, const int *list, int k,
                            int w, const int *found, hone_moves *moves,
                            int *zero_pivot) {
  __shared__ int pivot[HONE_PANEL];
  __shared__ bool stays[HONE_PANEL]; /* row i < w is a pivot row */
  const int i = (int)threadIdx.x;
  int *dst = moves->dst, *src = moves->src;
  dst[i] = src[i] = dst[HONE_PANEL + i] = src[HONE_PANEL + i] = -1;
  stays[i] = false;
  __syncthreads();
  if (i < w) {
    pivot[i] = list ? list[copy->src[i]] : copy->src[i];
    if (pivot[i] < w)
      stays[pivot[i]] = true;
  }
  __syncthreads();
  if (i == 0 && *found < w)
    atomicMin(zero_pivot, k + *found);
  if (i >= w)
    return;
  int left = 0, displaced = 0; /* counts before i */
  for (int q = 0; q < i; q++) {
    left += pivot[q] >= w;
    displaced += !stays[q];
  }
  dst[i] = k + i;
  src[i] = k + pivot[i];
  if (pivot[i] >= w)
    dst[w + left] = k + pivot[i];
  if (!stays[i])
    src[w + displaced] = k + i;
}

struct divide_shared {
  number u[HONE_PANEL][STRIDE]; /* with the inverse of its diagonal there */
  float tile[ROWS][HONE_WIDE + 1];
  number x[2][STEP][ROWS]; /* STEP finished columns */
};

/* Loads U11, completed by the unit matrix. A zero pivot has the inverse zero,
   as in panel.cu: the factorization ends there. */
__device__ __forceinline__ void load_u(const float *block, int64_t ld, int w,
                                       divide_shared *sh) {
#pragma unroll 4
  for (int e = (int)threadIdx.x; e < HONE_PANEL * HONE_PANEL; e += THREADS) {
    const int i = e / HONE_PANEL, j = e % HONE_PANEL;
    number v = number_of(i == j ? 1.0F : 0.0F);
    if (j < w && i <= j)
      v = get(block + i * ld, 1, j, 0);
    if (i == j)
      v = inverse_of(v);
    sh->u[i][j] = v;
  }
}

/* Multiplies the lanes' rows by inv(U11). Warp g holds STEP columns from
   column STEP g on. In each step one warp finishes its columns, and the later
   warps subtract multiples of them from their own. */
__device__ __forceinline__ void divide_tile(divide_shared *sh, int lane,
                                            int group) {
  number v[STEP];
#pragma unroll
  for (int r = 0; r < STEP; r++)
    v[r] = get(sh->tile[lane], 1, group * STEP + r, 0);
#pragma unroll 1
  for (int step = 0; step < GROUPS; step++) {
    const number(*u)[STRIDE] = &sh->u[step * STEP];
    if (group == step) {
#pragma unroll
      for (int p = 0; p < STEP; p++) {
        v[p] = v[p] * u[p][step * STEP + p];
#pragma unroll
        for (int q = p + 1; q < STEP; q++)
          v[q] = less_product(v[q], v[p], u[p][step * STEP + q]);
        sh->x[step % 2][p][lane] = v[p];
      }
    }
    __syncthreads();
    if (group > step) {
#pragma unroll
      for (int p = 0; p < STEP; p++) {
        const number x = sh->x[step % 2][p][lane];
#pragma unroll
        for (int r = 0; r < STEP; r++)
          v[r] = less_product(v[r], x, u[p][group * STEP + r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < STEP; r++)
    put(sh->tile[lane], 1, group * STEP + r, 0, v[r]);
}

/* L21 = A21 inv(U11) in place, 32 rows below the diagonal block at a time. */
__global__ void __launch_bounds__(THREADS)
    divide(float *block, int64_t ld, int w, int64_t rows) {
  HONE_DYNAMIC_SHARED(divide_shared, sh);
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  load_u(block, ld, w, sh);
  for (int64_t at = (int64_t)blockIdx.x * ROWS; at < rows;
       at += (int64_t)gridDim.x * ROWS) {
    float *a = block + (w + at) * ld;
    for (int i = warp; i < ROWS; i += WARPS)
      for (int c = lane; c < HONE_WIDE; c += 32)
        sh->tile[i][c] =
            at + i < rows && c < HONE_PARTS * w ? a[i * ld + c] : 0.0F;
    __syncthreads();
    divide_tile(sh, lane, warp);
    __syncthreads();
    for (int i = warp; i < ROWS && at + i < rows; i += WARPS)
      for (int c = lane; c < HONE_PARTS * w; c += 32)
        a[i * ld + c] = sh->tile[i][c];
    __syncthreads();
  }
}

/* ---- The panel ---------------------------------------------------------- */

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Returns the rows of a part: as many as one launch takes, or as many as were
   chosen, but at least so many that two parts have fewer candidates than
   rows. */
int64_t rows_of_parts(int64_t chosen) {
  const int64_t least = 2 * HONE_PANEL, most = hone_cuda_panel_rows();
  if (chosen <= 0 || chosen > most)
    return most;
  return chosen < least ? least : chosen;
}

struct tall_panel {
  float *f; /* the panel's first element */
  int64_t ld, m, k;
  int w;
  cudaStream_t stream;
  /* Workspace */
  float *copy;
  int *list[2];          /* of rows, counted from the panel's first */
  hone_moves *last;      /* moves of the copy */
  int *found;            /* its first zero pivot */
  hone_panel_room panel; /* of hone_cuda_panel, for parts, which are not tall */
  int64_t used;
  int64_t part_rows;
};

/* Divides the workspace, or only counts its bytes where work is NULL. */
template <class T> void take(tall_panel *t, void *work, T **at, int64_t count) {
  if (work)
    *at = reinterpret_cast<T *>(static_cast<unsigned char *>(work) + t->used);
  t->used += divide_up(count * (int64_t)sizeof(T), 256) * 256;
}

void lay_out(tall_panel *t, int64_t n, void *work) {
  const int64_t rows = t->part_rows;
  const int64_t candidates = divide_up(n, rows) * HONE_PANEL;
  take(t, work, &t->copy, rows * HONE_WIDE);
  take(t, work, &t->list[0], candidates);
  take(t, work, &t->list[1], candidates);
  take(t, work, &t->last, 1);
  take(t, work, &t->found, 1);
}

/* Factors a panel that is short enough, its rows at f; *t.last and *t.found
   receive the result. */
cudaError_t factor(const tall_panel &t, float *f, int64_t ld, int64_t rows,
                   enum hone_pivoting pivoting) {
  cudaError_t e = cudaMemsetAsync(t.found, 0x7f, sizeof(int), t.stream);
  if (e == cudaSuccess)
    e = hone_cuda_panel({{f, ld, rows}, 0, t.w, pivoting}, t.last, t.found,
                        t.panel, t.stream);
  return e;
}

/* Factors a copy of the rows first .. first+rows-1 of the list. */
cudaError_t factor_copy(const tall_panel &t, const int *list, int64_t first,
                        int64_t rows) {
  HONE_LAUNCH(take_rows, (unsigned)divide_up(rows, WARPS), THREADS, 0, t.stream,
              t.f, t.ld, list, first, rows, HONE_PARTS * t.w, t.copy);
  const cudaError_t e = cudaGetLastError();
  return e == cudaSuccess ? factor(t, t.copy, HONE_WIDE, rows, HONE_TOURNAMENT)
                          : e;
}

/* Does one level of the tournament: divides the *count rows of the list (NULL:
   all rows) into parts, and makes a list of the parts' pivot rows, 'next'. */
cudaError_t reduce_candidates(const tall_panel &t, const int *list, int *next,
                              int64_t *count) {
  const int64_t parts = divide_up(*count, t.part_rows);
  cudaError_t e = cudaSuccess;
  for (int64_t p = 0; p < parts && e == cudaSuccess; p++) {
    const int64_t first = p * *count / parts, end = (p + 1) * *count / parts;
    e = factor_copy(t, list, first, end - first);
    if (e != cudaSuccess)
      break;
    HONE_LAUNCH(list_pivot_rows, 1, HONE_PANEL, 0, t.stream, t.last, list,
                first, t.w, next + p * t.w);
    e = cudaGetLastError();
  }
  *count = parts * t.w;
  return e;
}

cudaError_t finish_moves(const tall_panel &t, const int *list,
                         hone_moves *moves, int *zero_pivot) {
  HONE_LAUNCH(write_moves, 1, HONE_PANEL, 0, t.stream, t.last, list, (int)t.k,
              t.w, t.found, moves, zero_pivot);
  return cudaGetLastError();
}

/* Chooses the pivot rows among all rows, and puts L11 U11 at the top. */
cudaError_t choose_pivots(const tall_panel &t, hone_moves *moves,
                          int *zero_pivot) {
  const int *list = nullptr;
  int64_t count = t.m;
  cudaError_t e = cudaSuccess;
  for (int level = 0; count > t.part_rows && e == cudaSuccess; level++) {
    e = reduce_candidates(t, list, t.list[level % 2], &count);
    list = t.list[level % 2];
  }
  if (e == cudaSuccess)
    e = factor_copy(t, list, 0, count);
  if (e == cudaSuccess)
    e = finish_moves(t, list, moves, zero_pivot);
  if (e == cudaSuccess) /* the moves count rows from the matrix's first one */
    e = hone_cuda_move(t.f - t.k * t.ld, t.ld, t.w, 0, 0,
                       {moves->dst, moves->src, 2 * HONE_PANEL}, t.stream);
  if (e == cudaSuccess)
    e = cudaMemcpy2DAsync(t.f, (size_t)t.ld * sizeof(float), t.copy,
                          HONE_WIDE * sizeof(float),
                          (size_t)t.w * HONE_PARTS * sizeof(float), (size_t)t.w,
                          cudaMemcpyDeviceToDevice, t.stream);
  return e;
}

cudaError_t divide_rest(const tall_panel &t) {
  const size_t shared = sizeof(divide_shared);
  const int64_t rows = t.m - t.w, tiles = divide_up(rows, ROWS);
  const cudaError_t e = cudaFuncSetAttribute(
      divide, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(divide, (unsigned)(tiles < BLOCKS ? tiles : (int64_t)BLOCKS),
              THREADS, shared, t.stream, t.f, t.ld, t.w, rows);
  return cudaGetLastError();
}

} // namespace

int64_t hone_cuda_panel_parts(int64_t rows, int64_t part_rows) {
  const int64_t most = rows_of_parts(part_rows);
  return rows > most ? divide_up(rows, most) : 1;
}

int64_t hone_cuda_tall_bytes(int64_t n, int64_t part_rows) {
  tall_panel t = {};
  t.part_rows = rows_of_parts(part_rows);
  if (n > t.part_rows)
    lay_out(&t, n, nullptr);
  return t.used;
}

cudaError_t hone_cuda_tall_panel(const hone_panel &panel, hone_moves *moves,
                                 int *zero_pivot, const hone_panel_room &room,
                                 cudaStream_t stream) {
  const int64_t n = panel.f.n, ld = panel.f.ld, k = panel.k;
  tall_panel t = {};
  t.panel = {room.memory, 0, room.few_blocks};
  t.part_rows = rows_of_parts(room.part_rows);
  lay_out(&t, n,
          static_cast<unsigned char *>(room.memory) +
              hone_cuda_panel_bytes(0, 0));
  t.f = panel.f.f + k * ld + HONE_PARTS * k;
  t.ld = ld;
  t.m = n - k;
  t.k = k;
  t.w = (int)panel.w;
  t.stream = stream;
  cudaError_t e;
  if (panel.pivoting == HONE_TOURNAMENT) {
    e = choose_pivots(t, moves, zero_pivot);
  } else {
    e = factor(t, t.f, ld, panel.w, panel.pivoting);
    if (e == cudaSuccess)
      e = finish_moves(t, nullptr, moves, zero_pivot);
  }
  return e == cudaSuccess ? divide_rest(t) : e;
}
