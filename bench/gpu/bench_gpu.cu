/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times Hone beside cuSOLVER on one GPU, in one run, and checks every answer.
 * `bench_gpu --help` lists the options; gpu/peers.h describes the peers,
 * harness/systems.h the matrices.
 *
 * All methods of a table take turns. Each round begins with another method and
 * has another right-hand side; the first round is not counted. Ratios are
 * formed within a round, then their median is taken. Solves are timed from host
 * memory to host memory, with A and b in pageable memory unless a line says
 * "pinned". Handles, device memory and workspace of the peers, and of Hone in
 * lines with "kept", are made untimed. "once" is hone_solve, which is timed
 * with its allocations, but without creating the CUDA context of the process.
 * All methods solve the same systems, and A is on the device already in two
 * tables only: that of the factorization alone, and that of A, b and x in
 * device memory.
 *
 * Every x of every round is checked: its componentwise backward error, max |b -
 * A x| / (|A| |x| + |b|), is computed in long double, whose rounding errors,
 * 2^-64 a term, do not show. It is accepted up to 4.04 eps, eps = 2^-53: Hone's
 * own limit is 4 eps, computed in another arithmetic, and the last digits may
 * differ. Peers whose answers are not accepted are measured all the same.
 *
 * The floor is the larger of two times, plus one pass over A on the host. The
 * two are the bytes of A divided by the rate of pinned copies, and the
 * operations of LU, counted three times because a product in FP16x3 is three
 * products in FP16, divided by the rate of the FP16 GEMM. For SPD matrices each
 * is halved, since one triangle suffices.
 */
#include "bench/gpu/gpu_bench.h"

extern "C" {
#include "api/hone.h"
}

#include <algorithm>
#include <cstdio>
#include <thread>

