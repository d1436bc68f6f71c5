/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a ladder: vectors of the order of the matrix, which it takes
   when it is created and keeps until it is destroyed. Next to read:
   ladder_rungs.c. */
#include "refine/ladder.h"

#include <stddef.h>
#include <string.h>

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
int64_t hone_ladder_bytes(const hone_operator *op, int64_t n, int64_t nrhs,
                          bool extra) {
  int64_t columns = HONE_MIN(nrhs, (int64_t)HONE_SOLVE_COLUMNS);
  return vector_bytes(op, n, false) + hone_ladder_certificate_bytes(n) +
         (hone_ladder_workspace_entries(n, columns, extra) +
          hone_space_entries(n)) *
             (int64_t)sizeof(hone_entry);
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
  hone_mem_put(ladder->mem, ladder->workspace);
  hone_mem_put(ladder->mem, ladder->vectors);
  ladder->pairs_memory = ladder->workspace = NULL;
  ladder->vectors = NULL;
}
