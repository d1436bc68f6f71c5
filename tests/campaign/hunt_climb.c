/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves from one system to a neighbour, and the climb over them. */
#include "tests/campaign/hunt.h"

#include <math.h>
#include <string.h>

/* A goal that no system has reached yet. */
static const double NOWHERE = -1e6;
/* Refusing a matrix of this condition is a false alarm. */
static const double WELL = 1e13;
enum { STALE = 80 }; /* moves in vain after which a climb begins elsewhere */

/* ---- Moves that keep the rank ---- */

/* Row or column k: parts * n doubles, number i begins at v[i * step]. */
typedef struct line {
  double *v;
  int64_t step;
  int parts;
} line;

static line line_of(hunt_system *s, bool row, int64_t k) {
  const int p = s->parts;
  return row ? (line){s->a + k * p, s->n * p, p}
             : (line){s->a + k * s->n * p, p, p};
}

/* Double i of the line. */
static double *part_of(line l, int64_t i) {
  return &l.v[i / l.parts * l.step + i % l.parts];
}

/* Double i of the line times i^k. */
static double turned(line l, int64_t i, int64_t k) {
  const double sign = (k + (i % l.parts ? 0 : 1)) & 2 ? -1.0 : 1.0;
  return k == 0 ? *part_of(l, i) : sign * *part_of(l, k & 1 ? i ^ 1 : i);
}

static void scale_line(hunt_system *s, gallery_rng *rng) {
  const line l = line_of(s, gallery_below(rng, 2), gallery_below(rng, s->n));
  const int64_t most = gallery_below(rng, 8) ? 4 : 60;
  const int e = (int)(gallery_below(rng, 2 * most + 1) - most);
  for (int64_t i = 0; i < s->n * s->parts; i++)
    *part_of(l, i) = ldexp(*part_of(l, i), e);
}

/* to += c from with a power of two c, of complex numbers times 1, i, -1 or -i,
   if all sums are exact. */
static void combine_lines(hunt_system *s, gallery_rng *rng) {
  const bool row = gallery_below(rng, 2);
  const int64_t k = gallery_below(rng, s->n);
  const line from = line_of(s, row, k);
  const line to =
      line_of(s, row, (k + 1 + gallery_below(rng, s->n - 1)) % s->n);
  const double c =
      ldexp(gallery_below(rng, 2) ? 1.0 : -1.0, (int)gallery_below(rng, 7) - 3);
  const int64_t quarters = s->parts == 2 ? gallery_below(rng, 4) : 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < s->n * s->parts; i++) {
      const double p = c * turned(from, i, quarters), q = *part_of(to, i);
      const double sum = p + q, z = sum - p;
      if (pass > 0)
        *part_of(to, i) = sum;
      else if (!(fabs((p - (sum - z)) + (q - z)) <= 0.0))
        return;
    }
}

static void exchange_lines(hunt_system *s, gallery_rng *rng) {
  const bool row = gallery_below(rng, 2);
  const line p = line_of(s, row, gallery_below(rng, s->n));
  const line q = line_of(s, row, gallery_below(rng, s->n));
  for (int64_t i = 0; i < s->n * s->parts; i++) {
    const double old = *part_of(p, i);
    *part_of(p, i) = *part_of(q, i);
    *part_of(q, i) = old;
  }
}

/* ---- Moves of entries ---- */

static double near_by(double v, gallery_rng *rng) {
  const double part =
      ldexp(gallery_between(rng, -1.0, 1.0), -(int)gallery_below(rng, 54));
  switch (gallery_below(rng, 8)) {
  case 0:
    return nextafter(v, (double)INFINITY);
  case 1:
    return nextafter(v, -(double)INFINITY);
  case 2:
    return v + (double)(gallery_below(rng, 7) - 3);
  case 3:
    return -v;
  case 4:
    return ldexp(v, (int)gallery_below(rng, 9) - 4);
  case 5:
    return gallery_below(rng, 4) ? rint(v) : 0.0;
  default:
    return v * (1.0 + part);
  }
}

static void move_entry(hunt_system *s, gallery_rng *rng) {
  const int64_t count = s->n * s->n * s->parts;
  double *v = &s->a[gallery_below(rng, count)];
  *v = gallery_below(rng, 16) ? near_by(*v, rng)
                              : s->a[gallery_below(rng, count)];
}

static void move_all(hunt_system *s, gallery_rng *rng) {
  const double size = exp2(-(double)gallery_below(rng, 53));
  for (int64_t i = 0; i < s->n * s->n * s->parts; i++)
    s->a[i] *= 1.0 + size * gallery_between(rng, -1.0, 1.0);
}

