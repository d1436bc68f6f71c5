/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine that follows a script, and a ladder of such engines. Compiled
   twice, the second time for complex entries. Next to read: ladder_fixture.h,
   which drives the ladder with such engines. */
#ifndef TESTS_SCRIPTED_ENGINE_H
#define TESTS_SCRIPTED_ENGINE_H

#include "base/dense.h"
#include "refine/ladder.h"

#ifdef HONE_COMPLEX
#define sup_scripted sup_z_scripted
#define sup_scripted_widen sup_z_scripted_widen
#define sup_matrix sup_z_matrix
#define sup_ladder_create sup_z_ladder_create
#endif

enum { SUP_SCRIPTS = 3, SUP_STEPS = 16 };

/* The script of an engine. By default the engine solves exactly, up to
   rounding, by an LU of its own. With the contraction rate e it computes v =
   inv(S) (1 + e) v instead, which leaves the residual -e r, so that corrections
   shrink by |e|. Of complex entries, e is the rate times a phase, and the
   poison is the imaginary part of an entry. Solves are counted from 0 since the
   last factorization. Where ladder is set, the solves of the condition estimate
   are exact and not counted. */
typedef struct sup_script {
  /* Tells the solves of refinement from those of the condition estimate; or
     NULL. */
  const hone_ladder *ladder;
  bool absent; /* probe returns false */
  int create_status, factor_status;
  int solve_status, solve_fails_at; /* fails from that solve on; -1: never */
  hone_factor_info info;            /* what factor returns */
  const hone_entry *instead; /* n x n, factored in the place of A; or NULL */
  double rate;               /* the contraction, unless one of these is set: */
  const double *rates;       /* n rates, one for each row of S; or NULL */
  double coarse_rate; /* the rate of factors made with coarse products, instead
                         of all these; 0: not set */
  int steps;          /* how many of the first solves have rates of their own */
  double step_rate[SUP_STEPS];
  int poison_at; /* the solve whose first entry becomes poison; -1: none */
  double poison;
  /* Counts of what happened. */
  int creates, factors, solves, destroys;
  int alive;            /* matrices created and not yet destroyed */
  int alive_most;       /* the largest value of alive */
  int arithmetic;       /* option of the last create */
  int64_t columns;      /* columns of all solves together, */
  int64_t columns_most; /* and of one, at most */
} sup_script;

/* Engine number slot < SUP_SCRIPTS, with a fresh script in *script. Both are
   static and shared, so one test uses them at a time. */
const hone_engine *sup_scripted(int slot, const char *name, int precision,
                                sup_script **script);

/* Makes engine number slot one that gains by wide blocks of columns. */
void sup_scripted_widen(int slot);

/* Describes a dense matrix for the ladder and the engines. The description
   stays valid until 64 others have been asked for. */
const hone_matrix *sup_matrix(int64_t n, int64_t lda, const hone_entry *a);

/* hone_ladder_create for a dense matrix and a list of engines. If the request
   asks for coarse arithmetic, an engine that is listed twice uses it the first
   time, and accurate products the second time. */
int sup_ladder_create(hone_ladder *ladder, int64_t n,
                      const hone_engine *const *listed, int count,
                      const hone_request *request, hone_mem *mem,
                      hone_pool *pool, hone_watch *watch);

#endif
