/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's floating-point environment changes no result, no trap of the
   caller is sprung, and every call gives the environment back with its flags.
 */
#include "base/pool.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/float_settings.h"

#include <fenv.h>
#include <float.h>
#include <string.h>
#include <time.h>

/* The results of a call that the environment could change. */
typedef struct outcome {
  int status;
  double backward_error, forward_error, rcond;
  char path[160];
} outcome;

static outcome outcome_of(int status, const hone_report *report) {
  outcome o;
  memset(&o, 0, sizeof o);
  o.status = status;
  o.backward_error = report->backward_error;
  o.forward_error = report->forward_error;
  o.rcond = report->rcond;
  strcpy(o.path, report->path);
  return o;
}

/* Solves in every environment; x and the report must be those of the first,
   the default one. */
static void check_solve(sys *s) {
  const int64_t count = sys_doubles(s);
  outcome first;
  double *x = NULL;
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    const float_setting *setting = &float_settings[k];
    ct_note("n %d, parts %d, %s", (int)s->n, s->parts, setting->name);
    for (int64_t i = 0; i < count; i++)
      s->x[i] = UNTOUCHED;
    s->report = (hone_report)HONE_REPORT_INIT;
    float_setting_enter(setting);
    const int st = sys_call(s);
    CHECK(float_setting_leave(setting));
    const outcome now = outcome_of(st, &s->report);
    if (k == 0) {
      first = now;
      x = sup_copy(s->x, count);
    }
    CHECK_MEM_EQ(&now, &first, sizeof now);
    CHECK_MEM_EQ(s->x, x, (size_t)count * sizeof *x);
  }
  sup_free(x);
}

TEST(float_environment, of_the_caller_changes_no_result) {
  static const struct {
    int64_t n, nrhs;
    int precision;
  } cases[] = {{2, 1, HONE_FACTOR_AUTO},
               {20, 3, HONE_FACTOR_SINGLE},
               {130, 1, HONE_FACTOR_AUTO},
               {420, 2, HONE_FACTOR_SINGLE},
               {420, 1, HONE_FACTOR_DOUBLE}};
  for (int i = 0; i < 10; i++) {
    sys s = sys_make_of(1 + i / 5, cases[i % 5].n, cases[i % 5].nrhs);
    s.options.deterministic = 1;
    s.options.factor_precision = cases[i % 5].precision;
    check_solve(&s);
    sys_discard(&s);
  }
}

TEST(float_environment, of_the_caller_changes_no_failure) {
  for (int way = 0; way < 8; way++) {
    const int k = way % 4;
    sys s = sys_make_of(1 + way / 4, 40, 1);
    const int64_t column = s.parts * s.lda;
    s.options.deterministic = 1;
    if (k == 0)
      s.a[5] = HONE_NAN;
    else if (k == 1)
      s.b[5] = HUGE_VAL;
    else if (k == 2) /* singular */
      memcpy(s.a, s.a + column, (size_t)column * sizeof *s.a);
    else
      s.options.struct_size = 3;
    check_solve(&s);
    sys_discard(&s);
  }
}

/* Where subnormal numbers count as zero, b is zero, and so would be x. */
TEST(float_environment, of_the_caller_does_not_flush_subnormal_numbers) {
  const double a[] = {0x1p-1000, 0, 0x1p-1001, 0x1p-1000};
  const double b[] = {0x1p-1040, 0x1p-1040};
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    const float_setting *setting = &float_settings[k];
    double x[2] = {7, 7}, bars[2];
    hone_options options = HONE_OPTIONS_INIT;
    ct_note("%s", setting->name);
    options.error_bounds = bars;
    options.ld_error_bounds = 2;
    float_setting_enter(setting);
    const int st = hone_solve(2, 1, a, 2, b, 2, x, 2, &options, NULL);
    CHECK(float_setting_leave(setting));
    CHECK_EQ_INT(st, HONE_OK);
    CHECK_NEAR(x[0], 0x1p-41, 0x1p-90);
    CHECK_NEAR(x[1], 0x1p-40, 0x1p-90);
    CHECK_LE(fabs(x[0] - 0x1p-41), bars[0]);
  }
}

/* Makes a call in the environment, and checks what it returns. */
#define CALL(call, expected)                                                   \
  do {                                                                         \
    float_setting_enter(setting);                                              \
    const int64_t returned = (int64_t)(call);                                  \
    CHECK(float_setting_leave(setting));                                       \
    CHECK_EQ_INT(returned, (int64_t)(expected));                               \
  } while (0)

