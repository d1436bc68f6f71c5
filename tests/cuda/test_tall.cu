/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of more rows than one launch takes (tall_panel.cu), beside the same
   panels in one launch. Here a launch is made to take few rows, as few as two
   parts of a round can have. */
#include "tests/cuda/test_kernels.h"

namespace {

enum kind {
  RANDOM,
  OUTDONE,    /* good pivots on the diagonal, but larger entries below; in the
                 first column inside the block */
  EMPTY_PART, /* the first half of the rows is zero */
  BEST_LAST,  /* the last w rows are much larger */
  ZERO_COLUMN,
  RANK_ONE,
  LAST_ONLY, /* all rows but the last are zero */
  WITH_NAN,
  WITH_INF
};

struct tall_case {
  int64_t n, k, w;
  enum hone_pivoting pivoting;
  enum kind kind;
};

bool singular(const tall_case &c) {
  return c.kind == ZERO_COLUMN ||
         ((c.kind == RANK_ONE || c.kind == LAST_ONLY) && c.w > 1);
}

bool finite(const tall_case &c) {
  return c.kind != WITH_NAN && c.kind != WITH_INF;
}

float entry(const tall_case &c, float random, int64_t i, int64_t j) {
  if (c.kind == OUTDONE && i >= c.k + c.w)
    return random * 1000.0F;
  if (c.kind == OUTDONE && (i == j || (i == j + 1 && j == c.k)))
    return random + (i == j ? 100.0F : 300.0F);
  if (c.kind == LAST_ONLY && i < c.n - 1)
    return 0.0F;
  if (c.kind == EMPTY_PART && i < (c.n + c.k) / 2)
    return 0.0F;
  if (c.kind == BEST_LAST && i >= c.n - c.w)
    return random * 1000.0F;
  if (c.kind == ZERO_COLUMN && j == c.k + c.w / 2)
    return 0.0F;
  if (c.kind == RANK_ONE)
    return std::ldexp(1.0F, (int)(i % 5 - j % 3));
  if (i == c.n - 2 && j == c.k + c.w / 2 && !finite(c))
    return c.kind == WITH_NAN ? NAN : HUGE_VALF;
  return random;
}

std::vector<float> matrix_of(const tall_case &c, int64_t ld) {
  numbers r = {static_cast<uint64_t>(c.n + 7 * c.w)};
  std::vector<float> a = r.array<float>(c.n * ld);
  for (int64_t i = c.k; i < c.n; i++)
    for (int64_t j = c.k; j < c.k + c.w; j++)
      a.data()[i * ld + j] = entry(c, a.data()[i * ld + j], i, j);
  return a;
}

struct outcome {
  std::vector<float> f;
  std::vector<int> old; /* old[i]: the row that moved to row i */
  int zero_pivot;
};

/* Factors in launches of at most 'part' rows. */
outcome factor(const tall_case &c, const std::vector<float> &a, int64_t ld,
               int64_t part) {
  on_device<float> f(a);
  on_device<hone_moves> moves(1);
  on_device<int> zero_pivot(std::vector<int>(1, 1 << 30));
  on_device<char> work(hone_cuda_panel_bytes(c.n, part), 0);
  MUST(hone_cuda_panel({{f, ld, c.n}, c.k, c.w, c.pivoting}, moves, zero_pivot,
                       {work, part, false}, nullptr));
  MUST(cudaDeviceSynchronize());
  outcome out = {f.get(), std::vector<int>(static_cast<size_t>(c.n)),
                 zero_pivot.get()[0]};
  const hone_moves m = moves.get()[0];
  std::vector<int> seen = out.old;
  for (int64_t i = 0; i < c.n; i++)
    out.old.data()[i] = static_cast<int>(i);
  for (int e = 0; e < 2 * HONE_PANEL; e++) {
    CHECK_EQ_INT(e < c.w && m.dst[e] != c.k + e, 0);
    if (m.dst[e] >= 0 && CHECK(m.dst[e] < c.n && m.src[e] >= c.k) &&
        CHECK(m.src[e] < c.n && m.dst[e] >= c.k))
      out.old.data()[m.dst[e]] = m.src[e];
  }
  for (int row : out.old)
    seen.data()[row]++;
  for (int times : seen)
    CHECK_EQ_INT(times, 1);
  return out;
}

struct quality {
  double error, l_max, u_max; /* of P A - L U */
};

quality judge(const tall_case &c, const float *a, int64_t ld,
              const outcome &o) {
  const float *f = o.f.data();
  quality q = {};
  for (int64_t i = c.k; i < c.n; i++)
    for (int64_t j = c.k; j < c.k + c.w; j++) {
      double sum = -static_cast<double>(a[o.old.data()[i] * ld + j]);
      for (int64_t p = c.k; p <= (i < j ? i : j); p++)
        sum += (p == i ? 1.0 : static_cast<double>(f[i * ld + p])) *
               static_cast<double>(f[p * ld + j]);
      const double v = std::fabs(static_cast<double>(f[i * ld + j]));
      double *max = i > j ? &q.l_max : &q.u_max;
      *max = v <= *max ? *max : v;
      q.error = std::fabs(sum) <= q.error ? q.error : std::fabs(sum);
    }
  return q;
}

/* Checks that no row moved, or only rows of the block. */
void check_order(const tall_case &c, const outcome &o) {
  for (int64_t i = 0; i < c.n; i++)
    if (i < c.k || c.pivoting == HONE_NATURAL ||
        (c.pivoting == HONE_BLOCK_ONLY && i >= c.k + c.w))
      CHECK_EQ_INT(o.old.data()[i], i);
  if (c.pivoting == HONE_BLOCK_ONLY && c.w > 1)
    CHECK_EQ_INT(o.old.data()[c.k], c.k + 1);
}

void check_rest(const tall_case &c, const std::vector<float> &a, int64_t ld,
                const outcome &o) {
  int64_t touched = 0, odd = 0;
  for (int64_t i = 0; i < c.n; i++)
    for (int64_t j = 0; j < ld; j++) {
      const float v = o.f.data()[i * ld + j];
      const bool inside = i >= c.k && j >= c.k && j < c.k + c.w;
      touched += !inside && bits_of(v) != bits_of(a.data()[i * ld + j]);
      odd += inside && !(std::fabs(v) <= FLT_MAX);
    }
  CHECK_EQ_INT(touched, 0);
  CHECK_EQ_INT(odd > 0, !finite(c));
}

void check_tall(const tall_case &c, int64_t part) {
  const int64_t ld = c.k + c.w + 3;
  const std::vector<float> a = matrix_of(c, ld);
  ct_note("n %d, k %d, w %d, pivoting %d, kind %d, parts of %d", (int)c.n,
          (int)c.k, (int)c.w, (int)c.pivoting, (int)c.kind, (int)part);
  const outcome o = factor(c, a, ld, part), one = factor(c, a, ld, 0);
  check_order(c, o);
  check_rest(c, a, ld, o);
  CHECK_EQ_INT(o.zero_pivot, one.zero_pivot);
  CHECK_EQ_INT(o.zero_pivot < c.k + c.w, singular(c));
  if (singular(c) || !finite(c))
    return;
  const quality q = judge(c, a.data(), ld, o), r = judge(c, a.data(), ld, one);
  CHECK_LE(q.error, 0x1p-23 * (1.0 + std::sqrt(static_cast<double>(c.w))) *
                        (1.0 + q.l_max) * q.u_max);
  CHECK_LE(q.error, 4.0 * r.error + 0x1p-24);
  CHECK_LE(q.l_max, 4.0 * r.l_max + 1.0);
  CHECK_LE(q.u_max, 4.0 * r.u_max);
}

void check_all(int64_t n, int64_t k, int64_t w, int64_t part) {
  for (int kind = RANDOM; kind <= WITH_INF; kind++)
    if (kind != OUTDONE)
      check_tall({n, k, w, HONE_TOURNAMENT, static_cast<enum kind>(kind)},
                 part);
  check_tall({n, k, w, HONE_BLOCK_ONLY, OUTDONE}, part);
  check_tall({n, k, w, HONE_NATURAL, OUTDONE}, part);
}

/* One row more than a launch takes, and other heights; some are still too high
   for one launch after a first round of six parts. */
TEST(tall, panels_are_as_accurate_as_in_one_launch) {
  NEED_DEVICE();
  check_all(257, 0, 128, 256);
  check_all(300, 3, 33, 256);
  check_all(520, 130, 1, 256);
  check_all(385, 0, 128, 384);
  check_all(769, 0, 16, 384);
  check_all(1500, 7, 128, 256);
}

/* The highest panel that fits one launch takes one, and has its bits. */
TEST(tall, panels_begin_with_one_row_too_many) {
  NEED_DEVICE();
  const tall_case c = {300, 0, 40, HONE_TOURNAMENT, RANDOM};
  const std::vector<float> a = matrix_of(c, 43);
  const outcome one = factor(c, a, 43, 0);
  CHECK(same(factor(c, a, 43, 300).f, one.f));
  CHECK_EQ_INT(same(factor(c, a, 43, 299).f, one.f), 0);
  CHECK_EQ_INT(hone_cuda_panel_parts(hone_cuda_panel_rows(), 0), 1);
  CHECK_EQ_INT(hone_cuda_panel_parts(hone_cuda_panel_rows() + 1, 0), 2);
  CHECK_EQ_INT(hone_cuda_panel_parts(769, 384), 3);
}

/* The true limit: the first of two parts ends with row 24576. */
TEST(tall, panels_are_cut_where_a_launch_is_full) {
  NEED_DEVICE();
  for (enum kind kind : {RANDOM, EMPTY_PART, ZERO_COLUMN}) {
    const tall_case c = {hone_cuda_panel_rows() + 1, 0, 16, HONE_TOURNAMENT,
                         kind};
    const std::vector<float> a = matrix_of(c, 16);
    const outcome o = factor(c, a, 16, 0);
    const quality q = judge(c, a.data(), 16, o);
    ct_note("kind %d", kind);
    CHECK_EQ_INT(o.zero_pivot == 8, singular(c));
    CHECK_LE(singular(c) ? 0.0 : q.error, 0x1p-20);
    CHECK_LE(singular(c) ? 0.0 : q.l_max, 4.0);
  }
}

/* The workspace is zero at orders that do not need it, and small beside the
   matrix. */
TEST(tall, panels_take_little_memory) {
  const int64_t rows = hone_cuda_panel_rows();
  CHECK_EQ_INT(hone_cuda_tall_bytes(rows, 0), 0);
  for (int64_t n : {rows + 1, int64_t(65536), int64_t(105000)}) {
    CHECK_GE(hone_cuda_tall_bytes(n, 0), rows * HONE_PANEL * 4);
    CHECK_LE(hone_cuda_panel_bytes(n, 0), n * n / 25); /* a hundredth of F */
  }
}

} // namespace
