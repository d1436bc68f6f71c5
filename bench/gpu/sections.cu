/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of bench_gpu; see gpu_bench.h. */
#include "bench/gpu/gpu_bench.h"

#include "bench/harness/systems.h"

extern "C" {
#include "api/hone.h"
#include "api/hone_tuning.h"
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

/* ---- whole solves ---- */

std::string against(const Method *m, const Method &ours, double wanted) {
  if (m == nullptr)
    return "- | - | - |";
  std::string goal = wanted > 0.0 ? text("%.1f", wanted) : "";
  return m->name + " | " + text_of(ratio(*m, ours), "%.2f") + " | " + goal +
         " |";
}

/* A product of complex numbers is four of real ones. */
Floor floor_of(const Bench &bench, const Systems &s, double share) {
  const double order = static_cast<double>(s.n);
  const double parts = static_cast<double>(s.parts);
  const double bytes = share * parts * 8.0 * order * order;
  Floor f = {};
  f.read_s =
      read_bandwidth(s.matrix(0), s.n * s.n * s.parts, bench.c.host_threads);
  f.copy_ms = 1e3 * bytes / bench.pinned_bytes_s;
  f.work_ms = 1e3 * share * parts * parts * 2.0 * order * order * order /
              bench.gemm_flops_s; /* 2/3 n^3 operations, three times */
  f.pass_ms = 1e3 * bytes / f.read_s;
  f.floor_ms = std::max(f.copy_ms, f.work_ms) + f.pass_ms;
  return f;
}

void print_floor(const Floor &f, double hone_ms) {
  printf("\nFloor %.4g ms: the larger of %.4g (copy) and %.4g (arithmetic), "
         "plus %.4g (reading A at %.0f GB/s). Hone / floor: %s\n",
         f.floor_ms, f.copy_ms, f.work_ms, f.pass_ms, 1e-9 * f.read_s,
         figure(hone_ms / f.floor_ms, "%.2f").c_str());
}

std::string json_of(const Floor &f) {
  return "\"host_read_bytes_s\": " + json_number(f.read_s) +
         ", \"floor_ms\": " + json_number(f.floor_ms) +
         ", \"floor\": {\"copy_ms\": " + json_number(f.copy_ms) +
         ", \"arithmetic_ms\": " + json_number(f.work_ms) +
         ", \"pass_ms\": " + json_number(f.pass_ms) + "}";
}

namespace {

void report_solve(Bench *bench, Kind kind, const Systems &s,
                  const std::vector<Method> &methods) {
  bool spd = kind == SPD;
  const Floor floor = floor_of(*bench, s, spd ? 0.5 : 1.0);
  const Method &ours = methods[0];
  double hone_ms = spread(ours.ms).median;
  print_table(text("%s, n = %lld", spd ? "SPD" : kind_names[kind],
                   static_cast<long long>(s.n)),
              methods, 0, "backward error");
  print_floor(floor, hone_ms);
  double wanted = s.n >= 8192 ? 3.0 : s.n >= 2048 && !spd ? 2.0 : 0.0;
  bench->solves.rows.push_back(
      text("| %s | %lld | %s | %s | ", kind_names[kind],
           static_cast<long long>(s.n), figure(hone_ms, "%.4g").c_str(),
           ours.ms.empty()                     ? "-"
           : ours.checked > 0 && ours.accepted ? "yes"
                                               : "NO") +
      against(fastest(methods, PAGEABLE), ours, wanted) + " " +
      against(fastest(methods, PINNED), ours,
              s.n >= large && !spd ? 1.5 : 0.0) +
      text(" %.4g | %s |", floor.floor_ms,
           figure(hone_ms / floor.floor_ms, "%.2f").c_str()));
  add_row(bench, spd ? "spd" : "solve", kind_names[kind], s, 0, json_of(floor),
          methods, 0);
}

void solve_methods(const Config &c, Kind kind, const Systems &s, Peers *peers,
                   const std::string &no_peers, const Systems &pinned,
                   std::vector<Method> *methods) {
  bool spd = kind == SPD;
  const struct {
    const char *name;
    int device;
    bool kept;
  } ours[] = {{"Hone kept", HONE_DEVICE_CUDA, true},
              {"Hone once", HONE_DEVICE_CUDA, false},
              {"Hone AUTO kept", HONE_DEVICE_AUTO, true},
              {"Hone AUTO once", HONE_DEVICE_AUTO, false}};
  for (const auto &way : ours)
    if (!left_out(c, way.name, s.n, methods))
      add_hone(c, methods, way.name, s, way.device, way.kept, spd);
  if (s.n <= 4096)
    add_hone(c, methods, "Hone CPU kept", s, HONE_DEVICE_CPU, true, spd);
  for (int mixed = 0; mixed < 2 && s.n <= 4096; mixed++) {
    const size_t before = methods->size();
    add_lapack(c, methods, s, spd, mixed != 0, 1);
    if (s.n >= 4096 && methods->size() > before) /* they take the longest */
      methods->back().most_rounds = 3;
  }
  if (pinned.a != nullptr)
    add_hone(c, methods, "Hone kept, A pinned", pinned, HONE_DEVICE_CUDA, true,
             spd);
  const double *places[] = {nullptr, pinned.a};
  for (int place = 0; place < (pinned.a != nullptr ? 2 : 1); place++)
    for (int p = 0; p < PEERS; p++)
      if ((p == PEER_CHOLESKY) == spd &&
          !left_out(c, peer_title(static_cast<Peer>(p), place > 0), s.n,
                    methods))
        add_peer(c, methods, peers, static_cast<Peer>(p), s, places[place],
                 no_peers);
}

/* Runs all kinds of one order, which share their memory. */
void solve_size(Bench *bench, int64_t n, const std::vector<Kind> &kinds) {
  Systems s;
  std::string no_pinned;
  if (!systems_allocate(&s, n, 1)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  double *pinned = nullptr;
  if (!kept_out(bench->c, "pinned: "))
    pinned = pinned_allocate(n * n, &no_pinned);
  if (!no_pinned.empty())
    printf("\nn = %lld: no pinned copy: %s\n", static_cast<long long>(n),
           no_pinned.c_str());
  Peers peers;
  std::vector<Method> unused;
  bool use[PEERS];
  for (int p = 0; p < PEERS; p++)
    use[p] = (p == PEER_CHOLESKY) == (kinds[0] == SPD) &&
             !kept_out(bench->c, peer_names[p]) &&
             !left_out(bench->c, peer_names[p], n, &unused);
  std::string no_peers = peers.open(n, use);
  for (Kind kind : kinds) {
    systems_fill(&s, kind, bench->c.seed, bench->c.host_threads);
    if (pinned != nullptr)
      copy_in_parallel(pinned, s.a, n * n, bench->c.host_threads);
    Systems there = s; /* borrows b, and has A in page-locked memory */
    there.a = pinned;
    there.count = 1;
    std::vector<Method> methods;
    solve_methods(bench->c, kind, s, &peers, no_peers, there, &methods);
    measure(bench, s, rounds_of(bench->c, n), &methods);
    report_solve(bench, kind, s, methods);
  }
  peers.close();
  pinned_free(pinned);
  systems_free(&s);
}

} // namespace

void solve_section(Bench *bench, bool spd) {
  const char *name = spd ? "spd" : "solve";
  std::vector<Kind> kinds;
  for (const std::string &kind : bench->c.kinds)
    kinds.push_back(kind == "normal" ? NORMAL : UNIFORM);
  if (spd)
    kinds = {SPD};
  printf("\n## %s, from pageable host memory to host memory\n",
         spd ? "SPD solve" : "Whole solve");
  for (const std::string &size : spd ? bench->c.spd_sizes : bench->c.sizes) {
    int64_t n = atoll(size.c_str());
    if (!out_of_time(bench, name, n))
      solve_size(bench, n, kinds);
  }
}

/* ---- small n ---- */

namespace {

/* Returns the ratios of m's times to those of the faster of a and b, round by
   round. */
std::string to_faster(const Method &m, const Method &a, const Method &b) {
  std::vector<double> ratios;
  for (size_t k = 0; k < m.ms.size(); k++)
    ratios.push_back(m.ms[k] / fmin(a.ms[k], b.ms[k])); /* ignores a NaN */
  return text_of(spread(ratios), "%.2f");
}

void small_size(Bench *bench, int64_t n) {
  enum { KEPT, ONCE, CPU, CUDA, PEER };
  Systems s;
  Peers peers;
  bool use[PEERS] = {true};
  if (!systems_allocate(&s, n, n <= 512 ? 8 : 2)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::string no_peers = peers.open(n, use);
  Config all = bench->c;
  all.skip.clear(); /* methods are found by their number */
  std::vector<Method> m;
  add_hone(all, &m, "Hone AUTO kept", s, HONE_DEVICE_AUTO, true, false);
  add_hone(all, &m, "Hone AUTO once", s, HONE_DEVICE_AUTO, false, false);
  add_hone(all, &m, "Hone CPU kept", s, HONE_DEVICE_CPU, true, false);
  add_hone(all, &m, "Hone CUDA kept", s, HONE_DEVICE_CUDA, true, false);
  add_peer(all, &m, &peers, PEER_LU, s, nullptr, no_peers);
  const int batch = batch_of(n);
  for (size_t k = 0; k < m.size(); k++)
    m[k].batch = k < CUDA ? batch : std::min(batch, 4);
  add_lapack(all, &m, s, false, false, batch);
  add_lapack(all, &m, s, false, true, batch);
  int rounds = n <= 128 ? 41 : n <= 512 ? 21 : 9;
  measure(bench, s, bench->c.rounds > 0 ? bench->c.rounds : rounds, &m);
  print_table(text("uniform, n = %lld", static_cast<long long>(n)), m, KEPT,
              "backward error");
  bench->smalls.rows.push_back(
      text("| %lld | ", static_cast<long long>(n)) +
      to_faster(m[KEPT], m[CPU], m[PEER]) + " | " +
      to_faster(m[ONCE], m[CPU], m[PEER]) + " | " +
      to_faster(m[CUDA], m[CPU], m[PEER]) + " | " +
      (m[KEPT].checked > 0 && m[KEPT].accepted ? "yes |" : "NO |"));
  add_row(bench, "small", kind_names[UNIFORM], s, 0, "", m, KEPT);
  peers.close();
  m.clear();
  systems_free(&s);
}

} // namespace

void small_section(Bench *bench) {
  printf("\n## Small n, from host memory to host memory\n");
  for (const std::string &size : bench->c.small_sizes) {
    int64_t n = atoll(size.c_str());
    if (!out_of_time(bench, "small", n))
      small_size(bench, n);
  }
}

/* ---- the forms of the factorization ---- */

namespace {

void forms_size(Bench *bench, int64_t n) {
  struct {
    const char *name;
    int diagonal, sections, residuals, arithmetic, pivoting;
  } forms[] = {{"default", 0, 0, 0, 0, 0},
               {"diagonal blocks by the CPU", HONE_DIAGONAL_CPU, 0, 0, 0, 0},
               {"the same, sections seeded", HONE_DIAGONAL_CPU,
                HONE_BLOCK_ROWS_SEEDED, 0, 0, 0},
               {"sections by TRSM", 0, HONE_BLOCK_ROWS_TRSM, 0, 0, 0},
               {"sections seeded", 0, HONE_BLOCK_ROWS_SEEDED, 0, 0, 0},
               {"sections by Crout", 0, HONE_BLOCK_ROWS_CROUT, 0, 0, 0},
               {"residuals by the host", 0, 0, HONE_RESIDUALS_HOST, 0, 0},
               {"FP32", 0, 0, 0, HONE_ARITHMETIC_FP32, 0},
               {"TF32", 0, 0, 0, HONE_ARITHMETIC_TF32, 0},
               {"BF16x3", 0, 0, 0, HONE_ARITHMETIC_BF16X3, 0},
               {"FP16", 0, 0, 0, HONE_ARITHMETIC_FP16, 0},
               {"BF16", 0, 0, 0, HONE_ARITHMETIC_BF16, 0},
               {"pivoting in blocks only", 0, 0, 0, 0, HONE_PIVOT_BLOCK},
               {"no pivoting", 0, 0, 0, 0, HONE_PIVOT_NONE}};
  Systems s;
  if (!systems_allocate(&s, n, 1)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  for (const auto &form : forms) { /* one at a time, to save memory */
    std::vector<Method> m;
    Choices chosen;
    chosen.diagonal = form.diagonal;
    chosen.block_rows = form.sections;
    chosen.residuals = form.residuals;
    chosen.arithmetic = form.arithmetic;
    chosen.pivoting = form.pivoting;
    add_form(bench->c, &m, (std::string("Hone ") + form.name).c_str(), s,
             HONE_DEVICE_CUDA, true, chosen);
    measure(bench, s, n > large ? 2 : n >= large ? 3 : 5, &m);
    print_table(text("%s, n = %lld", form.name, static_cast<long long>(n)), m,
                0, "backward error");
    bench->record.add(text("\"section\": \"forms\", \"kind\": \"uniform\", "
                           "\"n\": %lld, \"nrhs\": 1",
                           static_cast<long long>(n)),
                      m, 0);
  }
  systems_free(&s);
}

} // namespace

void forms_section(Bench *bench) {
  printf("\n## Whole solves by the other forms of the factorization\n");
  for (const std::string &size : bench->c.form_sizes) {
    int64_t n = atoll(size.c_str());
    if (!out_of_time(bench, "forms", n))
      forms_size(bench, n);
  }
}

/* ---- matrices too ill-conditioned for single precision ---- */

namespace {

void hard_size(Bench *bench, int64_t n) {
  const Kind kinds[] = {GEOMETRIC, ONE_SMALL, ARITHMETIC};
  Systems s;
  if (!systems_allocate(&s, n, 1)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  for (Kind kind : kinds) {
    Choices in_double;
    std::vector<Method> m;
    Peers peers;
    bool use[PEERS] = {true};
    std::string no_peers = peers.open(n, use);
    systems_fill(&s, kind, bench->c.seed, bench->c.host_threads);
    add_form(bench->c, &m, "Hone kept", s, HONE_DEVICE_CUDA, true, Choices());
    in_double.factor_precision = HONE_FACTOR_DOUBLE;
    add_form(bench->c, &m, "Hone kept, double from the start", s,
             HONE_DEVICE_CUDA, true, in_double);
    add_peer(bench->c, &m, &peers, PEER_LU, s, nullptr, no_peers);
    measure(bench, s, 3, &m);
    print_table(text("%s, condition 1e12, n = %lld", kind_names[kind],
                     static_cast<long long>(n)),
                m, 1, "backward error");
    bench->record.add(text("\"section\": \"hard\", \"kind\": \"%s\", "
                           "\"n\": %lld, \"nrhs\": 1",
                           kind_names[kind], static_cast<long long>(n)),
                      m, 1);
    peers.close();
  }
  systems_free(&s);
}

} // namespace

void hard_section(Bench *bench) {
  printf("\n## Condition 1e12: whole solves beside double precision from the "
         "start\n");
  for (const std::string &size : bench->c.hard_sizes) {
    int64_t n = atoll(size.c_str());
    if (!out_of_time(bench, "hard", n))
      hard_size(bench, n);
  }
}
