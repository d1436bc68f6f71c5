/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder's questions to the policy: which rungs are for a matrix of this
   structure, which rung follows one that failed, and how many GMRES steps are
   worth making. Nothing here decides whether an x is accepted. Next to read:
   policy.c. */
#include "refine/ladder.h"

/* Marks the rungs that are not for a matrix of the structure found. */
static void mark_rungs(hone_ladder *ladder) {
  ladder->lowest_rung = -1;
  for (int r = 0; r < ladder->rung_count; r++) {
    hone_rung *rung = &ladder->rung[r];
    rung->not_applicable =
        rung->engine->applies != NULL &&
        !rung->engine->applies(&ladder->structure, ladder->n);
    if (ladder->lowest_rung < 0 && !rung->not_applicable)
      ladder->lowest_rung = r;
  }
}

static int search_in_a(hone_ladder *ladder, hone_search search) {
  return ladder->a.op->find_structure(&ladder->a, ladder->pool, search,
                                      (double *)ladder->scratch,
                                      &ladder->structure);
}

/* Where the first engine for symmetric matrices brings A to a device, it
   compares the triangles of A on the way. */
int hone_ladder_find_applicable(hone_ladder *ladder) {
  const int64_t n = ladder->n;
  hone_search search = HONE_SEARCH_ZEROS;
  bool any = false;
  int st = HONE_OK;
  for (int r = 0; r < ladder->rung_count; r++) {
    const hone_engine *engine = ladder->rung[r].engine;
    any = any || engine->applies != NULL;
    if (search == HONE_SEARCH_ZEROS && engine->applies != NULL &&
        engine->symmetric)
      search = engine->resident != NULL ? HONE_SEARCH_SAMPLE : HONE_SEARCH_ALL;
  }
  ladder->structure = (hone_structure){.lower = n - 1,
                                       .upper = n - 1,
                                       .definite = ladder->request.structure ==
                                                   HONE_STRUCTURE_SPD};
  if (any && ladder->request.structure == HONE_STRUCTURE_AUTO &&
      ladder->a.op->find_structure != NULL)
    st = search_in_a(ladder, search);
  mark_rungs(ladder);
  return st;
}

int hone_ladder_settle_symmetry(hone_ladder *ladder, bool refuted) {
  const int64_t n = ladder->n;
  const int symmetric = ladder->lowest_rung;
  int st = HONE_OK;
  if (refuted)
    ladder->structure = (hone_structure){
        .lower = n - 1, .upper = n - 1, .found = HONE_FOUND_GENERAL};
  else
    st = search_in_a(ladder, HONE_SEARCH_ALL);
  mark_rungs(ladder);
  if (ladder->lowest_rung != symmetric)
    hone_ladder_destroy_rung(ladder, &ladder->rung[symmetric]);
  return st;
}

hone_failure hone_ladder_failure(const hone_rung *rung) {
  const bool rounding =
      rung->info.rounding || hone_arithmetic_coarse(rung->choices.arithmetic);
  if (rung->engine->precision == 64 && !rung->engine->symmetric &&
      hone_policy_growth_spoils(rung->info.growth, rung->info.zero_pivot >= 0))
    return HONE_FAILURE_GROWTH;
  if (rung->info.zero_pivot < 0)
    return HONE_FAILURE_WEAK;
  return rung->engine->symmetric && rounding ? HONE_FAILURE_ROUNDING
                                             : HONE_FAILURE_PIVOT;
}

const char *hone_ladder_doubt(const hone_rung *rung) {
  if (hone_engine_direct(rung->engine))
    return "in double precision the matrix cannot be told from a singular one";
  return hone_ladder_failure(rung) == HONE_FAILURE_GROWTH
             ? "its factors grew too much to tell the matrix from a singular "
               "one"
             : "these factors cannot tell the matrix from a singular one";
}

static int rank_of_rung(const hone_rung *rung) {
  return hone_policy_rank(rung->engine, rung->choices.arithmetic);
}

int hone_ladder_successor(const hone_ladder *ladder, int r) {
  const hone_rung *failed = &ladder->rung[r];
  int next = r + 1;
  for (; next < ladder->rung_count; next++) {
    const hone_rung *rung = &ladder->rung[next];
    if (!rung->not_applicable &&
        hone_policy_follows(failed->engine, rank_of_rung(failed),
                            hone_ladder_failure(failed), rung->engine,
                            rank_of_rung(rung)))
      break;
  }
  return next;
}

bool hone_ladder_is_last(const hone_ladder *ladder, int r) {
  const int next = hone_ladder_successor(ladder, r);
  return next == ladder->rung_count || ladder->rung[next].second_opinion;
}

int hone_ladder_next_for_columns(const hone_ladder *ladder, int r) {
  const int next = hone_ladder_successor(ladder, r);
  if (next < ladder->rung_count || r + 1 == ladder->rung_count ||
      !ladder->rung[r + 1].second_opinion ||
      !ladder->rung[r].certificate.nonsingular || ladder->refuted)
    return next;
  return r + 1;
}

int hone_ladder_other_engine(const hone_ladder *ladder, int r) {
  int next = r + 1;
  while (next < ladder->rung_count &&
         (ladder->rung[next].engine == ladder->rung[r].engine ||
          ladder->rung[next].engine->other_pivots))
    next++;
  return next;
}

static int64_t steps_that_pay(const hone_ladder *ladder, int r,
                              int64_t columns) {
  const int next = hone_ladder_successor(ladder, r);
  const hone_gmres_situation situation = {
      .n = ladder->n,
      .columns = columns,
      .next_is_same_engine =
          next < ladder->rung_count &&
          ladder->rung[next].engine == ladder->rung[r].engine,
      .copy_on_device = ladder->copy_rung == r};
  return hone_policy_gmres_steps(&situation);
}

int hone_ladder_gmres_steps(hone_ladder *ladder, int r, int64_t columns,
                            hone_report *report) {
  hone_entry **memory = &ladder->pairs_memory;
  const hone_request *request = &ladder->request;
  const int64_t steps = request->gmres_steps != 0
                            ? request->gmres_steps
                            : steps_that_pay(ladder, r, columns);
  if (ladder->rung[r].engine->precision == 64 || ladder->factors_stale ||
      ladder->rung[r].certificate.singular || steps <= 0)
    return 0;
  if (*memory == NULL)
    *memory = hone_mem_get(ladder->mem, (size_t)hone_space_entries(ladder->n) *
                                            sizeof **memory);
  if (*memory == NULL) {
    hone_ladder_add_reason(report, "GMRES", hone_status_text(HONE_NO_MEMORY));
    return 0;
  }
  return (int)(request->max_iterations > 0
                   ? HONE_MIN(steps, (int64_t)request->max_iterations)
                   : steps);
}
