/* SPDX-License-Identifier: BSD-3-Clause */
/* Which arrays of a batch may not overlap. Nothing is known of the arrays that
   lists name, nor of those of several orders. */
#include "api/batch.h"

#include <string.h>

/* With strides, the x of two systems may not overlap: one lies behind the
   other, or in other rows of one array. Beside lists nobody has looked at the
   leading dimension; a wrong one is a matter of each system. */
int hone_batch_check_solutions(const hone_batch *b, hone_report *report) {
  if (b->x_list != NULL || b->orders != NULL || b->count <= 1 || b->n < 1 ||
      b->nrhs < 1 ||
      hone_check_matrix(b->n, b->nrhs, b->x, b->ldx, "x", NULL) != HONE_OK)
    return HONE_OK;
  const int64_t span = (b->nrhs - 1) * b->ldx + b->n;
  const int64_t rows = (b->count - 1) * b->stride_x + b->n;
  if (b->stride_x >= span || (b->stride_x >= b->n && rows <= b->ldx))
    return HONE_OK;
  hone_reason_add(report,
                  "batch.stride_x is %lld, less than the %lld numbers of one x",
                  (long long)b->stride_x, (long long)span);
  return HONE_BAD_OVERLAP;
}

/* The memory from the first to the last number of all systems' arrays, given by
   a stride; of one system 'columns' columns of n. */
typedef struct reach {
  uintptr_t from, to;
} reach;

static reach reach_of(const hone_batch *b, const void *first, int64_t stride,
                      int64_t columns, int64_t ld) {
  const int64_t numbers = (b->count - 1) * stride + (columns - 1) * ld + b->n;
  return (reach){(uintptr_t)first,
                 (uintptr_t)first + (uintptr_t)numbers * sizeof(hone_entry)};
}

static bool are_apart(reach a, reach b) {
  return a.to <= b.from || b.to <= a.from;
}

/* Do all x lie apart from all a, and from all b or in their places? */
bool hone_batch_all_apart(const hone_batch *b) {
  const reach x = reach_of(b, b->x, b->stride_x, b->nrhs, b->ldx);
  const bool in_place =
      b->x == b->b && b->ldx == b->ldb && b->stride_x == b->stride_b;
  return are_apart(x, reach_of(b, b->a, b->stride_a, b->n, b->lda)) &&
         (in_place ||
          are_apart(x, reach_of(b, b->b, b->stride_b, b->nrhs, b->ldb)));
}

/* With a stride of 0 all systems read one array: x may not lie in it. */
int hone_batch_check_shared(const hone_batch_call *call, hone_report *report) {
  const hone_batch *b = &call->batch;
  const reach x = reach_of(b, b->x, b->stride_x, b->nrhs, b->ldx);
  const bool a_is_apart =
      b->stride_a > 0 ||
      are_apart(x, reach_of(b, b->a, b->stride_a, b->n, b->lda));
  const bool b_is_apart =
      b->stride_b > 0 ||
      are_apart(x, reach_of(b, b->b, b->stride_b, b->nrhs, b->ldb));
  if (b->count <= 1 || b->n < 1 || b->nrhs < 1 || (a_is_apart && b_is_apart))
    return HONE_OK;
  hone_reason_add(report, "x overlaps %s, which all systems share",
                  a_is_apart ? "b" : "a");
  return HONE_BAD_OVERLAP;
}

/* The memory of an array, and its name. */
typedef struct named {
  const char *name;
  reach at;
} named;

static named bytes_at(const char *name, const void *first, int64_t count,
                      size_t size) {
  const uintptr_t from = (uintptr_t)first;
  return (named){name,
                 {from, first != NULL ? from + (size_t)count * size : from}};
}

/* Returns HONE_BAD_OVERLAP if 'out' overlaps one of the others. */
static int check_apart(const named *out, const named *others, int count,
                       hone_report *report) {
  for (int i = 0; i < count; i++)
    if (out->at.from < out->at.to && others[i].at.from < others[i].at.to &&
        !are_apart(out->at, others[i].at)) {
      hone_reason_add(report, "%s overlaps %s", out->name, others[i].name);
      return HONE_BAD_OVERLAP;
    }
  return HONE_OK;
}

/* The memory of all systems' arrays of one kind: nothing where a list or orders
   say where they lie, or the leading dimension is wrong. */
static named numbers_at(const char *name, const hone_batch *b, int64_t columns,
                        const hone_entry *first, int64_t ld, int64_t stride) {
  const bool known =
      b->orders == NULL && b->n > 0 && columns > 0 && stride >= 0 &&
      stride <= INT64_MAX / 4 / (int64_t)sizeof *first / b->count &&
      hone_check_matrix(b->n, columns, first, ld, name, NULL) == HONE_OK;
  return known ? (named){name, reach_of(b, first, stride, columns, ld)}
               : bytes_at(name, NULL, 0, 0);
}

int hone_batch_check_outputs(const hone_batch_call *call,
                             hone_batch_result **results, hone_report *report) {
  const hone_batch *b = &call->batch;
  const bool solves = call->solves && b->nrhs > 0;
  const int64_t columns = solves ? b->nrhs : 0;
  if (b->count == 0)
    return HONE_OK;
  const named out[] = {bytes_at("results", *results, b->count, b->result_size),
                       bytes_at("options.columns", call->options.columns,
                                solves ? b->count * b->nrhs : 0,
                                call->options.column_size)};
  const named others[] = {
      out[1],
      numbers_at("a", b, b->n, b->a_list ? NULL : b->a, b->lda, b->stride_a),
      numbers_at("b", b, columns, b->b_list ? NULL : b->b, b->ldb, b->stride_b),
      numbers_at("x", b, columns, b->x_list ? NULL : b->x, b->ldx, b->stride_x),
      bytes_at("batch.orders", b->orders, b->count, sizeof *b->orders),
      bytes_at("batch.a_list", b->a_list, b->count, sizeof *b->a_list),
      bytes_at("batch.b_list", b->b_list, solves ? b->count : 0,
               sizeof *b->b_list),
      bytes_at("batch.x_list", b->x_list, solves ? b->count : 0,
               sizeof *b->x_list)};
  const int count = sizeof others / sizeof *others;
  int st = check_apart(&out[0], others, count, report);
  if (st != HONE_OK)
    *results = NULL;
  return st == HONE_OK ? check_apart(&out[1], others + 1, count - 1, report)
                       : st;
}

void hone_batch_refuse_unchecked(const hone_batch *b,
                                 const hone_options *options, int st,
                                 hone_batch_result *results) {
  hone_batch_call call;
  memset(&call, 0, sizeof call);
  call.batch = *b;
  call.solves = b->nrhs > 0 && b->nrhs <= HONE_MAX_ORDER &&
                b->count <= INT64_MAX / (int64_t)sizeof(hone_column) / b->nrhs;
  call.options.columns = options != NULL ? options->columns : NULL;
  call.options.column_size = options != NULL ? options->column_size : 0;
  (void)hone_batch_check_outputs(&call, &results, NULL);
  hone_batch_refuse(b, st, results);
}
