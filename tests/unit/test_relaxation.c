/* SPDX-License-Identifier: BSD-3-Clause */
/* Relaxed corrections, for real and for complex entries: how far they are
   relaxed, what the probes say of powers that are, and bounds after them, all
   for an E that is known. */
#include "refine/relaxation.h"

#include "base/vectors.h"
#include "refine/bounds.h"
#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

/* Bounds use one of these for each column. */
static hone_bounding bounding[HONE_SOLVE_COLUMNS];

enum { N = 16, SEED = 7 };

/* ---- Omega --------------------------------------------------------------- */

/* p = (1 - lambda) u, but for what 'other' adds to every second entry. */
static hone_entry omega_of(hone_entry lambda, double other) {
  hone_entry u[N], p[N];
  uint64_t seed = SEED;
  hone_probe_draw(N, &seed, u);
  for (int i = 0; i < N; i++)
    p[i] = (1.0 - lambda) * u[i] + (i % 2 ? other : 0.0);
  return hone_relaxation_by(N, u, p);
}

TEST_OF(relaxation, leaves_nothing_of_a_vector_with_one_eigenvalue) {
  static const double turned[] = {0.3, 0.499, -0.499, 1e-3};
  for (int at = 0; at < 4; at++) {
    const hone_entry lambda =
        turned[at] * ENTRY(0.6, 0.8) / hone_abs(ENTRY(0.6, 0.8));
    const hone_entry want = 1.0 / (1.0 - lambda);
    CHECK_NEAR(hone_abs(omega_of(lambda, 0.0) - want), 0.0, 1e-12);
  }
}

TEST_OF(relaxation, is_left_out_where_corrections_converge_slowly) {
  static const double large[] = {0.501, -0.501, 1.0, 1.5, -3.0, 1e200};
  for (int at = 0; at < 6; at++)
    CHECK(omega_of(large[at], 0.0) == 1.0);
  CHECK(omega_of((double)NAN, 0.0) == 1.0);
  CHECK(omega_of((double)INFINITY, 0.0) == 1.0);
}

/* A relaxed correction leaves less than a tenth of u only if lambda prevails.
 */
TEST_OF(relaxation, is_left_out_where_no_eigenvalue_prevails) {
  hone_entry u[N], p[N];
  for (int i = 0; i < N; i++)
    u[i] = ENTRY(1.0, -1.0);
  for (int k = 0; k < 2; k++) {
    /* eigenvalues 0.2 +- s: u - p is 0.2 +- s, and relaxed about +- s */
    const double s = k == 0 ? 0.0155 : 0.017;
    for (int i = 0; i < N; i++)
      p[i] = (i % 2 ? 0.8 + s : 0.8 - s) * u[i];
    const hone_entry omega = hone_relaxation_by(N, u, p);
    CHECK_NEAR(hone_abs(omega - (k == 0 ? 1.25 : 1.0)), 0.0, 1e-12);
  }
  memset(u, 0, sizeof u);
  CHECK(hone_relaxation_by(N, u, p) == 1.0);
}

/* ---- A known E ----------------------------------------------------------- */

/* S = I, and an engine whose solve multiplies by I - E. */
static hone_entry e[N][N];

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  (void)self;
  for (int64_t c = 0; c < k; c++) {
    hone_entry left[N];
    for (int i = 0; i < N; i++) {
      left[i] = v[i + c * ldv];
      for (int j = 0; j < N; j++)
        left[i] -= (trans ? e[j][i] : e[i][j]) * v[j + c * ldv];
    }
    memcpy(v + c * ldv, left, sizeof left);
  }
  return HONE_OK;
}

typedef struct known {
  hone_engine engine;
  hone_entry identity[N * N], scratch[4 * HONE_PARTS * (HONE_PROBES + 3) * N];
  hone_dense dense;
  hone_matrix a;
  hone_scaling scaling;
  int row_exp[N], col_exp[N];
  hone_factored f;
  double rows[N];
  hone_probing probing;
  hone_contraction out;
} known;

