/* SPDX-License-Identifier: BSD-3-Clause */
/* Scales columns of A and rounds them to single precision, on the CPU. A is
   read once, in pieces that stay in the first-level cache; the row exchanges of
   earlier panels are applied while the column is still in the second-level
   cache. Read hone_round_columns, at the end, first. */
#include "base/rounding.h"

#include "base/isa.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

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
    s[i] = hone_scaled_entry(row[i], c, a[i]);
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

void hone_mirror_keys(uint64_t seed, int64_t n, uint32_t *keys) {
  for (int64_t i = 0; i < n; i++)
    keys[i] = (uint32_t)(hone_random_bits(&seed) >> 32);
}

/* Each term is the hash NH of UMAC (Black, Halevi, Krawczyk, Krovetz & Rogaway
   1999): a key is added to each half of the value, and the two sums are
   multiplied. Both keys are halves of the product of the keys of row and
   column. */
static uint64_t mirror_sum(int64_t n, const uint32_t *keys, uint32_t key,
                           const double *v) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double value = v[i] + 0.0; /* turns -0 into 0 */
    const uint64_t k = (uint64_t)keys[i] * key;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    sum += (uint64_t)((uint32_t)bits + (uint32_t)k) *
           ((uint32_t)(bits >> 32) + (uint32_t)(k >> 32));
  }
  return sum;
}

/* Vectors of values that the compiler does not make of that loop: one
   instruction multiplies the lower halves of 64-bit numbers, so that what
   overflows into the upper halves does no harm. */
#ifdef __x86_64__
enum { MOST_LANES = 8 };

static uint64_t sum_of(int lanes, const uint64_t *part) {
  uint64_t sum = 0;
  for (int i = 0; i < lanes; i++)
    sum += part[i];
  return sum;
}

__attribute__((target("avx2"))) static uint64_t
mirror_sum_avx2(int64_t n, const uint32_t *keys, uint32_t key,
                const double *v) {
  enum { LANES = 4 };
  const __m256i column = _mm256_set1_epi64x((long long)key);
  const __m256d zero = _mm256_setzero_pd();
  __m256i sum = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += LANES) {
    const __m256i bits =
        _mm256_castpd_si256(_mm256_add_pd(_mm256_loadu_pd(v + i), zero));
    const __m256i row =
        _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(keys + i)));
    const __m256i k = _mm256_mul_epu32(row, column);
    const __m256i low = _mm256_add_epi64(bits, k);
    const __m256i high =
        _mm256_add_epi64(_mm256_srli_epi64(bits, 32), _mm256_srli_epi64(k, 32));
    sum = _mm256_add_epi64(sum, _mm256_mul_epu32(low, high));
  }
  uint64_t all[LANES];
  _mm256_storeu_si256((__m256i *)all, sum);
  return sum_of(LANES, all);
}

__attribute__((target("avx512f"))) static uint64_t
mirror_sum_avx512(int64_t n, const uint32_t *keys, uint32_t key,
                  const double *v) {
  enum { LANES = 8 };
  const __m512i column = _mm512_set1_epi64((long long)key);
  const __m512d zero = _mm512_setzero_pd();
  __m512i sum = _mm512_setzero_si512();
  for (int64_t i = 0; i < n; i += LANES) {
    const __m512i bits =
        _mm512_castpd_si512(_mm512_add_pd(_mm512_loadu_pd(v + i), zero));
    const __m512i row =
        _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(keys + i)));
    const __m512i k = _mm512_mul_epu32(row, column);
    const __m512i low = _mm512_add_epi64(bits, k);
    const __m512i high =
        _mm512_add_epi64(_mm512_srli_epi64(bits, 32), _mm512_srli_epi64(k, 32));
    sum = _mm512_add_epi64(sum, _mm512_mul_epu32(low, high));
  }
  uint64_t all[LANES];
  _mm512_storeu_si512(all, sum);
  return sum_of(LANES, all);
}
#endif

uint64_t hone_mirror_sum(int64_t n, int64_t row, int64_t column,
                         const uint32_t *keys, const double *v) {
  const uint32_t key = keys[column];
  int64_t done = 0;
  uint64_t sum = 0;
  keys += row;
#ifdef __x86_64__
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE) {
    done = n - n % MOST_LANES;
    sum = isa == HONE_ISA_AVX512 ? mirror_sum_avx512(done, keys, key, v)
                                 : mirror_sum_avx2(done, keys, key, v);
  }
#endif
  return sum + mirror_sum(n - done, keys + done, key, v + done);
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
