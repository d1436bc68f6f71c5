/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems for tests; see complex_system.h. */
#include "tests/unit/complex_system.h"

#include "base/complex_values.h"
#include "tests/unit/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

typedef long double _Complex wide;

static const char *const NAMES[CS_FAMILIES] = {
    "uniform",   "normal",   "spectrum",  "steep",   "nearly",
    "units",     "scaled",   "helmholtz", "moments", "symmetric",
    "hermitian", "definite", "banded",    "lower",   "diagonal"};

const char *cs_name(int family) { return NAMES[family]; }

/* ---- Matrices ------------------------------------------------------------ */

static hone_complex uniform(sup_rng *rng) {
  const double re = sup_uniform(rng);
  return CMPLX(re, sup_uniform(rng));
}

static hone_complex normal(sup_rng *rng) {
  const double re = sup_normal(rng);
  return CMPLX(re, sup_normal(rng));
}

/* a = H a or a = a H, H = I - 2 v v^H for a random v of length 1. */
static void reflect(int64_t n, bool left, sup_rng *rng, wide *a, wide *v) {
  long double length = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    v[i] = (wide)normal(rng);
    length += creall(v[i] * conjl(v[i]));
  }
  for (int64_t j = 0; j < n; j++) {
    wide sum = 0.0L;
    for (int64_t i = 0; i < n; i++)
      sum += left ? conjl(v[i]) * a[i + j * n] : a[j + i * n] * v[i];
    sum *= 2.0L / length;
    for (int64_t i = 0; i < n; i++)
      if (left)
        a[i + j * n] -= v[i] * sum;
      else
        a[j + i * n] -= sum * conjl(v[i]);
  }
}

/* The singular values fall from 1 to 'least'; 0: all are 1 but for two. */
static void fill_spectrum(int64_t n, double least, sup_rng *rng,
                          hone_complex *a) {
  wide *w = calloc((size_t)(n * n + n), sizeof *w);
  for (int64_t i = 0; i < n; i++) {
    const long double part =
        n > 1 ? (long double)i / (long double)(n - 1) : 0.0L;
    w[i + i * n] = least > 0.0  ? powl((long double)least, part)
                   : i == n - 1 ? 1e-9L
                   : i == n - 2 ? 3e-10L
                                : 1.0L;
  }
  for (int k = 0; k < 3; k++) {
    reflect(n, true, rng, w, w + n * n);
    reflect(n, false, rng, w, w + n * n);
  }
  for (int64_t i = 0; i < n * n; i++)
    a[i] = (hone_complex)w[i];
  free(w);
}

static void fill_helmholtz(int64_t n, hone_complex *a) {
  const int64_t side = (int64_t)ceil(sqrt((double)n));
  for (int64_t j = 0; j < n; j++) {
    a[j + j * n] = 4.0 - CMPLX(0.8, 0.08);
    if (j >= side)
      a[j - side + j * n] = a[j + (j - side) * n] = -1.0;
    if (j % side > 0)
      a[j - 1 + j * n] = a[j + (j - 1) * n] = -1.0;
  }
}

/* Points on a helix of 1/10 wavelength from point to point. */
static void fill_moments(int64_t n, hone_complex *a) {
  const double k = 6.283185307179586;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double t = 0.25 * (double)i, u = 0.25 * (double)j;
      const double dx = cos(t) - cos(u), dy = sin(t) - sin(u);
      const double dz = 0.1 * (t - u);
      const double r = 0.4 * sqrt(dx * dx + dy * dy + dz * dz) + 0.02;
      a[i + j * n] = cexp(CMPLX(0.0, k * r)) / r;
    }
}

/* Makes an entry zero, or one triangle the image of the other. */
static void shape(int family, int64_t n, hone_complex *a) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      hone_complex *at = a + i + j * n;
      const hone_complex image = a[j + i * n];
      if (family == CS_SYMMETRIC && i < j)
        *at = image;
      else if ((family == CS_HERMITIAN || family == CS_DEFINITE) && i < j)
        *at = conj(image);
      else if ((family == CS_HERMITIAN || family == CS_DEFINITE) && i == j)
        *at = family == CS_DEFINITE ? 1.0 + (double)n / 3.0 : creal(*at);
      else if ((family == CS_BANDED && llabs(i - j) > 2) ||
               (family == CS_LOWER && i < j) ||
               (family == CS_DIAGONAL && i != j))
        *at = 0.0;
      else if (family == CS_LOWER && i == j)
        *at += 1.0;
    }
}

