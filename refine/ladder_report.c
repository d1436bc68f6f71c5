/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the report that the ladder fills: why rungs were set aside, the
   norms and the scaling of the matrix, the accounts of the engines, and the
   path. Next to read: hone_report in api/hone.h. */
#include "base/text.h"
#include "refine/ladder.h"

#include <stdio.h>
#include <string.h>

void hone_ladder_add_reason(hone_report *report, const char *who,
                            const char *why) {
  size_t used = strlen(report->reason);
  snprintf(report->reason + used, sizeof report->reason - used, "%s%s: %s",
           used ? "; " : "", who, why);
}

/* Fills the report's fields on the matrix and its factors. */
void hone_ladder_report_matrix(const hone_ladder *ladder, hone_report *report) {
  const hone_rung *rung = &ladder->rung[ladder->highest_rung];
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
  int64_t device = 0, to_device = ladder->sent, from_device = ladder->fetched;
  for (int r = 0; r < ladder->rung_count; r++) {
    const hone_engine *engine = ladder->rung[r].engine;
    const hone_account *last = &ladder->rung[r].account;
    if (ladder->rung[r].attempted && engine->account != NULL) {
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
  if (device >
      0) { /* otherwise they stay as before the last engine was given back */
    report->device_bytes = device;
    report->to_device_bytes = to_device;
    report->from_device_bytes = from_device;
  }
}

/* The path reads "single LU, 3 refinements", "single LU set aside, double LU,
   ...". At its end it says what vouches for x if that was not taken by the
   host. */
void hone_ladder_report_path(const hone_ladder *ladder, hone_report *report) {
  hone_text path = hone_text_begin(report->path, sizeof report->path);
  for (int r = 0; r < ladder->rung_count; r++) {
    const hone_rung *rung = &ladder->rung[r];
    if (!rung->attempted)
      continue;
    hone_text_add(&path, report->path[0] ? ", " : "");
    hone_text_add(&path, rung->engine->name);
    if (rung->account.text[0]) {
      hone_text_add(&path, " (");
      hone_text_add(&path, rung->account.text);
      hone_text_add(&path, ")");
    }
    hone_text_add(&path, rung->set_aside ? " set aside" : "");
    if (rung->deflation.count > 0 && !rung->set_aside) {
      hone_text_add(&path, ", ");
      hone_text_add_count(&path, rung->deflation.count);
      hone_text_add(&path,
                    rung->deflation.count == 1 ? " direction" : " directions");
      hone_text_add(&path, " deflated");
    }
  }
  if (ladder->factors_stale)
    hone_text_add(&path, " of an earlier matrix");
  if (report->nrhs == 0 || report->path[0] == '\0') /* nothing was solved */
    return;
  const int plain = ladder->refinements, steps = report->gmres_steps;
  if (plain > 0 || steps == 0) {
    hone_text_add(&path, ", ");
    hone_text_add_count(&path, plain);
    hone_text_add(&path, plain == 1 ? " refinement" : " refinements");
  }
  if (steps > 0) {
    hone_text_add(&path, ", GMRES ");
    hone_text_add_count(&path, steps);
    hone_text_add(&path, steps == 1 ? " step" : " steps");
  }
  if (ladder->vouched_there)
    hone_text_add(&path, ", A projected by the device");
}
