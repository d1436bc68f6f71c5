/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that project a matrix on random weights (base/projection.h). This
   file is compiled once for each instruction set, with PROJECTION_ISA as its
   name; projection.c chooses one at run time. The loops are kept plain so that
   the compiler turns them into vector instructions. */
#include "base/projection_kernels.h"

#include "base/exact.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* ---- Blocks on their way through the processor -------------------------- */

enum {
  BLOCK_BYTES = 1024,
  LINE = 64,   /* bytes of the cache that come at once, */
  AHEAD = 4096 /* and how far ahead they are fetched */
};

/* Fetches a block that a loop over a column comes to soon, into the cache of
   the second level. It may lie behind the column. */
HONE_INLINE void fetch_ahead(const void *block) {
  const uintptr_t at = (uintptr_t)block + AHEAD;
  for (int k = 0; k < BLOCK_BYTES; k += LINE)
    __builtin_prefetch((const void *)(at + (uintptr_t)k), 0, 2);
}

/* Copies a block; streams: past the caches, to a multiple of LINE. */
HONE_INLINE void copy_block(const void *from, void *to, bool streams) {
#if defined(__AVX512F__)
  for (int k = 0; k < BLOCK_BYTES && streams; k += 64)
    _mm512_stream_si512((void *)((char *)to + k),
                        _mm512_loadu_si512((const char *)from + k));
#elif defined(__AVX2__)
  for (int k = 0; k < BLOCK_BYTES && streams; k += 32)
    _mm256_stream_si256(
        (void *)((char *)to + k),
        _mm256_loadu_si256((const void *)((const char *)from + k)));
#else
  streams = false;
#endif
  if (!streams)
    memcpy(to, from, BLOCK_BYTES);
}

HONE_INLINE bool may_stream(const hone_column_copy *copy) {
  return copy->streams && (uintptr_t)copy->to % LINE == 0;
}

/* Copies the n entries behind the last block, and lets other threads see what
   was streamed. */
HONE_INLINE void end_copy(int64_t n, const hone_entry *from, hone_entry *to,
                          bool streams) {
#if defined(__x86_64__)
  if (streams)
    _mm_sfence();
#endif
  (void)streams;
  memcpy(to, from, (size_t)n * sizeof *from);
}

#ifdef HONE_COMPLEX

/* The weights are real: the parts of A are summed as reals are, each with the
   weight of its entry, and the moduli beside them. */

enum { LANES = 8, BLOCK = LANES * HONE_GROUP }; /* entries at once */
_Static_assert(BLOCK * sizeof(hone_entry) == BLOCK_BYTES, "a block is copied");

/* Squares between these are those of moduli that are neither lost nor
   infinite. */
static const double LEAST_SQUARE = 0x1p-960, MOST_SQUARE = 0x1p1000;

/* Adds |a| size to *sum, and returns 1 if that may be wrong. */
HONE_INLINE int add_modulus(double re, double im, double size, double *sum) {
  const double square = re * re + im * im;
  *sum += __builtin_sqrt(square) * size;
  const bool fits = square >= LEAST_SQUARE && square <= MOST_SQUARE;
  return (int)!fits & ((re != 0.0) | (im != 0.0));
}

#if defined(__AVX512F__)

/* Returns the roots of numbers that are 0 or between the squares above. An
   approximation to 14 bits is improved twice (Goldschmidt), in a fraction of
   the time that a root by the processor takes: 3.2e8 of them were wrong by at
   most 1.3 2^-53 of themselves. */
HONE_INLINE __m512d roots_of(__m512d square) {
  const __m512d half = _mm512_set1_pd(0.5);
  const __mmask8 some =
      _mm512_cmp_pd_mask(square, _mm512_setzero_pd(), _CMP_NEQ_UQ);
  const __m512d start = _mm512_maskz_rsqrt14_pd(some, square);
  __m512d root = _mm512_mul_pd(square, start);
  __m512d inverse = _mm512_mul_pd(half, start); /* a half of it */
  const __m512d off = _mm512_fnmadd_pd(root, inverse, half);
  root = _mm512_fmadd_pd(root, off, root);
  inverse = _mm512_fmadd_pd(inverse, off, inverse);
  return _mm512_fmadd_pd(_mm512_fnmadd_pd(root, root, square), inverse, root);
}

/* Adds |a_k| size_k to sum_k for LANES entries, and returns 0 unless that may
   be wrong. */
