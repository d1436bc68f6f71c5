/* SPDX-License-Identifier: BSD-3-Clause */
/* hone_batch_solve: arguments, threads, and the report of many systems. */
#include "api/batch.h"

#include "api/guest.h"
#include "api/solver.h"
#include "base/cpus.h"
#include "base/probe_factor.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  LEAST_BATCH = offsetof(hone_batch, determinants),
  LEAST_RESULT = offsetof(hone_batch_result, normwise_error)
};
/* A batch of fewer operations than this is solved before other threads have
   woken up. */
static const double WORTH_THREADS = 1e6;

/* ---- Systems ------------------------------------------------------------ */

hone_member hone_batch_member(const hone_batch_call *call, int64_t k) {
  const hone_batch *b = &call->batch;
  hone_member m = {.n = b->orders ? b->orders[k] : b->n,
                   .a = b->a_list ? b->a_list[k] : b->a,
                   .b = b->b_list ? b->b_list[k] : b->b,
                   .x = b->x_list ? b->x_list[k] : b->x};
  /* NULL stays NULL. */
  if (b->a_list == NULL && m.a != NULL)
    m.a += k * b->stride_a;
  if (b->b_list == NULL && m.b != NULL)
    m.b += k * b->stride_b;
  if (b->x_list == NULL && m.x != NULL)
    m.x += k * b->stride_x;
  return m;
}

int hone_batch_check_member(const hone_batch_call *call, const hone_member *m,
                            hone_report *report) {
  const hone_batch *b = &call->batch;
  if (!call->solves) {
    const int st = hone_check_sizes(m->n, 0, report);
    return st == HONE_OK
               ? hone_check_matrix(m->n, m->n, m->a, b->lda, "a", report)
               : st;
  }
  const hone_vectors v = {.n = m->n,
                          .nrhs = b->nrhs,
                          .b = m->b,
                          .ldb = b->ldb,
                          .x = m->x,
                          .ldx = b->ldx};
  return hone_check_system(&v, m->a, b->lda, report);
}

char *hone_batch_column(const hone_batch_call *call, int64_t k, int64_t c) {
  const hone_options *o = &call->options;
  return o->columns == NULL
             ? NULL
             : (char *)o->columns +
                   (size_t)(k * call->batch.nrhs + c) * o->column_size;
}

bool hone_batch_stopped(hone_batch_call *call) {
  const bool asks = pthread_equal(pthread_self(), call->caller) != 0;
  if (asks && !atomic_load_explicit(&call->stop, memory_order_relaxed) &&
      hone_watch_stop(&call->watch, "batch",
                      (double)atomic_load(&call->ended) /
                          (double)call->batch.count,
                      0, HONE_NAN))
    atomic_store(&call->stop, true);
  return atomic_load_explicit(&call->stop, memory_order_relaxed);
}

/* ---- Arguments ---------------------------------------------------------- */

static int refuse(hone_report *report, int st, const char *why) {
  hone_reason_add(report, "%s", why);
  return st;
}

int hone_batch_take(const hone_batch *from, hone_batch *to,
                    hone_report *report) {
  if (from == NULL)
    return refuse(report, HONE_NULL_POINTER, "batch is NULL");
  if (from->struct_size < LEAST_BATCH || from->struct_size > sizeof *to)
    return refuse(report, HONE_BAD_STRUCT_SIZE,
                  "batch.struct_size is not set, or of a later version");
  memset(to, 0, sizeof *to);
  memcpy(to, from, from->struct_size);
  if (to->result_size < LEAST_RESULT ||
      to->result_size > sizeof(hone_batch_result))
    return refuse(report, HONE_BAD_STRUCT_SIZE,
                  "batch.result_size is not set, or of a later version");
  if (to->count < 0 || to->count > INT64_MAX / 2 / (int64_t)to->result_size)
    return refuse(report, HONE_BAD_SIZE,
                  "batch.count is negative or too large");
  if (to->reserved != 0)
    return refuse(report, HONE_BAD_OPTION, "batch.reserved is not 0");
  return HONE_OK;
}

