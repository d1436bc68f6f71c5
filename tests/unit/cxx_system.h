/* SPDX-License-Identifier: BSD-3-Clause */
/* Small systems and helpers for the tests of hone.hpp. */
#ifndef HONE_TESTS_CXX_SYSTEM_H
#define HONE_TESTS_CXX_SYSTEM_H

#include "api/hone.hpp"

#include <cmath>

namespace cxx_system {

inline const std::vector<double> a2 = {2, 1, 1, 3}, b2 = {3, 5};

/* The status that f throws, or HONE_OK. */
template <typename F> int thrown(F f) {
  try {
    f();
  } catch (const hone::error &e) {
    return e.status();
  }
  return HONE_OK;
}

using complex = std::complex<double>;
using complexes = std::vector<complex>;

inline const complex i1(0.0, 1.0);
inline const complexes z2 = {2.0, -i1, i1, 3.0}; /* [2 i; -i 3] by columns */

/* The sum of all |op(A) x - b|_i of order n. */
inline double residual(const complexes &a, int trans, const complexes &x,
                       const complexes &b) {
  const std::size_t n = b.size();
  double all = 0.0;
  for (std::size_t r = 0; r < n; r++) {
    complex sum = -b[r];
    for (std::size_t c = 0; c < n; c++) {
      const complex of = trans == HONE_NO_TRANS ? a[r + n * c] : a[c + n * r];
      sum += (trans == HONE_CONJ_TRANS ? std::conj(of) : of) * x[c];
    }
    all += std::abs(sum);
  }
  return all;
}

} // namespace cxx_system

#endif
