/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes factors without a ladder, and solves with them; see single_factors.h.
   The first engine of the policy that factors any matrix by LU in single
   precision makes them, or, where that one fails, the next; of a matrix that is
   said to be definite, the first one of a device that does so by Cholesky. */
#include "api/single_factors.h"

#include "api/engines.h"
#include "api/guest.h"
#include "api/options.h"
#include "api/solver.h"
#include "base/cpus.h"
#include "base/dense.h"
#include "base/thread.h"
#include "base/vectors.h"
#include "refine/scale.h"
#include "refine/verdict.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hone_single_factors {
  _Atomic int64_t use; /* FREE, or the number of the thread that solves */
  int64_t n;
  hone_dense a; /* by its address, which is not read after make, an engine knows
                   the matrix */
  hone_mem mem;
  hone_watch watch;
  hone_pool *pool;
  int threads;
  pid_t process; /* in which they were made */
  hone_single_account account;
  const hone_engine *engine; /* NULL: none has made them */
  void *self;
};
enum { FREE = 0 };

enum {
  RANGE = 60,         /* entries within 2^+-RANGE are factored as they are */
  THREADS_FROM = 1000 /* orders from which engines of the host solve by several
                         threads */
};

/* ---- Scaling by one power of two ----------------------------------------- */

typedef struct one_power {
  hone_scaling scaling;
  double *memory; /* n of each kind: the rows have the power, the columns 1 */
} one_power;

static bool open_power(one_power *p, hone_mem *mem, int64_t n) {
  p->memory =
      hone_mem_get(mem, (size_t)n * (2 * sizeof(double) + 2 * sizeof(int)));
  if (p->memory == NULL)
    return false;
  int *exponents = (int *)(p->memory + 2 * n);
  p->scaling = (hone_scaling){.row = p->memory,
                              .col = p->memory + n,
                              .row_exp = exponents,
                              .col_exp = exponents + n};
  return true;
}

static void set_power(one_power *p, int64_t n, int exponent) {
  const hone_scaling *s = &p->scaling;
  for (int64_t i = 0; i < n; i++) {
    s->row[i] = ldexp(1.0, exponent);
    s->col[i] = 1.0;
    s->row_exp[i] = exponent;
    s->col_exp[i] = 0;
  }
  p->scaling.used = exponent != 0;
}

/* Returns the larger one, and NaN if one is NaN. */
static double larger(double p, double q) { return isnan(p) || p >= q ? p : q; }

/* Returns the largest |re| or |im| of the first column and of the diagonal. */
static double largest_of_some(const hone_dense *a) {
  double most = 0.0;
  for (int64_t i = 0; i < a->n; i++)
    most = larger(larger(most, hone_abs1(a->a[i])),
                  hone_abs1(a->a[i + i * a->lda]));
  return most;
}

static double largest_of_all(const hone_dense *a) {
  double most = 0.0;
  for (int64_t j = 0; j < a->n; j++)
    for (int64_t i = 0; i < a->n; i++)
      most = larger(most, hone_abs1(a->a[i + j * a->lda]));
  return most;
}

static bool in_range(double most) {
  return most >= ldexp(1.0, -RANGE) && most <= ldexp(1.0, RANGE);
}

/* ---- Making factors ------------------------------------------------------ */

static bool is_on_device(const hone_engine *e) {
  return e->device_bytes != NULL;
}

/* An engine that puts the factors into host memory, where a device has too
   little, is left out: the host's own engine follows. */
static bool serves(const hone_step *step, bool definite) {
  const hone_engine *e = step->engine;
  return e->precision == 32 && !e->spare && !step->second_opinion &&
         (definite ? e->symmetric && is_on_device(e) : e->applies == NULL);
}

static bool is_definite(const hone_options *o) {
  return o->structure == HONE_STRUCTURE_SPD;
}

/* Gives up what an engine has made, and the engine. */
static void close_engine(hone_single_factors *f) {
  if (f->engine != NULL)
    f->engine->destroy(f->self, &f->mem);
  f->engine = NULL;
}

