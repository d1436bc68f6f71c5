/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/guest.h"

void hone_guest_enter(hone_guest *guest) { hone_float_enter(&guest->callers); }

void hone_guest_leave(const hone_guest *guest) {
  hone_float_leave(&guest->callers);
}
