/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a CUDA engine, which all rooms share: engine.cu (the tables),
   create.cu (creation and destruction), feed/ (A comes to the device), factor/
   (the loop over block columns, panels), solve/ and residual/ (answers with
   the factors and with A), forms/ (forms that a caller may choose). */
#ifndef HONE_CUDA_STATE_H
#define HONE_CUDA_STATE_H

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/residual/residual.h"
#include "gpu_sp/solve/triangles.h"

enum {
  HONE_CUDA_SLOTS = 6,    /* of the ring of pinned buffers */
  HONE_CUDA_COLUMNS = 8,  /* right-hand sides on the device at once */
  HONE_CUDA_PADDING = 32, /* rows and columns of F are a multiple of it */
  HONE_CUDA_PACE = 2      /* panels that the caller is ahead of the device */
};

/* A panel of the outer blocking: its inner panels' moves are
   moves[first .. first+count-1]. */
struct hone_cuda_panel_info {
  int64_t k, w;
  int first, count;
};

/* A block column: columns j .. j+w-1. */
struct hone_cuda_column {
  int64_t j, w;
  cudaEvent_t fed, turned, done; /* on the device; in F; factored */
  int applied;           /* panels that it has been brought up to date with */
  int64_t chunk, chunks; /* its first chunk in the job, and how many it has */
  int64_t sent, arrived; /* chunks sent; nonzero: all, and fed is recorded */
};

/* Block columns that are being sent to the device, by the pool's threads and by
   the caller's while it waits for them: see feed/feed.cu. */
struct hone_cuda_job {
  hone_dense a;
  hone_cuda_column *column;
  int count;
  int64_t width, parts; /* columns of a chunk; tasks of a column */
  int64_t first;        /* number of the first chunk, counted since create */
  int64_t tasks, next;  /* in all; the next one that a thread takes */
  int status;
  bool running;
};

/* A pinned buffer of the ring. Chunks are counted since create: chunk k uses
   slot k % HONE_CUDA_SLOTS. */
struct hone_cuda_slot {
  unsigned char *memory;
  cudaEvent_t free;     /* its last chunk has arrived */
  int64_t opened, sent; /* the last chunks that began and were sent, from 1 */
  int64_t filled;       /* finished tasks of the present chunk */
};

struct hone_cuda {
  int ordinal;                   /* of the device */
  int64_t n, ld, lda, nb, strip; /* nb: outer panel; strip: columns of U */
  int64_t block;                 /* of the caller's choice; 0: none */
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  hone_choices choices;
  enum hone_split pieces, wanted_pieces; /* in use; as the caller chose */
  bool tf32, wanted_tf32;
  bool keep_safer; /* the next factorization uses the present pieces and tf32,
                      which are safer than those wanted */
  bool spd; /* S = U^T U; lp: the rows of U again, row by row (ld each) */
  cudaStream_t work, feed, look;
  cudaEvent_t pace[HONE_CUDA_PACE]; /* recorded behind the last panels */
  cudaEvent_t residual_done;        /* recorded behind a residual */
  const hone_cublas *blas;
  cublasHandle_t handle;

  /* In device memory */
  double *a;     /* n x n, lda: the copy of A; NULL: none is kept */
  float *f;      /* F, ld */
  void *lp, *up; /* pieces: of a panel of L, row by row (ldl each); of its
                    rows of U in one strip of columns (ldu each) */
  int64_t ldl, ldu;
  float *stage; /* two buffers of stage_columns columns (ld each) of floats
                   that wait to go into F; only where A is not kept */
  int64_t stage_columns;
  void *blas_work;
  float *constants;        /* 1, -1 */
  hone_split_scale *scale; /* for each block column */
  unsigned *top;           /* for each: max |s_ij| as bits; then max |u_ij| */
  int *flags;              /* first zero pivot, overflow */
  unsigned long long *flushed;
  hone_panel_room panel_work;
  hone_moves *moves;   /* of all inner panels */
  int *dst, *src;      /* of an outer panel, composed: 2 nb and 4 nb entries */
  int *perm, *new_row; /* n each: row i of F was row perm[i] of S, which is now
                          row new_row[perm[i]] = i */
  int *identity;       /* n: 0, 1, ... */
  double *lower,
      *upper; /* inverses of the diagonal blocks: solve/triangles.h */
  hone_triangle_work triangles;
  double *v, *w; /* n x HONE_CUDA_COLUMNS each */
  void *residual_work;
  double *magnitudes; /* of A: row_max, row_sum, col_max, col_sum; n each */
  double *row, *col;  /* scaling */

