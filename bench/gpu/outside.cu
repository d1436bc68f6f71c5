/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of factors that do not fit the memory that may be used of the
   device: whole solves within memory, and with a limit of a quarter of the
   factors, by block columns out of host memory and by the CPU. See gpu_bench.h.
 */
#include "bench/gpu/gpu_bench.h"

extern "C" {
#include "api/hone_tuning.h"
}

#include <cstdio>

namespace {

/* With the limit, at most so many times the time within memory. */
const double WANTED = 2.0;

void table(Bench *bench, const Systems &s) {
  const int64_t quarter =
      s.n * s.n * static_cast<int64_t>(sizeof(float)) * s.parts / 4;
  std::vector<Method> m;
  Choices within, host, outside;
  host.residuals = HONE_RESIDUALS_HOST;
  outside.device_memory = quarter;
  add_form(bench->c, &m, "Hone kept, within memory", s, HONE_DEVICE_CUDA, true,
           within);
  add_form(bench->c, &m, "Hone kept, A with the host", s, HONE_DEVICE_CUDA,
           true, host);
  add_form(bench->c, &m, "Hone kept, a quarter of the factors", s,
           HONE_DEVICE_CUDA, true, outside);
  add_hone(bench->c, &m, "Hone kept, CPU", s, HONE_DEVICE_CPU, true, false);
  measure(bench, s, rounds_of(bench->c, s.n), &m);
  print_table(text("uniform, n = %lld, limit %.2f GB",
                   static_cast<long long>(s.n),
                   1e-9 * static_cast<double>(quarter)),
              m, 0, "backward error");
  if (m.size() > 2)
    printf("\na quarter of the factors / within memory: %s; wanted: at most "
           "%.1f\n",
           text_of(ratio(m[2], m[0]), "%.2f").c_str(), WANTED);
  add_row(bench, "outside", kind_names[UNIFORM], s, 0,
          text("\"device_memory_limit_bytes\": %lld, \"wanted\": %.1f",
               static_cast<long long>(quarter), WANTED),
          m, 0);
}

} // namespace

/* A method that does not fit within memory says so in its line. */
void outside_section(Bench *bench) {
  printf("\n## Factors larger than the device memory that may be used\n");
  for (const std::string &size : bench->c.outside_sizes) {
    const int64_t n = atoll(size.c_str());
    Systems s;
    if (out_of_time(bench, "outside", n))
      continue;
    if (!systems_allocate(&s, n, 1)) {
      printf("\nn = %lld: failed: out of host memory\n",
             static_cast<long long>(n));
      continue;
    }
    systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
    table(bench, s);
    systems_free(&s);
    (void)hone_release_kept();
  }
}
