/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the kernels of factorizations for the processor at hand. */
#include "base/isa.h"
#include "cpu_factor/kernels.h"

enum { SINGLE = 32 * HONE_PARTS };

const hone_factor_kernels *hone_factor_kernels_of(int bits) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa == HONE_ISA_AVX512)
    return bits == SINGLE ? &hone_factor_avx512_32 : &hone_factor_avx512_64;
  if (isa == HONE_ISA_AVX2)
    return bits == SINGLE ? &hone_factor_avx2_32 : &hone_factor_avx2_64;
#endif
  return bits == SINGLE ? &hone_factor_base_32 : &hone_factor_base_64;
}
