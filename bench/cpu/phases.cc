/* SPDX-License-Identifier: BSD-3-Clause */
/* Times each operation of the blocked LU on the CPU by itself. The parts of
   OpenBLAS's own LU of a block column, pivoting among them, cannot be told
   apart. See bench.h. */
#include "bench/harness/bench.h"

extern "C" {
#include "gpu_sp/device.h"
}

#include <cmath>
#include <cstdio>

namespace {

enum { LOAD, UPDATE, PANEL, FINISH, OUTCOME, PARTS };
const char *const names[PARTS] = {"round and copy", "update",
                                  "LU of block columns", "finish", "growth"};
double spent[PARTS];

struct Clock {
  int part;
  double start = now_s();
  ~Clock() { spent[part] += 1e3 * (now_s() - start); }
};

const hone_device &host = hone_device_host;

int load(void *self, const hone_matrix *a, const hone_scaling *scaling,
         int64_t j, int64_t w) {
  Clock clock{LOAD};
  return host.load(self, a, scaling, j, w);
}
int update(void *self, int64_t j, int64_t w) {
  Clock clock{UPDATE};
  return host.update(self, j, w);
}
int panel(void *self, int64_t j, int64_t w, int64_t *zero_pivot) {
  Clock clock{PANEL};
  return host.panel(self, j, w, zero_pivot);
}
int finish(void *self) {
  Clock clock{FINISH};
  return host.finish(self);
}
int outcome(void *self, bool complete, hone_factor_info *info) {
  Clock clock{OUTCOME};
  return host.outcome(self, complete, info);
}

/* One factorization, warm, in parts; false: it could not be had. */
bool factor_in_parts(const Config &c, const Systems &s) {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_pool *pool = nullptr;
  void *self = nullptr;
  hone_device timed = host;
  hone_engine_config config = {};
  hone_factor_info info;
  const hone_dense dense = {s.n, s.n, s.a, nullptr};
  const hone_matrix a = hone_dense_matrix(&dense);
  std::vector<double> ones(static_cast<size_t>(s.n), 1.0);
  std::vector<int> zeros(static_cast<size_t>(s.n), 0);
  const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                             zeros.data(), false};
  timed.load = load;
  timed.update = update;
  timed.panel = panel;
  timed.finish = finish;
  timed.outcome = outcome;
  hone_pool_create(&pool, &mem, c.host_threads);
  config.n = s.n;
  config.mem = &mem;
  config.pool = pool;
  config.watch = &watch;
  bool good = timed.create(&self, &config) == HONE_OK;
  for (int round = 0; round < 2 && good; round++) { /* the first: warm-up */
    for (double &part : spent)
      part = 0.0;
    good = hone_lu(&timed, self, &config, &a, &none, &info) == HONE_OK;
  }
  timed.destroy(self, &mem);
  hone_pool_destroy(&pool, &mem);
  return good;
}

void phases_size(Bench *bench, int64_t n) {
  Systems s;
  if (!systems_allocate(&s, n, 1))
    return;
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::vector<Method> m;
  add_hone(bench->c, &m, "Hone kept", s, HONE_DEVICE_CPU, true, false);
  measure(bench, s, 3, &m);
  const bool good = factor_in_parts(bench->c, s);
  std::string parts;
  double whole = 0.0;
  printf("\n### n = %lld\n\n| part | ms |\n|---|---|\n",
         static_cast<long long>(n));
  for (int k = 0; k < PARTS && good; k++) {
    printf("| %s | %.4g |\n", names[k], spent[k]);
    parts += (k > 0 ? ", " : "") + json_string(names[k]) + ": " +
             json_number(spent[k]);
    whole += spent[k];
  }
  add_row(bench, "phases", kind_names[UNIFORM], s, 0,
          good ? "\"parts\": {" + parts +
                     "}, \"parts_of_ms\": " + json_number(whole)
               : "\"no_profile\": \"it failed\"",
          m, 0);
  m.clear();
  systems_free(&s);
}

} // namespace

void cpu_phases_section(Bench *bench) {
  printf("\n## Inside a factorization on the CPU\n");
  for (const std::string &size : bench->c.phase_sizes)
    if (!out_of_time(bench, "phases", atoll(size.c_str())))
      phases_size(bench, atoll(size.c_str()));
}
