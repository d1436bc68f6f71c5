! SPDX-License-Identifier: BSD-3-Clause
!> Hone for Fortran: dense A x = b to full double accuracy.
!>
!>     use hone
!>     status = hone_solve(a, b, x)            ! a(n,n), b(n) or b(n,nrhs)
!>     if (status /= HONE_OK) print *, hone_status_text(status)
!>
!> The sign of a status is the contract: 0, every right-hand side is accepted;
!> > 0, x is the best found, weaker than asked; < 0, an error, x is untouched.
!> Names and meanings are those of hone.h; indices in reports count from 0.
!> Arrays are taken as they lie in memory, sections with gaps between their
!> columns too; only one with gaps inside its columns is copied.
!>
!> Compile hone_c.f90, then this file; link libhone.
module hone
  use, intrinsic :: iso_c_binding
  use hone_c, hone_solve_c => hone_solve, options_init_c => hone_options_init, &
    report_init_c => hone_report_init, &
    status_text_c => hone_status_text, version_c => hone_version, &
    report_text_c => hone_report_text, report_json_c => hone_report_json
  implicit none
  private :: options_init_c, status_text_c, version_c
  private :: report_text_c, report_json_c, strlen, from_c, from_characters
  private :: written, columns_apart, flat, packed, column, refused, nothing
  private :: solve_at, solve_vector, solve_matrix, solve_vector_in_place
  private :: solve_matrix_in_place, take, kept_create, kept_factor
  private :: kept_update, kept_solve, kept_solve_vector, kept_solve_matrix
  private :: solve_with_columns, report_init_c
  private :: init_options, init_report, text_of_status, text_of_version
  private :: text_of_report
  private :: json_of_report, kept_assign, kept_order, kept_destroy, kept_final

  real(c_double), target :: nothing(1) = 0 !< of arrays of size 0, for C

  !> A matrix with its factors: create, factor (and update), solve. a is
  !> borrowed until the next factor or update: give it the target attribute
  !> and leave it alone. Freed when it goes out of scope; assigning one leaves
  !> the left side empty.
  type :: hone_solver
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int64_t) :: n = 0
    real(c_double), allocatable :: copy(:, :) !< of an A that has gaps
  contains
    procedure :: create => kept_create !< (n [, options])
    procedure :: factor => kept_factor !< (a [, report])
    procedure :: update => kept_update !< (a [, report])
    !> (b, x [, trans, x0, columns, report, error_bounds]); b and x as of
    !> hone_solve, error_bounds of the shape of x
    generic :: solve => kept_solve_vector, kept_solve_matrix
    procedure :: order => kept_order
    procedure :: destroy => kept_destroy
    procedure, private :: kept_solve_vector, kept_solve_matrix, kept_assign
    generic :: assignment(=) => kept_assign
    final :: kept_final
  end type

  interface
    function strlen(text) bind(c) result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  !> hone_solve(a, b, x [, options, report]), hone_solve(a, bx [, ...]) with b
  !> on entry and x on exit; one right-hand side or a matrix of them. With
  !> sizes and leading dimensions: hone_solve_c.
  interface hone_solve
    procedure :: solve_vector, solve_matrix
    procedure :: solve_vector_in_place, solve_matrix_in_place
  end interface

  !> A C string (event%phase), or characters of a report, as text.
  interface hone_string
    procedure :: from_c, from_characters
  end interface

  interface hone_options_init !< (options)
    procedure :: init_options
  end interface
  interface hone_report_init !< (report)
    procedure :: init_report
  end interface
  interface hone_status_text !< (status): a string
    procedure :: text_of_status
  end interface
  interface hone_version !< (): a string
    procedure :: text_of_version
  end interface
  interface hone_report_text !< (report): lines for people
    procedure :: text_of_report
  end interface
  interface hone_report_json !< (report): one JSON object
    procedure :: json_of_report
  end interface

