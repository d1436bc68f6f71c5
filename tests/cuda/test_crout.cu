/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method for whole matrices, in single and in double
   precision. With tolerance 0 its factors have the bits of the direct method on
   the CPU, after no more sweeps than the sections have dependences. */
#include "bench/papers/crout_cpu.h"
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "base/base.h"
#include "gpu_sp/forms/crout.h"
}

#include <string>

namespace {

int direct(int64_t n, float *a, int64_t lda, int64_t *column) {
  return hone_crout_cpu_s(n, a, lda, column);
}
int direct(int64_t n, double *a, int64_t lda, int64_t *column) {
  return hone_crout_cpu_d(n, a, lda, column);
}
int iterative(hone_crout *c, int64_t n, float *a, int64_t lda,
              hone_crout_report *r) {
  return hone_crout_s(c, n, a, lda, r);
}
int iterative(hone_crout *c, int64_t n, double *a, int64_t lda,
              hone_crout_report *r) {
  return hone_crout_d(c, n, a, lda, r);
}

enum { PADDING = 3 };

/* Entries in [-1/2, 1/2); diagonal is added to those of the diagonal. */
template <class T> std::vector<T> matrix(int64_t n, double diagonal) {
  numbers r = {static_cast<uint64_t>(n)};
  std::vector<T> a = r.array<T>((n + PADDING) * n);
  for (int64_t j = 0; j < n; j++)
    a.data()[j + j * (n + PADDING)] += static_cast<T>(diagonal);
  return a;
}

template <class T> struct outcome {
  int status = HONE_INTERNAL;
  std::vector<T> z;
  hone_crout_report r = {};
};

template <class T>
outcome<T> run(int64_t n, const std::vector<T> &a,
               const hone_crout_options &options) {
  outcome<T> out;
  hone_crout *c = nullptr;
  const on_device<T> d(a);
  out.status = hone_crout_create(&c, n, &options);
  if (out.status == HONE_OK)
    out.status = iterative(c, n, d, n + PADDING, &out.r);
  hone_crout_destroy(c);
  CHECK_EQ_INT(out.r.status, out.status);
  out.z = d.get();
  return out;
}

/* Equal bit for bit. */
template <class T>
void check_direct(int64_t n, const std::vector<T> &a, const outcome<T> &out) {
  std::vector<T> z = a;
  CHECK_EQ_INT(direct(n, z.data(), n + PADDING, nullptr), HONE_OK);
  CHECK_EQ_INT(out.status, HONE_OK);
  CHECK_EQ_INT(out.r.column, -1);
  CHECK_MEM_EQ(out.z.data(), z.data(), z.size() * sizeof(T));
}

void check_counts(int64_t n, const hone_crout_report &r) {
  const int64_t parts = (n + r.section - 1) / r.section;
  const int64_t s = HONE_MIN(r.section, n);
  CHECK_EQ_INT(r.n, n);
  CHECK_EQ_INT(r.diagonals, parts);
  CHECK_EQ_INT(r.pairs, parts * (parts - 1) / 2);
  CHECK_LE(r.diagonals, r.diagonal_sweeps);
  CHECK_LE(r.diagonal_most, 2 * s);
  CHECK_LE(r.pairs, r.pair_sweeps);
  CHECK_LE(r.pair_most, s + 1);
  CHECK_EQ_INT(r.at_bound, 0);
  CHECK_EQ_INT(r.direct, 0);
  CHECK(r.milliseconds >= 0.0);
}

/* With the kernel's own products, and not cuBLAS's, the bits are those of the
   direct method. */
template <class T> void every_block_in() {
  for (int64_t n : {1, 2, 3, 10, 19, 38, 75})
    for (int block : {8, 16, 32})
      for (int guess : {HONE_CROUT_SCALED, HONE_CROUT_RAW})
        for (int prefix : {HONE_CROUT_ONCE, HONE_CROUT_REDONE}) {
          if (n > 38 &&
              (guess == HONE_CROUT_RAW) != (prefix == HONE_CROUT_ONCE))
            continue;
          hone_crout_options o = {};
          o.block = block;
          o.section = 32;
          o.guess = guess;
          o.prefix = prefix;
          o.sweeps_per_read = guess == HONE_CROUT_RAW ? 1 : 0;
          const std::vector<T> a = matrix<T>(n, 4.0);
          const outcome<T> out = run(n, a, o);
          ct_note("n %d, block %d, guess %d, prefix %d, %d bytes", (int)n,
                  block, guess, prefix, (int)sizeof(T));
          check_direct(n, a, out);
          check_counts(n, out.r);
        }
}

TEST(crout, every_block_is_the_direct_method_in_single) {
  NEED_DEVICE();
  every_block_in<float>();
}

TEST(crout, every_block_is_the_direct_method_in_double) {
  NEED_DEVICE();
  every_block_in<double>();
}

/* Without a strong diagonal sections need nearly all their sweeps. A change
   that is NaN or Inf must not end them. */
template <class T> void unpivoted_in(double from, double to) {
  hone_crout_options o = {};
  o.section = 32;
  o.prefix = HONE_CROUT_ONCE;
  const int64_t n = 70;
  const std::vector<T> a = matrix<T>(n, 0.0);
  const outcome<T> out = run(n, a, o);
  check_direct(n, a, out);
  check_counts(n, out.r);
  CHECK_LE(16, out.r.diagonal_most);
  double defect = 0.0; /* of A - L U */
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      const int64_t ld = n + PADDING;
      double sum = -static_cast<double>(a.data()[i + j * ld]);
      for (int64_t k = 0; k <= HONE_MIN(i, j); k++)
        sum += static_cast<double>(out.z.data()[i + k * ld]) *
               (k == j ? 1.0 : static_cast<double>(out.z.data()[k + j * ld]));
      defect = std::fmax(defect, std::fabs(sum));
    }
  CHECK_LE(from, defect);
  CHECK_LE(defect, to);
}

