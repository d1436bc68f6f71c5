/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole solves with so many right-hand sides that residuals follow the steps of
   x (refine/steps.c): every x is measured, and every error bound held,
   by the reference, and products are counted. The tests are
   compiled for real and for complex entries. */
#include "cpu_dp/residual.h"
#include "tests/gallery/either.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

enum { ORDER = HONE_STEPS_ORDER + 5, MOST = 70, WIDE = 100, ALL_PARTS = 3 };

/* ---- A dense matrix whose products and passes are counted ---------------- */

static int products[ALL_PARTS], passes;
static int64_t product_columns; /* of one product, at most */

static void count_steps(const hone_residual_steps *job, hone_pool *pool) {
  products[job->part]++;
  product_columns = HONE_MAX(product_columns, job->k);
  hone_dense_operator.residual_steps(job, pool);
}

static void count_pass(const hone_residual_job *job, hone_pool *pool) {
  passes += (int)job->k;
  hone_dense_operator.residual(job, pool);
}

/* ---- Systems ------------------------------------------------------------- */

typedef enum kind {
  UNIFORM,
  DOMINANT,  /* few corrections */
  IDENTITY,  /* unit right-hand sides */
  SPARSE,    /* and a sparse matrix */
  SMALL_ROW, /* one row is small, the products with it are not all */
  ILL,       /* condition 1e6 */
  EXACT,     /* integers: x is exact */
  UNITS,     /* rows and columns in other units: A is scaled */
  KINDS
} kind;

typedef struct system {
  int64_t n, k;
  bool trans;
  hone_entry *a, *b, *x;
  double *bars;
  hone_column column[WIDE];
  hone_report report;
} system;

static void fill(sup_rng *rng, kind what, system *s) {
  const int64_t n = s->n;
  entries_random(rng, n, n, s->a, n);
  entries_random(rng, n, s->k, s->b, n);
  if (what == ILL)
    entries_matrix_cond(rng, n, 3, 1e6, s->a, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      hone_entry *a = &s->a[i + j * n];
      if (what == SPARSE && i != j && sup_next(rng) % 100 > 1)
        *a = 0.0;
      if ((what == DOMINANT || what == SPARSE) && i == j)
        *a += (double)(what == DOMINANT ? n : 3);
      if (what == SMALL_ROW && i == 7)
        *a *= j == 7 ? 1.0 : 0x1p-30;
      if (what == EXACT)
        *a = (double)(i == j) * 8.0 + hone_nearest(*a * 4.0) / 64.0;
      if (what == UNITS)
        *a *= ldexp(1.0, (int)(i % 21) * 3 - (int)(j % 17) * 5);
    }
  for (int64_t c = 0; c < s->k; c++)
    for (int64_t i = 0; i < n; i++)
      if (what == IDENTITY || what == SPARSE)
        s->b[i + c * n] = i == c * 5 ? 1.0 : 0.0;
  for (int64_t c = 0; what == EXACT && c < s->k; c++) {
    hone_entry *x = entries_filled(n, 0.0);
    for (int64_t i = 0; i < n; i++)
      x[i] = (double)((i * 7 + c) % 19) - 9.0;
    entries_multiply(n, s->a, n, s->trans, x, s->b + c * n);
    entries_free(x);
  }
}

static system make(kind what, int64_t k, bool trans) {
  sup_rng rng = {(uint64_t)(100 * k + 10 * (int)what + trans)};
  system s = {.n = ORDER, .k = k, .trans = trans};
  s.a = entries_filled(s.n * s.n, 0.0);
  s.b = entries_filled(s.n * k, 0.0);
  s.x = entries_filled(s.n * k, (double)NAN);
  s.bars = sup_filled(s.n * k, (double)NAN);
  fill(&rng, what, &s);
  return s;
}

static void discard(system *s) {
  entries_free(s->a);
  entries_free(s->b);
  entries_free(s->x);
  sup_free(s->bars);
}

