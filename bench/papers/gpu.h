/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_papers uses a GPU through these functions, which show no type of CUDA.
   gpu.cu, vendor.cu and crout.cu implement them; without CUDA, none.cc and
   crout_none.cc report that there is no GPU. An error is a text, and empty if
   there is none. Milliseconds are wall-clock time. */
#ifndef HONE_BENCH_PAPERS_GPU_H
#define HONE_BENCH_PAPERS_GPU_H

#include "bench/papers/blocked.h"

extern "C" {
#include "gpu_sp/forms/crout.h"
}

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/* Describes the GPU for the record. Call it first. */
std::string gpu_open(std::vector<std::pair<std::string, std::string>> *facts);

/* Makes a place on the GPU; NULL, and why says what is missing. */
std::unique_ptr<Place> gpu_place(std::string *why);

/* Times the iterative Crout method: a is copied to the device, factored, and
   its factors z are copied back. Streams, handles and memory are made before
   the clock starts. report.status tells how the method ended; the text reports
   errors of CUDA. */
template <class T>
std::string gpu_crout(int64_t n, const T *a, T *z, const hone_crout_options &o,
                      hone_crout_report *report, double *ms);

/* Times cuSOLVER's getrf in the same manner, without pivoting if pivots is
   NULL. */
template <class T>
std::string gpu_getrf(int64_t n, const T *a, T *lu, int64_t *pivots,
                      double *ms);

/* Sets *error to max |A - L U|, like largest_defect of papers/checks.h, but
   does not test whether the factors are finite. */
template <class T>
std::string gpu_defect(int64_t n, const T *a, const T *z, bool crout,
                       const int64_t *pivots, double *error);

/* cuSOLVER's solves in double from host memory to host memory, with their
   handles, memory and workspace made beforehand. */
enum VendorSolve {
  VENDOR_LU,       /* copy + getrf FP64 + getrs */
  VENDOR_IRS,      /* copy + IRSXgesv, FP32 */
  VENDOR_CHOLESKY, /* copy + potrf FP64 + potrs */
  VENDOR_SOLVES
};
class Vendor {
public:
  virtual ~Vendor() {}
  virtual std::string solve(VendorSolve which, const double *a, const double *b,
                            double *x) = 0;
  /* Reads the info of the last solve, untimed. */
  virtual std::string verify(VendorSolve which, std::string *note) = 0;
};
std::unique_ptr<Vendor> vendor_open(int64_t n, std::string *why);

#endif
