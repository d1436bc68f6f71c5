/* SPDX-License-Identifier: BSD-3-Clause */
/* A portion of a batch on its way to a CUDA device. Threads share the copies
   that are made on the host. */
#include "api/batch_device.h"

#include <stdatomic.h>
#include <string.h>

enum {
  ALIGNMENT = 256,         /* bytes, of every array of a portion */
  CORRECTIONS = 6,         /* at most */
  SENT_TOGETHER = 16 << 10 /* a thread sends so many bytes at once */
};

static size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t hone_portion_numbers(const hone_device_run *r, int which, int64_t n) {
  return (size_t)n * (size_t)(which == HONE_OF_A ? n : r->call->batch.nrhs);
}

/* The bytes that a system takes in a slot, on its way there and back. */
static size_t in_bytes(const hone_device_run *r, int which, int64_t n) {
  if (r->there[which])
    return r->alike ? 0 : sizeof(void *);
  return which == HONE_OF_X
             ? 0
             : hone_portion_numbers(r, which, n) * sizeof(hone_entry);
}

static size_t all_in_bytes(const hone_device_run *r, int64_t n) {
  size_t bytes = 0;
  for (int which = 0; which < HONE_KINDS; which++)
    bytes += in_bytes(r, which, n);
  return bytes;
}

size_t hone_portion_x_bytes(const hone_device_run *r, int64_t n) {
  const bool direct = r->there[HONE_OF_X] && r->call->batch.nrhs == 1;
  return direct ? 0
                : hone_portion_numbers(r, HONE_OF_X, n) * sizeof(hone_entry);
}

static size_t determinant_bytes(const hone_device_run *r) {
  return r->call->batch.determinants ? sizeof(hone_device_determinant) : 0;
}

/* The results of one system, without x. */
size_t hone_portion_result_bytes(const hone_device_run *r) {
  return sizeof(double) + determinant_bytes(r) +
         (r->copies ? sizeof(hone_batch_result) : 0) +
         (size_t)r->call->batch.nrhs * sizeof(hone_block_column);
}

int64_t hone_portion_room(const hone_device_run *r, int64_t n) {
  const size_t nrhs = (size_t)r->call->batch.nrhs;
  if (nrhs > HONE_PORTION_OUT_BYTES / sizeof(hone_block_column))
    return 0;
  const size_t in = 1 + all_in_bytes(r, n);
  const size_t out = hone_portion_result_bytes(r) + hone_portion_x_bytes(r, n);
  const size_t by_in = (r->in_bytes - HONE_KINDS * ALIGNMENT) / in;
  const size_t by_out = (HONE_PORTION_OUT_BYTES - 6 * ALIGNMENT) / out;
  return (int64_t)HONE_MIN(HONE_MIN(by_in, by_out), (size_t)r->most);
}

int64_t hone_portion_system(const hone_portion *p, int64_t i) {
  return p->list != NULL ? p->list[i] : p->first + i;
}

/* Copies columns of n numbers to where they lie one behind the other. */
static void copy_lines(int64_t n, int64_t lines, const hone_entry *from,
                       int64_t ld, hone_entry *to) {
  for (int64_t j = 0; j < lines; j++)
    memcpy(to + j * n, from + j * ld, (size_t)n * sizeof *to);
}

static void send_system(const hone_device_run *r, const hone_portion *p,
                        int64_t i) {
  const hone_batch *b = &r->call->batch;
  const hone_member m = hone_batch_member(r->call, hone_portion_system(p, i));
  for (int which = 0; which < HONE_KINDS; which++) {
    char *to = p->at.host_in + p->in[which];
    if (r->there[which] && !r->alike)
      ((const void **)(void *)to)[i] = hone_batch_array(&m, which);
    else if (!r->there[which] && which != HONE_OF_X)
      copy_lines(p->n, which == HONE_OF_A ? p->n : b->nrhs,
                 which == HONE_OF_A ? m.a : m.b,
                 which == HONE_OF_A ? b->lda : b->ldb,
                 (hone_entry *)(void *)to +
                     (size_t)i * hone_portion_numbers(r, which, p->n));
  }
}

void hone_portion_deal_out(void *ctx, int64_t worker) {
  const hone_portion_deal *d = ctx;
  const int64_t count = d->p->count;
  (void)worker;
  for (;;) {
    const int64_t from = atomic_fetch_add(&d->p->next, d->together);
    if (from < count)
      d->range(d->r, d->p, from, HONE_MIN(from + d->together, count));
    if (from + d->together >= count)
      return;
  }
}

static void send_range(hone_device_run *r, const hone_portion *p, int64_t from,
                       int64_t to) {
  for (int64_t i = from; i < to; i++)
    send_system(r, p, i);
}

static void send(hone_device_run *r, hone_portion *p) {
  const int64_t bytes = (int64_t)all_in_bytes(r, p->n);
  if (bytes == 0)
    return;
  hone_portion_deal d = {.r = r,
                         .p = p,
                         .range = send_range,
                         .together = SENT_TOGETHER / bytes + 1};
  atomic_store(&p->next, 0);
  if (p->count <= d.together)
    hone_portion_deal_out(&d, 0);
  else
    hone_pool_run(r->call->pool, r->call->threads, hone_portion_deal_out, &d);
}

/* Divides the slot: arrays or lists on their way there, results and x on their
   way back. Returns the bytes that go there. */
