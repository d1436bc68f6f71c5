/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stiff chemistry in thousands of cells, by one batch of small systems for
 * each step of Newton's method.
 *
 * Programs for combustion or the atmosphere advance the chemistry in every cell
 * of a grid by itself. Here it is Robertson's (1966), three species with rates
 * that differ by nine orders of magnitude:
 *
 *     A -> B          0.04      B + B -> B + C   3e7      B + C -> A + C   1e4
 *
 * with another temperature, which multiplies all rates by s, in each cell. The
 * method is Radau IIA of order 5 (E. Hairer, G. Wanner, "Solving Ordinary
 * Differential Equations II", section IV.5): its three stages are one system of
 * nine unknowns, and Newton's method has one matrix of order 9 for each cell.
 *
 * Cell s at time t is the cell s = 1 at time s t, whose concentrations are
 * known to eleven digits at 0.4, 4, 40 and 400. No atom is lost: A + B + C
 * stays 1, up to rounding, if the linear systems are solved to double
 * precision. The exit status is 0 if both are right, and 1 otherwise. Read
 * next: condensation.c.
 */
#define _XOPEN_SOURCE 700 /* clock_gettime */
#include "api/hone.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = 3001, SPECIES = 3, STAGES = 3, N = SPECIES * STAGES };
enum { STEPS = 90, MAX_NEWTON = 12 };

static const double end = 40.0, growth = 1.2; /* of time; of the steps */
static const double settled = 1e-9; /* the last correction of Newton's method,
                                       relative to the sizes below */
static const double size_of[SPECIES] = {1.0, 1e-5, 1.0};
static const double allowed_error = 1e-7, allowed_loss = 1e-13;

/* A, B, C of the cell s = 1. SciPy's Radau with its smallest tolerance and this
   program with 900 steps (growth 1.02) agree in these digits. */
static const struct {
  double time, y[SPECIES];
} known[] = {
    {0.4, {0.98517211386, 3.3863953790e-5, 0.014794022185}},
    {4.0, {0.90551867858, 2.2404756876e-5, 0.094458916659}},
    {40.0, {0.71582706872, 9.1855347646e-6, 0.28416374575}},
    {400.0, {0.45051866847, 3.2229014417e-6, 0.54947810863}},
};
enum { KNOWN = sizeof known / sizeof known[0] };

typedef struct cell {
  double s, y[SPECIES], z[STAGES][SPECIES]; /* z: y at the stages, minus y */
} cell;

/* The coefficients of Radau IIA, which set_coefficients fills. */
static double radau[STAGES][STAGES];

static void set_coefficients(void) {
  const double r = sqrt(6.0);
  const double a[STAGES][STAGES] = {
      {(88 - 7 * r) / 360, (296 - 169 * r) / 1800, (-2 + 3 * r) / 225},
      {(296 + 169 * r) / 1800, (88 + 7 * r) / 360, (-2 - 3 * r) / 225},
      {(16 - r) / 36, (16 + r) / 36, 1.0 / 9}};
  for (int i = 0; i < STAGES; i++)
    for (int j = 0; j < STAGES; j++)
      radau[i][j] = a[i][j];
}

/* The rates of change f, and their derivatives df[i][j] by y_j. */
static void chemistry(double s, const double *y, double *f,
                      double df[SPECIES][SPECIES]) {
  const double k1 = 0.04 * s, k2 = 3e7 * s, k3 = 1e4 * s;
  const double decay = k1 * y[0], pair = k2 * y[1] * y[1];
  const double back = k3 * y[1] * y[2];
  const double by[SPECIES][SPECIES] = {
      {-k1, k3 * y[2], k3 * y[1]},
      {k1, -k3 * y[2] - 2 * k2 * y[1], -k3 * y[1]},
      {0.0, 2 * k2 * y[1], 0.0}};
  f[0] = back - decay;
  f[1] = decay - back - pair;
  f[2] = pair;
  for (int i = 0; i < SPECIES; i++)
    for (int j = 0; j < SPECIES; j++)
      df[i][j] = by[i][j];
}

/* The system of one cell for the correction of z, where
   z_i = h sum_j radau_ij f(y + z_j). By columns, a is the identity minus
   h radau_ij df(y + z_j); b is the right side minus the left. */
static void newton(const cell *c, double h, double *a, double *b) {
  for (int i = 0; i < N; i++) {
    b[i] = -c->z[i / SPECIES][i % SPECIES];
    for (int j = 0; j < N; j++)
      a[i + N * j] = i == j;
  }
  for (int j = 0; j < STAGES; j++) {
    double y[SPECIES], f[SPECIES], df[SPECIES][SPECIES];
    for (int k = 0; k < SPECIES; k++)
      y[k] = c->y[k] + c->z[j][k];
    chemistry(c->s, y, f, df);
    for (int i = 0; i < STAGES; i++)
      for (int k = 0; k < SPECIES; k++) {
        b[SPECIES * i + k] += h * radau[i][j] * f[k];
        for (int l = 0; l < SPECIES; l++)
          a[SPECIES * i + k + N * (SPECIES * j + l)] -=
              h * radau[i][j] * df[k][l];
      }
  }
}

/* The arrays and the counts that all steps share. */
typedef struct run {
  cell *cells;
  double *a, *b; /* b receives x */
  hone_batch batch;
  long systems;
  double worst_bound, solve_s;
  int status;
} run;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Corrects z in all cells; returns the largest correction, or NaN if a system
   was not accepted. */
static double correct(run *r, double h) {
  hone_report report = HONE_REPORT_INIT;
  double largest = 0.0;
  for (int k = 0; k < CELLS; k++)
    newton(&r->cells[k], h, r->a + k * N * N, r->b + k * N);
  const double start = now_s();
  r->status = hone_batch_solve(&r->batch, NULL, NULL, &report);
  r->solve_s += now_s() - start;
  r->systems += CELLS;
  if (r->status != HONE_OK) {
    fprintf(stderr, "chemistry: %s; %s\n", hone_status_text(r->status),
            report.reason);
    return (double)NAN;
  }
  r->worst_bound = fmax(r->worst_bound, report.forward_error);
  for (int k = 0; k < CELLS; k++)
    for (int i = 0; i < N; i++) {
      const double d = r->b[k * N + i];
      r->cells[k].z[i / SPECIES][i % SPECIES] += d;
      largest = fmax(largest, fabs(d) / size_of[i % SPECIES]);
    }
  return largest;
}

/* Advances all cells by h; returns false if Newton's method fails. */
static int step(run *r, double h) {
  int settles = 0;
  for (int k = 0; k < CELLS; k++)
    for (int i = 0; i < N; i++)
      r->cells[k].z[i / SPECIES][i % SPECIES] = 0.0;
  for (int i = 0; i < MAX_NEWTON && !settles && r->status == HONE_OK; i++)
    settles = correct(r, h) <= settled;
  for (int k = 0; k < CELLS; k++)
    for (int i = 0; i < SPECIES; i++)
      r->cells[k].y[i] += r->cells[k].z[STAGES - 1][i];
  return settles;
}

/* Prints the cells whose answer is known; returns the largest error, relative
   to each concentration. */
static double compare(const run *r) {
  double error = 0.0;
  printf("%7s  %12s  %15s  %12s  %8s\n", "s", "A", "B", "C", "error");
  for (int i = 0; i < KNOWN; i++) {
    const cell *c = &r->cells[i * (CELLS - 1) / (KNOWN - 1)];
    double off = 0.0;
    for (int k = 0; k < SPECIES; k++)
      off = fmax(off, fabs(c->y[k] / known[i].y[k] - 1.0));
    printf("%7.2f  %12.10f  %15.9e  %12.10f  %8.1e\n", c->s, c->y[0], c->y[1],
           c->y[2], off);
    error = fmax(error, off);
  }
  return error;
}

static int integrate(run *r) {
  int settles = 1;
  double loss = 0.0, h = end * (growth - 1.0) / (pow(growth, STEPS) - 1.0);
  for (int k = 0; k < CELLS; k++)
    r->cells[k] = (cell){.s = pow(10.0, -2.0 + 3.0 * k / (CELLS - 1)),
                         .y = {1.0, 0.0, 0.0}};
  printf("Robertson's chemistry in %d cells, rates times s, at t = %.0f\n\n",
         CELLS, end);
  for (int i = 0; i < STEPS && settles; i++, h *= growth)
    settles = step(r, h);
  if (!settles)
    fprintf(stderr, "chemistry: Newton's method does not settle\n");
  const double error = compare(r);
  for (int k = 0; k < CELLS; k++) {
    const double *y = r->cells[k].y;
    const double lost = fabs(y[0] + y[1] + y[2] - 1.0);
    loss = lost <= loss ? loss : lost; /* a NaN stays */
  }
  const int right = settles && error <= allowed_error && loss <= allowed_loss;
  printf(
      "\nsystems  %ld of order %d, %.2f us each; bound on their errors %.1e\n"
      "loss     %.1e, largest |A + B + C - 1| (allowed %.0e)\n"
      "error    %.1e: %s (allowed %.0e)\n",
      r->systems, N, 1e6 * r->solve_s / (double)r->systems, r->worst_bound,
      loss, allowed_loss, error, right ? "right" : "WRONG", allowed_error);
  return right;
}

int main(void) {
  run r = {.batch = HONE_BATCH_INIT};
  int right = 0;
  r.cells = malloc(CELLS * sizeof *r.cells);
  r.a = malloc(CELLS * N * N * sizeof *r.a);
  r.b = malloc(CELLS * N * sizeof *r.b);
  r.batch.count = CELLS, r.batch.n = N, r.batch.nrhs = 1;
  r.batch.a = r.a, r.batch.lda = N, r.batch.stride_a = (int64_t)N * N;
  r.batch.b = r.b, r.batch.ldb = N, r.batch.stride_b = N;
  r.batch.x = r.b, r.batch.ldx = N, r.batch.stride_x = N;
  set_coefficients();
  if (r.cells != NULL && r.a != NULL && r.b != NULL)
    right = integrate(&r);
  free(r.cells);
  free(r.a);
  free(r.b);
  return right ? 0 : 1;
}
