/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors that the drop-in hides (lapack/hidden.h), for a caller that consents:
   HONE_LAPACK_HIDE=always. Compiled for double and for double complex. */
#include "tests/unit/lapack_hidden.h"

#include "tests/unit/ct.h"
#include "tests/unit/device_memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool tagged(const hidden_system *s) {
  for (int i = 0; i < s->n; i++)
    if (!isnan(creal(s->f[i + i * s->ld])) || s->ipiv[i] != i + 1)
      return false;
  return true;
}

static bool all_nan(const hidden_system *s) {
  for (int k = 0; k < s->nrhs; k++)
    for (int i = 0; i < s->n; i++)
      if (!isnan(creal(s->x[i + k * s->ld])))
        return false;
  return true;
}

/* Factors A. */
static void factor(const hidden_calls *d, hidden_system *s) {
  hidden_reset(s);
  if (s->uplo == 0)
    hidden_getrf(d, s);
  else
    hidden_potrf(d, s);
}

/* Checks that nothing but the diagonal has changed. */
static void check_only_diagonal(const hidden_system *s) {
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->ld; i++)
      if (i != j && !CHECK(memcmp(s->f + i + j * s->ld, s->a + i + j * s->ld,
                                  sizeof *s->a) == 0))
        return;
}

static void check_transposes(const hidden_calls *d, hidden_system *s) {
  for (const char *trans = "NTC"; *trans != '\0'; trans++) {
    hidden_getrs(d, s, *trans);
    CHECK_EQ_INT(s->info, 0);
    CHECK_LE(hidden_backward_error(s, *trans), SUP_LIMIT);
  }
}

HIDDEN_TEST(solves_with_lu_of_any_order_and_transpose) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  for (int n = 1; n <= 320; n = 2 * n + 3) {
    hidden_system s = hidden_make(n, 3, 0);
    hidden_getrf(&d, &s);
    CHECK_EQ_INT(s.info, 0);
    CHECK(tagged(&s));
    check_only_diagonal(&s);
    check_transposes(&d, &s);
    hidden_free(&s);
  }
  hidden_close(&d);
}

HIDDEN_TEST(solves_with_cholesky_of_either_triangle) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.potrf != NULL);
  for (int n = 1; n <= 320; n = 2 * n + 3)
    for (const char *uplo = "UL"; *uplo != '\0'; uplo++) {
      hidden_system s = hidden_make(n, 2, *uplo);
      hidden_potrf(&d, &s);
      CHECK_EQ_INT(s.info, 0);
      CHECK(isnan(creal(s.f[0])));
      check_only_diagonal(&s);
      hidden_potrs(&d, &s);
      CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
      hidden_free(&s);
    }
  hidden_close(&d);
}

HIDDEN_TEST(finds_factors_that_were_copied) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(90, 1, 0);
  const int ld = s.ld;
  hidden_getrf(&d, &s);
  number *copy = calloc(entries(ld + 9, s.n), sizeof *copy), *f = s.f;
  for (int j = 0; j < s.n; j++)
    memcpy(copy + j * (ld + 9), s.f + j * ld, (size_t)s.n * sizeof *copy);
  memset(s.f, 0, entries(ld, s.n) * sizeof *s.f);
  s.f = copy;
  s.ld_f = ld + 9;
  hidden_getrs(&d, &s, 'N');
  CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
  s.f = f;
  free(copy);
  hidden_free(&s);
  hidden_close(&d);
}

/* ---- Factors that were changed ------------------------------------------ */

typedef void change_fn(hidden_system *s);

static void one_entry(hidden_system *s) { s->f[3 + 7 * s->ld] *= 1.0 + 1e-15; }
static void sign_of_zero(hidden_system *s) { s->f[5 + 2 * s->ld] *= -1.0; }
static void every_entry(hidden_system *s) {
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->n; i++)
      s->f[i + j * s->ld] *= 2.0;
}
static void swap(number *p, number *q) {
  const number was = *p;
  *p = *q;
  *q = was;
}
static void two_columns(hidden_system *s) {
  for (int i = 0; i < s->n; i++)
    if (i != 8 && i != 9)
      swap(&s->f[i + 8 * s->ld], &s->f[i + 9 * s->ld]);
}
static void transposed(hidden_system *s) {
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < j; i++)
      swap(&s->f[i + j * s->ld], &s->f[j + i * s->ld]);
}
static void pivots(hidden_system *s) { s->ipiv[4] = 6; }
static void a_smaller_order(hidden_system *s) { s->n--; }
static void unknown(hidden_system *s) {
  uint64_t word;
  memcpy(&word, s->f, sizeof word);
  word -= 1000000;
  memcpy(s->f, &word, sizeof word);
}