  /* In pinned host memory, and the columns that go through it */
  hone_cuda_slot ring[HONE_CUDA_SLOTS];
  size_t slot_bytes;
  int64_t chunks; /* that went through the ring so far */
  hone_cuda_job job;
  hone_cuda_column whole; /* columns that come at once, not by block columns */
  int64_t pinned;         /* bytes of all pinned memory, counted in mem */
  double *h_v;            /* 4 n x HONE_CUDA_COLUMNS: see below */
  unsigned *h_top;        /* top, fetched */
  float *col_max;         /* n; where the host rounds */

  /* The matrix that is factored */
  const double *source;    /* the caller's A, or NULL: none */
  int64_t fed;             /* columns of A on the device, */
  int64_t inspected;       /* and those of them that are in magnitudes */
  bool original_readable;  /* the device can read the caller's memory: */
  const double *original;  /* A there, */
  int64_t original_ld;     /* its leading dimension; */
  bool original_on_device; /* it is device memory, and not copied */
  bool one_triangle;       /* only the upper triangle of A is sent */
  uint64_t asymmetry; /* hone_mirror_sum of the upper triangle less that of the
                         lower: not 0 where A is not symmetric */
  int64_t nonfinite;  /* 1 + a column with an entry below the diagonal that is
                         not finite; 0: none */
  bool scaled;
  bool arriving;    /* A comes by block columns while it is being factored */
  bool reused;      /* A was on the device already */
  bool uninspected; /* factored before its inspection, without scaling: the next
                       factorization may be of the same A */
  int64_t host_flushed;
  hone_cuda_column *columns;
  int column_count, column_room; /* loaded; at most */
  hone_cuda_panel_info *panels;
  int panel_count, panel_room, moves_count, moves_room;
  int split_panel;          /* the panel whose pieces lp holds; -1: none */
  bool solve_expected;      /* a solve with the next residual as right-hand
                               side */
  bool solving_ahead;       /* such a solve has been begun, */
  bool solving_ahead_trans; /* with S^T */
  hone_account used;

  hone_cuda_forms forms;
};

/* Parts of h_v, in multiples of n doubles, through which right-hand sides go
   and results come: the columns of a solve, a residual's x, b, r and
   denominators, the solution for r, and perm, as ints. Transfers that are
   waited for at once use the first part. */
enum hone_cuda_part_of_h_v {
  HONE_CUDA_SOLVES = 0,
  HONE_CUDA_X = HONE_CUDA_COLUMNS,
  HONE_CUDA_B,
  HONE_CUDA_R,
  HONE_CUDA_DEN,
  HONE_CUDA_AHEAD,
  HONE_CUDA_PERM,
  HONE_CUDA_H_V_PARTS /* in all, of the 4 HONE_CUDA_COLUMNS there are */
};
inline double *hone_cuda_at(const hone_cuda *c, hone_cuda_part_of_h_v part) {
  return c->h_v + part * c->n;
}

inline int64_t round_up(int64_t v, int64_t to) {
  return (v + to - 1) / to * to;
}

/* The end of the columns that are in F. */
inline int64_t hone_cuda_loaded(const hone_cuda *c) {
  const hone_cuda_column *last = c->columns + c->column_count - 1;
  return last->j + last->w;
}

/* Is the matrix last fed on the device as a whole? */
inline bool hone_cuda_all_there(const hone_cuda *c) {
  return c->a && c->fed == c->n;
}

