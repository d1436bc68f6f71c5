/* SPDX-License-Identifier: BSD-3-Clause */
/* Deflation: factors corrected in the directions in which they say nothing of
   A, by itself and in the ladder, for real and for complex entries. Through the
   public calls it is tested in test_nearly_singular.c. */
#include "refine/deflation.h"

#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/ladder_fixture.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- By itself ------------------------------------------------------------
 */

enum { N = 90, POWERS = 3 };

enum { DIRECTIONS = 12 };

/* An orthogonal or unitary matrix with some of its singular values replaced,
   and its factors in single precision. */
typedef struct deflated {
  hone_mem mem;
  hone_watch watch;
  hone_scaling scaling;
  hone_matrix matrix;
  hone_entry *a, *memory, *scratch;
  double *rows;
  double ones[N];
  int none[N];
  void *self;
  hone_factored f;
  hone_deflation deflation;
  double least;
  int passes;
} deflated;

/* values: those of the first 'count' directions. */
static void set_up_values(deflated *s, int count, const double *values,
                          uint64_t seed) {
  sup_rng rng = {seed};
  const hone_entry other = HONE_PARTS == 1 ? -1.0 : ENTRY(-0.6, 0.8);
  hone_factor_info info;
  *s = (deflated){.least = (double)INFINITY};
  s->a = entries_filled(N * N, 0.0);
  s->memory = entries_filled(hone_deflation_entries(N), (double)NAN);
  s->scratch = entries_filled(hone_certify_scratch(N, false), (double)NAN);
  s->rows = sup_filled(N, -1.0);
  entries_matrix_cond(&rng, N, SUP_ONE_SMALL, 1.0, s->a, N);
  for (int k = 0; k < count; k++) { /* v: of modulus 1 in every count-th row */
    hone_entry v[N] = {0.0}, image[N];
    int64_t rows = 0;
    for (int64_t i = k; i < N; i += count, rows++)
      v[i] = i % 4 < 2 ? 1.0 : other;
    entries_multiply(N, s->a, N, false, v, image);
    for (int64_t j = 0; j < N; j++)
      for (int64_t i = 0; i < N; i++)
        s->a[i + j * N] -=
            (1.0 - values[k]) * image[i] * hone_conj(v[j]) / (double)rows;
  }
  const hone_engine_config config = {
      .n = N, .mem = &s->mem, .watch = &s->watch};
  REQUIRE(hone_engine_single.create(&s->self, &config) == HONE_OK);
  s->matrix = *sup_matrix(N, N, s->a);
  for (int i = 0; i < N; i++)
    s->ones[i] = 1.0;
  s->scaling = (hone_scaling){s->ones, s->ones, s->none, s->none, false};
  REQUIRE(hone_engine_single.factor(s->self, &s->matrix, &s->scaling, &info) ==
          HONE_OK);
  s->f = (hone_factored){.engine = &hone_engine_single,
                         .self = s->self,
                         .a = &s->matrix,
                         .scaling = &s->scaling};
  s->deflation = hone_deflation_make(N, s->memory);
}

static void set_up(deflated *s, int small, double value, uint64_t seed) {
  double values[DIRECTIONS];
  for (int k = 0; k < small; k++)
    values[k] = value;
  set_up_values(s, small, values, seed);
}

static void tear_down(deflated *s) {
  hone_engine_single.destroy(s->self, &s->mem);
  entries_free(s->a);
  entries_free(s->memory);
  entries_free(s->scratch);
  sup_free(s->rows);
}

static int deflate(deflated *s) {
  return hone_deflate(&s->f, s->scratch, &s->passes, &s->deflation, &s->least);
}

static bool contracts(deflated *s, bool with, bool trans) {
  hone_factored f = s->f;
  hone_contraction out = {.rows = s->rows};
  hone_probing probing = {
      .f = &f, .trans = trans, .seed = 5, .scratch = s->scratch};
  f.deflation = with ? &s->deflation : NULL;
  CHECK_EQ_INT(hone_probe(&probing, POWERS, &out), HONE_OK);
  return out.power > 0;
}

/* Factors that happen to be much nearer to a singular matrix than A is leave
   more to deflate than there is; that depends on rounding and is rare. */