/* Factors 2^exponent A. HONE_SINGULAR: the factors are of no use. */
static int factor_scaled(hone_single_factors *f, one_power *power,
                         int exponent) {
  hone_factor_info info;
  const hone_matrix matrix = hone_dense_matrix(&f->a);
  set_power(power, f->n, exponent);
  f->account.exponent = exponent;
  const int st = f->engine->factor(f->self, &matrix, &power->scaling, &info);
  if (st != HONE_OK)
    return st;
  return info.zero_pivot < 0 && !info.hopeless && isfinite(info.growth)
             ? HONE_OK
             : HONE_SINGULAR;
}

/* Most matrices are factored as they are if some of their entries say that this
   will do. Where that fails, all entries are looked at. */
static int factor(hone_single_factors *f, one_power *power) {
  const hone_dense *a = &f->a;
  const bool likely = in_range(largest_of_some(a));
  int st = likely ? factor_scaled(f, power, 0) : HONE_SINGULAR;
  if (st != HONE_SINGULAR)
    return st;
  const double most = largest_of_all(a);
  if (!isfinite(most))
    return HONE_NOT_FINITE_A;
  const bool fits = in_range(most);
  if (most <= 0.0 || (likely && fits))
    return HONE_SINGULAR;
  /* Where double does not have that power of two, the nearest one that it has
     leaves the largest entry within the range of single precision. */
  const int exponent =
      fits ? 0 : HONE_MAX(-HONE_MAX_EXP, HONE_MIN(-ilogb(most), HONE_MAX_EXP));
  return factor_scaled(f, power, exponent);
}

/* Tries one engine. */
static int factor_with(hone_single_factors *f, const hone_engine *engine,
                       const hone_options *o, one_power *power) {
  char why[128] = "";
  const hone_engine_config config = {.n = f->n,
                                     .mem = &f->mem,
                                     .pool = f->pool,
                                     .watch = &f->watch,
                                     .keep = true,
                                     .choices = hone_choices_of(o),
                                     .why = why,
                                     .why_size = sizeof why};
  int st = engine->create(&f->self, &config);
  if (st != HONE_OK)
    return st;
  f->engine = engine;
  st = factor(f, power);
  if (st != HONE_OK)
    close_engine(f);
  return st;
}

/* Is it a status that another engine need not have? */
static bool another_may_do(int st) {
  return st != HONE_OK && st != HONE_SINGULAR && st != HONE_NOT_FINITE_A;
}

static int make_factors(hone_single_factors *f, const hone_options *o) {
  hone_step steps[HONE_MAX_RUNGS];
  char why[128];
  one_power power;
  const int count = hone_choose_engines(o, f->n, false, steps, why, sizeof why);
  int st = HONE_NO_DEVICE;
  if (!open_power(&power, &f->mem, f->n))
    return HONE_NO_MEMORY;
  for (int i = 0; i < count && another_may_do(st); i++)
    if (serves(&steps[i], is_definite(o)))
      st = factor_with(f, steps[i].engine, o, &power);
  hone_mem_put(&f->mem, power.memory);
  return st;
}

/* Does so where A may be given by one triangle. */
static int make_of_whole(hone_single_factors *f, const hone_options *o) {
  hone_entry *whole = NULL;
  int st =
      hone_whole_take(o, f->pool, &f->mem, f->n, &f->a.a, &f->a.lda, &whole);
  if (st == HONE_OK)
    st = make_factors(f, o);
  hone_mem_put(&f->mem, whole);
  return st;
}

/* This library is never unloaded: its function runs when the process ends. */
static atomic_bool ending;
static void note_the_end(void) { ending = true; }
__attribute__((constructor)) static void watch_the_end(void) {
  (void)atexit(note_the_end);
}

/* In the child of a fork nothing of a device exists, and at the end of the
   process nothing may be asked of its driver, which takes back what is there.
 */
static bool is_lost(const hone_single_factors *f) {
  return f->account.device && (ending || f->process != getpid());
}

