/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of hone_batch_solve: what is refused, with which status and
   reason, and what is written then. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3, N = 4, NRHS = 2, OLD = 12345 };

/* A call whose arguments are refused: the results repeat the status, or stay
   as they were, and no x is written. */
static void expect(bat *t, int status, const char *reason, bool results) {
  for (int k = 0; k < COUNT; k++)
    t->results[k].status = OLD;
  t->report = (hone_report)HONE_REPORT_INIT;
  CHECK_EQ_INT(
      bat_call_with(t->parts, &t->batch, &t->options, t->results, &t->report),
      status);
  CHECK_EQ_INT(t->report.status, status);
  CHECK_CONTAINS(t->report.reason, reason);
  CHECK(sup_untouched(t->x, t->parts * COUNT * N * NRHS, UNTOUCHED));
  for (int k = 0; k < COUNT; k++) {
    const hone_batch_result *r = &t->results[k];
    CHECK_EQ_INT(r->status, results ? status : OLD);
    if (results) {
      CHECK(r->row == -1 && r->col == -1 && r->digits == 0);
      CHECK(isnan(r->backward_error) && isinf(r->forward_error));
      CHECK(isnan(r->rcond) && isnan(r->log_abs_det) && isnan(r->det_re));
    }
  }
}

TEST(batch_arguments, wrong_sizes_of_structures_are_refused) {
  for (int parts = 1; parts <= 2; parts++) {
    const size_t least = offsetof(hone_batch, determinants);
    const size_t least_result = offsetof(hone_batch_result, normwise_error);
    const size_t sizes[] = {0, least - 1, sizeof(hone_batch) + 1, SIZE_MAX};
    const size_t result_sizes[] = {0, least_result - 1,
                                   sizeof(hone_batch_result) + 1, SIZE_MAX};
    bat t = bat_make(parts, COUNT, N, NRHS);
    hone_batch good = t.batch;
    ct_note("parts %d", parts);
    for (int i = 0; i < 4; i++) {
      t.batch.struct_size = sizes[i];
      expect(&t, HONE_BAD_STRUCT_SIZE, "batch.struct_size", false);
      t.batch = good;
      t.batch.result_size = result_sizes[i];
      expect(&t, HONE_BAD_STRUCT_SIZE, "batch.result_size", false);
      t.batch = good;
    }
    t.options.struct_size = 3;
    expect(&t, HONE_BAD_STRUCT_SIZE, "options.struct_size", true);
    t.options.struct_size = sizeof t.options;
    t.options.column_size = 8;
    expect(&t, HONE_BAD_STRUCT_SIZE, "options.column_size", true);
    t.options.column_size = sizeof *t.columns;
    CHECK_EQ_INT(bat_call_with(parts, NULL, NULL, t.results, &t.report),
                 HONE_NULL_POINTER);
    CHECK_CONTAINS(t.report.reason, "batch is NULL");
    t.report.struct_size = 5;
    CHECK_EQ_INT(bat_call(&t), HONE_BAD_STRUCT_SIZE);
    CHECK(sup_untouched(t.x, parts * COUNT * N * NRHS, UNTOUCHED));
    t.report = (hone_report)HONE_REPORT_INIT;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    bat_discard(&t);
  }
}

TEST(batch_arguments, wrong_counts_and_sizes_are_refused) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, COUNT, N, NRHS);
    const hone_batch good = t.batch;
    ct_note("parts %d", parts);
    t.batch.count = -1;
    expect(&t, HONE_BAD_SIZE, "batch.count", false);
    t.batch.count = INT64_MAX;
    expect(&t, HONE_BAD_SIZE, "batch.count", false);
    t.batch.count = INT64_MAX / (int64_t)sizeof(hone_batch_result);
    expect(&t, HONE_BAD_SIZE, "batch.count", false);
    t.batch = good;
    t.batch.n = -1;
    expect(&t, HONE_BAD_SIZE, "n is -1", true);
    t.batch.n = (INT64_C(1) << 29) + 1;
    expect(&t, HONE_BAD_SIZE, "n is 536870913", true);
    t.batch = good;
    t.batch.nrhs = -2;
    expect(&t, HONE_BAD_SIZE, "nrhs is -2", true);
    t.batch = good;
    t.batch.reserved = 1;
    expect(&t, HONE_BAD_OPTION, "batch.reserved", true);
    bat_discard(&t);
  }
}

