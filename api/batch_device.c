/* SPDX-License-Identifier: BSD-3-Clause */
/* Small systems of a batch on a CUDA device, by portions. Arrays may lie in
   host memory, and are then copied by all threads into pinned memory and from
   there, or in device memory, and are then read and written where they are.
   While one portion is solved, the next is copied and the one before comes
   back. What the device does not solve is left to the other ways. */
#include "api/batch_device.h"

#include "api/engines.h"

#include <stdatomic.h>
#include <string.h>

enum {
  UP_TO = HONE_DEVICE_BATCH_UP_TO,
  WORTH_COPIER = 2 << 20 /* a thread copies so many bytes of results sooner
                            than another one wakes up */
};

/* ---- Which systems ------------------------------------------------------ */

/* Does the system's array of this kind lie on a device, and where? */
static bool find_array(hone_device_run *r, const hone_member *m, int which,
                       hone_device_memory *place) {
  return hone_device_memory_in(&r->known[which], hone_batch_array(m, which),
                               place);
}

/* Do the system's arrays lie where those of the first one do? */
static bool is_placed_alike(hone_device_run *r, const hone_member *m) {
  for (int which = 0; which < HONE_KINDS && r->call->devices; which++) {
    hone_device_memory place;
    const bool there = find_array(r, m, which, &place);
    if (there != r->there[which] ||
        (there && (place.ordinal != r->place.ordinal ||
                   place.context != r->place.context)))
      return false;
  }
  return true;
}

/* Do the system's arrays on a device begin where kernels can load whole
   entries? Complex ones of a caller may begin 8 bytes further on. */
static bool is_aligned(const hone_device_run *r, const hone_member *m) {
  bool aligned = true;
  for (int which = 0; which < HONE_KINDS && r->call->devices; which++)
    aligned =
        aligned &&
        !(r->there[which] &&
          (uintptr_t)hone_batch_array(m, which) % sizeof(hone_entry) != 0);
  return aligned;
}

static bool is_for_device(hone_device_run *r, const hone_member *m) {
  return m->n >= 1 && m->n <= r->up_to && is_aligned(r, m) &&
         (r->call->checked ||
          hone_batch_check_member(r->call, m, NULL) == HONE_OK) &&
         (r->alike || is_placed_alike(r, m));
}

static bool any_there(const hone_device_run *r) {
  return r->there[HONE_OF_A] || r->there[HONE_OF_B] || r->there[HONE_OF_X];
}

/* The first system with arrays shows where they all lie. Returns false if there
   is none, or none that is for the device. */
static bool look_at_first(hone_device_run *r) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  for (int64_t i = 0; i < b->count; i++) {
    const hone_member m =
        hone_batch_member(call, hone_batch_system_at(call, i));
    if (m.n < 1 || m.n > UP_TO ||
        hone_batch_check_member(call, &m, NULL) != HONE_OK)
      continue;
    for (int which = 0; which < HONE_KINDS && call->devices; which++) {
      hone_device_memory place;
      r->there[which] = find_array(r, &m, which, &place);
      if (r->there[which])
        r->place = place;
    }
    const hone_member last = hone_batch_member(call, b->count - 1);
    r->alike =
        call->checked && call->order == NULL && is_placed_alike(r, &last);
    if (r->alike && !is_aligned(r, &m))
      return false;
    if (r->alike && !any_there(r))
      r->call->devices = false; /* nobody needs to ask for any other array */
    return true;
  }
  return false;
}

/* The largest order that the device takes. */
static int64_t largest_order(const hone_device_run *r) {
  const hone_batch *b = &r->call->batch;
  int64_t most = b->orders == NULL && b->n <= r->up_to ? b->n : 0;
  for (int64_t k = 0; b->orders != NULL && k < b->count; k++)
    if (b->orders[k] <= r->up_to)
      most = HONE_MAX(most, b->orders[k]);
  return most;
}

/* Do matrices of large orders have to be copied? */
static bool has_large(const hone_device_run *r, int64_t largest) {
  return !r->there[HONE_OF_A] &&
         largest > (HONE_PARTS == 1 ? HONE_DEVICE_BATCH_INVERSE_UP_TO
                                    : HONE_DEVICE_BATCH_Z_INVERSE_UP_TO);
}

