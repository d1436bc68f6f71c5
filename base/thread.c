/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

/* Numbers are given out when they are first asked for, and not in the order in
   which threads begin. */
static _Atomic int64_t last;
static _Thread_local int64_t mine;

/* The last number given out before this process began, and the number of the
   thread that called fork(): of threads with numbers up to 'inherited' it is
   the only one here. */
static _Atomic int64_t inherited, survivor;

static void begin_as_child(void) {
  inherited = last;
  survivor = mine;
}

__attribute__((constructor)) static void watch_forks(void) {
  (void)pthread_atfork(NULL, NULL, begin_as_child);
}

int64_t hone_thread_number(void) {
  if (mine == 0)
    mine = ++last;
  return mine;
}

bool hone_thread_is_gone(int64_t number) {
  return number <= inherited && number != survivor;
}
