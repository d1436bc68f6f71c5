/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* feenableexcept */
#include "tests/unit/float_settings.h"

#include <fenv.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

const float_setting float_settings[FLOAT_SETTINGS] = {
    {"default", 0, FE_TONEAREST, false},
    {"ffpe-trap", FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, FE_TONEAREST, false},
    {"all traps", FE_ALL_EXCEPT, FE_TONEAREST, false},
    {"upward", 0, FE_UPWARD, false},
    {"toward zero, traps", FE_INVALID, FE_TOWARDZERO, false},
    {"flush", 0, FE_TONEAREST, true}};

#if defined(__x86_64__)
static void set_flush(bool flush) {
  const unsigned both = 0x8040; /* FTZ and DAZ */
  _mm_setcsr((_mm_getcsr() & ~both) | (flush ? both : 0));
}
static bool flushes(void) { return (_mm_getcsr() & 0x8040) == 0x8040; }
#elif defined(__aarch64__)
static void set_flush(bool flush) {
  const uint64_t control = flush ? (uint64_t)1 << 24 : 0; /* FZ */
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
static bool flushes(void) {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return (control >> 24 & 1) != 0;
}
#else
static void set_flush(bool flush) { (void)flush; }
static bool flushes(void) { return false; }
#endif

/* The flags and traps that enter has set: some processors know no traps, and
   raise FE_INEXACT with FE_UNDERFLOW. */
static _Thread_local int raised, trapped;

void float_setting_enter(const float_setting *setting) {
  fesetenv(FE_DFL_ENV);
  if (setting->flush)
    set_flush(true);
  fesetround(setting->rounding);
  feraiseexcept(FE_UNDERFLOW & ~setting->traps);
  feenableexcept(setting->traps);
  raised = fetestexcept(FE_ALL_EXCEPT);
  trapped = fegetexcept();
}

bool float_setting_leave(const float_setting *setting) {
  const bool same = fetestexcept(FE_ALL_EXCEPT) == raised &&
                    fegetexcept() == trapped &&
                    fegetround() == setting->rounding;
  const bool flushed = flushes();
  fesetenv(FE_DFL_ENV);
  set_flush(false);
  return same && (flushed == setting->flush);
}
