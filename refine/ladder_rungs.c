/* SPDX-License-Identifier: BSD-3-Clause */
/* The engines of the rungs: made when they are first wanted, destroyed when
   another one takes their place, or needs the memory that they have on a
   device. An engine that has a copy of A lends it to the next one before it is
   destroyed. */
#include "refine/ladder.h"

int64_t hone_ladder_certificate_bytes(int64_t n) {
  return 2 * n * (int64_t)sizeof(double) +
         hone_deflation_entries(n) * (int64_t)sizeof(hone_entry);
}

void hone_ladder_destroy_rung(hone_ladder *ladder, hone_rung *rung) {
  hone_mem_put(ladder->mem, rung->rows);
  rung->rows = NULL;
  rung->deflation.count = 0;
  if (rung->self != NULL && rung->engine->account != NULL) {
    hone_account account;
    rung->engine->account(rung->self, &account);
    ladder->sent += account.to_device;
    ladder->fetched += account.from_device;
  }
  if (rung->self != NULL)
    rung->engine->destroy(rung->self, ladder->mem);
  if (rung == &ladder->rung[HONE_MAX(ladder->copy_rung, 0)])
    ladder->copy_rung = -1;
  rung->self = NULL;
  rung->state = HONE_RUNG_NEW;
}

/* Returns the rung whose engine has a copy of A that the engine of rung r can
   factor, while the memory of a device is not limited; -1: there is none. */
static int lender_for(const hone_ladder *ladder, int r) {
  const int from = ladder->copy_rung;
  if (from < 0 || from == r || ladder->rung[r].engine->borrow == NULL ||
      ladder->request.choices.device_limit > 0 ||
      ladder->rung[from].engine->lend == NULL)
    return -1;
  return from;
}

static void destroy_others(hone_ladder *ladder, int r, int but) {
  const hone_rung *rung = &ladder->rung[r];
  for (int i = 0; i < ladder->rung_count; i++) /* an engine holds one matrix */
    if (ladder->rung[i].self != NULL && i != r && i != but &&
        (ladder->request.one_shot || ladder->rung[i].engine == rung->engine))
      hone_ladder_destroy_rung(ladder, &ladder->rung[i]);
}

static bool uses_device(const hone_rung *rung) {
  return rung->self != NULL && rung->engine->device_bytes != NULL;
}

/* Destroys all engines but rung r's that have memory of a device, unless they
   are there because r had none. Returns true if there was one. */
static bool free_devices(hone_ladder *ladder, int r) {
  bool any = false;
  for (int i = 0; i < ladder->rung_count; i++)
    if (i != r && uses_device(&ladder->rung[i]) &&
        !(i > r && ladder->rung[i].engine->spare)) {
      hone_ladder_destroy_rung(ladder, &ladder->rung[i]);
      any = true;
    }
  return any;
}

static hone_engine_config config_of(hone_ladder *ladder,
                                    const hone_rung *rung) {
  return (hone_engine_config){.n = ladder->n,
                              .mem = ladder->mem,
                              .pool = ladder->pool,
                              .watch = ladder->watch,
                              .block = ladder->request.block,
                              .deterministic = ladder->request.deterministic,
                              .keep = ladder->request.one_shot,
                              .choices = rung->choices,
                              .structure = &ladder->structure,
                              .why = ladder->why,
                              .why_size = sizeof ladder->why};
}

/* Would rung r's engine and those that are there have more memory of a device
   than the caller allows all of them together? */
static bool beyond_limit(hone_ladder *ladder, int r) {
  const hone_rung *rung = &ladder->rung[r];
  const int64_t limit = ladder->request.choices.device_limit;
  if (limit == 0 || rung->engine->device_bytes == NULL)
    return false;
  const hone_engine_config config = config_of(ladder, rung);
  int64_t bytes = rung->engine->device_bytes(&config, true);
  for (int i = 0; i < ladder->rung_count; i++)
    if (i != r && uses_device(&ladder->rung[i])) {
      hone_account account;
      ladder->rung[i].engine->account(ladder->rung[i].self, &account);
      bytes += account.device_bytes;
    }
  return bytes > limit;
}

static int create_engine(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  const hone_engine_config config = config_of(ladder, rung);
  ladder->why[0] = '\0';
  rung->rows = hone_mem_get(ladder->mem,
                            (size_t)hone_ladder_certificate_bytes(ladder->n));
  if (rung->rows == NULL)
    return HONE_NO_MEMORY;
  int st = rung->engine->create(&rung->self, &config);
  if (st != HONE_OK) {
    hone_mem_put(ladder->mem, rung->rows);
    rung->rows = NULL;
  }
  return st;
}

int hone_ladder_create_rung(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  char why[128] = "";
  if (rung->self != NULL)
    return HONE_OK;
  if (!rung->engine->probe(why, sizeof why))
    return HONE_NO_DEVICE;
  /* The first engine would do with what the others leave, and take longer. A
     limit is that of all engines together. */
  if ((ladder->crowded && r == ladder->lowest_rung) || beyond_limit(ladder, r))
    (void)free_devices(ladder, r);
  destroy_others(ladder, r, lender_for(ladder, r));
  int st = create_engine(ladder, r);
  if (st == HONE_NO_MEMORY && rung->engine->device_bytes != NULL &&
      free_devices(ladder, r)) {
    ladder->crowded = true;
    st = create_engine(ladder, r);
  }
  return st;
}

/* A lender of one call is destroyed when it has done its work. */
int hone_ladder_factor_on(hone_ladder *ladder, int r) {
  hone_rung *rung = &ladder->rung[r];
  const int lender = lender_for(ladder, r);
  int64_t ld = 0;
  if (lender >= 0) {
    const hone_rung *from = &ladder->rung[lender];
    const hone_entry *copy = from->engine->lend(from->self, &ladder->a, &ld);
    rung->engine->borrow(rung->self, copy, ld);
  }
  const int st = rung->engine->factor(rung->self, &ladder->a, &ladder->scaling,
                                      &rung->info);
  if (lender >= 0 && ladder->request.one_shot)
    hone_ladder_destroy_rung(ladder, &ladder->rung[lender]);
  return st;
}
