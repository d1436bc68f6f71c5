/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection that the device takes of a complex A in its memory: it is that
   of the host, for columns and rows, and comes of the original, so that damage
   of the engine's copy is refused. test_projection_there.cu tests this, and
   what else the verdict refuses, for real entries. */
extern "C" {
#include "base/dense.h"
#include "base/engine.h"
#include "base/projection.h"
#include "refine/ladder.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
}
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/state.h"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

typedef std::complex<double> cplx;
typedef std::complex<long double> wide;

hone_entry *entries(cplx *v) { return reinterpret_cast<hone_entry *>(v); }

cplx number(const hone_entry &v) { return {v.re, v.im}; }

/* A in the memory of a device and on the host, and perhaps an engine. aligned:
   A begins at a multiple of 16 bytes there, and the engine makes no copy. */
struct lying {
  const hone_engine *const engine = &hone_engine_single_cuda;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_host_copy copy = {};
  void *self = nullptr;
  int64_t n, lda;
  std::vector<cplx> a;
  double *memory;
  hone_dense dense = {}, at_home = {};
  hone_matrix matrix = {}, home = {};

  lying(int64_t order, bool trans, bool aligned, bool with_engine = true)
      : n(order), lda(order + 3), a(static_cast<size_t>(lda * n)) {
    sup_rng rng = {static_cast<uint64_t>(order)};
    hone_device_memory place;
    double *const parts = reinterpret_cast<double *>(a.data());
    sup_random(&rng, 2 * lda, n, parts, 2 * lda);
    for (int64_t j = 0; j < n; j++)
      a.data()[j + j * lda] += 0.5 * static_cast<double>(n);
    const int64_t odd = aligned ? 0 : 1;
    memory = device_alloc(2 * lda * n + odd);
    double *const there = memory + odd;
    device_put(there, a.data(), a.size() * sizeof(cplx));
    CHECK(hone_device_memory_of(there, &place));
    CHECK_EQ_INT(hone_host_copy_open(&copy, &mem, n, &place, there, lda,
                                     sizeof(hone_entry)),
                 HONE_OK);
    dense = {n, n, static_cast<hone_entry *>(copy.copy), &copy, trans, 0};
    at_home = {n, lda, entries(a.data()), nullptr, trans, 0};
    matrix = hone_dense_matrix(&dense);
    home = hone_dense_matrix(&at_home);
    hone_engine_config config = {};
    config.n = n;
    config.mem = &mem;
    config.watch = &watch;
    if (with_engine)
      CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
  }
  hone_cuda *state() const { return static_cast<hone_cuda *>(self); }
  /* Brings A to the engine as a factorization does. */
  void feed() const {
    hone_cuda *c = state();
    c->columns[0].j = 0;
    c->columns[0].w = n;
    CHECK_EQ_INT(hone_cuda_feed_begin(c, &dense), HONE_OK);
    hone_cuda_feed_start(c, &dense, 1);
    CHECK_EQ_INT(hone_cuda_feed_columns(c, &dense, n, nullptr), HONE_OK);
    CHECK_EQ_INT(hone_cuda_feed_end(c), HONE_OK);
    CHECK_EQ_INT(cudaStreamSynchronize(c->feed), cudaSuccess);
  }
  ~lying() {
    if (self)
      engine->destroy(self, &mem);
    hone_host_copy_destroy(&copy);
    device_free(memory);
    CHECK_EQ_INT(mem.held, 0);
  }
  lying(const lying &) = delete;
  lying &operator=(const lying &) = delete;
};

/* Checks every entry of the projection against one that the host computes. */
void check_projection(const lying &f, bool trans) {
  const hone_projection *p = f.engine->projection(f.self, &f.matrix, trans);
  REQUIRE(p != nullptr);
  CHECK(p->by_device);
  for (int64_t j = 0; j < f.n; j++) {
    hone_entry hi = {0.0, 0.0}, lo = {0.0, 0.0};
    double size = 0.0;
    hone_dense_operator.project_entry(&f.home, trans, j, p->v, &hi, &lo, &size);
    ct_note("n %d, entry %d, trans %d", (int)f.n, (int)j, (int)trans);
    CHECK_LE(std::abs((number(hi) - number(p->w[j])) +
                      (number(lo) - number(p->w_rest[j]))),
             0x1p-91 * size);
    CHECK_NEAR(p->u[j], size, 0x1p-44 * size);
    CHECK(std::fabs(p->v[j].re) >= 0.5 && std::fabs(p->v[j].re) <= 1.0);
    CHECK(!(p->v[j].im != 0.0));
  }
  CHECK_EQ_INT(f.copy.fetched, 0);
}

