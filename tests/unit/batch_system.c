/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/batch_system.h"

#include "tests/gallery/either.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Make --------------------------------------------------------------- */

/* Fills the matrix and the right-hand sides of one system. */
static void fill(const bat *t, int64_t k) {
  const hone_batch *b = &t->batch;
  const int parts = t->parts;
  sup_rng rng = {(uint64_t)(k + 100 * b->n + 7 * b->nrhs + parts)};
  double *a = bat_a(t, k), *side = bat_b(t, k);
  for (int64_t j = 0; j < b->n; j++)
    for (int64_t i = 0; i < b->n; i++)
      for (int p = 0; p < parts; p++)
        a[(i + j * b->lda) * parts + p] = sup_uniform(&rng);
  for (int64_t i = 0; i < b->n; i++)
    a[(i + (b->n - 1 - i) * b->lda) * parts] += 1.0 + sqrt((double)b->n);
  for (int64_t c = 0; c < b->nrhs; c++)
    for (int64_t i = 0; i < b->n * parts; i++)
      side[c * b->ldb * parts + i] = sup_uniform(&rng);
}

bat bat_make_padded(int parts, int64_t count, int64_t n, int64_t nrhs,
                    int64_t pad) {
  const int64_t ld = HONE_MAX((int64_t)1, n) + pad;
  bat t = {.parts = parts, .batch = HONE_BATCH_INIT};
  hone_batch *b = &t.batch;
  b->count = count, b->n = n, b->nrhs = nrhs;
  b->lda = ld, b->ldb = ld + pad, b->ldx = ld + 2 * pad;
  b->stride_a = b->lda * n + pad;
  b->stride_b = b->ldb * nrhs + pad;
  b->stride_x = b->ldx * nrhs + pad;
  b->a = t.a = sup_filled(parts * count * b->stride_a + 1, (double)NAN);
  b->b = t.b = sup_filled(parts * count * b->stride_b + 1, (double)NAN);
  b->x = t.x = sup_filled(parts * count * b->stride_x + 1, UNTOUCHED);
  for (int64_t k = 0; k < count; k++)
    fill(&t, k);
  t.results = calloc((size_t)count + 1, sizeof *t.results);
  t.columns = calloc((size_t)(count * nrhs) + 1, sizeof *t.columns);
  t.options = (hone_options)HONE_OPTIONS_INIT;
  t.options.device = HONE_DEVICE_CPU;
  t.options.columns = t.columns;
  t.report = (hone_report)HONE_REPORT_INIT;
  return t;
}

bat bat_make(int parts, int64_t count, int64_t n, int64_t nrhs) {
  return bat_make_padded(parts, count, n, nrhs, 0);
}

void bat_discard(bat *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
  free(t->results);
  free(t->columns);
}

/* ---- One system --------------------------------------------------------- */

int64_t bat_order(const bat *t, int64_t k) {
  return t->batch.orders ? t->batch.orders[k] : t->batch.n;
}

double *bat_a(const bat *t, int64_t k) {
  const hone_batch *b = &t->batch;
  return b->a_list ? (double *)(uintptr_t)b->a_list[k]
                   : t->a + k * b->stride_a * t->parts;
}

double *bat_b(const bat *t, int64_t k) {
  const hone_batch *b = &t->batch;
  return b->b_list ? (double *)(uintptr_t)b->b_list[k]
                   : t->b + k * b->stride_b * t->parts;
}

double *bat_x(const bat *t, int64_t k) {
  const hone_batch *b = &t->batch;
  return b->x_list ? b->x_list[k] : (double *)b->x + k * b->stride_x * t->parts;
}

double *bat_entry(const bat *t, int64_t k, int64_t i, int64_t j) {
  return bat_a(t, k) + (i + j * t->batch.lda) * t->parts;
}

void bat_make_definite(bat *t, int64_t k, double upper) {
  const int64_t n = t->batch.n;
  const int parts = t->parts;
  double *a = bat_a(t, k);
  double *v = calloc((size_t)(n * n * parts), sizeof *v);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t l = 0; l < n; l++) {
        const double *p = a + (i + l * n) * parts, *q = a + (j + l * n) * parts;
        double *to = v + (i + j * n) * parts;
        to[0] += p[0] * q[0];
        if (parts == 2) {
          to[0] += p[1] * q[1];
          to[1] += p[1] * q[0] - p[0] * q[1];
        }
      }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      for (int p = 0; p < parts; p++) {
        const int64_t at = (i + j * n) * parts + p;
        a[at] = v[at] / (double)n * (i < j ? upper : 1.0) +
                (i == j && p == 0 ? 2.0 : 0.0);
      }
  for (int64_t i = 0; i < n && parts == 2; i++)
    a[(i + i * n) * parts + 1] = 0.0;
  free(v);
}

