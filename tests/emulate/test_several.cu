/* SPDX-License-Identifier: BSD-3-Clause */
/* LU on several emulated devices (gpu_sp/several/), through the public API, of
   real and of complex matrices. */
#include "tests/emulate/several_problem.h"

namespace {

/* Solves with all of F on one device, and with F where it was factored. */
void check_both(int devices, int64_t n, int trans) {
  for (int64_t apart : {0, 1}) {
    wrapped_trial.apart = apart;
    check_solve(devices, n, trans);
  }
  wrapped_trial.apart = 0;
}

TEST_OF(several, devices_of_every_number_solve) {
  for (int devices : {2, 3, 8})
    check_both(devices, 1030, HONE_NO_TRANS);
  for (int devices : {4, 5, 6, 7})
    check_solve(devices, 900, HONE_NO_TRANS);
}

TEST_OF(several, orders_that_no_panel_divides) {
  for (int64_t n : {512, 513, 640, 769, 1001})
    check_both(2, n, HONE_NO_TRANS);
}

TEST_OF(several, transposes) {
  check_both(2, 900, HONE_TRANS);
  check_both(3, 1027, LAST_TRANS);
}

/* Outer panels of two and three inner ones, and the next panel factored beside
   the update. */
TEST_OF(several, wide_panels_with_look_ahead) {
  wrapped_trial.ahead_from = 256;
  for (int64_t outer : {384, 100}) {
    wrapped_trial.outer = outer;
    check_both(2, 1100, HONE_NO_TRANS);
    check_both(3, 1300, HONE_TRANS);
  }
  wrapped_trial = {};
}

/* Panels of more rows than one launch holds, as orders above 49152 have. */
TEST_OF(several, tall_panels) {
  wrapped_trial.part_rows = 256;
  check_both(2, 1100, HONE_NO_TRANS);
  wrapped_trial.ahead_from = 256;
  wrapped_trial.outer = 384;
  check_both(3, 1300, HONE_TRANS);
  wrapped_trial = {};
}

TEST_OF(several, devices_that_cannot_reach_each_other_send_through_the_host) {
  for (int64_t apart : {0, 1})
    for (int trans : {(int)HONE_NO_TRANS, LAST_TRANS}) {
      const several_devices three(3);
      hone_options o = options_for(3);
      hone_emulate::devices.peers = false;
      wrapped_trial.apart = apart;
      o.trans = trans;
      (void)solve(problem(order_of(800), trans, 7), o, HONE_OK);
      CHECK((int64_t)hone_emulate::devices.peer_bytes > 0);
      CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes,
                   (int64_t)hone_emulate::devices.peer_bytes);
    }
  wrapped_trial.apart = 0;
}

TEST_OF(several, the_current_device_begins_and_is_current_afterwards) {
  const several_devices four(4);
  int now = -1;
  MUST(cudaSetDevice(3));
  const hone_report r = solve(problem(700, false, 8), options_for(2), HONE_OK);
  MUST(cudaGetDevice(&now));
  CHECK_EQ_INT(now, 3);
  CHECK(strstr(r.path, "2 GPUs"));
}

TEST_OF(several, all_devices_and_more_than_there_are) {
  const several_devices three(3);
  CHECK(strstr(solve(problem(600, false, 9), options_for(-1), HONE_OK).path,
               "3 GPUs"));
  CHECK(strstr(solve(problem(600, false, 9), options_for(1000), HONE_OK).path,
               "3 GPUs"));
  const hone_report one =
      solve(problem(600, false, 9), options_for(0), HONE_OK);
  CHECK(strstr(one.path, "GPUs") == nullptr);
}

TEST_OF(several, one_device_is_used_where_there_is_one) {
  const several_devices one(1);
  const hone_report r = solve(problem(600, false, 9), options_for(4), HONE_OK);
  CHECK(strstr(r.path, "GPUs") == nullptr);
  CHECK_EQ_INT(r.precision, 32);
}

