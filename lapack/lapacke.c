/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that all routines of LAPACK's C interface share; see lapacke.h. */
#include "lapack/lapacke.h"

#include "api/guest.h"
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t hone_lapacke_error(hone_lapack_caller at, const char *name,
                           int64_t info) {
  void *xerbla = hone_lapack_real(HONE_REAL_LAPACKE_xerbla, at);
  if (xerbla != NULL && hone_lapack_wide(at.interface))
    ((hone_lapacke_xerbla_64_fn *)xerbla)(name, info);
  else if (xerbla != NULL)
    ((hone_lapacke_xerbla_fn *)xerbla)(name, (int32_t)info);
  else if (info == LAPACK_WORK_MEMORY_ERROR)
    printf("Not enough memory to allocate work array in %s\n", name);
  else if (info == LAPACK_TRANSPOSE_MEMORY_ERROR)
    printf("Not enough memory to transpose matrix in %s\n", name);
  else
    printf("Wrong parameter %lld in %s\n", -(long long)info, name);
  return info;
}

bool hone_lapacke_nancheck(hone_lapack_caller at) {
  hone_lapacke_get_nancheck_fn *get =
      (hone_lapacke_get_nancheck_fn *)hone_lapack_real(
          HONE_REAL_LAPACKE_get_nancheck, at);
  if (get != NULL)
    return get() != 0;
  const char *wish = getenv("LAPACKE_NANCHECK");
  return wish == NULL || atoi(wish) != 0;
}

/* A signaling NaN raises an exception when it is compared, which the caller may
   trap. */
static bool any_nan(int64_t count, const hone_entry *entries) {
  const double *v = (const double *)entries;
  double bad = 0.0;
  hone_guest guest;
  hone_guest_enter(&guest);
  for (int64_t i = 0; i < HONE_PARTS * count; i++)
    bad = isnan(v[i]) ? 1.0 : bad;
  const bool found = bad > 0.0;
  hone_guest_leave(&guest);
  return found;
}

bool hone_lapacke_ge_nan(int layout, int64_t rows, int64_t columns,
                         const hone_entry *a, int64_t lda) {
  const int64_t inner = layout == LAPACK_ROW_MAJOR ? columns : rows;
  const int64_t outer = layout == LAPACK_ROW_MAJOR ? rows : columns;
  if (a == NULL || lda < 1)
    return false;
  /* LAPACKE looks for NaN before it finds that lda is too small. */
  for (int64_t j = 0; j < outer; j++)
    if (any_nan(HONE_MIN(inner, lda), a + j * lda))
      return true;
  return false;
}

bool hone_lapacke_po_nan(int layout, char uplo, int64_t n, const hone_entry *a,
                         int64_t lda) {
  const bool upper = hone_lapack_is(&uplo, 'U');
  const bool head = upper == (layout == LAPACK_COL_MAJOR); /* a_0j .. a_jj */
  if (a == NULL || lda < 1 || !(upper || hone_lapack_is(&uplo, 'L')))
    return false;
  for (int64_t j = 0; j < n; j++)
    if (head ? any_nan(HONE_MIN(j + 1, lda), a + j * lda)
             : any_nan(HONE_MIN(n, lda) - j, a + j * lda + j))
      return true;
  return false;
}

/* The part of a line i that is turned. */
typedef enum part { ALL, UP_TO_I, FROM_I } part;

/* to_ji = from_ij, in tiles that fit in cache. */
static void turn(int64_t lines, int64_t length, part which,
                 const hone_entry *from, int64_t ld_from, hone_entry *to,
                 int64_t ld_to) {
  enum { TILE = 32 };
  for (int64_t i0 = 0; i0 < lines; i0 += TILE)
    for (int64_t j0 = 0; j0 < length; j0 += TILE)
      for (int64_t i = i0; i < HONE_MIN(i0 + TILE, lines); i++) {
        const int64_t first = which == FROM_I ? HONE_MAX(i, j0) : j0;
        const int64_t last = which == UP_TO_I ? i + 1 : length;
        for (int64_t j = first; j < HONE_MIN(j0 + TILE, last); j++)
          to[i + j * ld_to] = from[j + i * ld_from];
      }
}

hone_entry *hone_lapacke_turn(int64_t rows, int64_t columns,
                              const hone_entry *a, int64_t lda) {
  hone_entry *turned = hone_lapack_room(rows, columns);
  if (turned != NULL)
    turn(rows, columns, ALL, a, lda, turned, HONE_MAX((int64_t)1, rows));
  return turned;
}

void hone_lapacke_turn_back(int64_t rows, int64_t columns,
                            const hone_entry *turned, hone_entry *a,
                            int64_t lda) {
  turn(columns, rows, ALL, turned, HONE_MAX((int64_t)1, rows), a, lda);
}

hone_entry *hone_lapacke_turn_triangle(bool upper, int64_t n,
                                       const hone_entry *a, int64_t lda) {
  hone_entry *turned = hone_lapack_room(n, n);
  if (turned != NULL)
    turn(n, n, upper ? FROM_I : UP_TO_I, a, lda, turned,
         HONE_MAX((int64_t)1, n));
  return turned;
}

void hone_lapacke_turn_triangle_back(bool upper, int64_t n,
                                     const hone_entry *turned, hone_entry *a,
                                     int64_t lda) {
  turn(n, n, upper ? UP_TO_I : FROM_I, turned, HONE_MAX((int64_t)1, n), a, lda);
}

bool hone_lapacke_mixed_take(hone_lapacke_mixed_room *room, int64_t n,
                             int64_t nrhs) {
  /* Two numbers in single precision are as large as one in double. */
  room->work = hone_lapack_room(n, nrhs);
  room->swork = (hone_single *)hone_lapack_room(n, n / 2 + 1 + nrhs);
  room->rwork = (double *)hone_lapack_room(n, 1);
  return room->work != NULL && room->swork != NULL && room->rwork != NULL;
}

void hone_lapacke_mixed_free(hone_lapacke_mixed_room *room) {
  free(room->work);
  free(room->swork);
  free(room->rwork);
}
