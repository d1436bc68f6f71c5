/* SPDX-License-Identifier: BSD-3-Clause */
/* A solver: create, factor, update, solve, destroy. Arguments are checked here,
   once; refine/ladder.c does the work. */
#include "api/solver.h"

#include "api/arguments.h"
#include "api/engines.h"
#include "base/cpus.h"
#include "base/thread.h"
#include "refine/null_vector.h"

#include <stdatomic.h>
#include <string.h>

hone_request hone_request_of(const hone_options *o, bool one_shot) {
  static const double limits[] = {4.0 * HONE_EPS, HONE_EPS, 1e-12};
  return (hone_request){.criterion = o->criterion,
                        .limit = o->tolerance > 0.0 ? o->tolerance
                                                    : limits[o->criterion],
                        .max_iterations = o->max_iterations,
                        .structure = o->structure,
                        .extra = o->extra_precise != 0,
                        .deterministic = o->deterministic != 0,
                        .choices = hone_choices_of(o),
                        .one_shot = one_shot};
}

hone_mem hone_memory_of(const hone_options *o) {
  return (hone_mem){.alloc = o->alloc,
                    .free = o->free,
                    .ctx = o->alloc_ctx,
                    .limit = o->memory_limit_bytes};
}

int hone_solver_threads(const hone_solver *s) {
  if (s->most_threads <= 1)
    return 1;
  const int cpus = hone_cpus();
  return HONE_MIN(s->most_threads, cpus);
}

int hone_solver_open(hone_solver *s, int64_t n, bool one_shot) {
  hone_step steps[HONE_MAX_RUNGS];
  const hone_options *o = &s->options;
  s->most_threads = n < HONE_THREADS_FROM ? 1
                    : o->threads > 0      ? o->threads
                                          : hone_threads_wanted();
  s->threads = hone_solver_threads(s);
  if (hone_check_sizes(n, 0, NULL) != HONE_OK)
    return HONE_BAD_SIZE;
  int count = hone_choose_engines(o, n, one_shot, steps, s->why, sizeof s->why);
  if (count == 0)
    return HONE_NO_DEVICE;
  int general = 0; /* the first engine that is for matrices of any structure */
  while (hone_engine_direct(steps[general].engine))
    general++;
  s->engine_at = steps[general].engine->place;
  hone_request request = hone_request_of(o, one_shot);
  int st = hone_ladder_create(&s->ladder, &hone_dense_operator, n, steps, count,
                              &request, &s->mem, NULL, &s->watch);
  if (st == HONE_OK && n >= HONE_THREADS_FROM) {
    if (one_shot)
      hone_pool_open(&s->pool, &s->mem, s->threads);
    else
      hone_pool_reserve(&s->pool, &s->mem,
                        HONE_MIN(s->most_threads, hone_cpus_at_most()));
    s->ladder.pool = s->pool;
  }
  return st;
}

void hone_solver_close(hone_solver *s) {
  const bool one_shot = s->ladder.request.one_shot;
  hone_ladder_destroy(&s->ladder);
  hone_arrays_destroy(&s->arrays);
  hone_adjoint_destroy(&s->adjoint, &s->mem);
  hone_mem_put(&s->mem, s->whole);
  (one_shot ? hone_pool_close : hone_pool_destroy)(&s->pool, &s->mem);
}

static void swap(int64_t *a, int64_t *b) {
  int64_t t = *a;
  *a = *b;
  *b = t;
}

/* The ladder's matrix is stored by columns, so a row-major one is its
   transpose and rows and columns in the report change places. Unknowns and
   equations change places for a transposed system too. trans: as the caller
   asked for it. */
