/* SPDX-License-Identifier: BSD-3-Clause */
/* The campaign: random systems of every family of the gallery are solved by the
   library and by LAPACK's dgesv and dsgesv, and every x is compared with an
   independent reference. campaign.c runs it, draw.c makes a system from its
   seed, check.c solves and measures, tally.c counts and prints. */
#ifndef TESTS_CAMPAIGN_H
#define TESTS_CAMPAIGN_H

#include "api/hone.h"
#include "tests/gallery/either.h"

#include <stdbool.h>
#include <stdio.h>

enum { CAMPAIGN_MOST_N = 600, CAMPAIGN_MOST_RHS = 33 };
enum { CAMPAIGN_START_MIXED = -1 }; /* half of them AUTO, half SINGLE */

typedef struct campaign_plan {
  int64_t systems, max_n;
  uint64_t seed;
  double seconds; /* 0: no limit */
  int device, start, jobs;
  const gallery_family *family; /* NULL: all */
  bool keep_going, verbose;
  bool extra;  /* the extra-precise mode */
  bool batch;  /* every system is a member of a batch */
  bool differ; /* many right-hand sides that differ, see differ.c */
  int parts;   /* 0 or 1: real systems; 2: complex ones */
  /* All families, kinds of right-hand sides and uses take part. Without it,
     seeds have the meaning that they had in early campaigns. */
  bool complete;
} campaign_plan;

/* One system, m x = b for every column. The library is given stored: m or its
   transpose (of complex numbers perhaps its conjugate transpose), sometimes
   with lda > n and NaN in the padding. Numbers have so many parts. */
typedef struct campaign_system {
  uint64_t seed;
  const gallery_family *family;
  int parts;
  int64_t n, nrhs, lda, ldb, ldx;
  double parameter;
  bool kept;     /* solved by a solver, in two calls */
  bool nearby;   /* the solver first factors a nearby matrix */
  bool grounded; /* that one differs in one diagonal entry, which is larger */
  bool loose;    /* another criterion or tolerance than the default */
  bool in_place; /* x is b */
  bool bars;     /* options.error_bounds is asked for */
  bool warm;     /* options.x0 is given: b, or b divided by 7 */
  int place;     /* -1, or the number in a batch */
  bool crossed;  /* stored is the transpose of m */
  int kinds[CAMPAIGN_MOST_RHS];
  hone_options options;
  double *m, *stored, *b; /* n x n; n x n, lda; n x nrhs; owned */
} campaign_system;

void campaign_draw(campaign_system *s, const campaign_plan *plan,
                   uint64_t seed);
void campaign_free(campaign_system *s);
/* Prints "dlatms_3(8.53) n 33 ...". */
void campaign_describe(const campaign_system *s, FILE *f);

/* differ.c: what a system of differing right-hand sides has instead of what was
   drawn. Half of the matrices are dominant, which leaves it to the blocks how
   fast columns converge, and half of the orders are large. */
const gallery_family *campaign_differ_family(gallery_rng *rng,
                                             const gallery_family *drawn);
int64_t campaign_differ_order(gallery_rng *rng, int64_t most, int64_t drawn);
int64_t campaign_differ_nrhs(gallery_rng *rng);
void campaign_differ_matrix(campaign_system *s, gallery_rng *rng);
void campaign_differ_rhs(campaign_system *s, gallery_rng *rng);

/* The results for one right-hand side. Errors are in the infinity norm, like
   the bound that the library reports; NaN: unknown. */
typedef struct campaign_column {
  double omega, stated_omega;
  double error, bound;
  double reference_error; /* error may be wrong by as much */
  double dgesv_omega, dgesv_error;
  double dsgesv_omega, dsgesv_error;
  int16_t status, precision;
  int16_t kind;
  int16_t in_range; /* the true x is in the range of double */
  int16_t barred;   /* its bars were compared with the reference */
  int16_t beyond;   /* so many components have errors above their bars */
} campaign_column;

/* The record that a worker sends for one system; not above PIPE_BUF bytes. */
typedef struct campaign_record {
  int32_t begins; /* only seed is set: the system begins */
  int32_t family;
  uint64_t seed;
  int32_t n, nrhs;
  int32_t status; /* of the call; of a solver's two calls, the worse one */
  int32_t broken; /* other parts of the contract: see campaign_broken */
  int32_t reference, dgesv_info, dsgesv_info;
  int32_t loose; /* x need not meet the default rule */
  int32_t parts;
  double condition;
  campaign_column column[CAMPAIGN_MOST_RHS];
} campaign_record;

/* The bits of record.broken. */
enum {
  /* x was written after an error, or beyond its columns. */
  CAMPAIGN_TOUCHED = 1,
  CAMPAIGN_STATUS = 2, /* the status does not agree with those of the columns */
  CAMPAIGN_NOT_FINITE = 4, /* x is not finite, with a status >= 0 */
  /* The reported backward error is below the true one. */
  CAMPAIGN_FLATTERED = 8,
  /* A bar is negative or NaN, or Inf where there is a bound on the whole. */
  CAMPAIGN_NO_BAR = 32,
  CAMPAIGN_REASON = 16 /* an error that is no fault of the system: no device, no
                          memory, an option, ... */
};

/* Solves and measures; the reference is reused from call to call. */
void campaign_check(const campaign_system *s, reference *r,
                    campaign_record *out);

/* Counts for each family, and for all of them. */
typedef struct campaign_tally campaign_tally;
campaign_tally *campaign_tally_create(void);
void campaign_tally_destroy(campaign_tally *t);
/* Counts a record; returns the number of its defects. */
int campaign_count(campaign_tally *t, const campaign_record *r);
/* Prints the defects of the record on f. */
void campaign_accuse(const campaign_record *r, FILE *f);
/* Not a defect, but remarkable: accepted without a correct digit (in the
   caller's units), or not accepted though well conditioned. */
bool campaign_remarkable(const campaign_record *r);
void campaign_print(campaign_tally *t, FILE *f);
void campaign_print_json(campaign_tally *t, const campaign_plan *plan,
                         double seconds, FILE *f);
int64_t campaign_defects(const campaign_tally *t);

#endif
