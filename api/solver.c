/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls: arguments are checked here, once; the work is the
   ladder's. */
#include "api/hone.h"

#include "api/caller_arrays.h"
#include "api/engines.h"
#include "base/dense.h"
#include "cpu_dp/residual.h"
#include "refine/ladder.h"
#include "refine/null_vector.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hone_solver {
  hone_mem mem;
  hone_watch watch;
  hone_pool *pool;
  hone_ladder ladder;
  hone_dense dense;     /* A, which the ladder reads through its operator */
  hone_arrays stage;    /* copies of what lies on a device */
  hone_options options; /* complete: every default stands here */
  int threads;          /* of OpenBLAS during a call */
  const char *place;    /* where the first rung runs */
  char why[64];         /* why the device asked for cannot be used */
};

enum {
  MAX_ORDER = 1 << 29 /* 8 n^2 bytes fit in int64_t, n in BLAS's int */
};

/* Options --------------------------------------------------------------- */

void hone_options_init(hone_options *options, size_t struct_size) {
  if (options == NULL || struct_size < sizeof options->struct_size)
    return;
  memset(options, 0, struct_size);
  options->struct_size = struct_size;
}

static bool in_range(int32_t value, int32_t last) {
  return value >= 0 && value <= last;
}

static bool options_valid(const hone_options *o) {
  return in_range(o->device, HONE_DEVICE_CUDA) &&
         in_range(o->start, HONE_START_DOUBLE) &&
         in_range(o->layout, HONE_ROW_MAJOR) &&
         in_range(o->trans, HONE_TRANS) &&
         in_range(o->criterion, HONE_RESIDUAL) &&
         in_range(o->arithmetic, HONE_BF16) &&
         in_range(o->pivoting, HONE_PIVOT_NONE) &&
         in_range(o->residuals, HONE_RESIDUALS_HOST) &&
         in_range(o->diagonal, HONE_DIAGONAL_CPU) &&
         in_range(o->sections, HONE_SECTIONS_CROUT) &&
         in_range(o->structure, HONE_STRUCTURE_GENERAL) &&
         o->device_memory_limit_bytes >= 0 && o->threads >= 0 &&
         o->max_iterations >= 0 && o->tolerance >= 0.0 && o->tolerance <= 1.0 &&
         o->deadline_s >= 0.0 && o->memory_limit_bytes >= 0 &&
         (o->alloc == NULL) == (o->free == NULL);
}

/* The caller's options, or none, as this version knows them. */
static int take_options(const hone_options *from, hone_options *to) {
  memset(to, 0, sizeof *to);
  if (from != NULL) {
    size_t size = from->struct_size;
    if (size < sizeof size || size > sizeof *to)
      return HONE_BAD_STRUCT_SIZE;
    memcpy(to, from, size);
  }
  to->struct_size = sizeof *to;
  return options_valid(to) ? HONE_OK : HONE_BAD_OPTION;
}

/* Arguments -------------------------------------------------------------- */

/* Bytes from the first to the last element of a matrix; -1: too many. */
static int64_t extent(int64_t rows, int64_t columns, int64_t ld) {
  if (rows == 0 || columns == 0)
    return 0;
  const int64_t most = INT64_MAX / 16;
  if (columns - 1 > (most - rows) / ld)
    return -1;
  return ((columns - 1) * ld + rows) * (int64_t)sizeof(double);
}

static int check_matrix(int64_t n, int64_t columns, const double *a,
                        int64_t ld) {
  if (ld < HONE_MAX((int64_t)1, n))
    return HONE_BAD_LEADING_DIMENSION;
  if (extent(n, columns, ld) < 0)
    return HONE_BAD_LEADING_DIMENSION;
  return a == NULL && n > 0 && columns > 0 ? HONE_NULL_POINTER : HONE_OK;
}

static bool overlap(const double *a, int64_t a_bytes, const double *b,
                    int64_t b_bytes) {
  uintptr_t a0 = (uintptr_t)a, b0 = (uintptr_t)b;
  return a0 < b0 + (uintptr_t)b_bytes && b0 < a0 + (uintptr_t)a_bytes;
}

/* x may be b (or x0) itself, column upon column; nothing in between. */
static bool clashes(int64_t n, int64_t nrhs, const double *x, int64_t ldx,
                    const double *b, int64_t ldb) {
  if (b == NULL || (x == b && (ldx == ldb || nrhs == 1)))
    return false;
  return overlap(x, extent(n, nrhs, ldx), b, extent(n, nrhs, ldb));
}

