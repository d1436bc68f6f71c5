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

   Complex g have such parts, 2 n of them. Then Re v^T g and Im v^T g are their
   products with two orthogonal vectors of length 1, whatever the complex v is,
   and together they have a density of at most 1 / 6, because a section of
   codimension 2 has a volume of at most 2 (Ball 1989). So t complex vectors say
   as much as 2 t real ones: the inequalities hold with 2 t in the place of t.

   Here B is a power of E = I - inv(M) op(S), the part of an error that a
   correction leaves, or inv(op(S)). Nothing is assumed of A but that it does
   not depend on the draw. If S is singular, with S z = 0, then E z = z: no
   power of E contracts, and the probes say so.

   E g is computed in plain double: the product with S and the solve round, and
   what that leaves of E g makes the bound larger, not smaller. But entries of E
   below eps may leave nothing of it: row bounds have that added.

   The second power is relaxed: it is E F (relaxation.h), and all that follow
   are E^(m-1) F. The solutions y are corrected likewise, so that y is
   inv(op(S)) h but for E^(m-1) F inv(op(S)) h. Not corrected, inv(M) is (I -
   E^(m-1) F) inv(op(S)) divided by I + omega E + E F + .. + E^(m-2) F. Next to
   read: probe_run.h, and condition.c, which certifies factors by these probes.
 */
#include "refine/probe_run.h"

#include "refine/condition.h"
#include "refine/relaxation.h"

#include <float.h>
#include <math.h>

/* A power is good enough if it makes every vector so much shorter. */
static const double GOOD_BOUND = 0.9;
/* Solutions are corrected if the first power leaves more than this. */
static const double UNCORRECTED_BOUND = HONE_PROBES_SMALL_FIRST;
/* Where deflation may follow, no power follows a bound above this. */
static const double HOPELESS = 1e2, HOPELESS_COPY = 3e3;

/* Two powers that divide the bound by no more than exp(STALLS) are the last. */
static const double STALLS = 0.1;

enum { SOLUTIONS = HONE_PROBE_SOLUTIONS };

/* The deflation, with as many complex vectors as real ones, uses it too. */
int64_t hone_probe_scratch(int64_t n, bool copy) {
  const int most = copy ? HONE_PROBES_MOST : HONE_PROBES;
  return (HONE_PARTS * (3 * most + 2 * SOLUTIONS) + 2) * n;
}

static hone_probe_arrays lay_out(const hone_probing *probing) {
  const int64_t n = probing->f->a->n,
                size = hone_probe_vectors(n, probing->f->use_copy) * n;
  hone_entry *v = probing->scratch, *q = v + 2 * size, *y = q + SOLUTIONS * n;
  return (hone_probe_arrays){v, v + size, q, y, y + SOLUTIONS * n};
}

void hone_probe_take_inverse(hone_probe_run *r, const double *squares) {
  const hone_probe_right_sides *h = &r->h;
  double sum = 0.0;
  for (int c = 0; c < SOLUTIONS; c++)
    sum += squares[c];
  const double left = r->out->power > 0 ? 1.0 - r->out->bound : 1.0;
  const double missing = h->count == 0 ? 1.0 + r->out->before : 1.0;
  const double size =
      hone_probe_factor_of(SOLUTIONS, 1.0) * sqrt(sum) * missing / left;
  const double bound = hone_shift(size, h->shift);
  const double mean = sqrt(sum / HONE_SOLUTIONS_MOST);
  r->probing->inverse_growth = sqrt(sum / h->first_size);
  r->probing->inverse_size = hone_shift(mean, h->shift);
  r->probing->inverse_bound = bound <= DBL_MAX ? bound : HONE_INF;
}

int hone_probe_largest_of(const double *squares) {
  int at = 0;
  for (int c = 1; c < SOLUTIONS; c++)
    at = squares[c] > squares[at] ? c : at;
  return at;
}

/* How far the bound came down by the powers behind the first one, as logarithms
   of what it was divided by. */
typedef struct descent {
  int powers;
  double all, last_two;
  double last;
} descent;

static void descend(descent *d, double by) {
  d->all += by;
  d->last_two = d->powers > 0 ? d->last + by : by;
  d->last = by;
  d->powers++;
}

/* Will the bound come down to GOOD_BOUND within the powers left, at the rate of
   the last one? A run that persists goes on at the rate of all so far, too, if
   that is more. Where two eigenvalues of E are about as large, every other
   power takes hardly anything, and the second one, where it is relaxed, takes
   more than any later one. E may also be far from normal, so that the second
   power need only take something. But two powers that took nothing are the
   last. */
