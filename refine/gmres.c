/* SPDX-License-Identifier: BSD-3-Clause */
/* The space of GMRES-IR, in double precision: pairs S z = c with orthonormal c.
   Next to read: gmres.h for the method, gmres_pairs.c for its use. */
#include "refine/gmres.h"

#include "base/vectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A new c of which less than this part remains after orthogonalization is taken
   for rounding error. */
static const double DEPENDENT_PART = 1e-8;

int64_t hone_space_entries(int64_t n) { return 2 * n * HONE_SPACE_PAIRS; }

hone_space hone_space_make(int64_t n, bool trans, hone_entry *memory) {
  return (hone_space){
      .n = n, .trans = trans, .z = memory, .c = memory + n * HONE_SPACE_PAIRS};
}

int hone_space_open(hone_space *space) {
  const int at = space->count + space->open;
  if (space->open >= HONE_SPACE_OPEN || at >= HONE_SPACE_PAIRS)
    return -1;
  const size_t bytes = (size_t)space->n * sizeof(hone_entry);
  memset(hone_space_z(space, at), 0, bytes);
  memset(hone_space_c(space, at), 0, bytes);
  space->open++;
  return at;
}

hone_entry *hone_space_z(const hone_space *space, int at) {
  return space->z + (int64_t)at * space->n;
}

hone_entry *hone_space_c(const hone_space *space, int at) {
  return space->c + (int64_t)at * space->n;
}

HONE_VECTOR static void scale(int64_t n, double m, hone_entry *restrict v) {
  for (int64_t i = 0; i < n; i++)
    v[i] *= m;
}

/* ||v||_2, for a c that was scaled near 1, or a z; Inf for a z out of range. */
static double norm(int64_t n, const hone_entry *v) {
  return sqrt(hone_real(hone_dot(n, v, v)));
}

void hone_space_project(const hone_space *space, hone_entry *v,
                        hone_entry *coefficient) {
  for (int i = 0; i < space->count; i++) { /* modified Gram-Schmidt */
    coefficient[i] = hone_dot(space->n, hone_space_c(space, i), v);
    hone_add_multiple(space->n, -coefficient[i], hone_space_c(space, i), v);
  }
}

void hone_space_expand(const hone_space *space, const hone_entry *coefficient,
                       hone_entry *v) {
  for (int i = 0; i < space->count; i++)
    hone_add_multiple(space->n, coefficient[i], hone_space_z(space, i), v);
}

static double largest_abs(int64_t n, const hone_entry *v) {
  double max = 0.0;
  for (int64_t i = 0; i < n; i++)
    max = hone_abs(v[i]) <= max ? max : hone_abs(v[i]); /* takes NaN */
  return max;
}

/* c = c - C C^T c, and the same combination of the z_i is taken from z. */
static void orthogonalize(const hone_space *space, hone_entry *z,
                          hone_entry *c) {
  hone_entry coefficient[HONE_SPACE_PAIRS];
  hone_space_project(space, c, coefficient);
  for (int i = 0; i < space->count; i++)
    hone_add_multiple(space->n, -coefficient[i], hone_space_z(space, i), z);
}

bool hone_space_add(hone_space *space, hone_entry *z, hone_entry *c) {
  const int64_t n = space->n;
  const int at = space->count;
  const double size = largest_abs(n, c);
  if (at >= HONE_SPACE_PAIRS || !(size >= DBL_MIN) || !(size <= DBL_MAX))
    return false;
  const int e = -ilogb(size);
  for (int64_t i = 0; i < n; i++) { /* powers of two keep both exact */
    c[i] = hone_shift_entry(c[i], e);
    z[i] = hone_shift_entry(z[i], e);
  }
  const double before = norm(n, c);
  orthogonalize(space, z, c);
  orthogonalize(space, z, c); /* once more, against cancellation */
  const double after = norm(n, c);
  if (!(after > DEPENDENT_PART * before) || !(norm(n, z) <= DBL_MAX))
    return false;
  scale(n, 1.0 / after, c);
  scale(n, 1.0 / after, z);
  if (c != hone_space_c(space, at)) {
    memcpy(hone_space_c(space, at), c, (size_t)n * sizeof *c);
    memcpy(hone_space_z(space, at), z, (size_t)n * sizeof *z);
  }
  space->count++;
  return true;
}
