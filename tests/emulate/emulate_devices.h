/* SPDX-License-Identifier: BSD-3-Clause */
/* Several emulated devices: how many there are, and which can reach the memory
   of which. emulate_runtime.h includes this. There are as many as the
   environment variable HONE_EMULATE_DEVICES says, or a test; otherwise one.
   Every allocation, stream, event and handle belongs to the device that was
   current in its thread. A kernel, and a call of cuBLAS, may use memory of its
   own device, and of others whose access is enabled: anything else ends the
   program with a message. */
#ifndef HONE_EMULATE_DEVICES_H
#define HONE_EMULATE_DEVICES_H

#include "tests/emulate/emulate_grid.h"

struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
typedef void *cudaArray_t;
struct cudaMemcpy3DPeerParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  int srcDevice;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  int dstDevice;
  cudaExtent extent;
};
inline cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t x,
                                          size_t y) {
  return {p, pitch, x, y};
}
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}

namespace hone_emulate {

constexpr int MOST_DEVICES = 16;

/* The devices; a test may set 'count' and 'peers' while nothing exists on the
   devices that go, and 'others' at any time. */
struct device_table {
  std::atomic<int> count{0};     /* 0: what the environment says */
  std::atomic<bool> peers{true}; /* devices can reach each other's memory, */
  std::atomic<bool> enabled[MOST_DEVICES][MOST_DEVICES] = {}; /* if enabled */
  std::atomic<size_t> others[MOST_DEVICES] = {}; /* bytes that other processes
                                                    have there */
  std::atomic<size_t> peer_bytes{0};   /* copied between two devices, */
  std::atomic<size_t> staged_bytes{0}; /* of them without access */
};
inline device_table devices;

inline int device_count() {
  const int chosen = devices.count.load();
  if (chosen > 0)
    return chosen;
  const char *text = getenv("HONE_EMULATE_DEVICES");
  const int said = text ? atoi(text) : 1;
  return said >= 1 && said <= MOST_DEVICES ? said : 1;
}
inline bool is_device(int device) {
  return device >= 0 && device < device_count();
}
/* Can kernels of the device use the other one's memory? */
inline bool reaches(int device, int other) {
  return device == other || devices.enabled[device][other].load();
}
inline void count_peer_bytes(int to, int from, size_t bytes) {
  if (to == from)
    return;
  devices.peer_bytes += bytes;
  if (!reaches(to, from) && !reaches(from, to))
    devices.staged_bytes += bytes;
}

namespace device {

inline cudaError_t cudaGetDeviceCount(int *count) {
  *count = device_count();
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  if (!is_device(device))
    return last_error = cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  if (!is_device(device) || !is_device(peer))
    return last_error = cudaErrorInvalidDevice;
  *can = device != peer && devices.peers.load();
  return cudaSuccess;
}
/* Lets the current device reach the other one's memory. */
inline cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (!is_device(peer) || peer == current_device || !devices.peers.load())
    return last_error = cudaErrorInvalidDevice;
  if (flags != 0)
    return last_error = cudaErrorInvalidValue;
  if (devices.enabled[current_device][peer].exchange(true))
    return last_error = cudaErrorPeerAccessAlreadyEnabled;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (!is_device(peer))
    return last_error = cudaErrorInvalidDevice;
  if (!devices.enabled[current_device][peer].exchange(false))
    return last_error = cudaErrorPeerAccessNotEnabled;
  return cudaSuccess;
}

} // namespace device
} // namespace hone_emulate

#endif
