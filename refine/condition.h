/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition estimate of S = R A C with computed factors M, and the certificate
   that M distinguishes S from every singular matrix. In double precision, with
   residuals in double-double. Next to read: condition.c. */
#ifndef HONE_CONDITION_H
#define HONE_CONDITION_H

#include "base/engine.h"
#include "refine/gmres.h"

typedef struct hone_certificate {
  double rcond;               /* of A: 1 / (||A||_1 ||inv(A)||_1), estimated */
  double rcond_scaled;        /* the same of S = R A C */
  long double inverse_norm;   /* estimate of ||inv(A)||_1; with tiny entries it
                                 lies beyond the range of double */
  double inverse_norm_scaled; /* estimate of ||inv(S)||_1 */
  /* ||y - S z||_1 / ||y||_1 after refining z, where z = inv(M) y started as the
     vector for which ||z||_1 / ||y||_1 is the estimate. It stays near 1 where S
     may be singular. */
  double defect;
  /* The part of an error that a correction with these factors leaves, along
     that vector: the first defect, or the largest ratio of a later defect to
     the one before it; NaN: pairs of GMRES were needed. */
  double contraction;
  /* The a-priori value u growth cond(S) of the contraction, u being the unit
     roundoff of the factors; 0: not known. */
  double predicted_contraction;
  int passes; /* passes over A that it took */
  /* Pairs of the space without which the factors cannot distinguish S from a
     singular matrix; 0: they need none. */
  int pairs;
  /* True if the defect is at most 1/2 and falls to 1/16 or to rounding; with
     pairs, see hone_certify_with_gmres. */
  bool nonsingular;
} hone_certificate;

/* A factored matrix: the factors, A itself, and the scaling between them. */
typedef struct hone_factored {
  const hone_engine *engine;
  void *self;
  const hone_matrix *a;
  const hone_scaling *scaling;
  hone_pool *pool;
  bool use_copy; /* residuals use the engine's copy of this very A */
  /* If not NULL, the factors are applied in double arithmetic and together with
     the pairs of this space (gmres.h). Borrowed. */
  hone_space *space;
} hone_factored;

/* r = b - op(A) x and den = |op(A)| |x| + |b| in double-double, computed by the
   engine where it holds A, and by the host otherwise or if the engine fails.
   Returns true if the engine computed them. */
bool hone_residual(const hone_factored *f, bool trans, const hone_entry *x,
                   const hone_entry *b, hone_entry *r, double *den);

/* v = inv(A) v or inv(A^T) v by the factors of S, for k <= 64 columns; with
   scaled, v = inv(S) v or inv(S^T) v instead. The v passed in stands for
   2^-shift[c] v (shift NULL: for v itself). size, if not NULL, receives for
   each column the largest entry of inv(C) v, the solution in scaled
   variables. */
int hone_apply_inverse(const hone_factored *f, bool scaled, bool trans,
                       int64_t k, hone_entry *v, int64_t ldv, const int *shift,
                       double *size);

/* Estimates the condition of S and of A, and certifies the factors. norm1:
   ||A||_1; norm1_scaled: ||S||_1; scratch: hone_certify_scratch(n) entries. */
int hone_certify(const hone_factored *f, double norm1, double norm1_scaled,
                 hone_entry *scratch, hone_certificate *out);
/* Tries again with GMRES, after hone_certify did not show S to be nonsingular,
   and with its scratch as hone_certify left it. f->space is empty on entry; at
   most 'passes' passes over A are made. On success out->pairs is the number of
   pairs that the space then holds. */
int hone_certify_with_gmres(const hone_factored *f, int passes, double norm1,
                            double norm1_scaled, hone_entry *scratch,
                            hone_certificate *out);
/* Measures the contraction again, for factors whose contraction along one
   vector is not trusted: with random errors, of S and of S^T. Raises
   out->contraction to the largest value found. The contents of scratch are
   overwritten. */
int hone_certify_contraction(const hone_factored *f, hone_entry *scratch,
                             hone_certificate *out);
int64_t hone_certify_scratch(int64_t n);

/* 64 random bits by splitmix64 (Steele, Lea & Flood 2014); advances *seed. */
static inline uint64_t hone_random_bits(uint64_t *seed) {
  uint64_t bits = *seed += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

#endif
