/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cpu's tables of whole solves. Each has the floor: the time that the
   unavoidable operations take at rates measured on this machine. See bench.h.
 */
#include "bench/harness/bench.h"

#include "api/hone.h"
#include "base/lapack.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

/* ---- rates ---- */

namespace {

/* Returns the operations per second of C -= A B in single precision, where C is
   2048 x 2048 and k = 512. */
double sgemm_rate() {
  enum { N = 2048, K = 512, TIMES = 5 };
  std::vector<float> a(N * K, 0.5F), b(K * N, 0.25F), c(size_t{N} * N, 0.0F);
  const int n = N, k = K;
  const float one = 1.0F, minus_one = -1.0F;
  double seconds[TIMES];
  for (int round = -1; round < TIMES; round++) {
    const double start = now_s();
    sgemm_("N", "N", &n, &n, &k, &minus_one, a.data(), &n, b.data(), &k, &one,
           c.data(), &n);
    if (round >= 0)
      seconds[round] = now_s() - start;
  }
  return 2.0 * N * N * K / median(seconds, TIMES);
}

/* Returns the bytes read and written per second when 64 MiB of doubles, more
   than most caches hold, are rounded to floats. */
double rounding_rate(int threads) {
  enum { TIMES = 5 };
  const int64_t count = int64_t{8} << 20;
  std::vector<double> from(static_cast<size_t>(count), 0.5);
  std::vector<float> to(static_cast<size_t>(count), 0.0F);
  double seconds[TIMES];
  for (int k = -1; k < TIMES; k++) {
    const double start = now_s();
    in_parallel(threads, [&](int t) {
      const int64_t end = count * (t + 1) / threads;
      for (int64_t i = count * t / threads; i < end; i++)
        to[static_cast<size_t>(i)] =
            static_cast<float>(from[static_cast<size_t>(i)]);
    });
    if (k >= 0)
      seconds[k] = now_s() - start;
  }
  return 12.0 * static_cast<double>(count) / median(seconds, TIMES);
}

} // namespace

void cpu_rates(Bench *bench) {
  bench->sgemm_flops_s = sgemm_rate();
  bench->copy_bytes_s = rounding_rate(bench->c.host_threads);
  state(bench, "sgemm", text("%.1f GFLOP/s", 1e-9 * bench->sgemm_flops_s));
  state(bench, "rounding",
        text("%.2f GB/s read and written", 1e-9 * bench->copy_bytes_s));
  bench->record.set("sgemm_flops_s", json_number(bench->sgemm_flops_s));
  bench->record.set("copy_bytes_s", json_number(bench->copy_bytes_s));
}

/* ---- one size ---- */

