/* SPDX-License-Identifier: BSD-3-Clause */
/* Cholesky's factorization on several emulated devices (gpu_sp/several/), of
   symmetric and of Hermitian matrices, through the public API. What is enqueued
   may be done late (emulate_late.h). */
#include "tests/emulate/late_page.h"
#include "tests/emulate/several_problem.h"

namespace {

/* A random Hermitian matrix with a diagonal just beyond its most negative
   eigenvalue, about -2 sqrt(n / 3) (complex: sqrt(2) times as much), so that
   every product counts; 'indefinite' has one entry of the diagonal that is not.
 */
problem definite(int64_t n, int trans, uint64_t seed, int64_t indefinite = -1) {
  problem p(n, trans, seed);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) {
      entry &v = p.a.data()[i + j * n];
      if (i == j)
        v = std::abs(v) + 1.17 * std::sqrt(HONE_PARTS * (double)n);
      p.a.data()[j + i * n] = narrow(conjugate(wide_entry(v)));
    }
  if (indefinite >= 0)
    p.a.data()[indefinite * (n + 1)] = -1.0;
  p.multiply(trans);
  return p;
}

hone_options options_of(int devices, int structure = HONE_STRUCTURE_AUTO) {
  hone_options o = options_for(devices);
  o.structure = structure;
  return o;
}

std::string path_of(int devices) {
  return "single Cholesky (fp16x3, one triangle, " + std::to_string(devices) +
         " GPUs)";
}

/* Returns the number in "..., 2 refinements". */
int corrections_in(const char *path) {
  const char *const comma = strrchr(path, ',');
  return comma ? atoi(comma + 1) : 99;
}

/* Solves with so many devices, and checks x, its bounds and the path; the order
   is order_of(real_order). */
void check_definite(int devices, int64_t real_order, int trans) {
  const several_devices present(devices);
  const narrow_panels narrow;
  const int64_t n = order_of(real_order);
  const problem p = definite(n, trans, (uint64_t)(n + devices));
  hone_options o = options_of(devices);
  std::vector<entry> x((size_t)n);
  hone_report r = HONE_REPORT_INIT;
  o.trans = trans;
  ct_note("%d devices, n %d, trans %d", devices, (int)n, trans);
  CHECK_EQ_INT(
      hone_solve(n, 1, p.a.data(), n, p.b.data(), n, x.data(), n, &o, &r),
      HONE_OK);
  CHECK_CONTAINS(r.path, path_of(devices).c_str());
  CHECK(strstr(r.path, "set aside") == nullptr);
  /* Factors that lack a product of single precision need 10. */
  CHECK(corrections_in(r.path) <= 3);
  /* The verdict on transposes is the host's, as with one device. */
  CHECK_EQ_INT(r.host_passes, trans != HONE_NO_TRANS);
  CHECK(r.device_passes > 0);
  const double error = backward_error(p, trans, x.data());
  CHECK(error <= 4 * 0x1p-53 * (1 + 1e-9));
  /* The sums in long double have roundings of 2^-64 themselves, and terms of
     the size of the diagonal's. */
  CHECK(error <= r.backward_error * (1 + 1e-9) + 1e-18);
  double off = 0.0, top = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const double e = std::abs(x.data()[i] - p.x.data()[i]);
    off = e <= off ? off : e; /* NaN stays, and fails below */
    top = std::fmax(top, std::abs(p.x.data()[i]));
  }
  CHECK(off <= top * (r.forward_error + 3 * 0x1p-53 / r.rcond));
  CHECK((int64_t)hone_emulate::devices.peer_bytes > 0);
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes, 0);
  /* Half of A has come, completed to whole pieces, and vectors. */
  CHECK(r.to_device_bytes <
        (n * n * 8 / 10 + 400 * n) * (int64_t)sizeof(entry));
}

TEST_OF(several_cholesky, devices_of_every_number_solve) {
  for (int devices : {2, 3, 8})
    check_definite(devices, 1030, HONE_NO_TRANS);
  for (int devices : {4, 5, 6, 7})
    check_definite(devices, 900, HONE_NO_TRANS);
}

TEST_OF(several_cholesky, orders_that_no_panel_divides) {
  for (int64_t n : {512, 513, 640, 769, 1001})
    check_definite(2, n, HONE_NO_TRANS);
}

