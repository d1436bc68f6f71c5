/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the CUDA device: what each computes, by the function that
   enqueues it on a stream. None of these waits, allocates, or touches the
   default stream. All return the launch's error. C++; included by the .cu
   files alone.

   The caller's matrix A is column-major. F, which becomes L and U, is kept row
   by row: f_ij stands at f[i * ld + j]. Pivoting moves rows, and a row that is
   one piece moves at the speed of memory; by columns it took fifteen times as
   long. */
#ifndef HONE_CUDA_KERNELS_H
#define HONE_CUDA_KERNELS_H

#ifdef HONE_EMULATE /* the kernels compiled for the CPU, by tests */
#include HONE_EMULATE
#define HONE_NOINLINE
#else
#define HONE_NOINLINE __noinline__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
/* shared bytes, stream, then the kernel's arguments */
#define HONE_LAUNCH(kernel, grid, block, shared, stream, ...)                  \
  kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
/* The same with every block of the grid running at once. */
#define HONE_LAUNCH_COOPERATIVE(kernel, grid, block, shared, stream, ...)      \
  hone_launch_cooperative(kernel, grid, block, shared, stream, __VA_ARGS__)
template <class... P, class... A>
inline void hone_launch_cooperative(void (*kernel)(P...), int grid, int block,
                                    size_t shared, cudaStream_t stream,
                                    A... given) {
  auto call = [&](P... p) {
    void *list[] = {static_cast<void *>(&p)...};
    (void)cudaLaunchCooperativeKernel(
        reinterpret_cast<const void *>(kernel), dim3((unsigned)grid),
        dim3((unsigned)block), list, shared, stream);
  };
  call(given...);
}
/* Dynamic shared memory as an array of type. */
#define HONE_DYNAMIC_SHARED(type, name)                                        \
  extern __shared__ __align__(16) unsigned char hone_dynamic_shared[];         \
  type *name = reinterpret_cast<type *>(hone_dynamic_shared)
/* Words that tell other blocks something by themselves: no order among them
   and other memory is asked for. Written whole; read anew each time. */
__device__ __forceinline__ void hone_post(unsigned long long *to,
                                          unsigned long long word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word)
               : "memory");
}
__device__ __forceinline__ unsigned long long
hone_look(const unsigned long long *from) {
  unsigned long long word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(word)
               : "l"(from)
               : "memory");
  return word;
}
/* Two words at a multiple of 16 bytes, each read whole. */
__device__ __forceinline__ void hone_look_at_two(const unsigned long long *from,
                                                 unsigned long long *one,
                                                 unsigned long long *other) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(*one), "=l"(*other)
               : "l"(from)
               : "memory");
}
/* The same value, of which the compiler knows nothing: what is computed of it
   in a loop is not kept in registers, which it has too few of, from before. */
__device__ __forceinline__ int hone_opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}
/* Between looks. */
__device__ __forceinline__ void hone_wait() {}
/* 1 / v to 23 bits or so; 0 and Inf where the result is not normal. */
__device__ __forceinline__ float hone_reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
/* As __syncthreads, for 'threads' threads of the block, whole warps. */
__device__ __forceinline__ void hone_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#endif

#include <cstdint>

/* ---- Panels (cuda_panel.cu) -------------------------------------------- */

enum {
  HONE_PANEL = 128, /* columns of a panel, and of the inverted blocks */
  HONE_STEP = 16    /* columns whose pivots are chosen together */
};

/* How the pivots of a panel are chosen. */
enum hone_pivoting {
  HONE_TOURNAMENT, /* among all rows from the diagonal down */
  HONE_BLOCK_ONLY, /* among the rows of the diagonal block */
  HONE_NATURAL     /* none: the rows in their order */
};

/* What a panel leaves for the rest: which rows went where. Entry i of the
   2 * HONE_PANEL: row dst[i] of the new order is row src[i] of the old one;
   dst[i] = -1: nothing. The first w are the pivot rows, in order. */
struct hone_moves {
  int dst[2 * HONE_PANEL], src[2 * HONE_PANEL];
};