/* How many devices are to share the batch: as many as the caller allows, if
   each gets a portion, and none of the arrays lies on one. */
static int devices_for(const hone_device_run *r, int64_t largest) {
  const int64_t wanted = r->call->options.devices;
  const int64_t room = HONE_MAX(hone_portion_room(r, largest), (int64_t)1);
  const int64_t portions = (r->call->batch.count + room - 1) / room;
  const int64_t most =
      wanted < 0 ? HONE_DEVICE_BATCH_DEVICES
                 : HONE_MIN(wanted, (int64_t)HONE_DEVICE_BATCH_DEVICES);
  return any_there(r) ? 1 : (int)HONE_MAX(HONE_MIN(most, portions), (int64_t)1);
}

/* Is this call for the device? Arrays in host memory go there only if it is
   asked for. */
static bool is_wanted(hone_device_run *r) {
  const hone_batch_call *call = r->call;
  const int device = call->options.device;
  if (device == HONE_DEVICE_CPU || call->kept != NULL || !call->factors ||
      !call->solves || call->batch.nrhs < 1 || !hone_batch_may_take(call) ||
      (device == HONE_DEVICE_AUTO && !call->devices) || !look_at_first(r))
    return false;
  const bool exists =
      any_there(r) ? hone_device_memory_is_primary(&r->place) &&
                         hone_device_batch_exists(r->place.ordinal)
                   : device == HONE_DEVICE_CUDA && hone_device_batch_exists(-1);
  r->up_to = exists ? hone_device_batch_up_to(HONE_PARTS) : 0;
  return exists && largest_order(r) > 0;
}

/* May results that the device makes be copied to the caller's on the host,
   which have one order? Not those of a short call: threads that wait for its
   end make them sooner. */
static bool may_copy(const hone_batch_call *call, const hone_trial *trial) {
  const hone_batch *b = &call->batch;
  return call->results != NULL &&
         (trial->copier > 0 ||
          hone_portion_work(b->n, b->count) > HONE_SHORT_WORK);
}

/* May the device make the results as long as it solves all systems? It must
   have x there, and be able to write the caller's results, or have them copied
   to where they lie on the host. */
static bool is_quiet(const hone_device_run *r, const hone_trial *trial) {
  const hone_batch_call *call = r->call;
  const hone_device_memory *place = &call->results_place;
  return r->alike && r->there[HONE_OF_X] && call->options.columns == NULL &&
         (!call->host_waits || may_copy(call, trial)) &&
         (call->results_there == NULL || (place->ordinal == r->place.ordinal &&
                                          place->context == r->place.context));
}

/* Lists the systems of one order from this place on, as many as a slot takes.
   Returns the next place. */
static int64_t list_systems(hone_device_run *r, int64_t place,
                            hone_portion *p) {
  const hone_batch_call *call = r->call;
  const int64_t count = call->batch.count;
  p->count = 0;
  p->n = 0;
  if (r->alike) {
    p->n = call->batch.n;
    p->first = place;
    p->count = HONE_MIN(hone_portion_room(r, p->n), count - place);
    return p->count > 0 ? place + p->count : count;
  }
  int64_t room = r->most;
  for (; place < count && p->count < room; place++) {
    const int64_t k = hone_batch_system_at(call, place);
    const hone_member m = hone_batch_member(call, k);
    if (!is_for_device(r, &m))
      continue;
    if (p->count > 0 && m.n != p->n)
      break;
    if (p->count == 0)
      room = hone_portion_room(r, m.n);
    p->n = m.n;
    if (room > 0)
      p->list[p->count++] = k;
  }
  return place;
}

/* Solves the systems by portions. Those of no portion are given their results
   where that was not done before. */
