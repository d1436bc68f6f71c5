/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of one rung: whether its factors distinguish the matrix from
   a singular one, and how much they contract. Next to read: condition.c. */
#include "base/seed.h"
#include "refine/ladder.h"
#include "refine/scale.h"

#include <string.h>

/* Hashes the bits of v and its place. */
static uint64_t hash(double v, int64_t place) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits += (uint64_t)place * HONE_RANDOM_STEP;
  return hone_random_bits(&bits);
}

/* The draw depends on the largest entries of rows and columns of A, so that a
   process that solves with the same A again reports the same, and on a number
   that no caller knows. */
void hone_ladder_draw(hone_ladder *ladder) {
  const hone_inspection *inspection = &ladder->inspection;
  uint64_t seed = ladder->request.deterministic ? 1 : hone_process_seed();
  uint64_t rows = 0, cols = 0;
  for (int64_t i = 0; i < ladder->n; i++) {
    rows += hash(inspection->row_max[i], i);
    cols += hash(inspection->col_max[i], i);
  }
  seed ^= hone_random_bits(&rows);
  seed = hone_random_bits(&seed) ^ cols;
  ladder->seed = ladder->drawn = hone_random_bits(&seed);
}

void hone_ladder_draw_for(hone_ladder *ladder, int purpose, int r) {
  uint64_t place = (uint64_t)(r * HONE_DRAWS + purpose);
  uint64_t seed = ladder->drawn ^ hone_random_bits(&place);
  if (ladder->request.deterministic)
    ladder->seed = hone_random_bits(&seed);
}

/* Returns the deflation that the certificate of rung r may use, empty; NULL if
   there is none. */
static hone_deflation *begin_deflation(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  const int64_t n =
      ladder->request.deflation > 0 ? HONE_DEFLATION_FROM : ladder->n;
  rung->deflation = hone_deflation_make(
      ladder->n, (hone_entry *)(rung->rows + 2 * ladder->n));
  return ladder->request.deflation >= 0 &&
                 hone_policy_deflates(n, rung->engine->precision,
                                      ladder->factors_stale)
             ? &rung->deflation
             : NULL;
}

/* Returns the same for a null vector of S, which is searched for with factors
   in single precision at any order. */
static hone_deflation *begin_null(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  return rung->engine->precision < 64 && !ladder->factors_stale &&
                 ladder->request.deflation >= 0
             ? &rung->deflation
             : NULL;
}

/* Adds the passes that a certificate took to the report. */
static void count_passes(const hone_factored *f, int passes, bool deflated,
                         hone_report *report) {
  *(f->use_copy ? &report->device_passes : &report->host_passes) += passes;
  report->certificate_steps += deflated ? passes : 0;
}

/* Puts the right-hand side that is to come into the scratch, behind what probes
   use of it, if it may be solved for beside those of op(S) on rung r; otherwise
   NULL. */
static const hone_entry *put_beside(const hone_ladder *ladder, int r,
                                    bool trans) {
  const int64_t n = ladder->n;
  hone_entry *to = ladder->scratch + hone_probe_scratch(n, true);
  if (ladder->to_come == NULL || ladder->to_come_trans != trans ||
      ladder->copy_rung != r || ladder->scaling.used ||
      ladder->rung[r].engine->solved_beside == NULL)
    return NULL;
  (void)hone_scale_in(n, NULL, ladder->to_come, to);
  return to;
}

void hone_ladder_expect_certificate(hone_ladder *ladder, int r) {
  hone_factored f = hone_ladder_factored_by(ladder, r);
  f.deflation = NULL; /* that of an earlier matrix */
  hone_ladder_draw_for(ladder, HONE_DRAW_CERTIFICATE, r);
  const hone_probing probing = {.f = &f,
                                .seed = ladder->seed,
                                .scratch = ladder->scratch,
                                .beside = put_beside(ladder, r, false),
                                .inverse = true};
  hone_probe_expect(&probing);
}

/* Do factors of one triangle rely on a claim of symmetry that no engine has
   confirmed? */
static bool relies_on_claim(const hone_ladder *ladder, const hone_rung *rung) {
  return rung->engine->symmetric &&
         ladder->request.structure == HONE_STRUCTURE_SPD &&
         ladder->inspection.symmetry != HONE_SYMMETRY_FOUND;
}

/* Says so if that claim is wrong, where one correction does not contract.
   Factors that contract serve all the same. */
