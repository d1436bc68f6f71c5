/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that work on A as it arrives on the device, beside plain loops:
   mirroring, rounding to single precision, transposing, largest entries,
   inspection. */
#include "tests/cuda/test_kernels.h"

namespace {

/* ---- From doubles to floats -------------------------------------------- */

struct round_case {
  int64_t n, j, w;
  bool scaled, placed, triangle;
  int apart = 0; /* r_i has so many powers of two less, and c_j more */
};

/* Every seventh entry is out of the range of single precision or otherwise
   special. */
std::vector<double> hard_to_round(numbers *r, int64_t count) {
  const double list[] = {1e-39, -1e-46, 0.0, -0.0, 1e-310, 1e30, 0x1p-126};
  std::vector<double> a = r->array<double>(count);
  for (int64_t e = 0; e < count; e += 7)
    a.data()[e] = list[r->below(7)];
  return a;
}

std::vector<double> powers_of_two(numbers *r, int64_t n, int from) {
  std::vector<double> v(static_cast<size_t>(n));
  for (double &x : v)
    x = std::ldexp(1.0, static_cast<int>(r->below(41)) - 20 + from);
  return v;
}

void check_round(const round_case &c, double extreme) {
  const int64_t n = c.n, lda = n + 1, end = c.j + c.w;
  const int64_t ldf = (end > n ? end : n) + 3;
  numbers r = {static_cast<uint64_t>(n + c.w)};
  std::vector<double> a = hard_to_round(&r, lda * (c.j + c.w));
  const std::vector<double> row = powers_of_two(&r, n, -c.apart);
  const std::vector<double> col = powers_of_two(&r, c.j + c.w, c.apart);
  const std::vector<int> place = r.permutation(n);
  std::vector<float> f = r.array<float>(n * ldf);
  if (extreme != 0.0)
    a.data()[n / 2 + (c.j + c.w / 2) * lda] = extreme;
  on_device<double> a_there(a), row_there(row), col_there(col);
  on_device<int> place_there(place);
  on_device<float> f_there(f);
  on_device<unsigned long long> flushed(1, 0);
  on_device<unsigned> top(1, 0);
  const hone_double_columns from = {a_there, lda, n, c.j, c.w};
  const hone_device_scaling scaling = {c.scaled ? row_there.p : nullptr,
                                       c.scaled ? col_there.p : nullptr};
  const hone_rounded rounded = {
      f_there, ldf, c.placed ? place_there.p : nullptr, top, flushed};
  MUST(c.triangle
           ? hone_cuda_round_triangle(from, c.j, scaling, rounded, nullptr)
           : hone_cuda_round(from, scaling, rounded, nullptr));
  unsigned long long vanished = 0;
  float max = 0.0F;
  for (int64_t j = c.j; j < c.j + c.w; j++)
    for (int64_t i = c.triangle ? c.j : 0; i < n; i++) {
      double v = c.triangle && i < j ? 0.0 : a.data()[i + j * lda];
      if (c.scaled)
        v *= row.data()[i] * col.data()[j];
      float x = static_cast<float>(v);
      x = std::fabs(x) < FLT_MIN ? 0.0F : x;
      vanished += v != 0.0 && x == 0.0F;
      max = std::fmax(max, x - x == 0.0F ? std::fabs(x) : HUGE_VALF);
      const int64_t to = c.placed ? place.data()[i] : i;
      f.data()[c.triangle ? j * ldf + i : to * ldf + j] = x;
    }
  ct_note("n %d, j %d, w %d, extreme %g", (int)n, (int)c.j, (int)c.w, extreme);
  const std::vector<float> got = f_there.get();
  int64_t wrong = 0;
  /* Any NaN equals any NaN, and 0 equals -0. */
  for (size_t e = 0; e < got.size(); e++)
    wrong += !(got[e] == f[e] || (got[e] != got[e] && f[e] != f[e]));
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(flushed.get()[0], vanished);
  CHECK_EQ_INT(top.get()[0], bits_of(max));
}

TEST(kernels, mirror_a_triangle) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 31, 32, 33, 64, 100}) {
    const int64_t lda = n + 3;
    numbers r = {static_cast<uint64_t>(n)};
    std::vector<double> a = r.array<double>(n * lda);
    on_device<double> there(a);
    MUST(hone_cuda_mirror(n, there, lda, nullptr));
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < j; i++)
        a.data()[i + j * lda] = a.data()[j + i * lda];
    CHECK(there.get() == a);
  }
}

