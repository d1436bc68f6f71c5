/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a null vector, in double precision. If S z = 0, then E z = z
   for E = I - inv(M) S, and powers of E take from any vector what they
   contract. A step is

     t = inv(M) p,    w = w - t,    p = p - S t        with p = S w

   Where t is small, S t is needed to few digits: p is computed in double-double
   once and by plain products from then on. The vector w that p belongs to is
   the sum of all terms without any rounding; it has more digits than double
   precision holds, and p can be smaller than the image of any vector in double.
   Rounding errors of the products S t are allowed for: at most n eps ||S||_1
   ||t||_1 each.

   If S is nearly but not exactly singular, E w = w has no solution, and w tends
   to a vector whose image is larger than the least possible by the ratio of the
   error of M to the smallest singular value of M. That ratio may be 1e5. It
   comes from the part of p along the left null vector u of M, which inv(M)
   magnifies. So where p no longer falls, u = inv(M^T) t is found (complex: with
   the adjoint for the transpose throughout), and from then on t = inv(M) p', p'
   being p but for one entry, such that u^T p' = 0. Then p
   tends to a multiple of that unit vector, and w to the column of inv(S) that
   has the largest 1-norm. If that is not enough, S may have several null
   vectors; more vectors u are found in the same way, and p' is p less its
   projection on all of them. Next to read: condition.c, which asks for the
   proof. */
#include "refine/null_search.h"

#include "base/vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { STEPS = 16, LEFT_VECTORS = 7 };
/* If a step leaves more than this part of ||p|| / ||w||, p no longer falls. */
static const double SHRINKS = 0.4;
/* The bound is good enough at this part of what a proof needs. */
static const double PLENTY = 0.25;
/* If p no longer falls and the bound is above this many times what a proof
   needs, there is no proof. */
static const double HOPELESS = 1e4;
/* There is none either if, with a vector u or more, it is above this many. */
static const double HOPELESS_AGAIN = 30.0;
/* If p changes by no more than this part of it, more vectors u do not help. */
static const double REST = 0.01;
/* If the corrections together are larger than this part of w / n, p is computed
   anew in double-double. */
static const double LARGE_CORRECTIONS = 0.05;
/* Entries of null vectors that are a smaller part of the largest are rounding
   errors. */
static const double NOTHING = 1e-10, LARGEST_INTEGER = 0x1p20;

int64_t hone_null_search_scratch(int64_t n) {
  return (3 + LEFT_VECTORS + HONE_PROBES_MOST + 2) * n;
}

bool hone_null_search_proves(const hone_null_search *search) {
  return search->least < HONE_EPS * search->norm1;
}

/* Makes the largest entry of v lie in [1/2, 1). Returns false if v is zero or
   not finite. */
static bool normalize(int64_t n, hone_entry *v) {
  const double size = hone_abs(v[hone_largest_at(n, v)]);
  if (!(size > 0.0) || !(size <= DBL_MAX) || !(hone_sum_abs(n, v) <= DBL_MAX))
    return false;
  const int e = -ilogb(size) - 1;
  for (int64_t i = 0; i < n; i++)
    v[i] = hone_shift_entry(v[i], e);
  return true;
}

/* The vectors of a search, n entries each. */
typedef struct vectors {
  int64_t n;
  hone_entry *p, *t, *q, *u, *work;
  int left; /* vectors in u, orthonormal */
} vectors;

/* Subtracts the projection on the first k vectors u. */
static void project_out(const vectors *x, hone_entry *v) {
  for (int k = 0; k < x->left; k++) {
    const hone_entry *u = x->u + k * x->n;
    hone_add_multiple(x->n, -hone_dot(x->n, u, v), u, v);
  }
}

/* Adds u = inv(M^H) t, the conjugate of inv(M^T) times that of t. Returns
   whether it could be had. */
static bool add_left(const hone_null_search *search, const hone_factored *f,
                     vectors *x) {
  const int64_t n = x->n;
  hone_entry *u = x->u + x->left * n;
  if (x->left == LEFT_VECTORS)
    return false;
  memcpy(u, x->t, (size_t)n * sizeof *u);
  hone_conjugate(n, u);
  if (hone_apply_inverse(f, true, !search->trans, 1, u, n, NULL, NULL) !=
      HONE_OK)
    return false;
  hone_conjugate(n, u);
  if (!normalize(n, u))
    return false;
  project_out(x, u);
  const double length = sqrt(hone_sum_of_squares(n, u));
  if (!(length > 0.0))
    return false;
  for (int64_t i = 0; i < n; i++)
    u[i] = u[i] / length;
  x->left++;
  return true;
}

