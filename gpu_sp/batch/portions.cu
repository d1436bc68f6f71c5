/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and streams for the portions of a batch, which the process keeps from
   one call to the next: to pin them takes longer than most batches. Like kept
   engines (gpu_sp/kept.cu) they are of use only to the process, and in the CUDA
   context, that made them, and the lock is never waited for. */
#include "gpu_sp/batch/batch.h"

#include "gpu_sp/calls.h"

#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

struct hone_device_batch {
  struct {
    hone_device_slot at;
    cudaStream_t stream;
  } slot[HONE_DEVICE_BATCH_SLOTS];
  size_t in_bytes, out_bytes;
  pid_t process;
  uint64_t context;
  bool broken; /* a call failed: it is not kept */
};

namespace {

hone_device_batch *kept; /* NULL: nothing is kept, or it is in use */
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int64_t bytes_of(const hone_device_batch *c) {
  return HONE_DEVICE_BATCH_SLOTS *
         static_cast<int64_t>(c->in_bytes + c->out_bytes);
}

/* Frees everything; accepts one whose creation failed anywhere. */
void destroy(hone_device_batch *c) {
  for (auto &slot : c->slot) {
    if (slot.stream != nullptr)
      (void)CALL(cudaStreamDestroy(slot.stream));
    if (slot.at.host_in != nullptr)
      (void)CALL(cudaFreeHost(slot.at.host_in));
    if (slot.at.device_in != nullptr)
      (void)CALL(cudaFree(slot.at.device_in));
  }
  free(c);
}

/* Input and output of a slot are one allocation on either side. */
int create(hone_device_batch *c) {
  const size_t bytes = c->in_bytes + c->out_bytes;
  int st = HONE_OK;
  for (auto &slot : c->slot) {
    hone_device_slot *at = &slot.at;
    TRY(CREATE(&slot.stream,
               cudaStreamCreateWithFlags(&slot.stream, cudaStreamNonBlocking)));
    TRY(CREATE(&at->host_in,
               cudaMallocHost(reinterpret_cast<void **>(&at->host_in), bytes)));
    TRY(CREATE(&at->device_in,
               cudaMalloc(reinterpret_cast<void **>(&at->device_in), bytes)));
    if (st == HONE_OK) {
      at->host_out = at->host_in + c->in_bytes;
      at->device_out = at->device_in + c->in_bytes;
    }
  }
  return st;
}

/* Takes what is kept out of its place, if it serves here or 'any' is set. */
hone_device_batch *take(size_t in_bytes, size_t out_bytes, uint64_t context,
                        bool any) {
  hone_device_batch *c = nullptr;
  if (pthread_mutex_trylock(&lock) != 0)
    return nullptr;
  if (kept != nullptr &&
      (kept->process != getpid() || kept->context != context))
    kept = nullptr; /* it is another process's, or gone */
  if (kept != nullptr &&
      (any || (kept->in_bytes >= in_bytes && kept->out_bytes >= out_bytes))) {
    c = kept;
    kept = nullptr;
  }
  (void)pthread_mutex_unlock(&lock);
  return c;
}

bool keep(hone_device_batch *c) {
  bool done = false;
  if (c->broken || pthread_mutex_trylock(&lock) != 0)
    return false;
  if (kept == nullptr) {
    kept = c;
    done = true;
  }
  (void)pthread_mutex_unlock(&lock);
  return done;
}

} // namespace

bool hone_device_batch_exists(int ordinal) {
  const hone_cuda_uncaptured meanwhile;
  int count = 0, current = 0;
  return CALL(cudaGetDeviceCount(&count)) == HONE_OK && count > 0 &&
         CALL(cudaGetDevice(&current)) == HONE_OK &&
         (ordinal < 0 || ordinal == current);
}

int hone_device_batch_open(hone_device_batch **self, hone_mem *mem,
                           size_t in_bytes, size_t out_bytes) {
  const hone_cuda_uncaptured meanwhile;
  uint64_t context = 0;
  *self = nullptr;
  const bool known = hone_cuda_context(&context);
  hone_device_batch *c =
      known ? take(in_bytes, out_bytes, context, false) : nullptr;
  const bool made = c == nullptr;
  if (made) {
    c = static_cast<hone_device_batch *>(calloc(1, sizeof *c));
    if (c == nullptr)
      return HONE_NO_MEMORY;
    c->in_bytes = in_bytes;
    c->out_bytes = out_bytes;
    c->process = getpid();
    c->context = context;
    c->broken = !known;
  }
  if (!hone_mem_charge(mem, bytes_of(c))) {
    if (made || !keep(c))
      destroy(c);
    return HONE_NO_MEMORY;
  }
  const int st = made ? create(c) : HONE_OK;
  if (st != HONE_OK) {
    (void)hone_mem_charge(mem, -bytes_of(c));
    destroy(c);
    return st;
  }
  *self = c;
  return HONE_OK;
}

hone_device_slot hone_device_batch_slot(hone_device_batch *self, int slot) {
  return self->slot[slot].at;
}

int hone_device_batch_submit(hone_device_batch *self, int slot, size_t in_bytes,
                             const hone_device_systems *systems,
                             size_t out_bytes) {
  const hone_cuda_uncaptured meanwhile;
  const hone_device_slot *at = &self->slot[slot].at;
  const cudaStream_t stream = self->slot[slot].stream;
  int st = HONE_OK;
  if (in_bytes > 0)
    TRY_CUDA(cudaMemcpyAsync(at->device_in, at->host_in, in_bytes,
                             cudaMemcpyHostToDevice, stream));
  /* Were the kernel not to run, no system would count as solved. */
  TRY_CUDA(cudaMemsetAsync(
      systems->lane, 0,
      static_cast<size_t>(systems->count) * sizeof *systems->lane, stream));
  TRY(hone_device_batch_launch(systems, stream));
  TRY_CUDA(cudaMemcpyAsync(at->host_out, at->device_out, out_bytes,
                           cudaMemcpyDeviceToHost, stream));
  self->broken = self->broken || st != HONE_OK;
  return st;
}

int hone_device_batch_await(hone_device_batch *self, int slot) {
  const hone_cuda_uncaptured meanwhile;
  const int st = CALL(cudaStreamSynchronize(self->slot[slot].stream));
  self->broken = self->broken || st != HONE_OK;
  return st;
}

void hone_device_batch_close(hone_device_batch *self, hone_mem *mem) {
  const hone_cuda_uncaptured meanwhile;
  if (self == nullptr)
    return;
  for (auto &slot : self->slot)
    (void)CALL(cudaStreamSynchronize(slot.stream));
  (void)hone_mem_charge(mem, -bytes_of(self));
  if (!keep(self))
    destroy(self);
}

int64_t hone_device_batch_release(void) {
  const hone_cuda_uncaptured meanwhile;
  uint64_t context = 0;
  if (kept == nullptr) /* without a context there is nothing to free */
    return 0;
  (void)hone_cuda_context(&context);
  hone_device_batch *c = take(0, 0, context, true);
  if (c == nullptr)
    return 0;
  const int64_t bytes = bytes_of(c);
  destroy(c);
  return bytes;
}
