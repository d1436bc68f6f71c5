/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of many right-hand sides and of threads; see bench.h. */
#include "bench/harness/bench.h"

extern "C" {
#include "api/hone.h"
#include "base/lapack.h"
}

#include <algorithm>
#include <cstdio>

namespace {

bool allocated(Systems *s, int64_t n, int count, int64_t nrhs) {
  if (systems_allocate(s, n, count, nrhs))
    return true;
  printf("\nn = %lld: failed: out of host memory\n", static_cast<long long>(n));
  return false;
}

/* In bench_gpu the peers on the CPU take most of the time. */
int few_rounds(const Bench &bench, int64_t n) {
  const bool slow = bench.c.device != HONE_DEVICE_CPU && n >= 4096;
  return bench.c.rounds > 0 ? bench.c.rounds : slow ? 3 : 5;
}

void columns_size(Bench *bench, int64_t n, int64_t nrhs) {
  Systems s;
  if (!allocated(&s, n, 2, nrhs))
    return;
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::vector<Method> m;
  add_hone(bench->c, &m, "Hone kept", s, bench->c.device, true, false);
  if (n <= (bench->c.device == HONE_DEVICE_CPU
                ? 8192
                : 4096)) /* beyond, it takes minutes */
    add_lapack(bench->c, &m, s, false, false, 1);
  measure(bench, s, few_rounds(*bench, n), &m);
  print_table(text("n = %lld, %lld right-hand sides", static_cast<long long>(n),
                   static_cast<long long>(nrhs)),
              m, 0, "backward error");
  add_row(bench, "columns", kind_names[UNIFORM], s, 0, "", m, 0);
  m.clear();
  systems_free(&s);
}

void threads_size(Bench *bench, int64_t n, int threads) {
  Systems s;
  if (!allocated(&s, n, 2, 1))
    return;
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::vector<Method> m;
  Choices chosen;
  chosen.threads = threads;
  const int before = hone_blas_threads();
  hone_blas_set_threads(threads);
  add_form(bench->c, &m, "Hone kept", s, bench->c.device, true, chosen);
  add_lapack(bench->c, &m, s, false, false, 1);
  add_lapack(bench->c, &m, s, false, true, 1);
  measure(bench, s, few_rounds(*bench, n), &m);
  hone_blas_set_threads(before);
  print_table(text("n = %lld, %d thread%s", static_cast<long long>(n), threads,
                   threads == 1 ? "" : "s"),
              m, 0, "backward error");
  add_row(bench, "threads", kind_names[UNIFORM], s, threads, "", m, 0);
  m.clear();
  systems_free(&s);
}

} // namespace

void columns_section(Bench *bench) {
  printf("\n## Many right-hand sides\n");
  for (const std::string &size : bench->c.column_sizes)
    for (const std::string &columns : bench->c.columns) {
      const int64_t n = atoll(size.c_str());
      if (!out_of_time(bench, "columns", n))
        columns_size(bench, n, atoll(columns.c_str()));
    }
}

void threads_section(Bench *bench) {
  const int most =
      bench->c.threads > 0 ? bench->c.threads : hone_blas_threads();
  printf("\n## Threads\n");
  for (const std::string &size : bench->c.thread_sizes)
    for (int threads = 1;; threads = std::min(2 * threads, most)) {
      const int64_t n = atoll(size.c_str());
      if (!out_of_time(bench, "threads", n))
        threads_size(bench, n, threads);
      if (threads >= most)
        break;
    }
}
