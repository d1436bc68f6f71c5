/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificate and condition estimate, in double precision. Random probes
   (probes.c) show whether a power of E = I - inv(M) S contracts. If it does, S
   is not singular. The same run solves S y = h for random h through S itself.
   The largest y begins an estimate of ||inv(S)||_1 by gradient steps (Hager
   1984; Higham & Tisseur 2000), which for random starting vectors has no matrix
   that always deceives it. Next to read: bounds.c, which uses the
   certificate. */
#include "refine/condition.h"

#include "base/vectors.h"
#include "refine/null_search.h"
#include "refine/relaxation.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The rcond estimated is below this part of that of other factors hardly ever.
 */
static const double CERTAINLY = 0.5;
/* The square of the length of a column of inv(S) that stands out, relative to
   the mean. Of 840 matrices of eight kinds (n = 20 to 200), 56 had an rcond
   more than twice the true one; in 55 of them the column was shorter than that.
   Those with random entries are so in one of 20 draws. */
static const double STANDS_OUT = 2.25;
enum {
  /* In 2,040 matrices of order 3 to 19, 7 had an rcond more than 3 times the
     true one, and none more than 5 times; more columns would take 5 % of the
     whole solve there. */
  MORE_FROM = 20,
  POWERS = 8, /* of E, at most */
  /* Corrections of a solution, at most, where the factors are of another
     matrix. */
  CORRECTIONS = 2 * POWERS,
  VECTORS = 3 /* of an estimate, in n entries each */
};
/* Such a solution is corrected until a correction is shorter than this part of
   it. */
static const double SETTLED = 0.1;

int64_t hone_certify_scratch(int64_t n, bool copy) {
  return hone_probe_scratch(n, copy) + VECTORS * n;
}

/* The state of one estimate; all vectors have n entries. */
typedef struct estimate {
  const hone_factored *f;
  bool scaled;      /* estimates inv(S); otherwise inv(A) */
  hone_entry *v;    /* the vector being worked on */
  hone_entry *sign; /* the signs that v had last */
  long double norm; /* the largest 1-norm of a column found */
  /* Corrects what the factors give. Then h and p have n x HONE_PROBE_SOLUTIONS
     entries each, and work is for hone_multiply. */
  bool corrects;
  const hone_contraction *contraction; /* says which corrections are relaxed */
  hone_entry *h, *p, *work;
  int passes; /* over A */
} estimate;

/* v = inv(S) v for k columns, or with inv(S^T): by the factors alone, or with
   corrections, relaxed as those that were shown to contract. The part of an
   error that a correction leaves may grow before it shrinks: only a short
   correction ends them. */
static int solve(estimate *e, bool trans, int k, hone_entry *v) {
  const int64_t n = e->f->a->n, all = k * n;
  if (e->corrects)
    memcpy(e->h, v, (size_t)all * sizeof *v);
  int st = hone_apply_inverse(e->f, true, trans, k, v, n, NULL, NULL);
  for (int step = 0; e->corrects && st == HONE_OK && step < CORRECTIONS;
       step++) {
    e->passes += hone_multiply(e->f, trans, k, v, e->p, e->work);
    for (int64_t i = 0; i < all; i++)
      e->p[i] = e->h[i] - e->p[i];
    st = hone_apply_inverse(e->f, true, trans, k, e->p, n, NULL, NULL);
    if (st != HONE_OK)
      break;
    hone_add_multiple(all, hone_relaxation_at(e->contraction, step + 2), e->p,
                      v); /* the first solve is correction number 1 */
    if (hone_sum_of_squares(all, e->p) <=
        SETTLED * SETTLED * hone_sum_of_squares(all, v))
      break;
  }
  return st;
}

/* v = inv(S) v, or with inv(S^T); for inv(A), v = 2^k C inv(S) R v with the
   largest entry of v in [1/2, 1), whatever the units are. *k: that one, or 0.
 */
