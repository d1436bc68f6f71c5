/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky's factorization in single precision on several GPUs of one
   host (docs/several.md). A is dealt to the devices by panels of columns, all
   rows of them: device d of k has the panels d, d + k, d + 2k, ... Each device
   has a state of the engine for one device (state.h) with its own columns
   alone, and the steps of the factorization are those of factor/lu.cu and
   factor/cholesky.cu. Panels are numbered from 0 on; panel p has the columns
   and rows p nb .. p nb + nb - 1 of S. In the LU, F is dealt as A is; in
   Cholesky's factorization every device has all of F, and makes the rows of U
   of its own panels.

   A kernel touches the memory of its own device only: what another one needs is
   sent by copies between devices, which the driver stages through the host
   where they cannot reach each other. Read next: factor.cu, lu.cu, cholesky.cu,
   arrive.cu, outcome.cu, mirror.cu, solve.cu, sweeps.h, steps.cu, passes.cu,
   residuals.cu, and engine.cu for creation. */
#ifndef HONE_CUDA_SEVERAL_H
#define HONE_CUDA_SEVERAL_H

#include "gpu_sp/state.h"

enum {
  HONE_SEVERAL_MOST = 16,    /* devices */
  HONE_SEVERAL_SLOTS = 4,    /* panels of others for which a device has room,
                                beside those that are kept */
  HONE_SEVERAL_PARTS = 8,    /* by which A comes, at most */
  HONE_SEVERAL_WIDEST = 512, /* columns of a panel, at most */
  HONE_SEVERAL_COLUMNS = 16, /* right-hand sides of a solve at once */
  HONE_SEVERAL_SUMS = 2 * HONE_PARTS + 1 /* doubles of a projection for each
                                            column or row of A */
};

/* One device's part. */
struct hone_share {
  hone_cuda *c;
  float *allocated; /* F; in the LU behind as many numbers as it has columns in
                       all: c->f stands beside F while a panel is worked on */
  float *f;
  int64_t padded; /* own columns; in the LU with those that pad them, and behind
                     them are the slots for L of others, and room for L that is
                     kept */
  cudaStream_t arrive; /* panels of others come */
  /* By slot, that is by the number of the panel modulo HONE_SEVERAL_SLOTS: */
  cudaEvent_t factored[HONE_SEVERAL_SLOTS]; /* this device's panel is */
  cudaEvent_t got[HONE_SEVERAL_SLOTS];      /* another one's L has arrived, */
  cudaEvent_t used[HONE_SEVERAL_SLOTS];     /* and is needed no more */
  cudaEvent_t ready;  /* the columns of this device's next panel are up to
                         date */
  cudaEvent_t pushed; /* what another device, or this one's stream feed, waits
                         for is there */
  int64_t brought;    /* rows of F that have been sent to where all of F is */
  hone_entry *gather; /* of the LU: sums from the other devices, solve.cu; of
                         Cholesky: their columns of A, mirror.cu */
};

struct hone_several;

/* The steps of one of the two factorizations. */
struct hone_several_steps {
  /* Factors panel p on its owner. */
  int (*factor)(hone_several *s, int p);
  /* Brings share d up to date with panel p. */
  int (*apply)(hone_several *s, int d, int p);
  /* Updates what share d has of S for its columns c0 .. c1-1, which came later,
     by panel p. */
  int (*update)(hone_several *s, int d, int p, int64_t c0, int64_t c1);
  /* Makes what the solves need. */
  int (*finish)(hone_several *s);
};
extern const hone_several_steps hone_several_lu_steps,
    hone_several_cholesky_steps;