/* E = lambda p q^T, with q^T p = 1 and ||p|| ||q|| of about 2, and other
   directions that are random and of about 'rest'. */
static void set_up(known *s, hone_entry lambda, double rest) {
  hone_entry p[N], random[N];
  double size = 0.0;
  uint64_t seed = 99;
  *s = (known){.engine = {.precision = 64, .solve = solve}};
  CHECK_LE(hone_certify_scratch(N, false),
           (int64_t)(sizeof s->scratch / sizeof *s->scratch));
  hone_probe_draw(N, &seed, p);
  for (int i = 0; i < N; i++)
    size += hone_abs(p[i]) * hone_abs(p[i]);
  for (int j = 0; j < N; j++) {
    hone_probe_draw(N, &seed, random);
    s->identity[j * (N + 1)] = 1.0;
    /* q = conj(p) / p^H p + a vector w with w^T p = 0 */
    const double turn = j % 2 ? 1.0 : -1.0;
    const hone_entry w = turn * p[j % 2 ? j - 1 : j + 1] / size;
    for (int i = 0; i < N; i++)
      e[i][j] = lambda * p[i] * (hone_conj(p[j]) / size + 1.5 * w) +
                rest * random[i] / sqrt((double)N);
  }
  s->dense = (hone_dense){N, N, s->identity, NULL, false, 0};
  s->a = hone_dense_matrix(&s->dense);
  s->scaling = (hone_scaling){.row_exp = s->row_exp, .col_exp = s->col_exp};
  s->f =
      (hone_factored){.engine = &s->engine, .a = &s->a, .scaling = &s->scaling};
  s->out.rows = s->rows;
  s->probing = (hone_probing){.f = &s->f, .seed = SEED, .scratch = s->scratch};
}

/* to = E from, or F from with the omega that was found. */
static void apply(const known *s, bool relaxed, const hone_entry *from,
                  hone_entry *to) {
  for (int i = 0; i < N; i++) {
    to[i] = 0.0;
    for (int j = 0; j < N; j++)
      to[i] += e[i][j] * from[j];
    if (relaxed)
      to[i] += s->out.excess * (to[i] - from[i]);
  }
}

/* The power of E that the probes have bounded, applied to a vector. */
static void apply_power(const known *s, const hone_entry *from,
                        hone_entry *to) {
  hone_entry at[N];
  memcpy(to, from, N * sizeof *to);
  for (int k = 0; k < s->out.power; k++) {
    memcpy(at, to, sizeof at);
    apply(s, k == 1, at, to);
  }
}

/* The largest quotient of norms over many random vectors, of which each is the
   image of the one before: no more than the 2-norm. */
static double norm_of(const known *s,
                      void (*make)(const known *, const hone_entry *,
                                   hone_entry *)) {
  hone_entry v[N], w[N];
  uint64_t seed = 5;
  double most = 0.0;
  for (int k = 0; k < 200; k++) {
    hone_probe_draw(N, &seed, v);
    for (int step = 0; step < 3; step++) {
      make(s, v, w);
      most = fmax(most,
                  sqrt(hone_sum_of_squares(N, w) / hone_sum_of_squares(N, v)));
      memcpy(v, w, sizeof v);
    }
  }
  return most;
}
static void make_e(const known *s, const hone_entry *v, hone_entry *w) {
  apply(s, false, v, w);
}
static void make_f(const known *s, const hone_entry *v, hone_entry *w) {
  apply(s, true, v, w);
}

/* Row i of the power, by its products with unit vectors. */
static double row_of(const known *s, int i) {
  double sum = 0.0;
  for (int j = 0; j < N; j++) {
    hone_entry unit[N] = {0.0}, column[N];
    unit[j] = 1.0;
    apply_power(s, unit, column);
    sum += hone_abs(column[i]) * hone_abs(column[i]);
  }
  return sqrt(sum);
}

