/* SPDX-License-Identifier: BSD-3-Clause */
/* Error measures of x from r = b - op(A) x and den = |op(A)| |x| + |b|, in
   double precision:

     omega    = max_i |r_i| / den_i                   componentwise
     normwise = ||r|| / (sqrt(n) ||A|| ||x||)
     residual = ||r|| / ||b||

   and norms in scaled variables, for bounds.c.

   They are computed for every residual, also beside a device that takes 0.2 ms
   for the residual itself. Therefore the loops are vectorized, and long double
   is used only where double would overflow or underflow. Next to read:
   bounds.c. */
#include "base/exact.h"
#include "base/vectors.h"
#include "refine/refine.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Underflow may change a denominator by this part of it, at most. */
static const double MODULUS_PART = 0x1p-44;
/* Rounding errors of r up to this part of ||b|| are neglected in ||r|| / ||b||.
 */
static const long double NOISE_COUNTS = 0x1p-70L;

double hone_errors_value(const hone_errors *errors, int criterion) {
  if (criterion == HONE_CRITERION_NORMWISE)
    return errors->normwise;
  if (criterion == HONE_CRITERION_RESIDUAL)
    return errors->residual;
  return errors->componentwise;
}

/* The bit pattern of |v|. These integers order as the magnitudes do, and those
   of NaN are the largest. */
static inline int64_t bits_of_abs(double v) {
  int64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits & INT64_MAX;
}

HONE_VECTOR static int64_t max_of_many(int64_t n, const hone_entry *v) {
  int64_t max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++)
    max = bits_of_abs(hone_abs(v[i])) > max ? bits_of_abs(hone_abs(v[i])) : max;
  return max;
}

#ifdef HONE_COMPLEX

/* Returns the largest |v_i|^2. Squares may overflow or underflow. */
HONE_VECTOR static double max_square(int64_t n, const hone_entry *v) {
  int64_t max = 0;
  double square;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    const int64_t bits = bits_of_abs(hone_real(v[i]) * hone_real(v[i]) +
                                     hone_imag(v[i]) * hone_imag(v[i]));
    max = bits > max ? bits : max;
  }
  memcpy(&square, &max, sizeof square);
  return square;
}

#endif

double hone_max_abs(int64_t n, const hone_entry *v) {
  int64_t max = 0;
  double size;
#ifdef HONE_COMPLEX
  const double square = max_square(n, v);
  if (square >= 0x1p-900 && square <= DBL_MAX)
    return sqrt(square);
#endif
  if (n >= HONE_MANY)
    max = max_of_many(n, v);
  else
    for (int64_t i = 0; i < n; i++)
      max =
          bits_of_abs(hone_abs(v[i])) > max ? bits_of_abs(hone_abs(v[i])) : max;
  memcpy(&size, &max, sizeof size);
  return size;
}

/* max_i |r_i| / den_i if every den_i is above 'least'; NaN otherwise, and if a
   quotient is NaN. */
HONE_VECTOR static double plain_quotients(int64_t n, const hone_entry *r,
                                          const double *den, double least) {
  int64_t max = 0, small = 0;
  double q;
#pragma omp simd reduction(max : max) reduction(+ : small)
  for (int64_t i = 0; i < n; i++) {
    const double v = hone_abs(r[i]) / den[i];
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    max = bits > max
              ? bits
              : max; /* NaN's bit pattern is larger than that of any number, */
    small += (bits < 0) | !(den[i] > least); /* or its sign bit is set */
  }
  memcpy(&q, &max, sizeof q);
  return small > 0 ? HONE_NAN : q;
}

/* Computes row i again in extended range, from x and b that are not shifted:
   r_i becomes 2^shift (b - op(A) x)_i. Returns |b - op(A) x|_i / den_i. With
   'fast' that may be wrong by the rounding of long double. */
