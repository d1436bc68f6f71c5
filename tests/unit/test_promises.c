/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices that a fixed estimate of the condition number does not see through:
   structure that is orthogonal to all that it looks at, and singular matrices
   whose computed factors are regular. Status 0 is never given to a singular
   matrix, and error bounds hold. The truth is known in quadruple precision, or
   in integers. Next to read: test_probes.c. */
#include "tests/unit/reference.h"

#include "tests/gallery/reference.h"
#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = 64, COLUMNS = 3 };

typedef struct promise {
  int64_t n, nrhs;
  double *a, *b, *x, *hi, *lo;
  hone_options options;
  hone_column column[COLUMNS];
  hone_report report;
} promise;

static promise make(int64_t n, int64_t nrhs) {
  promise p = {.n = n,
               .nrhs = nrhs,
               .a = sup_filled(n * n, 0.0),
               .b = sup_filled(n * nrhs, 1.0),
               .x = sup_filled(n * nrhs, 77.0),
               .hi = sup_filled(n * nrhs, 0.0),
               .lo = sup_filled(n * nrhs, 0.0)};
  p.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p.report, sizeof p.report);
  p.options.device = HONE_DEVICE_CPU;
  return p;
}

static void discard(promise *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
  sup_free(p->hi);
  sup_free(p->lo);
}

static int solve(promise *p) {
  p->options.columns = p->column;
  for (int c = 0; c < (int)(sizeof p->column / sizeof *p->column); c++)
    p->column[c].status = HONE_INTERNAL; /* a singular pivot leaves it so */
  return hone_solve(p->n, p->nrhs, p->a, p->n, p->b, p->n, p->x, p->n,
                    &p->options, &p->report);
}

/* Every bound holds beside the solution in hi + lo. Returns how many columns
   have status 0. */
static int check_bounds(const promise *p) {
  int accepted = 0;
  for (int64_t c = 0; c < p->nrhs; c++) {
    const int64_t at = c * p->n;
    const hone_column *said = &p->column[c];
    if (said->status < 0)
      continue;
    CHECK_LE(ref_error(p->n, p->x + at, p->hi + at, p->lo + at),
             said->forward_error);
    accepted += said->status == HONE_OK;
    if (said->status == HONE_OK)
      CHECK_LE(said->forward_error, 0.1);
  }
  CHECK_EQ_INT(p->report.accepted, accepted);
  return accepted;
}

/* From single precision and from double. */
static int check_regular(promise *p) {
  int accepted = 0;
  CHECK(ref_solve(p->n, p->a, p->options.trans, p->nrhs, p->b, p->hi, p->lo));
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    p->options.factor_precision = start;
    const int st = solve(p); /* a pivot may come out as zero */
    CHECK(st >= 0 || st == HONE_SINGULAR);
    accepted += check_bounds(p);
  }
  return accepted;
}

static void check_singular(promise *p) {
  for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
    p->options.factor_precision = start;
    const int st = solve(p);
    CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(p->report.accepted, 0);
  }
}

/* ---- Structure ------------------------------------------------------------
 */

/* The 5-point Laplacian of a side x side grid, minus lambda. */
static void fill_helmholtz(promise *p, int side, double lambda) {
  for (int i = 0; i < side; i++)
    for (int j = 0; j < side; j++) {
      const int at = i * side + j;
      p->a[at + at * p->n] = 4.0 - lambda;
      if (j + 1 < side)
        p->a[at + 1 + at * p->n] = p->a[at + (at + 1) * p->n] = -1.0;
      if (i + 1 < side)
        p->a[at + side + at * p->n] = p->a[at + (at + side) * p->n] = -1.0;
    }
}

static double eigenvalue(int side, int k, int l) {
  const double pi = 3.14159265358979323846;
  return 4.0 - 2.0 * cos(pi * k / (side + 1)) - 2.0 * cos(pi * l / (side + 1));
}

TEST(promises, hold_for_helmholtz_at_resonance) {
  promise p = make(49, 1);
  fill_helmholtz(&p, 7, eigenvalue(7, 2, 2));
  CHECK_EQ_INT(check_regular(&p), 0); /* the condition is 4e16 */
  CHECK_LE(p.report.rcond, 1e-14);
  discard(&p);
}

