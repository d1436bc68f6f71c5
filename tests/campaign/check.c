/* SPDX-License-Identifier: BSD-3-Clause */
/* Solves one system by the library and by LAPACK, and measures each x: its
   backward error in more than double precision, and its forward error by the
   reference. */
#include "base/lapack.h"
#include "base/lapack_pairs.h"
#include "tests/campaign/campaign.h"
#include "tests/campaign/in_batch.h"
#include "tests/gallery/either_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* x holds this number before a solve; it is no solution of any system here. */
static const double SENTINEL = -0x1.23456789abcdep-987;
static const double EPS = 0x1p-53;

/* The arrays of bars have so many rows more. */
enum { BARS_PADDING = 2 };

/* The workspace of one check; lapack_x: n x nrhs numbers. */
typedef struct bench {
  const campaign_system *s;
  int64_t rows;  /* n times the parts of a number */
  double *b, *x; /* as given to the library: ldb, ldx */
  double *bars;  /* n + BARS_PADDING rows */
  double *matrix, *lapack_x, *work, *rwork;
  float *swork;
  int *pivots;
  hone_column columns[CAMPAIGN_MOST_RHS];
} bench;

static void *memory(int64_t count, size_t size) {
  void *p = calloc((size_t)count + 1, size);
  if (p == NULL) {
    (void)fprintf(stderr, "campaign: out of memory\n");
    exit(2);
  }
  return p;
}

/* Column c as the system has it, and as the library was given it and x. */
static const double *given_b(const bench *w, int64_t c) {
  return w->s->b + c * w->rows;
}
static double *column_b(const bench *w, int64_t c) {
  return w->b + c * w->s->ldb * w->s->parts;
}
static double *column_x(const bench *w, int64_t c) {
  return w->x + c * w->s->ldx * w->s->parts;
}

static void open_bench(bench *w, const campaign_system *s) {
  const int64_t n = s->n, m = s->nrhs, p = s->parts;
  *w = (bench){.s = s, .rows = n * p};
  w->b = memory(s->ldb * m * p, sizeof *w->b);
  w->x = s->in_place ? w->b : memory(s->ldx * m * p, sizeof *w->x);
  w->bars = memory((n + BARS_PADDING) * m, sizeof *w->bars);
  for (int64_t k = 0; k < (n + BARS_PADDING) * m; k++)
    w->bars[k] = SENTINEL;
  w->matrix = memory(n * n * p, sizeof *w->matrix);
  w->lapack_x = memory(n * m * p, sizeof *w->lapack_x);
  w->work = memory(n * m * p, sizeof *w->work);
  w->rwork = memory(n, sizeof *w->rwork);
  w->swork = memory(n * (n + m) * p, sizeof *w->swork);
  w->pivots = memory(n, sizeof *w->pivots);
  for (int64_t k = 0; k < s->ldx * m * p; k++)
    w->x[k] = SENTINEL;
  for (int64_t c = 0; c < m; c++)
    memcpy(column_b(w, c), given_b(w, c), (size_t)w->rows * sizeof *w->b);
}

static void close_bench(bench *w) {
  if (!w->s->in_place)
    free(w->x);
  free(w->b);
  free(w->bars);
  free(w->matrix);
  free(w->lapack_x);
  free(w->work);
  free(w->rwork);
  free(w->swork);
  free(w->pivots);
}

/* ---- The library ---- */

/* A with relative perturbations of about 1e-9, or with a ground: one diagonal
   entry is larger. */
static double *nearby(const campaign_system *s) {
  gallery_rng rng = {s->seed};
  const size_t count = (size_t)(s->lda * s->n * s->parts);
  double *a = memory((int64_t)count, sizeof *a), most = 0.0;
  for (size_t k = 0; k < count; k++) {
    a[k] = s->stored[k];
    most = fmax(most, fabs(a[k])); /* ignores the padding, which is NaN */
    if (!s->grounded)
      a[k] *= 1.0 - 1e-9 * gallery_uniform(&rng);
  }
  if (s->grounded)
    a[gallery_below(&rng, s->n) * (s->lda + 1) * s->parts] +=
        most > 0.0 ? most : 1.0;
  return a;
}

