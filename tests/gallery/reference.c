/* SPDX-License-Identifier: BSD-3-Clause */
/* The solve of reference.h: scaling, factorization, refinement beside known
   solutions, and error bounds. The loops are in reference_parts.c. */
#include "tests/gallery/reference.h"

#include "base/lapack.h"
#include "tests/gallery/reference_parts.h"
#include "tests/gallery/wide.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 2, SWEEPS = 6, STEPS = 60, MORE = 6, NOTHING = -40000 };
/* Corrections end when two in a row are below GOAL. Ratios of errors below
   FLOOR show rounding and not contraction. */
static const double GOAL = 0x1p-68, FLOOR = 0x1p-84, CONTRACTS = 0.3;

/* One system that is being solved; its columns are the right-hand sides, then
   the known solutions. */
typedef struct work {
  reference *r;
  int64_t n, columns;
  const double *a; /* the caller's matrix */
  int64_t lda;
  double *s;            /* scaled A, n x n */
  reference_factors f;  /* n x n, two words */
  double *xh, *xl;      /* n x columns */
  double *b0, *b1, *b2; /* n x columns: three words */
  double *d0, *d1, *d2; /* residual and correction of one column, n each */
  double *known;        /* n x PROBES */
  double *scratch;      /* 2 n */
  int *row, *col;       /* exponents of the scaling */
  int *size;            /* n x n: exponents of A */
  /* Sizes of the last correction and of the one before it, relative to x,
     scaled; for known solutions the errors. */
  double *delta, *last;
  /* These sizes without scaling, in the larger of 1-norm and infinity norm. */
  long double *step, *before;
  bool *done;
} work;

/* ---- Memory ---- */

/* Memory from which arrays are taken; with NULL bytes are only counted. */
typedef struct room {
  char *memory;
  size_t used;
} room;

static void *carve(room *from, int64_t count, size_t size) {
  void *here = from->memory ? from->memory + from->used : NULL;
  from->used += ((size_t)count * size + 63) / 64 * 64;
  return here;
}

/* Lays out the arrays; returns the bytes that they take. */
static size_t lay_out(work *w, reference *r, int64_t n, int64_t m,
                      char *memory) {
  room at = {memory, 0};
  const size_t d = sizeof(double);
  w->s = carve(&at, n * n, d);
  w->f.high = carve(&at, n * n, d);
  w->f.low = carve(&at, n * n, d);
  w->xh = carve(&at, n * m, d);
  w->xl = carve(&at, n * m, d);
  w->b0 = carve(&at, n * m, d);
  w->b1 = carve(&at, n * m, d);
  w->b2 = carve(&at, n * m, d);
  w->d0 = carve(&at, n, d);
  w->d1 = carve(&at, n, d);
  w->d2 = carve(&at, n, d);
  w->known = carve(&at, n * PROBES, d);
  w->scratch = carve(&at, 2 * n, d);
  w->row = carve(&at, n, sizeof(int));
  w->col = carve(&at, n, sizeof(int));
  w->f.row = carve(&at, n, sizeof(int));
  w->f.col = carve(&at, n, sizeof(int));
  w->size = carve(&at, n * n, sizeof(int));
  w->delta = carve(&at, m, d);
  w->last = carve(&at, m, d);
  w->step = carve(&at, m, sizeof(long double));
  w->before = carve(&at, m, sizeof(long double));
  w->done = carve(&at, m, sizeof(bool));
  r->shift = carve(&at, m, sizeof(int));
  r->error = carve(&at, m, d);
  return at.used;
}

static void open_work(work *w, reference *r, int64_t n, int64_t nrhs) {
  const int64_t m = nrhs + PROBES;
  if (n > r->room_n || m > r->room_columns) {
    r->room_n = n > r->room_n ? n : r->room_n;
    r->room_columns = m > r->room_columns ? m : r->room_columns;
    free(r->memory);
    r->memory = malloc(lay_out(w, r, r->room_n, r->room_columns, NULL) + 64);
    if (r->memory == NULL)
      abort();
  }
  lay_out(w, r, n, m, r->memory);
  w->r = r;
  w->n = w->f.n = r->n = n;
  w->columns = m;
  r->nrhs = nrhs;
  r->high = w->xh;
  r->low = w->xl;
  r->exponent = w->col;
  r->contraction = 0.0;
  r->steps = 0;
  r->condition = (double)INFINITY;
}

