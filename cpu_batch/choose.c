/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the kernels of blocks for the processor at hand. */
#include "base/isa.h"
#include "cpu_batch/block.h"

const hone_block_kernels *hone_block_kernels_here(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa == HONE_ISA_AVX512)
    return &hone_block_avx512;
  if (isa == HONE_ISA_AVX2)
    return &hone_block_avx2;
#endif
  return &hone_block_base;
}
