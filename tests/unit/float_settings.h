/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating-point environments that callers have, for test_float_environment.c
   and test_lapack_float_environment.c. */
#ifndef TESTS_FLOAT_SETTINGS_H
#define TESTS_FLOAT_SETTINGS_H

#include <stdbool.h>

typedef struct float_setting {
  const char *name;
  int traps, rounding; /* of fenv.h */
  bool flush;          /* subnormal numbers, read and written, to zero */
} float_setting;

enum { FLOAT_SETTINGS = 6 };
extern const float_setting float_settings[FLOAT_SETTINGS];

/* Gives the calling thread this environment, with the flag FE_UNDERFLOW raised
   unless that exception is trapped. */
void float_setting_enter(const float_setting *setting);

/* Restores the default environment. Is the thread's environment still the one
   that float_setting_enter made, flags included? */
bool float_setting_leave(const float_setting *setting);

#endif
