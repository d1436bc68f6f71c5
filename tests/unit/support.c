/* SPDX-License-Identifier: BSD-3-Clause */
/* See support.h. The numbers here are computed by code that shares nothing with
   the library. */
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Quadruple precision, for arithmetic only. Its 113 bits hold the product of
   two doubles exactly, and such a product cannot overflow or underflow. */
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

/* Defined only where the CUDA device is emulated. */
extern const int hone_emulated __attribute__((weak));

bool sup_emulated(void) { return &hone_emulated != NULL; }

/* Random numbers ----------------------------------------------------------- */

uint64_t sup_next(sup_rng *rng) {
  uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double sup_uniform(sup_rng *rng) {
  return (double)(sup_next(rng) >> 11) * 0x1p-53 - 0.5;
}

/* Marsaglia's polar method, which calls log but no sine. */
double sup_normal(sup_rng *rng) {
  for (;;) {
    double u = 2.0 * sup_uniform(rng), v = 2.0 * sup_uniform(rng);
    double s = u * u + v * v;
    if (s > 0.0 && s < 1.0)
      return u * sqrt(-2.0 * log(s) / s);
  }
}

/* Matrices ----------------------------------------------------------------- */

void sup_random(sup_rng *rng, int64_t n, int64_t m, double *a, int64_t lda) {
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = sup_uniform(rng);
}

static double singular_value(sup_rng *rng, int64_t n, int mode, double cond,
                             int64_t i) {
  double t = n > 1 ? (double)i / (double)(n - 1) : 0.0;
  switch (mode) {
  case SUP_ONE_LARGE:
    return i == 0 ? 1.0 : 1.0 / cond;
  case SUP_ONE_SMALL:
    return i < n - 1 || n == 1 ? 1.0 : 1.0 / cond;
  case SUP_ARITHMETIC:
    return 1.0 - t * (1.0 - 1.0 / cond);
  case SUP_LOG_UNIFORM:
    return pow(cond, -(sup_uniform(rng) + 0.5));
  default:
    return pow(cond, -t);
  }
}

/* A = A - 2 v (v^T A) / (v^T v), or the same from the right. w: n entries. */
static void reflect(int64_t n, bool right, const double *v, double *w,
                    double *a, int64_t lda) {
  const int64_t down = right ? lda : 1, along = right ? 1 : lda;
  double vv = 0.0;
  for (int64_t i = 0; i < n; i++)
    vv += v[i] * v[i];
  for (int64_t j = 0; j < n; j++) {
    w[j] = 0.0;
    for (int64_t i = 0; i < n; i++)
      w[j] += v[i] * a[i * down + j * along];
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i * down + j * along] -= 2.0 * v[i] * w[j] / vv;
}

void sup_matrix_cond(sup_rng *rng, int64_t n, int mode, double cond, double *a,
                     int64_t lda) {
  const int reflections = n <= 100 ? (int)n : 8;
  double *v = sup_filled(2 * n, 0.0), *w = v + n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      a[i + j * lda] = i == j ? singular_value(rng, n, mode, cond, i) : 0.0;
  for (int k = 0; k < 2 * reflections; k++) {
    for (int64_t i = 0; i < n; i++)
      v[i] = sup_normal(rng);
    reflect(n, k % 2 == 1, v, w, a, lda);
  }
  sup_free(v);
}

static double entry(const double *a, int64_t lda, bool trans, int64_t i,
                    int64_t j) {
  return trans ? a[j + i * lda] : a[i + j * lda];
}

void sup_matrix_spd(sup_rng *rng, int64_t n, double cond, double *a) {
  double *u = sup_filled(n, 0.0), *w = sup_filled(n, 0.0);
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; i++)
    a[i + i * n] = pow(cond, -(double)i / fmax(1.0, (double)(n - 1)));
  for (int round = 0; round < 8; round++) {
    double uu = 0.0, uw = 0.0;
    for (int64_t i = 0; i < n; i++) {
      u[i] = sup_normal(rng);
      uu += u[i] * u[i];
    }
    for (int64_t j = 0; j < n; j++) {
      w[j] = 0.0;
      for (int64_t i = 0; i < n; i++)
        w[j] += a[i + j * n] * u[i];
      w[j] *= 2.0 / uu;
      uw += u[j] * w[j];
    }
    for (int64_t i = 0; i < n; i++)
      w[i] -= uw / uu * u[i];
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i <= j; i++)
        a[i + j * n] -= u[i] * w[j] + w[i] * u[j];
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < j; i++)
        a[j + i * n] = a[i + j * n];
  }
  sup_free(u);
  sup_free(w);
}

