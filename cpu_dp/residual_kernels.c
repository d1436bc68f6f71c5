/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that compute residuals and their denominators, in double or in
   double-double precision. This file is compiled once for each instruction set,
   with RESIDUAL_ISA as its name; residual.c chooses one at run time.

   The accurate form adds every product without error (Ogita, Rump & Oishi 2005,
   Dot2; see exact.h), so that the result is as accurate as if it were summed in
   twice double precision and rounded once. The loops are kept plain so that the
   compiler turns them into vector instructions. */
#include "cpu_dp/residual.h"

#include "base/exact.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

enum {
  LANES = 16,          /* partial sums of a dot product */
  FOLDED = 64 * LANES, /* rows after which their pairs are folded */
  GROUP = 4,           /* columns added in one sweep over the accumulators */
  BLOCK = 64           /* columns of A^T that are treated together */
};

#define INLINE HONE_INLINE

#ifdef HONE_COMPLEX
#include "cpu_dp/residual_complex.h"
#else

enum { ROWS = 2048 }; /* of the accumulators: 48 KB for a right-hand side */

/* Subtracts a x from the pair (*hi, *lo) and adds |a x| to *sum; nx = -x and
   ax = |x|. */
INLINE void add_accurate(hone_entry a, hone_entry nx, double ax, hone_entry *hi,
                         hone_entry *lo, double *sum) {
  hone_accumulate(a, nx, hi, lo);
  *sum = __builtin_fma(hone_abs(a), ax, *sum);
}

/* Does the same with *hi in plain double precision. */
INLINE void add_plain(hone_entry a, hone_entry nx, double ax, hone_entry *hi,
                      double *sum) {
  hone_accumulate_plain(a, nx, hi);
  *sum = __builtin_fma(hone_abs(a), ax, *sum);
}

/* Adds len rows of GROUP columns, which lie lda apart, times x to the
   accumulators of one right-hand side. */
INLINE void sweep(bool accurate, int64_t len, const hone_entry *restrict a,
                  int64_t lda, const hone_entry *x, hone_entry *restrict hi,
                  hone_entry *restrict lo, double *restrict sum) {
  const hone_entry *restrict a0 = a, *restrict a1 = a + lda;
  const hone_entry *restrict a2 = a + 2 * lda, *restrict a3 = a + 3 * lda;
  hone_entry n0 = -x[0], n1 = -x[1], n2 = -x[2], n3 = -x[3];
  double m0 = hone_abs(n0), m1 = hone_abs(n1), m2 = hone_abs(n2);
  double m3 = hone_abs(n3);
  for (int64_t i = 0; i < len; i++) {
    hone_entry h = hi[i];
    double s = sum[i];
    if (accurate) {
      hone_entry l = lo[i];
      add_accurate(a0[i], n0, m0, &h, &l, &s);
      add_accurate(a1[i], n1, m1, &h, &l, &s);
      add_accurate(a2[i], n2, m2, &h, &l, &s);
      add_accurate(a3[i], n3, m3, &h, &l, &s);
      hone_fold(&h, &l);
      lo[i] = l;
    } else {
      add_plain(a0[i], n0, m0, &h, &s);
      add_plain(a1[i], n1, m1, &h, &s);
      add_plain(a2[i], n2, m2, &h, &s);
      add_plain(a3[i], n3, m3, &h, &s);
    }
    hi[i] = h;
    sum[i] = s;
  }
}

/* Does the same for a single column. */
INLINE void sweep_one(bool accurate, int64_t len, const hone_entry *restrict a,
                      hone_entry x, hone_entry *restrict hi,
                      hone_entry *restrict lo, double *restrict sum) {
  const hone_entry nx = -x;
  const double ax = hone_abs(x);
  for (int64_t i = 0; i < len; i++) {
    if (accurate)
      add_accurate(a[i], nx, ax, &hi[i], &lo[i], &sum[i]);
    else
      add_plain(a[i], nx, ax, &hi[i], &sum[i]);
  }
}

/* Computes rows i0 .. i0+len-1, len <= ROWS, for m right-hand sides. A is read
   once, GROUP columns at a time, for all of them. */
