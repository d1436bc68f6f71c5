/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra-precise refinement (Demmel, Hida, Kahan, Li, Mukherjee & Riedy 2006;
   Carson & Higham 2018): with residuals in twice the precision the error of
   x, and not only its backward error, shrinks by the contraction of the
   factors with every correction, down to the rounding of x:

     r = b - A x - A t          one reading of A for both
     d = C inv(M) R r           the error of x + t, up to the contraction
     x + t = x + t + d          x the rounded sum, t what rounding left

   The tail t is what makes small entries of x as good as the large ones, and
   the norm in the caller's units as good as that in scaled variables: without
   it, corrections would see the rounding of the largest entries for ever. */
#include "refine/extra_precise.h"

#include "refine/bounds.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Corrections below this part of x end it: its last bit, or three digits. */
static const double LAST_BIT = 0.5 * HONE_EPS, SOME_DIGITS = 1e-3;

static void begin(int64_t n, hone_refined *c) {
  c->best = c->x;
  c->best_errors = c->now;
  c->with_tail = true;
  c->last_size = c->last_any = c->last_rest = HONE_INF;
  c->slow = 0;
  for (int64_t i = 0; i < n; i++)
    c->tail[i] = c->tail_r[i] = 0.0;
}

/* d = inv(M) (r + tail_r) into ctx->v. */
static int solve(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  int shift[HONE_SOLVE_COLUMNS] = {0};
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    const hone_refined *column = list[c];
    hone_entry *v = ctx->v + c * n;
    shift[c] = column->shift;
    for (int64_t i = 0; i < n; i++)
      v[i] =
          column->with_tail ? column->r[i] + column->tail_r[i] : column->r[i];
  }
  int st =
      hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    list[c]->solved = size[c];
  return st;
}

/* Largest |d_i| beside |x_i|. */
static double any_entry(int64_t n, const hone_refined *c, const hone_entry *d) {
  double max = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double q = d[i] != 0.0 ? hone_abs(d[i] / c->x[i]) : 0.0;
    max = q <= max ? max : q;
  }
  return max;
}

static void leave(hone_refined *c, const char *why) {
  c->state = HONE_COLUMN_LEFT;
  snprintf(c->why, sizeof c->why, "%s", why);
}

/* Decides by the correction d whether it is made. True: make it. Else the
   column is accepted as it stands, or left. */
static bool weigh(const hone_refinement *ctx, bool extra, hone_refined *c,
                  const hone_entry *d) {
  const int64_t n = ctx->f.a->n;
  const bool last_step = c->tried >= ctx->cap;
  hone_beside beside = {0};
  double rest, rest_scaled;
  if (!c->zero)
    hone_bounds_relate(ctx, c, d, &beside);
  /* takes NaN */
  double size = beside.scaled <= beside.plain ? beside.plain : beside.scaled;
  double any = extra ? any_entry(n, c, d) : 0.0;
  const double target = extra ? LAST_BIT : SOME_DIGITS;
  const bool small = size <= target;
  const bool falls = size <= 0.5 * c->last_size;
  if (c->last_size <= DBL_MAX)
    c->observed = size / c->last_size;
  hone_bounds_rest(ctx, c, &beside, &rest, &rest_scaled);
  rest = rest_scaled <= rest ? rest : rest_scaled;
  const bool helps = (any > target && any <= 0.5 * c->last_any) ||
                     (rest > target && rest <= 0.5 * c->last_rest);
  const bool told = !ctx->observe || c->zero || (falls && c->observed <= 0.5);
  c->slow += !(small && told) && !falls;
  if (small && (last_step || (told ? !helps : c->slow >= 2)))
    return false;
  if (last_step)
    leave(c, "its error is too large after the corrections allowed");
  else if (!(size <= DBL_MAX) || c->slow >= 2)
    leave(c, "its error is too large, corrections shrink too slowly");
  c->last_size = size;
  c->last_any = any;
  c->last_rest = rest >= 0.0 ? rest : HONE_INF; /* NaN: not known */
  return c->state == HONE_COLUMN_ACCEPTED;
}

