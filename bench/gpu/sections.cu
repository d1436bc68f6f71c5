/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of bench_gpu; see gpu_bench.h. */
#include "bench/gpu/gpu_bench.h"

#include "bench/harness/systems.h"

extern "C" {
#include "api/hone.h"
#include "api/hone_tuning.h"
/* This is NULL in a program that is linked without hook.cu. */
int hone_bench_factor(int64_t, const float *, int64_t, int, int, double *,
                      double *, char *, size_t) __attribute__((weak));
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

/* ---- whole solves ---- */

/* Returns three cells: a peer, how many times as fast ours is, and how many
   times are wanted. */
std::string against(const Method *m, const Method &ours, double wanted) {
  if (m == nullptr)
    return "- | - | - |";
  std::string goal = wanted > 0.0 ? text("%.1f", wanted) : "";
  return m->name + " | " + text_of(ratio(*m, ours), "%.2f") + " | " + goal +
         " |";
}

void report_solve(Bench *bench, Kind kind, const Systems &s,
                  const std::vector<Method> &methods) {
  bool spd = kind == SPD;
  double order = static_cast<double>(s.n);
  double share = spd ? 0.5 : 1.0;
  double read_s = read_bandwidth(s.matrix(0), s.n * s.n, bench->c.host_threads);
  double copy_ms = 1e3 * share * 8.0 * order * order / bench->pinned_bytes_s;
  double work_ms = 1e3 * share * 2.0 * order * order * order /
                   bench->gemm_flops_s; /* 2/3 n^3 operations, three times */
  double pass_ms = 1e3 * share * 8.0 * order * order / read_s;
  double floor_ms = std::max(copy_ms, work_ms) + pass_ms;
  const Method &ours = methods[0];
  double hone_ms = spread(ours.ms).median;
  print_table(text("%s, n = %lld", spd ? "SPD" : kind_names[kind],
                   static_cast<long long>(s.n)),
              methods, 0, "backward error");
  printf("\nFloor %.4g ms: the larger of %.4g (copy) and %.4g (arithmetic), "
         "plus %.4g (reading A at %.0f GB/s). Hone / floor: %s\n",
         floor_ms, copy_ms, work_ms, pass_ms, 1e-9 * read_s,
         figure(hone_ms / floor_ms, "%.2f").c_str());
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
      text(" %.4g | %s |", floor_ms,
           figure(hone_ms / floor_ms, "%.2f").c_str()));
  add_row(bench, spd ? "spd" : "solve", kind_names[kind], s, 0,
          "\"host_read_bytes_s\": " + json_number(read_s) +
              ", \"floor_ms\": " + json_number(floor_ms) +
              ", \"floor\": {\"copy_ms\": " + json_number(copy_ms) +
              ", \"arithmetic_ms\": " + json_number(work_ms) +
              ", \"pass_ms\": " + json_number(pass_ms) + "}",
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

/* ---- the factorization alone ---- */

namespace {

/* Adds a method for each arithmetic of the library. The residual is computed in
   the first round only. */
void add_arithmetics(const Config &c, const SingleLu &peer, int64_t n,
                     std::vector<Method> *methods) {
  const float *d_a = peer.matrix();
  for (int arithmetic = 0; arithmetic < 16; arithmetic++) {
    char name[200] = "";
    double probe_ms = 0.0;
    int rc = hone_bench_factor(std::min<int64_t>(n, 256), d_a, n, arithmetic, 1,
                               &probe_ms, nullptr, name, sizeof name);
    if (rc > 0)
      return;
    Method m;
    m.name = "Hone " + (rc == 0 ? std::string(name) : text("%d", arithmetic));
    m.failed = rc < 0 ? name : "";
    if (!methods->empty() && kept_out(c, m.name))
      continue;
    auto first = std::make_shared<bool>(true);
    m.time = [=](double *ms, double *error) {
      char why[200] = "";
      int st = hone_bench_factor(n, d_a, n, arithmetic, 1, ms,
                                 *first ? error : nullptr, why, sizeof why);
      *first = false;
      return std::string(st == 0 ? "" : why[0] != 0 ? why : "no reason given");
    };
    methods->push_back(m);
  }
}

void add_single_peer(SingleLu *peer, const std::string &failed,
                     std::vector<Method> *methods) {
  Method m;
  m.name = "Xgetrf FP32, pivoting";
  m.group = PAGEABLE;
  m.failed = failed;
  auto first = std::make_shared<bool>(true);
  m.time = [=](double *ms, double *error) {
    std::string why = peer->run(ms);
    if (why.empty() && *first)
      why = peer->residual(error);
    *first = false;
    return why;
  };
  methods->push_back(m);
}

/* The peer is the last method. The others are accepted if their residual is at
   most 4 times the peer's. */
void report_factor(Bench *bench, bool normal, int64_t n,
                   std::vector<Method> *methods) {
  const Method &peer = methods->back();
  const Method &ours = methods->front();
  double work = 2.0 / 3.0 * pow(static_cast<double>(n), 3.0);
  for (Method &m : *methods) {
    m.accepted = m.error <= 4.0 * peer.error;
    if (spread(m.ms).count > 0)
      m.note = text("%.1f TFLOP/s", 1e-9 * work / spread(m.ms).median);
  }
  const char *kind = kind_names[normal ? NORMAL : UNIFORM];
  print_table(text("%s, n = %lld", kind, static_cast<long long>(n)), *methods,
              0, "residual");
  double hone_ms = spread(ours.ms).median;
  double peer_ms = spread(peer.ms).median;
  bench->factors.rows.push_back(
      text("| %s | %lld | ", kind, static_cast<long long>(n)) +
      figure(hone_ms, "%.4g") + " | " + figure(1e-9 * work / hone_ms, "%.1f") +
      " | " + figure(peer_ms, "%.4g") + " | " +
      figure(1e-9 * work / peer_ms, "%.1f") + " | " +
      text_of(ratio(peer, ours), "%.2f") + (n >= 8192 ? " | 2.5 | " : " | | ") +
      figure(ours.checked > 0 ? ours.error / peer.error : NAN, "%.2f") + " |");
  bench->record.add(text("\"section\": \"factor\", \"kind\": \"%s\", "
                         "\"n\": %lld",
                         kind, static_cast<long long>(n)),
                    *methods, 0);
}

void factor_size(Bench *bench, bool normal, int64_t n) {
  SingleLu peer;
  std::vector<Method> methods;
  std::string failed = peer.open(n, normal, bench->c.seed);
  if (hone_bench_factor != nullptr && failed.empty())
    add_arithmetics(bench->c, peer, n, &methods);
  if (methods.empty()) {
    Method none;
    none.name = "Hone";
    none.failed = failed.empty() ? "linked without hone_bench_factor" : failed;
    methods.push_back(none);
  }
  add_single_peer(&peer, failed, &methods);
  Systems order; /* only its n is used */
  order.n = n;
  measure(bench, order, rounds_of(bench->c, n), &methods);
  report_factor(bench, normal, n, &methods);
}

} // namespace

void factor_section(Bench *bench) {
  printf("\n## The factorization alone, single precision, A on the device\n"
         "\nThe residual is ||P A - L U|| / ||A|| in Frobenius norms, computed "
         "in double. It is accepted up to 4 times cuSOLVER's.\n");
  for (const std::string &size : bench->c.sizes)
    for (const std::string &kind : bench->c.kinds) {
      int64_t n = atoll(size.c_str());
      if (!out_of_time(bench, "factor", n))
        factor_size(bench, kind == "normal", n);
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
