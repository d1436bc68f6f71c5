/* SPDX-License-Identifier: BSD-3-Clause */
/* A sample of A says that it may be definite, and an engine that keeps a copy
   of A finds on the way whether all of A is symmetric: Cholesky counts only
   where that, or the host, confirms it. The engine is the host's LU in single
   precision, said to be for symmetric matrices, with what it finds scripted. */
#include "tests/unit/support.h"

#include "api/hone.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

enum { ORDER = 40 };

typedef struct script {
  int finds;      /* what the engine finds: HONE_SYMMETRY_... */
  int status;     /* of the engine's factorization */
  int search;     /* of the host's search of all of A */
  bool resident;  /* the engine keeps a copy of A */
  bool symmetric; /* A is */
} script;

static script now;
static int searches; /* of all of A */

static bool is_resident(void *self) { return self != NULL && now.resident; }

static bool is_definite(const hone_structure *structure, int64_t n) {
  return structure->definite && n > 0;
}

static int factor(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  hone_factor_info *info) {
  double one[ORDER];
  int zero[ORDER] = {0};
  for (int i = 0; i < ORDER; i++)
    one[i] = 1.0;
  const hone_scaling none = {one, one, zero, zero, false};
  if (now.status != HONE_OK)
    return now.status;
  return hone_engine_single.factor(self, a, scaling ? scaling : &none, info);
}

/* As an engine that has one triangle does, which leaves what it cannot know to
   the host. */
static int inspect(void *self, const hone_matrix *a,
                   const hone_scaling *scaling, double *scratch,
                   hone_inspection *seen) {
  hone_inspection host = {.row_max = seen->row_max, .col_max = seen->col_max};
  (void)self;
  a->op->inspect(a, NULL, scaling, scratch, &host);
  for (int64_t i = 0; i < 2 * ORDER; i++)
    scratch[i] = ORDER;
  seen->symmetry = now.finds;
  if (now.finds == HONE_SYMMETRY_REFUTED)
    seen->col_max[0] = HONE_INF;
  return HONE_OK;
}

static int residual(void *self, const hone_matrix *a, bool trans,
                    const double *x, const double *b, double *r, double *den) {
  const hone_residual_job job = {.a = a,
                                 .trans = trans,
                                 .accurate = true,
                                 .k = 1,
                                 .x = &x,
                                 .b = &b,
                                 .r = &r,
                                 .den = &den};
  (void)self;
  a->op->residual(&job, NULL);
  return HONE_OK;
}

static int find_structure(const hone_matrix *a, hone_pool *pool,
                          hone_search how, double *scratch,
                          hone_structure *out) {
  if (how == HONE_SEARCH_ALL) {
    searches++;
    return now.search != HONE_OK
               ? now.search
               : hone_dense_operator.find_structure(a, pool, how, scratch, out);
  }
  CHECK_EQ_INT(how, HONE_SEARCH_SAMPLE);
  *out = (hone_structure){.lower = ORDER - 1,
                          .upper = ORDER - 1,
                          .definite = true,
                          .sampled = true,
                          .found = HONE_FOUND_DEFINITE};
  return HONE_OK;
}

typedef struct outcome {
  int status;
  double omega; /* in quadruple precision */
  hone_report report;
} outcome;

static void solve_system(const hone_engine *const *engines, const double *a,
                         outcome *o) {
  const hone_request request = {.criterion = HONE_CRITERION_COMPONENTWISE,
                                .limit = SUP_LIMIT};
  hone_operator op = hone_dense_operator;
  op.find_structure = find_structure;
  const hone_dense dense = {ORDER, ORDER, a, NULL, false, 0};
  const hone_matrix matrix = {&op, &dense, ORDER};
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_ladder ladder;
  hone_column column;
  double b[ORDER], x[ORDER];
  for (int i = 0; i < ORDER; i++)
    b[i] = 1.0 + i;
  searches = 0;
  CHECK_EQ_INT(sup_ladder_create(&ladder, ORDER, engines, 3, &request, &mem,
                                 NULL, &watch),
               HONE_OK);
  o->status = hone_ladder_factor(&ladder, &matrix, &o->report);
  if (o->status == HONE_OK)
    o->status = hone_ladder_solve(&ladder, false, 1, b, ORDER, x, ORDER, NULL,
                                  0, &column, &o->report);
  if (o->status == HONE_OK)
    o->omega = sup_backward_error(ORDER, a, ORDER, false, x, b);
  hone_ladder_destroy(&ladder);
  CHECK_EQ_INT(mem.held, 0);
}

