/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a batch, and those of its right-hand sides, on their way to
   the caller's arrays, which lie on the host or on a device, and may have
   shorter entries. */
#include "api/batch.h"

#include <string.h>

enum {
  TOGETHER = 128, /* results that are refused at once */
  TOLD = -1
}; /* the precision of a result that is somewhere else */

hone_batch_result hone_batch_no_result(int st) {
  return (hone_batch_result){.status = st,
                             .backward_error = HONE_NAN,
                             .normwise_error = HONE_NAN,
                             .residual_error = HONE_NAN,
                             .forward_error = HONE_INF,
                             .rcond = HONE_NAN,
                             .row = -1,
                             .col = -1,
                             .log_abs_det = HONE_NAN,
                             .det_re = HONE_NAN,
                             .det_im = HONE_NAN};
}

hone_batch_result hone_batch_told(void) {
  hone_batch_result r = hone_batch_best();
  r.precision = TOLD;
  return r;
}

bool hone_batch_make_results(hone_batch_call *call) {
  if (call->results == NULL)
    call->results = hone_batch_memory(call, (size_t)call->batch.count *
                                                sizeof *call->results);
  return call->results != NULL;
}

/* Copies 'count' results to those from 'first' on in the caller's array, which
   lies on the host or, if place is not NULL, there. */
static int give(const hone_batch *b, const hone_batch_result *from,
                int64_t first, int64_t count, hone_batch_result *results,
                const hone_device_memory *place) {
  const size_t size = b->result_size;
  char *to = (char *)results + (size_t)first * size;
  if (place != NULL)
    return hone_device_memory_store(place, size, (size_t)count, from,
                                    sizeof *from, to, size);
  for (int64_t k = 0; k < count; k++)
    memcpy(to + (size_t)k * size, &from[k], size);
  return HONE_OK;
}

int hone_batch_give(const hone_batch_call *call, hone_batch_result *results) {
  const int64_t count = call->batch.count;
  const hone_device_memory *place =
      call->results_there != NULL ? &call->results_place : NULL;
  int st = HONE_OK;
  if (results == NULL || call->results == NULL)
    return HONE_OK;
  for (int64_t from = 0, to; from < count && st == HONE_OK; from = to) {
    const bool told = call->results[from].precision == TOLD;
    to = from + 1;
    while (to < count && (call->results[to].precision == TOLD) == told)
      to++;
    if (!told)
      st = give(&call->batch, call->results + from, from, to - from, results,
                place);
  }
  return st == HONE_OK ? HONE_OK : HONE_DEVICE_FAILED;
}

void hone_batch_refuse(const hone_batch *b, int st,
                       hone_batch_result *results) {
  hone_batch_result same[TOGETHER];
  hone_device_memory place;
  const bool there = hone_device_memory_of(results, &place);
  for (int k = 0; k < TOGETHER; k++)
    same[k] = hone_batch_no_result(st);
  for (int64_t k = 0; results != NULL && k < b->count; k += TOGETHER)
    (void)give(b, same, k, HONE_MIN(b->count - k, (int64_t)TOGETHER), results,
               there ? &place : NULL);
}

static int64_t columns_of(const hone_batch_call *call) {
  return call->solves ? call->batch.count * call->batch.nrhs : 0;
}

int hone_batch_open_columns(hone_batch_call *call) {
  hone_options *o = &call->options;
  const size_t bytes = (size_t)columns_of(call) * o->column_size;
  if (bytes == 0 || o->columns == NULL ||
      !hone_device_memory_of(o->columns, &call->columns_place))
    return HONE_OK;
  hone_column *const own = hone_batch_memory(call, bytes);
  if (own == NULL)
    return HONE_NO_MEMORY;
  o->columns = own;
  return HONE_OK;
}

int hone_batch_give_columns(const hone_batch_call *call, hone_column *columns) {
  const hone_options *o = &call->options;
  return o->columns == columns
             ? HONE_OK
             : hone_device_memory_store(&call->columns_place, o->column_size,
                                        (size_t)columns_of(call), o->columns,
                                        o->column_size, columns,
                                        o->column_size);
}

void hone_batch_close_columns(hone_batch_call *call, hone_column *columns) {
  if (call->options.columns != columns)
    hone_mem_put(&call->mem, call->options.columns);
  call->options.columns = columns;
}