TEST_OF(several_cholesky, transposes) {
  check_definite(2, 900, HONE_TRANS);
  check_definite(3, 1027, LAST_TRANS);
}

TEST_OF(several_cholesky, wide_panels_with_look_ahead) {
  wrapped_trial.ahead_from = 256;
  for (int64_t outer : {384, 100}) {
    wrapped_trial.outer = outer;
    check_definite(2, 1100, HONE_NO_TRANS);
    check_definite(3, 1300, HONE_TRANS);
  }
  wrapped_trial = {};
}

/* Solves by each of some lists of parts (gpu_sp/factor/load.cu), work being
   late in another order each time. */
void check_late(int devices, int64_t n, int64_t lists) {
  for (int64_t list = 0; list <= lists; list++) {
    const hone_emulate::late_streams late((uint64_t)(n + 1000 * list));
    wrapped_trial.feed = list;
    ct_note("parts %d", (int)list);
    check_definite(devices, n, HONE_NO_TRANS);
  }
  wrapped_trial.feed = 0;
}

TEST_OF(several_cholesky, work_that_is_late) {
  check_late(2, 1100, 9);
  check_late(3, 1290, 3);
  check_late(5, 1400, 1);
}

TEST_OF(several_cholesky, work_that_is_late_beside_look_ahead) {
  wrapped_trial.ahead_from = 256;
  check_late(2, 1311, 4);
  check_late(3, 1300, 2);
  wrapped_trial.outer = 256;
  check_late(2, 1900, 2);
  wrapped_trial = {};
}

/* A page of A's first part becomes slow when the factorization begins. */
int slow_down(void *byte, const hone_progress *event) {
  if (strcmp(event->phase, "factor") == 0 && event->fraction == 0.0)
    slow_page::begin(byte);
  return 0;
}

/* One piece of the first part is on its way when the last part has arrived: the
   copies between devices must wait for it. */
TEST_OF(several_cholesky, first_part_that_arrives_last) {
  const narrow_panels narrow;
  const int64_t n = order_of(1100), width = 128 / HONE_PARTS;
  const problem p = definite(n, HONE_NO_TRANS, 31);
  const slow_page memory(p.a.size() * sizeof(entry));
  entry *const a = static_cast<entry *>(memory.data());
  hone_options o = options_of(2, HONE_STRUCTURE_SPD);
  o.progress = slow_down;
  o.progress_user = a + n - 1 + (width + width / 2) * n; /* of device 1 */
  wrapped_trial.feed = 3;
  for (uint64_t seed = 0; seed < 4; seed++) {
    const several_devices two(2);
    const hone_emulate::late_streams late(seed);
    std::vector<entry> x((size_t)n);
    hone_report r = HONE_REPORT_INIT;
    memcpy(static_cast<void *>(a), p.a.data(), p.a.size() * sizeof(entry));
    CHECK_EQ_INT(hone_solve(n, 1, a, n, p.b.data(), n, x.data(), n, &o, &r),
                 HONE_OK);
    CHECK_CONTAINS(r.path, path_of(2).c_str());
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
    CHECK_EQ_INT(r.host_passes, 0);
  }
  wrapped_trial.feed = 0;
}

TEST_OF(several_cholesky, bits_do_not_depend_on_the_order_of_work) {
  const several_devices two(2);
  const narrow_panels narrow;
  problem p = definite(order_of(1200), HONE_NO_TRANS, 21);
  hone_options o = options_of(2);
  std::vector<entry> first((size_t)p.n), x((size_t)p.n);
  for (int64_t j = 0; j < p.n; j++) /* parts have scales of their own */
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] = shifted(
          p.a.data()[i + j * p.n], (int)(3 * i / p.n) + (int)(3 * j / p.n));
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

TEST_OF(several_cholesky, devices_that_cannot_reach_each_other) {
  const several_devices three(3);
  hone_emulate::devices.peers = false;
  const hone_report r =
      solve(definite(order_of(800), HONE_NO_TRANS, 7), options_of(3), HONE_OK);
  CHECK_CONTAINS(r.path, path_of(3).c_str());
  CHECK((int64_t)hone_emulate::devices.peer_bytes > 0);
  CHECK_EQ_INT((int64_t)hone_emulate::devices.staged_bytes,
               (int64_t)hone_emulate::devices.peer_bytes);
}

