/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates for which a device makes the probes once more, since later
   powers of E contract where the last one did not. */
#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <string.h>

enum { N = 50, PAIRS = 12 };

/* A = I, and factors that leave E: pairs of eigenvalues +- 0.3, ||E|| is 2, E^2
   is 0.1, and so on. */
static int solve_with_pairs(void *self, bool trans, int64_t k, double *v,
                            int64_t ldv) {
  (void)self;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < 2 * PAIRS; i += 2) {
      double *at = v + c * ldv + i;
      const double first = at[trans], second = at[!trans];
      at[trans] -= 2.0 * second;
      at[!trans] -= 0.05 * first;
    }
  return HONE_OK;
}

static int multiply_by_identity(void *self, const hone_matrix *a, bool trans,
                                int64_t k, const double *x, double *p) {
  (void)self;
  (void)trans;
  memcpy(p, x, (size_t)(k * a->n) * sizeof *p);
  return HONE_OK;
}

/* Every other power leaves more than the one before, so that the run ends, and
   there are too many directions to deflate. On a device another run persists,
   and so does the only one for S^T. */
TEST(probes, persist_on_a_device_where_deflation_finds_nothing) {
  const hone_engine engine = {.precision = 32,
                              .solve = solve_with_pairs,
                              .product = multiply_by_identity};
  const hone_scaling scaling = {.used = false};
  double *identity = sup_filled(N * N, 0.0);
  double *memory = sup_filled(hone_deflation_entries(N), 0.0);
  double *scratch = sup_filled(hone_certify_scratch(N, true), 0.0);
  double *rows = sup_filled(2 * N, 0.0);
  for (int64_t i = 0; i < N; i++)
    identity[i * (N + 1)] = 1.0;
  const hone_matrix a = *sup_matrix(N, N, identity);
  for (int copy = 0; copy < 2; copy++) {
    uint64_t seed = 31;
    hone_deflation deflation = hone_deflation_make(N, memory);
    const hone_factored f = {
        .engine = &engine, .a = &a, .scaling = &scaling, .use_copy = copy};
    const hone_certify_job job = {.f = &f,
                                  .deflation = &deflation,
                                  .norm1 = 1.0,
                                  .norm1_scaled = 1.0,
                                  .scratch = scratch,
                                  .seed = &seed};
    hone_certificate out = {
        .contraction = {{.rows = rows}, {.rows = rows + N}}};
    ct_note("copy %d", copy);
    CHECK_EQ_INT(hone_certify(&job, &out), HONE_OK);
    CHECK_EQ_INT(deflation.count, 0);
    CHECK_EQ_INT(out.contraction[0].power, copy ? 4 : 0);
    CHECK_EQ_INT(out.nonsingular, copy);
    CHECK_EQ_INT(hone_certify_transpose(&job, &out), HONE_OK);
    CHECK_EQ_INT(out.contraction[1].power, copy ? 4 : 0);
  }
  sup_free(rows);
  sup_free(scratch);
  sup_free(memory);
  sup_free(identity);
}
