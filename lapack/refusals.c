/* SPDX-License-Identifier: BSD-3-Clause */
/* Remembers callers whose matrices single precision refuses again and again, so
   that LAPACK's double follows at once. A caller is a module with a routine and
   an order: whoever solves one such system mostly solves others like it. After
   PATIENCE refusals in a row, calls are spared the attempt, then it is made
   again; each further refusal doubles the number of calls spared. One success,
   and every call is tried.

   The table holds one caller in each slot; another with the same slot takes it
   over. It needs no lock, and so is whole in the child of a fork. */
#include "lapack/dropin.h"

#include <stdatomic.h>

enum {
  SLOTS = 256,
  PATIENCE = 3, /* refusals in a row before calls are spared */
  SPARED = 8,   /* calls that are spared first */
  MOST_SPARED = 64
};

/* A slot is one word: the caller's key, its refusals in a row and the calls
   that are still to be spared, in 8 bits each. */
static atomic_ullong slots[SLOTS];

static unsigned long long pack(unsigned long long key, unsigned refusals,
                               unsigned spared) {
  return key << 16 | (unsigned long long)refusals << 8 | spared;
}

/* Returns 48 bits, which are not 0. */
static unsigned long long key_of(const hone_lapack_factors *f) {
  uint64_t key = f->by_site ? (uintptr_t)f->at.address
                            : (uintptr_t)hone_lapack_module(f->at);
  key = (key ^ (uint64_t)f->n) * 0x9e3779b97f4a7c15u;
  key = (key ^ key >> 29 ^ ((uint64_t)f->uplo << 8) ^ (uint64_t)f->parts) *
        0x9e3779b97f4a7c15u;
  return key >> 16 | 1;
}

static atomic_ullong *slot_of(unsigned long long key) {
  return &slots[(key >> 1) % SLOTS];
}

bool hone_lapack_spares(const hone_lapack_factors *f) {
  const unsigned long long key = key_of(f);
  unsigned long long was = atomic_load(slot_of(key));
  while (was >> 16 == key && (was & 0xff) > 0)
    if (atomic_compare_exchange_weak(slot_of(key), &was, was - 1))
      return true;
  return false;
}

void hone_lapack_tried(const hone_lapack_factors *f, bool solved) {
  const unsigned long long key = key_of(f);
  const unsigned long long was = atomic_load(slot_of(key));
  unsigned refusals = was >> 16 == key ? (unsigned)(was >> 8 & 0xff) : 0;
  unsigned spared = SPARED;
  refusals = refusals < 0xff ? refusals + 1 : refusals;
  for (unsigned k = PATIENCE; k < refusals && spared < MOST_SPARED; k++)
    spared *= 2;
  if (!solved)
    atomic_store(slot_of(key),
                 pack(key, refusals, refusals < PATIENCE ? 0 : spared));
  else if (was >> 16 == key)
    atomic_store(slot_of(key), 0);
}

void hone_lapack_regret(const hone_lapack_factors *f) {
  const unsigned long long key = key_of(f);
  atomic_store(slot_of(key), pack(key, 0xff, MOST_SPARED));
}
