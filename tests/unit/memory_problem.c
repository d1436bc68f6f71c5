/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/memory_problem.h"

#include "tests/gallery/either.h"
#include "tests/unit/contract_system.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void take_shape(problem *p) {
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->n; i++) {
      double *v = &p->a[i + j * p->n];
      if ((p->shape == 'u' && i > j) || (p->shape == 'b' && i > j + 3) ||
          (p->shape == 'b' && j > i + 2))
        *v = 0.0;
      else if (p->shape == 's' && i > j)
        *v = p->a[j + i * p->n];
      if (p->graded)
        *v *= ldexp(1.0, (int)(i % 40));
    }
}

int64_t mp_doubles(const problem *p) { return p->parts * p->n * p->nrhs; }

void mp_make(problem *p, heap *h) {
  sup_rng rng = {(uint64_t)p->n};
  p->a = sup_filled(p->n * p->n, 0.0);
  p->b = sup_filled(p->n * p->nrhs, 0.0);
  p->parts = p->parts == 2 ? 2 : 1;
  p->x = sup_filled(mp_doubles(p), MP_UNTOUCHED);
  if (p->cond > 0.0)
    sup_matrix_cond(&rng, p->n, p->mode ? p->mode : SUP_GEOMETRIC, p->cond,
                    p->a, p->n);
  else
    sup_random(&rng, p->n, p->n, p->a, p->n);
  for (int64_t i = 0; !(p->cond > 0.0) && i < p->n; i++)
    p->a[i + i * p->n] += sqrt((double)p->n);
  take_shape(p);
  sup_random(&rng, p->n, p->nrhs, p->b, p->n);
  if (p->parts == 2) {
    p->a = sys_with_phases(&rng, p->n, p->n, p->shape == 's', p->a);
    p->b = sys_with_phases(&rng, p->n, p->nrhs, false, p->b);
  }
  p->options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&p->report, sizeof p->report);
  p->options.factor_precision = p->start;
  p->options.threads = 2;
  p->options.max_iterations = p->cap;
  heap_use(&p->options, h);
}

void mp_discard(problem *p) {
  sup_free(p->a);
  sup_free(p->b);
  sup_free(p->x);
}

/* ---- Calls ---- */

static int32_t trans_of(const problem *p) {
  return p->parts == 2 ? HONE_CONJ_TRANS : HONE_NO_TRANS;
}

static either_call call_of(const problem *p) {
  return (either_call){.parts = p->parts,
                       .n = p->n,
                       .nrhs = p->nrhs,
                       .a = p->a,
                       .lda = p->n,
                       .b = p->b,
                       .ldb = p->n,
                       .x = p->x,
                       .ldx = p->n};
}

int mp_solve(problem *p) {
  const either_call call = call_of(p);
  hone_options o = p->options;
  o.trans = trans_of(p);
  return either_call_solve(&call, &o, &p->report);
}

int mp_solve_with(problem *p, either_solver *solver) {
  const either_call call = call_of(p);
  hone_options o = HONE_OPTIONS_INIT;
  o.trans = trans_of(p);
  return either_solver_solve(solver, &call, &o, &p->report);
}

int mp_three_calls(problem *p) {
  either_solver solver;
  int st = either_create(&solver, p->parts, p->n, &p->options);
  CHECK((st == HONE_OK) == (solver.real != NULL || solver.complex != NULL));
  if (st == HONE_OK)
    st = either_factor(&solver, p->a, p->n, &p->report);
  if (st == HONE_OK)
    st = mp_solve_with(p, &solver);
  either_destroy(&solver);
  CHECK(solver.real == NULL && solver.complex == NULL);
  return st;
}

/* ---- Checks ---- */

static double backward_error(const problem *p, int64_t c) {
  const int64_t n = p->n, rows = p->parts * n;
  const double *x = p->x + c * rows, *b = p->b + c * rows;
  if (p->parts == 1)
    return sup_backward_error(n, p->a, n, false, x, b);
  double *m = sup_filled(rows * n, 0.0);
  either_copy(2, n, p->a, n, true, true, m);
  const double omega = either_omega(2, n, m, x, b);
  sup_free(m);
  return omega * (1.0 - 1e-12); /* denominators were rounded */
}

void mp_check(const problem *p, int status) {
  if (status < 0) {
    CHECK_EQ_INT(status, HONE_NO_MEMORY);
    CHECK(sup_untouched(p->x, mp_doubles(p), MP_UNTOUCHED));
    return;
  }
  for (int64_t i = 0; i < mp_doubles(p) && status == HONE_OK; i++)
    if (!isfinite(p->x[i])) {
      CHECK(isfinite(p->x[i]));
      return;
    }
  for (int64_t c = 0; c < p->nrhs && status == HONE_OK; c++)
    if (c == 0 || c == p->nrhs - 1 || c == 63 || c == 64)
      CHECK_LE(backward_error(p, c), SUP_LIMIT);
}
