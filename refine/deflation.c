/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the directions to deflate, in double precision: powers of E = I -
   inv(M) S applied to a few vectors converge to what E leaves long, by the
   factor that M contracts everything else (about 1e-6 in single precision), and
   so do those of I - inv(M^T) S^T. Three powers reach the rounding of double,
   the last one with products in double-double. Next to read: deflation.h for
   their use, condition.c for when. */
#include "refine/deflation.h"

#include "base/vectors.h"
#include "refine/condition.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
  POWERS = 3,
  /* More than can be deflated, so that too many directions are noticed. Where E
     leaves eight directions at their full length, the last of them seems
     shorter than NEGLIGIBLE_LENGTH in 3 % of the draws of ten vectors
     (chi-squared with three degrees of freedom), and in 38 % of those of eight.
   */
  DRAWN = HONE_DEFLATED_MOST + 3
};
/* A vector that one power of E makes shorter than this needs no deflation:
   factors that leave as much everywhere are used as they are, with the second
   power. (With 0.004, more than seven directions were found where an arithmetic
   spectrum ends in one tiny singular value, so that none was deflated.
   docs/performance.md has the times with others.) What is shorter than ROUNDING
   of the longest is rounding error of the solves in single precision. */
static const double NEGLIGIBLE_LENGTH = 0.5, ROUNDING = 1e-5;
/* U^T S Z of null vectors, which may be exactly zero, counts as at least this
   part of eps ||S||_1. */
static const double LEAST_IMAGE = 0x1p-10;

int64_t hone_deflation_entries(int64_t n) { return 4 * n * HONE_DEFLATED_MOST; }

hone_deflation hone_deflation_make(int64_t n, hone_entry *memory) {
  const int64_t size = n * HONE_DEFLATED_MOST;
  return (hone_deflation){.n = n,
                          .z = memory,
                          .u = memory + size,
                          .c = memory + 2 * size,
                          .w = memory + 3 * size};
}

/* Makes the k vectors v orthonormal, the longest first, and leaves out what is
   then shorter than 'least' (modified Gram-Schmidt with pivoting). Returns how
   many remain. */
static int orthonormalize(int64_t n, int k, double least, hone_entry *v) {
  int count = 0;
  for (; count < k; count++) { /* the first one is the longest of all */
    int at = count;
    double longest = -1.0;
    for (int c = count; c < k; c++) {
      const double square = hone_sum_of_squares(n, v + c * n);
      if (square > longest) {
        longest = square;
        at = c;
      }
    }
    if (!(sqrt(longest) > least) || !(longest <= DBL_MAX))
      break;
    if (count == 0 && least > 0.0)
      least = fmax(least, ROUNDING * sqrt(longest));
    hone_entry *to = v + count * n, *from = v + at * n;
    for (int64_t i = 0; i < n; i++) {
      const hone_entry other = to[i];
      to[i] = from[i] / sqrt(longest);
      if (from != to)
        from[i] = other;
    }
    for (int c = count + 1; c < k; c++)
      for (int pass = 0; pass < 2; pass++) /* twice, against cancellation */
        hone_add_multiple(n, -hone_dot(n, to, v + c * n), to, v + c * n);
  }
  return count;
}

/* A search for directions. */
typedef struct search {
  const hone_factored *f; /* without deflation and without a space */
  int64_t n;
  hone_entry *v, *p, *work;
  int *passes;
} search;

/* v = E v for k columns, or with the transpose. */
static int apply_power(const search *s, bool trans, bool accurately, int k) {
  *s->passes +=
      accurately ? hone_multiply_accurately(s->f, trans, k, s->v, s->p, s->work)
                 : hone_multiply(s->f, trans, k, s->v, s->p, s->work);
  int st = hone_apply_inverse(s->f, true, trans, k, s->p, s->n, NULL, NULL);
  hone_add_multiple(k * s->n, -1.0, s->p, s->v);
  return st;
}

/* Finds at most *k directions and writes them to 'out'. *k becomes how many
   there are; 0 also where they cannot be told apart. */
static int find(const search *s, bool trans, double least, int *k,
                hone_entry *out) {
  uint64_t seed = trans ? 2 : 1;
  int count = *k;
  *k = 0;
  for (int c = 0; c < count; c++)
    hone_probe_draw(s->n, &seed, s->v + c * s->n);
  for (int power = 0; power < POWERS; power++) {
    int st = apply_power(s, trans, power == POWERS - 1, count);
    if (st != HONE_OK)
      return st;
    const int remaining =
        orthonormalize(s->n, count, power == 0 ? least : 0.0, s->v);
    if (remaining == 0 || remaining > HONE_DEFLATED_MOST ||
        (power > 0 && remaining < count))
      return HONE_OK;
    count = remaining;
  }
  *k = count;
  memcpy(out, s->v, (size_t)(count * s->n) * sizeof *out);
  return HONE_OK;
}

/* Inverts the k x k matrix g in place (Gauss-Jordan with row exchanges).
   Returns false if it is singular or not finite. */
