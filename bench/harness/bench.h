/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cpu and bench_gpu share these functions, which do not use CUDA.
   methods.cc makes a method of this library and runs the rounds;
   lapack_peers.cc has the methods of OpenBLAS and LAPACK; host_sections.cc and
   gallery.cc have the tables for any device; costs.cc fits how cost grows with
   n. Read next: cpu/bench_cpu.cc, gpu/bench_gpu.cu. */
#ifndef HONE_BENCH_HARNESS_BENCH_H
#define HONE_BENCH_HARNESS_BENCH_H

#include "bench/harness/record.h"
#include "bench/harness/systems.h"

using Words = std::vector<std::string>;

struct Config {
  Words sizes, small_sizes, spd_sizes, hard_sizes, form_sizes, complex_sizes;
  Words sections, known_sections;
  Words kinds = {"uniform", "normal"};
  Words column_sizes = {"1000", "2000"}; /* orders of the columns table */
  Words columns = {"1", "2", "5", "10", "20", "50", "100"};
  Words thread_sizes = {"1000", "4000"};
  Words phase_sizes = {"256", "1024", "4096"};
  Words several_sizes = {"16384", "32768", "65536"}; /* factored alone */
  Words several_solve_sizes = {"16384", "32768"};
  Words outside_sizes = {"32768"};
  Words skip;
  /* Methods with one of these words in their name are left out beyond n =
     16384, and the record says so. */
  Words large_skip = {"TF32", "16F", "once", "AUTO"};
  std::string commit, json_name;
  int device = 0; /* HONE_DEVICE_..., for the tables for any device */
  int rounds = 0, slow_rounds = 2;
  int large_rounds = 0; /* 0: 5 at n = 16384, 3 beyond */
  int threads = 0;      /* the option --threads; 0: all */
  int host_threads = 1;
  uint64_t seed = 1;
  double seconds = 0.0;
};

const int64_t large = 16384;

/* A median time, from which costs.cc fits exponents. */
struct Point {
  std::string section, kind, method;
  int64_t n = 0, nrhs = 1;
  int threads = 0;
  double ms = 0.0;
  bool accepted = false;
};

/* Every section of a program works on this; a section makes one table. */
struct Bench {
  Config c;
  Record record{""};
  Budget budget{0.0};
  /* Measured rates of this machine; 0: not measured. */
  double pinned_bytes_s = 0.0, gemm_flops_s = 0.0; /* of the GPU */
  double sgemm_flops_s = 0.0, copy_bytes_s = 0.0;  /* of the CPU */
  Summary solves, smalls, factors, complexes;
  std::vector<Point> points;
};

/* Adds a row to the record, and its methods' medians to the points. more has
   further `"key": value` pairs, or is empty. */
void add_row(Bench *bench, const char *section, const char *kind,
             const Systems &s, int threads, const std::string &more,
             const std::vector<Method> &methods, size_t reference);

/* ---- options that both programs have ---- */

Words split(const std::string &list); /* at commas */
bool are_orders(const Words &words, int64_t most);
bool parse_int(const std::string &value, int *number); /* 1 .. 1000 */
/* Stores one option; false if it is unknown or its value is invalid. */
bool parse_common(Config *c, const std::string &name, const std::string &value);
/* The usage text of the options that parse_common knows. */
extern const char common_usage[];

/* ---- the machine ---- */

/* Prints a property of the machine or the run and records it. */
void state(Bench *bench, const char *key, const std::string &value);
void state_program(Bench *bench, int argc, char **argv);
void state_host(Bench *bench);
/* Returns the present clocks of the CPUs, "2100 .. 3400 MHz". */
std::string cpu_clocks();

/* The best vector instructions that this processor has and OpenBLAS's kernels
   for 'core', as it calls the processor, leave unused: "AVX2", "AVX-512" or "".
   Versions that do not know a processor take it for an old one, and the peers
   may be slower then than they need be. */
std::string unused_by_blas(const std::string &core, bool avx2, bool avx512);
/* Returns that of the processor and of the OpenBLAS that run this program. */
std::string unused_by_blas_here();

/* ---- methods ---- */

/* Tells whether --skip excludes the method. */
bool kept_out(const Config &c, const std::string &name);

/* Adds this library as a method. If kept is true it uses a solver, which is
   created here, untimed; otherwise hone_solve, or hone_z_solve. device is
   HONE_DEVICE_... The first method of a table is the reference, and --skip does
   not exclude it. */
void add_hone(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, bool spd);

/* Further choices, with the values of hone.h and hone_tuning.h. */
struct Choices {
  bool spd = false;
  int diagonal = 0, block_rows = 0, residuals = 0, factor_precision = 0;
  int arithmetic = 0, pivoting = 0;
  int threads = 0;           /* 0: the Config's */
  int devices = 0;           /* 0: one; -1: all */
  int64_t device_memory = 0; /* the limit in bytes; 0: what is free */
  bool history = false;      /* record the last solve's convergence */
};
void add_form(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, const Choices &chosen);

/* Adds OpenBLAS's dgesv or LAPACK's dsgesv, or for SPD dposv or dsposv. They
   overwrite A, and their copies of it are made untimed. Up to n = 1024 they use
   all threads or one, as is faster in a trial, and their notes say so. batch is
   the most systems that one timing solves. */
void add_lapack(const Config &c, std::vector<Method> *methods, const Systems &s,
                bool spd, bool mixed, int batch);

/* Runs all methods in turn, round by round; the first round is not counted. */
void measure(Bench *bench, const Systems &s, int rounds,
             std::vector<Method> *methods);

/* ---- tables ---- */

/* A section and its share of the time. */
struct Part {
  const char *section;
  double share;
};

/* Runs the sections asked for, in the order of parts. Each has its share of the
   time that is left, so that time which one does not use goes to the others. */
void run_by_shares(Bench *bench, const std::vector<Part> &parts,
                   void (*run)(Bench *bench, const std::string &section));

/* Adds a line without a time for a method that large_skip names, if n is beyond
   16384, and returns true. Returns false if it is to be measured. */
bool left_out(const Config &c, const std::string &name, int64_t n,
              std::vector<Method> *methods);

/* Tells whether the section's time is over; if so, prints and records it. */
bool out_of_time(Bench *bench, const char *section, int64_t n);
int rounds_of(const Config &c, int64_t n);
/* Returns how many systems one timing solves, to last about 0.1 ms. */
int batch_of(int64_t n);

void columns_section(Bench *bench);
void threads_section(Bench *bench);
void gallery_section(Bench *bench);
void history_section(Bench *bench);
/* Sections of bench_cpu alone. */
void cpu_phases_section(Bench *bench);
void cpu_callers_section(Bench *bench);
void cpu_solve_section(Bench *bench, const char *section);
void cpu_rates(Bench *bench);

/* Prints and records exponents and crossovers of the rows measured. */
void costs(Bench *bench);

#endif
