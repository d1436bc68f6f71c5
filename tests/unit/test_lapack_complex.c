/* SPDX-License-Identifier: BSD-3-Clause */
/* The drop-in's complex routines beside the real LAPACK's: the factors are the
   same, no x is worse, and the log says what a check in quadruple precision
   finds. */
#include "tests/unit/lapack_drop_in.h"

#include "base/complex_values.h"
#include "tests/unit/complex_system.h"
#include "tests/unit/ct.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef hone_complex z;

void zgesv_(const int *n, const int *nrhs, z *a, const int *lda, int *ipiv,
            z *b, const int *ldb, int *info);
void zgetrf_(const int *m, const int *n, z *a, const int *lda, int *ipiv,
             int *info);
void zgetrs_(const char *trans, const int *n, const int *nrhs, const z *a,
             const int *lda, const int *ipiv, z *b, const int *ldb, int *info,
             size_t length);
void zposv_(const char *uplo, const int *n, const int *nrhs, z *a,
            const int *lda, z *b, const int *ldb, int *info, size_t length);
void zpotrf_(const char *uplo, const int *n, z *a, const int *lda, int *info,
             size_t length);

/* The drop-in's own versions. */
typedef struct routines {
  drop_in d;
  __typeof__(zgesv_) *gesv;
  __typeof__(zgetrf_) *getrf;
  __typeof__(zgetrs_) *getrs;
  __typeof__(zposv_) *posv;
  __typeof__(zpotrf_) *potrf;
  void (*potrs)(const char *uplo, const int *n, const int *nrhs, const z *a,
                const int *lda, z *b, const int *ldb, int *info, size_t length);
  void (*cgesv)(const int *n, const int *nrhs, z *a, const int *lda, int *ipiv,
                const z *b, const int *ldb, z *x, const int *ldx, z *work,
                float _Complex *swork, double *rwork, int *iter, int *info);
  void (*cposv)(const char *uplo, const int *n, const int *nrhs, z *a,
                const int *lda, const z *b, const int *ldb, z *x,
                const int *ldx, z *work, float _Complex *swork, double *rwork,
                int *iter, int *info, size_t length);
} routines;

static routines routines_from(const char *crossover, const char *factors) {
  routines r = {.d = drop_in_open(crossover, factors)};
  if (r.d.library != NULL) {
    *(void **)&r.gesv = dlsym(r.d.library, "zgesv_");
    *(void **)&r.getrf = dlsym(r.d.library, "zgetrf_");
    *(void **)&r.getrs = dlsym(r.d.library, "zgetrs_");
    *(void **)&r.posv = dlsym(r.d.library, "zposv_");
    *(void **)&r.potrf = dlsym(r.d.library, "zpotrf_");
    *(void **)&r.potrs = dlsym(r.d.library, "zpotrs_");
    *(void **)&r.cgesv = dlsym(r.d.library, "zcgesv_");
    *(void **)&r.cposv = dlsym(r.d.library, "zcposv_");
  }
  CHECK(r.gesv && r.getrf && r.getrs && r.posv && r.potrf && r.potrs &&
        r.cgesv && r.cposv);
  return r;
}

static routines routines_open(const char *factors) {
  return routines_from("1", factors);
}

/* A system, and the arrays of the drop-in and of the real LAPACK. */
typedef struct pair {
  int n, info, iter, *ipiv, *ipiv_real;
  z *a, *b, *f, *f_real, *x, *x_real;
} pair;

static size_t bytes(const pair *p) {
  return (size_t)p->n * (size_t)p->n * sizeof(z);
}

static void reset(pair *p) {
  memcpy(p->f, p->a, bytes(p));
  memcpy(p->f_real, p->a, bytes(p));
  memcpy(p->x, p->b, (size_t)p->n * sizeof(z));
  memcpy(p->x_real, p->b, (size_t)p->n * sizeof(z));
  p->info = p->iter = -77;
  memset(p->ipiv, 0, (size_t)p->n * sizeof(int));
  memset(p->ipiv_real, 0, (size_t)p->n * sizeof(int));
}

