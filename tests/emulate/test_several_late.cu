/* SPDX-License-Identifier: BSD-3-Clause */
/* A comes to several emulated devices by parts (gpu_sp/several/arrive.cu), and
   what is enqueued is done late, in one of the orders that CUDA allows
   (emulate_late.h): a wait for an event that is missing, rows that are not
   moved or a column that is not updated give another x, or none. */
#include "tests/emulate/several_problem.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

namespace {

/* Solves by each of some lists of parts (gpu_sp/factor/load.cu), work being
   late in another order each time. */
void check_late(int devices, int64_t n, int trans, int64_t lists) {
  for (int64_t list = 0; list <= lists; list++) {
    const hone_emulate::late_streams late((uint64_t)(n + 1000 * list));
    wrapped_trial.feed = list;
    wrapped_trial.apart = list % 2;
    ct_note("parts %d", (int)list);
    check_solve(devices, n, trans);
  }
  wrapped_trial.feed = wrapped_trial.apart = 0;
}

TEST_OF(several_late, two_devices_with_every_list_of_parts) {
  check_late(2, 1100, HONE_NO_TRANS, 8);
}

TEST_OF(several_late, more_devices) {
  check_late(3, 1290, HONE_NO_TRANS, 3);
  check_late(4, 1101, HONE_TRANS, 2);
  check_late(5, 1400, HONE_NO_TRANS, 1);
  check_late(8, 1409, HONE_NO_TRANS, 0);
}

/* The next panel is factored beside the update, and beside parts that catch
   up. */
TEST_OF(several_late, look_ahead) {
  wrapped_trial.ahead_from = 256;
  check_late(2, 1311, HONE_NO_TRANS, 4);
  check_late(3, 1300, HONE_NO_TRANS, 2);
  wrapped_trial = {};
}

TEST_OF(several_late, wide_panels_with_look_ahead) {
  wrapped_trial.ahead_from = 256;
  wrapped_trial.outer = 256;
  check_late(2, 1300, HONE_NO_TRANS, 2);
  wrapped_trial.outer = 384;
  check_late(2, 1291, HONE_TRANS, 1);
  wrapped_trial = {};
}

/* The bits of x do not depend on when a part arrives. */
TEST_OF(several_late, bits_do_not_depend_on_the_order_of_work) {
  const several_devices two(2);
  const narrow_panels narrow;
  const problem p(order_of(1200), false, 21);
  hone_options o = options_for(2);
  std::vector<entry> first((size_t)p.n), x((size_t)p.n);
  o.deterministic = 1;
  wrapped_trial.ahead_from = 256;
  for (uint64_t seed = 0; seed < 5; seed++) {
    const hone_emulate::late_streams late(seed);
    CHECK_EQ_INT(hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, nullptr),
                 HONE_OK);
    if (seed == 0)
      first = x;
    CHECK(memcmp(x.data(), first.data(), sizeof(entry) * x.size()) == 0);
  }
  wrapped_trial = {};
}

/* Every part has a scale of its own, by which its products are made of FP16
   parts. Here the entries grow from part to part, and A is not scaled: with the
   scale of the first part those of the last would overflow, and the engine
   would factor A again in FP32. */
TEST_OF(several_late, parts_of_other_magnitudes) {
  const several_devices two(2);
  const narrow_panels narrow;
  const hone_emulate::late_streams late(20);
  problem p(order_of(1100), false, 20);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] =
          shifted(p.a.data()[i + j * p.n], 5 * (int)(j / 256));
  std::vector<double> ones((size_t)p.n, 1.0);
  std::vector<int> zeros((size_t)p.n, 0);
  const hone_scaling none = {ones.data(), ones.data(), zeros.data(),
                             zeros.data(), false};
  const hone_dense dense = {
      p.n,     p.n,   reinterpret_cast<const hone_entry *>(p.a.data()),
      nullptr, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&dense);
  hone_mem mem = {};
  hone_watch watch = {};
  hone_engine_config config = {};
  hone_factor_info info = {};
  hone_account used = {};
  void *self = nullptr;
  config.n = p.n;
  config.mem = &mem;
  config.watch = &watch;
  config.choices.devices = 2;
  const hone_engine *engine = &hone_engine_several_cuda;
  CHECK_EQ_INT(engine->create(&self, &config), HONE_OK);
  CHECK_EQ_INT(engine->factor(self, &matrix, &none, &info), HONE_OK);
  CHECK(info.growth < 1e3);
  engine->account(self, &used);
  CHECK(strstr(used.text, "fp16x3"));
  engine->destroy(self, &mem);
}

/* Other row scales than 1 are known when all of A has been seen: then A is
   factored again where it lies. */
TEST_OF(several_late, scales_what_has_arrived) {
  const several_devices two(2);
  const narrow_panels narrow;
  const hone_emulate::late_streams late(22);
  problem p(order_of(1111), false, 22);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] =
          shifted(p.a.data()[i + j * p.n], (int)(i % 7) * 60 - 180);
  for (int64_t i = 0; i < p.n; i++)
    p.b.data()[i] = shifted(p.b.data()[i], (int)(i % 7) * 60 - 180);
  const hone_report r = solve(p, options_for(2), HONE_OK);
  CHECK(strstr(r.path, "2 GPUs"));
  CHECK(r.scale_exponent_max > 0);
  CHECK(r.to_device_bytes < 2 * p.n * p.n * (int64_t)sizeof(entry));
}

