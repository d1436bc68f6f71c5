/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's options: their sizes, their values, and which of them a solver
   takes. */
#include "api/options.h"

#include "api/reason.h"

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

/* Checks ----------------------------------------------------------------- */

static int check_size(const char *name, size_t size, size_t least, size_t most,
                      hone_report *report) {
  if (size >= least && size <= most)
    return HONE_OK;
  hone_reason_add(report, "%s is %llu, not from %llu to %llu", name,
                  (unsigned long long)size, (unsigned long long)least,
                  (unsigned long long)most);
  return HONE_BAD_STRUCT_SIZE;
}

/* Would half of a pointer be taken for an address? The list has every pointer
   of hone_options. */
static bool ends_in_a_pointer(size_t size) {
  static const size_t pointers[] = {offsetof(hone_options, x0),
                                    offsetof(hone_options, columns),
                                    offsetof(hone_options, progress),
                                    offsetof(hone_options, alloc),
                                    offsetof(hone_options, progress_user),
                                    offsetof(hone_options, free),
                                    offsetof(hone_options, alloc_ctx),
                                    offsetof(hone_options, tuning),
                                    offsetof(hone_options, error_bounds)};
  bool ends = false;
  for (size_t k = 0; k < sizeof pointers / sizeof *pointers; k++)
    ends |= size > pointers[k] && size < pointers[k] + sizeof(void *);
  return ends;
}

static int check_options_size(size_t size, hone_report *report) {
  const int st = check_size("options.struct_size", size, LEAST_OPTIONS,
                            sizeof(hone_options), report);
  if (st != HONE_OK || !ends_in_a_pointer(size))
    return st;
  hone_reason_add(report, "options.struct_size is %llu, in a pointer",
                  (unsigned long long)size);
  return HONE_BAD_STRUCT_SIZE;
}

/* An option whose values are 0 to last. */
typedef struct choice {
  const char *name;
  int64_t value, last;
} choice;

static int check_choices(const choice *choices, int count,
                         hone_report *report) {
  for (int i = 0; i < count; i++)
    if (choices[i].value < 0 || choices[i].value > choices[i].last) {
      hone_reason_add(report, "%s has the unknown value %lld", choices[i].name,
                      (long long)choices[i].value);
      return HONE_BAD_OPTION;
    }
  return HONE_OK;
}

static int check_tuning(const hone_tuning *t, hone_report *report) {
  const choice choices[] = {
      {"tuning.arithmetic", t->arithmetic, HONE_ARITHMETIC_BF16},
      {"tuning.pivoting", t->pivoting, HONE_PIVOT_NONE},
      {"tuning.diagonal", t->diagonal, HONE_DIAGONAL_CPU},
      {"tuning.block_rows", t->block_rows, HONE_BLOCK_ROWS_CROUT},
      {"tuning.residuals", t->residuals, HONE_RESIDUALS_TWICE},
      {"tuning.reserved", t->reserved, 0}};
  return check_choices(choices, sizeof choices / sizeof *choices, report);
}

/* A number that is at least 0. */
typedef struct quantity {
  const char *name;
  double value;
} quantity;

