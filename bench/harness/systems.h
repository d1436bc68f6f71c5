/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_cpu and bench_gpu do this on the host, with several threads: they make
   random systems in ordinary memory, check answers, and measure how fast
   memory is read. */
#ifndef HONE_BENCH_HARNESS_SYSTEMS_H
#define HONE_BENCH_HARNESS_SYSTEMS_H

#include <cstdint>
#include <functional>

enum Kind {
  UNIFORM,
  NORMAL,
  HEAVY_DIAGONAL,
  SPD,
  GEOMETRIC,
  ONE_SMALL,
  ARITHMETIC,
  KINDS
};
extern const char *const kind_names[KINDS];

enum { RIGHT_SIDES = 4 };

/* count matrices n x n (ld n, column-major) and RIGHT_SIDES different b, n x
   nrhs, in pageable memory, which this owns. An entry has so many parts: a
   double, or the two of a complex number. */
struct Systems {
  int64_t n = 0, nrhs = 1;
  int count = 0, parts = 1;
  double *a = nullptr;
  double *b = nullptr;

  const double *matrix(int64_t k) const {
    return a + k % count * n * n * parts;
  }
  const double *side(int64_t k) const {
    return b + k % RIGHT_SIDES * n * nrhs * parts;
  }
};

/* Calls work(k) for k = 0 .. threads - 1, each on a thread. */
void in_parallel(int threads, const std::function<void(int)> &work);

bool systems_allocate(Systems *s, int64_t n, int count, int64_t nrhs = 1,
                      int parts = 1);
void systems_free(Systems *s);

/* Fills A and b. Their bits depend on kind and seed, not on threads.
   UNIFORM entries are in [-0.5, 0.5), NORMAL ones have mean 0 and variance 1.
   HEAVY_DIAGONAL is UNIFORM plus 2 sqrt(n) on the diagonal: its condition grows
   slowly, so that single precision serves large orders.
   SPD is (B + B^T) / 2 with B uniform, plus (sqrt(n) + 1) / 2 on the diagonal;
   the eigenvalues of the first part reach 0.41 sqrt(n), so that the condition
   number is about 10. The other kinds have condition number 1e12 and the
   spectra of LAPACK's DLATMS modes 3, 2 and 4, between two orthogonal matrices,
   each a product of random signs and Hadamard transforms. Complex systems are
   UNIFORM or NORMAL, in both parts. */
void systems_fill(Systems *s, Kind kind, uint64_t seed, int threads);

/* Copies count doubles. */
void copy_in_parallel(double *to, const double *from, int64_t count,
                      int threads);

/* Returns max_i |b - A x|_i / (|A| |x| + |b|)_i over all rows, in long double;
   NaN if x has a NaN. |.| is the modulus if an entry has two parts. */
double backward_error(int64_t n, const double *a, const double *b,
                      const double *x, int threads, int parts = 1);

/* Returns the bytes read per second in one pass over count doubles, the median
   of 5 passes. The threads run before the clock starts. */
double read_bandwidth(const double *a, int64_t count, int threads);

double median(double *values, int count); /* reorders */
double now_s();

#endif
