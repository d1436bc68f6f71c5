/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_solve, which makes a solver for one call, and the memory that it
   takes, on the host and on a device. */
#include "api/arguments.h"
#include "api/engines.h"
#include "api/solver.h"

#include <stddef.h>
#include <string.h>

enum {
  ARENA_UP_TO = 256,
  ARENA_COLUMNS = 4,
  ARENA_MORE = 1 << 14 /* bytes, for headers and small arrays */
};

/* A small system finds room in one piece of memory: the ladder, factors in
   double and, for a second opinion, in single precision. */
static void open_arena(hone_solver *s, const hone_vectors *v) {
  const int64_t n = v->n, order = n + 16;
  /* An engine of a GPU may be kept beyond the call, which memory of the arena
     is not. */
  if (s->options.device != HONE_DEVICE_CUDA && n <= ARENA_UP_TO &&
      v->nrhs <= ARENA_COLUMNS)
    hone_mem_open_arena(&s->mem,
                        hone_ladder_bytes(&hone_dense_operator, n, v->nrhs,
                                          s->options.extra_precise != 0) +
                            order * order * 12 * HONE_PARTS + ARENA_MORE);
}

/* Lets the certificate of the factors know a single right-hand side. With
   'deterministic' x has the bits that a kept solver gives, which solves after
   it. */
