/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in for LAPACK, opened as a plugin would be from the folder of this
   program, anew for each setting of the environment. What it leaves in A, in
   ipiv and in INFO is compared bit by bit with the real LAPACK's. */
#define _GNU_SOURCE /* dlopen's constants */
#include "ct.h"
#include "tests/unit/support.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The real ones, of OpenBLAS, which this program is linked with. */
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv,
            double *b, const int *ldb, int *info);
void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *ipiv,
             int *info);
void dgetrs_(const char *trans, const int *n, const int *nrhs, const double *a,
             const int *lda, const int *ipiv, double *b, const int *ldb,
             int *info, size_t length);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda,
             int *info, size_t length);

/* What the drop-in has of each. */
typedef struct drop_in {
  void *library;
  __typeof__(dgesv_) *dgesv;
  __typeof__(dgetrf_) *dgetrf;
  __typeof__(dgetrs_) *dgetrs;
  __typeof__(dpotrf_) *dpotrf;
  void (*dsgesv)(const int *n, const int *nrhs, double *a, const int *lda,
                 int *ipiv, const double *b, const int *ldb, double *x,
                 const int *ldx, double *work, float *swork, int *iter,
                 int *info);
  void (*dposv)(const char *uplo, const int *n, const int *nrhs, double *a,
                const int *lda, double *b, const int *ldb, int *info,
                size_t length);
  void (*dsposv)(const char *uplo, const int *n, const int *nrhs, double *a,
                 const int *lda, const double *b, const int *ldb, double *x,
                 const int *ldx, double *work, float *swork, int *iter,
                 int *info, size_t length);
  void (*dpotrs)(const char *uplo, const int *n, const int *nrhs,
                 const double *a, const int *lda, double *b, const int *ldb,
                 int *info, size_t length);
} drop_in;

/* xerbla, as a program may bring its own: only counts. */
static struct {
  int calls, info;
  char name[16];
} complaint;
__attribute__((visibility("default"))) void
xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length) {
  complaint.calls++;
  complaint.info = *info;
  snprintf(complaint.name, sizeof complaint.name, "%.*s",
           (int)(length < 15 ? length : 15), name);
}
__attribute__((visibility("default"))) void LAPACKE_xerbla(const char *name,
                                                           int info);
void LAPACKE_xerbla(const char *name, int info) {
  (void)name;
  complaint.calls++;
  complaint.info = info;
}

