/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels between the panels of the blocked LU (lu.cu), in single
   precision: the triangular solve that computes the pivot rows of U,
   and the splitting of L and U into the 16-bit operands of the trailing update.
   Read next: split_float.h for the splitting of one float, rows_of_u.h for the
   solve, panel.cu for the panels. */
#include "gpu_sp/factor/rows_of_u.h"

namespace {

enum {
  THREADS = 256,
  SPLIT_ROWS = THREADS / HONE_WIDE, /* of L, a float a thread */
  SPLIT_BLOCKS = 264, /* thread blocks that split L beside others */
  SHARE_ABOVE = 4     /* lanes for a column, from which products with rows above
                         are subtracted */
};

const int64_t MANY_COLUMNS = 12288; /* docs/performance.md */

/* ---- Splitting L --------------------------------------------------------- */

__global__ void set_scale(bool fp16, const unsigned *top,
                          hone_split_scale *scale) {
  const float max = __uint_as_float(*top);
  int e = 0;
  if (fp16 && max > 0.0F && max <= 3.4e38F)
    (void)frexpf(max, &e);
  e = e > 120 ? 120 : (e < -112 ? -112 : e); /* alpha stays normal */
  /* The largest entry of the block column becomes 8, so that U may grow
     4096-fold. */
  scale->l = fp16 ? 1024.0F : 1.0F;
  scale->u = fp16 ? ldexpf(8.0F, -e) : 1.0F;
  scale->alpha = fp16 ? -ldexpf(1.0F / 8192.0F, e) : -1.0F;
}

/* Splits the columns k .. of the rows i0 .. n-1; thread block 'block' of
   'blocks'. A thread takes one float of several rows, and loads some of them at
   once. */
template <class T, bool THREE>
__device__ __forceinline__ void
split_rows_of_l(const hone_float_matrix &a, int64_t i0, int64_t k, int w,
                const hone_operand &to, int64_t block, int64_t blocks) {
  constexpr int AT_ONCE = 4;
  const float *const f = a.f;
  const int64_t ld = a.ld, n = a.n, ldo = to.ldo;
  typename T::type *const out = static_cast<typename T::type *>(to.out);
  const int c = (int)threadIdx.x % HONE_WIDE;
  const int64_t step = blocks * SPLIT_ROWS;
  const float factor = to.scale->l;
  for (int64_t first = i0 + block * SPLIT_ROWS + (int)threadIdx.x / HONE_WIDE;
       first < n; first += AT_ONCE * step) {
    float v[AT_ONCE];
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      const int64_t i = first + e * step;
      v[e] = 0.0F;
      if (i < n && c < HONE_PARTS * w &&
          i > k + c / HONE_PARTS) /* strictly lower */
        v[e] = f[i * ld + HONE_PARTS * k + c] * factor;
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      const int64_t i = first + e * step;
      if (i >= n)
        break;
      const two_parts<T> p = split<T>(v[e], to.overflow);
      typename T::type *at = out + (i - i0) * ldo + c;
      at[to.place.hh] = p.hi;
      if (THREE) {
        at[to.place.lo] = p.hi;
        at[to.place.hi] = p.lo;
      }
    }
  }
}

/* Does so for blocks of HONE_PANEL columns, which blockIdx.y counts. */
template <class T, bool THREE>
__global__ void __launch_bounds__(THREADS)
    split_l(const hone_float_matrix a, int64_t i0, int64_t k, int w,
            hone_operand to) {
  const int block = (int)blockIdx.y;
  to.place = place_behind(to.place, block);
  split_rows_of_l<T, THREE>(a, i0, k + block * HONE_PANEL,
                            w - block * HONE_PANEL, to, blockIdx.x, gridDim.x);
}

/* ---- The pivot rows of U ------------------------------------------------ */

template <class T, int PARTS, bool SPD, int E>
__global__ void __launch_bounds__(ROWS_THREADS)
    solve_rows(float *f, int64_t ld, const hone_u_rows rows,
               const hone_split_scale *scale, const rows_out<T> o) {
  HONE_DYNAMIC_SHARED(rows_shared<E>, sh);
  solve_rows_of_block<T, PARTS, SPD, E>(f, ld, rows, scale, o, sh);
}

template <class T, int PARTS>
__global__ void __launch_bounds__(ROWS_THREADS)
    solve_panels(float *f, int64_t ld, const hone_u_rows rows,
                 const hone_split_scale *scale, const rows_out<T> o) {
  HONE_DYNAMIC_SHARED(rows_shared<1>, sh);
  solve_panels_of_block<T, PARTS>(f, ld, rows, scale, o, sh);
}

