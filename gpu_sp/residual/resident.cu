/* SPDX-License-Identifier: BSD-3-Clause */
/* The inspection of the copy of A that stays on the device, and residuals with
   it, as the refinement calls them. Read next: residual.h. */
#include "gpu_sp/residual/resident.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/factor/operands.h"
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/solve.h"

#include <cstring>

namespace {

/* Entries that lie among doubles. */
hone_entry *entries(double *v) { return reinterpret_cast<hone_entry *>(v); }

/* Enqueues the inspection of the columns j .. j+w-1 of S; the maxima and sums
   go into c->magnitudes. */
int enqueue_inspection(hone_cuda *c, int64_t j, int64_t w, bool scaled,
                       cudaStream_t stream) {
  double *seen = c->magnitudes;
  const int64_t n = c->n;
  return CALL(
      hone_cuda_inspect({c->a, c->lda, n, j, w},
                        {scaled ? c->row : nullptr, scaled ? c->col : nullptr},
                        {seen, seen + n, seen + 2 * n, seen + 3 * n}, stream));
}

/* Writes whether A is symmetric, if somebody compared its triangles. */
int fetch_symmetry(hone_cuda *c, hone_inspection *seen) {
  int differs = 0, st = HONE_OK;
  if (!c->spd)
    return HONE_OK;
  if (!c->one_triangle) {
    TRY_CUDA(cudaStreamWaitEvent(c->fetch, c->seen, 0));
    TRY_CUDA(cudaMemcpyAsync(&differs, asymmetry_flag(c), sizeof differs,
                             cudaMemcpyDeviceToHost, c->fetch));
    TRY_CUDA(cudaStreamSynchronize(c->fetch));
  }
  const bool refuted = c->one_triangle ? c->asymmetry != 0 : differs != 0;
  seen->symmetry = refuted ? HONE_SYMMETRY_REFUTED : HONE_SYMMETRY_FOUND;
  return st;
}

} // namespace

/* A symmetric matrix is inspected only when its lower triangle has arrived as a
   whole; the upper one, which is not sent, is then copied from it, or compared
   with it if A is there as a whole, and all of that is done beside the
   factorization. (Several devices exchange what they need for that:
   several/mirror.cu.) So is the inspection of an A that need not arrive. */
int hone_cuda_inspect_arrived(hone_cuda *c, int64_t to) {
  int st = HONE_OK;
  const int64_t from = c->inspected;
  if (from >= to || (c->spd && c->fed < c->m) ||
      (c->spd && c->deal.of > 1 && !c->mirrored))
    return HONE_OK;
  if (c->spd)
    to = c->m;
  c->inspected = to;
  if (c->one_triangle && !c->mirrored)
    st = CALL(hone_cuda_mirror(c->n, c->a, c->lda, hone_cuda_inspects_on(c)));
  else if (c->spd && !c->one_triangle)
    st = CALL(hone_cuda_compare_triangles(c->n, c->a, c->lda, asymmetry_flag(c),
                                          hone_cuda_inspects_on(c)));
  TRY(enqueue_inspection(c, from, to - from, false, hone_cuda_inspects_on(c)));
  TRY_CUDA(cudaEventRecord(c->seen, hone_cuda_inspects_on(c)));
  return st;
}

/* Where S = A, the columns were inspected as they arrived, or the rest of them
   is now, and what was seen is fetched beside the factorization; a scaled S is
   inspected anew. */