static int check_vectors(int64_t n, int64_t nrhs, const double *b, int64_t ldb,
                         const double *x, int64_t ldx, const double *x0,
                         int64_t ldx0) {
  if (nrhs < 0)
    return HONE_BAD_SIZE;
  int st = check_matrix(n, nrhs, b, ldb);
  if (st == HONE_OK)
    st = check_matrix(n, nrhs, x, ldx);
  if (st == HONE_OK && x0 != NULL)
    st = check_matrix(n, nrhs, x0, ldx0);
  if (st == HONE_OK &&
      (clashes(n, nrhs, x, ldx, b, ldb) || clashes(n, nrhs, x, ldx, x0, ldx0)))
    st = HONE_BAD_OVERLAP;
  return st;
}

/* Is every entry of the n x nrhs matrix a finite number? If not, where. */
static bool all_finite(int64_t n, int64_t nrhs, const double *b, int64_t ldb,
                       hone_report *report) {
  for (int64_t j = 0; b != NULL && j < nrhs; j++) {
    double bad = 0.0;
    for (int64_t i = 0; i < n; i++)
      bad += b[i + j * ldb] * 0.0; /* NaN for NaN and Inf, else 0 */
    for (int64_t i = 0; !(bad <= 0.0) && i < n; i++)
      if (!isfinite(b[i + j * ldb])) {
        report->bad_row = i;
        report->bad_col = j;
        return false;
      }
  }
  return true;
}

/* Report and call --------------------------------------------------------- */

static void begin_report(hone_report *report, int64_t n, int64_t nrhs) {
  memset(report, 0, sizeof *report);
  report->n = n;
  report->nrhs = nrhs;
  report->bad_row = report->bad_col = -1;
  report->suspect_row = report->suspect_col = -1;
  report->backward_error = report->normwise_error =
      HONE_NAN; /* not known yet */
  report->residual_error = report->forward_error = HONE_NAN;
  report->rcond = report->growth = HONE_NAN;
}

static void log_call(const hone_report *report) {
  const char *wanted = getenv("HONE_LOG");
  if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "0") == 0)
    return;
  fprintf(stderr,
          "hone: n %lld, nrhs %lld: %s; %s; backward error %.2e; %.3f ms%s%s\n",
          (long long)report->n, (long long)report->nrhs,
          hone_status_text(report->status), report->path,
          report->backward_error, report->total_ms,
          report->reason[0] ? "; " : "", report->reason);
}

static void name_device(const hone_solver *s, hone_report *report) {
  const hone_ladder *ladder = &s->ladder;
  if (s->place == NULL)
    snprintf(report->device, sizeof report->device, "none: %.57s", s->why);
  else
    snprintf(report->device, sizeof report->device, "%s, %d thread%s, %s",
             ladder->factored ? ladder->rung[ladder->lowest_rung].engine->place
                              : s->place,
             s->threads, s->threads == 1 ? "" : "s", hone_residual_isa());
}

/* The end of every call: the report complete, in the caller's hands. */
static int end_call(const hone_solver *s, int status, double start_s,
                    hone_report *made, hone_report *out) {
  made->status = status;
  made->total_ms = 1e3 * (hone_now_s() - start_s);
  if (s != NULL) {
    made->tolerance = s->ladder.request.limit;
    made->host_bytes = s->mem.peak;
    made->threads = s->threads;
    made->from_device_bytes += s->stage.host_copy.fetched;
    made->to_device_bytes += s->stage.host_copy.stored;
    if (out != NULL)
      name_device(s, made);
  }
  log_call(made);
  if (out != NULL)
    *out = *made;
  return status;
}

/* One call's clock, and OpenBLAS's threads for its time. */
typedef struct call {
  double start_s;
  int blas_threads; /* what OpenBLAS was set to; 0: left alone */
} call;

static call begin_call(hone_solver *s) {
  call c = {.start_s = hone_now_s()};
  s->watch.start_s = c.start_s;
  s->watch.stopped = false;
  s->watch.deadline_s =
      s->options.deadline_s > 0.0 ? c.start_s + s->options.deadline_s : 0.0;
  int now = openblas_get_num_threads();
  int wanted = s->options.deterministic ? 1 : s->threads;
  if (now != wanted) {
    c.blas_threads = now;
    openblas_set_num_threads(wanted);
  }
  return c;
}

