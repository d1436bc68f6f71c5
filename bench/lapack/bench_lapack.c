/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the drop-in with the real LAPACK, whose calls take turns, in
   medians:

     passing_on     how much longer a call below the crossover takes
     solving        how many times as fast as the real dgesv_ the drop-in's are:
                    dgesv_ with factors discarded, with factors kept, and
                    dsgesv_

   The drop-in is opened by dlopen, once for each setting, in the folder of this
   program. */
#define _GNU_SOURCE /* for readlink and setenv with every libc */
#include "base/lapack.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A system and the arrays that the routines write. */
typedef struct bench {
  int n, nrhs, *ipiv;
  double *a, *b, *factors, *x, *work;
  float *swork;
  __typeof__(dgesv_) *dgesv;
  __typeof__(dsgesv_) *dsgesv;
} bench;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void *take(size_t bytes) {
  void *p = malloc(bytes);
  if (p == NULL) {
    fprintf(stderr, "bench_lapack: out of memory\n");
    exit(1);
  }
  memset(p, 0, bytes);
  return p;
}

static double uniform(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

static bench begin(int n, int nrhs) {
  const size_t order = (size_t)n, columns = (size_t)nrhs;
  bench b = {.n = n, .nrhs = nrhs};
  uint64_t state = (uint64_t)n;
  b.ipiv = take(order * sizeof *b.ipiv);
  b.a = take(order * order * sizeof *b.a);
  b.factors = take(order * order * sizeof *b.a);
  b.b = take(order * columns * sizeof *b.b);
  b.x = take(order * columns * sizeof *b.x);
  b.work = take(order * columns * sizeof *b.work);
  b.swork = take(order * (order + columns) * sizeof *b.swork);
  for (size_t i = 0; i < order * order; i++)
    b.a[i] = uniform(&state);
  for (size_t i = 0; i < order * columns; i++)
    b.b[i] = uniform(&state);
  return b;
}

static void end(bench *b) {
  free(b->ipiv);
  free(b->a);
  free(b->factors);
  free(b->b);
  free(b->x);
  free(b->work);
  free(b->swork);
}

enum { REAL, DROP_IN, MIXED };

/* Returns the microseconds of one call on fresh copies of A and b. */
static double once(bench *b, int which) {
  const size_t order = (size_t)b->n, columns = (size_t)b->nrhs;
  int info = 0, iter = 0;
  memcpy(b->factors, b->a, order * order * sizeof *b->a);
  memcpy(b->x, b->b, order * columns * sizeof *b->x);
  double start = now_us();
  if (which == MIXED)
    b->dsgesv(&b->n, &b->nrhs, b->factors, &b->n, b->ipiv, b->b, &b->n, b->x,
              &b->n, b->work, b->swork, &iter, &info);
  else
    (which == REAL ? dgesv_ : b->dgesv)(&b->n, &b->nrhs, b->factors, &b->n,
                                        b->ipiv, b->x, &b->n, &info);
  double took = now_us() - start;
  if (info != 0) {
    fprintf(stderr, "bench_lapack: INFO %d at n = %d\n", info, b->n);
    exit(1);
  }
  return took;
}

static int by_size(const void *p, const void *q) {
  const double a = *(const double *)p, b = *(const double *)q;
  return (a > b) - (a < b);
}

/* The least times depend less on what else the machine does. */
typedef struct both {
  double real, drop_in; /* medians */
  double least_real, least_drop_in;
} both;

/* Times reps calls of each, made in turns. */
static both in_turns(bench *b, int other, int reps) {
  double *t = take((size_t)(2 * reps) * sizeof *t);
  once(b, REAL);
  once(b, other);
  for (int i = 0; i < reps; i++) {
    t[i] = once(b, REAL);
    t[reps + i] = once(b, other);
  }
  qsort(t, (size_t)reps, sizeof *t, by_size);
  qsort(t + reps, (size_t)reps, sizeof *t, by_size);
  both took = {t[reps / 2], t[reps + reps / 2], t[0], t[reps]};
  free(t);
  return took;
}

/* Opens the drop-in with these settings, which it reads at its first call. */
static void *open_with(const char *path, const char *crossover,
                       const char *factors, bench *b) {
  setenv("HONE_LAPACK_CROSSOVER", crossover, 1);
  setenv("HONE_LAPACK_FACTORS", factors, 1);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "bench_lapack: %s\n", dlerror());
    exit(1);
  }
  b->dgesv = (__typeof__(b->dgesv))dlsym(library, "dgesv_");
  b->dsgesv = (__typeof__(b->dsgesv))dlsym(library, "dsgesv_");
  return library;
}

static void passing_on(const char *path, int n, int reps) {
  bench b = begin(n, 1);
  void *library = open_with(path, "1000000", "auto", &b);
  both t = in_turns(&b, DROP_IN, reps);
  printf("passed on   n %5d           %11.3f %11.3f us   %+.3f us, %+.1f %%\n",
         n, t.real, t.drop_in, t.drop_in - t.real,
         100.0 * (t.drop_in / t.real - 1.0));
  dlclose(library);
  end(&b);
}

static void solving(const char *path, int n, int nrhs, int reps) {
  static const struct {
    const char *factors, *name;
    int which;
  } ways[] = {{"discard", "dgesv, factors discarded", DROP_IN},
              {"keep", "dgesv, factors kept", DROP_IN},
              {"keep", "dsgesv", MIXED}};
  for (int w = 0; w < 3; w++) {
    bench b = begin(n, nrhs);
    void *library = open_with(path, "1", ways[w].factors, &b);
    both t = in_turns(&b, ways[w].which, reps);
    printf("%-24s n %5d nrhs %2d %9.3f %9.3f ms  %.2f times as fast, least "
           "%.2f\n",
           ways[w].name, n, nrhs, t.real * 1e-3, t.drop_in * 1e-3,
           t.real / t.drop_in, t.least_real / t.least_drop_in);
    dlclose(library);
    end(&b);
  }
}

int main(int count, char **args) {
  char folder[PATH_MAX], path[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  snprintf(path, sizeof path, "%s/libhone_lapack.so", dirname(folder));
  setenv("HONE_LOG", "0", 1);
  setenv("HONE_LAPACK_RHS", "100000", 1);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("%-39s %11s %11s\n", "", "real", "drop-in");
  passing_on(path, 10, 20001);
  passing_on(path, 100, 5001);
  for (int i = 1; i < count; i++) {
    int n = atoi(args[i]), reps = n < 800 ? 41 : n < 3000 ? 11 : 5;
    char *colon = strchr(args[i], ':');
    if (n > 0)
      solving(path, n, colon ? atoi(colon + 1) : 1, reps);
  }
  return 0;
}
