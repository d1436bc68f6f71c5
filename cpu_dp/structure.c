/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds narrow bands, triangles and symmetry of a dense A, exactly, in double
   precision. Each search ends as soon as the entries read exclude what it looks
   for: a full matrix has a nonzero entry in a corner, and an unsymmetric one
   differs in one of the first pairs a_ij, a_ji compared. Read
   hone_structure_find, at the end, first; dense.c calls it. */
#include "cpu_dp/structure.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>

enum {
  MAX_TASKS = 16,      /* the most tasks of the search for a band */
  TASK_COLUMNS = 128,  /* the fewest columns of a task */
  CHUNK = 32,          /* entries compared with zero at once */
  SAMPLED_PAIRS = 128, /* pairs a_ij, a_ji compared before the others */
  TILE = 64, /* order of the blocks compared with their mirror images */
  SAMPLED_TILES = 16, /* tiles to a side from which a sample is cheaper; */
  SAMPLES = 4,        /* it has so many block columns of so many columns, whose
                         mirror images fill one cache line, or two */
  SAMPLED_WIDTH = 8,
  AHEAD = 12, /* columns that are fetched before they are needed */
  LINE = 64   /* bytes of a cache line */
};

/* Bands ------------------------------------------------------------------- */

static bool all_zero(const hone_entry *a) {
  int nonzero = 0;
  for (int i = 0; i < CHUNK; i++)
    nonzero |= !(a[i] == 0.0);
  return nonzero == 0;
}

/* Returns the index of the last nonzero entry of a[from .. to-1], or from - 1.
   The last entry is tested first; the others are read forward, since reading
   memory backward is several times slower. */
static int64_t last_nonzero(const hone_entry *a, int64_t from, int64_t to) {
  int64_t end = from, i = from;
  if (to > from && !(a[to - 1] == 0.0))
    return to - 1;
  for (; to - i >= CHUNK; i += CHUNK)
    if (!all_zero(a + i))
      end = i + CHUNK;
  if (i < to)
    end = to;
  while (end > from && a[end - 1] == 0.0)
    end--;
  return end - 1;
}

/* Returns the index of the first nonzero entry of a[from .. to-1], or to. */
static int64_t first_nonzero(const hone_entry *a, int64_t from, int64_t to) {
  while (to - from >= CHUNK && all_zero(a + from))
    from += CHUNK;
  while (from < to && a[from] == 0.0)
    from++;
  return from;
}

typedef struct band {
  int64_t lower, upper;
} band;

static bool band_still_pays(const band *b, int64_t n) {
  return b->lower == 0 || b->upper == 0 ||
         hone_band_pays(b->lower, b->upper, n);
}

/* Widens the band b until it includes every nonzero entry of column j. */
static void include_column(const hone_dense *a, int64_t j, band *b) {
  const hone_entry *column = a->a + j * a->lda;
  const int64_t below = HONE_MIN(j + b->lower + 1, a->n);
  const int64_t above = HONE_MAX(j - b->upper, (int64_t)0);
  b->lower = HONE_MAX(b->lower, last_nonzero(column, below, a->n) - j);
  b->upper = HONE_MAX(b->upper, j - first_nonzero(column, 0, above));
}

typedef struct band_job {
  const hone_dense *a;
  band sampled;
  int64_t tasks;
  band found[MAX_TASKS];
} band_job;

static void find_band_task(void *ctx, int64_t task) {
  band_job *job = ctx;
  const int64_t n = job->a->n;
  const int64_t from = n * task / job->tasks, to = n * (task + 1) / job->tasks;
  band b = job->sampled;
  for (int64_t j = from; j < to && band_still_pays(&b, n); j++)
    include_column(job->a, j, &b);
  job->found[task] = b;
}

int64_t hone_structure_sample(int64_t n, int k) {
  const int64_t at = (n - 1) * (k / 2) / HONE_STRUCTURE_SAMPLES;
  return k % 2 ? n - 1 - at : at;
}

/* Finds the band of so many sampled columns. Returns false if that band is
   already too wide to pay. */
static bool sample_band(const hone_dense *a, int samples, band *b) {
  *b = (band){0, 0};
  for (int k = 0; k < samples && band_still_pays(b, a->n); k++)
    include_column(a, hone_structure_sample(a->n, k), b);
  return band_still_pays(b, a->n);
}

