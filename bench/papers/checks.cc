/* SPDX-License-Identifier: BSD-3-Clause */
/* Igual's refinement, and errors of factors; see papers/checks.h. */
#include "bench/papers/checks.h"

#include "bench/harness/systems.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <new>
#include <utility>
#include <vector>

extern "C" {
#include "base/lapack.h"
}

/* ---- refinement ---- */

namespace {

const int one_step = 1;

/* z := inv(L L^T) z, or inv(U) inv(L) P z with pivots */
void solve_single(int n, const float *f, const int *pivots, float *z) {
  for (int i = 0; pivots != nullptr && i < n; i++)
    std::swap(z[i], z[pivots[i] - 1]);
  const bool lu = pivots != nullptr;
  strsv_("L", "N", lu ? "U" : "N", &n, f, &n, z, &one_step);
  strsv_(lu ? "U" : "L", lu ? "N" : "T", "N", &n, f, &n, z, &one_step);
}

double largest(const std::vector<double> &v) {
  return largest_entry(static_cast<int64_t>(v.size()), v.data());
}

} // namespace

Refined igual_refine(int64_t order, const double *a, const float *f,
                     const int *pivots, const double *b, double *x) {
  enum { MOST = 30, EXTRA = 2 };
  const int n = static_cast<int>(order);
  const double minus = -1.0, one = 1.0, enough = std::sqrt(0x1p-52);
  const size_t count = static_cast<size_t>(order);
  std::vector<float> z(count);
  std::vector<double> r(count);
  Refined done;
  std::transform(b, b + n, z.begin(),
                 [](double v) { return static_cast<float>(v); });
  solve_single(n, f, pivots, z.data());
  std::copy(z.begin(), z.end(), x);
  for (int extra = 0; done.iterations < MOST && extra <= EXTRA;) {
    done.iterations++;
    std::copy(b, b + n, r.begin()); /* r = b - A x */
    dgemv_("N", &n, &n, &minus, a, &n, x, &one_step, &one, r.data(), &one_step);
    std::transform(r.begin(), r.end(), z.begin(),
                   [](double v) { return static_cast<float>(v); });
    solve_single(n, f, pivots, z.data());
    double top = 0.0;
    for (size_t i = 0; i < count; i++) {
      x[i] += static_cast<double>(z[i]);
      top = std::fabs(x[i]) <= top || std::isnan(top) ? top : std::fabs(x[i]);
    }
    /* After his rule holds, there are two more iterations. */
    done.stopped = done.stopped || largest(r) / top < enough;
    extra += done.stopped;
  }
  return done;
}

/* ---- the error of factors, by a vector ---- */

namespace {

double sign_of(int64_t i) { return i % 3 == 0 ? -1.0 : 1.0; }

using Vector = std::vector<double>;

/* Returns the sum over all columns j of what add(j, y) adds to y. */
Vector sum_of_columns(int64_t n, int threads,
                      const std::function<void(int64_t, Vector &)> &add) {
  std::vector<Vector> parts(static_cast<size_t>(threads));
  in_parallel(threads, [&](int t) {
    Vector &y = parts[static_cast<size_t>(t)];
    y.assign(static_cast<size_t>(n), 0.0);
    for (int64_t j = t; j < n; j += threads)
      add(j, y);
  });
  for (int t = 1; t < threads; t++)
    std::transform(parts[0].begin(), parts[0].end(),
                   parts[static_cast<size_t>(t)].begin(), parts[0].begin(),
                   std::plus<double>());
  return parts[0];
}

/* Returns U v, or L^T v for Cholesky. */
Vector upper_times(int64_t n, const float *f, bool lu, int threads) {
  return sum_of_columns(n, threads, [=](int64_t j, Vector &w) {
    double dot = 0.0;
    for (int64_t i = lu ? 0 : j; i <= (lu ? j : n - 1); i++) {
      const double v = static_cast<double>(f[i + j * n]);
      dot += v * sign_of(i);
      if (lu)
        w[static_cast<size_t>(i)] += v * sign_of(j);
    }
    if (!lu)
      w[static_cast<size_t>(j)] = dot;
  });
}

/* Returns L w, where L is unit lower triangular if lu is true. */
Vector lower_times(int64_t n, const float *f, bool lu, const Vector &w,
                   int threads) {
  return sum_of_columns(n, threads, [&](int64_t j, Vector &y) {
    const double by = w[static_cast<size_t>(j)];
    for (int64_t i = j; i < n; i++)
      y[static_cast<size_t>(i)] +=
          by * (lu && i == j ? 1.0 : static_cast<double>(f[i + j * n]));
  });
}

} // namespace

