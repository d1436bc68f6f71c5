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

/* A power is good enough if it halves every vector. */
static const double GOOD_BOUND = 0.5;
/* A vector shorter than this part of a good bound needs no pair. */
static const double NEGLIGIBLE_PART = 0.1;
enum {
  POWERS_WITH_PAIRS = 8, /* of E, at most */
  PAIRS_OF_A_ROUND = 3,
  MAGNIFYING_POWERS = 2,   /* of E, between the first pairs and the second */
  SOLUTIONS_WITH_PAIRS = 3 /* random right-hand sides, as applying the factors
                              together with pairs costs more */
};
/* Where pairs can be made, a first bound above this is not waited for. */
static const double HOPELESS_BOUND = 20.0;
/* Volumes of the unit balls in 8 = HONE_PROBES and in 3 dimensions: pi^4 / 24
   and 4 pi / 3. */
static const double BALL_8 = 4.058712126416768, BALL_3 = 4.1887902047863905;

int64_t hone_probe_scratch(int64_t n) { return (5 * HONE_PROBES + 2) * n; }

/* hone_probe_factor for t = HONE_PROBES or SOLUTIONS_WITH_PAIRS vectors. */
static double factor_of(int t, double count) {
  const double volume = t == HONE_PROBES ? BALL_8 : BALL_3;
  const double power = HONE_PROBE_FAILURE / count * pow(6.0, 0.5 * t) / volume;
  return pow(power, -1.0 / t); /* 1 / sqrt(s), power = s^(t/2) */
}

double hone_probe_factor(double count) { return factor_of(HONE_PROBES, count); }

void hone_probe_draw(int64_t n, uint64_t *seed, hone_entry *v) {
  const double unit = 3.4641016151377544 * 0x1p-53; /* sqrt 12 */
  for (int64_t i = 0; i < n; i++)
    v[i] = ((double)(hone_random_bits(seed) >> 11) - 0x1p52) * unit;
}

/* The vectors of a run: HONE_PROBES columns of n entries each. p and q stand
   side by side, so that one solve serves both; so do v and y. */
typedef struct vectors {
  hone_entry *v;    /* E^k g */
  hone_entry *y;    /* solutions of op(S) y = h */
  hone_entry *p;    /* op(S) v, then inv(M) op(S) v */
  hone_entry *q;    /* h - op(S) y, then the correction of y */
  hone_entry *work; /* scaled copies, and 2 n more */
} vectors;

static vectors lay_out(const hone_probing *probing) {
  const int64_t size = HONE_PROBES * probing->f->a->n;
  hone_entry *s = probing->scratch;
  return (vectors){s, s + size, s + 2 * size, s + 3 * size, s + 4 * size};
}

/* p_c = op(A) x_c for k columns on the engine's copy of A. work: 2 n. Returns
   false if the engine fails. */
static bool multiply_on_device(const hone_factored *f, bool trans, int64_t k,
                               const hone_entry *x, hone_entry *p,
                               hone_entry *work) {
  const int64_t n = f->a->n;
  hone_entry *zero = work;
  double *den = (double *)(work + n);
  memset(zero, 0, (size_t)n * sizeof *zero);
  for (int64_t c = 0; c < k; c++) {
    if (f->engine->residual(f->self, f->a, trans, x + c * n, zero, p + c * n,
                            den) != HONE_OK)
      return false;
    for (int64_t i = 0; i < n; i++)
      p[c * n + i] = -p[c * n + i];
  }
  return true;
}

/* p_c = op(S) v_c for k <= HONE_PROBES columns; work: (HONE_PROBES + 2) n.
   Returns the number of passes over A: a device makes one for each column. */
static int multiply(const hone_factored *f, bool trans, int64_t k,
                    const hone_entry *v, hone_entry *p, hone_entry *work) {
  int passes = (int)k;
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  const int *in = trans ? s->row_exp : s->col_exp;
  const int *out = trans ? s->col_exp : s->row_exp;
  if (s->used) {
    for (int64_t c = 0; c < k; c++)
      hone_scale_by(n, in, 1, 0, v + c * n, work + c * n);
    v = work;
  }
  if (!f->use_copy ||
      !multiply_on_device(f, trans, k, v, p, work + HONE_PROBES * n)) {
    f->a->op->product(f->a, f->pool, trans, k, v, p);
    passes = 1;
  }
  for (int64_t c = 0; s->used && c < k; c++)
    hone_scale_by(n, out, 1, 0, p + c * n, p + c * n);
  return passes;
}

HONE_VECTOR static double sum_of_squares(int64_t n, const hone_entry *v) {
  double s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += hone_real(hone_conj(v[i]) * v[i]);
  return s;
}

/* rows_i = factor sqrt(sum_k |v_ik|^2), where v_ik, a difference of numbers of
   at most sqrt 3, was rounded. */
