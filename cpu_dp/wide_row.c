/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes one row of the residual in long double. It serves rows whose
   products overflow or underflow in double, or are so small that the low parts
   of double-double would underflow. A long double has the range; the sum is
   kept in a pair of them, since one has only 64 bits and the error bounds
   assume 106. */
#include "cpu_dp/residual.h"

#include "base/exact.h"

/* Is the row's residual 0, and was no partial sum of it rounded? */
static bool is_zero(const hone_wide_row *row, const hone_entry *at,
                    int64_t step) {
  hone_wide r = (hone_wide)row->b;
  for (int64_t j = 0; j < hone_dense_of(row->a)->n; j++) {
    hone_wide rest = 0.0L;
    hone_subtract_exactly(at[j * step], row->x[j], &r, &rest);
    if (hone_absl(rest) > 0.0L)
      return false;
  }
  return !(hone_absl(r) > 0.0L);
}

void hone_dense_wide_row(hone_wide_row *row) {
  const hone_dense *a = hone_dense_of(row->a);
  int64_t step;
  const hone_entry *at = hone_dense_take_line(a, !row->trans, row->i, &step);
  if (at == NULL) {
    row->r = row->den = row->quotient = HONE_NAN;
    row->zero = false;
    return;
  }
  hone_wide r = (hone_wide)row->b, rest = 0.0L;
  long double den = hone_absl(r);
  for (int64_t j = 0; j < a->n; j++) {
    const hone_entry entry = at[j * step], x = row->x[j];
    if (x == 0.0 || entry == 0.0) /* mostly so where A is sparse */
      continue;
    const hone_wide product = (hone_wide)entry * (hone_wide)x;
    if (row->fast)
      r -= product;
    else
      hone_subtract_exactly(entry, x, &r, &rest);
    den += hone_absl(product);
  }
  r += rest;
  row->r = (hone_entry)hone_ldexpl(r, row->shift);
  row->den = (double)ldexpl(den, row->shift);
  row->zero = !row->fast && !(hone_absl(r) > 0.0L) && is_zero(row, at, step);
  row->quotient = den > 0.0L ? (double)(hone_absl(r) / den) : 0.0;
  hone_dense_give_line(a);
}
