/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse models at the edge of singularity: Helmholtz grids at resonance,
   networks with islands that nothing grounds, dependent constraints; and sparse
   matrices of moderate condition. Those that are singular by construction have
   entries, and sums of entries, that are exact. */
#include "tests/gallery/families.h"

#include <math.h>
#include <stdbool.h>

static const double PI = 3.141592653589793;

/* ---- Helmholtz: a Laplacian shifted by one of its own eigenvalues ---- */

enum { DIRICHLET, NEUMANN, PERIODIC, BOUNDARIES };

/* One direction of a grid. */
typedef struct axis {
  int64_t points, stride;
  int boundary;
} axis;

/* The eigenvalue is 2 - 2 cos(pi times turn / count) for k = 0, 1, ... */
static void angle_of(const axis *x, int64_t k, int64_t *turn, int64_t *count) {
  *turn = x->boundary == DIRICHLET ? k + 1 : x->boundary == NEUMANN ? k : 2 * k;
  *count = x->points + (x->boundary == DIRICHLET);
}

static double any_eigenvalue(gallery_task *t, const axis *x) {
  int64_t turn, count;
  angle_of(x, gallery_below(&t->rng, x->points), &turn, &count);
  return 2.0 - 2.0 * cos(PI * (double)turn / (double)count);
}

/* An eigenvalue that is an integer. If k = 0 is the only one tried that has
   one, that is 0; a Dirichlet boundary without any becomes Neumann. */
static double integer_eigenvalue(gallery_task *t, axis *x) {
  static const int value[12] = {0, -1, 1, 2, 3, -1, 4, -1, 3, 2, 1, -1};
  int64_t turn, count;
  for (int tries = 0; tries < 50; tries++) {
    angle_of(x, gallery_below(&t->rng, x->points), &turn, &count);
    if (6 * turn % count == 0 && value[6 * turn / count % 12] >= 0)
      return (double)value[6 * turn / count % 12];
  }
  if (x->boundary == DIRICHLET)
    x->boundary = NEUMANN;
  return 0.0;
}

/* Adds the second difference along the axis at the first 'nodes' unknowns. */
static void add_differences(gallery_task *t, const axis *x, int64_t nodes) {
  for (int64_t i = 0; i < nodes; i++) {
    const int64_t at = i / x->stride % x->points;
    const bool last = at + 1 == x->points;
    if (!last)
      gallery_spring(t, i, i + x->stride, 1.0);
    else if (x->boundary == PERIODIC)
      gallery_spring(t, i, i - at * x->stride, 1.0);
    if (x->boundary == DIRICHLET)
      *gallery_at(t, i, i) += (double)((at == 0) + last);
  }
}

/* A grid as nearly cubic as n allows; unknowns that are left over stand alone.
   The shift is an eigenvalue, plus an offset. */
static void helmholtz(gallery_task *t, int dimensions, bool exact,
                      double offset) {
  axis axes[3];
  int64_t nodes = 1, left = t->n;
  double shift = offset;
  gallery_zero(t);
  for (int d = 0; d < dimensions; d++) {
    const double side = pow((double)left, 1.0 / (double)(dimensions - d));
    axes[d] = (axis){(int64_t)(side + 1e-9), nodes,
                     (int)gallery_below(&t->rng, BOUNDARIES)};
    shift +=
        exact ? integer_eigenvalue(t, &axes[d]) : any_eigenvalue(t, &axes[d]);
    nodes *= axes[d].points;
    left /= axes[d].points;
  }
  for (int d = 0; d < dimensions; d++)
    add_differences(t, &axes[d], nodes);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, i) = i < nodes ? *gallery_at(t, i, i) - shift : 3.0;
}

/* About 10^-p beside the resonance, and at it from p = 16 on. */
static void near_resonance(gallery_task *t, int dimensions) {
  const double size =
      t->parameter < 16.0 ? pow(10.0, -floor(t->parameter)) : 0.0;
  helmholtz(t, dimensions, false, size * gallery_between(&t->rng, -1.0, 1.0));
}

void gallery_make_helmholtz_1d(gallery_task *t) { near_resonance(t, 1); }
void gallery_make_helmholtz_2d(gallery_task *t) { near_resonance(t, 2); }
void gallery_make_helmholtz_3d(gallery_task *t) { near_resonance(t, 3); }
void gallery_make_helmholtz_singular(gallery_task *t) {
  helmholtz(t, 1 + (int)gallery_below(&t->rng, 3), true, 0.0);
}

/* ---- Networks of conductances ---- */

