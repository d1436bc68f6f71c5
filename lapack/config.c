/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the environment once, writes the log, and tells which callers do not
   read factors. */
#define _GNU_SOURCE /* dladdr, program_invocation_short_name */
#include "lapack/dropin.h"

#include "api/guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Modules that give dgesv_ a copy of the matrix and never read its factors, by
   the beginning of their file's name. Read all of a module's calls before you
   add it. */
static const char *const discarding[] = {
    "_umath_linalg.", /* NumPy: solve and inv, since 1.8 */
};

/* Another table has one row: who reads no factors of dgetrf_ and dpotrf_.
   SciPy's module has solve and inv in release 1.17, which solve and invert
   before they factor another matrix. Later releases have more in it, of which
   some show the factors. */
static const char scipy_module[] = "_batched_linalg.";
static const char scipy_release[] = "1.17.";

static hone_lapack_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

/* Returns the variable's value if it is a whole number from 0 to most, and
   otherwise the default. */
static int64_t number(const char *name, int64_t most, int64_t otherwise) {
  const char *text = getenv(name);
  char *end;
  if (text == NULL || text[0] == '\0')
    return otherwise;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > most) {
    fprintf(stderr, "hone_lapack: %s=%s is not a number from 0 to %lld\n", name,
            text, (long long)most);
    return otherwise;
  }
  return value;
}

static bool is_set(const char *name) {
  const char *text = getenv(name);
  return text != NULL && text[0] != '\0' && strcmp(text, "0") != 0;
}

enum { NAMES = 1024 };

/* Copies the names, because the environment may change later, and may be gone
   before the last call. Returns NULL if they are too long. */
static const char *take_names(const char *variable, const char *value,
                              char names[NAMES]) {
  if (strlen(value) >= NAMES) {
    fprintf(stderr, "hone_lapack: %s is too long\n", variable);
    return NULL;
  }
  return memcpy(names, value, strlen(value) + 1);
}

/* An eighth of the machine's memory. */
static int64_t some_memory(void) {
  return (int64_t)sysconf(_SC_PHYS_PAGES) / 8 * (int64_t)sysconf(_SC_PAGESIZE);
}

static void read_hiding(int64_t mib) {
  static char names[NAMES];
  const char *hide = getenv("HONE_LAPACK_HIDE");
  const int64_t limit = number("HONE_LAPACK_HIDE_MIB", INT64_MAX / mib, -1);
  config.hidden_bytes = limit >= 0 ? limit * mib : some_memory();
  config.hide = HONE_LAPACK_HIDE_KNOWN;
  if (hide != NULL && strcmp(hide, "never") == 0)
    config.hide = HONE_LAPACK_HIDE_NEVER;
  else if (hide != NULL && strcmp(hide, "always") == 0)
    config.hide = HONE_LAPACK_HIDE_ALWAYS;
  else if (hide != NULL && strcmp(hide, "auto") != 0)
    config.hiding = take_names("HONE_LAPACK_HIDE", hide, names);
}

/* Reads the variable HONE_LAPACK. */
static bool is_on(const char *mode) {
  if (mode == NULL || mode[0] == '\0' || strcmp(mode, "on") == 0 ||
      strcmp(mode, "1") == 0)
    return true;
  if (strcmp(mode, "off") == 0 || strcmp(mode, "0") == 0)
    return false;
  fprintf(stderr, "hone_lapack: HONE_LAPACK=%s is neither on nor off\n", mode);
  return true;
}

static void read_environment(void) {
  static char names[NAMES];
  const char *mode = getenv("HONE_LAPACK");
  const char *factors = getenv("HONE_LAPACK_FACTORS");
  const int64_t mib = 1 << 20;
  hone_guest guest;
  hone_guest_enter(&guest); /* lines on stderr are no place to be cancelled */
  config.on = is_on(mode);
  config.log = is_set("HONE_LOG");
  config.crossover = (int)number("HONE_LAPACK_CROSSOVER", INT32_MAX, -1);
  config.columns = (int)number("HONE_LAPACK_RHS", INT32_MAX, -1);
  config.kept_bytes = number("HONE_LAPACK_KEPT_MIB", INT64_MAX / mib, 0) * mib;
  config.factors = HONE_LAPACK_AUTO;
  if (factors != NULL && strcmp(factors, "keep") == 0)
    config.factors = HONE_LAPACK_KEEP;
  else if (factors != NULL && strcmp(factors, "discard") == 0)
    config.factors = HONE_LAPACK_DISCARD;
  else if (factors != NULL && strcmp(factors, "auto") != 0)
    config.discarding = take_names("HONE_LAPACK_FACTORS", factors, names);
  read_hiding(mib);
  hone_guest_leave(&guest);
}

const hone_lapack_config *hone_lapack_settings(void) {
  pthread_once(&config_once, read_environment);
  return &config;
}

/* Callers ----------------------------------------------------------------- */

static bool begins(const char *text, const char *with, size_t length) {
  return length > 0 && strncmp(text, with, length) == 0;
}

/* Has a module called whose name one of these variables gives? */
static atomic_bool discarding_called, hiding_called;

/* Tells whether a module's name begins with one of the names "a:b"; *called
   becomes true then. */
static bool named(const char *module, const char *names, atomic_bool *called) {
  for (const char *at = names; at != NULL;) {
    size_t length = strcspn(at, ":");
    if (begins(module, at, length)) {
      atomic_store(called, true);
      return true;
    }
    at = at[length] == ':' ? at + length + 1 : NULL;
  }
  return false;
}

