/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints one line for each of more than 500 systems: the status, the path, and
   hashes of the bits of x and of the numbers in the report. Two builds of the
   library compute the same where their lines are equal, on the same machine
   and with the same OpenBLAS.

   The systems are drawn from the gallery with fixed seeds, so that every option
   of a solve on the CPU occurs, and read from the Matrix Market files that are
   named on the command line. All of them are solved with
   options.deterministic. Every fourth system is solved a second time with two
   threads; the program fails if that changes a bit.

     fingerprint tests/matrices/a.mtx tests/matrices/b.mtx ... > lines.txt

   The calls of the library stand together in the first section below. */
#include "api/hone.h"
#include "base/lapack.h"
#include "examples/matrix_market.h"
#include "tests/gallery/gallery.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Other processes have the other CPUs. */
static void one_thread(void) {
  hone_blas_set_threads(1);
  (void)setenv("HONE_NUM_THREADS", "1", 1);
}

/* The arguments of one call of the library, and its results. */
typedef struct call {
  int64_t n, nrhs, lda, ldb, ldx;
  const double *a; /* as given to the library, n x n */
  const double *b; /* n x nrhs; may be x */
  double *x;       /* n x nrhs */
  int trans;
  const double *x0;     /* n x nrhs, leading dimension n, or NULL */
  hone_options options; /* without trans, x0 and columns */
  hone_column *columns; /* nrhs */
  hone_report report;
  int status;
} call;

/* The calls of the library ------------------------------------------------- */

static hone_options default_options(void) {
  hone_options options = HONE_OPTIONS_INIT;
  options.device = HONE_DEVICE_CPU;
  options.deterministic = 1;
  options.threads = 1;
  return options;
}

static const int criteria[] = {HONE_CRITERION_COMPONENTWISE,
                               HONE_CRITERION_NORMWISE,
                               HONE_CRITERION_RESIDUAL};

static void solve_once(call *c) {
  hone_options options = c->options;
  options.trans = c->trans;
  options.x0 = c->x0;
  options.ldx0 = c->n;
  options.columns = c->columns;
  c->status = hone_solve(c->n, c->nrhs, c->a, c->lda, c->b, c->ldb, c->x,
                         c->ldx, &options, &c->report);
}

static hone_solver *solver_for(const call *c) {
  hone_solver *solver = NULL;
  if (hone_solver_create(&solver, c->n, &c->options) != HONE_OK)
    exit(2);
  return solver;
}

static void factor(hone_solver *solver, call *c) {
  c->status = hone_solver_factor(solver, c->a, c->lda, &c->report);
}

static void update(hone_solver *solver, call *c) {
  c->status = hone_solver_update(solver, c->a, c->lda, &c->report);
}

static void solve_again(hone_solver *solver, call *c) {
  hone_options options = HONE_OPTIONS_INIT;
  options.trans = c->trans;
  options.x0 = c->x0;
  options.ldx0 = c->n;
  options.columns = c->columns;
  c->status = hone_solver_solve(solver, c->nrhs, c->b, c->ldb, c->x, c->ldx,
                                &options, &c->report);
}

/* Hashes ------------------------------------------------------------------- */

/* FNV-1a, 64 bits, of the bytes from the lowest up. */
enum { WORD_BYTES = 8 };
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t add_word(uint64_t hash, uint64_t word) {
  for (int i = 0; i < WORD_BYTES; i++) {
    hash ^= word >> 8 * i & 0xff;
    hash *= 0x100000001b3u;
  }
  return hash;
}

static uint64_t add_int(uint64_t hash, int64_t value) {
  return add_word(hash, (uint64_t)value);
}

/* Every NaN counts as the same. */
static uint64_t add_double(uint64_t hash, double value) {
  uint64_t bits = 0x7ff8000000000000u;
  if (!isnan(value))
    memcpy(&bits, &value, sizeof bits);
  return add_word(hash, bits);
}

