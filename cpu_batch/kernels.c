/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of small systems: factors with their certificate, and solutions with
   their verdict. This file is compiled once for each instruction set, with
   BATCH_ISA as its name.

   A lane is served here only if everything goes as it does for most systems:
   entries within 2^+-300, factors that contract at once, an x that is accepted
   after a few corrections, and a bound that is tight, with the noise of the
   residual in it. All others are left to the ladder of factorizations
   (refine/), which has an answer for everything. So what is derived in
   refine/bounds.c is needed here for m = 1 alone:

     |e_i| <= |d_i| + rho_i ||f||,   ||f|| <= (||d|| + noise) / (1 - eta)

   in scaled variables, d = inv(M) r being a correction that is not made. */
#include "base/engine.h"
#include "cpu_batch/certify.h"
#ifdef BATCH_ROWS
#include "cpu_batch/describe.h"
#endif

#include <float.h>
#include <math.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)
#ifdef BATCH_ROWS
#define BATCH_NAME JOIN(hone_rows_, BATCH_ISA)
#else
#define BATCH_NAME JOIN(hone_block_, BATCH_ISA)
#endif

/* The parts of R b are within this range, or 0, and the largest of y too. */
static const double LARGEST_SIDE = 0x1p400, SMALLEST_SIDE = 0x1p-400;
/* A complex number that counts beside one of this size has a square in range.
 */
static const double LEAST_SQUARED = 0x1p-440;
/* As in refine/bounds.c. */
static const double TIGHT = 2.0, SMALL = 0.25 * HONE_EPS;
static const double ROUNDING = 4.0 * HONE_EPS;
static const double SOLVE_ROUNDING = 4.0 * HONE_ROUNDINGS * HONE_EPS;
static const double NOISE_FACTOR = 2.0;
/* Covers the rounding of a bound's own sums, of at most so many terms. */
static const double ABOVE = 1.0 + 0x1p-40;
/* Covers the last digits that numbers near the end of the range may lose. */
static const double GRAIN = 0x1p-900;

/* Where the smallest pivot is below this part of (n + 4) ||S||_1, the factors
   hardly ever contract enough. (Of random matrices with two nearly equal
   columns, n = 64 to 256, those with 2.7 eps and more were served.) */
static const double HOPELESS = 2.0 * HONE_EPS;

/* From this order on the first solution is hardly ever accepted in all lanes:
   it is corrected once, by a residual in plain double, before it is measured.
 */
enum { PLAIN_FROM = 32 };

/* ---- Factors ------------------------------------------------------------ */

/* det(A) = parity prod u_ii / prod (r_i c_i), as a mantissa and an exponent. */
static void take_determinant(const parts *p, int l, double parity,
                             hone_block_lane *out) {
  double re = parity, im = 0.0;
  int64_t exponent = 0;
  for (int64_t i = 0; i < p->n; i++) {
    many *column = p->f + i * p->ld;
    const double x = *entry_place(column, i, l, 0);
    const double y =
        HONE_PARTS == 2 ? *entry_place(column, i, l, HONE_PARTS - 1) : 0.0;
    const double product = re * x - im * y;
    int shift = 0;
    im = re * y + im * x;
    re = product;
    (void)frexp(fmax(fabs(re), fabs(im)), &shift);
    re = ldexp(re, -shift);
    im = ldexp(im, -shift);
    exponent += shift - ilogb(*number_place(p->row, i, l)) -
                ilogb(*number_place(p->col, i, l));
  }
  out->determinant[0] = re;
  out->determinant[1] = im;
  out->exponent = exponent;
}

/* A seed that norms of the matrix have changed. */
static uint64_t seed_with_norms(uint64_t seed, const packed *a) {
  const lanes norm[] = {a->norm_rows, a->norm_cols, a->norm_scaled};
  for (size_t k = 0; k < sizeof norm / sizeof *norm; k++)
    seed = hone_random_bits(&seed) ^ ((bits)norm[k])[0];
  return hone_random_bits(&seed);
}