/* Opens it with a crossover and what becomes of factors. */
static drop_in open_with(const char *crossover, const char *factors) {
  char folder[PATH_MAX], path[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[length > 0 ? length : 0] = '\0';
  snprintf(path, sizeof path, "%s/libhone_lapack.so", dirname(folder));
  setenv("HONE_LAPACK_CROSSOVER", crossover, 1);
  setenv("HONE_LAPACK_FACTORS", factors, 1);
  drop_in d = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  if (d.library == NULL) {
    ct_note("%s", dlerror());
    CHECK(d.library != NULL);
    return d;
  }
  *(void **)&d.dgesv = dlsym(d.library, "dgesv_");
  *(void **)&d.dsgesv = dlsym(d.library, "dsgesv_");
  *(void **)&d.dgetrf = dlsym(d.library, "dgetrf_");
  *(void **)&d.dgetrs = dlsym(d.library, "dgetrs_");
  *(void **)&d.dposv = dlsym(d.library, "dposv_");
  *(void **)&d.dsposv = dlsym(d.library, "dsposv_");
  *(void **)&d.dpotrf = dlsym(d.library, "dpotrf_");
  *(void **)&d.dpotrs = dlsym(d.library, "dpotrs_");
  return d;
}

static void close_it(drop_in *d) {
  if (d->library != NULL)
    dlclose(d->library);
  unsetenv("HONE_LAPACK_CROSSOVER");
  unsetenv("HONE_LAPACK_FACTORS");
}

/* One system, and what the routines write; lda > n. */
typedef struct sys {
  int n, nrhs, ld, info, iter, *ipiv, *ipiv_real;
  double *a, *b;          /* as they were */
  double *f, *x, *f_real; /* to be written */
  double *work;
  float *swork;
} sys;

enum { PAD = 3 };
static size_t entries(int ld, int columns) {
  return (size_t)ld * (size_t)columns;
}

static void again(sys *s) {
  memcpy(s->f, s->a, entries(s->ld, s->n) * sizeof *s->f);
  memcpy(s->f_real, s->a, entries(s->ld, s->n) * sizeof *s->f);
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  for (int i = 0; i < s->n; i++)
    s->ipiv[i] = s->ipiv_real[i] = -7;
  s->info = s->iter = -77;
}

/* cond 0: uniform; negative: symmetric positive definite of -cond. */
static sys make(int n, int nrhs, double cond) {
  sup_rng rng = {(uint64_t)(n + 1)};
  sys s = {.n = n, .nrhs = nrhs, .ld = n + PAD};
  s.ipiv = calloc((size_t)n, sizeof *s.ipiv);
  s.ipiv_real = calloc((size_t)n, sizeof *s.ipiv);
  s.a = calloc(entries(s.ld, n), sizeof *s.a);
  s.f = calloc(entries(s.ld, n), sizeof *s.a);
  s.f_real = calloc(entries(s.ld, n), sizeof *s.a);
  s.b = calloc(entries(s.ld, nrhs), sizeof *s.b);
  s.x = calloc(entries(s.ld, nrhs), sizeof *s.b);
  s.work = calloc(entries(n, nrhs), sizeof *s.work);
  s.swork = calloc(entries(n, n + nrhs), sizeof *s.swork);
  if (cond > 0.0) {
    sup_matrix_cond(&rng, n, SUP_GEOMETRIC, cond, s.a, s.ld);
  } else if (cond < 0.0) {
    sup_matrix_spd(&rng, n, -cond, s.f);
    for (int64_t j = 0; j < n; j++)
      memcpy(s.a + j * s.ld, s.f + j * n, (size_t)n * sizeof *s.a);
  } else {
    sup_random(&rng, n, n, s.a, s.ld);
  }
  sup_random(&rng, n, nrhs, s.b, s.ld);
  again(&s);
  return s;
}

static void drop(sys *s) {
  free(s->ipiv);
  free(s->ipiv_real);
  free(s->a);
  free(s->f);
  free(s->f_real);
  free(s->b);
  free(s->x);
  free(s->work);
  free(s->swork);
}

static double worst(const sys *s, bool trans) {
  double most = 0.0;
  for (int64_t j = 0; j < s->nrhs; j++) {
    double omega = sup_backward_error(s->n, s->a, s->ld, trans,
                                      s->x + j * s->ld, s->b + j * s->ld);
    most = omega <= most ? most : omega;
  }
  return most;
}

static void check_same(const sys *s, const double *p, const double *q) {
  CHECK_MEM_EQ(p, q, entries(s->ld, s->n) * sizeof *p);
}

/* The factors the real LAPACK makes of A, beside those in s->f. */
static void check_lu(sys *s) {
  int info = -77;
  dgetrf_(&s->n, &s->n, s->f_real, &s->ld, s->ipiv_real, &info);
  check_same(s, s->f, s->f_real);
  CHECK_MEM_EQ(s->ipiv, s->ipiv_real, (size_t)s->n * sizeof(int));
}

static void dgesv(const drop_in *d, sys *s) {
  d->dgesv(&s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->x, &s->ld, &s->info);
}

static void dsgesv(const drop_in *d, sys *s) {
  d->dsgesv(&s->n, &s->nrhs, s->f, &s->ld, s->ipiv, s->b, &s->ld, s->x, &s->ld,
            s->work, s->swork, &s->iter, &s->info);
}

static void dposv(const drop_in *d, sys *s, char uplo) {
  d->dposv(&uplo, &s->n, &s->nrhs, s->f, &s->ld, s->x, &s->ld, &s->info, 1);
}

static void dsposv(const drop_in *d, sys *s, char uplo) {
  d->dsposv(&uplo, &s->n, &s->nrhs, s->f, &s->ld, s->b, &s->ld, s->x, &s->ld,
            s->work, s->swork, &s->iter, &s->info, 1);
}

/* dgesv ------------------------------------------------------------------- */

TEST(lapack, dgesv_leaves_lapacks_factors_and_refines_x) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.dgesv != NULL);
  for (int n = 1; n <= 150; n = 2 * n + 1) {
    sys s = make(n, 3, n > 1 ? 1e6 : 0.0);
    dgesv(&d, &s);
    CHECK_EQ_INT(s.info, 0);
    CHECK_LE(worst(&s, false), SUP_LIMIT);
    check_lu(&s);
    drop(&s);
  }
  close_it(&d);
}

