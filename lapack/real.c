/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the LAPACK that would have been called without us. That is the next one
   in the dynamic linker's order. A program that has loaded its LAPACK for one
   module alone, as Python does, has none there; then it is the one that the
   calling module depends on, else that of a module which depends on the caller,
   else any that is loaded, else the system's.

   A process may have several LAPACKs under the same names, each loaded for its
   own module: the wheels of Python bring theirs along. What is found beyond the
   linker's order is therefore remembered for the call's return address only. */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr, dl_iterate_phdr */
#include "lapack/dropin.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names ------------------------------------------------------------------- */

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

enum { LONGEST_NAME = 64 };

static bool is_fortran(hone_lapack_name which) {
  return which < HONE_REAL_LAPACKE_xerbla;
}

static const char *const bases[] = {
#define BASE(name) #name,
    HONE_LAPACK_FORTRAN_LIST(BASE) HONE_LAPACK_C_LIST(BASE)
#undef BASE
};

static const struct {
  const char *prefix, *fortran_end, *c_end;
} interfaces[] = {
#define ROW(interface)                                                         \
  {TEXT(HONE_PREFIX_##interface), TEXT(HONE_FORTRAN_END_##interface),          \
   TEXT(HONE_C_END_##interface)},
    HONE_LAPACK_INTERFACE_LIST(ROW)
#undef ROW
};

static void write_name(char to[LONGEST_NAME], hone_lapack_name which,
                       hone_lapack_interface interface) {
  snprintf(to, LONGEST_NAME, "%s%s%s", interfaces[interface].prefix,
           bases[which],
           is_fortran(which) ? interfaces[interface].fortran_end
                             : interfaces[interface].c_end);
}

/* Modules ----------------------------------------------------------------- */

static char missing; /* its address says that a name was not found */

/* A program or library that is loaded. */
typedef struct module {
  const char *address; /* code in it */
  const char *name;    /* its file's name; "" for the program */
  const void *headers; /* these tell modules apart; NULL if none was found */
} module;

/* No thread visits the modules when the process is forked: the loader's lock
   for that would stay locked in the child, whose first call would wait for it
   for ever. */
static pthread_mutex_t visiting = PTHREAD_MUTEX_INITIALIZER;
static void lock_visits(void) { pthread_mutex_lock(&visiting); }
static void unlock_visits(void) { pthread_mutex_unlock(&visiting); }
__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(lock_visits, unlock_visits, unlock_visits);
}

static void visit_modules(int (*look)(struct dl_phdr_info *, size_t, void *),
                          void *to) {
  lock_visits();
  (void)dl_iterate_phdr(look, to);
  unlock_visits();
}

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
    visit_modules(look_into, &m);
  return m;
}

const void *hone_lapack_module(hone_lapack_caller at) {
  return module_of(at.address).headers;
}

const char *hone_lapack_module_path(hone_lapack_caller at) {
  return module_of(at.address).name;
}

static bool together(const void *p, const void *q) {
  return p != NULL && q != NULL && module_of(p).headers == module_of(q).headers;
}

static int read_unloads(struct dl_phdr_info *info, size_t size, void *p) {
  (void)size;
  *(unsigned long long *)p = info->dlpi_subs;
  return 1;
}

/* Returns how many modules the process has unloaded: while this number stays,
   an address belongs to the same module. */
static unsigned long long unloads(void) {
  unsigned long long count = 0;
  visit_modules(read_unloads, &count);
  return count;
}

/* Looking up -------------------------------------------------------------- */

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

/* Looks in a module and in those that it depends on. */
static void *of_module(const char *name, const void *address) {
  const module m = module_of(address);
  if (m.headers == NULL)
    return NULL;
  return m.name[0] ? in_library(m.name, RTLD_NOLOAD, name, NULL)
                   : in_library(NULL, RTLD_NOLOAD, name, address);
}

/* Returns the file's name without its folder. */
static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Tells whether the module of the link map names this file as one that it
   needs. */
static bool needs(const struct link_map *map, const char *file) {
  const char *strings = NULL;
  for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_STRTAB) {
      const ElfW(Addr) at = d->d_un.d_ptr; /* not relocated on some machines */
      strings = (const char *)(at < map->l_addr ? at + map->l_addr : at);
    }
  for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL && strings; d++)
    if (d->d_tag == DT_NEEDED &&
        strcmp(file_of(strings + d->d_un.d_val), file) == 0)
      return true;
  return false;
}

/* Looks in all loaded modules; if 'of' is not NULL, in those alone that need
   this file. */
