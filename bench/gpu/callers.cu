/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of callers: what a program gets whose process is not alone on the
   machine, or may use a few CPUs only. See gpu_bench.h. Peers that copy A by
   cudaMemcpy run under the same load. */
#include "bench/gpu/gpu_bench.h"

#include "bench/harness/neighbours.h"
#include "bench/harness/systems.h"

extern "C" {
#include "api/hone.h"
}

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace {

/* One situation: so many other processes compute beside this one, which has the
   CPUs that it was given, or so many of them. */
struct Caller {
  int busy, cpus;
};

/* Binds this thread, and those that it will create, to the first CPUs of those
   that it has. */
struct Binding {
  cpu_set_t before;
  bool bound = false;
  explicit Binding(int cpus) {
    cpu_set_t few;
    if (cpus == 0 || sched_getaffinity(0, sizeof before, &before) != 0)
      return;
    CPU_ZERO(&few);
    for (int k = 0, left = cpus; k < CPU_SETSIZE && left > 0; k++)
      if (CPU_ISSET(static_cast<size_t>(k), &before)) {
        CPU_SET(static_cast<size_t>(k), &few);
        left--;
      }
    bound = sched_setaffinity(0, sizeof few, &few) == 0;
  }
  ~Binding() {
    if (bound)
      (void)sched_setaffinity(0, sizeof before, &before);
  }
  Binding(const Binding &) = delete;
  Binding &operator=(const Binding &) = delete;
};

std::string name_of(const Caller &caller) {
  if (caller.busy > 0)
    return text("%d busy process%s beside", caller.busy,
                caller.busy == 1 ? "" : "es");
  if (caller.cpus > 0)
    return text("bound to %d CPU%s", caller.cpus, caller.cpus == 1 ? "" : "s");
  return "quiet";
}

/* Returns the median time of Hone kept. */
double measure_caller(Bench *bench, const Systems &s, const Caller &caller,
                      double quiet_ms) {
  Peers peers;
  bool use[PEERS] = {true};
  const Binding binding(caller.cpus);
  const Neighbours neighbours(caller.busy);
  const std::string no_peers = peers.open(s.n, use);
  std::vector<Method> m;
  Choices chosen;
  chosen.threads = caller.cpus;
  add_form(bench->c, &m, "Hone kept", s, HONE_DEVICE_CUDA, true, chosen);
  add_form(bench->c, &m, "Hone once", s, HONE_DEVICE_CUDA, false, chosen);
  add_peer(bench->c, &m, &peers, PEER_LU, s, nullptr, no_peers);
  measure(bench, s, bench->c.rounds > 0 ? bench->c.rounds : 7, &m);
  print_table(text("n = %lld, %s", static_cast<long long>(s.n),
                   name_of(caller).c_str()),
              m, 0, "backward error");
  const double ms = spread(m[0].ms).median;
  if (quiet_ms > 0.0)
    printf("\nHone kept takes %.2f times as long as alone.\n", ms / quiet_ms);
  add_row(bench, "callers", kind_names[UNIFORM], s, 0,
          text("\"busy\": %d, \"cpus\": %d", caller.busy, caller.cpus), m, 0);
  m.clear();
  peers.close();
  return ms;
}

} // namespace

void callers_section(Bench *bench) {
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<Caller> callers = {{0, 4}, {0, 1}};
  for (const int busy : {cpus - 1, cpus / 2, cpus / 4, 1})
    callers.insert(callers.begin(), {busy, 0});
  const int64_t n = 8192;
  Systems s;
  printf("\n## What a caller gets, from pageable host memory\n");
  if (out_of_time(bench, "callers", n))
    return;
  if (!systems_allocate(&s, n, 2)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  const double quiet_ms = measure_caller(bench, s, {0, 0}, 0.0);
  for (const Caller &caller : callers)
    if (caller.busy < cpus && caller.cpus <= cpus)
      (void)measure_caller(bench, s, caller, quiet_ms);
  systems_free(&s);
}
