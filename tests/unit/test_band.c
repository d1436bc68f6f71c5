/* SPDX-License-Identifier: BSD-3-Clause */
/* The band LU beside LAPACK's. Compiled twice, the second time for complex
   entries: TEST_OF gives the tests of the two their names. */
#include "cpu_dp/band_lu.h"

#include "base/lapack.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef HONE_COMPLEX
#define TEST_OF(sentence) TEST(band_complex, sentence)
static hone_entry number(sup_rng *rng) {
  const double re = sup_uniform(rng);
  return CMPLX(re, sup_uniform(rng));
}
#else
#define TEST_OF(sentence) TEST(band, sentence)
static hone_entry number(sup_rng *rng) { return sup_uniform(rng); }
#endif

/* Orders, and diagonals below and above the main one: none, one panel, several
   panels, bands wider than a panel, narrower ones, and as wide as S. */
static const int shapes[][3] = {
    {1, 0, 0},     {2, 1, 1},    {5, 0, 3},    {9, 3, 0},    {40, 1, 1},
    {64, 4, 2},    {65, 2, 17},  {97, 31, 1},  {129, 33, 5}, {200, 20, 20},
    {300, 70, 90}, {40, 39, 39}, {33, 32, 10}, {700, 200, 3}};
enum { SHAPES = sizeof shapes / sizeof *shapes, COLUMNS = 3 };

/* One band, for us and for LAPACK, and right-hand sides. */
typedef struct sample {
  hone_band s;
  int ld; /* of LAPACK's */
  hone_entry *theirs, *v;
  int *pivots;
} sample;

static void *filled(int64_t bytes) {
  void *memory = malloc((size_t)bytes);
  if (memory == NULL)
    abort();
  return memset(memory, 0, (size_t)bytes);
}

static sample make(const int shape[3], sup_rng *rng) {
  sample p = {.s = hone_band_of(shape[0], shape[1], shape[2])};
  hone_band *s = &p.s;
  const int64_t size = sizeof(hone_entry), offset = s->lower + s->upper;
  /* It keeps the condition small, and leaves many rows to be exchanged. */
  const double shift = 0.15 * sqrt((double)(offset + 1));
  p.ld = (int)(2 * s->lower + s->upper + 1);
  s->ab = filled(s->ld * s->n * size);
  s->ipiv = filled(s->n * (int64_t)sizeof *s->ipiv);
  p.theirs = filled(p.ld * s->n * size);
  p.pivots = filled(s->n * (int64_t)sizeof *p.pivots);
  p.v = filled(COLUMNS * (s->n + 1) * size);
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = HONE_MAX((int64_t)0, j - s->upper);
         i < HONE_MIN(s->n, j + s->lower + 1); i++)
      s->ab[s->diagonal + i - j + j * s->ld] =
          p.theirs[offset + i - j + j * p.ld] =
              number(rng) + (i == j ? shift : 0.0);
  for (int64_t i = 0; i < COLUMNS * (s->n + 1); i++)
    p.v[i] = number(rng);
  return p;
}

static void discard(sample *p) {
  free(p->s.ab);
  free(p->s.ipiv);
  free(p->theirs);
  free(p->pivots);
  free(p->v);
}

static int factor_theirs(sample *p) {
  const int n = (int)p->s.n, lower = (int)p->s.lower, upper = (int)p->s.upper;
  int info = 0;
  dgbtrf_(&n, &n, &lower, &upper, p->theirs, &p->ld, p->pivots, &info);
  return info;
}

/* Both were found with the same pivots. Each is inv(S) v but for the growth of
   rounding errors with the condition of these bands, which is below 1e6. */
static void check_solutions(const sample *p, bool trans) {
  const int n = (int)p->s.n, lower = (int)p->s.lower, upper = (int)p->s.upper;
  const int columns = COLUMNS, ldv = n + 1;
  const size_t size = (size_t)(COLUMNS * ldv) * sizeof(hone_entry);
  hone_entry *ours = filled((int64_t)size), *want = filled((int64_t)size);
  double largest = 0.0, off = 0.0;
  int info = 0;
  memcpy(ours, p->v, size);
  memcpy(want, p->v, size);
  hone_band_solve(&p->s, trans, columns, ours, ldv);
  dgbtrs_(trans ? "T" : "N", &n, &lower, &upper, &columns, p->theirs, &p->ld,
          p->pivots, want, &ldv, &info);
  CHECK_EQ_INT(info, 0);
  for (int64_t i = 0; i < COLUMNS * ldv; i++) {
    largest = HONE_MAX(largest, hone_abs(want[i]));
    off =
        hone_abs(ours[i] - want[i]) <= off ? off : hone_abs(ours[i] - want[i]);
  }
  CHECK_LE(off, 1e6 * HONE_EPS * largest);
  free(ours);
  free(want);
}

TEST_OF(factors_and_solves_as_lapack_does) {
  sup_rng rng = {7};
  int exchanged = 0;
  for (int k = 0; k < SHAPES; k++)
    for (int threads = 1; threads <= 3; threads += 2) {
      hone_mem mem = {.limit = 0};
      hone_pool *pool = NULL;
      sample p = make(shapes[k], &rng);
      ct_note("n %d, %d below, %d above, %d threads", shapes[k][0],
              shapes[k][1], shapes[k][2], threads);
      hone_pool_create(&pool, &mem, threads);
      CHECK_EQ_INT(hone_band_factor(&p.s, pool), -1);
      REQUIRE(factor_theirs(&p) == 0);
      for (int64_t i = 0; i < p.s.n; i++) {
        CHECK_EQ_INT(p.s.ipiv[i], p.pivots[i]);
        exchanged += p.pivots[i] != i + 1;
      }
      check_solutions(&p, false);
      check_solutions(&p, true);
      hone_pool_destroy(&pool, &mem);
      discard(&p);
    }
  CHECK_GE(exchanged, 200);
}

TEST_OF(factors_do_not_depend_on_threads) {
  static const int shape[] = {900, 250, 40};
  sup_rng rng = {8}, again = {8};
  hone_mem mem = {.limit = 0};
  hone_pool *pool = NULL;
  sample one = make(shape, &rng), three = make(shape, &again);
  hone_pool_create(&pool, &mem, 3);
  hone_band_factor(&one.s, NULL);
  hone_band_factor(&three.s, pool);
  CHECK(memcmp(one.s.ab, three.s.ab,
               (size_t)(one.s.ld * one.s.n) * sizeof *one.s.ab) == 0);
  hone_pool_destroy(&pool, &mem);
  discard(&one);
  discard(&three);
}

/* Column c of zeros has a pivot of zero, here and there. */
TEST_OF(names_the_first_pivot_that_is_zero) {
  static const int columns[] = {0, 3, 31, 32, 63};
  static const int shape[] = {64, 5, 4};
  for (int k = 0; k < 5; k++) {
    sup_rng rng = {9};
    sample p = make(shape, &rng);
    const int c = columns[k];
    ct_note("column %d", c);
    for (int64_t i = 0; i < p.s.ld; i++)
      p.s.ab[i + c * p.s.ld] = 0.0;
    for (int64_t i = 0; i < p.ld; i++)
      p.theirs[i + c * p.ld] = 0.0;
    CHECK_EQ_INT(hone_band_factor(&p.s, NULL), c);
    CHECK_EQ_INT(factor_theirs(&p), c + 1);
    discard(&p);
  }
}
