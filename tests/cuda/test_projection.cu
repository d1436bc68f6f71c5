/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of A to the device, and its projection that the threads take on the
   way (gpu_sp/feed/): the copy is A to the last bit and the projection that of
   the host, for columns and rows, with one thread and with several, in pageable
   and in pinned memory; a copy that is damaged is found out. */
#include "tests/cuda/test_kernels.h"

extern "C" {
#include "api/hone.h"
#include "base/projection.h"
#include "refine/verdict.h"
#include "tests/unit/support.h"
}
#include "gpu_sp/feed/feed.h"
#include "gpu_sp/feed/project.h"
#include "gpu_sp/state.h"

#include <algorithm>

namespace {

/* An engine for matrices of order n and what it needs. */
struct fed {
  hone_mem mem = {};
  hone_watch watch = {};
  hone_pool *pool = nullptr;
  const hone_engine *engine;
  void *self = nullptr;
  int64_t n, lda;
  std::vector<double> store;
  double *a;
  hone_dense dense = {};
  hone_matrix matrix = {};

  fed(int64_t order, int threads, bool trans, bool spd = false,
      int residuals = HONE_RESIDUALS_AUTO)
      : engine(spd ? &hone_engine_cholesky_cuda : &hone_engine_single_cuda),
        n(order), lda(order + 3) {
    numbers r = {static_cast<uint64_t>(order)};
    hone_engine_config config = {};
    store = r.array<double>(lda * n);
    a = store.data();
    for (int64_t j = 0; j < n; j++) {
      a[j + j * lda] += 0.5 * static_cast<double>(n);
      for (int64_t i = 0; spd && i < j; i++)
        a[j + i * lda] = a[i + j * lda];
    }
    hone_pool_create(&pool, &mem, threads);
    config.n = n;
    config.mem = &mem;
    config.watch = &watch;
    config.pool = pool;
    config.choices.residuals = residuals;
    CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
    describe(trans);
  }
  void describe(bool trans) {
    dense = {n, lda, a, nullptr, trans, 0};
    matrix = hone_dense_matrix(&dense);
  }
  hone_cuda *state() const { return static_cast<hone_cuda *>(self); }
  /* Brings A to the device as a factorization does. */
  int feed() {
    hone_cuda *c = state();
    c->columns[0].j = 0;
    c->columns[0].w = n / 3;
    c->columns[1].j = n / 3;
    c->columns[1].w = n - n / 3;
    int st = hone_cuda_feed_begin(c, &dense);
    hone_cuda_feed_start(c, &dense, 2);
    c->arriving = hone_cuda_sending(c);
    TRY(hone_cuda_feed_columns(c, &dense, n, nullptr));
    TRY(hone_cuda_feed_end(c));
    TRY_CUDA(cudaStreamSynchronize(c->feed));
    return st;
  }
  int factor() {
    hone_factor_info info = {};
    return engine->factor(self, &matrix, nullptr, &info);
  }
  const hone_projection *projection(bool trans) const {
    return engine->projection(self, &matrix, trans);
  }
  ~fed() {
    engine->destroy(self, &mem);
    hone_pool_destroy(&pool, &mem);
    CHECK_EQ_INT(mem.held, 0);
  }
  fed(const fed &) = delete;
  fed &operator=(const fed &) = delete;
};

/* Checks the copy's lower triangle, or all of it, bit for bit. */
void check_copy(const fed &f, bool lower_only) {
  const hone_cuda *c = f.state();
  std::vector<double> copy(static_cast<size_t>(c->lda * f.n));
  int64_t wrong = 0;
  MUST(cudaMemcpy(copy.data(), c->a, copy.size() * sizeof(double),
                  cudaMemcpyDeviceToHost));
  for (int64_t j = 0; j < f.n; j++)
    for (int64_t i = lower_only ? j : 0; i < f.n; i++)
      wrong += std::memcmp(&copy.data()[i + j * c->lda], &f.a[i + j * f.lda],
                           sizeof(double)) != 0;
  CHECK_EQ_INT(wrong, 0);
}

/* Checks every entry of the projection against one computed anew. */
void check_projection(const fed &f, bool trans) {
  const hone_projection *p = f.projection(trans);
  REQUIRE(p != nullptr);
  for (int64_t j = 0; j < f.n; j++) {
    double hi = 0.0, lo = 0.0, size = 0.0;
    hone_dense_operator.project_entry(&f.matrix, trans, j, p->v, &hi, &lo,
                                      &size);
    ct_note("n %d, entry %d, trans %d", (int)f.n, (int)j, (int)trans);
    CHECK_LE(std::fabs((hi - p->w[j]) + (lo - p->w_rest[j])), 0x1p-91 * size);
    CHECK_NEAR(p->u[j], size, 0x1p-40 * size);
  }
}

} // namespace

