/* SPDX-License-Identifier: BSD-3-Clause */
/* The 1-norm of the inverse, estimated with the factors (Hager 1984; Higham
   1988, the algorithm of LAPACK's xLACN2), and a measurement that LAPACK
   does not make: the vector that made the estimate is tried on the caller's
   own matrix. If the factors M reproduce y there, A is not singular in the
   direction where M is nearest to it; if not, the condition number is beyond
   what factors of this precision can tell, whatever the residual says. */
#include "refine/condition.h"

#include "base/vectors.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  ESTIMATE_STEPS = 5, /* as xLACN2 */
  PROOF_STEPS = 6,    /* corrections of z */
  COLUMN_PASSES = 6,  /* with pairs: for the estimate's vector, */
  SIGNS_PASSES = 4    /* for one of random signs */
};
static const double DEFECT_LIMIT = 0.5;
/* A defect this small leaves no room for a part that does not shrink. */
static const double PROVED = 0.0625;
/* Of what a vector of random signs shows of a null vector in the mean; and what
   share of a vector the largest of its random entries has, times sqrt(n). */
static const double SIGNS_LIMIT = 0.003, COLUMN_SHARE = 3.0;

/* What a random vector w shows of a matrix G, |g^T w| for every row g, is 1/4
   of ||g||_2 or more but for one w in five, and ||g||_2 is sqrt(n) times what g
   does to most other vectors. */
static const double PROBE_FACTOR = 4.0;

int64_t hone_estimate_scratch(int64_t n) { return 7 * n; }

static void unit_vector(int64_t n, int64_t j, hone_entry *v) {
  memset(v, 0, (size_t)n * sizeof *v);
  v[j] = 1.0;
}

/* Entries of alternating sign and growing size, which catch what the
   gradient steps miss. */
static void alternating(int64_t n, hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = (i % 2 ? -1.0 : 1.0) * (1.0 + (double)i / (double)(n - 1));
}

/* What one estimate works with: vectors of n. */
typedef struct estimate {
  const hone_factored *f;
  bool scaled;       /* of inv(S), else of 2^-shift inv(A) */
  int shift;         /* that keeps inv(A) within the range of double */
  hone_entry *y, *z; /* the best unit vector tried, and z = inv(M) y */
  hone_entry *v;     /* the vector under work */
  hone_entry *sign;  /* the signs it last had */
  hone_entry *other; /* the alternating vector, solved for beside the first */
  int64_t last;      /* y's place of the last unit vector tried; -1: none */
  double of_unit;    /* ||z||_1 */
  double norm; /* the largest ||inv(M) y|| / ||y|| seen, over all vectors */
} estimate;

/* both: other is a second column. */
static int apply_some(const estimate *e, bool trans, bool both) {
  const int shift[] = {e->shift, e->shift};
  return hone_apply_inverse(e->f, e->scaled, trans, 1 + both, e->v,
                            both ? e->other - e->v : e->f->a->n,
                            e->scaled ? NULL : shift, NULL);
}

static int apply(const estimate *e, bool trans) {
  return apply_some(e, trans, false);
}

/* One gradient step (Hager): from the signs of the last inv(M) y to the unit
   vector that promises the largest growth. *better: it kept the promise. */
static int gradient_step(estimate *e, bool *better) {
  const int64_t n = e->f->a->n;
  *better = false;
  memcpy(e->v, e->sign, (size_t)n * sizeof *e->v);
  int st = apply(e, true);
  int64_t j = hone_largest_at(n, e->v);
  if (st != HONE_OK || j == e->last)
    return st;
  e->last = j;
  unit_vector(n, j, e->v);
  if ((st = apply(e, false)) != HONE_OK)
    return st;
  double s = hone_sum_abs(n, e->v);
  if (!(s <= e->of_unit)) { /* NaN is taken: it must not look proved */
    e->of_unit = s;
    memcpy(e->z, e->v, (size_t)n * sizeof *e->z);
    unit_vector(n, j, e->y);
  }
  *better = s > e->norm;
  e->norm = e->norm >= s ? e->norm : s;
  return HONE_OK;
}

/* Estimates ||inv(M)||_1. Where only the alternating vector shows how large
   it is, one more step looks for the unit vector that shows it too: it is
   with unit vectors that the proof below works. Two columns take the factors
   little longer than one, so that vector goes with the first. */
