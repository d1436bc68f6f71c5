/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of systems of one order, dealt to threads. */
#include "api/batch.h"

#include <stdatomic.h>
#include <string.h>

enum {
  CORRECTIONS = 3, /* at most, in a block */
  SHARES = 8,      /* a thread takes the blocks in so many portions or more, */
  TOGETHER = 16    /* of at most so many */
};

/* A block is a range of systems in call->order, or of the batch itself. */
typedef struct range {
  int64_t from;
  int count;
} range;

/* All blocks of a call, and the memory of its threads. */
typedef struct blocks {
  hone_batch_call *call;
  int64_t count; /* of blocks */
  int64_t *from; /* count + 1, with orders that differ; NULL: equal ranges */
  int64_t lanes; /* systems of a block, where all have one order */
  char *room;    /* for each thread: a block, and its solutions */
  int64_t room_bytes, block_bytes;
  int64_t solutions; /* entries */
  int64_t together;
  _Atomic int64_t served;
} blocks;

static range range_of(const blocks *all, int64_t block) {
  const int64_t lanes = all->lanes;
  if (all->from != NULL)
    return (range){all->from[block],
                   (int)(all->from[block + 1] - all->from[block])};
  return (range){block * lanes,
                 (int)HONE_MIN(lanes, all->call->batch.count - block * lanes)};
}

/* Does an array of the system lie on a device? */
static bool on_device(const hone_batch_call *call, const hone_member *m) {
  hone_device_memory place;
  return (call->factors && hone_device_memory_of(m->a, &place)) ||
         (call->solves && (hone_device_memory_of(m->b, &place) ||
                           hone_device_memory_of(m->x, &place)));
}

/* The systems of one block while they are solved. */
typedef struct group {
  hone_member member[HONE_BLOCK_LANES];
  int64_t system[HONE_BLOCK_LANES];
  bool was_solved[HONE_BLOCK_LANES]; /* by a device */
  bool solved[HONE_BLOCK_LANES];
  hone_entry *x[HONE_BLOCK_LANES]; /* n x nrhs, in the thread's room */
  int count;
} group;

/* The results of the systems that the block's factors serve. */
static void begin_results(const hone_batch_call *call, const hone_block *block,
                          group *g) {
  for (int l = 0; l < g->count; l++) {
    const hone_block_lane *lane = &block->lane[l];
    hone_batch_result *r = &call->results[g->system[l]];
    g->solved[l] = g->member[l].a != NULL && lane->serves;
    if (!g->solved[l])
      continue;
    if (!call->solves)
      r->status = HONE_OK;
    hone_batch_take_lane(call, lane, r);
  }
}

static void copy_solution(const hone_batch_call *call, int64_t n,
                          const hone_entry *from, hone_entry *to) {
  for (int64_t c = 0; c < call->batch.nrhs; c++)
    memcpy(to + c * call->batch.ldx, from + c * n, (size_t)n * sizeof *to);
}

/* Systems of which every column was accepted receive their x; the others are
   solved by themselves later. */
static void end_results(blocks *all, const hone_block *block, group *g) {
  const hone_batch_call *call = all->call;
  int served = 0;
  for (int l = 0; l < g->count; l++)
    if (g->solved[l]) {
      if (call->solves)
        copy_solution(call, block->n, g->x[l], g->member[l].x);
      call->results[g->system[l]].status = HONE_OK;
      served++;
    } else if (g->member[l].a != NULL && block->lane[l].serves) {
      call->results[g->system[l]] = hone_batch_no_result(HONE_CANCELLED);
    }
  atomic_fetch_add(&all->served, served);
}

static void solve_columns(const hone_batch_call *call,
                          const hone_block_kernels *kernels, hone_block *block,
                          group *g) {
  const int most = call->options.max_iterations;
  for (int64_t c = 0; c < call->batch.nrhs; c++) {
    hone_block_solve job = {
        .limit = call->limit,
        .corrections = most > 0 ? HONE_MIN(most, CORRECTIONS) : CORRECTIONS};
    int left = 0;
    for (int l = 0; l < g->count; l++)
      if (g->solved[l]) {
        job.b[l] = g->member[l].b + c * call->batch.ldb;
        job.x[l] = g->x[l] + c * block->n;
        left++;
      }
    if (left == 0)
      return;
    kernels->solve(block, &job);
    for (int l = 0; l < g->count; l++) {
      g->solved[l] = g->solved[l] && job.column[l].accepted;
      if (g->solved[l])
        hone_batch_take_column(call, g->system[l], c, &job.column[l],
                               &call->results[g->system[l]]);
    }
  }
}

