/* SPDX-License-Identifier: BSD-3-Clause */
/* Hidden factors over the gallery of hard matrices: INFO is the real LAPACK's;
   factors are hidden only where INFO is 0, and are LAPACK's otherwise; no x is
   worse than LAPACK's, unless it is as good as dgesv_ of the drop-in promises.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "tests/unit/lapack_drop_in.h"

#include "tests/gallery/gallery.h"
#include "tests/unit/ct.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
  drop_in d;
  bool cholesky;
  int hidden, shown;
} tally;

static const char UPLO[] = "L";

static void factor(const tally *t, problem *s, bool real, int *info) {
  double *f = real ? s->f_real : s->f;
  int *ipiv = real ? s->ipiv_real : s->ipiv;
  if (t->cholesky)
    (real ? dpotrf_ : t->d.dpotrf)(UPLO, &s->n, f, &s->ld, info, 1);
  else
    (real ? dgetrf_ : t->d.dgetrf)(&s->n, &s->n, f, &s->ld, ipiv, info);
}

/* Solves for b with the drop-in; x_real is LAPACK's. */
static void solve(const tally *t, problem *s, double *x_real) {
  int info;
  memcpy(x_real, s->b, (size_t)s->ld * sizeof *x_real);
  if (t->cholesky) {
    t->d.dpotrs(UPLO, &s->n, &s->nrhs, s->f, &s->ld, s->x, &s->ld, &s->info, 1);
    ((__typeof__(t->d.dpotrs))dlsym(RTLD_DEFAULT, "dpotrs_"))(
        UPLO, &s->n, &s->nrhs, s->f_real, &s->ld, x_real, &s->ld, &info, 1);
  } else {
    t->d.dgetrs("N", &s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld,
                &s->info, 1);
    dgetrs_("N", &s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x_real,
            &s->ld, &info, 1);
  }
}

static void compare(tally *t, problem *s, const char *name) {
  double *x_real = calloc(entries(s->ld, 1), sizeof *x_real);
  int info = -77;
  problem_reset(s);
  factor(t, s, false, &s->info);
  factor(t, s, true, &info);
  if (!CHECK_EQ_INT(s->info, info))
    ct_note("%s, n %d", name, s->n);
  /* Where LAPACK itself left NaN this is no tag, and does no harm. */
  const bool tagged = isnan(s->f[0]) && !isnan(s->f_real[0]);
  t->hidden += tagged;
  t->shown += !tagged;
  if (tagged && info == 0) {
    solve(t, s, x_real);
    const double ours = problem_backward_error(s, false);
    const double real =
        sup_backward_error(s->n, s->a, s->ld, false, x_real, s->b);
    if (!CHECK(ours <= SUP_LIMIT || ours <= real * (1.0 + 1e-9) || isnan(real)))
      ct_note("%s, n %d: %g, LAPACK %g", name, s->n, ours, real);
  } else if (!CHECK(!tagged)) {
    ct_note("%s, n %d: INFO %d and hidden", name, s->n, info);
  }
  if (!tagged)
    problem_check_same(s, s->f, s->f_real);
  free(x_real);
}

/* The drop-in is opened anew for each matrix, so that it forgets whose matrices
   it has refused. */
static void hunt_family(tally *t, const gallery_family *family, int index) {
  static const int orders[] = {2, 9, 40, 90};
  for (int k = 8 * index; k < 8 * index + 8; k++) {
    const int n = orders[k % 4];
    gallery_rng rng = {(uint64_t)k};
    if (n < family->least_n || n > family->most_n)
      continue;
    problem s = problem_make(n, 1, 0.0);
    gallery_make(family, n, gallery_parameter(family, &rng), (uint64_t)k, s.a,
                 s.ld);
    gallery_rhs(k % gallery_rhs_count, n, s.a, s.ld, (uint64_t)k, s.b);
    t->d = drop_in_open("1", "auto");
    if (t->d.dgetrf != NULL)
      compare(t, &s, family->name);
    drop_in_close(&t->d);
    problem_free(&s);
  }
}

static void hunt(bool cholesky, int at_least) {
  setenv("HONE_LAPACK_HIDE", "always", 1);
  tally t = {.cholesky = cholesky};
  for (int i = 0; i < gallery_count; i++)
    if (!cholesky || (gallery_families[i].properties & GALLERY_SYMMETRIC))
      hunt_family(&t, &gallery_families[i], i);
  ct_note("hidden %d, shown %d", t.hidden, t.shown);
  CHECK_GE(t.hidden, at_least);
  CHECK_GE(t.shown, at_least);
  unsetenv("HONE_LAPACK_HIDE");
}

TEST(lapack, hidden_factors_of_hard_matrices_have_lapacks_info) {
  hunt(false, 100);
}

TEST(lapack, hidden_cholesky_factors_of_hard_matrices_have_lapacks_info) {
  hunt(true, 10);
}
