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
/* Solutions are corrected if the first power leaves more than this. */
static const double UNCORRECTED_BOUND = 4.0;
/* Sums of squares of solutions that a device keeps as they are. */
static const double LEAST_SQUARES = 1e-200, MOST_SQUARES = 1e200;
/* The first power of E is applied to HONE_PROBES vectors, so that it suffices
   for most factors. The next ones are so much smaller that fewer vectors are
   enough. Where a device has A more vectors take little more time: there the
   first power is applied to HONE_PROBES_DEVICE vectors, and so are the next
   ones unless the bound by fewer will certainly do: the first power has a bound
   of at most SMALL_FIRST (those up to 8 were followed by 0.03 or less, H200, n
   to 16384), or a later one goes on falling as it did to at most SMALL_NEXT.

   Up to order FEW_UP_TO, where a pass over A costs no more than a few solves,
   the first power is applied to a few vectors first. Their bound is by a factor
   of 11, or of 1e5 for factors in double, less sharp; it suffices where it is
   at most FEW_BOUND, since what it adds to an error bar is then small beside
   the correction that is known. Otherwise the other vectors follow, and the
   statement is made anew of all of them. LU in single precision seldom has so
   small a bound: matrices with random entries have a condition of about n. */
enum {
  SOLUTIONS = HONE_PROBE_SOLUTIONS,
  LATER_PROBES = 8 / HONE_PARTS,
  /* An estimate is one column more, and a solve is for groups of two or four.
   */
  LATER_PROBES_DEVICE = HONE_PARTS == 1 ? 7 : LATER_PROBES,
  FEW = 6 / HONE_PARTS,
  FEW_DOUBLE = 2 / HONE_PARTS,
  FEW_UP_TO = 512
};
static const double FEW_BOUND = 0x1p-6;
static const double SMALL_FIRST = 10.0, SMALL_NEXT = 0.0625;
/* Where deflation may follow, no power follows a bound above this. */
static const double HOPELESS = 1e2, HOPELESS_COPY = 1e3;

/* The deflation, with as many complex vectors as real ones, uses it too. */
int64_t hone_probe_scratch(int64_t n, bool copy) {
  return (HONE_PARTS * (3 * hone_probe_vectors(copy) + 2 * SOLUTIONS) + 2) * n;
}

/* The vectors of a run, n entries each: as many as it begins with in v and p,
   SOLUTIONS in q and y. q follows the vectors of p that are in use: one solve
   serves both. */
typedef struct vectors {
  hone_entry *v;    /* E^k g */
  hone_entry *p;    /* op(S) v, then inv(M) op(S) v */
  hone_entry *q;    /* h - op(S) y, then the correction of y */
  hone_entry *y;    /* solutions of op(S) y = h */
  hone_entry *work; /* scaled copies, and 2 n more */
} vectors;

static vectors lay_out(const hone_probing *probing) {
  const int64_t n = probing->f->a->n,
                size = hone_probe_vectors(probing->f->use_copy) * n;
  hone_entry *v = probing->scratch, *q = v + 2 * size, *y = q + SOLUTIONS * n;
  return (vectors){v, v + size, q, y, y + SOLUTIONS * n};
}

/* How wrong the root of the sum of squares of t differences of numbers of at
   most 'largest' may be through their rounding. */
static double rounding_of_rows(int t, double largest) {
  return sqrt((double)t) * HONE_EPS * largest;
}

/* rows_i = factor sqrt(sum_k |v_ik|^2), where v_ik, a difference of numbers of
   at most 'largest', was rounded. */
