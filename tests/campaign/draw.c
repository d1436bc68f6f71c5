/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a system from its seed: family, order, right-hand sides, options and
   arrays. The same seed with the same plan gives the same system. */
#include "tests/campaign/campaign.h"
#include "tests/campaign/in_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The boundaries of tiles and blocks. */
static const int64_t edges[] = {15,  16,  17,  31,  32,  33,  63,  64,  65, 127,
                                128, 129, 255, 256, 257, 511, 512, 513, 600};
enum { EDGES = sizeof edges / sizeof *edges };

static void *memory(int64_t doubles) {
  void *p = malloc((size_t)(doubles > 0 ? doubles : 1) * sizeof(double));
  if (p == NULL) {
    (void)fprintf(stderr, "campaign: out of memory\n");
    exit(2);
  }
  return p;
}

/* One order in four is at an edge, more often at a small one; the others are
   uniform in log n. */
static int64_t draw_order(gallery_rng *rng, int64_t most) {
  const double u = gallery_uniform(rng), v = gallery_uniform(rng);
  int64_t n;
  if (gallery_below(rng, 4) == 0)
    n = edges[(int)((double)EDGES * (v < 0.5 ? u : u * u))];
  else
    n = (int64_t)exp(u * log((double)most + 1.0));
  return n < 1 ? 1 : n > most ? most : n;
}

static int64_t draw_nrhs(gallery_rng *rng, int64_t n) {
  const int64_t kind = gallery_below(rng, 20);
  const int64_t most = n > 256 && gallery_below(rng, 4) ? 4 : 33;
  int64_t nrhs = 1;
  if (kind >= 10)
    nrhs = 2 + gallery_below(rng, 3);
  if (kind >= 15)
    nrhs = 5 + gallery_below(rng, 12);
  if (kind >= 18)
    nrhs = 17 + gallery_below(rng, 17);
  if (kind == 19) /* about a block of columns */
    nrhs = 31 + gallery_below(rng, 3);
  return nrhs > most ? most : nrhs;
}

static void draw_options(campaign_system *s, const campaign_plan *plan,
                         gallery_rng *rng) {
  hone_options *o = &s->options;
  const int64_t start = gallery_below(rng, 2), spd = gallery_below(rng, 2);
  *o = (hone_options)HONE_OPTIONS_INIT;
  o->device = plan->device;
  o->factor_precision = plan->start != CAMPAIGN_START_MIXED ? plan->start
                        : start                             ? HONE_FACTOR_SINGLE
                                                            : HONE_FACTOR_AUTO;
  o->extra_precise = plan->extra;
  o->trans = gallery_below(rng, 4) == 0 ? HONE_TRANS : HONE_NO_TRANS;
  o->layout = gallery_below(rng, 4) == 0 ? HONE_ROW_MAJOR : HONE_COL_MAJOR;
  o->threads = gallery_below(rng, 8) == 0 ? 2 : 1;
  o->deterministic = gallery_below(rng, 8) == 0;
  if ((s->family->properties & GALLERY_SPD) && spd)
    o->structure = HONE_STRUCTURE_SPD;
  s->crossed = (o->trans == HONE_TRANS) != (o->layout == HONE_ROW_MAJOR);
  s->kept = gallery_below(rng, 3) == 0;
  s->nearby = s->kept && gallery_below(rng, 4) == 0;
  s->in_place = gallery_below(rng, 8) == 0;
  s->lda = s->n + (gallery_below(rng, 3) ? 0 : gallery_below(rng, 6));
  s->ldb = s->n + (gallery_below(rng, 3) ? 0 : gallery_below(rng, 6));
  s->ldx = s->in_place
               ? s->ldb
               : s->n + (gallery_below(rng, 3) ? 0 : gallery_below(rng, 6));
}

static void store(campaign_system *s) {
  const int64_t n = s->n, rows = s->parts * n, ld = s->parts * s->lda;
  double *as = memory(rows * n);
  either_copy(s->parts, n, s->m, n, s->crossed,
              s->options.trans == HONE_CONJ_TRANS, as);
  s->stored = memory(ld * n);
  for (int64_t k = 0; k < ld * n; k++)
    s->stored[k] = k % ld < rows ? as[k % ld + k / ld * rows] : (double)NAN;
  free(as);
}