TEST_OF(several, parts_of_one_device_stand_in_for_several) {
  const several_devices two(2);
  wrapped_trial.logical = 3;
  const hone_report r = solve(problem(900, false, 10), options_for(2), HONE_OK);
  wrapped_trial.logical = 0;
  CHECK(strstr(r.path, "3 GPUs"));
  CHECK_EQ_INT((int64_t)hone_emulate::devices.peer_bytes, 0);
}

TEST_OF(several, numbers_of_devices_that_make_no_sense_are_refused) {
  const several_devices two(2);
  for (int devices : {-2, INT32_MIN}) {
    const hone_options o = options_for(devices);
    const hone_report r = solve(problem(8, false, 1), o, HONE_BAD_OPTION);
    CHECK(strstr(r.reason, "options.devices"));
  }
}

/* Rows and columns in other units: A is scaled, and factored from the copies on
   the devices. */
TEST_OF(several, scales_what_is_on_the_devices) {
  const several_devices two(2);
  const narrow_panels narrow;
  problem p(order_of(1401), false, 11);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] =
          shifted(p.a.data()[i + j * p.n],
                  (int)(i % 7) * 60 - 180 + (int)(j % 5) * 50 - 100);
  for (int64_t i = 0; i < p.n; i++) /* b is of the size of A x */
    p.b.data()[i] = shifted(p.b.data()[i], (int)(i % 7) * 60 - 180);
  const hone_report r = solve(p, options_for(2), HONE_OK);
  CHECK(r.scale_exponent_max > 0);
  CHECK_EQ_INT(r.precision, 32);
  CHECK(strstr(r.path, "fp16x3"));
  CHECK(r.to_device_bytes < 2 * p.n * p.n * (int64_t)sizeof(entry));
}

void check_kept(int64_t apart) {
  const several_devices two(2);
  wrapped_trial.apart = apart;
  const int64_t n = order_of(650), k = 21;
  const problem p(n, false, 12), q(n, false, 13);
  entry_solver *solver = nullptr;
  hone_options o = options_for(2);
  numbers r = {99};
  const std::vector<entry> b = uniform_entries(&r, n * k);
  CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  for (const problem *of : {&p, &q}) {
    hone_report report = HONE_REPORT_INIT;
    CHECK_EQ_INT(hone_solver_factor(solver, of->a.data(), n, &report), HONE_OK);
    CHECK(strstr(report.path, "set aside") == nullptr);
    check_columns(solver, *of, k, b);
  }
  hone_solver_destroy(&solver);
  wrapped_trial.apart = 0;
}

TEST_OF(several, a_kept_solver_factors_and_solves_again) {
  check_kept(0);
  check_kept(1);
}

/* A where the devices read it themselves, and in the memory of one of them. */
TEST_OF(several, takes_a_in_pinned_and_in_device_memory) {
  const several_devices two(2);
  const problem p(700, false, 18);
  const size_t bytes = p.a.size() * sizeof(entry);
  entry *pinned = nullptr, *there = nullptr;
  MUST(cudaMallocHost(&pinned, bytes));
  MUST(cudaMalloc(&there, bytes));
  MUST(cudaMemcpy(there, p.a.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaDeviceSynchronize());
  std::copy(p.a.begin(), p.a.end(), pinned);
  const hone_options o = options_for(2);
  for (const entry *a : {pinned, there}) {
    std::vector<entry> x((size_t)p.n);
    hone_report r = HONE_REPORT_INIT;
    CHECK_EQ_INT(
        hone_solve(p.n, 1, a, p.n, p.b.data(), p.n, x.data(), p.n, &o, &r),
        HONE_OK);
    CHECK(strstr(r.path, "2 GPUs"));
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
  }
  MUST(cudaFree(there));
  MUST(cudaFreeHost(pinned));
}

int stop_at_half(void *, const hone_progress *event) {
  return strcmp(event->phase, "factor") == 0 && event->fraction >= 0.5;
}

/* A second solve takes the memory, streams and events of the first one; solves
   of another order, from another device on or with other devices do not. */
TEST_OF(several, engines_are_kept_between_calls) {
  const several_devices three(3);
  const size_t before = hone_emulate::owned_now();
  const problem p(700, false, 27), q(700, false, 28), other(800, false, 29);
  const hone_report first = solve(p, options_for(2), HONE_OK);
  const size_t kept = hone_emulate::owned_now();
  CHECK(kept > before);
  for (const problem *of : {&q, &p}) {
    const hone_report r = solve(*of, options_for(2), HONE_OK);
    CHECK(strstr(r.path, "2 GPUs"));
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK_EQ_INT(r.device_bytes, first.device_bytes);
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)kept);
  }
  CHECK(strstr(solve(p, options_for(3), HONE_OK).path, "3 GPUs"));
  CHECK(strstr(solve(other, options_for(2), HONE_OK).path, "2 GPUs"));
  MUST(cudaSetDevice(1));
  CHECK(strstr(solve(other, options_for(2), HONE_OK).path, "2 GPUs"));
  CHECK(hone_release_kept() > 0);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
}

