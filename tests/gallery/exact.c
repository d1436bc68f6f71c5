/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and columns are scaled by powers of two until all entries are integers
   without common factors of two. Then [A B] is reduced by Bareiss's
   fraction-free elimination to [det(A) I, N], so that X = N / det(A). */
#include "tests/gallery/exact.h"

#include <gmp.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct exact_system {
  int64_t n, nrhs;
  bool singular, negative; /* negative: rows were exchanged an odd number of
                              times */
  mpz_t *m;                /* n x (n + nrhs), by rows */
  mpz_t det;               /* of the scaled matrix, with exchanged rows */
  int64_t *row, *column;   /* exponents: a_ij = m_ij 2^(row_i + column_j) */
  int64_t *shift;          /* exponents of the right-hand sides */
};

static void *memory(int64_t count, size_t size) {
  void *p = calloc(count > 0 ? (size_t)count : 1, size);
  if (p == NULL) {
    (void)fprintf(stderr, "exact: out of memory\n");
    abort();
  }
  return p;
}

/* v = *odd 2^e with an odd integer; e is INT64_MAX for zero. */
static int64_t split(double v, int64_t *odd) {
  int e = 0;
  *odd = (int64_t)ldexp(frexp(v, &e), 53);
  if (*odd == 0)
    return INT64_MAX;
  e -= 53;
  for (; *odd % 2 == 0; e++)
    *odd /= 2;
  return e;
}

/* to = v 2^-e, an integer. */
static void set(mpz_t to, double v, int64_t e) {
  int64_t odd = 0;
  const int64_t own = split(v, &odd);
  mpz_set_si(to, odd);
  if (odd != 0)
    mpz_mul_2exp(to, to, (mp_bitcnt_t)(own - e));
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Chooses the exponents and fills m. */
static void load(exact_system *e, const double *a, int64_t lda, const double *b,
                 int64_t ldb) {
  const int64_t n = e->n, wide = n + e->nrhs;
  int64_t odd;
  for (int64_t i = 0; i < n; i++) {
    int64_t low = INT64_MAX;
    for (int64_t j = 0; j < n; j++)
      low = least(low, split(a[i + j * lda], &odd));
    e->row[i] = low == INT64_MAX ? 0 : low;
  }
  for (int64_t j = 0; j < n; j++) {
    int64_t low = INT64_MAX;
    for (int64_t i = 0; i < n; i++) {
      const int64_t own = split(a[i + j * lda], &odd);
      low = own == INT64_MAX ? low : least(low, own - e->row[i]);
    }
    e->column[j] = low == INT64_MAX ? 0 : low;
  }
  for (int64_t c = 0; c < e->nrhs; c++) {
    int64_t low = INT64_MAX;
    for (int64_t i = 0; i < n; i++) {
      const int64_t own = split(b[i + c * ldb], &odd);
      low = own == INT64_MAX ? low : least(low, own - e->row[i]);
    }
    e->shift[c] = low == INT64_MAX ? 0 : low;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++)
      set(e->m[i * wide + j], a[i + j * lda], e->row[i] + e->column[j]);
    for (int64_t c = 0; c < e->nrhs; c++)
      set(e->m[i * wide + n + c], b[i + c * ldb], e->row[i] + e->shift[c]);
  }
}

/* Brings the smallest entry of column k that is not zero to row k. */
static bool pivot(exact_system *e, int64_t k) {
  const int64_t wide = e->n + e->nrhs;
  int64_t best = -1;
  for (int64_t i = k; i < e->n; i++)
    if (mpz_sgn(e->m[i * wide + k]) != 0 &&
        (best < 0 || mpz_cmpabs(e->m[i * wide + k], e->m[best * wide + k]) < 0))
      best = i;
  if (best < 0)
    return false;
  for (int64_t j = 0; j < wide && best > k; j++)
    mpz_swap(e->m[k * wide + j], e->m[best * wide + j]);
  e->negative = e->negative != (best > k);
  return true;
}

/* After step k the first k + 1 columns are those of the leading minor times the
   identity, and all entries are minors, so that the divisions are exact. */