/* Half of the right-hand sides are random; at most one needs a
   factorization. */
static void draw_rhs(campaign_system *s, int kinds, gallery_rng *rng) {
  const bool consistent =
      kinds > GALLERY_B_FEW && (s->family->properties & GALLERY_SINGULAR);
  bool had_null = false;
  s->b = memory(s->parts * s->n * s->nrhs);
  for (int64_t c = 0; c < s->nrhs; c++) {
    int kind = gallery_below(rng, 2) ? GALLERY_B_RANDOM
                                     : (int)gallery_below(rng, kinds);
    if (kind == GALLERY_B_LEFT_NULL && had_null)
      kind = GALLERY_B_ONES;
    had_null = had_null || kind == GALLERY_B_LEFT_NULL;
    /* A singular A is most treacherous if the system has solutions. */
    if (consistent && gallery_below(rng, 2))
      kind = GALLERY_B_FEW;
    s->kinds[c] = kind;
    either_rhs(kind, s->parts, s->n, s->m, s->n, gallery_next(rng),
               s->b + c * s->n * s->parts);
  }
}

/* The first columns of the identity, rotated. */
static void take_identity(campaign_system *s, gallery_rng *rng) {
  const int64_t first = gallery_below(rng, s->n);
  const int64_t rows = s->parts * s->n;
  for (int64_t c = 0; c < s->nrhs; c++) {
    memset(s->b + c * rows, 0, (size_t)rows * sizeof *s->b);
    s->b[(first + c) % s->n * s->parts + c * rows] = 1.0;
    s->kinds[c] = GALLERY_B_UNIT;
  }
}

/* Wrong claims, updates (of singular matrices above all), other criteria and
   tolerances. */
static void draw_use(campaign_system *s, const campaign_plan *plan,
                     gallery_rng *rng) {
  static const double tolerances[] = {0.0, 1e-13, 1e-10, 1e-6};
  hone_options *o = &s->options;
  const unsigned properties = s->family->properties;
  const bool singular = properties & GALLERY_SINGULAR;
  const int64_t claim = gallery_below(rng, 16);
  const int64_t update = gallery_below(rng, 16), loose = gallery_below(rng, 8);
  if (claim == 0 || (claim < 4 && (properties & GALLERY_SYMMETRIC)) ||
      (claim < 8 && strcmp(s->family->name, "definite_triangle") == 0))
    o->structure = HONE_STRUCTURE_SPD;
  if (update < (singular ? 6 : 2)) {
    s->kept = s->nearby = true;
    s->grounded = gallery_below(rng, 2);
  }
  if (loose == 0 && !plan->extra) {
    o->criterion = (int32_t)gallery_below(rng, 3);
    o->tolerance = tolerances[gallery_below(rng, 4)];
    s->loose =
        o->criterion != HONE_CRITERION_COMPONENTWISE || o->tolerance > 0.0;
  }
}

/* Conjugate transposes, warm starts, and complex families in half of the
   systems. */
static void draw_complex(campaign_system *s, const campaign_plan *plan,
                         gallery_rng *rng) {
  const int64_t late = gallery_below(rng, 2);
  const int64_t family =
      gallery_below(rng, gallery_complex_count - gallery_count);
  if (late && plan->family == NULL)
    s->family = &gallery_families[gallery_count + family];
}

static void draw_complex_use(campaign_system *s, gallery_rng *rng) {
  const int64_t conjugates = gallery_below(rng, 2);
  const int64_t warm = gallery_below(rng, 8);
  if (s->options.trans == HONE_TRANS && conjugates)
    s->options.trans = HONE_CONJ_TRANS;
  s->warm = warm == 0;
}

/* A batch takes no solver, no initial x and no bars; its blocks serve neither
   factors in single precision nor other criteria, which few systems keep. */
