/* SPDX-License-Identifier: BSD-3-Clause */
/* See reference.h. */
#include "tests/unit/reference.h"
#include "base/lapack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

enum { ELIMINATED_UP_TO = 64, CORRECTIONS = 60 };

static quad magnitude(quad v) { return v < 0 ? -v : v; }

static void *room(size_t bytes) {
  void *memory = malloc(bytes);
  if (memory == NULL)
    abort(); /* a test without memory would prove nothing */
  return memory;
}

static void split(int64_t count, const quad *x, double *hi, double *lo) {
  for (int64_t i = 0; i < count; i++) {
    hi[i] = (double)x[i];
    lo[i] = (double)(x[i] - (quad)hi[i]);
  }
}

/* Row operations on rows k to n - 1 of the n x m array f. */
static bool eliminate(int64_t n, int64_t m, quad *f) {
  for (int64_t k = 0; k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < n; i++)
      if (magnitude(f[i + k * n]) > magnitude(f[p + k * n]))
        p = i;
    if (!(magnitude(f[p + k * n]) > 0))
      return false;
    for (int64_t j = k; j < m; j++) {
      quad t = f[p + j * n];
      f[p + j * n] = f[k + j * n];
      f[k + j * n] = t;
    }
    for (int64_t i = k + 1; i < n; i++)
      f[i + k * n] /= f[k + k * n];
    for (int64_t j = k + 1; j < m; j++)
      for (int64_t i = k + 1; i < n; i++)
        f[i + j * n] -= f[i + k * n] * f[k + j * n];
  }
  return true;
}

static bool by_elimination(int64_t n, const double *a, bool trans, int64_t nrhs,
                           const double *b, double *hi, double *lo) {
  const int64_t m = n + nrhs;
  quad *f = room((size_t)(n * m) * sizeof *f), *x = f + n * n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      f[i + j * n] = (quad)(trans ? a[j + i * n] : a[i + j * n]);
  for (int64_t i = 0; i < n * nrhs; i++)
    x[i] = (quad)b[i];
  bool regular = eliminate(n, m, f);
  for (int64_t c = 0; regular && c < nrhs; c++)
    for (int64_t k = n - 1; k >= 0; k--) {
      x[k + c * n] /= f[k + k * n];
      for (int64_t i = 0; i < k; i++)
        x[i + c * n] -= f[i + k * n] * x[k + c * n];
    }
  if (regular)
    split(n * nrhs, x, hi, lo);
  free(f);
  return regular;
}

/* r = b - op(A) x, rounded once. */
static void residual(int64_t n, const double *a, bool trans, const double *b,
                     const quad *x, quad *sum, double *r) {
  for (int64_t i = 0; i < n; i++)
    sum[i] = (quad)b[i];
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      if (trans)
        sum[j] -= (quad)a[i + j * n] * x[i];
      else
        sum[i] -= (quad)a[i + j * n] * x[j];
  for (int64_t i = 0; i < n; i++)
    r[i] = (double)sum[i];
}

static bool refined(int64_t n, const double *a, bool trans, const double *b,
                    const double *f, const int *ipiv, quad *x, double *r) {
  const int order = (int)n, one = 1;
  int info = 0;
  double last = (double)INFINITY;
  for (int64_t i = 0; i < n; i++)
    x[i] = 0;
  for (int step = 0; step < CORRECTIONS; step++) {
    double size = 0.0, most = 0.0;
    residual(n, a, trans, b, x, x + n, r);
    dgetrs_(trans ? "T" : "N", &order, &one, f, &order, ipiv, r, &order, &info);
    for (int64_t i = 0; i < n; i++) {
      x[i] += (quad)r[i];
      size = fmax(size, fabs(r[i]));
      most = fmax(most, fabs((double)x[i]));
    }
    if (size <= 1e-28 * most)
      return true;
    if (step > 2 && !(size < last))
      return false;
    last = size;
  }
  return false;
}

static bool by_refinement(int64_t n, const double *a, bool trans, int64_t nrhs,
                          const double *b, double *hi, double *lo) {
  const int order = (int)n;
  int info = 0;
  double *f = room((size_t)(n * n + n) * sizeof *f), *r = f + n * n;
  int *ipiv = room((size_t)n * sizeof *ipiv);
  quad *x = room((size_t)(2 * n) * sizeof *x);
  memcpy(f, a, (size_t)(n * n) * sizeof *f);
  dgetrf_(&order, &order, f, &order, ipiv, &info);
  bool done = info == 0;
  for (int64_t c = 0; done && c < nrhs; c++) {
    done = refined(n, a, trans, b + c * n, f, ipiv, x, r);
    split(n, x, hi + c * n, lo + c * n);
  }
  free(x);
  free(ipiv);
  free(f);
  return done;
}

