/* SPDX-License-Identifier: BSD-3-Clause */
/* The 1-norm of the inverse, estimated with the factors (Hager 1984; Higham
   1988, the algorithm of LAPACK's xLACN2), and a measurement that LAPACK
   does not make: the vector that made the estimate is tried on the caller's
   own matrix. If the factors M reproduce y there, A is not singular in the
   direction where M is nearest to it; if not, the condition number is beyond
   what factors of this precision can tell, whatever the residual says. */
#include "refine/estimate.h"

#include "cpu_dp/pass.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  ESTIMATE_STEPS = 5, /* as xLACN2 */
  PROOF_STEPS = 6     /* corrections of z */
};
static const double DEFECT_LIMIT = 0.5, DOMINATED = 8.0;

int64_t hone_estimate_scratch(int64_t n) { return 6 * n; }

int hone_apply_inverse(const hone_factored *f, bool scaled, bool trans,
                       int64_t k, double *v, int64_t ldv, const int *shift,
                       double *size) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  bool plain = scaled || !s->used;
  const int *in = plain ? NULL : (trans ? s->col_exp : s->row_exp);
  const int *out = plain ? NULL : (trans ? s->row_exp : s->col_exp);
  int e[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < k; c++)
    e[c] = hone_scale_in(n, in, v + c * ldv, v + c * ldv);
  int st = f->engine->solve(f->self, trans, k, v, ldv);
  if (st != HONE_OK)
    return st;
  for (int64_t c = 0; c < k; c++) {
    double *vc = v + c * ldv, max = 0.0;
    if (shift)
      e[c] += shift[c];
    for (int64_t i = 0; size && i < n; i++)
      max = fabs(vc[i]) <= max ? max : fabs(vc[i]); /* takes NaN */
    if (size)
      size[c] = hone_shift(max, -e[c]);
    hone_scale_out(n, out, e[c], vc);
  }
  return HONE_OK;
}

bool hone_residual(const hone_factored *f, bool trans, const double *x,
                   const double *b, double *r, double *den) {
  if (f->resident &&
      f->engine->residual(f->self, f->a, trans, x, b, r, den) == HONE_OK)
    return true;
  const hone_pass pass = {.a = f->a,
                          .trans = trans,
                          .accurate = true,
                          .k = 1,
                          .x = (const double *const[]){x},
                          .b = (const double *const[]){b},
                          .r = (double *const[]){r},
                          .den = (double *const[]){den}};
  hone_pass_run(f->pool, &pass);
  return false;
}

static double sum_abs(int64_t n, const double *v) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++)
    sum += fabs(v[i]);
  return sum;
}

static int64_t largest_at(int64_t n, const double *v) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; i++)
    if (fabs(v[i]) > fabs(v[at]))
      at = i;
  return at;
}

/* sign(v) into sign; true when it is what it was. */
static bool take_signs(int64_t n, const double *v, double *sign) {
  bool same = true;
  for (int64_t i = 0; i < n; i++) {
    double s = v[i] >= 0.0 ? 1.0 : -1.0;
    same = same && s == sign[i];
    sign[i] = s;
  }
  return same;
}

static void unit_vector(int64_t n, int64_t j, double *v) {
  memset(v, 0, (size_t)n * sizeof *v);
  v[j] = 1.0;
}

/* Entries of alternating sign and growing size, which catch what the
   gradient steps miss. */
static void alternating(int64_t n, double *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = (i % 2 ? -1.0 : 1.0) * (1.0 + (double)i / (double)(n - 1));
}

/* What one estimate works with: vectors of n. */
typedef struct estimate {
  const hone_factored *f;
  bool scaled;    /* of inv(S), else of inv(A) */
  double *y, *z;  /* the best unit vector tried, and z = inv(M) y */
  double *v;      /* the vector under work */
  double *sign;   /* the signs it last had */
  int64_t last;   /* y's place of the last unit vector tried; -1: none */
  double of_unit; /* ||z||_1 */
  double norm;    /* the largest ||inv(M) y|| / ||y|| seen, over all vectors */
} estimate;

static int apply(const estimate *e, bool trans) {
  return hone_apply_inverse(e->f, e->scaled, trans, 1, e->v, e->f->a->n, NULL,
                            NULL);
}

/* One gradient step (Hager): from the signs of the last inv(M) y to the unit
   vector that promises the largest growth. *better: it kept the promise. */
