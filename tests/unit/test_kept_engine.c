/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_solve on a device keeps its engine for the next call: results do not
   depend on it. */
#include "api/hone.h"
#include "base/cpus.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 200, THREADS = 4, CALLS = 3 };

typedef struct problem {
  double *a, *b;
  double x[N];
  int status;
} problem;

static void make(problem *p, uint64_t seed) {
  sup_rng rng = {seed};
  p->a = sup_filled(N * N, 0.0);
  p->b = sup_filled(N, 0.0);
  sup_random(&rng, N, N, p->a, N);
  sup_random(&rng, N, 1, p->b, N);
}

static void discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
}

static int solve_on(int device, problem *p) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = device;
  o.deterministic = 1;
  return hone_solve(N, 1, p->a, N, p->b, N, p->x, N, &o, NULL);
}

static bool no_device(problem *p) {
  const bool none = solve_on(HONE_DEVICE_CUDA, p) == HONE_NO_DEVICE;
  (void)hone_release_kept();
  return none;
}

TEST(kept_engine, gives_the_bits_of_a_new_one) {
  problem p, other;
  double first[N];
  make(&p, 1);
  make(&other, 2);
  if (no_device(&p)) {
    discard(&p);
    discard(&other);
    SKIP("there is no device");
  }
  CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_OK);
  memcpy(first, p.x, sizeof first);
  memcpy(p.a, other.a, sizeof(double) * N * N); /* at the same place */
  CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_OK);
  CHECK(memcmp(p.x, first, sizeof first) != 0);
  memcpy(other.x, p.x, sizeof first);
  (void)hone_release_kept();
  CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_OK);
  CHECK(memcmp(p.x, other.x, sizeof first) == 0);
  CHECK(hone_release_kept() > 0);
  discard(&p);
  discard(&other);
}

/* A solver whose Cholesky fails goes on with LU, which has had an earlier
   matrix at the same place. */
TEST(kept_engine, does_not_take_an_earlier_matrix_for_the_next) {
  problem p;
  hone_solver *solver = NULL;
  hone_report r = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  enum { M = 600 };
  double *a = sup_filled(M * M, 0.0), *b = sup_filled(M, 1.0), x[M];
  sup_rng rng = {4};
  make(&p, 1);
  const bool none = no_device(&p);
  discard(&p);
  o.device = HONE_DEVICE_CUDA;
  if (!none) {
    sup_random(&rng, M, M, a, M);
    CHECK_EQ_INT(hone_solver_create(&solver, M, &o), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, M, NULL), HONE_OK);
    for (int j = 0; j < M; j++) /* symmetric, and not definite */
      for (int i = 0; i <= j; i++)
        a[i + j * M] = a[j + i * M] =
            i == j ? 1.0 : (sup_next(&rng) % 2 ? 0.5 : -0.5);
    CHECK_EQ_INT(hone_solver_factor(solver, a, M, NULL), HONE_OK);
    CHECK_EQ_INT(hone_solver_solve(solver, 1, b, M, x, M, NULL, &r), HONE_OK);
    CHECK_EQ_INT(r.precision, 32);
    CHECK(strstr(r.path, "double") == NULL);
    ct_note("%s", r.path);
    hone_solver_destroy(&solver);
  }
  sup_free(a);
  sup_free(b);
  if (none)
    SKIP("there is no device");
}

/* Kernels are compiled for compute capability 8.0 and later. */
TEST(kept_engine, is_of_a_device_that_runs_the_kernels) {
  problem p;
  make(&p, 1);
  const bool none = no_device(&p) || !sup_emulated();
  if (!none) {
    setenv("HONE_EMULATE_CAPABILITY", "75", 1);
    CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_NO_DEVICE);
    CHECK_EQ_INT(solve_on(HONE_DEVICE_AUTO, &p), HONE_OK);
    unsetenv("HONE_EMULATE_CAPABILITY");
    CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_OK);
    (void)hone_release_kept();
  }
  discard(&p);
  if (none)
    SKIP("there is no emulated device");
}

static void *solve_often(void *given) {
  problem *p = given;
  double first[N];
  p->status = solve_on(HONE_DEVICE_CUDA, p);
  memcpy(first, p->x, sizeof first);
  for (int k = 1; k < CALLS && p->status == HONE_OK; k++) {
    p->status = solve_on(HONE_DEVICE_CUDA, p);
    if (memcmp(first, p->x, sizeof first) != 0)
      p->status = HONE_INTERNAL;
  }
  return NULL;
}

