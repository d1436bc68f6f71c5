/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the caller in the memory of a device, copied to the host and
   back. One question an array is asked; those of the host cost no more. */
#include "api/caller_arrays.h"

enum { OF_B, OF_X, OF_X0 };

/* The array at p, n x nrhs: if it lies on a device, *copy is of it. */
static int stage_in(hone_arrays *s, int which, int64_t n, int64_t nrhs,
                    const double *p, int64_t ld, const double **copy,
                    hone_device_memory *place) {
  const size_t column = (size_t)n * sizeof(double);
  const int64_t bytes = n * nrhs * (int64_t)sizeof(double);
  *copy = NULL;
  if (!hone_device_memory_of(p, place))
    return HONE_OK;
  if (s->rooms[which] < bytes) {
    hone_mem_put(s->mem, s->room[which]);
    s->room[which] = hone_mem_get(s->mem, (size_t)bytes);
    s->rooms[which] = s->room[which] != NULL ? bytes : 0;
  }
  if (s->room[which] == NULL)
    return HONE_NO_MEMORY;
  *copy = s->room[which];
  s->host_copy.fetched += bytes;
  return hone_device_memory_fetch(place, column, (size_t)nrhs, p,
                                  (size_t)ld * sizeof(double), s->room[which],
                                  column);
}

static int stage_columns(hone_arrays *s, hone_vectors *v) {
  const int64_t bytes = v->nrhs * (int64_t)sizeof *v->columns;
  s->columns_there = hone_device_memory_of(v->columns, &s->columns_place);
  if (!s->columns_there)
    return HONE_OK;
  if (s->column_room < bytes) {
    hone_mem_put(s->mem, s->columns);
    s->columns = hone_mem_get(s->mem, (size_t)bytes);
    s->column_room = s->columns != NULL ? bytes : 0;
  }
  v->columns = s->columns;
  return s->columns != NULL ? HONE_OK : HONE_NO_MEMORY;
}

/* x may be b or x0: so are the copies then. x is fetched like the others, for
   columns that no x is found for stay as they were. */
int hone_arrays_take_vectors(hone_arrays *s, hone_mem *mem, hone_vectors *v) {
  const double *b, *x, *x0;
  hone_device_memory place;
  const hone_vectors given = *v;
  const int64_t n = v->n, nrhs = v->nrhs;
  s->mem = mem;
  s->given = given;
  s->x_there = s->columns_there = false;
  int st = stage_in(s, OF_B, n, nrhs, given.b, given.ldb, &b, &s->x_place);
  if (st == HONE_OK && given.x0 != NULL)
    st = stage_in(s, OF_X0, n, nrhs, given.x0, given.ldx0, &x0, &place);
  else
    x0 = NULL;
  if (st == HONE_OK && given.x != given.b)
    st = stage_in(s, OF_X, n, nrhs, given.x, given.ldx, &x, &s->x_place);
  else
    x = b;
  if (st == HONE_OK)
    st = stage_columns(s, v);
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
    s->x_there = true;
  }
  return HONE_OK;
}

int hone_arrays_return(hone_arrays *s, int status) {
  const hone_vectors *v = &s->given;
  const size_t column = (size_t)v->n * sizeof(double);
  const double *x = v->x == v->b ? s->room[OF_B] : s->room[OF_X];
  int st = HONE_OK;
  if (status < 0)
    return status;
  if (s->x_there) {
    st =
        hone_device_memory_store(&s->x_place, column, (size_t)v->nrhs, x,
                                 column, v->x, (size_t)v->ldx * sizeof(double));
    s->host_copy.stored += v->nrhs * (int64_t)column;
  }
  if (st == HONE_OK && s->columns_there) {
    const size_t bytes = (size_t)v->nrhs * sizeof *s->columns;
    st = hone_device_memory_store(&s->columns_place, bytes, 1, s->columns,
                                  bytes, v->columns, bytes);
  }
  return st == HONE_OK ? status : st;
}

int hone_arrays_take_matrix(hone_arrays *s, hone_mem *mem, int64_t n,
                            const double **a, int64_t *lda) {
  hone_device_memory place;
  s->mem = mem;
  s->a = *a;
  s->lda = *lda;
  if (!hone_device_memory_of(*a, &place)) {
    if (s->host_copy.mem != NULL)
      hone_host_copy_close(&s->host_copy);
    return HONE_OK;
  }
  int st = hone_host_copy_open(&s->host_copy, mem, n, &place, *a, *lda);
  *a = s->host_copy.copy;
  *lda = n;
  return st;
}

void hone_arrays_destroy(hone_arrays *s) {
  hone_host_copy_destroy(&s->host_copy);
  for (int i = 0; i < 3; i++)
    hone_mem_put(s->mem, s->room[i]);
  hone_mem_put(s->mem, s->columns); /* what was copied is still counted */
}
