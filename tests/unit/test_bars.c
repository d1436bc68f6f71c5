/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bars: the bound of each component of x, beside solutions in quadruple
   precision, and what depends on the draw of the probes. */
#include "tests/unit/reference.h"

#include "refine/bounds.h"
#include "refine/ladder.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bounds use one of these for each column. */
static hone_bounding bounding[HONE_SOLVE_COLUMNS];

enum { MOST = 40, COLUMNS = 3, SAMPLES = 2048 };

/* One matrix on a ladder of one engine, and its columns under refinement. */
typedef struct bars_case {
  int64_t n;
  bool trans;
  hone_mem mem;
  hone_watch watch;
  hone_ladder ladder;
  hone_report report;
  hone_refined column[COLUMNS];
  double *a, *b, *hi, *lo, *work, *v;
} bars_case;

static void set_up(bars_case *s, sup_rng *rng, int family, int64_t n,
                   double cond, bool trans) {
  *s = (bars_case){.n = n, .trans = trans, .report = {.bad_row = -1}};
  s->a = sup_filled(n * n, 0.0);
  s->b = sup_filled(COLUMNS * n, 0.0);
  s->hi = sup_filled(COLUMNS * n, 0.0);
  s->lo = sup_filled(COLUMNS * n, 0.0);
  s->work = sup_filled(4 * COLUMNS * n, 0.0);
  s->v = sup_filled(COLUMNS * n, 0.0);
  ref_matrix(rng, family, n, cond, s->a);
  sup_random(rng, n, COLUMNS, s->b, n);
}

static void tear_down(bars_case *s) {
  hone_ladder_destroy(&s->ladder);
  CHECK_EQ_INT(s->mem.held, 0);
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->hi);
  sup_free(s->lo);
  sup_free(s->work);
  sup_free(s->v);
}

/* Factors, refines the columns to this limit and bounds their errors. Returns
   false if the factors have no certificate. */
static bool refine(bars_case *s, const hone_engine *engine, double limit) {
  const int64_t n = s->n;
  const hone_request request = {.limit = limit, .gmres_steps = -1};
  if (sup_ladder_create(&s->ladder, n, &engine, 1, &request, &s->mem, NULL,
                        &s->watch) != HONE_OK ||
      hone_ladder_factor(&s->ladder, sup_matrix(n, n, s->a), &s->report) !=
          HONE_OK ||
      hone_ladder_certify_transpose(&s->ladder, 0, &s->report) != HONE_OK)
    return false;
  hone_certificate *certificate = &s->ladder.rung[0].certificate;
  hone_refinement ctx = {.f = hone_ladder_factored_by(&s->ladder, 0),
                         .trans = s->trans,
                         .limit = limit,
                         .max_corrections = 10,
                         .norm_a =
                             s->trans ? s->ladder.norm1 : s->ladder.norm_inf,
                         .watch = &s->watch,
                         .scratch = s->ladder.scratch,
                         .seed = &s->ladder.seed,
                         .v = s->v,
                         .bounding = bounding};
  for (int c = 0; c < COLUMNS; c++) {
    double *at = s->work + 4 * c * n;
    s->column[c] = (hone_refined){.b = s->b + c * n,
                                  .x = at,
                                  .spare = at + n,
                                  .r = at + 2 * n,
                                  .den = at + 3 * n};
  }
  if (!certificate->nonsingular)
    return false;
  CHECK_EQ_INT(hone_refine(&ctx, COLUMNS, s->column), HONE_OK);
  hone_bounds_estimate(&ctx, certificate, COLUMNS, s->column);
  return true;
}

typedef struct ratios_seen {
  int columns, ratios;
  double ratio[SAMPLES]; /* the largest bar beside the largest error */
} ratios_seen;

