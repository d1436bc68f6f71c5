/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of families, and the tools for making them. The matrices are made
   in families_lapack.c (LAPACK's test matrices, random ones, scaling and
   range), families_classic.c (Higham's Test Matrix Toolbox),
   families_models.c (discretized models), families_structured.c (sparse models
   at the edge of singularity), families_integers.c and families_complex.c. */
#include "tests/gallery/families.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

enum {
  SYM = GALLERY_SYMMETRIC,
  SPD = GALLERY_SYMMETRIC | GALLERY_SPD,
  SING = GALLERY_SINGULAR,
  SCALED = GALLERY_SCALED,
  BAND = GALLERY_BANDED,
  FIXED = GALLERY_FIXED,
  RANGE = GALLERY_RANGE,
  Z = GALLERY_COMPLEX,
  MOST = 1 << 20
};

#define ROW(name, what, least, most, properties, low, high)                    \
  { #name, what, least, most, properties, low, high, gallery_make_##name }

const gallery_family gallery_families[] = {
    ROW(dlatb4_1, "DLATB4 type 1: diagonal", 1, MOST, BAND, 0, 0),
    ROW(dlatb4_2, "DLATB4 type 2: upper triangular", 1, MOST, BAND, 0, 0),
    ROW(dlatb4_3, "DLATB4 type 3: lower triangular", 1, MOST, BAND, 0, 0),
    ROW(dlatb4_4, "DLATB4 type 4: random, condition 2", 1, MOST, 0, 0, 0),
    ROW(dlatb4_5, "DLATB4 type 5: first column zero", 1, MOST, SING, 0, 0),
    ROW(dlatb4_6, "DLATB4 type 6: last column zero", 1, MOST, SING, 0, 0),
    ROW(dlatb4_7, "DLATB4 type 7: last n/2 columns zero", 1, MOST, SING, 0, 0),
    ROW(dlatb4_8, "DLATB4 type 8: condition sqrt(0.1 / 2^-52)", 1, MOST, 0, 0,
        0),
    ROW(dlatb4_9, "DLATB4 type 9: condition 0.1 / 2^-52", 1, MOST, 0, 0, 0),
    ROW(dlatb4_10, "DLATB4 type 10: scaled near underflow", 1, MOST, RANGE, 0,
        0),
    ROW(dlatb4_11, "DLATB4 type 11: scaled near overflow", 1, MOST, RANGE, 0,
        0),
    ROW(dlatms_1, "DLATMS mode 1: one large singular value, cond 10^p", 1, MOST,
        0, 0, 16),
    ROW(dlatms_2, "DLATMS mode 2: one small singular value, cond 10^p", 1, MOST,
        0, 0, 16),
    ROW(dlatms_3, "DLATMS mode 3: geometric, cond 10^p", 1, MOST, 0, 0, 16),
    ROW(dlatms_4, "DLATMS mode 4: arithmetic, cond 10^p", 1, MOST, 0, 0, 16),
    ROW(dlatms_5, "DLATMS mode 5: uniform logarithms, cond 10^p", 1, MOST, 0, 0,
        16),
    ROW(dlatms_6, "DLATMS mode 6: random singular values", 1, MOST, 0, 0, 0),
    ROW(uniform, "uniform in [-1, 1)", 1, MOST, 0, 0, 0),
    ROW(normal, "normal entries", 1, MOST, 0, 0, 0),
    ROW(integers, "integers, uniform in -p .. p", 1, MOST, 0, 1, 99),
    ROW(dominant, "diagonally dominant by rows, 1 + 10^-p times", 1, MOST, 0, 0,
        8),
    ROW(orthogonal, "random orthogonal", 1, MOST, 0, 0, 0),
    ROW(toeplitz, "Toeplitz, uniform entries", 1, MOST, 0, 0, 0),
    ROW(banded, "band of 1 to 3 diagonals each side, uniform", 1, MOST, BAND, 0,
        0),
    ROW(symmetric, "symmetric indefinite, uniform", 1, MOST, SYM, 0, 0),
    ROW(low_rank_plus_diagonal, "rank n/4 plus 10^-p times a diagonal", 1, MOST,
        0, 2, 14),
    ROW(low_rank_integers, "product of integers n x n/2 and n/2 x n", 2, MOST,
        SING, 0, 0),
    ROW(duplicated_column, "random with two equal columns", 2, MOST, SING, 0,
        0),
    ROW(duplicated_row, "random with a row twice another", 2, MOST, SING, 0, 0),
    ROW(near_duplicates, "two columns equal but for 10^-p", 2, MOST, 0, 4, 16),
    ROW(graded_rows, "rows over p decades", 1, MOST, SCALED, 1, 12),
    ROW(graded_columns, "columns over p decades", 1, MOST, SCALED, 1, 12),
    ROW(graded_both, "rows and columns over p decades", 1, MOST, SCALED, 1, 12),
    ROW(scaled_orthogonal,
        "D Q D: ill-conditioned through scaling alone, p decades each", 1, MOST,
        SCALED, 1, 30),
    ROW(spd, "symmetric positive definite, geometric, cond 10^p", 1, MOST, SPD,
        0, 14),
    ROW(spd_units, "D SPD D: units of 1, 10^p, 10^-p in turn", 1, MOST,
        SPD | SCALED, 1, 5),
    ROW(spd_graded, "D SPD D: D over 2 p decades", 1, MOST, SPD | SCALED, 1, 8),
    ROW(double_top, "entries up to 2^1023", 1, MOST, RANGE, 0, 0),
    ROW(double_bottom, "entries from 2^-1022", 1, MOST, RANGE, 0, 0),
    ROW(denormals, "entries of 2^-1074 up to 2^-1010", 1, MOST, RANGE, 0, 0),
    ROW(float_top, "entries about FLT_MAX, 2^118 to 2^134", 1, MOST, 0, 0, 0),
    ROW(float_bottom, "entries about FLT_MIN, 2^-134 to 2^-118", 1, MOST, 0, 0,
        0),
    ROW(float_denormals, "some entries that are denormal or nothing in single",
        1, MOST, 0, 120, 160),
    ROW(wide, "every entry its own size, 2^-p to 2^p", 1, MOST, SCALED | RANGE,
        10, 1000),
    ROW(wide_rows, "rows and columns of size 2^-p to 2^p", 1, MOST,
        SCALED | RANGE, 10, 480),
    ROW(hilbert, "Hilbert: 1 / (i + j - 1)", 1, MOST, SPD | FIXED, 0, 0),
    ROW(inverse_hilbert, "inverse of Hilbert: exact integers (Higham invhilb)",
        1, 12, SPD | FIXED, 0, 0),
    ROW(cauchy, "1 / (x_i + y_j), x and y random (Higham cauchy)", 1, MOST, 0,
        0, 0),
    ROW(lotkin, "Hilbert with a first row of ones (Higham lotkin)", 1, MOST,
        FIXED, 0, 0),
    ROW(vandermonde, "x_i^j, x random in [-1, 1)", 1, MOST, 0, 0, 0),
    ROW(growth, "Wilkinson: growth (1 + p)^(n-1) (Higham gfpp)", 1, MOST, FIXED,
        0.1, 1),
    ROW(kahan, "Kahan, theta = p (Higham kahan)", 1, MOST, BAND | FIXED, 0.6,
        1.5),
    ROW(frank, "Frank: ill-conditioned eigenvalues (Higham frank)", 1, MOST,
        FIXED, 0, 0),
    ROW(moler, "Moler: one small eigenvalue (Higham moler)", 1, MOST,
        SPD | FIXED, 0, 0),
    ROW(minij, "min(i, j) (Higham minij)", 1, MOST, SPD | FIXED, 0, 0),
    ROW(chebyshev_1,
        "Chebyshev first derivative, one boundary condition (Higham chebspec)",
        1, MOST, FIXED, 0, 0),
    ROW(chebyshev_2, "Chebyshev second derivative, Dirichlet (Trefethen)", 1,
        MOST, FIXED, 0, 0),
    ROW(rbf_gauss, "radial basis exp(-(e r)^2), e = 10^-p: the flat limit", 1,
        MOST, SYM, -2, 1.5),
    ROW(rbf_multiquadric, "radial basis sqrt(1 + (e r)^2), e = 10^-p", 1, MOST,
        SYM, -2, 1.5),
    ROW(bem_circles, "single layer on two circles, 10^-p apart", 2, MOST, FIXED,
        1, 12),
    ROW(bem_spheres, "single layer on two spheres, 10^-p apart", 2, MOST, FIXED,
        1, 12),
    ROW(laplace_dirichlet, "five-point Laplacian, Dirichlet", 1, MOST,
        SPD | BAND | FIXED, 0, 0),
    ROW(laplace_neumann, "five-point Laplacian, Neumann", 1, MOST,
        SYM | SING | BAND | FIXED, 0, 0),
    ROW(path_neumann, "chain of springs of integer stiffness, both ends free",
        1, MOST, SYM | SING | BAND, 0, 0),
    ROW(truss, "pin-jointed plane truss, supported", 1, MOST, SPD, 0, 0),
    ROW(truss_units, "the same with bars from soft to stiff by 10^p", 1, MOST,
        SPD | SCALED, 1, 10),
    ROW(truss_free, "pin-jointed plane truss, floating freely", 1, MOST,
        SYM | SING, 0, 0),
    ROW(saddle, "[H B^T; B 0], the lower half of the diagonal zero", 2, MOST,
        SYM, 0, 0),
    ROW(saddle_units, "the same, H of size 10^p", 2, MOST, SYM | SCALED, -8,
        10),
    /* gallery_early_count families; those below came later. */
    ROW(helmholtz_1d, "shifted 1-D Laplacian, 10^-p beside resonance or at it",
        1, MOST, SYM, 0, 20),
    ROW(helmholtz_2d, "the same in 2-D", 1, MOST, SYM, 0, 20),
    ROW(helmholtz_3d, "the same in 3-D", 1, MOST, SYM, 0, 20),
    ROW(helmholtz_singular, "shifted by an eigenvalue that is an integer", 1,
        MOST, SYM | SING, 0, 0),
    ROW(network_floating, "conductances over p octaves, one island floats", 1,
        MOST, SYM | SING, 0, 20),
    ROW(network_grounded, "the island grounded by a conductance of 2^-p", 1,
        MOST, SPD, 0, 42),
    ROW(truss_mechanism, "truss, a square without diagonals moves", 2, MOST,
        SYM | SING, 0, 0),
    ROW(truss_braced, "the square braced by a bar of stiffness 2^-p", 2, MOST,
        SPD, 0, 40),
    ROW(kkt_dependent, "[H B^T; B 0] of integers, a dependent row in B", 2,
        MOST, SYM | SING, 0, 0),
    ROW(kkt_nearly_dependent, "the same, dependent but for 10^-p", 2, MOST, SYM,
        2, 16),
    ROW(sparse, "up to p entries beside the diagonal, rows permuted", 1, MOST,
        0, 1, 5),
    ROW(decoupled, "blocks of order 1 to 5, sizes over p decades, permuted", 1,
        MOST, SCALED, 0, 8),
    ROW(singular_integers, "integers up to 10^p, one row dependent", 2, MOST,
        SING, 0.5, 6),
    ROW(singular_integers_2, "integers up to 10^p, two rows dependent", 2, MOST,
        SING, 0.5, 6),
    ROW(singular_unimodular,
        "unimodular times diag(1, ..., 1, 0) times such, "
        "up to 2^p",
        2, MOST, SING, 3, 50),
    ROW(unimodular, "integers up to 2^p of determinant 1", 2, MOST, 0, 3, 50),
    ROW(definite_triangle, "one triangle definite, singular with the other", 2,
        MOST, SING, 0, 0),
    ROW(condex_1, "Cline & Rew 1983, theta = 10^p (Higham condex 1)", 1, MOST,
        FIXED, 0.5, 8),
    ROW(condex_2, "against LINPACK, theta = 10^p (Higham condex 2)", 1, MOST,
        BAND | FIXED, 0.5, 8),
    ROW(condex_3, "triangular, of -1 (Higham condex 3)", 1, MOST, BAND | FIXED,
        0, 0),
    ROW(condex_4, "against LAPACK, theta = 10^p (Higham condex 4)", 1, MOST,
        FIXED, 0.5, 10),
    ROW(blind_block, "two blocks, one unseen by Hager's estimator, 2^p", 1,
        MOST, FIXED, 5, 25),
    ROW(z_uniform, "both parts uniform in [-1, 1)", 1, MOST, Z, 0, 0),
    ROW(z_units, "of modulus 1, random phases", 1, MOST, Z, 0, 0),
    ROW(z_parts, "imaginary parts 10^-p of the real ones", 1, MOST, Z, 1, 300),
    ROW(z_wide, "rows and columns times 2^-p .. 2^p", 1, MOST,
        Z | SCALED | RANGE, 10, 500),
    ROW(z_spectrum, "geometric, cond 10^p", 1, MOST, Z, 0, 16),
    ROW(z_steep, "one or two small singular values, cond 10^p", 1, MOST, Z, 4,
        16),
    ROW(z_definite, "Hermitian positive definite, geometric, cond 10^p", 1,
        MOST, Z | SPD, 0, 14),
    ROW(z_hermitian, "Hermitian indefinite, geometric, cond 10^p", 1, MOST,
        Z | SYM, 0, 14),
    ROW(z_symmetric, "complex symmetric, geometric, cond 10^p", 1, MOST,
        Z | SYM, 0, 14),
    ROW(z_turned, "a column i^k times another but for 10^-p", 2, MOST, Z, 4,
        17),
    ROW(z_integers, "Gaussian integers, parts in -p .. p", 1, MOST, Z, 1, 99),
    ROW(z_singular, "Gaussian integers up to 10^p, one row dependent", 2, MOST,
        Z | SING, 0.5, 6),
    ROW(z_low_rank, "product of Gaussian integers, rank n - 1 or n/2", 2, MOST,
        Z | SING, 0, 0),
    ROW(z_floating, "network of coils and condensers without ground", 1, MOST,
        Z | SYM | SING, 0, 0),
    ROW(z_helmholtz, "Helmholtz, damping 10^-p, half at resonance", 1, MOST,
        Z | SYM, 0.5, 18),
    ROW(z_absorbing, "Helmholtz, k = p, absorbing boundary", 1, MOST, Z | SYM,
        0.1, 2),
    ROW(z_vibration, "chain of masses at resonance, damping 10^-p", 1, MOST,
        Z | SYM | BAND, 1, 18),
    ROW(z_moments, "exp(i k r) / r, cube of 10^p wavelengths", 1, MOST, Z | SYM,
        -3, 1),
    ROW(z_scattering, "dipoles in a cube of 10^p wavelengths", 1, MOST, Z | SYM,
        -2, 1),
    ROW(z_fourier, "Fourier, columns over p decades", 1, MOST, Z | SCALED, 0,
        30),
    ROW(z_vandermonde, "Vandermonde, roots of 1 but for p steps", 1, MOST, Z, 0,
        1),
};

#define ONE(name) +1
const int gallery_early_count = 69;
const int gallery_complex_count =
    (int)(sizeof gallery_families / sizeof *gallery_families);
const int gallery_count =
    (int)(sizeof gallery_families / sizeof *gallery_families) -
    (0 GALLERY_COMPLEX_MAKERS(ONE));

const gallery_family *gallery_find(const char *name) {
  for (int k = 0; k < gallery_complex_count; k++)
    if (strcmp(gallery_families[k].name, name) == 0)
      return &gallery_families[k];
  return NULL;
}

double gallery_parameter(const gallery_family *family, gallery_rng *rng) {
  return gallery_between(rng, family->low, family->high);
}

void gallery_make(const gallery_family *family, int64_t n, double parameter,
                  uint64_t seed, double *a, int64_t lda) {
  gallery_task t = {.n = n,
                    .lda = lda,
                    .parameter = parameter,
                    .a = a,
                    .rng = {seed ^ 0x6a09e667f3bcc908u}};
  family->make(&t);
}

/* ---- Random numbers ---- */

uint64_t gallery_next(gallery_rng *rng) {
  uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double gallery_uniform(gallery_rng *rng) {
  return (double)(gallery_next(rng) >> 11) * 0x1p-53;
}

double gallery_between(gallery_rng *rng, double low, double high) {
  return low + (high - low) * gallery_uniform(rng);
}

/* Marsaglia's polar method. */
double gallery_normal(gallery_rng *rng) {
  for (;;) {
    double u = gallery_between(rng, -1.0, 1.0);
    double v = gallery_between(rng, -1.0, 1.0), s = u * u + v * v;
    if (s > 0.0 && s < 1.0)
      return u * sqrt(-2.0 * log(s) / s);
  }
}

int64_t gallery_below(gallery_rng *rng, int64_t limit) {
  return (int64_t)(gallery_next(rng) % (uint64_t)limit);
}

/* ---- Tools ---- */

void *gallery_memory(int64_t count, uint64_t size) {
  void *memory = calloc(count > 0 ? (size_t)count : 1, size);
  if (memory == NULL) {
    (void)fprintf(stderr, "gallery: out of memory\n");
    abort();
  }
  return memory;
}

void gallery_zero(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    memset(gallery_at(t, 0, j), 0, (size_t)t->n * sizeof *t->a);
}

void gallery_random(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) = gallery_between(&t->rng, -1.0, 1.0);
}

void gallery_copy_upper(gallery_task *t) {
  for (int64_t j = 0; j < t->n; j++)
    for (int64_t i = 0; i < j; i++)
      *gallery_at(t, j, i) = *gallery_at(t, i, j);
}

/* One round of rotations: neighbours in a random order are rotated in pairs,
   each pair by an angle of its own. */
typedef struct turns {
  int64_t pairs, *order; /* pairs of neighbours in order */
  double *cosine, *sine;
} turns;

static void choose_turns(gallery_task *t, turns *w) {
  for (int64_t i = t->n - 1; i > 0; i--) {
    int64_t j = gallery_below(&t->rng, i + 1), swap = w->order[i];
    w->order[i] = w->order[j];
    w->order[j] = swap;
  }
  for (int64_t k = 0; k < w->pairs; k++) {
    double angle = gallery_between(&t->rng, 0.0, 6.283185307179586);
    w->cosine[k] = cos(angle);
    w->sine[k] = sin(angle);
  }
}

static void turn_rows(gallery_task *t, const turns *w) {
  for (int64_t j = 0; j < t->n; j++) {
    double *a = gallery_at(t, 0, j);
    for (int64_t k = 0; k < w->pairs; k++) {
      double *p = a + w->order[2 * k], *q = a + w->order[2 * k + 1], old = *p;
      *p = w->cosine[k] * old - w->sine[k] * *q;
      *q = w->sine[k] * old + w->cosine[k] * *q;
    }
  }
}

static void turn_columns(gallery_task *t, const turns *w) {
  for (int64_t k = 0; k < w->pairs; k++) {
    double *p = gallery_at(t, 0, w->order[2 * k]);
    double *q = gallery_at(t, 0, w->order[2 * k + 1]);
    for (int64_t i = 0; i < t->n; i++) {
      double old = p[i];
      p[i] = w->cosine[k] * old - w->sine[k] * q[i];
      q[i] = w->sine[k] * old + w->cosine[k] * q[i];
    }
  }
}

/* After log2(n) + 2 rounds every row has mixed with every other. */
void gallery_rotate(gallery_task *t, int symmetric) {
  turns w = {.pairs = t->n / 2};
  int rounds = 2;
  w.order = gallery_memory(t->n, sizeof *w.order);
  w.cosine = gallery_memory(t->n, sizeof *w.cosine);
  w.sine = gallery_memory(t->n, sizeof *w.sine);
  for (int64_t i = 0; i < t->n; i++)
    w.order[i] = i;
  for (int64_t m = 1; m < t->n; m *= 2)
    rounds++;
  for (int round = 0; round < rounds; round++) {
    choose_turns(t, &w);
    turn_rows(t, &w);
    if (!symmetric)
      choose_turns(t, &w);
    turn_columns(t, &w);
    if (symmetric)
      gallery_copy_upper(t);
  }
  free(w.order);
  free(w.cosine);
  free(w.sine);
}

static double singular_value(gallery_task *t, int mode, double cond,
                             int64_t i) {
  const double at = t->n > 1 ? (double)i / (double)(t->n - 1) : 0.0;
  switch (mode) {
  case 1:
    return i == 0 ? 1.0 : 1.0 / cond;
  case 2:
    return i < t->n - 1 || t->n == 1 ? 1.0 : 1.0 / cond;
  case 3:
    return pow(cond, -at);
  case 4:
    return 1.0 - at * (1.0 - 1.0 / cond);
  case 5:
    return pow(cond, -gallery_uniform(&t->rng));
  default:
    return gallery_between(&t->rng, -1.0, 1.0);
  }
}

void gallery_spectrum(gallery_task *t, int mode, double cond, int symmetric) {
  gallery_zero(t);
  for (int64_t i = 0; i < t->n; i++)
    *gallery_at(t, i, i) = singular_value(t, mode, cond, i);
  gallery_rotate(t, symmetric);
}

void gallery_grade(gallery_task *t, double row_decades, double col_decades) {
  double *row = gallery_memory(t->n, sizeof *row);
  for (int64_t i = 0; i < t->n; i++)
    row[i] = pow(10.0, row_decades * gallery_between(&t->rng, -0.5, 0.5));
  for (int64_t j = 0; j < t->n; j++) {
    double col = pow(10.0, col_decades * gallery_between(&t->rng, -0.5, 0.5));
    for (int64_t i = 0; i < t->n; i++)
      *gallery_at(t, i, j) *= row[i] * col;
  }
  free(row);
}
