/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of hone_batch_solve that a CUDA device does: which systems it takes
   (batch_device.c), how a portion of them goes there (batch_portions.c) and
   comes back (batch_back.c). */
#ifndef HONE_BATCH_DEVICE_H
#define HONE_BATCH_DEVICE_H

#include "api/batch.h"

#include "base/device_memory.h"
#include "gpu_sp/batch/batch.h"

#include <pthread.h>

enum {
  HONE_PORTION_IN_BYTES = 8 << 20,        /* to the device, */
  HONE_PORTION_LARGE_IN_BYTES = 64 << 20, /* and with systems that are solved
                                             by panels */
  HONE_PORTION_OUT_BYTES = 8 << 20,
  HONE_PORTION_MOST = 1 << 16 /* systems, but in tests */
};

typedef enum hone_kind {
  HONE_OF_A,
  HONE_OF_B,
  HONE_OF_X,
  HONE_KINDS
} hone_kind;

/* Systems of one order that are together on the device. */
typedef struct hone_portion {
  int64_t n, count, first;
  int64_t *list;         /* their numbers; NULL: from 'first' on */
  size_t in[HONE_KINDS]; /* where arrays, or lists of them, begin in a slot, */
  size_t worst, results, rcond, columns, determinants, x; /* and results; */
  size_t out; /* all of these, or up to x if that is not to come back */
  int slot;
  hone_device_slot at;  /* its memory */
  _Atomic int64_t next; /* what no thread has sent or taken yet */
  _Atomic int state;    /* below; helpers wait for its change */
} hone_portion;

enum { HONE_PORTION_NONE, HONE_PORTION_UNDER_WAY, HONE_PORTION_DONE };

typedef struct hone_device_run {
  hone_batch_call *call;
  hone_device_batch *device;
  hone_device_memory place; /* of the arrays that lie on the device */
  bool there[HONE_KINDS];   /* do the arrays of this kind lie there? */
  hone_device_range known[HONE_KINDS]; /* where, as far as the last one shows */
  int64_t up_to; /* the largest order that the device takes */
  int64_t most;  /* systems of a portion */
  bool alike;    /* systems lie at equal distances, and one is checked for all.
                    Their results are not begun before they are taken */
  bool quiet;    /* the host looks at the results of a portion only if a system
                    in it was not solved; */
  bool copies;   /* and the device's results become the caller's on the host; */
  int64_t copier;  /* so many bytes of them are worth a thread */
  int64_t told;    /* of so many systems it had to look at none so far */
  bool lost;       /* there was no room for the results of a failed portion */
  size_t in_bytes; /* of a slot */
  int64_t ended;   /* systems whose portion is done, or has failed */
  int devices;     /* wanted: one, or several where no array lies on one, */
  int slots;       /* and the slots of those that there are */
  hone_portion portions[HONE_DEVICE_BATCH_ALL_SLOTS];
  int oldest;           /* of the portions when there will be no more of them */
  pthread_mutex_t lock; /* for both below */
  int64_t served;
  hone_batch_result worst; /* of the systems that were served */
} hone_device_run;

/* The array of this kind. */
static inline const void *hone_batch_array(const hone_member *m, int which) {
  return which == HONE_OF_A ? m->a : which == HONE_OF_B ? m->b : m->x;
}

/* Threads take the portion's systems in ranges of so many. */
typedef struct hone_portion_deal {
  hone_device_run *r;
  hone_portion *p;
  void (*range)(hone_device_run *r, const hone_portion *p, int64_t from,
                int64_t to);
  int64_t together;
} hone_portion_deal;

/* Takes ranges, as one of several threads or alone, until none is left: ctx is
   a hone_portion_deal. */
void hone_portion_deal_out(void *ctx, int64_t worker);

/* The multiplications of so many systems of order n; the device ends up to
   HONE_SHORT_WORK of them before a thread that waits for it would go to sleep
   (hone_wait). */
#define HONE_SHORT_WORK 4e8
static inline double hone_portion_work(int64_t n, int64_t count) {
  const double order = (double)n;
  return order * order * order * (double)count * HONE_PARTS * HONE_PARTS;
}

/* The number of the portion's system i in the batch. */
int64_t hone_portion_system(const hone_portion *p, int64_t i);
/* The numbers that one system of order n has in its array of this kind; the
   bytes of x that come back by the host, and of its results without x. */
size_t hone_portion_numbers(const hone_device_run *r, int which, int64_t n);
size_t hone_portion_x_bytes(const hone_device_run *r, int64_t n);
size_t hone_portion_result_bytes(const hone_device_run *r);

/* The systems of order n that a slot takes. */
int64_t hone_portion_room(const hone_device_run *r, int64_t n);
/* Makes the results of a quiet run, if there are none: those of systems that
   are not solved yet, but for the ones that were told of. Returns false if
   there is no memory. */
bool hone_portion_results(hone_device_run *r);
/* Sends a portion that has been listed, and starts to solve it. What could not
   be sent is given up. */
int hone_portion_submit(hone_device_run *r, hone_portion *p);
/* Ends a portion of which it is not known what the device has done. Systems
   whose x takes the place of b there may have lost their b: they get this
   status, and cannot be solved in another way. */
void hone_portion_give_up(hone_device_run *r, hone_portion *p, int st);

/* On the way back (batch_back.c). ------------------------------------------ */

/* Waits for a portion, if there is one, and takes its results. */
int hone_portion_finish(hone_device_run *r, hone_portion *p);
/* Does so with all portions, this one first, when there will be no more of
   them. */
int hone_portions_finish(hone_device_run *r, int oldest);

#endif
