/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waves scattered by a cylinder, by a boundary integral equation.
 *
 * A plane wave exp(i k d.x) meets a cylinder on which the field vanishes: a
 * conductor for an electric field along its axis, or a soft one for sound. The
 * scattered field is sought as that of a layer phi on the contour,
 *
 *     u(x) = integral of (dG(x, y) / dn(y) - i k G(x, y)) phi(y) ds(y),
 *
 * where G = i/4 H0(k |x - y|), and the boundary condition gives an equation of
 * the second kind that has one solution at any frequency (Brakhage & Werner
 * 1965). It is discretized by Kress's quadrature (D. Colton, R. Kress, "Inverse
 * Acoustic and Electromagnetic Scattering Theory", section 3.5), which splits
 * the logarithm off. Its error falls faster than any power of 1/n, so that with
 * enough nodes nothing is wrong but rounding errors, and the answer shows
 * whether the linear system was solved to double precision.
 *
 * Both answers are known. For a circle the far field is a series of Bessel
 * functions (Rayleigh 1881). For the kite, which no coordinates fit, the
 * boundary values are those of a source inside it: then the field outside is
 * that of the source. The nodes of the circle are not equidistant, since the
 * matrix of equidistant ones would be circulant.
 *
 * The table has the echo width 2 pi |f|^2 in the direction from which the wave
 * comes (f is the far field), and the largest error of f in 64 directions. The
 * exit status is 0 if f agrees, and 1 otherwise. Read next: capacitance.c.
 */
#define _XOPEN_SOURCE 700 /* jn, yn */
#include "api/hone.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DIRECTIONS = 64 };

static const double pi = 3.14159265358979323846;
static const double euler = 0.57721566490153286061;
static const double allowed = 1e-11; /* error of the far field, relative to its
                                        largest value */

/* A point of the contour, and its derivatives by the parameter. */
typedef struct node {
  double x, y, dx, dy, ddx, ddy;
} node;

/* A problem and its answer: k is the wave number, and the contours have radius
   about 1.
 */
typedef struct problem {
  const char *name;
  double k;
  int64_t n; /* nodes, even */
  node (*contour)(double t);
  /* The scattered field on the contour, and far away in the direction of an
     angle, without exp(i k r) / sqrt(r). */
  hone_complex (*boundary)(double k, double x, double y);
  hone_complex (*far)(double k, double angle);
} problem;

static const hone_complex i1 = (hone_complex)I;

/* exp(i t) */
static hone_complex cis(double t) { return cos(t) + sin(t) * i1; }

/* Hankel functions of the first kind. */
static hone_complex hankel(int order, double x) {
  return jn(order, x) + yn(order, x) * i1;
}

/* ---- The circle, met by a wave along the axis of x ---- */

static node circle(double t) {
  const double s = t + 0.3 * sin(t), ds = 1.0 + 0.3 * cos(t);
  const double dds = -0.3 * sin(t), c = cos(s), v = sin(s);
  return (node){
      c, v, -v * ds, c * ds, -c * ds * ds - v * dds, -v * ds * ds + c * dds};
}

static hone_complex minus_plane_wave(double k, double x, double y) {
  (void)y;
  return -cis(k * x);
}

/* - exp(-i pi/4) sqrt(2 / (pi k)) sum over m of Jm(k) / Hm(k) exp(i m angle) */
static hone_complex far_of_circle(double k, double angle) {
  hone_complex sum = j0(k) / hankel(0, k);
  for (int m = 1; m < (int)k + 60; m++)
    sum += 2.0 * cos(m * angle) * jn(m, k) / hankel(m, k);
  return -cis(-pi / 4.0) * sqrt(2.0 / (pi * k)) * sum;
}

/* ---- The kite, with a source inside ---- */

static const double source_x = -0.2, source_y = 0.3;