static int inverse_norm(estimate *e) {
  const int64_t n = e->f->a->n;
  bool better = true;
  e->last = -1;
  e->of_unit = -1.0;
  for (int64_t i = 0; i < n; i++) {
    e->v[i] = 1.0 / (double)n;
    e->sign[i] = 0.0; /* none yet */
  }
  if (n > 1)
    alternating(n, e->other);
  int st = apply_some(e, false, n > 1);
  e->norm = hone_sum_abs(n, e->v);
  hone_take_signs(n, e->v, e->sign);
  for (int step = 1; step < ESTIMATE_STEPS && better && st == HONE_OK; step++) {
    st = gradient_step(e, &better);
    if (better && hone_take_signs(n, e->v, e->sign))
      break;
  }
  if (n == 1 || st != HONE_OK)
    return st;
  double s = 2.0 * hone_sum_abs(n, e->other) / (3.0 * (double)n);
  if (s <= e->norm)
    return HONE_OK;
  e->norm = s;
  hone_take_signs(n, e->other, e->sign);
  return gradient_step(e, &better);
}

/* r = y - S z by a pass over A, in double-double: with x = C z and
   b = inv(R) y. y, z are left as they were; x, b: scratch. */
static void scaled_residual(const hone_factored *f, const hone_entry *y,
                            const hone_entry *z, hone_entry *x, hone_entry *b,
                            hone_entry *r, double *den) {
  const int64_t n = f->a->n;
  const bool scaled = f->scaling->used;
  if (scaled) {
    hone_scale_by(n, f->scaling->row_exp, -1, 0, y, b);
    hone_scale_by(n, f->scaling->col_exp, 1, 0, z, x);
  }
  hone_residual(f, false, scaled ? x : z, scaled ? b : y, r, den);
  if (scaled)
    hone_scale_by(n, f->scaling->row_exp, 1, 0, r, r);
}

/* y and z by a power of two, z near 1: nothing overflows. False: z holds
   nothing, or what is not finite. */
static bool bring_near_1(int64_t n, hone_entry *y, hone_entry *z) {
  const double size = hone_abs(z[hone_largest_at(n, z)]);
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return false;
  const int e = ilogb(size);
  hone_scale_by(n, NULL, 1, -e, y, y);
  hone_scale_by(n, NULL, 1, -e, z, z);
  return true;
}

/* A pair is the difference of two z (NULL: 0) and of their residuals r: adds
   one, or takes it away. */
static void add_pair(int64_t n, double sign, const hone_entry *z,
                     const hone_entry *r, hone_entry *zp, hone_entry *cp) {
  for (int64_t i = 0; i < n; i++) {
    zp[i] += z ? sign * z[i] : 0.0;
    cp[i] -= sign * r[i];
  }
}

/* One vector that is tried: S z = y, until ||y - S z|| is at most limit ||y||
   or so many passes were made. */
typedef struct trial {
  hone_entry *y, *z;
  bool euclidean; /* norm; else the 1-norm */
  double limit;
  double floor; /* times ||inv(S)||: what rounding z leaves of the defect */
  int passes;
  double last; /* ||y - S z|| / ||y|| of the z left */
  double contraction;
  bool shrinks;  /* the last correction made it half of what it was, or the
                    first one smaller */
  bool rounding; /* it is what rounding z leaves */
} trial;

static double size_of(const trial *t, int64_t n, const hone_entry *v) {
  if (!t->euclidean)
    return hone_sum_abs(n, v);
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++)
    sum += hone_real(hone_conj(v[i]) * v[i]);
  return sqrt(sum);
}

/* Of the defect t->last of this step and the one before: does it fall, and how
   much does a correction leave? */
static void weigh(trial *t, int step, double *before) {
  t->shrinks = step == 0 || t->last <= (step == 1 ? *before : 0.5 * *before);
  double ratio = step == 0 ? t->last : t->last / *before;
  if (!(step > 0 && ratio <= t->contraction)) /* takes NaN */
    t->contraction = ratio;
  *before = t->last;
}

/* Refines z while that halves the defect or, with a space, whose pairs it
   makes, as long as it may. */
