/* SPDX-License-Identifier: BSD-3-Clause */
/* LU in single precision of matrices whose factors do not fit the memory of the
   device: F lies in host memory, column by column, and its block columns come
   to the device one after the other (docs/several.md). For block column J,
   left-looking:

     load      F[:, J] <- S[:, J], scaled and rounded by the host, its rows in
               the present order
     update    for each panel K before it: L[:, K] comes from the host, its rows
               are put into their present order, and J is updated by it
     factor    by panels, as with one device; each panel is taken to the host
               when J has been updated by it, and the panel of the next block
               column that has its place is loaded

   In host memory the rows of a panel stay in the order in which they were when
   it was taken; at the end all are exchanged, so that F has LAPACK's form. An
   engine of the host solves with it (api/outside.c).

   The steps are those of lu.cu, which see S by its own columns: while panel p
   is worked on, c->f is set beside F so that column p nb of S is where the
   device has that panel. Read next: factor.cu, transfer.cu, and engine.cu for
   creation. */
#ifndef HONE_CUDA_OUTSIDE_H
#define HONE_CUDA_OUTSIDE_H

#include "gpu_sp/state.h"

enum { HONE_OUTSIDE_STAGES = 2 }; /* panels on their way */

/* Room on the device for a panel that comes or goes, column by column. */
struct hone_outside_stage {
  hone_single *entries;
  int *rows;          /* n: for each row that is stored its number in S */
  cudaEvent_t filled; /* the panel is in entries */
  cudaEvent_t free;   /* one that was sent is needed there no more */
};

struct hone_outside {
  hone_cuda *c;
  hone_host_factors to;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  float *allocated, *f; /* the memory of F, and its first column; c->f stands
                           beside it while a panel is worked on */
  int64_t n, nb;
  int64_t window; /* columns of a block column; behind it there is room for one
                     panel of L */
  int panels;
  int *order; /* n for each panel: the number in S of each of its rows */
  hone_outside_stage stage[HONE_OUTSIDE_STAGES];
  unsigned char *stages; /* on the device: the memory of all */
  int64_t stages_used;   /* so far, counted on */
  cudaEvent_t ready;     /* the columns of the next panel are up to date */
  cudaEvent_t factored;  /* the panel is */
};

/* Returns the first column of panel p in S, and how many it has. */
inline int64_t hone_outside_start(const hone_outside *o, int p) {
  return p * o->nb;
}
inline int64_t hone_outside_width(const hone_outside *o, int p) {
  const int64_t left = o->n - p * o->nb;
  return left < o->nb ? left : o->nb;
}

/* transfer.cu. Rounds the columns of panel p of S, and loads them into F from
   its column 'place' on; *top (device) is raised to the bits of their largest
   magnitude. */
int hone_outside_send_a(hone_outside *o, const hone_dense *a,
                        const hone_scaling *scaling, int p, int64_t place,
                        unsigned *top);
/* Loads L of panel p from its first row on into F from column 'place' on.
 *unused (device) may be raised. */
int hone_outside_send_l(hone_outside *o, int p, int64_t place,
                        unsigned *unused);
/* Enqueues the copy of panel p, which begins with column 'place' of F, and
   returns its stage. The other function returns when it is in host memory;
   until then no other panel is sent or taken. */
int hone_outside_begin_take(hone_outside *o, int p, int64_t place,
                            hone_outside_stage **stage);
int hone_outside_end_take(hone_outside *o, int p, hone_outside_stage *stage);
/* Puts the rows of F in host memory into the order perm (perm[i] is the number
   in S of row i), and makes exchanges of it; it takes so many bytes for that.
 */
int64_t hone_outside_ordering_bytes(int64_t n);
int hone_outside_exchange_rows(hone_outside *o, const int *perm);

/* Members of the engine table. engine.cu accepts an engine whose creation
   failed anywhere. */
int hone_outside_factor(void *self, const hone_matrix *a,
                        const hone_scaling *scaling, hone_factor_info *info);
void hone_outside_destroy(void *self, hone_mem *mem);

#endif