static pair make(int family, int n, uint64_t seed) {
  pair p = {.n = n};
  p.a = cs_matrix(family, n, seed);
  p.b = cs_random(n, 1, seed + 1);
  p.f = malloc(bytes(&p));
  p.f_real = malloc(bytes(&p));
  p.x = malloc((size_t)n * sizeof(z));
  p.x_real = malloc((size_t)n * sizeof(z));
  p.ipiv = malloc((size_t)n * sizeof(int));
  p.ipiv_real = malloc((size_t)n * sizeof(int));
  reset(&p);
  return p;
}

static void release(pair *p) {
  free(p->a);
  free(p->b);
  free(p->f);
  free(p->f_real);
  free(p->x);
  free(p->x_real);
  free(p->ipiv);
  free(p->ipiv_real);
}

static double error_of(const pair *p, char trans, const z *x) {
  const cs_problem s = {.n = p->n,
                        .lda = p->n,
                        .a = p->a,
                        .trans = trans == 'N'   ? HONE_NO_TRANS
                                 : trans == 'T' ? HONE_TRANS
                                                : HONE_CONJ_TRANS};
  return cs_backward_error(&s, x, p->b);
}

/* Factors kept ------------------------------------------------------------- */

static const int one = 1;

/* which: G for gesv, P for posv; N, T and C for getrf and then getrs. */
static int solve_both(const routines *r, pair *p, char which) {
  int info = -77;
  if (which == 'G') {
    r->gesv(&p->n, &one, p->f, &p->n, p->ipiv, p->x, &p->n, &p->info);
    zgesv_(&p->n, &one, p->f_real, &p->n, p->ipiv_real, p->x_real, &p->n,
           &info);
  } else if (which == 'P') {
    r->posv("L", &p->n, &one, p->f, &p->n, p->x, &p->n, &p->info, 1);
    zposv_("L", &p->n, &one, p->f_real, &p->n, p->x_real, &p->n, &info, 1);
  } else {
    r->getrf(&p->n, &p->n, p->f, &p->n, p->ipiv, &p->info);
    zgetrf_(&p->n, &p->n, p->f_real, &p->n, p->ipiv_real, &info);
    if (info == 0) {
      r->getrs(&which, &p->n, &one, p->f, &p->n, p->ipiv, p->x, &p->n, &p->info,
               1);
      zgetrs_(&which, &p->n, &one, p->f_real, &p->n, p->ipiv_real, p->x_real,
              &p->n, &info, 1);
    }
  }
  return info;
}

/* Solves one system with both, and compares. Returns how often the drop-in's x
   is much better. */
static int compare(const routines *r, pair *p, char which) {
  const char trans = which == 'G' || which == 'P' ? 'N' : which;
  log_capture capture = log_start();
  const int info = solve_both(r, p, which);
  char *log = log_stop(&capture);
  CHECK_EQ_INT(p->info, info);
  CHECK_MEM_EQ(p->f, p->f_real, bytes(p));
  CHECK_MEM_EQ(p->ipiv, p->ipiv_real, (size_t)p->n * sizeof(int));
  const double ours = error_of(p, trans, p->x);
  const double real = error_of(p, trans, p->x_real);
  CHECK_LE(ours, real * (1.0 + 1e-9));
  const char *says = strstr(log, "hone_lapack: ");
  says = says ? strstr(says, "backward error ") : NULL;
  if (CHECK(says != NULL)) {
    const double said = atof(says + strlen("backward error "));
    CHECK_LE(fabs(said - ours), 6e-3 * ours + 1e-30);
  }
  free(log);
  return ours < 0.5 * real;
}

