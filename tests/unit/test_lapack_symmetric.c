/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in's dsysv, dsytrf, dsytrs and dsycon, and those for complex
   symmetric and Hermitian matrices, beside the real LAPACK's. Compiled for
   double and for double complex. */
#include "tests/unit/lapack_symmetric.h"

/* ---- Factors that are LAPACK's ------------------------------------------ */

static void check_kept(const calls *c, const calls *real, system_t *s,
                       system_t *t) {
  solve(c, s);
  solve(real, t);
  check_same(s, t);
  CHECK_LE(backward_error(s), SUP_LIMIT);
  factor(c, s);
  factor(real, t);
  check_same(s, t);
  solve_factored(c, s);
  CHECK_EQ_INT(s->info, 0);
  CHECK_LE(backward_error(s), SUP_LIMIT);
  const double rcond = condition(c, s, 3.0), expected = condition(real, t, 3.0);
  CHECK_EQ_INT(memcmp(&rcond, &expected, sizeof rcond), 0);
}

SYMMETRIC_TEST(factors_are_lapacks_and_x_is_refined) {
  drop_in d = open_with("never", "keep");
  REQUIRE(d.library != NULL);
  for_all(&d, 2, check_kept);
  close_it(&d);
}

SYMMETRIC_TEST(calls_that_solve_nothing_are_lapacks) {
  for (int hides = 0; hides < 2; hides++) {
    drop_in d = open_with(hides ? "always" : "never", "discard");
    REQUIRE(d.library != NULL);
    const calls c = calls_of(d.library, kinds[0]);
    system_t s = make(kinds[0], 60, 1, 'U');
    s.lwork = -1; /* asks for the size of the work space */
    factor(&c, &s);
    CHECK_EQ_INT(s.info, 0);
    CHECK_GE(creal(s.work[0]), 60.0);
    CHECK_MEM_EQ(s.f, s.a, entries(s.ld, s.n) * sizeof *s.f);
    solve(&c, &s);
    CHECK_EQ_INT(s.info, 0);
    CHECK_MEM_EQ(s.x, s.b, entries(s.ld, 1) * sizeof *s.x);
    s.lwork = 0;
    xerbla_call.calls = 0;
    solve(&c, &s);
    CHECK_EQ_INT(s.info, -10);
    factor(&c, &s);
    CHECK_EQ_INT(s.info, -7);
    s.lwork = 60;
    s.uplo = 'x';
    solve(&c, &s);
    CHECK_EQ_INT(s.info, -1);
    CHECK_EQ_INT(xerbla_call.calls, 3);
    drop(&s);
    close_it(&d);
  }
}

/* ---- Singular matrices -------------------------------------------------- */

static void check_singular(const calls *c, const calls *real, system_t *s,
                           system_t *t) {
  const int at = s->n / 2;
  for (int i = 0; i < s->n; i++)
    s->a[i + at * s->ld] = s->a[at + i * s->ld] = 0.0;
  memcpy(t->a, s->a, entries(s->ld, s->n) * sizeof *s->a);
  factor(c, s);
  factor(real, t);
  CHECK_GE(t->info, 1);
  check_same(s, t);
  solve(c, s);
  solve(real, t);
  check_same(s, t);
  CHECK_MEM_EQ(s->x, s->b, entries(s->ld, 1) * sizeof *s->x);
}

SYMMETRIC_TEST(singular_matrices_are_left_to_lapack) {
  static const char *const hides[] = {"never", "always", "never"};
  static const char *const factors[] = {"keep", "keep", "discard"};
  for (int i = 0; i < 3; i++) {
    drop_in d = open_with(hides[i], factors[i]);
    REQUIRE(d.library != NULL);
    for_all(&d, 1, check_singular);
    close_it(&d);
  }
}

/* ---- LAPACKE ------------------------------------------------------------ */

static const int ROWS = 101, COLUMNS = 102;

typedef int lapacke_sv(int layout, char uplo, int n, int nrhs, number *a,
                       int lda, int *ipiv, number *b, int ldb);
typedef int lapacke_trf(int layout, char uplo, int n, number *a, int lda,
                        int *ipiv);
typedef int lapacke_trs(int layout, char uplo, int n, int nrhs, const number *a,
                        int lda, const int *ipiv, number *b, int ldb);