TEST_OF(deflation, makes_factors_contract_for_a_and_its_transpose) {
  static const double values[] = {1e-8, 1e-10, 1e-12, 1e-13, 1e-14};
  int deflated_well = 0;
  for (int small = 1; small <= HONE_DEFLATED_MOST; small++)
    for (int k = 0; k < 5; k++) {
      deflated s;
      ct_note("%d of %g", small, values[k]);
      set_up(&s, small, values[k], (uint64_t)(10 * small + k));
      CHECK_EQ_INT(deflate(&s), HONE_OK);
      CHECK(!contracts(&s, false, false) || values[k] > 5e-9);
      if (s.deflation.count == small) {
        CHECK_LE(0.5 * values[k], s.least);
        CHECK_LE(s.least, 1e4 * values[k] + 1e-14);
        CHECK_LE(3 + 3 + 2, s.passes);
        deflated_well +=
            contracts(&s, true, false) && contracts(&s, true, true);
      }
      tear_down(&s);
    }
  CHECK_LE(30, deflated_well); /* of 35 */
}

TEST_OF(deflation, sees_that_a_matrix_is_singular) {
  for (int small = 1; small <= 3; small++) {
    deflated s;
    ct_note("rank %d", N - small);
    set_up(&s, small, 0.0, (uint64_t)small);
    CHECK_EQ_INT(deflate(&s), HONE_OK);
    CHECK_LT(s.least, 0.5 * N * DBL_EPSILON); /* A itself was rounded */
    CHECK(!contracts(&s, s.deflation.count > 0, false));
    tear_down(&s);
  }
}

TEST_OF(deflation, does_nothing_where_nothing_or_too_much_is_left) {
  for (int small = 0; small <= 9; small += 9) {
    deflated s;
    set_up(&s, small, 1e-10, 3);
    CHECK_EQ_INT(deflate(&s), HONE_OK);
    CHECK_EQ_INT(s.deflation.count, 0);
    CHECK(isinf(s.least));
    tear_down(&s);
  }
}

/* As in matrices with an arithmetic spectrum, more directions than can be
   deflated are left at a hundredth of their length, one at all of it. */
TEST_OF(deflation, leaves_directions_that_corrections_shorten_well_enough) {
  int one = 0;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    deflated s;
    double values[DIRECTIONS] = {1e-12};
    for (int k = 1; k < DIRECTIONS; k++)
      values[k] = 1e-4;
    ct_note("seed %d", (int)seed);
    set_up_values(&s, DIRECTIONS, values, seed);
    CHECK_EQ_INT(deflate(&s), HONE_OK);
    one += s.deflation.count == 1 && contracts(&s, true, false) &&
           contracts(&s, true, true);
    tear_down(&s);
  }
  CHECK_LE(8, one);
}

static int fail_at, calls;
static int fail(void *self, bool trans, int64_t k, hone_entry *v, int64_t ldv) {
  if (++calls == fail_at)
    return HONE_DEVICE_FAILED;
  return hone_engine_single.solve(self, trans, k, v, ldv);
}

/* Three powers for A and three for the transpose. */
TEST_OF(deflation, fails_where_a_solve_fails) {
  for (fail_at = 1; fail_at <= 7; fail_at++) {
    deflated s;
    hone_engine engine = hone_engine_single;
    ct_note("solve %d fails", fail_at);
    calls = 0;
    set_up(&s, 2, 1e-10, 4);
    engine.solve = fail;
    s.f.engine = &engine;
    CHECK_EQ_INT(deflate(&s), fail_at <= 6 ? HONE_DEVICE_FAILED : HONE_OK);
    CHECK_EQ_INT(s.deflation.count, fail_at <= 6 ? 0 : 2);
    tear_down(&s);
  }
}

/* With exact factors, M = S, no correction is left to make. */
TEST_OF(deflation, changes_nothing_where_the_factors_are_right) {
  deflated s;
  hone_entry v[N], w[N];
  sup_rng rng = {6};
  set_up(&s, 2, 1e-3, 5);
  s.deflation.count = 2;
  for (int k = 0; k < 2; k++) {
    entries_random(&rng, N, 1, s.deflation.z + k * N, N);
    entries_random(&rng, N, 1, s.deflation.u + k * N, N);
    entries_multiply(N, s.a, N, false, s.deflation.z + k * N,
                     s.deflation.c + k * N);
    entries_multiply(N, s.a, N, true, s.deflation.u + k * N,
                     s.deflation.w + k * N);
  }
  for (int i = 0; i < 4; i++)
    s.deflation.inverse[i] = 1.0 + i;
  for (int trans = 0; trans < 2; trans++) {
    hone_entry coefficient[HONE_DEFLATED_MOST];
    entries_random(&rng, N, 1, v, N);
    entries_multiply(N, s.a, N, trans, v, w); /* inv(S) w = v */
    hone_deflation_project(&s.deflation, trans, w, coefficient);
    memcpy(w, v, sizeof w);
    hone_deflation_correct(&s.deflation, trans, coefficient, w);
    for (int i = 0; i < N; i++)
      CHECK_LE(hone_abs(w[i] - v[i]), 1e-10);
  }
  tear_down(&s);
}