TEST(lapack, dgesv_without_factors_leaves_nothing_like_them) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(120, 2, 1e3);
  dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  for (int64_t i = 0; i < s.n; i++) {
    CHECK(isnan(s.f[i + i * s.ld]));
    CHECK_EQ_INT(s.ipiv[i], i + 1);
  }
  drop(&s);
  close_it(&d);
}

TEST(lapack, dgesv_without_factors_leaves_the_hard_ones_to_lapack) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(100, 1, 1e15);
  dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  check_lu(&s);
  again(&s);
  memset(s.a + 40 * s.ld, 0, (size_t)s.n * sizeof *s.a); /* singular */
  again(&s);
  dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 41);
  check_lu(&s);
  CHECK_MEM_EQ(s.x, s.b, entries(s.ld, s.nrhs) * sizeof *s.x);
  drop(&s);
  close_it(&d);
}

/* Does a caller in this program get its factors? */
static bool kept_for(const char *factors) {
  drop_in d = open_with("1", factors);
  sys s = make(40, 1, 0.0);
  if (d.dgesv != NULL)
    dgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  bool kept = !isnan(s.f[0]);
  drop(&s);
  close_it(&d);
  return kept;
}

TEST(lapack, callers_named_discard_factors_and_others_do_not) {
  CHECK(kept_for("auto"));
  CHECK(kept_for("keep"));
  CHECK(!kept_for("discard"));
  CHECK(!kept_for("unit_tests:libother.so"));
  CHECK(!kept_for("libother.so:unit_tests"));
  CHECK(kept_for("libother.so:libunit_tests"));
  CHECK(kept_for("unit_tests_more:"));
}

/* The same bits as the real dgesv_ gives. */
static void check_passed(const drop_in *d, sys *s) {
  int info = -77;
  dgesv(d, s);
  double *x = malloc(entries(s->ld, s->nrhs) * sizeof *x);
  memcpy(x, s->b, entries(s->ld, s->nrhs) * sizeof *x);
  dgesv_(&s->n, &s->nrhs, s->f_real, &s->ld, s->ipiv_real, x, &s->ld, &info);
  CHECK_EQ_INT(s->info, info);
  check_same(s, s->f, s->f_real);
  CHECK_MEM_EQ(s->x, x, entries(s->ld, s->nrhs) * sizeof *x);
  free(x);
}

