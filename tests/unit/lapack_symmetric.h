/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems and calls for test_lapack_symmetric*.c, which are compiled for double
   and, with HONE_COMPLEX, for double complex. */
#ifndef TESTS_LAPACK_SYMMETRIC_H
#define TESTS_LAPACK_SYMMETRIC_H

#define _GNU_SOURCE /* dlopen's constants */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HONE_COMPLEX
typedef double _Complex number;
#define SYMMETRIC_TEST(name) TEST(lapack, symmetric_complex_##name)
static const char *const kinds[] = {"zsy", "zhe"};
#else
typedef double number;
#define SYMMETRIC_TEST(name) TEST(lapack, symmetric_##name)
static const char *const kinds[] = {"dsy"};
#endif
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Routines of one kind, of the drop-in or the real LAPACK. */
typedef struct calls {
  void (*sv)(const char *uplo, const int *n, const int *nrhs, number *a,
             const int *lda, int *ipiv, number *b, const int *ldb, number *work,
             const int *lwork, int *info, size_t length);
  void (*trf)(const char *uplo, const int *n, number *a, const int *lda,
              int *ipiv, number *work, const int *lwork, int *info,
              size_t length);
  void (*trs)(const char *uplo, const int *n, const int *nrhs, const number *a,
              const int *lda, const int *ipiv, number *b, const int *ldb,
              int *info, size_t length);
  void *con;
  void (*tri)(const char *uplo, const int *n, number *a, const int *lda,
              const int *ipiv, number *work, int *info, size_t length);
} calls;

static inline void *look_up(void *library, const char *kind,
                            const char *routine) {
  char name[16];
  snprintf(name, sizeof name, "%s%s_", kind, routine);
  return dlsym(library, name);
}

static inline calls calls_of(void *library, const char *kind) {
  calls c;
  *(void **)&c.sv = look_up(library, kind, "sv");
  *(void **)&c.trf = look_up(library, kind, "trf");
  *(void **)&c.trs = look_up(library, kind, "trs");
  c.con = look_up(library, kind, "con");
  *(void **)&c.tri = look_up(library, kind, "tri");
  return c;
}

/* An indefinite system. In a, the triangle that uplo does not name is NaN. */
typedef struct system {
  int n, nrhs, ld, lwork, info, *ipiv;
  char uplo;
  bool hermitian;
  number *full, *a, *b; /* these stay */
  number *f, *x, *work;
} system_t;

static inline system_t make(const char *kind, int n, int nrhs, char uplo) {
  sup_rng rng = {(uint64_t)(n + 5)};
  system_t s = {.n = n, .nrhs = nrhs, .ld = n + 3, .lwork = 64 * n};
  const size_t size = entries(s.ld, n), columns = entries(s.ld, nrhs);
  const int64_t parts = sizeof(number) / sizeof(double);
  s.uplo = uplo;
  s.hermitian = strcmp(kind, "zhe") == 0;
  s.ipiv = calloc((size_t)n, sizeof *s.ipiv);
  s.full = calloc(size, sizeof *s.a);
  s.a = calloc(size, sizeof *s.a);
  s.f = calloc(size, sizeof *s.a);
  s.b = calloc(columns, sizeof *s.b);
  s.x = calloc(columns, sizeof *s.b);
  /* OpenBLAS reads behind it: see hone_lapack_sytrf_room. */
  s.work = calloc((size_t)(s.lwork + n), sizeof *s.work);
  sup_random(&rng, parts * s.ld, n, (double *)s.full, parts * s.ld);
  sup_random(&rng, parts * s.ld, nrhs, (double *)s.b, parts * s.ld);
  for (int j = 0; j < n; j++) {
    if (s.hermitian)
      s.full[j + j * s.ld] = creal(s.full[j + j * s.ld]);
    for (int i = 0; i < j; i++) {
      const number v = s.full[i + j * s.ld];
      s.full[j + i * s.ld] = s.hermitian ? (number)conj(v) : v;
    }
  }
  memcpy(s.a, s.full, size * sizeof *s.a);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      if (uplo == 'U' ? i > j : i < j)
        s.a[i + j * s.ld] = (double)NAN;
  return s;
}

static inline void drop(system_t *s) {
  free(s->ipiv);
  free(s->full);
  free(s->a);
  free(s->f);
  free(s->b);
  free(s->x);
  free(s->work);
}

/* Copies A and b into the arrays to be overwritten. */
static inline void reset(system_t *s) {
  memcpy(s->f, s->a, entries(s->ld, s->n) * sizeof *s->f);
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  s->info = -77;
}

