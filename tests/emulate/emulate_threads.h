/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of a block for emulate.h: fibers, the barriers of a block and the
   operations of a warp. */
#ifndef HONE_EMULATE_THREADS_H
#define HONE_EMULATE_THREADS_H

#include "tests/emulate/emulate_language.h"

/* ---- Fibers ------------------------------------------------------------ */

#ifndef HONE_EMULATE_UCONTEXT
extern "C" void hone_emulate_change(void **from, void *to);
asm(".ifndef hone_emulate_change\n\t" /* LTO may put this into one file more
                                         than once */
    ".pushsection .text\n\t.weak hone_emulate_change\n\t"
    ".type hone_emulate_change, @function\nhone_emulate_change:\n\t"
    "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\t"
    "pushq %r14\n\tpushq %r15\n\tmovq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
    "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\t"
    "popq %rbx\n\tpopq %rbp\n\tret\n\t"
    ".size hone_emulate_change, . - "
    "hone_emulate_change\n\t.popsection\n\t.endif");
#endif

namespace hone_emulate {

using word = unsigned long long;
constexpr unsigned MOST = 1024; /* threads of a block */
/* The stacks' tops are not a power of two apart, so that they use all sets of
   the cache. */
constexpr size_t STACK = HONE_EMULATE_STACK + 576;

[[noreturn]] inline void fail(const char *what) {
  fprintf(stderr, "emulate: block (%u, %u, %u), thread (%u, %u, %u): %s\n",
          blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
          threadIdx.z, what);
  abort();
}

struct warp;
struct operation { /* an operation of a warp, done by the last lane to arrive */
  const char *name;
  void (*finish)(warp &w, unsigned all);
};

struct late_copy { /* under way; from: NULL for zeros */
  void *to;
  const void *from;
  size_t bytes; /* 0: it ends a group */
};

struct fiber {
  uint3 thread;
  unsigned lane, mask; /* mask: the lanes of the operation that it waits for */
  warp *home;
  const operation *waits;
  const char *where; /* what it waits for, for the report of a deadlock */
  char *stack;       /* NULL until it begins */
  std::vector<late_copy> copies;
#ifdef HONE_EMULATE_UCONTEXT
  ucontext_t context;
#else
  void *stack_pointer;
#endif
};

struct lanes { /* the lanes of a mask: for (unsigned i : lanes{mask}) */
  unsigned left;
  lanes begin() const { return *this; }
  lanes end() const { return {0}; }
  bool operator!=(lanes o) const { return left != o.left; }
  unsigned operator*() const {
    return static_cast<unsigned>(__builtin_ctz(left));
  }
  void operator++() { left &= left - 1; }
};

struct warp {
  fiber *fibers;
  unsigned alive, waiting; /* one bit for each lane */
  unsigned source[32];     /* source lanes of shuffles */
  word in[32], out[32];
  /* The lanes' entries of A, B and A B in a product of matrices. */
  double a[32][4], b[32][2], product[32][4];
};

struct block {
  fiber fibers[MOST], scheduler;
  warp warps[MOST / 32];
  fiber *ready[MOST]; /* a ring buffer */
  unsigned head, count;
  unsigned threads, live;
  unsigned arrived, votes, result; /* arrived at __syncthreads; their votes; the
                                      votes at the last one */
  unsigned idle, rounds, quiet;  /* polls in a row; rounds in which all polled;
                                    barriers since the last poll */
  std::vector<fiber *> some[16]; /* the threads at each hone_barrier */
  uint3 index;
  std::atomic<unsigned long> progress;
  const std::function<void()> *kernel;
  const char *name;
  void *dynamic;
  size_t dynamic_bytes;
  char *stacks, *unused[MOST]; /* unused: stacks used last are at the end */
  unsigned stacks_unused;

