/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <limits.h>
#include <math.h>
#include <string.h>

sys sys_make_padded(int64_t n, int64_t nrhs, int64_t pad) {
  sys s = {.n = n, .nrhs = nrhs, .lda = n + pad, .ldb = n + pad};
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

int sys_call(sys *s) {
  return hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->ldb, s->x, s->ldx,
                    &s->options, &s->report);
}

void sys_check(const sys *s, int st) {
  CHECK_EQ_INT(s->report.status, st);
  CHECK_EQ_INT(s->report.n, s->n);
  CHECK_EQ_INT(s->report.nrhs, s->nrhs);
  CHECK(strcmp(hone_status_text(st), hone_status_text(INT_MAX)) != 0);
  if (st < 0) {
    CHECK(sup_untouched(s->x, s->ldx * s->nrhs, UNTOUCHED));
    return;
  }
  for (int64_t c = 0; c < s->nrhs; c++) {
    double omega = sup_backward_error(s->n, s->a, s->lda, false,
                                      s->x + c * s->ldx, s->b + c * s->ldb);
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
