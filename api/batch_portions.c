/* SPDX-License-Identifier: BSD-3-Clause */
/* A portion of a batch on its way to a CUDA device and back. Threads share the
   copies that are made on the host, and the results: while the device solves
   the last portions of a short call, they wake up and wait for it. */
#include "api/batch_device.h"

#include "refine/bounds.h"

#include <stdatomic.h>
#include <string.h>

enum {
  ALIGNMENT = 256,           /* bytes, of every array of a portion */
  CORRECTIONS = 3,           /* at most */
  SENT_TOGETHER = 16 << 10,  /* a thread sends so many bytes at once, */
  TAKEN_TOGETHER = 32 << 10, /* and takes so many */
  HELPERS = 7,               /* at most, where results are taken: each one */
  WORTH_HELPER = 1 << 17     /* has so many bytes of them */
};
/* The device ends so many multiplications before a thread that waits for it
   would go to sleep (hone_wait). */
static const double SHORT = 4e8;

static size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The numbers that one system has in its array of this kind. */
static size_t numbers_of(const hone_device_run *r, int which, int64_t n) {
  return (size_t)n * (size_t)(which == HONE_OF_A ? n : r->call->batch.nrhs);
}

/* The bytes that a system takes in a slot, on its way there and back. */
static size_t in_bytes(const hone_device_run *r, int which, int64_t n) {
  if (r->there[which])
    return r->alike ? 0 : sizeof(void *);
  return which == HONE_OF_X ? 0 : numbers_of(r, which, n) * sizeof(hone_entry);
}

static size_t all_in_bytes(const hone_device_run *r, int64_t n) {
  size_t bytes = 0;
  for (int which = 0; which < HONE_KINDS; which++)
    bytes += in_bytes(r, which, n);
  return bytes;
}

static size_t x_bytes(const hone_device_run *r, int64_t n) {
  const bool direct = r->there[HONE_OF_X] && r->call->batch.nrhs == 1;
  return direct ? 0 : numbers_of(r, HONE_OF_X, n) * sizeof(hone_entry);
}

static size_t determinant_bytes(const hone_device_run *r) {
  return r->call->batch.determinants ? sizeof(hone_device_determinant) : 0;
}

/* The results of one system, without x. */
static size_t result_bytes(const hone_device_run *r) {
  return sizeof(double) + determinant_bytes(r) +
         (size_t)r->call->batch.nrhs * sizeof(hone_block_column);
}

int64_t hone_portion_room(const hone_device_run *r, int64_t n) {
  const size_t nrhs = (size_t)r->call->batch.nrhs;
  if (nrhs > HONE_PORTION_OUT_BYTES / sizeof(hone_block_column))
    return 0;
  const size_t in = 1 + all_in_bytes(r, n);
  const size_t out = result_bytes(r) + x_bytes(r, n);
  const size_t by_in = (r->in_bytes - HONE_KINDS * ALIGNMENT) / in;
  const size_t by_out = (HONE_PORTION_OUT_BYTES - 5 * ALIGNMENT) / out;
  return (int64_t)HONE_MIN(HONE_MIN(by_in, by_out), (size_t)r->most);
}

static int64_t system_of(const hone_portion *p, int64_t i) {
  return p->list != NULL ? p->list[i] : p->first + i;
}

/* ---- There -------------------------------------------------------------- */

/* Copies columns of n numbers to where they lie one behind the other. */
static void copy_lines(int64_t n, int64_t lines, const hone_entry *from,
                       int64_t ld, hone_entry *to) {
  for (int64_t j = 0; j < lines; j++)
    memcpy(to + j * n, from + j * ld, (size_t)n * sizeof *to);
}

static void send_system(const hone_device_run *r, const hone_portion *p,
                        int64_t i) {
  const hone_batch *b = &r->call->batch;
  const hone_member m = hone_batch_member(r->call, system_of(p, i));
  for (int which = 0; which < HONE_KINDS; which++) {
    char *to = p->at.host_in + p->in[which];
    if (r->there[which] && !r->alike)
      ((const void **)(void *)to)[i] = hone_batch_array(&m, which);
    else if (!r->there[which] && which != HONE_OF_X)
      copy_lines(
          p->n, which == HONE_OF_A ? p->n : b->nrhs,
          which == HONE_OF_A ? m.a : m.b, which == HONE_OF_A ? b->lda : b->ldb,
          (hone_entry *)(void *)to + (size_t)i * numbers_of(r, which, p->n));
  }
}

/* Threads take the portion's systems in ranges of so many. */
typedef struct deal {
  hone_device_run *r;
  hone_portion *p;
  void (*range)(hone_device_run *r, const hone_portion *p, int64_t from,
                int64_t to);
  int64_t together;
} deal;