static int apply(estimate *e, bool trans, int *k) {
  const int64_t n = e->f->a->n;
  const hone_scaling *s = e->f->scaling;
  *k = e->scaled
           ? 0
           : hone_scale_in(n, trans ? s->col_exp : s->row_exp, e->v, e->v);
  int st = solve(e, trans, 1, e->v);
  if (st == HONE_OK && !e->scaled)
    *k += hone_scale_in(n, trans ? s->row_exp : s->col_exp, e->v, e->v);
  return st;
}

/* Makes one gradient step (Hager): inv(S^T) applied to the signs of inv(M) y
   points to the unit vector that promises the largest growth. With two more
   steps the rcond reported was no better in 388 systems: 1.0 to 1.2 times the
   true one in the median of each family, at most 4.6 times (with this one 3.3).
 */
static int climb_gradient(estimate *e) {
  const int64_t n = e->f->a->n;
  int k;
  memcpy(e->v, e->sign, (size_t)n * sizeof *e->v);
  hone_conjugate(n, e->v); /* the gradient is that of the adjoint */
  int st = apply(e, true, &k);
  if (st != HONE_OK)
    return st;
  const int64_t j = hone_largest_at(n, e->v);
  memset(e->v, 0, (size_t)n * sizeof *e->v);
  e->v[j] = 1.0;
  if ((st = apply(e, false, &k)) != HONE_OK)
    return st;
  /* NaN must not be certified */
  e->norm = hone_shiftl((long double)hone_sum_abs(n, e->v), -k);
  return HONE_OK;
}

/* Is the column of inv(S) in v, to which a gradient step has led, longer than
   columns are in the mean? If it is not, nothing distinguishes it, and another
   one may be several times as large. size: of inv(S), in the Frobenius norm. */
static bool stands_out(int64_t n, const hone_entry *v, double size) {
  return hone_sum_of_squares(n, v) * (double)n > STANDS_OUT * size * size;
}

/* Makes one gradient step for inv(S) from each of the solutions y, all at once
   (Higham & Tisseur 2000): where one of them leads to a column that is far from
   the largest, another does not. v: these solutions, overwritten. */
static int climb_gradients(estimate *e, hone_entry *v) {
  const int64_t n = e->f->a->n;
  int64_t at[HONE_PROBE_SOLUTIONS];
  int count = 0;
  (void)hone_take_signs(HONE_PROBE_SOLUTIONS * n, v, v);
  hone_conjugate(HONE_PROBE_SOLUTIONS * n, v);
  int st = solve(e, true, HONE_PROBE_SOLUTIONS, v);
  for (int c = 0; st == HONE_OK && c < HONE_PROBE_SOLUTIONS; c++) {
    const int64_t j = hone_largest_at(n, v + c * n);
    bool again = false;
    for (int k = 0; k < count; k++)
      again = again || at[k] == j;
    if (!again)
      at[count++] = j;
  }
  memset(v, 0, (size_t)(count * n) * sizeof *v);
  for (int c = 0; c < count; c++)
    v[c * n + at[c]] = 1.0;
  if (st == HONE_OK)
    st = solve(e, false, count, v);
  for (int c = 0; st == HONE_OK && c < count; c++) {
    const long double norm = (long double)hone_sum_abs(n, v + c * n);
    if (!(norm <= e->norm) && !isnan(e->norm)) /* NaN must not be certified */
      e->norm = norm;
  }
  return st;
}

/* Returns 1 / (a b), an rcond. It is above 1 only by rounding errors, or where
   norm a was cut off at DBL_MAX. */
static double reciprocal(double a, long double b) {
  const long double product = (long double)a * b;
  if (!(product > 0.0L)) /* Inf and NaN give 0 too */
    return 0.0;
  return product > 1.0L ? (double)(1.0L / product) : 1.0;
}

/* Estimates ||inv(S)||_1 and ||inv(A)||_1, beginning with the solution y of the
   probes. Where the factors need many corrections, the estimates by the factors
   alone are raised by what corrections added to the solutions. That says little
   of a large entry of E, which factors of another matrix may have, and rounding
   errors do not bring about: with such factors every solution is corrected. */
