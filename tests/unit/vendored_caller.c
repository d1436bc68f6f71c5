/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls routines of LAPACK from a module of its own, as extension modules of
   Python do, under the names of HONE_INTERFACE. */
#include "tests/unit/vendored_caller.h"

#include "base/entry.h"
#include "lapack/interfaces.h"

#include <stddef.h>

typedef HONE_PASTE(HONE_INTEGER_, HONE_INTERFACE, ) integer;

#ifdef HONE_COMPLEX
#define SCALAR(name) z##name
#else
#define SCALAR(name) d##name
#endif
#define FORTRAN(name) HONE_FORTRAN_NAME(HONE_INTERFACE, SCALAR(name))
#define LAPACKE(name)                                                          \
  HONE_C_NAME(HONE_INTERFACE, HONE_PASTE(LAPACKE_, SCALAR(name), ))
#define TABLE(name) HONE_PASTE(vendored_caller_, HONE_INTERFACE, name)

void FORTRAN(gesv)(const integer *n, const integer *nrhs, hone_entry *a,
                   const integer *lda, integer *ipiv, hone_entry *b,
                   const integer *ldb, integer *info);
void FORTRAN(getrf)(const integer *m, const integer *n, hone_entry *a,
                    const integer *lda, integer *ipiv, integer *info);
void FORTRAN(getrs)(const char *trans, const integer *n, const integer *nrhs,
                    const hone_entry *a, const integer *lda,
                    const integer *ipiv, hone_entry *b, const integer *ldb,
                    integer *info, size_t length);
void FORTRAN(potrf)(const char *uplo, const integer *n, hone_entry *a,
                    const integer *lda, integer *info, size_t length);
void FORTRAN(potrs)(const char *uplo, const integer *n, const integer *nrhs,
                    const hone_entry *a, const integer *lda, hone_entry *b,
                    const integer *ldb, integer *info, size_t length);
integer LAPACKE(gesv)(int layout, integer n, integer nrhs, hone_entry *a,
                      integer lda, integer *ipiv, hone_entry *b, integer ldb);

static void lapacke_gesv(vendored_system *s) {
  s->info = LAPACKE(gesv)(s->layout, (integer)s->n, (integer)s->nrhs, s->a,
                          (integer)s->ld, s->ipiv, s->b, (integer)s->ld);
}

static void gesv(vendored_system *s) {
  const integer n = (integer)s->n, nrhs = (integer)s->nrhs;
  const integer ld = (integer)s->ld;
  integer info = -77;
  FORTRAN(gesv)(&n, &nrhs, s->a, &ld, s->ipiv, s->b, &ld, &info);
  s->info = info;
}

static void getrf(vendored_system *s) {
  const integer n = (integer)s->n, ld = (integer)s->ld;
  integer info = -77;
  FORTRAN(getrf)(&n, &n, s->a, &ld, s->ipiv, &info);
  s->info = info;
}

static void getrs(vendored_system *s) {
  const integer n = (integer)s->n, nrhs = (integer)s->nrhs;
  const integer ld = (integer)s->ld;
  integer info = -77;
  FORTRAN(getrs)
  (&s->letter, &n, &nrhs, s->a, &ld, s->ipiv, s->b, &ld, &info, 1);
  s->info = info;
}

static void potrf(vendored_system *s) {
  const integer n = (integer)s->n, ld = (integer)s->ld;
  integer info = -77;
  FORTRAN(potrf)(&s->letter, &n, s->a, &ld, &info, 1);
  s->info = info;
}

static void potrs(vendored_system *s) {
  const integer n = (integer)s->n, nrhs = (integer)s->nrhs;
  const integer ld = (integer)s->ld;
  integer info = -77;
  FORTRAN(potrs)(&s->letter, &n, &nrhs, s->a, &ld, s->b, &ld, &info, 1);
  s->info = info;
}

#ifdef HONE_COMPLEX
#define NAME TABLE(_z)
#else
#define NAME TABLE(_d)
#endif

extern const vendored_caller NAME;
__attribute__((visibility("default")))
const vendored_caller NAME = {.integer_bytes = sizeof(integer),
                              .gesv = gesv,
                              .getrf = getrf,
                              .getrs = getrs,
                              .potrf = potrf,
                              .potrs = potrs,
                              .lapacke_gesv = lapacke_gesv};
