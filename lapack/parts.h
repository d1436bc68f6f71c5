/* SPDX-License-Identifier: BSD-3-Clause */
/* Work of one call that several threads share. The threads are made for it and
   end with it: between its calls a program finds none of ours. */
#ifndef HONE_LAPACK_PARTS_H
#define HONE_LAPACK_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { HONE_LAPACK_PARTS_MOST = 16 };

/* Calls work for each of 'count' parts, 1 to HONE_LAPACK_PARTS_MOST, on a
   thread of its own, the first part on this one, and returns when all have
   ended. parts: 'size' bytes each. A part whose thread cannot be made is done
   here. The threads take no signals. */
void hone_lapack_run_parts(int64_t count, void (*work)(void *part), void *parts,
                           size_t size);

#endif
