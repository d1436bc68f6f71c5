/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes of the CUDA engine for complex entries, beside products in
   plain loops and its own solves, and solutions that it refines on the device.
   test_device_probe.c and test_many.cu do so for real entries. */
#include "tests/cuda/complex_problem.h"

extern "C" {
#include "base/numbers.h"
}

#include <algorithm>

namespace {

/* S = R A C, of a problem. */
struct scaled_problem {
  problem p;
  bool used;
  std::vector<double> row, col;
  std::vector<int> row_exp, col_exp;

  scaled_problem(int64_t n, int64_t pad, double diagonal, bool scaled)
      : p(n, pad, diagonal), used(scaled), row(static_cast<size_t>(n), 1.0),
        col(row), row_exp(row.size()), col_exp(row.size()) {
    for (int64_t i = 0; i < n && scaled; i++) {
      row_exp.data()[i] = static_cast<int>(i % 5) - 2;
      col_exp.data()[i] = static_cast<int>(i % 3) - 1;
      row.data()[i] = std::ldexp(1.0, row_exp.data()[i]);
      col.data()[i] = std::ldexp(1.0, col_exp.data()[i]);
    }
  }
  hone_scaling scaling() {
    return {row.data(), col.data(), row_exp.data(), col_exp.data(), used};
  }
  /* Returns op(S) v. */
  std::vector<cplx> times(bool trans, const cplx *v) const {
    std::vector<cplx> w(static_cast<size_t>(p.n));
    for (int64_t i = 0; i < p.n; i++) {
      wide sum = 0;
      for (int64_t j = 0; j < p.n; j++) {
        const int64_t r = trans ? j : i, c = trans ? i : j;
        sum += wide(p.at(false, r, c)) *
               static_cast<long double>(row.data()[r] * col.data()[c]) *
               wide(v[j]);
      }
      w.data()[i] = cplx(static_cast<double>(sum.real()),
                         static_cast<double>(sum.imag()));
    }
    return w;
  }
};

/* Entries as the host draws them: both parts uniform in [-sqrt 3, sqrt 3). */
std::vector<cplx> drawn(int64_t count, uint64_t seed) {
  std::vector<cplx> v(static_cast<size_t>(count));
  const auto part = [&seed] {
    const double unit = static_cast<double>(hone_random_bits(&seed) >> 11);
    return (unit * 0x1p-52 - 1.0) * 1.7320508075688772;
  };
  for (cplx &e : v) {
    const double re = part();
    e = cplx(re, part());
  }
  return v;
}

enum { N = 131, VECTORS = 5, SOLUTIONS = 2, COLUMNS = VECTORS + SOLUTIONS };

/* The vectors of a run of probes, and then the solutions. */
struct trial {
  scaled_problem *s;
  const factored *f;
  hone_probe_step step;
  std::vector<cplx> v, h;
  std::vector<double> rows;