template <class T, int PARTS, bool ABOVE, int SHARE>
__global__ void __launch_bounds__(ROWS_THREADS)
    solve_moved_rows(float *f, int64_t ld, const hone_u_rows rows,
                     const hone_split_scale *scale, const rows_out<T> o) {
  HONE_DYNAMIC_SHARED(rows_shared<1>, sh);
  solve_moved_rows_of_block<T, PARTS, ABOVE, SHARE>(f, ld, rows, scale, o, sh);
}

/* The launch behind an inner panel (hone_cuda_follow_panel): the first thread
   blocks compute rows of U, the next ones move rows, the others split L. */
template <class T> struct follow_args {
  hone_float_matrix f;
  hone_u_rows rows;
  int64_t from;
  const hone_split_scale *scale;
  rows_out<T> u;
  hone_operand l;
  unsigned solving, moving;
};

template <class T, int PARTS>
__global__ void __launch_bounds__(ROWS_THREADS)
    follow_panel(const follow_args<T> args) {
  HONE_DYNAMIC_SHARED(rows_shared<1>, sh);
  const hone_u_rows &rows = args.rows;
  const unsigned moving = blockIdx.x - args.solving;
  const int tid = (int)threadIdx.x;
  if (blockIdx.x < args.solving) {
    solve_moved_rows_of_block<T, PARTS, false, 1>(args.f.f, args.f.ld, rows,
                                                  args.scale, args.u, sh);
  } else if (moving < args.moving) {
    const int64_t c = args.from + (int64_t)moving * 32 + tid % 32;
    move_in_column(args.f.f + HONE_PARTS * c, args.f.ld, c < rows.k, rows.moves,
                   tid / 32);
  } else if (PARTS > 0) {
    const unsigned others = args.solving + args.moving;
    split_rows_of_l<T, PARTS == 3>(args.f, rows.k + rows.w, rows.k, (int)rows.w,
                                   args.l, blockIdx.x - others,
                                   gridDim.x - others);
  }
}

unsigned blocks_of(int64_t count, int64_t each) {
  return (unsigned)((count + each - 1) / each);
}

} // namespace

cudaError_t hone_cuda_split_scale(enum hone_split split, const unsigned *top,
                                  hone_split_scale *scale,
                                  cudaStream_t stream) {
  const bool fp16 = split == HONE_SPLIT_FP16_3 || split == HONE_SPLIT_FP16_1;
  HONE_LAUNCH(set_scale, 1, 1, 0, stream, fp16, top, scale);
  return cudaGetLastError();
}

template <class T, bool THREE>
static cudaError_t launch_split(const hone_float_matrix &f, int64_t i0,
                                int64_t k, int64_t w, const hone_operand &to,
                                cudaStream_t stream) {
  /* So many thread blocks took no longer than 2048 for each inner panel. */
  const unsigned panels = blocks_of(w, HONE_PANEL);
  const unsigned most = (2 * SPLIT_BLOCKS + panels - 1) / panels;
  const unsigned blocks = blocks_of(f.n - i0, SPLIT_ROWS);
  const dim3 grid(blocks < most ? blocks : most, panels);
  HONE_LAUNCH((split_l<T, THREE>), grid, THREADS, 0, stream, f, i0, k, (int)w,
              to);
  return cudaGetLastError();
}

cudaError_t hone_cuda_split_l(const hone_float_matrix &f, int64_t i0, int64_t k,
                              int64_t w, const hone_operand &to,
                              cudaStream_t stream) {
  if (to.split == HONE_SPLIT_NONE || i0 >= f.n)
    return cudaSuccess;
  auto launch = launch_split<half_type, true>;
  if (to.split == HONE_SPLIT_FP16_1)
    launch = launch_split<half_type, false>;
  else if (to.split == HONE_SPLIT_BF16_3)
    launch = launch_split<bfloat_type, true>;
  else if (to.split == HONE_SPLIT_BF16_1)
    launch = launch_split<bfloat_type, false>;
  return launch(f, i0, k, w, to, stream);
}

template <class T>
using rows_kernel = void (*)(float *, int64_t, hone_u_rows,
                             const hone_split_scale *, rows_out<T>);

/* Launches the kernel, a thread block of which has so many columns. */
template <class T>
static cudaError_t
launch_rows_kernel(rows_kernel<T> kernel, size_t shared, int columns,
                   const hone_float_matrix &f, const hone_u_rows &rows,
                   const hone_split_scale *scale, const rows_out<T> &o,
                   cudaStream_t stream) {
  const cudaError_t e = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH(kernel, blocks_of(rows.c1 - rows.c0, columns), ROWS_THREADS,
              shared, stream, f.f, f.ld, rows, scale, o);
  return cudaGetLastError();
}

/* With many columns of one inner panel a lane takes several, so long as every
   multiprocessor has some. Cholesky's rows of U neither move nor wait for those
   above. */
