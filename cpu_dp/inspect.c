/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads A once, before the factorization, in double precision: finds the maxima
   and the sums of |s_ij| by rows and by columns, S = R A C, and the first entry
   that is not finite. Read hone_inspect, at the end, first. */
#include "cpu_dp/inspect.h"

#include "base/vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  GROUP = 4,         /* columns added to the row sums in one sweep */
  PIECE = 512,       /* rows of a group that stay in the first-level cache */
  MAX_TASKS = 16,    /* the most tasks */
  TASK_COLUMNS = 128 /* the fewest columns of a task, but for the last */
};

/* The number of tasks depends on the order alone, so that sums are added in the
   same order whatever the number of threads is. */
static int64_t task_count(int64_t n) {
  int64_t tasks = (n + TASK_COLUMNS - 1) / TASK_COLUMNS;
  return HONE_MAX((int64_t)1, HONE_MIN(tasks, (int64_t)MAX_TASKS));
}

/* The scratch holds the row maxima and the row sums of each task, then n column
   sums. */
int64_t hone_inspect_scratch(int64_t n) { return (2 * task_count(n) + 1) * n; }

typedef struct inspect_job {
  const hone_dense *a;
  const hone_scaling *scaling;
  double *row_max, *row_sum; /* n for each task */
  double *col_max, *col_sum; /* n */
  int64_t tasks;
} inspect_job;

/* Adds |s_ij| of GROUP columns, which lie ld apart, to the maxima and sums of
   their rows, and to their own. */
HONE_VECTOR static void add_group(int64_t n, const hone_entry *restrict a,
                                  int64_t ld, double *restrict row_max,
                                  double *restrict row_sum, double *col_max,
                                  double *col_sum) {
  const hone_entry *restrict a1 = a + ld, *restrict a2 = a + 2 * ld;
  const hone_entry *restrict a3 = a + 3 * ld;
  double c = 0.0, c1 = 0.0, c2 = 0.0, c3 = 0.0;
  double s = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(max : c, c1, c2, c3) reduction(+ : s, s1, s2, s3)
  for (int64_t i = 0; i < n; i++) {
    double v = hone_abs(a[i]), v1 = hone_abs(a1[i]), v2 = hone_abs(a2[i]);
    double v3 = hone_abs(a3[i]);
    double m = v > v1 ? v : v1, m2 = v2 > v3 ? v2 : v3;
    m = m > m2 ? m : m2;
    row_max[i] = m > row_max[i] ? m : row_max[i];
    row_sum[i] += v + v1 + (v2 + v3);
    c = v > c ? v : c;
    c1 = v1 > c1 ? v1 : c1;
    c2 = v2 > c2 ? v2 : c2;
    c3 = v3 > c3 ? v3 : c3;
    s += v;
    s1 += v1;
    s2 += v2;
    s3 += v3;
  }
  const double max[GROUP] = {c, c1, c2, c3}, sum[GROUP] = {s, s1, s2, s3};
  for (int k = 0; k < GROUP; k++) {
    col_max[k] = max[k] > col_max[k] ? max[k] : col_max[k];
    col_sum[k] += sum[k];
  }
}

/* Does the same for a single column. */
HONE_VECTOR static void row_part(int64_t n, const hone_entry *restrict a,
                                 double *restrict row_max,
                                 double *restrict row_sum) {
  for (int64_t i = 0; i < n; i++) {
    double v = hone_abs(a[i]);
    row_max[i] = v > row_max[i] ? v : row_max[i];
    row_sum[i] += v;
  }
}

/* Adds |s_ij| of a column to the maximum and the sum of that column. */
HONE_VECTOR static void col_part(int64_t n, const hone_entry *restrict a,
                                 double *col_max, double *col_sum) {
  double max = 0.0, sum = 0.0;
#pragma omp simd reduction(max : max) reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) {
    double v = hone_abs(a[i]);
    max = v > max ? v : max;
    sum += v;
  }
  *col_max = max > *col_max ? max : *col_max;
  *col_sum += sum;
}