int hone_cuda_inspect_matrix(void *self, const hone_matrix *a,
                             const hone_scaling *scaling, double *scratch,
                             hone_inspection *seen) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(double);
  int st = hone_cuda_feed_columns(c, hone_dense_of(a), n, nullptr);
  TRY(hone_cuda_feed_end(c));
  if (st == HONE_OK && c->inspected < n) {
    st = CALL(cudaStreamSynchronize(c->feed));
    TRY(hone_cuda_inspect_arrived(c, n));
  }
  if (scaling) {
    TRY(hone_cuda_forget(c));
    TRY(hone_cuda_upload_scaling(c, scaling, true));
    TRY_CUDA(cudaMemsetAsync(c->magnitudes, 0, 2 * bytes, c->work));
    TRY(enqueue_inspection(c, 0, n, true, c->work));
    TRY_CUDA(cudaEventRecord(c->seen, c->work));
  }
  double *const h = hone_cuda_pinned(c, HONE_CUDA_X); /* of 4 n there */
  const hone_copy back = {c->magnitudes, h, 8 * n};
  TRY_CUDA(cudaStreamWaitEvent(c->fetch, c->seen, 0));
  TRY_CUDA(hone_cuda_copy(&back, 1, c->fetch));
  TRY_CUDA(cudaStreamSynchronize(c->fetch));
  TRY(fetch_symmetry(c, seen));
  if (st != HONE_OK)
    return st;
  c->used.from_device += 4 * (int64_t)bytes;
  memcpy(seen->row_max, h, bytes);
  memcpy(scratch, h + n, bytes);
  memcpy(seen->col_max, h + 2 * n, bytes);
  memcpy(scratch + n, h + 3 * n, bytes);
  if (c->nonfinite > 0) /* as inspection on the host tells it */
    seen->col_max[c->nonfinite - 1] = HONE_INF;
  if (c->asymmetry != 0) /* the copy is not A: the host must inspect A itself */
    seen->col_max[0] = HONE_INF;
  return HONE_OK;
}

const hone_entry *hone_cuda_lend(void *self, const hone_matrix *a,
                                 int64_t *ld) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(a)->a ||
      c->one_triangle)
    return nullptr;
  *ld = c->lda;
  return c->a;
}

int hone_cuda_matrix_residual(void *self, const hone_matrix *a, bool trans,
                              const hone_entry *x, const hone_entry *b,
                              hone_entry *r, double *den) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const size_t bytes = (size_t)n * sizeof(hone_entry);
  const size_t sizes = (size_t)n * sizeof(double);
  const bool ahead =
      c->solve_expected && !c->scaled; /* otherwise the host scales r first */
  double *const h_r = hone_cuda_pinned(c, HONE_CUDA_R);
  double *const h_den = hone_cuda_pinned(c, HONE_CUDA_DEN);
  int st = hone_cuda_forget(c);
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(a)->a)
    return HONE_NO_DEVICE;
  memcpy(hone_cuda_pinned(c, HONE_CUDA_X), x, bytes);
  memcpy(hone_cuda_pinned(c, HONE_CUDA_B), b, bytes);
  /* x is read many times, so it is copied to the device */
  const hone_copy there = {hone_cuda_pinned(c, HONE_CUDA_X), c->v,
                           2 * HONE_PARTS * n};
  TRY_CUDA(hone_cuda_copy(&there, 1, c->work));
  const hone_residual_vectors v = {entries(c->v),
                                   entries(hone_cuda_pinned(c, HONE_CUDA_B)),
                                   entries(h_r),
                                   h_den,
                                   trans || c->spd ? nullptr : c->new_row,
                                   ahead ? entries(c->w) : nullptr,
                                   nullptr};
  TRY_CUDA(hone_cuda_residual({c->a, c->lda, n, n}, trans, v, 1, false,
                              c->residual_work, c->work));
  TRY(ahead ? hone_cuda_solve_ahead(c, trans)
            : CALL(cudaStreamSynchronize(c->work)));
  if (st != HONE_OK)
    return st;
  memcpy(r, h_r, bytes);
  memcpy(den, h_den, sizes);
  c->used.residuals++;
  c->used.to_device += 2 * (int64_t)bytes;
  c->used.from_device += (int64_t)(bytes + sizes);
  return HONE_OK;
}

