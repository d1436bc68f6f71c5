/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of several vectors with the copy of A that an engine keeps on a
   device. */
#include "base/engine.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>

enum { N = 131, COLUMNS = 35 /* more than the device takes at once */ };

static void check_product(const double *a, int64_t lda, bool trans,
                          const double *x, const double *y) {
  for (int64_t c = 0; c < COLUMNS; c++)
    for (int64_t i = 0; i < N; i++) {
      double sum = 0.0, size = 0.0;
      for (int64_t j = 0; j < N; j++) {
        const double v = trans ? a[j + i * lda] : a[i + j * lda];
        sum += v * x[j + c * N];
        size += fabs(v * x[j + c * N]);
      }
      CHECK_NEAR(y[i + c * N], sum, N * SUP_EPS * size);
    }
}

TEST(engine_cuda, multiplies_by_its_copy_of_a) {
  char why[128];
  const hone_engine *engine = &hone_engine_single_cuda;
  if (!engine->probe(why, sizeof why))
    SKIP(why);
  const int64_t lda = N + 2;
  sup_rng rng = {3};
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_factor_info info;
  void *self = NULL;
  double *a = sup_filled(lda * N, 0.0), *other = sup_filled(lda * N, 1.0);
  double *x = sup_filled(COLUMNS * N, 0.0), *y = sup_filled(COLUMNS * N, 0.0);
  sup_random(&rng, N, N, a, lda);
  sup_random(&rng, N, COLUMNS, x, N);
  const hone_engine_config config = {.n = N, .mem = &mem, .watch = &watch};
  REQUIRE(engine->create(&self, &config) == HONE_OK);
  CHECK_EQ_INT(engine->factor(self, sup_matrix(N, lda, a), NULL, &info),
               HONE_OK);
  for (int trans = 0; trans < 2; trans++) {
    CHECK_EQ_INT(
        engine->product(self, sup_matrix(N, lda, a), trans, COLUMNS, x, y),
        HONE_OK);
    check_product(a, lda, trans, x, y);
  }
  CHECK_EQ_INT(
      engine->product(self, sup_matrix(N, lda, other), false, COLUMNS, x, y),
      HONE_NO_DEVICE);
  engine->destroy(self, &mem);
  CHECK_EQ_INT(mem.held, 0);
  sup_free(a);
  sup_free(other);
  sup_free(x);
  sup_free(y);
}
