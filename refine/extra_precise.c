/* SPDX-License-Identifier: BSD-3-Clause */
/* Extra-precise refinement (Demmel, Hida, Kahan, Li, Mukherjee & Riedy 2006;
   Carson & Higham 2018). With residuals in double-double, the error of x, and
   not only its backward error, shrinks with every correction by the contraction
   of the factors, down to the rounding of x:

     r = b - A x - A t          one pass over A for both
     d = C inv(M) R r           the error of x + t, up to the contraction
     x + t = x + t + d          x: the rounded sum, t: its rounding error

   The tail t makes small entries of x as accurate as the large ones, and the
   error in the caller's units as small as in scaled variables. Without it,
   every correction would only see the rounding of the largest entries. Next to
   read: bounds.c, which then bounds the error of x. */
#include "refine/extra_precise.h"

#include "refine/noise.h"
#include "refine/sparse.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Refinement ends with a correction below this part of x: half a unit in its
   last place, or three digits. */
static const double LAST_BIT = 0.5 * HONE_EPS, THREE_DIGITS = 1e-3;
/* A correction larger than this part of the last one is slow; refinement ends
   with the second slow one. */
static const double SLOW_RATE = 0.5;
enum { SLOW_MOST = 2 };
/* Norms within these bounds lost nothing to underflow or overflow. */
static const double NORM_LEAST = 0x1p-800, NORM_MOST = 0x1p800;

static void begin_column(int64_t n, hone_refined *c) {
  c->best = c->x;
  c->best_errors = c->errors;
  c->measure_tail = true;
  c->error_estimated = false; /* x will change */
  c->last_size = c->last_entrywise = HONE_INF;
  c->slow_corrections = 0;
  for (int64_t i = 0; i < n; i++)
    c->tail[i] = c->tail_r[i] = 0.0;
}

/* d = inv(M) (r + tail_r), into ctx->v. */
static int solve(hone_refinement *ctx, int64_t m, hone_refined *const *list) {
  const int64_t n = ctx->f.a->n;
  int shift[HONE_SOLVE_COLUMNS] = {0};
  double size[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    const hone_refined *column = list[c];
    hone_entry *v = ctx->v + c * n;
    shift[c] = column->shift;
    for (int64_t i = 0; i < n; i++)
      v[i] = column->measure_tail ? column->r[i] + column->tail_r[i]
                                  : column->r[i];
  }
  int st =
      hone_apply_inverse(&ctx->f, false, ctx->trans, m, ctx->v, n, shift, size);
  for (int64_t c = 0; st == HONE_OK && c < m; c++)
    list[c]->solution_size = size[c];
  return st;
}

/* max_i 2^-e_i |x_i| in double; NaN counts as the largest. */
HONE_VECTOR static double plain_scaled(int64_t n, const hone_entry *x,
                                       const int *e) {
  int64_t max = 0;
  double size;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    int64_t bits = (int64_t)(1023 - e[i]) * (INT64_C(1) << 52);
    double v;
    memcpy(&v, &bits, sizeof v);
    v *= hone_abs(x[i]);
    memcpy(&bits, &v, sizeof bits);
    bits &= INT64_MAX; /* clears the sign of NaN as well */
    max = bits > max ? bits : max;
  }
  memcpy(&size, &max, sizeof size);
  return size;
}

/* max_i 2^-e_i |x_i|, which may lie beyond the range of double, or max |x_i| (e
   NULL); NaN if an entry is NaN. */
static long double max_scaled(int64_t n, const hone_entry *x, const int *e) {
  const double plain = e ? plain_scaled(n, x, e) : hone_max_abs(n, x);
  if (e == NULL || isnan(plain) || (plain >= NORM_LEAST && plain <= NORM_MOST))
    return (long double)plain; /* nothing was rounded */
  long double max = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    long double v = hone_absl((hone_wide)x[i]);
    v = ldexpl(v, -e[i]);
    max = v <= max ? max : v; /* takes NaN */
  }
  return max;
}

