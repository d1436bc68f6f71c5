/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder. Rungs are engines, from the cheapest to the most precise:

     look              which rungs are for a matrix of this structure
     inspect, scale    once for a matrix
     factor            the first rung that serves; a rung is set aside when
                       it breaks down, sees that it is hopeless, or cannot
                       tell the matrix from a singular one
     refine            every right-hand side on the first usable rung; those
                       not accepted climb, and only those

   Nothing is returned as accepted that hone_refine did not measure on the
   caller's own matrix, with factors that were shown to tell it from a
   singular one. */
#include "refine/ladder.h"

#include "refine/null_vector.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Memory --------------------------------------------------------------- */

static int64_t scratch_entries(const hone_operator *op, int64_t n) {
  return HONE_MAX(op->scratch(n), hone_estimate_scratch(n));
}

/* Four real vectors, the scratch, and two vectors of int. */
static int64_t vector_bytes(const hone_operator *op, int64_t n) {
  return 5 * n * (int64_t)sizeof(double) +
         scratch_entries(op, n) * (int64_t)sizeof(hone_entry);
}

int64_t hone_ladder_bytes(const hone_operator *op, int64_t n, int64_t nrhs,
                          bool extra) {
  int64_t columns = HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS);
  return vector_bytes(op, n) +
         (hone_ladder_block(n, columns, extra) + hone_space_entries(n)) *
             (int64_t)sizeof(hone_entry);
}

int hone_ladder_create(hone_ladder *ladder, const hone_operator *op, int64_t n,
                       const hone_step *steps, int count,
                       const hone_request *request, hone_mem *mem,
                       hone_pool *pool, hone_watch *watch) {
  *ladder = (hone_ladder){.n = n,
                          .mem = mem,
                          .pool = pool,
                          .watch = watch,
                          .request = *request,
                          .rungs = count,
                          .resident = -1,
                          .space_of = -1};
  for (int r = 0; r < count; r++) {
    ladder->rung[r].engine = steps[r].engine;
    ladder->rung[r].choices = request->choices;
    if (steps[r].accurate &&
        hone_arithmetic_coarse(request->choices.arithmetic))
      ladder->rung[r].choices.arithmetic = HONE_ARITHMETIC_AUTO;
  }
  double *v = hone_mem_get(mem, (size_t)vector_bytes(op, n));
  if (v == NULL)
    return HONE_NO_MEMORY;
  ladder->vectors = v;
  ladder->scaling.row = v;
  ladder->scaling.col = v + n;
  ladder->seen.row_max = v + 2 * n;
  ladder->seen.col_max = v + 3 * n;
  ladder->scratch = (hone_entry *)(v + 4 * n);
  ladder->scaling.row_exp = (int *)(ladder->scratch + scratch_entries(op, n));
  ladder->scaling.col_exp = ladder->scaling.row_exp + n;
  return HONE_OK;
}

static void drop(hone_ladder *ladder, hone_rung *rung) {
  if (rung->self != NULL)
    rung->engine->destroy(rung->self, ladder->mem);
  if (rung == &ladder->rung[HONE_MAX(ladder->resident, 0)])
    ladder->resident = -1;
  rung->self = NULL;
  rung->state = HONE_RUNG_NEW;
}

void hone_ladder_destroy(hone_ladder *ladder) {
  for (int r = 0; r < ladder->rungs; r++)
    drop(ladder, &ladder->rung[r]);
  hone_mem_put(ladder->mem, ladder->pairs);
  hone_mem_put(ladder->mem, ladder->block);
  hone_mem_put(ladder->mem, ladder->vectors);
  ladder->pairs = ladder->block = NULL;
  ladder->vectors = NULL;
}

/* Report --------------------------------------------------------------- */

void hone_ladder_add_reason(hone_report *report, const char *who,
                            const char *why) {
  size_t used = strlen(report->reason);
  snprintf(report->reason + used, sizeof report->reason - used, "%s%s: %s",
           used ? "; " : "", who, why);
}

static double since_ms(double start_s) {
  return 1e3 * (hone_now_s() - start_s);
}

