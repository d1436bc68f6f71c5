/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the caller in the memory of a device, copied to the host and
   back. There is one pointer query per array; arrays on the host cost no more
   than that. */
#include "api/caller_arrays.h"

#include <string.h>

enum { OF_B, OF_X, OF_X0, OF_BOUNDS, ROOMS };

/* Is p an address in the memory of a device? */
static bool lies_on_device(const hone_arrays *s, const void *p,
                           hone_device_memory *memory) {
  return s->devices && hone_device_memory_of(p, memory);
}

/* Makes room for the copy of an array, of so many bytes. */
static int reserve(hone_arrays *s, int which, int64_t bytes) {
  if (s->room_bytes[which] < bytes) {
    hone_mem_put(s->mem, s->room[which]);
    s->room[which] = hone_mem_get(s->mem, (size_t)bytes);
    s->room_bytes[which] = s->room[which] != NULL ? bytes : 0;
  }
  return s->room[which] != NULL ? HONE_OK : HONE_NO_MEMORY;
}

/* If the n x nrhs array at p lies on a device, fetches it into *copy; else
 *copy is NULL. */
static int fetch(hone_arrays *s, int which, int64_t n, int64_t nrhs,
                 const hone_entry *p, int64_t ld, const hone_entry **copy,
                 hone_device_memory *memory) {
  const size_t column = (size_t)n * sizeof *p;
  const int64_t bytes = n * nrhs * (int64_t)sizeof *p;
  *copy = NULL;
  if (!lies_on_device(s, p, memory))
    return HONE_OK;
  const int st = reserve(s, which, bytes);
  if (st != HONE_OK)
    return st;
  *copy = s->room[which];
  s->host_copy.fetched += bytes;
  return hone_device_memory_fetch(memory, column, (size_t)nrhs, p,
                                  (size_t)ld * sizeof *p, s->room[which],
                                  column);
}

/* Must the columns be written to a copy first? */
static bool columns_are_copied(const hone_arrays *s) {
  return s->given.columns != NULL &&
         (s->columns_on_device || s->given.column_size != sizeof *s->columns);
}

static int make_columns(hone_arrays *s, hone_vectors *v) {
  const int64_t bytes = v->nrhs * (int64_t)sizeof *v->columns;
  s->columns_on_device = lies_on_device(s, v->columns, &s->columns_memory);
  if (!columns_are_copied(s))
    return HONE_OK;
  if (s->column_bytes < bytes) {
    hone_mem_put(s->mem, s->columns);
    s->columns = hone_mem_get(s->mem, (size_t)bytes);
    s->column_bytes = s->columns != NULL ? bytes : 0;
  }
  v->columns = s->columns;
  return s->columns != NULL ? HONE_OK : HONE_NO_MEMORY;
}

/* Error bounds for a device are written to a copy first. */
static int make_error_bounds(hone_arrays *s, hone_vectors *v) {
  s->bounds_on_device = lies_on_device(s, v->error_bounds, &s->bounds_memory);
  if (!s->bounds_on_device)
    return HONE_OK;
  const int st =
      reserve(s, OF_BOUNDS, v->n * v->nrhs * (int64_t)sizeof(double));
  v->error_bounds = s->room[OF_BOUNDS];
  v->ld_error_bounds = v->n;
  return st;
}

/* x may be b or x0; then its copy is theirs too. x is fetched like the others
   because columns for which no x is found keep what they held. */