void hone_extra_relative_size(const hone_refinement *ctx, const hone_refined *c,
                              const hone_entry *d, hone_relative_size *out) {
  const int64_t n = ctx->f.a->n;
  const int *e = hone_refined_exponents(ctx);
  long double lost = hone_noise_lost_part(ctx, c);
  int widest = 0;
  for (int64_t i = 0; e && i < n; i++)
    widest = i == 0 ? e[i] : HONE_MAX(widest, e[i]);
  lost = ldexpl(lost, widest) + (long double)DBL_TRUE_MIN;
  out->plain =
      (double)((max_scaled(n, d, NULL) + lost) / max_scaled(n, c->x, NULL));
  out->scaled =
      e ? (double)(max_scaled(n, d, e) / max_scaled(n, c->x, e)) : out->plain;
}

/* max_i |d_i| / |x_i| */
static double largest_entrywise(int64_t n, const hone_refined *c,
                                const hone_entry *d) {
  double max = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double q = d[i] != 0.0 ? hone_abs(d[i] / c->x[i]) : 0.0;
    max = q <= max ? max : q;
  }
  return max;
}

static void give_up(hone_refined *c, const char *why) {
  c->state = HONE_COLUMN_LEFT;
  snprintf(c->why, sizeof c->why, "%s", why);
}

/* The part of x below which a correction is not made. */
static double target_of(hone_aim aim, const hone_refined *c) {
  if (aim == HONE_AIM_UNITS)
    return fmax(c->error_scaled, LAST_BIT);
  return aim == HONE_AIM_DIGITS ? THREE_DIGITS : LAST_BIT;
}

/* Decides by the size of the correction d whether it is applied: returns true
   if so. Otherwise the column is accepted as it stands, or given up on. */
static bool wants_correction(const hone_refinement *ctx, hone_aim aim,
                             hone_refined *c, const hone_entry *d) {
  const int64_t n = ctx->f.a->n;
  const bool extra = aim == HONE_AIM_LAST_BIT;
  const bool last_step = c->rung_corrections >= ctx->max_corrections;
  hone_relative_size relative = {0};
  if (!c->x_is_zero)
    hone_extra_relative_size(ctx, c, d, &relative);
  /* takes NaN */
  double size =
      relative.scaled <= relative.plain ? relative.plain : relative.scaled;
  double entrywise = extra ? largest_entrywise(n, c, d) : 0.0;
  if (aim == HONE_AIM_UNITS) /* the bound may be larger */
    c->error_scaled = fmin(c->error_scaled, relative.scaled);
  const double target = target_of(aim, c);
  const bool small = size <= target;
  const bool shrinks = size <= SLOW_RATE * c->last_size;
  const bool still_helps =
      entrywise > target && entrywise <= SLOW_RATE * c->last_entrywise;
  c->slow_corrections += !small && !shrinks;
  if (small && (last_step || !still_helps))
    return false;
  if (aim == HONE_AIM_UNITS && size <= DBL_MAX &&
      (last_step || c->slow_corrections >= SLOW_MOST))
    return false; /* rounding errors of residuals may leave more */
  if (last_step)
    give_up(c, "the error of x is too large after the corrections allowed");
  else if (!(size <= DBL_MAX) || c->slow_corrections >= SLOW_MOST)
    give_up(c, "the error of x is too large, corrections shrink too slowly");
  c->last_size = size;
  c->last_entrywise = entrywise;
  return c->state == HONE_COLUMN_ACCEPTED;
}

/* a + b = sum + *remainder exactly. */
static hone_entry two_sum(hone_entry a, hone_entry b, hone_entry *remainder) {
  hone_entry sum = a + b, of_b = sum - a;
  *remainder = (a - (sum - of_b)) + (b - of_b);
  return sum;
}

/* x + tail = x + tail + d, into the buffer that does not hold the best
   iterate. */
