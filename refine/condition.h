/* SPDX-License-Identifier: BSD-3-Clause */
/* Condition estimate, and the proof that factors tell A from singular. */
#ifndef HONE_CONDITION_H
#define HONE_CONDITION_H

#include "base/engine.h"
#include "refine/gmres.h"

typedef struct hone_certificate {
  double rcond;               /* of A: 1 / (||A||_1 ||inv(A)||_1), estimated */
  double rcond_scaled;        /* of S = R A C */
  long double inverse_norm;   /* estimate of ||inv(A)||_1: of tiny entries
                                 beyond the range of double */
  double inverse_norm_scaled; /* of ||inv(S)||_1 */
  /* ||y - S z||_1 / ||y||_1 for the vectors z = inv(M) y, M the computed
     factors, that made ||z||_1 / ||y||_1 the estimate, after refining z:
     near 1 where S may as well be singular. */
  double defect;
  /* How much of an error a correction with these factors leaves, in that
     direction: the first defect, or a later one's ratio to the one before
     where that is more; NaN: pairs of GMRES were needed. */
  double contraction;
  double foretold;  /* the same as u growth cond(S), u the unit roundoff of
                       the factors, would have it; 0: not known */
  int tries;        /* passes over A for it */
  int pairs;        /* of the space that the factors need to tell S from a
                       singular matrix; 0: they do so alone */
  bool nonsingular; /* defect <= 1/2, and falling to 1/16 or to rounding; with
                       pairs: see hone_estimate_mend */
} hone_certificate;

/* What the estimate works on and with. */
typedef struct hone_factored {
  const hone_engine *engine;
  void *self;
  const hone_matrix *a;
  const hone_scaling *scaling;
  hone_pool *pool;
  bool resident; /* the engine holds a copy of this very A */
  /* Not NULL: the factors are applied in double arithmetic and with the pairs
     of this space: see gmres.h. Borrowed. */
  hone_space *space;
} hone_factored;

/* r = b - op(A) x and den = |op(A)| |x| + |b| in double-double: by the engine
   where it holds A, else, or where that fails, by the host. True: by the
   engine. */
bool hone_residual(const hone_factored *f, bool trans, const hone_entry *x,
                   const hone_entry *b, hone_entry *r, double *den);

/* v = inv(A) v or inv(A^T) v by the factors of S, for k <= 64 columns.
   scaled: v = inv(S) v instead. v on entry stands for 2^-shift[c] v (shift
   NULL: v itself). size[c], where size is not NULL, becomes the largest
   entry of inv(C) v, the solution in scaled variables. */
int hone_apply_inverse(const hone_factored *f, bool scaled, bool trans,
                       int64_t k, hone_entry *v, int64_t ldv, const int *shift,
                       double *size);

/* norm1: ||A||_1; norm1_scaled: ||S||_1; scratch: hone_estimate_scratch(n)
   doubles. */
int hone_estimate(const hone_factored *f, double norm1, double norm1_scaled,
                  hone_entry *scratch, hone_certificate *out);
/* After a hone_estimate that did not show S to be nonsingular, with its scratch
   as it left it: tries again with pairs of f->space, which is empty, and with
   at most so many passes over A. Where that does it, out->pairs tells how many
   the space then holds. */
int hone_estimate_mend(const hone_factored *f, int passes, double norm1,
                       double norm1_scaled, hone_entry *scratch,
                       hone_certificate *out);
/* Factors whose contraction was measured along one vector, and is not believed:
   tries random errors, of S and of S^T. Raises contraction to what that
   shows. The scratch is free. */
int hone_estimate_probe(const hone_factored *f, hone_entry *scratch,
                        hone_certificate *out);
int64_t hone_estimate_scratch(int64_t n);

#endif