static void name_places(const hone_solver *s, bool trans, hone_report *report) {
  const bool row_major = s->options.layout == HONE_ROW_MAJOR;
  if (row_major) {
    swap(&report->bad_row, &report->bad_col);
    swap(&report->min_pivot_row, &report->min_pivot_col);
  }
  if (trans == row_major)
    return;
  swap(&report->null_count, &report->dependent_count);
  for (int k = 0; k < HONE_NULL_LISTED; k++) {
    double weight = report->null_weight[k];
    report->null_weight[k] = report->dependent_weight[k];
    report->dependent_weight[k] = weight;
    swap(&report->null_index[k], &report->dependent_index[k]);
  }
}

/* The reason for an error that A itself has; places in the report are the
   caller's already. */
static void explain_matrix(const hone_solver *s, int st, hone_report *report) {
  const long long row = report->bad_row, col = report->bad_col;
  const hone_dense *a = &s->dense;
  if (st == HONE_NOT_FINITE_A && row >= 0) {
    const hone_entry value = s->options.layout == HONE_ROW_MAJOR
                                 ? a->a[col + row * a->lda]
                                 : a->a[row + col * a->lda];
    hone_reason_not_finite(report, "A", row, col, hone_real(value),
                           hone_imag(value));
  } else if (st == HONE_SINGULAR && !s->ladder.inspected) {
    if (row >= 0)
      hone_reason_add(report, "A: row %lld is zero", row);
    if (col >= 0)
      hone_reason_add(report, "A: column %lld is zero", col);
  } else if (st == HONE_SINGULAR && (row >= 0 || col >= 0)) {
    hone_reason_add(report, "A: the pivot of %s %lld is zero",
                    row >= 0 ? "row" : "column", row >= 0 ? row : col);
  }
}

static _Atomic int64_t matrices; /* that the process has given to solvers */

/* Makes A whole where the caller gives one triangle: the copy takes its place.
   Host memory that is to be a copy of an A on a device must be one before. */
static int take_triangle(hone_solver *s, const hone_entry **a, int64_t *lda,
                         hone_host_copy **host_copy, hone_report *report) {
  if (s->options.triangle == 0)
    return HONE_OK;
  int st = hone_host_copy_await(*host_copy, s->pool);
  if (st == HONE_OK) {
    st = hone_whole_take(&s->options, s->pool, &s->mem, s->ladder.n, a, lda,
                         &s->whole);
    if (st != HONE_OK)
      hone_ladder_add_reason(report, "A", "no memory for its other triangle");
  }
  if ((*host_copy)->state != HONE_HOST_COPY_NONE && st == HONE_OK)
    hone_host_copy_close(*host_copy);
  *host_copy = NULL;
  return st;
}

/* Names the entry that the caller gave, not its mirror image. */
static void name_given(const hone_solver *s, hone_report *report) {
  if (hone_whole_ignores(&s->options, report->bad_row, report->bad_col))
    swap(&report->bad_row, &report->bad_col);
}

static void note_lost_matrix(const hone_solver *s, hone_report *report) {
  if (hone_host_copy_failure(&s->arrays.host_copy) != HONE_OK)
    hone_ladder_add_reason(report, "A", "it cannot be copied from the device");
}

int hone_solver_take_matrix(hone_solver *s, const hone_entry *a, int64_t lda,
                            bool update, bool trans, hone_report *report) {
  hone_host_copy *host_copy = &s->arrays.host_copy;
  int st = hone_arrays_take_matrix(&s->arrays, &s->mem, s->ladder.n, &a, &lda);
  if (st != HONE_OK) {
    s->ladder.factored = false;
    hone_ladder_add_reason(report, "A", "no host memory for its copy");
    return st;
  }
  hone_host_copy *read = host_copy;
  st = take_triangle(s, &a, &lda, &read, report);
  if (st != HONE_OK) {
    s->ladder.factored = false;
    note_lost_matrix(s, report);
    return st;
  }
  const bool stored_trans = trans != (s->options.layout == HONE_ROW_MAJOR);
  s->dense = (hone_dense){.n = s->ladder.n,
                          .lda = lda,
                          .a = a,
                          .copy = read,
                          .serial = atomic_fetch_add(&matrices, 1) + 1,
                          .trans_expected = stored_trans};
  const hone_matrix matrix = hone_dense_matrix(&s->dense);
  st = update ? hone_ladder_update(&s->ladder, &matrix, report)
              : hone_ladder_factor(&s->ladder, &matrix, report);
  hone_host_copy_stop(host_copy);
  note_lost_matrix(s, report);
  name_places(s, trans, report);
  if (st == HONE_NOT_FINITE_A)
    name_given(s, report);
  explain_matrix(s, st, report);
  return st;
}

