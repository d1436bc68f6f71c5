/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/heap.h"

#include "base/numbers.h"
#include "tests/unit/ct.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
  _Alignas(16) heap *owner;
  size_t bytes;
} block;

static void *take(size_t bytes, void *ctx) {
  heap *h = ctx;
  int64_t call = h->calls++;
  h->elsewhere += !pthread_equal(pthread_self(), h->thread);
  if (h->fail_at >= 0 &&
      (h->fail_after ? call >= h->fail_at : call == h->fail_at)) {
    h->failed = true;
    return NULL;
  }
  block *b = malloc(sizeof *b + bytes);
  if (b == NULL)
    return NULL;
  *b = (block){h, bytes};
  memset(b + 1, 0xff, bytes);
  h->blocks++;
  h->bytes += (int64_t)bytes;
  h->peak = HONE_MAX(h->peak, h->bytes);
  return b + 1;
}

static void give(void *memory, void *ctx) {
  heap *h = ctx;
  block *b = (block *)memory - 1;
  h->elsewhere += !pthread_equal(pthread_self(), h->thread);
  if (b->owner != h)
    h->strangers++;
  h->blocks--;
  h->bytes -= (int64_t)b->bytes;
  memset(memory, 0xff, b->bytes);
  b->owner = NULL;
  free(b);
}

void heap_use(hone_options *options, heap *h) {
  *h = (heap){.fail_at = -1, .thread = pthread_self()};
  options->alloc = take;
  options->free = give;
  options->alloc_ctx = h;
}

void heap_check(const heap *h) {
  CHECK_EQ_INT(h->blocks, 0);
  CHECK_EQ_INT(h->bytes, 0);
  CHECK_EQ_INT(h->strangers, 0);
}
