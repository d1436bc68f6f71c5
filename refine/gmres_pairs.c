/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs that corrections of GMRES-IR add to the space, in double precision:
   z is the difference of two iterates x and c that of their residuals, both as
   measured. Next to read: gmres.h. */
#include "refine/refine.h"

/* z = z + sign 2^shift inv(C) x,   c = c - sign R r

   For S^T: inv(R) x and C r. x NULL stands for x = 0; r already has the factor
   2^shift. */
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
  if (c->open_pair >= 0 || (c->open_pair = hone_space_open(space)) < 0)
    return;
  c->open_pair_shift = from_nothing ? 0 : c->shift;
  add_pair(ctx, c->open_pair_shift, from_nothing ? NULL : c->x,
           from_nothing ? c->b : c->r, -1.0, hone_space_z(space, c->open_pair),
           hone_space_c(space, c->open_pair));
}

void hone_pairs_close(const hone_refinement *ctx, int64_t m,
                      hone_refined *const *list) {
  hone_space *space = ctx->f.space;
  for (int64_t i = 0; i < m; i++) {
    hone_refined *c = list[i];
    if (c->open_pair < 0)
      continue;
    hone_entry *zp = hone_space_z(space, c->open_pair);
    hone_entry *cp = hone_space_c(space, c->open_pair);
    c->open_pair = -1;
    if (c->shift != c->open_pair_shift || c->digits_lost)
      continue;
    add_pair(ctx, c->shift, c->x, c->r, 1.0, zp, cp);
    (void)hone_space_add(space, zp, cp);
  }
  space->open = 0;
}