static int worse(int a, int b) {
  if (a < 0 || b < 0)
    return a < b ? a : b;
  return a > b ? a : b;
}

/* Asks for columns and bars, from column c on, and gives them an initial x. */
static void ask(bench *w, int64_t c, hone_options *o) {
  o->columns = w->columns + c;
  if (w->s->warm) {
    o->x0 = column_b(w, c);
    o->ldx0 = w->s->ldb;
  }
  if (!w->s->bars)
    return;
  o->ld_error_bounds = w->s->n + BARS_PADDING;
  o->error_bounds = w->bars + c * o->ld_error_bounds;
}

/* The call for m columns, from column c on. */
static either_call call_of(const bench *w, int64_t c, int64_t m) {
  const campaign_system *s = w->s;
  return (either_call){.parts = s->parts,
                       .n = s->n,
                       .nrhs = m,
                       .a = s->stored,
                       .lda = s->lda,
                       .b = column_b(w, c),
                       .ldb = s->ldb,
                       .x = column_x(w, c),
                       .ldx = s->ldx};
}

/* Solves for the columns in two calls; if one fails, its columns get its
   status. */
static int solve_kept(bench *w, either_solver *solver) {
  const campaign_system *s = w->s;
  const int64_t half = s->nrhs / 2;
  int status = HONE_OK;
  for (int64_t at = 0; at < s->nrhs;
       at += at == 0 && half > 0 ? half : s->nrhs) {
    const int64_t m = at == 0 && half > 0 ? half : s->nrhs - at;
    const either_call call = call_of(w, at, m);
    hone_options o = HONE_OPTIONS_INIT;
    o.trans = s->options.trans;
    ask(w, at, &o);
    int st = either_solver_solve(solver, &call, &o, NULL);
    for (int64_t c = at; c < at + m && st < 0; c++)
      w->columns[c].status = st;
    status = worse(status, st);
  }
  return status;
}

static int run_kept(bench *w) {
  const campaign_system *s = w->s;
  either_solver solver;
  double *other = s->nearby ? nearby(s) : NULL;
  hone_options kept = s->options;
  kept.trans = HONE_NO_TRANS; /* belongs to one solve */
  int st = either_create(&solver, s->parts, s->n, &kept);
  if (st == HONE_OK && s->nearby &&
      either_factor(&solver, other, s->lda, NULL) == HONE_OK)
    st = either_update(&solver, s->stored, s->lda, NULL);
  else if (st == HONE_OK)
    st = either_factor(&solver, s->stored, s->lda, NULL);
  if (st == HONE_OK)
    st = solve_kept(w, &solver);
  else
    for (int64_t c = 0; c < s->nrhs; c++)
      w->columns[c].status = st;
  either_destroy(&solver);
  free(other);
  return st;
}

static int run_once(bench *w) {
  const campaign_system *s = w->s;
  const either_call call = call_of(w, 0, s->nrhs);
  hone_options o = s->options;
  ask(w, 0, &o);
  hone_batch_result in_batch;
  int st = s->place < 0 ? either_call_solve(&call, &o, NULL)
                        : in_batch_solve(&call, &o, s->place, &in_batch);
  for (int64_t c = 0; c < s->nrhs && st < 0; c++)
    w->columns[c].status = st;
  return st;
}

/* ---- The contract ---- */

static int column_broken(const bench *w, int64_t c) {
  const campaign_system *s = w->s;
  const double *x = column_x(w, c);
  const double *before = s->in_place ? given_b(w, c) : NULL;
  int broken = 0;
  for (int64_t i = 0; i < w->rows; i++) {
    double was = before ? before[i] : SENTINEL;
    if (w->columns[c].status < 0 && memcmp(&x[i], &was, sizeof was) != 0)
      broken |= CAMPAIGN_TOUCHED;
    if (w->columns[c].status >= 0 &&
        !either_finite(s->parts, x + i / s->parts * s->parts))
      broken |= CAMPAIGN_NOT_FINITE;
  }
  for (int64_t i = w->rows; i < s->ldx * s->parts && c + 1 < s->nrhs; i++)
    if (memcmp(&x[i], &SENTINEL, sizeof SENTINEL) != 0)
      broken |= CAMPAIGN_TOUCHED;
  return broken;
}

