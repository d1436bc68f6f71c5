/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of which the kernels of blocks are made, in the baseline
   instruction set: scaling, factors, substitution, residuals, and what random
   vectors say of factors. For real entries and, compiled with HONE_COMPLEX, for
   complex ones. */
#include "cpu_batch/certify.h"
#include "cpu_batch/factor.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>

#ifdef HONE_COMPLEX
static const char *const suite = "batch_lanes_complex";
#else
static const char *const suite = "batch_lanes";
#endif

/* A block with random matrices, n x n, one behind the other in a. */
typedef struct lot {
  int64_t n;
  double *a, *memory, *side, *to;
  hone_block block;
  hone_block_matrix matrices[HONE_BLOCK_LANES];
  parts p;
} lot;

static lot make(int64_t n) {
  lot t = {.n = n};
  sup_rng rng = {(uint64_t)n};
  const int64_t one = n * n * HONE_PARTS;
  t.a = sup_filled(LANES * one, 0.0);
  t.memory = sup_aligned(bytes_of(n) / (int64_t)sizeof(double), HONE_NAN);
  t.side = sup_aligned(LANES * n * HONE_PARTS, 0.0);
  t.to = sup_aligned(LANES * n * HONE_PARTS, HONE_NAN);
  for (int64_t i = 0; i < LANES * one; i++)
    t.a[i] = sup_uniform(&rng);
  for (int64_t i = 0; i < LANES * n * HONE_PARTS; i++)
    t.side[i] = sup_uniform(&rng);
  t.block = (hone_block){.n = n, .memory = t.memory};
  t.p = parts_of(&t.block);
  for (int l = 0; l < LANES; l++)
    t.matrices[l] = (hone_block_matrix){
        .at = (const hone_entry *)t.a + l * n * n, .row = 1, .column = n};
  return t;
}

static void discard(lot *t) {
  sup_free(t->a);
  sup_free(t->memory);
  sup_free(t->side);
  sup_free(t->to);
}

static double *entry(const lot *t, int l, int64_t i, int64_t j) {
  return t->a + (l * t->n * t->n + i + j * t->n) * HONE_PARTS;
}

/* Dominant, so that the matrices are well conditioned. */
static void add_diagonal(lot *t) {
  for (int l = 0; l < LANES; l++)
    for (int64_t i = 0; i < t->n; i++)
      *entry(t, l, (i + 2) % t->n, i) += 1.0 + sqrt((double)t->n);
}

static hone_wide wide_of(const many *v, int l) {
  return (hone_wide)lane_of(v, l);
}

static double size_at(const many *v, int l) { return hone_abs(lane_of(v, l)); }

static bool holds(mask v, int l) { return v[l] != 0; }

static const int64_t orders[] = {1,  2,  3,  4,  5,  8,  11, 12,
                                 13, 16, 17, 25, 63, 64, 65, 81};
enum { ORDERS = sizeof orders / sizeof *orders };

/* ---- Scaling ------------------------------------------------------------ */

static bool is_power_of_two(double v) {
  int e;
  return frexp(v, &e) >= 0.5 && frexp(v, &e) <= 0.5;
}

/* S = R A C exactly, with powers of two; its norms and those of A. */
static void check_scaled(const lot *t, const packed *a, int l) {
  const int64_t n = t->n, ld = t->p.ld;
  double rows = 0.0, columns = 0.0, scaled_columns = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double row = 0.0, column = 0.0, scaled_column = 0.0, most = 0.0;
    CHECK(is_power_of_two(t->p.row[i][l]) && is_power_of_two(t->p.col[i][l]));
    for (int64_t j = 0; j < n; j++) {
      const many *s = &t->p.s[j + i * ld];
      row += hone_abs(*(hone_entry *)(void *)entry(t, l, i, j));
      column += hone_abs(*(hone_entry *)(void *)entry(t, l, j, i));
      scaled_column += size_at(s, l);
      for (int q = 0; q < HONE_PARTS; q++) {
        CHECK_NEAR(s->part[q][l],
                   entry(t, l, j, i)[q] * t->p.row[j][l] * t->p.col[i][l], 0.0);
        CHECK_NEAR(t->p.f[j + i * ld].part[q][l], s->part[q][l], 0.0);
        most = fmax(most, fabs(s->part[q][l]));
      }
    }
    if (!holds(a->plain, l)) /* the largest part of a column of S */
      CHECK(most >= 1.0 && most < 2.0);
    rows = fmax(rows, row);
    columns = fmax(columns, column);
    scaled_columns = fmax(scaled_columns, scaled_column);
  }
  CHECK_NEAR(a->norm_rows[l], rows, 1e-13 * rows);
  CHECK_NEAR(a->norm_cols[l], columns, 1e-13 * columns);
  CHECK_NEAR(a->norm_scaled[l], scaled_columns, 1e-13 * scaled_columns);
}