static int try_vector(const hone_factored *f, trial *t, hone_entry *work,
                      hone_certificate *out) {
  const int64_t n = f->a->n;
  hone_entry *x = work, *b = x + n, *r = b + n;
  double *den = (double *)(r + n);
  t->last = HONE_INF;
  if (!bring_near_1(n, t->y, t->z))
    return HONE_OK;
  const double norm = size_of(t, n, t->y), norm1 = hone_sum_abs(n, t->y);
  double before = HONE_INF;
  int pair = f->space ? hone_space_open(f->space) : -1;
  if (pair >= 0) /* from z = 0 on */
    add_pair(n, -1.0, NULL, t->y, hone_space_z(f->space, pair),
             hone_space_c(f->space, pair));
  for (int step = 0;; step++) {
    scaled_residual(f, t->y, t->z, x, b, r, den);
    out->tries++;
    t->last = size_of(t, n, r) / norm;
    weigh(t, step, &before);
    out->inverse_norm_scaled =
        fmax(out->inverse_norm_scaled, hone_sum_abs(n, t->z) / norm1);
    t->rounding = t->last <= t->floor * out->inverse_norm_scaled;
    if (pair >= 0) {
      hone_entry *zp = hone_space_z(f->space, pair);
      hone_entry *cp = hone_space_c(f->space, pair);
      add_pair(n, 1.0, t->z, r, zp, cp);
      (void)hone_space_take(f->space, zp, cp);
      f->space->open = 0;
    }
    if (t->last <= t->limit || step + 1 >= t->passes || !(t->last <= DBL_MAX) ||
        (!f->space &&
         (!t->shrinks || (t->rounding && t->last <= DEFECT_LIMIT))))
      return HONE_OK;
    pair = f->space ? hone_space_open(f->space) : -1;
    if (pair >= 0)
      add_pair(n, -1.0, t->z, r, hone_space_z(f->space, pair),
               hone_space_c(f->space, pair));
    int st = hone_apply_inverse(f, true, false, 1, r, n, NULL, NULL);
    if (st != HONE_OK)
      return st;
    for (int64_t i = 0; i < n; i++)
      t->z[i] += r[i];
  }
}

/* The estimate's own vector. S singular: with u its left null vector,
   u^T (y - S z) = u^T y for every z, and y is the unit vector where u is
   largest (M nearly singular the same way, inv(M^T) of any signs is nearly u),
   so that the defect stays near 1. Not so with a vector of many entries, of
   which u may see little. The factors alone have to go on to 1/16 or to what
   rounding leaves; of GMRES, whose residuals never grow, 1/2 is enough. */
static int prove(const estimate *e, double norm1, int passes, hone_entry *work,
                 hone_certificate *out) {
  const bool alone = e->f->space == NULL;
  trial t = {.y = e->y,
             .z = e->z,
             .limit = alone ? PROVED : DEFECT_LIMIT,
             .floor = alone ? 4.0 * HONE_EPS * norm1 : 0.0,
             .passes = passes};
  int st = try_vector(e->f, &t, work, out);
  out->defect = t.last;
  out->contraction = alone ? t.contraction : HONE_NAN;
  out->nonsingular = t.last <= DEFECT_LIMIT;
  if (alone)
    out->nonsingular = out->nonsingular && (t.shrinks || t.rounding);
  return st;
}

/* A vector of random signs. S singular, u^T y is a normal deviate whatever u
   is, of mean square 1, and |u^T (y - S z)| the same for every z: ||y - S z||_2
   can be 0.003 but for one y in 400. It also tells how large inv(S) is: were it
   v u^T / sigma, ||z||_1 = |u^T y| ||v||_1 / sigma, and no column of inv(S)
   exceeds that by more than the largest entry of u, near 3 / sqrt(n), does. */
static int try_signs(const estimate *e, uint64_t seed, int passes,
                     hone_entry *work, double *norm, hone_certificate *out) {
  const int64_t n = e->f->a->n;
  const double root = sqrt((double)n); /* ||y||_2 */
  for (int64_t i = 0; i < n; i++)
    e->y[i] = hone_random_bits(&seed) >> 63 ? 1.0 : -1.0;
  memcpy(e->v, e->y, (size_t)n * sizeof *e->v);
  int st = apply(e, false);
  if (st != HONE_OK)
    return st;
  memcpy(e->z, e->v, (size_t)n * sizeof *e->z);
  trial t = {.y = e->y,
             .z = e->z,
             .euclidean = true,
             .limit = SIGNS_LIMIT / root,
             .passes = passes};
  st = try_vector(e->f, &t, work, out);
  out->nonsingular = t.last <= t.limit;
  const double size =
      hone_sum_abs(n, e->z) / hone_abs(e->y[0]); /* y of signs again */
  *norm = fmax(*norm, fmin(1.0, COLUMN_SHARE / root) * size);
  return st;
}

