/* SPDX-License-Identifier: BSD-3-Clause */
/* Random factors for tests of cpu_factor/apply.c and cpu_sp/substitution.c, and
   solutions with them in long double by definition, for real and for complex
   entries. */
#ifndef HONE_PLAIN_FACTORS_H
#define HONE_PLAIN_FACTORS_H

#include "cpu_factor/apply.h"
#include "tests/unit/entries.h"

#ifdef HONE_COMPLEX
#define pf_make pf_z_make
#define pf_discard pf_z_discard
#define pf_solve pf_z_solve
#define pf_name pf_z_name
#endif

/* Factors of order n, with off-diagonal entries small enough for a modest
   inverse. ld > n; between the columns lie numbers as well. */
typedef struct pf_sample {
  int64_t n, ld;
  hone_single *f;
  int *pivot;
} pf_sample;

pf_sample pf_make(sup_rng *rng, int64_t n, int base);
void pf_discard(pf_sample *s);

/* v = inv(S) v or inv(S^T) v; complex: S^T is not conjugated. */
void pf_solve(const pf_sample *s, hone_form form, int base, bool trans,
              hone_wide *v);

/* The forms of factors, with their names. */
enum { PF_FORMS = 3 };
const char *pf_name(hone_form form);

#endif
