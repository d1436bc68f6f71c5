/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA kernels on the CPU, so that their results can be tested where there is
   no GPU: g++ -x c++ -DHONE_EMULATE='"tests/emulate/emulate.h"'
   (gpu_sp/launch.h). A block is an OS thread, at most HONE_EMULATE_WORKERS of
   them at a time and in ascending order (all at once in a cooperative grid); a
   CUDA thread is a fiber of it that runs until it waits. Launches are
   synchronous. Fresh memory, dynamic shared memory too, holds NaNs. Breaking
   the rules of a warp, and waiting for what never comes, end the program with a
   message. Next to read: emulate_runtime.h, emulate_blas.h. */
#ifndef HONE_EMULATE_H
#define HONE_EMULATE_H

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if !defined(__x86_64__) && !defined(HONE_EMULATE_UCONTEXT)
#define HONE_EMULATE_UCONTEXT /* slower: it also saves the signal mask */
#endif
#ifdef HONE_EMULATE_UCONTEXT
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#ifndef HONE_EMULATE_WORKERS
#define HONE_EMULATE_WORKERS 2
#endif
#ifndef HONE_EMULATE_PROCESSORS
#define HONE_EMULATE_PROCESSORS 4 /* what the device says it has */
#endif
#ifndef HONE_EMULATE_STACK
#define HONE_EMULATE_STACK 65536 /* bytes of a thread's stack */
#endif
#ifndef HONE_EMULATE_PATIENCE
#define HONE_EMULATE_PATIENCE 20 /* seconds a grid may make no progress */
#endif

/* ---- The language ------------------------------------------------------ */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef __clang__
#define __builtin_assume(x) ((x) ? (void)0 : hone_emulate::fail("assume: " #x))
#endif

#define HONE_EMULATE_TYPE(t, name)                                             \
  struct alignas(2 * sizeof(t)) name##2 {                                      \
    t x, y;                                                                    \
  };                                                                           \
  struct name##3 {                                                             \
    t x, y, z;                                                                 \
  };                                                                           \
  struct alignas(sizeof(t) < 4 ? 4 * sizeof(t) : 16) name##4 {                 \
    t x, y, z, w;                                                              \
  };                                                                           \
  inline name##2 make_##name##2(t x, t y) { return {x, y}; }                   \
  inline name##3 make_##name##3(t x, t y, t z) { return {x, y, z}; }           \
  inline name##4 make_##name##4(t x, t y, t z, t w) { return {x, y, z, w}; }
HONE_EMULATE_TYPE(signed char, char)
HONE_EMULATE_TYPE(unsigned char, uchar)
HONE_EMULATE_TYPE(short, short)
HONE_EMULATE_TYPE(unsigned short, ushort)
HONE_EMULATE_TYPE(int, int)
HONE_EMULATE_TYPE(unsigned, uint)
HONE_EMULATE_TYPE(long long, longlong)
HONE_EMULATE_TYPE(unsigned long long, ulonglong)
HONE_EMULATE_TYPE(float, float)
HONE_EMULATE_TYPE(double, double)
#undef HONE_EMULATE_TYPE

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1)
      : x(vx), y(vy), z(vz) {}
};

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

/* ---- Fibers ------------------------------------------------------------ */

