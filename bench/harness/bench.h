/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cpu and bench_gpu share this frame, which knows nothing of CUDA.
   methods.cc has this library as a method, and the rounds; lapack_peers.cc the
   peers on the CPU; host_sections.cc and gallery.cc the tables for any device;
   costs.cc how cost grows with n. Read next: cpu/bench_cpu.cc,
   gpu/bench_gpu.cu. */
#ifndef HONE_BENCH_HARNESS_BENCH_H
#define HONE_BENCH_HARNESS_BENCH_H

#include "bench/harness/record.h"
#include "bench/harness/systems.h"

using Words = std::vector<std::string>;

struct Config {
  Words sizes, small_sizes, spd_sizes, hard_sizes, form_sizes;
  Words sections, known_sections;
  Words kinds = {"uniform", "normal"};
  Words column_sizes = {"1000", "2000"}; /* orders of the columns table */
  Words columns = {"1", "2", "5", "10", "20", "50", "100"};
  Words thread_sizes = {"1000", "4000"};
  Words phase_sizes = {"256", "1024", "4096"};
  Words skip;
  /* Beyond n = 16384 these are left out, and the record says so. */
  Words large_skip = {"TF32", "16F", "once", "AUTO"};
  std::string commit, json_name;
  int device = 0; /* HONE_DEVICE_...: of the tables for any device */
  int rounds = 0, slow_rounds = 2;
  int large_rounds = 0; /* 0: 5 at n = 16384, 3 beyond */
  int threads = 0;      /* as asked; 0: all */
  int host_threads = 1;
  uint64_t seed = 1;
  double seconds = 0.0;
};

const int64_t large = 16384;

/* A median, for costs.cc. */
struct Point {
  std::string section, kind, method;
  int64_t n = 0, nrhs = 1;
  int threads = 0;
  double ms = 0.0;
  bool accepted = false;
};

/* Every section (table) of a program is given this. */
struct Bench {
  Config c;
  Record record{""};
  Budget budget{0.0};
  /* Rates of this machine; 0: not measured. */
  double pinned_bytes_s = 0.0, gemm_flops_s = 0.0; /* of the GPU */
  double sgemm_flops_s = 0.0, copy_bytes_s = 0.0;  /* of the CPU */
  Summary solves, smalls, factors;
  std::vector<Point> points;
};

/* Records a row, and its methods' medians as points. more: further `"key":
   value` pairs, or empty. */
void add_row(Bench *bench, const char *section, const char *kind,
             const Systems &s, int threads, const std::string &more,
             const std::vector<Method> &methods, size_t reference);

/* ---- options that both programs have ---- */

Words split(const std::string &list); /* at commas */
bool are_orders(const Words &words, int64_t most);
bool parse_int(const std::string &value, int *number); /* 1 .. 1000 */
/* One option; false: there is no such one, or its value is no good. */
bool parse_common(Config *c, const std::string &name, const std::string &value);
/* The options that parse_common knows, for a usage text. */
extern const char common_usage[];

/* ---- the machine ---- */

/* Prints and records. */
void state(Bench *bench, const char *key, const std::string &value);
void state_program(Bench *bench, int argc, char **argv);
void state_host(Bench *bench);
/* Clocks of the CPUs as they are now, MHz: "2100 .. 3400". */
std::string cpu_clocks();

/* ---- methods ---- */

bool kept_out(const Config &c, const std::string &name);

/* device: HONE_DEVICE_...; kept: a solver made here, outside the clock, else
   hone_solve. The first method of a table is never kept out. */
void add_hone(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, bool spd);

/* Further choices, in the values of hone.h. */
struct Choices {
  bool spd = false;
  int diagonal = 0, sections = 0, residuals = 0, start = 0;
  int arithmetic = 0, pivoting = 0;
  int threads = 0;      /* 0: the Config's */
  bool history = false; /* record the last solve's convergence */
};
void add_form(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, const Choices &chosen);

/* OpenBLAS's dgesv and LAPACK's dsgesv, or for SPD dposv and dsposv. They
   destroy what they are given: the copies are made outside the clock. batch:
   systems to a timing, at most. */
void add_lapack(const Config &c, std::vector<Method> *methods, const Systems &s,
                bool spd, bool mixed, int batch);

/* All methods in turn, round by round; the first one is not counted. */
void measure(Bench *bench, const Systems &s, int rounds,
             std::vector<Method> *methods);

/* ---- tables ---- */

/* A section, and its share of the time. */
struct Part {
  const char *section;
  double share;
};

/* Runs the sections wanted in the order of parts, each with its share of the
   time that is left; what one leaves over is the others'. */
void run_by_shares(Bench *bench, const std::vector<Part> &parts,
                   void (*run)(Bench *bench, const std::string &section));

/* A method that large_skip names, at an order beyond 16384: a line in the
   table and the record instead of a time. False: it is to be measured. */
bool left_out(const Config &c, const std::string &name, int64_t n,
              std::vector<Method> *methods);

/* Says so and records it where the section's n cannot be afforded. */
bool out_of_time(Bench *bench, const char *section, int64_t n);
int rounds_of(const Config &c, int64_t n);
/* Systems to a timing of about 0.1 ms. */
int batch_of(int64_t n);

void columns_section(Bench *bench);
void threads_section(Bench *bench);
void gallery_section(Bench *bench);
void history_section(Bench *bench);
/* bench_cpu's */
void cpu_phases_section(Bench *bench);
void cpu_solve_section(Bench *bench, const char *section);
void cpu_rates(Bench *bench);

/* Exponents and crossovers of the rows recorded: printed, recorded. */
void costs(Bench *bench);

#endif