static void eliminate(exact_system *e) {
  const int64_t n = e->n, wide = n + e->nrhs;
  mpz_t p, q;
  mpz_inits(p, q, NULL);
  mpz_set_si(e->det, 1);
  for (int64_t k = 0; k < n && !e->singular; k++) {
    e->singular = !pivot(e, k);
    for (int64_t i = 0; i < n && !e->singular; i++) {
      if (i == k)
        continue;
      mpz_set(q, e->m[i * wide + k]);
      for (int64_t j = k; j < wide; j++) {
        mpz_mul(p, e->m[i * wide + j], e->m[k * wide + k]);
        mpz_submul(p, q, e->m[k * wide + j]);
        mpz_divexact(e->m[i * wide + j], p, e->det);
      }
    }
    mpz_set(e->det, e->m[k * wide + k]);
  }
  if (e->singular)
    mpz_set_si(e->det, 0);
  mpz_clears(p, q, NULL);
}

exact_system *exact_solve(int64_t n, int64_t nrhs, const double *a, int64_t lda,
                          const double *b, int64_t ldb) {
  exact_system *e = memory(1, sizeof *e);
  e->n = n;
  e->nrhs = nrhs;
  e->m = memory(n * (n + nrhs), sizeof *e->m);
  e->row = memory(n, sizeof *e->row);
  e->column = memory(n, sizeof *e->column);
  e->shift = memory(nrhs, sizeof *e->shift);
  mpz_init(e->det);
  for (int64_t k = 0; k < n * (n + nrhs); k++)
    mpz_init(e->m[k]);
  load(e, a, lda, b, ldb);
  eliminate(e);
  return e;
}

void exact_free(exact_system *e) {
  if (e == NULL)
    return;
  for (int64_t k = 0; k < e->n * (e->n + e->nrhs); k++)
    mpz_clear(e->m[k]);
  mpz_clear(e->det);
  free(e->m);
  free(e->row);
  free(e->column);
  free(e->shift);
  free(e);
}

bool exact_singular(const exact_system *e) { return e->singular; }

double exact_determinant(const exact_system *e, int64_t *exponent) {
  long own = 0;
  const double f = mpz_get_d_2exp(&own, e->det);
  *exponent = own;
  for (int64_t i = 0; i < e->n; i++)
    *exponent += e->row[i] + e->column[i];
  return e->negative ? -f : f;
}

/* |x - N / det 2^power|, with N = m_(i, n + c). */
static long double difference(const exact_system *e, int64_t i, int64_t c,
                              double x) {
  const int64_t n = e->n, power = e->shift[c] - e->column[i];
  int64_t odd = 0, low = split(x, &odd);
  long top = 0, bottom = 0;
  mpz_t p, q;
  mpz_inits(p, q, NULL);
  low = odd == 0 ? power : least(low, power);
  set(p, x, low); /* x = p 2^low */
  mpz_mul(p, p, e->det);
  mpz_mul_2exp(q, e->m[i * (n + e->nrhs) + n + c], (mp_bitcnt_t)(power - low));
  mpz_sub(p, p, q);
  const double f = mpz_get_d_2exp(&top, p);
  const double d = mpz_get_d_2exp(&bottom, e->det);
  mpz_clears(p, q, NULL);
  const int64_t scale = top - bottom + low;
  return fabsl((long double)f / (long double)d) == 0.0L ? 0.0L
         : scale > 16000                                ? (long double)INFINITY
         : scale < -16000
             ? 0x1p-16000L
             : ldexpl(fabsl((long double)f / (long double)d), (int)scale);
}

long double exact_solution(const exact_system *e, int64_t i, int64_t c) {
  const long double size = difference(e, i, c, 0.0);
  const int sign = mpz_sgn(e->m[i * (e->n + e->nrhs) + e->n + c]);
  return sign * mpz_sgn(e->det) < 0 ? -size : size;
}

long double exact_error(const exact_system *e, int64_t c, const double *x,
                        long double *components) {
  long double most = 0.0L, size = 0.0L;
  bool finite = true;
  for (int64_t i = 0; i < e->n; i++) {
    const bool good = isfinite(x[i]);
    const long double d =
        good ? difference(e, i, c, x[i]) : (long double)INFINITY;
    finite = finite && good;
    most = fmaxl(most, d);
    size = fmaxl(size, fabsl((long double)x[i]));
    if (components)
      components[i] = d;
  }
  if (!finite || (most > 0.0L && !(size > 0.0L)))
    return (long double)INFINITY;
  return size > 0.0L ? most / size : 0.0L;
}
