/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes for the report of one system, found in S = R op(A) C and in its factors
   after these have been certified. */
#ifndef HONE_DESCRIBE_ROWS_H
#define HONE_DESCRIBE_ROWS_H

#include "cpu_batch/certify.h"

/* Numbers by which the largest one is found: sizes, or their squares. */
INLINE lanes measure_of(many v) {
  return HONE_PARTS == 1 ? magnitude(v.part[0]) : square_of(v);
}
INLINE double size_by(lanes measure) {
  return (HONE_PARTS == 1 ? measure : root(measure))[0];
}

/* max |s_ij|, where S is not A itself. */
static double largest_of_scaled(const parts *p) {
  lanes most = all(0.0);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->m; i++)
      most = larger(measure_of(p->s[i + j * p->ld]), most);
  return size_by(largest_over(most));
}

/* The largest |u_ik| of column k, lane by lane. In the vector that has the
   pivot the entries above it have been divided by that (divide_tops). */
INLINE lanes largest_of_column(const parts *p, int64_t k) {
  const many *column = p->f + k * p->ld;
  const int64_t top = vector_of(k);
  const mask row = rows_of(top);
  const lanes pivot = measure_of(entry_at(column, k));
  const lanes own = measure_of(column[top]);
  lanes most = choose(row < k, own * pivot, choose(row == k, own, all(0.0)));
  for (int64_t i = 0; i < top; i++)
    most = larger(measure_of(column[i]), most);
  return most;
}

/* max |u_ij| */
static double largest_of_factors(const parts *p) {
  lanes most = all(0.0);
  for (int64_t k = 0; k < p->n; k++)
    most = larger(largest_of_column(p, k), most);
  return size_by(largest_over(most));
}

/* max |u_ij|^2 of S = U^H U, from D L^H: its rows divided by roots of pivots.
 */
static double largest_square_of_cholesky(const parts *p) {
  lanes most = all(0.0);
  for (int64_t k = 0; k < p->n; k++) {
    const many *column = p->f + k * p->ld;
    const int64_t top = vector_of(k);
    const mask row = rows_of(top);
    const lanes pivot = square_of(entry_at(column, k));
    const lanes own = square_of(column[top]);
    const lanes in_top =
        choose(row < k, own * pivot, choose(row == k, own, all(0.0)));
    most = larger(in_top * p->inverse[top].part[0], most);
    for (int64_t i = 0; i < top; i++)
      most = larger(square_of(column[i]) * p->inverse[i].part[0], most);
  }
  return largest_over(most)[0];
}

static void describe_scaling(const parts *p, hone_block_sizes *out) {
  lanes most = all(1.0), least = all(1.0);
  for (int64_t i = 0; i < p->m; i++) {
    most = larger(larger(p->row[i], p->col[i]), most);
    least = smaller(smaller(p->row[i], p->col[i]), least);
  }
  out->exponent_max = ilogb(largest_over(most)[0]);
  out->exponent_min = ilogb(smallest_over(least)[0]);
}

/* Estimates ||inv(A)||_1 of op(A) once more: from y, the solution of the last
   right-hand side. Where a random vector led to a column that is far from the
   largest, this one seldom does too. */
static double inverse_by_columns(const parts *p) {
  many *v = p->v, *y = v + p->m;
  return estimate_inverse(p, false, (units){p->row, p->col}, y, v, y).norm[0];
}

/* Estimates it in the infinity norm, in which a matrix that was turned has its
   1-norm, from two random vectors. */
static double inverse_by_rows(const parts *p) {
  const units unit = {p->col, p->row};
  many *v = p->v, *w = v + p->m, *y = w + p->m;
  for (int c = 0; c < 2; c++) {
    for (int64_t i = 0; i < p->m; i++)
      v[i] = common_entries((const hone_entry *)p->drawn + c * p->n, i, p->n);
    solve_transposed(p, v, y + c * p->m);
  }
  return estimate_inverse(p, true, unit, longest_of(p, 2, y), v, w).norm[0];
}

static void describe_system(hone_block *block, bool turned) {
  const parts p = parts_of(block);
  const hone_block_lane *lane = &block->lane[0];
  hone_block_sizes *out = &block->sizes;
  describe_scaling(&p, out);
  const bool plain = out->exponent_min == 0 && out->exponent_max == 0;
  const double largest =
      block->definite ? largest_square_of_cholesky(&p) : largest_of_factors(&p);
  out->growth = largest / (plain ? out->max_abs : largest_of_scaled(&p));
  out->norm = turned ? lane->norm : out->norm;
  out->rcond = lane->rcond;
  if (turned)
    out->rcond = 1.0 / (out->norm * inverse_by_rows(&p));
  else if (!out->certain)
    out->rcond =
        HONE_MIN(1.0 / (out->norm * inverse_by_columns(&p)), lane->rcond);
}

#endif