template <class T, int PARTS, bool SPD>
static cudaError_t launch_rows(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  typedef typename T::type number_type;
  const rows_out<T> o = {static_cast<number_type *>(to.out),
                         to.ldo,
                         static_cast<number_type *>(left.out),
                         left.ldo,
                         to.place,
                         to.overflow};
  rows_kernel<T> kernel = solve_rows<T, PARTS, SPD, 1>;
  size_t shared = sizeof(rows_shared<1>);
  int columns = 32;
  if constexpr (!SPD) {
    if (rows.moves && rows.left > 0 && rows.spread) {
      kernel = solve_moved_rows<T, PARTS, true, SHARE_ABOVE>;
      columns = 32 / SHARE_ABOVE;
    } else if (rows.moves && rows.left > 0) {
      kernel = solve_moved_rows<T, PARTS, true, 1>;
    } else if (rows.moves) {
      kernel = solve_moved_rows<T, PARTS, false, 1>;
    } else if (rows.w > HONE_PANEL) {
      kernel = solve_panels<T, PARTS>;
    }
  }
  if ((rows.moves && rows.left > 0) || rows.w > HONE_PANEL)
    shared += HONE_PANEL * (size_t)columns * sizeof(number);
  if (!rows.moves && rows.w <= HONE_PANEL && rows.c1 - rows.c0 > MANY_COLUMNS) {
    kernel = solve_rows<T, PARTS, SPD, 4>;
    shared = sizeof(rows_shared<4>);
    columns = 4 * 32;
  }
  return launch_rows_kernel<T>(kernel, shared, columns, f, rows, to.scale, o,
                               stream);
}

template <bool SPD>
static cudaError_t choose_rows(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  if (rows.c1 <= rows.c0)
    return cudaSuccess;
  auto launch = launch_rows<half_type, 0, SPD>;
  if (to.split == HONE_SPLIT_FP16_3)
    launch = launch_rows<half_type, 3, SPD>;
  else if (to.split == HONE_SPLIT_FP16_1)
    launch = launch_rows<half_type, 1, SPD>;
  else if (to.split == HONE_SPLIT_BF16_3)
    launch = launch_rows<bfloat_type, 3, SPD>;
  else if (to.split == HONE_SPLIT_BF16_1)
    launch = launch_rows<bfloat_type, 1, SPD>;
  return launch(f, rows, to, left, stream);
}

cudaError_t hone_cuda_rows(const hone_float_matrix &f, const hone_u_rows &rows,
                           const hone_operand &to, cudaStream_t stream) {
  return choose_rows<false>(f, rows, to, {nullptr, 0}, stream);
}

cudaError_t hone_cuda_rows_spd(const hone_float_matrix &f,
                               const hone_u_rows &rows, const hone_operand &to,
                               const hone_left_operand &left,
                               cudaStream_t stream) {
  return choose_rows<true>(f, rows, to, left, stream);
}

template <class T, int PARTS>
static cudaError_t launch_follow(const hone_float_matrix &f,
                                 const hone_u_rows &rows, int64_t from,
                                 const hone_operand &u, const hone_operand &l,
                                 cudaStream_t stream) {
  typedef typename T::type number;
  const size_t shared = sizeof(rows_shared<1>);
  const int64_t below = f.n - rows.k - rows.w;
  follow_args<T> args = {f, rows, from, u.scale, {}, l, 0, 0};
  args.u.out = static_cast<number *>(u.out);
  args.u.ldo = u.ldo;
  args.u.place = u.place;
  args.u.overflow = u.overflow;
  args.solving = blocks_of(rows.c1 - rows.c0, 32);
  args.moving = blocks_of(rows.k - from, 32);
  unsigned splitting = PARTS > 0 ? blocks_of(below, SPLIT_ROWS) : 0;
  splitting = splitting < SPLIT_BLOCKS ? splitting : (unsigned)SPLIT_BLOCKS;
  const cudaError_t e = cudaFuncSetAttribute(
      follow_panel<T, PARTS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
      (int)shared);
  if (e != cudaSuccess)
    return e;
  HONE_LAUNCH((follow_panel<T, PARTS>), args.solving + args.moving + splitting,
              ROWS_THREADS, shared, stream, args);
  return cudaGetLastError();
}

cudaError_t hone_cuda_follow_panel(const hone_float_matrix &f,
                                   const hone_u_rows &rows, int64_t from,
                                   const hone_operand &u, const hone_operand &l,
                                   cudaStream_t stream) {
  auto launch = launch_follow<half_type, 0>;
  if (u.split == HONE_SPLIT_FP16_3)
    launch = launch_follow<half_type, 3>;
  else if (u.split == HONE_SPLIT_FP16_1)
    launch = launch_follow<half_type, 1>;
  else if (u.split == HONE_SPLIT_BF16_3)
    launch = launch_follow<bfloat_type, 3>;
  else if (u.split == HONE_SPLIT_BF16_1)
    launch = launch_follow<bfloat_type, 1>;
  return launch(f, rows, from, u, l, stream);
}
