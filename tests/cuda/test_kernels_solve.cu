/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that work in double precision, beside plain loops: triangular
   solves and residuals. */
#include "tests/cuda/test_kernels.h"

#include <algorithm>

namespace {

/* ---- Triangles --------------------------------------------------------- */

/* Entry (i, j) of the triangle named by which, op applied. */
double entry_of(enum hone_triangle which, const float *t, int64_t ld, int64_t i,
                int64_t j) {
  const bool trans = which == HONE_LOWER_TRANS || which == HONE_UPPER_TRANS;
  const bool upper = which == HONE_UPPER || which == HONE_UPPER_TRANS;
  if (trans) {
    const int64_t h = i;
    i = j;
    j = h;
  }
  if (upper)
    return i == j ? 1.0 : (i < j ? static_cast<double>(t[i + j * ld]) : 0.0);
  return i >= j ? static_cast<double>(t[i + j * ld]) : 0.0;
}

std::vector<float> two_triangles(int64_t n, int64_t ld) {
  numbers r = {static_cast<uint64_t>(n)};
  std::vector<float> t = r.array<float>(n * ld);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      t.data()[i + j * ld] =
          i == j ? (i % 2 ? 1.5F : -0.75F) : t.data()[i + j * ld] * 0.125F;
  return t;
}

TEST(kernels, invert_diagonal_blocks) {
  NEED_DEVICE();
  for (int64_t n : {1, 100, 128, 300})
    for (int both = 0; both < 2; both++) {
      const int64_t ld = n + 1, b = HONE_PANEL, blocks = (n + b - 1) / b;
      const std::vector<float> t = two_triangles(n, ld);
      on_device<float> there(t);
      on_device<double> lower(blocks * b * b), upper(blocks * b * b);
      CHECK_EQ_INT(hone_cuda_inverse_bytes(n), lower.count * sizeof(double));
      MUST(hone_cuda_invert_blocks(n, there, ld, lower,
                                   both ? upper.p : nullptr, nullptr));
      for (int u = 0; u <= both; u++) {
        const std::vector<double> inverse = (u ? upper : lower).get();
        const enum hone_triangle which = u ? HONE_UPPER : HONE_LOWER;
        double error = 0.0;
        int64_t zeros = 0;
        for (int64_t q = 0; q < blocks; q++)
          for (int64_t j = 0; j < b; j++)
            for (int64_t i = 0; i < b; i++) {
              const double *inv = inverse.data() + q * b * b;
              double sum = i == j ? -1.0 : 0.0;
              for (int64_t p = 0; p < b; p++) {
                const bool in = q * b + i < n && q * b + p < n;
                sum += (in ? entry_of(which, t.data(), ld, q * b + i, q * b + p)
                           : (i == p ? 1.0 : 0.0)) *
                       inv[p + j * b];
              }
              error = std::fabs(sum) <= error ? error : std::fabs(sum);
              zeros += (u ? i > j : i < j) && inv[i + j * b] != 0.0;
            }
        ct_note("n %d, %s", (int)n, u ? "upper" : "lower");
        CHECK_LE(error, 1e-13);
        CHECK_EQ_INT(zeros, 0);
      }
    }
}

/* A workspace of the triangular solves. */
struct turns {
  on_device<char> there;
  hone_triangle_work work = {};
  explicit turns(int64_t n) : there(hone_cuda_triangle_bytes(n)) {
    work.there = there.p;
  }
};

void check_triangle(enum hone_triangle which, int64_t n, int64_t k, int group) {
  const int64_t ld = n + n % 2, ldv = n + 3, b = HONE_PANEL;
  const std::vector<float> t = two_triangles(n, ld);
  numbers r = {static_cast<uint64_t>(n + k)};
  const std::vector<double> x = r.array<double>(ldv * k);
  std::vector<double> v = x;
  for (int64_t c = 0; c < k; c++)
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++)
        sum += entry_of(which, t.data(), ld, i, j) * x.data()[j + c * ldv];
      v.data()[i + c * ldv] = sum;
    }
  on_device<float> there(t);
  on_device<double> v_there(v), lower((n + b - 1) / b * b * b);
  on_device<double> upper(static_cast<int64_t>(lower.count));
  turns t_work(n);
  t_work.work.group = group;
  const bool is_lower = which == HONE_LOWER || which == HONE_LOWER_TRANS;
  MUST(hone_cuda_invert_blocks(n, there, ld, lower, upper, nullptr));
  const hone_sweep sweep = {which, is_lower ? lower : upper, false};
  MUST(hone_cuda_triangles(&sweep, 1, {there, ld, n},
                           {k, v_there, v_there, ldv}, &t_work.work, nullptr));
  const std::vector<double> got = v_there.get();
  double error = 0.0;
  for (size_t e = 0; e < x.size(); e++) {
    const double d = std::fabs(got.data()[e] - x.data()[e]);
    if (!(d <= error) && !std::isnan(error)) /* NaN stays */
      error = d;
  }
  ct_note("triangle %d, n %d, k %d, %d together", (int)which, (int)n, (int)k,
          group);
  CHECK_LE(error, 1e-11);
}