static void judge_claim(const hone_ladder *ladder, int r, hone_report *report) {
  const hone_rung *rung = &ladder->rung[r];
  const hone_operator *op = ladder->a.op;
  if (!relies_on_claim(ladder, rung) || ladder->factors_stale ||
      rung->certificate.contraction[0].power == 1)
    return;
  /* An A that cannot be fetched is not known to be anything. */
  if (ladder->inspection.symmetry == HONE_SYMMETRY_REFUTED ||
      (op->symmetric != NULL &&
       hone_matrix_await(&ladder->a, ladder->pool) == HONE_OK &&
       !op->symmetric(&ladder->a, ladder->pool)))
    hone_ladder_add_reason(report, rung->engine->name,
                           "the matrix is not symmetric to the last bit");
}

int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report) {
  const double start = hone_now_s();
  hone_rung *rung = &ladder->rung[r];
  hone_certificate *out = &rung->certificate;
  hone_deflation *deflation = begin_deflation(ladder, r);
  const hone_factored f = hone_ladder_factored_by(ladder, r);
  const hone_certify_job job = {
      .f = &f,
      .deflation = deflation,
      .null = begin_null(ladder, r),
      .replaced = rung->info.replaced && !ladder->factors_stale,
      .of_another = ladder->factors_stale || ladder->copy_refuted ||
                    relies_on_claim(ladder, rung),
      .norm1 = ladder->norm1,
      .norm1_scaled = ladder->inspection.norm1,
      .scratch = ladder->scratch,
      .seed = &ladder->seed,
      .beside = put_beside(ladder, r, false)};
  *out = (hone_certificate){
      .contraction = {{.rows = rung->rows}, {.rows = rung->rows + ladder->n}}};
  hone_ladder_draw_for(ladder, HONE_DRAW_CERTIFICATE, r);
  ladder->certificates++;
  int st = hone_certify(&job, out);
  const bool accurate = rung->engine->precision == 64 &&
                        !rung->engine->symmetric &&
                        hone_ladder_is_last(ladder, r);
  if (st == HONE_OK && !ladder->factors_stale &&
      (out->singular || (accurate && !out->nonsingular)))
    ladder->refuted = true;
  count_passes(&f, out->passes, rung->deflation.count > 0, report);
  if (st == HONE_OK)
    judge_claim(ladder, r, report);
  report->certify_ms += 1e3 * (hone_now_s() - start);
  return st;
}

int hone_ladder_certify_replaced(hone_ladder *ladder, int r,
                                 hone_report *report, bool *certified) {
  const double start = hone_now_s();
  hone_rung *rung = &ladder->rung[r];
  hone_certificate *out = &rung->certificate;
  const hone_certificate earlier = *out;
  (void)begin_deflation(ladder, r);
  const hone_factored f = hone_ladder_factored_by(ladder, r);
  const hone_certify_job job = {.f = &f,
                                .null = begin_null(ladder, r),
                                .norm1 = ladder->norm1,
                                .norm1_scaled = ladder->inspection.norm1,
                                .scratch = ladder->scratch};
  out->singular = out->exactly_singular = *certified = false;
  out->null_vector = out->left_null_vector = NULL;
  if (!rung->info.replaced || job.null == NULL)
    return HONE_OK;
  *out = (hone_certificate){
      .contraction = {{.rows = rung->rows}, {.rows = rung->rows + ladder->n}}};
  int st = hone_certify_singular(&job, out);
  count_passes(&f, out->passes, false, report);
  report->certify_ms += 1e3 * (hone_now_s() - start);
  if (st == HONE_OK && out->singular) {
    ladder->refuted = *certified = true;
  } else if (st == HONE_OK && (ladder->request.deflation > 0 ||
                               hone_policy_deflates_replaced(ladder->n))) {
    *certified = true;
    st = hone_ladder_certify(ladder, r, report);
  } else {
    *out = earlier;
    out->singular = out->exactly_singular = false;
    out->null_vector = out->left_null_vector = NULL;
  }
  return st;
}

int hone_ladder_certify_transpose(hone_ladder *ladder, int r,
                                  hone_report *report) {
  const double start = hone_now_s();
  hone_rung *rung = &ladder->rung[r];
  hone_certificate *out = &rung->certificate;
  const int passes = out->passes;
  if (out->contraction[1].tried || !out->nonsingular)
    return HONE_OK;
  const hone_factored f = hone_ladder_factored_by(ladder, r);
  const hone_certify_job job = {.f = &f,
                                .scratch = ladder->scratch,
                                .seed = &ladder->seed,
                                .beside = put_beside(ladder, r, true)};
  hone_ladder_draw_for(ladder, HONE_DRAW_TRANSPOSE, r);
  int st = hone_certify_transpose(&job, out);
  if (st != HONE_OK) /* the next solve with A^T tries again */
    out->contraction[1].tried = false;
  count_passes(&f, out->passes - passes, rung->deflation.count > 0, report);
  report->certify_ms += 1e3 * (hone_now_s() - start);
  return st;
}
