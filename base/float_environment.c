/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a thread, stored and set; see float_environment.h. */
#include "base/float_environment.h"

#if defined(__x86_64__)

void hone_float_enter(hone_float_environment *callers) {
  const uint32_t mxcsr = 0x1f80;  /* all exceptions masked, no flag, no flush */
  const uint16_t control = 0x37f; /* the same, and 64 bits of significand */
  __asm__ volatile("stmxcsr %0\n\t"
                   "fnstenv %1\n\t"
                   "fnclex\n\t"
                   "fldcw %2\n\t"
                   "ldmxcsr %3"
                   : "=m"(callers->mxcsr), "=m"(callers->x87)
                   : "m"(control), "m"(mxcsr)
                   : "memory");
}

void hone_float_leave(const hone_float_environment *callers) {
  __asm__ volatile("fldenv %0\n\t"
                   "ldmxcsr %1"
                   :
                   : "m"(callers->x87), "m"(callers->mxcsr)
                   : "memory");
}

#elif defined(__aarch64__)

void hone_float_enter(hone_float_environment *callers) {
  __asm__ volatile("mrs %0, fpcr\n\t"
                   "mrs %1, fpsr\n\t"
                   "msr fpcr, xzr\n\t"
                   "msr fpsr, xzr"
                   : "=&r"(callers->control), "=&r"(callers->status)
                   :
                   : "memory");
}

void hone_float_leave(const hone_float_environment *callers) {
  __asm__ volatile("msr fpsr, %1\n\t"
                   "msr fpcr, %0"
                   :
                   : "r"(callers->control), "r"(callers->status)
                   : "memory");
}

#else

void hone_float_enter(hone_float_environment *callers) {
  (void)fegetenv(&callers->all);
  (void)fesetenv(FE_DFL_ENV);
}

void hone_float_leave(const hone_float_environment *callers) {
  (void)fesetenv(&callers->all);
}

#endif
