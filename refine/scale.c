/* SPDX-License-Identifier: BSD-3-Clause */
/* Scaling by powers of two, in double precision: exact, and undone on x.

     S = R A C
     r_i = r_i / sqrt(max_j |s_ij|)      rounded to powers of two,
     c_j = c_j / sqrt(max_i |s_ij|)      in a few sweeps

   The square roots of rows and columns are taken at once because of
   stiffness-like matrices (D K D with mixed units): there, one pass of row
   scaling leaves refinement in single precision stagnating, whereas two or
   three of these sweeps bring it to 4 corrections. Next to read: ladder.c,
   which scales before it factors. */
#include "refine/scale.h"
#include "base/vectors.h"
#include "refine/refine.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

enum {
  /* Each sweep halves the range of the exponents: 4 suffice for 10^16, 9 for
     the whole of double precision. */
  SWEEPS = 12,
  /* Scaling ends when rows and columns are within 2^6 of one another, */
  ALIKE_EXP = 6,
  /* and within 2^+-60 of 1. */
  NEAR_ONE_EXP = 60,
  /* An exponent below that of every number: there is none yet. */
  NO_EXPONENT = -100000
};

/* Exponents of the smallest and the largest row or column maximum. */
static void exponent_range(int64_t n, const hone_inspection *inspection,
                           int *low, int *high) {
  double min = HONE_INF, max = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double row = inspection->row_max[i], col = inspection->col_max[i];
    min = HONE_MIN(min, HONE_MIN(row, col));
    max = HONE_MAX(max, HONE_MAX(row, col));
  }
  *low = min > 0.0 ? ilogb(min) : -2 * HONE_MAX_EXP;
  *high = isfinite(max) && max > 0.0 ? ilogb(max) : 2 * HONE_MAX_EXP;
}

/* Half of the exponent that would bring max into [1/2, 1). */
static int half_step(double max) {
  if (!(max > 0.0) ||
      !isfinite(max)) /* max underflowed or overflowed in scaling */
    return max > 0.0 ? -HONE_MAX_EXP / 2 : HONE_MAX_EXP / 2;
  int e = ilogb(max) + 1;
  return -(e >= 0 ? e / 2 : (e - 1) / 2);
}

static int clamp_exp(int e) {
  return HONE_MAX(-HONE_MAX_EXP, HONE_MIN(e, HONE_MAX_EXP));
}

/* R 2^k and C 2^-k make the same S for every k. Takes the k for which the
   largest exponent of both in magnitude is smallest, so that neither they nor
   R A, A C and C v leave the range of double where another k would do. Where R
   = C, k is 0. */
static void centre(int64_t n, hone_scaling *s) {
  int above = INT_MIN, below = INT_MIN; /* what k adds to, and takes from */
  for (int64_t i = 0; i < n; i++) {
    above = HONE_MAX(above, HONE_MAX(s->row_exp[i], -s->col_exp[i]));
    below = HONE_MAX(below, HONE_MAX(-s->row_exp[i], s->col_exp[i]));
  }
  const int k = (below - above) / 2;
  for (int64_t i = 0; i < n; i++) {
    s->row_exp[i] = clamp_exp(s->row_exp[i] + k);
    s->col_exp[i] = clamp_exp(s->col_exp[i] - k);
    s->row[i] = hone_pow2(s->row_exp[i]);
    s->col[i] = hone_pow2(s->col_exp[i]);
  }
}

