/* SPDX-License-Identifier: BSD-3-Clause */
/* Products inside complex factorizations, which are made of three real ones
   (cpu_factor/products_complex.h), with every instruction set that this
   processor has. Compiled with HONE_COMPLEX. */
#include "base/isa.h"
#include "cpu_factor/kernels.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 3, GUARD = 64 };

typedef struct table {
  const hone_factor_kernels *kernels[2]; /* single, double */
  const char *name;
  hone_isa isa;
} table;

static const table tables[] = {
    {{&hone_factor_base_32, &hone_factor_base_64}, "base", HONE_ISA_BASE},
#if defined(__x86_64__)
    {{&hone_factor_avx2_32, &hone_factor_avx2_64}, "avx2", HONE_ISA_AVX2},
    {{&hone_factor_avx512_32, &hone_factor_avx512_64},
     "avx512",
     HONE_ISA_AVX512},
#endif
};
enum { TABLES = sizeof tables / sizeof tables[0] };

static bool can_run(const table *t) { return t->isa <= hone_isa_here(); }

/* An array of entries of a table's precision. */
typedef struct array {
  size_t size;
  char *at;
} array;

static hone_entry get(const array *a, int64_t i) {
  const char *at = a->at + (size_t)i * a->size;
  return a->size == sizeof(hone_single) ? (hone_entry) * (const hone_single *)at
                                        : *(const hone_entry *)at;
}

static array random_array(const hone_factor_kernels *kernels, int64_t count,
                          uint64_t seed) {
  hone_complex *v = cs_random(count, 1, seed);
  array a = {kernels->size, malloc((size_t)count * kernels->size)};
  if (a.at == NULL)
    abort();
  for (int64_t i = 0; i < count; i++)
    if (a.size == sizeof(hone_single))
      ((hone_single *)a.at)[i] = (hone_single)v[i];
    else
      ((hone_entry *)a.at)[i] = v[i];
  free(v);
  return a;
}

typedef struct shape {
  int64_t m, w, k;
  bool turned;   /* B is stored as its transpose, and is conjugated */
  int64_t below; /* as of the kernel */
} shape;

/* The space that the kernel asks for, with a guard behind it. */
static char *take_space(const hone_factor_kernels *kernels, const shape *s,
                        size_t *bytes) {
  const int64_t rows = HONE_MIN((s->m + 31) / 32 * 32, kernels->space_rows);
  *bytes = (size_t)(rows * s->k) * kernels->packed;
  char *space = malloc(*bytes + GUARD);
  if (space == NULL)
    abort();
  memset(space, 0x5a, *bytes + GUARD);
  return space;
}

/* An entry of a factor of the products, and its modulus, in long double. */
typedef struct wide_entry {
  long double re, im, size;
} wide_entry;

static wide_entry *widen(const array *v, int64_t count) {
  wide_entry *all = malloc((size_t)count * sizeof *all);
  if (all == NULL)
    abort();
  for (int64_t i = 0; i < count; i++) {
    const hone_wide entry = (hone_wide)get(v, i);
    all[i] = (wide_entry){creall(entry), cimagl(entry), cabsl(entry)};
  }
  return all;
}

/* |c - (c_before - a b)| is at most 4 (k + 6) eps times |a| |b| + |c|: each of
   three sums of k products of numbers of at most sqrt(2) |a| and sqrt(2) |b| is
   wrong by (k + 1) eps of its terms, and two more roundings follow. */
static int64_t count_wrong(const shape *s, const array *a, const array *b,
                           const array *before, const array *c) {
  const long double eps = c->size == sizeof(hone_single) ? 0x1p-24L : 0x1p-53L;
  const int64_t lda = s->m + GAP, ldb = (s->turned ? s->w : s->k) + GAP;
  const long double sign = s->turned ? -1.0L : 1.0L; /* of b's imaginary part */
  wide_entry *left = widen(a, lda * s->k);
  wide_entry *right = widen(b, ldb * (s->turned ? s->k : s->w));
  int64_t wrong = 0;
  for (int64_t j = 0; j < s->w; j++)
    for (int64_t i = 0; i < s->m; i++) {
      if (s->below >= 0 && i + s->below < j)
        continue;
      const hone_wide old = (hone_wide)get(before, i + j * lda);
      const hone_wide now = (hone_wide)get(c, i + j * lda);
      long double re = creall(old) - creall(now);
      long double im = cimagl(old) - cimagl(now), size = cabsl(old);
      for (int64_t p = 0; p < s->k; p++) {
        const wide_entry l = left[i + p * lda];
        const wide_entry r = right[s->turned ? j + p * ldb : p + j * ldb];
        re -= l.re * r.re - sign * l.im * r.im;
        im -= sign * l.re * r.im + l.im * r.re;
        size += l.size * r.size;
      }
      wrong += !(hypotl(re, im) <= 4.0L * (long double)(s->k + 6) * eps * size);
    }
  free(left);
  free(right);
  return wrong;
}

static bool is_filled(const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != 0x5a)
      return false;
  return true;
}

/* With its space and without, the kernel gives the same bits, changes nothing
   between the columns of C and stays within the space. */
