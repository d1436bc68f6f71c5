/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a null vector, in double precision. If S z = 0, then E z = z
   for E = I - inv(M) S, and powers of E take from any vector what they
   contract. A step is

     t = -inv(M) S v,    S (v + t) = S v + S t,    v = v + t

   The left-hand side is computed by the sum: t is small and S t is needed to
   few digits, so that the product S v is computed in double-double once and the
   next ones in plain double. The vector w whose image is known in this way is
   the sum of v and all t without any rounding; it has more digits than double
   precision holds, and its image can be smaller than that of any vector in
   double. Rounding errors of the products S t are allowed for: at most n eps
   ||S||_1 ||t||_1 each. Next to read: condition.c, which asks for the proof. */
#include "refine/null_search.h"

#include "base/vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { STEPS = 6 };
/* A step that leaves more than this part of the image is the last. */
static const double SHRINKS = 0.1;
/* The bound is good enough at this part of what a proof needs. */
static const double PLENTY = 0.25;
/* If the corrections together are larger than this part of v / n, the image is
   computed anew in double-double. */
static const double LARGE_CORRECTIONS = 0.05;

int64_t hone_null_search_scratch(int64_t n) {
  return (3 + HONE_PROBES + 2) * n;
}

bool hone_null_search_proves(const hone_null_search *search) {
  return search->least < HONE_EPS * search->norm1;
}

/* Makes the largest entry of v lie in [1/2, 1). Returns false if v is zero or
   not finite. */
static bool normalize(int64_t n, hone_entry *v) {
  const double size = hone_abs(v[hone_largest_at(n, v)]);
  if (!(size > 0.0) || !(size <= DBL_MAX))
    return false;
  const int e = -ilogb(size) - 1;
  for (int64_t i = 0; i < n; i++)
    v[i] = hone_shift_entry(v[i], e);
  return true;
}

int hone_null_search_run(hone_null_search *search) {
  hone_factored f = *search->f;
  const int64_t n = f.a->n;
  hone_entry *v = search->v, *p = search->scratch, *t = p + n, *q = t + n;
  hone_entry *work = q + n;
  double corrections = 0.0, before = HONE_INF;
  bool known = false; /* p = op(S) w */
  f.space = NULL;
  f.deflation = NULL;
  search->least = HONE_INF;
  if (!normalize(n, v))
    return HONE_OK;
  for (int step = 0;; step++) {
    const double size = hone_sum_abs(n, v);
    if (!known) {
      search->passes +=
          hone_multiply_accurately(&f, search->trans, 1, v, p, work);
      corrections = 0.0;
    }
    const double image = hone_sum_abs(n, p);
    const double rounding =
        (double)(n + 2) * HONE_EPS * search->norm1 * corrections;
    search->least = fmin(search->least, (image + rounding) / size);
    if (search->least < PLENTY * HONE_EPS * search->norm1 || step == STEPS ||
        !(image <= SHRINKS * before))
      return HONE_OK;
    before = image;
    memcpy(t, p, (size_t)n * sizeof *t);
    int st = hone_apply_inverse(&f, true, search->trans, 1, t, n, NULL, NULL);
    if (st != HONE_OK)
      return st;
    hone_add_multiple(n, -1.0, t, v);
    corrections += hone_sum_abs(n, t);
    known = (double)n * corrections <= LARGE_CORRECTIONS * size;
    if (!known)
      continue;
    search->passes += hone_multiply(&f, search->trans, 1, t, q, work);
    hone_add_multiple(n, -1.0, q, p);
  }
}

int hone_null_search_begin(hone_null_search *search) {
  const hone_factored *f = search->f;
  uint64_t seed = 1;
  hone_probe_draw(f->a->n, &seed, search->v);
  int st = hone_apply_inverse(f, true, search->trans, 1, search->v, f->a->n,
                              NULL, NULL);
  return st == HONE_OK ? hone_null_search_run(search) : st;
}
