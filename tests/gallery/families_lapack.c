/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrices of LAPACK's test programs (DLATB4 has the 11 types for general
   systems, DLATMS makes matrices of given singular values), random matrices,
   and matrices that are hard only for their magnitudes: grading, units, the
   ends of the range of double and of float. */
#include "tests/gallery/families.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- DLATB4 ---- */

/* As in DLATB4, eps is DLAMCH's precision, 2^-52. */
static const double BAD = 0.1 * 0x1p52, SMALL = 0.25 * DBL_MIN * 0x1p52;

static void scale_all(gallery_task *t, double factor) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) *= factor;
}

static void zero_columns(gallery_task *t, int64_t first, int64_t end) {
  for (int64_t j = first; j < end; j++)
    memset(gallery_at(t, 0, j), 0, (size_t)t->n * sizeof *t->a);
}

/* Replaces A = Q R by R, which keeps the singular values. */
static void triangularize(gallery_task *t) {
  const int64_t n = t->n;
  for (int64_t k = 0; k + 1 < n; k++) {
    double *v = gallery_at(t, 0, k), norm = 0.0;
    for (int64_t i = k; i < n; i++)
      norm = hypot(norm, v[i]);
    const double head = v[k] + (v[k] < 0.0 ? -norm : norm);
    if (!(norm > 0.0))
      continue;
    const double r = v[k] < 0.0 ? norm : -norm;
    v[k] = head; /* H = I - v v^T / (norm |head|) */
    for (int64_t j = k + 1; j < n; j++) {
      double *a = gallery_at(t, 0, j), sum = 0.0;
      for (int64_t i = k; i < n; i++)
        sum += v[i] * a[i];
      sum /= norm * fabs(head);
      for (int64_t i = k; i < n; i++)
        a[i] -= sum * v[i];
    }
    v[k] = r;
    for (int64_t i = k + 1; i < n; i++)
      v[i] = 0.0;
  }
}

void gallery_make_dlatb4_1(gallery_task *t) {
  gallery_zero(t);
  for (int64_t i = 0; i < t->n; i++) {
    double sign = gallery_below(&t->rng, 2) ? 1.0 : -1.0;
    *gallery_at(t, i, i) = sign * exp2(-gallery_uniform(&t->rng));
  }
}

void gallery_make_dlatb4_2(gallery_task *t) {
  gallery_spectrum(t, 3, 2.0, 0);
  triangularize(t);
}

void gallery_make_dlatb4_3(gallery_task *t) {
  gallery_make_dlatb4_2(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < j; i++) {
      *gallery_at(t, j, i) = *gallery_at(t, i, j);
      *gallery_at(t, i, j) = 0.0;
    }
}

void gallery_make_dlatb4_4(gallery_task *t) { gallery_spectrum(t, 3, 2.0, 0); }

void gallery_make_dlatb4_5(gallery_task *t) {
  gallery_make_dlatb4_4(t);
  zero_columns(t, 0, 1);
}

void gallery_make_dlatb4_6(gallery_task *t) {
  gallery_make_dlatb4_4(t);
  zero_columns(t, t->n - 1, t->n);
}

void gallery_make_dlatb4_7(gallery_task *t) {
  gallery_make_dlatb4_4(t);
  zero_columns(t, t->n / 2, t->n);
}

void gallery_make_dlatb4_8(gallery_task *t) {
  gallery_spectrum(t, 3, sqrt(BAD), 0);
}

void gallery_make_dlatb4_9(gallery_task *t) { gallery_spectrum(t, 3, BAD, 0); }

void gallery_make_dlatb4_10(gallery_task *t) {
  gallery_make_dlatb4_4(t);
  scale_all(t, SMALL);
}

void gallery_make_dlatb4_11(gallery_task *t) {
  gallery_make_dlatb4_4(t);
  scale_all(t, 1.0 / SMALL);
}

/* ---- DLATMS ---- */

