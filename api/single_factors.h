/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky factors in single precision for a program that refines and
   verifies by itself: the LAPACK drop-in, where it hides factors
   (lapack/hidden.h). They are made by the engine that a solver of this order
   would use, on a GPU or on the host. libhone exports the two tables for its
   own drop-in; programs use hone.h.

   Compiled for each scalar; the functions for double complex are in
   hone_z_single_functions. */
#ifndef HONE_SINGLE_FACTORS_H
#define HONE_SINGLE_FACTORS_H

#include "api/hone.h"
#include "base/entry.h"

#include <stdbool.h>

typedef struct hone_single_factors hone_single_factors;

/* Facts about factors. */
typedef struct hone_single_account {
  int exponent;  /* they are those of 2^exponent A; 0 unless entries are large
                    or small */
  bool device;   /* they lie on a device */
  int64_t bytes; /* of host memory */
  int64_t device_bytes;
  int64_t device_most; /* a quarter of the device's memory */
} hone_single_account;

/* struct_size is sizeof(hone_single_table): a drop-in of another version sees
   by it that the functions are not those that it knows. */
typedef struct hone_single_table {
  size_t struct_size;
  /* Factors A, n x n with leading dimension lda >= n >= 1, which lies in host
     memory and is read during this call only. Of the options (NULL: defaults)
     those of devices, threads, memory and tuning count, triangle, and
     HONE_STRUCTURE_SPD: A is factored by Cholesky on a device, or not at all.
     HONE_OK; HONE_NOT_FINITE_A; HONE_SINGULAR: the factors are of no use, as
     where a pivot is zero or A is not definite; otherwise an engine's status,
     or HONE_NO_DEVICE. *factors is NULL unless the status is HONE_OK, and then
     the caller's, to be destroyed. */
  int (*make)(int64_t n, const hone_entry *a, int64_t lda,
              const hone_options *options, hone_single_factors **factors,
              hone_single_account *account);
  /* Returns true if make would first try a device for this order. */
  bool (*expects_device)(int64_t n, const hone_options *options);
  /* v = inv(A) v ('N'), inv(A^T) v ('T') or inv(A^H) v ('C') for k columns,
     ldv >= n, whose entries are finite. Threads may solve with the same factors
     at once: they take turns. In the child of a fork, factors on a device give
     HONE_NO_DEVICE. On any other status than HONE_OK, v is of no use. */
  int (*solve)(hone_single_factors *factors, char trans, int64_t k,
               hone_entry *v, int64_t ldv);
  /* r = b - A x, as if in double-double and rounded once, and den = |A| |x| +
     |b|, n entries each, by a device that keeps A. HONE_NO_DEVICE, or the
     status of a call that failed: they are not known. */
  int (*residual)(hone_single_factors *factors, const hone_entry *x,
                  const hone_entry *b, hone_entry *r, double *den);
  /* Returns true if the host vouches for such an r, of a few units of rounding
     of den, and for den: projections of the
     A itself that make was given, on weights drawn at random then, show an
     error of a row of r of more than 2^-55 den_i but for a probability of
     2^-20, and one of den_i / 8 in den_i but for 2^-10 (refine/verdict.h). */
  bool (*vouched)(hone_single_factors *factors, const hone_entry *x,
                  const hone_entry *b, const hone_entry *r, const double *den);
  /* *factors becomes NULL. */
  void (*destroy)(hone_single_factors **factors);
} hone_single_table;

HONE_API const hone_single_table *hone_single_functions(void);

#endif
