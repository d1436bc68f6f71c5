/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds at the ends of the range and of components, beside rational
   arithmetic: systems that the hunt found when bounds, or bars of components,
   were below the error. */
#include "cpu_dp/residual.h"
#include "tests/campaign/hunt.h"
#include "tests/gallery/exact.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

/* As the hunt prints them; only HUNT_ONCE and HUNT_WARM. */
static const struct {
  const char *what, *text;
} found[] = {
    {"Corrections of denormal entries of x had few bits",
     "n 3 nrhs 2 use 1 trans 0 layout 0 precision 1 structure 0 criterion 1 "
     "extra 0 deterministic 0 tolerance 0x1.c25c268497682p-44\n"
     "0x1.b6647a6260df4p+64 0x1.b6668595de775p+64 "
     "0x1.96d3d0df234c4p+61 "
     "0x1.5000000000001p+4 -0x1.53cdd5485f84cp+4 "
     "0x0p+0 "
     "0x0p+0 -0x0p+0 "
     "0x1.000bf6c77a4d6p-12 "
     "-0x0p+0 0x1p+0 "
     "0x0.0000000000002p-1022 "
     "0x1.7166ce7767a09p-1002 -0x1.c9f7ac689fab8p-1001 "
     "0x0p+0 "},
    {"The same in another system",
     "n 3 nrhs 3 use 0 trans 0 layout 0 precision 2 structure 0 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.b7cdfd9d7bdbbp-34\n"
     "-0x1.e0001a6b0899ep+1 -0x1.6000000000017p+2 "
     "-0x1.e0001a6a629b5p+0 "
     "-0x1.e000018c570d1p+3 -0x1.680012530c2c7p+4 "
     "-0x1.e000018c7b98p+2 "
     "-0x1.1fffffa1ac81ap-56 -0x0p+0 "
     "-0x1.1fffffa124cc5p-57 "
     "-0x1p+0 -0x1.6570ef6d9afdap-1 "
     "-0x1p+0 "
     "0x0p+0 -0x0.0000000000001p-1022 "
     "0x0p+0 "
     "0x1.af68b0062747ap+5 -0x1.380001c82b126p+5 "
     "0x1.6aaf372265e7dp+5 "},
    {"x of a few multiples of 2^-1074 in mixed units",
     "n 7 nrhs 3 use 1 trans 1 layout 0 precision 1 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x0p+0\n"
     "-0x1.3e7fb4a768d65p+9 -0x1.96cfdf66972b1p-21 "
     "-0x1.08ffcccbb4707p+9 -0x1.2c7fd4d7dfb13p+9 "
     "0x1.6c300e7d3a0a5p+5 -0x1.140013883c328p+7 "
     "0x1.008ffb0cceea3p+69 "
     "0x1.70c0184e59addp+11 -0x1.c0806e36888abp-21 "
     "0x1.011fd03fe0ffep+9 -0x1.b6ffcab0ff9bep+10 "
     "0x1.45684568081bdp+10 -0x1.329fc39f69cdep+11 "
     "0x1.2ffffbce204ep+64 "
     "-0x1.368fd6e8911fdp+17 0x1.9c4fb4cafd144p-16 "
     "-0x1.2338228ffe57p+15 0x1.1fa03adfae6fp+16 "
     "-0x1.42ba0f33e41d9p+16 0x1.75a0455d4062cp+16 "
     "0x1.45e00d619fbcdp+73 "
     "-0x1.73ea0838db8dbp+13 0x1.1b15b7312118bp-18 "
     "-0x1.a8e63cfa99cd2p+10 0x1.f1fbf55d3ddf8p+12 "
     "-0x1.28b04e88f3fd8p+12 0x1.456e34742fe5fp+13 "
     "-0x1.10bbc17342205p+69 "
     "0x1.77400d9f53005p+11 0x1.c3002766d7a06p-25 "
     "0x1.ab5ffac9344bdp+9 -0x1.887fceb5d556p+9 "
     "0x1.c0f7ca35e9572p+10 -0x1.0ebff44060e42p+10 "
     "-0x1.c0e03a1cbc214p+68 "
     "0x1.6a3061666ab26p+25 0x1.c3000959eee44p-11 "
     "-0x1.ab603a9b89cf5p+23 -0x1.88800b0eebd7ep+23 "
     "0x1.c0f7ae50e22cep+24 -0x1.0ebfff4680be2p+24 "
     "-0x1.c0dfcac2bcf96p+82 "
     "-0x1.950010b119964p+4 0x1.d6ab973cf1416p-23 "
     "0x1.6c2ffb9b1cd02p+6 0x1.d7dfc1bbc0f93p+7 "
     "0x1.cb77e8cfa68a2p+6 0x1.2cdfd4fe69ff7p+7 "
     "-0x1.d578574213ad3p+66 "
     "0x0p+0 0x0p+0 "
     "-0x0.0000000000001p-1022 0x0p+0 "
     "-0x0p+0 -0x0.0000000000001p-1022 "
     "0x0p+0 "
     "0x1.77e746942d8c9p-46 -0x1p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.800000000003bp+1 0x1.7573e37d3b571p-40 "
     "-0x0.0000000000003p-1022 "
     "0x1.5d63274f86ea6p+1000 -0x1.58e07c00e81dp+999 "
     "0x1.a9e855eb9e66cp+999 -0x1.c59008c379f6cp+998 "
     "0x1.2ac7e9f778235p+999 0x1.a96203a124d9cp+998 "
     "0x1.515a295724e84p+1003 "},
    {"Entries of E below eps, which the probes rounded to 0",
     "n 6 nrhs 1 use 1 trans 1 layout 0 precision 2 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.0c6f7a0b5ed8dp-20\n"
     "0x1.037615494e141p+12 -0x1.037615494e141p+17 "
     "-0x1.32be7d4f5274p+8 0x1.0374bc8f7fa8dp+11 "
     "0x1.183f86a4bb37bp+8 0x1.0374bc8f7ff0bp+11 "
     "0x0p+0 -0x0p+0 "
     "-0x1.0321881a107c2p+3 0x1.0b405353db23dp+26 "
     "0x1.03220d1e61763p+3 0x1.0b405353db754p+26 "
     "0x0p+0 0x1.d7b84c011fdf6p+23 "
     "0x1.00005279309edp-3 -0x1.ffff243a71dbfp+19 "
     "-0x1.ffff13be36a0cp-4 -0x1.ffff243a729e8p+19 "
     "-0x0p+0 0x0p+0 "
     "-0x1.32c75a3439efbp+0 0x0p+0 "
     "0x1.fffed385c1697p-1 0x0p+0 "
     "0x0p+0 -0x1.0000f1c3dbfe7p+27 "
     "-0x1.7ffe26168d3d6p+1 0x0p+0 "
     "0x0p+0 0x1.0000f1c3dbbb2p-24 "
     "0x0p+0 0x1.fffe5700f738ap+29 "
     "-0x1.7fff86052f103p+4 0x0p+0 "
     "0x0p+0 0x1.0000f0ad6972bp-21 "
     "-0x1.0d6f26437784p+26 0x1.1c028406a438p+23 "
     "-0x1.c8f5fb642b534p+26 0x1.fc091c1476bbfp+25 "
     "-0x1.c275fdfd1c51ap+26 0x1.7c94e72632adap+28 "},
    {"The same at 2^-373",
     "n 4 nrhs 1 use 1 trans 0 layout 0 precision 1 structure 0 criterion 0 "
     "extra 0 deterministic 1 tolerance 0x1.c25c268497682p-44\n"
     "-0x1.0b6f50a1cec17p+67 0x1.c35e6801c8608p+391 "
     "0x1.ba73d3f591342p+44 0x0p+0 "
     "-0x1.8b7370f65d119p-266 -0x1.0000000068d1bp+1 "
     "0x1.00002070308a6p-4 -0x1.020cdfc11f6f9p+869 "
     "0x1.8529a5ff9214cp-647 0x1.c35df6eacda08p+391 "
     "0x1.ba73386122713p+44 0x1.5b547841af45ep-866 "
     "0x1.0b6d66c88774dp+67 -0x1.d562b085d4202p-456 "
     "0x1.310871e5ca949p-698 -0x1.54764a1ecde63p-286 "
     "0x0p+0 -0x1p+0 "
     "0x0p+0 0x0p+0 "},
    {"A loose tolerance: the rounding of a large residual",
     "n 8 nrhs 2 use 1 trans 0 layout 0 precision 1 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.b7cdfd9d7bdbbp-34\n"
     "-0x1.fffffee720152p+0 0x0p+0 "
     "0x1.fffffd3bc8abfp+4 -0x1.fffffd9d5bd1p+3 "
     "0x0p+0 0x0p+0 "
     "-0x1.0000015e17072p+7 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.fffffffae3e1fp-1 0x1.f6fcep-32 "
     "-0x1.0000000008b6p+0 -0x1.fffffffbb393bp-1 "
     "0x0p+0 -0x1.ffff9f491efep-1 "
     "0x1.bffffff7bee2p-1 0x1.0000000386978p-22 "
     "0x1.0000000143261p-1 -0x1.00000003b1b5p-3 "
     "0x0p+0 0x1.000000002e776p-1 "
     "0x0p+0 0x1.fff97cda81599p-3 "
     "-0x1.bffffff7bee2p+0 -0x1.0000000386978p-21 "
     "-0x1.0000000143261p+0 0x0p+0 "
     "0x0p+0 -0x1.000000002e776p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.000000005316dp-3 -0x0p+0 "
     "-0x1.0000000211e64p+1 -0x1.00000001732dfp+0 "
     "0x0p+0 0x1.00000000c04e3p+1 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000003334c8p-9 0x0p+0 "
     "0x1.00000001f52f3p-3 -0x1.00000002d0702p-4 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000001198afp-1 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 -0x1.00000001ea36bp+95 "
     "0x1.0000000376f91p+99 -0x1.ffff7a31b540cp+95 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000002ba50dp+3 0x1.fffffffb083bep-1 "
     "-0x1.253f0e234824ap+1 -0x1.42166f13f84p-2 "
     "0x1.3e65de1a4375cp+0 -0x1.7c33a46758b2ep+0 "
     "0x1.db3afb9035b46p+0 -0x0p+0 "
     "0x1.8a53103c050bap+0 0x1.a30ffe6d00d98p-2 "
     "-0x1.cee46545be8f4p+0 -0x0p+0 "
     "0x1.98ac4819f08cep+4 -0x1.72216730a24d8p-1 "
     "-0x1.136aa384554bcp-1 0x1.129f4aaeb4bfcp+0 "
     "0x1.d6175d847dbbap+0 -0x1.42d5a2934da1ep-1 "},
};

