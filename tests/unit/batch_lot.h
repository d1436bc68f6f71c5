/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of systems for the tests of their kernels, of which there are tables
   for every instruction set, and the check of one system against a reference.
   For real entries and, compiled with HONE_COMPLEX, for complex ones. */
#ifndef HONE_BATCH_LOT_H
#define HONE_BATCH_LOT_H

#include "base/isa.h"
#include "cpu_batch/block.h"
#include "tests/gallery/either.h"
#include "tests/unit/support.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = HONE_BLOCK_LANES, CORRECTIONS = 3 };

static const struct {
  const hone_block_kernels *kernels;
  hone_isa isa;
  int lanes;
} tables[] = {{&hone_block_base, HONE_ISA_BASE, 2},
              {&hone_rows_base, HONE_ISA_BASE, 1},
#if defined(__x86_64__)
              {&hone_block_avx2, HONE_ISA_AVX2, 4},
              {&hone_rows_avx2, HONE_ISA_AVX2, 1},
              {&hone_block_avx512, HONE_ISA_AVX512, 8},
              {&hone_rows_avx512, HONE_ISA_AVX512, 1}
#endif
};
enum { TABLES = sizeof tables / sizeof *tables };

/* A block of systems, each with one right-hand side. Memory holds NaN before
   the kernels write it, and has guards at its ends. */
typedef struct lot {
  const hone_block_kernels *kernels;
  int64_t n;
  double *a[MOST], *b[MOST], *x[MOST], *memory;
  hone_block block;
  hone_block_matrix matrices[MOST];
  hone_block_solve job;
} lot;

static inline double *entry(const lot *t, int l, int64_t i, int64_t j) {
  return t->a[l] + (i + j * t->n) * HONE_PARTS;
}

static inline lot make(const hone_block_kernels *kernels, int64_t n) {
  const int64_t bytes = kernels->bytes(n);
  const int64_t of_a = n * n * HONE_PARTS, of_b = n * HONE_PARTS;
  lot t = {.kernels = kernels, .n = n};
  t.memory = sup_aligned(bytes / (int64_t)sizeof(double), HONE_NAN);
  t.block = (hone_block){.n = n, .memory = t.memory, .determinants = true};
  t.job = (hone_block_solve){.limit = SUP_LIMIT, .corrections = CORRECTIONS};
  for (int l = 0; l < MOST; l++) {
    sup_rng rng = {(uint64_t)(l + 10 * n)};
    t.a[l] = sup_filled(of_a, 0.0);
    t.b[l] = sup_filled(of_b, 0.0);
    t.x[l] = sup_filled(of_b, -7.0);
    for (int64_t i = 0; i < of_a; i++)
      t.a[l][i] = sup_uniform(&rng);
    for (int64_t i = 0; i < n; i++)
      *entry(&t, l, i, (i + 1) % n) += 1.0 + sqrt((double)n);
    for (int64_t i = 0; i < of_b; i++)
      t.b[l][i] = sup_uniform(&rng);
    t.matrices[l] = (hone_block_matrix){
        .at = (const hone_entry *)t.a[l], .row = 1, .column = n};
    t.job.b[l] = (const hone_entry *)t.b[l];
    t.job.x[l] = (hone_entry *)t.x[l];
  }
  return t;
}

static inline void discard(lot *t) {
  for (int l = 0; l < MOST; l++) {
    sup_free(t->a[l]);
    sup_free(t->b[l]);
    sup_free(t->x[l]);
  }
  sup_free(t->memory);
}

static inline void factor_and_solve(lot *t) {
  t->kernels->factor(&t->block, t->matrices, 17);
  t->kernels->solve(&t->block, &t->job);
}

/* Runs a check with every table. */
static inline void with_tables(void (*check)(const hone_block_kernels *)) {
  for (int i = 0; i < TABLES; i++)
    if (tables[i].isa <= hone_isa_here())
      check(tables[i].kernels);
}

/* ---- Numbers ------------------------------------------------------------ */

static inline double largest(int64_t n, const double *v) {
  double most = 0.0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, either_size(HONE_PARTS, v + i * HONE_PARTS));
  return most;
}

/* The modulus of entry i of b - A x, in extended precision. */
static inline double residual_of(const lot *t, int l, int64_t i) {
  const hone_entry *x = (const hone_entry *)t->x[l];
  hone_wide sum = (hone_wide)((const hone_entry *)t->b[l])[i];
  for (int64_t j = 0; j < t->n; j++)
    sum -= (hone_wide)((const hone_entry *)t->a[l])[i + j * t->n] *
           (hone_wide)x[j];
  return (double)hone_absl(sum);
}

/* ---- Checks ------------------------------------------------------------- */

static inline void check_lane(const lot *t, int l, reference *r) {
  const hone_block_column *c = &t->job.column[l];
  const int64_t n = t->n;
  double most = 0.0, norm = 0.0;
  if (!CHECK(t->block.lane[l].serves && c->accepted))
    return;
  const double omega = either_omega(HONE_PARTS, n, t->a[l], t->x[l], t->b[l]);
  CHECK_LE(omega * (1.0 - 1e-12), SUP_LIMIT);
  CHECK_NEAR(c->componentwise, omega, 1e-6 * omega + 1e-24);
  for (int64_t i = 0; i < n; i++) {
    double sum = 0.0;
    for (int64_t j = 0; j < n; j++)
      sum += either_size(HONE_PARTS, entry(t, l, i, j));
    norm = fmax(norm, sum);
    most = fmax(most, residual_of(t, l, i));
  }
  /* The residual in extended precision is itself wrong by some 1e-18. */
  CHECK_NEAR(t->block.lane[l].norm, norm, 1e-13 * norm);
  CHECK_NEAR(c->residual, most / largest(n, t->b[l]),
             0.01 * c->residual + 1e-17);
  CHECK_NEAR(c->normwise, most / norm / largest(n, t->x[l]) / sqrt((double)n),
             0.01 * c->normwise + 1e-18);
  either_solve(r, HONE_PARTS, n, 1, t->a[l], t->b[l]);
  const double distance = (double)either_distance(r, HONE_PARTS, 0, t->x[l]);
  CHECK_LE(distance, c->forward * (1.0 + 1e-9));
  CHECK_LE(c->forward, 1e3 * SUP_EPS / t->block.lane[l].rcond);
  CHECK(c->corrections >= 0 && c->corrections <= CORRECTIONS);
}

#endif