TEST(lapack, calls_below_the_crossover_are_passed_on) {
  drop_in d = open_with("51", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(50, 1, 1e5);
  check_passed(&d, &s);
  drop(&s);
  s = make(51, 1, 1e5);
  dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  drop(&s);
  close_it(&d);
}

TEST(lapack, many_right_hand_sides_are_passed_on) {
  drop_in d = open_with("300", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(799, 2, 1e5);
  check_passed(&d, &s);
  drop(&s);
  s = make(800, 2, 1e5);
  dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  drop(&s);
  s = make(300, 1, 1e5);
  dgesv(&d, &s);
  CHECK(isnan(s.f[0]));
  drop(&s);
  close_it(&d);
}

TEST(lapack, off_is_off) {
  setenv("HONE_LAPACK", "off", 1);
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(50, 1, 1e5);
  check_passed(&d, &s);
  drop(&s);
  close_it(&d);
  unsetenv("HONE_LAPACK");
}

TEST(lapack, overlapping_arguments_are_passed_on) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(30, 1, 0.0);
  const int n = s.n - 1, one = 1; /* b: the last column of A's array */
  double *b = s.f + n * s.ld, *b_real = s.f_real + n * s.ld;
  b -= 5;
  b_real -= 5;
  d.dgesv(&n, &one, s.f, &s.ld, s.ipiv, b, &s.ld, &s.info);
  dgesv_(&n, &one, s.f_real, &s.ld, s.ipiv_real, b_real, &s.ld, &s.info);
  check_same(&s, s.f, s.f_real);
  drop(&s);
  close_it(&d);
}

TEST(lapack, wrong_arguments_reach_xerbla_as_lapack_sends_them) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(5, 1, 0.0);
  const int minus = -1, four = 4, n = s.n;
  complaint.calls = 0;
  d.dgesv(&minus, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info);
  CHECK_EQ_INT(s.info, -1);
  CHECK_EQ_INT(complaint.info, 1);
  CHECK_CONTAINS(complaint.name, "DGESV");
  d.dgesv(&n, &s.nrhs, s.f, &four, s.ipiv, s.x, &s.ld, &s.info);
  CHECK_EQ_INT(s.info, -4);
  d.dgetrf(&n, &n, s.f, &four, s.ipiv, &s.info);
  CHECK_EQ_INT(s.info, -4);
  d.dgetrs("X", &n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
  CHECK_EQ_INT(complaint.info, 1); /* not INFO: OpenBLAS 0.3.21 forgets it */
  d.dposv("X", &n, &s.nrhs, s.f, &s.ld, s.x, &s.ld, &s.info, 1);
  CHECK_EQ_INT(s.info, -1);
  d.dsgesv(&n, &s.nrhs, s.f, &s.ld, s.ipiv, s.b, &four, s.x, &s.ld, s.work,
           s.swork, &s.iter, &s.info);
  CHECK_EQ_INT(s.info, -7);
  CHECK_EQ_INT(complaint.calls, 6);
  check_same(&s, s.f, s.a);
  drop(&s);
  close_it(&d);
}

/* The mixed forms --------------------------------------------------------- */

TEST(lapack, dsgesv_leaves_a_alone_where_refinement_succeeds) {
  drop_in d = open_with("1", "keep");
  REQUIRE(d.dsgesv != NULL);
  sys s = make(130, 5, 1e4);
  dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_GE(s.iter, 1);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  check_same(&s, s.f, s.a);
  for (int i = 0; i < s.n; i++)
    CHECK(s.ipiv[i] >= i + 1 && s.ipiv[i] <= s.n);
  drop(&s);
  close_it(&d);
}

TEST(lapack, dsgesv_falls_back_to_lapacks_factors) {
  drop_in d = open_with("1", "keep");
  REQUIRE(d.dsgesv != NULL);
  sys s = make(100, 2, 1e15);
  dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LT(s.iter, 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  check_lu(&s);
  memset(s.a + 40 * s.ld, 0, (size_t)s.n * sizeof *s.a);
  again(&s);
  dsgesv(&d, &s);
  CHECK_EQ_INT(s.iter, -3);
  CHECK_EQ_INT(s.info, 41);
  check_lu(&s);
  drop(&s);
  s = make(20, 1, 0.0);
  s.a[3] = 1e300; /* no float */
  again(&s);
  dsgesv(&d, &s);
  CHECK_EQ_INT(s.info, 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  drop(&s);
  close_it(&d);
}

/* In A or in b; ITER and INFO alike above and below the crossover. */
static void check_nan(const char *crossover, bool in_a) {
  drop_in d = open_with(crossover, "keep");
  sys s = make(64, 1, 0.0);
  *(in_a ? &s.a[5 + 7 * s.ld] : &s.b[9]) = (double)NAN;
  again(&s);
  if (d.dsgesv != NULL)
    dsgesv(&d, &s);
  CHECK_LT(s.iter, 0);
  drop(&s);
  s = make(64, 1, -1e3);
  *(in_a ? &s.a[5 + 7 * s.ld] : &s.b[9]) = (double)NAN;
  again(&s);
  if (d.dsposv != NULL)
    dsposv(&d, &s, 'U');
  CHECK(s.iter < 0 || s.info > 0);
  drop(&s);
  close_it(&d);
}

TEST(lapack, nan_is_never_called_converged) {
  check_nan("1", true);
  check_nan("1", false);
  check_nan("1000", true);
  check_nan("1000", false);
}

/* Small orders: 4 eps componentwise is more than sqrt(n) eps normwise. */
TEST(lapack, iter_says_success_only_within_lapacks_own_bound) {
  drop_in d = open_with("1", "keep");
  REQUIRE(d.dsposv != NULL);
  for (int n = 1; n < 12; n++) {
    sys s = make(n, 16, n > 1 ? -4.0 : 0.0);
    if (n == 1)
      s.a[0] = fabs(s.a[0]);
    again(&s);
    dsposv(&d, &s, n % 2 ? 'U' : 'L');
    double norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++)
        sum += fabs(s.a[i + j * s.ld]);
      norm = fmax(norm, sum);
    }
    for (int64_t c = 0; c < s.nrhs && s.iter >= 0; c++) {
      double r = 0.0, x = 0.0;
      for (int64_t i = 0; i < n; i++) {
        long double sum = (long double)s.b[i + c * s.ld];
        for (int64_t j = 0; j < n; j++)
          sum -=
              (long double)s.a[i + j * s.ld] * (long double)s.x[j + c * s.ld];
        r = fmax(r, fabs((double)sum));
        x = fmax(x, fabs(s.x[i + c * s.ld]));
      }
      CHECK_LE(r, 1.01 * sqrt((double)n) * SUP_EPS * norm * x);
    }
    drop(&s);
  }
  close_it(&d);
}

/* Factor, then solve ------------------------------------------------------ */

static void getrs(const drop_in *d, sys *s, char trans, const double *f) {
  memcpy(s->x, s->b, entries(s->ld, s->nrhs) * sizeof *s->x);
  d->dgetrs(&trans, &s->n, &s->nrhs, f, &s->ld, s->ipiv, s->x, &s->ld, &s->info,
            1);
  CHECK_EQ_INT(s->info, 0);
}

/* Bit for bit what the real dgetrs_ makes of these factors, which refinement
   would have changed. */
static void check_getrs_passed(const drop_in *d, sys *s, const double *f) {
  const size_t bytes = entries(s->ld, s->nrhs) * sizeof *s->x;
  double *x = malloc(bytes);
  memcpy(x, s->b, bytes);
  dgetrs_("N", &s->n, &s->nrhs, f, &s->ld, s->ipiv, x, &s->ld, &s->info, 1);
  getrs(d, s, 'N', f);
  CHECK_GE(worst(s, false), 2.5 * SUP_EPS);
  CHECK_MEM_EQ(s->x, x, bytes);
  free(x);
}

TEST(lapack, dgetrs_refines_with_factors_that_dgetrf_made) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  sys s = make(150, 20, 1e8);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  CHECK_EQ_INT(s.info, 0);
  check_lu(&s);
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  getrs(&d, &s, 't', s.f);
  CHECK_LE(worst(&s, true), SUP_LIMIT);
  getrs(&d, &s, 'C', s.f_real); /* a copy, elsewhere */
  CHECK_LE(worst(&s, true), SUP_LIMIT);
  drop(&s);
  close_it(&d);
}

