/* SPDX-License-Identifier: BSD-3-Clause */
/* Null vectors by inverse iteration (Wielandt 1944; Golub & Van Loan 2013,
   section 8.2.2), in double precision, with the factors M of S = R A C:

     u = inv(M^T) z,   z = inv(M) u       each scaled back to size 1

   (complex: inv(M^H) z, and u^H takes the place of u^T below).

   If the certificate has found z, so has it u (deflation.c).

   Where one singular value lies far below the others, two iterations leave the
   left and right singular vectors u and z that belong to it. S z = 0 is A (C z)
   = 0, and u^T S = 0 is (R u)^T A = 0: the report tells of C z and R u. The
   motions of a structure that is not supported, for example, are found in the
   caller's own units. Next to read: the null_ fields of hone_report in
   api/hone.h. */
#include "refine/null_vector.h"

#include "base/vectors.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ITERATIONS = 2 };
/* Entries below DOMINANT times the largest do not dominate; entries within a
   factor of ALIKE count as equally large. */
static const double DOMINANT = 0.1, ALIKE = 1.0 + 1e-9;
/* A smaller part of the largest entry of a null vector is rounding error. */
static const double NOTHING = 1e-10;

static bool already_listed(const int64_t *index, int64_t count, int64_t i) {
  for (int64_t k = 0; k < count; k++)
    if (index[k] == i)
      return true;
  return false;
}

/* Lists the dominant entries of 2^exp v: returns how many there are, and stores
   the indices and weights of the first few by size, the weights being their
   values in the vector of length 1. Overwrites v with a multiple of 2^exp v. */
static int64_t list_dominant(int64_t n, const int *exp, hone_entry *v,
                             int64_t *index, double *weight) {
  double max = 0.0, sum = 0.0;
  int64_t count = 0, listed = 0;
  hone_scale_in(n, exp, v, v);
  for (int64_t i = 0; i < n; i++) {
    max = hone_abs(v[i]) <= max ? max : hone_abs(v[i]); /* takes NaN */
    sum += hone_real(hone_conj(v[i]) * v[i]);
  }
  if (!(max > 0.0) || !(sum <= DBL_MAX))
    return 0;
  for (int64_t i = 0; i < n; i++)
    count += hone_abs(v[i]) >= DOMINANT * max;
  for (; listed < HONE_MIN(count, (int64_t)HONE_NULL_LISTED); listed++) {
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++)
      if (!already_listed(index, listed, i) &&
          (at < 0 || hone_abs(v[i]) > ALIKE * hone_abs(v[at])))
        at = i;
    index[listed] = at;
    weight[listed] = hone_signed_abs(v[at]) / sqrt(sum);
  }
  for (int64_t k = listed - 1; k >= 0;
       k--) /* makes the first one positive; it changes last */
    weight[k] *= weight[0] < 0.0 ? -1.0 : 1.0;
  return count;
}

/* The linear congruential generator of Numerical Recipes, modulo 2^32. */
static uint32_t next_random(uint32_t v) { return v * 1664525u + 1013904223u; }

static void fill_random(int64_t n, hone_entry *z) {
  uint32_t bits = 1;
  for (int64_t i = 0; i < n; i++) { /* of either sign, in [1/2, 3/2) */
    bits = next_random(bits);
    z[i] =
        (bits >> 31 ? -1.0 : 1.0) * (0.5 + (double)(bits & 0xffffff) * 0x1p-24);
  }
}

/* Finds z and u by inverse iteration. */
static bool iterate(const hone_factored *f, hone_entry *z, hone_entry *u) {
  const int64_t n = f->a->n;
  fill_random(n, z);
  for (int round = 0; round < ITERATIONS; round++) {
    memcpy(u, z, (size_t)n * sizeof *u);
    hone_conjugate(n, u); /* u = inv(M^H) z */
    if (hone_apply_inverse(f, true, true, 1, u, n, NULL, NULL) != HONE_OK)
      return false;
    hone_conjugate(n, u);
    memcpy(z, u, (size_t)n * sizeof *z);
    if (hone_apply_inverse(f, true, false, 1, z, n, NULL, NULL) != HONE_OK)
      return false;
  }
  return true;
}

int64_t hone_null_dependent_column(int64_t n, const hone_entry *z) {
  const double largest = hone_abs(z[hone_largest_at(n, z)]);
  int64_t last = n - 1;
  while (last > 0 && !(hone_abs(z[last]) >= NOTHING * largest))
    last--;
  return last;
}

void hone_null_find(const hone_factored *f, const hone_certificate *certificate,
                    bool replace_zero_pivots, hone_entry *scratch,
                    hone_report *report) {
  const int64_t n = f->a->n;
  hone_entry *z = scratch, *u = z + n;
  const bool known = certificate->null_vector != NULL;
  const hone_scaling *s = f->scaling;
  if (f->engine->smallest_pivot != NULL)
    f->engine->smallest_pivot(f->self, replace_zero_pivots,
                              &report->min_pivot_row, &report->min_pivot_col);
  else if (replace_zero_pivots && !known)
    return; /* there is nothing to solve with */
  if (known) {
    memcpy(z, certificate->null_vector, (size_t)n * sizeof *z);
    memcpy(u, certificate->left_null_vector, (size_t)n * sizeof *u);
  } else if (!iterate(f, z, u)) {
    return;
  }
  report->null_count = list_dominant(n, s->used ? s->col_exp : NULL, z,
                                     report->null_index, report->null_weight);
  report->dependent_count =
      list_dominant(n, s->used ? s->row_exp : NULL, u, report->dependent_index,
                    report->dependent_weight);
  if (replace_zero_pivots &&
      report->dependent_count > 0) /* every row left had a zero there, so the
                                      pivot's own row says nothing */
    report->min_pivot_row = report->dependent_index[0];
  if (replace_zero_pivots && f->engine->other_pivots && report->null_count > 0)
    report->min_pivot_col = report->null_index[0]; /* likewise, of S^T */
}

void hone_null_report_zeros(int64_t row, int64_t col, hone_report *report) {
  report->min_pivot_row = row;
  report->min_pivot_col = col;
  if (row >= 0) {
    report->dependent_count = 1;
    report->dependent_index[0] = row;
    report->dependent_weight[0] = 1.0;
  }
  if (col >= 0) {
    report->null_count = 1;
    report->null_index[0] = col;
    report->null_weight[0] = 1.0;
  }
}