static void add(int64_t n, hone_refined *c, const hone_entry *d) {
  hone_entry *to = c->best == c->x ? c->spare : c->x;
  for (int64_t i = 0; i < n; i++) {
    hone_entry remainder, sum = two_sum(c->x[i], d[i], &remainder);
    to[i] = two_sum(sum, remainder + c->tail[i], &c->tail[i]);
  }
  if (to == c->spare) {
    c->spare = c->x;
    c->x = to;
  }
  c->iterations++;
  c->rung_corrections++;
}

static bool meets_limit(const hone_refinement *ctx, const hone_refined *c) {
  return hone_errors_value(&c->errors, ctx->criterion) <= ctx->limit;
}

static void keep_if_within_limit(const hone_refinement *ctx, hone_refined *c) {
  if (!meets_limit(ctx, c))
    return;
  c->sparse = false;
  c->best = c->x;
  c->best_errors = c->errors;
}

/* Lets the host measure the columns that are refined no further and that only a
   device has measured. Where entries of x vanish, the x that was accepted may
   have had zeros there, or may have been measured for sparse rows; then the
   more accurate one is measured so, too. */
static void verify_on_host(hone_refinement *ctx, hone_aim aim, int64_t m,
                           hone_refined *const *list) {
  hone_refined *open[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t c = 0; c < m; c++) {
    list[c]->measure_tail = false;
    if (!list[c]->verified)
      open[count++] = list[c];
  }
  if (count > 0)
    hone_refined_measure(ctx, true, false, count, open);
  for (int64_t c = 0; c < count; c++)
    keep_if_within_limit(ctx, open[c]);
  for (int64_t c = 0; c < m; c++)
    if (list[c]->state == HONE_COLUMN_ACCEPTED && list[c]->best != list[c]->x &&
        !(aim != HONE_AIM_UNITS && hone_sparse_meets_limit(ctx, list[c])))
      give_up(list[c], "a smaller error cost backward error");
}

/* Sorts the columns: those to be corrected come first in the list and are
   corrected; the others are finished. Returns how many are corrected. */
static int64_t correct_or_finish(hone_refinement *ctx, hone_aim aim, int64_t m,
                                 hone_refined **list) {
  const int64_t n = ctx->f.a->n;
  hone_refined *ended[HONE_SOLVE_COLUMNS];
  int64_t continuing = 0, count = 0;
  for (int64_t c = 0; c < m; c++) {
    hone_entry *d = ctx->v + c * n;
    if (wants_correction(ctx, aim, list[c], d)) {
      if (ctx->f.space)
        hone_pairs_open(ctx, list[c], false);
      add(n, list[c], d);
      list[continuing++] = list[c];
    } else {
      list[c]->extra_precise = aim == HONE_AIM_LAST_BIT;
      ended[count++] = list[c];
    }
  }
  verify_on_host(ctx, aim, count, ended);
  return continuing;
}

/* Stops the refinement: each column keeps as its best iterate the one it began
 * with, or a later one within the limit. */
static int stop(int64_t m, hone_refined *const *list, int status) {
  for (int64_t c = 0; c < m; c++) {
    list[c]->state = HONE_COLUMN_ACTIVE;
    list[c]->measure_tail = false;
  }
  return status;
}

int hone_refine_extra_precise(hone_refinement *ctx, hone_aim aim, int64_t m,
                              hone_refined **list) {
  const int64_t n = ctx->f.a->n;
  for (int64_t c = 0; c < m; c++)
    begin_column(n, list[c]);
  for (int step = 0; m > 0; step++) {
    int st = solve(ctx, m, list);
    if (st != HONE_OK)
      return stop(m, list, st);
    m = correct_or_finish(ctx, aim, m, list);
    if (m > 0 && hone_watch_stop(ctx->watch, "refine", 0.0, step, HONE_NAN))
      return stop(m, list, HONE_INTERRUPTED);
    if (m > 0)
      hone_refined_measure(ctx, true, ctx->f.use_copy, m, list);
    if (m > 0 && ctx->f.space)
      hone_pairs_close(ctx, m, list);
    for (int64_t c = 0; c < m; c++)
      keep_if_within_limit(ctx, list[c]);
  }
  return HONE_OK;
}
