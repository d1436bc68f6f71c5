/* SPDX-License-Identifier: BSD-3-Clause */
/* Rough residuals of many columns (gpu_sp/residual/many.cu), against integer
   arithmetic without rounding; for real and for complex entries. */
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "base/engine.h"
}

#include <cmath>

namespace {

#ifdef HONE_COMPLEX
#define SUITE rough_complex
#else
#define SUITE rough
#endif
#define ROUGH_TEST_OF(suite, name) TEST(suite, name)
#define ROUGH_TEST(name) ROUGH_TEST_OF(SUITE, name)

enum { PARTS = HONE_PARTS };

/* op(A) is n x m, A lda x its columns; k vectors. The parts of all entries are
   integers below 2^53, which doubles have exactly. */
struct residuals {
  int64_t n, m, k;
  bool trans;
  int64_t lda;
  std::vector<double> a, x, b;

  residuals(int64_t rows, int64_t columns, int64_t vectors, bool t, int64_t pad)
      : n(rows), m(columns), k(vectors), trans(t), lda((t ? m : n) + pad) {
    numbers any = {static_cast<uint64_t>(n + m + k)};
    a.resize(static_cast<size_t>(PARTS * lda * (trans ? n : m)));
    x.resize(static_cast<size_t>(PARTS * m * k));
    b.resize(static_cast<size_t>(PARTS * n * k));
    for (std::vector<double> *v : {&a, &x})
      for (double &of : *v)
        of = integer(&any, 53);
  }
  static double integer(numbers *any, int bits) {
    const int64_t most = int64_t{1} << bits;
    return static_cast<double>(any->below(2 * most - 1) - (most - 1));
  }
  /* The parts of entry (i, j) of op(A), and of entry j of vector c. */
  double *entry(int64_t i, int64_t j) {
    return &a.data()[PARTS * (trans ? j + i * lda : i + j * lda)];
  }
  double *of_x(int64_t j, int64_t c) { return &x.data()[PARTS * (j + c * m)]; }
  double *of_b(int64_t i, int64_t c) { return &b.data()[PARTS * (i + c * n)]; }

