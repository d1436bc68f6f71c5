/* SPDX-License-Identifier: BSD-3-Clause */
/* Discretized models, as engineering programs pass them to a dense solver. */
#include "tests/gallery/families.h"

#include <math.h>
#include <stdlib.h>

static const double PI = 3.141592653589793;

/* ---- Radial basis functions: random points of the unit square ---- */

static void radial(gallery_task *t, double (*phi)(double squared)) {
  const double shape = pow(10.0, -t->parameter);
  double *x = gallery_memory(2 * t->n, sizeof *x), *y = x + t->n;
  for (int64_t i = 0; i < 2 * t->n; i++)
    x[i] = gallery_uniform(&t->rng);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++) {
      double dx = shape * (x[i] - x[j]), dy = shape * (y[i] - y[j]);
      *gallery_at(t, i, j) = phi(dx * dx + dy * dy);
    }
  free(x);
}

static double gauss(double squared) { return exp(-squared); }
static double multiquadric(double squared) { return sqrt(1.0 + squared); }

void gallery_make_rbf_gauss(gallery_task *t) { radial(t, gauss); }
void gallery_make_rbf_multiquadric(gallery_task *t) { radial(t, multiquadric); }

/* ---- Boundary elements ---- */

/* The integral of -log|x - y| / (2 pi) over the panel from p to q. */
static double panel(const double *x, const double *p, const double *q) {
  const double dx = q[0] - p[0], dy = q[1] - p[1], length = hypot(dx, dy);
  const double tx = dx / length, ty = dy / length;
  const double a = (p[0] - x[0]) * tx + (p[1] - x[1]) * ty, b = a + length;
  const double h = fabs((p[1] - x[1]) * tx - (p[0] - x[0]) * ty);
  const double ra = hypot(a, h), rb = hypot(b, h);
  double sum = -length;
  sum += rb > 0.0 ? b * log(rb) : 0.0;
  sum -= ra > 0.0 ? a * log(ra) : 0.0;
  sum += h > 0.0 ? h * (atan2(b, h) - atan2(a, h)) : 0.0;
  return -sum / (2.0 * PI);
}

/* Corner k of 0 .. m of circle c; the radius is 0.4, that of the second circle
   is smaller. */
static void corner(double gap, int64_t c, double k, int64_t m, double *p) {
  const double radius = c ? 0.25 : 0.4, angle = 2.0 * PI * k / (double)m;
  p[0] = c ? 0.65 + gap - radius * cos(angle) : radius * cos(angle);
  p[1] = radius * sin(angle);
}

void gallery_make_bem_circles(gallery_task *t) {
  const double gap = pow(10.0, -t->parameter);
  const int64_t first = (t->n + 1) / 2, second = t->n - first;
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++) {
      int64_t ci = i >= first, cj = j >= first, mi = ci ? second : first;
      int64_t mj = cj ? second : first, kj = cj ? j - first : j;
      /* At least so many panels that none is its own reverse. */
      double x[2], p[2], q[2], end[2], scale = mj < 3 ? 3.0 : 1.0;
      double ki = (double)(ci ? i - first : i), s = mi < 3 ? 3.0 : 1.0;
      corner(gap, ci, ki, (int64_t)s * mi, x);
      corner(gap, ci, ki + 1.0, (int64_t)s * mi, end);
      corner(gap, cj, (double)kj, (int64_t)scale * mj, p);
      corner(gap, cj, (double)kj + 1.0, (int64_t)scale * mj, q);
      x[0] = 0.5 * (x[0] + end[0]);
      x[1] = 0.5 * (x[1] + end[1]);
      *gallery_at(t, i, j) = panel(x, p, q);
    }
}

/* Point k of m, spread evenly over the sphere (Fibonacci). The first point of
   the second sphere is the one nearest to the other sphere. */
static void point(double gap, int64_t c, int64_t k, int64_t m, double *p) {
  const double z = 1.0 - 2.0 * ((double)k + 0.5) / (double)m;
  const double r = sqrt(1.0 - z * z),
               angle = PI * (3.0 - sqrt(5.0)) * (double)k;
  p[0] = r * cos(angle);
  p[1] = r * sin(angle);
  p[2] = c ? -z + 2.0 * fabs(1.0 - 1.0 / (double)m) + gap : z;
}

void gallery_make_bem_spheres(gallery_task *t) {
  const double gap = pow(10.0, -t->parameter);
  const int64_t first = (t->n + 1) / 2, second = t->n - first;
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++) {
      int64_t ci = i >= first, cj = j >= first, mj = cj ? second : first;
      double p[3], q[3], area = 4.0 * PI / (double)mj;
      point(gap, ci, ci ? i - first : i, ci ? second : first, p);
      point(gap, cj, cj ? j - first : j, mj, q);
      double r = hypot(hypot(p[0] - q[0], p[1] - q[1]), p[2] - q[2]);
      /* A panel acts on itself like a flat disc of its area; other panels are
         never nearer than gap. */
      *gallery_at(t, i, j) =
          i == j ? 0.5 * sqrt(area / PI) : area / (4.0 * PI * fmax(r, gap));
    }
}

void gallery_spring(gallery_task *t, int64_t i, int64_t j, double k) {
  *gallery_at(t, i, i) += k;
  *gallery_at(t, j, j) += k;
  *gallery_at(t, i, j) -= k;
  *gallery_at(t, j, i) -= k;
}

/* ---- Grids of nodes, width nodes in a row; the last row may be shorter
   ---- */

