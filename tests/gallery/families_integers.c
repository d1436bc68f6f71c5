/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers whose determinant is known, and counterexamples to estimates of
   condition numbers. */
#include "tests/gallery/families.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- Integers ---- */

/* The last rows, as many as dependent says, become sums of two multiples of
   earlier ones; then they change places with random rows. */
static void depend(gallery_task *t, int64_t dependent) {
  const int64_t n = t->n, free = n > dependent ? n - dependent : 0;
  for (int64_t r = free; r < n; r++) {
    const int64_t p = free > 0 ? gallery_below(&t->rng, free) : 0;
    const int64_t q = free > 0 ? gallery_below(&t->rng, free) : 0;
    const double c = (double)(1 + gallery_below(&t->rng, 3));
    const double d = (double)(gallery_below(&t->rng, 3) - 4);
    for (int64_t j = 0; j < n; j++)
      *gallery_at(t, r, j) =
          free > 0 ? c * *gallery_at(t, p, j) + d * *gallery_at(t, q, j) : 0.0;
  }
  for (int64_t r = free; r < n; r++) {
    const int64_t other = gallery_below(&t->rng, n);
    for (int64_t j = 0; j < n; j++) {
      double *a = gallery_at(t, r, j), *b = gallery_at(t, other, j), old = *a;
      *a = *b;
      *b = old;
    }
  }
}

static void singular_integers(gallery_task *t, int64_t dependent) {
  const double most = floor(pow(10.0, t->parameter));
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = floor(gallery_between(&t->rng, -most, most + 1.0));
  depend(t, dependent);
}

void gallery_make_singular_integers(gallery_task *t) {
  singular_integers(t, 1);
}
void gallery_make_singular_integers_2(gallery_task *t) {
  singular_integers(t, 2);
}

/* Adds or subtracts row or column k to or from l, unless an entry would exceed
   the limit. */
static void combine(gallery_task *t, bool rows, int64_t k, int64_t l,
                    double limit) {
  const double sign = gallery_below(&t->rng, 2) ? 1.0 : -1.0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = 0; j < t->n; j++) {
      const double *from = rows ? gallery_at(t, k, j) : gallery_at(t, j, k);
      double *to = rows ? gallery_at(t, l, j) : gallery_at(t, j, l);
      if (pass > 0)
        *to += sign * *from;
      else if (fabs(*to + sign * *from) > limit)
        return;
    }
}

/* Row and column operations on the identity, with a last entry of det, keep the
   determinant; entries are integers up to 2^p. */
static void integers_of_determinant(gallery_task *t, double det) {
  const double limit = exp2(floor(t->parameter));
  gallery_zero(t);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, i) = i + 1 < t->n ? 1.0 : det;
  for (int64_t k = 0; k < 20 * t->n + 100 && t->n > 1; k++) {
    const int64_t from = gallery_below(&t->rng, t->n);
    const int64_t by = 1 + gallery_below(&t->rng, t->n - 1);
    combine(t, gallery_below(&t->rng, 2), from, (from + by) % t->n, limit);
  }
}

void gallery_make_unimodular(gallery_task *t) {
  integers_of_determinant(t, 1.0);
}
void gallery_make_singular_unimodular(gallery_task *t) {
  integers_of_determinant(t, 0.0);
}

static void transpose(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < j; i++) {
      const double old = *gallery_at(t, i, j);
      *gallery_at(t, i, j) = *gallery_at(t, j, i);
      *gallery_at(t, j, i) = old;
    }
}

/* The upper triangle, the lower one for every second seed, is that of a
   positive definite matrix, but A is singular: with a dominant S, integers c
   and a positive entry (S c)_k,

     A = [S, S c; (c + e_k)^T S, (c + e_k)^T S c].                        */
void gallery_make_definite_triangle(gallery_task *t) {
  const int64_t n = t->n, m = n - 1;
  double *c = gallery_memory(2 * n, sizeof *c), *last = c + n;
  int64_t k = 0;
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 0; i <= j; i++)
      *gallery_at(t, i, j) = (double)(gallery_below(&t->rng, 3) - 1) +
                             (i == j ? (double)(n + 2) : 0.0);
  gallery_copy_upper(t);
  for (int64_t i = 0; i < m; i++)
    c[i] = (double)(gallery_below(&t->rng, 41) - 20);
  c[0] += c[0] < 0.0 ? -20.0 : 20.0;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < m; j++)
      last[i] += *gallery_at(t, i, j) * c[j];
    k = fabs(last[i]) > fabs(last[k]) ? i : k;
  }
  const double sign = last[k] < 0.0 ? -1.0 : 1.0;
  *gallery_at(t, m, m) = sign * last[k];
  for (int64_t i = 0; i < m; i++) {
    *gallery_at(t, i, m) = sign * last[i];
    *gallery_at(t, m, i) = sign * last[i] + *gallery_at(t, k, i);
    *gallery_at(t, m, m) += c[i] * last[i];
  }
  free(c);
  if (gallery_below(&t->rng, 2))
    transpose(t);
}