static uint64_t hash_x(const call *c) {
  uint64_t hash = hash_start;
  for (int64_t j = 0; j < c->nrhs; j++)
    for (int64_t i = 0; i < c->n; i++)
      hash = add_double(hash, c->x[i + j * c->ldx]);
  return hash;
}

static uint64_t hash_columns(const call *c) {
  uint64_t hash = hash_start;
  for (int64_t j = 0; j < c->nrhs; j++) {
    const hone_column *column = &c->columns[j];
    hash = add_int(hash, column->status);
    hash = add_int(hash, column->iterations);
    hash = add_int(hash, column->precision);
    hash = add_int(hash, column->digits);
    hash = add_double(hash, column->backward_error);
    hash = add_double(hash, column->normwise_error);
    hash = add_double(hash, column->residual_error);
    hash = add_double(hash, column->forward_error);
  }
  return hash;
}

/* Everything in the report except texts, times, bytes and threads. */
static uint64_t hash_report(const hone_report *r) {
  const double numbers[] = {
      r->backward_error, r->normwise_error, r->residual_error, r->forward_error,
      r->tolerance,      r->norm1,          r->rcond,          r->growth,
      r->max_abs,        r->min_abs};
  const int64_t counts[] = {r->accepted,
                            r->iterations,
                            r->precision,
                            r->fallback_columns,
                            r->bad_row,
                            r->bad_col,
                            r->scale_exponent_min,
                            r->scale_exponent_max,
                            r->underflows,
                            r->host_passes,
                            r->digits,
                            r->gmres_steps,
                            r->structure,
                            r->certificate_steps,
                            r->null_count,
                            r->min_pivot_row,
                            r->min_pivot_col,
                            r->dependent_count,
                            r->device_passes};
  uint64_t hash = hash_start;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    hash = add_double(hash, numbers[i]);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    hash = add_int(hash, counts[i]);
  for (int i = 0; i < 8; i++) {
    hash = add_int(hash, r->null_index[i]);
    hash = add_double(hash, r->null_weight[i]);
    hash = add_int(hash, r->dependent_index[i]);
    hash = add_double(hash, r->dependent_weight[i]);
  }
  return hash;
}

static uint64_t hash_text(const char *text) {
  uint64_t hash = hash_start;
  for (; *text; text++)
    hash = add_word(hash, (unsigned char)*text);
  return hash;
}

/* Systems ------------------------------------------------------------------ */

/* One system M x = b as it was drawn. */
typedef struct drawn {
  char name[96], text[128]; /* the family or the file; the options */
  int64_t n, nrhs;
  double *m;        /* the matrix as stored in the library's layout, ld lda */
  double *nearby;   /* a nearby matrix, for hone_solver_update */
  double *b, *x0;   /* n x nrhs */
  bool kept;        /* solved by a solver */
  bool in_place;    /* x is b */
  bool warm;        /* starts from x0 */
  bool two_threads; /* solved a second time with two threads */
  int64_t lda, ldx;
  int trans;
  hone_options options;
} drawn;

static int lines, failures;

/* Aligned to 64 bytes, as OpenBLAS's rounding may depend on the alignment. */
static double *memory(int64_t doubles) {
  const size_t bytes = (size_t)(doubles > 0 ? doubles : 1) * sizeof(double);
  double *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (p == NULL)
    exit(2);
  return p;
}

static void fill(double *v, int64_t count, double value) {
  for (int64_t i = 0; i < count; i++)
    v[i] = value;
}

static void drawn_free(drawn *d) {
  free(d->m);
  free(d->nearby);
  free(d->b);
  free(d->x0);
}