hone_complex *cs_random(int64_t n, int64_t m, uint64_t seed) {
  sup_rng rng = {seed};
  hone_complex *v = malloc((size_t)(n * m) * sizeof *v);
  for (int64_t i = 0; i < n * m; i++)
    v[i] = uniform(&rng);
  return v;
}

hone_complex *cs_matrix(int family, int64_t n, uint64_t seed) {
  sup_rng rng = {seed};
  hone_complex *a = calloc((size_t)(n * n), sizeof *a);
  if (family == CS_SPECTRUM || family == CS_STEEP || family == CS_NEARLY) {
    fill_spectrum(n,
                  family == CS_NEARLY  ? 0.0
                  : family == CS_STEEP ? 1e-11
                                       : 1e-6,
                  &rng, a);
  } else if (family == CS_HELMHOLTZ) {
    fill_helmholtz(n, a);
  } else if (family == CS_MOMENTS) {
    fill_moments(n, a);
  } else {
    for (int64_t i = 0; i < n * n; i++) {
      a[i] = family == CS_NORMAL ? normal(&rng) : uniform(&rng);
      if (family == CS_UNITS)
        a[i] /= cabs(a[i]);
    }
    shape(family, n, a);
  }
  for (int64_t i = 0; family == CS_SCALED && i < n * n; i++)
    a[i] *= ldexp(1.0, (int)(i % n * 37 % 121 + i / n * 53 % 121) - 120);
  return a;
}

/* ---- In quadruple precision ---------------------------------------------- */

typedef struct quads {
  quad re, im;
} quads;

static hone_complex entry(const cs_problem *p, int64_t i, int64_t j) {
  const bool turned = (p->trans != HONE_NO_TRANS) != p->row_major;
  const hone_complex v = turned ? p->a[j + i * p->lda] : p->a[i + j * p->lda];
  return p->trans == HONE_CONJ_TRANS ? conj(v) : v;
}

static long double size_of(quads v) {
  return hypotl((long double)v.re, (long double)v.im);
}

/* |v|; the squares of double entries are in the range of long double. */
static long double modulus(hone_complex v) {
  const long double re = creall((wide)v), im = cimagl((wide)v);
  return sqrtl(re * re + im * im);
}

/* b - op(A) x */
static quads residual(const cs_problem *p, int64_t i, const quads *x,
                      const hone_complex *b) {
  quads r = {(quad)creal(b[i]), (quad)cimag(b[i])};
  for (int64_t j = 0; j < p->n; j++) {
    const hone_complex a = entry(p, i, j);
    const quad re = (quad)creal(a), im = (quad)cimag(a);
    r.re -= re * x[j].re - im * x[j].im;
    r.im -= re * x[j].im + im * x[j].re;
  }
  return r;
}

static quads *copy_of(int64_t n, const hone_complex *x) {
  quads *q = malloc((size_t)n * sizeof *q);
  for (int64_t i = 0; i < n; i++)
    q[i] = (quads){(quad)creal(x[i]), (quad)cimag(x[i])};
  return q;
}

double cs_backward_error(const cs_problem *p, const hone_complex *x,
                         const hone_complex *b) {
  quads *q = copy_of(p->n, x);
  double worst = 0.0;
  for (int64_t i = 0; i < p->n; i++) {
    const long double r = size_of(residual(p, i, q, b));
    long double den = modulus(b[i]);
    for (int64_t j = 0; j < p->n; j++)
      den += modulus(entry(p, i, j)) * modulus(x[j]);
    const double omega = den > 0.0L ? (double)(r / den) : 0.0;
    worst = omega > worst || isnan(omega) ? omega : worst; /* NaN stays */
  }
  free(q);
  return worst;
}