static void destroy_factors(hone_single_factors *f) {
  if (!is_lost(f))
    close_engine(f);
  hone_pool_destroy(&f->pool, &f->mem);
  hone_mem mem = f->mem;
  hone_mem_put(&mem, f);
}

/* The pool has its threads during a call only: a program may hold factors of
   many matrices. */
static void open_pool(hone_single_factors *f, const hone_options *o) {
  const int most = o->threads > 0 ? o->threads : hone_threads_wanted();
  const int cpus = hone_cpus();
  f->threads = f->n < HONE_THREADS_FROM ? 1 : HONE_MIN(most, cpus);
  hone_pool_create(&f->pool, &f->mem, f->threads);
}

static void take_account(hone_single_factors *f) {
  hone_account account = {.device_bytes = 0};
  if (f->engine->account != NULL)
    f->engine->account(f->self, &account);
  f->account.device = is_on_device(f->engine);
  f->account.bytes = f->mem.held;
  f->account.device_bytes = account.device_bytes;
  f->account.device_most = account.device_most;
}

/* Checks the caller's options and makes them those of factors alone. */
static int take_options(const hone_options *options, hone_options *o,
                        hone_tuning *tuning) {
  const int st = hone_options_take(options, o, tuning, NULL);
  if (st == HONE_OK && !is_definite(o))
    o->structure = HONE_STRUCTURE_GENERAL;
  o->factor_precision = HONE_FACTOR_SINGLE;
  return st;
}

static bool expects_device(int64_t n, const hone_options *options) {
  hone_options o;
  hone_tuning tuning;
  hone_guest guest;
  hone_step steps[HONE_MAX_RUNGS];
  char why[128];
  if (take_options(options, &o, &tuning) != HONE_OK)
    return false;
  hone_guest_enter(&guest);
  const int count = hone_choose_engines(&o, n, false, steps, why, sizeof why);
  hone_guest_leave(&guest);
  int i = 0;
  while (i < count && !serves(&steps[i], is_definite(&o)))
    i++;
  return i < count && is_on_device(steps[i].engine);
}

static int make(int64_t n, const hone_entry *a, int64_t lda,
                const hone_options *options, hone_single_factors **factors,
                hone_single_account *account) {
  hone_options o;
  hone_tuning tuning;
  hone_guest guest;
  *factors = NULL;
  int st = take_options(options, &o, &tuning);
  if (st != HONE_OK)
    return st;
  hone_guest_enter(&guest);
  hone_mem mem = hone_memory_of(&o);
  mem.keeps = true;
  hone_single_factors *f = hone_mem_get(&mem, sizeof *f);
  st = HONE_NO_MEMORY;
  if (f != NULL) {
    *f = (hone_single_factors){.n = n,
                               .a = {.n = n, .lda = lda, .a = a},
                               .mem = mem,
                               .process = getpid()};
    open_pool(f, &o);
    st = make_of_whole(f, &o);
    hone_pool_adapt(f->pool, 1);
  }
  if (st == HONE_OK) {
    take_account(f);
    *account = f->account;
    *factors = f;
  } else if (f != NULL) {
    destroy_factors(f);
  }
  hone_guest_leave(&guest);
  return st;
}

/* ---- Solving ------------------------------------------------------------- */

/* Waits for the factors. A thread of the parent of this process never gives
   them back; what it was writing is work space. */
static void enter(hone_single_factors *f) {
  const int64_t own = hone_thread_number();
  int64_t was = FREE;
  int looks = 0;
  while (!atomic_compare_exchange_strong(&f->use, &was, own)) {
    if (was != FREE && hone_thread_is_gone(was) &&
        atomic_compare_exchange_strong(&f->use, &was, own))
      break;
    was = FREE;
    hone_wait(&looks);
  }
}

static void leave(hone_single_factors *f) { atomic_store(&f->use, FREE); }

static void conjugate(int64_t n, hone_entry *v) {
  for (int64_t i = 0; i < n; i++)
    v[i] = hone_conj(v[i]);
}