static void *lapacke(const drop_in *d, const char *kind, const char *routine) {
  char name[32];
  snprintf(name, sizeof name, "LAPACKE_%s%s", kind, routine);
  return dlsym(d->library, name);
}

/* Copies a matrix by rows, with leading dimension n, or back. */
static void turn(int n, const number *from, int ld_from, number *to,
                 int ld_to) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++)
      to[j + i * ld_to] = from[i + j * ld_from];
}

static void check_by_rows(const drop_in *d, const char *kind, char uplo) {
  const calls real = calls_of(RTLD_DEFAULT, kind);
  system_t s = make(kind, 71, 1, uplo), t = make(kind, 71, 1, uplo);
  lapacke_sv *sv = (lapacke_sv *)lapacke(d, kind, "sv");
  lapacke_trf *trf = (lapacke_trf *)lapacke(d, kind, "trf");
  lapacke_trs *trs = (lapacke_trs *)lapacke(d, kind, "trs");
  if (!CHECK(sv && trf && trs))
    return;
  t.ld = t.n; /* LAPACKE's, on which rounding errors may depend */
  for (int j = 0; j < s.n; j++)
    memmove(t.a + j * t.n, s.a + j * s.ld, (size_t)s.n * sizeof *t.a);
  reset(&s);
  turn(s.n, s.a, s.ld, s.f, s.n);
  CHECK_EQ_INT(sv(ROWS, uplo, s.n, 1, s.f, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(backward_error(&s), SUP_LIMIT);
  turn(s.n, s.a, s.ld, s.f, s.n);
  CHECK_EQ_INT(trf(ROWS, uplo, s.n, s.f, s.n, s.ipiv), 0);
  factor(&real, &t);
  turn(t.n, t.f, t.n, t.a, t.n); /* by rows */
  CHECK_MEM_EQ(s.f, t.a, entries(s.n, s.n) * sizeof *s.f);
  CHECK_MEM_EQ(s.ipiv, t.ipiv, (size_t)s.n * sizeof(int));
  memcpy(s.x, s.b, (size_t)s.n * sizeof *s.x);
  CHECK_EQ_INT(trs(ROWS, uplo, s.n, 1, s.f, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(backward_error(&s), SUP_LIMIT);
  /* A NaN of the other triangle, which is found by lda, comes before lda. */
  CHECK_EQ_INT(trf(ROWS, uplo, s.n, s.f, s.n - 1, s.ipiv), -4);
  memset(s.f, 0, entries(s.n, s.n) * sizeof *s.f);
  xerbla_call.calls = 0;
  CHECK_EQ_INT(sv(7, uplo, s.n, 1, s.f, s.n, s.ipiv, s.x, 1), -1);
  CHECK_EQ_INT(trf(ROWS, uplo, s.n, s.f, s.n - 1, s.ipiv), -5);
  CHECK_EQ_INT(sv(ROWS, uplo, s.n, 1, s.f, s.n - 1, s.ipiv, s.x, 1), -6);
  CHECK_EQ_INT(trs(ROWS, uplo, s.n, 2, s.f, s.n, s.ipiv, s.x, 1), -9);
  CHECK_EQ_INT(xerbla_call.calls, 4);
  const char other = uplo == 'U' ? 'L' : 'U'; /* by columns */
  s.x[3] = (double)NAN;
  CHECK_EQ_INT(trs(COLUMNS, other, s.n, 1, s.f, s.n, s.ipiv, s.x, s.n), -8);
  s.f[0] = (double)NAN;
  CHECK_EQ_INT(trf(COLUMNS, other, s.n, s.f, s.n, s.ipiv), -4);
  CHECK_EQ_INT(sv(COLUMNS, other, s.n, 1, s.f, s.n, s.ipiv, s.x, s.n), -5);
  t.ld = s.ld;
  drop(&s);
  drop(&t);
}

SYMMETRIC_TEST(lapacke_takes_rows_and_reports_errors) {
  drop_in d = open_with("always", "keep"); /* LAPACKE hides nothing */
  REQUIRE(d.library != NULL);
  for (int kind = 0; kind < KINDS; kind++) {
    check_by_rows(&d, kinds[kind], 'U');
    check_by_rows(&d, kinds[kind], 'L');
  }
  close_it(&d);
}
