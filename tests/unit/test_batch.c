/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_batch_solve for systems that are no trouble: blocks solve them, and
   every answer is that of hone_solve. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UP_TO = 256 }; /* the largest order that blocks take */

/* Every system must be accepted, and all of them by blocks. */
static void check_solved(bat *t) {
  CHECK_EQ_INT(bat_solve(t), HONE_OK);
  CHECK_EQ_INT(bat_in_blocks(t), t->batch.n <= UP_TO ? t->batch.count : 0);
}

/* Orders at which blocks and lanes, tiles of registers, panels and passes are
   whole, or have a rest. */
static const int64_t orders[] = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  13,  14,  15,  16,  17,
    24, 31, 32, 33, 48, 63, 64, 65, 95, 96, 97, 128, 129, 200, 255, 256, 257};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Larger orders come in a block and a part of one, and in a whole block: more
   of them would only take longer. */
static void solve_every_count(int parts) {
  static const int64_t counts[] = {1, 3, 8, 9, 20};
  for (int o = 0; o < ORDERS; o++)
    for (int64_t nrhs = 1; nrhs <= 3; nrhs += 2)
      for (int i = 0; i < 5; i++) {
        if (orders[o] > 130 && counts[i] != (nrhs == 1 ? 9 : 8))
          continue;
        bat t = bat_make(parts, counts[i], orders[o], nrhs);
        ct_note("parts %d, n %d, nrhs %d, count %d", parts, (int)orders[o],
                (int)nrhs, (int)counts[i]);
        check_solved(&t);
        for (int64_t k = 0; k < t.batch.count && i == 3; k++)
          bat_check_alone(&t, k);
        bat_discard(&t);
      }
}

TEST(batch, solves_every_order_and_count) { solve_every_count(1); }

TEST(batch, solves_every_order_and_count_of_complex_systems) {
  solve_every_count(2);
}

/* ---- Forms -------------------------------------------------------------- */

TEST(batch, takes_every_layout_and_transposition) {
  static const int64_t of[] = {1, 4, 7, 33, 130, 260};
  for (int way = 0; way < 12; way++)
    for (int o = 0; o < 6; o++)
      for (int64_t pad = 0; pad <= 3; pad += 3) {
        bat t = bat_make_padded(1 + way / 6, 9, of[o], 2, pad);
        t.options.trans = way % 3;
        t.options.layout = way / 3 % 2;
        ct_note("parts %d, trans %d, layout %d, n %d, pad %d", t.parts,
                t.options.trans, t.options.layout, (int)of[o], (int)pad);
        check_solved(&t);
        for (int64_t k = 0; k < t.batch.count; k += 4)
          bat_check_alone(&t, k);
        bat_discard(&t);
      }
}

/* Multiplies rows and columns by powers of two from 2^-40 to 2^40, and the
   right-hand sides as the rows that belong to them. */
static void scale(bat *t, int64_t k, bool sides, int rows, int columns) {
  const int64_t n = t->batch.n, parts = t->parts;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      for (int p = 0; p < parts; p++) {
        double *v = bat_entry(t, k, i, j) + p;
        *v = ldexp(*v, rows * (int)((i * 37 + k) % 81 - 40) +
                           columns * (int)((j * 29 + k) % 81 - 40));
      }
  for (int64_t c = 0; c < t->batch.nrhs && sides; c++)
    for (int64_t i = 0; i < n * parts; i++) {
      double *v = bat_b(t, k) + c * t->batch.ldb * parts + i;
      *v = ldexp(*v, (int)((i / parts * 37 + k) % 81 - 40));
    }
}

