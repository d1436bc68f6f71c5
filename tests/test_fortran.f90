! SPDX-License-Identifier: BSD-3-Clause
! The module hone: what it adds to the C calls. Prints what failed; exit
! status 0: nothing did. tests/packaging/fortran builds and runs it.
module checks
  use fortran_checks
  use hone
  implicit none
  integer :: events = 0, stop_at = huge(1)
  character(:), allocatable :: phases
  type(hone_solver) :: shared

contains

  ! A well conditioned matrix without structure, and b = A * (1, 2, ..., n).
  subroutine system(n, a, b)
    integer, intent(in) :: n
    real(c_double), intent(out) :: a(:, :), b(:)
    integer :: i, j
    do j = 1, n
      do i = 1, n
        a(i, j) = 1 / real(i + 2 * j, c_double)
      end do
      a(j, j) = a(j, j) + 2
    end do
    b = 0
    do j = 1, n
      b = b + a(:, j) * j
    end do
  end subroutine

  ! Is x(i) = factor * i?
  logical function counts(x, factor)
    real(c_double), intent(in) :: x(:)
    integer, intent(in) :: factor
    integer :: i
    counts = all(abs(x - factor * [(i, i=1, size(x))]) <= 1e-10_c_double)
  end function

  function listen(user, event) bind(c) result(stop)
    type(c_ptr), value :: user
    type(hone_progress), intent(in) :: event
    integer(c_int) :: stop
    integer, pointer :: count
    call c_f_pointer(user, count)
    count = count + 1
    phases = phases//hone_string(event%phase)//' '
    stop = merge(1, 0, count >= stop_at)
  end function

  ! Calls the solver that is being used, with a matrix that has to be copied.
  function call_again(user, event) bind(c) result(stop)
    type(c_ptr), value :: user
    type(hone_progress), intent(in) :: event
    integer(c_int) :: stop
    real(c_double) :: a(80, 40), b(40), x(40)
    call check(c_associated(user) .and. event%fraction <= 1, 'an event')
    a = 1
    b = 1
    x = 77
    call check(shared%solve(b, x) == HONE_BUSY, 'solve in a call')
    call check(shared%factor(a(::2, :)) == HONE_BUSY, 'factor in a call')
    call check(shared%update(a(::2, :)) == HONE_BUSY, 'update in a call')
    call check(all(abs(x - 77) <= 0), 'x untouched by a busy solver')
    stop = 0
  end function
end module

program test_fortran
  use checks
  use, intrinsic :: ieee_arithmetic
  implicit none
  call one_call()
  call in_place()
  call sections()
  call kept()
  call kept_with_gaps()
  call bad_input()
  call nothing_to_solve()
  call weak_answers()
  call options_and_columns()
  call pointers_in_options()
  call pointers_in_plain_options()
  call progress()
  call busy()
  call texts()
  call plain_calls()
  call print_result('fortran')

