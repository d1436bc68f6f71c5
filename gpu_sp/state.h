/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a CUDA engine, which the files of all folders below gpu_sp/
   share. Read next: create.h (creation and destruction), feed/feed.h (A comes
   to the device), factor/loop.h (the factorization), solve/solve.h,
   residual/resident.h, and forms/forms.h (methods that a caller may choose). */
#ifndef HONE_CUDA_STATE_H
#define HONE_CUDA_STATE_H

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}
#include "gpu_sp/calls.h"
#include "gpu_sp/factor/factor.h"
#include "gpu_sp/forms/forms_state.h"
#include "gpu_sp/solve/triangles.h"

enum {
  HONE_CUDA_FEEDERS = 15,  /* threads that copy A, at most, */
  HONE_CUDA_WORKERS = 16,  /* and with the caller's; */
  HONE_CUDA_BUFFERS = 12,  /* pinned buffers for pieces of A, at most 63 */
  HONE_CUDA_TOGETHER = 4,  /* pieces that a buffer has room for */
  HONE_CUDA_STAGES = 6,    /* pinned buffers for floats */
  HONE_CUDA_COLUMNS = 128, /* right-hand sides on the device at once, at most */
  HONE_CUDA_PROBES = 32,   /* random vectors, solutions, right-hand sides */
  HONE_CUDA_PADDING = 32,  /* F's leading dimension is a multiple of it */
  HONE_CUDA_PACE = 2       /* panels that the host may enqueue ahead */
};

/* Returns how many right-hand sides of order n are on the device at once: fewer
   where their memory would count beside factors without a copy of A. */
inline int64_t hone_cuda_columns(int64_t n) { return hone_triangle_columns(n); }

/* An outer panel: columns k .. k+w-1 of F. The row moves of its 'count' inner
   panels are moves[first .. first+count-1]. */
struct hone_cuda_panel_info {
  int64_t k, w;
  int first, count;
};

/* A block column: columns j .. j+w-1. */
struct hone_cuda_column {
  int64_t j, w;
  cudaEvent_t fed, in_f, factored; /* A's columns are on the device; they are
                                      in F; they are factored */
  int applied;           /* panels that it has been brought up to date with */
  int64_t first, pieces; /* its first piece in the job, and how many it has */
  int64_t sent, arrived; /* pieces sent; nonzero: all, and fed is recorded */
};

/* Block columns that are being sent to the device: see feed/pieces.h. */
struct hone_cuda_job {
  hone_dense a;
  hone_cuda_column *column;
  int count;
  bool sends, projects;            /* A to the device; A: project.h */
  bool caller_helps;               /* while it waits */
  int64_t width, part_rows, parts; /* columns and rows of a piece, pieces of a
                                      column */
  int64_t column_pieces;           /* of the block columns; behind them come
                                      those that are not sent */
  int64_t pieces;                  /* in all */
  uint64_t next; /* the next one that a thread takes, and its buffer */
  int status;
  bool running;
};

/* A pinned buffer. */
struct hone_cuda_slot {
  unsigned char *memory;
  cudaEvent_t free; /* what was last sent from it is on the device */
};

/* The pinned buffers for pieces of A; bit k of a set stands for buffer k. */
struct hone_cuda_buffers {
  unsigned char *memory;
  size_t bytes;                     /* of one buffer */
  uint64_t free, ready;             /* sets: empty; filled and not sent */
  int64_t piece[HONE_CUDA_BUFFERS]; /* the number of a buffer's first piece, */
  int left[HONE_CUDA_BUFFERS];      /* and how many are not there yet */
  bool sending;                     /* a thread is sending what is ready */
  int waiting;                      /* filled, and not read by the device yet */
  bool streams, filled;             /* pieces are copied past the caches; many
                                       buffers waited at some time of the job */
  /* The device reads the buffers of the batches first .. last-1; batch k is at
     k % HONE_CUDA_BUFFERS. */
  uint64_t batch[HONE_CUDA_BUFFERS];
  cudaEvent_t done[HONE_CUDA_BUFFERS];
  int64_t first, last;
};

/* The projection of A that the threads take, or the device: feed/project.h. */
struct hone_cuda_projection {
  double *memory;     /* v, then the sums: hone_cuda_projection_room(n)
                         doubles; NULL: the engine takes no projection */
  double *there;      /* on the device: hone_cuda_projection_bytes(n) */
  bool by_device;     /* A lies there, and its projection is taken there; v and
                         the sums go through pinned memory */
  bool wanted, taken; /* of the present A; the sums are complete, or the device
                         has been told to take them, */
  bool added;         /* and out has been made of them */
  bool trans;         /* op(A) = A^T */
  int64_t parts;      /* sets of sums along columns */
  bool begun[HONE_CUDA_WORKERS]; /* the thread's sums along rows are set */
  hone_projection out;
};

