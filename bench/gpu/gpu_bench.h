/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of bench_gpu share this header and bench.h: methods.cu has the
   methods of cuSOLVER, sections.cu, callers.cu, device.cu, batch.cu and
   profile.cu the tables, bench_gpu.cu the options. */
#ifndef HONE_BENCH_GPU_GPU_BENCH_H
#define HONE_BENCH_GPU_GPU_BENCH_H

#include "bench/gpu/peers.h"
#include "bench/harness/bench.h"

std::string peer_title(Peer peer, bool pinned);

/* Adds a method of cuSOLVER. pinned is a copy of the matrix in pinned memory,
   or NULL to use the pageable matrix; failed says why the peers could not be
   opened, or is empty. */
void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed);

void solve_section(Bench *bench, bool spd);
void small_section(Bench *bench);
void factor_section(Bench *bench);
void forms_section(Bench *bench);
void hard_section(Bench *bench);
void gpu_phases_section(Bench *bench);
void callers_section(Bench *bench);
void device_section(Bench *bench);
void batch_section(Bench *bench);

#endif
