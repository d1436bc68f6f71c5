/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of the CUDA engine over a complex A: residuals, products, inspection,
   and the projection, each beside plain loops. */
#include "tests/cuda/complex_problem.h"

namespace {

/* r to the last bits: its error is that of rounding it once, and n^2 eps^2 of
   the terms. den to n + 10 roundings. */
void check_residual(const problem &p, bool trans, const std::vector<cplx> &x,
                    const std::vector<cplx> &b, const cplx *r,
                    const double *den) {
  for (int64_t i = 0; i < p.n; i++) {
    wide sum = wide(b.data()[i]);
    long double size = std::abs(sum);
    for (int64_t j = 0; j < p.n; j++) {
      const wide a = wide(p.at(trans, i, j)), xj = wide(x.data()[j]);
      sum -= a * xj;
      size += std::abs(a) * std::abs(xj);
    }
    /* the reference has 64 bits */
    CHECK_LE((double)std::abs(sum - wide(r[i])),
             0x1p-52 * (double)std::abs(sum) + 0x1p-60 * (double)size);
    CHECK_LE(std::fabs(den[i] - (double)size),
             0x1p-53 * (double)(p.n + 10) * (double)size);
  }
}

TEST(complex_cuda, computes_residuals) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 31, 64, 65, 129, 300}) {
    const problem p(n, n % 2, 1.0);
    const factored f(p, {}, 0);
    REQUIRE(f.status == HONE_OK);
    numbers r = {3};
    const int64_t k = 6;
    std::vector<cplx> x[6], b[6], got[6], alone(static_cast<size_t>(n));
    std::vector<double> den[6], den_alone(static_cast<size_t>(n));
    const hone_entry *xs[6], *bs[6];
    hone_entry *rs[6];
    double *dens[6];
    for (int64_t c = 0; c < k; c++) {
      x[c] = random_entries(&r, n);
      b[c] = random_entries(&r, n);
      got[c].resize(static_cast<size_t>(n));
      den[c].resize(static_cast<size_t>(n));
      xs[c] = entries(x[c]);
      bs[c] = entries(b[c]);
      rs[c] = entries(got[c]);
      dens[c] = den[c].data();
    }
    for (int trans = 0; trans < 2; trans++) {
      ct_note("n %d, trans %d", (int)n, trans);
      const hone_residual_block block = {k, xs, bs, rs, dens, false, false};
      CHECK_EQ_INT(D->residuals(f.self, &f.matrix, trans, &block), HONE_OK);
      for (int64_t c = 0; c < k; c++) {
        check_residual(p, trans, x[c], b[c], got[c].data(), dens[c]);
        CHECK_EQ_INT(D->residual(f.self, &f.matrix, trans, xs[c], bs[c],
                                 entries(alone), den_alone.data()),
                     HONE_OK);
        CHECK(same(alone, got[c]));
        CHECK(same(den_alone, den[c]));
      }
    }
  }
}

/* Moduli of entries whose squares overflow or vanish are in den. */
TEST(complex_cuda, denominators_neither_overflow_nor_vanish) {
  NEED_DEVICE();
  for (double size : {0x1p-600, 0x1p600, 0x1p-1000}) {
    problem p(70, 0, 2.0);
    for (cplx &e : p.a)
      e *= size;
    const factored f(p, {}, 0);
    REQUIRE(f.status == HONE_OK);
    numbers r = {3};
    const std::vector<cplx> x = random_entries(&r, p.n);
    const std::vector<cplx> b(static_cast<size_t>(p.n));
    std::vector<cplx> got(b.size());
    std::vector<double> den(b.size());
    CHECK_EQ_INT(D->residual(f.self, &f.matrix, false, entries(x), entries(b),
                             entries(got), den.data()),
                 HONE_OK);
    for (int64_t i = 0; i < p.n; i++) {
      long double sum = 0.0L;
      for (int64_t j = 0; j < p.n; j++)
        sum += std::abs(wide(p.at(false, i, j))) * std::abs(wide(x.data()[j]));
      CHECK_LE(std::fabs(den.data()[i] - (double)sum), 0x1p-46 * (double)sum);
    }
  }
}

TEST(complex_cuda, multiplies) {
  NEED_DEVICE();
  const problem p(90, 1, 1.0);
  const factored f(p, {}, 0);
  REQUIRE(f.status == HONE_OK);
  for (int trans = 0; trans < 2; trans++) {
    std::vector<cplx> x = p.x, y(x.size());
    CHECK_EQ_INT(
        D->product(f.self, &f.matrix, trans, 1, entries(x), entries(y)),
        HONE_OK);
    for (int64_t i = 0; i < p.n; i++)
      CHECK_LE(std::abs(y.data()[i] - p.b[trans].data()[i]),
               0x1p-50 * (double)p.n * 2.0);
  }
}

