/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy compared with a second statement of what api/hone.h promises,
   written without the tables of refine/policy.c: the engines for every
   situation, what follows every failure, and the limits at the orders where
   they change. */
#include "refine/ladder.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Engines that are compared but never run ---------------------------------- */

static bool applies(const hone_structure *structure, int64_t n) {
  return structure != NULL && n > 0;
}
static bool resident(void *self) { return self != NULL; }

static const hone_engine diagonal = {
    .name = "D", .precision = 64, .applies = applies};
static const hone_engine triangular = {
    .name = "T", .precision = 64, .applies = applies};
static const hone_engine banded = {
    .name = "B", .precision = 64, .applies = applies};
static const hone_engine gpus_cholesky = {.name = "gsC",
                                          .precision = 32,
                                          .symmetric = true,
                                          .applies = applies,
                                          .resident = resident};
static const hone_engine gpu_cholesky = {.name = "gC",
                                         .precision = 32,
                                         .symmetric = true,
                                         .applies = applies,
                                         .resident = resident};
static const hone_engine cpu_cholesky = {
    .name = "C", .precision = 32, .symmetric = true, .applies = applies};
static const hone_engine cpu_cholesky_double = {
    .name = "C64", .precision = 64, .symmetric = true, .applies = applies};
static const hone_engine gpus_lu = {
    .name = "gsL", .precision = 32, .resident = resident};
static const hone_engine gpu_lu = {
    .name = "gL", .precision = 32, .resident = resident};
static const hone_engine outside_lu = {.name = "oL", .precision = 32};
static const hone_engine cpu_lu = {.name = "L", .precision = 32};
static const hone_engine gpu_lu_double = {
    .name = "gL64", .precision = 64, .resident = resident};
static const hone_engine cpu_lu_double = {.name = "L64", .precision = 64};
static const hone_engine cpu_lu_transposed = {
    .name = "Lt64", .precision = 64, .other_pivots = true};

static const hone_engine *const engines[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &diagonal,
    [HONE_ROLE_TRIANGULAR] = &triangular,
    [HONE_ROLE_BANDED] = &banded,
    [HONE_ROLE_GPUS_CHOLESKY] = &gpus_cholesky,
    [HONE_ROLE_GPU_CHOLESKY] = &gpu_cholesky,
    [HONE_ROLE_CPU_CHOLESKY] = &cpu_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &cpu_cholesky_double,
    [HONE_ROLE_GPUS_LU] = &gpus_lu,
    [HONE_ROLE_GPU_LU] = &gpu_lu,
    [HONE_ROLE_GPU_LU_OUTSIDE] = &outside_lu,
    [HONE_ROLE_CPU_LU] = &cpu_lu,
    [HONE_ROLE_GPU_LU_DOUBLE] = &gpu_lu_double,
    [HONE_ROLE_CPU_LU_DOUBLE] = &cpu_lu_double,
    [HONE_ROLE_CPU_LU_TRANSPOSED] = &cpu_lu_transposed};

/* The engines of the ladder ------------------------------------------------ */

typedef struct list {
  hone_step steps[HONE_MAX_RUNGS + 1];
  int count;
} list;

static void push(list *l, const hone_engine *engine, bool accurate) {
  l->steps[l->count++] = (hone_step){engine, accurate, false};
}

/* Double precision comes first up to order 256 where the caller leaves the
   choice to the library and there is no GPU. */
static bool is_small(const hone_situation *s) {
  return s->start == HONE_FACTOR_AUTO && !s->gpu && s->n <= 256;
}

