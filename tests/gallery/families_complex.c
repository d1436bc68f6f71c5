/* SPDX-License-Identifier: BSD-3-Clause */
/* Families of complex matrices: t->a has two doubles for each entry. */
#include "base/complex_values.h"
#include "tests/gallery/families.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef double _Complex entry;
typedef long double _Complex wide;

static const double TURN = 6.283185307179586;

static entry *at(const gallery_task *t, int64_t i, int64_t j) {
  return (entry *)(void *)t->a + i + j * t->lda;
}

static entry uniform(gallery_task *t) {
  const double re = gallery_between(&t->rng, -1.0, 1.0);
  return CMPLX(re, gallery_between(&t->rng, -1.0, 1.0));
}

/* exp(i u), u uniform. */
static entry phase(gallery_task *t) {
  const double u = TURN * gallery_uniform(&t->rng);
  return CMPLX(cos(u), sin(u));
}

static entry gaussian_integer(gallery_task *t, int64_t most) {
  const double re = (double)(gallery_below(&t->rng, 2 * most + 1) - most);
  return CMPLX(re, (double)(gallery_below(&t->rng, 2 * most + 1) - most));
}

/* Exact products with 1, i, -1 and -i. */
static entry turned(entry v, int64_t quarters) {
  const entry half = quarters & 2 ? CMPLX(-creal(v), -cimag(v)) : v;
  return quarters & 1 ? CMPLX(-cimag(half), creal(half)) : half;
}

static void fill(gallery_task *t, entry (*draw)(gallery_task *t)) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *at(t, i, j) = draw(t);
}

/* Makes one triangle the conjugate, or else the copy, of the other. */
static void reflect_triangle(gallery_task *t, bool hermitian) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = j; i < t->n; i++) {
      entry *low = at(t, i, j);
      const entry v = *at(t, j, i);
      if (hermitian)
        *low = i == j ? CMPLX(creal(v), 0.0) : conj(v);
      else
        *low = v;
    }
}

/* ---- Given singular values ---- */

enum { UNITARY, HERMITIAN, SYMMETRIC };

/* w = H w, then w H, w H^H or w H^T, with H = I - 2 v v^H and a random v of
   length 1; UNITARY: another H on the right. */
static void reflect(gallery_task *t, int kind, wide *w, wide *v) {
  const int64_t n = t->n;
  for (int side = 0; side < 2; side++) {
    long double length = 0.0L;
    for (int64_t i = 0; i < n; i++) {
      if (side == 0 || kind == UNITARY)
        v[i] = (wide)CMPLX(gallery_normal(&t->rng), gallery_normal(&t->rng));
      else if (kind == SYMMETRIC)
        v[i] = conjl(v[i]); /* H^T = I - 2 conj(v) v^T */
      length += creall(v[i] * conjl(v[i]));
    }
    for (int64_t j = 0; j < n; j++) {
      wide sum = 0.0L;
      for (int64_t i = 0; i < n; i++)
        sum += side == 0 ? conjl(v[i]) * w[i + j * n] : w[j + i * n] * v[i];
      sum *= 2.0L / length;
      for (int64_t i = 0; i < n; i++)
        if (side == 0)
          w[i + j * n] -= v[i] * sum;
        else
          w[j + i * n] -= sum * conjl(v[i]);
    }
  }
}