static int estimate_condition(const hone_certify_job *job,
                              const hone_probing *probing,
                              hone_certificate *out) {
  const hone_factored *f = job->f;
  const int64_t n = f->a->n;
  hone_entry *y = job->scratch + hone_probe_scratch(n, f->use_copy);
  const bool corrects = job->of_another && out->contraction[0].power > 1;
  const long double growth =
      corrects ? 1.0L : (long double)fmax(1.0, probing->inverse_growth);
  estimate e = {.f = f,
                .scaled = true,
                .v = y + n,
                .sign = y + 2 * n,
                .norm = (long double)probing->inverse_norm,
                .corrects = corrects,
                .contraction = &out->contraction[0],
                .h = job->scratch, /* what probes used, but for solutions */
                .p = job->scratch + HONE_PROBE_SOLUTIONS * n,
                .work = job->scratch + 2 * HONE_PROBE_SOLUTIONS * n};
  int st = HONE_OK;
  if (probing->solution != NULL) {
    memcpy(y, probing->solution, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++)
      e.sign[i] = 0.0;
  }
  if (corrects || !probing->estimated) {
    (void)hone_take_signs(n, y, e.sign);
    st = climb_gradient(&e);
    if (st == HONE_OK && probing->solutions != NULL && n >= MORE_FROM &&
        !stands_out(n, e.v, probing->inverse_size))
      st = climb_gradients(&e, probing->solutions);
  }
  out->inverse_norm_scaled = (double)growth * (double)e.norm;
  out->inverse_norm = (long double)out->inverse_norm_scaled;
  if (st == HONE_OK && f->scaling->used) {
    (void)hone_scale_in(n, f->scaling->col_exp, y, y);
    (void)hone_take_signs(n, y, e.sign);
    e.scaled = false;
    e.norm = 0.0L;
    st = climb_gradient(&e);
    out->inverse_norm = growth * e.norm;
  }
  out->rcond_scaled =
      reciprocal(job->norm1_scaled, (long double)out->inverse_norm_scaled);
  out->rcond = reciprocal(job->norm1, out->inverse_norm);
  out->passes += e.passes;
  return st;
}

static hone_null_search begin_search(const hone_certify_job *job) {
  return (hone_null_search){.f = job->f,
                            .norm1 = job->norm1_scaled,
                            .v = job->null->z,
                            .scratch = job->scratch,
                            .least = HONE_INF};
}

/* Takes what the search has shown. */
static int take_search(const hone_certify_job *job,
                       const hone_null_search *search, hone_certificate *out) {
  out->passes = search->passes;
  out->singular = hone_null_search_proves(search);
  if (!out->singular)
    return HONE_OK;
  out->null_vector = job->null->z;
  out->left_null_vector = job->null->u;
  return hone_deflate_null(job->f, job->norm1_scaled, job->scratch,
                           &out->passes, job->null);
}

/* Searches for a null vector of S, from what E left of the first random vector,
   which is the first one in scratch. */
static int search_from_probe(const hone_certify_job *job, double *least,
                             hone_certificate *out) {
  hone_null_search search = begin_search(job);
  memcpy(search.v, job->scratch, (size_t)job->f->a->n * sizeof *search.v);
  int st = hone_null_search_run(&search);
  *least = search.least;
  return st == HONE_OK ? take_search(job, &search, out) : st;
}

/* Estimates the rcond of A from a null vector of S. */
static int estimate_rcond_of_a(const hone_certify_job *job,
                               const hone_null_search *search,
                               hone_certificate *out) {
  const double rcond_scaled = out->rcond_scaled;
  const hone_probing start = {.solution = search->v};
  int st = estimate_condition(job, &start, out);
  out->rcond_scaled = rcond_scaled;
  out->rcond = fmin(out->rcond, rcond_scaled);
  return st;
}

