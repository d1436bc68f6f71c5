/* SPDX-License-Identifier: BSD-3-Clause */
/* Small systems of a batch on a CUDA device, by portions. Arrays may lie in
   host memory, and are then copied by all threads into pinned memory and from
   there, or in device memory, and are then read and written where they are.
   While one portion is solved, the next is copied and the one before comes
   back. What the device does not solve is left to the other ways. */
#include "api/batch.h"

#include "api/engines.h"
#include "base/device_memory.h"
#include "gpu_sp/batch/batch.h"

#include <stdatomic.h>
#include <string.h>

enum {
  UP_TO = HONE_DEVICE_BATCH_UP_TO,
  IN_BYTES = 8 << 20,        /* of a portion, to the device, */
  LARGE_IN_BYTES = 64 << 20, /* and with systems that are solved by panels */
  OUT_BYTES = 8 << 20,
  MOST = 1 << 16,     /* systems of a portion, but in tests */
  ALIGNMENT = 256,    /* bytes, of every array of a portion */
  CORRECTIONS = 3,    /* at most */
  TOGETHER = 16 << 10 /* a thread takes systems of so many bytes at once */
};

typedef enum kind { OF_A, OF_B, OF_X, KINDS } kind;

/* Systems of one order that are together on the device. */
typedef struct portion {
  int64_t n, count, first;
  int64_t *list;    /* their numbers; NULL: from 'first' on */
  size_t in[KINDS]; /* where arrays, or lists of them, begin in a slot, */
  size_t lanes, columns, x; /* and results */
  int slot;
} portion;

typedef struct run {
  hone_batch_call *call;
  hone_device_batch *device;
  hone_device_memory place; /* of the arrays that lie on the device */
  bool there[KINDS];        /* do the arrays of this kind lie there? */
  int64_t most;             /* systems of a portion */
  bool alike; /* systems lie at equal distances, and one is checked for all */
  size_t in_bytes; /* of a slot */
  portion portions[HONE_DEVICE_BATCH_SLOTS];
  portion *at;           /* the portion that the threads work on */
  hone_device_slot slot; /* and its memory */
  _Atomic int64_t next, served;
} run;

static size_t aligned(size_t bytes) {
  return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static const void *array_of(const hone_member *m, int which) {
  return which == OF_A ? m->a : which == OF_B ? m->b : m->x;
}

/* The numbers that one system has in its array of this kind. */
static size_t numbers_of(const run *r, int which, int64_t n) {
  return (size_t)n * (size_t)(which == OF_A ? n : r->call->batch.nrhs);
}

/* The bytes that a system takes in a slot, on its way there and back. */
static size_t in_bytes(const run *r, int which, int64_t n) {
  if (r->there[which])
    return r->alike ? 0 : sizeof(void *);
  return which == OF_X ? 0 : numbers_of(r, which, n) * sizeof(hone_entry);
}

static size_t x_bytes(const run *r, int64_t n) {
  const bool direct = r->there[OF_X] && r->call->batch.nrhs == 1;
  return direct ? 0 : numbers_of(r, OF_X, n) * sizeof(hone_entry);
}

/* The systems of order n that a slot takes. */
static int64_t room_for(const run *r, int64_t n) {
  const size_t nrhs = (size_t)r->call->batch.nrhs;
  size_t in = 1, out = sizeof(hone_block_lane);
  for (int which = 0; which < KINDS; which++)
    in += in_bytes(r, which, n);
  if (nrhs > OUT_BYTES / sizeof(hone_block_column))
    return 0;
  out += nrhs * sizeof(hone_block_column) + x_bytes(r, n);
  const size_t by_in = (r->in_bytes - KINDS * ALIGNMENT) / in;
  const size_t by_out = (OUT_BYTES - KINDS * ALIGNMENT) / out;
  return (int64_t)HONE_MIN(HONE_MIN(by_in, by_out), (size_t)r->most);
}

/* ---- Which systems ------------------------------------------------------ */

/* Do the system's arrays lie where those of the first one do? */
static bool is_placed_alike(const run *r, const hone_member *m) {
  for (int which = 0; which < KINDS && r->call->devices; which++) {
    hone_device_memory place;
    const bool there = hone_device_memory_of(array_of(m, which), &place);
    if (there != r->there[which] ||
        (there && (place.ordinal != r->place.ordinal ||
                   place.context != r->place.context)))
      return false;
  }
  return true;
}

static bool is_for_device(const run *r, const hone_member *m) {
  return m->n >= 1 && m->n <= UP_TO &&
         (r->call->checked ||
          hone_batch_check_member(r->call, m, NULL) == HONE_OK) &&
         (r->alike || is_placed_alike(r, m));
}

/* The first system with arrays shows where they all lie. Returns false if there
   is none. */
static bool look_at_first(run *r) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  for (int64_t i = 0; i < b->count; i++) {
    const hone_member m =
        hone_batch_member(call, hone_batch_system_at(call, i));
    if (m.n < 1 || m.n > UP_TO ||
        hone_batch_check_member(call, &m, NULL) != HONE_OK)
      continue;
    for (int which = 0; which < KINDS && call->devices; which++)
      r->there[which] = hone_device_memory_of(array_of(&m, which), &r->place);
    for (int which = 0; which < KINDS; which++) /* place: one that is there */
      if (r->there[which])
        (void)hone_device_memory_of(array_of(&m, which), &r->place);
    const hone_member last = hone_batch_member(call, b->count - 1);
    r->alike =
        call->checked && call->order == NULL && is_placed_alike(r, &last);
    return true;
  }
  return false;
}

