/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the two publications with which bench_papers compares its own:

     F. D. Igual, Matrix Computations on Graphics Processors and Clusters of
     GPUs, PhD thesis, Universitat Jaume I, 2011: Tesla C1060, two Xeon E5520.
     L. Cejka, Parallel LU Decomposition for the GPU, Czech Technical
     University, Prague, 2022: NVIDIA A100, AMD EPYC 7543. */
#ifndef HONE_BENCH_PAPERS_SOURCE_H
#define HONE_BENCH_PAPERS_SOURCE_H

#include <cstdint>
#include <string>
#include <vector>

/* Igual, table 4.1: the Cholesky factorization of a diagonal block of b
   columns, in milliseconds. */
struct Igual41 {
  int64_t b;
  double to_host, factor, to_device, total; /* factored on the CPU */
  double gpu;                               /* factored on the GPU */
};
const std::vector<Igual41> &igual_41();

/* Igual, table 4.2: seconds and iterations of systems factored on the GPU in
   single precision and refined on the CPU. */
struct Igual42 {
  int64_t n;
  double factor[2], refine[2]; /* Cholesky, LU */
  int iterations[2];
};
const Igual42 *igual_42(int64_t n); /* NULL if it is not in the table */

/* Cejka, tables 3.4 and 3.5: seconds in single and double precision of the
   direct method on one thread of the CPU, and of the iterative one with thread
   blocks of 8, 16 and 32. */
struct Cejka {
  const char *matrix;
  int64_t n;
  double seconds[2][4];
};
const Cejka *cejka(const std::string &matrix); /* NULL if not in the tables */

/* Statements of the publications that are in none of these tables, a line for
   each section. */
extern const char *const igual_padding, *const igual_blocks,
                                            *const cejka_errors;

#endif
