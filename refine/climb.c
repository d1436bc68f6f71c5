/* SPDX-License-Identifier: BSD-3-Clause */
/* Solving with the ladder: refines right-hand sides in blocks, in double
   precision, each on the first usable rung. Those that are not accepted climb
   to the next rung, and only those. Next to read: refine.c for one rung,
   bounds.c for the error bounds, ladder_solve.c for what becomes of them. */
#include "refine/climb.h"

#include "refine/bounds.h"
#include "refine/evaluate.h"
#include "refine/sparse.h"

#include <stdio.h>
#include <string.h>

/* The next rung starts from the best x if its criterion is at most this. */
static const double WARM_START = 1e-6;
/* One correction costs a pass over A and two triangular solves; about n / 60 of
   them cost as much as a double factorization on the machines measured. */
enum {
  CORRECTION_COST = 60,
  CORRECTIONS_LEAST = 8,
  CORRECTIONS_MOST = 50,
  CORRECTIONS_DOUBLE = 10 /* with factors in double */
};
enum { NAME_BYTES = 80 }; /* of an engine, and whose factors they are */

static int allowed_corrections(const hone_ladder *ladder, int precision) {
  if (ladder->request.max_iterations > 0)
    return ladder->request.max_iterations;
  return precision == 64 ? CORRECTIONS_DOUBLE
                         : (int)HONE_MAX((int64_t)CORRECTIONS_LEAST,
                                         HONE_MIN(ladder->n / CORRECTION_COST,
                                                  (int64_t)CORRECTIONS_MOST));
}

/* Prepares the column for rung r, starting from its best iterate, or from
   nothing where a second opinion is wanted. */
static void begin_column(const hone_ladder *ladder, int r,
                         hone_refined *column) {
  column->state = HONE_COLUMN_ACTIVE;
  column->rate = column->correction_size = 0.0;
  column->slow_corrections = 0;
  if (column->sparse) /* that measure was of an accepted x */
    column->best_errors.componentwise = column->plain;
  if (hone_refined_take_best(column)) {
    double value =
        hone_errors_value(&column->best_errors, ladder->request.criterion);
    column->has_x = value <= WARM_START && !column->begins_anew &&
                    !ladder->rung[r].second_opinion;
    column->from_x0 = false;
  } else {
    column->has_x =
        column->from_x0; /* the caller's x0, which is not measured yet */
  }
  column->rung_corrections = 0;
  column->begins_anew = false;
  column->error_estimated = column->extra_precise = column->only_slow = false;
  column->sparse = false;
}

/* May GMRES continue with the same factors? It may where refinement with them
   was only too slow and the caller's limit on corrections is not reached. */
static bool gmres_may_help(const hone_ladder *ladder,
                           const hone_refined *column) {
  const int most = ladder->request.max_iterations;
  return column->state == HONE_COLUMN_LEFT && column->only_slow &&
         !(most > 0 && column->rung_corrections >= most);
}

/* Prepares the columns that are not accepted for rung r. again: with the same
   factors, and then only those that were merely too slow. */
static void begin_rung(hone_climb *c, int r, bool again) {
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    if (column->state == HONE_COLUMN_ACCEPTED ||
        (again && !gmres_may_help(c->ladder, column)))
      continue;
    begin_column(c->ladder, r, column);
    c->rung[i] = r;
  }
}

/* Counts the columns not accepted, and adds the first one's reason to the
   report. *gmres_candidates: how many of them GMRES may help. */
static int64_t count_left(hone_climb *c, const char *who,
                          int64_t *gmres_candidates) {
  int64_t left = 0;
  *gmres_candidates = 0;
  for (int64_t i = 0; i < c->m; i++) {
    const hone_refined *column = &c->columns[i];
    if (column->state == HONE_COLUMN_ACCEPTED)
      continue;
    if (left++ == 0 && column->state == HONE_COLUMN_LEFT) {
      char name[NAME_BYTES];
      snprintf(name, sizeof name, "%s%s", who,
               c->ladder->factors_stale ? " of an earlier matrix" : "");
      hone_ladder_add_reason(c->report, name, column->why);
    }
    *gmres_candidates += gmres_may_help(c->ladder, column);
  }
  return left;
}

/* Bounds ||inv(S)|| by more random vectors where noise counts by the first
   bound, or residuals follow the steps of x. Chooses them in any case: they may
   be needed while errors are bounded. */
