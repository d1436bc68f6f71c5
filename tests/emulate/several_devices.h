/* SPDX-License-Identifier: BSD-3-Clause */
/* While it exists there are so many emulated devices; then there are as many as
   before, no access between them is enabled, device 0 is current, and other
   processes have no memory there. Engines that the process keeps are released
   before and after. */
#ifndef HONE_EMULATE_SEVERAL_DEVICES_H
#define HONE_EMULATE_SEVERAL_DEVICES_H

#include "tests/cuda/test_kernels.h"

extern "C" {
#include "api/hone.h"
}

class several_devices {
public:
  explicit several_devices(int count) {
    begin(count);
    hone_emulate::devices.peer_bytes = hone_emulate::devices.staged_bytes = 0;
  }
  ~several_devices() { begin(0); }
  several_devices(const several_devices &) = delete;
  several_devices &operator=(const several_devices &) = delete;

private:
  static void begin(int count) {
    (void)hone_release_kept();
    (void)cudaSetDevice(0);
    hone_emulate::devices.count = count;
    hone_emulate::devices.peers = true;
    for (auto &bytes : hone_emulate::devices.others)
      bytes = 0;
    for (auto &row : hone_emulate::devices.enabled)
      for (auto &enabled : row)
        enabled = false;
  }
};

#endif
