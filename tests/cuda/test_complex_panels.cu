/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of complex matrices of every height, beside plain loops: thread blocks
   have 128, 256 or 384 of their rows. Those of real ones are in
   test_kernels.cu. */
#include "tests/cuda/test_kernels.h"

#include <complex>

namespace {

typedef std::complex<float> single;
typedef std::complex<double> cplx;

struct panel_of {
  int64_t n, k, w;
  bool few_blocks;
};

/* Returns max |P A - L U| in the panel, where row i was row old[i]. */
double error_of(const panel_of &c, int64_t ld, const std::vector<single> &a,
                const std::vector<single> &f, const std::vector<int> &old,
                double *l_max, double *u_max) {
  double error = 0.0;
  for (int64_t i = c.k; i < c.n; i++)
    for (int64_t j = c.k; j < c.k + c.w; j++) {
      cplx sum = -cplx(a.data()[old.data()[i] * ld + j]);
      for (int64_t p = c.k; p <= (i < j ? i : j); p++)
        sum += (p == i ? cplx(1.0) : cplx(f.data()[i * ld + p])) *
               cplx(f.data()[p * ld + j]);
      const double v = std::abs(cplx(f.data()[i * ld + j]));
      double *max = i > j ? l_max : u_max;
      *max = v <= *max ? *max : v;
      error = std::abs(sum) <= error ? error : std::abs(sum);
    }
  return error;
}

void check_panel(const panel_of &c) {
  const int64_t ld = c.k + c.w + 1;
  numbers r = {static_cast<uint64_t>(c.n + 7 * c.w)};
  std::vector<single> a(static_cast<size_t>(c.n * ld));
  for (single &v : a) {
    const float re = static_cast<float>(r.uniform());
    v = single(re, static_cast<float>(r.uniform()));
  }
  on_device<single> f(a);
  on_device<hone_moves> moves(1);
  on_device<int> zero_pivot(std::vector<int>(1, 1 << 30));
  on_device<char> work(hone_cuda_panel_bytes(c.n, 0), 0);
  ct_note("n %d, k %d, w %d, few thread blocks %d", (int)c.n, (int)c.k,
          (int)c.w, c.few_blocks);
  MUST(hone_cuda_panel({{reinterpret_cast<float *>(f.p), HONE_PARTS * ld, c.n},
                        c.k,
                        c.w,
                        HONE_TOURNAMENT},
                       moves, zero_pivot, {work, 0, c.few_blocks}, nullptr));
  MUST(cudaDeviceSynchronize());
  std::vector<int> old(static_cast<size_t>(c.n)), seen = old;
  for (int64_t i = 0; i < c.n; i++)
    old.data()[i] = static_cast<int>(i);
  const hone_moves m = moves.get()[0];
  for (int e = 0; e < 2 * HONE_PANEL; e++)
    if (m.dst[e] >= 0 && CHECK(m.dst[e] < c.n && m.src[e] >= 0) &&
        CHECK(m.src[e] < c.n))
      old.data()[m.dst[e]] = m.src[e];
  for (int row : old)
    seen.data()[row]++;
  for (int times : seen)
    CHECK_EQ_INT(times, 1);
  double l_max = 0.0, u_max = 0.0;
  const double error = error_of(c, ld, a, f.get(), old, &l_max, &u_max);
  /* The bound is twice that of real ones: so are a product's roundings. */
  CHECK_LE(error, 0x1p-22 * (1.0 + std::sqrt(static_cast<double>(c.w))) *
                      (1.0 + l_max) * u_max);
  CHECK_LE(l_max, 100.0);
  CHECK_EQ_INT(zero_pivot.get()[0], 1 << 30);
}

TEST(complex_panels, are_factored_at_all_heights) {
  NEED_DEVICE();
  for (int64_t w : {1, 8, 13, 64})
    for (int64_t n : {65, 200, 1030})
      check_panel({n, 1, w, false});
  check_panel({2300, 3, 20, false});
  check_panel({8300, 0, 17, false});
  check_panel({16500, 0, 20, false});
  check_panel({16500, 0, 61, true});
  check_panel({33000, 0, 64, false});
}

} // namespace
