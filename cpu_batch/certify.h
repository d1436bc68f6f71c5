/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of the factors of every lane, by the method of
   refine/probes.c and refine/condition.c: random vectors g bound ||E||_2, E = I
   - inv(M) S, the norms of its rows, and ||inv(S)||_2; one gradient step
   estimates ||inv(S)||_1. All lanes have the same random vectors, each a
   statement of its own, which holds with the stated probability whatever the
   other lanes have. */
#ifndef HONE_CERTIFY_LANES_H
#define HONE_CERTIFY_LANES_H

#include "base/probe_factor.h"
#include "base/vectors.h"
#include "cpu_batch/pack.h"
#include "cpu_batch/products.h"
#ifdef BATCH_ROWS
#include "cpu_batch/factor_rows.h"
#include "cpu_batch/substitute_rows.h"
#else
#include "cpu_batch/factor.h"
#include "cpu_batch/substitute.h"
#endif

/* The bound on ||E|| that the few vectors, and all of them, have to show. */
static const double FEW_BOUND = 0x1p-6, ALL_BOUND = 0.9;

/* Where the few vectors' bound on ||inv(S)|| exceeds the true one so much that
   rounding errors of residuals might seem to count, all are used as well. */
static const double FEW_NOISE = 1.0 / 64.0;

/* The length of a column of the inverse that stands out, relative to the mean.
 */
static const double STANDS_OUT = 1.5;

typedef struct shown {
  lanes contraction; /* bounds ||E||_2 */
  lanes inverse;     /* bounds ||inv(S)||_2 */
} shown;

/* The sums over the vectors of a statement. */
typedef struct sums {
  lanes squares; /* of E g */
  lanes inverse; /* of inv(M) g */
} sums;

/* p = p (1 + 2 eps u) with random u in [-1, 1), for COLUMNS vectors: rounding
   alone leaves numbers of few digits as they are. */
INLINE void round_at_random(const parts *p, const hone_entry *u, many *v) {
  for (int c = 0; c < COLUMNS; c++)
    for (int64_t i = 0; i < p->m; i++) {
      const many by = common_entries(u + c * p->n, i, p->n);
      many *at = &v[c * p->m + i];
      for (int q = 0; q < HONE_PARTS; q++)
        at->part[q] += 2.0 * HONE_EPS * by.part[q] * at->part[q];
    }
}

/* Draws COLUMNS vectors g and adds what E g and inv(M) g show. */
static void add_vectors(const parts *p, uint64_t *seed, sums *to) {
  const int64_t count = COLUMNS * p->m, entries = COLUMNS * p->n;
  many *product = p->v, *g = product + count, *e = g + count;
  const many *solution = e + count;
  const hone_entry *drawn = (const hone_entry *)p->drawn, *u = drawn + entries;
  hone_random_units(2 * entries * HONE_PARTS, seed, p->drawn);
  for (int64_t i = 0; i < entries * HONE_PARTS; i++)
    p->drawn[i] *= 1.7320508075688772; /* sqrt 3 */
  multiply(p, drawn, product);
  for (int c = 0; c < COLUMNS; c++)
    for (int64_t i = 0; i < p->m; i++)
      g[c * p->m + i] = common_entries(drawn + c * p->n, i, p->n);
  round_at_random(p, u, product);
  round_at_random(p, u, g);
  solve_columns(p, product, e);
  for (int c = 0; c < COLUMNS; c++)
    for (int64_t i = 0; i < p->m; i++) {
      const many v = common_entries(drawn + c * p->n, i, p->n);
      const lanes square = square_of(difference_of(v, e[c * p->m + i]));
      to->squares += square;
      p->rows[i] += square;
    }
  for (int64_t i = 0; i < count; i++)
    to->inverse += square_of(solution[i]);
}

/* Makes the statement with t vectors. Leaves solutions in the last vectors of
   work. */
static shown probe(const parts *p, int t, uint64_t *seed) {
  const double theta = hone_probe_factor_of(t, 1.0);
  const double by_row = hone_probe_factor_of(t, (double)p->n);
  const double rounding = sqrt((double)t) * HONE_EPS * sqrt(3.0 * HONE_PARTS);
  sums s = {all(0.0), all(0.0)};
  shown out;
  for (int64_t i = 0; i < p->m; i++)
    p->rows[i] = all(0.0);
  for (int done = 0; done < t; done += COLUMNS)
    add_vectors(p, seed, &s);
  for (int64_t i = 0; i < p->m; i++)
    p->rows[i] = by_row * (root(p->rows[i]) + rounding);
  out.contraction = theta * root(sum_over(s.squares));
  out.inverse = theta * root(sum_over(s.inverse)) / (1.0 - out.contraction);
  return out;
}

/* v = conj(v / |v|) of a solution; a real 0 counts as positive. */
INLINE void take_signs(int64_t m, const many *y, many *v) {
  for (int64_t i = 0; i < m; i++) {
#ifdef HONE_COMPLEX
    const lanes size = modulus_of(y[i]);
    const mask is = size > 0.0;
    const lanes by = all(1.0) / choose(is, size, all(1.0));
    v[i].part[0] = choose(is, y[i].part[0] * by, all(1.0));
    v[i].part[1] = choose(is, -y[i].part[1] * by, all(0.0));
#else
    v[i].part[0] = choose(y[i].part[0] >= 0.0, all(1.0), all(-1.0));
#endif
  }
}

/* The diagonals of R and C; NULL: I. */
typedef struct units {
  const lanes *row, *col;
} units;

