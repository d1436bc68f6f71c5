/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the library that test programs link their own in front of
   (ld --wrap: tests.ninja), so that a test can change what a whole solve is
   given without a variable in the library. Each calls the library's unless a
   test asked for something else here. */
#ifndef TESTS_WRAPPED_H
#define TESTS_WRAPPED_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/cuda_driver.h"
#include "base/engine.h"

/* hone_choices_of: the trial part of every solve's choices; zeros at first. */
extern hone_trial wrapped_trial;

/* hone_cuda_runtime_status and its like: calls of CUDA so far, and the one
   that takes fail_at from 1 to 0 counts as failed, though it was made. 0:
   none. */
typedef struct wrapped_calls {
  int64_t made, fail_at;
} wrapped_calls;
extern wrapped_calls failing_calls;

/* hone_driver_present: this driver, if not NULL. */
extern const hone_driver *wrapped_driver;

/* hone_host_copy_open: bytes of a slot; 0: the library's. */
extern int64_t wrapped_slot_bytes;

#ifdef __cplusplus
}
#endif

#endif