static bool promises(double bound, const descent *d, int left, bool persists) {
  const double need = log(bound / GOOD_BOUND);
  if (!(bound <= DBL_MAX) || d->powers == 0)
    return bound <= DBL_MAX; /* the first step says nothing of the rate */
  if (!persists)
    return need <= (double)left * d->last;
  if (d->powers == 1)
    return d->all > 0.0;
  return d->last_two > STALLS &&
         need <= (double)left * fmax(d->last, d->all / d->powers);
}

static hone_probe_run begin(hone_probing *probing, hone_contraction *out) {
  const int64_t n = probing->f->a->n;
  const int t = hone_probe_vectors(n, probing->f->use_copy);
  hone_probe_run r = {.probing = probing,
                      .out = out,
                      .f = *probing->f,
                      .at = lay_out(probing),
                      .rounding_seed = ~probing->seed, /* another sequence */
                      .seed = probing->seed,
                      .t = t,
                      .largest = sqrt(3.0 * HONE_PARTS)};
  r.step = (hone_probe_step){.scaling = r.f.scaling,
                             .trans = probing->trans,
                             .vectors = t,
                             .seed = probing->seed,
                             .beside = probing->beside,
                             .row_squares = (double *)r.at.p};
  probing->seed += (uint64_t)(HONE_PARTS * t * n) * HONE_RANDOM_STEP;
  r.h.seed = r.step.solutions_seed = hone_random_bits(&probing->seed);
  r.h.count = probing->inverse ? SOLUTIONS : 0;
  probing->estimated = false;
  probing->solutions = NULL;
  *out = (hone_contraction){true, .bound = HONE_INF, .rows = out->rows};
  return r;
}

static int probe_at(const hone_probe_place *where, hone_probing *probing,
                    int steps, hone_contraction *out) {
  double before = HONE_INF;
  descent d = {0};
  hone_probe_run r = begin(probing, out);
  r.f.rounding_seed = &r.rounding_seed;
  for (int k = 1;; k++) {
    int st = where->apply_power(&r, k);
    if (st != HONE_OK)
      return st;
    if (r.relaxing) {
      out->before = hone_relaxation_norm(hone_relaxation_of(out), out->before);
      r.largest *= hone_relaxation_most(out);
    }
    out->bound = hone_probe_factor_of(r.t, 1.0) * sqrt(r.squares);
    if (out->bound <= GOOD_BOUND) {
      out->power = k;
      break;
    }
    probing->cut_short = k == 1 && probing->deflation_follows &&
                         out->bound > (r.f.use_copy ? HOPELESS_COPY : HOPELESS);
    if (k > 1)
      descend(&d, log(before / out->bound));
    if (k >= steps || probing->cut_short ||
        !promises(out->bound, &d, steps - k, probing->persists))
      break;
    out->before += out->bound;
    if (k == 1 && out->bound <= UNCORRECTED_BOUND)
      r.h.count = 0;
    r.relaxing = k == 1 && r.f.deflation == NULL;
    where->narrow(&r);
    r.earlier = out->bound;
    before = hone_probe_factor_of(r.t, 1.0) * sqrt(r.squares); /* by these */
  }
  return where->finish(&r);
}

/* Does the engine make the steps, with its copy of A? */
static bool engine_probes(const hone_probing *probing) {
  const hone_factored *f = probing->f;
  return f->use_copy && f->engine->probe_step != NULL && f->space == NULL &&
         f->deflation == NULL && probing->weights == NULL;
}

void hone_probe_expect(const hone_probing *probing) {
  const hone_factored *f = probing->f;
  hone_probing copy = *probing;
  hone_contraction none = {.rows = NULL};
  hone_probe_run r = begin(&copy, &none);
  r.step.first = true;
  r.step.solutions = r.h.count;
  if (engine_probes(probing) && f->engine->expect_probes != NULL)
    f->engine->expect_probes(f->self, f->a, &r.step);
}

int hone_probe(hone_probing *probing, int steps, hone_contraction *out) {
  const uint64_t seed = probing->seed;
  if (engine_probes(probing) &&
      probe_at(&hone_probe_on_device, probing, steps, out) == HONE_OK)
    return HONE_OK;
  probing->seed = seed;
  return probe_at(&hone_probe_on_host, probing, steps, out);
}
