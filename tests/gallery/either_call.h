/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's calls for numbers of one part (hone_...) or of two
   (hone_z_...), which are passed as doubles: see either.h. Whoever includes
   this header calls the library; the gallery does not. */
#ifndef TESTS_GALLERY_EITHER_CALL_H
#define TESTS_GALLERY_EITHER_CALL_H

#include "api/hone.h"

/* The arguments of hone_solve. */
typedef struct either_call {
  int parts;
  int64_t n, nrhs;
  const double *a;
  int64_t lda;
  const double *b;
  int64_t ldb;
  double *x;
  int64_t ldx;
} either_call;

static inline int either_call_solve(const either_call *c,
                                    const hone_options *options,
                                    hone_report *report) {
  if (c->parts == 1)
    return hone_solve(c->n, c->nrhs, c->a, c->lda, c->b, c->ldb, c->x, c->ldx,
                      options, report);
  return hone_z_solve(c->n, c->nrhs, (const hone_complex *)c->a, c->lda,
                      (const hone_complex *)c->b, c->ldb, (hone_complex *)c->x,
                      c->ldx, options, report);
}

/* One of the two is not NULL once it was created. */
typedef struct either_solver {
  int parts;
  hone_solver *real;
  hone_z_solver *complex;
} either_solver;

static inline int either_create(either_solver *s, int parts, int64_t n,
                                const hone_options *options) {
  *s = (either_solver){.parts = parts, .real = NULL, .complex = NULL};
  return parts == 1 ? hone_solver_create(&s->real, n, options)
                    : hone_z_solver_create(&s->complex, n, options);
}

static inline int either_factor(either_solver *s, const double *a, int64_t lda,
                                hone_report *report) {
  return s->parts == 1 ? hone_solver_factor(s->real, a, lda, report)
                       : hone_z_solver_factor(
                             s->complex, (const hone_complex *)a, lda, report);
}

static inline int either_update(either_solver *s, const double *a, int64_t lda,
                                hone_report *report) {
  return s->parts == 1 ? hone_solver_update(s->real, a, lda, report)
                       : hone_z_solver_update(
                             s->complex, (const hone_complex *)a, lda, report);
}

/* Takes nrhs, b and x of the call. */
static inline int either_solver_solve(either_solver *s, const either_call *c,
                                      const hone_options *options,
                                      hone_report *report) {
  if (s->parts == 1)
    return hone_solver_solve(s->real, c->nrhs, c->b, c->ldb, c->x, c->ldx,
                             options, report);
  return hone_z_solver_solve(s->complex, c->nrhs, (const hone_complex *)c->b,
                             c->ldb, (hone_complex *)c->x, c->ldx, options,
                             report);
}

static inline void either_destroy(either_solver *s) {
  if (s->parts == 1)
    hone_solver_destroy(&s->real);
  else
    hone_z_solver_destroy(&s->complex);
}

static inline int either_memory_needed(int parts, int64_t n, int64_t nrhs,
                                       const hone_options *options,
                                       int64_t *single_bytes,
                                       int64_t *double_bytes) {
  return parts == 1
             ? hone_memory_needed(n, nrhs, options, single_bytes, double_bytes)
             : hone_z_memory_needed(n, nrhs, options, single_bytes,
                                    double_bytes);
}

#endif
