/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that bring residuals of many right-hand sides up to date. They
   are compiled once for each instruction set, with STEPS_ISA as its name;
   steps.c chooses one at run time.

   A strip of rows of op(A) is packed block by block, and on the way every entry
   is split: a = a1 + a2, a1 being a multiple of 2^-HONE_STEP_BITS of a power of
   two above the largest entry of its row within the block. Products of a block
   are sums in double, which is exact for those of a1 with vectors of few bits;
   they are added to the residual in double-double. The denominators are
   products in single precision, rounded downwards. */
#include "base/isa.h"
#include "base/tile.h"
#include "cpu_dp/steps.h"

#ifndef HONE_COMPLEX

#include <float.h>
#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

enum {
  DEPTH = HONE_STEPS_DEPTH,
  STRIP = HONE_STEPS_STRIP,
  ROWS = HONE_TILE_ROWS,
  FLOATS = HONE_TILE_FLOATS,
  COLUMNS = HONE_TILE_COLUMNS,
  LANES = HONE_VECTOR_BYTES / (int)sizeof(double),
  SINGLE_LANES = HONE_VECTOR_BYTES / (int)sizeof(float),
  LINE = 8 /* doubles of a cache line */
};

/* A sum of DEPTH products in single precision is at most so much too large. */
static const double ROUNDED_DOWN = 1.0 - 0x1p-16;

typedef int64_t magnitudes __attribute__((vector_size(HONE_VECTOR_BYTES),
                                          aligned(sizeof(double)), may_alias));

/* A strip of rows. */
typedef struct strip {
  const hone_steps_run *run;
  int64_t i, rows;
  _Alignas(64) double part[STRIP * DEPTH]; /* of a block, tile by tile */
  _Alignas(64) float size[STRIP * DEPTH];  /* |a| / 2^exponent, tile by tile */
  _Alignas(64) double unit[STRIP]; /* added and subtracted, it rounds a to a1 */
  double above[STRIP]; /* a power of two above the row of a block, */
  double below[STRIP]; /* and its inverse */
  double weight[STRIP];
  _Alignas(64) double hi[HONE_STEPS_MOST][STRIP], lo[HONE_STEPS_MOST][STRIP];
  double den[HONE_STEPS_MOST][STRIP];
} strip;

/* ---- The vectors --------------------------------------------------------- */

static void pack_vectors(const hone_steps_run *run, int64_t j) {
  const hone_residual_steps *job = run->job;
  const int64_t len = HONE_MIN((int64_t)DEPTH, run->n - j);
  double *to = run->v + j * run->columns;
  float *sizes = run->sizes + j * run->columns;
  for (int64_t c0 = 0; c0 < run->columns; c0 += COLUMNS) {
    const int64_t width = HONE_MIN((int64_t)COLUMNS, run->columns - c0);
    for (int64_t q = 0; q < width; q++) {
      const int64_t c = c0 + q;
      const double *v = c < job->k ? job->v[c] + j : NULL;
      for (int64_t s = 0; s < len; s++)
        to[c0 * len + s * width + q] = v ? v[s] : 0.0;
      const double *x = c < job->k && job->den ? job->x[c] + j : NULL;
      for (int64_t s = 0; job->den && s < len; s++)
        sizes[c0 * len + s * width + q] =
            x ? (float)(fabs(x[s]) * run->scale[c]) : 0.0F;
    }
  }
}

/* ---- The matrix ---------------------------------------------------------- */

/* Returns where the entries op(A)[i, j] begin. */
INLINE const double *entry_at(const hone_steps_run *run, int64_t i, int64_t j) {
  return run->a + (run->job->trans ? j + i * run->lda : i + j * run->lda);
}

/* Returns the largest power of two that is at most v, or DBL_MIN. */
INLINE double leading_power(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits &= UINT64_C(0x7ff) << 52;
  memcpy(&v, &bits, sizeof v);
  return v >= DBL_MIN ? v : DBL_MIN;
}

