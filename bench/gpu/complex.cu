/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of complex systems: whole solves from pageable memory beside
   cuSOLVER's getrf and getrs in C_64F and its mixed-precision solver, with the
   copies that they need, and the factorization alone beside getrf in C_32F. See
   gpu_bench.h. Operations are counted as four real ones for each complex one.
 */
#include "bench/gpu/gpu_bench.h"

extern "C" {
#include "api/hone.h"
}

#include <cstdio>

namespace {

const int64_t MOST = 16384; /* larger orders are not in the tables */

double wanted(int64_t n) {
  return n >= 16384  ? 5.0
         : n >= 8192 ? 4.5
         : n >= 4096 ? 3.5
         : n >= 2048 ? 2.5
                     : 0.0;
}

void report_complex(Bench *bench, Kind kind, const Systems &s,
                    const std::vector<Method> &methods) {
  const Floor floor = floor_of(*bench, s, 1.0);
  const Method &ours = methods[0];
  const double hone_ms = spread(ours.ms).median;
  print_table(text("complex %s, n = %lld", kind_names[kind],
                   static_cast<long long>(s.n)),
              methods, 0, "backward error");
  print_floor(floor, hone_ms);
  bench->complexes.rows.push_back(
      text("| %s | %lld | %s | %s | ", kind_names[kind],
           static_cast<long long>(s.n), figure(hone_ms, "%.4g").c_str(),
           ours.ms.empty()                     ? "-"
           : ours.checked > 0 && ours.accepted ? "yes"
                                               : "NO") +
      against(fastest(methods, PAGEABLE), ours, wanted(s.n)) +
      text(" %.4g | %s |", floor.floor_ms,
           figure(hone_ms / floor.floor_ms, "%.2f").c_str()));
  add_row(bench, "complex", kind_names[kind], s, 0,
          json_of(floor) + text(", \"wanted\": %.1f", wanted(s.n)), methods, 0);
}

/* Runs both kinds of one order, which share their memory. */
void complex_size(Bench *bench, int64_t n, const std::vector<Kind> &kinds) {
  Systems s;
  Peers peers;
  bool use[PEERS];
  if (!systems_allocate(&s, n, 1, 1, 2)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  for (int p = 0; p < PEERS; p++)
    use[p] = p != PEER_CHOLESKY && !kept_out(bench->c, complex_peer_names[p]);
  const std::string no_peers = peers.open(n, use, 2);
  for (Kind kind : kinds) {
    std::vector<Method> methods;
    systems_fill(&s, kind, bench->c.seed, bench->c.host_threads);
    add_hone(bench->c, &methods, "Hone kept", s, HONE_DEVICE_CUDA, true, false);
    add_hone(bench->c, &methods, "Hone once", s, HONE_DEVICE_CUDA, false,
             false);
    for (int p = 0; p < PEERS; p++)
      if (p != PEER_CHOLESKY)
        add_peer(bench->c, &methods, &peers, static_cast<Peer>(p), s, nullptr,
                 no_peers);
    measure(bench, s, rounds_of(bench->c, n), &methods);
    report_complex(bench, kind, s, methods);
  }
  peers.close();
  systems_free(&s);
}

} // namespace

void complex_section(Bench *bench) {
  std::vector<Kind> kinds;
  for (const std::string &kind : bench->c.kinds)
    kinds.push_back(kind == "normal" ? NORMAL : UNIFORM);
  printf("\n## Complex systems, from pageable host memory to host memory\n");
  for (const std::string &size : bench->c.sizes) {
    const int64_t n = atoll(size.c_str());
    if (n <= MOST && !out_of_time(bench, "complex", n))
      complex_size(bench, n, kinds);
  }
  printf("\n## The factorization alone, complex, single precision, A on the "
         "device\n");
  for (const std::string &size : bench->c.sizes)
    for (Kind kind : kinds) {
      const int64_t n = atoll(size.c_str());
      if (n <= MOST && !out_of_time(bench, "complex factor", n))
        factor_alone(bench, "complex factor", 2, kind == NORMAL, n);
    }
}
