/* SPDX-License-Identifier: BSD-3-Clause */
/* For singular matrices the report names the unknowns and equations that make
   them so, in the caller's numbering. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ORDER = 30, LISTED = 8, NODES = 24, TEXT = 4096 };

/* A system of order n, its matrix stored by columns or by rows. */
typedef struct trial {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} trial;

static trial make(int64_t n, uint64_t seed) {
  sup_rng rng = {seed};
  trial t = {.n = n,
             .a = sup_filled(n * n, 0.0),
             .b = sup_filled(n, 1.0),
             .x = sup_filled(n, 77.0)};
  sup_random(&rng, n, n, t.a, n);
  sup_random(&rng, n, 1, t.b, n);
  t.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&t.report, sizeof t.report);
  return t;
}

static void discard(trial *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
}

/* Solves; the status must not be 0, and an error leaves x untouched. */
static int refused(trial *t) {
  int st = hone_solve(t->n, 1, t->a, t->n, t->b, t->n, t->x, t->n, &t->options,
                      &t->report);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  if (st == HONE_SINGULAR)
    CHECK(sup_untouched(t->x, t->n, 77.0));
  return st;
}

/* Unknowns, or equations, with their weights in the report. */
typedef struct vector {
  int64_t count;
  const int64_t *index;
  const double *weight;
} vector;

static vector unknowns(const hone_report *r) {
  return (vector){r->null_count, r->null_index, r->null_weight};
}

static vector equations(const hone_report *r) {
  return (vector){r->dependent_count, r->dependent_index, r->dependent_weight};
}

/* The weight of entry i; 0 if the entry is not listed. */
static double weight_of(vector v, int64_t i) {
  for (int64_t k = 0; k < v.count && k < LISTED; k++)
    if (v.index[k] == i)
      return v.weight[k];
  return 0.0;
}

static void check_pair(vector v, int64_t i, int64_t j, double tolerance) {
  const double half = sqrt(0.5);
  CHECK_EQ_INT(v.count, 2);
  CHECK_NEAR(fabs(weight_of(v, i)), half, tolerance);
  CHECK_NEAR(weight_of(v, j), -weight_of(v, i), tolerance);
  CHECK_LT(0.0, v.weight[0]);
}

/* Column to becomes column from, or row to row from, with some noise. */
static void repeat(trial *t, bool row, int64_t from, int64_t to, double noise) {
  const int64_t n = t->n, step = row ? n : 1, line = row ? 1 : n;
  sup_rng rng = {3};
  for (int64_t k = 0; k < n; k++)
    t->a[k * step + to * line] =
        t->a[k * step + from * line] * (1.0 + noise * sup_uniform(&rng));
}

static void transpose(trial *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < j; i++) {
      double *p = t->a + i + j * t->n, *q = t->a + j + i * t->n, v = *p;
      *p = *q;
      *q = v;
    }
}

/* Two columns (row: two rows) of op(A) are nearly equal, whatever the layout
   and trans. */
static void set_up_alike(trial *t, bool row, int layout, int trans,
                         double noise) {
  repeat(t, row, 4, 21, noise);
  if ((layout == HONE_ROW_MAJOR) != (trans == HONE_TRANS))
    transpose(t);
  t->options.layout = layout;
  t->options.trans = trans;
}

TEST(singular, equal_columns_are_named_as_unknowns) {
  for (int k = 0; k < 24; k++) {
    trial t = make(ORDER, 5);
    ct_note("case %d", k);
    t.options.factor_precision = k / 8;
    set_up_alike(&t, false, k & 1, k >> 1 & 1, k & 4 ? 1e-17 : 0.0);
    refused(&t);
    check_pair(unknowns(&t.report), 4, 21, 1e-6);
    discard(&t);
  }
}

TEST(singular, equal_rows_are_named_as_equations) {
  for (int k = 0; k < 24; k++) {
    trial t = make(ORDER, 5);
    ct_note("case %d", k);
    t.options.factor_precision = k / 8;
    set_up_alike(&t, true, k & 1, k >> 1 & 1, k & 4 ? 1e-17 : 0.0);
    refused(&t);
    check_pair(equations(&t.report), 4, 21, 1e-6);
    CHECK_LT(2, unknowns(&t.report).count);
    discard(&t);
  }
}

