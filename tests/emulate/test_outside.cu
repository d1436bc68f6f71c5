/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors in host memory, whose block columns come to an emulated device and go
   (gpu_sp/outside/), of real and of complex matrices. */
#include "tests/emulate/outside.h"
#include "tests/emulate/refuse.h"

namespace {

void check_outside(int64_t real_order, int64_t window, int trans) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(window);
  const int64_t n = order_of(real_order);
  hone_options o = outside_options(n);
  o.trans = trans;
  ct_note("n %d, window %d, trans %d", (int)n, (int)window, trans);
  const hone_report r = solve(problem(n, trans, (uint64_t)n), o, HONE_OK);
  check_report(r, o);
  /* Every entry of F comes to the host once; A and all of L go there. */
  const int64_t all = n * n * (int64_t)sizeof(hone_single);
  CHECK_EQ_INT(r.from_device_bytes, all);
  CHECK(r.to_device_bytes >= all);
  CHECK(r.to_device_bytes > all);
}

TEST_OF(outside, block_columns_come_and_go) {
  for (int64_t window : {128, 256, 384, 640, 896})
    check_outside(1030, window, HONE_NO_TRANS);
}

TEST_OF(outside, orders_that_no_panel_divides) {
  for (int64_t n : {513, 640, 769, 1001, 1153})
    check_outside(n, 256, HONE_NO_TRANS);
}

TEST_OF(outside, transposes) {
  check_outside(900, 256, HONE_TRANS);
  check_outside(1027, 384, LAST_TRANS);
}

/* Outer panels of two and three inner ones, and the next panel factored beside
   the update. */
TEST_OF(outside, wide_panels_with_look_ahead) {
  for (int64_t outer : {100, 256, 384}) {
    wrapped_trial.ahead_from = 256;
    wrapped_trial.outer = outer;
    check_outside(1300, 512, HONE_NO_TRANS);
    wrapped_trial.ahead_from = 256;
    wrapped_trial.outer = outer;
    check_outside(1411, 800, HONE_TRANS);
  }
  wrapped_trial = {};
}

/* Panels of more rows than one launch holds, as orders above 49152 have. */
TEST_OF(outside, tall_panels) {
  wrapped_trial.part_rows = 256;
  wrapped_trial.ahead_from = 256;
  check_outside(1100, 384, HONE_NO_TRANS);
  wrapped_trial = {};
}

/* Work is done late, in one of the orders that CUDA allows: a wait that is
   missing gives other factors. Their bits do not depend on it. */
TEST_OF(outside, bits_do_not_depend_on_the_order_of_work) {
  const several_devices one(1);
  const narrow_panels narrow;
  for (int64_t window : {256, 384})
    for (int64_t ahead : {0, 256}) {
      const window_of columns(window);
      wrapped_trial.ahead_from = ahead;
      const problem p(order_of(1100), HONE_NO_TRANS, 21);
      hone_options o = outside_options(p.n);
      std::vector<entry> first((size_t)p.n), x((size_t)p.n);
      o.deterministic = 1;
      for (uint64_t seed = 0; seed < 4; seed++) {
        const hone_emulate::late_streams late(seed);
        hone_report r = HONE_REPORT_INIT;
        o.threads = 1 + (int)(seed % 3);
        ct_note("window %d, look-ahead from %d, seed %d", (int)window,
                (int)ahead, (int)seed);
        CHECK_EQ_INT(hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n,
                                x.data(), p.n, &o, &r),
                     HONE_OK);
        check_report(r, o);
        CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
        if (seed == 0)
          first = x;
        CHECK(memcmp(x.data(), first.data(), sizeof(entry) * x.size()) == 0);
      }
    }
}

/* ---- Solvers, and other matrices ------------------------------------------
 */

TEST_OF(outside, a_kept_solver_factors_and_solves_again) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const int64_t n = order_of(650), k = 21;
  problem p(n, false, 12), q(n, false, 13);
  entry_solver *solver = nullptr;
  hone_options o = outside_options(n);
  numbers r = {99};
  const std::vector<entry> b = uniform_entries(&r, n * k);
  CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  for (int step = 0; step < 3; step++) {
    hone_report report = HONE_REPORT_INIT;
    const int64_t asked = hone_emulate::refusing.asked;
    problem *of = step == 0 ? &p : &q;
    if (step == 2) /* with the factors of the matrix before */
      for (int64_t i = 0; i < n; i++)
        q.a.data()[i + i * n] += 1e-3;
    CHECK_EQ_INT(step < 2
                     ? hone_solver_factor(solver, of->a.data(), n, &report)
                     : hone_solver_update(solver, of->a.data(), n, &report),
                 HONE_OK);
    CHECK_CONTAINS(report.path, SAYS);
    CHECK((strstr(report.path, "of an earlier matrix") != nullptr) ==
          (step == 2));
    /* It is not given up for an engine that has no memory anyway. */
    CHECK((hone_emulate::refusing.asked == asked) == (step > 0));
    check_columns(solver, *of, k, b);
  }
  hone_solver_destroy(&solver);
}