/* ---- Counterexamples to estimators (Higham's condex), theta = 10^p ---- */

/* The leading part of a matrix of order m; further unknowns stand alone. */
static void take(gallery_task *t, int64_t m, const double *rows) {
  gallery_zero(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = i < m && j < m ? rows[i * m + j] : i == j;
}

/* Cline & Rew 1983, against LINPACK's estimator. */
void gallery_make_condex_1(gallery_task *t) {
  const double p = pow(10.0, t->parameter);
  const double rows[] = {1, -1, -2 * p, 0,        0, 1, p, -p,
                         0, 1,  1 + p,  -(p + 1), 0, 0, 0, p};
  take(t, 4, rows);
}

void gallery_make_condex_2(gallery_task *t) {
  const double p = pow(10.0, t->parameter);
  const double rows[] = {1, 1 - 2 / (p * p), -2, 0, 1 / p, -1 / p, 0, 0, 1};
  take(t, 3, rows);
}

void gallery_make_condex_3(gallery_task *t) {
  gallery_zero(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = j; i < t->n; i++)
      *gallery_at(t, i, j) = i == j && i + 1 < t->n ? 1.0 : -1.0;
}

/* Makes v orthogonal to 'count' columns of q and writes it behind them, with
   length 1, or as zero if nothing of it is left. */
static void orthonormal(int64_t n, double *q, int count) {
  double *v = q + count * n, length = 0.0;
  for (int pass = 0; pass < 2; pass++)
    for (int c = 0; c < count; c++) {
      double dot = 0.0;
      for (int64_t i = 0; i < n; i++)
        dot += v[i] * q[i + c * n];
      for (int64_t i = 0; i < n; i++)
        v[i] -= dot * q[i + c * n];
    }
  for (int64_t i = 0; i < n; i++)
    length = hypot(length, v[i]);
  for (int64_t i = 0; i < n; i++)
    v[i] = length > 1e-8 ? v[i] / length : 0.0;
}

/* inv(I + theta P) = I - theta / (1 + theta) P, where the projection P does not
   see the vectors that Hager's and LAPACK's estimators begin with: ones, an
   alternating vector, a unit vector. */
void gallery_make_condex_4(gallery_task *t) {
  const int64_t n = t->n;
  const double theta = pow(10.0, t->parameter);
  double *q = gallery_memory(3 * n, sizeof *q);
  for (int64_t i = 0; i < n; i++) {
    q[i] = 1.0;
    q[n + i] = (i % 2 ? -1.0 : 1.0) *
               (1.0 + (n > 1 ? (double)i / (double)(n - 1) : 0.0));
  }
  q[2 * n] = 1.0;
  for (int c = 0; c < 3; c++)
    orthonormal(n, q, c);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double p = i == j;
      for (int c = 0; c < 3; c++)
        p -= q[i + c * n] * q[j + c * n];
      *gallery_at(t, i, j) = (i == j) - theta / (1.0 + theta) * p;
    }
  free(q);
}

/* diag(I / 2^p - u v^T, [1 -1; -1 1 + 2^-p / 2]). v is orthogonal to an
   alternating vector and u is one, so that estimators which start from ones and
   such a vector see the first block alone. */
void gallery_make_blind_block(gallery_task *t) {
  static const double v[8] = {1, 1, -1, -1, -1, -1, 1, 1};
  const double small = exp2(-floor(t->parameter));
  const int64_t m = t->n - 2;
  gallery_zero(t);
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 0; i < m; i++)
      *gallery_at(t, i, j) =
          (i == j ? small : 0.0) - (i % 2 ? -v[j % 8] : v[j % 8]);
  for (int64_t i = m > 0 ? m : 0; i < t->n; i++)
    for (int64_t j = m > 0 ? m : 0; j < t->n; j++)
      *gallery_at(t, i, j) = i != j          ? -1.0
                             : i + 1 == t->n ? 1.0 + 0.5 * small
                                             : 1.0;
}