TEST(lapack, with_factors_kept_no_complex_x_is_worse_than_lapacks) {
  static const int orders[] = {2, 9, 40, 131};
  setenv("HONE_LOG", "1", 1);
  routines r = routines_open("keep");
  REQUIRE(r.gesv != NULL);
  int count = 0, better = 0;
  for (int k = 0; k < CS_FAMILIES * 4 * 5; k++) {
    const int family = k / 20, n = orders[k / 5 % 4];
    const char which = "GNTCP"[k % 5];
    if (which == 'P' && family != CS_DEFINITE && family != CS_DIAGONAL)
      continue;
    pair p = make(family, n, (uint64_t)k);
    ct_note("%s, n %d, %c", cs_name(family), n, which);
    if (which == 'P')
      for (int64_t i = 0; i < n; i++)
        p.a[i + i * n] = cabs(p.a[i + i * n]);
    reset(&p);
    better += compare(&r, &p, which);
    count++;
    release(&p);
  }
  CHECK_GE(count, 200);
  CHECK_GE(better, count / 4);
  drop_in_close(&r.d);
  unsetenv("HONE_LOG");
}

/* Entries near the ends of the range are summed again in long double. */
TEST(lapack, complex_rows_out_of_range_are_measured_all_the_same) {
  setenv("HONE_LOG", "1", 1);
  routines r = routines_open("keep");
  REQUIRE(r.gesv != NULL);
  for (int k = 0; k < 8; k++) {
    pair p = make(CS_UNIFORM, 20, (uint64_t)k);
    const double by = k % 2 ? 0x1p-1020 : 0x1p+1000;
    for (int64_t i = 0; i < 400; i++)
      if (i % 20 == 3 || k >= 4)
        p.a[i] *= by;
    for (int64_t i = 0; i < 20; i++)
      if (i == 3 || k >= 4)
        p.b[i] *= by;
    ct_note("%d", k);
    reset(&p);
    compare(&r, &p, "GNTC"[k / 2]);
    release(&p);
  }
  drop_in_close(&r.d);
  unsetenv("HONE_LOG");
}

/* Factors discarded -------------------------------------------------------- */

TEST(lapack, zgesv_without_factors_is_verified_or_left_to_lapack) {
  routines r = routines_open("discard");
  REQUIRE(r.gesv != NULL);
  for (int family = 0; family < CS_FAMILIES; family++) {
    pair p = make(family, 60, (uint64_t)family);
    ct_note("%s", cs_name(family));
    r.gesv(&p.n, &one, p.f, &p.n, p.ipiv, p.x, &p.n, &p.info);
    CHECK_EQ_INT(p.info, 0);
    CHECK_LE(error_of(&p, 'N', p.x), SUP_LIMIT);
    if (family == CS_UNIFORM || family == CS_NORMAL || family == CS_SPECTRUM) {
      CHECK(isnan(creal(p.f[61])));
      CHECK_EQ_INT(p.ipiv[59], 60);
    }
    release(&p);
  }
  pair p = make(CS_UNIFORM, 60, 1);
  memset(p.a + 40 * 60, 0, 60 * sizeof(z)); /* makes A singular */
  reset(&p);
  r.gesv(&p.n, &one, p.f, &p.n, p.ipiv, p.x, &p.n, &p.info);
  CHECK_EQ_INT(p.info, 41);
  zgesv_(&p.n, &one, p.f_real, &p.n, p.ipiv_real, p.x_real, &p.n, &p.info);
  CHECK_MEM_EQ(p.f, p.f_real, bytes(&p));
  release(&p);
  drop_in_close(&r.d);
}

/* Does the drop-in solve a system of this order by default? */
static bool is_solved(int n) {
  routines r = routines_from("", "discard");
  pair p = make(CS_UNIFORM, n, 7);
  if (r.gesv != NULL)
    r.gesv(&p.n, &one, p.f, &p.n, p.ipiv, p.x, &p.n, &p.info);
  CHECK_EQ_INT(p.info, 0);
  const bool solved = isnan(creal(p.f[0]));
  release(&p);
  drop_in_close(&r.d);
  return solved;
}

TEST(lapack, complex_systems_below_order_400_are_passed_on) {
  CHECK(!is_solved(399));
  CHECK(is_solved(400));
}

/* Spoils what routines called with uplo do not read: the other triangle and
   the imaginary part of the diagonal. */
