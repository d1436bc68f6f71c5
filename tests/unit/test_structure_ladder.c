/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder of a matrix that may be positive definite, with scripted engines
   (scripted_engine.h). For real and for complex entries. */
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>

/* Scripted Cholesky, LU and double LU. */
typedef struct ladder_test {
  hone_engine chol, lu;
  sup_script *script[SUP_SCRIPTS];
  hone_ladder ladder;
  hone_mem mem;
  hone_watch watch;
  hone_report report;
} ladder_test;

static const hone_entry stage_a[4] = {2.0, ENTRY(0.5, -0.25), ENTRY(0.5, 0.25),
                                      1.0};

static void set_up(ladder_test *s) {
  *s = (ladder_test){.report.bad_col = -1};
  const hone_request request = {.limit = SUP_LIMIT};
  s->chol = *sup_scripted(0, "Cholesky", 32, &s->script[0]);
  s->chol.symmetric = true;
  s->lu = *sup_scripted(1, "LU", 32, &s->script[1]);
  const hone_engine *engines[] = {
      &s->chol, &s->lu, sup_scripted(2, "double LU", 64, &s->script[2])};
  CHECK_EQ_INT(sup_ladder_create(&s->ladder, 2, engines, 3, &request, &s->mem,
                                 NULL, &s->watch),
               HONE_OK);
  for (int i = 0; i < SUP_SCRIPTS; i++)
    s->script[i]->ladder = &s->ladder;
}

static int run(ladder_test *s) {
  const hone_entry b[2] = {1.0, ENTRY(-1.0, 3.0)};
  hone_entry x[2] = {0.0, 0.0};
  int st =
      hone_ladder_factor(&s->ladder, sup_matrix(2, 2, stage_a), &s->report);
  if (st == HONE_OK)
    st = hone_ladder_solve(&s->ladder, false, 1, b, 2, x, 2, NULL, 0, NULL,
                           &s->report);
  if (st == HONE_OK)
    CHECK_LE(entries_backward_error(2, stage_a, 2, false, x, b), SUP_LIMIT);
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  return st;
}

TEST_OF(structure, spd_falls_back_to_lu_of_the_same_precision) {
  for (int kind = 0; kind < 3; kind++) {
    ladder_test s;
    set_up(&s);
    if (kind == 0)
      s.script[0]->info.zero_pivot = 1;
    else if (kind == 1)
      s.script[0]->info.growth = (double)NAN;
    else
      s.script[0]->rate = 0.9; /* refinement is too slow */
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run(&s), HONE_OK);
    CHECK_EQ_INT(s.script[0]->factors, 1);
    CHECK_EQ_INT(s.script[1]->factors, 1);
    CHECK_EQ_INT(s.script[2]->factors, 0);
    CHECK_EQ_INT(s.report.precision, 32);
    CHECK_CONTAINS(s.report.reason, kind == 0   ? "a pivot is not positive"
                                    : kind == 1 ? "the factors overflow"
                                                : "Cholesky: ");
  }
}

TEST_OF(structure, spd_with_a_bad_cholesky_pivot_is_not_called_singular) {
  ladder_test s;
  set_up(&s);
  s.script[0]->info.zero_pivot = 1;
  s.script[1]->create_status = s.script[2]->create_status = HONE_NO_MEMORY;
  CHECK_EQ_INT(run(&s), HONE_NO_MEMORY);
  CHECK_EQ_INT(s.report.bad_col, -1);
  set_up(&s);
  s.script[0]->info.zero_pivot = 1;
  s.script[1]->info.zero_pivot = s.script[2]->info.zero_pivot = 0;
  CHECK_EQ_INT(run(&s), HONE_SINGULAR); /* LU finds A singular */
  CHECK_EQ_INT(s.report.bad_col, 0);
}
