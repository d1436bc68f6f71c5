/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and columns are scaled by powers of two first, so that no pivot leaves
   the range of double: F = R A C = P^T L U. With E = I - inv(P^T L U) F,
   det F = det(P^T L U) det(I - E), and det(I - E) > 0 for a real E whose norm
   is below 1, as I - t E is regular for t from 0 to 1. Random vectors bound the
   norm (base/probe_factor.h). Rows levelled once may leave large entries where
   they decide all pivots, though a product of small ones is the determinant:
   where the bound is not small, a matching finds other scalings. */
#include "cpu_batch/determinant.h"

#include "base/probe_factor.h"
#include "base/vectors.h"
#include "cpu_batch/matching.h"
#include "cpu_factor/apply.h"
#include "cpu_factor/factor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
  BITS = 64 * HONE_PARTS,
  PROBES = 12 / HONE_PARTS,
  FARTHEST = 4000 /* beyond the range of exponents */
};
static const double SMALL_ENOUGH = 0.9; /* a bound on ||E||, below 1 */
static const double LARGEST_INVERSE = 0x1p500;

/* The memory of a call. */
typedef struct parts {
  int64_t n;
  hone_entry *f;      /* n x n: the factors of R A C */
  hone_entry *v, *y;  /* n x PROBES each */
  int64_t *row, *col; /* exponents of R and C */
  int *pivot;
  void *work;
} parts;

/* Unlike |v| it does not overflow. */
static double largest_part(hone_entry v) {
  return fmax(fabs(hone_real(v)), fabs(hone_imag(v)));
}

/* R levels the rows, and C then the columns. Rows and columns of zeros stay as
   they are. */
static void level(const hone_determinant_job *job, const parts *p) {
  const int64_t n = job->n;
  for (int64_t i = 0; i < n; i++) {
    double most = 0.0;
    for (int64_t j = 0; j < n; j++)
      most = fmax(most, largest_part(job->a[i + j * job->lda]));
    p->row[i] = most > 0.0 ? -ilogb(most) : 0;
  }
  for (int64_t j = 0; j < n; j++) {
    const hone_entry *a = job->a + j * job->lda;
    int64_t top = INT_MIN;
    for (int64_t i = 0; i < n; i++) {
      const double size = largest_part(a[i]);
      top = size > 0.0 ? HONE_MAX(top, ilogb(size) + p->row[i]) : top;
    }
    p->col[j] = top > INT_MIN ? -top : 0;
  }
}

/* R and C by a matching. Returns false if there is none, or no memory. */
static bool match(const hone_determinant_job *job, const parts *p,
                  hone_mem *mem) {
  const int64_t n = job->n;
  int32_t *exponent = hone_mem_get(mem, (size_t)(n * n) * sizeof *exponent);
  int64_t *work = hone_mem_get(mem, (size_t)(4 * (n + 1)) * sizeof *work);
  bool found = exponent != NULL && work != NULL;
  for (int64_t j = 0; found && j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double size = largest_part(job->a[i + j * job->lda]);
      exponent[i + j * n] = size > 0.0 ? ilogb(size) : HONE_NO_EXPONENT;
    }
  found = found && hone_match(n, exponent, p->row, p->col, work);
  hone_mem_put(mem, work);
  hone_mem_put(mem, exponent);
  return found;
}

static int exponent_at(const parts *p, int64_t i, int64_t j) {
  const int64_t e = p->row[i] + p->col[j];
  return (int)HONE_MIN(HONE_MAX(e, (int64_t)-FARTHEST), (int64_t)FARTHEST);
}

/* f = R A C. Returns false if that is not exact, since entries became too
   small. */
static bool scale(const hone_determinant_job *job, const parts *p) {
  bool exact = true;
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->n; i++) {
      const hone_entry a = job->a[i + j * job->lda];
      const int e = exponent_at(p, i, j);
      const hone_entry f = hone_shift_entry(a, e);
      const hone_entry back = hone_shift_entry(f, -e);
      exact = exact && hone_real(back) == hone_real(a) &&
              hone_imag(back) == hone_imag(a);
      p->f[i + j * p->n] = f;
    }
  return exact;
}