static double wide_row(const hone_refinement *ctx, int64_t i, bool fast,
                       hone_refined *c) {
  hone_wide_row row = {.a = ctx->f.a,
                       .trans = ctx->trans,
                       .i = i,
                       .x = c->x,
                       .b = c->b[i],
                       .fast = fast,
                       .shift = c->shift};
  ctx->f.a->op->wide_row(&row);
  c->r[i] = row.r;
  c->den[i] = row.zero ? 0.0 : row.den; /* no noise where nothing was rounded */
  return row.quotient;
}

/* Returns the number up to which den_i may have lost digits by underflow, for
   an x whose largest entry is 'size'. The modulus of a complex number of few
   bits is wrong by up to half the smallest number of double: those of row i and
   of x together make den_i wrong by that times ||A|| + n max |x|. */
static double least_denominator(const hone_refinement *ctx,
                                const hone_refined *c, double size) {
  const double n = (double)ctx->f.a->n;
  const double least = hone_least_denominator(ctx->f.a->n);
  if (HONE_PARTS == 1)
    return least;
  return fmax(least, DBL_TRUE_MIN / MODULUS_PART *
                         (ctx->norm_a + n * hone_shift(size, c->shift)));
}

/* Returns max |x_i|, size being that in double precision. */
static long double exact_size(int64_t n, const hone_entry *x, double size) {
  if (HONE_PARTS == 1 || size >= DBL_MIN)
    return (long double)size;
  long double most = 0.0L;
  for (int64_t i = 0; i < n; i++)
    most = fmaxl(most, hone_absl((hone_wide)x[i]));
  return most;
}

double hone_refined_quotient(const hone_refinement *ctx, int64_t i,
                             hone_refined *c) {
  if (c->x_is_zero)
    return c->b[i] != 0.0; /* x = 0: r = b, and the row 0 = 0 is solved */
  if (c->digits_lost || c->den[i] <= c->least_den)
    return wide_row(ctx, i, false, c);
  return hone_abs(c->r[i]) / c->den[i];
}

/* Does the same for a column all of whose rows are computed one by one, where
   'most' is the largest quotient of the rows before: one that may be larger is
   computed without the rounding of long double, which is up to gamma and as
   large as the limit where n is in the hundreds. */
static double lost_quotient(const hone_refinement *ctx, int64_t i, double most,
                            hone_refined *c) {
  const double q = wide_row(ctx, i, true, c);
  return q + c->gamma <= most ? q : wide_row(ctx, i, false, c);
}

/* max_i |r_i| / den_i. An empty row (0 = 0) counts as solved. */
static double componentwise(const hone_refinement *ctx, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  double omega = 0.0;
  if (!c->x_is_zero && !c->digits_lost) {
    const double q = plain_quotients(n, c->r, c->den, c->least_den);
    if (q <= DBL_MAX)
      return q;
  }
  for (int64_t i = 0; i < n; i++) {
    const double q = c->digits_lost && !c->x_is_zero
                         ? lost_quotient(ctx, i, omega, c)
                         : hone_refined_quotient(ctx, i, c);
    omega = q <= omega ? omega : q; /* NaN is taken, */
    if (!(omega <= DBL_MAX))        /* and ends the loop */
      return HONE_NAN;
  }
  return omega;
}

/* Sums and maxima of R r and of R den (den being here the bound on the rounding
   error of the computed r), and the maximum of inv(C) x. */
typedef struct norms {
  long double r_sum, r_max, den_sum, den_max, x_max;
} norms;

/* Computes them in long double. row, col: exponents of R and C, or NULL. */
static norms wide_norms(const hone_refined *c, int64_t n, const int *row,
                        const int *col) {
  norms s = {0.0L, 0.0L, 0.0L, 0.0L, 0.0L};
  for (int64_t i = 0; i < n; i++) {
    long double r = hone_absl((hone_wide)c->r[i]);
    long double x = hone_absl((hone_wide)c->x[i]);
    long double den = (long double)hone_refined_residual_noise(c, n, i);
    r = row ? hone_shiftl(r, row[i]) : r;
    den = row ? hone_shiftl(den, row[i]) : den;
    x = col ? hone_shiftl(x, -col[i]) : x;
    s.r_sum += r;
    s.den_sum += den;
    s.r_max = r <= s.r_max ? s.r_max : r;
    s.den_max = den <= s.den_max ? s.den_max : den;
    s.x_max = x <= s.x_max ? s.x_max : x;
  }
  return s;
}

