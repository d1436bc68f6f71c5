/* SPDX-License-Identifier: BSD-3-Clause */
/* Igual's blocked factorizations; see papers/blocked.h. Each step of a variant
   has its formula beside it. A11 is the diagonal block being factored; A00,
   A01, A10, ... are the blocks before it, A12, A21 and A22 those after it. */
#include "bench/papers/blocked.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include "base/lapack.h"
}

const char *const variant_names[VARIANTS] = {
    "Cholesky, right-looking", "Cholesky, bordered", "Cholesky, left-looking",
    "LU, right-looking",       "LU, left-looking",   "LU, Crout"};

int64_t padded_to(int64_t k, int64_t multiple) {
  return (k + multiple - 1) / multiple * multiple;
}

/* ---- the steps that the CPU takes ---- */

namespace {

/* A11 := chol(A11) */
bool diagonal(Place *p, int64_t k, int64_t b, bool by_cpu) {
  const Part block = {k, b, k, b};
  if (!by_cpu)
    return p->scalar(block);
  std::vector<float> a(static_cast<size_t>(b * b));
  if (!p->fetch(block, a.data()))
    return false;
  int w = static_cast<int>(b), info = 0;
  spotrf_("L", &w, a.data(), &w, &info);
  if (info == 0)
    return p->bring(block, a.data());
  p->why = "not positive definite, column " + std::to_string(k + info - 1);
  return false;
}

/* [A11; A21] := LU([A11; A21]). The pivots become those of the whole matrix. */
bool panel(Place *p, int64_t k, int64_t b) {
  const Part block = {k, p->n - k, k, b};
  std::vector<float> a(static_cast<size_t>(block.m * b));
  if (!p->fetch(block, a.data()))
    return false;
  int m = static_cast<int>(block.m), w = static_cast<int>(b), info = 0;
  int *pivots = p->pivots.data() + k;
  sgetrf_(&m, &w, a.data(), &m, pivots, &info);
  for (int64_t i = 0; i < b; i++)
    pivots[i] += static_cast<int>(k);
  if (info == 0)
    return p->bring(block, a.data());
  p->why = "a pivot is zero, column " + std::to_string(k + info - 1);
  return false;
}

/* ---- Cholesky ---- */

bool cholesky_step(Place *p, Variant v, int64_t k, int64_t b, bool by_cpu) {
  const int64_t below = k + b, rest = p->n - below;
  const Part a11 = {k, b, k, b}, a21 = {below, rest, k, b};
  const Part a10 = {k, b, 0, k}, a20 = {below, rest, 0, k};
  const Part a00 = {0, k, 0, k}, a22 = {below, rest, below, rest};
  bool fine = true;
  if (v == CHOLESKY_BORDERED && k > 0) /* A10 := A10 L00^-T */
    fine = p->divide_right(a00, a10);
  if (v != CHOLESKY_RIGHT && k > 0) /* A11 -= A10 A10^T */
    fine = fine && p->square(a11, a10);
  if (v == CHOLESKY_LEFT && k > 0 && rest > 0) /* A21 -= A20 A10^T */
    fine = fine && p->multiply(a21, a20, a10, true);
  fine = fine && diagonal(p, k, b, by_cpu);
  if (v != CHOLESKY_BORDERED && rest > 0) /* A21 := A21 L11^-T */
    fine = fine && p->divide_right(a11, a21);
  if (v == CHOLESKY_RIGHT && rest > 0) /* A22 -= A21 A21^T */
    fine = fine && p->square(a22, a21);
  return fine;
}

/* ---- LU with partial pivoting ---- */

bool lu_left_step(Place *p, int64_t k, int64_t b) {
  const int64_t rows = p->n - k;
  const Part a00 = {0, k, 0, k}, a01 = {0, k, k, b};
  const Part left = {k, rows, 0, k}, here = {k, rows, k, b};
  bool fine = true;
  if (k > 0) /* row exchanges; A01 := L00^-1 A01; [A11; A21] -= ... A01 */
    fine = p->exchange(0, k, k, k + b) && p->divide_left(a00, a01) &&
           p->multiply(here, left, a01, false);
  /* the panel's row exchanges are made in the columns before it, too */
  return fine && panel(p, k, b) && (k == 0 || p->exchange(k, b, 0, k));
}

bool lu_step(Place *p, Variant v, int64_t k, int64_t b) {
  const int64_t below = k + b, rest = p->n - below, rows = p->n - k;
  const Part a11 = {k, b, k, b}, a12 = {k, b, below, rest};
  const Part a21 = {below, rest, k, b}, a22 = {below, rest, below, rest};
  const Part a01 = {0, k, k, b}, a02 = {0, k, below, rest};
  const Part a10 = {k, b, 0, k}, left = {k, rows, 0, k};
  const bool crout = v == LU_CROUT;
  bool fine = true;
  if (crout && k > 0) /* [A11; A21] -= [A10; A20] A01 */
    fine = p->multiply({k, rows, k, b}, left, a01, false);
  fine = fine && panel(p, k, b) && (k == 0 || p->exchange(k, b, 0, k));
  if (rest == 0)
    return fine;
  fine = fine && p->exchange(k, b, below, p->n);
  if (crout && k > 0) /* A12 -= A10 A02 */
    fine = fine && p->multiply(a12, a10, a02, false);
  fine = fine && p->divide_left(a11, a12); /* A12 := L11^-1 A12 */
  if (!crout)                              /* A22 -= A21 A12 */
    fine = fine && p->multiply(a22, a21, a12, false);
  return fine;
}

} // namespace