/* Two reflections of diag(sigma). */
static void spectrum(gallery_task *t, int kind, const double *sigma) {
  const int64_t n = t->n;
  wide *w = gallery_memory(n * n + n, sizeof *w);
  for (int64_t i = 0; i < n; i++)
    w[i + i * n] = (wide)sigma[i];
  for (int k = 0; k < 2; k++)
    reflect(t, kind, w, w + n * n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      *at(t, i, j) = (entry)w[i + j * n];
  if (kind != UNITARY)
    reflect_triangle(t, kind == HERMITIAN);
  free(w);
}

/* From 1 down to 10^-p; signs: of random sign. */
static void geometric(gallery_task *t, int kind, bool signs) {
  double *sigma = gallery_memory(t->n, sizeof *sigma);
  for (int64_t i = 0; i < t->n; i++) {
    sigma[i] = pow(10.0, -t->parameter * (double)i /
                             (double)(t->n > 1 ? t->n - 1 : 1));
    if (signs && gallery_below(&t->rng, 2))
      sigma[i] = -sigma[i];
  }
  spectrum(t, kind, sigma);
  free(sigma);
}

void gallery_make_z_spectrum(gallery_task *t) { geometric(t, UNITARY, false); }
void gallery_make_z_definite(gallery_task *t) {
  geometric(t, HERMITIAN, false);
}
void gallery_make_z_hermitian(gallery_task *t) {
  geometric(t, HERMITIAN, true);
}
void gallery_make_z_symmetric(gallery_task *t) {
  geometric(t, SYMMETRIC, false);
}

/* One or two small ones. */
void gallery_make_z_steep(gallery_task *t) {
  double *sigma = gallery_memory(t->n, sizeof *sigma);
  for (int64_t i = 0; i < t->n; i++)
    sigma[i] = i + 1 == t->n               ? pow(10.0, -t->parameter)
               : i + 2 == t->n && t->n > 4 ? pow(10.0, -0.9 * t->parameter)
                                           : 1.0;
  spectrum(t, UNITARY, sigma);
  free(sigma);
}

/* ---- Random entries ---- */

void gallery_make_z_uniform(gallery_task *t) { fill(t, uniform); }
void gallery_make_z_units(gallery_task *t) { fill(t, phase); }

/* Imaginary parts of another size. */
void gallery_make_z_parts(gallery_task *t) {
  const double part = pow(10.0, -t->parameter);
  fill(t, uniform);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *at(t, i, j) = CMPLX(creal(*at(t, i, j)), part * cimag(*at(t, i, j)));
}

void gallery_make_z_wide(gallery_task *t) {
  const int most = (int)t->parameter;
  int *e = gallery_memory(2 * t->n, sizeof *e);
  for (int64_t i = 0; i < 2 * t->n; i++)
    e[i] = (int)gallery_below(&t->rng, 2 * most + 1) - most;
  fill(t, uniform);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++) {
      const entry v = *at(t, i, j);
      const int by = e[i] + e[t->n + j];
      *at(t, i, j) = CMPLX(ldexp(creal(v), by), ldexp(cimag(v), by));
    }
  free(e);
}

/* A column is i^k times another, but for 10^-p of it. */
void gallery_make_z_turned(gallery_task *t) {
  fill(t, uniform);
  const int64_t quarters = gallery_below(&t->rng, 4);
  const int64_t from = gallery_below(&t->rng, t->n);
  const int64_t to = (from + 1 + gallery_below(&t->rng, t->n - 1)) % t->n;
  for (int64_t i = 0; i < t->n; i++)
    *at(t, i, to) = turned(*at(t, i, from), quarters) +
                    uniform(t) * pow(10.0, -t->parameter);
}

/* ---- Gaussian integers ---- */

void gallery_make_z_integers(gallery_task *t) {
  const int64_t most = (int64_t)t->parameter;
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *at(t, i, j) = gaussian_integer(t, most);
}

/* The sum of two rows, or of two columns, times units, stands in the place of a
   third (of n = 2: of the other). */
void gallery_make_z_singular(gallery_task *t) {
  const int64_t n = t->n, units = gallery_below(&t->rng, 16);
  const int64_t to = gallery_below(&t->rng, n);
  const int64_t p = (to + 1 + gallery_below(&t->rng, n - 1)) % n;
  const int64_t q = (to + 1 + gallery_below(&t->rng, n - 1)) % n;
  const bool rows = gallery_below(&t->rng, 2);
  t->parameter = pow(10.0, t->parameter);
  gallery_make_z_integers(t);
  for (int64_t k = 0; k < n; k++) {
    const entry v = turned(rows ? *at(t, p, k) : *at(t, k, p), units);
    const entry w = turned(rows ? *at(t, q, k) : *at(t, k, q), units / 4);
    *(rows ? at(t, to, k) : at(t, k, to)) = p == q ? v : v + w;
  }
}

/* The product of integers n x r and r x n; the sums are exact. */
void gallery_make_z_low_rank(gallery_task *t) {
  const int64_t n = t->n, rank = gallery_below(&t->rng, 2) ? n - 1 : n / 2;
  entry *p = gallery_memory(2 * n * rank, sizeof *p), *q = p + n * rank;
  for (int64_t k = 0; k < 2 * n * rank; k++)
    p[k] = gaussian_integer(t, 9);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      entry sum = 0.0;
      for (int64_t k = 0; k < rank; k++)
        sum += p[i + k * n] * q[j + k * n];
      *at(t, i, j) = sum;
    }
  free(p);
}

static void clear(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    memset(at(t, 0, j), 0, (size_t)t->n * sizeof(entry));
}

static void connect(gallery_task *t, int64_t i, int64_t j, entry y) {
  *at(t, i, i) += y;
  *at(t, j, j) += y;
  *at(t, i, j) -= y;
  *at(t, j, i) -= y;
}