TEST(promises, hold_for_helmholtz_near_resonance) {
  int accepted = 0;
  for (int side = 2; side <= 5; side++)
    for (int k = 1; k <= side; k++)
      for (int away = 0; away < 4; away++) {
        promise p = make(side * side, 1);
        const int l = 1 + (k + side) % side;
        ct_note("side %d, mode %d %d, away %d", side, k, l, away);
        fill_helmholtz(&p, side,
                       eigenvalue(side, k, l) + (away ? pow(1e-4, away) : 0.0));
        if (ref_solve(p.n, p.a, false, 1, p.b, p.hi, p.lo))
          accepted += check_regular(&p);
        else
          check_singular(&p);
        discard(&p);
      }
  CHECK_LE(40, accepted);
}

/* Higham's counterexample to LAPACK's estimator: inv(A) = I + theta P, P the
   projection off e, e_1 and the estimator's own vector. */
static void fill_condex(promise *p, double theta) {
  const int64_t n = p->n;
  double q[3][MOST];
  for (int64_t i = 0; i < n; i++) {
    q[0][i] = 1.0;
    q[1][i] = i == 0;
    q[2][i] = (i % 2 ? -1.0 : 1.0) * (1.0 + (double)i / (double)(n - 1));
  }
  for (int k = 0; k < 3; k++)
    for (int pass = 0; pass < 2; pass++) {
      double length = 0.0;
      for (int l = 0; l < k; l++) {
        double dot = 0.0;
        for (int64_t i = 0; i < n; i++)
          dot += q[l][i] * q[k][i];
        for (int64_t i = 0; i < n; i++)
          q[k][i] -= dot * q[l][i];
      }
      for (int64_t i = 0; i < n; i++)
        length += q[k][i] * q[k][i];
      for (int64_t i = 0; i < n; i++)
        q[k][i] /= sqrt(length);
    }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double off = i == j;
      for (int k = 0; k < 3; k++)
        off -= q[k][i] * q[k][j];
      p->a[i + j * n] = (double)(i == j) - theta / (1.0 + theta) * off;
    }
}

TEST(promises, hold_for_the_counterexample_to_lapacks_estimator) {
  for (int k = 0; k < 40; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(4 + k * 5 % 26, 2);
    const double theta = pow(10.0, 6.0 + k % 10);
    ct_note("n %d, theta %g", (int)p.n, theta);
    fill_condex(&p, theta);
    sup_random(&rng, p.n, 1, p.b + p.n, p.n);
    const int accepted = check_regular(&p);
    if (theta <= 1e9)
      CHECK_EQ_INT(accepted, 4);
    CHECK_LE(p.report.rcond, 1e3 / theta);
    discard(&p);
  }
}

/* diag(I / t - u v^T, a 2 x 2 that is nearly singular). The inverse of the
   first block has entries of t^2, which hide that of the second. */
TEST(promises, hold_for_blocks_of_which_one_hides_the_other) {
  for (int k = 0; k < 20; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(10, 3);
    for (int i = 0; i < 8; i++) {
      for (int j = 0; j < 8; j++)
        p.a[i + j * 10] = -(i % 2 ? -1.0 : 1.0) * (j % 4 < 2 ? 1.0 : -1.0);
      p.a[i * 11] += 0x1p-20;
    }
    p.a[88] = p.a[89] = p.a[98] = 1.0;
    p.a[99] = 1.0 + pow(10.0, -8.0 - 0.4 * k);
    sup_random(&rng, 10, 2, p.b + 10, 10);
    ct_note("matrix %d", k);
    check_regular(&p);
    CHECK_LE(p.report.rcond, 1e-12);
    discard(&p);
  }
}

/* ---- Singular matrices ----------------------------------------------------
 */

/* Integers; one row is a sum of multiples of the others. b = A (1, 2, ...), so
   that every residual can be made small. */
static void fill_singular(sup_rng *rng, promise *p) {
  const int64_t n = p->n, row = (int64_t)(sup_next(rng) % (uint64_t)n);
  for (int64_t k = 0; k < n * n; k++)
    p->a[k] = (double)(sup_next(rng) % 19) - 9.0;
  for (int64_t j = 0; j < n; j++)
    p->a[row + j * n] = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double times = (double)(sup_next(rng) % 7) - 3.0;
    for (int64_t j = 0; i != row && j < n; j++)
      p->a[row + j * n] += times * p->a[i + j * n];
  }
  for (int64_t i = 0; i < n; i++) {
    p->b[i] = 0.0;
    for (int64_t j = 0; j < n; j++)
      p->b[i] += p->a[i + j * n] * (double)(j + 1);
  }
}

