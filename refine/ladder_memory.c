/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a ladder: vectors of the order of the matrix, which it takes
   when it is created and keeps until it is destroyed. Next to read:
   ladder_rungs.c. */
#include "refine/bounds.h"
#include "refine/ladder.h"

#include <stddef.h>
#include <string.h>

enum { CACHE_LINE = 64 }; /* bytes */

/* An inspection in the course of a solve has its maxima in the scratch too.
   copy: an engine may have a copy of A on a device. */
static int64_t scratch_entries(const hone_operator *op, int64_t n, bool copy) {
  return HONE_MAX(op->scratch(n) + 2 * n, hone_certify_scratch(n, copy));
}

/* The vectors take four real vectors, the scratch, and two vectors of int. */
static int64_t vector_bytes(const hone_operator *op, int64_t n, bool copy) {
  return 5 * n * (int64_t)sizeof(double) +
         scratch_entries(op, n, copy) * (int64_t)sizeof(hone_entry);
}

/* A copy on a device takes a little more, which the buffers that its engine
   counts allow for. */
int64_t hone_ladder_bytes(const hone_operator *op, int64_t n, int64_t columns,
                          bool extra) {
  return vector_bytes(op, n, false) + hone_ladder_certificate_bytes(n) +
         hone_ladder_workspace_bytes(n, columns, extra) +
         hone_space_entries(n) * (int64_t)sizeof(hone_entry);
}

static int64_t workspace_vectors(int64_t n, int64_t columns, bool extra) {
  return hone_ladder_workspace_entries(n, columns, extra) *
         (int64_t)sizeof(hone_entry);
}

/* The columns begin on a cache line. */
int64_t hone_ladder_workspace_bytes(int64_t n, int64_t columns, bool extra) {
  return workspace_vectors(n, columns, extra) + CACHE_LINE +
         columns * (int64_t)(sizeof(hone_refined) + sizeof(hone_bounding));
}

int64_t hone_ladder_block(const hone_step *steps, int count) {
  bool wide = false;
  for (int r = 0; r < count; r++)
    wide = wide || steps[r].engine->wide;
  return wide ? HONE_SOLVE_COLUMNS : HONE_BLOCK_COLUMNS;
}

static void drop_workspace(hone_ladder *ladder) {
  hone_mem_put(ladder->mem, ladder->workspace);
  ladder->workspace = NULL;
  ladder->workspace_columns = 0;
}

int hone_ladder_reserve(hone_ladder *ladder, int64_t columns) {
  const bool extra = ladder->request.extra;
  const int64_t n = ladder->n;
  if (columns <= ladder->workspace_columns)
    return HONE_OK;
  drop_workspace(ladder);
  char *memory = hone_mem_get(
      ladder->mem, (size_t)hone_ladder_workspace_bytes(n, columns, extra));
  if (memory == NULL)
    return HONE_NO_MEMORY;
  ladder->workspace = (hone_entry *)memory;
  memory += workspace_vectors(n, columns, extra);
  memory += CACHE_LINE - (int64_t)((uintptr_t)memory % CACHE_LINE);
  ladder->columns = (hone_refined *)memory;
  ladder->bounding = (hone_bounding *)(ladder->columns + columns);
  ladder->workspace_columns = columns;
  return HONE_OK;
}

int hone_ladder_create(hone_ladder *ladder, const hone_operator *op, int64_t n,
                       const hone_step *steps, int count,
                       const hone_request *request, hone_mem *mem,
                       hone_pool *pool, hone_watch *watch) {
  memset(ladder, 0, offsetof(hone_ladder, rung));
  memset(ladder->rung, 0, (size_t)count * sizeof *ladder->rung);
  ladder->n = n;
  ladder->mem = mem;
  ladder->pool = pool;
  ladder->watch = watch;
  ladder->request = *request;
  ladder->rung_count = count;
  ladder->block = hone_ladder_block(steps, count);
  ladder->copy_rung = -1;
  bool copy = false;
  for (int r = 0; r < count; r++) {
    copy = copy || steps[r].engine->resident != NULL;
    ladder->rung[r].engine = steps[r].engine;
    ladder->rung[r].choices = request->choices;
    ladder->rung[r].second_opinion = steps[r].second_opinion;
    if (steps[r].accurate &&
        hone_arithmetic_coarse(request->choices.arithmetic))
      ladder->rung[r].choices.arithmetic = HONE_ARITHMETIC_AUTO;
  }
  double *v = hone_mem_get(mem, (size_t)vector_bytes(op, n, copy));
  if (v == NULL)
    return HONE_NO_MEMORY;
  ladder->vectors = v;
  ladder->scaling.row = v;
  ladder->scaling.col = v + n;
  ladder->inspection.row_max = v + 2 * n;
  ladder->inspection.col_max = v + 3 * n;
  ladder->scratch = (hone_entry *)(v + 4 * n);
  ladder->scaling.row_exp =
      (int *)(ladder->scratch + scratch_entries(op, n, copy));
  ladder->scaling.col_exp = ladder->scaling.row_exp + n;
  return HONE_OK;
}

void hone_ladder_destroy(hone_ladder *ladder) {
  for (int r = 0; r < ladder->rung_count; r++)
    hone_ladder_destroy_rung(ladder, &ladder->rung[r]);
  hone_mem_put(ladder->mem, ladder->pairs_memory);
  drop_workspace(ladder);
  hone_mem_put(ladder->mem, ladder->vectors);
  ladder->pairs_memory = NULL;
  ladder->vectors = NULL;
}