TEST(crout, random_matrices_converge_in_single) {
  NEED_DEVICE();
  unpivoted_in<float>(1e-8, 1e-3);
}

TEST(crout, random_matrices_converge_in_double) {
  NEED_DEVICE();
  unpivoted_in<double>(1e-17, 1e-10);
}

/* The published guess is A itself: products of large entries overflow at first,
   and NaN follows. In the published method such a section counted as converged;
   here it must converge to the factors. */
template <class T> void overflowing_in(double large) {
  hone_crout_options o = {};
  o.section = 64;
  o.guess = HONE_CROUT_RAW;
  o.prefix = HONE_CROUT_REDONE;
  o.sweeps_per_read = 1;
  const int64_t n = 96;
  std::vector<T> a = matrix<T>(n, static_cast<double>(n));
  for (T &v : a)
    v *= static_cast<T>(large);
  const outcome<T> out = run(n, a, o);
  check_direct(n, a, out);
  check_counts(n, out.r);
}

TEST(crout, nan_on_the_way_is_no_convergence_in_single) {
  NEED_DEVICE();
  overflowing_in<float>(1e18);
}

TEST(crout, nan_on_the_way_is_no_convergence_in_double) {
  NEED_DEVICE();
  overflowing_in<double>(1e153);
}

/* A = {{4, 24}, {2, 15}} from the publication's own tests, by columns. */
TEST(crout, published_matrix_of_order_2_is_factored) {
  NEED_DEVICE();
  const int64_t ld = 2 + PADDING;
  std::vector<double> a(static_cast<size_t>(2 * ld), 7.0);
  a.data()[0] = 4.0;
  a.data()[1] = 2.0;
  a.data()[ld] = 24.0;
  a.data()[1 + ld] = 15.0;
  const outcome<double> out = run<double>(2, a, hone_crout_options{});
  CHECK_EQ_INT(out.status, HONE_OK);
  CHECK_EQ_INT(out.z.data()[0] == 4.0 && out.z.data()[1] == 2.0, 1);
  CHECK_EQ_INT(out.z.data()[ld] == 6.0 && out.z.data()[1 + ld] == 3.0, 1);
}

template <class T> void bad_entries_in() {
  const int64_t n = 40, ld = n + PADDING;
  hone_crout_options o = {};
  o.section = 16;
  o.block = 8;
  o.prefix = HONE_CROUT_ONCE;
  std::vector<T> a = matrix<T>(n, 4.0);
  a.data()[20 + 20 * ld] = static_cast<T>(NAN);
  outcome<T> out = run(n, a, o);
  CHECK_EQ_INT(out.status, HONE_OVERFLOW);
  CHECK_EQ_INT(out.r.column, 20);
  a = matrix<T>(n, 4.0);
  for (int64_t i = 0; i < n; i++) /* column 5 equals column 4 */
    a.data()[i + 5 * ld] = a.data()[i + 4 * ld];
  /* Small integers, so that division is exact. */
  for (int64_t i = 0; i < n; i++)
    a.data()[i + 4 * ld] = a.data()[i + 5 * ld] = i == 4 ? T(4) : T(0);
  out = run(n, a, o);
  CHECK_EQ_INT(out.status, HONE_SINGULAR);
  CHECK_EQ_INT(out.r.column, 5);
}

TEST(crout, nan_and_zero_pivots_are_reported_in_single) {
  NEED_DEVICE();
  bad_entries_in<float>();
}

TEST(crout, nan_and_zero_pivots_are_reported_in_double) {
  NEED_DEVICE();
  bad_entries_in<double>();
}

