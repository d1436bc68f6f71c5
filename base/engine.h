/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine interface: everything that refinement needs of a factorization,
   whatever its precision and wherever it runs. Vectors are in double precision
   and in host memory; rounding, copies and streams are left to the engine. Read
   operator.h, the interface to a matrix, first. */
#ifndef HONE_ENGINE_H
#define HONE_ENGINE_H

#include "api/hone_tuning.h"
#include "base/operator.h"
#include "base/projection.h"

enum {
  HONE_SOLVE_COLUMNS = 128, /* the most right-hand sides of one call */
  HONE_BLOCK_COLUMNS = 64   /* as many where more gain nothing */
};

/* Settings of a GPU factorization that tests and benchmarks make beside the
   caller's choices. Every member may be 0: then it has the value that was
   measured to be best (docs/performance.md). */
typedef struct hone_trial {
  int64_t cpu_from;   /* with HONE_DIAGONAL_CPU: the CPU has the diagonal blocks
                         while at least so many columns remain. 0: while the
                         update is long enough to hide that */
  int64_t hides_from; /* and with that many columns left it is, where the
                         products are made of three FP16 products each */
  int64_t ahead_from; /* orders from which the next panel is factored beside
                         the update */
  int64_t stream_from; /* orders from which the next panel's columns are updated
                          on a stream of their own, while one is factored */
  int64_t products_from; /* rows below a panel from which the products beside it
                         take longer than it does: see outer_panels.cu */
  int64_t one_slot_from; /* orders from which one inner panel's L has room for
                            that, not those of an outer panel */
  int64_t outer;         /* columns of an outer panel */
  int64_t strip;         /* columns that the trailing update takes at once */
  double beside;         /* floating-point operations of products that one
                            multiprocessor is given while an inner panel is
                            factored beside them */
  int64_t diagonal;      /* rows of a product along the diagonal, of Cholesky */
  int64_t feed;      /* 1 + the number of the list of parts by which A comes;
                        the lists are in gpu_sp/factor/load.cu */
  int64_t part_rows; /* rows of a panel that go into one launch; at least two
                        inner panels' widths */
  int together;      /* right-hand sides that go through a solve together: 1,
                        2, 4, 8 or 16 */
  int corrections;   /* of a seeded section, before it is solved directly; -1:
                        none */
  int64_t logical;   /* so many parts of one device take the place of several */
  int64_t apart;     /* nonzero: the factors on several devices stay there */
  int64_t portion;   /* systems of a batch that go to the device at once */
  int64_t copier;    /* bytes of a batch's results that are worth a thread that
                        copies them; short calls have them copied, too */
  int64_t window;    /* columns of a block column of factors that lie in host
                        memory; these are then made at any order */
} hone_trial;

/* The caller's choices for a GPU factorization: values of hone_tuning.h. */
typedef struct hone_choices {
  int arithmetic, pivoting, diagonal, sections, residuals;
  int64_t device_limit; /* bytes of device memory; 0: what is free */
  int devices;          /* GPUs of an engine for several; < 0: all */
  hone_trial trial;     /* zeros, but in tests and benchmarks */
} hone_choices;

/* Where an engine of a device puts factors P S = L U that do not fit there, in
   LAPACK's form, for an engine of the host, which owns the arrays. */
typedef struct hone_host_factors {
  hone_single *f; /* n x n, ld, column by column */
  int64_t ld;
  int *pivot;     /* n: row exchanges, from 1 */
  float *col_max; /* n: max |s_ij| of each column */
} hone_host_factors;

typedef struct hone_engine_config {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  int64_t block;      /* columns of a block column; 0: the engine's choice */
  bool deterministic; /* results have the same bits in every run */
  bool keep; /* when it is destroyed the engine may be kept by the process,
                for the next one of the same order */
  hone_choices choices;
  const hone_structure *structure;       /* of the matrix given to factor, for
                                            engines that ask for it; borrowed */
  const hone_host_factors *host_factors; /* NULL, or of an engine that puts its
                                            factors there; copied */
  char *why; /* NULL, or a buffer into which a create that fails may write the
                reason, in one line */
  size_t why_size;
} hone_engine_config;