int64_t bat_doubles(const bat *t) {
  return t->parts * t->batch.count * t->batch.stride_x;
}

/* ---- Calls -------------------------------------------------------------- */

int bat_call_with(int parts, const hone_batch *batch,
                  const hone_options *options, hone_batch_result *results,
                  hone_report *report) {
  hone_z_batch z;
  _Static_assert(sizeof z == sizeof *batch, "the members are the same");
  if (parts == 1)
    return hone_batch_solve(batch, options, results, report);
  if (batch == NULL)
    return hone_z_batch_solve(NULL, options, results, report);
  memcpy(&z, batch, sizeof z);
  return hone_z_batch_solve(&z, options, results, report);
}

int bat_call(bat *t) {
  const bool own_x = t->batch.x_list == NULL && t->batch.x == t->x;
  for (int64_t i = 0; own_x && i < bat_doubles(t); i++)
    t->x[i] = UNTOUCHED;
  return bat_call_with(t->parts, &t->batch, &t->options, t->results,
                       &t->report);
}

int bat_alone(const bat *t, int64_t k, double *x, hone_column *columns,
              hone_report *report) {
  const hone_batch *b = &t->batch;
  const either_call call = {.parts = t->parts,
                            .n = bat_order(t, k),
                            .nrhs = b->nrhs,
                            .a = bat_a(t, k),
                            .lda = b->lda,
                            .b = bat_b(t, k),
                            .ldb = b->ldb,
                            .x = x,
                            .ldx = b->ldx};
  hone_options o = t->options;
  o.columns = columns;
  o.column_size = sizeof *columns;
  o.deterministic = 1; /* so that the same kernels are not the judge */
  return either_call_solve(&call, &o, report);
}

/* Reads report.path, in which all systems must be. */
static bool read_path(const bat *t, int64_t *on_device, int64_t *in_blocks) {
  long long count = -1, there = 0, blocks = -1, alone = -1;
  if (sscanf(t->report.path,
             "batch of %lld: %lld on the device, %lld in blocks, %lld alone",
             &count, &there, &blocks, &alone) != 4) {
    there = 0;
    if (sscanf(t->report.path, "batch of %lld: %lld in blocks, %lld alone",
               &count, &blocks, &alone) != 3)
      return false;
  }
  *on_device = there;
  *in_blocks = blocks;
  return count == t->batch.count && there + blocks + alone == count;
}

int64_t bat_in_blocks(const bat *t) {
  int64_t on_device, in_blocks;
  return read_path(t, &on_device, &in_blocks) ? in_blocks : -1;
}

int64_t bat_on_device(const bat *t) {
  int64_t on_device, in_blocks;
  return read_path(t, &on_device, &in_blocks) ? on_device : -1;
}

/* ---- Errors ------------------------------------------------------------- */

double bat_omega(const bat *t, int64_t k, int64_t c, const double *x) {
  const int64_t n = bat_order(t, k), lda = t->batch.lda;
  const hone_options *o = &t->options;
  const bool turn =
      (o->layout == HONE_ROW_MAJOR) != (o->trans != HONE_NO_TRANS);
  const double *b = bat_b(t, k) + c * t->batch.ldb * t->parts;
  if (t->parts == 1)
    return sup_backward_error(n, bat_a(t, k), lda, turn, x, b);
  double *m = sup_filled(2 * n * n, 0.0);
  either_copy(2, n, bat_a(t, k), lda, turn, o->trans == HONE_CONJ_TRANS, m);
  const double omega = either_omega(2, n, m, x, b);
  sup_free(m);
  return omega * (1.0 - 1e-12); /* denominators were rounded */
}

double bat_largest(int parts, int64_t n, const double *v) {
  double most = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double size = either_size(parts, v + i * parts);
    most = size <= most ? most : size; /* takes NaN */
  }
  return most;
}

double bat_apart(int parts, int64_t n, const double *v, const double *w) {
  double most = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double d[2] = {v[i * parts] - w[i * parts],
                         v[i * parts + parts - 1] - w[i * parts + parts - 1]};
    const double size = either_size(parts, d);
    most = size <= most ? most : size;
  }
  return most;
}

