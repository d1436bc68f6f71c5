/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times hone_solve beside OpenBLAS's dgesv and LAPACK's dsgesv, in one run, on
 * the same threads, and checks every answer. `bench_cpu --help` for options.
 *
 * How: the methods take turns (A B C A B C ...), each repetition on another
 * few of a small pool of systems. Ratios are formed within a repetition, then
 * the median is taken: a machine that slows down slows down all three. Small
 * systems are solved in batches of about 0.1 ms. dgesv and dsgesv overwrite
 * what they are given: their copies are made, and all their work space
 * allocated, outside the timing, whereas hone_solve's own allocations count.
 *
 * Check: the componentwise backward error max |b - A x| / (|A| |x| + |b|) of
 * every system's x, in long double (of 10 columns where there are more).
 * Accepted: success was reported and the error is at most 4 eps, eps = 2^-53.
 *
 * Matrices: "uniform" in [-0.5, 0.5) and "normal"; and A = Q1 S Q2 of
 * condition 1e12: "cond1e12geo" (singular values geometric from 1 to 1e-12),
 * "cond1e12onesmall" (all 1 but one) and "arith" (arithmetic). Q1 and Q2 are
 * products of rotations by random angles of randomly paired rows or columns,
 * log2(n) + 2 rounds: orthogonal and dense, at n^2 log n operations.
 */
#include "api/hone.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgesv_(const int *n, const int *nrhs, double *a, const int *lda,
            int *pivots, double *b, const int *ldb, int *info);
void dsgesv_(const int *n, const int *nrhs, double *a, const int *lda,
             int *pivots, const double *b, const int *ldb, double *x,
             const int *ldx, double *work, float *swork, int *iter, int *info);
void openblas_set_num_threads(int threads);
int openblas_get_num_threads(void);
char *openblas_get_config(void);
char *openblas_get_corename(void);

enum { HONE, DGESV, DSGESV, METHODS };
enum { MAX_REPS = 1000, MAX_SIZES = 32, CHECKED_COLUMNS = 10 };

static const char *const names[METHODS] = {"hone", "dgesv", "dsgesv"};
static const char *const kinds[] = {"uniform",          "normal", "cond1e12geo",
                                    "cond1e12onesmall", "arith",  NULL};

static const char usage[] =
    "usage: bench_cpu [options]\n"
    "  --sizes A,B,...  orders of the first section's matrices\n"
    "  --kind NAME      the first section's matrices: uniform, normal,\n"
    "                   cond1e12geo, cond1e12onesmall or arith (uniform)\n"
    "  --section NAME   solve, hopeless or columns (all three)\n"
    "  --reps R         repetitions (by size)\n"
    "  --threads T      threads of all methods (OpenBLAS's default)\n"
    "  --seed S         seed of the matrices (1)\n"
    "  --quick          n <= 1000 and few repetitions\n"
    "  --json FILE      every single time and the machine, as JSON\n";

struct config {
  int sizes[MAX_SIZES], size_count;
  const char *kind, *section, *json_name;
  int reps, threads;
  bool quick;
  uint64_t seed;
  FILE *json;
  int json_rows;
};

/* A pool of systems of one size, and the methods' places to work. */
struct pool {
  int n, nrhs, count, batch, methods;
  double *a, *b;         /* count systems */
  double *a_work, *x;    /* batch systems */
  double *work;          /* dsgesv's, n x nrhs */
  float *swork;          /* dsgesv's, n x (n + nrhs) */
  int *pivots;           /* n */
  double error[METHODS]; /* largest backward error seen */
  int failures[METHODS]; /* calls that did not report success */
  double *ms[METHODS];   /* reps times a system */
  hone_report report;    /* of hone_solve's last call */
  hone_report climb;     /* of its last call that went on to double, */
  int climbs, calls;     /* so many of all */
  int status;            /* of its last call that was not accepted */
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count > 0 ? count : 1, size);
  if (memory == NULL) {
    fprintf(stderr, "bench_cpu: out of memory\n");
    exit(2);
  }
  return memory;
}

