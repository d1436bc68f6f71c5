/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the LAPACK that would have been called without us. That is the next one
   in the dynamic linker's order. A program that has loaded its LAPACK for one
   module alone, as Python does, has none there; then it is the one that the
   calling module depends on, else any that is loaded, else the system's. */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr, dl_iterate_phdr */
#include "lapack/dropin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define HONE_LAPACK_REAL_TEXT(name) #name,
    HONE_LAPACK_REAL_LIST(HONE_LAPACK_REAL_TEXT)
#undef HONE_LAPACK_REAL_TEXT
};

static char missing; /* its address says that a name was not found */
static _Atomic(void *) found[HONE_REAL_COUNT];

/* A program or library that is loaded. */
typedef struct module {
  const char *address; /* code in it */
  const char *name;    /* its file's name; "" for the program */
  const void *headers; /* these tell modules apart; NULL if none was found */
} module;

static int look_into(struct dl_phdr_info *info, size_t size, void *p) {
  module *m = p;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    const uintptr_t at = (uintptr_t)m->address - info->dlpi_addr;
    if (part->p_type == PT_LOAD && at >= part->p_vaddr &&
        at - part->p_vaddr < part->p_memsz) {
      m->name = info->dlpi_name;
      m->headers = info->dlpi_phdr;
      return 1;
    }
  }
  return 0;
}

/* Finds the module that holds an address. dladdr does so too, but searches all
   symbols of the module: 0.3 ms for OpenBLAS. */
static module module_of(const void *address) {
  module m = {.address = address, .name = ""};
  if (address != NULL)
    dl_iterate_phdr(look_into, &m);
  return m;
}

static bool together(const void *p, const void *q) {
  return p != NULL && q != NULL && module_of(p).headers == module_of(q).headers;
}

/* Returns the function if another library than ours defines it, otherwise NULL.
   A program's linkage table may have an entry that stands for our function: no
   function in the module that holds the address not_in is accepted (NULL: every
   module will do). */
static void *foreign(void *function, const void *not_in) {
  const bool ours = module_of(function).headers == NULL ||
                    together(function, &missing) || together(function, not_in);
  return ours ? NULL : function;
}

static void *in_library(const char *path, int mode, const char *name,
                        const void *not_in) {
  void *library = dlopen(path, RTLD_LAZY | mode);
  if (library == NULL)
    return NULL;
  void *function = foreign(dlsym(library, name), not_in);
  if (function == NULL || (mode & RTLD_NOLOAD))
    dlclose(library); /* it stays if it was loaded before */
  return function;
}

/* Looks in the module that calls and in those that it depends on. */
static void *of_caller(const char *name, const void *caller) {
  const module m = module_of(caller);
  if (m.headers == NULL)
    return NULL;
  return m.name[0] ? in_library(m.name, RTLD_NOLOAD, name, NULL)
                   : in_library(NULL, RTLD_NOLOAD, name, caller);
}

static void *of_anyone(const char *name) {
  void *self = dlopen(NULL, RTLD_LAZY), *function = NULL;
  struct link_map *map = NULL;
  if (self == NULL)
    return NULL;
  if (dlinfo(self, RTLD_DI_LINKMAP, &map) == 0)
    for (; map != NULL && function == NULL; map = map->l_next)
      if (map->l_name[0] != '\0')
        function = in_library(map->l_name, RTLD_NOLOAD, name, NULL);
  dlclose(self);
  return function;
}

static void *of_system(const char *name) {
  static const char *const libraries[] = {"liblapack.so.3", "libopenblas.so.0"};
  void *function = NULL;
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
    if (function == NULL)
      function = in_library(libraries[i], 0, name, NULL);
  return function;
}

/* Keeps the library loaded that defines the function, even when its owner
   closes it. */
static void pin(void *function) {
  Dl_info info;
  if (dladdr(function, &info) && info.dli_fname != NULL)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void *look_up(hone_lapack_name which, const void *caller) {
  const char *name = names[which];
  /* The drop-in defines these; any other function the program itself may
     define, and then it comes first. */
  const bool ours = which < HONE_REAL_xerbla_;
  const bool lapack = which < HONE_REAL_LAPACKE_xerbla;
  void *function = foreign(dlsym(ours ? RTLD_NEXT : RTLD_DEFAULT, name), NULL);
  if (function == NULL)
    function = of_caller(name, caller);
  if (function == NULL)
    function = of_anyone(name);
  if (function == NULL && lapack)
    function = of_system(name);
  if (function != NULL)
    pin(function);
  return function;
}

void *hone_lapack_real(hone_lapack_name which, const void *caller) {
  void *function = atomic_load_explicit(&found[which], memory_order_acquire);
  if (function == NULL) {
    function = look_up(which, caller);
    if (function == NULL)
      function = &missing;
    atomic_store_explicit(&found[which], function, memory_order_release);
  }
  return function == &missing ? NULL : function;
}

void *hone_lapack_must(hone_lapack_name which, const void *caller) {
  void *function = hone_lapack_real(which, caller);
  if (function == NULL) {
    fprintf(stderr, "hone_lapack: no library defines %s\n", names[which]);
    exit(127); /* as the dynamic linker does for an undefined symbol */
  }
  return function;
}

bool hone_lapack_is_lapack(const void *caller) {
  return together(of_caller("dgerfs_", caller), caller);
}

int hone_lapack_real_threads(const void *caller) {
  Dl_info info;
  void *function = hone_lapack_must(HONE_REAL_dgetrf_, caller);
  hone_get_num_threads_fn *threads = NULL;
  if (dladdr(function, &info) && info.dli_fname != NULL)
    threads = (hone_get_num_threads_fn *)in_library(
        info.dli_fname, RTLD_NOLOAD, names[HONE_REAL_openblas_get_num_threads],
        NULL);
  return threads ? threads() : 0;
}
