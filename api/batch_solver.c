/* SPDX-License-Identifier: BSD-3-Clause */
/* A batch with its factors: create, factor, solve, destroy. */
#include "api/batch.h"

#include "api/guest.h"
#include "api/solver.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

/* For complex entries this is hone_z_batch_solver. */
struct hone_batch_solver {
  _Atomic int64_t use; /* the number of the thread whose call has it; 0: none */
  hone_options options; /* of all calls */
  bool factored;
  int failed; /* there was no memory to keep any matrix: what solves return */
  hone_batch_call call; /* its batch has the matrices */
  hone_batch_kept kept;
  int64_t *orders; /* copies of the caller's lists, or NULL */
  const hone_entry **a_list;
};

/* Either factors or solves, within the frame of call_with. */
typedef int stage(hone_batch_solver *s, hone_guest *guest,
                  const hone_batch *batch, const hone_options *options,
                  hone_batch_result *results, hone_report *made);

static void hold_nothing(hone_batch_solver *s) {
  memset(&s->kept, 0, sizeof s->kept);
  s->call.order = NULL;
  s->orders = NULL;
  s->a_list = NULL;
  s->factored = false;
  s->failed = HONE_OK;
}

static void forget(hone_batch_solver *s) {
  hone_mem *mem = &s->call.mem;
  hone_batch_drop_alone(&s->call);
  hone_mem_put(mem, s->kept.fault);
  hone_mem_put(mem, s->kept.alone);
  hone_mem_put(mem, s->kept.memory);
  hone_mem_put(mem, s->kept.block);
  hone_mem_put(mem, s->kept.from);
  hone_mem_put(mem, s->call.order);
  hone_mem_put(mem, s->orders);
  hone_mem_put(mem, s->a_list);
  hold_nothing(s);
}

/* Makes a solver that a thread of the parent process was using when it forked
   one that holds no matrix. What that call had begun may be half done: it is
   left where it is, and not freed. */
static void begin_anew(hone_batch_solver *s) {
  hold_nothing(s);
  s->call.options = s->options;
  s->call.mem = hone_memory_of(&s->options);
}

static bool take_hold(hone_batch_solver *s) {
  const int64_t mine = hone_thread_number();
  int64_t use = 0;
  if (atomic_compare_exchange_strong(&s->use, &use, mine))
    return true;
  if (!hone_thread_is_gone(use) ||
      !atomic_compare_exchange_strong(&s->use, &use, mine))
    return false;
  begin_anew(s);
  return true;
}

static void let_go(hone_batch_solver *s) { atomic_store(&s->use, 0); }

static int create(hone_batch_solver **solver, const hone_options *options) {
  hone_batch_call call;
  memset(&call, 0, sizeof call);
  int st = hone_batch_take_options(&call, options, NULL);
  /* Columns belong to one solve, and no factors are kept on a device. */
  if (st == HONE_OK &&
      (call.options.columns != NULL || call.options.device == HONE_DEVICE_CUDA))
    st = HONE_BAD_OPTION;
  if (st != HONE_OK)
    return st;
  hone_batch_solver *s = hone_mem_get(&call.mem, sizeof *s);
  if (s == NULL)
    return HONE_NO_MEMORY;
  memset(s, 0, sizeof *s);
  s->call = call;
  s->call.options.tuning = &s->call.tuning;
  s->options = s->call.options;
  s->call.kept = &s->kept;
  *solver = s;
  return HONE_OK;
}

int hone_batch_solver_create(hone_batch_solver **solver,
                             const hone_options *options) {
  hone_guest guest;
  if (solver == NULL)
    return HONE_NULL_POINTER;
  *solver = NULL;
  hone_guest_enter(&guest);
  const int st = create(solver, options);
  hone_guest_leave(&guest);
  return st;
}

/* Copies a list of the caller: '*to' is NULL where there is none, or no memory.
   Returns false in the latter case. */
static bool copy_list(hone_mem *mem, const void *from, size_t bytes,
                      void **to) {
  *to = from != NULL ? hone_mem_get(mem, bytes) : NULL;
  if (*to != NULL)
    memcpy(*to, from, bytes);
  return *to != NULL || from == NULL;
}

/* Copies the lists of orders and of matrices, which the caller need not keep,
   and makes those of solvers and of errors: until a matrix is factored there
   was no memory for it. */
