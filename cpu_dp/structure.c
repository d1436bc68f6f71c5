/* SPDX-License-Identifier: BSD-3-Clause */
/* Bands and symmetry. Both looks end with the first entries that leave no
   hope: a full matrix has one in a corner, and one pair of unequal mirror
   images among the first tried. */
#include "cpu_dp/structure.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

enum {
  TASKS = 16,       /* at most */
  COLUMNS = 128,    /* of a task, at least */
  RUN = 32,         /* entries compared with zero at once */
  PAIRS = 128,      /* mirror images compared before the others */
  TILE = 32,        /* order of the squares compared with their images */
  SHARED_FROM = 400 /* order from which threads take part */
};

/* Bands ------------------------------------------------------------------- */

static bool all_zero(const hone_entry *a) {
  int other = 0;
  for (int i = 0; i < RUN; i++)
    other |= !(a[i] == 0.0);
  return other == 0;
}

/* The last entry of a[from .. to-1] that is not zero, or from - 1. Looks at
   the end, then forward from the start: memory is several times slower
   backward. */
static int64_t last_other(const hone_entry *a, int64_t from, int64_t to) {
  int64_t end = from, i = from;
  if (to > from && !(a[to - 1] == 0.0))
    return to - 1;
  for (; to - i >= RUN; i += RUN)
    if (!all_zero(a + i))
      end = i + RUN;
  if (i < to)
    end = to;
  while (end > from && a[end - 1] == 0.0)
    end--;
  return end - 1;
}

/* The first, or to. */
static int64_t first_other(const hone_entry *a, int64_t from, int64_t to) {
  while (to - from >= RUN && all_zero(a + from))
    from += RUN;
  while (from < to && a[from] == 0.0)
    from++;
  return from;
}

typedef struct band {
  int64_t lower, upper;
} band;

static bool promising(const band *b, int64_t n) {
  return b->lower == 0 || b->upper == 0 ||
         hone_band_pays(b->lower, b->upper, n);
}

/* The band with what column j has outside it. */
static void widen(const hone_dense *a, int64_t j, band *b) {
  const hone_entry *column = a->a + j * a->lda;
  const int64_t below = HONE_MIN(j + b->lower + 1, a->n);
  const int64_t above = HONE_MAX(j - b->upper, (int64_t)0);
  b->lower = HONE_MAX(b->lower, last_other(column, below, a->n) - j);
  b->upper = HONE_MAX(b->upper, j - first_other(column, 0, above));
}

typedef struct band_job {
  const hone_dense *a;
  band probed;
  int64_t tasks;
  band found[TASKS];
} band_job;

static void widen_task(void *ctx, int64_t task) {
  band_job *job = ctx;
  const int64_t n = job->a->n;
  const int64_t from = n * task / job->tasks, to = n * (task + 1) / job->tasks;
  band b = job->probed;
  for (int64_t j = from; j < to && promising(&b, n); j++)
    widen(job->a, j, &b);
  job->found[task] = b;
}

int64_t hone_structure_sample(int64_t n, int k) { /* both corners first */
  const int64_t at = (n - 1) * (k / 2) / HONE_STRUCTURE_SAMPLES;
  return k % 2 ? n - 1 - at : at;
}

/* The band that the first columns leave. False: nothing narrow. */
static bool probe_band(const hone_dense *a, band *b) {
  *b = (band){0, 0};
  for (int k = 0; k < HONE_STRUCTURE_SAMPLES && promising(b, a->n); k++)
    widen(a, hone_structure_sample(a->n, k), b);
  return promising(b, a->n);
}

/* False: nothing narrow. */
static bool find_band(hone_pool *pool, const hone_dense *a, band *b) {
  const int64_t n = a->n, tasks = (n + COLUMNS - 1) / COLUMNS;
  band_job job = {.a = a, .tasks = HONE_MIN(tasks, (int64_t)TASKS)};
  if (!probe_band(a, b))
    return false;
  job.probed = *b;
  hone_pool_run(n < SHARED_FROM ? NULL : pool, job.tasks, widen_task, &job);
  for (int64_t t = 0; t < job.tasks; t++) {
    b->lower = HONE_MAX(b->lower, job.found[t].lower);
    b->upper = HONE_MAX(b->upper, job.found[t].upper);
  }
  return promising(b, n);
}

/* Symmetry ---------------------------------------------------------------- */

/* splitmix64: the same pairs for an order every time. */
static int64_t random_below(uint64_t *state, int64_t n) {
  uint64_t z = *state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return (int64_t)((z ^ (z >> 31)) % (uint64_t)n);
}

