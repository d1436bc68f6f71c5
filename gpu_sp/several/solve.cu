/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with factors that are dealt to several devices, in double arithmetic.
   Every device has all of Cholesky's factors: each solves for some of the
   right-hand sides. Where the first device alone has all of LU's
   (hone_several.whole) it solves alone: a solve is a chain of small steps,
   which takes longer where each of them goes from one device to the next.
   Otherwise:

   Each device has the right-hand sides and sums of its own, n entries for each
   of k vectors, by panels (sweeps.h).

   With L and U the owner of a panel solves for its rows, and multiplies its
   columns by the result; the products go to sums of its own, those for the rows
   of the next panel first. For these the next owner gathers the sums of all
   devices. With the transposes each part of the result goes to all devices, and
   each multiplies the columns that it has by it: the sums for the columns of a
   panel are then complete on their owner. */
#include "gpu_sp/several/several.h"

#include "gpu_sp/several/sweeps.h"
#include "gpu_sp/solve/solve.h"

#include <cstring>

namespace {

/* A sweep through the panels with k vectors. */
struct sweep {
  hone_several *s;
  enum hone_sweep_kind kind;
  int k;
  bool down, trans;
};

int first_panel(const sweep &of) { return of.down ? 0 : of.s->panels - 1; }
int step(const sweep &of) { return of.down ? 1 : -1; }
bool is_panel(const sweep &of, int p) { return p >= 0 && p < of.s->panels; }

/* Returns where panel p begins in vectors that lie by panels. */
int64_t piece(const sweep &of, int p) {
  return of.k * hone_several_start(of.s, p);
}
size_t piece_bytes(const sweep &of, int p) {
  return (size_t)(of.k * hone_several_width(of.s, p)) * sizeof(hone_entry);
}

/* Returns where share d gathers the sums of its panel p from share e. */
hone_entry *gathered(const sweep &of, int d, int p, int e) {
  const hone_share *share = &of.s->share[d];
  return share->gather + e * HONE_SEVERAL_COLUMNS * share->padded +
         of.k * hone_several_place(of.s, p);
}

hone_panel_columns columns_of(const hone_several *s, int p) {
  const hone_share *share = &s->share[hone_several_owner(s, p)];
  return {share->f + HONE_PARTS * hone_several_place(s, p), share->c->ld,
          hone_several_start(s, p), hone_several_width(s, p)};
}

/* Solves for panel p on its owner. 'gathers': the other devices have sums. */
int solve_panel(const sweep &of, int p, bool gathers) {
  hone_several *s = of.s;
  const int d = hone_several_owner(s, p);
  const hone_share *share = &s->share[d];
  const hone_cuda *c = share->c;
  const int64_t at =
      hone_several_place(s, p) / HONE_PANEL * HONE_WIDE * HONE_WIDE;
  const double *inverse =
      of.kind == HONE_SWEEP_U || of.kind == HONE_SWEEP_UT ? c->lower : c->upper;
  int st = hone_several_enter(share);
  for (int e = 0; e < s->count && gathers; e++)
    if (e != d)
      TRY_CUDA(cudaStreamWaitEvent(c->work, s->share[e].pushed, 0));
  TRY_CUDA(hone_several_solve_panel(
      columns_of(s, p),
      {of.kind, inverse + at, hone_cuda_v(c) + piece(of, p),
       hone_cuda_w(c) + piece(of, p), gathered(of, d, p, 0),
       gathers ? s->count : 0, HONE_SEVERAL_COLUMNS * share->padded, of.k},
      c->work));
  return st;
}

/* ---- With L and U -------------------------------------------------------- */

/* Sends the sums of all other shares for the rows of panel p to its owner,
   whose own place among them is zero. */
int push_sums(const sweep &of, int p) {
  hone_several *s = of.s;
  const int d = hone_several_owner(s, p);
  int st = HONE_OK;
  for (int e = 0; e < s->count; e++) {
    const hone_share *from = &s->share[e];
    if (e == d)
      continue;
    TRY(hone_several_enter(from));
    TRY_CUDA(cudaMemcpyPeerAsync(gathered(of, d, p, e), s->share[d].c->ordinal,
                                 hone_cuda_w(from->c) + piece(of, p),
                                 from->c->ordinal, piece_bytes(of, p),
                                 from->c->work));
    TRY_CUDA(cudaEventRecord(from->pushed, from->c->work));
  }
  return st;
}

/* Multiplies panel p, which has been solved for, by the result, in the rows
   that are not solved for yet. */
int multiply_rows(const sweep &of, int p) {
  hone_several *s = of.s;
  const hone_share *share = &s->share[hone_several_owner(s, p)];
  const hone_cuda *c = share->c;
  const hone_panel_product product = {hone_cuda_v(c) + piece(of, p),
                                      hone_cuda_w(c), of.k, s->n, s->nb};
  const int next = p + step(of);
  const int64_t from = hone_several_start(s, p);
  if (!is_panel(of, next))
    return HONE_OK;
  const int64_t n0 = hone_several_start(s, next);
  const int64_t n1 = n0 + hone_several_width(s, next);
  int st = hone_several_enter(share);
  TRY_CUDA(hone_several_add_rows(columns_of(s, p), product, n0, n1, c->work));
  TRY(push_sums(of, next));
  TRY(hone_several_enter(share));
  TRY_CUDA(of.down ? hone_several_add_rows(columns_of(s, p), product, n1, s->n,
                                           c->work)
                   : hone_several_add_rows(columns_of(s, p), product, 0,
                                           from - s->nb, c->work));
  return st;
}

/* ---- With the transposes ------------------------------------------------- */

/* Sends the result for panel p to all other shares, and multiplies the columns
   that are not solved for yet by it. */
int multiply_columns(const sweep &of, int p) {
  hone_several *s = of.s;
  const int d = hone_several_owner(s, p);
  const hone_share *owner = &s->share[d];
  int st = hone_several_enter(owner);
  for (int e = 0; e < s->count; e++)
    if (e != d)
      TRY_CUDA(cudaMemcpyPeerAsync(
          hone_cuda_v(s->share[e].c) + piece(of, p), s->share[e].c->ordinal,
          hone_cuda_v(owner->c) + piece(of, p), owner->c->ordinal,
          piece_bytes(of, p), owner->c->work));
  TRY_CUDA(cudaEventRecord(owner->pushed, owner->c->work));
  for (int e = 0; e < s->count; e++) {
    const hone_share *share = &s->share[e];
    const hone_cuda *c = share->c;
    const int64_t c0 = of.down ? hone_several_before(s, e, p + 1) : 0;
    const int64_t c1 = of.down ? c->m : hone_several_before(s, e, p);
    TRY(hone_several_enter(share));
    if (e != d)
      TRY_CUDA(cudaStreamWaitEvent(c->work, owner->pushed, 0));
    TRY_CUDA(hone_several_add_columns(
        {share->f, c->ld, hone_several_start(s, p), hone_several_width(s, p)},
        {hone_cuda_v(c) + piece(of, p), hone_cuda_w(c), of.k, s->n, s->nb},
        {s->count, e}, c0, c1, c->work));
  }
  return st;
}

/* ---- A solve ------------------------------------------------------------- */

int make_sweep(const sweep &of) {
  hone_several *s = of.s;
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    const hone_share *share = &s->share[d];
    TRY(hone_several_enter(share));
    TRY_CUDA(cudaMemsetAsync(share->c->w, 0,
                             (size_t)(of.k * s->n) * sizeof(hone_entry),
                             share->c->work));
  }
  for (int p = first_panel(of); is_panel(of, p) && st == HONE_OK;
       p += step(of)) {
    st = solve_panel(of, p, !of.trans && p != first_panel(of));
    TRY(of.trans ? multiply_columns(of, p) : multiply_rows(of, p));
  }
  return st;
}