TEST(kernels, round_to_single_precision) {
  NEED_DEVICE();
  for (int64_t n : {1, 63, 64, 130})
    for (int at = 0; at < 8; at++) {
      check_round({n, 0, n, at % 2 == 1, at / 2 % 2 == 1, at >= 4}, 0.0);
      if (at < 4 || n >= 17 + 65)
        check_round({n, 17, 65, at % 2 == 1, at / 2 % 2 == 1, at >= 4}, 0.0);
    }
  for (int apart : {-1000, 1000}) /* r_i a_ij is out of range, S is not */
    check_round({130, 3, 80, true, true, false, apart}, 0.0);
  check_round({100, 0, 100, false, false, true}, HUGE_VAL);
  check_round({100, 0, 100, false, true, false}, 1e39);
  check_round({100, 0, 100, false, true, false}, -HUGE_VAL);
  check_round({100, 0, 100, false, true, false}, static_cast<double>(NAN));
}

TEST(kernels, transpose_columns_into_rows) {
  NEED_DEVICE();
  for (int64_t n : {1, 65, 200}) {
    const int64_t j = 3, w = 70, lda = n + 2, ldf = j + w + 1;
    numbers r = {static_cast<uint64_t>(n)};
    std::vector<float> a = r.array<float>(lda * w), f = r.array<float>(n * ldf);
    const std::vector<int> place = r.permutation(n);
    float max = 0.0F;
    a.data()[n / 2] = -7.0F;
    on_device<float> a_there(a), f_there(f);
    on_device<int> place_there(place);
    on_device<unsigned> top(1, 0);
    MUST(hone_cuda_transpose(n, a_there, lda, j, w,
                             {f_there, ldf, place_there, top, nullptr},
                             nullptr));
    for (int64_t c = 0; c < w; c++)
      for (int64_t i = 0; i < n; i++) {
        const float v = a.data()[i + c * lda];
        max = std::fmax(max, std::fabs(v));
        f.data()[place.data()[i] * ldf + j + c] = v;
      }
    CHECK(same(f_there.get(), f));
    CHECK_EQ_INT(top.get()[0], bits_of(max));
  }
}

TEST(kernels, find_the_largest_entries) {
  NEED_DEVICE();
  for (int64_t n : {1, 33, 300})
    for (int special = 0; special < 4; special++) {
      const int64_t ld = n + 3;
      numbers r = {static_cast<uint64_t>(n)};
      std::vector<float> f = r.array<float>(n * ld);
      for (int64_t i = 0; i < n; i++) /* padding */
        f.data()[i * ld + n] = 1e30F;
      if (special == 1)
        f.data()[(n - 1) * ld] = -9.0F; /* not in U unless n = 1 */
      if (special == 2)
        f.data()[n / 2 * ld + n - 1] = NAN;
      if (special == 3)
        f.data()[n / 2 * ld + n - 1] = -HUGE_VALF;
      float all = 0.0F, upper = 0.0F;
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
          float v = std::fabs(f.data()[i * ld + j]);
          v = v <= FLT_MAX ? v : HUGE_VALF;
          all = v > all ? v : all;
          upper = j >= i && v > upper ? v : upper;
        }
      on_device<float> there(f);
      on_device<unsigned> max(2, 0);
      MUST(hone_cuda_largest(n, there, ld, max, nullptr));
      MUST(hone_cuda_largest_u(n, n, there, ld, max + 1, nullptr));
      CHECK_EQ_INT(max.get()[0], bits_of(all));
      CHECK_EQ_INT(max.get()[1], bits_of(upper));
    }
}

