/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of residual_kernels.c that computes rows of residuals of a complex
   A. Real and imaginary parts are apart in every array but A and the vectors,
   so that one vector instruction treats as many rows as for a real A. */
#ifndef HONE_RESIDUAL_COMPLEX_H
#define HONE_RESIDUAL_COMPLEX_H

enum { PIECE = 128 }; /* rows of GROUP columns that are taken apart at once */

typedef struct piece {
  double re[GROUP][PIECE], im[GROUP][PIECE], size[GROUP][PIECE];
} piece;

/* The accumulators of one right-hand side. */
typedef struct sums {
  double hi_re[ROWS], hi_im[ROWS], lo_re[ROWS], lo_im[ROWS], sum[ROWS];
} sums;

/* Takes rows 0 .. len-1 of GROUP columns, which lie lda apart; behind the last
   of w columns it is taken again. */
INLINE void take(int64_t len, int64_t w, const hone_entry *a, int64_t lda,
                 piece *to) {
  for (int64_t g = 0; g < GROUP; g++) {
    const double *restrict from =
        (const double *)(a + HONE_MIN(g, w - 1) * lda);
    double *restrict re = to->re[g], *restrict im = to->im[g];
    double *restrict size = to->size[g];
    for (int64_t i = 0; i < len; i++) {
      re[i] = from[2 * i];
      im[i] = from[2 * i + 1];
      size[i] = hone_abs(CMPLX(from[2 * i], from[2 * i + 1]));
    }
  }
}

/* Adds the products with x, of which nx is the negative, to rows at .. at+len-1
   of the accumulators. */
INLINE void add_piece(bool accurate, int64_t len, const piece *restrict a,
                      const hone_entry nx[GROUP], int64_t at,
                      sums *restrict to) {
  double *restrict hr = to->hi_re + at, *restrict hi = to->hi_im + at;
  double *restrict lr = to->lo_re + at, *restrict li = to->lo_im + at;
  double *restrict sum = to->sum + at;
  for (int g = 0; g < GROUP; g++) {
    const double xr = creal(nx[g]), xi = cimag(nx[g]), ax = hone_abs(nx[g]);
    const double *restrict re = a->re[g], *restrict im = a->im[g];
    const double *restrict size = a->size[g];
    for (int64_t i = 0; i < len; i++) {
      double p = hr[i], q = hi[i], s = lr[i], t = li[i];
      if (accurate) {
        hone_add_product(re[i], xr, &p, &s);
        hone_add_product(-im[i], xi, &p, &s);
        hone_add_product(re[i], xi, &q, &t);
        hone_add_product(im[i], xr, &q, &t);
        lr[i] = s;
        li[i] = t;
      } else {
        p = __builtin_fma(-im[i], xi, __builtin_fma(re[i], xr, p));
        q = __builtin_fma(im[i], xr, __builtin_fma(re[i], xi, q));
      }
      hr[i] = p;
      hi[i] = q;
      sum[i] = __builtin_fma(size[i], ax, sum[i]);
    }
  }
}

/* Computes rows i0 .. i0+len-1, len <= ROWS, for m right-hand sides. A is read
   once, GROUP columns at a time, for all of them. */
INLINE void row_block(bool accurate, const hone_residual_job *job, int64_t c0,
                      int64_t m, int64_t i0, int64_t len) {
  sums s[HONE_RESIDUAL_COLUMNS];
  piece a;
  const hone_dense *dense = hone_dense_of(job->a);
  const int64_t n = dense->n, lda = dense->lda;
  for (int64_t c = 0; c < m; c++)
    for (int64_t i = 0; i < len; i++) {
      const hone_entry b = job->b[c0 + c][i0 + i];
      s[c].hi_re[i] = creal(b);
      s[c].hi_im[i] = cimag(b);
      s[c].lo_re[i] = s[c].lo_im[i] = 0.0;
      s[c].sum[i] = hone_abs(b);
    }
  for (int64_t j = 0; j < n; j += GROUP) {
    const int64_t w = HONE_MIN((int64_t)GROUP, n - j);
    for (int64_t i = 0; i < len; i += PIECE) {
      const int64_t rows = HONE_MIN((int64_t)PIECE, len - i);
      take(rows, w, dense->a + i0 + i + j * lda, lda, &a);
      for (int64_t c = 0; c < m; c++) {
        hone_entry nx[GROUP] = {0.0};
        for (int64_t g = 0; g < w; g++)
          nx[g] = -job->x[c0 + c][j + g];
        add_piece(accurate, rows, &a, nx, i, &s[c]);
      }
    }
  }
  for (int64_t c = 0; c < m; c++)
    for (int64_t i = 0; i < len; i++) {
      job->r[c0 + c][i0 + i] =
          CMPLX(s[c].hi_re[i] + s[c].lo_re[i], s[c].hi_im[i] + s[c].lo_im[i]);
      job->den[c0 + c][i0 + i] = s[c].sum[i];
    }
}

#endif