/* Plain powers of an E that leaves 0.49 of a direction need more than five. */
TEST_OF(relaxation, makes_the_second_power_contract) {
  static const double sizes[] = {0.3, 0.49, -0.4};
  for (int at = 0; at < 3; at++)
    for (int trans = 0; trans < 2; trans++) {
      known s;
      const hone_entry lambda = sizes[at] * ENTRY(0.8, 0.6);
      ct_note("lambda %g, trans %d", sizes[at], trans);
      set_up(&s, lambda, 1e-5);
      s.probing.trans = trans;
      CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
      CHECK_EQ_INT(s.out.power, 2);
      CHECK_NEAR(hone_abs(1.0 + s.out.excess - 1.0 / (1.0 - lambda)), 0.0,
                 1e-3);
      for (int i = 0; i < N; i++)
        CHECK(trans || s.rows[i] >= row_of(&s, i));
      CHECK(trans || s.out.bound >= norm_of(&s, apply_power));
      CHECK_LE(s.out.bound, 0.1);
    }
}

/* With directions left that do not contract at once, a third power follows. */
TEST_OF(relaxation, bounds_the_powers_before) {
  static const double rests[] = {1e-3, 0.008 / HONE_PARTS, 1e-3};
  for (int at = 0; at < 3; at++) {
    known s;
    hone_contraction first = {.rows = NULL};
    ct_note("rest %g", rests[at]);
    set_up(&s, at == 2 ? -0.49 : 0.49, rests[at]); /* omega 2, or 0.7 */
    first.rows = s.rows;
    CHECK_EQ_INT(hone_probe(&s.probing, 1, &first), HONE_OK);
    s.probing.seed = SEED;
    CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
    CHECK(at == 1 ? s.out.power > 2 : s.out.power == 2);
    CHECK(s.out.excess != 0.0);
    const double omega = hone_abs(1.0 + s.out.excess);
    const double least =
        fmax(first.bound, omega * first.bound + hone_abs(s.out.excess));
    CHECK_LE(least * (1.0 - 1e-12), s.out.before);
    CHECK(at == 1 ? s.out.before >= least + norm_of(&s, apply_power)
                  : s.out.before <= least * (1.0 + 1e-12));
    CHECK_LE(norm_of(&s, make_e), s.out.before);
    CHECK_LE(norm_of(&s, make_f), s.out.before);
    CHECK_LE(norm_of(&s, apply_power), s.out.bound);
  }
}

/* omega is that of the first vector which is not used any more: with another
   one it would not be independent of those that are. */
TEST_OF(relaxation, is_by_a_vector_that_has_no_part_in_the_bound) {
  enum { LATER = 8 / HONE_PARTS };
  known s;
  hone_entry g[N], u[N], p[N];
  uint64_t seed = SEED;
  set_up(&s, 0.45 * ENTRY(0.8, 0.6), 1e-3);
  CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
  CHECK_EQ_INT(s.out.power, 2);
  const hone_entry excess = s.out.excess;
  for (int k = 0; k <= LATER; k++)
    hone_probe_draw(N, &seed, g);
  apply(&s, false, g, u);
  apply(&s, false, u, p);
  for (int i = 0; i < N; i++)
    p[i] = u[i] - p[i];
  CHECK_NEAR(hone_abs(hone_relaxation_by(N, u, p) - 1.0 - excess), 0.0, 1e-12);
}

/* y = h - E F h, for the h that were drawn behind the vectors. */
TEST_OF(relaxation, corrects_solutions_alike) {
  known s;
  uint64_t seed = SEED;
  hone_entry h[N], left[N];
  set_up(&s, 0.45 * ENTRY(0.8, 0.6), 1e-3);
  s.probing.inverse = true;
  CHECK_EQ_INT(hone_probe(&s.probing, 8, &s.out), HONE_OK);
  CHECK_EQ_INT(s.out.power, 2);
  CHECK(s.probing.solutions != NULL);
  seed += (uint64_t)(HONE_PARTS * HONE_PROBES * N) * HONE_RANDOM_STEP;
  seed = hone_random_bits(&seed);
  double unit = 0.0;
  for (int c = 0; c < HONE_PROBE_SOLUTIONS; c++) {
    hone_probe_draw(N, &seed, h);
    apply_power(&s, h, left);
    for (int i = 0; i < N; i++) {
      const hone_entry y = s.probing.solutions[i + c * N],
                       want = h[i] - left[i];
      if (c == 0 && i == 0)
        unit = nearbyint(log2(hone_abs(want) / hone_abs(y)));
      CHECK_NEAR(hone_abs(y * exp2(unit) - want), 0.0, 1e-9);
    }
  }
  CHECK_LE(1.0, s.probing.inverse_bound);
}

