/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock, the deadline and the caller's progress function; see watch.h. */
#include "base/watch.h"

#include <time.h>

double hone_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The caller's function runs in the caller's floating-point environment, and
   may change it. */
static int call_progress(hone_watch *watch, const hone_progress *event) {
  if (watch->callers == NULL)
    return watch->progress(watch->user, event);
  hone_float_leave(watch->callers);
  const int wish = watch->progress(watch->user, event);
  hone_float_enter(watch->callers);
  return wish;
}

bool hone_watch_tell(hone_watch *watch, const hone_progress *event) {
  if (watch->stopped)
    return true;
  if (watch->progress == NULL && !(watch->deadline_s > 0.0))
    return false;
  double now = hone_now_s();
  if (watch->deadline_s > 0.0 && now >= watch->deadline_s)
    watch->stopped = watch->late = true;
  if (watch->progress) {
    hone_progress timed = *event;
    timed.elapsed_s = now - watch->start_s;
    if (call_progress(watch, &timed) != 0)
      watch->stopped = true;
  }
  if (watch->stopped)
    watch->stopped_in = event->phase;
  return watch->stopped;
}

bool hone_watch_stop(hone_watch *watch, const char *phase, double fraction,
                     int iteration, double backward_error) {
  const hone_progress event = {.phase = phase,
                               .fraction = fraction,
                               .iteration = iteration,
                               .backward_error = backward_error};
  return hone_watch_tell(watch, &event);
}
