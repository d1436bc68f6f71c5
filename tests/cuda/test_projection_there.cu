/* SPDX-License-Identifier: BSD-3-Clause */
/* The projection that the device takes of an A in its memory
   (gpu_sp/feed/project_there.cu): it is that of the host, for columns and rows,
   to the stated digits, and comes of the original: damage of the engine's copy,
   of residuals and of denominators is refused, and then the host reads A. */
extern "C" {
#include "base/projection.h"
#include "refine/ladder.h"
#include "refine/verdict.h"
#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"
#include "tests/unit/support.h"
}
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/state.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

/* A in the memory of a device, the same A on the host, and an engine. */
struct lying {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_host_copy copy = {};
  const hone_engine *engine;
  void *self = nullptr;
  int64_t n, lda;
  std::vector<double> a;
  double *there;
  hone_dense dense = {}, at_home = {};
  hone_matrix matrix = {}, home = {};

  lying(int64_t order, bool trans, bool spd = false, bool with_engine = true)
      : engine(spd ? &hone_engine_cholesky_cuda : &hone_engine_single_cuda),
        n(order), lda(order + 3), a(static_cast<size_t>(lda * n)) {
    sup_rng rng = {static_cast<uint64_t>(order)};
    hone_engine_config config = {};
    hone_device_memory place;
    sup_random(&rng, lda, n, a.data(), lda);
    for (int64_t j = 0; j < n; j++) {
      a.data()[j + j * lda] += 0.5 * static_cast<double>(n);
      for (int64_t i = 0; spd && i < j; i++)
        a.data()[j + i * lda] = a.data()[i + j * lda];
    }
    there = on_device(a.data(), lda * n);
    CHECK(hone_device_memory_of(there, &place));
    CHECK_EQ_INT(
        hone_host_copy_open(&copy, &mem, n, &place, there, lda, sizeof *there),
        HONE_OK);
    dense = {n, n, static_cast<double *>(copy.copy), &copy, trans, 0};
    at_home = {n, lda, a.data(), nullptr, trans, 0};
    matrix = hone_dense_matrix(&dense);
    home = hone_dense_matrix(&at_home);
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
  const hone_projection *projection(bool trans) const {
    return engine->projection(self, &matrix, trans);
  }
  ~lying() {
    if (self)
      engine->destroy(self, &mem);
    hone_host_copy_destroy(&copy);
    device_free(there);
    CHECK_EQ_INT(mem.held, 0);
  }
  lying(const lying &) = delete;
  lying &operator=(const lying &) = delete;
};

/* Checks every entry of the projection against one that the host computes. */
void check_projection(const lying &f, bool trans) {
  const hone_projection *p = f.projection(trans);
  REQUIRE(p != nullptr);
  CHECK(p->by_device);
  for (int64_t j = 0; j < f.n; j++) {
    double hi = 0.0, lo = 0.0, size = 0.0;
    hone_dense_operator.project_entry(&f.home, trans, j, p->v, &hi, &lo, &size);
    ct_note("n %d, entry %d, trans %d", (int)f.n, (int)j, (int)trans);
    CHECK_LE(std::fabs((hi - p->w[j]) + (lo - p->w_rest[j])), 0x1p-91 * size);
    CHECK_NEAR(p->u[j], size, 0x1p-44 * size);
    CHECK(std::fabs(p->v[j]) >= 0.5 && std::fabs(p->v[j]) <= 1.0);
  }
  CHECK_EQ_INT(f.copy.fetched, 0);
}

} // namespace

TEST(projection_there, is_that_of_the_host) {
  NEED_DEVICE();
  device_begin();
  for (const int64_t n : {1, 5, 31, 130, 517, 1050})
    for (const bool trans : {false, true}) {
      const lying f(n, trans);
      f.feed();
      check_projection(f, trans);
      check_projection(f, !trans); /* it is taken when it is asked for */
      check_projection(f, trans);
    }
  for (const bool trans : {false, true}) {
    const lying f(260, trans, true);
    f.feed();
    check_projection(f, trans);
  }
  device_end();
}

/* Columns so long that they are taken in several parts. */
TEST(projection_there, of_long_columns_is_that_of_their_parts) {
  NEED_DEVICE();
  device_begin();
  const lying f(sup_emulated() ? 4100 : 9001, false);
  f.feed();
  check_projection(f, false);
  if (!sup_emulated())
    check_projection(f, true);
  device_end();
}