static void *of_others(const char *name, const char *of) {
  void *self = dlopen(NULL, RTLD_LAZY), *function = NULL;
  struct link_map *map = NULL;
  if (self == NULL)
    return NULL;
  if (dlinfo(self, RTLD_DI_LINKMAP, &map) == 0)
    for (; map != NULL && function == NULL; map = map->l_next)
      if (map->l_name[0] != '\0' && (of == NULL || needs(map, of)))
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
  const module m = module_of(function);
  if (m.name[0])
    dlopen(m.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Looks beyond the linker's global order. */
static void *of_caller(const char *name, hone_lapack_name which,
                       hone_lapack_caller at) {
  void *function = of_module(name, at.address);
  if (function == NULL && module_of(at.address).name[0])
    function = of_others(name, file_of(module_of(at.address).name));
  if (function == NULL)
    function = of_others(name, NULL);
  if (function == NULL && is_fortran(which))
    function = of_system(name);
  return function;
}

/* A name is found in the linker's global order for all callers alike. */
static _Atomic(void *) global[HONE_LAPACK_INTERFACES][HONE_REAL_COUNT];

static void *look_up(hone_lapack_name which, hone_lapack_caller at) {
  char name[LONGEST_NAME];
  /* The drop-in defines these; any other function the program itself may
     define, and then it comes first. */
  const bool ours = which < HONE_REAL_dgerfs;
  write_name(name, which, at.interface);
  void *function = foreign(dlsym(ours ? RTLD_NEXT : RTLD_DEFAULT, name), NULL);
  if (function != NULL)
    atomic_store_explicit(&global[at.interface][which], function,
                          memory_order_release);
  else
    function = of_caller(name, which, at);
  if (function != NULL)
    pin(function);
  return function != NULL ? function : &missing;
}

/* Returns the function that tells the number of threads of the library that the
   caller's dgetrf_ is in. */
static void *look_up_threads(hone_lapack_caller at) {
  char name[LONGEST_NAME];
  write_name(name, HONE_REAL_openblas_get_num_threads, at.interface);
  void *const factors = hone_lapack_real(HONE_REAL_dgetrf, at);
  void *function = factors != NULL ? of_module(name, factors) : NULL;
  return function != NULL ? function : &missing;
}

/* Looks for dgerfs_ in the caller's own module. */
static void *look_up_own(hone_lapack_caller at) {
  char name[LONGEST_NAME];
  write_name(name, HONE_REAL_dgerfs, at.interface);
  void *function = of_module(name, at.address);
  return together(function, at.address) ? function : &missing;
}

/* A function that a thread has found for a return address. */
typedef struct site {
  hone_lapack_caller at;
  hone_lapack_name which;
  unsigned long long unloads;
  void *function;
} site;

void *hone_lapack_real(hone_lapack_name which, hone_lapack_caller at) {
  enum { SITES = 64 };
  static _Thread_local site sites[SITES];
  void *function =
      atomic_load_explicit(&global[at.interface][which], memory_order_acquire);
  if (function != NULL)
    return function;
  const uintptr_t key = (uintptr_t)at.address * 31 + (uintptr_t)which * 7 +
                        (uintptr_t)at.interface;
  site *s = &sites[(key ^ key >> 7) % SITES];
  const unsigned long long now = unloads();
  if (s->function == NULL || s->at.address != at.address ||
      s->at.interface != at.interface || s->which != which || s->unloads != now)
    *s = (site){.at = at,
                .which = which,
                .unloads = now,
                .function = which == HONE_REAL_dgerfs ? look_up_own(at)
                            : which == HONE_REAL_openblas_get_num_threads
                                ? look_up_threads(at)
                                : look_up(which, at)};
  return s->function == &missing ? NULL : s->function;
}

void *hone_lapack_must(hone_lapack_name which, hone_lapack_caller at) {
  void *function = hone_lapack_real(which, at);
  if (function == NULL) {
    char name[LONGEST_NAME];
    write_name(name, which, at.interface);
    fprintf(stderr, "hone_lapack: no library defines %s\n", name);
    exit(127); /* as the dynamic linker does for an undefined symbol */
  }
  return function;
}

bool hone_lapack_is_lapack(hone_lapack_caller at) {
  return hone_lapack_real(HONE_REAL_dgerfs, at) != NULL;
}

int hone_lapack_real_threads(hone_lapack_caller at) {
  hone_get_num_threads_fn *threads =
      (hone_get_num_threads_fn *)hone_lapack_real(
          HONE_REAL_openblas_get_num_threads, at);
  return threads ? threads() : 0;
}

/* A routine's answer to "has it 64-bit integers?", the last one of each
   thread. */
static _Thread_local struct {
  void *function;
  bool wide;
} asked;

/* INFO of a factorization of order 0 is all zeros only where it has 64 bits. */
bool hone_lapack_other_width(hone_lapack_caller at) {
  typedef void dgetrf_fn(const int64_t *m, const int64_t *n, double *a,
                         const int64_t *lda, int64_t *ipiv, int64_t *info);
  const int64_t zero = 0, one = 1;
  int64_t ipiv = 0, info = -1;
  double a = 0.0;
  if (hone_lapack_wide(at.interface))
    return false;
  void *const function = hone_lapack_real(HONE_REAL_dgetrf, at);
  if (function == NULL)
    return false;
  if (function != asked.function) {
    ((dgetrf_fn *)function)(&zero, &zero, &a, &one, &ipiv, &info);
    asked.function = function;
    asked.wide = info == 0;
  }
  return asked.wide;
}