/* Do matrices of large orders have to be copied? */
static bool has_large(const run *r) {
  const hone_batch *b = &r->call->batch;
  int64_t most = b->orders == NULL ? b->n : 0;
  for (int64_t k = 0; b->orders != NULL && k < b->count; k++)
    if (b->orders[k] <= UP_TO)
      most = HONE_MAX(most, b->orders[k]);
  return !r->there[OF_A] &&
         most > (HONE_PARTS == 1 ? HONE_DEVICE_BATCH_INVERSE_UP_TO
                                 : HONE_DEVICE_BATCH_Z_INVERSE_UP_TO);
}

static bool any_there(const run *r) {
  return r->there[OF_A] || r->there[OF_B] || r->there[OF_X];
}

/* Is this call for the device? Arrays in host memory go there only if it is
   asked for. */
static bool is_wanted(run *r) {
  const hone_batch_call *call = r->call;
  const int device = call->options.device;
  if (device == HONE_DEVICE_CPU || call->kept != NULL || !call->factors ||
      !call->solves || call->batch.nrhs < 1 || !hone_batch_may_take(call) ||
      (device == HONE_DEVICE_AUTO && !call->devices) || !look_at_first(r))
    return false;
  if (any_there(r))
    return hone_device_memory_is_primary(&r->place) &&
           hone_device_batch_exists(r->place.ordinal);
  return device == HONE_DEVICE_CUDA && hone_device_batch_exists(-1);
}

/* Lists the systems of one order from this place on, as many as a slot takes.
   Returns the next place. */
static int64_t list_systems(const run *r, int64_t place, portion *p) {
  const hone_batch_call *call = r->call;
  const int64_t count = call->batch.count;
  p->count = 0;
  p->n = 0;
  if (r->alike) {
    p->n = call->batch.n;
    p->first = place;
    p->count = HONE_MIN(room_for(r, p->n), count - place);
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
      room = room_for(r, m.n);
    p->n = m.n;
    if (room > 0)
      p->list[p->count++] = k;
  }
  return place;
}

static int64_t system_of(const portion *p, int64_t i) {
  return p->list != NULL ? p->list[i] : p->first + i;
}

/* ---- There -------------------------------------------------------------- */

/* Copies columns of n numbers to where they lie one behind the other. */
static void copy_lines(int64_t n, int64_t lines, const hone_entry *from,
                       int64_t ld, hone_entry *to) {
  for (int64_t j = 0; j < lines; j++)
    memcpy(to + j * n, from + j * ld, (size_t)n * sizeof *to);
}

static void send_system(const run *r, int64_t i) {
  const portion *p = r->at;
  const hone_batch *b = &r->call->batch;
  const hone_member m = hone_batch_member(r->call, system_of(p, i));
  for (int which = 0; which < KINDS; which++) {
    char *to = r->slot.host_in + p->in[which];
    if (r->there[which] && !r->alike)
      ((const void **)(void *)to)[i] = array_of(&m, which);
    else if (!r->there[which] && which != OF_X)
      copy_lines(p->n, which == OF_A ? p->n : b->nrhs,
                 which == OF_A ? m.a : m.b, which == OF_A ? b->lda : b->ldb,
                 (hone_entry *)(void *)to +
                     (size_t)i * numbers_of(r, which, p->n));
  }
}

/* Deals the portion's systems to the threads. */
typedef struct deal {
  run *r;
  void (*one)(run *r, int64_t i);
  int64_t together;
} deal;