  /* The modulus of an entry, whose parts have squares in the range of double.
   */
  static double modulus(const double *v) {
    const double im = PARTS > 1 ? v[PARTS - 1] : 0.0;
    return std::sqrt(v[0] * v[0] + im * im);
  }
  /* Entry i of op(A) x for vector c, by parts; *size: of the moduli. */
  void product(int64_t i, int64_t c, __int128 *sum, double *size) {
    sum[0] = sum[PARTS - 1] = 0;
    *size = 0.0;
    for (int64_t j = 0; j < m; j++) {
      const double *const v = entry(i, j), *const w = of_x(j, c);
      for (int p = 0; p < PARTS; p++)
        for (int q = 0; q < PARTS; q++) {
          const __int128 one =
              static_cast<__int128>(static_cast<int64_t>(v[p])) *
              static_cast<int64_t>(w[q]);
          sum[p ^ q] += p + q == 2 ? -one : one;
        }
      *size += modulus(v) * modulus(w);
    }
  }
  /* b becomes op(A) x, rounded. */
  void round_b() {
    for (int64_t c = 0; c < k; c++)
      for (int64_t i = 0; i < n; i++) {
        __int128 sum[2];
        double size;
        product(i, c, sum, &size);
        for (int p = 0; p < PARTS; p++)
          of_b(i, c)[p] = static_cast<double>(sum[p]);
      }
  }
};

struct results {
  std::vector<double> r, den, rest;
};

/* Computes the first 'count' of them; without b, and with what rounding took
   away, if 'apart' is true. */
results compute(const residuals &of, int64_t count, bool rough, bool apart) {
  const on_device<double> a(of.a), x(of.x), b(of.b);
  on_device<double> r(PARTS * of.n * count), den(of.n * count),
      rest(PARTS * of.n * count);
  const int64_t rows = of.trans ? of.m : of.n, columns = of.trans ? of.n : of.m;
  on_device<char> work(hone_cuda_residual_bytes(rows, columns));
  const auto entries = [](double *p) {
    return reinterpret_cast<hone_entry *>(p);
  };
  const hone_residual_vectors v = {entries(x.p),
                                   apart ? nullptr : entries(b.p),
                                   entries(r.p),
                                   den.p,
                                   nullptr,
                                   nullptr,
                                   apart ? entries(rest.p) : nullptr};
  MUST(hone_cuda_residual({entries(a.p), of.lda, rows, columns}, of.trans, v,
                          count, rough, work, nullptr));
  MUST(cudaDeviceSynchronize());
  return {r.get(), den.get(), rest.get()};
}

/* Checks one part of r, of which 'exact' is the true value. */
void check_part(double got, __int128 exact, int64_t terms, double den) {
  const double error = static_cast<double>(static_cast<__int128>(got) - exact);
  CHECK_LE(std::fabs(error), 0x1p-53 * std::fabs(static_cast<double>(exact)) +
                                 0x1p-106 * static_cast<double>(terms) * den);
}

/* Checks every residual; returns how many denominators have other bits than
   those of the columns computed one by one. */
int64_t check_all(residuals *of) {
  const results got = compute(*of, of->k, true, false);
  const results alone = compute(*of, of->k, false, false);
  const int64_t terms = hone_block_terms(of->m);
  int64_t differ = 0;
  ct_note("%d x %d, %d vectors, trans %d, lda %d", (int)of->n, (int)of->m,
          (int)of->k, of->trans, (int)of->lda);
  for (int64_t c = 0; c < of->k; c++)
    for (int64_t i = 0; i < of->n; i++) {
      __int128 sum[2];
      double den;
      const int64_t at = i + c * of->n;
      of->product(i, c, sum, &den);
      const double *const b = of->of_b(i, c);
      den += residuals::modulus(b);
      for (int p = 0; p < PARTS; p++)
        check_part(got.r.data()[PARTS * at + p],
                   static_cast<__int128>(b[p]) - sum[p], terms, den);
      CHECK_NEAR(got.den.data()[at], den, 1e-13 * den);
      differ += got.den.data()[at] != alone.den.data()[at];
    }
  return differ;
}

ROUGH_TEST(residuals_are_within_their_bound) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++) {
    residuals all(1024, 1061, PARTS > 1 ? 17 : 33, trans, 0);
    all.round_b();
    CHECK_GE(check_all(&all), 1024); /* they are computed in another way */
    residuals nine(1055, 1024, 9, trans, 3);
    nine.round_b();
    CHECK_GE(check_all(&nine), 1024);
  }
}

/* In some rows, large entries of A meet small ones of x: a common sigma for
   such products would lose their last bits. */
ROUGH_TEST(residuals_of_uneven_products_are_not_rough) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++) {
    residuals of(1024, 1024, 9, trans, 1);
    numbers any = {7};
    for (int64_t j = 0; j < of.m; j++)
      for (int p = 0; p < PARTS; p++) {
        for (int64_t c = 0; c < of.k; c++)
          of.of_x(j, c)[p] = residuals::integer(&any, j % 2 ? 52 : 8);
        for (int64_t i = 40; i < 45; i++) /* all along, or at first */
          of.entry(i, j)[p] =
              residuals::integer(&any, j % 2 || (i > 42 && j > 31) ? 8 : 52);
      }
    of.round_b();
    CHECK_GE(check_all(&of), 1024);
  }
}

/* A device that has some columns of A gives their part of A x by itself. */
ROUGH_TEST(products_have_their_rounding_apart) {
  NEED_DEVICE();
  residuals of(1100, 1030, 12, false, 0);
  const results got = compute(of, of.k, true, true);
  const int64_t terms = hone_block_terms(of.m);
  for (int64_t c = 0; c < of.k; c++)
    for (int64_t i = 0; i < of.n; i++) {
      __int128 sum[2];
      double den;
      const int64_t at = i + c * of.n;
      of.product(i, c, sum, &den);
      for (int p = 0; p < PARTS; p++) {
        const __int128 both =
            static_cast<__int128>(got.r.data()[PARTS * at + p]) +
            static_cast<__int128>(got.rest.data()[PARTS * at + p]);
        CHECK_LE(std::fabs(static_cast<double>(both + sum[p])),
                 1.0 + 0x1p-106 * static_cast<double>(terms) * den);
      }
    }
}

