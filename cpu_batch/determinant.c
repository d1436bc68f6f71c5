/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and columns are scaled by powers of two first, so that no pivot leaves
   the range of double. */
#include "cpu_batch/determinant.h"

#include "cpu_factor/factor.h"

#include <limits.h>
#include <math.h>

enum { BITS = 64 * HONE_PARTS };

/* Unlike |v| it does not overflow. */
static double largest_part(hone_entry v) {
  return fmax(fabs(hone_real(v)), fabs(hone_imag(v)));
}

/* f = R a C; returns the sum of the exponents of R and of C. R levels the rows,
   and C then the columns. Rows and columns of zeros stay as they are. row: room
   for n exponents. */
static int64_t scale(const hone_determinant_job *job, int *row, hone_entry *f) {
  const int64_t n = job->n;
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double most = 0.0;
    for (int64_t j = 0; j < n; j++)
      most = fmax(most, largest_part(job->a[i + j * job->lda]));
    row[i] = most > 0.0 ? -ilogb(most) : 0;
    sum += row[i];
  }
  for (int64_t j = 0; j < n; j++) {
    const hone_entry *a = job->a + j * job->lda;
    int top = INT_MIN;
    for (int64_t i = 0; i < n; i++) {
      const double size = largest_part(a[i]);
      top = size > 0.0 ? HONE_MAX(top, ilogb(size) + row[i]) : top;
    }
    const int e = top > INT_MIN ? -top : 0;
    for (int64_t i = 0; i < n; i++)
      f[i + j * n] = hone_shift_entry(a[i], row[i] + e);
    sum += e;
  }
  return sum;
}

/* The product of the pivots with the sign of the exchanges. */
static void multiply_pivots(int64_t n, const hone_entry *f, const int *pivot,
                            int64_t exponent, double *log_abs, hone_entry *to) {
  hone_entry product = 1.0;
  for (int64_t i = 0; i < n; i++) {
    product *= pivot[i] == (int)i + 1 ? f[i + i * n] : -f[i + i * n];
    const double size = hone_abs(product);
    if (!(size > 0.0))
      break;
    const int e = ilogb(size);
    product = hone_shift_entry(product, -e);
    exponent += e;
  }
  const double size = hone_abs(product);
  *log_abs = log(size) + (double)exponent * log(2.0);
  *to = size > 0.0 ? product / size : 0.0;
}

int hone_determinant(const hone_determinant_job *job, hone_mem *mem,
                     double *log_abs, double *re, double *im) {
  const int64_t n = job->n;
  hone_entry *f = hone_mem_get(mem, (size_t)(n * n) * sizeof *f), sign;
  int *pivot = hone_mem_get(mem, (size_t)n * sizeof *pivot);
  void *work = hone_mem_get(
      mem, (size_t)hone_factor_work(hone_factor_kernels_of(BITS), n));
  hone_watch watch = {.stopped = false};
  int st = f && pivot && work ? HONE_OK : HONE_NO_MEMORY;
  if (st == HONE_OK) {
    const int64_t scaled = scale(job, pivot, f);
    const hone_factoring lu = {.kernels = hone_factor_kernels_of(BITS),
                               .n = n,
                               .ldf = n,
                               .f = f,
                               .pivot = pivot,
                               .work = work,
                               .watch = &watch,
                               .phase = "batch"};
    int64_t zero = -1;
    st = hone_factor_columns(&lu, 0, n, &zero);
    multiply_pivots(n, f, pivot, -scaled, log_abs, &sign);
    *re = hone_real(sign);
    *im = hone_imag(sign);
  }
  hone_mem_put(mem, work);
  hone_mem_put(mem, pivot);
  hone_mem_put(mem, f);
  return st;
}
