/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals with a matrix that has a tag, and the hash of its array; see
   hidden.h. Where its factors lie on a device, that device has A, too: it then
   computes the residuals of A x = b. An x is accepted by them only if the
   library vouches for them by a projection of A (docs/numerics.md); otherwise,
   and for the transpose and for rows that leave the range of double, a pass
   over the array decides. */
#include "lapack/hidden.h"

/* An x is accepted with 4 units of rounding (hidden_solve.c). The library may
   vouch for an r that is off by a quarter of one, and a den that is by an
   eighth of itself: up to the first limit x is accepted all the same. */
static const double GOOD = 3.25 * HONE_EPS, ACCEPTED = 4.0 * HONE_EPS;

/* Has the device measure column k. Returns false if it does not, or if x would
   be accepted and nobody vouches for that. */
static bool measured_there(const hone_lapack_hidden *h,
                           const hone_lapack_group *g, int64_t k,
                           double *omega) {
  const hone_single_table *table = hone_lapack_single_table();
  const int64_t n = g->n;
  const hone_entry *x = g->x + k * n, *b = g->b + k * g->ldb;
  hone_entry *r = g->r + k * n;
  double *den = g->den + k * n;
  if (table->residual(h->library, x, b, r, den) != HONE_OK ||
      !hone_lapack_in_range(g, k))
    return false;
  *omega = hone_lapack_backward_error(g, k);
  return *omega > ACCEPTED ||
         (*omega <= GOOD && table->vouched(h->library, x, b, r, den));
}

void hone_lapack_hidden_residual(const hone_lapack_hidden *h,
                                 const hone_lapack_group *g, const bool *open,
                                 double *omega) {
  bool rest[HONE_LAPACK_AT_ONCE] = {false};
  double measured[HONE_LAPACK_AT_ONCE];
  bool some = false;
  if (h->library == NULL || !h->account.device || g->trans != 'N') {
    hone_lapack_residual(g, open, omega);
    return;
  }
  if (g->hash != NULL)
    hone_lapack_residual(g, rest, measured);
  for (int64_t k = 0; k < g->columns; k++) {
    omega[k] = HONE_NAN;
    rest[k] = open[k] && !measured_there(h, g, k, &omega[k]);
    some = some || rest[k];
  }
  if (!some)
    return;
  hone_lapack_group again = *g;
  again.hash = NULL;
  hone_lapack_residual(&again, rest, measured);
  for (int64_t k = 0; k < g->columns; k++)
    if (rest[k])
      omega[k] = measured[k];
}

void hone_lapack_hidden_hash(const hone_lapack_hidden *h,
                             const hone_lapack_factors *f,
                             hone_lapack_hash *hash) {
  const bool none = false;
  double ignored;
  const hone_lapack_group g = {.n = f->n,
                               .lda = f->lda,
                               .a = f->a,
                               .diagonal = h->diagonal,
                               .uplo = f->uplo,
                               .symmetric = f->kind == HONE_LAPACK_SYMMETRIC,
                               .hash = hash,
                               .threads = h->threads,
                               .trans = 'N',
                               .columns = 1};
  *hash = (hone_lapack_hash){0, 0, 0};
  hone_lapack_residual(&g, &none, &ignored);
}
