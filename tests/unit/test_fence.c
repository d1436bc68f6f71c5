/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing is read or written past the end of any array, of the caller's or of
   the library's own: each ends where a page begins that nobody may touch.
   Whoever does ends the test program there, with a line that says so. */
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

/* In the first page of each mapping, which no array begins in: what to unmap.
 */
typedef struct fence {
  void *map;
  size_t bytes;
} fence;

/* The last of 'bytes' bytes stands right before the closed page. */
static void *fenced(size_t bytes, size_t align) {
  const size_t used = (bytes + align - 1) / align * align;
  const size_t open = PAGE + (used + PAGE - 1) / PAGE * PAGE;
  char *map = mmap(NULL, open + PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(map + open, PAGE, PROT_NONE) != 0)
    abort();
  *(fence *)map = (fence){map, open + PAGE};
  memset(map + sizeof(fence), 0xff, open - sizeof(fence)); /* NaN */
  return map + open - used;
}

/* The first page of the mapping says so; no array has its own address in it. */
static void unfence(void *array) {
  char *page = (char *)array - (uintptr_t)array % PAGE;
  while (((fence *)page)->map != page)
    page -= PAGE;
  munmap(page, ((fence *)page)->bytes);
}

/* The hooks know how the library uses what it asks for: LINE + HEAD bytes
   more than the array, which begins at the first multiple of LINE behind the
   head. Of an array of whole lines nothing is left over at the end then, and
   what stands behind the array is not touched by the library, though it asked
   for it. */
static void *take(size_t bytes, void *ctx) {
  (void)ctx;
  char *array = fenced(bytes - LINE - HEAD, LINE);
  return array - HEAD;
}

static void give(void *memory, void *ctx) {
  (void)ctx;
  unfence(memory);
}

static void outside(int signal) {
  static const char text[] = "fence: an array was left behind its end\n";
  (void)signal;
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
    _exit(2);
  _exit(1);
}

typedef enum shape { LOWER, UPPER, BAND, DEFINITE, FULL, HARD } shape;

/* Fills A of order n and of this kind, its columns without padding. */
static void fill(shape kind, int64_t n, double *a, sup_rng *rng, int units) {
  double *full = sup_filled(n * n, 0.0);
  if (kind == DEFINITE)
    sup_matrix_spd(rng, n, 1e2, full);
  else if (kind == HARD) /* for single precision: GMRES, then LU in double */
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

static void solve_fenced(shape kind, int64_t n, int64_t nrhs, int form) {
  const size_t vectors = (size_t)(n * nrhs) * sizeof(double);
  const size_t matrix = (size_t)(n * n) * sizeof(double);
  sup_rng rng = {(uint64_t)(n + (int)kind)};
  double *a = fenced(matrix, sizeof(double));
  double *b = fenced(vectors, sizeof(double));
  double *x = fenced(vectors, sizeof(double));
  double *x0 = fenced(vectors, sizeof(double));
  const size_t list = (size_t)nrhs * sizeof(hone_column);
  hone_column *columns = fenced(list, sizeof(double));
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
  unfence(columns);
  unfence(x0);
  unfence(x);
  unfence(b);
  unfence(a);
}

static void some_shapes(shape first, shape last, int64_t n, int64_t nrhs) {
  struct sigaction act = {.sa_handler = outside}, old;
  sigaction(SIGSEGV, &act, &old);
  for (shape kind = first; kind <= last; kind++)
    for (int form = 0; form < 4; form++)
      solve_fenced(kind, n, nrhs, form);
  sigaction(SIGSEGV, &old, NULL);
}

/* Orders whose arrays are whole cache lines, of floats as of doubles. */
TEST(fence, is_not_crossed_by_a_single_column) {
  some_shapes(LOWER, HARD, 16, 1);
  some_shapes(LOWER, HARD, 64, 1);
  some_shapes(LOWER, HARD, 144, 1);
}

TEST(fence, is_not_crossed_by_many_columns) {
  some_shapes(LOWER, HARD, 16, 2);
  some_shapes(LOWER, HARD, 64, 5);
  some_shapes(LOWER, HARD, 16, 65);
}

TEST(fence, is_not_crossed_where_threads_share_the_work) {
  some_shapes(BAND, BAND, 416, 1);
  some_shapes(FULL, FULL, 416, 4);
}

TEST(fence, is_not_crossed_by_orders_of_no_whole_line) {
  for (int64_t n = 1; n < 16; n++)
    solve_fenced(FULL, n, 1, (int)(n % 4));
}