static void deal_out(void *ctx, int64_t worker) {
  const deal *d = ctx;
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
  deal d = {.r = r,
            .p = p,
            .range = send_range,
            .together = SENT_TOGETHER / bytes + 1};
  atomic_store(&p->next, 0);
  if (p->count <= d.together)
    deal_out(&d, 0);
  else
    hone_pool_run(r->call->pool, r->call->threads, deal_out, &d);
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
  p->rcond = aligned(sizeof(hone_device_worst));
  p->columns = p->rcond + aligned(count * sizeof(double));
  p->determinants = p->columns + aligned(count * (size_t)r->call->batch.nrhs *
                                         sizeof(hone_block_column));
  p->x = p->determinants + aligned(count * determinant_bytes(r));
  p->out = p->x + (r->there[HONE_OF_X] ? 0 : count * x_bytes(r, p->n));
  return in;
}

/* The arrays of this kind, as the kernel finds them. */
static hone_device_arrays arrays_of(const hone_device_run *r,
                                    const hone_portion *p, int which) {
  const hone_batch *b = &r->call->batch;
  const char *in = p->at.device_in + p->in[which];
  const int64_t strides[] = {b->stride_a, b->stride_b, b->stride_x};
  const hone_member m = hone_batch_member(r->call, system_of(p, 0));
  hone_device_arrays out = {
      .first = which == HONE_OF_X ? p->at.device_out + p->x : in,
      .stride = (int64_t)numbers_of(r, which, p->n)};
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
  char *first = r->call->results_there;
  return (hone_device_results){
      .worst = r->quiet
                   ? (hone_device_worst *)(void *)(p->at.device_out + p->worst)
                   : NULL,
      .to = first != NULL ? first + (size_t)p->first * bytes : NULL,
      .bytes = bytes,
      .none = hone_batch_no_result(HONE_CANCELLED)};
}

static hone_device_systems systems_of(const hone_device_run *r,
                                      const hone_portion *p) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const hone_member first = hone_batch_member(call, system_of(p, 0));
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
      .seed = hone_batch_seed(call, p->n, system_of(p, 0)),
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
static void give_up(hone_device_run *r, hone_portion *p, int st) {
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const bool room = hone_portion_results(r);
  r->lost = r->lost || !room;
  for (int64_t i = 0; i < p->count && room; i++) {
    const int64_t k = system_of(p, i);
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
                               r->quiet ? sizeof(hone_device_worst) : p->out);
  if (st != HONE_OK)
    give_up(r, p, st);
  return st;
}

/* ---- And back ----------------------------------------------------------- */

/* Adds to a result all that is known of a system that the device has solved,
   and brings its x to its place. */
static void take_system(const hone_device_run *r, const hone_portion *p,
                        int64_t i, double rcond, hone_batch_result *result) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const int64_t k = system_of(p, i);
  const char *out = p->at.host_out;
  const hone_block_column *column =
      (const hone_block_column *)(const void *)(out + p->columns) + i * b->nrhs;
  hone_block_lane lane = {.serves = true, .rcond = rcond};
  if (b->determinants) {
    const hone_device_determinant *d =
        (const hone_device_determinant *)(const void *)(out + p->determinants) +
        i;
    lane.determinant[0] = d->mantissa[0];
    lane.determinant[1] = d->mantissa[1];
    lane.exponent = d->exponent;
  }
  hone_batch_take_lane(call, &lane, result);
  for (int64_t c = 0; c < b->nrhs; c++)
    hone_batch_take_column(call, k, c, &column[c], result);
  if (r->there[HONE_OF_X])
    return;
  const hone_entry *x = (const hone_entry *)(const void *)(out + p->x) +
                        (size_t)i * numbers_of(r, HONE_OF_X, p->n);
  const hone_member m = hone_batch_member(call, k);
  for (int64_t c = 0; c < b->nrhs; c++)
    memcpy(m.x + c * b->ldx, x + c * p->n, (size_t)p->n * sizeof *x);
}

static void take_range(hone_device_run *r, const hone_portion *p, int64_t from,
                       int64_t to) {
  const double *rcond =
      (const double *)(const void *)(p->at.host_out + p->rcond);
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const hone_batch_result solved = hone_batch_no_result(HONE_OK);
  hone_batch_result worst = hone_batch_best();
  int64_t served = 0;
  for (int64_t i = from; i < to; i++) {
    hone_batch_result own = none;
    if (rcond[i] > 0.0) {
      own = solved;
      take_system(r, p, i, rcond[i], &own);
      hone_batch_add_result(&own, &worst);
      served++;
    }
    r->call->results[system_of(p, i)] = own;
  }
  pthread_mutex_lock(&r->lock);
  r->served += served;
  hone_batch_add_result(&worst, &r->worst);
  pthread_mutex_unlock(&r->lock);
}

static deal taking(hone_device_run *r, hone_portion *p) {
  const size_t x = r->there[HONE_OF_X] ? 0 : x_bytes(r, p->n);
  const size_t bytes = result_bytes(r) + x + sizeof(hone_batch_result) +
                       (size_t)r->call->batch.nrhs *
                           (r->call->options.columns ? sizeof(hone_column) : 0);
  return (deal){.r = r,
                .p = p,
                .range = take_range,
                .together = TAKEN_TOGETHER / (int64_t)bytes + 1};
}