/* The powers of two themselves. */
typedef struct units {
  const double *row, *col;
} units;

/* Computes the same in double, never less than wide_norms does. Returns false
   if a value leaves the range of double, or nearly does. scaled is a constant:
   where the units are NULL and were read under a mask, each vector would take
   hundreds of cycles. */
HONE_INLINE bool double_norms(int64_t n, const hone_entry *r, const double *den,
                              const hone_entry *x, units u, const bool scaled,
                              double gamma, norms *out) {
  double r_sum = 0.0, den_sum = 0.0, r_max = 0.0, den_max = 0.0, x_max = 0.0;
  double in_max = 1.0;
#pragma omp simd reduction(+ : r_sum, den_sum)                                 \
    reduction(max : r_max, den_max, x_max, in_max)
  for (int64_t i = 0; i < n; i++) {
    const double in = scaled ? u.row[i] : 1.0, by = scaled ? u.col[i] : 1.0;
    const double s = hone_abs(r[i]) * in, y = hone_abs(x[i]) / by;
    const double t = gamma * den[i] * in + HONE_EPS * s;
    r_sum += s;
    den_sum += t;
    r_max = s > r_max ? s : r_max;
    den_max = t > den_max ? t : den_max;
    x_max = y > x_max ? y : x_max;
    in_max = in > in_max ? in : in_max;
  }
  /* Adds the rounding errors of the sums, and the last term of
     hone_refined_residual_noise, which covers underflow of r. */
  const long double sum_rounding = 1.0L + (long double)n * 0x1p-52L;
  const long double lost = (long double)(2 * n + 2) *
                           (long double)DBL_TRUE_MIN * (long double)in_max;
  out->r_sum = (long double)r_sum * sum_rounding;
  out->r_max = (long double)r_max;
  out->den_sum = (long double)den_sum * sum_rounding + (long double)n * lost;
  out->den_max = (long double)den_max + lost;
  out->x_max = (long double)x_max;
  /* NaN shows in the sums; an entry that underflowed is negligible beside
     2^-800 */
  const double most = 0x1p800, least = 0x1p-800;
  return r_sum <= most && den_sum <= most && x_max <= most && r_max >= least &&
         den_max >= least && x_max >= least;
}

HONE_VECTOR static bool scaled_norms(int64_t n, const hone_refined *c, units u,
                                     norms *out) {
  return double_norms(n, c->r, c->den, c->x, u, true, c->gamma, out);
}

HONE_VECTOR static bool unscaled_norms(int64_t n, const hone_refined *c,
                                       norms *out) {
  return double_norms(n, c->r, c->den, c->x, (units){NULL, NULL}, false,
                      c->gamma, out);
}

/* At least the 2-norm of a vector, from its 1-norm and its infinity norm. */
static long double two_norm(int64_t n, long double sum, long double max) {
  const long double by_max = sqrtl((long double)n) * max;
  return sum <= by_max ? sum : by_max;
}