static list expected(const hone_situation *s) {
  list l = {.count = 0};
  const bool coarse = s->gpu && s->coarse;
  if (s->structure == HONE_STRUCTURE_AUTO) {
    push(&l, &diagonal, false);
    push(&l, &triangular, false);
    push(&l, &banded, false);
  }
  if (is_small(s) && s->structure == HONE_STRUCTURE_SPD)
    push(&l, &cpu_cholesky_double, true);
  if (s->start != HONE_FACTOR_DOUBLE && !is_small(s)) {
    const bool large = s->n > 512;
    const bool may_be_definite = s->structure == HONE_STRUCTURE_SPD ||
                                 (s->structure == HONE_STRUCTURE_AUTO && large);
    if (s->gpu && s->structure != HONE_STRUCTURE_GENERAL && s->several) {
      push(&l, &gpus_cholesky, false);
      if (coarse)
        push(&l, &gpus_cholesky, true);
    }
    if (s->gpu && s->structure != HONE_STRUCTURE_GENERAL) {
      push(&l, &gpu_cholesky, false);
      if (coarse)
        push(&l, &gpu_cholesky, true);
    }
    if (may_be_definite && !(s->gpu && s->outside))
      push(&l, &cpu_cholesky, true);
    if (may_be_definite && !s->gpu && s->structure == HONE_STRUCTURE_AUTO)
      push(&l, &cpu_cholesky_double, true);
    if (s->gpu && s->several)
      push(&l, &gpus_lu, false);
    if (s->gpu && coarse && s->several)
      push(&l, &gpus_lu, true);
    if (s->gpu)
      push(&l, &gpu_lu, false);
    if (coarse)
      push(&l, &gpu_lu, true);
    if (s->gpu && s->outside)
      push(&l, &outside_lu, true);
    if (s->gpu && s->outside && may_be_definite)
      push(&l, &cpu_cholesky, true);
    push(&l, &cpu_lu, true);
  }
  if (s->gpu)
    push(&l, &gpu_lu_double, true);
  push(&l, &cpu_lu_double, true);
  if (is_small(s))
    l.steps[l.count++] = (hone_step){&cpu_lu, true, true};
  push(&l, &cpu_lu_transposed, true);
  return l;
}

static list steps_for(const hone_situation *s) {
  list l = {.count = 0};
  for (int i = 0; i <= HONE_MAX_RUNGS; i++)
    l.steps[i] = (hone_step){NULL, false, false};
  l.count = hone_policy_steps(s, engines, l.steps);
  return l;
}

/* Spells a list, as in "D T B L64+ L+?"; a plus stands for accurate products,
   a question mark for a second opinion. */
static void spell(const list *l, char *text, size_t size) {
  text[0] = '\0';
  for (int i = 0; i < l->count; i++) {
    const size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s%s%s", i ? " " : "",
                   l->steps[i].engine->name, l->steps[i].accurate ? "+" : "",
                   l->steps[i].second_opinion ? "?" : "");
  }
}

/* Calls visit for every situation. */
static void for_all_situations(void (*visit)(const hone_situation *s)) {
  static const int64_t orders[] = {1, 256, 257, 512, 513, 514, 20000};
  for (int at = 0; at < 7; at++)
    for (int structure = 0; structure < 3; structure++)
      for (int start = 0; start < 3; start++)
        for (int gpu = 0; gpu < 16; gpu++) {
          const hone_situation s = {.n = orders[at],
                                    .structure = structure,
                                    .start = start,
                                    .gpu = gpu & 1,
                                    .several = gpu & 4,
                                    .outside = gpu & 8,
                                    .coarse = gpu & 2};
          ct_note("n %d, structure %d, start %d, gpu %d, several %d, outside "
                  "%d, coarse %d",
                  (int)s.n, structure, start, s.gpu, s.several, s.outside,
                  s.coarse);
          visit(&s);
        }
}

static void compare_rungs(const hone_situation *s) {
  char are[128], should_be[128];
  const list want = expected(s), have = steps_for(s);
  spell(&have, are, sizeof are);
  spell(&want, should_be, sizeof should_be);
  CHECK_STR(are, should_be);
}

TEST(policy, lists_the_rungs_of_every_situation_from_the_cheapest_up) {
  for_all_situations(compare_rungs);
}

