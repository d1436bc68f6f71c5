/* SPDX-License-Identifier: BSD-3-Clause */
/* Scaling and rounding a block column: one read of the caller's matrix, in
   pieces that stay in the first-level cache; the row exchanges of earlier
   panels are made while the column is still in the second-level one. */
#include "base/rounding.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { PIECE = 1024, THREADS_FROM = 400, TASKS_A_THREAD = 2 };

/* f = s rounded, entries below FLT_MIN to 0; returns the largest. */
HONE_VECTOR static float round_part(int64_t n, const double *restrict s,
                                    float *restrict f) {
  float max = 0.0F;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    float v = (float)s[i];
    v = fabsf(v) < FLT_MIN ? 0.0F : v;
    max = fabsf(v) > max ? fabsf(v) : max;
    f[i] = v;
  }
  return max;
}

HONE_VECTOR static void scale_part(int64_t n, const double *restrict a,
                                   const double *restrict row, double c,
                                   double *restrict s) {
  for (int64_t i = 0; i < n; i++)
    s[i] = a[i] * row[i] * c;
}

/* Exponents of ones, which is what NaN and Inf have. */
HONE_VECTOR bool hone_all_finite(int64_t n, const double *v) {
  const uint64_t exponent = 0x7ff0000000000000;
  uint64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits;
    memcpy(&bits, &v[i], sizeof bits);
    bad |= (uint64_t)((bits & exponent) == exponent);
  }
  return bad == 0;
}

/* Halves of the value, each with a key of the pair, multiplied: the hash NH of
   UMAC (Black, Halevi, Krawczyk, Krovetz & Rogaway 1999). The sum of the
   indices is one key, a product of odd numbers the other. */
HONE_VECTOR uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                                     const double *v) {
  const uint32_t sum_key = 0x9e3779b9U, odd_key = 0x85ebca6aU;
  const uint32_t r = (uint32_t)row, c = (uint32_t)column;
  const uint32_t c_odd = c * odd_key + 1;
  /* In 64 bits each, which costs no shuffles: keys grow by the row. */
  const uint64_t half = 0xffffffff, low_step = sum_key;
  const uint64_t high_step = (uint32_t)(odd_key * c_odd);
  uint64_t low_key = (uint32_t)((r + c) * sum_key);
  uint64_t high_key = (uint32_t)((r * odd_key + 1) * c_odd), sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double value = v[i] + 0.0; /* -0 is 0 */
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t low = (bits + low_key) & half;
    const uint64_t high = ((bits >> 32) + high_key) & half;
    sum += low * high;
    low_key += low_step;
    high_key += high_step;
  }
  return sum;
}

/* Entries that were not 0 and are now. */
HONE_VECTOR static int64_t count_flushed(int64_t n, const double *restrict a,
                                         const float *restrict f) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    count += (a[i] != 0.0) & !(f[i] != 0.0F);
  return count;
}

static int64_t round_column(int64_t n, const double *a, const double *row,
                            double c, float *f, float *col_max) {
  double scaled[PIECE];
  int64_t flushed = 0;
  *col_max = 0.0F;
  for (int64_t i = 0; i < n; i += PIECE) {
    int64_t len = HONE_MIN((int64_t)PIECE, n - i);
    if (row)
      scale_part(len, a + i, row + i, c, scaled);
    float max = round_part(len, row ? scaled : a + i, f + i);
    *col_max = max > *col_max ? max : *col_max;
    flushed += count_flushed(len, a + i, f + i);
  }
  return flushed;
}

typedef struct round_job {
  const hone_rounding *r;
  int64_t columns; /* of one task */
  _Atomic int64_t flushed;
} round_job;

static void round_task(void *ctx, int64_t task) {
  round_job *job = ctx;
  const hone_rounding *r = job->r;
  const double *row = r->scaling->used ? r->scaling->row : NULL;
  int64_t flushed = 0, to = HONE_MIN((task + 1) * job->columns, r->w);
  for (int64_t c = task * job->columns; c < to; c++) {
    float *f = r->f + c * r->ldf;
    flushed += round_column(r->a->n, r->a->a + (r->j + c) * r->a->lda, row,
                            r->scaling->col[r->j + c], f, &r->col_max[c]);
    for (int64_t k = 0; k < r->exchanges; k++) {
      const int64_t with = r->exchange[k] - 1;
      const float t = f[k];
      f[k] = f[with];
      f[with] = t;
    }
  }
  if (flushed > 0)
    atomic_fetch_add(&job->flushed, flushed);
}

int64_t hone_round_columns(hone_pool *pool, const hone_rounding *rounding) {
  if (rounding->a->n < THREADS_FROM)
    pool = NULL;
  /* Wide tasks: two threads that touch a fresh huge page at once both clear
     it. */
  int64_t tasks = (int64_t)TASKS_A_THREAD * hone_pool_threads(pool);
  round_job job = {.r = rounding, .columns = rounding->w / tasks + 1};
  hone_pool_run(pool, (rounding->w + job.columns - 1) / job.columns, round_task,
                &job);
  return job.flushed;
}
