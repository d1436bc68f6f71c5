/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for matrices, and copies of them, of which a large one is made by
   several threads: fresh memory and the way through it take as long as the
   factorization of a matrix of some thousands on a GPU. */
#define _GNU_SOURCE /* madvise */
#include "lapack/dropin.h"

#include "base/base.h"
#include "lapack/parts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  TILE = 32,      /* two tiles fit in the first cache */
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

/* The rows that entries of the given triangle have in column c, from .. to-1,
   or the columns that those without the diagonal have in a row, which are the
   rows of the other triangle. */
typedef struct range {
  int64_t from, to;
} range;

static range given(const hone_lapack_factors *f, range rows, int64_t c) {
  return f->uplo == 'U' ? (range){rows.from, HONE_MIN(rows.to, c + 1)}
                        : (range){HONE_MAX(rows.from, c), rows.to};
}

static range other(const hone_lapack_factors *f, range columns, int64_t r) {
  return f->uplo == 'U' ? (range){HONE_MAX(columns.from, r + 1), columns.to}
                        : (range){columns.from, HONE_MIN(columns.to, r)};
}

/* Copies a tile of the given triangle, and its mirror image through a small
   array: columns whose distance is a power of two push each other out of the
   caches. The imaginary part of a Hermitian diagonal counts as 0, as in LAPACK.
 */
static void mirror_tile(const hone_lapack_factors *f, range rows, range columns,
                        hone_entry *to) {
  hone_entry image[TILE * TILE];
  const bool conjugates = hone_lapack_conjugates(f);
  const int64_t n = f->n;
  for (int64_t c = columns.from; c < columns.to; c++) {
    const hone_entry *a = (const hone_entry *)f->a + c * f->lda;
    const range g = given(f, rows, c);
    for (int64_t r = g.from; r < g.to; r++) {
      const hone_entry v = a[r];
      to[r + c * n] = r == c && conjugates ? hone_real(v) : v;
      image[c - columns.from + (r - rows.from) * TILE] =
          conjugates ? hone_conj(v) : v;
    }
  }
  for (int64_t r = rows.from; r < rows.to; r++) {
    const range o = other(f, columns, r);
    if (o.from < o.to)
      memcpy(to + o.from + r * n,
             image + o.from - columns.from + (r - rows.from) * TILE,
             (size_t)(o.to - o.from) * sizeof *to);
  }
}

/* Copies some columns of the given triangle, and their mirror images. */
static void mirror(const hone_lapack_factors *f, range columns,
                   hone_entry *to) {
  const bool upper = f->uplo == 'U';
  const int64_t end = upper ? columns.to : f->n;
  for (int64_t r = upper ? 0 : columns.from; r < end; r += TILE)
    mirror_tile(f, (range){r, HONE_MIN(r + TILE, end)}, columns, to);
}

/* Copies columns that no other thread does, while there are some. */
static void copy_some(void *part) {
  copying *c = *(copying **)part;
  const hone_lapack_factors *f = c->f;
  int64_t j;
  while ((j = atomic_fetch_add(&c->next, TILE)) < f->n) {
    const range columns = {j, HONE_MIN(j + TILE, f->n)};
    if (f->kind != HONE_LAPACK_LU)
      mirror(f, columns, c->to);
    else
      hone_lapack_copy_columns(f->n, columns.to - j,
                               (const hone_entry *)f->a + j * f->lda, f->lda,
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