static void deal_out(void *ctx, int64_t worker) {
  const deal *d = ctx;
  const int64_t count = d->r->at->count;
  (void)worker;
  for (;;) {
    const int64_t from = atomic_fetch_add(&d->r->next, d->together);
    for (int64_t i = from; i < HONE_MIN(from + d->together, count); i++)
      d->one(d->r, i);
    if (from + d->together >= count)
      return;
  }
}

static void for_systems(run *r, portion *p, void (*one)(run *r, int64_t i)) {
  const int64_t bytes = (int64_t)numbers_of(r, OF_A, p->n) * 8 + ALIGNMENT;
  deal d = {.r = r, .one = one, .together = TOGETHER / bytes + 1};
  r->at = p;
  r->slot = hone_device_batch_slot(r->device, p->slot);
  atomic_store(&r->next, 0);
  if (p->count <= d.together)
    deal_out(&d, 0);
  else
    hone_pool_run(r->call->pool, r->call->threads, deal_out, &d);
}

static void send_one(run *r, int64_t i) { send_system(r, i); }

/* Divides the slot: arrays or lists on their way there, results and x on their
   way back. Returns the bytes that go there. */
static size_t divide(const run *r, portion *p) {
  const size_t count = (size_t)p->count;
  size_t in = 0;
  for (int which = 0; which < KINDS; which++) {
    p->in[which] = in;
    in += aligned(count * in_bytes(r, which, p->n));
  }
  p->lanes = 0;
  p->columns = aligned(count * sizeof(hone_block_lane));
  p->x = p->columns + aligned(count * (size_t)r->call->batch.nrhs *
                              sizeof(hone_block_column));
  return in;
}

/* The arrays of this kind, as the kernel finds them. */
static hone_device_arrays arrays_of(const run *r, const portion *p, int which) {
  const hone_batch *b = &r->call->batch;
  const char *in = r->slot.device_in + p->in[which];
  const int64_t strides[] = {b->stride_a, b->stride_b, b->stride_x};
  const hone_member m = hone_batch_member(r->call, system_of(p, 0));
  hone_device_arrays out = {.first =
                                which == OF_X ? r->slot.device_out + p->x : in,
                            .stride = (int64_t)numbers_of(r, which, p->n)};
  if (r->there[which] && r->alike) {
    out.first = array_of(&m, which);
    out.stride = strides[which];
  } else if (r->there[which]) {
    out.list = (const void *const *)(const void *)in;
  }
  return out;
}

static hone_device_systems systems_of(const run *r, const portion *p) {
  const hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const hone_member first = hone_batch_member(call, system_of(p, 0));
  const hone_block_matrix m = hone_batch_matrix(call, &first);
  const int64_t lda = r->there[OF_A] ? b->lda : p->n;
  const int most = call->options.max_iterations;
  char *out = r->slot.device_out;
  return (hone_device_systems){
      .count = p->count,
      .n = p->n,
      .nrhs = b->nrhs,
      .parts = HONE_PARTS,
      .a = arrays_of(r, p, OF_A),
      .b = arrays_of(r, p, OF_B),
      .x = arrays_of(r, p, OF_X),
      .by_row = m.turned ? lda : 1,
      .by_column = m.turned ? 1 : lda,
      .conjugate = m.conjugate,
      .ldb = r->there[OF_B] ? b->ldb : p->n,
      .ldx = r->there[OF_X] ? b->ldx : p->n,
      .determinants = b->determinants != 0,
      .limit = call->limit,
      .corrections = most > 0 ? HONE_MIN(most, CORRECTIONS) : CORRECTIONS,
      .seed = hone_batch_seed(call, p->n, system_of(p, 0)),
      .seed_step =
          call->options.deterministic ? 0 : UINT64_C(0xd1342543de82ef95),
      .room = r->there[OF_X] && b->nrhs > 1 ? out + p->x : NULL,
      .definite = hone_batch_is_definite(call),
      .lane = (hone_block_lane *)(void *)(out + p->lanes),
      .column = (hone_block_column *)(void *)(out + p->columns)};
}

static int submit(run *r, portion *p) {
  const size_t in = divide(r, p);
  const size_t x = (size_t)p->count * x_bytes(r, p->n);
  for_systems(r, p, send_one);
  const hone_device_systems systems = systems_of(r, p);
  return hone_device_batch_submit(r->device, p->slot, in, &systems,
                                  p->x + (r->there[OF_X] ? 0 : x));
}

/* ---- And back ----------------------------------------------------------- */

