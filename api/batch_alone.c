/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems of a batch that no block has solved: each as by hone_solve. */
#include "api/batch.h"

#include "api/solver.h"
#include "base/dense.h"
#include "base/device_memory.h"
#include "cpu_batch/determinant.h"

#include <stdatomic.h>

/* Below this order a system has one thread, and several systems run at once. */
enum { SEVERAL_BELOW = HONE_THREADS_FROM };

typedef struct rest {
  hone_batch_call *call;
  int64_t *list;
  int64_t count;
  hone_options options;  /* of one system, but for its columns, deadline and
                            memory */
  bool several;          /* of them at once: then the bytes are counted */
  _Atomic int64_t grown; /* that kept solvers hold, and did not hold before */
  _Atomic int64_t most_bytes; /* and that one system has held beside these */
} rest;

/* The smallest pivot of a matrix without an inverse, or the place of NaN, as
   far as an int32_t goes. */
static void take_places(const hone_report *from, hone_batch_result *r) {
  const bool poor =
      from->status == HONE_SINGULAR || from->status == HONE_ILL_CONDITIONED;
  const bool pivot =
      poor && (from->min_pivot_row >= 0 || from->min_pivot_col >= 0);
  const int64_t row = pivot ? from->min_pivot_row : from->bad_row;
  const int64_t col = pivot ? from->min_pivot_col : from->bad_col;
  r->row = (int32_t)row;
  r->col = (int32_t)col;
}

static void take_report(const hone_report *from, hone_batch_result *r) {
  r->status = from->status;
  r->iterations = from->iterations;
  r->precision = from->precision;
  r->digits = from->digits;
  r->backward_error = from->backward_error;
  r->normwise_error = from->normwise_error;
  r->residual_error = from->residual_error;
  r->forward_error = from->forward_error;
  r->rcond = from->rcond;
  if (from->status != HONE_OK)
    take_places(from, r);
}

/* Notes that so many bytes were held beside what the call holds and keeps. */
static void note_bytes(rest *all, int64_t bytes) {
  hone_mem *mem = &all->call->mem;
  int64_t most = atomic_load(&all->most_bytes);
  if (!all->several)
    mem->peak = HONE_MAX(mem->peak, mem->held + bytes);
  while (bytes > most &&
         !atomic_compare_exchange_weak(&all->most_bytes, &most, bytes))
    ;
}

/* The bytes that a system may hold beside these; 0: there is no limit. */
static int64_t room_beside(const rest *all, int64_t bytes) {
  const hone_mem *mem = &all->call->mem;
  return mem->limit > 0 ? HONE_MAX(mem->limit - mem->held - bytes, (int64_t)1)
                        : 0;
}

/* A system, and copies in host memory of those of its arrays that lie on a
   device, where determinants are wanted: they are the host's work. */
typedef struct placed {
  hone_member m;
  int64_t lda, ldb, ldx;
  hone_mem mem;   /* of the copies, */
  int64_t copied; /* which have so many bytes when the system is solved */
  hone_entry *copy;
  hone_entry *x_there; /* where x belongs; NULL: it is in its place */
  hone_device_memory x_place;
} placed;

/* Fetches an array of n x columns if it lies on a device; *copy is its room,
   and becomes that of the next one. */
static int fetch(int64_t n, int64_t columns, const hone_entry **at, int64_t *ld,
                 hone_entry **copy) {
  hone_device_memory place;
  const size_t column = (size_t)n * sizeof **at;
  if (!hone_device_memory_of(*at, &place))
    return HONE_OK;
  const int st =
      hone_device_memory_fetch(&place, column, (size_t)columns, *at,
                               (size_t)*ld * sizeof **at, *copy, column);
  *at = *copy;
  *ld = n;
  *copy += n * columns;
  return st;
}

/* Does an array of the system lie on a device? */
static bool lies_there(const hone_member *m) {
  hone_device_memory place;
  return hone_device_memory_of(m->a, &place) ||
         hone_device_memory_of(m->b, &place) ||
         hone_device_memory_of(m->x, &place);
}