/* ---- Bounds after relaxed corrections ------------------------------------ */

typedef struct bounded {
  known known;
  hone_certificate certificate;
  hone_watch watch;
  uint64_t seed;
  hone_refinement ctx;
  hone_refined column;
  double den[N];
  hone_entry x[2 * N], r[N], v[2 * N];
} bounded;

static void set_case(bounded *s, hone_entry lambda, double rest) {
  memset(s, 0, sizeof *s);
  set_up(&s->known, lambda, rest);
  s->certificate = (hone_certificate){
      .rcond_scaled = 1.0, .inverse_bound = 1.0, .nonsingular = true};
  s->seed = SEED;
  s->ctx = (hone_refinement){.f = s->known.f,
                             .watch = &s->watch,
                             .scratch = s->known.scratch,
                             .seed = &s->seed,
                             .v = s->v,
                             .bounding = bounding};
  s->column = (hone_refined){
      .errors = {.size = 1.0L, .size_scaled = 1.0L, .widest_unit = 1.0L},
      .x = s->x,
      .spare = s->x + N,
      .r = s->r,
      .den = s->den,
      .verified = true,
      .state = HONE_COLUMN_ACCEPTED};
  s->certificate.contraction[0].rows = s->known.rows;
  for (int i = 0; i < N; i++)
    s->x[i] = s->den[i] = 1.0;
}

/* Two corrections, the second one omega times, find the error; one alone leaves
   most of it, and so do two that are not relaxed. */
TEST_OF(relaxation, bounds_errors_that_are_left_by_one_direction) {
  bounded s;
  uint64_t seed = 3;
  set_case(&s, 0.45 * ENTRY(0.8, -0.6), 1e-6);
  hone_contraction *c = &s.certificate.contraction[0];
  CHECK_EQ_INT(hone_probe(&s.known.probing, 8, c), HONE_OK);
  CHECK_EQ_INT(c->power, 2);
  hone_probe_draw(N, &seed, s.r);
  double most = 0.0;
  for (int i = 0; i < N; i++)
    most = fmax(most, hone_abs(s.r[i] *= 1e-6));
  hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
  CHECK(s.column.error_estimated);
  CHECK_EQ_INT(s.ctx.passes, 1);
  CHECK_LE(most, s.column.error);
  CHECK_LE(s.column.error, 1.5 * most);
  for (int i = 0; i < N; i++)
    CHECK_LE(hone_abs(s.r[i]), s.column.bars[i]); /* S = I */
}

/* E = 1/4: the corrections are 3/4 and omega 3/16 of r. Rounding errors of the
   solves, of digits in single precision, and of t count as the heads of
   bounds.c and relaxation.h say. */
TEST_OF(relaxation, counts_rounding_errors_omega_times) {
  const double omega = 5.0, before = 6.5, eta = 0.5, row = 0.03, unit = 1e-6;
  bounded s;
  set_case(&s, 0.0, 0.0);
  for (int i = 0; i < N; i++) {
    e[i][i] = 0.25;
    s.r[i] = unit;
    s.known.rows[i] = row;
  }
  s.known.engine.precision = 32;
  s.certificate.rcond_scaled = 1e-12;
  s.certificate.contraction[0] = (hone_contraction){.tried = true,
                                                    .power = 2,
                                                    .bound = eta,
                                                    .before = before,
                                                    .excess = omega - 1.0,
                                                    .rows = s.known.rows};
  hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
  CHECK(s.column.error_estimated);
  CHECK_EQ_INT(s.ctx.passes, 1);
  const double d[2] = {0.75 * unit, omega * 0.1875 * unit};
  const double t = d[0] + d[1], root = sqrt((double)N);
  const double solved = 4.0 * HONE_ROUNDINGS * 0x1p-53 * (1.0 + before + eta);
  const double lost = solved * 1e12 * root * fmax(d[0], d[1]);
  const double vanished = root * lost + 4.0 * 0x1p-53 * root * t;
  const double f = (root * t + (omega + before) * vanished) / (1.0 - eta);
  const double single = 4.0 * 0x1p-24;
  const double want = t + row * f + before * vanished + lost +
                      single * (omega - 1.0) * t + single * omega * d[1];
  CHECK_NEAR(s.column.error, want, 1e-12 * want);
}

