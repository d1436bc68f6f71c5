/* SPDX-License-Identifier: BSD-3-Clause */
/* A system that fails, or that no block serves, has the result that hone_solve
   gives it, and changes no bit of its neighbours' x. */
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 7, NRHS = 2, COUNT = 9 };

typedef enum evil {
  NAN_IN_A,
  INF_IN_A,
  NAN_IN_B,
  INF_IN_B,
  ZERO_ROW,
  ZERO_COLUMN,
  ZERO_MATRIX,
  SINGULAR,
  NULL_A,
  NULL_B,
  NULL_X,
  X_IS_A,
  X_CROSSES_B,
  HUGE_A,
  TINY_A,
  HUGE_B,
  TINY_B,
  ZERO_B,
  EVILS
} evil;

static const char *const names[EVILS] = {
    "NaN in A", "Inf in A", "NaN in b", "Inf in b", "zero row", "zero column",
    "zero A",   "singular", "NULL a",   "NULL b",   "NULL x",   "x is A",
    "x in b",   "huge A",   "tiny A",   "huge b",   "tiny b",   "zero b"};

/* Lists of pointers for a batch; x as a list of its own. */
typedef struct lists {
  const double *a[COUNT], *b[COUNT];
  double *x[COUNT];
} lists;

static void use_lists(bat *t, lists *p) {
  for (int64_t k = 0; k < t->batch.count; k++) {
    p->a[k] = bat_a(t, k);
    p->b[k] = bat_b(t, k);
    p->x[k] = bat_x(t, k);
  }
  t->batch.a_list = p->a;
  t->batch.b_list = p->b;
  t->batch.x_list = p->x;
}

static void multiply_by(double *v, int64_t count, double by) {
  for (int64_t i = 0; i < count; i++)
    v[i] *= by;
}

static void spoil_matrix(bat *t, int64_t k, evil kind) {
  const int64_t parts = t->parts, all = N * N * parts;
  double *a = bat_a(t, k);
  if (kind == NAN_IN_A || kind == INF_IN_A)
    bat_entry(t, k, 3, 5)[parts - 1] =
        kind == NAN_IN_A ? (double)NAN : -HUGE_VAL;
  for (int64_t j = 0; j < N && kind == ZERO_ROW; j++)
    memset(bat_entry(t, k, 2, j), 0, (size_t)parts * sizeof *a);
  if (kind == ZERO_COLUMN)
    memset(bat_entry(t, k, 0, 4), 0, (size_t)(N * parts) * sizeof *a);
  if (kind == ZERO_MATRIX)
    memset(a, 0, (size_t)all * sizeof *a);
  if (kind == SINGULAR) /* of small integers, with two equal columns */
    for (int64_t i = 0; i < N * N; i++) {
      a[i * parts] = (double)(((i % N) * (i / N % 6) * 5 + i % N * 3) % 7);
      a[i * parts + parts - 1] *= parts == 1;
    }
  if (kind == HUGE_A || kind == TINY_A)
    multiply_by(a, all, kind == HUGE_A ? 1e305 : 1e-305);
}

static void spoil_side(bat *t, int64_t k, evil kind) {
  const int64_t parts = t->parts;
  double *b = bat_b(t, k) + N * parts; /* the second right-hand side */
  if (kind == NAN_IN_B || kind == INF_IN_B)
    b[4 * parts] = kind == NAN_IN_B ? (double)NAN : HUGE_VAL;
  if (kind == HUGE_B || kind == TINY_B || kind == ZERO_B)
    multiply_by(b, N * parts,
                kind == HUGE_B   ? 1e300
                : kind == TINY_B ? 1e-300
                                 : 0.0);
}

static void spoil(bat *t, lists *p, int64_t k, evil kind) {
  spoil_matrix(t, k, kind);
  spoil_side(t, k, kind);
  if (kind == NULL_A)
    p->a[k] = NULL;
  if (kind == NULL_B)
    p->b[k] = NULL;
  if (kind == NULL_X)
    p->x[k] = NULL;
  if (kind == X_IS_A)
    p->x[k] = bat_a(t, k);
  if (kind == X_CROSSES_B)
    p->x[k] = bat_b(t, k) + t->parts;
}

