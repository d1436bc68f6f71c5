/* SPDX-License-Identifier: BSD-3-Clause */
/* The library as a guest in a process that forks, cancels threads, changes
   their CPUs, lets them end, and unloads libraries. */
#define _GNU_SOURCE /* CPU affinity, dladdr */
#include "base/device_memory.h"
#include "base/pool.h"
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"
#include "tests/unit/fake_driver.h"
#include "tests/unit/support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 450 }; /* from HONE_THREADS_FROM on a solver has a pool */

static void nap(void) {
  (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int count_threads(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;)
    count += e->d_name[0] != '.';
  if (folder != NULL)
    closedir(folder);
  return count;
}

/* Returns the number of threads when the library has none. The call before lets
   OpenBLAS make its own, which a fork ends. */
static int count_other_threads(void) {
  sys s = sys_make(N, 1);
  s.options.threads = 2;
  s.options.deterministic = 1; /* sets the number of its threads */
  sys_expect(&s, HONE_OK);
  hone_release_kept();
  sys_discard(&s);
  return count_threads();
}

TEST(guest, leaves_errno_as_it_was) {
  sys s = sys_make(N, 1);
  hone_solver *solver = NULL;
  errno = EDOM;
  CHECK_EQ_INT(hone_solver_create(&solver, N, &s.options), HONE_OK);
  CHECK_EQ_INT(errno, EDOM);
  CHECK_EQ_INT(hone_solver_factor(solver, s.a, s.lda, NULL), HONE_OK);
  CHECK_EQ_INT(errno, EDOM);
  hone_solver_destroy(&solver);
  CHECK_EQ_INT(errno, EDOM);
  CHECK_EQ_INT(
      hone_solve(N, 1, s.a, s.lda, s.b, s.ldb, s.x, s.ldx, &s.options, NULL),
      HONE_OK);
  CHECK_EQ_INT(errno, EDOM);
  sys_discard(&s);
}

/* ---- After fork ---------------------------------------------------------- */

/* Runs body(arg) in a child, which must return 0 within 20 s. */
static void check_in_child(int (*body)(void *arg), void *arg) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body(arg));
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_EQ_INT(WEXITSTATUS(status), 0);
}

typedef struct kept_solver {
  sys s; /* with the x of the parent */
  either_solver solver;
} kept_solver;

static kept_solver kept_make(int parts) {
  kept_solver k = {.s = sys_make_of(parts, N, 1)};
  k.s.options.threads = 2;
  k.s.options.deterministic = 1;
  sys_expect(&k.s, HONE_OK);
  k.solver = sys_solver(&k.s);
  CHECK_EQ_INT(sys_factor(&k.s, &k.solver), HONE_OK);
  return k;
}

/* Returns 0 if the solver finds the parent's x, to the last bit. */
static int solve_kept(void *arg) {
  kept_solver *k = arg;
  double x[2 * N];
  const int st = sys_solve_with(&k->s, &k->solver, x, NULL);
  const size_t bytes = (size_t)sys_doubles(&k->s) * sizeof *x;
  return st != HONE_OK || memcmp(x, k->s.x, bytes) != 0;
}
static int factor_kept(void *arg) {
  kept_solver *k = arg;
  const int st = sys_factor(&k->s, &k->solver);
  return st != HONE_OK ? 1 : solve_kept(arg);
}
static int destroy_kept(void *arg) {
  kept_solver *k = arg;
  either_destroy(&k->solver);
  return k->solver.real != NULL || k->solver.complex != NULL;
}
static int use_and_fork_again(void *arg) {
  const int mine = solve_kept(arg);
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(solve_kept(arg) + destroy_kept(arg));
  }
  waitpid(child, &status, 0);
  return mine + (status != 0) + solve_kept(arg) + destroy_kept(arg);
}
static int solve_anew(void *arg) {
  kept_solver *k = arg;
  int worst = 0;
  for (int i = 0; i < 3 && worst == HONE_OK; i++)
    worst = sys_call(&k->s);
  hone_release_kept();
  return worst != HONE_OK;
}

TEST(guest, a_kept_solver_works_in_the_child_of_a_fork) {
  for (int parts = 1; parts <= 2; parts++) {
    kept_solver k = kept_make(parts);
    ct_note("parts %d", parts);
    check_in_child(solve_kept, &k);
    check_in_child(factor_kept, &k);
    check_in_child(destroy_kept, &k);
    check_in_child(use_and_fork_again, &k);
    check_in_child(solve_anew, &k);
    CHECK_EQ_INT(solve_kept(&k), 0);
    either_destroy(&k.solver);
    sys_discard(&k.s);
  }
}