static double conductance(gallery_task *t, int octaves) {
  return ldexp((double)(1 + gallery_below(&t->rng, 99)),
               octaves > 0 ? (int)gallery_below(&t->rng, octaves + 1) : 0);
}

/* One to three islands, unknown i in island i % islands: a tree and some more
   edges each. One island is grounded through the conductance 'ground' alone, at
   its first node; the others well. */
static void network(gallery_task *t, int octaves, double ground) {
  const int64_t most = t->n < 3 ? t->n : 3;
  const int64_t islands = 1 + gallery_below(&t->rng, most);
  const int64_t island = gallery_below(&t->rng, islands);
  gallery_zero(t);
  for (int64_t k = 0; k < t->n + t->n / 2; k++) {
    const int64_t i = k % t->n;
    if (i < islands)
      continue;
    gallery_spring(t, i,
                   i % islands + islands * gallery_below(&t->rng, i / islands),
                   conductance(t, octaves));
  }
  for (int64_t i = 0; i < islands; i++)
    *gallery_at(t, i, i) += i == island ? ground : conductance(t, octaves);
}

void gallery_make_network_floating(gallery_task *t) {
  network(t, (int)t->parameter, 0.0);
}
void gallery_make_network_grounded(gallery_task *t) {
  network(t, 0, exp2(-floor(t->parameter)));
}

/* ---- Constraints ---- */

/* [H B^T; B 0] of small integers, with max(1, n/3) constraints. The last row of
   B is the sum of the first two, twice the only other one, or zero; 'apart' is
   how far its entries are from that. */
static void constrained(gallery_task *t, double apart) {
  const int64_t n = t->n, count = n >= 6 ? n / 3 : 1, m = n - count;
  gallery_zero(t);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m && i <= j; i++)
      *gallery_at(t, i, j) = i == j  ? (double)(m + gallery_below(&t->rng, 9))
                             : j < m ? (double)(gallery_below(&t->rng, 3) - 1)
                                     : (double)(gallery_below(&t->rng, 9) - 4);
  for (int64_t i = 0; i < m; i++) {
    double sum = 0.0;
    for (int64_t c = 0; c < 2; c++)
      sum += count > 1 ? *gallery_at(t, i, m + c % (count - 1)) : 0.0;
    *gallery_at(t, i, n - 1) =
        sum + apart * gallery_between(&t->rng, -1.0, 1.0);
  }
  gallery_copy_upper(t);
}

void gallery_make_kkt_dependent(gallery_task *t) { constrained(t, 0.0); }
void gallery_make_kkt_nearly_dependent(gallery_task *t) {
  constrained(t, pow(10.0, -t->parameter));
}

/* ---- Sparse matrices of moderate condition ---- */

/* Exchanges rows, and with 'columns' columns, at random. */
static void shuffle(gallery_task *t, bool columns) {
  for (int64_t i = t->n - 1; i > 0; i--) {
    const int64_t row = gallery_below(&t->rng, i + 1);
    const int64_t column = columns ? gallery_below(&t->rng, i + 1) : i;
    for (int64_t j = 0; j < t->n; j++) {
      double *p = gallery_at(t, i, j), *q = gallery_at(t, row, j), old = *p;
      *p = *q;
      *q = old;
    }
    for (int64_t j = 0; j < t->n; j++) {
      double *p = gallery_at(t, j, i), *q = gallery_at(t, j, column), old = *p;
      *p = *q;
      *q = old;
    }
  }
}

/* Up to p entries beside the diagonal in a row. */
void gallery_make_sparse(gallery_task *t) {
  gallery_zero(t);
  for (int64_t i = 0; i < t->n; i++) {
    for (int k = 0; k < (int)t->parameter; k++)
      *gallery_at(t, i, gallery_below(&t->rng, t->n)) =
          gallery_between(&t->rng, -1.0, 1.0);
    *gallery_at(t, i, i) = gallery_below(&t->rng, 2) ? 1.5 : -1.5;
  }
  shuffle(t, false);
}

/* Full blocks of order 1 to 5, each of a size of its own. */
void gallery_make_decoupled(gallery_task *t) {
  gallery_zero(t);
  for (int64_t first = 0, next; first < t->n; first = next) {
    const double size =
        pow(10.0, t->parameter * gallery_between(&t->rng, -0.5, 0.5));
    next = first + 1 + gallery_below(&t->rng, 5);
    next = next < t->n ? next : t->n;
    for (int64_t j = first; j < next; j++)
      for (int64_t i = first; i < next; i++)
        *gallery_at(t, i, j) = size * gallery_between(&t->rng, -1.0, 1.0);
  }
  shuffle(t, true);
}
