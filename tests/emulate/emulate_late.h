/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams whose work is done late. Usually an emulated device does every
   operation when it is enqueued. While a test has a hone_emulate::late_streams,
   operations wait in the queues of their streams, as on a device, until
   something needs them: a wait of the host, or a stream that waits for an
   event; and chance lets some streams run ahead of others for a while, so that
   work that nothing keeps in order is done in a wrong one in some runs.
   emulate_runtime.h includes this. */
#ifndef HONE_EMULATE_LATE_H
#define HONE_EMULATE_LATE_H

#include "tests/emulate/emulate_devices.h"

namespace hone_emulate {

/* The operations of one stream. The first 'done' of 'enqueued' are done. */
struct late_queue {
  std::deque<std::function<void()>> waiting;
  uint64_t enqueued = 0, done = 0;
  bool ahead = false; /* at present its operations are done at once */
};
typedef std::shared_ptr<late_queue> late_queue_pointer;

} // namespace hone_emulate

struct CUstream_st {
  bool blocking;
  int device;
  hone_emulate::late_queue_pointer queue;
};
struct CUevent_st {
  bool timing, recorded;
  bool of_default; /* it was recorded in the default stream */
  int device;
  std::chrono::steady_clock::time_point at;
  hone_emulate::late_queue_pointer queue; /* of the stream that it was recorded
                                             in, behind so many operations */
  uint64_t behind;
};

namespace hone_emulate {

struct late_table {
  std::atomic<bool> on{false};
  std::recursive_mutex lock;
  uint64_t state = 0; /* of the random numbers */
  std::set<late_queue_pointer> queues;
};
inline late_table late;

inline bool by_chance(unsigned of) {
  late.state = late.state * 6364136223846793005U + 1442695040888963407U;
  return (late.state >> 33) % of == 0;
}

/* Does the queue's operations up to number 'upto'. Those that wait for events
   do others' first; as events are recorded before they are waited for, none
   needs an operation that waits for it. */
inline void do_late(const late_queue_pointer &q, uint64_t upto) {
  if (q == nullptr)
    return;
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  while (q->done < upto) {
    const std::function<void()> operation = std::move(q->waiting.front());
    q->waiting.pop_front();
    operation();
    q->done++;
  }
}
inline void do_stream_late(cudaStream_t stream) {
  if (stream && stream->queue)
    do_late(stream->queue, stream->queue->enqueued);
}
inline void do_all_late() {
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  for (const late_queue_pointer &q : late.queues)
    do_late(q, q->enqueued);
}

/* Returns false if the operation is to be done now. */
inline bool put_off(cudaStream_t stream, std::function<void()> operation) {
  if (!late.on || stream == nullptr)
    return false;
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  if (stream->queue == nullptr || late.queues.count(stream->queue) == 0) {
    /* It is new, or everything that it had was done when late work ended. */
    stream->queue = std::make_shared<late_queue>();
    stream->queue->ahead = by_chance(3);
    late.queues.insert(stream->queue);
  }
  const late_queue_pointer q = stream->queue;
  q->waiting.push_back(
      [operation = std::move(operation), device = current_device] {
        const int meanwhile = std::exchange(current_device, device);
        operation();
        current_device = meanwhile;
      });
  q->enqueued++;
  if (by_chance(64))
    q->ahead = by_chance(3);
  if (q->ahead)
    do_late(q, q->enqueued);
  return true;
}

/* Returns true if the stream has come to the event, which chance decides where
   work is late. */
inline bool reached(const CUevent_st *event) {
  std::lock_guard<std::recursive_mutex> hold(late.lock);
  if (event->queue == nullptr || event->queue->done >= event->behind)
    return true;
  if (!by_chance(4))
    return false;
  do_late(event->queue, event->behind);
  return true;
}

/* While it exists, work is late. */
class late_streams {
public:
  explicit late_streams(uint64_t seed) {
    late.state = seed;
    late.on = true;
  }
  ~late_streams() {
    late.on = false;
    do_all_late();
    late.queues.clear();
  }
  late_streams(const late_streams &) = delete;
  late_streams &operator=(const late_streams &) = delete;
};

} // namespace hone_emulate

#endif
