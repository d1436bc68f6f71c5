/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that bench_cpu and bench_gpu share, and what both record about
   the machine; see bench.h. */
#include "bench/harness/bench.h"

extern "C" {
#include "api/hone.h"
#include "base/lapack.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <initializer_list>
#include <strings.h>

const char common_usage[] =
    "  -n A,B,...       orders of the solve table\n"
    "  --spd-n A,...    orders of the spd table\n"
    "  --complex-n A,.. orders of bench_cpu's complex table\n"
    "  --hard-n A,...   orders of the hard table\n"
    "  --columns-n A,.. orders of the columns table\n"
    "  --columns A,...  numbers of right-hand sides of the columns table\n"
    "  --threads-n A,.. orders of the threads table\n"
    "  --phases-n A,..  orders of the phases table\n"
    "  --section A,...  some of the tables (all)\n"
    "  --kind A,...     matrices of the solve table: uniform, normal (both)\n"
    "  --rounds R       rounds that are counted (depends on n)\n"
    "  --large-rounds R rounds for n >= 16384 (5; beyond 16384: 3)\n"
    "  --skip A,...     leave out methods whose name contains A\n"
    "  --large-skip A,. leave them out beyond n = 16384 "
    "(TF32,16F,once,AUTO);\n"
    "                   - leaves out none\n"
    "  --threads T      threads of all methods and of the checks (all)\n"
    "  --seed S         seed of the matrices (1)\n"
    "  --seconds S      skip what would take longer than S in all\n"
    "  --commit TEXT    the commit to record ($HONE_COMMIT, else from git)\n"
    "  --json FILE      record all times and the machine as JSON\n";

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

bool are_orders(const Words &words, int64_t most) {
  for (const std::string &word : words) {
    char *end;
    long long n = strtoll(word.c_str(), &end, 10);
    if (end == word.c_str() || *end != 0 || n < 1 || n > most)
      return false;
  }
  return true;
}

bool parse_int(const std::string &value, int *number) {
  char *end;
  long parsed = strtol(value.c_str(), &end, 10);
  *number = static_cast<int>(parsed);
  return end != value.c_str() && *end == 0 && parsed >= 1 && parsed <= 1000;
}

namespace {

bool are_among(const Words &words, const Words &known) {
  for (const std::string &word : words)
    if (std::find(known.begin(), known.end(), word) == known.end())
      return false;
  return true;
}

/* Returns the list that an option sets, or NULL for other options. */
Words *orders_of(Config *c, const std::string &name) {
  const std::pair<const char *, Words *> lists[] = {
      {"-n", &c->sizes},
      {"--small-n", &c->small_sizes},
      {"--spd-n", &c->spd_sizes},
      {"--complex-n", &c->complex_sizes},
      {"--hard-n", &c->hard_sizes},
      {"--forms-n", &c->form_sizes},
      {"--columns-n", &c->column_sizes},
      {"--columns", &c->columns},
      {"--threads-n", &c->thread_sizes},
      {"--phases-n", &c->phase_sizes},
      {"--several-n", &c->several_sizes},
      {"--several-solve-n", &c->several_solve_sizes},
      {"--outside-n", &c->outside_sizes}};
  for (const auto &list : lists)
    if (name == list.first)
      return list.second;
  return nullptr;
}

} // namespace

bool parse_common(Config *c, const std::string &name,
                  const std::string &value) {
  char *end = nullptr;
  if (Words *list = orders_of(c, name))
    return are_orders(*list = split(value), 131072);
  if (name == "--section")
    return are_among(c->sections = split(value), c->known_sections);
  if (name == "--kind")
    return are_among(c->kinds = split(value), Config().kinds);
  if (name == "--skip")
    return !(c->skip = split(value)).empty();
  if (name == "--large-skip")
    return !(c->large_skip = value == "-" ? Words() : split(value)).empty() ||
           value == "-";
  if (name == "--rounds")
    return parse_int(value, &c->rounds);
  if (name == "--large-rounds")
    return parse_int(value, &c->large_rounds);
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
  return end != nullptr && end != value.c_str() && *end == 0 &&
         c->seconds >= 0.0;
}

/* ---- the machine ---- */

void state(Bench *bench, const char *key, const std::string &value) {
  printf("%-18s %s\n", key, value.c_str());
  bench->record.set(key, json_string(value));
}

void state_program(Bench *bench, int argc, char **argv) {
  char date[32] = "";
  time_t now = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  state(bench, "program", command_of(argc, argv));
  state(bench, "date", date);
  state(bench, "commit", commit_of(bench->c.commit));
  state(bench, "hone", hone_version());
}

std::string cpu_clocks() {
  const std::string clocks = first_line(
      "sed -n 's/^cpu MHz[^:]*: //p' /proc/cpuinfo | sort -n | "
      "awk 'NR == 1 {l = $1} {h = $1} END {if (NR) print l \" .. \" h}'");
  return clocks.empty() ? "unknown" : clocks + " MHz";
}

std::string unused_by_blas(const std::string &core, bool avx2, bool avx512) {
  const auto is_one_of = [&core](std::initializer_list<const char *> names) {
    return std::any_of(names.begin(), names.end(), [&core](const char *name) {
      return strcasecmp(core.c_str(), name) == 0;
    });
  };
  if (is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids", "unknown"}))
    return "";
  if (is_one_of({"Haswell", "Zen", "Excavator"}))
    return avx512 ? "AVX-512" : "";
  return avx2 ? "AVX2" : "";
}

std::string unused_by_blas_here() {
#if defined(__x86_64__)
  return unused_by_blas(hone_blas_corename(), __builtin_cpu_supports("avx2"),
                        __builtin_cpu_supports("avx512f"));
#else
  return "";
#endif
}

void state_host(Bench *bench) {
#ifdef __clang__
  const std::string compiler = __VERSION__;
#else
  const std::string compiler = text("gcc %s", __VERSION__);
#endif
  state(bench, "host_compiler", compiler);
  state(bench, "host",
        first_line("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo"));
  state(bench, "cpu_clocks", cpu_clocks());
  state(bench, "host_memory",
        first_line("awk '/^MemTotal/ {printf \"%.1f GiB\", $2 / 1048576}' "
                   "/proc/meminfo"));
  state(bench, "load_before", first_line("cut -d' ' -f1-3 /proc/loadavg"));
  state(bench, "host_threads", text("%d", bench->c.host_threads));
  state(bench, "openblas",
        std::string(hone_blas_config()) + ", running on " +
            hone_blas_corename());
  const std::string unused = unused_by_blas_here();
  if (!unused.empty())
    state(bench, "openblas_leaves_unused",
          unused + ": the peers may be slower than they need be; "
                   "OPENBLAS_CORETYPE chooses other kernels");
  state(bench, "openblas_threads", text("%d", hone_blas_threads()));
  state(bench, "seed", std::to_string(bench->c.seed));
  bench->record.set(
      "check", json_string("max |b - A x| / (|A| |x| + |b|) of every x (of "
                           "many columns, of 10), all rows, in long double; "
                           "accepted: <= 4.04 * 2^-53"));
}
