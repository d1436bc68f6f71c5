/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of a CUDA engine's arrays: see layout.h. */
#include "gpu_sp/layout.h"

#include "gpu_sp/create.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/forms/forms.h"
#include "gpu_sp/residual/residual.h"

namespace {

enum { STRIP = 8192, ROUNDED_PARTS = 32 };
enum { KINDS = 2, PLANS = 6 };

/* These were the fastest on an H200, by bench/gpu/search_lu with A from the
   host and by whole solves (docs/performance.md). */
const hone_cuda_plan lu[KINDS][PLANS] = {
    /* real */
    {{5632, 128, HONE_PARTS_OF_3072},
     {7680, 256, HONE_PARTS_OF_3072},
     {10240, 256, HONE_PARTS_SIX},
     {12288, 512, HONE_PARTS_OF_3072},
     {INT64_MAX, 512, HONE_PARTS_OF_8192}},
    /* complex */
    {{2048, 64, HONE_PARTS_QUARTERS_HALF},
     {3072, 64, HONE_PARTS_OF_3072},
     {5120, 128, HONE_PARTS_OF_3072},
     {10240, 512, HONE_PARTS_SIX},
     {INT64_MAX, 512, HONE_PARTS_OF_8192}}};
const hone_cuda_plan cholesky[KINDS][PLANS] = {
    {{767, 128, HONE_PARTS_WHOLE},
     {2048, 128, HONE_PARTS_QUARTER_FIRST},
     {6144, 256, HONE_PARTS_QUARTERS_HALF},
     {INT64_MAX, 512, HONE_PARTS_SIX}},
    {{767, 128, HONE_PARTS_WHOLE},
     {2048, 512, HONE_PARTS_OF_3072},
     {6144, 512, HONE_PARTS_OF_8192},
     {INT64_MAX, 512, HONE_PARTS_QUARTERS_HALF}}};

} // namespace

const hone_cuda_plan *hone_cuda_plan_for(bool spd, int64_t n) {
  const hone_cuda_plan *plan = (spd ? cholesky : lu)[HONE_PARTS - 1];
  while (plan->up_to < n)
    plan++;
  return plan;
}

int64_t hone_cuda_outer_width(bool spd, const hone_engine_config *config) {
  const int64_t chosen = config->choices.trial.outer, block = config->block;
  const int64_t nb =
      chosen > 0 ? chosen : hone_cuda_plan_for(spd, config->n)->outer;
  return block > 0 && block < nb ? block : nb;
}

int64_t hone_cuda_dealt_columns(int64_t n, const hone_cuda_deal *deal) {
  const int64_t round = deal->width * deal->of;
  const int64_t rest = n % round - deal->width * deal->first;
  if (deal->window > 0)
    return deal->window;
  if (deal->of <= 1)
    return n;
  return n / round * deal->width +
         (rest < 0 ? 0 : (rest < deal->width ? rest : deal->width));
}

int hone_cuda_list_working(hone_cuda *c, hone_cuda_allocation *p) {
  const int64_t n = c->n, f4 = sizeof(float), d8 = sizeof(double);
  const int64_t entry = sizeof(hone_entry);
  const int64_t rows = hone_split_rows(c->pieces);
  const int64_t inner = (c->nb + HONE_PANEL - 1) / HONE_PANEL;
  const int64_t entries = inner * 2 * HONE_PANEL;
  const bool solves = c->deal.window == 0;
  int count = 0;
  auto add = [&](auto **at, int64_t bytes) {
    p[count++] = {reinterpret_cast<void **>(at), bytes};
  };
  /* One of several devices has room before F: several/several.h. */
  add(&c->f, (c->ld * n + hone_cuda_lead(c)) * f4);
  add(&c->lp, rows ? c->ldl * (c->spd ? c->ld / HONE_PARTS : n) * 2 : 0);
  add(&c->up, c->ldu * rows * inner * 2);
  add(&c->stage, 2 * c->ld * c->stage_columns * f4);
  add(&c->blas_work, HONE_CUDA_BLAS_WORK);
  add(&c->constants, 4 * f4 + 4 * d8);
  add(&c->scale, c->column_room * (int64_t)sizeof(hone_split_scale));
  add(&c->top, (c->column_room + 1) * f4);
  add(&c->flags, 3 * (int64_t)sizeof(int));
  add(&c->flushed, d8);
  add(&c->panel_work.memory, hone_cuda_panel_bytes(n, c->panel_work.part_rows));
  add(&c->moves, c->moves_room * (int64_t)sizeof(hone_moves));
  add(&c->dst, entries * (int64_t)sizeof(int));
  add(&c->src, 2 * entries * (int64_t)sizeof(int));
  add(&c->perm, n * (int64_t)sizeof(int));
  add(&c->new_row, n * (int64_t)sizeof(int));
  add(&c->identity, n * (int64_t)sizeof(int));
  add(&c->lower, solves ? hone_cuda_inverse_bytes(n) : 0);
  add(&c->upper, solves && !c->spd ? hone_cuda_inverse_bytes(n) : 0);
  add(&c->triangles.there, solves ? hone_cuda_triangle_bytes(n) : 0);
  add(&c->v, solves ? n * hone_cuda_columns(n) * entry : 0);
  add(&c->w, solves ? n * hone_cuda_columns(n) * entry : 0);
  add(&c->probes, solves ? n * hone_cuda_columns(n) * entry : 0);
  add(&c->row, n * d8);
  add(&c->col, n * d8);
  add(&c->forms.memory, hone_cuda_forms_bytes(c));
  return count;
}

