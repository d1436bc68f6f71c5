/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that functions and tables of the sources compiled once for each
   scalar type have in the build for double complex. The list must be complete;
   `ninja complex` checks it. The names of BLAS and LAPACK follow. Only entry.h
   includes this file. */
#ifndef HONE_ENTRY_NAMES_H
#define HONE_ENTRY_NAMES_H

#define hone_apply_inverse hone_z_apply_inverse
#define hone_arithmetic_coarse hone_z_arithmetic_coarse
#define hone_band_pays hone_z_band_pays
#define hone_bounds_certain hone_z_bounds_certain
#define hone_bounds_digits hone_z_bounds_digits
#define hone_bounds_doubtful hone_z_bounds_doubtful
#define hone_bounds_estimate hone_z_bounds_estimate
#define hone_bounds_forward hone_z_bounds_forward
#define hone_bounds_known hone_z_bounds_known
#define hone_bounds_relate hone_z_bounds_relate
#define hone_bounds_rest hone_z_bounds_rest
#define hone_bounds_take hone_z_bounds_take
#define hone_dense_operator hone_z_dense_operator
#define hone_dense_residual hone_z_dense_residual
#define hone_dense_wide_row hone_z_dense_wide_row
#define hone_engine_banded hone_z_engine_banded
#define hone_engine_cholesky_double hone_z_engine_cholesky_double
#define hone_engine_diagonal hone_z_engine_diagonal
#define hone_engine_direct hone_z_engine_direct
#define hone_engine_double hone_z_engine_double
#define hone_engine_triangular hone_z_engine_triangular
#define hone_errors_value hone_z_errors_value
#define hone_estimate hone_z_estimate
#define hone_estimate_mend hone_z_estimate_mend
#define hone_estimate_probe hone_z_estimate_probe
#define hone_estimate_scratch hone_z_estimate_scratch
#define hone_extra hone_z_extra
#define hone_inspect hone_z_inspect
#define hone_inspect_scratch hone_z_inspect_scratch
#define hone_ladder_above hone_z_ladder_above
#define hone_ladder_add_reason hone_z_ladder_add_reason
#define hone_ladder_bytes hone_z_ladder_bytes
#define hone_ladder_certify hone_z_ladder_certify
#define hone_ladder_create hone_z_ladder_create
#define hone_ladder_destroy hone_z_ladder_destroy
#define hone_ladder_elsewhere hone_z_ladder_elsewhere
#define hone_ladder_factor hone_z_ladder_factor
#define hone_ladder_factored_by hone_z_ladder_factored_by
#define hone_ladder_find_structure hone_z_ladder_find_structure
#define hone_ladder_gmres_steps hone_z_ladder_gmres_steps
#define hone_ladder_refactor hone_z_ladder_refactor
#define hone_ladder_report_matrix hone_z_ladder_report_matrix
#define hone_ladder_report_path hone_z_ladder_report_path
#define hone_ladder_solve hone_z_ladder_solve
#define hone_ladder_update hone_z_ladder_update
#define hone_ladder_usable hone_z_ladder_usable
#define hone_largest_at hone_z_largest_at
#define hone_largest_sum hone_z_largest_sum
#define hone_max_abs hone_z_max_abs
#define hone_null_find hone_z_null_find
#define hone_null_of_zeros hone_z_null_of_zeros
#define hone_pairs_close hone_z_pairs_close
#define hone_pairs_open hone_z_pairs_open
#define hone_policy_ends hone_z_policy_ends
#define hone_policy_follows hone_z_policy_follows
#define hone_policy_gmres_steps hone_z_policy_gmres_steps
#define hone_policy_gpu_from hone_z_policy_gpu_from
#define hone_policy_roundoff hone_z_policy_roundoff
#define hone_policy_steps hone_z_policy_steps
#define hone_rank hone_z_rank
#define hone_refine hone_z_refine
#define hone_refined_errors hone_z_refined_errors
#define hone_refined_measure hone_z_refined_measure
#define hone_refined_missed hone_z_refined_missed
#define hone_refined_take_best hone_z_refined_take_best
#define hone_residual hone_z_residual
#define hone_residual_avx2 hone_z_residual_avx2
#define hone_residual_avx512 hone_z_residual_avx512
#define hone_residual_base hone_z_residual_base
#define hone_residual_isa hone_z_residual_isa
#define hone_scale_by hone_z_scale_by
#define hone_scale_find hone_z_scale_find
#define hone_scale_in hone_z_scale_in
#define hone_scale_out hone_z_scale_out
#define hone_see hone_z_see
#define hone_space_behind hone_z_space_behind
#define hone_space_c hone_z_space_c
#define hone_space_entries hone_z_space_entries
#define hone_space_join hone_z_space_join
#define hone_space_make hone_z_space_make
#define hone_space_open hone_z_space_open
#define hone_space_split hone_z_space_split
#define hone_space_take hone_z_space_take
#define hone_space_z hone_z_space_z
#define hone_structure_excluded hone_z_structure_excluded
#define hone_structure_find hone_z_structure_find
#define hone_structure_sample hone_z_structure_sample
#define hone_structure_symmetric hone_z_structure_symmetric
#define hone_sum_abs hone_z_sum_abs
#define hone_take_signs hone_z_take_signs

#define dgemm_ zgemm_
#define dgemv_ zgemv_
#define dtrsm_ ztrsm_
#define dtrsv_ ztrsv_
#define dgetrf_ zgetrf_
#define dgetrs_ zgetrs_
#define dgbtrf_ zgbtrf_
#define dgbtrs_ zgbtrs_
#define dpotrf_ zpotrf_
#define dpotrs_ zpotrs_

#endif