TEST(kept_engine, serves_one_thread_at_a_time) {
  problem p[THREADS];
  pthread_t thread[THREADS];
  for (int t = 0; t < THREADS; t++)
    make(&p[t], 10 + (uint64_t)t);
  const bool none = no_device(&p[0]);
  for (int t = 0; t < THREADS && !none; t++)
    REQUIRE(pthread_create(&thread[t], NULL, solve_often, &p[t]) == 0);
  for (int t = 0; t < THREADS && !none; t++) {
    (void)pthread_join(thread[t], NULL);
    CHECK_EQ_INT(p[t].status, HONE_OK);
  }
  for (int t = 0; t < THREADS; t++)
    discard(&p[t]);
  (void)hone_release_kept();
  if (none)
    SKIP("there is no device");
}

static int listed_threads(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;)
    count += e->d_name[0] != '.';
  if (tasks != NULL)
    (void)closedir(tasks);
  return count;
}

/* Returns the number that stays the same for 20 ms: a thread that was joined
   may be listed for a moment longer. */
static int threads_now(void) {
  const struct timespec moment = {.tv_nsec = 1000000};
  int count = listed_threads();
  for (int same = 0; same < 20;) {
    (void)nanosleep(&moment, NULL);
    const int now = listed_threads();
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

enum { LARGER = 450 }; /* an order whose passes threads share */

static int solve_by_threads(int threads, double *a, double *b) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.threads = threads;
  return hone_solve(LARGER, 1, a, LARGER, b, LARGER, b, LARGER, &o, NULL);
}

TEST(kept_pool, serves_the_next_call_and_is_given_back) {
  double *a = sup_filled(LARGER * LARGER, 0.0), *b = sup_filled(LARGER, 1.0);
  sup_rng rng = {5};
  sup_random(&rng, LARGER, LARGER, a, LARGER);
  CHECK_EQ_INT(solve_by_threads(1, a, b), HONE_OK); /* OpenBLAS's threads */
  CHECK_EQ_INT(solve_by_threads(4, a, b), HONE_OK);
  (void)hone_release_kept();
  const int before = threads_now(), cpus = hone_cpus();
  for (int k = 0; k < 3; k++) {
    CHECK_EQ_INT(solve_by_threads(4, a, b), HONE_OK);
    CHECK_EQ_INT(threads_now() - before, HONE_MIN(4, cpus) - 1);
  }
  CHECK_EQ_INT(solve_by_threads(3, a, b), HONE_OK);
  CHECK_EQ_INT(threads_now() - before, HONE_MIN(3, cpus) - 1);
  CHECK_EQ_INT(solve_by_threads(1, a, b), HONE_OK);
  CHECK_EQ_INT(threads_now() - before, HONE_MIN(3, cpus) - 1);
  (void)hone_release_kept();
  CHECK_EQ_INT(threads_now(), before);
  sup_free(a);
  sup_free(b);
}

/* Threads of a child are its own. */
TEST(kept_pool, is_forgotten_by_a_child) {
  double *a = sup_filled(LARGER * LARGER, 0.0), *b = sup_filled(LARGER, 1.0);
  sup_rng rng = {6};
  int status = -1;
  sup_random(&rng, LARGER, LARGER, a, LARGER);
  CHECK_EQ_INT(solve_by_threads(3, a, b), HONE_OK);
  const pid_t child = fork();
  if (child == 0) {
    (void)alarm(60);
    _exit(solve_by_threads(3, a, b) == HONE_OK ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ_INT(status, 0);
  (void)hone_release_kept();
  sup_free(a);
  sup_free(b);
}

/* A child cannot use its parent's device, but the CPU. */
TEST(kept_engine, is_forgotten_by_a_child) {
  problem p;
  int status = -1;
  make(&p, 3);
  const bool none = no_device(&p);
  if (!none) {
    CHECK_EQ_INT(solve_on(HONE_DEVICE_CUDA, &p), HONE_OK);
    const pid_t child = fork();
    if (child == 0) {
      (void)alarm(60);
      const int64_t freed = hone_release_kept();
      _exit(freed == 0 && solve_on(HONE_DEVICE_CPU, &p) == HONE_OK ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
    CHECK(hone_release_kept() > 0);
  }
  discard(&p);
  if (none)
    SKIP("there is no device");
}
