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
  int devices; /* slot k is on device k modulo this one of the list */
  struct {
    int ordinal;
    uint64_t context;
  } device[HONE_DEVICE_BATCH_DEVICES];
  struct {
    hone_device_slot at;
    cudaStream_t stream;
    void *work; /* of systems that are solved by panels */
    size_t work_bytes;
    bool follows; /* its next work waits for 'before' */
    bool busy;    /* work was sent that is not known to be complete */
  } slot[HONE_DEVICE_BATCH_ALL_SLOTS];
  cudaEvent_t before; /* what the caller did in the default stream */
  size_t in_bytes, out_bytes;
  pid_t process;
  int64_t limit; /* of bytes of a device's memory in this call; 0: none */
  bool broken;   /* a call failed: it is not kept */
};

namespace {

enum { KEPT_PART = 4 }; /* of the device's memory */

hone_device_batch *kept; /* NULL: nothing is kept, or it is in use */
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* While it exists the slot's device is the current one. */
class at_slot {
public:
  at_slot(const hone_device_batch *c, int slot) {
    const int there = c->device[slot % c->devices].ordinal;
    moved_ = cudaGetDevice(&before_) == cudaSuccess && there != before_;
    if (moved_)
      status = CALL(cudaSetDevice(there));
  }
  ~at_slot() {
    if (moved_)
      (void)cudaSetDevice(before_);
  }
  at_slot(const at_slot &) = delete;
  at_slot &operator=(const at_slot &) = delete;
  int status = HONE_OK;

private:
  bool moved_;
  int before_ = 0;
};

int slots_of(const hone_device_batch *c) {
  return c->devices * HONE_DEVICE_BATCH_SLOTS;
}

/* The images of a device's slots. */
int64_t image_bytes(const hone_device_batch *c) {
  return HONE_DEVICE_BATCH_SLOTS *
         static_cast<int64_t>(c->in_bytes + c->out_bytes);
}

/* Pinned; the images on the devices take as much. */
int64_t bytes_of(const hone_device_batch *c) {
  return c->devices * image_bytes(c);
}

/* Returns those of the device with this place in the list. */
int64_t device_bytes_of(const hone_device_batch *c, int device) {
  int64_t bytes = image_bytes(c);
  for (int k = device; k < slots_of(c); k += c->devices)
    bytes += static_cast<int64_t>(c->slot[k].work_bytes);
  return bytes;
}

int64_t all_device_bytes_of(const hone_device_batch *c) {
  int64_t bytes = 0;
  for (int d = 0; d < c->devices; d++)
    bytes += device_bytes_of(c, d);
  return bytes;
}

bool is_allowed(const hone_device_batch *c, int64_t limit) {
  bool allowed = true;
  for (int d = 0; d < c->devices && limit > 0; d++)
    allowed = allowed && device_bytes_of(c, d) <= limit;
  return allowed;
}

/* Frees everything; accepts one whose creation failed anywhere. */
void destroy(hone_device_batch *c) {
  if (c->before != nullptr)
    (void)CALL(cudaEventDestroy(c->before));
  for (int k = 0; k < slots_of(c); k++) {
    const at_slot there(c, k);
    auto &slot = c->slot[k];
    if (slot.stream != nullptr)
      (void)CALL(cudaStreamDestroy(slot.stream));
    if (slot.at.host_in != nullptr)
      (void)CALL(cudaFreeHost(slot.at.host_in));
    if (slot.at.device_in != nullptr)
      (void)CALL(cudaFree(slot.at.device_in));
    if (slot.work != nullptr)
      (void)CALL(cudaFree(slot.work));
  }
  free(c);
}

/* Input and output of a slot are one allocation on either side. */
int create(hone_device_batch *c) {
  const size_t bytes = c->in_bytes + c->out_bytes;
  int st = CREATE(&c->before,
                  cudaEventCreateWithFlags(&c->before, cudaEventDisableTiming));
  for (int k = 0; k < slots_of(c) && st == HONE_OK; k++) {
    const at_slot there(c, k);
    auto &slot = c->slot[k];
    hone_device_slot *at = &slot.at;
    st = there.status;
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

/* Lists up to so many devices, from the current one on, with their contexts.
   Returns false where these cannot be told. */
bool list_devices(hone_device_batch *c, int wanted) {
  const hone_cuda_current meanwhile;
  const int present = hone_cuda_devices(0);
  const int most = wanted < HONE_DEVICE_BATCH_DEVICES
                       ? wanted
                       : (int)HONE_DEVICE_BATCH_DEVICES;
  bool known = true;
  c->devices = most > 1 ? hone_cuda_devices(most) : 1;
  c->devices = c->devices < 1 ? 1 : c->devices;
  for (int d = 0; d < c->devices && known; d++) {
    const int ordinal = c->devices > 1 ? (meanwhile.ordinal() + d) % present
                                       : meanwhile.ordinal();
    c->device[d].ordinal = ordinal;
    known = (d == 0 || cudaSetDevice(ordinal) == cudaSuccess) &&
            hone_cuda_context(&c->device[d].context);
  }
  return known;
}

bool has_same_devices(const hone_device_batch *c, const hone_device_batch *d) {
  bool same = c->devices == d->devices;
  for (int k = 0; k < c->devices && same; k++)
    same = c->device[k].ordinal == d->device[k].ordinal &&
           c->device[k].context == d->device[k].context;
  return same;
}

/* Do the contexts exist in which it was made? */
bool is_alive(const hone_device_batch *c) {
  const hone_cuda_current meanwhile;
  bool alive = c->process == getpid();
  for (int d = 0; d < c->devices && alive; d++) {
    uint64_t context = 0;
    alive = cudaSetDevice(c->device[d].ordinal) == cudaSuccess &&
            hone_cuda_context(&context) && context == c->device[d].context;
  }
  return alive;
}

/* Takes what is kept out of its place, if it serves 'like'; NULL: anything.
   What other devices have, or what is too small, is freed: the last call's is
   kept. */
hone_device_batch *take(const hone_device_batch *like) {
  hone_device_batch *c = nullptr, *other = nullptr;
  if (pthread_mutex_trylock(&lock) != 0)
    return nullptr;
  if (kept != nullptr &&
      !(like && has_same_devices(kept, like) && kept->process == getpid()) &&
      !is_alive(kept))
    kept = nullptr; /* it is another process's, or gone */
  const bool serves = kept != nullptr &&
                      (like == nullptr || (has_same_devices(kept, like) &&
                                           kept->in_bytes >= like->in_bytes &&
                                           kept->out_bytes >= like->out_bytes));
  (serves ? c : other) = kept;
  kept = nullptr;
  (void)pthread_mutex_unlock(&lock);
  if (other != nullptr)
    destroy(other);
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
  const hone_cuda_entry meanwhile;
  int count = 0, current = 0;
  return CALL(cudaGetDeviceCount(&count)) == HONE_OK && count > 0 &&
         CALL(cudaGetDevice(&current)) == HONE_OK &&
         (ordinal < 0 || ordinal == current);
}

int hone_device_batch_open(hone_device_batch **self, hone_mem *mem,
                           size_t in_bytes, size_t out_bytes, int64_t limit,
                           int devices) {
  const hone_cuda_entry meanwhile;
  hone_device_batch like = {};
  *self = nullptr;
  const bool known = list_devices(&like, devices);
  like.in_bytes = in_bytes;
  like.out_bytes = out_bytes;
  like.process = getpid();
  like.broken = !known;
  hone_device_batch *c = known ? take(&like) : nullptr;
  if (c != nullptr && !is_allowed(c, limit)) {
    destroy(c);
    c = nullptr;
  }
  const bool made = c == nullptr;
  if (made) {
    c = static_cast<hone_device_batch *>(calloc(1, sizeof *c));
    if (c == nullptr)
      return HONE_NO_MEMORY;
    *c = like;
  }
  c->limit = limit;
  if (!is_allowed(c, limit) || !hone_mem_charge(mem, bytes_of(c))) {
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

int hone_device_batch_slots(const hone_device_batch *self) {
  return slots_of(self);
}

hone_device_slot hone_device_batch_slot(hone_device_batch *self, int slot) {
  return self->slot[slot].at;
}

int hone_device_batch_follow(hone_device_batch *self) {
  const hone_cuda_entry meanwhile;
  const int st = CALL(cudaEventRecord(self->before, nullptr));
  for (auto &slot : self->slot)
    slot.follows = true;
  self->broken = self->broken || st != HONE_OK;
  return st;
}

/* The most that the workspace of one slot may take. */
static size_t work_limit(const hone_device_batch *self) {
  return self->limit <= 0
             ? SIZE_MAX
             : static_cast<size_t>(self->limit - image_bytes(self)) /
                   HONE_DEVICE_BATCH_SLOTS;
}

/* Makes a workspace of so many bytes; where what the slot has is too small, it
   is replaced. */
static int make_work(hone_device_batch *self, int slot, size_t bytes) {
  auto *own = &self->slot[slot];
  int st = HONE_OK;
  if (own->work_bytes >= bytes)
    return HONE_OK;
  void *const old = own->work;
  own->work = nullptr;
  own->work_bytes = 0;
  if (old != nullptr)
    TRY_CUDA(cudaFree(old));
  const int64_t held = device_bytes_of(self, slot % self->devices);
  if (st == HONE_OK &&
      (bytes > work_limit(self) ||
       (self->limit > 0 && static_cast<int64_t>(bytes) > self->limit - held)))
    st = HONE_NO_MEMORY;
  TRY(CREATE(&own->work, cudaMalloc(&own->work, bytes)));
  own->work_bytes = st == HONE_OK ? bytes : 0;
  return st;
}

/* Enqueues systems that are solved by panels. Where there is no room for as
   many thread blocks as can be resident, there are fewer. */
static int launch_panels(hone_device_batch *self, int slot,
                         const hone_device_systems *systems) {
  hone_device_systems in = *systems;
  hone_device_room room;
  const bool real = in.parts == 1;
  int st = real ? hone_device_batch_plan(&in, &room)
                : hone_device_batch_z_plan(&in, &room);
  const size_t each =
      static_cast<size_t>(room.stride * in.parts) * sizeof(double);
  in.work_stride = room.stride;
  in.blocks = in.count < room.blocks ? in.count : room.blocks;
  if (st == HONE_OK && in.blocks < 1)
    st = HONE_DEVICE_FAILED;
  if (st == HONE_OK) {
    st = make_work(self, slot, static_cast<size_t>(in.blocks) * each);
    for (; st != HONE_OK && in.blocks > 1;
         st = make_work(self, slot, static_cast<size_t>(in.blocks) * each))
      in.blocks = (in.blocks + 3) / 4;
  }
  in.work = self->slot[slot].work;
  void *const stream = static_cast<void *>(self->slot[slot].stream);
  TRY(real ? hone_device_batch_launch_large(&in, stream)
           : hone_device_batch_z_launch_large(&in, stream));
  return st;
}

/* Returns the bytes of shared memory that a thread block can have. */
static size_t shared_here() {
  int device = 0, most = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                             device) == cudaSuccess;
  if (!known)
    (void)cudaGetLastError();
  return known ? static_cast<size_t>(most) : SIZE_MAX;
}

int64_t hone_device_batch_up_to(int parts) {
  const size_t most = shared_here();
  int64_t n = HONE_DEVICE_BATCH_UP_TO;
  while (n >= HONE_DEVICE_BATCH_Z_INVERSE_UP_TO &&
         (parts == 1 ? hone_device_batch_panel_shared(n)
                     : hone_device_batch_z_panel_shared(n)) > most)
    n /= 2;
  return n >= HONE_DEVICE_BATCH_Z_INVERSE_UP_TO ? n : 0;
}

/* Do panels solve these systems on the current device? */
static bool by_panels(const hone_device_systems *systems) {
  return hone_device_batch_by_panels(systems) ||
         hone_device_batch_shared(systems) > shared_here();
}

int hone_device_batch_submit(hone_device_batch *self, int slot, size_t in_bytes,
                             const hone_device_systems *systems,
                             size_t clear_bytes, size_t out_bytes) {
  const hone_cuda_entry meanwhile;
  const hone_device_slot *at = &self->slot[slot].at;
  const cudaStream_t stream = self->slot[slot].stream;
  const at_slot there(self, slot);
  int st = there.status;
  self->slot[slot].busy = true;
  if (self->slot[slot].follows)
    TRY_CUDA(cudaStreamWaitEvent(stream, self->before, 0));
  self->slot[slot].follows = false;
  if (in_bytes > 0)
    TRY_CUDA(cudaMemcpyAsync(at->device_in, at->host_in, in_bytes,
                             cudaMemcpyHostToDevice, stream));
  /* Were the kernel not to run, no system would count as solved. */
  TRY_CUDA(cudaMemsetAsync(at->device_out, 0, clear_bytes, stream));
  TRY(by_panels(systems) ? launch_panels(self, slot, systems)
                         : hone_device_batch_launch(systems, stream));
  if (systems->results.worst != nullptr)
    TRY(hone_device_batch_sum_up(systems, stream));
  TRY_CUDA(cudaMemcpyAsync(at->host_out, at->device_out, out_bytes,
                           cudaMemcpyDeviceToHost, stream));
  self->broken = self->broken || st != HONE_OK;
  return st;
}

int hone_device_batch_fetch(hone_device_batch *self, int slot,
                            size_t out_bytes) {
  const hone_cuda_entry meanwhile;
  const hone_device_slot *at = &self->slot[slot].at;
  const cudaStream_t stream = self->slot[slot].stream;
  const at_slot there(self, slot);
  int st = there.status;
  TRY_CUDA(cudaMemcpyAsync(at->host_out, at->device_out, out_bytes,
                           cudaMemcpyDeviceToHost, stream));
  TRY_CUDA(cudaStreamSynchronize(stream));
  self->broken = self->broken || st != HONE_OK;
  return st;
}

int hone_device_batch_await(hone_device_batch *self, int slot) {
  const hone_cuda_entry meanwhile;
  const int st = CALL(cudaStreamSynchronize(self->slot[slot].stream));
  self->slot[slot].busy = st != HONE_OK;
  self->broken = self->broken || st != HONE_OK;
  return st;
}

/* Frees a device's workspaces unless all that is kept is a quarter of its
   memory at most. */
static void free_large_work(hone_device_batch *self, int device) {
  size_t unused = 0, total = 0;
  const at_slot there(self, device);
  if (device_bytes_of(self, device) == image_bytes(self) ||
      (CALL(cudaMemGetInfo(&unused, &total)) == HONE_OK &&
       device_bytes_of(self, device) <=
           static_cast<int64_t>(total / KEPT_PART)))
    return;
  for (int k = device; k < slots_of(self); k += self->devices) {
    auto &slot = self->slot[k];
    if (slot.work != nullptr)
      (void)CALL(cudaFree(slot.work));
    slot.work = nullptr;
    slot.work_bytes = 0;
  }
}

void hone_device_batch_close(hone_device_batch *self, hone_mem *mem) {
  const hone_cuda_entry meanwhile;
  if (self == nullptr)
    return;
  for (int k = 0; k < slots_of(self); k++) {
    auto &slot = self->slot[k];
    if (slot.busy)
      (void)CALL(cudaStreamSynchronize(slot.stream));
    slot.busy = slot.follows = false;
  }
  (void)hone_mem_charge(mem, -bytes_of(self));
  for (int d = 0; d < self->devices; d++)
    free_large_work(self, d);
  if (!keep(self))
    destroy(self);
}

int64_t hone_device_batch_release(void) {
  if (kept == nullptr) /* no context is made current for nothing */
    return 0;
  const hone_cuda_entry meanwhile;
  hone_device_batch *c = take(nullptr);
  if (c == nullptr)
    return 0;
  const int64_t bytes = all_device_bytes_of(c);
  destroy(c);
  return bytes;
}
