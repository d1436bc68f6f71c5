/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by test_lu.c and test_lu_breakdown.c: an engine with all that it
   needs, and matrices whose factors are known to the last bit. */
#ifndef TESTS_LU_ENGINE_H
#define TESTS_LU_ENGINE_H

#include "base/engine.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <stdlib.h>
#include <string.h>

/* Skips where the engine cannot be used, unless a GPU is required. */
#define NEED(engine)                                                           \
  do {                                                                         \
    char why_[160] = "";                                                       \
    const char *required_ = getenv("HONE_REQUIRE_GPU");                        \
    if (!(engine)->probe(why_, sizeof why_)) {                                 \
      ct_note("%s", why_);                                                     \
      REQUIRE(required_ == NULL || strcmp(required_, "1") != 0);               \
      SKIP(why_);                                                              \
    }                                                                          \
  } while (0)

typedef struct lu {
  const hone_engine *engine;
  void *self;
  hone_mem mem;
  hone_pool *pool;
  hone_watch watch;
  hone_engine_config config;
  hone_scaling scaling;
  hone_factor_info info;
} lu;

void lu_open(lu *f, const hone_engine *engine, int64_t n, int64_t block,
             int threads);
void lu_close(lu *f);
int lu_factor(lu *f, const double *a, int64_t lda);

/* Row i and column i are multiplied by these powers of two. */
void lu_set_scale(lu *f, int64_t i, int row_exp, int col_exp);

/* A check of one engine, given as arg; lu_register registers it as a test of
   the host's engine and of CUDA's. */
typedef struct lu_check {
  const char *name;
  void (*run)(const void *engine);
} lu_check;
void lu_register(const lu_check *checks, size_t count);

/* Orders and block sizes --------------------------------------------------- */

enum { MOST = HONE_SOLVE_COLUMNS, ORDERS = 14, BLOCKS = 6 };
extern const int64_t lu_orders[ORDERS];

/* Block size number at, the last of which is n; 0 leaves it to the engine. */
int64_t lu_block(int at, int64_t n);

/* Is the whole matrix one panel, or may it be? */
bool lu_one_panel(int64_t block, int64_t n);

/* Are the pivots known if rows are exchanged? Not in one panel, of which an
   engine may factor the transpose; and a tournament finds the rows of partial
   pivoting for certain only within the 64 rows of one tile, or one column at a
   time. */
bool lu_can_exchange(const hone_engine *engine, int64_t block, int64_t n);

/* Are these more block columns than an emulated device factors in two
   seconds? */
bool lu_too_slow(const hone_engine *engine, int64_t block, int64_t n);

/* An emulated device takes every k-th case only: is this one left out? Lists
   are such that every value of each parameter has its turn. */
bool lu_not_its_turn(const hone_engine *engine, int at, int k);

int lu_pick(sup_rng *rng, int count); /* in [0, count) */

/* Exact matrices ----------------------------------------------------------- */

typedef struct exact {
  int64_t n;
  double *s;     /* n x n: P L U */
  double *pivot; /* n: u_cc */
  double growth;
} exact;

/* L = I + N, U = D (I + M): N has entries +-1/2 in odd rows and even columns, M
   in even rows and odd columns, so that N N = M M = 0, inv(L) = I - N and
   inv(U) = (I - M) inv(D). The pivot of each column is twice as large as the
   entries below it; that of column zero is 0, unless zero is -1.

   The transpose has the same form and, unless rows are exchanged, the same
   pivots: an engine may factor the transpose of a matrix of one panel. So
   exchange rows only where block < n. */
exact exact_make(sup_rng *rng, int64_t n, int64_t zero, bool exchange);
void exact_lu_free(exact *e);

/* v = op(S) x divided by unit, a power of two, so that |v| <= 1. */
void exact_multiply(const exact *e, bool trans, int64_t k, const double *x,
                    double *v, double *unit);

/* Checks the factors of e. Where the pivots need not be those of partial
   pivoting, it is enough that the factorization succeeded. */
void exact_check_factors(lu *f, const exact *e);

/* Solves for the first k columns of v, with a leading dimension of its own, and
   checks the solution. */
void exact_check_solve(lu *f, bool trans, int64_t k, const double *x,
                       const double *v, double unit);

#endif