TEST(batch_arguments, wrong_strides_are_refused) {
  static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX / 8};
  for (int way = 0; way < 8; way++) {
    bat t = bat_make(1 + way / 4, COUNT, N, NRHS);
    const hone_batch good = t.batch;
    ct_note("parts %d, stride %lld", t.parts, (long long)bad[way % 4]);
    t.batch.stride_a = bad[way % 4];
    expect(&t, HONE_BAD_SIZE, "batch.stride_a", true);
    t.batch = good;
    t.batch.stride_b = bad[way % 4];
    expect(&t, HONE_BAD_SIZE, "batch.stride_b", true);
    t.batch = good;
    t.batch.stride_x = bad[way % 4];
    expect(&t, HONE_BAD_SIZE, "batch.stride_x", true);
    bat_discard(&t);
  }
}

TEST(batch_arguments, wrong_arrays_are_refused) {
  static const int64_t bad[] = {3, 0, -3, INT64_MIN, INT64_MAX};
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, COUNT, N, NRHS);
    const hone_batch good = t.batch;
    ct_note("parts %d", parts);
    for (int i = 0; i < 5; i++) {
      t.batch.lda = bad[i];
      expect(&t, HONE_BAD_LEADING_DIMENSION, "lda is", true);
      t.batch = good;
      t.batch.ldb = bad[i];
      expect(&t, HONE_BAD_LEADING_DIMENSION, "ldb is", true);
      t.batch = good;
      t.batch.ldx = bad[i];
      expect(&t, HONE_BAD_LEADING_DIMENSION, "ldx is", true);
      t.batch = good;
    }
    t.batch.a = NULL;
    expect(&t, HONE_NULL_POINTER, "a is NULL", true);
    t.batch = good;
    t.batch.b = NULL;
    expect(&t, HONE_NULL_POINTER, "b is NULL", true);
    t.batch = good;
    t.batch.x = NULL;
    expect(&t, HONE_NULL_POINTER, "x is NULL", true);
    bat_discard(&t);
  }
}

/* With orders, arrays are matters of each system: none has any. */
TEST(batch_arguments, absent_arrays_are_refused_in_every_system) {
  static const int64_t orders[COUNT] = {N, N, 2};
  for (int way = 0; way < 6; way++) {
    bat t = bat_make(1 + way / 3, COUNT, N, NRHS);
    ct_note("parts %d, array %d", t.parts, way % 3);
    t.batch.orders = orders;
    t.batch.a = way % 3 == 0 ? NULL : t.a;
    t.batch.b = way % 3 == 1 ? NULL : t.b;
    t.batch.x = way % 3 == 2 ? NULL : t.x;
    expect(&t, HONE_NULL_POINTER, "system 0 of 3", true);
    bat_discard(&t);
  }
}

TEST(batch_arguments, x_that_overlaps_is_refused) {
  for (int parts = 1; parts <= 2; parts++) {
    const int64_t one = N * NRHS;
    bat t = bat_make(parts, COUNT, N, NRHS);
    const hone_batch good = t.batch;
    ct_note("parts %d", parts);
    t.batch.stride_x = one - 1;
    expect(&t, HONE_BAD_OVERLAP, "batch.stride_x is 7, less than the 8", true);
    t.batch.stride_x = 0;
    expect(&t, HONE_BAD_OVERLAP, "batch.stride_x is 0", true);
    t.batch = good;
    t.batch.x = t.a;
    expect(&t, HONE_BAD_OVERLAP, "x overlaps A", true);
    t.batch.x = t.b + parts;
    expect(&t, HONE_BAD_OVERLAP, "x overlaps b", true);
    t.batch.x = t.b;
    t.batch.ldx = N + 1;
    t.batch.stride_x = (N + 1) * NRHS;
    expect(&t, HONE_BAD_OVERLAP, "x overlaps b", true);
    t.batch = good;
    t.batch.stride_x = (NRHS - 1) * N + N; /* as close as may be */
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    bat_discard(&t);
  }
}