/* w = inv(S) v, or inv(S^T) v. v may be overwritten. */
INLINE void solve_either(const parts *p, bool transposed, many *v, many *w) {
  if (transposed)
    solve_transposed(p, v, w);
  else
    solve_one(p, v, w);
}

/* An estimate, and the 1-norm of the solution that it began with. */
typedef struct estimate {
  lanes norm, begun;
} estimate;

/* Estimates ||C inv(S) R||_1 from a solution y by one gradient step (Hager
   1984; Higham & Tisseur 2000); 'transposed': ||R inv(S^T) C||_1, with units
   that have changed places. */
static estimate estimate_inverse(const parts *p, bool transposed, units unit,
                                 const many *y, many *v, many *w) {
  const int64_t m = p->m;
  lanes norm = all(0.0), begun = all(0.0);
  search longest = {all(-1.0), (mask)all(0.0)};
  for (int64_t i = 0; SYSTEMS == 1 && i < m; i++)
    begun += modulus_of(unit.col ? scaled(y[i], unit.col[i]) : y[i]);
  take_signs(m, y, v);
  for (int64_t i = 0; unit.col != NULL && i < m; i++)
    v[i] = scaled(v[i], unit.col[i]);
  solve_either(p, !transposed, v, w);
  for (int64_t i = 0; i < m; i++)
    look(&longest, modulus_of(unit.row ? scaled(w[i], unit.row[i]) : w[i]),
         rows_of(i));
  longest = found_over(longest);
  for (int64_t i = 0; i < m; i++) {
    const lanes by = unit.row ? unit.row[i] : all(1.0);
    v[i] = nothing();
    v[i].part[0] = choose(longest.at == rows_of(i), by, all(0.0));
  }
  solve_either(p, transposed, v, w);
  for (int64_t i = 0; i < m; i++)
    norm += modulus_of(unit.col ? scaled(w[i], unit.col[i]) : w[i]);
  return (estimate){sum_over(norm), sum_over(begun)};
}

/* The verdict on the factors of every lane. */
typedef struct certified {
  mask serves;
  shown by_probes;
  lanes rcond, rcond_scaled;
  bool certain; /* the estimate of a system by itself */
} certified;

/* Is the column of the inverse to which a gradient step has led longer than
   columns are in the mean? If it is not, nothing distinguishes it, and another
   one may be several times as large (refine/condition.c). */
static bool is_certain(const parts *p, const estimate *e) {
  const double root_n = sqrt((double)(HONE_PARTS * p->n));
  return e->norm[0] * root_n > STANDS_OUT * e->begun[0];
}

/* Makes the statement with all vectors. Lanes for which the few sufficed keep
   those, so that nothing in a lane depends on what the others hold. */
static shown probe_again(const parts *p, mask few, const shown *by_few,
                         uint64_t *seed) {
  many *y = p->v + 3 * COLUMNS * p->m;
  memcpy(p->few, p->rows, (size_t)p->m * sizeof *p->few);
  memcpy(p->first, y, (size_t)p->m * sizeof *p->first);
  shown out = probe(p, PROBES_ALL, seed);
  for (int64_t i = 0; i < p->m; i++) {
    p->rows[i] = choose(few, p->few[i], p->rows[i]);
    y[i] = chosen(few, p->first[i], y[i]);
  }
  out.contraction = choose(few, by_few->contraction, out.contraction);
  out.inverse = choose(few, by_few->inverse, out.inverse);
  return out;
}

/* Returns the longest of so many solutions of a system by itself, which lie one
   behind the other; an estimate does best to begin with it. */
static const many *longest_of(const parts *p, int count, const many *y) {
  const many *longest = y;
  double most = 0.0;
  for (int c = 0; c < count; c++) {
    lanes size = all(0.0);
    for (int64_t i = 0; i < p->m; i++)
      size += square_of(y[c * p->m + i]);
    size = sum_over(size);
    longest = size[0] > most ? y + c * p->m : longest;
    most = HONE_MAX(most, size[0]);
  }
  return longest;
}

static certified certify(const parts *p, const packed *a, uint64_t seed) {
  certified out = {.by_probes = probe(p, COLUMNS, &seed)};
  const lanes noise =
      (double)(p->n + 4) * HONE_EPS * a->norm_scaled * out.by_probes.inverse;
  const mask few =
      (out.by_probes.contraction <= FEW_BOUND) & (noise <= FEW_NOISE);
  if (any(a->serves & ~few))
    out.by_probes = probe_again(p, few, &out.by_probes, &seed);
  const many *y =
      longest_of(p, SYSTEMS == 1 ? COLUMNS : 1, p->v + 3 * COLUMNS * p->m);
  many *v = p->v, *w = p->v + p->m;
  estimate e = estimate_inverse(p, false, (units){NULL, NULL}, y, v, w);
  out.rcond_scaled = 1.0 / (a->norm_scaled * e.norm);
  out.rcond = out.rcond_scaled;
  if (any(~a->plain)) {
    e = estimate_inverse(p, false, (units){p->row, p->col}, y, v, w);
    out.rcond = choose(a->plain, out.rcond, 1.0 / (a->norm_cols * e.norm));
  }
  out.certain = is_certain(p, &e);
  out.serves = a->serves & (out.by_probes.contraction <= ALL_BOUND) &
               (out.rcond_scaled >= HONE_EPS) & (out.rcond > 0.0) &
               (out.by_probes.inverse <= LARGEST_ENTRY);
  return out;
}

#endif