/* Column 7 is column 2 plus twice column 11. */
TEST(singular, dependent_columns_have_the_weights_of_their_combination) {
  trial t = make(ORDER, 8);
  for (int64_t i = 0; i < ORDER; i++)
    t.a[i + 7 * ORDER] = t.a[i + 2 * ORDER] + 2.0 * t.a[i + 11 * ORDER];
  refused(&t);
  vector v = unknowns(&t.report);
  CHECK_EQ_INT(v.count, 3);
  CHECK_EQ_INT(v.index[0], 11);
  CHECK_NEAR(weight_of(v, 11), 2.0 / sqrt(6.0), 1e-6);
  CHECK_NEAR(weight_of(v, 2), 1.0 / sqrt(6.0), 1e-6);
  CHECK_NEAR(weight_of(v, 7), -1.0 / sqrt(6.0), 1e-6);
  discard(&t);
}

/* Entries above a tenth of the largest weight are listed. */
TEST(singular, entries_of_small_weight_are_left_out) {
  for (int k = 0; k < 2; k++) {
    trial t = make(ORDER, 8);
    const double part = k == 0 ? 0.09 : 0.11;
    for (int64_t i = 0; i < ORDER; i++)
      t.a[i + 7 * ORDER] = t.a[i + 2 * ORDER] + part * t.a[i + 11 * ORDER];
    refused(&t);
    CHECK_EQ_INT(t.report.null_count, 2 + k);
    discard(&t);
  }
}

/* The weights are in the caller's units, also where the library scales. */
TEST(singular, weights_are_in_the_callers_units) {
  for (int rows = 0; rows < 2; rows++) {
    trial t = make(ORDER, 8);
    repeat(&t, false, 4, 21, 0.0);
    for (int64_t j = 0; j < ORDER; j++)
      for (int64_t i = 0; i < ORDER; i++)
        t.a[i + j * ORDER] =
            ldexp(t.a[i + j * ORDER], (int)(i * 3 - j % 5 * 20));
    /* Columns 4 and 21 have the units 2^-80 and 2^-20. */
    for (int64_t i = 0; i < ORDER; i++)
      t.a[i + 21 * ORDER] = ldexp(t.a[i + 21 * ORDER], -61);
    if (rows)
      transpose(&t);
    refused(&t);
    CHECK_LT(t.report.scale_exponent_min, t.report.scale_exponent_max);
    vector v = rows ? equations(&t.report) : unknowns(&t.report);
    CHECK_EQ_INT(v.count, 2);
    CHECK_NEAR(weight_of(v, 21), 2.0 / sqrt(5.0), 1e-6);
    CHECK_NEAR(weight_of(v, 4), -1.0 / sqrt(5.0), 1e-6);
    discard(&t);
  }
}

TEST(singular, zero_rows_and_columns_are_named) {
  for (int k = 0; k < 8; k++) {
    trial t = make(ORDER, 5);
    const bool row = k & 1; /* of the caller's system op(A) */
    ct_note("case %d", k);
    for (int64_t i = 0; i < ORDER; i++)
      t.a[row ? 9 + i * ORDER : i + 9 * ORDER] = 0.0;
    set_up_alike(&t, row, k >> 1 & 1, k >> 2, 0.0);
    for (int64_t i = 0; i < ORDER; i++) /* undoes the equal columns */
      t.a[i + 21 * ORDER] += t.a[i + 3 * ORDER];
    CHECK_EQ_INT(refused(&t), HONE_SINGULAR);
    vector v = row ? equations(&t.report) : unknowns(&t.report);
    vector other = row ? unknowns(&t.report) : equations(&t.report);
    CHECK_EQ_INT(v.count, 1);
    CHECK_EQ_INT(v.index[0], 9);
    CHECK_NEAR(v.weight[0], 1.0, 0.0);
    CHECK_EQ_INT(other.count, 0);
    const bool row_of_a = row != (t.options.trans == HONE_TRANS);
    CHECK_EQ_INT(t.report.min_pivot_row, row_of_a ? 9 : -1);
    CHECK_EQ_INT(t.report.min_pivot_col, row_of_a ? -1 : 9);
    CHECK_EQ_INT(t.report.bad_row, t.report.min_pivot_row);
    CHECK_EQ_INT(t.report.bad_col, t.report.min_pivot_col);
    discard(&t);
  }
}

/* Row i has a one at (i * 7 + 3) % n: a permutation. A second row equals row 4
   where both have entries. */
