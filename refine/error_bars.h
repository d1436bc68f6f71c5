/* SPDX-License-Identifier: BSD-3-Clause */
/* The error bars of one column, from the terms that bounds.c derives:

     |e_i| <= |t_i| + rows_i f + all + lost + what the entry loses by itself

   where t is the known error, in the caller's units. Next to read: bounds.c. */
#ifndef HONE_ERROR_BARS_H
#define HONE_ERROR_BARS_H

#include "base/base.h"
#include "base/entry.h"

typedef struct hone_bars {
  int64_t n;
  const int *exponents;  /* of the scaling of x; NULL: zeros */
  const double *weights; /* of f and all; NULL: ones */
  const double *noise;   /* n, of each entry, in the caller's units; or NULL */
  const hone_entry *t;   /* n */
  const hone_entry *d;   /* n: the last correction */
  const double *rows;    /* n */
  long double f, all, lost;           /* in scaled variables */
  long double rounding_t, rounding_d; /* of t and of d, relative */
  long double grain;                  /* the absolute one of an entry */
} hone_bars;

/* The error as far as it is known, and the bounds, in the infinity norm. */
typedef struct hone_bars_outcome {
  long double known, known_scaled; /* max |t_i| */
  long double total, total_scaled; /* max of the error bars */
} hone_bars_outcome;

/* bars, n entries, may be NULL, and may be the memory of t. */
void hone_bars_evaluate(const hone_bars *s, double *bars,
                        hone_bars_outcome *out);

#endif