HONE_VECTOR static void row_norms(int64_t n, const hone_entry *restrict v,
                                  double factor, double *restrict rows) {
  const double rounding = sqrt(3.0 * HONE_PROBES) * HONE_EPS;
  for (int64_t i = 0; i < n; i++)
    rows[i] = 0.0;
  for (int64_t c = 0; c < HONE_PROBES; c++)
    for (int64_t i = 0; i < n; i++)
      rows[i] += hone_real(hone_conj(v[c * n + i]) * v[c * n + i]);
  for (int64_t i = 0; i < n; i++)
    rows[i] = factor * (sqrt(rows[i]) + rounding);
}

HONE_VECTOR static hone_entry dot(int64_t n, const hone_entry *restrict a,
                                  const hone_entry *restrict b) {
  hone_entry s = 0.0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += hone_conj(a[i]) * b[i];
  return s;
}

/* v = v + by d */
HONE_VECTOR static void add(int64_t count, hone_entry by,
                            const hone_entry *restrict d,
                            hone_entry *restrict v) {
  for (int64_t i = 0; i < count; i++)
    v[i] += by * d[i];
}

/* v_c = W v_c for all c, or inv(W) v_c. */
static void weigh(int64_t n, const double *weights, bool inverse,
                  hone_entry *v) {
  for (int64_t c = 0; weights != NULL && c < HONE_PROBES; c++)
    for (int64_t i = 0; i < n; i++)
      v[c * n + i] =
          hone_times(inverse ? 1.0 / weights[i] : weights[i], v[c * n + i]);
}

static void draw_all(int64_t n, uint64_t *seed, hone_entry *v) {
  for (int64_t c = 0; c < HONE_PROBES; c++)
    hone_probe_draw(n, seed, v + c * n);
}

/* The right-hand sides h for which inv(op(S)) h is solved, times 2^-shift: they
   are drawn anew for every residual instead of being kept. */
typedef struct right_sides {
  uint64_t seed;
  int shift;
  double first_size; /* the size of the solutions by the factors alone */
  int count;
} right_sides;

/* q = h - op(S) y, or h before there is a y. */
static void residual_of_solutions(hone_probing *probing, bool first,
                                  const right_sides *h, const vectors *at) {
  const int64_t n = probing->f->a->n;
  if (!first)
    probing->passes +=
        multiply(probing->f, probing->trans, h->count, at->y, at->q, at->work);
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
    add(count, 1.0, at->q, at->y);
    return;
  }
  const double size = hone_abs(at->q[hone_largest_at(count, at->q)]);
  if (size > 0.0 && size <= DBL_MAX)
    h->shift = ilogb(size);
  hone_scale_by(count, NULL, 1, -h->shift, at->q, at->y);
  h->first_size = sum_of_squares(count, at->y);
}

/* Takes what the solutions show of inv(op(S)). */
static void take_inverse(hone_probing *probing, const right_sides *h,
                         const hone_contraction *out, const vectors *at) {
  const int64_t n = probing->f->a->n;
  double sum = 0.0, largest = -1.0;
  probing->solution = at->y;
  for (int64_t c = 0; c < h->count; c++) {
    const double size = sum_of_squares(n, at->y + c * n);
    sum += size;
    if (size > largest) {
      largest = size;
      probing->solution = at->y + c * n;
    }
  }
  const double left = out->power > 0 ? 1.0 - out->bound : 1.0;
  probing->inverse_growth = sqrt(sum / h->first_size);
  probing->inverse_bound =
      hone_shift(factor_of(h->count, 1.0) * sqrt(sum) / left, h->shift);
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

int hone_probe(hone_probing *probing, int steps, hone_contraction *out) {
  const hone_factored *f = probing->f;
  const int64_t n = f->a->n, count = HONE_PROBES * n;
  const vectors at = lay_out(probing);
  const double factor = hone_probe_factor(1.0);
  double before = HONE_INF;
  out->tried = true;
  out->power = out->pairs = 0;
  out->before = 0.0;
  draw_all(n, &probing->seed, at.v);
  weigh(n, probing->weights, false, at.v);
  right_sides h = {.seed = hone_random_bits(&probing->seed),
                   .count = !probing->inverse ? 0
                            : f->space        ? SOLUTIONS_WITH_PAIRS
                                              : HONE_PROBES};
  for (int k = 1;; k++) {
    probing->passes +=
        multiply(f, probing->trans, HONE_PROBES, at.v, at.p, at.work);
    if (probing->inverse)
      residual_of_solutions(probing, k == 1, &h, &at);
    int st = hone_apply_inverse(f, true, probing->trans, HONE_PROBES + h.count,
                                at.p, n, NULL, NULL);
    if (st != HONE_OK)
      return st;
    add(count, -1.0, at.p, at.v);
    if (probing->inverse)
      correct_solutions(k == 1, n, &h, &at);
    weigh(n, probing->weights, true, at.v);
    out->bound = factor * sqrt(sum_of_squares(count, at.v));
    if (out->bound <= GOOD_BOUND) {
      out->power = k;
      break;
    }
    const bool rather_pairs = k == 1 && probing->pairs_follow &&
                              f->space == NULL && out->bound > HOPELESS_BOUND;
    if (k >= steps || rather_pairs || !promises(out->bound, before, steps - k))
      break;
    out->before += out->bound;
    before = out->bound;
    weigh(n, probing->weights, false, at.v);
  }
  if (out->power > 0)
    row_norms(n, at.v, hone_probe_factor((double)n), out->rows);
  if (probing->inverse)
    take_inverse(probing, &h, out, &at);
  return HONE_OK;
}

/* p_c = op(S) v_c in double-double, rounded once, for k columns; the contents
   of q are lost. (The error of plain double would be magnified by inv(S) where
   v is nearly a null vector.) */
static void multiply_accurately(const hone_factored *f, bool trans, int64_t k,
                                const hone_entry *v, hone_entry *p,
                                const vectors *at) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  hone_entry *x = at->work, *zero = x + n;
  memset(zero, 0, (size_t)n * sizeof *zero);
  for (int64_t c = 0; c < k; c++) {
    for (int64_t i = 0; i < n; i++)
      x[i] = -v[c * n + i];
    if (s->used)
      hone_scale_by(n, trans ? s->row_exp : s->col_exp, 1, 0, x, x);
    hone_residual(f, trans, x, zero, p + c * n, (double *)at->q);
    if (s->used)
      hone_scale_by(n, trans ? s->col_exp : s->row_exp, 1, 0, p + c * n,
                    p + c * n);
  }
}

