/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagonal blocks on the CPU: see cuda_forms.h. An inner panel is then

     on side   the pivot rows chosen, by the GPU's panel on a copy, and moved
     on swap   the block to pinned memory
     the CPU   its LU, with pivoting among its rows, and the inverses
     on swap   all of that back
     on side   the rows moved once more; L21 = A21 inv(U11), corrected

   while the rest of the update by the outer panel before runs on work. The
   caller waits, for the block and for the corrections.

   On a 2-core EPYC the CPU's part of 128 columns takes 0.2 ms, as long as the
   GPU's own panel on an H200: it can pay only where it is hidden. Beside an
   H200 it has not been measured. */
#include "gpu_sp/cuda_state.h"

#include "gpu_sp/crout.h"

#include <cstring>

/* LAPACK, from OpenBLAS; no header of its own on Debian. */
extern "C" {
void sgetrf_(const int *m, const int *n, float *a, const int *lda, int *ipiv,
             int *info);
void strtri_(const char *uplo, const char *diag, const int *n, float *a,
             const int *lda, int *info);
}

int64_t hone_cuda_tail = 4096;  /* a guess: see above */
int64_t hone_cuda_ahead = 4096; /* docs/performance.md */

namespace {

enum { SIZE = HONE_PANEL * HONE_PANEL, REFUSED = -2 };
const int64_t BLAS_WORK = 8 << 20; /* of the second cuBLAS handle */

bool cpu_wanted(const hone_cuda *c) {
  return c->tuning.diagonal == HONE_DIAGONAL_CPU && !c->spd;
}

/* Is the next panel factored beside the update, on a stream of its own? */
bool looks_ahead(const hone_cuda *c) {
  return cpu_wanted(c) || (!c->spd && c->n >= hone_cuda_ahead && c->nb < c->n);
}

/* ---- The CPU's part ------------------------------------------------------ */

/* LU without pivoting, column by column. The first zero pivot, or -1. */
int natural_lu(int w, float *a) {
  int zero = -1;
  for (int k = 0; k < w; k++) {
    const float pivot = a[k + k * w];
    if (!(pivot < 0.0F) && !(pivot > 0.0F)) {
      if (pivot == 0.0F && zero < 0)
        zero = k;
      if (pivot == 0.0F)
        continue;
    }
    for (int i = k + 1; i < w; i++)
      a[i + k * w] /= pivot;
    for (int j = k + 1; j < w; j++)
      for (int i = k + 1; i < w; i++)
        a[i + j * w] -= a[i + k * w] * a[k + j * w];
  }
  return zero;
}

/* LU by columns; row[i]: which row of the block became row i. The first zero
   pivot, -1 for none, REFUSED where LAPACK did not take its arguments. */
int factor(int w, bool natural, float *a, int *row) {
  int exchanged[HONE_PANEL], info = 0;
  for (int i = 0; i < HONE_PANEL; i++)
    row[i] = i;
  if (natural)
    return natural_lu(w, a);
  sgetrf_(&w, &w, a, &w, exchanged, &info);
  for (int i = 0; i < w; i++) {
    const int other = exchanged[i] - 1, was = row[i];
    row[i] = row[other];
    row[other] = was;
  }
  return info > 0 ? info - 1 : (info < 0 ? (int)REFUSED : -1);
}

/* The inverse of a triangle, from columns to rows; LAPACK's status. */
int invert(int w, bool upper, const float *lu, float *work, float *out) {
  int info = 0;
  memcpy(work, lu, (size_t)(w * w) * sizeof(float));
  strtri_(upper ? "U" : "L", upper ? "N" : "U", &w, work, &w, &info);
  memset(out, 0, SIZE * sizeof(float));
  for (int j = 0; j < w; j++) {
    const int from = upper ? 0 : j + 1, to = upper ? j + 1 : w;
    if (!upper)
      out[j * HONE_PANEL + j] = 1.0F;
    for (int i = from; i < to; i++)
      out[i * HONE_PANEL + j] = work[i + j * w];
  }
  return info;
}

/* As factor: the first zero pivot's place, and then there are no inverses. */
int work_on(hone_cuda_block *b, int w, bool natural, bool upper, bool lower) {
  float *a = b->column;
  for (int j = 0; j < w; j++)
    for (int i = 0; i < w; i++)
      a[i + j * w] = b->lu[i * HONE_PANEL + j];
  const int zero = factor(w, natural, a, b->row);
  for (int i = 0; i < w; i++)
    for (int j = 0; j < w; j++)
      b->lu[i * HONE_PANEL + j] = a[i + j * w];
  if (zero >= 0) {
    memset(b->upper, 0, sizeof b->upper);
    memset(b->lower, 0, sizeof b->lower);
  }
  int info = 0;
  if (zero == -1 && upper)
    info = invert(w, true, a, a + SIZE, b->upper);
  if (zero == -1 && lower && info == 0)
    info = invert(w, false, a, a + SIZE, b->lower);
  return info == 0 ? zero : (int)REFUSED;
}

/* ---- Kernels ------------------------------------------------------------- */

/* The block's own exchanges behind the moves that brought its rows there
   (fresh: there were none). One block of HONE_PANEL threads. */
__global__ void complete(hone_moves *moves, const int *row, int k, int w,
                         bool fresh) {
  const int i = (int)threadIdx.x, from = i < w ? row[i] : 0;
  const int src = fresh ? k + from : moves->src[from];
  __syncthreads();
  if (i < w) {
    moves->dst[i] = k + i;
    moves->src[i] = src;
  } else if (fresh) {
    moves->dst[i] = moves->src[i] = -1;
  }
  if (fresh)
    moves->dst[HONE_PANEL + i] = moves->src[HONE_PANEL + i] = -1;
}

__global__ void note_zero(int *first, int column) {
  if (column < *first)
    *first = column;
}

/* ---- The way there and back ---------------------------------------------- */

int wait_for(cudaStream_t stream, cudaEvent_t event, cudaStream_t done) {
  int st = CALL(cudaEventRecord(event, done));
  if (st == HONE_OK)
    st = CALL(cudaStreamWaitEvent(stream, event, 0));
  return st;
}

/* The pivot rows, in their places in the panel's own columns. */
int choose(hone_cuda *c, const hone_cuda_lane &on, hone_moves *moves, int64_t k,
           int64_t w) {
  const size_t wide = HONE_PANEL * sizeof(float);
  float *copy = on.defect; /* and beyond; before it there is on.right */
  int st = CALL(cudaMemcpy2DAsync(
      copy + k * HONE_PANEL, wide, c->f + k * c->ld + k,
      (size_t)c->ld * sizeof(float), (size_t)w * sizeof(float),
      (size_t)(c->n - k), cudaMemcpyDeviceToDevice, on.stream));
  if (st == HONE_OK)
    st = CALL(hone_cuda_panel(c->n, copy - k, HONE_PANEL, k, w, HONE_TOURNAMENT,
                              moves, c->flags, c->panel_work, on.stream));
  if (st == HONE_OK)
    st = CALL(hone_cuda_move(c->f + k, c->ld, w, 0, 0, moves->dst, moves->src,
                             2 * HONE_PANEL, on.stream));
  return st;
}

int fetch(hone_cuda *c, const hone_cuda_lane &on, int64_t k, int64_t w) {
  hone_cuda_forms *f = &c->forms;
  int st = wait_for(f->swap, f->chosen, on.stream);
  if (st == HONE_OK)
    st = CALL(cudaEventRecord(f->out, f->swap));
  if (st == HONE_OK)
    st = CALL(cudaMemcpy2DAsync(
        f->block->lu, HONE_PANEL * sizeof(float), c->f + k * c->ld + k,
        (size_t)c->ld * sizeof(float), (size_t)w * sizeof(float), (size_t)w,
        cudaMemcpyDeviceToHost, f->swap));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(f->swap));
  return st;
}