static void take_one(run *r, int64_t i) {
  const portion *p = r->at;
  hone_batch_call *call = r->call;
  const hone_batch *b = &call->batch;
  const int64_t k = system_of(p, i);
  const char *out = r->slot.host_out;
  const hone_block_lane *lane =
      (const hone_block_lane *)(const void *)(out + p->lanes) + i;
  const hone_block_column *column =
      (const hone_block_column *)(const void *)(out + p->columns) + i * b->nrhs;
  if (!lane->serves)
    return;
  hone_batch_take_lane(call, lane, &call->results[k]);
  for (int64_t c = 0; c < b->nrhs; c++)
    hone_batch_take_column(call, k, c, &column[c]);
  const hone_entry *x = (const hone_entry *)(const void *)(out + p->x) +
                        (size_t)i * numbers_of(r, OF_X, p->n);
  const hone_member m = hone_batch_member(call, k);
  for (int64_t c = 0; c < b->nrhs && !r->there[OF_X]; c++)
    memcpy(m.x + c * b->ldx, x + c * p->n, (size_t)p->n * sizeof *x);
  call->results[k].status = HONE_OK;
  atomic_fetch_add(&r->served, 1);
}

/* Ends a portion of which it is not known what the device has done. Systems
   whose x takes the place of b there may have lost their b: they cannot be
   solved in another way. */
static void give_up(const run *r, portion *p, int st) {
  for (int64_t i = 0; i < p->count && r->there[OF_X]; i++) {
    const int64_t k = system_of(p, i);
    const hone_member m = hone_batch_member(r->call, k);
    if (m.x == m.b)
      r->call->results[k].status = st;
  }
  p->count = 0;
}

/* Waits for a portion, if there is one, and takes its results. */
static int finish(run *r, portion *p) {
  if (p->count == 0)
    return HONE_OK;
  const int st = hone_device_batch_await(r->device, p->slot);
  if (st == HONE_OK)
    for_systems(r, p, take_one);
  else
    give_up(r, p, st);
  atomic_store(&r->call->ended, atomic_load(&r->served));
  p->count = 0;
  return st;
}

/* Waits until what the caller has done to the arrays in the default stream is
   complete: a copy of one entry waits. */
static int await_caller(const run *r) {
  const hone_member m =
      hone_batch_member(r->call, hone_batch_system_at(r->call, 0));
  hone_entry entry;
  for (int which = 0; which < KINDS; which++)
    if (r->there[which] && array_of(&m, which) != NULL && m.n > 0)
      return hone_device_memory_fetch(&r->place, sizeof entry, 1,
                                      array_of(&m, which), sizeof entry, &entry,
                                      sizeof entry);
  return HONE_OK;
}

static int solve_portions(run *r) {
  int st = await_caller(r);
  int turn = 0;
  for (int64_t place = 0; st == HONE_OK && place < r->call->batch.count &&
                          !hone_batch_stopped(r->call);) {
    portion *p = &r->portions[turn];
    st = finish(r, p);
    if (st != HONE_OK)
      break;
    place = list_systems(r, place, p);
    if (p->count == 0)
      continue;
    p->slot = turn;
    st = submit(r, p);
    if (st != HONE_OK)
      give_up(r, p, st);
    turn = (turn + 1) % HONE_DEVICE_BATCH_SLOTS;
  }
  for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++) {
    const int ended =
        finish(r, &r->portions[(turn + i) % HONE_DEVICE_BATCH_SLOTS]);
    st = st == HONE_OK ? ended : st;
  }
  return st;
}

void hone_batch_device(hone_batch_call *call) {
  const int64_t most = hone_choices_of(&call->options).trial.portion;
  run r = {.call = call, .most = most > 0 && most < MOST ? most : MOST};
  call->there =
      call->options.device == HONE_DEVICE_CUDA && hone_device_batch_exists(-1);
  if (!is_wanted(&r))
    return;
  int64_t *lists = NULL;
  r.in_bytes = has_large(&r) ? LARGE_IN_BYTES : IN_BYTES;
  hone_batch_begin_results(call);
  if (!r.alike) {
    lists = hone_mem_get(&call->mem, (size_t)HONE_DEVICE_BATCH_SLOTS * MOST *
                                         sizeof *lists);
    if (lists == NULL)
      return;
    for (int i = 0; i < HONE_DEVICE_BATCH_SLOTS; i++)
      r.portions[i].list = lists + (int64_t)i * MOST;
  }
  if (hone_device_batch_open(&r.device, &call->mem, r.in_bytes, OUT_BYTES,
                             call->options.device_memory_limit_bytes) ==
      HONE_OK) {
    (void)solve_portions(&r);
    hone_device_batch_close(r.device, &call->mem);
    call->on_device = atomic_load(&r.served);
    call->in_blocks += call->on_device;
  }
  hone_mem_put(&call->mem, lists);
}