int hone_certify_singular(const hone_certify_job *job, hone_certificate *out) {
  hone_null_search search = begin_search(job);
  int st = hone_null_search_begin(&search);
  if (st == HONE_OK && hone_null_search_proves(&search)) {
    out->exactly_singular = hone_null_search_exact(&search);
    out->rcond = out->rcond_scaled = search.least / search.norm1;
    if (search.f->scaling->used)
      st = estimate_rcond_of_a(job, &search, out);
  }
  return st == HONE_OK ? take_search(job, &search, out) : st;
}

/* Deflates the few directions that the factors do not contract, and makes the
   probes anew with them. Where there are many, further powers may leave little:
   they are made if the first one was the last, and always on a device, which
   makes them in no time beside a factorization. *least, ||S z|| / ||z|| in
   1-norms, is lowered by that of each direction z. */
static int deflate(const hone_certify_job *job, hone_factored *f,
                   hone_probing *probing, double *least,
                   hone_certificate *out) {
  int st =
      hone_deflate(f, job->scratch, &probing->passes, job->deflation, least);
  out->singular = *least < HONE_EPS * job->norm1_scaled;
  if (st != HONE_OK || out->singular)
    return st;
  if (job->deflation->count > 0)
    f->deflation = job->deflation;
  else if (probing->cut_short || f->use_copy)
    probing->persists = f->use_copy;
  else
    return HONE_OK;
  probing->deflation_follows = false;
  return hone_probe(probing, POWERS, &out->contraction[0]);
}

int hone_certify(const hone_certify_job *job, hone_certificate *out) {
  hone_factored f = *job->f;
  hone_contraction *contraction = &out->contraction[0];
  hone_probing probing = {.f = &f,
                          .seed = *job->seed,
                          .scratch = job->scratch,
                          .beside = job->beside,
                          .deflation_follows = job->deflation != NULL,
                          .corrected_next = job->of_another,
                          .inverse = true};
  out->contraction[1].tried = false;
  out->contraction[1].power = 0;
  double least = HONE_INF; /* ||S z|| / ||z||, in 1-norms */
  out->singular = false;
  int st = HONE_OK;
  out->passes = contraction->power = 0;
  if (!job->replaced)
    st = hone_probe(&probing, POWERS, contraction);
  if (st == HONE_OK && contraction->power == 0 && !job->replaced &&
      job->null != NULL)
    st = search_from_probe(job, &least, out);
  if (st == HONE_OK && contraction->power == 0 && !out->singular &&
      job->deflation != NULL)
    st = deflate(job, &f, &probing, &least, out);
  *job->seed = probing.seed;
  out->passes += probing.passes;
  out->inverse_bound =
      contraction->power > 0 ? probing.inverse_bound : HONE_INF;
  out->rcond = out->rcond_scaled = 0.0;
  if (st == HONE_OK && (probing.estimated || probing.solution != NULL)) {
    hone_certify_job estimated = *job;
    estimated.f = &f;
    st = estimate_condition(&estimated, &probing, out);
  }
  if (out->singular) {
    out->rcond_scaled = fmin(out->rcond_scaled, least / job->norm1_scaled);
    out->rcond = fmin(out->rcond, out->rcond_scaled);
  }
  /* With a smaller rcond_scaled, double precision does not resolve S. */
  out->nonsingular = contraction->power > 0 && out->rcond_scaled >= HONE_EPS;
  /* inv(N) = (I - E) inv(S) may be much larger than inv(S), which corrections
     of the solutions show. */
  const double part = fmin(1.0, probing.inverse_growth);
  out->singular =
      out->singular || (contraction->power > 0 &&
                        out->rcond_scaled < CERTAINLY * part * HONE_EPS);
  return st;
}

int hone_certify_transpose(const hone_certify_job *job, hone_certificate *out) {
  hone_probing probing = {.f = job->f,
                          .trans = true,
                          .seed = *job->seed,
                          .scratch = job->scratch,
                          .beside = job->beside,
                          .persists = job->f->use_copy};
  int st = hone_probe(&probing, POWERS, &out->contraction[1]);
  *job->seed = probing.seed;
  out->passes += probing.passes;
  return st;
}
