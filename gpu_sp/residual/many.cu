/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of many columns in twice the working precision, on the device. The
   arithmetic bounds the time, so the rounding errors are found by fewer
   operations than in residual.cu, by extraction (Rump, Ogita & Oishi 2008).
   Let sigma be 1.5 2^e, and 2^e be more than twice what sums of TERMS products
   can be. From T = sigma on, each product is added by

     t = fl(T + a x),   h = t - T,   L = fl(L + fl(a x - h)),   T = t

   T stays between 2^e and 2^(e+1), so that it is a multiple of u = 2^(e - 52),
   and h is exact; a x - h is at most u / 2. In the end T - sigma + L is the sum
   of the products, wrong by

     TERMS eps u / 2 + (1 + 2 + .. + TERMS) eps u / 2  =  152 eps^2 2^e

   at most (eps = 2^-53, TERMS = 16): what the computed a x - h are wrong by,
   and the additions to L. These sums are added up in pairs hi + lo. What an
   addition to lo rounds off is at most eps |lo|, and eps (eps |hi| + 16 eps
   2^e) where L is added to what hi was rounded by. A thread adds up

     WEIGHT eps 2^e + |lo|,   WEIGHT = 168,

   which times eps bounds all of that but C eps^2 den for C sums. With 2^e from
   the largest exponents of the TERMS entries of a row and of x, it is small
   beside eps den, den = |op(A)| |x|, unless large entries of A meet small ones
   of x. Where it is more than HONE_BLOCK_TERMS eps of the thread's part of den,
   the sums are made once more, as residual.cu does. So no residual has more
   rounding errors than hone_block_terms says (base/engine.h).

   A thread block keeps STEP columns of op(A), of TILE rows, in shared memory;
   each of its warps multiplies them by VECTORS vectors. */
#include "gpu_sp/residual/many.h"

#include "gpu_sp/residual/sums.h"

extern "C" {
#include "base/engine.h"
}

