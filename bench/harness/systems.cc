/* SPDX-License-Identifier: BSD-3-Clause */
/* Random systems, the check of answers, and the read bandwidth; see systems.h.
 */
#include "bench/harness/systems.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

const char *const kind_names[KINDS] = {"uniform",   "normal",    "heavy",
                                       "spd",       "geometric", "one small",
                                       "arithmetic"};

double now_s() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double median(double *values, int count) {
  std::sort(values, values + count);
  return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

void in_parallel(int threads, const std::function<void(int)> &work) {
  std::vector<std::thread> others;
  for (int k = 1; k < threads; k++)
    others.emplace_back([&work, k] { work(k); });
  work(0);
  for (std::thread &t : others)
    t.join();
}

/* ---- systems ---- */

namespace {

/* splitmix64 (Steele, Lea & Flood 2014). */
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

/* Random numbers; each column has its own stream. */
struct Stream {
  uint64_t state;
  double next() { return unit(mix(state += golden)); } /* in [0, 1) */
};

Stream column_stream(uint64_t seed, int64_t column) {
  return {mix(mix(seed + golden) + static_cast<uint64_t>(column + 1) * golden)};
}

void fill_uniform(double *v, int64_t n, Stream s) {
  for (int64_t i = 0; i < n; i++)
    v[i] = s.next() - 0.5;
}

/* Box & Muller's method; both numbers of a pair are used. */
void fill_normal(double *v, int64_t n, Stream s) {
  for (int64_t i = 0; i < n; i += 2) {
    double radius = std::sqrt(-2.0 * std::log(1.0 - s.next()));
    double angle = 6.283185307179586 * s.next();
    v[i] = radius * std::cos(angle);
    if (i + 1 < n)
      v[i + 1] = radius * std::sin(angle);
  }
}

/* Entry (i, j) is (b_ij + b_ji) / 2; b_ij is a hash of i and j, so that every
   column can be filled alone. */
void fill_spd(double *v, int64_t n, int64_t j, uint64_t seed) {
  uint64_t start = mix(seed + golden);
  uint64_t order = static_cast<uint64_t>(n);
  uint64_t column = static_cast<uint64_t>(j);
  for (uint64_t i = 0; i < order; i++) {
    double b_ij = unit(mix(start + (i + column * order) * golden));
    double b_ji = unit(mix(start + (column + i * order) * golden));
    v[i] = 0.5 * (b_ij + b_ji) - 0.5;
  }
  v[j] += 0.5 * std::sqrt(static_cast<double>(n)) + 0.5;
}

/* Multiplies v, n = 2^k entries, by the orthogonal Hadamard matrix. */
void hadamard(double *v, int64_t n) {
  const double by = 1.0 / std::sqrt(static_cast<double>(n));
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t i = 0; i < n; i += 2 * half)
      for (int64_t k = i; k < i + half; k++) {
        const double a = v[k], b = v[k + half];
        v[k] = a + b;
        v[k + half] = a - b;
      }
  for (int64_t i = 0; i < n; i++)
    v[i] *= by;
}

/* Multiplies v by an orthogonal matrix: twice by random signs, the Hadamard
   transform of the first 2^k entries, and that of the last 2^k. */
void mix_up(double *v, int64_t n, uint64_t seed) {
  int64_t power = 1;
  while (2 * power <= n)
    power *= 2;
  for (uint64_t round = 0; round < 2; round++) {
    for (int64_t i = 0; i < n; i++)
      if (mix(seed + round + static_cast<uint64_t>(2 * i + 1) * golden) & 1)
        v[i] = -v[i];
    hadamard(v, power);
    if (power < n)
      hadamard(v + n - power, power);
  }
}

double singular_value(Kind kind, int64_t i, int64_t n) {
  const double part = static_cast<double>(i) / static_cast<double>(n - 1);
  if (kind == GEOMETRIC)
    return std::pow(1e-12, part);
  if (kind == ONE_SMALL)
    return i < n - 1 ? 1.0 : 1e-12;
  return 1.0 - part * (1.0 - 1e-12);
}

void fill_hard(Kind kind, double *v, int64_t n, int64_t j, uint64_t seed) {
  std::fill(v, v + n, 0.0);
  v[j] = 1.0;
  mix_up(v, n, seed);
  for (int64_t i = 0; i < n; i++)
    v[i] *= singular_value(kind, i, n);
  mix_up(v, n, seed + 17);
}

} // namespace