/* t = inv(M) p'. */
static int correction(const hone_null_search *search, const hone_factored *f,
                      const vectors *x) {
  const int64_t n = x->n;
  memcpy(x->t, x->p, (size_t)n * sizeof *x->t);
  if (x->left == 1) {
    const int64_t at = hone_largest_at(n, x->u);
    x->t[at] -= hone_dot(n, x->u, x->t) / hone_conj(x->u[at]);
  } else {
    project_out(x, x->t);
  }
  return hone_apply_inverse(f, true, search->trans, 1, x->t, n, NULL, NULL);
}

static vectors lay_out(const hone_null_search *search) {
  const int64_t n = search->f->a->n;
  hone_entry *p = search->scratch, *u = p + 3 * n;
  return (vectors){.n = n,
                   .p = p,
                   .t = p + n,
                   .q = p + 2 * n,
                   .u = u,
                   .work = u + LEFT_VECTORS * n};
}

int hone_null_search_run(hone_null_search *search) {
  const double enough = HONE_EPS * search->norm1;
  hone_factored f = *search->f;
  vectors x = lay_out(search);
  const int64_t n = x.n;
  double corrections = 0.0, before = HONE_INF;
  bool known = false; /* p = op(S) w */
  f.space = NULL;
  f.deflation = NULL;
  search->least = HONE_INF;
  if (!normalize(n, search->v))
    return HONE_OK;
  for (int step = 0;; step++) {
    const double size = hone_sum_abs(n, search->v);
    if (!known) {
      search->passes += hone_multiply_accurately(&f, search->trans, 1,
                                                 search->v, x.p, x.work);
      corrections = 0.0;
    }
    const double image = hone_sum_abs(n, x.p) / size;
    const double rounding = (double)HONE_ROUNDINGS * (double)(n + 2) *
                            HONE_EPS * search->norm1 * corrections / size;
    search->least = fmin(search->least, image + rounding);
    if (search->least < PLENTY * enough || step == STEPS || !(image <= DBL_MAX))
      return HONE_OK;
    const double needed = log(image / enough) / log(before / image); /* steps */
    if (!(image <= SHRINKS * before && needed <= STEPS - step)) {
      const double hopeless = x.left == 0 ? HOPELESS : HOPELESS_AGAIN;
      const bool at_rest = x.left > 1 && fabs(image - before) <= REST * before;
      if (search->least < enough || at_rest || !(image < hopeless * enough) ||
          !add_left(search, &f, &x))
        return HONE_OK;
    }
    before = image;
    int st = correction(search, &f, &x);
    if (st != HONE_OK)
      return st;
    hone_add_multiple(n, -1.0, x.t, search->v);
    corrections += hone_sum_abs(n, x.t);
    known = (double)n * corrections <= LARGE_CORRECTIONS * size;
    if (!known)
      continue;
    search->passes += hone_multiply(&f, search->trans, 1, x.t, x.q, x.work);
    hone_add_multiple(n, -1.0, x.q, x.p);
  }
}

bool hone_null_search_exact(hone_null_search *search) {
  const vectors x = lay_out(search);
  const hone_entry *v = search->v;
  const double largest = hone_abs(v[hone_largest_at(x.n, v)]);
  int64_t unit = hone_largest_at(x.n, v);
  for (int64_t i = 0; i < x.n; i++)
    if (hone_abs(v[i]) > NOTHING * largest &&
        hone_abs(v[i]) < hone_abs(v[unit]))
      unit = i;
  if (!(largest <= LARGEST_INTEGER * hone_abs(v[unit])))
    return false;
  for (int64_t i = 0; i < x.n; i++)
    x.t[i] = hone_nearest(v[i] / v[unit]);
  search->passes +=
      hone_multiply_accurately(search->f, search->trans, 1, x.t, x.p, x.work);
  return hone_sum_abs(x.n, x.p) == 0.0;
}

int hone_null_search_begin(hone_null_search *search) {
  const hone_factored *f = search->f;
  uint64_t seed = 1;
  hone_probe_draw(f->a->n, &seed, search->v);
  int st = hone_apply_inverse(f, true, search->trans, 1, search->v, f->a->n,
                              NULL, NULL);
  return st == HONE_OK ? hone_null_search_run(search) : st;
}
