/* SPDX-License-Identifier: BSD-3-Clause */
/* The search by exact arithmetic: it replays, its judge finds what was
   falsified on purpose, and short climbs find nothing in the library. */
#include "tests/campaign/hunt.h"
#include "tests/gallery/exact.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hunt_verdict judged(const hunt_system *s, hunt_solver solve) {
  hunt_verdict v;
  hunt_judge(s, solve, &v);
  return v;
}

static hunt_system third(void) {
  return (hunt_system){.n = 2,
                       .nrhs = 2,
                       .parts = 1,
                       .deterministic = 1,
                       .precision = HONE_FACTOR_DOUBLE,
                       .a = {3, 1, 1, 3},
                       .b = {1, 2, 0.1, 0.7}};
}

/* Complex: [3 i; i 3], of determinant 10. */
static hunt_system complex_third(void) {
  return (hunt_system){.n = 2,
                       .nrhs = 2,
                       .parts = 2,
                       .deterministic = 1,
                       .precision = HONE_FACTOR_DOUBLE,
                       .a = {3, 0, 0, 1, 0, 1, 3, 0},
                       .b = {1, 1, 2, 0, 0.1, 0, 0.7, 0.3}};
}

/* ---- Answers that are falsified ------------------------------------------ */

static int with_a_bound_too_small(const hunt_system *s, hunt_answer *out) {
  int st = hunt_by_library(s, out);
  out->columns[s->nrhs - 1].forward_error *= 0x1p-20;
  return st;
}

static int with_a_bar_too_small(const hunt_system *s, hunt_answer *out) {
  int st = hunt_by_library(s, out);
  out->bars[2] *= 0x1p-20;
  return st;
}

static int with_a_wrong_x(const hunt_system *s, hunt_answer *out) {
  int st = hunt_by_library(s, out);
  out->x[0] *= 1.0 + 0x1p-40;
  return st;
}

static int accepting_all(const hunt_system *s, hunt_answer *out) {
  (void)hunt_by_library(s, out);
  for (int64_t c = 0; c < s->nrhs; c++)
    out->columns[c].status = HONE_OK;
  return HONE_OK;
}

static int refusing_all(const hunt_system *s, hunt_answer *out) {
  for (int64_t c = 0; c < s->nrhs; c++)
    out->columns[c].status = HONE_SINGULAR;
  return HONE_SINGULAR;
}

TEST(hunt, finds_a_bound_that_is_falsified) {
  const hunt_system s = third();
  hunt_verdict v = judged(&s, hunt_by_library);
  CHECK_EQ_INT(v.wrong, 0);
  CHECK(v.accepted == 2 && v.columns == 2 && v.in_range && !v.singular);
  CHECK(v.ratio > 0.0 && v.ratio <= 1.0);
  v = judged(&s, with_a_bound_too_small);
  CHECK_EQ_INT(v.wrong, HUNT_BOUND_BELOW_ERROR);
  CHECK_EQ_INT(v.worst, 1);
  CHECK_GE(v.ratio, 10.0);
  v = judged(&s, with_a_wrong_x);
  CHECK_EQ_INT(v.wrong, HUNT_BOUND_BELOW_ERROR | HUNT_BAR_BELOW_ERROR |
                            HUNT_OMEGA_ABOVE_RULE);
}

TEST(hunt, finds_what_is_falsified_in_complex_systems) {
  hunt_system s = complex_third();
  hunt_verdict v = judged(&s, hunt_by_library);
  CHECK_EQ_INT(v.wrong, 0);
  CHECK(v.accepted == 2 && v.columns == 2 && v.in_range && !v.singular);
  CHECK(v.ratio > 0.0 && v.ratio <= 1.0 && v.bar_ratio > 0.0);
  CHECK(judged(&s, with_a_bound_too_small).wrong == HUNT_BOUND_BELOW_ERROR);
  CHECK(judged(&s, with_a_bar_too_small).wrong == HUNT_BAR_BELOW_ERROR);
  CHECK_EQ_INT(judged(&s, with_a_wrong_x).wrong, HUNT_BOUND_BELOW_ERROR |
                                                     HUNT_BAR_BELOW_ERROR |
                                                     HUNT_OMEGA_ABOVE_RULE);
  /* ||A||_1 = 4, and the inverse is [3 -i; -i 3] / 10. */
  CHECK_NEAR(judged(&s, refusing_all).refused_condition, 1.6, 1e-12);
  s.a[6] = 0.0; /* row 2 becomes i / 3 times row 1 without rounding: */
  s.a[4] = -9.0;
  s.a[5] = 0.0;
  s.a[7] = -3.0;
  CHECK(judged(&s, accepting_all).wrong & HUNT_SINGULAR_ACCEPTED);
  v = judged(&s, hunt_by_library);
  CHECK(v.singular && v.accepted == 0 && v.wrong == 0);
}

TEST(hunt, finds_a_bar_that_is_falsified) {
  const hunt_system s = third();
  hunt_verdict v = judged(&s, hunt_by_library);
  CHECK(v.bar_ratio > 0.0 && v.bar_ratio <= 1.0);
  v = judged(&s, with_a_bar_too_small);
  CHECK_EQ_INT(v.wrong, HUNT_BAR_BELOW_ERROR);
  CHECK(v.bar_column == 1 && v.bar_row == 0);
  CHECK_GE(v.bar_ratio, 10.0);
}

TEST(hunt, finds_a_singular_matrix_that_is_accepted) {
  hunt_system s = third();
  s.a[3] = 1.0 / 3.0; /* not singular, as 1/3 was rounded */
  CHECK(!judged(&s, hunt_by_library).singular);
  s.a[0] = 4.0;
  s.a[3] = 0.25;
  hunt_verdict v = judged(&s, hunt_by_library);
  CHECK(v.singular && v.accepted == 0 && v.wrong == 0);
  v = judged(&s, accepting_all);
  CHECK(v.wrong & HUNT_SINGULAR_ACCEPTED);
}

