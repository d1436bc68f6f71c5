/* SPDX-License-Identifier: BSD-3-Clause */
/* A model of LU on several GPUs, fitted to times of one and of two: what more
   devices would gain, and what would keep them from gaining more. */
#ifndef BENCH_SEVERAL_MODEL_H
#define BENCH_SEVERAL_MODEL_H

#include <cstdint>

/* Panels of so many columns are a chain: each is factored beside the update by
   the one before, which all devices share (look-ahead). */
struct Several_model {
  int64_t n, width;
  double panel_ms; /* of one panel, with the way of its L to the others */
  double flops;    /* of products on one device, in a millisecond */
};

struct Several_times {
  double ms;
  double by_panels; /* the part of the time in which the panel took longer than
                       the update beside it */
};

Several_times several_times(const Several_model &m, int devices);

/* Finds panel_ms and flops from the times of a factorization on one device and
   on two. Returns false if no model of this kind has them: two took more time
   than one, or less than half of it. */
bool several_fit(double one_ms, double two_ms, Several_model *m);

#endif