int hone_arrays_take_vectors(hone_arrays *s, hone_mem *mem, hone_vectors *v) {
  const hone_entry *b, *x, *x0 = NULL;
  hone_device_memory memory;
  const hone_vectors given = *v;
  const int64_t n = v->n, nrhs = v->nrhs;
  s->mem = mem;
  s->given = given;
  s->devices = hone_device_memory_exists();
  s->x_on_device = s->columns_on_device = s->bounds_on_device = false;
  int st = fetch(s, OF_B, n, nrhs, given.b, given.ldb, &b, &s->x_memory);
  if (st == HONE_OK && given.x0 != NULL)
    st = fetch(s, OF_X0, n, nrhs, given.x0, given.ldx0, &x0, &memory);
  if (st == HONE_OK && given.x != given.b)
    st = fetch(s, OF_X, n, nrhs, given.x, given.ldx, &x, &s->x_memory);
  else
    x = b;
  if (st == HONE_OK)
    st = make_columns(s, v);
  if (st == HONE_OK)
    st = make_error_bounds(s, v);
  if (st != HONE_OK)
    return st;
  if (b != NULL) {
    v->b = b;
    v->ldb = n;
  }
  if (x0 != NULL) {
    v->x0 = x0;
    v->ldx0 = n;
  }
  if (x != NULL) {
    v->x = given.x == given.b ? s->room[OF_B] : s->room[OF_X];
    v->ldx = n;
    s->x_on_device = true;
  }
  return HONE_OK;
}

/* As many bytes of each column as the caller's entries have. */
static int return_columns(const hone_arrays *s) {
  const size_t size = s->given.column_size;
  const int64_t nrhs = s->given.nrhs;
  char *to = (char *)s->given.columns;
  int st = HONE_OK;
  if (s->columns_on_device)
    st = hone_device_memory_store(&s->columns_memory, size, (size_t)nrhs,
                                  s->columns, sizeof *s->columns, to, size);
  else
    for (int64_t j = 0; j < nrhs; j++)
      memcpy(to + (size_t)j * size, &s->columns[j], size);
  return st;
}

int hone_arrays_fill_columns(const hone_vectors *v, const hone_column *column) {
  const size_t size = v->column_size;
  hone_device_memory memory;
  const bool on_device = hone_device_memory_of(v->columns, &memory);
  char *to = (char *)v->columns;
  int st = HONE_OK;
  for (int64_t j = 0; to != NULL && st == HONE_OK && j < v->nrhs; j++) {
    if (on_device)
      st = hone_device_memory_store(&memory, size, 1, column, size, to, size);
    else
      memcpy(to, column, size);
    to += size;
  }
  return st;
}

/* Copies n x nrhs elements of so many bytes, which are stored without gaps, to
   a device. */
static int store(hone_arrays *s, const hone_device_memory *memory, size_t size,
                 const void *from, void *to, int64_t ld) {
  const size_t column = (size_t)s->given.n * size;
  s->host_copy.stored += s->given.nrhs * (int64_t)column;
  return hone_device_memory_store(memory, column, (size_t)s->given.nrhs, from,
                                  column, to, (size_t)ld * size);
}

int hone_arrays_return(hone_arrays *s, int status) {
  const hone_vectors *v = &s->given;
  const hone_entry *x = v->x == v->b ? s->room[OF_B] : s->room[OF_X];
  int st = HONE_OK;
  if (status < 0)
    return status;
  if (s->x_on_device)
    st = store(s, &s->x_memory, sizeof *x, x, v->x, v->ldx);
  if (st == HONE_OK && s->bounds_on_device)
    st = store(s, &s->bounds_memory, sizeof(double), s->room[OF_BOUNDS],
               v->error_bounds, v->ld_error_bounds);
  if (st == HONE_OK && columns_are_copied(s))
    st = return_columns(s);
  return st == HONE_OK ? status : st;
}

int hone_arrays_take_matrix(hone_arrays *s, hone_mem *mem, int64_t n,
                            const hone_entry **a, int64_t *lda) {
  hone_device_memory memory;
  int st = HONE_OK;
  s->mem = mem;
  if (hone_device_memory_of(*a, &memory)) {
    st = hone_host_copy_open(&s->host_copy, mem, n, &memory, *a, *lda,
                             sizeof **a);
    *a = s->host_copy.copy;
    *lda = n;
  } else if (s->host_copy.mem != NULL) {
    hone_host_copy_close(&s->host_copy);
  }
  return st;
}

void hone_arrays_destroy(hone_arrays *s) {
  hone_host_copy_destroy(&s->host_copy); /* its counts of bytes remain */
  for (int i = 0; i < ROOMS; i++)
    hone_mem_put(s->mem, s->room[i]);
  hone_mem_put(s->mem, s->columns);
}
