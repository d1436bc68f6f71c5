/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition estimate and certificate, in double precision. ||inv(M)||_1 is
   estimated with the factors M of S (Hager 1984; Higham 1988, the algorithm of
   LAPACK's xLACN2). Then follows a measurement that LAPACK does not make: for
   the vector y that gave the estimate, S z = y is solved on the caller's own
   matrix.

     z = inv(M) y
     defect = ||y - S z||_1 / ||y||_1
     z = z + inv(M) (y - S z)

   If the defect falls, S is not singular in the direction where M is nearest to
   singular. If it does not, the condition number is beyond what factors of this
   precision can resolve, however small the residual of x may be. Next to read:
   bounds.c, which uses the certificate. */
#include "refine/condition.h"

#include "base/vectors.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  ESTIMATE_STEPS = 5,      /* as in xLACN2 */
  CERTIFY_CORRECTIONS = 6, /* corrections of z */
  COLUMN_PASSES = 6, /* with pairs: passes for the estimate's unit vector */
  SIGNS_PASSES = 4   /* with pairs: passes for a vector of random signs */
};
/* The defect of a nonsingular S is at most this, and each correction must leave
   at most SLOW_RATE of it. */
static const double DEFECT_LIMIT = 0.5, SLOW_RATE = 0.5;
/* The rounding of z leaves a defect of about so many eps ||S|| ||inv(S)||. */
static const double ROUNDING_FACTOR = 4.0;
/* A defect this small leaves no room for a component of the error that does not
   shrink. */
static const double SMALL_DEFECT = 0.0625;
/* SIGNS_DEFECT_LIMIT is a fraction of what a vector of random signs shows of a
   null vector in the mean. LARGEST_ENTRY_SHARE / sqrt(n) is the share that the
   largest entry has of a vector of random entries. */
static const double SIGNS_DEFECT_LIMIT = 0.003, LARGEST_ENTRY_SHARE = 3.0;

int64_t hone_certify_scratch(int64_t n) { return 7 * n; }

static void unit_vector(int64_t n, int64_t j, hone_entry *v) {
  memset(v, 0, (size_t)n * sizeof *v);
  v[j] = 1.0;
}

/* v_i = +-(1 + i / (n - 1)): entries of alternating sign and growing size,
   which find large inverses that the gradient steps miss. */
static void alternating(int64_t n, hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = (i % 2 ? -1.0 : 1.0) * (1.0 + (double)i / (double)(n - 1));
}

/* The state of one estimate; all vectors have n entries. */
typedef struct estimate {
  const hone_factored *f;
  bool scaled; /* estimates inv(S); otherwise 2^-shift inv(A) */
  int shift;   /* keeps 2^-shift inv(A) in the range of double */
  /* y is the unit vector with the largest ||z||_1 so far; z = inv(M) y. */
  hone_entry *y, *z;
  hone_entry *v;    /* the vector being worked on */
  hone_entry *sign; /* the signs that v had last */
  /* The alternating vector, solved for together with the first. */
  hone_entry *second;
  int64_t last_index; /* index of the last unit vector tried; -1: none */
  double unit_norm;   /* ||z||_1 */
  double norm; /* the largest ||inv(M) y||_1 / ||y||_1 found, over all vectors
                  tried */
} estimate;

/* v = inv(M) v, or with inv(M^T); 'both' takes e->second as another column. */
static int apply_columns(const estimate *e, bool trans, bool both) {
  const int shift[] = {e->shift, e->shift};
  return hone_apply_inverse(e->f, e->scaled, trans, 1 + both, e->v,
                            both ? e->second - e->v : e->f->a->n,
                            e->scaled ? NULL : shift, NULL);
}

static int apply(const estimate *e, bool trans) {
  return apply_columns(e, trans, false);
}

/* Makes one gradient step (Hager): inv(M^T) applied to the signs of the last
   inv(M) y points to the unit vector that promises the largest growth. *better:
   that vector gives a larger norm. */