/* An array that is given by a stride: entries from its first to the last. */
static int check_stride(const hone_batch *b, int64_t stride, const char *name,
                        hone_report *report) {
  const int64_t most = INT64_MAX / 4 / (int64_t)sizeof(hone_entry);
  if (stride >= 0 && (b->count == 0 || stride <= most / b->count))
    return HONE_OK;
  hone_reason_add(report, "batch.stride_%s is %lld: negative or too large",
                  name, (long long)stride);
  return HONE_BAD_SIZE;
}

/* Where there are no lists and no orders, the arguments of the first system are
   those of all. */
int hone_batch_check(hone_batch_call *call, hone_batch_result **results,
                     hone_report *report) {
  const hone_batch *b = &call->batch;
  int st = hone_check_sizes(b->orders ? 0 : b->n, b->nrhs, report);
  if (st == HONE_OK && b->a_list == NULL)
    st = check_stride(b, b->stride_a, "a", report);
  if (st == HONE_OK && call->solves && b->b_list == NULL)
    st = check_stride(b, b->stride_b, "b", report);
  if (st == HONE_OK && call->solves && b->x_list == NULL)
    st = check_stride(b, b->stride_x, "x", report);
  if (st == HONE_OK && b->nrhs > 0 &&
      b->count > INT64_MAX / 2 / (int64_t)sizeof(hone_column) / b->nrhs)
    st = refuse(report, HONE_BAD_SIZE, "batch.count nrhs is too large");
  const bool alike = b->orders == NULL && b->a_list == NULL &&
                     b->b_list == NULL && b->x_list == NULL;
  if (st == HONE_OK && b->count > 0 && alike) {
    const hone_member first = hone_batch_member(call, 0);
    st = hone_batch_check_member(call, &first, report);
    if (st == HONE_OK && call->solves)
      st = hone_batch_check_shared(call, report);
    call->checked = st == HONE_OK && b->n > 0 &&
                    (!call->solves || (b->nrhs > 0 && hone_batch_all_apart(b)));
  }
  call->devices = hone_device_memory_exists();
  if (st == HONE_OK && call->solves)
    st = hone_batch_check_solutions(b, report);
  return st == HONE_OK ? hone_batch_check_outputs(call, results, report) : st;
}

static int check_options(const hone_options *o, hone_report *report) {
  if (o->x0 != NULL)
    return refuse(report, HONE_BAD_OPTION, "options.x0: a batch takes none");
  if (o->error_bounds != NULL)
    return refuse(report, HONE_BAD_OPTION,
                  "options.error_bounds: a batch takes none");
  if (o->triangle != 0)
    return refuse(report, HONE_BAD_OPTION,
                  "options.triangle: a batch takes both");
  return HONE_OK;
}

/* ---- Results ------------------------------------------------------------ */

/* The worst of two statuses: an error before a weaker x, the first before
   later ones. */
static bool is_worse(int st, int than) {
  return than == HONE_OK ? st != HONE_OK : than > 0 && st < 0;
}

/* Takes over the worst of all results. Factors have no errors. */
static void report_worst(const hone_batch_call *call,
                         const hone_batch_result *worst, hone_report *report) {
  report->rcond = worst->rcond;
  report->iterations = worst->iterations;
  report->precision = worst->precision;
  if (!call->solves)
    return;
  report->backward_error = worst->backward_error;
  report->normwise_error = worst->normwise_error;
  report->residual_error = worst->residual_error;
  report->forward_error = worst->forward_error;
  report->digits = worst->digits;
}

/* Gives the columns of a system without an x its status. */
static void refuse_columns(const hone_batch_call *call, int64_t k, int st) {
  const hone_column column = {.status = st,
                              .backward_error = HONE_INF,
                              .normwise_error = HONE_INF,
                              .residual_error = HONE_INF,
                              .forward_error = HONE_INF};
  for (int64_t c = 0; c < call->batch.nrhs; c++) {
    char *to = hone_batch_column(call, k, c);
    if (to != NULL)
      memcpy(to, &column, call->options.column_size);
  }
}

