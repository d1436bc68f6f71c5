/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy of a symmetric A on several devices is completed from its lower
   triangle, which alone was sent: a device needs the rows of panel q in its
   columns behind them, and these are the columns of panel q in its own rows,
   which the owner of q has. They come by copies between devices to a buffer,
   and are conjugated and transposed from there, all on the streams feed, by
   which A came, beside the factorization. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/round.h"
#include "gpu_sp/residual/resident.h"

namespace {

enum { SIDE = 32, THREADS = 256, WARPS = THREADS / SIDE };

/* a_ic = conj(b_ci) for i < rows and c < columns; both are column-major. A
   thread block takes a tile. */
__global__ void __launch_bounds__(THREADS)
    conjugate_transpose(int64_t rows, int64_t columns,
                        const hone_entry *__restrict__ b, int64_t ldb,
                        hone_entry *__restrict__ a, int64_t lda) {
  __shared__ hone_entry tile[SIDE][SIDE + 1];
  const int lane = static_cast<int>(threadIdx.x) % SIDE;
  const int warp = static_cast<int>(threadIdx.x) / SIDE;
  const int64_t c0 = static_cast<int64_t>(blockIdx.x) * SIDE;
  const int64_t i0 = static_cast<int64_t>(blockIdx.y) * SIDE;
  for (int q = warp; q < SIDE; q += WARPS)
    if (c0 + lane < columns && i0 + q < rows)
      tile[q][lane] = b[c0 + lane + (i0 + q) * ldb];
  __syncthreads();
  for (int q = warp; q < SIDE; q += WARPS)
    if (i0 + lane < rows && c0 + q < columns)
      a[i0 + lane + (c0 + q) * lda] = conjugate_of(tile[lane][q]);
}

/* From column to column in a share's buffer. */
int64_t buffer_ld(const hone_share *share) { return share->padded; }

/* Copies the columns of panel q, in the rows of share d's panel r, to the
   share's buffer. */
int get_block(const hone_several *s, int d, int q, int r) {
  const hone_share *to = &s->share[d];
  const hone_cuda *from = s->share[hone_several_owner(s, q)].c;
  const size_t entry = sizeof(hone_entry);
  const size_t width = (size_t)hone_several_width(s, r) * entry;
  const size_t columns = (size_t)hone_several_width(s, q);
  cudaMemcpy3DPeerParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(from->a + hone_several_start(s, r) +
                                        hone_several_place(s, q) * from->lda,
                                    (size_t)from->lda * entry, width, columns);
  copy.srcDevice = from->ordinal;
  copy.dstPtr =
      make_cudaPitchedPtr(to->gather + hone_several_place(s, r),
                          (size_t)buffer_ld(to) * entry, width, columns);
  copy.dstDevice = to->c->ordinal;
  copy.extent = make_cudaExtent(width, columns, 1);
  return CALL(cudaMemcpy3DPeerAsync(&copy, to->c->feed));
}

/* Completes the rows of panel q in share d's columns. */
int complete_rows(const hone_several *s, int d, int q) {
  const hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const int64_t c0 = hone_several_before(s, d, q + 1), columns = c->m - c0;
  const int64_t row = hone_several_start(s, q), w = hone_several_width(s, q);
  int st = HONE_OK;
  if (d == hone_several_owner(s, q))
    st = CALL(hone_cuda_mirror(
        w, c->a + row + hone_several_place(s, q) * c->lda, c->lda, c->feed));
  if (columns == 0)
    return st;
  for (int r = d; r < s->panels && st == HONE_OK; r += s->count)
    if (r > q)
      st = get_block(s, d, q, r);
  const dim3 grid((unsigned)((columns + SIDE - 1) / SIDE),
                  (unsigned)((w + SIDE - 1) / SIDE));
  if (st == HONE_OK) {
    HONE_LAUNCH(conjugate_transpose, grid, THREADS, 0, c->feed, w, columns,
                share->gather + c0, buffer_ld(share), c->a + row + c0 * c->lda,
                c->lda);
    st = CALL(cudaGetLastError());
  }
  return st;
}

/* Lets the stream feed of share d wait until all of A has come to the others. A
   part can be complete before one that precedes it. */
int await_others(const hone_several *s, int d) {
  int st = HONE_OK;
  for (int e = 0; e < s->count; e++)
    for (int g = 0; g < s->parts && e != d; g++)
      TRY_CUDA(cudaStreamWaitEvent(s->share[d].c->feed,
                                   s->share[e].c->columns[g].fed, 0));
  return st;
}

} // namespace

int hone_several_mirror(hone_several *s, int to) {
  const int first = s->mirrored;
  int st = HONE_OK;
  if (first >= to)
    return st;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    TRY(hone_several_enter(&s->share[d]));
    if (first == 0)
      TRY(await_others(s, d));
    for (int q = first; q < to; q++)
      TRY(complete_rows(s, d, q));
    c->mirrored = st == HONE_OK && to == s->panels;
    TRY(hone_cuda_inspect_arrived(c, c->m));
  }
  s->mirrored = to;
  return st;
}