TEST(promises, refuse_singular_matrices_of_integers) {
  for (int k = 0; k < 120; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(k % 3 ? 5 : 10, 1);
    ct_note("matrix %d", k);
    fill_singular(&rng, &p);
    check_singular(&p);
    discard(&p);
  }
}

/* Adds a conductance between two nodes; node -1 is the ground. */
static void connect(promise *p, int64_t i, int64_t j, double g) {
  p->a[i + i * p->n] += g;
  if (j < 0)
    return;
  p->a[j + j * p->n] += g;
  p->a[i + j * p->n] -= g;
  p->a[j + i * p->n] -= g;
}

/* Two networks, each a tree with a few more edges; conductances are integers,
   so that no sum rounds. */
static void fill_networks(sup_rng *rng, promise *p, bool first_grounded,
                          bool second_grounded) {
  const int64_t n = p->n, half = n / 2;
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = i < half ? 0 : half;
    if (i > from)
      connect(p, i, from + (int64_t)(sup_next(rng) % (uint64_t)(i - from)),
              (double)(1 + sup_next(rng) % 99));
    if (i > from + 2 && i % 3 == 0)
      connect(p, i, from, (double)(1 + sup_next(rng) % 99));
  }
  if (first_grounded)
    connect(p, 1, -1, 5.0);
  if (second_grounded)
    connect(p, half + 1, -1, 7.0);
}

TEST(promises, refuse_networks_with_a_floating_island) {
  for (int k = 0; k < 60; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(8 + k % 20, 1);
    fill_networks(&rng, &p, k % 2, !(k % 2));
    for (int64_t i = 0; i < p.n; i++) /* currents only where it is grounded */
      p.b[i] = (i < p.n / 2) == k % 2;
    ct_note("network %d", k);
    check_singular(&p);
    discard(&p);
  }
}

/* The factors are those of the matrix before: regular and well-conditioned. */
TEST(promises, refuse_an_update_that_removes_the_ground) {
  for (int k = 0; k < 20; k++) {
    sup_rng rng = {(uint64_t)k}, again = {(uint64_t)k};
    promise p = make(10 + k, 1), q = make(10 + k, 1);
    hone_solver *solver = NULL;
    ct_note("network %d", k);
    fill_networks(&rng, &p, true, true);
    fill_networks(&again, &q, k % 2, !(k % 2));
    for (int64_t i = 0; i < p.n; i++)
      q.b[i] = (i < p.n / 2) == k % 2;
    q.options.factor_precision = k % 3;
    REQUIRE(hone_solver_create(&solver, p.n, &q.options) == HONE_OK);
    CHECK_EQ_INT(hone_solver_factor(solver, p.a, p.n, &q.report), HONE_OK);
    int st = hone_solver_update(solver, q.a, q.n, &q.report);
    if (st == HONE_OK)
      st = sup_solver_solve(solver, 0, 1, q.b, q.n, q.x, q.n, NULL, 0, q.column,
                            &q.report);
    CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
    CHECK_EQ_INT(q.report.accepted, 0);
    hone_solver_destroy(&solver);
    discard(&p);
    discard(&q);
  }
}

/* A = [2 4 0 0; 1 2 0 0; * * 16 1; * * 1 16] is singular. The matrix that its
   lower triangle defines is positive definite. */
TEST(promises, refuse_a_singular_matrix_that_the_caller_calls_definite) {
  for (int k = 0; k < 30; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(4, 1);
    const double scale = (double)(1 + sup_next(&rng) % 5);
    for (int i = 0; i < 2; i++) {
      p.a[i + 4 * i] = 2.0 * scale;
      p.a[i + 2 + 4 * (i + 2)] = 16.0 * scale;
      p.a[2 + 4 * i] = (double)(sup_next(&rng) % 3) - 1.0;
      p.a[3 + 4 * i] = (double)(sup_next(&rng) % 3) - 1.0;
    }
    p.a[1] = scale;
    p.a[4] = 4.0 * scale;
    p.a[11] = p.a[14] = 1.0;
    for (int i = 0; i < 4; i++)
      p.b[i] = p.a[i] + p.a[i + 4] + p.a[i + 8] + p.a[i + 12];
    p.options.structure = HONE_STRUCTURE_SPD;
    ct_note("matrix %d", k);
    check_singular(&p);
    discard(&p);
  }
}