/* Prints one line; returns a hash of what must not depend on threads. */
static uint64_t print(const drawn *d, const char *step, const call *c,
                      bool solved, bool quiet) {
  const uint64_t x = solved ? hash_x(c) : 0;
  const uint64_t columns = solved && c->status >= 0 ? hash_columns(c) : 0;
  const uint64_t report = hash_report(&c->report);
  if (!quiet) {
    printf("%s n %d nrhs %d%s %s | %d | %s | x %016llx columns %016llx report "
           "%016llx reason %016llx\n",
           d->name, (int)d->n, (int)d->nrhs, d->text, step, c->status,
           c->report.path, (unsigned long long)x, (unsigned long long)columns,
           (unsigned long long)report,
           (unsigned long long)hash_text(c->report.reason));
    lines++;
  }
  uint64_t all = add_int(hash_text(c->report.path), c->status);
  return add_word(add_word(add_word(all, x), columns), report);
}

/* Fills x before the call: with b where x replaces b, else with a number that
   no solve gives. */
static void prepare(const drawn *d, call *c) {
  for (int64_t j = 0; j < c->nrhs; j++) {
    fill(c->x + j * c->ldx, c->ldx, -0x1.badp+77);
    if (d->in_place)
      memcpy(c->x + j * c->ldx, d->b + j * d->n, (size_t)d->n * sizeof *c->x);
  }
}

static uint64_t solve_kept(const drawn *d, call *c, bool quiet) {
  hone_solver *solver = solver_for(c);
  uint64_t hash = hash_start;
  for (int step = 0; step < 2; step++) {
    c->a = step == 0 ? d->m : d->nearby;
    if (step == 0)
      factor(solver, c);
    else
      update(solver, c);
    hash = add_word(hash,
                    print(d, step == 0 ? "factor" : "update", c, false, quiet));
    for (int turn = 0; turn < 2; turn++) {
      c->trans = turn == 0 ? d->trans : !d->trans;
      prepare(d, c);
      solve_again(solver, c);
      hash =
          add_word(hash, print(d, turn == 0 ? "solve" : "solve the other way",
                               c, true, quiet));
    }
  }
  hone_solver_destroy(&solver);
  return hash;
}

static uint64_t solve_with(const drawn *d, int threads, bool quiet) {
  call c = {.report = HONE_REPORT_INIT,
            .n = d->n,
            .nrhs = d->nrhs,
            .a = d->m,
            .lda = d->lda,
            .ldx = d->ldx,
            .ldb = d->in_place ? d->ldx : d->n,
            .trans = d->trans,
            .x0 = d->warm ? d->x0 : NULL,
            .options = d->options};
  uint64_t hash;
  c.x = memory(c.ldx * c.nrhs);
  c.b = d->in_place ? c.x : d->b;
  c.columns = calloc((size_t)c.nrhs + 1, sizeof *c.columns);
  if (c.columns == NULL)
    exit(2);
  c.options.threads = threads;
  if (d->kept) {
    hash = solve_kept(d, &c, quiet);
  } else {
    prepare(d, &c);
    solve_once(&c);
    hash = print(d, "at once", &c, true, quiet);
  }
  free(c.columns);
  free(c.x);
  return hash;
}

static void solve(const drawn *d) {
  const uint64_t one = solve_with(d, 1, false);
  if (d->two_threads && solve_with(d, 2, true) != one) {
    (void)fprintf(stderr, "two threads change %s n %d%s\n", d->name, (int)d->n,
                  d->text);
    failures++;
  }
}

/* Drawing ------------------------------------------------------------------ */

static bool one_in(gallery_rng *rng, int64_t count) {
  return gallery_below(rng, count) == 0;
}

/* The orders at which tiles, blocks, the blocked LU and threads begin. */
static int64_t draw_order(gallery_rng *rng, const gallery_family *family,
                          bool large) {
  static const int64_t edges[] = {1,   2,   3,   15,  16,  17,  31,  32,  33,
                                  63,  64,  65,  127, 128, 129, 255, 256, 257,
                                  399, 400, 401, 511, 512, 513, 514, 600, 700};
  enum { EDGES = sizeof edges / sizeof *edges };
  int64_t n = (int64_t)exp(gallery_uniform(rng) * log(300.0));
  if (one_in(rng, 3))
    n = edges[gallery_below(rng, EDGES)];
  if (large)
    n = 513 + gallery_below(rng, 60);
  if (n > family->most_n)
    n = 1 + n % family->most_n;
  return n < family->least_n ? family->least_n : n;
}

