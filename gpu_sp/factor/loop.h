/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization of both CUDA engines, P S = L U and S = U^T U, and its
   steps. Block columns come from the caller's matrix into F (load.cu), are
   brought up to date with the panels on their left, and factored (loop.cu).

   The steps are enqueued and run in the order of the calls; only those that
   return numbers wait. */
#ifndef HONE_CUDA_LOOP_H
#define HONE_CUDA_LOOP_H

#include "gpu_sp/state.h"

#include <cmath>

/* Members of both engines: factor, meanwhile. */
int hone_cuda_factor(void *self, const hone_matrix *a,
                     const hone_scaling *scaling, hone_factor_info *info);
void hone_cuda_meanwhile(void *self, hone_task run, void *ctx);

/* ---- From A into F: load.cu --------------------------------------------- */

/* Clears the results of the factorization before, and chooses the products of
   this one. */
int hone_cuda_load_clear(hone_cuda *c);
/* Does so, and lets A begin to come.
   scaling NULL: S = A. */
int hone_cuda_load_begin(hone_cuda *c, const hone_dense *a,
                         const hone_scaling *scaling);
/* Returns the width of the block column that begins at column j, which is not
   loaded yet. */
int64_t hone_cuda_width(const hone_cuda *c, int64_t j);
/* Where several devices share A it comes by parts of whole rounds of panels,
   one for each device, so that each has as many of every part: returns the
   column of a device at which the part ends that has its column j, or INT64_MAX
   for the last part. */
int64_t hone_cuda_dealt_part_end(const hone_choices *choices, bool spd,
                                 int64_t n, const hone_cuda_deal *deal,
                                 int64_t j);
/* F[:, j:j+w] = S[:, j:j+w] rounded to single precision; entries below FLT_MIN
   in magnitude become 0 and are counted. Does nothing where
   hone_cuda_load_next has loaded that block column. */
int hone_cuda_load(hone_cuda *c, const hone_dense *a,
                   const hone_scaling *scaling, int64_t j, int64_t w);
/* Loads the block column that follows those in F. */
int hone_cuda_load_next(hone_cuda *c, const hone_dense *a,
                        const hone_scaling *scaling, int64_t j, int64_t w);
/* F = a matrix in single precision on the device, as one block column.
   Benchmarks alone call this. */
int hone_cuda_load_floats(hone_cuda *c, const hone_single *a, int64_t lda);

/* Sends the scaling to the device, and waits: of all rows, and of this device's
   columns or, if 'dealt' is false, of all of them. */
int hone_cuda_upload_scaling(hone_cuda *c, const hone_scaling *scaling,
                             bool dealt);

/* ---- The steps of the loop: loop.cu -------------------------------------- */

/* Factors the block column F[j:n, j:j+w] by outer panels. */
int hone_cuda_factor_column(hone_cuda *c, int64_t j, int64_t w);
/* Computes, after the last block column, the inverses of the diagonal blocks,
   which the solves use, and max |u_ij|. */
int hone_cuda_finish(hone_cuda *c);
/* Returns |u| of an entry of F, as pivots are judged. */
inline float hone_cuda_pivot_size(const float *u) {
  return HONE_PARTS > 1 ? std::hypot(u[0], u[HONE_PARTS - 1]) : std::fabs(u[0]);
}
/* Fetches |u_cc|, or u_cc^2 for Cholesky, of the columns j .. j+w-1. */
typedef int hone_cuda_fetch_pivots(void *ctx, int64_t j, int64_t w, float *out);
/* With 'done' of n columns factored, *hopeless becomes true if the pivots fall
   so fast that refinement with the factors would not converge. */
int hone_cuda_judge_pivots(hone_cuda_fetch_pivots *fetch, void *ctx, int64_t n,
                           int64_t done, bool *hopeless);
/* Finds growth, the first zero pivot and the number of flushed entries; waits.
   Called however the factorization ended, unless it failed. */
int hone_cuda_outcome(hone_cuda *c, bool complete, hone_factor_info *info);

#endif