namespace {

const char usage[] =
    "usage: bench_gpu [options]\n"
    "Sections, in this order: solve, factor, spd, small, hard, history,\n"
    "phases, gallery, columns, callers, device, complex, batch, several,\n"
    "several_factor, several_complex, several_columns, several_spd,\n"
    "several_batch, several_mg, threads, forms. Each has a share of\n"
    "--seconds, and time that one does not use goes to the others. All take\n"
    "11 minutes, and 5 more where there are several GPUs. Another one,\n"
    "outside, runs only where\n"
    "--section names it.\n"
    "  --small-n A,...  orders of the small table (1 .. 2048)\n"
    "  --forms-n A,...  orders of the forms table (8192,16384)\n"
    "  --several-n A,.. orders of the factorization on several GPUs; those\n"
    "                   of complex matrices are half (16384,32768,65536)\n"
    "  --several-solve-n A,..\n"
    "                   orders of whole solves there, with one right-hand\n"
    "                   side and with the last of --columns (16384,32768)\n"
    "  --outside-n A,.. orders of the table of factors larger than the device\n"
    "                   memory that may be used (32768)\n"
    "  --slow-rounds R  rounds of IRS in TF32 and FP16 for n >= 16384 (2)\n"
    "  --plan           only print what would run, and for how long on an\n"
    "                   H200 with 16 cores; must be the last option\n"
    "  --probe          say whether a GPU can be used; exit status 0: yes\n";

/* Asks nvidia-smi about the device, for example about its present clocks. */
std::string smi(const char *field) {
  return first_line(text("nvidia-smi -i 0 --query-gpu=%s "
                         "--format=csv,noheader 2>/dev/null",
                         field)
                        .c_str());
}

void describe(Bench *bench, const Device &device, int argc, char **argv) {
  state_program(bench, argc, argv);
  state(bench, "device", device.name);
  state(bench, "device_memory", text("%.1f GiB", device.memory_gib));
  state(bench, "multiprocessors", text("%d", device.sms));
  state(bench, "sm_clock", smi("clocks.sm"));
  state(bench, "sm_clock_highest", text("%.0f MHz", device.clock_mhz));
  state(bench, "power_limit", smi("power.limit"));
  state(bench, "driver", smi("driver_version") + ", CUDA " + device.driver);
  state(bench, "cuda_runtime", device.runtime);
  state(bench, "cublas", device.cublas);
  state(bench, "cusolver", device.cusolver);
  state(bench, "nvcc", device.nvcc);
  state_host(bench);
}

void ceilings(Bench *bench) {
  std::string why = pinned_bandwidth(&bench->pinned_bytes_s);
  state(bench, "pinned_copies",
        why.empty() ? text("%.2f GB/s", 1e-9 * bench->pinned_bytes_s)
                    : "failed: " + why);
  why = gemm_rate(&bench->gemm_flops_s);
  state(bench, "gemm_fp16_k1536",
        why.empty() ? text("%.1f TFLOP/s", 1e-12 * bench->gemm_flops_s)
                    : "failed: " + why);
  bench->record.set("pinned_bytes_s", json_number(bench->pinned_bytes_s));
  bench->record.set("gemm_flops_s", json_number(bench->gemm_flops_s));
}

/* The shares are seconds on an H200 with 16 cores (complex, and several on two:
   estimated). The most important sections come first. */
const std::vector<Part> parts = {
    {"solve", 175.0},
    {"factor", 42.0},
    {"spd", 42.0},
    {"small", 15.0},
    {"hard", 30.0},
    {"history", 4.0},
    {"phases", 18.0},
    {"gallery", 12.0},
    {"columns", 36.0},
    {"callers", 20.0},
    {"device", 40.0},
    {"complex", 120.0},
    {"batch", 60.0},
    {"several", 20.0},
    {"several_factor", 65.0},
    {"several_complex", 45.0},
    {"several_columns", 35.0},
    {"several_spd", 60.0},
    {"several_batch", 20.0},
    {"several_mg", 50.0}, /* last of them: what it may break is not ours */
    {"outside", 120.0},
    {"threads", 22.0},
    {"forms", 32.0}};

void run_several(Bench *bench, const std::string &section) {
  if (section == "several_factor")
    several_factor_section(bench);
  else if (section == "several_complex")
    several_complex_section(bench);
  else if (section == "several_columns")
    several_columns_section(bench);
  else if (section == "several_spd")
    several_spd_section(bench);
  else if (section == "several_batch")
    several_batch_section(bench);
  else if (section == "several_mg")
    several_mg_section(bench);
  else
    several_section(bench);
}

void run_section(Bench *bench, const std::string &section) {
  if (section == "small")
    small_section(bench);
  else if (section == "factor")
    factor_section(bench);
  else if (section == "forms")
    forms_section(bench);
  else if (section == "hard")
    hard_section(bench);
  else if (section == "columns")
    columns_section(bench);
  else if (section == "callers")
    callers_section(bench);
  else if (section == "device")
    device_section(bench);
  else if (section == "complex")
    complex_section(bench);
  else if (section == "batch")
    batch_section(bench);
  else if (section.rfind("several", 0) == 0)
    run_several(bench, section);
  else if (section == "outside")
    outside_section(bench);
  else if (section == "threads")
    threads_section(bench);
  else if (section == "gallery")
    gallery_section(bench);
  else if (section == "history")
    history_section(bench);
  else if (section == "phases")
    gpu_phases_section(bench);
  else
    solve_section(bench, section == "spd");
}

int run(Bench *bench, int argc, char **argv) {
  const double start = now_s();
  Device device;
  std::string why = device_find(&device);
  if (!why.empty()) {
    fprintf(stderr, "bench_gpu: no usable GPU: %s\n", why.c_str());
    return 1;
  }
  describe(bench, device, argc, argv);
  ceilings(bench);
  run_by_shares(bench, parts, run_section);
  print_summary(bench->smalls);
  print_summary(bench->factors);
  print_summary(bench->solves);
  print_summary(bench->complexes);
  costs(bench);
  printf("\n");
  state(bench, "sm_clock_at_end", smi("clocks.sm"));
  state(bench, "seconds", text("%.0f", now_s() - start));
  if (!bench->record.save()) {
    perror(bench->c.json_name.c_str());
    return 2;
  }
  return 0;
}

void set_defaults(Bench *bench) {
  Config &c = bench->c;
  c.sizes = {"1024", "2048", "4096", "8192", "16384", "32768"};
  c.spd_sizes = c.sizes;
  c.small_sizes = {"1",   "2",   "4",   "8",    "16",   "32",  "64",
                   "128", "256", "512", "1024", "1536", "2048"};
  c.form_sizes = {"8192", "16384"};
  c.hard_sizes = {"8192", "16384"};
  c.column_sizes = {"4096", "8192"};
  c.thread_sizes = {"4096"};
  c.phase_sizes = {"2048", "8192", "16384", "32768"};
  for (const Part &part : parts)
    c.known_sections.push_back(part.section);
  for (const std::string &section : c.known_sections)
    if (section != "outside")
      c.sections.push_back(section);
  c.device = HONE_DEVICE_CUDA;
  bench->solves = {"Whole solve, Hone kept, beside the fastest peer",
                   "| matrix | n | Hone ms | accepted | best pageable peer | "
                   "times as fast | wanted | best pinned peer | times as "
                   "fast | wanted | floor ms | Hone / floor |",
                   {}};
  bench->complexes = {"Complex systems, Hone kept, beside the fastest peer",
                      "| matrix | n | Hone ms | accepted | best peer | times "
                      "as fast | wanted | floor ms | Hone / floor |",
                      {}};
  bench->smalls = {
      "Small n: time of Hone AUTO divided by that of the faster of "
      "Hone's CPU path and cuSOLVER; wanted: at most 1.10",
      "| n | kept | once | Hone CUDA kept | kept accepted |",
      {}};
  bench->factors = {"Factorization alone, in single precision, on the device",
                    "| matrix | n | Hone ms | TFLOP/s | getrf FP32 ms | "
                    "TFLOP/s | times as fast | wanted | residual / getrf's |",
                    {}};
}

int plan(const Config &c) {
  double sum = 0.0;
  printf("section          estimated s   so far%s\n",
         c.seconds > 0.0 ? text("   of %g", c.seconds).c_str() : "");
  for (const Part &part : parts) {
    if (std::find(c.sections.begin(), c.sections.end(), part.section) ==
        c.sections.end())
      continue;
    sum += part.share;
    printf("%-17s%11.0f%9.0f%s\n", part.section, part.share, sum,
           c.seconds > 0.0 && sum > c.seconds ? "   not all of it" : "");
  }
  return 0;
}

int probe() {
  Device device;
  const std::string why = device_find(&device);
  printf("bench_gpu: %s\n", why.empty() ? device.name.c_str() : why.c_str());
  return why.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Bench bench;
  Config &c = bench.c;
  set_defaults(&bench);
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--probe")
      return probe();
    if (name == "--plan")
      return plan(c);
    if (name == "--help") {
      printf("%s%s", usage, common_usage);
      return 0;
    }
    if (i + 1 >= argc ||
        !(name == "--slow-rounds" ? parse_int(argv[i + 1], &c.slow_rounds)
                                  : parse_common(&c, name, argv[i + 1]))) {
      fprintf(stderr, "bench_gpu: bad option %s\n%s%s", argv[i], usage,
              common_usage);
      return 2;
    }
  }
  c.host_threads = c.threads;
  if (c.threads == 0)
    c.host_threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  bench.record = Record(c.json_name);
  return run(&bench, argc, argv);
}