TEST(batch, solves_strongly_scaled_systems_in_blocks) {
  static const int64_t of[] = {2, 5, 16, 40};
  for (int way = 0; way < 12; way++)
    for (int o = 0; o < 4; o++) {
      const int kind = way / 2 % 3; /* rows, columns, both */
      bat t = bat_make(1 + way % 2, 11, of[o], 2);
      t.options.trans = way / 6 * HONE_CONJ_TRANS;
      ct_note("parts %d, trans %d, kind %d, n %d", t.parts, t.options.trans,
              kind, (int)of[o]);
      for (int64_t k = 0; k < 11; k += 1 + (kind == 0))
        scale(&t, k, kind != 1 && way < 6, kind != 1, kind != 0);
      CHECK_EQ_INT(bat_solve(&t), HONE_OK);
      /* A bound in the caller's units may be too weak for a block, as with one
         component that is far larger than the others. */
      CHECK(bat_in_blocks(&t) >= 6);
      for (int64_t k = 0; k < 11; k += 2)
        bat_check_alone(&t, k);
      bat_discard(&t);
    }
}

/* The norms in rcond are those of A, not of the scaled A. */
TEST(batch, estimates_the_condition_of_the_matrix_in_the_callers_units) {
  bat t = bat_make(1, 9, 3, 1);
  for (int64_t k = 0; k < 9; k++) {
    memset(bat_a(&t, k), 0, 9 * sizeof(double));
    for (int64_t i = 0; i < 3; i++)
      *bat_entry(&t, k, i, i) = ldexp(1.0, (int)(-k * i));
  }
  CHECK_EQ_INT(bat_solve(&t), HONE_OK);
  CHECK_EQ_INT(bat_in_blocks(&t), 9);
  for (int64_t k = 0; k < 9; k++)
    CHECK_NEAR(t.results[k].rcond, ldexp(1.0, (int)(-2 * k)),
               ldexp(1.0, (int)(-2 * k) - 40));
  bat_discard(&t);
}

/* Makes all matrices Hermitian, and definite by a large diagonal; not so
   definite: some entry of the diagonal is negative, and the factors that blocks
   make without pivoting serve all the same. */
static void make_hermitian(bat *t, bool definite) {
  const int64_t n = t->batch.n;
  for (int64_t k = 0; k < t->batch.count; k++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = j; i < n; i++) {
        double *v = bat_entry(t, k, i, j), *w = bat_entry(t, k, j, i);
        w[0] = v[0] = i == j ? 2.0 + (double)n : v[0] / (double)(1 + i + j);
        if (i == j && !definite && i == k % n)
          v[0] = -v[0];
        if (t->parts == 2) {
          v[1] *= i != j;
          w[1] = -v[1];
        }
      }
}

TEST(batch, solves_matrices_that_are_said_to_be_positive_definite) {
  static const int64_t of[] = {1, 2, 5, 8, 12, 13, 17, 40, 63, 65, 100, 131};
  for (int way = 0; way < 2 * 12; way++)
    for (int form = 0; form < 4; form++) {
      bat t = bat_make(1 + way % 2, 10, of[way / 2], 2);
      t.options.structure = HONE_STRUCTURE_SPD;
      t.options.trans = form / 2 * HONE_CONJ_TRANS;
      t.options.layout = form % 2;
      ct_note("parts %d, n %d, form %d", t.parts, (int)t.batch.n, form);
      make_hermitian(&t, true);
      check_solved(&t);
      for (int64_t k = 0; k < 10; k += 4)
        bat_check_alone(&t, k);
      bat_discard(&t);
    }
}

/* A wrong claim costs time, and no answer. */
TEST(batch, solves_matrices_that_are_wrongly_said_to_be_definite) {
  for (int way = 0; way < 12; way++) {
    bat t = bat_make(1 + way % 2, 10, way < 6 ? 12 : 40, 1);
    t.options.structure = HONE_STRUCTURE_SPD;
    ct_note("parts %d, n %d, kind %d", t.parts, (int)t.batch.n, way / 2 % 3);
    if (way / 2 % 3 > 0)
      make_hermitian(&t, way / 2 % 3 == 1);
    if (way / 2 % 3 == 1) /* definite by its lower triangle only */
      for (int64_t k = 0; k < 10; k++)
        *bat_entry(&t, k, 3, 7) += 5.0;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    for (int64_t k = 0; k < 10; k++)
      bat_check_alone(&t, k);
    bat_discard(&t);
  }
}