bool factor_blocked(Place *p, Variant v, int64_t b, bool by_cpu) {
  p->pivots.assign(static_cast<size_t>(p->n), 0);
  for (int64_t k = 0; k < p->n; k += b) {
    const int64_t w = std::min(b, p->n - k);
    if (!(is_cholesky(v) ? cholesky_step(p, v, k, w, by_cpu)
          : v == LU_LEFT ? lu_left_step(p, k, w)
                         : lu_step(p, v, k, w)))
      return false;
  }
  return true;
}

/* ---- the host ---- */

namespace {

class Host : public Place {
public:
  const char *name() const override { return "CPU"; }
  bool load(int64_t order, const float *a, int64_t padded) override {
    n = padded;
    a_.assign(static_cast<size_t>(n * n), 0.0f);
    for (int64_t j = 0; j < n; j++)
      if (j < order)
        std::copy(a + j * order, a + (j + 1) * order, at(0, j));
      else
        *at(j, j) = 1.0f;
    kept_ = a_;
    return true;
  }
  bool restore() override {
    a_ = kept_;
    why.clear();
    return true;
  }
  bool wait() override { return true; }
  bool fetch(Part p, float *to) override {
    for (int64_t j = 0; j < p.n; j++)
      std::copy(at(p.i, p.j + j), at(p.i, p.j + j) + p.m, to + j * p.m);
    return true;
  }
  bool bring(Part p, const float *from) override {
    for (int64_t j = 0; j < p.n; j++)
      std::copy(from + j * p.m, from + (j + 1) * p.m, at(p.i, p.j + j));
    return true;
  }
  bool divide_right(Part t, Part b) override {
    const float one = 1.0f;
    const int m = size(b.m), w = size(b.n), ld = size(n);
    strsm_("R", "L", "T", "N", &m, &w, &one, at(t.i, t.j), &ld, at(b.i, b.j),
           &ld);
    return true;
  }
  bool divide_left(Part t, Part b) override {
    const float one = 1.0f;
    const int m = size(b.m), w = size(b.n), ld = size(n);
    strsm_("L", "L", "N", "U", &m, &w, &one, at(t.i, t.j), &ld, at(b.i, b.j),
           &ld);
    return true;
  }
  bool square(Part c, Part a) override {
    const float minus = -1.0f, one = 1.0f;
    const int m = size(c.m), k = size(a.n), ld = size(n);
    ssyrk_("L", "N", &m, &k, &minus, at(a.i, a.j), &ld, &one, at(c.i, c.j),
           &ld);
    return true;
  }
  bool multiply(Part c, Part a, Part b, bool transposed) override {
    const float minus = -1.0f, one = 1.0f;
    const int m = size(c.m), w = size(c.n), k = size(a.n), ld = size(n);
    sgemm_("N", transposed ? "T" : "N", &m, &w, &k, &minus, at(a.i, a.j), &ld,
           at(b.i, b.j), &ld, &one, at(c.i, c.j), &ld);
    return true;
  }
  bool exchange(int64_t k, int64_t b, int64_t c0, int64_t c1) override {
    const int w = size(c1 - c0), ld = size(n), step = 1;
    const int first = size(k) + 1, last = size(k + b);
    slaswp_(&w, at(0, c0), &ld, &first, &last, pivots.data(), &step);
    return true;
  }
  bool scalar(Part block) override {
    for (int64_t j = block.j; j < block.j + block.n; j++) {
      const float pivot = *at(j, j);
      if (!(pivot > 0.0f)) {
        why = "not positive definite, column " + std::to_string(j);
        return false;
      }
      for (int64_t i = j; i < block.i + block.m; i++)
        *at(i, j) /= std::sqrt(pivot);
      for (int64_t c = j + 1; c < block.j + block.n; c++)
        for (int64_t i = c; i < block.i + block.m; i++)
          *at(i, c) -= *at(i, j) * *at(c, j);
    }
    return true;
  }
  bool vendor(bool cholesky) override {
    const int m = size(n);
    int info = 0;
    pivots.assign(static_cast<size_t>(n), 0);
    if (cholesky)
      spotrf_("L", &m, a_.data(), &m, &info);
    else
      sgetrf_(&m, &m, a_.data(), &m, pivots.data(), &info);
    if (info != 0)
      why = "info " + std::to_string(info);
    return info == 0;
  }
  std::string hone(bool, int64_t, double *, double *) override {
    return "only for a GPU";
  }

private:
  static int size(int64_t v) { return static_cast<int>(v); }
  float *at(int64_t i, int64_t j) { return a_.data() + i + j * n; }
  std::vector<float> a_, kept_;
};

} // namespace

std::unique_ptr<Place> host_place() { return std::make_unique<Host>(); }
