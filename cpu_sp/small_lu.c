/* SPDX-License-Identifier: BSD-3-Clause */
/* Right-looking LU by panels of four columns, all loops along contiguous
   rows of F^T, four rows by four panel columns in the update. Compiled for
   several vector widths; the compiler may contract to fused multiply-adds.

   Measured against OpenBLAS 0.3.21's sgetrf on two cores: docs/performance.md
   has the crossover. */
#include "cpu_sp/small_lu.h"

#include <math.h>
#include <string.h>

enum { PANEL = 4, LANES = 16 };

int64_t hone_small_lu_work(int64_t n) { return PANEL * n; }

/* Place of the largest magnitude in v[from .. n-1]. NaN is never chosen
   over a number. */
HONE_VECTOR static int64_t largest_at(int64_t n, const float *v, int64_t from) {
  float max[LANES] = {0.0F}, top = 0.0F;
  int64_t i = from;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++)
      max[l] = fabsf(v[i + l]) > max[l] ? fabsf(v[i + l]) : max[l];
  for (; i < n; i++)
    top = fabsf(v[i]) > top ? fabsf(v[i]) : top;
  for (int l = 0; l < LANES; l++)
    top = max[l] > top ? max[l] : top;
  for (i = from; i < n; i++)
    if (fabsf(v[i]) >= top)
      return i;
  return from;
}