/* The factors alone cannot tell S from a singular matrix. GMRES for the vector
   of their estimate, y, can: its place is right, u being known to M, and z is
   now a column of inv(S) and not of inv(M). Two vectors of random signs see to
   it that no other direction is as bad. (Not an estimate by P: its transpose
   is not near inv(S^T), and missed the right column by a factor of 10.) */
static int mend(estimate *e, int passes, hone_entry *work,
                hone_certificate *out) {
  const int last = out->tries + passes;
  double norm = 0.0;
  int st = prove(e, 0.0, HONE_MIN(passes, (int)COLUMN_PASSES), work, out);
  const bool proved = out->nonsingular;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    out->nonsingular = out->nonsingular && out->tries < last;
    if (st == HONE_OK && out->nonsingular)
      st = try_signs(e, seed, HONE_MIN(last - out->tries, (int)SIGNS_PASSES),
                     work, &norm, out);
  }
  out->inverse_norm_scaled = fmax(norm, out->inverse_norm_scaled);
  out->nonsingular = out->nonsingular && proved;
  out->pairs = out->nonsingular ? e->f->space->count : 0;
  return st;
}

/* The vectors of an estimate, in scratch: y and z, and five to work with. */
static estimate begin(const hone_factored *f, hone_entry *scratch) {
  const int64_t n = f->a->n;
  return (estimate){.f = f,
                    .scaled = true,
                    .y = scratch,
                    .z = scratch + n,
                    .v = scratch + 2 * n,
                    .sign = scratch + 3 * n,
                    .other = scratch + 6 * n};
}

/* ||inv(A) e_j||_1 = ||C inv(S) R e_j||_1 by the pairs, for the column j that
   an estimate ended with. */
static int unscaled_column(const hone_factored *f, estimate *e,
                           hone_entry *work, hone_certificate *out) {
  const int64_t n = f->a->n;
  unit_vector(n, e->last, e->y);
  unit_vector(n, e->last, e->z);
  int st = hone_apply_inverse(f, true, false, 1, e->z, n, NULL, NULL);
  if (st != HONE_OK)
    return st;
  trial t = {
      .y = e->y, .z = e->z, .limit = DEFECT_LIMIT, .passes = COLUMN_PASSES};
  st = try_vector(f, &t, work, out);
  long double sum = 0.0L;
  for (int64_t i = 0; i < n; i++)
    sum += ldexpl(hone_absl((hone_wide)e->z[i]), f->scaling->col_exp[i]);
  sum = ldexpl(sum / (long double)hone_real(e->y[e->last]),
               f->scaling->row_exp[e->last]);
  out->inverse_norm = sum <= out->inverse_norm ? out->inverse_norm : sum;
  out->nonsingular = t.last <= t.limit;
  out->pairs = out->nonsingular ? f->space->count : 0;
  return st;
}

/* ||inv(A)||_1 by the factors alone, as much larger as refining showed that of
   inv(S) to be; with pairs, by the column of inv(A) that the factors find.
   Without pairs y and z in scratch are left alone. */
static int unscaled_norm(const hone_factored *f, double more, double norm1,
                         hone_entry *scratch, hone_certificate *out) {
  const int64_t n = f->a->n;
  hone_factored alone = *f;
  alone.space = NULL;
  estimate e = begin(&alone, scratch);
  e.scaled = false;
  e.shift = -ilogb(norm1); /* 2^-shift inv(A) is about the condition number */
  if (out->pairs == 0) {
    e.y = scratch + 4 * n;
    e.z = scratch + 5 * n;
  }
  int st = inverse_norm(&e);
  out->inverse_norm = ldexpl((long double)(more * e.norm), e.shift);
  if (st != HONE_OK || out->pairs == 0 || e.last < 0)
    return st;
  return unscaled_column(f, &e, scratch + 2 * n, out);
}