HONE_INLINE int add_moduli(const double *part, const double *size,
                           double *sum) {
  const __m512d low = _mm512_loadu_pd(part), high = _mm512_loadu_pd(part + 8);
  const __m512i real = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512d re = _mm512_permutex2var_pd(low, real, high);
  const __m512d im = _mm512_permutex2var_pd(
      low, _mm512_add_epi64(real, _mm512_set1_epi64(1)), high);
  const __m512d square = _mm512_fmadd_pd(re, re, _mm512_mul_pd(im, im));
  const __mmask8 some = _mm512_test_epi64_mask(
      _mm512_or_si512(_mm512_castpd_si512(re), _mm512_castpd_si512(im)),
      _mm512_set1_epi64(INT64_MAX)); /* not +0 or -0 both */
  const __mmask8 small =
      _mm512_cmp_pd_mask(square, _mm512_set1_pd(LEAST_SQUARE), _CMP_NGE_UQ);
  const __mmask8 large =
      _mm512_cmp_pd_mask(square, _mm512_set1_pd(MOST_SQUARE), _CMP_NLE_UQ);
  _mm512_storeu_pd(sum, _mm512_fmadd_pd(roots_of(square), _mm512_loadu_pd(size),
                                        _mm512_loadu_pd(sum)));
  return (small | large) & some;
}

#else

HONE_INLINE int add_moduli(const double *part, const double *size,
                           double *sum) {
  int bad = 0;
  for (int k = 0; k < LANES; k++)
    bad |= add_modulus(part[2 * k], part[2 * k + 1], size[k], &sum[k]);
  return bad;
}

#endif

/* Returns sum_i |a_i| |v_i| over a block. */
HONE_INLINE double sum_of_moduli(const hone_entry *a, const hone_entry *v) {
  const double *restrict part = (const double *)a, *restrict w = (double *)v;
  double s[LANES] = {0.0}, size[BLOCK], sum = 0.0;
  int bad = 0;
  for (int k = 0; k < BLOCK; k++)
    size[k] = __builtin_fabs(w[2 * k]);
  for (int g = 0; g < BLOCK; g += LANES)
    bad |= add_moduli(part + 2 * g, size + g, s);
  for (int k = 0; k < LANES && !bad; k++)
    sum += s[k];
  for (int k = 0; k < BLOCK && bad; k++)
    sum += hone_abs(a[k]) * size[k];
  return sum;
}

static void project_column(int64_t n, const hone_entry *a, const hone_entry *v,
                           const hone_column_copy *copy, hone_entry *hi,
                           hone_entry *lo, double *sum) {
  double h[2 * LANES] = {0.0}, l[2 * LANES] = {0.0}, rest[2 * LANES] = {0.0};
  const bool streams = may_stream(copy);
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    fetch_ahead(a + i);
    if (copy->to != NULL)
      copy_block(a + i, copy->to + i, streams);
    const double *restrict part = (const double *)(a + i);
    double weight[2 * BLOCK];
    for (int k = 0; k < BLOCK; k++)
      weight[2 * k] = weight[2 * k + 1] = creal(v[i + k]);
    for (int k = 0; k < 2 * LANES; k++) {
      double p[HONE_GROUP], q[HONE_GROUP];
      for (int g = 0; g < HONE_GROUP; g++) {
        p[g] = part[g * 2 * LANES + k];
        q[g] = weight[g * 2 * LANES + k];
      }
      hone_add_group_of_reals(p, q, &h[k], &l[k], &rest[k]);
    }
    *sum += sum_of_moduli(a + i, v + i);
  }
  if (copy->to != NULL)
    end_copy(n - i, a + i, copy->to + i, streams);
  for (; i < n; i++) {
    hone_add_product(creal(a[i]), creal(v[i]), &h[0], &l[0]);
    hone_add_product(cimag(a[i]), creal(v[i]), &h[1], &l[1]);
    *sum += hone_abs(a[i]) * __builtin_fabs(creal(v[i]));
  }
  for (int k = 0; k < LANES; k++) {
    hone_accumulate(CMPLX(h[2 * k], h[2 * k + 1]), 1.0, hi, lo);
    *lo += CMPLX(l[2 * k], l[2 * k + 1]);
  }
}

enum { ROWS = 64 }; /* at once, of HONE_GROUP columns */

/* Adds the moduli of so many rows of HONE_GROUP columns. */
HONE_INLINE void add_moduli_of_rows(int rows, const hone_entry *a, int64_t lda,
                                    const double *weight,
                                    double *restrict sum) {
  double s[ROWS];
  int bad = 0;
  for (int i = 0; i < rows; i++)
    s[i] = 0.0;
  for (int g = 0; g < HONE_GROUP; g++) {
    const double *restrict part = (const double *)(a + g * lda);
    double size[LANES];
    int i = 0;
    for (int k = 0; k < LANES; k++)
      size[k] = __builtin_fabs(weight[g]);
    for (; i + LANES <= rows; i += LANES)
      bad |= add_moduli(part + 2 * i, size, s + i);
    for (; i < rows; i++)
      bad |= add_modulus(part[2 * i], part[2 * i + 1], size[0], &s[i]);
  }
  for (int i = 0; i < rows && bad; i++) {
    s[i] = 0.0;
    for (int g = 0; g < HONE_GROUP; g++)
      s[i] += hone_abs(a[i + g * lda]) * __builtin_fabs(weight[g]);
  }
  for (int i = 0; i < rows; i++)
    sum[i] += s[i];
}

