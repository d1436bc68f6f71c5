/* SPDX-License-Identifier: BSD-3-Clause */
/* One small system by the kernels that solve batches (cpu_batch/). They take
   what goes as it does for most systems; whatever they leave is a solver's. */
#include "api/solver.h"

#include "base/probe_factor.h"
#include "base/seed.h"
#include "base/text.h"
#include "cpu_batch/block.h"
#include "cpu_dp/structure.h"
#include "refine/bounds.h"

#include <string.h>

enum {
  COLUMNS_UP_TO = 16, /* with more of them a solver is about as fast */
  CORRECTIONS = 3,    /* at most */
  ARENA_MORE = 256    /* bytes, for what the memory's account adds */
};

/* Does the call ask for nothing that the kernels do not have? With
   'deterministic', hone_solve gives the bits of a kept solver. */
static bool may_take(const hone_options *o, const hone_vectors *v) {
  return v->n <= HONE_BLOCK_UP_TO && v->nrhs <= COLUMNS_UP_TO &&
         o->device != HONE_DEVICE_CUDA &&
         o->factor_precision != HONE_FACTOR_SINGLE &&
         o->criterion == HONE_CRITERION_COMPONENTWISE && !o->extra_precise &&
         o->x0 == NULL && o->error_bounds == NULL && o->progress == NULL &&
         !(o->deadline_s > 0.0) && !o->deterministic;
}

static bool on_device(const hone_entry *a, const hone_vectors *v) {
  const void *const arrays[] = {a, v->b, v->x != v->b ? v->x : NULL,
                                v->columns};
  hone_device_memory place;
  bool any = false;
  for (int k = 0; hone_device_memory_exists() && !any && k < 4; k++)
    any = arrays[k] != NULL && hone_device_memory_of(arrays[k], &place);
  return any;
}

/* Is every b finite, and not 0? The kernels take no other. */
static bool sides_serve(const hone_vectors *v) {
  bool serve = true;
  for (int64_t c = 0; serve && c < v->nrhs; c++) {
    const double *part = (const double *)(v->b + c * v->ldb);
    double largest = 0.0, bad = 0.0;
    for (int64_t i = 0; i < HONE_PARTS * v->n; i++) {
      largest = HONE_MAX(largest, fabs(part[i]));
      bad += part[i] * 0.0;
    }
    serve = largest > 0.0 && bad >= 0.0; /* no NaN */
  }
  return serve;
}

/* Has A a structure that the options let the library make use of? */
static bool has_structure(const hone_options *o, int64_t n, const hone_entry *a,
                          int64_t lda) {
  const hone_dense dense = {.n = n, .lda = lda, .a = a};
  hone_structure s;
  if (o->structure != HONE_STRUCTURE_AUTO)
    return false;
  hone_structure_find(NULL, &dense, HONE_SEARCH_ZEROS, NULL, &s);
  return s.lower == 0 || s.upper == 0 || hone_band_pays(s.lower, s.upper, n);
}

/* A system while it is solved. */
typedef struct small {
  const hone_options *options;
  const hone_vectors *v;
  const hone_block_kernels *kernels;
  hone_block block;
  hone_entry *x; /* n x nrhs: the caller's, or room for several columns, which
                    are given to the caller when all are accepted */
  int64_t ldx;
  double limit;
  hone_column worst; /* of all columns */
  int passes;        /* over A */
} small;

static bool is_turned(const hone_options *o) {
  return (o->layout == HONE_ROW_MAJOR) != (o->trans != HONE_NO_TRANS);
}

static bool factor(small *s, const hone_entry *a, int64_t lda) {
  const hone_options *o = s->options;
  const bool turned = is_turned(o);
  const hone_block_matrix matrix = {.at = a,
                                    .row = turned ? lda : 1,
                                    .column = turned ? 1 : lda,
                                    .turned = turned,
                                    .conjugate = o->trans == HONE_CONJ_TRANS};
  uint64_t seed = (uint64_t)s->v->n + hone_process_seed();
  s->kernels->factor(&s->block, &matrix, hone_random_bits(&seed));
  return s->block.lane[0].serves;
}

static void take_column(small *s, int64_t c, const hone_block_column *from) {
  hone_column *worst = &s->worst;
  const hone_column column = {.status = HONE_OK,
                              .iterations = from->corrections,
                              .precision = 64,
                              .digits = hone_bounds_digits(from->forward),
                              .backward_error = from->componentwise,
                              .normwise_error = from->normwise,
                              .residual_error = from->residual,
                              .forward_error = from->forward};
  worst->iterations = HONE_MAX(worst->iterations, column.iterations);
  worst->backward_error =
      HONE_MAX(worst->backward_error, column.backward_error);
  worst->normwise_error =
      HONE_MAX(worst->normwise_error, column.normwise_error);
  worst->residual_error =
      HONE_MAX(worst->residual_error, column.residual_error);
  worst->forward_error = HONE_MAX(worst->forward_error, column.forward_error);
  s->passes += column.iterations + 1;
  if (s->v->columns != NULL)
    memcpy((char *)s->v->columns + (size_t)c * s->v->column_size, &column,
           s->v->column_size);
}

