/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder: inspects and scales A in double precision, and factors it on one
   rung after the other, from the cheapest engine to the most accurate, in
   single or double precision:

     find structure    which rungs are for a matrix of this structure
     inspect, scale    once for a matrix: S = R A C
     factor            the first rung that serves; a rung is set aside when
                       it breaks down, when it finds its pivots hopeless, or
                       when it cannot tell the matrix from a singular one
     refine            every right-hand side on the first usable rung; those
                       not accepted climb, and only those (climb.c)

   No x is returned as accepted unless hone_refine measured it on the caller's
   own matrix, with factors that were certified to distinguish that matrix from
   a singular one. Next to read: ladder_rungs.c, climb.c,
   ladder_policy.c, ladder_memory.c, ladder_certify.c, ladder_report.c. */
#include "refine/ladder.h"

#include "refine/null_vector.h"
#include "refine/scale.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double since_ms(double start_s) {
  return 1e3 * (hone_now_s() - start_s);
}

/* The matrix ------------------------------------------------------------ */

static int64_t first_zero(int64_t n, const double *max) {
  for (int64_t i = 0; i < n; i++)
    if (!(max[i] > 0.0))
      return i;
  return -1;
}

static void take_range(hone_ladder *ladder) {
  ladder->norm1 = ladder->inspection.norm1;
  ladder->norm_inf = ladder->inspection.norm_inf;
  ladder->max_abs = 0.0;
  ladder->min_abs = HONE_INF;
  for (int64_t i = 0; i < ladder->n; i++) {
    double row = ladder->inspection.row_max[i],
           col = ladder->inspection.col_max[i];
    ladder->max_abs = HONE_MAX(ladder->max_abs, row);
    ladder->min_abs = HONE_MIN(ladder->min_abs, HONE_MIN(row, col));
  }
}

/* Checks what inspection found in A itself: NaN, Inf, zero rows and columns. */
static int check_inspection(hone_ladder *ladder, hone_report *report) {
  hone_inspection *inspection = &ladder->inspection;
  if (inspection->bad_row >= 0) {
    report->bad_row = inspection->bad_row;
    report->bad_col = inspection->bad_col;
    return HONE_NOT_FINITE_A;
  }
  report->bad_row = first_zero(ladder->n, inspection->row_max);
  report->bad_col = first_zero(ladder->n, inspection->col_max);
  if (report->bad_row >= 0 || report->bad_col >= 0) {
    hone_null_report_zeros(report->bad_row, report->bad_col, report);
    return HONE_SINGULAR;
  }
  take_range(ladder);
  return HONE_OK;
}

/* Inspects A and finds its scaling. With keep_scaling, inspects S with the
   present scaling instead. */
