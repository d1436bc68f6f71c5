/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Solves millions of small systems in batches, and compares every x with the
 * solution that is known without an error (known.h). The exit status is 1 if
 * a singular system was accepted, or an accepted x is farther from the solution
 * than its bound says; such a system is printed by its family, its order, and
 * its seed. `known --help` lists the options.
 */
#include "tests/campaign/known.h"

#include "api/hone.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 10000 };

static const char usage[] = "usage: known [options]\n"
                            "  --systems N      how many (10000000)\n"
                            "  --seconds S      stop after so long\n"
                            "  --seed S         of all systems (1)\n"
                            "  --device NAME    cpu or cuda (cpu)\n"
                            "  --complex        complex systems\n";

typedef struct settings {
  int64_t systems;
  double seconds;
  uint64_t seed;
  int device, parts;
} settings;

typedef struct tally {
  int64_t systems, singular, accepted, defects;
  double error; /* the largest of an accepted x */
} tally;

/* The arrays of a batch. */
typedef struct room {
  double *a, *t, *b, *x;
  bool *singular;
  hone_batch_result *result;
} room;

static double now_s(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what, const char *which) {
  (void)fprintf(stderr, "known: %s %s\n%s", what, which, usage);
  exit(2);
}

static double number(const char *name, const char *text) {
  char *end;
  const double v = strtod(text, &end);
  if (end == text || *end != 0 || !(v >= 1.0 && v < 1e15))
    die("what number is", name);
  return v;
}

static void take_option(settings *s, const char *name, const char *value) {
  if (strcmp(name, "--systems") == 0)
    s->systems = (int64_t)number(name, value);
  else if (strcmp(name, "--seconds") == 0)
    s->seconds = number(name, value);
  else if (strcmp(name, "--seed") == 0)
    s->seed = (uint64_t)number(name, value);
  else if (strcmp(name, "--device") == 0 && strcmp(value, "cpu") == 0)
    s->device = HONE_DEVICE_CPU;
  else if (strcmp(name, "--device") == 0 && strcmp(value, "cuda") == 0)
    s->device = HONE_DEVICE_CUDA;
  else
    die("what is", name);
}

static settings read_options(int argc, char **argv) {
  settings s = {.systems = 10000000,
                .seconds = HUGE_VAL,
                .seed = 1,
                .device = HONE_DEVICE_CPU,
                .parts = 1};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      (void)fputs(usage, stdout);
      exit(0);
    }
    if (strcmp(argv[i], "--complex") == 0)
      s.parts = 2;
    else if (i + 1 == argc)
      die("what is", argv[i]);
    else {
      take_option(&s, argv[i], argv[i + 1]);
      i++;
    }
  }
  return s;
}

static void *memory(size_t count, size_t size) {
  void *p = calloc(count, size);
  if (p == NULL)
    die("out of", "memory");
  return p;
}

static int solve(const settings *s, int64_t count, int64_t n, const room *r) {
  hone_options options = HONE_OPTIONS_INIT;
  options.device = s->device;
  hone_batch batch = HONE_BATCH_INIT;
  batch.count = count;
  batch.n = batch.lda = batch.ldb = batch.ldx = n;
  batch.stride_b = batch.stride_x = n;
  batch.stride_a = n * n;
  batch.nrhs = 1;
  batch.a = r->a;
  batch.b = r->b;
  batch.x = r->x;
  if (s->parts == 1)
    return hone_batch_solve(&batch, &options, r->result, NULL);
  hone_z_batch complex_batch; /* member by member as hone_batch */
  memcpy(&complex_batch, &batch, sizeof complex_batch);
  return hone_z_batch_solve(&complex_batch, &options, r->result, NULL);
}

static double size_of(int parts, const double *v, const double *less) {
  const double re = v[0] - (less ? less[0] : 0.0);
  const double im = parts > 1 ? v[1] - (less ? less[1] : 0.0) : 0.0;
  return hypot(re, im);
}

/* Returns ||x - t|| / ||x||, infinity norms; NaN stays. */
static double error_of(int parts, int64_t n, const double *x, const double *t) {
  double error = 0.0, size = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double e = size_of(parts, x + i * parts, t + i * parts);
    const double v = size_of(parts, x + i * parts, NULL);
    error = e <= error || isnan(error) ? error : e;
    size = v <= size || isnan(size) ? size : v;
  }
  return error > 0.0 ? error / size : error;
}

