/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of systems that a CUDA device, true or emulated, solves by panels:
   every answer is that of hone_solve. */
#include "tests/gallery/either.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/wrapped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bat make(int parts, int64_t count, int64_t n, int64_t nrhs) {
  bat t = bat_make(parts, count, n, nrhs);
  t.options.device = HONE_DEVICE_CUDA;
  ct_note("parts %d, n %d, nrhs %d, count %d", parts, (int)n, (int)nrhs,
          (int)count);
  return t;
}

/* The result of system k is that of hone_solve on the CPU. */
static void check_alone(bat *t, int64_t k) {
  t->options.device = HONE_DEVICE_CPU;
  bat_check_alone(t, k);
  t->options.device = HONE_DEVICE_CUDA;
}

/* Every system must be accepted, and all of them on the device. */
static void check_solved(bat *t) {
  CHECK_EQ_INT(bat_solve(t), HONE_OK);
  CHECK_EQ_INT(bat_on_device(t), t->batch.count);
}

/* Orders at which panels and the rows of threads are full, or have a rest. */
static void solve_orders(int parts, int count, const int64_t *orders) {
  for (int o = 0; o < count; o++) {
    bat t = make(parts, 3, orders[o], 1 + o % 2);
    check_solved(&t);
    check_alone(&t, o % 3);
    bat_discard(&t);
  }
}

TEST(batch_panels, solve_every_order) {
  NEED_DEVICE();
  solve_orders(1, 9,
               (const int64_t[]){129, 159, 160, 255, 256, 257, 300, 512, 513});
}

TEST(batch_panels, solve_every_order_of_complex_systems) {
  NEED_DEVICE();
  solve_orders(
      2, 11,
      (const int64_t[]){33, 40, 63, 64, 65, 81, 127, 128, 129, 200, 257});
}

/* Columns in units of 2^260 and 2^-260: what is accepted has an rcond of that
   size, though the squares of a solution's numbers are out of range. */
TEST(batch_panels, tell_the_condition_of_columns_in_distant_units) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 3, parts == 1 ? 131 : 70, 1);
    const int64_t n = t.batch.n;
    for (int64_t k = 0; k < 3; k++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          for (int p = 0; p < parts; p++) {
            double *v = bat_entry(&t, k, i, j) + p;
            *v = ldexp(*v, j % 3 == k ? -260 : 260);
          }
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    for (int64_t k = 0; k < 3; k++) {
      CHECK_LE(t.results[k].rcond, 0x1p-500);
      CHECK_LT(0.0, t.results[k].rcond);
    }
    bat_discard(&t);
  }
}

/* Layouts, transposition and conjugation, leading dimensions above n, and
   systems that need to be scaled: rows and columns that differ by powers of two
   up to 2^40. */
TEST(batch_panels, take_every_layout_and_scale) {
  NEED_DEVICE();
  for (int way = 0; way < 24; way++) {
    const int parts = 1 + way / 12;
    bat t = bat_make_padded(parts, 2, parts == 1 ? 139 : 75, 2, 3 * (way % 2));
    const int64_t n = t.batch.n;
    t.options.device = HONE_DEVICE_CUDA;
    t.options.trans = way % 3;
    t.options.layout = way / 3 % 2;
    ct_note("parts %d, trans %d, layout %d, scaled %d", t.parts,
            t.options.trans, t.options.layout, way / 6 % 2);
    for (int64_t k = 0; k < 2 && way / 6 % 2; k++)
      for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
          for (int p = 0; p < parts; p++) {
            double *v = bat_entry(&t, k, i, j) + p;
            *v = ldexp(*v, (int)((i * 37 + k) % 41 - 20) + (int)(j * 29 % 9));
          }
    check_solved(&t);
    check_alone(&t, 0);
    check_alone(&t, 1);
    bat_discard(&t);
  }
}

/* ---- Systems that fail -------------------------------------------------- */