TEST_OF(several_cholesky, parts_of_one_device_stand_in_for_several) {
  const several_devices two(2);
  const narrow_panels narrow;
  wrapped_trial.logical = 3;
  const hone_report r =
      solve(definite(order_of(900), HONE_NO_TRANS, 10), options_of(2), HONE_OK);
  wrapped_trial.logical = 0;
  CHECK_CONTAINS(r.path, path_of(3).c_str());
  CHECK_EQ_INT((int64_t)hone_emulate::devices.peer_bytes, 0);
}

/* Where A is not symmetric, in the triangle that is not sent, LU follows a
   sample. After a wrong claim the factors serve if they contract. */
TEST_OF(several_cholesky, lu_follows_where_a_is_not_symmetric) {
  const several_devices three(3);
  for (int structure : {HONE_STRUCTURE_AUTO, HONE_STRUCTURE_SPD}) {
    problem p = definite(700, HONE_NO_TRANS, 11);
    for (int64_t j : {699, 300}) /* another device's column each */
      p.a.data()[100 + j * p.n] += 1e-3;
    p.multiply(HONE_NO_TRANS);
    const hone_report r = solve(p, options_of(3, structure), HONE_OK);
    if (structure == HONE_STRUCTURE_AUTO)
      CHECK_CONTAINS(r.path, "single LU (fp16x3, tournament pivoting, 3 GPUs)");
    CHECK(r.host_passes > 0 || structure == HONE_STRUCTURE_AUTO);
  }
}

TEST_OF(several_cholesky, lu_follows_where_a_is_not_positive_definite) {
  const several_devices two(2);
  for (int64_t at : {3, 411}) {
    const problem p = definite(600, HONE_NO_TRANS, 12, at);
    const hone_report r = solve(p, options_of(2, HONE_STRUCTURE_SPD), HONE_OK);
    CHECK_CONTAINS(r.path, "single LU (fp16x3, tournament pivoting, 2 GPUs)");
  }
}

/* A = (I - 2 u u^T) D (I - 2 u u^T), the eigenvalues D falling by a constant
   ratio to 'least'; complex: its rows turned by angles of their own, and its
   columns back. */
problem falling_definite(int64_t n, double least, uint64_t seed) {
  problem p(n, HONE_NO_TRANS, seed);
  numbers r = {seed + 1};
  const std::vector<double> u = r.array<double>(n), turns = r.array<double>(n);
  std::vector<double> d;
  double uu = 0.0, udu = 0.0;
  for (int64_t i = 0; i < n; i++) {
    d.push_back(std::pow(least, (double)i / (double)(n - 1)));
    uu += u.data()[i] * u.data()[i];
    udu += u.data()[i] * d.data()[i] * u.data()[i];
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i <= j; i++) {
      const double ui = u.data()[i], uj = u.data()[j];
      const double v = (i == j ? d.data()[i] : 0.0) -
                       2.0 / uu * ui * uj * (d.data()[i] + d.data()[j]) +
                       4.0 / uu / uu * ui * udu * uj;
      const entry e = v * turned(6.0 * (turns.data()[i] - turns.data()[j]));
      p.a.data()[i + j * n] = e;
      p.a.data()[j + i * n] = narrow(conjugate(wide_entry(e)));
    }
  p.multiply(HONE_NO_TRANS);
  return p;
}

/* The factorization is given up when its pivots, the squares of U's diagonal,
   have fallen too fast; A has been seen as a whole all the same. */
TEST_OF(several_cholesky, pivots_that_fall_too_fast_are_seen) {
  const several_devices two(2);
  const narrow_panels narrow;
  const problem p = falling_definite(order_of(1400), 1e-14, 33);
  double norm1 = 0.0;
  for (int64_t j = 0; j < p.n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < p.n; i++)
      sum += std::abs(p.a.data()[i + j * p.n]);
    norm1 = std::fmax(norm1, sum);
  }
  const hone_options o = options_of(2, HONE_STRUCTURE_SPD);
  std::vector<entry> x((size_t)p.n);
  hone_report r = HONE_REPORT_INIT;
  const int st = hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, x.data(),
                            p.n, &o, &r);
  CHECK(st == HONE_OK || st == HONE_ILL_CONDITIONED);
  CHECK_CONTAINS(r.path, "2 GPUs) set aside");
  CHECK_CONTAINS(r.reason, "single Cholesky: the pivots fall too fast");
  CHECK_NEAR(r.norm1, norm1, 1e-12 * norm1);
}

