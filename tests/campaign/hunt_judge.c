/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves one small system by the library and judges the answer by exact
   arithmetic. */
#include "tests/campaign/hunt.h"
#include "tests/gallery/exact.h"
#include "tests/gallery/reference.h"

#include <math.h>
#include <string.h>

static const double EPS = 0x1p-53;

/* ---- The library ---- */

static hone_options options_of(const hunt_system *s) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.threads = 1;
  o.factor_precision = s->precision;
  o.structure = s->structure;
  o.criterion = s->criterion;
  o.tolerance = s->tolerance;
  o.extra_precise = s->extra;
  o.deterministic = s->deterministic;
  o.layout = s->layout;
  return o;
}

/* The columns of a failed call get its status. */
static int spread(int st, int64_t count, hone_column *columns) {
  for (int64_t c = 0; c < count && st < 0; c++)
    columns[c].status = st;
  return st;
}

static int solve_once(const hunt_system *s, hunt_answer *out,
                      hone_report *report) {
  const int64_t n = s->n;
  double x0[HUNT_MOST_N * HUNT_MOST_RHS];
  hone_options o = options_of(s);
  o.trans = s->trans;
  o.columns = out->columns;
  o.error_bounds = out->bars;
  o.ld_error_bounds = n;
  for (int64_t i = 0; i < n * s->nrhs; i++)
    x0[i] = s->b[i % n + (s->nrhs - 1) * n]; /* any vector will do */
  if (s->use == HUNT_WARM) {
    o.x0 = x0;
    o.ldx0 = n;
  }
  return spread(hone_solve(n, s->nrhs, s->a, n, s->b, n, out->x, n, &o, report),
                s->nrhs, out->columns);
}

static int solve_kept(const hunt_system *s, hunt_answer *out,
                      hone_report *report) {
  const int64_t n = s->n;
  const hone_options kept = options_of(s);
  hone_solver *solver = NULL;
  int worst = HONE_OK, st = hone_solver_create(&solver, n, &kept);
  if (st == HONE_OK && s->use == HUNT_UPDATE &&
      hone_solver_factor(solver, s->old, n, NULL) == HONE_OK)
    st = hone_solver_update(solver, s->a, n, NULL);
  else if (st == HONE_OK)
    st = hone_solver_factor(solver, s->a, n, NULL);
  for (int64_t c = 0; c < s->nrhs; c++) {
    hone_options o = HONE_OPTIONS_INIT;
    o.trans = s->trans;
    o.columns = out->columns + c;
    o.error_bounds = out->bars + c * n;
    o.ld_error_bounds = n;
    int one = st < 0 ? st
                     : hone_solver_solve(solver, 1, s->b + c * n, n,
                                         out->x + c * n, n, &o, report);
    (void)spread(one, 1, out->columns + c);
    worst = one != HONE_OK ? one : worst;
  }
  hone_solver_destroy(&solver);
  return worst;
}

int hunt_by_library(const hunt_system *s, hunt_answer *out) {
  hone_report report = HONE_REPORT_INIT;
  hunt_methods = s->methods;
  const int st = s->use == HUNT_KEPT || s->use == HUNT_UPDATE
                     ? solve_kept(s, out, &report)
                     : solve_once(s, out, &report);
  hunt_methods = 0;
  out->rcond = report.rcond;
  return st;
}

/* ---- The judge ---- */

/* op(a), by columns; a is A or the matrix before the update. */
static void take_matrix(const hunt_system *s, const double *a, double *m) {
  const int64_t n = s->n;
  const bool turned = (s->trans == HONE_TRANS) != (s->layout == HONE_ROW_MAJOR);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      m[i + j * n] = turned ? a[j + i * n] : a[i + j * n];
}

static double norm1_of_inverse(int64_t n, const double *m) {
  double identity[HUNT_MOST_N * HUNT_MOST_N] = {0.0};
  long double norm = 0.0L;
  for (int64_t i = 0; i < n; i++)
    identity[i * (n + 1)] = 1.0;
  exact_system *e = exact_solve(n, n, m, n, identity, n);
  for (int64_t c = 0; c < n; c++) {
    long double sum = 0.0L;
    for (int64_t i = 0; i < n; i++)
      sum += fabsl(exact_solution(e, i, c));
    norm = fmaxl(norm, sum);
  }
  exact_free(e);
  return (double)norm;
}

static double condition_of(int64_t n, const double *m) {
  double norm = 0.0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
      sum += fabs(m[i + j * n]);
    norm = fmax(norm, sum);
  }
  return norm * norm1_of_inverse(n, m);
}

