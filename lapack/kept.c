/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of matrices that the caller has had factored, so that a later
   dgetrs_ can refine. LAPACK never says that factors are no longer needed, and
   callers copy, move and overwrite them: what is given to dgetrs_ is known by
   its contents alone, every entry of them, wherever it lies. The least recently
   used go first when the copies together become too many. */
#include "lapack/dropin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct mark {
  uint64_t low, high;
} mark;

struct hone_lapack_kept {
  int n, users;
  char uplo;
  bool listed;
  mark of; /* the factors */
  double *a;
  int64_t bytes;
  struct hone_lapack_kept *next;
};

/* The most recently used first. */
static struct {
  pthread_mutex_t lock;
  hone_lapack_kept *first;
  int64_t bytes;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Contents ---------------------------------------------------------------- */

enum { LANES = 8 };
static const uint64_t FACTOR = 0x9e3779b97f4a7c15u; /* odd */

/* Every step maps the lane one to one, so that a single word that differs
   always shows. */
static void stir(uint64_t lane[LANES], const double *v, int64_t count) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    uint64_t words[LANES];
    memcpy(words, v + i, sizeof words);
    for (int k = 0; k < LANES; k++) {
      lane[k] = (lane[k] ^ words[k]) * FACTOR;
      lane[k] ^= lane[k] >> 29;
    }
  }
  for (; i < count; i++) {
    uint64_t word;
    memcpy(&word, v + i, sizeof word);
    lane[0] = (lane[0] ^ word) * FACTOR;
    lane[0] ^= lane[0] >> 29;
  }
}

static mark mark_of(const hone_lapack_factors *f) {
  uint64_t lane[LANES];
  mark m = {(uint64_t)f->n, (uint64_t)f->uplo};
  for (int k = 0; k < LANES; k++)
    lane[k] = (uint64_t)(k + 1) * FACTOR;
  for (int64_t j = 0; j < f->n; j++) {
    const int64_t from = f->uplo == 'L' ? j : 0;
    const int64_t to = f->uplo == 'U' ? j + 1 : f->n;
    stir(lane, f->a + j * f->lda + from, to - from);
  }
  for (int64_t j = 0; j < f->n && f->uplo == 0; j++)
    lane[1] = (lane[1] ^ (uint64_t)f->ipiv[j]) * FACTOR;
  for (int k = 0; k < LANES; k++) {
    m.low = (m.low ^ lane[k]) * FACTOR;
    m.high = (m.high + (lane[k] >> 32)) * (FACTOR + 2);
    m.high ^= m.high >> 31;
  }
  return m;
}

/* Store
 * ----------------------------------------------------------------------*/

static void lock_store(void) { pthread_mutex_lock(&store.lock); }
static void unlock_store(void) { pthread_mutex_unlock(&store.lock); }

/* A child of fork must not inherit a lock that nobody there will give back. */
__attribute__((constructor)) static void mind_forks(void) {
  pthread_atfork(lock_store, unlock_store, unlock_store);
}

static void destroy(hone_lapack_kept *kept) {
  free(kept->a);
  free(kept);
}

static hone_lapack_kept **link_to(const hone_lapack_kept *kept) {
  hone_lapack_kept **at = &store.first;
  while (*at != NULL && *at != kept)
    at = &(*at)->next;
  return at;
}

/* Out of the list, still there. */
static hone_lapack_kept *take_out(hone_lapack_kept **at) {
  hone_lapack_kept *kept = *at;
  *at = kept->next;
  store.bytes -= kept->bytes;
  kept->listed = false;
  return kept;
}

static void drop(hone_lapack_kept **at) {
  hone_lapack_kept *kept = take_out(at);
  if (kept->users == 0)
    destroy(kept);
}

static void put_in(hone_lapack_kept *kept) {
  kept->next = store.first;
  store.first = kept;
  store.bytes += kept->bytes;
  kept->listed = true;
}

/* Until so many bytes more have room. */
static void make_room(int64_t bytes) {
  const int64_t most = hone_lapack_settings()->kept_bytes;
  while (store.first != NULL && store.bytes > most - bytes) {
    hone_lapack_kept **last = &store.first;
    while ((*last)->next != NULL)
      last = &(*last)->next;
    drop(last);
  }
}

static int64_t bytes_of(int n) {
  return (int64_t)n * n * (int64_t)sizeof(double);
}

bool hone_lapack_may_keep(int n) {
  return bytes_of(n) <= hone_lapack_settings()->kept_bytes;
}

static hone_lapack_kept *search(int n, char uplo, const mark *of) {
  for (hone_lapack_kept *kept = store.first; kept != NULL; kept = kept->next)
    if (kept->n == n && kept->uplo == uplo &&
        (of == NULL || (kept->of.low == of->low && kept->of.high == of->high)))
      return kept;
  return NULL;
}

void hone_lapack_keep(const hone_lapack_factors *f, double *a) {
  hone_lapack_kept *kept = malloc(sizeof *kept);
  if (kept == NULL) {
    free(a);
    return;
  }
  *kept = (hone_lapack_kept){.n = f->n,
                             .uplo = f->uplo,
                             .of = mark_of(f),
                             .a = a,
                             .bytes = bytes_of(f->n)};
  lock_store();
  hone_lapack_kept *same = search(kept->n, kept->uplo, &kept->of);
  if (same != NULL)
    drop(link_to(same));
  make_room(kept->bytes);
  put_in(kept);
  unlock_store();
}

hone_lapack_kept *hone_lapack_find(const hone_lapack_factors *f,
                                   const double **a) {
  lock_store();
  bool any = search(f->n, f->uplo, NULL) != NULL;
  unlock_store();
  if (!any)
    return NULL;
  const mark of = mark_of(f);
  lock_store();
  hone_lapack_kept *kept = search(f->n, f->uplo, &of);
  if (kept != NULL) {
    put_in(take_out(link_to(kept))); /* first again */
    kept->users++;
    *a = kept->a;
  }
  unlock_store();
  return kept;
}

void hone_lapack_release(hone_lapack_kept *kept) {
  lock_store();
  if (--kept->users == 0 && !kept->listed)
    destroy(kept);
  unlock_store();
}

/* Matrices that other threads are using are freed when these release them. */
__attribute__((destructor)) static void forget(void) {
  lock_store();
  while (store.first != NULL)
    drop(&store.first);
  unlock_store();
}