static int64_t draw_nrhs(gallery_rng *rng, int64_t n) {
  if (one_in(rng, 2))
    return 1;
  if (one_in(rng, 8) && n <= 200)
    return 31 + gallery_below(rng, 40); /* about a block of columns */
  return 2 + gallery_below(rng, 5);
}

static void describe(drawn *d) {
  const hone_options *o = &d->options;
  (void)snprintf(d->text, sizeof d->text,
                 " lda %d%s%s%s%s%s crit %d struct %d start %d iter %d tol %g",
                 (int)d->lda, d->trans ? " trans" : "",
                 o->layout == HONE_ROW_MAJOR ? " rows" : "",
                 o->extra_precise ? " extra" : "",
                 d->in_place ? " in-place" : "", d->warm ? " warm" : "",
                 (int)o->criterion, (int)o->structure, (int)o->factor_precision,
                 (int)o->max_iterations, o->tolerance);
}

static void draw_options(drawn *d, gallery_rng *rng, bool definite) {
  hone_options *o = &d->options;
  *o = default_options();
  d->trans = one_in(rng, 4) ? HONE_TRANS : HONE_NO_TRANS;
  o->layout = one_in(rng, 4) ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
  o->factor_precision = one_in(rng, 3)   ? HONE_FACTOR_SINGLE
                        : one_in(rng, 5) ? HONE_FACTOR_DOUBLE
                                         : HONE_FACTOR_AUTO;
  o->structure = one_in(rng, definite ? 2 : 12) ? HONE_STRUCTURE_SPD
                 : one_in(rng, 5)               ? HONE_STRUCTURE_GENERAL
                                                : HONE_STRUCTURE_AUTO;
  o->criterion = criteria[one_in(rng, 3) ? gallery_below(rng, 3) : 0];
  o->extra_precise = one_in(rng, 6);
  o->tolerance = one_in(rng, 8) ? 1e-8 : 0.0;
  o->max_iterations = one_in(rng, 10) ? 1 + (int)gallery_below(rng, 3) : 0;
  d->kept = one_in(rng, 4);
  d->in_place = one_in(rng, 8);
  d->warm = one_in(rng, 6);
  d->two_threads = d->n > 400 ? one_in(rng, 2) : one_in(rng, 4);
  d->lda = d->n + (one_in(rng, 4) ? gallery_below(rng, 6) : 0);
  d->ldx = d->n + (one_in(rng, 4) ? gallery_below(rng, 6) : 0);
  describe(d);
}

/* Makes some matrices singular, or puts in NaN or Inf. */
static void draw_damage(drawn *d, gallery_rng *rng) {
  static const double bad[] = {(double)NAN, (double)INFINITY};
  const int64_t n = d->n, at = gallery_below(rng, n);
  const int64_t other = gallery_below(rng, n);
  const int64_t kind = gallery_below(rng, 40);
  for (int64_t k = 0; k < n && kind < 3; k++) {
    double *column = &d->m[k + at * d->lda], *row = &d->m[at + k * d->lda];
    if (kind == 0)
      *column = 0.0;
    else if (kind == 1)
      *row = 0.0;
    else
      *column = d->m[k + other * d->lda];
  }
  if (kind == 3 || kind == 4)
    d->m[at + other * d->lda] = bad[kind - 3];
  if (kind == 5)
    d->b[at] = bad[gallery_below(rng, 2)];
}

static void make_nearby(drawn *d, gallery_rng *rng) {
  const double size = one_in(rng, 4) ? 1e-1 : 1e-6;
  d->nearby = memory(d->lda * d->n);
  for (int64_t k = 0; k < d->lda * d->n; k++)
    d->nearby[k] = d->m[k] * (1.0 + size * gallery_between(rng, -1.0, 1.0));
}

