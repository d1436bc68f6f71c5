/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock, the deadline of a call, and the caller's progress function, which
   may ask the call to stop. */
#ifndef HONE_WATCH_H
#define HONE_WATCH_H

#include "api/hone.h"
#include "base/float_environment.h"

#include <stdbool.h>

/* Returns the seconds of the monotonic clock. */
double hone_now_s(void);

typedef struct hone_watch {
  hone_progress_fn progress;       /* NULL: none */
  void *user;                      /* the first argument of progress */
  hone_float_environment *callers; /* in which progress runs; NULL: in ours */
  double start_s;                  /* hone_now_s() when the call began */
  double deadline_s;               /* as hone_now_s() counts; 0: none */
  bool stopped;                    /* once true it stays true for the call */
  bool late;                       /* stopped by the deadline */
  const char *stopped_in;          /* the phase; NULL: not stopped */
} hone_watch;

/* Reports progress and returns true when the call should stop: the deadline has
   passed, or the caller's progress function asked for it. backward_error is NaN
   where it is not known. */
bool hone_watch_stop(hone_watch *watch, const char *phase, double fraction,
                     int iteration, double backward_error);
/* Does the same with every field of the event; only elapsed_s is filled in
   here. */
bool hone_watch_tell(hone_watch *watch, const hone_progress *event);

#endif