/* ---- matrices ---- */

/* splitmix64 (Steele, Lea & Flood 2014), uniform in [0, 1). */
static double uniform(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Box & Muller. */
static double normal(uint64_t *state) {
  double radius = sqrt(-2.0 * log(1.0 - uniform(state)));
  return radius * cos(6.283185307179586 * uniform(state));
}

/* Singular value i of n, from 1 down to 1e-12. */
static double singular_value(const char *kind, int i, int n) {
  double t = n > 1 ? (double)i / (double)(n - 1) : 0.0;
  if (strcmp(kind, "cond1e12geo") == 0)
    return pow(1e-12, t);
  if (strcmp(kind, "arith") == 0)
    return 1.0 - t * (1.0 - 1e-12);
  return i == n - 1 ? 1e-12 : 1.0;
}

/* Rotates a pair of elements, step apart from the next pair, count times. */
static void rotate(double *p, double *q, double angle, int count, int step) {
  double c = cos(angle);
  double s = sin(angle);
  for (int64_t k = 0; k < (int64_t)count * step; k += step) {
    double old = p[k];
    p[k] = c * old - s * q[k];
    q[k] = s * old + c * q[k];
  }
}

/* A = Q1 S Q2: rounds of rotations of random pairs of columns and rows. */
static void make_spectrum(const char *kind, int n, double *a, uint64_t *state) {
  int *order = allocate((size_t)n, sizeof *order);
  memset(a, 0, (size_t)n * (size_t)n * sizeof *a);
  for (int i = 0; i < n; i++) {
    a[i + (int64_t)i * n] = singular_value(kind, i, n);
    order[i] = i;
  }
  int rounds = 2;
  for (int m = 1; m < n; m *= 2)
    rounds++;
  for (int round = 0; round < 2 * rounds; round++) {
    for (int i = n - 1; i > 0; i--) {
      int j = (int)(uniform(state) * (double)(i + 1));
      int swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
    int64_t between = round % 2 == 0 ? n : 1; /* columns, rows */
    int along = round % 2 == 0 ? 1 : n;
    for (int i = 0; i + 1 < n; i += 2)
      rotate(a + order[i] * between, a + order[i + 1] * between,
             6.283185307179586 * uniform(state), n, along);
  }
  free(order);
}

static void make_matrix(const char *kind, int n, double *a, uint64_t *state) {
  size_t entries = (size_t)n * (size_t)n;
  if (strcmp(kind, "uniform") == 0)
    for (size_t k = 0; k < entries; k++)
      a[k] = uniform(state) - 0.5;
  else if (strcmp(kind, "normal") == 0)
    for (size_t k = 0; k < entries; k++)
      a[k] = normal(state);
  else
    make_spectrum(kind, n, a, state);
}

static void make_pool(struct pool *p, const struct config *c,
                      const char *kind) {
  size_t n = (size_t)p->n;
  size_t nrhs = (size_t)p->nrhs;
  size_t count = (size_t)p->count;
  size_t batch = (size_t)p->batch;
  uint64_t state = c->seed;
  p->a = allocate(count * n * n, sizeof *p->a);
  p->b = allocate(count * n * nrhs, sizeof *p->b);
  p->a_work = allocate(batch * n * n, sizeof *p->a_work);
  p->x = allocate(batch * n * nrhs, sizeof *p->x);
  p->work = allocate(n * nrhs, sizeof *p->work);
  p->swork = allocate(n * (n + nrhs), sizeof *p->swork);
  p->pivots = allocate(n, sizeof *p->pivots);
  for (int m = 0; m < METHODS; m++)
    p->ms[m] = allocate(MAX_REPS, sizeof *p->ms[m]);
  for (size_t k = 0; k < count; k++)
    make_matrix(kind, p->n, p->a + k * n * n, &state);
  for (size_t k = 0; k < count * n * nrhs; k++)
    p->b[k] = uniform(&state) - 0.5;
}

static void free_pool(struct pool *p) {
  free(p->a);
  free(p->b);
  free(p->a_work);
  free(p->x);
  free(p->work);
  free(p->swork);
  free(p->pivots);
  for (int m = 0; m < METHODS; m++)
    free(p->ms[m]);
}

/* ---- the check ---- */

/* max |b - A x| / (|A| |x| + |b|) in long double; NaN when x has one. */
static double backward_error(int n, const double *a, const double *b,
                             const double *x) {
  long double *r = allocate((size_t)n, 2 * sizeof *r);
  long double *w = r + n;
  long double largest = 0.0L;
  for (int i = 0; i < n; i++) {
    r[i] = (long double)b[i];
    w[i] = fabsl(r[i]);
  }
  for (int j = 0; j < n; j++) {
    const double *column = a + (int64_t)j * n;
    for (int i = 0; i < n; i++) {
      long double term = (long double)column[i] * (long double)x[j];
      r[i] -= term;
      w[i] += fabsl(term);
    }
  }
  for (int i = 0; i < n && !isnan(largest); i++) {
    long double e = r[i] == 0.0L ? 0.0L : fabsl(r[i]) / w[i];
    if (!(e <= largest))
      largest = e;
  }
  free(r);
  return (double)largest;
}

/* Checks the answers a batch that began with system first left in x. */
static void check_batch(struct pool *p, int method, int first) {
  int64_t n = p->n;
  int step = (p->nrhs + CHECKED_COLUMNS - 1) / CHECKED_COLUMNS;
  for (int k = 0; k < p->batch; k++) {
    int64_t system = (first + k) % p->count;
    for (int64_t j = 0; j < p->nrhs; j += step) {
      double e = backward_error(p->n, p->a + system * n * n,
                                p->b + (system * p->nrhs + j) * n,
                                p->x + (k * p->nrhs + j) * n);
      if (!(e <= p->error[method]) && !isnan(p->error[method]))
        p->error[method] = e;
    }
  }
}

/* ---- timing ---- */

/* Solves system k of the batch; false: the method does not claim success. */
static bool solve_one(struct pool *p, int method, int64_t system, int64_t k,
                      const hone_options *options) {
  int n = p->n;
  int64_t entries = (int64_t)n * n;
  int64_t length = (int64_t)n * p->nrhs;
  const double *b = p->b + system * length;
  double *a_work = p->a_work + k * entries;
  double *x = p->x + k * length;
  int iterations = 0;
  int info = 0;
  switch (method) {
  case HONE:
    info = hone_solve(n, p->nrhs, p->a + system * entries, n, b, n, x, n,
                      options, &p->report);
    p->calls++;
    if (p->report.fallback_ms > 0.0) {
      p->climbs++;
      p->climb = p->report;
    }
    if (info != HONE_OK)
      p->status = info;
    return info == HONE_OK;
  case DGESV:
    dgesv_(&n, &p->nrhs, a_work, &n, p->pivots, x, &n, &info);
    return info == 0;
  default:
    dsgesv_(&n, &p->nrhs, a_work, &n, p->pivots, b, &n, x, &n, p->work,
            p->swork, &iterations, &info);
    return info == 0;
  }
}

/* Milliseconds a system, over one batch. */
static double run_batch(struct pool *p, int method, int first,
                        const hone_options *options) {
  int64_t entries = (int64_t)p->n * p->n;
  int64_t length = (int64_t)p->n * p->nrhs;
  for (int64_t k = 0; k < p->batch && method != HONE; k++) {
    int64_t system = (first + k) % p->count;
    memcpy(p->a_work + k * entries, p->a + system * entries,
           (size_t)entries * sizeof(double));
    memcpy(p->x + k * length, p->b + system * length,
           (size_t)length * sizeof(double));
  }
  double start = now_s();
  for (int k = 0; k < p->batch; k++)
    if (!solve_one(p, method, (first + k) % p->count, k, options))
      p->failures[method]++;
  return 1e3 * (now_s() - start) / (double)p->batch;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* low, median and high of count values. */
static void spread(const double *values, int count, double *three) {
  double sorted[MAX_REPS];
  memcpy(sorted, values, (size_t)count * sizeof *values);
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  three[0] = sorted[0];
  three[1] = 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
  three[2] = sorted[count - 1];
}

/* Median over the repetitions of a method's time by hone's. */
static double ratio(const struct pool *p, int method, int reps) {
  double ratios[MAX_REPS];
  double three[3];
  for (int r = 0; r < reps; r++)
    ratios[r] = p->ms[method][r] / p->ms[HONE][r];
  spread(ratios, reps, three);
  return three[1];
}

static bool accepted(const struct pool *p, int method) {
  return p->failures[method] == 0 && p->error[method] <= 4.0 * 0x1p-53;
}

/* ---- output ---- */

static void write_json_string(FILE *f, const char *text) {
  fputc('"', f);
  for (; *text != 0; text++)
    if (*text == '"' || *text == '\\')
      fprintf(f, "\\%c", *text);
    else if ((unsigned char)*text >= 0x20)
      fputc(*text, f);
  fputc('"', f);
}

static void write_json_row(struct config *c, const char *section,
                           const char *kind, const struct pool *p, int reps) {
  FILE *f = c->json;
  const hone_report *r = p->climbs > 0 ? &p->climb : &p->report;
  if (f == NULL)
    return;
  fprintf(f,
          "%s\n  {\"section\": \"%s\", \"kind\": \"%s\", \"n\": %d, "
          "\"nrhs\": %d, \"batch\": %d, \"systems\": %d, \"path\": ",
          c->json_rows++ > 0 ? "," : "", section, kind, p->n, p->nrhs, p->batch,
          p->count);
  write_json_string(f, r->path);
  fprintf(f,
          ", \"climbs\": %d, \"calls\": %d, \"bad_status\": %d, \"reason\": ",
          p->climbs, p->calls, p->status);
  write_json_string(f, r->reason);
  fprintf(f, ", \"host_bytes\": %" PRId64 ", \"rcond\": %.3e", r->host_bytes,
          isfinite(r->rcond) ? r->rcond : 0.0);
  for (int m = 0; m < p->methods; m++) {
    fprintf(f, ",\n   \"%s\": {\"backward_error\": ", names[m]);
    fprintf(f, isfinite(p->error[m]) ? "%.3e" : "null", p->error[m]);
    fprintf(f, ", \"accepted\": %s, \"median_ratio\": %.4f, \"ms\": [",
            accepted(p, m) ? "true" : "false", ratio(p, m, reps));
    for (int k = 0; k < reps; k++)
      fprintf(f, "%s%.6g", k > 0 ? ", " : "", p->ms[m][k]);
    fprintf(f, "]}");
  }
  fprintf(f, "}");
}

static void print_header(const char *title, int methods) {
  printf("\n### %s\n\n", title);
  printf("| %-16s | %5s | %4s |", "matrix", "n", "nrhs");
  for (int m = 0; m < methods; m++)
    printf(" %6s ms: median (min .. max) |", names[m]);
  for (int m = 1; m < methods; m++)
    printf(" %6s/hone |", names[m]);
  for (int m = 0; m < methods; m++)
    printf(" %6s error |", names[m]);
  printf(" %7s | %s\n|---|---|---|", "B/4n^2", "path |");
  for (int m = 0; m < 3 * methods - 1; m++)
    printf("---|");
  printf("---|---|\n");
}

static void print_row(const char *kind, const struct pool *p, int reps) {
  const hone_report *r = p->climbs > 0 ? &p->climb : &p->report;
  printf("| %-16s | %5d | %4d |", kind, p->n, p->nrhs);
  for (int m = 0; m < p->methods; m++) {
    double t[3];
    spread(p->ms[m], reps, t);
    printf(" %9.4g (%8.4g .. %8.4g) |", t[1], t[0], t[2]);
  }
  for (int m = 1; m < p->methods; m++)
    printf(" %11.2f |", ratio(p, m, reps));
  for (int m = 0; m < p->methods; m++)
    printf(" %7.1e %-4s |", p->error[m], accepted(p, m) ? "yes" : "NO");
  printf(" %7.2f | %s",
         (double)r->host_bytes / (4.0 * (double)p->n * (double)p->n), r->path);
  if (p->climbs > 0 && p->climbs < p->calls)
    printf(" (%d of %d calls; else single)", p->climbs, p->calls);
  if (p->failures[HONE] > 0)
    printf(" (%d not accepted, status %d)", p->failures[HONE], p->status);
  printf(" |\n");
  fflush(stdout);
}

/* ---- sections ---- */

static int repetitions(const struct config *c, int n) {
  int reps = n <= 128    ? 101
             : n <= 512  ? 41
             : n <= 1000 ? 15
             : n <= 2000 ? 9
                         : 5;
  if (c->quick)
    reps = reps > 41 ? 21 : 5;
  return c->reps > 0 ? c->reps : reps;
}

/* One line of a table: the methods in turn, the first turn not counted. */
static void measure(struct config *c, const char *section, const char *kind,
                    int n, int nrhs, int methods) {
  struct pool p = {.n = n, .nrhs = nrhs, .methods = methods};
  int reps = repetitions(c, n);
  double guess_us = 0.5 + 1e-4 * pow((double)n, 3.0);
  hone_options options;
  hone_options_init(&options, sizeof options);
  options.threads = c->threads;
  p.batch = (int)ceil(100.0 / guess_us);
  p.count = n > 1000 ? 2 : p.batch > 4 ? p.batch : 4;
  make_pool(&p, c, kind);
  for (int rep = -1; rep < reps; rep++) {
    int first = (rep + 1) * p.batch % p.count;
    for (int m = 0; m < methods; m++) {
      double ms = run_batch(&p, m, first, &options);
      if (rep >= 0)
        p.ms[m][rep] = ms;
      if ((rep + 1) * p.batch < p.count) /* each system once */
        check_batch(&p, m, first);
    }
  }
  print_row(kind, &p, reps);
  write_json_row(c, section, kind, &p, reps);
  free_pool(&p);
}

static bool wanted(const struct config *c, const char *section) {
  return c->section == NULL || strcmp(c->section, section) == 0;
}

static void run_sections(struct config *c) {
  if (wanted(c, "solve")) {
    print_header("One right-hand side", METHODS);
    for (int i = 0; i < c->size_count; i++)
      measure(c, "solve", c->kind, c->sizes[i], 1, METHODS);
  }
  if (wanted(c, "hopeless")) {
    print_header("Condition 1e12", DSGESV);
    for (int n = 1000; n <= (c->quick ? 1000 : 4000); n *= 2)
      for (int k = 2; kinds[k] != NULL; k++)
        measure(c, "hopeless", kinds[k], n, 1, DSGESV);
  }
  if (wanted(c, "columns")) {
    print_header("Many right-hand sides", DSGESV);
    for (int n = 1000; n <= (c->quick ? 1000 : 2000); n *= 2)
      for (int nrhs = 1; nrhs <= 100; nrhs *= 10)
        measure(c, "columns", "uniform", n, nrhs, DSGESV);
  }
}

/* The first line a command prints, or "unknown". */
static void first_line(const char *command, char *line, int size) {
  FILE *f = popen(command, "r");
  if (f == NULL || fgets(line, size, f) == NULL)
    snprintf(line, (size_t)size, "unknown");
  line[strcspn(line, "\n")] = 0;
  if (f != NULL)
    pclose(f);
}

static void describe_machine(struct config *c) {
  char text[5][200];
  const char *const what[5] = {"commit", "machine", "compiler", "openblas",
                               "threads"};
  first_line("exec 2>/dev/null; c=$(git rev-parse --verify -q HEAD) && printf "
             "%s \"$c\" && "
             "{ git diff --quiet HEAD || printf ' (modified)'; }",
             text[0], sizeof text[0]);
  first_line("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo", text[1],
             sizeof text[1]);
#ifdef __clang__
  snprintf(text[2], sizeof text[2], "%s", __VERSION__);
#else
  snprintf(text[2], sizeof text[2], "gcc %s", __VERSION__);
#endif
  snprintf(text[3], sizeof text[3], "%s, running on %s", openblas_get_config(),
           openblas_get_corename());
  snprintf(text[4], sizeof text[4], "%d", openblas_get_num_threads());
  for (int i = 0; i < 5; i++) {
    printf("%-10s %s\n", what[i], text[i]);
    if (c->json != NULL) {
      fprintf(c->json, "%s\"%s\": ", i == 0 ? "{" : ",\n ", what[i]);
      write_json_string(c->json, text[i]);
    }
  }
  printf("%-10s %" PRIu64 "\n", "seed", c->seed);
  if (c->json != NULL)
    fprintf(c->json, ",\n \"seed\": %" PRIu64 ",\n \"rows\": [", c->seed);
}

/* ---- options ---- */

static bool parse_sizes(struct config *c, const char *text) {
  c->size_count = 0;
  while (c->size_count < MAX_SIZES) {
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || n < 1 || n > 30000)
      return false;
    c->sizes[c->size_count++] = (int)n;
    if (*end == 0)
      return true;
    if (*end != ',')
      return false;
    text = end + 1;
  }
  return false;
}

static bool parse_int(const char *text, int high, int *value) {
  char *end;
  long number = strtol(text, &end, 10);
  *value = (int)number;
  return end != text && *end == 0 && number >= 1 && number <= high;
}

static bool is_kind(const char *text) {
  for (int k = 0; kinds[k] != NULL; k++)
    if (strcmp(text, kinds[k]) == 0)
      return true;
  return false;
}

static bool parse_option(struct config *c, const char *name,
                         const char *value) {
  char *end;
  if (strcmp(name, "--sizes") == 0)
    return parse_sizes(c, value);
  if (strcmp(name, "--reps") == 0)
    return parse_int(value, MAX_REPS, &c->reps);
  if (strcmp(name, "--threads") == 0)
    return parse_int(value, 1024, &c->threads);
  if (strcmp(name, "--kind") == 0)
    return is_kind(c->kind = value);
  if (strcmp(name, "--json") == 0)
    return (c->json_name = value)[0] != 0;
  if (strcmp(name, "--section") == 0) {
    c->section = value;
    return strcmp(value, "solve") == 0 || strcmp(value, "hopeless") == 0 ||
           strcmp(value, "columns") == 0;
  }
  if (strcmp(name, "--seed") == 0) {
    c->seed = strtoull(value, &end, 10);
    return end != value && *end == 0;
  }
  return false;
}

int main(int argc, char **argv) {
  struct config c = {.kind = "uniform", .seed = 1};
  parse_sizes(&c, "4,8,16,32,64,100,128,200,256,512,1000,2000,4000");
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      fputs(usage, stdout);
      return 0;
    }
    if (strcmp(argv[i], "--quick") == 0) {
      c.quick = true;
      parse_sizes(&c, "4,8,16,32,64,100,128,200,256,512,1000");
    } else if (i + 1 >= argc || !parse_option(&c, argv[i], argv[i + 1])) {
      fprintf(stderr, "bench_cpu: bad option %s\n%s", argv[i], usage);
      return 2;
    } else {
      i++;
    }
  }
  if (c.json_name != NULL && (c.json = fopen(c.json_name, "w")) == NULL) {
    perror(c.json_name);
    return 2;
  }
  if (c.threads > 0)
    openblas_set_num_threads(c.threads);
  describe_machine(&c);
  run_sections(&c);
  if (c.json != NULL) {
    fprintf(c.json, "]}\n");
    if (fclose(c.json) != 0) {
      perror(c.json_name);
      return 2;
    }
  }
  return 0;
}