/* The largest entries of the rows of a block, and what follows from them. */
INLINE void measure_block(strip *s, int64_t j, int64_t len) {
  const hone_steps_run *run = s->run;
  const double *a = entry_at(run, s->i, j);
  double most[STRIP] = {0.0};
  if (run->job->trans) {
    for (int64_t r = 0; r < s->rows; r++)
      for (int64_t k = 0; k < len; k++)
        most[r] = fmax(most[r], fabs(a[k + r * run->lda]));
  } else if (s->rows == STRIP) {
    /* The bit patterns of magnitudes order as these do. */
    magnitudes max[STRIP / LANES] = {{0}};
    for (int64_t k = 0; k < len; k++)
#pragma GCC unroll 24
      for (int v = 0; v < STRIP / LANES; v++) {
        const magnitudes size =
            *(const magnitudes *)(a + k * run->lda + v * LANES) & INT64_MAX;
        const magnitudes larger = size > max[v];
        max[v] = (size & larger) | (max[v] & ~larger);
      }
    memcpy(most, max, sizeof most);
  } else {
    for (int64_t k = 0; k < len; k++)
      for (int64_t r = 0; r < s->rows; r++)
        most[r] = fmax(most[r], fabs(a[r + k * run->lda]));
  }
  for (int r = 0; r < STRIP; r++) {
    s->weight[r] += (double)len * most[r];
    s->above[r] = 2.0 * leading_power(most[r]);
    s->below[r] = 1.0 / s->above[r];
    s->unit[r] =
        1.5 * (double)(INT64_C(1) << (52 - HONE_STEP_BITS)) * s->above[r];
  }
}

INLINE double take(int part, double a, double unit) {
  const double a1 = (a + unit) - unit;
  return part == HONE_STEP_LEADING ? a1 : part == HONE_STEP_REST ? a - a1 : a;
}

/* Packs the block from column j on. */
INLINE void pack_block(int part, bool sizes, strip *s, int64_t j, int64_t len) {
  const hone_steps_run *run = s->run;
  const double *a = entry_at(run, s->i, j);
  const int64_t row_step = run->job->trans ? run->lda : 1;
  const int64_t step = run->job->trans ? 1 : run->lda;
  if (s->rows == STRIP && !run->job->trans) {
    for (int64_t k = 0; k < len; k++) {
      const double *from = a + k * run->lda;
      for (int t = 0; t < STRIP / ROWS; t++)
        for (int r = 0; r < ROWS; r++)
          s->part[(t * DEPTH + k) * ROWS + r] =
              take(part, from[t * ROWS + r], s->unit[t * ROWS + r]);
      for (int t = 0; sizes && t < STRIP / FLOATS; t++)
        for (int r = 0; r < FLOATS; r++)
          s->size[(t * DEPTH + k) * FLOATS + r] =
              (float)(fabs(from[t * FLOATS + r]) * s->below[t * FLOATS + r]);
    }
    return;
  }
  for (int64_t r = 0; r < STRIP; r++)
    for (int64_t k = 0; k < len; k++) {
      const double v = r < s->rows ? a[r * row_step + k * step] : 0.0;
      s->part[(r / ROWS * DEPTH + k) * ROWS + r % ROWS] =
          take(part, v, s->unit[r]);
      if (sizes)
        s->size[(r / FLOATS * DEPTH + k) * FLOATS + r % FLOATS] =
            (float)(fabs(v) * s->below[r]);
    }
}

/* The lines of the next block, which are fetched while this one is used. */
typedef struct fetched {
  const double *from;
  int64_t step, line, lines; /* from one row of B to the next; from one tile to
                                the next */
} fetched;

/* With fewer than so many groups of vectors not all of it is fetched. */
INLINE fetched next_block(const strip *s, int64_t j) {
  const hone_steps_run *run = s->run;
  if (j + DEPTH >= run->n)
    return (fetched){s->part, 0, 0, 0};
  if (run->job->trans)
    return (fetched){entry_at(run, s->i, j + DEPTH), run->lda / 2, LINE,
                     DEPTH / LINE};
  return (fetched){entry_at(run, s->i, j + DEPTH), run->lda, LINE,
                   STRIP / LINE};
}

INLINE const double *take_line(fetched *f, int64_t *step) {
  const double *from = f->from;
  *step = f->lines > 0 ? f->step : 0;
  if (f->lines > 0) {
    f->from += f->line;
    f->lines--;
  }
  return from;
}

/* ---- Products ------------------------------------------------------------ */

/* Subtracts the product of a tile with 'columns' vectors from the residuals. */
INLINE void subtract_tile(int columns, int64_t len, const double *a,
                          const double *b, fetched *f, strip *s, int64_t c0,
                          int row) {
  hone_doubles sum[COLUMNS][HONE_TILE_VECTORS];
  int64_t step;
  const double *from = take_line(f, &step);
  hone_tile_product(columns, len, a, b, from, step, sum);
#pragma GCC unroll 8
  for (int c = 0; c < columns; c++)
#pragma GCC unroll 3
    for (int v = 0; v < HONE_TILE_VECTORS; v++) {
      hone_doubles *hi = (hone_doubles *)(s->hi[c0 + c] + row + v * LANES);
      hone_doubles *lo = (hone_doubles *)(s->lo[c0 + c] + row + v * LANES);
      const hone_doubles p = -sum[c][v], h = *hi, t = h + p, z = t - h;
      *lo += (h - (t - z)) + (p - z);
      *hi = t;
    }
}