/* The arrays of the first two systems lie apart; the x of the third is within
   its own A. */
TEST(batch_arguments, x_that_overlaps_in_a_later_system_is_refused) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, COUNT, N, 1);
    double *all = sup_filled(parts * 128, UNTOUCHED), *a = all + parts * 64;
    memcpy(a, t.a, (size_t)(COUNT * N * N * parts) * sizeof *a);
    ct_note("parts %d", parts);
    t.batch.a = a;
    t.batch.x = all + parts * 20; /* then 60 and 100; A: 64, 80, 96 */
    t.batch.stride_x = 40;
    CHECK_EQ_INT(bat_call_with(parts, &t.batch, NULL, t.results, &t.report),
                 HONE_BAD_OVERLAP);
    CHECK_EQ_INT(t.results[0].status, HONE_OK);
    CHECK_EQ_INT(t.results[1].status, HONE_OK);
    CHECK_EQ_INT(t.results[2].status, HONE_BAD_OVERLAP);
    CHECK_CONTAINS(t.report.reason, "system 2 of 3");
    CHECK_MEM_EQ(a, t.a, (size_t)(COUNT * N * N * parts) * sizeof *a);
    CHECK_LE(bat_omega(&t, 0, 0, all + parts * 20), SUP_LIMIT);
    CHECK_LE(bat_omega(&t, 1, 0, all + parts * 60), SUP_LIMIT);
    sup_free(all);
    bat_discard(&t);
  }
}

/* The rows of one array may be dealt to the systems. */
TEST(batch_arguments, x_may_take_turns_in_one_array) {
  for (int parts = 1; parts <= 2; parts++)
    for (int in_place = 0; in_place < 2; in_place++) {
      bat t = bat_make(parts, COUNT, N, NRHS);
      const int64_t ld = COUNT * N, doubles = ld * NRHS * parts;
      double *all = sup_filled(doubles, UNTOUCHED);
      bat expected = bat_make(parts, COUNT, N, NRHS);
      ct_note("parts %d, in place %d", parts, in_place);
      CHECK_EQ_INT(bat_solve(&expected), HONE_OK);
      for (int64_t k = 0; k < COUNT; k++)
        for (int64_t c = 0; c < NRHS && in_place; c++)
          memcpy(all + (k * N + c * ld) * parts, bat_b(&t, k) + c * N * parts,
                 (size_t)(N * parts) * sizeof *all);
      t.batch.x = all, t.batch.ldx = ld, t.batch.stride_x = N;
      if (in_place)
        t.batch.b = all, t.batch.ldb = ld, t.batch.stride_b = N;
      CHECK_EQ_INT(
          bat_call_with(parts, &t.batch, &t.options, t.results, &t.report),
          HONE_OK);
      for (int64_t k = 0; k < COUNT; k++)
        for (int64_t c = 0; c < NRHS; c++)
          CHECK_LE(bat_apart(parts, N, all + (k * N + c * ld) * parts,
                             bat_x(&expected, k) + c * N * parts),
                   1e-12);
      t.batch.stride_x = N - 1;
      CHECK_EQ_INT(bat_call_with(parts, &t.batch, &t.options, NULL, &t.report),
                   HONE_BAD_OVERLAP);
      t.batch.stride_x = N, t.batch.ldx = ld - 1;
      CHECK_EQ_INT(bat_call_with(parts, &t.batch, &t.options, NULL, &t.report),
                   HONE_BAD_OVERLAP);
      sup_free(all);
      bat_discard(&expected);
      bat_discard(&t);
    }
}