#ifndef HONE_EMULATE_UCONTEXT
extern "C" void hone_emulate_change(void **from, void *to);
asm(".ifndef hone_emulate_change\n\t" /* not twice in one output of LTO */
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
/* The stacks' tops are spread over the cache: no power of two apart. */
constexpr size_t STACK = HONE_EMULATE_STACK + 576;

[[noreturn]] inline void fail(const char *what) {
  fprintf(stderr, "emulate: block (%u, %u, %u), thread (%u, %u, %u): %s\n",
          blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
          threadIdx.z, what);
  abort();
}

struct warp;
struct operation { /* of the lanes of a warp, done by the last that arrives */
  const char *name;
  void (*finish)(warp &w, unsigned all);
};

struct fiber {
  uint3 thread;
  unsigned lane, mask; /* mask: of the operation that it waits for */
  warp *home;
  const operation *waits;
  const char *where; /* for the report of a deadlock */
  char *stack;       /* NULL: it has not begun */
#ifdef HONE_EMULATE_UCONTEXT
  ucontext_t context;
#else
  void *stack_pointer;
#endif
};

struct lanes { /* of a mask: for (unsigned i : lanes{mask}) */
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
  unsigned alive, waiting; /* bits of lanes */
  unsigned source[32];     /* lanes, of shuffles */
  word in[32], out[32];
};

struct block {
  fiber fibers[MOST], scheduler;
  warp warps[MOST / 32];
  fiber *ready[MOST]; /* a ring */
  unsigned head, count;
  unsigned threads, live;
  unsigned arrived, votes, result; /* at __syncthreads; voted; of the last */
  unsigned idle, rounds, quiet;    /* polls; all polled; barriers since */
  std::vector<fiber *> some[16];   /* at hone_barrier, by its number */
  uint3 index;
  std::atomic<unsigned long> progress;
  const std::function<void()> *kernel;
  const char *name;
  void *dynamic;
  char *stacks, *unused[MOST]; /* the latter: hot ones last */
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

/* Who waits where, one line for the threads that wait for the same. */
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
/* A barrier is progress unless it belongs to a loop that polls. */
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
/* Others run until this fiber, which is in the ring or in what wakes it up,
   is popped. */
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
/* A value was not there yet: all others run first, also other blocks. */
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
  self->where = where; /* until a barrier: it may poll for ever */
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
/* The number of threads whose vote is true. */
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

/* The barrier of that many of its threads. */
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
  for (unsigned i : lanes{all}) /* from a lane that takes no part: undefined */
    w.out[i] = all >> w.source[i] & 1 ? w.in[w.source[i]] : ~word{0};
}
inline void finish_vote(warp &w, unsigned all) {
  word votes = 0;
  for (unsigned i : lanes{all})
    votes |= w.in[i] << i;
  for (unsigned i : lanes{all})
    w.out[i] = votes;
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
template <class T, T (*F)(T, T)>
inline const operation op_reduce = {"__reduce_sync", finish_reduce<T, F>};

template <class T> T larger(T a, T b) { return a > b ? a : b; }
template <class T> T smaller(T a, T b) { return a < b ? a : b; }
template <class T> T both(T a, T b) { return a & b; }
template <class T> T either(T a, T b) { return a | b; }
template <class T> T unlike(T a, T b) { return a ^ b; }
template <class T> T plus(T a, T b) { return a + b; }
template <> inline int plus(int a, int b) { /* wraps */
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}

template <class To, class From> To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "bits of another size");
  To t;
  memcpy(&t, &v, sizeof t);
  return t;
}
/* From source or, when that is not inside its part of the warp, itself. */
template <class T> T shuffle(unsigned mask, T v, unsigned source, bool inside) {
  static_assert(std::is_arithmetic<T>::value && sizeof(T) <= sizeof(word),
                "a shuffle of another type");
  word in = 0;
  memcpy(&in, &v, sizeof v);
  in = meet(op_shuffle, mask, in, inside ? source : self->lane);
  memcpy(&v, &in, sizeof v);
  return v;
}
/* The first lane of this one's part of the warp. */
inline unsigned first(int width) {
  return self->lane & ~(static_cast<unsigned>(width) - 1);
}

/* ---- Grids ------------------------------------------------------------- */

/* Returns as a fiber that begins on this stack, or never. */
inline void leave() {
  block &b = *here;
  fiber &f = *self;
  warp &w = *f.home;
  f.where = "ended";
  w.alive &= ~(1u << f.lane);
  for (unsigned i : lanes{w.waiting})
    if (w.waiting >> i & 1) /* still */
      release_warp(w, w.fibers[i].mask, w.fibers[i].waits);
  if (--b.live == 0)
    b.push(&b.scheduler);
  else
    release_block(b);
  progressed();
  fiber *const to = next_fiber();
  const bool begins = to->stack == nullptr;
  if (begins) {
    to->stack = f.stack;
  } else {
    for (int i = 0; i < 64; i++)
      if (f.stack[i])
        fail("stack overflow: a larger HONE_EMULATE_STACK");
    b.unused[b.stacks_unused++] = f.stack;
  }
  self = to;
  threadIdx = to->thread;
  if (!begins)
    change(&f, to);
}
inline void enter() {
  for (;;) {
    (*here->kernel)();
    leave();
  }
}

