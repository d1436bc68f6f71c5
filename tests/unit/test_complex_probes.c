/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes, deflation and the search for null vectors with complex factors in
   single precision. Compiled with HONE_COMPLEX. */
#include "base/dense.h"
#include "base/lapack.h"
#include "base/vectors.h"
#include "refine/condition.h"
#include "refine/null_search.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 90 };

/* A matrix with its factors, which are not scaled. */
typedef struct factored {
  hone_dense dense;
  hone_matrix matrix;
  hone_scaling scaling;
  hone_mem mem;
  hone_watch watch;
  hone_factored f;
  hone_entry *a, *scratch, *vectors;
  double rows[N];
} factored;

static void begin(factored *t, hone_entry *a) {
  hone_factor_info info;
  memset(t, 0, sizeof *t);
  t->a = a;
  t->dense = (hone_dense){.n = N, .lda = N, .a = a};
  t->matrix = hone_dense_matrix(&t->dense);
  t->scaling.row = sup_filled(N, 1.0);
  t->scaling.col = sup_filled(N, 1.0);
  t->scratch = cs_random(
      HONE_MAX(hone_certify_scratch(N, false), hone_null_search_scratch(N)), 1,
      1);
  t->vectors = cs_random(hone_deflation_entries(N), 1, 1);
  const hone_engine_config config = {
      .n = N, .mem = &t->mem, .watch = &t->watch};
  t->f = (hone_factored){
      .engine = &hone_engine_single, .a = &t->matrix, .scaling = &t->scaling};
  CHECK_EQ_INT(t->f.engine->create(&t->f.self, &config), HONE_OK);
  CHECK_EQ_INT(t->f.engine->factor(t->f.self, &t->matrix, &t->scaling, &info),
               HONE_OK);
}

static void end(factored *t) {
  t->f.engine->destroy(t->f.self, &t->mem);
  CHECK_EQ_INT(t->mem.held, 0);
  sup_free(t->scaling.row);
  sup_free(t->scaling.col);
  free(t->scratch);
  free(t->vectors);
  free(t->a);
}

static hone_contraction probe(factored *t, bool trans) {
  hone_contraction out = {.rows = t->rows};
  hone_probing probing = {
      .f = &t->f, .trans = trans, .seed = 5, .scratch = t->scratch};
  CHECK_EQ_INT(hone_probe(&probing, HONE_PROBE_POWERS, &out), HONE_OK);
  return out;
}

/* The deflated factors contract for A and for A^T, by much more than the probes
   ask for: E is then of the order of single precision times 90. */
TEST(complex_probes, deflated_factors_contract_for_both_transposes) {
  factored t;
  double least = HUGE_VAL;
  int passes = 0;
  begin(&t, cs_matrix(CS_NEARLY, N, 5));
  for (int trans = 0; trans < 2; trans++)
    CHECK_EQ_INT(probe(&t, trans).power, 0);
  hone_deflation d = hone_deflation_make(N, t.vectors);
  CHECK_EQ_INT(hone_deflate(&t.f, t.scratch, &passes, &d, &least), HONE_OK);
  CHECK_EQ_INT(d.count, 2);
  t.f.deflation = &d;
  for (int trans = 0; trans < 2; trans++) {
    const hone_contraction c = probe(&t, trans);
    ct_note("trans = %d", trans);
    CHECK_EQ_INT(c.power, 1);
    CHECK_LE(c.bound, 0.1);
  }
  end(&t);
}

/* The bound of probes is one: it holds for E of every draw, and is not far
   above the norm. Here E is -D for the factors of A (I + D), which is as large
   as single precision lets it be; for 200 draws the bound is above the norm of
   E, estimated from below by 8 powers. */
TEST(complex_probes, bound_the_norm_of_what_a_correction_leaves) {
  factored t;
  begin(&t, cs_matrix(CS_SPECTRUM, N, 5));
  hone_entry *v = cs_random(N, 1, 9), *p = cs_random(N, 1, 9);
  double norm = 0.0;
  for (int k = 0; k < 40; k++) { /* E v is as long as ||E|| v at the most */
    const double before = sqrt(hone_sum_of_squares(N, v));
    (void)hone_multiply(&t.f, false, 1, v, p, t.scratch);
    CHECK_EQ_INT(hone_apply_inverse(&t.f, true, false, 1, p, N, NULL, NULL),
                 HONE_OK);
    hone_add_multiple(N, -1.0, p, v);
    const double after = sqrt(hone_sum_of_squares(N, v));
    norm = fmax(norm, after / before);
    for (int64_t i = 0; i < N; i++)
      v[i] /= after;
  }
  for (uint64_t seed = 1; seed <= 200; seed++) {
    hone_contraction out = {.rows = t.rows};
    hone_probing probing = {.f = &t.f, .seed = seed, .scratch = t.scratch};
    CHECK_EQ_INT(hone_probe(&probing, 1, &out), HONE_OK);
    CHECK_LE(norm, out.bound);
  }
  free(v);
  free(p);
  end(&t);
}

/* A column or a row is a combination of others. */
static hone_entry *singular(int kind, uint64_t seed) {
  hone_entry *a = cs_matrix(CS_UNIFORM, N, seed);
  for (int64_t i = 0; i < N; i++) {
    if (kind == 0)
      a[i + 20 * N] = a[i + 3 * N] * CMPLX(0.3, 1.0) - a[i + 4 * N] / 3.0;
    else if (kind == 2)
      a[20 + i * N] = a[3 + i * N] * CMPLX(0.0, 1.0);
    else if (kind == 3) /* z = (1, i): its plain square is 0 */
      a[i + 20 * N] = a[i + 3 * N] * CMPLX(0.0, 1.0);
    else
      a[i + 20 * N] = 0.0;
    for (int j = 0; kind == 1 && j < 10; j++)
      a[i + 20 * N] += a[i + j * N] * CMPLX(0.1 * j, 1.0 / (j + 3));
  }
  return a;
}

