/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory hooks for options that count, and fail on demand. They fill memory
   with NaN, so that the use of uninitialized memory shows in the results. */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

#include "api/hone.h"

#include <pthread.h>
#include <stdbool.h>

/* The counts of the memory hooks, which get this struct as their context. */
typedef struct heap {
  int64_t calls;     /* calls of alloc */
  int64_t fail_at;   /* the call that fails; -1: none */
  bool fail_after;   /* all later calls fail too */
  bool failed;       /* whether a call has failed */
  int64_t blocks;    /* blocks not yet freed */
  int64_t bytes;     /* bytes not yet freed */
  int64_t peak;      /* the largest value of bytes */
  int64_t strangers; /* frees of memory that is not of this heap */
  pthread_t thread;  /* that began with the heap */
  int64_t elsewhere; /* calls from other threads */
} heap;

/* Empties the heap and makes it that of the options. */
void heap_use(hone_options *options, heap *h);

void heap_check(const heap *h); /* was all given back? */

#endif
