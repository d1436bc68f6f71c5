/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder: inspect, scale, factor with the first engine that serves,
   refine, and climb to a more precise engine where that is measured to be
   needed. What the public API is a face of. */
#ifndef HONE_LADDER_H
#define HONE_LADDER_H

#include "refine/policy.h"
#include "refine/refine.h"

typedef enum hone_rung_state {
  HONE_RUNG_NEW,    /* not factored for this matrix */
  HONE_RUNG_READY,  /* factored and usable */
  HONE_RUNG_USELESS /* tried for this matrix: cannot serve */
} hone_rung_state;

typedef struct hone_rung {
  const hone_engine *engine;
  void *self;           /* NULL until first needed */
  hone_choices choices; /* the first rung's is the caller's; those above it
                         multiply accurately in any case */
  hone_rung_state state;
  bool tried, set_aside; /* for this matrix: what the path tells */
  bool skipped;          /* its engine is not for a matrix like this one */
  bool fresh;            /* factored already, unscaled, and that was right */
  hone_account account;  /* of engines that keep one */
  hone_factor_info info;
  hone_certificate certificate;
} hone_rung;

/* What the caller asked for, with every default filled in. */
typedef struct hone_request {
  int criterion;
  double limit;
  int max_iterations; /* a rung; 0: from the costs at n */
  int structure;      /* HONE_STRUCTURE_... */
  bool extra;         /* x itself to a few units of rounding: extra.h */
  int gmres_steps;    /* of GMRES on a rung; 0: from the costs at n; -1: none */
  int64_t block;      /* columns of a block column; 0: the device's choice */
  hone_choices choices; /* of a GPU */
  int64_t columns;      /* right-hand sides to come; 0: not known */
  bool one_shot;        /* one solve: give the old factors' memory back before
                           making the next */
} hone_request;

typedef struct hone_ladder {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  hone_request request;
  hone_rung rung[HONE_MAX_RUNGS];
  int rungs, at; /* at: the rung solves start on */
  int first;     /* the lowest that is not skipped */
  int used;      /* the highest rung this call solved with */
  bool have_matrix, factored;
  bool stale;   /* the factors are those of an earlier matrix */
  int resident; /* the rung whose engine holds a copy of A; -1: none */
  hone_matrix a;
  hone_structure structure;
  hone_scaling scaling;
  hone_inspection seen;                     /* of S */
  double norm1, norm_inf, max_abs, min_abs; /* of A */
  double *vectors; /* what the pointers above share, and scratch */
  hone_entry *scratch;
  char why[128];     /* an engine's create may say why it failed */
  hone_entry *block; /* workspace of solve: 5 n for each column, extra: 8 n */
  int64_t block_columns;
  hone_entry *pairs; /* memory of GMRES's space; NULL until first needed */
  hone_space space;  /* what the certificate of rung space_of needed */
  int space_of;      /* -1: none */
  int refinements;   /* of one column without GMRES, the most */
} hone_ladder;

/* steps: the rungs from the cheapest to the most accurate, their engines
   borrowed; none is created before it is needed. On failure everything is given
   back. */
int hone_ladder_create(hone_ladder *ladder, const hone_operator *op, int64_t n,
                       const hone_step *steps, int count,
                       const hone_request *request, hone_mem *mem,
                       hone_pool *pool, hone_watch *watch);
void hone_ladder_destroy(hone_ladder *ladder);

/* Inspects, scales and factors. The report's matrix, phase and reason
   fields are filled as far as the work got. */
int hone_ladder_factor(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report);

/* Another matrix near the factored one, whose factors are kept. */
int hone_ladder_update(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report);

/* Solves; arguments as in hone_solver_solve, checked by the caller. */
int hone_ladder_solve(hone_ladder *ladder, bool trans, int64_t nrhs,
                      const hone_entry *b, int64_t ldb, hone_entry *x,
                      int64_t ldx, const hone_entry *x0, int64_t ldx0,
                      hone_column *columns, hone_report *report);

/* Bytes of host memory for order n and nrhs columns, beside the engines. */
int64_t hone_ladder_bytes(const hone_operator *op, int64_t n, int64_t nrhs,
                          bool extra);

/* Between the files of the ladder ----------------------------------- */

/* Entries of the block of so many columns. */
static inline int64_t hone_ladder_block(int64_t n, int64_t columns,
                                        bool extra) {
  return (extra ? 8 : 5) * n * columns;
}
/* The first usable rung from r on, factored if it is not yet. On HONE_OK it
   is *found; else why there is none. A rung that failed is followed by the
   next, one whose factors did not suffice by the one above. */
int hone_ladder_usable(hone_ladder *ladder, int r, hone_report *report,
                       int *found);
/* The factors of an earlier matrix no longer serve: factors the present. */
int hone_ladder_refactor(hone_ladder *ladder, hone_report *report);
/* Finds A's structure, as far as the caller and the engines want it, and the
   rungs that are for such a matrix. Fails where A cannot be fetched. */
int hone_ladder_find_structure(hone_ladder *ladder);
/* The rung that follows r by the policy, r's factors having failed as their
   info says; ladder->rungs: none does. */
int hone_ladder_above(const hone_ladder *ladder, int r);
/* The rung that follows one that could not be had: another engine's. */
int hone_ladder_elsewhere(const hone_ladder *ladder, int r);
hone_factored hone_ladder_factored_by(const hone_ladder *ladder, int r);
/* Steps of GMRES that may be made on rung r for so many columns before the next
   is cheaper; 0: none, or no memory for it (the report then says so). */
int hone_ladder_gmres_steps(hone_ladder *ladder, int r, int64_t columns,
                            hone_report *report);
/* Estimates the norm of the inverse with rung r's factors and proves that they
   tell S from a singular matrix, if they do. */
int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report);
void hone_ladder_add_reason(hone_report *report, const char *who,
                            const char *why);
/* What the report says of the matrix and its factors, and of the way. */
void hone_ladder_report_matrix(const hone_ladder *ladder, hone_report *report);
void hone_ladder_report_path(const hone_ladder *ladder, hone_report *report);

#endif
