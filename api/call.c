/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a call: report, log, clock, callback and
   threads. */
#include "api/solver.h"

#include "base/text.h"
#include "cpu_dp/residual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hone_report_begin(hone_report *report, int64_t n, int64_t nrhs) {
  hone_report_init(report, sizeof *report);
  report->n = n;
  report->nrhs = nrhs;
  report->bad_row = report->bad_col = -1;
  report->min_pivot_row = report->min_pivot_col = -1;
  /* not known yet */
  report->backward_error = report->normwise_error = HONE_NAN;
  report->residual_error = report->forward_error = HONE_NAN;
  report->rcond = report->growth = HONE_NAN;
}

static void log_call(const hone_report *report) {
  const char *wanted = getenv("HONE_LOG");
  if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "0") == 0)
    return;
  fprintf(stderr,
          "hone: n %lld, nrhs %lld: %s; %s; backward error %.2e; %.3f ms%s%s\n",
          (long long)report->n, (long long)report->nrhs,
          hone_status_text(report->status), report->path,
          report->backward_error, report->total_ms,
          report->reason[0] ? "; " : "", report->reason);
}

static void name_device(const hone_solver *s, hone_report *report) {
  const hone_ladder *ladder = &s->ladder;
  hone_text device = hone_text_begin(report->device, sizeof report->device);
  if (s->engine_at == NULL) {
    hone_text_add(&device, "none: ");
    hone_text_add(&device, s->why);
    return;
  }
  hone_text_add(&device, ladder->factored
                             ? ladder->rung[ladder->lowest_rung].engine->place
                             : s->engine_at);
  hone_text_add(&device, ", ");
  hone_text_add_count(&device, s->threads);
  hone_text_add(&device, s->threads == 1 ? " thread, " : " threads, ");
  hone_text_add(&device, hone_residual_isa());
}

int hone_report_end(const hone_solver *s, int status, double start_s,
                    hone_report *made, hone_report *out) {
  static const hone_watch no_watch = {.stopped = false};
  static const hone_mem no_memory = {.limit = 0};
  made->status = status;
  hone_reason_complete(made, s ? &s->watch : &no_watch,
                       s ? &s->mem : &no_memory, s ? s->why : "");
  made->total_ms = 1e3 * (hone_now_s() - start_s);
  if (s != NULL) {
    made->tolerance = s->ladder.request.limit;
    made->host_bytes = HONE_MAX(made->host_bytes, s->mem.peak);
    made->threads = s->threads;
    made->from_device_bytes += s->arrays.host_copy.fetched;
    made->to_device_bytes += s->arrays.host_copy.stored;
    if (out != NULL)
      name_device(s, made);
  }
  log_call(made);
  hone_report_give(made, out);
  return status;
}

void hone_call_begin(hone_solver *s, const hone_options *o, hone_guest *guest) {
  const bool own_progress = o->progress != NULL;
  const double seconds =
      o->deadline_s > 0.0 ? o->deadline_s : s->options.deadline_s;
  s->watch.start_s = hone_now_s();
  s->watch.stopped = s->watch.late = false;
  s->watch.stopped_in = NULL;
  s->mem.refused_bytes = 0;
  s->watch.deadline_s = seconds > 0.0 ? s->watch.start_s + seconds : 0.0;
  s->watch.progress = own_progress ? o->progress : s->options.progress;
  s->watch.callers = &guest->callers;
  s->watch.user = own_progress ? o->progress_user : s->options.progress_user;
  if (!s->ladder.request.one_shot) /* else it was looked at just now */
    s->threads = hone_solver_threads(s);
  hone_pool_adapt(s->pool, s->threads);
  s->threads = hone_pool_threads(s->pool);
}
