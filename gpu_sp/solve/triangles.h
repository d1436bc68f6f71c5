/* SPDX-License-Identifier: BSD-3-Clause */
/* Triangular solves with float factors in double arithmetic, on the device.
   Read next: triangles.cu and sweep.h for the kernel, solve.cu for how the
   refinement calls it, then residual/residual.h. */
#ifndef HONE_CUDA_TRIANGLES_H
#define HONE_CUDA_TRIANGLES_H

#include "gpu_sp/launch.h"

/* Returns the right-hand sides of one launch, at most, for matrices of order n:
   they need room for their parts under way. */
enum { HONE_TRIANGLE_COLUMNS = 128 };
inline int64_t hone_triangle_columns(int64_t n) {
  const int64_t rows = HONE_PARTS * n;
  return rows <= 1 << 14   ? HONE_TRIANGLE_COLUMNS
         : rows <= 1 << 15 ? HONE_TRIANGLE_COLUMNS / 2
                           : HONE_TRIANGLE_COLUMNS / 4;
}

/* Two triangles in one matrix T: t_ij stands at t[HONE_PARTS * i + j * ld]. F
   is kept row by row, so T is its transpose: the lower triangle of T is U^T,
   the upper one L^T with a unit diagonal.

   Complex matrices act here as real ones on vectors of twice the length, an
   entry a + b i as the block

     a -b
     b  a

   of which memory has the first column. Transposes are those of the complex
   matrices, not conjugated; a sweep may ask for the conjugate. */
struct hone_triangles {
  const float *t; /* n x n entries, device */
  int64_t ld, n;
};

/* Returns the bytes of one of the two arrays below. */
int64_t hone_cuda_inverse_bytes(int64_t n);
/* Inverts both triangles of every diagonal block of HONE_PANEL rows of T. The
   inverses of block b go to lower and upper (device) at b * HONE_WIDE^2, in
   double, HONE_WIDE x HONE_WIDE real numbers, column-major. The unit matrix
   completes the last block; the other triangle is filled with zeros. upper
   NULL: T has no upper triangle. */
cudaError_t hone_cuda_invert_blocks(int64_t n, const float *t, int64_t ld,
                                    double *lower, double *upper,
                                    cudaStream_t stream);

/* A triangle of T, or its transpose. */
enum hone_triangle {
  HONE_LOWER,       /* v = inv(lower) v */
  HONE_LOWER_TRANS, /* v = inv(lower^T) v */
  HONE_UPPER,       /* v = inv(upper) v */
  HONE_UPPER_TRANS  /* v = inv(upper^T) v */
};

/* A solve with one triangle, and the inverses of its diagonal blocks. */
struct hone_sweep {
  enum hone_triangle which;
  const double *inverse; /* of hone_cuda_invert_blocks, device */
  bool conjugate; /* the conjugate of the triangle; real: no difference */
};

/* The right-hand sides and the solutions of k systems. */
struct hone_solve_columns {
  int64_t k;
  const double *from; /* n x k entries: device or pinned, each read once */
  double *to;         /* n x k: likewise written once; from, or apart */
  int64_t ldv;        /* doubles from column to column */
};

/* Workspace of solves of one order n, which use its halves in turn: each uses
   one half and clears the other for the next. All members but 'there' start as
   zeros. */
struct hone_triangle_work {
  void *there;    /* hone_cuda_triangle_bytes(n) bytes on the device, any
                     contents */
  bool clean;     /* the half that the next solve uses has been cleared */
  int half;       /* the half that the next solve uses, 0 or 1 */
  int columns;    /* columns of the mailboxes that the other half used */
  unsigned ready; /* a bit for each kernel whose shared memory has been set */
  int shared;     /* bytes that a thread block can have; 0: not asked yet */
  int group;      /* columns that go together: 1, 2, 4, 8 or 16; 0: as many as
                     were measured to be best */
};
int64_t hone_cuda_triangle_bytes(int64_t n);
/* Returns how many of so many columns of n entries go together if nothing else
   is chosen. */
int hone_cuda_triangle_group(int64_t n, int columns);

/* v.to = v.from after one or two sweeps. Any k >= 1;
   hone_triangle_columns(n) columns at most are solved for at once. Entries of T
   that are not finite give results that are not finite, and the kernel ends all
   the same. The bits of a column depend neither on scheduling nor on what is in
   the columns beside it, but may depend on how many these are. All solves with
   one workspace must be on one stream. */
cudaError_t hone_cuda_triangles(const hone_sweep *sweep, int sweeps,
                                const hone_triangles &t,
                                const hone_solve_columns &v,
                                hone_triangle_work *work, cudaStream_t stream);

#endif
