/* SPDX-License-Identifier: BSD-3-Clause */
/* A column that is copied while it is projected, with the kernels of every
   instruction set that this processor has. For real and for complex entries. */
#include "base/isa.h"
#include "base/projection_kernels.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <string.h>

enum { MOST = 700, ROOM = MOST + 16 };

typedef struct projected {
  hone_entry hi, lo;
  double sum;
} projected;

/* Entries behind the copy have this value, and must keep it. */
static const double UNTOUCHED = 77.0;

/* Copies n entries to a place 'shift' entries behind a multiple of 64 bytes,
   and checks the copy. */
static projected copy_column(const hone_projection_kernels *kernels, int64_t n,
                             int shift, bool streams, const hone_entry *a,
                             const hone_entry *v) {
  static _Alignas(64) hone_entry room[ROOM];
  projected out = {0.5, 0.25, 2.0};
  hone_entry *to = room + shift;
  for (int64_t i = 0; i < ROOM; i++)
    room[i] = UNTOUCHED;
  const hone_column_copy copy = {to, streams};
  kernels->column(n, a, v, &copy, &out.hi, &out.lo, &out.sum);
  CHECK(memcmp(to, a, (size_t)n * sizeof *a) == 0);
  for (int64_t i = 0; i < ROOM; i++)
    CHECK((i >= shift && i < shift + n) || room[i] == UNTOUCHED);
  return out;
}

static void check_kernels(const hone_projection_kernels *kernels) {
  static const int64_t lengths[] = {0,   1,   7,   63,  64, 65,
                                    127, 128, 129, 640, 700};
  static hone_entry a[MOST], v[MOST];
  sup_rng rng = {3};
  uint64_t seed = 4;
  sup_random(&rng, HONE_PARTS * MOST, 1, (double *)a, HONE_PARTS * MOST);
  hone_projection_draw(MOST, &seed, v);
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    const int64_t n = lengths[k];
    const hone_column_copy none = {NULL, true};
    projected alone = {0.5, 0.25, 2.0};
    kernels->column(n, a, v, &none, &alone.hi, &alone.lo, &alone.sum);
    for (int shift = 0; shift < 3; shift++)
      for (int streams = 0; streams < 2; streams++) {
        ct_note("n %d, shift %d, streams %d", (int)n, shift, streams);
        const projected with =
            copy_column(kernels, n, shift, streams != 0, a, v);
        CHECK(memcmp(&with.hi, &alone.hi, sizeof alone.hi) == 0);
        CHECK(memcmp(&with.lo, &alone.lo, sizeof alone.lo) == 0);
        CHECK(with.sum == alone.sum);
      }
  }
}

TEST_OF(column_copy, is_the_column_and_leaves_its_projection) {
  check_kernels(&hone_projection_base);
#if defined(__x86_64__)
  if (hone_isa_here() != HONE_ISA_BASE)
    check_kernels(&hone_projection_avx2);
  if (hone_isa_here() == HONE_ISA_AVX512)
    check_kernels(&hone_projection_avx512);
#endif
}