/* Where there is no memory for Cholesky's factors, LU serves. */
TEST_OF(outside, definite_matrices_take_lu) {
  const several_devices one(1);
  const narrow_panels panels;
  const window_of columns(256);
  problem p(order_of(700), false, 14);
  for (int64_t j = 0; j < p.n; j++) {
    for (int64_t i = 0; i < j; i++)
      p.a.data()[j + i * p.n] =
          narrow(conjugate(wide_entry(p.a.data()[i + j * p.n])));
    p.a.data()[j + j * p.n] = (double)p.n;
  }
  p.multiply(HONE_NO_TRANS);
  hone_options o = outside_options(p.n);
  for (int structure : {(int)HONE_STRUCTURE_AUTO, (int)HONE_STRUCTURE_SPD}) {
    o.structure = structure;
    CHECK_CONTAINS(solve(p, o, HONE_OK).path, SAYS);
  }
}

TEST_OF(outside, takes_a_in_device_memory) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const problem p(order_of(700), false, 18);
  const size_t bytes = p.a.size() * sizeof(entry);
  entry *there = nullptr;
  MUST(cudaMalloc(&there, bytes));
  MUST(cudaMemcpy(there, p.a.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaDeviceSynchronize());
  const hone_options o = outside_options(p.n);
  std::vector<entry> x((size_t)p.n);
  hone_report r = HONE_REPORT_INIT;
  CHECK_EQ_INT(
      hone_solve(p.n, 1, there, p.n, p.b.data(), p.n, x.data(), p.n, &o, &r),
      HONE_OK);
  CHECK_CONTAINS(r.path, SAYS);
  CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
  MUST(cudaFree(there));
}

TEST_OF(outside, scales_rows_and_columns) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  problem p(order_of(900), false, 11);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] =
          shifted(p.a.data()[i + j * p.n],
                  (int)(i % 7) * 60 - 180 + (int)(j % 5) * 50 - 100);
  for (int64_t i = 0; i < p.n; i++) /* b is of the size of A x */
    p.b.data()[i] = shifted(p.b.data()[i], (int)(i % 7) * 60 - 180);
  const hone_options o = outside_options(p.n);
  const hone_report r = solve(p, o, HONE_OK);
  check_report(r, o);
  CHECK(r.scale_exponent_max > 0);
}

TEST_OF(outside, a_singular_matrix_is_not_accepted) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  problem p(order_of(700), false, 15);
  for (int64_t i = 0; i < p.n; i++) /* column 411 is twice column 5 */
    p.a.data()[i + 411 * p.n] = 2.0 * p.a.data()[i + 5 * p.n];
  const hone_options o = outside_options(p.n);
  std::vector<entry> x((size_t)p.n);
  for (bool zero : {false, true}) {
    for (int64_t i = 0; i < p.n && zero; i++)
      p.a.data()[i + 300 * p.n] = 0.0;
    const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n,
                              x.data(), p.n, &o, nullptr);
    CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
  }
}

TEST_OF(outside, entries_that_are_not_finite_are_found) {
  const several_devices one(1);
  const window_of columns(256);
  problem p(order_of(600), false, 15);
  p.a.data()[17 + 300 * p.n] = NAN;
  const hone_report r = solve(p, outside_options(p.n), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(r.bad_row, 17);
  CHECK_EQ_INT(r.bad_col, 300);
}

TEST_OF(outside, more_accurate_factors_follow) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const problem p = ill_conditioned(order_of(700), HONE_NO_TRANS);
  hone_options o = outside_options(p.n);
  const hone_report r = solve(p, o, HONE_OK);
  CHECK_CONTAINS(r.path, "through the device) set aside, double LU");
  CHECK_EQ_INT(r.precision, 64);
}

/* ---- What is not there ----------------------------------------------------
 */

