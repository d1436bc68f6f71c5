/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of hone_batch_solve, and its two ways to solve: blocks of small
   systems of one order (batch_blocks.c), and one system by itself
   (batch_alone.c). */
#ifndef HONE_BATCH_CALL_H
#define HONE_BATCH_CALL_H

#include "api/arguments.h"
#include "api/options.h"
#include "api/reason.h"
#include "base/device_memory.h"
#include "cpu_batch/block.h"

#include <pthread.h>

/* Where one system lies. */
typedef struct hone_member {
  int64_t n;
  const hone_entry *a, *b;
  hone_entry *x;
} hone_member;

/* The error that a matrix has, which its systems get from every solve. */
typedef struct hone_batch_fault {
  int32_t status; /* >= 0: none */
  int32_t row, col;
} hone_batch_fault;

/* The part of a batch solver that outlives a call. */
typedef struct hone_batch_kept {
  int64_t blocks;    /* their number; */
  int64_t *from;     /* where they begin in the order; NULL: equal ranges */
  hone_block *block; /* with their factors, */
  char *memory;      /* which are here */
  int64_t count;
  hone_solver **alone;     /* count; NULL where a block has served so far. What
                              they hold counts in the memory of the calls */
  hone_batch_fault *fault; /* count, */
  int64_t faults;          /* of which so many are errors */
} hone_batch_kept;

typedef struct hone_batch_call {
  hone_batch batch;
  hone_options options;
  hone_tuning tuning;
  hone_batch_result *results; /* count; the status of a system that is not
                                 solved yet is HONE_CANCELLED. NULL: nobody has
                                 needed them so far */
  char *results_there; /* the caller's results, if they lie on a device, */
  hone_device_memory results_place; /* which is this one */
  bool host_waits;                  /* the caller has results on the host */
  hone_device_memory columns_place; /* of options.columns */
  bool checked;   /* the arguments of every system are valid */
  bool devices;   /* arrays may lie on a device */
  int64_t *order; /* the systems by their orders; NULL: as they come */
  double limit;   /* the error that is accepted */
  hone_mem mem;
  hone_watch watch;
  hone_pool *pool;
  int threads;
  pthread_t caller;       /* the only thread that may report progress */
  _Atomic int64_t next;   /* what no thread has begun yet */
  _Atomic int64_t ended;  /* systems that are done, for progress */
  _Atomic bool stop;      /* begin nothing more */
  _Atomic int64_t sparse; /* columns accepted by the measure for sparse rows */
  _Atomic int64_t partly; /* columns accepted of systems that are not solved */
  _Atomic double failure; /* the largest bound_failure of systems alone */
  bool lost;              /* to a fork in the progress function: in the child */
  bool begun;        /* every result is that of its system, or HONE_CANCELLED */
  bool there;        /* HONE_DEVICE_CUDA was asked for, and is there */
  int64_t on_device; /* systems that a device has solved, or several, */
  int sharing;       /* of which there were so many */
  int64_t in_blocks; /* and those that a device or a block has */
  hone_batch_result worst_there; /* of the systems that a device has solved */
  hone_batch_kept *kept;         /* NULL: nothing is kept */
  bool factors, solves;          /* the parts of the work that this call does */
} hone_batch_call;

/* The result of a system of which nothing but the status is known. */
hone_batch_result hone_batch_no_result(int status);

/* Makes *worst the worst of the results that were added to it, at first
   hone_batch_best(): the largest errors, the least digits. Systems without an x
   count for nothing. */
hone_batch_result hone_batch_best(void);
void hone_batch_add_result(const hone_batch_result *r,
                           hone_batch_result *worst);

hone_member hone_batch_member(const hone_batch_call *call, int64_t k);

/* The status of the arguments of one system; report may be NULL. */
int hone_batch_check_member(const hone_batch_call *call, const hone_member *m,
                            hone_report *report);

/* Tells whether to begin nothing more; reports progress if the calling thread
   asks. */
bool hone_batch_stopped(hone_batch_call *call);

/* The entry of options.columns for right-hand side c of system k; NULL: there
   is none. */
char *hone_batch_column(const hone_batch_call *call, int64_t k, int64_t c);

/* Does this call ask for nothing that blocks and devices do not have? */
bool hone_batch_may_take(const hone_batch_call *call);
/* Are the matrices to be factored as definite ones? The claim may be wrong: a
   determinant is that of the whole matrix. */
bool hone_batch_is_definite(const hone_batch_call *call);
/* The system at this place of the order in which they are taken. */
int64_t hone_batch_system_at(const hone_batch_call *call, int64_t place);
/* How op(A) of the system lies. */
hone_block_matrix hone_batch_matrix(const hone_batch_call *call,
                                    const hone_member *m);
