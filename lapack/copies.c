/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for matrices, and copies of them, of which a large one is made by
   several threads: fresh memory and the way through it take as long as the
   factorization of a matrix of some thousands on a GPU. */
#define _GNU_SOURCE /* madvise */
#include "lapack/dropin.h"

#include "base/base.h"
#include "base/triangle.h"
#include "lapack/parts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  STEP = HONE_TRIANGLE_STEP, /* columns that a thread takes at once */
  WORTH = 1 << 20 /* numbers of a matrix that is copied by several threads */
};

/* Allocates memory, on huge pages if it has at least so many bytes. */
static hone_entry *room(int64_t rows, int64_t columns, size_t huge_from) {
  const size_t huge = 1 << 21, n = (size_t)HONE_MAX(rows, (int64_t)1);
  const size_t m = (size_t)HONE_MAX(columns, (int64_t)1);
  if (n > (SIZE_MAX - huge) / sizeof(hone_entry) / m)
    return NULL;
  const size_t bytes = n * m * sizeof(hone_entry);
  if (bytes < huge_from)
    return malloc(bytes);
  const size_t whole = (bytes + huge - 1) / huge * huge;
  hone_entry *to = aligned_alloc(huge, whole);
#ifdef MADV_HUGEPAGE
  if (to != NULL)
    (void)madvise(to, whole, MADV_HUGEPAGE); /* only a hint, which may fail */
#endif
  return to;
}

/* For the time of a call a whole huge page pays from a quarter of it on: malloc
   would give the memory back to the system at the end of each call, and with it
   some of the caller's. What is kept takes whole huge pages from two on. */
static const size_t CALL_HUGE_FROM = 1 << 19, KEPT_HUGE_FROM = 1 << 22;

hone_entry *hone_lapack_room(int64_t rows, int64_t columns) {
  return room(rows, columns, CALL_HUGE_FROM);
}

void hone_lapack_copy_columns(int64_t n, int64_t nrhs, const hone_entry *from,
                              int64_t ld_from, hone_entry *to, int64_t ld_to) {
  for (int64_t j = 0; j < nrhs; j++)
    memcpy(to + j * ld_to, from + j * ld_from, (size_t)n * sizeof *to);
}

/* Columns of a matrix that no thread has copied yet. */
typedef struct copying {
  const hone_lapack_factors *f;
  hone_entry *to; /* n x n, ld n */
  _Atomic int64_t next;
} copying;

/* Copies columns that no other thread does, while there are some. */
static void copy_some(void *part) {
  copying *c = *(copying **)part;
  const hone_lapack_factors *f = c->f;
  const hone_entry *a = f->a;
  const hone_triangle triangle = {.n = f->n,
                                  .lda = f->lda,
                                  .a = a,
                                  .upper = f->uplo == 'U',
                                  .conjugates = hone_lapack_conjugates(f)};
  int64_t j;
  while ((j = atomic_fetch_add(&c->next, STEP)) < f->n) {
    const int64_t w = HONE_MIN(STEP, f->n - j);
    if (f->kind != HONE_LAPACK_LU)
      hone_triangle_copy(&triangle, j, w, c->to);
    else
      hone_lapack_copy_columns(f->n, w, a + j * f->lda, f->lda,
                               c->to + j * f->n, f->n);
  }
}

hone_entry *hone_lapack_copy(const hone_lapack_factors *f, bool keeps) {
  const size_t huge_from = keeps ? KEPT_HUGE_FROM : CALL_HUGE_FROM;
  copying c = {.f = f, .to = room(f->n, f->n, huge_from)};
  copying *parts[HONE_LAPACK_PARTS_MOST];
  int64_t threads = 1;
  if (c.to == NULL)
    return NULL;
  if (f->n * f->n * HONE_PARTS >= WORTH)
    threads = hone_lapack_real_threads(f->at);
  threads =
      HONE_MAX((int64_t)1, HONE_MIN(threads, (int64_t)HONE_LAPACK_PARTS_MOST));
  for (int64_t t = 0; t < threads; t++)
    parts[t] = &c;
  hone_lapack_run_parts(threads, copy_some, parts, sizeof *parts);
  return c.to;
}
