/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of A: see project.h. The pairs and sums of a part of the
   columns, or of a thread, are a set: n high parts and n low parts, which are
   entries, and n sums of magnitudes, doubles. */
#include "gpu_sp/feed/project.h"

extern "C" {
#include "base/seed.h"
}

#include <cstring>

namespace {

const int64_t PART_ROWS =
    (1 << 14) / HONE_PARTS; /* at least, where columns are divided */

enum { SET = 2 * HONE_PARTS + 1 }; /* arrays of n doubles in a set */

/* Three arrays of n numbers. */
struct sums {
  hone_entry *hi, *lo;
  double *size;
};

hone_entry *weights(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(c->projection.memory);
}

sums sums_at(const hone_cuda *c, int64_t set) {
  double *at = c->projection.memory + (HONE_PARTS + SET * set) * c->n;
  hone_entry *pairs = reinterpret_cast<hone_entry *>(at);
  return {pairs, pairs + c->n, at + 2 * HONE_PARTS * c->n};
}

void clear(const hone_cuda *c, const sums &s) {
  memset(s.hi, 0, SET * (size_t)c->n * sizeof(double));
}

#ifdef HONE_COMPLEX
void set_zero(hone_entry *v) { *v = {0.0, 0.0}; }
#else
void set_zero(double *v) { *v = 0.0; }
#endif

/* Adds the sums of another set to those of set 0. */
void add_set(hone_cuda *c, int64_t set) {
  const sums to = sums_at(c, 0), from = sums_at(c, set);
  double *const hi = reinterpret_cast<double *>(to.hi); /* by parts */
  double *const lo = reinterpret_cast<double *>(to.lo);
  const double *const more = reinterpret_cast<double *>(from.hi);
  const double *const rest = reinterpret_cast<double *>(from.lo);
  const int64_t count = c->projection.trans ? c->n : c->m;
  for (int64_t i = 0; i < HONE_PARTS * count; i++) {
    const double t = hi[i] + more[i], z = t - hi[i];
    lo[i] += rest[i] + ((hi[i] - (t - z)) + (more[i] - z));
    hi[i] = t;
  }
  for (int64_t i = 0; i < count; i++)
    to.size[i] += from.size[i];
}

/* Weights are drawn from the process's random bits, which nobody outside it
   knows, and never twice in it: real and complex matrices count apart. */
uint64_t next_seed() {
  static uint64_t drawn = HONE_PARTS;
  uint64_t seed =
      hone_process_seed() ^
      __atomic_add_fetch(&drawn, HONE_RANDOM_STEP, __ATOMIC_RELAXED);
  return hone_random_bits(&seed);
}

} // namespace

int64_t hone_cuda_projection_room(int64_t n) {
  const int64_t parts = (n + PART_ROWS - 1) / PART_ROWS + 1;
  const int64_t sets =
      parts > HONE_CUDA_WORKERS ? parts : (int64_t)HONE_CUDA_WORKERS;
  return n * (HONE_PARTS + SET * sets);
}

int hone_cuda_projection_begin(hone_cuda *c, const hone_dense *a,
                               bool readable) {
  hone_cuda_projection *p = &c->projection;
  uint64_t seed = c->deterministic ? (uint64_t)c->n : next_seed();
  int st = HONE_OK;
  if (p->by_device && p->taken) /* of the matrix before, perhaps just now */
    st = CALL(cudaStreamSynchronize(c->feed));
  p->by_device = c->original_on_device;
  p->taken = p->added = false;
  p->trans = a->trans_expected;
  const bool can = readable || (p->by_device && p->there != nullptr &&
                                hone_cuda_projection_bytes(c->n) > 0);
  p->wanted = can && c->a != nullptr && p->memory != nullptr &&
              c->choices.residuals == HONE_RESIDUALS_AUTO &&
              !(c->spd && p->trans && !p->by_device);
  memset(p->begun, 0, sizeof p->begun);
  if (p->wanted && st == HONE_OK)
    hone_projection_draw(c->n, &seed,
                         p->by_device
                             ? reinterpret_cast<hone_entry *>(
                                   hone_cuda_pinned(c, HONE_CUDA_WEIGHTS))
                             : weights(c));
  return st;
}

void hone_cuda_projection_divide(hone_cuda *c, int64_t parts, bool more) {
  c->projection.parts = more ? parts + 1 : parts;
  if (more)
    clear(c, sums_at(c, parts));
}

void hone_cuda_project(hone_cuda *c, int worker, const hone_cuda_projected &b) {
  hone_cuda_projection *p = &c->projection;
  const int64_t lda = c->job.a.lda, first = hone_cuda_dealt_column(c, b.j);
  const hone_entry *v = weights(c), *a = c->job.a.a + first * lda;
  if (p->trans) {
    const sums s = sums_at(c, worker);
    if (!p->begun[worker])
      clear(c, s);
    p->begun[worker] = true;
    hone_project_rows(b.rows, b.count, a + b.row, lda, v + first, s.hi + b.row,
                      s.lo + b.row, s.size + b.row);
    return;
  }
  const sums s = sums_at(c, b.set);
  const hone_column_copy copy = {b.to, b.streams};
  for (int64_t j = b.j; j < b.j + b.count; j++, a += lda) {
    if (b.begins) {
      set_zero(s.hi + j);
      set_zero(s.lo + j);
      s.size[j] = 0.0;
    }
    hone_project_copied(b.rows, a + b.row, v + b.row, &copy, s.hi + j, s.lo + j,
                        s.size + j);
  }
}

namespace {

/* The device takes the projection for the other transpose when that is first
   asked for. */
const hone_projection *taken_there(hone_cuda *c, bool trans) {
  hone_cuda_projection *p = &c->projection;
  const double *const at = hone_cuda_pinned(c, HONE_CUDA_WEIGHTS);
  const hone_entry *const v = reinterpret_cast<const hone_entry *>(at);
  int st = HONE_OK;
  if (p->trans != trans) {
    st = CALL(cudaStreamSynchronize(c->feed)); /* v may be on its way */
    TRY(hone_cuda_project_there(c, trans));
  }
  if (!p->added)
    TRY_CUDA(cudaStreamSynchronize(c->feed));
  p->added = p->taken = st == HONE_OK;
  p->out = {v, v + c->n, v + 2 * c->n, at + 3 * HONE_PARTS * c->n, true};
  return p->taken ? &p->out : nullptr;
}

} // namespace

/* Adds up the sets when the projection is first asked for. */
const hone_projection *hone_cuda_projection_of(void *self, const hone_matrix *a,
                                               bool trans) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  hone_cuda_projection *p = &c->projection;
  if (p->taken && p->by_device && c->source == hone_dense_of(a)->a)
    return taken_there(c, trans);
  if (!p->taken || p->trans != trans || c->source != hone_dense_of(a)->a)
    return nullptr;
  if (!p->added) {
    const sums s = sums_at(c, 0);
    if (p->trans && !p->begun[0])
      clear(c, s);
    const int64_t sets = p->trans ? (int64_t)HONE_CUDA_WORKERS : p->parts;
    for (int64_t k = 1; k < sets; k++)
      if (!p->trans || p->begun[k])
        add_set(c, k);
    p->out = {weights(c), s.hi, s.lo, s.size, false};
    p->added = true;
  }
  return &p->out;
}
