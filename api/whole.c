/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a whole matrix of one triangle, on the threads of a pool; see whole.h.
 */
#include "api/whole.h"

#include "base/base.h"
#include "base/triangle.h"

static bool is_upper(const hone_options *o) {
  return o->triangle == HONE_TRIANGLE_UPPER ||
         o->triangle == HONE_TRIANGLE_UPPER_SYMMETRIC;
}

typedef struct copying {
  hone_triangle triangle;
  hone_entry *to;
} copying;

/* The longest columns come first. */
static void copy_some(void *ctx, int64_t task) {
  const copying *c = ctx;
  const int64_t n = c->triangle.n, step = HONE_TRIANGLE_STEP;
  const int64_t tasks = (n + step - 1) / step;
  const int64_t j = (c->triangle.upper ? tasks - 1 - task : task) * step;
  hone_triangle_copy(&c->triangle, j, HONE_MIN(step, n - j), c->to);
}

int64_t hone_whole_bytes(const hone_options *o, int64_t n) {
  return o->triangle == 0 ? 0 : n * n * (int64_t)sizeof(hone_entry);
}

int hone_whole_take(const hone_options *o, hone_pool *pool, hone_mem *mem,
                    int64_t n, const hone_entry **a, int64_t *lda,
                    hone_entry **room) {
  if (o->triangle == 0)
    return HONE_OK;
  if (*room == NULL)
    *room = hone_mem_get(mem, (size_t)hone_whole_bytes(o, n));
  if (*room == NULL)
    return HONE_NO_MEMORY;
  /* By rows, the upper triangle is the lower one of the columns that are
     stored. */
  copying c = {
      .triangle = {.n = n,
                   .lda = *lda,
                   .a = *a,
                   .upper = is_upper(o) != (o->layout == HONE_ROW_MAJOR),
                   .conjugates = o->triangle == HONE_TRIANGLE_LOWER ||
                                 o->triangle == HONE_TRIANGLE_UPPER},
      .to = *room};
  hone_pool_run(pool, (n + HONE_TRIANGLE_STEP - 1) / HONE_TRIANGLE_STEP,
                copy_some, &c);
  *a = c.to;
  *lda = n;
  return HONE_OK;
}

bool hone_whole_ignores(const hone_options *o, int64_t row, int64_t col) {
  return o->triangle != 0 && (is_upper(o) ? row > col : row < col);
}