namespace {

enum { SLOTS = HONE_CUDA_SLOTS, WORTH_THREADS = 1 << 15 };
static_assert((int)SLOTS <= (int)HONE_CUDA_PACE, "an event for each slot");

/* A slot of columns on their way there and back: in pinned memory their x, b, r
   and den, and on the device their x. Two slots take turns, so that the host
   copies the columns of one while the device works on the other's. Each vector
   has the room of n entries. */
struct slot {
  int64_t n, room; /* columns that it can take */
  const hone_residual_block *all;
  int64_t first, count; /* the columns that it has */
  double *pinned, *x;
  cudaEvent_t done;
  hone_pool *pool;
};

/* Residuals in twice the working precision are made for HONE_RESIDUAL_MANY
   columns at once. */
void make_slots(hone_cuda *c, const hone_residual_block *all, slot *s) {
  constexpr int64_t MANY = HONE_RESIDUAL_MANY;
  double *memory = nullptr;
  const bool alone = all->plain && all->den == nullptr; /* r alone */
  const int vectors = alone ? 3 : 4;
  int64_t room = hone_cuda_slot_room(c, vectors, &memory);
  if (!all->plain && room > MANY)
    room = room / MANY * MANY;
  for (int k = 0; k < SLOTS; k++)
    s[k] = {c->n,
            room,
            all,
            0,
            0,
            memory + k * vectors * room * c->n * HONE_PARTS,
            c->v + k * room * c->n * HONE_PARTS,
            c->pace[k],
            room * c->n < WORTH_THREADS ? nullptr : c->pool};
}

/* Vectors x, b and r, of n entries each. */
double *in_slot(const slot *s, int vector, int64_t k) {
  return s->pinned + (vector * s->count + k) * s->n * HONE_PARTS;
}

/* Denominators, behind the vectors. */
double *den_in_slot(const slot *s, int64_t k) {
  return in_slot(s, 3, 0) + k * s->n;
}

void copy_in(void *ctx, int64_t k) {
  const slot *s = static_cast<const slot *>(ctx);
  const size_t bytes = (size_t)s->n * sizeof(hone_entry);
  memcpy(in_slot(s, 0, k), s->all->x[s->first + k], bytes);
  memcpy(in_slot(s, 1, k), s->all->b[s->first + k], bytes);
}

void copy_out(void *ctx, int64_t k) {
  const slot *s = static_cast<const slot *>(ctx);
  memcpy(s->all->r[s->first + k], in_slot(s, 2, k),
         (size_t)s->n * sizeof(hone_entry));
  if (s->all->den)
    memcpy(s->all->den[s->first + k], den_in_slot(s, k),
           (size_t)s->n * sizeof(double));
}

/* Enqueues the residuals of the columns in the slot. */
int enqueue(hone_cuda *c, bool trans, const slot *s) {
  const int64_t n = c->n;
  const hone_copy there = {s->pinned, s->x, 2 * HONE_PARTS * n * s->count};
  int st = CALL(hone_cuda_copy(&there, 1, c->work));
  const hone_residual_vectors v = {entries(s->x),
                                   entries(in_slot(s, 1, 0)),
                                   entries(in_slot(s, 2, 0)),
                                   den_in_slot(s, 0),
                                   nullptr,
                                   nullptr,
                                   nullptr};
  if (s->all->plain)
    TRY(hone_cuda_plain_residuals(c, trans, s->count, entries(s->x), v.b, v.r));
  else
    TRY_CUDA(hone_cuda_residual({c->a, c->lda, n, n}, trans, v, s->count,
                                s->all->rough, c->residual_work, c->work));
  TRY_CUDA(cudaEventRecord(s->done, c->work));
  return st;
}

/* Fills the slot with the columns from 'first' on, and enqueues them. */
int begin(hone_cuda *c, bool trans, int64_t first, slot *s) {
  const int64_t left = s->all->k - first;
  s->first = first;
  s->count = left < s->room ? left : s->room;
  hone_pool_run(s->pool, s->count, copy_in, s);
  c->used.residuals += (int)s->count;
  const int64_t bytes = s->n * (int64_t)sizeof(hone_entry);
  c->used.to_device += 2 * s->count * bytes;
  c->used.from_device += s->count * (bytes + s->n * (int64_t)sizeof(double));
  return enqueue(c, trans, s);
}

/* Waits for the columns in the slot, and gives them back. */
int end(slot *s) {
  int st = CALL(cudaEventSynchronize(s->done));
  if (st == HONE_OK)
    hone_pool_run(s->pool, s->count, copy_out, s);
  return st;
}

} // namespace