/* By single-precision LU alone; wide: in blocks as of a device. */
static int solve_in_blocks(system *s, bool wide, hone_pool *pool,
                           hone_mem *mem) {
  hone_engine engine = hone_engine_single;
  hone_operator counted = hone_dense_operator;
  const hone_dense dense = {s->n, s->n, s->a, NULL, false, 0};
  const hone_matrix a = {&counted, &dense, s->n};
  const hone_request request = {
      .limit = SUP_LIMIT, .deterministic = true, .columns = s->k};
  const hone_step step = {&engine, true, false};
  hone_watch watch = {.progress = NULL};
  hone_ladder ladder;
  counted.residual_steps = count_steps;
  counted.residual = count_pass;
  memset(products, 0, sizeof products);
  product_columns = passes = 0;
  engine.wide = wide;
  s->report = (hone_report){.bad_row = -1};
  int st = hone_ladder_create(&ladder, &counted, s->n, &step, 1, &request, mem,
                              pool, &watch);
  if (st == HONE_OK)
    st = hone_ladder_factor(&ladder, &a, &s->report);
  ladder.bars = s->bars;
  ladder.ldbars = s->n;
  if (st == HONE_OK)
    st = hone_ladder_solve(&ladder, s->trans, s->k, s->b, s->n, s->x, s->n,
                           NULL, 0, s->column, &s->report);
  hone_ladder_destroy(&ladder);
  return st;
}

static int solve(system *s, hone_pool *pool, hone_mem *mem) {
  return solve_in_blocks(s, false, pool, mem);
}

/* ---- Checks -------------------------------------------------------------- */

static const double *parts_of(const hone_entry *v) { return (const double *)v; }

/* Holds the errors of all columns against the reference. */
static void check_errors(const system *s) {
  const int64_t n = s->n;
  double *a = sup_filled(HONE_PARTS * n * n, 0.0);
  reference r = {0};
  either_copy(HONE_PARTS, n, parts_of(s->a), n, s->trans, false, a);
  either_solve(&r, HONE_PARTS, n, s->k, a, parts_of(s->b));
  for (int64_t c = 0; c < s->k; c++) {
    const hone_entry *x = s->x + c * n;
    const double *bars = s->bars + c * n, own = 1.5 * r.error[c];
    const double size = hone_max_abs(n, x);
    int64_t beyond = 0;
    CHECK_LE((double)either_distance(&r, HONE_PARTS, c, parts_of(x)) - own,
             s->column[c].forward_error);
    for (int64_t i = 0; i < n; i++)
      beyond += !((double)either_miss(&r, HONE_PARTS, c, i, parts_of(x + i)) <=
                  bars[i] + own * size + 1e-30);
    CHECK_EQ_INT(beyond, 0);
  }
  reference_free(&r);
  sup_free(a);
}

static void check_columns(const system *s, bool with_errors) {
  const int64_t n = s->n;
  for (int64_t c = 0; c < s->k; c++) {
    const double omega = entries_backward_error(n, s->a, n, s->trans,
                                                s->x + c * n, s->b + c * n);
    CHECK_EQ_INT(s->column[c].status, HONE_OK);
    CHECK_LE(omega, SUP_LIMIT);
    CHECK_LE(omega, s->column[c].backward_error * (1.0 + 1e-9) + 1e-24);
    CHECK_LE(s->column[c].backward_error, omega * (1.0 + 0x1p-11) + 1e-20);
  }
  if (with_errors)
    check_errors(s);
}

/* The reference takes a complex system for a real one of twice the order: some
   are left out. */
TEST_OF(many_columns, are_accepted_with_true_errors_and_bounds) {
  for (int what = 0; what < KINDS; what++)
    for (int trans = 0; trans < 2; trans++) {
      hone_mem mem = {0};
      system s = make((kind)what, HONE_STEPS_FROM + 3, trans);
      const bool hard = what == UNIFORM || what == SMALL_ROW || what == ILL;
      ct_note("kind %d, trans %d", what, trans);
      CHECK_EQ_INT(solve(&s, NULL, &mem), HONE_OK);
      CHECK_EQ_INT(mem.held, 0);
      check_columns(&s, HONE_PARTS == 1 || (hard && trans == what % 2));
      discard(&s);
    }
}

/* A dominant matrix needs no pass in double-double, with 16 right-hand sides
   and not with 15. */