/* Lane 0 is scaled in the second round, lane 1 is not. */
static void scale_exactly(const void *arg) {
  (void)arg;
  for (int o = 0; o < ORDERS; o++)
    for (int graded = 0; graded < 2; graded++) {
      lot t = make(orders[o]);
      const int64_t n = t.n;
      for (int64_t i = 0; i < n * n * HONE_PARTS && graded; i++)
        t.a[i] = ldexp(t.a[i], (int)(i / HONE_PARTS % n * 19 % 83) - 60 +
                                   (int)(i / HONE_PARTS / n * 17 % 61));
      ct_note("n %d, graded %d", (int)n, graded);
      const packed a = pack(&t.p, false, t.matrices);
      for (int l = 0; l < LANES; l++) {
        CHECK(holds(a.serves, l));
        check_scaled(&t, &a, l);
      }
      if (graded && n > 4)
        CHECK(!holds(a.plain, 0) && holds(a.plain, 1));
      discard(&t);
    }
}

/* A diagonal of ones and one other entry, of which the rest depends. */
static packed pack_with(double other, double diagonal) {
  lot t = make(3);
  for (int l = 0; l < LANES; l++)
    for (int64_t i = 0; i < 9 * HONE_PARTS; i++)
      entry(&t, l, 0, 0)[i] = i % (4 * HONE_PARTS) == 0 ? diagonal : 0.0;
  *entry(&t, 0, 1, 1) = other;
  const packed a = pack(&t.p, false, t.matrices);
  discard(&t);
  return a;
}

static void take_matrices_within_limits(const void *arg) {
  (void)arg;
  static const struct {
    double other, diagonal;
    bool serves, plain;
  } cases[] = {{1.0, 1.0, true, true},
               {64.0, 1.0, true, true},
               {64.5, 1.0, true, false},
               {0x1p-6, 1.0, true, true},
               {0x1.fp-7, 1.0, true, false},
               {0x1p20, 0x1p20, true, true},
               {0x1.1p20, 0x1p20, true, false},
               {0x1p-20, 0x1p-20, true, true},
               {0x1.fp-21, 0x1p-20, true, false},
               {0x1p300, 1.0, true, false},
               {0x1.1p300, 1.0, false, false},
               {0x1p-300, 1.0, true, false},
               {0x1.fp-301, 1.0, false, false},
               {0.0, 1.0, false, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const packed a = pack_with(cases[i].other, cases[i].diagonal);
    ct_note("%a beside %a", cases[i].other, cases[i].diagonal);
    CHECK_EQ_INT(holds(a.serves, 0), cases[i].serves);
    if (cases[i].serves)
      CHECK_EQ_INT(holds(a.plain, 0), cases[i].plain);
    CHECK(holds(a.serves, 1) && holds(a.plain, 1));
  }
  CHECK(!holds(pack_with(HONE_NAN, 1.0).serves, 0));
  CHECK(!holds(pack_with(-HUGE_VAL, 1.0).serves, 0));
}

/* ---- Factors ------------------------------------------------------------ */

/* Row i of P S = L U, and L is at most 1 in magnitude, or sqrt 2 where pivots
   are chosen by |re| + |im|. */
static void check_factors(const lot *t, int l) {
  const int64_t n = t->n, ld = t->p.ld;
  double miss = 0.0, multiplier = 0.0, inverses = 0.0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      const int64_t r = t->p.from[i][l];
      hone_wide sum = wide_of(&t->p.s[r + j * ld], l);
      for (int64_t k = 0; k <= HONE_MIN(i, j); k++)
        sum -= (k == i ? (hone_wide)1.0L : wide_of(&t->p.f[i + k * ld], l)) *
               wide_of(&t->p.f[k + j * ld], l);
      miss = fmax(miss, (double)hone_absl(sum));
      if (i > j)
        multiplier = fmax(multiplier, size_at(&t->p.f[i + j * ld], l));
      if (i == j)
        inverses = fmax(inverses,
                        (double)hone_absl(wide_of(&t->p.inverse[i], l) *
                                              wide_of(&t->p.f[i + i * ld], l) -
                                          1.0L));
    }
  CHECK_LE(miss, 20.0 * (double)n * SUP_EPS * (2.0 + sqrt((double)n)));
  CHECK_LE(multiplier, HONE_PARTS == 2 ? sqrt(2.0) + 1e-12 : 1.0);
  CHECK_LE(inverses, 8.0 * SUP_EPS);
}