static bool pairs_equal(const hone_dense *a) {
  uint64_t state = (uint64_t)a->n;
  for (int p = 0; p < PAIRS && a->n > 1; p++) {
    const int64_t i = random_below(&state, a->n);
    const int64_t j = (i + 1 + random_below(&state, a->n - 1)) % a->n;
    if (!(a->a[i + j * a->lda] == hone_conj(a->a[j + i * a->lda])))
      return false;
  }
  return true;
}

/* root = sqrt(a_jj), a little large, so that no rounding of a product makes it
   too small for a_ij; false: one is not positive, or not finite. */
static bool take_roots(const hone_dense *a, double *root) {
  for (int64_t j = 0; j < a->n; j++) {
    const double d = hone_real(a->a[j * (a->lda + 1)]);
    if (!(d > 0.0) || !(d <= DBL_MAX))
      return false;
    root[j] = sqrt(d) * (1.0 + 0x1p-50);
  }
  return true;
}

typedef struct mirror_job {
  const hone_dense *a;
  const double *root; /* n; NULL: symmetry is all */
  _Atomic int unlike;
} mirror_job;

/* Columns j .. j+w-1, rows i .. i+m-1 against their mirror images, and
   against the diagonal: a minor of two is a_ii a_jj - a_ij^2. */
static bool tile_unlike(const mirror_job *job, int64_t i, int64_t m, int64_t j,
                        int64_t w) {
  const int64_t lda = job->a->lda;
  hone_entry image[TILE * TILE];
  int unlike = 0;
  for (int64_t r = 0; r < m; r++) {
    const hone_entry *mirror = job->a->a + j + (i + r) * lda;
    for (int64_t c = 0; c < w; c++)
      image[c * TILE + r] = mirror[c];
  }
  for (int64_t c = 0; c < w; c++) {
    const hone_entry *restrict tile = job->a->a + i + (j + c) * lda;
    for (int64_t r = 0; r < m; r++)
      unlike |= !(tile[r] == hone_conj(image[c * TILE + r]));
    if (job->root == NULL)
      continue;
    const double *restrict root = job->root + i, own = job->root[j + c];
    for (int64_t r = 0; r < m; r++)
      unlike |= !(hone_abs(tile[r]) <= root[r] * own);
  }
  return unlike != 0;
}

static void mirror_task(void *ctx, int64_t task) {
  mirror_job *job = ctx;
  const int64_t n = job->a->n, j = task * TILE;
  const int64_t w = HONE_MIN((int64_t)TILE, n - j);
  for (int64_t i = j; i < n; i += TILE) {
    if (atomic_load_explicit(&job->unlike, memory_order_relaxed))
      return;
    if (tile_unlike(job, i, HONE_MIN((int64_t)TILE, n - i), j, w))
      atomic_store_explicit(&job->unlike, 1, memory_order_relaxed);
  }
}

static bool all_alike(hone_pool *pool, const hone_dense *a,
                      const double *root) {
  mirror_job job = {.a = a, .root = root};
  hone_pool_run(a->n < SHARED_FROM ? NULL : pool, (a->n + TILE - 1) / TILE,
                mirror_task, &job);
  return job.unlike == 0;
}

static bool may_be_definite(hone_pool *pool, const hone_dense *a,
                            double *root) {
  return pairs_equal(a) && take_roots(a, root) && all_alike(pool, a, root);
}

bool hone_structure_symmetric(hone_pool *pool, const hone_dense *a) {
  return pairs_equal(a) && all_alike(pool, a, NULL);
}

bool hone_structure_excluded(const hone_dense *a, bool definite) {
  band b;
  if (probe_band(a, &b))
    return false;
  for (int k = 1; definite && k < HONE_STRUCTURE_SAMPLES; k++)
    for (int q = 0; q < k; q++) {
      const int64_t i = hone_structure_sample(a->n, k);
      const int64_t j = hone_structure_sample(a->n, q);
      if (!(a->a[i + j * a->lda] == hone_conj(a->a[j + i * a->lda])))
        return true;
    }
  return !definite;
}

void hone_structure_find(hone_pool *pool, const hone_dense *a, bool definite,
                         double *scratch, hone_structure *out) {
  band b;
  *out = (hone_structure){.lower = a->n - 1, .upper = a->n - 1};
  if (find_band(pool, a, &b)) {
    out->lower = b.lower;
    out->upper = b.upper;
  } else if (definite) {
    out->definite = may_be_definite(pool, a, scratch);
  }
}
