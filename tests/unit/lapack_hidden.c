/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* dlopen's constants */
#include "tests/unit/lapack_hidden.h"

#include "tests/unit/ct.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HONE_COMPLEX
static const char letter = 'z';
#define CONJ(v) conj(v)
#else
static const char letter = 'd';
#define CONJ(v) (v)
#endif

static void *look_up(void *library, const char *name) {
  char full[16];
  snprintf(full, sizeof full, "%c%s_", letter, name);
  return dlsym(library, full);
}

static hidden_calls calls_of(void *library) {
  hidden_calls d = {.getrf = NULL};
  *(void **)&d.getrf = look_up(library, "getrf");
  *(void **)&d.getrs = look_up(library, "getrs");
  *(void **)&d.potrf = look_up(library, "potrf");
  *(void **)&d.potrs = look_up(library, "potrs");
  *(void **)&d.potri = look_up(library, "potri");
  *(void **)&d.gecon = look_up(library, "gecon");
  *(void **)&d.pocon = look_up(library, "pocon");
  *(void **)&d.getri = look_up(library, "getri");
  return d;
}

static hidden_calls real(void) { return calls_of(RTLD_DEFAULT); }

hidden_calls hidden_open(const char *hide, const char *mib) {
  setenv("HONE_LAPACK_HIDE", hide ? hide : "always", 1);
  if (mib != NULL)
    setenv("HONE_LAPACK_HIDE_MIB", mib, 1);
  const drop_in d = drop_in_open("1", "auto");
  hidden_calls calls = {.getrf = NULL};
  if (d.library != NULL)
    calls = calls_of(d.library);
  calls.d = d;
  return calls;
}

void hidden_close(hidden_calls *d) {
  drop_in_close(&d->d);
  unsetenv("HONE_LAPACK_HIDE");
  unsetenv("HONE_LAPACK_HIDE_MIB");
}

/* ---- Systems ------------------------------------------------------------ */

static void random_numbers(sup_rng *rng, size_t count, number *v) {
  sup_random(rng, (int64_t)(count * sizeof *v / sizeof(double)), 1, (double *)v,
             (int64_t)(count * sizeof *v / sizeof(double)));
}

/* A Hermitian matrix with a dominant diagonal is positive definite. */
static void make_definite(hidden_system *s) {
  for (int j = 0; j < s->n; j++) {
    for (int i = 0; i < j; i++)
      s->full[j + i * s->ld] = CONJ(s->full[i + j * s->ld]);
    s->full[j + j * s->ld] = 2.0 * s->n;
  }
  memcpy(s->a, s->full, entries(s->ld, s->n) * sizeof *s->a);
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->n; i++)
      if (s->uplo == 'U' ? i > j : i < j)
        s->a[i + j * s->ld] = (double)NAN;
}

hidden_system hidden_make(int n, int nrhs, char uplo) {
  sup_rng rng = {(uint64_t)(n + 11)};
  hidden_system s = {.n = n, .nrhs = nrhs, .ld = n + 3, .ld_f = n + 3};
  const size_t size = entries(s.ld, n), columns = entries(s.ld, nrhs);
  s.uplo = uplo;
  s.ipiv = calloc((size_t)n, sizeof *s.ipiv);
  s.full = calloc(size, sizeof *s.a);
  s.a = calloc(size, sizeof *s.a);
  s.f = calloc(size, sizeof *s.a);
  s.b = calloc(columns, sizeof *s.b);
  s.x = calloc(columns, sizeof *s.b);
  s.x_real = calloc(columns, sizeof *s.b);
  random_numbers(&rng, size, s.full);
  random_numbers(&rng, columns, s.b);
  for (int i = 0; i < n; i++)
    s.full[i + i * s.ld] += 2.0;
  memcpy(s.a, s.full, size * sizeof *s.a);
  if (uplo != 0)
    make_definite(&s);
  hidden_reset(&s);
  return s;
}

void hidden_reset(hidden_system *s) {
  memcpy(s->f, s->a, entries(s->ld, s->n) * sizeof *s->f);
  if (s->uplo == 0)
    memcpy(s->full, s->a, entries(s->ld, s->n) * sizeof *s->f);
  s->info = -77;
}

void hidden_free(hidden_system *s) {
  free(s->ipiv);
  free(s->full);
  free(s->a);
  free(s->b);
  free(s->f);
  free(s->x);
  free(s->x_real);
}

static double error_of_row(const hidden_system *s, char trans, int i,
                           const number *x, number b) {
  long double _Complex r = (long double _Complex)b;
  long double size = cabsl(r);
  for (int j = 0; j < s->n; j++) {
    const number a = trans == 'N'   ? s->full[i + j * s->ld]
                     : trans == 'T' ? s->full[j + i * s->ld]
                                    : CONJ(s->full[j + i * s->ld]);
    const long double _Complex product =
        (long double _Complex)a * (long double _Complex)x[j];
    r -= product;
    size += cabsl(product);
  }
  return (double)(cabsl(r) / size);
}

double hidden_backward_error(const hidden_system *s, char trans) {
  double most = 0.0;
  for (int k = 0; k < s->nrhs; k++)
    for (int i = 0; i < s->n; i++) {
      const double error =
          error_of_row(s, trans, i, s->x + k * s->ld, s->b[i + k * s->ld]);
      most = error <= most ? most : error;
    }
  return most;
}

