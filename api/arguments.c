/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the arguments of a call. */
#include "api/arguments.h"

#include "api/reason.h"

#include <float.h>

/* Entries from which several threads look through them, and those that one of
   them takes at least. */
enum { WORTH_THREADS = 1 << 16, WORTH_A_TASK = 1 << 13 };

int hone_check_sizes(int64_t n, int64_t nrhs, hone_report *report) {
  const bool n_fits = n >= 0 && n <= HONE_MAX_ORDER;
  if (n_fits && nrhs >= 0 && nrhs <= HONE_MAX_ORDER)
    return HONE_OK;
  hone_reason_add(report, "%s is %lld, not from 0 to 2^29",
                  n_fits ? "nrhs" : "n", (long long)(n_fits ? nrhs : n));
  return HONE_BAD_SIZE;
}

/* Bytes from the first to the last element of a matrix; -1: too many. */
static int64_t extent(int64_t rows, int64_t columns, int64_t ld, size_t size) {
  const int64_t most = INT64_MAX / 2 / (int64_t)size;
  int64_t bytes = -1;
  if (rows == 0 || columns == 0)
    bytes = 0;
  else if (columns - 1 <= (most - rows) / ld)
    bytes = ((columns - 1) * ld + rows) * (int64_t)size;
  return bytes;
}

/* Elements of so many bytes. */
static int check_array(int64_t n, int64_t columns, const void *a, int64_t lda,
                       size_t size, const char *name, hone_report *report) {
  const int64_t least = HONE_MAX((int64_t)1, n);
  int st = HONE_OK;
  if (lda < least) {
    hone_reason_add(report, "ld%s is %lld, less than max(1, n) = %lld", name,
                    (long long)lda, (long long)least);
    st = HONE_BAD_LEADING_DIMENSION;
  } else if (extent(n, columns, lda, size) < 0) {
    hone_reason_add(report, "ld%s is %lld: %s would span 2^62 bytes or more",
                    name, (long long)lda, name + (name[0] == '_'));
    st = HONE_BAD_LEADING_DIMENSION;
  } else if (a == NULL && n > 0 && columns > 0) {
    hone_reason_add(report, "%s is NULL", name);
    st = HONE_NULL_POINTER;
  }
  return st;
}

int hone_check_matrix(int64_t n, int64_t columns, const hone_entry *a,
                      int64_t lda, const char *name, hone_report *report) {
  return check_array(n, columns, a, lda, sizeof *a, name, report);
}

/* The memory of an array of the caller, and the bytes of a column and from one
   to the next; 0: there are no columns. */
typedef struct span {
  const char *name;
  uintptr_t from, bytes, column, step;
} span;

static span span_of_array(const char *name, const void *a, int64_t n,
                          int64_t columns, int64_t ld, size_t size) {
  return (span){name, (uintptr_t)a,
                a != NULL ? (uintptr_t)extent(n, columns, ld, size) : 0,
                (uintptr_t)n * size, (uintptr_t)ld * size};
}

static span span_of(const char *name, const hone_entry *a, int64_t n,
                    int64_t columns, int64_t ld) {
  return span_of_array(name, a, n, columns, ld, sizeof *a);
}

static span span_of_x(const hone_vectors *v) {
  return span_of("x", v->x, v->n, v->nrhs, v->ldx);
}

static span span_of_columns(const hone_vectors *v) {
  return (span){.name = "options.columns",
                .from = (uintptr_t)v->columns,
                .bytes = v->columns != NULL
                             ? (uintptr_t)v->nrhs * v->column_size
                             : (uintptr_t)0};
}

static span span_of_error_bounds(const hone_vectors *v) {
  return span_of_array("options.error_bounds", v->error_bounds, v->n, v->nrhs,
                       v->ld_error_bounds, sizeof *v->error_bounds);
}

/* Do the columns of both lie in different rows of one array? */
static bool are_rows_apart(span p, span q) {
  if (p.step == 0 || p.step != q.step)
    return false;
  const uintptr_t ahead = p.from <= q.from
                              ? (q.from - p.from) % p.step
                              : p.step - (p.from - q.from - 1) % p.step - 1;
  return ahead >= p.column && ahead + q.column <= p.step;
}

/* Is memory that is written apart from other memory? */
static int check_apart(span written, span other, hone_report *report) {
  if (written.bytes == 0 || other.bytes == 0 ||
      written.from >= other.from + other.bytes ||
      other.from >= written.from + written.bytes ||
      are_rows_apart(written, other))
    return HONE_OK;
  hone_reason_add(report, "%s overlaps %s", written.name, other.name);
  return HONE_BAD_OVERLAP;
}

/* x may be b (or x0) itself, each column in the place of the same column; any
   other overlap is an error. */
static int check_apart_from_x(const hone_vectors *v, const hone_entry *b,
                              int64_t ldb, const char *name,
                              hone_report *report) {
  const bool same = v->x == b && (v->ldx == ldb || v->nrhs == 1);
  return same ? HONE_OK
              : check_apart(span_of_x(v), span_of(name, b, v->n, v->nrhs, ldb),
                            report);
}

/* Is an array that is only written apart from b, x and x0? */
static int check_apart_from_vectors(const hone_vectors *v, span written,
                                    hone_report *report) {
  int st =
      check_apart(written, span_of("b", v->b, v->n, v->nrhs, v->ldb), report);
  if (st == HONE_OK)
    st = check_apart(written, span_of_x(v), report);
  if (st == HONE_OK)
    st = check_apart(
        written, span_of("options.x0", v->x0, v->n, v->nrhs, v->ldx0), report);
  return st;
}