/* One of which a part had not come serves the next call all the same. */
TEST_OF(several, engines_of_calls_that_were_stopped_are_kept) {
  const several_devices two(2);
  hone_options o = options_for(2);
  o.progress = stop_at_half;
  (void)solve(problem(700, false, 30), o, HONE_CANCELLED);
  o.progress = nullptr;
  CHECK(strstr(solve(problem(700, false, 31), o, HONE_OK).path, "2 GPUs"));
  CHECK(hone_release_kept() > 0);
}

TEST_OF(several, a_singular_matrix_is_not_accepted) {
  const several_devices three(3);
  problem p(600, false, 14);
  for (int64_t i = 0; i < p.n; i++) /* column 411 is twice column 5 */
    p.a.data()[i + 411 * p.n] = 2.0 * p.a.data()[i + 5 * p.n];
  std::vector<entry> x((size_t)p.n);
  hone_options o = options_for(3);
  const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, nullptr);
  CHECK(st == HONE_SINGULAR || st == HONE_ILL_CONDITIONED);
}

TEST_OF(several, entries_that_are_not_finite_are_found) {
  const several_devices two(2);
  problem p(600, false, 15);
  p.a.data()[17 + 300 * p.n] = NAN;
  const hone_report r = solve(p, options_for(2), HONE_NOT_FINITE_A);
  CHECK_EQ_INT(r.bad_row, 17);
  CHECK_EQ_INT(r.bad_col, 300);
}

/* Every call of CUDA fails once: x is right all the same, by other means, or
   there is none. Nothing is left behind. */
TEST_OF(several, survives_every_failed_call) {
  const several_devices two(2);
  const problem p(520, false, 16);
  hone_options o = options_for(2);
  (void)solve(p, o, HONE_OK);
  (void)hone_release_kept();
  const size_t before = hone_emulate::owned_now();
  int64_t at = 1, step = 1, answered = 0, failed = 0;
  for (bool over = false; !over; at += step) {
    std::vector<entry> x((size_t)p.n);
    failing_calls.fail_at = at;
    const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n,
                              x.data(), p.n, &o, nullptr);
    over = failing_calls.fail_at > 0;
    failing_calls.fail_at = 0;
    ct_note("call %d", (int)at);
    CHECK(st == HONE_OK || st == HONE_NO_DEVICE || st == HONE_DEVICE_FAILED ||
          st == HONE_NO_MEMORY);
    if (st == HONE_OK)
      CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
    answered += st == HONE_OK;
    failed += st != HONE_OK;
    (void)hone_release_kept();
    CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
    step = (at < 60 ? 2 : 29) * HONE_PARTS;
  }
  CHECK(at > 600);
  CHECK(answered > failed);
}

/* Every device looks for the largest |u_ij| of its own columns, and of those
   parts of complex entries. Factors differ by roundings alone. */
TEST_OF(several, growth_is_that_of_one_device) {
  const several_devices three(3);
  const problem p(order_of(900), HONE_NO_TRANS, 32);
  const double one = solve(p, options_for(0), HONE_OK).growth;
  const double all = solve(p, options_for(3), HONE_OK).growth;
  CHECK_NEAR(all, one, 1e-3 * one);
}