static int gradient_step(estimate *e, bool *better) {
  const int64_t n = e->f->a->n;
  *better = false;
  memcpy(e->v, e->sign, (size_t)n * sizeof *e->v);
  int st = apply(e, true);
  int64_t j = hone_largest_at(n, e->v);
  if (st != HONE_OK || j == e->last_index)
    return st;
  e->last_index = j;
  unit_vector(n, j, e->v);
  if ((st = apply(e, false)) != HONE_OK)
    return st;
  double s = hone_sum_abs(n, e->v);
  if (!(s <= e->unit_norm)) { /* NaN is taken: it must not be certified */
    e->unit_norm = s;
    memcpy(e->z, e->v, (size_t)n * sizeof *e->z);
    unit_vector(n, j, e->y);
  }
  *better = s > e->norm;
  e->norm = e->norm >= s ? e->norm : s;
  return HONE_OK;
}

/* Estimates ||inv(M)||_1. Where only the alternating vector shows how large the
   norm is, one more step looks for the unit vector that shows it too, because
   the certificate works with unit vectors. The alternating vector is solved for
   together with the first one: two columns take hardly longer than one. */
static int inverse_norm(estimate *e) {
  const int64_t n = e->f->a->n;
  bool better = true;
  e->last_index = -1;
  e->unit_norm = -1.0;
  for (int64_t i = 0; i < n; i++) {
    e->v[i] = 1.0 / (double)n;
    e->sign[i] = 0.0; /* none yet */
  }
  if (n > 1)
    alternating(n, e->second);
  int st = apply_columns(e, false, n > 1);
  e->norm = hone_sum_abs(n, e->v);
  hone_take_signs(n, e->v, e->sign);
  for (int step = 1; step < ESTIMATE_STEPS && better && st == HONE_OK; step++) {
    st = gradient_step(e, &better);
    if (better && hone_take_signs(n, e->v, e->sign))
      break;
  }
  if (n == 1 || st != HONE_OK)
    return st;
  /* The alternating vector has the 1-norm 3 n / 2. */
  double s = 2.0 * hone_sum_abs(n, e->second) / (3.0 * (double)n);
  if (s <= e->norm)
    return HONE_OK;
  e->norm = s;
  hone_take_signs(n, e->second, e->sign);
  return gradient_step(e, &better);
}

/* r = y - S z by one pass over A in double-double, as r = R (b - A x) with x =
   C z and b = inv(R) y. y and z are kept; x and b are scratch. */
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

/* Multiplies y and z by the power of two that brings z near 1, so that nothing
   overflows. Returns false if z is zero or not finite. */
static bool bring_near_1(int64_t n, hone_entry *y, hone_entry *z) {
  const double size = hone_abs(z[hone_largest_at(n, z)]);
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return false;
  const int e = ilogb(size);
  hone_scale_by(n, NULL, 1, -e, y, y);
  hone_scale_by(n, NULL, 1, -e, z, z);
  return true;
}

/* z_pair = z_pair + sign z,   c_pair = c_pair - sign r

   A pair is the difference of two z (NULL stands for 0) and that of their
   residuals; it is built by one call with sign -1 and one with sign 1. */
static void add_pair(int64_t n, double sign, const hone_entry *z,
                     const hone_entry *r, hone_entry *zp, hone_entry *cp) {
  for (int64_t i = 0; i < n; i++) {
    zp[i] += z ? sign * z[i] : 0.0;
    cp[i] -= sign * r[i];
  }
}

/* One right-hand side y for which S z = y is refined, until ||y - S z|| is at
   most limit ||y|| or max_passes passes over A are made. */
typedef struct trial {
  hone_entry *y, *z;
  bool euclidean; /* the norm is the 2-norm; otherwise the 1-norm */
  double limit;
  /* The defect that the rounding of z leaves, divided by ||inv(S)||_1. */
  double floor;
  int max_passes;
  double defect; /* ||y - S z|| / ||y|| of the last z */
  double contraction;
  bool shrinks; /* the last correction halved the defect, or the first one made
                   it smaller */
  bool at_rounding; /* the defect is what the rounding of z leaves */
} trial;