static void spoil(pair *p, char uplo) {
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t i = 0; i < p->n; i++)
      if (i == j)
        p->f[i + j * p->n] = CMPLX(creal(p->f[i + j * p->n]), 7.0);
      else if ((uplo == 'U') == (i > j))
        p->f[i + j * p->n] = CMPLX(NAN, NAN);
  memcpy(p->f_real, p->f, bytes(p));
}

static void check_hermitian(const char *factors) {
  routines r = routines_open(factors);
  for (const char *uplo = "UL"; *uplo; uplo++) {
    pair p = make(CS_DEFINITE, 90, 3);
    spoil(&p, *uplo);
    ct_note("%s, %c", factors, *uplo);
    r.posv(uplo, &p.n, &one, p.f, &p.n, p.x, &p.n, &p.info, 1);
    CHECK_EQ_INT(p.info, 0);
    CHECK_LE(error_of(&p, 'N', p.x), SUP_LIMIT);
    CHECK_EQ_INT(isnan(creal(p.f[0])), strcmp(factors, "discard") == 0);
    reset(&p);
    spoil(&p, *uplo);
    r.potrf(uplo, &p.n, p.f, &p.n, &p.info, 1);
    zpotrf_(uplo, &p.n, p.f_real, &p.n, &p.info, 1);
    CHECK_MEM_EQ(p.f, p.f_real, bytes(&p));
    r.potrs(uplo, &p.n, &one, p.f, &p.n, p.x, &p.n, &p.info, 1);
    CHECK_LE(error_of(&p, 'N', p.x), SUP_LIMIT);
    p.a[50 + 50 * 90] = -1.0; /* not definite */
    reset(&p);
    r.posv(uplo, &p.n, &one, p.f, &p.n, p.x, &p.n, &p.info, 1);
    CHECK_EQ_INT(p.info, 51);
    CHECK_MEM_EQ(p.x, p.b, 90 * sizeof(z));
    release(&p);
  }
  drop_in_close(&r.d);
}

TEST(lapack, hermitian_matrices_are_read_from_one_triangle) {
  check_hermitian("keep");
  check_hermitian("discard");
}

/* zcgesv and zcposv -------------------------------------------------------- */

static void mixed(const routines *r, pair *p, const char *uplo) {
  const size_t n = (size_t)p->n;
  z *work = malloc(n * sizeof *work);
  float _Complex *swork = malloc(n * (n + 1) * sizeof *swork);
  double *rwork = malloc(n * sizeof *rwork);
  memset(p->x, 0, n * sizeof(z));
  if (uplo == NULL)
    r->cgesv(&p->n, &one, p->f, &p->n, p->ipiv, p->b, &p->n, p->x, &p->n, work,
             swork, rwork, &p->iter, &p->info);
  else
    r->cposv(uplo, &p->n, &one, p->f, &p->n, p->b, &p->n, p->x, &p->n, work,
             swork, rwork, &p->iter, &p->info, 1);
  free(work);
  free(swork);
  free(rwork);
}

TEST(lapack, zcgesv_and_zcposv_leave_a_alone_where_refinement_succeeds) {
  routines r = routines_open("keep");
  REQUIRE(r.cgesv != NULL);
  for (const char *uplo = "NUL"; *uplo; uplo++) {
    pair p = make(*uplo == 'N' ? CS_UNIFORM : CS_DEFINITE, 80, 5);
    if (*uplo != 'N')
      spoil(&p, *uplo);
    ct_note("%c", *uplo);
    mixed(&r, &p, *uplo == 'N' ? NULL : uplo);
    CHECK_EQ_INT(p.info, 0);
    CHECK_GE(p.iter, 0);
    CHECK_LE(error_of(&p, 'N', p.x), SUP_LIMIT);
    CHECK_MEM_EQ(p.f, p.f_real, bytes(&p));
    release(&p);
  }
  drop_in_close(&r.d);
}

