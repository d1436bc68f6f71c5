/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs S z = c of GMRES-IR, and the factors applied with them. For real
   and for complex entries. */
#include "refine/condition.h"
#include "tests/unit/ct.h"
#include "tests/unit/entries.h"

#include <math.h>
#include <string.h>

enum { N = 40 };

/* Pairs of the random matrix a. */
typedef struct pairs {
  sup_rng rng;
  hone_entry a[N * N];
  hone_entry memory[2 * N * HONE_SPACE_PAIRS];
  hone_space space;
} pairs;

static void set_up(pairs *s) {
  s->rng = (sup_rng){4};
  entries_random(&s->rng, N, N, s->a, N);
  s->space = hone_space_make(N, false, s->memory);
}

static void multiply(const hone_entry *a, bool trans, const hone_entry *x,
                     hone_entry *y) {
  entries_multiply(N, a, N, trans, x, y);
}

static bool take_random(pairs *s, double size) {
  hone_entry z[N], c[N];
  entries_random(&s->rng, N, 1, z, N);
  for (int i = 0; i < N; i++)
    z[i] *= size;
  multiply(s->a, false, z, c);
  return hone_space_add(&s->space, z, c);
}

/* x^H y */
static hone_entry dot(const hone_entry *x, const hone_entry *y) {
  hone_entry sum = 0.0;
  for (int i = 0; i < N; i++)
    sum += hone_conj(x[i]) * y[i];
  return sum;
}

TEST_OF(gmres_space, keeps_pairs_orthonormal) {
  static const double sizes[] = {1.0, 1e9, 1e-9, 1e150, 1e-150};
  pairs s;
  hone_entry az[N];
  set_up(&s);
  for (int i = 0; i < HONE_SPACE_PAIRS; i++)
    CHECK(take_random(&s, sizes[i % 5]));
  CHECK_EQ_INT(s.space.count, HONE_SPACE_PAIRS);
  for (int i = 0; i < s.space.count; i++) {
    const hone_entry *z = hone_space_z(&s.space, i);
    const hone_entry *c = hone_space_c(&s.space, i);
    for (int j = 0; j < s.space.count; j++)
      CHECK_LE(hone_abs(dot(c, hone_space_c(&s.space, j)) - (double)(i == j)),
               1e-14);
    multiply(s.a, false, z, az);
    for (int k = 0; k < N; k++)
      CHECK_LE(hone_abs(az[k] - c[k]), 1e-12);
  }
  CHECK(!take_random(&s, 1.0)); /* there is no room for more */
  CHECK_EQ_INT(s.space.count, HONE_SPACE_PAIRS);
}

TEST_OF(gmres_space, keeps_nearly_equal_pairs_orthonormal) {
  pairs s;
  hone_entry first[N], z[N], c[N];
  set_up(&s);
  entries_random(&s.rng, N, 1, first, N);
  for (int i = 0; i < 6; i++) {
    for (int k = 0; k < N; k++)
      z[k] = first[k] + 3e-7 * entries_uniform(&s.rng);
    multiply(s.a, false, z, c);
    CHECK(hone_space_add(&s.space, z, c));
  }
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++)
      CHECK_LE(
          hone_abs(dot(hone_space_c(&s.space, i), hone_space_c(&s.space, j)) -
                   (double)(i == j)),
          1e-14);
}

TEST_OF(gmres_space, takes_no_pair_that_is_dependent_or_not_finite) {
  static const double bads[] = {0.0, (double)NAN, (double)INFINITY};
  pairs s;
  hone_entry z[N], c[N];
  set_up(&s);
  CHECK(take_random(&s, 1.0));
  CHECK(take_random(&s, 1.0));
  for (int i = 0; i < N; i++) {
    z[i] = hone_space_z(&s.space, 0)[i] + 3.0 * hone_space_z(&s.space, 1)[i];
    c[i] = hone_space_c(&s.space, 0)[i] + 3.0 * hone_space_c(&s.space, 1)[i];
  }
  CHECK(!hone_space_add(&s.space, z, c));
  for (int k = 0; k < 3; k++)
    for (int at = 0; at < 2; at++) {
      for (int i = 0; i < N; i++)
        z[i] = c[i] = k == 0 ? 0.0 : 1.0 + i * i;
      (at ? z : c)[7] = k == 0 ? 0.0 : entries_ending_in(bads[k]);
      if (k > 0 || at == 0)
        CHECK(!hone_space_add(&s.space, z, c));
    }
  CHECK_EQ_INT(s.space.count, 2);
}

/* The factors of a perturbed a, and pairs of a. */
static sup_script *open_engine(pairs *s, hone_entry *near, hone_mem *mem,
                               hone_watch *watch, const hone_engine **engine,
                               void **self, const hone_scaling *scaling) {
  sup_script *script;
  hone_factor_info info;
  const hone_matrix matrix = *sup_matrix(N, N, s->a);
  const hone_engine_config config = {.n = N, .mem = mem, .watch = watch};
  for (int i = 0; i < N * N; i++)
    near[i] = s->a[i] + 0.05 * entries_uniform(&s->rng);
  *engine = sup_scripted(0, "scripted", 32, &script);
  script->instead = near;
  CHECK_EQ_INT((*engine)->create(self, &config), HONE_OK);
  CHECK_EQ_INT((*engine)->factor(*self, &matrix, scaling, &info), HONE_OK);
  return script;
}

TEST_OF(gmres_space, applies_factors_that_are_exact_on_the_pairs) {
  pairs s;
  hone_entry near[N * N], v[N];
  double ones[N];
  int none[N] = {0};
  hone_mem mem = {.limit = 0};
  hone_watch watch = {.progress = NULL};
  const hone_engine *engine;
  void *self = NULL;
  for (int i = 0; i < N; i++)
    ones[i] = 1.0;
  const hone_scaling scaling = {ones, ones, none, none, false};
  set_up(&s);
  for (int i = 0; i < 5; i++)
    CHECK(take_random(&s, 1.0));
  open_engine(&s, near, &mem, &watch, &engine, &self, &scaling);
  const hone_matrix matrix = *sup_matrix(N, N, s.a);
  const hone_factored f = {.engine = engine,
                           .self = self,
                           .a = &matrix,
                           .scaling = &scaling,
                           .space = &s.space};
  for (int i = 0; i < 5; i++) { /* P c_i = z_i */
    memcpy(v, hone_space_c(&s.space, i), sizeof v);
    CHECK_EQ_INT(hone_apply_inverse(&f, true, false, 1, v, N, NULL, NULL),
                 HONE_OK);
    for (int k = 0; k < N; k++)
      CHECK_LE(hone_abs(v[k] - hone_space_z(&s.space, i)[k]), 1e-11);
  }
  engine->destroy(self, &mem);
}