static void check_pivots(const lot *t, const pivots *v, int l) {
  double least = HUGE_VAL, parity = 1.0;
  int64_t at = 0;
  for (int64_t i = 0; i < t->n; i++) {
    const double size = size_of(t->p.f[i + i * t->p.ld])[l];
    if (size < least)
      at = i;
    least = fmin(least, size);
    if (t->p.pivot[i][l] != i)
      parity = -parity;
    CHECK(t->p.pivot[i][l] >= i);
  }
  CHECK_NEAR(v->smallest[l], least, 0.0);
  CHECK_EQ_INT(v->at[l], at);
  CHECK_NEAR(v->parity[l], parity, 0.0);
}

static void factor_every_order(const void *arg) {
  (void)arg;
  for (int o = 0; o < ORDERS; o++)
    for (int dominant = 0; dominant < 2; dominant++) {
      lot t = make(orders[o]);
      if (dominant)
        add_diagonal(&t);
      (void)pack(&t.p, false, t.matrices);
      const pivots v = factor(&t.p, false);
      for (int l = 0; l < LANES; l++) {
        ct_note("n %d, dominant %d, lane %d", (int)t.n, dominant, l);
        check_factors(&t, l);
        check_pivots(&t, &v, l);
      }
      discard(&t);
    }
}

/* A zero column and NaN give a smallest pivot that is not above 0. */
static void see_pivots_that_are_zero_or_nan(const void *arg) {
  (void)arg;
  for (int64_t n = 2; n <= 20; n += 6)
    for (int kind = 0; kind < 2; kind++) {
      lot t = make(n);
      add_diagonal(&t);
      for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < HONE_PARTS; p++)
          entry(&t, 0, i, n / 2)[p] = kind == 0 ? 0.0 : HONE_NAN;
      (void)pack(&t.p, false, t.matrices);
      const pivots v = factor(&t.p, false);
      ct_note("n %d, kind %d", (int)n, kind);
      CHECK(!(v.smallest[0] > 0.0));
      CHECK(v.smallest[1] > 0.0);
      discard(&t);
    }
}

/* ---- Substitution and residuals ----------------------------------------- */

/* max_i |v - op(S) x|_i of one lane, in extended precision. */
static double miss_of(const lot *t, int l, bool turn, const many *v,
                      const many *x) {
  double most = 0.0;
  for (int64_t i = 0; i < t->n; i++) {
    hone_wide sum = wide_of(&v[i], l);
    for (int64_t j = 0; j < t->n; j++)
      sum -= wide_of(&t->p.s[turn ? j + i * t->p.ld : i + j * t->p.ld], l) *
             wide_of(&x[j], l);
    most = fmax(most, (double)hone_absl(sum));
  }
  return most;
}

static void solve_both_ways(const void *arg) {
  (void)arg;
  for (int o = 0; o < ORDERS; o++) {
    lot t = make(orders[o]);
    const int64_t n = t.n;
    const double most = 100.0 * (double)n * SUP_EPS;
    many *v = (many *)t.side, *x = (many *)t.to, *w = t.p.v;
    add_diagonal(&t);
    (void)pack(&t.p, false, t.matrices);
    (void)factor(&t.p, false);
    solve_one(&t.p, v, x);
    for (int l = 0; l < LANES; l++) {
      ct_note("n %d, lane %d", (int)n, l);
      CHECK_LE(miss_of(&t, l, false, v, x), most);
    }
    for (int64_t i = 0; i < n; i++)
      w[i] = v[i];
    solve_transposed(&t.p, w, x);
    for (int l = 0; l < LANES; l++)
      CHECK_LE(miss_of(&t, l, true, v, x), most);
    for (int64_t i = 0; i < n * COLUMNS; i++)
      w[i] = v[i % n];
    solve_columns(&t.p, w, w + n * COLUMNS);
    for (int c = 0; c < COLUMNS; c++)
      for (int l = 0; l < LANES; l++)
        CHECK_LE(miss_of(&t, l, false, v, w + n * (COLUMNS + c)), most);
    discard(&t);
  }
}

/* In double-double the error is that of one rounding, and of the square of eps
   by the denominators. */
