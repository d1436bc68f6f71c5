/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing is read or written past the end of any array, of the caller or of the
   library: each array ends where an inaccessible page begins. An access to that
   page ends the test program with a message. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, LINE = 64, HEAD = 16 };

/* The mapping to be undone. It is described in its first page, in which no
   array begins. */
typedef struct mapping {
  void *map;
  size_t bytes;
} mapping;

/* Returns 'bytes' bytes that end right before the inaccessible page. */
static void *guarded(size_t bytes, size_t align) {
  const size_t used = (bytes + align - 1) / align * align;
  const size_t open = PAGE + (used + PAGE - 1) / PAGE * PAGE;
  char *map = mmap(NULL, open + PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(map + open, PAGE, PROT_NONE) != 0)
    abort();
  *(mapping *)map = (mapping){map, open + PAGE};
  /* The bytes of NaN. */
  memset(map + sizeof(mapping), 0xff, open - sizeof(mapping));
  return map + open - used;
}

/* The array begins behind the first page, where the mapping is described. */
static void unmap(void *array) {
  char *page = (char *)array - (uintptr_t)array % PAGE;
  while (((mapping *)page)->map != page)
    page -= PAGE;
  munmap(page, ((mapping *)page)->bytes);
}

/* These hooks know the layout of the library's arrays: it asks for LINE + HEAD
   bytes more than the array, which begins at the first multiple of LINE behind
   the head. So an array of whole lines ends where the allocation ends, and the
   library does not touch what it asked for behind a shorter one. */
static void *take(size_t bytes, void *ctx) {
  (void)ctx;
  char *array = guarded(bytes - LINE - HEAD, LINE);
  return array - HEAD;
}

static void give(void *memory, void *ctx) {
  (void)ctx;
  unmap(memory);
}

static void outside(int signal) {
  static const char text[] =
      "guard_pages: an array was accessed past its end\n";
  (void)signal;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
    _exit(2);
  _exit(1);
}

typedef enum shape { LOWER, UPPER, BAND, DEFINITE, FULL, HARD } shape;

/* Fills A of order n, without padding. */
static void fill(shape kind, int64_t n, double *a, sup_rng *rng, int units) {
  double *full = sup_filled(n * n, 0.0);
  if (kind == DEFINITE)
    sup_matrix_spd(rng, n, 1e2, full);
  else if (kind == HARD) /* takes GMRES, then LU in double */
    sup_matrix_cond(rng, n, SUP_GEOMETRIC, 1e9, full, n);
  else
    sup_random(rng, n, n, full, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) {
      double v = full[i + j * n];
      if (i == j && kind < DEFINITE)
        v += 4.0;
      if ((kind == LOWER && i < j) || (kind == UPPER && i > j) ||
          (kind == BAND && (i > j + 1 || j > i + 2)))
        v = 0.0;
      a[i + j * n] = ldexp(v, units * (int)(i % 9 - j % 7));
    }
  sup_free(full);
}

static void solve_guarded(shape kind, int64_t n, int64_t nrhs, int form) {
  const size_t vectors = (size_t)(n * nrhs) * sizeof(double);
  const size_t matrix = (size_t)(n * n) * sizeof(double);
  sup_rng rng = {(uint64_t)(n + (int)kind)};
  double *a = guarded(matrix, sizeof(double));
  double *b = guarded(vectors, sizeof(double));
  double *x = guarded(vectors, sizeof(double));
  double *x0 = guarded(vectors, sizeof(double));
  const size_t list = (size_t)nrhs * sizeof(hone_column);
  hone_column *columns = guarded(list, sizeof(double));
  hone_report report = HONE_REPORT_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  fill(kind, n, a, &rng, form & 1 ? 8 : 0);
  sup_random(&rng, n, nrhs, b, n);
  memset(x0, 0, vectors);
  o.device = HONE_DEVICE_CPU;
  o.threads = 2;
  o.alloc = take;
  o.free = give;
  o.columns = columns;
  o.trans = form & 2 ? HONE_TRANS : HONE_NO_TRANS;
  o.extra_precise = form == 3;
  o.factor_precision = form == 1 ? HONE_FACTOR_SINGLE : HONE_FACTOR_AUTO;
  o.structure = kind == DEFINITE && form < 3 ? HONE_STRUCTURE_SPD : 0;
  if (form & 2) {
    o.x0 = x0;
    o.ldx0 = n;
  }
  const int st = hone_solve(n, nrhs, a, n, b, n, x, n, &o, &report);
  ct_note("kind %d, n %d, nrhs %d, form %d: %s", (int)kind, (int)n, (int)nrhs,
          form, report.path);
  CHECK_EQ_INT(st, HONE_OK);
  for (int64_t c = 0; c < nrhs && n < 100; c++)
    CHECK_LE(sup_backward_error(n, a, n, o.trans, x + c * n, b + c * n),
             SUP_LIMIT);
  unmap(columns);
  unmap(x0);
  unmap(x);
  unmap(b);
  unmap(a);
}

static void some_shapes(shape first, shape last, int64_t n, int64_t nrhs) {
  struct sigaction act = {.sa_handler = outside}, old;
  sigaction(SIGSEGV, &act, &old);
  for (shape kind = first; kind <= last; kind++)
    for (int form = 0; form < 4; form++)
      solve_guarded(kind, n, nrhs, form);
  sigaction(SIGSEGV, &old, NULL);
}

/* At these orders arrays of floats and of doubles are whole cache lines. */
TEST(guard_pages, are_not_touched_for_one_column) {
  some_shapes(LOWER, HARD, 16, 1);
  some_shapes(LOWER, HARD, 64, 1);
  some_shapes(LOWER, HARD, 144, 1);
}

TEST(guard_pages, are_not_touched_for_many_columns) {
  some_shapes(LOWER, HARD, 16, 2);
  some_shapes(LOWER, HARD, 64, 5);
  some_shapes(LOWER, HARD, 16, 65);
}

TEST(guard_pages, are_not_touched_by_several_threads) {
  some_shapes(BAND, BAND, 416, 1);
  some_shapes(FULL, FULL, 416, 4);
}

TEST(guard_pages, are_not_touched_at_orders_of_no_whole_cache_line) {
  for (int64_t n = 1; n < 16; n++)
    solve_guarded(FULL, n, 1, (int)(n % 4));
}