/* Solves for so many columns as an engine takes. */
static int solve_block(hone_single_factors *f, char trans, int64_t k,
                       hone_entry *v, int64_t ldv) {
  int shift[HONE_SOLVE_COLUMNS];
  for (int64_t c = 0; c < k; c++) {
    if (trans == 'C')
      conjugate(f->n, v + c * ldv);
    shift[c] = hone_scale_in(f->n, NULL, v + c * ldv, v + c * ldv);
  }
  const int st = f->engine->solve(f->self, trans != 'N', k, v, ldv);
  for (int64_t c = 0; c < k && st == HONE_OK; c++) {
    hone_scale_out(f->n, NULL, shift[c] - f->account.exponent, v + c * ldv);
    if (trans == 'C')
      conjugate(f->n, v + c * ldv);
  }
  return st;
}

static int solve(hone_single_factors *f, char trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  hone_guest guest;
  if (is_lost(f))
    return HONE_NO_DEVICE;
  hone_guest_enter(&guest);
  enter(f);
  const bool threads = !f->account.device && f->n >= THREADS_FROM;
  int st = HONE_OK;
  if (threads)
    hone_pool_adapt(f->pool, f->threads);
  for (int64_t at = 0; at < k && st == HONE_OK; at += HONE_SOLVE_COLUMNS)
    st = solve_block(f, trans, HONE_MIN(k - at, (int64_t)HONE_SOLVE_COLUMNS),
                     v + at * ldv, ldv);
  if (threads)
    hone_pool_adapt(f->pool, 1);
  leave(f);
  hone_guest_leave(&guest);
  return st;
}

/* ---- Residuals by a device ----------------------------------------------- */

/* Has a device of this process a copy of A? */
static bool keeps_matrix(const hone_single_factors *f) {
  return f->account.device && !is_lost(f) && f->engine->resident != NULL &&
         f->engine->resident(f->self);
}

static int residual(hone_single_factors *f, const hone_entry *x,
                    const hone_entry *b, hone_entry *r, double *den) {
  hone_guest guest;
  const hone_matrix a = hone_dense_matrix(&f->a);
  if (!keeps_matrix(f))
    return HONE_NO_DEVICE;
  hone_guest_enter(&guest);
  enter(f);
  const int st = f->engine->residual(f->self, &a, false, x, b, r, den);
  leave(f);
  hone_guest_leave(&guest);
  return st;
}

static bool sums_vouch(hone_single_factors *f, const hone_refined *c) {
  const hone_matrix a = hone_dense_matrix(&f->a);
  const hone_projection *p = f->engine->projection != NULL
                                 ? f->engine->projection(f->self, &a, false)
                                 : NULL;
  if (p == NULL)
    return false;
  const hone_verdict_sums sums = hone_verdict_sum(f->n, p, c);
  const double least = hone_verdict_least(&sums);
  bool good = hone_verdict_holds(&sums);
  for (int64_t i = 0; i < f->n; i++)
    good = good && c->den[i] >= least;
  return good;
}

static bool vouched(hone_single_factors *f, const hone_entry *x,
                    const hone_entry *b, const hone_entry *r,
                    const double *den) {
  hone_guest guest;
  const hone_refined column = {
      .x = (hone_entry *)x, .b = b, .r = (hone_entry *)r, .den = (double *)den};
  if (!keeps_matrix(f))
    return false;
  hone_guest_enter(&guest);
  enter(f);
  const bool good = sums_vouch(f, &column);
  leave(f);
  hone_guest_leave(&guest);
  return good;
}

static void destroy(hone_single_factors **factors) {
  hone_guest guest;
  if (*factors == NULL)
    return;
  hone_guest_enter(&guest);
  destroy_factors(*factors);
  *factors = NULL;
  hone_guest_leave(&guest);
}

const hone_single_table *hone_single_functions(void) {
  static const hone_single_table table = {.struct_size = sizeof table,
                                          .make = make,
                                          .expects_device = expects_device,
                                          .solve = solve,
                                          .residual = residual,
                                          .vouched = vouched,
                                          .destroy = destroy};
  return &table;
}
