/* SPDX-License-Identifier: BSD-3-Clause */
/* Remembers callers whose matrices single precision refuses again and again, so
   that LAPACK's double follows at once. Whoever solves one system that is
   refused mostly solves others like it, of the same order or not.

   There are two records, of the same kind. One is for an order: of a module, or
   a call, and a routine. After PATIENCE refusals in a row its calls are spared
   the attempt, then it is made again; each further refusal doubles the number
   of calls spared. After one success every call is tried.

   The other is for all orders of that module and routine. It counts orders that
   are new when they are refused; the success of an order that is new, or was
   refused before, ends the count. What known orders do says nothing about new
   ones. While its calls are spared, an order begins as if it had been refused
   PATIENCE times already, unless it has succeeded. So whose orders never come
   twice is spared as well, and an order that would succeed is found after
   SPARED of its own calls, however seldom they come.

   No result is right or wrong by the records: x is verified where it is tried,
   and LAPACK's where it is spared. A table holds SLOTS records; the one that
   came first makes room for another. There is no lock, so that the tables are
   whole in the child of a fork. Threads that write one record at the same time
   may lose a count, or make a second record of the same order, which is not
   found until the first is gone. */
#include "lapack/dropin.h"

#include <stdatomic.h>

enum {
  SLOTS = 256,
  PATIENCE = 3, /* refusals in a row before calls are spared */
  SPARED = 8,   /* calls that are spared first */
  MOST_SPARED = 64
};

/* A record is one word: the key, the refusals in a row and the calls that are
   still to be spared, in 8 bits each; 0 if there is none. */
typedef struct table {
  atomic_ullong slots[SLOTS];
  atomic_uint next; /* to be used, modulo SLOTS */
} table;
static table orders, all_orders;

typedef struct record {
  bool known, succeeded; /* the last attempt did */
  unsigned refusals, spared;
} record;

/* The keys of an order's record and of that for all orders: 48 bits each, which
   are not 0. */
typedef struct keys {
  unsigned long long order, all;
} keys;

static unsigned long long key_of(const hone_lapack_factors *f, uintptr_t caller,
                                 int64_t n) {
  uint64_t key = (caller ^ (uint64_t)n) * 0x9e3779b97f4a7c15u;
  key = (key ^ key >> 29 ^ ((uint64_t)f->kind << 16) ^
         ((uint64_t)f->uplo << 8) ^ (uint64_t)f->parts) *
        0x9e3779b97f4a7c15u;
  return key >> 16 | 1;
}

static keys keys_of(const hone_lapack_factors *f) {
  const uintptr_t caller = f->by_site ? (uintptr_t)f->at.address
                                      : (uintptr_t)hone_lapack_module(f->at);
  return (keys){.order = key_of(f, caller, f->n), .all = key_of(f, caller, 0)};
}

/* Returns the slot with the key, or NULL. Slots are used in turn, so that the
   first empty one is the last to be looked at. */
static atomic_ullong *find(table *t, unsigned long long key) {
  for (int i = 0; i < SLOTS; i++) {
    const unsigned long long word = atomic_load(&t->slots[i]);
    if (word >> 16 == key)
      return &t->slots[i];
    if (word == 0)
      break;
  }
  return NULL;
}

static record look(table *t, unsigned long long key) {
  const atomic_ullong *slot = find(t, key);
  const unsigned long long word = slot ? atomic_load(slot) : 0;
  if (word >> 16 != key)
    return (record){.known = false};
  return (record){.known = true,
                  .succeeded = (word & 0xff00) == 0,
                  .refusals = (unsigned)(word >> 8 & 0xff),
                  .spared = (unsigned)(word & 0xff)};
}

static void put(table *t, unsigned long long key, unsigned refusals,
                unsigned spared) {
  atomic_ullong *slot = find(t, key);
  if (slot == NULL)
    slot = &t->slots[atomic_fetch_add(&t->next, 1) % SLOTS];
  atomic_store(slot, key << 16 | (unsigned long long)refusals << 8 | spared);
}

/* Takes one of the calls that are to be spared. */
static bool spare(table *t, unsigned long long key) {
  atomic_ullong *slot = find(t, key);
  unsigned long long was = slot ? atomic_load(slot) : 0;
  while (was >> 16 == key && (was & 0xff) > 0)
    if (atomic_compare_exchange_weak(slot, &was, was - 1))
      return true;
  return false;
}

static void refuse(table *t, unsigned long long key) {
  const record was = look(t, key);
  const unsigned refusals = was.refusals < 0xff ? was.refusals + 1 : 0xff;
  unsigned spared = refusals < PATIENCE ? 0 : SPARED;
  for (unsigned k = PATIENCE; k < refusals && spared < MOST_SPARED; k++)
    spared *= 2;
  put(t, key, refusals, spared);
}

bool hone_lapack_spares(const hone_lapack_factors *f) {
  const keys key = keys_of(f);
  if (spare(&orders, key.order))
    return true;
  const record order = look(&orders, key.order);
  if (order.succeeded || order.refusals >= PATIENCE ||
      !spare(&all_orders, key.all))
    return false;
  put(&orders, key.order, PATIENCE, SPARED - 1);
  return true;
}

void hone_lapack_tried(const hone_lapack_factors *f, bool solved) {
  const keys key = keys_of(f);
  const record order = look(&orders, key.order);
  if (solved) {
    put(&orders, key.order, 0, 0);
    if (!order.succeeded)
      put(&all_orders, key.all, 0, 0);
    return;
  }
  /* An order that is refused once more counts if it was the one to be tried
     after calls of all orders were spared. */
  const bool again = !order.succeeded && order.refusals < PATIENCE &&
                     look(&all_orders, key.all).refusals >= PATIENCE;
  refuse(&orders, key.order);
  if (!order.known || again)
    refuse(&all_orders, key.all);
}

void hone_lapack_regret(const hone_lapack_factors *f) {
  put(&orders, keys_of(f).order, 0xff, MOST_SPARED);
}