static void bound_for_many(hone_climb *c, int r, hone_refinement *ctx) {
  hone_certificate *certificate = &c->ladder->rung[r].certificate;
  bool wanted = false;
  hone_ladder_draw_for(c->ladder, HONE_DRAW_MANY, r);
  ctx->many_seed = hone_random_bits(ctx->seed);
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    column->by_many = false; /* noise is judged by the first bound */
    column->by_many = c->m > 1 && ctx->f.use_copy &&
                      hone_climb_accepted_on(c, i, r) &&
                      hone_bounds_noise_counts(certificate, column);
    wanted = wanted || column->by_steps || column->by_many;
  }
  if (wanted && !(certificate->inverse_many > 0.0))
    hone_bounds_for_many(ctx, certificate);
}

/* Gives up on columns accepted on rung r whose bound is too large, or whose x,
   measured again, is above the limit. Returns false where the call is to stop:
   then a bound may be missing, and the column stays as it is. */
static bool leave_insufficient(const hone_climb *c, int r) {
  const hone_request *request = &c->ladder->request;
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    const double value = hone_errors_value(&column->errors, request->criterion);
    const bool meets = value <= request->limit;
    if (!hone_climb_accepted_on(c, i, r) ||
        (meets && hone_climb_error_suffices(c, i)))
      continue;
    if (c->ladder->watch->stopped)
      return false;
    if (column->best == column->x)
      column->best_errors = column->errors;
    column->state = HONE_COLUMN_LEFT;
    snprintf(column->why, sizeof column->why,
             !meets ? "x, measured again, exceeds the tolerance"
             : request->extra
                 ? "the bound on the error of x exceeds 8 eps"
                 : "the bound on the error of x leaves no digit certain");
  }
  return true;
}

/* Gives up on a column that was accepted, whose x is the best one so far. */
static void leave(hone_refined *column, const char *why) {
  column->best = column->x;
  column->best_errors = column->errors;
  column->state = HONE_COLUMN_LEFT;
  snprintf(column->why, sizeof column->why, "%s", why);
}

/* Certifies the factors of rung r anew where their engine's copy of A proved to
   be another matrix, and gives up on its columns if they do not serve. st: of
   the refinement that showed it. Returns st, or what failed here. */
static int certify_anew(hone_climb *c, int r, hone_refinement *ctx, int st) {
  hone_ladder *ladder = c->ladder;
  const hone_rung *rung = &ladder->rung[r];
  st = hone_ladder_refute_copy(ladder, r, c->trans, st, c->report);
  ctx->f = hone_ladder_factored_by(ladder, r);
  ctx->rcond = rung->certificate.rcond_scaled;
  for (int64_t i = 0; i < c->m; i++) {
    if (!hone_climb_accepted_on(c, i, r))
      continue;
    c->columns[i].error_estimated = false;
    if (!(st == HONE_OK && rung->certificate.nonsingular))
      leave(&c->columns[i], hone_ladder_doubt(rung));
  }
  return st;
}

/* Bounds the errors of the columns accepted on rung r. Columns without a
   certain digit, and in extra-precise mode all columns, are refined further;
   those whose error bound is still too large climb. */
static int certify_columns(hone_climb *c, int r, hone_refinement *ctx) {
  hone_certificate *certificate = &c->ladder->rung[r].certificate;
  const double start = hone_now_s();
  int st = HONE_OK;
  if (!certificate->nonsingular) /* no bound can be had */
    return HONE_OK;
  ctx->f.space = NULL; /* the bounds are those of the factors as certified */
  if (c->ladder->request.max_iterations ==
      0) /* as many corrections again are allowed */
    ctx->max_corrections *= 2;
  if (c->ladder->request.extra) {
    ctx->device_residual_of = NULL;
    st = hone_climb_refine_extra(c, r, ctx);
  }
  const double middle = hone_now_s();
  bound_for_many(c, r, ctx);
  hone_ladder_draw_for(c->ladder, HONE_DRAW_COLUMNS, r);
  hone_bounds_estimate(ctx, certificate, c->m, c->columns);
  const double end = hone_now_s();
  if (st == HONE_OK && !c->ladder->request.extra) {
    st = hone_climb_refine_uncertain(c, r, ctx);
    hone_bounds_estimate(ctx, certificate, c->m, c->columns);
    if (st == HONE_OK)
      hone_climb_refine_units(c, r, ctx);
  }
  if (st != HONE_INTERRUPTED && !leave_insufficient(c, r) && st == HONE_OK)
    st = HONE_INTERRUPTED; /* and no error that came before is lost */
  c->report->certify_ms += 1e3 * (end - middle);
  c->report->refine_ms += 1e3 * (hone_now_s() - end + middle - start);
  return st;
}