static size_t divide(const hone_device_run *r, hone_portion *p) {
  const size_t count = (size_t)p->count;
  size_t in = 0;
  for (int which = 0; which < HONE_KINDS; which++) {
    p->in[which] = in;
    in += aligned(count * in_bytes(r, which, p->n));
  }
  p->worst = 0;
  p->results = aligned(sizeof(hone_device_worst));
  p->rcond =
      p->results + (r->copies ? aligned(count * sizeof(hone_batch_result)) : 0);
  p->columns = p->rcond + aligned(count * sizeof(double));
  p->determinants = p->columns + aligned(count * (size_t)r->call->batch.nrhs *
                                         sizeof(hone_block_column));
  p->x = p->determinants + aligned(count * determinant_bytes(r));
  p->out =
      p->x + (r->there[HONE_OF_X] ? 0 : count * hone_portion_x_bytes(r, p->n));
  return in;
}

/* The arrays of this kind, as the kernel finds them. */
static hone_device_arrays arrays_of(const hone_device_run *r,
                                    const hone_portion *p, int which) {
  const hone_batch *b = &r->call->batch;
  const char *in = p->at.device_in + p->in[which];
  const int64_t strides[] = {b->stride_a, b->stride_b, b->stride_x};
  const hone_member m = hone_batch_member(r->call, hone_portion_system(p, 0));
  hone_device_arrays out = {
      .first = which == HONE_OF_X ? p->at.device_out + p->x : in,
      .stride = (int64_t)hone_portion_numbers(r, which, p->n)};
  if (r->there[which] && r->alike) {
    out.first = hone_batch_array(&m, which);
    out.stride = strides[which];
  } else if (r->there[which]) {
    out.list = (const void *const *)(const void *)in;
  }
  return out;
}

/* Says what the device is to make of the results. */
static hone_device_results results_of(const hone_device_run *r,
                                      const hone_portion *p) {
  const size_t bytes = r->call->batch.result_size;
  char *first = r->copies ? p->at.device_out + p->results
                : r->call->results_there != NULL
                    ? r->call->results_there + (size_t)p->first * bytes
                    : NULL;
  return (hone_device_results){
      .worst = r->quiet
                   ? (hone_device_worst *)(void *)(p->at.device_out + p->worst)
                   : NULL,
      .to = first,
      .bytes = bytes,
      .none = hone_batch_no_result(HONE_CANCELLED)};
}

static hone_device_systems systems_of(const hone_device_run *r,
                                      const hone_portion *p) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const hone_member first = hone_batch_member(call, hone_portion_system(p, 0));
  const hone_block_matrix m = hone_batch_matrix(call, &first);
  const int64_t lda = r->there[HONE_OF_A] ? b->lda : p->n;
  const int most = call->options.max_iterations;
  char *out = p->at.device_out;
  return (hone_device_systems){
      .count = p->count,
      .n = p->n,
      .nrhs = b->nrhs,
      .parts = HONE_PARTS,
      .a = arrays_of(r, p, HONE_OF_A),
      .b = arrays_of(r, p, HONE_OF_B),
      .x = arrays_of(r, p, HONE_OF_X),
      .by_row = m.turned ? lda : 1,
      .by_column = m.turned ? 1 : lda,
      .conjugate = m.conjugate,
      .ldb = r->there[HONE_OF_B] ? b->ldb : p->n,
      .ldx = r->there[HONE_OF_X] ? b->ldx : p->n,
      .limit = call->limit,
      .corrections = most > 0 ? HONE_MIN(most, CORRECTIONS) : CORRECTIONS,
      .seed = hone_batch_seed(call, p->n, hone_portion_system(p, 0)),
      .seed_step =
          call->options.deterministic ? 0 : UINT64_C(0xd1342543de82ef95),
      .room = r->there[HONE_OF_X] && b->nrhs > 1 ? out + p->x : NULL,
      .definite = hone_batch_is_definite(call),
      .rcond = (double *)(void *)(out + p->rcond),
      .column = (hone_block_column *)(void *)(out + p->columns),
      .determinant =
          b->determinants
              ? (hone_device_determinant *)(void *)(out + p->determinants)
              : NULL,
      .results = results_of(r, p)};
}

bool hone_portion_results(hone_device_run *r) {
  hone_batch_call *call = r->call;
  if (call->results != NULL)
    return true;
  if (!hone_batch_make_results(call))
    return false;
  hone_batch_begin_results(call);
  for (int64_t k = 0; k < r->told; k++)
    call->results[k] = hone_batch_told();
  return true;
}

/* Ends a portion of which it is not known what the device has done. Systems
   whose x takes the place of b there may have lost their b: they cannot be
   solved in another way. */
void hone_portion_give_up(hone_device_run *r, hone_portion *p, int st) {
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const bool room = hone_portion_results(r);
  r->lost = r->lost || !room;
  for (int64_t i = 0; i < p->count && room; i++) {
    const int64_t k = hone_portion_system(p, i);
    const hone_member m = hone_batch_member(r->call, k);
    if (r->alike)
      r->call->results[k] = none;
    if (r->there[HONE_OF_X] && m.x == m.b)
      r->call->results[k].status = st;
  }
  r->ended += p->count;
  p->count = 0;
  atomic_store(&p->state, HONE_PORTION_NONE);
}

int hone_portion_submit(hone_device_run *r, hone_portion *p) {
  const size_t in = divide(r, p);
  const size_t ends = p->rcond + (size_t)p->count * sizeof(double);
  p->at = hone_device_batch_slot(r->device, p->slot);
  atomic_store(&p->state, HONE_PORTION_UNDER_WAY);
  send(r, p);
  const hone_device_systems systems = systems_of(r, p);
  const int st =
      hone_device_batch_submit(r->device, p->slot, in, &systems, ends,
                               r->copies  ? p->rcond
                               : r->quiet ? sizeof(hone_device_worst)
                                          : p->out);
  if (st != HONE_OK)
    hone_portion_give_up(r, p, st);
  return st;
}