/* The product of the pivots with the sign of the exchanges. */
static void multiply_pivots(const parts *p, hone_determinant_value *out) {
  hone_entry product = 1.0;
  int64_t exponent = 0;
  for (int64_t i = 0; i < p->n; i++)
    exponent -= p->row[i] + p->col[i];
  for (int64_t i = 0; i < p->n; i++) {
    const hone_entry u = p->f[i + i * p->n];
    product *= p->pivot[i] == (int)i + 1 ? u : -u;
    const double size = hone_abs(product);
    if (!(size > 0.0))
      break;
    const int e = ilogb(size);
    product = hone_shift_entry(product, -e);
    exponent += e;
  }
  const double size = hone_abs(product);
  const hone_entry sign = size > 0.0 ? product / size : 0.0;
  out->log_abs = log(size) + (double)exponent * log(2.0);
  out->re = hone_real(sign);
  out->im = hone_imag(sign);
}

/* y = F v for random vectors v. */
static void multiply(const hone_determinant_job *job, const parts *p) {
  const int64_t n = p->n;
  uint64_t seed = job->seed;
  hone_random_units(HONE_PARTS * PROBES * n, &seed, (double *)p->v);
  memset(p->y, 0, (size_t)(PROBES * n) * sizeof *p->y);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const hone_entry f =
          hone_shift_entry(job->a[i + j * job->lda], exponent_at(p, i, j));
      for (int64_t c = 0; c < PROBES; c++)
        p->y[i + c * n] += f * p->v[j + c * n];
    }
}

/* y = inv(P^T L U) y */
static void substitute(const parts *p) {
  const hone_factors factors = {.form = HONE_FORM_LU,
                                .n = p->n,
                                .ld = p->n,
                                .f = p->f,
                                .pivot = p->pivot,
                                .base = 1};
  hone_apply_64(NULL, &factors, false, PROBES, p->y, p->n);
}

/* The bound of the norm of what made y of the random vectors, whose numbers
   have a variance of 1/3. */
static double bound_of(const parts *p) {
  return hone_probe_factor_of(PROBES, 1.0) *
         sqrt(3.0 * hone_sum_of_squares(PROBES * p->n, p->y));
}

/* Is ||E|| small? A pivot of 0 leaves NaN, which is not. Where scaling was not
   exact, entries of R A C were wrong by 2^-1074 at most; that is nothing beside
   an inverse that is not beyond all measure. */
static bool is_certain(const hone_determinant_job *job, const parts *p,
                       bool exact) {
  multiply(job, p);
  substitute(p);
  hone_add_multiple(PROBES * p->n, -1.0, p->v, p->y);
  if (!(bound_of(p) <= SMALL_ENOUGH))
    return false;
  memcpy(p->y, p->v, (size_t)(PROBES * p->n) * sizeof *p->y);
  if (!exact)
    substitute(p);
  return bound_of(p) <= LARGEST_INVERSE;
}

static int evaluate(const hone_determinant_job *job, const parts *p,
                    hone_determinant_value *out) {
  hone_watch watch = {.stopped = false};
  const hone_factoring lu = {.kernels = hone_factor_kernels_of(BITS),
                             .n = p->n,
                             .ldf = p->n,
                             .f = p->f,
                             .pivot = p->pivot,
                             .work = p->work,
                             .watch = &watch,
                             .phase = "batch"};
  int64_t zero = -1;
  const bool exact = scale(job, p);
  const int st = hone_factor_columns(&lu, 0, p->n, &zero);
  if (st != HONE_OK)
    return st;
  multiply_pivots(p, out);
  out->certain = is_certain(job, p, exact);
  return HONE_OK;
}

int hone_determinant(const hone_determinant_job *job, hone_mem *mem,
                     hone_determinant_value *out) {
  const int64_t n = job->n;
  const size_t entry = sizeof(hone_entry);
  parts p = {.n = n,
             .f = hone_mem_get(mem, (size_t)(n * n) * entry),
             .v = hone_mem_get(mem, (size_t)(2 * PROBES * n) * entry),
             .row = hone_mem_get(mem, (size_t)(2 * n) * sizeof *p.row),
             .pivot = hone_mem_get(mem, (size_t)n * sizeof *p.pivot)};
  p.work = hone_mem_get(
      mem, (size_t)hone_factor_work(hone_factor_kernels_of(BITS), n));
  int st = p.f && p.v && p.row && p.pivot && p.work ? HONE_OK : HONE_NO_MEMORY;
  if (st == HONE_OK) {
    p.y = p.v + PROBES * n;
    p.col = p.row + n;
    level(job, &p);
    st = evaluate(job, &p, out);
    if (st == HONE_OK && !out->certain && match(job, &p, mem))
      st = evaluate(job, &p, out);
  }
  hone_mem_put(mem, p.work);
  hone_mem_put(mem, p.pivot);
  hone_mem_put(mem, p.row);
  hone_mem_put(mem, p.v);
  hone_mem_put(mem, p.f);
  return st;
}
