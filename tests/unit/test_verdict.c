/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict by projection, refine/verdict.c: true residuals are vouched for,
   whatever the matrix; every damage that matters is refused, with the
   probability that verdict.h states; rows that the projection cannot resolve
   are computed by the host. For real and for complex entries. All draws come
   from seeds. Next to read: test_resident.c, for what refinement makes of it.
 */
#include "cpu_dp/residual.h"
#include "refine/verdict.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

enum { MOST = 160, DRAWS = 50 };

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad; /* of 113 bits where there is no __float128 */
#endif

/* A system with its residual and a projection of A. */
typedef struct judged {
  int64_t n;
  bool trans;
  hone_entry a[MOST * MOST], x[MOST], b[MOST], r[MOST];
  hone_entry v[MOST], w[MOST], w_rest[MOST];
  double den[MOST], u[MOST];
  hone_dense dense;
  hone_matrix matrix;
  hone_projection p;
  hone_refined column;
  hone_scaling scaling;
  hone_engine engine;
  uint64_t seed;
  hone_refinement ctx;
} judged;

static judged s; /* large */

/* That of errors of r, of modulus 1. */
#ifdef HONE_COMPLEX
#define DIRECTION CMPLX(0.0, 1.0)
#else
#define DIRECTION 1.0
#endif

static const hone_projection *projection_of(void *self, const hone_matrix *a,
                                            bool trans) {
  (void)a;
  return ((judged *)self)->trans == trans ? &((judged *)self)->p : NULL;
}

static void take_residual(void) {
  const hone_residual_job job = {.a = &s.matrix,
                                 .trans = s.trans,
                                 .accurate = true,
                                 .k = 1,
                                 .x = (const hone_entry *const[]){s.x},
                                 .b = (const hone_entry *const[]){s.b},
                                 .r = (hone_entry *const[]){s.r},
                                 .den = (double *const[]){s.den}};
  hone_dense_residual(&job, NULL);
}

static void project(void) {
  memset(s.w, 0, sizeof s.w);
  memset(s.w_rest, 0, sizeof s.w_rest);
  memset(s.u, 0, sizeof s.u);
  hone_projection_draw(s.n, &s.seed, s.v);
  for (int64_t j = 0; j < s.n; j++)
    hone_dense_operator.project_entry(&s.matrix, s.trans, j, s.v, &s.w[j],
                                      &s.w_rest[j], &s.u[j]);
}

/* Fills A by 'entry', and makes an x that solves A x = b but for rounding. */
static void set_up(int64_t n, bool trans, uint64_t seed,
                   hone_entry (*entry)(sup_rng *rng, int64_t i, int64_t j)) {
  sup_rng rng = {seed};
  memset(&s, 0, sizeof s);
  s.n = n;
  s.trans = trans;
  s.seed = seed;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      s.a[i + j * n] = entry(&rng, i, j);
  for (int64_t i = 0; i < n; i++)
    s.x[i] = 2.0 * entries_uniform(&rng);
  s.dense = (hone_dense){n, n, s.a, NULL, trans, 0};
  s.matrix = hone_dense_matrix(&s.dense);
  s.p = (hone_projection){s.v, s.w, s.w_rest, s.u, false};
  s.column = (hone_refined){.b = s.b, .x = s.x, .r = s.r, .den = s.den};
  s.engine.projection = projection_of;
  s.ctx = (hone_refinement){.f = {.engine = &s.engine,
                                  .self = &s,
                                  .a = &s.matrix,
                                  .scaling = &s.scaling},
                            .trans = trans,
                            .norm_a = 1.0,
                            .seed = &s.seed};
  take_residual(); /* with b = 0: -A x */
  for (int64_t i = 0; i < n; i++)
    s.b[i] = -s.r[i];
  take_residual();
  project();
}