TEST(lapack, dgetrs_passes_on_factors_of_anybody_else) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  sys s = make(250, 6, 0.0);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  const double was = s.f[33 + 50 * s.ld];
  s.f[33 + 50 * s.ld] = was * (1.0 + 0x1p-52); /* one bit of one entry */
  check_getrs_passed(&d, &s, s.f);
  s.f[33 + 50 * s.ld] = was;
  int pivot = s.ipiv[3];
  s.ipiv[3] = s.n;
  check_getrs_passed(&d, &s, s.f);
  s.ipiv[3] = pivot;
  getrs(&d, &s, 'N', s.f);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  drop(&s);
  close_it(&d);
}

TEST(lapack, kept_matrices_stay_within_their_memory) {
  setenv("HONE_LAPACK_KEPT_MIB", "1", 1); /* 2 of order 220, 388 kB each */
  drop_in d = open_with("1", "auto");
  REQUIRE(d.dgetrf != NULL);
  sys s[3];
  for (int k = 0; k < 3; k++) {
    s[k] = make(220, 6, 0.0);
    s[k].f[0] += (double)k;
    s[k].a[0] += (double)k;
    d.dgetrf(&s[k].n, &s[k].n, s[k].f, &s[k].ld, s[k].ipiv, &s[k].info);
  }
  check_getrs_passed(&d, &s[0], s[0].f);
  for (int k = 1; k < 3; k++) {
    getrs(&d, &s[k], 'N', s[k].f);
    CHECK_LE(worst(&s[k], false), SUP_LIMIT);
  }
  for (int k = 0; k < 3; k++)
    drop(&s[k]);
  close_it(&d);
  setenv("HONE_LAPACK_KEPT_MIB", "0", 1);
  d = open_with("1", "auto");
  s[0] = make(150, 6, 0.0);
  d.dgetrf(&s[0].n, &s[0].n, s[0].f, &s[0].ld, s[0].ipiv, &s[0].info);
  check_getrs_passed(&d, &s[0], s[0].f);
  drop(&s[0]);
  close_it(&d);
  unsetenv("HONE_LAPACK_KEPT_MIB");
}

