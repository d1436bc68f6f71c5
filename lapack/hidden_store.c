/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the factors that hidden.h describes. The list has the most recently
   used ones first. A matrix whose factors were freed keeps its diagonal, since
   its tag may be seen again. It is forgotten only if its array was seen to be
   overwritten, and then if that memory is needed too or 1000 such matrices are
   younger. */
#include "lapack/hidden.h"

#include "base/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Factors that are no longer in the list. They are destroyed when the lock is
   given back: that may take long on a device, whose driver has locks, too. */
typedef struct discarded {
  hone_single_factors *library;
  void (*destroy)(hone_single_factors **factors);
  struct discarded *next;
} discarded;

static struct {
  pthread_mutex_t lock;
  hone_lapack_hidden *first;
  discarded *discarded;
  int64_t bytes, device_bytes;
  uint32_t last; /* number that was given out last */
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_store(void) { pthread_mutex_lock(&store.lock); }

static void unlock_store(void) {
  discarded *d = store.discarded;
  store.discarded = NULL;
  pthread_mutex_unlock(&store.lock);
  while (d != NULL) {
    discarded *next = d->next;
    d->destroy(&d->library);
    free(d);
    d = next;
  }
}

/* The child of a fork must not inherit a locked mutex, nor go on with the
   parent's numbers. */
static void begin_in_child(void) {
  store.last = 0;
  unlock_store();
}

__attribute__((constructor)) static void follow_forks(void) {
  pthread_atfork(lock_store, unlock_store, begin_in_child);
}

/* Tags -------------------------------------------------------------------- */

/* A quiet NaN, which no operation makes from numbers, and a number. */
static const uint64_t MARK = 0x7ffec0de00000000u;
static const uint64_t MARK_BITS = 0xffffffff00000000u;

const uint64_t hone_lapack_discarded = 0x7ffec0de00000000u;

/* Numbers begin differently in each process, because a program may write
   factors to a file. */
static uint64_t new_tag(void) {
  if (store.last == 0)
    store.last = (uint32_t)time(NULL) * 7919u + (uint32_t)getpid() * 104729u;
  store.last +=
      store.last + 1 == 0 ? 2 : 1; /* 0 says that they are discarded */
  return MARK | store.last;
}

/* Hashes ------------------------------------------------------------------ */

HONE_VECTOR void hone_lapack_add_hash(hone_lapack_hash *hash, const double *v,
                                      int64_t from, int64_t count,
                                      int64_t column) {
  const uint64_t factor = 0x9e3779b97f4a7c15u, odd = 0xbf58476d1ce4e5b9u;
  const uint64_t weight = 2 * (uint64_t)column * factor + 1;
  const uint64_t key = (uint64_t)(from + 1) * factor;
  uint64_t sum = 0, product = 0, turned = 0;
  for (int64_t i = 0; i < count; i++) {
    uint64_t word;
    memcpy(&word, v + i, sizeof word);
    const uint64_t mixed = word + key + (uint64_t)i * factor;
    const uint64_t other =
        (word << 19 | word >> 45) + (uint64_t)(from + 1 + i) * odd;
    sum += word;
    product += (mixed & 0xffffffffu) * (mixed >> 32);
    turned += (other & 0xffffffffu) * (other >> 32);
  }
  hash->sum += weight * sum;
  hash->product += weight * product;
  hash->turned += weight * turned;
}

/* Bytes that are counted -------------------------------------------------- */

static int64_t bytes_of(const hone_lapack_hidden *h) {
  const int64_t n = h->f.n, number = h->f.parts * (int64_t)sizeof(double);
  return n * number + (int64_t)sizeof *h +
         (h->single ? n * n * number / 2 : 0) +
         (h->library ? h->account.bytes : 0) +
         (h->in_double ? n * n * number : 0);
}

static int64_t device_bytes_of(const hone_lapack_hidden *h) {
  return h->library ? h->account.device_bytes : 0;
}

static void count(const hone_lapack_hidden *h, int sign) {
  store.bytes += sign * bytes_of(h);
  store.device_bytes += sign * device_bytes_of(h);
}

static void destroy_library(hone_lapack_hidden *h) {
  if (h->library != NULL)
    h->destroy(&h->library);
}

/* Has unlock_store destroy them. */
static void discard_library(hone_lapack_hidden *h) {
  discarded *d = h->library != NULL ? malloc(sizeof *d) : NULL;
  if (d == NULL) { /* there is nothing to destroy, or no memory to wait with */
    destroy_library(h);
    return;
  }
  *d = (discarded){h->library, h->destroy, store.discarded};
  store.discarded = d;
  h->library = NULL;
}

static void free_others(hone_lapack_hidden *h) {
  free(h->single);
  free(h->exchanges);
  free(h->in_double);
  free(h->exchanges_double);
  h->single = h->exchanges = h->in_double = h->exchanges_double = NULL;
}

void hone_lapack_hidden_free(hone_lapack_hidden *hidden) {
  if (hidden == NULL)
    return;
  destroy_library(hidden);
  free_others(hidden);
  free(hidden->diagonal);
  free(hidden);
}

static hone_lapack_hidden *take_out(hone_lapack_hidden **at) {
  hone_lapack_hidden *h = *at;
  *at = h->next;
  count(h, -1);
  h->listed = false;
  return h;
}

static void put_in(hone_lapack_hidden *h) {
  h->next = store.first;
  store.first = h;
  count(h, 1);
  h->listed = true;
}

static void forget(hone_lapack_hidden **at) {
  hone_lapack_hidden *h = take_out(at);
  if (h->users > 0)
    return;
  discard_library(h);
  hone_lapack_hidden_free(h);
}

/* Frees the factors of a matrix that is in the list. */
static void empty(hone_lapack_hidden *h) {
  count(h, -1);
  discard_library(h);
  free_others(h);
  count(h, 1);
}

/* Frees those of the library, and leaves LAPACK's. */
static void give_device_up(hone_lapack_hidden *h) {
  count(h, -1);
  discard_library(h);
  count(h, 1);
}

/* The memory of a matrix that will be put in. */
typedef struct request {
  int64_t bytes, device_bytes;
  int64_t device_most; /* that all may take on a device */
} request;

static bool host_is_full(const request *r) {
  return store.bytes > hone_lapack_settings()->hidden_bytes - r->bytes;
}

/* One matrix may take more. */
static bool device_is_full(const request *r) {
  return r->device_bytes > 0 && store.device_bytes > 0 &&
         store.device_bytes > r->device_most - r->device_bytes;
}

/* Has it factors whose end makes the room that is wanted? */
static bool helps(const hone_lapack_hidden *h, const request *r) {
  return h->users == 0 &&
         (host_is_full(r) ? hone_lapack_hidden_has(h) || h->in_double != NULL
                          : device_bytes_of(h) > 0);
}

/* Frees factors, then matrices, until it fits. Returns false if it does not. */
static bool make_room(const request *r) {
  if (r->bytes > hone_lapack_settings()->hidden_bytes)
    return false; /* even alone: nobody gives way in vain */
  while (host_is_full(r) || device_is_full(r)) {
    hone_lapack_hidden *last = NULL, **oldest = NULL;
    for (hone_lapack_hidden **at = &store.first; *at; at = &(*at)->next) {
      if (helps(*at, r))
        last = *at;
      if ((*at)->users == 0 && (*at)->overwritten)
        oldest = at;
    }
    if (last != NULL && host_is_full(r))
      empty(last);
    else if (last != NULL)
      give_device_up(last);
    else if (oldest != NULL && host_is_full(r))
      forget(oldest);
    else
      return false;
  }
  return true;
}

/* Removes from the list what this thread has left of a matrix whose factors are
   no longer needed, or returns NULL. */
static hone_lapack_hidden *left_over(void) {
  for (hone_lapack_hidden **at = &store.first; *at; at = &(*at)->next)
    if ((*at)->at_once && (*at)->users == 0 &&
        pthread_equal((*at)->thread, pthread_self()))
      return take_out(at);
  return NULL;
}

static hone_lapack_hidden *make(const hone_lapack_factors *f) {
  const size_t n = (size_t)f->n, parts = (size_t)f->parts;
  hone_lapack_hidden *h = calloc(1, sizeof *h);
  if (h == NULL)
    return NULL;
  h->f = *f;
  h->diagonal = malloc(n * parts * sizeof(double));
  h->exchanges = malloc(n * sizeof(int64_t));
  if (h->diagonal != NULL && h->exchanges != NULL)
    return h;
  hone_lapack_hidden_free(h);
  return NULL;
}

/* Empties what was left for another matrix of this order and type. */
static void begin_anew(hone_lapack_hidden *h, const hone_lapack_factors *f) {
  destroy_library(h);
  free(h->in_double);
  free(h->exchanges_double);
  if (f->kind == HONE_LAPACK_LU) { /* its factors are the library's */
    free(h->single);
    h->single = NULL;
  }
  *h = (hone_lapack_hidden){.f = *f,
                            .diagonal = h->diagonal,
                            .single = h->single,
                            .exchanges = h->exchanges};
}

hone_lapack_hidden *hone_lapack_hidden_new(const hone_lapack_factors *f,
                                           bool at_once) {
  const int64_t factors = f->n * f->n * f->parts * (int64_t)sizeof(float);
  const request r = {.bytes = factors + f->n * f->parts * 8};
  lock_store();
  hone_lapack_hidden *h = at_once ? left_over() : NULL;
  const bool fits = make_room(&r);
  const uint64_t tag = new_tag();
  unlock_store();
  if (h != NULL && h->f.n == f->n && h->f.parts == f->parts && h->exchanges) {
    begin_anew(h, f);
  } else {
    hone_lapack_hidden_free(h);
    h = make(f);
  }
  if (h == NULL || !fits) {
    hone_lapack_hidden_free(h);
    return NULL;
  }
  h->tag = tag;
  h->at_once = at_once;
  h->thread = pthread_self();
  return h;
}

bool hone_lapack_hidden_put(hone_lapack_hidden *hidden) {
  const request r = {.bytes = bytes_of(hidden),
                     .device_bytes = device_bytes_of(hidden),
                     .device_most = hidden->account.device_most};
  lock_store();
  const bool fits = make_room(&r);
  if (fits)
    put_in(hidden);
  unlock_store();
  return fits;
}

/* Finding ----------------------------------------------------------------- */

static uint64_t bits(const void *number) {
  uint64_t word;
  memcpy(&word, number, sizeof word);
  return word;
}

/* Is number i of the diagonal one that a tag has? */
static bool marked(const hone_lapack_factors *f, int64_t i) {
  const double *a = f->a;
  return (bits(a + i * (f->lda + 1) * f->parts) & MARK_BITS) == MARK;
}

hone_lapack_tag hone_lapack_hidden_find(const hone_lapack_factors *f,
                                        hone_lapack_hidden **hidden) {
  *hidden = NULL;
  if (f->n < 1 || f->lda < f->n || f->a == NULL)
    return HONE_LAPACK_UNTAGGED;
  const uint64_t tag = bits(f->a);
  if (!marked(f, 0)) /* it may have been overwritten */
    return marked(f, f->n / 2) || marked(f, f->n - 1) ? HONE_LAPACK_UNKNOWN
                                                      : HONE_LAPACK_UNTAGGED;
  lock_store();
  hone_lapack_hidden **at = &store.first;
  while (*at != NULL && (*at)->tag != tag)
    at = &(*at)->next;
  if (*at != NULL && (*at)->f.n == f->n && (*at)->f.parts == f->parts &&
      (*at)->f.kind == f->kind && (*at)->f.uplo == f->uplo) {
    *hidden = take_out(at);
    put_in(*hidden);
    (*hidden)->users++;
    if (f->a != (*hidden)->f.a)
      (*hidden)->overwritten = false; /* there is a copy */
  }
  unlock_store();
  return *hidden ? HONE_LAPACK_KNOWN : HONE_LAPACK_UNKNOWN;
}

void hone_lapack_hidden_release(hone_lapack_hidden *hidden) {
  lock_store();
  const bool unused = --hidden->users == 0 && !hidden->listed;
  unlock_store();
  if (unused)
    hone_lapack_hidden_free(hidden);
}

void hone_lapack_hidden_add(hone_lapack_hidden *hidden, void *in_double,
                            void *exchanges) {
  lock_store();
  if (hidden->listed && hidden->in_double == NULL) {
    const request nothing = {.bytes = 0};
    count(hidden, -1);
    hidden->in_double = in_double;
    hidden->exchanges_double = exchanges;
    if (hidden->users == 1) { /* nobody else solves with the others */
      discard_library(hidden);
      free(hidden->single);
      hidden->single = NULL;
    }
    count(hidden, 1);
    in_double = exchanges = NULL;
    make_room(&nothing);
  }
  unlock_store();
  free(in_double);
  free(exchanges);
}

bool hone_lapack_hidden_double(hone_lapack_hidden *hidden, void **in_double,
                               void **exchanges) {
  lock_store();
  *in_double = hidden->in_double;
  *exchanges = hidden->exchanges_double;
  unlock_store();
  return *in_double != NULL;
}

int64_t hone_lapack_hidden_count(hone_lapack_hidden *hidden, int64_t columns) {
  lock_store();
  const int64_t before = hidden->columns;
  hidden->columns += columns;
  unlock_store();
  return before;
}

/* Where the last entry of a matrix ends. */
static uintptr_t end_of(const hone_lapack_factors *f) {
  const int64_t entries = f->lda * (f->n - 1) + f->n;
  return (uintptr_t)f->a + (uintptr_t)(entries * f->parts) * sizeof(double);
}

/* Have two matrices entries in common? Blocks of one array, whose columns lie
   as far apart, may have their rows beside each other. */
static bool overlap(const hone_lapack_factors *f,
                    const hone_lapack_factors *g) {
  const uintptr_t from = (uintptr_t)f->a, start = (uintptr_t)g->a;
  const uintptr_t entry = (uintptr_t)f->parts * sizeof(double);
  const uintptr_t ld = (uintptr_t)f->lda * entry;
  if (!(start < end_of(f) && from < end_of(g)))
    return false;
  if (f->lda != g->lda || f->parts != g->parts)
    return true;
  const uintptr_t below =
      start >= from ? (start - from) % ld : (ld - (from - start) % ld) % ld;
  return below < (uintptr_t)f->n * entry ||
         (ld - below) % ld < (uintptr_t)g->n * entry;
}

/* Forgets the oldest matrices whose arrays have other contents, but for so many
   whose tags may be seen again in a copy: each call looks at all of them. */
static void forget_old_ones(void) {
  enum { MOST = 1000 };
  int64_t left = 0;
  for (hone_lapack_hidden **at = &store.first; *at != NULL;) {
    const bool old = (*at)->overwritten && (*at)->users == 0;
    left += old;
    if (old && left > MOST)
      forget(at);
    else
      at = &(*at)->next;
  }
}

void hone_lapack_hidden_overwritten(const hone_lapack_factors *f) {
  if (f->n < 1)
    return;
  lock_store();
  for (hone_lapack_hidden *h = store.first; h != NULL; h = h->next) {
    if (!h->overwritten && overlap(f, &h->f)) {
      h->overwritten = true;
      if (h->users == 0)
        empty(h);
    }
  }
  forget_old_ones();
  unlock_store();
}

void hone_lapack_hidden_drop(uint64_t tag) {
  lock_store();
  for (hone_lapack_hidden **at = &store.first; *at != NULL;) {
    if ((*at)->tag == tag)
      forget(at);
    else
      at = &(*at)->next;
  }
  unlock_store();
}

/* Matrices that other threads are using are freed when these release them. */
__attribute__((destructor)) static void forget_all(void) {
  lock_store();
  while (store.first != NULL)
    forget(&store.first);
  unlock_store();
}
