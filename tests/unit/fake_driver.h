/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake CUDA driver. Its device memory cannot be touched by the host: the
   memory is mapped at a second address, which only the driver's copies know.
   Copies on a stream are made when the stream is synchronized. Those of the
   default stream to the device read the host's memory at once, and arrive when
   it is synchronized, or before its next copy. */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_driver {
  int64_t calls, fail_at; /* calls so far; the call that takes fail_at from 1 to
                             0 fails, with: */
  int failure;
  int64_t questions; /* queries for the kind of a pointer */
  int64_t live;  /* streams, pinned memory, and contexts retained or current */
  int ordinal;   /* the device on which all memory lies */
  void *context; /* the context that owns the memory; NULL: none */
  bool inactive; /* the device's primary context is not active */
  int64_t fetched; /* bytes copied from the device */
  unsigned slow;   /* microseconds that a stream takes */
  unsigned asking; /* that a query takes, under a lock of the driver; 0: none */
  bool over;       /* copies made from now on are counted */
  int64_t late;
} fake_driver;
extern fake_driver fake;
extern char fake_own; /* &fake_own is the device's primary context */
/* The context that the program has made current in this thread, or NULL, which
   pushes do not change, and the thread's mode. */
extern __thread void *fake_current;
extern __thread int fake_capture_mode;
extern __thread int64_t fake_set; /* how often a context was made current */

/* fake_begin replaces the true driver by this one, in its initial state;
   fake_end undoes that. */
void fake_begin(void);
void fake_end(void);

/* With open, the host may read it too. Kernels of the emulated device find
   memory that is given to them as a pointer, not within a structure. */
void *fake_alloc(size_t bytes, bool open);
void fake_free(void *p);
/* The address at which the host finds the memory at p; NULL if p is not device
   memory. */
void *fake_real(const void *p);

#endif
