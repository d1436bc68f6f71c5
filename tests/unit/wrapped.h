/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the library that test programs replace (ld --wrap, see
   build.ninja), so that a test can change what a whole solve is given without a
   variable in the library. Each replacement calls the library's function unless
   a test asked for something else here. */
#ifndef TESTS_WRAPPED_H
#define TESTS_WRAPPED_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/cuda_driver.h"
#include "base/engine.h"

/* hone_choices_of: the trial part of the choices of every solve; zeros at
   first. */
extern hone_trial wrapped_trial;

/* hone_cuda_runtime_status and its like count the calls of CUDA in made. The
   call that takes fail_at from 1 to 0 counts as failed, although it was made;
   0: none. */
typedef struct wrapped_calls {
  int64_t made, fail_at;
} wrapped_calls;
extern wrapped_calls failing_calls;

/* Takes one from *fail_at if it is above 0, and says whether it was 1. If two
   threads call this at a time, it does not fall below 0. */
bool wrapped_reaches(int64_t *fail_at);

/* hone_driver_present returns this driver unless it is NULL. */
extern const hone_driver *wrapped_driver;

/* hone_host_copy_open takes slots of so many bytes; 0: the library's size. */
extern int64_t wrapped_slot_bytes;

#ifdef __cplusplus
}
#endif

#endif