static int begin_kept(hone_batch_solver *s) {
  hone_mem *mem = &s->call.mem;
  hone_batch *b = &s->call.batch;
  const size_t count = (size_t)b->count;
  void *orders, *a_list;
  const bool copied =
      copy_list(mem, b->orders, count * sizeof *b->orders, &orders);
  const bool listed =
      copy_list(mem, b->a_list, count * sizeof *b->a_list, &a_list);
  s->kept.alone = hone_mem_get(mem, count * sizeof *s->kept.alone);
  s->kept.fault = hone_mem_get(mem, count * sizeof *s->kept.fault);
  b->orders = s->orders = orders;
  s->a_list = a_list;
  b->a_list = s->a_list;
  if (s->kept.alone == NULL || s->kept.fault == NULL || !copied || !listed) {
    s->failed = HONE_NO_MEMORY;
    return HONE_NO_MEMORY;
  }
  memset(s->kept.alone, 0, count * sizeof *s->kept.alone);
  for (int64_t k = 0; k < b->count; k++)
    s->kept.fault[k] = (hone_batch_fault){HONE_NO_MEMORY, -1, -1};
  s->kept.faults = s->kept.count = b->count;
  return HONE_OK;
}

/* Takes the matrices of the batch; a batch that is refused changes nothing. As
   by hone_batch_check, *results may become NULL. */
static int take_matrices(hone_batch_solver *s, const hone_batch *batch,
                         hone_batch_result **results, hone_report *made) {
  hone_batch_call *call = &s->call;
  const hone_batch before = call->batch;
  call->batch = *batch;
  call->batch.nrhs = 0;
  call->batch.b = NULL;
  call->batch.x = NULL;
  call->batch.b_list = NULL;
  call->batch.x_list = NULL;
  call->factors = true;
  call->solves = call->checked = false;
  const int st = hone_batch_check(call, results, made);
  if (st != HONE_OK) {
    call->batch = before;
    return st;
  }
  forget(s);
  return begin_kept(s);
}

/* The options are those of the solver. */
static int factor(hone_batch_solver *s, hone_guest *guest,
                  const hone_batch *batch, const hone_options *options,
                  hone_batch_result *results, hone_report *made) {
  hone_batch taken = {.struct_size = 0};
  (void)options;
  int st = hone_batch_take(batch, &taken, made);
  const bool counted = st == HONE_OK || st == HONE_BAD_OPTION;
  if (st == HONE_OK)
    st = take_matrices(s, &taken, &results, made);
  if (st != HONE_OK && counted)
    hone_batch_refuse_unchecked(&taken, NULL, st, results);
  if (st != HONE_OK)
    return st;
  hone_batch_begin(&s->call, &guest->callers);
  s->factored = true;
  st = hone_batch_run(&s->call, results, made);
  if (s->call.lost)
    forget(s);
  return st;
}

/* The orders are those of the matrices that were factored. */
static int check_agreement(const hone_batch_solver *s, const hone_batch *given,
                           hone_report *report) {
  const hone_batch *b = &s->call.batch;
  bool agree = given->count == b->count;
  if (agree && b->orders == NULL)
    agree = given->orders == NULL && given->n == b->n;
  else if (agree)
    agree = given->orders != NULL &&
            memcmp(given->orders, b->orders,
                   (size_t)b->count * sizeof *b->orders) == 0;
  if (!agree)
    hone_reason_add(report, "batch: count and orders are not those of the "
                            "batch that was factored");
  return agree ? HONE_OK : HONE_BAD_SIZE;
}

/* Takes b and x of this solve; the matrices stay those that were factored. */
static void take_vectors(hone_batch_call *call, const hone_batch *from) {
  hone_batch *to = &call->batch;
  to->result_size = from->result_size;
  to->nrhs = from->nrhs;
  to->b = from->b;
  to->ldb = from->ldb;
  to->stride_b = from->stride_b;
  to->b_list = from->b_list;
  to->x = from->x;
  to->ldx = from->ldx;
  to->stride_x = from->stride_x;
  to->x_list = from->x_list;
  call->factors = false;
  call->solves = true;
  call->checked = false;
}

/* The columns, the deadline and the progress function of this solve. */
static int take_solve_options(hone_batch_call *call,
                              const hone_options *options,
                              hone_report *report) {
  hone_options o;
  hone_tuning tuning;
  int st = hone_options_take(options, &o, &tuning, report);
  if (st == HONE_OK && (o.x0 != NULL || o.error_bounds != NULL)) {
    hone_reason_add(report, "options: a batch takes neither x0 nor "
                            "error_bounds");
    st = HONE_BAD_OPTION;
  }
  if (st == HONE_OK && o.trans != HONE_NO_TRANS &&
      o.trans != call->options.trans) {
    hone_reason_add(report, "options.trans of a batch belongs to its solver");
    st = HONE_BAD_OPTION;
  }
  if (st == HONE_OK)
    st = hone_options_check_agreement(&o, &call->options, report);
  if (st != HONE_OK)
    return st;
  call->options.columns = o.columns;
  call->options.column_size = o.column_size;
  if (o.deadline_s > 0.0)
    call->options.deadline_s = o.deadline_s;
  if (o.progress != NULL) {
    call->options.progress = o.progress;
    call->options.progress_user = o.progress_user;
  }
  return HONE_OK;
}

