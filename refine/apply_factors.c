/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies the factors of S and takes residuals with A, in double precision:

     v = C inv(M) R v,    r = b - op(A) x

   Next to read: deflation.h and gmres.h for what the factors may be applied
   with. */
#include "base/vectors.h"
#include "refine/refine.h"
#include "refine/scale.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ROUNDOFF_SINGLE = 0x1p-24;
/* So many columns are refined where the factors are. */
enum { REFINED_LEAST = 4 };
/* Entries from which a loop over columns is divided among threads. */
enum { WORTH_THREADS = 1 << 16 };
enum { DRAWN = 64 }; /* random numbers at once */
/* Exponents of a scaling up to here leave products with vectors of about 1 the
   digits that they need. Above, room is left for the magnitude of an entry of S
   and of rounding. */
enum { LIFT_FROM = 300, ROOM = 6 };

/* Changes every part of every entry by as much as rounding may change it.
   Rounding itself leaves numbers with few digits as they are. */
static void round_at_random(int64_t n, double roundoff, uint64_t *seed,
                            hone_entry *v) {
  double unit[DRAWN], *part = (double *)v;
  for (int64_t at = 0; at < HONE_PARTS * n; at += DRAWN) {
    const int64_t count = HONE_MIN((int64_t)DRAWN, HONE_PARTS * n - at);
    hone_random_units(count, seed, unit);
    for (int64_t i = 0; i < count; i++)
      part[at + i] += roundoff * unit[i] * part[at + i];
  }
}

/* v = inv(M) v for k columns, refined where the factors are if that is wanted
   and the engine does it. */
static int solve(const hone_factored *f, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  hone_refined_solve job = {.a = f->a,
                            .scaling = f->scaling,
                            .trans = trans,
                            .most = f->corrections ? *f->corrections : 0,
                            .k = k,
                            .ldv = ldv,
                            .v = v};
  int st = HONE_NO_DEVICE;
  const bool may = job.most > 0 && f->use_copy && f->deflation == NULL &&
                   f->rounding_seed == NULL;
  if (may && k == 1 && f->engine->solved_beside != NULL)
    st = f->engine->solved_beside(f->self, &job);
  if (may && k >= REFINED_LEAST && f->engine->solve_refined != NULL)
    st = f->engine->solve_refined(f->self, &job);
  if (st == HONE_NO_DEVICE)
    st = f->engine->solve(f->self, trans, k, v, ldv);
  if (f->corrections)
    *f->corrections = job.corrections;
  return st;
}

/* Columns whose largest entries are wanted. */
typedef struct measured_columns {
  int64_t n, ldv;
  const hone_entry *v;
  double *size;
} measured_columns;

static void measure_column(void *ctx, int64_t c) {
  const measured_columns *m = ctx;
  m->size[c] = hone_max_abs(m->n, m->v + c * m->ldv);
}

/* v = inv(N) v for k columns, N being the factors with their deflation. size,
   if not NULL, receives the largest entry that any part of a column had. */
static int apply_factors(const hone_factored *f, bool in_double, bool trans,
                         int64_t k, hone_entry *v, int64_t ldv, double *size) {
  const hone_deflation *d = f->deflation;
  hone_entry coefficient[HONE_SOLVE_COLUMNS][HONE_DEFLATED_MOST];
  for (int64_t c = 0; d != NULL && c < k; c++)
    hone_deflation_project(d, trans, v + c * ldv, coefficient[c]);
  /* An engine without 'apply' solves in double arithmetic in any case. */
  const bool single =
      f->engine->precision < 64 && !in_double && f->engine->apply != NULL;
  /* 1 + 2^-53 u would be 1. */
  const double roundoff = single ? ROUNDOFF_SINGLE : 2.0 * HONE_EPS;
  for (int64_t c = 0; f->rounding_seed != NULL && c < k; c++)
    round_at_random(f->a->n, roundoff, f->rounding_seed, v + c * ldv);
  int st = in_double && f->engine->apply
               ? f->engine->apply(f->self, trans, k, v, ldv)
               : solve(f, trans, k, v, ldv);
  measured_columns columns = {f->a->n, ldv, v, size};
  if (st == HONE_OK && size)
    hone_for_columns(f->pool, f->a->n, k, measure_column, &columns);
  for (int64_t c = 0; st == HONE_OK && d != NULL && c < k; c++) {
    hone_entry *vc = v + c * ldv;
    hone_deflation_correct(d, trans, coefficient[c], vc);
    if (size)
      size[c] = fmax(size[c], hone_max_abs(f->a->n, vc));
  }
  return st;
}

