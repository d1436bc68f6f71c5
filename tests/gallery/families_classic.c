/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices that have a name: from Higham's Test Matrix Toolbox (1995), and
   Wilkinson's and Trefethen's. */
#include "tests/gallery/families.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.141592653589793;

void gallery_make_hilbert(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = 1.0 / (double)(i + j + 1);
}

/* The inverse of Hilbert's matrix has the entries (-1)^(i+j) (i+j+1) binom(n+i,
   n-j-1) binom(n+j, n-i-1) binom(i+j, i)^2, with indices from 0. */
static double binomial(int64_t n, int64_t k) {
  double b = 1.0;
  for (int64_t i = 1; i <= k; i++)
    /* Exact, as each quotient is a binomial coefficient. */
    b = b * (double)(n - k + i) / (double)i;
  return b;
}

void gallery_make_inverse_hilbert(gallery_task *t) {
  const int64_t n = t->n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double c = binomial(i + j, i);
      double v = (double)(i + j + 1) * binomial(n + i, n - j - 1) *
                 binomial(n + j, n - i - 1) * c * c;
      *gallery_at(t, i, j) = (i + j) % 2 ? -v : v;
    }
}

void gallery_make_cauchy(gallery_task *t) {
  double *x = gallery_memory(2 * t->n, sizeof *x);
  for (int64_t i = 0; i < 2 * t->n; i++)
    x[i] = gallery_between(&t->rng, 0.5, (double)t->n);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = 1.0 / (x[i] + x[t->n + j]);
  free(x);
}

void gallery_make_lotkin(gallery_task *t) {
  gallery_make_hilbert(t);
  for (int64_t j = 0; j < t->n; j++)
    *gallery_at(t, 0, j) = 1.0;
}

void gallery_make_vandermonde(gallery_task *t) {
  for (int64_t i = 0; i < t->n; i++) {
    double x = gallery_between(&t->rng, -1.0, 1.0), power = 1.0;
    for (int64_t j = 0; j < t->n; j++, power *= x)
      *gallery_at(t, i, j) = power;
  }
}

void gallery_make_growth(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = i == j || j == t->n - 1 ? 1.0
                             : i > j                 ? -t->parameter
                                                     : 0.0;
}

void gallery_make_kahan(gallery_task *t) {
  const double s = sin(t->parameter), c = cos(t->parameter);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) =
          i > j ? 0.0 : pow(s, (double)i) * (i == j ? 1.0 : -c);
}

void gallery_make_frank(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = i > j + 1 ? 0.0 : (double)(t->n - (i > j ? i : j));
}

/* U^T U, where U is unit upper triangular with -1 above the diagonal. */
void gallery_make_moler(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) =
          i == j ? (double)(i + 1) : (double)((i < j ? i : j) - 1);
}

void gallery_make_minij(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = (double)((i < j ? i : j) + 1);
}

/* Entry (i, j) of the derivative at the points cos(pi k / m), k = 0 .. m. The
   diagonal is the negative sum of the rest of the row. */
static double derivative(int64_t m, int64_t i, int64_t j) {
  const double h = PI / (double)m;
  if (i == j) {
    double sum = 0.0;
    for (int64_t k = 0; k <= m; k++)
      sum -= k == i ? 0.0 : derivative(m, i, k);
    return sum;
  }
  double ci = i == 0 || i == m ? 2.0 : 1.0, cj = j == 0 || j == m ? 2.0 : 1.0;
  /* x_i - x_j without cancellation. */
  double apart =
      -2.0 * sin(0.5 * h * (double)(i + j)) * sin(0.5 * h * (double)(i - j));
  return ((i + j) % 2 ? -1.0 : 1.0) * ci / cj / apart;
}

/* Without the first row and column, so that u = 0 at the point 1. */
void gallery_make_chebyshev_1(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = derivative(t->n, i + 1, j + 1);
}

/* The square of the derivative at the inner points only. */
void gallery_make_chebyshev_2(gallery_task *t) {
  const int64_t n = t->n, m = n + 1;
  double *d = gallery_memory((m + 1) * (m + 1), sizeof *d);
  for (int64_t j = 0; j <= m; j++)
    for (int64_t i = 0; i <= m; i++)
      d[i + j * (m + 1)] = derivative(m, i, j);
  gallery_zero(t);
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k <= m; k++)
      for (int64_t i = 0; i < n; i++)
        *gallery_at(t, i, j) +=
            d[i + 1 + k * (m + 1)] * d[k + (j + 1) * (m + 1)];
  free(d);
}