/* One line becomes nearly a sum of two others. */
static void make_dependent(hunt_system *s, gallery_rng *rng) {
  const bool row = gallery_below(rng, 2);
  const line to = line_of(s, row, gallery_below(rng, s->n));
  const line p = line_of(s, row, gallery_below(rng, s->n));
  const line q = line_of(s, row, gallery_below(rng, s->n));
  const double size = exp2(-(double)gallery_below(rng, 60));
  const double c = (double)(gallery_below(rng, 3) - 1);
  const int64_t quarters = s->parts == 2 ? gallery_below(rng, 4) : 0;
  double sum[HUNT_MOST_N];
  for (int64_t i = 0; i < s->n * s->parts; i++)
    sum[i] = (turned(p, i, quarters) + c * *part_of(q, i)) *
             (1.0 + size * gallery_between(rng, -1.0, 1.0));
  for (int64_t i = 0; i < s->n * s->parts; i++)
    *part_of(to, i) = sum[i];
}

static void move_rhs(hunt_system *s, int goal, gallery_rng *rng) {
  double *b = s->b + gallery_below(rng, s->nrhs) * s->n * s->parts;
  const int64_t i = gallery_below(rng, s->n * s->parts);
  if (gallery_below(rng, 8) == 0)
    either_rhs(hunt_rhs_kind(s, goal, rng), s->parts, s->n, s->a, s->n,
               gallery_next(rng), b);
  else
    b[i] = near_by(b[i], rng);
}

/* The old matrix follows A, but for one entry. */
static void move_old(hunt_system *s, gallery_rng *rng) {
  double *v = &s->old[gallery_below(rng, s->n * s->n * s->parts)];
  if (gallery_below(rng, 2)) {
    memcpy(s->old, s->a, sizeof s->old);
    v = &s->old[gallery_below(rng, s->n) * (s->n + 1) * s->parts];
    *v += fabs(*v) > 0.0 ? fabs(*v) : 1.0;
  }
  *v = near_by(*v, rng);
}

static void one_move(hunt_system *s, int goal, gallery_rng *rng) {
  const int64_t kind = gallery_below(rng, 16);
  if (s->use == HUNT_UPDATE && gallery_below(rng, 8) == 0)
    move_old(s, rng);
  else if (kind < 4)
    move_rhs(s, goal, rng);
  else if (kind < 6)
    scale_line(s, rng);
  else if (kind < 8 || (goal == HUNT_SINGULAR && kind < 15))
    combine_lines(s, rng);
  else if (kind < 9 || goal == HUNT_SINGULAR)
    exchange_lines(s, rng);
  else if (kind < 14)
    move_entry(s, rng);
  else if (kind < 15)
    move_all(s, rng);
  else
    make_dependent(s, rng);
}

/* Are all entries zero or of a size that is allowed? */
static bool allowed(const hunt_system *s, const double *v, int64_t count) {
  bool good = true;
  for (int64_t i = 0; i < count; i++) {
    const double size = fabs(v[i]);
    good = good && (s->any_size ? isfinite(size)
                                : !(size > 0.0) ||
                                      (size >= 0x1p-200 && size <= 0x1p200));
  }
  return good;
}

static bool valid(const hunt_system *s) {
  const int64_t p = s->parts;
  return allowed(s, s->a, s->n * s->n * p) &&
         allowed(s, s->old, s->n * s->n * p) &&
         allowed(s, s->b, s->n * s->nrhs * p);
}

/* sign: -1.0 for the conjugate transpose, 1.0 for the transpose. */
static bool is_image(const hunt_system *s, double sign) {
  const int p = s->parts;
  bool same = true;
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i <= j; i++) {
      const double *v = s->a + (i + j * s->n) * p;
      const double *w = s->a + (j + i * s->n) * p;
      same = same && !(fabs(v[0] - w[0]) > 0.0);
      same = same && (p == 1 || !(fabs(v[1] - sign * w[1]) > 0.0));
    }
  return same;
}

static void make_image(hunt_system *s, double sign) {
  const int p = s->parts;
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i <= j; i++) {
      const double *v = s->a + (i + j * s->n) * p;
      double *w = s->a + (j + i * s->n) * p;
      w[0] = v[0];
      if (p == 2)
        w[1] = i < j ? sign * v[1] : sign > 0.0 ? v[1] : 0.0;
    }
}

void hunt_move(hunt_system *s, int goal, gallery_rng *rng) {
  const hunt_system before = *s;
  const bool symmetric = is_image(s, 1.0);
  const bool hermitian = s->parts == 2 && is_image(s, -1.0);
  for (int64_t k = gallery_below(rng, 3); k >= 0; k--)
    one_move(s, goal, rng);
  /* A symmetric matrix stays so in seven of eight moves. */
  if ((symmetric || hermitian) && goal != HUNT_SINGULAR &&
      gallery_below(rng, 8))
    make_image(s, hermitian ? -1.0 : 1.0);
  if (!valid(s))
    *s = before;
}