static int check_quantities(const hone_options *o, hone_report *report) {
  const quantity quantities[] = {
      {"options.max_iterations", o->max_iterations},
      {"options.threads", o->threads},
      {"options.tolerance", o->tolerance},
      {"options.deadline_s", o->deadline_s},
      {"options.memory_limit_bytes", (double)o->memory_limit_bytes},
      {"options.device_memory_limit_bytes",
       (double)o->device_memory_limit_bytes}};
  for (size_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
    if (!(quantities[i].value >= 0.0)) {
      hone_reason_add(report, "%s is %g, not at least 0", quantities[i].name,
                      quantities[i].value);
      return HONE_BAD_OPTION;
    }
  return HONE_OK;
}

static int check_options(const hone_options *o, hone_report *report) {
  const choice choices[] = {
      {"options.device", o->device, HONE_DEVICE_CUDA},
      {"options.factor_precision", o->factor_precision, HONE_FACTOR_DOUBLE},
      {"options.structure", o->structure, HONE_STRUCTURE_GENERAL},
      {"options.layout", o->layout, HONE_ROW_MAJOR},
      {"options.criterion", o->criterion, HONE_CRITERION_RESIDUAL},
      {"options.trans", o->trans, HONE_CONJ_TRANS},
      {"options.devices", o->devices == -1 ? 0 : o->devices, INT32_MAX},
      {"options.triangle", o->triangle, HONE_TRIANGLE_UPPER_SYMMETRIC}};
  int st = check_choices(choices, sizeof choices / sizeof *choices, report);
  if (st == HONE_OK)
    st = check_quantities(o, report);
  if (st == HONE_OK && o->tolerance > 1.0) {
    hone_reason_add(report, "options.tolerance is %g, not at most 1",
                    o->tolerance);
    st = HONE_BAD_OPTION;
  }
  if (st == HONE_OK && (o->alloc == NULL) != (o->free == NULL)) {
    hone_reason_add(report, "options.%s is NULL and options.%s is not",
                    o->alloc == NULL ? "alloc" : "free",
                    o->alloc == NULL ? "free" : "alloc");
    st = HONE_BAD_OPTION;
  }
  return st;
}

static int take_tuning(const hone_tuning *from, hone_tuning *to,
                       hone_report *report) {
  int st = HONE_OK;
  memset(to, 0, sizeof *to);
  if (from != NULL)
    st = check_size("tuning.struct_size", from->struct_size, LEAST_TUNING,
                    sizeof *to, report);
  if (from != NULL && st == HONE_OK)
    memcpy(to, from, from->struct_size);
  to->struct_size = sizeof *to;
  return st;
}

int hone_options_take(const hone_options *from, hone_options *to,
                      hone_tuning *tuning, hone_report *report) {
  int st = HONE_OK;
  memset(to, 0, sizeof *to);
  if (from != NULL)
    st = check_options_size(from->struct_size, report);
  if (from != NULL && st == HONE_OK)
    memcpy(to, from, from->struct_size);
  to->struct_size = sizeof *to;
  if (st == HONE_OK && to->columns != NULL)
    st = check_size("options.column_size", to->column_size, LEAST_COLUMN,
                    sizeof(hone_column), report);
  if (st == HONE_OK)
    st = take_tuning(to->tuning, tuning, report);
  to->tuning = tuning;
  if (st == HONE_OK)
    st = check_options(to, report);
  if (st == HONE_OK)
    st = check_tuning(tuning, report);
  to->deterministic = to->deterministic != 0;
  to->extra_precise = to->extra_precise != 0;
  return st;
}

/* A solve and its solver -------------------------------------------------- */

bool hone_options_name_a_solve(const hone_options *o) {
  return o->trans != HONE_NO_TRANS || o->x0 != NULL || o->columns != NULL ||
         o->error_bounds != NULL;
}

/* An option as a solve has it and as the solver was created with it. */
typedef struct pair {
  const char *name;
  int64_t asked, created;
} pair;

static const char *first_disagreement(const pair *pairs, int count) {
  for (int i = 0; i < count; i++)
    if (pairs[i].asked != 0 && pairs[i].asked != pairs[i].created)
      return pairs[i].name;
  return NULL;
}

static const char *tuning_disagrees(const hone_tuning *asked,
                                    const hone_tuning *created) {
  const pair pairs[] = {
      {"tuning.arithmetic", asked->arithmetic, created->arithmetic},
      {"tuning.pivoting", asked->pivoting, created->pivoting},
      {"tuning.diagonal", asked->diagonal, created->diagonal},
      {"tuning.block_rows", asked->block_rows, created->block_rows},
      {"tuning.residuals", asked->residuals, created->residuals}};
  return first_disagreement(pairs, sizeof pairs / sizeof *pairs);
}

static bool hooks_agree(const hone_options *asked,
                        const hone_options *created) {
  const bool none = asked->alloc == NULL && asked->alloc_ctx == NULL;
  return none ||
         (asked->alloc == created->alloc && asked->free == created->free &&
          asked->alloc_ctx == created->alloc_ctx);
}

static bool tolerances_agree(double asked, double created) {
  return !(asked > 0.0) || (asked >= created && asked <= created);
}

static const char *options_disagree(const hone_options *asked,
                                    const hone_options *created) {
  const pair pairs[] = {
      {"options.device", asked->device, created->device},
      {"options.factor_precision", asked->factor_precision,
       created->factor_precision},
      {"options.structure", asked->structure, created->structure},
      {"options.layout", asked->layout, created->layout},
      {"options.triangle", asked->triangle, created->triangle},
      {"options.criterion", asked->criterion, created->criterion},
      {"options.extra_precise", asked->extra_precise, created->extra_precise},
      {"options.max_iterations", asked->max_iterations,
       created->max_iterations},
      {"options.threads", asked->threads, created->threads},
      {"options.devices", asked->devices, created->devices},
      {"options.deterministic", asked->deterministic, created->deterministic},
      {"options.memory_limit_bytes", asked->memory_limit_bytes,
       created->memory_limit_bytes},
      {"options.device_memory_limit_bytes", asked->device_memory_limit_bytes,
       created->device_memory_limit_bytes}};
  return first_disagreement(pairs, sizeof pairs / sizeof *pairs);
}

int hone_options_check_agreement(const hone_options *asked,
                                 const hone_options *created,
                                 hone_report *report) {
  const char *name = options_disagree(asked, created);
  if (name == NULL && !tolerances_agree(asked->tolerance, created->tolerance))
    name = "options.tolerance";
  if (name == NULL && !hooks_agree(asked, created))
    name = "options.alloc";
  if (name == NULL)
    name = tuning_disagrees(asked->tuning, created->tuning);
  if (name == NULL)
    return HONE_OK;
  hone_reason_add(report,
                  "%s is neither 0 nor the value with which the solver was "
                  "created",
                  name);
  return HONE_BAD_OPTION;
}