/* The status that a system has; 0 for those that are accepted. */
static int status_of(evil kind) {
  static const int of[EVILS] = {
      HONE_NOT_FINITE_A, HONE_NOT_FINITE_A, HONE_NOT_FINITE_B,
      HONE_NOT_FINITE_B, HONE_SINGULAR,     HONE_SINGULAR,
      HONE_SINGULAR,     HONE_SINGULAR,     HONE_NULL_POINTER,
      HONE_NULL_POINTER, HONE_NULL_POINTER, HONE_BAD_OVERLAP,
      HONE_BAD_OVERLAP};
  return of[kind];
}

static bool has_arguments(evil kind) {
  return kind < NULL_A || kind > X_CROSSES_B;
}

static void check_spoiled(const bat *t, int64_t k, evil kind) {
  const hone_batch_result *r = &t->results[k];
  CHECK_EQ_INT(r->status, status_of(kind));
  if (has_arguments(kind))
    bat_check_alone(t, k);
  else
    CHECK(r->row == -1 && r->col == -1 && r->precision == 0);
  if (kind == NAN_IN_A || kind == INF_IN_A) {
    CHECK_EQ_INT(r->row, 3);
    CHECK_EQ_INT(r->col, 5);
  }
  if (kind == NAN_IN_B || kind == INF_IN_B) {
    CHECK_EQ_INT(r->row, 4);
    CHECK_EQ_INT(r->col, 1);
  }
  if (r->status < 0 && has_arguments(kind))
    CHECK(sup_untouched(bat_x(t, k), N * NRHS * t->parts, UNTOUCHED));
}

/* Spoils system 'place', and the one after it if 'two' is set. */
static void check_neighbours(int parts, evil kind, int64_t place, bool two) {
  const size_t bytes = (size_t)(N * NRHS * parts) * sizeof(double);
  bat good = bat_make(parts, COUNT, N, NRHS);
  bat t = bat_make(parts, COUNT, N, NRHS);
  lists p;
  CHECK_EQ_INT(bat_solve(&good), HONE_OK);
  use_lists(&t, &p);
  spoil(&t, &p, place, kind);
  if (two)
    spoil(&t, &p, place + 1, kind);
  const int st = bat_call(&t);
  CHECK_EQ_INT(st, status_of(kind));
  CHECK_EQ_INT(bat_in_blocks(&t), COUNT - 1 - two);
  for (int64_t k = 0; k < COUNT; k++)
    if (k == place || (two && k == place + 1)) {
      check_spoiled(&t, k, kind);
    } else {
      CHECK_EQ_INT(t.results[k].status, HONE_OK);
      CHECK_MEM_EQ(bat_x(&t, k), bat_x(&good, k), bytes);
    }
  bat_discard(&t);
  bat_discard(&good);
}

TEST(batch_bad, systems_get_their_status_and_leave_neighbours_alone) {
  for (int parts = 1; parts <= 2; parts++)
    for (int kind = 0; kind < EVILS; kind++)
      for (int64_t place = 0; place < COUNT; place += 2)
        for (int two = 0; two < 2 && place + two < COUNT; two++) {
          ct_note("parts %d, %s, place %d, two %d", parts, names[kind],
                  (int)place, two);
          check_neighbours(parts, (evil)kind, place, two);
        }
}

/* All kinds in one batch, where no lane of a block may be good. */
TEST(batch_bad, systems_of_every_kind_stand_side_by_side) {
  for (int parts = 1; parts <= 2; parts++)
    for (int shift = 0; shift < EVILS; shift++) {
      bat t = bat_make(parts, COUNT, N, NRHS);
      lists p;
      use_lists(&t, &p);
      for (int64_t k = 0; k < COUNT; k++)
        spoil(&t, &p, k, (evil)((k + shift) % EVILS));
      const int st = bat_call(&t);
      int first = HONE_OK;
      for (int64_t k = 0; k < COUNT; k++) {
        const evil kind = (evil)((k + shift) % EVILS);
        ct_note("parts %d, %s at place %d", parts, names[kind], (int)k);
        check_spoiled(&t, k, kind);
        first = first == HONE_OK ? status_of(kind) : first;
      }
      CHECK_EQ_INT(st, first);
      CHECK_EQ_INT(bat_in_blocks(&t), 0);
      bat_discard(&t);
    }
}