  /* Returns omega by the last vector that is not used any more. */
  cplx omega_by(const cplx *u, const cplx *p) const {
    cplx up = 0;
    double uu = 0.0;
    for (int64_t i = 0; i < N; i++) {
      up += std::conj(u[i]) * p[i];
      uu += std::norm(u[i]);
    }
    return uu / up;
  }
  /* Makes the step by products here and a solve of the engine. */
  void step_by_solves() {
    std::vector<cplx> z(v.size());
    for (int64_t c = 0; c < COLUMNS; c++) {
      const std::vector<cplx> w = s->times(step.trans, v.data() + c * N);
      for (int64_t i = 0; i < N; i++)
        z.data()[i + c * N] =
            c < VECTORS ? w.data()[i]
                        : h.data()[i + (c - VECTORS) * N] - w.data()[i];
    }
    CHECK_EQ_INT(D->solve(f->self, step.trans, COLUMNS, entries(z), N),
                 HONE_OK);
    cplx omega = 1.0;
    if (step.relaxes) {
      const int64_t u = (step.dropped - 1) * N;
      omega = omega_by(v.data() + u, z.data() + u);
      const cplx excess(step.excess.re, step.excess.im);
      CHECK_LE(std::abs(excess - (omega - 1.0)), 1e-6 * std::abs(omega - 1.0));
      CHECK_LE(1e-4, std::abs(omega - 1.0));
      CHECK_LE(0.01 * std::abs(omega - 1.0), std::abs(omega.imag()));
    }
    for (int64_t e = 0; e < N * COLUMNS; e++)
      v.data()[e] += omega * (e < N * VECTORS ? -z.data()[e] : z.data()[e]);
  }
  double squares_of(int64_t from, int64_t count) const {
    double sum = 0.0;
    for (int64_t e = from; e < from + count; e++)
      sum += std::norm(v.data()[e]);
    return sum;
  }
  /* The vectors of the second step are differences of numbers of size 1e-7
     that were themselves computed to eps: they agree to about 1e-8. */
  void compare(double tolerance) {
    const int64_t from = step.dropped;
    const double squares = squares_of(N * from, N * (VECTORS - from));
    double largest = 0.0, norm = 0.0;
    std::vector<cplx> y(N);
    const hone_probed wanted = {SOLUTIONS - 1, entries(y), &norm,
                                SOLUTIONS - 1};
    for (int64_t e = from * N; e < N * VECTORS; e++)
      largest = std::fmax(largest, std::abs(v.data()[e]));
    CHECK_NEAR(step.squares, squares, tolerance * squares);
    CHECK_NEAR(step.largest, largest, tolerance * largest);
    CHECK_EQ_INT(D->probed(f->self, &step, &wanted), HONE_OK);
    for (int64_t i = 0; i < N; i++) {
      double sum = 0.0;
      for (int64_t c = from; c < VECTORS; c++)
        sum += std::norm(v.data()[i + c * N]);
      CHECK_NEAR(rows[static_cast<size_t>(i)], sum, tolerance * squares);
    }
    for (int64_t c = 0; c < SOLUTIONS; c++) {
      const double size = squares_of(N * (VECTORS + c), N);
      CHECK_NEAR(step.solution_squares[c], size, 1e-9 * size);
      for (int64_t i = 0; c == wanted.solution && i < N; i++)
        CHECK_LE(std::abs(y.data()[i] - v.data()[i + (VECTORS + c) * N]),
                 1e-9 * std::sqrt(size));
    }
    if (!step.trans)
      CHECK_NEAR(norm, norm_by_gradient(y.data()), 1e-9 * norm);
  }
  /* Returns the 1-norm of the column of inv(S) to which the gradient at y
     points, by solves of the engine. */
  double norm_by_gradient(const cplx *y) const {
    std::vector<cplx> z(N);
    for (int64_t i = 0; i < N; i++)
      z.data()[i] = std::conj(y[i]) / std::abs(y[i]);
    CHECK_EQ_INT(D->solve(f->self, true, 1, entries(z), N), HONE_OK);
    const auto smaller = [](cplx a, cplx b) {
      return std::abs(a) < std::abs(b);
    };
    const auto at = std::max_element(z.begin(), z.end(), smaller) - z.begin();
    std::fill(z.begin(), z.end(), cplx(0));
    z.data()[at] = 1.0;
    CHECK_EQ_INT(D->solve(f->self, false, 1, entries(z), N), HONE_OK);
    double sum = 0.0;
    for (const cplx &e : z)
      sum += std::abs(e);
    return sum;
  }
};

/* slow: A has one small singular value, which factors in single precision do
   not resolve, and the second step relaxes. */
void check_probes(bool trans, bool scaled, bool slow) {
  scaled_problem s(N, 2, 0.0, scaled);
  if (slow)
    s.p.make_columns_dependent(1e-6);
  const hone_scaling scaling = s.scaling();
  const factored f(s.p, {}, 0, &scaling);
  REQUIRE(f.status == HONE_OK);
  trial t = {};
  t.s = &s;
  t.f = &f;
  t.step.scaling = &scaling;
  t.step.trans = trans;
  t.step.vectors = VECTORS;
  t.step.solutions = SOLUTIONS;
  t.step.seed = 11;
  t.step.solutions_seed = 12;
  t.rows.resize(N);
  t.step.row_squares = t.rows.data();
  t.v = drawn(N * VECTORS, 11);
  t.v.resize(N * COLUMNS);
  t.h = drawn(N * SOLUTIONS, 12);
  for (int k = 0; k < 3; k++) {
    t.step.first = k == 0;
    t.step.relaxes = slow && k == 1;
    t.step.dropped = k == 2 ? VECTORS / 2 : t.step.relaxes ? 1 : 0;
    t.step.estimates = k == 1 && !trans;
    ct_note("trans %d, scaled %d, step %d", trans, scaled, k);
    const double norm =
        t.step.estimates ? t.norm_by_gradient(t.v.data() + N * VECTORS) : 0.0;
    REQUIRE(D->probe_step(f.self, &f.matrix, &t.step) == HONE_OK);
    if (t.step.estimates)
      CHECK_NEAR(t.step.inverse_norm, norm, 1e-9 * norm);
    t.step_by_solves();
    t.compare(k == 0 ? 1e-5 : k == 1 ? 1e-3 : 1e-2);
  }
}

/* Vectors whose parts are uniform have squares of 2 in the mean, and their
   powers are those of E: what leaves an imaginary part or a conjugate out does
   not pass. */
TEST(complex_cuda, makes_probes_as_products_and_solves_make_them) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++)
    for (int scaled = 0; scaled < 2; scaled++)
      check_probes(trans, scaled, false);
}

