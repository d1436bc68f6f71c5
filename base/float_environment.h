/* SPDX-License-Identifier: BSD-3-Clause */
/* The floating-point environment of a thread: rounding, traps, the treatment of
   subnormal numbers, and exception flags. A caller may have changed it
   (feenableexcept, gfortran -ffpe-trap, -ffast-math); the library's arithmetic
   rounds to nearest, traps nothing, and keeps subnormal numbers. */
#ifndef HONE_FLOAT_ENVIRONMENT_H
#define HONE_FLOAT_ENVIRONMENT_H

#include <stdint.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <fenv.h>
#endif

typedef struct hone_float_environment {
#if defined(__x86_64__)
  uint32_t mxcsr;                   /* of the vector instructions */
  uint16_t x87_control, x87_status; /* of long double */
#elif defined(__aarch64__)
  uint64_t control, status;
#else
  fenv_t all;
#endif
} hone_float_environment;

/* Stores the thread's environment in *callers and gives it the library's. */
void hone_float_enter(hone_float_environment *callers);

/* Gives the thread back what hone_float_enter stored, with the flags of then:
   the library's own exceptions leave no trace. */
void hone_float_leave(const hone_float_environment *callers);

#endif