/* Beside a list nobody has looked at ldx before. */
TEST(batch_arguments, leading_dimensions_beside_lists_may_be_anything) {
  static const int64_t bad[] = {INT64_MAX, INT64_C(1) << 62, 1, -5, INT64_MIN};
  for (int i = 0; i < 5; i++) {
    bat t = bat_make(1, COUNT, N, NRHS);
    const double *list[COUNT] = {t.a, t.a + N * N, t.a + 2 * N * N};
    ct_note("ldx %lld", (long long)bad[i]);
    t.batch.a_list = list;
    t.batch.ldx = bad[i];
    t.batch.stride_x = N;
    expect(&t, HONE_BAD_LEADING_DIMENSION, "system 0 of 3", true);
    bat_discard(&t);
  }
}

/* Results and columns over the orders, or over a list. */
TEST(batch_arguments, results_over_orders_are_refused) {
  for (int way = 0; way < 4; way++) {
    union {
      int64_t orders[COUNT];
      const double *list[COUNT];
      hone_batch_result results[COUNT];
      hone_column columns[COUNT * NRHS];
    } at;
    bat t = bat_make(1, COUNT, N, NRHS);
    const char *const what =
        way % 2 == 0 ? "overlaps batch.orders" : "overlaps batch.a_list";
    ct_note("way %d", way);
    for (int64_t k = 0; k < COUNT && way % 2 == 0; k++)
      at.orders[k] = N;
    for (int64_t k = 0; k < COUNT && way % 2 == 1; k++)
      at.list[k] = bat_a(&t, k);
    t.batch.orders = way % 2 == 0 ? at.orders : NULL;
    t.batch.a_list = way % 2 == 1 ? at.list : NULL;
    t.options.columns = way < 2 ? NULL : at.columns;
    if (way >= 2)
      expect(&t, HONE_BAD_OVERLAP, what, true);
    else
      CHECK_EQ_INT(
          hone_batch_solve(&t.batch, &t.options, at.results, &t.report),
          HONE_BAD_OVERLAP);
    CHECK_CONTAINS(t.report.reason, what);
    for (int64_t k = 0; k < COUNT; k++)
      CHECK(way % 2 == 0 ? at.orders[k] == N : at.list[k] == bat_a(&t, k));
    CHECK(sup_untouched(t.x, COUNT * N * NRHS, UNTOUCHED));
    bat_discard(&t);
  }
}

/* A call of a solver that is refused, as results would be written over a matrix
   or over the orders, changes nothing. */
TEST(batch_arguments, results_over_what_is_kept_are_refused) {
  bat t = bat_make(1, COUNT, N, NRHS);
  union {
    int64_t orders[COUNT];
    hone_batch_result results[COUNT];
  } at = {.orders = {N, N, N}};
  hone_batch_solver *solver = NULL;
  const double first = t.a[0];
  t.batch.orders = at.orders;
  CHECK_EQ_INT(hone_batch_solver_create(&solver, NULL), HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &t.batch, NULL, NULL), HONE_OK);
  CHECK_EQ_INT(hone_batch_solver_factor(solver, &t.batch, at.results, NULL),
               HONE_BAD_OVERLAP);
  CHECK_EQ_INT(
      hone_batch_solver_solve(solver, &t.batch, NULL, at.results, NULL),
      HONE_BAD_OVERLAP);
  CHECK(at.orders[0] == N && at.orders[COUNT - 1] == N);
  t.batch.orders = NULL;
  CHECK_EQ_INT(
      hone_batch_solver_factor(solver, &t.batch, (void *)t.a, &t.report),
      HONE_BAD_OVERLAP);
  CHECK_CONTAINS(t.report.reason, "results overlaps a");
  CHECK_NEAR(t.a[0], first, 0.0);
  t.batch.orders = at.orders;
  CHECK_EQ_INT(
      hone_batch_solver_solve(solver, &t.batch, NULL, t.results, &t.report),
      HONE_OK);
  hone_batch_solver_destroy(&solver);
  bat_discard(&t);
}