static void project_rows(int64_t rows, int64_t columns, const hone_entry *a,
                         int64_t lda, const hone_entry *v, hone_entry *hi,
                         hone_entry *lo, double *restrict sum) {
  double rest[2 * ROWS];
  int64_t j = 0;
  for (int i = 0; i < 2 * ROWS; i++)
    rest[i] = 0.0;
  for (; j + HONE_GROUP <= columns; j += HONE_GROUP) {
    double q[HONE_GROUP];
    for (int g = 0; g < HONE_GROUP; g++)
      q[g] = creal(v[j + g]);
    for (int64_t from = 0; from < rows; from += ROWS) {
      const int now = (int)(rows - from < ROWS ? rows - from : ROWS);
      const hone_entry *b = a + from + j * lda;
      const double *restrict part = (const double *)b;
      double *restrict h = (double *)(hi + from), *restrict l =
                                                      (double *)(lo + from);
      for (int i = 0; i < 2 * now; i++) {
        double p[HONE_GROUP];
        for (int g = 0; g < HONE_GROUP; g++)
          p[g] = part[i + 2 * g * lda];
        hone_add_group_of_reals(p, q, &h[i], &l[i], &rest[i]);
      }
      add_moduli_of_rows(now, b, lda, q, sum + from);
    }
  }
  for (; j < columns; j++)
    for (int64_t i = 0; i < rows; i++) {
      hone_accumulate(a[i + j * lda], v[j], &hi[i], &lo[i]);
      sum[i] += hone_abs(a[i + j * lda]) * __builtin_fabs(creal(v[j]));
    }
}

#else

/* Partial sums of a column, and entries at once. */
enum { LANES = 16, BLOCK = LANES * HONE_GROUP };
_Static_assert(BLOCK * sizeof(hone_entry) == BLOCK_BYTES, "a block is copied");

/* The LANES partial sums begin as 0 and are added at the end, again without
   error. */
static void project_column(int64_t n, const hone_entry *restrict a,
                           const hone_entry *restrict v,
                           const hone_column_copy *copy, hone_entry *hi,
                           hone_entry *lo, double *sum) {
  hone_entry h[LANES] = {0.0}, l[LANES] = {0.0};
  double s[LANES] = {0.0};
  const bool streams = may_stream(copy);
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    fetch_ahead(a + i);
    if (copy->to != NULL)
      copy_block(a + i, copy->to + i, streams);
    for (int k = 0; k < LANES; k++) {
      hone_entry p[HONE_GROUP], q[HONE_GROUP];
      for (int g = 0; g < HONE_GROUP; g++) {
        p[g] = a[i + g * LANES + k];
        q[g] = v[i + g * LANES + k];
      }
      hone_add_group(p, q, &h[k], &l[k], &s[k]);
    }
  }
  if (copy->to != NULL)
    end_copy(n - i, a + i, copy->to + i, streams);
  for (; i < n; i++) {
    hone_accumulate(a[i], v[i], &h[i % LANES], &l[i % LANES]);
    s[i % LANES] += hone_abs(a[i]) * hone_abs(v[i]);
  }
  for (int k = 0; k < LANES; k++) {
    hone_accumulate(h[k], 1.0, hi, lo);
    *lo += l[k];
    *sum += s[k];
  }
}

static void project_rows(int64_t rows, int64_t columns, const hone_entry *a,
                         int64_t lda, const hone_entry *v,
                         hone_entry *restrict hi, hone_entry *restrict lo,
                         double *restrict sum) {
  int64_t j = 0;
  for (; j + HONE_GROUP <= columns; j += HONE_GROUP) {
    const hone_entry *restrict b = a + j * lda;
    hone_entry q[HONE_GROUP];
    for (int g = 0; g < HONE_GROUP; g++)
      q[g] = v[j + g];
    for (int64_t i = 0; i < rows; i++) {
      hone_entry p[HONE_GROUP];
      for (int g = 0; g < HONE_GROUP; g++)
        p[g] = b[i + g * lda];
      hone_add_group(p, q, &hi[i], &lo[i], &sum[i]);
    }
  }
  for (; j < columns; j++)
    for (int64_t i = 0; i < rows; i++) {
      hone_accumulate(a[i + j * lda], v[j], &hi[i], &lo[i]);
      sum[i] += hone_abs(a[i + j * lda]) * hone_abs(v[j]);
    }
}

#endif

const hone_projection_kernels JOIN(hone_projection_, PROJECTION_ISA) = {
    project_column, project_rows};
