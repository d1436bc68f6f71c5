/* SPDX-License-Identifier: BSD-3-Clause */
/* The instruction sets for which kernels are compiled. A file of kernels is
   compiled once for each, and one is chosen at run time. */
#ifndef HONE_ISA_H
#define HONE_ISA_H

typedef enum hone_isa {
  HONE_ISA_BASE,
  HONE_ISA_AVX2,  /* and FMA */
  HONE_ISA_AVX512 /* F, DQ and VL */
} hone_isa;

/* Returns the best that this processor has. */
static inline hone_isa hone_isa_here(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return HONE_ISA_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return HONE_ISA_AVX2;
#endif
  return HONE_ISA_BASE;
}

/* Bytes of a vector register in the file that is being compiled. */
#if defined(__AVX512F__)
enum { HONE_VECTOR_BYTES = 64 };
#elif defined(__AVX2__)
enum { HONE_VECTOR_BYTES = 32 };
#else
enum { HONE_VECTOR_BYTES = 16 };
#endif

#endif
