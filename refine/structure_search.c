/* SPDX-License-Identifier: BSD-3-Clause */
/* The look before the ladder is climbed: which rungs are for a matrix of this
   structure. Nothing here decides whether an x is accepted. */
#include "refine/ladder.h"

int hone_ladder_find_structure(hone_ladder *ladder) {
  const int64_t n = ladder->n;
  hone_structure *s = &ladder->structure;
  bool any = false, definite = false;
  int st = HONE_OK;
  for (int r = 0; r < ladder->rungs; r++) {
    const hone_engine *engine = ladder->rung[r].engine;
    any = any || engine->applies != NULL;
    definite = definite || (engine->applies != NULL && engine->symmetric);
  }
  *s = (hone_structure){.lower = n - 1,
                        .upper = n - 1,
                        .definite =
                            ladder->request.structure == HONE_STRUCTURE_SPD};
  if (any && ladder->request.structure == HONE_STRUCTURE_AUTO &&
      ladder->a.op->find_structure != NULL)
    st = ladder->a.op->find_structure(&ladder->a, ladder->pool, definite,
                                      (double *)ladder->scratch, s);
  ladder->first = -1;
  for (int r = 0; r < ladder->rungs; r++) {
    hone_rung *rung = &ladder->rung[r];
    rung->skipped =
        rung->engine->applies != NULL && !rung->engine->applies(s, n);
    if (ladder->first < 0 && !rung->skipped)
      ladder->first = r;
  }
  return st;
}