static int gradient_step(estimate *e, bool *better) {
  const int64_t n = e->f->a->n;
  *better = false;
  memcpy(e->v, e->sign, (size_t)n * sizeof *e->v);
  int st = apply(e, true);
  int64_t j = largest_at(n, e->v);
  if (st != HONE_OK || j == e->last)
    return st;
  e->last = j;
  unit_vector(n, j, e->v);
  if ((st = apply(e, false)) != HONE_OK)
    return st;
  double s = sum_abs(n, e->v);
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
   with unit vectors that the proof below works. */
static int inverse_norm(estimate *e) {
  const int64_t n = e->f->a->n;
  bool better = true;
  e->last = -1;
  e->of_unit = -1.0;
  for (int64_t i = 0; i < n; i++) {
    e->v[i] = 1.0 / (double)n;
    e->sign[i] = 0.0; /* none yet */
  }
  int st = apply(e, false);
  e->norm = sum_abs(n, e->v);
  take_signs(n, e->v, e->sign);
  for (int step = 1; step < ESTIMATE_STEPS && better && st == HONE_OK; step++) {
    const double before = e->norm;
    st = gradient_step(e, &better);
    /* Much larger: inv(M) is nearly of rank one, v u^T / sigma, the step took
       the largest entry of u, and the next would take it again. */
    if (e->norm > DOMINATED * before ||
        (better && take_signs(n, e->v, e->sign)))
      break;
  }
  if (n == 1 || st != HONE_OK)
    return st;
  alternating(n, e->v);
  if ((st = apply(e, false)) != HONE_OK)
    return st;
  double s = 2.0 * sum_abs(n, e->v) / (3.0 * (double)n);
  if (s <= e->norm)
    return HONE_OK;
  e->norm = s;
  take_signs(n, e->v, e->sign);
  return gradient_step(e, &better);
}

/* r = y - S z by a pass over A, in double-double: with x = C z and
   b = inv(R) y. y, z are left as they were; x, b: scratch. */
static void scaled_residual(const hone_factored *f, const double *y,
                            const double *z, double *x, double *b, double *r,
                            double *den) {
  const int64_t n = f->a->n;
  const bool scaled = f->scaling->used;
  for (int64_t i = 0; scaled && i < n; i++) {
    b[i] = hone_shift(y[i], -f->scaling->row_exp[i]);
    x[i] = hone_shift(z[i], f->scaling->col_exp[i]);
  }
  hone_residual(f, false, scaled ? x : z, scaled ? b : y, r, den);
  for (int64_t i = 0; scaled && i < n; i++)
    r[i] = hone_shift(r[i], f->scaling->row_exp[i]);
}

/* Tries S z = y on the caller's matrix, refining z while that helps. S
   singular: with u its left null vector, u^T (y - S z) = u^T y for every z,
   and y is the unit vector where u is largest (M nearly singular the same
   way, inv(M^T) of any signs is nearly u), so that the defect stays near 1.
   Not so with a vector of many entries, of which u may see little. */
static int prove(const hone_factored *f, double *y, double *z, double *work,
                 hone_certificate *out) {
  const int64_t n = f->a->n;
  double *x = work, *b = x + n, *r = b + n, *den = r + n;
  double size = fabs(z[largest_at(n, z)]), last = HONE_INF;
  if (!(size > 0.0) || !(size <= DBL_MAX)) {
    out->defect = HONE_INF;
    return HONE_OK;
  }
  const int e = ilogb(size);
  for (int64_t i = 0; i < n; i++) { /* z near 1: nothing overflows */
    y[i] = hone_shift(y[i], -e);
    z[i] = hone_shift(z[i], -e);
  }
  const double norm = sum_abs(n, y);
  for (int step = 0;; step++) {
    scaled_residual(f, y, z, x, b, r, den);
    out->tries++;
    out->defect = sum_abs(n, r) / norm;
    out->nonsingular = out->defect <= DEFECT_LIMIT;
    out->inverse_norm_scaled =
        fmax(out->inverse_norm_scaled, sum_abs(n, z) / norm);
    if (out->nonsingular || step == PROOF_STEPS || !(out->defect <= 0.5 * last))
      return HONE_OK;
    last = step == 0 ? 2.0 * out->defect : out->defect;
    int st = hone_apply_inverse(f, true, false, 1, r, n, NULL, NULL);
    if (st != HONE_OK)
      return st;
    for (int64_t i = 0; i < n; i++)
      z[i] += r[i];
  }
}

static double reciprocal(double a, double b) {
  double product = a * b;
  return product > 0.0 ? 1.0 / product : 0.0; /* Inf gives 0, NaN too */
}

int hone_estimate(const hone_factored *f, double norm1, double norm1_scaled,
                  double *scratch, hone_certificate *out) {
  const int64_t n = f->a->n;
  double *work = scratch + 2 * n;
  estimate e = {.f = f,
                .scaled = true,
                .y = scratch,
                .z = scratch + n,
                .v = work,
                .sign = work + n};
  *out = (hone_certificate){.defect = HONE_NAN};
  int st = inverse_norm(&e);
  out->inverse_norm_scaled = e.norm;
  if (st == HONE_OK)
    st = prove(f, e.y, e.z, work, out);
  if (st != HONE_OK)
    return st;
  out->inverse_norm = out->inverse_norm_scaled;
  out->rcond_scaled = reciprocal(norm1_scaled, out->inverse_norm_scaled);
  if (f->scaling->used) {
    e.scaled = false;
    st = inverse_norm(&e);
    out->inverse_norm = e.norm;
  }
  out->rcond = reciprocal(norm1, out->inverse_norm);
  return st;
}