static void check_bars(const bars_case *s, ratios_seen *seen) {
  for (int c = 0; c < COLUMNS; c++) {
    const hone_refined *column = &s->column[c];
    double largest = 0.0, error = 0.0, size = 0.0;
    if (column->state != HONE_COLUMN_ACCEPTED || !column->error_estimated)
      continue;
    seen->columns++;
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t at = i + c * s->n;
      const double miss =
          fabs((column->x[i] - s->hi[at]) - s->lo[at]) * (1.0 - 1e-12);
      CHECK_LE(miss, column->bars[i]);
      error = fmax(error, miss);
      largest = fmax(largest, column->bars[i]);
      size = fmax(size, fabs(column->x[i]));
    }
    CHECK_NEAR(column->error, largest / size, 1e-12 * column->error);
    if (error > SUP_EPS * size && seen->ratios < SAMPLES)
      seen->ratio[seen->ratios++] = largest / error;
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double quantile(ratios_seen *s, double part) {
  qsort(s->ratio, (size_t)s->ratios, sizeof *s->ratio, ascending);
  return s->ratio[(int)(part * (double)(s->ratios - 1))];
}

static void check_families(double limit, int matrices, ratios_seen *seen) {
  for (int family = 0; family < REF_FAMILIES; family++)
    for (int k = 0; k < matrices; k++) {
      sup_rng rng = {(uint64_t)(100 * family + k)};
      const int64_t n = 3 + (int64_t)(sup_next(&rng) % (MOST - 3));
      const double cond = pow(10.0, 7.0 + 6.0 * sup_uniform(&rng));
      bars_case s;
      ct_note("%s, n %d, matrix %d", ref_name(family), (int)n, k);
      set_up(&s, &rng, family, n, cond, k & 1);
      const hone_engine *engine =
          k & 2 ? &hone_engine_double : &hone_engine_single;
      if (ref_solve(n, s.a, s.trans, COLUMNS, s.b, s.hi, s.lo) &&
          refine(&s, engine, limit))
        check_bars(&s, seen);
      tear_down(&s);
    }
}

TEST(bars, hold_for_every_component) {
  static ratios_seen seen;
  seen.columns = seen.ratios = 0;
  check_families(SUP_LIMIT, 12, &seen);
  CHECK_LE(200, seen.columns);
  CHECK_LE(quantile(&seen, 0.5), 2.0);
}

/* A plain pass over A accepts x; the bars need an accurate residual. */
TEST(bars, hold_for_what_a_loose_limit_accepts) {
  static ratios_seen seen;
  seen.columns = seen.ratios = 0;
  check_families(1e-6, 12, &seen);
  CHECK_LE(200, seen.columns);
  CHECK_LE(quantile(&seen, 0.5), 1.5);
  CHECK_LE(quantile(&seen, 0.9), 3.0);
}

/* ---- What depends on the draw ---------------------------------------------
 */

typedef struct drawn {
  uint64_t seed;
  bool deflated;
  double x[100], bound;
} drawn;

/* Solves with the draw of this process, or with that of A alone. */
static void solve_with(double *a, const double *b, bool deterministic,
                       drawn *out) {
  const int64_t n = 100;
  const hone_engine *engines[] = {&hone_engine_single, &hone_engine_double};
  const hone_request request = {.limit = SUP_LIMIT,
                                .deterministic = deterministic};
  hone_mem mem = {0};
  hone_watch watch = {0};
  hone_ladder ladder;
  hone_column column;
  hone_report report = {.bad_row = -1};
  CHECK_EQ_INT(
      sup_ladder_create(&ladder, n, engines, 2, &request, &mem, NULL, &watch),
      HONE_OK);
  CHECK_EQ_INT(hone_ladder_factor(&ladder, sup_matrix(n, n, a), &report),
               HONE_OK);
  out->seed = ladder.seed;
  CHECK_EQ_INT(hone_ladder_solve(&ladder, false, 1, b, n, out->x, n, NULL, n,
                                 &column, &report),
               HONE_OK);
  out->bound = column.forward_error;
  out->deflated = ladder.rung[0].deflation.count > 0;
  hone_ladder_destroy(&ladder);
}

TEST(bars, depend_on_the_draw_but_x_does_not) {
  static const double conds[] = {1e3, 1e5, 1e9};
  for (int k = 0; k < 3; k++) {
    sup_rng rng = {3};
    double *a = sup_filled(100 * 100, 0.0), b[100];
    drawn of_process, of_matrix, again;
    sup_matrix_cond(&rng, 100, SUP_ONE_SMALL, conds[k], a, 100);
    sup_random(&rng, 100, 1, b, 100);
    ct_note("condition %g", conds[k]);
    solve_with(a, b, false, &of_process);
    solve_with(a, b, true, &of_matrix);
    solve_with(a, b, true, &again);
    CHECK(of_process.seed != of_matrix.seed);
    CHECK_EQ_INT(of_process.deflated, k == 2);
    CHECK_MEM_EQ(of_process.x, of_matrix.x, sizeof of_process.x);
    CHECK_MEM_EQ(again.x, of_matrix.x, sizeof again.x);
    CHECK(again.seed == of_matrix.seed);
    CHECK_NEAR(again.bound, of_matrix.bound, 0.0);
    /* Another matrix has another draw. */
    double largest = 0.0;
    int at = 0;
    for (int i = 0; i < 100 * 100; i++)
      if (fabs(a[i]) > largest) {
        largest = fabs(a[i]);
        at = i;
      }
    a[at] = nextafter(a[at], 2.0 * a[at]);
    solve_with(a, b, true, &again);
    CHECK(again.seed != of_matrix.seed);
    sup_free(a);
  }
}

TEST(bars, are_the_same_for_a_matrix_in_one_process) {
  double *a = sup_filled(100 * 100, 0.0), b[100];
  sup_rng rng = {3};
  drawn first, second;
  sup_random(&rng, 100, 100, a, 100);
  sup_random(&rng, 100, 1, b, 100);
  solve_with(a, b, false, &first);
  solve_with(a, b, false, &second);
  CHECK(first.seed == second.seed);
  CHECK_NEAR(first.bound, second.bound, 0.0);
  sup_free(a);
}

/* Factors of the matrix before an update solve for some of the columns; another
   column makes the present one, which is diagonal, be factored, with a scaling
   of its own. Bounds that the first columns had in the variables of the earlier
   scaling were once read in those of the later one: they were 1e-30 of the
   error. */
TEST(bars, hold_for_columns_that_were_solved_before_the_matrix_was_factored) {
  enum { N = 5, NRHS = 4 };
  static const double diagonal[N] = {
      -0x1.29c19596b3ffp-401, -0x1.8f3be26d39f2cp-524, 0x1.72547e6c4b0a6p+615,
      0x1.479d701216f66p+844, -0x1.fcfe3044b5dfep+290};
  static const double b[N * NRHS] = {-1.0, 2.0,  2.0,  2.0,  2.0, -1.0, 2.0,
                                     -1.0, 2.0,  -1.0, -2.0, 0.0, -2.0, 1.0,
                                     -1.0, -1.0, 1.0,  -1.0, 2.0, 0.0};
  double a[N * N] = {0.0}, before[N * N] = {0.0}, x[N * NRHS], bar[N * NRHS];
  for (int i = 0; i < N; i++)
    a[i * (N + 1)] = before[i * (N + 1)] = diagonal[i];
  before[20] = 0x1.2630a8e6e018cp-2;
  before[9] = 0x1.ff3fb9f00e208p-3;
  for (int precision = HONE_FACTOR_AUTO; precision <= HONE_FACTOR_DOUBLE;
       precision++) {
    hone_options o = HONE_OPTIONS_INIT, p = HONE_OPTIONS_INIT;
    hone_report r = HONE_REPORT_INIT;
    hone_solver *s = NULL;
    ct_note("precision %d", precision);
    o.device = HONE_DEVICE_CPU;
    o.factor_precision = precision;
    p.error_bounds = bar;
    p.ld_error_bounds = N;
    CHECK_EQ_INT(hone_solver_create(&s, N, &o), HONE_OK);
    CHECK_GE(hone_solver_factor(s, before, N, &r), HONE_OK);
    CHECK_GE(hone_solver_update(s, a, N, &r), HONE_OK);
    CHECK_GE(hone_solver_solve(s, NRHS, b, N, x, N, &p, &r), HONE_OK);
    for (int i = 0; i < N * NRHS; i++) {
      const long double exact =
          (long double)b[i] / (long double)diagonal[i % N];
      /* exact is rounded to 64 bits, x to 53 */
      CHECK_LE(fabsl(exact - (long double)x[i]) - fabsl(exact) * 0x1p-63L,
               (long double)bar[i]);
    }
    hone_solver_destroy(&s);
  }
}

/* Found by the hunt: noise is sampled, and then corrections for the units of x
   leave x as it was; its denominators were taken from the samples, and noise
   was lost. The solution is hi + lo, from 80 digits. */
TEST(bars, hold_where_x_stays_after_its_noise_was_sampled) {
  enum { ORDER_OF_IT = 5, DRAWS = 50 };
  const double a[ORDER_OF_IT * ORDER_OF_IT] = {-0x1.a3ace4122dc2ep-52,
                                               0x0p+0,
                                               -0x1.a3ace4123735ap-62,
                                               -0x0p+0,
                                               0x0p+0,
                                               -0x1.7ffb83580ac7ep+1,
                                               -0x1.eafb47e364665p+8,
                                               0x1.1f29fd4e0920cp-12,
                                               -0x1.61050a073fa53p-31,
                                               0x1.7512667a09a1ep-47,
                                               0x1.0cf111796cf87p-7,
                                               -0x0p+0,
                                               0x1.010cf11179609p+2,
                                               0x1.80d70d819f502p-27,
                                               0x1.7fffffffffe85p+1,
                                               0x1.e555f9150372p-4,
                                               -0x1.0281236b6ef33p+16,
                                               0x1.e555f90d23206p-3,
                                               -0x1.6f2116a6ff63cp-24,
                                               0x1.f172e0dd2848p-35,
                                               0x1.a10af624b619cp-5,
                                               -0x1.316470c9e72fdp+16,
                                               0x1.a10af624cbd3p-4,
                                               -0x1.eafb47e364414p+8,
                                               -0x1.04e3e3c483658p-40};
  const double b[ORDER_OF_IT] = {-0x1.0cf111796d0c2p-6, 0x0p+0,
                                 -0x1.010cf11179609p+3, -0x1.80d70d819f502p-26,
                                 -0x1.7fffffffffe85p+2};
  const double hi[ORDER_OF_IT] = {-0x1.8a781ba595c2cp+1, 0x1.a9740d40a1908p-51,
                                  -0x1.0000000000000p+1, -0x1.9408fc6915044p-58,
                                  -0x1.e4fba711a0794p-97};
  const double lo[ORDER_OF_IT] = {
      -0x1.0654eda2d4bfbp-53, 0x1.3674914d9dbe6p-105, 0x1.fe7c67b4ba63bp-94,
      -0x1.697f3c4629568p-113, -0x1.746b63c694733p-151};
  double x[ORDER_OF_IT], bars[ORDER_OF_IT];
  hone_options o = HONE_OPTIONS_INIT;
  o.factor_precision = HONE_FACTOR_SINGLE;
  o.error_bounds = bars;
  o.ld_error_bounds = ORDER_OF_IT;
  for (int draw = 0; draw < DRAWS; draw++) {
    hone_report report = HONE_REPORT_INIT;
    const int st = hone_solve(ORDER_OF_IT, 1, a, ORDER_OF_IT, b, ORDER_OF_IT, x,
                              ORDER_OF_IT, &o, &report);
    for (int i = 0; st == HONE_OK && i < ORDER_OF_IT; i++)
      CHECK_LE(fabs((x[i] - hi[i]) - lo[i]), bars[i]);
  }
}