static double size_of_x(const bench *w, int64_t c) {
  const int parts = w->s->parts;
  double size = 0.0;
  for (int64_t i = 0; i < w->s->n; i++)
    size = fmax(size, either_size(parts, column_x(w, c) + i * parts));
  return size;
}

/* Are the bars of column c numbers, where a bound on the whole says so and does
   not overflow, and nothing beside them was written? */
static int bars_broken(const bench *w, int64_t c) {
  const int64_t n = w->s->n;
  const double *bars = w->bars + c * (n + BARS_PADDING);
  const bool finite =
      isfinite(2.0 * w->columns[c].forward_error * size_of_x(w, c));
  int broken = 0;
  for (int64_t i = 0; i < n + BARS_PADDING; i++) {
    const bool bar = w->s->bars && i < n;
    if (!bar && memcmp(&bars[i], &SENTINEL, sizeof SENTINEL) != 0)
      broken |= CAMPAIGN_TOUCHED;
    if (bar && w->columns[c].status >= 0 &&
        !(bars[i] >= 0.0 && (isfinite(bars[i]) || !finite)))
      broken |= CAMPAIGN_NO_BAR;
  }
  return broken;
}

/* Is a complex number among these whose parts are finite and whose modulus is
   beyond double? Such a number is not finite (hone_complex.h). */
static bool has_modulus_beyond_double(const bench *w, int64_t count,
                                      const double *v) {
  for (int64_t i = 0; w->s->parts == 2 && i < count; i++)
    if (!isfinite(hypot(v[2 * i], v[2 * i + 1])))
      return true;
  return false;
}

/* Is the system the reason of this error of column c? */
static bool is_justified(const bench *w, int64_t c, int status) {
  const int64_t n = w->s->n;
  switch (status) {
  case HONE_SINGULAR:
  case HONE_OVERFLOW:
    return true;
  case HONE_NOT_FINITE_A:
    return has_modulus_beyond_double(w, n * n, w->s->m);
  case HONE_NOT_FINITE_B:
    return has_modulus_beyond_double(w, n, given_b(w, c));
  default:
    return false;
  }
}

static int contract_broken(const bench *w, int status) {
  int broken = 0, worst = HONE_OK;
  for (int64_t c = 0; c < w->s->nrhs; c++) {
    const int st = w->columns[c].status;
    broken |= column_broken(w, c) | bars_broken(w, c);
    if (st < 0 && !is_justified(w, c, st))
      broken |= CAMPAIGN_REASON;
    worst = worse(worst, st);
  }
  if ((status == HONE_OK) != (worst == HONE_OK))
    broken |= CAMPAIGN_STATUS;
  return broken;
}

/* ---- Measuring ---- */

/* NaN if the reference does not know x. */
static double error_of(const bench *w, const reference *r, int64_t c,
                       const double *x) {
  if (!(r->error[c] <= 1.0))
    return (double)NAN;
  return (double)either_distance(r, w->s->parts, c, x);
}

static double omega_of(const bench *w, int64_t c, const double *x) {
  const campaign_system *s = w->s;
  return either_omega(s->parts, s->n, s->m, x, given_b(w, c));
}

/* Allows for either measure by which an x may have been accepted. */
static double accepted_omega(const bench *w, int64_t c, const double *x) {
  const campaign_system *s = w->s;
  const double omega = omega_of(w, c, x);
  if (omega <= 4.0 * EPS)
    return omega;
  return fmin(
      omega, either_sparse_omega(s->parts, s->n, s->m, s->m, x, given_b(w, c)));
}

/* Is x in the range of double, with digits to spare at its lower end? */
static bool in_range(const reference *r, int64_t c) {
  int least = 0;
  return r->error[c] <= 1.0 && reference_size(r, c, &least) <= 1022 &&
         least >= -960;
}

/* Compares the bars of column c with the reference. */
static void compare_bars(const bench *w, const reference *r, int64_t c,
                         const double *x, campaign_column *out) {
  const double *bars = w->bars + c * (w->s->n + BARS_PADDING);
  const int parts = w->s->parts;
  if (!w->s->bars || !(r->error[c] <= 1.0))
    return;
  const long double known =
      2.0L * (long double)r->error[c] * (long double)size_of_x(w, c);
  out->barred = 1;
  for (int64_t i = 0; i < w->s->n; i++)
    if (either_finite(parts, x + i * parts) &&
        !(either_miss(r, parts, c, i, x + i * parts) - known <=
          (long double)bars[i] * (1.0L + 1e-9L)))
      out->beyond++;
}