static node kite(double t) {
  return (node){cos(t) + 0.65 * cos(2.0 * t) - 0.65, 1.5 * sin(t),
                -sin(t) - 1.3 * sin(2.0 * t),        1.5 * cos(t),
                -cos(t) - 2.6 * cos(2.0 * t),        -1.5 * sin(t)};
}

static hone_complex source(double k, double x, double y) {
  return 0.25 * i1 * hankel(0, k * hypot(x - source_x, y - source_y));
}

static hone_complex far_of_source(double k, double angle) {
  return cis(pi / 4.0 - k * (cos(angle) * source_x + sin(angle) * source_y)) /
         sqrt(8.0 * pi * k);
}

/* ---- The integral equation ---- */

/* The weights of the logarithm, for nodes so many places apart:
   r_j = - 4 pi/n (sum over m < n/2 of cos(m t_j) / m + cos(n/2 t_j) / n) */
static void weights(int64_t n, double *r) {
  for (int64_t j = 0; j < n; j++) {
    double sum = (j % 2 ? -1.0 : 1.0) / (double)n;
    for (int64_t m = n / 2 - 1; m > 0; m--)
      sum += cos(2.0 * pi * (double)(m * j % n) / (double)n) / (double)m;
    r[j] = -4.0 * pi / (double)n * sum;
  }
}

/* The kernel at different nodes is *singular ln(4 sin^2((t - s) / 2)) plus what
   is returned; distance is t - s. */
static hone_complex kernel(double k, const node *at, const node *from,
                           double distance, hone_complex *singular) {
  const double x = at->x - from->x, y = at->y - from->y, r = hypot(x, y);
  const double speed = hypot(from->dx, from->dy);
  const double turn = (from->dy * x - from->dx * y) / r;
  const hone_complex h0 = hankel(0, k * r), h1 = hankel(1, k * r);
  *singular = k / (2.0 * pi) * (turn * creal(h1) - i1 * (speed * creal(h0)));
  return -0.5 * k * (i1 * turn * h1 + speed * h0) -
         *singular * 2.0 * log(2.0 * fabs(sin(0.5 * distance)));
}

/* Its limits where the nodes are one. */
static hone_complex kernel_at_node(double k, const node *at,
                                   hone_complex *singular) {
  const double speed = hypot(at->dx, at->dy);
  const double bend = at->dx * at->ddy - at->dy * at->ddx;
  *singular = -k * speed / (2.0 * pi) * i1;
  return bend / (2.0 * pi * speed * speed) +
         i1 * k * speed * (0.5 * i1 - (euler + log(0.5 * k * speed)) / pi);
}

/* phi - integral of the kernel times phi = 2 * boundary values */
static void assemble(const problem *p, const node *nodes, const double *weight,
                     hone_complex *a, hone_complex *b) {
  const int64_t n = p->n;
  const double step = 2.0 * pi / (double)n;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t apart = i > j ? i - j : j - i;
      hone_complex singular = 0.0;
      const hone_complex smooth =
          i == j ? kernel_at_node(p->k, &nodes[i], &singular)
                 : kernel(p->k, &nodes[i], &nodes[j], step * (double)apart,
                          &singular);
      a[i + j * n] = (i == j) - weight[apart] * singular - step * smooth;
    }
  for (int64_t i = 0; i < n; i++)
    b[i] = 2.0 * p->boundary(p->k, nodes[i].x, nodes[i].y);
}

/* exp(-i pi/4) / sqrt(8 pi k) integral of (k n.e + k) exp(-i k e.y) phi ds */
static hone_complex far_field(const problem *p, const node *nodes,
                              const hone_complex *phi, double angle) {
  const double ex = cos(angle), ey = sin(angle);
  hone_complex sum = 0.0;
  for (int64_t j = 0; j < p->n; j++) {
    const node *at = &nodes[j];
    sum += p->k * (at->dy * ex - at->dx * ey + hypot(at->dx, at->dy)) *
           cis(-p->k * (ex * at->x + ey * at->y)) * phi[j];
  }
  return cis(-pi / 4.0) / sqrt(8.0 * pi * p->k) * 2.0 * pi / (double)p->n * sum;
}

