/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the emulated CUDA runtime for streams and events, captures,
   and copies between devices. emulate.h includes this. */
#ifndef HONE_EMULATE_STREAMS_H
#define HONE_EMULATE_STREAMS_H

#include "tests/emulate/emulate_runtime.h"

namespace hone_emulate {
namespace device {

/* ---- Streams and events ------------------------------------------------ */

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                             unsigned flags) {
  if (refused(stream))
    return last_error = cudaErrorMemoryAllocation;
  *stream =
      keep(new CUstream_st{flags != cudaStreamNonBlocking, current_device, {}},
           "stream");
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  do_stream_late(stream);
  drop(stream, "stream");
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  hone_emulate::breaks_captures();
  check_stream(stream);
  do_stream_late(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event,
                                            unsigned flags) {
  const bool timing = !(flags & cudaEventDisableTiming);
  if (refused(event))
    return last_error = cudaErrorMemoryAllocation;
  *event = keep(new CUevent_st{timing, false, false, current_device, {}, {}, 0},
                "event");
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  drop(event, "event");
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event,
                                   cudaStream_t stream = nullptr) {
  check_stream(stream);
  check_handle(event, "event");
  if (event->device != device_of_stream(stream))
    return last_error = cudaErrorInvalidResourceHandle;
  event->recorded = true;
  event->of_default = stream == nullptr;
  event->at = std::chrono::steady_clock::now();
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  event->queue = stream ? stream->queue : nullptr;
  event->behind = event->queue ? event->queue->enqueued : 0;
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  hone_emulate::breaks_captures();
  check_handle(event, "event");
  do_late(event->queue, event->behind);
  return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  hone_emulate::breaks_captures();
  check_handle(event, "event");
  return reached(event) ? cudaSuccess : last_error = cudaErrorNotReady;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                       unsigned = 0) {
  check_stream(stream);
  check_handle(event, "event");
  if (stream != nullptr && event->recorded && event->of_default)
    hone_emulate::waits_for_default++;
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  if (event->queue)
    (void)put_off(stream, [queue = event->queue, behind = event->behind] {
      do_late(queue, behind);
    });
  return cudaSuccess;
}
inline cudaError_t
cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  if (hone_emulate::refused_exchanges > 0) {
    hone_emulate::refused_exchanges--;
    return cudaErrorInvalidValue;
  }
  std::swap(*mode, hone_emulate::capture_mode);
  return cudaSuccess;
}
/* Captures nothing: tells whether another call has broken the capture. */
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                          cudaStreamCaptureMode) {
  check_stream(stream);
  hone_emulate::capture_broken = false;
  hone_emulate::capturing = true;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
  *graph = nullptr;
  hone_emulate::capturing = false;
  return hone_emulate::capture_broken ? cudaErrorInvalidValue : cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from,
                                        cudaEvent_t to) {
  check_handle(from, "event");
  check_handle(to, "event");
  if (!from->timing || !to->timing || !from->recorded || !to->recorded ||
      from->device != to->device)
    return last_error = cudaErrorInvalidResourceHandle;
  *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return cudaSuccess;
}

/* ---- Between devices ---------------------------------------------------- */

/* Checks that a copy between devices finds its memory where its call says. */
inline void check_peer(const void *p, int device, size_t bytes,
                       const char *what) {
  check_place(p, bytes, true, what);
  if (bytes > 0 && device_of(p) != device)
    fail((std::string(what) + ": memory of another device than the call says")
             .c_str());
}
/* Like the driver's, the copies also work where no access is enabled. */
inline cudaError_t cudaMemcpyPeerAsync(void *to, int to_device,
                                       const void *from, int from_device,
                                       size_t bytes,
                                       cudaStream_t stream = nullptr) {
  check_stream(stream);
  if (!is_device(to_device) || !is_device(from_device))
    return last_error = cudaErrorInvalidDevice;
  check_peer(to, to_device, bytes, "copied to a peer");
  check_peer(from, from_device, bytes, "copied from a peer");
  if (!put_off(stream, [=] { memmove(to, from, bytes); }))
    memmove(to, from, bytes);
  count_peer_bytes(to_device, from_device, bytes);
  return cudaSuccess;
}
/* Copies one plane of rows; positions in it are not emulated. */
inline cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *p,
                                         cudaStream_t stream = nullptr) {
  const cudaPitchedPtr &to = p->dstPtr, &from = p->srcPtr;
  const size_t width = p->extent.width, rows = p->extent.height;
  check_stream(stream);
  if (!is_device(p->dstDevice) || !is_device(p->srcDevice))
    return last_error = cudaErrorInvalidDevice;
  if (p->extent.depth != 1 || width > to.pitch || width > from.pitch ||
      p->dstPos.x + p->dstPos.y != 0 || p->srcPos.x + p->srcPos.y != 0)
    return last_error = cudaErrorInvalidValue;
  for (size_t i = 0; i < rows; i++) {
    check_peer(static_cast<const char *>(to.ptr) + i * to.pitch, p->dstDevice,
               width, "copied to a peer");
    check_peer(static_cast<const char *>(from.ptr) + i * from.pitch,
               p->srcDevice, width, "copied from a peer");
  }
  const auto copy = [=, to = to, from = from] {
    copy_rows_now(to.ptr, to.pitch, from.ptr, from.pitch, width, rows);
  };
  if (!put_off(stream, copy))
    copy();
  count_peer_bytes(p->dstDevice, p->srcDevice, width * rows);
  return cudaSuccess;
}

} // namespace device
} // namespace hone_emulate

#endif