HIDDEN_TEST(gives_nan_for_factors_that_were_changed) {
  static change_fn *const changes[] = {
      one_entry,  sign_of_zero, every_entry,     two_columns,
      transposed, pivots,       a_smaller_order, unknown};
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  for (size_t k = 0; k < sizeof changes / sizeof *changes; k++)
    for (const char *trans = "NT"; *trans != '\0'; trans++) {
      hidden_system s = hidden_make(61, 2, 0);
      s.a[5 + 2 * s.ld] = 0.0;
      factor(&d, &s);
      changes[k](&s);
      log_capture capture = log_start();
      hidden_getrs(&d, &s, *trans);
      char *log = log_stop(&capture);
      if (!CHECK(all_nan(&s)))
        ct_note("change %d", (int)k);
      CHECK_CONTAINS(log, "the result is NaN");
      free(log);
      hidden_free(&s);
    }
  hidden_close(&d);
}

/* From this order on the factors, and A, go to a GPU where there is one. */
HIDDEN_TEST(keeps_its_promises_on_a_gpu) {
  static change_fn *const changes[] = {one_entry, pivots, every_entry};
  setenv("HONE_LOG", "1", 1);
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(600, 1, 0);
  log_capture capture = log_start();
  double rcond, real = 0.0;
  hidden_getrf(&d, &s);
  CHECK(tagged(&s));
  check_only_diagonal(&s);
  check_transposes(&d, &s);
  hidden_gecon(&d, &s, '1', 1.0, &rcond);
  char *log = log_stop(&capture);
  CHECK_CONTAINS(log, "with hidden factors in single");
  CHECK(strstr(log, "LAPACK's factors") == NULL);
  free(log);
  hidden_real_gecon(&s, '1', 1.0, &real);
  CHECK_NEAR(rcond, real, 0.05 * real);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    ct_note("change %d", (int)i);
    factor(&d, &s);
    changes[i](&s);
    hidden_getrs(&d, &s, 'N');
    CHECK(all_nan(&s));
  }
  hidden_free(&s);
  hidden_close(&d);
  unsetenv("HONE_LOG");
}

/* Factors a matrix. Does the log say that its factors are made on a GPU? The
   drop-in may be served by another library, which has an emulated one. */
static bool made_on_a_gpu(const hidden_calls *d, hidden_system *s) {
  log_capture capture = log_start();
  factor(d, s);
  char *log = log_stop(&capture);
  CHECK_EQ_INT(s->info, 0);
  CHECK_CONTAINS(log, "factors hidden");
  const bool there = strstr(log, "on a GPU") != NULL;
  free(log);
  return there;
}

static void check_cholesky_of_a_gpu(const hidden_calls *d, char uplo) {
  hidden_system s = hidden_make(600, 2, uplo);
  hidden_system general = hidden_make(600, 2, 0);
  double rcond, real = 0.0;
  const bool there = made_on_a_gpu(d, &s);
  CHECK(there == made_on_a_gpu(d, &general));
  CHECK(there || !cuda_usable());
  hidden_free(&general);
  CHECK(isnan(creal(s.f[0])));
  check_only_diagonal(&s);
  hidden_potrs(d, &s);
  CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
  hidden_pocon(d, &s, 1.0, &rcond);
  hidden_real_pocon(&s, 1.0, &real);
  CHECK_NEAR(rcond, real, 0.05 * real);
  factor(d, &s);
  s.f[7 + 7 * s.ld + (uplo == 'L' ? 1 : -1)] *= 1.0 + 1e-15;
  hidden_potrs(d, &s);
  CHECK(all_nan(&s));
  hidden_free(&s);
}

HIDDEN_TEST(cholesky_keeps_its_promises_on_a_gpu) {
  setenv("HONE_LOG", "1", 1);
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.potrf != NULL);
  check_cholesky_of_a_gpu(&d, 'U');
  check_cholesky_of_a_gpu(&d, 'L');
  hidden_close(&d);
  unsetenv("HONE_LOG");
}

/* Refinement does not read A for a b that is not finite, or tiny: factors by
   LAPACK follow, which must not be those of a changed array. */
