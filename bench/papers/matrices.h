/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrices of Cejka's comparison: random dense ones of his orders, and
   files of Matrix Market that are not too large. */
#ifndef HONE_BENCH_PAPERS_MATRICES_H
#define HONE_BENCH_PAPERS_MATRICES_H

#include <cstdint>
#include <string>
#include <vector>

struct PaperMatrix {
  std::string name; /* "Cejka2842", "494_bus" */
  int64_t n = 0;
  bool dense = false;
  std::string file;      /* empty for a random matrix */
  std::string refused;   /* why it cannot be used, or empty */
  std::vector<double> a; /* n x n, after it was read */
};

/* Reads the file, or makes a random matrix with entries uniform in [-1000,
   1000), like his generator. Returns false, and refused says why, if it is not
   a real square matrix, has more than 'most' columns, or memory is missing. */
bool read_matrix(PaperMatrix *m, uint64_t seed, int threads, int64_t most);

/* Lists the files that the arguments name, and the files *.mtx of directories,
   in alphabetical order. A directory without such files is listed as refused.
 */
std::vector<PaperMatrix> list_matrices(const std::vector<std::string> &names);

#endif
