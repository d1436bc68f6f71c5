! SPDX-License-Identifier: BSD-3-Clause
!> Hone for Fortran: dense A x = b to full double accuracy.
!>
!>     use hone
!>     status = hone_solve(a, b, x)            ! a(n,n), b(n) or b(n,nrhs)
!>     if (status /= HONE_OK) print *, hone_status_text(status)
!>
!> a, b and x are real(c_double), or all of them complex(c_double_complex). The
!> sign of a status is the contract: 0, every right-hand side is accepted; > 0,
!> x is the best found, weaker than asked; < 0, an error, x is untouched. Names
!> and meanings are those of hone.h; indices in reports count from 0. Arrays are
!> taken as they lie in memory, sections with gaps between their columns too;
!> only one with gaps inside its columns is copied.
!>
!>     type(hone_solver) :: solver     ! or hone_z_solver, for complex arrays
!>     status = solver%create(n)
!>     if (status == HONE_OK) status = solver%factor(a)
!>     if (status == HONE_OK) status = solver%solve(b, x)
!>
!> Many systems at once, a(n,n,count), b(n,nrhs,count) or b(n,count):
!>
!>     type(hone_batch_result) :: results(count)
!>     status = hone_batch_solve(a, b, x, results=results)
!>
!>     type(hone_batch_solver) :: solver     ! keeps their factors; also _z_
!>     status = solver%create()
!>     if (status == HONE_OK) status = solver%factor(a)
!>     status = solver%solve(b, x, results=results)
!>
!> Compile hone_c.f90, then this file, which includes hone_real.inc,
!> hone_complex.inc and the files that those include; link libhone.
include 'hone_real.inc'
include 'hone_complex.inc'

module hone
  use, intrinsic :: iso_c_binding
  use hone_c, hone_solve_c => hone_solve, options_init_c => hone_options_init, &
    report_init_c => hone_report_init, &
    status_text_c => hone_status_text, version_c => hone_version, &
    report_text_c => hone_report_text, report_json_c => hone_report_json, &
    hone_batch_solve_c => hone_batch_solve
  !> hone_solve(a, b, x [, options, report]), hone_solve(a, bx [, ...]) with b
  !> on entry and x on exit; one right-hand side or a matrix of them. With
  !> sizes and leading dimensions: hone_solve_c, hone_z_solve.
  !> hone_batch_solve(a, b, x [, options, results, report, determinants]) for
  !> many systems: see hone_real.inc. As in C: hone_batch_solve_c.
  use hone_real, only: hone_solve, hone_batch_solve, hone_solver, &
    hone_batch_solver
  use hone_complex, only: hone_solve, hone_batch_solve, hone_z_solver, &
    hone_z_batch_solver
  implicit none
  private :: options_init_c, status_text_c, version_c
  private :: report_text_c, report_json_c, strlen, from_c, from_characters
  private :: written, report_init_c
  private :: init_options, init_report, text_of_status, text_of_version
  private :: text_of_report, json_of_report

  interface
    function strlen(text) bind(c) result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
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
end module
