/* SPDX-License-Identifier: BSD-3-Clause */
/* Further refinement of columns that were accepted: to the last bit in
   extra-precise mode, to a certain digit, and for the units of the unknowns.
   Next to read: extra_precise.c. */
#include "refine/bounds.h"
#include "refine/climb.h"
#include "refine/evaluate.h"
#include "refine/extra_precise.h"

#include <string.h>

/* An error in the caller's units that is so many times that in scaled variables
   is worth corrections of its own. */
static const double UNITS_COST = 1e3;

/* Is the error bound of an accepted column small enough for the caller? */
bool hone_climb_error_suffices(const hone_climb *c, int64_t i) {
  const hone_certificate *certificate =
      &c->ladder->rung[c->rung[i]].certificate;
  const hone_refined *column = &c->columns[i];
  return hone_bounds_certify_a_digit(certificate, column) &&
         (!c->ladder->request.extra ||
          hone_bounds_forward(certificate, column, false) <= HONE_EXTRA_LIMIT);
}

/* Extra-precise mode: refines all columns accepted on rung r at once, except
   those already refined so before GMRES took up the others. */
int hone_climb_refine_extra(hone_climb *c, int r, hone_refinement *ctx) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  for (int64_t i = 0; i < c->m; i++)
    if (hone_climb_accepted_on(c, i, r) && !c->columns[i].extra_precise)
      list[count++] = &c->columns[i];
  return hone_refine_extra_precise(ctx, HONE_AIM_LAST_BIT, count, list);
}

/* Gives the column room for a tail in the ladder's scratch. */
static void take_tail(const hone_climb *c, hone_refined *column) {
  const int64_t n = c->ladder->n;
  column->tail = c->ladder->scratch;
  column->tail_r = column->tail + n;
  column->tail_den = (double *)(column->tail_r + n);
}

/* Refines columns without a certain digit. They are rare: they are refined one
   by one, with their tail in the ladder's scratch. */
int hone_climb_refine_uncertain(hone_climb *c, int r, hone_refinement *ctx) {
  int st = HONE_OK;
  for (int64_t i = 0; i < c->m && st == HONE_OK; i++) {
    hone_refined *column = &c->columns[i];
    if (!hone_climb_accepted_on(c, i, r) || hone_climb_error_suffices(c, i))
      continue;
    take_tail(c, column);
    st = hone_refine_extra_precise(ctx, HONE_AIM_DIGITS, 1, &column);
  }
  return st;
}

/* Did the column lose digits to the units of the unknowns alone? Then its
   largest entries are small in scaled variables, where the backward error says
   nothing of them; a correction or two, which see them, give them back. */
static bool units_cost_digits(const hone_climb *c, int64_t i) {
  const hone_certificate *certificate =
      &c->ladder->rung[c->rung[i]].certificate;
  const hone_refined *column = &c->columns[i];
  return c->ladder->scaling.used && !column->sparse &&
         c->ladder->request.limit < HONE_LOOSE_TOLERANCE &&
         hone_bounds_forward(certificate, column, false) >
             UNITS_COST * hone_bounds_forward(certificate, column, true);
}

/* Refines a column in this way. Where its bound does not become smaller, it
   stays as it was accepted, and is measured again: its residual was overwritten
   by that of another x, and the next factors or GMRES for other columns may
   bring the column here once more. */
static void refine_for_units(hone_climb *c, hone_certificate *certificate,
                             hone_refinement *ctx, hone_refined *column) {
  const hone_ladder *ladder = c->ladder;
  const int64_t n = ladder->n;
  const size_t bytes = (size_t)n * sizeof *column->x;
  const int64_t entries = hone_ladder_workspace_entries(
      n, ladder->workspace_columns, ladder->request.extra);
  hone_entry *x = ladder->workspace + entries - 2 * n, *bars = x + n;
  const double error = hone_bounds_forward(certificate, column, false);
  take_tail(c, column);
  const hone_refined before = *column;
  memcpy(x, column->x, bytes);
  memcpy(bars, column->spare, bytes);
  column->error_scaled = hone_bounds_forward(certificate, column, true);
  if (hone_refine_extra_precise(ctx, HONE_AIM_UNITS, 1, &column) == HONE_OK)
    hone_bounds_estimate(ctx, certificate, 1, column);
  if (column->state == HONE_COLUMN_ACCEPTED && column->error_estimated &&
      hone_bounds_forward(certificate, column, false) < error &&
      hone_bounds_certify_a_digit(certificate, column))
    return;
  const int iterations = column->iterations;
  *column = before;
  column->iterations = iterations;
  memcpy(column->x, x, bytes);
  memcpy(column->spare, bars, bytes);
  hone_refined_measure(ctx, true, false, 1, &column);
}

void hone_climb_refine_units(hone_climb *c, int r, hone_refinement *ctx) {
  for (int64_t i = 0; i < c->m; i++)
    if (hone_climb_accepted_on(c, i, r) && units_cost_digits(c, i) &&
        c->columns[i].rung_corrections < ctx->max_corrections)
      refine_for_units(c, &c->ladder->rung[r].certificate, ctx, &c->columns[i]);
}
