/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of LAPACK's routines for the scalar type of this compilation, and,
   for double complex, those of our own functions that are compiled once for
   each scalar type. The list must be complete: the linker refuses a name that
   is defined twice. Only dropin.h includes this file. */
#ifndef HONE_LAPACK_ENTRY_NAMES_H
#define HONE_LAPACK_ENTRY_NAMES_H

#ifdef HONE_COMPLEX

#define HONE_LETTER "z"
#define HONE_MIXED "zc"
#define HONE_MIXED_CAPITALS "ZC"
#define HONE_RWORK(argument) argument,

#define HONE_REAL_gesv HONE_REAL_zgesv
#define HONE_REAL_posv HONE_REAL_zposv
#define HONE_REAL_getrf HONE_REAL_zgetrf
#define HONE_REAL_getrs HONE_REAL_zgetrs
#define HONE_REAL_potrf HONE_REAL_zpotrf
#define HONE_REAL_potrs HONE_REAL_zpotrs
#define HONE_REAL_mixed_gesv HONE_REAL_zcgesv
#define HONE_REAL_mixed_posv HONE_REAL_zcposv

#define hone_lapack_backsolve hone_lapack_z_backsolve
#define hone_lapack_copy hone_lapack_z_copy
#define hone_lapack_copy_to_keep hone_lapack_z_copy_to_keep
#define hone_lapack_double hone_lapack_z_double
#define hone_lapack_factor hone_lapack_z_factor
#define hone_lapack_false_success hone_lapack_z_false_success
#define hone_lapack_gesv hone_lapack_z_gesv
#define hone_lapack_getrf hone_lapack_z_getrf
#define hone_lapack_getrs hone_lapack_z_getrs
#define hone_lapack_mixed hone_lapack_z_mixed
#define hone_lapack_mixed_gesv hone_lapack_z_mixed_gesv
#define hone_lapack_mixed_posv hone_lapack_z_mixed_posv
#define hone_lapack_passed hone_lapack_z_passed
#define hone_lapack_plain hone_lapack_z_plain
#define hone_lapack_posv hone_lapack_z_posv
#define hone_lapack_potrf hone_lapack_z_potrf
#define hone_lapack_potrs hone_lapack_z_potrs
#define hone_lapack_refine hone_lapack_z_refine
#define hone_lapack_refined hone_lapack_z_refined
#define hone_lapack_residual hone_lapack_z_residual
#define hone_lapack_room hone_lapack_z_room
#define hone_lapack_single hone_lapack_z_single
#define hone_lapack_takes hone_lapack_z_takes
#define hone_lapack_without_mixed hone_lapack_z_without_mixed
#define hone_lapack_wrong hone_lapack_z_wrong

#define hone_lapacke_error hone_lapacke_z_error
#define hone_lapacke_ge_nan hone_lapacke_z_ge_nan
#define hone_lapacke_gesv hone_lapacke_z_gesv
#define hone_lapacke_gesv_work hone_lapacke_z_gesv_work
#define hone_lapacke_getrf hone_lapacke_z_getrf
#define hone_lapacke_getrf_work hone_lapacke_z_getrf_work
#define hone_lapacke_getrs hone_lapacke_z_getrs
#define hone_lapacke_getrs_work hone_lapacke_z_getrs_work
#define hone_lapacke_mixed_gesv hone_lapacke_z_mixed_gesv
#define hone_lapacke_mixed_gesv_work hone_lapacke_z_mixed_gesv_work
#define hone_lapacke_mixed_posv hone_lapacke_z_mixed_posv
#define hone_lapacke_mixed_posv_work hone_lapacke_z_mixed_posv_work
#define hone_lapacke_mixed_free hone_lapacke_z_mixed_free
#define hone_lapacke_mixed_take hone_lapacke_z_mixed_take
#define hone_lapacke_nancheck hone_lapacke_z_nancheck
#define hone_lapacke_po_nan hone_lapacke_z_po_nan
#define hone_lapacke_posv hone_lapacke_z_posv
#define hone_lapacke_posv_work hone_lapacke_z_posv_work
#define hone_lapacke_potrf hone_lapacke_z_potrf
#define hone_lapacke_potrf_work hone_lapacke_z_potrf_work
#define hone_lapacke_potrs hone_lapacke_z_potrs
#define hone_lapacke_potrs_work hone_lapacke_z_potrs_work
#define hone_lapacke_turn hone_lapacke_z_turn
#define hone_lapacke_turn_back hone_lapacke_z_turn_back
#define hone_lapacke_turn_triangle hone_lapacke_z_turn_triangle
#define hone_lapacke_turn_triangle_back hone_lapacke_z_turn_triangle_back

#else

#define HONE_LETTER "d"
#define HONE_MIXED "ds"
#define HONE_MIXED_CAPITALS "DS"
#define HONE_RWORK(argument)

#define HONE_REAL_gesv HONE_REAL_dgesv
#define HONE_REAL_posv HONE_REAL_dposv
#define HONE_REAL_getrf HONE_REAL_dgetrf
#define HONE_REAL_getrs HONE_REAL_dgetrs
#define HONE_REAL_potrf HONE_REAL_dpotrf
#define HONE_REAL_potrs HONE_REAL_dpotrs
#define HONE_REAL_mixed_gesv HONE_REAL_dsgesv
#define HONE_REAL_mixed_posv HONE_REAL_dsposv

#endif
#endif