TEST_OF(several_late, takes_a_in_pinned_memory) {
  const several_devices three(3);
  const narrow_panels narrow;
  const problem p(order_of(1200), false, 23);
  const size_t bytes = p.a.size() * sizeof(entry);
  const hone_options o = options_for(3);
  entry *pinned = nullptr;
  MUST(cudaMallocHost(&pinned, bytes));
  std::copy(p.a.begin(), p.a.end(), pinned);
  for (uint64_t seed : {1, 2}) {
    const hone_emulate::late_streams late(seed);
    std::vector<entry> x((size_t)p.n);
    hone_report r = HONE_REPORT_INIT;
    CHECK_EQ_INT(
        hone_solve(p.n, 1, pinned, p.n, p.b.data(), p.n, x.data(), p.n, &o, &r),
        HONE_OK);
    CHECK(strstr(r.path, "3 GPUs"));
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
  }
  MUST(cudaFreeHost(pinned));
}

/* Lets the rows of A and b fall to 2^-40: the pivots of A fall so fast that its
   factorization without scaling is given up after a quarter of the columns. The
   last column is the largest. */
void make_fall(problem *p) {
  for (int64_t i = 0; i < p->n; i++) {
    const int by = -(int)(40 * i / p->n);
    for (int64_t j = 0; j < p->n; j++)
      p->a.data()[i + j * p->n] = shifted(p->a.data()[i + j * p->n], by);
    p->b.data()[i] = shifted(p->b.data()[i], by);
  }
}

/* The rest of A arrives, and is inspected on the devices: then its scaling is
   known, and A is factored where it lies. */
TEST_OF(several_late, inspects_what_arrives_when_there_is_no_hope) {
  const several_devices two(2);
  const narrow_panels narrow;
  problem p(order_of(1300), false, 24);
  double norm = 0.0;
  make_fall(&p);
  for (int64_t i = 0; i < p.n; i++)
    norm += std::abs(p.a.data()[i + (p.n - 1) * p.n] *= 4.0);
  for (int64_t i = 0; i < p.n; i++)
    p.b.data()[i] += p.a.data()[i + (p.n - 1) * p.n];
  for (uint64_t seed : {1, 2, 3, 4}) {
    const hone_emulate::late_streams late(seed);
    const hone_report r = solve(p, options_for(2), HONE_OK);
    CHECK(strstr(r.path, "2 GPUs"));
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK(r.scale_exponent_max > 0);
    CHECK(std::fabs(r.norm1 - norm) <= 1e-12 * norm);
    CHECK(r.to_device_bytes < 2 * p.n * p.n * (int64_t)sizeof(entry));
  }
}

/* The last column of A, which has not arrived when the factorization is given
   up, has an entry that is not finite. */
TEST_OF(several_late, finds_nan_in_what_arrives_when_there_is_no_hope) {
  const several_devices two(2);
  const narrow_panels narrow;
  problem p(order_of(1300), false, 24);
  make_fall(&p);
  for (double wrong : {(double)NAN, (double)INFINITY}) {
    const hone_emulate::late_streams late(24);
    p.a.data()[31 + (p.n - 1) * p.n] = wrong;
    const hone_report r = solve(p, options_for(2), HONE_NOT_FINITE_A);
    CHECK_EQ_INT(r.bad_row, 31);
    CHECK_EQ_INT(r.bad_col, p.n - 1);
  }
}

/* The user data: the fraction at which to stop. */
int stop_there(void *user, const hone_progress *event) {
  return strcmp(event->phase, "factor") == 0 &&
         event->fraction >= *static_cast<const double *>(user);
}

/* Another matrix follows one of which a part had still to come; the memory of
   that one is gone. */
TEST_OF(several_late, factors_again_after_one_that_was_stopped) {
  const several_devices two(2);
  const narrow_panels narrow;
  const int64_t n = order_of(1200);
  double fraction = 0.0;
  hone_options o = options_for(2);
  entry_solver *solver = nullptr;
  std::vector<entry> x((size_t)n);
  o.progress = stop_there;
  o.progress_user = &fraction;
  CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  for (double at : {0.05, 0.2, 0.4, 0.7}) {
    const hone_emulate::late_streams late((uint64_t)(100 * at));
    {
      const problem gone(n, false, 25);
      fraction = at;
      CHECK_EQ_INT(hone_solver_factor(solver, gone.a.data(), n, nullptr),
                   HONE_CANCELLED);
    }
    const problem p(n, false, 26);
    hone_report r = HONE_REPORT_INIT;
    fraction = 2.0;
    CHECK_EQ_INT(hone_solver_factor(solver, p.a.data(), n, &r), HONE_OK);
    CHECK(strstr(r.path, "2 GPUs"));
    CHECK_EQ_INT(hone_solver_solve(solver, 1, p.b.data(), n, x.data(), n,
                                   nullptr, nullptr),
                 HONE_OK);
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
  }
  hone_solver_destroy(&solver);
}

} // namespace
