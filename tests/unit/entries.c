/* SPDX-License-Identifier: BSD-3-Clause */
/* See entries.h. */
#include "tests/unit/entries.h"

#include "tests/gallery/either.h"

#include <math.h>
#include <string.h>

static const double *parts_of(const hone_entry *v) { return (const double *)v; }

/* ---- Arrays -------------------------------------------------------------- */

hone_entry *entries_filled(int64_t count, double value) {
  return (hone_entry *)sup_filled(HONE_PARTS * count, value);
}

hone_entry *entries_copy(const hone_entry *from, int64_t count) {
  return (hone_entry *)sup_copy(parts_of(from), HONE_PARTS * count);
}

void entries_free(hone_entry *array) { sup_free((double *)array); }

bool entries_untouched(const hone_entry *array, int64_t count, double value) {
  return sup_untouched(parts_of(array), HONE_PARTS * count, value);
}

/* ---- Numbers and matrices ------------------------------------------------ */

hone_entry entries_uniform(sup_rng *rng) {
  hone_entry v;
  entries_random(rng, 1, 1, &v, 1);
  return v;
}

void entries_random(sup_rng *rng, int64_t n, int64_t m, hone_entry *a,
                    int64_t lda) {
  sup_random(rng, HONE_PARTS * n, m, (double *)a, HONE_PARTS * lda);
}

/* A = H A or A = A H, H = I - 2 v v^H / v^H v for a random v. */
static void reflect(sup_rng *rng, int64_t n, bool right, hone_entry *a,
                    int64_t lda) {
  const int64_t down = right ? lda : 1, along = right ? 1 : lda;
  hone_entry *v = entries_filled(n, 0.0);
  double square = 0.0;
  entries_random(rng, n, 1, v, n);
  for (int64_t i = 0; i < n; i++)
    square += hone_abs(v[i]) * hone_abs(v[i]);
  for (int64_t j = 0; j < n; j++) {
    hone_entry sum = 0.0; /* v^H a_j; right: a_j v */
    for (int64_t i = 0; i < n; i++)
      sum += (right ? v[i] : hone_conj(v[i])) * a[i * down + j * along];
    sum *= 2.0 / square;
    for (int64_t i = 0; i < n; i++)
      a[i * down + j * along] -= (right ? hone_conj(v[i]) : v[i]) * sum;
  }
  entries_free(v);
}

void entries_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond,
                         hone_entry *a, int64_t lda) {
  double *sizes = sup_filled(n * n, 0.0);
  hone_entry *phase = entries_filled(2 * n, 1.0);
  sup_matrix_cond(rng, n, mode, cond, sizes, n);
  for (int64_t i = 0; HONE_PARTS == 2 && i < 2 * n; i++) {
    phase[i] = entries_uniform(rng);
    phase[i] /= hone_abs(phase[i]);
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = sizes[i + j * n] * phase[i] * phase[n + j];
  for (int right = 0; HONE_PARTS == 2 && right < 2; right++)
    reflect(rng, n, right, a, lda);
  sup_free(sizes);
  entries_free(phase);
}

/* op(A), without gaps. */
static double *turned(int64_t n, const hone_entry *a, int64_t lda, bool trans) {
  double *to = sup_filled(HONE_PARTS * n * n, 0.0);
  either_copy(HONE_PARTS, n, parts_of(a), lda, trans, false, to);
  return to;
}

void entries_multiply(int64_t n, const hone_entry *a, int64_t lda, bool trans,
                      const hone_entry *x, hone_entry *b) {
  const int64_t order = HONE_PARTS * n;
  double *op = turned(n, a, lda, trans), *to = (double *)b;
  double *m = sup_filled(order * (order + 2), 0.0);
  double *stacked = m + order * order, *product = stacked + order;
  either_matrix(HONE_PARTS, n, op, n, m);
  either_vector(HONE_PARTS, n, parts_of(x), stacked);
  sup_multiply(order, m, order, false, stacked, product);
  for (int64_t i = 0; i < order; i++)
    to[i] = product[i / HONE_PARTS + i % HONE_PARTS * n];
  sup_free(op);
  sup_free(m);
}

/* ---- Errors -------------------------------------------------------------- */

double entries_backward_error(int64_t n, const hone_entry *a, int64_t lda,
                              bool trans, const hone_entry *x,
                              const hone_entry *b) {
  double *op = turned(n, a, lda, trans);
  const double omega =
      either_omega(HONE_PARTS, n, op, parts_of(x), parts_of(b));
  sup_free(op);
  return omega;
}

double entries_forward_error(int64_t n, const hone_entry *x,
                             const hone_entry *x_true) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const hone_entry apart = x[i] - x_true[i];
    const double e = either_size(HONE_PARTS, parts_of(&apart));
    error = e <= error ? error : e; /* takes NaN */
    if (!isfinite(error))
      return (double)NAN;
    size = fmax(size, either_size(HONE_PARTS, parts_of(&x_true[i])));
  }
  return error > 0.0 ? error / size : 0.0;
}

static bool trusted(const reference *r) {
  return r->state == REFERENCE_DOUBLE || r->state == REFERENCE_DOUBLE_DOUBLE;
}

double entries_distance(int64_t n, const hone_entry *a, const hone_entry *x,
                        const hone_entry *b) {
  reference r = {.n = 0};
  either_solve(&r, HONE_PARTS, n, 1, parts_of(a), parts_of(b));
  const double apart =
      trusted(&r) ? (double)either_distance(&r, HONE_PARTS, 0, parts_of(x))
                  : (double)NAN;
  reference_free(&r);
  return apart;
}

/* Column j of the inverse solves A x = e_j; |x_i| is how far zero is from it.
 */
double entries_inverse_norm1(int64_t n, const hone_entry *a) {
  static const double zero[2] = {0.0, 0.0};
  reference r = {.n = 0};
  long double norm = 0.0L;
  hone_entry *units = entries_filled(n * n, 0.0);
  for (int64_t i = 0; i < n; i++)
    units[i + i * n] = 1.0;
  either_solve(&r, HONE_PARTS, n, n, parts_of(a), parts_of(units));
  for (int64_t j = 0; j < n; j++) {
    long double sum = 0.0L;
    for (int64_t i = 0; i < n; i++)
      sum += either_miss(&r, HONE_PARTS, j, i, zero);
    norm = fmaxl(norm, sum);
  }
  if (!trusted(&r))
    norm = (long double)NAN;
  reference_free(&r);
  entries_free(units);
  return (double)norm;
}
