/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that bring residuals of many right-hand sides up to date. They
   are compiled once for each instruction set, with STEPS_ISA as its name;
   steps.c chooses one at run time.

   A strip of rows of op(A) is packed block by block, and on the way every entry
   is split: a = a1 + a2, a1 being a multiple of 2^-HONE_STEP_BITS of a power of
   two above the largest entry of its row within the block. Products of a block
   are sums in double, which is exact for those of a1 with vectors of few bits;
   they are added to the residual in double-double. The denominators are
   products in single precision, rounded downwards.

   A complex column of op(A) counts as two real ones, of its real parts and of
   its imaginary parts, and a vector v as two, which make the two parts of the
   result: of Re v and -Im v, and of Im v and Re v. */
#include "base/isa.h"
#include "base/tile.h"
#include "cpu_dp/steps.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

enum {
  DEPTH = HONE_STEPS_DEPTH, /* real columns of a block, */
  BLOCK = HONE_STEPS_BLOCK, /* which are so many of op(A) */
  STRIP = HONE_STEPS_STRIP,
  ROWS = HONE_TILE_ROWS,
  FLOATS = HONE_TILE_FLOATS,
  COLUMNS = HONE_TILE_COLUMNS,
  LANES = HONE_VECTOR_BYTES / (int)sizeof(double),
  SINGLE_LANES = HONE_VECTOR_BYTES / (int)sizeof(float),
  REALS = HONE_STEPS_MOST * HONE_PARTS, /* vectors, at most */
  LINE = 8                              /* doubles of a cache line */
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
  _Alignas(64) float size[STRIP * BLOCK];  /* |a| / 2^exponent, tile by tile */
  _Alignas(64) double unit[STRIP]; /* added and subtracted, it rounds a to a1 */
  double above[STRIP]; /* a power of two above the row of a block, */
  double below[STRIP]; /* and its inverse */
  double weight[STRIP];
  _Alignas(64) double hi[REALS][STRIP], lo[REALS][STRIP];
  double den[HONE_STEPS_MOST][STRIP];
} strip;

/* ---- The vectors --------------------------------------------------------- */

/* Returns the number by which part 'row' of an entry of op(A) is multiplied
   for the given part of the result. */
INLINE double coefficient(hone_entry v, int64_t part, int row) {
#ifdef HONE_COMPLEX
  return row == part ? creal(v) : part == 0 ? -cimag(v) : cimag(v);
#else
  (void)part;
  (void)row;
  return v;
#endif
}

static void pack_sizes(const hone_steps_run *run, int64_t j, int64_t len) {
  const hone_residual_steps *job = run->job;
  float *to = run->sizes + j * run->padded;
  for (int64_t c0 = 0; c0 < run->padded; c0 += COLUMNS) {
    const int64_t width = HONE_MIN((int64_t)COLUMNS, run->padded - c0);
    for (int64_t q = 0; q < width; q++) {
      const int64_t c = c0 + q;
      const hone_entry *x = c < job->k ? job->x[c] + j : NULL;
      for (int64_t s = 0; s < len; s++)
        to[c0 * len + s * width + q] =
            x ? (float)(hone_abs(x[s]) * run->scale[c]) : 0.0F;
    }
  }
}

static void pack_vectors(const hone_steps_run *run, int64_t j) {
  const hone_residual_steps *job = run->job;
  const int64_t len = HONE_MIN((int64_t)BLOCK, run->n - j);
  const int64_t depth = len * HONE_PARTS, columns = run->padded * HONE_PARTS;
  double *to = run->v + j * HONE_PARTS * columns;
  for (int64_t c0 = 0; c0 < columns; c0 += COLUMNS) {
    const int64_t width = HONE_MIN((int64_t)COLUMNS, columns - c0);
    for (int64_t q = 0; q < width; q++) {
      const int64_t c = (c0 + q) / HONE_PARTS, part = (c0 + q) % HONE_PARTS;
      const hone_entry *v = c < job->k ? job->v[c] + j : NULL;
      for (int64_t s = 0; s < len; s++)
        for (int row = 0; row < HONE_PARTS; row++)
          to[c0 * depth + (s * HONE_PARTS + row) * width + q] =
              v ? coefficient(v[s], part, row) : 0.0;
    }
  }
  if (job->den)
    pack_sizes(run, j, len);
}

/* ---- The matrix ---------------------------------------------------------- */

/* Returns where the parts of the entries op(A)[i, j] begin. */
INLINE const double *entry_at(const hone_steps_run *run, int64_t i, int64_t j) {
  return (const double *)(run->a + (run->job->trans ? j + i * run->lda
                                                    : i + j * run->lda));
}

