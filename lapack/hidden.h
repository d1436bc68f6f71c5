/* SPDX-License-Identifier: BSD-3-Clause */
/* Factors that the caller does not read. dgetrf_ and dpotrf_ may then have A
   factored in single precision, by the library or as a copy by the caller's
   LAPACK, and hide the factors here. In the caller's array A stays, except for
   its diagonal, which becomes a tag: NaN, of which the bits of the first tell
   under which number the factors are found, and those of the others depend on
   the diagonal. Tags survive copying. Whoever reads L and U all the same finds
   NaN.

   dgetrs_, dgecon_ and dgetri_ know the tag (hidden.c). They check that all
   entries are those that dgetrf_ left, by a hash; if not, or if the factors are
   not known, their results are NaN. Whatever single precision does not suffice
   for is done with LAPACK's own factors of A, whose diagonal is kept here.

   hidden_store.c keeps the factors. If they take too much memory, those of the
   least recently used matrices are freed; their diagonals stay. */
#ifndef HONE_LAPACK_HIDDEN_H
#define HONE_LAPACK_HIDDEN_H

#include "lapack/dropin.h"

#include <pthread.h>

/* A matrix that has a tag. Constant while it is in use, but for
   the fields below the line. */
typedef struct hone_lapack_hidden {
  uint64_t tag;          /* the bits of the first number on the diagonal */
  hone_lapack_factors f; /* of the call of dgetrf_ or dpotrf_ */
  void *diagonal;        /* of A */
  hone_lapack_hash hash; /* of A with the tags */
  double scale;          /* the factors are those of scale A */
  void *single;          /* of ssytrf_ or spotrf_, ld n; or NULL */
  void *exchanges;       /* their ipiv, integers of the caller's width */
  hone_single_factors *library; /* made by the library; or NULL */
  hone_single_account account;  /* what is known of them */
  void (*destroy)(hone_single_factors **factors);
  int threads;  /* that the caller's LAPACK uses */
  bool at_once; /* see hone_lapack_hides */
  /* ---- these change, under the store's lock */
  void *in_double;        /* LAPACK's own factors of A, ld n; or NULL */
  void *exchanges_double; /* their ipiv */
  int64_t columns;        /* right-hand sides that were solved */
  int users;
  bool listed, overwritten; /* the array of the call has other contents now */
  pthread_t thread;
  struct hone_lapack_hidden *next;
} hone_lapack_hidden;

/* The store --------------------------------------------------------------- */

/* Returns new memory for a matrix with these factors, with a tag of its own and
   not in the store, or NULL: there is no memory, or not so much is allowed. If
   at_once is true it takes the place, with the memory, of what this thread's
   last call that was so has left. */
hone_lapack_hidden *hone_lapack_hidden_new(const hone_lapack_factors *f,
                                           bool at_once);
/* Frees what was not put into the store. */
void hone_lapack_hidden_free(hone_lapack_hidden *hidden);
/* Puts it into the store, which may free others, and owns it from now on.
   Returns false, and puts nothing in, if so much memory is not allowed. */
bool hone_lapack_hidden_put(hone_lapack_hidden *hidden);

typedef enum hone_lapack_tag {
  HONE_LAPACK_UNTAGGED, /* an ordinary array */
  HONE_LAPACK_KNOWN,
  HONE_LAPACK_UNKNOWN /* a tag, but not one of this store, n, uplo or type */
} hone_lapack_tag;
/* A tag for a matrix whose factors nobody will want: where they are discarded.
 */
extern const uint64_t hone_lapack_discarded;
/* Looks for the factors of f->a. *hidden is to be released if they are known.
   Three numbers of a are read where there is no tag. */
hone_lapack_tag hone_lapack_hidden_find(const hone_lapack_factors *f,
                                        hone_lapack_hidden **hidden);
void hone_lapack_hidden_release(hone_lapack_hidden *hidden);
/* Gives it LAPACK's own factors, which the store owns from now on; frees them
   if it has some already. */
void hone_lapack_hidden_add(hone_lapack_hidden *hidden, void *in_double,
                            void *exchanges);
