/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of one rung: whether its factors distinguish the matrix from
   a singular one, and how much they contract. Next to read: condition.c. */
#include "base/seed.h"
#include "refine/ladder.h"

#include <string.h>

/* Mixes the bits of v into the seed. */
static uint64_t mix(uint64_t seed, double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  seed ^= bits;
  return hone_random_bits(&seed);
}

/* The draw depends on the bits of A, so that a process that solves with the
   same A again reports the same, and on a number that no caller knows. */
void hone_ladder_draw(hone_ladder *ladder) {
  const hone_inspection *inspection = &ladder->inspection;
  uint64_t seed = ladder->request.deterministic ? 1 : hone_process_seed();
  for (int64_t i = 0; i < ladder->n; i++)
    seed = mix(mix(seed, inspection->row_max[i]), inspection->col_max[i]);
  ladder->seed = seed;
}

/* Lets rung r have the pairs. A rung whose factors are good only with
   the pairs that it held there is not used again. */
static void give_space_to(hone_ladder *ladder, int r) {
  if (ladder->space_rung >= 0) {
    hone_rung *rung = &ladder->rung[ladder->space_rung];
    if (rung->certificate.contraction[0].pairs > 0)
      rung->state = HONE_RUNG_USELESS;
    rung->certificate.contraction[1].tried = false;
  }
  ladder->space[0].count = ladder->space[1].count = 0;
  ladder->space_rung = r;
}

/* The input for a certificate of rung r; *f: the factors. Where GMRES pays for
   so many columns, f gets a space to make pairs in. */
static hone_certify_job make_job(hone_ladder *ladder, int r, bool trans,
                                 int64_t columns, hone_factored *f,
                                 hone_report *report) {
  *f = hone_ladder_factored_by(ladder, r);
  if (hone_ladder_gmres_steps(ladder, r, trans, columns, report) > 0) {
    if (ladder->space_rung != r)
      give_space_to(ladder, r);
    ladder->space[trans] =
        hone_space_make(ladder->n, trans, ladder->pairs_memory[trans]);
    f->space = &ladder->space[trans];
  }
  return (hone_certify_job){.f = f,
                            .norm1 = ladder->norm1,
                            .norm1_scaled = ladder->inspection.norm1,
                            .scratch = ladder->scratch,
                            .seed = &ladder->seed};
}

/* Adds the passes that a certificate took to the report. */
static void count_passes(const hone_factored *f, int passes, int pairs,
                         hone_report *report) {
  *(f->use_copy ? &report->device_passes : &report->host_passes) += passes;
  report->certificate_steps += pairs > 0 ? passes : 0;
}

int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report) {
  const double start = hone_now_s();
  hone_rung *rung = &ladder->rung[r];
  hone_certificate *out = &rung->certificate;
  hone_factored f;
  const hone_certify_job job =
      make_job(ladder, r, false, ladder->request.columns, &f, report);
  *out = (hone_certificate){
      .contraction = {{.rows = rung->rows}, {.rows = rung->rows + ladder->n}}};
  int st = hone_certify(&job, out);
  if (f.space && out->contraction[0].pairs == 0)
    f.space->count = 0;
  if (st == HONE_OK && !out->nonsingular && rung->engine->precision == 64 &&
      !rung->engine->symmetric && !ladder->factors_stale)
    ladder->refuted = true;
  count_passes(&f, out->passes, out->contraction[0].pairs, report);
  report->certify_ms += 1e3 * (hone_now_s() - start);
  return st;
}

int hone_ladder_certify_transpose(hone_ladder *ladder, int r,
                                  hone_report *report) {
  const double start = hone_now_s();
  hone_certificate *out = &ladder->rung[r].certificate;
  const int passes = out->passes;
  if (out->contraction[1].tried || !out->nonsingular)
    return HONE_OK;
  hone_factored f;
  const hone_certify_job job =
      make_job(ladder, r, true, ladder->request.columns, &f, report);
  int st = hone_certify_transpose(&job, out);
  if (f.space && out->contraction[1].pairs == 0)
    f.space->count = 0;
  count_passes(&f, out->passes - passes, out->contraction[1].pairs, report);
  report->certify_ms += 1e3 * (hone_now_s() - start);
  return st;
}
