/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures where a factorization on the GPU spends its time, by kind of kernel.
   CUPTI's activity records are taken in a normal run, in which kernels overlap.
   CUPTI is looked up at run time; without it a line says so. */
#include "bench/gpu/gpu_bench.h"

extern "C" {
#include "api/hone.h"
#include "api/hone_tuning.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__has_include)
#if __has_include(<cupti.h>)
#define HAVE_CUPTI 1
#include <cupti.h>
#include <dlfcn.h>
#endif
#endif

namespace {

/* Parts of the factorization by words in the names of kernels; the first word
   found counts. */
struct Part {
  const char *kernel, *part;
};
const Part parts[] = {{"factor_panel", "pivoting"},
                      {"largest", "pivoting"},
                      {"compose", "row moves"},
                      {"move_rows", "row moves"},
                      {"exchange", "row moves"},
                      {"permute", "row moves"},
                      {"turn", "round"},
                      {"scale_and_see", "round"},
                      {"mirror", "round"},
                      {"inspect", "inspect"},
                      {"split_", "cut into pieces"},
                      {"line_scales", "cut into pieces"},
                      {"set_scale", "cut into pieces"},
                      {"solve_rows", "sections"},
                      {"solve_moved_rows", "sections"},
                      {"solve_panels", "sections"},
                      {"follow_panel", "sections"},
                      {"triangles", "sections"},
                      {"invert", "sections"},
                      {"correct_", "sections"},
                      {"beside", "sections"},
                      {"sweep", "sections"},
                      {"multiply", "sections"},
                      {"guess", "sections"},
                      {"direct", "sections"},
                      {"trsm", "sections"},
                      {"potrf", "diagonal blocks"},
                      {"complete", "diagonal blocks"},
                      {"note_zero", "diagonal blocks"},
                      {"gemm", "update"},
                      {"cutlass", "update"},
                      {"nvjet", "update"},
                      {"xmma", "update"},
                      {"splitK", "update"}};

struct Span {
  uint64_t start, end;
  std::string part;
};

#ifdef HAVE_CUPTI

std::vector<Span> spans; /* recorded by the callbacks */

std::string part_of(const char *name) {
  for (const Part &p : parts)
    if (strstr(name, p.kernel) != nullptr)
      return p.part;
  return "other kernels";
}

#if CUDART_VERSION >= 13000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
#endif

/* The functions of CUPTI that are needed, if the library can be loaded. */
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;

  template <class F> bool take(void *library, const char *name, F *f) {
    *f = reinterpret_cast<F>(dlsym(library, name));
    return *f != nullptr;
  }

  bool open() {
    void *library = nullptr;
    for (const char *name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"})
      if (library == nullptr)
        library = dlopen(name, RTLD_NOW);
    return library != nullptr &&
           take(library, "cuptiActivityRegisterCallbacks",
                &register_callbacks) &&
           take(library, "cuptiActivityEnable", &enable) &&
           take(library, "cuptiActivityDisable", &disable) &&
           take(library, "cuptiActivityFlushAll", &flush) &&
           take(library, "cuptiActivityGetNextRecord", &next);
  }
};
Cupti cupti;

void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *records) {
  *size = size_t{4} << 20;
  *buffer = static_cast<uint8_t *>(aligned_alloc(8, *size));
  *records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t,
                        size_t valid) {
  CUpti_Activity *record = nullptr;
  while (valid > 0 && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
        record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
      const auto *k = reinterpret_cast<const kernel_record *>(record);
      spans.push_back({k->start, k->end, part_of(k->name)});
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto *m = reinterpret_cast<const CUpti_ActivityMemcpy6 *>(record);
      spans.push_back({m->start, m->end, "copies"});
    }
  }
  free(buffer);
}

/* Runs work and records the spans of kernels and copies. Returns why it could
   not, or an empty text. */
