/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines behind the roles of the policy for complex systems; engines.c has
   those of real systems. A GPU has Cholesky's factorization and LU in single
   precision; what they do not serve the CPU factors in double. */
#include "api/engines.h"

const hone_engine *const hone_role_engines[HONE_ROLES] = {
    [HONE_ROLE_DIAGONAL] = &hone_engine_diagonal,
    [HONE_ROLE_TRIANGULAR] = &hone_engine_triangular,
    [HONE_ROLE_BANDED] = &hone_engine_banded,
    [HONE_ROLE_GPUS_CHOLESKY] = &hone_engine_several_cholesky_cuda,
    [HONE_ROLE_GPU_CHOLESKY] = &hone_engine_cholesky_cuda,
    [HONE_ROLE_CPU_CHOLESKY] = &hone_engine_cholesky,
    [HONE_ROLE_CPU_CHOLESKY_DOUBLE] = &hone_engine_cholesky_double,
    [HONE_ROLE_GPUS_LU] = &hone_engine_several_cuda,
    [HONE_ROLE_GPU_LU] = &hone_engine_single_cuda,
    [HONE_ROLE_GPU_LU_OUTSIDE] = &hone_engine_outside,
    [HONE_ROLE_CPU_LU] = &hone_engine_single,
    [HONE_ROLE_CPU_LU_DOUBLE] = &hone_engine_double,
    [HONE_ROLE_CPU_LU_TRANSPOSED] = &hone_engine_double_transposed,
};
