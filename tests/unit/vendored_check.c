/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves systems through a module that calls the drop-in, and checks factors,
   pivots and x. Compiled once for each scalar type. */
#include "tests/unit/vendored_check.h"

#include "base/lapack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 70, LD = N + 3, NRHS = 2 };

static uint64_t state = 1;
static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) * 0x1p-53 - 0.5;
}

static hone_entry entry(void) {
#ifdef HONE_COMPLEX
  const double re = uniform(), im = uniform();
  return CMPLX(re, im);
#else
  return uniform();
#endif
}

/* a_ij of op(A). */
static hone_entry of(const hone_entry *a, char trans, int i, int j) {
  const hone_entry v = trans == 'N' ? a[i + j * LD] : a[j + i * LD];
  return trans == 'C' ? hone_conj(v) : v;
}

/* max_i |b - op(A) x|_i / (|A| |x| + |b|)_i, in units of rounding. */
static double backward_error(const hone_entry *a, char trans,
                             const hone_entry *x, const hone_entry *b) {
  long double most = 0.0L;
  for (int k = 0; k < NRHS; k++)
    for (int i = 0; i < N; i++) {
      hone_wide r = (hone_wide)b[i + k * LD];
      long double size = hone_absl(r);
      for (int j = 0; j < N; j++) {
        const hone_wide p =
            (hone_wide)of(a, trans, i, j) * (hone_wide)x[j + k * LD];
        r -= p;
        size += hone_absl(p);
      }
      most = !(hone_absl(r) <= most * size) ? hone_absl(r) / size : most;
    }
  return (double)(most / (long double)HONE_EPS);
}

typedef struct work {
  const vendored_caller *caller;
  const char *title;
  vendored_system s;
  hone_entry *a, *b, *f; /* the system, and LAPACK's factors */
  int ipiv[N], failures;
} work;

static void expect(work *w, bool good, const char *what) {
  if (!good)
    printf("%s: %s: failed\n", w->title, what);
  w->failures += !good;
}

static int64_t pivot(const work *w, int i) {
  return w->caller->integer_bytes == 8 ? ((const int64_t *)w->s.ipiv)[i]
                                       : ((const int32_t *)w->s.ipiv)[i];
}

static void check_x(work *w, char trans, const char *what) {
  const double omega = backward_error(w->a, trans, w->s.b, w->b);
  expect(w, w->s.info == 0, "INFO");
  expect(w, omega <= 4.0, what);
}

/* Are the factors and pivots those of LAPACK, and is nothing else changed? */
static void check_factors(work *w) {
  bool same = true;
  for (int i = 0; i < N; i++)
    same = same && pivot(w, i) == w->ipiv[i];
  expect(w, same, "pivots");
  expect(w, pivot(w, N) == -7, "what follows the pivots");
  expect(w, memcmp(w->s.a, w->f, LD * N * sizeof *w->f) == 0, "factors");
}

static void check_no_factors(work *w) {
  const hone_entry *a = w->s.a;
  bool same = true;
  for (int i = 0; i < N; i++) {
    const double size = hone_abs(a[i + i * LD]);
    same = same && pivot(w, i) == i + 1 && !(size >= 0.0);
  }
  expect(w, same, "NaN for factors");
}

static void reset(work *w, char letter) {
  memcpy(w->s.a, w->a, LD * N * sizeof *w->a);
  memcpy(w->s.b, w->b, LD * NRHS * sizeof *w->b);
  w->s.letter = letter;
  w->s.info = -77;
  for (int i = 0; i <= N; i++)
    if (w->caller->integer_bytes == 8)
      ((int64_t *)w->s.ipiv)[i] = -7;
    else
      ((int32_t *)w->s.ipiv)[i] = -7;
}

static void check_lu(work *w, bool discards) {
  const int n = N, ld = LD;
  int info = 0;
  memcpy(w->f, w->a, LD * N * sizeof *w->f);
  dgetrf_(&n, &n, w->f, &ld, w->ipiv, &info);
  reset(w, 'N');
  w->caller->gesv(&w->s);
  check_x(w, 'N', "gesv");
  if (discards)
    check_no_factors(w);
  else
    check_factors(w);
  for (const char *trans = "NTC"; *trans; trans++) {
    reset(w, *trans);
    w->caller->getrf(&w->s);
    check_factors(w);
    w->caller->getrs(&w->s);
    check_x(w, *trans, "getrs");
  }
}

/* A by rows is its transpose by columns. */
static void check_lapacke(work *w) {
  hone_entry *b = w->s.b;
  reset(w, 'N');
  w->s.layout = 102;
  w->caller->lapacke_gesv(&w->s);
  check_x(w, 'N', "LAPACKE_gesv");
  reset(w, 'N');
  w->s.layout = 101;
  w->s.b = calloc(LD * N, sizeof *b);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < NRHS; k++)
      ((hone_entry *)w->s.b)[k + i * LD] = w->b[i + k * LD];
  w->caller->lapacke_gesv(&w->s);
  for (int i = 0; i < N; i++)
    for (int k = 0; k < NRHS; k++)
      b[i + k * LD] = ((hone_entry *)w->s.b)[k + i * LD];
  free(w->s.b);
  w->s.b = b;
  check_x(w, 'T', "LAPACKE_gesv by rows");
  w->s.layout = 7;
  w->caller->lapacke_gesv(&w->s);
  expect(w, w->s.info == -1, "INFO of a wrong layout");
}

static void check_cholesky(work *w) {
  const int n = N, ld = LD;
  int info = 0;
  for (int j = 0; j < N; j++)
    for (int i = 0; i <= j; i++) {
      w->a[j + i * LD] = hone_conj(w->a[i + j * LD]);
      if (i == j)
        w->a[i + j * LD] = 20.0 + hone_real(w->a[i + j * LD]);
    }
  for (const char *uplo = "UL"; *uplo; uplo++) {
    memcpy(w->f, w->a, LD * N * sizeof *w->f);
    dpotrf_(uplo, &n, w->f, &ld, &info);
    reset(w, *uplo);
    w->caller->potrf(&w->s);
    expect(w, memcmp(w->s.a, w->f, LD * N * sizeof *w->f) == 0,
           "Cholesky factors");
    w->caller->potrs(&w->s);
    check_x(w, 'N', "potrs");
  }
}

int vendored_check(const vendored_caller *caller, const char *title,
                   bool discards) {
  work w = {.caller = caller, .title = title};
  w.a = malloc(LD * N * sizeof *w.a);
  w.f = malloc(LD * N * sizeof *w.f);
  w.b = malloc(LD * NRHS * sizeof *w.b);
  w.s = (vendored_system){.n = N, .nrhs = NRHS, .ld = LD};
  w.s.a = malloc(LD * N * sizeof *w.a);
  w.s.b = malloc(LD * NRHS * sizeof *w.b);
  w.s.ipiv = malloc((N + 1) * sizeof(int64_t));
  for (int i = 0; i < LD * N; i++)
    w.a[i] = entry();
  for (int i = 0; i < LD * NRHS; i++)
    w.b[i] = entry();
  check_lu(&w, discards);
  check_lapacke(&w);
  check_cholesky(&w);
  free(w.a);
  free(w.f);
  free(w.b);
  free(w.s.a);
  free(w.s.b);
  free(w.s.ipiv);
  return w.failures;
}