static void factor_block(hone_block *block, const hone_block_matrix *matrices,
                         uint64_t seed) {
  const parts p = parts_of(block);
  block->lane[0].serves = false;
  if (SYSTEMS == 1 && matrices->at == NULL)
    return;
  const packed a = pack(&p, block->definite, matrices);
  if (SYSTEMS == 1 && !any(a.serves))
    return;
  if (SYSTEMS == 1)
    block->sizes = (hone_block_sizes){
        .max_abs = a.max_abs, .min_abs = a.min_abs, .norm = a.norm_cols[0]};
  const pivots chosen_pivots = factor(&p, block->definite);
  const double least =
      block->alone ? HOPELESS * (double)(p.n + 4) * a.norm_scaled[0] : 0.0;
  if (SYSTEMS == 1 && !any(chosen_pivots.smallest > least))
    return;
  if (SYSTEMS == 1 && block->alone)
    seed = seed_with_norms(seed, &a);
  const certified c = certify(&p, &a, seed);
  block->sizes.certain = c.certain;
  for (int l = 0; l < SYSTEMS; l++) {
    hone_block_lane *out = &block->lane[l];
    out->serves = matrices[l].at != NULL && c.serves[l] != 0 &&
                  chosen_pivots.smallest[l] > 0.0;
    if (!out->serves)
      continue;
    out->rcond = c.rcond[l];
    out->rcond_scaled = c.rcond_scaled[l];
    out->contraction = c.by_probes.contraction[l];
    out->inverse = c.by_probes.inverse[l];
    out->norm = a.norm_rows[l];
    out->pivot = (int)chosen_pivots.at[l];
    if (block->determinants)
      take_determinant(&p, l, chosen_pivots.parity[l], out);
  }
}

/* ---- Solutions ---------------------------------------------------------- */

/* One right-hand side of every lane, with vectors in the block's work. */
typedef struct side {
  many *c, *y, *r, *d; /* R b, inv(C) x, R (b - A x), inv(M) r */
  mask alive;          /* lanes that may still be accepted */
  lanes largest_b;     /* max |b_i|, in the caller's units */
} side;

/* Every lane of a system gets 'which' of it. */
INLINE void set_system(mask *v, int l, bool which) {
  if (SYSTEMS > 1)
    (*v)[l] = -(int64_t)which;
  else
    *v = (mask)all(0.0) - (int64_t)which;
}

static side begin_side(const parts *p, const hone_block *block,
                       const hone_block_solve *job) {
  const int64_t n = p->n, m = p->m;
  side s = {.c = p->v,
            .y = p->v + m,
            .r = p->v + 2 * m,
            .d = p->v + 3 * m,
            .largest_b = all(0.0)};
  extent e = begin_extent();
  s.c[m - 1] = nothing();
  for (int l = 0; l < SYSTEMS; l++) {
    const bool has = block->lane[l].serves && job->b[l] != NULL;
    set_system(&s.alive, l, has);
    for (int64_t i = 0; i < n; i++)
      put_entry(s.c, i, l, has ? job->b[l][i] : (hone_entry)1.0);
  }
  for (int64_t i = 0; i < m; i++) {
    s.c[i] = scaled(s.c[i], p->row[i]);
    s.largest_b = larger(modulus_of(s.c[i]) / p->row[i], s.largest_b);
    take_extent(&e, s.c[i]);
  }
  s.largest_b = largest_over(s.largest_b);
  s.alive &=
      is_within(&e, LARGEST_SIDE, SMALLEST_SIDE) & anywhere((mask)(e.most > 0));
  return s;
}

/* max_i |r_i| / den_i; NaN where a denominator may have lost digits, or the
   square of a complex number beside it. */
static lanes componentwise(const parts *p, const many *r) {
  const double least = HONE_PARTS == 1
                           ? (double)p->n * DBL_MIN / HONE_EPS / HONE_EPS
                           : LEAST_SQUARED;
  lanes omega = all(0.0);
  mask lost = (mask)all(0.0);
  for (int64_t i = 0; i < p->m; i++) {
    const mask is = rows_of(i) < p->n;
    const lanes den = p->den[i], quotient = modulus_of(r[i]) / den;
    omega = larger(choose(is, quotient, omega), omega);
    lost |= is & (~(den > least) | ~(den <= DBL_MAX) | ~(quotient <= DBL_MAX));
  }
  return choose(anywhere(lost), all(HONE_NAN), largest_over(omega));
}

