/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA driver that is not there, with memory of a device that the host
   cannot touch: it is mapped twice, and only the driver's copies know the
   second place. Copies on a stream are made when it is waited for. */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_driver {
  int64_t calls, fail_at; /* calls so far; the one that takes this from 1 to 0
                             fails, with: */
  int failure;
  int64_t questions; /* what a pointer is */
  int64_t live;      /* streams, pinned memory, contexts kept or entered */
  int ordinal;       /* of the device that all of the memory is on */
  void *context;     /* that it is of; NULL: none */
  bool inactive;     /* the device's own context is not in use */
  int64_t fetched;   /* bytes that left the device */
  unsigned slow;     /* microseconds that a stream takes */
  bool over;         /* copies that are still made from here on are counted */
  int64_t late;
} fake_driver;
extern fake_driver fake;
extern char fake_own; /* &fake_own: the device's own context */

/* In the place of the true one from here on, all as at first; or no longer. */
void fake_begin(void);
void fake_end(void);

/* Of which a kernel of the emulated device may read what is open. */
void *fake_alloc(size_t bytes, bool open);
void fake_free(void *p);
/* Where the host finds what is at p; NULL: p is none of it. */
void *fake_real(const void *p);

#endif