contains

  ! ---- Texts

  function from_c(text) result(string)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: string
    character(kind=c_char), pointer :: c(:)
    string = ''
    if (.not. c_associated(text)) return
    call c_f_pointer(text, c, [strlen(text)])
    string = transfer(c, repeat(' ', size(c)))
  end function

  function from_characters(text) result(string)
    character(kind=c_char), intent(in) :: text(:)
    character(:), allocatable :: string
    integer :: length
    length = findloc(text, c_null_char, dim=1) - 1
    if (length < 0) length = size(text)
    string = transfer(text(:length), repeat(' ', length))
  end function

  function text_of_status(status) result(text)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: text
    text = from_c(status_text_c(status))
  end function

  function text_of_version() result(text)
    character(:), allocatable :: text
    text = from_c(version_c())
  end function

  function text_of_report(report) result(text)
    type(hone_report), intent(in) :: report
    character(:), allocatable :: text
    text = written(report_text_c, report)
  end function

  function json_of_report(report) result(text)
    type(hone_report), intent(in) :: report
    character(:), allocatable :: text
    text = written(report_json_c, report)
  end function

  function written(write, report) result(text)
    procedure(report_text_c) :: write
    type(hone_report), intent(in) :: report
    character(:), allocatable :: text
    character(kind=c_char), allocatable :: buffer(:)
    integer(c_size_t) :: length
    length = write(report, [c_null_char], 0_c_size_t)
    allocate (buffer(length + 1))
    length = write(report, buffer, length + 1)
    text = from_characters(buffer)
  end function

  subroutine init_options(options)
    type(hone_options), intent(out) :: options
    call options_init_c(options, HONE_OPTIONS_SIZE)
    options%column_size = HONE_COLUMN_SIZE
  end subroutine

  subroutine init_report(report)
    type(hone_report), intent(out) :: report
    call report_init_c(report, HONE_REPORT_SIZE)
  end subroutine

  ! ---- Arrays

  !> Leading dimension of a as it lies in memory; 0: it has to be copied.
  function columns_apart(a) result(ld)
    real(c_double), pointer, intent(in) :: a(:, :)
    integer(c_int64_t) :: ld
    integer(c_intptr_t) :: start
    ld = max(1, size(a, 1))
    if (size(a) == 0) return
    start = transfer(c_loc(a(1, 1)), start)
    if (size(a, 1) > 1) then
      if (transfer(c_loc(a(2, 1)), start) - start /= c_sizeof(a(1, 1))) ld = 0
    end if
    if (size(a, 2) > 1 .and. ld /= 0) then
      start = transfer(c_loc(a(1, 2)), start) - start
      if (modulo(start, c_sizeof(a(1, 1))) /= 0) start = 0
      ld = start / c_sizeof(a(1, 1))
      if (ld < size(a, 1)) ld = 0
    end if
  end function

  !> Where a starts, for C; not associated if a is not.
  function flat(a) result(start)
    real(c_double), pointer, intent(in) :: a(:, :)
    real(c_double), pointer, contiguous :: start(:)
    start => null()
    if (.not. associated(a)) return
    start => nothing
    if (size(a) > 0) call c_f_pointer(c_loc(a(1, 1)), start, [1])
  end function

  !> a, or a copy of it where it has gaps in its columns; ld is the leading
  !> dimension, 0: there is no memory for the copy.
  function packed(a, ld, copy) result(p)
    real(c_double), pointer, intent(in) :: a(:, :)
    integer(c_int64_t), intent(out) :: ld
    real(c_double), allocatable, target, intent(inout) :: copy(:, :)
    real(c_double), pointer :: p(:, :)
    integer :: failed
    p => a
    ld = columns_apart(a)
    if (ld /= 0) return
    allocate (copy(size(a, 1), size(a, 2)), stat=failed)
    if (failed /= 0) return
    copy = a
    p => copy
    ld = max(1, size(a, 1))
  end function

  !> One column as a matrix of one.
  function column(v) result(p)
    real(c_double), intent(in), target :: v(:)
    real(c_double), pointer :: p(:, :)
    p(1:size(v), 1:1) => v
  end function

  ! ---- One call

  recursive function solve_at(a, b, x, options, report) result(status)
    real(c_double), pointer, intent(in) :: a(:, :), b(:, :), x(:, :)
    type(hone_options), intent(in), target, optional :: options
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    real(c_double), allocatable, target :: ac(:, :), bc(:, :), xc(:, :)
    real(c_double), pointer :: ap(:, :), bp(:, :), xp(:, :)
    integer(c_int64_t) :: n, nrhs, lda, ldb, ldx
    n = size(a, 1)
    nrhs = size(b, 2)
    ap => packed(a, lda, ac)
    bp => packed(b, ldb, bc)
    xp => packed(x, ldx, xc)
    if (min(lda, ldb, ldx) == 0) then
      status = refused(HONE_NO_MEMORY, report)
    else if (any([size(a, 2), size(b, 1), size(x, 1)] /= n) .or. &
             size(x, 2) /= nrhs) then
      status = refused(HONE_BAD_SIZE, report)
    else
      status = hone_solve_c(n, nrhs, flat(ap), lda, flat(bp), ldb, flat(xp), &
                            ldx, options, report)
      if (allocated(xc) .and. status >= 0) x = xc
    end if
  end function

  recursive function solve_vector(a, b, x, options, report) result(status)
    real(c_double), intent(in), target :: a(:, :), b(:)
    real(c_double), intent(inout), target :: x(:)
    type(hone_options), intent(in), target, optional :: options
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = solve_at(a, column(b), column(x), options, report)
  end function

  recursive function solve_matrix(a, b, x, options, report) result(status)
    real(c_double), intent(in), target :: a(:, :), b(:, :)
    real(c_double), intent(inout), target :: x(:, :)
    type(hone_options), intent(in), target, optional :: options
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = solve_at(a, b, x, options, report)
  end function

  recursive function solve_vector_in_place(a, bx, options, report) &
    result(status)
    real(c_double), intent(in), target :: a(:, :)
    real(c_double), intent(inout), target :: bx(:)
    type(hone_options), intent(in), target, optional :: options
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = solve_at(a, column(bx), column(bx), options, report)
  end function

  recursive function solve_matrix_in_place(a, bx, options, report) &
    result(status)
    real(c_double), intent(in), target :: a(:, :)
    real(c_double), intent(inout), target :: bx(:, :)
    type(hone_options), intent(in), target, optional :: options
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = solve_at(a, bx, bx, options, report)
  end function

  ! ---- A kept solver

  function kept_create(self, n, options) result(status)
    class(hone_solver), intent(inout) :: self
    integer, intent(in) :: n
    type(hone_options), intent(in), target, optional :: options
    integer(c_int) :: status
    call self%destroy()
    self%n = n
    status = hone_solver_create(self%handle, self%n, options)
  end function

  recursive function kept_factor(self, a, report) result(status)
    class(hone_solver), intent(inout) :: self
    real(c_double), intent(in), target :: a(:, :)
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = take(self, hone_solver_factor, a, report)
  end function

  recursive function kept_update(self, a, report) result(status)
    class(hone_solver), intent(inout) :: self
    real(c_double), intent(in), target :: a(:, :)
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    status = take(self, hone_solver_update, a, report)
  end function

  recursive function take(self, call, a, report) result(status)
    type(hone_solver), intent(inout) :: self
    procedure(hone_solver_factor) :: call
    real(c_double), pointer, intent(in) :: a(:, :)
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    real(c_double), allocatable, target :: copy(:, :)
    real(c_double), pointer :: p(:, :)
    integer(c_int64_t) :: lda
    p => packed(a, lda, copy)
    if (lda == 0) then
      status = refused(HONE_NO_MEMORY, report)
    else if (c_associated(self%handle) .and. any(shape(a) /= self%n)) then
      status = refused(HONE_BAD_SIZE, report)
    else
      status = call(self%handle, flat(p), lda, report)
      ! No data move: p stays where it was. After a refusal the solver has the
      ! matrix of before.
      if (status > HONE_NULL_POINTER .or. status < HONE_BUSY) &
        call move_alloc(copy, self%copy)
    end if
  end function

  recursive function kept_solve(self, b, x, trans, x0, columns, report, &
    bounds) result(status)
    type(hone_solver), intent(in) :: self
    real(c_double), pointer, intent(in) :: b(:, :), x(:, :), x0(:, :)
    real(c_double), pointer, intent(in) :: bounds(:, :)
    integer, intent(in), optional :: trans
    type(hone_column), intent(inout), optional :: columns(:)
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    real(c_double), allocatable, target :: bc(:, :), xc(:, :), x0c(:, :)
    real(c_double), allocatable, target :: made(:, :)
    real(c_double), pointer :: bp(:, :), xp(:, :), x0p(:, :)
    integer(c_int64_t) :: nrhs, ldb, ldx, ldx0
    type(hone_options) :: options
    logical :: fits
    integer :: rows
    nrhs = size(b, 2)
    bp => packed(b, ldb, bc)
    xp => packed(x, ldx, xc)
    x0p => null()
    ldx0 = 1
    fits = size(b, 1) == size(x, 1) .and. size(x, 2) == nrhs
    if (c_associated(self%handle)) fits = fits .and. size(b, 1) == self%n
    if (present(columns)) fits = fits .and. size(columns) >= nrhs
    if (associated(x0)) then
      x0p => packed(x0, ldx0, x0c)
      fits = fits .and. all(shape(x0) == shape(b))
    end if
    rows = 0
    if (associated(bounds)) rows = max(1, size(b, 1))
    allocate (made(rows, max(1, size(b, 2))))
    if (associated(bounds)) then
      fits = fits .and. all(shape(bounds) == shape(b))
      options%error_bounds = c_loc(made)
      options%ld_error_bounds = rows
    end if
    if (present(trans)) options%trans = trans
    if (associated(x0p)) then
      if (size(x0p) > 0) options%x0 = c_loc(x0p(1, 1))
    end if
    options%ldx0 = ldx0
    if (min(ldb, ldx, ldx0) == 0) then
      status = refused(HONE_NO_MEMORY, report)
    else if (.not. fits) then
      status = refused(HONE_BAD_SIZE, report)
    else
      status = solve_with_columns(self, nrhs, flat(bp), ldb, flat(xp), ldx, &
                                  options, columns, report)
      if (allocated(xc) .and. status >= 0) x = xc
      if (associated(bounds) .and. status >= 0) &
        bounds = made(:size(b, 1), :size(b, 2))
    end if
  end function

  !> columns that are not one after the other in memory are copied.
  recursive function solve_with_columns(self, nrhs, b, ldb, x, ldx, options, &
    columns, report) result(status)
    type(hone_solver), intent(in) :: self
    integer(c_int64_t), intent(in) :: nrhs, ldb, ldx
    real(c_double) :: b(*), x(*)
    type(hone_options), intent(inout) :: options
    type(hone_column), intent(inout), optional :: columns(:)
    type(hone_report), intent(inout), optional :: report
    integer(c_int) :: status
    type(hone_column), allocatable, target :: made(:)
    if (present(columns)) then
      allocate (made(max(1_c_int64_t, nrhs)))
      options%columns = c_loc(made)
    end if
    status = hone_solver_solve(self%handle, nrhs, b, ldb, x, ldx, options, &
                               report)
    if (present(columns) .and. status >= 0) columns(:nrhs) = made(:nrhs)
  end function

  recursive function kept_solve_vector(self, b, x, trans, x0, columns, report, &
                             error_bounds) result(status)
    class(hone_solver), intent(in) :: self
    real(c_double), intent(in), target :: b(:)
    real(c_double), intent(inout), target :: x(:)
    integer, intent(in), optional :: trans
    real(c_double), intent(in), target, optional :: x0(:)
    type(hone_column), intent(inout), optional :: columns(:)
    type(hone_report), intent(out), optional :: report
    real(c_double), intent(inout), target, optional :: error_bounds(:)
    integer(c_int) :: status
    real(c_double), pointer :: start(:, :), bounds(:, :)
    start => null()
    bounds => null()
    if (present(x0)) start => column(x0)
    if (present(error_bounds)) bounds => column(error_bounds)
    status = kept_solve(self, column(b), column(x), trans, start, columns, &
                        report, bounds)
  end function

  recursive function kept_solve_matrix(self, b, x, trans, x0, columns, report, &
                             error_bounds) result(status)
    class(hone_solver), intent(in) :: self
    real(c_double), intent(in), target :: b(:, :)
    real(c_double), intent(inout), target :: x(:, :)
    integer, intent(in), optional :: trans
    real(c_double), intent(in), target, optional :: x0(:, :)
    type(hone_column), intent(inout), optional :: columns(:)
    type(hone_report), intent(out), optional :: report
    real(c_double), intent(inout), target, optional :: error_bounds(:, :)
    integer(c_int) :: status
    real(c_double), pointer :: start(:, :), bounds(:, :)
    start => null()
    bounds => null()
    if (present(x0)) start => x0
    if (present(error_bounds)) bounds => error_bounds
    status = kept_solve(self, b, x, trans, start, columns, report, bounds)
  end function

  function kept_order(self) result(n)
    class(hone_solver), intent(in) :: self
    integer :: n
    n = int(self%n)
  end function

  subroutine kept_destroy(self)
    class(hone_solver), intent(inout) :: self
    call hone_solver_destroy(self%handle)
    self%n = 0
    if (allocated(self%copy)) deallocate (self%copy)
  end subroutine

  subroutine kept_final(self)
    type(hone_solver), intent(inout) :: self
    call self%destroy()
  end subroutine

  subroutine kept_assign(self, other)
    class(hone_solver), intent(inout) :: self
    class(hone_solver), intent(in) :: other
    if (.not. same_type_as(self, other)) return
    call self%destroy()
  end subroutine

  !> An error found here, and the report of it.
  function refused(error, report) result(status)
    integer, intent(in) :: error
    type(hone_report), intent(out), optional :: report
    integer(c_int) :: status
    character(:), allocatable :: reason
    status = hone_solve_c(-1_c_int64_t, 0_c_int64_t, nothing, 1_c_int64_t, &
                          nothing, 1_c_int64_t, nothing, 1_c_int64_t, &
                          report=report)
    if (present(report)) then
      report%status = error
      reason = 'the sizes of the arrays do not agree'
      if (error == HONE_NO_MEMORY) &
        reason = 'no memory for a copy of an array with gaps in its columns'
      report%reason = c_null_char
      report%reason(:len(reason)) = transfer(reason, report%reason, len(reason))
    end if
    status = error
  end function
end module