/* Solves and corrects until every lane that lives is accepted, or has had its
   corrections; d is that of the last y. */
static void refine(const parts *p, const hone_block_solve *job, side *s,
                   lanes *omega, int *corrections) {
  const bool begins_plain = p->n >= PLAIN_FROM && job->corrections > 0;
  solve_one(p, s->c, s->y);
  if (begins_plain) {
    plain_residual(p, s->c, s->y, s->r);
    solve_one(p, s->r, s->d);
    for (int64_t i = 0; i < p->m; i++)
      s->y[i] = sum_of(s->y[i], s->d[i]);
    for (int l = 0; l < SYSTEMS; l++)
      corrections[l] = 1;
  }
  for (int step = begins_plain ? 1 : 0;; step++) {
    residual(p, s->c, s->y, s->r);
    *omega = componentwise(p, s->r);
    solve_one(p, s->r, s->d);
    const mask accepted = *omega <= job->limit;
    for (int l = 0; l < SYSTEMS; l++)
      corrections[l] += accepted[l] == 0 && step < job->corrections;
    if (step >= job->corrections || !any(s->alive & ~accepted)) {
      s->alive &= accepted;
      return;
    }
    for (int64_t i = 0; i < p->m; i++)
      s->y[i] = chosen(accepted, s->y[i], sum_of(s->y[i], s->d[i]));
  }
}

/* The norms from which errors and bounds are made, lane by lane. */
typedef struct norms {
  lanes d_square, noise_square, d_most, d_most_unit, y_most, x_most, r_most;
} norms;

static norms take_norms(const parts *p, const side *s) {
  const double gamma = (double)hone_pair_terms(p->n) * HONE_EPS * HONE_EPS;
  norms v;
  memset(&v, 0, sizeof v);
  for (int64_t i = 0; i < p->m; i++) {
    const lanes d = modulus_of(s->d[i]), y = modulus_of(s->y[i]);
    const lanes r = modulus_of(s->r[i]);
    const lanes wrong = gamma * p->den[i];
    const lanes noise = wrong + HONE_EPS * r;
    v.d_square += d * d;
    v.noise_square += noise * noise;
    v.d_most = larger(d, v.d_most);
    v.d_most_unit = larger(d * p->col[i], v.d_most_unit);
    v.y_most = larger_or_nan(v.y_most, y);
    v.x_most = larger(y * p->col[i], v.x_most);
    v.r_most = larger((r + wrong) / p->row[i], v.r_most);
  }
  v.d_square = sum_over(v.d_square);
  v.noise_square = sum_over(v.noise_square);
  lanes *const most[] = {&v.d_most, &v.d_most_unit, &v.y_most, &v.x_most,
                         &v.r_most};
  for (size_t k = 0; k < sizeof most / sizeof *most; k++)
    *most[k] = largest_over(*most[k]);
  return v;
}

/* A bound on the error of every component; the largest in scaled variables and
   in the caller's units. */
typedef struct bars {
  lanes total, total_unit;
} bars;

static bars take_bars(const parts *p, const side *s, lanes f, lanes every) {
  bars b = {all(0.0), all(0.0)};
  for (int64_t i = 0; i < p->m; i++) {
    const lanes d = modulus_of(s->d[i]);
    const lanes bar = ABOVE * (d + p->rows[i] * f + every + ROUNDING * d);
    b.total = larger_or_nan(b.total, bar);
    b.total_unit = larger(bar * p->col[i], b.total_unit);
  }
  b.total = largest_over(b.total);
  b.total_unit = largest_over(b.total_unit);
  return b;
}

