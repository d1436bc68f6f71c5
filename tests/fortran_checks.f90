! SPDX-License-Identifier: BSD-3-Clause
!> Counts the checks of a test in Fortran, and prints those that fail.
module fortran_checks
  implicit none
  integer :: passed = 0, failed = 0
  integer :: status ! of the call that is checked next

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) then
      passed = passed + 1
    else
      failed = failed + 1
      print '(2a)', 'FAILED: ', what
    end if
  end subroutine

  ! The last line of a test; with a failure it ends the program.
  subroutine print_result(what)
    character(*), intent(in) :: what
    print '(2a, i0, a, i0, a)', what, ': ', passed, ' passed, ', failed, &
      ' failed'
    if (failed > 0) error stop
  end subroutine
end module