/* ---- The climb ---- */

static double value(int goal, const hunt_verdict *v) {
  switch (goal) {
  case HUNT_RATIO:
    return v->accepted > 0 && v->ratio > 0.0 ? log(v->ratio) : NOWHERE;
  case HUNT_BAR:
    return v->accepted > 0 && v->bar_ratio > 0.0 ? log(v->bar_ratio) : NOWHERE;
  case HUNT_ERROR:
    return v->worst_accepted_error > 0.0 ? log(v->worst_accepted_error)
                                         : NOWHERE;
  case HUNT_SINGULAR:
    return v->rcond > 0.0 ? log(v->rcond) : NOWHERE;
  default:
    return -log(v->refused_condition);
  }
}

static void count(hunt_climb *climb, const hunt_verdict *v) {
  climb->evaluations++;
  climb->singular += v->singular;
  climb->columns += v->columns;
  climb->accepted += v->accepted;
  climb->wrong += v->wrong != 0;
  climb->wrong_in_range += v->wrong != 0 && v->in_range;
  if (v->refused_condition <= WELL && v->small_row) {
    climb->refused_small++;
  } else if (v->refused_condition <= WELL) {
    climb->refused++;
    climb->refused_condition =
        fmin(climb->refused_condition, v->refused_condition);
  }
  if (v->accepted > 0) {
    climb->ratio = fmax(climb->ratio, v->ratio);
    climb->bar_ratio = fmax(climb->bar_ratio, v->bar_ratio);
  }
}

/* Single factors, deflated, of a matrix with one to three nearly dependent
   lines. */
static void begin_deflated(hunt_system *s, int goal, gallery_rng *rng) {
  s->methods |= HUNT_DEFLATION;
  s->precision = HONE_FACTOR_SINGLE;
  s->structure = HONE_STRUCTURE_GENERAL;
  if (goal == HUNT_SINGULAR)
    return;
  for (int64_t k = gallery_below(rng, 3); k >= 0; k--) {
    const hunt_system before = *s;
    make_dependent(s, rng);
    if (!valid(s))
      *s = before;
  }
}

/* A member of a batch, with options that let a block solve it. */
static void begin_in_batch(hunt_system *s) {
  s->use = HUNT_BATCH;
  s->criterion = HONE_CRITERION_COMPONENTWISE;
  s->extra = 0;
  if (s->precision == HONE_FACTOR_SINGLE)
    s->precision = HONE_FACTOR_AUTO;
}

void hunt_run(hunt_climb *climb, int64_t evaluations, hunt_solver solve,
              FILE *accuse, FILE *best) {
  gallery_rng rng = {climb->seed};
  hunt_system here, top;
  hunt_verdict v, top_verdict;
  double at = 0.0;
  int stale = 0;
  climb->refused_condition = (double)INFINITY;
  hunt_start(&here, climb->parts, &climb->goal, &rng);
  here.any_size |= climb->any_size;
  if (climb->deflates)
    begin_deflated(&here, climb->goal, &rng);
  if (climb->in_batch)
    begin_in_batch(&here);
  if (here.use == HUNT_BATCH && climb->goal == HUNT_BAR)
    climb->goal = HUNT_RATIO;
  top = here;
  for (int64_t k = 0; k < evaluations; k++) {
    hunt_system next = here;
    if (k > 0)
      hunt_move(&next, climb->goal, &rng);
    hunt_judge(&next, solve, &v);
    count(climb, &v);
    if ((v.wrong || (v.refused_condition <= WELL && !v.small_row)) && accuse) {
      (void)fprintf(accuse, "# hunt --replay 0x%llx%s%s%s%s, evaluation %d\n",
                    (unsigned long long)climb->seed,
                    climb->parts == 2 ? " --complex" : "",
                    climb->any_size ? " --range" : "",
                    climb->deflates ? " --deflate" : "",
                    climb->in_batch ? " --batch" : "", (int)k);
      hunt_print(&next, &v, accuse);
    }
    const double there = value(climb->goal, &v);
    stale = k > 0 && !(there > at) ? stale + 1 : 0;
    if (k == 0 || there >= at || gallery_below(&rng, 50) == 0) {
      here = next;
      at = there;
    }
    if (k == 0 || there >= value(climb->goal, &top_verdict)) {
      top = next;
      top_verdict = v;
    }
    if (stale > STALE)
      break;
  }
  if (best)
    hunt_print(&top, &top_verdict, best);
}