INLINE lanes of_lanes(const hone_block *block, size_t offset) {
  lanes v;
  for (int l = 0; l < LANES; l++) {
    double member;
    const hone_block_lane *lane = &block->lane[SYSTEMS > 1 ? l : 0];
    memcpy(&member, (const char *)lane + offset, sizeof member);
    v[l] = member;
  }
  return v;
}

/* Bounds the errors. Lanes whose bound is not tight do not stay alive. Returns
   the relative bound. */
static lanes bound_errors(const hone_block *block, const parts *p, side *s,
                          const norms *v) {
  const lanes eta = of_lanes(block, offsetof(hone_block_lane, contraction));
  const lanes inverse = of_lanes(block, offsetof(hone_block_lane, inverse));
  const lanes rcond = of_lanes(block, offsetof(hone_block_lane, rcond_scaled));
  const lanes size = root(v->d_square) * ABOVE;
  const lanes noise = NOISE_FACTOR * ABOVE * inverse * root(v->noise_square);
  const lanes lost =
      SOLVE_ROUNDING * (1.0 + eta) * size / rcond + GRAIN * v->y_most;
  const lanes f =
      (noise + lost * sqrt((double)p->n) + size) / (1.0 - eta) * ABOVE;
  const bars b = take_bars(p, s, f, noise + lost);
  const lanes small = SMALL * v->y_most, small_unit = SMALL * v->x_most;
  s->alive &= (b.total <= TIGHT * v->d_most + small) &
              (b.total_unit <= TIGHT * v->d_most_unit + small_unit);
  const lanes scaled_bound = b.total / v->y_most + HONE_EPS;
  const lanes bound = b.total_unit / v->x_most + HONE_EPS;
  s->alive &= (scaled_bound <= 0.1) & (bound <= 0.1); /* a digit is certain */
  return bound;
}

/* x = C y, where that is exact. */
static void give_solutions(const parts *p, hone_block_solve *job, side *s) {
  mask exact = ~(mask)all(0.0);
  for (int64_t i = 0; i < p->m; i++)
    for (int q = 0; q < HONE_PARTS; q++) {
      const lanes y = s->y[i].part[q], x = y * p->col[i];
      exact &= (x / p->col[i] == y) & (magnitude(x) <= DBL_MAX);
      s->d[i].part[q] = x;
    }
  s->alive &= everywhere(exact);
  for (int l = 0; l < SYSTEMS; l++)
    for (int64_t i = 0; s->alive[l] && i < p->n; i++)
      job->x[l][i] = get_entry(s->d, i, l);
}

static void solve_block(hone_block *block, hone_block_solve *job) {
  const parts p = parts_of(block);
  const double root_n = sqrt((double)p.n);
  int corrections[LANES] = {0};
  lanes omega = all(HONE_NAN);
  side s = begin_side(&p, block, job);
  if (any(s.alive))
    refine(&p, job, &s, &omega, corrections);
  for (int l = 0; l < SYSTEMS; l++)
    job->column[l].accepted = false;
  if (!any(s.alive))
    return;
  const norms v = take_norms(&p, &s);
  s.alive &= (v.y_most >= SMALLEST_SIDE) & (v.y_most <= LARGEST_SIDE);
  const lanes forward = bound_errors(block, &p, &s, &v);
  const lanes norm_a = of_lanes(block, offsetof(hone_block_lane, norm));
  const lanes normwise = v.r_most / norm_a / v.x_most / root_n;
  const lanes relative = v.r_most / s.largest_b;
  give_solutions(&p, job, &s);
  for (int l = 0; l < SYSTEMS; l++)
    job->column[l] = (hone_block_column){.accepted = s.alive[l] != 0,
                                         .corrections = corrections[l],
                                         .componentwise = omega[l],
                                         .normwise = normwise[l],
                                         .residual = relative[l],
                                         .forward = forward[l]};
}

const hone_block_kernels BATCH_NAME = {.isa = TEXT(BATCH_ISA),
                                       .lanes = SYSTEMS,
                                       .bytes = bytes_of,
                                       .factor = factor_block,
                                       .solve = solve_block,
#ifdef BATCH_ROWS
                                       .describe = describe_system
#endif
};
