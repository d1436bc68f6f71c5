/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic with unevaluated sums of two and three doubles, whose first word
   is the sum rounded to double. Uses Knuth's TwoSum, and products by fused
   multiply-add. */
#ifndef TESTS_GALLERY_WIDE_H
#define TESTS_GALLERY_WIDE_H

/* Compiles a plain loop for each vector width, like HONE_VECTOR, which may not
   be included here. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) &&      \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
#define WIDE_LOOP __attribute__((target_clones("default", "fma", "avx512f")))
#else
#define WIDE_LOOP
#endif
#define WIDE_INLINE static inline __attribute__((always_inline))

/* *s + *e = a + b exactly. */
WIDE_INLINE void wide_sum(double a, double b, double *s, double *e) {
  double t = a + b, z = t - a;
  *e = (a - (t - z)) + (b - z);
  *s = t;
}

/* *s + *e = a + b exactly, where |a| >= |b|. */
WIDE_INLINE void wide_sum_ordered(double a, double b, double *s, double *e) {
  double t = a + b;
  *e = b - (t - a);
  *s = t;
}

/* *p + *e = a b exactly, above the subnormal range. */
WIDE_INLINE void wide_product(double a, double b, double *p, double *e) {
  *p = a * b;
  *e = __builtin_fma(a, b, -*p);
}

/* (h, l) = (h, l) - (ah, al) (bh, bl) with an error of some units of 2^-104. */
WIDE_INLINE void wide_subtract_product(double *h, double *l, double ah,
                                       double al, double bh, double bl) {
  double p, e, s, t;
  wide_product(-ah, bh, &p, &e);
  e -= ah * bl + al * bh;
  wide_sum(*h, p, &s, &t);
  t += *l + e;
  wide_sum_ordered(s, t, h, l);
}

/* (h, l) = (ah, al) / (bh, bl). */
WIDE_INLINE void wide_divide(double ah, double al, double bh, double bl,
                             double *h, double *l) {
  double q = ah / bh, p, e;
  wide_product(q, bh, &p, &e);
  double r = ((ah - p) - e) + (al - q * bl);
  wide_sum_ordered(q, r / bh, h, l);
}

/* (s, c, d) += v, exact except for the rounding of the last word. */
WIDE_INLINE void wide_add_three(double *s, double *c, double *d, double v) {
  double e, f;
  wide_sum(*s, v, s, &e);
  wide_sum(*c, e, c, &f);
  *d += f;
}

#endif