/* Cholesky
 * --------------------------------------------------------------------- */

/* NaN into the triangle that is not to be read. */
static void spoil(const sys *s, char uplo, double *a) {
  for (int64_t j = 0; j < s->n; j++)
    for (int64_t i = 0; i < s->n; i++)
      if (uplo == 'U' ? i > j : i < j)
        a[i + j * s->ld] = (double)NAN;
}

/* The factor that the real dpotrf_ makes, beside that in s->f. */
static void check_cholesky(sys *s, char uplo) {
  int info = -77;
  spoil(s, uplo, s->f_real);
  dpotrf_(&uplo, &s->n, s->f_real, &s->ld, &info, 1);
  CHECK_EQ_INT(s->info, info);
  check_same(s, s->f, s->f_real);
}

TEST(lapack, cholesky_reads_one_triangle_and_leaves_lapacks_factor) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.dposv != NULL);
  for (const char *uplo = "UL"; *uplo; uplo++) {
    sys s = make(140, 2, -1e6);
    spoil(&s, *uplo, s.f);
    dposv(&d, &s, *uplo);
    CHECK_LE(worst(&s, false), SUP_LIMIT);
    check_cholesky(&s, *uplo);
    again(&s);
    spoil(&s, *uplo, s.f);
    d.dpotrf(uplo, &s.n, s.f, &s.ld, &s.info, 1);
    check_cholesky(&s, *uplo);
    d.dpotrs(uplo, &s.n, &s.nrhs, s.f, &s.ld, s.x, &s.ld, &s.info, 1);
    CHECK_LE(worst(&s, false), SUP_LIMIT);
    again(&s);
    spoil(&s, *uplo, s.f);
    memcpy(s.f_real, s.f, entries(s.ld, s.n) * sizeof *s.f);
    dsposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 0);
    CHECK_GE(s.iter, 0);
    CHECK_LE(worst(&s, false), SUP_LIMIT);
    check_same(&s, s.f, s.f_real);
    drop(&s);
  }
  close_it(&d);
}

