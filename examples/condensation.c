/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Static condensation of finite elements, by one batch of small systems.
 *
 * Poisson's equation, -div grad u = f, on the unit square with u = 0 on its
 * boundary, by rectangular elements of degree 3 on a graded mesh. The unknowns
 * inside an element, i, meet no other element. Of its equations
 *
 *     K_ii u_i + K_ib u_b = f_i
 *     K_bi u_i + K_bb u_b = f_b + what the neighbours add
 *
 * the first are solved for all elements at once, with a right-hand side for
 * each column of K_ib and one for f_i:
 *
 *     K_ii [X, v] = [K_ib, f_i],    S = K_bb - K_bi X,    g = f_b - K_bi v
 *
 * The sum of all S has the unknowns on the edges only, and is solved as a dense
 * system. Afterwards u_i = v - X u_b.
 *
 * The solution is known, sin(2 pi x) sin(pi y), and the error in the norm of L2
 * falls with the power DEGREE + 1 of the size of the elements. The exit status
 * is 0 if it does, and 1 otherwise. Read next: capacitance.c.
 */
#include "api/hone.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEGREE = 3, LINE = DEGREE + 1, NODES = LINE * LINE }; /* DEGREE 2 to 4 */
enum { INNER = (DEGREE - 1) * (DEGREE - 1), OUTER = NODES - INNER };
enum { COLUMNS = OUTER + 1 }; /* of K_ib and f_i; the nodes inside come first */
enum { POINTS = 6 };          /* of the quadrature, on a line */
enum { FINEST = 24, ELEMENTS = FINEST * FINEST }; /* of the finest mesh */
enum { ALL = (FINEST * DEGREE + 1) * (FINEST * DEGREE + 1) }; /* its nodes */

static const double pi = 3.14159265358979323846;
static const double allowed = 0.1; /* from the order of convergence */

static double solution(double x, double y) {
  return sin(2 * pi * x) * sin(pi * y);
}

/* ---- The element [0, 1] x [0, 1] ---- */

/* On a line: Gauss's points, which set_element moves to [0, 1], and weights;
   the shape functions there; the integrals of their products, and of those of
   their derivatives. */
static double at[POINTS] = {-0.9324695142031521, -0.6612093864662645,
                            -0.2386191860831969, 0.2386191860831969,
                            0.6612093864662645,  0.9324695142031521};
static double weight[POINTS] = {0.1713244923791704, 0.3607615730481386,
                                0.4679139345726910, 0.4679139345726910,
                                0.3607615730481386, 0.1713244923791704};
static double shape[POINTS][LINE], mass[LINE][LINE], stiff[LINE][LINE];
static int line[NODES][2]; /* a node's places on the two lines */

static void set_element(void) {
  for (int q = 0; q < POINTS; q++) {
    double slope[LINE];
    at[q] = (1.0 + at[q]) / 2.0, weight[q] /= 2.0;
    for (int i = 0; i < LINE; i++) {
      double value = 1.0, sum = 0.0;
      for (int k = 0; k < LINE; k++)
        if (k != i) {
          value *= (DEGREE * at[q] - k) / (i - k);
          sum += DEGREE / (DEGREE * at[q] - k);
        }
      shape[q][i] = value, slope[i] = value * sum;
    }
    for (int i = 0; i < LINE; i++)
      for (int j = 0; j < LINE; j++) {
        mass[i][j] += weight[q] * shape[q][i] * shape[q][j];
        stiff[i][j] += weight[q] * slope[i] * slope[j];
      }
  }
  for (int c = 0, inner = 0, outer = INNER; c < NODES; c++) {
    const int i = c % LINE, j = c / LINE;
    int *to = line[i % DEGREE && j % DEGREE ? inner++ : outer++];
    to[0] = i, to[1] = j;
  }
}

/* ---- The mesh ---- */

typedef struct mesh {
  int m;                               /* elements on an edge of the square */
  double k_ii[ELEMENTS][INNER][INNER]; /* of each element, by columns; */
  double k_ib[ELEMENTS][COLUMNS][INNER], x[ELEMENTS][COLUMNS][INNER];
  double u[ALL];       /* at all nodes */
  int64_t number[ALL]; /* of each node's unknown; -1: none */
  int64_t n;           /* unknowns after condensation */
  double *s;           /* S, and g as its last column, n x n + 1 */
} mesh;

static mesh whole;

/* The lines of the mesh. */
static double grid(int m, int i) {
  const double t = (double)i / m;
  return 0.7 * t + 0.3 * t * t;
}

/* The place of node c of element e among all nodes. */
static int64_t node(int m, int e, int c) {
  const int64_t i = e % m * DEGREE + line[c][0];
  return i + (e / m * DEGREE + line[c][1]) * (m * DEGREE + 1);
}

static void number_unknowns(mesh *p) {
  const int end = p->m * DEGREE;
  int64_t *number = p->number;
  p->n = 0;
  for (int j = 0; j <= end; j++)
    for (int i = 0; i <= end; i++) {
      const int bound = i == 0 || i == end || j == 0 || j == end;
      const int inner = i % DEGREE != 0 && j % DEGREE != 0;
      *number++ = bound || inner ? -1 : p->n++;
    }
}

