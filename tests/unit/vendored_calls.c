/* SPDX-License-Identifier: BSD-3-Clause */
/* How often the routines of vendored_lapack.c were called in this library,
   functions that OpenBLAS has besides, and OpenBLAS itself. */
#define _GNU_SOURCE /* dlinfo, dladdr */
#include "lapack/interfaces.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int vendored_calls;
void *vendored_real(const char *name);

/* Returns the function of this name that is not the drop-in's. */
void *vendored_real(const char *name) {
  struct link_map *map = NULL;
  Dl_info info;
  dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &map);
  for (; map != NULL; map = map->l_next) {
    void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (function != NULL && dladdr(function, &info) &&
        strstr(info.dli_fname, "libhone_lapack") == NULL)
      return function;
  }
  abort();
}

#define EXPORT(type, name, parameters)                                         \
  __attribute__((visibility("default"))) type name parameters;                 \
  type name parameters

EXPORT(int, vendored_calls_so_far, (void)) { return vendored_calls; }

EXPORT(int, HONE_C_NAME(SCIPY_ILP64, openblas_get_num_threads), (void)) {
  vendored_calls++;
  return 1;
}

/* The sum of INFO of all wrong arguments that LAPACKE has reported. */
static int64_t errors;
EXPORT(void, HONE_C_NAME(SCIPY_ILP64, LAPACKE_xerbla),
       (const char *name, int64_t info)) {
  (void)name;
  errors += info;
}
EXPORT(int64_t, vendored_errors_so_far, (void)) { return errors; }