static inline void solve(const calls *c, system_t *s) {
  reset(s);
  c->sv(&s->uplo, &s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld, s->work,
        &s->lwork, &s->info, 1);
}

/* Factors are hidden from call to call: see hidden_getrf. */
static inline void factor(const calls *c, system_t *s) {
  int info = -77;
  reset(s);
  c->trf(&s->uplo, &s->n, s->f, &s->ld, s->ipiv, s->work, &s->lwork, &info, 1);
  s->info = info;
}

static inline void solve_factored(const calls *c, system_t *s) {
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  c->trs(&s->uplo, &s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld,
         &s->info, 1);
}

static inline double condition(const calls *c, system_t *s, double anorm) {
  double rcond = -1.0;
  number *work = calloc((size_t)(2 * s->n), sizeof *work);
#ifdef HONE_COMPLEX
  void (*con)(const char *, const int *, const number *, const int *,
              const int *, const double *, double *, number *, int *, size_t);
  *(void **)&con = c->con;
  con(&s->uplo, &s->n, s->f, &s->ld, s->ipiv, &anorm, &rcond, work, &s->info,
      1);
#else
  int *iwork = calloc((size_t)s->n, sizeof *iwork);
  void (*con)(const char *, const int *, const number *, const int *,
              const int *, const double *, double *, number *, int *, int *,
              size_t);
  *(void **)&con = c->con;
  con(&s->uplo, &s->n, s->f, &s->ld, s->ipiv, &anorm, &rcond, work, iwork,
      &s->info, 1);
  free(iwork);
#endif
  free(work);
  return rcond;
}

/* The largest componentwise backward error of x, in long double. */
static inline double backward_error(const system_t *s) {
  double most = 0.0;
  for (int k = 0; k < s->nrhs; k++)
    for (int i = 0; i < s->n; i++) {
      long double _Complex r = (long double _Complex)s->b[i + k * s->ld];
      long double size = cabsl(r);
      for (int j = 0; j < s->n; j++) {
        const long double _Complex product =
            (long double _Complex)s->full[i + j * s->ld] *
            (long double _Complex)s->x[j + k * s->ld];
        r -= product;
        size += cabsl(product);
      }
      const double error = (double)(cabsl(r) / size);
      most = isnan(most) || error <= most ? most : error;
    }
  return most;
}

/* Checks that the drop-in's f, ipiv and info are LAPACK's, bit for bit. */
static inline void check_same(const system_t *s, const system_t *real) {
  CHECK_EQ_INT(s->info, real->info);
  CHECK_MEM_EQ(s->f, real->f, entries(s->ld, s->n) * sizeof *s->f);
  CHECK_MEM_EQ(s->ipiv, real->ipiv, (size_t)s->n * sizeof(int));
  CHECK_MEM_EQ(s->work, real->work, sizeof *s->work);
}

static inline bool tagged(const system_t *s) {
  for (int i = 0; i < s->n; i++)
    if (!isnan(creal(s->f[i + i * s->ld])) || s->ipiv[i] != i + 1)
      return false;
  return true;
}

static inline bool all_nan(const system_t *s) {
  for (int k = 0; k < s->nrhs; k++)
    for (int i = 0; i < s->n; i++)
      if (!isnan(creal(s->x[i + k * s->ld])))
        return false;
  return true;
}

/* Opens the drop-in with these values of HONE_LAPACK_HIDE and
   HONE_LAPACK_FACTORS. */
static inline drop_in open_with(const char *hide, const char *factors) {
  setenv("HONE_LAPACK_HIDE", hide, 1);
  return drop_in_open("1", factors);
}

static inline void close_it(drop_in *d) {
  drop_in_close(d);
  unsetenv("HONE_LAPACK_HIDE");
}

/* Calls check for every kind, triangle and some orders. */
static inline void for_all(const drop_in *d, int nrhs,
                           void (*check)(const calls *c, const calls *real,
                                         system_t *s, system_t *t)) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int n = 1; n <= 260; n = 2 * n + 7)
      for (const char *uplo = "UL"; *uplo != '\0'; uplo++) {
        const calls c = calls_of(d->library, kinds[kind]);
        const calls real = calls_of(RTLD_DEFAULT, kinds[kind]);
        system_t s = make(kinds[kind], n, nrhs, *uplo);
        system_t t = make(kinds[kind], n, nrhs, *uplo);
        ct_note("%s, n %d, %c", kinds[kind], n, *uplo);
        check(&c, &real, &s, &t);
        drop(&s);
        drop(&t);
      }
}

#endif
