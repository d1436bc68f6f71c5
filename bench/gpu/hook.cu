/* SPDX-License-Identifier: BSD-3-Clause */
/* Hone's side of the comparison of factorizations: a single-precision matrix
   that is on the device already, factored there by the library's own LU. The
   clock starts when it has been copied into the device's matrix. */
#include "bench/gpu/factor.h"
#include "gpu_sp/state.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

struct given {
  const float *a;
  int64_t lda;
};
given now;
cudaEvent_t from, to;

int64_t whole(void *self, const hone_scaling *, int64_t) {
  return static_cast<hone_cuda *>(self)->n;
}

int load(void *self, const hone_matrix *, const hone_scaling *, int64_t,
         int64_t) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  const int st = hone_cuda_load_floats(c, now.a, now.lda);
  (void)cudaEventRecord(from, c->work);
  return st;
}

bool never(void *) { return false; }

const char *const names[] = {"fp16x3", "fp32", "tf32",
                             "bf16x3", "fp16", "bf16"};
const int values[] = {HONE_FP16X3, HONE_FP32, HONE_TF32,
                      HONE_BF16X3, HONE_FP16, HONE_BF16};

/* The library keeps its factors row by row, the check wants columns. */
double residual(hone_cuda *c, const float *a, int64_t lda) {
  double result = NAN;
  float *lu = nullptr;
  if (cudaMalloc(reinterpret_cast<void **>(&lu),
                 (size_t)(lda * c->n) * sizeof(float)) == cudaSuccess &&
      hone_cuda_turn(c->n, c->f, c->ld, 0, c->n, nullptr, lu, lda, c->top,
                     c->work) == cudaSuccess &&
      cudaStreamSynchronize(c->work) == cudaSuccess)
    result = c->spd ? cholesky_residual(c->n, a, lu, lda)
                    : lu_residual(c->n, a, lu, lda, c->perm);
  (void)cudaFree(lu);
  return result;
}

} // namespace

extern "C" int hone_bench_factor(int64_t n, const float *d_a, int64_t lda,
                                 int arithmetic, int rounds, double *ms,
                                 double *relative_residual, char *text,
                                 size_t size) {
  const hone_bench_form form = {arithmetic, 0, 0};
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
  hone_device device = hone_device_cuda;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  const hone_dense dense = {n, n, nullptr, nullptr};
  const hone_matrix a = hone_dense_matrix(&dense);
  hone_factor_info info;
  char why[128] = "";
  void *self = nullptr;
  device.block = whole;
  device.load = load;
  device.safer = never;
  config.n = n;
  config.mem = &mem;
  config.watch = &watch;
  config.choices.arithmetic = values[arithmetic];
  config.choices.residuals = HONE_RESIDUALS_HOST;
  config.why = why;
  config.why_size = sizeof why;
  config.spd = form->cholesky != 0;
  config.block = form->block;
  now = {d_a, lda};
  snprintf(text, size, "%s", names[arithmetic]);
  int st = device.create(&self, &config);
  if (st != HONE_OK) {
    snprintf(text, size, "create: %s %s", hone_status_text(st), why);
    return -1;
  }
  hone_cuda *c = static_cast<hone_cuda *>(self);
  config.block = 0; /* A is there as a whole */
  (void)cudaEventCreate(&from);
  (void)cudaEventCreate(&to);
  for (int r = -1; r < rounds && st == HONE_OK; r++) {
    float took = 0.0F;
    st = hone_lu(&device, self, &config, &a, nullptr, &info);
    (void)cudaEventRecord(to, c->work);
    (void)cudaEventSynchronize(to);
    (void)cudaEventElapsedTime(&took, from, to);
    if (r >= 0)
      ms[r] = (double)took;
  }
  if (st == HONE_OK && info.zero_pivot >= 0) {
    snprintf(text, size, "a pivot of zero or below, column %lld",
             (long long)info.zero_pivot);
    st = HONE_SINGULAR;
  } else if (st != HONE_OK)
    snprintf(text, size, "%s", hone_status_text(st));
  else if (relative_residual)
    *relative_residual = residual(c, d_a, lda);
  (void)cudaEventDestroy(from);
  (void)cudaEventDestroy(to);
  device.destroy(self, &mem);
  return st == HONE_OK ? 0 : -1;
}
