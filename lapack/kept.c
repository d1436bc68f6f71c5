/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps copies of matrices that the caller has had factored, so that a later
   dgetrs_ can refine. LAPACK never says that factors are no longer needed, and
   callers copy, move and overwrite them. Factors given to dgetrs_ are therefore
   recognised by a hash of all their entries, not by their address. When the
   copies take too much memory, the least recently used are freed first.

   Two matrices that differ by less than rounding errors may have the same
   factors. An entry without a copy says that these factors are of more than one
   matrix; x is then not refined. */
#include "lapack/dropin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct hash {
  uint64_t low, high;
} hash;

struct hone_lapack_kept {
  int64_t n;
  int parts, users;
  hone_lapack_kind kind;
  char uplo;
  bool listed;
  hash hash; /* of the factors */
  void *a;   /* NULL: more than one matrix has these factors */
  int64_t bytes;
  struct hone_lapack_kept *next;
};

/* The list has the most recently used copy first. */
static struct {
  pthread_mutex_t lock;
  hone_lapack_kept *first;
  int64_t bytes;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Hashes of factors ------------------------------------------------------- */

enum { LANES = 8 };
static const uint64_t FACTOR = 0x9e3779b97f4a7c15u; /* odd */

/* Adds count numbers to the hash. Every step is a bijection of the lane, so
   that factors which differ in a single word always have different lanes. */
static void add_to_hash(uint64_t lane[LANES], const double *v, int64_t count) {
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

static uint64_t pivot(const hone_lapack_factors *f, int64_t j) {
  return hone_lapack_wide(f->at.interface)
             ? (uint64_t)((const int64_t *)f->ipiv)[j]
             : (uint64_t)((const int32_t *)f->ipiv)[j];
}

static hash hash_of(const hone_lapack_factors *f) {
  uint64_t lane[LANES];
  hash h = {(uint64_t)f->n, (uint64_t)f->uplo + ((uint64_t)f->parts << 8) +
                                ((uint64_t)f->kind << 16)};
  const double *a = f->a;
  for (int k = 0; k < LANES; k++)
    lane[k] = (uint64_t)(k + 1) * FACTOR;
  for (int64_t j = 0; j < f->n; j++) {
    const int64_t from = f->uplo == 'L' ? j : 0;
    const int64_t to = f->uplo == 'U' ? j + 1 : f->n;
    add_to_hash(lane, a + (j * f->lda + from) * f->parts,
                (to - from) * f->parts);
  }
  for (int64_t j = 0; j < f->n && hone_lapack_pivots(f); j++)
    lane[1] = (lane[1] ^ pivot(f, j)) * FACTOR;
  for (int k = 0; k < LANES; k++) {
    h.low = (h.low ^ lane[k]) * FACTOR;
    h.high = (h.high + (lane[k] >> 32)) * (FACTOR + 2);
    h.high ^= h.high >> 31;
  }
  return h;
}

/* The list of copies ------------------------------------------------------ */

static void lock_store(void) { pthread_mutex_lock(&store.lock); }
static void unlock_store(void) { pthread_mutex_unlock(&store.lock); }

/* The child of a fork must not inherit a locked mutex: the thread that would
   unlock it does not exist there. */
__attribute__((constructor)) static void unlock_in_forks(void) {
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

/* Removes a copy from the list without freeing it. */
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

/* Drops copies until a new one of this size fits. */
static void make_room(int64_t bytes) {
  const int64_t most = hone_lapack_settings()->kept_bytes;
  while (store.first != NULL && store.bytes > most - bytes) {
    hone_lapack_kept **last = &store.first;
    while ((*last)->next != NULL)
      last = &(*last)->next;
    drop(last);
  }
}

static int64_t bytes_of(const hone_lapack_factors *f) {
  return f->n * f->n * f->parts * (int64_t)sizeof(double);
}

bool hone_lapack_may_keep(const hone_lapack_factors *f) {
  return bytes_of(f) <= hone_lapack_settings()->kept_bytes;
}

/* Finds a copy; if h is NULL, any one of this order and kind. */
static hone_lapack_kept *search(int64_t n, int parts, hone_lapack_kind kind,
                                char uplo, const hash *h) {
  for (hone_lapack_kept *kept = store.first; kept != NULL; kept = kept->next)
    if (kept->n == n && kept->parts == parts && kept->kind == kind &&
        kept->uplo == uplo &&
        (h == NULL || (kept->hash.low == h->low && kept->hash.high == h->high)))
      return kept;
  return NULL;
}

/* Frees the new copy if an entry says that another matrix has the same factors.
   An entry of these factors leaves the list. */
static void join(hone_lapack_kept *kept) {
  hone_lapack_kept *same =
      search(kept->n, kept->parts, kept->kind, kept->uplo, &kept->hash);
  if (same == NULL)
    return;
  if (same->a == NULL || memcmp(same->a, kept->a, (size_t)kept->bytes) != 0) {
    free(kept->a);
    kept->a = NULL;
    kept->bytes = 0;
  }
  drop(link_to(same));
}

void hone_lapack_keep(const hone_lapack_factors *f, void *a) {
  hone_lapack_kept *kept = malloc(sizeof *kept);
  if (kept == NULL) {
    free(a);
    return;
  }
  *kept = (hone_lapack_kept){.n = f->n,
                             .parts = f->parts,
                             .kind = f->kind,
                             .uplo = f->uplo,
                             .hash = hash_of(f),
                             .a = a,
                             .bytes = bytes_of(f)};
  lock_store();
  join(kept);
  make_room(kept->bytes);
  put_in(kept);
  unlock_store();
}

hone_lapack_kept *hone_lapack_find(const hone_lapack_factors *f,
                                   const void **a) {
  lock_store();
  bool any = search(f->n, f->parts, f->kind, f->uplo, NULL) != NULL;
  unlock_store();
  if (!any)
    return NULL;
  const hash h = hash_of(f);
  lock_store();
  hone_lapack_kept *kept = search(f->n, f->parts, f->kind, f->uplo, &h);
  if (kept != NULL && kept->a == NULL)
    kept = NULL;
  if (kept != NULL) {
    put_in(take_out(link_to(kept))); /* moves it to the front */
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

/* Copies that other threads are using are freed when these release them. */
__attribute__((destructor)) static void drop_all(void) {
  lock_store();
  while (store.first != NULL)
    drop(&store.first);
  unlock_store();
}
