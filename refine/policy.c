/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy: which factorization is tried when, and what follows a failure.
   Read the two tables aloud; the rest of the file looks things up in them. */
#include "refine/policy.h"

enum {
  GPU_FROM_KEPT = 512,  /* docs/performance.md, both measured on an H200 */
  GPU_FROM_ONCE = 2048, /* a solver made for the call takes longer to begin */
  CHOLESKY_FROM = 513   /* OpenBLAS's Cholesky pays beside the small LU of our
                           own, which ends at order 512 */
};

typedef bool situation_is(const hone_situation *s);

static bool always(const hone_situation *s) {
  (void)s;
  return true;
}
static bool structure_unknown(const hone_situation *s) {
  return s->structure == HONE_STRUCTURE_AUTO;
}
static bool gpu(const hone_situation *s) { return s->gpu; }
static bool single(const hone_situation *s) {
  return s->start != HONE_FACTOR_DOUBLE;
}
static bool gpu_single(const hone_situation *s) { return gpu(s) && single(s); }
static bool gpu_single_again(const hone_situation *s) {
  return gpu_single(s) && s->coarse;
}
static bool gpu_definite(const hone_situation *s) {
  return gpu_single(s) && s->structure != HONE_STRUCTURE_GENERAL;
}
static bool gpu_definite_again(const hone_situation *s) {
  return gpu_definite(s) && s->coarse;
}
static bool cpu_definite(const hone_situation *s) {
  return single(s) && (s->structure == HONE_STRUCTURE_SPD ||
                       (structure_unknown(s) && s->n >= CHOLESKY_FROM));
}
static bool cpu_definite_unknown(const hone_situation *s) {
  return single(s) && !gpu(s) && structure_unknown(s) && s->n >= CHOLESKY_FROM;
}

/* The rungs, from the cheapest up. Each is on the ladder where the condition
   holds, and is climbed over where its engine does not apply to the structure
   that was found in A. */
static const struct {
  hone_role role;
  situation_is *tried_when;
  bool accurate; /* not with the coarse products that the caller chose */
} TRIED[] = {
    {HONE_ROLE_DIAGONAL, structure_unknown, false},
    {HONE_ROLE_TRIANGULAR, structure_unknown, false},
    {HONE_ROLE_BANDED, structure_unknown, false},
    {HONE_ROLE_GPU_CHOLESKY, gpu_definite, false},
    {HONE_ROLE_GPU_CHOLESKY, gpu_definite_again, true},
    {HONE_ROLE_CPU_CHOLESKY, cpu_definite, true},
    {HONE_ROLE_CPU_CHOLESKY_DOUBLE, cpu_definite_unknown, true},
    {HONE_ROLE_GPU_LU, gpu_single, false},
    {HONE_ROLE_GPU_LU, gpu_single_again, true},
    {HONE_ROLE_CPU_LU, single, true},
    {HONE_ROLE_GPU_LU_DOUBLE, gpu, true},
    {HONE_ROLE_CPU_LU_DOUBLE, always, true},
};

/* Which of the rungs above may follow one that failed: the first of those that
   are as accurate, more accurate, any, or none. */
typedef enum successor { NONE, ANY, AS_ACCURATE, MORE_ACCURATE } successor;
typedef enum kind { DIRECT, CHOLESKY, LU, KINDS } kind;

/* What follows when a rung of this kind fails this way. (A rung that could not
   be had at all, for want of memory or of the device, is followed by the next
   one of another engine.) */
static const struct {
  successor cholesky, lu;
} FOLLOWS[KINDS][HONE_FAILURES] = {
    /* Zeros of A are exact: nothing in double is better, and a pivot of zero
       proves that A is singular. */
    [DIRECT] = {[HONE_FAILURE_WEAK] = {AS_ACCURATE, AS_ACCURATE},
                [HONE_FAILURE_ROUNDING] = {AS_ACCURATE, AS_ACCURATE},
                [HONE_FAILURE_PIVOT] = {NONE, NONE}},
    /* A pivot that is not positive says that A is not definite, unless rounding
       made it so; LU may do better with the same precision. */
    [CHOLESKY] = {[HONE_FAILURE_WEAK] = {MORE_ACCURATE, AS_ACCURATE},
                  [HONE_FAILURE_ROUNDING] = {MORE_ACCURATE, ANY},
                  [HONE_FAILURE_PIVOT] = {NONE, ANY}},
    /* Only more accurate factors help. */
    [LU] = {[HONE_FAILURE_WEAK] = {MORE_ACCURATE, MORE_ACCURATE},
            [HONE_FAILURE_ROUNDING] = {MORE_ACCURATE, MORE_ACCURATE},
            [HONE_FAILURE_PIVOT] = {MORE_ACCURATE, MORE_ACCURATE}},
};