  block() : progress(0), stacks_unused(MOST) {
    void *p = mmap(nullptr, MOST * STACK, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      fail("no memory for stacks");
    stacks = static_cast<char *>(p);
    for (unsigned i = 0; i < MOST; i++)
      unused[i] = stacks + (MOST - 1 - i) * STACK;
  }
  ~block() { munmap(stacks, MOST * STACK); }
  void push(fiber *f) { ready[(head + count++) % MOST] = f; }
  fiber *pop() {
    count--;
    return ready[head++ % MOST];
  }
};

inline thread_local block *here;
inline thread_local fiber *self;

/* Prints which threads wait for what, one line for those that wait for the
   same. */
inline void report(const block &b) {
  fprintf(stderr, "emulate: no progress in block (%u, %u, %u) of %s:\n",
          b.index.x, b.index.y, b.index.z, b.name);
  std::map<std::tuple<const char *, unsigned, const warp *>,
           std::vector<unsigned>>
      at;
  for (unsigned i = 0; i < b.threads; i++) {
    const fiber &f = b.fibers[i];
    const bool w = f.waits != nullptr;
    at[{f.where, w ? f.mask : 0u, w ? f.home : nullptr}].push_back(i);
  }
  for (const auto &[key, who] : at) {
    fprintf(stderr, "  %zu threads (%u .. %u): %s", who.size(), who.front(),
            who.back(), std::get<0>(key));
    if (std::get<2>(key))
      fprintf(stderr, ", mask %08x", std::get<1>(key));
    fputc('\n', stderr);
  }
}

inline void progressed() {
  block &b = *here;
  b.rounds = 0;
  b.progress.store(b.progress.load(std::memory_order_relaxed) + 1,
                   std::memory_order_relaxed);
}
/* Passing a barrier is progress, unless the barrier is in a loop that polls. */
inline void passed() {
  if (++here->quiet > 4096)
    progressed();
}

#ifdef HONE_EMULATE_UCONTEXT
inline void change(fiber *from, fiber *to) {
  swapcontext(&from->context, &to->context);
}
#else
inline void change(fiber *from, fiber *to) {
  hone_emulate_change(&from->stack_pointer, to->stack_pointer);
}
#endif

inline void prepare(fiber &f);
inline fiber *next_fiber() {
  block &b = *here;
  if (b.count == 0) {
    report(b);
    abort();
  }
  return b.pop();
}
/* Other fibers run until this one is popped; it has to be in the ring, or in a
   list of something that will wake it up. */
inline void suspend() {
  block &b = *here;
  fiber *const from = self, *const to = next_fiber();
  if (to == from)
    return;
  if (to->stack == nullptr) {
    to->stack = b.unused[--b.stacks_unused];
    prepare(*to);
  }
  self = to;
  threadIdx = to->thread;
  change(from, to);
}
inline void yield() {
  here->push(self);
  suspend();
}
/* A value was not there yet: all other fibers run first, and other blocks. */
inline void poll(const char *where) {
  block &b = *here;
  b.quiet = 0;
  if (++b.idle > b.count) {
    b.idle = 0;
    if (++b.rounds > 200)
      usleep(20);
    else
      sched_yield();
  }
  /* Stays until the next barrier, as it may poll for ever. */
  self->where = where;
  yield();
}

/* ---- Barriers ---------------------------------------------------------- */

inline bool release_block(block &b) {
  if (b.arrived < b.live)
    return false;
  b.result = b.votes;
  b.arrived = b.votes = 0;
  for (unsigned i = 0; i < b.threads; i++) {
    fiber &f = b.fibers[i];
    if (&f != self && (f.home->alive >> f.lane & 1))
      b.push(&f);
  }
  passed();
  return true;
}
/* Returns the number of threads whose vote is true. */
inline unsigned sync_block(const char *name, bool vote) {
  block &b = *here;
  self->where = name;
  b.arrived++;
  b.votes += vote;
  if (!release_block(b))
    suspend();
  self->where = "running";
  return b.result;
}

/* A barrier for 'threads' threads of the block. */
inline void sync_some(unsigned id, unsigned threads) {
  block &b = *here;
  std::vector<fiber *> &at = b.some[id % 16];
  self->where = "hone_barrier";
  if (at.size() + 1 < threads) {
    at.push_back(self);
    suspend();
  } else {
    for (fiber *f : at)
      b.push(f);
    at.clear();
    passed();
  }
  self->where = "running";
}

inline bool release_warp(warp &w, unsigned mask, const operation *what) {
  const unsigned all = mask & w.alive;
  if (all == 0 || (w.waiting & all) != all)
    return false;
  for (unsigned i : lanes{all})
    if (w.fibers[i].mask != mask || w.fibers[i].waits != what)
      return false;
  what->finish(w, all);
  w.waiting &= ~all;
  for (unsigned i : lanes{all})
    if (&w.fibers[i] != self)
      here->push(&w.fibers[i]);
  passed();
  return true;
}
inline word meet(const operation &what, unsigned mask, word value = 0,
                 unsigned source = 0) {
  fiber &f = *self;
  warp &w = *f.home;
  if (!(mask >> f.lane & 1))
    fail("a lane that is not in its own mask");
  w.in[f.lane] = value;
  w.source[f.lane] = source;
  f.mask = mask;
  f.waits = &what;
  f.where = what.name;
  w.waiting |= 1u << f.lane;
  if (!release_warp(w, mask, &what))
    suspend();
  f.waits = nullptr;
  f.where = "running";
  return w.out[f.lane];
}

inline void finish_sync(warp &, unsigned) {}
inline void finish_shuffle(warp &w, unsigned all) {
  for (unsigned i :
       lanes{all}) /* from a lane that takes no part the value is undefined */
    w.out[i] = all >> w.source[i] & 1 ? w.in[w.source[i]] : ~word{0};
}
inline void finish_vote(warp &w, unsigned all) {
  word votes = 0;
  for (unsigned i : lanes{all})
    votes |= w.in[i] << i;
  for (unsigned i : lanes{all})
    w.out[i] = votes;
}
/* in has each lane's address of its COUNT numbers. */
template <int COUNT> void finish_exchange(warp &w, unsigned all) {
  double given[32][COUNT];
  memset(given, 0xff, sizeof given); /* NaN of lanes that take no part */
  for (unsigned i : lanes{all})
    memcpy(given[i], reinterpret_cast<const void *>(w.in[i]), sizeof given[i]);
  for (unsigned i : lanes{all})
    memcpy(reinterpret_cast<void *>(w.in[i]), given[w.source[i]],
           sizeof given[i]);
}
/* The lanes' sums are added as on the device: lanes 16 apart at first. */
template <int COUNT> void finish_sums(warp &w, unsigned all) {
  double sums[32][COUNT], before[32][COUNT];
  if (all != ~0u)
    fail("sums of a warp in which lanes are missing");
  for (unsigned i = 0; i < 32; i++)
    memcpy(sums[i], reinterpret_cast<const void *>(w.in[i]), sizeof sums[i]);
  for (unsigned bits = 16; bits > 0; bits /= 2) {
    memcpy(before, sums, sizeof sums);
    for (unsigned i = 0; i < 32; i++)
      for (int k = 0; k < COUNT; k++)
        sums[i][k] += before[i ^ bits][k];
  }
  for (unsigned i = 0; i < 32; i++)
    memcpy(reinterpret_cast<void *>(w.in[i]), sums[i], sizeof sums[i]);
}
/* The places of the entries are those of hone_multiply_add_16x8x8. */
inline void finish_product(warp &w, unsigned all) {
  for (unsigned i : lanes{all})
    for (unsigned e = 0; e < 4; e++) {
      double sum = 0.0;
      for (unsigned k = 0; k < 8; k++)
        sum += w.a[i / 4 * 4 + k % 4][k / 4 * 2 + e / 2] *
               w.b[(2 * (i % 4) + e % 2) * 4 + k % 4][k / 4];
      w.product[i][e] = sum;
    }
}
template <class T, T (*F)(T, T)> void finish_reduce(warp &w, unsigned all) {
  T v = static_cast<T>(w.in[*lanes{all}]);
  for (unsigned i : lanes{all & (all - 1)})
    v = F(v, static_cast<T>(w.in[i]));
  for (unsigned i : lanes{all})
    w.out[i] = static_cast<word>(v);
}

inline const operation op_sync = {"__syncwarp", finish_sync};
inline const operation op_shuffle = {"__shfl_sync", finish_shuffle};
inline const operation op_ballot = {"__ballot_sync", finish_vote};
inline const operation op_any = {"__any_sync", finish_vote};
inline const operation op_all = {"__all_sync", finish_vote};
inline const operation op_product = {"hone_multiply_add_16x8x8",
                                     finish_product};
template <int COUNT>
inline const operation op_exchange = {"hone_exchange", finish_exchange<COUNT>};
template <int COUNT>
inline const operation op_sums = {"hone_warp_sums", finish_sums<COUNT>};
template <class T, T (*F)(T, T)>
inline const operation op_reduce = {"__reduce_sync", finish_reduce<T, F>};

template <class T> T larger(T a, T b) { return a > b ? a : b; }
template <class T> T smaller(T a, T b) { return a < b ? a : b; }
template <class T> T both(T a, T b) { return a & b; }
template <class T> T either(T a, T b) { return a | b; }
template <class T> T unlike(T a, T b) { return a ^ b; }
template <class T> T plus(T a, T b) { return a + b; }
template <> inline int plus(int a, int b) { /* int overflow wraps */
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}

template <class To, class From> To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits of another size");
  To t;
  memcpy(&t, &v, sizeof t);
  return t;
}
/* Returns the value of lane source or, if that is not inside this part of the
   warp, of this lane. */
template <class T> T shuffle(unsigned mask, T v, unsigned source, bool inside) {
  static_assert(std::is_arithmetic<T>::value && sizeof(T) <= sizeof(word),
                "a shuffle of another type");
  word in = 0;
  memcpy(&in, &v, sizeof v);
  in = meet(op_shuffle, mask, in, inside ? source : self->lane);
  memcpy(&v, &in, sizeof v);
  return v;
}
/* The first lane of this lane's part of the warp. */
inline unsigned first(int width) {
  return self->lane & ~(static_cast<unsigned>(width) - 1);
}

} // namespace hone_emulate

#endif
