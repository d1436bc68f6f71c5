/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of random probes, and where its vectors are: on the host, or on a
   device that makes the powers of E. In double precision. Next to read:
   probes.c. */
#ifndef HONE_PROBE_RUN_H
#define HONE_PROBE_RUN_H

#include "refine/probes.h"

/* The first power of E is applied to HONE_PROBES vectors, so that it suffices
   for most factors. The next ones are so much smaller that fewer vectors are
   enough. Where a device has A more vectors take little more time: there the
   first power is applied to hone_probe_vectors of them, and so are the next
   ones unless the bound by fewer will certainly do. That is so after a first
   bound of up to SMALL_FIRST, and where later ones go on falling as they did to
   at most SMALL_NEXT. Bounds by seven vectors are seven times as large as
   bounds by 16. After first bounds of 5 to 10 they were 0.2 to 0.6, which
   contracts; but then error bounds were not tight before a third correction,
   which took longer than more vectors do (H200, n = 16384,
   docs/performance.md).

   One of the vectors that the second power is not applied to any more takes
   part in it as u, by which it is relaxed (relaxation.h). It has no part in the
   bound: with it omega would not be independent of the vectors. A device, where
   all vectors take part in the second power, has one less then; and only where
   u = E g is longer than RELAXED_FROM, which is about ||E||_F: random matrices
   have several small singular values, and norms up to about that, which are not
   relaxed (H200, n to 32768). That is left to u alone, too: if the bound by all
   vectors decided, both outcomes would count as statements. */
enum {
  HONE_PROBES_LATER = 8 / HONE_PARTS,
  /* An estimate is one column more, and a solve is for groups of two or four.
   */
  HONE_PROBES_LATER_DEVICE = HONE_PARTS == 1 ? 7 : HONE_PROBES_LATER
};
#define HONE_PROBES_SMALL_FIRST 4.0
#define HONE_PROBES_SMALL_NEXT 0.0078125
#define HONE_PROBES_RELAXED_FROM 8.0

/* The vectors of a run, n entries each: as many as it begins with in v and p,
   HONE_PROBE_SOLUTIONS in q and y. q follows the vectors of p that are in use:
   one solve serves both. */
typedef struct hone_probe_arrays {
  hone_entry *v;    /* E^k g */
  hone_entry *p;    /* op(S) v, then inv(M) op(S) v */
  hone_entry *q;    /* h - op(S) y, then the correction of y */
  hone_entry *y;    /* solutions of op(S) y = h */
  hone_entry *work; /* scaled copies, and 2 n more */
} hone_probe_arrays;

/* Those h, times 2^-shift: drawn anew for every residual, and not kept. */
typedef struct hone_probe_right_sides {
  uint64_t seed;
  int shift;
  double first_size; /* the size of the solutions by the factors alone */
  int count;         /* to solve for; 0 when they are good enough */
} hone_probe_right_sides;

/* A run. The vectors are on the host or, with hone_probe_step, on a device. */
typedef struct hone_probe_run {
  hone_probing *probing;
  hone_contraction *out;
  hone_factored f;
  hone_probe_arrays at;
  hone_probe_right_sides h;
  uint64_t rounding_seed;
  uint64_t seed; /* of the vectors that are not drawn yet */
  hone_probe_step step;
  int t;          /* vectors in use, */
  bool relaxing;  /* and u, behind them or, on a device, before them */
  double earlier; /* the bound of the power before the last one; 0: none */
  double squares; /* the sum of their squares */
  double largest; /* their largest entry before the last power */
} hone_probe_run;

/* Where the vectors of a run are. */
typedef struct hone_probe_place {
  /* Makes v = E v for power number k, and corrects the solutions that are still
     needed; relaxes both if r->relaxing. */
  int (*apply_power)(hone_probe_run *r, int k);
  /* Goes on with fewer vectors, if they will do. */
  void (*narrow)(hone_probe_run *r);
  /* Takes the rows of the last power, and the solutions. */
  int (*finish)(hone_probe_run *r);
} hone_probe_place;

extern const hone_probe_place hone_probe_on_host, hone_probe_on_device;

/* How wrong the root of the sum of squares of t differences of numbers of at
   most 'largest' may be through their rounding. */
static inline double hone_probe_rounding(int t, double largest) {
  return sqrt((double)t) * HONE_EPS * largest;
}

/* Will fewer vectors do, where a device has A? */
static inline bool hone_probe_fewer_suffice(const hone_probe_run *r) {
  const double bound = r->out->bound, earlier = r->earlier;
  return earlier > 0.0 ? bound * (bound / earlier) <= HONE_PROBES_SMALL_NEXT
                       : bound <= HONE_PROBES_SMALL_FIRST;
}

/* Takes what the solutions show of inv(op(S)); squares: of each of them. */
void hone_probe_take_inverse(hone_probe_run *r, const double *squares);

/* Returns the number of the largest solution, by these squares. */
int hone_probe_largest_of(const double *squares);

#endif
