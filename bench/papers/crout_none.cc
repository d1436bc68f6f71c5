/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for crout.cu in a build without CUDA; see papers/none.cc. */
#include "bench/papers/gpu.h"

template <class T>
std::string gpu_crout(int64_t, const T *, T *, const hone_crout_options &,
                      hone_crout_report *, double *) {
  return "built without CUDA";
}
template std::string gpu_crout(int64_t, const float *, float *,
                               const hone_crout_options &, hone_crout_report *,
                               double *);
template std::string gpu_crout(int64_t, const double *, double *,
                               const hone_crout_options &, hone_crout_report *,
                               double *);
