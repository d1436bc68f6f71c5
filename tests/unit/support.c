/* SPDX-License-Identifier: BSD-3-Clause */
/* See support.h. The numbers here are computed by code that shares nothing with
   the library. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Quadruple precision, for arithmetic only. Its 113 bits hold the product of
   two doubles exactly, and such a product cannot overflow or underflow. */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

/* Defined only where the CUDA device is emulated. */
extern const int hone_emulated __attribute__((weak));

bool sup_emulated(void) { return &hone_emulated != NULL; }

/* Random numbers ----------------------------------------------------------- */

uint64_t sup_next(sup_rng *rng) {
  uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double sup_uniform(sup_rng *rng) {
  return (double)(sup_next(rng) >> 11) * 0x1p-53 - 0.5;
}

/* Marsaglia's polar method, which calls log but no sine. */
double sup_normal(sup_rng *rng) {
  for (;;) {
    double u = 2.0 * sup_uniform(rng), v = 2.0 * sup_uniform(rng);
    double s = u * u + v * v;
    if (s > 0.0 && s < 1.0)
      return u * sqrt(-2.0 * log(s) / s);
  }
}

/* Matrices ----------------------------------------------------------------- */

void sup_random(sup_rng *rng, int64_t n, int64_t m, double *a, int64_t lda) {
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = sup_uniform(rng);
}

static double singular_value(sup_rng *rng, int64_t n, int mode, double cond,
                             int64_t i) {
  double t = n > 1 ? (double)i / (double)(n - 1) : 0.0;
  switch (mode) {
  case SUP_ONE_LARGE:
    return i == 0 ? 1.0 : 1.0 / cond;
  case SUP_ONE_SMALL:
    return i < n - 1 || n == 1 ? 1.0 : 1.0 / cond;
  case SUP_ARITHMETIC:
    return 1.0 - t * (1.0 - 1.0 / cond);
  case SUP_LOG_UNIFORM:
    return pow(cond, -(sup_uniform(rng) + 0.5));
  default:
    return pow(cond, -t);
  }
}

/* A = A - 2 v (v^T A) / (v^T v), or the same from the right. w: n entries. */
static void reflect(int64_t n, bool right, const double *v, double *w,
                    double *a, int64_t lda) {
  const int64_t down = right ? lda : 1, along = right ? 1 : lda;
  double vv = 0.0;
  for (int64_t i = 0; i < n; i++)
    vv += v[i] * v[i];
  for (int64_t j = 0; j < n; j++) {
    w[j] = 0.0;
    for (int64_t i = 0; i < n; i++)
      w[j] += v[i] * a[i * down + j * along];
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i * down + j * along] -= 2.0 * v[i] * w[j] / vv;
}

void sup_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond, double *a,
                     int64_t lda) {
  const int reflections = n <= 100 ? (int)n : 8;
  double *v = sup_filled(2 * n, 0.0), *w = v + n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = i == j ? singular_value(rng, n, mode, cond, i) : 0.0;
  for (int k = 0; k < 2 * reflections; k++) {
    for (int64_t i = 0; i < n; i++)
      v[i] = sup_normal(rng);
    reflect(n, k % 2 == 1, v, w, a, lda);
  }
  sup_free(v);
}

static double entry(const double *a, int64_t lda, bool trans, int64_t i,
                    int64_t j) {
  return trans ? a[j + i * lda] : a[i + j * lda];
}

void sup_matrix_spd(sup_rng *rng, int64_t n, double cond, double *a) {
  double *u = sup_filled(n, 0.0), *w = sup_filled(n, 0.0);
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; i++)
    a[i + i * n] = pow(cond, -(double)i / fmax(1.0, (double)(n - 1)));
  for (int round = 0; round < 8; round++) {
    double uu = 0.0, uw = 0.0;
    for (int64_t i = 0; i < n; i++) {
      u[i] = sup_normal(rng);
      uu += u[i] * u[i];
    }
    for (int64_t j = 0; j < n; j++) {
      w[j] = 0.0;
      for (int64_t i = 0; i < n; i++)
        w[j] += a[i + j * n] * u[i];
      w[j] *= 2.0 / uu;
      uw += u[j] * w[j];
    }
    for (int64_t i = 0; i < n; i++)
      w[i] -= uw / uu * u[i];
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++)
        a[i + j * n] -= u[i] * w[j] + w[i] * u[j];
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < j; i++)
        a[j + i * n] = a[i + j * n];
  }
  sup_free(u);
  sup_free(w);
}