TEST(projection, is_taken_while_a_is_copied) {
  NEED_DEVICE();
  for (const int64_t n : {5, 130, 517, 2100})
    for (const int threads : {1, 4, 20})
      for (const bool trans : {false, true}) {
        fed f(n, threads, trans);
        ct_note("n %d, %d threads, trans %d", (int)n, threads, (int)trans);
        CHECK_EQ_INT(f.feed(), HONE_OK);
        check_copy(f, false);
        check_projection(f, trans);
        CHECK(f.projection(!trans) == nullptr);
      }
}

/* Threads write past the caches until many buffers wait for the bus, and begin
   so when that was not so for the matrix before. Buffers that somebody fills do
   not wait. */
TEST(projection, is_taken_by_either_way_of_copying) {
  NEED_DEVICE();
  const struct {
    uint64_t free; /* buffers, of which this job's one thread uses some */
    int waiting;   /* beside its own */
    bool filled_before, filled, streams;
  } cases[] = {{~(uint64_t)0, 0, false, false, true},
               {~(uint64_t)0, 0, true, false, false},
               {3, 0, false, false, true},
               {~(uint64_t)0, 2, false, false, true},
               {~(uint64_t)0, HONE_CUDA_BUFFERS / 2 + 1, false, true, false}};
  for (const bool spd : {false, true})
    for (const auto &t : cases) {
      fed f(517, 1, false, spd);
      hone_cuda_buffers *b = &f.state()->buffers;
      b->filled = t.filled_before;
      b->free &= t.free;
      b->waiting = t.waiting;
      CHECK_EQ_INT(f.feed(), HONE_OK);
      check_copy(f, spd);
      check_projection(f, false);
      ct_note("spd %d, buffers %d, waiting %d, filled before %d", (int)spd,
              (int)t.free, t.waiting, (int)t.filled_before);
      CHECK_EQ_INT(b->filled, t.filled);
      CHECK_EQ_INT(b->streams, t.streams);
    }
}

/* Columns so long that several pieces share one. */
TEST(projection, of_long_columns_is_that_of_their_pieces) {
  NEED_DEVICE();
  if (sup_emulated())
    SKIP("this takes long on an emulated device");
  for (const bool trans : {false, true}) {
    fed f(16500, 8, trans);
    CHECK_EQ_INT(f.feed(), HONE_OK);
    check_copy(f, false);
    check_projection(f, trans);
  }
}

/* In the last columns one piece begins with the diagonal, and others have no
   rows. */
TEST(projection, of_long_columns_of_a_triangle_is_that_of_their_pieces) {
  NEED_DEVICE();
  if (sup_emulated())
    SKIP("this takes long on an emulated device");
  fed f(16500, 8, false, true);
  double *const sums = f.state()->projection.memory;
  std::fill(sums, sums + hone_cuda_projection_room(f.n), HONE_NAN);
  CHECK_EQ_INT(f.feed(), HONE_OK);
  check_copy(f, true);
  CHECK_EQ_INT((int64_t)f.state()->asymmetry, 0);
  check_projection(f, false);
}

/* The first columns have no rows above those that are sent. */
TEST(projection, of_a_symmetric_matrix_has_both_triangles) {
  NEED_DEVICE();
  for (const int64_t n : {130, 2100}) {
    fed f(n, 4, false, true);
    double *const sums = f.state()->projection.memory;
    std::fill(sums, sums + hone_cuda_projection_room(n), HONE_NAN);
    CHECK_EQ_INT(f.feed(), HONE_OK);
    check_copy(f, true);
    CHECK_EQ_INT((int64_t)f.state()->asymmetry, 0);
    check_projection(f, false);
    double *const last = f.a + (n - 1) * f.lda; /* in the upper triangle, which
                                                   is not sent */
    *last *= 1.0 + 0x1p-50;
    CHECK_EQ_INT(f.feed(), HONE_OK);
    CHECK(f.state()->asymmetry != 0);
    check_projection(f, false);
    *last = HONE_NAN;
    CHECK_EQ_INT(f.feed(), HONE_OK);
    CHECK_EQ_INT(f.state()->nonfinite, n);
  }
}

