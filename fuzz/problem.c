/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the problems of fuzz_solve.c from bytes; problem.h describes them.
 * Read problem_choose, at the end, first: it gives the order in which bytes are
 * used. The first bytes choose the kind of problem; four more seed a generator
 * for the elements, so that a short input gives a complete problem.
 */
#include "problem.h"

#include "tests/gallery/either.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Bytes and numbers ---- */

typedef struct source {
  const uint8_t *at;
  size_t left;
  uint64_t state; /* the state of the generator, seeded from the bytes */
} source;

/* Returns the next byte, or 0 after the last. */
static unsigned take(source *s) {
  if (s->left == 0)
    return 0;
  s->left--;
  return *s->at++;
}

static uint64_t random_bits(source *s) { /* splitmix64 */
  uint64_t z = s->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static unsigned random_below(source *s, unsigned limit) {
  return (unsigned)((random_bits(s) >> 32) % limit);
}

/* Returns a number in [-1, 1). */
static double uniform(source *s) {
  return ldexp((double)(random_bits(s) >> 11), -52) - 1;
}

static double special(source *s, int finite) {
  static const double values[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  1e39,
                                  -1e39,
                                  1e-42,
                                  1e300,
                                  -1e300,
                                  1e-306,
                                  4.9e-324,
                                  DBL_MIN,
                                  DBL_MAX,
                                  3.0,
                                  0.1,
                                  1e-300,
                                  (double)NAN,
                                  (double)INFINITY,
                                  -(double)INFINITY};
  unsigned count = COUNT_OF(values) - (finite ? 3 : 0);
  return values[random_below(s, count)];
}

static double from_bytes(source *s) {
  uint64_t bits = 0;
  double value;
  for (int i = 0; i < 8; i++)
    bits = bits << 8 | take(s);
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double element(source *s, enum kind kind) {
  switch (kind) {
  case ZERO:
    return 0;
  case WIDE:
    return ldexp(uniform(s), (int)random_below(s, 2000) - 1000);
  case SPECIAL_FINITE:
    return random_below(s, 2) ? uniform(s) : special(s, 1);
  case SPECIAL:
    return random_below(s, 4) ? uniform(s) : special(s, 0);
  case BITS:
    return from_bytes(s);
  default:
    return uniform(s);
  }
}

/* ---- Arrays ---- */

/* rows x cols numbers of so many parts. */
static array make_array(int parts, int64_t rows, int64_t cols, int64_t ld,
                        size_t extra) {
  array r = {0};
  if (rows > 0 && cols > 0)
    r.count = (size_t)((cols - 1) * ld + rows);
  r.count = (r.count + extra) * (size_t)parts;
  r.now = malloc((r.count + !r.count) * sizeof *r.now);
  r.before = malloc((r.count + !r.count) * sizeof *r.before);
  MUST(r.now && r.before);
  for (size_t k = 0; k < r.count; k++)
    r.now[k] = (double)NAN;
  return r;
}

static void free_array(array *r) {
  free(r->now);
  free(r->before);
}

static void keep(array *r) {
  memcpy(r->before, r->now, r->count * sizeof *r->now);
}

static double *part(const array *r, int64_t i, int64_t j, int64_t ld, int k) {
  return &r->now[(i + j * ld) * PARTS + k];
}

/* Fills the array. Returns 1 if every element is finite. */
static int fill(source *s, const array *r, int64_t rows, int64_t cols,
                int64_t ld, enum kind kind) {
  int finite = 1;
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < PARTS * rows; i++) {
      double *at = part(r, i / PARTS, j, ld, 0);
      at[i % PARTS] = element(s, kind);
      finite &= i % PARTS < PARTS - 1 || either_finite(PARTS, at);
    }
  return finite;
}

/* Turns the random matrix into one of its kind; n > 0. */
static void shape_matrix(source *s, problem *p) {
  static const int exponents[] = {0, 0, 0, 100, -100, 600, -600};
  const int64_t n = p->true_n, lda = p->lda;
  const array *a = &p->a;
  int64_t k = (int64_t)random_below(s, (unsigned)n);
  int64_t other = (int64_t)random_below(s, (unsigned)n);
  int e = exponents[random_below(s, COUNT_OF(exponents))];
  const double most = PARTS * (double)n; /* above the moduli of a row */
  for (int64_t l = 0; l < PARTS * n; l++) {
    const int64_t i = l / PARTS;
    const int q = (int)(l % PARTS);
    if (p->a_kind == DOMINANT && q == i % PARTS)
      *part(a, i, i, lda, q) += random_below(s, 2) ? most : -most;
    if (p->a_kind == DUPLICATE_COLUMN)
      *part(a, i, k, lda, q) = *part(a, i, other, lda, q);
    if (p->a_kind == ZERO_ROW || p->a_kind == ZERO_COLUMN)
      *(p->a_kind == ZERO_ROW ? part(a, k, i, lda, q) : part(a, i, k, lda, q)) =
          0;
  }
  if (p->a_kind == ONE_NOT_FINITE) {
    *part(a, k, other, lda, (int)(k % PARTS)) =
        random_below(s, 2) ? (double)NAN : (double)INFINITY;
    p->a_finite = 0;
  }
  for (int64_t i = 0; p->a_kind == DOMINANT && i < PARTS * n * n; i++) {
    double *v = part(a, i / PARTS % n, i / PARTS / n, lda, (int)(i % PARTS));
    *v = ldexp(*v, e);
  }
}

/* ---- Memory hooks and progress ---- */

hooks memory;

static void *hook_alloc(size_t bytes, void *ctx) {
  hooks *h = ctx;
  if (++h->calls == h->fail_at)
    return NULL;
  size_t *block = malloc(bytes + 16); /* the size is stored before the block */
  MUST(block != NULL);
  *block = bytes;
  h->live++;
  h->live_bytes += (int64_t)bytes;
  if (h->live_bytes > h->peak_bytes)
    h->peak_bytes = h->live_bytes;
  return block + 2;
}

static void hook_free(void *block, void *ctx) {
  hooks *h = ctx;
  if (!block)
    return;
  size_t *start = (size_t *)block - 2;
  h->live--;
  h->live_bytes -= (int64_t)*start;
  free(start);
}

watch watcher;

static int on_progress(void *user, const hone_progress *event) {
  watch *w = user;
  MUST(event && event->phase && event->phase[0]);
  MUST(event->fraction >= 0 && event->fraction <= 1);
  MUST(event->elapsed_s >= 0 && event->iteration >= 0);
  return ++w->events == w->stop_at;
}

/* ---- Choosing the problem ---- */

static void choose_limits(source *s, problem *p) {
  hone_options *o = &p->options;
  static const int64_t limits[] = {0, 0, 0, 0, 1, 5000, 1 << 30};
  static const double deadlines[] = {0, 0, 0, 0, 0, 0, 1e3, 1e-9};
  o->memory_limit_bytes = limits[take(s) % COUNT_OF(limits)];
  o->deadline_s = deadlines[take(s) % COUNT_OF(deadlines)];
  unsigned how = take(s);
  memory = (hooks){0};
  watcher = (watch){0};
  if (how & 1) {
    o->alloc = hook_alloc;
    o->free = hook_free;
    o->alloc_ctx = &memory;
    memory.fail_at = how & 2 ? how >> 4 : 0;
  }
  if (how & 4) {
    o->progress = on_progress;
    o->progress_user = &watcher;
    watcher.stop_at = how & 8 ? how >> 4 : 0;
  }
  p->undisturbed = !memory.fail_at && !watcher.stop_at &&
                   o->device != HONE_DEVICE_CUDA &&
                   (o->deadline_s <= 0 || o->deadline_s > 1) &&
                   (!o->memory_limit_bytes || o->memory_limit_bytes > 5000);
}

static void choose_options(source *s, problem *p) {
  hone_options *o = &p->options;
  static const double tolerances[] = {0, 0, 0, 0, 1e-8, 1e-30, DBL_EPSILON};
  static const int32_t iterations[] = {0, 0, 0, 0, 0, 1, 2, 50};
  static const int32_t criteria[] = {
      HONE_CRITERION_COMPONENTWISE, HONE_CRITERION_COMPONENTWISE,
      HONE_CRITERION_NORMWISE, HONE_CRITERION_RESIDUAL};
  *o = (hone_options)HONE_OPTIONS_INIT;
  unsigned bits = take(s);
  p->use_options = (bits & 7) != 7;
  p->use_report = (bits & 24) != 24;
  p->use_columns = (bits & 96) != 96;
  if (!p->use_options) {
    p->undisturbed = 1;
    p->use_columns = 0;
    return;
  }
  bits = take(s);
  o->layout = bits & 1;
  o->trans = bits >> 1 & 1;
  o->deterministic = bits >> 2 & 1;
  o->device = (bits >> 3 & 1) ? HONE_DEVICE_CPU : HONE_DEVICE_AUTO;
  if (bits >> 4 == 15)
    o->device = HONE_DEVICE_CUDA;
  bits = take(s);
  o->factor_precision = (int32_t)(bits % 3);
  o->criterion = criteria[bits >> 2 & 3];
  o->threads = (int32_t)((bits >> 4) % 3);
  o->tolerance = tolerances[take(s) % COUNT_OF(tolerances)];
  o->max_iterations = iterations[take(s) % COUNT_OF(iterations)];
  choose_limits(s, p);
}

static void choose_sizes(source *s, problem *p) {
  static const enum kind a_kinds[] = {
      RANDOM,           DOMINANT, DOMINANT,    WIDE, SPECIAL_FINITE, SPECIAL,
      DUPLICATE_COLUMN, ZERO_ROW, ZERO_COLUMN, BITS, ONE_NOT_FINITE, ZERO};
  static const enum kind b_kinds[] = {RANDOM,         RANDOM,  RANDOM, ZERO,
                                      SPECIAL_FINITE, SPECIAL, WIDE,   BITS};
  static const enum alias aliases[] = {X_OWN,  X_OWN,  X_OWN,  X_OWN,
                                       X_IS_B, X_IS_B, X_IN_B, X_IS_A};
  p->n = p->true_n = take(s) % (MOST_N + 1);
  p->nrhs = p->true_nrhs = take(s) % (MOST_NRHS + 1);
  p->a_kind = a_kinds[take(s) % COUNT_OF(a_kinds)];
  p->b_kind = b_kinds[take(s) % COUNT_OF(b_kinds)];
  p->alias = aliases[take(s) % COUNT_OF(aliases)];
  if (p->n < 2 || p->nrhs < 1)
    p->alias = p->alias == X_IS_B ? X_IS_B : X_OWN;
  unsigned bits = take(s);
  int64_t least = p->n > 0 ? p->n : 1;
  p->lda = least + (bits & 3);
  p->ldb = least + (bits >> 2 & 3);
  p->ldx = p->alias == X_OWN ? least + (bits >> 4 & 3) : p->ldb;
  p->ldx0 = least + (bits >> 6 & 3);
}

/* Fills the arrays. There is a warm start only if options are passed. */
static void choose_arrays(source *s, problem *p) {
  int64_t n = p->true_n, nrhs = p->true_nrhs;
  unsigned warm = p->use_options ? take(s) : 0;
  for (int i = 0; i < 4; i++)
    s->state = s->state << 8 | take(s);
  /* The array needs room for an x that overlaps b or A and must be refused. */
  size_t extra = p->alias == X_IN_B || p->alias == X_IS_A ? 8 * MOST_N : 0;
  if ((warm & 7) == 7 && p->alias == X_OWN) {
    p->alias = X_IS_X0;
    p->ldx0 = p->ldx;
  }
  p->a = make_array(PARTS, n, n, p->lda, extra);
  p->b = make_array(PARTS, n, nrhs, p->ldb, extra);
  p->x = make_array(PARTS, n, nrhs, p->ldx, 0);
  p->x0 = make_array(PARTS, n, nrhs, p->ldx0, 0);
  p->a_finite = fill(s, &p->a, n, n, p->lda, p->a_kind);
  if (n > 0)
    shape_matrix(s, p);
  p->b_finite = fill(s, &p->b, n, nrhs, p->ldb, p->b_kind);
  p->pass_a = p->a.now;
  p->pass_b = p->b.now;
  p->pass_x = p->x.now;
  if (p->alias == X_IS_B || p->alias == X_IN_B)
    p->pass_x = p->b.now + PARTS * (p->alias == X_IN_B);
  if (p->alias == X_IS_A)
    p->pass_x = p->a.now;
  if (p->alias == X_IN_B || p->alias == X_IS_A)
    p->expected = HONE_BAD_OVERLAP;
  if (warm & 4) {
    p->x0_kind = warm & 8 ? RANDOM : (warm & 16 ? SPECIAL_FINITE : SPECIAL);
    p->b_finite &= fill(s, &p->x0, n, nrhs, p->ldx0, p->x0_kind);
    p->options.x0 = p->x0.now;
    p->options.ldx0 = p->ldx0;
    if (p->alias == X_IS_X0)
      p->pass_x = p->x0.now;
  }
  p->options.columns = p->use_columns ? p->columns : NULL;
}

/* Makes one option invalid. Returns the status that the call must give. */
static int break_option(unsigned which, hone_options *o) {
  switch (which) {
  case 0:
    o->device = 3;
    break;
  case 1:
    o->factor_precision = -1;
    break;
  case 2:
    o->layout = 2;
    break;
  case 3:
    o->trans = 7;
    break;
  case 4:
    o->criterion = 3;
    break;
  case 5:
    o->threads = -1;
    break;
  case 6:
    o->max_iterations = -1;
    break;
  case 7:
    o->tolerance = (double)NAN;
    break;
  case 8:
    o->deadline_s = -1;
    break;
  case 9:
    o->memory_limit_bytes = -1;
    break;
  case 10:
    o->free = o->free ? NULL : hook_free;
    break;
  case 11:
    o->ldx0 = 0;
    return o->x0 ? HONE_BAD_LEADING_DIMENSION : 0;
  case 12:
    o->struct_size = 0;
    return HONE_BAD_STRUCT_SIZE;
  default:
    o->struct_size = sizeof *o + 8;
    return HONE_BAD_STRUCT_SIZE;
  }
  return HONE_BAD_OPTION;
}

/* Makes one argument other than the options invalid. */
static void break_argument(unsigned which, problem *p) {
  p->expected = p->or_expected = HONE_BAD_LEADING_DIMENSION;
  int64_t small = p->n > 0 ? p->n - 1 : 0;
  if (which == 0)
    p->lda = small;
  else if (which == 1)
    p->ldb = small;
  else if (which == 2)
    p->ldx = small;
  else if (which == 3)
    p->lda = -1;
  if (which < 4)
    return;
  p->expected = HONE_BAD_SIZE;
  if (which == 4) {
    p->nrhs = -1;
  } else if (which == 5) {
    p->n = -1;
  } else if (which == 6) {
    p->n = p->lda = p->ldb = p->ldx = p->ldx0 = INT64_MAX;
  } else {
    p->expected = HONE_NULL_POINTER;
    p->pass_a = which == 7 ? NULL : p->pass_a;
    p->pass_b = which == 8 ? NULL : p->pass_b;
    p->pass_x = which == 9 ? NULL : p->pass_x;
  }
}

/* Makes one argument or option of one problem in sixteen invalid, if nothing
   else is wrong with it. */
static void choose_fault(source *s, problem *p) {
  enum { OPTION_FAULTS = 14, ARGUMENT_FAULTS = 10, POINTER_FAULT = 7 };
  if (take(s) < 240 || p->alias != X_OWN)
    return;
  unsigned which = take(s) % (OPTION_FAULTS + ARGUMENT_FAULTS);
  if (which < OPTION_FAULTS) {
    if (p->use_options)
      p->expected = break_option(which, &p->options);
    return;
  }
  which -= OPTION_FAULTS;
  if (which < POINTER_FAULT || (p->true_n > 0 && p->true_nrhs > 0))
    break_argument(which, p);
}

/* Replaces a random matrix by one of the gallery if the input has two more
   bytes: they choose the family and its parameter. */
static void choose_gallery(source *s, problem *p) {
  const unsigned which = take(s), parameter = take(s);
  if (which == 0 || p->a_kind != RANDOM || p->expected || p->true_n < 1)
    return;
  const gallery_family *f =
      &gallery_families[(which - 1) % (unsigned)either_families(PARTS)];
  if (p->true_n < f->least_n || p->true_n > f->most_n)
    return;
  either_make(f, PARTS, p->true_n,
              f->low + (f->high - f->low) * parameter / 255.0, random_bits(s),
              p->a.now, p->lda);
  p->a_kind = FROM_GALLERY;
  if ((f->properties & GALLERY_SPD) && (parameter & 1) && p->use_options)
    p->options.structure = HONE_STRUCTURE_SPD;
}

/* Asks for error bounds if the input has one more byte; at times in an array
   that overlaps b or x, or with too small a leading dimension. */
static void choose_bars(source *s, problem *p) {
  enum { SHORT = 7, IN_X = 6, IN_B = 5 };
  const unsigned byte = take(s), fault = p->expected ? 0 : byte >> 2 & 7;
  const int64_t n = p->true_n, nrhs = p->true_nrhs;
  hone_options *o = &p->options;
  const int use = byte > 0 && p->use_options;
  const int64_t ld = (n > 0 ? n : 1) + (byte & 3);
  p->bars = make_array(1, use ? n : 0, nrhs, ld, 0);
  if (!use)
    return;
  o->ld_error_bounds = ld;
  o->error_bounds = p->bars.now;
  if (fault == SHORT) {
    o->ld_error_bounds = n > 0 ? n - 1 : 0;
    p->expected = HONE_BAD_LEADING_DIMENSION;
  } else if (fault >= IN_B && n > 0 && nrhs > 0) {
    o->error_bounds = fault == IN_B ? p->b.now : p->pass_x;
    p->expected = HONE_BAD_OVERLAP;
  }
}

/* Takes the conjugate transpose if the input of a complex problem has one more
   byte. */
static void choose_adjoint(source *s, problem *p) {
  if (PARTS == 2 && take(s) % 2 && p->options.trans == HONE_TRANS)
    p->options.trans = HONE_CONJ_TRANS;
}

void problem_choose(problem *p, const uint8_t *data, size_t size) {
  source s = {data, size, 0};
  *p = (problem){0};
  choose_sizes(&s, p);
  choose_options(&s, p);
  choose_arrays(&s, p);
  choose_fault(&s, p);
  choose_gallery(&s, p);
  choose_bars(&s, p);
  choose_adjoint(&s, p);
  keep(&p->a);
  keep(&p->b);
  keep(&p->x);
  keep(&p->x0);
  keep(&p->bars);
}

void problem_free(problem *p) {
  free_array(&p->a);
  free_array(&p->b);
  free_array(&p->x);
  free_array(&p->x0);
  free_array(&p->bars);
}