TEST(singular, row_and_column_of_a_zero_pivot_are_named) {
  for (int k = 0; k < 4; k++) {
    trial t = make(ORDER, 5);
    memset(t.a, 0, ORDER * ORDER * sizeof *t.a);
    for (int64_t i = 0; i < ORDER; i++)
      t.a[i + (i * 7 + 3) % ORDER * ORDER] = 1.0;
    const int64_t c4 = 31 % ORDER, c10 = 73 % ORDER;
    t.a[4 + c10 * ORDER] = t.a[10 + c4 * ORDER] = 1.0;
    ct_note("case %d", k);
    t.options.layout = k & 1;
    t.options.trans = k >> 1;
    if (t.options.layout == HONE_ROW_MAJOR) /* the same matrix by rows */
      transpose(&t);
    CHECK_EQ_INT(refused(&t), HONE_SINGULAR);
    CHECK(t.report.min_pivot_row == 4 || t.report.min_pivot_row == 10);
    CHECK(t.report.min_pivot_col == c4 || t.report.min_pivot_col == c10);
    check_pair(t.options.trans ? equations(&t.report) : unknowns(&t.report), c4,
               c10, 1e-12);
    check_pair(t.options.trans ? unknowns(&t.report) : equations(&t.report), 4,
               10, 1e-12);
    discard(&t);
  }
}

/* In a permutation, row 25 is a combination of rows 11 and 20 except for
   rounding, and smaller, so that pivoting takes it last. */
TEST(singular, row_and_column_of_the_smallest_pivot_are_named) {
  static const double rows[2][3] = {{2.0, 0.1, 0.3}, {0.2, 1.9, 0.7}};
  for (int k = 0; k < 4; k++) {
    trial t = make(ORDER, 5);
    for (int64_t i = 0; i < ORDER; i++)
      for (int64_t j = 0; j < ORDER; j++)
        t.a[i + j * ORDER] = (i + 1) % ORDER == j ? 1.0 : 0.0;
    for (int c = 0; c < 3; c++) {
      double *column = t.a + (c == 0 ? 12 : (c == 1 ? 21 : 26)) * ORDER;
      column[11] = rows[0][c];
      column[20] = rows[1][c];
      column[25] = rows[0][c] / 3.0 + rows[1][c] / 7.0;
    }
    t.options.layout = k & 1;
    t.options.trans = k >> 1;
    if (t.options.layout == HONE_ROW_MAJOR) /* the same matrix by rows */
      transpose(&t);
    ct_note("case %d", k);
    refused(&t);
    CHECK_EQ_INT(t.report.min_pivot_row, 25);
    CHECK_EQ_INT(t.report.min_pivot_col, 26);
    vector v = k >> 1 ? unknowns(&t.report) : equations(&t.report);
    CHECK_EQ_INT(v.index[0], 25);
    CHECK_NEAR(weight_of(v, 11) * 3.0, -v.weight[0], 1e-6);
    CHECK_NEAR(weight_of(v, 20) * 7.0, -v.weight[0], 1e-6);
    discard(&t);
  }
}

/* A triangle with ones on the diagonal except for a zero, and four other
   entries, so that its null vectors are known. It is solved by substitution, so
   that the factors are A itself. */
TEST(singular, triangle_has_its_null_vectors_reported) {
  enum { ZERO = 20 };
  for (int k = 0; k < 8; k++) {
    trial t = make(ORDER, 5);
    const bool lower = k & 1, scaled = k >> 2;
    for (int64_t i = 0; i < ORDER; i++)
      for (int64_t j = 0; j < ORDER; j++)
        t.a[i + j * ORDER] = i == j && i != ZERO ? 1.0 : 0.0;
    const int64_t p = lower ? ORDER - 4 : 3, q = lower ? 1 : ORDER - 2;
    t.a[p + ZERO * ORDER] = 0.5; /* x_p = -x_zero / 2 */
    t.a[ZERO + q * ORDER] = 0.5; /* u_q = -u_zero / 2 */
    t.a[(lower ? ORDER - 1 : 0) + (lower ? 0 : ORDER - 1) * ORDER] = 1.0;
    for (int64_t j = 0; scaled && j < ORDER; j++) /* rows in other units */
      for (int64_t i = ORDER / 2; i < ORDER; i++)
        t.a[i + j * ORDER] *= 0x1p40;
    t.options.trans = k >> 1 & 1;
    ct_note("case %d", k);
    CHECK_EQ_INT(refused(&t), HONE_SINGULAR);
    CHECK_CONTAINS(t.report.path, "triangular");
    const bool trans = t.options.trans;
    CHECK_EQ_INT(t.report.min_pivot_col, ZERO);
    vector x = unknowns(&t.report), u = equations(&t.report);
    if (trans) {
      x = equations(&t.report);
      u = unknowns(&t.report);
    }
    CHECK_NEAR(weight_of(x, p) * 2.0, -weight_of(x, ZERO), 1e-12);
    CHECK_LE(0.5, fabs(weight_of(x, ZERO)));
    if (!scaled) {
      CHECK_EQ_INT(t.report.min_pivot_row, ZERO);
      CHECK_NEAR(weight_of(u, q) * 2.0, -weight_of(u, ZERO), 1e-12);
      CHECK_LE(0.5, fabs(weight_of(u, ZERO)));
    }
    discard(&t);
  }
}

