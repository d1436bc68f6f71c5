/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions with single-precision factors in single arithmetic. */
#ifndef HONE_SUBSTITUTION_H
#define HONE_SUBSTITUTION_H

#include "cpu_factor/apply.h"

/* Numbers of a row of right-hand sides that are stored and solved for together:
   the real parts of all of them, and the imaginary parts behind these. */
enum { HONE_LANES = 16, HONE_TOGETHER = HONE_LANES / HONE_PARTS };

/* Orders from which threads pay for one group of right-hand sides. Below, they
   pay where there are several. */
enum { HONE_SHARED_FROM = 1000 };
/* Returns the number of groups that so many right-hand sides are divided into.
 */
int64_t hone_substitution_groups(int64_t k);

/* Returns how many floats hone_substitute needs as work, linear in k. */
int64_t hone_substitution_work(int64_t n, int64_t k);

/* In place: v = inv(S) v or inv(S^T) v for k columns, ldv >= n, which are
   rounded to single precision first. Complex: S^T is not conjugated. The bits
   of a column do not depend on the number of threads, nor on the other columns,
   except on whether there are more than two in all. */
void hone_substitute(hone_pool *pool, const hone_factors *factors, bool trans,
                     int64_t k, hone_entry *v, int64_t ldv, float *work);

#endif
