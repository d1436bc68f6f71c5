/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the rungs, and what each may cost before the next is cheaper:
   the rules of the climb that need no matrix. */
#include "refine/bounds.h"
#include "refine/ladder.h"

#include <math.h>

enum {
  GMRES_FROM = 64, /* below, a double factorization is nothing */
  STEPS_LEAST = 10,
  STEPS_MOST = 25,
  STEPS_COST = 28,       /* so many columns of A are worth a step */
  STEPS_NEEDED = 4,      /* with fewer there is no point in beginning */
  CERTIFICATE_STEPS = 12 /* at most, for the certificate */
};

bool hone_arithmetic_coarse(int arithmetic) {
  return arithmetic == HONE_ARITHMETIC_TF32 ||
         arithmetic == HONE_ARITHMETIC_BF16X3 ||
         arithmetic == HONE_ARITHMETIC_FP16 ||
         arithmetic == HONE_ARITHMETIC_BF16;
}

int hone_rung_rank(const hone_rung *rung) {
  const bool coarse = rung->engine->precision == 32 &&
                      hone_arithmetic_coarse(rung->choices.arithmetic);
  return rung->engine->precision - coarse;
}

/* The unit roundoff of its factors, as its engine makes them. */
static double roundoff(const hone_rung *rung) {
  if (rung->engine->precision == 64)
    return HONE_EPS;
  if (rung->engine->resident == NULL) /* no device with coarser products */
    return 0x1p-24;
  switch (rung->choices.arithmetic) {
  case HONE_ARITHMETIC_TF32:
  case HONE_ARITHMETIC_FP16:
    return 0x1p-11;
  case HONE_ARITHMETIC_BF16:
    return 0x1p-8;
  case HONE_ARITHMETIC_BF16X3:
    return 0x1p-16;
  default:
    return 0x1p-24;
  }
}

/* The rung after one that could not be had: another engine's. */
int hone_ladder_elsewhere(const hone_ladder *ladder, int r) {
  int next = r + 1;
  while (next < ladder->rungs &&
         ladder->rung[next].engine == ladder->rung[r].engine)
    next++;
  return next;
}

/* One step costs a pass over A in double-double and one application of the
   factors: 1/20 of a double factorization at n = 100, 1/50 from 700 on (two
   cores), and nearly that for each column more. Half of one may be spent before
   it. A device that holds A takes no more than a thousandth for a step. Before
   a more precise single factorization on the same device, as little as pays at
   any order. */
static int64_t steps_that_pay(const hone_ladder *ladder, int r,
                              int64_t columns) {
  const int next = hone_ladder_above(ladder, r);
  if (next < ladder->rungs &&
      ladder->rung[next].engine == ladder->rung[r].engine)
    return STEPS_LEAST;
  if (ladder->resident == r)
    return STEPS_MOST;
  int64_t steps = HONE_MAX((int64_t)STEPS_LEAST, ladder->n / STEPS_COST);
  steps = HONE_MIN(steps, (int64_t)STEPS_MOST) / HONE_MAX(columns, (int64_t)1);
  return ladder->n >= GMRES_FROM && steps >= STEPS_NEEDED ? steps : 0;
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
        hone_mem_get(ladder->mem, (size_t)hone_space_doubles(ladder->n) *
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
  out->foretold = roundoff(&ladder->rung[r]) / out->rcond_scaled *
                  fmax(1.0, ladder->rung[r].info.growth);
  if (st == HONE_OK && out->nonsingular && out->pairs == 0 &&
      hone_bounds_doubtful(out, ladder->stale || lopsided(ladder, r))) {
    st = hone_estimate_probe(&f, ladder->scratch, out);
  }
  report->certify_ms += 1e3 * (hone_now_s() - start);
  *(f.resident ? &report->device_passes : &report->host_passes) +=
      ladder->rung[r].certificate.tries;
  return st;
}
