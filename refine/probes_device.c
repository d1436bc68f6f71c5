/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of random probes whose vectors are on a device, in double precision.
   Next to read: probes.c, whose head states the theorem. */
#include "refine/probe_run.h"

#include "refine/relaxation.h"

#include <math.h>
#include <string.h>

/* Sums of squares of solutions that a device keeps as they are. */
static const double LEAST_SQUARES = 1e-200, MOST_SQUARES = 1e200;
enum { SOLUTIONS = HONE_PROBE_SOLUTIONS };

static int apply_power_on_device(hone_probe_run *r, int k) {
  hone_probe_step *s = &r->step;
  s->first = k == 1;
  s->solutions = r->h.count;
  s->estimates = r->probing->inverse && k == 2;
  s->relaxes = r->relaxing;
  int st = r->f.engine->probe_step(r->f.self, r->f.a, s);
  if (st != HONE_OK)
    return st;
  r->probing->passes += 1;
  r->squares = s->squares;
  if (s->relaxes)
    r->out->excess = s->excess;
  if (s->first)
    s->from = hone_probe_largest_of(s->solution_squares);
  r->probing->estimated = r->probing->estimated || s->estimates;
  r->probing->inverse_norm = s->inverse_norm;
  if (s->first && s->solutions > 0) {
    for (int c = 0; c < SOLUTIONS; c++)
      r->h.first_size += s->solution_squares[c];
    if (!(r->h.first_size >= LEAST_SQUARES) ||
        !(r->h.first_size <= MOST_SQUARES))
      return HONE_OVERFLOW; /* on the host they are brought near 1 */
  }
  return HONE_OK;
}

static void narrow_on_device(hone_probe_run *r) {
  const int before = r->t;
  r->largest = r->step.largest;
  r->relaxing =
      r->relaxing && sqrt(r->step.first_squares) > HONE_PROBES_RELAXED_FROM;
  if (r->relaxing)
    r->t--;
  else if (hone_probe_fewer_suffice(r))
    r->t = HONE_MIN(r->t, HONE_PROBES_LATER_DEVICE);
  r->step.dropped = r->step.vectors - r->t;
  r->squares *= (double)r->t / before; /* about */
}

/* The host needs the largest solution where something begins from it: another
   estimate, or a search for a null vector. */
static int finish_on_device(hone_probe_run *r) {
  const int64_t n = r->f.a->n;
  hone_probing *p = r->probing;
  const bool shown = r->out->power > 0;
  const bool needed = p->inverse && (!shown || r->f.scaling->used ||
                                     (p->corrected_next && r->out->power > 1));
  const double factor = hone_probe_factor_of(r->t, (double)n);
  const double rounding = hone_probe_rounding(r->t, r->largest);
  const int largest = hone_probe_largest_of(r->step.solution_squares);
  const hone_probed wanted = {
      .solution = needed ? largest : -1,
      .solution_to = r->at.y,
      .inverse_norm = p->inverse && !p->estimated ? &p->inverse_norm : NULL,
      .from = largest};
  int st = r->f.engine->probed(r->f.self, &r->step, &wanted);
  if (st != HONE_OK)
    return st;
  for (int64_t i = 0; shown && i < n; i++)
    r->out->rows[i] = factor * (sqrt(r->step.row_squares[i]) + rounding);
  p->estimated = p->inverse;
  p->solution = needed ? r->at.y : NULL;
  if (p->inverse)
    hone_probe_take_inverse(r, r->step.solution_squares);
  if (needed) /* stands for the first random vector, where a search begins */
    memcpy(r->at.v, r->at.y, (size_t)n * sizeof *r->at.v);
  return HONE_OK;
}

const hone_probe_place hone_probe_on_device = {
    apply_power_on_device, narrow_on_device, finish_on_device};