static void draw_place(campaign_system *s, const campaign_plan *plan,
                       gallery_rng *rng) {
  s->place = -1;
  if (!plan->batch)
    return;
  s->place = (int)gallery_below(rng, IN_BATCH_COUNT);
  s->kept = s->nearby = s->warm = s->bars = false;
  if (gallery_below(rng, 8) > 0)
    s->options.factor_precision = HONE_FACTOR_AUTO;
  if (gallery_below(rng, 8) > 0) {
    s->options.criterion = HONE_CRITERION_COMPONENTWISE;
    s->loose = s->options.tolerance > 0.0;
  }
}

void campaign_draw(campaign_system *s, const campaign_plan *plan,
                   uint64_t seed) {
  gallery_rng rng = {seed}, use = {seed ^ 0x3c6ef372fe94f82bu};
  gallery_rng more = {seed ^ 0x510e527fade682d1u}; /* of complex systems */
  gallery_rng differ = {seed ^ 0x9b05688c2b3e6c1fu};
  const int64_t family =
      gallery_below(&rng, plan->complete ? gallery_count : gallery_early_count);
  *s = (campaign_system){.seed = seed, .parts = plan->parts == 2 ? 2 : 1};
  s->family = plan->family ? plan->family : &gallery_families[family];
  if (s->parts == 2)
    draw_complex(s, plan, &more);
  s->n = draw_order(&rng, plan->max_n);
  if (plan->differ && plan->family == NULL)
    s->family = campaign_differ_family(&differ, s->family);
  if (plan->differ)
    s->n = campaign_differ_order(&differ, plan->max_n, s->n);
  if (s->n > s->family->most_n)
    s->n = 1 + s->n % s->family->most_n;
  if (s->n < s->family->least_n)
    s->n = s->family->least_n;
  s->nrhs = draw_nrhs(&rng, s->n);
  if (plan->differ)
    s->nrhs = campaign_differ_nrhs(&differ);
  s->parameter = gallery_parameter(s->family, &rng);
  draw_options(s, plan, &rng);
  if (plan->complete)
    draw_use(s, plan, &use);
  if (s->parts == 2)
    draw_complex_use(s, &more);
  s->m = memory(s->parts * s->n * s->n);
  either_make(s->family, s->parts, s->n, s->parameter, gallery_next(&rng), s->m,
              s->n);
  if (plan->differ)
    campaign_differ_matrix(s, &differ);
  store(s);
  draw_rhs(s, plan->complete ? gallery_rhs_count : GALLERY_B_EARLY, &rng);
  if (plan->complete && gallery_below(&use, 16) == 0)
    take_identity(s, &use);
  if (plan->differ)
    campaign_differ_rhs(s, &differ);
  s->bars = plan->complete && gallery_below(&use, 2) == 0;
  draw_place(s, plan, &use);
}

void campaign_free(campaign_system *s) {
  free(s->m);
  free(s->stored);
  free(s->b);
}

void campaign_describe(const campaign_system *s, FILE *f) {
  const hone_options *o = &s->options;
  (void)fprintf(
      f,
      "%s(%.6g) n %d nrhs %d lda %d%s%s%s%s%s%s%s threads %d%s%s%s "
      "criterion %d %g",
      s->family->name, s->parameter, (int)s->n, (int)s->nrhs, (int)s->lda,
      o->trans == HONE_CONJ_TRANS ? " conjugate trans"
      : o->trans == HONE_TRANS    ? " trans"
                                  : "",
      o->layout == HONE_ROW_MAJOR ? " row-major" : "", s->kept ? " kept" : "",
      s->grounded ? " nearby, grounded"
      : s->nearby ? " nearby"
                  : "",
      s->in_place ? " in place" : "", s->bars ? " bars" : "",
      s->warm ? " warm" : "", (int)o->threads,
      o->deterministic ? " deterministic" : "",
      o->factor_precision == HONE_FACTOR_SINGLE ? " single" : "",
      o->structure == HONE_STRUCTURE_SPD ? " spd" : "", (int)o->criterion,
      o->tolerance);
}