static int solve_portions(hone_device_run *r) {
  hone_batch_call *call = r->call;
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const int64_t count = call->batch.count;
  int st = any_there(r) ? hone_device_batch_follow(r->device) : HONE_OK;
  int turn = 0;
  int64_t place = 0, listed = 0;
  while (st == HONE_OK && place < count && !hone_batch_stopped(call)) {
    hone_portion *p = &r->portions[turn];
    st = hone_portion_finish(r, p);
    if (st != HONE_OK)
      break;
    place = list_systems(r, place, p);
    if (p->count == 0)
      continue;
    listed = place;
    p->slot = turn;
    st = hone_portion_submit(r, p);
    turn = (turn + 1) % r->slots;
  }
  const bool begins = r->alike && call->results != NULL && !call->begun;
  for (int64_t k = listed; k < count && begins; k++)
    call->results[k] = none;
  const int ended = hone_portions_finish(r, turn);
  call->begun = call->results != NULL;
  return st == HONE_OK ? ended : st;
}

static int open(hone_device_run *r, int devices) {
  hone_batch_call *call = r->call;
  return hone_device_batch_open(
      &r->device, &call->mem, r->in_bytes, HONE_PORTION_OUT_BYTES,
      call->options.device_memory_limit_bytes, devices);
}

/* Where there is no memory for several devices, one serves. */
static void solve_there(hone_device_run *r) {
  hone_batch_call *call = r->call;
  int st = open(r, r->devices);
  if (st != HONE_OK && r->devices > 1)
    st = open(r, 1);
  if (st != HONE_OK)
    return;
  r->slots = hone_device_batch_slots(r->device);
  (void)solve_portions(r);
  hone_device_batch_close(r->device, &call->mem);
  call->on_device = r->served;
  call->sharing = r->slots / HONE_DEVICE_BATCH_SLOTS;
  call->in_blocks += r->served;
  call->worst_there = r->worst;
}

/* The host's results of this run, and what lists its systems. */
static int begin(hone_device_run *r, const hone_trial *trial, int64_t **lists) {
  hone_batch_call *call = r->call;
  r->quiet = is_quiet(r, trial);
  r->copies = r->quiet && call->host_waits;
  if (!r->quiet && !hone_batch_make_results(call))
    return HONE_NO_MEMORY;
  if (r->alike)
    return HONE_OK;
  hone_batch_begin_results(call);
  const int slots = r->devices * HONE_DEVICE_BATCH_SLOTS;
  *lists = hone_mem_get(&call->mem,
                        (size_t)slots * HONE_PORTION_MOST * sizeof **lists);
  for (int i = 0; i < slots && *lists != NULL; i++)
    r->portions[i].list = *lists + (int64_t)i * HONE_PORTION_MOST;
  return HONE_OK;
}

int hone_batch_device(hone_batch_call *call) {
  const hone_trial trial = hone_choices_of(&call->options).trial;
  const int64_t most = trial.portion;
  hone_device_run r = {
      .call = call,
      .most = most > 0 && most < HONE_PORTION_MOST ? most : HONE_PORTION_MOST,
      .copier = trial.copier > 0 ? trial.copier : WORTH_COPIER,
      .lock = PTHREAD_MUTEX_INITIALIZER,
      .worst = hone_batch_best()};
  int64_t *lists = NULL;
  call->there =
      call->options.device == HONE_DEVICE_CUDA && hone_device_batch_exists(-1);
  if (!is_wanted(&r))
    return HONE_OK;
  const int64_t largest = largest_order(&r);
  r.in_bytes = has_large(&r, largest) ? HONE_PORTION_LARGE_IN_BYTES
                                      : HONE_PORTION_IN_BYTES;
  r.devices = devices_for(&r, largest);
  const int st = begin(&r, &trial, &lists);
  if (st == HONE_OK && (r.alike || lists != NULL))
    solve_there(&r);
  pthread_mutex_destroy(&r.lock);
  hone_mem_put(&call->mem, lists);
  if (r.quiet && r.lost) {
    hone_mem_put(&call->mem, call->results);
    call->results = NULL;
  }
  const bool complete = !r.quiet || call->on_device == call->batch.count;
  return st == HONE_OK && !r.lost && (complete || hone_portion_results(&r))
             ? HONE_OK
             : HONE_NO_MEMORY;
}