TEST_OF(many_columns, are_measured_by_products_from_16_on) {
  for (int64_t k = HONE_STEPS_FROM - 1; k <= HONE_STEPS_FROM; k++) {
    const bool many = k == HONE_STEPS_FROM;
    hone_mem mem = {0};
    system s = make(DOMINANT, k, false);
    CHECK_EQ_INT(solve(&s, NULL, &mem), HONE_OK);
    ct_note("%d columns", (int)k);
    CHECK_EQ_INT(products[HONE_STEP_LEADING] > 0, many);
    CHECK_EQ_INT(products[HONE_STEP_REST] > 0, many);
    CHECK_EQ_INT(passes > 0, !many);
    discard(&s);
  }
}

/* A scaled matrix, and rows whose denominators are too small, take the passes
   in double-double. */
TEST_OF(many_columns, are_measured_by_passes_where_products_do_not_serve) {
  hone_mem mem = {0};
  system s = make(UNITS, HONE_STEPS_FROM, false);
  CHECK_EQ_INT(solve(&s, NULL, &mem), HONE_OK);
  CHECK_EQ_INT(products[HONE_STEP_LEADING], 0);
  discard(&s);
  s = make(SPARSE, HONE_STEPS_FROM, false);
  CHECK_EQ_INT(solve(&s, NULL, &mem), HONE_OK);
  CHECK_LE(HONE_STEPS_FROM, passes);
  discard(&s);
}

TEST_OF(many_columns, have_the_same_bits_with_any_number_of_threads) {
  for (int what = UNIFORM; what <= IDENTITY; what++) {
    hone_mem mem = {0};
    hone_pool *pool;
    system one = make((kind)what, MOST, false);
    system three = make((kind)what, MOST, false);
    CHECK_EQ_INT(solve(&one, NULL, &mem), HONE_OK);
    hone_pool_create(&pool, &mem, 3);
    CHECK_EQ_INT(solve(&three, pool, &mem), HONE_OK);
    hone_pool_destroy(&pool, &mem);
    CHECK_MEM_EQ(one.x, three.x, (size_t)(ORDER * MOST) * sizeof *one.x);
    CHECK_MEM_EQ(one.bars, three.bars,
                 (size_t)(ORDER * MOST) * sizeof *one.bars);
    discard(&one);
    discard(&three);
  }
}

/* A column with NaN in its way, zeros, or numbers at the ends of the range does
   not disturb the others. */
TEST_OF(many_columns, do_not_disturb_one_another) {
  hone_mem mem = {0};
  system good = make(UNIFORM, HONE_STEPS_FROM + 4, false);
  system bad = make(UNIFORM, HONE_STEPS_FROM + 4, false);
  for (int64_t i = 0; i < ORDER; i++) {
    bad.b[i + 2 * ORDER] = 0.0;
    bad.b[i + 5 * ORDER] *= 0x1p1000;
    bad.b[i + 7 * ORDER] *= 0x1p-1000;
  }
  CHECK_EQ_INT(solve(&good, NULL, &mem), HONE_OK);
  CHECK_EQ_INT(solve(&bad, NULL, &mem), HONE_OK);
  for (int64_t c = 0; c < good.k; c++) {
    ct_note("column %d", (int)c);
    CHECK_EQ_INT(bad.column[c].status, HONE_OK);
    if (c != 2 && c != 5 && c != 7)
      CHECK_MEM_EQ(good.x + c * ORDER, bad.x + c * ORDER,
                   ORDER * sizeof *good.x);
  }
  discard(&good);
  discard(&bad);
}

/* More columns in a block than one product takes have the bits that they have
   in blocks of their own. */
TEST_OF(many_columns, go_to_products_in_parts) {
  for (int trans = 0; trans < 2; trans++) {
    hone_mem mem = {0};
    system narrow = make(UNIFORM, WIDE, trans);
    system wide = make(UNIFORM, WIDE, trans);
    ct_note("trans %d", trans);
    CHECK_EQ_INT(solve_in_blocks(&narrow, false, NULL, &mem), HONE_OK);
    CHECK_EQ_INT(solve_in_blocks(&wide, true, NULL, &mem), HONE_OK);
    CHECK_EQ_INT(product_columns, HONE_STEPS_MOST);
    CHECK_EQ_INT(mem.held, 0);
    CHECK_MEM_EQ(narrow.x, wide.x, (size_t)(ORDER * WIDE) * sizeof *wide.x);
    check_columns(&wide, HONE_PARTS == 1);
    discard(&narrow);
    discard(&wide);
  }
}
