/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what verification costs, in three sections:
 *
 *   hopeless   compares a solve whose single-precision factors do not serve, so
 *              that A is factored in double after all, with HONE_FACTOR_DOUBLE
 *              and with dgesv
 *   bad        compares 32 right-hand sides, one of them bad, with 32 good
 *              ones, for hone_solve and for dsgesv
 *   extra      compares the pass over A, which computes r and |A| |x| + |b|, in
 *              double-double with that in double; and hone_solve with
 *              extra_precise with hone_solve without
 *
 * The methods take turns, their ratios are formed within a turn, and the median
 * is printed, so that a machine which slows down slows down all methods. The
 * first turn is not counted. `bench_trust --help` lists the options.
 */
#include "api/hone.h"
#include "base/lapack.h"
#include "cpu_dp/residual.h"
#include "tests/gallery/gallery.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_TURNS = 99, MOST_METHODS = 4, MOST_SIZES = 16, COLUMNS = 32 };

static const char usage[] =
    "usage: bench_trust [options]\n"
    "  --section NAME  hopeless, bad or extra (all three)\n"
    "  --sizes A,B,..  orders (1000,2000,4000; hopeless also 8000)\n"
    "  --turns T       turns that are counted (depends on the order)\n"
    "  --commit TEXT   the commit to record\n"
    "  --json FILE     record all times as JSON, for ninja report\n";

typedef struct settings {
  const char *section, *json_name, *commit;
  int64_t sizes[MOST_SIZES];
  int count, turns;
  FILE *json;
  int rows;
} settings;

/* A system, and work space for all methods. */
typedef struct workshop {
  int64_t n, nrhs;
  double *a, *b, *x, *copy, *work;
  float *swork;
  int *pivots;
  hone_report report;
  int status;
} workshop;

