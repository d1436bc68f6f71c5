/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in in programs that trap exceptions, round otherwise, or flush
   subnormal numbers: calls that it solves itself return what they return
   elsewhere, and leave the environment as it was. */
#include "tests/unit/ct.h"
#include "tests/unit/float_settings.h"
#include "tests/unit/lapack_drop_in.h"

#include <errno.h>

static void call(const drop_in *d, int which, problem *s) {
  if (which == 0)
    drop_in_dgesv(d, s);
  else if (which == 1)
    drop_in_dsgesv(d, s);
  else if (which == 2)
    drop_in_dposv(d, s, 'U');
  else
    drop_in_dsposv(d, s, 'L');
}

static void check(const char *factors) {
  drop_in d = drop_in_open("1", factors);
  REQUIRE(d.dgesv != NULL);
  for (int which = 0; which < 4; which++) {
    problem s = problem_make(70, 1, which < 2 ? 1e5 : -1e5);
    const size_t count = entries(s.ld, s.nrhs);
    double *first = NULL;
    for (int k = 0; k < FLOAT_SETTINGS; k++) {
      ct_note("factors %s, routine %d, %s", factors, which,
              float_settings[k].name);
      problem_reset(&s);
      float_setting_enter(&float_settings[k]);
      call(&d, which, &s);
      CHECK(float_setting_leave(&float_settings[k]));
      CHECK_EQ_INT(s.info, 0);
      if (first == NULL)
        first = sup_copy(s.x, (int64_t)count);
      CHECK_MEM_EQ(s.x, first, count * sizeof *first);
    }
    sup_free(first);
    problem_free(&s);
  }
  drop_in_close(&d);
}

TEST(lapack, a_trap_or_rounding_of_the_caller_changes_nothing) {
  check("discard");
  check("keep");
}

TEST(lapack, kept_factors_are_refined_in_any_environment) {
  drop_in d = drop_in_open("1", "keep");
  REQUIRE(d.dgesv != NULL);
  problem s = problem_make(60, 1, 1e5);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  double *b = sup_copy(s.x, s.ld), *first = NULL;
  for (int k = 0; k < FLOAT_SETTINGS; k++) {
    ct_note("%s", float_settings[k].name);
    for (int i = 0; i < s.n; i++)
      s.x[i] = b[i];
    float_setting_enter(&float_settings[k]);
    d.dgetrs("N", &s.n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
    CHECK(float_setting_leave(&float_settings[k]));
    if (first == NULL)
      first = sup_copy(s.x, s.n);
    CHECK_MEM_EQ(s.x, first, (size_t)s.n * sizeof *first);
  }
  sup_free(first);
  sup_free(b);
  problem_free(&s);
  drop_in_close(&d);
}

TEST(lapack, errno_is_the_callers) {
  static const char *const factors[] = {"discard", "keep"};
  for (int k = 0; k < 2; k++) {
    drop_in d = drop_in_open("1", factors[k]);
    REQUIRE(d.dgesv != NULL);
    for (int which = 0; which < 4; which++) {
      problem s = problem_make(450, 1, which < 2 ? 1e5 : -1e5);
      ct_note("factors %s, routine %d", factors[k], which);
      errno = EDOM;
      call(&d, which, &s);
      CHECK_EQ_INT(errno, EDOM);
      CHECK_EQ_INT(s.info, 0);
      problem_free(&s);
    }
    drop_in_close(&d);
  }
}