double factors_error(int64_t n, const float *a, const float *f,
                     const int *pivots, int threads) {
  const bool lu = pivots != nullptr;
  if (n == 0)
    return 0.0;
  Vector y = lower_times(n, f, lu, upper_times(n, f, lu, threads), threads);
  for (int64_t i = n; lu && i-- > 0;) /* P^T */
    std::swap(y[static_cast<size_t>(i)], y[static_cast<size_t>(pivots[i] - 1)]);
  const Vector product = sum_of_columns(n, threads, [=](int64_t j, Vector &s) {
    for (int64_t i = 0; i < n; i++)
      s[static_cast<size_t>(i)] +=
          static_cast<double>(a[i + j * n]) * sign_of(j);
  });
  const Vector sums = sum_of_columns(n, threads, [=](int64_t j, Vector &s) {
    for (int64_t i = 0; i < n; i++)
      s[static_cast<size_t>(i)] += std::fabs(static_cast<double>(a[i + j * n]));
  });
  for (size_t i = 0; i < y.size(); i++)
    y[i] -= product[i];
  return largest(y) / largest(sums);
}

/* ---- max |A - L U| ---- */

void note_error(double e, double *error) {
  if (!(e <= *error) && !std::isnan(*error))
    *error = e;
}

template <class T> double largest_entry(int64_t count, const T *a) {
  double top = 0.0;
  for (int64_t i = 0; i < count; i++) {
    const double v = std::fabs(static_cast<double>(a[i]));
    if (!(v <= top))
      top = v;
    if (std::isnan(v))
      return v;
  }
  return top;
}

bool permutation(int64_t n, const int64_t *pivots, std::vector<int64_t> *rows) {
  rows->resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++)
    (*rows)[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; pivots != nullptr && i < n; i++) {
    if (pivots[i] < 1 || pivots[i] > n)
      return false;
    std::swap((*rows)[static_cast<size_t>(i)],
              (*rows)[static_cast<size_t>(pivots[i] - 1)]);
  }
  return true;
}

namespace {

/* w = L U, where z has both factors. */
void multiply(int64_t n, const double *z, bool crout, double *w) {
  const double one = 1.0;
  const int order = static_cast<int>(n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      w[i + j * n] = (crout ? i >= j : i <= j) ? z[i + j * n] : 0.0;
  if (crout) /* w = L is multiplied by unit U */
    dtrmm_("R", "U", "N", "U", &order, &order, &one, z, &order, w, &order);
  else /* w = U is multiplied by unit L */
    dtrmm_("L", "L", "N", "U", &order, &order, &one, z, &order, w, &order);
}

} // namespace

template <class T>
double largest_defect(int64_t n, const T *a, const T *z, bool crout,
                      const int64_t *pivots) {
  const size_t entries = static_cast<size_t>(n * n);
  std::vector<int64_t> rows;
  if (!(largest_entry(n * n, z) <= 1.7976931348623157e308) ||
      !permutation(n, pivots, &rows))
    return std::nan("");
  double *wide = new (std::nothrow) double[entries];
  double *w = new (std::nothrow) double[entries];
  double top = std::nan("");
  if (wide != nullptr && w != nullptr) {
    std::copy(z, z + entries, wide);
    multiply(n, wide, crout, w);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++)
        w[i + j * n] -=
            static_cast<double>(a[rows[static_cast<size_t>(i)] + j * n]);
    top = largest_entry(n * n, w);
  }
  delete[] wide;
  delete[] w;
  return top;
}

template double largest_entry(int64_t, const float *);
template double largest_entry(int64_t, const double *);
template double largest_defect(int64_t, const float *, const float *, bool,
                               const int64_t *);
template double largest_defect(int64_t, const double *, const double *, bool,
                               const int64_t *);