static int32_t as_count(int64_t v) {
  return v <= INT32_MAX ? (int32_t)v : INT32_MAX;
}

/* Keeps the error of this system's matrix; that the call was stopped is none.
 */
static void keep_fault(const hone_batch_call *call, int64_t k) {
  const hone_batch_result *r = &call->results[k];
  hone_batch_kept *kept = call->kept;
  if (kept == NULL || !call->factors)
    return;
  const bool error = r->status < HONE_OK && r->status != HONE_CANCELLED;
  kept->fault[k] = error ? (hone_batch_fault){r->status, r->row, r->col}
                         : (hone_batch_fault){HONE_OK, -1, -1};
  kept->faults -= !error; /* all were errors before */
}

/* The largest bound_failure of a system; 0 where no bound was stated. */
static double bound_failure(const hone_batch_call *call) {
  const bool in_blocks =
      call->solves && call->batch.nrhs > 0 && call->in_blocks > 0;
  return HONE_MAX(in_blocks ? HONE_PROBE_FAILURE_ALL : 0.0,
                  atomic_load(&call->failure));
}

static void report_path(const hone_batch_call *call, hone_report *report) {
  const long long count = call->batch.count;
  char device[64] = "";
  if (call->on_device > 0 && call->sharing > 1)
    snprintf(device, sizeof device, "%lld on %d devices, ",
             (long long)call->on_device, call->sharing);
  else if (call->on_device > 0)
    snprintf(device, sizeof device, "%lld on the device, ",
             (long long)call->on_device);
  snprintf(report->path, sizeof report->path,
           "batch of %lld: %s%lld in blocks, %lld alone", count, device,
           (long long)(call->in_blocks - call->on_device),
           count - (long long)call->in_blocks);
}

/* Sums up all results; returns the status of the call. Where a device has
   solved all systems, its results are not read once more. */
static int sum_up(hone_batch_call *call, hone_report *report) {
  const hone_batch *b = &call->batch;
  const bool all_there = call->on_device == b->count;
  int64_t accepted = all_there ? b->count : 0, worst = -1;
  hone_batch_result sum = call->worst_there;
  int st = HONE_OK;
  for (int64_t k = 0; k < b->count && !all_there; k++) {
    const hone_batch_result *r = &call->results[k];
    hone_batch_add_result(r, &sum);
    if (r->status < 0)
      refuse_columns(call, k, r->status);
    keep_fault(call, k);
    accepted += r->status == HONE_OK;
    if (is_worse(r->status, st)) {
      st = r->status;
      worst = k;
    }
  }
  report_worst(call, &sum, report);
  report->accepted = as_count(accepted * b->nrhs + atomic_load(&call->partly));
  report->bound_failure = bound_failure(call);
  report->sparse_columns = as_count(atomic_load(&call->sparse));
  report_path(call, report);
  if (worst >= 0 && st != HONE_CANCELLED && st != HONE_NO_MEMORY)
    hone_reason_add(report, "system %lld of %lld: %s", (long long)worst,
                    (long long)b->count, hone_status_text(st));
  return st;
}

/* ---- The call ----------------------------------------------------------- */

