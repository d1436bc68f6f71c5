/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of hard systems: each ends as by hone_solve, and no bound that is
   claimed is too small. */
#include "tests/gallery/either.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 9 };

/* With deterministic random vectors hone_solve ends alike, whoever called. */
static void check_hard(bat *t, reference *r) {
  t->options.deterministic = 1;
  const int st = bat_call(t);
  int worst = HONE_OK;
  for (int64_t k = 0; k < t->batch.count; k++) {
    hone_report report = HONE_REPORT_INIT;
    const int64_t doubles = t->parts * t->batch.n * t->batch.nrhs;
    double *x = sup_filled(doubles, UNTOUCHED);
    hone_column *columns = calloc((size_t)t->batch.nrhs, sizeof *columns);
    const int alone = bat_alone(t, k, x, columns, &report);
    CHECK_EQ_INT(t->results[k].status, alone);
    if (alone < 0)
      CHECK(sup_untouched(bat_x(t, k), doubles, UNTOUCHED));
    if (worst == HONE_OK || (worst > 0 && alone < 0))
      worst = alone;
    bat_check_claims(t, k, report.sparse_columns > 0, r);
    free(columns);
    sup_free(x);
  }
  CHECK_EQ_INT(st, worst);
}

/* ---- The gallery -------------------------------------------------------- */

static void fill(bat *t, const gallery_family *f, int kind) {
  for (int64_t k = 0; k < COUNT; k++) {
    const double parameter = f->low + (f->high - f->low) * (double)(k % 4) / 3;
    const uint64_t seed = (uint64_t)(k + 10 * kind);
    either_make(f, t->parts, t->batch.n, parameter, seed, bat_a(t, k),
                t->batch.n);
    for (int64_t c = 0; c < t->batch.nrhs; c++)
      either_rhs((int)((kind + k + c) % gallery_rhs_count), t->parts,
                 t->batch.n, bat_a(t, k), t->batch.n, seed,
                 bat_b(t, k) + c * t->batch.ldb * t->parts);
  }
}

static void solve_gallery(int parts, int64_t n) {
  reference r = {0};
  int64_t served = 0, systems = 0;
  for (int k = 0; k < either_families(parts); k++) {
    const gallery_family *f = &gallery_families[k];
    if (n < f->least_n || n > f->most_n)
      continue;
    bat t = bat_make(parts, COUNT, n, 2);
    ct_note("%s, parts %d, n %d", f->name, parts, (int)n);
    fill(&t, f, k);
    check_hard(&t, &r);
    served += bat_in_blocks(&t);
    systems += COUNT;
    bat_discard(&t);
  }
  ct_note("parts %d, n %d", parts, (int)n);
  CHECK(served >= systems / 10);
  reference_free(&r);
}

TEST(batch_hard, systems_of_the_gallery_end_as_by_hone_solve) {
  static const int64_t orders[] = {2, 5, 12, 24, 40};
  for (int o = 0; o < 5; o++)
    solve_gallery(1, orders[o]);
}

TEST(batch_hard, complex_systems_of_the_gallery_end_as_by_hone_solve) {
  static const int64_t orders[] = {2, 5, 12, 24};
  for (int o = 0; o < 4; o++)
    solve_gallery(2, orders[o]);
}

/* ---- Systems of one's own ----------------------------------------------- */

/* One condition for each system, from 1 to 1e17: the last of them are not
   accepted. */
TEST(batch_hard, systems_are_accepted_up_to_a_condition) {
  reference r = {0};
  for (int way = 0; way < 12; way++) {
    const int64_t n = way / 2 % 2 == 0 ? 6 : 20;
    const int mode = 2 + way / 4;
    const int parts = 1 + way % 2;
    bat t = bat_make(parts, 18, n, 1);
    ct_note("parts %d, n %d, mode %d", parts, (int)n, mode);
    for (int64_t k = 0; k < 18; k++) {
      sys s = sys_make_of(parts, n, 1);
      sys_set_cond(&s, (uint64_t)(k + 1), mode, pow(10.0, (double)k));
      memcpy(bat_a(&t, k), s.a, (size_t)(n * n * parts) * sizeof(double));
      sys_discard(&s);
    }
    check_hard(&t, &r);
    for (int64_t k = 0; k < 12; k++)
      CHECK_EQ_INT(t.results[k].status, HONE_OK);
    CHECK(t.results[17].status != HONE_OK);
    CHECK(bat_in_blocks(&t) >= 6);
    bat_discard(&t);
  }
  reference_free(&r);
}