/* The seed for block number 'block', which has systems of order n. */
uint64_t hone_batch_seed(const hone_batch_call *call, int64_t n, int64_t block);
/* Makes all results those of systems that are not solved yet, or whose matrix
   has had an error when it was factored. */
void hone_batch_begin_results(hone_batch_call *call);
/* In the child, if the progress function has forked while other threads worked,
   whose systems may be half done: makes all results those of systems that are
   not solved, and ends the call. */
void hone_batch_look_for_loss(hone_batch_call *call);
/* Makes room for the results if there is none; they are not begun. Returns
   false if there is no memory. */
bool hone_batch_make_results(hone_batch_call *call);
/* The result of a system whose own numbers are on a device, or nowhere: it
   leaves the worst of all results as it is. */
hone_batch_result hone_batch_told(void);
/* Add to a result all that is known of the system's matrix, and of one of its
   columns, which is accepted. */
void hone_batch_take_lane(const hone_batch_call *call,
                          const hone_block_lane *lane, hone_batch_result *r);
void hone_batch_take_column(const hone_batch_call *call, int64_t k, int64_t c,
                            const hone_block_column *from,
                            hone_batch_result *r);

/* Solves what a CUDA device can, if the call is for it: the results of the
   other systems, begun or not, are those of systems that are not solved yet.
   If all are solved there, and the host needs none of them, there may be no
   results. Returns HONE_OK, or HONE_NO_MEMORY if there is none for them. */
int hone_batch_device(hone_batch_call *call);

/* Solves what blocks can, and no device has. Systems whose arguments are wrong
   get their status, and those that no block solved keep theirs. Returns
   HONE_NO_MEMORY where there is no room for a block: then nothing was done. */
int hone_batch_blocks(hone_batch_call *call);

/* Memory for this call. Where none is left, the solvers of single systems that
   are kept give way: they are made again when they are needed. */
void *hone_batch_memory(hone_batch_call *call, size_t bytes);
/* Destroys these solvers. */
void hone_batch_drop_alone(hone_batch_call *call);

/* Solves the rest, one by one, or several at once on one thread each. */
void hone_batch_rest(hone_batch_call *call);

/* Checks that may fail with HONE_BAD_OVERLAP (batch_overlap.c): x of several
   systems; x and an array that all systems share; and what a call writes beside
   x: *results becomes NULL if they are not to be written. */
int hone_batch_check_solutions(const hone_batch *b, hone_report *report);
int hone_batch_check_shared(const hone_batch_call *call, hone_report *report);
int hone_batch_check_outputs(const hone_batch_call *call,
                             hone_batch_result **results, hone_report *report);
/* Do all x lie apart from all a, and from all b or in their places? */
bool hone_batch_all_apart(const hone_batch *b);

/* The steps of a call (batch.c) ------------------------------------------- */

/* Copies and checks the caller's batch as far as its sizes go. */
int hone_batch_take(const hone_batch *from, hone_batch *to,
                    hone_report *report);
int hone_batch_take_options(hone_batch_call *call, const hone_options *options,
                            hone_report *report);
/* Checks the arrays that this call reads and writes. *results becomes NULL if
   they are not to be written. */
int hone_batch_check(hone_batch_call *call, hone_batch_result **results,
                     hone_report *report);
/* Begins a call whose options are known: its clock and its thread. */
void hone_batch_begin(hone_batch_call *call, hone_float_environment *callers);
/* Does the work, fills the results (NULL: there are none) and the report.
   Returns the status of the call. */
int hone_batch_run(hone_batch_call *call, hone_batch_result *results,
                   hone_report *report);
/* Give all systems this status, and the caller the results that no device has
   given already (batch_give.c). The caller's array lies on the host or on a
   device. The latter returns HONE_OK or HONE_DEVICE_FAILED. refuse_unchecked
   does so for a call that has these options, or NULL, unless the results
   overlap another array. */
void hone_batch_refuse(const hone_batch *b, int st, hone_batch_result *results);
void hone_batch_refuse_unchecked(const hone_batch *b,
                                 const hone_options *options, int st,
                                 hone_batch_result *results);
int hone_batch_give(const hone_batch_call *call, hone_batch_result *results);
/* Where the caller's options.columns lie on a device, open makes an array of
   the host to take their place, give copies it there, and close frees it. */
int hone_batch_open_columns(hone_batch_call *call);
int hone_batch_give_columns(const hone_batch_call *call, hone_column *columns);
void hone_batch_close_columns(hone_batch_call *call, hone_column *columns);
/* Completes the report and gives it to the caller. */
void hone_batch_end(const hone_batch_call *call, int st, double start_s,
                    hone_report *made, hone_report *out);

#endif
