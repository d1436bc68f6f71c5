/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads for the parts of one call's work; see parts.h. */
#define _GNU_SOURCE /* CPU sets */
#include "lapack/parts.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

typedef struct run {
  void (*work)(void *part);
  void *part;
  pthread_t thread;
  bool apart; /* the thread was made */
} run;

static void *do_part(void *p) {
  run *r = p;
  r->work(r->part);
  return NULL;
}

/* Makes the threads run on other CPUs than this one, if there are some: where
   all have work to do, the system would have a new thread wait for this one. */
static void choose_cpus(pthread_attr_t *attributes) {
#ifdef __GLIBC__ /* others have no such attribute */
  cpu_set_t cpus;
  const int here = sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE ||
      sched_getaffinity(0, sizeof cpus, &cpus) != 0)
    return;
  CPU_CLR((size_t)here, &cpus);
  if (CPU_COUNT(&cpus) > 0)
    (void)pthread_attr_setaffinity_np(attributes, sizeof cpus, &cpus);
#else
  (void)attributes;
#endif
}

/* Makes threads for all but the first part. */
static void start(run *runs, int64_t count) {
  pthread_attr_t attributes;
  sigset_t all, before;
  if (count < 2 || pthread_attr_init(&attributes) != 0)
    return;
  choose_cpus(&attributes);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int64_t t = count - 1; t > 0; t--)
    runs[t].apart =
        pthread_create(&runs[t].thread, &attributes, do_part, &runs[t]) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

void hone_lapack_run_parts(int64_t count, void (*work)(void *part), void *parts,
                           size_t size) {
  run runs[HONE_LAPACK_PARTS_MOST];
  int cancellation; /* the others use what this thread has on its stack */
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation);
  for (int64_t t = 0; t < count; t++)
    runs[t] = (run){.work = work, .part = (char *)parts + (size_t)t * size};
  start(runs, count);
  for (int64_t t = 0; t < count; t++)
    if (!runs[t].apart)
      do_part(&runs[t]);
  for (int64_t t = 0; t < count; t++)
    if (runs[t].apart)
      pthread_join(runs[t].thread, NULL);
  pthread_setcancelstate(cancellation, NULL);
}
