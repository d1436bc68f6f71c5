/* SPDX-License-Identifier: BSD-3-Clause */
/* How large the arrays of a CUDA engine are: what create.cu allocates, and what
   a caller may ask for beforehand. */
#ifndef HONE_CUDA_LAYOUT_H
#define HONE_CUDA_LAYOUT_H

#include "gpu_sp/state.h"

enum {
  HONE_CUDA_ALLOCATIONS = 32,
  HONE_CUDA_BLAS_WORK = 32 << 20 /* bytes that cuBLAS wants on an H200 */
};

/* One allocation on the device: where its pointer goes, and its size. */
struct hone_cuda_allocation {
  void **at;
  int64_t bytes;
};

/* Sets sizes, widths and capacities from the order and the caller's choices. */
void hone_cuda_lay_out(hone_cuda *c, const hone_cuda_shape &of,
                       const hone_engine_config *config);
/* Sets the size of the two buffers through which an A that is not kept on the
   device comes, as floats, in narrower block columns. */
void hone_cuda_set_stage_columns(hone_cuda *c,
                                 const hone_engine_config *config);
/* List the device memory that is needed without a copy of A, and what is needed
   with it; return how many allocations that is. */
int hone_cuda_list_working(hone_cuda *c, hone_cuda_allocation *p);
int hone_cuda_list_resident(hone_cuda *c, hone_cuda_allocation *p);
int64_t hone_cuda_sum_bytes(const hone_cuda_allocation *p, int count);

/* Lists of parts by which A comes (factor/load.cu). */
enum hone_cuda_parts_list {
  HONE_PARTS_OF_8192,
  HONE_PARTS_WHOLE,
  HONE_PARTS_HALVES,
  HONE_PARTS_QUARTER_FIRST,
  HONE_PARTS_QUARTERS_HALF,
  HONE_PARTS_QUARTERS,
  HONE_PARTS_OF_3072,
  HONE_PARTS_NARROW_AT_BOTH_ENDS,
  HONE_PARTS_NINE,
  HONE_PARTS_SIX,
  HONE_PARTS_LISTS
};
/* How matrices up to an order are factored: the columns of an outer panel, and
   the list of parts. */
struct hone_cuda_plan {
  int64_t up_to, outer;
  enum hone_cuda_parts_list parts;
};
const hone_cuda_plan *hone_cuda_plan_for(bool spd, int64_t n);
/* Returns the columns of an outer panel. */
int64_t hone_cuda_outer_width(bool spd, const hone_engine_config *config);
/* Returns how many of n columns a device has. */
int64_t hone_cuda_dealt_columns(int64_t n, const hone_cuda_deal *deal);
/* Returns the bytes of device memory that create asks for; stays: with a copy
   of A. */
int64_t hone_cuda_device_bytes(bool spd, const hone_engine_config *config,
                               bool stays);
/* Returns those of one of several devices (hone_cuda_create_share). */
int64_t hone_cuda_share_bytes(const hone_cuda_shape &of,
                              const hone_engine_config *config);
/* Returns those of hone_cuda_create_window. */
int64_t hone_cuda_window_bytes(const hone_engine_config *config,
                               const hone_cuda_deal *deal, int64_t beside);

#endif