/* P op(A) = L U with rows scaled, in long double. */
static void factor(const cs_problem *p, wide *f, int64_t *row) {
  const int64_t n = p->n;
  for (int64_t i = 0; i < n; i++) {
    int scale = 0;
    long double most = 0.0L;
    for (int64_t j = 0; j < n; j++) {
      f[i + j * n] = (wide)entry(p, i, j);
      most = fmaxl(most, cabsl(f[i + j * n]));
    }
    (void)frexpl(most, &scale);
    row[i] = i;
    row[n + i] = scale;
  }
  for (int64_t k = 0; k < n; k++) {
    int64_t at = k;
    for (int64_t i = k + 1; i < n; i++)
      if (ldexpl(cabsl(f[i + k * n]), -(int)row[n + row[i]]) >
          ldexpl(cabsl(f[at + k * n]), -(int)row[n + row[at]]))
        at = i;
    for (int64_t j = 0; j < n; j++) {
      const wide t = f[k + j * n];
      f[k + j * n] = f[at + j * n];
      f[at + j * n] = t;
    }
    const int64_t r = row[k];
    row[k] = row[at];
    row[at] = r;
    for (int64_t i = k + 1; i < n; i++)
      f[i + k * n] /= f[k + k * n];
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = k + 1; f[k + j * n] != 0.0L && i < n; i++)
        f[i + j * n] -= f[i + k * n] * f[k + j * n];
  }
}

/* x = x + inv(op(A)) r. Returns max |correction| / max |x|. */
static long double correct(int64_t n, const wide *f, const int64_t *row,
                           const quads *r, wide *d, quads *x) {
  long double most = 0.0L, size = 0.0L;
  for (int64_t i = 0; i < n; i++)
    d[i] = CMPLXL((long double)r[row[i]].re, (long double)r[row[i]].im);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j + 1; i < n; i++)
      d[i] -= f[i + j * n] * d[j];
  for (int64_t j = n - 1; j >= 0; j--) {
    d[j] /= f[j + j * n];
    for (int64_t i = 0; i < j; i++)
      d[i] -= f[i + j * n] * d[j];
  }
  for (int64_t i = 0; i < n; i++) {
    x[i].re += (quad)creall(d[i]);
    x[i].im += (quad)cimagl(d[i]);
    most = fmaxl(most, cabsl(d[i]));
    size = fmaxl(size, size_of(x[i]));
  }
  return size > 0.0L ? most / size : most;
}

bool cs_compare(const cs_problem *p, const hone_complex *x,
                const hone_complex *b, const double *bars, cs_errors *out) {
  const int64_t n = p->n;
  wide *f = malloc((size_t)(n * n + n) * sizeof *f), *d = f + n * n;
  int64_t *row = malloc((size_t)(2 * n) * sizeof *row);
  quads *at = calloc((size_t)(2 * n), sizeof *at), *r = at + n;
  long double last = 1.0L, size = 0.0L, most = 0.0L;
  factor(p, f, row);
  for (int step = 0; step < 8 && !(last <= 1e-25L); step++) {
    for (int64_t i = 0; i < n; i++)
      r[i] = step > 0 ? residual(p, i, at, b)
                      : (quads){(quad)creal(b[i]), (quad)cimag(b[i])};
    last = correct(n, f, row, r, d, at);
  }
  *out = (cs_errors){0.0, 0.0};
  for (int64_t i = 0; i < n; i++) {
    const quads e = {at[i].re - (quad)creal(x[i]),
                     at[i].im - (quad)cimag(x[i])};
    const double ratio = bars == NULL || !(size_of(e) > 0.0L)
                             ? 0.0
                             : (double)(size_of(e) / (long double)bars[i]);
    size = fmaxl(size, size_of(at[i]));
    most = fmaxl(most, size_of(e));
    out->outside = ratio <= out->outside ? out->outside : ratio;
  }
  out->forward = size > 0.0L ? (double)(most / size) : 0.0;
  free(f);
  free(row);
  free(at);
  return last <= 1e-20L; /* four digits beyond double precision */
}
