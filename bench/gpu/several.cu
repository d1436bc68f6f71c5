/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of several GPUs, for LU of one matrix: whole solves from pageable
   memory, and the factorization alone where A is on the devices already, each
   on one GPU and on all. See gpu_bench.h. */
#include "bench/gpu/gpu_bench.h"
#include "bench/harness/several_model.h"

#include "gpu_sp/layout.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

#include <cstdio>
#include <memory>

namespace {

/* The wanted ratios of the factorization alone. */
double wanted(int64_t n) { return n >= 65536 ? 1.8 : 1.6; }

/* An engine that has A on its device or devices. */
struct Factored {
  const hone_engine *engine;
  const Systems *s;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_pool *pool = nullptr;
  void *self = nullptr;
  std::vector<double> ones;
  double *x = nullptr; /* where the harness wants a solution */
  int64_t side = 0;
  std::string unprepared; /* why A is not on the device; empty: it is */
  char why[128] = "";

  Factored(const hone_engine *which, const Systems *systems)
      : engine(which), s(systems), ones(static_cast<size_t>(systems->n), 1.0) {}
  ~Factored() {
    if (self)
      engine->destroy(self, &mem);
    hone_pool_destroy(&pool, &mem);
  }
  Factored(const Factored &) = delete;
  Factored &operator=(const Factored &) = delete;

  std::string open(const Config &c) {
    hone_engine_config config = {};
    hone_pool_create(&pool, &mem, c.host_threads);
    config.n = s->n;
    config.mem = &mem;
    config.watch = &watch;
    config.pool = pool;
    config.choices.devices = -1;
    config.why = why;
    config.why_size = sizeof why;
    const int st = engine->create(&self, &config);
    return st == HONE_OK ? "" : std::string(hone_status_text(st)) + " " + why;
  }

  /* Factors A as it comes, or, seen before, from its copy on the device. */
  std::string factor(bool seen) {
    std::vector<int> zeros(static_cast<size_t>(s->n), 0);
    const hone_scaling scaling = {ones.data(), ones.data(), zeros.data(),
                                  zeros.data(), false};
    const hone_dense dense = {s->n, s->n, s->a, nullptr, false};
    const hone_matrix matrix = hone_dense_matrix(&dense);
    hone_factor_info info = {};
    const int st =
        engine->factor(self, &matrix, seen ? &scaling : nullptr, &info);
    if (st != HONE_OK || info.zero_pivot >= 0)
      return st != HONE_OK ? hone_status_text(st) : "a pivot is zero";
    return "";
  }

  /* Without refinement: x is as accurate as single precision. */
  std::string solve(std::string *note) {
    const double *b = s->side(side);
    for (int64_t i = 0; i < s->n; i++)
      x[i] = b[i];
    const int st = engine->solve(self, false, 1, x, s->n);
    hone_account used = {};
    engine->account(self, &used);
    *note = used.text;
    return st == HONE_OK ? "" : hone_status_text(st);
  }
};

Method factorization(const char *name, const hone_engine *engine,
                     const Systems &s, const Config &c) {
  const auto made = std::make_shared<Factored>(engine, &s);
  Method m;
  m.name = name;
  m.failed = made->open(c);
  m.prepare = [=](int64_t k, int64_t, double *x) {
    made->x = x;
    made->side = k;
    made->unprepared = made->factor(false);
  };
  m.solve = [=](int64_t, double *) {
    return made->unprepared.empty() ? made->factor(true) : made->unprepared;
  };
  m.after = [=](std::string *note) { return made->solve(note); };
  return m;
}

/* Says what more GPUs would gain, by a model that has the times of one and of
   two; panels have the library's width for this order. */
void print_model(int64_t n, const Method &one, const Method &two) {
  hone_engine_config config = {};
  config.n = n;
  Several_model m = {n, hone_cuda_outer_width(&config), 0.0, 0.0};
  const double one_ms = spread(one.ms).median, two_ms = spread(two.ms).median;
  if (!several_fit(one_ms, two_ms, &m)) {
    printf("no model of a chain of panels has these times\n");
    return;
  }
  printf(
      "a chain of panels of %.2f ms and products at %.0f TFLOP/s have both "
      "times; by this model:\n\n"
      "| GPUs | factorization, ms | one / these | time with panels that take "
      "longer than the update |\n|---|---|---|---|\n",
      m.panel_ms, m.flops * 1e-9);
  for (int devices : {1, 2, 4, 8}) {
    const Several_times t = several_times(m, devices);
    printf("| %d | %.1f | %.2f | %.0f %% |\n", devices, t.ms, one_ms / t.ms,
           100.0 * t.by_panels);
  }
}

void factor_table(Bench *bench, const Systems &s) {
  std::vector<Method> m;
  m.push_back(factorization("factorization, one GPU", &hone_engine_single_cuda,
                            s, bench->c));
  m.push_back(factorization("factorization, all GPUs",
                            &hone_engine_several_cuda, s, bench->c));
  measure(bench, s, rounds_of(bench->c, s.n), &m);
  print_table(text("uniform, n = %lld: A on the devices, x not refined",
                   static_cast<long long>(s.n)),
              m, 0, "backward error");
  printf("\none / all: %s; wanted of two: %.1f\n",
         text_of(ratio(m[0], m[1]), "%.2f").c_str(), wanted(s.n));
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count == 2 &&
      m[0].failed.empty() && m[1].failed.empty())
    print_model(s.n, m[0], m[1]);
  add_row(bench, "several", "factorization", s, 0,
          text("\"wanted\": %.1f", wanted(s.n)), m, 0);
}

void solve_table(Bench *bench, const Systems &s) {
  std::vector<Method> m;
  Choices all;
  all.devices = -1;
  add_hone(bench->c, &m, "Hone kept, one GPU", s, HONE_DEVICE_CUDA, true,
           false);
  add_form(bench->c, &m, "Hone kept, all GPUs", s, HONE_DEVICE_CUDA, true, all);
  measure(bench, s, rounds_of(bench->c, s.n), &m);
  print_table(text("uniform, n = %lld", static_cast<long long>(s.n)), m, 0,
              "backward error");
  printf("\none / all: %s\n", text_of(ratio(m[0], m[1]), "%.2f").c_str());
  add_row(bench, "several", kind_names[UNIFORM], s, 0, "", m, 0);
}

} // namespace

void several_section(Bench *bench) {
  int count = 0;
  printf("\n## Several GPUs, one matrix\n");
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) {
    printf("\nThere is one GPU.\n");
    return;
  }
  for (const std::string &size : bench->c.several_sizes) {
    const int64_t n = atoll(size.c_str());
    Systems s;
    if (out_of_time(bench, "several", n))
      continue;
    if (!systems_allocate(&s, n, 1)) {
      printf("\nn = %lld: failed: out of host memory\n",
             static_cast<long long>(n));
      continue;
    }
    systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
    solve_table(bench, s);
    (void)hone_release_kept();
    factor_table(bench, s);
    systems_free(&s);
  }
}