inline void prepare(fiber &f) {
#ifdef __SANITIZE_ADDRESS__ /* what the last one never returned from */
  ASAN_UNPOISON_MEMORY_REGION(f.stack, STACK);
#endif
#ifdef HONE_EMULATE_UCONTEXT
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = STACK;
  f.context.uc_link = nullptr;
  makecontext(&f.context, enter, 0);
#else
  void **top = reinterpret_cast<void **>(f.stack + STACK);
  *--top = nullptr; /* enter's caller, and its stack's alignment */
  *--top = reinterpret_cast<void *>(enter);
  for (int i = 0; i < 6; i++)
    *--top = nullptr;
  f.stack_pointer = top;
#endif
}

inline void run_block(block &b) {
  const unsigned n = blockDim.x * blockDim.y * blockDim.z;
  b.head = b.count = b.arrived = b.votes = b.idle = b.rounds = b.quiet = 0;
  for (auto &at : b.some)
    at.clear();
  b.threads = b.live = n;
  b.index = blockIdx;
  for (unsigned i = 0; i < n; i++) {
    fiber &f = b.fibers[i];
    warp &w = b.warps[i / 32];
    if (i % 32 == 0) {
      w.fibers = &f;
      w.alive = n - i < 32 ? (1u << (n - i)) - 1 : ~0u;
      w.waiting = 0;
    }
    f.thread = {i % blockDim.x, i / blockDim.x % blockDim.y,
                i / blockDim.x / blockDim.y};
    f.lane = i % 32;
    f.home = &w;
    f.waits = nullptr;
    f.where = "running";
    f.stack = nullptr;
    b.push(&f);
  }
  self = &b.scheduler;
  self->stack = b.stacks; /* not used: it has its thread's */
  suspend();
}

struct grid {
  dim3 blocks, threads;
  size_t shared;
  bool cooperative;
  const char *name;
  std::function<void()> kernel;
  std::atomic<word> next;
  std::vector<std::unique_ptr<block>> at_work;
  unsigned long before; /* progress a second ago */
  int stale;            /* seconds without any */
};

inline void work(grid &g, block &b) {
  const word count = word{g.blocks.x} * g.blocks.y * g.blocks.z;
  if (posix_memalign(&b.dynamic, 1024, g.shared ? g.shared : 1) != 0)
    fail("no memory for a block");
  here = &b;
  b.kernel = &g.kernel;
  b.name = g.name;
  gridDim = g.blocks;
  blockDim = g.threads;
  word i;
  while ((i = g.next++) < count) {
    blockIdx = {static_cast<unsigned>(i % g.blocks.x),
                static_cast<unsigned>(i / g.blocks.x % g.blocks.y),
                static_cast<unsigned>(i / g.blocks.x / g.blocks.y)};
    memset(b.dynamic, 0xff, g.shared);
    run_block(b);
    if (g.cooperative)
      break;
  }
  free(b.dynamic);
}

/* A thread that ends the program where a grid makes no progress. */
struct watchdog {
  std::mutex lock;
  std::condition_variable change;
  std::vector<grid *> grids;
  bool over = false;
  std::thread thread; /* from the first grid on */

  void look() {
    std::unique_lock<std::mutex> hold(lock);
    while (
        !change.wait_for(hold, std::chrono::seconds(1), [&] { return over; }))
      for (grid *g : grids)
        look_at(*g);
  }
  static void look_at(grid &g) {
    unsigned long now = 0;
    for (auto &b : g.at_work)
      now += b->progress.load(std::memory_order_relaxed);
    g.stale = now == g.before ? g.stale + 1 : 0;
    g.before = now;
    if (g.stale < HONE_EMULATE_PATIENCE)
      return;
    for (auto &b : g.at_work)
      report(*b);
    abort();
  }
  void add(grid *g) {
    std::lock_guard<std::mutex> hold(lock);
    grids.push_back(g);
    if (!thread.joinable())
      thread = std::thread([this] { look(); });
  }
  void remove(const grid *g) {
    std::lock_guard<std::mutex> hold(lock);
    for (size_t i = grids.size(); i-- > 0;)
      if (grids[i] == g)
        grids.erase(grids.begin() + static_cast<std::ptrdiff_t>(i));
  }
  ~watchdog() {
    {
      std::lock_guard<std::mutex> hold(lock);
      over = true;
    }
    change.notify_all();
    if (thread.joinable())
      thread.join();
  }
};
inline watchdog watching;