TEST(kernels, solve_triangular_systems) {
  NEED_DEVICE();
  for (int which = HONE_LOWER; which <= HONE_UPPER_TRANS; which++) {
    for (int64_t n : {1, 127, 128, 300})
      for (int64_t k : {1, 2, 4, 7, 11, 35})
        check_triangle(static_cast<enum hone_triangle>(which), n, k, 0);
    check_triangle(static_cast<enum hone_triangle>(which), 700, 3, 0);
  }
}

TEST(kernels, solve_triangular_systems_for_many_columns_together) {
  NEED_DEVICE();
  for (int which = HONE_LOWER; which <= HONE_UPPER_TRANS; which++)
    for (int64_t n : {1, 127, 128, 300, 389})
      for (int64_t k : {1, 8, 13, 17, 35})
        for (int group : {8, 16})
          check_triangle(static_cast<enum hone_triangle>(which), n, k, group);
}

std::vector<double> both_sweeps(const hone_sweep *sweep, int64_t n,
                                const float *there, int64_t ld, int64_t k,
                                const std::vector<double> &v, int64_t ldv,
                                hone_triangle_work *work) {
  double *pinned; /* the kernel reads and writes the host's memory */
  std::vector<double> out(v.size());
  MUST(cudaMallocHost(reinterpret_cast<void **>(&pinned),
                      v.size() * sizeof(double)));
  memcpy(pinned, v.data(), v.size() * sizeof(double));
  MUST(hone_cuda_triangles(sweep, 2, {there, ld, n}, {k, pinned, pinned, ldv},
                           work, nullptr));
  MUST(cudaStreamSynchronize(nullptr));
  memcpy(out.data(), pinned, v.size() * sizeof(double));
  MUST(cudaFreeHost(pinned));
  return out;
}

/* One workspace serves solves of all kinds and widths in turn, some of them
   after a failure. Each result has the bits of the two sweeps made one after
   the other, and of each column solved alone, with zeros beside it where many
   are solved for together. */
TEST(kernels, solve_with_two_triangles_in_one_workspace) {
  NEED_DEVICE();
  const int64_t n = 391, ld = 392, ldv = n + 1, b = HONE_PANEL;
  numbers r = {7};
  const std::vector<float> t = two_triangles(n, ld);
  on_device<float> there(t);
  on_device<double> lower((n + b - 1) / b * b * b);
  on_device<double> upper(static_cast<int64_t>(lower.count));
  MUST(hone_cuda_invert_blocks(n, there, ld, lower, upper, nullptr));
  const hone_sweep up = {HONE_UPPER, upper, false},
                   up_trans = {HONE_UPPER_TRANS, upper, false},
                   low = {HONE_LOWER, lower, false},
                   low_trans = {HONE_LOWER_TRANS, lower, false};
  const hone_sweep pairs[4][2] = {
      {up_trans, low_trans}, {low, up}, {low, low_trans}, {low_trans, low}};
  turns turn(n);
  const int64_t kinds[][2] = {{8, 0}, {1, 0},  {1, 0},   {5, 0}, {2, 0},
                              {3, 0}, {1, 0},  {11, 0},  {1, 0}, {8, 8},
                              {5, 8}, {11, 8}, {11, 16}, {1, 0}, {32, 16}};
  for (const auto &[k, group] : kinds)
    for (const hone_sweep *pair : pairs) {
      const std::vector<double> v = r.array<double>(ldv * k);
      std::vector<double> apart = v;
      for (int64_t c = 0; c < k; c++) { /* one column and one sweep at a time */
        turns fresh(n);
        fresh.work.group = static_cast<int>(group);
        const auto from = v.begin() + c * ldv;
        on_device<double> one(std::vector<double>(from, from + ldv));
        for (int s = 0; s < 2; s++)
          MUST(hone_cuda_triangles(pair + s, 1, {there, ld, n},
                                   {1, one, one, ldv}, &fresh.work, nullptr));
        const std::vector<double> got = one.get();
        std::copy(got.begin(), got.end() - 1, apart.begin() + c * ldv);
      }
      ct_note("k %d, pair %d, %d together", (int)k, (int)(pair - pairs[0]) / 2,
              (int)group);
      turn.work.group = static_cast<int>(group);
      CHECK(
          same(both_sweeps(pair, n, there, ld, k, v, ldv, &turn.work), apart));
      if (k == 5) /* as after a failure: the workspace is cleared */
        turn.work.clean = false;
    }
}

