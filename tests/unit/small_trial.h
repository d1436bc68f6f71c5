/* SPDX-License-Identifier: BSD-3-Clause */
/* A small system for hone_solve, and what must hold of its solution. */
#ifndef TESTS_SMALL_TRIAL_H
#define TESTS_SMALL_TRIAL_H

#include "tests/gallery/either.h"
#include "tests/gallery/either_call.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <string.h>

static const double UNTOUCHED = -2.5e77;

enum { MOST = 20 }; /* right-hand sides */

/* Leading dimensions differ, and the padding of A and b is NaN. */
typedef struct trial {
  int parts;
  int64_t n, nrhs, lda, ldb, ldx;
  double *a, *b, *x;
  hone_column column[MOST];
  hone_options options;
  hone_report report;
} trial;

static inline trial make(int parts, int64_t n, int64_t nrhs) {
  trial t = {.parts = parts,
             .n = n,
             .nrhs = nrhs,
             .lda = n + 3,
             .ldb = n + 1,
             .ldx = n + 2,
             .options = HONE_OPTIONS_INIT,
             .report = HONE_REPORT_INIT};
  sup_rng rng = {(uint64_t)(n + 1000 * nrhs + parts)};
  t.a = sup_filled(parts * t.lda * n, (double)NAN);
  t.b = sup_filled(parts * t.ldb * nrhs, (double)NAN);
  t.x = sup_filled(parts * t.ldx * nrhs, UNTOUCHED);
  sup_random(&rng, parts * n, n, t.a, parts * t.lda);
  sup_random(&rng, parts * n, nrhs, t.b, parts * t.ldb);
  return t;
}

static inline void discard(trial *t) {
  sup_free(t->a);
  sup_free(t->b);
  sup_free(t->x);
}

/* The numbers of the caller's matrix and of its right-hand sides. */
static inline double *entry(const trial *t, int64_t i, int64_t j) {
  return t->a + t->parts * (i + j * t->lda);
}
static inline double *side(const trial *t, int64_t c) {
  return t->b + t->parts * c * t->ldb;
}

static inline int solve(trial *t) {
  const either_call call = {t->parts, t->n,   t->nrhs, t->a,  t->lda,
                            t->b,     t->ldb, t->x,    t->ldx};
  t->options.columns = t->column;
  return either_call_solve(&call, &t->options, &t->report);
}

/* A solver estimates the condition in a phase of its own, which takes time. */
static inline bool by_kernels(const trial *t) {
  return !(t->report.certify_ms > 0.0);
}

/* A becomes Hermitian and, with its diagonal, positive definite. */
static inline void make_hermitian(const trial *t, double diagonal) {
  for (int64_t i = 0; i < t->n; i++)
    for (int64_t j = 0; j <= i; j++)
      for (int q = 0; q < t->parts; q++)
        entry(t, i, j)[q] = i != j ? (q ? -1.0 : 1.0) * entry(t, j, i)[q]
                            : q    ? 0.0
                                   : diagonal;
}

/* form: trans, 3 for an A that is stored by rows, and 6 for one that is said to
   be positive definite, and is. */
static inline void set_form(trial *t, int form) {
  t->options.trans = form % 3;
  t->options.layout = form / 3 % 2;
  if (form >= 6) {
    t->options.structure = HONE_STRUCTURE_SPD;
    make_hermitian(t, 3.0 * sqrt((double)t->n));
  }
}

/* Every column is accepted, with the errors of the report. */
static inline void check_solved(const trial *t, int st) {
  const bool turned = (t->options.trans != HONE_NO_TRANS) !=
                      (t->options.layout == HONE_ROW_MAJOR);
  double *m = sup_filled(t->parts * t->n * t->n, 0.0);
  double worst = 0.0, forward = 0.0;
  CHECK_EQ_INT(st, HONE_OK);
  CHECK_EQ_INT(t->report.status, HONE_OK);
  CHECK_EQ_INT(t->report.accepted, t->nrhs);
  either_copy(t->parts, t->n, t->a, t->lda, turned,
              t->options.trans == HONE_CONJ_TRANS, m);
  for (int64_t c = 0; c < t->nrhs; c++) {
    const double *x = t->x + t->parts * c * t->ldx;
    const double omega = either_omega(t->parts, t->n, m, x, side(t, c));
    CHECK_EQ_INT(t->column[c].status, HONE_OK);
    CHECK_LE(omega, SUP_LIMIT * (1.0 + 1e-12)); /* denominators are rounded */
    CHECK_NEAR(t->column[c].backward_error, omega, 0.01 * omega);
    CHECK(sup_untouched(x + t->parts * t->n, t->parts * (t->ldx - t->n),
                        UNTOUCHED));
    worst = fmax(worst, t->column[c].backward_error);
    forward = fmax(forward, t->column[c].forward_error);
  }
  CHECK_NEAR(t->report.backward_error, worst, 0.0);
  CHECK_NEAR(t->report.forward_error, forward, 0.0);
  CHECK(t->report.digits > 0 && t->report.bound_failure > 0.0);
  sup_free(m);
}

#endif
