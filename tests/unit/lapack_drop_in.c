/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* dlopen's constants */
#include "tests/unit/lapack_drop_in.h"

#include "tests/unit/ct.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct xerbla_calls xerbla_call;

__attribute__((visibility("default"))) void
xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length) {
  xerbla_call.calls++;
  xerbla_call.info = *info;
  snprintf(xerbla_call.name, sizeof xerbla_call.name, "%.*s",
           (int)(length < 15 ? length : 15), name);
}
__attribute__((visibility("default"))) void LAPACKE_xerbla(const char *name,
                                                           int info);
void LAPACKE_xerbla(const char *name, int info) {
  (void)name;
  xerbla_call.calls++;
  xerbla_call.info = info;
}

static bool keeps; /* memory for copies was set here */

drop_in drop_in_open(const char *crossover, const char *factors) {
  char folder[PATH_MAX], path[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  snprintf(path, sizeof path, "%s/libhone_lapack.so", dirname(folder));
  setenv("HONE_LAPACK_CROSSOVER", crossover, 1);
  setenv("HONE_LAPACK_FACTORS", factors, 1);
  keeps = getenv("HONE_LAPACK_KEPT_MIB") == NULL;
  if (keeps)
    setenv("HONE_LAPACK_KEPT_MIB", "1000", 1);
  drop_in d = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (d.library == NULL) {
    ct_note("%s", dlerror());
    CHECK(d.library != NULL);
    return d;
  }
  *(void **)&d.dgesv = dlsym(d.library, "dgesv_");
  *(void **)&d.dsgesv = dlsym(d.library, "dsgesv_");
  *(void **)&d.dgetrf = dlsym(d.library, "dgetrf_");
  *(void **)&d.dgetrs = dlsym(d.library, "dgetrs_");
  *(void **)&d.dposv = dlsym(d.library, "dposv_");
  *(void **)&d.dsposv = dlsym(d.library, "dsposv_");
  *(void **)&d.dpotrf = dlsym(d.library, "dpotrf_");
  *(void **)&d.dpotrs = dlsym(d.library, "dpotrs_");
  return d;
}

/* The library that the drop-in has loaded keeps a device's memory. */
static void release_kept(void) {
  void *library = dlopen("libhone.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL)
    return;
  int64_t (*release)(void) =
      (int64_t(*)(void))dlsym(library, "hone_release_kept");
  if (CHECK(release != NULL))
    (void)release();
  dlclose(library);
}

void drop_in_close(drop_in *d) {
  if (d->library != NULL)
    dlclose(d->library);
  release_kept();
  unsetenv("HONE_LAPACK_CROSSOVER");
  unsetenv("HONE_LAPACK_FACTORS");
  if (keeps)
    unsetenv("HONE_LAPACK_KEPT_MIB");
}

log_capture log_start(void) {
  log_capture capture = {.file = tmpfile()};
  fflush(stderr);
  capture.before = dup(2);
  if (CHECK(capture.file != NULL && capture.before >= 0))
    dup2(fileno(capture.file), 2);
  return capture;
}

char *log_stop(log_capture *capture) {
  fflush(stderr);
  dup2(capture->before, 2);
  close(capture->before);
  fseek(capture->file, 0, SEEK_END);
  const long length = ftell(capture->file);
  char *text = calloc((size_t)length + 1, 1);
  rewind(capture->file);
  CHECK(fread(text, 1, (size_t)length, capture->file) == (size_t)length);
  fclose(capture->file);
  return text;
}

enum { PAD = 3 };

void problem_reset(problem *s) {
  memcpy(s->f, s->a, entries(s->ld, s->n) * sizeof *s->f);
  memcpy(s->f_real, s->a, entries(s->ld, s->n) * sizeof *s->f);
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  for (int i = 0; i < s->n; i++)
    s->ipiv[i] = s->ipiv_real[i] = -7;
  s->info = s->iter = -77;
}

problem problem_make(int n, int nrhs, double cond) {
  sup_rng rng = {(uint64_t)(n + 1)};
  problem s = {.n = n, .nrhs = nrhs, .ld = n + PAD};
  s.ipiv = calloc((size_t)n, sizeof *s.ipiv);
  s.ipiv_real = calloc((size_t)n, sizeof *s.ipiv);
  s.a = calloc(entries(s.ld, n), sizeof *s.a);
  s.f = calloc(entries(s.ld, n), sizeof *s.a);
  s.f_real = calloc(entries(s.ld, n), sizeof *s.a);
  s.b = calloc(entries(s.ld, nrhs), sizeof *s.b);
  s.x = calloc(entries(s.ld, nrhs), sizeof *s.b);
  s.work = calloc(entries(n, nrhs), sizeof *s.work);
  s.swork = calloc(entries(n, n + nrhs), sizeof *s.swork);
  if (cond > 0.0) {
    sup_matrix_cond(&rng, n, SUP_GEOMETRIC, cond, s.a, s.ld);
  } else if (cond < 0.0) {
    sup_matrix_spd(&rng, n, -cond, s.f);
    for (int64_t j = 0; j < n; j++)
      memcpy(s.a + j * s.ld, s.f + j * n, (size_t)n * sizeof *s.a);
  } else {
    sup_random(&rng, n, n, s.a, s.ld);
  }
  sup_random(&rng, n, nrhs, s.b, s.ld);
  problem_reset(&s);
  return s;
}

void problem_free(problem *s) {
  free(s->ipiv);
  free(s->ipiv_real);
  free(s->a);
  free(s->f);
  free(s->f_real);
  free(s->b);
  free(s->x);
  free(s->work);
  free(s->swork);
}

double problem_backward_error(const problem *s, bool trans) {
  double most = 0.0;
  for (int64_t j = 0; j < s->nrhs; j++) {
    double omega = sup_backward_error(s->n, s->a, s->ld, trans,
                                      s->x + j * s->ld, s->b + j * s->ld);
    most = omega <= most ? most : omega;
  }
  return most;
}

void problem_check_same(const problem *s, const double *p, const double *q) {
  CHECK_MEM_EQ(p, q, entries(s->ld, s->n) * sizeof *p);
}

static void check_factors(const problem *s) {
  problem_check_same(s, s->f, s->f_real);
  CHECK_MEM_EQ(s->ipiv, s->ipiv_real, (size_t)s->n * sizeof(int));
}

void problem_check_getrf(problem *s) {
  int info = -77;
  dgetrf_(&s->n, &s->n, s->f_real, &s->ld, s->ipiv_real, &info);
  CHECK_EQ_INT(s->info, info);
  check_factors(s);
}

void problem_check_gesv(problem *s) {
  int info = -77;
  double *x = calloc(entries(s->ld, s->nrhs), sizeof *x);
  dgesv_(&s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x, &s->ld, &info);
  CHECK_EQ_INT(s->info, info);
  check_factors(s);
  free(x);
}

void drop_in_dgesv(const drop_in *d, problem *s) {
  d->dgesv(&s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld, &s->info);
}

void drop_in_dsgesv(const drop_in *d, problem *s) {
  d->dsgesv(&s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->b, &s->ld, s->x, &s->ld,
            s->work, s->swork, &s->iter, &s->info);
}

void drop_in_dposv(const drop_in *d, problem *s, char uplo) {
  d->dposv(&uplo, &s->n, &s->nrhs, s->f, &s->ld, s->x, &s->ld, &s->info, 1);
}

void drop_in_dsposv(const drop_in *d, problem *s, char uplo) {
  d->dsposv(&uplo, &s->n, &s->nrhs, s->f, &s->ld, s->b, &s->ld, s->x, &s->ld,
            s->work, s->swork, &s->iter, &s->info, 1);
}

void problem_spoil(const problem *s, char uplo, double *a) {
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++)
      if (uplo == 'U' ? i > j : i < j)
        a[i + j * s->ld] = (double)NAN;
}
