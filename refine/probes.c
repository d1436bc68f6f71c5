/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes (Dixon 1983; Gudmundsson, Kenney & Laub 1995), in double
   precision. Let g have independent entries, uniform in [-sqrt 3, sqrt 3]. For
   every fixed vector v of length 1 the density of v^T g is at most 1 / sqrt 6,
   because a section of the unit cube has a volume of at most sqrt 2 (Ball
   1986). So for t independent g

     P( sum_k (v^T g_k)^2 <= s )  <=  6^(-t/2) V_t s^(t/2),

   V_t being the volume of the unit ball in t dimensions. With the s for which
   the right-hand side is p, theta = 1 / sqrt(s) gives, except with probability
   p and whatever B is,

     ||B||_2            <=  theta sqrt(sum_k ||B g_k||_2^2)
     ||e_i^T B||_2      <=  theta sqrt(sum_k (B g_k)_i^2)      for one row i

   Here B is a power of E = I - inv(M) op(S), the part of an error that a
   correction leaves, or inv(op(S)). Nothing is assumed of A but that it does
   not depend on the draw. If S is singular, with S z = 0, then E z = z: no
   power of E contracts, and the probes say so.

   E g is computed in plain double: the product with S and the solve round, and
   what that leaves of E g makes the bound larger, not smaller. But entries of E
   below eps may leave nothing of it: row bounds have that added. Next to read:
   condition.c, which certifies factors by these probes. */
#include "refine/probes.h"

#include "base/vectors.h"
#include "refine/condition.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A power is good enough if it makes every vector so much shorter. */
static const double GOOD_BOUND = 0.9;
/* Where deflation may follow, a first bound above this is not waited for. */
static const double HOPELESS_BOUND = 100.0;
/* If powers up to the last but one leave more than this, the solutions for
   random right-hand sides are corrected; otherwise the bound allows for it. */
static const double UNCORRECTED_BOUND = 4.0;
/* The right-hand sides for which inv(op(S)) h is solved. Its bound may be
   rough: it bounds the effect of rounding errors of residuals in double-double.
 */
enum { SOLUTIONS = 4 };
/* The first power of E is applied to HONE_PROBES vectors, so that it suffices
   for most factors. The next ones are so much smaller that fewer vectors are
   enough. On a device all powers are applied to HONE_PROBES_MOST vectors. */
enum { LATER_PROBES = 8 };

int64_t hone_probe_scratch(int64_t n) {
  return (3 * HONE_PROBES_MOST + 2 + 2 * SOLUTIONS) * n;
}

/* hone_probe_factor for t vectors, t being even. The volume of the unit ball
   is pi^(t/2) / (t/2)!. */
static double factor_of(int t, double count) {
  double power = HONE_PROBE_FAILURE / count;
  for (int i = 1; i <= t / 2; i++)
    power *= 6.0 * (double)i / 3.141592653589793;
  return pow(power, -1.0 / t); /* 1 / sqrt(s), power = s^(t/2) */
}

double hone_probe_factor(double count) { return factor_of(HONE_PROBES, count); }

void hone_probe_draw(int64_t n, uint64_t *seed, hone_entry *v) {
  const double unit = 3.4641016151377544 * 0x1p-53; /* sqrt 12 */
  for (int64_t i = 0; i < n; i++)
    v[i] = ((double)(hone_random_bits(seed) >> 11) - 0x1p52) * unit;
}

/* The vectors of a run, n entries each: HONE_PROBES_MOST in v and p, SOLUTIONS
   in q and y. q follows the vectors of p that are in use, so that one solve
   serves both. */
typedef struct vectors {
  hone_entry *v;    /* E^k g */
  hone_entry *p;    /* op(S) v, then inv(M) op(S) v */
  hone_entry *q;    /* h - op(S) y, then the correction of y */
  hone_entry *y;    /* solutions of op(S) y = h */
  hone_entry *work; /* scaled copies, and 2 n more */
} vectors;

static vectors lay_out(const hone_probing *probing) {
  const int64_t n = probing->f->a->n, size = HONE_PROBES_MOST * n;
  hone_entry *v = probing->scratch, *q = v + 2 * size, *y = q + SOLUTIONS * n;
  return (vectors){v, v + size, q, y, y + SOLUTIONS * n};
}

/* rows_i = factor sqrt(sum_k |v_ik|^2), where v_ik, a difference of numbers of
   at most 'largest', was rounded. */
