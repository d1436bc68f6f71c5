/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder's questions to the policy: which rung follows one that failed, how
   many steps of GMRES are worth making; and the certificate of a rung. */
#include "refine/bounds.h"
#include "refine/ladder.h"

#include <math.h>

enum { CERTIFICATE_STEPS = 12 }; /* passes over A, at most */

static hone_failure failure_of(const hone_rung *rung) {
  const bool rounding =
      rung->info.rounding || hone_arithmetic_coarse(rung->choices.arithmetic);
  if (rung->info.zero_pivot < 0)
    return HONE_FAILURE_WEAK;
  return rung->engine->symmetric && rounding ? HONE_FAILURE_ROUNDING
                                             : HONE_FAILURE_PIVOT;
}

static int rank(const hone_rung *rung) {
  return hone_rank(rung->engine, rung->choices.arithmetic);
}

int hone_ladder_above(const hone_ladder *ladder, int r) {
  const hone_rung *failed = &ladder->rung[r];
  int next = r + 1;
  for (; next < ladder->rungs; next++) {
    const hone_rung *rung = &ladder->rung[next];
    if (!rung->skipped &&
        hone_policy_follows(failed->engine, rank(failed), failure_of(failed),
                            rung->engine, rank(rung)))
      break;
  }
  return next;
}

int hone_ladder_elsewhere(const hone_ladder *ladder, int r) {
  int next = r + 1;
  while (next < ladder->rungs &&
         ladder->rung[next].engine == ladder->rung[r].engine)
    next++;
  return next;
}

static int64_t steps_that_pay(const hone_ladder *ladder, int r,
                              int64_t columns) {
  const int next = hone_ladder_above(ladder, r);
  const hone_gmres_situation situation = {
      .n = ladder->n,
      .columns = columns,
      .same_again = next < ladder->rungs &&
                    ladder->rung[next].engine == ladder->rung[r].engine,
      .copy_on_device = ladder->resident == r};
  return hone_policy_gmres_steps(&situation);
}

int hone_ladder_gmres_steps(hone_ladder *ladder, int r, int64_t columns,
                            hone_report *report) {
  const hone_request *request = &ladder->request;
  const int64_t steps = request->gmres_steps != 0
                            ? request->gmres_steps
                            : steps_that_pay(ladder, r, columns);
  if (ladder->rung[r].engine->precision == 64 || ladder->stale || steps <= 0)
    return 0;
  if (ladder->pairs == NULL)
    ladder->pairs =
        hone_mem_get(ladder->mem, (size_t)hone_space_entries(ladder->n) *
                                      sizeof *ladder->pairs);
  if (ladder->pairs == NULL) {
    hone_ladder_add_reason(report, "GMRES", hone_status_text(HONE_NO_MEMORY));
    return 0;
  }
  return (int)(request->max_iterations > 0
                   ? HONE_MIN(steps, (int64_t)request->max_iterations)
                   : steps);
}

/* Are rung r's factors those of one triangle of a matrix that is not symmetric,
   though the caller said so? (A copy made of the triangle is only kept where it
   is A: gpu_sp/feed/feed.cu. What the look found to be symmetric is.) */
static bool lopsided(const hone_ladder *ladder, int r) {
  return ladder->rung[r].engine->symmetric && ladder->resident != r &&
         ladder->request.structure == HONE_STRUCTURE_SPD &&
         !ladder->a.op->symmetric(&ladder->a, ladder->pool);
}

/* The certificate; the space that it needed stays in the ladder. */
int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report) {
  double start = hone_now_s();
  hone_factored f = hone_ladder_factored_by(ladder, r);
  hone_certificate *out = &ladder->rung[r].certificate;
  int st = hone_estimate(&f, ladder->norm1, ladder->seen.norm1, ladder->scratch,
                         out);
  if (st == HONE_OK && !out->nonsingular &&
      hone_ladder_gmres_steps(ladder, r, ladder->request.columns, report) > 0) {
    const int alone = out->tries;
    ladder->space = hone_space_make(ladder->n, false, ladder->pairs);
    ladder->space_of = r;
    f.space = &ladder->space;
    st = hone_estimate_mend(&f, CERTIFICATE_STEPS, ladder->norm1,
                            ladder->seen.norm1, ladder->scratch, out);
    report->certificate_steps += out->tries - alone;
  }
  out->foretold = hone_policy_roundoff(ladder->rung[r].engine,
                                       ladder->rung[r].choices.arithmetic) /
                  out->rcond_scaled * fmax(1.0, ladder->rung[r].info.growth);
  if (st == HONE_OK && out->nonsingular && out->pairs == 0 &&
      hone_bounds_doubtful(out, ladder->stale || lopsided(ladder, r))) {
    st = hone_estimate_probe(&f, ladder->scratch, out);
  }
  report->certify_ms += 1e3 * (hone_now_s() - start);
  *(f.resident ? &report->device_passes : &report->host_passes) +=
      ladder->rung[r].certificate.tries;
  return st;
}