/* The weights of two matrices differ, although all else is equal. */
TEST(projection, weights_are_drawn_anew) {
  NEED_DEVICE();
  fed f(130, 2, false);
  CHECK_EQ_INT(f.feed(), HONE_OK);
  const std::vector<double> v(f.projection(false)->v,
                              f.projection(false)->v + f.n);
  CHECK_EQ_INT(f.feed(), HONE_OK);
  int equal = 0;
  for (int64_t i = 0; i < f.n; i++)
    equal += !(v.data()[i] < f.projection(false)->v[i]) &&
             !(v.data()[i] > f.projection(false)->v[i]);
  CHECK_EQ_INT(equal, 0);
}

TEST(projection, of_pinned_memory_is_taken_beside_the_copy) {
  NEED_DEVICE();
  for (const bool trans : {false, true}) {
    fed f(517, 4, trans);
    double *pinned;
    MUST(cudaMallocHost(reinterpret_cast<void **>(&pinned),
                        f.store.size() * sizeof(double)));
    memcpy(pinned, f.a, f.store.size() * sizeof(double));
    f.a = pinned;
    f.describe(trans);
    CHECK_EQ_INT(f.factor(), HONE_OK);
    check_copy(f, false);
    check_projection(f, trans);
    hone_cuda_feed_stop(f.state());
    MUST(cudaFreeHost(pinned));
  }
}

/* The device reads one triangle itself, and the threads compare both, even if
   they take no projection. */
TEST(projection, of_a_symmetric_matrix_in_pinned_memory_has_both_triangles) {
  NEED_DEVICE();
  for (const int residuals : {HONE_RESIDUALS_AUTO, HONE_RESIDUALS_TWICE}) {
    fed f(1100, 4, false, true, residuals);
    double *pinned;
    MUST(cudaMallocHost(reinterpret_cast<void **>(&pinned),
                        f.store.size() * sizeof(double)));
    memcpy(pinned, f.a, f.store.size() * sizeof(double));
    f.a = pinned;
    f.describe(false);
    CHECK_EQ_INT(f.factor(), HONE_OK);
    CHECK(f.state()->original_readable);
    CHECK_LT(f.state()->used.to_device, 8 * f.n * f.n * 3 / 4);
    CHECK_EQ_INT((int64_t)f.state()->asymmetry, 0);
    hone_cuda_feed_stop(f.state());
    check_copy(f, true);
    if (residuals == HONE_RESIDUALS_AUTO)
      check_projection(f, false);
    f.a[(f.n - 1) * f.lda] *= 1.0 + 0x1p-50; /* is not sent */
    CHECK_EQ_INT(f.factor(), HONE_OK);
    CHECK(f.state()->asymmetry != 0);
    hone_cuda_feed_stop(f.state());
    MUST(cudaFreeHost(pinned));
  }
}

TEST(projection, is_not_taken_where_the_caller_chose_so) {
  NEED_DEVICE();
  fed f(130, 2, false, false, HONE_RESIDUALS_TWICE);
  CHECK_EQ_INT(f.factor(), HONE_OK);
  CHECK(f.projection(false) == nullptr);
}

/* The device's residual is that of a copy with one wrong entry. */
TEST(projection, finds_out_a_damaged_copy) {
  NEED_DEVICE();
  for (const bool trans : {false, true}) {
    fed f(300, 3, trans);
    std::vector<double> x(static_cast<size_t>(f.n), 1.0), b = x, r = x, den = x;
    CHECK_EQ_INT(f.factor(), HONE_OK);
    hone_refined column = {};
    hone_refinement ctx = {};
    ctx.f.a = &f.matrix;
    ctx.trans = trans;
    column.x = x.data();
    column.b = b.data();
    column.r = r.data();
    column.den = den.data();
    const auto measure = [&] {
      return f.engine->residual(f.self, &f.matrix, trans, x.data(), b.data(),
                                r.data(), den.data());
    };
    CHECK_EQ_INT(measure(), HONE_OK);
    for (size_t i = 0; i < b.size(); i++)
      b.data()[i] += -r.data()[i]; /* so that x solves the system, nearly */
    CHECK_EQ_INT(measure(), HONE_OK);
    const hone_projection *p = f.projection(trans);
    REQUIRE(p != nullptr);
    CHECK(hone_verdict(&ctx, p, &column));
    const double wrong = f.a[7 + 11 * f.lda] * (1.0 + 0x1p-30);
    double *const entry = f.state()->a + 7 + 11 * f.state()->lda;
    MUST(cudaMemcpy(entry, &wrong, sizeof wrong, cudaMemcpyHostToDevice));
    MUST(cudaDeviceSynchronize()); /* the copy may not have arrived */
    CHECK_EQ_INT(measure(), HONE_OK);
    CHECK(!hone_verdict(&ctx, p, &column));
  }
}