/* Adds those of sizes to the denominators. */
INLINE void add_tile(int columns, int64_t len, const float *a, const float *b,
                     strip *s, int64_t c0, int row) {
  hone_floats sum[COLUMNS][HONE_TILE_VECTORS];
  hone_tile_product_single(columns, len, a, b, s->part, 0, sum);
  for (int c = 0; c < columns; c++) {
    float out[FLOATS];
    memcpy(out, sum[c], sizeof out);
    for (int r = 0; r < FLOATS; r++)
      s->den[c0 + c][row + r] += (double)out[r] * s->above[row + r];
  }
}

/* Multiplies the packed block with all vectors. */
INLINE void multiply_block(bool sizes, strip *s, int64_t j, int64_t len) {
  const hone_steps_run *run = s->run;
  const double *b = run->v + j * run->columns;
  const float *x = run->sizes + j * run->columns;
  const int64_t whole = run->columns / COLUMNS * COLUMNS;
  fetched next = next_block(s, j);
  for (int t = 0; t < STRIP / ROWS; t++) {
    const double *a = s->part + t * DEPTH * ROWS;
    for (int64_t c = 0; c < whole; c += COLUMNS)
      subtract_tile(COLUMNS, len, a, b + c * len, &next, s, c, t * ROWS);
    if (whole < run->columns)
      subtract_tile(HONE_TILE_LEAST, len, a, b + whole * len, &next, s, whole,
                    t * ROWS);
  }
  for (int t = 0; sizes && t < STRIP / FLOATS; t++) {
    const float *a = s->size + t * DEPTH * FLOATS;
    for (int64_t c = 0; c < whole; c += COLUMNS)
      add_tile(COLUMNS, len, a, x + c * len, s, c, t * FLOATS);
    if (whole < run->columns)
      add_tile(HONE_TILE_LEAST, len, a, x + whole * len, s, whole, t * FLOATS);
  }
}

/* ---- Strips -------------------------------------------------------------- */

static void begin(strip *s) {
  const hone_residual_steps *job = s->run->job;
  memset(s->weight, 0, sizeof s->weight);
  for (int64_t c = 0; c < s->run->columns; c++) {
    memset(s->hi[c], 0, sizeof s->hi[c]);
    memset(s->lo[c], 0, sizeof s->lo[c]);
    memset(s->den[c], 0, sizeof s->den[c]);
    if (c >= job->k)
      continue;
    memcpy(s->hi[c], job->r[c] + s->i, (size_t)s->rows * sizeof s->hi[c][0]);
    if (job->low)
      memcpy(s->lo[c], job->low[c] + s->i,
             (size_t)s->rows * sizeof s->lo[c][0]);
  }
}

static void finish(const strip *s) {
  const hone_residual_steps *job = s->run->job;
  memcpy(job->weight + s->i, s->weight, (size_t)s->rows * sizeof s->weight[0]);
  for (int64_t c = 0; c < job->k; c++) {
    const double down = ROUNDED_DOWN / s->run->scale[c];
    for (int64_t r = 0; r < s->rows; r++) {
      const double sum = s->hi[c][r] + s->lo[c][r];
      job->r[c][s->i + r] = sum;
      if (job->low)
        job->low[c][s->i + r] = (s->hi[c][r] - sum) + s->lo[c][r];
    }
    for (int64_t r = 0; job->den && r < s->rows; r++)
      job->den[c][s->i + r] = s->den[c][r] * down + fabs(job->b[c][s->i + r]);
  }
}

INLINE void blocks(int part, bool sizes, strip *s) {
  const int64_t n = s->run->n;
  for (int64_t j = 0; j < n; j += DEPTH) {
    const int64_t len = HONE_MIN((int64_t)DEPTH, n - j);
    measure_block(s, j, len);
    pack_block(part, sizes, s, j, len);
    multiply_block(sizes, s, j, len);
  }
}

static void subtract_strip(const hone_steps_run *run, int64_t i) {
  const hone_residual_steps *job = run->job;
  strip s;
  s.run = run;
  s.i = i;
  s.rows = HONE_MIN((int64_t)STRIP, run->n - i);
  begin(&s);
  if (job->part == HONE_STEP_LEADING)
    blocks(HONE_STEP_LEADING, job->den != NULL, &s);
  else if (job->part == HONE_STEP_REST)
    blocks(HONE_STEP_REST, job->den != NULL, &s);
  else
    blocks(HONE_STEP_WHOLE, job->den != NULL, &s);
  finish(&s);
}

const hone_steps_kernels JOIN(hone_steps_, STEPS_ISA) = {pack_vectors,
                                                         subtract_strip};

#endif
