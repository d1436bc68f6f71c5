! SPDX-License-Identifier: BSD-3-Clause
!> hone.h, hone_batch.h and hone_tuning.h in Fortran, word for word: constants,
!> types and calls, which take arrays with their leading dimensions as LAPACK
!> does. Most programs use the module hone (hone.f90), which is all of this with
!> arrays that know their shape, texts that are strings, and a solver that frees
!> itself.
module hone_c
  use, intrinsic :: iso_c_binding
  implicit none

  !> Statuses: see hone_status_text.
  enum, bind(c)
    enumerator :: HONE_OK = 0, HONE_NOT_CONVERGED = 1
    enumerator :: HONE_ILL_CONDITIONED = 2, HONE_INTERRUPTED = 3
    enumerator :: HONE_NULL_POINTER = -10, HONE_BAD_SIZE = -11
    enumerator :: HONE_BAD_LEADING_DIMENSION = -12, HONE_BAD_OPTION = -13
    enumerator :: HONE_BAD_STRUCT_SIZE = -14, HONE_BAD_OVERLAP = -15
    enumerator :: HONE_NOT_FACTORED = -16, HONE_BUSY = -17
    enumerator :: HONE_NOT_FINITE_A = -20, HONE_NOT_FINITE_B = -21
    enumerator :: HONE_SINGULAR = -30, HONE_OVERFLOW = -31
    enumerator :: HONE_NO_MEMORY = -40, HONE_NO_DEVICE = -50
    enumerator :: HONE_DEVICE_FAILED = -51, HONE_CANCELLED = -60
    enumerator :: HONE_INTERNAL = -90
  end enum

  !> Values of options and of tuning; HONE_FOUND_... are of report%structure.
  enum, bind(c)
    enumerator :: HONE_COL_MAJOR = 0, HONE_ROW_MAJOR = 1
    enumerator :: HONE_NO_TRANS = 0, HONE_TRANS = 1, HONE_CONJ_TRANS = 2
    enumerator :: HONE_DEVICE_AUTO = 0, HONE_DEVICE_CPU = 1
    enumerator :: HONE_DEVICE_CUDA = 2
    enumerator :: HONE_FACTOR_AUTO = 0, HONE_FACTOR_SINGLE = 1
    enumerator :: HONE_FACTOR_DOUBLE = 2
    enumerator :: HONE_STRUCTURE_AUTO = 0, HONE_STRUCTURE_SPD = 1
    enumerator :: HONE_STRUCTURE_GENERAL = 2
    enumerator :: HONE_TRIANGLE_BOTH = 0, HONE_TRIANGLE_LOWER = 1
    enumerator :: HONE_TRIANGLE_UPPER = 2, HONE_TRIANGLE_LOWER_SYMMETRIC = 3
    enumerator :: HONE_TRIANGLE_UPPER_SYMMETRIC = 4
    enumerator :: HONE_FOUND_GENERAL = 0, HONE_FOUND_DEFINITE = 1
    enumerator :: HONE_FOUND_BANDED = 2, HONE_FOUND_TRIANGULAR = 3
    enumerator :: HONE_FOUND_DIAGONAL = 4
    enumerator :: HONE_CRITERION_COMPONENTWISE = 0
    enumerator :: HONE_CRITERION_NORMWISE = 1, HONE_CRITERION_RESIDUAL = 2
    enumerator :: HONE_ARITHMETIC_AUTO = 0, HONE_ARITHMETIC_FP32 = 1
    enumerator :: HONE_ARITHMETIC_TF32 = 2, HONE_ARITHMETIC_FP16X3 = 3
    enumerator :: HONE_ARITHMETIC_BF16X3 = 4, HONE_ARITHMETIC_FP16 = 5
    enumerator :: HONE_ARITHMETIC_BF16 = 6
    enumerator :: HONE_PIVOT_AUTO = 0, HONE_PIVOT_BLOCK = 1
    enumerator :: HONE_PIVOT_NONE = 2
    enumerator :: HONE_DIAGONAL_AUTO = 0, HONE_DIAGONAL_GPU = 1
    enumerator :: HONE_DIAGONAL_CPU = 2
    enumerator :: HONE_BLOCK_ROWS_AUTO = 0, HONE_BLOCK_ROWS_TRSM = 1
    enumerator :: HONE_BLOCK_ROWS_SEEDED = 2, HONE_BLOCK_ROWS_CROUT = 3
    enumerator :: HONE_RESIDUALS_AUTO = 0, HONE_RESIDUALS_HOST = 1
    enumerator :: HONE_RESIDUALS_TWICE = 2
  end enum

  integer(c_int), parameter :: HONE_VERSION_MAJOR = 0
  integer(c_int), parameter :: HONE_VERSION_MINOR = 1
  integer(c_int), parameter :: HONE_VERSION_PATCH = 0

  !> Sizes of the types below, which every variable of them starts with.
  integer(c_size_t), parameter :: HONE_OPTIONS_SIZE = 184, HONE_TUNING_SIZE = 32
  integer(c_size_t), parameter :: HONE_REPORT_SIZE = 1144, HONE_COLUMN_SIZE = 48
  integer(c_size_t), parameter :: HONE_BATCH_SIZE = 152
  integer(c_size_t), parameter :: HONE_BATCH_RESULT_SIZE = 88

  !> One right-hand side's result: see options%columns.
  type, bind(c) :: hone_column
    integer(c_int32_t) :: status, iterations, precision, digits
    real(c_double) :: backward_error, normwise_error
    real(c_double) :: residual_error, forward_error
  end type

  !> What a progress callback is told; phase: hone_string(event%phase).
  type, bind(c) :: hone_progress
    type(c_ptr) :: phase
    real(c_double) :: fraction, elapsed_s
    integer(c_int32_t) :: iteration, precision
    real(c_double) :: backward_error
    integer(c_int32_t) :: gmres, reserved
  end type

  !> Choices for a GPU that only measurements justify: hone_tuning.h.
  type, bind(c) :: hone_tuning
    integer(c_size_t) :: struct_size = HONE_TUNING_SIZE
    integer(c_int32_t) :: arithmetic = 0, pivoting = 0, diagonal = 0
    integer(c_int32_t) :: block_rows = 0, residuals = 0, reserved = 0
  end type

  !> Options: zero is the default everywhere; change what you need.
  type, bind(c) :: hone_options
    integer(c_size_t) :: struct_size = HONE_OPTIONS_SIZE
    integer(c_size_t) :: column_size = HONE_COLUMN_SIZE
    integer(c_int32_t) :: device = 0, factor_precision = 0, structure = 0
    integer(c_int32_t) :: layout = 0, criterion = 0, extra_precise = 0
    integer(c_int32_t) :: max_iterations = 0, threads = 0, deterministic = 0
    integer(c_int32_t) :: trans = 0
    real(c_double) :: tolerance = 0
    type(c_ptr) :: x0 = c_null_ptr !< c_loc of an initial x
    integer(c_int64_t) :: ldx0 = 0
    type(c_ptr) :: columns = c_null_ptr !< c_loc of nrhs hone_column
    real(c_double) :: deadline_s = 0
    type(c_funptr) :: progress = c_null_funptr !< c_funloc of a hone_progress_fn
    type(c_ptr) :: progress_user = c_null_ptr
    integer(c_int64_t) :: memory_limit_bytes = 0
    integer(c_int64_t) :: device_memory_limit_bytes = 0
    type(c_funptr) :: alloc = c_null_funptr, free = c_null_funptr
    type(c_ptr) :: alloc_ctx = c_null_ptr
    type(c_ptr) :: tuning = c_null_ptr !< c_loc of a hone_tuning
    integer(c_int32_t) :: devices = 0, triangle = 0
    type(c_ptr) :: error_bounds = c_null_ptr !< c_loc of n x nrhs numbers
    integer(c_int64_t) :: ld_error_bounds = 0
  end type

  !> What was done; texts: hone_string(report%path), or hone_report_text.
  type, bind(c) :: hone_report
    integer(c_size_t) :: struct_size = HONE_REPORT_SIZE
    integer(c_int32_t) :: status, accepted
    integer(c_int64_t) :: n, nrhs
    real(c_double) :: backward_error, normwise_error, residual_error
    real(c_double) :: forward_error, tolerance
    integer(c_int32_t) :: iterations, precision, fallback_columns, digits
    integer(c_int32_t) :: gmres_steps, threads
    integer(c_int64_t) :: bad_row, bad_col
    real(c_double) :: norm1, rcond, growth, max_abs, min_abs
    integer(c_int32_t) :: scale_exponent_min, scale_exponent_max
    integer(c_int64_t) :: underflows
    real(c_double) :: inspect_ms, factor_ms, refine_ms, certify_ms
    real(c_double) :: fallback_ms, total_ms
    integer(c_int32_t) :: host_passes, device_passes
    integer(c_int64_t) :: host_bytes, device_bytes, to_device_bytes
    integer(c_int64_t) :: from_device_bytes
    character(kind=c_char) :: device(64), path(160), reason(320)
    integer(c_int32_t) :: certificate_steps, structure
    integer(c_int64_t) :: null_count, null_index(8)
    real(c_double) :: null_weight(8)
    integer(c_int64_t) :: min_pivot_row, min_pivot_col, dependent_count
    integer(c_int64_t) :: dependent_index(8)
    real(c_double) :: dependent_weight(8), diagonal_ms, diagonal_wait_ms
    integer(c_int32_t) :: block_rows, block_row_sweeps, block_row_sweeps_max
    integer(c_int32_t) :: block_row_fallbacks
    real(c_double) :: bound_failure
    integer(c_int32_t) :: sparse_columns
  end type

  !> The result for one system of a batch.
  type, bind(c) :: hone_batch_result
    integer(c_int32_t) :: status, iterations, precision, digits
    real(c_double) :: backward_error, normwise_error, residual_error
    real(c_double) :: forward_error, rcond
    integer(c_int32_t) :: row, col
    real(c_double) :: log_abs_det, det_re, det_im
  end type

  !> Many systems and where they lie: see hone_batch.h.
  type, bind(c) :: hone_batch
    integer(c_size_t) :: struct_size = HONE_BATCH_SIZE
    integer(c_size_t) :: result_size = HONE_BATCH_RESULT_SIZE
    integer(c_int64_t) :: count = 0, n = 0
    type(c_ptr) :: orders = c_null_ptr !< c_loc of count integer(c_int64_t)
    integer(c_int64_t) :: nrhs = 0
    type(c_ptr) :: a = c_null_ptr !< c_loc of the first matrix
    integer(c_int64_t) :: lda = 0, stride_a = 0
    type(c_ptr) :: a_list = c_null_ptr !< c_loc of count type(c_ptr)
    type(c_ptr) :: b = c_null_ptr
    integer(c_int64_t) :: ldb = 0, stride_b = 0
    type(c_ptr) :: b_list = c_null_ptr
    type(c_ptr) :: x = c_null_ptr
    integer(c_int64_t) :: ldx = 0, stride_x = 0
    type(c_ptr) :: x_list = c_null_ptr
    integer(c_int32_t) :: determinants = 0, reserved = 0
  end type

  !> Complex systems, member by member as above.
  type, bind(c) :: hone_z_batch
    integer(c_size_t) :: struct_size = HONE_BATCH_SIZE
    integer(c_size_t) :: result_size = HONE_BATCH_RESULT_SIZE
    integer(c_int64_t) :: count = 0, n = 0
    type(c_ptr) :: orders = c_null_ptr
    integer(c_int64_t) :: nrhs = 0
    type(c_ptr) :: a = c_null_ptr
    integer(c_int64_t) :: lda = 0, stride_a = 0
    type(c_ptr) :: a_list = c_null_ptr
    type(c_ptr) :: b = c_null_ptr
    integer(c_int64_t) :: ldb = 0, stride_b = 0
    type(c_ptr) :: b_list = c_null_ptr
    type(c_ptr) :: x = c_null_ptr
    integer(c_int64_t) :: ldx = 0, stride_x = 0
    type(c_ptr) :: x_list = c_null_ptr
    integer(c_int32_t) :: determinants = 0, reserved = 0
  end type

  abstract interface
    !> Nonzero stops the solve: options%progress = c_funloc(it).
    function hone_progress_fn(user, event) bind(c) result(stop)
      import :: c_ptr, c_int, hone_progress
      type(c_ptr), value :: user
      type(hone_progress), intent(in) :: event
      integer(c_int) :: stop
    end function
  end interface

  !> A solver is a type(c_ptr) here; what may be NULL may be left out. target
  !> where C follows a pointer later or further than the argument itself: the
  !> compiler must not take what it points to for unchanged.
  interface
    function hone_solve(n, nrhs, a, lda, b, ldb, x, ldx, options, report) &
        bind(c, name='hone_solve') result(status)
      import :: c_int, c_int64_t, c_double, hone_options, hone_report
      integer(c_int64_t), value :: n, nrhs, lda, ldb, ldx
      real(c_double), intent(in) :: a(*)
      real(c_double) :: b(*), x(*) ! which may be one
      type(hone_options), intent(in), target, optional :: options
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_solver_create(solver, n, options) &
        bind(c, name='hone_solver_create') result(status)
      import :: c_int, c_int64_t, c_ptr, hone_options
      type(c_ptr), intent(out) :: solver
      integer(c_int64_t), value :: n
      type(hone_options), intent(in), target, optional :: options
      integer(c_int) :: status
    end function

    function hone_solver_factor(solver, a, lda, report) &
        bind(c, name='hone_solver_factor') result(status)
      import :: c_int, c_int64_t, c_double, c_ptr, hone_report
      type(c_ptr), value :: solver
      real(c_double), intent(in), target :: a(*)
      integer(c_int64_t), value :: lda
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_solver_update(solver, a, lda, report) &
        bind(c, name='hone_solver_update') result(status)
      import :: c_int, c_int64_t, c_double, c_ptr, hone_report
      type(c_ptr), value :: solver
      real(c_double), intent(in), target :: a(*)
      integer(c_int64_t), value :: lda
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_solver_solve(solver, nrhs, b, ldb, x, ldx, options, report) &
        bind(c, name='hone_solver_solve') result(status)
      import :: c_int, c_int64_t, c_double, c_ptr, hone_options, hone_report
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: nrhs, ldb, ldx
      real(c_double) :: b(*), x(*) ! which may be one
      type(hone_options), intent(in), target, optional :: options
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    subroutine hone_solver_destroy(solver) bind(c, name='hone_solver_destroy')
      import :: c_ptr
      type(c_ptr), intent(inout) :: solver
    end subroutine

    function hone_memory_needed(n, nrhs, options, single_bytes, &
        double_bytes) bind(c, name='hone_memory_needed') result(status)
      import :: c_int, c_int64_t, hone_options
      integer(c_int64_t), value :: n, nrhs
      type(hone_options), intent(in), target, optional :: options
      integer(c_int64_t), optional :: single_bytes, double_bytes
      integer(c_int) :: status
    end function

    !> The same for complex systems.
    function hone_z_solve(n, nrhs, a, lda, b, ldb, x, ldx, options, report) &
        bind(c, name='hone_z_solve') result(status)
      import :: c_int, c_int64_t, c_double_complex, hone_options, &
          hone_report
      integer(c_int64_t), value :: n, nrhs, lda, ldb, ldx
      complex(c_double_complex), intent(in) :: a(*)
      complex(c_double_complex) :: b(*), x(*) ! which may be one
      type(hone_options), intent(in), target, optional :: options
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_z_solver_create(solver, n, options) &
        bind(c, name='hone_z_solver_create') result(status)
      import :: c_int, c_int64_t, c_ptr, hone_options
      type(c_ptr), intent(out) :: solver
      integer(c_int64_t), value :: n
      type(hone_options), intent(in), target, optional :: options
      integer(c_int) :: status
    end function

    function hone_z_solver_factor(solver, a, lda, report) &
        bind(c, name='hone_z_solver_factor') result(status)
      import :: c_int, c_int64_t, c_double_complex, c_ptr, hone_report
      type(c_ptr), value :: solver
      complex(c_double_complex), intent(in), target :: a(*)
      integer(c_int64_t), value :: lda
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_z_solver_update(solver, a, lda, report) &
        bind(c, name='hone_z_solver_update') result(status)
      import :: c_int, c_int64_t, c_double_complex, c_ptr, hone_report
      type(c_ptr), value :: solver
      complex(c_double_complex), intent(in), target :: a(*)
      integer(c_int64_t), value :: lda
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_z_solver_solve(solver, nrhs, b, ldb, x, ldx, options, &
        report) &
        bind(c, name='hone_z_solver_solve') result(status)
      import :: c_int, c_int64_t, c_double_complex, c_ptr, hone_options, &
          hone_report
      type(c_ptr), value :: solver
      integer(c_int64_t), value :: nrhs, ldb, ldx
      complex(c_double_complex) :: b(*), x(*) ! which may be one
      type(hone_options), intent(in), target, optional :: options
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    subroutine hone_z_solver_destroy(solver) &
        bind(c, name='hone_z_solver_destroy')
      import :: c_ptr
      type(c_ptr), intent(inout) :: solver
    end subroutine

    function hone_z_memory_needed(n, nrhs, options, single_bytes, &
        double_bytes) bind(c, name='hone_z_memory_needed') result(status)
      import :: c_int, c_int64_t, hone_options
      integer(c_int64_t), value :: n, nrhs
      type(hone_options), intent(in), target, optional :: options
      integer(c_int64_t), optional :: single_bytes, double_bytes
      integer(c_int) :: status
    end function

    function hone_z_device_memory_needed(n, options, with_residuals, &
        without) bind(c, name='hone_z_device_memory_needed') result(status)
      import :: c_int, c_int64_t, hone_options
      integer(c_int64_t), value :: n
      type(hone_options), intent(in), target, optional :: options
      integer(c_int64_t), optional :: with_residuals, without
      integer(c_int) :: status
    end function

    function hone_batch_solve(batch, options, results, report) &
        bind(c, name='hone_batch_solve') result(status)
      import :: c_int, hone_batch, hone_batch_result, hone_options, &
          hone_report
      type(hone_batch), intent(in), target :: batch
      type(hone_options), intent(in), target, optional :: options
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_z_batch_solve(batch, options, results, report) &
        bind(c, name='hone_z_batch_solve') result(status)
      import :: c_int, hone_z_batch, hone_batch_result, hone_options, &
          hone_report
      type(hone_z_batch), intent(in), target :: batch
      type(hone_options), intent(in), target, optional :: options
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_batch_solver_create(solver, options) &
        bind(c, name='hone_batch_solver_create') result(status)
      import :: c_int, c_ptr, hone_options
      type(c_ptr), intent(out) :: solver
      type(hone_options), intent(in), target, optional :: options
      integer(c_int) :: status
    end function

    function hone_batch_solver_factor(solver, batch, results, report) &
        bind(c, name='hone_batch_solver_factor') result(status)
      import :: c_int, c_ptr, hone_batch, hone_batch_result, hone_report
      type(c_ptr), value :: solver
      type(hone_batch), intent(in), target :: batch
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_batch_solver_solve(solver, batch, options, results, &
        report) bind(c, name='hone_batch_solver_solve') result(status)
      import :: c_int, c_ptr, hone_batch, hone_batch_result, &
          hone_options, hone_report
      type(c_ptr), value :: solver
      type(hone_batch), intent(in), target :: batch
      type(hone_options), intent(in), target, optional :: options
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    subroutine hone_batch_solver_destroy(solver) &
        bind(c, name='hone_batch_solver_destroy')
      import :: c_ptr
      type(c_ptr), intent(inout) :: solver
    end subroutine

    function hone_z_batch_solver_create(solver, options) &
        bind(c, name='hone_z_batch_solver_create') result(status)
      import :: c_int, c_ptr, hone_options
      type(c_ptr), intent(out) :: solver
      type(hone_options), intent(in), target, optional :: options
      integer(c_int) :: status
    end function

    function hone_z_batch_solver_factor(solver, batch, results, report) &
        bind(c, name='hone_z_batch_solver_factor') result(status)
      import :: c_int, c_ptr, hone_z_batch, hone_batch_result, hone_report
      type(c_ptr), value :: solver
      type(hone_z_batch), intent(in), target :: batch
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    function hone_z_batch_solver_solve(solver, batch, options, results, &
        report) bind(c, name='hone_z_batch_solver_solve') result(status)
      import :: c_int, c_ptr, hone_z_batch, hone_batch_result, &
          hone_options, hone_report
      type(c_ptr), value :: solver
      type(hone_z_batch), intent(in), target :: batch
      type(hone_options), intent(in), target, optional :: options
      type(hone_batch_result), intent(inout), optional :: results(*)
      type(hone_report), intent(inout), optional :: report
      integer(c_int) :: status
    end function

    subroutine hone_z_batch_solver_destroy(solver) &
        bind(c, name='hone_z_batch_solver_destroy')
      import :: c_ptr
      type(c_ptr), intent(inout) :: solver
    end subroutine

    function hone_device_memory_needed(n, options, with_residuals, &
        without) bind(c, name='hone_device_memory_needed') result(status)
      import :: c_int, c_int64_t, hone_options
      integer(c_int64_t), value :: n
      type(hone_options), intent(in), target, optional :: options
      integer(c_int64_t), optional :: with_residuals, without
      integer(c_int) :: status
    end function

    function hone_release_kept() bind(c, name='hone_release_kept') &
        result(bytes)
      import :: c_int64_t
      integer(c_int64_t) :: bytes
    end function

    subroutine hone_options_init(options, struct_size) &
        bind(c, name='hone_options_init')
      import :: hone_options, c_size_t
      type(hone_options), intent(inout) :: options
      integer(c_size_t), value :: struct_size
    end subroutine

    subroutine hone_report_init(report, struct_size) &
        bind(c, name='hone_report_init')
      import :: hone_report, c_size_t
      type(hone_report), intent(inout) :: report
      integer(c_size_t), value :: struct_size
    end subroutine

    function hone_status_text(status) bind(c, name='hone_status_text') &
        result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: status
      type(c_ptr) :: text
    end function

    function hone_version() bind(c, name='hone_version') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function hone_report_text(report, buffer, size) &
        bind(c, name='hone_report_text') result(length)
      import :: hone_report, c_char, c_size_t
      type(hone_report), intent(in) :: report
      character(kind=c_char) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t) :: length
    end function

    function hone_report_json(report, buffer, size) &
        bind(c, name='hone_report_json') result(length)
      import :: hone_report, c_char, c_size_t
      type(hone_report), intent(in) :: report
      character(kind=c_char) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t) :: length
    end function
  end interface
end module