void hone_vectors_of_options(const hone_options *o, hone_vectors *v) {
  v->x0 = (const hone_entry *)o->x0;
  v->ldx0 = o->ldx0;
  v->columns = o->columns;
  v->column_size = o->column_size;
  v->error_bounds = o->error_bounds;
  v->ld_error_bounds = o->ld_error_bounds;
}

int hone_solver_take_vectors(hone_solver *s, hone_vectors *v,
                             hone_report *report) {
  int st = hone_arrays_take_vectors(&s->arrays, &s->mem, v);
  if (st == HONE_NO_MEMORY)
    hone_reason_add(report, "b, x: no host memory for copies of them");
  else if (st != HONE_OK)
    hone_reason_add(report, "b, x: they cannot be copied to the host");
  else
    st = hone_check_finite(v, s->pool, report);
  return st;
}

int hone_solver_run_empty(const hone_vectors *v, hone_report *report) {
  const hone_column column = {.status = HONE_OK, .digits = 16};
  report->accepted = (int32_t)v->nrhs;
  report->backward_error = report->normwise_error = 0.0;
  report->residual_error = report->forward_error = 0.0;
  report->digits = column.digits;
  return hone_arrays_fill_columns(v, &column);
}

/* Solves with A or A^T. */
static int run(hone_solver *s, bool trans, const hone_vectors *v,
               hone_report *report) {
  const bool stored_trans = trans != (s->options.layout == HONE_ROW_MAJOR);
  s->ladder.bars = v->error_bounds;
  s->ladder.ldbars = v->ld_error_bounds;
  const int st =
      hone_ladder_solve(&s->ladder, stored_trans, v->nrhs, v->b, v->ldb, v->x,
                        v->ldx, v->x0, v->ldx0, v->columns, report);
  s->ladder.bars = NULL;
  note_lost_matrix(s, report);
  name_places(s, trans, report);
  explain_matrix(s, st, report);
  return st;
}

int hone_solver_run(hone_solver *s, int trans, const hone_vectors *v,
                    hone_report *report) {
  hone_vectors taken = *v;
  int st = HONE_OK;
  if (trans == HONE_CONJ_TRANS)
    st = hone_adjoint_begin(&s->adjoint, &s->mem, &taken);
  if (st == HONE_OK)
    st = run(s, trans != HONE_NO_TRANS, &taken, report);
  hone_adjoint_end(&s->adjoint, &taken);
  const int returned = hone_arrays_return(&s->arrays, st);
  if (returned != st)
    hone_ladder_add_reason(report, "x", "it cannot be copied to the device");
  return returned;
}

static void destroy(hone_solver *s) {
  hone_solver_close(s);
  hone_mem mem = s->mem;
  hone_mem_put(&mem, s);
}

/* ---- One call at a time -------------------------------------------------- */

/* hone_solver.use: a call that finds the solver free has it alone, and leaves
   the number of its thread there. A solver that is destroyed while a call has
   it is freed by that call. */
enum { FREE = 0, TO_BE_DESTROYED = -1 };

/* Makes a solver that a thread of the parent process was using when it forked
   one that holds no matrix. Whatever that call had begun may be half done: it
   is left where it is, and not freed. */
