/* SPDX-License-Identifier: BSD-3-Clause */
/* A portion of a batch on its way back from a CUDA device. Threads share the
   results: while the device solves the last portions of a short call, they wake
   up and wait for it. The host makes none of a quiet portion as long as all of
   its systems are solved: the device does, and they may be copied. */
#include "api/batch_device.h"

#include "refine/bounds.h"

#include <stdatomic.h>
#include <string.h>

enum {
  TAKEN_TOGETHER = 32 << 10, /* a thread takes so many bytes at once */
  HELPERS = 7,               /* at most, where results are taken: each one */
  WORTH_HELPER = 1 << 17     /* has so many bytes of them */
};

/* Adds to a result all that is known of a system that the device has solved,
   and brings its x to its place. */
static void take_system(const hone_device_run *r, const hone_portion *p,
                        int64_t i, double rcond, hone_batch_result *result) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const int64_t k = hone_portion_system(p, i);
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
                        (size_t)i * hone_portion_numbers(r, HONE_OF_X, p->n);
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
    r->call->results[hone_portion_system(p, i)] = own;
  }
  pthread_mutex_lock(&r->lock);
  r->served += served;
  hone_batch_add_result(&worst, &r->worst);
  pthread_mutex_unlock(&r->lock);
}

static hone_portion_deal taking(hone_device_run *r, hone_portion *p) {
  const size_t x = r->there[HONE_OF_X] ? 0 : hone_portion_x_bytes(r, p->n);
  const size_t bytes = hone_portion_result_bytes(r) + x +
                       sizeof(hone_batch_result) +
                       (size_t)r->call->batch.nrhs *
                           (r->call->options.columns ? sizeof(hone_column) : 0);
  return (hone_portion_deal){.r = r,
                             .p = p,
                             .range = take_range,
                             .together = TAKEN_TOGETHER / (int64_t)bytes + 1};
}

/* The threads, with the calling one, that share the results of a portion. */
static int64_t threads_for(const hone_portion_deal *d) {
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
  for (int64_t i = 0; i < p->count && r->call->results != NULL && !r->copies;
       i++)
    r->call->results[hone_portion_system(p, i)] = hone_batch_told();
  if (r->call->results == NULL)
    r->told = p->first + p->count;
}

static void copy_range(hone_device_run *r, const hone_portion *p, int64_t from,
                       int64_t to) {
  const hone_batch_result *made =
      (const hone_batch_result *)(const void *)(p->at.host_out + p->results);
  memcpy(r->call->results + p->first + from, made + from,
         (size_t)(to - from) * sizeof *made);
}

/* Copies the results that the device has made to the caller's. */
static void copy_results(hone_device_run *r, hone_portion *p) {
  const int64_t bytes = p->count * (int64_t)sizeof(hone_batch_result);
  const int64_t threads =
      HONE_MIN(bytes / r->copier + 1, (int64_t)r->call->threads);
  hone_portion_deal d = {.r = r,
                         .p = p,
                         .range = copy_range,
                         .together = (p->count + threads - 1) / threads};
  atomic_store(&p->next, 0);
  hone_pool_run(r->call->pool, threads, hone_portion_deal_out, &d);
}

/* Looks at what a quiet portion tells. Fetches all results if one of its
   systems was not solved. */
static int listen(hone_device_run *r, hone_portion *p) {
  const hone_device_worst *w =
      (const hone_device_worst *)(const void *)(p->at.host_out + p->worst);
  if (w->served == (unsigned long long)p->count) {
    if (r->copies)
      copy_results(r, p);
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
    hone_portion_give_up(r, p, st);
  return st;
}

int hone_portion_finish(hone_device_run *r, hone_portion *p) {
  const int st = p->count > 0 ? await(r, p) : HONE_OK;
  if (p->count > 0) {
    hone_portion_deal d = taking(r, p);
    hone_pool_run(r->call->pool, threads_for(&d), hone_portion_deal_out, &d);
    end(r, p);
  }
  return st;
}

/* Waits, with the calling thread, for the portions in their order, and takes
   what it can of their results. */
static void help(void *ctx, int64_t worker) {
  hone_device_run *r = ctx;
  (void)worker;
  for (int i = 0; i < r->slots; i++) {
    hone_portion *p = &r->portions[(r->oldest + i) % r->slots];
    int looks = 0;
    while (atomic_load(&p->state) == HONE_PORTION_UNDER_WAY)
      hone_wait(&looks);
    if (atomic_load(&p->state) == HONE_PORTION_DONE) {
      hone_portion_deal d = taking(r, p);
      hone_portion_deal_out(&d, 0);
    }
  }
}

/* The threads that are worth waking before the device is done. */
static int64_t helpers_of(hone_device_run *r) {
  double work = 0.0;
  int64_t most = 0;
  if (r->quiet)
    return 0;
  for (int i = 0; i < r->slots; i++) {
    hone_portion *p = &r->portions[i];
    if (p->count == 0)
      continue;
    const hone_portion_deal d = taking(r, p);
    work += hone_portion_work(p->n, p->count);
    most = HONE_MAX(most, threads_for(&d) - 1);
  }
  return work <= HONE_SHORT_WORK ? most : 0;
}

int hone_portions_finish(hone_device_run *r, int oldest) {
  const int64_t helpers = helpers_of(r);
  int st = HONE_OK;
  r->oldest = oldest;
  if (helpers > 0)
    hone_pool_start(r->call->pool, helpers, help, r);
  for (int i = 0; i < r->slots; i++) {
    hone_portion *p = &r->portions[(oldest + i) % r->slots];
    int ended = HONE_OK;
    if (helpers == 0)
      ended = hone_portion_finish(r, p);
    else if (p->count > 0)
      ended = await(r, p);
    st = st == HONE_OK ? ended : st;
    if (atomic_load(&p->state) == HONE_PORTION_DONE) {
      hone_portion_deal d = taking(r, p);
      hone_portion_deal_out(&d, 0);
    }
  }
  if (helpers > 0)
    hone_pool_wait(r->call->pool);
  for (int i = 0; i < r->slots; i++)
    if (r->portions[i].count > 0)
      end(r, &r->portions[i]);
  return st;
}
