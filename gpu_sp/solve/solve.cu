/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves with the float factors, in double arithmetic, as the refinement calls
   them. Read next: triangles.h, residual/resident.cu. */
#include "gpu_sp/solve/solve.h"

#include <cfloat>
#include <cmath>

namespace {

/* Powers of two with exponents up to this make no entry overflow or vanish. */
enum { LARGEST_EXPONENT = 600 };
/* Entries from which columns are copied by several threads. */
enum { WORTH_THREADS = 1 << 15 };

} // namespace

/* From P S = L U follow inv(S) = inv(U) inv(L) P and
   inv(S^T) = P^T inv(L^T) inv(U^T); the host applies P. The kernels see the
   transpose of F, that is U^T in its lower triangle and L^T in its upper one.
   From S = U^H U follow inv(S) = inv(U) inv(U^H), U^H being the conjugate of
   U^T, and inv(S^T), its conjugate. */
int hone_cuda_enqueue_solve(hone_cuda *c, cudaStream_t stream, bool trans,
                            int64_t k, const double *from, double *to) {
  const hone_sweep sweeps[3][2] = {
      {{HONE_UPPER_TRANS, c->upper, false},
       {HONE_LOWER_TRANS, c->lower, false}},
      {{HONE_LOWER, c->lower, false}, {HONE_UPPER, c->upper, false}},
      {{HONE_LOWER, c->lower, !trans}, {HONE_LOWER_TRANS, c->lower, trans}}};
  return CALL(hone_cuda_triangles(
      sweeps[c->spd ? 2 : trans], 2, {c->f, c->ld, c->n},
      {k, from, to, HONE_PARTS * c->n}, &c->triangles, stream));
}

namespace {

#ifdef HONE_COMPLEX
hone_entry times(double by, const hone_entry &v) {
  return {by * v.re, by * v.im};
}
#else
double times(double by, double v) { return by * v; }
#endif

/* to[i] = scale * from[perm[i]], or, if scatter is true, to[perm[i]] =
   scale * from[i]. perm NULL: the identity. */
void permute(int64_t n, const int *perm, bool scatter, double scale,
             const hone_entry *from, hone_entry *to) {
  if (perm == nullptr)
    for (int64_t i = 0; i < n; i++)
      to[i] = times(scale, from[i]);
  else if (scatter)
    for (int64_t i = 0; i < n; i++)
      to[perm[i]] = times(scale, from[i]);
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = times(scale, from[perm[i]]);
}

hone_entry *entries_at(double *h) { return reinterpret_cast<hone_entry *>(h); }

const int *perm_of(const hone_cuda *c) {
  return c->spd ? nullptr
                : reinterpret_cast<int *>(hone_cuda_pinned(c, HONE_CUDA_PERM));
}

/* Columns of the caller, and their place in pinned memory. */
struct columns {
  int64_t n, ldv;
  const int *before, *behind; /* the exchange of rows, where there is one */
  hone_entry *v, *h;
};

void take_in(void *ctx, int64_t k) {
  const columns *s = static_cast<const columns *>(ctx);
  permute(s->n, s->before, false, 1.0, s->v + k * s->ldv, s->h + k * s->n);
}

void give_back(void *ctx, int64_t k) {
  const columns *s = static_cast<const columns *>(ctx);
  permute(s->n, s->behind, true, 1.0, s->h + k * s->n, s->v + k * s->ldv);
}

/* Solves for up to HONE_CUDA_COLUMNS columns. */
int solve_columns(hone_cuda *c, bool trans, int64_t k, hone_entry *v,
                  int64_t ldv) {
  const int64_t n = c->n, bytes = n * k * (int64_t)sizeof(hone_entry);
  double *const h = hone_cuda_pinned(c, HONE_CUDA_SOLVES);
  const int *const perm = perm_of(c);
  hone_pool *const pool = n * k < WORTH_THREADS ? nullptr : c->pool;
  columns s = {n, ldv,          trans ? nullptr : perm, trans ? perm : nullptr,
               v, entries_at(h)};
  hone_pool_run(pool, k, take_in, &s);
  int st = hone_cuda_enqueue_solve(c, c->work, trans, k, h, h);
  TRY_CUDA(cudaStreamSynchronize(c->work));
  if (st == HONE_OK)
    hone_pool_run(pool, k, give_back, &s);
  c->used.to_device += bytes;
  c->used.from_device += bytes;
  return st;
}

/* Returns true if v is a multiple of a right-hand side whose solve has been
   enqueued already; then v becomes the solution, and *st the status. */
bool take_solution_ahead(hone_cuda *c, bool trans, hone_entry *v, int *st) {
  const double scale =
      c->solving_ahead && c->solving_ahead_trans == trans
          ? hone_cuda_multiple_of(c, hone_cuda_pinned(c, HONE_CUDA_R), v)
          : 0;
  if (!(scale > 0.0))
    return false;
  c->solving_ahead = false;
  *st = CALL(cudaStreamSynchronize(c->work));
  if (*st == HONE_OK)
    permute(c->n, trans ? perm_of(c) : nullptr, true, scale,
            entries_at(hone_cuda_pinned(c, HONE_CUDA_AHEAD)), v);
  c->used.from_device += c->n * (int64_t)sizeof(hone_entry);
  return true;
}

} // namespace

/* Parts of complex entries are compared one by one. */
double hone_cuda_multiple_of(const hone_cuda *c, const double *r,
                             const hone_entry *entry) {
  const double *const v = reinterpret_cast<const double *>(entry);
  const int64_t n = HONE_PARTS * c->n;
  int64_t i = 0, other = 0;
  while (i < n && !(r[i] != 0.0))
    i++;
  if (i == n || !(std::fabs(r[i]) <= DBL_MAX) || !(v[i] / r[i] > 0.0))
    return 0.0;
  const int e = std::ilogb(v[i]) - std::ilogb(r[i]);
  if (e > LARGEST_EXPONENT || e < -LARGEST_EXPONENT)
    return 0.0;
  const double scale = std::ldexp(1.0, e);
  for (i = 0; i < n; i++)
    other += !(scale * r[i] == v[i]);
  return other == 0 ? scale : 0.0;
}

int hone_cuda_solve(void *self, bool trans, int64_t k, hone_entry *v,
                    int64_t ldv) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  int st = HONE_OK;
  trans = hone_cuda_transposes(c, trans);
  if (k == 1 && take_solution_ahead(c, trans, v, &st))
    return st;
  st = hone_cuda_forget(c);
  for (int64_t i = 0; i < k && st == HONE_OK; i += HONE_CUDA_COLUMNS) {
    const int64_t now =
        k - i < HONE_CUDA_COLUMNS ? k - i : (int64_t)HONE_CUDA_COLUMNS;
    st = solve_columns(c, trans, now, v + i * ldv, ldv);
  }
  return st;
}

void hone_cuda_expect_solve(void *self) {
  static_cast<hone_cuda *>(self)->solve_expected = true;
}

int hone_cuda_solve_ahead(hone_cuda *c, bool trans) {
  c->solving_ahead_trans = hone_cuda_transposes(c, trans);
  int st = CALL(cudaEventRecord(c->residual_done, c->work));
  TRY(hone_cuda_enqueue_solve(c, c->work, c->solving_ahead_trans, 1, c->w,
                              hone_cuda_pinned(c, HONE_CUDA_AHEAD)));
  TRY_CUDA(cudaEventSynchronize(c->residual_done));
  c->solving_ahead = st == HONE_OK;
  c->companion.there =
      false; /* its right-hand side stood where the solution is now */
  return st;
}
