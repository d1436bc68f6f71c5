/* SPDX-License-Identifier: BSD-3-Clause */
/* What a correction of GMRES-IR adds to the space: the difference of two x and
   that of their residuals, both as measured. See gmres.h. */
#include "refine/refine.h"

/* The vectors of a pair: z = inv(C) x and c = R r, both times 2^shift (of
   S^T: inv(R) x and C r), added with this sign to what stands there. */
static void add_pair(const hone_refinement *ctx, int shift, const hone_entry *x,
                     const hone_entry *r, double sign, hone_entry *zp,
                     hone_entry *cp) {
  const hone_scaling *s = ctx->f.scaling;
  const int *row = ctx->trans ? s->col_exp : s->row_exp;
  const int *col = ctx->trans ? s->row_exp : s->col_exp;
  for (int64_t i = 0; i < ctx->f.a->n; i++) {
    zp[i] +=
        sign * hone_shift_entry(x ? x[i] : 0.0, shift - (s->used ? col[i] : 0));
    cp[i] -= sign * hone_shift_entry(r[i], s->used ? row[i] : 0);
  }
}

void hone_pairs_open(const hone_refinement *ctx, hone_refined *c,
                     bool from_nothing) {
  hone_space *space = ctx->f.space;
  if (c->pair >= 0 || (c->pair = hone_space_open(space)) < 0)
    return;
  c->pair_shift = from_nothing ? 0 : c->shift;
  add_pair(ctx, c->pair_shift, from_nothing ? NULL : c->x,
           from_nothing ? c->b : c->r, -1.0, hone_space_z(space, c->pair),
           hone_space_c(space, c->pair));
}

void hone_pairs_close(const hone_refinement *ctx, int64_t m,
                      hone_refined *const *list) {
  hone_space *space = ctx->f.space;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = list[i];
    if (c->pair < 0)
      continue;
    hone_entry *zp = hone_space_z(space, c->pair);
    hone_entry *cp = hone_space_c(space, c->pair);
    c->pair = -1;
    if (c->shift != c->pair_shift || c->lost)
      continue;
    add_pair(ctx, c->shift, c->x, c->r, 1.0, zp, cp);
    (void)hone_space_take(space, zp, cp);
  }
  space->open = 0;
}
