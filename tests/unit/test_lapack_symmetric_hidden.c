/* SPDX-License-Identifier: BSD-3-Clause */
/* Hidden factors of symmetric matrices that need not be definite, and of
   complex symmetric and Hermitian ones. Compiled for
   double and for double complex. */
#include "tests/unit/lapack_symmetric.h"

/* ---- Hidden factors ----------------------------------------------------- */

/* Does LAPACK's own solver find NaN in a factor that is NaN? OpenBLAS's scal
   kernels for its oldest processors, which it takes for those that it does not
   know, make 0 of a number times NaN (OpenBLAS issue 4413). */
static bool finds_nan(const calls *real, const char *kind) {
  system_t s = make(kind, 1, 1, 'L');
  reset(&s);
  double *part = (double *)s.f;
  for (size_t i = 0; i < sizeof *s.f / sizeof *part; i++)
    part[i] = (double)NAN;
  s.ipiv[0] = 1;
  solve_factored(real, &s);
  const bool found = all_nan(&s);
  drop(&s);
  return found;
}

static void check_hidden(const calls *c, const calls *real, system_t *s,
                         system_t *t) {
  factor(c, s);
  CHECK_EQ_INT(s->info, 0);
  CHECK(tagged(s));
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->n; i++)
      if (i != j)
        CHECK_EQ_INT(
            memcmp(s->f + i + j * s->ld, s->a + i + j * s->ld, sizeof *s->f),
            0);
  factor(real, t);
  CHECK_MEM_EQ(s->work, t->work, sizeof *s->work);
  solve_factored(c, s);
  CHECK_EQ_INT(s->info, 0);
  CHECK_LE(backward_error(s), SUP_LIMIT);
  const double rcond = condition(c, s, 3.0), expected = condition(real, t, 3.0);
  CHECK_LE(fabs(rcond - expected), 0.01 * expected);
  solve_factored(real, s); /* a reader of the factors */
  CHECK(all_nan(s) || !finds_nan(real, s->hermitian ? "zhe" : kinds[0]));
  c->tri(&s->uplo, &s->n, s->f, &s->ld, s->ipiv, s->work, &s->info, 1);
  real->tri(&t->uplo, &t->n, t->f, &t->ld, t->ipiv, t->work, &t->info, 1);
  CHECK_EQ_INT(s->info, 0);
  CHECK_MEM_EQ(s->f, t->f, entries(s->ld, s->n) * sizeof *s->f);
}

SYMMETRIC_TEST(hidden_factors_serve_every_routine) {
  for (int kind = 0; kind < KINDS; kind++)
    for (int n = 1; n <= 260; n = 2 * n + 7)
      for (const char *uplo = "UL"; *uplo != '\0'; uplo++) {
        /* Whoever inverts gets LAPACK's factors for some time. */
        drop_in d = open_with("always", "keep");
        REQUIRE(d.library != NULL);
        const calls c = calls_of(d.library, kinds[kind]);
        const calls real = calls_of(RTLD_DEFAULT, kinds[kind]);
        system_t s = make(kinds[kind], n, 2, *uplo);
        system_t t = make(kinds[kind], n, 2, *uplo);
        ct_note("%s, n %d, %c", kinds[kind], n, *uplo);
        check_hidden(&c, &real, &s, &t);
        drop(&s);
        drop(&t);
        close_it(&d);
      }
}

static void check_driver(const calls *c, const calls *real, system_t *s,
                         system_t *t) {
  solve(real, t);
  solve(c, s);
  CHECK_EQ_INT(s->info, 0);
  CHECK(tagged(s));
  CHECK_MEM_EQ(s->work, t->work, sizeof *s->work);
  CHECK_LE(backward_error(s), SUP_LIMIT);
}

static void check_driver_that_hides(const calls *c, const calls *real,
                                    system_t *s, system_t *t) {
  check_driver(c, real, s, t);
  const double rcond = condition(c, s, 3.0), expected = condition(real, t, 3.0);
  CHECK_LE(fabs(rcond - expected), 0.01 * expected);
  solve_factored(c, s);
  CHECK_LE(backward_error(s), SUP_LIMIT);
}

static void check_driver_that_discards(const calls *c, const calls *real,
                                       system_t *s, system_t *t) {
  check_driver(c, real, s, t);
  CHECK(isnan(condition(c, s, 3.0)));
  solve_factored(c, s);
  CHECK(all_nan(s));
}

/* Single precision refuses the second column; the first is then refined too, or
   LAPACK's. */
static void check_driver_with_a_bad_column(const calls *c, const calls *real,
                                           system_t *s, system_t *t) {
  s->b[s->ld] = t->b[t->ld] = (double)NAN;
  solve(real, t);
  solve(c, s);
  CHECK_EQ_INT(s->info, 0);
  CHECK(isnan(creal(s->x[s->ld])));
  s->nrhs = 1;
  const size_t bytes = (size_t)s->n * sizeof *s->x;
  CHECK(memcmp(s->x, t->x, bytes) == 0 || backward_error(s) <= SUP_LIMIT);
}

SYMMETRIC_TEST(drivers_leave_bad_columns_to_lapack) {
  drop_in d = open_with("never", "discard");
  REQUIRE(d.library != NULL);
  for_all(&d, 2, check_driver_with_a_bad_column);
  close_it(&d);
}