/* Makes the k vectors v orthonormal, the longest first, and leaves out what is
   then shorter than 'least' (modified Gram-Schmidt with pivoting). Returns how
   many remain, which is at most 'most'. */
static int64_t orthonormalize(int64_t n, int64_t k, int64_t most, double least,
                              hone_entry *v) {
  int64_t count = 0;
  for (; count < most; count++) {
    int64_t at = count;
    double longest = -1.0;
    for (int64_t c = count; c < k; c++) {
      const double square = sum_of_squares(n, v + c * n);
      if (square > longest) {
        longest = square;
        at = c;
      }
    }
    if (!(sqrt(longest) > least) || !(longest <= DBL_MAX))
      break;
    hone_entry *to = v + count * n, *from = v + at * n;
    for (int64_t i = 0; i < n; i++) {
      const hone_entry other = to[i];
      to[i] = from[i] / sqrt(longest);
      if (from != to)
        from[i] = other;
    }
    for (int64_t c = count + 1; c < k; c++)
      for (int pass = 0; pass < 2; pass++) /* twice, against cancellation */
        add(n, -dot(n, to, v + c * n), to, v + c * n);
  }
  return count;
}

/* Makes pairs of the directions that E leaves long in k vectors v. Returns how
   many were added to f->space. */
static int make_pairs(hone_probing *probing, int64_t k) {
  const hone_factored *f = probing->f;
  const int64_t n = f->a->n;
  const vectors at = lay_out(probing);
  const double least = NEGLIGIBLE_PART * GOOD_BOUND / hone_probe_factor(1.0);
  const int before = f->space->count;
  k = orthonormalize(n, k, HONE_MIN(k, (int64_t)PAIRS_OF_A_ROUND), least, at.v);
  multiply_accurately(f, probing->trans, k, at.v, at.p, &at);
  probing->passes += (int)k;
  for (int64_t c = 0; c < k; c++)
    (void)hone_space_add(f->space, at.v + c * n, at.p + c * n);
  return f->space->count - before;
}

/* v = E^powers g for k random g, E being that of the factors f. */
static int magnify(hone_probing *probing, const hone_factored *f, int64_t k,
                   int powers, uint64_t *seed) {
  const int64_t n = f->a->n;
  const vectors at = lay_out(probing);
  int st = HONE_OK;
  for (int64_t c = 0; c < k; c++)
    hone_probe_draw(n, seed, at.v + c * n);
  for (int power = 0; power < powers && st == HONE_OK; power++) {
    probing->passes += multiply(f, probing->trans, k, at.v, at.p, at.work);
    st = hone_apply_inverse(f, true, probing->trans, k, at.p, n, NULL, NULL);
    add(k * n, -1.0, at.p, at.v);
  }
  return st;
}

/* The first pairs are rough: z has small parts in other directions, and S z is
   mostly what S makes of those. With them, E magnifies what they are made for
   all the more, so that pairs of its next powers are nearly pure. Pairs are
   always made of the same draw, so that an x by GMRES does not depend on the
   draw either: what they are good for is seen by the probes that follow. */
int hone_probe_with_pairs(hone_probing *probing, hone_contraction *out) {
  hone_factored alone = *probing->f;
  uint64_t seed = 1;
  alone.space = NULL;
  out->power = 0;
  int st = magnify(probing, &alone, HONE_PROBES, 1, &seed);
  if (st != HONE_OK || make_pairs(probing, HONE_PROBES) == 0)
    return st;
  st = magnify(probing, probing->f, PAIRS_OF_A_ROUND, MAGNIFYING_POWERS, &seed);
  if (st == HONE_OK) {
    (void)make_pairs(probing, PAIRS_OF_A_ROUND); /* if any is still long */
    st = hone_probe(probing, POWERS_WITH_PAIRS, out);
  }
  out->pairs = out->power > 0 ? probing->f->space->count : 0;
  return st;
}
