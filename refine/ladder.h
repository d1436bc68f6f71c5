/* SPDX-License-Identifier: BSD-3-Clause */
/* The ladder: the factorizations that may solve with one matrix, in the order
   in which they are tried, from the cheapest to the most accurate. Each is a
   rung: an engine and its factors, in single or double precision. The ladder
   inspects and scales the matrix, factors with the first rung that serves,
   refines in double, and climbs to a more accurate rung where measurements show
   that it is needed. The public API wraps this. Next to read: ladder.c, then
   climb.c for the solve, policy.c for the order of the rungs. */
#ifndef HONE_LADDER_H
#define HONE_LADDER_H

#include "refine/accelerate.h"
#include "refine/policy.h"
#include "refine/refine.h"

typedef enum hone_rung_state {
  HONE_RUNG_NEW,    /* not factored for this matrix */
  HONE_RUNG_READY,  /* factored and usable */
  HONE_RUNG_USELESS /* tried for this matrix: it cannot serve */
} hone_rung_state;

typedef struct hone_rung {
  const hone_engine *engine;
  void *self; /* NULL until first needed */
  /* The first rung has the caller's choices; the rungs above it multiply
     accurately in any case. */
  hone_choices choices;
  hone_rung_state state;
  bool second_opinion;       /* see hone_step */
  bool attempted, set_aside; /* for this matrix, for the report's path */
  bool factored;       /* for this matrix, with factors that serve or do not */
  bool not_applicable; /* the engine is not for matrices of this structure */
  bool factored_unscaled; /* factored already, without scaling, which proved to
                             be right */
  double *rows; /* 2 n: for the contractions of the certificate; the vectors of
                   the deflation follow */
  hone_deflation deflation; /* of the factors for the present matrix */
  hone_account account;     /* set by engines that keep an account */
  hone_factor_info info;
  hone_certificate certificate;
} hone_rung;

/* The caller's request, with every default filled in. */
typedef struct hone_request {
  int criterion;
  double limit;
  int max_iterations; /* per rung; 0: derived from the costs at order n */
  int structure;      /* HONE_STRUCTURE_... */
  bool extra;         /* error of x itself down to a few units of rounding */
  bool deterministic; /* no process has a draw of its own */
  int gmres_steps; /* GMRES steps per rung; 0: derived from the costs at order
                      n; -1: none */
  int deflation;   /* 0: where it pays at order n; 1: everywhere; -1: never */
  int64_t block;   /* columns of a block column; 0: the device chooses */
  hone_choices choices; /* for a GPU */
  int64_t columns;      /* right-hand sides to come; 0: not known */
  /* There is one solve only: give the memory of old factors back before making
     new ones. */
  bool one_shot;
} hone_request;

typedef struct hone_ladder {
  int64_t n;
  hone_mem *mem;
  hone_pool *pool;
  hone_watch *watch;
  hone_request request;
  int rung_count, start_rung; /* start_rung: solves start here */
  int lowest_rung;  /* the lowest rung whose engine is for this matrix */
  int highest_rung; /* the highest rung that this call solved with */
  bool inspected, factored;
  bool factors_stale;    /* the factors are those of an earlier matrix */
  bool crowded;          /* the devices had no memory for two rungs' engines */
  int copy_rung;         /* the rung whose engine holds a copy of A; -1: none */
  bool copy_refuted;     /* it was not A (hone_ladder_refute_copy) */
  int64_t sent, fetched; /* bytes to and from a device by engines that were
                            destroyed */
  hone_matrix a;
  hone_structure structure;
  hone_scaling scaling;
  hone_inspection inspection;               /* of S */
  double norm1, norm_inf, max_abs, min_abs; /* of A */
  double *vectors; /* memory of the vectors above and of scratch */
  hone_entry *scratch;
  char why[128]; /* set by an engine's create that failed */
  int64_t block; /* right-hand sides that are solved for at once, at most */
  /* Workspace of a solve: 5 n entries for each column, in extra-precise mode
     8 n, and behind these a record of each column, and of its bound. */
  hone_entry *workspace;
  hone_refined *columns;
  hone_bounding *bounding;
  int64_t workspace_columns;
  hone_entry *pairs_memory; /* of GMRES; NULL until first needed */
  uint64_t drawn, seed;     /* of the random probes: for the matrix, and now */
  /* Accurate factors could not tell A from a singular matrix: no x is accepted,
     whatever other factors say. */
  bool refuted;
  /* The present solve writes bounds on the errors of all entries of x here, n x
     nrhs; or NULL. */
  double *bars;
  int64_t ldbars;
  /* The only right-hand side of the solve with op(A) that will follow, which
     the certificate may use; NULL: not known. */
  const hone_entry *to_come;
  bool to_come_trans; /* op(A) = A^T */
  bool vouched_there; /* for some x, by a projection that a device took */
  bool any_told;      /* does the report tell of a column? */
  double plain_most; /* the largest plain omega of x accepted for sparse rows */
  int64_t statements; /* that single columns needed, for their bounds */
  int certificates;   /* of factors, for this matrix */
  int refinements;    /* most refinements of one column without GMRES */
  hone_rung rung[HONE_MAX_RUNGS]; /* rung_count of them are used; the others are
                                     not set */
} hone_ladder;

