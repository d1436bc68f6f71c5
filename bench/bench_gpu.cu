/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times Hone beside cuSOLVER on one GPU, in one run, and checks every answer.
 * `bench_gpu --help` for options; gpu_peers.h says what the peers are,
 * gpu_systems.h what the matrices are.
 *
 * How: all methods of a table take turns in every round, each round beginning
 * with another one, and with another right-hand side; ratios are formed within
 * a round, then the median is taken. One round before them is not counted.
 * Everything is timed from host memory to host memory, A and b in ordinary
 * pageable memory unless a line says "pinned". Peers find handles, device
 * memory and workspace made; so does Hone where it says "kept". "once" is
 * hone_solve, which makes and frees all it needs within the clock (but not the
 * process's CUDA context, which is there). Matrices are the same for all;
 * nobody gets one that is already on the device, except in the table of the
 * factorization alone.
 *
 * Check: the componentwise backward error max |b - A x| / (|A| |x| + |b|) over
 * all rows of every x of every round, in long double, whose rounding errors
 * (2^-64 a term) do not show. Accepted: at most 4.04 eps, eps = 2^-53: Hone's
 * own rule is 4 eps, evaluated in another arithmetic, and a last digit of it
 * may differ. Peers that are not accepted are measured all the same.
 *
 * Floor: the larger of the bytes of A over the rate of pinned copies and the
 * operations of LU, three times for three products of pieces, over the rate of
 * the FP16 GEMM; plus one pass over A on the host. SPD: half of each, since
 * one triangle says all.
 */
#include "bench/gpu_bench.h"

extern "C" {
#include "api/hone.h"
char *openblas_get_config(void);
int openblas_get_num_threads(void);
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

namespace {

const char usage[] =
    "usage: bench_gpu [options]\n"
    "  -n A,B,...       orders of the solve, spd and factor tables\n"
    "                   (1024,2048,4096,8192,16384,32768)\n"
    "  --small-n A,...  orders of the small table (1 .. 2048)\n"
    "  --section A,...  small, factor, solve, spd, forms, hard (all)\n"
    "  --kind A,...     matrices: uniform, normal (both)\n"
    "  --rounds R       rounds that count (7; small: 41 to 9)\n"
    "  --large-rounds R rounds for n >= 16384 (5)\n"
    "  --slow-rounds R  rounds of IRS in TF32 and FP16 there (2)\n"
    "  --skip A,...     leave out methods whose name contains this\n"
    "  --threads T      threads of Hone and of the host's passes (all)\n"
    "  --seed S         seed of the matrices (1)\n"
    "  --seconds S      what would not end within is skipped (no limit)\n"
    "  --commit TEXT    for the record (git rev-parse HEAD)\n"
    "  --json FILE      every single time and the machine, as JSON\n";

/* ---- options ---- */

Words split(const std::string &list) {
  Words words;
  for (size_t from = 0; from <= list.size();) {
    size_t comma = std::min(list.find(',', from), list.size());
    words.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

bool are_orders(const Words &words) {
  for (const std::string &word : words) {
    char *end;
    long long n = strtoll(word.c_str(), &end, 10);
    if (end == word.c_str() || *end != 0 || n < 1 || n > 65536)
      return false;
  }
  return true;
}

bool are_among(const Words &words, const Words &known) {
  for (const std::string &word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      return false;
  return true;
}

bool parse_int(const std::string &value, int *number) {
  char *end;
  long parsed = strtol(value.c_str(), &end, 10);
  *number = static_cast<int>(parsed);
  return end != value.c_str() && *end == 0 && parsed >= 1 && parsed <= 1000;
}

bool parse_option(Config *c, const std::string &name,
                  const std::string &value) {
  char *end = nullptr;
  if (name == "-n")
    return are_orders(c->sizes = split(value));
  if (name == "--small-n")
    return are_orders(c->small_sizes = split(value));
  if (name == "--section")
    return are_among(c->sections = split(value), Config().sections);
  if (name == "--kind")
    return are_among(c->kinds = split(value), Config().kinds);
  if (name == "--skip")
    return !(c->skip = split(value)).empty();
  if (name == "--rounds")
    return parse_int(value, &c->rounds);
  if (name == "--large-rounds")
    return parse_int(value, &c->large_rounds);
  if (name == "--slow-rounds")
    return parse_int(value, &c->slow_rounds);
  if (name == "--threads")
    return parse_int(value, &c->threads);
  if (name == "--commit")
    return !(c->commit = value).empty();
  if (name == "--json")
    return !(c->json_name = value).empty();
  if (name == "--seed")
    c->seed = strtoull(value.c_str(), &end, 10);
  else if (name == "--seconds")
    c->seconds = strtod(value.c_str(), &end);
  return end != nullptr && end != value.c_str() && *end == 0;
}

/* ---- the machine, the ceilings ---- */

void state(Bench *bench, const char *key, const std::string &value) {
  printf("%-18s %s\n", key, value.c_str());
  bench->record.set(key, json_string(value));
}

/* What the driver's own tool says of the device: clocks as they are now. */
std::string smi(const char *field) {
  return first_line(text("nvidia-smi -i 0 --query-gpu=%s "
                         "--format=csv,noheader 2>/dev/null",
                         field)
                        .c_str());
}

void describe(Bench *bench, const Device &device, int argc, char **argv) {
  const Config &c = bench->c;
  char date[32] = "";
  time_t now = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  std::string commit = c.commit;
  if (commit.empty())
    commit = first_line("exec 2>/dev/null; c=$(git rev-parse --verify -q HEAD)"
                        " && printf %s \"$c\" && { git diff --quiet HEAD ||"
                        " printf ' (modified)'; }");
  std::string command = "bench_gpu";
  for (int i = 1; i < argc; i++)
    command += std::string(" ") + argv[i];
  state(bench, "program", command);
  state(bench, "date", date);
  state(bench, "commit", commit);
  state(bench, "hone", hone_version());
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
  state(bench, "host_compiler", text("gcc %s", __VERSION__));
  state(bench, "host",
        first_line("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo"));
  state(bench, "host_threads", text("%d", c.host_threads));
  state(bench, "openblas", openblas_get_config());
  state(bench, "openblas_threads", text("%d", openblas_get_num_threads()));
  state(bench, "seed", std::to_string(c.seed));
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
  bench->record.set(
      "check", json_string("max |b - A x| / (|A| |x| + |b|) of every x, all "
                           "rows, in long double; accepted: <= 4.04 * 2^-53"));
  bench->record.set("pinned_bytes_s", json_number(bench->pinned_bytes_s));
  bench->record.set("gemm_flops_s", json_number(bench->gemm_flops_s));
}

int run(Bench *bench, int argc, char **argv) {
  Device device;
  std::string why = device_find(&device);
  if (!why.empty()) {
    fprintf(stderr, "bench_gpu: no usable GPU: %s\n", why.c_str());
    return 1;
  }
  describe(bench, device, argc, argv);
  ceilings(bench);
  for (const std::string &section : bench->c.sections)
    if (section == "small")
      small_section(bench);
    else if (section == "factor")
      factor_section(bench);
    else if (section == "forms")
      forms_section(bench);
    else if (section == "hard")
      hard_section(bench);
    else
      solve_section(bench, section == "spd");
  print_summary(bench->smalls);
  print_summary(bench->factors);
  print_summary(bench->solves);
  printf("\n");
  state(bench, "sm_clock_at_end", smi("clocks.sm"));
  if (!bench->record.save()) {
    perror(bench->c.json_name.c_str());
    return 2;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Bench bench;
  Config &c = bench.c;
  for (int i = 1; i < argc; i += 2) {
    if (std::string(argv[i]) == "--help") {
      fputs(usage, stdout);
      return 0;
    }
    if (i + 1 >= argc || !parse_option(&c, argv[i], argv[i + 1])) {
      fprintf(stderr, "bench_gpu: bad option %s\n%s", argv[i], usage);
      return 2;
    }
  }
  c.host_threads = c.threads;
  if (c.threads == 0)
    c.host_threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  bench.record = Record(c.json_name);
  bench.budget = Budget(c.seconds);
  return run(&bench, argc, argv);
}
