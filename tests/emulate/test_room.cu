/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of a factorization on emulated devices: which of them leave room
   for a panel that is factored beside them (gpu_sp/factor/outer_panels.cu), and
   how many there are. */
#include "gpu_sp/layout.h"
#include "tests/emulate/several_problem.h"

namespace {

struct made {
  std::vector<entry> x;
  hone_report report;
  long products, with_room;
};

/* Solves with so many devices, and counts products. */
made solve_and_count(const problem &p, int devices, int structure) {
  const several_devices present(devices);
  hone_options o = options_for(devices);
  made m = {std::vector<entry>((size_t)p.n), HONE_REPORT_INIT, 0, 0};
  o.structure = structure;
  o.deterministic = 1;
  const long products = hone_emulate::products_made,
             with_room = hone_emulate::products_with_room;
  CHECK_EQ_INT(hone_solve(p.n, 1, p.a.data(), p.n, p.b.data(), p.n, m.x.data(),
                          p.n, &o, &m.report),
               HONE_OK);
  CHECK(is_answer(p, HONE_NO_TRANS, m.x.data()));
  m.products = hone_emulate::products_made - products;
  m.with_room = hone_emulate::products_with_room - with_room;
  return m;
}

bool same_bits(const made &one, const made &other) {
  return memcmp(one.x.data(), other.x.data(),
                one.x.size() * sizeof one.x.data()[0]) == 0;
}

/* However the columns of a product are divided, emulated ones give the same
   bits; so a part that is multiplied by the wrong rows of U would show. */
struct divided {
  const int devices;
  const problem p;
  const made alone;

  /* A device has 512 columns, and half as many, beside two panels. */
  explicit divided(int count)
      : devices(count),
        p(count * (HONE_PARTS > 1 ? 950 : 1060), HONE_NO_TRANS, 5),
        alone(solve_with(p.n + 1, 0.0, 0)) {
    CHECK_EQ_INT(alone.with_room, 0);
  }
  made solve_with(int64_t ahead_from, double beside, int64_t strip) const {
    wrapped_trial = {};
    wrapped_trial.outer = 128 / HONE_PARTS;
    wrapped_trial.feed = 1 + HONE_PARTS_WHOLE;
    wrapped_trial.ahead_from = ahead_from;
    wrapped_trial.beside = beside;
    wrapped_trial.strip = strip;
    const made m = solve_and_count(p, devices, HONE_STRUCTURE_GENERAL);
    wrapped_trial = {};
    return m;
  }
  /* Solves with room for much work and for little, which 512 columns use up. */
  void check(int64_t strip) const {
    const made all = solve_with(256, 0.0, strip);
    const made some = solve_with(256, 1e4, strip);
    ct_note("%d devices, strips of %d: %d products with room, %d", devices,
            (int)strip, (int)all.with_room, (int)some.with_room);
    CHECK(all.with_room >= 4);
    CHECK(some.with_room >= 4);
    CHECK(strip > 0 ? some.with_room < all.with_room
                    : some.with_room <= all.with_room);
    CHECK(strip > 0 || some.products > all.products);
    CHECK(same_bits(all, alone));
    CHECK(same_bits(some, alone));
  }
};

TEST_OF(room, is_left_for_a_panel_until_it_is_factored) {
  const divided one(1);
  one.check(0);
  one.check(512);
}

TEST_OF(room, is_left_by_several_devices) { divided(2).check(512); }

/* A panel in parts has the thread blocks of one part. It takes longer, and so
   more is multiplied beside it. */
TEST_OF(room, is_left_beside_a_panel_in_parts) {
  const problem p(order_of(900), HONE_NO_TRANS, 13);
  wrapped_trial.outer = 128 / HONE_PARTS;
  wrapped_trial.feed = 1 + HONE_PARTS_WHOLE;
  wrapped_trial.part_rows = 256;
  wrapped_trial.ahead_from = p.n + 1;
  const made alone = solve_and_count(p, 1, HONE_STRUCTURE_GENERAL);
  wrapped_trial.ahead_from = 256;
  wrapped_trial.strip = 256;
  wrapped_trial.beside =
      1.8e6; /* a strip uses up that of a panel of one part */
  const made parts = solve_and_count(p, 1, HONE_STRUCTURE_GENERAL);
  wrapped_trial.part_rows = 0;
  const made low = solve_and_count(p, 1, HONE_STRUCTURE_GENERAL);
  wrapped_trial = {};
  ct_note("%d products with room, %d", (int)parts.with_room,
          (int)low.with_room);
  CHECK(low.with_room >= 4);
  CHECK(parts.with_room > low.with_room);
  CHECK(same_bits(parts, alone));
}

/* Block columns that come later are updated by products of the same shape
   whenever they come: they leave no room, though there may be a panel. */
TEST_OF(room, is_left_by_one_product_for_each_panel) {
  const int64_t n = HONE_PARTS > 1 ? 1000 : 1500, outer = 64;
  const problem p(n, HONE_NO_TRANS, 11);
  for (int devices : {1, 2}) {
    wrapped_trial.ahead_from = 256;
    wrapped_trial.outer = outer;
    const made m = solve_and_count(p, devices, HONE_STRUCTURE_GENERAL);
    wrapped_trial = {};
    ct_note("%d devices: %d products with room", devices, (int)m.with_room);
    CHECK(m.with_room >= 4);
    CHECK(m.with_room <= (n + outer - 1) / outer);
  }
}

/* Their panels are short, and products in single precision are long. */
TEST_OF(room, is_not_left_where_it_does_not_pay) {
  const int64_t n = order_of(1100);
  problem p(n, HONE_NO_TRANS, 7);
  wrapped_trial.ahead_from = 256;
  wrapped_trial.outer = 128 / HONE_PARTS;
  const made general = solve_and_count(p, 1, HONE_STRUCTURE_GENERAL);
  CHECK(general.with_room > 0);
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < j; i++)
      p.a.data()[j + i * n] =
          narrow(conjugate(wide_entry(p.a.data()[i + j * n])));
    p.a.data()[j + j * n] = 2.0 * std::sqrt((double)n);
  }
  p.multiply(HONE_NO_TRANS);
  const made definite = solve_and_count(p, 1, HONE_STRUCTURE_SPD);
  CHECK_EQ_INT(definite.with_room, 0);
  wrapped_trial = {};
}

/* A matrix in other units is factored once: it is not scaled, which is known
   only when a device has all of A, and has factored it. */
TEST_OF(room, no_matrix_is_factored_twice_for_its_units) {
  const problem p(order_of(1100), HONE_NO_TRANS, 9);
  const made one = solve_and_count(p, 1, HONE_STRUCTURE_GENERAL);
  for (int e : {-58, -37, 12, 33, 58, 70, -70}) {
    problem other = p;
    for (entry &v : other.a)
      v = shifted(v, e);
    for (entry &v : other.b)
      v = shifted(v, e);
    const made m = solve_and_count(other, 1, HONE_STRUCTURE_GENERAL);
    const bool near = e > -60 && e < 60;
    ct_note("times 2^%d: %s", e, m.report.path);
    CHECK_EQ_INT(m.report.scale_exponent_max != 0 ||
                     m.report.scale_exponent_min != 0,
                 !near);
    CHECK_EQ_INT(m.products > one.products, !near);
    if (near)
      CHECK(same_bits(m, one));
  }
}

} // namespace
