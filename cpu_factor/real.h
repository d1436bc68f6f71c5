/* SPDX-License-Identifier: BSD-3-Clause */
/* The precision of the factors in a file that is compiled once for single and
   once for double precision, FACTOR_BITS being 32 or 64, and the names that end
   in it. */
#ifndef HONE_REAL_H
#define HONE_REAL_H

#include <stdint.h>

#define FACTOR_JOIN_(name, bits) name##_##bits
#define FACTOR_JOIN(name, bits) FACTOR_JOIN_(name, bits)
#define FACTOR_NAME(name) FACTOR_JOIN(name, FACTOR_BITS)

#if FACTOR_BITS == 32
typedef float real;
#else
typedef double real;
#endif

#endif