/* Copies what has to be in host memory. */
static int bring(const rest *all, placed *p) {
  const hone_batch *b = &all->call->batch;
  const int64_t n = p->m.n;
  p->lda = b->lda;
  p->ldb = b->ldb;
  p->ldx = b->ldx;
  p->copy = p->x_there = NULL;
  p->mem = all->call->mem;
  p->mem.peak = p->mem.held;
  if (!b->determinants || !all->call->devices || all->call->kept != NULL ||
      n < 1 || !all->call->solves ||
      hone_batch_check_member(all->call, &p->m, NULL) != HONE_OK ||
      !lies_there(&p->m))
    return HONE_OK;
  p->copy =
      hone_mem_get(&p->mem, (size_t)(n * (n + 2 * b->nrhs)) * sizeof *p->copy);
  if (p->copy == NULL)
    return HONE_NO_MEMORY;
  hone_entry *room = p->copy;
  int st = fetch(n, n, &p->m.a, &p->lda, &room);
  if (st == HONE_OK)
    st = fetch(n, b->nrhs, &p->m.b, &p->ldb, &room);
  if (st == HONE_OK && hone_device_memory_of(p->m.x, &p->x_place)) {
    p->x_there = p->m.x;
    p->m.x = room;
    p->ldx = n;
  }
  return st;
}

/* Brings x to its place, if there is one. */
static int bring_back(const rest *all, placed *p, int st) {
  const size_t column = (size_t)p->m.n * sizeof *p->m.x;
  if (st >= HONE_OK && p->x_there != NULL) {
    const int stored = hone_device_memory_store(
        &p->x_place, column, (size_t)all->call->batch.nrhs, p->m.x, column,
        p->x_there, (size_t)all->call->batch.ldx * sizeof *p->m.x);
    st = stored != HONE_OK ? stored : st;
  }
  hone_mem_put(&p->mem, p->copy);
  return st;
}

/* Is A there, and finite? hone_solve does not look where nothing is solved. */
static bool is_known(const hone_batch_call *call, const placed *p) {
  bool finite = p->m.a != NULL;
  for (int64_t j = 0; finite && call->batch.nrhs == 0 && j < p->m.n; j++)
    for (int64_t i = 0; i < p->m.n; i++)
      finite = finite && hone_finite(p->m.a[i + j * p->lda]);
  return finite;
}

/* Fetches an A that a kept solver, which reads it where it lies, has left on a
   device. Returns NULL if that fails, else its copy, or p's own A. */
static const hone_entry *fetch_kept(const hone_batch_call *call, placed *p) {
  hone_device_memory place;
  const int64_t n = p->m.n;
  if (call->kept == NULL || !call->devices ||
      !hone_device_memory_of(p->m.a, &place))
    return p->m.a;
  p->copy = hone_mem_get(&p->mem, (size_t)(n * n) * sizeof *p->copy);
  hone_entry *room = p->copy;
  if (room == NULL || fetch(n, n, &p->m.a, &p->lda, &room) != HONE_OK)
    return NULL;
  return p->m.a;
}

/* The determinant of op(A), by LU in double. That of a matrix that is known to
   be singular is 0, whatever rounding errors leave of its last pivot. Where
   HONE_OK says more than that nothing was asked, nothing is told that is not
   certain. */
static void add_determinant(rest *all, int64_t k, placed *p,
                            hone_batch_result *r) {
  const hone_batch_call *call = all->call;
  hone_determinant_value v = {HONE_NAN, HONE_NAN, HONE_NAN, false};
  if (r->status == HONE_SINGULAR) {
    v = (hone_determinant_value){-HONE_INF, 0.0, 0.0, true};
  } else if (r->status >= HONE_OK && fetch_kept(call, p) != NULL &&
             is_known(call, p)) {
    const hone_determinant_job job = {.n = p->m.n,
                                      .a = p->m.a,
                                      .lda = p->lda,
                                      .seed = hone_batch_seed(call, p->m.n, k)};
    hone_mem mem = p->mem;
    mem.peak = mem.held;
    (void)hone_determinant(&job, &mem, &v);
    note_bytes(all, mem.peak - call->mem.held);
  }
  const bool says_much = call->kept != NULL || call->batch.nrhs > 0;
  if (r->status == HONE_OK && says_much && !v.certain)
    v.log_abs = v.re = v.im = HONE_NAN;
  r->log_abs_det = v.log_abs;
  r->det_re = v.re;
  r->det_im = call->options.trans == HONE_CONJ_TRANS ? -v.im : v.im;
}

/* The bytes that the system's solver holds, if there is one. */
static int64_t kept_bytes(const hone_batch_call *call, int64_t k) {
  return call->kept != NULL && call->kept->alone[k] != NULL
             ? call->kept->alone[k]->mem.held
             : 0;
}

static void drop_alone(hone_batch_call *call, int64_t k) {
  call->mem.held -= kept_bytes(call, k);
  hone_solver_destroy(&call->kept->alone[k]);
}

void hone_batch_drop_alone(hone_batch_call *call) {
  for (int64_t k = 0; call->kept->alone != NULL && k < call->kept->count; k++)
    drop_alone(call, k);
}

