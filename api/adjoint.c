/* SPDX-License-Identifier: BSD-3-Clause */
/* Systems with the adjoint. The ladder solves with A and with A^T. */
#include "api/adjoint.h"

#include "base/vectors.h"

/* More entries than any computer has room for. */
static const int64_t MOST = INT64_C(1) << 56;
static const int64_t ENTRY = (int64_t)sizeof(hone_entry);

/* to = conj(from), without gaps between the columns. Returns what follows. */
static hone_entry *conjugate_into(const hone_vectors *v, hone_entry *to,
                                  const hone_entry **from, int64_t *ld) {
  for (int64_t j = 0; j < v->nrhs; j++)
    for (int64_t i = 0; i < v->n; i++)
      to[i + j * v->n] = hone_conj((*from)[i + j * *ld]);
  *from = to;
  *ld = v->n;
  return to + v->n * v->nrhs;
}

static void conjugate_x(const hone_vectors *v) {
  for (int64_t j = 0; j < v->nrhs; j++)
    hone_conjugate(v->n, v->x + j * v->ldx);
}

int hone_adjoint_begin(hone_adjoint *adjoint, hone_mem *mem, hone_vectors *v) {
  const bool copies_b = v->b != v->x;
  const bool copies_x0 = v->x0 != NULL && v->x0 != v->x;
  const int64_t copies = (copies_b + copies_x0) * v->n * v->nrhs;
  if (HONE_PARTS == 1)
    return HONE_OK;
  if (copies > adjoint->room) {
    hone_adjoint_destroy(adjoint, mem);
    adjoint->copies =
        hone_mem_get(mem, (size_t)copies * sizeof *adjoint->copies);
    if (adjoint->copies == NULL)
      return HONE_NO_MEMORY;
    adjoint->room = copies;
  }
  hone_entry *to = adjoint->copies;
  if (copies_b)
    to = conjugate_into(v, to, &v->b, &v->ldb);
  if (copies_x0)
    (void)conjugate_into(v, to, &v->x0, &v->ldx0);
  conjugate_x(v);
  adjoint->made = true;
  return HONE_OK;
}

int64_t hone_adjoint_bytes(int64_t n, int64_t nrhs, const hone_options *o) {
  const int64_t copies = 1 + (o->x0 != NULL);
  if (HONE_PARTS == 1 || o->trans != HONE_CONJ_TRANS)
    return 0;
  return n * nrhs <= MOST / copies ? copies * n * nrhs * ENTRY : MOST * ENTRY;
}

void hone_adjoint_end(hone_adjoint *adjoint, const hone_vectors *v) {
  if (adjoint->made)
    conjugate_x(v);
  adjoint->made = false;
}

void hone_adjoint_destroy(hone_adjoint *adjoint, hone_mem *mem) {
  hone_mem_put(mem, adjoint->copies);
  *adjoint = (hone_adjoint){.made = false};
}