namespace {

enum {
  TILE = WARP, /* rows of a thread block, one for each lane */
  TERMS = 16,  /* real products in each sum of a part of an entry, */
  HALF = TERMS / HONE_PARTS, /* of so many entries: a half of the */
  STEP = 2 * HALF,           /* columns of op(A) that are kept at once */
  FOLDED = 4, /* columns after which sums that are made one by one are folded */
  VECTORS = 8 / HONE_PARTS, /* of a warp */
  MOST_VECTORS = HONE_RESIDUAL_MANY,
  MOST_WARPS = MOST_VECTORS / VECTORS,
  BLOCKS_THERE = 4, /* thread blocks that an SM shall hold */
  PARTS = 4         /* of a row */
};
/* In units of eps 2^e, and of den. */
constexpr double WEIGHT = 168.0 * 0x1p-53, LIMIT = HONE_BLOCK_TERMS * 0x1p-53;

/* Exponents e as above. With the first one L is a sum of multiples of 2^-1074
   below 2^-1021, which is exact: nothing is lost but what a product loses by
   underflow. From the second one on, T might overflow. */
enum { LEAST_EXP = -974, MOST_EXP = 1000, BIAS = 1023 };

struct tile_of_a {
  entry a[STEP][TILE + 1]; /* op(A), by columns */
#ifdef HONE_COMPLEX
  double size[STEP][TILE + 1]; /* the moduli */
#endif
  factor x[STEP][MOST_VECTORS + 2];
  /* The largest tops of each half: of the rows, of what each warp has loaded,
     and of the vectors. */
  int top[2][MOST_WARPS][TILE], x_top[2][MOST_VECTORS];
  /* The sums so far, to which a thread adds once in a half. In the place of
     denominators, which are in registers, the bounds of their errors. */
  double kept[SUMS][MOST_VECTORS][TILE];
};

/* The columns of op(A) that a thread block takes, from 'first' on. */
struct range {
  const hone_entry *a; /* its rows and columns */
  int64_t lda;
  const hone_entry *x; /* the entries for its columns, m apart */
  int64_t m;
  int64_t rows, terms; /* rows from a tile to the end; terms that it takes */
  int count;           /* vectors */
};

/* Returns a number whose bits from 20 on are the biased exponent of v. It is 0
   for 0 alone, and the largest for NaN. */
__device__ inline int top_of_part(double v) {
  const int64_t bits = __double_as_longlong(v);
  return (static_cast<int>(bits >> 32) & 0x7fffffff) |
         (static_cast<int>(bits) != 0 ? 1 : 0);
}

/* Returns the biased exponent, or, where all entries are 0, one that is below
   all others. */
__device__ inline int exponent_of(int top) {
  return top == 0 ? -4096 : top >> 20;
}

#ifdef HONE_COMPLEX
__device__ inline entry no_entry() { return {0.0, 0.0}; }
__device__ inline int top_of(const entry &a) {
  return max(top_of_part(a.x), top_of_part(a.y));
}
__device__ inline int top_of(const factor &x) {
  return max(top_of_part(x.re), top_of_part(x.im));
}
__device__ inline void keep_size(tile_of_a *s, int k, int i, const entry &a) {
  s->size[k][i] = modulus(a.x, a.y);
}
#else
__device__ inline entry no_entry() { return 0.0; }
__device__ inline int top_of(double v) { return top_of_part(v); }
__device__ inline void keep_size(tile_of_a *, int, int, double) {}
#endif

/* Returns the largest top of HALF lanes, one after the other. */
__device__ inline int largest_top(int top) {
#pragma unroll
  for (int d = HALF / 2; d > 0; d /= 2)
    top = max(top, __shfl_xor_sync(ALL, top, d));
  return top;
}

/* A thread's place. */
struct place {
  int lane, warp, warps;
};

/* Brings STEP columns of op(A), from column 'from' of the range on, into shared
   memory, with zeros beyond the end, and the largest tops of its rows. The
   lanes of a line take entries that are contiguous in memory; each thread has
   ABREAST loads under way. */
template <bool TRANS>
__device__ inline void load_tile(const range &r, int64_t from, const place &me,
                                 tile_of_a *s) {
  enum {
    LANES = TRANS ? (int)STEP : (int)WARP,
    LINES = TRANS ? (int)TILE : (int)STEP,
    EACH = WARP / LANES, /* lines of a warp at once */
    ABREAST = LINES / EACH / MOST_WARPS
  };
  const int64_t terms = r.terms - from;
  const int at = me.lane % LANES;
  int most[2] = {};
  for (int line = me.warp * EACH + me.lane / LANES; line < LINES;
       line += ABREAST * me.warps * EACH) {
    entry v[ABREAST];
#pragma unroll
    for (int p = 0; p < ABREAST; p++) {
      const int other = line + p * me.warps * EACH;
      const int k = TRANS ? at : other, i = TRANS ? other : at;
      v[p] = k < terms && i < r.rows && other < LINES
                 ? load_entry<false>(r.a + (TRANS ? from + k + i * r.lda
                                                  : i + (from + k) * r.lda))
                 : no_entry();
    }
#pragma unroll
    for (int p = 0; p < ABREAST; p++) {
      const int other = line + p * me.warps * EACH;
      const int k = TRANS ? at : other, i = TRANS ? other : at;
      const int top = TRANS ? largest_top(top_of(v[p])) : top_of(v[p]);
      most[0] = max(most[0], k < HALF ? top : 0);
      most[1] = max(most[1], k < HALF ? 0 : top);
      if (other < LINES) {
        s->a[k][i] = v[p];
        keep_size(s, k, i, v[p]);
        if (TRANS)
          s->top[k / HALF][0][i] = top;
      }
    }
  }
  for (int half = 0; !TRANS && half < 2; half++)
    s->top[half][me.warp][me.lane] = most[half];
}

/* Brings the entries of the warp's vectors there, and their largest tops. */
__device__ inline void load_x(const range &r, int64_t from, const place &me,
                              tile_of_a *s) {
  const int k = me.lane % STEP, c = me.warp * VECTORS;
#pragma unroll
  for (int p = 0; p < VECTORS; p++) {
    const factor v = from + k < r.terms && c + p < r.count
                         ? factor_of(r.x[from + k + (c + p) * r.m])
                         : factor_of(zero_entry());
    const int top = largest_top(top_of(v));
    if (me.lane < STEP) {
      s->x[k][c + p] = v;
      s->x_top[k / HALF][c + p] = top;
    }
  }
}

__device__ inline sums kept_sums(const tile_of_a &s, int c, int lane) {
  sums of;
#pragma unroll
  for (int k = 0; k < SUMS; k++)
    part_of(of, k) = s.kept[k][c][lane];
  return of;
}
__device__ inline void keep_sums(const sums &of, int c, int lane,
                                 tile_of_a *s) {
#pragma unroll
  for (int k = 0; k < SUMS; k++)
    s->kept[k][c][lane] = part_of(of, k);
}

/* The sums of a thread, of its row and its warp's vectors, in each part of an
   entry. */
struct extracted {
  double t[HONE_PARTS][VECTORS], l[HONE_PARTS][VECTORS];
};

/* Adds -a x_p to a sum of each vector. The vectors go abreast, so that no
   operation waits for the one before it. */
template <class F>
__device__ inline void extract(double a, const F &x, double *t, double *l) {
  double next[VECTORS], high[VECTORS];
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
    next[p] = __fma_rn(a, -x(p), t[p]);
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
    high[p] = __dsub_rn(next[p], t[p]);
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
    high[p] = __fma_rn(a, -x(p), -high[p]);
#pragma unroll
  for (int p = 0; p < VECTORS; p++) {
    l[p] = __dadd_rn(l[p], high[p]);
    t[p] = next[p];
  }
}

#ifdef HONE_COMPLEX
__device__ inline void extract_products(const entry &a, const factor *x,
                                        extracted *e) {
  const auto re = [x](int p) { return x[p].re; };
  const auto im = [x](int p) { return x[p].im; };
  const auto minus_im = [x](int p) { return -x[p].im; };
  extract(a.x, re, e->t[0], e->l[0]);
  extract(a.x, im, e->t[1], e->l[1]);
  extract(a.y, minus_im, e->t[0], e->l[0]);
  extract(a.y, re, e->t[1], e->l[1]);
}
__device__ inline double size_at(const tile_of_a &s, int k, int i) {
  return s.size[k][i];
}
__device__ inline double size_of_factor(const factor &x) { return x.size; }
__device__ inline double size_of_lo(const sums &s) {
  return __dadd_rn(fabs(s.lo), fabs(s.lo_im));
}
__device__ inline void add_extracted(const extracted &e, int p, double sigma,
                                     sums *s) {
  add_pair(__dsub_rn(e.t[0][p], sigma), e.l[0][p], &s->hi, &s->lo);
  add_pair(__dsub_rn(e.t[1][p], sigma), e.l[1][p], &s->hi_im, &s->lo_im);
}
#else
__device__ inline void extract_products(double a, const factor *x,
                                        extracted *e) {
  extract(
      a, [x](int p) { return x[p]; }, e->t[0], e->l[0]);
}
__device__ inline double size_at(const tile_of_a &s, int k, int i) {
  return fabs(s.a[k][i]);
}
__device__ inline double size_of_factor(double x) { return fabs(x); }
__device__ inline double size_of_lo(const sums &s) { return fabs(s.lo); }
__device__ inline void add_extracted(const extracted &e, int p, double sigma,
                                     sums *s) {
  add_pair(__dsub_rn(e.t[0][p], sigma), e.l[0][p], &s->hi, &s->lo);
}
#endif

/* Returns sigma for a row and a vector, by their largest exponents; *bound:
   2^e. Entries below 2^(exponent + 1 - BIAS) have products below 2^(e - 5),
   with TERMS = 2^4. */
__device__ inline double sigma_of(int of_row, int of_x, double *bound) {
  const int e = of_row + of_x - 2 * BIAS + 7;
  const int64_t at = e < LEAST_EXP ? LEAST_EXP : e < MOST_EXP ? e : MOST_EXP;
  const int64_t bits = (at + BIAS) << 52;
  *bound = e < LEAST_EXP  ? 0.0
           : e < MOST_EXP ? __longlong_as_double(bits)
                          : __longlong_as_double((int64_t)0x7ff << 52);
  return __longlong_as_double(bits | ((int64_t)1 << 51));
}

/* Returns the largest exponent of the lane's row in a half. */
__device__ inline int exponent_of_row(const tile_of_a &s, const place &me,
                                      int half, int parts) {
  int top = s.top[half][0][me.lane];
  for (int part = 1; part < parts; part++)
    top = max(top, s.top[half][part][me.lane]);
  return exponent_of(top);
}

/* Adds a half's products of the lane's row and the warp's vectors, by
   extraction; of_row: the largest exponent. */
__device__ inline void add_by_extraction(const place &me, int half, int of_row,
                                         tile_of_a *s, double *den) {
  const int c = me.warp * VECTORS;
  double bound;
  extracted e;
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
#pragma unroll
    for (int part = 0; part < HONE_PARTS; part++) {
      e.t[part][p] =
          sigma_of(of_row, exponent_of(s->x_top[half][c + p]), &bound);
      e.l[part][p] = 0.0;
    }
#pragma unroll 4
  for (int k = half * HALF; k < (half + 1) * HALF; k++) {
    const entry a = s->a[k][me.lane];
    const double size = size_at(*s, k, me.lane);
    factor x[VECTORS];
#pragma unroll
    for (int p = 0; p < VECTORS; p++)
      x[p] = s->x[k][c + p];
    extract_products(a, x, &e);
#pragma unroll
    for (int p = 0; p < VECTORS; p++)
      den[p] = __fma_rn(size, size_of_factor(x[p]), den[p]);
  }
#pragma unroll
  for (int p = 0; p < VECTORS; p++) {
    const double sigma =
        sigma_of(of_row, exponent_of(s->x_top[half][c + p]), &bound);
    sums kept = kept_sums(*s, c + p, me.lane);
    add_extracted(e, p, sigma, &kept);
    kept.den = __fma_rn(WEIGHT, bound, __dadd_rn(kept.den, size_of_lo(kept)));
    keep_sums(kept, c + p, me.lane, s);
  }
}

/* Adds them as residual.cu does, for the vectors whose bits 'which' has. */
__device__ inline void add_one_by_one(const place &me, unsigned which,
                                      tile_of_a *s, double *den) {
  const int c = me.warp * VECTORS;
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
    if (which >> p & 1) {
      sums kept = kept_sums(*s, c + p, me.lane);
      kept.den = den[p];
      for (int k = 0; k < STEP; k++) {
        add_product(s->a[k][me.lane], s->x[k][c + p], &kept);
        if (k % FOLDED == FOLDED - 1)
          fold_sums(&kept);
      }
      den[p] = kept.den;
      keep_sums(kept, c + p, me.lane, s);
    }
}

/* Makes all sums of a range, and the thread's denominators, for the vectors
   whose bits 'which' has: by extraction, or one by one. */
template <bool TRANS>
__device__ inline void add_range(const range &r, bool extracts, unsigned which,
                                 const place &me, tile_of_a *s, double *den) {
#pragma unroll
  for (int p = 0; p < VECTORS; p++)
    if (which >> p & 1) {
      den[p] = 0.0;
      keep_sums({}, me.warp * VECTORS + p, me.lane, s);
    }
  for (int64_t from = 0; from < r.terms; from += STEP) {
    load_tile<TRANS>(r, from, me, s);
    load_x(r, from, me, s);
    __syncthreads();
    for (int half = 0; extracts && half < 2; half++)
      add_by_extraction(me, half,
                        exponent_of_row(*s, me, half, TRANS ? 1 : me.warps), s,
                        den);
    if (!extracts)
      add_one_by_one(me, which, s, den);
    __syncthreads();
  }
}

/* Returns the bits of the vectors whose sums are not as accurate as they have
   to be. */
__device__ inline unsigned inaccurate(const tile_of_a &s, const place &me,
                                      const double *den) {
  unsigned which = 0;
#pragma unroll
  for (int p = 0; p < VECTORS; p++) {
    const double bound = kept_sums(s, me.warp * VECTORS + p, me.lane).den;
    which |= (bound <= LIMIT * den[p] ? 0U : 1U) << p;
  }
  return which;
}

/* n: rows of op(A), m: its columns; x: m entries for each vector. */
template <bool TRANS>
__global__ void __launch_bounds__(MOST_WARPS *WARP, BLOCKS_THERE)
    many_parts(int64_t n, int64_t m, const hone_entry *__restrict__ a,
               int64_t lda, const hone_entry *__restrict__ x, int count,
               int64_t width, double *__restrict__ work) {
  __shared__ tile_of_a s;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * TILE;
  const int64_t from = blockIdx.y * width;
  const range r = {a + (TRANS ? from + row * lda : row + from * lda),
                   lda,
                   x + from,
                   m,
                   n - row,
                   from + width < m ? width : m - from,
                   count};
  const place me = {static_cast<int>(threadIdx.x % WARP),
                    static_cast<int>(threadIdx.x / WARP),
                    static_cast<int>(blockDim.x / WARP)};
  double den[VECTORS];
  add_range<TRANS>(r, true, ~0U, me, &s, den);
  const unsigned again = inaccurate(s, me, den);
  if (__syncthreads_or(again != 0))
    add_range<TRANS>(r, false, again, me, &s, den);
#pragma unroll
  for (int p = 0; p < VECTORS; p++) {
    const int c = me.warp * VECTORS + p;
    sums of = kept_sums(s, c, me.lane);
    of.den = den[p];
    if (me.lane < r.rows && c < count)
      put_sums(work + c * SUMS * gridDim.y * n, n, gridDim.y, blockIdx.y,
               row + me.lane, of);
  }
}

} // namespace

