/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of hone_batch_solve that its ways to solve share: which system is next,
   how its matrix lies, and its result. */
#include "api/batch.h"

#include "base/seed.h"
#include "refine/bounds.h"

#include <stdatomic.h>
#include <string.h>

int64_t hone_batch_system_at(const hone_batch_call *call, int64_t place) {
  return call->order ? call->order[place] : place;
}

hone_block_matrix hone_batch_matrix(const hone_batch_call *call,
                                    const hone_member *m) {
  const bool turned = (call->options.layout == HONE_ROW_MAJOR) !=
                      (call->options.trans != HONE_NO_TRANS);
  const int64_t lda = call->batch.lda;
  return (hone_block_matrix){.at = m->a,
                             .row = turned ? lda : 1,
                             .column = turned ? 1 : lda,
                             .turned = turned,
                             .conjugate =
                                 call->options.trans == HONE_CONJ_TRANS};
}

uint64_t hone_batch_seed(const hone_batch_call *call, int64_t n,
                         int64_t block) {
  uint64_t seed = (uint64_t)n;
  if (!call->options.deterministic)
    seed +=
        hone_process_seed() + (uint64_t)block * UINT64_C(0x632be59bd9b4e019);
  return hone_random_bits(&seed);
}

bool hone_batch_may_take(const hone_batch_call *call) {
  const hone_options *o = &call->options;
  return o->criterion == HONE_CRITERION_COMPONENTWISE && !o->extra_precise &&
         o->factor_precision != HONE_FACTOR_SINGLE;
}

bool hone_batch_is_definite(const hone_batch_call *call) {
  const hone_options *o = &call->options;
  return o->structure == HONE_STRUCTURE_SPD &&
         o->factor_precision != HONE_FACTOR_DOUBLE && !call->batch.determinants;
}

hone_batch_result hone_batch_best(void) {
  return (hone_batch_result){.digits = 16, .rcond = HONE_NAN};
}

static void raise_to(double v, double *to) { *to = hone_larger_or_nan(*to, v); }

void hone_batch_add_result(const hone_batch_result *r,
                           hone_batch_result *worst) {
  if (r->status < 0)
    return;
  raise_to(r->backward_error, &worst->backward_error);
  raise_to(r->normwise_error, &worst->normwise_error);
  raise_to(r->residual_error, &worst->residual_error);
  raise_to(r->forward_error, &worst->forward_error);
  if (isnan(worst->rcond) || r->rcond < worst->rcond) /* NaN: not known */
    worst->rcond = r->rcond;
  worst->iterations = HONE_MAX(worst->iterations, r->iterations);
  worst->precision = HONE_MAX(worst->precision, r->precision);
  worst->digits = HONE_MIN(worst->digits, r->digits);
}

void hone_batch_begin_results(hone_batch_call *call) {
  const hone_batch_result none = hone_batch_no_result(HONE_CANCELLED);
  const hone_batch_fault *fault =
      call->kept != NULL && !call->factors ? call->kept->fault : NULL;
  for (int64_t k = 0; k < call->batch.count; k++) {
    hone_batch_result *r = &call->results[k];
    *r = none;
    if (fault != NULL && fault[k].status < HONE_OK) {
      r->status = fault[k].status;
      r->row = fault[k].row;
      r->col = fault[k].col;
    }
  }
  call->begun = true;
}

void hone_batch_look_for_loss(hone_batch_call *call) {
  if (!hone_pool_is_lost(call->pool))
    return;
  call->lost = true;
  atomic_store(&call->stop, true);
  hone_batch_begin_results(call);
}

static void take_determinant(const hone_block_lane *lane,
                             hone_batch_result *r) {
  const double re = lane->determinant[0], im = lane->determinant[1];
  const double size = sqrt(re * re + im * im); /* from 1/2 to sqrt 2 */
  r->log_abs_det = log(size) + (double)lane->exponent * log(2.0);
  r->det_re = re / size;
  r->det_im = im / size;
}

void hone_batch_take_lane(const hone_batch_call *call,
                          const hone_block_lane *lane, hone_batch_result *r) {
  r->iterations = 0;
  r->precision = 64;
  r->digits = call->solves ? 16 : 0;
  r->forward_error = HONE_NAN;
  if (call->solves) {
    r->backward_error = r->normwise_error = 0.0;
    r->residual_error = r->forward_error = 0.0;
  }
  r->rcond = lane->rcond;
  if (call->batch.determinants && call->factors)
    take_determinant(lane, r);
}

/* Writes the caller's entry for this right-hand side. */
static void give_column(const hone_batch_call *call,
                        const hone_block_column *from, int32_t digits,
                        char *to) {
  const hone_column column = {.status = HONE_OK,
                              .iterations = from->corrections,
                              .precision = 64,
                              .digits = digits,
                              .backward_error = from->componentwise,
                              .normwise_error = from->normwise,
                              .residual_error = from->residual,
                              .forward_error = from->forward};
  memcpy(to, &column, call->options.column_size);
}

void hone_batch_take_column(const hone_batch_call *call, int64_t k, int64_t c,
                            const hone_block_column *from,
                            hone_batch_result *r) {
  const int32_t digits = hone_bounds_digits(from->forward);
  char *to = hone_batch_column(call, k, c);
  r->iterations = HONE_MAX(r->iterations, from->corrections);
  r->digits = HONE_MIN(r->digits, digits);
  r->backward_error = HONE_MAX(r->backward_error, from->componentwise);
  r->normwise_error = HONE_MAX(r->normwise_error, from->normwise);
  r->residual_error = HONE_MAX(r->residual_error, from->residual);
  r->forward_error = HONE_MAX(r->forward_error, from->forward);
  if (to != NULL)
    give_column(call, from, digits, to);
}