void reference_free(reference *r) {
  free(r->memory);
  *r = (reference){0};
}

/* ---- Scaling ---- */

/* v 2^e, by at most two multiplications, where nothing is subnormal. */
static double shift(double v, int e) {
  union {
    uint64_t bits;
    double value;
  } u = {(uint64_t)(e + 1023) << 52};
  return e >= -1022 && e <= 1023 ? v * u.value : ldexp(v, e);
}

/* Halves the exponents of the rows' and the columns' maxima. max: n. */
static void sweep(work *w, int *max, bool last) {
  const int64_t n = w->n;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < n; i++)
      max[i] = NOTHING;
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++) {
        int e = w->size[i + j * n] + w->row[i] + w->col[j];
        int64_t k = pass ? j : i;
        max[k] = e > max[k] ? e : max[k];
      }
    for (int64_t k = 0; k < n; k++)
      (pass ? w->col : w->row)[k] -= last ? max[k] : max[k] / 2;
  }
}

/* S = R A C. Returns false if a row or a column is zero. */
static bool scale(work *w, int *max) {
  const int64_t n = w->n;
  for (int64_t j = 0; j < n; j++) {
    int largest = NOTHING;
    for (int64_t i = 0; i < n; i++) {
      double v = w->a[i + j * w->lda];
      int e = v != 0.0 ? ilogb(v) : NOTHING;
      w->size[i + j * n] = e;
      largest = e > largest ? e : largest;
    }
    if (largest == NOTHING)
      return false;
    w->row[j] = w->col[j] = 0;
  }
  for (int64_t i = 0; i < n; i++) {
    int largest = NOTHING;
    for (int64_t j = 0; j < n && largest == NOTHING; j++)
      largest = w->size[i + j * n];
    if (largest == NOTHING)
      return false;
  }
  for (int k = 0; k < SWEEPS; k++)
    sweep(w, max, k == SWEEPS - 1);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      w->s[i + j * n] = shift(w->a[i + j * w->lda], w->row[i] + w->col[j]);
  return true;
}

/* Takes right-hand side c, scaled to a largest entry of 1. */
static void take_rhs(work *w, int64_t c, const double *b) {
  int top = NOTHING;
  for (int64_t i = 0; i < w->n; i++)
    if (b[i] != 0.0) {
      int e = ilogb(b[i]) + w->row[i];
      top = e > top ? e : top;
    }
  w->r->shift[c] = top == NOTHING ? 0 : top;
  for (int64_t i = 0; i < w->n; i++) {
    w->b0[i + c * w->n] = shift(b[i], w->row[i] - w->r->shift[c]);
    w->b1[i + c * w->n] = w->b2[i + c * w->n] = 0.0;
  }
}

/* Known solutions with random signs and entries in [1/2, 1); b = S z. */
static void make_known(work *w) {
  uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(w->n + 1);
  const int64_t n = w->n;
  memset(w->xl, 0, (size_t)n * sizeof *w->xl);
  for (int64_t c = w->r->nrhs; c < w->columns; c++) {
    double *z = w->known + (c - w->r->nrhs) * n;
    double *b0 = w->b0 + c * n, *b1 = w->b1 + c * n, *b2 = w->b2 + c * n;
    for (int64_t i = 0; i < n; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      z[i] = (0.5 + (double)(state >> 12) * 0x1p-53) *
             (state >> 11 & 1 ? 1.0 : -1.0);
      b0[i] = b1[i] = b2[i] = 0.0;
    }
    reference_residual(n, w->s, n, z, w->xl, b0, b1, b2);
    for (int64_t i = 0; i < n; i++) {
      b0[i] = -b0[i];
      b1[i] = -b1[i];
      b2[i] = -b2[i];
    }
  }
}

