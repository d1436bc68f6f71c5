/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory with an account, the clock, and the caller's wish to stop. */
#define _GNU_SOURCE /* madvise */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21 };

/* Stands directly below the memory handed out. */
typedef struct block_head {
  void *raw;     /* what the allocator returned */
  int64_t bytes; /* asked of the allocator */
} block_head;

void *hone_mem_get(hone_mem *mem, size_t bytes) {
  /* Large blocks start on a huge page: a fresh 64 MB factor then costs 32
     page faults, not 16384. */
  size_t align = bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
  if (bytes > (size_t)INT64_MAX / 2)
    return NULL;
  size_t total = bytes + align + sizeof(block_head);
  if (mem->limit > 0 && (int64_t)total > mem->limit - mem->held)
    return NULL;
  char *raw = mem->alloc ? mem->alloc(total, mem->ctx) : malloc(total);
  if (raw == NULL)
    return NULL;
  uintptr_t at =
      ((uintptr_t)raw + sizeof(block_head) + align - 1) / align * align;
  char *memory = raw + (at - (uintptr_t)raw);
  block_head head = {raw, (int64_t)total};
  memcpy(memory - sizeof head, &head, sizeof head);
#ifdef MADV_HUGEPAGE
  if (align == HUGE_PAGE && mem->alloc == NULL) /* a hint: failure is fine */
    (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  mem->held += head.bytes;
  mem->peak = HONE_MAX(mem->peak, mem->held);
  return memory;
}

void hone_mem_put(hone_mem *mem, void *memory) {
  if (memory == NULL)
    return;
  block_head head;
  memcpy(&head, (char *)memory - sizeof head, sizeof head);
  mem->held -= head.bytes;
  if (mem->free)
    mem->free(head.raw, mem->ctx);
  else
    free(head.raw);
}

bool hone_mem_charge(hone_mem *mem, int64_t bytes) {
  if (mem->limit > 0 && bytes > mem->limit - mem->held)
    return false;
  mem->held += bytes;
  mem->peak = HONE_MAX(mem->peak, mem->held);
  return true;
}

double hone_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool hone_watch_tell(hone_watch *watch, const hone_progress *event) {
  if (watch->stopped)
    return true;
  if (watch->progress == NULL && !(watch->deadline_s > 0.0))
    return false;
  double now = hone_now_s();
  if (watch->deadline_s > 0.0 && now >= watch->deadline_s)
    watch->stopped = true;
  if (watch->progress) {
    hone_progress timed = *event;
    timed.elapsed_s = now - watch->start_s;
    if (watch->progress(watch->user, &timed) != 0)
      watch->stopped = true;
  }
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
