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

/* d = inv(C) d, or C d where e = 1. */
static void rescale(const hone_refinement *ctx, int e, hone_entry *d) {
  const int *exponent = hone_refined_exponents(ctx);
  for (int64_t i = 0; exponent != NULL && i < ctx->f.a->n; i++)
    d[i] = hone_shift_entry(d[i], e * exponent[i]);
}

/* Adds the change of the correction that the last step of x has made. */
static void record_change(int64_t n, const hone_entry *d,
                          const hone_refined *column) {
  const int slot = column->recorded % 2;
  const hone_entry *last = column->history + LAST * n;
  const hone_entry *step = column->history + STEP * n;
  hone_entry *change = column->history + (CHANGE + slot) * n;
  hone_entry *moved = column->history + (MOVED + slot) * n;
  for (int64_t i = 0; i < n; i++) {
    change[i] = d[i] - last[i];
    moved[i] = step[i] + change[i];
  }
}

/* Finds the coefficients of the last change and of the one before; the latter
   is 0 where there is none, or none in another direction. Returns false if
   there are none of use. */
static bool find_coefficients(int64_t n, const hone_entry *d,
                              const hone_refined *column, hone_entry g[2]) {
  const int slot = column->recorded % 2;
  const hone_entry *c = column->history + (CHANGE + slot) * n;
  const hone_entry *before = column->history + (CHANGE + 1 - slot) * n;
  const double square = hone_sum_of_squares(n, c);
  const hone_entry with = hone_dot(n, c, d);
  g[0] = with / square;
  g[1] = 0.0;
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
  return square >= DBL_MIN && hone_abs(g[0]) <= MOST && hone_abs(g[1]) <= MOST;
}

void hone_accelerate(const hone_refinement *ctx, hone_refined *column,
                     hone_entry *d) {
  const int64_t n = ctx->f.a->n, size = n * (int64_t)sizeof *d;
  hone_entry g[2];
  if (column->history == NULL)
    return;
  if (!(column->rate >= SLOW_ENOUGH)) {
    column->recorded = 0;
    return;
  }
  hone_entry *last = column->history + LAST * n, *step = last + n;
  rescale(ctx, -1, d);
  if (column->recorded > 0)
    record_change(n, d, column);
  memcpy(last, d, (size_t)size);
  if (column->recorded > 0 && find_coefficients(n, d, column, g)) {
    const int slot = column->recorded % 2;
    hone_add_multiple(n, -g[0], column->history + (MOVED + slot) * n, d);
    if (column->recorded > 1)
      hone_add_multiple(n, -g[1], column->history + (MOVED + 1 - slot) * n, d);
  }
  memcpy(step, d, (size_t)size);
  column->recorded++;
  rescale(ctx, 1, d);
}
