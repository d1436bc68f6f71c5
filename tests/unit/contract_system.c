/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/contract_system.h"

#include "tests/gallery/either.h"
#include "tests/unit/ct.h"

#include <limits.h>
#include <math.h>
#include <string.h>

sys sys_make_padded(int64_t n, int64_t nrhs, int64_t pad) {
  sys s = {.parts = 1, .n = n, .nrhs = nrhs, .lda = n + pad, .ldb = n + pad};
  sup_rng rng = {(uint64_t)(n + 1000 * nrhs)};
  s.ldx = s.lda;
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(s.ldb * nrhs, (double)NAN);
  s.x = sup_filled(s.ldx * nrhs, UNTOUCHED);
  sup_random(&rng, n, n, s.a, s.lda);
  for (int64_t i = 0; i < n; i++)
    s.a[i + i * s.lda] += sqrt((double)n) + 1.0;
  sup_random(&rng, n, nrhs, s.b, s.ldb);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  memset(&s.report, 0xff, sizeof s.report);
  s.report.struct_size = sizeof s.report;
  return s;
}

sys sys_make(int64_t n, int64_t nrhs) { return sys_make_padded(n, nrhs, 0); }

double *sys_with_phases(sup_rng *rng, int64_t n, int64_t m, bool hermitian,
                        double *v) {
  const double turn = 6.283185307179586;
  double *to = sup_filled(2 * n * m, 0.0), *p = sup_filled(n + m, 0.0);
  for (int64_t i = 0; i < n + m; i++)
    p[i] = hermitian && i >= n ? -p[i - n] : turn * sup_uniform(rng);
  for (int64_t k = 0; k < n * m; k++) {
    to[2 * k] = v[k] * cos(p[k % n] + p[n + k / n]);
    to[2 * k + 1] = v[k] * sin(p[k % n] + p[n + k / n]);
  }
  sup_free(p);
  sup_free(v);
  return to;
}

sys sys_make_of(int parts, int64_t n, int64_t nrhs) {
  sys s = sys_make(n, nrhs);
  sup_rng rng = {(uint64_t)n};
  if (parts == 1)
    return s;
  s.parts = parts;
  s.a = sys_with_phases(&rng, n, n, false, s.a);
  s.b = sys_with_phases(&rng, n, nrhs, false, s.b);
  sup_free(s.x);
  s.x = sup_filled(sys_doubles(&s), UNTOUCHED);
  return s;
}

void sys_set_cond(sys *s, uint64_t seed, int mode, double cond) {
  sup_rng rng = {seed};
  sup_free(s->a);
  s->a = sup_filled(s->n * s->n, 0.0);
  sup_matrix_cond(&rng, s->n, mode, cond, s->a, s->n);
  s->lda = s->n;
  if (s->parts == 2)
    s->a = sys_with_phases(&rng, s->n, s->n, false, s->a);
}

int64_t sys_doubles(const sys *s) { return s->parts * s->ldx * s->nrhs; }

void sys_discard(sys *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

void sys_set_consistent(sys *s) {
  double *ones = sup_filled(s->n, 1.0);
  for (int64_t c = 0; c < s->nrhs; c++)
    sup_multiply(s->n, s->a, s->lda, false, ones, s->b + c * s->ldb);
  sup_free(ones);
}

void sys_scale(sys *s, double a, double b) {
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++)
      s->a[i + j * s->lda] *= a;
  for (int64_t c = 0; c < s->nrhs; c++)
    for (int64_t i = 0; i < s->n; i++)
      s->b[i + c * s->ldb] *= b;
}

static either_call call_of(const sys *s, double *x) {
  return (either_call){.parts = s->parts,
                       .n = s->n,
                       .nrhs = s->nrhs,
                       .a = s->a,
                       .lda = s->lda,
                       .b = s->b,
                       .ldb = s->ldb,
                       .x = x,
                       .ldx = s->ldx};
}

int sys_call(sys *s) {
  const either_call call = call_of(s, s->x);
  return either_call_solve(&call, &s->options, &s->report);
}

either_solver sys_solver(const sys *s) {
  either_solver solver;
  CHECK_EQ_INT(either_create(&solver, s->parts, s->n, &s->options), HONE_OK);
  return solver;
}

int sys_factor(const sys *s, either_solver *solver) {
  return either_factor(solver, s->a, s->lda, NULL);
}

int sys_solve_with(const sys *s, either_solver *solver, double *x,
                   hone_report *report) {
  const either_call call = call_of(s, x);
  return either_solver_solve(solver, &call, NULL, report);
}

/* Returns the backward error of column c. */
static double backward_error(const sys *s, int64_t c) {
  const double *x = s->x + c * s->ldx * s->parts;
  const double *b = s->b + c * s->ldb * s->parts;
  if (s->parts == 1)
    return sup_backward_error(s->n, s->a, s->lda, false, x, b);
  double *m = sup_filled(2 * s->n * s->n, 0.0);
  either_copy(2, s->n, s->a, s->lda, false, false, m);
  const double omega = either_omega(2, s->n, m, x, b);
  sup_free(m);
  return omega * (1.0 - 1e-12); /* denominators were rounded */
}

void sys_check(const sys *s, int st) {
  CHECK_EQ_INT(s->report.status, st);
  CHECK_EQ_INT(s->report.n, s->n);
  CHECK_EQ_INT(s->report.nrhs, s->nrhs);
  CHECK(strcmp(hone_status_text(st), hone_status_text(INT_MAX)) != 0);
  if (st < 0) {
    CHECK(sup_untouched(s->x, sys_doubles(s), UNTOUCHED));
    return;
  }
  for (int64_t c = 0; c < s->nrhs; c++) {
    double omega = backward_error(s, c);
    if (st == HONE_OK && s->options.criterion == HONE_CRITERION_COMPONENTWISE)
      CHECK_LE(omega, SUP_LIMIT);
    else
      CHECK(isfinite(omega)); /* and so is x */
  }
}

int sys_solve(sys *s) {
  int st = sys_call(s);
  sys_check(s, st);
  return st;
}

void sys_expect(sys *s, int status) { CHECK_EQ_INT(sys_solve(s), status); }
