/* SPDX-License-Identifier: BSD-3-Clause */
/* All right-hand sides of one system, and what is told of it. Device code. */
#ifndef HONE_DEVICE_BATCH_COLUMNS_H
#define HONE_DEVICE_BATCH_COLUMNS_H

#include "gpu_sp/batch/solve.h"

namespace {

/* det(A) = parity prod u_kk / prod (r_i c_i), as a mantissa and an exponent.
   One thread computes it. */
template <class System>
__device__ __forceinline__ void take_determinant(const System &t,
                                                 hone_device_determinant *out) {
  constexpr int P = System::P;
  number<P> product = make<P>(1.0);
  unsigned long long seen[(System::N + 63) / 64] = {};
  int64_t exponent = 0;
  for (int k = 0; k < t.n; k++) {
    int shift = 0;
    product = product_of(product, t.s->pivot[k]);
    (void)frexp(extreme_of(product), &shift);
    for (int p = 0; p < P; p++)
      product.part[p] = ldexp(product.part[p], -shift);
    exponent += shift - ilogb(t.s->row[k]) - ilogb(t.s->col[k]);
    /* Every cycle of an even number of rows changes the sign. */
    const bool new_cycle = !(seen[k / 64] >> k % 64 & 1);
    for (int i = t.s->from[k]; new_cycle && i != k; i = t.s->from[i]) {
      seen[i / 64] |= 1ULL << i % 64;
      product = scaled(product, -1.0);
    }
  }
  out->mantissa[0] = product.part[0];
  out->mantissa[1] = P == 2 ? product.part[P - 1] : 0.0;
  out->exponent = exponent;
}

template <class T>
__device__ __forceinline__ T *array_of(const hone_device_arrays &in,
                                       int64_t k) {
  const void *const at = in.list != nullptr
                             ? in.list[k]
                             : static_cast<const T *>(in.first) + k * in.stride;
  return hone_given_pointer(static_cast<T *>(const_cast<void *>(at)));
}

/* A system that serves has an rcond above 0. */
template <class System>
__device__ __forceinline__ void
give_outcome(const System &t, const certified &m, bool serves, int64_t k) {
  if (t.in->determinant != nullptr && serves)
    take_determinant(t, &t.in->determinant[k]);
  t.in->rcond[k] = serves ? m.rcond : 0.0;
}

/* Solves for all right-hand sides, until one is not accepted. */
template <class System>
__device__ __forceinline__ bool
solve_columns(const System &t, const certified &m, double norm, int64_t k) {
  using entry = typename System::entry;
  const hone_device_systems &in = *t.in;
  const entry *b = array_of<const entry>(in.b, k);
  entry *x = array_of<entry>(in.x, k);
  entry *room = in.room != nullptr
                    ? static_cast<entry *>(in.room) + k * in.nrhs * in.n
                    : nullptr;
  bool accepted = true;
  for (int64_t c = 0; c < in.nrhs && accepted; c++) {
    entry *to = room != nullptr ? room + c * in.n : x + c * in.ldx;
    const hone_block_column column =
        solve_column(t, m, norm, b + c * in.ldb, to);
    accepted = column.accepted;
    if (t.thread == 0)
      in.column[k * in.nrhs + c] = column;
  }
  for (int64_t c = 0; c < in.nrhs && accepted && room != nullptr; c++)
    t.each_row([&](int i) { x[c * in.ldx + i] = room[c * in.n + i]; });
  return accepted;
}

} // namespace

#endif
