/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's arrays where the rest of the library can read them: those in
   the memory of a device are copied, all others are taken as they are. */
#ifndef HONE_CALLER_ARRAYS_H
#define HONE_CALLER_ARRAYS_H

#include "base/device_memory.h"
#include "base/entry.h"

/* The arrays of one solve, besides A. */
typedef struct hone_vectors {
  int64_t n, nrhs;
  const hone_entry *b, *x0;
  hone_entry *x;
  int64_t ldb, ldx, ldx0;
  hone_column *columns; /* or NULL; the caller's entries are */
  size_t column_size;   /* so many bytes apart */
  double *error_bounds; /* n x nrhs, or NULL */
  int64_t ld_error_bounds;
} hone_vectors;

/* The copies that a solver keeps. Begins as zeros. */
typedef struct hone_arrays {
  hone_mem *mem;
  hone_host_copy host_copy; /* A, if it lies on a device */
  void *room[4];            /* copies of b, x, x0, error_bounds: n x nrhs */
  hone_column *columns;     /* nrhs */
  int64_t room_bytes[4], column_bytes;
  hone_vectors given; /* by the caller */
  hone_device_memory x_memory, columns_memory, bounds_memory;
  bool devices; /* pointers may be a device's */
  bool x_on_device, columns_on_device, bounds_on_device;
} hone_arrays;

/* Replaces pointers in *v by those to copies: of arrays on a device, and of
   columns that are smaller in the caller's version. hone_arrays_return copies
   back. */
int hone_arrays_take_vectors(hone_arrays *arrays, hone_mem *mem,
                             hone_vectors *v);
/* Writes *column to each of the columns, if the caller has any: the result of a
   system without unknowns. Returns a status. */
int hone_arrays_fill_columns(const hone_vectors *v, const hone_column *column);

/* If status >= 0, copies x, columns and error_bounds to where the caller wants
   them. Returns status, or why that failed. */
int hone_arrays_return(hone_arrays *arrays, int status);

/* If a, n x n, lies on a device, it becomes the address of a copy on the host,
   which is still empty: hone_host_copy_await. */
int hone_arrays_take_matrix(hone_arrays *arrays, hone_mem *mem, int64_t n,
                            const hone_entry **a, int64_t *lda);

void hone_arrays_destroy(hone_arrays *arrays);

#endif
