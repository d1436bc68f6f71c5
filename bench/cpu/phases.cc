/* SPDX-License-Identifier: BSD-3-Clause */
/* Times each step of the LU on the CPU (cpu_sp/blocked.c). See bench.h. */
#include "bench/harness/bench.h"

extern "C" {
#include "cpu_sp/blocked.h"
}

#include <cmath>
#include <cstdio>

namespace {

enum { LOAD, COLUMNS, OUTCOME, PARTS };
const char *const names[PARTS] = {"round and copy", "LU", "growth"};
double spent[PARTS];

struct Clock {
  int part;
  double start = now_s();
  ~Clock() { spent[part] += 1e3 * (now_s() - start); }
};

/* The loop of blocked.c without its test of the pivots, which takes a few
   hundred logarithms. */
bool factor(hone_blocked *h, const hone_matrix *a, const hone_scaling *none) {
  hone_factor_info info = {};
  info.zero_pivot = -1;
  for (int64_t j = 0, w; j < h->n && info.zero_pivot < 0; j += w) {
    w = hone_blocked_width(h, j);
    {
      Clock clock{LOAD};
      hone_blocked_load(h, a, none, j, w);
    }
    Clock clock{COLUMNS};
    if (hone_blocked_columns(h, j, w, &info.zero_pivot) != HONE_OK)
      return false;
  }
  Clock clock{OUTCOME};
  hone_blocked_outcome(h, info.zero_pivot < 0, &info);
  return true;
}

/* Factors twice and times the parts of the second factorization; returns false
   after an error. */
bool factor_in_parts(const Config &c, const Systems &s) {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_pool *pool = nullptr;
  void *self = nullptr;
  const hone_engine &engine = hone_engine_single;
  hone_engine_config config = {};
  const hone_dense dense = {s.n, s.n, s.a, nullptr, false, 0};
  const hone_matrix a = hone_dense_matrix(&dense);
  std::vector<double> ones(static_cast<size_t>(s.n), 1.0);
  std::vector<int> zeros(static_cast<size_t>(s.n), 0);
  const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                             zeros.data(), false};
  hone_pool_create(&pool, &mem, c.host_threads);
  config.n = s.n;
  config.mem = &mem;
  config.pool = pool;
  config.watch = &watch;
  bool good = engine.create(&self, &config) == HONE_OK;
  for (int round = 0; round < 2 && good; round++) { /* the first warms up */
    for (double &part : spent)
      part = 0.0;
    good = factor(static_cast<hone_blocked *>(self), &a, &none);
  }
  engine.destroy(self, &mem);
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
               : "\"no_profile\": \"the factorization failed\"",
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