bool ref_solve(int64_t n, const double *a, bool trans, int64_t nrhs,
               const double *b, double *hi, double *lo) {
  return n <= ELIMINATED_UP_TO ? by_elimination(n, a, trans, nrhs, b, hi, lo)
                               : by_refinement(n, a, trans, nrhs, b, hi, lo);
}

static double distance(double x, double hi, double lo) {
  return (double)magnitude((quad)x - (quad)hi - (quad)lo);
}

double ref_error(int64_t n, const double *x, const double *hi,
                 const double *lo) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double e = distance(x[i], hi[i], lo[i]);
    error = e <= error ? error : e; /* also NaN */
    size = fmax(size, fabs(x[i]));
  }
  return error > 0.0 ? error / size : error;
}

double ref_error_of_any(int64_t n, const double *x, const double *hi,
                        const double *lo) {
  double error = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double e = distance(x[i], hi[i], lo[i]);
    e = e > 0.0 ? e / fabs(hi[i]) : e;
    error = e <= error ? error : e;
  }
  return error;
}

double ref_norm1(int64_t n, const double *a) {
  double norm = 0.0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
      sum += fabs(a[i + j * n]);
    norm = fmax(norm, sum);
  }
  return norm;
}

double ref_inverse_norm1(int64_t n, const double *a) {
  double *unit = sup_filled(n * n, 0.0), *hi = sup_filled(n * n, 0.0);
  double *lo = sup_filled(n * n, 0.0);
  for (int64_t j = 0; j < n; j++)
    unit[j + j * n] = 1.0;
  bool regular = ref_solve(n, a, false, n, unit, hi, lo);
  double norm = regular ? ref_norm1(n, hi) : -1.0;
  sup_free(unit);
  sup_free(hi);
  sup_free(lo);
  return norm;
}

/* Families ----------------------------------------------------------------- */

const char *ref_name(int family) {
  static const char *const names[REF_FAMILIES] = {
      "random",      "graded rows", "graded columns", "graded both",
      "mixed units", "one large",   "one small",      "geometric",
      "arithmetic",  "log uniform", "Hilbert",        "Vandermonde",
      "near columns"};
  return family >= 0 && family < REF_FAMILIES ? names[family] : "?";
}

/* Multiplies rows, columns or both by powers of ten from 10^-range to 10^range,
   in random order. */
static void grade(sup_rng *rng, int64_t n, bool rows, bool columns,
                  double range, double *a) {
  for (int64_t k = 0; k < n; k++) {
    double row = rows ? pow(range, sup_uniform(rng)) : 1.0;
    double col = columns ? pow(range, sup_uniform(rng)) : 1.0;
    for (int64_t i = 0; i < n; i++) {
      a[k + i * n] *= row;
      a[i + k * n] *= col;
    }
  }
}

static void mixed_units(sup_rng *rng, int64_t n, double cond, double *a) {
  sup_matrix_spd(rng, n, sqrt(cond), a);
  for (int64_t k = 0; k < n; k++) {
    double unit = pow(cond, sup_uniform(rng));
    for (int64_t i = 0; i < n; i++) {
      a[k + i * n] *= unit;
      a[i + k * n] *= unit;
    }
  }
}

static void fill(sup_rng *rng, int family, int64_t n, double cond, double *a) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double x = (double)(i + 1) / (double)n;
      if (family == REF_VANDERMONDE)
        a[i + j * n] = pow(x, (double)j);
      else if (family == REF_HILBERT && i < 12 && j < 12)
        a[i + j * n] = 1.0 / (double)(i + j + 1);
      else
        a[i + j * n] = sup_uniform(rng);
    }
  for (int64_t i = 0; family == REF_NEAR_COLUMNS && n > 1 && i < n; i++)
    a[i + (n / 2) * n] = a[i] + sup_uniform(rng) / cond;
}

void ref_matrix(sup_rng *rng, int family, int64_t n, double cond, double *a) {
  if (family >= REF_ONE_LARGE && family <= REF_LOG_UNIFORM) {
    sup_matrix_cond(rng, n, SUP_ONE_LARGE + family - REF_ONE_LARGE, cond, a, n);
    return;
  }
  if (family == REF_MIXED_UNITS) {
    mixed_units(rng, n, cond, a);
    return;
  }
  fill(rng, family, n, cond, a);
  grade(rng, n, family == REF_GRADED_ROWS || family == REF_GRADED_BOTH,
        family == REF_GRADED_COLUMNS || family == REF_GRADED_BOTH, cond, a);
}
