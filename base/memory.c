/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates memory and keeps the account of it; see memory.h. */
#define _GNU_SOURCE /* for madvise */
#include "base/memory.h"

#include "base/numbers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21 };

/* A header that lies directly below the memory handed out. */
typedef struct block_head {
  void *raw;     /* the pointer that the allocator returned; NULL: the arena */
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

static char *align_up(char *at, size_t align) {
  const uintptr_t here = (uintptr_t)at;
  return at + ((here + align - 1) / align * align - here);
}

/* Memory of the arena, or NULL. */
static char *take_from_arena(hone_mem *mem, size_t bytes) {
  if (mem->arena == NULL)
    return NULL;
  char *memory = align_up(mem->arena_at + sizeof(block_head), ALIGNMENT);
  if (memory > mem->arena_end || bytes > (size_t)(mem->arena_end - memory))
    return NULL;
  mem->arena_at = memory + bytes;
  return memory;
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
  char *memory = take_from_arena(mem, bytes), *raw = NULL;
  if (memory == NULL) {
    raw = mem->alloc ? mem->alloc(total, mem->ctx) : malloc(total);
    if (raw == NULL)
      return refuse(mem, (int64_t)total, false);
    memory = align_up(raw + sizeof(block_head), align);
  }
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
  if (head.raw == NULL)
    return;
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

/* ---- The arena ----------------------------------------------------------- */

enum { KEPT_MOST = 3 << 19 };

/* The piece that is kept; its size comes first. */
static _Atomic(char *) kept;

static int64_t size_of_piece(const char *piece) {
  int64_t size;
  memcpy(&size, piece, sizeof size);
  return size;
}

void hone_mem_open_arena(hone_mem *mem, int64_t bytes) {
  const int64_t size = bytes + ALIGNMENT;
  if (mem->alloc != NULL || size > KEPT_MOST)
    return;
  char *piece = atomic_exchange(&kept, NULL);
  if (piece != NULL && size_of_piece(piece) < size) {
    free(piece);
    piece = NULL;
  }
  if (piece == NULL) {
    piece = malloc((size_t)size);
    if (piece == NULL)
      return;
    memcpy(piece, &size, sizeof size);
  }
  mem->arena = piece;
  mem->arena_at = piece + sizeof size;
  mem->arena_end = piece + size_of_piece(piece);
}

void hone_mem_close_arena(hone_mem *mem) {
  char *none = NULL;
  if (mem->arena != NULL &&
      !atomic_compare_exchange_strong(&kept, &none, mem->arena))
    free(mem->arena);
  mem->arena = mem->arena_at = mem->arena_end = NULL;
}

/* It is also called when the library is unloaded, or the process ends. */
__attribute__((destructor)) void hone_mem_release_kept(void) {
  free(atomic_exchange(&kept, NULL));
}
