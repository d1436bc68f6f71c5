/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole matrix where the caller gives one triangle (options.triangle).
   Compiled for each scalar. */
#ifndef HONE_WHOLE_H
#define HONE_WHOLE_H

#include "api/hone.h"
#include "base/entry.h"
#include "base/pool.h"

/* Bytes that hone_whole_take gets, or 0. */
int64_t hone_whole_bytes(const hone_options *o, int64_t n);

/* If options.triangle names one, makes *a and *lda the whole matrix, which lies
   in *room: memory for order n, or NULL, then it is allocated, to be given back
   by the caller. Otherwise nothing happens. HONE_OK or HONE_NO_MEMORY. */
int hone_whole_take(const hone_options *o, hone_pool *pool, hone_mem *mem,
                    int64_t n, const hone_entry **a, int64_t *lda,
                    hone_entry **room);

/* Is (row, col) of A, as the caller numbers them, in the triangle that is not
   read? */
bool hone_whole_ignores(const hone_options *o, int64_t row, int64_t col);

#endif
