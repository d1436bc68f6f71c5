/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves one small system by the library and judges the answer by exact
   arithmetic. */
#include "tests/campaign/hunt.h"
#include "tests/campaign/in_batch.h"
#include "tests/gallery/exact.h"

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

/* The call for m columns, from column c on. */
static either_call call_of(const hunt_system *s, int64_t c, int64_t m,
                           hunt_answer *out) {
  const int64_t n = s->n, rows = s->n * s->parts;
  return (either_call){.parts = s->parts,
                       .n = n,
                       .nrhs = m,
                       .a = s->a,
                       .lda = n,
                       .b = s->b + c * rows,
                       .ldb = n,
                       .x = out->x + c * rows,
                       .ldx = n};
}

static int solve_once(const hunt_system *s, hunt_answer *out,
                      hone_report *report) {
  const int64_t n = s->n, rows = s->n * s->parts;
  const either_call call = call_of(s, 0, s->nrhs, out);
  double x0[HUNT_MOST_N * HUNT_MOST_RHS];
  hone_options o = options_of(s);
  o.trans = s->trans;
  o.columns = out->columns;
  o.error_bounds = out->bars;
  o.ld_error_bounds = n;
  for (int64_t i = 0; i < rows * s->nrhs; i++)
    x0[i] = s->b[i % rows + (s->nrhs - 1) * rows]; /* any vector will do */
  if (s->use == HUNT_WARM) {
    o.x0 = x0;
    o.ldx0 = n;
  }
  return spread(either_call_solve(&call, &o, report), s->nrhs, out->columns);
}

static int solve_kept(const hunt_system *s, hunt_answer *out,
                      hone_report *report) {
  const int64_t n = s->n;
  const hone_options kept = options_of(s);
  either_solver solver;
  int worst = HONE_OK, st = either_create(&solver, s->parts, n, &kept);
  if (st == HONE_OK && s->use == HUNT_UPDATE &&
      either_factor(&solver, s->old, n, NULL) == HONE_OK)
    st = either_update(&solver, s->a, n, NULL);
  else if (st == HONE_OK)
    st = either_factor(&solver, s->a, n, NULL);
  for (int64_t c = 0; c < s->nrhs; c++) {
    hone_options o = HONE_OPTIONS_INIT;
    o.trans = s->trans;
    o.columns = out->columns + c;
    o.error_bounds = out->bars + c * n;
    o.ld_error_bounds = n;
    const either_call call = call_of(s, c, 1, out);
    int one = st < 0 ? st : either_solver_solve(&solver, &call, &o, report);
    (void)spread(one, 1, out->columns + c);
    worst = one != HONE_OK ? one : worst;
  }
  either_destroy(&solver);
  return worst;
}

static int solve_in_batch(const hunt_system *s, hunt_answer *out,
                          hone_report *report) {
  const either_call call = call_of(s, 0, s->nrhs, out);
  const int place = (int)(s->n + s->nrhs) % IN_BATCH_COUNT;
  hone_batch_result result;
  hone_options o = options_of(s);
  o.trans = s->trans;
  o.columns = out->columns;
  for (int64_t i = 0; i < s->n * s->nrhs; i++)
    out->bars[i] = (double)INFINITY;
  const int st = in_batch_solve(&call, &o, place, &result);
  report->rcond = result.rcond;
  return spread(st, s->nrhs, out->columns);
}

int hunt_by_library(const hunt_system *s, hunt_answer *out) {
  hone_report report = HONE_REPORT_INIT;
  hunt_methods = s->methods;
  const bool kept = s->use == HUNT_KEPT || s->use == HUNT_UPDATE;
  const int st = s->use == HUNT_BATCH ? solve_in_batch(s, out, &report)
                 : kept               ? solve_kept(s, out, &report)
                                      : solve_once(s, out, &report);
  hunt_methods = 0;
  out->rcond = report.rcond;
  return st;
}

/* ---- The judge ---- */

/* op(a), by columns; a is A or the matrix before the update. */
static void take_matrix(const hunt_system *s, const double *a, double *m) {
  const bool turned =
      (s->trans != HONE_NO_TRANS) != (s->layout == HONE_ROW_MAJOR);
  either_copy(s->parts, s->n, a, s->n, turned, s->trans == HONE_CONJ_TRANS, m);
}

/* Judges the system by the real one of parts * n unknowns. */
static exact_system *solve_exactly(const hunt_system *s, const double *m) {
  const int64_t order = s->n * s->parts;
  double whole[HUNT_MOST_N * HUNT_MOST_N], b[HUNT_MOST_N * HUNT_MOST_RHS];
  either_matrix(s->parts, s->n, m, s->n, whole);
  for (int64_t c = 0; c < s->nrhs; c++)
    either_vector(s->parts, s->n, s->b + c * order, b + c * order);
  return exact_solve(order, s->nrhs, whole, order, b, order);
}

