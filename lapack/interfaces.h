/* SPDX-License-Identifier: BSD-3-Clause */
/* The interfaces under which LAPACKs export their routines: the names, and the
   width of integers. A routine is called

     dgesv_           LAPACKE_dgesv            LAPACK, OpenBLAS, MKL
     scipy_dgesv_     scipy_LAPACKE_dgesv      the wheels of SciPy
     dgesv_64_        LAPACKE_dgesv64_         OpenBLAS with 64-bit integers
                      LAPACKE_dgesv_64         and LAPACK's own build
     scipy_dgesv_64_  scipy_LAPACKE_dgesv64_   the wheels of NumPy

   The macros below are the table of these names. */
#ifndef HONE_LAPACK_INTERFACES_H
#define HONE_LAPACK_INTERFACES_H

/* X(interface) for each. LP64 means 32-bit integers, ILP64 64-bit ones. */
#define HONE_LAPACK_INTERFACE_LIST(X)                                          \
  X(LP64)                                                                      \
  X(SCIPY_LP64)                                                                \
  X(ILP64)                                                                     \
  X(SCIPY_ILP64)

/* Names begin with these. */
#define HONE_PREFIX_LP64
#define HONE_PREFIX_SCIPY_LP64 scipy_
#define HONE_PREFIX_ILP64
#define HONE_PREFIX_SCIPY_ILP64 scipy_

/* Names of Fortran routines end with these. */
#define HONE_FORTRAN_END_LP64 _
#define HONE_FORTRAN_END_SCIPY_LP64 _
#define HONE_FORTRAN_END_ILP64 _64_
#define HONE_FORTRAN_END_SCIPY_ILP64 _64_

/* Names of C functions end with these. */
#define HONE_C_END_LP64
#define HONE_C_END_SCIPY_LP64
#define HONE_C_END_ILP64 64_
#define HONE_C_END_SCIPY_ILP64 64_

#define HONE_INTEGER_LP64 int32_t
#define HONE_INTEGER_SCIPY_LP64 int32_t
#define HONE_INTEGER_ILP64 int64_t
#define HONE_INTEGER_SCIPY_ILP64 int64_t

/* The name of a routine in an interface. */
#define HONE_PASTE_(a, b, c) a##b##c
#define HONE_PASTE(a, b, c) HONE_PASTE_(a, b, c)
#define HONE_FORTRAN_NAME_(interface, name)                                    \
  HONE_PASTE(HONE_PREFIX_##interface, name, HONE_FORTRAN_END_##interface)
#define HONE_FORTRAN_NAME(interface, name) HONE_FORTRAN_NAME_(interface, name)
#define HONE_C_NAME_(interface, name)                                          \
  HONE_PASTE(HONE_PREFIX_##interface, name, HONE_C_END_##interface)
#define HONE_C_NAME(interface, name) HONE_C_NAME_(interface, name)

typedef enum hone_lapack_interface {
#define HONE_LAPACK_INTERFACE_ENUM(interface) HONE_##interface,
  HONE_LAPACK_INTERFACE_LIST(HONE_LAPACK_INTERFACE_ENUM)
#undef HONE_LAPACK_INTERFACE_ENUM
      HONE_LAPACK_INTERFACES
} hone_lapack_interface;

#endif
