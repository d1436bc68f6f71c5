/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the kernels of blocks for the processor at hand. */
#include "base/isa.h"
#include "cpu_batch/block.h"

/* From this order on a system by itself is faster than several beside one
   another, whose matrices and factors fill the cache. */
enum { ROWS_FROM = 96 };

const hone_block_kernels *hone_rows_kernels_here(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_rows_avx512 : &hone_rows_avx2;
#endif
  return &hone_rows_base;
}

const hone_block_kernels *hone_block_kernels_here(int64_t n) {
  if (n >= ROWS_FROM)
    return hone_rows_kernels_here();
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_block_avx512 : &hone_block_avx2;
#endif
  return &hone_block_base;
}