static double norm_of(const trial *t, int64_t n, const hone_entry *v) {
  if (!t->euclidean)
    return hone_sum_abs(n, v);
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++)
    sum += hone_real(hone_conj(v[i]) * v[i]);
  return sqrt(sum);
}

/* Sets t->shrinks and t->contraction from the defect of this step and the one
   before. */
static void update_contraction(trial *t, int step, double *before) {
  t->shrinks =
      step == 0 || t->defect <= (step == 1 ? *before : SLOW_RATE * *before);
  double ratio = step == 0 ? t->defect : t->defect / *before;
  if (!(step > 0 && ratio <= t->contraction)) /* takes NaN */
    t->contraction = ratio;
  *before = t->defect;
}

/* Refines z while each correction halves the defect. With a space, it goes on
   as long as it may and adds the pairs it makes to the space. */
static int refine_trial(const hone_factored *f, trial *t, hone_entry *work,
                        hone_certificate *out) {
  const int64_t n = f->a->n;
  hone_entry *x = work, *b = x + n, *r = b + n;
  double *den = (double *)(r + n);
  t->defect = HONE_INF;
  if (!bring_near_1(n, t->y, t->z))
    return HONE_OK;
  const double norm = norm_of(t, n, t->y), norm1 = hone_sum_abs(n, t->y);
  double before = HONE_INF;
  int pair = f->space ? hone_space_open(f->space) : -1;
  if (pair >= 0) /* the first pair starts from z = 0 */
    add_pair(n, -1.0, NULL, t->y, hone_space_z(f->space, pair),
             hone_space_c(f->space, pair));
  for (int step = 0;; step++) {
    scaled_residual(f, t->y, t->z, x, b, r, den);
    out->passes++;
    t->defect = norm_of(t, n, r) / norm;
    update_contraction(t, step, &before);
    out->inverse_norm_scaled =
        fmax(out->inverse_norm_scaled, hone_sum_abs(n, t->z) / norm1);
    t->at_rounding = t->defect <= t->floor * out->inverse_norm_scaled;
    if (pair >= 0) {
      hone_entry *zp = hone_space_z(f->space, pair);
      hone_entry *cp = hone_space_c(f->space, pair);
      add_pair(n, 1.0, t->z, r, zp, cp);
      (void)hone_space_add(f->space, zp, cp);
      f->space->open = 0;
    }
    if (t->defect <= t->limit || step + 1 >= t->max_passes ||
        !(t->defect <= DBL_MAX) ||
        (!f->space &&
         (!t->shrinks || (t->at_rounding && t->defect <= DEFECT_LIMIT))))
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

/* Certifies with the unit vector y of the estimate. If S is singular and u is
   its left null vector, u^T (y - S z) = u^T y for every z. y is the unit vector
   where u is largest, because M is nearly singular in the same way and inv(M^T)
   of any signs is nearly u. Therefore the defect stays near 1. A vector y of
   many entries would not do: u may be nearly orthogonal to it. The factors
   alone must bring the defect down to 1/16 or to what rounding leaves; with
   GMRES, whose residuals never grow, 1/2 is enough. */
static int certify_unit_vector(const estimate *e, double norm1, int passes,
                               hone_entry *work, hone_certificate *out) {
  const bool without_pairs = e->f->space == NULL;
  trial t = {.y = e->y,
             .z = e->z,
             .limit = without_pairs ? SMALL_DEFECT : DEFECT_LIMIT,
             .floor = without_pairs ? ROUNDING_FACTOR * HONE_EPS * norm1 : 0.0,
             .max_passes = passes};
  int st = refine_trial(e->f, &t, work, out);
  out->defect = t.defect;
  out->contraction = without_pairs ? t.contraction : HONE_NAN;
  out->nonsingular = t.defect <= DEFECT_LIMIT;
  if (without_pairs)
    out->nonsingular = out->nonsingular && (t.shrinks || t.at_rounding);
  return st;
}

/* Certifies with a vector y of random signs. If S is singular, u^T y is a
   normal deviate of mean square 1 whatever u is, and |u^T (y - S z)| is the
   same for every z: ||y - S z||_2 falls to 0.003 only for one y in 400. The
   same y bounds inv(S): were inv(S) = v u^T / sigma, then ||z||_1 = |u^T y|
   ||v||_1 / sigma, and no column of inv(S) exceeds that by more than the
   largest entry of u does, which is near 3 / sqrt(n). */
static int certify_random_signs(const estimate *e, uint64_t seed, int passes,
                                hone_entry *work, double *norm,
                                hone_certificate *out) {
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
             .limit = SIGNS_DEFECT_LIMIT / root,
             .max_passes = passes};
  st = refine_trial(e->f, &t, work, out);
  out->nonsingular = t.defect <= t.limit;
  const double size =
      hone_sum_abs(n, e->z) /
      hone_abs(e->y[0]); /* y was scaled with z; this divides by its scale */
  *norm = fmax(*norm, fmin(1.0, LARGEST_ENTRY_SHARE / root) * size);
  return st;
}

/* Certifies with GMRES factors that alone cannot distinguish S from a singular
   matrix. GMRES for the unit vector y of their estimate can: y has its entry in
   the right place, since M knows u, and z is now a column of inv(S) and not of
   inv(M). Two vectors of random signs make sure that no other direction is as
   bad. (An estimate with P of gmres.h would not do: its transpose is not near
   inv(S^T), and it missed the right column by a factor of 10.) */
static int certify_with_pairs(estimate *e, int passes, hone_entry *work,
                              hone_certificate *out) {
  const int last = out->passes + passes;
  double norm = 0.0;
  int st = certify_unit_vector(e, 0.0, HONE_MIN(passes, (int)COLUMN_PASSES),
                               work, out);
  const bool unit_vector_certified = out->nonsingular;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    out->nonsingular = out->nonsingular && out->passes < last;
    if (st == HONE_OK && out->nonsingular)
      st = certify_random_signs(e, seed,
                                HONE_MIN(last - out->passes, (int)SIGNS_PASSES),
                                work, &norm, out);
  }
  out->inverse_norm_scaled = fmax(norm, out->inverse_norm_scaled);
  out->nonsingular = out->nonsingular && unit_vector_certified;
  out->pairs = out->nonsingular ? e->f->space->count : 0;
  return st;
}

