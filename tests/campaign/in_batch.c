/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/campaign/in_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *memory(size_t bytes) {
  void *p = calloc(bytes > 0 ? bytes : 1, 1);
  if (p == NULL)
    abort();
  return p;
}

/* A matrix that the neighbours may have. */
static double *neighbour(const either_call *c, int kind) {
  const int64_t numbers = c->lda * c->n * c->parts;
  double *a = memory((size_t)numbers * sizeof *a);
  for (int64_t j = 0; j < c->n && kind > 0; j++) {
    double *diagonal = a + (j + j * c->lda) * c->parts;
    *diagonal = kind == 1 ? (double)NAN : 1.0;
    if (kind == 2 && j == 0)
      *diagonal = 0x1p-1060;
  }
  return a;
}

static int solve(const either_call *c, const hone_batch *batch,
                 const hone_options *o, hone_batch_result *results) {
  hone_z_batch z;
  if (c->parts == 1)
    return hone_batch_solve(batch, o, results, NULL);
  memcpy(&z, batch, sizeof z); /* the members are the same */
  return hone_z_batch_solve(&z, o, results, NULL);
}

int in_batch_solve(const either_call *c, const hone_options *options, int place,
                   hone_batch_result *result) {
  enum { COUNT = IN_BATCH_COUNT };
  const int64_t numbers = c->ldx * c->nrhs * c->parts;
  const double *a[COUNT], *b[COUNT];
  double *x[COUNT], *other[3], *room;
  hone_batch_result results[COUNT];
  hone_batch batch = HONE_BATCH_INIT;
  hone_options o = *options;
  hone_column *columns = memory((size_t)(COUNT * c->nrhs) * sizeof *columns);
  const int64_t of_b = ((c->nrhs - 1) * c->ldb + c->n) * c->parts;
  double *own_b = memory((size_t)of_b * sizeof *own_b);
  memcpy(own_b, c->b, (size_t)of_b * sizeof *own_b); /* x may be b */
  room = memory((size_t)(COUNT * numbers) * sizeof *room);
  for (int k = 0; k < 3; k++)
    other[k] = neighbour(c, k);
  for (int k = 0; k < COUNT; k++) {
    const int kind = k == place ? 3 : (k + place) % 4;
    a[k] = kind == 3 ? c->a : other[kind];
    b[k] = k == place ? c->b : own_b;
    x[k] = k == place ? c->x : room + k * numbers;
  }
  batch.count = COUNT;
  batch.n = c->n;
  batch.nrhs = c->nrhs;
  batch.a_list = a;
  batch.b_list = b;
  batch.x_list = x;
  batch.lda = c->lda;
  batch.ldb = c->ldb;
  batch.ldx = c->ldx;
  o.columns = columns;
  o.column_size = sizeof *columns;
  (void)solve(c, &batch, &o, results);
  *result = results[place];
  if (options->columns != NULL && result->status >= 0)
    memcpy(options->columns, columns + place * c->nrhs,
           (size_t)c->nrhs * sizeof *columns);
  for (int k = 0; k < 3; k++)
    free(other[k]);
  free(own_b);
  free(room);
  free(columns);
  return result->status;
}