/* In the triangle that is sent and in the other one, of each device. */
TEST_OF(several_cholesky, entries_that_are_not_finite_are_found) {
  const several_devices two(2);
  for (double v : {(double)NAN, (double)INFINITY})
    for (int64_t i : {17, 590})
      for (int64_t j : {100, 300, 500}) {
        problem p = definite(600, HONE_NO_TRANS, 15);
        p.a.data()[i + j * p.n] = v;
        const hone_report r = solve(p, options_of(2), HONE_NOT_FINITE_A);
        CHECK_EQ_INT(r.bad_row, i);
        CHECK_EQ_INT(r.bad_col, j);
      }
}

/* Rows and columns in other units: A is scaled, and factored again from the
   copies on the devices. */
TEST_OF(several_cholesky, scales_what_is_on_the_devices) {
  const several_devices two(2);
  const narrow_panels narrow;
  const hone_emulate::late_streams late(22);
  problem p = definite(order_of(1401), HONE_NO_TRANS, 11);
  for (int64_t j = 0; j < p.n; j++)
    for (int64_t i = 0; i < p.n; i++)
      p.a.data()[i + j * p.n] =
          shifted(p.a.data()[i + j * p.n],
                  (int)(i % 7) * 60 - 180 + (int)(j % 7) * 60 - 180);
  for (int64_t i = 0; i < p.n; i++)
    p.b.data()[i] = shifted(p.b.data()[i], (int)(i % 7) * 60 - 180);
  const hone_report r = solve(p, options_of(2), HONE_OK);
  CHECK(r.scale_exponent_max > 0);
  CHECK_EQ_INT(r.precision, 32);
  CHECK_CONTAINS(r.path, path_of(2).c_str());
}

/* The diagonal falls by 2^-60 from one device's columns to the other's. */
TEST_OF(several_cholesky, columns_of_other_magnitudes) {
  const several_devices two(2);
  for (int step : {-30, -8, 8, 30}) {
    problem p = definite(700, HONE_NO_TRANS, 19);
    for (int64_t j = 0; j < p.n; j++)
      for (int64_t i = 0; i < p.n; i++)
        p.a.data()[i + j * p.n] =
            shifted(p.a.data()[i + j * p.n],
                    step * ((int)(i / 128 % 2) + (int)(j / 128 % 2)));
    p.multiply(HONE_NO_TRANS);
    const hone_report r = solve(p, options_of(2), HONE_OK);
    CHECK_CONTAINS(r.path, "single Cholesky (");
    CHECK_CONTAINS(r.path, "2 GPUs");
  }
}

TEST_OF(several_cholesky, a_kept_solver_factors_and_solves_many_columns) {
  const several_devices two(2);
  const int64_t n = order_of(650), k = 137; /* a second round has 9 of them */
  const problem p = definite(n, HONE_NO_TRANS, 12);
  const problem q = definite(n, HONE_NO_TRANS, 13);
  entry_solver *solver = nullptr;
  hone_options o = options_of(2);
  numbers r = {99};
  const std::vector<entry> b = uniform_entries(&r, n * k);
  CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  for (const problem *of : {&p, &q}) {
    hone_report report = HONE_REPORT_INIT;
    CHECK_EQ_INT(hone_solver_factor(solver, of->a.data(), n, &report), HONE_OK);
    CHECK_CONTAINS(report.path, path_of(2).c_str());
    check_columns(solver, *of, of == &p ? k : 9, b);
  }
  hone_solver_destroy(&solver);
}

TEST_OF(several_cholesky, takes_a_in_pinned_and_in_device_memory) {
  const several_devices two(2);
  const problem p = definite(700, HONE_NO_TRANS, 18);
  const size_t bytes = p.a.size() * sizeof(entry);
  entry *pinned = nullptr, *there = nullptr;
  MUST(cudaMallocHost(&pinned, bytes));
  MUST(cudaMalloc(&there, bytes));
  MUST(cudaMemcpy(there, p.a.data(), bytes, cudaMemcpyHostToDevice));
  MUST(cudaDeviceSynchronize());
  std::copy(p.a.begin(), p.a.end(), pinned);
  const hone_options o = options_of(2);
  for (const entry *a : {pinned, there}) {
    std::vector<entry> x((size_t)p.n);
    hone_report r = HONE_REPORT_INIT;
    CHECK_EQ_INT(
        hone_solve(p.n, 1, a, p.n, p.b.data(), p.n, x.data(), p.n, &o, &r),
        HONE_OK);
    CHECK_CONTAINS(r.path, path_of(2).c_str());
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK(is_answer(p, HONE_NO_TRANS, x.data()));
  }
  MUST(cudaFree(there));
  MUST(cudaFreeHost(pinned));
}

