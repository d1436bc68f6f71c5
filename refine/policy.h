/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy: which factorization is tried in which situation, and which
   follows when it fails. All of it is in the two tables at the head of
   policy.c. It concerns double and single precision, CPU and GPU. Nothing here
   decides whether an x is accepted. Next to read: policy.c. */
#ifndef HONE_POLICY_H
#define HONE_POLICY_H

#include "base/engine.h"

/* The factorizations that the policy knows, named by their purpose. The caller
   of the ladder says which engine fills which role. */
typedef enum hone_role {
  HONE_ROLE_DIAGONAL,            /* substitution, double, CPU */
  HONE_ROLE_TRIANGULAR,          /* substitution, double, CPU */
  HONE_ROLE_BANDED,              /* band LU, double, CPU */
  HONE_ROLE_GPUS_CHOLESKY,       /* single, on several GPUs */
  HONE_ROLE_GPU_CHOLESKY,        /* single */
  HONE_ROLE_CPU_CHOLESKY,        /* single */
  HONE_ROLE_CPU_CHOLESKY_DOUBLE, /* double */
  HONE_ROLE_GPUS_LU,             /* single, on several GPUs */
  HONE_ROLE_GPU_LU,              /* single */
  HONE_ROLE_GPU_LU_OUTSIDE,      /* single, by a GPU, factors with the host */
  HONE_ROLE_CPU_LU,              /* single */
  HONE_ROLE_GPU_LU_DOUBLE,
  HONE_ROLE_CPU_LU_DOUBLE,
  HONE_ROLE_CPU_LU_TRANSPOSED, /* double, of the transpose */
  HONE_ROLES
} hone_role;

/* A rung of the ladder: the engine that factors, and how it multiplies. */
typedef struct hone_step {
  const hone_engine *engine;
  /* Products are as accurate as single precision, whatever coarser arithmetic
     the caller chose for the first try on a GPU. */
  bool accurate;
  /* It is tried only for columns that the rungs before it did not get accepted,
     although their factors serve. */
  bool second_opinion;
} hone_step;

enum { HONE_MAX_RUNGS = 18 };

/* The situation that the conditions in the table TRIED depend on. */
typedef struct hone_situation {
  int64_t n;
  int structure; /* HONE_STRUCTURE_...: what the caller says of A */
  int start;     /* HONE_FACTOR_...: what the caller wants tried first */
  bool gpu;      /* a GPU is to be used, */
  bool several;  /* or several together, where an engine can */
  bool outside;  /* where its memory is too small it factors by block columns */
  bool coarse;   /* with products coarser than single precision */
} hone_situation;

/* The order from which a GPU is faster than 16 CPU cores, for a solver made for
   one call (one_shot) or for one that is kept. */
int64_t hone_policy_gpu_from(bool one_shot);

/* The order from which a GPU whose memory the factors do not fit factors by
   block columns that come and go. */
int64_t hone_policy_outside_from(void);

/* Lists the rungs for this situation, from the cheapest to the most accurate;
   engine[role] is the engine of each role. Returns how many there are. */
int hone_policy_steps(const hone_situation *situation,
                      const hone_engine *const engine[HONE_ROLES],
                      hone_step steps[HONE_MAX_RUNGS]);

/* The ways in which a rung fails. */
typedef enum hone_failure {
  /* The factors exist but are not accurate enough: hopeless pivots, a
     certificate that cannot distinguish A from a singular matrix, or refinement
     that is too slow. */
  HONE_FAILURE_WEAK,
  /* Cholesky met a pivot that is not positive, possibly because of rounding
     alone. */
  HONE_FAILURE_ROUNDING,
  /* A pivot is zero or, in Cholesky, not positive. */
  HONE_FAILURE_PIVOT,
  /* The entries of factors in double grew so much that their rounding errors
     may have spoilt them; a pivot of zero then says nothing of A. */
  HONE_FAILURE_GROWTH,
  HONE_FAILURES
} hone_failure;

/* Does the table FOLLOWS let a rung with this engine and rank follow one with
   the engine 'failed' and rank failed_rank, after this failure? For ranks see
   hone_policy_rank. */
bool hone_policy_follows(const hone_engine *failed, int failed_rank,
                         hone_failure failure, const hone_engine *engine,
                         int rank);

/* Is this growth of factors in double so large that LU with other pivots may do
   better where they do not serve? zero_pivot: one of their pivots is zero. */
bool hone_policy_growth_spoils(double growth, bool zero_pivot);

/* Does this failure end the search, because no other factors are better? */
bool hone_policy_ends(const hone_engine *failed, hone_failure failure);

/* The accuracy of a rung: the engine's precision in bits, less one if its
   products are coarse. */
int hone_policy_rank(const hone_engine *engine, int arithmetic);

/* Is this arithmetic of a GPU coarser than single precision? */
bool hone_arithmetic_coarse(int arithmetic);

/* The unit roundoff of the factors that the engine makes with this
   arithmetic. */
double hone_policy_roundoff(const hone_engine *engine, int arithmetic);

/* Is the engine a direct one, for an exact structure of A that is not symmetry?
   As A's zeros are exact, no other engine of its precision does better. */
bool hone_engine_direct(const hone_engine *engine);

/* The number of GMRES steps that are worth making with a rung's factors before
   the next factorization is cheaper; 0: none. */
typedef struct hone_gmres_situation {
  int64_t n;
  int64_t columns; /* right-hand sides that wait for these steps */
  /* The next rung is the same engine, more accurate. */
  bool next_is_same_engine;
  bool copy_on_device; /* residuals are computed on the device's copy of A */
} hone_gmres_situation;
int64_t hone_policy_gmres_steps(const hone_gmres_situation *situation);

/* Is it worth looking for directions to deflate, where the factors of a matrix
   of order n do not contract? stale: they are those of an earlier matrix. */
enum { HONE_DEFLATION_FROM = 64 };
bool hone_policy_deflates(int64_t n, int precision, bool stale);

/* Is it, where a pivot of zero was replaced and S is not singular? */
bool hone_policy_deflates_replaced(int64_t n);

#endif