/* No bound may be below the error, and no singular matrix accepted. */
static void check_claims(const bat *t, int64_t k, reference *r) {
  const hone_batch *b = &t->batch;
  either_solve(r, t->parts, b->n, b->nrhs, bat_a(t, k), bat_b(t, k));
  for (int64_t c = 0; c < b->nrhs; c++) {
    const hone_column *column = &t->columns[k * b->nrhs + c];
    const double *x = bat_x(t, k) + c * b->ldx * t->parts;
    if (column->status < 0 || t->results[k].status < 0)
      continue;
    if (column->status == HONE_OK) {
      CHECK(r->state != REFERENCE_SINGULAR);
      CHECK_LE(either_sparse_omega(t->parts, b->n, bat_a(t, k), bat_a(t, k), x,
                                   bat_b(t, k) + c * b->ldb * t->parts),
               SUP_LIMIT);
    }
    if ((r->state == REFERENCE_DOUBLE || r->state == REFERENCE_DOUBLE_DOUBLE) &&
        isfinite(column->forward_error))
      CHECK_LE((double)either_distance(r, t->parts, c, x) - 1.5 * r->error[c],
               column->forward_error);
  }
}

/* One condition for each system, from 1 to 1e16. With one correction allowed
   the first x must not be taken for a good one. */
TEST(batch_panels, accept_systems_up_to_a_condition) {
  NEED_DEVICE();
  reference r = {0};
  for (int way = 0; way < 4; way++) {
    const int parts = 1 + way % 2;
    const int64_t n = parts == 1 ? 130 : 66;
    bat t = make(parts, 9, n, 1);
    const size_t bytes = (size_t)(n * n * parts) * sizeof(double);
    t.options.max_iterations = way / 2;
    for (int64_t k = 0; k < 9; k++) {
      sys s = sys_make_of(parts, n, 1);
      sys_set_cond(&s, (uint64_t)(k + 1), 3, pow(10.0, 2.0 * (double)k));
      memcpy(bat_a(&t, k), s.a, bytes);
      sys_discard(&s);
    }
    bat_check(&t, bat_call(&t));
    CHECK_GE(bat_on_device(&t), t.options.max_iterations == 1 ? 1 : 5);
    CHECK_LE(bat_on_device(&t), 8);
    for (int64_t k = 0; k < 9; k++)
      check_claims(&t, k, &r);
    bat_discard(&t);
  }
  reference_free(&r);
}

/* Partial pivoting lets the entries of these matrices grow by a factor of
   2^(6 k) (Wilkinson 1965), although they are well conditioned: E grows with
   them. From where ||E|| is not small on, the device must leave them. */
TEST(batch_panels, leave_systems_whose_factors_have_grown) {
  NEED_DEVICE();
  reference r = {0};
  bat t = make(1, 11, 130, 1);
  for (int64_t k = 0; k < 11; k++) {
    const double below = exp2(6.0 * (double)k / 128.0) - 1.0;
    for (int64_t j = 0; j < 130; j++)
      for (int64_t i = 0; i < 130; i++)
        *bat_entry(&t, k, i, j) = i == j || j == 129 ? 1.0
                                  : i > j            ? -below
                                                     : 0.0;
  }
  bat_check(&t, bat_call(&t));
  CHECK_GE(bat_on_device(&t), 5);
  CHECK_LE(bat_on_device(&t), 9);
  for (int64_t k = 0; k < 11; k++)
    check_claims(&t, k, &r);
  bat_discard(&t);
  reference_free(&r);
}

static void spoil(bat *t, int64_t k) {
  const size_t column = (size_t)(t->batch.n * t->parts) * sizeof(double);
  if (k == 1)
    *bat_entry(t, k, 2, 133 % t->batch.n) = (double)NAN;
  if (k == 3)
    memset(bat_entry(t, k, 0, 50), 0, column);
  if (k == 4)
    bat_b(t, k)[1] = HUGE_VAL;
  if (k == 5)
    memcpy(bat_entry(t, k, 0, 1), bat_entry(t, k, 0, 40), column);
  if (k == 6)
    memset(bat_b(t, k), 0, column);
}

TEST(batch_panels, leave_the_neighbours_of_bad_systems_alone) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 8, parts == 1 ? 150 : 70, 1);
    const size_t bytes = (size_t)bat_doubles(&t) * sizeof(double);
    const int64_t each = t.batch.n * parts;
    t.options.deterministic = 1;
    check_solved(&t);
    double *good = malloc(bytes);
    memcpy(good, t.x, bytes);
    for (int64_t k = 0; k < 8; k++)
      spoil(&t, k);
    CHECK_EQ_INT(bat_solve(&t), HONE_NOT_FINITE_A);
    for (int64_t k = 0; k < 8; k++) {
      const bool bad = k == 1 || (k >= 3 && k <= 5);
      CHECK_EQ_INT(t.results[k].status < 0 || t.results[k].status > 0, bad);
      check_alone(&t, k);
      if (!bad && k != 6)
        CHECK_MEM_EQ(bat_x(&t, k), good + k * each,
                     (size_t)each * sizeof *good);
    }
    free(good);
    bat_discard(&t);
  }
}

