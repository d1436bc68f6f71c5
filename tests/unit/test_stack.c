/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack that a call uses: what hone_solve(3) says of it. */
#define _GNU_SOURCE /* pthread_setattr_default_np */
#include "api/hone.h"
#include "api/hone_complex.h"
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 2 << 20, PAINT = 0xa5, STATED = 400 << 10 };

#ifndef SUP_SANITIZER /* sanitizers need larger frames: nothing is tested */
typedef struct call {
  int64_t n, nrhs;
  bool trans, is_complex;
  int status;
} call;

static double *random_numbers(int64_t count, int64_t seed) {
  double *v = malloc((size_t)count * sizeof *v);
  uint64_t state = (uint64_t)seed;
  for (int64_t i = 0; v != NULL && i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    v[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
  }
  return v;
}

static void *make_call(void *ctx) {
  call *c = ctx;
  const int64_t n = c->n, parts = c->is_complex ? 2 : 1;
  double *a = random_numbers(parts * n * n, 1);
  double *b = random_numbers(parts * n * c->nrhs, 2);
  double *x = random_numbers(parts * n * c->nrhs, 3);
  hone_options options = HONE_OPTIONS_INIT;
  hone_report report = HONE_REPORT_INIT;
  options.trans = c->trans ? HONE_TRANS : HONE_NO_TRANS;
  options.device = HONE_DEVICE_CPU;
  if (c->is_complex)
    c->status =
        hone_z_solve(n, c->nrhs, (hone_complex *)a, n, (hone_complex *)b, n,
                     (hone_complex *)x, n, &options, &report);
  else
    c->status = hone_solve(n, c->nrhs, a, n, b, n, x, n, &options, &report);
  free(a);
  free(b);
  free(x);
  return NULL;
}

/* Makes the call on a thread whose stack was painted before, and returns how
   much of it is used, the thread's own data included. */
static size_t stack_of(call *c) {
  unsigned char *stack = aligned_alloc(4096, STACK);
  pthread_attr_t attributes;
  pthread_t thread;
  size_t untouched = 0;
  if (stack == NULL)
    abort();
  memset(stack, PAINT, STACK);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK);
  if (pthread_create(&thread, &attributes, make_call, c) != 0)
    abort();
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  while (untouched < STACK && stack[untouched] == PAINT)
    untouched++;
  free(stack);
  return STACK - untouched;
}
#endif /* SUP_SANITIZER */

TEST(stack, a_call_uses_no_more_than_its_page_says) {
#ifdef SUP_SANITIZER
  SKIP("sanitizers need larger frames");
#else
  if (sup_emulated())
    SKIP("the emulated edition is not compiled as the library is");
  static const int64_t orders[] = {1, 20, 130, 300, 700};
  static const int64_t columns[] = {1, 4, 7, 33, 100};
  for (int way = 0; way < 4; way++)
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
      for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        call c = {orders[o], columns[k], way & 1, way & 2, -1};
        const size_t used = stack_of(&c);
        ct_note("n = %d, %d right-hand sides, way %d", (int)c.n, (int)c.nrhs,
                way);
        CHECK_EQ_INT(c.status, HONE_OK);
        CHECK(used <= STATED);
      }
#endif
}

/* With the stacks that musl gives threads, tasks wrote beyond theirs, and x was
   wrong. */
TEST(stack, small_stacks_of_new_threads_suffice) {
#if defined(SUP_SANITIZER) || !defined(__GLIBC__)
  SKIP("only glibc can be told how large they are; sanitizers need more");
#else
  if (sup_emulated())
    SKIP("the shared memory of emulated kernels is a part of these stacks");
  pthread_attr_t usual, small;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_getattr_default_np(&small) == 0);
  pthread_attr_setstacksize(&small, 128 << 10);
  REQUIRE(pthread_setattr_default_np(&small) == 0);
  hone_release_kept();
  for (int way = 0; way < 4; way++) {
    call c = {700, way & 1 ? 33 : 1, way & 1, way & 2, -1};
    make_call(&c);
    CHECK_EQ_INT(c.status, HONE_OK);
  }
  pthread_setattr_default_np(&usual);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&usual);
  hone_release_kept();
#endif
}