static void take(const char *text, hunt_system *s) {
  char copy[4096];
  const size_t length = strlen(text);
  CHECK_LE(length + 1, sizeof copy);
  memcpy(copy, text, length + 1);
  FILE *f = fmemopen(copy, length, "r");
  REQUIRE(f != NULL);
  CHECK(hunt_read(s, f));
  (void)fclose(f);
}

static void check_bars(const hunt_system *s) {
  enum { MOST = HUNT_MOST_N * HUNT_MOST_RHS };
  double x[MOST], x0[MOST], bars[MOST], m[HUNT_MOST_N * HUNT_MOST_N];
  const int64_t n = s->n;
  hone_column columns[HUNT_MOST_RHS];
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CPU;
  o.factor_precision = s->precision;
  o.structure = s->structure;
  o.criterion = s->criterion;
  o.tolerance = s->tolerance;
  o.deterministic = 1;
  o.trans = s->trans;
  o.columns = columns;
  o.error_bounds = bars;
  o.ld_error_bounds = n;
  for (int64_t k = 0; k < n * s->nrhs; k++)
    x0[k] = s->b[k % n + (s->nrhs - 1) * n];
  if (s->use == HUNT_WARM) {
    o.x0 = x0;
    o.ldx0 = n;
  }
  CHECK_LE(0, hone_solve(n, s->nrhs, s->a, n, s->b, n, x, n, &o, NULL));
  for (int64_t k = 0; k < n * n; k++)
    m[k] = s->trans == HONE_TRANS ? s->a[k % n * n + k / n] : s->a[k];
  exact_system *e = exact_solve(n, s->nrhs, m, n, s->b, n);
  for (int64_t c = 0; c < s->nrhs; c++) {
    long double miss[HUNT_MOST_N];
    const long double error = exact_error(e, c, x + c * n, miss);
    ct_note("column %d", (int)c);
    CHECK_LE((double)error, columns[c].forward_error);
    for (int64_t i = 0; i < n; i++)
      CHECK(miss[i] * (1.0L - 0x1p-48L) <= (long double)bars[i + c * n]);
  }
  exact_free(e);
}

