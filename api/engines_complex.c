/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines behind the roles of the policy for complex systems. There are
   none for a GPU yet; engines.c has those of real systems. */
#include "api/engines.h"

#include <stdio.h>

static const hone_engine *const ENGINES[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &hone_engine_diagonal,
    [HONE_ROLE_TRIANGULAR] = &hone_engine_triangular,
    [HONE_ROLE_BANDED] = &hone_engine_banded,
    [HONE_ROLE_CPU_CHOLESKY] = &hone_engine_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &hone_engine_cholesky_double,
    [HONE_ROLE_CPU_LU] = &hone_engine_single,
    [HONE_ROLE_CPU_LU_DOUBLE] = &hone_engine_double,
};

int hone_choose_engines(const hone_options *o, int64_t n, bool one_shot,
                        hone_step steps[HONE_MAX_RUNGS], char *why,
                        size_t why_size) {
  (void)one_shot;
  why[0] = '\0';
  if (o->device == HONE_DEVICE_CUDA) {
    snprintf(why, why_size, "complex systems are solved on the CPU only, yet");
    return 0;
  }
  const hone_situation situation = {
      .n = n, .structure = o->structure, .start = o->factor_precision};
  return hone_policy_steps(&situation, ENGINES, steps);
}
