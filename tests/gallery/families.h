/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the gallery: the functions that make the matrices, and
   the tools for making them. */
#ifndef TESTS_GALLERY_FAMILIES_H
#define TESTS_GALLERY_FAMILIES_H

#include "tests/gallery/gallery.h"

static inline double *gallery_at(const gallery_task *t, int64_t i, int64_t j) {
  return &t->a[i + j * t->lda];
}

/* Allocates memory; ends the program if there is none. */
void *gallery_memory(int64_t count, uint64_t size);

/* Sets all entries to zero, or to random numbers uniform in [-1, 1). */
void gallery_zero(gallery_task *t);
void gallery_random(gallery_task *t);
/* A = Q1 A Q2 with random orthogonal Q1 and Q2; symmetric: A = Q A Q^T for a
   symmetric A, which stays exactly symmetric. */
void gallery_rotate(gallery_task *t, int symmetric);
/* A = Q1 D Q2 (symmetric: Q D Q^T) with the singular values of DLATMS's mode
   1 to 6, from 1 down to 1 / cond. */
void gallery_spectrum(gallery_task *t, int mode, double cond, int symmetric);
/* a_ij = row_i a_ij col_j. Each factor is 10^u, with u uniform over that many
   decades around 0; with 0 decades there is none. */
void gallery_grade(gallery_task *t, double row_decades, double col_decades);
/* Adds a spring of stiffness k between unknowns i and j; nothing if i = j. */
void gallery_spring(gallery_task *t, int64_t i, int64_t j, double k);
void gallery_copy_upper(gallery_task *t); /* copies it to the lower triangle */

/* b = A x, summed in twice double precision and rounded once. low: n. */
void gallery_multiply(int64_t n, const double *a, int64_t lda, const double *x,
                      double *b, double *low);

#define GALLERY_MAKERS(X)                                                      \
  X(dlatb4_1)                                                                  \
  X(dlatb4_2)                                                                  \
  X(dlatb4_3)                                                                  \
  X(dlatb4_4)                                                                  \
  X(dlatb4_5)                                                                  \
  X(dlatb4_6)                                                                  \
  X(dlatb4_7)                                                                  \
  X(dlatb4_8)                                                                  \
  X(dlatb4_9)                                                                  \
  X(dlatb4_10)                                                                 \
  X(dlatb4_11)                                                                 \
  X(dlatms_1)                                                                  \
  X(dlatms_2)                                                                  \
  X(dlatms_3)                                                                  \
  X(dlatms_4)                                                                  \
  X(dlatms_5)                                                                  \
  X(dlatms_6)                                                                  \
  X(uniform)                                                                   \
  X(normal)                                                                    \
  X(integers)                                                                  \
  X(dominant)                                                                  \
  X(orthogonal)                                                                \
  X(toeplitz)                                                                  \
  X(banded)                                                                    \
  X(symmetric)                                                                 \
  X(low_rank_plus_diagonal)                                                    \
  X(low_rank_integers)                                                         \
  X(duplicated_column)                                                         \
  X(duplicated_row)                                                            \
  X(near_duplicates)                                                           \
  X(graded_rows)                                                               \
  X(graded_columns)                                                            \
  X(graded_both)                                                               \
  X(scaled_orthogonal)                                                         \
  X(spd)                                                                       \
  X(spd_units)                                                                 \
  X(spd_graded)                                                                \
  X(double_top)                                                                \
  X(double_bottom)                                                             \
  X(denormals)                                                                 \
  X(float_top)                                                                 \
  X(float_bottom)                                                              \
  X(float_denormals)                                                           \
  X(wide)                                                                      \
  X(wide_rows)                                                                 \
  X(hilbert)                                                                   \
  X(inverse_hilbert)                                                           \
  X(cauchy)                                                                    \
  X(lotkin)                                                                    \
  X(vandermonde)                                                               \
  X(growth)                                                                    \
  X(kahan)                                                                     \
  X(frank)                                                                     \
  X(moler)                                                                     \
  X(minij)                                                                     \
  X(chebyshev_1)                                                               \
  X(chebyshev_2)                                                               \
  X(rbf_gauss)                                                                 \
  X(rbf_multiquadric)                                                          \
  X(bem_circles)                                                               \
  X(bem_spheres)                                                               \
  X(laplace_dirichlet)                                                         \
  X(laplace_neumann)                                                           \
  X(path_neumann)                                                              \
  X(truss)                                                                     \
  X(truss_units)                                                               \
  X(truss_free)                                                                \
  X(saddle)                                                                    \
  X(saddle_units)                                                              \
  X(helmholtz_1d)                                                              \
  X(helmholtz_2d)                                                              \
  X(helmholtz_3d)                                                              \
  X(helmholtz_singular)                                                        \
  X(network_floating)                                                          \
  X(network_grounded)                                                          \
  X(truss_mechanism)                                                           \
  X(truss_braced)                                                              \
  X(kkt_dependent)                                                             \
  X(kkt_nearly_dependent)                                                      \
  X(sparse)                                                                    \
  X(decoupled)                                                                 \
  X(singular_integers)                                                         \
  X(singular_integers_2)                                                       \
  X(singular_unimodular)                                                       \
  X(unimodular)                                                                \
  X(definite_triangle)                                                         \
  X(condex_1)                                                                  \
  X(condex_2)                                                                  \
  X(condex_3)                                                                  \
  X(condex_4)                                                                  \
  X(blind_block)

#define GALLERY_COMPLEX_MAKERS(X)                                              \
  X(z_uniform)                                                                 \
  X(z_units)                                                                   \
  X(z_parts)                                                                   \
  X(z_wide)                                                                    \
  X(z_spectrum)                                                                \
  X(z_steep)                                                                   \
  X(z_definite)                                                                \
  X(z_hermitian)                                                               \
  X(z_symmetric)                                                               \
  X(z_turned)                                                                  \
  X(z_integers)                                                                \
  X(z_singular)                                                                \
  X(z_low_rank)                                                                \
  X(z_floating)                                                                \
  X(z_helmholtz)                                                               \
  X(z_absorbing)                                                               \
  X(z_vibration)                                                               \
  X(z_moments)                                                                 \
  X(z_scattering)                                                              \
  X(z_fourier)                                                                 \
  X(z_vandermonde)

#define GALLERY_DECLARE(name) void gallery_make_##name(gallery_task *t);
GALLERY_MAKERS(GALLERY_DECLARE)
GALLERY_COMPLEX_MAKERS(GALLERY_DECLARE)
#undef GALLERY_DECLARE

/* A complex matrix of a real family: see either_make. */
void gallery_make_complex(gallery_task *t, const gallery_family *family,
                          uint64_t seed);

#endif
