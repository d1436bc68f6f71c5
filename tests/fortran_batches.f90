! SPDX-License-Identifier: BSD-3-Clause
!> Systems for the tests of batches, and their comparison.
module fortran_batches
  use fortran_checks
  use hone
  use, intrinsic :: ieee_arithmetic
  implicit none
  integer, parameter :: n = 5, count = 37
  complex(c_double), parameter :: i1 = (0, 1)
  type(hone_batch_solver) :: shared
  integer :: events = 0 ! of the calls that use it

contains

  ! Well conditioned matrices that differ, and b(:, c, k) = A_k x with
  ! x(i) = i + c + k. With a small entry in A_k no block of systems serves, and
  ! every solve reads A_k.
  subroutine systems(a, b, small)
    real(c_double), intent(out) :: a(:, :, :), b(:, :, :)
    real(c_double), intent(in), optional :: small
    integer :: i, j, k, c
    do k = 1, size(a, 3)
      do j = 1, size(a, 2)
        do i = 1, size(a, 1)
          a(i, j, k) = 1 / real(i + 2 * j + k, c_double)
        end do
        a(j, j, k) = a(j, j, k) + 2
      end do
      if (present(small)) a(1, 2, k) = small
      do c = 1, size(b, 2)
        b(:, c, k) = matmul(a(:, :, k), [(real(i + c + k, c_double), &
                                          i=1, size(a, 1))])
      end do
    end do
  end subroutine

  ! Is x the solution of all systems, up to this relative error?
  logical function solved(x)
    real(c_double), intent(in) :: x(:, :, :)
    integer :: i, k, c
    solved = size(x) > 0
    do k = 1, size(x, 3)
      do c = 1, size(x, 2)
        do i = 1, size(x, 1)
          solved = solved .and. abs(x(i, c, k) - (i + c + k)) <= &
                                1e-10_c_double * (i + c + k)
        end do
      end do
    end do
  end function

  ! Calls the solver that is being used, with matrices that have to be copied.
  function use_again(user, event) bind(c) result(stop)
    type(c_ptr), value :: user
    type(hone_progress), intent(in) :: event
    integer(c_int) :: stop
    real(c_double) :: a(2 * n, n, count), x(n, count)
    events = events + 1
    a = 1
    x = 77
    call check(shared%factor(a(::2, :, :)) == HONE_BUSY, 'busy: factor')
    call check(shared%solve(x, x) == HONE_BUSY, 'busy: solve')
    call check(event%fraction <= 1 .and. .not. c_associated(user), 'an event')
    stop = 0
  end function
end module
