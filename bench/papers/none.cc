/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for gpu.cu, vendor.cu and defect.cu in a build without CUDA: every
   function reports that there is no GPU. */
#include "bench/papers/gpu.h"

namespace {

const char none[] = "built without CUDA";

} // namespace

std::string gpu_open(std::vector<std::pair<std::string, std::string>> *) {
  return none;
}

std::unique_ptr<Place> gpu_place(std::string *why) {
  *why = none;
  return nullptr;
}

template <class T>
std::string gpu_getrf(int64_t, const T *, T *, int64_t *, double *) {
  return none;
}
template std::string gpu_getrf(int64_t, const float *, float *, int64_t *,
                               double *);
template std::string gpu_getrf(int64_t, const double *, double *, int64_t *,
                               double *);

template <class T>
std::string gpu_defect(int64_t, const T *, const T *, bool, const int64_t *,
                       double *) {
  return none;
}
template std::string gpu_defect(int64_t, const float *, const float *, bool,
                                const int64_t *, double *);
template std::string gpu_defect(int64_t, const double *, const double *, bool,
                                const int64_t *, double *);

std::unique_ptr<Vendor> vendor_open(int64_t, std::string *why) {
  *why = none;
  return nullptr;
}