int bring_back(hone_cuda *c, const hone_cuda_lane &on, int index, int64_t k,
               int64_t w) {
  hone_cuda_forms *f = &c->forms;
  int st = CALL(cudaMemcpy2DAsync(
      c->f + k * c->ld + k, (size_t)c->ld * sizeof(float), f->block->lu,
      HONE_PANEL * sizeof(float), (size_t)w * sizeof(float), (size_t)w,
      cudaMemcpyHostToDevice, f->swap));
  if (st == HONE_OK) /* and row */
    st = CALL(cudaMemcpyAsync(f->upper, f->block->upper,
                              SIZE * sizeof(float) + HONE_PANEL * sizeof(int),
                              cudaMemcpyHostToDevice, f->swap));
  if (st == HONE_OK && f->inverse)
    st = CALL(cudaMemcpyAsync(f->inverse + (int64_t)index * SIZE,
                              f->block->lower, SIZE * sizeof(float),
                              cudaMemcpyHostToDevice, f->swap));
  if (st == HONE_OK)
    st = wait_for(on.stream, f->in, f->swap);
  return st;
}

/* The account of a block that is back. It was on its way from 'out' to 'in';
   'busy' is the end of what there was on work when the outer panel began. So
   'work' had nothing to do for as long as 'in' is behind both 'busy' and
   'out'; and not at all where 'busy' is not even reached. */