static void check_shape(const hone_factor_kernels *kernels, const shape *s) {
  const int64_t lda = s->m + GAP, ldb = (s->turned ? s->w : s->k) + GAP;
  const size_t size = kernels->size;
  array a = random_array(kernels, lda * s->k, 1);
  array b = random_array(kernels, ldb * HONE_MAX(s->w, s->k), 2);
  array before = random_array(kernels, lda * s->w, 3);
  array with = random_array(kernels, lda * s->w, 3);
  array without = random_array(kernels, lda * s->w, 3);
  const hone_strided right = {b.at, s->turned ? ldb : 1, s->turned ? 1 : ldb,
                              s->turned};
  size_t bytes;
  char *space = take_space(kernels, s, &bytes);
  kernels->subtract(s->m, s->w, s->k, a.at, lda, right, s->below, with.at, lda,
                    space);
  kernels->subtract(s->m, s->w, s->k, a.at, lda, right, s->below, without.at,
                    lda, NULL);
  CHECK(is_filled(space + bytes, GUARD));
  CHECK_EQ_INT(count_wrong(s, &a, &b, &before, &with), 0);
  for (int64_t j = 0; j < s->w; j++) {
    const int64_t from =
        s->below < 0 ? 0 : HONE_MIN(HONE_MAX((int64_t)0, j - s->below), s->m);
    const size_t first = (size_t)(from + j * lda) * size;
    CHECK_MEM_EQ(with.at + first, without.at + first,
                 (size_t)(s->m - from) * size);
    CHECK_MEM_EQ(with.at + (size_t)(s->m + j * lda) * size,
                 before.at + (size_t)(s->m + j * lda) * size, GAP * size);
  }
  free(space);
  free(a.at);
  free(b.at);
  free(before.at);
  free(with.at);
  free(without.at);
}

TEST(complex_products, of_three_real_ones_are_right_for_every_shape) {
  static const int64_t rows[] = {1, 7, 31, 32, 33, 64, 255, 256, 257, 300};
  static const int64_t columns[] = {1, 3, 4, 11, 12, 13, 25, 80};
  static const int64_t depths[] = {1, 7, 16, 33, 192};
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 4 && can_run(&tables[t]); k++)
      for (size_t m = 0; m < sizeof rows / sizeof *rows; m++)
        for (size_t w = 0; w < sizeof columns / sizeof *columns; w++) {
          const size_t d = (m + w) % (sizeof depths / sizeof *depths);
          const shape s = {rows[m], columns[w], depths[d], k / 2 == 1,
                           k / 2 == 0 ? -1 : (int64_t)(m % 3)};
          ct_note("%s, %d bytes, %d x %d, depth %d, %s", tables[t].name,
                  (int)tables[t].kernels[k % 2]->size, (int)s.m, (int)s.w,
                  (int)s.k, s.turned ? "conjugated" : "plain");
          check_shape(tables[t].kernels[k % 2], &s);
        }
}

/* Strips above the diagonal are left out, in the second space of rows, too. */
TEST(complex_products, leave_out_what_lies_above_the_diagonal) {
  const shape s = {330, 340, 17, true, 0};
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 2 && can_run(&tables[t]); k++) {
      ct_note("%s, %d bytes", tables[t].name, (int)tables[t].kernels[k]->size);
      check_shape(tables[t].kernels[k], &s);
    }
}

/* Where every imaginary part is zero, that of the result is, too: the parts of
   a real matrix do not mix. */
TEST(complex_products, of_real_entries_are_real) {
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; k < 2 && can_run(&tables[t]); k++) {
      enum { M = 40, W = 13, K = 21 };
      const hone_factor_kernels *kernels = tables[t].kernels[k];
      array v = random_array(kernels, M * K + K * W + M * W, 5);
      const size_t size = kernels->size;
      char *b = v.at + M * K * size, *c = b + K * W * size;
      for (int64_t i = 0; i < M * K + K * W + M * W; i++)
        memset(v.at + (size_t)i * size + size / 2, 0, size / 2);
      kernels->subtract(M, W, K, v.at, M, (hone_strided){b, 1, K, false}, -1, c,
                        M, NULL);
      for (int64_t i = 0; i < M * W; i++)
        CHECK(cimag(get(&v, M * K + K * W + i)) == 0.0);
      free(v.at);
    }
}

/* The chunks of a factorization are packed in its work space from some orders
   on, and nothing is written behind it. */
TEST(complex_products, stay_within_the_work_space_of_a_factorization) {
  static const int64_t orders[] = {1100, 1601};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
    for (int k = 0; k < 4; k++) {
      const int64_t n = orders[o];
      const bool spd = k / 2 == 1;
      const hone_factor_kernels *kernels =
          hone_factor_kernels_of(k % 2 ? 128 : 64);
      const size_t bytes = (size_t)hone_factor_work(kernels, n);
      hone_mem mem = {.limit = 0};
      hone_watch watch = {.stopped = false};
      char *work = malloc(bytes + GUARD);
      array f = random_array(kernels, n * n, 4);
      hone_factoring job = {.kernels = kernels,
                            .n = n,
                            .ldf = n,
                            .spd = spd,
                            .f = f.at,
                            .pivot = malloc((size_t)n * sizeof(int)),
                            .work = work,
                            .watch = &watch,
                            .phase = "factor"};
      int64_t zero = -1;
      REQUIRE(work != NULL && job.pivot != NULL);
      for (int64_t i = 0; i < n && spd; i++)
        if (k % 2)
          ((hone_entry *)f.at)[i * (n + 1)] = (double)n;
        else
          ((hone_single *)f.at)[i * (n + 1)] = (float)n;
      memset(work + bytes, 0x5a, GUARD);
      hone_pool_create(&job.pool, &mem, 3);
      ct_note("n %d, %d bytes, %s", (int)n, (int)kernels->size,
              spd ? "definite" : "general");
      CHECK_EQ_INT(hone_factor_columns(&job, 0, n, &zero), HONE_OK);
      CHECK_EQ_INT(zero, -1);
      CHECK(is_filled(work + bytes, GUARD));
      hone_pool_destroy(&job.pool, &mem);
      free(work);
      free(job.pivot);
      free(f.at);
    }
}