/* v = P v of gmres.h for k columns, with sizes as above. With the other
   transpose, about which the pairs say nothing, v = inv(N) v in double
   arithmetic. */
static int apply_with_space(const hone_factored *f, bool trans, int64_t k,
                            hone_entry *v, int64_t ldv, double *size) {
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
  int st = apply_factors(f, true, trans, k, v, ldv, size);
  for (int64_t c = 0; st == HONE_OK && c < k; c++) {
    hone_scale_out(n, NULL, e[c], v + c * ldv);
    if (pairs)
      hone_space_expand(space, coefficient[c], v + c * ldv);
    if (size)
      size[c] = fmax(hone_shift(size[c], -e[c]), hone_max_abs(n, v + c * ldv));
  }
  return st;
}

void hone_for_columns(hone_pool *pool, int64_t n, int64_t k, hone_task run,
                      void *ctx) {
  hone_pool_run(n * k < WORTH_THREADS ? NULL : pool, k, run, ctx);
}

/* Columns that are scaled by 2^exponents and by powers 2^shift of their own. */
typedef struct scaled_columns {
  int64_t n, ldv;
  const int *exponents; /* NULL: zeros */
  hone_entry *v;
  int *shift;
  double *size; /* their largest entries before they are scaled out, or NULL */
} scaled_columns;

static void scale_column_in(void *ctx, int64_t c) {
  const scaled_columns *s = ctx;
  hone_entry *v = s->v + c * s->ldv;
  s->shift[c] = hone_scale_in(s->n, s->exponents, v, v);
}