static int begin_anew(hone_solver *s) {
  const int64_t n = s->ladder.n;
  s->mem = hone_memory_of(&s->options);
  s->watch = (hone_watch){.stopped = false};
  s->arrays = (hone_arrays){.mem = NULL};
  s->adjoint = (hone_adjoint){.made = false};
  s->whole = NULL;
  s->pool = NULL;
  s->ladder.rung_count = 0;
  s->ladder.vectors = NULL;
  s->ladder.workspace = NULL;
  s->ladder.pairs_memory = NULL;
  const int st = hone_solver_open(s, n, false);
  if (st != HONE_OK)
    hone_solver_close(s);
  return st;
}

/* Takes over a solver that is in use by a thread that does not exist here. */
static int take_over(hone_solver *s, int64_t use, hone_report *report) {
  int64_t was = use;
  if (!(use > FREE && hone_thread_is_gone(use)) ||
      !atomic_compare_exchange_strong(&s->use, &was, hone_thread_number())) {
    hone_reason_add(report, "another call uses this solver");
    return HONE_BUSY;
  }
  const int st = begin_anew(s);
  if (st != HONE_OK) /* the next call tries again */
    atomic_store(&s->use, use);
  return st;
}

/* Returns HONE_OK if the solver is the caller's until leave_solver. */
static int enter_solver(hone_solver *s, hone_report *report) {
  int64_t use = FREE;
  if (s == NULL) {
    hone_reason_add(report, "solver is NULL");
    return HONE_NULL_POINTER;
  }
  if (atomic_compare_exchange_strong(&s->use, &use, hone_thread_number()))
    return HONE_OK;
  return take_over(s, use, report);
}

static void leave_solver(hone_solver *s) {
  int64_t use = hone_thread_number();
  if (!atomic_compare_exchange_strong(&s->use, &use, FREE))
    destroy(s);
}

static int create(hone_solver **solver, int64_t n, const hone_options *options,
                  int64_t *peak) {
  hone_options o;
  hone_tuning tuning;
  hone_solver *s = NULL;
  if (solver == NULL)
    return HONE_NULL_POINTER;
  *solver = NULL;
  int st = hone_options_take(options, &o, &tuning, NULL);
  if (st == HONE_OK && hone_options_name_a_solve(&o))
    st = HONE_BAD_OPTION;
  if (st == HONE_OK) {
    hone_mem mem = hone_memory_of(&o);
    s = hone_mem_get(&mem, sizeof *s);
    st = s != NULL ? HONE_OK : HONE_NO_MEMORY;
    if (s != NULL) {
      *s = (hone_solver){.mem = mem, .options = o, .tuning = tuning};
      s->options.tuning = &s->tuning;
      st = hone_solver_open(s, n, false);
    }
  }
  if (st == HONE_OK)
    *solver = s;
  else if (s != NULL) {
    *peak = s->mem.peak;
    destroy(s);
  }
  return st;
}

int hone_solver_make(hone_solver **solver, int64_t n,
                     const hone_options *options, int64_t *peak) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int st = create(solver, n, options, peak);
  hone_guest_leave(&guest);
  return st;
}

int hone_solver_create(hone_solver **solver, int64_t n,
                       const hone_options *options) {
  int64_t peak = 0;
  return hone_solver_make(solver, n, options, &peak);
}

void hone_solver_destroy(hone_solver **solver) {
  hone_guest guest;
  if (solver == NULL || *solver == NULL)
    return;
  hone_guest_enter(&guest);
  if (atomic_exchange(&(*solver)->use, TO_BE_DESTROYED) == FREE)
    destroy(*solver);
  *solver = NULL;
  hone_guest_leave(&guest);
}

static int factor(hone_guest *guest, hone_solver *s, const hone_entry *a,
                  int64_t lda, bool update, hone_report *report) {
  hone_report made;
  const double start_s = hone_now_s();
  if (!hone_report_is_sized(report))
    return HONE_BAD_STRUCT_SIZE;
  hone_report_begin(&made, s ? s->ladder.n : 0, 0);
  int st = enter_solver(s, &made);
  const bool entered = st == HONE_OK;
  if (st == HONE_OK)
    st = hone_check_matrix(s->ladder.n, s->ladder.n, a, lda, "a", &made);
  if (st == HONE_OK && s->ladder.n > 0) {
    hone_call_begin(s, &s->options, guest);
    st = hone_solver_take_matrix(s, a, lda, update, false, &made);
  }
  hone_report_end(entered ? s : NULL, st, start_s, &made, report);
  if (entered)
    leave_solver(s);
  return st;
}

