/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes hone_solve, or hone_z_solve, with problems made from the bytes
 * (problem.h). It checks the contract of hone.h, not only that nothing crashes:
 * the sign of the status, which elements are written, the backward error, which
 * is computed again from the caller's matrix with 113 bits, the indices in the
 * report, the memory hooks, and that a second solve gives the same bits. Read
 * LLVMFuzzerTestOneInput, at the end, first.
 */
#include "problem.h"

#include "tests/gallery/either.h"
#include "tests/gallery/either_call.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 wide; /* products of doubles are exact in it, sums almost */
#else
typedef long double wide;
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const double eps = DBL_EPSILON / 2; /* 2^-53 */

/* ---- Checks ---- */

static int unchanged(const array *r) {
  return memcmp(r->now, r->before, r->count * sizeof *r->now) == 0;
}

/* Points to element (i, j) of A. */
static const double *a_at(const problem *p, int64_t i, int64_t j) {
  const int by_rows = p->options.layout == HONE_ROW_MAJOR;
  return p->a.before + PARTS * (by_rows ? i * p->lda + j : i + j * p->lda);
}

/* Copies the matrix of the system, which may be A^T or A^H, to m. */
static void take_matrix(const problem *p, double *m) {
  const int trans = p->options.trans != HONE_NO_TRANS;
  either_copy(PARTS, p->n, p->a.before, p->lda,
              trans != (p->options.layout == HONE_ROW_MAJOR),
              p->options.trans == HONE_CONJ_TRANS, m);
}

static wide magnitude(wide re, wide im) {
  if (PARTS == 2)
    return (wide)hypotl((long double)re, (long double)im);
  return re < 0 ? -re : re;
}

static wide size_of(const double *v) {
  return magnitude((wide)v[0], (wide)v[PARTS - 1]);
}

/*
 * Returns max_i |b - A x|_i / (|A| |x| + |b|)_i of n rows of m. A product may
 * lose up to 2^-1074, the smallest denormal, by underflow; that much is allowed
 * for each. A row whose denominator is 0 counts as 0.
 */
static double backward_error(int64_t n, const double *m, const double *x,
                             const double *b) {
  wide allowed = (wide)(2 * PARTS * n + 2) * (wide)DBL_TRUE_MIN, largest = 0;
  for (int64_t i = 0; i < n; i++) {
    const double *bi = b + i * PARTS;
    wide re = (wide)bi[0], im = (wide)bi[PARTS - 1], d = size_of(bi);
    for (int64_t j = 0; j < n; j++) {
      const double *a = m + (i + j * n) * PARTS, *v = x + j * PARTS;
      re -= (wide)a[0] * (wide)v[0];
      if (PARTS == 2) {
        re += (wide)a[1] * (wide)v[PARTS - 1];
        im -= (wide)a[0] * (wide)v[PARTS - 1] + (wide)a[1] * (wide)v[0];
      }
      d += size_of(a) * size_of(v);
    }
    const wide r = magnitude(re, im);
    if (d > 0 && (r - allowed) / d > largest)
      largest = (r - allowed) / d;
  }
  return (double)largest;
}

/* Is the number finite, and its modulus in the range of double? The library
   computes a modulus to three units in the last place. */
static int in_range(const double *v) {
  const long double most = (long double)DBL_MAX * (1.0L + 0x1p-50L);
  return isfinite(v[0]) && isfinite(v[PARTS - 1]) &&
         (long double)size_of(v) <= most;
}

/* Checks the x in column j, whose own status is st. */
static void check_column(const problem *p, int64_t j, int st) {
  const double *x = p->pass_x + j * p->ldx * PARTS;
  const double *b = p->b.before + j * p->ldb * PARTS;
  const hone_options *o = &p->options;
  double m[PARTS * MOST_N * MOST_N];
  for (int64_t i = 0; i < p->n; i++)
    MUST(in_range(x + i * PARTS));
  if (st != HONE_OK || o->criterion != HONE_CRITERION_COMPONENTWISE)
    return;
  /* Tolerances far above rounding may be judged by a plain residual. */
  int loose = o->tolerance > 1e-10;
  double slack = loose ? (double)(p->n + 2) * eps : .05 * eps;
  double bound = o->tolerance > 0 ? 1.01 * o->tolerance : 4 * eps;
  take_matrix(p, m);
  double error = backward_error(p->n, m, x, b);
  /* x may be accepted by the measure of sparse rows, too. The error is then
     reported by it, also where the one above is small only because it leaves
     out rows that underflow. */
  const double measure = either_sparse_omega(PARTS, p->n, m, m, x, b);
  const double least = fmin(error, measure);
  if (!(least <= bound + slack))
    (void)fprintf(stderr, "n %d, column %d: backward error %.3g eps\n",
                  (int)p->n, (int)j, least / eps);
  MUST(least <= bound + slack);
  /* The reported error may not be smaller than the true one. */
  const int sparse = !p->use_report || p->report.sparse_columns > 0;
  if (p->use_columns)
    MUST(p->columns[j].backward_error >=
         .98 * (sparse ? least : error) - slack);
}