/* Also where the matrices are read by rows, and transposed. */
TEST(batch_bad, systems_leave_neighbours_alone_in_every_form) {
  for (int way = 0; way < 12; way++)
    for (int kind = 0; kind < NULL_A; kind++) {
      const size_t bytes = (size_t)(N * NRHS * (1 + way / 6)) * sizeof(double);
      bat good = bat_make(1 + way / 6, COUNT, N, NRHS);
      bat t = bat_make(1 + way / 6, COUNT, N, NRHS);
      lists p;
      t.options.trans = good.options.trans = way % 3;
      t.options.layout = good.options.layout = way / 3 % 2;
      ct_note("parts %d, trans %d, layout %d, %s", t.parts, t.options.trans,
              t.options.layout, names[kind]);
      CHECK_EQ_INT(bat_solve(&good), HONE_OK);
      use_lists(&t, &p);
      spoil(&t, &p, 4, (evil)kind);
      CHECK_EQ_INT(bat_call(&t), status_of((evil)kind));
      bat_check_alone(&t, 4);
      for (int64_t k = 0; k < COUNT; k++)
        if (k != 4)
          CHECK_MEM_EQ(bat_x(&t, k), bat_x(&good, k), bytes);
      bat_discard(&t);
      bat_discard(&good);
    }
}

/* One order of the list is larger than the leading dimensions: of all three
   arrays, or of one. */
TEST(batch_bad, leading_dimensions_are_of_one_order_alone) {
  static const int64_t orders[COUNT] = {7, 7, 7, 12, 7, 7, 3, 7, 7};
  for (int way = 0; way < 8; way++) {
    const int which = way % 4;
    bat t = bat_make(1 + way / 4, COUNT, 12, 1);
    ct_note("parts %d, array %d", t.parts, which);
    t.batch.orders = orders;
    if (which == 0 || which == 3)
      t.batch.lda = 9;
    if (which == 1 || which == 3)
      t.batch.ldb = 9;
    if (which == 2 || which == 3)
      t.batch.ldx = 9;
    CHECK_EQ_INT(bat_call(&t), HONE_BAD_LEADING_DIMENSION);
    CHECK_EQ_INT(bat_in_blocks(&t), COUNT - 1);
    for (int64_t k = 0; k < COUNT; k++)
      CHECK_EQ_INT(t.results[k].status,
                   k == 3 ? HONE_BAD_LEADING_DIMENSION : HONE_OK);
    CHECK(sup_untouched(bat_x(&t, 3), 12 * t.parts, UNTOUCHED));
    bat_discard(&t);
  }
}

/* Makes a matrix of condition 1e17, which is not singular. */
static void make_hopeless(const bat *t, int64_t k) {
  sys s = sys_make_of(t->parts, N, 1);
  sys_set_cond(&s, 1, SUP_GEOMETRIC, 1e17);
  memcpy(bat_a(t, k), s.a, (size_t)(N * N * t->parts) * sizeof(double));
  sys_discard(&s);
}

/* A system whose x is weaker than asked for stands behind errors, whatever
   their order, and before the accepted ones. */
TEST(batch_bad, first_error_is_the_status_of_the_call) {
  static const struct {
    int kinds[4]; /* 0: good, 1: hopeless, 2: NaN in A, 3: NaN in b */
    int status;
    const char *reason;
  } cases[] = {{{0, 1, 0, 0}, HONE_ILL_CONDITIONED, "system 1 of 4"},
               {{0, 1, 1, 2}, HONE_NOT_FINITE_A, "system 3 of 4"},
               {{3, 1, 0, 2}, HONE_NOT_FINITE_B, "system 0 of 4"},
               {{1, 2, 3, 0}, HONE_NOT_FINITE_A, "system 1 of 4"},
               {{0, 0, 0, 0}, HONE_OK, ""}};
  for (int way = 0; way < 10; way++) {
    const int c = way % 5;
    bat t = bat_make(1 + way / 5, 4, N, NRHS);
    ct_note("parts %d, case %d", t.parts, c);
    for (int64_t k = 0; k < 4; k++) {
      const int kind = cases[c].kinds[k];
      if (kind == 1)
        make_hopeless(&t, k);
      if (kind == 2)
        *bat_entry(&t, k, 0, 0) = (double)NAN;
      if (kind == 3)
        bat_b(&t, k)[0] = (double)NAN;
    }
    const int st = bat_call(&t);
    CHECK_EQ_INT(st, cases[c].status);
    CHECK_CONTAINS(t.report.reason, cases[c].reason);
    bat_check(&t, st);
    bat_discard(&t);
  }
}
