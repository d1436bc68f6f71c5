/* SPDX-License-Identifier: BSD-3-Clause */
/* Anderson's acceleration, in double precision: see accelerate.h. All vectors
   of a history are in scaled variables, inv(C) x, which differ from the
   caller's by powers of two: columns of very different units would otherwise
   hide each other in the norm. */
#include "refine/accelerate.h"

#include "base/vectors.h"

#include <float.h>
#include <string.h>

/* Corrections that shrink faster than this are few: dot products would cost
   more than they save. */
static const double SLOW_ENOUGH = 0x1p-6;
/* Changes whose directions differ by less than the root of this are one. */
static const double APART = 1e-6;
/* A larger coefficient comes from rounding errors, or from corrections that do
   not shrink. */
static const double MOST = 16.0;

/* The vectors of a history, n entries each: the last correction that M gave,
   the last step of x, and two pairs (c, s + c). */
enum { LAST, STEP, CHANGE, MOVED = CHANGE + 2 };
_Static_assert(MOVED + 2 == HONE_ACCELERATED_VECTORS, "room for all of them");

void hone_accelerate_begin(const hone_refinement *ctx, int64_t m,
                           hone_refined *columns) {
  const bool serves = ctx->history != NULL && m <= HONE_ACCELERATED_MOST &&
                      ctx->f.a->n >= HONE_ACCELERATED_FROM &&
                      ctx->f.space == NULL;
  for (int64_t c = 0; c < m; c++) {
    columns[c].history =
        serves ? ctx->history + HONE_ACCELERATED_VECTORS * c * ctx->f.a->n
               : NULL;
    columns[c].recorded = 0;
  }
}

/* Returns 2^(sign exponent_i) v. */
static inline hone_entry rescaled(const int *exponent, int sign, int64_t i,
                                  hone_entry v) {
  return exponent ? hone_shift_entry(v, sign * exponent[i]) : v;
}

/* Records d and, where there is a correction before it, how the step of x has
   changed it. */
static void record(int64_t n, const int *exponent, const hone_entry *d,
                   const hone_refined *column) {
  const int slot = column->recorded % 2;
  hone_entry *last = column->history + LAST * n;
  const hone_entry *step = column->history + STEP * n;
  hone_entry *change = column->history + (CHANGE + slot) * n;
  hone_entry *moved = column->history + (MOVED + slot) * n;
  for (int64_t i = 0; i < n; i++) {
    const hone_entry now = rescaled(exponent, -1, i, d[i]);
    if (column->recorded > 0) {
      change[i] = now - last[i];
      moved[i] = step[i] + change[i];
    }
    last[i] = now;
  }
}

/* Finds the coefficients of the last change and of the one before; the latter
   is 0 where there is none, or none in another direction. Returns false if
   there are none of use. */
static bool find_coefficients(int64_t n, const hone_refined *column,
                              hone_entry g[2]) {
  const int slot = column->recorded % 2;
  const hone_entry *d = column->history + LAST * n;
  const hone_entry *c = column->history + (CHANGE + slot) * n;
  const hone_entry *before = column->history + (CHANGE + 1 - slot) * n;
  g[0] = g[1] = 0.0;
  if (column->recorded == 0)
    return false;
  const double square = hone_sum_of_squares(n, c);
  const hone_entry with = hone_dot(n, c, d);
  g[0] = with / square;
  if (column->recorded > 1) {
    const double other = hone_sum_of_squares(n, before);
    const hone_entry both = hone_dot(n, c, before);
    const hone_entry with_other = hone_dot(n, before, d);
    const double size = hone_abs(both);
    const double apart = square * other - size * size;
    if (apart > APART * square * other) {
      g[0] = (other * with - both * with_other) / apart;
      g[1] = (square * with_other - hone_conj(both) * with) / apart;
    }
  }
  return square >= DBL_MIN && square <= DBL_MAX && hone_abs(g[0]) <= MOST &&
         hone_abs(g[1]) <= MOST;
}

/* Only what is subtracted from d goes through scaled variables, so that d
   keeps the digits of entries that are tiny there. */
void hone_accelerate(const hone_refinement *ctx, hone_refined *column,
                     hone_entry *d) {
  const int64_t n = ctx->f.a->n;
  const int *exponent = hone_refined_exponents(ctx);
  hone_entry g[2];
  if (column->history == NULL)
    return;
  if (!(column->rate >= SLOW_ENOUGH)) {
    column->recorded = 0;
    return;
  }
  record(n, exponent, d, column);
  const int slot = column->recorded % 2;
  const hone_entry *last = column->history + LAST * n;
  const hone_entry *moved = column->history + (MOVED + slot) * n;
  const hone_entry *before = column->history + (MOVED + 1 - slot) * n;
  hone_entry *step = column->history + STEP * n;
  if (find_coefficients(n, column, g)) {
    const bool two = hone_abs(g[1]) > 0.0;
    for (int64_t i = 0; i < n; i++) {
      const hone_entry by = g[0] * moved[i] + (two ? g[1] * before[i] : 0.0);
      step[i] = last[i] - by;
      const hone_entry less = rescaled(exponent, 1, i, by);
      d[i] -= hone_finite(less) ? less : 0.0;
    }
  } else {
    memcpy(step, last, (size_t)n * sizeof *step);
  }
  column->recorded++;
}
