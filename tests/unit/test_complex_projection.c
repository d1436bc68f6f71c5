/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection of complex entries beside plain loops. Compiled with
   HONE_COMPLEX. */
#include "base/projection.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <stdlib.h>

/* Entries of ordinary size, zeros, and moduli whose squares leave double. */
static hone_entry projected_entry(sup_rng *rng, int kind) {
  static const double size[] = {1.0, 0x1p-600, 0x1p600, 1.0};
  const double re = sup_uniform(rng), im = sup_uniform(rng);
  if (kind == 3 && sup_uniform(rng) < 0.0)
    return 0.0;
  return CMPLX(size[kind] * re, kind == 3 ? 0.0 : size[kind] * im);
}

/* |w + w_rest - sum| <= 2^-90 of the sum of magnitudes; the latter to a few
   roundings for each entry. */
static void check_projection(int64_t n, const hone_entry *a, int64_t step,
                             const hone_entry *v, hone_entry hi, hone_entry lo,
                             double size) {
  long double re = 0.0L, im = 0.0L, all = 0.0L;
  for (int64_t i = 0; i < n; i++) {
    const long double w = (long double)creal(v[i]);
    re += w * (long double)creal(a[i * step]);
    im += w * (long double)cimag(a[i * step]);
    all += fabsl(w) * hypotl((long double)creal(a[i * step]),
                             (long double)cimag(a[i * step]));
  }
  /* The sums in long double are themselves rounded n times. */
  const long double off = all * (long double)(n + 1) * 0x1p-63L;
  CHECK(fabsl((long double)creal(hi) + (long double)creal(lo) - re) <= off);
  CHECK(fabsl((long double)cimag(hi) + (long double)cimag(lo) - im) <= off);
  CHECK(fabsl((long double)size - all) <=
        all * (long double)(n + 4) * 0x1p-52L);
}

TEST(complex_projection, sums_as_plain_loops_do) {
  enum { ROWS = 200, COLUMNS = 21 };
  hone_entry *a = malloc(ROWS * COLUMNS * sizeof *a);
  hone_entry v[ROWS], hi[ROWS], lo[ROWS];
  double sum[ROWS];
  sup_rng rng = {5};
  REQUIRE(a != NULL);
  uint64_t seed = 3;
  hone_projection_draw(ROWS, &seed, v);
  for (int kind = 0; kind < 4; kind++)
    for (int64_t rows = 1; rows <= ROWS; rows += rows < 70 ? 3 : 43) {
      ct_note("kind %d, %d rows", kind, (int)rows);
      for (int64_t e = 0; e < ROWS * COLUMNS; e++)
        a[e] = projected_entry(&rng, kind);
      for (int64_t j = 0; j < COLUMNS; j += 5) {
        hi[0] = lo[0] = sum[0] = 0.0;
        hone_project_column(rows, a + j * ROWS, v, hi, lo, sum);
        check_projection(rows, a + j * ROWS, 1, v, hi[0], lo[0], sum[0]);
      }
      for (int64_t i = 0; i < rows; i++)
        hi[i] = lo[i] = sum[i] = 0.0;
      hone_project_rows(rows, COLUMNS, a, ROWS, v, hi, lo, sum);
      for (int64_t i = 0; i < rows; i += 7)
        check_projection(COLUMNS, a + i, ROWS, v, hi[i], lo[i], sum[i]);
      a[rows / 2] = CMPLX(0.0, NAN);
      hi[0] = lo[0] = sum[0] = 0.0;
      hone_project_column(rows, a, v, hi, lo, sum);
      CHECK(isnan(sum[0]));
    }
  free(a);
}