TEST(complex_cuda, relaxes_probes_as_they_are_relaxed_with_solves) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++)
    for (int scaled = 0; scaled < 2; scaled++)
      check_probes(trans, scaled, true);
}

TEST(complex_cuda, makes_probes_of_the_matrix_that_was_factored_alone) {
  NEED_DEVICE();
  const problem p(40, 0, 9.0), other(40, 0, 10.0);
  const factored f(p, {}, 0), g(other, {}, 0);
  unscaled plain(p.n);
  const hone_scaling none = plain.get();
  double rows[40];
  hone_probe_step step = {};
  step.scaling = &none;
  step.first = true;
  step.vectors = 4;
  step.row_squares = rows;
  CHECK_EQ_INT(D->probe_step(f.self, &f.matrix, &step), HONE_OK);
  CHECK_EQ_INT(D->probe_step(f.self, &g.matrix, &step), HONE_NO_DEVICE);
  hone_choices choices = {};
  choices.residuals = HONE_RESIDUALS_HOST;
  const factored without(p, choices, 0);
  CHECK_EQ_INT(D->probe_step(without.self, &without.matrix, &step),
               HONE_NO_DEVICE);
}

/* ---- Solutions that are refined there ------------------------------------ */

/* v = inv(op(S)) v for all columns, by at most 12 corrections. */
int solve_refined(const factored &f, scaled_problem *s, bool trans,
                  std::vector<cplx> *v, int *made) {
  const hone_scaling scaling = s->scaling();
  const int64_t n = s->p.n, k = static_cast<int64_t>(v->size()) / n;
  hone_refined_solve job = {&f.matrix, &scaling, trans,       12,
                            k,         n,        entries(*v), -1};
  const int st = D->solve_refined(f.self, &job);
  *made = job.corrections;
  return st;
}

/* Random solutions, and the right-hand sides that they have. */
struct columns_of {
  std::vector<cplx> x, b;