static void dlatms(gallery_task *t, int mode) {
  gallery_spectrum(t, mode, pow(10.0, t->parameter), 0);
}

void gallery_make_dlatms_1(gallery_task *t) { dlatms(t, 1); }
void gallery_make_dlatms_2(gallery_task *t) { dlatms(t, 2); }
void gallery_make_dlatms_3(gallery_task *t) { dlatms(t, 3); }
void gallery_make_dlatms_4(gallery_task *t) { dlatms(t, 4); }
void gallery_make_dlatms_5(gallery_task *t) { dlatms(t, 5); }
void gallery_make_dlatms_6(gallery_task *t) { dlatms(t, 6); }

/* ---- Plain ---- */

void gallery_make_uniform(gallery_task *t) { gallery_random(t); }

void gallery_make_normal(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = gallery_normal(&t->rng);
}

static double integer(gallery_task *t, int64_t most) {
  return (double)(gallery_below(&t->rng, 2 * most + 1) - most);
}

void gallery_make_integers(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = integer(t, (int64_t)t->parameter);
}

void gallery_make_dominant(gallery_task *t) {
  const double more = 1.0 + pow(10.0, -t->parameter);
  gallery_random(t);
  for (int64_t i = 0; i < t->n; i++) {
    double sum = t->n == 1 ? 1.0 : 0.0;
    for (int64_t j = 0; j < t->n; j++)
      sum += j == i ? 0.0 : fabs(*gallery_at(t, i, j));
    *gallery_at(t, i, i) = gallery_below(&t->rng, 2) ? sum * more : -sum * more;
  }
}

void gallery_make_orthogonal(gallery_task *t) { gallery_spectrum(t, 4, 1, 0); }

void gallery_make_toeplitz(gallery_task *t) {
  double *d = gallery_memory(2 * t->n, sizeof *d);
  for (int64_t k = 0; k < 2 * t->n; k++)
    d[k] = gallery_between(&t->rng, -1.0, 1.0);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = d[t->n + i - j];
  free(d);
}

void gallery_make_banded(gallery_task *t) {
  const int64_t kl = gallery_below(&t->rng, 4), ku = gallery_below(&t->rng, 4);
  gallery_random(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      if (i - j > kl || j - i > ku)
        *gallery_at(t, i, j) = 0.0;
}

void gallery_make_symmetric(gallery_task *t) {
  gallery_random(t);
  gallery_copy_upper(t);
}

/* The sum over k < rank of u_k v_k^T, with uniform entries or small
   integers. */
static void low_rank(gallery_task *t, int64_t rank, int64_t integers) {
  double *u = gallery_memory(2 * t->n, sizeof *u), *v = u + t->n;
  gallery_zero(t);
  for (int64_t k = 0; k < rank; k++) {
    for (int64_t i = 0; i < 2 * t->n; i++)
      u[i] =
          integers ? integer(t, integers) : gallery_between(&t->rng, -1.0, 1.0);
    for (int64_t j = 0; j < t->n; j++)
      for (int64_t i = 0; i < t->n; i++)
        *gallery_at(t, i, j) += u[i] * v[j];
  }
  free(u);
}

void gallery_make_low_rank_plus_diagonal(gallery_task *t) {
  low_rank(t, t->n / 4, 0);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, i) +=
        pow(10.0, -t->parameter) * gallery_between(&t->rng, 0.5, 1.0);
}

void gallery_make_low_rank_integers(gallery_task *t) {
  low_rank(t, t->n / 2, 9);
}

/* Chooses two different indices. */
static void two(gallery_task *t, int64_t *k, int64_t *l) {
  *k = gallery_below(&t->rng, t->n);
  *l = (*k + 1 + gallery_below(&t->rng, t->n - 1)) % t->n;
}

