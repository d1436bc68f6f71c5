/* SPDX-License-Identifier: BSD-3-Clause */
/* Real and complex numbers in the kernels for batches. Where a product and a
   sum are to be rounded once, or each by itself, they say so. Device code. */
#ifndef HONE_DEVICE_BATCH_NUMBERS_H
#define HONE_DEVICE_BATCH_NUMBERS_H

#include "gpu_sp/launch.h"

#include <cfloat>
#include <cmath>

namespace {

/* A number of one part, real, or of two. */
template <int P> struct alignas(P * sizeof(double)) number { double part[P]; };

template <int P> __device__ __forceinline__ number<P> make(double v) {
  number<P> r = {};
  r.part[0] = v;
  return r;
}

template <int P>
__device__ __forceinline__ number<P> sum_of(number<P> a, number<P> b) {
  for (int p = 0; p < P; p++)
    a.part[p] += b.part[p];
  return a;
}

template <int P>
__device__ __forceinline__ number<P> difference_of(number<P> a, number<P> b) {
  for (int p = 0; p < P; p++)
    a.part[p] -= b.part[p];
  return a;
}

template <int P>
__device__ __forceinline__ number<P> scaled(number<P> a, double by) {
  for (int p = 0; p < P; p++)
    a.part[p] *= by;
  return a;
}

template <int P> __device__ __forceinline__ double square_of(number<P> v) {
  double s = v.part[0] * v.part[0];
  if (P == 2)
    s = fma(v.part[P - 1], v.part[P - 1], s);
  return s;
}

/* A word that changes the sign of a number, or leaves it. */
__device__ __forceinline__ long long sign_word(bool changes) {
  return static_cast<long long>(changes ? 1ULL << 63 : 0);
}

/* v or its conjugate, without a branch: loads behind one would wait. */
template <int P>
__device__ __forceinline__ number<P> conjugated(number<P> v, long long word) {
  if (P == 2)
    v.part[P - 1] =
        __longlong_as_double(__double_as_longlong(v.part[P - 1]) ^ word);
  return v;
}

/* sqrt(s) to about its last bit, without a branch; 0 below 2^-1020. */
__device__ __forceinline__ double root_of(double s) {
  const double r = hone_reciprocal_root_double(s), half = 0.5 * r;
  double y = s * r;
  y = fma(fma(-y, y, s), half, y);
  y = fma(fma(-y, y, s), half, y);
  return s < 0x1p-1020 ? 0.0 : s <= DBL_MAX ? y : s;
}

/* |v|, of numbers whose squares stay in range. */
template <int P> __device__ __forceinline__ double modulus_of(number<P> v) {
  return P == 1 ? fabs(v.part[0]) : root_of(square_of(v));
}

/* The larger part, NaN if one is. */
template <int P> __device__ __forceinline__ double extreme_of(number<P> v) {
  const double re = fabs(v.part[0]), im = fabs(v.part[P - 1]);
  return re >= im || re != re ? re : im;
}

/* |re| + |im|, by which pivots are chosen. */
template <int P> __device__ __forceinline__ double size_of(number<P> v) {
  return P == 1 ? fabs(v.part[0]) : fabs(v.part[0]) + fabs(v.part[P - 1]);
}

/* c - a b */
template <int P>
__device__ __forceinline__ number<P> minus_product(number<P> c, number<P> a,
                                                   number<P> b) {
  c.part[0] = fma(-a.part[0], b.part[0], c.part[0]);
  if (P == 2) {
    c.part[P - 1] = fma(-a.part[0], b.part[P - 1], c.part[P - 1]);
    c.part[0] = fma(a.part[P - 1], b.part[P - 1], c.part[0]);
    c.part[P - 1] = fma(-a.part[P - 1], b.part[0], c.part[P - 1]);
  }
  return c;
}

/* c + a b */
template <int P>
__device__ __forceinline__ number<P> plus_product(number<P> c, number<P> a,
                                                  number<P> b) {
  return minus_product(c, scaled(a, -1.0), b);
}

/* c + a b, every product and sum rounded. */
template <int P>
__device__ __forceinline__ number<P> plus_rounded(number<P> c, number<P> a,
                                                  number<P> b) {
  double re = __dmul_rn(a.part[0], b.part[0]);
  if (P == 2) {
    const double im = __dadd_rn(__dmul_rn(a.part[0], b.part[P - 1]),
                                __dmul_rn(a.part[P - 1], b.part[0]));
    re = __dsub_rn(re, __dmul_rn(a.part[P - 1], b.part[P - 1]));
    c.part[P - 1] = __dadd_rn(c.part[P - 1], im);
  }
  c.part[0] = __dadd_rn(c.part[0], re);
  return c;
}

/* 1 / v to about its last bit; Inf or NaN where that is not a normal number. */
__device__ __forceinline__ double reciprocal(double v) {
  const double r = hone_reciprocal_double(v), e = fma(-v, r, 1.0);
  return fma(r, fma(e, e, e), r);
}

template <int P>
__device__ __forceinline__ number<P> reciprocal_of(number<P> v) {
  if (P == 1)
    return make<P>(reciprocal(v.part[0]));
  const double by = reciprocal(square_of(v));
  v.part[0] = v.part[0] * by;
  v.part[P - 1] = -v.part[P - 1] * by;
  return v;
}

template <int P>
__device__ __forceinline__ number<P> product_of(number<P> a, number<P> b) {
  number<P> r = make<P>(a.part[0] * b.part[0]);
  if (P == 2) {
    r.part[0] = fma(-a.part[P - 1], b.part[P - 1], r.part[0]);
    r.part[P - 1] = fma(a.part[P - 1], b.part[0], a.part[0] * b.part[P - 1]);
  }
  return r;
}

/* Two numbers that lie one behind the other, at an address that is a multiple
   of 16. */
template <int P>
__device__ __forceinline__ void load_two(const number<P> *from, number<P> *one,
                                         number<P> *other) {
  if constexpr (P == 1) {
    const double2 v = *reinterpret_cast<const double2 *>(from);
    one->part[0] = v.x;
    other->part[0] = v.y;
  } else {
    *one = from[0];
    *other = from[1];
  }
}

template <int P>
__device__ __forceinline__ void store_two(number<P> one, number<P> other,
                                          number<P> *to) {
  if constexpr (P == 1) {
    *reinterpret_cast<double2 *>(to) = make_double2(one.part[0], other.part[0]);
  } else {
    to[0] = one;
    to[1] = other;
  }
}

/* A sum in two doubles: hi, and the rounding errors that it has met. */
struct wide {
  double hi, lo;
};

/* to + v, exactly but for the rounding of lo (Knuth's sum). */
__device__ __forceinline__ void add_exactly(double v, wide *to) {
  const double t = __dadd_rn(to->hi, v), z = __dsub_rn(t, to->hi);
  to->lo += __dadd_rn(__dsub_rn(to->hi, __dsub_rn(t, z)), __dsub_rn(v, z));
  to->hi = t;
}

/* to - a b: Dot2 of Ogita, Rump & Oishi (2005). */
__device__ __forceinline__ void subtract_exactly(double a, double b, wide *to) {
  const double p = __dmul_rn(a, -b), e = __fma_rn(a, -b, -p);
  add_exactly(p, to);
  to->lo += e;
}

/* Makes hi the rounded sum, as hone_fold (base/exact.h) does. */
__device__ __forceinline__ void fold(wide *w) {
  const double s = __dadd_rn(w->hi, w->lo);
  w->lo = __dadd_rn(__dsub_rn(w->hi, s), w->lo);
  w->hi = s;
}

template <int P>
__device__ __forceinline__ void subtract_exact_product(number<P> a, number<P> b,
                                                       wide (&to)[P]) {
  subtract_exactly(a.part[0], b.part[0], &to[0]);
  if (P == 2) {
    subtract_exactly(-a.part[P - 1], b.part[P - 1], &to[0]);
    subtract_exactly(a.part[0], b.part[P - 1], &to[P - 1]);
    subtract_exactly(a.part[P - 1], b.part[0], &to[P - 1]);
  }
}

/* The larger one, or NaN if one is. */
struct larger {
  __device__ __forceinline__ double operator()(double a, double b) const {
    return b <= a || a != a ? a : b;
  }
};
struct smaller {
  __device__ __forceinline__ double operator()(double a, double b) const {
    return b >= a || a != a ? a : b;
  }
};
struct plus {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

} // namespace

#endif
