/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrices of Cejka's comparison: random dense ones of his sizes, and
   files of Matrix Market as far as they fit. */
#ifndef HONE_BENCH_PAPERS_MATRICES_H
#define HONE_BENCH_PAPERS_MATRICES_H

#include <cstdint>
#include <string>
#include <vector>

struct PaperMatrix {
  std::string name; /* "Cejka2842", "494_bus" */
  int64_t n = 0;
  bool dense = false;
  std::string file;      /* empty: random */
  std::string refused;   /* why it is not taken; empty: it is */
  std::vector<double> a; /* n x n, once it is read */
};

/* Reads it, or makes it: entries uniform in [-1000, 1000), as his generator's,
   of seed. False, and refused says why: not a real square matrix, larger than
   'most' columns, no memory. */
bool read_matrix(PaperMatrix *m, uint64_t seed, int threads, int64_t most);

/* Lists the files that the arguments name, and those of directories (*.mtx, in
   alphabetical order). A name that is neither is in the list as refused. */
std::vector<PaperMatrix> list_matrices(const std::vector<std::string> &names);

#endif
