/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are not of one type of entries: the memory of a device that a
   solve would take, and what is kept between calls. */
#include "api/arguments.h"
#include "api/engines.h"
#include "api/guest.h"
#include "api/options.h"

static int device_memory_needed(int64_t n, const hone_options *options,
                                int64_t *with_residuals, int64_t *without) {
  hone_options o;
  hone_tuning tuning;
  int st = hone_options_take(options, &o, &tuning, NULL);
  if (st == HONE_OK)
    st = hone_check_sizes(n, 0, NULL);
  if (st == HONE_OK && with_residuals != NULL)
    *with_residuals = hone_engines_device_bytes(&o, n, true);
  if (st == HONE_OK && without != NULL)
    *without = hone_engines_device_bytes(&o, n, false);
  return st;
}

int hone_device_memory_needed(int64_t n, const hone_options *options,
                              int64_t *with_residuals, int64_t *without) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int st = device_memory_needed(n, options, with_residuals, without);
  hone_guest_leave(&guest);
  return st;
}

int64_t hone_release_kept(void) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int64_t bytes = hone_engines_release();
  hone_guest_leave(&guest);
  return bytes;
}