/* ---- Calls -------------------------------------------------------------- */

static void start_x(hidden_system *s, number *x) {
  memcpy(x, s->b, entries(s->ld, s->nrhs) * sizeof *x);
}

/* Factors are hidden from call to call, which are told by the address to which
   they return. With info here, no compiler makes it the caller's address. */
void hidden_getrf(const hidden_calls *d, hidden_system *s) {
  int info = 0;
  d->getrf(&s->n, &s->n, s->f, &s->ld_f, s->ipiv, &info);
  s->info = info;
}

void hidden_getrs(const hidden_calls *d, hidden_system *s, char trans) {
  start_x(s, s->x);
  d->getrs(&trans, &s->n, &s->nrhs, s->f, &s->ld_f, s->ipiv, s->x, &s->ld,
           &s->info, 1);
}

void hidden_potrf(const hidden_calls *d, hidden_system *s) {
  int info = 0;
  d->potrf(&s->uplo, &s->n, s->f, &s->ld_f, &info, 1);
  s->info = info;
}

void hidden_potrs(const hidden_calls *d, hidden_system *s) {
  start_x(s, s->x);
  d->potrs(&s->uplo, &s->n, &s->nrhs, s->f, &s->ld_f, s->x, &s->ld, &s->info,
           1);
}

/* Calls dgecon_ or dpocon_. */
static void condition(hidden_con_fn *con, hidden_system *s, char norm,
                      double anorm, double *rcond) {
  number *work = calloc(entries(s->n, 4), sizeof *work);
  double *iwork = calloc(entries(s->n, 2), sizeof *iwork);
  con(&norm, &s->n, s->f, &s->ld_f, &anorm, rcond, work, iwork, &s->info, 1);
  free(work);
  free(iwork);
}

void hidden_gecon(const hidden_calls *d, hidden_system *s, char norm,
                  double anorm, double *rcond) {
  condition(d->gecon, s, norm, anorm, rcond);
}

void hidden_pocon(const hidden_calls *d, hidden_system *s, double anorm,
                  double *rcond) {
  condition(d->pocon, s, s->uplo, anorm, rcond);
}

void hidden_invert(const hidden_calls *d, hidden_system *s) {
  const int lwork = 64 * s->n;
  number *work = calloc((size_t)lwork, sizeof *work);
  if (s->uplo == 0)
    d->getri(&s->n, s->f, &s->ld, s->ipiv, work, &lwork, &s->info);
  else
    d->potri(&s->uplo, &s->n, s->f, &s->ld, &s->info, 1);
  free(work);
}

void hidden_real_getrs(hidden_system *s, char trans) {
  const hidden_calls d = real();
  hidden_getrs(&d, s, trans);
}

/* A copy of the system with LAPACK's own factors in f; f and ipiv are to be
   freed. */
static hidden_system factored(const hidden_system *s, int ld) {
  const hidden_calls d = real();
  hidden_system own = *s;
  own.ld_f = ld;
  own.f = calloc(entries(ld, s->n), sizeof *own.f);
  own.ipiv = calloc((size_t)s->n, sizeof *own.ipiv);
  for (int j = 0; j < s->n; j++)
    memcpy(own.f + j * ld, s->a + j * s->ld, (size_t)s->n * sizeof *own.f);
  if (s->uplo == 0)
    hidden_getrf(&d, &own);
  else
    hidden_potrf(&d, &own);
  return own;
}

static void free_factored(hidden_system *own) {
  free(own->f);
  free(own->ipiv);
}

void hidden_real_solve(hidden_system *s, char trans) {
  const hidden_calls d = real();
  hidden_system own = factored(s, s->n);
  own.x = s->x_real;
  hidden_getrs(&d, &own, trans);
  free_factored(&own);
}

bool hidden_same_x(const hidden_system *s) {
  return memcmp(s->x, s->x_real, entries(s->ld, s->nrhs) * sizeof *s->x) == 0;
}

void hidden_real_gecon(hidden_system *s, char norm, double anorm,
                       double *rcond) {
  hidden_system own = factored(s, s->n);
  condition(real().gecon, &own, norm, anorm, rcond);
  free_factored(&own);
}

void hidden_real_pocon(hidden_system *s, double anorm, double *rcond) {
  hidden_system own = factored(s, s->n);
  condition(real().pocon, &own, s->uplo, anorm, rcond);
  free_factored(&own);
}

static void check_same(const hidden_system *s, const hidden_system *own) {
  CHECK_EQ_INT(s->info, own->info);
  for (int j = 0; j < s->n; j++) {
    const int from = s->uplo == 'L' ? j : 0;
    const int to = s->uplo == 'U' ? j + 1 : s->n;
    CHECK_MEM_EQ(s->f + from + j * s->ld, own->f + from + j * s->ld,
                 (size_t)(to - from) * sizeof *s->f);
  }
}

void hidden_check_getrf(hidden_system *s) {
  hidden_system own = factored(s, s->ld);
  check_same(s, &own);
  CHECK_MEM_EQ(s->ipiv, own.ipiv, (size_t)s->n * sizeof(int));
  free_factored(&own);
}

void hidden_check_inverse(hidden_system *s) {
  const hidden_calls d = real();
  hidden_system own = factored(s, s->ld);
  hidden_invert(&d, &own);
  check_same(s, &own);
  free_factored(&own);
}