/* An alternating-current network of n nodes without a ground: the admittances
   are Gaussian integers, so that the rows sum to exactly zero. Some are those
   of coils and condensers in resonance. */
void gallery_make_z_floating(gallery_task *t) {
  clear(t);
  for (int64_t k = 0; k < 3 * t->n; k++) {
    const int64_t i = k < t->n ? k : gallery_below(&t->rng, t->n);
    const int64_t j = k + 1 < t->n ? k + 1 : gallery_below(&t->rng, t->n);
    const double im = (double)(gallery_below(&t->rng, 5) - 2);
    connect(t, i, j,
            CMPLX(gallery_below(&t->rng, 4) ? 0.0 : 1.0, k < t->n ? 1.0 : im));
  }
}

/* ---- Waves ---- */

static int64_t side_of(int64_t n) { return (int64_t)ceil(sqrt((double)n)); }

/* -u'' in the plane, five points; the last row of the grid may be shorter. */
static void laplace(gallery_task *t, entry diagonal) {
  const int64_t side = side_of(t->n);
  clear(t);
  for (int64_t j = 0; j < t->n; j++) {
    *at(t, j, j) = diagonal;
    if (j >= side)
      *at(t, j - side, j) = *at(t, j, j - side) = -1.0;
    if (j % side > 0)
      *at(t, j - 1, j) = *at(t, j, j - 1) = -1.0;
  }
}

/* k^2 is an eigenvalue of a full grid, or any number, and has a damping. */
void gallery_make_z_helmholtz(gallery_task *t) {
  const double step = 0.5 * TURN / (double)(side_of(t->n) + 1);
  const double p = (double)(1 + gallery_below(&t->rng, side_of(t->n)));
  const double q = (double)(1 + gallery_below(&t->rng, side_of(t->n)));
  const double resonant = 4.0 - 2.0 * cos(p * step) - 2.0 * cos(q * step);
  const double k2 =
      gallery_below(&t->rng, 2) ? resonant : gallery_between(&t->rng, 0.0, 4.0);
  laplace(t, CMPLX(4.0 - k2, -k2 * pow(10.0, -t->parameter)));
}

/* Without damping; waves leave through the first and the last row. */
void gallery_make_z_absorbing(gallery_task *t) {
  const int64_t side = side_of(t->n);
  const double k = t->parameter;
  laplace(t, CMPLX(4.0 - k * k, 0.0));
  for (int64_t j = 0; j < t->n; j++)
    if (j < side || j + side >= t->n)
      *at(t, j, j) -= CMPLX(1.0, k);
}

/* K - w^2 M + i w C of a chain of masses, at one of its resonances; C is
   10^-p K. */
void gallery_make_z_vibration(gallery_task *t) {
  const int64_t n = t->n, mode = 1 + gallery_below(&t->rng, n);
  const double w =
      2.0 * sin(0.25 * TURN * (double)mode / (double)(n + 1)); /* w^2 M = K */
  const entry spring = CMPLX(1.0, w * pow(10.0, -t->parameter));
  clear(t);
  for (int64_t j = 0; j < n; j++) {
    *at(t, j, j) = 2.0 * spring - w * w;
    if (j > 0)
      *at(t, j - 1, j) = *at(t, j, j - 1) = -spring;
  }
}

/* exp(i k r) / r, or without the root for the plane, between random points of a
   cube of 10^p wavelengths; the self term is that of a disc. */
static void radiate(gallery_task *t, bool plane) {
  const int64_t n = t->n;
  const double edge = pow(10.0, t->parameter);
  double *x = gallery_memory(3 * n, sizeof *x);
  for (int64_t i = 0; i < 3 * n; i++)
    x[i] = plane && i % 3 == 2 ? 0.0 : edge * gallery_uniform(&t->rng);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const double *p = x + 3 * i, *q = x + 3 * j;
      const double apart = hypot(hypot(p[0] - q[0], p[1] - q[1]), p[2] - q[2]);
      const double r = i == j ? 0.02 : fmax(apart, 1e-9);
      const entry wave = CMPLX(cos(TURN * r), sin(TURN * r));
      *at(t, i, j) = wave / (plane ? sqrt(r) : r);
    }
  free(x);
}

void gallery_make_z_moments(gallery_task *t) { radiate(t, false); }

