/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of systems whose rows and columns have units up to the ends of the
   range of double, and right-hand sides that are far larger or smaller than the
   matrix: what blocks, or a device, do not serve is solved alone, and no error
   that is reported is below the true one. */
#include "tests/gallery/either.h"
#include "tests/unit/batch_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Has the precision and the range that products of doubles need. */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide;
#else
typedef long double wide;
#endif

enum { COUNT = 9 };

/* ---- True errors --------------------------------------------------------- */

/* b - A x and (|A| |x| + |b|)^2 of row i of system k; r: its parts. */
static wide residual_of(const bat *t, int64_t k, int64_t i, wide *r) {
  const int64_t n = t->batch.n, p = t->parts;
  const double *b = bat_b(t, k) + i * p, *x = bat_x(t, k);
  wide den = (wide)either_size(t->parts, b);
  r[0] = (wide)b[0];
  r[1] = p == 2 ? (wide)b[1] : (wide)0;
  for (int64_t j = 0; j < n; j++) {
    const double *a = bat_entry(t, k, i, j), *y = x + j * p;
    den += (wide)either_size(t->parts, a) * (wide)either_size(t->parts, y);
    r[0] -= (wide)a[0] * (wide)y[0];
    if (p == 2) {
      r[0] += (wide)a[1] * (wide)y[1];
      r[1] -= (wide)a[0] * (wide)y[1] + (wide)a[1] * (wide)y[0];
    }
  }
  return den * den;
}

/* Are the errors of system k, of one right-hand side, those of its x? In blocks
   they are not much larger either. */
static void check_errors(const bat *t, int64_t k) {
  const hone_batch_result *result = &t->results[k];
  const wide omega = (wide)result->backward_error;
  const wide error = (wide)result->residual_error;
  const wide above = (wide)(1.0 + 1e-9),
             exact = (wide)1e-60; /* 1e-30 is no error */
  wide most = 0, of_b = 0;
  CHECK_EQ_INT(result->status, HONE_OK);
  for (int64_t i = 0; i < t->batch.n; i++) {
    wide r[2];
    const wide den = residual_of(t, k, i, r);
    const wide size = (wide)either_size(t->parts, bat_b(t, k) + i * t->parts);
    const wide square = r[0] * r[0] + r[1] * r[1];
    CHECK(square <= (omega * omega * above + exact) * den);
    most = square <= most ? most : square;
    of_b = size <= of_b ? of_b : size;
  }
  CHECK(most <= (error * error * above + exact) * of_b * of_b);
}

/* ---- Right-hand sides ---------------------------------------------------- */

/* A becomes 2^rows A, and b 2^(rows + size) b. */
static void set_sizes(const bat *t, int64_t k, int rows, int size) {
  const int64_t n = t->batch.n, p = t->parts;
  for (int64_t i = 0; i < n * n * p; i++)
    bat_a(t, k)[i] = ldexp(bat_a(t, k)[i], rows);
  for (int64_t i = 0; i < n * p; i++)
    bat_b(t, k)[i] = ldexp(bat_b(t, k)[i], rows + size);
}

static void solve_sizes(int parts, int device) {
  static const int64_t orders[] = {1, 2, 5, 12, 33, 101};
  for (int o = 0; o < (device == HONE_DEVICE_CPU ? 6 : 5); o++)
    for (int rows = -280; rows <= 280; rows += 140) {
      bat t = bat_make(parts, COUNT, orders[o], 1);
      ct_note("parts %d, n %d, A times 2^%d", parts, (int)orders[o], rows);
      t.options.device = device;
      for (int64_t k = 0; k < COUNT; k++)
        set_sizes(&t, k, rows, (int)(90 * k - 360));
      CHECK_EQ_INT(bat_call(&t), HONE_OK);
      CHECK_EQ_INT(device == HONE_DEVICE_CUDA ? bat_on_device(&t)
                                              : bat_in_blocks(&t),
                   COUNT);
      for (int64_t k = 0; k < COUNT; k++) {
        check_errors(&t, k);
        CHECK_LE(t.results[k].residual_error, 1e-13);
      }
      bat_discard(&t);
    }
}

/* The square of b was beyond double, or 0, and the error of the residual 0, or
   Inf. */
TEST(batch_units, residual_errors_hold_for_right_hand_sides_of_any_size) {
  for (int parts = 1; parts <= 2; parts++)
    solve_sizes(parts, HONE_DEVICE_CPU);
}

TEST(batch_units, residual_errors_of_a_device_hold_for_b_of_any_size) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++)
    solve_sizes(parts, HONE_DEVICE_CUDA);
}

/* Rows 0 and 1 make an x_1 of 2^-250, of which the other rows, which are dense,
   make entries of 2^-500. */
static void make_chain(const bat *t, int64_t k) {
  const int64_t n = t->batch.n, p = t->parts;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      if (i < 2 || j < 2) {
        double *a = bat_entry(t, k, i, j);
        a[0] = i == j ? 1.0 : j < 2 && i == j + 1 ? 0x1p-250 : 0.0;
        a[p - 1] = p == 2 ? 0.0 : a[0];
      }
  memset(bat_b(t, k), 0, (size_t)(n * p) * sizeof(double));
  bat_b(t, k)[0] = 1.0;
}

