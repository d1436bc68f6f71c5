/* SPDX-License-Identifier: BSD-3-Clause */
/* The sums of a residual in double-double, for real and for complex entries,
   and moduli. Device code; included by residual.cu and many.cu alone. Read
   these next. */
#ifndef HONE_CUDA_SUMS_H
#define HONE_CUDA_SUMS_H

#include "gpu_sp/residual/passes.h"

namespace {

/* Returns hi + p rounded; *error is the rounding error. */
__device__ inline double two_sum(double hi, double p, double *error) {
  double t = __dadd_rn(hi, p);
  double z = __dsub_rn(t, hi);
  *error = __dadd_rn(__dsub_rn(hi, __dsub_rn(t, z)), __dsub_rn(p, z));
  return t;
}

/* Adds a x to hi + lo. Computed by intrinsics, which the compiler does not
   contract. */
__device__ inline void add_part(double a, double x, double *hi, double *lo) {
  double f, p = __dmul_rn(a, x), e = __fma_rn(a, x, -p);
  *hi = two_sum(*hi, p, &f);
  *lo = __dadd_rn(*lo, __dadd_rn(e, f));
}

/* Makes hi the rounded sum of a pair, as hone_fold (base/exact.h) does. */
__device__ inline void fold_pair(double *hi, double *lo) {
  const double s = __dadd_rn(*hi, *lo);
  *lo = __dadd_rn(__dsub_rn(*hi, s), *lo);
  *hi = s;
}

__device__ inline void add_pair(double hi, double lo, double *to_hi,
                                double *to_lo) {
  double f;
  *to_hi = two_sum(*to_hi, hi, &f);
  *to_lo = __dadd_rn(*to_lo, __dadd_rn(lo, f));
}

#ifdef HONE_COMPLEX

/* Sums hi + lo of real and of imaginary parts, where lo gathers the rounding
   errors, and the sum of products of moduli. */
struct sums {
  double hi, lo, hi_im, lo_im, den;
};

/* An entry of x, with its modulus. */
struct factor {
  double re, im, size;
};
typedef factor loaded_x; /* the x of the rows of one load */

__device__ inline factor factor_of(const hone_entry &x) {
  return {x.re, x.im, modulus(x.re, x.im)};
}

/* s -= a x. */
__device__ inline void add_product(const entry &a, const factor &x, sums *s) {
  add_part(a.x, -x.re, &s->hi, &s->lo);
  add_part(a.y, x.im, &s->hi, &s->lo);
  add_part(a.x, -x.im, &s->hi_im, &s->lo_im);
  add_part(a.y, -x.re, &s->hi_im, &s->lo_im);
  s->den = __fma_rn(modulus(a.x, a.y), x.size, s->den);
}

__device__ inline loaded_x x_at(const hone_entry *x, int i, int) {
  return factor_of(x[i]);
}
__device__ inline void add_loaded(const pair &a, const loaded_x &x, sums *s) {
  add_product(a, x, s);
}

__device__ inline void add_sums(const sums &t, sums *s) {
  add_pair(t.hi, t.lo, &s->hi, &s->lo);
  add_pair(t.hi_im, t.lo_im, &s->hi_im, &s->lo_im);
  s->den = __dadd_rn(s->den, t.den);
}

__device__ inline void fold_sums(sums *s) {
  fold_pair(&s->hi, &s->lo);
  fold_pair(&s->hi_im, &s->lo_im);
}

__device__ inline sums begin_sums(const hone_entry &b) {
  return {b.re, 0.0, b.im, 0.0, modulus(b.re, b.im)};
}
__device__ inline hone_entry end_sums(const sums &s, hone_entry *rest) {
  double re, im;
  const hone_entry r = {two_sum(s.hi, s.lo, &re),
                        two_sum(s.hi_im, s.lo_im, &im)};
  *rest = {re, im};
  return r;
}

#else

/* A sum hi + lo, where lo gathers the rounding errors, and the sum of
   magnitudes. */
struct sums {
  double hi, lo, den;
};

typedef double factor;
typedef pair loaded_x; /* the x of the rows of one load */

__device__ inline factor factor_of(double x) { return x; }

/* s -= a x. */
__device__ inline void add_product(double a, double x, sums *s) {
  add_part(a, -x, &s->hi, &s->lo);
  s->den = __fma_rn(fabs(a), fabs(x), s->den);
}

__device__ inline loaded_x x_at(const double *x, int i, int rows) {
  return {x[i], i + 1 < rows ? x[i + 1] : 0.0};
}
__device__ inline void add_loaded(const pair &a, const loaded_x &x, sums *s) {
  add_product(a.x, x.x, s);
  add_product(a.y, x.y, s);
}

__device__ inline void add_sums(const sums &t, sums *s) {
  add_pair(t.hi, t.lo, &s->hi, &s->lo);
  s->den = __dadd_rn(s->den, t.den);
}

__device__ inline void fold_sums(sums *s) { fold_pair(&s->hi, &s->lo); }

__device__ inline sums begin_sums(double b) { return {b, 0.0, fabs(b)}; }
__device__ inline double end_sums(const sums &s, double *rest) {
  return two_sum(s.hi, s.lo, rest);
}

#endif

/* The doubles of a sum, by number. */
enum { SUMS = sizeof(sums) / sizeof(double) };
__device__ inline double &part_of(sums &s, int k) { return (&s.hi)[k]; }
__device__ inline const double &part_of(const sums &s, int k) {
  return (&s.hi)[k];
}

/* The workspace holds hi of all parts (n each), then lo, and so on. */
__device__ inline void put_sums(double *work, int64_t n, int64_t parts,
                                int64_t part, int64_t i, const sums &s) {
#pragma unroll
  for (int k = 0; k < SUMS; k++)
    work[(k * parts + part) * n + i] = part_of(s, k);
}

__device__ inline sums get_sums(const double *work, int64_t n, int64_t parts,
                                int64_t part, int64_t i) {
  sums s;
#pragma unroll
  for (int k = 0; k < SUMS; k++)
    part_of(s, k) = work[(k * parts + part) * n + i];
  return s;
}

} // namespace

#endif