/* One singular value is far below eps: the search proves it, with the left null
   vectors of A^H where it needs them. With those of A^T it failed for some of
   these. */
TEST(complex_probes, find_null_vectors) {
  for (int kind = 0; kind < 4; kind++)
    for (uint64_t seed = 100; seed < 130; seed++) {
      factored t;
      double norm1 = 0.0;
      begin(&t, singular(kind, seed));
      hone_entry *v = cs_random(N, 1, seed);
      for (int64_t j = 0; j < N; j++)
        norm1 = fmax(norm1, hone_sum_abs(N, t.a + j * N));
      hone_null_search search = {
          .f = &t.f, .norm1 = norm1, .v = v, .scratch = t.scratch};
      ct_note("kind = %d, seed = %d", kind, (int)seed);
      CHECK_EQ_INT(hone_null_search_begin(&search), HONE_OK);
      CHECK(hone_null_search_proves(&search));
      free(v);
      end(&t);
    }
}

/* Column 20 is i times column 3 less column 4, of Gaussian integers: the search
   finds the null vector to the last bit. */
TEST(complex_probes, find_null_vectors_of_gaussian_integers) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    factored t;
    double norm1 = 0.0;
    hone_entry *a = cs_matrix(CS_UNIFORM, N, seed);
    for (int64_t i = 0; i < N * N; i++)
      a[i] = CMPLX(floor(creal(a[i]) * 8.0), floor(cimag(a[i]) * 8.0));
    for (int64_t i = 0; i < N; i++)
      a[i + 20 * N] = a[i + 3 * N] * CMPLX(0.0, 1.0) - a[i + 4 * N];
    begin(&t, a);
    hone_entry *v = cs_random(N, 1, seed);
    for (int64_t j = 0; j < N; j++)
      norm1 = fmax(norm1, hone_sum_abs(N, t.a + j * N));
    hone_null_search search = {
        .f = &t.f, .norm1 = norm1, .v = v, .scratch = t.scratch};
    ct_note("seed = %d", (int)seed);
    CHECK_EQ_INT(hone_null_search_begin(&search), HONE_OK);
    CHECK(hone_null_search_proves(&search));
    CHECK(hone_null_search_exact(&search));
    free(v);
    end(&t);
  }
}

/* Both parts of a draw are uniform in [-sqrt 3, sqrt 3], of variance 1, and
   independent: of the sums below, the means are 0, 0, 0, N, N and the standard
   deviations at most those of the limits, times sqrt(DRAWS N) / 5. */
TEST(complex_probes, draw_two_independent_parts) {
  enum { DRAWS = 200 };
  hone_entry *v = cs_random(N, 1, 1);
  double re = 0.0, im = 0.0, both = 0.0, re2 = 0.0, im2 = 0.0, most = 0.0;
  uint64_t seed = 3;
  for (int k = 0; k < DRAWS; k++) {
    hone_probe_draw(N, &seed, v);
    for (int i = 0; i < N; i++) {
      const double p = creal(v[i]), q = cimag(v[i]);
      re += p;
      im += q;
      both += p * q;
      re2 += p * p - 1.0;
      im2 += q * q - 1.0;
      most = fmax(most, fmax(fabs(p), fabs(q)));
    }
  }
  const double limit = 5.0 * sqrt((double)DRAWS * N);
  CHECK_LE(fabs(re), limit);
  CHECK_LE(fabs(im), limit);
  CHECK_LE(fabs(both), limit);
  CHECK_LE(fabs(re2), limit);
  CHECK_LE(fabs(im2), limit);
  CHECK(most <= sqrt(3.0) && most > 1.73);
  free(v);
}

/* The inverse B has entries of modulus 1 with random phases, but for one column
   that is twice as large. The gradient of the estimate leads there: the signs
   of a y = B h, which contains that column, cancel its phases. It is found in
   16 of 20 systems; without conjugates the phases stay, and it is found in 3.
 */
TEST(complex_probes, estimate_the_condition_by_the_gradient_of_the_adjoint) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const int64_t large = (int64_t)(seed * 4);
    const int n = N;
    hone_entry *b = cs_matrix(CS_UNITS, N, seed), *a = calloc(N * N, sizeof *a);
    hone_entry *rhs = cs_random(N, 1, 2), *x = cs_random(N, 1, 3);
    hone_entry *lu = malloc(N * N * sizeof *lu);
    int pivots[N], info = 0;
    double norm_a = 0.0, norm_b = 0.0;
    hone_options o = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    for (int64_t i = 0; i < N; i++) {
      a[i + i * N] = 1.0;
      b[i + large * N] *= 2.0;
    }
    memcpy(lu, b, N * N * sizeof *lu);
    dgetrf_(&n, &n, lu, &n, pivots, &info);
    dgetrs_("N", &n, &n, lu, &n, pivots, a, &n, &info);
    for (int64_t j = 0; j < N; j++) {
      norm_a = fmax(norm_a, hone_sum_abs(N, a + j * N));
      norm_b = fmax(norm_b, hone_sum_abs(N, b + j * N));
    }
    o.deterministic = 1;
    o.factor_precision = HONE_FACTOR_SINGLE;
    CHECK_EQ_INT(hone_z_solve(N, 1, a, N, rhs, N, x, N, &o, &report), HONE_OK);
    CHECK_LE(1.0, report.rcond * norm_a * norm_b * 1.001);
    found += report.rcond * norm_a * norm_b <= 1.001;
    free(a);
    free(b);
    free(rhs);
    free(x);
    free(lu);
  }
  CHECK_GE(found, 12);
}
