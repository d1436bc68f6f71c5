/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices of more than 2^32 entries: in their last rows and columns the
   kernels must compute the same bits as in a small matrix. Where the device is
   emulated, most pages of the large matrix are never touched; on a GPU the
   tests are skipped if there is no room. */
#include "tests/cuda/test_kernels.h"

#ifdef HONE_EMULATE
#include <sys/mman.h>
#endif

namespace {

enum { ORDER = 66000, SIZE = 300, AT = ORDER - SIZE };

/* A matrix of ORDER x ORDER, stored by rows. */
template <class T> struct large {
  const size_t bytes = size_t(ORDER) * ORDER * sizeof(T);
  T *p = nullptr;

#ifdef HONE_EMULATE
  large() {
    void *q = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (q == MAP_FAILED)
      return;
    p = static_cast<T *>(q);
    std::lock_guard<std::mutex> hold(hone_emulate::owned.lock);
    hone_emulate::owned.memory[static_cast<char *>(q)] = {bytes,
                                                          cudaMemoryTypeDevice};
  }
  ~large() {
    std::lock_guard<std::mutex> hold(hone_emulate::owned.lock);
    hone_emulate::owned.memory.erase(reinterpret_cast<char *>(p));
    if (p)
      munmap(p, bytes);
  }
#else
  large() {
    if (cudaMalloc(reinterpret_cast<void **>(&p), bytes) != cudaSuccess) {
      (void)cudaGetLastError();
      p = nullptr;
    }
  }
  ~large() { MUST(cudaFree(p)); }
#endif
  large(const large &) = delete;
};

/* Part of a matrix on the device, or a matrix of that size. */
template <class T> struct part {
  T *p;
  int64_t ld;
  size_t lines, length;

  void put(const std::vector<T> &v) {
    MUST(cudaMemcpy2DAsync(p, static_cast<size_t>(ld) * sizeof(T), v.data(),
                           length * sizeof(T), length * sizeof(T), lines,
                           cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize());
  }
  std::vector<T> get() const {
    std::vector<T> v(lines * length);
    MUST(cudaMemcpy2DAsync(v.data(), length * sizeof(T), p,
                           static_cast<size_t>(ld) * sizeof(T),
                           length * sizeof(T), lines, cudaMemcpyDeviceToHost));
    MUST(cudaDeviceSynchronize());
    return v;
  }
};

#define NEED_ROOM(matrix)                                                      \
  do {                                                                         \
    if ((matrix).p == nullptr)                                                 \
      SKIP("no room for a matrix of 2^32 entries");                            \
  } while (0)

template <class T> part<T> corner(const large<T> &m) {
  return {m.p + int64_t(AT) * ORDER + AT, ORDER, SIZE, SIZE};
}

/* Random entries with a strong diagonal. */
std::vector<float> block_of(uint64_t seed) {
  numbers r = {seed};
  std::vector<float> v = r.array<float>(int64_t(SIZE) * SIZE);
  for (int i = 0; i < SIZE; i++)
    v.data()[i * (SIZE + 1)] += 20.0F;
  return v;
}

/* Factors the panel of w columns at row and column 'at' of F, in launches of
   at most 'rows' rows; moves and the zero pivot are counted from there. */
struct panel_outcome {
  std::vector<int> moves;
  int zero_pivot;
};

panel_outcome panel_at(int64_t n, float *f, int64_t ld, int at, int64_t w,
                       int64_t rows) {
  on_device<hone_moves> moves(1);
  on_device<int> zero_pivot(std::vector<int>(1, 1 << 30));
  on_device<char> work(hone_cuda_panel_bytes(n, rows), 0);
  MUST(hone_cuda_panel({{f, ld, n}, at, w, HONE_TOURNAMENT}, moves, zero_pivot,
                       {work, rows, false}, nullptr));
  MUST(cudaDeviceSynchronize());
  panel_outcome out = {{}, zero_pivot.get()[0] - at};
  const hone_moves m = moves.get()[0];
  for (int e = 0; e < 2 * HONE_PANEL; e++) {
    out.moves.push_back(m.dst[e] < 0 ? -1 : m.dst[e] - at);
    out.moves.push_back(m.src[e] < 0 ? -1 : m.src[e] - at);
  }
  return out;
}

TEST(index, does_not_overflow_in_panels) {
  NEED_DEVICE();
  const large<float> m;
  NEED_ROOM(m);
  for (int64_t rows : {0, 256})
    for (int zero = 0; zero < 2; zero++) {
      std::vector<float> a = block_of(5);
      for (int i = 0; i < SIZE && zero; i++)
        a.data()[i * SIZE + 7] = 0.0F;
      on_device<float> own(a);
      part<float> there = corner(m), here = {own, SIZE, SIZE, SIZE};
      there.put(a);
      const panel_outcome far = panel_at(ORDER, m.p, ORDER, AT, 33, rows);
      const panel_outcome near = panel_at(SIZE, own, SIZE, 0, 33, rows);
      ct_note("parts of %d, zero column %d", (int)rows, zero);
      CHECK(same(there.get(), here.get()));
      CHECK(same(far.moves, near.moves));
      CHECK_EQ_INT(far.zero_pivot == 7, zero);
      CHECK_EQ_INT(near.zero_pivot == 7, zero);
    }
}

/* In one launch, and with all rows, which are too many for one launch. */
TEST(index, does_not_overflow_in_panels_of_many_rows) {
  NEED_DEVICE();
  const large<float> m;
  NEED_ROOM(m);
  for (int at : {ORDER - 40000, 0}) {
    const int64_t rows = ORDER - at, w = 16;
    numbers r = {static_cast<uint64_t>(rows)};
    std::vector<float> a = r.array<float>(rows * w);
    for (int64_t e = (rows - w) * w; e < rows * w; e++)
      a.data()[e] *= 1000.0F; /* the pivots are in the last rows */
    on_device<float> own(a);
    part<float> there = {m.p + int64_t(at) * ORDER + at, ORDER,
                         static_cast<size_t>(rows), static_cast<size_t>(w)};
    there.put(a);
    const panel_outcome far = panel_at(ORDER, m.p, ORDER, at, w, 0);
    const panel_outcome near = panel_at(rows, own, w, 0, w, 0);
    ct_note("%d rows", (int)rows);
    CHECK(same(there.get(), own.get()));
    CHECK(same(far.moves, near.moves));
    CHECK_EQ_INT(same(own.get(), a), 0);
  }
}

/* Computes the block row of U, and the pieces of L and U beside a diagonal
   block. */
std::vector<uint16_t> steps_at(float *f, int64_t ld, int64_t at, bool spd) {
  const int64_t n = at + SIZE, w = HONE_PANEL, c0 = at + w, ldo = SIZE;
  const int64_t rows = hone_split_rows(HONE_SPLIT_FP16_3);
  const hone_split_place place = {0, HONE_PANEL, 2 * HONE_PANEL};
  const hone_split_scale scale = {16.0F, 16.0F, -1.0F / 256.0F};
  on_device<hone_split_scale> scales(std::vector<hone_split_scale>(1, scale));
  on_device<uint16_t> u(rows * ldo, 0), l(rows * ldo, 0);
  on_device<int> flags(2, 0);
  const hone_float_matrix whole = {f, ld, n};
  const hone_u_rows of_u = {at, w, c0, n};
  const hone_operand right = {HONE_SPLIT_FP16_3, scales, u.p, ldo, place,
                              flags + 1};
  if (spd) {
    MUST(hone_cuda_potrf(f, ld, at, w, flags, flags + 1, nullptr));
    MUST(hone_cuda_rows_spd(whole, of_u, right, {l.p, ldo}, nullptr));
  } else {
    MUST(hone_cuda_rows(whole, of_u, right, nullptr));
    MUST(hone_cuda_split_l(
        whole, c0, at, w,
        {HONE_SPLIT_FP16_3, scales, l.p, rows, place, flags + 1}, nullptr));
  }
  std::vector<uint16_t> both = u.get(), more = l.get();
  both.insert(both.end(), more.begin(), more.end());
  return both;
}

TEST(index, does_not_overflow_in_block_rows_and_pieces) {
  NEED_DEVICE();
  const large<float> m;
  NEED_ROOM(m);
  for (int spd = 0; spd < 2; spd++) {
    const std::vector<float> a = block_of(6);
    on_device<float> own(a);
    part<float> there = corner(m), here = {own, SIZE, SIZE, SIZE};
    there.put(a);
    const std::vector<uint16_t> far = steps_at(m.p, ORDER, AT, spd);
    CHECK(same(far, steps_at(own, SIZE, 0, spd)));
    CHECK(same(there.get(), here.get()));
    CHECK_EQ_INT(same(here.get(), a), 0);
  }
}

void move_at(float *f, int64_t ld, int at, const std::vector<int> &order) {
  std::vector<int> dst, src;
  for (int i = 0; i < SIZE; i++) {
    dst.push_back(at + i);
    src.push_back(at + order.data()[i]);
  }
  on_device<int> to(dst), from(src);
  MUST(hone_cuda_move(f, ld, 0, at + 9, at + SIZE, {to, from, SIZE}, nullptr));
  MUST(cudaDeviceSynchronize());
}

TEST(index, does_not_overflow_in_row_moves) {
  NEED_DEVICE();
  const large<float> m;
  NEED_ROOM(m);
  numbers r = {4};
  const std::vector<int> order = r.permutation(SIZE);
  const std::vector<float> a = block_of(7);
  on_device<float> own(a);
  part<float> there = corner(m), here = {own, SIZE, SIZE, SIZE};
  there.put(a);
  move_at(m.p, ORDER, AT, order);
  move_at(own, SIZE, 0, order);
  CHECK(same(there.get(), here.get()));
  CHECK_EQ_INT(same(here.get(), a), 0);
}

/* Inspects the first SIZE rows of the columns from j on of A, and rounds them
   into F, from row 'to' on. */
std::vector<double> inspect_and_round(const double *a, int64_t lda, int64_t j,
                                      float *f, int64_t ldf, int to) {
  std::vector<int> place;
  for (int i = 0; i < SIZE; i++)
    place.push_back(to + i);
  on_device<int> places(place);
  on_device<unsigned long long> flushed(1, 0);
  on_device<unsigned> top(1, 0);
  on_device<double> rows(2 * SIZE, 0), cols(2 * (j + SIZE), 0);
  const hone_double_columns columns = {a, lda, SIZE, j, SIZE};
  MUST(hone_cuda_round(columns, {nullptr, nullptr},
                       {f, ldf, places, top, flushed}, nullptr));
  MUST(hone_cuda_inspect(columns, {nullptr, nullptr},
                         {rows, rows + SIZE, cols, cols + j + SIZE}, nullptr));
  std::vector<double> seen = rows.get();
  const std::vector<double> of_columns = cols.get();
  for (int64_t k = 0; k < 2; k++)
    for (int64_t c = 0; c < SIZE; c++)
      seen.push_back(of_columns.data()[k * (j + SIZE) + j + c]);
  seen.push_back(static_cast<double>(top.get()[0]));
  return seen;
}

TEST(index, does_not_overflow_in_inspection_and_rounding) {
  NEED_DEVICE();
  const large<double> a;
  const large<float> f;
  NEED_ROOM(a);
  NEED_ROOM(f);
  numbers r = {8};
  const std::vector<double> entries = r.array<double>(int64_t(SIZE) * SIZE);
  on_device<double> own(entries);
  on_device<float> own_f(int64_t(SIZE) * SIZE);
  part<double> there = {a.p + int64_t(AT) * ORDER, ORDER, SIZE, SIZE};
  there.put(entries);
  const std::vector<double> far =
      inspect_and_round(a.p, ORDER, AT, f.p, ORDER, int(AT));
  CHECK(same(far, inspect_and_round(own, SIZE, 0, own_f, SIZE, 0)));
  CHECK(same(corner(f).get(), own_f.get()));
}

} // namespace
