/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of random probes whose vectors are on the host, in double precision.
   Next to read: probes.c, whose head states the theorem. */
#include "refine/probe_run.h"

#include "base/vectors.h"
#include "refine/condition.h"
#include "refine/relaxation.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Up to order FEW_UP_TO, where a pass over A costs no more than a few solves,
   the first power is applied to a few vectors first. Their bound is by a factor
   of 11, or of 1e5 for factors in double, less sharp; it suffices where it is
   at most FEW_BOUND, since what it adds to an error bar is then small beside
   the correction that is known. Otherwise the other vectors follow, and the
   statement is made anew of all of them. LU in single precision seldom has so
   small a bound: matrices with random entries have a condition of about n. */
enum {
  SOLUTIONS = HONE_PROBE_SOLUTIONS,
  FEW = 6 / HONE_PARTS,
  FEW_DOUBLE = 2 / HONE_PARTS,
  FEW_UP_TO = 512
};
static const double FEW_BOUND = 0x1p-6;

/* rows_i = factor sqrt(sum_k |v_ik|^2), where v_ik, a difference of numbers of
   at most 'largest', was rounded. */
HONE_VECTOR static void row_norms(int64_t n, int t,
                                  const hone_entry *restrict v, double largest,
                                  double factor, double *restrict rows) {
  const double rounding = hone_probe_rounding(t, largest);
  memset(rows, 0, (size_t)n * sizeof *rows);
  for (int64_t c = 0; c < t; c++)
    for (int64_t i = 0; i < n; i++)
      rows[i] += hone_real(hone_conj(v[c * n + i]) * v[c * n + i]);
  for (int64_t i = 0; i < n; i++)
    rows[i] = factor * (sqrt(rows[i]) + rounding);
}

/* v_c = W v_c for all c, or inv(W) v_c. */
static void weigh(int64_t n, int t, const double *weights, bool inverse,
                  hone_entry *v) {
  for (int64_t c = 0; weights != NULL && c < t; c++)
    for (int64_t i = 0; i < n; i++)
      v[c * n + i] =
          hone_times(inverse ? 1.0 / weights[i] : weights[i], v[c * n + i]);
}

static void draw_all(int64_t n, int t, uint64_t *seed, hone_entry *v) {
  for (int64_t c = 0; c < t; c++)
    hone_probe_draw(n, seed, v + c * n);
}

/* q = h - op(S) y, or h before there is a y. */
static void residual_of_solutions(hone_probing *probing, bool first,
                                  const hone_probe_right_sides *h,
                                  const hone_probe_arrays *at) {
  const int64_t n = probing->f->a->n;
  if (!first)
    probing->passes += hone_multiply(probing->f, probing->trans, h->count,
                                     at->y, at->q, at->work);
  uint64_t seed = h->seed;
  for (int64_t c = 0; c < h->count; c++) {
    hone_entry *q = at->q + c * n;
    hone_probe_draw(n, &seed, at->work);
    if (h->shift != 0)
      hone_scale_by(n, NULL, 1, -h->shift, at->work, at->work);
    if (first)
      memcpy(q, at->work, (size_t)n * sizeof *q);
    else
      for (int64_t i = 0; i < n; i++)
        q[i] = at->work[i] - q[i];
  }
}

/* y = y + omega q. The first solutions are brought near 1, and h with them, so
   that products with S stay in range. */
static void correct_solutions(bool first, int64_t n, hone_entry omega,
                              hone_probe_right_sides *h,
                              const hone_probe_arrays *at) {
  const int64_t count = h->count * n;
  if (!first) {
    hone_add_multiple(count, omega, at->q, at->y);
    return;
  }
  const double size = hone_abs(at->q[hone_largest_at(count, at->q)]);
  if (size > 0.0 && size <= DBL_MAX)
    h->shift = ilogb(size);
  hone_scale_by(count, NULL, 1, -h->shift, at->q, at->y);
  h->first_size = hone_sum_of_squares(count, at->y);
}

/* Makes v = E v for the vectors 'from' to t - 1; before power number 1, draws
   them. With 'solutions', corrects those too. Relaxes both by the vector behind
   them if r->relaxing. size: as of hone_apply_inverse. */