namespace {

/* Solves on the device. */
hone_report solve(int64_t n, const double *a, int layout, int residuals,
                  int threads, std::vector<double> *x) {
  hone_options o = HONE_OPTIONS_INIT;
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_report report = HONE_REPORT_INIT;
  std::vector<double> b(static_cast<size_t>(2 * n), 1.0);
  for (size_t i = 0; i < b.size(); i += 3)
    b.data()[i] = -0.375;
  tuning.residuals = residuals;
  o.device = HONE_DEVICE_CUDA;
  o.layout = layout;
  o.threads = threads;
  o.tuning = &tuning;
  x->assign(b.size(), 0.0);
  CHECK_EQ_INT(hone_solve(n, 2, a, n, b.data(), n, x->data(), n, &o, &report),
               HONE_OK);
  for (int c = 0; c < 2; c++)
    CHECK_LE(sup_backward_error(n, a, n, layout == HONE_ROW_MAJOR,
                                x->data() + c * n, b.data() + c * n),
             SUP_LIMIT);
  return report;
}

} // namespace

TEST(projection, makes_the_hosts_pass_unnecessary) {
  NEED_DEVICE();
  const int64_t n = 420;
  numbers r = {8};
  std::vector<double> a = r.array<double>(n * n), x, again;
  for (const int threads : {1, 4})
    for (const int layout : {HONE_COL_MAJOR, HONE_ROW_MAJOR}) {
      const hone_report once =
          solve(n, a.data(), layout, HONE_RESIDUALS_AUTO, threads, &x);
      const hone_report twice =
          solve(n, a.data(), layout, HONE_RESIDUALS_TWICE, threads, &again);
      CHECK_EQ_INT(once.host_passes, 0);
      CHECK_EQ_INT(twice.host_passes, 1);
      CHECK_EQ_INT(memcmp(x.data(), again.data(), x.size() * sizeof(double)),
                   0);
    }
}

/* The contract forbids it, but an x of an earlier matrix would be silent. */
TEST(projection, an_a_that_changed_since_it_was_factored_is_noticed) {
  NEED_DEVICE();
  const int64_t n = 420;
  numbers r = {9};
  std::vector<double> a = r.array<double>(n * n), x(n), b(n, 1.0);
  for (int64_t i = 0; i < n; i++)
    a.data()[i + i * n] += 20.0;
  hone_options o = HONE_OPTIONS_INIT;
  hone_solver *solver = nullptr;
  o.device = HONE_DEVICE_CUDA;
  REQUIRE(hone_solver_create(&solver, n, &o) == HONE_OK);
  CHECK_EQ_INT(hone_solver_factor(solver, a.data(), n, nullptr), HONE_OK);
  for (double &v : a)
    v *= 1.0 + 0x1p-40;
  CHECK_EQ_INT(
      hone_solver_solve(solver, 1, b.data(), n, x.data(), n, nullptr, nullptr),
      HONE_OK);
  CHECK_LE(sup_backward_error(n, a.data(), n, false, x.data(), b.data()),
           SUP_LIMIT);
  hone_solver_destroy(&solver);
}

/* With 'deterministic', nothing changes from one process to another. */
TEST(projection, weights_are_those_of_the_order_where_the_caller_chose_so) {
  NEED_DEVICE();
  fed f(130, 2, false);
  f.state()->deterministic = true;
  CHECK_EQ_INT(f.feed(), HONE_OK);
  const std::vector<double> v(f.projection(false)->v,
                              f.projection(false)->v + f.n);
  CHECK_EQ_INT(f.feed(), HONE_OK);
  CHECK_EQ_INT(
      memcmp(v.data(), f.projection(false)->v, v.size() * sizeof(double)), 0);
}