static void announce(hone_solver *s, const hone_vectors *v) {
  const int trans = s->options.trans;
  if (v->nrhs != 1 || v->x0 != NULL || trans == HONE_CONJ_TRANS ||
      s->options.deterministic)
    return;
  s->ladder.to_come = v->b;
  s->ladder.to_come_trans =
      (trans != HONE_NO_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
}

/* Arguments are valid. *s has its options and is zero otherwise. *opened: did
   it come as far as that? */
static int solve_once(hone_guest *guest, hone_solver *s, const hone_entry *a,
                      int64_t lda, hone_vectors *v, bool *opened,
                      hone_report *report) {
  const int trans = s->options.trans;
  s->mem = hone_memory_of(&s->options);
  s->mem.keeps = true;
  open_arena(s, v);
  int st = hone_solver_take_vectors(s, v, report);
  *opened = st == HONE_OK;
  if (st == HONE_OK)
    st = hone_solver_open(s, v->n, true);
  s->ladder.request.columns = v->nrhs;
  if (st == HONE_OK) {
    announce(s, v);
    hone_call_begin(s, &s->options, guest);
    st = hone_solver_take_matrix(s, a, lda, false, trans != HONE_NO_TRANS,
                                 report);
    if (st == HONE_OK)
      st = hone_solver_run(s, trans, v, report);
  }
  hone_solver_close(s);
  hone_mem_close_arena(&s->mem);
  return st;
}

/* *v: the arguments of the call; alone: by a solver in any case. */
static int solve_system(hone_guest *guest, bool alone, hone_vectors *v,
                        const hone_entry *a, int64_t lda,
                        const hone_options *options, hone_report *report) {
  hone_report made;
  hone_solver s;
  const double start_s = hone_now_s();
  bool opened = false;
  if (!hone_report_is_sized(report))
    return HONE_BAD_STRUCT_SIZE;
  memset(&s, 0, offsetof(hone_solver, ladder.rung));
  hone_report_begin(&made, v->n, v->nrhs);
  int st = hone_options_take(options, &s.options, &s.tuning, &made);
  hone_vectors_of_options(&s.options, v);
  if (st == HONE_OK)
    st = hone_check_system(v, a, lda, &made);
  if (st == HONE_OK && (v->n == 0 || v->nrhs == 0)) {
    made.tolerance = hone_request_of(&s.options, true).limit;
    st = hone_solver_run_empty(v, &made);
  } else if (st == HONE_OK &&
             (alone ||
              !hone_solve_small(&s.options, v, a, lda, report != NULL, &made)))
    st = solve_once(guest, &s, a, lda, v, &opened, &made);
  return hone_report_end(opened ? &s : NULL, st, start_s, &made, report);
}

int hone_solve(int64_t n, int64_t nrhs, const hone_entry *a, int64_t lda,
               const hone_entry *b, int64_t ldb, hone_entry *x, int64_t ldx,
               const hone_options *options, hone_report *report) {
  hone_guest guest;
  hone_vectors v = {
      .n = n, .nrhs = nrhs, .b = b, .ldb = ldb, .x = x, .ldx = ldx};
  hone_guest_enter(&guest);
  const int st = solve_system(&guest, false, &v, a, lda, options, report);
  hone_guest_leave(&guest);
  return st;
}

int hone_solve_alone(int64_t n, int64_t nrhs, const hone_entry *a, int64_t lda,
                     const hone_entry *b, int64_t ldb, hone_entry *x,
                     int64_t ldx, const hone_options *options,
                     hone_report *report) {
  hone_guest guest;
  hone_vectors v = {
      .n = n, .nrhs = nrhs, .b = b, .ldb = ldb, .x = x, .ldx = ldx};
  hone_guest_enter(&guest);
  const int st = solve_system(&guest, true, &v, a, lda, options, report);
  hone_guest_leave(&guest);
  return st;
}

static int64_t sum(int64_t a, int64_t b) {
  return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

static int memory_needed(int64_t n, int64_t nrhs, const hone_options *options,
                         int64_t *single_bytes, int64_t *double_bytes) {
  hone_options o;
  hone_tuning tuning;
  hone_step steps[HONE_MAX_RUNGS];
  hone_vectors v = {.n = n, .nrhs = nrhs};
  char why[128];
  int st = hone_options_take(options, &o, &tuning, NULL);
  if (st == HONE_OK)
    st = hone_check_sizes(n, nrhs, NULL);
  if (st == HONE_OK) {
    hone_vectors_of_options(&o, &v);
    st = hone_check_arrays_of_options(&v, NULL);
  }
  if (st != HONE_OK)
    return st;
  int count = hone_choose_engines(&o, n, true, steps, why, sizeof why);
  if (count == 0 && nrhs == 0) { /* nothing to solve: no device is needed */
    o.device = HONE_DEVICE_CPU;
    count = hone_choose_engines(&o, n, true, steps, why, sizeof why);
  }
  if (count == 0)
    return HONE_NO_DEVICE;
  const int64_t columns = HONE_MIN(nrhs, hone_ladder_block(steps, count));
  const bool copies_columns =
      o.columns != NULL &&
      (o.column_size != sizeof *o.columns || hone_device_memory_exists());
  int64_t most = 0, all = 0, lender = 0;
  /* The last terms are a generous allowance for the alignment of the large
     blocks and for the pool. */
  int64_t base = hone_ladder_bytes(&hone_dense_operator, n, columns,
                                   o.extra_precise != 0) +
                 (copies_columns ? nrhs * (int64_t)sizeof *o.columns : 0) +
                 (int64_t)sizeof(hone_solver) + 3 * (1 << 21) + (1 << 16);
  base =
      sum(sum(base, hone_adjoint_bytes(n, nrhs, &o)), hone_whole_bytes(&o, n));
  for (int r = 0; r < count; r++) {
    const int64_t bytes = steps[r].engine->bytes(n, columns);
    const bool first = r == 0 || hone_engine_direct(steps[r - 1].engine);
    const int64_t before = steps[r].engine->borrow != NULL ? lender : 0;
    all = HONE_MAX(all,
                   sum(bytes, before)); /* a lender is destroyed after that */
    if (steps[r].engine->lend != NULL)
      lender = HONE_MAX(lender, bytes);
    if (first || steps[r].engine->precision == 32 ||
        hone_engine_direct(steps[r].engine))
      most = HONE_MAX(most, bytes);
  }
  if (single_bytes)
    *single_bytes = sum(base, most);
  if (double_bytes)
    *double_bytes = sum(base, all);
  return HONE_OK;
}

int hone_memory_needed(int64_t n, int64_t nrhs, const hone_options *options,
                       int64_t *single_bytes, int64_t *double_bytes) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int st = memory_needed(n, nrhs, options, single_bytes, double_bytes);
  hone_guest_leave(&guest);
  return st;
}

static int device_memory_needed(int64_t n, const hone_options *options,
                                int64_t *with_residuals, int64_t *without) {
  hone_options o;
  hone_tuning tuning;
  int st = hone_options_take(options, &o, &tuning, NULL);
  if (st == HONE_OK)
    st = hone_check_sizes(n, 0, NULL);
  if (st == HONE_OK && with_residuals != NULL)
    *with_residuals = hone_engines_device_bytes(&o, n, true);
  if (st == HONE_OK && without != NULL)
    *without = hone_engines_device_bytes(&o, n, false);
  return st;
}

int hone_device_memory_needed(int64_t n, const hone_options *options,
                              int64_t *with_residuals, int64_t *without) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const int st = device_memory_needed(n, options, with_residuals, without);
  hone_guest_leave(&guest);
  return st;
}
