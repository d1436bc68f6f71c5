/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of the caller's matrix A to the device, column by column: see feed.cu
   for how. The order of calls for one matrix: hone_cuda_feed_begin; perhaps
   hone_cuda_feed_start; hone_cuda_feed_columns as columns are needed;
   hone_cuda_feed_stop. */
#ifndef HONE_CUDA_FEED_H
#define HONE_CUDA_FEED_H

#include "gpu_sp/state.h"

/* Allocate and free the ring of pinned buffers. */
int hone_cuda_feed_create(hone_cuda *c);
void hone_cuda_feed_destroy(hone_cuda *c);

/* Forgets the matrix before, and finds out where this one lies. */
int hone_cuda_feed_begin(hone_cuda *c, const hone_dense *a);
/* Lets the threads of the pool begin to send all of A, and to project it, by
   the block columns 0 .. count-1 of c->columns. */
void hone_cuda_feed_start(hone_cuda *c, const hone_dense *a, int count);
/* Where the device reads A itself: enqueues the copies of all those block
   columns, each with its event behind it. */
int hone_cuda_feed_all(hone_cuda *c, int count);
/* Returns when the copies of A's columns up to 'to' have been enqueued on the
   stream feed, and the event fed, if not NULL, has been recorded behind them.
   While block columns of hone_cuda_feed_start are arriving, fed must be the
   event of the one that ends at 'to'. */
int hone_cuda_feed_columns(hone_cuda *c, const hone_dense *a, int64_t to,
                           cudaEvent_t fed);
/* Returns true while the threads send A. */
bool hone_cuda_sending(const hone_cuda *c);
/* Returns when the threads have nothing more to do, with the job's status. */
int hone_cuda_feed_end(hone_cuda *c);
/* Returns true if the column has been sent, and its event recorded. */
bool hone_cuda_column_sent(const hone_cuda_column *column);
/* Does one task of the threads' work; where none is left, lets other threads
   run. */
void hone_cuda_feed_help(hone_cuda *c);
/* Returns when nothing reads the caller's matrix any more. */
void hone_cuda_feed_stop(hone_cuda *c);

/* Scales and rounds the columns j .. j+w-1 on the host, and sends them to the
   buffer 'stage' on the device. */
int hone_cuda_feed_rounded(hone_cuda *c, const hone_dense *a,
                           const hone_scaling *scaling, int64_t j, int64_t w,
                           float *stage);

#endif