/* Returns false if a column was not accepted. */
static bool solve(small *s) {
  const hone_vectors *v = s->v;
  const int most = s->options->max_iterations;
  for (int64_t c = 0; c < v->nrhs; c++) {
    hone_block_solve job = {
        .b = {v->b + c * v->ldb},
        .x = {s->x + c * s->ldx},
        .limit = s->limit,
        .corrections = most > 0 ? HONE_MIN(most, CORRECTIONS) : CORRECTIONS};
    s->kernels->solve(&s->block, &job);
    if (!job.column[0].accepted)
      return false;
    take_column(s, c, &job.column[0]);
  }
  for (int64_t c = 0; s->x != v->x && c < v->nrhs; c++)
    memcpy(v->x + c * v->ldx, s->x + c * s->ldx, (size_t)v->n * sizeof *v->x);
  return true;
}

/* ---- The report --------------------------------------------------------- */

static void report_matrix(small *s, hone_report *report) {
  const hone_block_sizes *sizes = &s->block.sizes;
  s->kernels->describe(&s->block, is_turned(s->options));
  report->norm1 = sizes->norm;
  report->rcond = HONE_MIN(sizes->rcond, 1.0); /* rounding errors apart */
  report->growth = sizes->growth;
  report->max_abs = sizes->max_abs;
  report->min_abs = sizes->min_abs;
  report->scale_exponent_min = sizes->exponent_min;
  report->scale_exponent_max = sizes->exponent_max;
}

static void report_way(const small *s, hone_report *report) {
  const int corrections = s->worst.iterations;
  hone_text path = hone_text_begin(report->path, sizeof report->path);
  hone_text_add(&path, s->block.definite ? "double Cholesky, " : "double LU, ");
  hone_text_add_count(&path, corrections);
  hone_text_add(&path, corrections == 1 ? " refinement" : " refinements");
  hone_text device = hone_text_begin(report->device, sizeof report->device);
  hone_text_add(&device, "CPU, 1 thread, ");
  hone_text_add(&device, s->kernels->isa);
}

static void report_columns(const small *s, hone_report *report) {
  report->accepted = (int32_t)s->v->nrhs;
  report->backward_error = s->worst.backward_error;
  report->normwise_error = s->worst.normwise_error;
  report->residual_error = s->worst.residual_error;
  report->forward_error = s->worst.forward_error;
  report->bound_failure = HONE_PROBE_FAILURE_ALL;
  report->digits = hone_bounds_digits(s->worst.forward_error);
  report->iterations = s->worst.iterations;
  report->precision = 64;
  report->tolerance = s->limit;
  report->threads = 1;
  report->host_passes = s->passes;
}

/* ---- The call ----------------------------------------------------------- */

/* There is room; described: the caller wants a report. */
static bool solve_in(small *s, const hone_entry *a, int64_t lda, bool described,
                     hone_report *report) {
  const double start_s = hone_now_s();
  if (!factor(s, a, lda))
    return false;
  const double factored_s = hone_now_s();
  if (!solve(s))
    return false;
  report->factor_ms = 1e3 * (factored_s - start_s);
  report->refine_ms = 1e3 * (hone_now_s() - factored_s);
  if (described)
    report_matrix(s, report);
  report_columns(s, report);
  report_way(s, report);
  return true;
}

bool hone_solve_small(const hone_options *o, const hone_vectors *v,
                      const hone_entry *a, int64_t lda, bool described,
                      hone_report *report) {
  if (!may_take(o, v) || on_device(a, v) || !sides_serve(v))
    return false;
  small s = {.options = o,
             .v = v,
             .kernels = hone_rows_kernels_here(),
             .x = v->x,
             .ldx = v->ldx,
             .limit = hone_request_of(o, true).limit};
  const int64_t bytes = (s.kernels->bytes(v->n) + 63) / 64 * 64;
  const int64_t room =
      v->nrhs > 1 ? v->n * v->nrhs * (int64_t)sizeof(hone_entry) : 0;
  hone_mem mem = hone_memory_of(o);
  mem.keeps = true;
  hone_mem_open_arena(&mem,
                      bytes + room + hone_whole_bytes(o, v->n) + ARENA_MORE);
  hone_entry *whole = NULL;
  char *memory = NULL;
  bool solved = false;
  if (hone_whole_take(o, NULL, &mem, v->n, &a, &lda, &whole) == HONE_OK &&
      !has_structure(o, v->n, a, lda))
    memory = hone_mem_get(&mem, (size_t)(bytes + room));
  if (memory != NULL) {
    s.block =
        (hone_block){.n = v->n,
                     .memory = memory,
                     .definite = o->structure == HONE_STRUCTURE_SPD &&
                                 o->factor_precision != HONE_FACTOR_DOUBLE,
                     .alone = true};
    if (room > 0) {
      s.x = (hone_entry *)(void *)(memory + bytes);
      s.ldx = v->n;
    }
    solved = solve_in(&s, a, lda, described, report);
    report->host_bytes = mem.peak;
  }
  hone_mem_put(&mem, memory);
  hone_mem_put(&mem, whole);
  hone_mem_close_arena(&mem);
  return solved;
}