/* The workspace of panels, one after the other, and how they are cut. */
struct hone_panel_room {
  void *memory;      /* hone_cuda_panel_bytes, cleared before the first panel */
  int64_t part_rows; /* rows of a panel that go into one launch, at least 2
                        HONE_PANEL; 0: hone_cuda_panel_rows() */
};
/* Bytes for panels of at most n rows. */
int64_t hone_cuda_panel_bytes(int64_t n, int64_t part_rows);
/* The most rows that one launch can hold; see cuda_tall.cu for more. */
int64_t hone_cuda_panel_rows();
/* LU of the panel F[k:n, k:k+w] in place, rows in their new order, which
   *moves tells (device). *zero_pivot (device): lowered to the first column
   whose pivot is exactly zero. Needs every block of its grid resident. */
cudaError_t hone_cuda_panel(int64_t n, float *f, int64_t ld, int64_t k,
                            int64_t w, enum hone_pivoting pivoting,
                            hone_moves *moves, int *zero_pivot,
                            const hone_panel_room &room, cudaStream_t stream);

/* ---- Panels of more rows (cuda_tall.cu) -------------------------------- */

/* What hone_cuda_panel leaves to hone_cuda_tall, which does the same; the
   workspace that it takes beside, 0 where no panel of order n is tall. */
bool hone_cuda_is_tall(int64_t rows, int64_t part_rows);
int64_t hone_cuda_tall_bytes(int64_t n, int64_t part_rows);
cudaError_t hone_cuda_tall(int64_t n, float *f, int64_t ld, int64_t k,
                           int64_t w, enum hone_pivoting pivoting,
                           hone_moves *moves, int *zero_pivot,
                           const hone_panel_room &room, cudaStream_t stream);

/* ---- Between the panels (cuda_steps.cu) -------------------------------- */

/* How products are made of the float factors. */
enum hone_pieces {
  HONE_FLOATS,   /* none: GEMM reads F itself, in FP32 or TF32 */
  HONE_HALF_3,   /* a = hi + lo in FP16: hi hi + hi lo + lo hi */
  HONE_BFLOAT_3, /* the same in BF16 */
  HONE_HALF_1,   /* hi hi alone */
  HONE_BFLOAT_1
};

/* Rows of pieces a panel of HONE_PANEL columns takes: along the inner
   dimension of the product the pieces of L lie as hi hi lo, those of U as
   hi lo hi. */
inline int64_t hone_piece_rows(enum hone_pieces p) {
  if (p == HONE_FLOATS)
    return 0;
  return p == HONE_HALF_3 || p == HONE_BFLOAT_3 ? 3 * HONE_PANEL : HONE_PANEL;
}

/* The powers of two the pieces are multiplied by, so that low pieces of FP16
   stay normal numbers and nothing overflows: L by a constant, U by a factor
   for each block column, with the alpha of its products, -1 / (l u), both on
   the device. */
struct hone_piece_scale {
  float l, u, alpha;
};
/* From top, the bits of the largest magnitude of the block column. */
cudaError_t hone_cuda_piece_scale(enum hone_pieces pieces, const unsigned *top,
                                  hone_piece_scale *scale, cudaStream_t stream);

/* Where the pieces of HONE_PANEL columns of L (rows of U) go along the inner
   dimension: low first, so that the sum is small while they are added. -1:
   not wanted. Of L: hi at lo and hh, lo at hi. Of U: lo at lo, hi at hi and
   hh. */
struct hone_piece_place {
  int64_t lo, hi, hh;
};

/* Pieces of L[i0:n, k:k+w], the strictly lower triangle alone: column c of row
   i goes to out[(i - i0) * ldo + place + c], in 128 columns, those from w on
   zero. w > 128: the same for every 128 columns, their places 256 (lo, hi) and
   128 (hh) after one another. *overflow (device) becomes nonzero where a piece
   would. */
cudaError_t hone_cuda_split_l(enum hone_pieces pieces, int64_t n,
                              const float *f, int64_t ld, int64_t i0, int64_t k,
                              int64_t w, const hone_piece_scale *scale,
                              void *out, int64_t ldo, hone_piece_place place,
                              int *overflow, cudaStream_t stream);

/* U = inv(L11) F[k:k+w, c0:c1] in place, L11 the unit lower triangle of the
   diagonal block at k, w <= HONE_PANEL. Pieces of row r go to
   out[(place + r) * ldo + c - c0], in 128 rows, those from w on zero. */
cudaError_t hone_cuda_rows(enum hone_pieces pieces, float *f, int64_t ld,
                           int64_t k, int64_t w, int64_t c0, int64_t c1,
                           const hone_piece_scale *scale, void *out,
                           int64_t ldo, hone_piece_place place, int *overflow,
                           cudaStream_t stream);