/* create.cu: members of the engine tables; spd: of Cholesky's. */
bool hone_cuda_probe(char *why, size_t why_size);
int hone_cuda_create(bool spd, void **self, const hone_engine_config *config);
void hone_cuda_destroy(void *self, hone_mem *mem);
int64_t hone_cuda_host_bytes(int64_t n, int64_t k);
int64_t hone_cuda_device_bytes(bool spd, const hone_engine_config *config,
                               bool stays);

/* Pinned host memory, within the caller's limit; given back by
   hone_cuda_unpin as far as the account goes. */
int hone_cuda_pin(hone_cuda *c, void **at, size_t bytes);
void hone_cuda_unpin(hone_cuda *c);

/* solve/solve.cu: solve, inspect, residual, expect, account of the tables. */
int hone_cuda_solve(void *self, bool trans, int64_t k, double *v, int64_t ldv);
int hone_cuda_see(void *self, const hone_matrix *a, const hone_scaling *scaling,
                  double *scratch, hone_inspection *seen);
int hone_cuda_take_residual(void *self, const hone_matrix *a, bool trans,
                            const double *x, const double *b, double *r,
                            double *den);
void hone_cuda_expect(void *self);
void hone_cuda_account(void *self, hone_account *out);

/* The columns up to 'to' of A, just come, are inspected. */
int hone_cuda_look(hone_cuda *c, int64_t to);
/* factor/load.cu: sends the scaling to the device; waits. */
int hone_cuda_upload_scaling(hone_cuda *c, const hone_scaling *scaling);

/* feed/feed.cu */
int hone_cuda_feed_create(hone_cuda *c);
void hone_cuda_feed_destroy(hone_cuda *c);
/* All of A sets out, by the block columns 0 .. count-1. */
void hone_cuda_feed_start(hone_cuda *c, const hone_dense *a, int count);
/* Columns up to 'to' of A are on their way on the stream feed; fed, if not
   NULL, is recorded behind them: an event that hone_cuda_feed_start knows, or
   one for columns that it did not set out with. */
int hone_cuda_feed(hone_cuda *c, const hone_dense *a, int64_t to,
                   cudaEvent_t fed);
/* Has the column been sent, and its event recorded? */
bool hone_cuda_sent(const hone_cuda_column *column);
/* Does a part of the threads' work, where there is any. */
void hone_cuda_feed_help(hone_cuda *c);
/* Nothing of A is read any more. */
void hone_cuda_feed_stop(hone_cuda *c);
/* Forgets what A was fed. */
int hone_cuda_feed_begin(hone_cuda *c, const hone_dense *a);
/* Columns j .. j+w-1 scaled and rounded by the host and sent to stage. */
int hone_cuda_feed_rounded(hone_cuda *c, const hone_dense *a,
                           const hone_scaling *scaling, int64_t j, int64_t w,
                           float *stage);

/* factor/lu.cu */
/* Brings the columns c0 .. c1-1, whose rows are in the present order, up to
   date with the panel. */
int hone_cuda_apply(hone_cuda *c, int panel, int64_t c0, int64_t c1);
/* Applies all panels from number 'from' on to columns that came later. */
int hone_cuda_update(hone_cuda *c, int from, int64_t c0, int64_t c1);
/* Applies the panels from .. to-1 to columns that came later, all but the last
   panel before c0. However the work is divided between this function and
   hone_cuda_update, the products have the same shapes, and so the same bits. */
int hone_cuda_catch_up(hone_cuda *c, int from, int to, int64_t c0, int64_t c1);
/* Factors the columns k .. k+w-1 of a block column that ends at 'end', and
   moves the rows of all columns there are. Where more of the block column
   follows, hone_cuda_apply to all of it must be next: it makes moves that are
   put off. */
int hone_cuda_factor_panel(hone_cuda *c, int64_t k, int64_t w, int64_t end);

/* factor/cholesky.cu: the same where S = U^T U. No rows move. */
int hone_cuda_apply_spd(hone_cuda *c, int panel, int64_t c0, int64_t c1);
int hone_cuda_factor_panel_spd(hone_cuda *c, int64_t k, int64_t w);

#endif
