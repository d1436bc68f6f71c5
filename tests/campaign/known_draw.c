/* SPDX-License-Identifier: BSD-3-Clause */
/* The systems of known.h. All numbers are whole, or whole numbers times powers
   of two, and so small that every sum of a right-hand side is below 2^53: no
   double is rounded. */
#include "tests/campaign/known.h"

#include <math.h>
#include <string.h>

enum {
  LARGE = 1 << 18,   /* entries of the first families, at most */
  SOLUTION = 1000,   /* entries of a solution */
  FACTOR = 2,        /* of the factors of a unimodular matrix */
  VECTORS = 1000,    /* of the vectors of a matrix of rank one */
  EXPONENT = 30,     /* of powers of two, at most */
  DETERMINED_N = 14, /* up to here determinants of entries up to 3 are found */
};

const known_family known_families[KNOWN_FAMILIES] = {
    {"whole numbers to 2^18", 2, KNOWN_MOST_N, false},
    {"rows and columns scaled by powers of two", 2, KNOWN_MOST_N, false},
    {"a column is the sum of two others", 3, KNOWN_MOST_N, false},
    {"rank one and small", 2, KNOWN_MOST_N, false},
    {"unimodular, L U", 2, DETERMINED_N, false},
    {"whole numbers to 3", 2, DETERMINED_N, true},
    {"-1, 0 and 1", 2, DETERMINED_N, true}};
enum { ENTRIES, SCALED, SUM, RANK_ONE, UNIMODULAR, TO_THREE, TO_ONE };

static double whole(gallery_rng *rng, int64_t most) {
  return (double)(gallery_below(rng, 2 * most + 1) - most);
}

static void fill(gallery_rng *rng, int64_t count, int64_t most, double *v) {
  for (int64_t i = 0; i < count; i++)
    v[i] = whole(rng, most);
}

/* c = c + a b */
static void add_product(int parts, const double *a, const double *b,
                        double *c) {
  c[0] += a[0] * b[0];
  if (parts == 1)
    return;
  c[0] -= a[1] * b[1];
  c[1] += a[0] * b[1] + a[1] * b[0];
}

/* c (n x columns) = a b, both of n rows. */
static void multiply(const known_system *s, int64_t columns, const double *a,
                     const double *b, double *c) {
  const int64_t n = s->n;
  const int p = s->parts;
  memset(c, 0, (size_t)(n * columns * p) * sizeof *c);
  for (int64_t j = 0; j < columns; j++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < n; i++)
        add_product(p, a + (i + k * n) * p, b + (k + j * n) * p,
                    c + (i + j * n) * p);
}

/* The product of triangles with entries of magnitude 1 on their diagonals. */
static void make_unimodular(const known_system *s, gallery_rng *rng) {
  const int64_t n = s->n;
  const int p = s->parts;
  double l[DETERMINED_N * DETERMINED_N * 2] = {0};
  double u[DETERMINED_N * DETERMINED_N * 2] = {0};
  for (int64_t j = 0; j < n; j++) {
    fill(rng, (n - j) * p, FACTOR, l + (j + j * n) * p);
    fill(rng, j * p, FACTOR, u + j * n * p);
    memset(l + (j + j * n) * p, 0, (size_t)p * sizeof *l);
    l[(j + j * n) * p] = 1.0;
    u[(j + j * n) * p] = gallery_below(rng, 2) ? 1.0 : -1.0;
  }
  multiply(s, n, l, u, s->a);
}

/* u v^T + E, where entries of E are -1, 0 or 1. */
static void make_rank_one(const known_system *s, gallery_rng *rng) {
  const int64_t n = s->n;
  const int p = s->parts;
  double u[KNOWN_MOST_N * 2], v[KNOWN_MOST_N * 2];
  fill(rng, n * p, VECTORS, u);
  fill(rng, n * p, VECTORS, v);
  fill(rng, n * n * p, 1, s->a);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      add_product(p, u + i * p, v + j * p, s->a + (i + j * n) * p);
}

static void make_sum(const known_system *s, gallery_rng *rng) {
  const int64_t column = s->n * s->parts, at = gallery_below(rng, s->n);
  const double *one = s->a + (at + 1) % s->n * column;
  const double *other = s->a + (at + 2) % s->n * column;
  for (int64_t i = 0; i < column; i++)
    s->a[at * column + i] = one[i] + other[i];
}

static int exponent(gallery_rng *rng) {
  return (int)gallery_below(rng, 2 * EXPONENT + 1) - EXPONENT;
}

static void scale(int64_t count, int e, double *v, int64_t step, int parts) {
  for (int64_t i = 0; i < count; i++)
    for (int q = 0; q < parts; q++)
      v[i * step * parts + q] = ldexp(v[i * step * parts + q], e);
}

/* Scales the columns, and the solution against them, then the rows. */
static void scale_all(const known_system *s, gallery_rng *rng) {
  const int64_t n = s->n;
  const int p = s->parts;
  for (int64_t j = 0; j < n; j++) {
    const int e = exponent(rng);
    scale(n, e, s->a + j * n * p, 1, p);
    scale(1, -e, s->t + j * p, 1, p);
  }
  for (int64_t i = 0; i < n; i++) {
    const int e = exponent(rng);
    scale(n, e, s->a + i * p, n, p);
    scale(1, e, s->b + i * p, 1, p);
  }
}

/* Is the determinant of whole numbers 0? By elimination without fractions
   (Bareiss 1968), whose numbers are minors: by Hadamard's bound below 2^63
   here, and their products below 2^127. */
static bool is_singular(int64_t n, const double *a) {
  __int128 m[DETERMINED_N][DETERMINED_N], before = 1;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      m[i][j] = (__int128)a[i + j * n];
  for (int64_t k = 0; k + 1 < n; k++) {
    int64_t p = k;
    while (p < n && m[p][k] == 0)
      p++;
    if (p == n)
      return true;
    for (int64_t j = 0; p > k && j < n; j++) {
      const __int128 t = m[k][j];
      m[k][j] = m[p][j];
      m[p][j] = t;
    }
    for (int64_t i = k + 1; i < n; i++)
      for (int64_t j = k + 1; j < n; j++)
        m[i][j] = (m[i][j] * m[k][k] - m[i][k] * m[k][j]) / before;
    before = m[k][k];
  }
  return m[n - 1][n - 1] == 0;
}

bool known_make(const known_system *s, int family, uint64_t seed) {
  gallery_rng rng = {seed};
  const int64_t numbers = s->n * s->n * s->parts;
  fill(&rng, s->n * s->parts, SOLUTION, s->t);
  if (family == UNIMODULAR)
    make_unimodular(s, &rng);
  else if (family == RANK_ONE)
    make_rank_one(s, &rng);
  else
    fill(&rng, numbers,
         family == TO_THREE ? 3
         : family == TO_ONE ? 1
                            : (int64_t)LARGE,
         s->a);
  if (family == SUM)
    make_sum(s, &rng);
  multiply(s, 1, s->a, s->t, s->b);
  if (family == SCALED)
    scale_all(s, &rng);
  return family == SUM ||
         ((family == TO_THREE || family == TO_ONE) && is_singular(s->n, s->a));
}
