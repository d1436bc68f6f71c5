/* SPDX-License-Identifier: BSD-3-Clause */
/* Forward and back substitution in single precision. OpenBLAS's STRSM is slow
   for a few right-hand sides, and its STRSV uses one thread.
   cpu_factor/chain.c deals blocks of rows to the threads. */
#include "cpu_sp/substitution.h"

#include "base/isa.h"
#include "cpu_factor/chain.h"
#include "cpu_sp/substitution_kernels.h"

#include <string.h>

enum {
  PACKED_ROWS = 256, /* rows that stay in the cache while they are packed */
  ALONE = 2, /* up to so many right-hand sides are solved for one by one */
  PARTS_BELOW = 1536, /* orders below which threads may have groups of their
                         own, and below HONE_SHARED_FROM always have, if there
                         are several */
  CHAIN_ROWS = 288    /* so many products of a row are in the chain */
};

typedef struct substitution {
  hone_triangle t[2];
  int64_t n;
  const hone_substitution_kernels *kernels;
  const hone_factors *factors;
  bool trans;
  /* v is conjugated on its way in and out: inv(S^T) v is the conjugate of
     inv(S) conj(v), S being Hermitian. */
  bool conjugated;
  int64_t k, ldv; /* the right-hand sides, in double */
  hone_entry *from;
  int64_t width;  /* of them are solved for together: a group */
  int64_t groups; /* the number of groups, */
  int64_t size;   /* and the numbers of each */
  int64_t parts;  /* of the groups */
  float *v;       /* group after group */
} substitution;

/* ---- Storage ------------------------------------------------------------ */

/* Where k is no multiple of HONE_TOGETHER, the last group has columns of
   zeros. */
int64_t hone_substitution_work(int64_t n, int64_t k) {
  return n * (HONE_PARTS * k + HONE_LANES - 1);
}

static int64_t width_of(int64_t k) { return k <= ALONE ? 1 : HONE_TOGETHER; }

int64_t hone_substitution_groups(int64_t k) {
  return (k + width_of(k) - 1) / width_of(k);
}

/* The sign that a part of the right-hand sides is stored with. */
static double sign_of(const substitution *run, int part) {
  return part == 1 && run->conjugated ? -1.0 : 1.0;
}

/* Rounds the columns of a group; those that are missing become 0. */
static void pack(const substitution *run, int64_t g, float *w) {
  const int64_t row = run->width * HONE_PARTS;
  for (int64_t from = 0; from < run->n; from += PACKED_ROWS) {
    const int64_t to = HONE_MIN(from + PACKED_ROWS, run->n);
    for (int64_t q = 0; q < row; q++) {
      const int64_t c = g * run->width + q % run->width;
      const int part = (int)(q / run->width);
      const double sign = sign_of(run, part);
      const hone_entry *column = run->from + HONE_MIN(c, run->k - 1) * run->ldv;
      const double *v = (const double *)column + part;
      for (int64_t i = from; i < to; i++)
        w[i * row + q] = c < run->k ? (float)(sign * v[i * HONE_PARTS]) : 0.0F;
    }
  }
}

static void unpack(const substitution *run, int64_t g, const float *w) {
  const int64_t row = run->width * HONE_PARTS;
  for (int64_t from = 0; from < run->n; from += PACKED_ROWS) {
    const int64_t to = HONE_MIN(from + PACKED_ROWS, run->n);
    for (int64_t q = 0; q < row; q++) {
      const int64_t c = g * run->width + q % run->width;
      const int part = (int)(q / run->width);
      const double sign = sign_of(run, part);
      hone_entry *column = run->from + HONE_MIN(c, run->k - 1) * run->ldv;
      double *v = (double *)column + part;
      for (int64_t i = from; c < run->k && i < to; i++)
        v[i * HONE_PARTS] = sign * (double)w[i * row + q];
    }
  }
}

/* Exchanges the rows of w, of 'width' entries, as the rows (columns) of S were
   exchanged, in that order or backwards. */
static inline void exchange(const hone_factors *f, bool backwards, size_t width,
                            float *w) {
  float held[HONE_LANES];
  for (int64_t s = 0; s < f->n; s++) {
    const int64_t k = backwards ? f->n - 1 - s : s;
    const int64_t p = (int64_t)f->pivot[k] - f->base;
    float *here = w + (size_t)k * width, *there = w + (size_t)p * width;
    if (here == there)
      continue;
    memcpy(held, here, width * sizeof *w);
    memcpy(here, there, width * sizeof *w);
    memcpy(there, held, width * sizeof *w);
  }
}

static void exchange_group(const substitution *run, bool backwards, float *w) {
  if (run->width == 1)
    exchange(run->factors, backwards, HONE_PARTS, w);
  else
    exchange(run->factors, backwards, HONE_LANES, w);
}

/* Are rows (columns) exchanged before the triangles, or behind them? */
static bool exchanges(const substitution *run, bool before) {
  const bool rows = run->factors->form == HONE_FORM_LU;
  return run->factors->form != HONE_FORM_CHOLESKY &&
         (rows != run->trans) == before;
}