static hone_entry uniform(sup_rng *rng, int64_t i, int64_t j) {
  (void)i;
  (void)j;
  return entries_uniform(rng);
}
static hone_entry positive(sup_rng *rng, int64_t i, int64_t j) {
  (void)i;
  (void)j;
  return ENTRY(0.5, 0.5) + entries_uniform(rng);
}
static hone_entry ones(sup_rng *rng, int64_t i, int64_t j) {
  (void)rng;
  return i == j ? 2.0 : 1.0;
}
static hone_entry heavy_tailed(sup_rng *rng, int64_t i, int64_t j) {
  (void)i;
  (void)j;
  return entries_uniform(rng) * exp(3.0 * sup_normal(rng));
}
static hone_entry graded_columns(sup_rng *rng, int64_t i, int64_t j) {
  (void)i;
  return entries_uniform(rng) * ldexp(1.0, (int)(-j / 16));
}
static hone_entry graded_rows(sup_rng *rng, int64_t i, int64_t j) {
  (void)j;
  return entries_uniform(rng) * ldexp(1.0, (int)(-i / 16));
}
static hone_entry integers(sup_rng *rng, int64_t i, int64_t j) {
  (void)i;
  (void)j;
  const hone_entry v = 10.0 * entries_uniform(rng);
  return ENTRY(floor(hone_real(v)), floor(hone_imag(v)));
}
static hone_entry banded(sup_rng *rng, int64_t i, int64_t j) {
  return i - j < 4 && j - i < 4 ? entries_uniform(rng) : 0.0;
}

static hone_entry (*const families[])(sup_rng *, int64_t, int64_t) = {
    uniform,        positive,    ones,     heavy_tailed,
    graded_columns, graded_rows, integers, banded};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* The weights are real, between 1/2 and 1 in magnitude, of both signs, and no
   two are equal. */
TEST_OF(verdict, weights_are_neither_small_nor_equal) {
  uint64_t seed = 3;
  double sum = 0.0;
  hone_projection_draw(MOST, &seed, s.v);
  for (int64_t i = 0; i < MOST; i++) {
    const double v = hone_real(s.v[i]);
    CHECK(fabs(v) >= 0.5 && fabs(v) <= 1.0);
    CHECK(hone_imag(s.v[i]) == 0.0);
    sum += v;
    for (int64_t k = 0; k < i; k++)
      CHECK(fabs(v) != hone_abs(s.v[k]));
  }
  CHECK_LE(fabs(sum), 0.3 * MOST);
}

/* Each part of the projection is that of a sum in quadruple precision, to
   2^-98. */
static void check_entry(int64_t j) {
  quad re = 0, im = 0;
  long double size = 0.0L;
  for (int64_t i = 0; i < s.n; i++) {
    const hone_entry a = s.trans ? s.a[j + i * s.n] : s.a[i + j * s.n];
    const double v = hone_real(s.v[i]);
    re += (quad)v * (quad)hone_real(a);
    im += (quad)v * (quad)hone_imag(a);
    size += fabsl((long double)v) * hone_absl((hone_wide)a);
  }
  re -= (quad)hone_real(s.w[j]) + (quad)hone_real(s.w_rest[j]);
  im -= (quad)hone_imag(s.w[j]) + (quad)hone_imag(s.w_rest[j]);
  CHECK_LE((double)(re < 0 ? -re : re), 0x1p-98 * (double)size);
  CHECK_LE((double)(im < 0 ? -im : im), 0x1p-98 * (double)size);
  CHECK_NEAR(s.u[j], (double)size, 0x1p-44 * (double)size);
}

TEST_OF(verdict, projections_have_twice_the_digits_of_double) {
  for (int f = 0; f < FAMILIES; f++)
    for (int trans = 0; trans < 2; trans++) {
      set_up(MOST, trans, 5, families[f]);
      for (int64_t j = 0; j < s.n; j++) {
        ct_note("family %d, trans %d, entry %d", f, trans, (int)j);
        check_entry(j);
      }
    }
}