/* The pinned buffers through which A came serve again, where they are larger
   than the room for right-hand sides. */
int64_t hone_cuda_slot_room(const hone_cuda *c, int vectors, double **memory) {
  const int64_t column = vectors * c->n * (int64_t)sizeof(hone_entry);
  const int64_t most = (int64_t)c->buffers.bytes * HONE_CUDA_BUFFERS / SLOTS;
  const int64_t columns = hone_cuda_columns(c->n);
  const int64_t room = columns / vectors / SLOTS;
  *memory = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  if (most / column <= room)
    return room;
  *memory = reinterpret_cast<double *>(c->buffers.memory);
  return most / column < columns / SLOTS ? most / column : columns / SLOTS;
}

int hone_cuda_matrix_residuals(void *self, const hone_matrix *a, bool trans,
                               const hone_residual_block *block) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  slot slots[SLOTS], *last = nullptr;
  int st = hone_cuda_forget(c);
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(a)->a)
    return HONE_NO_DEVICE;
  make_slots(c, block, slots);
  TRY_CUDA(cudaStreamSynchronize(c->feed)); /* the buffers are read */
  int which = 0;
  for (int64_t k = 0; k < block->k && st == HONE_OK; which = 1 - which) {
    slot *s = &slots[which];
    st = begin(c, trans, k, s);
    k += s->count;
    if (last)
      TRY(end(last));
    last = s;
  }
  if (last)
    TRY(end(last));
  if (st != HONE_OK) /* what is under way reads and writes the slots */
    (void)cudaStreamSynchronize(c->work);
  return st;
}

/* Columns go through c->v and c->w. */
int hone_cuda_matrix_product(void *self, const hone_matrix *a, bool trans,
                             int64_t k, const hone_entry *x, hone_entry *p) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int64_t n = c->n;
  const double *unit = hone_cuda_unit(c);
  const cudaDataType_t type = HONE_PARTS > 1 ? CUDA_C_64F : CUDA_R_64F;
  double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  int st = hone_cuda_forget(c);
  if (!hone_cuda_has_all_of_a(c) || c->source != hone_dense_of(a)->a)
    return HONE_NO_DEVICE;
  const int64_t most = hone_cuda_columns(n);
  for (int64_t i = 0; i < k && st == HONE_OK; i += most) {
    const int64_t now = k - i < most ? k - i : most;
    const size_t bytes = (size_t)(n * now) * sizeof(hone_entry);
    memcpy(h, x + i * n, bytes);
    const hone_copy there = {h, c->v, 2 * HONE_PARTS * n * now};
    const hone_copy back = {c->w, h, 2 * HONE_PARTS * n * now};
    st = CALL(hone_cuda_copy(&there, 1, c->work));
    TRY_CUDA(c->blas->gemm(
        c->handle, trans ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)n,
        (int)now, (int)n, unit, c->a, type, (int)c->lda, c->v, type, (int)n,
        unit + 2, c->w, type, (int)n, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT));
    TRY_CUDA(hone_cuda_copy(&back, 1, c->work));
    TRY_CUDA(cudaStreamSynchronize(c->work));
    if (st == HONE_OK)
      memcpy(p + i * n, h, bytes);
    c->used.to_device += (int64_t)bytes;
    c->used.from_device += (int64_t)bytes;
  }
  return st;
}