/* Bounds that are never tight are made behind three corrections, four, six and
   seven, and so on: they are judged while each one halves the last. */
TEST_OF(relaxation, judges_bounds_where_few_powers_follow_it) {
  static const double rows[] = {0.0, 1.0, 10.0, 100.0};
  static const int made[] = {3, 4, 6, 7};
  const double omega = 1.25;
  for (int at = 0; at < 4; at++) {
    bounded s;
    double t = 0.0, d[8];
    ct_note("row %g", rows[at]);
    set_case(&s, 0.0, 0.0);
    for (int i = 0; i < N; i++) {
      e[i][i] = 0.1;
      s.r[i] = 1e-6;
      s.known.rows[i] = rows[at];
    }
    s.certificate.contraction[0] = (hone_contraction){.tried = true,
                                                      .power = 3,
                                                      .bound = 0.5,
                                                      .before = 2.0,
                                                      .excess = omega - 1.0,
                                                      .rows = s.known.rows};
    hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
    CHECK(s.column.error_estimated);
    CHECK_EQ_INT(s.ctx.passes + 1, made[at]);
    for (int k = 1; k <= made[at]; k++) {
      d[k] = 0.9 * (1e-6 - t) * (k % 3 == 0 ? omega : 1.0);
      t += d[k];
    }
    const int k = made[at];
    const double sum = fabs(d[k]) + fabs(d[k - 1]) + fabs(d[k - 2]);
    const double f = sum * sqrt((double)N) / 0.5;
    CHECK_NEAR(s.column.error, t + rows[at] * f, 1e-9 * t);
  }
}

/* 14 corrections are kept apart, or 13 if the next bound would need 18. */
TEST_OF(relaxation, ends_with_the_last_bound_there_is_room_for) {
  for (int power = 6; power <= 7; power++) {
    bounded s;
    ct_note("power %d", power);
    set_case(&s, 0.0, 0.0);
    for (int i = 0; i < N; i++) {
      e[i][i] = 0.1;
      s.r[i] = 1e-6;
      s.known.rows[i] = 1e30;
    }
    s.certificate.contraction[0] = (hone_contraction){.tried = true,
                                                      .power = power,
                                                      .bound = 0.5,
                                                      .before = 2.0,
                                                      .excess = 0.25,
                                                      .rows = s.known.rows};
    hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
    CHECK(s.column.error_estimated);
    CHECK_EQ_INT(s.ctx.passes + 1, power == 6 ? 13 : 15);
  }
}

/* An entry of t that is 0 has lost what vanished beside the largest one, omega
   times. */
TEST_OF(relaxation, counts_lost_entries_omega_times) {
  bounded s;
  set_case(&s, 0.0, 0.0);
  memset(s.known.rows, 0, sizeof s.known.rows);
  s.r[3] = 1e-6;
  s.known.engine.precision = 32;
  s.certificate.rcond_scaled = 1e200;
  s.certificate.contraction[0] = (hone_contraction){.tried = true,
                                                    .power = 2,
                                                    .bound = 0.5,
                                                    .before = 0.0,
                                                    .excess = 4.0,
                                                    .rows = s.known.rows};
  hone_bounds_estimate(&s.ctx, &s.certificate, 1, &s.column);
  CHECK(s.column.error_estimated);
  CHECK_NEAR(s.column.bars[0], 5.0 * 0x1p-96 * 1e-6, 1e-12 * 0x1p-96 * 1e-6);
}