TEST(batch, passes_options_of_refinement_on) {
  for (int way = 0; way < 10; way++) {
    bat t = bat_make(1 + way % 2, 5, 10, 2);
    const int kind = way / 2;
    ct_note("parts %d, kind %d", t.parts, kind);
    if (kind == 0)
      t.options.criterion = HONE_CRITERION_NORMWISE;
    else if (kind == 1)
      t.options.criterion = HONE_CRITERION_RESIDUAL;
    else if (kind == 2)
      t.options.extra_precise = 1;
    else if (kind == 3)
      t.options.factor_precision = HONE_FACTOR_SINGLE;
    else
      t.options.max_iterations = 1;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    if (kind < 4)
      CHECK_EQ_INT(bat_in_blocks(&t), 0);
    for (int64_t k = 0; k < 5 && kind == 2; k++)
      CHECK_LE(t.results[k].forward_error, 8.0 * SUP_EPS);
    for (int64_t k = 0; k < 5 && kind == 3; k++)
      CHECK_EQ_INT(t.results[k].precision, 32);
    bat_discard(&t);
  }
}

/* A tolerance that no x meets is the caller's: the best x is returned. */
TEST(batch, compares_with_the_tolerance_of_the_caller) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, 9, 20, 1);
    t.options.tolerance = 0x1p-70;
    const int st = bat_call(&t);
    CHECK_EQ_INT(st, HONE_NOT_CONVERGED);
    CHECK_NEAR(t.report.tolerance, 0x1p-70, 0.0);
    for (int64_t k = 0; k < 9; k++)
      bat_check_alone(&t, k);
    bat_discard(&t);
  }
}

/* ---- Arrays ------------------------------------------------------------- */

TEST(batch, takes_one_matrix_or_one_right_hand_side_for_all) {
  for (int way = 0; way < 6; way++) {
    bat t = bat_make_padded(1 + way / 3, 11, 9, 2, 1);
    ct_note("parts %d, way %d", t.parts, way % 3);
    if (way % 3 != 0)
      t.batch.stride_a = 0;
    if (way % 3 != 1)
      t.batch.stride_b = 0;
    check_solved(&t);
    for (int64_t k = 0; k < 11 && way % 3 == 2; k++)
      CHECK_MEM_EQ(bat_x(&t, k), bat_x(&t, 0),
                   (size_t)(9 * t.parts) * sizeof(double));
    bat_discard(&t);
  }
}

/* Pointers to the same arrays in another order, by lists: x has the same bits.
 */
TEST(batch, takes_lists_of_pointers) {
  enum { COUNT = 11 };
  const double *a[COUNT], *b[COUNT];
  double *x[COUNT];
  for (int way = 0; way < 14; way++) {
    const int lists = 1 + way % 7; /* 1: a, 2: b, 4: x */
    bat t = bat_make_padded(1 + way / 7, COUNT, 6, 2, 2);
    ct_note("parts %d, lists %d", t.parts, lists);
    check_solved(&t);
    double *before = sup_copy(t.x, bat_doubles(&t));
    for (int64_t k = 0; k < COUNT; k++) {
      a[k] = bat_a(&t, k);
      b[k] = bat_b(&t, k);
      x[k] = bat_x(&t, k);
    }
    if (lists & 1) {
      t.batch.a_list = a;
      t.batch.a = NULL;
      t.batch.stride_a = -1; /* not read */
    }
    if (lists & 2) {
      t.batch.b_list = b;
      t.batch.b = NULL;
      t.batch.stride_b = INT64_MAX;
    }
    for (int64_t i = 0; i < bat_doubles(&t); i++)
      t.x[i] = UNTOUCHED;
    if (lists & 4)
      t.batch.x_list = x;
    const int st = bat_call(&t);
    bat_check(&t, st);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK_EQ_INT(bat_in_blocks(&t), COUNT);
    CHECK_MEM_EQ(t.x, before, (size_t)bat_doubles(&t) * sizeof *before);
    sup_free(before);
    bat_discard(&t);
  }
}