static long double modulus(int parts, long double re, long double im) {
  return parts == 1 ? fabsl(re) : hypotl(re, im);
}

/* |x_i - x_true,i| of column c, or with x = NULL |x_true,i|. */
static void entries_of(const hunt_system *s, const exact_system *e, int64_t c,
                       const double *x, long double *sizes) {
  const int64_t order = s->n * s->parts;
  long double parts[HUNT_MOST_N];
  double stacked[HUNT_MOST_N];
  if (x != NULL) {
    either_vector(s->parts, s->n, x, stacked);
    (void)exact_error(e, c, stacked, parts);
  }
  for (int64_t i = 0; i < order && x == NULL; i++)
    parts[i] = exact_solution(e, i, c);
  for (int64_t i = 0; i < s->n; i++)
    sizes[i] = modulus(s->parts, parts[i], parts[order - s->n + i]);
}

static double norm1_of_inverse(const hunt_system *s, const double *m) {
  hunt_system units = *s; /* one column after the other */
  long double norm = 0.0L, sizes[HUNT_MOST_N];
  units.nrhs = 1;
  for (int64_t c = 0; c < s->n; c++) {
    long double sum = 0.0L;
    memset(units.b, 0, sizeof units.b);
    units.b[c * s->parts] = 1.0;
    exact_system *e = solve_exactly(&units, m);
    entries_of(s, e, 0, NULL, sizes);
    for (int64_t i = 0; i < s->n; i++)
      sum += sizes[i];
    norm = fmaxl(norm, sum);
    exact_free(e);
  }
  return (double)norm;
}

static double condition_of(const hunt_system *s, const double *m) {
  const int p = s->parts;
  double norm = 0.0;
  for (int64_t j = 0; j < s->n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < s->n; i++)
      sum += either_size(p, m + (i + j * s->n) * p);
    norm = fmax(norm, sum);
  }
  return norm * norm1_of_inverse(s, m);
}

static bool by_default_rule(const hunt_system *s) {
  return s->criterion == HONE_CRITERION_COMPONENTWISE &&
         !(s->tolerance > 0.0) && !s->extra;
}

/* Is every part of the number zero or of a usual size? *zero: all parts are. */
static bool is_usual(int parts, const long double *v, bool *zero) {
  bool usual = true;
  *zero = true;
  for (int k = 0; k < parts; k++) {
    const long double size = fabsl(v[k]);
    *zero = *zero && !(size > 0.0L);
    usual =
        usual && (!(size > 0.0L) || (size >= 0x1p-900L && size <= 0x1p900L));
  }
  return usual;
}

/* Looks at all numbers of the system and of its solution. Returns true if
   neither b nor x has a zero. */
static bool look(const hunt_system *s, const exact_system *e, bool *in_range) {
  const int64_t n = s->n, p = s->parts, of_b = n * n + n * s->nrhs;
  bool full = true, zero = false;
  *in_range = true;
  for (int64_t i = 0; i < of_b + n * s->nrhs; i++) {
    long double v[2] = {1.0L, 1.0L};
    for (int64_t k = 0; k < p; k++)
      if (i < of_b)
        v[k] = (long double)(i < n * n ? s->a[i * p + k]
                                       : s->b[(i - n * n) * p + k]);
      else if (!exact_singular(e))
        v[k] = exact_solution(e, (i - of_b) % n + k * n, (i - of_b) / n);
    *in_range = is_usual(s->parts, v, &zero) && *in_range;
    full = full && (i < n * n || !zero);
  }
  return full;
}

/* By every measure by which x may be accepted. After an update the scaling may
   be that of the matrix before. */
static bool omega_above_rule(const hunt_system *s, const double *m,
                             const double *x, const double *b) {
  const double rule = 4.0 * EPS * (1.0 + 64.0 * EPS);
  const int p = s->parts;
  double old[HUNT_MOST_N * HUNT_MOST_N];
  if (either_omega(p, s->n, m, x, b) <= rule ||
      either_sparse_omega(p, s->n, m, m, x, b) <= rule)
    return false;
  if (s->use != HUNT_UPDATE)
    return true;
  take_matrix(s, s->old, old);
  return !(either_sparse_omega(p, s->n, old, m, x, b) <= rule);
}

