! SPDX-License-Identifier: BSD-3-Clause
! The shortest program in Fortran, then a matrix that is factored once for two
! solves, a complex system, and a singular matrix, which is an error. The exit
! status is 0 if all is as it must be.
program fortran_solve
  use hone
  implicit none
  real(c_double), target :: a(2, 2) = reshape([2, 1, 1, 3], [2, 2])
  real(c_double) :: b(2) = [3, 5], x(2), y(2)
  complex(c_double) :: z(2, 2) = reshape([2, 0, 0, 3], [2, 2]), w(2) = [1, 2]
  type(hone_report) :: report
  type(hone_solver) :: solver
  integer :: status

  status = hone_solve(a, b, x, report=report)
  print '(2(a, f3.1), 3a, es7.1, a)', 'x = ', x(1), ', y = ', x(2), ': ', &
    hone_status_text(status), ' (backward error ', report%backward_error, ')'
  if (status /= HONE_OK) error stop

  status = solver%create(2)
  if (status == HONE_OK) status = solver%factor(a)
  if (status == HONE_OK) status = solver%solve(b, x)
  if (status == HONE_OK) status = solver%solve(x, y)
  if (status /= HONE_OK) error stop
  print '(2(a, f3.1))', 'and again: ', y(1), ', ', y(2)

  z(2, 1) = (0, 1)
  z(1, 2) = (0, -1)
  status = hone_solve(z, w) ! w becomes x
  if (status /= HONE_OK) error stop
  print '(a, 2(f5.1, sp, f4.1, ss, "i"))', 'z =', w

  a(:, 2) = 2 * a(:, 1)
  status = hone_solve(a, b, x, report=report)
  print '(a)', hone_status_text(status), hone_string(report%reason)
  if (status /= HONE_SINGULAR) error stop
end program
