/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the library at the first call that it is to solve, so that programs
   which solve nothing pay nothing. It is bound to its own names first
   (RTLD_DEEPBIND), not to those of a program that has Hone linked into it. */
#define _GNU_SOURCE /* RTLD_DEEPBIND, RTLD_DEFAULT */
#include "lapack/dropin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef HONE_COMPLEX
static const char name[] = "hone_z_solve";
static const char table_name[] = "hone_z_single_functions";
#else
static const char name[] = "hone_solve";
static const char table_name[] = "hone_single_functions";
#endif

typedef int solve_fn(int64_t n, int64_t nrhs, const hone_entry *a, int64_t lda,
                     const hone_entry *b, int64_t ldb, hone_entry *x,
                     int64_t ldx, const hone_options *options,
                     hone_report *report);

typedef const hone_single_table *table_fn(void);

static solve_fn *_Atomic solve;
static const hone_single_table
    *_Atomic table;         /* NULL: of another version, or none */
static _Atomic bool loaded; /* or looked for in vain */

static const char file[] = "libhone.so.0";

#ifndef RTLD_DEEPBIND /* musl and macOS have none */
#define RTLD_DEEPBIND 0
#endif

/* Opens the library in our own folder, or else where the system looks. It is
   never closed. Without it, why says what stands in the way in our folder, or,
   where it is not there, elsewhere. */
static void *open_library(int mode, char *why, size_t why_size) {
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
      if (library == NULL && access(path, F_OK) == 0)
        snprintf(why, why_size, "%s", dlerror());
    }
  }
  if (library == NULL)
    library = dlopen(file, mode);
  if (library == NULL && why[0] == '\0')
    snprintf(why, why_size, "%s", dlerror());
  return library;
}

/* Looks for the library, and its functions, at the first call. There is no
   lock: a thread that calls from the constructor of a library has the loader's,
   for which another one may be waiting here. Two that look find the same. */
static void load(void) {
  if (atomic_load_explicit(&loaded, memory_order_acquire))
    return;
  int mode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL ||
      dlsym(RTLD_DEFAULT, "__tsan_init") != NULL)
    mode &= ~RTLD_DEEPBIND; /* sanitizers do not allow it */
  char why[256] = "";
  void *library = open_library(mode, why, sizeof why);
  solve_fn *const solver =
      library != NULL ? (solve_fn *)dlsym(library, name) : NULL;
  const char *const lacking = library == NULL ? why : dlerror();
  table_fn *const functions =
      solver != NULL ? (table_fn *)dlsym(library, table_name) : NULL;
  if (functions != NULL && functions()->struct_size == sizeof *table)
    table = functions();
  solve = solver;
  if (!atomic_exchange(&loaded, true) && solver == NULL)
    fprintf(stderr,
            "hone_lapack: everything is solved in double, because libhone "
            "cannot be loaded: %s\n",
            lacking);
}

const hone_single_table *hone_lapack_single_table(void) {
  load();
  return table;
}

typedef struct counter {
  bool definite;
  int factorizations; /* begun by the library */
} counter;

/* Stops before a factorization in double, which the real LAPACK can do as well
   and then leaves in A. If A has to be positive definite, it also stops before
   LU is tried after Cholesky. */
static int watch(void *user, const hone_progress *event) {
  counter *c = user;
  if (strcmp(event->phase, "factor in double") == 0)
    return 1;
  if (strcmp(event->phase, "factor") == 0 && event->fraction <= 0.0)
    c->factorizations++;
  return c->definite && c->factorizations > 1;
}

int hone_lapack_single(int64_t n, int64_t nrhs, const hone_entry *a,
                       int64_t lda, const hone_entry *b, int64_t ldb,
                       hone_entry *x, int64_t ldx, char uplo,
                       hone_lapack_caller at, hone_report *report) {
  const bool definite = uplo != 0;
  counter c = {.definite = definite};
  hone_options options = HONE_OPTIONS_INIT;
  *report = (hone_report)HONE_REPORT_INIT;
  load();
  /* Read once: gcc 12 does not read an atomic pointer atomically to call it. */
  solve_fn *const solver = atomic_load(&solve);
  if (solver == NULL)
    return HONE_NO_DEVICE;
  options.threads = hone_lapack_real_threads(at);
  options.structure = definite ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
  options.triangle = uplo == 'U'   ? HONE_TRIANGLE_UPPER
                     : uplo == 'L' ? HONE_TRIANGLE_LOWER
                                   : 0;
  /* Where single precision does not suffice, LAPACK's own factors follow. */
  options.factor_precision = HONE_FACTOR_SINGLE;
  options.progress = watch;
  options.progress_user = &c;
  hone_lapack_enter();
  int st = solver(n, nrhs, a, lda, b, ldb, x, ldx, &options, report);
  hone_lapack_leave();
  if (definite && st == HONE_OK &&
      (c.factorizations > 1 || strstr(report->path, "Cholesky") == NULL))
    st = HONE_INTERRUPTED; /* solved, but not shown to be positive definite */
  return st;
}
