/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept between calls, which is not of one type of entries. */
#include "api/engines.h"
#include "api/guest.h"

int64_t hone_release_kept(void) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int64_t bytes = hone_engines_release();
  hone_guest_leave(&guest);
  return bytes;
}
