/* SPDX-License-Identifier: BSD-3-Clause */
/* Other processes that use the machine beside a benchmark. */
#ifndef HONE_BENCH_NEIGHBOURS_H
#define HONE_BENCH_NEIGHBOURS_H

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

/* Processes that compute until they are ended, at most for five minutes: longer
   than any table takes beside them. */
struct Neighbours {
  std::vector<pid_t> processes;
  explicit Neighbours(int count) {
    char timeout[] = "timeout", limit[] = "300", shell[] = "sh", c[] = "-c";
    char loop[] = "while :; do :; done";
    char *const command[] = {timeout, limit, shell, c, loop, nullptr};
    for (int k = 0; k < count; k++) {
      pid_t process = 0;
      if (posix_spawnp(&process, timeout, nullptr, nullptr, command, environ) ==
          0)
        processes.push_back(process);
    }
    usleep(count > 0 ? 300000 : 0);
  }
  ~Neighbours() {
    for (const pid_t process : processes) {
      (void)kill(process, SIGTERM); /* timeout passes it on */
      (void)waitpid(process, nullptr, 0);
    }
  }
  Neighbours(const Neighbours &) = delete;
  Neighbours &operator=(const Neighbours &) = delete;
};

#endif
