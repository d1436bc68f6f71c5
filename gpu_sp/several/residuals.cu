/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of a matrix A that is dealt to several devices. Every device passes
   over its own columns: for op(A) = A it takes the entries of x for these, and
   gives -A x of them and what that was rounded by, which the host adds up with
   b; for A^T it takes all of x, and gives b - A^T x for its columns.

   One pass serves several right-hand sides. They go through slots in pinned
   memory, which take turns, so that the host adds up the results of one while
   the devices work on the other's. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/residual/resident.h"
#include "gpu_sp/residual/residual.h"

#include <cmath>
#include <cstring>

namespace {

/* Entries from which columns are copied by several threads. */
enum { WORTH_THREADS = 1 << 15 };

/* Columns on their way there and back. */
struct slot {
  hone_several *s;
  const hone_residual_block *all;
  bool trans;
  int number;                        /* of the slot, */
  int64_t room;                      /* how many columns it can take, */
  int64_t first, count;              /* and those that it has */
  double *pinned[HONE_SEVERAL_MOST]; /* its memory, by shares: four vectors of n
                                        entries for each column */
  hone_pool *pool;
};

/* A share's vectors in a slot: x; b, or what r was rounded by, which a plain r
   does not have; r. They follow one another, as do those on the device. */
enum which { OF_X, OF_B, OF_R, OF_DEN };
hone_entry *vectors(const slot *of, int d, which v) {
  return reinterpret_cast<hone_entry *>(of->pinned[d]) +
         v * of->count * of->s->n;
}
double *denominators(const slot *of, int d) {
  return reinterpret_cast<double *>(vectors(of, d, OF_DEN));
}
hone_entry *x_there(const slot *of, const hone_cuda *c) {
  return hone_cuda_v(c) + of->number * of->room * c->n;
}

/* How many entries of x the share takes, and how many of r it gives. */
int64_t taken(const slot *of, const hone_cuda *c) {
  return of->trans ? c->n : c->m;
}
int64_t given(const slot *of, const hone_cuda *c) {
  return of->trans ? c->m : c->n;
}

void copy_in(void *ctx, int64_t k) {
  const slot *of = static_cast<const slot *>(ctx);
  const hone_entry *const x = of->all->x[of->first + k];
  const hone_entry *const b = of->all->b[of->first + k];
  for (int d = 0; d < of->s->count; d++) {
    const hone_cuda *c = of->s->share[d].c;
    hone_entry *const to = vectors(of, d, OF_X) + k * taken(of, c);
    if (!of->trans) {
      hone_several_take_dealt(c, x, to);
      continue;
    }
    memcpy(static_cast<void *>(to), x, (size_t)c->n * sizeof *x);
    hone_several_take_dealt(c, b, vectors(of, d, OF_B) + k * c->m);
  }
}

/* Enqueues the share's part of the residuals in the slot. */
int enqueue(const slot *of, int d) {
  hone_cuda *c = of->s->share[d].c;
  const int64_t in = taken(of, c), out = given(of, c),
                entry = sizeof(hone_entry);
  int st = hone_several_enter(&of->s->share[d]);
  TRY_CUDA(cudaMemcpyAsync(x_there(of, c), vectors(of, d, OF_X),
                           (size_t)(of->count * in * entry),
                           cudaMemcpyHostToDevice, c->work));
  hone_entry *const beside = vectors(of, d, OF_B);
  const hone_residual_vectors v = {x_there(of, c),
                                   of->trans ? beside : nullptr,
                                   vectors(of, d, OF_R),
                                   denominators(of, d),
                                   nullptr,
                                   nullptr,
                                   of->trans ? nullptr : beside};
  if (of->all->plain)
    TRY(hone_cuda_plain_residuals(c, of->trans, of->count, x_there(of, c), v.b,
                                  v.r));
  else
    TRY_CUDA(hone_cuda_residual({c->a, c->lda, c->n, c->m}, of->trans, v,
                                of->count, of->all->rough, c->residual_work,
                                c->work));
  TRY_CUDA(cudaEventRecord(c->pace[of->number], c->work));
  c->used.to_device += of->count * (of->trans ? in + out : in) * entry;
  c->used.from_device +=
      of->count * out * ((of->trans ? 1 : 2) * entry + (int64_t)sizeof(double));
  return st;
}

/* Returns |v|, by its parts. */
double size_of(const double *v) {
  return HONE_PARTS > 1 ? std::hypot(v[0], v[HONE_PARTS - 1]) : std::fabs(v[0]);
}

/* r = b - A x and den = |A| |x| + |b| for column k of the slot; den NULL: it is
   not wanted. */
void add_up(const slot *of, int64_t k, const hone_entry *b_of, hone_entry *r_of,
            double *den) {
  const int64_t n = of->s->n;
  const double *const b = reinterpret_cast<const double *>(b_of);
  double *const r = reinterpret_cast<double *>(r_of);
  for (int64_t i = 0; den && i < n; i++) {
    double size = size_of(b + HONE_PARTS * i);
    for (int d = 0; d < of->s->count; d++)
      size += denominators(of, d)[k * n + i];
    den[i] = size;
  }
  for (int64_t i = 0; i < HONE_PARTS * n; i++) {
    const int64_t at = HONE_PARTS * k * n + i;
    double hi = b[i], lo = 0.0;
    for (int d = 0; d < of->s->count; d++) {
      hone_several_add(reinterpret_cast<double *>(vectors(of, d, OF_R))[at],
                       &hi, &lo);
      if (!of->all->plain)
        lo += reinterpret_cast<double *>(vectors(of, d, OF_B))[at];
    }
    r[i] = hi + lo;
  }
}

void copy_out(void *ctx, int64_t k) {
  const slot *of = static_cast<const slot *>(ctx);
  hone_entry *const r = of->all->r[of->first + k];
  double *const den = of->all->den ? of->all->den[of->first + k] : nullptr;
  if (!of->trans) {
    add_up(of, k, of->all->b[of->first + k], r, den);
    return;
  }
  for (int d = 0; d < of->s->count; d++) {
    const hone_cuda *c = of->s->share[d].c;
    for (int64_t j = 0; j < c->m; j++) {
      const int64_t to = hone_cuda_dealt_column(c, j);
      r[to] = vectors(of, d, OF_R)[k * c->m + j];
      if (den)
        den[to] = denominators(of, d)[k * c->m + j];
    }
  }
}

/* Fills the slot with the columns from 'first' on, and enqueues them. */
int begin(slot *of, int64_t first) {
  hone_several *s = of->s;
  const int64_t left = of->all->k - first;
  int st = HONE_OK;
  of->first = first;
  of->count = left < of->room ? left : of->room;
  hone_pool_run(of->pool, of->count, copy_in, of);
  s->residuals += (int)of->count;
  for (int d = 0; d < s->count; d++)
    TRY(enqueue(of, d));
  return st;
}

/* Waits for the columns in the slot, and gives them back. */
int end(slot *of) {
  int st = HONE_OK;
  for (int d = 0; d < of->s->count; d++)
    TRY_CUDA(cudaEventSynchronize(of->s->share[d].c->pace[of->number]));
  if (st == HONE_OK)
    hone_pool_run(of->pool, of->count, copy_out, of);
  return st;
}

/* Makes slots for as many columns as all shares have room for. The
   factorization has waited for the copies of A that came through the memory.
   One column goes through memory of its own. */
void make_slots(hone_several *s, bool trans, const hone_residual_block *all,
                slot *slots) {
  double *memory[HONE_SEVERAL_MOST];
  int64_t room = all->k;
  for (int d = 0; d < s->count; d++) {
    const hone_cuda *c = s->share[d].c;
    memory[d] = hone_cuda_pinned(c, HONE_CUDA_X);
    const int64_t here = all->k > 1 ? hone_cuda_slot_room(c, 4, &memory[d]) : 1;
    room = here < room ? here : room;
  }
  for (int number = 0; number < HONE_CUDA_SLOTS; number++) {
    slot *of = &slots[number];
    *of = {s, all, trans, number, room, 0, 0, {}, nullptr};
    of->pool = room * s->n < WORTH_THREADS ? nullptr : s->pool;
    for (int d = 0; d < s->count; d++)
      of->pinned[d] = memory[d] + number * 4 * room * s->n * HONE_PARTS;
  }
}

} // namespace

int hone_several_residuals(void *self, const hone_matrix *a, bool trans,
                           const hone_residual_block *block) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  slot slots[HONE_CUDA_SLOTS], *last = nullptr;
  if (!hone_several_has_all_of(s, a))
    return HONE_NO_DEVICE;
  int st = HONE_OK, which = 0;
  make_slots(s, trans, block, slots);
  for (int64_t k = 0; k < block->k && st == HONE_OK;
       which = (which + 1) % HONE_CUDA_SLOTS) {
    slot *of = &slots[which];
    st = begin(of, k);
    k += of->count;
    if (last)
      TRY(end(last));
    last = of;
  }
  if (last)
    TRY(end(last));
  /* The devices may still read and write the slots. */
  return st == HONE_OK ? st : hone_several_wait(s, st);
}

int hone_several_residual(void *self, const hone_matrix *a, bool trans,
                          const hone_entry *x, const hone_entry *b,
                          hone_entry *r, double *den) {
  const hone_residual_block one = {1, &x, &b, &r, &den, false, false};
  return hone_several_residuals(self, a, trans, &one);
}
