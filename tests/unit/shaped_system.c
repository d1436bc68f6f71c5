/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/shaped_system.h"

#include "api/hone.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

static const double UNTOUCHED = 6.5e99;

bool shaped_inside(shape kind, int64_t i, int64_t j) {
  switch (kind) {
  case DIAGONAL:
    return i == j;
  case LOWER:
    return i >= j;
  case UPPER:
    return i <= j;
  case BAND:
    return i <= j + 2 && j <= i + 1;
  default:
    return true;
  }
}

void shaped_fill(shaped *s, shape kind, double units) {
  sup_rng rng = {(uint64_t)(7 * s->n + (int)kind)};
  double *d = sup_filled(2 * s->n, 1.0);
  for (int64_t i = 0; i < 2 * s->n && units > 0.0; i++)
    d[i] = pow(10.0, 2.0 * units * sup_uniform(&rng));
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++) {
      double v = sup_uniform(&rng) / sqrt((double)s->n);
      if (kind == BAND)
        v = sup_uniform(&rng);
      if (i == j) /* a small diagonal entry forces a row exchange */
        v = kind == BAND && i == 5 ? 1e-3 : 1.0 + fabs(v);
      if (kind == DEFINITE && i > j)
        v = 0.0;
      s->a[i + j * s->lda] =
          shaped_inside(kind, i, j) ? v * d[i] * d[s->n + j] : 0.0;
    }
  for (int64_t j = 0; j < s->n && kind == DEFINITE; j++)
    for (int64_t i = j + 1; i < s->n; i++)
      s->a[i + j * s->lda] = s->a[j + i * s->lda];
  sup_free(d);
}

shaped shaped_make(shape kind, int64_t n, int64_t nrhs, int64_t pad) {
  shaped s = {.n = n, .lda = n + pad, .nrhs = nrhs};
  sup_rng rng = {(uint64_t)n};
  s.a = sup_filled(s.lda * n, (double)NAN);
  s.b = sup_filled(n * nrhs, 0.0);
  s.x = sup_filled(n * nrhs, UNTOUCHED);
  shaped_fill(&s, kind, 0.0);
  sup_random(&rng, n, nrhs, s.b, n);
  s.options = (hone_options)HONE_OPTIONS_INIT;
  hone_report_init(&s.report, sizeof s.report);
  s.options.device = HONE_DEVICE_CPU;
  return s;
}

void shaped_discard(shaped *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

void shaped_check_x(const shaped *s, int st) {
  const bool trans =
      (s->options.trans == HONE_TRANS) != (s->options.layout == HONE_ROW_MAJOR);
  for (int64_t c = 0; c < s->nrhs && st == HONE_OK; c++)
    CHECK_LE(sup_backward_error(s->n, s->a, s->lda, trans, s->x + c * s->n,
                                s->b + c * s->n),
             SUP_LIMIT);
  if (st < 0)
    CHECK(sup_untouched(s->x, s->n * s->nrhs, UNTOUCHED));
}

int shaped_solve(shaped *s) {
  int st = hone_solve(s->n, s->nrhs, s->a, s->lda, s->b, s->n, s->x, s->n,
                      &s->options, &s->report);
  shaped_check_x(s, st);
  return st;
}

int shaped_structure(shape kind, int64_t n) {
  if (kind == DIAGONAL || n == 1)
    return HONE_FOUND_DIAGONAL;
  if (kind == LOWER || kind == UPPER)
    return HONE_FOUND_TRIANGULAR;
  return kind == BAND && n >= 17 ? HONE_FOUND_BANDED : HONE_FOUND_GENERAL;
}

static const char *const ways[] = {"single LU", "single Cholesky",
                                   "banded LU (2 below, 1 above)",
                                   "triangular solve", "diagonal solve"};

void shaped_check_path(const shaped *s, int structure) {
  /* The library's own choice is double precision up to order 256. */
  const bool small = structure == HONE_FOUND_GENERAL && s->n <= 256 &&
                     s->options.factor_precision == HONE_FACTOR_AUTO;
  const char *way = small ? "double LU" : ways[structure];
  CHECK_EQ_INT(s->report.structure, structure);
  CHECK(strncmp(s->report.path, way, strlen(way)) == 0);
  CHECK(strstr(s->report.path, "set aside") == NULL);
  CHECK_STR(s->report.reason, "");
  CHECK_CONTAINS(s->report.device, "CPU");
  CHECK_LE(s->report.fallback_ms, 0.0);
  /* Refinement would hide a wrong direct solve. */
  if (structure >= HONE_FOUND_BANDED)
    CHECK_LE(s->report.iterations, 1);
  CHECK_EQ_INT(s->report.precision,
               small || structure >= HONE_FOUND_BANDED ? 64 : 32);
}

void shaped_take_form(shaped *s, int form) {
  s->options.trans = form & 1 ? HONE_TRANS : HONE_NO_TRANS;
  s->options.layout = form & 2 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
}

void shaped_check_no_worse_than_lu(shaped *s, bool must) {
  if (!must) {
    s->options.structure = HONE_STRUCTURE_GENERAL;
    must = shaped_solve(s) == HONE_OK;
    s->options.structure = HONE_STRUCTURE_AUTO;
  }
  const int st = shaped_solve(s);
  CHECK(st == HONE_OK || (st > 0 && !must));
}