static void measure(const bench *w, const reference *r, campaign_record *out) {
  for (int64_t c = 0; c < w->s->nrhs; c++) {
    const hone_column *stated = &w->columns[c];
    const double *x = column_x(w, c);
    campaign_column *q = &out->column[c];
    *q = (campaign_column){.omega = (double)NAN, .error = (double)NAN};
    q->status = (int16_t)stated->status;
    q->precision = (int16_t)stated->precision;
    q->kind = (int16_t)w->s->kinds[c];
    q->stated_omega = stated->backward_error;
    q->bound = stated->forward_error;
    q->reference_error = (w->s->parts == 2 ? 1.5 : 1.0) * r->error[c];
    q->in_range = in_range(r, c);
    if (q->status < 0)
      continue;
    q->omega =
        q->status == HONE_OK ? accepted_omega(w, c, x) : omega_of(w, c, x);
    q->error = error_of(w, r, c, x);
    compare_bars(w, r, c, x, q);
    if (!(q->stated_omega >= 0.99 * q->omega - 0.05 * EPS))
      out->broken |= CAMPAIGN_FLATTERED;
  }
}

/* dgesv or dsgesv, of complex numbers zgesv or zcgesv. Returns info. */
static int solve_by_lapack(bench *w, bool mixed) {
  const campaign_system *s = w->s;
  const int n = (int)s->n, m = (int)s->nrhs;
  double *a = w->matrix, *x = w->lapack_x;
  int info = 0, iterations = 0;
  memcpy(a, s->m, (size_t)(s->n * w->rows) * sizeof *s->m);
  memcpy(x, s->b, (size_t)(s->nrhs * w->rows) * sizeof *s->b);
  if (s->parts == 1 && mixed)
    dsgesv_(&n, &m, a, &n, w->pivots, s->b, &n, x, &n, w->work, w->swork,
            &iterations, &info);
  else if (s->parts == 1)
    dgesv_(&n, &m, a, &n, w->pivots, x, &n, &info);
  else if (mixed)
    zcgesv_(&n, &m, a, &n, w->pivots, s->b, &n, x, &n, w->work, w->swork,
            w->rwork, &iterations, &info);
  else
    zgesv_(&n, &m, a, &n, w->pivots, x, &n, &info);
  return info;
}

static void measure_lapack(bench *w, const reference *r, bool mixed,
                           campaign_record *out) {
  const int info = solve_by_lapack(w, mixed);
  *(mixed ? &out->dsgesv_info : &out->dgesv_info) = info;
  for (int64_t c = 0; c < w->s->nrhs; c++) {
    const double *x = w->lapack_x + c * w->rows;
    double omega = info == 0 ? omega_of(w, c, x) : (double)NAN;
    double error = info == 0 ? error_of(w, r, c, x) : (double)NAN;
    *(mixed ? &out->column[c].dsgesv_omega : &out->column[c].dgesv_omega) =
        omega;
    *(mixed ? &out->column[c].dsgesv_error : &out->column[c].dgesv_error) =
        error;
  }
}

void campaign_check(const campaign_system *s, reference *r,
                    campaign_record *out) {
  bench w;
  open_bench(&w, s);
  *out = (campaign_record){.family = (int32_t)(s->family - gallery_families),
                           .seed = s->seed,
                           .n = (int32_t)s->n,
                           .nrhs = (int32_t)s->nrhs,
                           .loose = s->loose,
                           .parts = s->parts};
  out->status = s->kept ? run_kept(&w) : run_once(&w);
  out->broken = contract_broken(&w, out->status);
  either_solve(r, s->parts, s->n, s->nrhs, s->m, s->b);
  out->reference = r->state;
  out->condition = r->condition;
  measure(&w, r, out);
  measure_lapack(&w, r, false, out);
  measure_lapack(&w, r, true, out);
  close_bench(&w);
}
