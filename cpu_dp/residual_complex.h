/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of residual_kernels.c that computes residuals of a complex A. Real
   and imaginary parts are apart in the accumulators, so that one vector
   instruction treats as many rows as for a real A. */
#ifndef HONE_RESIDUAL_COMPLEX_H
#define HONE_RESIDUAL_COMPLEX_H

enum { ROWS = 512 }; /* of the accumulators: 20 KB for a right-hand side */

/* The accumulators of one right-hand side. */
typedef struct sums {
  double hi_re[ROWS], hi_im[ROWS], lo_re[ROWS], lo_im[ROWS], sum[ROWS];
} sums;

/* The entries of -x that belong to GROUP columns. */
typedef struct factors {
  double re[GROUP], im[GROUP], minus_im[GROUP], size[GROUP];
} factors;

/* The moduli of A are roots of sums of squares, which underflow below 2^-511
   and overflow above 2^511. Where a sum of products of moduli with x is at most
   this part of max |x|, more than 2^-60 n of it may be missing. */
static const double MISSING_BELOW = 0x1p-450;

/* Takes w entries of x, and zeros behind them. */
INLINE void take_factors(int64_t w, const hone_entry *x, factors *to) {
  for (int g = 0; g < GROUP; g++) {
    const hone_entry nx = g < w ? -x[g] : 0.0;
    to->re[g] = creal(nx);
    to->im[g] = cimag(nx);
    to->minus_im[g] = -cimag(nx);
    to->size[g] = hone_abs(nx);
  }
}

/* Adds the products of one row of GROUP columns to accumulators. */
INLINE void add_row(bool accurate, const double re[GROUP],
                    const double im[GROUP], const double size[GROUP],
                    const factors *x, int64_t i, sums *s) {
  double p = s->hi_re[i], q = s->hi_im[i], u = s->lo_re[i], v = s->lo_im[i];
  double sum = s->sum[i];
  for (int g = 0; g < GROUP; g++) {
    if (accurate) {
      hone_add_product(re[g], x->re[g], &p, &u);
      hone_add_product(im[g], x->minus_im[g], &p, &u);
      hone_add_product(re[g], x->im[g], &q, &v);
      hone_add_product(im[g], x->re[g], &q, &v);
    } else {
      p = __builtin_fma(im[g], x->minus_im[g],
                        __builtin_fma(re[g], x->re[g], p));
      q = __builtin_fma(im[g], x->re[g], __builtin_fma(re[g], x->im[g], q));
    }
    sum = __builtin_fma(size[g], x->size[g], sum);
  }
  if (accurate) {
    hone_fold(&p, &u);
    hone_fold(&q, &v);
  }
  s->hi_re[i] = p;
  s->hi_im[i] = q;
  s->sum[i] = sum;
  if (accurate) {
    s->lo_re[i] = u;
    s->lo_im[i] = v;
  }
}

/* Adds the products with len rows of GROUP columns, of which the last may be
   the same, for m right-hand sides. */
INLINE void add_columns(bool accurate, int m, int64_t len,
                        const double *const column[GROUP], const factors *x,
                        sums *restrict s) {
  const double *restrict a0 = column[0], *restrict a1 = column[1];
  const double *restrict a2 = column[2], *restrict a3 = column[3];
  for (int64_t i = 0; i < len; i++) {
    const double re[GROUP] = {a0[2 * i], a1[2 * i], a2[2 * i], a3[2 * i]};
    const double im[GROUP] = {a0[2 * i + 1], a1[2 * i + 1], a2[2 * i + 1],
                              a3[2 * i + 1]};
    double size[GROUP];
    for (int g = 0; g < GROUP; g++)
      size[g] = sqrt(__builtin_fma(re[g], re[g], im[g] * im[g]));
    for (int c = 0; c < m; c++)
      add_row(accurate, re, im, size, &x[c], i, &s[c]);
  }
}

/* Adds the products of rows i0 .. i0+len-1 to sums, with moduli that neither
   underflow nor overflow. */
static void add_moduli(const hone_residual_job *job, int64_t c, int64_t i0,
                       int64_t len, double *restrict sum) {
  const hone_dense *dense = hone_dense_of(job->a);
  for (int64_t j = 0; j < dense->n; j++) {
    const hone_entry *a = dense->a + i0 + j * dense->lda;
    const double size = hone_abs(job->x[c][j]);
    for (int64_t i = 0; i < len; i++)
      sum[i] = __builtin_fma(hone_abs(a[i]), size, sum[i]);
  }
}

