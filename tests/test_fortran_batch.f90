! SPDX-License-Identifier: BSD-3-Clause
! hone_batch_solve of the module hone, real and complex. Prints what failed;
! exit status 0: nothing did. tests/packaging/fortran builds and runs it.
program test_fortran_batch
  use fortran_batches
  implicit none
  call real_systems()
  call in_place()
  call complex_systems()
  call sections()
  call sections_of_vectors()
  call one_bad_system()
  call determinants()
  call refused_input()
  call nothing_to_solve()
  call plain_call()
  call print_result('fortran batch')

contains

  subroutine real_systems()
    real(c_double) :: a(n, n, count), b(n, 3, count), x(n, 3, count)
    type(hone_batch_result) :: results(count)
    type(hone_report) :: report
    type(hone_options) :: options
    call systems(a, b)
    x = 0
    status = hone_batch_solve(a, b, x, results=results, report=report)
    call check(status == HONE_OK .and. solved(x), 'real systems')
    call check(all(results%status == HONE_OK), 'every status')
    call check(all(results%backward_error <= 4.5e-16_c_double), 'every error')
    call check(report%n == n .and. report%nrhs == 3 .and. &
               report%accepted == 3 * count, 'report')
    x = 0
    status = hone_batch_solve(a, b(:, 1, :), x(:, 1, :))
    call check(status == HONE_OK .and. solved(x(:, :1, :)), 'vectors')
    options%trans = HONE_TRANS
    x = 0
    status = hone_batch_solve(reshape(a, shape(a), order=[2, 1, 3]), b, x, &
                              options)
    call check(status == HONE_OK .and. solved(x), 'options')
    results%status = 77
    status = hone_batch_solve(a(:, :, ::2), b(:, 1, ::2), x(:, 1, :19), &
                              results=results(::2))
    call check(all(results(::2)%status == HONE_OK), 'results with gaps')
    call check(all(results(2::2)%status == 77), 'and not in the gaps')
  end subroutine

  subroutine in_place()
    real(c_double) :: a(n, n, count), b(n, 3, count), v(n, count)
    call systems(a, b)
    v = b(:, 1, :)
    status = hone_batch_solve(a, b)
    call check(status == HONE_OK .and. solved(b), 'in place')
    status = hone_batch_solve(a, v)
    call check(status == HONE_OK .and. all(abs(v - b(:, 1, :)) <= &
                                           1e-12_c_double * abs(v)), &
               'vectors in place')
  end subroutine

  subroutine complex_systems()
    real(c_double) :: a(n, n, count), b(n, 2, count)
    complex(c_double) :: z(n, n, count), w(n, 2, count), x(n, 2, count)
    complex(c_double) :: v(n, count)
    type(hone_options) :: options
    call systems(a, b)
    z = (2 + i1) * a
    w = (1 + 3 * i1) * b ! x is real times (1 + 3 i) / (2 + i) = 1 + i
    status = hone_batch_solve(z, w, x)
    call check(status == HONE_OK .and. solved(real(x)) .and. &
               solved(aimag(x)), 'complex systems')
    v = 0
    status = hone_batch_solve(z, w(:, 1, :), v)
    call check(status == HONE_OK .and. all(abs(v - x(:, 1, :)) <= &
                                           1e-12_c_double * abs(v)), &
               'complex vectors')
    v = w(:, 1, :)
    status = hone_batch_solve(z, v)
    call check(status == HONE_OK .and. all(abs(v - x(:, 1, :)) <= &
                                           1e-12_c_double * abs(v)), &
               'complex vectors in place')
    options%trans = HONE_CONJ_TRANS
    z = conjg(reshape(z, shape(z), order=[2, 1, 3]))
    status = hone_batch_solve(z, w, options)
    call check(status == HONE_OK .and. solved(real(w)) .and. &
               solved(aimag(w)), 'conjugate transposed, in place')
  end subroutine

  subroutine sections()
    real(c_double) :: a(n, n, count), b(n, 2, count)
    real(c_double) :: wide(n + 2, n + 1, count), gaps(2 * n, n, count)
    real(c_double) :: bb(n + 3, 4, count), x(n + 1, 4, 2 * count)
    call systems(a, b)
    wide = -1
    wide(2:n + 1, :n, :) = a
    bb = -1
    bb(3:n + 2, ::2, :) = b
    x = 77
    status = hone_batch_solve(wide(2:n + 1, :n, :), bb(3:n + 2, ::2, :), &
                              x(2:, 1:3:2, ::2))
    call check(status == HONE_OK .and. solved(x(2:, 1:3:2, ::2)), &
               'leading dimensions and strides')
    call check(all(abs(x(1, :, :) - 77) <= 0) .and. &
               all(abs(x(:, ::2, 2::2) - 77) <= 0) .and. &
               all(abs(x(:, 2::2, :) - 77) <= 0), 'nothing else is written')
    gaps = -1
    gaps(::2, :, :) = a
    x = 77
    status = hone_batch_solve(gaps(::2, :, :), b, x(:n, :2, 1:count))
    call check(status == HONE_OK .and. solved(x(:n, :2, :count)), 'gaps in A')
    status = hone_batch_solve(a(:, :, count:1:-1), b(:, :, count:1:-1), &
                              x(:n, :2, count:1:-1))
    call check(status == HONE_OK .and. solved(x(:n, :2, :count)), &
               'systems backwards')
    gaps = 77
    status = hone_batch_solve(a, b, gaps(::2, :2, :))
    call check(status == HONE_OK .and. solved(gaps(::2, :2, :)), 'gaps in x')
    call check(all(abs(gaps(2::2, :, :) - 77) <= 0), 'and not in the gaps')
  end subroutine

  subroutine sections_of_vectors()
    real(c_double) :: a(n, n, count), b(n, 1, count)
    real(c_double) :: tall(3 * n, count), x(2 * n, 2 * count)
    call systems(a, b)
    tall = -1
    tall(n + 1:2 * n, :) = b(:, 1, :)
    x = 77
    status = hone_batch_solve(a, tall(n + 1:2 * n, :), x(:n, ::2))
    call check(status == HONE_OK .and. &
               solved(reshape(x(:n, ::2), [n, 1, count])), 'vectors apart')
    call check(all(abs(x(n + 1:, :) - 77) <= 0) .and. &
               all(abs(x(:, 2::2) - 77) <= 0), 'and nothing between them')
    tall(::3, :) = b(:, 1, :)
    x = 77
    status = hone_batch_solve(a, tall(::3, :), x(::2, count + 1:))
    call check(status == HONE_OK .and. &
               solved(reshape(x(::2, count + 1:), [n, 1, count])), &
               'vectors with gaps')
    call check(all(abs(x(2::2, :) - 77) <= 0), 'and not in the gaps')
  end subroutine

  subroutine one_bad_system()
    real(c_double) :: a(n, n, count), b(n, 1, count), x(n, 1, count)
    type(hone_batch_result) :: results(count)
    call systems(a, b)
    a(2, :, 9) = 0
    a(3, 2, 20) = ieee_value(1.0_c_double, ieee_quiet_nan)
    x = 77
    status = hone_batch_solve(a, b, x, results=results)
    call check(status == HONE_SINGULAR, 'the first error')
    call check(results(9)%status == HONE_SINGULAR, 'a singular one')
    call check(results(20)%status == HONE_NOT_FINITE_A .and. &
               results(20)%row == 2 .and. results(20)%col == 1, 'a NaN')
    call check(all(abs(x(:, :, [9, 20]) - 77) <= 0), 'their x is untouched')
    call check(solved(x(:, :, :8)), 'the others are solved')
    call check(all(results(21:)%status == HONE_OK), 'and after them')
  end subroutine

  subroutine determinants()
    real(c_double) :: a(2, 2, 2), b(2, 2)
    complex(c_double) :: z(2, 2, 2), w(2, 2)
    type(hone_batch_result) :: results(2)
    a = reshape([2, 1, 1, 3, 0, 2, 1, 0], [2, 2, 2])
    b = 1
    z = a
    z(:, :, 1) = i1 * z(:, :, 1)
    w = 1
    status = hone_batch_solve(a, b, results=results, determinants=.true.)
    call check(status == HONE_OK .and. &
               all(abs(exp(results%log_abs_det) - [5, 2]) <= 1e-14_c_double) &
               .and. all(abs(results%det_re - [1, -1]) <= 0), 'determinants')
    status = hone_batch_solve(z, w, results=results, determinants=.true.)
    call check(status == HONE_OK .and. &
               all(abs(results%det_re + 1) <= 1e-14_c_double) .and. &
               all(abs(results%det_im) <= 1e-14_c_double), 'complex ones')
    status = hone_batch_solve(a, b, results=results)
    call check(all(ieee_is_nan(results%det_re)), 'only if asked')
  end subroutine

  subroutine refused_input()
    real(c_double) :: a(n, n, count), b(n, 2, count), x(n, 2, count)
    type(hone_batch_result) :: results(count)
    type(hone_report) :: report
    type(hone_options) :: options
    call systems(a, b)
    x = 77
    status = hone_batch_solve(a(:, :4, :), b, x, results=results)
    call check(status == HONE_BAD_SIZE .and. &
               all(results%status == HONE_BAD_SIZE), 'not square')
    call check(hone_batch_solve(a, b(:4, :, :), x(:4, :, :)) == &
               HONE_BAD_SIZE, 'b too short')
    call check(hone_batch_solve(a, b, x(:, :1, :)) == HONE_BAD_SIZE, &
               'x too narrow')
    call check(hone_batch_solve(a(:, :, 2:), b, x) == HONE_BAD_SIZE, &
               'too few matrices')
    call check(hone_batch_solve(a(:, :, 2:), b(:, 1, :), x(:, 1, :)) == &
               HONE_BAD_SIZE, 'too few matrices for vectors')
    status = hone_batch_solve(a, b, x, results=results(2:), report=report)
    call check(status == HONE_BAD_SIZE .and. report%status == HONE_BAD_SIZE, &
               'too few results')
    call check(index(hone_string(report%reason), 'sizes') > 0, 'and why')
    options%trans = 7
    call check(hone_batch_solve(a, b, x, options) == HONE_BAD_OPTION, 'trans')
    call check(hone_batch_solve(a, a(:, :2, :), a(:, 2:3, :)) == &
               HONE_BAD_OVERLAP, 'overlap')
    call check(all(abs(x - 77) <= 0), 'x untouched')
  end subroutine

  subroutine nothing_to_solve()
    real(c_double) :: a(0, 0, 3), b(0, 2, 3), none(n, n, 0), v(n, 0)
    real(c_double) :: some(n, n, 3), w(n, 0, 3)
    type(hone_batch_result) :: results(3)
    status = hone_batch_solve(a, b, results=results)
    call check(status == HONE_OK .and. all(results%status == HONE_OK), 'n = 0')
    call check(hone_batch_solve(none, v) == HONE_OK, 'count = 0')
    some = 1
    some(1, 2, :) = 2
    call check(hone_batch_solve(some, w) == HONE_OK, 'nrhs = 0')
  end subroutine

  ! Orders that differ, with lists, as from C.
  subroutine plain_call()
    real(c_double), target :: a2(2, 2), a1(2, 1), b(2, 2), x(2, 2)
    type(c_ptr), target :: places(2)
    integer(c_int64_t), target :: orders(2)
    type(hone_batch_result) :: results(2)
    type(hone_batch) :: batch
    a2 = reshape([2, 1, 1, 3], [2, 2])
    a1 = 4
    b = reshape([3, 5, 2, 77], [2, 2])
    x = 77
    places = [c_loc(a2), c_loc(a1)]
    orders = [2, 1]
    batch%count = 2
    batch%orders = c_loc(orders)
    batch%nrhs = 1
    batch%a_list = c_loc(places)
    batch%lda = 2
    batch%b = c_loc(b)
    batch%ldb = 2
    batch%stride_b = 2
    batch%x = c_loc(x)
    batch%ldx = 2
    batch%stride_x = 2
    status = hone_batch_solve_c(batch, results=results)
    call check(status == HONE_OK .and. all(results%status == HONE_OK), &
               'the call of C')
    call check(all(abs(reshape(x, [4]) - [0.8_c_double, 1.4_c_double, &
                                          0.5_c_double, 77.0_c_double]) <= &
                   1e-15_c_double), 'x of the call of C')
  end subroutine
end program