/* Finds the band of A. Returns false if it is too wide to pay. */
static bool find_band(hone_pool *pool, const hone_dense *a, band *b) {
  const int64_t n = a->n, tasks = (n + TASK_COLUMNS - 1) / TASK_COLUMNS;
  band_job job = {.a = a, .tasks = HONE_MIN(tasks, (int64_t)MAX_TASKS)};
  if (!sample_band(a, HONE_STRUCTURE_SAMPLES, b))
    return false;
  job.sampled = *b;
  hone_pool_run(n < HONE_THREADS_FROM ? NULL : pool, job.tasks, find_band_task,
                &job);
  for (int64_t t = 0; t < job.tasks; t++) {
    b->lower = HONE_MAX(b->lower, job.found[t].lower);
    b->upper = HONE_MAX(b->upper, job.found[t].upper);
  }
  return band_still_pays(b, n);
}

/* Symmetry ---------------------------------------------------------------- */

static int64_t random_below(uint64_t *state, int64_t n) {
  return (int64_t)(hone_random_bits(state) % (uint64_t)n);
}

/* Compares pairs a_ij, a_ji at places that depend on the order alone. */
static bool sampled_pairs_equal(const hone_dense *a) {
  uint64_t state = (uint64_t)a->n;
  for (int p = 0; p < SAMPLED_PAIRS && a->n > 1; p++) {
    const int64_t i = random_below(&state, a->n);
    const int64_t j = (i + 1 + random_below(&state, a->n - 1)) % a->n;
    if (!(a->a[i + j * a->lda] == hone_conj(a->a[j + i * a->lda])))
      return false;
  }
  return true;
}

/* Returns sqrt(a_jj), rounded up by a few units, so that the rounding of a
   product of two cannot make it smaller than an |a_ij| that it bounds; 0 if
   a_jj is not real, not positive or not finite. */
static double diagonal_root(const hone_dense *a, int64_t j) {
  const hone_entry entry = a->a[j * (a->lda + 1)];
  const double d = hone_real(entry);
  if (!(entry == hone_conj(entry)) || !(d > 0.0) || !(d <= DBL_MAX))
    return 0.0;
  return sqrt(d) * (1.0 + 0x1p-50);
}

/* Fills root with them. Returns false if one is 0. */
static bool diagonal_roots(const hone_dense *a, double *root) {
  for (int64_t j = 0; j < a->n; j++) {
    root[j] = diagonal_root(a, j);
    if (!(root[j] > 0.0))
      return false;
  }
  return true;
}

typedef struct symmetry_job {
  const hone_dense *a;
  const double *root; /* n; NULL: only symmetry is tested */
  _Atomic int found_difference;
} symmetry_job;

/* Is an entry of a column not the conjugate of its mirror image? */
HONE_VECTOR static bool column_differs(int64_t m, const hone_entry *column,
                                       const hone_entry *image) {
  uint64_t bad = 0;
  for (int64_t r = 0; r < m; r++)
    bad |= (uint64_t) !(column[r] == hone_conj(image[r]));
  return bad != 0;
}

/* Is a principal minor of order two, a_ii a_jj - a_ij^2, negative? */
HONE_VECTOR static bool column_is_large(int64_t m, const hone_entry *column,
                                        const double *root, double root_j) {
  uint64_t bad = 0;
  for (int64_t r = 0; r < m; r++)
    bad |= (uint64_t) !(hone_abs(column[r]) <= root[r] * root_j);
  return bad != 0;
}

/* Compares columns j .. j+w-1, rows i .. i+m-1 with their mirror images and,
   where root is given, with the diagonal. Returns true if a test fails. The
   image is a piece of many columns, so that no hardware sees it coming. */
static bool tile_differs(const symmetry_job *job, int64_t i, int64_t m,
                         int64_t j, int64_t w) {
  const int64_t lda = job->a->lda;
  const hone_entry *mirror = job->a->a + j + i * lda;
  hone_entry image[TILE * TILE];
  bool differs = false;
  for (int64_t r = 0; r < m; r++) {
    const char *ahead = (const char *)(mirror + (r + AHEAD) * lda);
    for (int64_t line = 0;
         r + AHEAD < job->a->n - i && line < w * (int64_t)sizeof *mirror;
         line += LINE)
      __builtin_prefetch(ahead + line);
    for (int64_t c = 0; c < w; c++)
      image[c * TILE + r] = mirror[c + r * lda];
  }
  for (int64_t c = 0; c < w; c++) {
    const hone_entry *column = job->a->a + i + (j + c) * lda;
    differs = differs || column_differs(m, column, image + c * TILE);
    if (job->root != NULL)
      differs = differs ||
                column_is_large(m, column, job->root + i, job->root[j + c]);
  }
  return differs;
}