void *hone_batch_memory(hone_batch_call *call, size_t bytes) {
  void *memory = hone_mem_get(&call->mem, bytes);
  if (memory != NULL || call->kept == NULL)
    return memory;
  hone_batch_drop_alone(call);
  memory = hone_mem_get(&call->mem, bytes);
  if (memory != NULL)
    call->mem.refused_bytes = 0;
  return memory;
}

/* Lets a solver that is kept take as much memory as there is now. */
static void continue_alone(const rest *all, hone_solver *solver) {
  hone_mem *mem = &solver->mem;
  if (mem->limit > 0)
    mem->limit = mem->held + room_beside(all, 0);
  mem->peak = mem->held;
}

/* The solver of a system of a batch that is kept, which is made when a block
   does not serve. */
static int keep_alone(const rest *all, int64_t k, const hone_member *m,
                      double deadline_s, hone_report *report) {
  hone_batch_call *call = all->call;
  hone_solver **solver = &call->kept->alone[k];
  hone_options options = all->options;
  if (!call->factors && call->kept->fault[k].status < HONE_OK)
    return call->kept->fault[k].status;
  if (*solver != NULL) {
    continue_alone(all, *solver);
    return HONE_OK;
  }
  /* These belong to one solve. */
  options.trans = HONE_NO_TRANS;
  options.columns = NULL;
  options.deadline_s = deadline_s;
  options.memory_limit_bytes = room_beside(all, 0);
  int st = hone_solver_make(solver, m->n, &options, &report->host_bytes);
  report->status = st;
  if (st == HONE_OK)
    st = hone_solver_factor(*solver, m->a, call->batch.lda, report);
  if (st == HONE_OK)
    (*solver)->options.deadline_s = 0.0;
  else
    hone_solver_destroy(solver);
  return st;
}

/* Solves the system by a solver that is kept, or by none. */
static int solve_system(const rest *all, int64_t k, const placed *p,
                        const hone_options *options, hone_report *report) {
  const hone_batch *b = &all->call->batch;
  const hone_member *m = &p->m;
  if (all->call->kept == NULL)
    return hone_solve_alone(m->n, b->nrhs, m->a, p->lda, m->b, p->ldb, m->x,
                            p->ldx, options, report);
  int st = keep_alone(all, k, m, options->deadline_s, report);
  if (st != HONE_OK || !all->call->solves)
    return st;
  hone_options own = HONE_OPTIONS_INIT;
  own.trans = options->trans;
  own.columns = options->columns;
  own.column_size = options->column_size;
  own.deadline_s = options->deadline_s;
  own.progress = options->progress;
  own.progress_user = options->progress_user;
  return hone_solver_solve(all->call->kept->alone[k], b->nrhs, m->b, b->ldb,
                           m->x, b->ldx, &own, report);
}

/* Counts what the results of systems do not tell. */
static void count_columns(hone_batch_call *call, int st,
                          const hone_report *report) {
  double failure = atomic_load(&call->failure);
  if (st < HONE_OK)
    return;
  atomic_fetch_add(&call->sparse, report->sparse_columns);
  if (st > HONE_OK)
    atomic_fetch_add(&call->partly, report->accepted);
  while (report->bound_failure > failure &&
         !atomic_compare_exchange_weak(&call->failure, &failure,
                                       report->bound_failure))
    ;
}

/* Is there a limit below which solvers make room for each other? */
static bool makes_room(const hone_batch_call *call) {
  return call->kept != NULL && !call->factors && call->mem.limit > 0;
}

/* Solves the system, and counts what its solver keeps. One that only this solve
   has needed is not kept where there is a limit. */
static int solve_counted(rest *all, int64_t k, placed *p, hone_options *options,
                         hone_report *report) {
  hone_batch_call *call = all->call;
  const int64_t before = kept_bytes(call, k);
  hone_report_begin(report, p->m.n, call->batch.nrhs);
  options->memory_limit_bytes = room_beside(all, p->copied);
  const int st = solve_system(all, k, p, options, report);
  const int64_t after = kept_bytes(call, k), grown = after - before;
  if (all->several)
    atomic_fetch_add(&all->grown, grown);
  else
    call->mem.held += grown;
  note_bytes(all, p->copied + HONE_MAX(report->host_bytes - after, (int64_t)0));
  if (makes_room(call) && before == 0)
    drop_alone(call, k);
  p->mem.held = call->mem.held + p->copied;
  return st;
}

