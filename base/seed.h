/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that nobody can foretell, for random draws. */
#ifndef HONE_SEED_H
#define HONE_SEED_H

#include <stdint.h>

/* Returns 64 random bits that the operating system chose when the process
   began: they are the same in every call, and differ from process to
   process. */
uint64_t hone_process_seed(void);

#endif
