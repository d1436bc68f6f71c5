/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of factors M of S = R A C: that random probes show them to
   contract, so that S is not singular, and an estimate of the condition number.
   In double precision. Next to read: condition.c. */
#ifndef HONE_CONDITION_H
#define HONE_CONDITION_H

#include "refine/probes.h"

typedef struct hone_certificate {
  double rcond;               /* of A: 1 / (||A||_1 ||inv(A)||_1), estimated */
  double rcond_scaled;        /* the same of S = R A C */
  long double inverse_norm;   /* estimate of ||inv(A)||_1; with tiny entries it
                                 lies beyond the range of double */
  double inverse_norm_scaled; /* estimate of ||inv(S)||_1 */
  double inverse_bound;       /* bound on ||inv(S)||_2, and so on that of
                                 the transpose; Inf: there is none */
  double inverse_many; /* the same from more random vectors, for many columns;
                          0: not made yet */
  double factors_many; /* and, by these, the bound on ||inv(M)||_2 */
  hone_contraction contraction[2]; /* of the factors of S, and of S^T */
  int passes;                      /* passes over A that it took */
  /* True if a power of E contracts, so that S is not singular, and the
     condition is one that double precision resolves. */
  bool nonsingular;
  /* True if no factors in double precision would tell S from a singular
     matrix: a vector z has ||S z||_1 < eps ||S||_1 ||z||_1, or the factors
     contract and yet the condition is not one that double precision
     resolves. */
  bool singular;
  /* True if a pivot of zero was replaced, and S z = 0 exactly. */
  bool exactly_singular;
  /* The z of that proof, and the left null vector, n entries each in scaled
     variables; NULL: there is no such proof. Borrowed. */
  const hone_entry *null_vector, *left_null_vector;
} hone_certificate;

/* r = b - op(A) x and den = |op(A)| |x| + |b| in double-double, computed by the
   engine where it holds A, and by the host otherwise or if the engine fails.
   Returns true if the engine computed them. */
bool hone_residual(const hone_factored *f, bool trans, const hone_entry *x,
                   const hone_entry *b, hone_entry *r, double *den);

/* Computes them for the columns of the block, whose r may be their b. */
bool hone_residuals(const hone_factored *f, bool trans,
                    const hone_residual_block *block);

/* v = inv(A) v or inv(A^T) v by the factors of S, their deflation and the pairs
   of their space, for k <= HONE_SOLVE_COLUMNS; with
   scaled, v = inv(S) v or inv(S^T) v instead. The v passed in stands for
   2^-shift[c] v (shift NULL: for v itself). size, if not NULL, receives for
   each column the largest entry of inv(C) v, the solution in scaled
   variables. */
int hone_apply_inverse(const hone_factored *f, bool scaled, bool trans,
                       int64_t k, hone_entry *v, int64_t ldv, const int *shift,
                       double *size);

/* Calls run(ctx, c) for the columns c = 0 .. k-1 of n entries each, by several
   threads of the pool where there is enough to do. */
void hone_for_columns(hone_pool *pool, int64_t n, int64_t k, hone_task run,
                      void *ctx);

/* p_c = op(S) v_c in plain double for k <= HONE_PROBES_MOST columns; work:
   (HONE_PROBES_MOST + 2) n entries. Returns the number of passes over A. */
int hone_multiply(const hone_factored *f, bool trans, int64_t k,
                  const hone_entry *v, hone_entry *p, hone_entry *work);
/* Computes them in double-double, rounded once: v may be nearly a null vector.
   work: 3 n entries. */
int hone_multiply_accurately(const hone_factored *f, bool trans, int k,
                             const hone_entry *v, hone_entry *p,
                             hone_entry *work);

/* The input of hone_certify. */
typedef struct hone_certify_job {
  const hone_factored *f; /* without deflation */
  /* Is made where the factors alone do not contract; NULL: it is not tried. */
  hone_deflation *deflation;
  /* Where the factors alone do not contract, a null vector of S is searched for
     and deflated, so that an x of small residual can be found; NULL: it is not.
     May be the same as 'deflation'. */
  hone_deflation *null;
  /* Pivots of zero were replaced: the factors alone do not contract. */
  bool replaced;
  /* The factors may be of another matrix than S: of an earlier one, or Cholesky
     factors, of one triangle mirrored. */
  bool of_another;
  double norm1;        /* ||A||_1 */
  double norm1_scaled; /* ||S||_1 */
  hone_entry *scratch; /* hone_certify_scratch(n, f->use_copy) entries */
  uint64_t *seed;      /* the draw; advanced */
  /* NULL, or a right-hand side that will be solved for with op(S) next: in
     scaled variables, its largest entry about 1. It may be solved for beside
     the probes. May be in scratch, behind what these use. */
  const hone_entry *beside;
} hone_certify_job;

/* Certifies the factors and estimates the condition of S and of A. out->
   contraction[...].rows are arrays of n that the caller has set. */
int hone_certify(const hone_certify_job *job, hone_certificate *out);

/* Searches for a null vector of S with factors that cannot be certified, since
   a pivot of zero was replaced: sets out->singular and exactly_singular, and
   rcond if S is singular. */
int hone_certify_singular(const hone_certify_job *job, hone_certificate *out);

/* Probes the factors of S^T, which are certified for S: sets
   out->contraction[1]. */
int hone_certify_transpose(const hone_certify_job *job, hone_certificate *out);

int64_t hone_certify_scratch(int64_t n, bool copy);

#endif