SYMMETRIC_TEST(drivers_hide_or_discard_factors) {
  drop_in d = open_with("always", "keep");
  REQUIRE(d.library != NULL);
  for_all(&d, 1, check_driver_that_hides);
  close_it(&d);
  d = open_with("never", "discard");
  for_all(&d, 1, check_driver_that_discards);
  close_it(&d);
}

/* Passes over a triangle of this order are shared by threads, each with sums of
   its own. */
SYMMETRIC_TEST(large_triangles_are_shared_by_threads) {
  void (*set)(int);
  int (*get)(void);
  *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
  *(void **)&get = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
  const int threads = set != NULL && get != NULL ? get() : 0;
  drop_in d = open_with("always", "keep");
  REQUIRE(d.library != NULL);
  if (threads > 0)
    set(3);
  for (const char *uplo = "UL"; *uplo != '\0'; uplo++) {
    const calls c = calls_of(d.library, kinds[KINDS - 1]);
    system_t s = make(kinds[KINDS - 1], 1030, 1, *uplo);
    factor(&c, &s);
    CHECK(tagged(&s));
    solve_factored(&c, &s);
    CHECK_LE(backward_error(&s), SUP_LIMIT);
    drop(&s);
  }
  if (threads > 0)
    set(threads);
  close_it(&d);
}

typedef void change_fn(system_t *s);
static void one_entry(system_t *s) {
  s->f[s->uplo == 'U' ? 3 + 7 * s->ld : 7 + 3 * s->ld] *= 1.0 + 1e-15;
}
static void pivots(system_t *s) { s->ipiv[4] = 6; }
static void the_triangle(system_t *s) { s->uplo = s->uplo == 'U' ? 'L' : 'U'; }
static void the_order(system_t *s) { s->n--; }

SYMMETRIC_TEST(factors_that_were_changed_give_nan) {
  static change_fn *const changes[] = {one_entry, pivots, the_triangle,
                                       the_order};
  drop_in d = open_with("always", "keep");
  REQUIRE(d.library != NULL);
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
      const calls c = calls_of(d.library, kinds[kind]);
      system_t s = make(kinds[kind], 61, 1, k % 2 ? 'U' : 'L');
      factor(&c, &s);
      CHECK(tagged(&s));
      changes[k](&s);
      log_capture capture = log_start();
      solve_factored(&c, &s);
      const double rcond = condition(&c, &s, 1.0);
      char *log = log_stop(&capture);
      if (!CHECK(all_nan(&s)) || !CHECK(isnan(rcond)))
        ct_note("%s, change %d", kinds[kind], (int)k);
      CHECK_CONTAINS(log, "the result is NaN");
      free(log);
      drop(&s);
    }
  close_it(&d);
}

/* Factors of a Hermitian matrix given to zsytrs_, or of a symmetric one to
   dpotrs_. */
SYMMETRIC_TEST(factors_of_another_kind_give_nan) {
  drop_in d = open_with("always", "keep");
  REQUIRE(d.library != NULL);
  const calls c = calls_of(d.library, kinds[KINDS - 1]);
  system_t s = make(kinds[KINDS - 1], 61, 1, 'L');
  factor(&c, &s);
  CHECK(tagged(&s));
  log_capture capture = log_start();
#ifdef HONE_COMPLEX
  const calls other = calls_of(d.library, kinds[0]);
  solve_factored(&other, &s);
#else
  memcpy(s.x, s.b, entries(s.ld, s.nrhs) * sizeof *s.x);
  d.dpotrs(&s.uplo, &s.n, &s.nrhs, s.f, &s.ld, s.x, &s.ld, &s.info, 1);
#endif
  free(log_stop(&capture));
  CHECK(all_nan(&s));
  drop(&s);
  close_it(&d);
}

SYMMETRIC_TEST(many_columns_get_lapacks_x) {
  drop_in d = open_with("always", "keep");
  REQUIRE(d.library != NULL);
  for (int kind = 0; kind < KINDS; kind++) {
    const calls c = calls_of(d.library, kinds[kind]);
    const calls real = calls_of(RTLD_DEFAULT, kinds[kind]);
    system_t s = make(kinds[kind], 70, 40, 'U');
    system_t t = make(kinds[kind], 70, 40, 'U');
    factor(&c, &s);
    CHECK(tagged(&s));
    memset(s.work, 0, (size_t)s.lwork * sizeof *s.work);
    solve_factored(&c, &s);
    for (int i = 0; i < s.lwork; i++) /* it is the caller's again */
      CHECK(!(creal(s.work[i] * conj(s.work[i])) > 0.0));
    for (int j = 0; j < t.n; j++) /* the drop-in's leading dimension is n */
      memmove(t.a + j * t.n, t.a + j * t.ld, (size_t)t.n * sizeof *t.a);
    memcpy(t.f, t.a, entries(t.ld, t.n) * sizeof *t.f);
    real.trf(&t.uplo, &t.n, t.f, &t.n, t.ipiv, t.work, &t.lwork, &t.info, 1);
    memcpy(t.x, t.b, entries(t.ld, t.nrhs) * sizeof *t.x);
    real.trs(&t.uplo, &t.n, &t.nrhs, t.f, &t.n, t.ipiv, t.x, &t.ld, &t.info, 1);
    CHECK_MEM_EQ(s.x, t.x, entries(s.ld, s.nrhs) * sizeof *s.x);
    drop(&s);
    drop(&t);
  }
  close_it(&d);
}
