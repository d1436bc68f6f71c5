/* SPDX-License-Identifier: BSD-3-Clause */
/* Refines in double with the factors that the real LAPACK made (Skeel 1980;
   this is LAPACK's dgerfs_ without its error bound). As a rule one correction
   brings the componentwise backward error near the unit roundoff. */
#include "lapack/dropin.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  AT_ONCE = 16, /* right-hand sides that share a pass over A */
  STEPS = 5     /* most corrections, as in dgerfs_ */
};
static const double GOAL = 2.0 * HONE_EPS; /* the best to be had in double */

/* Right-hand sides that are refined together, with their vectors. */
typedef struct group {
  int64_t n;
  const double *a; /* n x n, ld n */
  bool trans;
  int columns;
  const double *b;
  int64_t ldb;
  double *x;       /* the current iterate, n x columns, ld n */
  double *r, *den; /* its residual and denominators, stored alike */
} group;

/* r -= a_j x_j, den += |a_j| |x_j| for four columns of A. */
HONE_VECTOR static void four_columns(int64_t m, const double *restrict a,
                                     int64_t lda, const double *x,
                                     double *restrict r, double *restrict den) {
  const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
  const double y0 = fabs(x0), y1 = fabs(x1), y2 = fabs(x2), y3 = fabs(x3);
  const double *restrict a1 = a + lda, *restrict a2 = a + 2 * lda;
  const double *restrict a3 = a + 3 * lda;
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    r[i] -= (a[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3);
    den[i] += (fabs(a[i]) * y0 + fabs(a1[i]) * y1) +
              (fabs(a2[i]) * y2 + fabs(a3[i]) * y3);
  }
}

HONE_VECTOR static void one_column(int64_t m, const double *restrict a,
                                   double x, double *restrict r,
                                   double *restrict den) {
  const double y = fabs(x);
#pragma omp simd
  for (int64_t i = 0; i < m; i++) {
    r[i] -= a[i] * x;
    den[i] += fabs(a[i]) * y;
  }
}

HONE_VECTOR static void dot(int64_t n, const double *restrict a,
                            const double *restrict x, double *r, double *den) {
  double sum = 0.0, size = 0.0;
#pragma omp simd reduction(+ : sum, size)
  for (int64_t i = 0; i < n; i++) {
    sum += a[i] * x[i];
    size += fabs(a[i]) * fabs(x[i]);
  }
  *r -= sum;
  *den += size;
}

/* r = b - A x, den = |A| |x| + |b|, in one pass over A. */
static void residual(const group *g) {
  const int64_t n = g->n, chunk = HONE_MAX(256, 16384 / g->columns);
  for (int k = 0; k < g->columns; k++)
    for (int64_t i = 0; i < n; i++) {
      g->r[i + k * n] = g->b[i + k * g->ldb];
      g->den[i + k * n] = fabs(g->r[i + k * n]);
    }
  for (int64_t from = 0; from < n && !g->trans; from += chunk) {
    const int64_t m = HONE_MIN(chunk, n - from);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
      for (int64_t k = 0; k < g->columns; k++)
        four_columns(m, g->a + from + j * n, n, g->x + j + k * n,
                     g->r + from + k * n, g->den + from + k * n);
    for (; j < n; j++)
      for (int64_t k = 0; k < g->columns; k++)
        one_column(m, g->a + from + j * n, g->x[j + k * n], g->r + from + k * n,
                   g->den + from + k * n);
  }
  for (int64_t j = 0; j < n && g->trans; j++)
    for (int64_t k = 0; k < g->columns; k++)
      dot(n, g->a + j * n, g->x + k * n, g->r + j + k * n, g->den + j + k * n);
}

/* omega = max_i |r_i| / den_i; a bound of what gradual underflow may have taken
   from r_i and den_i is added to both. The result is NaN if r or den has a NaN.
 */
static double backward_error(int64_t n, const double *r, const double *den) {
  const double tiny = (double)(n + 1) * 0x1p-1074;
  double omega = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double size = fabs(r[i]);
    double w = size <= 0.0 ? 0.0 : (size + tiny) / (den[i] + tiny);
    omega = w <= omega ? omega : w;
    if (isnan(omega))
      return omega;
  }
  return omega;
}

/* One step for every column that is still open: measures omega of the iterate
   g->x, copies it to best if it is better, and adds a correction to g->x,
   unless the goal is met, omega has not halved, or the step is the last.
   Returns the number of columns that stay open. */
static int step(const hone_lapack_factors *f, const group *g, char trans,
                bool last, double *best, int64_t ldbest, double *omega,
                bool *open) {
  const int64_t n = g->n;
  const size_t bytes = (size_t)n * sizeof(double);
  int left = 0;
  residual(g);
  for (int64_t k = 0; k < g->columns; k++) {
    double *x = g->x + k * n, *r = g->r + k * n;
    if (!open[k])
      continue;
    const double was = omega[k], now = backward_error(n, r, g->den + k * n);
    const bool first = isnan(was), better = now < was;
    open[k] = !last && now > GOAL && (first || now <= 0.5 * was);
    if (better)
      memcpy(best + k * ldbest, x, bytes);
    if (first || better)
      omega[k] = now;
    if (!open[k] || hone_lapack_backsolve(f, trans, 1, r, (int)n) != 0) {
      open[k] = false;
      continue;
    }
    for (int64_t i = 0; i < n; i++) /* x = x + inv(LU) (b - A x) */
      x[i] += r[i];
    left++;
  }
  return left;
}

static double worst(int columns, const double *omega) {
  double most = 0.0;
  for (int k = 0; k < columns; k++)
    most = omega[k] <= most ? most : omega[k];
  return most;
}

double hone_lapack_refine(const hone_lapack_factors *f, const double *a,
                          char trans, int nrhs, const double *b, int ldb,
                          double *x, int ldx) {
  const int64_t n = f->n;
  const int columns = HONE_MIN(nrhs, (int)AT_ONCE);
  double *work = malloc((size_t)(3 * n * columns) * sizeof *work);
  double most = 0.0;
  if (work == NULL)
    return HONE_NAN;
  for (int at = 0; at < nrhs; at += columns) {
    double omega[AT_ONCE];
    bool open[AT_ONCE];
    group g = {.n = n,
               .a = a,
               .trans = trans != 'N',
               .columns = HONE_MIN(columns, nrhs - at),
               .b = b + (int64_t)at * ldb,
               .ldb = ldb,
               .x = work,
               .r = work + n * columns,
               .den = work + 2 * n * columns};
    double *best = x + (int64_t)at * ldx;
    for (int64_t k = 0; k < g.columns; k++) {
      memcpy(g.x + k * n, best + k * ldx, (size_t)n * sizeof *x);
      omega[k] = HONE_NAN;
      open[k] = true;
    }
    /* There is one step more than corrections, to measure the last iterate. */
    for (int i = 0; i <= STEPS; i++)
      if (step(f, &g, trans, i == STEPS, best, ldx, omega, open) == 0)
        break;
    double here = worst(g.columns, omega);
    most = here <= most ? most : here;
  }
  free(work);
  return most;
}
