/* SPDX-License-Identifier: BSD-3-Clause */
/* A module that calls LAPACK under the names of one interface of
   lapack/interfaces.h: see vendored_caller.c. It exports a table for each
   interface and scalar type, vendored_caller_SCIPY_ILP64_d and so on. */
#ifndef TESTS_VENDORED_CALLER_H
#define TESTS_VENDORED_CALLER_H

#include <stdint.h>

/* The arguments of any routine; a and b are of the table's scalar type, ipiv of
   its integers. */
typedef struct vendored_system {
  int64_t n, nrhs, ld;
  void *a, *ipiv, *b;
  char letter; /* TRANS or UPLO */
  int layout;  /* of LAPACKE */
  int64_t info;
} vendored_system;

typedef struct vendored_caller {
  int integer_bytes;
  void (*gesv)(vendored_system *s);
  void (*getrf)(vendored_system *s);
  void (*getrs)(vendored_system *s);
  void (*potrf)(vendored_system *s);
  void (*potrs)(vendored_system *s);
  void (*lapacke_gesv)(vendored_system *s);
} vendored_caller;

#endif