static outcome run(script s) {
  sup_rng rng = {3};
  hone_engine engine = hone_engine_single;
  engine.name = "scripted Cholesky";
  engine.symmetric = true;
  engine.applies = is_definite;
  engine.resident = is_resident;
  engine.factor = factor;
  engine.inspect = inspect;
  engine.residual = residual;
  const hone_engine *engines[] = {&engine, &hone_engine_single,
                                  &hone_engine_double};
  double *a = sup_filled(ORDER * ORDER, 0.0);
  outcome o;
  memset(&o, 0, sizeof o);
  o.omega = HONE_NAN;
  sup_matrix_spd(&rng, ORDER, 10.0, a);
  if (!s.symmetric)
    a[30 + 20 * ORDER] = nextafter(a[30 + 20 * ORDER], 10.0);
  now = s;
  solve_system(engines, a, &o);
  sup_free(a);
  return o;
}

static void check_taken_as(const outcome *o, bool symmetric) {
  ct_note("%s; %s", o->report.path, o->report.reason);
  CHECK_EQ_INT(o->status, HONE_OK);
  CHECK_LE(o->omega, SUP_LIMIT);
  CHECK_EQ_INT(strstr(o->report.path, "scripted Cholesky") != NULL, symmetric);
  CHECK_EQ_INT(o->report.structure,
               symmetric ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL);
  CHECK_EQ_INT(strstr(o->report.reason,
                      "scripted Cholesky: the matrix is not symmetric") != NULL,
               !symmetric);
}

TEST(sampled_symmetry, is_confirmed_by_the_engine_that_reads_all_of_a) {
  const outcome o =
      run((script){HONE_SYMMETRY_FOUND, HONE_OK, HONE_OK, true, true});
  check_taken_as(&o, true);
  CHECK_EQ_INT(searches, 0);
}

TEST(sampled_symmetry, that_an_engine_refutes_is_followed_by_lu) {
  const outcome o =
      run((script){HONE_SYMMETRY_REFUTED, HONE_OK, HONE_OK, true, false});
  check_taken_as(&o, false);
  CHECK_EQ_INT(searches, 0);
}

TEST(sampled_symmetry, is_settled_by_the_host_where_the_engine_does_not_know) {
  for (int symmetric = 0; symmetric < 2; symmetric++) {
    const outcome o =
        run((script){HONE_SYMMETRY_UNKNOWN, HONE_OK, HONE_OK, true, symmetric});
    check_taken_as(&o, symmetric);
    CHECK_EQ_INT(searches, 1);
  }
}

/* The engine keeps no copy, or its device fails: nobody has looked at A. */
TEST(sampled_symmetry, is_settled_by_the_host_before_other_ways) {
  for (int symmetric = 0; symmetric < 2; symmetric++)
    for (int fails = 0; fails < 2; fails++) {
      const outcome o = run((script){HONE_SYMMETRY_FOUND,
                                     fails ? HONE_DEVICE_FAILED : HONE_OK,
                                     HONE_OK, fails != 0, symmetric});
      ct_note("symmetric %d, fails %d: %s", symmetric, fails, o.report.path);
      CHECK_EQ_INT(o.status, HONE_OK);
      CHECK_LE(o.omega, SUP_LIMIT);
      CHECK_EQ_INT(searches, 1);
      CHECK_EQ_INT(o.report.structure,
                   symmetric ? HONE_FOUND_DEFINITE : HONE_FOUND_GENERAL);
      CHECK_EQ_INT(strstr(o.report.reason, "is not symmetric") != NULL,
                   !symmetric);
    }
}

TEST(sampled_symmetry, that_cannot_be_settled_accepts_nothing) {
  const outcome o = run(
      (script){HONE_SYMMETRY_UNKNOWN, HONE_OK, HONE_DEVICE_FAILED, true, true});
  CHECK_EQ_INT(o.status, HONE_DEVICE_FAILED);
}