/* I - alpha G with a polarizability near a resonance of a pair. */
void gallery_make_z_scattering(gallery_task *t) {
  radiate(t, gallery_below(&t->rng, 2));
  const entry g = *at(t, 0, t->n - 1);
  const entry alpha = gallery_below(&t->rng, 2) ? 1.0 / g : 0.1 * phase(t);
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *at(t, i, j) = (i == j ? 1.0 : 0.0) - alpha * *at(t, i, j);
}

/* ---- Transforms ---- */

/* The Fourier matrix with columns over p decades. */
void gallery_make_z_fourier(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++) {
    const double size =
        pow(10.0, t->parameter * gallery_between(&t->rng, -0.5, 0.5));
    for (int64_t i = 0; i < t->n; i++) {
      const double u = TURN * (double)(i * j % t->n) / (double)t->n;
      *at(t, i, j) = size * CMPLX(cos(u), sin(u));
    }
  }
}

/* Powers of points of the unit circle, roots of 1 but for up to p of their
   distance. */
void gallery_make_z_vandermonde(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++) {
    const double off = t->parameter * gallery_between(&t->rng, -0.5, 0.5);
    const double u = TURN * ((double)j + off) / (double)t->n;
    for (int64_t i = 0; i < t->n; i++)
      *at(t, i, j) = CMPLX(cos(u * (double)i), sin(u * (double)i));
  }
}

/* ---- Complex matrices of real families ---- */

/* a_ij = p_i a_ij q_j with q = p (symmetric stays symmetric), conj p (becomes
   Hermitian) or independent; exact: of the four units. */
static void give_phases(gallery_task *t, int kind, bool exact) {
  const int64_t n = t->n;
  entry *p = gallery_memory(2 * n, sizeof *p), *q = p + n;
  for (int64_t i = 0; i < 2 * n; i++)
    p[i] = exact ? turned(1.0, gallery_below(&t->rng, 4)) : phase(t);
  for (int64_t i = 0; i < n && kind != UNITARY; i++)
    q[i] = kind == HERMITIAN ? conj(p[i]) : p[i];
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const entry by = p[i] * q[j];
      const double v = creal(*at(t, i, j));
      *at(t, i, j) = CMPLX(creal(by) * v, cimag(by) * v);
    }
  if (kind != UNITARY)
    reflect_triangle(t, kind == HERMITIAN);
  free(p);
}

/* Is a + b exact? */
static bool adds(double a, double b) {
  const double s = a + b, z = s - a;
  return isfinite(s) && !(fabs((a - (s - z)) + (b - z)) > 0.0);
}

/* Adds rows and columns to others, times i or -i, where all sums are exact. */
static void mix(gallery_task *t) {
  const int64_t n = t->n;
  for (int64_t k = 0; k < 2 * n && n > 1; k++) {
    const bool rows = gallery_below(&t->rng, 2);
    const int64_t from = gallery_below(&t->rng, n);
    const int64_t to = (from + 1 + gallery_below(&t->rng, n - 1)) % n;
    const int64_t quarters = 1 + 2 * gallery_below(&t->rng, 2);
    bool exact = true;
    for (int pass = 0; pass < 2 && exact; pass++)
      for (int64_t l = 0; l < n; l++) {
        const entry v =
            turned(rows ? *at(t, from, l) : *at(t, l, from), quarters);
        entry *w = rows ? at(t, to, l) : at(t, l, to);
        if (pass > 0)
          *w = CMPLX(creal(*w) + creal(v), cimag(*w) + cimag(v));
        else
          exact =
              exact && adds(creal(*w), creal(v)) && adds(cimag(*w), cimag(v));
      }
  }
}

void gallery_make_complex(gallery_task *t, const gallery_family *family,
                          uint64_t seed) {
  const int64_t n = t->n, how = gallery_below(&t->rng, 4);
  const int64_t twin = gallery_below(&t->rng, 2);
  const bool symmetric = family->properties & GALLERY_SYMMETRIC;
  const bool singular = family->properties & GALLERY_SINGULAR;
  const bool definite = family->properties & GALLERY_SPD;
  const bool sum = how == 3 && !singular && !definite;
  double *real = gallery_memory(2 * n * n, sizeof *real);
  for (int k = 0; k < 2; k++)
    gallery_make(family, n, t->parameter, seed + (uint64_t)k, real + k * n * n,
                 n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      *at(t, i, j) =
          CMPLX(real[i + j * n], sum ? real[n * n + i + j * n] : 0.0);
  free(real);
  if (sum)
    return;
  if (how >= 2 && !definite)
    mix(t);
  else
    give_phases(t,
                definite || (symmetric && twin) ? HERMITIAN
                : symmetric                     ? SYMMETRIC
                                                : UNITARY,
                how == 0 || singular);
}