static int inspect(hone_ladder *ladder, bool keep_scaling,
                   hone_report *report) {
  double start = hone_now_s();
  hone_inspection *inspection = &ladder->inspection;
  const hone_inspection_view view = {.pool = ladder->pool,
                                     .a = &ladder->a,
                                     .scratch = (double *)ladder->scratch};
  if (hone_watch_stop(ladder->watch, "inspect", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  int st = hone_matrix_await(&ladder->a, ladder->pool);
  if (st == HONE_OK)
    st = hone_view_inspect(&view, NULL, inspection);
  if (st == HONE_OK)
    st = check_inspection(ladder, report);
  if (st == HONE_OK && !keep_scaling)
    st = hone_scale_find(&view, inspection, &ladder->scaling);
  else if (st == HONE_OK && ladder->scaling.used)
    st = hone_view_inspect(&view, &ladder->scaling, inspection);
  ladder->inspected = st == HONE_OK;
  if (st == HONE_OK)
    hone_ladder_draw(ladder);
  report->inspect_ms += since_ms(start);
  return st;
}

/* Rungs ------------------------------------------------------------------ */

hone_factored hone_ladder_factored_by(const hone_ladder *ladder, int r) {
  const hone_rung *rung = &ladder->rung[r];
  return (hone_factored){
      .engine = rung->engine,
      .self = rung->self,
      .a = &ladder->a,
      .scaling = &ladder->scaling,
      .pool = ladder->pool,
      .use_copy = ladder->copy_rung == r,
      .deflation = rung->deflation.count > 0 ? &rung->deflation : NULL};
}

/* Says why the factors cannot be used; NULL if they can. */
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

/* The inspection of S = A by the engine of rung r, which is made while the
   device completes the factors where the engine allows it. */
typedef struct engine_inspection {
  hone_ladder *ladder;
  int r;
  hone_report *report;
  bool done;
  int status;
} engine_inspection;

static int inspect_by_engine(const engine_inspection *e) {
  hone_ladder *ladder = e->ladder;
  const hone_rung *rung = &ladder->rung[e->r];
  const hone_inspection_view view = {.pool = ladder->pool,
                                     .a = &ladder->a,
                                     .scratch = (double *)ladder->scratch,
                                     .engine = rung->engine,
                                     .self = rung->self};
  int st = hone_view_inspect(&view, NULL, &ladder->inspection);
  if (st != HONE_OK || ladder->inspection.bad_row >= 0)
    return st;
  st = check_inspection(ladder, e->report);
  if (st == HONE_OK)
    st = hone_scale_find(&view, &ladder->inspection, &ladder->scaling);
  if (st == HONE_OK)
    hone_ladder_draw(ladder);
  return st;
}

static void inspect_meanwhile(void *ctx, int64_t task) {
  engine_inspection *e = ctx;
  hone_ladder *ladder = e->ladder;
  (void)task;
  e->status = inspect_by_engine(e);
  e->done = true;
  if (e->status != HONE_OK || ladder->inspection.bad_row >= 0 ||
      ladder->scaling.used)
    return;
  ladder->copy_rung = e->r;
  hone_ladder_expect_certificate(ladder, e->r);
  ladder->copy_rung = -1; /* until there are factors */
}

/* Factors on a rung whose engine takes A as it is and inspects it on the way:
   factors S = A first, then looks whether that was right. If scaling turns out
   to be needed, factor_rung factors again, from the engine's copy. */
static int factor_then_inspect(hone_ladder *ladder, int r,
                               hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  engine_inspection inspection = {.ladder = ladder, .r = r, .report = report};
  /* Where no projection will vouch for x, a pass of the host has to. */
  const bool host_reads = rung->engine->projection == NULL ||
                          rung->choices.residuals != HONE_RESIDUALS_AUTO;
  double start = hone_now_s();
  if (hone_watch_stop(ladder->watch, "inspect", 0.0, 0, HONE_NAN))
    return HONE_CANCELLED;
  ladder->copy_rung = -1;
  if (host_reads)
    hone_matrix_start(&ladder->a, ladder->pool);
  if (rung->engine->meanwhile != NULL)
    rung->engine->meanwhile(rung->self, inspect_meanwhile, &inspection);
  int st = rung->engine->factor(rung->self, &ladder->a, NULL, &rung->info);
  if (st == HONE_OK && host_reads)
    st = hone_matrix_await(&ladder->a, ladder->pool);
  report->factor_ms += since_ms(start);
  start = hone_now_s();
  if (st == HONE_OK)
    st = inspection.done ? inspection.status : inspect_by_engine(&inspection);
  if (st != HONE_OK)
    return st;
  if (ladder->inspection.symmetry == HONE_SYMMETRY_FOUND)
    ladder->structure.sampled = false; /* it is confirmed */
  if (ladder->structure.sampled &&
      ladder->inspection.symmetry == HONE_SYMMETRY_REFUTED) {
    report->inspect_ms += since_ms(start);
    return HONE_OK;
  }
  if (ladder->inspection.bad_row >= 0) /* the host finds the place */
    return inspect(ladder, false, report);
  ladder->copy_rung = r;
  ladder->inspected = true;
  /* Factors that overflow without scaling are not final: the engine may know a
     safer way. */
  const bool outcome_is_final = rung->info.growth <= DBL_MAX ||
                                rung->info.hopeless ||
                                rung->info.zero_pivot >= 0;
  rung->factored_unscaled = !ladder->scaling.used && outcome_is_final;
  report->inspect_ms += since_ms(start);
  return HONE_OK;
}

/* Factors on rung r. On HONE_OK its state says whether it can be used. */
static int factor_rung(hone_ladder *ladder, int r, hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  double start = hone_now_s();
  rung->state = HONE_RUNG_USELESS;
  int st = hone_ladder_create_rung(ladder, r);
  if (st == HONE_OK && rung->engine->resident == NULL)
    st = hone_matrix_await(&ladder->a, ladder->pool);
  if (st == HONE_OK && !rung->factored_unscaled)
    st = hone_ladder_factor_on(ladder, r);
  rung->factored_unscaled = false;
  *(r == ladder->lowest_rung ? &report->factor_ms : &report->fallback_ms) +=
      since_ms(start);
  if (st != HONE_OK) /* memory or the device may be available the next time */
    rung->state = HONE_RUNG_NEW;
  if (rung->engine->account != NULL && rung->self != NULL)
    rung->engine->account(rung->self, &rung->account);
  rung->attempted = rung->attempted || st != HONE_CANCELLED;
  rung->set_aside = true;
  if (st != HONE_OK)
    return st;
  const char *why = breakdown(rung);
  const hone_certificate *certificate = &rung->certificate;
  bool certified = true;
  st = why == NULL
           ? hone_ladder_certify(ladder, r, report)
           : hone_ladder_certify_replaced(ladder, r, report, &certified);
  if (st != HONE_OK) {
    rung->state = HONE_RUNG_NEW;
    return st;
  }
  if (certified && certificate->nonsingular)
    why = NULL; /* even if a pivot was zero */
  else if (why == NULL)
    why = hone_ladder_doubt(rung);
  rung->factored = true;
  if (why != NULL)
    hone_ladder_add_reason(report, rung->engine->name, why);
  /* With factors of a singular matrix the best x is found, for want of better
     ones; where it is exactly singular, none is. */
  const bool last =
      (hone_ladder_is_last(ladder, r) || hone_engine_direct(rung->engine) ||
       certificate->singular) &&
      !rung->second_opinion;
  if (certified && !certificate->exactly_singular && (last || why == NULL)) {
    rung->state = HONE_RUNG_READY;
    rung->set_aside = false;
  }
  return HONE_OK;
}

int hone_ladder_find_usable(hone_ladder *ladder, int r, hone_report *report,
                            int *found) {
  int64_t zero_pivot = -1;
  int st = HONE_OK, singular = r, failure = HONE_OK, precision = 64;
  for (int next; r < ladder->rung_count; r = next) {
    hone_rung *rung = &ladder->rung[r];
    next = r + 1;
    if (rung->state == HONE_RUNG_NEW && !rung->not_applicable) {
      int now = factor_rung(ladder, r, report);
      if (now == HONE_CANCELLED)
        return now;
      if (now != HONE_OK) {
        hone_ladder_add_reason(report, rung->engine->name,
                               ladder->why[0] ? ladder->why
                                              : hone_status_text(now));
        st = failure = now;
        next = hone_ladder_other_engine(ladder, r);
        continue;
      }
      precision = rung->engine->precision;
      if (!rung->engine->symmetric) { /* Cholesky says nothing about whether A
                                         is singular */
        zero_pivot = rung->info.zero_pivot;
        singular = r;
        st = zero_pivot >= 0 ? HONE_SINGULAR : HONE_OVERFLOW;
      }
      if (st == HONE_SINGULAR &&
          (rung->certificate.exactly_singular ||
           hone_policy_ends(rung->engine, hone_ladder_failure(rung))))
        break;
    }
    if (rung->state == HONE_RUNG_READY) {
      *found = r;
      return HONE_OK;
    }
    if (!rung->not_applicable)
      next = hone_ladder_successor(ladder, r);
  }
  if (failure != HONE_OK && precision < 64 && /* double could not be tried */
      !ladder->rung[singular].certificate.exactly_singular)
    st = failure;
  if (st == HONE_SINGULAR) {
    const hone_factored f = hone_ladder_factored_by(ladder, singular);
    const hone_certificate *certificate = &ladder->rung[singular].certificate;
    if (certificate->exactly_singular)
      zero_pivot =
          hone_null_dependent_column(ladder->n, certificate->null_vector);
    report->bad_col = report->min_pivot_col = zero_pivot;
    if (f.self != NULL)
      hone_null_find(&f, certificate, true, ladder->scratch, report);
    if (f.engine->other_pivots)
      report->bad_col = report->min_pivot_col;
  }
  return st != HONE_OK ? st : HONE_NOT_CONVERGED;
}

/* Lets the engine of the lowest rung factor A as it is, if it keeps a copy of A
   where it runs. HONE_NO_DEVICE: it does not. */
static int start_on_device(hone_ladder *ladder, hone_report *report) {
  const int r = ladder->lowest_rung;
  const hone_engine *engine = ladder->rung[r].engine;
  ladder->copy_rung = -1;
  if (engine->resident == NULL)
    hone_matrix_start(&ladder->a, ladder->pool);
  if (engine->resident == NULL ||
      hone_ladder_create_rung(ladder, r) != HONE_OK ||
      !engine->resident(ladder->rung[r].self))
    return HONE_NO_DEVICE;
  return factor_then_inspect(ladder, r, report);
}

/* Can A be factored in another way after this outcome of start_on_device? */
static bool goes_on(int st) {
  return st == HONE_OK || st == HONE_NO_DEVICE || st == HONE_DEVICE_FAILED ||
         st == HONE_NO_MEMORY;
}

/* Serves after start_on_device where a sample of A alone says that it is
   symmetric: makes sure of it, and lets another engine start if it is not.
   *outcome: of start_on_device. Fails only where that cannot be found. */
static int settle_symmetry(hone_ladder *ladder, int *outcome,
                           hone_report *report) {
  const int before = ladder->lowest_rung;
  const bool refuted = *outcome == HONE_OK &&
                       ladder->inspection.symmetry == HONE_SYMMETRY_REFUTED;
  double start = hone_now_s();
  int st = hone_ladder_settle_symmetry(ladder, refuted);
  report->inspect_ms += since_ms(start);
  if (st != HONE_OK || ladder->lowest_rung == before)
    return st;
  hone_ladder_add_reason(report, ladder->rung[before].engine->name,
                         refuted
                             ? "the matrix is not symmetric"
                             : "the matrix is not symmetric, or not definite");
  *outcome = start_on_device(ladder, report);
  return HONE_OK;
}

static int start_matrix(hone_ladder *ladder, hone_report *report) {
  ladder->factored = ladder->factors_stale = ladder->inspected = false;
  ladder->refuted = ladder->copy_refuted = false;
  ladder->certificates = 0;
  for (int r = 0; r < ladder->rung_count; r++) {
    ladder->rung[r].state = HONE_RUNG_NEW;
    ladder->rung[r].attempted = ladder->rung[r].factored = false;
    ladder->rung[r].factored_unscaled = false;
  }
  double start = hone_now_s();
  int st = hone_ladder_find_applicable(ladder);
  report->inspect_ms += since_ms(start);
  if (st != HONE_OK)
    return st;
  int outcome = start_on_device(ladder, report);
  if (ladder->structure.sampled && goes_on(outcome))
    st = settle_symmetry(ladder, &outcome, report);
  if (st != HONE_OK)
    return st;
  st = outcome;
  const bool failed = st == HONE_DEVICE_FAILED;
  const int r = ladder->start_rung = ladder->lowest_rung;
  /* If that way is not open or failed, factor_rung tries the engine again. */
  if (st == HONE_NO_DEVICE || failed || st == HONE_NO_MEMORY)
    st = inspect(ladder, false, report);
  if (st == HONE_OK && failed)
    hone_ladder_add_reason(report, ladder->rung[r].engine->name,
                           "the device failed, and is tried once more");
  if (st == HONE_OK)
    st = hone_ladder_find_usable(ladder, r, report, &ladder->start_rung);
  ladder->factored = st == HONE_OK;
  ladder->highest_rung = ladder->start_rung;
  if (ladder->factored)
    report->precision = ladder->rung[ladder->start_rung].engine->precision;
  if (ladder->inspected)
    hone_ladder_report_matrix(ladder, report);
  return st;
}

int hone_ladder_refute_copy(hone_ladder *ladder, int r, bool trans, int solved,
                            hone_report *report) {
  hone_rung *rung = &ladder->rung[r];
  hone_certificate *certificate = &rung->certificate;
  int st = solved;
  ladder->copy_rung = -1;
  ladder->copy_refuted = true;
  certificate->nonsingular = certificate->contraction[1].tried = false;
  certificate->contraction[0].power = certificate->contraction[1].power = 0;
  hone_ladder_add_reason(report, rung->engine->name,
                         "the matrix refuses an x that its copy accepts");
  if (st == HONE_OK)
    st = inspect(ladder, true, report);
  if (st == HONE_OK)
    st = hone_ladder_certify(ladder, r, report);
  if (st == HONE_OK && trans)
    st = hone_ladder_certify_transpose(ladder, r, report);
  if (st != HONE_OK) {
    certificate->nonsingular = false;
    rung->state = HONE_RUNG_NEW;
  } else if (!certificate->nonsingular && !hone_ladder_is_last(ladder, r)) {
    rung->state = HONE_RUNG_USELESS;
  }
  return st == HONE_CANCELLED ? HONE_INTERRUPTED : st;
}

int hone_ladder_refactor(hone_ladder *ladder, hone_report *report) {
  hone_ladder_add_reason(report, "factors of an earlier matrix",
                         "too far from the present one, which is factored now");
  const int certificates = ladder->certificates;
  const int st = start_matrix(ladder, report);
  ladder->certificates += certificates; /* of columns that were bounded */
  return st;
}

int hone_ladder_factor(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report) {
  ladder->a = *a;
  int st = start_matrix(ladder, report);
  if (st != HONE_OK || !ladder->request.one_shot) /* else a solve follows */
    hone_ladder_report_path(ladder, report);
  return st;
}

int hone_ladder_update(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report) {
  /* A direct engine's factors serve no other matrix, or are the caller's A
     itself; those of a rung whose memory another one needed are gone. */
  if (!ladder->factored || ladder->rung[ladder->start_rung].self == NULL ||
      hone_engine_direct(ladder->rung[ladder->start_rung].engine))
    return hone_ladder_factor(ladder, a, report);
  ladder->a = *a;
  ladder->structure =
      (hone_structure){.lower = ladder->n - 1, .upper = ladder->n - 1};
  ladder->inspected = ladder->refuted = ladder->copy_refuted = false;
  ladder->certificates = 0;
  ladder->copy_rung = -1; /* the copy is that of the earlier matrix */
  int st = inspect(ladder, true, report);
  if (st != HONE_OK) {
    ladder->factored = false;
    return st;
  }
  for (int r = 0; r < ladder->rung_count; r++)
    if (r != ladder->start_rung) { /* its factors are not those of this A */
      ladder->rung[r].state = HONE_RUNG_NEW;
      ladder->rung[r].attempted = false;
    }
  ladder->highest_rung = ladder->start_rung;
  ladder->factors_stale = true;
  st = hone_ladder_certify(ladder, ladder->start_rung, report);
  if (st != HONE_OK)
    ladder->factored = false;
  else if (!ladder->rung[ladder->start_rung].certificate.nonsingular)
    st = hone_ladder_refactor(ladder, report);
  hone_ladder_report_matrix(ladder, report);
  hone_ladder_report_path(ladder, report);
  return st;
}
