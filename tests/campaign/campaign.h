/* SPDX-License-Identifier: BSD-3-Clause */
/* The campaign: random systems of every family of the gallery through the
   library, LAPACK's dgesv and dsgesv, each answer held against an independent
   reference. campaign.c runs it, draw.c makes a system from its seed, check.c
   solves and measures, tally.c counts and prints. */
#ifndef TESTS_CAMPAIGN_H
#define TESTS_CAMPAIGN_H

#include "api/hone.h"
#include "tests/gallery/gallery.h"
#include "tests/gallery/reference.h"

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
  bool extra; /* in extra-precise mode */
} campaign_plan;

/* One system, m x = b for every column. stored is what the library is given:
   m or its transpose, lda > n at times, padded with NaN. */
typedef struct campaign_system {
  uint64_t seed;
  const gallery_family *family;
  int64_t n, nrhs, lda, ldb, ldx;
  double parameter;
  bool kept;     /* by a solver that is kept, in two calls */
  bool nearby;   /* it holds a nearby matrix first */
  bool in_place; /* x is b */
  bool crossed;  /* stored is the transpose of m */
  int kinds[CAMPAIGN_MOST_RHS];
  hone_options options;
  double *m, *stored, *b; /* n x n; n x n, lda; n x nrhs; owned */
} campaign_system;

void campaign_draw(campaign_system *s, const campaign_plan *plan,
                   uint64_t seed);
void campaign_free(campaign_system *s);
/* "dlatms_3(8.53) n 33 ..." */
void campaign_describe(const campaign_system *s, FILE *f);

/* One right-hand side's results. Errors in the infinity norm, as the bound that
   the library states; NaN: not known. */
typedef struct campaign_column {
  double omega, stated_omega;
  double error, bound;
  double reference_error; /* error may be wrong by that much */
  double dgesv_omega, dgesv_error;
  double dsgesv_omega, dsgesv_error;
  int16_t status, precision;
  int16_t kind;
  int16_t in_range; /* all of the true x is in the range of double */
} campaign_column;

/* What a worker sends for one system. Not above PIPE_BUF. */
typedef struct campaign_record {
  int32_t begins; /* nothing else is set but seed */
  int32_t family;
  uint64_t seed;
  int32_t n, nrhs;
  int32_t status; /* of the call; kept: the worse of two */
  int32_t broken; /* of the contract otherwise: see campaign_broken */
  int32_t reference, dgesv_info, dsgesv_info, unused;
  double condition;
  campaign_column column[CAMPAIGN_MOST_RHS];
} campaign_record;

/* record.broken */
enum {
  CAMPAIGN_TOUCHED = 1,    /* x written though refused, or beyond its columns */
  CAMPAIGN_STATUS = 2,     /* the call's status is not that of its columns */
  CAMPAIGN_NOT_FINITE = 4, /* x with a status >= 0 */
  CAMPAIGN_FLATTERED = 8,  /* a stated backward error below the true one */
  CAMPAIGN_REASON = 16     /* refused for what is no fault of the system: no
                              device, no memory, an option, ... */
};

/* reference: kept from one call to the next. */
void campaign_check(const campaign_system *s, reference *r,
                    campaign_record *out);

/* Counts, by family; the last one is all of them. */
typedef struct campaign_tally campaign_tally;
campaign_tally *campaign_tally_create(void);
void campaign_tally_destroy(campaign_tally *t);
/* Returns the number of defects found in it: what must be zero. */
int campaign_count(campaign_tally *t, const campaign_record *r);
/* Says on f what campaign_count found. */
void campaign_accuse(const campaign_record *r, FILE *f);
/* Not a defect, but worth a look: accepted without a correct digit (in the
   caller's units), or not accepted though well conditioned. */
bool campaign_remarkable(const campaign_record *r);
void campaign_print(campaign_tally *t, FILE *f);
void campaign_print_json(campaign_tally *t, const campaign_plan *plan,
                         double seconds, FILE *f);
int64_t campaign_defects(const campaign_tally *t);

#endif
