/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times Hone beside OpenBLAS's dgesv and LAPACK's dsgesv on the CPU (complex:
 * zgesv and zcgesv), in one process, on the same threads (the peers on one,
 * where they are faster so), and checks every answer. `bench_cpu --help` for
 * options.
 *
 * The methods take turns (A B C A B C ...). Each round begins with another
 * method and solves other systems of a small pool; the first round is not
 * counted. Ratios are formed within a round, then their median is taken, so
 * that a machine which slows down slows down all methods. Small systems are
 * solved in batches of about 0.1 ms. dgesv and dsgesv overwrite A and b; their
 * copies and work space are made untimed. hone_solve ("Hone once") is timed
 * with its allocations; "Hone kept" uses a solver that was created before.
 *
 * Every x is checked: its componentwise backward error, max |b - A x| / (|A|
 * |x| + |b|), is computed in long double. It is accepted up to 4.04 eps, eps =
 * 2^-53.
 *
 * Each section gets a share of --seconds; time that one does not use goes to
 * those after it. Orders for which time or memory does not suffice are skipped,
 * and the record says so.
 */
#include "bench/harness/bench.h"

extern "C" {
#include "api/hone.h"
#include "base/lapack.h"
}

#include <algorithm>
#include <cstdio>

namespace {

const char usage[] = "usage: bench_cpu [options]\n"
                     "Sections: solve, columns, threads, hard, spd, complex, "
                     "gallery, history, phases, callers.\n";

const std::vector<Part> parts = {
    {"solve", 0.38},  {"columns", 0.1},  {"threads", 0.1},  {"hard", 0.12},
    {"spd", 0.1},     {"complex", 0.07}, {"gallery", 0.05}, {"history", 0.03},
    {"phases", 0.03}, {"callers", 0.07}};

void run_section(Bench *bench, const std::string &section) {
  if (section == "columns")
    columns_section(bench);
  else if (section == "threads")
    threads_section(bench);
  else if (section == "gallery")
    gallery_section(bench);
  else if (section == "history")
    history_section(bench);
  else if (section == "phases")
    cpu_phases_section(bench);
  else if (section == "callers")
    cpu_callers_section(bench);
  else
    cpu_solve_section(bench, section.c_str());
}

int run(Bench *bench, int argc, char **argv) {
  state_program(bench, argc, argv);
  state(bench, "device", "CPU");
  state_host(bench);
  cpu_rates(bench);
  run_by_shares(bench, parts, run_section);
  print_summary(bench->solves);
  costs(bench);
  printf("\n");
  state(bench, "cpu_clocks_at_end", cpu_clocks());
  state(bench, "load_at_end", first_line("cut -d' ' -f1-3 /proc/loadavg"));
  if (!bench->record.save()) {
    perror(bench->c.json_name.c_str());
    return 2;
  }
  return 0;
}

void set_defaults(Bench *bench) {
  Config &c = bench->c;
  c.sizes = {"1",   "2",   "4",    "8",    "16",   "32",   "64",   "128",
             "256", "512", "1024", "2048", "4096", "8192", "16384"};
  c.spd_sizes = {"64", "128", "256", "512", "1024", "2048", "4096", "8192"};
  c.hard_sizes = {"1000", "2000", "4000"};
  c.complex_sizes = {"1000", "2000", "4000"};
  c.kinds = {"uniform"};
  c.device = HONE_DEVICE_CPU;
  c.seconds = 300.0;
  for (const Part &part : parts)
    c.known_sections.push_back(part.section);
  c.sections = c.known_sections;
  bench->solves = {"Whole solves: the peers' times divided by those of Hone "
                   "once; NO marks times whose answers are not accepted",
                   "| section | matrix | n | Hone ms | dgesv, zgesv or dposv | "
                   "dsgesv, zcgesv or dsposv | Hone / floor |",
                   {}};
}

} // namespace

int main(int argc, char **argv) {
  Bench bench;
  set_defaults(&bench);
  for (int i = 1; i < argc; i += 2) {
    if (std::string(argv[i]) == "--help") {
      printf("%s%s", usage, common_usage);
      return 0;
    }
    if (i + 1 >= argc || !parse_common(&bench.c, argv[i], argv[i + 1])) {
      fprintf(stderr, "bench_cpu: bad option %s\n%s%s", argv[i], usage,
              common_usage);
      return 2;
    }
  }
  if (!bench.c.json_name.empty() && unused_by_blas_here() == "AVX2") {
    fprintf(stderr,
            "bench_cpu: OpenBLAS runs its kernels for %s, without AVX2, on a "
            "processor that has it: nothing is recorded. Set "
            "OPENBLAS_CORETYPE, as to Haswell or Cooperlake.\n",
            hone_blas_corename());
    return 2;
  }
  if (bench.c.threads > 0)
    hone_blas_set_threads(bench.c.threads);
  bench.c.host_threads = hone_blas_threads();
  bench.record = Record(bench.c.json_name);
  return run(&bench, argc, argv);
}