static bool by_default_rule(const hunt_system *s) {
  return s->criterion == HONE_CRITERION_COMPONENTWISE &&
         !(s->tolerance > 0.0) && !s->extra;
}

/* Looks at all numbers of the system and of its solution. Returns true if
   neither b nor x has a zero. */
static bool look(const hunt_system *s, const exact_system *e, bool *in_range) {
  const int64_t entries = s->n * s->n, half = s->n * s->nrhs;
  bool full = true;
  *in_range = true;
  for (int64_t i = 0; i < entries + 2 * half; i++) {
    const int64_t k = i - entries - half;
    const long double v = i < entries ? (long double)s->a[i]
                          : k < 0     ? (long double)s->b[i - entries]
                          : exact_singular(e)
                              ? 1.0L
                              : exact_solution(e, k % s->n, k / s->n);
    const bool zero = !(fabsl(v) > 0.0L);
    full = full && (i < entries || !zero);
    *in_range =
        *in_range && (zero || (fabsl(v) >= 0x1p-900L && fabsl(v) <= 0x1p900L));
  }
  return full;
}

/* By every measure by which x may be accepted. After an update the scaling may
   be that of the matrix before. */
static bool omega_above_rule(const hunt_system *s, const double *m,
                             const double *x, const double *b) {
  const double rule = 4.0 * EPS * (1.0 + 64.0 * EPS);
  double old[HUNT_MOST_N * HUNT_MOST_N];
  if (reference_omega(s->n, m, s->n, x, b) <= rule ||
      reference_sparse_omega(s->n, m, s->n, x, b) <= rule)
    return false;
  if (s->use != HUNT_UPDATE)
    return true;
  take_matrix(s, s->old, old);
  return !(reference_sparse_omega_scaled_as(s->n, old, m, s->n, x, b) <= rule);
}

static bool has_small_row(const hunt_system *s, const exact_system *e,
                          const double *m, double condition) {
  const int64_t n = s->n;
  bool small = false;
  for (int64_t i = 0; i < n * s->nrhs; i++) {
    const int64_t c = i / n, row = i % n;
    long double den = fabsl((long double)s->b[i]), entry = 0.0L, size = 0.0L;
    for (int64_t j = 0; j < n; j++) {
      const long double a = fabsl((long double)m[row + j * n]);
      const long double x = fabsl(exact_solution(e, j, c));
      den += a * x;
      entry = fmaxl(entry, a);
      size = fmaxl(size, x);
    }
    small =
        small || !(den > 4.0L * (long double)(EPS * condition) * entry * size);
  }
  return small;
}

/* Compares every component of column c with its bar. miss: n errors, by exact
   arithmetic, which were rounded by less than 2^-48. */
static void judge_bars(const hunt_system *s, int64_t c, const long double *miss,
                       const double *bars, hunt_verdict *out) {
  for (int64_t i = 0; i < s->n; i++) {
    const long double bar = (long double)bars[i];
    const double ratio = miss[i] > 0.0L ? (double)(miss[i] / bar) : 0.0;
    if (!(miss[i] * (1.0L - 0x1p-48L) <= bar))
      out->wrong |= HUNT_BAR_BELOW_ERROR;
    if (!(ratio <= out->bar_ratio)) {
      out->bar_ratio = ratio;
      out->bar_column = (int)c;
      out->bar_row = (int)i;
    }
  }
}

static void judge_column(const hunt_system *s, const exact_system *e, int64_t c,
                         const double *m, const hunt_answer *answer,
                         hunt_verdict *out) {
  const hone_column *stated = &answer->columns[c];
  const double *x = answer->x + c * s->n;
  const bool accepted = stated->status == HONE_OK;
  long double miss[HUNT_MOST_N];
  out->columns++;
  out->accepted += accepted;
  if (accepted && exact_singular(e))
    out->wrong |= HUNT_SINGULAR_ACCEPTED;
  if (accepted && by_default_rule(s) &&
      omega_above_rule(s, m, x, s->b + c * s->n))
    out->wrong |= HUNT_OMEGA_ABOVE_RULE;
  if (stated->status < 0 || exact_singular(e))
    return;
  const double error = (double)exact_error(e, c, x, miss);
  const double bound = stated->forward_error;
  const double ratio = error > 0.0 ? error / bound : 0.0;
  judge_bars(s, c, miss, answer->bars + c * s->n, out);
  if (!(error <= bound * (1.0 + 1e-9)))
    out->wrong |= HUNT_BOUND_BELOW_ERROR;
  if (!(ratio <= out->ratio)) {
    out->ratio = ratio;
    out->worst = (int)c;
    out->error = error;
    out->bound = bound;
  }
  if (accepted)
    out->worst_accepted_error = fmax(out->worst_accepted_error, error);
}