/* The columns of A and F that a device has, where several devices share them
   (several/several.h): of panels of 'width' columns every one whose number is
   'first' modulo 'of'; in Cholesky's factorization they have all of F. of <= 1:
   this device has all columns. 'kept' is the
   number of panels of other devices for which this one has room as long as
   columns arrive (in Cholesky's, room for A's triangle suffices); 0: all of its
   columns come at once. 'window' is not 0 where
   the factors lie in host memory (outside/outside.h): then F has so many
   columns, which are those of one block column after the other, and no solves
   are made there. */
struct hone_cuda_deal {
  int64_t width;
  int of, first, kept;
  int64_t window;
};

/* Whether the engine is Cholesky's, the columns that it has, and how many more
   there is room for in F. */
struct hone_cuda_shape {
  bool spd;
  hone_cuda_deal deal;
  int64_t beside;
};

/* A right-hand side that is solved for beside the probes: solve/beside.cu. */
struct hone_cuda_companion {
  bool there, trans; /* trans: with S^T */
  int solves;        /* that it has gone through */
};

/* Enqueues c->w = op(A) v for k columns v on the device, where A is dealt to
   several; enqueue NULL: this device has all of A. */
struct hone_cuda_product {
  int (*enqueue)(void *ctx, bool trans, int64_t k, const hone_entry *v);
  void *ctx;
};

/* The room that products leave for a panel that is factored beside them. */
struct hone_cuda_room {
  int processors; /* multiprocessors that they may use; 0: all */
  double work;    /* floating-point operations until they may use all */
};

struct hone_cuda {
  int ordinal;                   /* the device's number, */
  int processors;                /* and how many multiprocessors it has */
  int64_t n, ld, lda, nb, strip; /* ld: floats from row to row of F; nb: columns
                                    of an outer panel; strip: columns updated at
                                    once */
  int64_t m; /* columns of A and F that this device has: n, unless they are */
  hone_cuda_deal deal; /* dealt to several; then */
  int64_t standing;    /* column j of the steps is this device's column
                          j + standing, which is where f stands */
  int64_t block;       /* columns of a block column, as the caller chose; 0: not
                          chosen */
  bool deterministic;  /* the weights of projections depend on n alone */
  bool may_be_kept;    /* by the process: kept.h, */
  int64_t keep_at_most; /* with so many bytes of device memory, for all that is
                           kept together */
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  hone_choices choices;
  enum hone_split pieces, wanted_pieces; /* in use; as the caller chose */
  bool tf32, wanted_tf32;                /* likewise */
  bool keep_safer; /* the next factorization uses the present pieces and tf32,
                      which are safer than those wanted */
  bool spd;        /* S = U^H U; lp: the rows of U again, row by row */
  cudaStream_t work, feed, fetch;   /* factorization; A comes to the device;
                                       pivots come to the host */
  cudaEvent_t pace[HONE_CUDA_PACE]; /* recorded behind the last panels, and
                                       behind blocks of residuals */
  cudaEvent_t residual_done;        /* recorded behind a residual */
  cudaEvent_t beside; /* where work leaves a stream for another, and returns */
  const hone_cublas *blas;
  cublasHandle_t handle;
  hone_cuda_room room; /* beside the present update */

  /* In device memory */
  hone_entry *copy; /* n x n: room for a copy of A; NULL: none is kept */
  hone_entry *a;    /* n x n, lda: that copy, or A itself where it lies in the
                       device's memory; NULL as copy */
  float *f;         /* F, ld */
  void *lp, *up;    /* 16-bit parts: of a panel of L, row by row (ldl each); of
                       its rows of U in one strip of columns (ldu each) */
  int64_t ldl, ldu;
  float *stage; /* two buffers of stage_columns columns (ld each) of floats
                   that wait to go into F; only where A is not kept */
  int64_t stage_columns;
  void *blas_work;
  float *constants; /* 1, 0, -1, 0, and then 1, 0, 0, 0 in double: numbers, or
                       the parts of complex ones */
  hone_split_scale *scale; /* for each block column */
  unsigned *top;           /* for each: max |s_ij| as bits; then max |u_ij| */
  int *flags; /* first zero pivot, overflow, whether A is not symmetric */
  unsigned long long *flushed; /* nonzero entries that became 0 */
  hone_panel_room panel_work;
  hone_moves *moves;   /* of all inner panels */
  int *dst, *src;      /* the row moves of an outer panel, composed: 2 nb and
                          4 nb entries */
  int *perm, *new_row; /* n each: row i of F was row perm[i] of S, which is now
                          row new_row[perm[i]] = i */
  int *identity;       /* n: 0, 1, ... */
  double *lower,
      *upper; /* inverses of the diagonal blocks: solve/triangles.h */
  hone_triangle_work triangles;
  double *v, *w;      /* n x hone_cuda_columns(n) entries each, */
  hone_entry *probes; /* and here: solve/probe.cu, refined.cu */
  void *residual_work;
  double *magnitudes; /* of A: row_max, row_sum, col_max, col_sum; n each */
  double *row, *col;  /* scaling */