/* Checks that only the n x nrhs elements of x have changed, and none after an
   error. */
static void check_writes(const problem *p, int st) {
  MUST(unchanged(&p->a));
  MUST(p->alias == X_IS_B || unchanged(&p->b));
  MUST(p->alias == X_IS_X0 || unchanged(&p->x0));
  MUST(p->alias == X_OWN || unchanged(&p->x));
  if (st < 0)
    MUST(unchanged(&p->b) && unchanged(&p->x) && unchanged(&p->x0));
  const array *home = p->alias == X_IS_B    ? &p->b
                      : p->alias == X_IS_X0 ? &p->x0
                                            : &p->x;
  for (size_t k = 0; k < home->count && st >= 0; k++)
    if ((int64_t)k / PARTS % p->ldx >= p->n)
      MUST(!memcmp(&home->now[k], &home->before[k], sizeof(double)));
}

/* Checks that nothing but bounds was written, and those of every column. */
static void check_bars(const problem *p, int st) {
  const int64_t ld = p->options.ld_error_bounds;
  const int refused = p->expected || p->n == 0 || p->nrhs == 0;
  MUST(!refused || unchanged(&p->bars));
  for (size_t k = 0; k < p->bars.count && !refused; k++) {
    const int64_t i = (int64_t)k % ld, j = (int64_t)k / ld;
    if (i >= p->n)
      MUST(!memcmp(&p->bars.now[k], &p->bars.before[k], sizeof(double)));
    else if (st >= 0)
      MUST(p->bars.now[k] >= 0);
    if (i < p->n && st >= 0 && p->use_columns)
      MUST(isfinite(p->bars.now[k]) || p->columns[j].status != HONE_OK);
  }
}

static void check_solution(const problem *p, int st) {
  if (st < 0 || p->n == 0)
    return;
  MUST(p->nrhs == 0 || (p->a_finite && p->b_finite));
  for (int64_t j = 0; j < p->nrhs; j++) {
    int own = p->use_columns ? p->columns[j].status : st;
    MUST(st != HONE_OK || own == HONE_OK);
    if (p->use_columns ? own >= 0 : st == HONE_OK)
      check_column(p, j, own);
  }
}

/* Returns 1 if row k (or column k) of A is zero, and for k = -1, which names
   none. */
static int line_is_zero(const problem *p, int64_t k, int is_row) {
  for (int64_t l = 0; l < p->n && k >= 0; l++)
    if (!(size_of(is_row ? a_at(p, k, l) : a_at(p, l, k)) <= 0))
      return 0;
  return 1;
}

static int has_zero_line(const problem *p) {
  return p->a_kind == ZERO_ROW || p->a_kind == ZERO_COLUMN || p->a_kind == ZERO;
}

/* Checks that the row and column reported are those with the fault. */
static void check_place(const problem *p, int st) {
  int64_t i = p->report.bad_row, j = p->report.bad_col;
  MUST(i >= -1 && i < p->n && j >= -1);
  if (st == HONE_NOT_FINITE_A) {
    MUST(i >= 0 && j >= 0 && j < p->n);
    MUST(!either_finite(PARTS, a_at(p, i, j)));
  } else if (st == HONE_NOT_FINITE_B) {
    MUST(i >= 0 && j >= 0 && j < p->nrhs);
    MUST(!either_finite(PARTS, p->b.before + (i + j * p->ldb) * PARTS) ||
         (p->options.x0 &&
          !either_finite(PARTS, p->x0.before + (i + j * p->ldx0) * PARTS)));
  } else if (st == HONE_SINGULAR) {
    MUST(j < p->n &&
         (i >= 0 || j >= 0)); /* of a zero pivot or of a zero row or column */
    if (has_zero_line(p))
      MUST(line_is_zero(p, i, 1) && line_is_zero(p, j, 0));
  }
}

/* Checks that the status is one that this kind of problem may have. */
static void check_status(const problem *p, int st) {
  const hone_options *o = &p->options;
  MUST(strcmp(hone_status_text(st), hone_status_text(-12345)) != 0);
  if (p->expected) {
    MUST(st == p->expected || (p->or_expected && st == p->or_expected));
    return;
  }
  MUST(st > HONE_NULL_POINTER || st <= HONE_NOT_FINITE_A);
  MUST(st != HONE_INTERNAL);
  MUST(!p->undisturbed || p->n > 0 || st == HONE_OK);
  if (!p->undisturbed || p->n == 0 || p->nrhs == 0)
    return;
  MUST(st != HONE_INTERRUPTED && st != HONE_CANCELLED && st != HONE_NO_MEMORY);
  if (!p->a_finite)
    MUST(st == HONE_NOT_FINITE_A || (!p->b_finite && st == HONE_NOT_FINITE_B));
  else if (!p->b_finite)
    MUST(st == HONE_NOT_FINITE_B || st == HONE_SINGULAR);
  else if (has_zero_line(p))
    MUST(st == HONE_SINGULAR);
  else if (p->a_kind == DOMINANT && o->max_iterations == 0 &&
           (o->tolerance <= 0 || o->tolerance > 1e-10) &&
           (p->b_kind == RANDOM || p->b_kind == ZERO) &&
           (!o->x0 || p->x0_kind == RANDOM))
    MUST(st == HONE_OK);
}