bool hone_cuda_many_serves(const hone_double_matrix &a, int64_t count) {
  return count >= HONE_RESIDUAL_MANY_FROM && a.n >= HONE_RESIDUAL_MANY_ORDER &&
         a.m >= HONE_RESIDUAL_MANY_ORDER;
}

int64_t hone_cuda_many_width(int64_t m) {
  return STEP * divide_up(m, STEP * PARTS);
}

int64_t hone_cuda_many_bytes(int64_t n, int64_t m) {
  if (n < HONE_RESIDUAL_MANY_ORDER || m < HONE_RESIDUAL_MANY_ORDER)
    return 0; /* none are made here */
  const int64_t rows = n * divide_up(m, hone_cuda_many_width(m));
  const int64_t dots = m * divide_up(n, hone_cuda_many_width(n));
  return static_cast<int64_t>(sizeof(sums)) * (rows > dots ? rows : dots) *
         HONE_RESIDUAL_MANY;
}

cudaError_t hone_cuda_many_parts(const hone_double_matrix &a, bool trans,
                                 const hone_entry *x, int64_t count,
                                 double *work, cudaStream_t stream) {
  const int64_t n = trans ? a.m : a.n, m = trans ? a.n : a.m;
  const int64_t width = hone_cuda_many_width(m);
  const dim3 grid(blocks_of(n, TILE), blocks_of(m, width));
  auto kernel = trans ? many_parts<true> : many_parts<false>;
  HONE_LAUNCH(kernel, grid, WARP * blocks_of(count, VECTORS), 0, stream, n, m,
              a.a, a.lda, x, static_cast<int>(count), width, work);
  return cudaGetLastError();
}
