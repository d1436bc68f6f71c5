/* SPDX-License-Identifier: BSD-3-Clause */
/* The launches that compute rows of U of several inner panels, and those below
   others, for real and for complex entries. */
#include "tests/cuda/test_kernels.h"

#include <complex>

namespace {

#ifdef HONE_COMPLEX
#define SUITE rows_of_u_complex
#else
#define SUITE rows_of_u
#endif
#define ROWS_TEST_OF(suite, name) TEST(suite, name)
#define ROWS_TEST(name) ROWS_TEST_OF(SUITE, name)

typedef std::complex<double> wide;

const enum hone_split every_split[] = {HONE_SPLIT_NONE, HONE_SPLIT_FP16_3,
                                       HONE_SPLIT_BF16_3, HONE_SPLIT_FP16_1,
                                       HONE_SPLIT_BF16_1};

/* Rows k .. k+w-1 of three inner panels, the last one a narrow one, and their
   columns; ld in entries. */
enum {
  K = 3,
  PANELS = 3,
  LAST = 41,
  W = (PANELS - 1) * HONE_PANEL + LAST,
  N = K + W,
  COLUMNS = 70,
  C0 = N + 2,
  C1 = C0 + COLUMNS,
  LD = C1 + 6,
  LDO = HONE_PARTS * COLUMNS + 4
};

wide entry_of(const std::vector<float> &f, int64_t i, int64_t j) {
  const float *at = f.data() + HONE_PARTS * (i * LD + j);
  return {at[0], HONE_PARTS > 1 ? at[HONE_PARTS - 1] : 0.0F};
}

/* F, and everything that the launches for it need. */
struct rows_problem {
  std::vector<float> f;
  on_device<float> there;
  on_device<hone_split_scale> scales;
  on_device<uint16_t> out;
  on_device<int> overflow;
  enum hone_split split;

  explicit rows_problem(enum hone_split p)
      : f(random()), there(f), scales(std::vector<hone_split_scale>(
                                   1, hone_split_scale{1.0F, 64.0F, -1.0F})),
        out((PANELS * hone_split_rows(p) + 1) * LDO, 0x11), overflow(1, 0),
        split(p) {}
  static std::vector<float> random() {
    numbers r = {17};
    std::vector<float> v = r.array<float>(int64_t{HONE_PARTS} * N * LD);
    for (int64_t i = 0; i < N; i++) /* keeps inv(L11) small */
      for (int64_t j = 0; j < HONE_PARTS * N; j++)
        v.data()[HONE_PARTS * i * LD + j] /= 8.0F;
    return v;
  }
  hone_operand operand(int inner) {
    const bool three = hone_split_rows(split) == 3 * HONE_WIDE;
    const hone_split_place place = {
        three ? (PANELS - 1 - inner) * 2 * HONE_WIDE : -1,
        three ? (2 * PANELS - 1 - 2 * inner) * HONE_WIDE : -1,
        (three ? 2 * PANELS + inner : inner) * HONE_WIDE};
    return {split, scales, out.p, LDO, place, overflow};
  }
  hone_float_matrix matrix() { return {there, int64_t{HONE_PARTS} * LD, N}; }

  /* The rows of each inner panel by a launch of its own, in which they stay
     where they are. */
  void each(bool spread) {
    for (int inner = 0; inner < PANELS; inner++) {
      const int64_t left = inner * HONE_PANEL, k = K + left;
      const int64_t w =
          inner + 1 < PANELS ? (int64_t)HONE_PANEL : (int64_t)LAST;
      hone_moves stay;
      for (int i = 0; i < 2 * HONE_PANEL; i++) {
        stay.dst[i] = i < w ? static_cast<int>(k) + i : -1;
        stay.src[i] = i < w ? static_cast<int>(k) + i : 0;
      }
      on_device<hone_moves> moves(std::vector<hone_moves>(1, stay));
      MUST(hone_cuda_rows(matrix(), {k, w, C0, C1, moves, left, spread},
                          operand(inner), nullptr));
    }
  }

  /* Compares with substitution in double, and with F where nothing was to be
     written. */
  void check() {
    const std::vector<float> got = there.get();
    std::vector<float> kept = got;
    double error = 0.0;
    for (int64_t c = C0; c < C1; c++) {
      std::vector<wide> x(W);
      for (int64_t i = 0; i < W; i++) {
        wide sum = entry_of(f, K + i, c);
        for (int64_t j = 0; j < i; j++)
          sum -= entry_of(f, K + i, K + j) * x.data()[j];
        x.data()[i] = sum;
        error = std::fmax(error, std::abs(entry_of(got, K + i, c) - sum));
        for (int p = 0; p < HONE_PARTS; p++) {
          const int64_t at = HONE_PARTS * ((K + i) * LD + c) + p;
          kept.data()[at] = f.data()[at];
        }
      }
    }
    ct_note("pieces %d", (int)split);
    CHECK(error > 0.0 && error <= 1e-5);
    CHECK(same(kept, f));
    CHECK_EQ_INT(overflow.get()[0], 0);
  }
};

/* One launch for the rows of several inner panels does as one for each, from
   which the products with those above are subtracted. */
ROWS_TEST(several_inner_panels_by_one_launch) {
  NEED_DEVICE();
  for (enum hone_split p : every_split) {
    rows_problem together(p), each(p);
    MUST(hone_cuda_rows(together.matrix(), {K, W, C0, C1}, together.operand(0),
                        nullptr));
    each.each(false);
    together.check();
    CHECK(same(together.there.get(), each.there.get()));
    CHECK(same(together.out.get(), each.out.get()));
  }
}

/* Divided among more thread blocks they are as near, and their parts are those
   of these rows. */
ROWS_TEST(below_others_by_more_thread_blocks) {
  NEED_DEVICE();
  for (enum hone_split p : every_split) {
    rows_problem spread(p), parts(p);
    spread.each(true);
    spread.check();
    MUST(cudaMemcpy(parts.there, spread.there.p,
                    spread.there.count * sizeof(float),
                    cudaMemcpyDeviceToDevice));
    if (p != HONE_SPLIT_NONE)
      MUST(hone_cuda_split_u_right(parts.matrix(), {K, W, C0, C1},
                                   parts.operand(0), nullptr));
    CHECK(same(spread.out.get(), parts.out.get()));
  }
}

} // namespace