static void check_report(const problem *p, int st) {
  static char text[1 << 14];
  const hone_report *r = &p->report;
  MUST(r->status == st);
  MUST(memchr(r->device, 0, sizeof r->device));
  MUST(memchr(r->path, 0, sizeof r->path));
  MUST(memchr(r->reason, 0, sizeof r->reason));
  if (!p->expected) {
    MUST(r->n == p->n && r->nrhs == p->nrhs);
    MUST(st != HONE_OK || p->n == 0 || r->accepted == p->nrhs);
    check_place(p, st);
  }
  size_t length = hone_report_json(r, NULL, 0);
  MUST(length > 2 && length < sizeof text);
  MUST(hone_report_json(r, text, sizeof text) == length);
  MUST(strlen(text) == length && text[0] == '{' && text[length - 1] == '}');
  text[8] = 'x';
  MUST(hone_report_json(r, text, 8) == length);
  MUST(strlen(text) == 7 && text[8] == 'x');
  length = hone_report_text(r, NULL, 0);
  MUST(hone_report_text(r, text, sizeof text) == length);
}

/* Checks that all memory of the hooks was freed, and that the call never held
   more than hone_memory_needed says. */
static void check_memory(const problem *p, int st) {
  int64_t single_bytes = -1, double_bytes = -1;
  const hone_options *o = p->use_options ? &p->options : NULL;
  MUST(memory.live == 0 && memory.live_bytes == 0);
  if (p->expected || p->options.device == HONE_DEVICE_CUDA)
    return;
  MUST(either_memory_needed(PARTS, p->n, p->nrhs, o, &single_bytes,
                            &double_bytes) == 0);
  MUST(single_bytes >= 0 && double_bytes >= single_bytes);
  MUST(memory.peak_bytes <= double_bytes);
  if (st >= 0 && p->use_report && p->options.memory_limit_bytes > 0)
    MUST(p->report.host_bytes <= p->options.memory_limit_bytes);
}

/* ---- Running ---- */

static void restore(array *r) {
  memcpy(r->now, r->before, r->count * sizeof *r->now);
}

static int solve_once(problem *p) {
  unsigned fail_at = memory.fail_at;
  memory = (hooks){.fail_at = fail_at};
  watcher.events = 0;
  memset(&p->report, 0xaa, sizeof p->report);
  p->report.struct_size = sizeof p->report;
  memset(p->columns, 0xaa, sizeof p->columns);
  const either_call call = {.parts = PARTS,
                            .n = p->n,
                            .nrhs = p->nrhs,
                            .a = p->pass_a,
                            .lda = p->lda,
                            .b = p->pass_b,
                            .ldb = p->ldb,
                            .x = p->pass_x,
                            .ldx = p->ldx};
  return either_call_solve(&call, p->use_options ? &p->options : NULL,
                           p->use_report ? &p->report : NULL);
}

/* Checks that a second solve, without columns, gives the same bits. */
static void check_again(problem *p, int st) {
  if (p->options.deadline_s > 0 && p->options.deadline_s < 1)
    return; /* the result depends on the clock */
  array *all[] = {&p->b, &p->x, &p->x0, &p->bars};
  double *first[COUNT_OF(all)];
  for (size_t k = 0; k < COUNT_OF(all); k++) {
    first[k] = malloc((all[k]->count + 1) * sizeof **first);
    MUST(first[k] != NULL);
    memcpy(first[k], all[k]->now, all[k]->count * sizeof **first);
    restore(all[k]);
  }
  p->options.columns = NULL;
  MUST(solve_once(p) == st);
  for (size_t k = 0; k < COUNT_OF(all); k++) {
    MUST(!memcmp(first[k], all[k]->now, all[k]->count * sizeof **first));
    free(first[k]);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  problem p;
  problem_choose(&p, data, size);
  int st = solve_once(&p);
  check_status(&p, st);
  check_writes(&p, st);
  check_bars(&p, st);
  check_solution(&p, st);
  if (p.use_report)
    check_report(&p, st);
  check_memory(&p, st);
  check_again(&p, st);
  problem_free(&p);
  return 0;
}