  columns_of(const scaled_problem &s, bool trans, int64_t k) {
    numbers r = {5};
    x = random_entries(&r, s.p.n * k);
    for (int64_t c = 0; c < k; c++) {
      const std::vector<cplx> w = s.times(trans, x.data() + c * s.p.n);
      b.insert(b.end(), w.begin(), w.end());
    }
  }
  double error_of(const std::vector<cplx> &v) const {
    double most = 0.0;
    for (size_t i = 0; i < v.size(); i++) {
      const double e = std::abs(v.data()[i] - x.data()[i]);
      most = e <= most ? most : e;
    }
    return most;
  }
};

/* Rounding errors of sums of n products of complex numbers, times the
   condition, which a diagonal of 4 sqrt(n) keeps below 40. */
TEST(complex_cuda, refines_solutions_on_the_device) {
  NEED_DEVICE();
  for (const int64_t n : {64, 131, 300})
    for (const bool scaled : {false, true}) {
      const double size = static_cast<double>(n);
      scaled_problem s(n, n % 2, 4.0 * std::sqrt(size), scaled);
      const hone_scaling scaling = s.scaling();
      const factored f(s.p, {}, 0, &scaling);
      for (int trans = 0; trans < 2; trans++)
        for (const int64_t k : {1, 5, n == 64 ? 70 : 3}) {
          const columns_of c(s, trans, k);
          std::vector<cplx> v = c.b, plain = c.b;
          int made = -1;
          ct_note("n %d, scaled %d, trans %d, %d columns", (int)n, scaled,
                  trans, (int)k);
          CHECK_EQ_INT(solve_refined(f, &s, trans, &v, &made), HONE_OK);
          CHECK_EQ_INT(D->solve(f.self, trans, k, entries(plain), n), HONE_OK);
          CHECK_GE(made, 1);
          CHECK_LE(made, 6);
          CHECK_LE(c.error_of(v), 40.0 * 3.0 * size * 0x1p-52);
          CHECK_GE(c.error_of(plain), 1e-9);
        }
    }
}

/* The last row is nearly i times the first one: single factors do not contract,
   and the solutions are those of solve. */
TEST(complex_cuda, solves_without_corrections_where_factors_do_not_contract) {
  NEED_DEVICE();
  const int64_t n = 100, k = 40;
  scaled_problem s(n, 0, 40.0, false);
  for (int64_t j = 0; j < n; j++)
    s.p.a.data()[n - 1 + j * n] =
        s.p.a.data()[j * n] * cplx(static_cast<double>(j % 3) * 1e-10, 1.0);
  const factored f(s.p, {}, 0);
  const columns_of c(s, false, k);
  std::vector<cplx> v = c.b, plain = c.b;
  int made = -1;
  CHECK_EQ_INT(solve_refined(f, &s, false, &v, &made), HONE_OK);
  CHECK_EQ_INT(made, 0);
  CHECK_EQ_INT(D->solve(f.self, false, k, entries(plain), n), HONE_OK);
  CHECK(same(v, plain));
}

/* NaN in either part of one column spoils no other. */
TEST(complex_cuda, a_right_hand_side_that_is_not_finite_spoils_no_other) {
  NEED_DEVICE();
  const int64_t n = 100, k = 5;
  for (int part = 0; part < 2; part++) {
    scaled_problem s(n, 0, 40.0, false);
    const factored f(s.p, {}, 0);
    const columns_of c(s, false, k);
    std::vector<cplx> v = c.b;
    int made = -1;
    v.data()[2 * n + 7] =
        part ? cplx(1.0, (double)HONE_NAN) : cplx((double)HONE_NAN, 1.0);
    CHECK_EQ_INT(solve_refined(f, &s, false, &v, &made), HONE_OK);
    for (int64_t i = 0; i < n * k; i++)
      if (i / n != 2)
        CHECK_LE(std::abs(v.data()[i] - c.x.data()[i]), 1e-4);
    CHECK(!(std::abs(v.data()[3 * n - 1]) <= DBL_MAX));
  }
}

} // namespace