/* Makes b for the matrix in d->m, and everything else that depends on the
   matrix. */
static void finish(drawn *d, gallery_rng *rng) {
  d->b = memory(d->n * d->nrhs);
  d->x0 = memory(d->n * d->nrhs);
  for (int64_t j = 0; j < d->nrhs; j++) {
    const int kind = one_in(rng, 2)
                         ? GALLERY_B_RANDOM
                         : (int)gallery_below(rng, GALLERY_B_LEFT_NULL);
    gallery_rhs(kind, d->n, d->m, d->lda, gallery_next(rng), d->b + j * d->n);
  }
  for (int64_t k = 0; k < d->n * d->nrhs; k++)
    d->x0[k] = gallery_between(rng, -1.0, 1.0);
}

/* large: of an order at which Cholesky is tried without being asked for. */
static void from_gallery(const gallery_family *family, bool large,
                         uint64_t seed) {
  gallery_rng rng = {seed};
  drawn d = {.n = draw_order(&rng, family, large)};
  const double parameter = gallery_parameter(family, &rng);
  d.nrhs = draw_nrhs(&rng, d.n);
  (void)snprintf(d.name, sizeof d.name, "%s(%.6g)", family->name, parameter);
  draw_options(&d, &rng, (family->properties & GALLERY_SPD) != 0);
  d.m = memory(d.lda * d.n);
  fill(d.m, d.lda * d.n, 0.5);
  gallery_make(family, d.n, parameter, gallery_next(&rng), d.m, d.lda);
  finish(&d, &rng);
  draw_damage(&d, &rng);
  make_nearby(&d, &rng);
  solve(&d);
  drawn_free(&d);
}

static void from_file(const char *path, uint64_t seed) {
  const char *slash = strrchr(path, '/');
  gallery_rng rng = {seed};
  mm_matrix file;
  char message[256];
  const int read = mm_read_file(path, &file, message, sizeof message);
  if (read != MM_OK) {
    (void)fprintf(stderr, "%s\n", message);
    exit(2);
  }
  if (file.is_complex) {
    mm_free(&file);
    return;
  }
  drawn d = {.n = file.rows, .nrhs = draw_nrhs(&rng, file.rows)};
  (void)snprintf(d.name, sizeof d.name, "%s", slash ? slash + 1 : path);
  draw_options(&d, &rng, strcmp(file.symmetry, "symmetric") == 0);
  d.m = memory(d.lda * d.n);
  fill(d.m, d.lda * d.n, 0.5);
  for (int64_t j = 0; j < d.n; j++)
    memcpy(d.m + j * d.lda, file.a + j * d.n, (size_t)d.n * sizeof *d.m);
  mm_free(&file);
  finish(&d, &rng);
  make_nearby(&d, &rng);
  solve(&d);
  drawn_free(&d);
}

int main(int argc, char **argv) {
  enum { DRAWS = 12, LARGE_DRAWS = 4, FILE_DRAWS = 3 };
  one_thread();
  for (int i = 0; i < gallery_count; i++) {
    const gallery_family *family = &gallery_families[i];
    const bool definite = (family->properties & GALLERY_SPD) != 0;
    for (int draw = 0; draw < (definite ? DRAWS + LARGE_DRAWS : DRAWS); draw++)
      from_gallery(family, draw >= DRAWS,
                   1000u * (unsigned)i + (unsigned)draw + 1u);
  }
  for (int i = 1; i < argc; i++)
    for (int draw = 0; draw < FILE_DRAWS; draw++)
      from_file(argv[i], 1000000u + 10u * (unsigned)i + (unsigned)draw);
  (void)fprintf(stderr, "fingerprint: %d lines, %d failures\n", lines,
                failures);
  return failures != 0;
}