/* Lays the vectors of an estimate out in scratch: y and z, and five to work
   with. */
static estimate make_estimate(const hone_factored *f, hone_entry *scratch) {
  const int64_t n = f->a->n;
  return (estimate){.f = f,
                    .scaled = true,
                    .y = scratch,
                    .z = scratch + n,
                    .v = scratch + 2 * n,
                    .sign = scratch + 3 * n,
                    .second = scratch + 6 * n};
}

/* ||inv(A) e_j||_1 = ||C inv(S) R e_j||_1 with the pairs, for the column j with
   which the estimate ended. */
static int unscaled_column(const hone_factored *f, estimate *e,
                           hone_entry *work, hone_certificate *out) {
  const int64_t n = f->a->n;
  unit_vector(n, e->last_index, e->y);
  unit_vector(n, e->last_index, e->z);
  int st = hone_apply_inverse(f, true, false, 1, e->z, n, NULL, NULL);
  if (st != HONE_OK)
    return st;
  trial t = {
      .y = e->y, .z = e->z, .limit = DEFECT_LIMIT, .max_passes = COLUMN_PASSES};
  st = refine_trial(f, &t, work, out);
  long double sum = 0.0L;
  for (int64_t i = 0; i < n; i++)
    sum += ldexpl(hone_absl((hone_wide)e->z[i]), f->scaling->col_exp[i]);
  sum = ldexpl(sum / (long double)hone_real(e->y[e->last_index]),
               f->scaling->row_exp[e->last_index]);
  out->inverse_norm = sum <= out->inverse_norm ? out->inverse_norm : sum;
  out->nonsingular = t.defect <= t.limit;
  out->pairs = out->nonsingular ? f->space->count : 0;
  return st;
}

