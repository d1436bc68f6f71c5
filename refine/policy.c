/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of the ladder, for single and double precision: which
   factorization is tried in which situation, and what follows a failure. The
   two tables TRIED and FOLLOWS say all of it; the rest of the file looks things
   up in them. Next to read: ladder_policy.c, which asks. */
#include "refine/policy.h"

enum {
  /* Both orders were measured on an H200: docs/performance.md. The first
     solver made for one call takes longer to begin, the later ones do not. */
  GPU_FROM_KEPT = 512,
  GPU_FROM_ONCE = 1024,
  /* Below this order the factors have 64 MB, and a device needs nearly as much
     beside them (cuBLAS, operands, pieces): what is too little for all of them
     is too little for a part. In single calls on an H100 with 16 cores both
     take as long from 4100 to 4500, and the CPU 1.5 times as long at 5500; for
     complex entries 1.4 times at 4500. */
  OUTSIDE_FROM = 4096,
  /* From here on OpenBLAS's Cholesky is faster than the library's own small LU,
     which ends at order 512. */
  CHOLESKY_FROM = 513,
  /* Up to here the library's own factorizations in double are faster than
     single precision with the corrections that it needs. */
  DOUBLE_UP_TO = 256 / HONE_PARTS
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
/* Is double precision the first choice? */
static bool small(const hone_situation *s) {
  return s->start == HONE_FACTOR_AUTO && !s->gpu && s->n <= DOUBLE_UP_TO;
}
static bool single(const hone_situation *s) {
  return s->start != HONE_FACTOR_DOUBLE && !small(s);
}
static bool gpu_single(const hone_situation *s) { return gpu(s) && single(s); }
static bool gpu_single_again(const hone_situation *s) {
  return gpu_single(s) && s->coarse;
}
static bool gpus_single(const hone_situation *s) {
  return gpu_single(s) && s->several;
}
static bool gpus_single_again(const hone_situation *s) {
  return gpus_single(s) && s->coarse;
}
static bool gpu_definite(const hone_situation *s) {
  return gpu_single(s) && s->structure != HONE_STRUCTURE_GENERAL;
}
static bool gpu_definite_again(const hone_situation *s) {
  return gpu_definite(s) && s->coarse;
}
static bool gpus_definite(const hone_situation *s) {
  return gpu_definite(s) && s->several;
}
static bool gpus_definite_again(const hone_situation *s) {
  return gpus_definite(s) && s->coarse;
}
static bool gpu_outside(const hone_situation *s) {
  return gpu_single(s) && s->outside;
}
static bool cpu_definite(const hone_situation *s) {
  return single(s) && (s->structure == HONE_STRUCTURE_SPD ||
                       (structure_unknown(s) && s->n >= CHOLESKY_FROM));
}
/* Where a GPU has no memory for Cholesky's factors, LU by it is faster than
   Cholesky by the CPU. */
static bool cpu_definite_first(const hone_situation *s) {
  return cpu_definite(s) && !gpu_outside(s);
}
static bool cpu_definite_late(const hone_situation *s) {
  return cpu_definite(s) && gpu_outside(s);
}
static bool cpu_definite_double(const hone_situation *s) {
  return (small(s) && s->structure == HONE_STRUCTURE_SPD) ||
         (single(s) && !gpu(s) && structure_unknown(s) &&
          s->n >= CHOLESKY_FROM);
}

/* The rungs, from the cheapest to the most accurate. Each is on the ladder if
   its condition holds, and is passed over if its engine does not apply to the
   structure found in A. */
static const struct {
  hone_role role;
  situation_is *tried_when;
  bool accurate;       /* without the coarse products that the caller chose */
  bool second_opinion; /* see hone_step */
} TRIED[] = {
    {HONE_ROLE_DIAGONAL, structure_unknown, false, false},
    {HONE_ROLE_TRIANGULAR, structure_unknown, false, false},
    {HONE_ROLE_BANDED, structure_unknown, false, false},
    {HONE_ROLE_GPUS_CHOLESKY, gpus_definite, false, false},
    {HONE_ROLE_GPUS_CHOLESKY, gpus_definite_again, true, false},
    {HONE_ROLE_GPU_CHOLESKY, gpu_definite, false, false},
    {HONE_ROLE_GPU_CHOLESKY, gpu_definite_again, true, false},
    {HONE_ROLE_CPU_CHOLESKY, cpu_definite_first, true, false},
    {HONE_ROLE_CPU_CHOLESKY_DOUBLE, cpu_definite_double, true, false},
    {HONE_ROLE_GPUS_LU, gpus_single, false, false},
    {HONE_ROLE_GPUS_LU, gpus_single_again, true, false},
    {HONE_ROLE_GPU_LU, gpu_single, false, false},
    {HONE_ROLE_GPU_LU, gpu_single_again, true, false},
    {HONE_ROLE_GPU_LU_OUTSIDE, gpu_outside, true, false},
    {HONE_ROLE_CPU_CHOLESKY, cpu_definite_late, true, false},
    {HONE_ROLE_CPU_LU, single, true, false},
    {HONE_ROLE_GPU_LU_DOUBLE, gpu, true, false},
    {HONE_ROLE_CPU_LU_DOUBLE, always, true, false},
    /* Where components of x vanish, other factors may find zeros that the first
       ones only come near to. */
    {HONE_ROLE_CPU_LU, small, true, true},
    /* Follows only where the factors of LU in double grew beyond use. */
    {HONE_ROLE_CPU_LU_TRANSPOSED, always, true, false},
};

/* Which of the later rungs may follow one that failed: none, any, one at least
   as accurate, or a more accurate one. The first such rung follows. */
typedef enum successor { NONE, ANY, AS_ACCURATE, MORE_ACCURATE } successor;
typedef enum engine_kind { DIRECT, CHOLESKY, LU, KINDS } engine_kind;

/* The rungs that may follow when a rung of this kind fails in this way. (A rung
   that could not be had at all, for want of memory or of the device, is
   followed by the next one of another engine.) */
static const struct {
  successor cholesky, lu;
} FOLLOWS[KINDS][HONE_FAILURES] = {
    /* A's zeros are exact: no factorization in double is better, and a zero
       pivot proves that A is singular. */
    [DIRECT] = {[HONE_FAILURE_WEAK] = {AS_ACCURATE, AS_ACCURATE},
                [HONE_FAILURE_ROUNDING] = {AS_ACCURATE, AS_ACCURATE},
                [HONE_FAILURE_PIVOT] = {NONE, NONE},
                [HONE_FAILURE_GROWTH] = {AS_ACCURATE, AS_ACCURATE}},
    /* A pivot that is not positive proves that A is not positive definite,
       unless rounding made it so; LU may succeed with the same precision. */
    [CHOLESKY] = {[HONE_FAILURE_WEAK] = {MORE_ACCURATE, AS_ACCURATE},
                  [HONE_FAILURE_ROUNDING] = {MORE_ACCURATE, ANY},
                  [HONE_FAILURE_PIVOT] = {NONE, ANY},
                  [HONE_FAILURE_GROWTH] = {MORE_ACCURATE, AS_ACCURATE}},
    /* Only more accurate factors help or, against growth, other pivots. */
    [LU] = {[HONE_FAILURE_WEAK] = {MORE_ACCURATE, MORE_ACCURATE},
            [HONE_FAILURE_ROUNDING] = {MORE_ACCURATE, MORE_ACCURATE},
            [HONE_FAILURE_PIVOT] = {MORE_ACCURATE, MORE_ACCURATE},
            [HONE_FAILURE_GROWTH] = {MORE_ACCURATE, MORE_ACCURATE}},
};

int64_t hone_policy_gpu_from(bool one_shot) {
  return one_shot ? GPU_FROM_ONCE : GPU_FROM_KEPT;
}

int64_t hone_policy_outside_from(void) { return OUTSIDE_FROM; }

int hone_policy_steps(const hone_situation *situation,
                      const hone_engine *const engine[HONE_ROLES],
                      hone_step steps[HONE_MAX_RUNGS]) {
  int count = 0;
  for (size_t i = 0; i < sizeof TRIED / sizeof *TRIED; i++)
    if (engine[TRIED[i].role] != NULL && TRIED[i].tried_when(situation))
      steps[count++] = (hone_step){.engine = engine[TRIED[i].role],
                                   .accurate = TRIED[i].accurate,
                                   .second_opinion = TRIED[i].second_opinion};
  return count;
}

bool hone_engine_direct(const hone_engine *engine) {
  return engine->applies != NULL && !engine->symmetric;
}

static engine_kind kind_of_engine(const hone_engine *engine) {
  if (hone_engine_direct(engine))
    return DIRECT;
  return engine->symmetric ? CHOLESKY : LU;
}

bool hone_policy_follows(const hone_engine *failed, int failed_rank,
                         hone_failure failure, const hone_engine *engine,
                         int rank) {
  const engine_kind from = kind_of_engine(failed);
  if (engine->other_pivots)
    return from == LU && failure == HONE_FAILURE_GROWTH &&
           !failed->other_pivots && rank >= failed_rank;
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

/* LU with partial pivoting of random matrices grows about n^(2/3)-fold
   (Trefethen & Schreiber 1990), 650-fold at n = 16384. Factors are wrong by up
   to eps growth ||S||: with this growth they may be of no use for a matrix of
   condition 1e12, which is far from singular. */
static const double GROWTH_SPOILS = 1e4;

bool hone_policy_growth_spoils(double growth, bool zero_pivot) {
  return zero_pivot ? growth > GROWTH_SPOILS : !(growth <= GROWTH_SPOILS);
}

bool hone_policy_ends(const hone_engine *failed, hone_failure failure) {
  const engine_kind from = kind_of_engine(failed);
  return FOLLOWS[from][failure].cholesky == NONE &&
         FOLLOWS[from][failure].lu == NONE;
}

bool hone_arithmetic_coarse(int arithmetic) {
  return arithmetic == HONE_ARITHMETIC_TF32 ||
         arithmetic == HONE_ARITHMETIC_BF16X3 ||
         arithmetic == HONE_ARITHMETIC_FP16 ||
         arithmetic == HONE_ARITHMETIC_BF16;
}

int hone_policy_rank(const hone_engine *engine, int arithmetic) {
  const bool coarse =
      engine->precision == 32 && hone_arithmetic_coarse(arithmetic);
  return engine->precision - coarse;
}

/* Unit roundoffs of the arithmetics. */
static const double ROUNDOFF_SINGLE = 0x1p-24, ROUNDOFF_TF32_FP16 = 0x1p-11,
                    ROUNDOFF_BF16 = 0x1p-8, ROUNDOFF_BF16X3 = 0x1p-16;

double hone_policy_roundoff(const hone_engine *engine, int arithmetic) {
  if (engine->precision == 64)
    return HONE_EPS;
  if (engine->resident ==
      NULL) /* the engine is not a device with coarser products */
    return ROUNDOFF_SINGLE;
  switch (arithmetic) {
  case HONE_ARITHMETIC_TF32:
  case HONE_ARITHMETIC_FP16:
    return ROUNDOFF_TF32_FP16;
  case HONE_ARITHMETIC_BF16:
    return ROUNDOFF_BF16;
  case HONE_ARITHMETIC_BF16X3:
    return ROUNDOFF_BF16X3;
  default:
    return ROUNDOFF_SINGLE;
  }
}

enum {
  /* At smaller orders a double factorization costs next to nothing. */
  GMRES_FROM = 64,
  STEPS_LEAST = 10,
  STEPS_MOST = 25,
  /* One step is allowed for so many columns of A. */
  STEPS_COST = 28,
  /* GMRES is not begun when fewer steps are allowed. */
  STEPS_NEEDED = 4
};

/* One step costs a pass over A in double-double and one application of the
   factors: 1/20 of a double factorization at n = 100, 1/50 from n = 700 on (on
   two cores), and nearly as much for each further column. GMRES may spend half
   of a double factorization before it gives up. On a device that holds A, a
   step takes no more than a thousandth of one. Before a more accurate single
   factorization on the same device, as few steps are allowed as pay at any
   order. */
int64_t hone_policy_gmres_steps(const hone_gmres_situation *s) {
  if (s->next_is_same_engine)
    return STEPS_LEAST;
  if (s->copy_on_device)
    return STEPS_MOST;
  int64_t steps = HONE_MAX((int64_t)STEPS_LEAST, s->n / STEPS_COST);
  steps =
      HONE_MIN(steps, (int64_t)STEPS_MOST) / HONE_MAX(s->columns, (int64_t)1);
  return s->n >= GMRES_FROM && steps >= STEPS_NEEDED ? steps : 0;
}

/* Deflation costs about 20 passes over A, a double factorization at order n as
   many as n / 12. Where factors in double do not contract on their own matrix,
   double precision cannot tell it from a singular one. */
bool hone_policy_deflates(int64_t n, int precision, bool stale) {
  return n >= HONE_DEFLATION_FROM && (precision < 64 || stale);
}

/* Up to here factors in double are as cheap: with two columns that differ by
   1e-10 a solve by deflation took 1.05 to 1.3 times as long as one that begins
   in double at n = 200, and 0.7 times at 500; one by both factorizations took
   1.3. */
enum { REPLACED_FROM = 256 };

bool hone_policy_deflates_replaced(int64_t n) { return n >= REPLACED_FROM; }