bool systems_allocate(Systems *s, int64_t n, int count, int64_t nrhs,
                      int parts) {
  size_t order = static_cast<size_t>(n);
  size_t column = order * static_cast<size_t>(parts) * sizeof(double);
  size_t sides = static_cast<size_t>(RIGHT_SIDES * nrhs);
  s->n = n;
  s->nrhs = nrhs;
  s->count = count;
  s->parts = parts;
  s->a = static_cast<double *>(
      malloc(static_cast<size_t>(count) * order * column));
  s->b = static_cast<double *>(malloc(sides * column));
  if (s->a != nullptr && s->b != nullptr)
    return true;
  systems_free(s);
  return false;
}

void systems_free(Systems *s) {
  free(s->a);
  free(s->b);
  *s = Systems();
}

void systems_fill(Systems *s, Kind kind, uint64_t seed, int threads) {
  std::atomic<int64_t> next{0};
  int64_t n = s->n;
  int64_t length = n * s->parts; /* doubles of a column */
  int64_t columns = n * s->count;
  if (columns * length < 100000)
    threads = 1;
  in_parallel(threads, [&](int) {
    for (int64_t j; (j = next++) < columns;) {
      double *column = s->a + j * length;
      if (kind > SPD)
        fill_hard(kind, column, n, j % n, seed);
      else if (kind == SPD)
        fill_spd(column, n, j % n, seed + static_cast<uint64_t>(j / n));
      else if (kind == NORMAL)
        fill_normal(column, length, column_stream(seed, j));
      else
        fill_uniform(column, length, column_stream(seed, j));
      if (kind == HEAVY_DIAGONAL)
        column[j % n * s->parts] += 2.0 * std::sqrt(static_cast<double>(n));
    }
  });
  for (int64_t k = 0; k < RIGHT_SIDES * s->nrhs; k++)
    fill_uniform(s->b + k * length, length, column_stream(~seed, k));
}

void copy_in_parallel(double *to, const double *from, int64_t count,
                      int threads) {
  in_parallel(threads, [=](int k) {
    int64_t first = count * k / threads;
    int64_t end = count * (k + 1) / threads;
    memcpy(to + first, from + first,
           static_cast<size_t>(end - first) * sizeof(double));
  });
}

/* ---- the check ---- */