static int64_t count_not_accepted(const hone_climb *c) {
  int64_t not_accepted = 0;
  for (int64_t i = 0; i < c->m; i++)
    not_accepted += c->columns[i].state != HONE_COLUMN_ACCEPTED;
  return not_accepted;
}

/* Sets what is common to all refinement on rung r. */
static hone_refinement refinement_on(const hone_climb *c, int r) {
  hone_ladder *ladder = c->ladder;
  double *steps = hone_ladder_steps(ladder);
  const int64_t n = ladder->n, columns = ladder->workspace_columns;
  const int64_t history =
      hone_ladder_workspace_entries(n, columns, ladder->request.extra) - 2 * n -
      hone_accelerate_entries(n, columns);
  return (hone_refinement){
      .f = hone_ladder_factored_by(ladder, r),
      .trans = c->trans,
      .criterion = ladder->request.criterion,
      .limit = ladder->request.limit,
      .max_corrections =
          allowed_corrections(ladder, ladder->rung[r].engine->precision),
      .rcond = ladder->rung[r].certificate.rcond_scaled,
      .norm_a = c->trans ? ladder->norm1 : ladder->norm_inf,
      .norm_2 = sqrtl((long double)ladder->norm1) *
                sqrtl((long double)ladder->norm_inf),
      /* The scaling of an earlier matrix says nothing of sparse rows. */
      .inspection = ladder->factors_stale ? NULL : &ladder->inspection,
      .watch = ladder->watch,
      .scratch = ladder->scratch,
      .seed = &ladder->seed,
      .v = ladder->workspace + 4 * n * columns,
      .history = ladder->workspace + history,
      .bounding = ladder->bounding,
      .low = (hone_entry *)steps,
      .weight = steps ? steps + 2 * HONE_PARTS * n * columns : NULL,
      .steps_work = steps ? steps + n * (2 * HONE_PARTS * columns + 1) : NULL};
}

/* The time that certify_anew counts as what it is. */
static double counted_ms(const hone_report *report) {
  return report->inspect_ms + report->certify_ms;
}

/* Refines on rung r; with steps > 0, by so many steps of GMRES. */
static int refine_on(hone_climb *c, int r, int steps, bool again) {
  hone_ladder *ladder = c->ladder;
  hone_refinement ctx = refinement_on(c, r);
  const double start = hone_now_s(), counted = counted_ms(c->report);
  hone_space space;
  if (steps > 0) {
    space = hone_space_make(ladder->n, c->trans, ladder->pairs_memory);
    ctx.f.space = &space;
    ctx.max_corrections = steps;
  }
  begin_rung(c, r, again);
  hone_ladder_draw_for(ladder, HONE_DRAW_COLUMNS, r);
  ladder->highest_rung = HONE_MAX(ladder->highest_rung, r);
  int st = hone_refine(&ctx, c->m, c->columns);
  if (ctx.copy_refuted)
    st = certify_anew(c, r, &ctx, st);
  if (st == HONE_OK && ladder->rung[r].certificate.nonsingular)
    st = hone_sparse_refine(&ctx, c->m, c->columns);
  c->report->refine_ms +=
      1e3 * (hone_now_s() - start) - (counted_ms(c->report) - counted);
  if (st == HONE_OK)
    st = certify_columns(c, r, &ctx);
  c->report->host_passes += ctx.passes;
  ladder->statements += ctx.statements;
  c->report->device_passes += ctx.device_passes;
  c->report->precision = ladder->rung[r].engine->precision;
  return st;
}

/* Uses the factors of rung r as far as they go: refinement and, where that is
   too slow, GMRES. *left: the columns not accepted. */
static int use_rung(hone_climb *c, int r, int64_t *left) {
  hone_ladder *ladder = c->ladder;
  const hone_rung *rung = &ladder->rung[r];
  int64_t gmres_candidates = 0;
  int steps = 0;
  *left = count_not_accepted(c);
  if (c->trans) {
    int st = hone_ladder_certify_transpose(ladder, r, c->report);
    if (st != HONE_OK)
      return st;
  }
  for (bool again = false;; again = true) {
    int st = refine_on(c, r, steps, again);
    if (st == HONE_INTERRUPTED)
      return st;
    if (st != HONE_OK)
      hone_ladder_add_reason(c->report, rung->engine->name,
                             hone_status_text(st));
    *left = count_left(c, steps > 0 ? "GMRES" : rung->engine->name,
                       &gmres_candidates);
    if (st != HONE_OK || gmres_candidates == 0 || steps > 0)
      return st;
    steps = hone_ladder_gmres_steps(ladder, r, gmres_candidates, c->report);
    if (steps == 0)
      return st;
  }
}