static void symmetry_task(void *ctx, int64_t task) {
  symmetry_job *job = ctx;
  const int64_t n = job->a->n, j = task * TILE;
  const int64_t w = HONE_MIN((int64_t)TILE, n - j);
  for (int64_t i = j; i < n; i += TILE) {
    if (atomic_load_explicit(&job->found_difference, memory_order_relaxed))
      return;
    if (tile_differs(job, i, HONE_MIN((int64_t)TILE, n - i), j, w))
      atomic_store_explicit(&job->found_difference, 1, memory_order_relaxed);
  }
}

static int64_t tiles_of(int64_t n) { return (n + TILE - 1) / TILE; }

static bool is_symmetric(hone_pool *pool, const hone_dense *a,
                         const double *root) {
  symmetry_job job = {.a = a, .root = root};
  hone_pool_run(a->n < HONE_THREADS_FROM ? NULL : pool, tiles_of(a->n),
                symmetry_task, &job);
  return job.found_difference == 0;
}

/* Compares TILE rows of one of the block columns of a sample. */
static void sample_task(void *ctx, int64_t task) {
  symmetry_job *job = ctx;
  const int64_t n = job->a->n, tiles = tiles_of(n);
  const int64_t i = task % tiles * TILE;
  const int64_t j = (task / tiles + 1) * tiles / (SAMPLES + 1) * TILE;
  if (atomic_load_explicit(&job->found_difference, memory_order_relaxed))
    return;
  if (tile_differs(job, i, HONE_MIN((int64_t)TILE, n - i), j,
                   HONE_MIN((int64_t)SAMPLED_WIDTH, n - j)))
    atomic_store_explicit(&job->found_difference, 1, memory_order_relaxed);
}

/* Do the block columns of a sample, which every row and column of A crosses,
   equal their mirror images? */
static bool sample_is_symmetric(hone_pool *pool, const hone_dense *a,
                                const double *root) {
  symmetry_job job = {.a = a, .root = root};
  hone_pool_run(pool, SAMPLES * tiles_of(a->n), sample_task, &job);
  return job.found_difference == 0;
}

static void find_definite(hone_pool *pool, const hone_dense *a, bool sample,
                          double *root, hone_structure *out) {
  const bool sampled = sample && tiles_of(a->n) >= SAMPLED_TILES;
  out->definite = sampled_pairs_equal(a) && diagonal_roots(a, root) &&
                  (sampled ? sample_is_symmetric(pool, a, root)
                           : is_symmetric(pool, a, root));
  out->sampled = out->definite && sampled;
}

bool hone_structure_symmetric(hone_pool *pool, const hone_dense *a) {
  return sampled_pairs_equal(a) && is_symmetric(pool, a, NULL);
}

/* Do the diagonal entries i and j, and the entries that they have in common,
   allow a definite A? */
static bool pair_allows_definite(const hone_dense *a, int64_t i, int64_t j) {
  const hone_entry below = a->a[i + j * a->lda], above = a->a[j + i * a->lda];
  const double root_i = diagonal_root(a, i), root_j = diagonal_root(a, j);
  return root_i > 0.0 && root_j > 0.0 && below == hone_conj(above) &&
         hone_abs(below) <= root_i * root_j;
}

static bool columns_allow_definite(const hone_dense *a, int samples) {
  for (int k = 0; k < samples; k++)
    for (int q = 0; q < k; q++)
      if (!pair_allows_definite(a, hone_structure_sample(a->n, k),
                                hone_structure_sample(a->n, q)))
        return false;
  return true;
}

bool hone_structure_excluded(const hone_dense *a, int samples, bool definite) {
  band b;
  return !sample_band(a, samples, &b) &&
         !(definite && columns_allow_definite(a, samples));
}

bool hone_structure_allows_definite(const hone_dense *a, int samples) {
  band b;
  return !sample_band(a, samples, &b) && columns_allow_definite(a, samples);
}

void hone_structure_find(hone_pool *pool, const hone_dense *a,
                         hone_search search, double *scratch,
                         hone_structure *out) {
  band b;
  *out = (hone_structure){.lower = a->n - 1, .upper = a->n - 1};
  if (find_band(pool, a, &b)) {
    out->lower = b.lower;
    out->upper = b.upper;
  } else if (search != HONE_SEARCH_ZEROS) {
    find_definite(pool, a, search == HONE_SEARCH_SAMPLE, scratch, out);
  }
}
