/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/guest.h"

#include <errno.h>
#include <pthread.h>

void hone_guest_enter(hone_guest *guest) {
  guest->error = errno;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guest->cancellation);
  hone_float_enter(&guest->callers);
}

void hone_guest_leave(const hone_guest *guest) {
  hone_float_leave(&guest->callers);
  pthread_setcancelstate(guest->cancellation, NULL);
  errno = guest->error;
}
