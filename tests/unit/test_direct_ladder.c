/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder with scripted engines (support.h) of which the first is for some
   matrices alone. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

/* A direct way and single and double LU that do as they are told. */
typedef struct stage {
  hone_engine direct;
  sup_script *script[SUP_SCRIPTS];
  hone_ladder ladder;
  hone_mem mem;
  hone_watch watch;
  hone_report report;
} stage;

static const double stage_a[4] = {2.0, 0.5, 0.0, 1.0};

static bool for_triangles(const hone_structure *structure, int64_t n) {
  return n == 2 && structure->upper == 0;
}

static void open_stage(stage *s) {
  *s = (stage){.report.bad_col = -1};
  const hone_request request = {.limit = SUP_LIMIT};
  s->direct = *sup_scripted(0, "direct way", 64, &s->script[0]);
  s->direct.applies = for_triangles;
  const hone_engine *engines[] = {
      &s->direct, sup_scripted(1, "single LU", 32, &s->script[1]),
      sup_scripted(2, "double LU", 64, &s->script[2])};
  CHECK_EQ_INT(sup_ladder_create(&s->ladder, 2, engines, 3, &request, &s->mem,
                                 NULL, &s->watch),
               HONE_OK);
  for (int i = 0; i < SUP_SCRIPTS; i++)
    s->script[i]->ladder = &s->ladder;
}

static int run_stage(stage *s, const double *a) {
  const double b[2] = {1.0, -1.0};
  double x[2] = {0.0, 0.0};
  int st = hone_ladder_factor(&s->ladder, sup_matrix(2, 2, a), &s->report);
  if (st == HONE_OK)
    st = hone_ladder_solve(&s->ladder, false, 1, b, 2, x, 2, NULL, 0, NULL,
                           &s->report);
  if (st == HONE_OK)
    CHECK_LE(sup_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  return st;
}

static void check_factors(const stage *s, int direct, int single, int dp) {
  CHECK_EQ_INT(s->script[0]->factors, direct);
  CHECK_EQ_INT(s->script[1]->factors, single);
  CHECK_EQ_INT(s->script[2]->factors, dp);
}

TEST(direct, is_made_for_its_structure_alone) {
  static const double full[4] = {2.0, 0.5, 0.25, 1.0};
  stage s;
  open_stage(&s);
  CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_STR(s.report.reason, "");
  open_stage(&s);
  CHECK_EQ_INT(run_stage(&s, full), HONE_OK);
  check_factors(&s, 0, 1, 0);
  CHECK_EQ_INT(s.script[0]->creates, 0);
  CHECK_EQ_INT(s.report.fallback_columns, 0);
  CHECK_STR(s.report.reason, "");
}

TEST(direct, is_followed_by_lu_in_double_where_it_does_not_serve) {
  for (int kind = 0; kind < 3; kind++) {
    stage s;
    open_stage(&s);
    if (kind == 0)
      s.script[0]->info.growth = (double)NAN;
    else if (kind == 1)
      s.script[0]->rate = 0.9;
    else
      s.script[0]->rate = (double)NAN;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
    check_factors(&s, 1, 0, 1);
    CHECK_CONTAINS(s.report.reason, "direct way: ");
    CHECK_EQ_INT(s.report.fallback_columns, kind == 0 ? 0 : 1);
  }
}

TEST(direct, is_followed_by_the_next_rung_where_it_cannot_be_had) {
  for (int kind = 0; kind < 2; kind++) {
    stage s;
    open_stage(&s);
    if (kind == 0)
      s.script[0]->create_status = HONE_NO_MEMORY;
    else
      s.script[0]->factor_status = HONE_NO_MEMORY;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run_stage(&s, stage_a), HONE_OK);
    check_factors(&s, kind, 1, 0);
    CHECK_CONTAINS(s.report.reason, "direct way: out of memory");
  }
}

TEST(direct, has_the_last_word_on_zero_pivots) {
  stage s;
  open_stage(&s);
  s.script[0]->info.zero_pivot = 1;
  CHECK_EQ_INT(run_stage(&s, stage_a), HONE_SINGULAR);
  check_factors(&s, 1, 0, 0);
  CHECK_EQ_INT(s.report.bad_col, 1);
}

/* Factors of another matrix do not reproduce A: in double, nothing else will;
   the x they give is the best there is and no more. */
