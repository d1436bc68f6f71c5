/* SPDX-License-Identifier: BSD-3-Clause */
/* Power-of-two scaling: exact, undone on x. Why square roots of rows and
   columns together: on stiffness-like matrices (D K D with mixed units) one
   pass of row scaling leaves single precision stagnating, two or three of
   these sweeps bring it to 4 corrections. */
#include "refine/scale.h"
#include "base/vectors.h"
#include "refine/refine.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum {
  SWEEPS = 12,     /* each halves the exponents' range: 4 for 10^16, 9 for the
                      whole of double precision */
  ALIKE_EXP = 6,   /* rows and columns within 2^6 of one another: leave */
  COMFORT_EXP = 20 /* and within 2^+-20 of 1 */
};

/* Exponents of the smallest and largest row or column maximum. */
static void range_of(int64_t n, const hone_inspection *seen, int *low,
                     int *high) {
  double min = HONE_INF, max = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double row = seen->row_max[i], col = seen->col_max[i];
    min = HONE_MIN(min, HONE_MIN(row, col));
    max = HONE_MAX(max, HONE_MAX(row, col));
  }
  *low = min > 0.0 ? ilogb(min) : -2 * HONE_MAX_EXP;
  *high = isfinite(max) && max > 0.0 ? ilogb(max) : 2 * HONE_MAX_EXP;
}

/* Half of the exponent that would bring max to [1/2, 1). */
static int half_step(double max) {
  if (!(max > 0.0) || !isfinite(max)) /* underflowed, overflowed in scaling */
    return max > 0.0 ? -HONE_MAX_EXP / 2 : HONE_MAX_EXP / 2;
  int e = ilogb(max) + 1;
  return -(e >= 0 ? e / 2 : (e - 1) / 2);
}

static int clamp_exp(int e) {
  return HONE_MAX(-HONE_MAX_EXP, HONE_MIN(e, HONE_MAX_EXP));
}

int hone_see(const hone_sight *sight, const hone_scaling *scaling,
             hone_inspection *seen) {
  const int64_t n = sight->a->n;
  if (sight->engine == NULL) {
    sight->a->op->inspect(sight->a, sight->pool, scaling, sight->scratch, seen);
    return HONE_OK;
  }
  const double *row_sum = sight->scratch, *col_sum = sight->scratch + n;
  int st = sight->engine->inspect(sight->self, sight->a, scaling,
                                  sight->scratch, seen);
  seen->bad_row = seen->bad_col = -1;
  if (st != HONE_OK)
    return st;
  for (int64_t j = 0; j < n && seen->bad_row < 0; j++)
    if (!isfinite(seen->col_max[j]))
      seen->bad_row = seen->bad_col = 0;
  seen->norm1 = hone_largest_sum(n, col_sum);
  seen->norm_inf = hone_largest_sum(n, row_sum);
  return HONE_OK;
}

int hone_scale_find(const hone_sight *sight, hone_inspection *seen,
                    hone_scaling *scaling) {
  const int64_t n = sight->a->n;
  scaling->used = false;
  for (int64_t i = 0; i < n; i++) {
    scaling->row_exp[i] = scaling->col_exp[i] = 0;
    scaling->row[i] = scaling->col[i] = 1.0;
  }
  int last = INT_MAX;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    int low, high;
    range_of(n, seen, &low, &high);
    if (high - low <= ALIKE_EXP && high <= COMFORT_EXP && low >= -COMFORT_EXP)
      break;
    if (sweep > 1 && high - low >= last) /* no longer gaining */
      break;
    last = high - low;
    for (int64_t i = 0; i < n; i++) {
      int row = scaling->row_exp[i] + half_step(seen->row_max[i]);
      int col = scaling->col_exp[i] + half_step(seen->col_max[i]);
      scaling->row_exp[i] = clamp_exp(row);
      scaling->col_exp[i] = clamp_exp(col);
      scaling->row[i] = hone_pow2(scaling->row_exp[i]);
      scaling->col[i] = hone_pow2(scaling->col_exp[i]);
    }
    scaling->used = true;
    int st = hone_see(sight, scaling, seen);
    if (st != HONE_OK)
      return st;
  }
  return HONE_OK;
}

