/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that begins to solve ahead, while the host examines a residual, is
   sent b and x alone. Next to read: test_resident.c. */
#include "tests/unit/support.h"

#include "api/hone.h"
#include "tests/unit/ct.h"

/* Where a device begins to solve ahead, a solve sends it b and, for each
   residual, x and b: all corrections and the error bound follow from these. */
TEST(resident, corrections_and_the_error_bound_are_solved_for_ahead) {
  enum { N = 300 };
  char why[128];
  if (!hone_engine_single_cuda.probe(why, sizeof why))
    SKIP(why);
  for (int trans = 0; trans < 2; trans++) {
    sup_rng rng = {12};
    double *a = sup_filled(N * N, 0.0), *b = sup_filled(N, 0.0);
    double *x = sup_filled(N, 0.0);
    hone_options options;
    hone_report before = HONE_REPORT_INIT, solved = HONE_REPORT_INIT;
    hone_solver *solver = NULL;
    options = (hone_options)HONE_OPTIONS_INIT;
    options.device = HONE_DEVICE_CUDA;
    sup_random(&rng, N, N, a, N);
    sup_random(&rng, N, 1, b, N);
    CHECK_EQ_INT(hone_solver_create(&solver, N, &options), HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, a, N, &before), HONE_OK);
    if (trans) /* the first such solve certifies the factors for A^T too */
      CHECK_EQ_INT(
          sup_solver_solve(solver, 1, 1, b, N, x, N, NULL, 0, NULL, &before),
          HONE_OK);
    CHECK_EQ_INT(
        sup_solver_solve(solver, trans, 1, b, N, x, N, NULL, 0, NULL, &solved),
        HONE_OK);
    ct_note("trans %d", trans);
    CHECK_GE(solved.device_passes, 3);
    CHECK_EQ_INT(solved.to_device_bytes - before.to_device_bytes,
                 (1 + 2 * solved.device_passes) * N * (int)sizeof(double));
    hone_solver_destroy(&solver);
    sup_free(a);
    sup_free(b);
    sup_free(x);
  }
}