void hone_refined_norms(const hone_refinement *ctx, hone_refined *c) {
  hone_errors *e = &c->errors;
  const hone_scaling *s = ctx->f.scaling;
  const int64_t n = ctx->f.a->n;
  const bool trans = ctx->trans, scaled = s->used;
  const int *row = scaled ? (trans ? s->col_exp : s->row_exp) : NULL;
  const int *col = scaled ? (trans ? s->row_exp : s->col_exp) : NULL;
  int widest = scaled ? col[0] : 0;
  const units u = trans ? (units){s->col, s->row} : (units){s->row, s->col};
  norms v;
  if (c->x_is_zero ||
      !(scaled ? scaled_norms(n, c, u, &v) : unscaled_norms(n, c, &v)))
    v = wide_norms(c, n, row, col);
  for (int64_t i = 0; scaled && i < n; i++)
    widest = HONE_MAX(widest, col[i]);
  e->widest_unit = hone_shiftl(1.0L, widest);
  e->size_scaled = v.x_max;
  e->residual_norm = hone_shiftl(two_norm(n, v.r_sum, v.r_max), -c->shift);
  e->noise = hone_shiftl(two_norm(n, v.den_sum, v.den_max), -c->shift);
}

/* Returns at least the largest rounding error of the computed r, beside its own
   rounding to double; 0 where r is b. */
HONE_VECTOR static long double residual_noise(int64_t n,
                                              const hone_refined *c) {
  const double *den = c->den;
  double most = 0.0, sum = 0.0;
  if (c->x_is_zero)
    return 0.0L;
#pragma omp simd reduction(max : most) reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) {
    most = den[i] > most ? den[i] : most;
    sum += den[i]; /* keeps NaN */
  }
  return (long double)c->gamma *
         (long double)(sum < 0.0 || sum >= 0.0 ? most : sum);
}

/* Sets the normwise error and that of the residual; e->size is known. r is
   2^shift times the residual, and where it is not 0 by itself it may lack what
   underflowed in its sums and when it was rounded: n + 4 of the smallest
   number. In long double no quotient underflows.

   A normwise error has denominators beside which the rounding errors of r are
   small. But b may be much smaller than |A| |x|: then a b_i may be lost beside
   the terms of its row, and an r of 0 says nothing. So rounding errors count
   where they are not far below the rounding of b. Those of a plain pass are
   kept apart: a value that seems small makes an accurate pass follow. */
static void set_norm_errors(const hone_refinement *ctx, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  hone_errors *e = &c->errors;
  const long double lost = (long double)(n + 4) * (long double)DBL_TRUE_MIN;
  const long double norm_a =
      (long double)(ctx->norm_a <= DBL_MAX ? ctx->norm_a : DBL_MAX);
  const long double b =
      hone_shiftl(exact_size(n, c->b, hone_max_abs(n, c->b)), c->shift);
  const long double x = hone_shiftl(e->size, c->shift);
  const double computed = hone_max_abs(n, c->r);
  const bool exact = computed == 0.0 && e->componentwise <= 0.0;
  const long double r = exact ? 0.0L : (long double)computed + lost;
  const long double noise = residual_noise(n, c);
  const bool counts = !(noise <= NOISE_COUNTS * b);
  const bool plain = !c->by_steps && !c->digits_lost && c->gamma >= HONE_EPS;
  e->normwise = exact ? 0.0 : (double)(r / norm_a / x / sqrtl((long double)n));
  e->residual = e->residual_noise = 0.0;
  if (!exact || counts)
    e->residual = (double)((r + (counts && !plain ? noise : 0.0L)) / b);
  if (counts && plain)
    e->residual_noise = (double)(noise / b);
}

void hone_refined_errors(const hone_refinement *ctx, hone_refined *c) {
  const int64_t n = ctx->f.a->n;
  double x = hone_max_abs(n, c->x);
  hone_errors *e = &c->errors;
  c->measured = true;
  c->x_is_zero = x <= 0.0;
  if (!(x <= DBL_MAX)) {
    const long double none = (long double)HONE_NAN;
    *e = (hone_errors){HONE_NAN, HONE_NAN, HONE_NAN, none,    none,
                       none,     none,     none,     HONE_NAN};
    return;
  }
  c->least_den = least_denominator(ctx, c, x);
  e->componentwise = componentwise(ctx, c); /* may replace entries of r */
  e->size = exact_size(n, c->x, x);
  set_norm_errors(ctx, c);
  hone_refined_norms(ctx, c);
}
