/* SPDX-License-Identifier: BSD-3-Clause */
/* Grids and their launch for emulate.h. */
#ifndef HONE_EMULATE_GRID_H
#define HONE_EMULATE_GRID_H

#include "tests/emulate/emulate_threads.h"

namespace hone_emulate {

/* ---- Grids ------------------------------------------------------------- */

/* Ends a fiber. Returns if another fiber begins on this stack, otherwise
   never. */
inline void leave() {
  block &b = *here;
  fiber &f = *self;
  warp &w = *f.home;
  f.where = "ended";
  if (!f.copies.empty())
    fail("a thread ends before its copies");
  w.alive &= ~(1u << f.lane);
  for (unsigned i : lanes{w.waiting})
    if (w.waiting >> i & 1) /* it may have been released meanwhile */
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
    word lowest[8];
    memcpy(lowest, f.stack, sizeof lowest);
    for (word v : lowest)
      if (v != 0)
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
#ifdef __SANITIZE_ADDRESS__ /* frames of the last fiber, which never returned  \
                             */
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
  *--top = nullptr; /* enter has no caller; this also aligns its stack */
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
  self->stack = b.stacks; /* not used: the scheduler has its thread's stack */
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
  unsigned long before; /* progress at the last check, a second ago */
  int stale;            /* seconds without progress */
};

inline void work(grid &g, block &b) {
  const word count = word{g.blocks.x} * g.blocks.y * g.blocks.z;
  if (posix_memalign(&b.dynamic, 1024, g.shared ? g.shared : 1) != 0)
    fail("no memory for a block");
  here = &b;
  b.dynamic_bytes = g.shared;
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

/* A thread that ends the program if a grid makes no progress. */
struct watchdog {
  std::mutex lock;
  std::condition_variable change;
  std::vector<grid *> grids;
  bool over = false;
  std::thread thread; /* started with the first grid */

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

struct common { /* shared by all launches: unused blocks with their stacks, and
                   the kernels' limits */
  std::mutex lock;
  std::vector<std::unique_ptr<block>> spare;
  std::map<const void *, size_t> shared;
};
inline common kept;

/* Runs the grid on the calling thread and workers - 1 others. */
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
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorCooperativeLaunchTooLarge = 720
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
typedef struct CUstream_st *cudaStream_t;

namespace hone_emulate {

/* Limit of dynamic shared memory, unless raised. */
constexpr size_t SHARED = 48 << 10;
/* The limit to which it can be raised: of compute capability 9.0, or so many
   KiB. */
inline int shared_optin() {
  const char *text = getenv("HONE_EMULATE_SHARED");
  return (text ? atoi(text) : 227) << 10;
}
/* Ten times the compute capability. */
inline int capability() {
  const char *text = getenv("HONE_EMULATE_CAPABILITY");
  return text ? atoi(text) : 90;
}
constexpr int RESIDENT = MOST * 2; /* threads that fit on a processor */
inline thread_local cudaError_t last_error = cudaSuccess;
inline void
check_stream(cudaStream_t stream); /* fails if the stream was destroyed */
inline bool put_off(cudaStream_t stream, std::function<void()> operation);
/* The device of this thread's calls, as cudaSetDevice sets it. */
inline thread_local int current_device = 0;
/* Returns true if the stream belongs to this thread's device, as a launch
   demands. */
inline bool stream_is_near(cudaStream_t stream);
/* Ends the program if a word of the argument is an address in the memory of a
   device that this thread's device cannot reach. */
inline void check_argument(const void *argument, size_t bytes,
                           const char *kernel);

/* Where a kernel finds what the caller knows by the address p: memory of the
   device that nothing else may touch has another one for it. */
inline void *reach(const void *p);
template <class T> T seen_there(T v) {
  if constexpr (std::is_pointer_v<T>)
    return static_cast<T>(reach(v));
  else
    return v;
}

/* One launch, called with the kernel's arguments. */
template <class... P> struct launch {
  void (*kernel)(P...);
  const char *name;
  bool cooperative;
  dim3 blocks, threads;
  size_t shared;
  bool near; /* the stream belongs to the thread's device */
  cudaStream_t stream;

  cudaError_t check(word count) const {
    const word n = word{threads.x} * threads.y * threads.z;
    if (!near)
      return cudaErrorInvalidResourceHandle;
    if (count == 0 || n == 0 || n > MOST || threads.z > 64 ||
        blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535)
      return cudaErrorInvalidConfiguration;
    if (cooperative && count > HONE_EMULATE_PROCESSORS * (RESIDENT / n))
      return cudaErrorCooperativeLaunchTooLarge;
    std::lock_guard<std::mutex> hold(kept.lock);
    const auto more = kept.shared.find(reinterpret_cast<const void *>(kernel));
    const size_t most = more != kept.shared.end() ? more->second : 0;
    return shared > SHARED && shared > most ? cudaErrorInvalidValue
                                            : cudaSuccess;
  }
  void operator()(P... arguments) const {
    const word count = word{blocks.x} * blocks.y * blocks.z;
    const cudaError_t error = check(count);
    if (error != cudaSuccess) {
      last_error = error;
      return;
    }
    (check_argument(&arguments, sizeof arguments, name), ...);
    const launch all = *this;
    if (!put_off(stream, [=] { all.run_now(arguments...); }))
      run_now(arguments...);
  }
  void run_now(P... arguments) const {
    const word count = word{blocks.x} * blocks.y * blocks.z;
    const word most = cooperative ? count : HONE_EMULATE_WORKERS;
    grid g = {};
    g.blocks = blocks;
    g.threads = threads;
    g.shared = shared;
    g.cooperative = cooperative;
    g.name = name;
    const std::tuple<P...> seen(seen_there(arguments)...);
    g.kernel = [&] { std::apply(kernel, seen); };
    run(g, static_cast<unsigned>(count < most ? count : most));
  }
};
template <class... P>
launch<P...> prepare_launch(void (*kernel)(P...), const char *name,
                            bool cooperative, dim3 blocks, dim3 threads,
                            size_t shared, cudaStream_t stream) {
  check_stream(stream);
  return {kernel,
          name,
          cooperative,
          blocks,
          threads,
          shared,
          stream_is_near(stream),
          stream};
}

#define HONE_LAUNCH(kernel, grid, block, shared, stream, ...)                  \
  hone_emulate::prepare_launch(kernel, #kernel, false, (grid), (block),        \
                               (shared), (stream))(__VA_ARGS__)
#define HONE_LAUNCH_COOPERATIVE(kernel, grid, block, shared, stream, ...)      \
  hone_emulate::prepare_launch(kernel, #kernel, true, (grid), (block),         \
                               (shared), (stream))(__VA_ARGS__)
#define HONE_DYNAMIC_SHARED(type, name)                                        \
  type *name = static_cast<type *>(hone_emulate::here->dynamic)

} // namespace hone_emulate

#endif
