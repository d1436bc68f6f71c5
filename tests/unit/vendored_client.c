/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that loads modules, each with a LAPACK of its own, as Python does.
   It is linked with the drop-in, which therefore comes first in the linker's
   order. test_lapack_names.c runs it.

   usage: vendored_client MODE [discard]
     solve    all interfaces through one module
     apart    three modules, each with its LAPACK
     reload   a module that takes the place of one that is unloaded
     expert   a LAPACK's calls of itself
     none     nothing is called
   discard says that factors are discarded. */
#define _GNU_SOURCE /* readlink with every libc */
#include "tests/unit/vendored_check.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *load(const char *file) {
  char folder[PATH_MAX], path[PATH_MAX + 64];
  const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  snprintf(path, sizeof path, "%s/%s", dirname(folder), file);
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(2);
  }
  return library;
}

static const vendored_caller *table(void *library, const char *interface,
                                    const char *letter) {
  char name[64];
  snprintf(name, sizeof name, "vendored_caller_%s_%s", interface, letter);
  const vendored_caller *found = dlsym(library, name);
  if (found == NULL) {
    printf("%s\n", dlerror());
    exit(2);
  }
  return found;
}

static int solve(bool discards) {
  static const char *const interfaces[] = {"SCIPY_LP64", "ILP64",
                                           "SCIPY_ILP64"};
  void *library = load("libcaller_a.so");
  int failures = 0;
  for (int k = 0; k < 3; k++)
    failures += vendored_check_d(table(library, interfaces[k], "d"),
                                 interfaces[k], discards) +
                vendored_check_z(table(library, interfaces[k], "z"),
                                 interfaces[k], discards);
  return failures;
}

/* How often the LAPACK was called that the module brings along. */
static int calls(void *library) {
  int (*so_far)(void);
  *(void **)&so_far = dlsym(library, "vendored_calls_so_far");
  return so_far();
}

/* The sum of what LAPACKE_xerbla of that LAPACK was called with. */
static int64_t errors(void *library) {
  int64_t (*so_far)(void);
  *(void **)&so_far = dlsym(library, "vendored_errors_so_far");
  return so_far();
}

/* Solves by the modules in turns; a LAPACK is called by its own module only,
   also by one that does not name it itself (underlinked), but whose dependent
   does. */
static int apart(bool discards) {
  void *library[] = {load("libcaller_a.so"), load("libcaller_b.so"),
                     load("libroot_c.so")};
  int failures = 0;
  for (int turn = 0; turn < 6; turn++) {
    int before[3];
    for (int k = 0; k < 3; k++)
      before[k] = calls(library[k]);
    failures += vendored_check_d(
        table(library[turn % 3], turn < 3 ? "SCIPY_ILP64" : "ILP64", "d"),
        "apart", discards);
    for (int k = 0; k < 3; k++) {
      const int more = calls(library[k]) - before[k];
      if ((k == turn % 3) != (more > 0)) {
        printf("turn %d: LAPACK %d was called %d times\n", turn, k, more);
        failures++;
      }
    }
  }
  for (int k = 0; k < 3; k++) /* one wrong layout each, in ILP64 */
    failures += errors(library[k]) != -1;
  return failures;
}

/* Loads a module where another one was, so that its calls come from the same
   addresses. */
static int reload(void) {
  void *first = load("libcaller_a.so"), *lapack = load("libvendored_a.so");
  const vendored_caller *was = table(first, "ILP64", "d");
  int failures = vendored_check_d(was, "reload", false);
  const int before = calls(lapack);
  dlclose(first);
  void *second = load("libcaller_b.so");
  const vendored_caller *is = table(second, "ILP64", "d");
  printf("the module lies %s\n", is == was ? "there" : "elsewhere");
  failures += vendored_check_d(is, "reload", false);
  if (calls(lapack) != before || calls(second) == 0) {
    printf("the first module's LAPACK was called for the second\n");
    failures++;
  }
  return failures;
}

/* Calls the LAPACK's own dgerfs, which calls its dgetrs. */
static int expert(void) {
  void *library = load("libcaller_a.so");
  enum { N = 40 };
  static double a[N * N], b[N];
  int32_t n = N, one = 1, ipiv[N], info = -77;
  vendored_system s = {.n = N, .nrhs = 1, .ld = N, .a = a, .ipiv = ipiv};
  for (int i = 0; i < N; i++) {
    b[i] = 1.0;
    for (int j = 0; j < N; j++)
      a[i + j * N] = 1.0 / (1.0 + (i > j ? i - j : j - i));
  }
  table(library, "SCIPY_LP64", "d")->getrf(&s);
  void (*gerfs)(const int32_t *n_of, const int32_t *nrhs, const double *f,
                const int32_t *lda, const int32_t *pivots, double *x,
                const int32_t *ldb, int32_t *out);
  *(void **)&gerfs = dlsym(library, "scipy_dgerfs_");
  gerfs(&n, &one, a, &n, ipiv, b, &n, &info);
  return info != 0;
}

int main(int count, char **args) {
  const char *mode = count > 1 ? args[1] : "";
  const bool discards = count > 2;
  int failures = 1;
  if (strcmp(mode, "solve") == 0)
    failures = solve(discards);
  else if (strcmp(mode, "apart") == 0)
    failures = apart(discards);
  else if (strcmp(mode, "reload") == 0)
    failures = reload();
  else if (strcmp(mode, "expert") == 0)
    failures = expert();
  else if (strcmp(mode, "none") == 0)
    failures = 0;
  printf("%s: %d failures\n", mode, failures);
  return failures != 0;
}
