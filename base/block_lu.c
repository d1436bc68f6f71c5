/* SPDX-License-Identifier: BSD-3-Clause */
/* LU of a diagonal block and the inverses of its triangles, in single precision
   on one core of the CPU, by panels of STEP columns, right-looking. A panel is
   copied out column by column, so that the search for the pivot and the update
   run along vectors; everything else runs along rows. No loop has a remainder:
   rows and columns are padded to a multiple of STEP. In the LU the padding may
   hold any numbers, because no padded row is ever chosen, and padded columns
   change no other; for the inverses it is the unit matrix.

   The vectors have one width in the source, that of AVX2. The code is compiled
   for AVX2 with FMA and for the compiler's default processor. Vectors of 64
   bytes were no faster (on an EPYC with AVX-512), and without AVX-512 gcc kept
   them in memory. Loops over vectors have an unroll pragma, because gcc
   otherwise unrolls them only after it has put the arrays into memory. Read
   next: block_lu.h. */
#include "base/block_lu.h"

#include "base/base.h"

#include <string.h>

enum { N = HONE_BLOCK, STEP = 8, ROWS = 4 };

typedef float lanes __attribute__((vector_size(32)));
typedef int32_t bits __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

#define UNROLL _Pragma("GCC unroll 16")

/* The compiler turns memcpy into one load or store. */
#define LOAD(v, at) memcpy(&(v), (at), sizeof(v))
#define STORE(at, v) memcpy((at), &(v), sizeof(v))

/* The lanes of a and b by number: 0 to 7 are those of a, 8 to 15 those of b. */
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (bits){__VA_ARGS__})
#endif

static const bits LANE = {0, 1, 2, 3, 4, 5, 6, 7};

INLINE int padded(int w) { return (w + STEP - 1) / STEP * STEP; }

/* Writes the unit matrix behind the first w rows and columns. */
INLINE void complete(int w, float *a) {
  const int to = padded(w);
  for (int i = 0; i < to; i++)
    for (int j = i < w ? w : 0; j < to; j++)
      a[i * N + j] = i == j ? 1.0F : 0.0F;
}

/* ---- A panel ------------------------------------------------------------- */

/* STEP columns of the rows from k on. Rows stay in their places until the panel
   is done: stores of single floats among stores of vectors would stall later
   loads. */
typedef struct panel {
  float column[STEP][N]; /* multipliers */
  float u[STEP][STEP];   /* the panel's rows of U */
  int32_t live[N]; /* all bits set: the row may still become a pivot row */
  int k, width, count;
} panel;

/* The bits of magnitudes are ordered as the magnitudes are; those of NaN are
   above all. */
INLINE void magnitude(const panel *p, int q, int i, bits *m) {
  bits live;
  LOAD(*m, p->column[q] + i);
  LOAD(live, p->live + i);
  *m &= live & INT32_MAX;
}

/* m = the larger of m and its shuffled lanes, at = the rows of the larger ones.
 */
#define FOLD(...)                                                              \
  do {                                                                         \
    const bits m_ = SHUFFLE(m, m, __VA_ARGS__);                                \
    const bits at_ = SHUFFLE(at, at, __VA_ARGS__);                             \
    const bits larger_ = m_ > m;                                               \
    m = (m_ & larger_) | (m & ~larger_);                                       \
    at = (at_ & larger_) | (at & ~larger_);                                    \
  } while (0)

/* A row of the largest magnitude in column q; -1 where all are zero. */
INLINE int largest(const panel *p, int q) {
  bits m = {0}, at = LANE, next;
  for (int i = 0; i < p->count; i += STEP) {
    magnitude(p, q, i, &next);
    const bits larger = next > m;
    m = (next & larger) | (m & ~larger);
    at = ((LANE + i) & larger) | (at & ~larger);
  }
  FOLD(4, 5, 6, 7, 4, 5, 6, 7);
  FOLD(2, 3, 2, 3, 2, 3, 2, 3);
  FOLD(1, 1, 1, 1, 1, 1, 1, 1);
  return m[0] == 0 ? -1 : at[0];
}

/* Divides column q by its pivot, and updates the columns to its right. */
INLINE void eliminate(panel *p, int q) {
  const float pivot = p->u[q][q];
  for (int i = 0; i < p->count; i += STEP) {
    lanes l;
    bits kept, live;
    LOAD(l, p->column[q] + i);
    LOAD(live, p->live + i);
    l /= pivot;
    LOAD(kept, &l);
    kept &= live;
    LOAD(l, &kept);
    STORE(p->column[q] + i, l);
    for (int r = q + 1; r < STEP; r++) {
      lanes c;
      LOAD(c, p->column[r] + i);
      c -= l * p->u[q][r];
      STORE(p->column[r] + i, c);
    }
  }
}

/* Writes which row of the panel became row q into pivot[q]. Returns the first
   zero pivot's column in the matrix, or -1. */