/* ---- Refinement ---- */

/* d = inv(M) (b - S x), x = x + d, for column c. */
static void correct(work *w, int64_t c, bool first) {
  const int64_t n = w->n;
  const size_t bytes = (size_t)n * sizeof *w->d0;
  double *xh = w->xh + c * n, *xl = w->xl + c * n;
  memcpy(w->d0, w->b0 + c * n, bytes);
  memcpy(w->d1, w->b1 + c * n, bytes);
  memcpy(w->d2, w->b2 + c * n, bytes);
  if (first) {
    memset(xh, 0, bytes);
    memset(xl, 0, bytes);
  } else {
    reference_residual(n, w->s, n, xh, xl, w->d0, w->d1, w->d2);
  }
  for (int64_t i = 0; i < n; i++) {
    double h, l;
    wide_sum(w->d0[i], w->d1[i], &h, &l);
    wide_sum(h, l + w->d2[i], &w->d0[i], &w->d1[i]);
  }
  reference_apply(&w->f, w->d0, w->d1, w->scratch);
  for (int64_t i = 0; i < n; i++) {
    double s, t;
    wide_sum(xh[i], w->d0[i], &s, &t);
    t += xl[i] + (w->f.wide ? w->d1[i] : 0.0);
    wide_sum_ordered(s, t, &xh[i], &xl[i]);
  }
}

static double quotient(double a, double b) { return a > 0.0 ? a / b : a; }

/* The size of the last correction relative to x. */
static void weigh(work *w, int64_t c) {
  double dx = 0.0, x = 0.0;
  long double sum_d = 0.0L, sum_x = 0.0L, max_d = 0.0L, max_x = 0.0L;
  long double sum_lost = 0.0L, max_lost = 0.0L;
  for (int64_t i = 0; i < w->n; i++) {
    double d = fabs(w->d0[i]), v = fabs(w->xh[i + c * w->n]);
    long double ld = ldexpl((long double)d, w->col[i]);
    long double lx = ldexpl((long double)v, w->col[i]);
    long double lost = ldexpl(1.0L, w->col[i]);
    dx = d <= dx ? dx : d; /* also NaN */
    x = v <= x ? x : v;
    sum_d += ld;
    sum_x += lx;
    sum_lost += lost;
    max_d = ld <= max_d ? max_d : ld;
    max_x = lx <= max_x ? max_x : lx;
    max_lost = lost <= max_lost ? max_lost : lost;
  }
  const bool nothing = !(x > 0.0) && !(dx > 0.0); /* b = 0 */
  /* Any entry of d may be wrong by the part that may have underflowed, for any
     inverse below 2^74, and by rounding errors of the solve, which are as the
     largest entry is. */
  const long double part = 0x1p-1000L + (long double)(w->r->contraction * dx);
  long double one = (sum_d + part * sum_lost) / sum_x;
  long double most = (max_d + part * max_lost) / max_x;
  w->last[c] = w->delta[c];
  w->delta[c] = quotient(dx, x);
  w->before[c] = w->step[c];
  w->step[c] = nothing ? 0.0L : one <= most ? most : one;
}

/* For a known solution its error counts instead of the correction. */
static void weigh_known(work *w, int64_t c) {
  const double *z = w->known + (c - w->r->nrhs) * w->n;
  double error = 0.0;
  for (int64_t i = 0; i < w->n; i++) {
    double e = fabs((w->xh[i + c * w->n] - z[i]) + w->xl[i + c * w->n]);
    error = e <= error ? error : e;
  }
  w->delta[c] = error;
}

/* Makes one more correction of column c, unless the column is done. Returns
   false if it is not finite. */
