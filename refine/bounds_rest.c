/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of x + t while errors are bounded, where t are the corrections that
   are kept apart from x: by steps, by the engine, or by passes over A. Next to
   read: bounds.c. */
#include "refine/bounds.h"
#include "refine/noise.h"
#include "refine/scale.h"
#include "refine/steps.h"

/* v = r - A t for the columns listed, by a product in double, where all are
   served by steps. Its rounding errors are small because t is; they are added
   to the noise. */
static bool follow_steps(hone_refinement *ctx, int64_t m, hone_bounding *list) {
  hone_refined *columns[HONE_SOLVE_COLUMNS];
  bool serves = ctx->steps_work != NULL;
  for (int64_t c = 0; c < m; c++) {
    columns[c] = list[c].column;
    serves = serves && columns[c]->by_steps && columns[c]->shift == 0;
  }
  for (int64_t c = 0; serves && c < m; c++)
    list[c].noise += columns[c]->spread * hone_steps_rounding(ctx, columns[c]);
  if (serves)
    hone_steps_subtract_spare(ctx, m, columns);
  return serves;
}

/* v = r - A t for several columns, by the engine in blocks. */
static bool measure_rest_there(hone_refinement *ctx,
                               hone_certificate *certificate, int64_t m,
                               hone_bounding *list,
                               hone_residual_block *block) {
  const hone_refined *columns[HONE_SOLVE_COLUMNS];
  long double effect[HONE_SOLVE_COLUMNS];
  bool serves = m > 1 && ctx->f.use_copy && ctx->f.engine->residuals != NULL;
  for (int64_t c = 0; c < m; c++) {
    columns[c] = list[c].column;
    serves = serves && !columns[c]->wide; /* whose denominators are wanted */
  }
  if (!serves)
    return false;
  const bool counts =
      hone_bounds_allow(ctx, certificate, m, columns, block, effect);
  if (ctx->f.engine->residuals(ctx->f.self, ctx->f.a, ctx->trans, block) !=
      HONE_OK)
    return false;
  for (int64_t c = 0; counts && c < m; c++)
    list[c].products += effect[c];
  return true;
}

void hone_bounds_measure_rest(hone_refinement *ctx,
                              hone_certificate *certificate, int64_t m,
                              hone_bounding *list) {
  const int64_t n = ctx->f.a->n;
  if (follow_steps(ctx, m, list))
    return;
  const hone_entry *x[HONE_SOLVE_COLUMNS], *r[HONE_SOLVE_COLUMNS];
  hone_entry *v[HONE_SOLVE_COLUMNS];
  double *den[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < m; c++) {
    hone_refined *column = list[c].column;
    if (column->shift != 0)
      hone_scale_by(n, NULL, 1, column->shift, column->spare, column->spare);
    x[c] = column->spare;
    r[c] = column->r;
    v[c] = ctx->v + c * n;
    den[c] = (double *)(ctx->scratch + c % HONE_PROBES * n);
  }
  if (m == 1 && ctx->f.use_copy && ctx->f.engine->expect != NULL)
    ctx->f.engine->expect(ctx->f.self);
  hone_residual_block block = {m, x, r, v, NULL, false, false};
  const bool there = measure_rest_there(ctx, certificate, m, list, &block);
  for (int64_t c = 0; !there && ctx->f.use_copy && c < m; c++) {
    ctx->f.use_copy =
        hone_residual(&ctx->f, ctx->trans, x[c], r[c], v[c], den[c]) &&
        ctx->f.use_copy;
    if (ctx->f.use_copy)
      list[c].products += hone_noise_of_rest(ctx, list[c].column, v[c], den[c]);
  }
  for (int64_t c = 0; !ctx->f.use_copy && c < m; c += HONE_PROBES) {
    const hone_residual_job job = {.a = ctx->f.a,
                                   .trans = ctx->trans,
                                   .accurate = true,
                                   .k = HONE_MIN(m - c, (int64_t)HONE_PROBES),
                                   .x = x + c,
                                   .b = r + c,
                                   .r = v + c,
                                   .den = den + c};
    ctx->f.a->op->residual(&job, ctx->f.pool);
    for (int64_t k = c; k < c + job.k; k++)
      list[k].products += hone_noise_of_rest(ctx, list[k].column, v[k], den[k]);
  }
  *(ctx->f.use_copy ? &ctx->device_passes : &ctx->passes) += 1;
  for (int64_t c = 0; c < m; c++) {
    const int shift = list[c].column->shift;
    if (shift != 0)
      hone_scale_by(n, NULL, 1, -shift, list[c].column->spare,
                    list[c].column->spare);
    if (shift < 0)
      list[c].grain = hone_shiftl(HONE_BOUNDS_GRAIN, -shift);
  }
}
