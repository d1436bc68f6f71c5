/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_VENDORED_CHECK_H
#define TESTS_VENDORED_CHECK_H

#include "tests/unit/vendored_caller.h"

#include <stdbool.h>

/* Solves systems through the caller and prints each check that fails. Returns
   how many did. discards: the caller's factors are discarded. */
int vendored_check_d(const vendored_caller *caller, const char *title,
                     bool discards);
int vendored_check_z(const vendored_caller *caller, const char *title,
                     bool discards);

#ifdef HONE_COMPLEX
#define vendored_check vendored_check_z
#else
#define vendored_check vendored_check_d
#endif

#endif