TEST(batch_panels, find_determinants) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++) {
    bat t = make(parts, 2, parts == 1 ? 171 : 67, 1);
    hone_batch_result there[2];
    t.batch.determinants = 1;
    for (int64_t j = 0; j < t.batch.n; j++)
      *bat_entry(&t, 1, 0, j) *= 1024.0; /* one that is scaled */
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 2);
    memcpy(there, t.results, sizeof there);
    t.options.device = HONE_DEVICE_CPU;
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    for (int64_t k = 0; k < 2; k++) {
      const hone_batch_result *v = &there[k], *w = &t.results[k];
      CHECK_NEAR(v->log_abs_det, w->log_abs_det,
                 1e-12 * (1.0 + fabs(w->log_abs_det)));
      CHECK_NEAR(v->det_re, w->det_re, 1e-12);
      CHECK_NEAR(v->det_im, w->det_im, 1e-12);
    }
    bat_discard(&t);
  }
}

/* Devices of other kinds have less shared memory than an inverse takes: the
   emulated one is given so many KiB. */
TEST(batch_panels, serve_where_shared_memory_is_small) {
  NEED_DEVICE();
  static const int64_t orders[] = {70, 100, 128};
  if (!sup_emulated())
    SKIP("shared memory cannot be taken from a true device");
  for (int way = 0; way < 14; way++) {
    const bool complex = way / 2 == 6;
    bat t = make(1 + complex, 3, complex ? 50 : orders[way / 2 % 3], 1);
    if (way / 2 % 6 > 2) {
      t.options.structure = HONE_STRUCTURE_SPD;
      for (int64_t k = 0; k < 3; k++)
        bat_make_definite(&t, k, 1.0);
    }
    setenv("HONE_EMULATE_SHARED", way % 2 == 0 ? "99" : "163", 1);
    check_solved(&t);
    unsetenv("HONE_EMULATE_SHARED");
    check_alone(&t, 1);
    bat_discard(&t);
  }
}

/* Complex arrays on a device that begin at an odd multiple of 8 bytes, where
   kernels cannot load whole entries. */
TEST(batch_panels, leave_arrays_that_are_not_aligned) {
  NEED_DEVICE();
  static const int64_t orders[] = {8, 40, 70};
  device_begin();
  for (int way = 0; way < 9; way++) {
    bat t = make(2, 3, orders[way / 3], 1);
    const int64_t a = t.batch.n * t.batch.n * 6, b = t.batch.n * 6;
    double *there = device_alloc(a + 2 * b + 3);
    double *at[3] = {there, there + a, there + a + b};
    for (int k = way % 3; k < 3; k++)
      at[k]++;
    device_put(at[0], t.a, (size_t)a * sizeof(double));
    device_put(at[1], t.b, (size_t)b * sizeof(double));
    hone_batch batch = t.batch;
    batch.a = at[0];
    batch.b = at[1];
    batch.x = at[2];
    t.options.columns = NULL;
    CHECK_EQ_INT(bat_call_with(2, &batch, &t.options, t.results, &t.report),
                 HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), 0);
    device_get(t.x, at[2], (size_t)b * sizeof(double));
    for (int64_t k = 0; k < 3; k++)
      CHECK_LE(bat_omega(&t, k, 0, bat_x(&t, k)), SUP_LIMIT);
    device_free(there);
    bat_discard(&t);
  }
  device_end();
}

/* ---- Definite matrices by claim ----------------------------------------- */

/* Scales rows and columns by powers of two up to 2^15. */
static void scale_symmetrically(bat *t, int64_t k) {
  const int64_t n = t->batch.n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      for (int p = 0; p < t->parts; p++) {
        double *v = bat_a(t, k) + (i + j * n) * t->parts + p;
        *v = ldexp(*v, (int)(i * 7 % 16 + j * 7 % 16));
      }
}

TEST(batch_panels, solve_definite_systems_by_claim) {
  NEED_DEVICE();
  static const int64_t orders[] = {1, 33, 64, 65, 97, 128, 129, 144, 257, 520};
  for (int way = 0; way < 20; way++) {
    bat t = make(1 + way % 2, 2, orders[way / 2], 2);
    t.options.structure = HONE_STRUCTURE_SPD;
    bat_make_definite(&t, 0, 1.0);
    bat_make_definite(&t, 1, 1.0);
    scale_symmetrically(&t, 1);
    check_solved(&t);
    check_alone(&t, 0);
    check_alone(&t, 1);
    bat_discard(&t);
  }
}