static int factor_call(hone_solver *s, const hone_entry *a, int64_t lda,
                       bool update, hone_report *report) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int st = factor(&guest, s, a, lda, update, report);
  hone_guest_leave(&guest);
  return st;
}

int hone_solver_factor(hone_solver *solver, const hone_entry *a, int64_t lda,
                       hone_report *report) {
  return factor_call(solver, a, lda, false, report);
}

int hone_solver_update(hone_solver *solver, const hone_entry *a, int64_t lda,
                       hone_report *report) {
  return factor_call(solver, a, lda, true, report);
}

/* Whether x, columns or error_bounds overlap A where the caller has it. */
static int check_apart_from_matrix(const hone_solver *s, const hone_vectors *v,
                                   hone_report *report) {
  const hone_host_copy *copy = &s->arrays.host_copy;
  return copy->state == HONE_HOST_COPY_NONE
             ? hone_check_apart(v, s->dense.a, s->dense.lda, report)
             : hone_check_apart(v, copy->original, copy->ld, report);
}

/* Arguments are valid. */
static int solve_call(hone_guest *guest, hone_solver *s, const hone_options *o,
                      hone_vectors *v, hone_report *report) {
  int st = HONE_OK;
  if (!s->ladder.factored) {
    hone_reason_add(report, "hone_solver_factor was not called yet, or the "
                            "last call of it or of hone_solver_update failed");
    st = HONE_NOT_FACTORED;
  } else {
    st = check_apart_from_matrix(s, v, report);
  }
  if (st == HONE_OK) {
    hone_call_begin(s, o, guest);
    st = hone_solver_take_vectors(s, v, report);
  }
  if (st == HONE_OK)
    st = hone_solver_run(s, o->trans, v, report);
  return st;
}

/* *v: the arguments of the call. */
static int solve(hone_guest *guest, hone_solver *s, hone_vectors *v,
                 const hone_options *options, hone_report *report) {
  hone_report made;
  hone_options o;
  hone_tuning tuning;
  const double start_s = hone_now_s();
  if (!hone_report_is_sized(report))
    return HONE_BAD_STRUCT_SIZE;
  hone_report_begin(&made, s ? s->ladder.n : 0, v->nrhs);
  int st = enter_solver(s, &made);
  const bool entered = st == HONE_OK;
  if (st == HONE_OK)
    st = hone_options_take(options, &o, &tuning, &made);
  if (st == HONE_OK)
    st = hone_options_check_agreement(&o, &s->options, &made);
  if (st == HONE_OK) {
    v->n = s->ladder.n;
    hone_vectors_of_options(&o, v);
    st = hone_check_vectors(v, &made);
    if (st == HONE_OK && (v->n == 0 || v->nrhs == 0))
      st = hone_solver_run_empty(v, &made);
    else if (st == HONE_OK)
      st = solve_call(guest, s, &o, v, &made);
  }
  hone_report_end(entered ? s : NULL, st, start_s, &made, report);
  if (entered)
    leave_solver(s);
  return st;
}

int hone_solver_solve(hone_solver *s, int64_t nrhs, const hone_entry *b,
                      int64_t ldb, hone_entry *x, int64_t ldx,
                      const hone_options *options, hone_report *report) {
  hone_guest guest;
  hone_vectors v = {.nrhs = nrhs, .b = b, .ldb = ldb, .x = x, .ldx = ldx};
  hone_guest_enter(&guest);
  const int st = solve(&guest, s, &v, options, report);
  hone_guest_leave(&guest);
  return st;
}