int stop_at_half(void *, const hone_progress *event) {
  return strcmp(event->phase, "factor") == 0 && event->fraction >= 0.5;
}

/* Cholesky's engine serves the next call of its kind, and none for LU. */
TEST_OF(several_cholesky, engines_are_kept_between_calls) {
  const several_devices two(2);
  const size_t before = hone_emulate::owned_now();
  const problem p = definite(700, HONE_NO_TRANS, 27);
  const hone_report first = solve(p, options_of(2), HONE_OK);
  const size_t kept = hone_emulate::owned_now();
  CHECK(kept > before);
  hone_options o = options_of(2);
  o.progress = stop_at_half;
  (void)solve(p, o, HONE_CANCELLED);
  o.progress = nullptr;
  const hone_report r = solve(p, o, HONE_OK);
  CHECK_EQ_INT(r.device_bytes, first.device_bytes);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)kept);
  CHECK_CONTAINS(solve(p, options_for(2), HONE_OK).path, "single LU (");
  CHECK_CONTAINS(solve(p, options_of(2), HONE_OK).path, path_of(2).c_str());
  CHECK(hone_release_kept() > 0);
  CHECK_EQ_INT((int64_t)hone_emulate::owned_now(), (int64_t)before);
}

/* Factors differ by roundings alone. */
TEST_OF(several_cholesky, growth_is_that_of_one_device) {
  const several_devices three(3);
  const problem p = definite(order_of(900), HONE_NO_TRANS, 32);
  const hone_report one = solve(p, options_of(0), HONE_OK);
  CHECK_CONTAINS(one.path, "single Cholesky");
  const double all = solve(p, options_of(3), HONE_OK).growth;
  CHECK_NEAR(all, one.growth, 1e-3 * one.growth);
}

/* Each device has all of F, and its columns of A. */
TEST_OF(several_cholesky, the_memory_of_each_device_is_told_beforehand) {
  const int64_t n = 8192, entries = n * n * (int64_t)sizeof(entry);
  int64_t lu = 0, cholesky = 0, least = 0;
  hone_options o = options_for(4);
  CHECK_EQ_INT(hone_device_memory_needed(n, &o, &lu, &least), HONE_OK);
  o.structure = HONE_STRUCTURE_AUTO;
  CHECK_EQ_INT(hone_device_memory_needed(n, &o, &cholesky, &least), HONE_OK);
  CHECK(cholesky >= entries / 2 + entries / 4);
  CHECK(cholesky < entries + 400 * n * (int64_t)sizeof(entry) * 8);
}

TEST_OF(several_cholesky, keeps_within_the_memory_that_is_told) {
  const several_devices two(2);
  const problem p = definite(1100, HONE_NO_TRANS, 19);
  hone_options o = options_of(2);
  int64_t needed = 0;
  CHECK_EQ_INT(hone_device_memory_needed(p.n, &o, &needed, nullptr), HONE_OK);
  o.device_memory_limit_bytes = needed;
  const hone_report r = solve(p, o, HONE_OK);
  CHECK_CONTAINS(r.path, path_of(2).c_str());
  CHECK(r.device_bytes <= 2 * needed);
  o.device_memory_limit_bytes = needed / 3;
  CHECK(strstr(solve(p, o, HONE_OK).path, "2 GPUs)") == nullptr);
}

/* Every call of CUDA fails once: x is right all the same, by other means, or
   there is none. Nothing is left behind. */
TEST_OF(several_cholesky, survives_every_failed_call) {
  const several_devices two(2);
  const problem p = definite(520, HONE_NO_TRANS, 16);
  const hone_options o = options_of(2);
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
    step = at < 60 ? 3 : 31 * HONE_PARTS;
  }
  CHECK(at > 400);
  CHECK(answered > failed);
}

} // namespace