contains

  subroutine one_call()
    real(c_double) :: a(9, 9), b(9), x(9), bb(9, 2), xx(9, 2)
    type(hone_report) :: report
    call system(9, a, b)
    call check(hone_solve(a, b, x, report=report) == HONE_OK, 'one call')
    call check(counts(x, 1), 'one call: x')
    call check(report%n == 9 .and. report%nrhs == 1, 'report of one call')
    call check(report%backward_error <= 4.5e-16_c_double, 'backward error')
    bb(:, 1) = b
    bb(:, 2) = 3 * b
    call check(hone_solve(a, bb, xx) == HONE_OK, 'a matrix of b')
    call check(counts(xx(:, 1), 1) .and. counts(xx(:, 2), 3), 'matrix of x')
  end subroutine

  subroutine in_place()
    real(c_double) :: a(9, 9), b(9), bb(9, 2)
    call system(9, a, b)
    bb(:, 1) = b
    bb(:, 2) = 3 * b
    call check(hone_solve(a, b) == HONE_OK, 'in place')
    call check(counts(b, 1), 'in place: x')
    call check(hone_solve(a, bb) == HONE_OK, 'a matrix in place')
    call check(counts(bb(:, 1), 1) .and. counts(bb(:, 2), 3), 'in place: xx')
  end subroutine

  subroutine sections()
    real(c_double) :: big(30, 30), whole(30), a(9, 9), b(9), x(9)
    real(c_double) :: wide(30, 8), out(30, 8)
    call system(9, a, b)
    big = -1
    big(4:12, 3:11) = a ! gaps between the columns
    status = hone_solve(big(4:12, 3:11), b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'columns apart')
    big = -1
    big(1:27:3, 1:18:2) = a ! gaps inside them
    status = hone_solve(big(1:27:3, 1:18:2), b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'gaps in A')
    big(1:9, 1:9) = a(9:1:-1, :)
    status = hone_solve(big(9:1:-1, 1:9), b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'rows backwards')
    big(1:9, 1:9) = a(:, 9:1:-1)
    status = hone_solve(big(1:9, 9:1:-1), b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'columns backwards')
    whole = -7
    whole(1:18:2) = b
    status = hone_solve(a, whole(1:18:2), whole(2:18:2))
    call check(status == HONE_OK .and. counts(whole(2:18:2), 1), &
               'b and x in turn')
    call check(all(abs(whole(1:18:2) - b) <= 0), 'b is left alone')
    call check(all(abs(whole(19:) + 7) <= 0), 'nothing else is written')
    wide = -7
    out = -7
    wide(2:10, 1) = b
    wide(2:10, 4) = 2 * b
    status = hone_solve(a, wide(2:10, 1:4:3), out(3:11, 1:4:3))
    call check(status == HONE_OK .and. counts(out(3:11, 4), 2), &
               'columns of b apart')
    call check(all(abs(out(:, 2:3) + 7) <= 0), 'columns between are not x')
  end subroutine

  subroutine kept()
    real(c_double), target :: a(40, 40), near(40, 40)
    real(c_double) :: b(40), x(40), bb(40, 3), xx(40, 3), y(40)
    real(c_double) :: bounds(80, 3)
    type(hone_solver) :: solver, other
    type(hone_report) :: report
    integer :: k
    call system(40, a, b)
    call check(solver%create(40) == HONE_OK, 'create')
    call check(solver%order() == 40, 'order')
    call check(solver%solve(b, x) == HONE_NOT_FACTORED, 'not factored')
    call check(solver%factor(a, report) == HONE_OK, 'factor')
    status = solver%solve(b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'solve')
    do k = 1, 3
      bb(:, k) = k * b
    end do
    status = solver%solve(bb, xx)
    call check(status == HONE_OK .and. counts(xx(:, 3), 3), 'solve many')
    status = solver%solve(b, x, x0=x)
    call check(status == HONE_OK .and. counts(x, 1), 'x0')
    y = 1
    status = solver%solve(b, x, report=report, error_bounds=y)
    call check(status == HONE_OK .and. all(y < 1e-10_c_double), 'bounds')
    call check(abs(report%bound_failure - 1e-9_c_double) < 1e-20_c_double, &
               'probability')
    bounds = 1
    status = solver%solve(bb, xx, error_bounds=bounds(::2, :))
    call check(all(bounds(::2, :) < 1e-10_c_double), 'bounds of many')
    call check(all(bounds(2::2, :) > 0.5_c_double), 'and not in the gaps')
    call check(solver%solve(b, x, trans=HONE_TRANS) == HONE_OK, 'transposed')
    y = matmul(transpose(a), x) - b
    call check(all(abs(y) <= 1e-11_c_double), 'A^T x = b')
    near = a
    near(1, 1) = near(1, 1) * (1 + 1e-6_c_double)
    call check(solver%update(near) == HONE_OK, 'update')
    status = solver%solve(matmul(near, xx(:, 1)), x)
    call check(status == HONE_OK .and. counts(x, 1), &
               'solve with the nearby matrix')
    other = solver
    call check(other%solve(b, x) == HONE_NULL_POINTER, 'a copy is empty')
    call check(solver%solve(b, x) == HONE_OK, 'the copied lives')
    call solver%destroy()
    call solver%destroy()
    call check(solver%solve(b, x) == HONE_NULL_POINTER, 'destroyed')
    call check(solver%create(-1) == HONE_BAD_SIZE, 'create, bad size')
  end subroutine

  ! A matrix that had to be copied is kept by the solver.
  subroutine kept_with_gaps()
    real(c_double), allocatable, target :: big(:, :)
    real(c_double) :: a(9, 9), b(9), x(9)
    type(hone_solver) :: solver
    call system(9, a, b)
    allocate (big(18, 18))
    big(::2, ::2) = a
    call check(solver%create(9) == HONE_OK, 'gaps: create')
    call check(solver%factor(big(::2, ::2)) == HONE_OK, 'gaps: factor')
    big = 0
    deallocate (big)
    status = solver%solve(b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'gaps: solve')
    call check(solver%update(a) == HONE_OK, 'gaps: update')
    status = solver%solve(b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'gaps: again')
  end subroutine

  subroutine bad_input()
    real(c_double), target :: a(5, 5), b(5), x(5), wrong(4), xx(5, 2)
    type(hone_report) :: report
    type(hone_options) :: options
    type(hone_solver) :: solver
    type(hone_column) :: columns(1)
    call system(5, a, b)
    x = 77
    call check(hone_solve(a(:, :4), b, x) == HONE_BAD_SIZE, 'not square')
    call check(hone_solve(a, wrong, x) == HONE_BAD_SIZE, 'b too short')
    status = hone_solve(a, b, x(:4), report=report)
    call check(status == HONE_BAD_SIZE .and. report%status == HONE_BAD_SIZE, &
               'x too short')
    call check(index(hone_string(report%reason), 'sizes') > 0, 'and why')
    call check(hone_solve(a, xx, xx(:, :1)) == HONE_BAD_SIZE, 'x too narrow')
    options%struct_size = 0
    status = hone_solve(a, b, x, options)
    call check(status == HONE_BAD_STRUCT_SIZE, 'options of no size')
    call hone_options_init(options)
    report%struct_size = 0
    status = hone_solve_c(5_c_int64_t, 1_c_int64_t, a, 5_c_int64_t, b, &
               5_c_int64_t, x, 5_c_int64_t, report=report)
    call check(status == HONE_BAD_STRUCT_SIZE, 'a report of no size')
    options%device = 99
    call check(hone_solve(a, b, x, options) == HONE_BAD_OPTION, 'option')
    call check(hone_solve(a, a(:, 1), a(:, 2)) == HONE_BAD_OVERLAP, 'overlap')
    call check(solver%solve(b, x) == HONE_NULL_POINTER, 'never created')
    call check(solver%factor(a) == HONE_NULL_POINTER, 'factor, not created')
    call check(solver%create(5) == HONE_OK, 'bad input: create')
    call check(solver%factor(a(:4, :4)) == HONE_BAD_SIZE, 'factor, size')
    call check(solver%factor(a) == HONE_OK, 'bad input: factor')
    call check(solver%solve(wrong, x) == HONE_BAD_SIZE, 'solve, size of b')
    call check(solver%solve(wrong, x(:4)) == HONE_BAD_SIZE, 'size of both')
    call check(solver%solve(b, x(:3)) == HONE_BAD_SIZE, 'solve, size of x')
    call check(solver%solve(b, x, x0=wrong) == HONE_BAD_SIZE, 'size of x0')
    call check(solver%solve(b, x, error_bounds=wrong) == HONE_BAD_SIZE, &
               'size of error_bounds')
    call check(solver%solve(b, x, trans=7) == HONE_BAD_OPTION, 'trans')
    status = solver%solve(xx, xx, columns=columns)
    call check(status == HONE_BAD_SIZE, 'too few columns')
    b(3) = ieee_value(b(1), ieee_quiet_nan)
    status = hone_solve(a, b, x, report=report)
    call check(status == HONE_NOT_FINITE_B .and. report%bad_row == 2, &
               'NaN in b')
    b(3) = 1
    a(2, 4) = ieee_value(b(1), ieee_positive_inf)
    status = hone_solve(a, b, x, report=report)
    call check(status == HONE_NOT_FINITE_A .and. &
               report%bad_row == 1 .and. report%bad_col == 3, 'Inf in A')
    a(2, :) = 0
    status = hone_solve(a, b, x, report=report)
    call check(status == HONE_SINGULAR .and. report%bad_row == 1, &
               'a row of zeros')
    call check(all(abs(x - 77) <= 0), 'x untouched after errors')
  end subroutine

  subroutine nothing_to_solve()
    real(c_double), target :: a(0, 0), b(0), x(0), bb(3, 0), xx(3, 0), c(3, 3)
    type(hone_solver) :: solver
    c = reshape([2, 1, 0, 1, 2, 1, 0, 1, 2], [3, 3])
    call check(hone_solve(a, b, x) == HONE_OK, 'n = 0')
    call check(hone_solve(c, bb, xx) == HONE_OK, 'nrhs = 0')
    call check(solver%create(0) == HONE_OK, 'create, n = 0')
    call check(solver%factor(a) == HONE_OK, 'factor, n = 0')
    call check(solver%solve(b, x) == HONE_OK, 'solve, n = 0')
  end subroutine

  subroutine weak_answers()
    real(c_double) :: a(30, 30), b(30), x(30)
    type(hone_options) :: options
    type(hone_report) :: report
    call system(30, a, b)
    call hone_options_init(options)
    options%tolerance = 1e-300_c_double
    x = 77
    status = hone_solve(a, b, x, options, report)
    call check(status == HONE_NOT_CONVERGED, 'not converged')
    call check(counts(x, 1), 'x is the best found')
    call check(report%accepted == 0, 'none accepted')
    ! the best found also where x has gaps
    block
      real(c_double) :: gaps(60)
      gaps = 77
      status = hone_solve(a, b, gaps(::2), options)
      call check(status == HONE_NOT_CONVERGED .and. counts(gaps(::2), 1), &
                 'the best found, with gaps')
    end block
  end subroutine

  subroutine options_and_columns()
    real(c_double) :: a(9, 9), b(9), bb(9, 2), x(9)
    real(c_double), target :: xx(9, 2)
    type(hone_column), target :: columns(2)
    type(hone_options) :: options
    call system(9, a, b)
    bb(:, 1) = b
    bb(:, 2) = 2 * b
    call hone_options_init(options)
    columns%status = -1
    options%columns = c_loc(columns)
    options%factor_precision = HONE_FACTOR_DOUBLE
    call check(hone_solve(a, bb, xx, options) == HONE_OK, 'options')
    call check(all(columns%status == HONE_OK), 'columns')
    call check(all(columns%precision == 64), 'start in double')
    call hone_options_init(options)
    options%x0 = c_loc(xx)
    options%ldx0 = 9
    status = hone_solve(a, bb, xx, options)
    call check(status == HONE_OK .and. counts(xx(:, 2), 2), 'x0 in options')
    call hone_options_init(options)
    options%layout = HONE_ROW_MAJOR
    status = hone_solve(transpose(a), b, x, options)
    call check(status == HONE_OK .and. counts(x, 1), 'by rows')
  end subroutine

  ! What options point to is written by C: the compiler must know, also where
  ! nothing else points there.
  subroutine pointers_in_options()
    real(c_double) :: a(2, 2), b(2, 1), x(2, 1)
    type(hone_options) :: options
    type(hone_column), target :: columns(1)
    integer :: st, written
    a = reshape([2, 1, 1, 3], [2, 2])
    b = 1
    call hone_options_init(options)
    columns%status = -1
    options%columns = c_loc(columns)
    st = hone_solve(a, b, x, options)
    written = count(columns%status == HONE_OK)
    call check(st == HONE_OK .and. written == 1, 'columns are written')
  end subroutine

  subroutine pointers_in_plain_options()
    real(c_double) :: a(2, 2), b(2, 1), x(2, 1)
    type(hone_options) :: options
    type(hone_column), target :: columns(1)
    integer :: st, written
    a = reshape([2, 1, 1, 3], [2, 2])
    b = 1
    call hone_options_init(options)
    columns%status = -1
    options%columns = c_loc(columns)
    st = hone_solve_c(2_c_int64_t, 1_c_int64_t, a, 2_c_int64_t, b, &
                          2_c_int64_t, x, 2_c_int64_t, options)
    written = count(columns%status == HONE_OK)
    call check(st == HONE_OK .and. written == 1, 'columns, plainly called')
  end subroutine

  subroutine progress()
    real(c_double) :: a(60, 60), b(60), x(60)
    integer, target :: count
    type(hone_options) :: options
    call system(60, a, b)
    call hone_options_init(options)
    options%progress = c_funloc(listen)
    options%progress_user = c_loc(count)
    count = 0
    phases = ''
    status = hone_solve(a, b, x, options)
    call check(status == HONE_OK .and. count > 0, 'progress')
    call check(index(phases, 'inspect ') == 1, 'the first phase')
    count = 0
    stop_at = 1
    x = 77
    status = hone_solve(a, b, x, options)
    call check(status == HONE_CANCELLED .and. count == 1, 'stopped')
    call check(all(abs(x - 77) <= 0), 'x untouched when stopped')
  end subroutine

  subroutine busy()
    real(c_double), target :: a(80, 40)
    real(c_double) :: b(40), x(40)
    type(hone_options) :: options
    call system(40, a(::2, :), b)
    call hone_options_init(options)
    options%progress = c_funloc(call_again)
    options%progress_user = c_loc(a)
    call check(shared%create(40, options) == HONE_OK, 'create')
    call check(shared%factor(a(::2, :)) == HONE_OK, 'factor around calls')
    status = shared%solve(b, x)
    call check(status == HONE_OK .and. counts(x, 1), 'solve around calls')
    call shared%destroy()
  end subroutine

  subroutine texts()
    type(hone_report) :: report
    real(c_double) :: a(9, 9), b(9), x(9)
    character(:), allocatable :: json
    call system(9, a, b)
    status = hone_solve(a, b, x, report=report)
    call check(hone_status_text(HONE_OK) == &
               'solved: every right-hand side is accepted', 'status text')
    call check(hone_status_text(12345) == &
               'not a status of this library', 'any status has a text')
    call check(index(hone_version(), '.') == 2, 'version')
    call check(index(hone_string(report%path), 'LU') > 0, 'path')
    call check(len(hone_string(report%reason)) == 0, 'no reason')
    call check(index(hone_report_text(report), 'backward error') > 0, 'text')
    call check(index(hone_report_json(report), '{"status": 0, ') == 1, 'JSON')
    call check(status == HONE_OK, 'texts: solved')
    json = hone_report_json(report)
    call check(json(len(json):) == '}', 'all of JSON')
  end subroutine

  subroutine plain_calls()
    real(c_double) :: a(12, 9), b(10, 2), x(11, 2)
    integer(c_int64_t) :: single, double, with, without
    type(c_ptr) :: handle
    type(hone_options) :: options
    type(hone_column), target :: columns(2)
    call system(9, a(:9, :), b(:9, 1))
    b(:9, 2) = 2 * b(:9, 1)
    status = hone_solve_c(9_c_int64_t, 2_c_int64_t, a, 12_c_int64_t, b, &
               10_c_int64_t, x, 11_c_int64_t)
    call check(status == HONE_OK .and. counts(x(:9, 2), 2), 'as in LAPACK')
    call hone_options_init(options)
    columns%status = -1
    options%columns = c_loc(columns)
    status = hone_solve_c(9_c_int64_t, 2_c_int64_t, a, 12_c_int64_t, b, &
               10_c_int64_t, x, 11_c_int64_t, options)
    call check(status == HONE_OK .and. all(columns%status == HONE_OK), &
               'plain columns')
    call check(hone_solver_create(handle, 9_c_int64_t) == HONE_OK, 'handle')
    status = hone_solver_factor(handle, a, 12_c_int64_t)
    call check(status == HONE_OK, 'handle: factor')
    x = 0
    status = hone_solver_solve(handle, 2_c_int64_t, b, 10_c_int64_t, x, &
               11_c_int64_t)
    call check(status == HONE_OK .and. counts(x(:9, 1), 1), 'handle: solve')
    status = hone_solver_update(handle, a, 12_c_int64_t)
    call check(status == HONE_OK, 'handle: update')
    call hone_solver_destroy(handle)
    call check(.not. c_associated(handle), 'handle: destroyed')
    call check(hone_memory_needed(1000_c_int64_t, 1_c_int64_t, &
                                  single_bytes=single, double_bytes=double) &
               == HONE_OK .and. double > single .and. single > 4000000, &
               'memory needed')
    call check(hone_device_memory_needed(1000_c_int64_t, &
                                         with_residuals=with, &
                                         without=without) == HONE_OK .and. &
               with >= without, 'device memory needed')
  end subroutine
end program