/* A child made without fork(), whose handlers do not run, frees what it has. */
TEST(guest, a_child_that_was_cloned_can_end) {
  kept_solver k = kept_make(1);
  int status = -1;
  const long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0L);
  if (child == 0) {
    alarm(60);
    either_destroy(&k.solver);
    hone_release_kept();
    _exit(0);
  }
  CHECK(child > 0 && waitpid((pid_t)child, &status, 0) == child);
  CHECK_EQ_INT(status, 0);
  either_destroy(&k.solver);
  sys_discard(&k.s);
}

static void *solve_until_told(void *arg) {
  kept_solver *k = arg;
  while (sys_solve_with(&k->s, &k->solver, k->s.x, NULL) == HONE_OK)
    if (sys_call(&k->s) != HONE_OK)
      break;
  return NULL;
}

/* The fork happens at any moment of another thread's calls: the child finds its
   solver free, or in use by a thread that it does not have: then the solver
   holds no matrix. */
static int use_or_factor(void *arg) {
  kept_solver *k = arg;
  double x[2 * N];
  int st = sys_solve_with(&k->s, &k->solver, x, NULL);
  if (st == HONE_NOT_FACTORED) {
    st = sys_factor(&k->s, &k->solver);
    st = st == HONE_OK ? sys_solve_with(&k->s, &k->solver, x, NULL) : st;
  }
  either_destroy(&k->solver);
  return st != HONE_OK ? 1 : solve_anew(arg);
}

static int fork_beside_a_call(void *parts) {
  static kept_solver k; /* the thread uses it until the process ends */
  k = kept_make(*(const int *)parts);
  pthread_t thread;
  if (pthread_create(&thread, NULL, solve_until_told, &k) != 0)
    return 1;
  int wrong = 0;
  for (int i = 0; i < 20; i++) {
    int status = -1;
    kept_solver copy = {.s = k.s, .solver = k.solver};
    nap();
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      double x[2 * N];
      copy.s.x = x;
      _exit(use_or_factor(&copy));
    }
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  return wrong;
}

TEST(guest, a_fork_beside_a_call_leaves_nothing_locked) {
#ifdef SUP_ADDRESS_SANITIZER
  SKIP("AddressSanitizer may not unlock its own malloc in a child");
#endif
  int parts[] = {1, 2};
  check_in_child(fork_beside_a_call, &parts[0]);
  check_in_child(fork_beside_a_call, &parts[1]);
}

static atomic_bool asked_enough;

static void *ask_again_and_again(void *p) {
  hone_device_memory place;
  while (!asked_enough)
    (void)hone_device_memory_of(p, &place);
  return NULL;
}

static void *look_for_the_driver(void *unused) {
  while (!asked_enough)
    (void)hone_device_memory_exists();
  return unused;
}

/* Every call asks the loader whether CUDA's driver is there. */
TEST(guest, the_driver_is_looked_for_in_the_child_of_a_fork) {
  pthread_t thread;
  asked_enough = false;
  REQUIRE(pthread_create(&thread, NULL, look_for_the_driver, NULL) == 0);
  for (int i = 0; i < 20; i++) {
    int status = -1;
    usleep(500);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      (void)hone_device_memory_exists();
      _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
  }
  asked_enough = true;
  pthread_join(thread, NULL);
}

