/* SPDX-License-Identifier: BSD-3-Clause */
/* The look before the ladder is climbed: which rungs are for a matrix of this
   structure. Nothing here decides whether an x is accepted. */
#include "cpu_dp/structure.h"
#include "refine/ladder.h"

enum { PROBED_FROM = 256 }; /* order; below it all of A comes as soon */

/* Of a matrix on a device a few columns are fetched: where they show that there
   is nothing to be found, the others may come while it is being factored. */
static bool excluded(hone_ladder *ladder, bool definite, int *st) {
  hone_host_copy *host_copy = ladder->host_copy;
  int64_t column[HONE_STRUCTURE_PROBES];
  if (host_copy == NULL || host_copy->state != HONE_HOST_COPY_PENDING ||
      ladder->n < PROBED_FROM)
    return false;
  for (int k = 0; k < HONE_STRUCTURE_PROBES; k++)
    column[k] = hone_structure_probe(ladder->n, k);
  *st = hone_host_copy_columns(host_copy, column, HONE_STRUCTURE_PROBES);
  return *st == HONE_OK && hone_structure_excluded(&ladder->a, definite);
}

static int find(hone_ladder *ladder, bool definite) {
  int st = HONE_OK;
  if (excluded(ladder, definite, &st))
    return HONE_OK;
  if (st == HONE_OK)
    st = hone_host_copy_await(ladder->host_copy, ladder->pool);
  if (st == HONE_OK)
    hone_structure_find(ladder->pool, &ladder->a, definite, ladder->scratch,
                        &ladder->structure);
  return st;
}

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
  if (any && ladder->request.structure == HONE_STRUCTURE_AUTO)
    st = find(ladder, definite);
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

int hone_ladder_found(const hone_ladder *ladder) {
  const hone_structure *s = &ladder->structure;
  if (ladder->request.structure != HONE_STRUCTURE_AUTO)
    return HONE_FOUND_GENERAL;
  if (s->lower == 0 && s->upper == 0)
    return HONE_FOUND_DIAGONAL;
  if (s->lower == 0 || s->upper == 0)
    return HONE_FOUND_TRIANGULAR;
  if (hone_band_pays(s->lower, s->upper, ladder->n))
    return HONE_FOUND_BANDED;
  return s->definite ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL;
}

bool hone_ladder_direct(const hone_engine *engine) {
  return engine->applies != NULL && !engine->symmetric;
}

/* Would this rung do better than the one below did? */
static bool better(const hone_rung *below, const hone_rung *rung) {
  const int was = hone_rung_rank(below), is = hone_rung_rank(rung);
  const bool coarse = hone_arithmetic_coarse(below->tuning.arithmetic);
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