static int64_t width_of(int64_t nodes) {
  int64_t w = (int64_t)sqrt((double)nodes);
  return w > 0 ? w : 1;
}

void gallery_make_laplace_neumann(gallery_task *t) {
  const int64_t w = width_of(t->n);
  gallery_zero(t);
  for (int64_t i = 0; i < t->n; i++) {
    if (i % w + 1 < w && i + 1 < t->n)
      gallery_spring(t, i, i + 1, 1.0);
    if (i + w < t->n)
      gallery_spring(t, i, i + w, 1.0);
  }
}

void gallery_make_laplace_dirichlet(gallery_task *t) {
  gallery_make_laplace_neumann(t);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, i) = 4.0;
}

void gallery_make_path_neumann(gallery_task *t) {
  gallery_zero(t);
  for (int64_t i = 0; i + 1 < t->n; i++)
    gallery_spring(t, i, i + 1, (double)(1 + gallery_below(&t->rng, 99)));
}

/* Adds a bar between nodes p and q, whose unknowns are 2 p + c - fixed where
   that is not negative: k d d^T, d = (dx, dy, -dx, -dy). On the grid the
   entries of d d^T are 0, 1 or 1/2, so that sums of integers k stay exact. */
static void bar(gallery_task *t, int64_t fixed, int64_t p, int64_t q, double k,
                const double *d) {
  const int64_t node[2] = {p, q};
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) {
      int64_t i = 2 * node[r / 2] + r % 2 - fixed;
      int64_t j = 2 * node[c / 2] + c % 2 - fixed;
      if (i >= 0 && j >= 0 && i < t->n && j < t->n)
        *gallery_at(t, i, j) +=
            (r / 2 == c / 2 ? 1.0 : -1.0) * k * d[r % 2 + c % 2];
    }
}

/* The stiffness of a bar: an even integer times 10^u over these decades. */
static double stiffness(gallery_task *t, double decades) {
  double k = (double)(2 * (1 + gallery_below(&t->rng, 50)));
  return decades > 0.0 ? k * pow(10.0, decades * gallery_uniform(&t->rng)) : k;
}

/* A strip of squares with both diagonals; node 2 k is below, node 2 k + 1
   above. fixed: the number of first unknowns that supports hold. open: the
   square that has no diagonals; -1: none. */
static void strip(gallery_task *t, int64_t fixed, double decades,
                  int64_t open) {
  /* The entries xx, xy and yy of d d^T. */
  static const double along[3] = {1.0, 0.0, 0.0}, up[3] = {0.0, 0.0, 1.0};
  static const double rising[3] = {0.5, 0.5, 0.5},
                      falling[3] = {0.5, -0.5, 0.5};
  const int64_t nodes = (t->n + fixed + 1) / 2;
  gallery_zero(t);
  for (int64_t p = 0; p < nodes; p += 2) {
    if (p + 1 < nodes)
      bar(t, fixed, p, p + 1, stiffness(t, decades), up);
    if (p + 2 < nodes)
      bar(t, fixed, p, p + 2, stiffness(t, decades), along);
    if (p + 3 < nodes) {
      bar(t, fixed, p + 1, p + 3, stiffness(t, decades), along);
      if (p != 2 * open)
        bar(t, fixed, p, p + 3, stiffness(t, decades), rising);
    }
    if (p + 2 < nodes && p != 2 * open)
      bar(t, fixed, p + 1, p + 2, stiffness(t, decades), falling);
  }
}

/* Four supports hold the first two nodes. */
void gallery_make_truss(gallery_task *t) { strip(t, 4, 0.0, -1); }
void gallery_make_truss_units(gallery_task *t) {
  strip(t, 4, t->parameter, -1);
}

/* If the number of unknowns is odd, y of the last node is held, which leaves
   two of the three rigid motions. With one unknown there is no bar. */
void gallery_make_truss_free(gallery_task *t) { strip(t, 0, 0.0, -1); }

/* A truss without the diagonals of one square, so that all beyond it moves up
   and down freely. brace: the stiffness of a diagonal that is left. An odd
   unknown stands alone. */
static void mechanism(gallery_task *t, double brace) {
  static const double falling[3] = {0.5, -0.5, 0.5};
  gallery_task even = *t;
  even.n = t->n - t->n % 2;
  gallery_zero(t);
  const int64_t nodes = even.n / 2 + 2;
  const int64_t open = gallery_below(&even.rng, (nodes - 1) / 2);
  strip(&even, 4, 0.0, open);
  if (brace > 0.0)
    bar(&even, 4, 2 * open + 1, 2 * open + 2, brace, falling);
  if (t->n % 2)
    *gallery_at(t, t->n - 1, t->n - 1) = 1.0;
}

void gallery_make_truss_mechanism(gallery_task *t) { mechanism(t, 0.0); }
void gallery_make_truss_braced(gallery_task *t) {
  mechanism(t, exp2(-floor(t->parameter)));
}

/* ---- Saddle points ---- */

static void saddle(gallery_task *t, double size) {
  const int64_t m = t->n - t->n / 3; /* H is m x m, B is n/3 x m */
  gallery_random(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i <= j; i++) {
      double *a = gallery_at(t, i, j);
      if (i >= m)
        *a = 0.0;
      else if (i == j)
        *a = size * (double)m;
      else if (j < m)
        *a *= size;
    }
  gallery_copy_upper(t);
}

void gallery_make_saddle(gallery_task *t) { saddle(t, 1.0); }
void gallery_make_saddle_units(gallery_task *t) {
  saddle(t, pow(10.0, t->parameter));
}