/* ---- Cholesky (cuda_cholesky.cu; the rows in cuda_steps.cu) ------------- */

/* F[k:k+w, k:k+w] = U with U^T U = F there, in the upper triangle, w <=
   HONE_PANEL; the other one is not looked at. *not_positive (device): lowered
   to the first column whose pivot is not positive, or NaN; 1 stands in for
   it then. */
cudaError_t hone_cuda_potrf(float *f, int64_t ld, int64_t k, int64_t w,
                            int *not_positive, cudaStream_t stream);

/* As hone_cuda_rows, with U11^T, U11 the upper triangle of the diagonal block
   at k, in the place of L11. mirror: a second copy of the pieces of row r, at
   mirror[(place + r) * ldm + c - c0], with those of L's order along the inner
   dimension: hi at lo and hh, lo at hi. */
cudaError_t hone_cuda_rows_spd(enum hone_pieces pieces, float *f, int64_t ld,
                               int64_t k, int64_t w, int64_t c0, int64_t c1,
                               const hone_piece_scale *scale, void *out,
                               int64_t ldo, hone_piece_place place,
                               int *overflow, void *mirror, int64_t ldm,
                               cudaStream_t stream);

/* That mirror alone, of rows of U that are there already. */
cudaError_t hone_cuda_split_u(enum hone_pieces pieces, const float *f,
                              int64_t ld, int64_t k, int64_t w, int64_t c0,
                              int64_t c1, const hone_piece_scale *scale,
                              void *mirror, int64_t ldm, hone_piece_place place,
                              int *overflow, cudaStream_t stream);

/* As hone_cuda_piece_scale, of 'count' block columns from the first on: no
   entry of U is larger than the root of the largest. l and u are the same. */
cudaError_t hone_cuda_piece_scale_spd(enum hone_pieces pieces,
                                      const unsigned *top, int count,
                                      hone_piece_scale *scale,
                                      cudaStream_t stream);

/* F with its rows moved in the columns 0 .. left-1 and c0 .. c1-1: new row
   dst[i] is old row src[i], i < entries <= 2048; dst[i] = -1: nothing. */
cudaError_t hone_cuda_move(float *f, int64_t ld, int64_t left, int64_t c0,
                           int64_t c1, const int *dst, const int *src,
                           int entries, cudaStream_t stream);

/* The moves of 'panels' panels as one list of 2 HONE_PANEL panels entries
   (unused: dst -1; src has room for twice as many), applied to perm (perm[i]:
   the original row of row i) and to its inverse place. map: n ints that hold
   0 .. n-1 before and after. */
cudaError_t hone_cuda_compose(const hone_moves *moves, int panels, int *dst,
                              int *src, int *perm, int *place, int *map,
                              cudaStream_t stream);

/* *max (device) raised to the largest |f_ij|, as bits; Inf for NaN. */
cudaError_t hone_cuda_largest(int64_t n, const float *f, int64_t ld,
                              unsigned *max, cudaStream_t stream);
/* The same of the upper triangle. */
cudaError_t hone_cuda_largest_u(int64_t n, const float *f, int64_t ld,
                                unsigned *max, cudaStream_t stream);

/* ---- Triangular solves (cuda_solve.cu) --------------------------------- */

/* A float matrix T with two triangles, applied in double arithmetic; t_ij
   stands at t[i + j * ld], so that of F, kept row by row, T is the transpose:
   its lower triangle is U^T, its upper one L^T with a unit diagonal.
   lower, upper: for every diagonal block b of HONE_PANEL rows (the last one
   is completed by the unit matrix) the inverses of the triangles of T, in
   double, HONE_PANEL x HONE_PANEL column-major, at b * HONE_PANEL^2; the
   other triangle is filled with zeros. upper NULL: there is no upper one. */
int64_t hone_cuda_inverse_bytes(int64_t n); /* of one of the two arrays */
cudaError_t hone_cuda_invert_blocks(int64_t n, const float *t, int64_t ld,
                                    double *lower, double *upper,
                                    cudaStream_t stream);

enum { HONE_TRIANGLE_COLUMNS = 8 }; /* right-hand sides in one sweep over F */

/* The triangles of T and their transposes. */
enum hone_triangle {
  HONE_LOWER,       /* v = inv(lower) v */
  HONE_LOWER_TRANS, /* v = inv(lower^T) v */
  HONE_UPPER,       /* v = inv(upper) v */
  HONE_UPPER_TRANS  /* v = inv(upper^T) v */
};