TEST(crout, sections_that_do_not_converge_are_solved_directly) {
  NEED_DEVICE();
  const int64_t n = 75;
  hone_crout_options o = {};
  o.section = 32;
  o.prefix = HONE_CROUT_ONCE;
  o.max_pair = 1;
  const std::vector<double> a = matrix<double>(n, 4.0);
  const outcome<double> out = run(n, a, o);
  check_direct(n, a, out);
  CHECK_LE(1, out.r.direct);
  CHECK_EQ_INT(out.r.at_bound, out.r.direct);
  CHECK_EQ_INT(out.r.pair_most, 1);
}

TEST(crout, diagonal_sections_that_do_not_converge_are_reported) {
  NEED_DEVICE();
  hone_crout_options o = {};
  o.section = 32;
  o.max_diagonal = 1;
  const std::vector<float> a = matrix<float>(20, 4.0);
  const outcome<float> out = run<float>(20, a, o);
  CHECK_EQ_INT(out.status, HONE_NOT_CONVERGED);
  CHECK_EQ_INT(out.r.at_bound, 1);
  CHECK_EQ_INT(out.r.diagonal_sweeps, 1);
}

TEST(crout, a_tolerance_saves_sweeps) {
  NEED_DEVICE();
  const int64_t n = 64;
  hone_crout_options o = {};
  o.section = 32;
  o.prefix = HONE_CROUT_ONCE;
  o.sweeps_per_read = 1;
  const std::vector<double> a = matrix<double>(n, 16.0);
  const outcome<double> whole = run(n, a, o);
  o.tolerance = 1e-6;
  const outcome<double> rough = run(n, a, o);
  CHECK_EQ_INT(rough.status, HONE_OK);
  CHECK_LT(rough.r.diagonal_sweeps, whole.r.diagonal_sweeps);
  double most = 0.0;
  for (size_t k = 0; k < whole.z.size(); k++)
    most = std::fmax(most, std::fabs(whole.z[k] - rough.z[k]));
  CHECK_LE(most, 1e-5);
}

/* The product is cuBLAS's where there is cuBLAS, and within rounding of the
   direct method. */
TEST(crout, the_default_product_is_within_rounding) {
  NEED_DEVICE();
  const int64_t n = 150;
  hone_crout_options o = {};
  o.section = 64;
  const std::vector<double> a = matrix<double>(n, 16.0);
  const outcome<double> out = run(n, a, o);
  std::vector<double> z = a;
  CHECK_EQ_INT(direct(n, z.data(), n + PADDING, nullptr), HONE_OK);
  CHECK_EQ_INT(out.status, HONE_OK);
  double most = 0.0;
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = 0; i < n; i++)
      most = std::fmax(
          most, std::fabs(z[static_cast<size_t>(i + k * (n + PADDING))] -
                          out.z[static_cast<size_t>(i + k * (n + PADDING))]));
  CHECK_LE(most, 1e-13);
}

TEST(crout, arguments_are_checked) {
  NEED_DEVICE();
  hone_crout *c = nullptr;
  hone_crout_options o = {};
  hone_crout_report r;
  float a = 1.0F;
  CHECK_EQ_INT(hone_crout_create(nullptr, 4, nullptr), HONE_NULL_POINTER);
  CHECK_EQ_INT(hone_crout_create(&c, -1, nullptr), HONE_BAD_SIZE);
  o.block = 12;
  CHECK_EQ_INT(hone_crout_create(&c, 4, &o), HONE_BAD_OPTION);
  o.block = 0;
  o.tolerance = static_cast<double>(NAN);
  CHECK_EQ_INT(hone_crout_create(&c, 4, &o), HONE_BAD_OPTION);
  CHECK(c == nullptr);
  REQUIRE(hone_crout_create(&c, 4, nullptr) == HONE_OK);
  CHECK_EQ_INT(hone_crout_s(c, 5, &a, 5, &r), HONE_BAD_SIZE);
  CHECK_EQ_INT(hone_crout_s(c, 4, &a, 3, &r), HONE_BAD_LEADING_DIMENSION);
  CHECK_EQ_INT(hone_crout_s(c, 4, nullptr, 4, &r), HONE_NULL_POINTER);
  CHECK_EQ_INT(hone_crout_d(nullptr, 0, nullptr, 1, &r), HONE_NULL_POINTER);
  CHECK_EQ_INT(hone_crout_d(c, 0, nullptr, 1, nullptr), HONE_OK);
  hone_crout_destroy(c);
  hone_crout_destroy(nullptr);
  CHECK_EQ_INT(hone_crout_section(5943, nullptr), 608);
  o = {};
  o.block = 8;
  CHECK_EQ_INT(hone_crout_section(5943, &o), 600);
  CHECK_EQ_INT(hone_crout_section(100000, &o), 1024);
}

} // namespace
