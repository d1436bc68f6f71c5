/* SPDX-License-Identifier: BSD-3-Clause */
/* Which factorization is tried when, and which follows when it fails: the
   whole policy is the table at the head of policy.c. Nothing here decides
   whether an x is accepted. */
#ifndef HONE_POLICY_H
#define HONE_POLICY_H

#include "base/engine.h"

/* The factorizations that the policy knows, by what they are for. Which engine
   stands behind a role, the caller of the ladder says. */
typedef enum hone_role {
  HONE_ROLE_DIAGONAL,            /* substitution, double, CPU */
  HONE_ROLE_TRIANGULAR,          /* substitution, double, CPU */
  HONE_ROLE_BANDED,              /* band LU, double, CPU */
  HONE_ROLE_GPU_CHOLESKY,        /* single */
  HONE_ROLE_CPU_CHOLESKY,        /* single */
  HONE_ROLE_CPU_CHOLESKY_DOUBLE, /* double */
  HONE_ROLE_GPU_LU,              /* single */
  HONE_ROLE_CPU_LU,              /* single */
  HONE_ROLE_GPU_LU_DOUBLE,
  HONE_ROLE_CPU_LU_DOUBLE,
  HONE_ROLES
} hone_role;

/* A rung of the ladder: the engine that factors, and how it multiplies. */
typedef struct hone_step {
  const hone_engine *engine;
  bool accurate; /* products as accurate as single precision, whatever coarser
                    arithmetic the caller chose for the first try on a GPU */
} hone_step;

enum { HONE_MAX_RUNGS = 14 };

/* What the first column of the table depends on. */
typedef struct hone_situation {
  int64_t n;
  int structure; /* HONE_STRUCTURE_...: what the caller says of A */
  int start;     /* HONE_FACTOR_...: what the caller wants tried first */
  bool gpu;      /* a GPU is to be used */
  bool coarse;   /* ... with products coarser than single precision */
} hone_situation;

/* Orders from which a GPU is sooner through than 16 cores: with a solver made
   for one call, or with one that is kept. */
int64_t hone_policy_gpu_from(bool one_shot);

/* The rungs for this situation, cheapest first, engine[role] being the engine
   of each role. Returns how many. */
int hone_policy_steps(const hone_situation *situation,
                      const hone_engine *const engine[HONE_ROLES],
                      hone_step steps[HONE_MAX_RUNGS]);

/* How a rung failed. */
typedef enum hone_failure {
  HONE_FAILURE_WEAK,     /* its factors exist, and are not accurate enough:
                            hopeless pivots, a certificate that cannot tell A
                            from a singular matrix, refinement too slow */
  HONE_FAILURE_ROUNDING, /* Cholesky met a pivot that is not positive, which
                            rounding alone may have done to it */
  HONE_FAILURE_PIVOT,    /* a pivot was zero, or not positive */
  HONE_FAILURES
} hone_failure;

/* Does a rung with this engine and rank follow, by the table, where one with
   the engine 'failed' and its rank failed that way? Ranks: see hone_rank. */
bool hone_policy_follows(const hone_engine *failed, int failed_rank,
                         hone_failure failure, const hone_engine *engine,
                         int rank);

/* Does the failure end the search, no other factors being any better? */
bool hone_policy_ends(const hone_engine *failed, hone_failure failure);

/* Rungs by accuracy: the precision in bits, less one for coarse products. */
int hone_rank(const hone_engine *engine, int arithmetic);

/* Is this arithmetic of a GPU coarser than single precision? */
bool hone_arithmetic_coarse(int arithmetic);

/* The unit roundoff of factors that the engine makes with this arithmetic. */
double hone_policy_roundoff(const hone_engine *engine, int arithmetic);

/* Is it an engine for matrices of some exact structure that are not symmetric?
   A's zeros being exact, no other engine of its precision does better. */
bool hone_engine_direct(const hone_engine *engine);

/* Steps of GMRES that are worth making with a rung's factors before the next
   factorization is cheaper; 0: none. */
typedef struct hone_gmres_situation {
  int64_t n;
  int64_t columns;     /* right-hand sides that wait for it */
  bool same_again;     /* the next rung is the same engine, more accurate */
  bool copy_on_device; /* residuals are taken where a copy of A is */
} hone_gmres_situation;
int64_t hone_policy_gmres_steps(const hone_gmres_situation *situation);

#endif