static void subtract_exactly_in_residuals(const void *arg) {
  (void)arg;
  for (int o = 0; o < ORDERS; o++) {
    lot t = make(orders[o]);
    const int64_t n = t.n;
    many *c = t.p.v, *y = (many *)t.side, *r = (many *)t.to;
    (void)pack(&t.p, false, t.matrices);
    for (int64_t i = 0; i < n; i++) { /* c = S y, rounded */
      for (int l = 0; l < LANES; l++) {
        hone_wide sum = 0.0L;
        for (int64_t j = 0; j < n; j++)
          sum += wide_of(&t.p.s[i + j * t.p.ld], l) * wide_of(&y[j], l);
        put_lane(&c[i], l, (hone_entry)sum);
      }
    }
    for (int plain = 0; plain < 2; plain++) {
      if (plain)
        plain_residual(&t.p, c, y, r);
      else
        residual(&t.p, c, y, r);
      for (int64_t i = 0; i < n; i++)
        for (int l = 0; l < LANES; l++) {
          hone_wide sum = wide_of(&c[i], l);
          double den = hone_abs(lane_of(&c[i], l));
          for (int64_t j = 0; j < n; j++) {
            sum -= wide_of(&t.p.s[i + j * t.p.ld], l) * wide_of(&y[j], l);
            den += size_at(&t.p.s[i + j * t.p.ld], l) * size_at(&y[j], l);
          }
          ct_note("n %d, plain %d, row %d, lane %d", (int)n, plain, (int)i, l);
          CHECK_NEAR(t.p.den[i][l], den, 1e-13 * den);
          /* The sum here is wrong by some 2^-64 of the terms itself. */
          CHECK_LE((double)hone_absl(sum - wide_of(&r[i], l)),
                   (double)n * den * (plain ? 4.0 * SUP_EPS : 0x1p-62));
        }
    }
    discard(&t);
  }
}

/* ---- The certificate ---------------------------------------------------- */

/* Norms of E = I - inv(M) S, found column by column: lower bounds on what the
   random vectors have to bound. */
typedef struct truth {
  double column, inverse_column;
  double *row; /* n */
} truth;

static truth truth_of(const lot *t, int l) {
  const int64_t n = t->n;
  truth v = {.row = sup_filled(n, 0.0)};
  double *work = sup_aligned(2 * LANES * n * HONE_PARTS, 0.0);
  many *s = (many *)work, *x = s + n;
  for (int64_t j = 0; j < n; j++) {
    double square = 0.0;
    solve_one(&t->p, t->p.s + j * t->p.ld, x);
    for (int64_t i = 0; i < n; i++) {
      const hone_entry e = (i == j ? 1.0 : 0.0) - lane_of(&x[i], l);
      square += hone_abs(e) * hone_abs(e);
      v.row[i] = hypot(v.row[i], hone_abs(e));
      s[i] = nothing();
    }
    v.column = fmax(v.column, sqrt(square));
    s[j].part[0] = all(1.0);
    solve_one(&t->p, s, x);
    square = 0.0;
    for (int64_t i = 0; i < n; i++)
      square += size_at(&x[i], l) * size_at(&x[i], l);
    v.inverse_column = fmax(v.inverse_column, sqrt(square));
  }
  sup_free(work);
  return v;
}

/* Parts of E of the size of eps are rounding errors, which bounds count by
   themselves: vectors of -1 and 1 may have none. */
static void check_certified(const lot *t, const certified *c, int l) {
  const truth v = truth_of(t, l);
  int wrong = 0;
  CHECK_GE(c->by_probes.contraction[l] + SUP_EPS, v.column);
  for (int64_t i = 0; i < t->n; i++)
    wrong += !(t->p.rows[i][l] + SUP_EPS >= v.row[i]);
  CHECK_EQ_INT(wrong, 0);
  if (holds(c->serves, l)) {
    /* inv(S) = inv(I - E) inv(M) */
    CHECK_GE(c->by_probes.inverse[l], v.inverse_column);
    CHECK_LE(c->by_probes.contraction[l], 0.9);
    CHECK_LE(v.column, 0.9);
  }
  sup_free(v.row);
}

/* Spoils one entry of the factors by the share 2^-e: where E is then as large
   as 1 they may not serve, and what is said of E always holds. */