TEST_OF(verdict, vouches_for_true_residuals) {
  static const int64_t orders[] = {1, 2, 7, 33, 130, MOST};
  for (int f = 0; f < FAMILIES; f++)
    for (int k = 0; k < 6; k++)
      for (int trans = 0; trans < 2; trans++) {
        set_up(orders[k], trans, 7 + (uint64_t)k, families[f]);
        for (int draw = 0; draw < 10; draw++) {
          const hone_verdict_sums sums = hone_verdict_sum(s.n, &s.p, &s.column);
          ct_note("family %d, n %d, trans %d", f, (int)s.n, trans);
          CHECK_LE(sums.residual, 0.7 * sums.resolution);
          CHECK_LE(sums.denominators, 0.7 * sums.den_resolution);
          CHECK(hone_verdict(&s.ctx, &s.p, &s.column));
          project();
        }
      }
}

/* How many of DRAWS draws vouch for the residual as it is now. */
static int vouched(void) {
  int count = 0;
  for (int draw = 0; draw < DRAWS; draw++) {
    project();
    count += hone_verdict(&s.ctx, &s.p, &s.column);
  }
  return count;
}

TEST_OF(verdict, refuses_an_error_of_a_quarter_of_an_ulp_in_one_row) {
  for (int trans = 0; trans < 2; trans++)
    for (int64_t i = 0; i < MOST; i += 53) {
      set_up(MOST, trans, 11, uniform);
      s.r[i] += HONE_VERDICT_ERROR * s.den[i] * DIRECTION;
      CHECK_EQ_INT(vouched(), 0);
    }
}

TEST_OF(verdict, refuses_damage_of_the_copy_of_a) {
  for (int trans = 0; trans < 2; trans++) {
    set_up(MOST, trans, 12, uniform);
    hone_entry *const a = &s.a[MOST / 2 + 3 * MOST];
    const hone_entry kept = *a;
    *a = 1.25 * kept; /* the device reads this, */
    take_residual();
    *a = kept; /* and the host that */
    CHECK_EQ_INT(vouched(), 0);
    hone_entry row[MOST];
    for (int64_t j = 0; j < MOST; j++) {
      row[j] = s.a[9 + j * MOST];
      s.a[9 + j * MOST] = s.a[10 + j * MOST];
    }
    take_residual();
    for (int64_t j = 0; j < MOST; j++)
      s.a[9 + j * MOST] = row[j];
    CHECK_EQ_INT(vouched(), 0);
  }
}

TEST_OF(verdict, refuses_residuals_of_zero_and_what_is_not_a_number) {
  set_up(MOST, false, 13, uniform);
  s.x[5] *= 1.0 + 0x1p-45;
  memset(s.r, 0, sizeof s.r);
  CHECK_EQ_INT(vouched(), 0);
  set_up(MOST, false, 13, uniform);
  s.r[17] = entries_ending_in(HONE_NAN);
  CHECK_EQ_INT(vouched(), 0);
  set_up(MOST, false, 13, uniform);
  s.den[17] = HONE_NAN;
  CHECK_EQ_INT(vouched(), 0);
  set_up(MOST, false, 13, uniform);
  s.den[17] = HONE_INF;
  CHECK_EQ_INT(vouched(), 0);
}

TEST_OF(verdict, refuses_wrong_denominators) {
  set_up(MOST, false, 14, uniform);
  s.den[8] *= 1.125;
  CHECK_EQ_INT(vouched(), 0);
  set_up(MOST, false, 14, uniform);
  for (int64_t i = 0; i < MOST; i++)
    s.den[i] *= 2.0;
  CHECK_EQ_INT(vouched(), 0);
  set_up(MOST, false, 14, uniform); /* errors that cancel each other */
  const double moved = 0.25 * s.den[20];
  s.den[20] += moved;
  s.den[21] -= moved;
  CHECK_EQ_INT(vouched(), 0);
}

/* An error e in one row passes where its weighted value and the rest of the sum
   S happen to be within the resolution t: with a probability below 2 t / e. For
   an e of 16 t, and the same spread over two rows with opposite signs, 1000
   draws pass at most so often as a binomial distribution allows at 5 sigma. */