/* Sums of moduli to n + 10 roundings, maxima to three. */
void check_inspection(const problem &p, const double *row, const double *col,
                      const hone_inspection &s, const double *sums) {
  const double u = 0x1p-53;
  for (int64_t i = 0; i < p.n; i++) {
    double of[4] = {};
    for (int64_t j = 0; j < p.n; j++) {
      const double a = std::abs(p.at(false, i, j)) * row[i] * col[j];
      const double t = std::abs(p.at(true, i, j)) * row[j] * col[i];
      of[0] = std::fmax(of[0], a);
      of[1] += a;
      of[2] = std::fmax(of[2], t);
      of[3] += t;
    }
    CHECK_NEAR(s.row_max[i], of[0], 4.0 * u * of[0]);
    CHECK_NEAR(sums[i], of[1], u * (double)(2 * p.n + 20) * of[1]);
    CHECK_NEAR(s.col_max[i], of[2], 4.0 * u * of[2]);
    CHECK_NEAR(sums[p.n + i], of[3], u * (double)(2 * p.n + 20) * of[3]);
  }
}

TEST(complex_cuda, inspects) {
  NEED_DEVICE();
  for (int64_t n : {1, 65, 300}) {
    const problem p(n, 1, 1.0);
    const factored f(p, {}, 0);
    REQUIRE(f.status == HONE_OK);
    const size_t size = static_cast<size_t>(n);
    std::vector<double> row(size, 1.0), col(size, 1.0), max[2], sums(2 * size);
    std::vector<int> row_exp(size), col_exp(size);
    hone_inspection s = {};
    max[0].resize(size);
    max[1].resize(size);
    s.row_max = max[0].data();
    s.col_max = max[1].data();
    CHECK_EQ_INT(D->inspect(f.self, &f.matrix, nullptr, sums.data(), &s),
                 HONE_OK);
    check_inspection(p, row.data(), col.data(), s, sums.data());
    for (int64_t i = 0; i < n; i++) {
      row.data()[i] = std::ldexp(1.0, (int)(i % 7) - 3);
      col.data()[i] = std::ldexp(1.0, 5 - (int)(i % 11));
    }
    const hone_scaling scaling = {row.data(), col.data(), row_exp.data(),
                                  col_exp.data(), true};
    CHECK_EQ_INT(D->inspect(f.self, &f.matrix, &scaling, sums.data(), &s),
                 HONE_OK);
    check_inspection(p, row.data(), col.data(), s, sums.data());
  }
}

/* NaN or Inf in either part shows in the largest magnitude of its column. */
TEST(complex_cuda, inspection_finds_what_is_not_finite) {
  NEED_DEVICE();
  for (int part = 0; part < 2; part++)
    for (double bad : {(double)HONE_NAN, (double)HONE_INF}) {
      problem p(70, 0, 4.0);
      p.a.data()[33 + 40 * p.lda] = part ? cplx(1.0, bad) : cplx(bad, 1.0);
      const factored f(p, {}, 0);
      REQUIRE(f.self != nullptr);
      std::vector<double> max[2], sums(140);
      hone_inspection s = {};
      max[0].resize(70);
      max[1].resize(70);
      s.row_max = max[0].data();
      s.col_max = max[1].data();
      CHECK(!(f.info.growth <= DBL_MAX));
      CHECK_EQ_INT(D->inspect(f.self, &f.matrix, nullptr, sums.data(), &s),
                   HONE_OK);
      for (int64_t j = 0; j < p.n; j++)
        CHECK(j == 40 ? !(s.col_max[j] <= DBL_MAX) : s.col_max[j] <= 8.0);
    }
}

/* w = op(A)^T v, and the sum of products of magnitudes. */
TEST(complex_cuda, takes_the_projection_of_a_on_its_way) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++)
    for (int64_t n : {1, 70, 300}) {
      const problem p(n, 2, 1.0);
      hone_mem mem = {};
      hone_watch watch = {};
      hone_engine_config config = {};
      hone_dense dense = {p.n, p.lda, entries(p.a), nullptr, trans != 0, 0};
      const hone_matrix matrix = hone_dense_matrix(&dense);
      hone_factor_info info;
      void *self = nullptr;
      config.n = n;
      config.mem = &mem;
      config.watch = &watch;
      REQUIRE(D->create(&self, &config) == HONE_OK);
      CHECK_EQ_INT(D->factor(self, &matrix, nullptr, &info), HONE_OK);
      CHECK(D->projection(self, &matrix, !trans) == nullptr);
      const hone_projection *w = D->projection(self, &matrix, trans);
      REQUIRE(w != nullptr);
      ct_note("n %d, trans %d", (int)n, trans);
      for (int64_t j = 0; j < n; j++) {
        wide sum = 0;
        long double size = 0;
        for (int64_t i = 0; i < n; i++) {
          const wide v(w->v[i].re, w->v[i].im);
          sum += wide(p.at(trans, i, j)) * v;
          size += std::abs(wide(p.at(trans, i, j))) * std::abs(v);
        }
        const wide got = wide(w->w[j].re, w->w[j].im) +
                         wide(w->w_rest[j].re, w->w_rest[j].im);
        CHECK_LE((double)std::abs(got - sum), 0x1p-60 * (double)size);
        /* by moduli, or by sums of magnitudes of parts, which are larger */
        CHECK_LE((double)size, w->u[j] * (1.0 + 1e-10));
        CHECK_LE(w->u[j], 2.0 * (double)size);
      }
      D->destroy(self, &mem);
    }
}

} // namespace
