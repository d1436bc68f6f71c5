/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of several GPUs share this header: several.cu has the sections,
   several_batch.cu that of batches, several_alone.cu the factorization alone,
   mg_peer.cu that of cuSolverMG. */
#ifndef BENCH_GPU_SEVERAL_H
#define BENCH_GPU_SEVERAL_H

#include "bench/gpu/gpu_bench.h"

/* Prints the title of a section, and returns how many GPUs there are; where
   there is one only, or none, says so and returns 0. */
int several_begin(const char *title);

/* The factorization alone, on the current GPU or on all: A comes to the devices
   untimed and is factored there again by each timing. Then the factors solve
   for the right-hand side, without refinement. several_z_alone is for systems
   of complex numbers. */
struct Alone {
  const char *name;
  bool all, spd; /* on all GPUs; by Cholesky's factorization */
};
Method several_alone(const Alone &what, const Systems &s, const Config &c);
Method several_z_alone(const Alone &what, const Systems &s, const Config &c);

/* The factorization by cusolverMgGetrf in FP64 on all GPUs: A is dealt to them
   untimed, in blocks of columns, and cusolverMgGetrs solves after the clock has
   stopped. Where it cannot be used the method says why. */
Method several_mg(const Systems &s, const Config &c);
extern const char several_mg_name[];

#endif