/* Estimates ||inv(A)||_1. Without pairs: by the factors alone, times the factor
   'increase' by which refinement enlarged the estimate of ||inv(S)||_1; y and z
   in scratch are then kept. With pairs: by the column of inv(A) that the
   factors find. */
static int unscaled_norm(const hone_factored *f, double increase, double norm1,
                         hone_entry *scratch, hone_certificate *out) {
  const int64_t n = f->a->n;
  hone_factored without_pairs = *f;
  without_pairs.space = NULL;
  estimate e = make_estimate(&without_pairs, scratch);
  e.scaled = false;
  e.shift = -ilogb(
      norm1); /* makes 2^-shift inv(A) about as large as the condition number */
  if (out->pairs == 0) {
    e.y = scratch + 4 * n;
    e.z = scratch + 5 * n;
  }
  int st = inverse_norm(&e);
  out->inverse_norm = ldexpl((long double)(increase * e.norm), e.shift);
  if (st != HONE_OK || out->pairs == 0 || e.last_index < 0)
    return st;
  return unscaled_column(f, &e, scratch + 2 * n, out);
}

static double reciprocal(double a, long double b) {
  long double product = (long double)a * b;
  return product > 0.0L ? (double)(1.0L / product)
                        : 0.0; /* Inf and NaN give 0 too */
}

/* Derives what is said of A from the norm of inv(S). norm_by_factors is that
   norm as estimated before refinement. */
static int finish_certificate(const hone_factored *f, double norm_by_factors,
                              double norm1, double norm1_scaled,
                              hone_entry *scratch, hone_certificate *out) {
  int st = HONE_OK;
  out->inverse_norm = (long double)out->inverse_norm_scaled;
  if (f->scaling->used)
    st = unscaled_norm(f, out->inverse_norm_scaled / norm_by_factors, norm1,
                       scratch, out);
  out->rcond_scaled =
      reciprocal(norm1_scaled, (long double)out->inverse_norm_scaled);
  out->rcond = reciprocal(norm1, out->inverse_norm);
  /* With a smaller rcond_scaled, factors can be right by accident only, those
     of a matrix of integers for example, and what a certificate or a solve with
     them shows says nothing of other right-hand sides. */
  out->nonsingular = out->nonsingular && out->rcond_scaled >= HONE_EPS;
  return st;
}

int hone_certify(const hone_factored *f, double norm1, double norm1_scaled,
                 hone_entry *scratch, hone_certificate *out) {
  estimate e = make_estimate(f, scratch);
  *out = (hone_certificate){.defect = HONE_NAN, .contraction = HONE_NAN};
  int st = inverse_norm(&e);
  out->inverse_norm_scaled = e.norm;
  if (st == HONE_OK)
    st = certify_unit_vector(&e, norm1_scaled, CERTIFY_CORRECTIONS + 1,
                             scratch + 2 * f->a->n, out);
  return st == HONE_OK
             ? finish_certificate(f, e.norm, norm1, norm1_scaled, scratch, out)
             : st;
}

int hone_certify_with_gmres(const hone_factored *f, int passes, double norm1,
                            double norm1_scaled, hone_entry *scratch,
                            hone_certificate *out) {
  estimate e = make_estimate(f, scratch);
  int st = certify_with_pairs(&e, passes, scratch + 2 * f->a->n, out);
  return st == HONE_OK ? finish_certificate(f, out->inverse_norm_scaled, norm1,
                                            norm1_scaled, scratch, out)
                       : st;
}