static int check_vectors_apart(const hone_vectors *v, hone_report *report) {
  int st = check_apart_from_x(v, v->b, v->ldb, "b", report);
  if (st == HONE_OK)
    st = check_apart_from_x(v, v->x0, v->ldx0, "options.x0", report);
  if (st == HONE_OK)
    st = check_apart_from_vectors(v, span_of_columns(v), report);
  if (st == HONE_OK)
    st = check_apart_from_vectors(v, span_of_error_bounds(v), report);
  if (st == HONE_OK)
    st = check_apart(span_of_error_bounds(v), span_of_columns(v), report);
  return st;
}

int hone_check_arrays_of_options(const hone_vectors *v, hone_report *report) {
  int st = HONE_OK;
  if (v->x0 != NULL)
    st = hone_check_matrix(v->n, v->nrhs, v->x0, v->ldx0, "x0", report);
  if (st == HONE_OK && v->error_bounds != NULL)
    st = check_array(v->n, v->nrhs, v->error_bounds, v->ld_error_bounds,
                     sizeof *v->error_bounds, "_error_bounds", report);
  return st;
}

int hone_check_vectors(const hone_vectors *v, hone_report *report) {
  int st = hone_check_sizes(v->n, v->nrhs, report);
  if (st == HONE_OK)
    st = hone_check_matrix(v->n, v->nrhs, v->b, v->ldb, "b", report);
  if (st == HONE_OK)
    st = hone_check_matrix(v->n, v->nrhs, v->x, v->ldx, "x", report);
  if (st == HONE_OK)
    st = hone_check_arrays_of_options(v, report);
  if (st == HONE_OK)
    st = check_vectors_apart(v, report);
  return st;
}

int hone_check_apart(const hone_vectors *v, const hone_entry *a, int64_t lda,
                     hone_report *report) {
  span matrix = span_of("A", a, v->n, v->n, lda);
  matrix.step = 0; /* nothing is written between its columns */
  int st = check_apart(span_of_x(v), matrix, report);
  if (st == HONE_OK)
    st = check_apart(span_of_columns(v), matrix, report);
  if (st == HONE_OK)
    st = check_apart(span_of_error_bounds(v), matrix, report);
  return st;
}

int hone_check_system(const hone_vectors *v, const hone_entry *a, int64_t lda,
                      hone_report *report) {
  const int64_t n = v->n, nrhs = v->nrhs;
  int st = hone_check_sizes(n, nrhs, report);
  if (st == HONE_OK)
    st = hone_check_matrix(n, nrhs > 0 ? n : 0, a, lda, "a", report);
  if (st == HONE_OK)
    st = hone_check_vectors(v, report);
  if (st == HONE_OK && n > 0 && nrhs > 0)
    st = hone_check_apart(v, a, lda, report);
  return st;
}

/* Returns how many numbers are not finite, or so large that a modulus might not
   be. */
HONE_VECTOR static int64_t count_large(int64_t count, const double *v) {
  int64_t large = 0;
#pragma omp simd reduction(+ : large)
  for (int64_t i = 0; i < count; i++)
    large += !(fabs(v[i]) <= DBL_MAX / HONE_PARTS);
  return large;
}

/* Tells whether column j of the array called name, at b, is finite. If not, the
   report says where. */
static bool column_is_finite(int64_t n, const hone_entry *b, int64_t j,
                             const char *name, hone_report *report) {
  int64_t at = 0;
  if (count_large(HONE_PARTS * n, (const double *)b) == 0)
    return true;
  while (at < n && hone_finite(b[at]))
    at++;
  if (at == n)
    return true;
  report->bad_row = at;
  report->bad_col = j;
  hone_reason_not_finite(report, name, at, j, hone_real(b[at]),
                         hone_imag(b[at]));
  return false;
}

/* Columns that several threads look through, in groups. */
typedef struct scanned_columns {
  const hone_entry *b;
  int64_t n, ldb, nrhs, group;
  bool *finite; /* set to false */
} scanned_columns;

static void scan_group(void *ctx, int64_t task) {
  const scanned_columns *s = ctx;
  const int64_t end = HONE_MIN((task + 1) * s->group, s->nrhs);
  int64_t large = 0;
  for (int64_t j = task * s->group; j < end; j++)
    large +=
        count_large(HONE_PARTS * s->n, (const double *)(s->b + j * s->ldb));
  if (large > 0)
    __atomic_store_n(s->finite, false, __ATOMIC_RELAXED);
}

static bool all_finite(const hone_vectors *v, const hone_entry *b, int64_t ldb,
                       const char *name, hone_pool *pool, hone_report *report) {
  const int64_t group = 1 + WORTH_A_TASK / HONE_MAX(v->n, (int64_t)1);
  bool finite = true;
  scanned_columns all = {b, v->n, ldb, v->nrhs, group, &finite};
  if (b == NULL)
    return true;
  hone_pool_run(v->n * v->nrhs < WORTH_THREADS ? NULL : pool,
                (v->nrhs + group - 1) / group, scan_group, &all);
  if (finite)
    return true;
  finite = true; /* what is large may be finite */
  for (int64_t j = 0; finite && j < v->nrhs; j++)
    finite = column_is_finite(v->n, b + j * ldb, j, name, report);
  return finite;
}

int hone_check_finite(const hone_vectors *v, hone_pool *pool,
                      hone_report *report) {
  return all_finite(v, v->b, v->ldb, "b", pool, report) &&
                 all_finite(v, v->x0, v->ldx0, "options.x0", pool, report)
             ? HONE_OK
             : HONE_NOT_FINITE_B;
}