void gallery_make_duplicated_column(gallery_task *t) {
  int64_t k, l;
  gallery_random(t);
  two(t, &k, &l);
  memcpy(gallery_at(t, 0, k), gallery_at(t, 0, l), (size_t)t->n * sizeof *t->a);
}

void gallery_make_duplicated_row(gallery_task *t) {
  int64_t k, l;
  gallery_random(t);
  two(t, &k, &l);
  for (int64_t j = 0; j < t->n; j++)
    *gallery_at(t, k, j) = -2.0 * *gallery_at(t, l, j);
}

void gallery_make_near_duplicates(gallery_task *t) {
  const double apart = pow(10.0, -t->parameter);
  int64_t k, l;
  gallery_random(t);
  two(t, &k, &l);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, k) =
        *gallery_at(t, i, l) + apart * gallery_between(&t->rng, -1.0, 1.0);
}

/* ---- Scaling ---- */

void gallery_make_graded_rows(gallery_task *t) {
  gallery_random(t);
  gallery_grade(t, t->parameter, 0.0);
}

void gallery_make_graded_columns(gallery_task *t) {
  gallery_random(t);
  gallery_grade(t, 0.0, t->parameter);
}

void gallery_make_graded_both(gallery_task *t) {
  gallery_random(t);
  gallery_grade(t, t->parameter, t->parameter);
}

void gallery_make_scaled_orthogonal(gallery_task *t) {
  gallery_make_orthogonal(t);
  gallery_grade(t, t->parameter, t->parameter);
}

void gallery_make_spd(gallery_task *t) {
  gallery_spectrum(t, 3, pow(10.0, t->parameter), 1);
}

/* A = D A D, exactly symmetric. */
static void scale_both(gallery_task *t, const double *d) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i <= j; i++)
      *gallery_at(t, i, j) *= d[i] * d[j];
  gallery_copy_upper(t);
}

void gallery_make_spd_units(gallery_task *t) {
  double *d = gallery_memory(t->n, sizeof *d);
  gallery_spectrum(t, 3, 100.0, 1);
  for (int64_t i = 0; i < t->n; i++)
    d[i] = pow(10.0, t->parameter * (double)(i % 3 - 1));
  scale_both(t, d);
  free(d);
}

void gallery_make_spd_graded(gallery_task *t) {
  double *d = gallery_memory(t->n, sizeof *d);
  gallery_spectrum(t, 3, 1000.0, 1);
  for (int64_t i = 0; i < t->n; i++)
    d[i] = pow(10.0, t->parameter * gallery_between(&t->rng, -1.0, 1.0));
  scale_both(t, d);
  free(d);
}

/* ---- Range ---- */

/* Uniform entries times 2^e, with e a uniform integer from low to high. */
static void sized(gallery_task *t, int low, int high) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++) {
      int e = low + (int)gallery_below(&t->rng, high - low + 1);
      *gallery_at(t, i, j) = ldexp(gallery_between(&t->rng, -1.0, 1.0), e);
    }
}

void gallery_make_double_top(gallery_task *t) { sized(t, 1016, 1023); }
void gallery_make_double_bottom(gallery_task *t) { sized(t, -1021, -1014); }
void gallery_make_denormals(gallery_task *t) { sized(t, -1070, -1010); }
void gallery_make_float_top(gallery_task *t) { sized(t, 118, 134); }
void gallery_make_float_bottom(gallery_task *t) { sized(t, -134, -118); }

void gallery_make_float_denormals(gallery_task *t) {
  const int e = (int)t->parameter;
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = ldexp(gallery_between(&t->rng, -1.0, 1.0),
                                   gallery_below(&t->rng, 3) ? 0 : -e);
}

void gallery_make_wide(gallery_task *t) {
  sized(t, -(int)t->parameter, (int)t->parameter);
}

void gallery_make_wide_rows(gallery_task *t) {
  gallery_random(t);
  gallery_grade(t, 0.602 * t->parameter, 0.602 * t->parameter);
}
