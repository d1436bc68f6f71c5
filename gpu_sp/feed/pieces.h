/* SPDX-License-Identifier: BSD-3-Clause */
/* The job of copying A, in pageable memory, to the device by pieces: the
   threads of the pool, and the caller's while it has nothing better to do, take
   pieces as they come by. No thread waits for another one. Read next:
   pieces.cu. */
#ifndef HONE_CUDA_PIECES_H
#define HONE_CUDA_PIECES_H

#include "gpu_sp/state.h"

/* Allocate and free the pinned buffers. */
int hone_cuda_pieces_create(hone_cuda *c);
void hone_cuda_pieces_destroy(hone_cuda *c);

/* Starts the job of the block columns column[0 .. count-1]. sends: they go to
   the device. projects: the projection of A is taken (project.h). */
void hone_cuda_pieces_start(hone_cuda *c, const hone_dense *a,
                            hone_cuda_column *column, int count, bool sends,
                            bool projects);
/* The task of the pool's thread 'worker': does pieces of the job of ctx, a
   hone_cuda, until none is left. Where several devices share A (several/), it
   is they who start the pool's threads on the jobs of all. */
void hone_cuda_pieces_work(void *ctx, int64_t worker);
/* Sends what is ready, and where there are few threads does one piece on the
   caller's. Returns false if it did none. */
bool hone_cuda_pieces_help(hone_cuda *c);
/* Lets the threads stop early, with the status st. */
void hone_cuda_pieces_stop(hone_cuda *c, int st);
/* Does what is left to do, and waits until no thread works on the job. */
int hone_cuda_pieces_end(hone_cuda *c);

#endif
