/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches on a CUDA device in a build without CUDA: there is none. */
#include "gpu_sp/batch/batch.h"

bool hone_device_batch_exists(int ordinal) {
  (void)ordinal;
  return false;
}

int64_t hone_device_batch_up_to(int parts) {
  (void)parts;
  return 0;
}

int hone_device_batch_open(hone_device_batch **self, hone_mem *mem,
                           size_t in_bytes, size_t out_bytes, int64_t limit,
                           int devices) {
  (void)mem;
  (void)in_bytes;
  (void)out_bytes;
  (void)limit;
  (void)devices;
  *self = NULL;
  return HONE_NO_DEVICE;
}

int hone_device_batch_slots(const hone_device_batch *self) {
  (void)self;
  return 0;
}

hone_device_slot hone_device_batch_slot(hone_device_batch *self, int slot) {
  (void)self;
  (void)slot;
  return (hone_device_slot){.host_in = NULL};
}

int hone_device_batch_follow(hone_device_batch *self) {
  (void)self;
  return HONE_NO_DEVICE;
}

int hone_device_batch_submit(hone_device_batch *self, int slot, size_t in_bytes,
                             const hone_device_systems *systems,
                             size_t clear_bytes, size_t out_bytes) {
  (void)self;
  (void)slot;
  (void)in_bytes;
  (void)systems;
  (void)clear_bytes;
  (void)out_bytes;
  return HONE_NO_DEVICE;
}

int hone_device_batch_fetch(hone_device_batch *self, int slot,
                            size_t out_bytes) {
  (void)self;
  (void)slot;
  (void)out_bytes;
  return HONE_NO_DEVICE;
}

int hone_device_batch_await(hone_device_batch *self, int slot) {
  (void)self;
  (void)slot;
  return HONE_NO_DEVICE;
}

void hone_device_batch_close(hone_device_batch *self, hone_mem *mem) {
  (void)self;
  (void)mem;
}

int64_t hone_device_batch_release(void) { return 0; }
