/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of bench_gpu share: gpu_methods.cu has the methods and the
   rounds, gpu_sections.cu the tables, bench_gpu.cu the options. */
#ifndef HONE_BENCH_GPU_BENCH_H
#define HONE_BENCH_GPU_BENCH_H

#include "bench/gpu_peers.h"
#include "bench/gpu_record.h"
#include "bench/gpu_systems.h"

using Words = std::vector<std::string>;

struct Config {
  Words sizes = {"1024", "2048", "4096", "8192", "16384", "32768"};
  Words small_sizes = {"1",   "2",   "4",   "8",    "16",   "32",  "64",
                       "128", "256", "512", "1024", "1536", "2048"};
  Words sections = {"small", "factor", "solve", "spd", "forms", "hard"};
  Words form_sizes = {"8192", "32768"}, hard_sizes = {"8192", "16384"};
  Words kinds = {"uniform", "normal"};
  Words skip;
  std::string commit, json_name;
  int rounds = 0, large_rounds = 5, slow_rounds = 2;
  int threads = 0; /* as asked; 0: all */
  int host_threads = 1;
  uint64_t seed = 1;
  double seconds = 0.0;
};

const int64_t large = 16384;

/* What the sections share. */
struct Bench {
  Config c;
  Record record{""};
  Budget budget{0.0};
  double pinned_bytes_s = 0.0, gemm_flops_s = 0.0; /* 0: not measured */
  Summary solves = {"Whole solve, Hone kept, against the best of the peers",
                    "| matrix | n | Hone ms | accepted | best pageable peer | "
                    "times as fast | wanted | best pinned peer | times as "
                    "fast | wanted | floor ms | Hone / floor |",
                    {}};
  Summary smalls = {"Small n: Hone AUTO by the faster of its own CPU path and "
                    "the peer, wanted at most 1.10",
                    "| n | kept | once | Hone CUDA kept | kept accepted |",
                    {}};
  Summary factors = {"Factorization alone, in single precision, on the device",
                     "| matrix | n | Hone ms | TFLOP/s | getrf FP32 ms | "
                     "TFLOP/s | times as fast | wanted | residual / getrf's |",
                     {}};
};

bool kept_out(const Config &c, const std::string &name);

/* device: HONE_DEVICE_...; kept: a solver made here, outside the clock, else
   hone_solve. The first method of a table is never kept out. */
void add_hone(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, bool spd);

/* What else may be chosen: values of hone.h. */
struct Choices {
  bool spd = false;
  int diagonal = 0, sections = 0, residuals = 0, start = 0;
};
void add_form(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, const Choices &chosen);

/* pinned: a copy of the matrix there, or NULL for the pageable one itself.
   failed: why there are no peers, or empty. */
void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed);

/* All methods in turn, round by round; the first one is not counted. */
void measure(Bench *bench, const Systems &s, int rounds,
             std::vector<Method> *methods);

void solve_section(Bench *bench, bool spd);
void small_section(Bench *bench);
void factor_section(Bench *bench);
void forms_section(Bench *bench);
void hard_section(Bench *bench);

#endif