TEST(batch, takes_orders_that_differ) {
  enum { COUNT = 26 };
  static const int64_t mixed[COUNT] = {5,  0,  1,  5, 270, 1, 5,       7, 0,
                                       7,  5,  5,  5, 5,   5, 5,       5, 1,
                                       -1, 40, 40, 7, 129, 9, 1 << 30, 5};
  for (int parts = 1; parts <= 2; parts++) {
    int64_t served = 0;
    bat t = bat_make(parts, COUNT, 270, 2);
    t.batch.orders = mixed;
    t.batch.n = -77; /* not read */
    for (int64_t k = 0; k < COUNT; k++)
      for (int64_t i = 0; i < mixed[k] && i < 270; i++)
        *bat_entry(&t, k, i, i) += 12.0;
    CHECK_EQ_INT(bat_call(&t), HONE_BAD_SIZE);
    CHECK_EQ_INT(t.report.accepted, 2 * (COUNT - 2));
    for (int64_t k = 0; k < COUNT; k++) {
      const bool bad = mixed[k] < 0 || mixed[k] > 270;
      ct_note("parts %d, system %d of order %d", parts, (int)k, (int)mixed[k]);
      CHECK_EQ_INT(t.results[k].status, bad ? HONE_BAD_SIZE : HONE_OK);
      served += mixed[k] >= 1 && mixed[k] <= UP_TO;
      for (int64_t c = 0; c < 2 && !bad; c++)
        CHECK_LE(bat_omega(&t, k, c, bat_x(&t, k) + c * 270 * parts),
                 SUP_LIMIT);
      const int64_t used = bad ? 0 : mixed[k];
      CHECK(sup_untouched(bat_x(&t, k) + used * parts, (270 - used) * parts,
                          UNTOUCHED));
    }
    CHECK_EQ_INT(bat_in_blocks(&t), served);
    CHECK_CONTAINS(t.report.reason, "system 18 of 26");
    bat_discard(&t);
  }
}

TEST(batch, of_nothing_is_solved) {
  for (int parts = 1; parts <= 2; parts++)
    for (int kind = 0; kind < 3; kind++) {
      bat t = bat_make(parts, kind == 0 ? 0 : 9, kind == 1 ? 0 : 4,
                       kind == 2 ? 0 : 2);
      ct_note("parts %d, kind %d", parts, kind);
      CHECK_EQ_INT(bat_call(&t), HONE_OK);
      CHECK_EQ_INT(t.report.status, HONE_OK);
      CHECK_EQ_INT(t.report.digits, 16);
      CHECK_STR(t.report.reason, "");
      for (int64_t k = 0; k < t.batch.count; k++)
        CHECK_EQ_INT(t.results[k].status, HONE_OK);
      t.batch.a = t.batch.b = t.batch.x = NULL;
      if (kind < 2) /* with nrhs = 0 too, as in hone_solve */
        CHECK_EQ_INT(bat_call(&t), HONE_OK);
      bat_discard(&t);
    }
}

/* ---- The report ---------------------------------------------------------- */

/* The second system has a right-hand side whose solution is not certain: that
   of the other one is accepted none the less. */