std::string record_spans(const std::function<void()> &work) {
  static const bool there = cupti.open();
  const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                      CUPTI_ACTIVITY_KIND_MEMCPY};
  if (!there)
    return "CUPTI is not installed";
  spans.clear();
  bool good = cupti.register_callbacks(request, completed) == CUPTI_SUCCESS;
  for (CUpti_ActivityKind kind : kinds)
    good = good && cupti.enable(kind) == CUPTI_SUCCESS;
  work();
  cudaDeviceSynchronize();
  good = cupti.flush(1) == CUPTI_SUCCESS && good;
  for (CUpti_ActivityKind kind : kinds)
    cupti.disable(kind);
  return good ? "" : "CUPTI may not be used here";
}

#else
std::vector<Span> spans;
std::string record_spans(const std::function<void()> &work) {
  work();
  return "built without CUPTI";
}
#endif

/* Returns the milliseconds during which at least one kernel or copy ran. */
double busy_ms(std::vector<Span> all) {
  std::sort(all.begin(), all.end(),
            [](const Span &a, const Span &b) { return a.start < b.start; });
  uint64_t busy = 0, reach = 0;
  for (const Span &s : all) {
    busy +=
        s.end > std::max(reach, s.start) ? s.end - std::max(reach, s.start) : 0;
    reach = std::max(reach, s.end);
  }
  return 1e-6 * static_cast<double>(busy);
}

/* Prints the time of each part and returns `"parts": {...}`. The times add up
   to more than the whole, since parts overlap. */
std::string parts_json(double factor_ms) {
  std::map<std::string, double> ms;
  for (const Span &s : spans)
    ms[s.part] += 1e-6 * static_cast<double>(s.end - s.start);
  const double busy = busy_ms(spans);
  std::string out;
  for (const auto &part : ms) {
    printf("| %s | %.4g |\n", part.first.c_str(), part.second);
    out += (out.empty() ? "" : ", ") + json_string(part.first) + ": " +
           json_number(part.second);
  }
  printf("| device idle | %.4g |\n", std::max(0.0, factor_ms - busy));
  return "\"parts\": {" + out + "}, \"busy_ms\": " + json_number(busy) +
         ", \"idle_ms\": " + json_number(std::max(0.0, factor_ms - busy));
}

void profile_size(Bench *bench, int64_t n, int diagonal) {
  Systems s;
  if (!systems_allocate(&s, n, 1))
    return;
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::vector<Method> m;
  Choices chosen;
  chosen.diagonal = diagonal;
  add_form(bench->c, &m,
           diagonal == 0 ? "Hone kept" : "Hone diagonal blocks by the CPU", s,
           HONE_DEVICE_CUDA, true, chosen);
  measure(bench, s, 3, &m);
  hone_options options = HONE_OPTIONS_INIT;
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_solver *solver = nullptr;
  hone_report report = HONE_REPORT_INIT;
  options.device = HONE_DEVICE_CUDA;
  options.threads = bench->c.threads;
  options.tuning = &tuning;
  tuning.diagonal = diagonal;
  std::string why = "no solver";
  if (hone_solver_create(&solver, n, &options) == HONE_OK) {
    (void)hone_solver_factor(solver, s.a, n, &report); /* warms up */
    why = record_spans(
        [&] { (void)hone_solver_factor(solver, s.a, n, &report); });
  }
  hone_solver_destroy(&solver);
  printf("\n### n = %lld, %s: factor %.4g ms%s%s\n\n| part | ms |\n|---|---|\n",
         static_cast<long long>(n), m[0].name.c_str(), report.factor_ms,
         why.empty() ? "" : "; no profile: ", why.c_str());
  add_row(bench, "phases", kind_names[UNIFORM], s, 0,
          why.empty() ? parts_json(report.factor_ms) + ", \"parts_of_ms\": " +
                            json_number(report.factor_ms)
                      : "\"no_profile\": " + json_string(why),
          m, 0);
  m.clear();
  systems_free(&s);
}

} // namespace

void gpu_phases_section(Bench *bench) {
  printf("\n## Inside a factorization: milliseconds by kind of kernel, which "
         "overlap\n");
  for (const std::string &size : bench->c.phase_sizes)
    for (int diagonal : {0, (int)HONE_DIAGONAL_CPU})
      if (!out_of_time(bench, "phases", atoll(size.c_str())))
        profile_size(bench, atoll(size.c_str()), diagonal);
}