int hone_cuda_list_resident(hone_cuda *c, hone_cuda_allocation *p) {
  const int64_t n = c->n, d8 = sizeof(double);
  p[0] = {reinterpret_cast<void **>(&c->copy),
          round_up(n, 2) * c->m * (int64_t)sizeof(hone_entry)};
  p[1] = {reinterpret_cast<void **>(&c->magnitudes), 4 * n * d8};
  p[2] = {&c->residual_work, hone_cuda_residual_bytes(n, c->m)};
  p[3] = {reinterpret_cast<void **>(&c->projection.there),
          hone_cuda_projection_bytes(n)};
  return 4;
}

int64_t hone_cuda_sum_bytes(const hone_cuda_allocation *p, int count) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++)
    bytes += p[i].bytes;
  return bytes;
}

namespace {

/* Returns the columns that a product of the last strip may have besides those
   of the strip: F's padding takes part, which is less than one of its multiples
   behind a strip that begins at any column. */
int64_t padding_of_u(const hone_cuda *c) {
  const int64_t aligned = HONE_CUDA_PADDING;
  const bool all = c->block % aligned == 0 && c->nb % aligned == 0 &&
                   c->strip % aligned == 0;
  return all || c->n <= c->strip ? 0 : aligned;
}

} // namespace

void hone_cuda_lay_out(hone_cuda *c, const hone_cuda_shape &of,
                       const hone_engine_config *config) {
  const int64_t n = config->n;
  const int chosen = config->choices.arithmetic;
  c->n = n;
  c->deal = of.deal;
  c->m = hone_cuda_dealt_columns(n, &of.deal);
  c->choices = config->choices;
  /* The methods of forms/ are for real matrices on one device. */
  if (HONE_PARTS > 1 || of.deal.of > 1) {
    c->choices.diagonal = HONE_DIAGONAL_AUTO;
    c->choices.sections = HONE_BLOCK_ROWS_AUTO;
  }
  c->spd = of.spd;
  c->block = of.deal.of > 1 ? 0 : config->block;
  c->ld = HONE_PARTS * (round_up(of.spd ? n : c->m, HONE_CUDA_PADDING) +
                        round_up(of.beside, HONE_CUDA_PADDING));
  c->lda = round_up(n, 2);
  c->nb =
      of.deal.of > 1 ? of.deal.width : hone_cuda_outer_width(of.spd, config);
  c->panel_work.part_rows = config->choices.trial.part_rows;
  c->panel_work.few_blocks = of.deal.of > 1;
  c->triangles.group = config->choices.trial.together;
  const int64_t strip = config->choices.trial.strip;
  c->strip = strip > 0 ? strip : (int64_t)STRIP;
  /* The rows of U of others come as a whole. */
  c->strip = n < c->strip || (of.spd && of.deal.of > 1) ? n : c->strip;
  c->pieces = HONE_SPLIT_FP16_3;
  if (chosen == HONE_ARITHMETIC_FP32 || chosen == HONE_ARITHMETIC_TF32)
    c->pieces = HONE_SPLIT_NONE;
  else if (chosen == HONE_ARITHMETIC_BF16X3)
    c->pieces = HONE_SPLIT_BF16_3;
  else if (chosen == HONE_ARITHMETIC_FP16)
    c->pieces = HONE_SPLIT_FP16_1;
  else if (chosen == HONE_ARITHMETIC_BF16)
    c->pieces = HONE_SPLIT_BF16_1;
  c->tf32 = chosen == HONE_ARITHMETIC_TF32;
  c->wanted_pieces = c->pieces;
  c->wanted_tf32 = c->tf32;
  const int64_t inner = c->nb < HONE_PANEL ? c->nb : (int64_t)HONE_PANEL;
  c->ldl = hone_split_rows(c->pieces) * ((c->nb + HONE_PANEL - 1) / HONE_PANEL);
  c->ldu = HONE_PARTS * round_up(c->strip + padding_of_u(c), 64);
  c->column_room = config->block > 0 && of.deal.of <= 1
                       ? (int)((n + config->block - 1) / config->block)
                       : ROUNDED_PARTS + 2;
  c->panel_room = (int)((n + c->nb - 1) / c->nb) + c->column_room;
  c->moves_room = (int)((n + inner - 1) / inner) + c->panel_room;
}

void hone_cuda_set_stage_columns(hone_cuda *c,
                                 const hone_engine_config *config) {
  const int64_t w = (c->n + ROUNDED_PARTS - 1) / ROUNDED_PARTS;
  c->stage_columns = config->block > 0 ? config->block : round_up(w, c->nb);
  if (c->stage_columns > c->n)
    c->stage_columns = c->n;
}

namespace {

int64_t bytes_of(const hone_cuda_shape &of, const hone_engine_config *config,
                 bool stays) {
  hone_cuda_allocation p[HONE_CUDA_ALLOCATIONS];
  hone_cuda c = {};
  hone_cuda_lay_out(&c, of, config);
  if (!stays && of.deal.window == 0)
    hone_cuda_set_stage_columns(&c, config);
  int64_t bytes = hone_cuda_sum_bytes(p, hone_cuda_list_working(&c, p));
  return stays ? bytes + hone_cuda_sum_bytes(p, hone_cuda_list_resident(&c, p))
               : bytes;
}

} // namespace

int64_t hone_cuda_device_bytes(bool spd, const hone_engine_config *config,
                               bool stays) {
  return bytes_of({spd, {}, 0}, config, stays);
}

int64_t hone_cuda_share_bytes(const hone_cuda_shape &of,
                              const hone_engine_config *config) {
  return bytes_of(of, config, true);
}

int64_t hone_cuda_window_bytes(const hone_engine_config *config,
                               const hone_cuda_deal *deal, int64_t beside) {
  return bytes_of({false, *deal, beside}, config, false);
}
