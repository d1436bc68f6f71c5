/* SPDX-License-Identifier: BSD-3-Clause */
/* The 16-bit parts that floats must have, in tests of the kernels that split
   them. */
#ifndef HONE_TEST_PIECES_H
#define HONE_TEST_PIECES_H

#include "tests/cuda/test_kernels.h"

namespace {

inline bool is_half(enum hone_split p) {
  return p == HONE_SPLIT_FP16_3 || p == HONE_SPLIT_FP16_1;
}

inline uint16_t rounded(enum hone_split p, float v, float *back) {
  uint16_t bits;
  if (is_half(p)) {
    const __half h = __float2half_rn(v);
    memcpy(&bits, &h, sizeof bits);
    *back = __half2float(h);
  } else {
    const __nv_bfloat16 h = __float2bfloat16_rn(v);
    memcpy(&bits, &h, sizeof bits);
    *back = __bfloat162float(h);
  }
  return bits;
}

struct cut {
  uint16_t hi, lo;
};

inline cut cut_of(enum hone_split p, float v) {
  float hi, lo;
  cut c;
  c.hi = rounded(p, v, &hi);
  c.lo = rounded(p, v - hi, &lo);
  return c;
}

inline hone_split_place place_of(enum hone_split p) {
  if (hone_split_rows(p) == 3 * HONE_PANEL)
    return {0, HONE_PANEL, 2 * HONE_PANEL};
  return {-1, -1, 0};
}

/* The parts that rows of U must have. */
inline std::vector<uint16_t> parts_of_rows(enum hone_split p, const float *u,
                                           int64_t ld, int64_t w,
                                           int64_t columns, float scale,
                                           int64_t ldo) {
  const hone_split_place place = place_of(p);
  std::vector<uint16_t> expected(
      static_cast<size_t>((hone_split_rows(p) + 1) * ldo), 0x1111);
  for (int64_t i = 0; i < HONE_PANEL && p != HONE_SPLIT_NONE; i++)
    for (int64_t c = 0; c < columns; c++) {
      const cut v = cut_of(p, i < w ? u[i * ld + c] * scale : 0.0F);
      uint16_t *at = expected.data() + i * ldo + c;
      at[place.hh * ldo] = v.hi;
      if (place.lo >= 0) {
        at[place.lo * ldo] = v.lo;
        at[place.hi * ldo] = v.hi;
      }
    }
  return expected;
}

} // namespace

#endif