INLINE void row_block(bool accurate, const hone_residual_job *job, int64_t c0,
                      int64_t m, int64_t i0, int64_t len) {
  hone_entry hi[HONE_RESIDUAL_COLUMNS][ROWS], lo[HONE_RESIDUAL_COLUMNS][ROWS];
  double sum[HONE_RESIDUAL_COLUMNS][ROWS];
  const hone_dense *dense = hone_dense_of(job->a);
  const int64_t n = dense->n, lda = dense->lda;
  const hone_entry *a = dense->a + i0;
  for (int64_t c = 0; c < m; c++)
    for (int64_t i = 0; i < len; i++) {
      hi[c][i] = job->b[c0 + c][i0 + i];
      lo[c][i] = 0.0;
      sum[c][i] = hone_abs(hi[c][i]);
    }
  int64_t j = 0;
  for (; j + GROUP <= n; j += GROUP)
    for (int64_t c = 0; c < m; c++)
      sweep(accurate, len, a + j * lda, lda, job->x[c0 + c] + j, hi[c], lo[c],
            sum[c]);
  for (; j < n; j++)
    for (int64_t c = 0; c < m; c++)
      sweep_one(accurate, len, a + j * lda, job->x[c0 + c][j], hi[c], lo[c],
                sum[c]);
  for (int64_t c = 0; c < m; c++)
    for (int64_t i = 0; i < len; i++) {
      job->r[c0 + c][i0 + i] = hi[c][i] + lo[c][i];
      job->den[c0 + c][i0 + i] = sum[c][i];
    }
}

/* Computes r = b - a^T x and its denominator for one column a of n entries, in
   LANES partial sums, which are then added, again without error. */
INLINE void dot(bool accurate, int64_t n, const hone_entry *restrict a,
                const hone_entry *restrict x, hone_entry b, hone_entry *r,
                double *den) {
  hone_entry hi[LANES] = {0.0}, lo[LANES] = {0.0};
  double sum[LANES] = {0.0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (int l = 0; accurate && i % FOLDED == 0 && l < LANES; l++)
      hone_fold(&hi[l], &lo[l]);
    for (int l = 0; l < LANES; l++) {
      if (accurate)
        add_accurate(a[i + l], -x[i + l], hone_abs(x[i + l]), &hi[l], &lo[l],
                     &sum[l]);
      else
        add_plain(a[i + l], -x[i + l], hone_abs(x[i + l]), &hi[l], &sum[l]);
    }
  }
  for (int l = 0; i + l < n; l++) {
    if (accurate)
      add_accurate(a[i + l], -x[i + l], hone_abs(x[i + l]), &hi[l], &lo[l],
                   &sum[l]);
    else
      add_plain(a[i + l], -x[i + l], hone_abs(x[i + l]), &hi[l], &sum[l]);
  }
  hone_entry h = b, tail = 0.0;
  double d = hone_abs(b), ignored = 0.0;
  for (int l = 0; l < LANES; l++) {
    add_accurate(hi[l], 1.0, 0.0, &h, &tail, &ignored);
    tail += lo[l];
    d += sum[l];
  }
  *r = h + tail;
  *den = d;
}

INLINE void column_block(bool accurate, const hone_residual_job *job,
                         int64_t c0, int64_t m, int64_t j, int64_t count) {
  const hone_dense *dense = hone_dense_of(job->a);
  for (int64_t q = j; q < j + count; q++)
    for (int64_t c = c0; c < c0 + m; c++)
      dot(accurate, dense->n, dense->a + q * dense->lda, job->x[c],
          job->b[c][q], &job->r[c][q], &job->den[c][q]);
}

#endif

static void rows(const hone_residual_job *job, int64_t c0, int64_t m,
                 int64_t i0, int64_t i1) {
  for (int64_t i = i0; i < i1; i += ROWS) {
    int64_t len = HONE_MIN((int64_t)ROWS, i1 - i);
    if (job->accurate)
      row_block(true, job, c0, m, i, len);
    else
      row_block(false, job, c0, m, i, len);
  }
}

static void columns(const hone_residual_job *job, int64_t c0, int64_t m,
                    int64_t j0, int64_t j1) {
  for (int64_t j = j0; j < j1; j += BLOCK) {
    const int64_t count = HONE_MIN((int64_t)BLOCK, j1 - j);
    if (job->accurate)
      column_block(true, job, c0, m, j, count);
    else
      column_block(false, job, c0, m, j, count);
  }
}

const hone_residual_kernels JOIN(hone_residual_, RESIDUAL_ISA) = {
    .isa = TEXT(RESIDUAL_ISA), .rows = rows, .columns = columns};