struct common { /* by all launches: stacks kept, and the kernels' limits */
  std::mutex lock;
  std::vector<std::unique_ptr<block>> spare;
  std::map<const void *, size_t> shared;
};
inline common kept;

/* By the calling thread and as many more as there are workers. */
inline void run(grid &g, unsigned workers) {
  std::vector<std::thread> others;
  {
    std::lock_guard<std::mutex> hold(kept.lock);
    while (g.at_work.size() < workers)
      if (kept.spare.empty()) {
        g.at_work.emplace_back(new block);
      } else {
        g.at_work.push_back(std::move(kept.spare.back()));
        kept.spare.pop_back();
      }
  }
  watching.add(&g);
  for (unsigned i = 1; i < workers; i++)
    others.emplace_back(work, std::ref(g), std::ref(*g.at_work[i]));
  work(g, *g.at_work[0]);
  for (auto &t : others)
    t.join();
  watching.remove(&g);
  std::lock_guard<std::mutex> hold(kept.lock);
  for (auto &b : g.at_work)
    kept.spare.push_back(std::move(b));
}

} // namespace hone_emulate

/* ---- The runtime ------------------------------------------------------- */

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorCooperativeLaunchTooLarge = 720
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
typedef struct CUstream_st *cudaStream_t;

namespace hone_emulate {

constexpr size_t SHARED = 48 << 10; /* dynamic, unless allowed more */
constexpr int SHARED_OPTIN = 227 << 10;
constexpr int RESIDENT = MOST * 2; /* threads of a processor */
inline thread_local cudaError_t last_error = cudaSuccess;
inline void check_stream(cudaStream_t stream); /* ends on one that is gone */

/* One launch, called with the kernel's arguments. */
template <class... P> struct launch {
  void (*kernel)(P...);
  const char *name;
  bool cooperative;
  dim3 blocks, threads;
  size_t shared;

  cudaError_t check(word count) const {
    const word n = word{threads.x} * threads.y * threads.z;
    if (count == 0 || n == 0 || n > MOST || threads.z > 64 ||
        blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535)
      return cudaErrorInvalidConfiguration;
    if (cooperative && count > HONE_EMULATE_PROCESSORS * (RESIDENT / n))
      return cudaErrorCooperativeLaunchTooLarge;
    std::lock_guard<std::mutex> hold(kept.lock);
    const size_t more = kept.shared[reinterpret_cast<const void *>(kernel)];
    return shared > SHARED && shared > more ? cudaErrorInvalidValue
                                            : cudaSuccess;
  }
  void operator()(P... arguments) const {
    const word count = word{blocks.x} * blocks.y * blocks.z;
    const cudaError_t error = check(count);
    if (error != cudaSuccess) {
      last_error = error;
      return;
    }
    const word most = cooperative ? count : HONE_EMULATE_WORKERS;
    grid g = {};
    g.blocks = blocks;
    g.threads = threads;
    g.shared = shared;
    g.cooperative = cooperative;
    g.name = name;
    g.kernel = [&] { kernel(arguments...); };
    run(g, static_cast<unsigned>(count < most ? count : most));
  }
};
template <class... P>
launch<P...> prepare_launch(void (*kernel)(P...), const char *name,
                            bool cooperative, dim3 blocks, dim3 threads,
                            size_t shared, cudaStream_t stream) {
  check_stream(stream);
  return {kernel, name, cooperative, blocks, threads, shared};
}

#define HONE_LAUNCH(kernel, grid, block, shared, stream, ...)                  \
  hone_emulate::prepare_launch(kernel, #kernel, false, (grid), (block),        \
                               (shared), (stream))(__VA_ARGS__)
#define HONE_LAUNCH_COOPERATIVE(kernel, grid, block, shared, stream, ...)      \
  hone_emulate::prepare_launch(kernel, #kernel, true, (grid), (block),         \
                               (shared), (stream))(__VA_ARGS__)
#define HONE_DYNAMIC_SHARED(type, name)                                        \
  type *name = static_cast<type *>(hone_emulate::here->dynamic)

namespace device { /* what kernels and those that launch them call */

inline cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
template <class K>
cudaError_t cudaFuncSetAttribute(K *kernel, cudaFuncAttribute, int bytes) {
  if (bytes < 0 || bytes > SHARED_OPTIN)
    return last_error = cudaErrorInvalidValue;
  std::lock_guard<std::mutex> hold(kept.lock);
  kept.shared[reinterpret_cast<const void *>(kernel)] =
      static_cast<size_t>(bytes);
  return cudaSuccess;
}
template <class K>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, K *,
                                                          int threads, size_t) {
  *blocks = RESIDENT / threads;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr what, int) {
  *v = what == cudaDevAttrMultiProcessorCount ? HONE_EMULATE_PROCESSORS
       : what == cudaDevAttrCooperativeLaunch ? 1
                                              : SHARED_OPTIN;
  return cudaSuccess;
}
/* ---- Threads among themselves ------------------------------------------ */

inline void __syncthreads() { sync_block("__syncthreads", 0); }
inline int __syncthreads_count(int v) {
  return static_cast<int>(sync_block("__syncthreads_count", v != 0));
}
inline int __syncthreads_or(int v) {
  return sync_block("__syncthreads_or", v != 0) != 0;
}
inline int __syncthreads_and(int v) {
  return sync_block("__syncthreads_and", v == 0) == 0;
}
inline void __syncwarp(unsigned mask = ~0u) { meet(op_sync, mask); }
inline unsigned __activemask() { return self->home->alive; }

inline unsigned __ballot_sync(unsigned mask, int v) {
  return static_cast<unsigned>(meet(op_ballot, mask, v != 0));
}
inline int __any_sync(unsigned mask, int v) {
  return meet(op_any, mask, v != 0) != 0;
}
inline int __all_sync(unsigned mask, int v) { /* no lane says no */
  return meet(op_all, mask, v == 0) == 0;
}

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32) {
  const unsigned in = static_cast<unsigned>(source & (width - 1));
  return shuffle(mask, v, first(width) + in, true);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned lane = self->lane, d = delta & 31;
  return shuffle(mask, v, lane - d, lane >= first(width) + d);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned from = self->lane + (delta & 31);
  return shuffle(mask, v, from, from - first(width) < unsigned(width));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const unsigned from = self->lane ^ (unsigned(bits) & 31);
  return shuffle(mask, v, from, from < first(width) + unsigned(width));
}

