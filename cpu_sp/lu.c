/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocked LU with partial pivoting in single precision, left-looking by
   block columns over a device table. Block column J of width w at column j:

     load     F[:, J]     <- S[:, J], scaled and rounded
     update   the row exchanges of the panels before it,
              U[0:j, J]    = inv(L[0:j, 0:j]) F[0:j, J]
              F[j:n, J]   -= L[j:n, 0:j] U[0:j, J]
     panel    P F[j:n, J]  = L U

   Left-looking because block columns are then taken from the caller's matrix
   one at a time as they are needed, the update's inner dimension is long,
   and a matrix that is beyond single precision shows it in the pivots of the
   first panels, before most of the work is done. */
#include "gpu_sp/device.h"

#include <float.h>
#include <math.h>

/* Pivots are judged after each panel with at least this much of the matrix
   behind it and still ahead. */
static const double JUDGE_FROM = 0.05, JUDGE_TO = 0.8;
/* Refinement with single-precision factors is out of reach when the pivots,
   falling as they do now, would end this far below where they began, or when
   they are down in the rounding of single precision already. */
static const double FALL_LIMIT = 1e-7, LEVEL_LIMIT = 3e-7;
/* ... and the fall from the first pivots on must agree, at a rate that the
   rise of random matrices' first pivots has slowed: those of boundary
   elements swing up and down by a factor of 10 from face to face. */
static const double WHOLE_LIMIT = 1e-4;
enum { SAMPLE = 32, JUDGE_FROM_COLUMN = 3 * SAMPLE };

/* Mean logarithm of the magnitudes of the pivots j .. j+SAMPLE-1. */
static int mean_pivot(const hone_device *device, void *self, int64_t j,
                      double *mean) {
  float pivot[SAMPLE];
  int st = device->pivots(self, j, SAMPLE, pivot);
  double sum = 0.0;
  for (int i = 0; i < SAMPLE; i++)
    sum += log((double)pivot[i]); /* -inf for a zero pivot: hopeless */
  *mean = sum / SAMPLE;
  return st;
}

/* Predicts the last pivots from those in the middle and at the end of the
   done columns, falling geometrically. (Not from the first: those of random
   matrices rise for a while.) A guess that only decides which factorization
   is tried first: random and diagonally dominant matrices keep their pivots
   level, those with geometric spectra fall as the spectrum. */
static int judge(const hone_device *device, void *self, int64_t n, int64_t done,
                 bool *hopeless) {
  double part = (double)done / (double)n;
  *hopeless = false;
  if (done < JUDGE_FROM_COLUMN || !(part >= JUDGE_FROM) || !(part <= JUDGE_TO))
    return HONE_OK;
  const int64_t middle = (done - SAMPLE) / 2, end = done - SAMPLE;
  double start, from, to;
  float first;
  int st = mean_pivot(device, self, 0, &start);
  if (st == HONE_OK)
    st = mean_pivot(device, self, middle, &from);
  if (st == HONE_OK)
    st = mean_pivot(device, self, end, &to);
  if (st == HONE_OK)
    st = device->pivots(self, 0, 1, &first);
  if (st != HONE_OK)
    return st;
  double fall = (to - from) * (double)n / (double)(end - middle);
  double whole = (to - start) * (double)n / (double)end;
  double level = to - log((double)first);
  bool falling = !(fall >= log(FALL_LIMIT)) && !(whole >= log(WHOLE_LIMIT));
  *hopeless = falling || !(level >= log(LEVEL_LIMIT));
  return HONE_OK;
}

static int block_column(const hone_device *device, void *self,
                        const hone_matrix *a, const hone_scaling *scaling,
                        int64_t j, int64_t w, hone_factor_info *info) {
  int st = device->load(self, a, scaling, j, w);
  if (st == HONE_OK && j > 0)
    st = device->update(self, j, w);
  if (st == HONE_OK)
    st = device->panel(self, j, w, &info->zero_pivot);
  return st;
}

static int block_columns(const hone_device *device, void *self,
                         const hone_engine_config *config, const hone_matrix *a,
                         const hone_scaling *scaling, hone_factor_info *info) {
  const int64_t n = a->n;
  for (int64_t j = 0, w; j < n; j += w) {
    w = config->block > 0 ? config->block : device->block(self, scaling, j);
    w = HONE_MIN(w, n - j);
    double done = (double)j / (double)n;
    if (hone_watch_stop(config->watch, "factor", done, 0, HONE_NAN))
      return HONE_CANCELLED;
    int st = block_column(device, self, a, scaling, j, w, info);
    if (st == HONE_OK) /* a device that runs behind is then still busy */
      st = judge(device, self, n, device->behind ? j : j + w, &info->hopeless);
    if (st != HONE_OK)
      return st;
    if (info->zero_pivot >= 0 || info->hopeless)
      return HONE_OK;
  }
  return device->finish(self);
}

int hone_lu(const hone_device *device, void *self,
            const hone_engine_config *config, const hone_matrix *a,
            const hone_scaling *scaling, hone_factor_info *info) {
  for (;;) {
    *info = (hone_factor_info){.growth = HONE_NAN, .zero_pivot = -1};
    int st = block_columns(device, self, config, a, scaling, info);
    if (st != HONE_OK && device->abandon)
      device->abandon(self);
    bool complete = info->zero_pivot < 0 && !info->hopeless;
    if (st == HONE_OK)
      st = device->outcome(self, complete, info);
    /* growth: NaN where the LU did not get to its end */
    complete = complete && info->zero_pivot < 0;
    if (st != HONE_OK || !complete || info->growth <= DBL_MAX)
      return st;
    /* S = A unseen may only lack scaling */
    if (scaling == NULL || device->safer == NULL || !device->safer(self))
      return st;
  }
}