/* Makes a ladder of 'count' rungs with these steps, from the cheapest to the
   most accurate. The engines are borrowed; none is created before it is needed.
   On failure all memory is given back. */
int hone_ladder_create(hone_ladder *ladder, const hone_operator *op, int64_t n,
                       const hone_step *steps, int count,
                       const hone_request *request, hone_mem *mem,
                       hone_pool *pool, hone_watch *watch);
void hone_ladder_destroy(hone_ladder *ladder);

/* Inspects, scales and factors A. Fills the matrix, phase and reason fields of
   the report as far as the work got. */
int hone_ladder_factor(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report);

/* Replaces A by another matrix near the factored one, and keeps the factors. */
int hone_ladder_update(hone_ladder *ladder, const hone_matrix *a,
                       hone_report *report);

/* Solves op(A) X = B. The arguments are those of hone_solver_solve, already
   validated. */
int hone_ladder_solve(hone_ladder *ladder, bool trans, int64_t nrhs,
                      const hone_entry *b, int64_t ldb, hone_entry *x,
                      int64_t ldx, const hone_entry *x0, int64_t ldx0,
                      hone_column *columns, hone_report *report);

/* The right-hand sides that a ladder with these steps solves for at once, at
   most. */
int64_t hone_ladder_block(const hone_step *steps, int count);
/* Bytes of host memory for order n and so many columns at once, without the
   engines. */
int64_t hone_ladder_bytes(const hone_operator *op, int64_t n, int64_t columns,
                          bool extra);

/* Functions shared by the files of the ladder ---------------------------- */

/* Entries of the workspace for so many columns. The last two vectors are room
   for an x and its bars (climb.c); before them are the histories of
   accelerate.c. */
static inline int64_t hone_ladder_workspace_entries(int64_t n, int64_t columns,
                                                    bool extra) {
  return ((extra ? 8 : 5) * columns + 2) * n +
         hone_accelerate_entries(n, columns) +
         (!hone_steps_pay(n, columns)
              ? 0
              : 2 * n * columns +
                    (n + hone_steps_work(n, columns) + HONE_PARTS - 1) /
                        HONE_PARTS);
}
/* Bytes of the workspace, with the columns and their bounds. */
int64_t hone_ladder_workspace_bytes(int64_t n, int64_t columns, bool extra);
/* Returns where those of steps.c begin: low and done of every column,
   the weights, the work. NULL: there
   are too few columns. */
static inline double *hone_ladder_steps(const hone_ladder *ladder) {
  const int64_t columns = ladder->workspace_columns;
  if (!hone_steps_pay(ladder->n, columns))
    return NULL;
  return (double *)(ladder->workspace +
                    (ladder->request.extra ? 8 : 5) * ladder->n * columns);
}

/* Takes a workspace for so many columns, unless there is one. */
int hone_ladder_reserve(hone_ladder *ladder, int64_t columns);
/* The bytes of a rung's certificate: its rows and its deflation. */
int64_t hone_ladder_certificate_bytes(int64_t n);
/* Makes the engine of rung r unless there is one, and the memory of its
   certificate. Other engines that are in the way are destroyed first. */
int hone_ladder_create_rung(hone_ladder *ladder, int r);
/* Factors the scaled matrix on rung r, from the copy of A that another engine
   lends, if one does. */
int hone_ladder_factor_on(hone_ladder *ladder, int r);
void hone_ladder_destroy_rung(hone_ladder *ladder, hone_rung *rung);
/* Finds the first usable rung from r on and factors it if it is not factored
   yet. On HONE_OK *found is that rung; otherwise the status says why there is
   none. A rung that could not be had is followed by another engine's, one whose
   factors did not suffice by its successor. */
int hone_ladder_find_usable(hone_ladder *ladder, int r, hone_report *report,
                            int *found);
/* Factors the present matrix, after the factors of an earlier one proved
   useless for it. */
