/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the factors of several emulated devices do not serve, the ladder goes
   on with LU in double on one of them, whose memory other engines and other
   processes may have. */
#include "tests/emulate/several_problem.h"

namespace {

/* Other processes take so much of the devices' memory, when half of a matrix is
   factored, that less is free than LU in double needs. */
struct taking {
  int devices;  /* from these, the first ones, */
  bool for_all; /* and what Hone has there too */
  int64_t n;
};
int take_memory(void *user, const hone_progress *event) {
  const taking *t = static_cast<const taking *>(user);
  int before = 0;
  if (strcmp(event->phase, "factor") != 0 || !(event->fraction >= 0.5))
    return 0;
  MUST(cudaGetDevice(&before));
  for (int d = 0; d < t->devices; d++) {
    size_t unused = 0, total = 0;
    MUST(cudaSetDevice(d));
    MUST(cudaMemGetInfo(&unused, &total));
    const size_t left = (size_t)(4 * t->n * t->n);
    if (t->for_all)
      hone_emulate::devices.others[d] = total - left;
    else if (unused > left)
      hone_emulate::devices.others[d] += unused - left;
  }
  MUST(cudaSetDevice(before));
  return 0;
}
hone_options options_taking(int devices, taking *t) {
  hone_options o = options_for(devices);
  o.progress = take_memory;
  o.progress_user = t;
  return o;
}

struct kept_solver {
  hone_solver *solver = nullptr;
  int64_t n;
  kept_solver(int64_t order, const hone_options &o) : n(order) {
    CHECK_EQ_INT(hone_solver_create(&solver, n, &o), HONE_OK);
  }
  ~kept_solver() { hone_solver_destroy(&solver); }
  kept_solver(const kept_solver &) = delete;
  kept_solver &operator=(const kept_solver &) = delete;

  hone_report factor(const problem &p) {
    hone_report r = HONE_REPORT_INIT;
    CHECK_EQ_INT(hone_solver_factor(solver, p.a.data(), n, &r), HONE_OK);
    return r;
  }
  hone_report update(const problem &p) {
    hone_report r = HONE_REPORT_INIT;
    CHECK_EQ_INT(hone_solver_update(solver, p.a.data(), n, &r), HONE_OK);
    return r;
  }
  hone_report solve(const problem &p) {
    hone_report r = HONE_REPORT_INIT;
    std::vector<double> x((size_t)n);
    CHECK_EQ_INT(
        hone_solver_solve(solver, 1, p.b.data(), n, x.data(), n, nullptr, &r),
        HONE_OK);
    CHECK(backward_error(p, false, x.data()) <= 4 * 0x1p-53 * (1 + 1e-9));
    return r;
  }
};

const char *const IN_DOUBLE = "2 GPUs) set aside, double LU (cuSOLVER), ";

TEST(several_double, follows_on_one_device) {
  const several_devices two(2);
  const hone_report r =
      solve(ill_conditioned(520, false), options_for(2), HONE_OK);
  CHECK_CONTAINS(r.path, IN_DOUBLE);
  CHECK_CONTAINS(r.reason, "single LU: the pivots fall too fast");
  CHECK_EQ_INT(r.precision, 64);
}

/* A solver keeps the engines of its first matrix for the next one; where there
   is no memory for both, that of several devices gives way, and for the next
   matrix the other one. */
TEST(several_double, takes_the_memory_of_the_engine_of_several) {
  const several_devices two(2);
  taking t = {2, false, 520};
  const problem easy(520, false, 43), hard = ill_conditioned(520, false);
  const int64_t bytes =
      kept_solver(520, options_for(2)).factor(easy).device_bytes;
  kept_solver s(520, options_taking(2, &t));
  for (int round = 0; round < 2; round++) {
    ct_note("round %d", round);
    CHECK_CONTAINS(s.factor(hard).path, "double LU (cuSOLVER)");
    CHECK_CONTAINS(s.solve(hard).path, IN_DOUBLE);
    for (auto &others : hone_emulate::devices.others)
      others = 0;
    const hone_report r = s.factor(easy);
    CHECK(strstr(r.path, "set aside") == nullptr);
    CHECK_EQ_INT(r.device_bytes, bytes);
    CHECK_CONTAINS(s.solve(easy).path, "2 GPUs), ");
  }
}

/* Here the factors serve, but one correction is not enough. The next update
   finds no factors of several devices, and factors anew. */
TEST(several_double, factors_anew_where_the_first_factors_gave_way) {
  const several_devices two(2);
  for (int devices : {2, 0}) {
    taking t = {2, false, 520};
    hone_options o = options_taking(devices, &t);
    o.max_iterations = 1;
    kept_solver s(520, o);
    const problem p(520, false, 44), q(520, false, 45);
    ct_note("%d devices", devices);
    CHECK_CONTAINS(s.factor(p).path, "single LU");
    CHECK_EQ_INT(s.solve(p).precision, 64);
    CHECK_CONTAINS(s.update(q).path, "single LU");
    CHECK_EQ_INT(s.solve(q).precision, 64);
  }
}

/* Where the first device has none, another one that the caller allows is used;
   without that the CPU. */
TEST(several_double, is_on_a_device_that_has_memory) {
  for (int trans : {HONE_NO_TRANS, HONE_TRANS})
    for (int taken : {1, 2})
      for (int devices : {3, 2}) {
        const several_devices three(3);
        taking t = {taken, true, 520};
        hone_options o = options_taking(devices, &t);
        int now = -1;
        o.trans = trans;
        ct_note("trans %d, %d of %d without memory", trans, taken, devices);
        const hone_report r =
            solve(ill_conditioned(520, trans != HONE_NO_TRANS), o, HONE_OK);
        CHECK_EQ_INT(r.precision, 64);
        CHECK_EQ_INT(strstr(r.path, "double LU (cuSOLVER)") != nullptr,
                     devices > taken);
        MUST(cudaGetDevice(&now));
        CHECK_EQ_INT(now, 0);
      }
}

} // namespace
