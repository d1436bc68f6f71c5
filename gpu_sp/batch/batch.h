/* SPDX-License-Identifier: BSD-3-Clause */
/* Many small systems on a CUDA device: one thread block, or for small orders a
   part of a warp, factors, certifies and solves one system, by the method of
   cpu_batch/kernels.c with an explicit inverse in the place of LU factors, or
   block LU by panels. Systems go to the device by portions. Next to read:
   system.h and panels.h, the kernels; portions.cu, the memory. */
#ifndef HONE_DEVICE_BATCH_H
#define HONE_DEVICE_BATCH_H

#ifdef __cplusplus
extern "C" {
#endif

#include "base/base.h"
#include "base/block_lane.h"

/* Up to these orders of real and of complex systems the inverse in registers is
   faster than panels, but for complex ones of the orders between, which have a
   matrix of order 64 in registers. Others, up to HONE_DEVICE_BATCH_UP_TO, are
   solved by panels. */
enum {
  HONE_DEVICE_BATCH_INVERSE_UP_TO = 128,
  HONE_DEVICE_BATCH_Z_INVERSE_UP_TO = 64,
  HONE_DEVICE_BATCH_Z_PANELS_FROM = 33,
  HONE_DEVICE_BATCH_Z_PANELS_TO = 40,
  HONE_DEVICE_BATCH_UP_TO = 1024
};

/* Arrays of one kind, of all systems of a portion. */
typedef struct hone_device_arrays {
  const void *first;       /* of system 0, in device memory, */
  int64_t stride;          /* and how many numbers apart the others are; */
  const void *const *list; /* or a list, in device memory */
} hone_device_arrays;

/* det(A) = mantissa 2^exponent. */
typedef struct hone_device_determinant {
  double mantissa[2]; /* and, for complex entries, the imaginary part of it */
  int64_t exponent;
} hone_device_determinant;

/* The worst of the systems of a portion that were solved; zeros before. The
   doubles are not negative, and there as their bits. */
typedef struct hone_device_worst {
  unsigned long long served; /* how many those are */
  unsigned long long iterations;
  unsigned long long backward, normwise, residual, forward;
  unsigned long long not_rcond; /* the bits of the least rcond, inverted */
} hone_device_worst;

enum { HONE_DEVICE_DIGITS = 16 }; /* as of hone_bounds_digits, at most */

/* Says what is wanted of a portion's results. */
typedef struct hone_device_results {
  hone_device_worst *worst; /* in device memory; NULL: the host looks at all
                               results by itself, and nothing below counts */
  char *to;                 /* the caller's array in device memory, or a place
                               that the host copies from, or NULL: */
  size_t bytes;             /* so many of each system's result, side by side */
  hone_batch_result none;   /* for systems that were not solved */
} hone_device_results;

/* A portion: systems of one order. Distances are in numbers, real or complex.
 */
typedef struct hone_device_systems {
  int64_t count, n, nrhs;
  int parts; /* of a number: 1 or 2 */
  hone_device_arrays a, b, x;
  int64_t by_row, by_column; /* entry (i, j) of op(A) is at i by_row + j
                                by_column, */
  bool conjugate;            /* conjugated if this is set */
  int64_t ldb, ldx;
  double limit;    /* the largest componentwise backward error accepted */
  int corrections; /* at most */
  uint64_t seed, seed_step; /* system k draws from seed + k seed_step */
  void *room;    /* count x nrhs x n numbers in device memory, for x before all
                    columns are accepted; NULL: a column is written at once */
  bool definite; /* the matrices are said to be positive definite; complex ones
                    that an inverse solves, and small ones, are factored as
                    others */
  void *work;    /* for systems that are solved by panels: blocks times
                    work_stride numbers in device memory */
  int64_t work_stride, blocks;
  double *rcond; /* count; out, in device memory, as all below. 1 / cond(op(A))
                    where x was written and all columns are accepted, else 0 */
  hone_block_column *column;            /* count x nrhs */
  hone_device_determinant *determinant; /* count; NULL: none are wanted */
  hone_device_results results;
} hone_device_systems;

/* Are such systems solved by panels in any case? */
static inline bool hone_device_batch_by_panels(const hone_device_systems *s) {
  return s->parts == 1 ? s->n > HONE_DEVICE_BATCH_INVERSE_UP_TO
                       : s->n > HONE_DEVICE_BATCH_Z_INVERSE_UP_TO ||
                             (s->n >= HONE_DEVICE_BATCH_Z_PANELS_FROM &&
                              s->n <= HONE_DEVICE_BATCH_Z_PANELS_TO);
}

/* The workspace of systems that are solved by panels. */
typedef struct hone_device_room {
  int64_t blocks; /* so many thread blocks are resident at once, */
  int64_t stride; /* and each has a workspace of so many numbers */
} hone_device_room;

/* Enqueue the systems on a stream (a cudaStream_t; NULL: the default one), and
   what is wanted of their results, and find the workspace that large systems
   need, real and complex. Return HONE_OK or HONE_DEVICE_FAILED. */
int hone_device_batch_launch(const hone_device_systems *s, void *stream);
int hone_device_batch_launch_definite(const hone_device_systems *s,
                                      void *stream);
/* The bytes of shared memory that a thread block takes to invert these systems.
   Where a device has less, panels solve them. */
size_t hone_device_batch_shared(const hone_device_systems *s);
size_t hone_device_batch_shared_definite(const hone_device_systems *s);
/* And those to solve systems of order n by panels, real and complex. */
size_t hone_device_batch_panel_shared(int64_t n);
size_t hone_device_batch_z_panel_shared(int64_t n);
int hone_device_batch_sum_up(const hone_device_systems *s, void *stream);
int hone_device_batch_launch_large(const hone_device_systems *s, void *stream);
int hone_device_batch_plan(const hone_device_systems *s, hone_device_room *out);
int hone_device_batch_z_launch_large(const hone_device_systems *s,
                                     void *stream);
int hone_device_batch_z_plan(const hone_device_systems *s,
                             hone_device_room *out);

/* Memory and streams for portions, on one device or on several. While one
   portion is on a device, the next is filled. */
typedef struct hone_device_batch hone_device_batch;

/* Returns the largest order of systems, whose entries have so many parts, that
   the current device can solve; 0: none. */
int64_t hone_device_batch_up_to(int parts);

enum {
  HONE_DEVICE_BATCH_SLOTS = 3,   /* of each device */
  HONE_DEVICE_BATCH_DEVICES = 8, /* at most */
  HONE_DEVICE_BATCH_ALL_SLOTS =
      HONE_DEVICE_BATCH_SLOTS * HONE_DEVICE_BATCH_DEVICES
};

/* One portion under way: memory that the host fills, and what comes back. */
typedef struct hone_device_slot {
  char *host_in, *host_out;     /* pinned, of the sizes asked for */
  char *device_in, *device_out; /* their images on the device */
} hone_device_slot;

/* Can a device serve here, and is it the one of this number? -1: any. Creates
   no context. */
bool hone_device_batch_exists(int ordinal);

/* Takes the slots that the process keeps, or makes new ones. Each has in_bytes
   to go to the device and out_bytes to come back, which multiples of 256 are.
   All memory of a device, with the workspaces of large systems, stays within
   'limit' bytes; 0: no limit. There are up to so many devices, from the current
   one on, and never more than there are. On an error *self is NULL. */
int hone_device_batch_open(hone_device_batch **self, hone_mem *mem,
                           size_t in_bytes, size_t out_bytes, int64_t limit,
                           int devices);
/* The slots of all devices; those that follow one another are on different
   ones. */
int hone_device_batch_slots(const hone_device_batch *self);
hone_device_slot hone_device_batch_slot(hone_device_batch *self, int slot);
/* Lets all that is submitted afterwards wait, on the device, of which there is
   one, for what the caller has done in the default stream so far. */
int hone_device_batch_follow(hone_device_batch *self);
/* Sends so many bytes of host_in, solves the systems, and fetches so many bytes
   of device_out, of which the first clear_bytes are set to zero before. Returns
   before that is done. */
int hone_device_batch_submit(hone_device_batch *self, int slot, size_t in_bytes,
                             const hone_device_systems *systems,
                             size_t clear_bytes, size_t out_bytes);
/* Fetches so many bytes of device_out, once more, and waits for them. */
int hone_device_batch_fetch(hone_device_batch *self, int slot,
                            size_t out_bytes);
/* Waits until that is done. */
int hone_device_batch_await(hone_device_batch *self, int slot);
/* Waits for everything; keeps the slots for the next call, or frees them. */
void hone_device_batch_close(hone_device_batch *self, hone_mem *mem);
/* Frees the slots that are kept; returns how many bytes of device memory that
   was. */
int64_t hone_device_batch_release(void);

#ifdef __cplusplus
}
#endif
#endif