/* Judges the systems of a batch, which has 'seed'. */
static void judge(const settings *s, int family, int64_t count, int64_t n,
                  uint64_t seed, const room *r, tally *sum) {
  const int64_t column = n * s->parts;
  for (int64_t k = 0; k < count; k++) {
    sum->systems++;
    sum->singular += r->singular[k];
    if (r->result[k].status != HONE_OK)
      continue;
    const double error =
        error_of(s->parts, n, r->x + k * column, r->t + k * column);
    sum->accepted++;
    sum->error = error <= sum->error ? sum->error : error;
    if (!r->singular[k] && error <= r->result[k].forward_error)
      continue;
    sum->defects++;
    (void)printf("DEFECT %s, n %" PRId64 ", seed %" PRIu64 ": %s error %.3g, "
                 "bound %.3g, rcond %.3g\n",
                 known_families[family].name, n, seed + (uint64_t)k,
                 r->singular[k] ? "singular, accepted;" : "accepted;", error,
                 r->result[k].forward_error, r->result[k].rcond);
  }
}

/* Solves a batch of a family and an order that are drawn. */
static void run(const settings *s, gallery_rng *rng, const room *r,
                tally *sums) {
  int family;
  do
    family = (int)gallery_below(rng, KNOWN_FAMILIES);
  while (s->parts > 1 && known_families[family].real_only);
  const known_family *f = &known_families[family];
  const int64_t few = f->most_n < 12 ? f->most_n : 12;
  const int64_t most = gallery_below(rng, 3) == 0 ? f->most_n : few;
  const int64_t n = f->least_n + gallery_below(rng, most - f->least_n + 1);
  const int64_t count = n > 24 ? BATCH / 4 : BATCH;
  const uint64_t seed = gallery_next(rng);
  const int64_t column = n * s->parts;
  for (int64_t k = 0; k < count; k++) {
    const known_system one = {n, s->parts, r->a + k * n * column,
                              r->t + k * column, r->b + k * column};
    r->singular[k] = known_make(&one, family, seed + (uint64_t)k);
  }
  const int st = solve(s, count, n, r);
  if (st < 0 && r->result[0].status == st && st != HONE_SINGULAR)
    die("a batch ended with", hone_status_text(st));
  judge(s, family, count, n, seed, r, &sums[family]);
}

static int64_t print(const tally *sums) {
  tally all = {0};
  (void)printf("| family | systems | singular | accepted | of the others | "
               "largest error | defects |\n|---|---|---|---|---|---|---|\n");
  for (int i = 0; i <= KNOWN_FAMILIES; i++) {
    const tally t = i < KNOWN_FAMILIES ? sums[i] : all;
    const int64_t others = t.systems - t.singular;
    (void)printf("| %s | %" PRId64 " | %" PRId64 " | %" PRId64
                 " | %.4f | %.1e | %" PRId64 " |\n",
                 i < KNOWN_FAMILIES ? known_families[i].name : "all", t.systems,
                 t.singular, t.accepted,
                 others > 0 ? (double)t.accepted / (double)others : 0.0,
                 t.error, t.defects);
    all.systems += t.systems;
    all.singular += t.singular;
    all.accepted += t.accepted;
    all.defects += t.defects;
    all.error = t.error <= all.error ? all.error : t.error;
  }
  return all.defects;
}

int main(int argc, char **argv) {
  const settings s = read_options(argc, argv);
  const size_t numbers = (size_t)(BATCH / 4 * s.parts) * KNOWN_MOST_N;
  const size_t vectors = (size_t)(BATCH * s.parts) * 24;
  const size_t most = vectors > numbers ? vectors : numbers;
  room r = {.a = memory(most * KNOWN_MOST_N, sizeof *r.a),
            .t = memory(most, sizeof *r.t),
            .b = memory(most, sizeof *r.b),
            .x = memory(most, sizeof *r.x),
            .singular = memory(BATCH, sizeof *r.singular),
            .result = memory(BATCH, sizeof *r.result)};
  gallery_rng rng = {s.seed};
  tally sums[KNOWN_FAMILIES] = {{0}};
  const double end_s = now_s() + s.seconds;
  for (int64_t done = 0; done < s.systems && now_s() < end_s;) {
    run(&s, &rng, &r, sums);
    done = 0;
    for (int i = 0; i < KNOWN_FAMILIES; i++)
      done += sums[i].systems;
  }
  const int64_t defects = print(sums);
  free(r.a);
  free(r.t);
  free(r.b);
  free(r.x);
  free(r.singular);
  free(r.result);
  return defects > 0;
}