HIDDEN_TEST(are_not_made_of_a_changed_array_for_a_bad_right_hand_side) {
  static const double bad[] = {(double)NAN, (double)INFINITY, 1e-320};
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL && d.potrf != NULL);
  for (int k = 0; k < 6; k++) {
    hidden_system s = hidden_make(60, 1, k < 3 ? 0 : 'U');
    number *b = malloc((size_t)s.n * sizeof *b);
    REQUIRE(b != NULL);
    memcpy(b, s.b, (size_t)s.n * sizeof *b);
    factor(&d, &s);
    const number was = s.f[3 + 7 * s.ld];
    s.f[3 + 7 * s.ld] += 10.0;
    for (int i = 0; i < s.n; i++)
      s.b[i] = bad[k % 3];
    log_capture capture = log_start();
    (s.uplo == 0 ? hidden_getrs(&d, &s, 'N') : hidden_potrs(&d, &s));
    char *log = log_stop(&capture);
    CHECK(all_nan(&s));
    CHECK_CONTAINS(log, "the result is NaN");
    free(log);
    s.f[3 + 7 * s.ld] = was;
    memcpy(s.b, b, (size_t)s.n * sizeof *b);
    (s.uplo == 0 ? hidden_getrs(&d, &s, 'N') : hidden_potrs(&d, &s));
    ct_note("case %d", k);
    CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
    free(b);
    hidden_free(&s);
  }
  hidden_close(&d);
}

/* Arrays of matrices that differ in the diagonal alone, under the same number,
   as two processes may give it. */
HIDDEN_TEST(tell_diagonals_apart) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(60, 1, 0);
  factor(&d, &s);
  number *first = malloc(entries(s.ld, s.n) * sizeof *first);
  REQUIRE(first != NULL);
  memcpy(first, s.f, entries(s.ld, s.n) * sizeof *first);
  factor(&d, &s); /* again: but for the number the array is the same */
  CHECK(memcmp(first, s.f, sizeof *first) != 0);
  CHECK_MEM_EQ(first + 1, s.f + 1, (entries(s.ld, s.n) - 1) * sizeof *first);
  s.a[11 + 11 * s.ld] += 1e-10;
  factor(&d, &s);
  CHECK(memcmp(first + 5 + 5 * s.ld, s.f + 5 + 5 * s.ld, sizeof *first) != 0);
  memcpy(first, s.f, sizeof *first); /* the number of the second */
  memcpy(s.f, first, entries(s.ld, s.n) * sizeof *first);
  log_capture capture = log_start();
  hidden_getrs(&d, &s, 'N');
  free(log_stop(&capture));
  CHECK(all_nan(&s));
  free(first);
  hidden_free(&s);
  hidden_close(&d);
}

HIDDEN_TEST(are_known_without_their_first_number) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(60, 1, 0);
  double rcond = 0.0;
  factor(&d, &s);
  s.f[0] = 1.0;
  log_capture capture = log_start();
  hidden_getrs(&d, &s, 'N');
  hidden_gecon(&d, &s, '1', 1.0, &rcond);
  char *log = log_stop(&capture);
  CHECK(all_nan(&s));
  CHECK(isnan(rcond));
  CHECK_CONTAINS(log, "the result is NaN");
  free(log);
  factor(&d, &s);
  hidden_gecon(&d, &s, '1', (double)NAN, &rcond);
  CHECK(isnan(rcond));
  hidden_free(&s);
  hidden_close(&d);
}

HIDDEN_TEST(gives_nan_for_a_changed_triangle) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.potrf != NULL);
  hidden_system s = hidden_make(60, 1, 'L');
  hidden_potrf(&d, &s);
  s.f[3 + 7 * s.ld] = 1.0; /* in the other triangle: not a part of A */
  hidden_potrs(&d, &s);
  CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
  s.f[7 + 3 * s.ld] += 1.0;
  double rcond = 0.0;
  log_capture capture = log_start();
  hidden_potrs(&d, &s);
  hidden_pocon(&d, &s, 1.0, &rcond);
  free(log_stop(&capture));
  CHECK(all_nan(&s));
  CHECK(isnan(rcond));
  hidden_free(&s);
  hidden_close(&d);
}

HIDDEN_TEST(gives_nan_to_a_reader_of_factors) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(80, 1, 0);
  hidden_getrf(&d, &s);
  hidden_real_getrs(&s, 'N');
  CHECK(all_nan(&s));
  hidden_real_getrs(&s, 'T');
  CHECK(all_nan(&s));
  hidden_free(&s);
  hidden_close(&d);
}

/* ---- LAPACK's own factors after all ------------------------------------- */

/* Factors a matrix with a new drop-in, which has refused none before. */
static void factor_first(hidden_system *s) {
  hidden_calls d = hidden_open(NULL, NULL);
  if (CHECK(d.getrf != NULL))
    factor(&d, s);
  hidden_close(&d);
}

HIDDEN_TEST(leaves_singular_matrices_to_lapack) {
  for (int kind = 0; kind < 3; kind++)
    for (int n = 2; n <= 130; n = 2 * n + 1) {
      hidden_system s = hidden_make(n, 1, 0);
      number *last = s.a + (n - 1) * s.ld;
      for (int i = 0; i < n; i++)
        last[i] = kind == 0 ? 0.0 : kind == 1 ? s.a[i] : s.a[i] * (1.0 + 1e-12);
      factor_first(&s);
      hidden_check_getrf(&s);
      hidden_free(&s);
    }
  hidden_system s = hidden_make(50, 1, 'U');
  s.a[20 + 20 * s.ld] = -1.0;
  factor_first(&s);
  CHECK_EQ_INT(s.info, 21);
  hidden_free(&s);
}