TEST(direct, is_not_climbed_from_for_the_sake_of_the_certificate) {
  static const double another[4] = {1e-17, 0.0, 0.0, -1.0};
  stage s;
  open_stage(&s);
  s.script[0]->instead = another;
  int st = hone_ladder_factor(&s.ladder, sup_matrix(2, 2, stage_a), &s.report);
  CHECK_EQ_INT(st, HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_CONTAINS(s.report.reason, "cannot tell the matrix from a singular one");
  hone_ladder_destroy(&s.ladder);
}

/* Engines that take A unseen ------------------------------------------------
 */

static int unseen;
static int (*scripted_factor)(void *self, const hone_matrix *a,
                              const hone_scaling *scaling,
                              hone_factor_info *info);

static bool is_resident(void *self) { return self != NULL; }

/* Refuses what it has not seen; the ladder then looks for itself. */
static int refuse_unseen(void *self, const hone_matrix *a,
                         const hone_scaling *scaling, hone_factor_info *info) {
  unseen += scaling == NULL;
  return scaling == NULL ? HONE_DEVICE_FAILED
                         : scripted_factor(self, a, scaling, info);
}

TEST(direct, comes_before_an_engine_that_takes_a_unseen) {
  static const double full[4] = {2.0, 0.5, 0.25, 1.0};
  for (int triangle = 0; triangle < 2; triangle++) {
    stage s;
    open_stage(&s);
    hone_engine device = *s.ladder.rung[1].engine;
    scripted_factor = device.factor;
    device.factor = refuse_unseen;
    device.resident = is_resident;
    s.ladder.rung[1].engine = &device;
    unseen = 0;
    ct_note("triangle %d", triangle);
    CHECK_EQ_INT(run_stage(&s, triangle ? stage_a : full), HONE_OK);
    CHECK_EQ_INT(unseen, !triangle);
    check_factors(&s, triangle, !triangle, 0);
    CHECK_EQ_INT(s.script[1]->creates, !triangle);
  }
}

/* Cholesky in single and double, LU in single that do as they are told, and
   LU in double that is itself. What is told of: */
enum {
  SINGLE_BREAKS,
  SINGLE_ROUNDS,
  SINGLE_CREEPS,
  BOTH_BREAK, /* the first by rounding */
  DOUBLE_CREEPS,
  TALES
};

TEST(direct, climbs_from_cholesky_by_what_failed) {
  static const char *const paths[TALES] = {
      "C32 set aside, LU32", "C32 set aside, C64", "C32, C64",
      "C32 set aside, C64 set aside, LU32", "C32 set aside, C64, double LU"};
  static const double a[4] = {2.0, 0.5, 0.5, 1.0}, b[2] = {1.0, -1.0};
  for (int tale = 0; tale < TALES; tale++) {
    stage s = {.report.bad_col = -1};
    const hone_request request = {.limit = SUP_LIMIT};
    hone_engine c32 = *sup_scripted(0, "C32", 32, &s.script[0]);
    hone_engine c64 = *sup_scripted(1, "C64", 64, &s.script[1]);
    c32.symmetric = c64.symmetric = true;
    const hone_engine *engines[] = {&c32, &c64,
                                    sup_scripted(2, "LU32", 32, &s.script[2]),
                                    &hone_engine_double};
    double x[2];
    CHECK_EQ_INT(sup_ladder_create(&s.ladder, 2, engines, 4, &request, &s.mem,
                                   NULL, &s.watch),
                 HONE_OK);
    s.script[0]->ladder = s.script[1]->ladder = &s.ladder;
    s.script[0]->info.zero_pivot = tale == SINGLE_CREEPS ? -1 : 1;
    s.script[0]->info.rounding = tale != SINGLE_BREAKS;
    s.script[0]->rate = tale == SINGLE_CREEPS ? 0.9 : 0.0;
    s.script[1]->info.zero_pivot = tale == BOTH_BREAK ? 1 : -1;
    s.script[1]->rate = tale == DOUBLE_CREEPS ? 0.9 : 0.0;
    ct_note("tale %d", tale);
    CHECK_EQ_INT(hone_ladder_factor(&s.ladder, sup_matrix(2, 2, a), &s.report),
                 HONE_OK);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, 1, b, 2, x, 2, NULL, 0,
                                   NULL, &s.report),
                 HONE_OK);
    CHECK_LE(sup_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
    CHECK_STR(s.report.path, paths[tale]);
    hone_ladder_destroy(&s.ladder);
    CHECK_EQ_INT(s.mem.held, 0);
  }
}