static double reciprocal(double a, long double b) {
  long double product = (long double)a * b;
  return product > 0.0L ? (double)(1.0L / product) : 0.0; /* so Inf and NaN */
}

/* From the norm of inv(S), by_factors before it was refined, to what is said of
   A. */
static int conclude(const hone_factored *f, double by_factors, double norm1,
                    double norm1_scaled, hone_entry *scratch,
                    hone_certificate *out) {
  int st = HONE_OK;
  out->inverse_norm = (long double)out->inverse_norm_scaled;
  if (f->scaling->used)
    st = unscaled_norm(f, out->inverse_norm_scaled / by_factors, norm1, scratch,
                       out);
  out->rcond_scaled =
      reciprocal(norm1_scaled, (long double)out->inverse_norm_scaled);
  out->rcond = reciprocal(norm1, out->inverse_norm);
  /* Below that, factors can be right by chance alone, those of integers for
     one, and what a proof or a solve with them shows says nothing of others. */
  out->nonsingular = out->nonsingular && out->rcond_scaled >= HONE_EPS;
  return st;
}

int hone_estimate(const hone_factored *f, double norm1, double norm1_scaled,
                  hone_entry *scratch, hone_certificate *out) {
  estimate e = begin(f, scratch);
  *out = (hone_certificate){.defect = HONE_NAN, .contraction = HONE_NAN};
  int st = inverse_norm(&e);
  out->inverse_norm_scaled = e.norm;
  if (st == HONE_OK)
    st = prove(&e, norm1_scaled, PROOF_STEPS + 1, scratch + 2 * f->a->n, out);
  return st == HONE_OK ? conclude(f, e.norm, norm1, norm1_scaled, scratch, out)
                       : st;
}

int hone_estimate_mend(const hone_factored *f, int passes, double norm1,
                       double norm1_scaled, hone_entry *scratch,
                       hone_certificate *out) {
  estimate e = begin(f, scratch);
  int st = mend(&e, passes, scratch + 2 * f->a->n, out);
  return st == HONE_OK ? conclude(f, out->inverse_norm_scaled, norm1,
                                  norm1_scaled, scratch, out)
                       : st;
}

/* ||w - inv(M) S w|| / ||w|| in the infinity norm (trans: of S^T), w random of
   full mantissas. */
static int probe(const hone_factored *f, bool trans, hone_entry *scratch,
                 double *left) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  hone_entry *w = scratch, *x = w + n, *b = x + n, *r = b + n;
  double *den = (double *)(r + n);
  double most = 0.0, size = 0.0;
  uint64_t seed = 1 + trans;
  for (int64_t i = 0; i < n; i++) {
    w[i] = 0.5 + (double)(hone_random_bits(&seed) >> 11) * 0x1p-54;
    w[i] = hone_random_bits(&seed) >> 63 ? -w[i] : w[i];
    x[i] = w[i];
    if (s->used)
      x[i] = hone_shift_entry(w[i], trans ? s->row_exp[i] : s->col_exp[i]);
    b[i] = 0.0;
  }
  hone_residual(f, trans, x, b, r, den); /* r = -S w */
  for (int64_t i = 0; s->used && i < n; i++)
    r[i] = hone_shift_entry(r[i], trans ? s->col_exp[i] : s->row_exp[i]);
  int st = hone_apply_inverse(f, true, trans, 1, r, n, NULL, NULL);
  for (int64_t i = 0; i < n; i++) {
    const double rest = hone_abs(w[i] + r[i]);
    most = rest <= most ? most : rest; /* takes NaN */
    size = fmax(size, hone_abs(w[i]));
  }
  *left = most / size;
  return st;
}

int hone_estimate_probe(const hone_factored *f, hone_entry *scratch,
                        hone_certificate *out) {
  for (int trans = 0; trans < 2; trans++) {
    double left = HONE_NAN;
    int st = probe(f, trans, scratch, &left);
    if (st != HONE_OK)
      return st;
    out->tries++;
    left *= PROBE_FACTOR;
    if (!(left <= out->contraction)) /* takes NaN */
      out->contraction = left;
  }
  out->foretold = 0.0; /* now it was looked at */
  return HONE_OK;
}
