/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ahead on one emulated device whose work is done late, in one of the
   orders that CUDA allows (emulate_late.h): the panels, the updates of the next
   panel's columns, and the other products are on streams of their own. Where
   one does not wait for another, x has other bits, or the growth factor is
   another one. */
#include "api/hone_tuning.h"
#include "gpu_sp/layout.h"
#include "tests/emulate/several_problem.h"

namespace {

struct answer {
  std::vector<entry> x;
  double growth;
};

answer solve(const problem &p, int32_t arithmetic) {
  answer got = {std::vector<entry>((size_t)p.n), 0.0};
  hone_report report = HONE_REPORT_INIT;
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_options o = options_for(1);
  tuning.arithmetic = arithmetic;
  o.tuning = &tuning;
  o.deterministic = 1;
  CHECK_EQ_INT(hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n,
                          got.x.data(), p.n, &o, &report),
               HONE_OK);
  got.growth = report.growth;
  return got;
}

/* The two matrices come in turn: the other's numbers are in all buffers. */
void check_orders(const problem &p, const problem &other, int32_t arithmetic,
                  uint64_t seeds = 3) {
  const problem *const both[] = {&p, &other};
  const answer first[] = {solve(p, arithmetic), solve(other, arithmetic)};
  for (int i = 0; i < 2; i++)
    CHECK(is_answer(*both[i], HONE_NO_TRANS, first[i].x.data()));
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    const answer &right = first[(seed + 1) % 2];
    const hone_emulate::late_streams late(seed);
    ct_note("n %d, outer panels of %d, order %d", (int)p.n,
            (int)wrapped_trial.outer, (int)seed);
    const answer now = solve(*both[(seed + 1) % 2], arithmetic);
    CHECK(memcmp(now.x.data(), right.x.data(), now.x.size() * sizeof(entry)) ==
          0);
    CHECK(now.growth == right.growth && right.growth > 0.0);
  }
}

/* A problem whose largest entries, and so those of U, are in the last columns:
   the rows of U of the panel before the last one are computed ahead there. */
problem heavy_at_the_end(int64_t n, int64_t columns, uint64_t seed) {
  problem p(n, HONE_NO_TRANS, seed);
  for (size_t i = (size_t)((n - columns) * n); i < p.a.size(); i++)
    p.a[i] = shifted(p.a[i], 3);
  p.multiply(HONE_NO_TRANS);
  return p;
}

/* Outer panels of the least number of inner panels and of more, in several
   block columns and those of two in one, too; the last panel is a narrow one.
 */
void check_look_ahead(hone_trial trial, int least = 1,
                      int32_t arithmetic = HONE_ARITHMETIC_AUTO) {
  const several_devices one(1);
  const int64_t n = order_of(540) + 13;
  trial.ahead_from = 1;
  for (int inner = least; inner <= 3; inner++)
    for (int whole = 0; whole <= (inner == 2); whole++) {
      const int64_t last = n % (inner * HONE_PANEL);
      const problem p = heavy_at_the_end(n, last, 31);
      const problem other = heavy_at_the_end(n, last, 32);
      trial.outer = inner * HONE_PANEL;
      trial.feed = whole ? 1 + HONE_PARTS_WHOLE : 0;
      wrapped_trial = trial;
      check_orders(p, other, arithmetic);
    }
  wrapped_trial = {};
}

/* On the stream of the products, or on one of its own. */
hone_trial with_products() {
  hone_trial trial = {};
  trial.stream_from = 1 << 30;
  return trial;
}
hone_trial apart() {
  hone_trial trial = {};
  trial.stream_from = 1;
  return trial;
}

TEST_OF(ahead, columns_are_updated_in_any_order_of_work) {
  check_look_ahead(with_products());
}

TEST_OF(ahead, columns_are_updated_on_a_stream_of_their_own) {
  check_look_ahead(apart());
}

/* Each inner panel waits until L of the one before has been read. */
TEST_OF(ahead, columns_are_updated_with_room_for_one_inner_panel) {
  hone_trial trial = apart();
  trial.one_slot_from = 1;
  check_look_ahead(trial, 2);
}

/* Rows of U alone are computed there, beside all panels but the first, or
   beside those with more rows than the last ones. */
TEST_OF(ahead, rows_of_u_are_computed_where_products_decide) {
  hone_trial trial = apart();
  trial.products_from = 1;
  check_look_ahead(trial);
}

/* A large first block column, so that the next one is loaded, late, while its
   panels are factored. */
void check_loads(int64_t real_order, int64_t products_from, uint64_t seeds) {
  const several_devices one(1);
  const int64_t n = order_of(real_order) + 13;
  hone_trial trial = apart();
  trial.products_from = products_from;
  trial.ahead_from = 1;
  trial.outer = HONE_PANEL;
  trial.feed = 1 + HONE_PARTS_HALVES;
  wrapped_trial = trial;
  const int64_t last = n % trial.outer;
  check_orders(heavy_at_the_end(n, last, 31), heavy_at_the_end(n, last, 32),
               HONE_ARITHMETIC_AUTO, seeds);
  wrapped_trial = {};
}

/* Block columns are loaded by the order of rows that the moves say which were
   composed last. */
TEST_OF(ahead, moves_are_composed_when_block_columns_are_loaded) {
  check_loads(1000, 1, 12);
}

/* Later block columns need L of earlier panels once more, in its place. */
TEST_OF(ahead, l_is_split_again_when_the_stream_ahead_has_read_it) {
  check_loads(1500, 1 << 30, 4);
}

TEST_OF(ahead, rows_of_u_are_computed_until_products_no_longer_decide) {
  hone_trial trial = apart();
  trial.products_from = order_of(540) / 2;
  check_look_ahead(trial);
}

/* These products read L from F, where rows move. */
TEST_OF(ahead, products_in_single_precision_in_any_order_of_work) {
  check_look_ahead(with_products(), 2, HONE_ARITHMETIC_FP32);
  check_look_ahead(apart(), 2, HONE_ARITHMETIC_FP32);
}

} // namespace
