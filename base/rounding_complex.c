/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales columns of a complex A and rounds them to single precision, on the
   CPU. rounding.c has the same for real entries. */
#include "base/rounding.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
  PIECE = 512, /* entries scaled at once, which stay in the cache */
  TASKS_A_THREAD = 2
};

/* Rounds a number; magnitudes below FLT_MIN become 0. */
static inline float round_part(double v) {
  const float f = (float)v;
  return fabsf(f) < FLT_MIN ? 0.0F : f;
}

/* s = c diag(row) a, by parts. */
HONE_VECTOR static void scale_part(int64_t n, const double *restrict a,
                                   const double *restrict row, double c,
                                   double *restrict s) {
  for (int64_t i = 0; i < n; i++) {
    const double both = row[i] * c;
    const bool fits = (both >= DBL_MIN) & (both <= DBL_MAX);
    const double first = fits ? both : row[i], second = fits ? 1.0 : c;
    s[2 * i] = a[2 * i] * first * second;
    s[2 * i + 1] = a[2 * i + 1] * first * second;
  }
}

HONE_VECTOR static void round_parts(int64_t n, const double *restrict s,
                                    float *restrict f) {
  for (int64_t i = 0; i < 2 * n; i++)
    f[i] = round_part(s[i]);
}

/* Returns the largest square of a magnitude; *zeros: how many entries are 0.
 */
HONE_VECTOR static double largest_square(int64_t n, const float *f,
                                         int64_t *zeros) {
  double most = 0.0;
  int64_t count = 0;
#pragma omp simd reduction(max : most) reduction(+ : count)
  for (int64_t i = 0; i < n; i++) {
    const double x = (double)f[2 * i], y = (double)f[2 * i + 1];
    const double square = x * x + y * y;
    most = square > most ? square : most;
    count += !(square > 0.0);
  }
  *zeros = count;
  return most;
}

static int64_t count_zeros(int64_t n, const double *a) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    count += a[2 * i] == 0.0 && a[2 * i + 1] == 0.0;
  return count;
}

/* Rounds a column (row NULL: which is not scaled). Returns its largest
   magnitude; *flushed: how many of its entries became 0, added to. */
static float round_column(int64_t n, const double *a, const double *row,
                          double c, float *f, int64_t *flushed) {
  double scaled[2 * PIECE], most = 0.0;
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t len = HONE_MIN((int64_t)PIECE, n - i);
    int64_t zeros;
    if (row)
      scale_part(len, a + 2 * i, row + i, c, scaled);
    round_parts(len, row ? scaled : a + 2 * i, f + 2 * i);
    most = HONE_MAX(most, largest_square(len, f + 2 * i, &zeros));
    if (zeros > 0)
      *flushed += zeros - count_zeros(len, a + 2 * i);
  }
  return (float)sqrt(most);
}

void hone_mirror_keys(uint64_t seed, int64_t n, uint32_t *keys) {
  for (int64_t i = 0; i < 2 * n; i++)
    keys[i] = (uint32_t)(hone_random_bits(&seed) >> 32);
}

/* Returns the hash of a number, as in rounding.c. */
static inline uint64_t hash(double number, uint64_t key) {
  const double value = number + 0.0; /* turns -0 into 0 */
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint64_t)((uint32_t)bits + (uint32_t)key) *
         ((uint32_t)(bits >> 32) + (uint32_t)(key >> 32));
}

/* The parts have keys of their own. */
HONE_VECTOR uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                                     const uint32_t *keys,
                                     const hone_entry *v) {
  const double *part = (const double *)v, sign = row > column ? -1.0 : 1.0;
  const uint64_t re = keys[2 * column], im = keys[2 * column + 1];
  uint64_t sum = 0;
  keys += 2 * row;
  for (int64_t i = 0; i < n; i++) {
    sum += hash(part[2 * i], re * keys[2 * i]);
    sum += hash(sign * part[2 * i + 1], im * keys[2 * i + 1]);
  }
  return sum;
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
    hone_single *f = r->f + c * r->ldf;
    const int64_t j = r->j + c, first = r->lower ? j : 0;
    const hone_entry *a = r->a->a + first + j * r->a->lda;
    r->col_max[c] = round_column(r->a->n - first, (const double *)a,
                                 row ? row + first : NULL, r->scaling->col[j],
                                 (float *)(f + first), &flushed);
    for (int64_t k = 0; k < r->exchanges; k++) {
      const int64_t with = r->exchange[k] - 1;
      const hone_single t = f[k];
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