/* A fork at any moment of another thread's query finds no lock held. */
TEST(guest, the_kind_of_a_pointer_is_told_in_the_child_of_a_fork) {
  double here = 0.0;
  pthread_t thread;
  fake_begin();
  fake.asking = 300;
  asked_enough = false;
  REQUIRE(pthread_create(&thread, NULL, ask_again_and_again, &here) == 0);
  for (int i = 0; i < 10; i++) {
    int status = -1;
    usleep(500);
    const pid_t child = fork();
    if (child == 0) {
      hone_device_memory place;
      alarm(60);
      _exit(hone_device_memory_of(&here, &place));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
  }
  asked_enough = true;
  pthread_join(thread, NULL);
  fake_end();
}

/* ---- Threads that end, or are cancelled ---------------------------------- */

static _Atomic int blocks;
static void *count_block(size_t bytes, void *ctx) {
  (void)ctx;
  blocks++;
  return malloc(bytes);
}
static void uncount_block(void *memory, void *ctx) {
  (void)ctx;
  blocks -= memory != NULL;
  free(memory);
}

static int cancel_myself(void *user, const hone_progress *event) {
  (void)user;
  (void)event;
  pthread_cancel(pthread_self());
  pthread_testcancel();
  return 0;
}

static void *solve_cancelled(void *arg) {
  sys *s = arg;
  s->report.status = sys_call(s);
  pthread_testcancel();
  return NULL;
}

TEST(guest, a_thread_cancelled_in_a_progress_function_ends_after_the_call) {
  sys s = sys_make(N, 1);
  void *result = NULL;
  pthread_t thread;
  s.options.threads = 2;
  s.options.progress = cancel_myself;
  s.options.alloc = count_block;
  s.options.free = uncount_block;
  const int before = count_other_threads();
  s.report.status = -1;
  REQUIRE(pthread_create(&thread, NULL, solve_cancelled, &s) == 0);
  pthread_join(thread, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK_EQ_INT(s.report.status, HONE_OK);
  sys_check(&s, HONE_OK);
  CHECK_EQ_INT(blocks, 0);
  for (int i = 0; i < 2000 && count_threads() > before; i++)
    nap();
  CHECK_LE(count_threads(), before);
  sys_discard(&s);
}

static void *make_and_end(void *arg) {
  *(kept_solver *)arg = kept_make(1);
  return arg;
}

TEST(guest, a_solver_outlives_the_thread_that_made_it) {
  const int before = count_other_threads();
  for (int i = 0; i < 5; i++) {
    kept_solver k;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, make_and_end, &k) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ_INT(solve_kept(&k), 0);
    either_destroy(&k.solver);
    sys_discard(&k.s);
  }
  hone_release_kept();
  for (int i = 0; i < 2000 && count_threads() > before; i++)
    nap();
  CHECK_LE(count_threads(), before);
}

/* ---- CPUs ---------------------------------------------------------------- */

enum { WORKERS = 2 };

typedef struct seen {
  cpu_set_t allowed[WORKERS];
  _Atomic int count;
} seen;

static void look(void *ctx, int64_t task) {
  seen *s = ctx;
  sched_getaffinity(0, sizeof s->allowed[task], &s->allowed[task]);
  s->count++;
}

static seen look_at_workers(hone_pool *pool) {
  seen s;
  memset(&s, 0, sizeof s);
  hone_pool_start(pool, WORKERS, look, &s);
  for (int i = 0; i < 5000 && s.count < WORKERS; i++)
    nap();
  hone_pool_wait(pool);
  CHECK_EQ_INT(s.count, WORKERS);
  return s;
}

TEST(guest, a_pool_follows_its_caller_to_other_cpus) {
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  if (CPU_COUNT(&all) < 2)
    SKIP("there is one CPU");
  size_t first = 0;
  while (!CPU_ISSET(first, &all))
    first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  hone_pool_create(&pool, &mem, WORKERS + 1);
  (void)look_at_workers(pool);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  hone_pool_adapt(pool, WORKERS + 1);
  seen s = look_at_workers(pool);
  for (int i = 0; i < WORKERS; i++)
    CHECK(CPU_EQUAL(&s.allowed[i], &one));
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
  hone_pool_adapt(pool, WORKERS + 1);
  s = look_at_workers(pool);
  for (int i = 0; i < WORKERS; i++)
    CHECK(CPU_COUNT(&s.allowed[i]) >= CPU_COUNT(&all) - 1);
  hone_pool_destroy(&pool, &mem);
}

TEST(guest, a_pool_takes_the_number_of_threads_that_it_is_given) {
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  hone_pool_reserve(&pool, &mem, 4);
  CHECK_EQ_INT(hone_pool_threads(pool), 1);
  const int given[] = {4, 2, 1, 3, 9, 1}, expected[] = {4, 2, 1, 3, 4, 1};
  for (int i = 0; i < 6; i++) {
    hone_pool_adapt(pool, given[i]);
    CHECK_EQ_INT(hone_pool_threads(pool), expected[i]);
    seen s = {.count = 0};
    hone_pool_run(pool, WORKERS, look, &s);
    CHECK_EQ_INT(s.count, WORKERS);
  }
  hone_pool_destroy(&pool, &mem);
  CHECK_EQ_INT(mem.held, 0);
}

/* ---- Unloading ----------------------------------------------------------- */

/* Returns the path of the library beside this program. */
static const char *library_path(void) {
  static char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
  if (slash != NULL)
    strcpy(slash + 1, "libhone.so.0");
  return path;
}

static int unload_with_a_solver(void *arg) {
  kept_solver *k = arg;
  void *library = dlopen(library_path(), RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return 2;
  __typeof__(hone_solver_create) *create = NULL;
  __typeof__(hone_solver_factor) *factor = NULL;
  __typeof__(hone_solver_solve) *solve = NULL;
  *(void **)&create = dlsym(library, "hone_solver_create");
  *(void **)&factor = dlsym(library, "hone_solver_factor");
  *(void **)&solve = dlsym(library, "hone_solver_solve");
  double x[N];
  hone_solver *solver = NULL;
  int wrong = create(&solver, N, &k->s.options) != HONE_OK ||
              factor(solver, k->s.a, N, NULL) != HONE_OK;
  dlclose(library);
  nap();
  wrong += solve(solver, 1, k->s.b, N, x, N, NULL, NULL) != HONE_OK;
  return wrong;
}

TEST(guest, a_live_solver_survives_that_its_library_is_closed) {
  if (access(library_path(), R_OK) != 0)
    SKIP("there is no shared library here");
  kept_solver k = kept_make(1);
  check_in_child(unload_with_a_solver, &k);
  either_destroy(&k.solver);
  sys_discard(&k.s);
}