/* Copies k vectors v to, or from, vectors that lie by panels, through perm:
   row i of F is row perm[i] of S. */
void by_panels(const hone_several *s, int64_t k, bool permutes, const int *perm,
               const hone_entry *v, int64_t ldv, hone_entry *to) {
  for (int p = 0; p < s->panels; p++) {
    const int64_t first = hone_several_start(s, p);
    const int64_t w = hone_several_width(s, p);
    for (int64_t c = 0; c < k; c++)
      for (int64_t i = first; i < first + w; i++)
        *to++ = v[c * ldv + (permutes ? perm[i] : i)];
  }
}

/* Copies the rows of share d's panels from vectors that lie by panels. */
void from_panels(const hone_several *s, int d, int64_t k, bool permutes,
                 const int *perm, const hone_entry *from, hone_entry *v,
                 int64_t ldv) {
  for (int p = d; p < s->panels; p += s->count) {
    const int64_t first = hone_several_start(s, p);
    const int64_t w = hone_several_width(s, p);
    const hone_entry *at = from + k * first;
    for (int64_t c = 0; c < k; c++)
      for (int64_t i = first; i < first + w; i++)
        v[c * ldv + (permutes ? perm[i] : i)] = *at++;
  }
}

hone_entry *vectors_of(const hone_share *share) {
  return reinterpret_cast<hone_entry *>(
      hone_cuda_pinned(share->c, HONE_CUDA_SOLVES));
}

