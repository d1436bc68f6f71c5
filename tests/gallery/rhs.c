/* SPDX-License-Identifier: BSD-3-Clause */
/* Right-hand sides for the gallery's matrices. */
#include "base/lapack.h"
#include "tests/gallery/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const gallery_rhs_names[] = {
    "random", "A*ones", "A*graded",  "unit",  "zero",
    "tiny",   "huge",   "left null", "A*few", "A*differing"};
const int gallery_rhs_count = GALLERY_B_DIFFERING;

/* The exponent of the largest entry; 0 for a matrix of zeros. */
static int size_of(int64_t n, const double *a, int64_t lda) {
  double max = 0.0;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      max = fmax(max, fabs(a[i + j * lda]));
  return max > 0.0 ? ilogb(max) : 0;
}

void gallery_multiply(int64_t n, const double *a, int64_t lda, const double *x,
                      double *b, double *low) {
  memset(b, 0, (size_t)n * sizeof *b);
  memset(low, 0, (size_t)n * sizeof *low);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double p = a[i + j * lda] * x[j];
      const double e = fma(a[i + j * lda], x[j], -p);
      const double s = b[i] + p, z = s - b[i];
      low[i] += ((b[i] - (s - z)) + (p - z)) + e;
      b[i] = s;
    }
  for (int64_t i = 0; i < n; i++)
    b[i] += low[i];
}

/* A times a vector of ones, or of 12 decades and both signs, small enough for
   the product to be in range. */
static void product(int64_t n, const double *a, int64_t lda, double decades,
                    gallery_rng *rng, double *b) {
  double *x = gallery_memory(2 * n, sizeof *x);
  int e = size_of(n, a, lda) + ilogb((double)n) + (int)(2.0 * decades) + 3;
  for (int64_t i = 0; i < n; i++) {
    x[i] = decades > 0.0 ? pow(10.0, gallery_between(rng, -0.5, 0.5) * decades)
                         : 1.0;
    if (decades > 0.0 && gallery_below(rng, 2))
      x[i] = -x[i];
    x[i] = ldexp(x[i], e > 1020 ? 1020 - e : 0);
  }
  gallery_multiply(n, a, lda, x, b, x + n);
  free(x);
}

/* Two steps of inverse iteration with A A^T, from its LU in double. */
static void left_null(int64_t n, const double *a, int64_t lda, double *b) {
  double *lu = gallery_memory(n * n, sizeof *lu);
  int *pivots = gallery_memory(n, sizeof *pivots);
  const int order = (int)n, one = 1, e = size_of(n, a, lda);
  int info;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      lu[i + j * n] = ldexp(a[i + j * lda], -e);
  dgetrf_(&order, &order, lu, &order, pivots, &info);
  for (int64_t i = 0; i < n; i++) /* A is singular in double */
    if (!(fabs(lu[i + i * n]) > 0x1p-60))
      lu[i + i * n] = 0x1p-60;
  for (int step = 0; step < 4; step++) {
    double max = 0.0;
    dgetrs_(step % 2 ? "T" : "N", &order, &one, lu, &order, pivots, b, &order,
            &info);
    for (int64_t i = 0; i < n; i++)
      max = fmax(max, fabs(b[i]));
    for (int64_t i = 0; i < n; i++) {
      b[i] /= max;
      b[i] = isfinite(b[i]) ? b[i] : 1.0; /* out of range: any number will do */
    }
  }
  free(lu);
  free(pivots);
}

/* Small integers, so that b is exact if A is of small integers. Their sum may
   be zero. */
static void few(int64_t n, const double *a, int64_t lda, gallery_rng *rng,
                double *b) {
  double *x = gallery_memory(2 * n, sizeof *x);
  const int e = size_of(n, a, lda);
  for (int64_t k = gallery_below(rng, 3); k >= 0; k--)
    x[gallery_below(rng, n)] =
        ldexp((double)(gallery_below(rng, 9) - 4), e > 1000 ? 1000 - e : 0);
  gallery_multiply(n, a, lda, x, b, x + n);
  free(x);
}

void gallery_rhs(int kind, int64_t n, const double *a, int64_t lda,
                 uint64_t seed, double *b) {
  gallery_rng rng = {seed ^ 0xbb67ae8584caa73bu};
  const int e = kind == GALLERY_B_RANDOM ? size_of(n, a, lda)
                : kind == GALLERY_B_TINY ? -1000
                : kind == GALLERY_B_HUGE ? 1000
                                         : 0;
  for (int64_t i = 0; i < n; i++) {
    b[i] = ldexp(gallery_between(&rng, -1.0, 1.0), e);
    if (kind == GALLERY_B_UNIT || kind == GALLERY_B_ZERO)
      b[i] = 0.0;
  }
  if (kind == GALLERY_B_UNIT)
    b[gallery_below(&rng, n)] = 1.0;
  if (kind == GALLERY_B_ONES || kind == GALLERY_B_GRADED)
    product(n, a, lda, kind == GALLERY_B_ONES ? 0.0 : 12.0, &rng, b);
  if (kind == GALLERY_B_FEW)
    few(n, a, lda, &rng, b);
  if (kind == GALLERY_B_LEFT_NULL)
    left_null(n, a, lda, b);
}