HONE_VECTOR static void swap_rows(int64_t n, float *restrict a,
                                  float *restrict b) {
  for (int64_t i = 0; i < n; i++) {
    float t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

/* c[i] -= m v[i]. */
HONE_VECTOR static void axpy(int64_t n, float m, const float *restrict v,
                             float *restrict c) {
  for (int64_t i = 0; i < n; i++)
    c[i] -= m * v[i];
}

HONE_VECTOR static void scale(int64_t n, float m, float *restrict v) {
  for (int64_t i = 0; i < n; i++)
    v[i] *= m;
}

/* One row of the update: c -= m0 u0 + m1 u1 + m2 u2 + m3 u3. */
HONE_VECTOR static void update_1(int64_t n, const float *restrict m,
                                 int64_t ldm, const float *restrict u,
                                 int64_t ld, float *restrict c) {
  const float *u1 = u + ld, *u2 = u + 2 * ld, *u3 = u + 3 * ld;
  const float a = m[0], b = m[ldm], d = m[2 * ldm], e = m[3 * ldm];
  for (int64_t i = 0; i < n; i++)
    c[i] = c[i] - a * u[i] - b * u1[i] - d * u2[i] - e * u3[i];
}

/* Four rows at once: each row of U is read once for all of them. */
HONE_VECTOR static void update_4(int64_t n, const float *restrict m,
                                 int64_t ldm, const float *restrict u,
                                 int64_t ld, float *restrict c) {
  const float *u1 = u + ld, *u2 = u + 2 * ld, *u3 = u + 3 * ld;
  float *restrict c1 = c + ld, *restrict c2 = c + 2 * ld;
  float *restrict c3 = c + 3 * ld;
  float w[PANEL][PANEL];
  for (int q = 0; q < PANEL; q++)
    for (int r = 0; r < PANEL; r++)
      w[q][r] = m[q * ldm + r];
  for (int64_t i = 0; i < n; i++) {
    const float p = u[i], q = u1[i], r = u2[i], s = u3[i];
    c[i] = c[i] - w[0][0] * p - w[1][0] * q - w[2][0] * r - w[3][0] * s;
    c1[i] = c1[i] - w[0][1] * p - w[1][1] * q - w[2][1] * r - w[3][1] * s;
    c2[i] = c2[i] - w[0][2] * p - w[1][2] * q - w[2][2] * r - w[3][2] * s;
    c3[i] = c3[i] - w[0][3] * p - w[1][3] * q - w[2][3] * r - w[3][3] * s;
  }
}

/* LU of the panel F^T[k:n, k:k+w], held column by column in p (n each). The
   exchanges go through the whole rows of f and through p. */
static void factor_panel(int64_t n, int64_t k, int64_t w, float *f, int64_t ld,
                         int *pivot, float *p, int64_t *zero) {
  for (int64_t q = 0; q < w; q++) {
    float *column = p + q * n;
    const int64_t d = k + q;
    int64_t at = largest_at(n, column, d);
    pivot[d] = (int)at;
    if (at != d) {
      swap_rows(n, f + d * ld, f + at * ld);
      for (int64_t r = 0; r < w; r++) {
        float t = p[r * n + d];
        p[r * n + d] = p[r * n + at];
        p[r * n + at] = t;
      }
    }
    if (!(column[d] != 0.0F)) {
      if (*zero < 0)
        *zero = d;
      continue;
    }
    if (fabsf(1.0F / column[d]) <= 3e38F) {
      scale(n - d - 1, 1.0F / column[d], column + d + 1);
    } else {
      for (int64_t i = d + 1; i < n; i++)
        column[i] /= column[d];
    }
    for (int64_t r = q + 1; r < w; r++)
      axpy(n - d - 1, p[r * n + d], column + d + 1, p + r * n + d + 1);
  }
}

static void take_panel(int64_t n, int64_t k, int64_t w, const float *f,
                       int64_t ld, float *p) {
  for (int64_t i = k; i < n; i++)
    for (int64_t q = 0; q < w; q++)
      p[q * n + i] = f[i * ld + k + q];
}

static void put_panel(int64_t n, int64_t k, int64_t w, float *f, int64_t ld,
                      const float *p) {
  for (int64_t i = k; i < n; i++)
    for (int64_t q = 0; q < w; q++)
      f[i * ld + k + q] = p[q * n + i];
}

int64_t hone_small_lu(int64_t n, int64_t from, int64_t to, float *f, int64_t ld,
                      int *pivot, float *work) {
  int64_t zero = -1;
  for (int64_t k = from; k < to; k += PANEL) {
    const int64_t w = HONE_MIN((int64_t)PANEL, n - k), next = k + w;
    take_panel(n, k, w, f, ld, work);
    factor_panel(n, k, w, f, ld, pivot, work, &zero);
    put_panel(n, k, w, f, ld, work);
    if (next == n)
      break;
    /* U of the panel's rows: a unit lower solve of w rows. */
    for (int64_t q = 1; q < w; q++)
      for (int64_t r = 0; r < q; r++)
        axpy(n - next, work[r * n + k + q], f + (k + r) * ld + next,
             f + (k + q) * ld + next);
    int64_t i = next;
    for (; i + PANEL <= n; i += PANEL)
      update_4(n - next, work + i, n, f + k * ld + next, ld, f + i * ld + next);
    for (; i < n; i++)
      update_1(n - next, work + i, n, f + k * ld + next, ld, f + i * ld + next);
  }
  return zero;
}

/* Dot products of b with four rows at once, ld apart. */
HONE_VECTOR static void dot_4(int64_t n, const float *restrict a, int64_t ld,
                              const float *restrict b, float *restrict out) {
  const float *a1 = a + ld, *a2 = a + 2 * ld, *a3 = a + 3 * ld;
  float s = 0.0F, s1 = 0.0F, s2 = 0.0F, s3 = 0.0F;
#pragma omp simd reduction(+ : s, s1, s2, s3)
  for (int64_t i = 0; i < n; i++) {
    s += a[i] * b[i];
    s1 += a1[i] * b[i];
    s2 += a2[i] * b[i];
    s3 += a3[i] * b[i];
  }
  out[0] = s;
  out[1] = s1;
  out[2] = s2;
  out[3] = s3;
}

HONE_VECTOR static float dot(int64_t n, const float *restrict a,
                             const float *restrict b) {
  float s = 0.0F;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++)
    s += a[i] * b[i];
  return s;
}

/* out[q] = dot product of row q of a with b, for w <= PANEL rows. */
static void dot_rows(int64_t n, int64_t w, const float *a, int64_t ld,
                     const float *b, float *out) {
  if (w == PANEL) {
    dot_4(n, a, ld, b, out);
    return;
  }
  for (int64_t q = 0; q < w; q++)
    out[q] = dot(n, a + q * ld, b);
}

/* v = inv(U) inv(L) v, both by rows, PANEL rows at a time. */
static void solve_by_rows(int64_t n, const float *f, int64_t ld, float *v) {
  float sum[PANEL];
  for (int64_t i = 0; i < n; i += PANEL) {
    const int64_t w = HONE_MIN((int64_t)PANEL, n - i);
    dot_rows(i, w, f + i * ld, ld, v, sum);
    for (int64_t q = 0; q < w; q++) {
      for (int64_t r = 0; r < q; r++)
        sum[q] += f[(i + q) * ld + i + r] * v[i + r];
      v[i + q] -= sum[q];
    }
  }
  for (int64_t i = (n - 1) / PANEL * PANEL; i >= 0; i -= PANEL) {
    const int64_t w = HONE_MIN((int64_t)PANEL, n - i), next = i + w;
    dot_rows(n - next, w, f + i * ld + next, ld, v + next, sum);
    for (int64_t q = w - 1; q >= 0; q--) {
      for (int64_t r = q + 1; r < w; r++)
        sum[q] += f[(i + q) * ld + i + r] * v[i + r];
      v[i + q] = (v[i + q] - sum[q]) / f[(i + q) * ld + i + q];
    }
  }
}

/* c -= the w rows of u, each times its entry of m. */
static void subtract_rows(int64_t n, int64_t w, const float *m, const float *u,
                          int64_t ld, float *c) {
  if (w == PANEL) {
    update_1(n, m, 1, u, ld, c);
    return;
  }
  for (int64_t q = 0; q < w; q++)
    axpy(n, m[q], u + q * ld, c);
}

/* v = inv(L^T) inv(U^T) v: rows of U and L are columns of their transposes. */
static void solve_by_columns(int64_t n, const float *f, int64_t ld, float *v) {
  for (int64_t k = 0; k < n; k += PANEL) {
    const int64_t w = HONE_MIN((int64_t)PANEL, n - k), next = k + w;
    for (int64_t q = k; q < next; q++) {
      v[q] /= f[q * ld + q];
      for (int64_t r = q + 1; r < next; r++)
        v[r] -= v[q] * f[q * ld + r];
    }
    subtract_rows(n - next, w, v + k, f + k * ld + next, ld, v + next);
  }
  for (int64_t k = (n - 1) / PANEL * PANEL; k >= 0; k -= PANEL) {
    const int64_t w = HONE_MIN((int64_t)PANEL, n - k);
    for (int64_t q = k + w - 1; q > k; q--)
      for (int64_t r = k; r < q; r++)
        v[r] -= v[q] * f[q * ld + r];
    subtract_rows(k, w, v + k, f + k * ld, ld, v);
  }
}

void hone_small_solve(int64_t n, const float *f, int64_t ld, const int *pivot,
                      bool trans, float *v) {
  if (trans) { /* L U x = P v */
    for (int64_t k = 0; k < n; k++) {
      float t = v[k];
      v[k] = v[pivot[k]];
      v[pivot[k]] = t;
    }
    solve_by_rows(n, f, ld, v);
    return;
  }
  solve_by_columns(n, f, ld, v);
  for (int64_t k = n - 1; k >= 0; k--) { /* x = P^T z */
    float t = v[k];
    v[k] = v[pivot[k]];
    v[pivot[k]] = t;
  }
}
