/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels that move rows, alone and with what else follows a panel, beside
   plain loops. */
#include "tests/cuda/test_pieces.h"

namespace {

/* The moves of a random panel at k, with perm as it is after them. */
hone_moves random_moves(numbers *r, int64_t n, int64_t k, int64_t w) {
  std::vector<int> order = r->permutation(n - k), at(order.size());
  hone_moves m;
  /* row[i]: the row in place i after the exchanges. */
  std::vector<int> row(order.size());
  for (int64_t i = 0; i < n - k; i++)
    row.data()[i] = static_cast<int>(i);
  for (int64_t i = 0; i < w; i++) {
    const int64_t other = i + r->below(n - k - i);
    std::swap(row.data()[i], row.data()[other]);
  }
  int entries = 0;
  for (int64_t i = 0; i < n - k; i++)
    if (i < w || row.data()[i] != i) {
      m.dst[entries] = static_cast<int>(k + i);
      m.src[entries++] = static_cast<int>(k) + row.data()[i];
    }
  for (; entries < 2 * HONE_PANEL; entries++)
    m.dst[entries] = m.src[entries] = -1;
  return m;
}

/* Rows of U below others, in columns whose rows have not moved yet: as after a
   move, and a product that is subtracted in double. */
void check_rows_ahead(enum hone_split p, int64_t left, int64_t w,
                      int64_t columns, bool spread) {
  const int64_t k = 3 + left, n = k + w + 90, c0 = k + w + 2, c1 = c0 + columns;
  const int64_t ld = c1 + 5, ldo = columns + 3;
  const hone_split_scale scale = {1.0F, 64.0F, -1.0F};
  numbers r = {static_cast<uint64_t>(w + c1 + left)};
  std::vector<float> f = r.array<float>(n * ld);
  for (int64_t i = 0; i < n; i++) /* keeps inv(L11) small */
    for (int64_t j = 0; j < k + w; j++)
      f.data()[i * ld + j] /= 8.0F;
  const hone_moves m = random_moves(&r, n, k, w);
  on_device<float> there(f), moved(f);
  on_device<hone_moves> moves(std::vector<hone_moves>(1, m));
  on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
  on_device<uint16_t> out((hone_split_rows(p) + 1) * ldo, 0x11);
  on_device<int> overflow(1, 0);
  MUST(hone_cuda_rows({there, ld, n}, {k, w, c0, c1, moves, left, spread},
                      {p, scales, out.p, ldo, place_of(p), overflow}, nullptr));
  MUST(hone_cuda_move(moved, ld, 0, c0, c1,
                      {moves.p->dst, moves.p->src, 2 * HONE_PANEL}, nullptr));
  const std::vector<float> got = there.get(), before = moved.get();
  std::vector<float> kept = got;
  double error = 0.0;
  for (int64_t c = c0; c < c1; c++) {
    std::vector<double> x(static_cast<size_t>(left + w));
    for (int64_t i = 0; i < left + w; i++) {
      const int64_t row = k - left + i;
      double sum = before.data()[row * ld + c];
      for (int64_t j = i < left ? i : 0; j < i; j++)
        sum -= static_cast<double>(f.data()[row * ld + k - left + j]) *
               x.data()[j];
      x.data()[i] = sum;
      const double u = got.data()[row * ld + c];
      error = std::fmax(error, std::fabs(u - sum));
      if (i >= left)
        kept.data()[row * ld + c] = before.data()[row * ld + c];
    }
  }
  ct_note("pieces %d, left %d, w %d, %d columns, spread %d", (int)p, (int)left,
          (int)w, (int)columns, spread);
  CHECK_LE(error, 1e-5);
  CHECK(same(kept, before)); /* nothing else was written */
  CHECK(same(out.get(), parts_of_rows(p, got.data() + k * ld + c0, ld, w,
                                      columns, scale.u, ldo)));
  CHECK_EQ_INT(overflow.get()[0], 0);
}

TEST(kernels, solve_for_block_rows_of_u_ahead) {
  NEED_DEVICE();
  for (enum hone_split p :
       {HONE_SPLIT_NONE, HONE_SPLIT_FP16_3, HONE_SPLIT_BF16_1}) {
    check_rows_ahead(p, 0, 128, 70, false);
    for (bool spread : {false, true}) {
      check_rows_ahead(p, 128, 128, 33, spread);
      check_rows_ahead(p, 384, 128, 32, spread);
      check_rows_ahead(p, 256, 50, 1, spread);
    }
  }
}

/* One launch behind a panel does as the launches for each do. */
TEST(kernels, follow_a_panel_in_its_outer_panel) {
  NEED_DEVICE();
  const int64_t w = HONE_PANEL, from = 2, n = 900, ld = 650;
  const hone_split_scale scale = {16.0F, 64.0F, -1.0F};
  on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
  for (enum hone_split p :
       {HONE_SPLIT_NONE, HONE_SPLIT_FP16_3, HONE_SPLIT_BF16_3,
        HONE_SPLIT_FP16_1, HONE_SPLIT_BF16_1})
    for (int64_t k : {from, from + w}) {
      const int64_t c0 = k + w, c1 = c0 + 300, ldo = 303;
      const int64_t rows = hone_split_rows(p), below = n - c0;
      numbers r = {static_cast<uint64_t>(k)};
      const std::vector<float> f = r.array<float>(n * ld);
      on_device<hone_moves> moves(
          std::vector<hone_moves>(1, random_moves(&r, n, k, w)));
      on_device<float> there(f), expected(f);
      on_device<uint16_t> u((rows + 1) * ldo, 0x11),
          l(below * (rows + 1), 0x11);
      on_device<uint16_t> u_alone(u.get()), l_alone(l.get());
      on_device<int> overflow(1, 0);
      const hone_operand to_u = {p, scales, u.p, ldo, place_of(p), overflow};
      const hone_operand to_l = {p,        scales,      l.p,
                                 rows + 1, place_of(p), overflow};
      hone_operand u_of = to_u, l_of = to_l;
      u_of.out = u_alone.p;
      l_of.out = l_alone.p;
      MUST(hone_cuda_follow_panel({there, ld, n}, {k, w, c0, c1, moves, 0},
                                  from, to_u, to_l, nullptr));
      MUST(hone_cuda_move(expected.p + from, ld, k - from, c0 - from, c1 - from,
                          {moves.p->dst, moves.p->src, 2 * HONE_PANEL},
                          nullptr));
      MUST(hone_cuda_rows({expected, ld, n}, {k, w, c0, c1}, u_of, nullptr));
      MUST(hone_cuda_split_l({expected, ld, n}, c0, k, w, l_of, nullptr));
      ct_note("pieces %d, k %d", (int)p, (int)k);
      CHECK(same(there.get(), expected.get()));
      CHECK(same(u.get(), u_alone.get()));
      CHECK(same(l.get(), l_alone.get()));
      CHECK_EQ_INT(same(there.get(), f), 0);
    }
}

TEST(kernels, move_rows_of_several_panels_together) {
  NEED_DEVICE();
  const int64_t n = 2100, ld = 170;
  numbers r = {3};
  for (int entries : {1, 256, 257, 600, 2048})
    for (int64_t left : {0, 1, 70}) {
      const int64_t c0 = left + 9, c1 = left == 1 ? c0 : 165;
      std::vector<float> f = r.array<float>(n * ld), expected = f;
      std::vector<int> dst = r.permutation(n), src = dst;
      dst.resize(static_cast<size_t>(entries));
      src.resize(dst.size());
      for (int e = 0; e < entries; e++) /* rows within the panel */
        src.data()[e] = dst.data()[(e * 7 + 1) % entries];
      if (entries % 7 == 0)
        src = dst;
      for (int e = 0; e < entries; e += 5)
        if (e % 2)
          dst.data()[e] = -1;
      for (int e = 0; e < entries; e++)
        for (int64_t c = 0; c < ld && dst.data()[e] >= 0; c++)
          if (c < left || (c >= c0 && c < c1))
            expected.data()[dst.data()[e] * ld + c] =
                f.data()[src.data()[e] * ld + c];
      on_device<float> there(f);
      on_device<int> to(dst), from(src);
      ct_note("%d entries, left %d", entries, (int)left);
      MUST(hone_cuda_move(there, ld, left, c0, c1, {to, from, entries},
                          nullptr));
      CHECK(same(there.get(), expected));
    }
}

TEST(kernels, compose_the_moves_of_panels) {
  NEED_DEVICE();
  const int64_t n = 700;
  for (int panels = 1; panels <= 4; panels++) {
    numbers r = {static_cast<uint64_t>(panels)};
    std::vector<hone_moves> list;
    std::vector<int> perm = r.permutation(n), place(perm.size()), map = place;
    std::vector<int> row = place;
    for (int64_t i = 0; i < n; i++) {
      row.data()[i] = map.data()[i] = static_cast<int>(i);
      place.data()[perm.data()[i]] = static_cast<int>(i);
    }
    on_device<int> perm_there(perm), place_there(place), map_there(map);
    for (int p = 0; p < panels; p++) {
      list.push_back(random_moves(&r, n, 5 + p * HONE_PANEL,
                                  p == panels - 1 ? 77 : (int)HONE_PANEL));
      const std::vector<int> before = row;
      for (int e = 0; e < 2 * HONE_PANEL; e++)
        if (list.back().dst[e] >= 0)
          row.data()[list.back().dst[e]] = before.data()[list.back().src[e]];
    }
    const int entries = panels * 2 * HONE_PANEL;
    on_device<hone_moves> moves(list);
    on_device<int> dst(entries), src(2 * entries);
    MUST(hone_cuda_compose(moves, panels, dst, src, perm_there, place_there,
                           map_there, nullptr));
    const std::vector<int> to = dst.get(), from = src.get();
    std::vector<int> got = map, old = perm;
    for (int e = 0; e < entries; e++)
      if (to.data()[e] >= 0)
        got.data()[to.data()[e]] = from.data()[e];
    ct_note("%d panels", panels);
    CHECK(same(got, row));
    for (int64_t i = 0; i < n; i++) {
      perm.data()[i] = old.data()[row.data()[i]];
      place.data()[perm.data()[i]] = static_cast<int>(i);
    }
    CHECK(same(perm_there.get(), perm));
    CHECK(same(place_there.get(), place));
    CHECK(same(map_there.get(), map));
  }
}

} // namespace