int hone_view_inspect(const hone_inspection_view *view,
                      const hone_scaling *scaling,
                      hone_inspection *inspection) {
  const int64_t n = view->a->n;
  if (view->engine == NULL) {
    view->a->op->inspect(view->a, view->pool, scaling, view->scratch,
                         inspection);
    return HONE_OK;
  }
  const double *row_sum = view->scratch, *col_sum = view->scratch + n;
  inspection->symmetry = HONE_SYMMETRY_UNKNOWN;
  int st = view->engine->inspect(view->self, view->a, scaling, view->scratch,
                                 inspection);
  inspection->bad_row = inspection->bad_col = -1;
  if (st != HONE_OK)
    return st;
  for (int64_t j = 0; j < n && inspection->bad_row < 0; j++)
    if (!isfinite(inspection->col_max[j]))
      inspection->bad_row = inspection->bad_col = 0;
  inspection->norm1 = hone_largest_sum(n, col_sum);
  inspection->norm_inf = hone_largest_sum(n, row_sum);
  return HONE_OK;
}

int hone_scale_find(const hone_inspection_view *view,
                    hone_inspection *inspection, hone_scaling *scaling) {
  const int64_t n = view->a->n;
  scaling->used = false;
  for (int64_t i = 0; i < n; i++) {
    scaling->row_exp[i] = scaling->col_exp[i] = 0;
    scaling->row[i] = scaling->col[i] = 1.0;
  }
  int last = INT_MAX;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    int low, high;
    exponent_range(n, inspection, &low, &high);
    if (high - low <= ALIKE_EXP && high <= NEAR_ONE_EXP && low >= -NEAR_ONE_EXP)
      break;
    if (sweep > 1 && high - low >= last) /* no longer gaining */
      break;
    last = high - low;
    for (int64_t i = 0; i < n; i++) {
      scaling->row_exp[i] += half_step(inspection->row_max[i]);
      scaling->col_exp[i] += half_step(inspection->col_max[i]);
    }
    centre(n, scaling);
    scaling->used = true;
    int st = hone_view_inspect(view, scaling, inspection);
    if (st != HONE_OK)
      return st;
  }
  return HONE_OK;
}

/* max_i |sign e_i + k|, or a bound on it. */
HONE_VECTOR static int64_t largest_exponent(int64_t n, const int *e, int k) {
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

/* to_i = 2^(sign e_i + k) from_i, where every power of two is a normal
   number. */
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
  else if (e != NULL && largest_exponent(n, e, k) <= HONE_MAX_EXP)
    multiply_each(n, e, sign, k, from, to);
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = hone_shift_entry(from[i], (e ? sign * e[i] : 0) + k);
}

/* *top = the largest sum of e_i and the exponent of r_i (as frexp gives it)
   over the nonzero r_i. Returns false if an r_i is neither normal nor zero. */
HONE_VECTOR static bool top_of_normal(int64_t n, const int *e,
                                      const hone_entry *r, int *top) {
  int max = NO_EXPONENT, abnormal = 0;
#pragma omp simd reduction(max : max) reduction(| : abnormal)
  for (int64_t i = 0; i < n; i++) {
    const double size = hone_abs1(r[i]);
    int64_t bits;
    memcpy(&bits, &size, sizeof bits);
    const int exponent = (int)(bits >> 52) & 2047;
    const int is = exponent > 0 ? exponent - 1022 + e[i] : NO_EXPONENT;
    abnormal |= (exponent == 2047) | ((exponent == 0) & (r[i] != 0.0));
    max = is > max ? is : max;
  }
  *top = max;
  return abnormal == 0;
}

/* The largest exponent of the finite entries of 2^row_exp r, as frexp gives
   it. */
static int top_exponent(int64_t n, const int *row_exp, const hone_entry *r) {
  int top = NO_EXPONENT;
  if (row_exp == NULL) {
    const double max = hone_max_abs(n, r);
    return max > 0.0 && max <= DBL_MAX ? ilogb(max) + 1 : 0;
  }
  if (!top_of_normal(n, row_exp, r, &top)) {
    top = NO_EXPONENT;
    for (int64_t i = 0; i < n; i++)
      if (r[i] != 0.0 && hone_abs1(r[i]) <= DBL_MAX)
        top = HONE_MAX(top, ilogb(hone_abs1(r[i])) + 1 + row_exp[i]);
  }
  return top > NO_EXPONENT ? top : 0;
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
