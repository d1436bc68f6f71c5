/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the single-precision CUDA engines, LU and Cholesky. The members
   are in create.cu, factor/loop.cu, solve/solve.cu and residual/resident.cu. */
#include "gpu_sp/create.h"
#include "gpu_sp/factor/loop.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/kept.h"
#include "gpu_sp/layout.h"
#include "gpu_sp/residual/resident.h"
#include "gpu_sp/solve/beside.h"
#include "gpu_sp/solve/probe.h"
#include "gpu_sp/solve/refined.h"
#include "gpu_sp/solve/solve.h"

#include <cstdio>

namespace {

int create_lu(void **self, const hone_engine_config *config) {
  return hone_cuda_create(false, self, config);
}

int64_t device_bytes_lu(const hone_engine_config *config, bool resident) {
  return hone_cuda_device_bytes(false, config, resident);
}

bool resident(void *self) {
  return static_cast<hone_cuda *>(self)->a != nullptr;
}

void account(void *self, hone_account *out) {
  hone_cuda *c = static_cast<hone_cuda *>(self);
  *out = c->used;
  out->device_most = c->keep_at_most;
  static const char *const sections[] = {
      "", ", TRSM sections", ", seeded sections", ", Crout sections"};
  const bool cpu = c->used.diagonal_ms > 0.0; /* some diagonal block */
  snprintf(out->text, sizeof out->text, "%s, %s%s%s",
           hone_cuda_arithmetic_name(c),
           c->spd ? "one triangle" : hone_cuda_pivoting_name(c),
           cpu ? ", diagonal blocks by the CPU" : "",
           c->spd ? "" : sections[c->choices.sections]);
}

/* A member that does as 'member' does, aside, on the engine's own device, where
   the caller's thread has another one that is current by now. */
template <auto member> struct on_its_device;
template <class R, class... P, R (*member)(void *, P...)>
struct on_its_device<member> {
  static R call(void *self, P... p) {
    const hone_cuda *c = static_cast<const hone_cuda *>(self);
    int current = -1;
    if (c == nullptr || cudaGetDevice(&current) != cudaSuccess ||
        current == c->ordinal)
      return hone_cuda_aside<member>::call(self, p...);
    const hone_cuda_entry meanwhile;
    const hone_cuda_current callers;
    (void)cudaSetDevice(c->ordinal); /* if it fails, launches will */
    return member(self, p...);
  }
};

/* Returns a table with the members that both engines have in common. */
constexpr hone_engine common() {
  hone_engine t = {};
  t.place = "CUDA";
  t.precision = 32;
  t.wide = true;
  t.probe = hone_cuda_aside<hone_cuda_probe>::call;
  t.factor = on_its_device<hone_cuda_factor>::call;
  t.meanwhile = hone_cuda_meanwhile;
  t.solve = on_its_device<hone_cuda_solve>::call;
  t.solve_refined = on_its_device<hone_cuda_solve_refined>::call;
  t.solved_beside = on_its_device<hone_cuda_solved_beside>::call;
  t.destroy = on_its_device<hone_cuda_destroy>::call;
  t.bytes = hone_cuda_host_bytes;
  t.resident = resident;
  t.lend = hone_cuda_lend;
  t.inspect = on_its_device<hone_cuda_inspect_matrix>::call;
  t.residual = on_its_device<hone_cuda_matrix_residual>::call;
  t.residuals = on_its_device<hone_cuda_matrix_residuals>::call;
  t.projection = on_its_device<hone_cuda_projection_of>::call;
  t.product = on_its_device<hone_cuda_matrix_product>::call;
  t.probe_step = on_its_device<hone_cuda_probe_step>::call;
  t.probed = on_its_device<hone_cuda_probed>::call;
  t.expect_probes = on_its_device<hone_cuda_expect_probes>::call;
  t.expect = hone_cuda_expect_solve;
  t.account = account;
  t.release = hone_cuda_release_all_kept;
  return t;
}

constexpr hone_engine lu() {
  hone_engine t = common();
  t.name = "single LU";
  t.create = hone_cuda_aside<create_lu>::call;
  t.device_bytes = device_bytes_lu;
  return t;
}

int create_cholesky(void **self, const hone_engine_config *config) {
  return hone_cuda_create(true, self, config);
}

int64_t device_bytes_cholesky(const hone_engine_config *config, bool resident) {
  return hone_cuda_device_bytes(true, config, resident);
}

constexpr hone_engine cholesky() {
  hone_engine t = common();
  t.name = "single Cholesky";
  t.symmetric = true;
  t.applies = hone_cuda_is_definite;
  t.create = hone_cuda_aside<create_cholesky>::call;
  t.device_bytes = device_bytes_cholesky;
  return t;
}

} // namespace

extern "C" const hone_engine hone_engine_single_cuda = lu();
extern "C" const hone_engine hone_engine_cholesky_cuda = cholesky();
