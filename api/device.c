/* SPDX-License-Identifier: BSD-3-Clause */
/* The call that frees what is kept between calls: it serves real and complex
   systems alike. */
#include "api/engines.h"
#include "api/guest.h"

int64_t hone_release_kept(void) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int64_t bytes = hone_engines_release();
  hone_guest_leave(&guest);
  return bytes;
}
