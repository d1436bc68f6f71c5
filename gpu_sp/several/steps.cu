/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps with vectors that stay on a device, for a matrix A that is dealt to
   several: random probes and refined solves. The first device, which has all
   factors, makes them as one device does (solve/probe.cu, solve/refined.cu),
   but for the products with A. For these it sends the vectors to the others,
   and each multiplies the columns of A that it has: for op(A) = A by its
   entries of the vectors, and the first device adds the results up, one device
   after the other; for A^T by all of them, which gives the entries of the
   result for its columns. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/entries.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/columns.h"
#include "gpu_sp/solve/probe.h"
#include "gpu_sp/solve/refined.h"

namespace {

__device__ inline int64_t number_in_a(const hone_cuda_deal &d, int64_t j) {
  return (j / d.width * d.of + d.first) * d.width + j % d.width;
}

/* to_j = the entry of v for column j of a device, n and m entries each. */
__global__ void take_kernel(int64_t n, int64_t m, hone_cuda_deal deal,
                            const hone_entry *v, hone_entry *to) {
  const int64_t j = row_of_thread(), c = blockIdx.y;
  if (j < m)
    to[j + c * m] = v[number_in_a(deal, j) + c * n];
}

/* The entry of 'to' for column j of a device = v_j, n and m entries each. */
__global__ void put_kernel(int64_t n, int64_t m, hone_cuda_deal deal,
                           const hone_entry *v, hone_entry *to) {
  const int64_t j = row_of_thread(), c = blockIdx.y;
  if (j < m)
    to[number_in_a(deal, j) + c * n] = v[j + c * m];
}

/* to = to + v, n entries each. */
__global__ void add_kernel(int64_t n, const hone_entry *v, hone_entry *to) {
  const int64_t i = row_of_thread(), c = blockIdx.y;
  if (i < n)
    to[i + c * n] = to[i + c * n] + v[i + c * n];
}

/* A product w = op(A) v of k columns, all three on the first device. */
struct product {
  hone_several *s;
  bool trans;
  int64_t k;
  const hone_entry *v;
  hone_entry *w;
};

int64_t given(const product *p, const hone_cuda *c) {
  return p->trans ? c->m : c->n;
}

hone_entry *room_on_first(const hone_several *s) {
  return static_cast<hone_entry *>(s->share[0].c->residual_work);
}
/* Returns for how many columns it has room; c->v, c->w and c->probes of every
   device have room for hone_cuda_columns(n). */
int64_t room_for(const hone_several *s) {
  const hone_cuda *c = s->share[0].c;
  const int64_t columns = hone_cuda_residual_bytes(c->n, c->m) /
                          (c->n * (int64_t)sizeof(hone_entry));
  const int64_t most = hone_cuda_columns(c->n);
  return columns < most ? columns : most;
}

/* Enqueues the product of the share's columns of A with what 'v' has on its
   device; 'taken': room for its entries of v; 'to': for the result. */
int multiply_own(const product *p, hone_cuda *c, const hone_entry *v,
                 hone_entry *taken, hone_entry *to) {
  int st = HONE_OK;
  if (!p->trans && c->m > 0) {
    HONE_LAUNCH(take_kernel, grid_of(c->m, p->k), ROW_THREADS, 0, c->work, c->n,
                c->m, c->deal, v, taken);
    st = CALL(cudaGetLastError());
  }
  TRY(hone_several_multiply_share(c, p->trans, p->k, p->trans ? v : taken, to));
  return st;
}

/* Lets share d multiply its columns: the vectors come to c->v, and the result
   is in c->w. */
int multiply_there(const product *p, int d) {
  hone_several *s = p->s;
  hone_share *share = &s->share[d];
  hone_cuda *c = share->c;
  const size_t bytes = (size_t)(p->k * c->n) * sizeof(hone_entry);
  int st = hone_several_enter(share);
  TRY_CUDA(cudaStreamWaitEvent(c->work, s->share[0].pushed, 0));
  TRY_CUDA(cudaMemcpyPeerAsync(c->v, c->ordinal, p->v, s->share[0].c->ordinal,
                               bytes, c->work));
  TRY(multiply_own(p, c, hone_cuda_v(c), c->probes, hone_cuda_w(c)));
  TRY_CUDA(cudaEventRecord(share->pushed, c->work));
  return st;
}

/* Enqueues what makes w of what share d found, which is in 'from' on the first
   device. */
int take_in(const product *p, int d, const hone_entry *from) {
  const hone_cuda *c = p->s->share[d].c;
  cudaStream_t stream = p->s->share[0].c->work;
  if (given(p, c) == 0)
    return HONE_OK;
  if (p->trans)
    HONE_LAUNCH(put_kernel, grid_of(c->m, p->k), ROW_THREADS, 0, stream, c->n,
                c->m, c->deal, from, p->w);
  else
    HONE_LAUNCH(add_kernel, grid_of(c->n, p->k), ROW_THREADS, 0, stream, c->n,
                from, p->w);
  return CALL(cudaGetLastError());
}

/* Brings what share d found to the first device. */
int fetch(const product *p, int d) {
  const hone_share *share = &p->s->share[d];
  hone_cuda *first = p->s->share[0].c;
  const size_t bytes = (size_t)(p->k * given(p, share->c)) * sizeof(hone_entry);
  int st = CALL(cudaStreamWaitEvent(first->work, share->pushed, 0));
  if (bytes > 0)
    TRY_CUDA(cudaMemcpyPeerAsync(room_on_first(p->s), first->ordinal,
                                 share->c->w, share->c->ordinal, bytes,
                                 first->work));
  TRY(take_in(p, d, room_on_first(p->s)));
  return st;
}

/* The others wait until their results have been read: they have other uses for
   c->w. */
int multiply_columns(const product *p) {
  hone_several *s = p->s;
  hone_cuda *first = s->share[0].c;
  int st = CALL(cudaEventRecord(s->share[0].pushed, first->work));
  for (int d = 1; d < s->count; d++)
    TRY(multiply_there(p, d));
  TRY(hone_several_enter(&s->share[0]));
  TRY(multiply_own(p, first, p->v, room_on_first(s),
                   p->trans ? room_on_first(s) : p->w));
  if (p->trans)
    TRY(take_in(p, 0, room_on_first(s)));
  for (int d = 1; d < s->count; d++)
    TRY(fetch(p, d));
  TRY_CUDA(cudaEventRecord(s->share[0].pushed, first->work));
  for (int d = 1; d < s->count; d++) {
    TRY(hone_several_enter(&s->share[d]));
    TRY_CUDA(cudaStreamWaitEvent(s->share[d].c->work, s->share[0].pushed, 0));
  }
  TRY(hone_several_enter(&s->share[0]));
  return st;
}

/* Enqueues w = op(A) v for k columns on the first device. */
int multiply(void *ctx, bool trans, int64_t k, const hone_entry *v) {
  hone_several *s = static_cast<hone_several *>(ctx);
  const int64_t room = room_for(s);
  hone_entry *const w = hone_cuda_w(s->share[0].c);
  int st = HONE_OK;
  for (int64_t i = 0, now; i < k && st == HONE_OK; i += now) {
    now = k - i < room ? k - i : room;
    const product p = {s, trans, now, v + i * s->n, w + i * s->n};
    st = multiply_columns(&p);
  }
  return st;
}

/* While it exists, the first share stands for all of A and F. */
class stand_for_all {
public:
  explicit stand_for_all(hone_several *s) : all(s) {
    s->share[0].c->product = {multiply, s};
  }
  ~stand_for_all() { all.share->c->product = {}; }
  stand_for_all(const stand_for_all &) = delete;
  stand_for_all &operator=(const stand_for_all &) = delete;
  hone_cuda *first() const { return all.share->c; }

private:
  hone_several_all_factors all;
};

bool serves(const hone_several *s, const hone_matrix *a) {
  return (s->spd || s->whole) && hone_several_has_all_of(s, a);
}

} // namespace

int hone_several_probe_step(void *self, const hone_matrix *a,
                            hone_probe_step *step) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  if (!serves(s, a))
    return HONE_NO_DEVICE;
  const stand_for_all it(s);
  int st = hone_several_enter(&s->share[0]);
  TRY(hone_cuda_probe_step(it.first(), a, step));
  return st == HONE_OK ? st : hone_several_wait(s, st);
}

int hone_several_probed(void *self, const hone_probe_step *step,
                        const hone_probed *wanted) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  const stand_for_all it(s);
  int st = hone_several_enter(&s->share[0]);
  TRY(hone_cuda_probed(it.first(), step, wanted));
  return st;
}

int hone_several_solve_refined(void *self, hone_refined_solve *job) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  if (!serves(s, job->a))
    return HONE_NO_DEVICE;
  const stand_for_all it(s);
  int st = hone_several_enter(&s->share[0]);
  TRY(hone_cuda_solve_refined(it.first(), job));
  return st == HONE_OK ? st : hone_several_wait(s, st);
}