/* a + b = sum + *rest exactly. */
static hone_entry two_sum(hone_entry a, hone_entry b, hone_entry *rest) {
  hone_entry sum = a + b, of_b = sum - a;
  *rest = (a - (sum - of_b)) + (b - of_b);
  return sum;
}

/* x + tail = x + tail + d, into the buffer that is not the best iterate. */
static void add(int64_t n, hone_refined *c, const hone_entry *d) {
  hone_entry *to = c->best == c->x ? c->spare : c->x;
  for (int64_t i = 0; i < n; i++) {
    hone_entry rest, sum = two_sum(c->x[i], d[i], &rest);
    to[i] = two_sum(sum, rest + c->tail[i], &c->tail[i]);
  }
  if (to == c->spare) {
    c->spare = c->x;
    c->x = to;
  }
  c->iterations++;
  c->tried++;
}

/* The column is at its end, d being the error of x + tail. */
static void take_error(const hone_refinement *ctx, bool extra, hone_refined *c,
                       hone_entry *d) {
  hone_bounds_take(ctx, c, d, c->tail);
  c->extra = extra;
}

static bool good(const hone_refinement *ctx, const hone_refined *c) {
  return hone_errors_value(&c->now, ctx->criterion) <= ctx->limit;
}

static void keep_good(const hone_refinement *ctx, hone_refined *c) {
  if (!good(ctx, c))
    return;
  c->best = c->x;
  c->best_errors = c->now;
}

/* The host's word on columns at their end that only a device has measured. */
static void vouch(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  hone_refined *open[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++) {
    list[c]->with_tail = false;
    if (!list[c]->verified)
      open[count++] = list[c];
  }
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, open);
  for (int64_t c = 0; c < count; c++) {
    keep_good(ctx, open[c]);
    open[c]->bounded = false; /* by the host's residual, too */
  }
  for (int64_t c = 0; c < m; c++) {
    if (list[c]->state == HONE_COLUMN_ACCEPTED && list[c]->best != list[c]->x)
      leave(list[c], "a smaller error cost backward error");
    list[c]->bounded = list[c]->bounded && list[c]->best == list[c]->x;
  }
}

/* Columns weighed: those that go on come first in the list, corrected. */
static int64_t sort_out(hone_refinement *ctx, bool extra, int64_t m,
                        hone_refined **list) {
  const int64_t n = ctx->f.a->n;
  hone_refined *ended[HONE_SOLVE_COLUMNS];
  int64_t going = 0, count = 0;
  for (int64_t c = 0; c < m; c++) {
    hone_entry *d = ctx->v + c * n;
    if (weigh(ctx, extra, list[c], d)) {
      if (ctx->f.space)
        hone_pairs_open(ctx, list[c], false);
      add(n, list[c], d);
      list[going++] = list[c];
    } else {
      take_error(ctx, extra, list[c], d);
      ended[count++] = list[c];
    }
  }
  vouch(ctx, count, ended);
  return going;
}

/* Stopped on the way: what they began with is there still. */
static int stop(int64_t m, hone_refined *const *list, int status) {
  for (int64_t c = 0; c < m; c++) {
    list[c]->state = HONE_COLUMN_ACTIVE;
    list[c]->with_tail = list[c]->bounded = false;
  }
  return status;
}

int hone_extra(hone_refinement *ctx, bool extra, int64_t m,
               hone_refined **list) {
  const int64_t n = ctx->f.a->n;
  for (int64_t c = 0; c < m; c++)
    begin(n, list[c]);
  for (int step = 0; m > 0; step++) {
    int st = solve(ctx, m, list);
    if (st != HONE_OK)
      return stop(m, list, st);
    m = sort_out(ctx, extra, m, list);
    if (m > 0 && hone_watch_stop(ctx->watch, "refine", 0.0, step, HONE_NAN))
      return stop(m, list, HONE_INTERRUPTED);
    if (m > 0)
      hone_refined_measure(ctx, true, ctx->f.resident, m, list);
    if (m > 0 && ctx->f.space)
      hone_pairs_close(ctx, m, list);
    for (int64_t c = 0; c < m; c++)
      keep_good(ctx, list[c]);
  }
  return HONE_OK;
}
