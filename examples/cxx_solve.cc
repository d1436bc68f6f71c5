/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest program in C++, then a matrix that is factored once for two
   solves, a complex system, and a singular matrix, which is an error. The exit
   status is 0 if all is as it must be. */
#include "api/hone.hpp"

#include <cstdio>

int main() {
  const std::vector<double> a = {2, 1, 1, 3}; /* by columns */
  const std::vector<double> b = {3, 5};
  const hone::solution s = hone::solve(a, b);
  std::printf("x = %g, y = %g: %s (backward error %.1e)\n", s.x[0], s.x[1],
              hone_status_text(s.report.status), s.report.backward_error);

  hone::solver solver(2);
  solver.factor(a);
  const hone::solution first = solver.solve(b);
  const hone::solution second = solver.solve(first.value());
  std::printf("and again: %g, %g\n", second.value()[0], second.value()[1]);

  using namespace std::complex_literals;
  const std::vector<std::complex<double>> z = {2.0, 1i, -1i, 3.0};
  const hone::complex_solution w = hone::solve(z, {1.0 + 1i, 2.0 - 2i});
  std::printf("z = %g%+gi, %g%+gi\n", w.x[0].real(), w.x[0].imag(),
              w.x[1].real(), w.x[1].imag());

  try {
    (void)hone::solve({1, 2, 2, 4}, b);
  } catch (const hone::error &e) {
    std::printf("%s\n", e.what());
    return s.accepted() && w.accepted() && e.status() == HONE_SINGULAR ? 0 : 1;
  }
  return 1;
}
