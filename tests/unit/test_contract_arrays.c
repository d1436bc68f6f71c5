/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for the arrays: A, b and their padding are left as
   they are, x may be b or x0, layouts and transposes agree. */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <string.h>

TEST(contract, leaves_a_and_b_as_they_are_and_never_reads_the_padding) {
  for (int k = 0; k < 8; k++) {
    sys s = sys_make_padded(k & 1 ? 150 : 11, 3, 5);
    ct_note("n %d, case %d", (int)s.n, k);
    s.options.layout = k & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
    s.options.factor_precision =
        k & 4 ? HONE_FACTOR_DOUBLE : HONE_FACTOR_SINGLE;
    double *a = sup_copy(s.a, s.lda * s.n), *b = sup_copy(s.b, s.ldb * 3);
    CHECK_EQ_INT(sys_call(&s), HONE_OK);
    CHECK_MEM_EQ(s.a, a, (size_t)(s.lda * s.n) * sizeof *a);
    CHECK_MEM_EQ(s.b, b, (size_t)(s.ldb * 3) * sizeof *b);
    for (int64_t c = 0; c < 3; c++) {
      CHECK_LE(sup_backward_error(s.n, s.a, s.lda, k & 2, s.x + c * s.ldx,
                                  s.b + c * s.ldb),
               SUP_LIMIT);
      CHECK(sup_untouched(s.x + c * s.ldx + s.n, 5, UNTOUCHED));
    }
    sup_free(a);
    sup_free(b);
    sys_discard(&s);
  }
}

TEST(contract, gives_the_same_bits_with_and_without_padding) {
  sys s = sys_make(150, 2), t = sys_make_padded(150, 2, 7);
  CHECK_EQ_INT(sys_call(&s), HONE_OK);
  CHECK_EQ_INT(sys_call(&t), HONE_OK);
  for (int c = 0; c < 2; c++)
    CHECK_MEM_EQ(s.x + c * s.ldx, t.x + c * t.ldx, 150 * sizeof *s.x);
  sys_discard(&s);
  sys_discard(&t);
}

TEST(contract, solves_in_place_of_b_or_x0) {
  for (int k = 0; k < 4; k++) {
    sys s = sys_make(k & 1 ? 150 : 9, 70);
    ct_note("x is %s, n %d", k & 2 ? "x0" : "b", (int)s.n);
    CHECK_EQ_INT(sys_call(&s), HONE_OK);
    double *place = sup_copy(s.b, s.n * 70);
    s.options.x0 = k & 2 ? place : NULL;
    s.options.ldx0 = s.n;
    CHECK_EQ_INT(hone_solve(s.n, 70, s.a, s.n, k & 2 ? s.b : place, s.n, place,
                            s.n, &s.options, NULL),
                 HONE_OK);
    if (!(k & 2))
      CHECK_MEM_EQ(place, s.x, (size_t)(s.n * 70) * sizeof *place);
    for (int64_t c = 0; c < 70; c += 23)
      CHECK_LE(sup_backward_error(s.n, s.a, s.n, false, place + c * s.n,
                                  s.b + c * s.n),
               SUP_LIMIT);
    sup_free(place);
    sys_discard(&s);
  }
}