/* Too little memory for two panels, too small an order, and enough memory. */
TEST_OF(outside, other_engines_serve_where_it_does_not_pay) {
  const several_devices one(1);
  const narrow_panels narrow;
  const problem p(order_of(700), false, 16);
  hone_options o = options_for(0);
  {
    const window_of columns(256);
    const hone_options enough = outside_options(p.n);
    CHECK(strstr(solve(p, o, HONE_OK).path, SAYS) == nullptr);
    wrapped_trial.window = 0;
    CHECK(strstr(solve(p, enough, HONE_OK).path, SAYS) == nullptr);
    wrapped_trial.window = 256;
    o.device_memory_limit_bytes = 1 << 20;
    const hone_report r = solve(p, o, HONE_OK);
    CHECK(strstr(r.path, SAYS) == nullptr);
    CHECK_CONTAINS(r.reason, "block columns need");
    CHECK_EQ_INT(r.device_bytes, 0);
  }
}

/* Within what is told beforehand the engine has its memory, and with less the
   CPU solves. */
TEST_OF(outside, host_memory_is_told_beforehand) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const problem p(order_of(900), false, 19);
  hone_options o = outside_options(p.n);
  int64_t single = 0;
  CHECK_EQ_INT(hone_memory_needed(p.n, 1, &o, &single, nullptr), HONE_OK);
  o.memory_limit_bytes = single;
  hone_report r = solve(p, o, HONE_OK);
  check_report(r, o);
  CHECK(r.host_bytes <= single);
  std::vector<entry> x((size_t)p.n);
  bool by_host = false;
  for (int st = HONE_OK; st == HONE_OK;) {
    const int64_t had = r.host_bytes;
    o.memory_limit_bytes = had - 1;
    st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(), p.n, &o,
                    &r);
    if (st != HONE_OK) {
      CHECK_EQ_INT(st, HONE_NO_MEMORY);
      break;
    }
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
    CHECK(r.host_bytes < had);
    by_host = strstr(r.path, "through the device), ") == nullptr;
  }
  CHECK(by_host);
}

TEST_OF(outside, is_for_orders_from_4096_on) {
  const several_devices one(1);
  const hone_options o = options_for(0);
  const hone_engine *e = &hone_engine_outside;
  int64_t below = 0, from = 0;
  CHECK_EQ_INT(hone_memory_needed(4095, 1, &o, &below, nullptr), HONE_OK);
  CHECK_EQ_INT(hone_memory_needed(4096, 1, &o, &from, nullptr), HONE_OK);
  CHECK(below < e->bytes(4095, 1));
  CHECK(from > e->bytes(4096, 1));
}

/* The user data: the fraction at which to stop. */
int stop_there(void *user, const hone_progress *event) {
  return strcmp(event->phase, "factor") == 0 &&
         event->fraction >= *static_cast<const double *>(user);
}

TEST_OF(outside, stops_when_the_caller_says_so) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const problem p(order_of(900), false, 17);
  hone_options o = outside_options(p.n);
  for (double at : {0.0, 0.5, 0.85}) { /* the last one: beside a panel */
    const hone_emulate::late_streams late((uint64_t)(100.0 * at));
    o.progress_user = &at;
    o.progress = stop_there;
    (void)solve(p, o, HONE_CANCELLED);
    o.progress = nullptr;
    CHECK_CONTAINS(solve(p, o, HONE_OK).path, SAYS);
  }
}

/* Every call of CUDA fails once: x is right all the same, by other means, or
   there is none. Nothing is left behind. */
TEST_OF(outside, survives_every_failed_call) {
  const several_devices one(1);
  const narrow_panels narrow;
  const window_of columns(256);
  const problem p(order_of(640), false, 16);
  hone_options o = outside_options(p.n);
  (void)hone_release_kept();
  const size_t before = hone_emulate::owned_now();
  int64_t at = 1, step = 1, by_others = 0;
  for (bool over = false; !over; at += step) {
    std::vector<entry> x((size_t)p.n);
    hone_report r = HONE_REPORT_INIT;
    failing_calls.fail_at = at;
    const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n,
                              x.data(), p.n, &o, &r);
    over = failing_calls.fail_at > 0;
    failing_calls.fail_at = 0;
    ct_note("call %d", (int)at);
    CHECK_EQ_INT(st, HONE_OK);
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
    by_others += strstr(r.reason, "failed") != nullptr;
    (void)hone_release_kept();
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
    step = at < 80 ? 3 : 7 * HONE_PARTS;
  }
  CHECK(at > 300);
  CHECK(by_others > 20);
}

} // namespace