/* ---- Inspection -------------------------------------------------------- */

struct extents {
  std::vector<double> row_max, row_sum, col_max, col_sum;
};

void check_near(const std::vector<double> &a, const std::vector<double> &b,
                double tolerance) {
  for (size_t i = 0; i < a.size(); i++)
    CHECK_NEAR(a[i], b[i], tolerance * b[i]);
}

void check_inspect(int64_t n, int64_t columns, int64_t w, bool scaled) {
  const int64_t lda = n + n % 3;
  numbers r = {static_cast<uint64_t>(n + w)};
  const std::vector<double> a = r.array<double>(lda * columns);
  const std::vector<double> row = powers_of_two(&r, n, 0);
  const std::vector<double> col = powers_of_two(&r, columns, 0);
  const std::vector<double> of_rows(static_cast<size_t>(n));
  const std::vector<double> of_columns(static_cast<size_t>(columns));
  extents e = {of_rows, of_rows, of_columns, of_columns};
  on_device<double> a_there(a), row_there(row), col_there(col);
  on_device<double> row_max(of_rows), row_sum(of_rows);
  on_device<double> col_max(of_columns), col_sum(of_columns);
  for (int64_t j = 0; j < columns; j += w) /* one piece after the other */
    MUST(hone_cuda_inspect(
        {a_there, lda, n, j, w < columns - j ? w : columns - j},
        {scaled ? row_there.p : nullptr, scaled ? col_there.p : nullptr},
        {row_max, row_sum, col_max, col_sum}, nullptr));
  for (int64_t j = 0; j < columns; j++)
    for (int64_t i = 0; i < n; i++) {
      const double scale = scaled ? row.data()[i] * col.data()[j] : 1.0;
      const double v = std::fabs(a.data()[i + j * lda] * scale);
      e.row_max.data()[i] = std::fmax(v, e.row_max.data()[i]);
      e.col_max.data()[j] = std::fmax(v, e.col_max.data()[j]);
      e.row_sum.data()[i] += v;
      e.col_sum.data()[j] += v;
    }
  ct_note("n %d, %d columns, w %d", (int)n, (int)columns, (int)w);
  CHECK(same(row_max.get(), e.row_max));
  CHECK(same(col_max.get(), e.col_max));
  check_near(row_sum.get(), e.row_sum, 1e-13);
  check_near(col_sum.get(), e.col_sum, 1e-13);
}

TEST(kernels, inspect_rows_and_columns) {
  NEED_DEVICE();
  for (int64_t n : {1, 2, 33, 300, 1025})
    for (int scaled = 0; scaled < 2; scaled++) {
      check_inspect(n, n, n, scaled);
      check_inspect(n, n, 17, scaled);
    }
  check_inspect(8193, 5, 3, true);    /* tall */
  check_inspect(3, 1030, 1030, true); /* many columns */
}

TEST(kernels, inspect_columns_that_are_not_finite) {
  NEED_DEVICE();
  const double odd[] = {HUGE_VAL, -HUGE_VAL, static_cast<double>(NAN)};
  for (double value : odd) {
    const int64_t n = 70, at = 41;
    const std::vector<double> zeros(static_cast<size_t>(n));
    std::vector<double> a(static_cast<size_t>(n * n), 1.0);
    a.data()[5 + at * n] = value;
    on_device<double> there(a), row_max(zeros), row_sum(zeros), col_max(zeros),
        col_sum(zeros);
    MUST(hone_cuda_inspect({there, n, n, 0, n}, {nullptr, nullptr},
                           {row_max, row_sum, col_max, col_sum}, nullptr));
    for (int64_t j = 0; j < n; j++)
      CHECK_NEAR(col_max.get().data()[j], j == at ? HUGE_VAL : 1.0, 0.0);
  }
}

} // namespace
