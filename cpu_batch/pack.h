/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the matrices into lanes and scales them: S = R op(A) C. R and C are
   powers of two, so that nothing is rounded: omega of S y = R b is that of
   op(A) x = b. */
#ifndef HONE_PACK_H
#define HONE_PACK_H

#ifdef BATCH_ROWS
#include "cpu_batch/gather_rows.h"
#else
#include "cpu_batch/gather_lanes.h"
#endif

/* R levels the rows, and C then the columns. */
INLINE void level_rows(const parts *p, const packed *out) {
  for (int64_t i = 0; i < p->m; i++)
    p->row[i] = choose(out->plain, all(1.0), levelling(p->row[i]));
  for (int64_t j = 0; j < p->n; j++) {
    lanes most = all(1.0);
    for (int64_t i = 0; any(~out->plain) && i < p->m; i++)
      most = larger(extreme_of(p->s[i + j * p->ld]) * p->row[i],
                    i == 0 ? all(0.0) : most);
    most = levelling(largest_over(most));
    put_number(p->col, j, choose(out->plain, all(1.0), most));
  }
  repeat_last(p->n, p->col);
}

/* S = R op(A) C, where a lane is scaled, and ||S||_1. */
INLINE void apply_scaling(const parts *p, packed *out) {
  out->norm_scaled = all(0.0);
  for (int64_t j = 0; j < p->n; j++) {
    const lanes col = number_at(p->col, j);
    lanes sum = all(0.0);
    for (int64_t i = 0; i < p->m; i++) {
      many *at = &p->s[i + j * p->ld];
      *at = scaled(*at, p->row[i] * col);
      p->f[i + j * p->ld] = *at;
      const lanes modulus = modulus_of(*at);
      if (MODULI)
        p->moduli[i + j * p->ld] = modulus;
      sum += modulus;
    }
    out->norm_scaled = larger(sum_over(sum), out->norm_scaled);
  }
}

/* R = C, powers of two that bring the diagonal to at least 1 and below 4. */
INLINE void level_diagonal(const parts *p, packed *out) {
  for (int64_t i = 0; i < p->n; i++) {
    const lanes d = entry_at(p->s + i * p->ld, i).part[0];
    const mask exponent = ((mask)d >> 52) - 1023;
    const lanes by = (lanes)((1023 - (exponent >> 1)) << 52);
    out->serves &= d > 0.0;
    put_number(p->row, i, choose(out->plain, all(1.0), by));
    put_number(p->col, i, choose(out->plain, all(1.0), by));
  }
  repeat_last(p->n, p->row);
  repeat_last(p->n, p->col);
}

static packed pack(const parts *p, bool definite,
                   const hone_block_matrix *matrices) {
  packed out;
  gather(p, matrices, &out);
  out.plain = is_level(p, p->row) & is_level(p, p->col);
  const bool as_they_are = !any(~out.plain);
  if (definite)
    level_diagonal(p, &out);
  else
    level_rows(p, &out);
  if (as_they_are)
    out.norm_scaled = out.norm_cols;
  else
    apply_scaling(p, &out);
  return out;
}

#endif