TEST(bounds_range, hold_where_they_once_did_not) {
  for (size_t k = 0; k < sizeof found / sizeof *found; k++) {
    hunt_system s;
    ct_note("%s", found[k].what);
    take(found[k].text, &s);
    check_bars(&s);
  }
}

/* x = 1 / 3 and 5 of the smallest denormal: no digit is certain of the one, and
   the other is exact. */
TEST(bounds_range, certify_no_digit_that_a_denormal_does_not_have) {
  const double a[] = {3.0}, b[] = {0x1p-1074, 15.0 * 0x1p-1074};
  double x[2], bars[2];
  for (int criterion = 0; criterion < 3; criterion++) {
    hone_column columns[2];
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CPU;
    o.criterion = criterion;
    o.columns = columns;
    o.error_bounds = bars;
    o.ld_error_bounds = 1;
    ct_note("criterion %d", criterion);
    CHECK_LE(HONE_NOT_CONVERGED, hone_solve(1, 2, a, 1, b, 1, x, 1, &o, NULL));
    CHECK(columns[0].status != HONE_OK);
    CHECK_EQ_INT(columns[0].digits, 0);
    CHECK_LE(0x1p-1074, bars[0]);
    CHECK_NEAR(x[1], 5.0 * 0x1p-1074, 0.0);
    CHECK_EQ_INT(columns[1].status, HONE_OK);
    CHECK_LE(15, columns[1].digits);
  }
}

