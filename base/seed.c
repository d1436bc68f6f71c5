/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/seed.h"

#include "base/base.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

uint64_t hone_process_seed(void) {
  uint64_t seed;
  const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
  if (random != NULL)
    memcpy(&seed, random, sizeof seed);
  else
    seed = (uint64_t)getpid();
  return hone_random_bits(&seed);
}