/* Between blocks the values are their own flags: the solve must end whatever
   they are. */
TEST(kernels, solve_triangles_with_nan_and_infinity_without_hanging) {
  NEED_DEVICE();
  const int64_t n = 300, b = HONE_PANEL, blocks = (n + b - 1) / b;
  for (unsigned bits : {0x7f800000U, 0x7fc00000U, 0xffffffffU})
    for (int which = HONE_LOWER; which <= HONE_UPPER_TRANS; which++) {
      std::vector<float> t = two_triangles(n, n);
      float odd;
      memcpy(&odd, &bits, sizeof odd);
      t.data()[130 + 120 * n] = t.data()[120 + 130 * n] = odd;
      on_device<float> there(t);
      on_device<double> v(std::vector<double>(static_cast<size_t>(n), 1.0));
      on_device<double> lower(blocks * b * b), upper(blocks * b * b);
      turns turn(n);
      MUST(hone_cuda_invert_blocks(n, there, n, lower, upper, nullptr));
      const hone_sweep sweep = {static_cast<enum hone_triangle>(which),
                                which < HONE_UPPER ? lower : upper, false};
      MUST(hone_cuda_triangles(&sweep, 1, {there, n, n}, {1, v, v, n},
                               &turn.work, nullptr));
      const bool ascends = which == HONE_LOWER || which == HONE_UPPER_TRANS;
      const double reached = v.get().data()[ascends ? 130 : 120];
      ct_note("triangle %d, %08x", which, bits);
      CHECK(!(std::fabs(reached) <= DBL_MAX));
    }
}

TEST(kernels, copy_words) {
  NEED_DEVICE();
  const int64_t lengths[HONE_COPIES] = {65, 1, 1000, 64};
  numbers r = {11};
  std::vector<int> v(HONE_COPIES * 1001), want(v.size(), -1);
  for (int &e : v)
    e = static_cast<int>(r.next() >> 33);
  const on_device<int> there(v), to(want);
  hone_copy list[HONE_COPIES];
  for (int64_t c = 0; c < HONE_COPIES; c++) {
    list[c] = {there.p + 1001 * c, to.p + 1001 * c, lengths[c]};
    std::copy_n(v.begin() + 1001 * c, lengths[c], want.begin() + 1001 * c);
  }
  MUST(hone_cuda_copy(list, HONE_COPIES, nullptr));
  CHECK(to.get() == want);
}

/* ---- Residuals --------------------------------------------------------- */

/* Integers up to 2^40: products and sums are exact in 128 bits, and b cancels
   all but the part that doubles cannot represent. */