  /* In pinned host memory, and the columns that go through it */
  hone_cuda_buffers buffers;
  hone_cuda_slot staged[HONE_CUDA_STAGES];
  size_t stage_bytes;  /* of one of them */
  int64_t stages_used; /* so far, counted on */
  hone_cuda_job job;
  hone_cuda_column whole; /* columns that come at once, not by block columns */
  hone_cuda_projection projection; /* memory of the host, not pinned */
  int64_t pinned;  /* bytes of all pinned memory, counted in mem */
  double *h_v;     /* n x HONE_CUDA_H_V_PARTS entries: see below */
  unsigned *h_top; /* the host's copy of top */
  float *col_max;  /* n; where the host rounds */

  /* The matrix that is factored */
  const hone_entry *source;   /* the caller's A, or NULL: none */
  int64_t fed;                /* columns of A on the device, */
  int64_t inspected;          /* and those of them that are in magnitudes */
  bool original_readable;     /* the device can read the caller's memory: */
  const hone_entry *original; /* A there, */
  int64_t original_ld;        /* its leading dimension; */
  bool original_on_device; /* it is device memory, and the host has no copy; */
  bool in_place;           /* nor has the device: a is A itself */
  bool one_triangle;       /* only the lower triangle of A is sent */
  bool mirrored; /* several devices: the upper one has been made of it */
  uint32_t *mirror_keys; /* HONE_PARTS n, of Cholesky */
  uint64_t asymmetry; /* hone_mirror_sum of the upper triangle less that of the
                         lower: not 0 where A is not symmetric */
  int64_t nonfinite;  /* 1 + a column of this device with an entry that a thread
                         looked at and found not finite; 0: none */
  bool scaled;
  bool arriving;    /* A comes by block columns while it is being factored */
  bool reused;      /* A was on the device already */
  int64_t serial;   /* of that A (base/dense.h) */
  bool uninspected; /* factored before its inspection, without scaling: the next
                       factorization may be of the same A */
  int64_t host_flushed; /* as *flushed, of entries that the host rounded */
  hone_cuda_column *columns;
  int column_count, column_room; /* loaded; at most */
  int coming;                    /* while A arrives: how many there will be */
  hone_cuda_panel_info *panels;
  int panel_count, panel_room, moves_count, moves_room;
  int split_panel;     /* the panel whose parts lp holds; -1: none */
  int64_t split_end;   /* Cholesky: lp has its columns up to here */
  int64_t ahead_end;   /* LU: while a panel is factored, the columns behind it
                          up to here are updated; 0: none */
  bool rows_alone;     /* but its rows of U alone are computed there */
  int64_t searched;    /* the largest entry of so many rows of U is known */
  int64_t behind_end;  /* the present products begin with the columns up to
                          here, those of the panel behind the next one; 0: with
                          all */
  hone_task meanwhile; /* what the host does in the present factorization
                          while the device completes it, or NULL; with */
  void *meanwhile_ctx;
  cudaEvent_t seen;     /* recorded behind the last inspection of columns, */
  cudaEvent_t factored; /* and behind a factorization */
  bool probing_ahead;   /* a first step of probes has been begun: */
  hone_probe_step expected; /* this one */
  bool solve_expected;      /* a solve with the next residual as right-hand
                               side will follow */
  bool solving_ahead;       /* such a solve has been begun, */
  bool solving_ahead_trans; /* with S^T */
  hone_cuda_companion companion;
  hone_cuda_product product;
  hone_account used;

  hone_cuda_forms forms;
};

/* Returns true if the next panel's columns are updated on a stream of their
   own: not 'work'. */
inline bool hone_cuda_ahead_is_apart(const hone_cuda *c) {
  return c->forms.ahead.stream && c->forms.ahead.stream != c->work;
}