static double now_ms(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void *room(int64_t count, size_t size) {
  void *memory = calloc((size_t)count, size);
  if (memory == NULL) {
    (void)fprintf(stderr, "bench_trust: out of memory\n");
    exit(2);
  }
  return memory;
}

static workshop open_shop(int64_t n, int64_t nrhs, const char *family,
                          double parameter) {
  workshop w = {.n = n, .nrhs = nrhs, .report = HONE_REPORT_INIT};
  w.a = room(n * n, sizeof *w.a);
  w.copy = room(n * n, sizeof *w.copy);
  w.b = room(n * nrhs, sizeof *w.b);
  w.x = room(n * nrhs, sizeof *w.x);
  w.work = room(n * nrhs, sizeof *w.work);
  w.swork = room(n * (n + nrhs), sizeof *w.swork);
  w.pivots = room(n, sizeof *w.pivots);
  gallery_make(gallery_find(family), n, parameter, 1, w.a, n);
  for (int64_t c = 0; c < nrhs; c++)
    gallery_rhs(GALLERY_B_RANDOM, n, w.a, n, (uint64_t)c, w.b + c * n);
  return w;
}

static void close_shop(workshop *w) {
  free(w->a);
  free(w->copy);
  free(w->b);
  free(w->x);
  free(w->work);
  free(w->swork);
  free(w->pivots);
}

/* ---- Methods, which return milliseconds ---- */

static double hone(workshop *w, int32_t start, int32_t extra) {
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.factor_precision = start;
  o.extra_precise = extra;
  o.structure = HONE_STRUCTURE_GENERAL;
  const double start_ms = now_ms();
  w->status = hone_solve(w->n, w->nrhs, w->a, w->n, w->b, w->n, w->x, w->n, &o,
                         &w->report);
  return now_ms() - start_ms;
}

static double from_single(workshop *w) {
  return hone(w, HONE_FACTOR_SINGLE, 0);
}
static double default_options(workshop *w) {
  return hone(w, HONE_FACTOR_AUTO, 0);
}
static double from_double(workshop *w) {
  return hone(w, HONE_FACTOR_DOUBLE, 0);
}
static double extra_precise(workshop *w) {
  return hone(w, HONE_FACTOR_AUTO, 1);
}

static double dgesv(workshop *w) {
  const int n = (int)w->n, nrhs = (int)w->nrhs;
  memcpy(w->copy, w->a, (size_t)(w->n * w->n) * sizeof *w->a);
  memcpy(w->x, w->b, (size_t)(w->n * w->nrhs) * sizeof *w->b);
  const double start_ms = now_ms();
  dgesv_(&n, &nrhs, w->copy, &n, w->pivots, w->x, &n, &w->status);
  return now_ms() - start_ms;
}

static double dsgesv(workshop *w) {
  const int n = (int)w->n, nrhs = (int)w->nrhs;
  int iterations;
  memcpy(w->copy, w->a, (size_t)(w->n * w->n) * sizeof *w->a);
  const double start_ms = now_ms();
  dsgesv_(&n, &nrhs, w->copy, &n, w->pivots, w->b, &n, w->x, &n, w->work,
          w->swork, &iterations, &w->status);
  return now_ms() - start_ms;
}

/* Times the pass over A for one right-hand side, on as many threads as
   hone_solve uses. */
static double pass(workshop *w, bool accurate) {
  const hone_dense dense = {w->n, w->n, w->a, NULL, false, 0};
  const hone_matrix a = hone_dense_matrix(&dense);
  hone_mem mem = {0};
  hone_pool *pool = NULL;
  const hone_residual_job job = {.a = &a,
                                 .accurate = accurate,
                                 .k = 1,
                                 .x = (const double *const[]){w->x},
                                 .b = (const double *const[]){w->b},
                                 .r = (double *const[]){w->work},
                                 .den = (double *const[]){w->copy}};
  hone_pool_create(&pool, &mem, hone_blas_threads());
  hone_dense_residual(&job, pool);
  const double start_ms = now_ms();
  for (int k = 0; k < 4; k++)
    hone_dense_residual(&job, pool);
  const double ms = (now_ms() - start_ms) / 4.0;
  hone_pool_destroy(&pool, &mem);
  return ms;
}

static double plain_pass(workshop *w) { return pass(w, false); }
static double accurate_pass(workshop *w) { return pass(w, true); }

/* ---- Turns ---- */

typedef struct method {
  const char *name;
  double (*run)(workshop *w);
  workshop *on;
  bool verified; /* x was accepted in every turn; false for LAPACK's methods,
                    whose x is not checked */
} method;

static int ascending(const void *a, const void *b) {
  const double p = *(const double *)a, q = *(const double *)b;
  return (p > q) - (p < q);
}

static double median(const double *values, int count) {
  double sorted[MOST_TURNS];
  memcpy(sorted, values, (size_t)count * sizeof *values);
  qsort(sorted, (size_t)count, sizeof *sorted, ascending);
  return 0.5 * (sorted[count / 2] + sorted[(count - 1) / 2]);
}

static int turns_at(const settings *s, int64_t n) {
  if (s->turns > 0)
    return s->turns;
  return n <= 1000 ? 9 : n <= 2000 ? 5 : n <= 4000 ? 3 : 2;
}

static void write_json(settings *s, const char *section, const char *what,
                       int64_t n, const method *methods, int count, int turns,
                       double ms[][MOST_TURNS]) {
  (void)fprintf(s->json,
                "%s\n{\"section\": \"%s\", \"kind\": \"%s\", \"n\": %d, "
                "\"nrhs\": %d, \"methods\": [",
                s->rows++ ? "," : "", section, what, (int)n,
                (int)methods[0].on->nrhs);
  for (int m = 0; m < count; m++) {
    (void)fprintf(s->json,
                  "%s\n {\"name\": \"%s\", \"accepted\": %s, "
                  "\"median_ms\": %.6g, \"ms\": [",
                  m ? "," : "", methods[m].name,
                  methods[m].verified ? "true" : "false", median(ms[m], turns));
    for (int t = 0; t < turns; t++)
      (void)fprintf(s->json, "%s%.6g", t ? ", " : "", ms[m][t]);
    (void)fprintf(s->json, "]}");
  }
  (void)fprintf(s->json, "]}");
}

/* Writes the fields with which a record begins (bench/report/records.py). */
static void begin_json(const settings *s) {
  char date[32];
  const time_t now = time(NULL);
  struct tm utc;
  (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  (void)fprintf(s->json,
                "{\"format\": \"hone-bench/1\",\n \"program\": "
                "\"bench_trust\",\n \"date\": \"%s\",\n \"commit\": \"%s\",\n "
                "\"hone\": \"%s\",\n \"device\": \"CPU\",\n \"openblas\": "
                "\"%s\",\n \"openblas_threads\": \"%d\",\n \"rows\": [",
                date, s->commit ? s->commit : "unknown", hone_version(),
                hone_blas_config(), hone_blas_threads());
}

/* Times the methods and prints a line: the median of each, and how many times
   as long the first method takes. */
static void compare(settings *s, const char *section, const char *what,
                    method *methods, int count) {
  static double ms[MOST_METHODS][MOST_TURNS];
  const int64_t n = methods[0].on->n;
  const int turns = turns_at(s, n);
  double ratio[MOST_TURNS];
  char path[sizeof methods[0].on->report.path] = "";
  for (int t = -1; t < turns; t++)
    for (int m = 0; m < count; m++) {
      const double took = methods[m].run(methods[m].on);
      const bool ok =
          methods[m].on->status == 0 && strstr(methods[m].name, "gesv") == NULL;
      methods[m].verified = ok && (t < 0 || methods[m].verified);
      if (t >= 0)
        ms[m][t] = took;
      if (m == 0)
        memcpy(path, methods[0].on->report.path, sizeof path);
    }
  printf("%-9s %-22s %6d", section, what, (int)n);
  for (int m = 0; m < count; m++) {
    for (int t = 0; t < turns; t++)
      ratio[t] = ms[0][t] / ms[m][t];
    printf("  %s %.4g ms", methods[m].name, median(ms[m], turns));
    if (m > 0)
      printf(" (%.2f)", median(ratio, turns));
  }
  printf("  %s\n", path);
  (void)fflush(stdout);
  if (s->json)
    write_json(s, section, what, n, methods, count, turns, ms);
}

/* ---- Sections ---- */

/* Two spectra fall, which small pivots reveal early. The third has one singular
   value so small that even factors in double do not show it. */
static void hopeless(settings *s, int64_t n) {
  static const struct {
    const char *family;
    double parameter;
  } cases[] = {{"dlatms_3", 13.0}, {"dlatms_5", 13.0}, {"dlatms_2", 15.0}};
  for (int k = 0; k < (n > 4000 ? 1 : 3); k++) {
    workshop w = open_shop(n, 1, cases[k].family, cases[k].parameter);
    method methods[] = {{"by itself", default_options, &w, false},
                        {"double first", from_double, &w, false},
                        {"dgesv", dgesv, &w, false}};
    compare(s, "hopeless", cases[k].family, methods, 3);
    close_shop(&w);
  }
}

/* Makes one right-hand side bad: too large for single precision (kind 0), or
   of denormal numbers, for which no factorization helps (kind 1). */
static void spoil(workshop *w, int kind) {
  double *b = w->b + (COLUMNS / 2) * w->n;
  for (int64_t i = 0; i < w->n; i++)
    b[i] = kind ? (double)(i % 7 - 3) * 0x1p-1073 : ldexp(b[i], 1000);
}

static void bad(settings *s, int64_t n) {
  static const char *const what[] = {"one of 2^1000", "one of 2^-1073"};
  for (int kind = 0; kind < 2; kind++) {
    workshop good = open_shop(n, COLUMNS, "uniform", 0.0), one = good;
    one.b = room(n * COLUMNS, sizeof *one.b);
    memcpy(one.b, good.b, (size_t)(n * COLUMNS) * sizeof *one.b);
    spoil(&one, kind);
    method ours[] = {{"one bad", from_single, &one, false},
                     {"none", from_single, &good, false}};
    method theirs[] = {{"dsgesv one bad", dsgesv, &one, false},
                       {"dsgesv none", dsgesv, &good, false}};
    compare(s, "bad", what[kind], ours, 2);
    one.report.path[0] = '\0';
    compare(s, "bad", what[kind], theirs, 2);
    free(one.b);
    close_shop(&good);
  }
}

static void extra(settings *s, int64_t n) {
  workshop w = open_shop(n, 1, "uniform", 0.0);
  method solves[] = {{"extra precise", extra_precise, &w, false},
                     {"plain", default_options, &w, false}};
  method passes[] = {{"double-double", accurate_pass, &w, false},
                     {"double", plain_pass, &w, false}};
  compare(s, "extra", "hone_solve", solves, 2);
  w.report.path[0] = '\0';
  compare(s, "extra", "pass over A", passes, 2);
  close_shop(&w);
}

static void run(settings *s, const char *name,
                void (*section)(settings *s, int64_t n)) {
  static const int64_t usual[] = {1000, 2000, 4000, 8000};
  if (s->section != NULL && strcmp(s->section, name) != 0)
    return;
  const int most = section == hopeless ? 4 : 3;
  for (int k = 0; k < (s->count ? s->count : most); k++)
    section(s, s->count ? s->sizes[k] : usual[k]);
}

/* ---- Options ---- */

static bool take_sizes(settings *s, const char *text) {
  char *end = NULL;
  for (s->count = 0; s->count < MOST_SIZES; text = end + 1) {
    const long n = strtol(text, &end, 10);
    if (end == text || n < 1 || n > 30000)
      return false;
    s->sizes[s->count++] = n;
    if (*end != ',')
      return *end == '\0';
  }
  return false;
}

static bool take(settings *s, const char *name, const char *value) {
  if (strcmp(name, "--section") == 0)
    return strcmp(s->section = value, "hopeless") == 0 ||
           strcmp(value, "bad") == 0 || strcmp(value, "extra") == 0;
  if (strcmp(name, "--sizes") == 0)
    return take_sizes(s, value);
  if (strcmp(name, "--turns") == 0)
    return (s->turns = atoi(value)) >= 1 && s->turns <= MOST_TURNS;
  if (strcmp(name, "--commit") == 0)
    return strpbrk(s->commit = value, "\"\\") == NULL;
  return strcmp(name, "--json") == 0 && (s->json_name = value)[0] != '\0';
}

int main(int argc, char **argv) {
  settings s = {0};
  for (int i = 1; i < argc; i += 2)
    if (i + 1 == argc || !take(&s, argv[i], argv[i + 1])) {
      const bool asked = strcmp(argv[i], "--help") == 0;
      (void)fputs(usage, asked ? stdout : stderr);
      return asked ? 0 : 2;
    }
  if (s.json_name != NULL && (s.json = fopen(s.json_name, "w")) == NULL) {
    (void)fprintf(stderr, "bench_trust: cannot write %s\n", s.json_name);
    return 2;
  }
  printf(
      "threads %d; medians, and in brackets how many times as long the first "
      "method takes\n",
      hone_blas_threads());
  if (s.json)
    begin_json(&s);
  run(&s, "hopeless", hopeless);
  run(&s, "bad", bad);
  run(&s, "extra", extra);
  if (s.json) {
    (void)fprintf(s.json, "\n]}\n");
    (void)fclose(s.json);
  }
  return 0;
}
