/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales columns of A and rounds them to single precision, on the CPU. A is
   read once, in pieces that stay in the first-level cache; the row exchanges of
   earlier panels are applied while the column is still in the second-level
   cache. Read hone_round_columns, at the end, first. */
#include "base/rounding.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
  PIECE = 1024, /* rows scaled at once, which stay in the cache */
  TASKS_A_THREAD = 2
};

/* Rounds s to f; magnitudes below FLT_MIN become 0. Returns the largest
   magnitude. */
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

/* NaN and Inf are the numbers whose exponent bits are all ones. */
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

/* Each term is the hash NH of UMAC (Black, Halevi, Krawczyk, Krovetz & Rogaway
   1999): a key is added to each half of the value, and the two sums are
   multiplied. The keys are symmetric in the indices: one comes from their sum,
   the other from a product of odd numbers. */
HONE_VECTOR uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                                     const double *v) {
  const uint32_t sum_key = 0x9e3779b9U, odd_key = 0x85ebca6aU;
  const uint32_t r = (uint32_t)row, c = (uint32_t)column;
  const uint32_t c_odd = c * odd_key + 1;
  /* The keys advance from row to row by adding a step. They are kept in 64 bits
     each, so that vector code needs no shuffles. */
  const uint64_t half = 0xffffffff, low_step = sum_key;
  const uint64_t high_step = (uint32_t)(odd_key * c_odd);
  uint64_t low_key = (uint32_t)((r + c) * sum_key);
  uint64_t high_key = (uint32_t)((r * odd_key + 1) * c_odd), sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double value = v[i] + 0.0; /* turns -0 into 0 */
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

/* Counts the nonzero entries that became 0. */
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
  int64_t columns; /* columns of a task */
  _Atomic int64_t flushed;
} round_job;

static void round_task(void *ctx, int64_t task) {
  round_job *job = ctx;
  const hone_rounding *r = job->r;
  const double *row = r->scaling->used ? r->scaling->row : NULL;
  int64_t flushed = 0, to = HONE_MIN((task + 1) * job->columns, r->w);
  for (int64_t c = task * job->columns; c < to; c++) {
    float *f = r->f + c * r->ldf;
    const int64_t j = r->j + c, first = r->lower ? j : 0;
    flushed += round_column(r->a->n - first, r->a->a + first + j * r->a->lda,
                            row ? row + first : NULL, r->scaling->col[j],
                            f + first, &r->col_max[c]);
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
  if (rounding->a->n < HONE_THREADS_FROM)
    pool = NULL;
  /* There are few, wide tasks: when two threads touch a fresh huge page at the
     same time, both clear it. */
  int64_t tasks = (int64_t)TASKS_A_THREAD * hone_pool_threads(pool);
  round_job job = {.r = rounding, .columns = rounding->w / tasks + 1};
  hone_pool_run(pool, (rounding->w + job.columns - 1) / job.columns, round_task,
                &job);
  return job.flushed;
}
