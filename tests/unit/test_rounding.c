/* SPDX-License-Identifier: BSD-3-Clause */
/* Real columns scaled and rounded to single precision, beside plain loops:
   test_complex_rounding.c has the same for complex ones, and exchanges. */
#include "base/rounding.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { N = 1100, W = 3, J = 40 };

/* Where 'apart' is 1015, r_i a_ij is out of range, unlike r_i a_ij c_j. */
TEST(rounding, is_that_of_scaled_entries) {
  double *a = sup_filled((int64_t)N * N, 0.0);
  float *f = malloc((size_t)W * N * sizeof *f);
  float most[W];
  hone_scaling scaling = {
      .row = sup_filled(N, 1.0), .col = sup_filled(N, 1.0), .used = true};
  const hone_dense dense = {.n = N, .lda = N, .a = a};
  const hone_rounding job = {.a = &dense,
                             .scaling = &scaling,
                             .j = J,
                             .w = W,
                             .f = f,
                             .ldf = N,
                             .col_max = most};
  sup_rng rng = {3};
  for (int64_t k = 0; k < (int64_t)N * N; k++)
    a[k] = ldexp(sup_uniform(&rng), (int)(-k % 150));
  for (int apart = -1015; apart <= 1015; apart += 1015) {
    int64_t flushed = 0, wrong = 0;
    ct_note("apart %d", apart);
    for (int i = 0; i < N; i++) {
      scaling.row[i] = ldexp(1.0, i % 9 - 4 - apart);
      scaling.col[i] = ldexp(1.0, i % 5 - 2 + apart);
    }
    const int64_t returned = hone_round_columns(NULL, &job);
    for (int64_t c = 0; c < W; c++)
      for (int64_t i = 0; i < N; i++) {
        const double v = a[i + (J + c) * N];
        float s = (float)ldexp(v, (int)(i % 9 - 4 + (J + c) % 5 - 2));
        s = fabsf(s) < FLT_MIN ? 0.0F : s;
        flushed += v != 0.0 && !(s != 0.0F);
        wrong += !(f[i + c * N] >= s && f[i + c * N] <= s);
      }
    CHECK_EQ_INT(wrong, 0);
    CHECK_EQ_INT(returned, flushed);
    CHECK_LE(1, flushed);
  }
  sup_free(a);
  free(f);
  sup_free(scaling.row);
  sup_free(scaling.col);
}
