/* SPDX-License-Identifier: BSD-3-Clause */
/* Refines x with the factors that the real LAPACK made and residuals in
   double-double precision (residual.c). As a rule one correction brings the
   componentwise backward error below the unit roundoff. LAPACK's own x is the
   first iterate, and another one replaces it only if its backward error is
   smaller. */
#include "lapack/hidden.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 5 /* most corrections with LAPACK's factors, as in dgerfs_ */ };
static const double GOAL = 2.0 * HONE_EPS; /* rounding x may cause 1 HONE_EPS */

/* r = inv(op(A)) r with the factors; returns INFO. */
static int64_t correction(const hone_lapack_system *system, char trans,
                          int64_t n, hone_entry *r) {
  return system->hidden
             ? hone_lapack_hidden_backsolve(system->hidden, trans, 1, r, n)
             : hone_lapack_backsolve(system->f, trans, 1, r, n);
}

/* One step for every column that is still open: measures omega of the iterate
   g->x, copies it to best if it is better, and adds a correction to g->x,
   unless the goal is met, omega has not halved, or the step is the last.
   Returns the number of columns that stay open. */
static int step(const hone_lapack_system *system, const hone_lapack_group *g,
                bool last, hone_entry *best, int64_t ldbest, double *omega,
                bool *open) {
  const int64_t n = g->n;
  const size_t bytes = (size_t)n * sizeof(hone_entry);
  double measured[HONE_LAPACK_AT_ONCE];
  int left = 0;
  if (system->hidden)
    hone_lapack_hidden_residual(system->hidden, g, open, measured);
  else
    hone_lapack_residual(g, open, measured);
  for (int64_t k = 0; k < g->columns; k++) {
    hone_entry *x = g->x + k * n, *r = g->r + k * n;
    if (!open[k])
      continue;
    const double was = omega[k], now = measured[k];
    const bool first = isnan(was), better = now < was;
    open[k] = !last && now > GOAL && (first || now <= 0.5 * was);
    if (better)
      memcpy(best + k * ldbest, x, bytes);
    if (first || better)
      omega[k] = now;
    if (!open[k] || correction(system, g->trans, n, r) != 0) {
      open[k] = false;
      continue;
    }
    for (int64_t i = 0; i < n; i++) /* x = x + inv(LU) (b - A x) */
      x[i] += r[i];
    left++;
  }
  return left;
}

/* Returns the largest of most and the given numbers, and NaN if one is NaN. */
static double worst(double most, int columns, const double *omega) {
  for (int k = 0; k < columns; k++)
    most = isnan(most) || omega[k] <= most ? most : omega[k];
  return most;
}

double hone_lapack_refine_with(const hone_lapack_system *system, int64_t n,
                               char trans, int64_t nrhs, const hone_entry *b,
                               int64_t ldb, hone_entry *x, int64_t ldx) {
  const int64_t columns = HONE_MIN(nrhs, (int64_t)HONE_LAPACK_AT_ONCE);
  hone_entry *work = malloc((size_t)(3 * n * columns) * sizeof *work);
  double *den = malloc((size_t)(n * columns) * sizeof *den);
  double most = work != NULL && den != NULL ? 0.0 : HONE_NAN;
  for (int64_t at = 0; at < nrhs && work != NULL && den != NULL;
       at += columns) {
    double omega[HONE_LAPACK_AT_ONCE];
    bool open[HONE_LAPACK_AT_ONCE];
    hone_lapack_group g = {.n = n,
                           .lda = system->lda,
                           .a = system->a,
                           .diagonal = system->diagonal,
                           .uplo = system->uplo,
                           .symmetric = system->symmetric,
                           .hash = at == 0 ? system->hash : NULL,
                           .threads = system->threads,
                           .quick = hone_lapack_hidden_quick(system->hidden),
                           .trans = trans,
                           .columns = (int)HONE_MIN(columns, nrhs - at),
                           .b = b + at * ldb,
                           .ldb = ldb,
                           .x = work,
                           .r = work + n * columns,
                           .low = work + 2 * n * columns,
                           .den = den};
    hone_entry *best = x + at * ldx;
    for (int64_t k = 0; k < g.columns; k++) {
      memcpy(g.x + k * n, best + k * ldx, (size_t)n * sizeof *x);
      omega[k] = HONE_NAN;
      open[k] = true;
    }
    /* There is one step more than corrections, to measure the last iterate. */
    for (int i = 0; i <= system->steps; i++) {
      if (step(system, &g, i == system->steps, best, ldx, omega, open) == 0)
        break;
      g.hash = NULL;
    }
    most = worst(most, g.columns, omega);
  }
  free(work);
  free(den);
  return most;
}

double hone_lapack_refine(const hone_lapack_factors *f, const hone_entry *a,
                          char trans, int64_t nrhs, const hone_entry *b,
                          int64_t ldb, hone_entry *x, int64_t ldx) {
  const hone_lapack_system system = {
      .f = f, .a = a, .lda = f->n, .threads = 1, .steps = STEPS};
  return hone_lapack_refine_with(&system, f->n, trans, nrhs, b, ldb, x, ldx);
}