HONE_VECTOR static void row_norms(int64_t n, int t,
                                  const hone_entry *restrict v, double largest,
                                  double factor, double *restrict rows) {
  const double rounding = rounding_of_rows(t, largest);
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

/* Those h, times 2^-shift: drawn anew for every residual, and not kept. */
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

/* A run. The vectors are on the host or, with hone_probe_step, on a device. */
typedef struct run {
  hone_probing *probing;
  hone_contraction *out;
  hone_factored f;
  vectors at;
  right_sides h;
  uint64_t rounding_seed;
  uint64_t seed; /* of the vectors that are not drawn yet */
  hone_probe_step step;
  int t;          /* vectors in use */
  double earlier; /* the bound of the power before the last one; 0: none */
  double squares; /* the sum of their squares */
  double largest; /* their largest entry before the last power */
} run;

/* Where the vectors of a run are. */
typedef struct place {
  /* Makes v = E v for power number k, and corrects the solutions that are still
     needed. */
  int (*apply_power)(run *r, int k);
  /* Goes on with fewer vectors, if they will do. */
  void (*narrow)(run *r);
  /* Takes the rows of the last power, and the solutions. */
  int (*finish)(run *r);
} place;

/* Takes what the solutions show of inv(op(S)); squares: of each of them. */
static void take_inverse(run *r, const double *squares) {
  const right_sides *h = &r->h;
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

/* Will fewer vectors do, where a device has A? */
static bool fewer_suffice(const run *r) {
  const double bound = r->out->bound, earlier = r->earlier;
  return earlier > 0.0 ? bound * (bound / earlier) <= SMALL_NEXT
                       : bound <= SMALL_FIRST;
}

static int largest_of(const double *squares) {
  int at = 0;
  for (int c = 1; c < SOLUTIONS; c++)
    at = squares[c] > squares[at] ? c : at;
  return at;
}

/* ---- Vectors on the host ------------------------------------------------- */

/* Makes v = E v for the vectors 'from' to t - 1; before power number 1, draws
   them. With 'solutions', corrects those too. size: as of hone_apply_inverse.
 */
static int apply_to_vectors(run *r, int k, int from, bool solutions,
                            double *size) {
  hone_probing *probing = r->probing;
  const hone_factored *f = &r->f;
  const int64_t n = f->a->n;
  const int t = r->t - from;
  vectors *at = &r->at;
  hone_entry *v = at->v + from * n;
  if (k == 1)
    draw_all(n, t, &r->seed, v);
  weigh(n, t, probing->weights, false, v);
  at->q = at->p + t * n;
  probing->passes += hone_multiply(f, probing->trans, t, v, at->p, at->work);
  if (solutions)
    residual_of_solutions(probing, k == 1, &r->h, at);
  int st = hone_apply_inverse(f, true, probing->trans,
                              t + (solutions ? r->h.count : 0), at->p, n, NULL,
                              size);
  if (st != HONE_OK)
    return st;
  hone_add_multiple(t * n, -1.0, at->p, v);
  if (solutions)
    correct_solutions(k == 1, n, &r->h, at);
  return HONE_OK;
}

/* Also takes what deflated factors leave of vectors relative to the largest
   entry that the factors alone made of them: out->rounding becomes the bound of
   the power that leaves most. */
static void take_power(run *r, const double *size) {
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
static int few(const run *r) {
  const bool accurate = r->f.engine->precision == 64;
  const bool may = r->f.a->n <= FEW_UP_TO && r->probing->weights == NULL &&
                   r->f.deflation == NULL &&
                   (accurate || r->f.engine->symmetric);
  return !may ? r->t : accurate ? FEW_DOUBLE : FEW;
}

static int apply_power_on_host(run *r, int k) {
  double size[HONE_PROBES_DEVICE + SOLUTIONS];
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

static void narrow_on_host(run *r) {
  if (!r->f.use_copy || fewer_suffice(r))
    r->t = LATER_PROBES;
  const int64_t count = r->t * r->f.a->n;
  r->squares = hone_sum_of_squares(count, r->at.v);
  r->largest = hone_abs(r->at.v[hone_largest_at(count, r->at.v)]);
}

static int finish_on_host(run *r) {
  const int64_t n = r->f.a->n;
  double squares[SOLUTIONS];
  if (r->out->power > 0)
    row_norms(n, r->t, r->at.v, r->largest,
              hone_probe_factor_of(r->t, (double)n), r->out->rows);
  if (!r->probing->inverse)
    return HONE_OK;
  for (int64_t c = 0; c < SOLUTIONS; c++)
    squares[c] = hone_sum_of_squares(n, r->at.y + c * n);
  take_inverse(r, squares);
  r->probing->solutions = r->at.y;
  r->probing->solution = r->at.y + largest_of(squares) * n;
  return HONE_OK;
}

static const place on_host = {apply_power_on_host, narrow_on_host,
                              finish_on_host};

/* ---- Vectors on a device ------------------------------------------------- */

static int apply_power_on_device(run *r, int k) {
  hone_probe_step *s = &r->step;
  s->first = k == 1;
  s->solutions = r->h.count;
  s->estimates = r->probing->inverse && k == 2;
  int st = r->f.engine->probe_step(r->f.self, r->f.a, s);
  if (st != HONE_OK)
    return st;
  r->probing->passes += 1;
  r->squares = s->squares;
  if (s->first)
    s->from = largest_of(s->solution_squares);
  r->probing->estimated = r->probing->estimated || s->estimates;
  r->probing->inverse_norm = s->inverse_norm;
  if (s->first && s->solutions > 0) {
    for (int c = 0; c < SOLUTIONS; c++)
      r->h.first_size += s->solution_squares[c];
    if (!(r->h.first_size >= LEAST_SQUARES) ||
        !(r->h.first_size <= MOST_SQUARES))
      return HONE_OVERFLOW; /* on the host they are brought near 1 */
  }
  return HONE_OK;
}

static void narrow_on_device(run *r) {
  r->largest = r->step.largest;
  if (!fewer_suffice(r) || r->t == LATER_PROBES_DEVICE)
    return;
  r->step.dropped = r->t - LATER_PROBES_DEVICE;
  r->t = LATER_PROBES_DEVICE;
  r->squares *= (double)LATER_PROBES_DEVICE / HONE_PROBES_DEVICE; /* about */
}

/* The host needs the largest solution where something begins from it: another
   estimate, or a search for a null vector. */
static int finish_on_device(run *r) {
  const int64_t n = r->f.a->n;
  hone_probing *p = r->probing;
  const bool shown = r->out->power > 0;
  const bool needed = p->inverse && (!shown || r->f.scaling->used);
  const double factor = hone_probe_factor_of(r->t, (double)n);
  const double rounding = rounding_of_rows(r->t, r->largest);
  const int largest = largest_of(r->step.solution_squares);
  const hone_probed wanted = {
      .solution = needed ? largest : -1,
      .solution_to = r->at.y,
      .inverse_norm = p->inverse && !p->estimated ? &p->inverse_norm : NULL,
      .from = largest};
  int st = r->f.engine->probed(r->f.self, &r->step, &wanted);
  if (st != HONE_OK)
    return st;
  for (int64_t i = 0; shown && i < n; i++)
    r->out->rows[i] = factor * (sqrt(r->step.row_squares[i]) + rounding);
  p->estimated = p->inverse;
  p->solution = needed ? r->at.y : NULL;
  if (p->inverse)
    take_inverse(r, r->step.solution_squares);
  if (needed) /* stands for the first random vector, where a search begins */
    memcpy(r->at.v, r->at.y, (size_t)n * sizeof *r->at.v);
  return HONE_OK;
}

static const place on_device = {apply_power_on_device, narrow_on_device,
                                finish_on_device};

/* ---- A run --------------------------------------------------------------- */

/* Will the bound come down to GOOD_BOUND within the steps left, at the rate of
   the last step? */
static bool promises(double bound, double before, int left) {
  if (!(bound <= DBL_MAX) || !(before <= DBL_MAX))
    return bound <= DBL_MAX; /* the first step says nothing of the rate */
  return bound < before &&
         log(bound / GOOD_BOUND) <= (double)left * log(before / bound);
}

static run begin(hone_probing *probing, hone_contraction *out) {
  const int64_t n = probing->f->a->n;
  const int t = hone_probe_vectors(probing->f->use_copy);
  run r = {.probing = probing,
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

static int probe_at(const place *where, hone_probing *probing, int steps,
                    hone_contraction *out) {
  double before = HONE_INF;
  run r = begin(probing, out);
  r.f.rounding_seed = &r.rounding_seed;
  for (int k = 1;; k++) {
    int st = where->apply_power(&r, k);
    if (st != HONE_OK)
      return st;
    out->bound = hone_probe_factor_of(r.t, 1.0) * sqrt(r.squares);
    if (out->bound <= GOOD_BOUND) {
      out->power = k;
      break;
    }
    probing->cut_short = k == 1 && probing->deflation_follows &&
                         out->bound > (r.f.use_copy ? HOPELESS_COPY : HOPELESS);
    if (k >= steps || probing->cut_short ||
        !promises(out->bound, before, steps - k))
      break;
    out->before += out->bound;
    if (k == 1 && out->bound <= UNCORRECTED_BOUND)
      r.h.count = 0;
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
  run r = begin(&copy, &none);
  r.step.first = true;
  r.step.solutions = r.h.count;
  if (engine_probes(probing) && f->engine->expect_probes != NULL)
    f->engine->expect_probes(f->self, f->a, &r.step);
}

int hone_probe(hone_probing *probing, int steps, hone_contraction *out) {
  const uint64_t seed = probing->seed;
  if (engine_probes(probing) &&
      probe_at(&on_device, probing, steps, out) == HONE_OK)
    return HONE_OK;
  probing->seed = seed;
  return probe_at(&on_host, probing, steps, out);
}