/* The resources that an engine has used since it was created. */
typedef struct hone_account {
  char text[96]; /* the method: "fp16x3, tournament pivoting" */
  int64_t device_bytes, to_device, from_device;
  int64_t device_most;    /* a quarter of the device's memory; 0: not known */
  int residuals;          /* residuals computed by the engine */
  double diagonal_ms;     /* CPU and transfer time of diagonal blocks */
  double exposed_ms;      /* the part of it that no other work overlapped */
  int sections;           /* Crout sections solved by iteration */
  int sweeps, sweeps_max; /* iterations of all sections, and the most of one */
  int fallback;           /* sections that were solved by TRSM in the end */
} hone_account;

/* The result of a factorization. Factor sets every field. */
typedef struct hone_factor_info {
  double growth;      /* max |u_ij| / max |s_ij| (Cholesky: max u_ij^2 / max
                         |s_ij|); NaN or Inf: broke down */
  int64_t zero_pivot; /* column of the first pivot that is exactly zero
                         (Cholesky: not positive), or -1 */
  bool replaced;      /* LU: pivots of zero were replaced by tiny ones, and the
                         factors are complete: those of a matrix beside S */
  bool rounding;      /* Cholesky: that pivot is so near to 0 that rounding may
                         be the cause, and S may be definite all the same */
  int64_t flushed;    /* nonzero entries of S too small for the precision */
  bool hopeless; /* judged early or at the end: the pivots fall so fast that
                    refinement with the factors would not converge */
} hone_factor_info;

/* Corrections are relaxed only where the eigenvalue that prevails in E is at
   most the first number, so that corrections converge fast, and where that
   leaves at most the second part of u, in squares, of what is left without it:
   otherwise no eigenvalue prevails. */
#define HONE_RELAXATION_CONVERGES 0.5
#define HONE_RELAXATION_PREVAILS 0.01

/* One step of random probes (refine/probes.c) where the engine keeps A: v = E v
   for random vectors, E = I - inv(M) op(S), and y = y + inv(M) (h - op(S) y)
   for random right-hand sides h, in double. v, h and y stay there. */
enum { HONE_SOLUTIONS_MOST = 4 };
typedef struct hone_probe_step {
  const hone_scaling *scaling;
  bool trans; /* op(S) = S^T */
  bool first; /* v and h are drawn, column by column, and y begins as 0 */
  int vectors, solutions; /* how many v and y; solutions 0: y stays as it is */
  int dropped;            /* so many of the first v are not used any more */
  uint64_t seed, solutions_seed; /* of v and of h */
  /* NULL, or a right-hand side of the caller's, n, which an engine that has
     solved_beside may solve for in the first steps; read by the first one. */
  const hone_entry *beside;
  /* The last of the vectors that are not used any more is u: v and y are made
     v - omega inv(M) op(S) v and y + omega inv(M) (h - op(S) y), with the omega
     of refine/relaxation.h. */
  bool relaxes;
  bool estimates; /* estimate ||inv(S)||_1 by one gradient step from a y, */
  int from;       /* the number of that y, which the step before has left */
  double *row_squares; /* n: becomes the sums of squares of the rows of v */
  /* Set by the step: */
  double squares, largest; /* of v: the sum of squares, the largest entry */
  double first_squares;    /* of the first of the v in use alone */
  hone_entry excess;       /* omega - 1, if the step relaxes */
  double solution_squares[HONE_SOLUTIONS_MOST]; /* of each y */
  double inverse_norm; /* if the step estimates: what the factors give */
} hone_probe_step;

/* Where to put what the last step left. */
typedef struct hone_probed {
  int solution;            /* the y that is wanted; -1: none */
  hone_entry *solution_to; /* n */
  double *inverse_norm;    /* NULL, or an estimate from y number 'from' */
  int from;
} hone_probed;

/* The vectors of k residuals, n entries each. */
typedef struct hone_residual_block {
  int64_t k;
  const hone_entry *const *x, *const *b;
  hone_entry *const *r; /* written; apart from x and b */
  double *const *den;   /* written; NULL: not wanted */
  bool plain;           /* r may have an error of hone_plain_terms(n) eps
                           |op(A)| |x|, or */
  bool rough;           /* of hone_block_terms(n) eps^2 (|op(A)| |x| + |b|) */
} hone_residual_block;
/* Returns how many rounding errors a matrix product in double makes whose sums
   are made in HONE_PLAIN_PARTS parts. */