static void check_solver(const float_setting *setting, sys *s) {
  either_solver solver;
  int64_t bytes[2];
  const either_call nothing = {
      .parts = s->parts, .nrhs = 1, .ldb = s->ldb, .x = s->x, .ldx = s->ldx};
  CALL(either_create(&solver, s->parts, s->n, &s->options), HONE_OK);
  CALL(sys_factor(s, &solver), HONE_OK);
  CALL(either_update(&solver, s->a, s->lda, &s->report), HONE_OK);
  CALL(sys_solve_with(s, &solver, s->x, &s->report), HONE_OK);
  CALL(either_solver_solve(&solver, &nothing, NULL, NULL), HONE_NULL_POINTER);
  CALL((either_destroy(&solver), 0), 0);
  CALL(either_memory_needed(s->parts, s->n, 1, NULL, &bytes[0], &bytes[1]),
       HONE_OK);
}

TEST(float_environment, is_given_back_by_every_call_of_a_solver) {
  sys s = sys_make(420, 1), z = sys_make_of(2, 420, 1);
  int64_t bytes[2];
  char text[4096];
  (void)hone_release_kept(); /* of tests before */
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    const float_setting *setting = &float_settings[k];
    ct_note("%s", setting->name);
    check_solver(setting, &s);
    check_solver(setting, &z);
    CALL(hone_device_memory_needed(s.n, NULL, &bytes[0], &bytes[1]), HONE_OK);
    CALL(hone_release_kept(), 0);
    CALL(hone_report_json(&s.report, text, sizeof text), strlen(text));
    CALL(hone_report_text(&s.report, text, sizeof text), strlen(text));
  }
  sys_discard(&s);
  sys_discard(&z);
}

TEST(float_environment, is_given_back_by_every_call_of_a_batch_solver) {
  bat t = bat_make(1, 5, 9, 1);
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    const float_setting *setting = &float_settings[k];
    hone_batch_solver *solver;
    ct_note("%s", setting->name);
    CALL(hone_batch_solver_create(&solver, NULL), HONE_OK);
    CALL(hone_batch_solver_factor(solver, &t.batch, t.results, &t.report),
         HONE_OK);
    CALL(hone_batch_solver_solve(solver, &t.batch, NULL, t.results, &t.report),
         HONE_OK);
    CALL((hone_batch_solver_destroy(&solver), 0), 0);
  }
  bat_discard(&t);
}

static int note_rounding(void *user, const hone_progress *event) {
  int *rounding = user;
  (void)event;
  *rounding = fegetround();
  fesetround(FE_DOWNWARD);
  return 0;
}

TEST(float_environment, of_a_progress_function_is_the_callers) {
  for (int parts = 1; parts <= 2; parts++) {
    sys s = sys_make_of(parts, 40, 1);
    int rounding = -1;
    s.options.progress = note_rounding;
    s.options.progress_user = &rounding;
    fesetround(FE_DOWNWARD);
    const int st = sys_call(&s);
    CHECK_EQ_INT(fegetround(), FE_DOWNWARD);
    CHECK_EQ_INT(rounding, FE_DOWNWARD);
    /* A setting that the function changes stays changed. */
    fesetround(FE_UPWARD);
    CHECK_EQ_INT(sys_call(&s), st);
    CHECK_EQ_INT(fegetround(), FE_DOWNWARD);
    fesetround(FE_TONEAREST);
    CHECK_EQ_INT(st, HONE_OK);
    sys_check(&s, st);
    sys_discard(&s);
  }
}

/* ---- Threads ------------------------------------------------------------- */

enum { WORKERS = 2 };

typedef struct seen {
  int rounding[WORKERS];
  bool flushes[WORKERS];
  _Atomic int count;
} seen;

static void look(void *ctx, int64_t task) {
  seen *s = ctx;
  volatile double least = DBL_MIN;
  s->rounding[task] = fegetround();
  s->flushes[task] = !(least / 2.0 > 0.0);
  s->count++;
}

TEST(float_environment, of_a_pools_creator_is_not_its_threads) {
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    const float_setting *setting = &float_settings[k];
    hone_mem mem = {0};
    hone_pool *pool = NULL;
    seen s;
    ct_note("%s", setting->name);
    memset(&s, 0, sizeof s);
    float_setting_enter(setting);
    hone_pool_create(&pool, &mem, WORKERS + 1);
    float_setting_leave(setting);
    hone_pool_start(pool, WORKERS, look, &s);
    for (int i = 0; i < 5000 && s.count < WORKERS; i++)
      (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    hone_pool_wait(pool);
    for (int i = 0; i < WORKERS; i++)
      CHECK(s.rounding[i] == FE_TONEAREST && !s.flushes[i]);
    hone_pool_destroy(&pool, &mem);
  }
}