void sup_multiply(int64_t n, const double *a, int64_t lda, bool trans,
                  const double *x, double *b) {
  for (int64_t i = 0; i < n; i++) {
    quad sum = 0;
    for (int64_t j = 0; j < n; j++)
      sum += (quad)entry(a, lda, trans, i, j) * (quad)x[j];
    b[i] = (double)sum;
  }
}

int sup_solver_solve(hone_solver *solver, int32_t trans, int64_t nrhs,
                     const double *b, int64_t ldb, double *x, int64_t ldx,
                     const double *x0, int64_t ldx0, hone_column *columns,
                     hone_report *report) {
  hone_options options = HONE_OPTIONS_INIT;
  options.trans = trans, options.x0 = x0, options.ldx0 = ldx0;
  options.columns = columns;
  return hone_solver_solve(solver, nrhs, b, ldb, x, ldx, &options, report);
}

/* Errors ------------------------------------------------------------------- */

double sup_backward_error(int64_t n, const double *a, int64_t lda, bool trans,
                          const double *x, const double *b) {
  double omega = 0.0;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i]))
      return (double)NAN;
  quad *wide = malloc((size_t)n * sizeof *wide + 1);
  if (wide == NULL)
    abort();
  for (int64_t j = 0; j < n; j++)
    wide[j] = (quad)x[j];
  for (int64_t i = 0; i < n; i++) {
    quad r = (quad)b[i];
    long double den = fabsl((long double)b[i]); /* need not be as accurate */
    for (int64_t j = 0; j < n; j++) {
      const double v = entry(a, lda, trans, i, j);
      r -= (quad)v * wide[j];
      den += fabsl((long double)v * (long double)x[j]);
    }
    const double q = den > 0.0L ? (double)(fabsl((long double)r) / den) : 0.0;
    omega = q > omega || isnan(q) ? q : omega; /* NaN stays */
  }
  free(wide);
  return omega;
}

double sup_forward_error(int64_t n, const double *x, const double *x_true) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double e = fabs(x[i] - x_true[i]);
    error = e <= error ? error : e; /* also NaN */
    if (!(error <= DBL_MAX))        /* NaN stays */
      return (double)NAN;
    size = fmax(size, fabs(x_true[i]));
  }
  return error > 0.0 ? error / size : 0.0;
}

/* Arrays ------------------------------------------------------------------- */

enum { GUARD = 8 /* doubles on either side */, LINE = 64 /* bytes */ };
static const double guard_value = -0x1.badbadbadp+77;

typedef struct array_head { /* lies below the guard in front of the array */
  void *raw;
  int64_t count;
} array_head;

/* The array begins 'at' bytes after a multiple of LINE. */
static double *filled_at(size_t at, int64_t count, double value) {
  const size_t before = sizeof(array_head) + GUARD * sizeof(double) + LINE - 1;
  const size_t doubles = (size_t)(count + GUARD) * sizeof(double);
  array_head head = {malloc(before + at + doubles), count};
  if (head.raw == NULL)
    abort(); /* a test without memory would prove nothing */
  const size_t start = ((uintptr_t)head.raw + before) / LINE * LINE;
  double *array =
      (double *)((char *)head.raw + (start - (uintptr_t)head.raw) + at);
  memcpy((char *)(array - GUARD) - sizeof head, &head, sizeof head);
  for (int64_t i = 0; i < GUARD; i++)
    array[i - GUARD] = array[count + i] = guard_value;
  for (int64_t i = 0; i < count; i++)
    array[i] = value;
  return array;
}

/* Aligned to 8 but not to 16 bytes, as the caller's arrays may be. */
double *sup_filled(int64_t count, double value) {
  return filled_at(sizeof(double), count, value);
}

double *sup_aligned(int64_t count, double value) {
  return filled_at(0, count, value);
}

double *sup_copy(const double *from, int64_t count) {
  double *to = sup_filled(count, 0.0);
  if (count > 0)
    memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

bool sup_untouched(const double *array, int64_t count, double value) {
  for (int64_t i = 0; i < count; i++)
    if (memcmp(array + i, &value, sizeof value) != 0)
      return false;
  return true;
}

void sup_free(double *array) {
  if (array == NULL)
    return;
  array_head head;
  memcpy(&head, (char *)(array - GUARD) - sizeof head, sizeof head);
  CHECK(sup_untouched(array - GUARD, GUARD, guard_value));
  CHECK(sup_untouched(array + head.count, GUARD, guard_value));
  free(head.raw);
}
