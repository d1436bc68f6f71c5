/* SPDX-License-Identifier: BSD-3-Clause */
/* Times Hone's factorization alone: a single-precision matrix that is on the
   device already is factored by the steps of the library's own loop. The clock
   starts when the matrix has been copied into the engine's. With HONE_COMPLEX
   defined it is a complex one. */
#ifdef HONE_COMPLEX
#define hone_bench_factor hone_z_bench_factor
#define hone_bench_form_factor hone_z_bench_form_factor
#define hone_bench_form_arrive hone_z_bench_form_arrive
#endif
#include "bench/gpu/factor.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/round.h"

#include <chrono>
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

const hone_engine &engine_of(const hone_bench_form *form) {
  return form->cholesky ? hone_engine_cholesky_cuda : hone_engine_single_cuda;
}

#ifdef HONE_COMPLEX
double residual_of(const hone_cuda *c, const float *a, const float *lu,
                   int64_t lda) {
  return c->spd ? (double)NAN : complex_lu_residual(c->n, a, lu, lda, c->perm);
}
#else
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

/* An engine made for a form, and what it needs. */
struct maker {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  char why[128] = "";
  void *self = nullptr;
};

/* Returns 0; 1 if there is no such arithmetic; -1 after a failure. */
int make(const hone_bench_form *form, int64_t n, int residuals, hone_pool *pool,
         maker *m, char *text, size_t size) {
  const int arithmetic = form->arithmetic;
  if (arithmetic < 0 || arithmetic >= (int)(sizeof values / sizeof *values))
    return 1;
  hone_engine_config *config = &m->config;
  config->n = n;
  config->mem = &m->mem;
  config->watch = &m->watch;
  config->pool = pool;
  config->choices.arithmetic = values[arithmetic];
  config->choices.residuals = residuals;
  config->why = m->why;
  config->why_size = sizeof m->why;
  config->block = form->block;
  config->choices.trial.outer = form->outer;
  config->choices.trial.strip = form->strip;
  config->choices.trial.ahead_from = form->ahead_from;
  config->choices.trial.diagonal = form->diagonal;
  config->choices.trial.feed = form->feed;
  snprintf(text, size, "%s", names[arithmetic]);
  const int st = engine_of(form).create(&m->self, config);
  if (st != HONE_OK)
    snprintf(text, size, "create: %s %s", hone_status_text(st), m->why);
  return st == HONE_OK ? 0 : -1;
}

/* Says in text how a factorization ended, if it failed. */
int ended(int st, const hone_factor_info *info, char *text, size_t size) {
  if (st == HONE_OK && info->zero_pivot >= 0) {
    snprintf(text, size, "zero pivot, or not positive definite: column %lld",
             (long long)info->zero_pivot);
    return HONE_SINGULAR;
  }
  if (st != HONE_OK)
    snprintf(text, size, "%s", hone_status_text(st));
  return st;
}

} // namespace

extern "C" int hone_bench_factor(int64_t n, const float *d_a, int64_t lda,
                                 int arithmetic, int rounds, double *ms,
                                 double *relative_residual, char *text,
                                 size_t size) {
  const hone_bench_form form = {arithmetic, 0, 0, 0, 0, 0, 0, 0};
  return hone_bench_form_factor(&form, n, d_a, lda, rounds, ms,
                                relative_residual, text, size);
}

extern "C" int hone_bench_form_factor(const hone_bench_form *form, int64_t n,
                                      const float *d_a, int64_t lda, int rounds,
                                      double *ms, double *relative_residual,
                                      char *text, size_t size) {
  cudaEvent_t ends[2] = {};
  hone_factor_info info = {};
  maker m;
  const int made = make(form, n, HONE_RESIDUALS_HOST, nullptr, &m, text, size);
  if (made != 0)
    return made;
  int st = HONE_OK;
  hone_cuda *c = static_cast<hone_cuda *>(m.self);
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
  st = ended(st, &info, text, size);
  if (st == HONE_OK && relative_residual)
    *relative_residual = residual(c, d_a, lda);
  (void)cudaEventDestroy(ends[0]);
  (void)cudaEventDestroy(ends[1]);
  engine_of(form).destroy(m.self, &m.mem);
  return st == HONE_OK ? 0 : -1;
}

extern "C" int hone_bench_form_arrive(const hone_bench_form *form, int64_t n,
                                      const double *a, int64_t lda, int threads,
                                      int rounds, double *ms, char *text,
                                      size_t size) {
  const hone_engine &engine = engine_of(form);
  const hone_dense dense = {
      n, lda, reinterpret_cast<const hone_entry *>(a), nullptr, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&dense);
  hone_factor_info info = {};
  hone_pool *pool = nullptr;
  hone_mem mem = {};
  maker m;
  hone_pool_create(&pool, &mem, threads);
  const int made = make(form, n, HONE_RESIDUALS_AUTO, pool, &m, text, size);
  int st = HONE_OK;
  for (int r = -1; r < rounds && made == 0 && st == HONE_OK; r++) {
    const auto begin = std::chrono::steady_clock::now();
    st = engine.factor(m.self, &matrix, nullptr, &info);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begin;
    if (r >= 0)
      ms[r] = took.count();
  }
  if (made == 0) {
    st = ended(st, &info, text, size);
    engine.destroy(m.self, &m.mem);
  }
  hone_pool_destroy(&pool, &mem);
  return made != 0 ? made : st == HONE_OK ? 0 : -1;
}
