/* SPDX-License-Identifier: BSD-3-Clause */
/* The single-precision engines of a CUDA device, LU and Cholesky: the two
   tables. create.cu makes and destroys an engine's state, factor/loop.cu
   factors, solve/ and residual/ answer with the factors and with A. */
#include "gpu_sp/factor/loop.h"

namespace {

int create_lu(void **self, const hone_engine_config *config) {
  return hone_cuda_create(false, self, config);
}

int create_cholesky(void **self, const hone_engine_config *config) {
  return hone_cuda_create(true, self, config);
}

int64_t device_bytes_lu(const hone_engine_config *config, bool resident) {
  return hone_cuda_device_bytes(false, config, resident);
}

int64_t device_bytes_cholesky(const hone_engine_config *config, bool resident) {
  return hone_cuda_device_bytes(true, config, resident);
}

bool is_definite(const hone_structure *structure, int64_t) {
  return structure->definite;
}

bool resident(void *self) {
  return static_cast<hone_cuda *>(self)->a != nullptr;
}

/* The members that both engines have in common. */
constexpr hone_engine common() {
  hone_engine t = {};
  t.place = "CUDA";
  t.precision = 32;
  t.probe = hone_cuda_probe;
  t.factor = hone_cuda_factor;
  t.solve = hone_cuda_solve;
  t.destroy = hone_cuda_destroy;
  t.bytes = hone_cuda_host_bytes;
  t.resident = resident;
  t.inspect = hone_cuda_see;
  t.residual = hone_cuda_take_residual;
  t.expect = hone_cuda_expect;
  t.account = hone_cuda_account;
  return t;
}

constexpr hone_engine lu() {
  hone_engine t = common();
  t.name = "single LU";
  t.create = create_lu;
  t.device_bytes = device_bytes_lu;
  return t;
}

constexpr hone_engine cholesky() {
  hone_engine t = common();
  t.name = "single Cholesky";
  t.symmetric = true;
  t.applies = is_definite;
  t.create = create_cholesky;
  t.device_bytes = device_bytes_cholesky;
  return t;
}

} // namespace

extern "C" const hone_engine hone_engine_single_cuda = lu();
extern "C" const hone_engine hone_engine_cholesky_cuda = cholesky();
