/* SPDX-License-Identifier: BSD-3-Clause */
/* The scalar type of matrices and vectors. Sources that handle entries are
   compiled once for each type. They write hone_entry where a number may be
   complex, and double where it is always real (magnitudes, norms, errors,
   scaling). With HONE_COMPLEX defined, hone_entry is double _Complex, and
   entry_names.h renames every function of such a source. */
#ifndef HONE_ENTRY_H
#define HONE_ENTRY_H

#include "base/base.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#if defined(HONE_COMPLEX) && defined(__cplusplus)

#include "base/entry_names.h"

/* C++ sources, those of the CUDA engines, only move such entries: their kernels
   have types of their own. */
struct hone_entry {
  double re, im;
};
struct hone_single {
  float re, im;
};

enum { HONE_PARTS = 2, HONE_ROUNDINGS = 3 };

#elif defined(HONE_COMPLEX)

#include "base/complex_values.h"
#include "base/entry_names.h"

typedef double _Complex hone_entry;
typedef long double _Complex hone_wide; /* an entry in extended range */
typedef float _Complex hone_single;     /* an entry in single precision */

/* An entry has so many real parts. A sum of products is wrong by at most
   HONE_ROUNDINGS times what the bound for real numbers says, in modulus: each
   part of it sums two real products for each complex one, with |re a re x| +
   |im a im x| <= |a| |x|, and the two parts together are wrong by sqrt(2) times
   as much; 2 sqrt(2) < 3 (docs/numerics.md). */
enum { HONE_PARTS = 2, HONE_ROUNDINGS = 3 };

static inline double hone_real(hone_entry v) { return creal(v); }
static inline double hone_imag(hone_entry v) { return cimag(v); }
/* Returns |v|, wrong by less than three units in the last place: the larger
   part times sqrt(1 + q^2), q <= 1, so that nothing overflows or underflows.
   Unlike cabs it becomes vector instructions. NaN in a part gives NaN; Inf
   gives Inf or NaN. */
static inline double hone_abs(hone_entry v) {
  const double re = fabs(creal(v)), im = fabs(cimag(v));
  const double most = re > im ? re : im, least = re > im ? im : re;
  const double q = least / (most > 0.0 ? most : 1.0);
  return most * sqrt(1.0 + q * q);
}
/* Returns |re v| + |im v|, which is between |v| and sqrt(2) |v| and cheaper. */
static inline double hone_abs1(hone_entry v) {
  return fabs(creal(v)) + fabs(cimag(v));
}
static inline long double hone_absl(hone_wide v) { return cabsl(v); }
static inline hone_entry hone_conj(hone_entry v) { return conj(v); }
/* Are both parts finite, and the modulus in the range of double? Every measure
   of an error is a modulus. */
static inline bool hone_finite(hone_entry v) { return hone_abs(v) <= DBL_MAX; }
/* Returns v / |v|, or 1 for 0. */
static inline hone_entry hone_sign(hone_entry v) {
  const double size = hone_abs(v);
  return size > 0.0 ? v / size : 1.0;
}
/* Returns |v|; for a real entry, v itself with its sign. */
static inline double hone_signed_abs(hone_entry v) { return hone_abs(v); }
/* Rounds to a whole number; complex: each part. */
static inline hone_entry hone_nearest(hone_entry v) {
  return CMPLX(nearbyint(creal(v)), nearbyint(cimag(v)));
}
/* Returns the product with a real number. Each part of v is multiplied by
   itself, so that no Inf or NaN spreads from one part to the other. */
static inline hone_entry hone_times(double by, hone_entry v) {
  return CMPLX(by * creal(v), by * cimag(v));
}
/* Returns 2^e v. */
static inline hone_wide hone_ldexpl(hone_wide v, int e) {
  return CMPLXL(ldexpl(creall(v), e), ldexpl(cimagl(v), e));
}
static inline hone_entry hone_shift_entry(hone_entry v, int e) {
  return CMPLX(hone_shift(creal(v), e), hone_shift(cimag(v), e));
}

#else

typedef double hone_entry;
typedef long double hone_wide; /* an entry in extended range */
typedef float hone_single;     /* an entry in single precision */

enum { HONE_PARTS = 1, HONE_ROUNDINGS = 1 };

static inline double hone_real(hone_entry v) { return v; }
static inline double hone_imag(hone_entry v) {
  (void)v;
  return 0.0;
}
static inline double hone_abs(hone_entry v) { return fabs(v); }
static inline double hone_abs1(hone_entry v) { return fabs(v); }
static inline long double hone_absl(hone_wide v) { return fabsl(v); }
static inline hone_entry hone_conj(hone_entry v) { return v; }
static inline bool hone_finite(hone_entry v) { return isfinite(v); }
/* Returns 1 for v >= 0, otherwise -1, also for NaN. */
static inline hone_entry hone_sign(hone_entry v) {
  return v >= 0.0 ? 1.0 : -1.0;
}
static inline double hone_signed_abs(hone_entry v) { return v; }
static inline hone_entry hone_nearest(hone_entry v) { return nearbyint(v); }
static inline hone_entry hone_times(double by, hone_entry v) { return by * v; }
static inline hone_wide hone_ldexpl(hone_wide v, int e) { return ldexpl(v, e); }
static inline hone_entry hone_shift_entry(hone_entry v, int e) {
  return hone_shift(v, e);
}

#endif

#if !(defined(HONE_COMPLEX) && defined(__cplusplus))

/* Returns r c v for powers of two r and c, rounded once. If one of them is
   large and the other one small, r v may be out of range though r c v is not,
   but r c is in range then. */
static inline hone_entry hone_scaled_entry(double r, double c, hone_entry v) {
  const double both = r * c;
  const bool fits = (both >= DBL_MIN) & (both <= DBL_MAX);
  return hone_times(fits ? 1.0 : c, hone_times(fits ? both : r, v));
}

#endif
#endif