static void leave_call(const call *c) {
  if (c->blas_threads != 0)
    openblas_set_num_threads(c->blas_threads);
}

/* Solver -------------------------------------------------------------------*/

static hone_request request_of(const hone_options *o, bool one_shot) {
  static const double limits[] = {4.0 * HONE_EPS, HONE_EPS, 1e-12};
  return (hone_request){.criterion = o->criterion,
                        .limit = o->tolerance > 0.0 ? o->tolerance
                                                    : limits[o->criterion],
                        .max_iterations = o->max_iterations,
                        .structure = o->structure,
                        .extra = o->extra_precise != 0,
                        .choices = hone_choices_of(o),
                        .one_shot = one_shot};
}

/* Fills *s, whose options are taken already. */
static int open_solver(hone_solver *s, int64_t n, bool one_shot) {
  hone_step steps[HONE_MAX_RUNGS];
  const hone_options *o = &s->options;
  char why[128];
  int blas = openblas_get_num_threads();
  s->threads = o->threads > 0 ? o->threads : blas;
  s->watch.progress = o->progress;
  s->watch.user = o->progress_user;
  if (n < 0 || n > MAX_ORDER)
    return HONE_BAD_SIZE;
  int count = hone_choose_engines(o, n, one_shot, steps, why, sizeof why);
  if (count == 0) {
    memcpy(s->why, why, sizeof s->why - 1);
    return HONE_NO_DEVICE;
  }
  int general = 0; /* engine: the first that is not a direct way */
  while (hone_engine_direct(steps[general].engine))
    general++;
  s->place = steps[general].engine->place;
  hone_request request = request_of(o, one_shot);
  int st = hone_ladder_create(&s->ladder, &hone_dense_operator, n, steps, count,
                              &request, &s->mem, NULL, &s->watch);
  if (st == HONE_OK && n >= HONE_THREADS_FROM) {
    hone_pool_create(&s->pool, &s->mem, s->threads);
    s->ladder.pool = s->pool;
  }
  return st;
}

static void close_solver(hone_solver *s) {
  hone_ladder_destroy(&s->ladder);
  hone_arrays_destroy(&s->stage);
  hone_pool_destroy(&s->pool, &s->mem);
}

static void take_memory_hooks(hone_mem *mem, const hone_options *o) {
  *mem = (hone_mem){.alloc = o->alloc,
                    .free = o->free,
                    .ctx = o->alloc_ctx,
                    .limit = o->memory_limit_bytes};
}

static void swap(int64_t *a, int64_t *b) {
  int64_t t = *a;
  *a = *b;
  *b = t;
}

/* The matrix is stored column by column for the ladder: a row-major one is
   its transpose, and places in it are named the other way round. So are the
   unknowns and equations of a transposed system; trans: of the caller's. */