/* Returns the largest error of the far field, relative to its largest value. */
static double error_far_away(const problem *p, const node *nodes,
                             const hone_complex *phi) {
  double error = 0.0, largest = 0.0;
  for (int d = 0; d < DIRECTIONS; d++) {
    const double angle = 2.0 * pi * d / DIRECTIONS;
    const hone_complex known = p->far(p->k, angle);
    const double off = cabs(far_field(p, nodes, phi, angle) - known);
    error = isnan(error) || off <= error ? error : off; /* a NaN stays */
    largest = fmax(largest, cabs(known));
  }
  return error / largest;
}

/* ---- The table ---- */

static double width(hone_complex far) {
  return 2.0 * pi * cabs(far) * cabs(far);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Solves a problem, prints its line, and returns the error of the far field, or
   NaN if x was not accepted. */
static double solve(const problem *p) {
  const int64_t n = p->n;
  const size_t count = (size_t)n;
  hone_complex *a = malloc(count * count * sizeof *a);
  hone_complex *b = malloc(count * sizeof *b);
  hone_complex *phi = malloc(count * sizeof *phi);
  node *nodes = malloc(count * sizeof *nodes);
  double *weight = malloc(count * sizeof *weight);
  double error = (double)NAN;
  hone_report report = HONE_REPORT_INIT;
  int status = HONE_NO_MEMORY;
  if (!a || !b || !phi || !nodes || !weight)
    goto done;
  const double start = now_ms();
  for (int64_t i = 0; i < n; i++)
    nodes[i] = p->contour(2.0 * pi * (double)i / (double)n);
  weights(n, weight);
  assemble(p, nodes, weight, a, b);
  const double assembled = now_ms();
  status = hone_z_solve(n, 1, a, n, b, n, phi, n, NULL, &report);
  const double solved = now_ms();
  if (status != HONE_OK)
    goto done;
  error = error_far_away(p, nodes, phi);
  const double echo = width(far_field(p, nodes, phi, pi));
  printf(
      "%-7s %4.0f %5" PRId64 "  %.12f  %9.1e  %8.1e  %8.1e  %8.1f  %8.1f  %s\n",
      p->name, p->k, n, echo, error, report.backward_error,
      report.forward_error, assembled - start, solved - assembled, report.path);
done:
  if (status != HONE_OK)
    fprintf(stderr, "scattering: n = %" PRId64 ": %s\n", n,
            hone_status_text(status));
  free(a);
  free(b);
  free(phi);
  free(nodes);
  free(weight);
  return error;
}

int main(void) {
  static const problem problems[] = {
      {"circle", 100.0, 256, circle, minus_plane_wave, far_of_circle},
      {"circle", 100.0, 384, circle, minus_plane_wave, far_of_circle},
      {"circle", 100.0, 512, circle, minus_plane_wave, far_of_circle},
      {"circle", 100.0, 1024, circle, minus_plane_wave, far_of_circle},
      {"kite", 100.0, 1024, kite, source, far_of_source},
  };
  double error[5];
  printf("Waves scattered by a cylinder of wave number k, n nodes\n\n"
         "%-7s %4s %5s  %15s  %9s  %8s  %8s  %8s  %8s  %s\n",
         "contour", "k", "n", "echo width", "error", "backward", "bound",
         "build ms", "solve ms", "path");
  for (int i = 0; i < 5; i++)
    error[i] = solve(&problems[i]);
  const int right = error[3] <= allowed && error[4] <= allowed;
  printf("\nknown    %.12f  of the circle (its series of Bessel functions)\n"
         "         %.12f  of the source in the kite\n"
         "error    %.1e of the largest |f|: %s (allowed %.0e)\n",
         width(far_of_circle(100.0, pi)), width(far_of_source(100.0, pi)),
         fmax(error[3], error[4]), right ? "right" : "WRONG", allowed);
  return right ? 0 : 1;
}
