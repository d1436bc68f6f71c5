/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a thread, stored and set; see float_environment.h. */
#include "base/float_environment.h"

#if defined(__x86_64__)

/* All exceptions masked, no flag, nothing flushed; 64 bits of significand. */
static const uint32_t OUR_MXCSR = 0x1f80;
static const uint16_t OUR_CONTROL = 0x37f;
enum { X87_FLAGS = 0x3f };

static uint16_t x87_status(void) {
  uint16_t status;
  __asm__ volatile("fnstsw %0" : "=m"(status) : : "memory");
  return status;
}

/* The instructions that store and load all of the x87's state take 0.1 us; most
   callers have the control word that we want, and most calls raise no flag. */
void hone_float_enter(hone_float_environment *callers) {
  __asm__ volatile("stmxcsr %0\n\t"
                   "fnstcw %1\n\t"
                   "ldmxcsr %2"
                   : "=m"(callers->mxcsr), "=m"(callers->x87_control)
                   : "m"(OUR_MXCSR)
                   : "memory");
  callers->x87_status = x87_status();
  if (callers->x87_control != OUR_CONTROL)
    __asm__ volatile("fnclex\n\t" /* a flag may be waiting for its trap */
                     "fldcw %0"
                     :
                     : "m"(OUR_CONTROL)
                     : "memory");
}

static void restore_x87(const hone_float_environment *callers) {
  struct {
    uint16_t control, unused, status, rest[11];
  } x87;
  __asm__ volatile("fnstenv %0" : "=m"(x87) : : "memory");
  x87.control = callers->x87_control;
  x87.status =
      (uint16_t)((x87.status & ~X87_FLAGS) | (callers->x87_status & X87_FLAGS));
  __asm__ volatile("fldenv %0" : : "m"(x87) : "memory");
}

void hone_float_leave(const hone_float_environment *callers) {
  if (callers->x87_control != OUR_CONTROL ||
      ((x87_status() ^ callers->x87_status) & X87_FLAGS) != 0)
    restore_x87(callers);
  __asm__ volatile("ldmxcsr %0" : : "m"(callers->mxcsr) : "memory");
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