/* The unit matrix but for 15 entries of -4 above its diagonal. */
static void make_ill_by_rows(bat *t, int64_t k) {
  const int64_t n = t->batch.n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double *v = bat_entry(t, k, i, j);
      v[0] = i == j ? 1.0 : j == i + 1 && i < 15 ? -4.0 : 0.0;
      if (t->parts == 2)
        v[1] = 0.0;
    }
}

/* Only factors without pivoting are refused: the system is solved by itself.
   The inverse of a small one is that of all of A, whose triangles need not be
   alike, and of a complex one it needs no claim. 0: the upper triangle is
   another one; 1: a diagonal entry is negative; 2: a matrix that is indefinite
   inside; 3: the upper triangle of one diagonal block is another one, by which
   the condition is 1e10. */
TEST(batch_panels, notice_wrong_claims) {
  NEED_DEVICE();
  static const int64_t orders[] = {30, 60, 90, 125, 135};
  for (int way = 0; way < 40; way++) {
    bat t = make(1 + way % 2, 2, orders[way / 8], 1);
    const int64_t n = t.batch.n;
    const int what = way / 2 % 4;
    const bool by_panels = n > (t.parts == 1 ? 128 : 64);
    const bool shows = by_panels || (t.parts == 1 && (what == 1 || what == 2));
    t.options.structure = HONE_STRUCTURE_SPD;
    bat_make_definite(&t, 0, what == 0 ? 0.5 : 1.0);
    bat_make_definite(&t, 1, 1.0);
    if (what == 1)
      *bat_entry(&t, 0, n - 1, n - 1) = -3.0;
    if (what == 2)
      *bat_entry(&t, 0, n - 1, 0) = *bat_entry(&t, 0, 0, n - 1) = 9.0;
    if (what == 3)
      make_ill_by_rows(&t, 0);
    CHECK_EQ_INT(bat_solve(&t), HONE_OK);
    CHECK_EQ_INT(bat_on_device(&t), shows ? 1 : 2);
    check_alone(&t, 0);
    check_alone(&t, 1);
    bat_discard(&t);
  }
}

/* Gaussian kernels at places 1 / n apart, the wider the larger k is, with 1e-3
   to 1e-10 added to the diagonal. */
static void make_kernel(bat *t, int64_t k) {
  const int64_t n = t->batch.n;
  const double width = 0.02 * (double)(1 + k % 5);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double d = (double)(i - j) / (double)n / width;
      *bat_entry(t, k, i, j) =
          exp(-d * d) + (i == j ? pow(10.0, -3.0 - (double)(k % 8)) : 0.0);
    }
}

/* Their diagonal blocks are nearly singular, and the device solves those that
   its certificate allows: no error is above its bound. */
TEST(batch_panels, bound_the_errors_of_kernels) {
  NEED_DEVICE();
  reference judge = {0};
  for (int definite = 0; definite < 2; definite++) {
    bat t = make(1, 40, 131, 1);
    t.options.structure = definite ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
    for (int64_t k = 0; k < 40; k++)
      make_kernel(&t, k);
    (void)bat_solve(&t);
    CHECK_GE(bat_on_device(&t), 5);
    for (int64_t k = 0; k < 40; k++) {
      if (t.results[k].status != HONE_OK)
        continue;
      ct_note("definite %d, system %d", definite, (int)k);
      reference_solve(&judge, 131, 1, bat_a(&t, k), t.batch.lda, bat_b(&t, k),
                      t.batch.ldb);
      CHECK(judge.state <= REFERENCE_DOUBLE_DOUBLE);
      CHECK_LE((double)reference_distance(&judge, 0, bat_x(&t, k), true),
               t.results[k].forward_error + judge.error[0]);
    }
    bat_discard(&t);
  }
  reference_free(&judge);
}

/* The largest orders, of which fewer fit into the memory of a portion. */
TEST(batch_panels, solve_the_largest_systems) {
  NEED_DEVICE();
  for (int way = 0; way < 3; way++) {
    static const int64_t orders[] = {1023, 530, 1024};
    bat t = make(1 + way % 2, 1, orders[way], 1);
    check_solved(&t);
    bat_discard(&t);
  }
}