/* A chain of springs that is fixed nowhere: all unknowns move alike. */
TEST(singular, chain_that_is_not_fixed_has_all_unknowns_named) {
  for (int k = 0; k < 4; k++) {
    trial t = make(ORDER, 5);
    sup_rng rng = {(uint64_t)k};
    memset(t.a, 0, ORDER * ORDER * sizeof *t.a);
    for (int64_t i = 0; i + 1 < ORDER; i++) {
      double spring = k % 2 ? 1.0 + sup_uniform(&rng) : 1.0;
      t.a[i * (ORDER + 1)] += spring;
      t.a[(i + 1) * (ORDER + 1)] += spring;
      t.a[i + 1 + i * ORDER] = t.a[i + (i + 1) * ORDER] = -spring;
    }
    ct_note("case %d", k);
    t.options.structure = k / 2;
    refused(&t);
    vector v = unknowns(&t.report);
    CHECK_EQ_INT(v.count, ORDER);
    for (int64_t i = 0; i < LISTED; i++) {
      CHECK_EQ_INT(v.index[i], i); /* in order, as all weights are equal */
      CHECK_NEAR(v.weight[i], 1.0 / sqrt((double)ORDER), 1e-9);
    }
    CHECK_EQ_INT(equations(&t.report).count, ORDER);
    discard(&t);
  }
}

/* A bar between nodes i and j of a plane truss. */
static void add_bar(double *a, const double (*at)[2], int64_t i, int64_t j) {
  const int64_t n = 2 * NODES;
  double d[2] = {at[j][0] - at[i][0], at[j][1] - at[i][1]};
  double length = hypot(d[0], d[1]), stiffness = 210e9 * 1e-4 / length;
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) {
      double k = stiffness * d[r] * d[c] / length / length;
      a[2 * i + r + (2 * i + c) * n] += k;
      a[2 * j + r + (2 * j + c) * n] += k;
      a[2 * i + r + (2 * j + c) * n] -= k;
      a[2 * j + r + (2 * i + c) * n] -= k;
    }
}

static double length_of(const double *v) {
  double sum = 0.0;
  for (int k = 0; k < LISTED; k++)
    sum += v[k] * v[k];
  return sqrt(sum);
}

/* v -= q (q^T v), where q has length 1 or 0. */
static void take_out(double *v, const double *q) {
  double qv = 0.0;
  for (int k = 0; k < LISTED; k++)
    qv += q[k] * v[k];
  for (int k = 0; k < LISTED; k++)
    v[k] -= qv * q[k];
}

/* Fits the rigid motions (1, 0), (0, 1), (-y, x) to the listed weights by least
   squares, and returns the remainder relative to the largest weight. The
   motions are made orthogonal first: for entries at one end of a row they are
   nearly parallel, and successive projections would take thousands of rounds. A
   motion that depends on those before it is left out. */
static double not_rigid(vector v, const double (*at)[2]) {
  double q[3][LISTED], w[LISTED], left = 0.0;
  for (int k = 0; k < LISTED; k++) {
    const double *p = at[v.index[k] / 2];
    bool y = v.index[k] % 2 == 1;
    q[0][k] = y ? 0.0 : 1.0;
    q[1][k] = y ? 1.0 : 0.0;
    q[2][k] = y ? p[0] : -p[1];
    w[k] = v.weight[k];
  }
  for (int m = 0; m < 3; m++) {
    const double size = length_of(q[m]);
    for (int twice = 0; twice < 2; twice++) /* Gram-Schmidt, repeated */
      for (int l = 0; l < m; l++)
        take_out(q[m], q[l]);
    const double rest = length_of(q[m]);
    for (int k = 0; k < LISTED; k++)
      q[m][k] = rest > 1e-6 * size ? q[m][k] / rest : 0.0;
    take_out(w, q[m]);
  }
  for (int k = 0; k < LISTED; k++)
    left = fmax(left, fabs(w[k]));
  return left / fabs(v.weight[0]);
}