int hone_ladder_refactor(hone_ladder *ladder, hone_report *report);
/* Finds the structure of A, as far as the caller and the engines want it, and
   marks the rungs that are not for such a matrix. Fails where A cannot be
   fetched. */
int hone_ladder_find_applicable(hone_ladder *ladder);
/* Serves where that found in a sample of A that it may be definite, and no
   engine has confirmed it. refuted: an engine found that A is not symmetric;
   otherwise all of A is compared here. If A turns out not to be symmetric, the
   lowest rung is another one, and the engine of the former is destroyed. */
int hone_ladder_settle_symmetry(hone_ladder *ladder, bool refuted);
/* The way in which a rung's factors failed, if they did. */
hone_failure hone_ladder_failure(const hone_rung *rung);
/* Why no digit of x is certain with this rung's factors, for the report. */
const char *hone_ladder_doubt(const hone_rung *rung);
/* The rung that follows r by the policy after r's factors failed in the way
   that their info says; ladder->rung_count if none does. */
int hone_ladder_successor(const hone_ladder *ladder, int r);
/* Would no other factors follow, but for a second opinion, if those of rung r
   did not serve? Behind LU in double on a device there is the same on the host,
   which does so only where the device cannot be used. */
bool hone_ladder_is_last(const hone_ladder *ladder, int r);
/* The rung for columns that were not accepted with the factors of r, which
   serve: the successor, or else a second opinion; ladder->rung_count if there
   is none. */
int hone_ladder_next_for_columns(const hone_ladder *ladder, int r);
/* The rung that follows r when r could not be had: the next of another
   engine. */
int hone_ladder_other_engine(const hone_ladder *ladder, int r);
hone_factored hone_ladder_factored_by(const hone_ladder *ladder, int r);
/* GMRES steps that may be made on rung r for so many columns before the next
   rung is cheaper; 0 if there are none, or if there is no memory for them (the
   report then says so). */
int hone_ladder_gmres_steps(hone_ladder *ladder, int r, int64_t columns,
                            hone_report *report);
/* Certifies that the factors of rung r distinguish S from a singular matrix, if
   they do, and estimates the condition number. */
int hone_ladder_certify(hone_ladder *ladder, int r, hone_report *report);
/* Lets the engine of rung r, which is about to complete its factors of S = A,
   begin with the probes of the certificate. */
void hone_ladder_expect_certificate(hone_ladder *ladder, int r);
/* Serves for the factors of rung r that broke down. If pivots of zero were
   replaced in them, searches for a null vector of S, and certifies the factors
   with deflation where that pays. *certified: the rung's certificate is that of
   these factors; otherwise it stays that of earlier ones, which columns that
   were accepted need. */
int hone_ladder_certify_replaced(hone_ladder *ladder, int r,
                                 hone_report *report, bool *certified);
/* Makes sure that the contraction of the factors of rung r is known for S^T
   too. */
int hone_ladder_certify_transpose(hone_ladder *ladder, int r,
                                  hone_report *report);
/* Serves where A itself refused an x that the engine of rung r had accepted by
   its copy of A: the matrix that was inspected, factored and certified may be
   another one. The copy is not used any more; A is inspected, and the factors
   are certified as those of another matrix, for A^T too if trans; unless the
   refinement failed or was stopped, which 'solved' says: then no certificate is
   left. Returns 'solved', or what failed here. */
int hone_ladder_refute_copy(hone_ladder *ladder, int r, bool trans, int solved,
                            hone_report *report);
/* Draws the seed of the random probes anew for the present matrix, which has
   been inspected. */
void hone_ladder_draw(hone_ladder *ladder);
/* Purposes of random vectors, which the factors of a rung are applied to. */
enum {
  HONE_DRAW_CERTIFICATE,
  HONE_DRAW_TRANSPOSE, /* its certificate */
  HONE_DRAW_MANY,      /* hone_bounds_for_many */
  HONE_DRAW_COLUMNS,   /* of one solve */
  HONE_DRAWS
};
/* With the option deterministic, draws depend on the matrix, rung r and their
   purpose alone, and not on the draws before, of other solves: sets the seed.
   Otherwise they go on where the last ones ended. */
void hone_ladder_draw_for(hone_ladder *ladder, int purpose, int r);
void hone_ladder_add_reason(hone_report *report, const char *who,
                            const char *why);
/* Fill the report's fields on the matrix and its factors, and its path. */
void hone_ladder_report_matrix(const hone_ladder *ladder, hone_report *report);
void hone_ladder_report_path(const hone_ladder *ladder, hone_report *report);

#endif