/* ---- Options ------------------------------------------------------------ */

TEST(batch_arguments, options_that_a_batch_does_not_take_are_refused) {
  for (int parts = 1; parts <= 2; parts++) {
    double room[64] = {0};
    bat t = bat_make(parts, COUNT, N, NRHS);
    const hone_options good = t.options;
    ct_note("parts %d", parts);
    t.options.x0 = room;
    t.options.ldx0 = N;
    expect(&t, HONE_BAD_OPTION, "options.x0", true);
    t.options = good;
    t.options.error_bounds = room;
    t.options.ld_error_bounds = N;
    expect(&t, HONE_BAD_OPTION, "options.error_bounds", true);
    t.options = good;
    t.options.device = 3;
    expect(&t, HONE_BAD_OPTION, "options.device", true);
    t.options = good;
    t.options.trans = 3;
    expect(&t, HONE_BAD_OPTION, "options.trans", true);
    t.options = good;
    t.options.layout = -1;
    expect(&t, HONE_BAD_OPTION, "options.layout", true);
    t.options = good;
    t.options.tolerance = (double)NAN;
    expect(&t, HONE_BAD_OPTION, "options.tolerance", true);
    t.options = good;
    t.options.threads = -1;
    expect(&t, HONE_BAD_OPTION, "options.threads", true);
    t.options = good;
    t.options.alloc_ctx = room; /* without functions it is not read */
    t.options.device = HONE_DEVICE_CPU;
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    bat_discard(&t);
  }
}

/* ---- Structures of other versions ---------------------------------------- */

/* Memory behind the size that the caller knows is neither read nor
   written. */
TEST(batch_arguments, batch_and_results_may_be_of_an_older_version) {
  static const size_t sizes[] = {
      offsetof(hone_batch_result, normwise_error),
      offsetof(hone_batch_result, rcond), offsetof(hone_batch_result, row),
      offsetof(hone_batch_result, log_abs_det), sizeof(hone_batch_result)};
  enum { ROOM = COUNT * sizeof(hone_batch_result) };
  for (int way = 0; way < 10; way++) {
    const size_t size = sizes[way % 5];
    bat t = bat_make(1 + way / 5, COUNT, N, NRHS);
    unsigned char room[ROOM];
    ct_note("parts %d, result_size %d", t.parts, (int)size);
    t.options.deterministic = 1;
    *bat_entry(&t, 1, 2, 1) = (double)NAN;
    (void)bat_call(&t);
    memset(room, 0x5a, sizeof room);
    t.batch.struct_size = offsetof(hone_batch, determinants);
    t.batch.determinants = 77; /* not read */
    t.batch.reserved = 78;
    t.batch.result_size = size;
    CHECK_EQ_INT(bat_call_with(t.parts, &t.batch, &t.options,
                               (hone_batch_result *)(void *)room, NULL),
                 HONE_NOT_FINITE_A);
    for (size_t k = 0; k < COUNT; k++)
      CHECK_MEM_EQ(room + k * size, &t.results[k],
                   HONE_MIN(size, offsetof(hone_batch_result, log_abs_det)));
    for (size_t i = COUNT * size; i < ROOM; i++)
      if (room[i] != 0x5a) {
        CHECK(room[i] == 0x5a);
        break;
      }
    bat_discard(&t);
  }
}