TEST(lapack, zcgesv_falls_back_to_lapacks_factors) {
  routines r = routines_open("keep");
  REQUIRE(r.cgesv != NULL);
  pair p = make(CS_UNIFORM, 50, 5);
  p.a[7] = 1e300; /* too large for single precision */
  memset(p.a + 30 * 50, 0, 50 * sizeof(z));
  reset(&p);
  mixed(&r, &p, NULL);
  CHECK_LT(p.iter, 0);
  CHECK_EQ_INT(p.info, 31);
  release(&p);
  drop_in_close(&r.d);
}

/* One entry of b has NaN in a part of it, or a modulus beyond double, above and
   below the crossover. */
TEST(lapack, complex_entries_not_finite_are_never_reported_as_converged) {
  const z bad[] = {CMPLX(NAN, 1.0), CMPLX(1.0, NAN), CMPLX(1.5e308, -1.5e308)};
  for (int k = 0; k < 6; k++) {
    routines r = routines_from(k < 3 ? "1" : "1000", "keep");
    REQUIRE(r.cgesv != NULL);
    pair p = make(CS_DIAGONAL, 50, 5);
    for (int64_t i = 0; i < 50; i++)
      p.a[i * 51] = 1.0;
    p.b[9] = bad[k % 3];
    reset(&p);
    mixed(&r, &p, NULL);
    CHECK_LT(p.iter, 0);
    release(&p);
    drop_in_close(&r.d);
  }
}

/* One complex matrix of order 220 takes 774 kB. */
TEST(lapack, kept_complex_matrices_stay_within_their_memory) {
  setenv("HONE_LAPACK_KEPT_MIB", "1", 1);
  routines r = routines_open("auto");
  REQUIRE(r.getrf != NULL);
  pair p[2] = {make(CS_UNIFORM, 220, 1), make(CS_UNIFORM, 220, 2)};
  for (int k = 0; k < 2; k++)
    r.getrf(&p[k].n, &p[k].n, p[k].f, &p[k].n, p[k].ipiv, &p[k].info);
  for (int k = 0; k < 2; k++) {
    r.getrs("N", &p[k].n, &one, p[k].f, &p[k].n, p[k].ipiv, p[k].x, &p[k].n,
            &p[k].info, 1);
    zgetrs_("N", &p[k].n, &one, p[k].f, &p[k].n, p[k].ipiv, p[k].x_real,
            &p[k].n, &p[k].info, 1);
    CHECK_EQ_INT(memcmp(p[k].x, p[k].x_real, 220 * sizeof(z)) == 0, k == 0);
    release(&p[k]);
  }
  drop_in_close(&r.d);
  unsetenv("HONE_LAPACK_KEPT_MIB");
}

TEST(lapack, complex_row_major_matrices_are_turned_without_conjugation) {
  routines r = routines_open("auto");
  int (*gesv)(int, int, int, z *, int, int *, z *, int);
  int (*posv)(int, char, int, int, z *, int, z *, int);
  *(void **)&gesv = dlsym(r.d.library, "LAPACKE_zgesv");
  *(void **)&posv = dlsym(r.d.library, "LAPACKE_zposv");
  REQUIRE(gesv && posv);
  pair p = make(CS_UNIFORM, 45, 5);
  CHECK_EQ_INT(gesv(101, p.n, 1, p.f, p.n, p.ipiv, p.x, 1), 0);
  CHECK_LE(error_of(&p, 'T', p.x), SUP_LIMIT); /* A by rows is its transpose */
  reset(&p);
  p.f[45 * 45 - 1] = CMPLX(0.0, NAN);
  CHECK_EQ_INT(gesv(101, p.n, 1, p.f, p.n, p.ipiv, p.x, 1), -4);
  release(&p);
  p = make(CS_DEFINITE, 45, 5);
  spoil(&p, 'U'); /* its upper triangle is the lower one by rows */
  for (int64_t i = 0; i < 45; i++)
    p.f[i * 46] = creal(p.f[i * 46]);
  CHECK_EQ_INT(posv(101, 'L', p.n, 1, p.f, p.n, p.x, 1), 0);
  CHECK_LE(error_of(&p, 'T', p.x), SUP_LIMIT);
  release(&p);
  drop_in_close(&r.d);
}