static bool invert(int k, hone_entry *g) {
  int from[HONE_DEFLATED_MOST];
  for (int p = 0; p < k; p++) {
    int at = p;
    for (int i = p + 1; i < k; i++)
      if (hone_abs(g[i + p * k]) > hone_abs(g[at + p * k]))
        at = i;
    const hone_entry pivot = g[at + p * k];
    if (!(hone_abs(pivot) >= DBL_MIN) || !(hone_abs(pivot) <= DBL_MAX))
      return false;
    from[p] = at;
    for (int j = 0; j < k; j++) {
      const hone_entry other = g[p + j * k];
      g[p + j * k] = g[at + j * k];
      g[at + j * k] = other;
    }
    g[p + p * k] = 1.0;
    for (int j = 0; j < k; j++)
      g[p + j * k] /= pivot;
    for (int i = 0; i < k; i++) {
      const hone_entry by = g[i + p * k];
      if (i == p)
        continue;
      g[i + p * k] = 0.0;
      for (int j = 0; j < k; j++)
        g[i + j * k] -= by * g[p + j * k];
    }
  }
  for (int p = k - 1; p >= 0; p--)
    for (int i = 0; from[p] != p && i < k; i++) {
      const hone_entry other = g[i + p * k];
      g[i + p * k] = g[i + from[p] * k];
      g[i + from[p] * k] = other;
    }
  for (int i = 0; i < k * k; i++)
    if (!(hone_abs(g[i]) <= DBL_MAX))
      return false;
  return true;
}

int hone_deflate(const hone_factored *f, hone_entry *scratch, int *passes,
                 hone_deflation *d, double *least) {
  const int64_t n = f->a->n, size = DRAWN * n;
  hone_factored alone = *f;
  const search s = {.f = &alone,
                    .n = n,
                    .v = scratch,
                    .p = scratch + size,
                    .work = scratch + 2 * size,
                    .passes = passes};
  alone.space = NULL;
  alone.deflation = NULL;
  d->count = 0;
  int right = DRAWN;
  int st = find(&s, false, NEGLIGIBLE_LENGTH, &right, d->z);
  int left = right;
  if (st == HONE_OK && right > 0)
    st = find(&s, true, 0.0, &left, d->u);
  if (st != HONE_OK || right == 0 || left != right)
    return st;
  *passes += hone_multiply_accurately(&alone, false, right, d->z, d->c, s.work);
  *passes += hone_multiply_accurately(&alone, true, right, d->u, d->w, s.work);
  for (int i = 0; i < right; i++)
    *least = fmin(*least, hone_sum_abs(n, d->c + i * n) /
                              hone_sum_abs(n, d->z + i * n));
  for (int j = 0; j < right; j++)
    for (int i = 0; i < right; i++)
      d->inverse[i + j * right] = hone_dot_plain(n, d->w + i * n, d->z + j * n);
  if (invert(right, d->inverse))
    d->count = right;
  return HONE_OK;
}

/* Scales v to length 1; 0, Inf and NaN stay. */
static void normalize(int64_t n, hone_entry *v) {
  const double length = sqrt(hone_sum_of_squares(n, v));
  for (int64_t i = 0; i < n && length > 0.0; i++)
    v[i] = v[i] / length;
}

int hone_deflate_null(const hone_factored *f, double norm1, hone_entry *scratch,
                      int *passes, hone_deflation *d) {
  const int64_t n = f->a->n;
  hone_entry *p = scratch, *work = scratch + n;
  hone_factored alone = *f;
  alone.space = NULL;
  alone.deflation = NULL;
  d->count = 0;
  normalize(n, d->z);
  memcpy(d->u, d->z, (size_t)n * sizeof *d->u);
  hone_conjugate(n, d->u); /* inverse iteration goes with the adjoint */
  int st = hone_apply_inverse(&alone, true, true, 1, d->u, n, NULL, NULL);
  normalize(n, d->u);
  for (int power = 1; power < POWERS && st == HONE_OK; power++) {
    *passes += hone_multiply(&alone, true, 1, d->u, p, work);
    st = hone_apply_inverse(&alone, true, true, 1, p, n, NULL, NULL);
    hone_add_multiple(n, -1.0, p, d->u);
    normalize(n, d->u);
  }
  if (st != HONE_OK)
    return st;
  *passes += hone_multiply_accurately(&alone, false, 1, d->z, d->c, work);
  *passes += hone_multiply_accurately(&alone, true, 1, d->u, d->w, work);
  const hone_entry image = hone_dot_plain(n, d->w, d->z);
  const double least = LEAST_IMAGE * HONE_EPS * norm1;
  d->inverse[0] = 1.0 / (hone_abs(image) >= least ? image : least);
  d->count = hone_abs(d->inverse[0]) <= DBL_MAX;
  return HONE_OK;
}

void hone_deflation_project(const hone_deflation *d, bool trans,
                            const hone_entry *r, hone_entry *coefficient) {
  const hone_entry *left = trans ? d->z : d->u;
  for (int i = 0; i < d->count; i++)
    coefficient[i] = hone_dot_plain(d->n, left + i * d->n, r);
}

void hone_deflation_correct(const hone_deflation *d, bool trans,
                            const hone_entry *coefficient, hone_entry *y) {
  const int k = d->count;
  const hone_entry *product = trans ? d->c : d->w;
  const hone_entry *right = trans ? d->u : d->z;
  hone_entry rest[HONE_DEFLATED_MOST];
  for (int i = 0; i < k; i++)
    rest[i] = coefficient[i] - hone_dot_plain(d->n, product + i * d->n, y);
  for (int i = 0; i < k; i++) {
    hone_entry by = 0.0;
    for (int j = 0; j < k; j++)
      by += (trans ? d->inverse[j + i * k] : d->inverse[i + j * k]) * rest[j];
    hone_add_multiple(d->n, by, right + i * d->n, y);
  }
}