INLINE int factor_panel(panel *p, bool natural, int *pivot) {
  int zero = -1;
  for (int q = 0; q < p->width; q++) {
    int at = natural ? q : largest(p, q);
    for (int i = 0; at < 0; i++) /* all are zero: takes any row that is left */
      at = p->live[i] ? i : at;
    for (int r = 0; r < STEP; r++)
      p->u[q][r] = p->column[r][at];
    pivot[q] = at;
    p->live[at] = 0;
    if (p->u[q][q] != 0.0F) /* true for NaN as well */
      eliminate(p, q);
    else if (zero < 0)
      zero = p->k + q;
  }
  return zero;
}
/* Transposes STEP x STEP floats, whose rows are from_ld and to_ld apart. */
INLINE void transpose(const float *from, int from_ld, float *to, int to_ld) {
  lanes v[STEP], w[STEP];
  UNROLL
  for (int i = 0; i < STEP; i++)
    LOAD(v[i], from + i * from_ld);
  UNROLL
  for (int round = 0; round < 3; round++) {
    UNROLL
    for (int i = 0; i < STEP / 2; i++) {
      const lanes a = v[i], b = v[i + STEP / 2];
      w[2 * i] = SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      w[2 * i + 1] = SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    UNROLL
    for (int i = 0; i < STEP; i++)
      v[i] = w[i];
  }
  UNROLL
  for (int i = 0; i < STEP; i++)
    STORE(to + i * to_ld, v[i]);
}

INLINE void copy_panel_out(panel *p, int w, const float *a) {
  const float *from = a + p->k * N + p->k;
  for (int i = 0; i < p->count; i += STEP) {
    const bits live = LANE + i < w - p->k;
    STORE(p->live + i, live);
    transpose(from + i * N, N, p->column[0] + i, N);
  }
}

INLINE void swap_rows(float *a, float *b) {
  for (int j = 0; j < N; j += STEP) {
    lanes s, t;
    LOAD(s, a + j);
    LOAD(t, b + j);
    STORE(a + j, t);
    STORE(b + j, s);
  }
}

/* Copies the panel back, and then exchanges the whole rows. */
INLINE void copy_panel_back(const panel *p, const int *pivot, float *a,
                            int *row) {
  int order[N],
      place[N]; /* order[i]: the row that is at i; place[i]: where row i is */
  float *to = a + p->k * N + p->k;
  for (int i = 0; i < p->count; i += STEP)
    transpose(p->column[0] + i, N, to + i * N, N);
  for (int i = 0; i < p->count; i++)
    order[i] = place[i] = i;
  for (int q = 0; q < p->width; q++) {
    const int at = place[pivot[q]], i = p->k + q, other = p->k + at;
    const int was = row[i], moved = order[q];
    if (at != q) {
      row[i] = row[other];
      row[other] = was;
      order[at] = moved;
      place[moved] = at;
      swap_rows(a + i * N, a + other * N);
    }
    for (int r = q; r < STEP; r++)
      to[q * N + r] = p->u[q][r];
  }
}

/* ---- Products ------------------------------------------------------------ */

/* c (ROWS x 2 STEP) -= l (ROWS x inner) u (inner x 2 STEP). */
INLINE void subtract_wide(int inner, const float *l, const float *u, float *c) {
  lanes s[ROWS], t[ROWS];
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    LOAD(s[i], c + i * N);
    LOAD(t[i], c + i * N + STEP);
  }
  for (int k = 0; k < inner; k++) {
    lanes x, y;
    LOAD(x, u + k * N);
    LOAD(y, u + k * N + STEP);
    UNROLL
    for (int i = 0; i < ROWS; i++) {
      s[i] -= x * l[i * N + k];
      t[i] -= y * l[i * N + k];
    }
  }
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    STORE(c + i * N, s[i]);
    STORE(c + i * N + STEP, t[i]);
  }
}

/* c -= l u, STEP x STEP. */
INLINE void subtract(int inner, const float *l, const float *u, float *c) {
  lanes s[STEP];
  UNROLL
  for (int i = 0; i < STEP; i++)
    LOAD(s[i], c + i * N);
  for (int k = 0; k < inner; k++) {
    lanes x;
    LOAD(x, u + k * N);
    UNROLL
    for (int i = 0; i < STEP; i++)
      s[i] -= x * l[i * N + k];
  }
  UNROLL
  for (int i = 0; i < STEP; i++)
    STORE(c + i * N, s[i]);
}

/* c (rows x cols) -= l (rows x inner) u (inner x cols). */
INLINE void product(int rows, int cols, int inner, const float *l,
                    const float *u, float *c) {
  int j = 0;
  for (; j + 2 * STEP <= cols; j += 2 * STEP)
    for (int i = 0; i < rows; i += ROWS)
      subtract_wide(inner, l + i * N, u + j, c + i * N + j);
  for (; j < cols; j += STEP)
    for (int i = 0; i < rows; i += STEP)
      subtract(inner, l + i * N, u + j, c + i * N + j);
}

/* b (STEP x STEP) = inv(l) b; l has a unit diagonal. */
INLINE void solve_lower(const float *l, float *b) {
  lanes x[STEP];
  UNROLL
  for (int i = 0; i < STEP; i++) {
    LOAD(x[i], b + i * N);
    UNROLL
    for (int k = 0; k < i; k++)
      x[i] -= x[k] * l[i * N + k];
    STORE(b + i * N, x[i]);
  }
}