TEST(policy, has_these_rungs_on_a_cpu_and_on_a_gpu) {
  static const struct {
    hone_situation situation;
    const char *rungs;
  } cases[] = {
      {{.n = 256}, "D T B L64+ L+? Lt64+"},
      {{.n = 256, .start = HONE_FACTOR_SINGLE}, "D T B L+ L64+ Lt64+"},
      {{.n = 257}, "D T B L+ L64+ Lt64+"},
      {{.n = 512}, "D T B L+ L64+ Lt64+"},
      {{.n = 513}, "D T B C+ C64+ L+ L64+ Lt64+"},
      {{.n = 513, .start = HONE_FACTOR_DOUBLE}, "D T B L64+ Lt64+"},
      {{.n = 2, .structure = HONE_STRUCTURE_SPD}, "C64+ L64+ L+? Lt64+"},
      {{.n = 9000, .structure = HONE_STRUCTURE_SPD}, "C+ L+ L64+ Lt64+"},
      {{.n = 9000, .structure = HONE_STRUCTURE_GENERAL}, "L+ L64+ Lt64+"},
      {{.n = 9000, .gpu = true}, "D T B gC C+ gL L+ gL64+ L64+ Lt64+"},
      {{.n = 9000, .gpu = true, .outside = true},
       "D T B gC gL oL+ C+ L+ gL64+ L64+ Lt64+"},
      {{.n = 9000, .gpu = true, .coarse = true},
       "D T B gC gC+ C+ gL gL+ L+ gL64+ L64+ Lt64+"},
      {{.n = 9000,
        .gpu = true,
        .coarse = true,
        .structure = HONE_STRUCTURE_GENERAL},
       "gL gL+ L+ gL64+ L64+ Lt64+"},
      {{.n = 9000,
        .gpu = true,
        .coarse = true,
        .structure = HONE_STRUCTURE_SPD,
        .start = HONE_FACTOR_DOUBLE},
       "gL64+ L64+ Lt64+"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    const list have = steps_for(&cases[i].situation);
    spell(&have, text, sizeof text);
    ct_note("case %d", (int)i);
    CHECK_STR(text, cases[i].rungs);
  }
}

static void check_room(const hone_situation *s) {
  const list have = steps_for(s);
  CHECK(have.count >= 1 && have.count <= HONE_MAX_RUNGS);
  CHECK(have.steps[have.count - 1].engine == &cpu_lu_transposed);
  const int regular =
      have.count - 1 - have.steps[have.count - 2].second_opinion;
  CHECK(have.steps[regular - 1].engine == &cpu_lu_double);
  for (int i = have.count; i <= HONE_MAX_RUNGS; i++)
    CHECK(have.steps[i].engine == NULL);
}

TEST(policy, ends_every_list_with_double_lu_on_the_cpu_and_of_the_transpose) {
  for_all_situations(check_room);
}

TEST(policy, takes_a_gpu_from_the_measured_orders_on) {
  CHECK_EQ_INT(hone_policy_gpu_from(false), 512);
  CHECK_EQ_INT(hone_policy_gpu_from(true), 1024);
}

/* Failures ----------------------------------------------------------------- */

static const char *const failure_names[HONE_FAILURES] = {"weak", "rounding",
                                                         "pivot", "growth"};

static bool substitutes(const hone_engine *e) {
  return e == &diagonal || e == &triangular || e == &banded;
}

/* The rule in words. Substitution and the banded LU use the exact zeros of A in
   double precision: an engine as accurate follows them, and none after a zero
   pivot, as A then is singular. After LU only a more accurate engine helps.
   After Cholesky another Cholesky must be more accurate, and helps against a
   bad pivot only if rounding may have caused it; LU follows if Cholesky broke
   down, or if LU is as accurate. LU with other pivots follows LU with partial
   pivoting where the factors grew, and nothing else. */
static bool should_follow(const hone_engine *failed, int failed_rank,
                          hone_failure failure, const hone_engine *engine,
                          int rank) {
  const bool broke =
      failure == HONE_FAILURE_ROUNDING || failure == HONE_FAILURE_PIVOT;
  if (engine == &cpu_lu_transposed)
    return failure == HONE_FAILURE_GROWTH && rank >= failed_rank &&
           !substitutes(failed) && !failed->symmetric && failed != engine;
  if (substitutes(failed))
    return failure != HONE_FAILURE_PIVOT && rank >= failed_rank;
  if (!failed->symmetric)
    return rank > failed_rank;
  if (engine->symmetric)
    return rank > failed_rank && failure != HONE_FAILURE_PIVOT;
  return broke || rank >= failed_rank;
}

TEST(policy, decides_for_every_pair_of_engines_what_follows_a_failure) {
  static const int arithmetic[] = {HONE_ARITHMETIC_AUTO, HONE_ARITHMETIC_TF32};
  for (int from = 0; from < HONE_ROLES * 2; from++)
    for (int to = 0; to < HONE_ROLES * 2; to++)
      for (int f = 0; f < HONE_FAILURES; f++) {
        const hone_engine *failed = engines[from / 2], *next = engines[to / 2];
        const int was = hone_policy_rank(failed, arithmetic[from % 2]);
        const int is = hone_policy_rank(next, arithmetic[to % 2]);
        ct_note("%s (%d) fails: %s; %s (%d)", failed->name, was,
                failure_names[f], next->name, is);
        CHECK_EQ_INT(
            hone_policy_follows(failed, was, (hone_failure)f, next, is),
            should_follow(failed, was, (hone_failure)f, next, is));
      }
}

TEST(policy, gives_up_only_where_exact_zeros_prove_a_matrix_singular) {
  for (int role = 0; role < HONE_ROLES; role++)
    for (int f = 0; f < HONE_FAILURES; f++) {
      ct_note("%s fails: %s", engines[role]->name, failure_names[f]);
      CHECK_EQ_INT(hone_policy_ends(engines[role], (hone_failure)f),
                   substitutes(engines[role]) && f == HONE_FAILURE_PIVOT);
    }
}

/* The rung that should follow r by the rule above, if the factors of r are as
   info says; coarse products count as rounding. */
static int should_be_next(const hone_ladder *l, int r) {
  const hone_rung *failed = &l->rung[r];
  const int coarse = hone_arithmetic_coarse(failed->choices.arithmetic);
  const bool zero = failed->info.zero_pivot >= 0;
  const bool grew = failed->info.growth > 1e4 || /* NaN: where none is zero */
                    (!zero && isnan(failed->info.growth));
  const hone_failure failure =
      failed->engine->precision == 64 && !failed->engine->symmetric && grew
          ? HONE_FAILURE_GROWTH
      : !zero ? HONE_FAILURE_WEAK
      : failed->engine->symmetric && (failed->info.rounding || coarse)
          ? HONE_FAILURE_ROUNDING
          : HONE_FAILURE_PIVOT;
  for (int next = r + 1; next < l->rung_count; next++) {
    const hone_rung *rung = &l->rung[next];
    const bool again = hone_arithmetic_coarse(rung->choices.arithmetic);
    const int was = failed->engine->precision == 64 ? 64 : 32 - coarse;
    const int is = rung->engine->precision == 64 ? 64 : 32 - again;
    if (!rung->not_applicable &&
        should_follow(failed->engine, was, failure, rung->engine, is))
      return next;
  }
  return l->rung_count;
}

/* Each rung fails in each way, where all rungs are there, and where every
   second one is not_applicable. */
static void compare_climbs(const hone_situation *s) {
  static const hone_factor_info infos[] = {
      {.zero_pivot = -1},
      {.zero_pivot = 3},
      {.zero_pivot = 3, .rounding = true},
      {.zero_pivot = -1, .growth = 9e3},
      {.zero_pivot = -1, .growth = 2e4},
      {.zero_pivot = 3, .growth = 2e4},
      {.zero_pivot = -1, .growth = (double)NAN},
      {.zero_pivot = 3, .growth = (double)NAN},
      {.zero_pivot = -1, .growth = (double)INFINITY},
  };
  enum { INFOS = sizeof infos / sizeof *infos };
  const list want = expected(s);
  hone_ladder l = {.n = s->n, .rung_count = want.count};
  for (int r = 0; r < want.count; r++) {
    l.rung[r].engine = want.steps[r].engine;
    if (s->gpu && s->coarse && !want.steps[r].accurate)
      l.rung[r].choices.arithmetic = HONE_ARITHMETIC_FP16;
  }
  for (int skip = 0; skip < 3; skip++)
    for (int r = 0; r < l.rung_count; r++)
      for (int k = 0; k < INFOS; k++) {
        for (int q = 0; q < l.rung_count; q++)
          l.rung[q].not_applicable = skip > 0 && q % 2 == skip - 1;
        l.rung[r].info = infos[k];
        CHECK_EQ_INT(hone_ladder_successor(&l, r), should_be_next(&l, r));
      }
}

TEST(policy, climbs_from_every_rung_by_the_same_rule) {
  for_all_situations(compare_climbs);
}

/* Accuracy ----------------------------------------------------------------- */

static const struct {
  int arithmetic;
  bool coarse;
  double roundoff;
} arithmetics[] = {{HONE_ARITHMETIC_AUTO, false, 0x1p-24},
                   {HONE_ARITHMETIC_FP32, false, 0x1p-24},
                   {HONE_ARITHMETIC_TF32, true, 0x1p-11},
                   {HONE_ARITHMETIC_FP16X3, false, 0x1p-24},
                   {HONE_ARITHMETIC_BF16X3, true, 0x1p-16},
                   {HONE_ARITHMETIC_FP16, true, 0x1p-11},
                   {HONE_ARITHMETIC_BF16, true, 0x1p-8}};
enum { ARITHMETICS = sizeof arithmetics / sizeof *arithmetics };

TEST(policy, ranks_rungs_by_precision_and_coarse_products_a_little_lower) {
  for (int i = 0; i < ARITHMETICS; i++) {
    const int kind = arithmetics[i].arithmetic;
    ct_note("arithmetic %d", kind);
    CHECK_EQ_INT(hone_arithmetic_coarse(kind), arithmetics[i].coarse);
    for (int role = 0; role < HONE_ROLES; role++) {
      const int bits = engines[role]->precision;
      CHECK_EQ_INT(hone_policy_rank(engines[role], kind),
                   bits == 32 && arithmetics[i].coarse ? 31 : bits);
    }
  }
}

TEST(policy, knows_the_roundoff_of_factors_on_a_gpu_and_on_a_cpu) {
  for (int i = 0; i < ARITHMETICS; i++) {
    const int kind = arithmetics[i].arithmetic;
    ct_note("arithmetic %d", kind);
    for (int role = 0; role < HONE_ROLES; role++) {
      const hone_engine *e = engines[role];
      const bool on_gpu = e == &gpu_lu || e == &gpus_lu || e == &gpu_cholesky ||
                          e == &gpus_cholesky;
      const double want = e->precision == 64 ? 0x1p-53
                          : on_gpu           ? arithmetics[i].roundoff
                                             : 0x1p-24;
      CHECK(hone_policy_roundoff(e, kind) == want);
    }
  }
}

TEST(policy, calls_engines_direct_that_use_exact_zeros_without_symmetry) {
  for (int role = 0; role < HONE_ROLES; role++) {
    ct_note("%s", engines[role]->name);
    CHECK_EQ_INT(hone_engine_direct(engines[role]), substitutes(engines[role]));
  }
}

/* GMRES -------------------------------------------------------------------- */

static int64_t gmres(int64_t n, int64_t columns) {
  const hone_gmres_situation s = {.n = n, .columns = columns};
  return hone_policy_gmres_steps(&s);
}

TEST(policy, allows_steps_of_gmres_by_order_within_limits) {
  static const int64_t cases[][2] = {
      {1, 0},    {63, 0},   {64, 10},  {280, 10},  {307, 10},
      {308, 11}, {335, 11}, {336, 12}, {671, 23},  {672, 24},
      {699, 24}, {700, 25}, {728, 25}, {1000, 25}, {20000, 25}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ct_note("n %d", (int)cases[i][0]);
    CHECK_EQ_INT(gmres(cases[i][0], 1), cases[i][1]);
  }
}

TEST(policy, shares_the_steps_of_gmres_among_the_columns_that_wait) {
  CHECK_EQ_INT(gmres(100, 0), 10); /* unknown, which counts as one */
  CHECK_EQ_INT(gmres(100, 2), 5);
  CHECK_EQ_INT(gmres(100, 3), 0); /* three steps are too few to start */
  CHECK_EQ_INT(gmres(1000, 2), 12);
  CHECK_EQ_INT(gmres(1000, 6), 4);
  CHECK_EQ_INT(gmres(1000, 7), 0);
  CHECK_EQ_INT(gmres(1000, 64), 0);
  CHECK_EQ_INT(gmres(63, 2), 0);
}

TEST(policy, allows_gmres_steps_by_what_they_cost_on_a_device) {
  for (int64_t n = 1; n <= 10000; n *= 10)
    for (int64_t columns = 0; columns < 70; columns += 23) {
      hone_gmres_situation s = {.n = n, .columns = columns};
      s.copy_on_device = true;
      CHECK_EQ_INT(hone_policy_gmres_steps(&s), 25);
      s.next_is_same_engine = true;
      CHECK_EQ_INT(hone_policy_gmres_steps(&s), 10);
      s.copy_on_device = false;
      CHECK_EQ_INT(hone_policy_gmres_steps(&s), 10);
    }
}