/* The threads, with the calling one, that share the results of a portion. */
static int64_t threads_for(const deal *d) {
  const int64_t ranges = d->p->count / d->together;
  const int64_t helpers = ranges / (WORTH_HELPER / TAKEN_TOGETHER);
  return 1 + HONE_MIN(HONE_MIN(helpers, (int64_t)HELPERS),
                      (int64_t)d->r->call->threads - 1);
}

static void end(hone_device_run *r, hone_portion *p) {
  r->ended += p->count;
  atomic_store(&r->call->ended, r->ended);
  p->count = 0;
  atomic_store(&p->state, HONE_PORTION_NONE);
}

static double number_of(unsigned long long bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Takes what a quiet portion tells of its systems, all of which were solved. */
static void take_worst(hone_device_run *r, const hone_portion *p,
                       const hone_device_worst *w) {
  const double forward = number_of(w->forward);
  const hone_batch_result own = {.status = HONE_OK,
                                 .iterations = (int32_t)w->iterations,
                                 .precision = 64,
                                 .digits = hone_bounds_digits(forward),
                                 .backward_error = number_of(w->backward),
                                 .normwise_error = number_of(w->normwise),
                                 .residual_error = number_of(w->residual),
                                 .forward_error = forward,
                                 .rcond = number_of(~w->not_rcond)};
  hone_batch_add_result(&own, &r->worst);
  r->served += p->count;
  for (int64_t i = 0; i < p->count && r->call->results != NULL; i++)
    r->call->results[system_of(p, i)] = hone_batch_told();
  if (r->call->results == NULL)
    r->told = p->first + p->count;
}

/* Looks at what a quiet portion tells. Fetches all results if one of its
   systems was not solved. */
static int listen(hone_device_run *r, hone_portion *p) {
  const hone_device_worst *w =
      (const hone_device_worst *)(const void *)(p->at.host_out + p->worst);
  if (w->served == (unsigned long long)p->count) {
    take_worst(r, p, w);
    end(r, p);
    return HONE_OK;
  }
  return hone_portion_results(r)
             ? hone_device_batch_fetch(r->device, p->slot, p->out)
             : HONE_NO_MEMORY;
}

/* Waits for the device; after HONE_OK there are results to be taken, if the
   portion is not at its end. */
static int await(hone_device_run *r, hone_portion *p) {
  int st = hone_device_batch_await(r->device, p->slot);
  if (st == HONE_OK && r->quiet)
    st = listen(r, p);
  if (p->count == 0)
    return st;
  atomic_store(&p->next, 0);
  if (st == HONE_OK)
    atomic_store(&p->state, HONE_PORTION_DONE);
  else
    give_up(r, p, st);
  return st;
}

int hone_portion_finish(hone_device_run *r, hone_portion *p) {
  const int st = p->count > 0 ? await(r, p) : HONE_OK;
  if (p->count > 0) {
    deal d = taking(r, p);
    hone_pool_run(r->call->pool, threads_for(&d), deal_out, &d);
    end(r, p);
  }
  return st;
}

/* Waits, with the calling thread, for the portions in their order, and takes
   what it can of their results. */
static void help(void *ctx, int64_t worker) {
  hone_device_run *r = ctx;
  (void)worker;
  for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++) {
    hone_portion *p = &r->portions[(r->oldest + i) % HONE_DEVICE_BATCH_SLOTS];
    int looks = 0;
    while (atomic_load(&p->state) == HONE_PORTION_UNDER_WAY)
      hone_wait(&looks);
    if (atomic_load(&p->state) == HONE_PORTION_DONE) {
      deal d = taking(r, p);
      deal_out(&d, 0);
    }
  }
}

/* The threads that are worth waking before the device is done. */
static int64_t helpers_of(hone_device_run *r) {
  double work = 0.0;
  int64_t most = 0;
  if (r->quiet)
    return 0;
  for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++) {
    hone_portion *p = &r->portions[i];
    const double n = (double)p->n;
    if (p->count == 0)
      continue;
    const deal d = taking(r, p);
    work += n * n * n * (double)(p->count * HONE_PARTS * HONE_PARTS);
    most = HONE_MAX(most, threads_for(&d) - 1);
  }
  return work <= SHORT ? most : 0;
}

int hone_portions_finish(hone_device_run *r, int oldest) {
  const int64_t helpers = helpers_of(r);
  int st = HONE_OK;
  r->oldest = oldest;
  if (helpers > 0)
    hone_pool_start(r->call->pool, helpers, help, r);
  for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++) {
    hone_portion *p = &r->portions[(oldest + i) % HONE_DEVICE_BATCH_SLOTS];
    int ended = HONE_OK;
    if (helpers == 0)
      ended = hone_portion_finish(r, p);
    else if (p->count > 0)
      ended = await(r, p);
    st = st == HONE_OK ? ended : st;
    if (atomic_load(&p->state) == HONE_PORTION_DONE) {
      deal d = taking(r, p);
      deal_out(&d, 0);
    }
  }
  if (helpers > 0)
    hone_pool_wait(r->call->pool);
  for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++)
    if (r->portions[i].count > 0)
      end(r, &r->portions[i]);
  return st;
}