/* Enqueues the copies of all shares' vectors to the devices, or back. */
int transfer(hone_several *s, int64_t k, bool back) {
  const size_t bytes = (size_t)(k * s->n) * sizeof(hone_entry);
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    hone_entry *const h = vectors_of(&s->share[d]);
    TRY(hone_several_enter(&s->share[d]));
    TRY_CUDA(
        back
            ? cudaMemcpyAsync(h, c->v, bytes, cudaMemcpyDeviceToHost, c->work)
            : cudaMemcpyAsync(c->v, h, bytes, cudaMemcpyHostToDevice, c->work));
    *(back ? &c->used.from_device : &c->used.to_device) += (int64_t)bytes;
  }
  return st;
}

/* Lets every share wait until all have come here. */
int meet(const hone_several *s) {
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    TRY(hone_several_enter(&s->share[d]));
    TRY_CUDA(cudaEventRecord(s->share[d].pushed, s->share[d].c->work));
  }
  for (int d = 0; d < s->count; d++)
    for (int e = 0; e < s->count; e++)
      if (e != d)
        TRY_CUDA(
            cudaStreamWaitEvent(s->share[d].c->work, s->share[e].pushed, 0));
  return st;
}

/* Solves for up to HONE_SEVERAL_COLUMNS vectors. */
int solve_columns(hone_several *s, bool trans, int64_t k, hone_entry *v,
                  int64_t ldv) {
  const int *const perm =
      reinterpret_cast<int *>(hone_cuda_pinned(s->share[0].c, HONE_CUDA_PERM));
  hone_entry *const first = vectors_of(&s->share[0]);
  by_panels(s, k, !trans, perm, v, ldv, first);
  for (int d = 1; d < s->count; d++)
    memcpy(vectors_of(&s->share[d]), first, (size_t)(k * s->n) * sizeof *first);
  const int count = (int)k;
  int st = transfer(s, k, false);
  if (trans) /* an owner writes its results among the vectors of the others */
    TRY(meet(s));
  TRY(make_sweep(trans ? sweep{s, HONE_SWEEP_UT, count, true, true}
                       : sweep{s, HONE_SWEEP_L, count, true, false}));
  TRY(meet(s)); /* the second sweep's sums go where the first one's were read */
  TRY(make_sweep(trans ? sweep{s, HONE_SWEEP_LT, count, false, true}
                       : sweep{s, HONE_SWEEP_U, count, false, false}));
  TRY(transfer(s, k, true));
  st = hone_several_wait(s, st);
  for (int d = 0; d < s->count && st == HONE_OK; d++)
    from_panels(s, d, k, trans, perm, vectors_of(&s->share[d]), v, ldv);
  return st;
}

/* ---- With all factors ---------------------------------------------------- */