static bool has_small_row(const hunt_system *s, const exact_system *e,
                          const double *m, double condition) {
  const int64_t n = s->n;
  const int p = s->parts;
  bool small = false;
  for (int64_t i = 0; i < n * s->nrhs; i++) {
    const int64_t c = i / n, row = i % n;
    long double den = (long double)either_size(p, s->b + i * p);
    long double entry = 0.0L, size = 0.0L, x[HUNT_MOST_N];
    entries_of(s, e, c, NULL, x);
    for (int64_t j = 0; j < n; j++) {
      const long double a = (long double)either_size(p, m + (row + j * n) * p);
      den += a * x[j];
      entry = fmaxl(entry, a);
      size = fmaxl(size, x[j]);
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

/* max miss / max |x|; Inf if x is not finite, or is zero and should not be. */
static double relative_error(const hunt_system *s, const double *x,
                             const long double *miss) {
  long double most = 0.0L, size = 0.0L;
  for (int64_t i = 0; i < s->n; i++) {
    const double *v = x + i * s->parts;
    most = fmaxl(most, miss[i]); /* Inf if x_i is not finite */
    size = fmaxl(size, modulus(s->parts, (long double)v[0],
                               (long double)v[s->parts - 1]));
  }
  return most > 0.0L ? (double)(most / size) : 0.0;
}

static void judge_column(const hunt_system *s, const exact_system *e, int64_t c,
                         const double *m, const hunt_answer *answer,
                         hunt_verdict *out) {
  const hone_column *stated = &answer->columns[c];
  const double *x = answer->x + c * s->n * s->parts;
  const bool accepted = stated->status == HONE_OK;
  long double miss[HUNT_MOST_N];
  out->columns++;
  out->accepted += accepted;
  if (accepted && exact_singular(e))
    out->wrong |= HUNT_SINGULAR_ACCEPTED;
  if (accepted && by_default_rule(s) &&
      omega_above_rule(s, m, x, s->b + c * s->n * s->parts))
    out->wrong |= HUNT_OMEGA_ABOVE_RULE;
  if (stated->status < 0 || exact_singular(e))
    return;
  entries_of(s, e, c, x, miss);
  const double error = relative_error(s, x, miss);
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
  exact_system *e = solve_exactly(s, m);
  *out = (hunt_verdict){.refused_condition = (double)INFINITY};
  out->status = solve(s, &answer);
  out->rcond = answer.rcond;
  out->singular = exact_singular(e);
  for (int64_t c = 0; c < s->nrhs; c++)
    judge_column(s, e, c, m, &answer, out);
  const bool full = look(s, e, &out->in_range);
  if (out->accepted == 0 && !out->singular && by_default_rule(s) && full &&
      out->in_range) {
    out->refused_condition = condition_of(s, m);
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
                "tolerance %a methods %d parts %d\n",
                (int)s->n, (int)s->nrhs, s->use, s->trans, s->layout,
                s->precision, s->structure, s->criterion, s->extra,
                s->deterministic, s->tolerance, s->methods, s->parts);
  for (int k = 0; k < 3; k++) {
    const double *v0 = k == 0 ? s->a : k == 1 ? s->b : s->old;
    const int64_t rows = s->n * s->parts;
    const int64_t count = rows * (k == 1 ? s->nrhs : s->n);
    for (int64_t i = 0; i < count && (k < 2 || s->use == HUNT_UPDATE); i++)
      (void)fprintf(f, "%a%s", v0[i], (i + 1) % rows ? " " : "\n");
  }
  (void)fflush(f);
}

bool hunt_read(hunt_system *s, FILE *f) {
  char line[200];
  int n = 0, nrhs = 0;
  *s = (hunt_system){.parts = 1};
  do
    if (fgets(line, sizeof line, f) == NULL)
      return false;
  while (line[0] == '#');
  if (sscanf(line,
             "n %d nrhs %d use %d trans %d layout %d precision %d structure %d "
             "criterion %d extra %d deterministic %d tolerance %la "
             "methods %d parts %d",
             &n, &nrhs, &s->use, &s->trans, &s->layout, &s->precision,
             &s->structure, &s->criterion, &s->extra, &s->deterministic,
             &s->tolerance, &s->methods,
             &s->parts) < 11 || /* older texts end here */
      s->parts < 1 ||
      s->parts > 2 || n < 1 || n > HUNT_MOST_N / s->parts || nrhs < 1 ||
      nrhs > HUNT_MOST_RHS)
    return false;
  s->n = n;
  s->nrhs = nrhs;
  for (int k = 0; k < 3; k++) {
    double *v = k == 0 ? s->a : k == 1 ? s->b : s->old;
    const int count = s->parts * n * (k == 1 ? nrhs : n);
    for (int i = 0; i < count && (k < 2 || s->use == HUNT_UPDATE); i++)
      if (fscanf(f, "%la", &v[i]) != 1)
        return false;
  }
  return true;
}