ROUGH_TEST(residuals_do_not_depend_on_the_other_columns) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++) {
    residuals of(1024, 1025, 20, trans, 0);
    for (int64_t i = 0; i < of.n; i++) /* column 10 is made twice */
      of.entry(i, 0)[0] = of.entry(i, 0)[PARTS - 1] = 1.0;
    for (int64_t j = 0; j < of.m; j++)
      for (int part = 0; part < PARTS; part++)
        of.of_x(j, 10)[part] = j == 0 ? 0x1p52 : 255.0;
    of.round_b();
    const results all = compute(of, 20, true, false),
                  some = compute(of, 9, true, false);
    CHECK_MEM_EQ(all.r.data(), some.r.data(), some.r.size() * sizeof(double));
    CHECK_MEM_EQ(all.den.data(), some.den.data(),
                 some.den.size() * sizeof(double));
  }
}

/* NaN, Inf and zeros stay where they belong. */
ROUGH_TEST(residuals_of_special_values) {
  NEED_DEVICE();
  for (int trans = 0; trans < 2; trans++) {
    residuals of(1030, 1024, 10, trans, 0);
    of.round_b();
    const int64_t bad_row = 77, infinite = 3, zero = 5;
    of.entry(bad_row, 900)[0] = NAN;
    of.of_x(500, infinite)[0] = INFINITY;
    for (int64_t j = 0; j < of.m; j++)
      for (int p = 0; p < PARTS; p++)
        of.of_x(j, zero)[p] = 0.0;
    const results got = compute(of, of.k, true, false);
    for (int64_t c = 0; c < of.k; c++)
      for (int64_t i = 0; i < of.n; i++) {
        const int64_t at = i + c * of.n;
        const double *const r = &got.r.data()[PARTS * at];
        const double *const b = of.of_b(i, c);
        ct_note("row %d, column %d, trans %d", (int)i, (int)c, trans);
        if (i == bad_row) {
          CHECK(std::isnan(r[0]));
          CHECK(std::isnan(got.den.data()[at]));
        } else if (c == infinite) {
          CHECK(!std::isfinite(r[0]));
          CHECK(!std::isfinite(got.den.data()[at]));
        } else if (c == zero) {
          for (int p = 0; p < PARTS; p++)
            CHECK_NEAR(r[p], b[p], 0.0);
        } else {
          CHECK_LE(std::fabs(r[0]), 0x1p-50 * got.den.data()[at]);
        }
      }
  }
}

/* Powers of two change nothing but the exponents, until products leave the
   range of what sigma may be. */
ROUGH_TEST(residuals_at_the_ends_of_the_range) {
  NEED_DEVICE();
  residuals tiny(1024, 1024, 9, false, 0);
  for (double &v : tiny.a)
    v = std::fmod(v, 0x1p20);
  tiny.round_b();
  const results whole = compute(tiny, tiny.k, true, false);
  for (double &v : tiny.a)
    v = std::ldexp(v, -1074); /* of bits that the low word alone has */
  for (double &v : tiny.x)
    v = std::ldexp(v, 960);
  for (double &v : tiny.b)
    v = std::ldexp(v, 960 - 1074);
  const results of_tiny = compute(tiny, tiny.k, true, false);
  for (size_t e = 0; e < whole.r.size(); e++)
    CHECK_NEAR(std::ldexp(of_tiny.r.data()[e], 1074 - 960), whole.r.data()[e],
               0x1p-52 * std::fabs(whole.r.data()[e]) +
                   0x1p-85 * whole.den.data()[e / PARTS]);
  residuals of(1024, 1024, 9, false, 0);
  of.round_b();
  const results as_they_are = compute(of, of.k, true, false);
  const double terms = static_cast<double>(hone_block_terms(of.m));
  for (const int shift : {-1060, -1000, -600, 600, 830, 880, 895}) {
    residuals to = of;
    for (double &v : to.a)
      v = std::ldexp(v, shift / 2);
    for (double &v : to.x)
      v = std::ldexp(v, shift - shift / 2);
    for (double &v : to.b)
      v = std::ldexp(v, shift);
    const results got = compute(to, to.k, true, false);
    ct_note("times 2^%d", shift);
    for (size_t e = 0; e < got.r.size(); e++) {
      const double want = std::ldexp(as_they_are.r.data()[e], shift);
      const double den = got.den.data()[e / PARTS];
      const double near =
          0x1p-52 * std::fabs(want) + std::ldexp(terms * den, -105) + 0x1p-1061;
      CHECK_NEAR(got.r.data()[e], want,
                 shift == -600 || shift == 600 ? 0.0 : near);
    }
  }
}

} // namespace
