/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder with scripted engines (scripted_engine.h), of which the first is
   for matrices of one structure. For real and for complex entries. */
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

/* Three scripted engines: a direct one, single and double LU. */
typedef struct ladder_test {
  hone_engine direct;
  sup_script *script[SUP_SCRIPTS];
  hone_ladder ladder;
  hone_mem mem;
  hone_watch watch;
  hone_report report;
} ladder_test;

static const hone_entry triangle_a[4] = {ENTRY(2.0, 1.0), ENTRY(0.5, -0.5), 0.0,
                                         ENTRY(1.0, 2.0)};

static bool for_triangles(const hone_structure *structure, int64_t n) {
  return n == 2 && structure->upper == 0;
}

static void set_up(ladder_test *s) {
  *s = (ladder_test){.report.bad_col = -1};
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

static int run(ladder_test *s, const hone_entry *a) {
  const hone_entry b[2] = {1.0, ENTRY(-1.0, 3.0)};
  hone_entry x[2] = {0.0, 0.0};
  int st = hone_ladder_factor(&s->ladder, sup_matrix(2, 2, a), &s->report);
  if (st == HONE_OK)
    st = hone_ladder_solve(&s->ladder, false, 1, b, 2, x, 2, NULL, 0, NULL,
                           &s->report);
  if (st == HONE_OK)
    CHECK_LE(entries_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  return st;
}

static void check_factors(const ladder_test *s, int direct, int single,
                          int dp) {
  CHECK_EQ_INT(s->script[0]->factors, direct);
  CHECK_EQ_INT(s->script[1]->factors, single);
  CHECK_EQ_INT(s->script[2]->factors, dp);
}

TEST_OF(direct, engine_is_created_for_its_structure_only) {
  static const hone_entry full[4] = {ENTRY(2.0, 1.0), 0.5, ENTRY(0.25, 0.5),
                                     1.0};
  ladder_test s;
  set_up(&s);
  CHECK_EQ_INT(run(&s, triangle_a), HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_STR(s.report.reason, "");
  set_up(&s);
  CHECK_EQ_INT(run(&s, full), HONE_OK);
  check_factors(&s, 0, 1, 0);
  CHECK_EQ_INT(s.script[0]->creates, 0);
  CHECK_EQ_INT(s.report.fallback_columns, 0);
  CHECK_STR(s.report.reason, "");
}

TEST_OF(direct, engine_that_does_not_converge_is_followed_by_double_lu) {
  for (int kind = 0; kind < 3; kind++) {
    ladder_test s;
    set_up(&s);
    if (kind == 0)
      s.script[0]->info.growth = (double)NAN;
    else if (kind == 1)
      s.script[0]->rate = 0.9;
    else
      s.script[0]->rate = (double)NAN;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run(&s, triangle_a), HONE_OK);
    check_factors(&s, 1, 0, 1);
    CHECK_CONTAINS(s.report.reason, "direct way: ");
    CHECK_EQ_INT(s.report.fallback_columns, 1);
  }
}

TEST_OF(direct, engine_without_memory_is_followed_by_single_lu) {
  for (int kind = 0; kind < 2; kind++) {
    ladder_test s;
    set_up(&s);
    if (kind == 0)
      s.script[0]->create_status = HONE_NO_MEMORY;
    else
      s.script[0]->factor_status = HONE_NO_MEMORY;
    ct_note("kind %d", kind);
    CHECK_EQ_INT(run(&s, triangle_a), HONE_OK);
    check_factors(&s, kind, 1, 0);
    CHECK_CONTAINS(s.report.reason, "direct way: out of memory");
  }
}

TEST_OF(direct, engine_with_a_zero_pivot_is_followed_by_none) {
  ladder_test s;
  set_up(&s);
  s.script[0]->info.zero_pivot = 1;
  CHECK_EQ_INT(run(&s, triangle_a), HONE_SINGULAR);
  check_factors(&s, 1, 0, 0);
  CHECK_EQ_INT(s.report.bad_col, 1);
}

/* Factors of another matrix do not reproduce A. They are of double precision,
   so no other engine would do better: the ladder keeps them. */
TEST_OF(direct, engine_without_a_certificate_is_followed_by_none) {
  static const hone_entry another[4] = {1e-17, 0.0, 0.0, -1.0};
  ladder_test s;
  set_up(&s);
  s.script[0]->instead = another;
  int st =
      hone_ladder_factor(&s.ladder, sup_matrix(2, 2, triangle_a), &s.report);
  CHECK_EQ_INT(st, HONE_OK);
  check_factors(&s, 1, 0, 0);
  CHECK_CONTAINS(s.report.reason, "cannot be told from a singular one");
  hone_ladder_destroy(&s.ladder);
}

/* Engines that factor A before it is inspected ----------------------------- */

static int not_inspected;
static int (*scripted_factor)(void *self, const hone_matrix *a,
                              const hone_scaling *scaling,
                              hone_factor_info *info);

static bool is_resident(void *self) { return self != NULL; }

/* Fails if A was not inspected; the ladder then inspects A itself. */
static int refuse_before_inspection(void *self, const hone_matrix *a,
                                    const hone_scaling *scaling,
                                    hone_factor_info *info) {
  not_inspected += scaling == NULL;
  return scaling == NULL ? HONE_DEVICE_FAILED
                         : scripted_factor(self, a, scaling, info);
}

TEST_OF(direct, engine_comes_before_one_that_factors_without_inspection) {
  static const hone_entry full[4] = {ENTRY(2.0, 1.0), 0.5, ENTRY(0.25, 0.5),
                                     1.0};
  for (int triangle = 0; triangle < 2; triangle++) {
    ladder_test s;
    set_up(&s);
    hone_engine device = *s.ladder.rung[1].engine;
    scripted_factor = device.factor;
    device.factor = refuse_before_inspection;
    device.resident = is_resident;
    s.ladder.rung[1].engine = &device;
    not_inspected = 0;
    ct_note("triangle %d", triangle);
    CHECK_EQ_INT(run(&s, triangle ? triangle_a : full), HONE_OK);
    CHECK_EQ_INT(not_inspected, !triangle);
    check_factors(&s, triangle, !triangle, 0);
    CHECK_EQ_INT(s.script[1]->creates, !triangle);
  }
}

/* Scripted Cholesky in single and double, scripted LU in single, and the true
   LU in double. The failures: */
enum {
  SINGLE_BREAKS,
  SINGLE_ROUNDS,
  SINGLE_IS_SLOW,
  BOTH_BREAK, /* the first one by rounding */
  DOUBLE_IS_SLOW,
  FAILURES
};

TEST_OF(direct, failure_of_cholesky_decides_what_follows) {
  static const char *const paths[FAILURES] = {
      "C32 set aside, LU32", "C32 set aside, C64", "C32, C64",
      "C32 set aside, C64 set aside, LU32", "C32 set aside, C64, double LU"};
  static const hone_entry a[4] = {2.0, ENTRY(0.5, -0.25), ENTRY(0.5, 0.25),
                                  1.0};
  static const hone_entry b[2] = {1.0, ENTRY(-1.0, 3.0)};
  for (int failure = 0; failure < FAILURES; failure++) {
    ladder_test s = {.report.bad_col = -1};
    const hone_request request = {.limit = SUP_LIMIT};
    hone_engine c32 = *sup_scripted(0, "C32", 32, &s.script[0]);
    hone_engine c64 = *sup_scripted(1, "C64", 64, &s.script[1]);
    c32.symmetric = c64.symmetric = true;
    const hone_engine *engines[] = {&c32, &c64,
                                    sup_scripted(2, "LU32", 32, &s.script[2]),
                                    &hone_engine_double};
    hone_entry x[2];
    CHECK_EQ_INT(sup_ladder_create(&s.ladder, 2, engines, 4, &request, &s.mem,
                                   NULL, &s.watch),
                 HONE_OK);
    s.script[0]->ladder = s.script[1]->ladder = &s.ladder;
    s.script[0]->info.zero_pivot = failure == SINGLE_IS_SLOW ? -1 : 1;
    s.script[0]->info.rounding = failure != SINGLE_BREAKS;
    s.script[0]->rate = failure == SINGLE_IS_SLOW ? 0.9 : 0.0;
    s.script[1]->info.zero_pivot = failure == BOTH_BREAK ? 1 : -1;
    s.script[1]->rate = failure == DOUBLE_IS_SLOW ? 0.9 : 0.0;
    ct_note("failure %d", failure);
    CHECK_EQ_INT(hone_ladder_factor(&s.ladder, sup_matrix(2, 2, a), &s.report),
                 HONE_OK);
    CHECK_EQ_INT(hone_ladder_solve(&s.ladder, false, 1, b, 2, x, 2, NULL, 0,
                                   NULL, &s.report),
                 HONE_OK);
    CHECK_LE(entries_backward_error(2, a, 2, false, x, b), SUP_LIMIT);
    CHECK_STR(s.report.path, paths[failure]);
    hone_ladder_destroy(&s.ladder);
    CHECK_EQ_INT(s.mem.held, 0);
  }
}
