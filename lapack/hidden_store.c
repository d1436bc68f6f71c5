/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the factors that hidden.h describes. The list has the most recently
   used ones first. A matrix whose factors were freed keeps its diagonal, since
   its tag may be seen again. It is forgotten only if that memory is needed too
   and its array was seen to be overwritten. */
#include "lapack/hidden.h"

#include "base/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
  pthread_mutex_t lock;
  hone_lapack_hidden *first;
  int64_t bytes;
  uint32_t last; /* number that was given out last */
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_store(void) { pthread_mutex_lock(&store.lock); }
static void unlock_store(void) { pthread_mutex_unlock(&store.lock); }

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
  const uint64_t factor = 0x9e3779b97f4a7c15u; /* odd */
  const uint64_t weight = 2 * (uint64_t)column * factor + 1;
  const uint64_t key = (uint64_t)(from + 1) * factor;
  uint64_t sum = 0, product = 0;
  for (int64_t i = 0; i < count; i++) {
    uint64_t word;
    memcpy(&word, v + i, sizeof word);
    const uint64_t mixed = word + key + (uint64_t)i * factor;
    sum += word;
    product += (mixed & 0xffffffffu) * (mixed >> 32);
  }
  hash->sum += weight * sum;
  hash->product += weight * product;
}

/* Bytes that are counted -------------------------------------------------- */

static int64_t bytes_of(const hone_lapack_hidden *h) {
  const int64_t n = h->f.n, number = h->f.parts * (int64_t)sizeof(double);
  return n * number + (int64_t)sizeof *h +
         (h->single ? n * n * number / 2 : 0) +
         (h->lu ? h->lu_account.bytes : 0) +
         (h->in_double ? n * n * number : 0);
}

static void free_lu(hone_lapack_hidden *h) {
  if (h->lu != NULL)
    h->lu_destroy(&h->lu);
}

static void free_factors(hone_lapack_hidden *h) {
  free_lu(h);
  free(h->single);
  free(h->exchanges);
  free(h->in_double);
  free(h->exchanges_double);
  h->single = h->exchanges = h->in_double = h->exchanges_double = NULL;
}

void hone_lapack_hidden_free(hone_lapack_hidden *hidden) {
  if (hidden == NULL)
    return;
  free_factors(hidden);
  free(hidden->diagonal);
  free(hidden);
}

static hone_lapack_hidden *take_out(hone_lapack_hidden **at) {
  hone_lapack_hidden *h = *at;
  *at = h->next;
  store.bytes -= bytes_of(h);
  h->listed = false;
  return h;
}

static void put_in(hone_lapack_hidden *h) {
  h->next = store.first;
  store.first = h;
  store.bytes += bytes_of(h);
  h->listed = true;
}

static void forget(hone_lapack_hidden **at) {
  hone_lapack_hidden *h = take_out(at);
  if (h->users == 0)
    hone_lapack_hidden_free(h);
}

/* Frees the factors of a matrix that is in the list. */
static void empty(hone_lapack_hidden *h) {
  store.bytes -= bytes_of(h);
  free_factors(h);
  store.bytes += bytes_of(h);
}

/* Frees factors, then matrices, until so many bytes fit. Returns false if they
   do not. */
static bool make_room(int64_t bytes) {
  const int64_t most = hone_lapack_settings()->hidden_bytes - bytes;
  while (store.bytes > most) {
    hone_lapack_hidden *last = NULL, **oldest = NULL;
    for (hone_lapack_hidden **at = &store.first; *at; at = &(*at)->next) {
      if ((*at)->users == 0 &&
          (hone_lapack_hidden_has(*at) || (*at)->in_double))
        last = *at;
      if ((*at)->users == 0 && (*at)->overwritten)
        oldest = at;
    }
    if (last != NULL)
      empty(last);
    else if (oldest != NULL)
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
  free_lu(h);
  free(h->in_double);
  free(h->exchanges_double);
  *h = (hone_lapack_hidden){.f = *f,
                            .diagonal = h->diagonal,
                            .single = h->single,
                            .exchanges = h->exchanges};
}

hone_lapack_hidden *hone_lapack_hidden_new(const hone_lapack_factors *f,
                                           bool at_once) {
  const int64_t factors = f->n * f->n * f->parts * (int64_t)sizeof(float);
  lock_store();
  hone_lapack_hidden *h = at_once ? left_over() : NULL;
  const bool fits = make_room(factors + f->n * f->parts * 8);
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

void hone_lapack_hidden_put(hone_lapack_hidden *hidden) {
  lock_store();
  put_in(hidden);
  unlock_store();
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
  if (--hidden->users == 0 && !hidden->listed)
    hone_lapack_hidden_free(hidden);
  unlock_store();
}

void hone_lapack_hidden_add(hone_lapack_hidden *hidden, void *in_double,
                            void *exchanges) {
  lock_store();
  if (hidden->listed && hidden->in_double == NULL) {
    store.bytes -= bytes_of(hidden);
    hidden->in_double = in_double;
    hidden->exchanges_double = exchanges;
    store.bytes += bytes_of(hidden);
    in_double = exchanges = NULL;
    make_room(0);
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

void hone_lapack_hidden_overwritten(const hone_lapack_factors *f) {
  const uintptr_t number = (uintptr_t)f->parts * sizeof(double);
  const uintptr_t from = (uintptr_t)f->a;
  const uintptr_t to = from + (uintptr_t)(f->lda * f->n) * number;
  lock_store();
  for (hone_lapack_hidden *h = store.first; h != NULL; h = h->next) {
    const uintptr_t start = (uintptr_t)h->f.a;
    const uintptr_t end = start + (uintptr_t)(h->f.lda * h->f.n) * number;
    if (!h->overwritten && start < to && from < end) {
      h->overwritten = true;
      if (h->users == 0)
        empty(h);
    }
  }
  unlock_store();
}

/* Matrices that other threads are using are freed when these release them.
   Where the process ends, nothing may be asked of a device any more: the driver
   takes back what lies there. */
__attribute__((destructor)) static void forget_all(void) {
  lock_store();
  for (hone_lapack_hidden **at = &store.first; *at != NULL;)
    if ((*at)->lu != NULL && (*at)->lu_account.device)
      at = &(*at)->next;
    else
      forget(at);
  unlock_store();
}
