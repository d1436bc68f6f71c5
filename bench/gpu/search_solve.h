/* SPDX-License-Identifier: BSD-3-Clause */
/* search_lu times whole solves through this function, where the factorization
   alone does not tell which way is best: what comes after it, and the threads
   that copy A, are part of them. */
#ifndef HONE_BENCH_GPU_SEARCH_SOLVE_H
#define HONE_BENCH_GPU_SEARCH_SOLVE_H

#include "bench/gpu/factor.h"

#include <cstdint>
#include <string>
#include <vector>

/* Appends to ms the times of so many rounds of hone_solve, or of hone_z_solve,
   after two untimed ones, by the host's clock. form's choices replace the
   library's own in all of them; what the process keeps of them is given back.

   form      in: its arithmetic, block and diagonal are 0
   complex   in: entries of A are two doubles, the real part first
   n, a      in: n x n, column-major [dp host]; positive definite if form says
             that it is
   threads   in: at most; 0: as many as the process has

   Returns why a solve failed, or an empty text. */
std::string time_solves(const hone_bench_form &form, bool complex, int64_t n,
                        const double *a, int threads, int rounds,
                        std::vector<double> *ms);

#endif
