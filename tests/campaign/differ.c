/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems of many right-hand sides that differ as much as they can: in size, in
   the entries of x that are zero or small, and in the number of corrections
   that they need. A single call refines such columns together, and each of them
   leaves the loop, changes its kind of residuals or begins anew at a time of
   its own. */
#include "tests/campaign/campaign.h"

#include <math.h>
#include <stdlib.h>

/* Blocks of columns hold 32. From this many on, residuals of a CPU are products
   of pieces where the order is LARGE at least. */
enum { MANY = 16, LARGE = 400, MOST_BLOCKS = 4 };

/* How an x is made. */
enum {
  X_RANDOM,
  X_SPARSE,        /* two entries of three are zero */
  X_GRADED,        /* every entry has a size of its own, over 50 powers of 2 */
  X_IN_BLOCKS,     /* all entries but those of the slow blocks are small */
  X_BESIDE_BLOCKS, /* those of the slow blocks are small */
  X_ZERO,          /* in one case of four; random otherwise */
  X_KINDS
};

/* The exponent of the largest part of a number; 0 for zeros. */
static int exponent(int64_t count, const double *v) {
  double most = 0.0;
  for (int64_t i = 0; i < count; i++)
    most = fmax(most, fabs(v[i]));
  return most > 0.0 ? ilogb(most) : 0;
}

/* The exponent of the 1-norm of M, whose largest entry has the exponent 'size'.
 */
static int norm_exponent(const campaign_system *s, int size) {
  const int64_t count = s->n * s->parts;
  double most = 0.0;
  for (int64_t j = 0; j < s->n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
      sum += ldexp(fabs(s->m[i + j * count]), -size);
    most = fmax(most, sum);
  }
  return most > 0.0 ? size + ilogb(most) : 0;
}

/* Every second one of the first rows and columns gets a block

       s [ 2 - t      2 - e + t ]        e = 2^-23, |t| < e / 2,
         [ 2 - e + t  2 - t     ]

   and zeros beside it. t is lost in single precision, so that a correction
   leaves the part 2 t / e of an error along (1, -1), 0.4 to 0.8. The blocks are
   definite for s > 0. Where their norm is that of the matrix, its rcond is
   2^-25 (1 -+ 2 |t| / e), and residuals may still follow the steps of x. */
static void slow_blocks(campaign_system *s, gallery_rng *rng, int64_t blocks) {
  const int64_t n = s->n;
  const int parts = s->parts;
  const int norm = norm_exponent(s, exponent(parts * n * n, s->m));
  for (int64_t k = 0; k < n; k++)
    for (int64_t r = 0; r < 2 * blocks; r++)
      for (int part = 0; part < parts; part++) {
        s->m[(r + k * n) * parts + part] = 0.0;
        s->m[(k + r * n) * parts + part] = 0.0;
      }
  for (int64_t k = 0; k < 2 * blocks; k += 2) {
    const bool small = gallery_below(rng, 4) == 0;
    const int below = small ? (int)gallery_below(rng, 12) : 0;
    const double scale = ldexp(1.0, norm - 1 - below);
    const double part = gallery_between(rng, 0.4, 0.8);
    const double t = 0x1p-24 * (gallery_below(rng, 2) ? part : -part);
    const double even = scale * (2.0 - t), odd = scale * (2.0 - 0x1p-23 + t);
    s->m[(k + k * n) * parts] = s->m[(k + 1 + (k + 1) * n) * parts] = even;
    s->m[(k + 1 + k * n) * parts] = s->m[(k + (k + 1) * n) * parts] = odd;
  }
}