namespace {

/* Returns the largest error of rows first .. first + rows - 1. Columns are
   taken eight at a time: the sums of a row then stay in registers for eight
   terms, and the pieces of eight columns fit in an 8-way cache for every n. */
double rows_error(int64_t n, int64_t first, int64_t rows, const double *a,
                  const double *b, const double *x, long double *sums) {
  long double largest = 0.0L;
  for (int64_t i = 0; i < rows; i++) {
    sums[2 * i] = static_cast<long double>(b[first + i]);
    sums[2 * i + 1] = fabsl(sums[2 * i]);
  }
  for (int64_t j0 = 0; j0 < n; j0 += 8) {
    int64_t columns = std::min<int64_t>(8, n - j0);
    for (int64_t i = 0; i < rows; i++) {
      const double *row = a + first + i + j0 * n;
      long double r = sums[2 * i];
      long double w = sums[2 * i + 1];
      for (int64_t j = 0; j < columns; j++) {
        long double term = static_cast<long double>(row[j * n]) *
                           static_cast<long double>(x[j0 + j]);
        r -= term;
        w += fabsl(term);
      }
      sums[2 * i] = r;
      sums[2 * i + 1] = w;
    }
  }
  for (int64_t i = 0; i < rows && !std::isnan(largest); i++) {
    long double r = sums[2 * i];
    long double e = r == 0.0L ? 0.0L : fabsl(r) / sums[2 * i + 1];
    if (!(e <= largest))
      largest = e;
  }
  return static_cast<double>(largest);
}

/* Does the same for complex entries. Three sums a row: the real and the
   imaginary part of the residual, and the denominator. */
double complex_rows_error(int64_t n, int64_t first, int64_t rows,
                          const double *a, const double *b, const double *x,
                          long double *sums) {
  using wide = long double;
  for (int64_t i = 0; i < rows; i++) {
    const double *of = b + 2 * (first + i);
    sums[3 * i] = static_cast<wide>(of[0]);
    sums[3 * i + 1] = static_cast<wide>(of[1]);
    sums[3 * i + 2] = hypotl(sums[3 * i], sums[3 * i + 1]);
  }
  for (int64_t j = 0; j < n; j++) {
    const wide re = static_cast<wide>(x[2 * j]);
    const wide im = static_cast<wide>(x[2 * j + 1]);
    const wide size = hypotl(re, im);
    const double *column = a + 2 * (first + j * n);
    for (int64_t i = 0; i < rows; i++) {
      const wide p = static_cast<wide>(column[2 * i]);
      const wide q = static_cast<wide>(column[2 * i + 1]);
      sums[3 * i] -= p * re - q * im;
      sums[3 * i + 1] -= p * im + q * re;
      sums[3 * i + 2] += sqrtl(p * p + q * q) * size;
    }
  }
  wide largest = 0.0L;
  for (int64_t i = 0; i < rows && !std::isnan(largest); i++) {
    const wide r = hypotl(sums[3 * i], sums[3 * i + 1]);
    const wide e = r == 0.0L ? 0.0L : r / sums[3 * i + 2];
    if (!(e <= largest))
      largest = e;
  }
  return static_cast<double>(largest);
}

} // namespace

double backward_error(int64_t n, const double *a, const double *b,
                      const double *x, int threads, int parts) {
  enum { MOST_ROWS = 512 };
  threads = n * n < 100000 ? 1 : threads;
  const auto error_of_rows = parts == 2 ? complex_rows_error : rows_error;
  int64_t rows = std::clamp<int64_t>(n / (2 * threads), 64, MOST_ROWS);
  int64_t blocks = (n + rows - 1) / rows;
  std::vector<double> errors(static_cast<size_t>(blocks));
  std::atomic<int64_t> next{0};
  in_parallel(threads, [&](int) {
    long double sums[3 * MOST_ROWS];
    for (int64_t k; (k = next++) < blocks;)
      errors[static_cast<size_t>(k)] = error_of_rows(
          n, k * rows, std::min(rows, n - k * rows), a, b, x, sums);
  });
  double largest = 0.0;
  for (double e : errors)
    if (!(e <= largest) && !std::isnan(largest))
      largest = e;
  return largest;
}

/* ---- reading ---- */

double read_bandwidth(const double *a, int64_t count, int threads) {
  enum { PASSES = 5, LANES = 16 };
  std::vector<double> starts(static_cast<size_t>(threads));
  std::vector<double> ends(static_cast<size_t>(threads));
  /* The sums are stored, so that the compiler cannot leave them out. */
  std::vector<double> used(static_cast<size_t>(threads));
  std::atomic<int> arrived{0};
  double seconds[PASSES];
  auto wait = [&](int turn) {
    for (arrived++; arrived < turn * threads;)
      std::this_thread::yield();
  };
  in_parallel(threads, [&](int k) {
    size_t me = static_cast<size_t>(k);
    int64_t first = count * k / threads;
    int64_t end = count * (k + 1) / threads;
    for (int pass = -1; pass < PASSES; pass++) {
      double sum[LANES] = {};
      wait(2 * pass + 3);
      starts[me] = now_s();
      for (int64_t i = first; i + LANES <= end; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
          sum[lane] += a[i + lane];
      ends[me] = now_s();
      for (double s : sum)
        used[me] += s;
      wait(2 * pass + 4);
      if (k == 0 && pass >= 0)
        seconds[pass] = *std::max_element(ends.begin(), ends.end()) -
                        *std::min_element(starts.begin(), starts.end());
    }
  });
  volatile double kept = used[0];
  (void)kept;
  return static_cast<double>(count) * 8.0 / median(seconds, PASSES);
}