INLINE void begin_rows(const hone_residual_job *job, int64_t c, int64_t i0,
                       int64_t len, sums *s) {
  for (int64_t i = 0; i < len; i++) {
    const hone_entry b = job->b[c][i0 + i];
    s->hi_re[i] = creal(b);
    s->hi_im[i] = cimag(b);
    s->lo_re[i] = s->lo_im[i] = s->sum[i] = 0.0;
  }
}

/* Is nothing missing in this sum of products of moduli? */
INLINE bool is_whole(double sum, double least) {
  return sum > least && sum <= DBL_MAX;
}

/* Ends the sums of len rows. The residual may take the place of b. */
INLINE void finish_rows(const hone_residual_job *job, int64_t c, int64_t i0,
                        int64_t len, double least, sums *s) {
  double *den = job->den[c] + i0, *size_b = s->lo_re;
  bool whole = true;
  for (int64_t i = 0; i < len; i++) {
    const double re = s->hi_re[i] + s->lo_re[i];
    const double im = s->hi_im[i] + s->lo_im[i];
    size_b[i] = hone_abs(job->b[c][i0 + i]);
    job->r[c][i0 + i] = CMPLX(re, im);
    den[i] = s->sum[i] + size_b[i];
    whole = whole && is_whole(s->sum[i], least);
  }
  if (whole)
    return;
  add_moduli(job, c, i0, len, size_b);
  for (int64_t i = 0; i < len; i++)
    den[i] = is_whole(s->sum[i], least) ? den[i] : size_b[i];
}

/* Computes rows i0 .. i0+len-1, len <= ROWS, for m right-hand sides. A is read
   once, GROUP columns at a time, for all of them. */
INLINE void row_block_of(bool accurate, int m, const hone_residual_job *job,
                         int64_t c0, int64_t i0, int64_t len) {
  sums s[HONE_RESIDUAL_COLUMNS];
  factors x[HONE_RESIDUAL_COLUMNS];
  double most[HONE_RESIDUAL_COLUMNS] = {0.0};
  const hone_dense *dense = hone_dense_of(job->a);
  const int64_t n = dense->n;
  for (int c = 0; c < m; c++)
    begin_rows(job, c0 + c, i0, len, &s[c]);
  for (int64_t j = 0; j < n; j += GROUP) {
    const int64_t w = HONE_MIN((int64_t)GROUP, n - j);
    const double *column[GROUP];
    for (int64_t g = 0; g < GROUP; g++)
      column[g] = (const double *)(dense->a + i0 +
                                   (j + HONE_MIN(g, w - 1)) * dense->lda);
    for (int c = 0; c < m; c++) {
      take_factors(w, job->x[c0 + c] + j, &x[c]);
      for (int g = 0; g < GROUP; g++)
        most[c] = fmax(most[c], x[c].size[g]);
    }
    add_columns(accurate, m, len, column, x, s);
  }
  for (int c = 0; c < m; c++)
    finish_rows(job, c0 + c, i0, len, MISSING_BELOW * most[c], &s[c]);
}

INLINE void row_block(bool accurate, const hone_residual_job *job, int64_t c0,
                      int64_t m, int64_t i0, int64_t len) {
  if (m == 1)
    row_block_of(accurate, 1, job, c0, i0, len);
  else if (m == 2)
    row_block_of(accurate, 2, job, c0, i0, len);
  else if (m == 3)
    row_block_of(accurate, 3, job, c0, i0, len);
  else
    row_block_of(accurate, 4, job, c0, i0, len);
}

/* ---- Columns, for A^T ---------------------------------------------------- */

/* Rows of x whose parts are taken apart at once, and the partial sums of their
   products with a column of A. */
enum { PIECE = 256 };
typedef struct piece {
  double re[PIECE], im[PIECE], size[PIECE];
} piece;
typedef struct partial {
  double hi_re[LANES], hi_im[LANES], lo_re[LANES], lo_im[LANES], sum[LANES];
} partial;

/* The sums of one column: of all its rows so far. */
typedef struct column_sums {
  double hi_re, hi_im, lo_re, lo_im, sum;
} column_sums;

/* Takes -x apart, with zeros behind it. Returns the largest modulus. */
INLINE double take_piece(int64_t len, const hone_entry *x, piece *to) {
  double most = 0.0;
  for (int64_t i = 0; i < len; i++) {
    to->re[i] = -creal(x[i]);
    to->im[i] = -cimag(x[i]);
    to->size[i] = hone_abs(x[i]);
    most = to->size[i] > most ? to->size[i] : most;
  }
  for (int64_t i = len; i % LANES != 0; i++)
    to->re[i] = to->im[i] = to->size[i] = 0.0;
  return most;
}