/* ---- Checks ------------------------------------------------------------- */

/* The numbers of x of one system that are not to be written: all of them, or
   the padding between its columns. */
static bool is_untouched(const bat *t, int64_t k, bool all) {
  const int64_t n = all ? 0 : bat_order(t, k);
  const int64_t ldx = t->batch.ldx, parts = t->parts;
  bool untouched = true;
  for (int64_t c = 0; c < t->batch.nrhs; c++)
    untouched = untouched && sup_untouched(bat_x(t, k) + (c * ldx + n) * parts,
                                           (ldx - n) * parts, UNTOUCHED);
  return untouched;
}

static void check_column(const bat *t, int64_t k, int64_t c) {
  const hone_batch_result *r = &t->results[k];
  const hone_column *column = &t->columns[k * t->batch.nrhs + c];
  const double *x = bat_x(t, k) + c * t->batch.ldx * t->parts;
  const bool in_place = t->batch.x_list == NULL && t->batch.x == t->batch.b;
  CHECK(column->status >= 0);
  CHECK(r->status != HONE_OK || column->status == HONE_OK);
  CHECK(!(column->iterations > r->iterations));
  CHECK(!(column->digits < r->digits));
  CHECK(!(column->backward_error > r->backward_error));
  CHECK(!(column->normwise_error > r->normwise_error));
  CHECK(!(column->residual_error > r->residual_error));
  CHECK(!(column->forward_error > r->forward_error));
  if (column->status == HONE_OK && !in_place)
    CHECK_LE(bat_omega(t, k, c, x), SUP_LIMIT);
  if (column->status == HONE_OK) {
    CHECK_LE(column->backward_error, SUP_LIMIT);
    CHECK_LE(column->forward_error, 0.1);
    CHECK(column->digits >= 1);
  }
}

static void check_system(const bat *t, int64_t k) {
  const hone_batch_result *r = &t->results[k];
  const int64_t n = bat_order(t, k), nrhs = t->batch.nrhs;
  const bool in_place = t->batch.x_list == NULL && t->batch.x == t->batch.b;
  if (n <= 0 || (r->status < 0 && t->batch.ldx < n))
    return;
  CHECK(in_place || is_untouched(t, k, r->status < 0));
  if (r->status < 0) {
    CHECK(!isfinite(r->forward_error) && r->digits == 0);
    for (int64_t c = 0; c < nrhs && t->options.columns == t->columns; c++)
      CHECK(t->columns[k * nrhs + c].status < 0 &&
            isinf(t->columns[k * nrhs + c].forward_error));
    return;
  }
  for (int64_t c = 0; c < nrhs && t->options.columns == t->columns; c++)
    check_column(t, k, c);
  if (nrhs > 0 && r->status == HONE_OK) {
    CHECK(r->precision == 32 || r->precision == 64);
    CHECK_EQ_INT(r->row, -1);
    CHECK_EQ_INT(r->col, -1);
    CHECK(r->rcond > 0.0 && r->rcond <= 1.0 + 1e-9);
  }
}

/* The right-hand sides of system k that are accepted, as far as columns say. */
static int64_t accepted_of(const bat *t, int64_t k) {
  const int64_t nrhs = t->batch.nrhs;
  const int status = t->results[k].status;
  int64_t accepted = status == HONE_OK ? nrhs : 0;
  for (int64_t c = 0;
       c < nrhs && status > 0 && t->options.columns == t->columns; c++)
    accepted += t->columns[k * nrhs + c].status == HONE_OK;
  return accepted;
}

static void check_report(const bat *t, int st) {
  const hone_report *p = &t->report;
  int64_t accepted = 0;
  int worst = HONE_OK;
  double forward = 0.0, backward = 0.0;
  for (int64_t k = 0; k < t->batch.count; k++) {
    const hone_batch_result *r = &t->results[k];
    accepted += accepted_of(t, k);
    if (worst == HONE_OK || (worst > 0 && r->status < 0))
      worst = r->status;
    if (r->status >= 0) {
      forward = fmax(forward, r->forward_error);
      backward = fmax(backward, r->backward_error);
      CHECK(p->digits <= r->digits);
      CHECK(!(p->rcond > r->rcond));
    }
  }
  CHECK_EQ_INT(st, worst);
  CHECK_EQ_INT(p->status, worst);
  CHECK_EQ_INT(p->accepted, accepted);
  CHECK_EQ_INT(p->nrhs, t->batch.nrhs);
  CHECK_NEAR(p->forward_error, forward, 0.0);
  CHECK_NEAR(p->backward_error, backward, 0.0);
  CHECK((p->reason[0] != '\0') == (worst != HONE_OK));
}