void check_residual(int64_t n, int64_t lda, bool trans) {
  numbers r = {static_cast<uint64_t>(n + lda)};
  const int64_t half = int64_t{1} << 40;
  std::vector<double> a(static_cast<size_t>(lda * n)),
      x(static_cast<size_t>(n)), b = x;
  std::vector<__int128> sum(x.size());
  std::vector<double> den(x.size());
  for (double &v : a)
    v = static_cast<double>(r.below(2 * half) - half);
  for (double &v : x)
    v = static_cast<double>(r.below(2 * half) - half);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      const double v = a.data()[trans ? j + i * lda : i + j * lda];
      sum.data()[i] +=
          static_cast<__int128>(v) * static_cast<__int128>(x.data()[j]);
      den.data()[i] += std::fabs(v * x.data()[j]);
    }
    b.data()[i] = static_cast<double>(sum.data()[i]); /* rounded to double */
    den.data()[i] += std::fabs(b.data()[i]);
  }
  on_device<double> a_there(a), x_there(n), b_there(b), r_there(n),
      den_there(n), again(n);
  const std::vector<int> place = r.permutation(n);
  on_device<int> place_there(place);
  on_device<char> work(hone_cuda_residual_bytes(n, n));
  const on_device<double> x_before(x);
  const hone_copy copy = {x_before.p, x_there.p, 2 * n};
  MUST(hone_cuda_copy(&copy, 1, nullptr));
  MUST(hone_cuda_residual({a_there, lda, n, n}, trans,
                          {x_there, b_there, r_there, den_there,
                           trans ? nullptr : place_there.p, again, nullptr},
                          1, false, work, nullptr));
  const std::vector<double> got = r_there.get(), got_den = den_there.get();
  const std::vector<double> got_again = again.get();
  for (int64_t i = 0; i < n; i++)
    CHECK(got_again.data()[trans ? i : place.data()[i]] == got.data()[i]);
  ct_note("n %d, lda %d, trans %d", (int)n, (int)lda, trans);
  for (int64_t i = 0; i < n; i++) {
    const __int128 exact = static_cast<__int128>(b.data()[i]) - sum.data()[i];
    CHECK_NEAR(got.data()[i], exact,
               0x1p-52 * std::fabs(static_cast<double>(exact)) +
                   0x1p-104 * static_cast<double>(n * n) * den.data()[i]);
    CHECK_NEAR(got_den.data()[i], den.data()[i], 1e-13 * den.data()[i]);
  }
}

/* A block of residuals has the bits of each computed alone. */
void check_residual_block(int64_t n, int64_t lda, bool trans) {
  numbers r = {static_cast<uint64_t>(n + lda)};
  const int64_t k = HONE_RESIDUAL_BLOCK;
  const on_device<double> a(r.array<double>(lda * n));
  const on_device<double> x(r.array<double>(k * n)), b(r.array<double>(k * n));
  on_device<double> all(k * n), all_den(k * n), one(n), one_den(n);
  on_device<char> work(hone_cuda_residual_bytes(n, n));
  MUST(hone_cuda_residual({a.p, lda, n, n}, trans,
                          {x.p, b.p, all, all_den, nullptr, nullptr, nullptr},
                          k, false, work, nullptr));
  const std::vector<double> got = all.get(), got_den = all_den.get();
  for (int64_t c = 0; c < k; c++) {
    MUST(hone_cuda_residual(
        {a.p, lda, n, n}, trans,
        {x.p + c * n, b.p + c * n, one, one_den, nullptr, nullptr, nullptr}, 1,
        false, work, nullptr));
    const std::vector<double> want = one.get(), want_den = one_den.get();
    ct_note("n %d, lda %d, trans %d, column %d", (int)n, (int)lda, trans,
            (int)c);
    CHECK_EQ_INT(
        memcmp(got.data() + c * n, want.data(), want.size() * sizeof(double)),
        0);
    CHECK_EQ_INT(memcmp(got_den.data() + c * n, want_den.data(),
                        want.size() * sizeof(double)),
                 0);
  }
}

TEST(kernels, compute_residuals_of_several_columns_at_once) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 31, 128, 257, 600})
    for (int64_t pad = 0; pad < 3; pad++) {
      check_residual_block(n, n + pad, false);
      check_residual_block(n, n + pad, true);
    }
}

TEST(kernels, compute_residuals_in_twice_the_precision) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 31, 128, 257, 600})
    for (int64_t pad = 0; pad < 3; pad++) {
      check_residual(n, n + pad, false);
      check_residual(n, n + pad, true);
    }
}

} // namespace
