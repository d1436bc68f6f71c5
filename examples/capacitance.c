/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capacitance of a unit cube, by boundary elements.
 *
 * A conducting cube of edge a = 1 held at unit potential carries the surface
 * charge s(y) that satisfies, at every point x of its surface,
 *
 *     integral over the surface of  s(y) / |x - y|  dS(y)  =  1,
 *
 * and its capacitance is given by C / (4 pi eps0 a) = the integral of s. There
 * is no closed formula. Here s is constant on rectangular panels, the equation
 * is imposed at the panels' centres, and 1/|x - y| is integrated exactly over a
 * panel, which gives a dense, unsymmetric system. The charge density grows
 * towards the edges, like the distance to the power -1/3, so that the panels
 * get narrower there. Richardson extrapolation over the last two grids removes
 * the leading error, which turns five correct digits into six.
 *
 * The answer is checked against 0.6606782 +- 1e-7 (C.-O. Hwang, M. Mascagni,
 * "Electrical capacitance of the unit cube", J. Appl. Phys. 95, 3798, 2004).
 * The exit status is 0 if it agrees, and 1 otherwise. Read next:
 * examples/many_rhs.c.
 */
#include "api/hone.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_EDGE = 20, FACES = 6 };

static const double known = 0.6606782;
static const double allowed = 2e-6;
static const double grading = 3.0; /* panel borders lie at t^grading */
static const double order = 3.0;   /* error of C: m^-order (measured: 2.96) */

/* Sets the borders of m graded panels on [0, 1], symmetric about 1/2; m is
   even. */
static void grade(int m, double *border) {
  for (int k = 0; k <= m / 2; k++) {
    double t = 2.0 * (double)k / (double)m;
    border[k] = 0.5 * pow(t, grading);
    border[m - k] = 1.0 - border[k];
  }
}

/*
 * Indefinite integral of 1 / sqrt(x^2 + y^2 + z^2) over x and y:
 *     x asinh(y / |x, z|) + y asinh(x / |y, z|) - z atan(x y / (z R))
 */
static double potential(double x, double y, double z) {
  double xz = hypot(x, z);
  double yz = hypot(y, z);
  double value = 0.0;
  if (xz > 0.0)
    value += x * asinh(y / xz);
  if (yz > 0.0)
    value += y * asinh(x / yz);
  if (z > 0.0)
    value -= z * atan(x * y / (z * sqrt(x * x + y * y + z * z)));
  return value;
}

/* Sets point to the place (u, v) of a face. Faces 2d and 2d + 1 are orthogonal
   to axis d, at its coordinates 0 and 1. */
static void centre(int face, double u, double v, double *point) {
  int axis = face / 2;
  point[axis] = (double)(face % 2);
  point[(axis + 1) % 3] = u;
  point[(axis + 2) % 3] = v;
}

/* Sets a row of A: the potential at a point due to unit charge density on each
   panel. */
static void assemble_row(int m, const double *border, const double *point,
                         double *row, int64_t step) {
  double corner[MAX_EDGE + 1][MAX_EDGE + 1];
  for (int face = 0; face < FACES; face++) {
    int axis = face / 2;
    double x = point[(axis + 1) % 3];
    double y = point[(axis + 2) % 3];
    double z = fabs(point[axis] - (double)(face % 2));
    for (int i = 0; i <= m; i++)
      for (int j = 0; j <= m; j++)
        corner[i][j] = potential(border[i] - x, border[j] - y, z);
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        *row = (corner[i + 1][j + 1] - corner[i][j + 1]) -
               (corner[i + 1][j] - corner[i][j]);
        row += step;
      }
  }
}

/* Sets A, b = 1 and the panels' areas; n = 6 m^2. */
static void assemble(int m, double *a, double *b, double *area) {
  double border[MAX_EDGE + 1];
  int64_t n = (int64_t)FACES * m * m;
  int64_t row = 0;
  grade(m, border);
  for (int face = 0; face < FACES; face++)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < m; j++) {
        double point[3];
        centre(face, 0.5 * (border[i] + border[i + 1]),
               0.5 * (border[j] + border[j + 1]), point);
        assemble_row(m, border, point, a + row, n);
        area[row] = (border[i + 1] - border[i]) * (border[j + 1] - border[j]);
        b[row] = 1.0;
        row++;
      }
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Computes the capacitance with m x m panels on each face, and prints a line of
   the table. */
static int solve_cube(int m, double *capacitance) {
  int64_t n = (int64_t)FACES * m * m;
  size_t entries = (size_t)n * (size_t)n;
  double *a = malloc(entries * sizeof *a);
  double *b = malloc((size_t)n * sizeof *b);
  double *s = malloc((size_t)n * sizeof *s);
  double *area = malloc((size_t)n * sizeof *area);
  hone_report report = HONE_REPORT_INIT;
  int status = HONE_NO_MEMORY;
  double start = now_ms();

  if (a == NULL || b == NULL || s == NULL || area == NULL)
    goto done;
  assemble(m, a, b, area);
  double assembled = now_ms();
  status = hone_solve(n, 1, a, n, b, n, s, n, NULL, &report);
  if (status < 0)
    goto done;
  *capacitance = 0.0;
  for (int64_t i = 0; i < n; i++)
    *capacitance += s[i] * area[i];
  printf("%6d  %6" PRId64 "  %.8f  %6d  %14.1e  %8.1f  %8.1f  %s\n", m, n,
         *capacitance, status, report.backward_error, assembled - start,
         now_ms() - assembled, report.path);
done:
  if (status != HONE_OK)
    fprintf(stderr, "capacitance: n = %" PRId64 ": %s\n", n,
            hone_status_text(status));
  free(a);
  free(b);
  free(s);
  free(area);
  return status;
}

int main(void) {
  const int edges[] = {4, 8, 12, 16, MAX_EDGE};
  const int count = (int)(sizeof edges / sizeof edges[0]);
  double c[sizeof edges / sizeof edges[0]];

  printf("Capacitance of a unit cube, C / (4 pi eps0 a), m x m panels on "
         "each face\n\n");
  printf("%6s  %6s  %10s  %6s  %14s  %8s  %8s  %s\n", "m", "n", "C", "status",
         "backward error", "build ms", "solve ms", "path");
  for (int k = 0; k < count; k++)
    if (solve_cube(edges[k], &c[k]) != HONE_OK)
      return 1;

  /* C(m) = C + e m^-order; e is eliminated from the last two grids. */
  double ratio =
      pow((double)edges[count - 1] / (double)edges[count - 2], order);
  double best = (ratio * c[count - 1] - c[count - 2]) / (ratio - 1.0);
  double error = fabs(best - known);
  int right = error <= allowed;
  printf("\nextrapolated  %.7f\n", best);
  printf("known         %.7f  (Hwang & Mascagni 2004, +- 1e-7)\n", known);
  printf("difference    %.1e: %s (allowed %.0e)\n", error,
         right ? "right" : "WRONG", allowed);
  return right ? 0 : 1;
}
