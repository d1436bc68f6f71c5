/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates memory and keeps the account of it; see memory.h. */
#define _GNU_SOURCE /* for madvise */
#include "base/memory.h"

#include "base/numbers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21 };

/* A header that lies directly below the memory handed out. */
typedef struct block_head {
  void *raw;     /* the pointer that the allocator returned */
  int64_t bytes; /* the size requested from the allocator */
} block_head;

static bool exceeds_limit(const hone_mem *mem, int64_t bytes) {
  return mem->limit > 0 && bytes > mem->limit - mem->held;
}

static void *refuse(hone_mem *mem, int64_t bytes, bool by_limit) {
  mem->refused_bytes = bytes;
  mem->refused_by_limit = by_limit;
  return NULL;
}

void *hone_mem_get(hone_mem *mem, size_t bytes) {
  /* Large blocks start on a huge page: a fresh factor of 64 MB then costs 32
     page faults instead of 16384. */
  size_t align = bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
  if (bytes > (size_t)INT64_MAX / 2)
    return refuse(mem, INT64_MAX, false);
  size_t total = bytes + align + sizeof(block_head);
  if (exceeds_limit(mem, (int64_t)total))
    return refuse(mem, mem->held + (int64_t)total, true);
  char *raw = mem->alloc ? mem->alloc(total, mem->ctx) : malloc(total);
  if (raw == NULL)
    return refuse(mem, (int64_t)total, false);
  uintptr_t at =
      ((uintptr_t)raw + sizeof(block_head) + align - 1) / align * align;
  char *memory = raw + (at - (uintptr_t)raw);
  block_head head = {raw, (int64_t)total};
  memcpy(memory - sizeof head, &head, sizeof head);
#ifdef MADV_HUGEPAGE
  if (align == HUGE_PAGE && mem->alloc == NULL) /* only a hint */
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

int64_t hone_mem_size(const void *memory) {
  block_head head = {NULL, 0};
  if (memory != NULL)
    memcpy(&head, (const char *)memory - sizeof head, sizeof head);
  return head.bytes;
}

bool hone_mem_charge(hone_mem *mem, int64_t bytes) {
  if (exceeds_limit(mem, bytes))
    return refuse(mem, mem->held + bytes, true) != NULL;
  mem->held += bytes;
  mem->peak = HONE_MAX(mem->peak, mem->held);
  return true;
}
