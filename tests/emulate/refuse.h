/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a test refuse one creation of memory, a stream, an event or a handle:
   nothing is created then. The emulated functions that create ask refused()
   first. */
#ifndef HONE_EMULATE_REFUSE_H
#define HONE_EMULATE_REFUSE_H

#include <atomic>
#include <cstdint>

namespace hone_emulate {

struct refusal {
  std::atomic<int64_t> asked{0};     /* creations asked for so far */
  std::atomic<int64_t> refuse_at{0}; /* the creation that takes this from 1 to 0
                                        is refused; 0: none */
  bool spoil = false; /* a refused creation writes a wild pointer; otherwise it
                         writes nothing */
};
inline refusal refusing;

/* Returns true if the creation of *at is refused. */
template <class T> bool refused(T **at) {
  refusing.asked++;
  if (refusing.refuse_at.load() <= 0 || --refusing.refuse_at != 0)
    return false;
  if (refusing.spoil)
    *at = reinterpret_cast<T *>(uintptr_t{0x5a5a5a5a5a50});
  return true;
}

} // namespace hone_emulate

#endif