TEST_OF(several, stops_when_the_caller_says_so) {
  const several_devices two(2);
  const problem p(700, false, 17);
  hone_options o = options_for(2);
  o.progress = stop_at_half;
  (void)solve(p, o, HONE_CANCELLED);
  o.progress = nullptr;
  (void)solve(p, o, HONE_OK);
}

TEST_OF(several, the_memory_of_each_device_is_told_beforehand) {
  int64_t one = 0, four = 0, least = 0;
  hone_options o = options_for(0);
  CHECK_EQ_INT(hone_device_memory_needed(8192, &o, &one, nullptr), HONE_OK);
  o.devices = 4;
  CHECK_EQ_INT(hone_device_memory_needed(8192, &o, &four, &least), HONE_OK);
  CHECK(least > 0 && least < one / 2);
  CHECK(four > least && four < one);
}

/* With the first of the two numbers A comes by parts, with the second at once,
   and below it one device solves. */
TEST_OF(several, keeps_the_others_l_where_there_is_memory_for_it) {
  const several_devices two(2);
  const problem p(1100, false, 19);
  hone_options o = options_for(2);
  int64_t kept = 0, least = 0;
  CHECK_EQ_INT(hone_device_memory_needed(p.n, &o, &kept, &least), HONE_OK);
  /* Panels 0 .. 5 of 128 columns come before the last part, 0 .. 3 of a complex
     matrix: half of them are kept, in single precision. */
  const int64_t panels = HONE_PARTS > 1 ? 2 : 3;
  CHECK_EQ_INT(kept - least, panels * 128 * (int64_t)sizeof(hone_single) * p.n);
  wrapped_trial.apart = 1;
  for (int64_t limit : {kept, least}) {
    o.device_memory_limit_bytes = limit;
    const hone_report r = solve(p, o, HONE_OK);
    CHECK(strstr(r.path, "2 GPUs"));
    CHECK(r.device_bytes <= 2 * limit);
    CHECK((r.device_bytes > 2 * least) == (limit == kept));
  }
  wrapped_trial.apart = 0;
  o.device_memory_limit_bytes = least / 2;
  CHECK(strstr(solve(p, o, HONE_OK).path, "2 GPUs)") == nullptr);
}

/* Complex systems have no LU in double on a device. */
TEST_OF(several, lu_in_double_follows) {
  const several_devices two(2);
  for (int trans : {(int)HONE_NO_TRANS, LAST_TRANS}) {
    hone_options o = options_for(2);
    o.trans = trans;
    const hone_report r = solve(ill_conditioned(520, trans), o, HONE_OK);
    CHECK_CONTAINS(r.path, HONE_PARTS > 1
                               ? "2 GPUs) set aside, double LU, "
                               : "2 GPUs) set aside, double LU (cuSOLVER), ");
    CHECK_CONTAINS(r.reason, "single LU: the pivots fall too fast");
    CHECK_EQ_INT(r.precision, 64);
  }
}

/* Near the end of what single precision can do the certificate of the factors
   is that of one device, by as many random vectors. With 12 and then 8 of them,
   as on the host, these were refused on two devices alone. */
TEST_OF(several, lu_in_double_follows_where_it_does_on_one_device) {
  const several_devices two(2);
  const struct {
    double exponent;
    uint64_t seed;
  } systems[] = {{-9.7, 61}, {-9.75, 55}, {-9.8, 51}, {-9.8, 55}};
  for (const auto &system : systems) {
    const problem p =
        falling(520, std::pow(10.0, system.exponent), false, system.seed);
    hone_options o = options_for(0);
    o.deterministic = 1;
    ct_note("exponent %g, seed %d", system.exponent, (int)system.seed);
    const hone_report one = solve(p, o, HONE_OK);
    o.devices = 2;
    const hone_report both = solve(p, o, HONE_OK);
    CHECK(strstr(both.path, "2 GPUs"));
    CHECK_EQ_INT(both.precision, one.precision);
  }
}

} // namespace