/* A that is not definite is not solved by some other way. */
static void check_indefinite(const char *factors) {
  drop_in d = open_with("1", factors);
  for (const char *uplo = "UL"; *uplo; uplo++) {
    sys s = make(80, 1, -1e2);
    s.a[60 + 60 * s.ld] = -1.0;
    again(&s);
    spoil(&s, *uplo, s.f);
    if (d.dposv != NULL)
      dposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 61);
    check_cholesky(&s, *uplo);
    again(&s);
    spoil(&s, *uplo, s.f);
    if (d.dsposv != NULL)
      dsposv(&d, &s, *uplo);
    CHECK_EQ_INT(s.info, 61);
    CHECK_EQ_INT(s.iter, -3);
    drop(&s);
  }
  close_it(&d);
}

TEST(lapack, a_matrix_that_is_not_definite_gets_lapacks_info) {
  check_indefinite("keep");
  check_indefinite("discard");
}

/* LAPACKE
 * ------------------------------------------------------------------------*/

static const int ROWS = 101, COLUMNS = 102;

/* s->a by rows into to, ld n. */
static void by_rows(const sys *s, const double *from, double *to) {
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t j = 0; j < s->n; j++)
      to[i * s->n + j] = from[i + j * s->ld];
}

TEST(lapack, row_major_factors_are_those_of_the_same_matrix) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.library != NULL);
  int (*gesv)(int, int, int, double *, int, int *, double *, int);
  int (*getrf)(int, int, int, double *, int, int *);
  int (*solve)(int, char, int, int, const double *, int, const int *, double *,
               int);
  *(void **)&gesv = dlsym(d.library, "LAPACKE_dgesv");
  *(void **)&getrf = dlsym(d.library, "LAPACKE_dgetrf");
  *(void **)&solve = dlsym(d.library, "LAPACKE_dgetrs");
  REQUIRE(gesv && getrf && solve);
  sys s = make(70, 1, 1e7);
  double *a = malloc(entries(s.n, s.n) * sizeof *a);
  double *f = malloc(entries(s.n, s.n) * sizeof *f);
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(gesv(ROWS, s.n, 1, a, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  dgetrf_(&s.n, &s.n, s.f_real, &s.ld, s.ipiv_real, &s.info);
  by_rows(&s, s.f_real, f);
  CHECK_MEM_EQ(a, f, entries(s.n, s.n) * sizeof *a);
  CHECK_MEM_EQ(s.ipiv, s.ipiv_real, (size_t)s.n * sizeof(int));
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(getrf(ROWS, s.n, s.n, a, s.n, s.ipiv), 0);
  memcpy(s.x, s.b, (size_t)s.n * sizeof *s.x);
  CHECK_EQ_INT(solve(ROWS, 'T', s.n, 1, a, s.n, s.ipiv, s.x, 1), 0);
  CHECK_LE(worst(&s, true), SUP_LIMIT);
  free(a);
  free(f);
  drop(&s);
  close_it(&d);
}

TEST(lapack, row_major_triangles_and_errors) {
  drop_in d = open_with("1", "auto");
  REQUIRE(d.library != NULL);
  int (*posv)(int, char, int, int, double *, int, double *, int);
  int (*sgesv)(int, int, int, double *, int, int *, double *, int, double *,
               int, int *);
  *(void **)&posv = dlsym(d.library, "LAPACKE_dposv");
  *(void **)&sgesv = dlsym(d.library, "LAPACKE_dsgesv");
  REQUIRE(posv && sgesv);
  sys s = make(70, 1, -1e4);
  double *a = malloc(entries(s.n, s.n) * sizeof *a);
  spoil(&s, 'U', s.f);
  by_rows(&s, s.f, a);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 1, a, s.n, s.x, 1), 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  by_rows(&s, s.a, a);
  CHECK_EQ_INT(sgesv(ROWS, s.n, 1, a, s.n, s.ipiv, s.b, 1, s.x, 1, &s.iter), 0);
  CHECK_GE(s.iter, 0);
  CHECK_LE(worst(&s, false), SUP_LIMIT);
  complaint.calls = 0;
  CHECK_EQ_INT(posv(7, 'U', s.n, 1, a, s.n, s.x, 1), -1);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 1, a, s.n - 1, s.x, 1), -6);
  CHECK_EQ_INT(posv(ROWS, 'U', s.n, 2, a, s.n, s.x, 1), -8);
  CHECK_EQ_INT(complaint.calls, 3);
  CHECK_EQ_INT(posv(ROWS, 'Q', s.n, 1, a, s.n, s.x, 1), -2);
  a[3] = (double)NAN;
  CHECK_EQ_INT(posv(COLUMNS, 'L', s.n, 1, a, s.n, s.x, s.n), -5);
  CHECK_EQ_INT(
      sgesv(COLUMNS, s.n, 1, a, s.n, s.ipiv, s.b, s.n, s.x, s.n, &s.iter), -4);
  free(a);
  drop(&s);
  close_it(&d);
}