namespace {

struct Floor {
  double read_s, copy_ms, work_ms, pass_ms, all_ms;
};

/* The floor consists of rounding A once, the operations of LU or Cholesky, and
   one pass over A to verify x, at the rate at which this A is read. A complex
   operation is four real ones. */
Floor floor_of(const Bench &bench, const Systems &s, bool spd) {
  const double n = static_cast<double>(s.n), parts = s.parts;
  const double flops = parts * parts * (spd ? 1.0 : 2.0) / 3.0 * n * n * n;
  Floor f;
  f.read_s =
      read_bandwidth(s.matrix(0), s.parts * s.n * s.n, bench.c.host_threads);
  f.copy_ms =
      1e3 * (spd ? 0.5 : 1.0) * parts * 12.0 * n * n / bench.copy_bytes_s;
  f.work_ms = 1e3 * flops / bench.sgemm_flops_s;
  f.pass_ms = 1e3 * parts * 8.0 * n * n / f.read_s;
  f.all_ms = f.copy_ms + f.work_ms + f.pass_ms;
  return f;
}

/* Returns the GiB of memory that the kernel says are available. */
double memory_left() {
  return atof(first_line("awk '/^MemAvailable/ {print $2 / 1048576}' "
                         "/proc/meminfo")
                  .c_str());
}

int rounds_at(const Config &c, int64_t n) {
  const int rounds = n <= 128    ? 41
                     : n <= 512  ? 21
                     : n <= 1024 ? 15
                     : n <= 2048 ? 9
                                 : 5;
  return c.rounds > 0 ? c.rounds : rounds;
}

void add_methods(const Config &c, const Systems &s, Kind kind, int batch,
                 std::vector<Method> *m) {
  const bool spd = kind == SPD;
  Choices in_double;
  in_double.spd = spd;
  in_double.factor_precision = HONE_FACTOR_DOUBLE;
  add_hone(c, m, "Hone once", s, HONE_DEVICE_CPU, false, spd);
  add_hone(c, m, "Hone kept", s, HONE_DEVICE_CPU, true, spd);
  if (!spd && s.parts == 1)
    add_form(c, m, "Hone double", s, HONE_DEVICE_CPU, false, in_double);
  for (Method &method : *m)
    method.batch = batch;
  add_lapack(c, m, s, spd, false, batch);
  add_lapack(c, m, s, spd, true, batch);
}

void print_floor(const Bench &bench, const Floor &f, double hone_ms) {
  printf("\nFloor %.4g ms: %.4g (rounding) + %.4g (LU at %.0f GFLOP/s) + %.4g "
         "(one pass over A at %.0f GB/s). Hone / floor: %s\n",
         f.all_ms, f.copy_ms, f.work_ms, 1e-9 * bench.sgemm_flops_s, f.pass_ms,
         1e-9 * f.read_s, figure(hone_ms / f.all_ms, "%.2f").c_str());
}

/* Returns NO for times whose answers are not accepted. */
const char *judged(const Method &m) {
  return m.ms.empty() || (m.checked > 0 && m.accepted) ? "" : "NO";
}

void summarize(Bench *bench, const Systems &s, const char *section, Kind kind,
               const Floor &f, const std::vector<Method> &m) {
  const double hone_ms = spread(m[0].ms).median;
  std::string row = text("| %s | %s | %lld | %s %s |", section,
                         kind_names[kind], static_cast<long long>(s.n),
                         figure(hone_ms, "%.4g").c_str(), judged(m[0]));
  for (const char *name :
       {"dgesv", "dsgesv", "zgesv", "zcgesv", "dposv", "dsposv"})
    for (const Method &peer : m)
      if (peer.name == name)
        row += " " + text_of(ratio(peer, m[0]), "%.2f") + " " + judged(peer) +
               " |";
  bench->solves.rows.push_back(row + " " + figure(hone_ms / f.all_ms, "%.2f") +
                               " |");
}

bool is_complex(const char *section) {
  return std::string(section) == "complex";
}

void solve_size(Bench *bench, const char *section, Kind kind, int64_t n) {
  const int batch = batch_of(n), parts = is_complex(section) ? 2 : 1;
  const int count = n > 1000 ? 2 : std::max(batch, 4);
  const double order = static_cast<double>(n);
  /* the pool of matrices, the peers' copies, dsgesv's floats, and this
     library's floats and doubles */
  const double gib = 0x1p-30 * parts * order * order *
                     (8.0 * count + 16.0 * batch + 4.0 + 3.0 * 12.0);
  Systems s;
  if (gib > 0.8 * memory_left() || !systems_allocate(&s, n, count, 1, parts)) {
    printf("\nn = %lld: skipped, needs %.1f GiB of memory\n",
           static_cast<long long>(n), gib);
    Method none;
    none.name = "all";
    none.skipped = text("needs %.1f GiB of memory", gib);
    bench->record.add(text("\"section\": \"%s\", \"n\": %lld", section,
                           static_cast<long long>(n)),
                      {none}, 0);
    return;
  }
  systems_fill(&s, kind, bench->c.seed, bench->c.host_threads);
  const Floor f = floor_of(*bench, s, kind == SPD);
  std::vector<Method> m;
  add_methods(bench->c, s, kind, batch, &m);
  measure(bench, s, rounds_at(bench->c, n), &m);
  print_table(text("%s, %s, n = %lld", section, kind_names[kind],
                   static_cast<long long>(n)),
              m, 0, "backward error");
  print_floor(*bench, f, spread(m[0].ms).median);
  summarize(bench, s, section, kind, f, m);
  add_row(bench, section, kind_names[kind], s, 0,
          "\"host_read_bytes_s\": " + json_number(f.read_s) +
              ", \"floor_ms\": " + json_number(f.all_ms) +
              ", \"floor\": {\"rounding_ms\": " + json_number(f.copy_ms) +
              ", \"arithmetic_ms\": " + json_number(f.work_ms) +
              ", \"pass_ms\": " + json_number(f.pass_ms) + "}",
          m, 0);
  m.clear();
  systems_free(&s);
}

} // namespace

void cpu_solve_section(Bench *bench, const char *section) {
  const std::string name = section;
  const Words &sizes = name == "spd"         ? bench->c.spd_sizes
                       : name == "hard"      ? bench->c.hard_sizes
                       : is_complex(section) ? bench->c.complex_sizes
                                             : bench->c.sizes;
  std::vector<Kind> kinds;
  if (name == "spd")
    kinds = {SPD};
  else if (name == "hard")
    kinds = {GEOMETRIC, ONE_SMALL, ARITHMETIC};
  else
    for (const std::string &kind : bench->c.kinds)
      kinds.push_back(kind == "normal" ? NORMAL : UNIFORM);
  printf("\n## %s, whole solves\n",
         name == "spd"         ? "Symmetric positive definite"
         : name == "hard"      ? "Condition 1e12"
         : is_complex(section) ? "Complex systems"
                               : "One right-hand side");
  for (const std::string &size : sizes)
    for (Kind kind : kinds)
      if (!out_of_time(bench, section, atoll(size.c_str())))
        solve_size(bench, section, kind, atoll(size.c_str()));
}