TEST_OF(verdict, errors_pass_no_oftener_than_stated) {
  for (int rows = 1; rows <= 2; rows++) {
    int passed = 0;
    set_up(MOST, false, 15, uniform);
    const hone_verdict_sums sums = hone_verdict_sum(s.n, &s.p, &s.column);
    const double e = 16.0 * sums.resolution;
    s.r[3] += e * DIRECTION;
    if (rows == 2)
      s.r[4] -= e * DIRECTION;
    for (int draw = 0; draw < 1000; draw++) {
      project();
      const hone_verdict_sums now = hone_verdict_sum(s.n, &s.p, &s.column);
      passed += now.residual <= now.resolution;
    }
    ct_note("%d rows: %d of 1000", rows, passed);
    CHECK_LE(passed, 125 + 53);
    CHECK_LE(rows == 2 ? 20 : 0, passed); /* it does happen */
  }
}

/* Row 6 is so small that no sum over all rows shows it. */
TEST_OF(verdict, computes_rows_that_it_cannot_resolve) {
  for (int trans = 0; trans < 2; trans++) {
    set_up(MOST, trans, 16, uniform);
    for (int64_t j = 0; j < MOST; j++)
      s.a[trans ? j + 6 * MOST : 6 + j * MOST] *= 0x1p-120;
    s.b[6] *= 0x1p-120;
    take_residual();
    project();
    const hone_entry r = s.r[6];
    const double den = s.den[6];
    s.r[6] = 0.5 * den;
    s.den[6] = 4.0 * den;
    CHECK(hone_verdict(&s.ctx, &s.p, &s.column));
    CHECK_LE(hone_abs(s.r[6] - r), 0x1p-50 * den);
    CHECK_NEAR(s.den[6], den, 0x1p-40 * den);
    CHECK_LE(s.column.errors.componentwise, 4.0 * SUP_EPS);
  }
}

TEST_OF(verdict, leaves_many_rows_that_it_cannot_resolve_to_a_pass_over_a) {
  set_up(MOST, false, 17, uniform);
  for (int64_t i = 0; i < MOST / 2; i++) {
    for (int64_t j = 0; j < MOST; j++)
      s.a[i + j * MOST] *= 0x1p-60;
    s.b[i] *= 0x1p-60;
  }
  take_residual();
  CHECK_EQ_INT(vouched(), 0);
}

TEST_OF(verdict, leaves_shifted_vectors_and_x_0_to_a_pass_over_a) {
  set_up(MOST, false, 18, uniform);
  s.column.shift = 4;
  CHECK(!hone_verdict(&s.ctx, &s.p, &s.column));
  s.column.shift = 0;
  s.column.x_is_zero = true;
  CHECK(!hone_verdict(&s.ctx, &s.p, &s.column));
  s.column.x_is_zero = false;
  s.column.measure_tail = true;
  CHECK(!hone_verdict(&s.ctx, &s.p, &s.column));
  s.column.measure_tail = false;
  CHECK(hone_verdict(&s.ctx, &s.p, &s.column));
}

/* An A that the caller has changed since it was projected is found by entries
   of the projection computed anew. */
TEST_OF(verdict, notices_that_a_has_changed) {
  for (int trans = 0; trans < 2; trans++) {
    set_up(MOST, trans, 19, uniform);
    CHECK(hone_verdict_projection(&s.ctx) == &s.p);
    for (int64_t i = 0; i < MOST * MOST;
         i++) { /* complex: in the imaginary part */
      const hone_entry part =
          HONE_PARTS == 1 ? s.a[i] : 0.5 * (s.a[i] - hone_conj(s.a[i]));
      s.a[i] += 0x1p-52 * part;
    }
    for (int draw = 0; draw < DRAWS; draw++)
      CHECK(hone_verdict_projection(&s.ctx) == NULL);
    s.ctx.trans = !trans; /* for that there is no projection */
    CHECK(hone_verdict_projection(&s.ctx) == NULL);
  }
}