#define HONE_EMULATE_REDUCE(name, type, f)                                     \
  inline type __reduce_##name##_sync(unsigned mask, type v) {                  \
    return static_cast<type>(                                                  \
        meet(op_reduce<type, f>, mask, static_cast<word>(v)));                 \
  }
HONE_EMULATE_REDUCE(max, unsigned, larger)
HONE_EMULATE_REDUCE(max, int, larger)
HONE_EMULATE_REDUCE(min, unsigned, smaller)
HONE_EMULATE_REDUCE(min, int, smaller)
HONE_EMULATE_REDUCE(add, unsigned, plus)
HONE_EMULATE_REDUCE(add, int, plus)
HONE_EMULATE_REDUCE(and, unsigned, both)
HONE_EMULATE_REDUCE(or, unsigned, either)
HONE_EMULATE_REDUCE(xor, unsigned, unlike)
#undef HONE_EMULATE_REDUCE

/* A value that stays may be a lock that is taken: others run, given where. */
template <class T, class F> T update(T *p, const char *where, F next) {
  T old, now;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do
    now = next(old);
  while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_RELAXED));
  if (memcmp(&old, &now, sizeof old) != 0)
    progressed();
  else if (where)
    poll(where);
  return old;
}

#define HONE_EMULATE_ATOMIC(name, type, where, value)                          \
  inline type name(type *p, type v) {                                          \
    return update(p, where, [v](type old) { return (void)old, value; });       \
  }
