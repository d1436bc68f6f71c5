/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex systems by way of real ones of twice the order; see either.h. */
#include "tests/gallery/either.h"

#include "tests/gallery/families.h"
#include "tests/gallery/wide.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad; /* holds products of doubles exactly */
#else
typedef long double quad;
#endif

void either_copy(int parts, int64_t n, const double *a, int64_t lda, bool turn,
                 bool conjugates, double *to) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double *from = a + (turn ? j + i * lda : i + j * lda) * parts;
      double *here = to + (i + j * n) * parts;
      here[0] = from[0];
      if (parts == 2)
        here[1] = conjugates ? -from[1] : from[1];
    }
}

void either_matrix(int parts, int64_t n, const double *a, int64_t lda,
                   double *m) {
  const int64_t order = parts * n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double *v = a + (i + j * lda) * parts;
      m[i + j * order] = v[0];
      if (parts == 1)
        continue;
      m[i + n + j * order] = v[1];
      m[i + (j + n) * order] = -v[1];
      m[i + n + (j + n) * order] = v[0];
    }
}

void either_vector(int parts, int64_t n, const double *v, double *stacked) {
  for (int64_t i = 0; i < n * parts; i++)
    stacked[i / parts + i % parts * n] = v[i];
}

void either_rhs(int kind, int parts, int64_t n, const double *a, int64_t lda,
                uint64_t seed, double *b) {
  if (parts == 1) {
    gallery_rhs(kind, n, a, lda, seed, b);
    return;
  }
  double *m = gallery_memory(4 * n * n + 2 * n, sizeof *m);
  double *stacked = m + 4 * n * n;
  either_matrix(parts, n, a, lda, m);
  gallery_rhs(kind, 2 * n, m, 2 * n, seed, stacked);
  for (int64_t i = 0; i < n; i++) {
    b[2 * i] = stacked[i];
    b[2 * i + 1] = stacked[n + i];
  }
  free(m);
}

void either_product(int parts, int64_t n, const double *a, int64_t lda,
                    const double *x, double *b) {
  const int64_t order = parts * n;
  double *m = gallery_memory(order * (order + 3), sizeof *m);
  double *stacked = m + order * order, *product = stacked + order;
  either_matrix(parts, n, a, lda, m);
  either_vector(parts, n, x, stacked);
  gallery_multiply(order, m, order, stacked, product, product + order);
  for (int64_t i = 0; i < order; i++)
    b[i] = product[i / parts + i % parts * n];
  free(m);
}

/* ---- The reference ---- */

void either_solve(reference *r, int parts, int64_t n, int64_t nrhs,
                  const double *a, const double *b) {
  const int64_t order = parts * n;
  double *m = gallery_memory(order * (order + nrhs), sizeof *m);
  double *stacked = m + order * order;
  either_matrix(parts, n, a, n, m);
  for (int64_t c = 0; c < nrhs; c++)
    either_vector(parts, n, b + c * order, stacked + c * order);
  reference_solve(r, order, nrhs, m, order, stacked, order);
  free(m);
}

long double either_miss(const reference *r, int parts, int64_t c, int64_t i,
                        const double *x) {
  const long double first = reference_miss(r, c, i, x[0]);
  return parts == 1 ? first
                    : hypotl(first, reference_miss(r, c, i + r->n / 2, x[1]));
}

long double either_distance(const reference *r, int parts, int64_t c,
                            const double *x) {
  long double apart = 0.0L, size = 0.0L;
  if (parts == 1)
    return reference_distance(r, c, x, true);
  for (int64_t i = 0; i < r->n / 2; i++) {
    const double *v = x + 2 * i;
    if (!either_finite(parts, v))
      return (long double)INFINITY;
    apart = fmaxl(apart, either_miss(r, parts, c, i, v));
    size = fmaxl(size, hypotl((long double)v[0], (long double)v[1]));
  }
  if (apart > 0.0L)
    return size > 0.0L ? apart / size : (long double)INFINITY;
  return 0.0L;
}

/* ---- Backward errors in moduli ---- */

/* (re, im) -= a x of complex numbers, in two words each: n rows of re, their
   second words, im, and those of im. den += |a| |x|. */