TEST(contract, refuses_an_x_that_overlaps_anything_else) {
  enum { N = 4, ROOM = 100 };
  sys s = sys_make(N, 2);
  double *room = sup_filled(ROOM, 1.0);
  const double *a = room, *b = room + 40, *x0 = room + 60;
  for (int64_t i = 0; i < N; i++)
    room[i + i * N] = 8.0;
  double *before = sup_copy(room, ROOM);
  static const struct {
    int64_t x, ldx;
  } bad[] = {{0, N},  {15, N},     {8, N},      {41, N},    {47, N},
             {37, N}, {40, N + 1}, {40, N + 2}, {61, N},    {67, N},
             {57, N}, {60, N + 1}, {33, N},     {34, N + 1}};
  s.options.x0 = x0;
  s.options.ldx0 = N;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double *x = room + bad[i].x;
    ct_note("x at %d, ldx %d", (int)bad[i].x, (int)bad[i].ldx);
    CHECK_EQ_INT(
        hone_solve(N, 2, a, N, b, N, x, bad[i].ldx, &s.options, &s.report),
        HONE_BAD_OVERLAP);
    CHECK_MEM_EQ(room, before, ROOM * sizeof *room);
  }
  CHECK_EQ_INT(hone_solve(N, 2, a, N, b, N, room + 48, N, &s.options, NULL),
               HONE_OK); /* adjacent arrays do not overlap */
  CHECK_EQ_INT(hone_solve(N, 2, a, N, b, N, room + 16, N, &s.options, NULL),
               HONE_OK);
  sup_free(room);
  sup_free(before);
  sys_discard(&s);
}

/* b and x are columns of one array in which their rows lie beneath each other;
   either may come first. A row that both have is refused. */
TEST(contract, takes_b_and_x_in_rows_of_one_array) {
  enum { N = 5, COLUMNS = 3, LD = 2 * N };
  sys s = sys_make(N, COLUMNS);
  double *room = sup_filled((int64_t)LD * COLUMNS, -1.0);
  for (int first = 0; first < 2; first++) {
    double *b = first ? room : room + N, *x = first ? room + N : room;
    for (int64_t c = 0; c < COLUMNS; c++)
      memcpy(b + c * LD, s.b + c * N, N * sizeof *b);
    CHECK_EQ_INT(
        hone_solve(N, COLUMNS, s.a, N, b, LD, x, LD, &s.options, &s.report),
        HONE_OK);
    REQUIRE(hone_solve(N, COLUMNS, s.a, N, s.b, N, s.x, N, &s.options, NULL) ==
            HONE_OK);
    for (int64_t c = 0; c < COLUMNS; c++) {
      CHECK_MEM_EQ(b + c * LD, s.b + c * N, N * sizeof *b);
      CHECK_MEM_EQ(x + c * LD, s.x + c * N, N * sizeof *x);
    }
    CHECK_EQ_INT(hone_solve(N, COLUMNS, s.a, N, room + first, LD,
                            room + N - !first, LD, &s.options, NULL),
                 HONE_BAD_OVERLAP);
    CHECK_EQ_INT(hone_solve(N, COLUMNS, s.a, N, room + N, LD - 1, room, LD - 1,
                            &s.options, NULL),
                 HONE_BAD_OVERLAP);
  }
  sup_free(room);
  sys_discard(&s);
}

/* One array is read as A or, by the layout, as its transpose. */
TEST(contract, solves_all_four_combinations_of_layout_and_transpose) {
  for (int64_t n = 11; n <= 150; n += 139) {
    sys s = sys_make_padded(n, 2, 3);
    double *x[4];
    for (int k = 0; k < 4; k++) {
      ct_note("n %d, layout %d, trans %d", (int)n, k / 2, k % 2);
      s.options.layout = k / 2;
      s.options.trans = k % 2;
      CHECK_EQ_INT(sys_call(&s), HONE_OK);
      bool stored_trans = (k / 2) != (k % 2);
      for (int64_t c = 0; c < 2; c++) {
        const double *xc = s.x + c * s.ldx, *bc = s.b + c * s.ldb;
        CHECK_LE(sup_backward_error(n, s.a, s.lda, stored_trans, xc, bc),
                 SUP_LIMIT);
        CHECK_LE(1e-3,
                 sup_backward_error(n, s.a, s.lda, !stored_trans, xc, bc));
      }
      x[k] = sup_copy(s.x, s.ldx * 2);
    }
    CHECK_MEM_EQ(x[0], x[3], (size_t)s.ldx * 2 * sizeof(double));
    CHECK_MEM_EQ(x[1], x[2], (size_t)s.ldx * 2 * sizeof(double));
    for (int k = 0; k < 4; k++)
      sup_free(x[k]);
    sys_discard(&s);
  }
}