static void name_places(const hone_solver *s, bool trans, hone_report *report) {
  const bool row_major = s->options.layout == HONE_ROW_MAJOR;
  if (row_major) {
    swap(&report->bad_row, &report->bad_col);
    swap(&report->suspect_row, &report->suspect_col);
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

static int factor(hone_solver *s, const double *a, int64_t lda, bool update,
                  bool trans, hone_report *report) {
  hone_host_copy *host_copy = &s->stage.host_copy;
  int st = hone_arrays_take_matrix(&s->stage, &s->mem, s->ladder.n, &a, &lda);
  if (st != HONE_OK) {
    s->ladder.factored = false;
    hone_ladder_add_reason(report, "A", "no host memory for its copy");
    return st;
  }
  s->dense = (hone_dense){s->ladder.n, lda, a, host_copy};
  const hone_matrix matrix = hone_dense_matrix(&s->dense);
  st = update ? hone_ladder_update(&s->ladder, &matrix, report)
              : hone_ladder_factor(&s->ladder, &matrix, report);
  hone_host_copy_stop(host_copy);
  if (host_copy->state == HONE_HOST_COPY_FAILED)
    hone_ladder_add_reason(report, "A", "it cannot be copied from the device");
  name_places(s, trans, report);
  return st;
}

/* The vectors where they can be read, and b and x0 seen to be finite. */
static int take_vectors(hone_solver *s, hone_vectors *v, hone_report *report) {
  const int st = hone_arrays_take_vectors(&s->stage, &s->mem, v);
  if (st != HONE_OK) {
    hone_ladder_add_reason(report, "b, x", "they cannot be copied to the host");
    return st;
  }
  return all_finite(v->n, v->nrhs, v->b, v->ldb, report) &&
                 all_finite(v->n, v->nrhs, v->x0, v->ldx0, report)
             ? HONE_OK
             : HONE_NOT_FINITE_B;
}

static int return_vectors(hone_solver *s, int status, hone_report *report) {
  const int st = hone_arrays_return(&s->stage, status);
  if (st != status)
    hone_ladder_add_reason(report, "x", "it cannot be copied to the device");
  return st;
}

static int solve(hone_solver *s, bool trans, const hone_vectors *v,
                 hone_report *report) {
  bool stored_trans = trans != (s->options.layout == HONE_ROW_MAJOR);
  int st = hone_ladder_solve(&s->ladder, stored_trans, v->nrhs, v->b, v->ldb,
                             v->x, v->ldx, v->x0, v->ldx0, v->columns, report);
  name_places(s, trans, report);
  return st;
}

int hone_solver_create(hone_solver **solver, int64_t n,
                       const hone_options *options) {
  hone_options o;
  if (solver == NULL)
    return HONE_NULL_POINTER;
  *solver = NULL;
  int st = take_options(options, &o);
  if (st != HONE_OK)
    return st;
  hone_mem mem;
  take_memory_hooks(&mem, &o);
  hone_solver *s = hone_mem_get(&mem, sizeof *s);
  if (s == NULL)
    return HONE_NO_MEMORY;
  *s = (hone_solver){.mem = mem, .options = o};
  st = open_solver(s, n, false);
  if (st == HONE_OK)
    *solver = s;
  else
    hone_solver_destroy(&s);
  return st;
}

void hone_solver_destroy(hone_solver **solver) {
  if (solver == NULL || *solver == NULL)
    return;
  close_solver(*solver);
  hone_mem mem = (*solver)->mem;
  hone_mem_put(&mem, *solver);
  *solver = NULL;
}

static int factor_call(hone_solver *s, const double *a, int64_t lda,
                       bool update, hone_report *report) {
  hone_report made;
  double start_s = hone_now_s();
  begin_report(&made, s ? s->ladder.n : 0, 0);
  int st =
      s ? check_matrix(s->ladder.n, s->ladder.n, a, lda) : HONE_NULL_POINTER;
  if (st == HONE_OK && s->ladder.n > 0) {
    call c = begin_call(s);
    st = factor(s, a, lda, update, false, &made);
    leave_call(&c);
  }
  return end_call(s, st, start_s, &made, report);
}

int hone_solver_factor(hone_solver *solver, const double *a, int64_t lda,
                       hone_report *report) {
  return factor_call(solver, a, lda, false, report);
}

int hone_solver_update(hone_solver *solver, const double *a, int64_t lda,
                       hone_report *report) {
  return factor_call(solver, a, lda, true, report);
}

/* Of arguments that were checked by themselves. */
static int solve_call(hone_solver *s, bool trans, hone_vectors *v,
                      hone_report *report) {
  const int64_t n = v->n;
  if (!s->ladder.factored)
    return HONE_NOT_FACTORED;
  if (overlap(v->x, extent(n, v->nrhs, v->ldx), s->stage.a,
              extent(n, n, s->stage.lda)))
    return HONE_BAD_OVERLAP;
  int st = take_vectors(s, v, report);
  if (st != HONE_OK)
    return st;
  call c = begin_call(s);
  st = solve(s, trans, v, report);
  st = return_vectors(s, st, report);
  leave_call(&c);
  return st;
}

int hone_solver_solve(hone_solver *s, int32_t trans, int64_t nrhs,
                      const double *b, int64_t ldb, double *x, int64_t ldx,
                      const double *x0, int64_t ldx0, hone_column *columns,
                      hone_report *report) {
  hone_report made;
  double start_s = hone_now_s();
  begin_report(&made, s ? s->ladder.n : 0, nrhs);
  int st = HONE_NULL_POINTER;
  if (s != NULL)
    st = in_range(trans, HONE_TRANS)
             ? check_vectors(s->ladder.n, nrhs, b, ldb, x, ldx, x0, ldx0)
             : HONE_BAD_OPTION;
  if (st == HONE_OK && s->ladder.n > 0 && nrhs > 0) {
    hone_vectors v = {s->ladder.n, nrhs, b, x0, x, ldb, ldx, ldx0, columns};
    st = solve_call(s, trans == HONE_TRANS, &v, &made);
  }
  return end_call(s, st, start_s, &made, report);
}

/* The one call ------------------------------------------------------------ */

static int check_system(const hone_options *o, int64_t n, int64_t nrhs,
                        const double *a, int64_t lda, const double *b,
                        int64_t ldb, const double *x, int64_t ldx) {
  if (n < 0 || n > MAX_ORDER || nrhs < 0)
    return HONE_BAD_SIZE;
  int st = check_matrix(n, nrhs > 0 ? n : 0, a, lda);
  if (st == HONE_OK)
    st = check_vectors(n, nrhs, b, ldb, x, ldx, o->x0, o->ldx0);
  if (st != HONE_OK || n == 0 || nrhs == 0)
    return st;
  return overlap(x, extent(n, nrhs, ldx), a, extent(n, n, lda))
             ? HONE_BAD_OVERLAP
             : HONE_OK;
}

int hone_solve(int64_t n, int64_t nrhs, const double *a, int64_t lda,
               const double *b, int64_t ldb, double *x, int64_t ldx,
               const hone_options *options, hone_report *report) {
  hone_report made;
  hone_solver s = {.pool = NULL};
  double start_s = hone_now_s();
  begin_report(&made, n, nrhs);
  int st = take_options(options, &s.options);
  if (st == HONE_OK)
    st = check_system(&s.options, n, nrhs, a, lda, b, ldb, x, ldx);
  if (st != HONE_OK || n == 0 || nrhs == 0) {
    if (st == HONE_OK) { /* nothing to solve */
      made.tolerance = request_of(&s.options, true).limit;
      made.backward_error = made.normwise_error = 0.0;
      made.residual_error = made.forward_error = 0.0;
      made.digits = 16;
    }
    return end_call(NULL, st, start_s, &made, report);
  }
  const hone_options *o = &s.options;
  const bool trans = o->trans == HONE_TRANS;
  hone_vectors v = {n, nrhs, b, o->x0, x, ldb, ldx, o->ldx0, o->columns};
  take_memory_hooks(&s.mem, &s.options);
  st = take_vectors(&s, &v, &made);
  const bool taken = st == HONE_OK;
  if (taken)
    st = open_solver(&s, n, true);
  s.ladder.request.columns = nrhs;
  if (st == HONE_OK) {
    call c = begin_call(&s);
    st = factor(&s, a, lda, false, trans, &made);
    if (st == HONE_OK)
      st = return_vectors(&s, solve(&s, trans, &v, &made), &made);
    leave_call(&c);
  }
  close_solver(&s);
  return end_call(taken ? &s : NULL, st, start_s, &made, report);
}

int hone_memory_needed(int64_t n, int64_t nrhs, const hone_options *options,
                       int64_t *single_bytes, int64_t *double_bytes) {
  hone_options o;
  hone_step steps[HONE_MAX_RUNGS];
  char why[128];
  int st = take_options(options, &o);
  if (st != HONE_OK)
    return st;
  if (n < 0 || n > MAX_ORDER || nrhs < 0)
    return HONE_BAD_SIZE;
  int count = hone_choose_engines(&o, n, true, steps, why, sizeof why);
  if (count == 0)
    return HONE_NO_DEVICE;
  int64_t columns = HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS), most = 0;
  /* Alignment of the large blocks and the pool, generously. */
  int64_t base =
      hone_ladder_bytes(&hone_dense_operator, n, nrhs, o.extra_precise != 0) +
      (int64_t)sizeof(hone_solver) + 3 * (1 << 21) + (1 << 16);
  for (int r = 0; r < count - 1; r++)
    if (steps[r].engine->precision == 32 || hone_engine_direct(steps[r].engine))
      most = HONE_MAX(most, steps[r].engine->bytes(n, columns));
  if (single_bytes)
    *single_bytes = base + most;
  if (double_bytes)
    *double_bytes =
        base + HONE_MAX(most, steps[count - 1].engine->bytes(n, columns));
  return HONE_OK;
}

int hone_device_memory_needed(int64_t n, const hone_options *options,
                              int64_t *with_residuals, int64_t *without) {
  hone_options o;
  int st = take_options(options, &o);
  if (st != HONE_OK)
    return st;
  if (n < 0 || n > MAX_ORDER)
    return HONE_BAD_SIZE;
  if (with_residuals)
    *with_residuals = hone_engines_device_bytes(&o, n, true);
  if (without)
    *without = hone_engines_device_bytes(&o, n, false);
  return HONE_OK;
}