TEST(hunt, knows_the_condition_of_what_is_refused) {
  hunt_system s = third();
  CHECK(isinf(judged(&s, hunt_by_library).refused_condition));
  CHECK_NEAR(judged(&s, refusing_all).refused_condition, 2.0, 1e-12);
  s.b[0] = 0.0; /* a sparse right-hand side is no false alarm */
  CHECK(isinf(judged(&s, refusing_all).refused_condition));
}

static void check_uses(hunt_system s) {
  s.a[s.parts] = 2.0; /* not symmetric */
  for (int use = 0; use < HUNT_USES; use++)
    for (int k = 0; k < 6; k++) {
      s.use = use;
      s.trans = k % 3; /* of real systems two are one */
      s.layout = k / 3 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
      memcpy(s.old, s.a, sizeof s.old);
      s.old[0] = 9.0;
      ct_note("use %d, trans %d, layout %d, parts %d", use, s.trans, s.layout,
              s.parts);
      const hunt_verdict v = judged(&s, hunt_by_library);
      CHECK(v.accepted == 2 && v.wrong == 0 && v.ratio > 0.0);
    }
}

TEST(hunt, judges_the_system_that_was_solved) {
  check_uses(third());
  check_uses(complex_third());
}

/* ---- Climbs -------------------------------------------------------------- */

TEST(hunt, a_seed_gives_one_start_and_the_same_moves) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    gallery_rng p = {seed}, q = {seed};
    hunt_system s, t;
    const int parts = 1 + (int)(seed % 2);
    int goal, same;
    hunt_start(&s, parts, &goal, &p);
    hunt_start(&t, parts, &same, &q);
    for (int k = 0; k < 30; k++) {
      hunt_move(&s, goal, &p);
      hunt_move(&t, same, &q);
    }
    ct_note("seed %d", (int)seed);
    CHECK(goal == same && s.n >= 2 && s.n <= HUNT_MOST_N / parts);
    CHECK(s.nrhs >= 1 && s.nrhs <= HUNT_MOST_RHS);
    CHECK_MEM_EQ(&s, &t, sizeof s);
  }
}

static void check_singular(int parts) {
  int climbs = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    gallery_rng rng = {seed};
    double m[HUNT_MOST_N * HUNT_MOST_N], none = 0.0;
    hunt_system s;
    int goal;
    hunt_start(&s, parts, &goal, &rng);
    if (goal != HUNT_SINGULAR)
      continue;
    for (int k = 0; k < 100; k++)
      hunt_move(&s, goal, &rng);
    either_matrix(parts, s.n, s.a, s.n, m);
    exact_system *e =
        exact_solve(parts * s.n, 0, m, parts * s.n, &none, parts * s.n);
    ct_note("seed %d, parts %d", (int)seed, parts);
    CHECK(exact_singular(e));
    exact_free(e);
    climbs++;
  }
  CHECK_GE(climbs, 20);
}

TEST(hunt, singular_matrices_stay_singular) {
  check_singular(1);
  check_singular(2);
}

static void check_text(int parts) {
  gallery_rng rng = {5};
  hunt_system s, t;
  hunt_verdict v = {.refused_condition = 2.0};
  int goal;
  char *text = NULL;
  size_t size = 0;
  hunt_start(&s, parts, &goal, &rng);
  s.use = HUNT_UPDATE;
  FILE *out = open_memstream(&text, &size);
  REQUIRE(out != NULL);
  hunt_print(&s, &v, out);
  (void)fclose(out);
  FILE *in = fmemopen(text, size, "r");
  REQUIRE(in != NULL);
  CHECK(hunt_read(&t, in));
  t.any_size = s.any_size;
  CHECK_MEM_EQ(&s, &t, sizeof s);
  (void)fclose(in);
  in = fmemopen(text, size / 2, "r");
  CHECK(!hunt_read(&t, in));
  (void)fclose(in);
  free(text);
}

TEST(hunt, prints_what_it_can_read_again) {
  check_text(1);
  check_text(2);
}

TEST(hunt, climbs_towards_larger_errors) {
  int higher = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    hunt_climb start = {.seed = seed}, end = start;
    hunt_run(&start, 1, hunt_by_library, NULL, NULL);
    hunt_run(&end, 40, hunt_by_library, NULL, NULL);
    CHECK_EQ_INT(start.goal, end.goal);
    CHECK(end.ratio >= start.ratio || end.accepted == 0);
    higher += end.ratio > start.ratio;
  }
  CHECK_GE(higher, 10);
}

TEST(hunt, counts_what_is_wrong_in_a_climb) {
  hunt_climb climb = {.seed = 3};
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  REQUIRE(out != NULL);
  while (climb.wrong == 0 && climb.seed < 30) {
    climb = (hunt_climb){.seed = climb.seed + 1};
    hunt_run(&climb, 20, with_a_bound_too_small, out, NULL);
  }
  (void)fclose(out);
  CHECK_GE((double)climb.wrong, 1.0);
  CHECK(strstr(text, "BOUND BELOW ERROR") && strstr(text, "--replay 0x"));
  free(text);
}

TEST(hunt, finds_nothing_in_a_few_climbs) {
  for (uint64_t seed = 500; seed < 560; seed++) {
    hunt_climb climb = {.seed = seed, .parts = 1 + (int)(seed % 2)};
    hunt_run(&climb, 60, hunt_by_library, stdout, NULL);
    ct_note("seed %d", (int)seed);
    CHECK_EQ_INT(climb.wrong, 0);
  }
}