int account(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  float way = 0.0F, behind = 0.0F;
  int st = CALL(cudaEventSynchronize(f->in));
  if (st == HONE_OK)
    st = CALL(cudaEventElapsedTime(&way, f->out, f->in));
  if (st != HONE_OK)
    return st;
  c->used.diagonal_ms += (double)way;
  const cudaError_t e = cudaEventQuery(f->busy);
  const bool reached = e != cudaErrorNotReady;
  if (!reached)
    (void)cudaGetLastError();
  st = CALL(reached ? e : cudaSuccess);
  if (st == HONE_OK)
    st = CALL(reached ? cudaEventElapsedTime(&behind, f->busy, f->in)
                      : cudaSuccess);
  if (st == HONE_OK && behind > 0.0F)
    c->used.exposed_ms += (double)(behind < way ? behind : way);
  return st;
}

} // namespace

bool hone_cuda_by_cpu(const hone_cuda *c, int64_t k) {
  return cpu_wanted(c) && c->n - k >= hone_cuda_tail;
}

int hone_cuda_diagonal(hone_cuda *c, const hone_cuda_lane &on, int index,
                       int64_t k, int64_t w, enum hone_pivoting pivoting) {
  hone_cuda_forms *f = &c->forms;
  hone_moves *moves = c->moves + index;
  const bool fresh = pivoting != HONE_TOURNAMENT, last = k + w == c->n;
  int st = fresh ? (int)HONE_OK : choose(c, on, moves, k, w);
  if (st == HONE_OK)
    st = fetch(c, on, k, w);
  if (st != HONE_OK)
    return st;
  const int zero = work_on(f->block, (int)w, pivoting == HONE_NATURAL, !last,
                           !last && f->inverse != nullptr);
  if (zero == REFUSED)
    return HONE_INTERNAL;
  st = bring_back(c, on, index, k, w);
  auto rest = [&] {
    HONE_LAUNCH(complete, 1, HONE_PANEL, 0, on.stream, moves,
                reinterpret_cast<const int *>(f->upper + SIZE), (int)k, (int)w,
                fresh);
    if (zero >= 0)
      HONE_LAUNCH(note_zero, 1, 1, 0, on.stream, c->flags, (int)k + zero);
    return cudaGetLastError();
  };
  if (st == HONE_OK)
    st = CALL(rest());
  if (st == HONE_OK && zero < 0) /* else there is no U11 to divide by */
    st = hone_cuda_section_l(c, on, k, w);
  return st == HONE_OK ? account(c) : st;
}

/* ---- Memory, streams, events --------------------------------------------- */