/* Finds the rung that a block of columns starts on: the first that holds
   factors. An earlier block may have climbed and given the memory of cheaper
   rungs back. */
static int find_start_rung(hone_ladder *ladder, hone_report *report, int *r) {
  for (*r = ladder->start_rung; *r < ladder->rung_count; ++*r)
    if (ladder->rung[*r].state == HONE_RUNG_READY)
      return HONE_OK;
  return hone_ladder_find_usable(ladder, ladder->start_rung, report, r);
}

/* Finds the next rung for columns that were not accepted on *r: the next one of
   another engine where a solve failed. *r becomes rung_count where a
   second opinion could not be had, which leaves no trace. */
static int climb_from(hone_climb *c, bool solved, int *r) {
  hone_ladder *ladder = c->ladder;
  const int next = solved ? hone_ladder_next_for_columns(ladder, *r)
                          : hone_ladder_other_engine(ladder, *r);
  if (next == ladder->rung_count || !ladder->rung[next].second_opinion)
    return hone_ladder_find_usable(ladder, next, c->report, r);
  const hone_report before = *c->report;
  const int st = hone_ladder_find_usable(ladder, next, c->report, r);
  if (st == HONE_OK || st == HONE_CANCELLED)
    return st;
  *c->report = before;
  *r = ladder->rung_count;
  return HONE_OK;
}

/* Has every column an x? */
static bool all_have_x(const hone_climb *c) {
  bool all = true;
  for (int64_t i = 0; i < c->m; i++)
    all = all && c->columns[i].best != NULL;
  return all;
}

/* Factors the present matrix in the place of an earlier one. Its scaling is
   another, and with it all that was measured in scaled variables: columns that
   were accepted with the earlier factors are solved for and bounded again, and
   no column begins with what those have left. */
static int refactor(hone_climb *c) {
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    column->begins_anew = true;
    if (column->state == HONE_COLUMN_ACCEPTED)
      leave(column, "");
  }
  return hone_ladder_refactor(c->ladder, c->report);
}

/* Refines the block's columns and climbs with those that need it. Returns
   HONE_OK (the columns' states tell the rest), HONE_INTERRUPTED,
   HONE_CANCELLED, or why no rung could be used. */
int hone_climb_columns(hone_climb *c) {
  hone_ladder *ladder = c->ladder;
  int r, st = find_start_rung(ladder, c->report, &r);
  if (st != HONE_OK)
    return st;
  for (;;) {
    int64_t left;
    st = use_rung(c, r, &left);
    if (st == HONE_INTERRUPTED)
      return st;
    if (left == 0)
      return HONE_OK;
    if (st == HONE_OK && !ladder->factors_stale &&
        ladder->rung[r].certificate.singular && all_have_x(c))
      return HONE_OK; /* no other factors do better */
    if (ladder->factors_stale) {
      st = refactor(c);
      r = ladder->start_rung;
    } else if (hone_ladder_next_for_columns(ladder, r) < ladder->rung_count) {
      st = climb_from(c, st == HONE_OK, &r);
    } else {
      return st;
    }
    if (st != HONE_OK || r == ladder->rung_count)
      return st;
  }
}

void hone_climb_measure_unaccepted(hone_climb *c) {
  hone_refined *list[HONE_SOLVE_COLUMNS];
  int64_t count = 0;
  hone_refinement ctx = refinement_on(c, c->rung[0]);
  for (int64_t i = 0; i < c->m; i++) {
    hone_refined *column = &c->columns[i];
    const bool accepted = column->state == HONE_COLUMN_ACCEPTED;
    if (accepted ? !column->verified
                 : hone_refined_take_best(column) && !column->error_estimated)
      list[count++] = column;
  }
  if (count == 0)
    return;
  hone_refined_measure(&ctx, true, false, count, list);
  for (int64_t i = 0; i < count; i++)
    list[i]->best_errors = list[i]->errors;
  c->report->host_passes += ctx.passes;
}
