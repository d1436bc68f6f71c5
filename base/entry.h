/* SPDX-License-Identifier: BSD-3-Clause */
/* The scalar type. Sources that touch entries of matrices and vectors are
   compiled once for each type: they say hone_entry where a number may be
   complex and double where it is real in any case (magnitudes, norms, errors,
   scaling). With HONE_COMPLEX defined, hone_entry is double _Complex, and
   entry_names.h gives every function of such a source its other name. */
#ifndef HONE_ENTRY_H
#define HONE_ENTRY_H

#include <math.h>

#ifdef HONE_COMPLEX

#include "base/entry_names.h"
#include <complex.h>

typedef double _Complex hone_entry;

/* Upper bound on |v| within a factor of sqrt(2): |re v| + |im v|. */
static inline double hone_abs1(hone_entry v) {
  return fabs(creal(v)) + fabs(cimag(v));
}
static inline double hone_abs(hone_entry v) { return cabs(v); }
static inline hone_entry hone_conj(hone_entry v) { return conj(v); }

#else

typedef double hone_entry;

static inline double hone_abs1(hone_entry v) { return fabs(v); }
static inline double hone_abs(hone_entry v) { return fabs(v); }
static inline hone_entry hone_conj(hone_entry v) { return v; }

#endif
#endif