/* The results may not overwrite the matrices that were factored either. */
static void refuse_solve(const hone_batch_solver *s, hone_batch taken,
                         const hone_options *options, int st,
                         hone_batch_result *results) {
  hone_options given;
  hone_tuning tuning;
  const bool known =
      hone_options_take(options, &given, &tuning, NULL) == HONE_OK;
  if (s->factored) {
    const hone_batch *b = &s->call.batch;
    taken.a = b->a;
    taken.a_list = b->a_list;
    taken.lda = b->lda;
    taken.stride_a = b->stride_a;
  }
  hone_batch_refuse_unchecked(&taken, known ? &given : NULL, st, results);
}

static int solve(hone_batch_solver *s, hone_guest *guest,
                 const hone_batch *batch, const hone_options *options,
                 hone_batch_result *results, hone_report *made) {
  hone_batch_call *call = &s->call;
  hone_batch taken = {.struct_size = 0};
  int st = hone_batch_take(batch, &taken, made);
  bool counted = st == HONE_OK || st == HONE_BAD_OPTION;
  if (st == HONE_OK && !s->factored)
    st = s->failed != HONE_OK ? s->failed : HONE_NOT_FACTORED;
  if (st == HONE_OK)
    st = check_agreement(s, &taken, made);
  if (s->factored && taken.count != call->batch.count)
    counted = false; /* a wrong count says nothing of the results */
  if (st == HONE_OK)
    st = take_solve_options(call, options, made);
  if (st == HONE_OK) {
    take_vectors(call, &taken);
    call->batch.orders = taken.orders; /* may not be written either */
    st = hone_batch_check(call, &results, made);
    call->batch.orders = s->orders;
  }
  if (st == HONE_OK) {
    hone_batch_begin(call, &guest->callers);
    st = hone_batch_run(call, results, made);
    if (call->lost) /* solvers of single systems are half done, too */
      forget(s);
  } else if (counted) {
    refuse_solve(s, taken, options, st, results);
  }
  call->options = s->options;
  return st;
}

/* Does the work of one call, unless another one has the solver. */
static int call_with(hone_batch_solver *solver, stage *work,
                     const hone_batch *batch, const hone_options *options,
                     hone_batch_result *results, hone_report *report) {
  hone_guest guest;
  hone_report made;
  int st;
  if (!hone_report_is_sized(report))
    return HONE_BAD_STRUCT_SIZE;
  hone_guest_enter(&guest);
  const double start_s = hone_now_s();
  hone_report_begin(&made, 0, 0);
  if (solver == NULL || !take_hold(solver)) {
    st = solver == NULL ? HONE_NULL_POINTER : HONE_BUSY;
    hone_reason_add(&made, solver == NULL ? "solver is NULL"
                                          : "another call uses this solver");
    (void)hone_report_end(NULL, st, start_s, &made, report);
  } else {
    st = work(solver, &guest, batch, options, results, &made);
    hone_batch_end(&solver->call, st, start_s, &made, report);
    let_go(solver);
  }
  hone_guest_leave(&guest);
  return st;
}

int hone_batch_solver_factor(hone_batch_solver *solver, const hone_batch *batch,
                             hone_batch_result *results, hone_report *report) {
  return call_with(solver, factor, batch, NULL, results, report);
}

int hone_batch_solver_solve(hone_batch_solver *solver, const hone_batch *batch,
                            const hone_options *options,
                            hone_batch_result *results, hone_report *report) {
  return call_with(solver, solve, batch, options, results, report);
}

void hone_batch_solver_destroy(hone_batch_solver **solver) {
  if (solver == NULL || *solver == NULL)
    return;
  hone_batch_solver *s = *solver;
  hone_guest guest;
  hone_guest_enter(&guest);
  const int64_t use = s->use;
  if (use != 0 && hone_thread_is_gone(use))
    begin_anew(s);
  forget(s);
  hone_mem mem = s->call.mem;
  hone_mem_put(&mem, s);
  *solver = NULL;
  hone_guest_leave(&guest);
}
