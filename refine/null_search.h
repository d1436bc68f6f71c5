/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for a vector z that S nearly maps to zero, with factors M of S =
   R A C that need not be accurate. If ||S z||_1 < eps ||S||_1 ||z||_1, then
   rcond(S) < eps, whatever the factors are: the inequality is the proof that S
   is singular to double precision. In double precision. Next to read:
   null_search.c. */
#ifndef HONE_NULL_SEARCH_H
#define HONE_NULL_SEARCH_H

#include "refine/condition.h"

typedef struct hone_null_search {
  const hone_factored *f;
  bool trans;          /* the search is for S^T */
  double norm1;        /* ||op(S)||_1 */
  hone_entry *v;       /* n: the start, then the last vector */
  hone_entry *scratch; /* hone_null_search_scratch(n) entries */
  int passes;          /* passes over A; added to */
  /* The smallest bound on ||op(S) w||_1 / ||w||_1 that was found for any w; v
     is the last w, rounded. Inf: no bound was found. */
  double least;
} hone_null_search;

/* Corrects v until the bound is below eps ||op(S)||_1 or no longer falls.
   Fails only where a solve fails. */
int hone_null_search_run(hone_null_search *search);

/* Starts from a fixed draw instead, by one step of inverse iteration. */
int hone_null_search_begin(hone_null_search *search);

/* Does the search prove that no factors in double precision would tell S from a
   singular matrix? */
bool hone_null_search_proves(const hone_null_search *search);

/* Is S singular in double-double? It is if S z = 0 there for the multiple z of
   v whose smallest entry, apart from rounding errors, is 1, with entries
   rounded to integers. */
bool hone_null_search_exact(hone_null_search *search);

int64_t hone_null_search_scratch(int64_t n);

#endif
