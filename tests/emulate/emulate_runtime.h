/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA runtime of emulate.h, which includes this: memory, and what streams
   and events are; emulate_streams.h has their functions. Every enqueued
   operation is done at once, but for those of the default stream that may still
   be under way when their call returns (default_stream), and unless a test
   wants it later (emulate_late.h). Where the CUDA runtime leaves behavior
   undefined the program ends with a message: copies that leave an allocation or
   take memory of the host for memory of the device, and streams and events that
   were destroyed. At its end it lists what was never freed. */
#ifndef HONE_EMULATE_RUNTIME_H
#define HONE_EMULATE_RUNTIME_H

#include "tests/emulate/emulate_late.h"
#include "tests/emulate/refuse.h"

#ifndef HONE_EMULATE_MEMORY
#define HONE_EMULATE_MEMORY (size_t{4} << 30) /* bytes that a device has */
#endif

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
enum {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
typedef void *cudaGraph_t;

typedef CUevent_st *cudaEvent_t;

/* Tells tests in C that the device is emulated. */
extern "C" {
__attribute__((used)) extern inline const int hone_emulated = 1;
}

/* Defined in tests/unit/fake_driver.c, where that is linked: the address at
   which copies find device memory that nothing else may touch; NULL if p is not
   such memory. */
extern "C" void *fake_real(const void *p) __attribute__((weak));

namespace hone_emulate {

inline void *guarded(const void *p) {
  return fake_real ? fake_real(p) : nullptr;
}
inline void *reach(const void *p) {
  void *real = guarded(p);
  return real ? real : const_cast<void *>(p);
}

/* Captures of graphs in the mode Global: every call that may wait or that
   concerns all of the device breaks them, unless its thread is in the mode
   Relaxed; to free memory breaks them in any mode. */
inline thread_local cudaStreamCaptureMode capture_mode;
inline thread_local int refused_exchanges = 0; /* so many of the next ones */
inline std::atomic<bool> capturing{false}, capture_broken{false};
/* How often a stream was told to wait for the default one. */
inline std::atomic<int64_t> waits_for_default{0};
inline void breaks_captures() {
  if (capturing && capture_mode != cudaStreamCaptureModeRelaxed)
    capture_broken = true;
}

struct allocation {
  size_t bytes;
  cudaMemoryType type;
  int device; /* the thread's device when it was made */
};

/* The allocations by address, and the streams and events that exist. */
struct inventory {
  std::mutex lock;
  std::map<const char *, allocation> memory;
  std::map<const void *, const char *> handles;
  size_t device_bytes[MOST_DEVICES] = {};

