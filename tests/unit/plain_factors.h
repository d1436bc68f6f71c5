/* SPDX-License-Identifier: BSD-3-Clause */
/* Random factors for tests of cpu_factor/apply.c and cpu_sp/substitution.c, and
   solutions with them in long double by definition. */
#ifndef HONE_PLAIN_FACTORS_H
#define HONE_PLAIN_FACTORS_H

#include "cpu_factor/apply.h"
#include "tests/unit/support.h"

/* Factors of order n, with off-diagonal entries small enough for a modest
   inverse. ld > n; between the columns lie numbers as well. */
typedef struct pf_sample {
  int64_t n, ld;
  float *f;
  int *pivot;
} pf_sample;

pf_sample pf_make(sup_rng *rng, int64_t n, int base);
void pf_discard(pf_sample *s);

/* v = inv(S) v or inv(S^T) v. */
void pf_solve(const pf_sample *s, hone_form form, int base, bool trans,
              long double *v);

/* The forms of factors, with their names. */
enum { PF_FORMS = 3 };
const char *pf_name(hone_form form);

#endif