static void scale_column_out(void *ctx, int64_t c) {
  const scaled_columns *s = ctx;
  hone_entry *v = s->v + c * s->ldv;
  if (s->size)
    s->size[c] = hone_max_abs(s->n, v);
  hone_scale_out(s->n, s->exponents, s->shift[c], v);
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
  /* Sizes are taken where columns are scaled out, unless more is added to v
     before that. */
  const bool plainly = f->space == NULL && f->deflation == NULL;
  double *before = plainly ? NULL : size;
  scaled_columns columns = {n, ldv, in, v, e, plainly ? size : NULL};
  hone_for_columns(f->pool, n, k, scale_column_in, &columns);
  int st = f->space ? apply_with_space(f, trans, k, v, ldv, before)
                    : apply_factors(f, f->in_double, trans, k, v, ldv, before);
  if (st != HONE_OK)
    return st;
  for (int64_t c = 0; shift && c < k; c++)
    e[c] += shift[c];
  columns.exponents = out;
  hone_for_columns(f->pool, n, k, scale_column_out, &columns);
  for (int64_t c = 0; size && c < k; c++)
    size[c] = hone_shift(size[c], -e[c]);
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

bool hone_residuals(const hone_factored *f, bool trans,
                    const hone_residual_block *block) {
  bool apart = block->k > 1, all = true;
  for (int64_t c = 0; c < block->k; c++)
    apart = apart && block->r[c] != block->b[c];
  /* Where that fails, each column begins anew from its b. */
  if (apart && f->use_copy && f->engine->residuals != NULL &&
      f->engine->residuals(f->self, f->a, trans, block) == HONE_OK)
    return true;
  for (int64_t c = 0; c < block->k; c++)
    all = hone_residual(f, trans, block->x[c], block->b[c], block->r[c],
                        block->den[c]) &&
          all;
  return all;
}

/* p_c = op(A) x_c for k columns on the engine's copy of A. work: 2 n. Returns
   the number of passes over A, or 0 if the engine fails. */
static int multiply_on_device(const hone_factored *f, bool trans, int64_t k,
                              const hone_entry *x, hone_entry *p,
                              hone_entry *work) {
  const int64_t n = f->a->n;
  hone_entry *zero = work;
  double *den = (double *)(work + n);
  if (f->engine->product)
    return f->engine->product(f->self, f->a, trans, k, x, p) == HONE_OK;
  memset(zero, 0, (size_t)n * sizeof *zero);
  for (int64_t c = 0; c < k; c++) {
    if (f->engine->residual(f->self, f->a, trans, x + c * n, zero, p + c * n,
                            den) != HONE_OK)
      return 0;
    for (int64_t i = 0; i < n; i++)
      p[c * n + i] = -p[c * n + i];
  }
  return (int)k;
}

/* Returns the k for which 2^k C v and 2^k A C v lie as high in the range of
   double as they can where exponents of R or C are large, since their smallest
   entries would be lost otherwise; else 0. in, out: exponents of C and R. */
static int product_lift(int64_t n, const int *in, const int *out,
                        const hone_entry *v) {
  int high = INT_MIN, widest = 0;
  for (int64_t i = 0; i < n; i++) {
    high = HONE_MAX(high, HONE_MAX(in[i], -out[i]));
    widest = HONE_MAX(widest, HONE_MAX(abs(in[i]), abs(out[i])));
  }
  const double size = hone_max_abs(n, v);
  if (widest <= LIFT_FROM || !(size > 0.0) || !(size <= DBL_MAX))
    return 0;
  const int room = ilogb((double)n) + ROOM; /* for the sum of a row */
  return DBL_MAX_EXP - room - high - ilogb(size);
}

int hone_multiply(const hone_factored *f, bool trans, int64_t k,
                  const hone_entry *v, hone_entry *p, hone_entry *work) {
  int passes = 0, lift[HONE_SOLVE_COLUMNS];
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  const int *in = trans ? s->row_exp : s->col_exp;
  const int *out = trans ? s->col_exp : s->row_exp;
  if (s->used) {
    for (int64_t c = 0; c < k; c++) {
      lift[c] = product_lift(n, in, out, v + c * n);
      hone_scale_by(n, in, 1, lift[c], v + c * n, work + c * n);
    }
    v = work;
  }
  if (f->use_copy)
    passes = multiply_on_device(f, trans, k, v, p, work + HONE_PROBES_MOST * n);
  if (passes == 0) {
    f->a->op->product(f->a, f->pool, trans, k, v, p);
    passes = 1;
  }
  for (int64_t c = 0; s->used && c < k; c++)
    hone_scale_by(n, out, 1, -lift[c], p + c * n, p + c * n);
  return passes;
}

int hone_multiply_accurately(const hone_factored *f, bool trans, int k,
                             const hone_entry *v, hone_entry *p,
                             hone_entry *work) {
  const int64_t n = f->a->n;
  const hone_scaling *s = f->scaling;
  const int *in = trans ? s->row_exp : s->col_exp;
  const int *out = trans ? s->col_exp : s->row_exp;
  hone_entry *x = work, *zero = work + n;
  double *den = (double *)(work + 2 * n);
  memset(zero, 0, (size_t)n * sizeof *zero);
  for (int c = 0; c < k; c++) {
    const int lift = s->used ? product_lift(n, in, out, v + c * n) : 0;
    for (int64_t i = 0; i < n; i++)
      x[i] = -v[c * n + i];
    if (s->used)
      hone_scale_by(n, in, 1, lift, x, x);
    (void)hone_residual(f, trans, x, zero, p + c * n, den);
    if (s->used)
      hone_scale_by(n, out, 1, -lift, p + c * n, p + c * n);
  }
  return k;
}