static bool listed(const char *module) {
  for (size_t i = 0; i < sizeof discarding / sizeof discarding[0]; i++)
    if (begins(module, discarding[i], strlen(discarding[i])))
      return true;
  return named(module, hone_lapack_settings()->discarding, &discarding_called);
}

static const char *file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool hone_lapack_discards(hone_lapack_caller at) {
  Dl_info info;
  const int factors = hone_lapack_settings()->factors;
  if (factors != HONE_LAPACK_AUTO)
    return factors == HONE_LAPACK_DISCARD;
  if (!dladdr(at.address, &info) || info.dli_fname == NULL)
    return false;
  return listed(file_of(info.dli_fname));
}

/* Tells whether the file scipy/version.py, of the SciPy that has the module
   scipy/linalg/_batched_linalg, names the release. */
static bool is_release(const char *module, const char *release) {
  char path[PATH_MAX], line[256];
  bool found = false;
  hone_guest guest;
  hone_guest_enter(&guest); /* no thread is cancelled while it reads */
  const int length = snprintf(path, sizeof path, "%.*s../version.py",
                              (int)(file_of(module) - module), module);
  FILE *file = length < (int)sizeof path ? fopen(path, "re") : NULL;
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
    found = begins(line, "version = \"", 11) &&
            begins(line + 11, release, strlen(release));
  if (file != NULL)
    fclose(file);
  hone_guest_leave(&guest);
  return found;
}

/* Tells whether the module is that of SciPy. The file is read once for each
   module that has the name. */
static bool is_scipy(hone_lapack_caller at, const char *module) {
  static _Atomic(const void *) yes, no;
  if (!begins(file_of(module), scipy_module, strlen(scipy_module)))
    return false;
  const void *this = hone_lapack_module(at);
  if (this == atomic_load(&yes) || this == atomic_load(&no))
    return this == atomic_load(&yes);
  const bool is = is_release(module, scipy_release);
  atomic_store(is ? &yes : &no, this);
  return is;
}

bool hone_lapack_hides(hone_lapack_caller at, bool *at_once) {
  const hone_lapack_config *settings = hone_lapack_settings();
  *at_once = false;
  if (settings->hide == HONE_LAPACK_HIDE_NEVER)
    return false;
  const char *module = hone_lapack_module_path(at);
  *at_once = is_scipy(at, module);
  return *at_once || settings->hide == HONE_LAPACK_HIDE_ALWAYS ||
         named(module[0] ? file_of(module) : program_invocation_short_name,
               settings->hiding, &hiding_called);
}

/* Log --------------------------------------------------------------------- */

double hone_lapack_now_ms(void) {
  struct timespec t;
  hone_guest guest;
  if (!hone_lapack_settings()->log)
    return 0.0;
  clock_gettime(CLOCK_MONOTONIC, &t);
  hone_guest_enter(&guest);
  const double now = 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
  hone_guest_leave(&guest);
  return now;
}

void hone_lapack_log(const char *routine, int64_t n, int64_t nrhs,
                     const char *how, double omega, double start_ms) {
  char error[48] = "";
  hone_guest guest;
  if (!hone_lapack_settings()->log)
    return;
  hone_guest_enter(&guest);
  if (!isnan(omega))
    snprintf(error, sizeof error, "; backward error %.2e", omega);
  fprintf(stderr, "hone_lapack: %s n %lld, nrhs %lld: %s%s; %.3f ms\n", routine,
          (long long)n, (long long)nrhs, how, error,
          hone_lapack_now_ms() - start_ms);
  hone_guest_leave(&guest);
}

/* Calls seen -------------------------------------------------------------- */

static _Atomic(hone_lapack_count *) seen;

void hone_lapack_seen(hone_lapack_count *count, hone_lapack_caller at) {
  if (!hone_lapack_settings()->log || hone_lapack_inside() ||
      hone_lapack_is_lapack(at) || atomic_fetch_add(&count->calls, 1) > 0)
    return;
  count->next = atomic_load(&seen);
  while (!atomic_compare_exchange_weak(&seen, &count->next, count))
    continue;
}

/* A name that no caller had may be misspelt. */
static void tell_of_names(const char *variable, const char *names,
                          bool called) {
  if (names != NULL && !called)
    fprintf(stderr,
            "hone_lapack: %s=%s: no module of such a name has called a routine "
            "that this is for\n",
            variable, names);
}

/* Says at exit what was called, so that a program whose calls do not come here
   is not taken for one that solves no systems. */
__attribute__((destructor)) static void tell_what_was_seen(void) {
  if (!hone_lapack_settings()->log)
    return;
  const hone_lapack_count *count = atomic_load(&seen);
  fprintf(stderr, "hone_lapack: %s: %s", program_invocation_short_name,
          count ? "calls seen:" : "no call was seen of any routine served");
  for (; count != NULL; count = count->next)
    fprintf(stderr, " %s %lld%s", count->name,
            (long long)atomic_load(&count->calls), count->next ? "," : "");
  fputc('\n', stderr);
  tell_of_names("HONE_LAPACK_HIDE", hone_lapack_settings()->hiding,
                atomic_load(&hiding_called));
  tell_of_names("HONE_LAPACK_FACTORS", hone_lapack_settings()->discarding,
                atomic_load(&discarding_called));
}

/* Nested calls ------------------------------------------------------------ */

static _Thread_local int depth;

bool hone_lapack_inside(void) { return depth > 0; }
bool hone_lapack_nested(hone_lapack_caller at) {
  return hone_lapack_inside() || hone_lapack_is_lapack(at);
}
void hone_lapack_enter(void) { depth++; }
void hone_lapack_leave(void) { depth--; }