TEST(projection_there, weights_are_drawn_anew_unless_the_caller_chose_so) {
  NEED_DEVICE();
  device_begin();
  for (const bool same : {false, true}) {
    const lying f(130, false);
    f.state()->deterministic = same;
    f.feed();
    const std::vector<double> v(f.projection(false)->v,
                                f.projection(false)->v + f.n);
    f.feed();
    int equal = 0;
    for (int64_t i = 0; i < f.n; i++)
      equal += !(v.data()[i] < f.projection(false)->v[i]) &&
               !(v.data()[i] > f.projection(false)->v[i]);
    CHECK_EQ_INT(equal, same ? f.n : 0);
  }
  device_end();
}

namespace {

/* A system that x solves but for rounding, and its residual by the device. */
struct judged {
  lying f;
  bool trans;
  std::vector<double> x, b, r, den;
  hone_refined column = {};
  hone_scaling scaling = {};
  hone_refinement ctx = {};

  judged(int64_t n, bool transposed)
      : f(n, transposed), trans(transposed), x(static_cast<size_t>(n), 1.0),
        b(x), r(x), den(x) {
    hone_factor_info info = {};
    CHECK_EQ_INT(f.engine->factor(f.self, &f.matrix, nullptr, &info), HONE_OK);
    ctx.f.a = &f.matrix;
    ctx.f.scaling = &scaling;
    ctx.norm_a = 1.0;
    ctx.trans = trans;
    for (size_t i = 0; i < x.size(); i++)
      x.data()[i] = 1.0 + static_cast<double>(i % 7);
    measure();
    for (size_t i = 0; i < b.size(); i++)
      b.data()[i] += -r.data()[i];
    column.x = x.data();
    column.b = b.data();
    column.r = r.data();
    column.den = den.data();
    measure();
  }
  void measure() {
    CHECK_EQ_INT(f.engine->residual(f.self, &f.matrix, trans, x.data(),
                                    b.data(), r.data(), den.data()),
                 HONE_OK);
  }
  /* How many of ten projections vouch for r and den as they are. */
  int vouched() {
    int count = 0;
    for (int draw = 0; draw < 10; draw++) {
      f.feed();
      const hone_projection *p = f.projection(trans);
      count += p != nullptr && hone_verdict(&ctx, p, &column);
    }
    return count;
  }
  /* Sets row i of column j in the engine's copy of A to 'value'. */
  void damage(int64_t i, int64_t j, double value) const {
    hone_cuda *c = f.state();
    CHECK_EQ_INT(cudaMemcpy(c->a + i + j * c->lda, &value, sizeof value,
                            cudaMemcpyHostToDevice),
                 cudaSuccess);
    CHECK_EQ_INT(cudaDeviceSynchronize(), cudaSuccess); /* until it is there */
  }
};

} // namespace

TEST(projection_there, vouches_for_true_residuals) {
  NEED_DEVICE();
  device_begin();
  for (const int64_t n : {2, 33, 300})
    for (const bool trans : {false, true}) {
      judged s(n, trans);
      CHECK_EQ_INT(s.vouched(), 10);
      CHECK_EQ_INT(s.f.copy.fetched, 0);
    }
  device_end();
}

TEST(projection_there, refuses_an_entry_of_r_and_denominators) {
  NEED_DEVICE();
  device_begin();
  for (const bool trans : {false, true}) {
    judged s(300, trans);
    double *const r = s.r.data() + 17, *const den = s.den.data() + 17;
    const double kept = *r, size = *den;
    *r += HONE_VERDICT_ERROR * size;
    CHECK_EQ_INT(s.vouched(), 0);
    *r = HONE_NAN;
    CHECK_EQ_INT(s.vouched(), 0);
    *r = kept;
    *den = 1.125 * size;
    CHECK_EQ_INT(s.vouched(), 0);
    *den = size;
    CHECK_EQ_INT(s.vouched(), 10);
  }
  device_end();
}

/* The residual is that of the engine's copy, the projection that of A. */
TEST(projection_there, refuses_damage_of_the_copy) {
  NEED_DEVICE();
  device_begin();
  for (const bool trans : {false, true}) {
    judged s(300, trans);
    const double entry = s.f.a.data()[7 + 11 * s.f.lda];
    s.damage(7, 11, entry * (1.0 + 0x1p-30));
    s.measure();
    CHECK(s.f.projection(!trans) != nullptr);
    const hone_projection *p = s.f.projection(trans); /* taken again */
    CHECK(p != nullptr && !hone_verdict(&s.ctx, p, &s.column));
    CHECK_EQ_INT(s.vouched(), 0);
    s.measure(); /* A has come anew */
    CHECK_EQ_INT(s.vouched(), 10);
    for (int64_t j = 0; j < s.f.n; j++) /* a row is another one */
      s.damage(9, j, s.f.a.data()[10 + j * s.f.lda]);
    s.measure();
    CHECK_EQ_INT(s.vouched(), 0);
  }
  device_end();
}