/* ---- Unimodular matrices --------------------------------------------------
 */

__extension__ typedef __int128 exact;

/* A = L U with unit triangles of integers up to 'size': x = inv(A) b is a
   vector of integers. */
typedef struct unimodular {
  int n;
  int64_t l[5][5], u[5][5];
} unimodular;

static void draw_unimodular(sup_rng *rng, int64_t size, unimodular *m) {
  for (int i = 0; i < m->n; i++)
    for (int j = 0; j < m->n; j++) {
      const int64_t v = (int64_t)(sup_next(rng) % (uint64_t)(2 * size + 1));
      m->l[i][j] = i > j ? v - size : i == j;
      m->u[i][j] = i < j ? v - size : i == j;
    }
}

/* Fills A, b (a few digits, or A times them) and the solution in hi + lo. */
static void fill_unimodular(const unimodular *m, sup_rng *rng, promise *p) {
  const int n = m->n;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      int64_t sum = 0;
      for (int k = 0; k < n; k++)
        sum += m->l[i][k] * m->u[k][j];
      p->a[i + j * n] = (double)sum;
      CHECK_LE(fabs(p->a[i + j * n]), 0x1p53);
    }
  for (int c = 0; c < p->nrhs; c++) {
    exact x[5];
    for (int i = 0; i < n; i++) {
      p->b[i + c * n] = (double)(sup_next(rng) % 19) - 9.0;
      x[i] = (exact)p->b[i + c * n];
      for (int k = 0; k < i; k++)
        x[i] -= m->l[i][k] * x[k];
    }
    for (int i = n - 1; i >= 0; i--) {
      for (int k = i + 1; k < n; k++)
        x[i] -= m->u[i][k] * x[k];
      p->hi[i + c * n] = (double)x[i];
      p->lo[i + c * n] = (double)(x[i] - (exact)p->hi[i + c * n]);
    }
  }
}

/* The condition is about 1e25, far beyond double precision. */
TEST(promises, hold_for_a_unimodular_matrix_and_several_columns) {
  for (int k = 0; k < 40; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(3, COLUMNS);
    unimodular m = {.n = 3};
    ct_note("matrix %d", k);
    draw_unimodular(&rng, 1000000, &m);
    fill_unimodular(&m, &rng, &p);
    for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
      p.options.factor_precision = start;
      CHECK_LE(0, solve(&p));
      check_bounds(&p);
    }
    discard(&p);
  }
}

TEST(promises, hold_for_a_loose_tolerance_too) {
  int accepted = 0;
  for (int k = 0; k < 80; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(5, 2);
    unimodular m = {.n = 5};
    ct_note("matrix %d", k);
    draw_unimodular(&rng, k % 2 ? 10 : 40, &m);
    fill_unimodular(&m, &rng, &p);
    p.options.tolerance = 1e-10;
    p.options.criterion = k / 2 % 3;
    for (int start = HONE_FACTOR_SINGLE; start <= HONE_FACTOR_DOUBLE; start++) {
      p.options.factor_precision = start;
      CHECK_LE(0, solve(&p));
      accepted += check_bounds(&p);
    }
    discard(&p);
  }
  CHECK_LE(80, accepted);
}

/* ---- The range of double --------------------------------------------------
 */

TEST(promises, hold_for_entries_from_one_end_of_the_range_to_the_other) {
  int trusted = 0;
  reference r = {0};
  for (int k = 0; k < 60; k++) {
    sup_rng rng = {(uint64_t)k};
    promise p = make(3 + k % 8, 1);
    for (int64_t i = 0; i < p.n * p.n; i++)
      p.a[i] = ldexp(sup_uniform(&rng), (int)(2000.0 * sup_uniform(&rng)));
    sup_random(&rng, p.n, 1, p.b, p.n);
    ct_note("matrix %d", k);
    p.options.criterion = k % 3;
    const int st = solve(&p);
    reference_solve(&r, p.n, 1, p.a, p.n, p.b, p.n);
    int least;
    if (st >= 0 && r.state <= REFERENCE_DOUBLE_DOUBLE &&
        reference_size(&r, 0, &least) < 1024) {
      trusted++;
      CHECK_LE(reference_distance(&r, 0, p.x, true),
               p.column[0].forward_error + r.error[0]);
    }
    discard(&p);
  }
  CHECK_LE(20, trusted);
  reference_free(&r);
}