enum { HONE_PLAIN_PARTS = 16 };
static inline int64_t hone_plain_terms(int64_t n) {
  return HONE_ROUNDINGS * (n / HONE_PLAIN_PARTS + HONE_PLAIN_PARTS + 2);
}
/* Returns how many rounding errors eps^2 a rough residual of one of several
   columns has on a device, of |op(A)| |x| + |b|: HONE_BLOCK_TERMS beside those
   of adding up its parts (gpu_sp/residual/many.cu). */
enum { HONE_BLOCK_TERMS = 168 * 64 };
static inline int64_t hone_block_terms(int64_t n) {
  return HONE_ROUNDINGS * (HONE_BLOCK_TERMS + 8 * n + 16); /* rounded up */
}
/* Returns how many rounding errors eps^2 of |op(A)| |x| + |b| any residual in
   double-double has beside the rounding of r (docs/numerics.md, Noise). */
static inline int64_t hone_pair_terms(int64_t n) {
  return HONE_PARTS == 1 ? 6 * n + 16 : 22 * n + 48;
}

/* A solve for k <= HONE_SOLVE_COLUMNS columns whose solutions are refined in
   double with the copy of A that the engine keeps. */
typedef struct hone_refined_solve {
  const hone_matrix *a;
  const hone_scaling *scaling; /* S = R A C */
  bool trans;                  /* S^T */
  int most;                    /* corrections at most */
  int64_t k, ldv;
  hone_entry *v;   /* becomes inv(S) v or inv(S^T) v, as by solve */
  int corrections; /* set: so many were made, at most, to a column */
} hone_refined_solve;

/* The table of functions of an engine.

   A resident engine accepts NULL as the scaling in factor: it then factors
   S = A, and the caller decides by inspect whether A needed scaling.

   Factor returns HONE_OK with info filled (growth not finite, a zero pivot
   and hopeless are results, not errors), or HONE_NO_MEMORY, HONE_CANCELLED,
   HONE_DEVICE_FAILED. */
