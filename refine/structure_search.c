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
                                      ladder->scratch, s);
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

bool hone_ladder_direct(const hone_engine *engine) {
  return engine->applies != NULL && !engine->symmetric;
}

/* Would this rung do better than the one below did? */
static bool better(const hone_rung *below, const hone_rung *rung) {
  const int was = hone_rung_rank(below), is = hone_rung_rank(rung);
  const bool coarse = hone_arithmetic_coarse(below->choices.arithmetic);
  const bool broke = below->info.zero_pivot >= 0;
  if (hone_ladder_direct(below->engine))
    return is >= was;
  if (!below->engine->symmetric)
    return is > was;
  if (rung->engine->symmetric)
    return is > was && (!broke || below->info.rounding || coarse);
  return broke || is >= was;
}

int hone_ladder_above(const hone_ladder *ladder, int r) {
  int next = r + 1;
  while (next < ladder->rungs &&
         (ladder->rung[next].skipped ||
          !better(&ladder->rung[r], &ladder->rung[next])))
    next++;
  return next;
}