HIDDEN_TEST(solves_many_columns_with_lapacks_factors) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(70, 40, 0);
  hidden_getrf(&d, &s);
  CHECK(tagged(&s));
  for (int k = 0; k < 2; k++) {
    hidden_getrs(&d, &s, 'N');
    CHECK_LE(hidden_backward_error(&s, 'N'), 100.0 * SUP_LIMIT);
  }
  hidden_real_solve(&s, 'N'); /* the bits of LAPACK's own solution */
  CHECK(hidden_same_x(&s));
  double rcond = 0.0, real = 0.0;
  hidden_gecon(&d, &s, '1', 3.0, &rcond);
  hidden_real_gecon(&s, '1', 3.0, &real);
  CHECK_EQ_INT(memcmp(&rcond, &real, sizeof real), 0);
  s.f[3] += 1.0;
  log_capture capture = log_start();
  hidden_getrs(&d, &s, 'N');
  free(log_stop(&capture));
  CHECK(all_nan(&s));
  hidden_free(&s);
  hidden_close(&d);
}

HIDDEN_TEST(solves_for_infinite_b_as_lapack_does) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  hidden_system s = hidden_make(70, 2, 0);
  s.b[3] = (double)INFINITY;
  memset(s.b + s.ld, 0, (size_t)s.n * sizeof *s.b);
  hidden_getrf(&d, &s);
  hidden_getrs(&d, &s, 'N');
  bool finite = true, zero = true;
  for (int i = 0; i < s.n; i++) {
    finite = finite && isfinite(creal(s.x[i]));
    zero = zero && !(creal(s.x[i + s.ld] * conj(s.x[i + s.ld])) > 0.0);
  }
  CHECK(!finite);
  CHECK(zero);
  hidden_free(&s);
  hidden_close(&d);
}

HIDDEN_TEST(inverts_as_lapack_does) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  for (const char *uplo = "GUL"; *uplo != '\0'; uplo++) {
    hidden_system s = hidden_make(85, 1, *uplo == 'G' ? 0 : *uplo);
    factor(&d, &s);
    CHECK(isnan(creal(s.f[0])));
    hidden_invert(&d, &s);
    CHECK_EQ_INT(s.info, 0);
    hidden_check_inverse(&s);
    hidden_free(&s);
  }
  hidden_close(&d);
}

static void check_condition(const hidden_calls *d, hidden_system *s, char norm,
                            double anorm) {
  double rcond = 0.0, real = 0.0;
  factor(d, s);
  if (s->uplo == 0) {
    hidden_gecon(d, s, norm, anorm, &rcond);
    hidden_real_gecon(s, norm, anorm, &real);
  } else {
    hidden_pocon(d, s, anorm, &rcond);
    hidden_real_pocon(s, anorm, &real);
  }
  CHECK(s->uplo == 0 ? tagged(s) : isnan(creal(s->f[0])));
  CHECK_LE(fabs(rcond - real), 0.01 * real);
}

HIDDEN_TEST(knows_the_condition) {
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  for (int n = 1; n <= 200; n = 2 * n + 3) {
    hidden_system s = hidden_make(n, 1, 0);
    for (const char *norm = "1OI"; *norm != '\0'; norm++)
      check_condition(&d, &s, *norm, 7.0);
    hidden_free(&s);
    for (const char *uplo = "UL"; *uplo != '\0'; uplo++) {
      hidden_system p = hidden_make(n, 1, *uplo);
      check_condition(&d, &p, '1', 7.0);
      hidden_free(&p);
    }
  }
  hidden_close(&d);
}

HIDDEN_TEST(scales_matrices_of_any_size) {
  static const double sizes[] = {1e-200, 1e-40, 1e40, 1e200};
  hidden_calls d = hidden_open(NULL, NULL);
  REQUIRE(d.getrf != NULL);
  for (int k = 0; k < 4; k++) {
    hidden_system s = hidden_make(60, 1, 0);
    for (int i = 0; i < s.ld * s.n; i++)
      s.a[i] *= sizes[k];
    for (int i = 0; i < s.n; i++)
      s.b[i] *= 1e-30;
    factor(&d, &s);
    CHECK(tagged(&s));
    hidden_getrs(&d, &s, 'N');
    CHECK_LE(hidden_backward_error(&s, 'N'), SUP_LIMIT);
    check_condition(&d, &s, '1', sizes[k]);
    hidden_free(&s);
  }
  hidden_close(&d);
}
