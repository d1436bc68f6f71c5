/* SPDX-License-Identifier: BSD-3-Clause */
/* A gallery of hard matrices, for tests, fuzzing and measurements: families
   of square matrices, each a row of one const table, made from an order, a
   parameter and a seed. These three determine the matrix. Right-hand sides
   to go with them are below. Nothing here uses the library.

   Read next: gallery.c, the table. */
#ifndef TESTS_GALLERY_GALLERY_H
#define TESTS_GALLERY_GALLERY_H

#include <stdint.h>

/* Random numbers: splitmix64. Any state is a seed. ------------------------- */

typedef struct gallery_rng {
  uint64_t state;
} gallery_rng;

uint64_t gallery_next(gallery_rng *rng);
double gallery_uniform(gallery_rng *rng); /* in [0, 1) */
double gallery_between(gallery_rng *rng, double low, double high);
double gallery_normal(gallery_rng *rng);                /* mean 0, variance 1 */
int64_t gallery_below(gallery_rng *rng, int64_t limit); /* 0 .. limit-1 */

/* Matrices ----------------------------------------------------------------- */

/* Properties of all matrices of a family. */
enum {
  GALLERY_SYMMETRIC = 1, /* exactly */
  GALLERY_SPD = 2,       /* positive definite before rounding, and symmetric */
  GALLERY_SINGULAR = 4,  /* exactly, as stored */
  GALLERY_SCALED = 8,    /* rows or columns of very different size */
  GALLERY_BANDED = 16,   /* diagonal, triangular or of few diagonals */
  GALLERY_FIXED = 32,    /* the same matrix for every seed */
  GALLERY_RANGE = 64,    /* entries near the ends of the double range */
  /* The matrices are complex, with two doubles for each entry; the first three
     properties then say symmetric or Hermitian, Hermitian positive definite,
     and singular. Complex families stand behind all real ones. */
  GALLERY_COMPLEX = 128
};

/* The matrix that is being made. */
typedef struct gallery_task {
  int64_t n, lda;
  double parameter;
  double *a; /* by columns, n x n; rows below n are not written */
  gallery_rng rng;
} gallery_task;

typedef struct gallery_family {
  const char *name;
  const char *what; /* one line with the source */
  int64_t least_n, most_n;
  unsigned properties;
  double low, high; /* the range of the parameter; both 0: it has none */
  void (*make)(gallery_task *task);
} gallery_family;

extern const gallery_family gallery_families[];
extern const int gallery_count;         /* of real matrices */
extern const int gallery_complex_count; /* of all; either.h makes them */
/* The first families, of which seeds of early campaigns draw. */
extern const int gallery_early_count;

/* NULL if there is no family of that name. */
const gallery_family *gallery_find(const char *name);

/* A random parameter in the range of the family. */
double gallery_parameter(const gallery_family *family, gallery_rng *rng);

/* Writes the matrix to a, n x n, lda >= n >= 1. n and parameter may be outside
   the ranges of the family if they make sense. */
void gallery_make(const gallery_family *family, int64_t n, double parameter,
                  uint64_t seed, double *a, int64_t lda);

/* Right-hand sides --------------------------------------------------------- */

enum {
  GALLERY_B_RANDOM,    /* uniform in [-1, 1), of the magnitude of A */
  GALLERY_B_ONES,      /* A times ones, rounded once */
  GALLERY_B_GRADED,    /* A times a vector of 12 decades, rounded once */
  GALLERY_B_UNIT,      /* one entry of 1 */
  GALLERY_B_ZERO,      /* zeros */
  GALLERY_B_TINY,      /* random, about 2^-1000 */
  GALLERY_B_HUGE,      /* random, about 2^1000 */
  GALLERY_B_LEFT_NULL, /* near the left singular vector of the smallest singular
                         value, so that x is as large as possible */
  GALLERY_B_FEW,       /* A times a vector of at most three nonzero
                          entries, small integers */
  GALLERY_B_DIFFERING, /* A times what the caller draws; not made here */
  GALLERY_B_EARLY = GALLERY_B_FEW /* the kinds of early campaigns are below */
};

extern const char *const gallery_rhs_names[];
extern const int gallery_rhs_count;

/* Writes n entries of a right-hand side of that kind for a (not transposed). */
void gallery_rhs(int kind, int64_t n, const double *a, int64_t lda,
                 uint64_t seed, double *b);

#endif