TEST(singular, floating_truss_has_a_rigid_motion_reported) {
  sup_rng rng = {4};
  double at[NODES][2];
  trial t = make(2 * NODES, 5);
  memset(t.a, 0, 4 * NODES * NODES * sizeof *t.a);
  for (int i = 0; i < NODES; i++) {
    at[i][0] = i / 2 + 0.3 * sup_uniform(&rng);
    at[i][1] = i % 2 + 0.3 * sup_uniform(&rng);
  }
  for (int i = 0; i < NODES; i++)
    for (int j = i + 1; j < NODES && j <= i + 3; j++)
      add_bar(t.a, at, i, j);
  refused(&t);
  CHECK_LE(LISTED, t.report.null_count);
  /* The factors have rounding errors of n eps times the largest singular value.
     The smallest singular value that belongs to no rigid motion is 9e-4 of the
     largest: 6e-12. */
  CHECK_LE(not_rigid(unknowns(&t.report), at), 1e-11);
  discard(&t);
}

TEST(singular, nothing_is_reported_of_a_regular_matrix) {
  trial t = make(ORDER, 5);
  memset(&t.report, 0x55, sizeof t.report);
  t.report.struct_size = sizeof t.report;
  CHECK_EQ_INT(hone_solve(ORDER, 1, t.a, ORDER, t.b, ORDER, t.x, ORDER,
                          &t.options, &t.report),
               HONE_OK);
  CHECK_EQ_INT(t.report.min_pivot_row, -1);
  CHECK_EQ_INT(t.report.min_pivot_col, -1);
  CHECK_EQ_INT(t.report.null_count, 0);
  CHECK_EQ_INT(t.report.dependent_count, 0);
  discard(&t);
}

/* A matrix of rank n - 5, and the matrix of ones: one of the null vectors is
   reported. */
TEST(singular, one_of_many_null_vectors_is_reported) {
  for (int k = 0; k < 2; k++) {
    trial t = make(ORDER, 5);
    for (int64_t j = 0; j < ORDER; j++)
      for (int64_t i = 0; i < ORDER; i++)
        if (k == 1)
          t.a[i + j * ORDER] = 1.0;
        else if (j >= ORDER - 5)
          t.a[i + j * ORDER] = t.a[i + (j - 10) * ORDER];
    refused(&t);
    ct_note("case %d", k);
    CHECK_LE(k == 0 ? 2 : 1, t.report.null_count);
    double sum = 0.0;
    for (int i = 0; i < LISTED && i < t.report.null_count; i++)
      sum += t.report.null_weight[i] * t.report.null_weight[i];
    CHECK_LE(sum, 1.0 + 1e-12);
    for (int64_t j = ORDER - 5; k == 0 && j < ORDER; j++)
      CHECK_NEAR(weight_of(unknowns(&t.report), j),
                 -weight_of(unknowns(&t.report), j - 10), 1e-6);
    discard(&t);
  }
}

TEST(singular, reusable_solver_reports_the_same) {
  for (int trans = 0; trans < 2; trans++) {
    trial t = make(ORDER, 5);
    hone_solver *solver;
    hone_report r = HONE_REPORT_INIT;
    repeat(&t, false, 4, 21, 1e-17);
    CHECK_EQ_INT(hone_solver_create(&solver, ORDER, &t.options), HONE_OK);
    int st = hone_solver_factor(solver, t.a, ORDER, &r);
    if (st == HONE_OK) {
      st = sup_solver_solve(solver, trans, 1, t.b, ORDER, t.x, ORDER, NULL, 0,
                            NULL, &r);
      CHECK_EQ_INT(st, HONE_ILL_CONDITIONED);
      check_pair(trans ? equations(&r) : unknowns(&r), 4, 21, 1e-6);
    } else { /* transposed or not is not known yet: A x = b */
      CHECK_EQ_INT(st, HONE_SINGULAR);
      check_pair(unknowns(&r), 4, 21, 1e-6);
    }
    hone_solver_destroy(&solver);
    discard(&t);
  }
}

TEST(singular, unknowns_and_equations_are_in_the_text_of_the_report) {
  char text[TEXT];
  trial t = make(ORDER, 5);
  repeat(&t, false, 4, 21, 0.0);
  refused(&t);
  hone_report_text(&t.report, text, sizeof text);
  CHECK_CONTAINS(text, " move together (weights 0.71, -0.71)");
  CHECK(strstr(text, "unknowns 4 and 21 ") != NULL ||
        strstr(text, "unknowns 21 and 4 ") != NULL);
  CHECK_CONTAINS(text, "the smallest pivot is in row ");
  discard(&t);
}