/* Notes that an array is about to get other contents. */
void hone_lapack_hidden_overwritten(const hone_lapack_factors *f);
/* Forgets the matrix with this tag, which no array has. */
void hone_lapack_hidden_drop(uint64_t tag);
/* Tells whether it has LAPACK's own factors, and where they are. */
bool hone_lapack_hidden_double(hone_lapack_hidden *hidden, void **in_double,
                               void **exchanges);
/* Counts right-hand sides; returns how many were counted before. */
int64_t hone_lapack_hidden_count(hone_lapack_hidden *hidden, int64_t columns);

/* Factors, solves --------------------------------------------------------- */

/* Factors A in single precision and hides the factors, if the caller consents
   and it is to be expected that they suffice. Returns false, with A, ipiv and
   info unchanged, otherwise. */
bool hone_lapack_hide(const char *name, const hone_lapack_factors *f,
                      void *info);
/* Does as hone_lapack_hide and solves with the factors, for a call of dsysv_
   whose caller discards factors or, if may_hide is true, consents. Returns
   false, with A, b and info unchanged, if the real dsysv_ must solve it; *why
   then begins the line in the log. */
bool hone_lapack_hidden_driver(const hone_lapack_call *call, bool may_hide,
                               const char **why, void *info);
/* Solves with hidden factors. Returns false if a has no tag. */
bool hone_lapack_hidden_solve(const hone_lapack_call *call, char trans,
                              void *info);
/* Solves with the factors that hone_lapack_hide has just hidden, if they
   suffice. Returns false, with A as it was and b unchanged, if they do not. */
bool hone_lapack_hidden_try(const hone_lapack_call *call, void *info);
/* Computes rcond with hidden factors, as dgecon_ and dpocon_ do. Returns false
   if a has no tag. norm is '1' or 'I'. */
bool hone_lapack_hidden_rcond(const hone_lapack_factors *f, char norm,
                              double anorm, double *rcond, void *info);
/* Replaces a tag by LAPACK's own factors, in place, for dgetri_ and dpotri_,
   and ipiv by *exchanges, to be freed. HONE_LAPACK_UNKNOWN: they cannot be had,
   and the call is done: A is NaN, or *info says that it is singular. */
hone_lapack_tag hone_lapack_hidden_invert(const hone_lapack_factors *f,
                                          void **exchanges, void *info);
/* Factors A in single precision. Returns 0, or another number if the factors
   are of no use: INFO, or -1 if A is not finite or zero, or without memory. */
int64_t hone_lapack_hidden_factor(hone_lapack_hidden *hidden);
/* Computes rcond of A, whose norm is said to be 1, with factors in single
   precision; returns INFO, which is not 0 without memory either. */
int64_t hone_lapack_hidden_rcond_single(const hone_lapack_hidden *hidden,
                                        char norm, double *rcond);
/* v = inv(op(A)) v in single precision; returns INFO, which is not 0 without
   memory either. */
int64_t hone_lapack_hidden_backsolve(const hone_lapack_hidden *hidden,
                                     char trans, int64_t nrhs, hone_entry *v,
                                     int64_t ldv);

/* Does as hone_lapack_residual with a matrix that has a tag. */
void hone_lapack_hidden_residual(const hone_lapack_hidden *hidden,
                                 const hone_lapack_group *g, const bool *open,
                                 double *omega);
/* Computes the hash of an array in which f are hidden. */
void hone_lapack_hidden_hash(const hone_lapack_hidden *hidden,
                             const hone_lapack_factors *f,
                             hone_lapack_hash *hash);

/* Tells whether there are factors in single precision. */
static inline bool hone_lapack_hidden_has(const hone_lapack_hidden *hidden) {
  return hidden->library != NULL || hidden->single != NULL;
}

/* Tells whether A, which was not scaled, has entries whose squares are in
   range; entries far below the others do not count. */
static inline bool hone_lapack_hidden_quick(const hone_lapack_hidden *hidden) {
  return hidden != NULL && hidden->scale >= 1.0 && hidden->scale <= 1.0;
}

/* Notes, for this thread, that its caller asked how much work space dgetri_
   takes: it will invert, and the factors of its next dgetrf_ are not hidden. */
void hone_lapack_will_invert(const hone_lapack_factors *f);

#endif