/* A row that the sums do not resolve the host computes from that row alone. */
TEST(projection_there, has_the_host_fetch_rows_that_it_cannot_resolve) {
  NEED_DEVICE();
  device_begin();
  for (const bool trans : {false, true}) {
    judged s(300, trans);
    const int64_t n = s.f.n, lda = s.f.lda;
    for (int64_t j = 0; j < n; j++)
      s.f.a.data()[trans ? j + 6 * lda : 6 + j * lda] *= 0x1p-120;
    device_put(s.f.there, s.f.a.data(), s.f.a.size() * sizeof(double));
    s.b.data()[6] *= 0x1p-120;
    s.f.feed();
    s.measure();
    const double r = s.r.data()[6], den = s.den.data()[6];
    s.r.data()[6] = 0.5 * den;
    s.den.data()[6] = 4.0 * den;
    const hone_projection *p = s.f.projection(trans);
    REQUIRE(p != nullptr);
    CHECK(hone_verdict(&s.ctx, p, &s.column));
    CHECK_NEAR(s.r.data()[6], r, 0x1p-50 * den);
    CHECK_NEAR(s.den.data()[6], den, 0x1p-40 * den);
    CHECK_EQ_INT(s.f.copy.fetched, n * 8);
    CHECK_EQ_INT(s.f.copy.state, HONE_HOST_COPY_PENDING);
  }
  device_end();
}

/* Between factor and solve the engine's copy is damaged: no projection vouches
   for x, the host fetches A, and x is right. */
TEST(projection_there, a_whole_solve_does_not_trust_a_damaged_copy) {
  NEED_DEVICE();
  device_begin();
  for (int kind = 0; kind < 3; kind++) {
    const int64_t n = 300;
    const lying f(n, false, false, false);
    hone_step step[2] = {};
    hone_request request = {};
    hone_watch watch = {};
    hone_mem mem = {};
    static hone_ladder ladder; /* large */
    hone_report report = {};
    hone_column column = {};
    std::vector<double> x(static_cast<size_t>(n)), b(x);
    for (double &v : b)
      v = 1.0;
    step[0].engine = &hone_engine_single_cuda;
    step[1].engine = &hone_engine_double;
    report.nrhs = 1;
    request.limit = SUP_LIMIT;
    request.criterion = HONE_CRITERION_COMPONENTWISE;
    CHECK_EQ_INT(hone_ladder_create(&ladder, &hone_dense_operator, n, step, 2,
                                    &request, &mem, nullptr, &watch),
                 HONE_OK);
    CHECK_EQ_INT(hone_ladder_factor(&ladder, &f.matrix, &report), HONE_OK);
    hone_cuda *c = static_cast<hone_cuda *>(ladder.rung[0].self);
    const double wrong = f.a.data()[5 + 5 * f.lda] * (1.0 + 0x1p-20);
    for (int64_t j = 0; j < (kind == 0 ? 0 : n); j++)
      if (kind == 2 || j == 5)
        CHECK_EQ_INT(cudaMemcpy(c->a + 5 + j * c->lda, &wrong, sizeof wrong,
                                cudaMemcpyHostToDevice),
                     cudaSuccess);
    CHECK_EQ_INT(cudaDeviceSynchronize(), cudaSuccess); /* until it is there */
    CHECK_EQ_INT(hone_ladder_solve(&ladder, false, 1, b.data(), n, x.data(), n,
                                   nullptr, 0, &column, &report),
                 HONE_OK);
    ct_note("kind %d: %s; %s", kind, report.path, report.reason);
    CHECK_LE(
        sup_backward_error(n, f.a.data(), f.lda, false, x.data(), b.data()),
        SUP_LIMIT);
    CHECK_EQ_INT(report.host_passes > 0, kind != 0);
    CHECK_EQ_INT(f.copy.state,
                 kind ? HONE_HOST_COPY_COMPLETE : HONE_HOST_COPY_PENDING);
    CHECK_EQ_INT(f.copy.fetched >= n * n * 8, kind != 0);
    CHECK_EQ_INT(strstr(report.path, "projected by the device") != nullptr,
                 kind == 0);
    hone_ladder_destroy(&ladder);
    CHECK_EQ_INT(mem.held, 0);
  }
  device_end();
}