enum {
  LEAST_COLUMNS = 8, /* of one device, where there are so many */
  WORTH_THREADS = 1 << 15
};

/* Columns of the caller, and their place in pinned memory. */
struct columns {
  int64_t n, ldv, count;
  hone_entry *v, *h;
};

void take_in(void *ctx, int64_t k) {
  const columns *of = static_cast<const columns *>(ctx);
  memcpy(static_cast<void *>(of->h + k * of->n), of->v + k * of->ldv,
         (size_t)of->n * sizeof(hone_entry));
}

void give_back(void *ctx, int64_t k) {
  const columns *of = static_cast<const columns *>(ctx);
  memcpy(static_cast<void *>(of->v + k * of->ldv), of->h + k * of->n,
         (size_t)of->n * sizeof(hone_entry));
}

/* Returns the columns of v that share d solves for, of 'each' for every share.
 */
columns columns_for(const hone_several *s, int d, int64_t each, int64_t k,
                    hone_entry *v, int64_t ldv) {
  const int64_t first = d * each, left = k - first;
  const int64_t count = left < each ? left : each;
  return {s->n, ldv, count > 0 ? count : 0, v + first * ldv,
          vectors_of(&s->share[d])};
}

hone_pool *pool_for(const hone_several *s, const columns &of) {
  return of.n * of.count < WORTH_THREADS ? nullptr : s->pool;
}

/* Solves with Cholesky's factors, for up to HONE_CUDA_COLUMNS columns on each
   device at once. */
int solve_side_by_side(hone_several *s, bool trans, int64_t k, hone_entry *v,
                       int64_t ldv) {
  int64_t each = (k + s->count - 1) / s->count;
  each = each > LEAST_COLUMNS ? each : (int64_t)LEAST_COLUMNS;
  int st = HONE_OK;
  for (int d = 0; d < s->count; d++) {
    hone_cuda *c = s->share[d].c;
    columns of = columns_for(s, d, each, k, v, ldv);
    const int64_t bytes = of.n * of.count * (int64_t)sizeof(hone_entry);
    double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
    if (of.count == 0)
      continue;
    hone_pool_run(pool_for(s, of), of.count, take_in, &of);
    TRY(hone_several_enter(&s->share[d]));
    TRY(hone_cuda_enqueue_solve(c, c->work, hone_cuda_transposes(c, trans),
                                of.count, h, h));
    c->used.to_device += bytes;
    c->used.from_device += bytes;
  }
  for (int d = 0; d < s->count && st == HONE_OK; d++) {
    columns of = columns_for(s, d, each, k, v, ldv);
    st = hone_several_enter(&s->share[d]);
    TRY_CUDA(cudaStreamSynchronize(s->share[d].c->work));
    if (st == HONE_OK && of.count > 0)
      hone_pool_run(pool_for(s, of), of.count, give_back, &of);
  }
  return st == HONE_OK ? st : hone_several_wait(s, st);
}

/* Solves where the first device has all of F. */
int solve_together(hone_several *s, bool trans, int64_t k, hone_entry *v,
                   int64_t ldv) {
  const hone_several_all_factors all(s);
  int st = hone_several_enter(all.share);
  TRY(hone_cuda_solve(all.share->c, trans, k, v, ldv));
  return st;
}

} // namespace

int hone_several_solve(void *self, bool trans, int64_t k, hone_entry *v,
                       int64_t ldv) {
  hone_several *s = static_cast<hone_several *>(self);
  const hone_cuda_current meanwhile;
  int st = HONE_OK;
  if (s->whole)
    return solve_together(s, trans, k, v, ldv);
  const auto solve = s->spd ? solve_side_by_side : solve_columns;
  const int64_t most = s->spd ? (int64_t)HONE_CUDA_COLUMNS * s->count
                              : (int64_t)HONE_SEVERAL_COLUMNS;
  for (int64_t i = 0, now; i < k && st == HONE_OK; i += now) {
    now = k - i < most ? k - i : most;
    st = solve(s, trans, now, v + i * ldv, ldv);
  }
  return st;
}