void sup_multiply(int64_t n, const double *a, int64_t lda, bool trans,
                  const double *x, double *b) {
  for (int64_t i = 0; i < n; i++) {
    quad sum = 0;
    for (int64_t j = 0; j < n; j++)
      sum += (quad)entry(a, lda, trans, i, j) * (quad)x[j];
    b[i] = (double)sum;
  }
}

int sup_solver_solve(hone_solver *solver, int32_t trans, int64_t nrhs,
                     const double *b, int64_t ldb, double *x, int64_t ldx,
                     const double *x0, int64_t ldx0, hone_column *columns,
                     hone_report *report) {
  hone_options options = HONE_OPTIONS_INIT;
  options.trans = trans, options.x0 = x0, options.ldx0 = ldx0;
  options.columns = columns;
  return hone_solver_solve(solver, nrhs, b, ldb, x, ldx, &options, report);
}

/* Errors ------------------------------------------------------------------- */

static quad quad_abs(quad v) { return v < 0 ? -v : v; }

double sup_backward_error(int64_t n, const double *a, int64_t lda, bool trans,
                          const double *x, const double *b) {
  double omega = 0.0;
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i]))
      return (double)NAN;
  for (int64_t i = 0; i < n; i++) {
    quad r = (quad)b[i], den = quad_abs(r);
    for (int64_t j = 0; j < n; j++) {
      quad p = (quad)entry(a, lda, trans, i, j) * (quad)x[j];
      r -= p;
      den += quad_abs(p);
    }
    double q = den > 0 ? (double)(quad_abs(r) / den) : 0.0;
    omega = q > omega ? q : omega;
  }
  return omega;
}

double sup_forward_error(int64_t n, const double *x, const double *x_true) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double e = fabs(x[i] - x_true[i]);
    error = e <= error ? error : e; /* also NaN */
    if (!(error <= DBL_MAX))        /* NaN stays */
      return (double)NAN;
    size = fmax(size, fabs(x_true[i]));
  }
  return error > 0.0 ? error / size : 0.0;
}

/* Arrays ------------------------------------------------------------------- */

enum { GUARD = 8 /* doubles on either side */, LINE = 64 /* bytes */ };
static const double guard_value = -0x1.badbadbadp+77;

typedef struct array_head { /* lies below the guard in front of the array */
  void *raw;
  int64_t count;
} array_head;

/* The array begins 'at' bytes after a multiple of LINE. */
static double *filled_at(size_t at, int64_t count, double value) {
  const size_t before = sizeof(array_head) + GUARD * sizeof(double) + LINE - 1;
  const size_t doubles = (size_t)(count + GUARD) * sizeof(double);
  array_head head = {malloc(before + at + doubles), count};
  if (head.raw == NULL)
    abort(); /* a test without memory would prove nothing */
  const size_t start = ((uintptr_t)head.raw + before) / LINE * LINE;
  double *array =
      (double *)((char *)head.raw + (start - (uintptr_t)head.raw) + at);
  memcpy((char *)(array - GUARD) - sizeof head, &head, sizeof head);
  for (int64_t i = 0; i < GUARD; i++)
    array[i - GUARD] = array[count + i] = guard_value;
  for (int64_t i = 0; i < count; i++)
    array[i] = value;
  return array;
}

/* Aligned to 8 but not to 16 bytes, as the caller's arrays may be. */
double *sup_filled(int64_t count, double value) {
  return filled_at(sizeof(double), count, value);
}

double *sup_aligned(int64_t count, double value) {
  return filled_at(0, count, value);
}

