/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the arrays that a call is given. */
#include "api/arguments.h"

/* Bytes from the first to the last element of a matrix; -1: too many. */
static int64_t extent(int64_t rows, int64_t columns, int64_t ld) {
  const int64_t most = INT64_MAX / 16;
  int64_t bytes = -1;
  if (rows == 0 || columns == 0)
    bytes = 0;
  else if (columns - 1 <= (most - rows) / ld)
    bytes = ((columns - 1) * ld + rows) * (int64_t)sizeof(double);
  return bytes;
}

int hone_check_matrix(int64_t n, int64_t columns, const double *a,
                      int64_t lda) {
  int st = HONE_OK;
  if (lda < HONE_MAX((int64_t)1, n) || extent(n, columns, lda) < 0)
    st = HONE_BAD_LEADING_DIMENSION;
  else if (a == NULL && n > 0 && columns > 0)
    st = HONE_NULL_POINTER;
  return st;
}

static bool overlap(const double *a, int64_t a_bytes, const double *b,
                    int64_t b_bytes) {
  uintptr_t a0 = (uintptr_t)a, b0 = (uintptr_t)b;
  return a0 < b0 + (uintptr_t)b_bytes && b0 < a0 + (uintptr_t)a_bytes;
}

/* x may be b (or x0) itself, each column in the place of the same column; any
   other overlap is an error. */
static bool clashes(const hone_vectors *v, const double *b, int64_t ldb) {
  const bool same = v->x == b && (v->ldx == ldb || v->nrhs == 1);
  return b != NULL && !same &&
         overlap(v->x, extent(v->n, v->nrhs, v->ldx), b,
                 extent(v->n, v->nrhs, ldb));
}

int hone_check_vectors(const hone_vectors *v) {
  int st = v->nrhs < 0 ? HONE_BAD_SIZE : HONE_OK;
  if (st == HONE_OK)
    st = hone_check_matrix(v->n, v->nrhs, v->b, v->ldb);
  if (st == HONE_OK)
    st = hone_check_matrix(v->n, v->nrhs, v->x, v->ldx);
  if (st == HONE_OK && v->x0 != NULL)
    st = hone_check_matrix(v->n, v->nrhs, v->x0, v->ldx0);
  if (st == HONE_OK && (clashes(v, v->b, v->ldb) || clashes(v, v->x0, v->ldx0)))
    st = HONE_BAD_OVERLAP;
  return st;
}

bool hone_x_overlaps(const hone_vectors *v, const double *a, int64_t lda) {
  return overlap(v->x, extent(v->n, v->nrhs, v->ldx), a,
                 extent(v->n, v->n, lda));
}

int hone_check_system(const hone_vectors *v, const double *a, int64_t lda) {
  const int64_t n = v->n, nrhs = v->nrhs;
  int st = n < 0 || n > HONE_MAX_ORDER || nrhs < 0 ? HONE_BAD_SIZE : HONE_OK;
  if (st == HONE_OK)
    st = hone_check_matrix(n, nrhs > 0 ? n : 0, a, lda);
  if (st == HONE_OK)
    st = hone_check_vectors(v);
  if (st == HONE_OK && n > 0 && nrhs > 0 && hone_x_overlaps(v, a, lda))
    st = HONE_BAD_OVERLAP;
  return st;
}

/* Tells whether column j, at b, is finite. If not, the report says where. */
static bool column_is_finite(int64_t n, const double *b, int64_t j,
                             hone_report *report) {
  double bad = 0.0;
  for (int64_t i = 0; i < n; i++)
    bad += b[i] * 0.0; /* NaN for NaN and Inf, else 0 */
  if (bad <= 0.0)
    return true;
  int64_t row = 0;
  while (row < n && isfinite(b[row]))
    row++;
  report->bad_row = row;
  report->bad_col = j;
  return false;
}

static bool all_finite(int64_t n, int64_t nrhs, const double *b, int64_t ldb,
                       hone_report *report) {
  bool finite = true;
  for (int64_t j = 0; b != NULL && finite && j < nrhs; j++)
    finite = column_is_finite(n, b + j * ldb, j, report);
  return finite;
}

int hone_check_finite(const hone_vectors *v, hone_report *report) {
  return all_finite(v->n, v->nrhs, v->b, v->ldb, report) &&
                 all_finite(v->n, v->nrhs, v->x0, v->ldx0, report)
             ? HONE_OK
             : HONE_NOT_FINITE_B;
}