/* Parts of h_v, in multiples of n entries, through which right-hand sides go
   and results come: the columns of a solve, a residual's x, b, r and
   denominators, the solution for r, perm, as ints, and a projection. Transfers
   that are waited for at once use the first part. */
enum hone_cuda_part_of_h_v {
  HONE_CUDA_SOLVES = 0,
  HONE_CUDA_OUTCOME = HONE_CUDA_COLUMNS - 2, /* of a factorization: behind what
                                                a step of probes puts there */
  HONE_CUDA_X = HONE_CUDA_COLUMNS,
  HONE_CUDA_B,
  HONE_CUDA_R,
  HONE_CUDA_DEN,
  HONE_CUDA_AHEAD,
  HONE_CUDA_PERM,
  HONE_CUDA_WEIGHTS, /* of a projection, and the three */
  HONE_CUDA_H_V_PARTS = HONE_CUDA_WEIGHTS + 4 /* arrays of its sums */
};
inline double *hone_cuda_pinned(const hone_cuda *c,
                                hone_cuda_part_of_h_v part) {
  return c->h_v + part * c->n * HONE_PARTS;
}

/* Return v and w as entries. */
inline hone_entry *hone_cuda_v(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(c->v);
}
inline hone_entry *hone_cuda_w(const hone_cuda *c) {
  return reinterpret_cast<hone_entry *>(c->w);
}

/* Returns true if a solve is with a transpose that is not S itself. */
inline bool hone_cuda_transposes(const hone_cuda *c, bool trans) {
  return trans && (!c->spd || HONE_PARTS > 1);
}

/* Forgets what was announced, and waits for what was begun early: the host will
   write to the buffers that it uses. */
inline int hone_cuda_forget(hone_cuda *c) {
  const bool begun = c->solving_ahead || c->probing_ahead;
  c->solve_expected = c->solving_ahead = c->probing_ahead = false;
  return begun ? CALL(cudaStreamSynchronize(c->work)) : (int)HONE_OK;
}

/* Returns the address of f_ij. */
inline float *hone_cuda_f_at(const hone_cuda *c, int64_t i, int64_t j) {
  return c->f + i * c->ld + HONE_PARTS * j;
}

/* Return the addresses of constants on the device: -1 in single precision; 1 in
   double, and behind it 0. */
inline const float *hone_cuda_minus_one(const hone_cuda *c) {
  return c->constants + 2;
}
inline const double *hone_cuda_unit(const hone_cuda *c) {
  return reinterpret_cast<const double *>(c->constants + 4);
}

/* Returns the number in A of this device's column j. */
inline int64_t hone_cuda_dealt_column(const hone_cuda *c, int64_t j) {
  const hone_cuda_deal *d = &c->deal;
  return d->of <= 1
             ? j
             : (j / d->width * d->of + d->first) * d->width + j % d->width;
}

inline int64_t round_up(int64_t v, int64_t to) {
  return (v + to - 1) / to * to;
}

/* Returns the numbers before F in the memory of one of several devices, which
   has all of F in Cholesky's factorization. */
inline int64_t hone_cuda_lead(const hone_cuda *c) {
  return c->deal.of <= 1 || c->spd
             ? 0
             : HONE_PARTS * round_up(c->n, HONE_CUDA_PADDING);
}

/* Return how the report names the products and the pivoting of an LU. */
inline const char *hone_cuda_arithmetic_name(const hone_cuda *c) {
  const char *const names[] = {"fp32", "fp16x3", "bf16x3", "fp16", "bf16"};
  return c->tf32 ? "tf32" : names[c->pieces];
}
inline const char *hone_cuda_pivoting_name(const hone_cuda *c) {
  if (c->choices.pivoting == HONE_PIVOT_BLOCK)
    return "pivoting in the diagonal block";
  return c->choices.pivoting == HONE_PIVOT_NONE ? "no pivoting"
                                                : "tournament pivoting";
}

/* Returns the end of the columns that are in F. */
inline int64_t hone_cuda_loaded_end(const hone_cuda *c) {
  const hone_cuda_column *last = c->columns + c->column_count - 1;
  return last->j + last->w;
}

/* Returns the stream on which A is inspected: beside the factorization where
   that need not wait for it. */
inline cudaStream_t hone_cuda_inspects_on(const hone_cuda *c) {
  return c->in_place || c->spd ? c->feed : c->work;
}

/* Returns true if all columns of the matrix last fed are on the device, and
   stay there. */
inline bool hone_cuda_has_all_of_a(const hone_cuda *c) {
  return c->a && c->fed == c->m;
}

#endif