/* ---- In the ladder --------------------------------------------------------
 */

/* The engine factors a matrix that is away by more than A is from a singular
   one. A itself is regular, with condition 1e8. */
static void set_up_near(fixture *s, hone_entry *near, int64_t nrhs) {
  sup_rng rng = {5};
  fixture_set_up(s, nrhs);
  memcpy(s->a + 3 * ORDER, s->a + 7 * ORDER, ORDER * sizeof *s->a);
  s->a[3 + 3 * ORDER] *= 1.0 + 1e-7;
  for (int64_t i = 0; i < ORDER * ORDER; i++)
    near[i] = s->a[i] * (1.0 + 1e-6 * entries_uniform(&rng));
  fixture_add_scripted(s, "scripted", 32)->instead = near;
}

TEST_OF(deflation, certifies_where_the_factors_alone_cannot) {
  for (int allowed = 0; allowed < 2; allowed++) {
    fixture s;
    hone_entry near[ORDER * ORDER];
    ct_note("allowed %d", allowed);
    set_up_near(&s, near, 2);
    fixture_add_double(&s);
    s.request.deflation = allowed ? 1 : -1;
    CHECK_EQ_INT(fixture_run(&s), HONE_OK);
    fixture_check_accepted(&s);
    CHECK_EQ_INT(s.report.precision, allowed ? 32 : 64);
    CHECK_EQ_INT(s.ladder.rung[0].deflation.count, allowed);
    CHECK_EQ_INT(s.report.gmres_steps, 0);
    if (allowed) {
      CHECK_STR(s.report.reason, "");
      CHECK_CONTAINS(s.report.path, "scripted, 1 direction deflated");
      CHECK(s.ladder.rung[1].self == NULL);
      const double inverse = entries_inverse_norm1(ORDER, s.a);
      const double said = (double)s.ladder.rung[0].certificate.inverse_norm;
      CHECK_LE(inverse, 10.0 * said);
      CHECK_LE(said, 5.0 * inverse);
    }
    fixture_tear_down(&s);
  }
}

/* Columns 3 and 7 of A are equal, but the engine's factors are far from
   singular in that direction. The direction in which they are nearly singular
   belongs to columns 1 and 5, where A is regular. */
TEST_OF(deflation,
        certifies_no_matrix_whose_null_vector_the_factors_do_not_show) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    fixture s;
    sup_rng rng = {seed};
    hone_entry near[ORDER * ORDER], ones[ORDER];
    ct_note("seed %d", (int)seed);
    fixture_set_up(&s, 1);
    entries_random(&rng, ORDER, ORDER, s.a, ORDER);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    memcpy(s.a + 1 * ORDER, s.a + 5 * ORDER, ORDER * sizeof *s.a);
    memcpy(near, s.a, sizeof near);
    for (int64_t i = 0; i < ORDER; i++) {
      near[i + 3 * ORDER] *= 1.0 + 1e-4 * entries_uniform(&rng);
      near[i + 1 * ORDER] *= 1.0 + 1e-7 * entries_uniform(&rng);
      s.a[i + 1 * ORDER] *= 1.0 + 1e-9 * entries_uniform(&rng);
      ones[i] = 1.0;
    }
    entries_multiply(ORDER, s.a, ORDER, false, ones, s.b);
    fixture_add_scripted(&s, "scripted", 32)->instead = near;
    s.request.deflation = 1;
    REQUIRE(fixture_open(&s) == HONE_OK && fixture_factor(&s) == HONE_OK);
    CHECK(!s.ladder.rung[0].certificate.nonsingular);
    CHECK_LT(HONE_OK, fixture_solve(&s));
    CHECK_EQ_INT(s.report.accepted, 0);
    fixture_tear_down(&s);
  }
}

/* The certificate of single factors shows that A is singular: nothing more
   accurate is made. */
TEST_OF(deflation, saves_the_double_factorization_of_a_singular_matrix) {
  for (int allowed = 0; allowed < 2; allowed++) {
    fixture s;
    hone_entry near[ORDER * ORDER];
    ct_note("allowed %d", allowed);
    set_up_near(&s, near, 1);
    memcpy(s.a + 3 * ORDER, s.a + 7 * ORDER, ORDER * sizeof *s.a);
    fixture_add_double(&s);
    s.request.deflation = allowed ? 1 : -1;
    CHECK_LE(HONE_ILL_CONDITIONED, fixture_run(&s));
    CHECK_EQ_INT(s.report.accepted, 0);
    CHECK_EQ_INT(s.report.precision, allowed ? 32 : 64);
    CHECK_EQ_INT(s.ladder.rung[1].self == NULL, allowed);
    fixture_tear_down(&s);
  }
}