/* Adds the products of LANES rows from the entries a on. */
INLINE void add_lanes(bool accurate, const double *restrict a,
                      const piece *restrict x, int64_t i, partial *restrict s) {
  for (int l = 0; l < LANES; l++) {
    const double re = a[2 * l], im = a[2 * l + 1];
    const double size = sqrt(__builtin_fma(re, re, im * im));
    const double xr = x->re[i + l], xi = x->im[i + l];
    if (accurate) {
      hone_add_product(re, xr, &s->hi_re[l], &s->lo_re[l]);
      hone_add_product(-im, xi, &s->hi_re[l], &s->lo_re[l]);
      hone_add_product(re, xi, &s->hi_im[l], &s->lo_im[l]);
      hone_add_product(im, xr, &s->hi_im[l], &s->lo_im[l]);
    } else {
      s->hi_re[l] = __builtin_fma(-im, xi, __builtin_fma(re, xr, s->hi_re[l]));
      s->hi_im[l] = __builtin_fma(im, xr, __builtin_fma(re, xi, s->hi_im[l]));
    }
    s->sum[l] = __builtin_fma(size, x->size[i + l], s->sum[l]);
  }
}

/* Adds the products of len rows of a column to its sums. */
INLINE void add_column(bool accurate, int64_t len, const hone_entry *a,
                       const piece *x, column_sums *to) {
  partial s = {{0.0}, {0.0}, {0.0}, {0.0}, {0.0}};
  int64_t i = 0;
  for (; i + LANES <= len; i += LANES)
    add_lanes(accurate, (const double *)(a + i), x, i, &s);
  if (i < len) {
    double rest[2 * LANES] = {0.0};
    memcpy(rest, a + i, (size_t)(len - i) * sizeof *a);
    add_lanes(accurate, rest, x, i, &s);
  }
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) {
      hone_add_product(s.hi_re[l + half], 1.0, &s.hi_re[l], &s.lo_re[l]);
      hone_add_product(s.hi_im[l + half], 1.0, &s.hi_im[l], &s.lo_im[l]);
      s.lo_re[l] += s.lo_re[l + half];
      s.lo_im[l] += s.lo_im[l + half];
      s.sum[l] += s.sum[l + half];
    }
  hone_add_product(s.hi_re[0], 1.0, &to->hi_re, &to->lo_re);
  hone_add_product(s.hi_im[0], 1.0, &to->hi_im, &to->lo_im);
  to->lo_re += s.lo_re[0];
  to->lo_im += s.lo_im[0];
  to->sum += s.sum[0];
}

/* Ends the sums of a column, which began with 0. */
INLINE void finish_column(const hone_residual_job *job, int64_t c, int64_t j,
                          double least, column_sums *s) {
  const hone_dense *dense = hone_dense_of(job->a);
  const hone_entry b = job->b[c][j], *a = dense->a + j * dense->lda;
  double sum = s->sum;
  if (!is_whole(sum, least)) {
    sum = 0.0;
    for (int64_t i = 0; i < dense->n; i++)
      sum = __builtin_fma(hone_abs(a[i]), hone_abs(job->x[c][i]), sum);
  }
  hone_add_product(creal(b), 1.0, &s->hi_re, &s->lo_re);
  hone_add_product(cimag(b), 1.0, &s->hi_im, &s->lo_im);
  job->r[c][j] = CMPLX(s->hi_re + s->lo_re, s->hi_im + s->lo_im);
  job->den[c][j] = sum + hone_abs(b);
}

/* Computes the residuals of 'count' <= BLOCK columns from j on. */
INLINE void column_block(bool accurate, const hone_residual_job *job,
                         int64_t c0, int64_t m, int64_t j, int64_t count) {
  const hone_dense *dense = hone_dense_of(job->a);
  const int64_t n = dense->n;
  column_sums s[HONE_RESIDUAL_COLUMNS][BLOCK];
  piece x[HONE_RESIDUAL_COLUMNS];
  double most[HONE_RESIDUAL_COLUMNS] = {0.0};
  memset(s, 0, sizeof s);
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t len = HONE_MIN((int64_t)PIECE, n - i);
    for (int64_t c = 0; c < m; c++)
      most[c] = fmax(most[c], take_piece(len, job->x[c0 + c] + i, &x[c]));
    for (int64_t q = 0; q < count; q++)
      for (int64_t c = 0; c < m; c++)
        add_column(accurate, len, dense->a + i + (j + q) * dense->lda, &x[c],
                   &s[c][q]);
  }
  for (int64_t c = 0; c < m; c++)
    for (int64_t q = 0; q < count; q++)
      finish_column(job, c0 + c, j + q, MISSING_BELOW * most[c], &s[c][q]);
}

#endif