static void begin_group(const substitution *run, int64_t g) {
  float *group = run->v + g * run->size;
  pack(run, g, group);
  if (exchanges(run, true))
    exchange_group(run, false, group);
}

static void finish_group(const substitution *run, int64_t g) {
  float *group = run->v + g * run->size;
  if (exchanges(run, false))
    exchange_group(run, true, group);
  unpack(run, g, group);
}

/* ---- The steps of the chain ---------------------------------------------- */

/* Some of the groups. */
typedef struct part {
  const substitution *run;
  int64_t from, to;
} part;

static void subtract(void *ctx, int t, int64_t i0, int64_t i1, int64_t j0,
                     int64_t j1) {
  const part *p = ctx;
  const substitution *run = p->run;
  for (int64_t g = p->from; g < p->to; g++)
    run->kernels->subtract(&run->t[t], i0, i1, j0, j1, run->v + g * run->size);
}

static void solve(void *ctx, int t, int64_t i0, int64_t i1) {
  const part *p = ctx;
  const substitution *run = p->run;
  for (int64_t g = p->from; g < p->to; g++)
    run->kernels->solve(&run->t[t], i0, i1, run->v + g * run->size);
}

/* Solves for one of as many parts as there are threads. */
static void solve_part(void *ctx, int64_t task) {
  const substitution *run = ctx;
  part p = {run, task * run->groups / run->parts,
            (task + 1) * run->groups / run->parts};
  const hone_chain chain = {run->n, &p, subtract, solve};
  for (int64_t g = p.from; g < p.to; g++)
    begin_group(run, g);
  hone_chain_run(NULL, &chain);
  for (int64_t g = p.from; g < p.to; g++)
    finish_group(run, g);
}

static void begin_task(void *ctx, int64_t g) { begin_group(ctx, g); }

static void finish_task(void *ctx, int64_t g) { finish_group(ctx, g); }

/* ---- Solutions ---------------------------------------------------------- */

/* The two triangles in the order in which they are solved with. */
static void triangles_of(const hone_factors *f, bool trans,
                         hone_triangle out[2]) {
  const bool spd = f->form == HONE_FORM_CHOLESKY; /* L, then L^T or L^H */
  const bool unit_lower = f->form == HONE_FORM_LU;
  for (int step = 0; step < 2; step++) {
    const bool turned = spd ? step == 1 : trans;
    const bool lower_in_f = !spd && (step == 0) != trans;
    out[step] = (hone_triangle){.f = f->f,
                                .row_step = turned ? f->ld : 1,
                                .column_step = turned ? 1 : f->ld,
                                .lower = step == 0,
                                .sign = spd && step == 1 ? -1.0F : 1.0F,
                                .unit = !spd && lower_in_f == unit_lower};
  }
}

static const hone_substitution_kernels *kernels_for_many(void) {
#if defined(__x86_64__)
  const hone_isa isa = hone_isa_here();
  if (isa != HONE_ISA_BASE)
    return isa == HONE_ISA_AVX512 ? &hone_substitution_avx512
                                  : &hone_substitution_avx2;
#endif
  return &hone_substitution_base;
}

/* Do so many threads solve for groups of their own, or share all of them? Each
   part is a chain of n^2 products for each group that it has. What all share is
   done when the slower of two is: their shares of the products, or the chain of
   the blocks on the diagonal and beside it, each for all groups. */
static bool has_parts(const substitution *run, int64_t threads) {
  const int64_t most = (run->groups + run->parts - 1) / run->parts;
  const int64_t shared =
      run->groups * HONE_MAX(run->n / threads, (int64_t)CHAIN_ROWS);
  return run->n < PARTS_BELOW && run->parts > 1 &&
         (run->n < HONE_SHARED_FROM ||
          (run->width > 1 && run->n * most <= shared));
}

void hone_substitute(hone_pool *pool, const hone_factors *f, bool trans,
                     int64_t k, hone_entry *v, int64_t ldv, float *work) {
  const int64_t width = width_of(k);
  substitution run = {.n = f->n,
                      .kernels = width == 1 ? &hone_substitution_one
                                            : kernels_for_many(),
                      .factors = f,
                      .trans = trans,
                      .conjugated = trans && f->form == HONE_FORM_CHOLESKY,
                      .k = k,
                      .ldv = ldv,
                      .from = v,
                      .width = width,
                      .groups = hone_substitution_groups(k),
                      .size = f->n * width * HONE_PARTS,
                      .v = work};
  part all = {&run, 0, run.groups};
  const hone_chain chain = {f->n, &all, subtract, solve};
  triangles_of(f, trans, run.t);
  const int64_t threads = hone_pool_threads(pool);
  run.parts = HONE_MIN(threads, run.groups);
  if (has_parts(&run, threads)) {
    hone_pool_run(pool, run.parts, solve_part, &run);
    return;
  }
  hone_pool_run(pool, run.groups, begin_task, &run);
  hone_chain_run(pool, &chain);
  hone_pool_run(pool, run.groups, finish_task, &run);
}
