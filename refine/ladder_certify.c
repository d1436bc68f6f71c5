/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of one rung: whether its factors distinguish the matrix from
   a singular one, and how much they contract. Next to read: condition.c. */
#include "refine/bounds.h"
#include "refine/ladder.h"

#include <math.h>

enum { CERTIFICATE_STEPS = 12 }; /* passes over A, at most */

/* Did the caller say that A is symmetric where it is not, so that the factors
   of rung r are those of one triangle only? (A copy made from the triangle is
   kept only where it equals A, see gpu_sp/feed/feed.cu; where the library
   itself found A to be symmetric, it is.) */
static bool symmetry_claim_is_false(const hone_ladder *ladder, int r) {
  return ladder->rung[r].engine->symmetric && ladder->copy_rung != r &&
         ladder->request.structure == HONE_STRUCTURE_SPD &&
         !ladder->a.op->symmetric(&ladder->a, ladder->pool);
}

/* Certifies the factors of rung r. If that needs a space of GMRES, its pairs
   stay in the ladder. */
int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report) {
  double start = hone_now_s();
  hone_factored f = hone_ladder_factored_by(ladder, r);
  hone_certificate *out = &ladder->rung[r].certificate;
  int st = hone_certify(&f, ladder->norm1, ladder->inspection.norm1,
                        ladder->scratch, out);
  if (st == HONE_OK && !out->nonsingular &&
      hone_ladder_gmres_steps(ladder, r, ladder->request.columns, report) > 0) {
    const int passes_without = out->passes;
    ladder->space = hone_space_make(ladder->n, false, ladder->pairs_memory);
    ladder->space_rung = r;
    f.space = &ladder->space;
    st =
        hone_certify_with_gmres(&f, CERTIFICATE_STEPS, ladder->norm1,
                                ladder->inspection.norm1, ladder->scratch, out);
    report->certificate_steps += out->passes - passes_without;
  }
  out->predicted_contraction =
      hone_policy_roundoff(ladder->rung[r].engine,
                           ladder->rung[r].choices.arithmetic) /
      out->rcond_scaled * fmax(1.0, ladder->rung[r].info.growth);
  if (st == HONE_OK && out->nonsingular && out->pairs == 0 &&
      hone_bounds_contraction_doubtful(
          out, ladder->factors_stale || symmetry_claim_is_false(ladder, r))) {
    st = hone_certify_contraction(&f, ladder->scratch, out);
  }
  report->certify_ms += 1e3 * (hone_now_s() - start);
  *(f.use_copy ? &report->device_passes : &report->passes) +=
      ladder->rung[r].certificate.passes;
  return st;
}