static void bound_what_spoiled_factors_leave(const void *arg) {
  (void)arg;
  static const int64_t sizes[] = {1, 2, 5, 12, 17, 33};
  for (int o = 0; o < 6; o++)
    for (int e = 0; e <= 52; e += 2) {
      lot t = make(sizes[o]);
      const int64_t n = t.n, at = e % n;
      add_diagonal(&t);
      const packed a = pack(&t.p, false, t.matrices);
      (void)factor(&t.p, false);
      many *u = &t.p.f[at + (n - 1) * t.p.ld];
      for (int q = 0; q < HONE_PARTS; q++)
        u->part[q][0] += ldexp(n == 1 ? 4.0 : 16.0, -e);
      t.p.inverse[at].part[0][0] *= 1.0 + ldexp(8.0, -e);
      const certified c = certify(&t.p, &a, (uint64_t)(e + 1));
      for (int l = 0; l < LANES; l++) {
        ct_note("n %d, 2^-%d, lane %d", (int)n, e, l);
        check_certified(&t, &c, l);
      }
      CHECK(holds(c.serves, 1));
      CHECK(e > 2 || !holds(c.serves, 0));
      CHECK(e < 50 || holds(c.serves, 0));
      discard(&t);
    }
}

/* Where the few vectors do not show enough, more of them do: factors that are
   wrong by 2^-10 or so serve with all, as their bound is smaller then. */
static void ask_more_vectors_where_few_do_not_show_enough(const void *arg) {
  (void)arg;
  lot t = make(9);
  add_diagonal(&t);
  const packed a = pack(&t.p, false, t.matrices);
  (void)factor(&t.p, false);
  t.p.inverse[4].part[0][0] *= 1.0 + 0x1p-12;
  const certified c = certify(&t.p, &a, 5);
  CHECK(holds(c.serves, 0) && holds(c.serves, 1));
  CHECK_GE(c.by_probes.contraction[0], 0x1p-12);
  uint64_t seed = 5;
  const shown few = probe(&t.p, COLUMNS, &seed);
  CHECK(!(few.contraction[0] <= 0x1p-6));
  check_certified(&t, &c, 0);
  discard(&t);
}

/* The sums of squares over vectors that are known: the factor of the theorem
   times the root, as docs/numerics.md has it. */
static void multiply_by_the_factor_of_the_theorem(const void *arg) {
  (void)arg;
  lot t = make(3);
  uint64_t seed = 9;
  for (int l = 0; l < LANES; l++)
    for (int64_t i = 0; i < 9 * HONE_PARTS; i++)
      entry(&t, l, 0, 0)[i] = i % (4 * HONE_PARTS) == 0 ? 1.0 : 0.0;
  (void)pack(&t.p, false, t.matrices);
  (void)factor(&t.p, false);
  /* M = 2 S: E = I / 2, and inv(M) = I / 2. */
  for (int64_t i = 0; i < 3; i++)
    t.p.inverse[i].part[0] = all(0.5);
  double squares = 0.0;
  for (int done = 0; done < PROBES_ALL; done += COLUMNS) {
    uint64_t now = seed;
    double drawn[4 * COLUMNS * 3 * HONE_PARTS];
    for (int skip = 0; skip < done; skip += COLUMNS)
      hone_random_units(2 * COLUMNS * 3 * HONE_PARTS, &now, drawn);
    hone_random_units(2 * COLUMNS * 3 * HONE_PARTS, &now, drawn);
    for (int64_t i = 0; i < COLUMNS * 3 * HONE_PARTS; i++)
      squares += 3.0 * drawn[i] * drawn[i] / 4.0;
  }
  const shown v = probe(&t.p, PROBES_ALL, &seed);
  const double bound = hone_probe_factor_of(PROBES_ALL, 1.0) * sqrt(squares);
  CHECK_NEAR(v.contraction[1], bound, 1e-12 * bound);
  CHECK_NEAR(v.inverse[1] * (1.0 - v.contraction[1]), bound, 1e-12 * bound);
  discard(&t);
}

CT_CONSTRUCTOR static void list_checks(void) {
  static const struct {
    const char *name;
    void (*check)(const void *arg);
  } checks[] = {
      {"scale_exactly", scale_exactly},
      {"take_matrices_within_limits", take_matrices_within_limits},
      {"factor_every_order", factor_every_order},
      {"see_pivots_that_are_zero_or_nan", see_pivots_that_are_zero_or_nan},
      {"solve_both_ways", solve_both_ways},
      {"subtract_exactly_in_residuals", subtract_exactly_in_residuals},
      {"bound_what_spoiled_factors_leave", bound_what_spoiled_factors_leave},
      {"ask_more_vectors_where_few_do_not_show_enough",
       ask_more_vectors_where_few_do_not_show_enough},
      {"multiply_by_the_factor_of_the_theorem",
       multiply_by_the_factor_of_the_theorem}};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    ct_register(suite, checks[i].name, checks[i].check, NULL);
}