/* The matrix at this place of the order. */
static const hone_entry *next_of(const hone_batch_call *call, int64_t place) {
  return hone_batch_member(call, hone_batch_system_at(call, place)).a;
}

/* Lists the systems of the block and checks each. Returns their order, or 0 if
   there is nothing to solve. */
static int64_t gather(const blocks *all, range where, group *g,
                      hone_block_matrix *matrices) {
  const hone_batch_call *call = all->call;
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  int64_t n = 0;
  g->count = where.count;
  for (int l = 0; l < HONE_BLOCK_LANES; l++)
    matrices[l].at = NULL;
  for (int l = 0; l < where.count; l++) {
    const int64_t k = hone_batch_system_at(call, where.from + l);
    hone_member *m = &g->member[l];
    hone_batch_result *r = &call->results[k];
    *m = hone_batch_member(call, k);
    g->system[l] = k;
    g->was_solved[l] = call->begun && r->status != HONE_CANCELLED;
    if (g->was_solved[l]) {
      m->a = NULL;
      continue;
    }
    *r = none;
    const int st =
        call->checked ? HONE_OK : hone_batch_check_member(call, m, NULL);
    if (st != HONE_OK)
      r->status = st;
    if (st != HONE_OK || m->n < 1 || m->n > HONE_BLOCK_UP_TO ||
        (call->solves && call->batch.nrhs == 0) ||
        (call->devices && on_device(call, m))) {
      m->a = NULL;
      continue;
    }
    n = m->n;
    matrices[l] = hone_batch_matrix(call, m);
    if (where.from + l + where.count < call->batch.count)
      matrices[l].next = next_of(call, where.from + l + where.count);
  }
  return n;
}

/* The block in which the factors of this number are, or will be. */
static hone_block *block_of(const blocks *all, char *room, int64_t number,
                            hone_block *own) {
  if (all->call->kept != NULL)
    return &all->call->kept->block[number];
  *own = (hone_block){.memory = room,
                      .definite = hone_batch_is_definite(all->call),
                      .determinants = all->call->batch.determinants != 0};
  return own;
}

static void solve_block(blocks *all, char *room, int64_t number) {
  hone_batch_call *call = all->call;
  group g = {.count = 0};
  hone_block_matrix matrices[HONE_BLOCK_LANES];
  hone_block own, *block = block_of(all, room, number, &own);
  const int64_t n = gather(all, range_of(all, number), &g, matrices);
  if (n > 0) {
    hone_entry *x = (hone_entry *)(void *)(room + all->block_bytes);
    for (int l = 0; l < g.count; l++)
      g.x[l] = x + l * n * call->batch.nrhs;
    const hone_block_kernels *kernels = hone_block_kernels_here(n);
    block->n = n;
    if (call->factors)
      kernels->factor(block, matrices, hone_batch_seed(call, n, number));
    begin_results(call, block, &g);
    if (call->solves)
      solve_columns(call, kernels, block, &g);
    end_results(all, block, &g);
  }
  int ended = 0;
  for (int l = 0; l < g.count; l++)
    ended +=
        !g.was_solved[l] && call->results[g.system[l]].status != HONE_CANCELLED;
  atomic_fetch_add(&call->ended, ended);
}

/* Leaves the systems of a block unsolved, since the call is to stop. */
static void pass_block(const blocks *all, int64_t number) {
  const hone_batch_call *call = all->call;
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const range where = range_of(all, number);
  for (int l = 0; l < where.count && !call->begun; l++)
    call->results[hone_batch_system_at(call, where.from + l)] = none;
}

static void work(void *ctx, int64_t worker) {
  blocks *all = ctx;
  hone_batch_call *call = all->call;
  char *room = all->room + worker * all->room_bytes;
  for (;;) {
    const int64_t from = atomic_fetch_add(&call->next, all->together);
    const int64_t to = HONE_MIN(from + all->together, all->count);
    for (int64_t k = from; k < to; k++)
      if (hone_batch_stopped(call))
        pass_block(all, k);
      else
        solve_block(all, room, k);
    if (to >= all->count)
      return;
  }
}

static int64_t rounded_up(int64_t bytes) { return (bytes + 63) & ~63; }

/* The memory of a block of systems of order n; 0: there is no such block. */
static int64_t block_bytes(int64_t n) {
  return n < 1 || n > HONE_BLOCK_UP_TO
             ? 0
             : rounded_up(hone_block_kernels_here(n)->bytes(n));
}

static int lanes_of(int64_t n) { return hone_block_kernels_here(n)->lanes; }

