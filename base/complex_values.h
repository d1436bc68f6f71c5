/* SPDX-License-Identifier: BSD-3-Clause */
/* C11's CMPLX and CMPLXL, which glibc's complex.h defines for gcc alone. */
#ifndef HONE_COMPLEX_VALUES_H
#define HONE_COMPLEX_VALUES_H

#include <complex.h>

#ifndef CMPLX
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif
#ifndef CMPLXL
#define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif

#endif
