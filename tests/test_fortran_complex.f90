! SPDX-License-Identifier: BSD-3-Clause
! The module hone with complex arrays; test_fortran.f90 has the real ones.
! Prints what failed; exit status 0: nothing did.
module complex_checks
  use fortran_checks
  use hone
  implicit none
  complex(c_double), parameter :: i1 = (0, 1)

contains

  ! A well conditioned matrix, x(i) = i + (n - i) * i1 and b = A x.
  subroutine system(a, b, x)
    complex(c_double), intent(out) :: a(:, :), b(:), x(:)
    integer :: i, j, n
    n = size(b)
    do j = 1, n
      do i = 1, n
        a(i, j) = exp(i1 * (i * i + 3 * j)) / (i + 2 * j)
      end do
      a(j, j) = a(j, j) + 2
      x(j) = cmplx(j, n - j, c_double)
    end do
    b = matmul(a, x)
  end subroutine

  logical function equal(x, y)
    complex(c_double), intent(in) :: x(:), y(:)
    equal = all(abs(x - y) <= 1e-11_c_double)
  end function
end module

program test_fortran_complex
  use complex_checks
  use, intrinsic :: ieee_arithmetic
  implicit none
  call one_call()
  call sections()
  call kept()
  call refused_input()
  call options_by_address()
  call print_result('fortran, complex')