TEST(batch_arguments, results_report_and_options_may_be_absent) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, 11, N, NRHS);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    double *x = sup_copy(t.x, bat_doubles(&t));
    for (int way = 0; way < 8; way++) {
      ct_note("parts %d, way %d", parts, way);
      for (int64_t i = 0; i < bat_doubles(&t); i++)
        t.x[i] = UNTOUCHED;
      CHECK_EQ_INT(bat_call_with(parts, &t.batch, way & 1 ? &t.options : NULL,
                                 way & 2 ? t.results : NULL,
                                 way & 4 ? &t.report : NULL),
                   HONE_OK);
      CHECK_MEM_EQ(t.x, x, (size_t)bat_doubles(&t) * sizeof *x);
    }
    bat_b(&t, 3)[0] = (double)NAN;
    CHECK_EQ_INT(bat_call_with(parts, &t.batch, NULL, NULL, NULL),
                 HONE_NOT_FINITE_B);
    t.batch.n = -1;
    CHECK_EQ_INT(bat_call_with(parts, &t.batch, NULL, NULL, NULL),
                 HONE_BAD_SIZE);
    sup_free(x);
    bat_discard(&t);
  }
}

/* ---- Columns ------------------------------------------------------------ */

/* Entries are count x nrhs, each as large as the caller says: those of blocks,
   of systems solved by themselves, and of systems without an x. */
TEST(batch_arguments, columns_may_be_of_an_older_version) {
  enum { MANY = 11, ROOM = MANY * NRHS * sizeof(hone_column) };
  static const size_t sizes[] = {offsetof(hone_column, normwise_error),
                                 offsetof(hone_column, forward_error),
                                 sizeof(hone_column)};
  for (int way = 0; way < 6; way++) {
    const size_t size = sizes[way % 3];
    bat t = bat_make(1 + way / 3, MANY, N, NRHS);
    unsigned char room[ROOM];
    ct_note("parts %d, column_size %d", t.parts, (int)size);
    t.options.deterministic = 1;
    *bat_entry(&t, 4, 0, 0) = (double)NAN;
    for (int64_t i = 0; i < N * t.parts; i++)
      bat_b(&t, 7)[N * t.parts + i] *= 0x1p500; /* for no block */
    const int st = bat_call(&t);
    CHECK_EQ_INT(st, HONE_NOT_FINITE_A);
    CHECK_EQ_INT(bat_in_blocks(&t), MANY - 2);
    bat_check(&t, st);
    memset(room, 0x5a, sizeof room);
    t.options.columns = (hone_column *)(void *)room;
    t.options.column_size = size;
    CHECK_EQ_INT(bat_call(&t), HONE_NOT_FINITE_A);
    for (size_t k = 0; k < (size_t)MANY * NRHS; k++)
      CHECK_MEM_EQ(room + k * size, &t.columns[k], size);
    for (size_t i = MANY * NRHS * size; i < ROOM; i++)
      if (room[i] != 0x5a) {
        CHECK(room[i] == 0x5a);
        break;
      }
    bat_discard(&t);
  }
}

/* Columns of systems whose arguments are refused have the status too. */
TEST(batch_arguments, columns_of_refused_systems_have_their_status) {
  for (int parts = 1; parts <= 2; parts++) {
    static const int64_t orders[] = {N, 9, N, -1, N};
    const double *a[5];
    bat t = bat_make(parts, 5, N, NRHS);
    ct_note("parts %d", parts);
    for (int64_t k = 0; k < 5; k++)
      a[k] = k == 0 ? NULL : bat_a(&t, k);
    t.batch.a_list = a;
    t.batch.orders = orders;
    CHECK_EQ_INT(bat_call(&t), HONE_NULL_POINTER);
    for (int64_t k = 0; k < 5; k++)
      for (int64_t c = 0; c < NRHS; c++)
        CHECK_EQ_INT(t.columns[k * NRHS + c].status, t.results[k].status);
    CHECK_EQ_INT(t.results[1].status, HONE_BAD_LEADING_DIMENSION);
    CHECK_EQ_INT(t.results[3].status, HONE_BAD_SIZE);
    bat_discard(&t);
  }
}