void bat_check(const bat *t, int st) {
  for (int64_t k = 0; k < t->batch.count; k++)
    check_system(t, k);
  check_report(t, st);
}

int bat_solve(bat *t) {
  const int st = bat_call(t);
  bat_check(t, st);
  return st;
}

/* The report of hone_solve for system k, which was solved into x. */
static void check_alike(const bat *t, int64_t k, const hone_column *columns,
                        const double *x) {
  const hone_batch *b = &t->batch;
  const int64_t n = bat_order(t, k);
  for (int64_t c = 0; c < b->nrhs; c++) {
    const hone_column *mine = &t->columns[k * b->nrhs + c];
    const double *own = bat_x(t, k) + c * b->ldx * t->parts;
    const double *other = x + c * b->ldx * t->parts;
    CHECK_EQ_INT(mine->status, columns[c].status);
    if (mine->status == HONE_OK)
      CHECK_LE(bat_apart(t->parts, n, own, other),
               mine->forward_error * bat_largest(t->parts, n, own) +
                   columns[c].forward_error * bat_largest(t->parts, n, other));
  }
}

void bat_check_alone(const bat *t, int64_t k) {
  const hone_batch *b = &t->batch;
  const hone_batch_result *r = &t->results[k];
  const int64_t doubles = t->parts * b->ldx * b->nrhs;
  double *x = sup_filled(doubles + 1, UNTOUCHED);
  hone_column *columns = calloc((size_t)b->nrhs + 1, sizeof *columns);
  hone_report report = HONE_REPORT_INIT;
  const int st = bat_alone(t, k, x, columns, &report);
  CHECK_EQ_INT(r->status, st);
  if (st == HONE_NOT_FINITE_A || st == HONE_NOT_FINITE_B) {
    CHECK_EQ_INT(r->row, report.bad_row);
    CHECK_EQ_INT(r->col, report.bad_col);
  } else if (st == HONE_SINGULAR) {
    CHECK_EQ_INT(r->row, report.bad_row >= 0 || report.bad_col >= 0
                             ? report.bad_row
                             : report.min_pivot_row);
    CHECK_EQ_INT(r->col, report.bad_row >= 0 || report.bad_col >= 0
                             ? report.bad_col
                             : report.min_pivot_col);
  }
  if (st >= 0 && r->status == st)
    check_alike(t, k, columns, x);
  if (st == HONE_OK && report.rcond > 0.0) {
    CHECK_LE(r->rcond, 10.0 * report.rcond);
    CHECK_LE(report.rcond, 10.0 * r->rcond);
  }
  free(columns);
  sup_free(x);
}

/* ---- Claims ------------------------------------------------------------- */

static bool is_trusted(const reference *r) {
  return r->state == REFERENCE_DOUBLE || r->state == REFERENCE_DOUBLE_DOUBLE;
}

static void check_accepted(const bat *t, int64_t k, int64_t c, bool sparse,
                           const double *x) {
  const hone_batch *b = &t->batch;
  const double *side = bat_b(t, k) + c * b->ldb * t->parts;
  CHECK_LE(t->columns[k * b->nrhs + c].forward_error, 0.1);
  CHECK_LE(
      either_sparse_omega(t->parts, b->n, bat_a(t, k), bat_a(t, k), x, side),
      SUP_LIMIT);
  if (!sparse)
    CHECK_LE(bat_omega(t, k, c, x), SUP_LIMIT);
}

void bat_check_claims(const bat *t, int64_t k, bool sparse, reference *r) {
  const hone_batch *b = &t->batch;
  either_solve(r, t->parts, b->n, b->nrhs, bat_a(t, k), bat_b(t, k));
  for (int64_t c = 0; c < b->nrhs; c++) {
    const hone_column *column = &t->columns[k * b->nrhs + c];
    const double *x = bat_x(t, k) + c * b->ldx * t->parts;
    if (column->status < 0 || t->results[k].status < 0)
      continue;
    if (column->status == HONE_OK) {
      CHECK(r->state != REFERENCE_SINGULAR);
      check_accepted(t, k, c, sparse, x);
    }
    if (is_trusted(r) && isfinite(column->forward_error))
      CHECK_LE((double)either_distance(r, t->parts, c, x) - 1.5 * r->error[c],
               column->forward_error);
  }
}