/* The matrix of an element, and its load as the last column. */
static void integrate(int m, int e, double k[NODES][NODES + 1]) {
  const double x0 = grid(m, e % m), y0 = grid(m, e / m);
  const double hx = grid(m, e % m + 1) - x0, hy = grid(m, e / m + 1) - y0;
  for (int c = 0; c < NODES; c++) {
    const int *a = line[c];
    k[c][NODES] = 0.0;
    for (int q = 0; q < POINTS; q++)
      for (int r = 0; r < POINTS; r++)
        k[c][NODES] += hx * hy * weight[q] * weight[r] * shape[q][a[0]] *
                       shape[r][a[1]] * 5 * pi * pi *
                       solution(x0 + hx * at[q], y0 + hy * at[r]);
    for (int d = 0; d < NODES; d++) {
      const int *b = line[d];
      k[c][d] = hy / hx * stiff[a[0]][b[0]] * mass[a[1]][b[1]] +
                hx / hy * mass[a[0]][b[0]] * stiff[a[1]][b[1]];
    }
  }
}

static void assemble_inner(mesh *p, int e) {
  double k[NODES][NODES + 1];
  integrate(p->m, e, k);
  for (int i = 0; i < INNER; i++) {
    for (int j = 0; j < INNER; j++)
      p->k_ii[e][j][i] = k[i][j];
    for (int j = 0; j < COLUMNS; j++)
      p->k_ib[e][j][i] = k[i][INNER + j];
  }
}

/* Adds S and g of an element. */
static void add_condensed(mesh *p, int e) {
  double k[NODES][NODES + 1];
  integrate(p->m, e, k);
  for (int c = INNER; c < NODES; c++) {
    const int64_t row = p->number[node(p->m, e, c)];
    for (int j = 0; row >= 0 && j < COLUMNS; j++) {
      double s = k[c][INNER + j];
      for (int i = 0; i < INNER; i++)
        s -= k[c][i] * p->x[e][j][i];
      const int64_t to = j < OUTER ? p->number[node(p->m, e, INNER + j)] : p->n;
      if (to >= 0) /* g is the last column of s */
        p->s[row + to * p->n] += s;
    }
  }
}

/* Puts u_i = v - X u_b in its place; returns the square of the error in L2. */
static double finish(mesh *p, int e) {
  const double x0 = grid(p->m, e % p->m), y0 = grid(p->m, e / p->m);
  const double hx = grid(p->m, e % p->m + 1) - x0;
  const double hy = grid(p->m, e / p->m + 1) - y0;
  double sum = 0.0;
  for (int i = 0; i < INNER; i++) {
    double u = p->x[e][OUTER][i];
    for (int j = 0; j < OUTER; j++)
      u -= p->x[e][j][i] * p->u[node(p->m, e, INNER + j)];
    p->u[node(p->m, e, i)] = u;
  }
  for (int q = 0; q < POINTS; q++)
    for (int r = 0; r < POINTS; r++) {
      double off = -solution(x0 + hx * at[q], y0 + hy * at[r]);
      for (int c = 0; c < NODES; c++)
        off += p->u[node(p->m, e, c)] * shape[q][line[c][0]] *
               shape[r][line[c][1]];
      sum += hx * hy * weight[q] * weight[r] * off * off;
    }
  return sum;
}

/* Solves with m x m elements and prints a line. Returns the error, or NaN if a
   system is not solved. */
static double solve(int m) {
  mesh *p = &whole;
  const int count = m * m, side = m * DEGREE + 1;
  hone_batch batch = HONE_BATCH_INIT;
  hone_report inner = HONE_REPORT_INIT, edges = HONE_REPORT_INIT;
  double sum = 0.0;
  p->m = m;
  number_unknowns(p);
  p->s = calloc((size_t)(p->n * (p->n + 1)), sizeof *p->s);
  if (p->s == NULL)
    return (double)NAN;
  for (int e = 0; e < count; e++)
    assemble_inner(p, e);
  batch.count = count, batch.n = INNER, batch.nrhs = COLUMNS;
  batch.a = p->k_ii[0][0], batch.b = p->k_ib[0][0], batch.x = p->x[0][0];
  batch.lda = batch.ldb = batch.ldx = INNER;
  batch.stride_a = INNER * INNER, batch.stride_b = INNER * COLUMNS;
  batch.stride_x = batch.stride_b;
  int st = hone_batch_solve(&batch, NULL, NULL, &inner);
  for (int e = 0; st == HONE_OK && e < count; e++)
    add_condensed(p, e);
  double *g = p->s + p->n * p->n;
  if (st == HONE_OK)
    st = hone_solve(p->n, 1, p->s, p->n, g, p->n, g, p->n, NULL, &edges);
  for (int i = 0; i < side * side; i++)
    p->u[i] = p->number[i] < 0 ? 0.0 : g[p->number[i]];
  free(p->s);
  for (int e = 0; e < count; e++)
    sum += finish(p, e);
  printf("%4d  %8d  %8d  %9" PRId64 "  %8.1e  %8.1f  %8.1f  %s%s\n", m, count,
         (side - 2) * (side - 2), p->n, sqrt(sum), inner.total_ms,
         edges.total_ms, edges.path, edges.reason);
  return st == HONE_OK ? sqrt(sum) : (double)NAN;
}

int main(void) {
  set_element();
  printf(
      "Elements of degree %d, m x m of them, without their inner unknowns\n\n"
      "%4s  %8s  %8s  %9s  %8s  %8s  %8s  %s\n",
      DEGREE, "m", "elements", "unknowns", "condensed", "error", "batch ms",
      "solve ms", "path of the condensed system");
  (void)solve(FINEST / 4);
  const double coarse = solve(FINEST / 2), fine = solve(FINEST);
  const double order = log2(coarse / fine);
  const int right = fabs(order - (DEGREE + 1)) <= allowed;
  printf("\norder  %.3f: %s (%d, allowed +- %.1f)\n", order,
         right ? "right" : "WRONG", DEGREE + 1, allowed);
  return right ? 0 : 1;
}