/* Largest of sign e_i + k in magnitude, or a bound on it. */
HONE_VECTOR static int64_t farthest(int64_t n, const int *e, int k) {
  int max = 0, min = 0;
#pragma omp simd reduction(max : max) reduction(min : min)
  for (int64_t i = 0; i < n; i++) {
    max = e[i] > max ? e[i] : max;
    min = e[i] < min ? e[i] : min;
  }
  return HONE_MAX((int64_t)max, -(int64_t)min) + (k < 0 ? -k : k);
}

HONE_VECTOR static void multiply(int64_t n, double by, const hone_entry *from,
                                 hone_entry *to) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    to[i] = hone_times(by, from[i]);
}

/* All exponents are those of normal numbers. */
HONE_VECTOR static void multiply_each(int64_t n, const int *e, int sign, int k,
                                      const hone_entry *from, hone_entry *to) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const int64_t bits = (int64_t)(sign * e[i] + k + 1023) * (INT64_C(1) << 52);
    double by;
    memcpy(&by, &bits, sizeof by);
    to[i] = hone_times(by, from[i]);
  }
}

void hone_scale_by(int64_t n, const int *e, int sign, int k,
                   const hone_entry *from, hone_entry *to) {
  if (e == NULL && k >= -HONE_MAX_EXP && k <= HONE_MAX_EXP)
    multiply(n, hone_pow2(k), from, to);
  else if (e != NULL && farthest(n, e, k) <= HONE_MAX_EXP)
    multiply_each(n, e, sign, k, from, to);
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = hone_shift_entry(from[i], (e ? sign * e[i] : 0) + k);
}

/* Largest of e_i and r_i's exponent together, by frexp's convention, of what
   is not zero. False: some are neither normal nor zero. */
HONE_VECTOR static bool top_of_normal(int64_t n, const int *e,
                                      const hone_entry *r, int *top) {
  int max = -100000, odd = 0;
#pragma omp simd reduction(max : max) reduction(| : odd)
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_abs1(r[i]);
    int64_t bits;
    memcpy(&bits, &size, sizeof bits);
    const int exponent = (int)(bits >> 52) & 2047;
    const int is = exponent > 0 ? exponent - 1022 + e[i] : -100000;
    odd |= (exponent == 2047) | ((exponent == 0) & (r[i] != 0.0));
    max = is > max ? is : max;
  }
  *top = max;
  return odd == 0;
}

/* Largest exponent of 2^row_exp r, by frexp's convention; of what is finite. */
static int top_exponent(int64_t n, const int *row_exp, const hone_entry *r) {
  int top = -100000;
  if (row_exp == NULL) {
    const double max = hone_max_abs(n, r);
    return max > 0.0 && max <= DBL_MAX ? ilogb(max) + 1 : 0;
  }
  if (!top_of_normal(n, row_exp, r, &top)) {
    top = -100000;
    for (int64_t i = 0; i < n; i++)
      if (r[i] != 0.0 && hone_abs1(r[i]) <= DBL_MAX)
        top = HONE_MAX(top, ilogb(hone_abs1(r[i])) + 1 + row_exp[i]);
  }
  return top > -100000 ? top : 0;
}

int hone_scale_in(int64_t n, const int *row_exp, const hone_entry *r,
                  hone_entry *v) {
  const int k = -top_exponent(n, row_exp, r);
  hone_scale_by(n, row_exp, 1, k, r, v);
  return k;
}

void hone_scale_out(int64_t n, const int *col_exp, int k, hone_entry *v) {
  hone_scale_by(n, col_exp, 1, -k, v, v);
}
