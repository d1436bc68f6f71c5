/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system that solve_system solves. Without --rhs x is chosen and b = A x is
 * computed in twice double precision, rounded once, so that the error of the
 * answer is known.
 */
#include "examples/solve_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* splitmix64 (Steele, Lea & Flood 2014), whose k-th number is a hash of k. */
static uint64_t splitmix64(uint64_t seed, uint64_t k) {
  uint64_t z = seed + (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Allocates rows x cols entries; NULL if memory is missing. */
static double *allocate(int64_t rows, int64_t cols, int parts) {
  if (rows > 0 && cols > (int64_t)(PTRDIFF_MAX / 16) / rows)
    return NULL;
  size_t count = (size_t)(rows * cols * parts);
  return malloc((count > 0 ? count : 1) * sizeof(double));
}

static int out_of_memory(const struct settings *s, const char *what,
                         int64_t rows, int64_t cols, int parts) {
  return fail(s, HONE_NO_MEMORY,
              "out of memory: %s, %" PRId64 " x %" PRId64 ", needs %.3g GiB",
              what, rows, cols,
              0x1p-27 * (double)parts * (double)rows * (double)cols);
}

/* The numbers of A, counted column by column, are those of splitmix64, scaled
   to [-0.5, 0.5). */
static int make_random(const struct settings *s, mm_matrix *m) {
  const int64_t n = s->random_n;
  const int parts = s->random_complex ? 2 : 1;
  m->a = allocate(n, n, parts);
  if (m->a == NULL)
    return out_of_memory(s, "the matrix", n, n, parts);
  for (int64_t k = 0; k < parts * n * n; k++)
    m->a[k] = (double)(splitmix64(s->seed, (uint64_t)k) >> 11) * 0x1p-53 - 0.5;
  m->rows = m->cols = n;
  m->stored_entries = n * n;
  m->is_complex = s->random_complex;
  snprintf(m->symmetry, sizeof m->symmetry, "general");
  return ACCEPTED;
}

/* Adds v to the unevaluated sum hi + lo (Knuth's two-sum). */
static void add_exactly(double *hi, double *lo, double v) {
  double sum = *hi + v;
  double part = sum - *hi;
  *lo += (*hi - (sum - part)) + (v - part);
  *hi = sum;
}

/* b = op(A) w, where w has entries +1 and -1. lo is work space of n entries. */
static void multiply(const mm_matrix *a, int trans, const double *w, double *b,
                     double *lo) {
  const int64_t n = a->rows, parts = a->is_complex ? 2 : 1;
  memset(b, 0, (size_t)(parts * n) * sizeof *b);
  memset(lo, 0, (size_t)(parts * n) * sizeof *lo);
  for (int64_t j = 0; j < n; j++) {
    const double *column = a->a + parts * j * n;
    for (int64_t i = 0; i < n; i++)
      for (int64_t p = 0; p < parts; p++) {
        const int64_t to = parts * (trans == HONE_NO_TRANS ? i : j) + p;
        const double sign = trans == HONE_CONJ_TRANS && p == 1 ? -1.0 : 1.0;
        add_exactly(&b[to], &lo[to],
                    sign * column[parts * i + p] *
                        w[trans == HONE_NO_TRANS ? j : i]);
      }
  }
  for (int64_t i = 0; i < parts * n; i++)
    b[i] = isfinite(b[i] + lo[i]) ? b[i] + lo[i] : b[i];
}

/* Is every one of so many numbers finite, and so is its modulus? */
static bool all_finite(const double *v, int64_t count, int64_t parts) {
  bool finite = true;
  for (int64_t k = 0; k < count; k++, v += parts)
    finite = finite && isfinite(parts == 1 ? v[0] : hypot(v[0], v[1]));
  return finite;
}

/* Looks at the b that was computed. A NaN or Inf in A is the library's to name,
   with its place, which it does if b has none. */
static int check_rhs(const struct settings *s, struct system *run) {
  const int64_t n = run->a.rows, parts = run->parts, count = n * run->b.cols;
  if (all_finite(run->b.a, count, parts))
    return ACCEPTED;
  if (all_finite(run->a.a, n * n, parts))
    return fail(s, HONE_NOT_FINITE_B,
                "b = A * ones is above the range of double: give b by --rhs");
  memset(run->b.a, 0, (size_t)(parts * count) * sizeof *run->b.a);
  return ACCEPTED;
}

/* Chooses x and makes b = op(A) x. */
static int make_rhs(const struct settings *s, struct system *run) {
  const int64_t n = run->a.rows;
  const int64_t nrhs = s->nrhs >= 0 ? s->nrhs : 1;
  double *lo = allocate(n, 1, run->parts);
  run->b.a = allocate(n, nrhs, run->parts);
  run->want = allocate(n, nrhs, 1);
  if (lo == NULL || run->b.a == NULL || run->want == NULL) {
    free(lo);
    return out_of_memory(s, "b", n, nrhs, run->parts);
  }
  run->b.rows = n;
  run->b.cols = nrhs;
  run->b.is_complex = run->a.is_complex;
  for (int64_t j = 0; j < nrhs; j++) {
    double *w = run->want + j * n;
    for (int64_t i = 0; i < n; i++)
      w[i] = j > 0 && splitmix64((uint64_t)j, (uint64_t)i) >> 63 ? -1.0 : 1.0;
    multiply(&run->a, s->options.trans, w, run->b.a + run->parts * j * n, lo);
  }
  free(lo);
  return check_rhs(s, run);
}

/* Gives b the kind of A: a real b becomes complex, a complex one two real
   columns for each. */
static int convert_rhs(const struct settings *s, struct system *run) {
  mm_matrix *b = &run->b;
  const int64_t n = b->rows, count = n * b->cols;
  if (b->is_complex == run->a.is_complex || count == 0)
    return ACCEPTED;
  double *to = allocate(n, b->cols, 2);
  if (to == NULL)
    return out_of_memory(s, "b", n, b->cols, 2);
  run->split = b->is_complex;
  for (int64_t k = 0; k < count; k++) {
    if (run->split) {
      const int64_t j = k / n, i = k % n;
      to[i + 2 * j * n] = b->a[2 * k];
      to[i + (2 * j + 1) * n] = b->a[2 * k + 1];
    } else {
      to[2 * k] = b->a[k];
      to[2 * k + 1] = 0.0;
    }
  }
  free(b->a);
  b->a = to;
  b->is_complex = run->a.is_complex;
  if (run->split)
    b->cols *= 2;
  return ACCEPTED;
}

static int read_rhs(const struct settings *s, struct system *run) {
  char message[256] = "";
  if (mm_read_file(s->rhs, &run->b, message, sizeof message) != MM_OK)
    return fail(s, -1, "%s", message);
  if (run->b.rows != run->a.rows)
    return fail(s, -1, "%s: b has %" PRId64 " rows, the matrix has %" PRId64,
                s->rhs, run->b.rows, run->a.rows);
  return convert_rhs(s, run);
}

static int read_matrix(const struct settings *s, mm_matrix *a) {
  char message[256] = "";
  if (mm_read_file(s->matrix, a, message, sizeof message) != MM_OK)
    return fail(s, -1, "%s", message);
  if (a->rows != a->cols)
    return fail(s, -1,
                "%s: the matrix is %" PRId64 " x %" PRId64
                ", but it must be square",
                s->matrix, a->rows, a->cols);
  return ACCEPTED;
}

int system_make(const struct settings *s, struct system *run) {
  const double start = now_s();
  int status =
      s->matrix == NULL ? make_random(s, &run->a) : read_matrix(s, &run->a);
  if (status != ACCEPTED)
    return status;
  run->parts = run->a.is_complex ? 2 : 1;
  status = s->rhs == NULL ? make_rhs(s, run) : read_rhs(s, run);
  run->read_ms = 1e3 * (now_s() - start);
  if (status != ACCEPTED)
    return status;
  run->x = allocate(run->b.rows, run->b.cols, run->parts);
  run->bounds = allocate(run->b.rows, run->b.cols, 1);
  /* A column for which nothing is found stays as it is. */
  for (int64_t k = 0;
       run->x != NULL && k < run->parts * run->b.rows * run->b.cols; k++)
    run->x[k] = (double)NAN;
  return run->x != NULL && run->bounds != NULL
             ? ACCEPTED
             : out_of_memory(s, "x", run->b.rows, run->b.cols, run->parts);
}

double system_modulus(const struct system *run, int64_t k) {
  return run->parts == 2 ? hypot(run->x[2 * k], run->x[2 * k + 1])
                         : fabs(run->x[k]);
}

double system_error(const struct system *run, int64_t k) {
  if (run->want == NULL)
    return (double)NAN;
  return run->parts == 2
             ? hypot(run->x[2 * k] - run->want[k], run->x[2 * k + 1])
             : fabs(run->x[k] - run->want[k]);
}

void system_free(struct system *run) {
  mm_free(&run->a);
  mm_free(&run->b);
  free(run->x);
  free(run->bounds);
  free(run->want);
}
