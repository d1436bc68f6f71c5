/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the factors of S and takes residuals with A, in double precision:

     v = C inv(M) R v,    r = b - op(A) x

   Next to read: gmres.h for the pairs that the factors may be applied with. */
#include "refine/refine.h"
#include "refine/scale.h"

#include <math.h>

/* v = P v of gmres.h for k columns. With the other transpose, about which the
   pairs say nothing, v = inv(M) v in double arithmetic. */
static int apply_with_space(const hone_factored *f, bool trans, int64_t k,
                            hone_entry *v, int64_t ldv) {
  const hone_space *space = f->space;
  const int64_t n = f->a->n;
  const bool pairs = trans == space->trans;
  hone_entry coefficient[HONE_SOLVE_COLUMNS][HONE_SPACE_PAIRS];
  int e[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < k; c++) {
    if (pairs)
      hone_space_project(space, v + c * ldv, coefficient[c]);
    e[c] = hone_scale_in(n, NULL, v + c * ldv, v + c * ldv);
  }
  int st = f->engine->apply ? f->engine->apply(f->self, trans, k, v, ldv)
                            : f->engine->solve(f->self, trans, k, v, ldv);
  for (int64_t c = 0; st == HONE_OK && c < k; c++) {
    hone_scale_out(n, NULL, e[c], v + c * ldv);
    if (pairs)
      hone_space_expand(space, coefficient[c], v + c * ldv);
  }
  return st;
}

int hone_apply_inverse(const hone_factored *f, bool scaled, bool trans,
                       int64_t k, hone_entry *v, int64_t ldv, const int *shift,
                       double *size) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  bool plain = scaled || !s->used;
  const int *in = plain ? NULL : (trans ? s->col_exp : s->row_exp);
  const int *out = plain ? NULL : (trans ? s->row_exp : s->col_exp);
  int e[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < k; c++)
    e[c] = hone_scale_in(n, in, v + c * ldv, v + c * ldv);
  int st = f->space ? apply_with_space(f, trans, k, v, ldv)
                    : f->engine->solve(f->self, trans, k, v, ldv);
  if (st != HONE_OK)
    return st;
  for (int64_t c = 0; c < k; c++) {
    hone_entry *vc = v + c * ldv;
    if (shift)
      e[c] += shift[c];
    if (size)
      size[c] = hone_shift(hone_max_abs(n, vc), -e[c]);
    hone_scale_out(n, out, e[c], vc);
  }
  return HONE_OK;
}

bool hone_residual(const hone_factored *f, bool trans, const hone_entry *x,
                   const hone_entry *b, hone_entry *r, double *den) {
  if (f->use_copy &&
      f->engine->residual(f->self, f->a, trans, x, b, r, den) == HONE_OK)
    return true;
  const hone_residual_job pass = {.a = f->a,
                                  .trans = trans,
                                  .accurate = true,
                                  .k = 1,
                                  .x = (const hone_entry *const[]){x},
                                  .b = (const hone_entry *const[]){b},
                                  .r = (hone_entry *const[]){r},
                                  .den = (double *const[]){den}};
  f->a->op->residual(&pass, f->pool);
  return false;
}