/* One of them, and the inverses of the same triangle. */
struct hone_sweep {
  enum hone_triangle which;
  const double *inverse;
};

/* Workspace that solves take turns with; there: hone_cuda_triangle_bytes(n) of
   device memory, any contents, for this n alone. All else starts as zeros. */
struct hone_triangle_work {
  void *there;
  bool clean;     /* what the next solve needs to be empty is */
  int turn;       /* its half, 0 or 1 */
  int columns;    /* that the other half was used for */
  unsigned ready; /* kernels that were told how much memory they share */
};
int64_t hone_cuda_triangle_bytes(int64_t n);

/* to = from (n x k doubles, ldv; the same or apart; device or pinned memory,
   each entry read and written once) after one or two sweeps, any k >= 1, at
   most HONE_TRIANGLE_COLUMNS columns at a time. Entries of T that are not
   finite give results that are not finite; the kernel ends whatever they are.
   Bits depend neither on scheduling nor on the columns beside. Solves with one
   workspace are in one stream. */
cudaError_t hone_cuda_triangles(const hone_sweep *sweep, int sweeps, int64_t n,
                                const float *t, int64_t ld, int64_t k,
                                const double *from, double *to, int64_t ldv,
                                hone_triangle_work *work, cudaStream_t stream);

/* ---- Passes over A in double (cuda_residual.cu) ------------------------ */

/* r = b - op(A) x in double-double, rounded once, and den = |op(A)| |x| +
   |b| in double, for one column; A n x n, lda. b, r and den may be pinned
   memory: each entry is read or written once. again (device, NULL: not wanted):
   r again, r[i] at place[i] (NULL: i). work: hone_cuda_residual_bytes(n) bytes.
   Bits do not depend on scheduling. */
int64_t hone_cuda_residual_bytes(int64_t n);
cudaError_t hone_cuda_residual(int64_t n, const double *a, int64_t lda,
                               bool trans, const double *x, const double *b,
                               double *r, double *den, const int *place,
                               double *again, void *work, cudaStream_t stream);
/* to = from, words of 4 bytes, one of them pinned memory: for what is small. */
struct hone_copy {
  const void *from;
  void *to;
  int64_t words;
};
/* Several at once: one launch takes less time than one copy. */
enum { HONE_COPIES = 4 };
cudaError_t hone_cuda_copy(const hone_copy *list, int count,
                           cudaStream_t stream);

/* What is seen of the columns j .. j+w-1 of A, scaled by the powers of two
   row[i] and col[j] (NULL: not scaled): the largest magnitude of each row
   (row_max[i] = max(row_max[i], ...): zeroed by the caller before the first
   columns) and of each column (col_max[j..] written), the sums of magnitudes
   of each row (row_sum[i] +=, likewise) and column (col_sum[j..] written).
   An entry that is NaN or Inf makes the col_max of its column Inf. */
cudaError_t hone_cuda_inspect(int64_t n, const double *a, int64_t lda,
                              int64_t j, int64_t w, const double *row,
                              const double *col, double *row_max,
                              double *row_sum, double *col_max, double *col_sum,
                              cudaStream_t stream);

/* F[place[i], j..j+w-1] = A[i, j..j+w-1] scaled (NULL: not), rounded to float
   (place NULL: i); magnitudes below FLT_MIN become 0, and those that were not
   0 before are added to *flushed (device). top: raised to the largest
   magnitude written (device, the bits of a nonnegative float; Inf where a
   value is not finite or overflows float). upper: what stands below the
   diagonal is not read and counts as 0. */
cudaError_t hone_cuda_round(int64_t n, const double *a, int64_t lda, int64_t j,
                            int64_t w, const double *row, const double *col,
                            const int *place, bool upper, float *f, int64_t ldf,
                            unsigned long long *flushed, unsigned *top,
                            cudaStream_t stream);
/* a_ij = a_ji for i > j. */
cudaError_t hone_cuda_mirror(int64_t n, double *a, int64_t lda,
                             cudaStream_t stream);
/* As hone_cuda_round from floats, neither scaled nor flushed: a holds the
   columns j .. j+w-1 alone. */
cudaError_t hone_cuda_turn(int64_t n, const float *a, int64_t lda, int64_t j,
                           int64_t w, const int *place, float *f, int64_t ldf,
                           unsigned *top, cudaStream_t stream);

#endif
