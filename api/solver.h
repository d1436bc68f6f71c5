/* SPDX-License-Identifier: BSD-3-Clause */
/* A solver, and the steps that the one-shot call shares with it. */
#ifndef HONE_SOLVER_H
#define HONE_SOLVER_H

#include "api/adjoint.h"
#include "api/caller_arrays.h"
#include "api/guest.h"
#include "api/options.h"
#include "api/reason.h"
#include "api/whole.h"
#include "base/dense.h"
#include "refine/ladder.h"

/* For complex entries this is hone_z_solver. */
struct hone_solver {
  _Atomic int64_t use; /* who may touch the rest: solver.c */
  hone_mem mem;
  hone_watch watch;
  hone_pool *pool;
  hone_dense dense;     /* A, which the ladder reads through its operator */
  hone_arrays arrays;   /* copies of what lies on a device */
  hone_adjoint adjoint; /* copies for A^H x = b */
  hone_entry *whole; /* n x n: A, if the caller gives one triangle; or NULL */
  hone_options options; /* complete; its tuning is: */
  hone_tuning tuning;
  int most_threads;      /* that the caller allows */
  int threads;           /* during a call */
  const char *engine_at; /* where the first engine runs; NULL: it cannot, */
  char why[128];         /* for this reason */
  hone_ladder ladder;    /* its rungs, the last member, are large */
};

/* Makes the engines for order n in a solver that has its options and is zero
   otherwise. hone_solver_close frees them, also after an error. */
int hone_solver_open(hone_solver *s, int64_t n, bool one_shot);
void hone_solver_close(hone_solver *s);

/* hone_solver_create; *peak: the most bytes that a solver has held of which
   nothing is left after an error. */
int hone_solver_make(hone_solver **solver, int64_t n,
                     const hone_options *options, int64_t *peak);

/* The threads of a call that begins now: never more than there are CPUs. */
int hone_solver_threads(const hone_solver *s);

/* The source of the solver's memory. */
hone_mem hone_memory_of(const hone_options *o);

/* The request that the options make of the ladder. */
hone_request hone_request_of(const hone_options *o, bool one_shot);

/* A into the solver, factored; trans: of the solve that follows, for the
   numbering of the report. */
int hone_solver_take_matrix(hone_solver *s, const hone_entry *a, int64_t lda,
                            bool update, bool trans, hone_report *report);

/* The arrays of a solve that its options name. */
void hone_vectors_of_options(const hone_options *o, hone_vectors *v);

/* Vectors on a device become copies on the host; b and x0 are checked. */
int hone_solver_take_vectors(hone_solver *s, hone_vectors *v,
                             hone_report *report);

/* Solves a system with n = 0 or nrhs = 0: nothing but the report and the
   columns is written. */
int hone_solver_run_empty(const hone_vectors *v, hone_report *report);

/* Solves with vectors that hone_solver_take_vectors has seen, and returns x,
   the columns and the error bounds to where they lie. trans: HONE_NO_TRANS,
   HONE_TRANS or HONE_CONJ_TRANS. */
int hone_solver_run(hone_solver *s, int trans, const hone_vectors *v,
                    hone_report *report);

/* One call (solve.c, solve_small.c) ------------------------------------ */

/* Solves as hone_solve does, by a solver: the system is one that the kernels of
   batches have left. */
int hone_solve_alone(int64_t n, int64_t nrhs, const hone_entry *a, int64_t lda,
                     const hone_entry *b, int64_t ldb, hone_entry *x,
                     int64_t ldx, const hone_options *options,
                     hone_report *report);

/* Solves a small system by those kernels, if they have all that the options ask
   for, and serve. Arguments are valid. described: the report says what A is.
   Returns false if nothing was solved; then nothing of meaning was written. */
bool hone_solve_small(const hone_options *o, const hone_vectors *v,
                      const hone_entry *a, int64_t lda, bool described,
                      hone_report *report);

/* Reports and calls (call.c) ------------------------------------------ */

/* A report of nothing so far. */
void hone_report_begin(hone_report *report, int64_t n, int64_t nrhs);

/* Sets the clock and the callback of the solver's watch, and the threads of its
   pool, for a call. o: the options of this call: its deadline and progress
   function, else the solver's. */
void hone_call_begin(hone_solver *s, const hone_options *o, hone_guest *guest);

/* Completes the report of a call, logs it and gives it to the caller (out may
   be NULL). s may be NULL. Returns status. */
int hone_report_end(const hone_solver *s, int status, double start_s,
                    hone_report *made, hone_report *out);

#endif
