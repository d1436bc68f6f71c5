/* SPDX-License-Identifier: BSD-3-Clause */
/* Times Hone's factorization alone: a single-precision matrix that is on the
   device already is factored by the steps of the library's own loop. The clock
   starts when the matrix has been copied into the engine's. With HONE_COMPLEX
   defined it is a complex one. */
#ifdef HONE_COMPLEX
#define hone_bench_factor hone_z_bench_factor
#define hone_bench_form_factor hone_z_bench_form_factor
#endif
#include "bench/gpu/factor.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/round.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

const char *const names[] = {"fp16x3", "fp32", "tf32",
                             "bf16x3", "fp16", "bf16"};
const int values[] = {HONE_ARITHMETIC_FP16X3, HONE_ARITHMETIC_FP32,
                      HONE_ARITHMETIC_TF32,   HONE_ARITHMETIC_BF16X3,
                      HONE_ARITHMETIC_FP16,   HONE_ARITHMETIC_BF16};

/* Factors A as a single block column, between two events. */
int factor(hone_cuda *c, const float *a, int64_t lda, const cudaEvent_t *ends,
           hone_factor_info *info) {
  *info = {};
  info->zero_pivot = -1;
  int st =
      hone_cuda_load_floats(c, reinterpret_cast<const hone_single *>(a), lda);
  TRY_CUDA(cudaEventRecord(ends[0], c->work));
  TRY(hone_cuda_factor_column(c, 0, c->n));
  TRY(hone_cuda_finish(c));
  TRY(hone_cuda_outcome(c, true, info));
  TRY_CUDA(cudaEventRecord(ends[1], c->work));
  TRY_CUDA(cudaEventSynchronize(ends[1]));
  return st;
}

#ifdef HONE_COMPLEX
const hone_engine &engine_of(const hone_bench_form *) {
  return hone_engine_single_cuda;
}
double residual_of(const hone_cuda *c, const float *a, const float *lu,
                   int64_t lda) {
  return complex_lu_residual(c->n, a, lu, lda, c->perm);
}
#else
const hone_engine &engine_of(const hone_bench_form *form) {
  return form->cholesky ? hone_engine_cholesky_cuda : hone_engine_single_cuda;
}
double residual_of(const hone_cuda *c, const float *a, const float *lu,
                   int64_t lda) {
  return c->spd ? cholesky_residual(c->n, a, lu, lda)
                : lu_residual(c->n, a, lu, lda, c->perm);
}
#endif

/* The library stores its factors by rows, and the residual needs columns. */
double residual(hone_cuda *c, const float *a, int64_t lda) {
  double result = NAN;
  float *lu = nullptr;
  if (cudaMalloc(reinterpret_cast<void **>(&lu),
                 (size_t)(lda * c->n) * sizeof(hone_single)) == cudaSuccess &&
      hone_cuda_transpose(c->n, reinterpret_cast<hone_single *>(c->f),
                          c->ld / HONE_PARTS, 0, c->n,
                          {lu, HONE_PARTS * lda, nullptr, c->top, nullptr},
                          c->work) == cudaSuccess &&
      cudaStreamSynchronize(c->work) == cudaSuccess)
    result = residual_of(c, a, lu, lda);
  (void)cudaFree(lu);
  return result;
}

} // namespace

extern "C" int hone_bench_factor(int64_t n, const float *d_a, int64_t lda,
                                 int arithmetic, int rounds, double *ms,
                                 double *relative_residual, char *text,
                                 size_t size) {
  const hone_bench_form form = {arithmetic, 0, 0, 0, 0, 0};
  return hone_bench_form_factor(&form, n, d_a, lda, rounds, ms,
                                relative_residual, text, size);
}

extern "C" int hone_bench_form_factor(const hone_bench_form *form, int64_t n,
                                      const float *d_a, int64_t lda, int rounds,
                                      double *ms, double *relative_residual,
                                      char *text, size_t size) {
  const int arithmetic = form->arithmetic;
  if (arithmetic < 0 || arithmetic >= (int)(sizeof values / sizeof *values))
    return 1;
  const hone_engine &engine = engine_of(form);
  cudaEvent_t ends[2] = {};
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  hone_factor_info info;
  char why[128] = "";
  void *self = nullptr;
  config.n = n;
  config.mem = &mem;
  config.watch = &watch;
  config.choices.arithmetic = values[arithmetic];
  config.choices.residuals = HONE_RESIDUALS_HOST;
  config.why = why;
  config.why_size = sizeof why;
  config.block = form->block;
  config.choices.trial.outer = form->outer;
  config.choices.trial.strip = form->strip;
  config.choices.trial.ahead_from = form->ahead_from;
  snprintf(text, size, "%s", names[arithmetic]);
  int st = engine.create(&self, &config);
  if (st != HONE_OK) {
    snprintf(text, size, "create: %s %s", hone_status_text(st), why);
    return -1;
  }
  hone_cuda *c = static_cast<hone_cuda *>(self);
  (void)cudaEventCreate(&ends[0]);
  (void)cudaEventCreate(&ends[1]);
  for (int r = -1; r < rounds && st == HONE_OK; r++) {
    float took = 0.0F;
    st = factor(c, d_a, lda, ends, &info);
    if (st == HONE_OK)
      (void)cudaEventElapsedTime(&took, ends[0], ends[1]);
    if (r >= 0)
      ms[r] = (double)took;
  }
  if (st == HONE_OK && info.zero_pivot >= 0) {
    snprintf(text, size, "zero pivot, or not positive definite: column %lld",
             (long long)info.zero_pivot);
    st = HONE_SINGULAR;
  } else if (st != HONE_OK)
    snprintf(text, size, "%s", hone_status_text(st));
  else if (relative_residual)
    *relative_residual = residual(c, d_a, lda);
  (void)cudaEventDestroy(ends[0]);
  (void)cudaEventDestroy(ends[1]);
  engine.destroy(self, &mem);
  return st == HONE_OK ? 0 : -1;
}
