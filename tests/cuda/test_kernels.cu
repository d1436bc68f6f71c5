/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the factorization, beside plain loops: panels, pieces, block
   rows of U. Next to read: test_kernels_moves.cu, test_kernels_solve.cu,
   test_kernels_feed.cu. */
#include "tests/cuda/test_pieces.h"

#include "gpu_sp/entries.h"

namespace {

/* ---- Panels ------------------------------------------------------------ */

enum kind { RANDOM, ZERO_COLUMN, HEAVY_DIAGONAL };

struct panel_case {
  int64_t n, k, w;
  enum hone_pivoting pivoting;
  enum kind kind;
  bool few_blocks = false;
};

std::vector<float> panel_matrix(const panel_case &c, int64_t ld) {
  numbers r = {static_cast<uint64_t>(c.n + 7 * c.w)};
  std::vector<float> a = r.array<float>(c.n * ld);
  for (int64_t i = c.k; i < c.n && c.kind == ZERO_COLUMN; i++)
    a.data()[i * ld + c.k + c.w / 2] = 0.0F;
  for (int64_t i = c.k; i < c.k + c.w && c.kind == HEAVY_DIAGONAL; i++)
    a.data()[i * ld + i] += 100.0F;
  return a;
}

/* old[i] is the row that moved to row i. */
std::vector<int> old_rows(int64_t n, const hone_moves &m) {
  std::vector<int> old(static_cast<size_t>(n)), seen = old;
  for (int64_t i = 0; i < n; i++)
    old.data()[i] = static_cast<int>(i);
  for (int e = 0; e < 2 * HONE_PANEL; e++)
    if (m.dst[e] >= 0 && CHECK(m.dst[e] < n && m.src[e] >= 0 && m.src[e] < n))
      old.data()[m.dst[e]] = m.src[e];
  for (int64_t i = 0; i < n; i++)
    seen.data()[old.data()[i]]++;
  for (int64_t i = 0; i < n; i++)
    CHECK_EQ_INT(seen.data()[i], 1);
  return old;
}

/* Checks P A = L U; entries outside the panel must be unchanged. */
void check_factors(const panel_case &c, int64_t ld, const float *a,
                   const float *f, const int *old) {
  double error = 0.0, l_max = 0.0, u_max = 0.0;
  int64_t touched = 0;
  for (int64_t i = 0; i < c.n; i++)
    for (int64_t j = 0; j < ld; j++)
      touched += (i < c.k || j < c.k || j >= c.k + c.w) &&
                 bits_of(f[i * ld + j]) != bits_of(a[i * ld + j]);
  CHECK_EQ_INT(touched, 0);
  for (int64_t i = c.k; i < c.n; i++)
    for (int64_t j = c.k; j < c.k + c.w; j++) {
      double sum = -static_cast<double>(a[old[i] * ld + j]);
      for (int64_t p = c.k; p <= (i < j ? i : j); p++)
        sum += (p == i ? 1.0 : static_cast<double>(f[i * ld + p])) *
               static_cast<double>(f[p * ld + j]);
      const double v = std::fabs(static_cast<double>(f[i * ld + j]));
      double *max = i > j ? &l_max : &u_max;
      *max = v <= *max ? *max : v;
      error = std::fabs(sum) <= error ? error : std::fabs(sum);
    }
  if (c.kind == ZERO_COLUMN)
    return; /* entries below a zero pivot are undefined */
  CHECK_LE(error, 0x1p-23 * (1.0 + std::sqrt(static_cast<double>(c.w))) *
                      (1.0 + l_max) * u_max);
  if (c.pivoting == HONE_TOURNAMENT)
    CHECK_LE(l_max, c.n - c.k <= 64 ? 1.0 + 0x1p-20 : 100.0);
}

void check_panel(const panel_case &c) {
  const int64_t ld = c.k + c.w + 3;
  const std::vector<float> a = panel_matrix(c, ld);
  on_device<float> f(a);
  on_device<hone_moves> moves(1);
  on_device<int> zero_pivot(std::vector<int>(1, 1 << 30));
  on_device<char> work(hone_cuda_panel_bytes(c.n, 0), 0);
  ct_note("n %d, k %d, w %d, pivoting %d, kind %d", (int)c.n, (int)c.k,
          (int)c.w, (int)c.pivoting, (int)c.kind);
  MUST(hone_cuda_panel({{f, ld, c.n}, c.k, c.w, c.pivoting}, moves, zero_pivot,
                       {work, 0, c.few_blocks}, nullptr));
  MUST(cudaDeviceSynchronize());
  const std::vector<int> old = old_rows(c.n, moves.get()[0]);
  check_factors(c, ld, a.data(), f.get().data(), old.data());
  CHECK_EQ_INT(zero_pivot.get()[0],
               c.kind == ZERO_COLUMN ? c.k + c.w / 2 : 1 << 30);
  for (int64_t i = 0; i < c.n; i++)
    if (c.pivoting == HONE_NATURAL ||
        (c.pivoting == HONE_BLOCK_ONLY && i >= c.k + c.w))
      CHECK_EQ_INT(old.data()[i], i);
}

TEST(kernels, factor_panels_of_all_widths) {
  NEED_DEVICE();
  for (int64_t n : {1, 16, 17, 64, 65, 129, 300})
    for (int64_t k : {0, 5, 130})
      for (int64_t w : {1, 7, 16, 33, 128})
        if (k + w <= n) {
          check_panel({n, k, w, HONE_TOURNAMENT, RANDOM});
          check_panel({n, k, w, HONE_TOURNAMENT, ZERO_COLUMN});
          check_panel({n, k, w, HONE_BLOCK_ONLY, HEAVY_DIAGONAL});
          check_panel({n, k, w, HONE_NATURAL, HEAVY_DIAGONAL});
        }
}

/* The candidates of more than 8 blocks take 4 rows a lane, and those of more
   than 32 meet in groups first. More than 32 * 128 rows take 256 rows a block,
   more than 128 * 256 take 384, or more than 64 * 256 where few are wanted. */
TEST(kernels, factor_panels_of_all_heights) {
  NEED_DEVICE();
  check_panel({1030, 3, 128, HONE_TOURNAMENT, RANDOM});
  check_panel({2500, 0, 40, HONE_TOURNAMENT, RANDOM});
  check_panel({2500, 0, 40, HONE_BLOCK_ONLY, HEAVY_DIAGONAL});
  check_panel({8192, 0, 33, HONE_TOURNAMENT, RANDOM});
  check_panel({8300, 0, 48, HONE_TOURNAMENT, RANDOM});
  check_panel({16500, 0, 20, HONE_TOURNAMENT, RANDOM});
  if (getenv("HONE_EMULATE_SHARED") == nullptr)
    CHECK_EQ_INT(hone_cuda_panel_rows(), 49152);
  check_panel({33000, 0, 33, HONE_TOURNAMENT, RANDOM});
  check_panel({16500, 0, 20, HONE_TOURNAMENT, RANDOM, true});
}

TEST(kernels, tell_how_many_thread_blocks_a_panel_has) {
  const struct {
    int64_t rows;
    int most, few;
  } cases[] = {{1, 1, 1},       {128, 1, 1},       {129, 2, 2},
               {2048, 16, 16},  {2049, 9, 9},      {16384, 64, 64},
               {16385, 65, 43}, {24576, 96, 64},   {32768, 128, 86},
               {32769, 86, 86}, {49152, 128, 128}, {49153, 97, 65},
               {65536, 128, 86}};
  for (const auto &c : cases) {
    ct_note("%d rows", (int)c.rows);
    CHECK_EQ_INT(hone_cuda_panel_blocks(c.rows, {nullptr, 0, false}), c.most);
    CHECK_EQ_INT(hone_cuda_panel_blocks(c.rows, {nullptr, 0, true}), c.few);
  }
}

/* ---- Pieces ------------------------------------------------------------ */

const enum hone_split all_pieces[] = {HONE_SPLIT_FP16_3, HONE_SPLIT_BF16_3,
                                      HONE_SPLIT_FP16_1, HONE_SPLIT_BF16_1};

TEST(kernels, scale_pieces_by_powers_of_two_that_cancel) {
  NEED_DEVICE();
  for (float top : {0.0F, 1.0F, 0.75F, 3e-38F, 1e-20F, 1e38F, HUGE_VALF})
    for (enum hone_split p : all_pieces) {
      on_device<unsigned> bits(std::vector<unsigned>(1, bits_of(top)));
      on_device<hone_split_scale> scale(1);
      MUST(hone_cuda_split_scale(p, bits, scale, nullptr));
      const hone_split_scale s = scale.get()[0];
      int e;
      ct_note("top %g, pieces %d", (double)top, (int)p);
      CHECK(std::frexp(s.l, &e) == 0.5F && std::frexp(s.u, &e) == 0.5F);
      CHECK_NEAR((double)s.l * (double)s.u * (double)s.alpha, -1.0, 0.0);
      if (is_half(p) && top > 1e-30F && top < 1e30F) {
        CHECK_LT(s.u * top, 8.0);
        CHECK_GE(s.u * top, 4.0);
      }
    }
}

void check_split(enum hone_split p, int64_t n, int64_t i0, int64_t k, int64_t w,
                 bool overflows) {
  const int64_t ld = n + 2, ldo = hone_split_rows(p) + 16;
  const hone_split_place place = place_of(p);
  const hone_split_scale scale = {is_half(p) ? 1024.0F : 1.0F, 8.0F, -1.0F};
  numbers r = {static_cast<uint64_t>(n)};
  std::vector<float> f = r.array<float>(n * ld);
  if (overflows)
    f.data()[(n - 1) * ld + k] = -70.0F;
  on_device<float> there(f);
  on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
  on_device<uint16_t> out((n - i0) * ldo, 0x11);
  on_device<int> overflow(1, 0);
  MUST(hone_cuda_split_l({there, ld, n}, i0, k, w,
                         {p, scales, out.p, ldo, place, overflow}, nullptr));
  std::vector<uint16_t> expected(out.count, 0x1111);
  for (int64_t i = i0; i < n; i++)
    for (int64_t c = 0; c < HONE_PANEL; c++) {
      uint16_t *at = expected.data() + (i - i0) * ldo + c;
      const bool in = c < w && i > k + c;
      const cut v = cut_of(p, in ? f.data()[i * ld + k + c] * scale.l : 0.0F);
      at[place.hh] = v.hi;
      if (place.lo >= 0) {
        at[place.lo] = v.hi;
        at[place.hi] = v.lo;
      }
    }
  ct_note("pieces %d, n %d, i0 %d, w %d", (int)p, (int)n, (int)i0, (int)w);
  CHECK(same(out.get(), expected));
  CHECK_EQ_INT(overflow.get()[0] != 0, overflows && is_half(p));
}

/* Inner panels behind the first one: as each by itself, where its place is. */
TEST(kernels, split_several_inner_panels_of_l) {
  NEED_DEVICE();
  const int64_t n = 2 * HONE_PANEL + 60, k = 1, w = 2 * HONE_PANEL + 5;
  const int64_t i0 = k + HONE_PANEL, ld = n + 2;
  const hone_split_scale scale = {1024.0F, 8.0F, -1.0F};
  for (enum hone_split p : all_pieces) {
    const int64_t rows = hone_split_rows(p), ldo = 3 * rows + 16;
    const bool three = rows == 3 * HONE_WIDE;
    numbers r = {static_cast<uint64_t>(n)};
    on_device<float> f(r.array<float>(n * ld));
    on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
    on_device<uint16_t> out((n - i0) * ldo + 1, 0x11), each(out.get());
    on_device<int> overflow(1, 0);
    const auto split = [&](int64_t first, int64_t wide, int inner,
                           on_device<uint16_t> *to) {
      const hone_split_place place = {three ? (2 - inner) * 2 * HONE_WIDE : -1,
                                      three ? (5 - 2 * inner) * HONE_WIDE : -1,
                                      (three ? 6 + inner : inner) * HONE_WIDE};
      MUST(hone_cuda_split_l({f, ld, n}, i0, first, wide,
                             {p, scales, to->p, ldo, place, overflow},
                             nullptr));
    };
    split(k, w, 0, &out);
    for (int inner = 0; inner < 3; inner++)
      split(k + inner * HONE_PANEL, inner < 2 ? HONE_PANEL : 5, inner, &each);
    ct_note("pieces %d", (int)p);
    CHECK(same(out.get(), each.get()));
  }
}

TEST(kernels, split_l_into_pieces) {
  NEED_DEVICE();
  for (enum hone_split p : all_pieces) {
    check_split(p, 150, 130, 2, 128, false);
    check_split(p, 150, 2, 2, 128, true);
    check_split(p, 40, 7, 0, 7, false);
  }
}

/* ---- Rows of U --------------------------------------------------------- */

/* The rows of U must solve the triangular system to rounding; the pieces must
   be those of the result. */
void check_rows(enum hone_split p, int64_t k, int64_t w, int64_t c0,
                int64_t c1) {
  const int64_t rows = k + w, ld = c1 + 5, ldo = c1 - c0 + 3;
  const int64_t out_rows = hone_split_rows(p) + 1;
  const hone_split_place place = place_of(p);
  const hone_split_scale scale = {1.0F, 64.0F, -1.0F};
  numbers r = {static_cast<uint64_t>(w + c1)};
  std::vector<float> f = r.array<float>(rows * ld);
  for (int64_t i = 0; i < rows; i++) /* keeps inv(L11) small */
    for (int64_t j = k; j < rows; j++)
      f.data()[i * ld + j] /= 8.0F;
  on_device<float> there(f);
  on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
  on_device<uint16_t> out(out_rows * ldo, 0x11);
  on_device<int> overflow(1, 0);
  MUST(hone_cuda_rows({there, ld, rows}, {k, w, c0, c1},
                      {p, scales, out.p, ldo, place, overflow}, nullptr));
  const std::vector<float> got = there.get();
  double error = 0.0;
  std::vector<float> kept = got;
  for (int64_t c = c0; c < c1; c++) {
    std::vector<double> x(static_cast<size_t>(w));
    for (int64_t i = 0; i < w; i++) {
      double sum = f.data()[(k + i) * ld + c];
      for (int64_t j = 0; j < i; j++)
        sum -=
            static_cast<double>(f.data()[(k + i) * ld + k + j]) * x.data()[j];
      x.data()[i] = sum;
      const float u = got.data()[(k + i) * ld + c];
      error = std::fmax(error, std::fabs(static_cast<double>(u) - sum));
      kept.data()[(k + i) * ld + c] = f.data()[(k + i) * ld + c];
    }
  }
  ct_note("pieces %d, k %d, w %d, c %d .. %d", (int)p, (int)k, (int)w, (int)c0,
          (int)c1);
  CHECK_LE(error, 1e-5);
  CHECK(same(kept, f)); /* nothing else was written */
  CHECK(same(out.get(), parts_of_rows(p, got.data() + k * ld + c0, ld, w,
                                      c1 - c0, scale.u, ldo)));
  CHECK_EQ_INT(overflow.get()[0], 0);
}

TEST(kernels, solve_for_block_rows_of_u) {
  NEED_DEVICE();
  for (enum hone_split p :
       {HONE_SPLIT_NONE, HONE_SPLIT_FP16_3, HONE_SPLIT_BF16_3,
        HONE_SPLIT_FP16_1, HONE_SPLIT_BF16_1}) {
    check_rows(p, 0, 128, 128, 200);
    check_rows(p, 3, 128, 131, 163);
    check_rows(p, 5, 33, 40, 41);
    check_rows(p, 0, 1, 1, 65);
  }
}

/* ---- Sizes --------------------------------------------------------------- */

TEST(kernels, compare_sizes_so_that_nan_is_the_largest) {
  const double nan = static_cast<double>(NAN);
  CHECK(larger(1.0, 2.0) >= 2.0 && larger(2.0, 1.0) >= 2.0);
  CHECK(std::isnan(larger(nan, 1.0)) && std::isnan(larger(1.0, nan)));
}

} // namespace