/* Draws x, n numbers, whose first rows are those of the blocks. */
static void draw_x(const campaign_system *s, gallery_rng *rng, int64_t rows,
                   double *x) {
  const int parts = s->parts;
  int64_t kind = gallery_below(rng, X_KINDS);
  if (kind == X_ZERO && gallery_below(rng, 4) > 0)
    kind = X_RANDOM;
  const int smaller = -5 - (int)gallery_below(rng, 41);
  for (int64_t i = 0; i < s->n * parts; i++) {
    const bool in_blocks = i / parts < rows;
    x[i] = gallery_between(rng, -1.0, 1.0);
    if (kind == X_ZERO || (kind == X_SPARSE && gallery_below(rng, 3)))
      x[i] = 0.0;
    if (kind == X_GRADED)
      x[i] = ldexp(x[i], -(int)gallery_below(rng, 50));
    if ((kind == X_IN_BLOCKS && !in_blocks) ||
        (kind == X_BESIDE_BLOCKS && in_blocks))
      x[i] = ldexp(x[i], smaller);
  }
  /* In two of three, x lies along directions that shrink slowly, or at once. */
  const int64_t way = gallery_below(rng, 3);
  const double sign = way == 0 ? -1.0 : 1.0;
  for (int64_t k = 0; way < 2 && k + 1 < rows; k += 2)
    for (int part = 0; part < parts; part++)
      x[(k + 1) * parts + part] = sign * x[k * parts + part];
}

/* Multiplies v by 2^shift, or by less: what has the exponent e with it is to be
   in range. */
static void resize(int64_t count, double *v, int e, int shift) {
  const int by = e + shift > 1020 ? 1020 - e : shift;
  for (int64_t i = 0; i < count; i++)
    v[i] = ldexp(v[i], by);
}

/* One right-hand side: of the gallery, or A x. Its size is its own. */
static void draw_column(campaign_system *s, gallery_rng *rng, int64_t rows,
                        int64_t c, double *x) {
  const int64_t count = s->n * s->parts;
  double *b = s->b + c * count;
  const bool far = gallery_below(rng, 8) == 0;
  const bool drawn = gallery_below(rng, 4) > 0;
  const int shift = ((int)gallery_below(rng, 81) - 40) * (far ? 6 : 1);
  if (drawn) {
    s->kinds[c] = GALLERY_B_DIFFERING;
    draw_x(s, rng, rows, x);
    resize(count, x, exponent(count * s->n, s->m) + ilogb((double)s->n) + 3,
           shift);
    either_product(s->parts, s->n, s->m, s->n, x, b);
  } else {
    s->kinds[c] = (int)gallery_below(rng, GALLERY_B_LEFT_NULL);
    either_rhs(s->kinds[c], s->parts, s->n, s->m, s->n, gallery_next(rng), b);
    resize(count, b, exponent(count, b), shift);
  }
}

const gallery_family *campaign_differ_family(gallery_rng *rng,
                                             const gallery_family *drawn) {
  return gallery_below(rng, 2) ? gallery_find("dominant") : drawn;
}

int64_t campaign_differ_order(gallery_rng *rng, int64_t most, int64_t drawn) {
  const int64_t large = gallery_below(rng, 2);
  const int64_t above = most < LARGE ? 0 : gallery_below(rng, most - LARGE + 1);
  return large && most >= LARGE ? LARGE + above : drawn;
}

int64_t campaign_differ_nrhs(gallery_rng *rng) {
  return MANY + gallery_below(rng, CAMPAIGN_MOST_RHS - MANY + 1);
}

void campaign_differ_matrix(campaign_system *s, gallery_rng *rng) {
  const int64_t blocks = 1 + gallery_below(rng, MOST_BLOCKS);
  const int64_t slow = gallery_below(rng, 4);
  const bool fixed = s->family->properties & (GALLERY_SINGULAR | GALLERY_RANGE);
  if (slow > 0 && !fixed && s->n >= 2 * blocks)
    slow_blocks(s, rng, blocks);
  if (gallery_below(rng, 3) == 0) /* slow columns may go on for long */
    s->options.max_iterations = 30 + (int32_t)gallery_below(rng, 200);
}

void campaign_differ_rhs(campaign_system *s, gallery_rng *rng) {
  double *x = malloc((size_t)(s->n * s->parts) * sizeof *x);
  const int64_t rows = s->n < 2 * MOST_BLOCKS ? s->n : 2 * MOST_BLOCKS;
  if (x == NULL)
    abort();
  for (int64_t c = 0; c < s->nrhs; c++)
    draw_column(s, rng, rows, c, x);
  free(x);
}