double *sup_copy(const double *from, int64_t count) {
  double *to = sup_filled(count, 0.0);
  if (count > 0)
    memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

bool sup_untouched(const double *array, int64_t count, double value) {
  for (int64_t i = 0; i < count; i++)
    if (memcmp(array + i, &value, sizeof value) != 0)
      return false;
  return true;
}

void sup_free(double *array) {
  if (array == NULL)
    return;
  array_head head;
  memcpy(&head, (char *)(array - GUARD) - sizeof head, sizeof head);
  CHECK(sup_untouched(array - GUARD, GUARD, guard_value));
  CHECK(sup_untouched(array + head.count, GUARD, guard_value));
  free(head.raw);
}

/* The scripted engine ------------------------------------------------------ */

static sup_script scripts[SUP_SCRIPTS];
static hone_engine engines[SUP_SCRIPTS];

typedef struct scripted {
  sup_script *script;
  int64_t n;
  double *lu; /* n x n */
  int64_t *pivot;
  bool coarse;
} scripted;

static bool probe(sup_script *script, char *why, size_t why_size) {
  if (script->absent)
    snprintf(why, why_size, "the script says it is absent");
  return !script->absent;
}

static void destroy(void *self, hone_mem *mem) {
  scripted *e = self;
  if (e == NULL)
    return;
  e->script->destroys++;
  e->script->alive--;
  hone_mem_put(mem, e->lu);
  hone_mem_put(mem, e->pivot);
  hone_mem_put(mem, e);
}

static int create(sup_script *script, void **self,
                  const hone_engine_config *config) {
  const size_t n = (size_t)config->n;
  *self = NULL;
  script->creates++;
  if (script->create_status != HONE_OK)
    return script->create_status;
  scripted *e = hone_mem_get(config->mem, sizeof *e);
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (scripted){.script = script,
                  .n = config->n,
                  .coarse = hone_arithmetic_coarse(config->choices.arithmetic)};
  script->arithmetic = config->choices.arithmetic;
  script->alive++;
  script->alive_most = HONE_MAX(script->alive_most, script->alive);
  e->lu = hone_mem_get(config->mem, n * n * sizeof *e->lu);
  e->pivot = hone_mem_get(config->mem, n * sizeof *e->pivot);
  if (e->lu != NULL && e->pivot != NULL) {
    *self = e;
    return HONE_OK;
  }
  destroy(e, config->mem);
  script->destroys--;
  return HONE_NO_MEMORY;
}

/* Rows are exchanged over their whole length, so that P S = L U. A zero pivot
   is replaced: the script decides what is reported of it. */
static void eliminate(scripted *e) {
  const int64_t n = e->n;
  double *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < n; i++)
      if (fabs(f[i + k * n]) > fabs(f[p + k * n]))
        p = i;
    e->pivot[k] = p;
    for (int64_t j = 0; p != k && j < n; j++) {
      double t = f[k + j * n];
      f[k + j * n] = f[p + j * n];
      f[p + j * n] = t;
    }
    if (!(fabs(f[k + k * n]) > 0.0))
      f[k + k * n] = 1e-20;
    for (int64_t i = k + 1; i < n; i++)
      f[i + k * n] /= f[k + k * n];
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = k + 1; i < n; i++)
        f[i + j * n] -= f[i + k * n] * f[k + j * n];
  }
}

static int factor(void *self, const hone_matrix *matrix,
                  const hone_scaling *scaling, hone_factor_info *info) {
  const hone_dense *a = hone_dense_of(matrix);
  scripted *e = self;
  sup_script *script = e->script;
  const double *from = script->instead ? script->instead : a->a;
  const int64_t n = e->n, ld = script->instead ? n : a->lda;
  script->factors++;
  script->solves = 0;
  *info = script->info;
  if (script->factor_status != HONE_OK)
    return script->factor_status;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      e->lu[i + j * n] = from[i + j * ld] * scaling->row[i] * scaling->col[j];
  eliminate(e);
  return HONE_OK;
}

static void solve_plain(const scripted *e, double *v) {
  const int64_t n = e->n;
  const double *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    double t = v[k];
    v[k] = v[e->pivot[k]];
    v[e->pivot[k]] = t;
  }
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = k + 1; i < n; i++)
      v[i] -= f[i + k * n] * v[k];
  for (int64_t k = n - 1; k >= 0; k--) {
    v[k] /= f[k + k * n];
    for (int64_t i = 0; i < k; i++)
      v[i] -= f[i + k * n] * v[k];
  }
}