/* What the report says of the matrix and its factors. */
void hone_ladder_report_matrix(const hone_ladder *ladder, hone_report *report) {
  const hone_rung *rung = &ladder->rung[ladder->used];
  report->norm1 = ladder->norm1;
  report->max_abs = ladder->max_abs;
  report->min_abs = ladder->min_abs;
  report->structure = ladder->structure.found;
  for (int64_t i = 0; ladder->scaling.used && i < ladder->n; i++) {
    int row = ladder->scaling.row_exp[i], col = ladder->scaling.col_exp[i];
    report->scale_exponent_min =
        HONE_MIN(report->scale_exponent_min, HONE_MIN(row, col));
    report->scale_exponent_max =
        HONE_MAX(report->scale_exponent_max, HONE_MAX(row, col));
  }
  if (!ladder->factored)
    return;
  report->rcond = rung->certificate.rcond;
  report->growth = rung->info.growth;
  report->underflows = rung->info.flushed;
  int64_t device = 0, to_device = 0, from_device = 0;
  for (int r = 0; r < ladder->rungs; r++) {
    const hone_engine *engine = ladder->rung[r].engine;
    const hone_account *last = &ladder->rung[r].account;
    if (ladder->rung[r].tried && engine->account != NULL) {
      report->diagonal_ms = last->diagonal_ms;
      report->diagonal_wait_ms = last->exposed_ms;
      report->block_rows = last->sections;
      report->block_row_sweeps = last->sweeps;
      report->block_row_sweeps_max = last->sweeps_max;
      report->block_row_fallbacks = last->fallback;
    }
    if (engine->account == NULL || ladder->rung[r].self == NULL)
      continue;
    hone_account account;
    engine->account(ladder->rung[r].self, &account);
    device += account.device_bytes;
    to_device += account.to_device;
    from_device += account.from_device;
  }
  if (device > 0) { /* else, as it was before the last was given back */
    report->device_bytes = device;
    report->to_device_bytes = to_device;
    report->from_device_bytes = from_device;
  }
}

/* Not snprintf: on the smallest systems that took a third of the call. */
static void append(char *text, size_t size, const char *more) {
  size_t used = strlen(text), length = strlen(more);
  if (length > size - 1 - used)
    length = size - 1 - used;
  memcpy(text + used, more, length);
  text[used + length] = '\0';
}

static void append_count(char *text, size_t size, int count) {
  char digits[12];
  size_t at = sizeof digits;
  digits[--at] = '\0';
  do {
    digits[--at] = (char)('0' + count % 10);
    count /= 10;
  } while (count > 0);
  append(text, size, digits + at);
}

/* "single LU, 3 refinements", "single LU set aside, double LU, ...". */
void hone_ladder_report_path(const hone_ladder *ladder, hone_report *report) {
  char *path = report->path;
  const size_t size = sizeof report->path;
  path[0] = '\0';
  for (int r = 0; r < ladder->rungs; r++) {
    const hone_rung *rung = &ladder->rung[r];
    if (!rung->tried)
      continue;
    append(path, size, path[0] ? ", " : "");
    append(path, size, rung->engine->name);
    if (rung->account.text[0]) {
      append(path, size, " (");
      append(path, size, rung->account.text);
      append(path, size, ")");
    }
    append(path, size, rung->set_aside ? " set aside" : "");
  }
  if (ladder->stale)
    append(path, size, " of an earlier matrix");
  if (report->nrhs == 0 || path[0] == '\0') /* nothing was solved */
    return;
  const int plain = ladder->refinements, steps = report->gmres_steps;
  if (plain > 0 || steps == 0) {
    append(path, size, ", ");
    append_count(path, size, plain);
    append(path, size, plain == 1 ? " refinement" : " refinements");
  }
  if (steps > 0) {
    append(path, size, ", GMRES ");
    append_count(path, size, steps);
    append(path, size, steps == 1 ? " step" : " steps");
  }
}

/* The matrix ------------------------------------------------------------ */

static int64_t first_zero(int64_t n, const double *max) {
  for (int64_t i = 0; i < n; i++)
    if (!(max[i] > 0.0))
      return i;
  return -1;
}

static void take_range(hone_ladder *ladder) {
  ladder->norm1 = ladder->seen.norm1;
  ladder->norm_inf = ladder->seen.norm_inf;
  ladder->max_abs = 0.0;
  ladder->min_abs = HONE_INF;
  for (int64_t i = 0; i < ladder->n; i++) {
    double row = ladder->seen.row_max[i], col = ladder->seen.col_max[i];
    ladder->max_abs = HONE_MAX(ladder->max_abs, row);
    ladder->min_abs = HONE_MIN(ladder->min_abs, HONE_MIN(row, col));
  }
}