/* Lets a thread's room be large enough for blocks of this order. */
static void take_order(blocks *all, int64_t n) {
  const hone_batch_call *call = all->call;
  const int64_t bytes = block_bytes(n);
  if (bytes == 0)
    return;
  if (call->kept == NULL)
    all->block_bytes = HONE_MAX(all->block_bytes, bytes);
  if (call->solves)
    all->solutions =
        HONE_MAX(all->solutions, n * call->batch.nrhs * lanes_of(n));
}

/* Divides sorted systems into blocks of one order. */
static int divide(blocks *all) {
  hone_batch_call *call = all->call;
  const int64_t count = call->batch.count, *orders = call->batch.orders;
  if (call->order == NULL) {
    all->lanes = lanes_of(call->batch.n);
    all->count = (count + all->lanes - 1) / all->lanes;
    take_order(all, call->batch.n);
    return HONE_OK;
  }
  all->from = hone_mem_get(&call->mem, (size_t)(count + 1) * sizeof *all->from);
  if (all->from == NULL)
    return HONE_NO_MEMORY;
  all->count = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t n = orders[call->order[i]];
    const bool begins = i == 0 || n != orders[call->order[i - 1]];
    if (begins || i - all->from[all->count - 1] == lanes_of(n))
      all->from[all->count++] = i;
    if (begins)
      take_order(all, n);
  }
  all->from[all->count] = count;
  return HONE_OK;
}

/* The memory of a block with the systems from this place on. */
static int64_t bytes_of(const blocks *all, int64_t number) {
  const hone_batch *b = &all->call->batch;
  return block_bytes(b->orders ? b->orders[all->call->order[all->from[number]]]
                               : b->n);
}

/* Makes the blocks whose factors will be kept. What fails is freed with all
   else that is kept. */
static int make_kept(blocks *all) {
  hone_batch_call *call = all->call;
  hone_batch_kept *kept = call->kept;
  int64_t bytes = 0;
  kept->blocks = all->count;
  kept->from = all->from;
  kept->block =
      hone_mem_get(&call->mem, (size_t)all->count * sizeof *kept->block);
  for (int64_t k = 0; k < all->count; k++)
    bytes += bytes_of(all, k);
  kept->memory = hone_mem_get(&call->mem, (size_t)bytes);
  if (kept->block == NULL || kept->memory == NULL) {
    kept->blocks = 0;
    return HONE_NO_MEMORY;
  }
  bytes = 0;
  for (int64_t k = 0; k < all->count; k++) {
    kept->block[k] =
        (hone_block){.memory = kept->memory + bytes,
                     .definite = hone_batch_is_definite(call),
                     .determinants = call->batch.determinants != 0};
    bytes += bytes_of(all, k);
  }
  return HONE_OK;
}

/* Makes the room of every thread: a block, unless blocks are kept, and its
   solutions. */
static int make_room(blocks *all) {
  hone_batch_call *call = all->call;
  all->room_bytes =
      HONE_MAX(all->block_bytes +
                   rounded_up(all->solutions * (int64_t)sizeof(hone_entry)),
               (int64_t)64);
  all->room =
      hone_batch_memory(call, (size_t)(all->room_bytes * call->threads));
  return all->room != NULL ? HONE_OK : HONE_NO_MEMORY;
}

/* Divides the systems, or takes the blocks that are kept. */
static int begin_blocks(blocks *all) {
  hone_batch_call *call = all->call;
  if (call->factors || call->kept == NULL) {
    const int st = divide(all);
    return st == HONE_OK && call->kept != NULL ? make_kept(all) : st;
  }
  all->count = call->kept->blocks;
  all->from = call->kept->from;
  all->lanes = lanes_of(call->batch.n);
  for (int64_t k = 0; k < all->count; k++)
    take_order(all, call->kept->block[k].n);
  return HONE_OK;
}

int hone_batch_blocks(hone_batch_call *call) {
  blocks all = {.call = call};
  int st = begin_blocks(&all);
  if (st == HONE_OK)
    st = make_room(&all);
  if ((st != HONE_OK || all.count == 0) && !call->begun)
    hone_batch_begin_results(call); /* all are left to be solved alone */
  if (st == HONE_OK) {
    const int64_t portion = all.count / (call->threads * SHARES);
    all.together = HONE_MAX((int64_t)1, HONE_MIN(portion, (int64_t)TOGETHER));
    atomic_store(&call->next, 0);
    hone_pool_run(call->pool, call->threads, work, &all);
    hone_batch_look_for_loss(call);
    call->in_blocks += atomic_load(&all.served);
  }
  hone_mem_put(&call->mem, all.room);
  if (call->kept == NULL)
    hone_mem_put(&call->mem, all.from);
  return st;
}