HONE_VECTOR static void row_norms(int64_t n, int t,
                                  const hone_entry *restrict v, double largest,
                                  double factor, double *restrict rows) {
  const double rounding = sqrt((double)t) * HONE_EPS * largest;
  for (int64_t i = 0; i < n; i++)
    rows[i] = 0.0;
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

/* The right-hand sides h for which inv(op(S)) h is solved, times 2^-shift: they
   are drawn anew for every residual instead of being kept. */
typedef struct right_sides {
  uint64_t seed;
  int shift;
  double first_size; /* the size of the solutions by the factors alone */
  int count;         /* to solve for; 0 when they are good enough */
} right_sides;

/* q = h - op(S) y, or h before there is a y. */
static void residual_of_solutions(hone_probing *probing, bool first,
                                  const right_sides *h, const vectors *at) {
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

/* y = y + q. The first solutions are brought near 1, and h with them, so that
   products with S stay in range. */
static void correct_solutions(bool first, int64_t n, right_sides *h,
                              const vectors *at) {
  const int64_t count = h->count * n;
  if (!first) {
    hone_add_multiple(count, 1.0, at->q, at->y);
    return;
  }
  const double size = hone_abs(at->q[hone_largest_at(count, at->q)]);
  if (size > 0.0 && size <= DBL_MAX)
    h->shift = ilogb(size);
  hone_scale_by(count, NULL, 1, -h->shift, at->q, at->y);
  h->first_size = hone_sum_of_squares(count, at->y);
}

/* Takes what the solutions show of inv(op(S)). */
static void take_inverse(hone_probing *probing, const right_sides *h,
                         const hone_contraction *out, const vectors *at) {
  const int64_t n = probing->f->a->n;
  double sum = 0.0, largest = -1.0;
  probing->solution = at->y;
  for (int64_t c = 0; c < SOLUTIONS; c++) {
    const double size = hone_sum_of_squares(n, at->y + c * n);
    sum += size;
    if (size > largest) {
      largest = size;
      probing->solution = at->y + c * n;
    }
  }
  const double left = out->power > 0 ? 1.0 - out->bound : 1.0;
  const double missing = h->count == 0 ? 1.0 + out->before : 1.0;
  probing->inverse_growth = sqrt(sum / h->first_size);
  probing->inverse_bound = hone_shift(
      factor_of(SOLUTIONS, 1.0) * sqrt(sum) * missing / left, h->shift);
  if (!(probing->inverse_bound <= DBL_MAX))
    probing->inverse_bound = HONE_INF;
}

/* Will the bound come down to GOOD_BOUND within the steps left, at the rate of
   the last step? */
static bool promises(double bound, double before, int left) {
  if (!(bound <= DBL_MAX))
    return false;
  if (!(before <= DBL_MAX)) /* the first step says nothing of the rate */
    return true;
  return bound < before &&
         log(bound / GOOD_BOUND) <= (double)left * log(before / bound);
}

/* v_c = E v_c for t vectors, power number k, by the factors f; also corrects
   the solutions that h still needs. Takes what deflated factors leave of
   vectors relative to the largest entry that the factors alone made of them:
   out->rounding becomes the bound of the power that leaves most. */
static int apply_power(hone_probing *probing, const hone_factored *f, int k,
                       int t, right_sides *h, const vectors *at,
                       hone_contraction *out) {
  const int64_t n = f->a->n;
  double size[HONE_PROBES_MOST + SOLUTIONS], sum = 0.0;
  if (h->count > 0)
    residual_of_solutions(probing, k == 1, h, at);
  int st = hone_precondition(f, probing->trans, t, t + h->count, at->v, at->p,
                             at->work, size, &probing->passes);
  if (st != HONE_OK)
    return st;
  hone_add_multiple(t * n, -1.0, at->p, at->v);
  if (h->count > 0)
    correct_solutions(k == 1, n, h, at);
  for (int64_t c = 0; f->deflation != NULL && c < t; c++)
    if (size[c] > 0.0)
      sum += hone_sum_of_squares(n, at->v + c * n) / size[c] / size[c];
  out->rounding = fmax(out->rounding, factor_of(t, 1.0) * sqrt(sum));
  return HONE_OK;
}

int hone_probe(hone_probing *probing, int steps, hone_contraction *out) {
  const int64_t n = probing->f->a->n;
  uint64_t rounding_seed = ~probing->seed; /* another sequence than that of g */
  hone_factored f = *probing->f;
  vectors at = lay_out(probing);
  double before = HONE_INF, largest = sqrt(3.0); /* of v before a power */
  const bool on_device = hone_preconditions_on_device(&f);
  const int later = on_device ? HONE_PROBES_MOST : LATER_PROBES;
  int t = on_device ? HONE_PROBES_MOST : HONE_PROBES;
  out->tried = true;
  out->power = 0;
  out->before = out->rounding = 0.0;
  f.rounding_seed = &rounding_seed;
  draw_all(n, t, &probing->seed, at.v);
  weigh(n, t, probing->weights, false, at.v);
  right_sides h = {.seed = hone_random_bits(&probing->seed),
                   .count = probing->inverse ? SOLUTIONS : 0};
  for (int k = 1;; k++) {
    at.q = at.p + t * n;
    int st = apply_power(probing, &f, k, t, &h, &at, out);
    if (st != HONE_OK)
      return st;
    weigh(n, t, probing->weights, true, at.v);
    out->bound = factor_of(t, 1.0) * sqrt(hone_sum_of_squares(t * n, at.v));
    if (out->bound <= GOOD_BOUND) {
      out->power = k;
      break;
    }
    const bool rather_deflate =
        k == 1 && probing->deflation_follows && out->bound > HOPELESS_BOUND;
    if (k >= steps || rather_deflate ||
        !promises(out->bound, before, steps - k))
      break;
    out->before += out->bound;
    if (k == 1 && out->bound <= UNCORRECTED_BOUND)
      h.count = 0;
    t = later;
    /* Is estimated by as many vectors as the next bound. */
    before = factor_of(t, 1.0) * sqrt(hone_sum_of_squares(t * n, at.v));
    largest = hone_abs(at.v[hone_largest_at(t * n, at.v)]);
    weigh(n, t, probing->weights, false, at.v);
  }
  if (out->power > 0)
    row_norms(n, t, at.v, largest, factor_of(t, (double)n), out->rows);
  if (probing->inverse)
    take_inverse(probing, &h, out, &at);
  return HONE_OK;
}
