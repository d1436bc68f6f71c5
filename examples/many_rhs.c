/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One factorization, many right-hand sides: the steady temperature of a
 * star-shaped plate while a line source of heat makes a quarter turn around it.
 *
 * Inside the plate the temperature u is harmonic, and on the border the source
 * imposes u(x) = f(x) = log |x - source|. The solution is represented as a
 * double layer of strength s on the border (outward normal m_y),
 *
 *     u(x) = 1 / (2 pi)  integral of  s(y) (x - y).m_y / |x - y|^2  ds(y),
 *
 * which leads to the equation of the second kind  -s/2 + K s = f. The
 * trapezoidal rule on a smooth closed curve converges exponentially
 * (Nystrom's method), so the n x n system is dense and its only error is
 * rounding. The matrix depends on the plate alone: every position of the
 * source is one more right-hand side.
 *
 * Since the source is outside, the exact temperature is log |x - source|, with
 * which every solution is compared at points inside. The right-hand sides are
 * solved in three ways: one by one, one by one starting from an extrapolation
 * of the last solutions (warm start), and all at once. The exit status is 0 if
 * all solutions are right, and 1 otherwise. Read next: hone_solver in
 * api/hone.h.
 */
#include "api/hone.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1500, SOURCES = 60, POINTS = 16 };

static const double pi = 3.14159265358979323846;
static const double allowed = 1e-12;

/* A node of the border: its coordinates, its weighted normal m_y ds, and the
   curvature term, the kernel's limit there. */
struct node {
  double x, y, mx, my, curvature;
};

/* The border is r(t) = 1 + 0.3 cos 5t, with nodes at t = 2 pi k / N. */
static void make_border(struct node *border) {
  double h = 2.0 * pi / (double)N;
  for (int k = 0; k < N; k++) {
    double t = h * (double)k;
    double r = 1.0 + 0.3 * cos(5.0 * t);
    double r1 = -1.5 * sin(5.0 * t);
    double r2 = -7.5 * cos(5.0 * t);
    border[k].x = r * cos(t);
    border[k].y = r * sin(t);
    /* The outward normal times |dy/dt| is (y', -x'). */
    border[k].mx = h * (r1 * sin(t) + r * cos(t));
    border[k].my = h * (r * sin(t) - r1 * cos(t));
    /* -kappa |dy/dt| h / 2, the limit of the kernel at x = y. */
    border[k].curvature =
        -0.5 * h * (r * r + 2.0 * r1 * r1 - r * r2) / (r * r + r1 * r1);
  }
}

/* (x - y).m_y / |x - y|^2 / (2 pi) times the weight of the node y. */
static double kernel(double x, double y, const struct node *q) {
  double dx = x - q->x;
  double dy = y - q->y;
  return (dx * q->mx + dy * q->my) / (dx * dx + dy * dy) / (2.0 * pi);
}

/* A = -I/2 + K, column by column. */
static void assemble(const struct node *border, double *a) {
  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++)
      a[i + (int64_t)j * N] =
          i == j ? -0.5 + border[i].curvature / (2.0 * pi)
                 : kernel(border[i].x, border[i].y, &border[j]);
}

/* Returns the temperature at (x, y) for the k-th place of the source, at a
   distance of 2 from the origin. */
static double exact(double x, double y, int k) {
  double angle = 2.0 * pi * (double)k / (4.0 * SOURCES);
  return log(hypot(x - 2.0 * cos(angle), y - 2.0 * sin(angle)));
}

static void make_rhs(const struct node *border, double *b) {
  for (int k = 0; k < SOURCES; k++)
    for (int i = 0; i < N; i++)
      b[i + (int64_t)k * N] = exact(border[i].x, border[i].y, k);
}

