/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of bench_gpu share this beside bench.h: methods.cu has the vendor's
   methods, sections.cu the tables, bench_gpu.cu the options. */
#ifndef HONE_BENCH_GPU_GPU_BENCH_H
#define HONE_BENCH_GPU_GPU_BENCH_H

#include "bench/gpu/peers.h"
#include "bench/harness/bench.h"

std::string peer_title(Peer peer, bool pinned);

/* pinned: a copy of the matrix there, or NULL for the pageable one itself.
   failed: why there are no peers, or empty. */
void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed);

void solve_section(Bench *bench, bool spd);
void small_section(Bench *bench);
void factor_section(Bench *bench);
void forms_section(Bench *bench);
void hard_section(Bench *bench);
void gpu_phases_section(Bench *bench);

#endif