#define HONE_EMULATE_ATOMICS(type)                                             \
  HONE_EMULATE_ATOMIC(atomicMax, type, nullptr, larger(old, v))                \
  HONE_EMULATE_ATOMIC(atomicMin, type, nullptr, smaller(old, v))               \
  HONE_EMULATE_ATOMIC(atomicAnd, type, nullptr, both(old, v))                  \
  HONE_EMULATE_ATOMIC(atomicOr, type, nullptr, either(old, v))                 \
  HONE_EMULATE_ATOMIC(atomicXor, type, nullptr, unlike(old, v))                \
  HONE_EMULATE_ATOMIC(atomicAdd, type, "atomicAdd", plus(old, v))              \
  HONE_EMULATE_ATOMIC(atomicExch, type, "atomicExch", v)                       \
  inline type atomicCAS(type *p, type expected, type v) {                      \
    return update(p, "atomicCAS", [expected, v](type old) {                    \
      return old == expected ? v : old;                                        \
    });                                                                        \
  }
HONE_EMULATE_ATOMICS(int)
HONE_EMULATE_ATOMICS(unsigned)
HONE_EMULATE_ATOMICS(word)
HONE_EMULATE_ATOMIC(atomicMax, long long, nullptr, larger(old, v))
HONE_EMULATE_ATOMIC(atomicMin, long long, nullptr, smaller(old, v))
HONE_EMULATE_ATOMIC(atomicAdd, float, "atomicAdd", plus(old, v))
HONE_EMULATE_ATOMIC(atomicAdd, double, "atomicAdd", plus(old, v))
HONE_EMULATE_ATOMIC(atomicExch, float, "atomicExch", v)
#undef HONE_EMULATE_ATOMICS
#undef HONE_EMULATE_ATOMIC

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { poll("__nanosleep"); }
inline float hone_reciprocal(float v) {
  const float r = 1.0F / v;
  return fabsf(v) < 1.1754944e-38F   ? copysignf(1.0F / 0.0F, v)
         : fabsf(r) < 1.1754944e-38F ? 0.0F
                                     : r;
}
inline void hone_barrier(int id, int threads) {
  hone_emulate::sync_some(static_cast<unsigned>(id),
                          static_cast<unsigned>(threads));
}
inline int hone_hide_value(int v) { return v; }
inline void hone_poll_pause() { poll("hone_poll_pause"); }
inline void hone_store_word(unsigned long long *to, unsigned long long word) {
  __atomic_store_n(to, word, __ATOMIC_RELAXED);
  progressed();
}
inline unsigned long long hone_load_word(const unsigned long long *from) {
  return __atomic_load_n(from, __ATOMIC_RELAXED);
}
inline void hone_load_two_words(const unsigned long long *from,
                                unsigned long long *one,
                                unsigned long long *other) {
  *one = hone_load_word(from);
  *other = hone_load_word(from + 1);
}

/* ---- Loads, stores, bits ----------------------------------------------- */

template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> void __stcg(T *p, std::enable_if_t<true, T> v) { *p = v; }
template <class T> void __stcs(T *p, std::enable_if_t<true, T> v) { *p = v; }

#define HONE_EMULATE_BITS(name, to, from)                                      \
  inline to name(from v) { return bits<to>(v); }
HONE_EMULATE_BITS(__float_as_uint, unsigned, float)
HONE_EMULATE_BITS(__uint_as_float, float, unsigned)
HONE_EMULATE_BITS(__float_as_int, int, float)
HONE_EMULATE_BITS(__int_as_float, float, int)
HONE_EMULATE_BITS(__double_as_longlong, long long, double)
HONE_EMULATE_BITS(__longlong_as_double, double, long long)
#undef HONE_EMULATE_BITS
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) {
  return v ? __builtin_clz(static_cast<unsigned>(v)) : 32;
}
inline int __clzll(long long v) {
  return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64;
}

/* ---- Arithmetic -------------------------------------------------------- */

/* v rounded here: no part of a fused operation. */
template <class T> T rounded(T v) {
#ifdef __x86_64__
  asm("" : "+x"(v));
#else
  asm("" : "+m"(v));
#endif
  return v;
}
#define HONE_EMULATE_ROUNDED(f, d, type)                                       \
  inline type __##f##add_rn(type a, type b) {                                  \
    return rounded(rounded(a) + rounded(b));                                   \
  }                                                                            \
  inline type __##f##sub_rn(type a, type b) {                                  \
    return rounded(rounded(a) - rounded(b));                                   \
  }                                                                            \
  inline type __##f##mul_rn(type a, type b) { return rounded(a * b); }         \
  inline type __##f##div_rn(type a, type b) { return a / b; }                  \
  inline type __##f##rcp_rn(type a) { return 1 / a; }                          \
  inline type __##f##sqrt_rn(type a) { return sqrt(a); }                       \
  inline type __##d(type a, type b, type c) { return fma(a, b, c); }