typedef struct hone_engine {
  const char *name;  /* "single LU" */
  const char *place; /* "CPU" */
  int precision;     /* 32 or 64 */
  bool symmetric;    /* serves positive definite S only: where it fails, any
                        other engine may do better */
  bool spare;        /* serves where others have no memory on a device: what it
                        has there is not enough for them */
  bool wide;         /* solves for HONE_SOLVE_COLUMNS right-hand sides in less
                        time than for HONE_BLOCK_COLUMNS twice */
  bool other_pivots; /* takes other pivots than partial pivoting of S does, for
                        matrices whose factors grow with those */
  /* Returns true if the engine serves matrices of this structure; NULL: it
     serves all. An engine that has this function and is not 'symmetric' is
     direct: it relies on zeros of A that are exact, so that no other engine of
     its precision does better. It may read the caller's matrix in solve. */
  bool (*applies)(const hone_structure *structure, int64_t n);
  /* Returns true if the engine can be used now; if not, why has the reason. */
  bool (*probe)(char *why, size_t why_size);
  int (*create)(void **self, const hone_engine_config *config);
  int (*factor)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                hone_factor_info *info);
  /* The next factor calls run(ctx, 0) once, when the device alone still has
     work to do, unless it fails before or finds its pivots hopeless. run may
     call inspect and expect_probes. NULL: factor does not. */
  void (*meanwhile)(void *self, hone_task run, void *ctx);
  /* Computes v = inv(S) v or inv(S^T) v in place, for k <= HONE_SOLVE_COLUMNS
     columns, ldv >= n. Entries of v are at most 1 in magnitude. */
  int (*solve)(void *self, bool trans, int64_t k, hone_entry *v, int64_t ldv);
  /* Does the same with the factors applied in double arithmetic, so that only
     the error of the factors remains. NULL: solve does so already. */
  int (*apply)(void *self, bool trans, int64_t k, hone_entry *v, int64_t ldv);
  /* Does what solve does, and refines the result until corrections no longer
     shrink. HONE_NO_DEVICE: v is as it was, and solve serves instead. NULL: it
     always does. */
  int (*solve_refined)(void *self, hone_refined_solve *job);
  /* Does the same for one column if v is a multiple, by a power of two, of the
     right-hand side that the last steps of probes were given; its bits depend
     on A and v alone. Otherwise HONE_NO_DEVICE. NULL: the same. */
  int (*solved_beside)(void *self, hone_refined_solve *job);
  void (*destroy)(void *self, hone_mem *mem);
  /* Returns the bytes of host memory it holds for order n and k columns. */
  int64_t (*bytes)(int64_t n, int64_t k);
  /* Finds row and column of S, from 0, of the smallest pivot. If replace_zeros
     is true, pivots of zero become tiny, so that solve gives vectors that S
     nearly maps to zero; the factors then serve no other purpose. NULL: the
     engine does not know its pivots. */
  void (*smallest_pivot)(void *self, bool replace_zeros, int64_t *row,
                         int64_t *col);
  /* Returns true if the engine keeps a copy of A where it runs; then inspect
     and residual may be called. NULL: it keeps none. */
  bool (*resident)(void *self);
  /* Returns that copy, n x n with leading dimension *ld in the memory of the
     device, if it is complete and is this very A; otherwise NULL. It stays
     until the next factor or destroy. NULL: the engine lends none. */
  const hone_entry *(*lend)(void *self, const hone_matrix *a, int64_t *ld);
  /* The next factor takes A from this copy, which is not written, instead of
     the caller's memory. NULL: the engine cannot. */
  void (*borrow)(void *self, const hone_entry *copy, int64_t ld);
  /* Inspects the A last given to factor: writes the maxima of |s_ij| by rows
     and columns to out, and the sums by rows and by columns to scratch (n
     each). */
  int (*inspect)(void *self, const hone_matrix *a, const hone_scaling *scaling,
                 double *scratch, hone_inspection *out);
  /* Computes r = b - op(A) x in double-double and den = |op(A)| |x| + |b|; n
     each. */
  int (*residual)(void *self, const hone_matrix *a, bool trans,
                  const hone_entry *x, const hone_entry *b, hone_entry *r,
                  double *den);
  /* Does so for several columns, with the same bits unless they may be plain;
     on any other status than HONE_OK some may be written. NULL: residual serves
     for each. */
  int (*residuals)(void *self, const hone_matrix *a, bool trans,
                   const hone_residual_block *block);
  /* Returns the projection of op(A) that was taken of the caller's A itself
     when the engine read it, by the host, or by the device in whose memory A
     lies; NULL: there is none for this matrix and transpose. The engine owns it
     until factor, destroy, or the next call for the other transpose. NULL: the
     engine takes none. */
  const hone_projection *(*projection)(void *self, const hone_matrix *a,
                                       bool trans);
  /* Computes p_c = op(A) x_c in double for k columns of n entries each, k <=
     HONE_SOLVE_COLUMNS. NULL: residual serves instead. */
  int (*product)(void *self, const hone_matrix *a, bool trans, int64_t k,
                 const hone_entry *x, hone_entry *p);
  /* Makes a step of random probes with the A last given to factor, and fetches
     what the last step left. NULL, or any other status than HONE_OK: product
     and solve serve instead. */
  int (*probe_step)(void *self, const hone_matrix *a, hone_probe_step *step);
  int (*probed)(void *self, const hone_probe_step *step,
                const hone_probed *wanted);
  /* Announces the first step of probes that will probably be made next; the
     engine may begin it early. Its outcome does not depend on it. NULL: the
     engine has no use for it. */
  void (*expect_probes)(void *self, const hone_matrix *a,
                        const hone_probe_step *step);
  /* Announces that the next residual will probably be followed by a solve with
     the same op(A) for its r, times a power of two; the engine may begin that
     solve early. The result of solve does not depend on it. NULL: the engine
     has no use for it. */
  void (*expect)(void *self);
  void (*account)(void *self, hone_account *account);
  /* Frees all that the process keeps for later engines; returns how many bytes
     of device memory that was. NULL: nothing is kept. */
  int64_t (*release)(void);
  /* Returns the bytes of device memory that create takes, with a copy of A or
     without; it reads only n, block and choices of config. NULL: the engine
     uses no device. */
  int64_t (*device_bytes)(const hone_engine_config *config, bool resident);
} hone_engine;

/* There is one const table for each engine; api/engines.c tells refinement
   which to use. hone_engine_outside_cuda is the device's part of
   hone_engine_outside, and has no solve. */
extern const hone_engine hone_engine_single, hone_engine_single_cuda,
    hone_engine_several_cuda, hone_engine_several_cholesky_cuda,
    hone_engine_outside, hone_engine_outside_cuda, hone_engine_cholesky,
    hone_engine_cholesky_cuda, hone_engine_cholesky_double, hone_engine_double,
    hone_engine_double_cuda, hone_engine_double_transposed,
    hone_engine_diagonal, hone_engine_triangular, hone_engine_banded;

#endif
