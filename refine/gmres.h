/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES-IR (Carson & Higham 2017, 2018) in residual form, one space for all
   corrections: what single-precision factors M of S cannot do alone, and a
   few measured products S z can mend.

   The space holds pairs with S z_i = c_i, the c_i orthonormal, and with it
   the factors are applied as

     P v = Z C^T v + inv(M) (I - C C^T) v,

   exact on the span of C. A correction d = P r followed by the measurement of
   the new residual gives one more pair, dx and -dr, which costs nothing: so
   each step is one application of the factors and one pass over A, and the
   iterates are those of flexible GMRES right-preconditioned by inv(M) (GCR:
   Eisenstat, Elman & Schultz 1983), one step behind, their residuals replaced
   by true ones at every step. Nothing is lost between corrections, and
   columns share what they learn of S. The transpose of P is no good: it is not
   near inv(S^T). */
#ifndef HONE_GMRES_H
#define HONE_GMRES_H

#include "base/engine.h"

enum {
  HONE_SPACE_PAIRS = 24, /* at most */
  HONE_SPACE_OPEN = 4    /* pairs that one step may add */
};

typedef struct hone_space {
  int64_t n;
  bool trans; /* S^T z = c instead */
  int most;   /* pairs, at most */
  int count;  /* pairs; open ones behind them wait for their product */
  int open;
  hone_entry *z, *c; /* n x most each, borrowed; z NULL: no space */
} hone_space;

/* Entries of z and c together, with room for HONE_SPACE_PAIRS. */
int64_t hone_space_entries(int64_t n);

/* A space without pairs, of S or S^T, in this memory. */
hone_space hone_space_make(int64_t n, bool trans, hone_entry *memory);
/* One of S^T in the room behind the pairs that space has. */
hone_space hone_space_behind(const hone_space *space);

/* Room for a pair, both vectors zero; -1: there is none. What was opened is
   given back, or taken, by setting space->open = 0 after hone_space_take. */
int hone_space_open(hone_space *space);
/* The vectors of pair number at, for z and c to be written to. */
hone_entry *hone_space_z(const hone_space *space, int at);
hone_entry *hone_space_c(const hone_space *space, int at);

/* Takes the vectors z and c with S z = c as the next pair; z and c may be those
   of hone_space_z, hone_space_c at count or beyond, and are overwritten. False:
   they hold nothing new, or something that is not finite. */
bool hone_space_take(hone_space *space, hone_entry *z, hone_entry *c);

/* Coefficients of v: coefficient[i] = c_i^T v and v = v - C coefficient. */
void hone_space_split(const hone_space *space, hone_entry *v,
                      hone_entry *coefficient);
/* v = v + Z coefficient. */
void hone_space_join(const hone_space *space, const hone_entry *coefficient,
                     hone_entry *v);

#endif