static int compare_orders(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  if (x[0] != y[0])
    return x[0] < y[0] ? -1 : 1;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Lists the systems by their orders, those of one order as they come. */
static int sort_systems(hone_batch_call *call) {
  const hone_batch *b = &call->batch;
  if (b->orders == NULL || b->count == 0)
    return HONE_OK;
  const size_t bytes = (size_t)b->count * sizeof *call->order;
  int64_t *pairs = hone_mem_get(&call->mem, 2 * bytes);
  call->order = hone_mem_get(&call->mem, bytes);
  const bool there = pairs != NULL && call->order != NULL;
  for (int64_t k = 0; there && k < b->count; k++) {
    pairs[2 * k] = b->orders[k];
    pairs[2 * k + 1] = k;
  }
  if (there)
    qsort(pairs, (size_t)b->count, 2 * sizeof *pairs, compare_orders);
  for (int64_t k = 0; there && k < b->count; k++)
    call->order[k] = pairs[2 * k + 1];
  hone_mem_put(&call->mem, pairs);
  return there ? HONE_OK : HONE_NO_MEMORY;
}

/* May blocks solve systems of this call? */
static bool blocks_serve(const hone_batch_call *call) {
  return (call->batch.orders != NULL || call->batch.n <= HONE_BLOCK_UP_TO) &&
         call->options.device != HONE_DEVICE_CUDA && hone_batch_may_take(call);
}

/* The operations of one system of order n, in proportion. */
static double work_of(const hone_batch_call *call, int64_t order) {
  const double n = (double)order;
  const double columns = call->solves ? (double)call->batch.nrhs : 0.0;
  return n * n * ((call->factors ? n + 10.0 : 0.0) + 10.0 * columns);
}

/* The threads that are worth waking. */
static int threads_for(const hone_batch_call *call) {
  const hone_batch *b = &call->batch;
  const int wanted =
      call->options.threads > 0 ? call->options.threads : hone_threads_wanted();
  double work = b->orders ? 0.0 : (double)b->count * work_of(call, b->n);
  for (int64_t k = 0; b->orders && k < b->count && work < WORTH_THREADS; k++)
    work += work_of(call, b->orders[k]);
  return wanted <= 1 || !(work >= WORTH_THREADS)
             ? 1
             : HONE_MIN(wanted, hone_cpus());
}

/* Solves what no device has solved. */
static void solve_here(hone_batch_call *call, bool by_blocks) {
  if (by_blocks && !atomic_load(&call->stop))
    (void)hone_batch_blocks(call); /* without memory the rest is alone */
  else if (!call->begun)
    hone_batch_begin_results(call);
  if (!atomic_load(&call->stop))
    hone_batch_rest(call);
}

/* Arguments are valid. */
static int run(hone_batch_call *call, hone_report *report) {
  call->threads = threads_for(call);
  hone_pool_open(&call->pool, &call->mem, call->threads);
  hone_pool_adapt(call->pool, call->threads);
  call->threads = hone_pool_threads(call->pool);
  int st = call->order == NULL ? sort_systems(call) : HONE_OK;
  const bool by_blocks = st == HONE_OK && blocks_serve(call);
  call->begun = false;
  /* Without memory for the order, each system is solved by itself. */
  st = st == HONE_OK ? hone_batch_device(call) : HONE_OK;
  const bool here = call->on_device < call->batch.count;
  if (st == HONE_OK && here && !hone_batch_make_results(call))
    st = HONE_NO_MEMORY;
  if (st == HONE_OK && call->kept != NULL && !call->factors &&
      call->kept->faults > 0) {
    hone_batch_begin_results(call);
    atomic_store(&call->ended, call->kept->faults);
  }
  if (st == HONE_OK && here)
    solve_here(call, by_blocks);
  if (call->kept == NULL) {
    hone_mem_put(&call->mem, call->order);
    call->order = NULL;
  }
  hone_pool_close(&call->pool, &call->mem);
  report->threads = call->threads;
  return st == HONE_OK ? sum_up(call, report) : st;
}

/* Does the work with results, and with options.columns, where the host can
   write them; then they go to the caller. */
static int run_with(hone_batch_call *call, hone_batch_result *results,
                    hone_report *report) {
  const hone_batch *b = &call->batch;
  hone_column *const columns = call->options.columns;
  const bool there = hone_device_memory_of(results, &call->results_place);
  const bool whole =
      !there && results != NULL && b->result_size == sizeof *results;
  call->results_there = there ? (char *)results : NULL;
  call->results = whole ? results : NULL;
  call->host_waits = results != NULL && !there;
  int st = hone_batch_open_columns(call);
  if (st != HONE_OK) {
    hone_batch_refuse(b, st, results);
    return st;
  }
  st = run(call, report);
  if (st == HONE_NO_MEMORY && call->results == NULL)
    hone_batch_refuse(b, st, results);
  else if (hone_batch_give_columns(call, columns) != HONE_OK ||
           (!whole && hone_batch_give(call, results) != HONE_OK))
    st = HONE_DEVICE_FAILED;
  hone_batch_close_columns(call, columns);
  if (!whole)
    hone_mem_put(&call->mem, call->results);
  return st;
}

int hone_batch_run(hone_batch_call *call, hone_batch_result *results,
                   hone_report *report) {
  const hone_batch *b = &call->batch;
  report->n = b->n;
  report->nrhs = call->solves ? b->nrhs : 0;
  report->tolerance = call->limit;
  report->digits = call->solves ? 16 : 0;
  call->in_blocks = call->on_device = 0;
  call->worst_there = hone_batch_best();
  return b->count > 0 ? run_with(call, results, report) : HONE_OK;
}

int hone_batch_take_options(hone_batch_call *call, const hone_options *options,
                            hone_report *report) {
  int st = hone_options_take(options, &call->options, &call->tuning, report);
  if (st == HONE_OK)
    st = check_options(&call->options, report);
  if (st != HONE_OK)
    return st;
  call->limit = hone_request_of(&call->options, true).limit;
  call->mem = hone_memory_of(&call->options);
  return HONE_OK;
}

void hone_batch_begin(hone_batch_call *call, hone_float_environment *callers) {
  const hone_options *o = &call->options;
  call->watch = (hone_watch){.start_s = hone_now_s(),
                             .progress = o->progress,
                             .user = o->progress_user,
                             .callers = callers};
  if (o->deadline_s > 0.0)
    call->watch.deadline_s = call->watch.start_s + o->deadline_s;
  call->caller = pthread_self();
  atomic_store(&call->ended, 0);
  atomic_store(&call->stop, false);
  call->lost = false;
  atomic_store(&call->sparse, 0);
  atomic_store(&call->partly, 0);
  atomic_store(&call->failure, 0.0);
  call->mem.refused_bytes = 0;
}

void hone_batch_end(const hone_batch_call *call, int st, double start_s,
                    hone_report *made, hone_report *out) {
  made->status = st;
  hone_reason_complete(made, &call->watch, &call->mem, "");
  made->host_bytes = call->mem.peak;
  hone_text device = hone_text_begin(made->device, sizeof made->device);
  hone_text_add(&device, "CPU, ");
  hone_text_add_count(&device, HONE_MAX(made->threads, 1));
  hone_text_add(&device, made->threads > 1 ? " threads, " : " thread, ");
  hone_text_add(&device, hone_block_kernels_here(1)->isa);
  made->total_ms = 1e3 * (hone_now_s() - start_s);
  hone_report_give(made, out);
}

static int solve_once(hone_guest *guest, hone_batch_call *call,
                      const hone_batch *batch, const hone_options *options,
                      hone_batch_result *results, hone_report *made) {
  int st = hone_batch_take(batch, &call->batch, made);
  const bool counted = st == HONE_OK || st == HONE_BAD_OPTION;
  if (st == HONE_OK)
    st = hone_batch_take_options(call, options, made);
  if (st == HONE_OK)
    st = hone_batch_check(call, &results, made);
  if (st != HONE_OK && counted)
    hone_batch_refuse_unchecked(&call->batch, &call->options, st, results);
  if (st != HONE_OK)
    return st;
  hone_batch_begin(call, &guest->callers);
  return hone_batch_run(call, results, made);
}

int hone_batch_solve(const hone_batch *batch, const hone_options *options,
                     hone_batch_result *results, hone_report *report) {
  hone_guest guest;
  hone_report made;
  hone_batch_call call;
  hone_guest_enter(&guest);
  const double start_s = hone_now_s();
  int st = HONE_BAD_STRUCT_SIZE;
  if (hone_report_is_sized(report)) {
    memset(&call, 0, sizeof call);
    call.factors = call.solves = true;
    hone_report_begin(&made, 0, 0);
    st = solve_once(&guest, &call, batch, options, results, &made);
    hone_batch_end(&call, st, start_s, &made, report);
  }
  hone_guest_leave(&guest);
  return st;
}
