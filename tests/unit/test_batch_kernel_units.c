/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of systems in units of every size: matrices that are scaled, and
   numbers that are out of the range of the kernels. */
#include "tests/unit/batch_lot.h"

#ifdef HONE_COMPLEX
static const char *const suite = "batch_kernel_units_complex";
#else
static const char *const suite = "batch_kernel_units";
#endif

/* Rows and columns in other units, so that the matrix is scaled: residuals,
   denominators and bounds are those of the caller's. */
static void check_units(const hone_block_kernels *k) {
  reference r = {0};
  for (int64_t n = 2; n <= 140; n += 1 + n / 3) {
    lot t = make(k, n);
    for (int l = 0; l < k->lanes; l++) {
      for (int64_t i = 0; i < n * n * HONE_PARTS; i++)
        t.a[l][i] = ldexp(t.a[l][i], (int)(i / HONE_PARTS % n * 23 % 19) -
                                         (int)(i / HONE_PARTS / n % 5));
      for (int64_t i = 0; i < n * HONE_PARTS; i++)
        t.b[l][i] = ldexp(t.b[l][i], (int)(i / HONE_PARTS * 23 % 19));
    }
    factor_and_solve(&t);
    for (int l = 0; l < k->lanes; l++) {
      ct_note("%s, n %d, lane %d", k->isa, (int)n, l);
      check_lane(&t, l, &r);
    }
    discard(&t);
  }
  reference_free(&r);
}

static void solve_in_other_units(const void *arg) {
  (void)arg;
  with_tables(check_units);
}

/* A lane with a number that is out of range, wherever it is, is not served, and
   the others are. */
static void check_ranges(const hone_block_kernels *k) {
  enum { N = 19 };
  static const double out[] = {HONE_NAN, HONE_INF, 0x1p301, 0x1p-301};
  for (int way = 0; way < 4 * N; way++)
    for (int of_b = 0; of_b < 2; of_b++) {
      const int lane = way % k->lanes, at = way / 4;
      const double bad = out[way % 4];
      lot t = make(k, N);
      ct_note("%s, %g in row %d of %s", k->isa, bad, at, of_b ? "b" : "A");
      if (of_b)
        t.b[lane][at * HONE_PARTS] = fabs(bad) < 1.0  ? 0x1p-401
                                     : bad <= 0x1p301 ? 0x1p401
                                                      : bad;
      else
        *entry(&t, lane, at, (3 * at + 1) % N) = bad;
      factor_and_solve(&t);
      for (int l = 0; l < k->lanes; l++) {
        CHECK_EQ_INT(t.block.lane[l].serves, of_b || l != lane);
        CHECK_EQ_INT(t.job.column[l].accepted, l != lane);
      }
      CHECK(sup_untouched(t.x[lane], N * HONE_PARTS, -7.0));
      discard(&t);
    }
}

static void refuse_numbers_out_of_range(const void *arg) {
  (void)arg;
  with_tables(check_ranges);
}

CT_CONSTRUCTOR static void list_checks(void) {
  ct_register(suite, "solve_in_other_units", solve_in_other_units, NULL);
  ct_register(suite, "refuse_numbers_out_of_range", refuse_numbers_out_of_range,
              NULL);
}
