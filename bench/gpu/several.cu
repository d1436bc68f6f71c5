/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of several GPUs, for one matrix: whole solves from pageable
   memory, with one right-hand side or many, and the factorization alone where A
   is on the devices already, each on one GPU and on all, for real and for
   complex matrices, and for positive definite ones by Cholesky's factorization;
   and beside cuSolverMG. See several.h. Every table frees
   what it has on the devices before the next one begins. */
#include "bench/gpu/several.h"
#include "bench/harness/several_model.h"

#include "gpu_sp/layout.h"

extern "C" {
#include "api/hone.h"
#include "base/engine.h"
}

#include <cstdio>

namespace {

/* The wanted ratios of the factorization alone: one GPU / two, and cuSolverMG /
   ours on two. */
double wanted(int64_t n) { return n >= 65536 ? 1.8 : n >= 32768 ? 1.6 : 0.0; }
double wanted_of_mg(int64_t n) {
  return n >= 65536 ? 3.0 : n >= 32768 ? 3.5 : 0.0;
}

int devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* Says what more GPUs would gain, by a model that has the times of one and of
   two; panels have the library's width for this order. */
void print_model(int64_t n, const Method &one, const Method &two) {
  hone_engine_config config = {};
  config.n = n;
  Several_model m = {n, hone_cuda_outer_width(false, &config), 0.0, 0.0};
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
  for (int count : {1, 2, 4, 8}) {
    const Several_times t = several_times(m, count);
    printf("| %d | %.1f | %.2f | %.0f %% |\n", count, t.ms, one_ms / t.ms,
           100.0 * t.by_panels);
  }
}

/* Prints and records a table whose first method is Hone's on one GPU, and whose
   second one is that on all. */
void report(Bench *bench, const Systems &s, const char *kind,
            const std::string &title, double goal,
            const std::vector<Method> &m) {
  print_table(title + text(", n = %lld", static_cast<long long>(s.n)), m, 0,
              "backward error");
  printf("\none / all: %s%s\n", text_of(ratio(m[0], m[1]), "%.2f").c_str(),
         goal > 0.0 ? text("; wanted of two: %.1f", goal).c_str() : "");
  add_row(bench, "several", kind, s, 0,
          text("\"devices\": %d, \"wanted\": ", devices()) +
              (goal > 0.0 ? json_number(goal) : "null"),
          m, 0);
}

/* Measures the factorization alone, and reports it. */
std::vector<Method> alone(Bench *bench, const Systems &s, bool spd,
                          const char *kind, const std::string &title) {
  const auto make = s.parts == 2 ? several_z_alone : several_alone;
  std::vector<Method> m;
  m.push_back(make({"factorization, one GPU", false, spd}, s, bench->c));
  m.push_back(make({"factorization, all GPUs", true, spd}, s, bench->c));
  measure(bench, s, rounds_of(bench->c, s.n), &m);
  report(bench, s, kind, title + ", A on the devices, x not refined",
         s.parts == 1 && !spd ? wanted(s.n) : 0.0, m);
  return m;
}

void factor_table(Bench *bench, const Systems &s) {
  const bool real = s.parts == 1;
  const std::vector<Method> m =
      alone(bench, s, false, real ? "factorization" : "complex factorization",
            real ? "uniform" : "complex uniform");
  if (real && devices() == 2 && m[0].failed.empty() && m[1].failed.empty())
    print_model(s.n, m[0], m[1]);
}

void spd_factor_table(Bench *bench, const Systems &s) {
  (void)alone(bench, s, true, "spd factorization", "positive definite");
}

/* Where cuSolverMG cannot be used the table says why, and nothing is timed. */
void mg_table(Bench *bench, const Systems &s) {
  enum { OURS_ALL, MG };
  std::vector<Method> m(2);
  m[MG] = several_mg(s, bench->c);
  m[OURS_ALL].name = "factorization, all GPUs";
  m[OURS_ALL].skipped = "there is nothing beside it";
  if (m[MG].failed.empty()) {
    m[OURS_ALL] =
        several_alone({"factorization, all GPUs", true, false}, s, bench->c);
    measure(bench, s, rounds_of(bench->c, s.n), &m);
  }
  const double goal = wanted_of_mg(s.n);
  print_table(text("uniform, A on the devices, beside cuSolverMG, n = %lld",
                   static_cast<long long>(s.n)),
              m, OURS_ALL, "backward error");
  printf("\ncuSolverMG / Hone: %s%s\n",
         text_of(ratio(m[MG], m[OURS_ALL]), "%.2f").c_str(),
         goal > 0.0 ? text("; wanted of two: %.1f", goal).c_str() : "");
  add_row(bench, "several", "beside cuSolverMG", s, 0,
          text("\"devices\": %d, \"wanted\": ", devices()) +
              (goal > 0.0 ? json_number(goal) : "null"),
          m, OURS_ALL);
}

/* Measures whole solves, and reports them. */
void solves(Bench *bench, const Systems &s, const char *kind,
            const std::string &title) {
  std::vector<Method> m;
  Choices all;
  Config c = bench->c;
  c.skip.clear(); /* methods are found by their number */
  all.devices = -1;
  add_hone(c, &m, "Hone kept, one GPU", s, HONE_DEVICE_CUDA, true, false);
  add_form(c, &m, "Hone kept, all GPUs", s, HONE_DEVICE_CUDA, true, all);
  measure(bench, s, rounds_of(bench->c, s.n), &m);
  report(bench, s, kind,
         title + (s.nrhs > 1 ? text(", %lld right-hand sides",
                                    static_cast<long long>(s.nrhs))
                             : ""),
         0.0, m);
}

/* Uniform matrices of this order and more may be so ill-conditioned that double
   precision serves. */
const int64_t HEAVY_FROM = 49152;

void heavy_table(Bench *bench, const Systems &s) {
  solves(bench, s, kind_names[HEAVY_DIAGONAL], "heavy diagonal");
}

void solve_table(Bench *bench, const Systems &s) {
  const bool real = s.parts == 1;
  solves(bench, s,
         s.nrhs > 1 ? "columns"
         : real     ? kind_names[UNIFORM]
                    : "complex",
         real ? "uniform" : "complex uniform");
}

/* The library finds that A is positive definite. */
void spd_solve_table(Bench *bench, const Systems &s) {
  solves(bench, s, s.nrhs > 1 ? "spd columns" : kind_names[SPD],
         "positive definite");
}

struct Size {
  int64_t n, nrhs;
  int parts;
  Kind kind;
};

/* Makes systems of this size and gives them to one table after the other. */
void run_tables(Bench *bench, const char *section, const Size &of,
                const std::vector<void (*)(Bench *, const Systems &)> &tables) {
  const int64_t n = of.n;
  Systems s;
  if (out_of_time(bench, section, n))
    return;
  if (!systems_allocate(&s, n, 1, of.nrhs, of.parts)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  systems_fill(&s, of.kind, bench->c.seed, bench->c.host_threads);
  for (size_t k = 0; k < tables.size(); k++) {
    if (k > 0 && out_of_time(bench, section, n))
      break;
    tables[k](bench, s);
    (void)hone_release_kept();
  }
  systems_free(&s);
}

} // namespace

int several_begin(const char *title) {
  const int count = devices();
  printf("\n## %s\n", title);
  if (count < 2)
    printf("\nThere is one GPU.\n");
  return count < 2 ? 0 : count;
}

void several_section(Bench *bench) {
  if (several_begin("Several GPUs, whole solves of one matrix") > 0)
    for (const std::string &size : bench->c.several_solve_sizes) {
      const int64_t n = atoll(size.c_str());
      if (n < HEAVY_FROM)
        run_tables(bench, "several", {n, 1, 1, UNIFORM}, {solve_table});
      else
        run_tables(bench, "several", {n, 1, 1, HEAVY_DIAGONAL}, {heavy_table});
    }
}

void several_factor_section(Bench *bench) {
  if (several_begin("Several GPUs, the factorization alone") > 0)
    for (const std::string &size : bench->c.several_sizes)
      run_tables(bench, "several_factor", {atoll(size.c_str()), 1, 1, UNIFORM},
                 {factor_table});
}

void several_mg_section(Bench *bench) {
  if (several_begin("Several GPUs, the factorization beside cuSolverMG") > 0 &&
      !kept_out(bench->c, several_mg_name))
    for (const std::string &size : bench->c.several_sizes)
      run_tables(bench, "several_mg", {atoll(size.c_str()), 1, 1, UNIFORM},
                 {mg_table});
}

void several_complex_section(Bench *bench) {
  if (several_begin("Several GPUs, complex systems of half the orders") > 0)
    for (const std::string &size : bench->c.several_sizes)
      run_tables(bench, "several_complex",
                 {(atoll(size.c_str()) / 2 + 7) / 8 * 8, 1, 2, UNIFORM},
                 {solve_table, factor_table});
}

void several_columns_section(Bench *bench) {
  const int64_t nrhs = atoll(bench->c.columns.back().c_str());
  if (several_begin("Several GPUs, many right-hand sides") > 0)
    for (const std::string &size : bench->c.several_solve_sizes)
      run_tables(bench, "several_columns",
                 {atoll(size.c_str()), nrhs, 1, UNIFORM}, {solve_table});
}

void several_spd_section(Bench *bench) {
  const int64_t nrhs = atoll(bench->c.columns.back().c_str());
  if (several_begin("Several GPUs, positive definite systems") == 0)
    return;
  for (const std::string &size : bench->c.several_solve_sizes) {
    const int64_t n = atoll(size.c_str());
    run_tables(bench, "several_spd", {n, 1, 1, SPD}, {spd_solve_table});
    run_tables(bench, "several_spd", {n, nrhs, 1, SPD}, {spd_solve_table});
  }
  for (const std::string &size : bench->c.several_sizes)
    run_tables(bench, "several_spd", {atoll(size.c_str()), 1, 1, SPD},
               {spd_factor_table});
}
