/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems with the adjoint: A^H x = b is A^T conj(x) = conj(b). */
#ifndef HONE_ADJOINT_H
#define HONE_ADJOINT_H

#include "api/caller_arrays.h"

/* A solver keeps the memory for its next call. All is zero at first. */
typedef struct hone_adjoint {
  bool made;
  hone_entry *copies; /* of b and x0, where these are not x; or NULL */
  int64_t room;       /* entries there */
} hone_adjoint;

/* Conjugates x in its place, and replaces b and x0 by their conjugates. Returns
   HONE_OK or HONE_NO_MEMORY. For real entries there is nothing to do. */
int hone_adjoint_begin(hone_adjoint *adjoint, hone_mem *mem, hone_vectors *v);

/* Conjugates x again: also columns that were not written, which become what
   they were. Does nothing where begin was not called or failed. */
void hone_adjoint_end(hone_adjoint *adjoint, const hone_vectors *v);

/* The bytes that begin takes at most for such a call. */
int64_t hone_adjoint_bytes(int64_t n, int64_t nrhs, const hone_options *o);

void hone_adjoint_destroy(hone_adjoint *adjoint, hone_mem *mem);

#endif
