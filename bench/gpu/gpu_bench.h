/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of bench_gpu share this header and bench.h: methods.cu has the
   methods of cuSOLVER, sections.cu, alone.cu, batch.cu, callers.cu, complex.cu,
   device.cu, outside.cu and profile.cu the tables, those of several.h among
   them, bench_gpu.cu the options. */
#ifndef HONE_BENCH_GPU_GPU_BENCH_H
#define HONE_BENCH_GPU_GPU_BENCH_H

#include "bench/gpu/peers.h"
#include "bench/harness/bench.h"

std::string peer_title(Peer peer, bool pinned, int parts = 1);

/* Adds a method of cuSOLVER. pinned is a copy of the matrix in pinned memory,
   or NULL to use the pageable matrix; failed says why the peers could not be
   opened, or is empty. */
void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed);

/* Times the factorization alone, in single precision, of a matrix on the device
   whose entries have so many parts, and adds a row to the section. */
void factor_alone(Bench *bench, const char *section, int parts, bool normal,
                  int64_t n);

/* A row of a table of whole solves: the shortest time that the hardware leaves,
   and the time of a pass over A on the host. */
struct Floor {
  double read_s, copy_ms, work_ms, pass_ms, floor_ms;
};
/* share: the part of A that is sent and of the operations that are made. */
Floor floor_of(const Bench &bench, const Systems &s, double share);
void print_floor(const Floor &floor, double hone_ms);
std::string json_of(const Floor &floor);
/* Returns three cells: a peer, how many times as fast ours is, and how many
   times are wanted. */
std::string against(const Method *m, const Method &ours, double wanted);

void solve_section(Bench *bench, bool spd);
void complex_section(Bench *bench);
void small_section(Bench *bench);
void factor_section(Bench *bench);
void forms_section(Bench *bench);
void hard_section(Bench *bench);
void gpu_phases_section(Bench *bench);
void callers_section(Bench *bench);
void device_section(Bench *bench);
/* Several GPUs: whole solves of one matrix; the factorization alone; complex
   matrices; many right-hand sides; batches; beside cuSolverMG. */
void several_section(Bench *bench);
void several_factor_section(Bench *bench);
void several_complex_section(Bench *bench);
void several_columns_section(Bench *bench);
void several_spd_section(Bench *bench);
void several_batch_section(Bench *bench);
void several_mg_section(Bench *bench);
void outside_section(Bench *bench);
void batch_section(Bench *bench);

#endif