TEST(complex_there, projection_is_that_of_the_host) {
  NEED_DEVICE();
  device_begin();
  for (const bool aligned : {true, false})
    for (const int64_t n : {1, 5, 31, 130, 517})
      for (const bool trans : {false, true}) {
        const lying f(n, trans, aligned);
        f.feed();
        CHECK_EQ_INT(f.state()->in_place, aligned);
        check_projection(f, trans);
        check_projection(f, !trans); /* it is taken when it is asked for */
        check_projection(f, trans);
      }
  device_end();
}

/* Entries whose squares overflow or vanish are in u. */
TEST(complex_there, magnitudes_neither_overflow_nor_vanish) {
  NEED_DEVICE();
  device_begin();
  for (const double size : {0x1p-600, 0x1p600}) {
    lying f(70, false, true);
    for (cplx &e : f.a)
      e *= size;
    device_put(f.memory, f.a.data(), f.a.size() * sizeof(cplx));
    f.feed();
    check_projection(f, false);
  }
  device_end();
}

/* Returns max_i |b - A x|_i / (|A| |x| + |b|)_i. */
double backward_error(const lying &f, const std::vector<cplx> &x,
                      const std::vector<cplx> &b) {
  long double most = 0.0L;
  for (int64_t i = 0; i < f.n; i++) {
    wide r = wide(b.data()[i]);
    long double size = std::abs(r);
    for (int64_t j = 0; j < f.n; j++) {
      const wide a = wide(f.a.data()[i + j * f.lda]), xj = wide(x.data()[j]);
      r -= a * xj;
      size += std::abs(a) * std::abs(xj);
    }
    const long double part = std::abs(r) / size;
    most = part <= most ? most : part;
  }
  return static_cast<double>(most);
}

/* Writes part 'part' of entry j of row 5 of the engine's copy. */
void damage(const hone_cuda *c, int64_t j, int part, double value) {
  double *const to = reinterpret_cast<double *>(c->a + 5 + j * c->lda) + part;
  CHECK_EQ_INT(cudaMemcpy(to, &value, sizeof value, cudaMemcpyHostToDevice),
               cudaSuccess);
  CHECK_EQ_INT(cudaDeviceSynchronize(), cudaSuccess); /* until it is there */
}

/* Between factor and solve the engine's copy is damaged, in one part of an
   entry or in a row: no projection vouches for x, the host fetches A, and x is
   right. */
TEST(complex_there, a_whole_solve_does_not_trust_a_damaged_copy) {
  NEED_DEVICE();
  device_begin();
  for (int kind = 0; kind < 4; kind++) {
    const int64_t n = 300;
    const lying f(n, false, false, false);
    hone_step step[2] = {};
    hone_request request = {};
    hone_watch watch = {};
    hone_mem mem = {};
    static hone_ladder ladder; /* large */
    hone_report report = {};
    hone_column column = {};
    std::vector<cplx> x(static_cast<size_t>(n)), b(x.size(), cplx(1.0, -1.0));
    step[0].engine = f.engine;
    step[1].engine = &hone_engine_double;
    report.nrhs = 1;
    request.limit = SUP_LIMIT;
    request.criterion = HONE_CRITERION_COMPONENTWISE;
    CHECK_EQ_INT(hone_ladder_create(&ladder, &hone_dense_operator, n, step, 2,
                                    &request, &mem, nullptr, &watch),
                 HONE_OK);
    CHECK_EQ_INT(hone_ladder_factor(&ladder, &f.matrix, &report), HONE_OK);
    const hone_cuda *c = static_cast<hone_cuda *>(ladder.rung[0].self);
    const cplx wrong = f.a.data()[5 + 5 * f.lda] * (1.0 + 0x1p-20);
    if (kind == 1)
      damage(c, 5, 0, wrong.real());
    if (kind == 2)
      damage(c, 5, 1, wrong.imag());
    for (int64_t j = 0; j < n && kind == 3; j++)
      damage(c, j, 1, wrong.real());
    CHECK_EQ_INT(hone_ladder_solve(&ladder, false, 1, entries(b.data()), n,
                                   entries(x.data()), n, nullptr, 0, &column,
                                   &report),
                 HONE_OK);
    ct_note("kind %d: %s; %s", kind, report.path, report.reason);
    CHECK_LE(backward_error(f, x, b), SUP_LIMIT);
    CHECK_EQ_INT(report.host_passes > 0, kind != 0);
    CHECK_EQ_INT(f.copy.state,
                 kind ? HONE_HOST_COPY_COMPLETE : HONE_HOST_COPY_PENDING);
    CHECK_EQ_INT(strstr(report.path, "projected by the device") != nullptr,
                 kind == 0);
    hone_ladder_destroy(&ladder);
    CHECK_EQ_INT(mem.held, 0);
  }
  device_end();
}

} // namespace
