/* SPDX-License-Identifier: BSD-3-Clause */
/* Every public call is a guest in the caller's thread: what it changes there it
   puts back before it returns. */
#ifndef HONE_GUEST_H
#define HONE_GUEST_H

#include "base/float_environment.h"

/* A thread that is cancelled during a call ends after it: in a progress
   function it would leave behind all that the call holds. */
typedef struct hone_guest {
  hone_float_environment callers;
  int cancellation;
  int error; /* errno */
} hone_guest;

void hone_guest_enter(hone_guest *guest);
void hone_guest_leave(const hone_guest *guest);

#endif