/* Returns the largest power of two that is at most v, or DBL_MIN. */
INLINE double leading_power(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  bits &= UINT64_C(0x7ff) << 52;
  memcpy(&v, &bits, sizeof v);
  return v >= DBL_MIN ? v : DBL_MIN;
}

/* The largest parts of the STRIP rows of len columns, which lie 'step' numbers
   apart. */
INLINE void measure_strip(const double *a, int64_t step, int64_t len,
                          double most[STRIP]) {
  enum { VECTORS = STRIP * HONE_PARTS / LANES };
  double part[STRIP][HONE_PARTS];
  /* The bit patterns of magnitudes order as these do. */
  magnitudes max[VECTORS] = {{0}};
  for (int64_t k = 0; k < len; k++)
#pragma GCC unroll 24
    for (int v = 0; v < VECTORS; v++) {
      const magnitudes size =
          *(const magnitudes *)(a + k * step + v * LANES) & INT64_MAX;
      const magnitudes larger = size > max[v];
      max[v] = (size & larger) | (max[v] & ~larger);
    }
  memcpy(part, max, sizeof part);
  for (int r = 0; r < STRIP; r++)
    most[r] = fmax(part[r][0], part[r][HONE_PARTS - 1]);
}

/* The largest parts of the rows of a block, and what follows from them. */
INLINE void measure_block(strip *s, int64_t j, int64_t len) {
  const hone_steps_run *run = s->run;
  const double *a = entry_at(run, s->i, j);
  const int64_t step = run->lda * HONE_PARTS, depth = len * HONE_PARTS;
  double most[STRIP] = {0.0};
  if (run->job->trans) {
    for (int64_t r = 0; r < s->rows; r++)
      for (int64_t k = 0; k < depth; k++)
        most[r] = fmax(most[r], fabs(a[k + r * step]));
  } else if (s->rows == STRIP) {
    measure_strip(a, step, len, most);
  } else {
    for (int64_t k = 0; k < len; k++)
      for (int64_t r = 0; r < s->rows * HONE_PARTS; r++)
        most[r / HONE_PARTS] =
            fmax(most[r / HONE_PARTS], fabs(a[r + k * step]));
  }
  for (int r = 0; r < STRIP; r++) {
    s->weight[r] += (double)depth * most[r];
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

/* Returns |a| 'below' for the entry with these parts, in single precision. */
INLINE float size_of(const double *a, double below) {
#ifdef HONE_COMPLEX
  const double re = a[0] * below, im = a[1] * below;
  return (float)sqrt(re * re + im * im);
#else
  return (float)(fabs(a[0]) * below);
#endif
}

/* Packs all STRIP rows of the block, whose columns lie 'step' numbers apart. */
INLINE void pack_strip(int part, bool sizes, strip *s, const double *a,
                       int64_t step, int64_t len) {
  for (int64_t k = 0; k < len; k++) {
    const double *from = a + k * step;
    for (int p = 0; p < HONE_PARTS; p++)
      for (int t = 0; t < STRIP / ROWS; t++)
        for (int r = 0; r < ROWS; r++)
          s->part[(t * DEPTH + k * HONE_PARTS + p) * ROWS + r] =
              take(part, from[(t * ROWS + r) * HONE_PARTS + p],
                   s->unit[t * ROWS + r]);
    for (int t = 0; sizes && t < STRIP / FLOATS; t++)
      for (int r = 0; r < FLOATS; r++)
        s->size[(t * BLOCK + k) * FLOATS + r] = size_of(
            from + (t * FLOATS + r) * HONE_PARTS, s->below[t * FLOATS + r]);
  }
}

/* Packs the block from column j on. */
INLINE void pack_block(int part, bool sizes, strip *s, int64_t j, int64_t len) {
  static const double zeros[HONE_PARTS] = {0.0};
  const hone_steps_run *run = s->run;
  const double *a = entry_at(run, s->i, j);
  const int64_t lda = run->lda * HONE_PARTS;
  const int64_t row_step = run->job->trans ? lda : HONE_PARTS;
  const int64_t step = run->job->trans ? HONE_PARTS : lda;
  if (s->rows == STRIP && !run->job->trans) {
    pack_strip(part, sizes, s, a, lda, len);
    return;
  }
  for (int64_t r = 0; r < STRIP; r++)
    for (int64_t k = 0; k < len; k++) {
      const double *v = r < s->rows ? a + r * row_step + k * step : zeros;
      for (int p = 0; p < HONE_PARTS; p++)
        s->part[(r / ROWS * DEPTH + k * HONE_PARTS + p) * ROWS + r % ROWS] =
            take(part, v[p], s->unit[r]);
      if (sizes)
        s->size[(r / FLOATS * BLOCK + k) * FLOATS + r % FLOATS] =
            size_of(v, s->below[r]);
    }
}

/* The lines of the next block, which are fetched while this one is used. */
typedef struct fetched {
  const double *from;
  int64_t step, line, lines; /* from one row of B to the next; from one tile to
                                the next */
} fetched;

/* With fewer than so many groups of vectors not all of it is fetched. Complex:
   the second half of the lines is of the block behind it. */
INLINE fetched next_block(const strip *s, int64_t j) {
  const hone_steps_run *run = s->run;
  if (j + BLOCK >= run->n)
    return (fetched){s->part, 0, 0, 0};
  if (run->job->trans)
    return (fetched){entry_at(run, s->i, j + BLOCK), run->lda * HONE_PARTS / 2,
                     LINE, DEPTH / LINE};
  return (fetched){entry_at(run, s->i, j + BLOCK), run->lda * HONE_PARTS, LINE,
                   STRIP * HONE_PARTS / LINE};
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
  const int64_t padded = run->padded, columns = padded * HONE_PARTS;
  const int64_t depth = len * HONE_PARTS, most = COLUMNS;
  const double *b = run->v + j * HONE_PARTS * columns;
  const float *x = run->sizes + j * padded;
  fetched next = next_block(s, j);
  for (int t = 0; t < STRIP / ROWS; t++) {
    const double *a = s->part + t * DEPTH * ROWS;
    int64_t c = 0;
    for (; c + most <= columns; c += most)
      subtract_tile(COLUMNS, depth, a, b + c * depth, &next, s, c, t * ROWS);
    if (c < columns)
      subtract_tile(HONE_TILE_LEAST, depth, a, b + c * depth, &next, s, c,
                    t * ROWS);
  }
  for (int t = 0; sizes && t < STRIP / FLOATS; t++) {
    const float *a = s->size + t * BLOCK * FLOATS;
    int64_t c = 0;
    for (; c + most <= padded; c += most)
      add_tile(COLUMNS, len, a, x + c * len, s, c, t * FLOATS);
    if (c < padded)
      add_tile(HONE_TILE_LEAST, len, a, x + c * len, s, c, t * FLOATS);
  }
}

/* ---- Strips -------------------------------------------------------------- */

/* Takes the parts of 'rows' entries apart. */
INLINE void take_apart(int64_t rows, const hone_entry *from,
                       double to[HONE_PARTS][STRIP]) {
  const double *parts = (const double *)from;
  for (int p = 0; p < HONE_PARTS; p++)
    for (int64_t r = 0; r < rows; r++)
      to[p][r] = parts[r * HONE_PARTS + p];
}

static void begin(strip *s) {
  const hone_residual_steps *job = s->run->job;
  memset(s->weight, 0, sizeof s->weight);
  for (int64_t c = 0; c < s->run->padded; c++) {
    double(*hi)[STRIP] = s->hi + c * HONE_PARTS;
    double(*lo)[STRIP] = s->lo + c * HONE_PARTS;
    memset(hi, 0, HONE_PARTS * sizeof *hi);
    memset(lo, 0, HONE_PARTS * sizeof *lo);
    memset(s->den[c], 0, sizeof s->den[c]);
    if (c >= job->k)
      continue;
    take_apart(s->rows, job->r[c] + s->i, hi);
    if (job->low)
      take_apart(s->rows, job->low[c] + s->i, lo);
  }
}

static void finish(const strip *s) {
  const hone_residual_steps *job = s->run->job;
  memcpy(job->weight + s->i, s->weight, (size_t)s->rows * sizeof s->weight[0]);
  for (int64_t c = 0; c < job->k; c++) {
    const double down = ROUNDED_DOWN / s->run->scale[c];
    double *r = (double *)(job->r[c] + s->i);
    double *low = job->low ? (double *)(job->low[c] + s->i) : NULL;
    for (int64_t i = 0; i < s->rows * HONE_PARTS; i++) {
      const double hi = s->hi[c * HONE_PARTS + i % HONE_PARTS][i / HONE_PARTS];
      const double lo = s->lo[c * HONE_PARTS + i % HONE_PARTS][i / HONE_PARTS];
      r[i] = hi + lo;
      if (low)
        low[i] = (hi - r[i]) + lo;
    }
    for (int64_t i = 0; job->den && i < s->rows; i++)
      job->den[c][s->i + i] =
          s->den[c][i] * down + hone_abs(job->b[c][s->i + i]);
  }
}

INLINE void blocks(int part, bool sizes, strip *s) {
  const int64_t n = s->run->n;
  for (int64_t j = 0; j < n; j += BLOCK) {
    const int64_t len = HONE_MIN((int64_t)BLOCK, n - j);
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