/* What inspection says of A alone: NaN, Inf, zero rows and columns. */
static int take_sight(hone_ladder *ladder, hone_report *report) {
  hone_inspection *seen = &ladder->seen;
  if (seen->bad_row >= 0) {
    report->bad_row = seen->bad_row;
    report->bad_col = seen->bad_col;
    return HONE_NOT_FINITE_A;
  }
  report->bad_row = first_zero(ladder->n, seen->row_max);
  report->bad_col = first_zero(ladder->n, seen->col_max);
  if (report->bad_row >= 0 || report->bad_col >= 0) {
    hone_ladder_add_reason(report, "matrix",
                           report->bad_row >= 0 ? "a row is zero"
                                                : "a column is zero");
    hone_null_of_zeros(report->bad_row, report->bad_col, report);
    return HONE_SINGULAR;
  }
  take_range(ladder);
  return HONE_OK;
}

static int await_matrix(hone_ladder *ladder) {
  const hone_operator *op = ladder->a.op;
  return op->await != NULL ? op->await(&ladder->a, ladder->pool) : HONE_OK;
}

/* Inspects A and finds its scaling, or, keep_scaling, sees it through the
   scaling there is. */
static int inspect(hone_ladder *ladder, bool keep_scaling,
                   hone_report *report) {
  double start = hone_now_s();
  hone_inspection *seen = &ladder->seen;
  const hone_sight sight = {.pool = ladder->pool,
                            .a = &ladder->a,
                            .scratch = (double *)ladder->scratch};
  if (hone_watch_stop(ladder->watch, "inspect", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  int st = await_matrix(ladder);
  if (st == HONE_OK)
    st = hone_see(&sight, NULL, seen);
  if (st == HONE_OK)
    st = take_sight(ladder, report);
  if (st == HONE_OK && !keep_scaling)
    st = hone_scale_find(&sight, seen, &ladder->scaling);
  else if (st == HONE_OK && ladder->scaling.used)
    st = hone_see(&sight, &ladder->scaling, seen);
  ladder->have_matrix = st == HONE_OK;
  report->inspect_ms += since_ms(start);
  return st;
}

/* Rungs ------------------------------------------------------------------ */

hone_factored hone_ladder_factored_by(const hone_ladder *ladder, int r) {
  return (hone_factored){.engine = ladder->rung[r].engine,
                         .self = ladder->rung[r].self,
                         .a = &ladder->a,
                         .scaling = &ladder->scaling,
                         .pool = ladder->pool,
                         .resident = ladder->resident == r};
}

/* NULL: the factors can be used. Else why not. */
static const char *breakdown(const hone_rung *rung) {
  if (rung->info.hopeless)
    return "the pivots fall too fast for this precision";
  if (rung->info.zero_pivot >= 0)
    return rung->engine->symmetric ? "a pivot is not positive"
                                   : "a pivot is exactly zero";
  if (!(rung->info.growth <= DBL_MAX))
    return "the factors overflow";
  return NULL;
}

static int create(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  char why[128] = "";
  if (rung->self != NULL)
    return HONE_OK;
  if (!rung->engine->probe(why, sizeof why))
    return HONE_NO_DEVICE;
  for (int i = 0; i < ladder->rungs; i++) /* one engine holds one matrix */
    if (ladder->rung[i].self != NULL &&
        (ladder->request.one_shot || ladder->rung[i].engine == rung->engine))
      drop(ladder, &ladder->rung[i]);
  const hone_engine_config config = {.n = ladder->n,
                                     .mem = ladder->mem,
                                     .pool = ladder->pool,
                                     .watch = ladder->watch,
                                     .block = ladder->request.block,
                                     .choices = rung->choices,
                                     .structure = &ladder->structure,
                                     .why = ladder->why,
                                     .why_size = sizeof ladder->why};
  ladder->why[0] = '\0';
  return rung->engine->create(&rung->self, &config);
}

/* A rung whose engine takes A as it is and looks at it on the way: factors S
   = A first, then sees whether that was right. Scaling, where it is needed
   after all, makes factor_rung do the work again, on the copy. */
static int factor_unseen(hone_ladder *ladder, int r, hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  const hone_sight sight = {.pool = ladder->pool,
                            .a = &ladder->a,
                            .scratch = (double *)ladder->scratch,
                            .engine = rung->engine,
                            .self = rung->self};
  double start = hone_now_s();
  if (hone_watch_stop(ladder->watch, "inspect", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  ladder->resident = -1;
  int st = rung->engine->factor(rung->self, &ladder->a, NULL, &rung->info);
  if (st == HONE_OK) /* from here on the host reads A */
    st = await_matrix(ladder);
  report->factor_ms += since_ms(start);
  start = hone_now_s();
  if (st == HONE_OK)
    st = hone_see(&sight, NULL, &ladder->seen);
  if (st != HONE_OK)
    return st;
  if (ladder->seen.bad_row >= 0) /* where, the host finds out */
    return inspect(ladder, false, report);
  st = take_sight(ladder, report);
  if (st == HONE_OK)
    st = hone_scale_find(&sight, &ladder->seen, &ladder->scaling);
  if (st != HONE_OK)
    return st;
  ladder->resident = r;
  ladder->have_matrix = true;
  /* not finite without scaling: the engine may know a safer way */
  const bool settled = rung->info.growth <= DBL_MAX || rung->info.hopeless ||
                       rung->info.zero_pivot >= 0;
  rung->fresh = !ladder->scaling.used && settled;
  report->inspect_ms += since_ms(start);
  return HONE_OK;
}

/* An engine for symmetric matrices has seen one triangle: before another one
   factors A, all of it is looked at. */
static int see_whole(hone_ladder *ladder, int r, hone_report *report) {
  const int seen_by = ladder->resident;
  if (seen_by < 0 || ladder->rung[r].engine->symmetric ||
      !ladder->rung[seen_by].engine->symmetric)
    return HONE_OK;
  ladder->resident = -1;
  return inspect(ladder, false, report);
}

/* Factors on rung r. HONE_OK: its state says whether it can be used. */
static int factor_rung(hone_ladder *ladder, int r, hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  double start = hone_now_s();
  rung->state = HONE_RUNG_USELESS;
  int st = see_whole(ladder, r, report);
  if (st == HONE_OK)
    st = create(ladder, r);
  if (st == HONE_OK && !rung->fresh)
    st = rung->engine->factor(rung->self, &ladder->a, &ladder->scaling,
                              &rung->info);
  rung->fresh = false;
  *(r == ladder->first ? &report->factor_ms : &report->fallback_ms) +=
      since_ms(start);
  if (st != HONE_OK) /* memory or device may be there the next time */
    rung->state = HONE_RUNG_NEW;
  if (rung->engine->account != NULL && rung->self != NULL)
    rung->engine->account(rung->self, &rung->account);
  rung->tried = rung->tried || st != HONE_CANCELLED;
  rung->set_aside = true;
  if (st != HONE_OK)
    return st;
  const char *why = breakdown(rung);
  if (why == NULL) {
    if ((st = hone_ladder_certify(ladder, r, report)) != HONE_OK) {
      rung->state = HONE_RUNG_NEW;
      return st;
    }
    if (!rung->certificate.nonsingular)
      why = "these factors cannot tell the matrix from a singular one";
  }
  if (why != NULL)
    hone_ladder_add_reason(report, rung->engine->name, why);
  bool last = r == ladder->rungs - 1 || hone_engine_direct(rung->engine);
  if (breakdown(rung) == NULL && (last || why == NULL)) {
    rung->state = HONE_RUNG_READY;
    rung->set_aside = false;
  }
  return HONE_OK;
}

/* The first usable rung from r on, factored if it is not yet. On HONE_OK it
   is *found; else why there is none. A rung that failed is followed by the
   next, one whose factors did not suffice by the one above. */
int hone_ladder_usable(hone_ladder *ladder, int r, hone_report *report,
                       int *found) {
  int64_t zero_pivot = -1;
  int st = HONE_OK, singular = r;
  for (int next; r < ladder->rungs; r = next) {
    hone_rung *rung = &ladder->rung[r];
    next = r + 1;
    if (rung->state == HONE_RUNG_NEW && !rung->skipped) {
      int now = factor_rung(ladder, r, report);
      if (now == HONE_CANCELLED)
        return now;
      if (now != HONE_OK) {
        hone_ladder_add_reason(report, rung->engine->name,
                               ladder->why[0] ? ladder->why
                                              : hone_status_text(now));
        st = now;
        next = hone_ladder_elsewhere(ladder, r);
        continue;
      }
      if (!rung->engine->symmetric) { /* those say nothing of A */
        zero_pivot = rung->info.zero_pivot;
        singular = r;
        st = zero_pivot >= 0 ? HONE_SINGULAR : HONE_OVERFLOW;
      }
      if (st == HONE_SINGULAR &&
          hone_policy_ends(rung->engine, HONE_FAILURE_PIVOT))
        break;
    }
    if (rung->state == HONE_RUNG_READY) {
      *found = r;
      return HONE_OK;
    }
    if (!rung->skipped)
      next = hone_ladder_above(ladder, r);
  }
  if (st == HONE_SINGULAR) {
    const hone_factored f = hone_ladder_factored_by(ladder, singular);
    report->bad_col = report->min_pivot_col = zero_pivot;
    if (f.self != NULL)
      hone_null_find(&f, true, ladder->scratch, report);
  }
  return st != HONE_OK ? st : HONE_NOT_CONVERGED;
}

static int start_matrix(hone_ladder *ladder, hone_report *report) {
  ladder->factored = ladder->stale = ladder->have_matrix = false;
  for (int r = 0; r < ladder->rungs; r++) {
    ladder->rung[r].state = HONE_RUNG_NEW;
    ladder->rung[r].tried = ladder->rung[r].fresh = false;
  }
  double start = hone_now_s();
  int st = hone_ladder_find_structure(ladder);
  report->inspect_ms += since_ms(start);
  if (st != HONE_OK)
    return st;
  if (ladder->a.op->start != NULL)
    ladder->a.op->start(&ladder->a, ladder->pool);
  const int r = ladder->at = ladder->first;
  ladder->resident = ladder->space_of = -1;
  st = HONE_NO_DEVICE;
  const hone_engine *first = ladder->rung[r].engine;
  if (first->resident != NULL && create(ladder, r) == HONE_OK &&
      first->resident(ladder->rung[r].self))
    st = factor_unseen(ladder, r, report);
  /* Not that way, or trouble on it: then factor_rung meets it again */
  if (st == HONE_NO_DEVICE || st == HONE_DEVICE_FAILED || st == HONE_NO_MEMORY)
    st = inspect(ladder, false, report);
  if (st == HONE_OK)
    st = hone_ladder_usable(ladder, r, report, &ladder->at);
  ladder->factored = st == HONE_OK;
  ladder->used = ladder->at;
  if (ladder->factored)
    report->precision = ladder->rung[ladder->at].engine->precision;
  if (ladder->have_matrix)
    hone_ladder_report_matrix(ladder, report);
  return st;
}

/* The factors of an earlier matrix no longer serve. */
int hone_ladder_refactor(hone_ladder *ladder, hone_report *report) {
  hone_ladder_add_reason(report, "factors of an earlier matrix",
                         "too far from the present one, which is factored now");
  return start_matrix(ladder, report);
}

int hone_ladder_factor(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report) {
  ladder->a = *a;
  int st = start_matrix(ladder, report);
  hone_ladder_report_path(ladder, report);
  return st;
}

int hone_ladder_update(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report) {
  /* a direct way has factors of no worth, or none but the caller's A */
  if (!ladder->factored || hone_engine_direct(ladder->rung[ladder->at].engine))
    return hone_ladder_factor(ladder, a, report);
  ladder->a = *a;
  ladder->structure =
      (hone_structure){.lower = ladder->n - 1, .upper = ladder->n - 1};
  ladder->have_matrix = false;
  ladder->resident = ladder->space_of = -1; /* those are of the earlier one */
  int st = inspect(ladder, true, report);
  if (st != HONE_OK) {
    ladder->factored = false;
    return st;
  }
  for (int r = 0; r < ladder->rungs; r++) /* a rung above is not for this A */
    if (r != ladder->at)
      ladder->rung[r].state = HONE_RUNG_NEW;
  ladder->stale = true;
  st = hone_ladder_certify(ladder, ladder->at, report);
  if (st == HONE_OK && !ladder->rung[ladder->at].certificate.nonsingular)
    st = hone_ladder_refactor(ladder, report);
  hone_ladder_report_matrix(ladder, report);
  hone_ladder_report_path(ladder, report);
  return st;
}