namespace {

/* Hands out parts of the one allocation, or only counts. */
struct parts {
  unsigned char *base;
  int64_t used;
  template <class T> void take(T **at, int64_t bytes) {
    if (base && bytes > 0)
      *at = reinterpret_cast<T *>(base + used);
    used += (bytes + 255) / 256 * 256;
  }
};

void lay_out_lane(const hone_cuda *c, hone_cuda_lane *on, parts *p) {
  const int64_t size = SIZE * (int64_t)sizeof(float);
  const int64_t wide = c->n > c->ldu ? c->n : c->ldu;
  const int64_t room = HONE_PANEL * ((wide + 63) / 64 * 64);
  const int64_t bytes = room * (int64_t)sizeof(float);
  p->take(&on->right, bytes);
  p->take(&on->defect, bytes);
  p->take(&on->step, bytes);
  p->take(&on->lower, size);
  p->take(&on->upper, size);
  p->take(&on->changed, sizeof(int));
}

/* *blas: workspace of the second handle. */
int64_t lay_out(const hone_cuda *c, hone_cuda_forms *f, void **blas) {
  const int64_t size = SIZE * (int64_t)sizeof(float);
  const int sections = c->tuning.sections;
  const bool chosen =
      !c->spd && (cpu_wanted(c) || sections > HONE_SECTIONS_TRSM);
  parts p = {static_cast<unsigned char *>(f->memory), 0};
  if (chosen)
    p.take(&f->constants, 3 * sizeof(float));
  if (chosen && sections > HONE_SECTIONS_TRSM)
    lay_out_lane(c, &f->main, &p);
  if (chosen && sections == HONE_SECTIONS_SEEDED) {
    p.take(&f->inverse, c->moves_room * size);
    p.take(&f->identity, 2 * size);
  }
  if (!looks_ahead(c))
    return p.used;
  f->side.ldl = hone_piece_rows(c->pieces);
  f->side.ldu = (c->nb + 63) / 64 * 64;
  if (chosen)
    lay_out_lane(c, &f->side, &p);
  p.take(&f->side.lp, c->n * f->side.ldl * 2);
  p.take(&f->side.up, f->side.ldl * f->side.ldu * 2);
  if (cpu_wanted(c))
    p.take(&f->upper, size + HONE_PANEL * (int64_t)sizeof(int));
  p.take(blas, BLAS_WORK);
  return p.used;
}

int create_side(hone_cuda *c, void *blas_work) {
  hone_cuda_forms *f = &c->forms;
  hone_cuda_lane *on = &f->side;
  int least = 0, most = 0;
  int st = CALL(cudaDeviceGetStreamPriorityRange(&least, &most));
  if (st == HONE_OK)
    st = CALL(
        cudaStreamCreateWithPriority(&on->stream, cudaStreamNonBlocking, most));
  if (st == HONE_OK)
    st = CALL(
        cudaStreamCreateWithPriority(&f->swap, cudaStreamNonBlocking, most));
  if (st == HONE_OK)
    st = CALL(c->blas->create(&on->handle));
  if (st == HONE_OK)
    st = CALL(c->blas->set_stream(on->handle, on->stream));
  if (st == HONE_OK)
    st = CALL(c->blas->set_workspace(on->handle, blas_work, (size_t)BLAS_WORK));
  if (st == HONE_OK)
    st =
        CALL(c->blas->set_pointer_mode(on->handle, CUBLAS_POINTER_MODE_DEVICE));
  cudaEvent_t *plain[] = {&f->ready, &f->chosen, &f->factored};
  cudaEvent_t *timed[] = {&f->busy, &f->out, &f->in};
  for (int i = 0; i < 3 && st == HONE_OK; i++) {
    st = CALL(cudaEventCreateWithFlags(plain[i], cudaEventDisableTiming));
    if (st == HONE_OK)
      st = CALL(cudaEventCreateWithFlags(timed[i], cudaEventDefault));
  }
  if (st == HONE_OK && on->ldl > 0)
    st = CALL(
        cudaMemsetAsync(on->up, 0, (size_t)(on->ldl * on->ldu) * 2, c->work));
  return st;
}

/* The pinned memory: the block, then the lanes' flags. */
int take_pinned(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  const size_t flags = HONE_CROUT_FLAGS * sizeof(int);
  const size_t block = (sizeof(hone_cuda_block) + 255) / 256 * 256;
  int st = hone_cuda_pin(c, &f->pinned, block + 2 * flags);
  if (st != HONE_OK)
    return st;
  unsigned char *at = static_cast<unsigned char *>(f->pinned);
  f->block = reinterpret_cast<hone_cuda_block *>(at);
  memset(static_cast<void *>(f->block), 0, sizeof *f->block);
  f->main.seen = reinterpret_cast<int *>(at + block);
  f->side.seen = f->main.seen + HONE_CROUT_FLAGS;
  const float constants[] = {1.0F, -1.0F, 0.0F};
  memcpy(f->block->lu, constants, sizeof constants);
  st = CALL(cudaMemcpyAsync(f->constants, f->block->lu, sizeof constants,
                            cudaMemcpyHostToDevice, c->work));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(c->work));
  return st;
}

} // namespace

int64_t hone_cuda_forms_bytes(const hone_cuda *c) {
  hone_cuda_forms counted = {};
  void *blas = nullptr;
  return lay_out(c, &counted, &blas);
}

int hone_cuda_forms_create(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  void *blas = nullptr;
  f->ready_at = -1;
  f->main.stream = c->work;
  f->main.handle = c->handle;
  f->main.lp = c->lp;
  f->main.up = c->up;
  f->main.ldl = c->ldl;
  f->main.ldu = c->ldu;
  (void)lay_out(c, f, &blas);
  int st = f->constants ? take_pinned(c) : (int)HONE_OK;
  if (st == HONE_OK && looks_ahead(c))
    st = create_side(c, blas);
  return st;
}

void hone_cuda_forms_destroy(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  cudaStream_t streams[] = {f->side.stream, f->swap};
  cudaEvent_t events[] = {f->ready, f->chosen, f->factored,
                          f->busy,  f->out,    f->in};
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamSynchronize(s);
  if (f->side.handle)
    (void)c->blas->destroy(f->side.handle);
  for (cudaEvent_t e : events)
    if (e)
      (void)cudaEventDestroy(e);
  for (cudaStream_t s : streams)
    if (s)
      (void)cudaStreamDestroy(s);
  (void)cudaFreeHost(f->pinned);
}

int hone_cuda_forms_clear(hone_cuda *c) {
  hone_cuda_forms *f = &c->forms;
  hone_account *used = &c->used;
  used->diagonal_ms = used->exposed_ms = 0.0;
  used->sections = used->sweeps = used->sweeps_max = used->fallback = 0;
  f->ready_at = -1;
  if (f->side.stream == nullptr)
    return HONE_OK;
  int st = CALL(cudaStreamSynchronize(f->swap));
  if (st == HONE_OK)
    st = CALL(cudaStreamSynchronize(f->side.stream));
  return st;
}