static void solve_chains(int parts, int device) {
  const int64_t most = device == HONE_DEVICE_CPU ? 100 : 20;
  for (int64_t n = 4; n <= most; n += n < 20 ? 4 : 80) {
    bat t = bat_make(parts, COUNT, n, 1);
    ct_note("parts %d, n %d", parts, (int)n);
    t.options.device = device;
    for (int64_t k = 0; k < COUNT; k++)
      make_chain(&t, k);
    CHECK_EQ_INT(bat_call(&t), HONE_OK);
    for (int64_t k = 0; k < COUNT; k++)
      check_errors(&t, k);
    bat_discard(&t);
  }
}

/* The squares of complex residuals of such rows were 0, and so their backward
   errors. */
TEST(batch_units, backward_errors_count_rows_of_small_numbers) {
  for (int parts = 1; parts <= 2; parts++)
    solve_chains(parts, HONE_DEVICE_CPU);
}

TEST(batch_units, backward_errors_of_a_device_count_rows_of_small_numbers) {
  NEED_DEVICE();
  for (int parts = 1; parts <= 2; parts++)
    solve_chains(parts, HONE_DEVICE_CUDA);
}

/* ---- Units --------------------------------------------------------------- */

/* Units of rows and of columns alternate: 2^size, 2^-size. */
typedef struct units {
  int rows, columns;
} units;

static const units both_units[] = {{0, 250},   {-140, 140}, {720, 0},
                                   {0, 720},   {300, -720}, {1000, 0},
                                   {0, -1000}, {500, 500},  {-900, 100}};

static int unit(int64_t i, int size) { return i % 2 ? -size : size; }

/* A becomes D1 A D2, and b D1 b or, with A^T, D2 b. */
static void set_units(const bat *t, int64_t k, const units *u) {
  const int64_t n = t->batch.n, p = t->parts;
  const int of_b = t->options.trans ? u->columns : u->rows;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n * p; i++) {
      double *a = bat_entry(t, k, 0, j) + i;
      *a = ldexp(*a, unit(i / p, u->rows) + unit(j, u->columns));
    }
  for (int64_t i = 0; i < n * p; i++)
    bat_b(t, k)[i] = ldexp(bat_b(t, k)[i], unit(i / p, of_b));
}

/* Is the x of system k the solution in these units of that without them? */
static void check_solution(const bat *t, int64_t k, const units *u,
                           const double *plain) {
  const int64_t n = t->batch.n, p = t->parts;
  const int of_x = t->options.trans ? u->rows : u->columns;
  double size = 0.0, error = 0.0;
  for (int64_t i = 0; i < n * p; i++) {
    const double x = ldexp(bat_x(t, k)[i], unit(i / p, of_x));
    const double miss = fabs(x - plain[i]);
    size = fmax(size, fabs(plain[i]));
    error = miss <= error ? error : miss; /* takes NaN */
  }
  CHECK_EQ_INT(t->results[k].status, HONE_OK);
  CHECK_LE(error, 1e-13 * size);
  CHECK_LE(t->results[k].forward_error, 1e-12);
  CHECK_GE(t->results[k].rcond, 0.0);
}

/* Every system has other units, those of the last ones being none. */
static void solve_units(bat *t) {
  CHECK_EQ_INT(bat_call(t), HONE_OK);
  double *plain = sup_copy(t->x, bat_doubles(t));
  double *sums = sup_filled(COUNT, 0.0);
  for (int64_t k = 0; k < COUNT; k++) {
    const units *u = &both_units[k];
    sums[k] = t->results[k].log_abs_det;
    for (int64_t i = 0; i < t->batch.n; i++)
      sums[k] += log(2.0) * (unit(i, u->rows) + unit(i, u->columns));
    set_units(t, k, u);
  }
  CHECK_EQ_INT(bat_call(t), HONE_OK);
  for (int64_t k = 0; k < COUNT; k++) {
    ct_note("parts %d, n %d, trans %d, units of rows 2^%d, columns 2^%d",
            t->parts, (int)t->batch.n, t->options.trans, both_units[k].rows,
            both_units[k].columns);
    check_solution(t, k, &both_units[k], plain + (bat_x(t, k) - t->x));
    CHECK_NEAR(t->results[k].log_abs_det, sums[k], 1e-11);
  }
  sup_free(plain);
  sup_free(sums);
}

static void solve_all_units(int device, int64_t step) {
  _Static_assert(sizeof both_units == COUNT * sizeof *both_units,
                 "each system has units");
  for (int parts = 1; parts <= 2; parts++)
    for (int64_t n = 1; n <= 40; n += n < 12 ? step : 13)
      for (int trans = 0; trans < 2; trans++) {
        bat t = bat_make(parts, COUNT, n, 1);
        t.options.device = device;
        t.options.trans = trans;
        t.batch.determinants = 1;
        solve_units(&t);
        bat_discard(&t);
      }
}

TEST(batch_units, units_of_rows_and_columns_change_no_solution) {
  solve_all_units(HONE_DEVICE_CPU, 1);
}

TEST(batch_units, units_change_no_solution_of_a_device) {
  NEED_DEVICE();
  solve_all_units(HONE_DEVICE_CUDA, 4);
}
