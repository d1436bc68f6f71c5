! SPDX-License-Identifier: BSD-3-Clause
! hone_batch_solver of the module hone, real and complex. Prints what failed;
! exit status 0: nothing did. tests/packaging/fortran builds and runs it.
program test_fortran_kept
  use fortran_batches
  implicit none
  call kept_real()
  call kept_complex()
  call kept_sections()
  call kept_after_errors()
  call kept_busy()
  call kept_nothing()
  call print_result('fortran, a kept batch')

contains

  subroutine kept_real()
    real(c_double), target :: a(n, n, count), few(n, n, 3)
    real(c_double) :: b(n, 3, count), x(n, 3, count), v(n, count)
    type(hone_batch_result) :: results(count)
    type(hone_report) :: report
    type(hone_batch_solver) :: solver, other
    call systems(a, b)
    call check(solver%create() == HONE_OK, 'create')
    call check(solver%solve(b, x) == HONE_NOT_FACTORED, 'not factored')
    status = solver%factor(a, results, report)
    call check(status == HONE_OK .and. all(results%status == HONE_OK) .and. &
               all(results%rcond > 1e-3_c_double) .and. &
               all(ieee_is_nan(results%log_abs_det)), 'factor')
    call check(report%n == n .and. report%nrhs == 0, 'report of factor')
    x = 0
    status = solver%solve(b, x, results=results, report=report)
    call check(status == HONE_OK .and. solved(x), 'kept matrices')
    call check(all(results%status == HONE_OK) .and. &
               all(results%backward_error <= 4.5e-16_c_double) .and. &
               report%accepted == 3 * count, 'results of solve')
    v = 0
    status = solver%solve(b(:, 1, :), v)
    call check(status == HONE_OK .and. &
               solved(reshape(v, [n, 1, count])), 'kept vectors')
    status = solver%factor(a, results, determinants=.true.)
    call check(all(abs(results%det_re) <= 1) .and. &
               .not. any(ieee_is_nan(results%log_abs_det)), &
               'determinants of kept ones')
    other = solver
    call check(other%solve(b, x) == HONE_NULL_POINTER, 'the left side is empty')
    x = 0
    status = solver%solve(b, x)
    call check(status == HONE_OK .and. solved(x), 'the copied lives')
    few = a(:, :, :3)
    call check(solver%factor(few) == HONE_OK, 'other matrices')
    x = 0
    status = solver%solve(b(:, :, :3), x(:, :, :3))
    call check(status == HONE_OK .and. solved(x(:, :, :3)), 'solve with those')
    call check(solver%solve(b, x) == HONE_BAD_SIZE, 'more than were factored')
    call solver%destroy()
    call solver%destroy()
    call check(solver%solve(b, x) == HONE_NULL_POINTER, 'destroyed')
  end subroutine

  subroutine kept_complex()
    real(c_double) :: a(n, n, count), b(n, 2, count)
    complex(c_double), target :: z(n, n, count)
    complex(c_double) :: w(n, 2, count), x(n, 2, count), v(n, count)
    type(hone_options) :: options, hurried
    type(hone_batch_result) :: results(count)
    type(hone_z_batch_solver) :: solver
    call systems(a, b)
    z = conjg(reshape((2 + i1) * a, shape(z), order=[2, 1, 3]))
    w = (1 + 3 * i1) * b
    options%trans = HONE_CONJ_TRANS
    call check(solver%create(options) == HONE_OK, 'create with options')
    call check(solver%factor(z) == HONE_OK, 'complex factor')
    x = 0
    status = solver%solve(w, x)
    call check(status == HONE_OK .and. solved(real(x)) .and. &
               solved(aimag(x)), 'kept complex matrices')
    v = 0
    status = solver%solve(w(:, 1, :), v)
    call check(status == HONE_OK .and. all(abs(v - x(:, 1, :)) <= &
                                           1e-12_c_double * abs(v)), &
               'kept complex vectors')
    hurried%deadline_s = 1e-9_c_double
    status = solver%solve(w, x, hurried, results)
    call check(status == HONE_CANCELLED .and. &
               all(results%status == HONE_CANCELLED), 'options of a solve')
    status = solver%solve(w(:, 1, :), v, hurried)
    call check(status == HONE_CANCELLED, 'options of a solve with vectors')
    options%trans = 7
    call check(solver%create(options) == HONE_BAD_OPTION, 'create, trans')
  end subroutine

  ! Matrices with gaps inside their columns are copied, and the copies kept.
  subroutine kept_sections()
    real(c_double) :: a(n, n, count), b(n, 2, count)
    real(c_double), target :: gaps(2 * n, n, count), wide(n + 2, n, count)
    real(c_double) :: x(n + 1, 2, 2 * count), tall(3 * n, count)
    type(hone_batch_solver) :: solver
    call systems(a, b, 1e-100_c_double)
    gaps = -1
    gaps(::2, :, :) = a
    call check(solver%create() == HONE_OK, 'sections: create')
    call check(solver%factor(gaps(::2, :, :)) == HONE_OK, 'gaps: factor')
    gaps = ieee_value(1.0_c_double, ieee_quiet_nan)
    call check(solver%factor(gaps(::2, :4, :)) == HONE_BAD_SIZE, 'not square')
    x = 77
    status = solver%solve(b, x(2:, :, ::2))
    call check(status == HONE_OK .and. solved(x(2:, :, ::2)), 'gaps: solve')
    call check(all(abs(x(1, :, :) - 77) <= 0) .and. &
               all(abs(x(:, :, 2::2) - 77) <= 0), 'nothing else is written')
    wide = -1
    wide(2:n + 1, :, :) = a
    call check(solver%factor(wide(2:n + 1, :, count:1:-1)) == HONE_OK, &
               'backwards: factor')
    tall = 77
    status = solver%solve(b(:, 1, count:1:-1), tall(::3, count:1:-1))
    call check(status == HONE_OK .and. &
               solved(reshape(tall(::3, :), [n, 1, count])), &
               'backwards: vectors with gaps')
    call check(all(abs(tall(2::3, :) - 77) <= 0), 'and not in the gaps')
  end subroutine

  subroutine kept_after_errors()
    real(c_double), target :: a(n, n, count)
    real(c_double) :: b(n, 2, count), x(n, 2, count)
    type(hone_batch_result) :: results(count)
    type(hone_report) :: report
    type(hone_batch_solver) :: solver
    call systems(a, b)
    a(2, :, 9) = 0
    call check(solver%factor(a) == HONE_NULL_POINTER, 'factor, not created')
    call check(solver%create() == HONE_OK, 'errors: create')
    status = solver%factor(a, results)
    call check(status == HONE_SINGULAR .and. &
               results(9)%status == HONE_SINGULAR .and. &
               results(10)%status == HONE_OK, 'factor, a singular one')
    x = 77
    status = solver%solve(b, x, results=results)
    call check(status == HONE_SINGULAR .and. &
               results(9)%status == HONE_SINGULAR, 'solve, a singular one')
    call check(all(abs(x(:, :, 9) - 77) <= 0) .and. solved(x(:, :, :8)), &
               'its x is untouched, the others are solved')
    x = 77
    status = solver%factor(a(:4, :, :), results, report)
    call check(status == HONE_BAD_SIZE .and. report%status == status .and. &
               all(results%status == HONE_BAD_SIZE), 'factor, not square')
    call check(solver%factor(a, results(2:)) == HONE_BAD_SIZE, &
               'factor, too few results')
    call check(solver%solve(b, x, results=results(2:)) == HONE_BAD_SIZE, &
               'solve, too few results')
    call check(solver%solve(b, x(:, :1, :)) == HONE_BAD_SIZE, 'x too narrow')
    call check(solver%solve(b(:, 1, :), x(:, 1, 2:)) == HONE_BAD_SIZE, &
               'too few vectors')
    call check(solver%solve(b(:4, :, :), x(:4, :, :)) == HONE_BAD_SIZE, &
               'another order')
    call check(all(abs(x - 77) <= 0), 'x untouched by what is refused')
    status = solver%solve(b, x)
    call check(status == HONE_SINGULAR .and. solved(x(:, :, :8)), &
               'the factors are still there')
  end subroutine

  subroutine kept_busy()
    real(c_double), target :: gaps(2 * n, n, count)
    real(c_double) :: a(n, n, count), b(n, 1, count), x(n, 1, count)
    type(hone_options) :: options
    call systems(a, b, 1e-100_c_double)
    gaps(::2, :, :) = a
    options%progress = c_funloc(use_again)
    call check(shared%create() == HONE_OK, 'busy: create')
    call check(shared%factor(gaps(::2, :, :)) == HONE_OK, 'busy: first factor')
    x = 0
    status = shared%solve(b, x, options)
    call check(status == HONE_OK .and. solved(x), 'busy: the first call')
    call check(events > 0, 'busy: calls within it')
    x = 0
    status = shared%solve(b, x)
    call check(status == HONE_OK .and. solved(x), 'its copy is still there')
    call shared%destroy()
  end subroutine

  subroutine kept_nothing()
    real(c_double), target :: a(0, 0, 3), none(n, n, 0), some(n, n, 3)
    real(c_double) :: b(0, 2, 3), v(n, 0), w(n, 0, 3)
    type(hone_batch_result) :: results(3)
    type(hone_batch_solver) :: solver
    call check(solver%create() == HONE_OK, 'nothing: create')
    status = solver%factor(a, results)
    call check(status == HONE_OK .and. all(results%status == HONE_OK), &
               'factor, n = 0')
    call check(solver%solve(b, b) == HONE_OK, 'solve, n = 0')
    call check(solver%factor(none) == HONE_OK, 'factor, count = 0')
    call check(solver%solve(v, v) == HONE_OK, 'solve, count = 0')
    some = 1
    some(1, 2, :) = 2
    call check(solver%factor(some) == HONE_SINGULAR, 'factor, singular')
    call check(solver%solve(w, w) == HONE_SINGULAR, 'solve, nrhs = 0')
  end subroutine
end program