static hone_wide_row row_of(int64_t n, const double *a, const double *x,
                            double b) {
  const hone_dense one = {n, 1, a, NULL};
  const hone_matrix matrix = hone_dense_matrix(&one);
  hone_wide_row row = {.a = &matrix, .x = x, .b = b};
  matrix.op->wide_row(&row);
  return row;
}

/* In double-double the first sum is 0 too, though it is -2^-130. */
TEST(bounds_range, take_a_residual_for_zero_only_where_no_sum_was_rounded) {
  const double lost[] = {0x1p-60, 0x1p-130, -0x1p-60, 1.0};
  const double far[] = {0x1p-60, 0x1p-300, -0x1p-60, -0x1p-300};
  const double ones[] = {1.0, 1.0, 1.0, 1.0}, odd[] = {3.0, -5.0, 7.0, 2.0};
  CHECK(!row_of(4, lost, ones, 1.0).zero);
  CHECK(!row_of(4, far, ones, 0.0).zero); /* 0, but a sum was rounded */
  CHECK(row_of(4, odd, ones, 7.0).zero);
  CHECK(!row_of(4, odd, ones, 7.5).zero);
  CHECK(row_of(4, odd, odd, 87.0).zero);
  CHECK_NEAR(row_of(4, odd, odd, 87.0).den, 174.0, 0.0);
}