void hunt_judge(const hunt_system *s, hunt_solver solve, hunt_verdict *out) {
  hunt_answer answer = {.rcond = 0.0};
  double m[HUNT_MOST_N * HUNT_MOST_N];
  take_matrix(s, s->a, m);
  exact_system *e = exact_solve(s->n, s->nrhs, m, s->n, s->b, s->n);
  *out = (hunt_verdict){.refused_condition = (double)INFINITY};
  out->status = solve(s, &answer);
  out->rcond = answer.rcond;
  out->singular = exact_singular(e);
  for (int64_t c = 0; c < s->nrhs; c++)
    judge_column(s, e, c, m, &answer, out);
  const bool full = look(s, e, &out->in_range);
  if (out->accepted == 0 && !out->singular && by_default_rule(s) && full &&
      out->in_range) {
    out->refused_condition = condition_of(s->n, m);
    out->small_row = has_small_row(s, e, m, out->refused_condition);
  }
  exact_free(e);
}

/* ---- Texts ---- */

void hunt_print(const hunt_system *s, const hunt_verdict *v, FILE *f) {
  (void)fprintf(f, "# status %d%s%s%s%s%s%s\n", v->status,
                v->in_range ? "" : ", numbers out of range",
                v->singular ? ", singular" : "",
                v->wrong & HUNT_SINGULAR_ACCEPTED ? ", ACCEPTED" : "",
                v->wrong & HUNT_BOUND_BELOW_ERROR ? ", BOUND BELOW ERROR" : "",
                v->wrong & HUNT_BAR_BELOW_ERROR ? ", BAR BELOW ERROR" : "",
                v->wrong & HUNT_OMEGA_ABOVE_RULE ? ", OMEGA ABOVE RULE" : "");
  (void)fprintf(f, "# column %d: error / bound %.9g, error %.3e, rcond %.3e\n",
                v->worst, v->ratio, v->error, v->rcond);
  (void)fprintf(f, "# column %d, component %d: error / bar %.9g\n",
                v->bar_column, v->bar_row, v->bar_ratio);
  if (isfinite(v->refused_condition))
    (void)fprintf(f, "# refused, of condition %.3e\n", v->refused_condition);
  (void)fprintf(f,
                "n %d nrhs %d use %d trans %d layout %d precision %d "
                "structure %d criterion %d extra %d deterministic %d "
                "tolerance %a methods %d\n",
                (int)s->n, (int)s->nrhs, s->use, s->trans, s->layout,
                s->precision, s->structure, s->criterion, s->extra,
                s->deterministic, s->tolerance, s->methods);
  for (int k = 0; k < 3; k++) {
    const double *v0 = k == 0 ? s->a : k == 1 ? s->b : s->old;
    const int64_t count = k == 1 ? s->n * s->nrhs : s->n * s->n;
    for (int64_t i = 0; i < count && (k < 2 || s->use == HUNT_UPDATE); i++)
      (void)fprintf(f, "%a%s", v0[i], (i + 1) % s->n ? " " : "\n");
  }
  (void)fflush(f);
}

bool hunt_read(hunt_system *s, FILE *f) {
  char line[200];
  int n = 0, nrhs = 0;
  *s = (hunt_system){0};
  do
    if (fgets(line, sizeof line, f) == NULL)
      return false;
  while (line[0] == '#');
  if (sscanf(line,
             "n %d nrhs %d use %d trans %d layout %d precision %d structure %d "
             "criterion %d extra %d deterministic %d tolerance %la "
             "methods %d",
             &n, &nrhs, &s->use, &s->trans, &s->layout, &s->precision,
             &s->structure, &s->criterion, &s->extra, &s->deterministic,
             &s->tolerance, &s->methods) < 11 || /* older texts end here */
      n < 1 ||
      n > HUNT_MOST_N || nrhs < 1 || nrhs > HUNT_MOST_RHS)
    return false;
  s->n = n;
  s->nrhs = nrhs;
  for (int k = 0; k < 3; k++) {
    double *v = k == 0 ? s->a : k == 1 ? s->b : s->old;
    const int count = k == 1 ? n * nrhs : n * n;
    for (int i = 0; i < count && (k < 2 || s->use == HUNT_UPDATE); i++)
      if (fscanf(f, "%la", &v[i]) != 1)
        return false;
  }
  return true;
}