TEST(batch, counts_every_right_hand_side_that_is_accepted) {
  static const double a[] = {3.0, .5, .25, 2.0};
  static const double b[] = {1.0,    1.0, 1.0, 2.0, 1.0, 1.0,
                             5e-324, 0.0, 2.0, 1.0, 1.0, 1.0};
  double x[12];
  hone_column columns[6];
  for (int way = 0; way < 3; way++) {
    hone_batch t = HONE_BATCH_INIT;
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    hone_batch_solver *solver = NULL;
    ct_note("way %d", way);
    t.count = 3, t.n = t.nrhs = 2;
    t.a = a, t.lda = 2;
    t.b = b, t.ldb = 2, t.stride_b = 4;
    t.x = x, t.ldx = 2, t.stride_x = 4;
    o.columns = way == 0 ? columns : NULL;
    if (way < 2) {
      CHECK(hone_batch_solve(&t, &o, NULL, &report) > 0);
    } else {
      CHECK_EQ_INT(hone_batch_solver_create(&solver, &o), HONE_OK);
      CHECK_EQ_INT(hone_batch_solver_factor(solver, &t, NULL, &report),
                   HONE_OK);
      CHECK_EQ_INT(report.accepted, 0);
      CHECK(hone_batch_solver_solve(solver, &t, NULL, NULL, &report) > 0);
      hone_batch_solver_destroy(&solver);
    }
    for (int c = 0; c < 6 && way == 0; c++)
      CHECK((columns[c].status == HONE_OK) == (c != 3));
    CHECK_EQ_INT(report.accepted, 5);
  }
}

/* Bounds are stated of systems in blocks and of those alone, but neither where
   there is no x nor by factors. */
TEST(batch, tells_with_what_probability_bounds_fail) {
  static const int64_t sizes[] = {8, 300, 0, 8, 300};
  for (int i = 0; i < 5; i++) {
    bat t = bat_make(1, 3, sizes[i], 1);
    hone_batch_solver *solver = NULL;
    const double expected = sizes[i] > 0 && i < 3 ? 1e-9 : 0.0;
    ct_note("case %d", i);
    for (int64_t k = 0; k < 3 && i >= 3; k++)
      memset(bat_a(&t, k), 0, (size_t)t.batch.stride_a * sizeof *t.a);
    CHECK_EQ_INT(bat_call(&t), i < 3 ? HONE_OK : HONE_SINGULAR);
    CHECK_NEAR(t.report.bound_failure, expected, 0.0);
    t.options.columns = NULL;
    CHECK_EQ_INT(hone_batch_solver_create(&solver, &t.options), HONE_OK);
    (void)hone_batch_solver_factor(solver, &t.batch, NULL, &t.report);
    CHECK_NEAR(t.report.bound_failure, 0.0, 0.0);
    (void)hone_batch_solver_solve(solver, &t.batch, NULL, NULL, &t.report);
    CHECK_NEAR(t.report.bound_failure, expected, 0.0);
    hone_batch_solver_destroy(&solver);
    bat_discard(&t);
  }
}

/* Factors solve nothing: they have no digits. */
TEST(batch, claims_no_digits_of_factors) {
  static const int64_t sizes[] = {6, 100, 260};
  for (int i = 0; i < 3; i++) {
    bat t = bat_make(1, 9, sizes[i], 1);
    hone_batch_solver *solver = NULL;
    ct_note("n %d", (int)sizes[i]);
    CHECK_EQ_INT(hone_batch_solver_create(&solver, NULL), HONE_OK);
    CHECK_EQ_INT(
        hone_batch_solver_factor(solver, &t.batch, t.results, &t.report),
        HONE_OK);
    CHECK_EQ_INT(t.report.digits, 0);
    CHECK(isnan(t.report.forward_error) && isnan(t.report.backward_error));
    CHECK(t.report.rcond > 0.0);
    for (int k = 0; k < 9; k++) {
      CHECK_EQ_INT(t.results[k].digits, 0);
      CHECK(isnan(t.results[k].forward_error));
      CHECK(isnan(t.results[k].backward_error));
    }
    CHECK_EQ_INT(
        hone_batch_solver_solve(solver, &t.batch, NULL, t.results, &t.report),
        HONE_OK);
    CHECK(t.report.digits > 8 && t.results[8].digits > 8);
    hone_batch_solver_destroy(&solver);
    bat_discard(&t);
  }
}
