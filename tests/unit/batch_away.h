/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches whose arrays lie in device memory (device_memory.h). */
#ifndef TESTS_BATCH_AWAY_H
#define TESTS_BATCH_AWAY_H

#include "tests/unit/batch_system.h"

/* A copy of a batch on the device; in_place: x takes the place of b. */
typedef struct away {
  hone_batch batch;
  double *a, *b, *x;
  bool in_place;
  const double *a_list[8], *b_list[8];
  double *x_list[8];
} away;

away away_send(const bat *t, bool in_place);
void away_discard(away *w);
/* Gives the systems, at most 8, by lists, which are a part of *w: it must not
   move any more. */
void away_use_lists(away *w);

#endif