struct hone_several {
  bool spd; /* S = U^H U */
  const hone_several_steps *steps;
  hone_choices choices; /* of the caller, and the columns of a block column */
  int64_t block;
  bool may_be_kept; /* by the process: kept.cu */
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  int count; /* of shares */
  hone_share share[HONE_SEVERAL_MOST];
  int64_t n, nb;
  int panels;
  /* A comes by so many parts; part g begins with panel first[g]: arrive.cu. The
     first 'loaded' parts are in F. Of these the first 'level' are updated by
     every panel as it comes, the others are up to date with the panels before
     number applied[g]. */
  int parts, loaded, level;
  int first[HONE_SEVERAL_PARTS + 1], applied[HONE_SEVERAL_PARTS];
  int kept;     /* LU: L of the panels before this one is kept on all devices
                   until all parts are level */
  int mirrored; /* Cholesky: the panels before this one are in the upper
                   triangle of A: mirror.cu */
  double *sums; /* HONE_SEVERAL_SUMS n: the projection of A, made of those of
                   all shares */
  hone_projection projection;
  int residuals; /* since creation */
  /* LU: all of F on the first share's device, n x n, for the solves, which are
     there as with one device; NULL: it has no room for it, and the solves are
     where the factors are. */
  float *whole;
  int64_t whole_ld;
};

/* Makes the share's device the current one. */
inline int hone_several_enter(const hone_share *share) {
  return CALL(cudaSetDevice(share->c->ordinal));
}

/* Waits for the stream 'work' of all shares, whatever st is; returns st, or
   else the first failure. */
int hone_several_wait(hone_several *s, int st);

/* Returns the number of the share that has panel p. */
inline int hone_several_owner(const hone_several *s, int p) {
  return p % s->count;
}
/* Returns the first column of panel p in S, and how many it has. */
inline int64_t hone_several_start(const hone_several *s, int p) {
  return p * s->nb;
}
inline int64_t hone_several_width(const hone_several *s, int p) {
  const int64_t left = s->n - p * s->nb;
  return left < s->nb ? left : s->nb;
}
/* Returns the place of panel p among its owner's columns. */
inline int64_t hone_several_place(const hone_several *s, int p) {
  return p / s->count * s->nb;
}
/* Returns the first column of panel p in its owner's F. */
inline int64_t hone_several_in_f(const hone_several *s, int p) {
  return s->spd ? hone_several_start(s, p) : hone_several_place(s, p);
}
/* Returns how many columns of panels before number p share d has. */
inline int64_t hone_several_before(const hone_several *s, int d, int p) {
  const int64_t columns =
      p > d ? (int64_t)((p - d - 1) / s->count + 1) * s->nb : 0;
  return columns < s->share[d].c->m ? columns : s->share[d].c->m;
}

/* Returns where share d has L of panel p: among its own columns, in the room
   for what is kept, or in a slot. */
inline int64_t hone_several_place_of_l(const hone_several *s, int d, int p) {
  const hone_share *share = &s->share[d];
  if (d == hone_several_owner(s, p))
    return hone_several_place(s, p);
  if (p >= s->kept)
    return share->padded + p % HONE_SEVERAL_SLOTS * s->nb;
  return share->padded + HONE_SEVERAL_SLOTS * s->nb + p * s->nb -
         hone_several_before(s, d, p);
}
/* Returns the end of share d's columns of the first 'parts' parts. Those that
   pad its own belong to the last part. */
inline int64_t hone_several_end(const hone_several *s, int d, int parts) {
  return parts < s->parts ? hone_several_before(s, d, s->first[parts])
                          : s->share[d].padded;
}

/* Lets the steps see F as it lies. */
inline void hone_several_stand_back(hone_share *share) {
  share->c->f = share->f;
  share->c->standing = 0;
}
/* Returns the queue on which the share factors panels. */
inline const hone_cuda_queue &
hone_several_panel_queue(const hone_share *share) {
  const hone_cuda_forms &f = share->c->forms;
  return f.side.stream ? f.side : f.main;
}

/* engine.cu. Accepts an engine whose creation failed anywhere. */
void hone_several_destroy(void *self, hone_mem *mem);

/* kept.cu, as gpu_sp/kept.h. Returns a kept engine that serves config with so
   many devices from the current one on, or NULL. */
hone_several *hone_several_take_kept(bool spd, const hone_engine_config *config,
                                     int count);
bool hone_several_keep(hone_several *s);
int64_t hone_several_release_kept();
int64_t hone_several_kept_bytes();

/* arrive.cu. Sets parts and first. by_parts false: A comes at once. */
void hone_several_set_parts(hone_several *s, const hone_choices *choices,
                            bool by_parts);
