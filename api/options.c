/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's options: their sizes, their values, and which of them a solver
   takes. */
#include "api/options.h"

#include <string.h>

/* The fields of the first version; every version has them. */
enum {
  LEAST_OPTIONS = sizeof(size_t),
  LEAST_TUNING = sizeof(size_t),
  LEAST_COLUMN = offsetof(hone_column, normwise_error)
};

void hone_options_init(hone_options *options, size_t struct_size) {
  if (options != NULL && struct_size >= LEAST_OPTIONS) {
    memset(options, 0, struct_size);
    options->struct_size = struct_size;
  }
}

static bool in_range(int32_t value, int32_t last) {
  return value >= 0 && value <= last;
}

static bool between(size_t least, size_t size, size_t most) {
  return size >= least && size <= most;
}

static bool tuning_is_valid(const hone_tuning *t) {
  return in_range(t->arithmetic, HONE_ARITHMETIC_BF16) &&
         in_range(t->pivoting, HONE_PIVOT_NONE) &&
         in_range(t->diagonal, HONE_DIAGONAL_CPU) &&
         in_range(t->block_rows, HONE_BLOCK_ROWS_CROUT) &&
         in_range(t->residuals, HONE_RESIDUALS_HOST) && t->reserved == 0;
}

static bool options_are_valid(const hone_options *o) {
  return in_range(o->device, HONE_DEVICE_CUDA) &&
         in_range(o->factor_precision, HONE_FACTOR_DOUBLE) &&
         in_range(o->structure, HONE_STRUCTURE_GENERAL) &&
         in_range(o->layout, HONE_ROW_MAJOR) &&
         in_range(o->criterion, HONE_CRITERION_RESIDUAL) &&
         in_range(o->trans, HONE_TRANS) && o->max_iterations >= 0 &&
         o->threads >= 0 && o->tolerance >= 0.0 && o->tolerance <= 1.0 &&
         o->deadline_s >= 0.0 && o->memory_limit_bytes >= 0 &&
         o->device_memory_limit_bytes >= 0 &&
         (o->alloc == NULL) == (o->free == NULL) && o->reserved == 0;
}

static int take_tuning(const hone_tuning *from, hone_tuning *to) {
  int st = HONE_OK;
  memset(to, 0, sizeof *to);
  if (from != NULL && !between(LEAST_TUNING, from->struct_size, sizeof *to))
    st = HONE_BAD_STRUCT_SIZE;
  else if (from != NULL)
    memcpy(to, from, from->struct_size);
  to->struct_size = sizeof *to;
  return st;
}

int hone_options_take(const hone_options *from, hone_options *to,
                      hone_tuning *tuning) {
  int st = HONE_OK;
  memset(to, 0, sizeof *to);
  if (from != NULL && !between(LEAST_OPTIONS, from->struct_size, sizeof *to))
    st = HONE_BAD_STRUCT_SIZE;
  else if (from != NULL)
    memcpy(to, from, from->struct_size);
  to->struct_size = sizeof *to;
  if (to->columns != NULL &&
      !between(LEAST_COLUMN, to->column_size, sizeof(hone_column)))
    st = HONE_BAD_STRUCT_SIZE;
  if (st == HONE_OK)
    st = take_tuning(to->tuning, tuning);
  to->tuning = tuning;
  if (st == HONE_OK && !(options_are_valid(to) && tuning_is_valid(tuning)))
    st = HONE_BAD_OPTION;
  to->deterministic = to->deterministic != 0;
  to->extra_precise = to->extra_precise != 0;
  return st;
}

bool hone_options_name_a_solve(const hone_options *o) {
  return o->trans != HONE_NO_TRANS || o->x0 != NULL || o->columns != NULL;
}

static bool zero_or(int64_t asked, int64_t created) {
  return asked == 0 || asked == created;
}

static bool tunings_agree(const hone_tuning *asked,
                          const hone_tuning *created) {
  return zero_or(asked->arithmetic, created->arithmetic) &&
         zero_or(asked->pivoting, created->pivoting) &&
         zero_or(asked->diagonal, created->diagonal) &&
         zero_or(asked->block_rows, created->block_rows) &&
         zero_or(asked->residuals, created->residuals);
}

static bool hooks_agree(const hone_options *asked,
                        const hone_options *created) {
  const bool none = asked->alloc == NULL && asked->alloc_ctx == NULL;
  return none ||
         (asked->alloc == created->alloc && asked->free == created->free &&
          asked->alloc_ctx == created->alloc_ctx);
}

bool hone_options_agree(const hone_options *asked,
                        const hone_options *created) {
  const double tolerance = asked->tolerance;
  return zero_or(asked->device, created->device) &&
         zero_or(asked->factor_precision, created->factor_precision) &&
         zero_or(asked->structure, created->structure) &&
         zero_or(asked->layout, created->layout) &&
         zero_or(asked->criterion, created->criterion) &&
         zero_or(asked->extra_precise, created->extra_precise) &&
         zero_or(asked->max_iterations, created->max_iterations) &&
         zero_or(asked->threads, created->threads) &&
         zero_or(asked->deterministic, created->deterministic) &&
         (!(tolerance > 0.0) || (tolerance >= created->tolerance &&
                                 tolerance <= created->tolerance)) &&
         zero_or(asked->memory_limit_bytes, created->memory_limit_bytes) &&
         zero_or(asked->device_memory_limit_bytes,
                 created->device_memory_limit_bytes) &&
         hooks_agree(asked, created) &&
         tunings_agree(asked->tuning, created->tuning);
}