HONE_VECTOR static void scale_part(int64_t n, const hone_entry *restrict a,
                                   const double *restrict row, double c,
                                   hone_entry *restrict s) {
  for (int64_t i = 0; i < n; i++)
    s[i] = hone_scaled_entry(row[i], c, a[i]);
}

/* Inspects columns j .. j+w-1, w <= GROUP, in pieces that stay in the
   first-level cache. */
static void inspect_group(const inspect_job *job, int64_t j, int64_t w,
                          double *row_max, double *row_sum) {
  hone_entry scaled[GROUP * PIECE];
  const int64_t n = job->a->n;
  for (int64_t c = j; c < j + w; c++)
    job->col_max[c] = job->col_sum[c] = 0.0;
  for (int64_t i = 0; i < n; i += PIECE) {
    int64_t len = HONE_MIN((int64_t)PIECE, n - i), ld = job->a->lda;
    const hone_entry *s = job->a->a + i + j * ld;
    if (job->scaling) {
      for (int64_t c = 0; c < w; c++)
        scale_part(len, s + c * ld, job->scaling->row + i,
                   job->scaling->col[j + c], scaled + c * PIECE);
      s = scaled;
      ld = PIECE;
    }
    if (w == GROUP) {
      add_group(len, s, ld, row_max + i, row_sum + i, job->col_max + j,
                job->col_sum + j);
      continue;
    }
    for (int64_t c = 0; c < w; c++) {
      row_part(len, s + c * ld, row_max + i, row_sum + i);
      col_part(len, s + c * ld, &job->col_max[j + c], &job->col_sum[j + c]);
    }
  }
}

static void inspect_columns(void *ctx, int64_t task) {
  const inspect_job *job = ctx;
  const int64_t n = job->a->n;
  double *row_max = job->row_max + task * n, *row_sum = job->row_sum + task * n;
  memset(row_max, 0, (size_t)n * sizeof *row_max);
  memset(row_sum, 0, (size_t)n * sizeof *row_sum);
  const int64_t from = n * task / job->tasks, to = n * (task + 1) / job->tasks;
  for (int64_t j = from; j < to; j += GROUP)
    inspect_group(job, j, HONE_MIN((int64_t)GROUP, to - j), row_max, row_sum);
}

/* Finds the first NaN or Inf by columns. Only columns whose sum is not finite
   are searched; such a sum may also have overflowed. */
static void find_not_finite(const hone_dense *a, const double *col_sum,
                            hone_inspection *out) {
  for (int64_t j = 0; j < a->n; j++) {
    if (isfinite(col_sum[j]))
      continue;
    for (int64_t i = 0; i < a->n; i++)
      if (!hone_finite(a->a[i + j * a->lda])) {
        out->bad_row = i;
        out->bad_col = j;
        return;
      }
  }
}

void hone_inspect(const hone_matrix *matrix, hone_pool *pool,
                  const hone_scaling *scaling, double *scratch,
                  hone_inspection *out) {
  const hone_dense *a = hone_dense_of(matrix);
  const int64_t n = a->n, tasks = task_count(n);
  inspect_job job = {.a = a,
                     .scaling = scaling,
                     .row_max = scratch,
                     .row_sum = scratch + tasks * n,
                     .col_max = out->col_max,
                     .col_sum = scratch + 2 * tasks * n,
                     .tasks = tasks};
  hone_pool_run(n < HONE_THREADS_FROM ? NULL : pool, tasks, inspect_columns,
                &job);
  memcpy(out->row_max, job.row_max, (size_t)n * sizeof(double));
  for (int64_t t = 1; t < tasks; t++)
    for (int64_t i = 0; i < n; i++) {
      double m = job.row_max[t * n + i];
      out->row_max[i] = m > out->row_max[i] ? m : out->row_max[i];
      job.row_sum[i] += job.row_sum[t * n + i];
    }
  out->bad_row = out->bad_col = -1;
  find_not_finite(a, job.col_sum, out);
  out->norm1 = hone_largest_sum(n, job.col_sum);
  out->norm_inf = hone_largest_sum(n, job.row_sum);
}