static void solve_transposed(const scripted *e, double *v) {
  const int64_t n = e->n;
  const double *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < k; i++)
      v[k] -= f[i + k * n] * v[i];
    v[k] /= f[k + k * n];
  }
  for (int64_t k = n - 1; k >= 0; k--)
    for (int64_t i = k + 1; i < n; i++)
      v[k] -= f[i + k * n] * v[i];
  for (int64_t k = n - 1; k >= 0; k--) {
    double t = v[k];
    v[k] = v[e->pivot[k]];
    v[e->pivot[k]] = t;
  }
}

/* Is v the workspace of the ladder's right-hand sides? */
static bool is_refinement(const sup_script *script, const double *v) {
  const hone_ladder *l = script->ladder;
  if (l == NULL)
    return true;
  uintptr_t at = (uintptr_t)v, block = (uintptr_t)l->workspace;
  size_t bytes = (size_t)(5 * l->n * l->workspace_columns) * sizeof *v;
  return l->workspace != NULL && at >= block && at < block + bytes;
}

static int solve(void *self, bool trans, int64_t k, double *v, int64_t ldv) {
  scripted *e = self;
  sup_script *script = e->script;
  const bool counted = is_refinement(script, v);
  const int step = counted ? script->solves++ : -1;
  if (counted)
    script->columns += k;
  if (counted && script->solve_fails_at >= 0 && step >= script->solve_fails_at)
    return script->solve_status;
  for (int64_t c = 0; c < k; c++) {
    double *vc = v + c * ldv;
    for (int64_t i = 0; counted && i < e->n; i++) {
      double rate = script->rates ? script->rates[i] : script->rate;
      if (step < script->steps)
        rate = script->step_rate[step];
      if (e->coarse && script->coarse_rate != 0.0)
        rate = script->coarse_rate;
      vc[i] *= 1.0 + rate;
    }
    if (trans)
      solve_transposed(e, vc);
    else
      solve_plain(e, vc);
    if (counted && step == script->poison_at)
      vc[0] = script->poison;
  }
  return HONE_OK;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return n * n * (int64_t)sizeof(double) + n * (int64_t)sizeof(int64_t) +
         (int64_t)sizeof(scripted);
}

/* Neither probe nor create is given a context by the table, so each slot has
   functions of its own. */
#define SLOT(i)                                                                \
  static bool probe_##i(char *why, size_t why_size) {                          \
    return probe(&scripts[i], why, why_size);                                  \
  }                                                                            \
  static int create_##i(void **self, const hone_engine_config *config) {       \
    return create(&scripts[i], self, config);                                  \
  }
SLOT(0)
SLOT(1)
SLOT(2)

const hone_engine *sup_scripted(int slot, const char *name, int precision,
                                sup_script **script) {
  static bool (*const probes[])(char *, size_t) = {probe_0, probe_1, probe_2};
  static int (*const creates[])(void **, const hone_engine_config *) = {
      create_0, create_1, create_2};
  scripts[slot] = (sup_script){.solve_fails_at = -1,
                               .poison_at = -1,
                               .info = {.growth = 1.0, .zero_pivot = -1}};
  engines[slot] = (hone_engine){.name = name,
                                .place = "script",
                                .precision = precision,
                                .probe = probes[slot],
                                .create = creates[slot],
                                .factor = factor,
                                .solve = solve,
                                .destroy = destroy,
                                .bytes = bytes};
  *script = &scripts[slot];
  return &engines[slot];
}

const hone_matrix *sup_matrix(int64_t n, int64_t lda, const double *a) {
  enum { KEPT = 64 };
  static hone_dense dense[KEPT];
  static hone_matrix matrix[KEPT];
  static int next;
  const int at = next++ % KEPT;
  dense[at] = (hone_dense){n, lda, a, NULL, false};
  matrix[at] = hone_dense_matrix(&dense[at]);
  return &matrix[at];
}

int sup_ladder_create(hone_ladder *ladder, int64_t n,
                      const hone_engine *const *listed, int count,
                      const hone_request *request, hone_mem *mem,
                      hone_pool *pool, hone_watch *watch) {
  hone_step steps[HONE_MAX_RUNGS];
  for (int r = 0; r < count; r++) {
    bool again = r == 0; /* or is the engine listed once more further on? */
    for (int q = r + 1; q < count; q++)
      again = again || listed[q] == listed[r];
    steps[r] = (hone_step){.engine = listed[r], .accurate = !again};
  }
  return hone_ladder_create(ladder, &hone_dense_operator, n, steps, count,
                            request, mem, pool, watch);
}
