/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/seed.h"

#include "base/base.h"

#include <string.h>
#include <sys/random.h>

uint64_t hone_random_seed(void) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
    return seed;
  const double now = hone_now_s();
  memcpy(&seed, &now, sizeof seed);
  return seed ^ (uint64_t)(uintptr_t)&seed;
}