int64_t hone_policy_gpu_from(bool one_shot) {
  return one_shot ? GPU_FROM_ONCE : GPU_FROM_KEPT;
}

int hone_policy_steps(const hone_situation *situation,
                      const hone_engine *const engine[HONE_ROLES],
                      hone_step steps[HONE_MAX_RUNGS]) {
  int count = 0;
  for (size_t i = 0; i < sizeof TRIED / sizeof *TRIED; i++)
    if (TRIED[i].tried_when(situation))
      steps[count++] = (hone_step){.engine = engine[TRIED[i].role],
                                   .accurate = TRIED[i].accurate};
  return count;
}

bool hone_engine_direct(const hone_engine *engine) {
  return engine->applies != NULL && !engine->symmetric;
}

static kind kind_of(const hone_engine *engine) {
  if (hone_engine_direct(engine))
    return DIRECT;
  return engine->symmetric ? CHOLESKY : LU;
}

bool hone_policy_follows(const hone_engine *failed, int failed_rank,
                         hone_failure failure, const hone_engine *engine,
                         int rank) {
  const kind from = kind_of(failed);
  switch (engine->symmetric ? FOLLOWS[from][failure].cholesky
                            : FOLLOWS[from][failure].lu) {
  case ANY:
    return true;
  case AS_ACCURATE:
    return rank >= failed_rank;
  case MORE_ACCURATE:
    return rank > failed_rank;
  default:
    return false;
  }
}

bool hone_policy_ends(const hone_engine *failed, hone_failure failure) {
  const kind from = kind_of(failed);
  return FOLLOWS[from][failure].cholesky == NONE &&
         FOLLOWS[from][failure].lu == NONE;
}

bool hone_arithmetic_coarse(int arithmetic) {
  return arithmetic == HONE_ARITHMETIC_TF32 ||
         arithmetic == HONE_ARITHMETIC_BF16X3 ||
         arithmetic == HONE_ARITHMETIC_FP16 ||
         arithmetic == HONE_ARITHMETIC_BF16;
}

int hone_rank(const hone_engine *engine, int arithmetic) {
  const bool coarse =
      engine->precision == 32 && hone_arithmetic_coarse(arithmetic);
  return engine->precision - coarse;
}

double hone_policy_roundoff(const hone_engine *engine, int arithmetic) {
  if (engine->precision == 64)
    return HONE_EPS;
  if (engine->resident == NULL) /* not a device with coarser products */
    return 0x1p-24;
  switch (arithmetic) {
  case HONE_ARITHMETIC_TF32:
  case HONE_ARITHMETIC_FP16:
    return 0x1p-11;
  case HONE_ARITHMETIC_BF16:
    return 0x1p-8;
  case HONE_ARITHMETIC_BF16X3:
    return 0x1p-16;
  default:
    return 0x1p-24;
  }
}

enum {
  GMRES_FROM = 64, /* below, a double factorization costs next to nothing */
  STEPS_LEAST = 10,
  STEPS_MOST = 25,
  STEPS_COST = 28, /* so many columns of A are worth a step */
  STEPS_NEEDED = 4 /* with fewer there is no point in beginning */
};

/* One step costs a pass over A in double-double and one application of the
   factors: 1/20 of a double factorization at n = 100, 1/50 from 700 on (two
   cores), and nearly that for each further column. Half of one may be spent
   before it. A device that holds A takes no more than a thousandth for a step.
   Before a more accurate single factorization on the same device, as little as
   pays at any order. */
int64_t hone_policy_gmres_steps(const hone_gmres_situation *s) {
  if (s->same_again)
    return STEPS_LEAST;
  if (s->copy_on_device)
    return STEPS_MOST;
  int64_t steps = HONE_MAX((int64_t)STEPS_LEAST, s->n / STEPS_COST);
  steps =
      HONE_MIN(steps, (int64_t)STEPS_MOST) / HONE_MAX(s->columns, (int64_t)1);
  return s->n >= GMRES_FROM && steps >= STEPS_NEEDED ? steps : 0;
}