contains

  subroutine one_call()
    complex(c_double) :: a(9, 9), b(9), x(9), y(9), bb(9, 2), xx(9, 2)
    complex(c_double_complex) :: z(1, 1) = (0, 2), w(1) = (2, 0)
    type(hone_report) :: report
    call system(a, b, x)
    status = hone_solve(a, b, y, report=report)
    call check(status == HONE_OK .and. equal(x, y), 'one call')
    call check(report%n == 9 .and. report%nrhs == 1, 'report of one call')
    call check(report%backward_error <= 4.5e-16_c_double, 'backward error')
    bb(:, 1) = b
    bb(:, 2) = i1 * b
    status = hone_solve(a, bb, xx)
    call check(status == HONE_OK .and. equal(xx(:, 2), i1 * x), 'matrices')
    status = hone_solve(a, bb)
    call check(status == HONE_OK .and. equal(bb(:, 2), i1 * x), 'in place')
    status = hone_solve(a, b)
    call check(status == HONE_OK .and. equal(b, x), 'a vector in place')
    status = hone_solve(z, w)
    call check(status == HONE_OK .and. equal(w, [-i1]), 'the kind of C')
  end subroutine

  subroutine sections()
    complex(c_double) :: big(30, 30), whole(30), a(9, 9), b(9), x(9)
    complex(c_double) :: wide(30, 8), out(30, 8)
    real(c_double) :: r(9, 9), s(9), t(9)
    call system(a, b, x)
    big = -1
    big(4:12, 3:11) = a ! gaps between the columns
    whole = 0
    status = hone_solve(big(4:12, 3:11), b, whole(:9))
    call check(status == HONE_OK .and. equal(whole(:9), x), 'columns apart')
    big = -1
    big(1:27:3, 1:18:2) = a ! gaps inside them
    whole = -7
    whole(1:18:2) = b
    status = hone_solve(big(1:27:3, 1:18:2), whole(1:18:2), whole(2:18:2))
    call check(status == HONE_OK .and. equal(whole(2:18:2), x), 'gaps')
    call check(equal(whole(1:18:2), b), 'b is left alone')
    wide = -7
    out = -7
    wide(2:10, 1) = b
    wide(2:10, 4) = 2 * b
    status = hone_solve(a, wide(2:10, 1:4:3), out(3:11, 1:4:3))
    call check(status == HONE_OK .and. equal(out(3:11, 4), 2 * x), &
               'columns of b apart')
    call check(all(abs(out(:, 2:3) + 7) <= 0), 'columns between are not x')
    ! The parts of a complex array are real arrays with gaps.
    r = a%re
    s = matmul(r, x%re)
    status = hone_solve(a%re, s, t)
    call check(status == HONE_OK .and. all(abs(t - x%re) <= 1e-11_c_double), &
               'real parts')
    x = 7
    status = hone_solve(r, s, x%im)
    call check(status == HONE_OK .and. all(abs(t - x%im) <= 1e-11_c_double), &
               'x is an imaginary part')
    call check(all(abs(x%re - 7) <= 0), 'the real part is left alone')
  end subroutine

  subroutine kept()
    complex(c_double), target :: a(40, 40), near(40, 40), big(80, 40)
    complex(c_double) :: b(40), x(40), y(40), bb(40, 3), xx(40, 3)
    real(c_double) :: bounds(80, 3), bound(40)
    type(hone_column) :: columns(3)
    type(hone_z_solver) :: solver, other
    type(hone_report) :: report
    integer :: k
    call system(a, b, x)
    call check(solver%create(40) == HONE_OK, 'create')
    call check(solver%order() == 40, 'order')
    call check(solver%solve(b, y) == HONE_NOT_FACTORED, 'not factored')
    call check(solver%factor(a, report) == HONE_OK, 'factor')
    status = solver%solve(b, y, report=report, error_bounds=bound)
    call check(status == HONE_OK .and. equal(x, y), 'solve')
    call check(all(bound > 0) .and. all(bound < 1e-10_c_double), 'bounds')
    do k = 1, 3
      bb(:, k) = k * i1 * b
    end do
    bounds = 1
    status = solver%solve(bb, xx, x0=bb, columns=columns, &
                          error_bounds=bounds(::2, :))
    call check(status == HONE_OK .and. equal(xx(:, 3), 3 * i1 * x), 'many')
    call check(all(columns%status == HONE_OK), 'columns')
    call check(all(bounds(::2, :) < 1e-10_c_double), 'bounds of many')
    call check(all(bounds(2::2, :) > 0.5_c_double), 'and not in the gaps')
    call check(solver%solve(b, y, trans=HONE_TRANS) == HONE_OK, 'transposed')
    call check(equal(matmul(transpose(a), y), b), 'A^T x = b')
    status = solver%solve(b, y, trans=HONE_CONJ_TRANS)
    call check(status == HONE_OK, 'conjugate transposed')
    call check(equal(matmul(conjg(transpose(a)), y), b), 'A^H x = b')
    near = a * (1 + 1e-6_c_double * i1)
    call check(solver%update(near) == HONE_OK, 'update')
    status = solver%solve(matmul(near, x), y)
    call check(status == HONE_OK .and. equal(x, y), 'the nearby matrix')
    other = solver
    call check(other%solve(b, y) == HONE_NULL_POINTER, 'a copy is empty')
    big = 0
    big(::2, :) = a
    call check(solver%factor(big(::2, :)) == HONE_OK, 'factor, with gaps')
    big = 0
    status = solver%solve(b, y)
    call check(status == HONE_OK .and. equal(x, y), 'a copy was kept')
    call solver%destroy()
    call check(solver%solve(b, y) == HONE_NULL_POINTER, 'destroyed')
  end subroutine

  subroutine refused_input()
    complex(c_double), target :: a(5, 5), b(5), x(5), y(5), wrong(4)
    type(hone_report) :: report
    type(hone_z_solver) :: solver
    call system(a, b, x)
    y = 77
    call check(hone_solve(a(:, :4), b, y) == HONE_BAD_SIZE, 'not square')
    status = hone_solve(a, b, y(:4), report=report)
    call check(status == HONE_BAD_SIZE .and. report%status == HONE_BAD_SIZE, &
               'x too short')
    call check(index(hone_string(report%reason), 'sizes') > 0, 'and why')
    call check(hone_solve(a, a(:, 1), a(:, 2)) == HONE_BAD_OVERLAP, 'overlap')
    call check(solver%create(5) == HONE_OK, 'create')
    call check(solver%factor(a(:4, :4)) == HONE_BAD_SIZE, 'factor, size')
    call check(solver%factor(a) == HONE_OK, 'factor')
    call check(solver%solve(wrong, y) == HONE_BAD_SIZE, 'size of b')
    call check(solver%solve(b, y, x0=wrong) == HONE_BAD_SIZE, 'size of x0')
    call check(solver%solve(b, y, trans=7) == HONE_BAD_OPTION, 'trans')
    a(2, 4) = cmplx(0, ieee_value(1.0_c_double, ieee_quiet_nan), c_double)
    status = hone_solve(a, b, y, report=report)
    call check(status == HONE_NOT_FINITE_A .and. &
               report%bad_row == 1 .and. report%bad_col == 3, 'NaN in A')
    call check(index(hone_string(report%reason), 'imaginary') > 0, 'its part')
    a(2, :) = 0
    status = hone_solve(a, b, y, report=report)
    call check(status == HONE_SINGULAR .and. report%bad_row == 1, &
               'a row of zeros')
    call check(all(abs(y - 77) <= 0), 'x untouched after errors')
  end subroutine

  subroutine options_by_address()
    complex(c_double) :: a(9, 9), b(9), x(9), y(9)
    complex(c_double), target :: start(9)
    type(hone_options) :: options
    call system(a, b, x)
    start = x
    options%x0 = c_loc(start)
    options%ldx0 = 9
    options%trans = HONE_CONJ_TRANS
    status = hone_solve(conjg(transpose(a)), b, y, options)
    call check(status == HONE_OK .and. equal(x, y), 'x0 and trans in options')
    status = hone_z_solve(9_c_int64_t, 1_c_int64_t, a, 9_c_int64_t, b, &
                          9_c_int64_t, y, 9_c_int64_t)
    call check(status == HONE_OK .and. equal(x, y), 'the call of C')
  end subroutine
end program