static bool advance(work *w, int64_t c, bool first) {
  reference *r = w->r;
  const bool known = c >= r->nrhs;
  if (w->done[c])
    return true;
  correct(w, c, first);
  weigh(w, c);
  if (known)
    weigh_known(w, c);
  /* The first correction is x itself; of known solutions the whole error
     counts. */
  if (w->last[c] > FLOOR && (!first || known))
    r->contraction = fmax(r->contraction, w->delta[c] / w->last[c]);
  w->done[c] = known ? w->delta[c] <= GOAL
                     : r->contraction * w->delta[c] <= GOAL &&
                           w->step[c] <= (long double)GOAL &&
                           w->before[c] <= (long double)GOAL;
  return w->delta[c] <= DBL_MAX;
}

/* Returns false if these factors do not serve. If true, the known solutions
   were found; the bounds say how accurate the others are. */
static bool refine(work *w) {
  reference *r = w->r;
  int more = MORE;
  for (int64_t c = 0; c < w->columns; c++) {
    w->delta[c] = 1.0;
    w->step[c] = (long double)INFINITY;
    w->done[c] = false;
  }
  r->contraction = 0.0;
  for (r->steps = 0; r->steps < STEPS && more > 0; r->steps++) {
    bool known = true, all = true;
    for (int64_t c = 0; c < w->columns; c++) {
      if (!advance(w, c, r->steps == 0))
        return false;
      all = all && w->done[c];
      known = known && (c < r->nrhs || w->done[c]);
    }
    if (r->steps > 0 && !(r->contraction <= CONTRACTS))
      return false;
    if (all)
      return true;
    more -= known;
  }
  return true;
}

/* The error is at most a multiple of the last corrections, which contract as
   the known solutions show. */
static void state_errors(work *w, bool trusted) {
  for (int64_t c = 0; c < w->r->nrhs; c++) {
    w->r->error[c] = (double)INFINITY;
    if (!trusted)
      continue;
    long double last = w->step[c];
    if (!w->done[c] && !(w->before[c] <= last))
      last = w->before[c];
    double bound = (double)(8.0L * last) + 0x1p-94;
    w->r->error[c] = bound <= 1.0 ? bound : (double)INFINITY;
  }
}

/* ---- Condition ---- */

static int most(int64_t n, const int *v) {
  int max = v[0];
  for (int64_t i = 1; i < n; i++)
    max = v[i] > max ? v[i] : max;
  return max;
}

/* d0 = C inv(S) R d0 2^-(row + col), or its transpose, with the leading words
   of the factors; row and col are the largest exponents. */
static void apply_inverse(work *w, bool trans, int row, int col) {
  const int *in = trans ? w->col : w->row, *out = trans ? w->row : w->col;
  for (int64_t i = 0; i < w->n; i++)
    w->d0[i] = ldexp(w->d0[i], in[i] - (trans ? col : row));
  reference_apply_double(&w->f, trans, w->d0, w->scratch);
  for (int64_t i = 0; i < w->n; i++)
    w->d0[i] = ldexp(w->d0[i], out[i] - (trans ? row : col));
}

/* The 1-norm of the column of that inverse which a random vector suggests. */
static double probe(work *w, const double *random, int row, int col) {
  const int64_t n = w->n;
  int64_t j = 0;
  double norm = 0.0;
  memcpy(w->d0, random, (size_t)n * sizeof *w->d0);
  apply_inverse(w, false, row, col);
  for (int64_t i = 0; i < n; i++)
    w->d0[i] = w->d0[i] < 0.0 ? -1.0 : 1.0;
  apply_inverse(w, true, row, col);
  for (int64_t i = 1; i < n; i++)
    j = fabs(w->d0[i]) > fabs(w->d0[j]) ? i : j;
  for (int64_t i = 0; i < n; i++)
    w->d0[i] = i == j;
  apply_inverse(w, false, row, col);
  for (int64_t i = 0; i < n; i++)
    norm += fabs(w->d0[i]);
  return norm;
}

/* ||A||_1 ||C inv(S) R||_1 by LAPACK's estimator, which some matrices mislead,
   or by random vectors if these show more. */