/* Threads, fork, the log
 * ------------------------------------------------------------ */

static void *solve_often(void *p) {
  const drop_in *d = p;
  int good = 1;
  for (int k = 0; k < 6; k++) {
    sys s = make(60 + 10 * k, 1, 1e5);
    dgesv(d, &s);
    good = good && s.info == 0 && worst(&s, false) <= SUP_LIMIT;
    again(&s);
    d->dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
    d->dgetrs("N", &s.n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
    good = good && s.info == 0 && worst(&s, false) <= SUP_LIMIT;
    drop(&s);
  }
  return good ? p : NULL;
}

TEST(lapack, threads_solve_at_the_same_time) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  pthread_t thread[4];
  for (int k = 0; k < 4; k++)
    REQUIRE(pthread_create(&thread[k], NULL, solve_often, &d) == 0);
  for (int k = 0; k < 4; k++) {
    void *good = NULL;
    pthread_join(thread[k], &good);
    CHECK(good == &d);
  }
  close_it(&d);
}

TEST(lapack, a_child_of_fork_can_solve) {
  drop_in d = open_with("1", "discard");
  REQUIRE(d.dgesv != NULL);
  sys s = make(60, 1, 1e5);
  d.dgetrf(&s.n, &s.n, s.f, &s.ld, s.ipiv, &s.info);
  pid_t child = fork();
  if (child == 0) {
    d.dgetrs("N", &s.n, &s.nrhs, s.f, &s.ld, s.ipiv, s.x, &s.ld, &s.info, 1);
    _exit(s.info == 0 && worst(&s, false) <= SUP_LIMIT ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  drop(&s);
  close_it(&d);
}

TEST(lapack, the_log_has_one_line_for_each_solve) {
  setenv("HONE_LOG", "1", 1);
  drop_in d = open_with("20", "discard");
  REQUIRE(d.dgesv != NULL);
  char text[4096] = "";
  FILE *log = tmpfile();
  REQUIRE(log != NULL);
  fflush(stderr);
  int before = dup(2);
  dup2(fileno(log), 2);
  const int orders[] = {10, 30};
  for (int k = 0; k < 2; k++) {
    sys s = make(orders[k], 1, 0.0);
    dgesv(&d, &s);
    drop(&s);
  }
  fflush(stderr);
  dup2(before, 2);
  close(before);
  rewind(log);
  size_t length = fread(text, 1, sizeof text - 1, log);
  fclose(log);
  text[length] = '\0';
  unsetenv("HONE_LOG");
  int lines = 0;
  for (const char *at = text; (at = strstr(at, "hone_lapack: dgesv n ")); at++)
    lines++;
  CHECK_EQ_INT(lines, 2);
  CHECK_CONTAINS(text, "dgesv n 10, nrhs 1: passed on; ");
  CHECK_CONTAINS(text, "dgesv n 30, nrhs 1: single LU, ");
  close_it(&d);
}
