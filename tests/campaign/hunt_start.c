/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws where a climb begins: a matrix of the gallery, right-hand sides, and
   the way in which the library is called. */
#include "tests/campaign/hunt.h"

#include <math.h>
#include <string.h>

/* The later families, which are the treacherous ones, make half. If the goal
   needs singular matrices, these are drawn alone. */
static const gallery_family *draw_family(const hunt_system *s, int goal,
                                         gallery_rng *rng) {
  const bool late = gallery_below(rng, 2), any_size = s->any_size;
  const int count = either_families(s->parts);
  for (;;) {
    const int first = late ? gallery_early_count : 0;
    const gallery_family *f =
        &gallery_families[first + gallery_below(rng, count - first)];
    const bool singular = f->properties & GALLERY_SINGULAR;
    if ((goal != HUNT_SINGULAR || singular) &&
        (any_size || !(f->properties & GALLERY_RANGE)))
      return f;
  }
}

int hunt_rhs_kind(const hunt_system *s, int goal, gallery_rng *rng) {
  /* A singular A is most treacherous if the system has solutions. */
  if (goal == HUNT_SINGULAR && gallery_below(rng, 2))
    return GALLERY_B_FEW;
  const int kind = gallery_below(rng, 2)
                       ? GALLERY_B_RANDOM
                       : (int)gallery_below(rng, gallery_rhs_count);
  const bool extreme = kind == GALLERY_B_TINY || kind == GALLERY_B_HUGE;
  return extreme && !s->any_size ? GALLERY_B_RANDOM : kind;
}

static void draw_call(hunt_system *s, const gallery_family *f,
                      gallery_rng *rng) {
  static const double tolerances[] = {0.0, 1e-13, 1e-10, 1e-6};
  const bool symmetric = f->properties & GALLERY_SYMMETRIC;
  const int64_t precision = gallery_below(rng, 4);
  const int64_t structure = gallery_below(rng, 16);
  s->use = gallery_below(rng, 2) ? HUNT_ONCE
                                 : (int32_t)gallery_below(rng, HUNT_USES);
  s->trans = gallery_below(rng, 4) ? HONE_NO_TRANS : HONE_TRANS;
  if (s->trans == HONE_TRANS && s->parts == 2 && gallery_below(rng, 2))
    s->trans = HONE_CONJ_TRANS;
  s->layout = gallery_below(rng, 4) ? HONE_COL_MAJOR : HONE_ROW_MAJOR;
  s->precision = precision == 0   ? HONE_FACTOR_AUTO
                 : precision == 1 ? HONE_FACTOR_DOUBLE
                                  : HONE_FACTOR_SINGLE;
  s->structure = structure < (symmetric ? 6 : 1) ? HONE_STRUCTURE_SPD
                 : structure < 10                ? HONE_STRUCTURE_AUTO
                                                 : HONE_STRUCTURE_GENERAL;
  s->methods = gallery_below(rng, 4) == 0 ? HUNT_DEFLATION : 0;
  s->methods |= gallery_below(rng, 4) == 0 ? HUNT_GMRES : 0;
  if (strcmp(f->name, "definite_triangle") == 0)
    s->structure = HONE_STRUCTURE_SPD;
  if (gallery_below(rng, 4) == 0) {
    s->criterion = (int32_t)gallery_below(rng, 3);
    s->tolerance = tolerances[gallery_below(rng, 4)];
  } else {
    s->extra = gallery_below(rng, 8) == 0;
  }
}

void hunt_start(hunt_system *s, int parts, int *goal, gallery_rng *rng) {
  *s = (hunt_system){.parts = parts == 2 ? 2 : 1,
                     .deterministic = (int32_t)gallery_below(rng, 2)};
  s->any_size = gallery_below(rng, 8) == 0;
  *goal =
      gallery_below(rng, 2) ? HUNT_RATIO : (int)gallery_below(rng, HUNT_GOALS);
  const gallery_family *f = draw_family(s, *goal, rng);
  const int64_t least = f->least_n > 2 ? f->least_n : 2;
  const int64_t most = HUNT_MOST_N / s->parts;
  s->n = least + gallery_below(rng, most - least + 1);
  s->nrhs = gallery_below(rng, 2) ? 1 : 1 + gallery_below(rng, HUNT_MOST_RHS);
  draw_call(s, f, rng);
  either_make(f, s->parts, s->n, gallery_parameter(f, rng), gallery_next(rng),
              s->a, s->n);
  for (int64_t c = 0; c < s->nrhs; c++) {
    const int kind = hunt_rhs_kind(s, *goal, rng);
    either_rhs(kind, s->parts, s->n, s->a, s->n, gallery_next(rng),
               s->b + c * s->n * s->parts);
  }
  /* The old matrix has one larger diagonal entry. */
  memcpy(s->old, s->a, sizeof s->old);
  const int64_t i = gallery_below(rng, s->n) * (s->n + 1) * s->parts;
  s->old[i] += fabs(s->old[i]) > 0.0 ? fabs(s->old[i]) : 1.0;
}