static double condition(work *w) {
  const int order = (int)w->n;
  const int row = most(w->n, w->row), col = most(w->n, w->col);
  int kase = 0, save[3] = {0};
  double estimate = 0.0;
  long double norm = 0.0L;
  for (;;) {
    dlacn2_(&order, w->d1, w->d0, w->size, &estimate, &kase, save);
    if (kase == 0)
      break;
    apply_inverse(w, kase == 2, row, col);
  }
  for (int64_t c = 0; c < w->columns - w->r->nrhs; c++)
    estimate = fmax(estimate, probe(w, w->known + c * w->n, row, col));
  for (int64_t j = 0; j < w->n; j++) {
    long double sum = 0.0L;
    for (int64_t i = 0; i < w->n; i++)
      sum += fabsl((long double)w->a[i + j * w->lda]);
    norm = sum <= norm ? norm : sum;
  }
  long double kappa = ldexpl((long double)estimate, row + col) * norm;
  return kappa <= (long double)DBL_MAX ? (double)kappa : (double)INFINITY;
}

/* ---- The call ---- */

static bool try_factors(work *w, bool wide) {
  const size_t bytes = (size_t)(w->n * w->n) * sizeof *w->s;
  w->f.wide = wide;
  memcpy(w->f.high, w->s, bytes);
  if (wide)
    memset(w->f.low, 0, bytes);
  if (!reference_factor(&w->f)) {
    w->r->state = REFERENCE_SINGULAR;
    return false;
  }
  w->r->state = REFERENCE_UNTRUSTED;
  if (!refine(w))
    return false;
  w->r->state = wide ? REFERENCE_DOUBLE_DOUBLE : REFERENCE_DOUBLE;
  return true;
}

void reference_solve(reference *r, int64_t n, int64_t nrhs, const double *a,
                     int64_t lda, const double *b, int64_t ldb) {
  work w;
  open_work(&w, r, n, nrhs);
  w.a = a;
  w.lda = lda;
  bool trusted = false;
  r->state = REFERENCE_SINGULAR;
  if (scale(&w, w.f.row)) {
    for (int64_t c = 0; c < nrhs; c++)
      take_rhs(&w, c, b + c * ldb);
    make_known(&w);
    trusted = try_factors(&w, false) || try_factors(&w, true);
    if (r->state != REFERENCE_SINGULAR)
      r->condition = condition(&w);
  }
  state_errors(&w, trusted);
}

/* ---- Comparing ---- */

/* x_i 2^-(col + shift) is the scaled x; computed in extended range. */
long double reference_miss(const reference *r, int64_t c, int64_t i, double x) {
  const int e = r->exponent[i] + r->shift[c];
  const int64_t at = i + c * r->n;
  const long double d = ldexpl((long double)x, -e) - (long double)r->high[at];
  return ldexpl(fabsl(d - (long double)r->low[at]), e);
}

long double reference_distance(const reference *r, int64_t c, const double *x,
                               bool infinity_norm) {
  long double apart = 0.0L, size = 0.0L;
  for (int64_t i = 0; i < r->n; i++) {
    if (!isfinite(x[i]))
      return (long double)INFINITY;
    long double d = reference_miss(r, c, i, x[i]);
    long double v = fabsl((long double)x[i]);
    apart = infinity_norm ? fmaxl(apart, d) : apart + d;
    size = infinity_norm ? fmaxl(size, v) : size + v;
  }
  if (apart > 0.0L)
    return size > 0.0L ? apart / size : (long double)INFINITY;
  return 0.0L;
}

int reference_size(const reference *r, int64_t c, int *least) {
  int top = NOTHING, low = -NOTHING;
  for (int64_t i = 0; i < r->n; i++) {
    double h = r->high[i + c * r->n];
    if (!(fabs(h) > 0.0))
      continue;
    int e = ilogb(h) + r->exponent[i] + r->shift[c];
    top = e > top ? e : top;
    low = e < low ? e : low;
  }
  *least = low == -NOTHING ? 0 : low;
  return top == NOTHING ? 0 : top;
}