static int apply_to_vectors(hone_probe_run *r, int k, int from, bool solutions,
                            double *size) {
  hone_probing *probing = r->probing;
  const hone_factored *f = &r->f;
  const int64_t n = f->a->n;
  const int t = r->t - from, all = t + (r->relaxing ? 1 : 0);
  hone_probe_arrays *at = &r->at;
  hone_entry *v = at->v + from * n, omega = 1.0;
  if (k == 1)
    draw_all(n, all, &r->seed, v);
  weigh(n, all, probing->weights, false, v);
  at->q = at->p + all * n;
  probing->passes += hone_multiply(f, probing->trans, all, v, at->p, at->work);
  if (solutions)
    residual_of_solutions(probing, k == 1, &r->h, at);
  int st = hone_apply_inverse(f, true, probing->trans,
                              all + (solutions ? r->h.count : 0), at->p, n,
                              NULL, size);
  if (st != HONE_OK)
    return st;
  if (r->relaxing) {
    omega = hone_relaxation_by(n, v + t * n, at->p + t * n);
    r->out->excess = omega - 1.0;
  }
  hone_add_multiple(t * n, -omega, at->p, v);
  if (solutions)
    correct_solutions(k == 1, n, omega, &r->h, at);
  return HONE_OK;
}

/* Also takes what deflated factors leave of vectors relative to the largest
   entry that the factors alone made of them: out->rounding becomes the bound of
   the power that leaves most. */
static void take_power(hone_probe_run *r, const double *size) {
  const hone_probing *probing = r->probing;
  const int64_t n = r->f.a->n;
  const int t = r->t;
  hone_entry *v = r->at.v;
  double sum = 0.0;
  for (int64_t c = 0; r->f.deflation != NULL && c < t; c++)
    if (size[c] > 0.0)
      sum += hone_sum_of_squares(n, v + c * n) / size[c] / size[c];
  if (sum > 0.0)
    r->out->rounding =
        fmax(r->out->rounding, hone_probe_factor_of(t, 1.0) * sqrt(sum));
  weigh(n, t, probing->weights, true, v);
  r->squares = hone_sum_of_squares(t * n, v);
}

/* How many vectors are enough to begin with? */
static int few(const hone_probe_run *r) {
  const bool accurate = r->f.engine->precision == 64;
  const bool may = r->f.a->n <= FEW_UP_TO && r->probing->weights == NULL &&
                   r->f.deflation == NULL &&
                   (accurate || r->f.engine->symmetric);
  return !may ? r->t : accurate ? FEW_DOUBLE : FEW;
}

static int apply_power_on_host(hone_probe_run *r, int k) {
  double size[HONE_PROBES_MOST + SOLUTIONS];
  const int all = r->t, first = k == 1 ? few(r) : all;
  r->t = first;
  int st = apply_to_vectors(r, k, 0, r->h.count > 0, size);
  if (st != HONE_OK)
    return st;
  take_power(r, size);
  if (first == all ||
      hone_probe_factor_of(first, 1.0) * sqrt(r->squares) <= FEW_BOUND)
    return HONE_OK;
  r->t = all;
  st = apply_to_vectors(r, k, first, false, size + first);
  if (st == HONE_OK)
    take_power(r, size);
  return st;
}

/* Brings the first vector behind the others, of which there is one less. On a
   device too it is the first one that goes. */
static void set_first_aside(int64_t n, hone_probe_run *r) {
  hone_entry *first = r->at.v, *last = first + --r->t * n;
  for (int64_t i = 0; i < n; i++) {
    const hone_entry old = first[i];
    first[i] = last[i];
    last[i] = old;
  }
}

static void narrow_on_host(hone_probe_run *r) {
  const int64_t n = r->f.a->n;
  const bool copy = r->f.use_copy;
  if (copy && r->relaxing)
    r->relaxing =
        sqrt(hone_sum_of_squares(n, r->at.v)) > HONE_PROBES_RELAXED_FROM;
  if (copy && r->relaxing)
    set_first_aside(n, r);
  else if (!copy || hone_probe_fewer_suffice(r))
    r->t = HONE_PROBES_LATER;
  const int64_t count = r->t * n;
  r->squares = hone_sum_of_squares(count, r->at.v);
  r->largest = hone_abs(r->at.v[hone_largest_at(count, r->at.v)]);
}

static int finish_on_host(hone_probe_run *r) {
  const int64_t n = r->f.a->n;
  double squares[SOLUTIONS];
  if (r->out->power > 0)
    row_norms(n, r->t, r->at.v, r->largest,
              hone_probe_factor_of(r->t, (double)n), r->out->rows);
  if (!r->probing->inverse)
    return HONE_OK;
  for (int64_t c = 0; c < SOLUTIONS; c++)
    squares[c] = hone_sum_of_squares(n, r->at.y + c * n);
  hone_probe_take_inverse(r, squares);
  r->probing->solutions = r->at.y;
  r->probing->solution = r->at.y + hone_probe_largest_of(squares) * n;
  return HONE_OK;
}

const hone_probe_place hone_probe_on_host = {apply_power_on_host,
                                             narrow_on_host, finish_on_host};
