/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of callers whose machine is shared: whole solves beside processes
   that compute without end, and the same ones alone. The peers run under the
   same load. */
#include "bench/harness/bench.h"
#include "bench/harness/neighbours.h"

#include "api/hone.h"

#include <cstdio>

namespace {

void measure_beside(Bench *bench, const Systems &s, int busy) {
  const Neighbours neighbours(busy);
  const Config &c = bench->c;
  std::vector<Method> m;
  add_hone(c, &m, "Hone once", s, HONE_DEVICE_CPU, false, false);
  add_hone(c, &m, "Hone kept", s, HONE_DEVICE_CPU, true, false);
  for (const bool mixed : {false, true})
    add_lapack(c, &m, s, false, mixed, 1);
  measure(bench, s, c.rounds > 0 ? c.rounds : s.n <= 2048 ? 15 : 7, &m);
  print_table(text("n = %lld, beside %d busy processes",
                   static_cast<long long>(s.n), busy),
              m, 0, "backward error");
  add_row(bench, "callers", kind_names[UNIFORM], s, 0,
          text("\"busy\": %d, \"cpus\": 0", busy), m, 0);
}

} // namespace

void cpu_callers_section(Bench *bench) {
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  printf("\n## Beside processes that compute without end\n");
  for (const int64_t n : {1024, 2048, 4096}) {
    Systems s;
    if (out_of_time(bench, "callers", n))
      continue;
    if (!systems_allocate(&s, n, 2)) {
      printf("\nn = %lld: failed: out of host memory\n",
             static_cast<long long>(n));
      continue;
    }
    systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
    for (int busy = 0; busy < cpus; busy = 2 * busy + 1)
      measure_beside(bench, s, busy);
    systems_free(&s);
  }
}
