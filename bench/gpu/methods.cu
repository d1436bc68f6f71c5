/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of cuSOLVER; see gpu_bench.h. */
#include "bench/gpu/gpu_bench.h"

std::string peer_title(Peer peer, bool pinned, int parts) {
  return std::string(pinned ? "pinned: " : "") +
         (parts == 2 ? complex_peer_names : peer_names)[peer];
}

void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed) {
  Method m;
  m.name = peer_title(peer, pinned != nullptr, s.parts);
  if (kept_out(c, m.name))
    return;
  m.group = pinned ? PINNED : PAGEABLE;
  m.failed = failed;
  if (s.n >= large && (peer == PEER_IRS_TF32 || peer == PEER_IRS_16F))
    m.most_rounds = c.slow_rounds;
  m.solve = [=, &s](int64_t k, double *x) {
    return peers->solve(peer, pinned ? pinned : s.matrix(k), s.side(k), x);
  };
  m.after = [=](std::string *note) { return peers->verify(peer, note); };
  methods->push_back(m);
}