HONE_EMULATE_ROUNDED(f, fmaf_rn, float)
HONE_EMULATE_ROUNDED(d, fma_rn, double)
#undef HONE_EMULATE_ROUNDED
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float a) { return 1 / sqrtf(a); }
inline double rsqrt(double a) { return 1 / sqrt(a); }
inline float __double2float_rn(double a) { return static_cast<float>(a); }

#define HONE_EMULATE_ORDER(a, b, type)                                         \
  inline type min(a x, b y) { return smaller<type>(x, y); }                    \
  inline type max(a x, b y) { return larger<type>(x, y); }
HONE_EMULATE_ORDER(int, int, int)
HONE_EMULATE_ORDER(unsigned, unsigned, unsigned)
HONE_EMULATE_ORDER(int, unsigned, unsigned)
HONE_EMULATE_ORDER(unsigned, int, unsigned)
HONE_EMULATE_ORDER(long, long, long)
HONE_EMULATE_ORDER(unsigned long, unsigned long, unsigned long)
HONE_EMULATE_ORDER(long long, long long, long long)
HONE_EMULATE_ORDER(word, word, word)
#undef HONE_EMULATE_ORDER
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline double min(float x, double y) { return fmin(x, y); }
inline double max(float x, double y) { return fmax(x, y); }
inline double min(double x, float y) { return fmin(x, y); }
inline double max(double x, float y) { return fmax(x, y); }

/* Half precision, bfloat16: conversions alone. */
struct __half {
  unsigned short bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
inline __half __ushort_as_half(unsigned short v) { return {v}; }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline float __half2float(__half h) {
  const unsigned sign = (h.bits & 0x8000u) << 16, v = h.bits & 0x7fffu;
  if (v >= 0x7c00) /* Inf or NaN */
    return __uint_as_float(sign | 0x7f800000u | (v & 0x3ffu) << 13);
  if (v < 0x400) /* times 2^-24 */
    return copysignf(static_cast<float>(v) * 0x1p-24f, __uint_as_float(sign));
  return __uint_as_float(sign | ((v << 13) + (112u << 23)));
}
inline __half __float2half_rn(float a) {
  const unsigned sign = __float_as_uint(a) >> 16 & 0x8000u;
  unsigned v = __float_as_uint(a) & 0x7fffffffu;
  if (v > 0x7f800000u)
    return {0x7fff}; /* the NaN of the device */
  if (v >= 0x477ff000u)
    v = 0x7c00;             /* 65520 rounds to Inf */
  else if (v < 0x38800000u) /* in units of 2^-24, those of 0.5f */
    v = __float_as_uint(rounded(fabsf(a) + 0.5f)) - 0x3f000000u;
  else
    v = (v + 0xfffu + (v >> 13 & 1) - (112u << 23)) >> 13;
  return {static_cast<unsigned short>(sign | v)};
}
inline __half __float2half(float a) { return __float2half_rn(a); }
inline __half2 __floats2half2_rn(float a, float b) {
  return {__float2half_rn(a), __float2half_rn(b)};
}
inline float2 __half22float2(__half2 h) {
  return {__half2float(h.x), __half2float(h.y)};
}

/* The upper half of a float. */
struct __nv_bfloat16 {
  unsigned short bits;
};
inline __nv_bfloat16 __float2bfloat16_rn(float a) {
  const unsigned v = __float_as_uint(a);
  if ((v & 0x7fffffffu) > 0x7f800000u)
    return {0x7fff};
  return {static_cast<unsigned short>((v + 0x7fffu + (v >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float a) {
  return __float2bfloat16_rn(a);
}
inline float __bfloat162float(__nv_bfloat16 h) {
  return __uint_as_float(static_cast<unsigned>(h.bits) << 16);
}

} // namespace device
} // namespace hone_emulate

#include "tests/emulate/emulate_blas.h"
#include "tests/emulate/emulate_runtime.h"

using namespace hone_emulate::device;

#endif
