/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of which one page is slow to read: the first thread that reads it
   after slow_page::begin sleeps before it goes on. So a test makes one piece of
   A arrive after all others. */
#ifndef HONE_EMULATE_LATE_PAGE_H
#define HONE_EMULATE_LATE_PAGE_H

#include "tests/unit/ct.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>

class slow_page {
public:
  /* 'bytes' bytes of zeros, in memory of their own. */
  explicit slow_page(size_t bytes) : size(bytes) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    struct sigaction act = {};
    act.sa_sigaction = wake;
    act.sa_flags = SA_SIGINFO | SA_NODEFER;
    CHECK_EQ_INT(sigaction(SIGSEGV, &act, &before), 0);
  }
  ~slow_page() {
    (void)sigaction(SIGSEGV, &before, nullptr);
    (void)munmap(memory, size);
  }
  slow_page(const slow_page &) = delete;
  slow_page &operator=(const slow_page &) = delete;

  void *data() const { return memory; }
  /* From now on the page that holds this byte is slow. */
  static void begin(const void *byte) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    at = reinterpret_cast<uintptr_t>(byte) / page * page;
    length = page;
    CHECK_EQ_INT(mprotect(reinterpret_cast<void *>(at), length, PROT_NONE), 0);
  }

private:
  static void wake(int, siginfo_t *info, void *) {
    const uintptr_t byte = reinterpret_cast<uintptr_t>(info->si_addr);
    const timespec nap = {0, 150000000};
    if (byte < at || byte >= at + length)
      abort(); /* a fault that no test makes */
    (void)nanosleep(&nap, nullptr);
    (void)mprotect(reinterpret_cast<void *>(at), length,
                   PROT_READ | PROT_WRITE);
  }

  static inline uintptr_t at = 0, length = 0;
  size_t size;
  void *memory = nullptr;
  struct sigaction before = {};
};

#endif