/* Returns the largest error of the temperature on the circle of radius 1/2. */
static double largest_error(const struct node *border, const double *s) {
  double largest = 0.0;
  for (int k = 0; k < SOURCES; k++)
    for (int p = 0; p < POINTS; p++) {
      double x = 0.5 * cos(2.0 * pi * (double)p / POINTS);
      double y = 0.5 * sin(2.0 * pi * (double)p / POINTS);
      double u = 0.0;
      for (int j = 0; j < N; j++)
        u += kernel(x, y, &border[j]) * s[j + (int64_t)k * N];
      double error = fabs(u - exact(x, y, k));
      if (isnan(error))
        return error;
      largest = error > largest ? error : largest;
    }
  return largest;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* x0 = 3 s[k-1] - 3 s[k-2] + s[k-3], since the source moves smoothly. */
static const double *extrapolate(const double *s, int k, double *x0) {
  if (k < 3)
    return NULL;
  const double *last = s + (int64_t)(k - 1) * N;
  for (int i = 0; i < N; i++)
    x0[i] = 3.0 * (last[i] - last[i - N]) + last[i - 2 * N];
  return x0;
}

/* Solves one right-hand side after the other, with a warm start if x0, its work
   space, is not NULL. */
static int one_by_one(hone_solver *solver, const double *b, double *s,
                      double *x0, int *corrections) {
  *corrections = 0;
  for (int k = 0; k < SOURCES; k++) {
    const double *start = x0 != NULL ? extrapolate(s, k, x0) : NULL;
    hone_options options = HONE_OPTIONS_INIT;
    hone_report report = HONE_REPORT_INIT;
    options.x0 = start;
    options.ldx0 = N;
    int status = hone_solver_solve(solver, 1, b + (int64_t)k * N, N,
                                   s + (int64_t)k * N, N, &options, &report);
    if (status != HONE_OK)
      return status;
    *corrections += report.iterations;
  }
  return HONE_OK;
}

static void print_line(const char *what, double ms, double corrections,
                       double error) {
  printf("%-28s  %9.2f  %11.2f  %10.1e\n", what, ms / SOURCES, corrections,
         error);
}

/* Solves all right-hand sides in three ways and sets *error to the largest
   error. */
static int solve_all(hone_solver *solver, const struct node *border,
                     const double *b, double *s, double *x0, double *error) {
  hone_report report = HONE_REPORT_INIT;
  double e[3];
  int corrections = 0;
  double start = now_ms();
  int status = one_by_one(solver, b, s, NULL, &corrections);
  if (status != HONE_OK)
    return status;
  double ms = now_ms() - start;
  e[0] = largest_error(border, s);
  print_line("one by one", ms, (double)corrections / SOURCES, e[0]);

  start = now_ms();
  status = one_by_one(solver, b, s, x0, &corrections);
  if (status != HONE_OK)
    return status;
  ms = now_ms() - start;
  e[1] = largest_error(border, s);
  print_line("one by one, warm start", ms, (double)corrections / SOURCES, e[1]);

  start = now_ms();
  status = hone_solver_solve(solver, SOURCES, b, N, s, N, NULL, &report);
  if (status != HONE_OK)
    return status;
  ms = now_ms() - start;
  e[2] = largest_error(border, s);
  print_line("all at once", ms, (double)report.iterations, e[2]);

  *error = e[0];
  for (int i = 1; i < 3; i++)
    if (!(e[i] <= *error))
      *error = e[i];
  return HONE_OK;
}

int main(void) {
  size_t n = N;
  struct node *border = malloc(n * sizeof *border);
  double *a = malloc(n * n * sizeof *a);
  double *b = malloc(n * SOURCES * sizeof *b);
  double *s = malloc(n * SOURCES * sizeof *s);
  double *x0 = malloc(n * sizeof *x0);
  hone_solver *solver = NULL;
  double error = (double)INFINITY;
  int status = HONE_NO_MEMORY;

  if (!border || !a || !b || !s || !x0)
    goto done;
  make_border(border);
  assemble(border, a);
  make_rhs(border, b);
  printf("Temperature of a star-shaped plate, n = %d, %d places of the "
         "source\n\n",
         N, SOURCES);

  double start = now_ms();
  status = hone_solver_create(&solver, N, NULL);
  if (status != HONE_OK)
    goto done;
  status = hone_solver_factor(solver, a, N, NULL);
  if (status != HONE_OK)
    goto done;
  printf("factored once in %.1f ms\n\n", now_ms() - start);
  printf("%-28s  %9s  %11s  %10s\n", "right-hand sides", "ms each",
         "corrections", "error");
  status = solve_all(solver, border, b, s, x0, &error);
done:
  if (status == HONE_OK)
    printf("\nlargest error at the points inside: %.1e: %s (allowed %.0e)\n",
           error, error <= allowed ? "right" : "WRONG", allowed);
  else
    fprintf(stderr, "many_rhs: %s\n", hone_status_text(status));
  hone_solver_destroy(&solver);
  free(border);
  free(a);
  free(b);
  free(s);
  free(x0);
  return error <= allowed ? 0 : 1;
}