  ~inventory() {
    size_t host = 0, device = 0;
    for (const auto &[p, a] : memory)
      (a.type == cudaMemoryTypeDevice ? device : host)++;
    if (host + device + handles.size() == 0)
      return;
    fprintf(stderr,
            "emulate: never freed: %zu allocations on the device, %zu on "
            "the host, %zu streams, events and handles\n",
            device, host, handles.size());
    _exit(5);
  }
};
inline inventory owned;

/* The number of all these; a test that leaks nothing does not change it. */
inline size_t owned_now() {
  std::lock_guard<std::mutex> hold(owned.lock);
  return owned.memory.size() + owned.handles.size();
}

/* The allocation that contains p, or NULL; *left is its size from p on. */
inline const allocation *find(const void *p, size_t *left) {
  auto at = owned.memory.upper_bound(static_cast<const char *>(p));
  if (at == owned.memory.begin())
    return nullptr;
  --at;
  const size_t from =
      static_cast<size_t>(static_cast<const char *>(p) - at->first);
  *left = at->second.bytes - from;
  return from < at->second.bytes ? &at->second : nullptr;
}

/* Checks that bytes from p on lie in one allocation on the device, or that none
   of them is in an allocation there. */
inline void check_place(const void *p, size_t bytes, bool device,
                        const char *what) {
  if (bytes == 0)
    return;
  std::lock_guard<std::mutex> hold(owned.lock);
  size_t left = 0;
  const allocation *a = find(p, &left);
  const bool there = guarded(p) || (a && a->type == cudaMemoryTypeDevice);
  if (there != device)
    fail((std::string(what) +
          (device ? ": not memory of the device" : ": memory of the device"))
             .c_str());
  if (a && bytes > left)
    fail((std::string(what) + ": beyond the end of an allocation").c_str());
}
inline bool on_device(const void *p) {
  std::lock_guard<std::mutex> hold(owned.lock);
  size_t left;
  const allocation *a = find(p, &left);
  return guarded(p) || (a && a->type == cudaMemoryTypeDevice);
}
/* Returns the device in whose memory p lies; -1: none. */
inline int device_of(const void *p) {
  std::lock_guard<std::mutex> hold(owned.lock);
  size_t left;
  const allocation *a = find(p, &left);
  return a && a->type == cudaMemoryTypeDevice ? a->device : -1;
}
/* Checks that this device can load from and store to p. */
inline void check_near(const void *p, int device, const char *what) {
  const int there = device_of(p);
  if (there >= 0 && !reaches(device, there))
    fail((std::string(what) + ": memory of device " + std::to_string(there) +
          ", which device " + std::to_string(device) + " cannot reach")
             .c_str());
}
inline void check_argument(const void *argument, size_t bytes,
                           const char *kernel) {
  const char *at = static_cast<const char *>(argument);
  void *p;
  if (device_count() == 1)
    return;
  for (size_t k = 0; k + sizeof p <= bytes; k += sizeof p) {
    memcpy(&p, at + k, sizeof p);
    /* A small integer with half of an old address in the padding behind it. */
    if (static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) >= 1U << 20)
      check_near(p, current_device, kernel);
  }
}

/* The default stream. cudaMemset, and copies to the device from memory that is
   not pinned, may still be under way when their call returns. Streams created
   as NonBlocking do not wait for it, so it is done here as late as CUDA allows:
   when something waits for the default stream or follows it. */
struct default_stream {
  std::mutex lock;
  std::vector<std::function<void()>> late;
};
inline default_stream unfinished;
inline void enqueue_late(std::function<void()> operation) {
  std::lock_guard<std::mutex> hold(unfinished.lock);
  unfinished.late.push_back(std::move(operation));
}
inline void finish_default_stream() {
  std::lock_guard<std::mutex> hold(unfinished.lock);
  for (const auto &operation : unfinished.late)
    operation();
  unfinished.late.clear();
}
inline bool is_pinned(const void *p) {
  std::lock_guard<std::mutex> hold(owned.lock);
  size_t left;
  const allocation *a = find(p, &left);
  return a && a->type == cudaMemoryTypeHost;
}

inline void check_handle(const void *p, const char *type) {
  std::lock_guard<std::mutex> hold(owned.lock);
  auto at = owned.handles.find(p);
  if (at == owned.handles.end() || strcmp(at->second, type) != 0)
    fail((std::string("not a ") + type).c_str());
}
inline void check_stream(cudaStream_t stream) {
  if (stream)
    check_handle(stream, "stream");
  if (stream == nullptr || stream->blocking)
    finish_default_stream();
}
inline bool stream_is_near(cudaStream_t stream) {
  return stream == nullptr || stream->device == current_device;
}
inline int device_of_stream(cudaStream_t stream) {
  return stream ? stream->device : current_device;
}
template <class T> T *keep(T *p, const char *type) {
  std::lock_guard<std::mutex> hold(owned.lock);
  owned.handles[p] = type;
  return p;
}
template <class T> void drop(T *p, const char *type) {
  check_handle(p, type);
  {
    std::lock_guard<std::mutex> hold(owned.lock);
    owned.handles.erase(p);
  }
  delete p;
}

/* Returns what is free on the current device; 'owned' is locked. */
inline size_t free_bytes() {
  const size_t used = owned.device_bytes[current_device] +
                      devices.others[current_device].load();
  return used < HONE_EMULATE_MEMORY ? HONE_EMULATE_MEMORY - used : 0;
}

/* Fills memory with NaN; of very large memory only the ends, as the middle is
   hardly ever used. */
inline void spoil(char *p, size_t bytes) {
  const size_t end = size_t{1} << 20;
  if (bytes <= 16 * end) {
    memset(p, 0xff, bytes);
  } else {
    memset(p, 0xff, end);
    memset(p + bytes - end, 0xff, end);
  }
}
inline cudaError_t allocate(void **p, size_t bytes, cudaMemoryType type) {
  std::lock_guard<std::mutex> hold(owned.lock);
  const bool device = type == cudaMemoryTypeDevice;
  void *q = nullptr;
  *p = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  if ((device && bytes > free_bytes()) || posix_memalign(&q, 256, bytes) != 0)
    return last_error = cudaErrorMemoryAllocation;
  owned.memory[static_cast<char *>(q)] = {bytes, type, current_device};
  owned.device_bytes[current_device] += device ? bytes : 0;
  spoil(static_cast<char *>(q), bytes);
  *p = q;
  return cudaSuccess;
}
inline cudaError_t release(void *p, cudaMemoryType type) {
  if (p == nullptr)
    return cudaSuccess;
  std::lock_guard<std::mutex> hold(owned.lock);
  auto at = owned.memory.find(static_cast<char *>(p));
  if (at == owned.memory.end() || at->second.type != type)
    fail("freed, but not allocated like that");
  if (type == cudaMemoryTypeDevice)
    owned.device_bytes[at->second.device] -= at->second.bytes;
  owned.memory.erase(at);
  free(p);
  return cudaSuccess;
}

inline void copy_rows_now(void *to, size_t to_pitch, const void *from,
                          size_t from_pitch, size_t width, size_t height) {
  for (size_t i = 0; i < height; i++)
    memmove(reach(static_cast<char *>(to) + i * to_pitch),
            reach(static_cast<const char *>(from) + i * from_pitch), width);
}
/* Copies rows on a stream. Memory of the host that is not pinned is read, and
   written, before the call returns. */
inline void copy_rows(void *to, size_t to_pitch, const void *from,
                      size_t from_pitch, size_t width, size_t height,
                      cudaStream_t stream) {
  const bool plain = !(on_device(to) || is_pinned(to)) ||
                     !(on_device(from) || is_pinned(from));
  if (plain)
    do_stream_late(stream);
  if (plain || !put_off(stream, [=] {
        copy_rows_now(to, to_pitch, from, from_pitch, width, height);
      }))
    copy_rows_now(to, to_pitch, from, from_pitch, width, height);
}

inline void check_copy(const void *to, const void *from, size_t bytes,
                       cudaMemcpyKind kind) {
  const bool guess = kind == cudaMemcpyDefault;
  const bool target = guess ? on_device(to)
                            : kind == cudaMemcpyHostToDevice ||
                                  kind == cudaMemcpyDeviceToDevice;
  const bool source = guess ? on_device(from)
                            : kind == cudaMemcpyDeviceToHost ||
                                  kind == cudaMemcpyDeviceToDevice;
  check_place(to, bytes, target, "copied to");
  check_place(from, bytes, source, "copied from");
}

namespace device {

/* ---- Devices and errors ------------------------------------------------ */

inline cudaError_t cudaDeviceSynchronize() {
  do_all_late();
  finish_default_stream();
  return cudaSuccess;
}
inline cudaError_t cudaPeekAtLastError() { return last_error; }
inline const char *cudaGetErrorString(cudaError_t e) {
  switch (e) {
  case cudaSuccess:
    return "no error";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorInvalidConfiguration:
    return "invalid configuration argument";
  case cudaErrorInvalidDevice:
    return "invalid device ordinal";
  case cudaErrorInvalidResourceHandle:
    return "invalid resource handle";
  case cudaErrorCooperativeLaunchTooLarge:
    return "too many blocks in cooperative launch";
  default:
    return "invalid argument";
  }
}

/* ---- Memory ------------------------------------------------------------ */

template <class T> cudaError_t cudaMalloc(T **p, size_t bytes) {
  void *q;
  hone_emulate::breaks_captures();
  if (refused(p))
    return last_error = cudaErrorMemoryAllocation;
  const cudaError_t e = allocate(&q, bytes, cudaMemoryTypeDevice);
  *p = static_cast<T *>(q);
  return e;
}
inline cudaError_t cudaFree(void *p) {
  do_all_late();
  finish_default_stream();
  hone_emulate::capture_broken = hone_emulate::capture_broken || p != nullptr;
  return release(p, cudaMemoryTypeDevice);
}
template <class T>
cudaError_t cudaHostAlloc(T **p, size_t bytes, unsigned = 0) {
  void *q;
  hone_emulate::breaks_captures();
  if (refused(p))
    return last_error = cudaErrorMemoryAllocation;
  const cudaError_t e = allocate(&q, bytes, cudaMemoryTypeHost);
  *p = static_cast<T *>(q);
  return e;
}
template <class T> cudaError_t cudaMallocHost(T **p, size_t bytes) {
  return cudaHostAlloc(p, bytes);
}
inline cudaError_t cudaFreeHost(void *p) {
  do_all_late();
  hone_emulate::capture_broken = hone_emulate::capture_broken || p != nullptr;
  return release(p, cudaMemoryTypeHost);
}
inline cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  std::lock_guard<std::mutex> hold(owned.lock);
  *total = HONE_EMULATE_MEMORY;
  *unused = free_bytes();
  return cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *at,
                                            const void *p) {
  std::lock_guard<std::mutex> hold(owned.lock);
  size_t left;
  const allocation *a = find(p, &left);
  void *q = const_cast<void *>(p);
  *at = {};
  if (guarded(p))
    at->type = cudaMemoryTypeDevice;
  else if (a)
    *at = {a->type, a->device, q, a->type == cudaMemoryTypeHost ? q : nullptr};
  return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes,
                                   cudaStream_t stream = nullptr) {
  check_stream(stream);
  check_place(p, bytes, true, "set");
  check_near(p, device_of_stream(stream), "set");
  if (!put_off(stream, [=] { memset(p, value, bytes); }))
    memset(p, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value,
                                     size_t width, size_t rows,
                                     cudaStream_t stream = nullptr) {
  if (width > pitch)
    return last_error = cudaErrorInvalidValue;
  for (size_t i = 0; i < rows; i++)
    (void)cudaMemsetAsync(static_cast<char *>(p) + i * pitch, value, width,
                          stream);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void *p, int value, size_t bytes) {
  check_stream(nullptr);
  check_place(p, bytes, true, "set");
  check_near(p, current_device, "set");
  enqueue_late([=] { memset(p, value, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                   cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr) {
  check_stream(stream);
  check_copy(to, from, bytes, kind);
  copy_rows(to, bytes, from, bytes, bytes, 1, stream);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                              cudaMemcpyKind kind) {
  check_stream(nullptr);
  check_copy(to, from, bytes, kind);
  if (!on_device(to) || on_device(from) || is_pinned(from))
    return cudaMemcpyAsync(to, from, bytes, kind);
  const char *const first = static_cast<const char *>(from);
  enqueue_late([to, staged = std::vector<char>(first, first + bytes)] {
    memcpy(reach(to), staged.data(), staged.size());
  });
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch,
                                     const void *from, size_t from_pitch,
                                     size_t width, size_t height,
                                     cudaMemcpyKind kind,
                                     cudaStream_t stream = nullptr) {
  check_stream(stream);
  if (width > to_pitch || width > from_pitch)
    return last_error = cudaErrorInvalidValue;
  for (size_t i = 0; i < height; i++)
    check_copy(static_cast<char *>(to) + i * to_pitch,
               static_cast<const char *>(from) + i * from_pitch, width, kind);
  copy_rows(to, to_pitch, from, from_pitch, width, height, stream);
  return cudaSuccess;
}

} // namespace device
} // namespace hone_emulate

#endif
