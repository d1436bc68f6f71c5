/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that nobody can foretell. */
#ifndef HONE_SEED_H
#define HONE_SEED_H

#include <stdint.h>

/* Returns 64 random bits from the operating system; where it has none, from the
   clock and an address. */
uint64_t hone_random_seed(void);

#endif
