/* SPDX-License-Identifier: BSD-3-Clause */
/* Random probes: what random vectors show of the factors M of S = R A C, of
   the part E = I - inv(M) op(S) of an error that one correction leaves, and of
   inv(S). In double precision. Next to read: probes.c, whose head states the
   theorem; bounds.c, which derives error bounds from it. */
#ifndef HONE_PROBES_H
#define HONE_PROBES_H

#include "base/engine.h"
#include "base/probe_factor.h"
#include "refine/deflation.h"
#include "refine/gmres.h"

/* The random vectors of one statement; a complex one counts as two. */
enum {
  HONE_PROBES = 12 / HONE_PARTS,
  HONE_PROBES_DEVICE = 16 / HONE_PARTS,
  HONE_PROBES_MOST = 22 / HONE_PARTS,
  HONE_PROBES_MOST_FROM = 24576, /* the order */
  HONE_PROBE_POWERS = 8          /* of E, at most */
};

/* Returns how many a run begins with. copy: a device has A. From that order on,
   it takes no longer to apply the first power to more vectors (H200). */
static inline int hone_probe_vectors(int64_t n, bool copy) {
  return !copy                        ? HONE_PROBES
         : n >= HONE_PROBES_MOST_FROM ? HONE_PROBES_MOST
                                      : HONE_PROBES_DEVICE;
}

/* A factored matrix: the factors, A itself, and the scaling between them. */
typedef struct hone_factored {
  const hone_engine *engine;
  void *self;
  const hone_matrix *a;
  const hone_scaling *scaling;
  hone_pool *pool;
  bool use_copy; /* residuals use the engine's copy of this very A */
  /* If not NULL, the factors are applied in double arithmetic and together with
     the pairs of this space (gmres.h). Borrowed. */
  hone_space *space;
  /* If not NULL, the factors are corrected by it (deflation.h). Borrowed. */
  const hone_deflation *deflation;
  /* If not NULL, right-hand sides are rounded at random, as this seed draws, to
     the precision of the arithmetic that solves for them. Borrowed. */
  uint64_t *rounding_seed;
  bool in_double; /* factors are applied in double arithmetic in any case */
  /* If not NULL, solutions for several columns are refined where the factors
     are, by at most *corrections corrections, and it becomes their number; 0:
     that was not done. Borrowed. */
  int *corrections;
} hone_factored;

/* The contraction of the factors, for op(S) = S or S^T. */
typedef struct hone_contraction {
  bool tried;    /* the probes were made for the present matrix */
  int power;     /* m, for which ||E^m||_2 <= bound <= 0.9; 0: there is none */
  double bound;  /* the bound for the last power tried */
  double before; /* bounds the sum of ||E^j||_2 over 0 < j < m */
  /* omega - 1: every m-th correction is made omega times, and E^m stands for
     E^(m-1) ((1 - omega) I + omega E) here (relaxation.h). 0: nothing is. */
  hone_entry excess;
  /* Deflated factors: bounds the 2-norm of what rounding errors of the solve
     leave in a correction, relative to the largest entry that the factors alone
     gave it; 0: not known to be more than E says. */
  double rounding;
  double *rows; /* n: rows[i] bounds the 2-norm of row i of E^m; borrowed */
} hone_contraction;

/* The random right-hand sides that are solved for: for a rough bound of what
   rounding errors of residuals in double-double do, and for rcond. */
enum { HONE_PROBE_SOLUTIONS = HONE_SOLUTIONS_MOST / HONE_PARTS };

/* A run of probes. */
typedef struct hone_probing {
  const hone_factored *f;
  bool trans; /* op(S) = S^T */
  /* n: E is measured as inv(W) E W, W = diag(weights); NULL: W = I. */
  const double *weights;
  uint64_t seed;            /* the draw; advanced by every call */
  const hone_entry *beside; /* NULL, or see hone_probe_step */
  hone_entry *scratch;      /* hone_probe_scratch(n, f->use_copy) entries */
  int passes;               /* passes over A; added to */
  bool deflation_follows;   /* if the first power leaves much, the run ends, */
  bool cut_short;           /* and this becomes true */
  bool persists;            /* powers go on where later ones may do what the
                               last one did not */
  bool corrected_next;      /* where one power is not enough, an estimate by
                               corrected solutions follows, on the host */
  /* The following are set if 'inverse' is true: */
  bool inverse;          /* solve for random right-hand sides too */
  double inverse_bound;  /* >= ||inv(op(S))||_2 if the contraction was shown,
                            otherwise an estimate; Inf: none */
  double inverse_growth; /* the size of these solutions relative to those by the
                            factors alone */
  const hone_entry *solution; /* n, in scratch: the largest of them; NULL: it
                                 stayed on a device, which has estimated */
  hone_entry *solutions;      /* n x HONE_PROBE_SOLUTIONS, in scratch: all of
                                 them; NULL: likewise */
  double inverse_size;        /* about ||inv(op(S))||_F, by these */
  bool estimated;             /* ||inv(S)||_1 by one gradient step from it, */
  double inverse_norm;        /* by the factors alone */
} hone_probing;

/* Draws random vectors and applies powers of E to them, until a power is shown
   to halve every vector or 'steps' powers are made. Fails only where a solve
   fails. */
int hone_probe(hone_probing *probing, int steps, hone_contraction *out);

/* Tells an engine that has A of the run that hone_probe would begin with. */
void hone_probe_expect(const hone_probing *probing);

/* The factor by which the root of the sum of squares of v^T g over HONE_PROBES
   random vectors g has to be multiplied to bound ||v||_2, for each of 'count'
   vectors v at once, but for a probability HONE_PROBE_FAILURE. */
double hone_probe_factor(double count);

/* Fills v with one random vector; advances the seed. */
void hone_probe_draw(int64_t n, uint64_t *seed, hone_entry *v);

int64_t hone_probe_scratch(int64_t n, bool copy);

#endif