/* Lets A begin to come, and loads the first part. */
int hone_several_begin(hone_several *s, const hone_dense *a,
                       const hone_scaling *scaling);
/* Loads the parts that have arrived, and updates them by panels before p, the
   part that begins with panel p + 1 by all of these. */
int hone_several_load(hone_several *s, const hone_dense *a,
                      const hone_scaling *scaling, int p);
/* mirror.cu, of Cholesky: enqueues, on the streams feed, what gives every
   device the rows of panels before number 'to' in its columns of A's upper
   triangle, when A has come. Behind the last panel A is inspected. */
int hone_several_mirror(hone_several *s, int to);
/* Returns when nothing reads the caller's matrix any more. */
void hone_several_stop(hone_several *s);

/* outcome.cu, of the LU. Where the first device has all factors (s->whole):
   sends it, when panel p has been applied to share d and all of A is up to
   date, those of its rows that change no more, if they are at least half of
   what it has not sent yet. */
int hone_several_bring(hone_several *s, int d, int p);
/* Finds max |u_ij| of share d's columns; sends what is left of them, or inverts
   their diagonal blocks. */
int hone_several_finish(hone_several *s, int d);
/* Then, for all of F: waits, on the device, and inverts its diagonal blocks. */
int hone_several_finish_together(hone_several *s);
/* Finds growth, the first zero pivot and the number of flushed entries, for
   both factorizations. */
int hone_several_outcome(hone_several *s, bool complete,
                         hone_factor_info *info);

/* passes.cu. Do all shares have all columns of this matrix? */
bool hone_several_has_all_of(const hone_several *s, const hone_matrix *a);
/* Copies the entries of v for the share's columns. */
void hone_several_take_dealt(const hone_cuda *c, const hone_entry *v,
                             hone_entry *to);
/* Adds v to hi + lo in double-double. */
inline void hone_several_add(double v, double *hi, double *lo) {
  const double t = *hi + v, z = t - *hi;
  *lo += (*hi - (t - z)) + (v - z);
  *hi = t;
}

/* Enqueues p = op(A) x for k vectors on the device and the columns of A that it
   has: of x it takes the entries for these, or, with A^T, gives those of p. */
int hone_several_multiply_share(hone_cuda *c, bool trans, int64_t k,
                                const hone_entry *x, hone_entry *p);

/* While it exists, the state of the first share, which has all factors, sees
   them. */
class hone_several_all_factors {
public:
  explicit hone_several_all_factors(hone_several *s)
      : share(&s->share[0]), ld(share->c->ld) {
    if (s->whole) {
      share->c->f = s->whole;
      share->c->ld = s->whole_ld;
    }
  }
  ~hone_several_all_factors() {
    share->c->f = share->f;
    share->c->ld = ld;
  }
  hone_several_all_factors(const hone_several_all_factors &) = delete;
  hone_several_all_factors &
  operator=(const hone_several_all_factors &) = delete;

  hone_share *const share;

private:
  const int64_t ld;
};

/* Members of the engine table. */
int hone_several_factor(void *self, const hone_matrix *a,
                        const hone_scaling *scaling, hone_factor_info *info);
int hone_several_solve(void *self, bool trans, int64_t k, hone_entry *v,
                       int64_t ldv);
int hone_several_inspect(void *self, const hone_matrix *a,
                         const hone_scaling *scaling, double *scratch,
                         hone_inspection *seen);
int hone_several_residual(void *self, const hone_matrix *a, bool trans,
                          const hone_entry *x, const hone_entry *b,
                          hone_entry *r, double *den);
int hone_several_residuals(void *self, const hone_matrix *a, bool trans,
                           const hone_residual_block *block);
int hone_several_product(void *self, const hone_matrix *a, bool trans,
                         int64_t k, const hone_entry *x, hone_entry *p);
const hone_projection *hone_several_projection(void *self, const hone_matrix *a,
                                               bool trans);
int hone_several_probe_step(void *self, const hone_matrix *a,
                            hone_probe_step *step);
int hone_several_probed(void *self, const hone_probe_step *step,
                        const hone_probed *wanted);
int hone_several_solve_refined(void *self, hone_refined_solve *job);

#endif
