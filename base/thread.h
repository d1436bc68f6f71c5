/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of threads, by which the child of a fork tells whether a thread that
   its parent had exists there. */
#ifndef HONE_THREAD_H
#define HONE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the number of the calling thread, from 1 on. No other thread of this
   process, of its parents or of its children to come has the same one, except
   for the calling thread's own copy in a child. */
int64_t hone_thread_number(void);

/* Was this the number of a thread of a parent of this process that did not call
   fork()? Such a thread never returns from the call it was in. In a child made
   without fork(), whose handlers do not run, the answer is false. */
bool hone_thread_is_gone(int64_t number);

#endif
