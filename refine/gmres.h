/* SPDX-License-Identifier: BSD-3-Clause */
/* GMRES-IR (Carson & Higham 2017, 2018) in residual form, in double precision,
   with one space for all corrections. It helps where refinement with the
   single-precision factors M of S does not converge, but a few measured
   products S z make up for what M lacks.

   The space holds pairs with S z_i = c_i, the c_i orthonormal. With it, inv(S)
   is approximated by

     P v = Z C^T v + inv(M) (I - C C^T) v,

   which is exact on the span of C. A correction d = P r followed by the
   measurement of the new residual gives one more pair at no cost: the change dx
   of x and the change -dr of the residual. Each step is therefore one
   application of the factors and one pass over A. The iterates are those of
   flexible GMRES right-preconditioned by inv(M) (GCR: Eisenstat, Elman &
   Schultz 1983), one step behind, with the residuals replaced by true ones at
   every step. Nothing is lost between corrections, and columns share what they
   learn about S. The transpose of P is of no use: it is not near inv(S^T). Next
   to read: gmres.c for the space, gmres_pairs.c for how corrections fill it,
   apply_factors.c for P. */
#ifndef HONE_GMRES_H
#define HONE_GMRES_H

#include "base/engine.h"

enum {
  HONE_SPACE_PAIRS = 24, /* pairs that a space can hold */
  HONE_SPACE_OPEN = 4    /* pairs that one step may add */
};

typedef struct hone_space {
  int64_t n;
  bool trans; /* the pairs satisfy S^T z = c instead */
  int count;  /* complete pairs; open ones follow, which wait for their product
               */
  int open;
  hone_entry *z, *c; /* n x max_pairs each, borrowed; z NULL: no space */
} hone_space;

/* Entries of z and c together, with room for HONE_SPACE_PAIRS. */
int64_t hone_space_entries(int64_t n);

/* Makes an empty space of S or S^T in this memory. */
hone_space hone_space_make(int64_t n, bool trans, hone_entry *memory);

/* Opens a pair, with both vectors zero, and returns its index; -1 if there is
   no room. Open pairs are given back, or become complete by hone_space_add,
   when the caller sets space->open = 0. */
int hone_space_open(hone_space *space);
/* The vectors z and c of pair number 'at', for writing. */
hone_entry *hone_space_z(const hone_space *space, int at);
hone_entry *hone_space_c(const hone_space *space, int at);

/* Adds the vectors z and c with S z = c as the next pair, after making c
   orthonormal to the others. z and c are overwritten; they may be hone_space_z
   and hone_space_c at count or beyond. Returns false if they add nothing new or
   are not finite. */
bool hone_space_add(hone_space *space, hone_entry *z, hone_entry *c);

/* Projects v: coefficient[i] = c_i^T v, v = v - C coefficient. */
void hone_space_project(const hone_space *space, hone_entry *v,
                        hone_entry *coefficient);
/* v = v + Z coefficient. */
void hone_space_expand(const hone_space *space, const hone_entry *coefficient,
                       hone_entry *v);

#endif
