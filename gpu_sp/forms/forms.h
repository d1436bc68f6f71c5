/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of the publications, which a caller may choose instead of the
   default (hone_tuning.h: diagonal, block_rows), in single precision: diagonal
   blocks factored on the CPU, and block rows of U and block columns of L
   computed by iteration. A block row is the part of 128 rows of U on the right
   of their diagonal block, a block column the part of 128 columns of L below
   it. Declared here is what the factorization and the files of this folder need
   of each other. Read next: diagonal.cu and base/block_lu.h for the diagonal
   blocks, block_rows.cu for the iterations, crout.h for the iterative Crout
   method. */
#ifndef HONE_CUDA_FORMS_H
#define HONE_CUDA_FORMS_H

#include "gpu_sp/state.h"

/* Returns the bytes of device memory that c->choices need. */
int64_t hone_cuda_forms_bytes(const hone_cuda *c);
/* Creates the stream, events and cuBLAS handle of look-ahead, and the workspace
   of the methods. All other members of c exist before. */
int hone_cuda_forms_create(hone_cuda *c);
void hone_cuda_forms_destroy(hone_cuda *c);
/* Called before a factorization: waits for the work that an interrupted one
   enqueued, and clears the account. */
int hone_cuda_forms_clear(hone_cuda *c);

/* ---- The diagonal block on the CPU (diagonal.cu) ------------------------ */

/* Returns true if the CPU factors the diagonal block at column k. */
bool hone_cuda_cpu_factors_block(const hone_cuda *c, int64_t k);
/* Factors inner panel number 'index' of the matrix, as hone_cuda_panel does, by
   way of the CPU. Waits. */
int hone_cuda_factor_block_on_cpu(hone_cuda *c, const hone_cuda_queue &on,
                                  int index, int64_t k, int64_t w,
                                  enum hone_pivoting pivoting);

/* ---- Block rows and block columns (block_rows.cu) ------------------------ */

/* L21 = A21 inv(U11) in place, by the CPU's inv(U11). The first function does
   what can be done before the inverse is there: it copies A21. */
int hone_cuda_block_column_begin(hone_cuda *c, const hone_cuda_queue &on,
                                 int64_t k, int64_t w);
int hone_cuda_block_column_l(hone_cuda *c, const hone_cuda_queue &on, int64_t k,
                             int64_t w);
/* Computes rows of U, as hone_cuda_rows does, by the method that the caller
   chose. */
int hone_cuda_block_row_u(hone_cuda *c, const hone_cuda_queue &on, int index,
                          const hone_u_rows &rows, const hone_operand &to);
/* Computes inv(L11) of inner panel number 'index' from F, on the device. */
int hone_cuda_block_row_seed(hone_cuda *c, const hone_cuda_queue &on, int index,
                             int64_t k, int64_t w);

#endif