WIDE_LOOP static void measure(int64_t n, const double *restrict a, double re,
                              double im, double *restrict r,
                              double *restrict den) {
  const double size = __builtin_sqrt(re * re + im * im);
  for (int64_t i = 0; i < n; i++) {
    const double u = a[2 * i], v = a[2 * i + 1];
    double p, e, q, f, s, g, h;
    wide_product(-u, re, &p, &e);
    wide_product(v, im, &q, &f);
    wide_sum(r[i], p, &s, &g);
    wide_sum(s, q, &r[i], &h);
    r[i + n] += (e + f) + (g + h);
    wide_product(-u, im, &p, &e);
    wide_product(-v, re, &q, &f);
    wide_sum(r[i + 2 * n], p, &s, &g);
    wide_sum(s, q, &r[i + 2 * n], &h);
    r[i + 3 * n] += (e + f) + (g + h);
    den[i] += __builtin_sqrt(u * u + v * v) * size;
  }
}

/* The quotient of row i in quadruple precision. */
static double row_in_quad(int64_t n, const double *a, const double *x,
                          const double *b) {
  quad re = (quad)b[0], im = (quad)b[1];
  long double den = hypotl((long double)b[0], (long double)b[1]);
  for (int64_t j = 0; j < n; j++) {
    const double *v = a + 2 * j * n, *w = x + 2 * j;
    re -= (quad)v[0] * (quad)w[0] - (quad)v[1] * (quad)w[1];
    im -= (quad)v[0] * (quad)w[1] + (quad)v[1] * (quad)w[0];
    den += hypotl((long double)v[0], (long double)v[1]) *
           hypotl((long double)w[0], (long double)w[1]);
  }
  const long double r = hypotl((long double)re, (long double)im);
  return den > 0.0L ? (double)(r / den) : 0.0;
}

/* Is the square of every part of a column or of x a normal number, or zero? */
static bool squares(int64_t count, const double *v) {
  bool good = true;
  for (int64_t i = 0; i < count; i++)
    good = good && (!(fabs(v[i]) > 0.0) ||
                    (fabs(v[i]) >= 0x1p-400 && fabs(v[i]) <= 0x1p400));
  return good;
}

double either_omega(int parts, int64_t n, const double *a, const double *x,
                    const double *b) {
  if (parts == 1)
    return reference_omega(n, a, n, x, b);
  double *r = gallery_memory(5 * n, sizeof *r), *den = r + 4 * n, omega = 0.0;
  const bool plain = squares(2 * n * n, a) && squares(2 * n, x);
  for (int64_t i = 0; i < n; i++) {
    r[i] = b[2 * i];
    r[i + 2 * n] = b[2 * i + 1];
    den[i] = either_size(2, b + 2 * i);
    omega = either_finite(2, x + 2 * i) ? omega : (double)NAN;
  }
  for (int64_t j = 0; j < n && plain && !isnan(omega); j++)
    measure(n, a + 2 * j * n, x[2 * j], x[2 * j + 1], r, den);
  for (int64_t i = 0; i < n && !isnan(omega); i++) {
    const double re = r[i] + r[i + n], im = r[i + 2 * n] + r[i + 3 * n];
    const double q = plain && den[i] >= 0x1p-800 && den[i] <= 0x1p1000
                         ? hypot(re, im) / den[i]
                         : row_in_quad(n, a + 2 * i, x, b + 2 * i);
    omega = q <= omega ? omega : q;
  }
  free(r);
  return omega;
}

/* ---- Matrices ---- */

int either_families(int parts) {
  return parts == 1 ? gallery_count : gallery_complex_count;
}

void either_make(const gallery_family *family, int parts, int64_t n,
                 double parameter, uint64_t seed, double *a, int64_t lda) {
  if (parts == 1 || (family->properties & GALLERY_COMPLEX)) {
    gallery_make(family, n, parameter, seed, a, lda);
    return;
  }
  gallery_task t = {.n = n,
                    .lda = lda,
                    .parameter = parameter,
                    .a = a,
                    .rng = {seed ^ 0xa54ff53a5f1d36f1u}};
  gallery_make_complex(&t, family, seed);
}
