/* SPDX-License-Identifier: BSD-3-Clause */
/* The library, loaded at the first solve that is for it, so that programs
   which only start with us preloaded pay nothing. It is bound to its own
   OpenBLAS first (RTLD_DEEPBIND): neither to our names, which would come back
   here, nor to a reference BLAS that the program may have. */
#define _GNU_SOURCE /* RTLD_DEEPBIND, RTLD_DEFAULT */
#include "lapack/dropin.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef int solve_fn(int64_t n, int64_t nrhs, const double *a, int64_t lda,
                     const double *b, int64_t ldb, double *x, int64_t ldx,
                     const hone_options *options, hone_report *report);

static solve_fn *solve;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static const char file[] = "libhone.so.0";

/* The library beside us, else where the system looks. For good: it is never
   closed. */
static void *open_library(int mode) {
  Dl_info info;
  char path[PATH_MAX + sizeof file];
  void *library = NULL;
  if (dladdr(file, &info) && info.dli_fname != NULL) {
    const char *slash = strrchr(info.dli_fname, '/');
    size_t folder = slash ? (size_t)(slash - info.dli_fname) + 1 : 0;
    if (folder > 0 && folder < PATH_MAX) {
      memcpy(path, info.dli_fname, folder);
      memcpy(path + folder, file, sizeof file);
      library = dlopen(path, mode);
    }
  }
  return library ? library : dlopen(file, mode);
}

static void load(void) {
  int mode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL)
    mode &= ~RTLD_DEEPBIND; /* AddressSanitizer refuses it */
  void *library = open_library(mode);
  if (library != NULL)
    solve = (solve_fn *)dlsym(library, "hone_solve");
  if (solve == NULL)
    fprintf(stderr, "hone_lapack: all is solved in double: %s\n", dlerror());
}

/* The factorizations that the library has begun. */
typedef struct course {
  bool definite;
  int factorizations;
} course;

/* Stops before a factorization in double, which the real LAPACK can do as
   well and leave in A; and, where A has to be positive definite, before LU
   follows upon Cholesky. */
static int watch(void *user, const hone_progress *event) {
  course *c = user;
  if (strcmp(event->phase, "factor in double") == 0)
    return 1;
  if (strcmp(event->phase, "factor") == 0 && event->fraction <= 0.0)
    c->factorizations++;
  return c->definite && c->factorizations > 1;
}

int hone_lapack_single(int n, int nrhs, const double *a, int lda,
                       const double *b, int ldb, double *x, int ldx,
                       bool definite, const void *caller, hone_report *report) {
  course c = {.definite = definite};
  hone_options options = HONE_OPTIONS_INIT;
  *report = (hone_report)HONE_REPORT_INIT;
  pthread_once(&loaded, load);
  if (solve == NULL)
    return HONE_NO_DEVICE;
  options.threads = hone_lapack_real_threads(caller);
  options.structure = definite ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
  options.progress = watch;
  options.progress_user = &c;
  hone_lapack_enter();
  int st = solve(n, nrhs, a, lda, b, ldb, x, ldx, &options, report);
  hone_lapack_leave();
  if (definite && st == HONE_OK &&
      (c.factorizations > 1 || strstr(report->path, "Cholesky") == NULL))
    st = HONE_INTERRUPTED; /* solved, but by nothing that showed A definite */
  return st;
}