/* Without pivoting the tiny entry spoils all digits. */
TEST(batch_hard, systems_may_have_tiny_pivots) {
  reference r = {0};
  for (int way = 0; way < 8; way++) {
    const int64_t n = 2 + 5 * (way / 2);
    bat t = bat_make(1 + way % 2, COUNT, n, 1);
    ct_note("parts %d, n %d", t.parts, (int)n);
    for (int64_t k = 0; k < COUNT; k++)
      for (int64_t i = 0; i < n; i++) {
        double *v = bat_entry(&t, k, i, i);
        v[0] = ldexp(1.0 + v[0], (int)(-10 * k));
        v[t.parts - 1] *= t.parts == 1 ? 1.0 : ldexp(1.0, (int)(-10 * k));
      }
    check_hard(&t, &r);
    for (int64_t k = 0; k < COUNT; k++)
      CHECK_EQ_INT(t.results[k].status, HONE_OK);
    CHECK_EQ_INT(bat_in_blocks(&t), COUNT);
    bat_discard(&t);
  }
  reference_free(&r);
}

/* b is made of columns of A: most entries of x are zero, and rows without any
   other entry are 0 = 0. */
TEST(batch_hard, solutions_may_have_zeros) {
  reference r = {0};
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, COUNT, 10, 2);
    ct_note("parts %d", parts);
    for (int64_t k = 0; k < COUNT; k++) {
      memcpy(bat_b(&t, k), bat_entry(&t, k, 0, k),
             (size_t)(10 * parts) * sizeof(double));
      memset(bat_b(&t, k) + 10 * parts, 0,
             (size_t)(10 * parts) * sizeof(double));
      bat_b(&t, k)[(10 + k) * parts] = 3.0;
      for (int64_t j = 0; j < 10 && k % 2 == 0; j++)
        for (int64_t i = 0; i < 10; i++)
          if ((i < 5) != (j < 5))
            memset(bat_entry(&t, k, i, j), 0, (size_t)parts * sizeof(double));
    }
    check_hard(&t, &r);
    bat_check(&t, t.report.status);
    bat_discard(&t);
  }
  reference_free(&r);
}

/* ---- x in the place of b ------------------------------------------------ */

/* Makes the block refuse right-hand side c of system k, which hone_solve
   solves: numbers beyond 2^400, or zeros. */
static void make_refused(bat *t, int64_t k, int64_t c, bool zero) {
  double *b = bat_b(t, k) + c * t->batch.ldb * t->parts;
  for (int64_t i = 0; i < t->batch.n * t->parts; i++)
    b[i] = zero ? 0.0 : ldexp(b[i], 500);
}

TEST(batch_in_place, x_may_be_b) {
  for (int way = 0; way < 12; way++) {
    const int parts = 1 + way % 2;
    const int refused = way / 2 % 3; /* none, huge, zero */
    const int64_t n = way < 6 ? 5 : 260;
    bat apart = bat_make_padded(parts, 11, n, 3, 1);
    ct_note("parts %d, refused %d, n %d", parts, refused, (int)n);
    apart.batch.ldx = apart.batch.ldb;
    apart.batch.stride_x = apart.batch.stride_b;
    for (int64_t k = 0; k < 11 && refused > 0; k += 2)
      make_refused(&apart, k, k % 3, refused == 2);
    CHECK_EQ_INT(bat_solve(&apart), HONE_OK);
    CHECK_EQ_INT(bat_in_blocks(&apart), n > 256 ? 0 : refused == 0 ? 11 : 5);
    for (int64_t k = 0; k < 11; k++)
      bat_check_alone(&apart, k);
    bat in = apart;
    const int64_t of_b = parts * 11 * in.batch.stride_b;
    double *b = sup_copy(in.b, of_b);
    in.batch.b = b;
    in.batch.x = b;
    in.b = b;
    CHECK_EQ_INT(bat_call(&in), HONE_OK);
    for (int64_t k = 0; k < 11; k++)
      for (int64_t c = 0; c < 3; c++) {
        const int64_t at = (k * in.batch.stride_b + c * in.batch.ldb) * parts;
        CHECK_MEM_EQ(b + at, apart.x + at,
                     (size_t)(n * parts) * sizeof(double));
        CHECK(isnan(b[at + n * parts])); /* the padding */
      }
    sup_free(b);
    bat_discard(&apart);
  }
}

/* A call that fails leaves b as it was. */
TEST(batch_in_place, b_stays_where_there_is_no_x) {
  for (int parts = 1; parts <= 2; parts++) {
    bat t = bat_make(parts, 9, 6, 2);
    for (int64_t k = 0; k < 9; k += 2)
      memset(bat_entry(&t, k, 0, 3), 0, (size_t)(6 * parts) * sizeof(double));
    double *before = sup_copy(t.b, parts * 9 * t.batch.stride_b);
    t.batch.x = t.b;
    CHECK_EQ_INT(bat_call(&t), HONE_SINGULAR);
    for (int64_t k = 0; k < 9; k++) {
      const size_t bytes = (size_t)(12 * parts) * sizeof(double);
      CHECK_EQ_INT(t.results[k].status, k % 2 == 0 ? HONE_SINGULAR : HONE_OK);
      CHECK_EQ_INT(memcmp(bat_b(&t, k), before + k * 12 * parts, bytes) == 0,
                   k % 2 == 0);
    }
    sup_free(before);
    bat_discard(&t);
  }
}