/* b = inv(u) b. */
INLINE void solve_upper(const float *u, float *b) {
  lanes x[STEP];
  UNROLL
  for (int i = STEP - 1; i >= 0; i--) {
    LOAD(x[i], b + i * N);
    UNROLL
    for (int k = i + 1; k < STEP; k++)
      x[i] -= x[k] * u[i * N + k];
    x[i] /= u[i * N + i];
    STORE(b + i * N, x[i]);
  }
}

/* ---- The whole block -------------------------------------------------------
 */

INLINE int factor(int w, bool natural, float *a, int *row) {
  const int to = padded(w);
  panel p;
  int zero = -1, pivot[STEP];
  for (int i = 0; i < w; i++)
    row[i] = i;
  for (p.k = 0; p.k < w; p.k += STEP) {
    const int k = p.k, next = k + STEP;
    p.width = HONE_MIN((int)STEP, w - k);
    p.count = to - k;
    copy_panel_out(&p, w, a);
    const int found = factor_panel(&p, natural, pivot);
    zero = zero < 0 ? found : zero;
    copy_panel_back(&p, pivot, a, row);
    for (int j = next; j < to; j += STEP)
      solve_lower(a + k * N + k, a + k * N + j);
    product(to - next, to - next, STEP, a + next * N + k, a + k * N + next,
            a + next * N + next);
  }
  return zero;
}

/* Writes zeros everywhere, and the unit matrix into the blocks on the diagonal.
 */
INLINE void unit_blocks(int to, float *v) {
  memset(v, 0, N * N * sizeof *v);
  for (int i = 0; i < to; i++)
    v[i * N + i] = 1.0F;
}

/* Writes zeros on the diagonal behind w. */
INLINE void clear_rest(int w, float *v) {
  for (int i = w; i < padded(w); i++)
    v[i * N + i] = 0.0F;
}

/* By block columns: V U = I gives V_IJ = -(sum of V_IK U_KJ, I <= K < J) V_JJ.
 */
INLINE void invert_upper(int w, float *a, float *inverse) {
  const int to = padded(w);
  float sum[N * STEP], minus[STEP * N];
  complete(w, a);
  unit_blocks(to, inverse);
  for (int j = 0; j < to; j += STEP) {
    float *v = inverse + j * N + j;
    solve_upper(a + j * N + j, v);
    for (int i = 0; i < STEP; i++)
      for (int k = 0; k < STEP; k++)
        minus[i * N + k] = -v[i * N + k];
    for (int i = 0; i < j; i += STEP) {
      memset(sum, 0, sizeof sum);
      subtract(j - i, inverse + i * N + i, a + i * N + j, sum);
      subtract(STEP, sum, minus, inverse + i * N + j);
    }
  }
  clear_rest(w, inverse);
}

/* By block rows: L V = I gives L_II V_IJ = -sum of L_IK V_KJ, J <= K < I. */
INLINE void invert_lower(int w, float *a, float *inverse) {
  const int to = padded(w);
  complete(w, a);
  unit_blocks(to, inverse);
  for (int i = 0; i < to; i += STEP)
    for (int j = 0; j <= i; j += STEP) {
      float *v = inverse + i * N + j;
      subtract(i - j, a + i * N + j, inverse + j * N + j, v);
      solve_lower(a + i * N + i, v);
    }
  clear_rest(w, inverse);
}

/* ---- Two processors: AVX2 with FMA, and the default -------------------------
 */

#if defined(__x86_64__) && defined(__GNUC__)
#define FAST __attribute__((target("avx2,fma")))

static bool fast(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define FAST

static bool fast(void) { return false; }
#endif

FAST static int factor_fast(int w, bool natural, float *a, int *row) {
  return factor(w, natural, a, row);
}

FAST static void invert_upper_fast(int w, float *a, float *inverse) {
  invert_upper(w, a, inverse);
}

FAST static void invert_lower_fast(int w, float *a, float *inverse) {
  invert_lower(w, a, inverse);
}

static int factor_portable(int w, bool natural, float *a, int *row) {
  return factor(w, natural, a, row);
}

static void invert_upper_portable(int w, float *a, float *inverse) {
  invert_upper(w, a, inverse);
}

static void invert_lower_portable(int w, float *a, float *inverse) {
  invert_lower(w, a, inverse);
}

const hone_block_code hone_block_portable = {
    factor_portable, invert_upper_portable, invert_lower_portable};

int hone_block_lu(int w, bool natural, float *a, int *row) {
  return fast() ? factor_fast(w, natural, a, row)
                : factor_portable(w, natural, a, row);
}

void hone_block_upper(int w, float *a, float *inverse) {
  if (fast())
    invert_upper_fast(w, a, inverse);
  else
    invert_upper_portable(w, a, inverse);
}

void hone_block_lower(int w, float *a, float *inverse) {
  if (fast())
    invert_lower_fast(w, a, inverse);
  else
    invert_lower_portable(w, a, inverse);
}