static void solve_alone(rest *all, int64_t k) {
  hone_batch_call *call = all->call;
  const hone_batch *b = &call->batch;
  placed p = {.m = hone_batch_member(call, k)};
  hone_options options = all->options;
  hone_report report = HONE_REPORT_INIT;
  options.columns = call->solves
                        ? (hone_column *)(void *)hone_batch_column(call, k, 0)
                        : NULL;
  if (call->watch.deadline_s > 0.0)
    options.deadline_s = fmax(call->watch.deadline_s - hone_now_s(), 1e-9);
  hone_report_begin(&report, p.m.n, b->nrhs);
  int st = bring(all, &p);
  p.copied = p.mem.held - call->mem.held;
  if (st == HONE_OK)
    st = solve_counted(all, k, &p, &options, &report);
  else
    note_bytes(all, p.copied);
  if (st == HONE_NO_MEMORY && makes_room(call)) {
    hone_batch_drop_alone(call);
    st = solve_counted(all, k, &p, &options, &report);
  }
  report.status = st;
  take_report(&report, &call->results[k]);
  if (b->determinants && call->factors && p.m.n > 0)
    add_determinant(all, k, &p, &call->results[k]);
  call->results[k].status = st = bring_back(all, &p, st);
  count_columns(call, st, &report);
  if (b->determinants && call->factors && p.m.n == 0 && st == HONE_OK) {
    call->results[k].log_abs_det = call->results[k].det_im = 0.0;
    call->results[k].det_re = 1.0;
  }
  atomic_fetch_add(&call->ended, 1);
}

static void work(void *ctx, int64_t worker) {
  rest *all = ctx;
  (void)worker;
  while (!hone_batch_stopped(all->call)) {
    const int64_t i = atomic_fetch_add(&all->call->next, 1);
    if (i >= all->count)
      return;
    solve_alone(all, all->list[i]);
  }
}

/* The progress function of systems that are solved one after the other by the
   calling thread: asks the batch's. */
static int ask(void *user, const hone_progress *event) {
  (void)event;
  return hone_batch_stopped(user);
}

static void watch_each(rest *all, bool one_by_one) {
  hone_batch_call *call = all->call;
  all->options.progress =
      one_by_one && call->watch.progress != NULL ? ask : NULL;
  all->options.progress_user = call;
}

static int64_t order_of(const hone_batch_call *call, int64_t k) {
  return call->batch.orders ? call->batch.orders[k] : call->batch.n;
}

/* Lists the systems that are left: small ones if 'small' is set, else large
   ones. */
static void list_rest(rest *all, bool small) {
  const hone_batch_call *call = all->call;
  all->count = 0;
  for (int64_t k = 0; k < call->batch.count; k++)
    if (call->results[k].status == HONE_CANCELLED &&
        (order_of(call, k) < SEVERAL_BELOW) == small)
      all->list[all->count++] = k;
}

/* Systems for which there is no memory to begin with. */
static void give_up(hone_batch_call *call) {
  for (int64_t k = 0; k < call->batch.count; k++)
    if (call->results[k].status == HONE_CANCELLED)
      call->results[k].status = HONE_NO_MEMORY;
}

/* Counts what several threads have held at most, and what is kept. */
static void count_memory(rest *all, int threads) {
  hone_mem *mem = &all->call->mem;
  mem->held += atomic_load(&all->grown);
  mem->peak =
      HONE_MAX(mem->peak, mem->held + threads * atomic_load(&all->most_bytes));
}

void hone_batch_rest(hone_batch_call *call) {
  hone_mem *mem = &call->mem;
  /* The caller's memory functions need not bear several threads, and one
     system at a time may take all that is left of the limit. */
  const bool several = mem->alloc == NULL && mem->limit == 0;
  const int threads = several ? call->threads : 1;
  rest all = {.call = call, .options = call->options, .several = several};
  const int64_t left = call->batch.count - call->in_blocks;
  if (left == 0)
    return;
  all.list = hone_batch_memory(call, (size_t)left * sizeof *all.list);
  if (all.list == NULL) {
    give_up(call);
    return;
  }
  watch_each(&all, !several);
  /* One by one, small systems that a device has left take a millisecond each
     there: hone_solve chooses. */
  if (call->there)
    all.options.device = HONE_DEVICE_AUTO;
  list_rest(&all, true);
  all.options.threads = 1;
  atomic_store(&call->next, 0);
  if (all.count > 0)
    hone_pool_run(several ? call->pool : NULL, threads, work, &all);
  hone_batch_look_for_loss(call);
  if (call->lost) { /* nothing counts as solved: the list is too short */
    hone_mem_put(mem, all.list);
    return;
  }
  if (several)
    count_memory(&all, threads);
  all.several = false;
  watch_each(&all, true);
  list_rest(&all, false);
  all.options.threads = call->options.threads;
  atomic_store(&call->next, 0);
  if (all.count > 0)
    work(&all, 0);
  hone_mem_put(mem, all.list);
}
